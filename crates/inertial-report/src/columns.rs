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
    let recognized = outcome.columns.iter().filter(|c| c.target.is_some()).count();
    let used = outcome.columns.iter().filter(|c| c.used == Some(true)).count();
    let mut out = format!("{}\n\n{table}\n", outcome.log);
    let count = plural(outcome.columns.len(), "column", "columns");
    let with_model = if used > 0 { format!(", {used} used with the model") } else { String::new() };
    let _ = writeln!(out, "{count}, {recognized} recognized{with_model}");
    if outcome.rows > 0 {
        let rows = plural(outcome.rows, "row", "rows");
        let which = if outcome.all_rows { format!("all {rows}") } else { format!("the first {rows} only") };
        let _ = writeln!(out, "least and greatest are those of {which}");
    }
    let _ = writeln!(out, "\ncolumn map (--columns):\n\n{}", outcome.map);
    if let Some(missing) = &outcome.missing {
        let _ = writeln!(out, "columns are missing for the model: {missing}");
    }
    out
}
