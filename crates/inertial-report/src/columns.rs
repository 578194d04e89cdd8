//! Text of the columns of a log.

use std::fmt::Write as _;

use inertial_app::columns::Outcome;

use crate::text::{Style, number, plural, table};

/// Formats a table of the columns, the column map, and a description of missing columns.
pub fn text(outcome: &Outcome, style: Style) -> String {
    let rows = outcome.columns.iter().map(|c| {
        let value = |x: Option<f64>| x.map_or(String::new(), number);
        let unit = c.unit.as_ref().map_or(String::new(), |unit| format!(" ({unit})"));
        let target = c.target.as_ref().map_or("-".to_owned(), |target| format!("{target}{unit}"));
        [c.name.clone(), value(c.first), value(c.least), value(c.greatest), target, c.reason.clone()]
    });
    let table = table(style, ["column", "first", "least", "greatest", "taken for", "why"], 3, rows);
    let used = outcome.columns.iter().filter(|c| c.target.is_some()).count();
    let mut out = format!("{}\n\n{table}\n", outcome.log);
    let _ = writeln!(out, "{}, {used} used", plural(outcome.columns.len(), "column", "columns"));
    let _ = writeln!(out, "\ncolumn map (--columns):\n\n{}", outcome.map);
    if let Some(missing) = &outcome.missing {
        let _ = writeln!(out, "the log does not suffice for the model: {missing}");
    }
    out
}
