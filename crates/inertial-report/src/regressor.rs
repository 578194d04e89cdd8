//! Text of an identification from a regressor.

use std::fmt::Write as _;

use inertial::consistency::significant;
use inertial::estimation::{RegressorIdentification, RowResidual};

use crate::identification::bodies;
use crate::text::{Style, percent_to, table};

/// Formats tables of bodies, additional columns and residuals.
pub fn text(result: &RegressorIdentification, style: Style) -> String {
    let mut out = format!(
        "{} rows determine {} of {} columns (consistent)\n\n",
        result.rows, result.rank, result.columns
    );
    out += &bodies(&result.bodies, style);
    out += "\n";
    let first = 10 * result.bodies.len();
    let further = result.values.iter().zip(&result.std_errors).enumerate().skip(first);
    let rows: Vec<[String; 3]> = further
        .map(|(k, (x, error))| [(k + 1).to_string(), significant(*x, 6), significant(*error, 2)])
        .collect();
    if !rows.is_empty() {
        out += &table(style, ["column", "value", "standard error"], 2, rows);
        out += "\n";
    }
    let row = |r: &RowResidual| [r.row.to_string(), significant(r.rms, 3), percent_to(r.relative_rms, 3)];
    out += &table(style, ["row", "rms", "relative"], 2, result.fit.iter().map(row));
    for warning in &result.warnings {
        let _ = writeln!(out, "warning: {warning}");
    }
    out
}
