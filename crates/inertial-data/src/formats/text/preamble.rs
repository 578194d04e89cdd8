//! Lines before the header of a text table, and the row of units below it.

use crate::columns::is_unit;
use crate::formats::text::cells::{Separator, cells, number};
use crate::formats::text::dialect::separator;

/// Maximum number of lines that are searched for the header.
pub(crate) const MOST_LINES: usize = 200;
/// Maximum length of an unknown unit.
const LONGEST_UNIT: usize = 16;

/// Returns the separator of a line `sep=;`, with which Excel names it.
pub(crate) fn named_separator(line: &[u8]) -> Option<Separator> {
    let line = line.trim_ascii_start().strip_suffix(b"\r").unwrap_or(line.trim_ascii_start());
    let line = line.strip_prefix(b"\"").and_then(|l| l.strip_suffix(b"\"")).unwrap_or(line);
    let (key, value) = line.split_at_checked(4)?;
    match value {
        [byte] if key.eq_ignore_ascii_case(b"sep=") => Some(Separator::Byte(*byte)),
        _ => None,
    }
}

/// Returns whether the first lines are a row, or a header and a row. Blank lines and comments do not count.
pub(crate) fn is_table(lines: &[&[u8]]) -> bool {
    let mut solid = lines.iter().filter(|line| !is_skipped(line));
    let Some(first) = solid.next() else { return false };
    let own = separator(first);
    share_of_numbers(first, own) == 1.0 || solid.next().is_some_and(|row| is_row(row, own, count(first, own)))
}

/// Returns the number of lines before the header. `lines` are the first lines of a text. Blank lines and comments do not count.
///
/// The header is the first line that is followed by two rows with as many cells. The number is zero if the first line is the header, and
/// also if there is no such line: then the first line is taken as it is.
pub(crate) fn lines_before_header(lines: &[&[u8]]) -> usize {
    if is_table(lines) {
        return 0;
    }
    let solid: Vec<usize> = (0..lines.len()).filter(|&k| !is_skipped(lines[k])).collect();
    for (at, &k) in solid.iter().enumerate() {
        let separator = separator(lines[k]);
        let width = count(lines[k], separator);
        if width < 2 || (at > 0 && share_of_numbers(lines[k], separator) > 0.0) {
            continue;
        }
        let mut next = solid[at + 1..].iter().map(|&k| lines[k]).peekable();
        next.next_if(|line| units(line, separator, width).is_some());
        // Two rows, because a line of a description may look like one.
        let mut rows = next.take(2).map(|line| is_row(line, separator, width));
        if rows.next() == Some(true) && rows.next() != Some(false) {
            return k;
        }
    }
    0
}

fn is_skipped(line: &[u8]) -> bool {
    matches!(line.trim_ascii(), [] | [b'#' | b'%', ..])
}

/// Returns whether a line has as many cells as the header, most of them numbers.
fn is_row(line: &[u8], separator: Separator, width: usize) -> bool {
    // The last value of a row may be missing.
    let has_width = count(line, separator) == width || cells(line, separator).len() == width;
    has_width && share_of_numbers(line, separator) > 0.5
}

fn count(line: &[u8], separator: Separator) -> usize {
    let cells = cells(line, separator);
    // A separator at the end of the line does not start a column.
    cells.len() - usize::from(cells.len() > 1 && cells.last().is_some_and(|cell| cell.is_empty()))
}

fn share_of_numbers(line: &[u8], separator: Separator) -> f64 {
    let cells = cells(line, separator);
    let numbers = cells.iter().filter(|cell| !cell.is_empty() && number(cell).is_some()).count();
    let filled = cells.iter().filter(|cell| !cell.is_empty()).count();
    numbers as f64 / filled.max(1) as f64
}

/// Returns whether a cell in the place of a unit means that there is none.
pub(crate) fn has_no_unit(cell: &str) -> bool {
    matches!(cell, "" | "-" | "–" | "1" | "none" | "bool")
}

