//! Formatting of numbers, tables and counts.

use comfy_table::{CellAlignment, ContentArrangement, Row, Table, presets};
use inertial::consistency::significant;

/// Appearance of text.
#[derive(Debug, Clone, Copy, Default)]
pub struct Style {
    /// Width of the terminal (columns), to which tables and curves are fitted; `None` without a terminal.
    pub width: Option<u16>,
    /// Whether colours are shown.
    pub colour: bool,
}

/// Width (columns) of a terminal of unknown size.
pub const DEFAULT_WIDTH: u16 = 80;

/// Alignment of the columns of a table after the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Align {
    /// Right-aligned numbers in the given number of columns.
    Numbers(usize),
    /// Centred symbols, never wrapped.
    Symbols,
}

/// Formats a table with a left-aligned first column and `numbers` right-aligned columns after it.
pub fn table<const N: usize>(
    style: Style,
    header: [&str; N],
    numbers: usize,
    rows: impl IntoIterator<Item = [String; N]>,
) -> String {
    aligned(style, &header, Align::Numbers(numbers), rows)
}

/// Formats a table with any number of columns, all right-aligned after the first.
pub fn wide_table(style: Style, header: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    aligned(style, header, Align::Numbers(usize::MAX), rows)
}

/// Formats a table with narrow columns of symbols after the first.
pub fn symbol_table(style: Style, header: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    aligned(style, header, Align::Symbols, rows)
}

fn aligned<R: Into<Row>>(
    style: Style,
    header: &[&str],
    align: Align,
    rows: impl IntoIterator<Item = R>,
) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(header.iter().copied());
    if let Some(width) = style.width {
        table.set_width(width);
    }
    for row in rows {
        table.add_row(row);
    }
    let (arrangement, alignment, count) = match align {
        Align::Numbers(count) => (ContentArrangement::Dynamic, CellAlignment::Right, count),
        Align::Symbols => (ContentArrangement::Disabled, CellAlignment::Center, usize::MAX),
    };
    table.set_content_arrangement(arrangement);
    table.column_iter_mut().skip(1).take(count).for_each(|column| {
        column.set_cell_alignment(alignment);
    });
    table.trim_fmt() + "\n"
}

/// Formats short decimals exactly, other numbers to six digits.
pub fn number(x: f64) -> String {
    let full = x.to_string();
    if full.len() <= 10 { full } else { significant(x, 6) }
}

/// Returns the estimator of a result in words. In results, consistent estimates have the name of their solver.
pub fn estimator(name: &str) -> String {
    match name {
        "lmi" => "consistent".into(),
        "manifold" | "log-cholesky" => format!("consistent, solver {name}"),
        other => other.into(),
    }
}

/// Formats a fraction in percent, with two decimals.
pub fn percent(x: f64) -> String {
    format!("{:.2} %", 100.0 * x)
}

/// Formats a fraction in percent, with the given number of significant digits.
pub fn percent_to(x: f64, digits: usize) -> String {
    format!("{} %", significant(100.0 * x, digits))
}

/// Formats a value with its standard error, if it has one.
pub fn with_error(value: f64, error: Option<&f64>) -> String {
    match error {
        Some(error) => format!("{} ± {}", significant(value, 5), significant(*error, 2)),
        None => significant(value, 5),
    }
}

/// Formats a count with its noun: `1 body`, `2 bodies`.
pub fn plural(n: usize, one: &str, many: &str) -> String {
    format!("{n} {}", if n == 1 { one } else { many })
}
