//! Numbers, tables and counts in text.

use comfy_table::{CellAlignment, ContentArrangement, Row, Table, presets};
use inertial::consistency::significant;

/// How text may look.
#[derive(Debug, Clone, Copy, Default)]
pub struct Style {
    /// Columns of the terminal; tables and curves are made to fit. None where there is no terminal.
    pub width: Option<u16>,
    /// Whether colours are shown.
    pub colour: bool,
}

/// Columns of a terminal that does not know how many it has.
pub const USUAL_WIDTH: u16 = 80;

/// Alignment of the columns of a table after the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Align {
    /// So many columns to the right.
    Numbers(usize),
    /// All in the middle, never wrapped.
    Symbols,
}

/// Rows in columns, the first to the left and the `numbers` after it to the right.
pub fn table<const N: usize>(
    style: Style,
    header: [&str; N],
    numbers: usize,
    rows: impl IntoIterator<Item = [String; N]>,
) -> String {
    aligned(style, &header, Align::Numbers(numbers), rows)
}

/// The same with as many columns as there are, all after the first of numbers.
pub fn wide_table(style: Style, header: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    aligned(style, header, Align::Numbers(usize::MAX), rows)
}

/// Rows in narrow columns of symbols after the first.
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

/// A short decimal as it is, others to six digits.
pub fn number(x: f64) -> String {
    let full = x.to_string();
    if full.len() <= 10 { full } else { significant(x, 6) }
}

/// A share in percent, with two decimals.
pub fn percent(x: f64) -> String {
    format!("{:.2} %", 100.0 * x)
}

/// A share in percent, with so many significant digits.
pub fn percent_to(x: f64, digits: usize) -> String {
    format!("{} %", significant(100.0 * x, digits))
}

/// A value with its standard error, where it has one.
pub fn with_error(value: f64, error: Option<&f64>) -> String {
    match error {
        Some(error) => format!("{} ± {}", significant(value, 5), significant(*error, 2)),
        None => significant(value, 5),
    }
}

/// `1 body`, `2 bodies`.
pub fn plural(n: usize, one: &str, many: &str) -> String {
    format!("{n} {}", if n == 1 { one } else { many })
}
