//! Text of an identification from momentum.

use std::fmt::Write as _;

use inertial::consistency::significant;
use inertial::estimation::momentum_identification::{MomentumIdentification, MomentumResidual};

use crate::identification::bodies;
use crate::text::{Style, estimator, percent_to, table};

/// Formats tables of bodies, base parameters and residuals.
pub fn text(result: &MomentumIdentification, style: Style) -> String {
    let mut out = format!(
        "{}: {} samples excite {} of {} base parameters (estimator: {}; momentum)\n\n",
        result.model.name,
        result.samples,
        result.excited,
        result.rank,
        estimator(result.estimator)
    );
    out += &bodies(&result.bodies, style);
    out += "\n";
    let rows = result.base_parameters.iter().map(|p| {
        let relative =
            if p.model == 0.0 { "-".to_owned() } else { percent_to((p.value - p.model) / p.model, 3) };
        [
            p.name.clone(),
            significant(p.value, 6),
            significant(p.std_error, 2),
            significant(p.model, 6),
            relative,
            significant(p.difference_in_std_errors, 2),
        ]
    });
    let header = ["base parameter", "value", "standard error", "model", "difference", "/standard error"];
    out += &table(style, header, 5, rows);
    for (title, residuals) in [("fit", &result.fit), ("validation", &result.validation)] {
        if !residuals.is_empty() {
            out += "\n";
            let row = |r: &MomentumResidual| {
                [r.joint.clone(), significant(r.rms, 3), percent_to(r.relative_rms, 3)]
            };
            out += &table(style, [title, "rms", "relative"], 2, residuals.iter().map(row));
        }
    }
    if let Some(chi) = result.reduced_chi_squared {
        let _ = writeln!(
            out,
            "\nχ² per degree of freedom: {} (1 if the noise is as stated)",
            significant(chi, 3)
        );
    }
    for warning in &result.warnings {
        let _ = writeln!(out, "warning: {warning}");
    }
    out
}
