//! Text of a design.

use std::fmt::Write as _;

use inertial::consistency::significant;
use inertial::excitation::ExpectedAccuracy;
use inertial_app::design::Outcome;

use crate::text::{Style, plural, table};

/// Formats the verdict, every unknown with its expected error, and the limits that are used most.
pub fn text(outcome: &Outcome, style: Style) -> String {
    let c = &outcome.certificate;
    let weak: Vec<_> = c.weak().collect();
    let mut out = format!(
        "{}: {} s at {} Hz excite {} of {} base parameters (measured: {})\n",
        outcome.model.name, outcome.duration, outcome.rate, c.rank, c.structural_rank, outcome.measured
    );
    let _ = match weak.len() {
        0 => writeln!(out, "All unknowns can be estimated well."),
        n => writeln!(out, "{} weak (listed below).", plural(n, "unknown is", "unknowns are")),
    };
    let _ = writeln!(
        out,
        "Criterion {}: {} ({})\n\
         Regressor divided by the noise: condition number {} ({} with columns of equal length), smallest singular value {}\n",
        outcome.criterion.name,
        significant(outcome.criterion.value, 6),
        outcome.criterion.meaning,
        significant(c.condition, 4),
        significant(c.scaled_condition, 4),
        significant(c.smallest_singular_value, 4),
    );
    let row = |e: &ExpectedAccuracy| {
        let percent =
            if e.relative.is_finite() { format!("{:.2} %", 100.0 * e.relative) } else { "-".into() };
        [e.name.clone(), significant(e.value, 5), significant(e.std_error, 2), percent]
    };
    let rows = c.base_parameters.iter().chain(&c.joint_terms).map(row);
    out += &table(style, ["unknown", "model value", "expected standard error", "relative"], 3, rows);
    out += "relative: to the model value, but at least to a hundredth of the largest of its kind\n";
    if !weak.is_empty() {
        let _ = writeln!(out, "\n{} weak:", plural(weak.len(), "unknown is", "unknowns are"));
        for e in weak {
            let _ = writeln!(out, "  {}: {}", e.name, e.reason.as_deref().unwrap_or_default());
        }
    }
    let full = outcome.limits.iter().take(8).map(|u| {
        let used = match u.left {
            Some(left) => format!("{} m left", significant(left, 3)),
            None => format!("{:.1} %", 100.0 * u.used),
        };
        [u.limit.clone(), used]
    });
    out += "\n";
    out += &table(style, ["limits used most (margins subtracted)", "used"], 1, full);
    for warning in &outcome.warnings {
        let _ = writeln!(out, "note: {warning}");
    }
    out
}