/// Returns the units of a row below the header of `width` columns, without brackets; `None` if the line is no such row.
pub(crate) fn units(line: &[u8], separator: Separator, width: usize) -> Option<Vec<String>> {
    let cells = cells(line, separator);
    if cells.len() != width && cells.len() != width + 1 {
        return None;
    }
    let mut out = Vec::with_capacity(width);
    for cell in &cells[..width] {
        let text = std::str::from_utf8(cell).ok()?.trim();
        let unit = [('[', ']'), ('(', ')')]
            .iter()
            .find_map(|(open, close)| text.strip_prefix(*open)?.strip_suffix(*close))
            .unwrap_or(text)
            .trim();
        // A number is a value, and a long text is a description.
        let is_value = !has_no_unit(unit) && number(unit.as_bytes()).is_some();
        if is_value || unit.len() > LONGEST_UNIT {
            return None;
        }
        out.push(unit.to_owned());
    }
    // A row of missing values, or of ones, is not a row of units. Some units may be unknown; recognition refuses their columns.
    let known = out.iter().filter(|unit| is_unit(unit)).count();
    let unknown = out.iter().filter(|unit| !is_unit(unit) && !has_no_unit(unit)).count();
    (known > unknown).then_some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_found_below_descriptions() {
        let before = |text: &str| lines_before_header(&text.lines().map(str::as_bytes).collect::<Vec<_>>());
        let table = "t,q1,tau1\n0,1,2\n0.01,1,2\n";
        assert_eq!(before(table), 0);
        assert_eq!(before(&format!("Robot log 2024\nSerial: 123\n\n{table}")), 3);
        assert_eq!(before(&format!("Rate,500\nMass,3\nRobot,UR5\n{table}")), 3);
        assert_eq!(before(&format!("recorded by me, today, here\n{table}")), 1);
        assert_eq!(before("name;value\nt;q1;tau1\ns;deg;Nm\n0,1;1;2\n0,2;1;2\n"), 1);
        // Without rows that match, the first line counts.
        assert_eq!(before("t,q1,tau1\n0,1\n0,1,2\n0,1,2\n"), 0);
        assert_eq!(before("0,1,2\n0,1,2\n"), 0);
        assert_eq!(before("t,q1\n"), 0);
        assert_eq!(before("t,q1,mode,name\n0,1,run,x\n0.1,1,run,x\n"), 0);
    }

    #[test]
    fn units_are_recognized() {
        let of = |line: &str, width| units(line.as_bytes(), Separator::Byte(b';'), width);
        assert_eq!(of("s;rad;Nm", 3).unwrap(), ["s", "rad", "Nm"]);
        assert_eq!(of("[ms];[deg];(Nm);-", 4).unwrap(), ["ms", "deg", "Nm", "-"]);
        assert_eq!(of("s;Grad;Nm", 3).unwrap(), ["s", "Grad", "Nm"]);
        assert_eq!(of("s;deg;Nm;%", 4).unwrap(), ["s", "deg", "Nm", "%"]);
        assert_eq!(of("s;q1;tau1", 3), None);
        assert_eq!(of("s;deg;0", 3), None);
        assert_eq!(of(";;", 3), None);
        assert_eq!(of("s;rad", 3), None);
        assert_eq!(of("a;b;c", 3), None);
        assert_eq!(of("0;1;2", 3), None);
    }

    #[test]
    fn separators_are_named() {
        assert_eq!(named_separator(b"sep=;"), Some(Separator::Byte(b';')));
        assert_eq!(named_separator(b"\"sep=,\"\r"), Some(Separator::Byte(b',')));
        assert_eq!(named_separator(b"sep=\t"), Some(Separator::Byte(b'\t')));
        assert_eq!(named_separator(b"sep=;;"), None);
        assert_eq!(named_separator(b"separator"), None);
    }
}
