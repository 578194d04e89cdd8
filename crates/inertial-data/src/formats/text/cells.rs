//! Cells of a line of a text table.

use crate::formats::text::time;

/// Separator between the cells of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Separator {
    /// Single character: a comma, a semicolon, a tab or a vertical bar.
    Byte(u8),
    /// Any number of spaces and tabs.
    Blanks,
}

impl Separator {
    fn is(self, byte: u8) -> bool {
        match self {
            Self::Byte(own) => own == byte,
            Self::Blanks => is_blank(byte),
        }
    }

    /// Returns the text after a separator at its start.
    fn after(self, text: &[u8]) -> Option<&[u8]> {
        match self {
            Self::Byte(_) => Some(&text[1..]),
            Self::Blanks => Some(text.trim_ascii_start()).filter(|rest| !rest.is_empty()),
        }
    }

    /// Returns the part of a line that contains cells.
    pub fn line(self, line: &[u8]) -> &[u8] {
        match self {
            Self::Byte(_) => line.strip_suffix(b"\r").unwrap_or(line),
            Self::Blanks => line.trim_ascii(),
        }
    }
}

fn is_blank(byte: u8) -> bool {
    byte == b' ' || byte == b'\t'
}

/// Reason why a line is invalid.
pub(crate) enum Fault {
    /// Wrong number of cells, with the number found.
    Cells(usize),
    /// Cell that is not a number, with its column and content.
    Number(usize, String),
}

/// Parses the cells of a line into the slots of their columns.
pub(crate) fn parse_line(
    line: &[u8],
    separator: Separator,
    slots: &[Option<usize>],
    row: &mut [f64],
) -> Result<(), Fault> {
    let mut count = 0;
    let mut rest = Some(separator.line(line));
    let mut blank = false;
    while let Some(text) = rest {
        let slot = slots.get(count).copied().flatten();
        if let Some((slot, (value, after))) = slot.zip(plain(text, separator)) {
            row[slot] = value;
            (rest, blank) = (after, false);
        } else {
            let (cell, after) = cell(text, separator);
            if let Some(slot) = slot {
                row[slot] = number(cell).ok_or_else(|| {
                    Fault::Number(count, String::from_utf8_lossy(cell).chars().take(40).collect())
                })?;
            }
            (rest, blank) = (after, cell.is_empty());
        }
        count += 1;
    }
    // Some writers end every row with a separator.
    if count == slots.len() || (count == slots.len() + 1 && blank) {
        Ok(())
    } else {
        Err(Fault::Cells(count))
    }
}

/// Parses a cell that is only a finite number, as almost all are, while searching for its end.
#[inline]
fn plain(text: &[u8], separator: Separator) -> Option<(f64, Option<&[u8]>)> {
    let (value, used) = fast_float2::parse_partial::<f64, _>(text).ok().filter(|(x, _)| x.is_finite())?;
    match text.get(used) {
        None => Some((value, None)),
        Some(&byte) if separator.is(byte) => Some((value, separator.after(&text[used..]))),
        Some(_) => None,
    }
}

/// Returns the first cell of a line, without quotes and surrounding spaces, and the rest of the line.
#[inline]
pub(crate) fn cell(text: &[u8], separator: Separator) -> (&[u8], Option<&[u8]>) {
    // Only a cell that starts with a quote is quoted; its separator is after the closing quote.
    let from = match text.trim_ascii_start() {
        [b'"', inner @ ..] => {
            text.len() - inner.len() + inner.iter().position(|&b| b == b'"').map_or(inner.len(), |k| k + 1)
        }
        _ => 0,
    };
    let end = match separator {
        Separator::Byte(byte) => memchr::memchr(byte, &text[from..]),
        Separator::Blanks => text[from..].iter().position(|&b| is_blank(b)),
    };
    let (cell, after) = match end {
        Some(k) => (&text[..from + k], separator.after(&text[from + k..])),
        None => (text, None),
    };
    let cell = cell.trim_ascii();
    (cell.strip_prefix(b"\"").and_then(|c| c.strip_suffix(b"\"")).map_or(cell, <[u8]>::trim_ascii), after)
}

/// Returns all cells of a line.
pub(crate) fn cells(line: &[u8], separator: Separator) -> Vec<&[u8]> {
    let mut out = Vec::new();
    let mut rest = Some(separator.line(line));
    while let Some(text) = rest {
        let (one, after) = cell(text, separator);
        out.push(one);
        rest = after;
    }
    out
}

/// Maximum length of a number with a decimal comma.
const LONGEST_NUMBER: usize = 40;

/// Parses a finite number, or NaN for a missing value. A decimal comma counts as a point; a date or time is converted to seconds.
pub(crate) fn number(cell: &[u8]) -> Option<f64> {
    if cell.is_empty() || matches!(cell, b"NA" | b"N/A" | b"null" | b"None" | b"NULL" | b"#N/A") {
        return Some(f64::NAN);
    }
    let plain = |cell: &[u8]| std::str::from_utf8(cell).ok()?.parse::<f64>().ok();
    if let Some(value) = plain(cell) {
        return (!value.is_infinite()).then_some(value);
    }
    if let Some(at) = cell.iter().position(|&b| b == b',').filter(|_| cell.len() <= LONGEST_NUMBER) {
        let mut pointed = [0; LONGEST_NUMBER];
        pointed[..cell.len()].copy_from_slice(cell);
        pointed[at] = b'.';
        if let Some(value) = plain(&pointed[..cell.len()]) {
            return value.is_finite().then_some(value);
        }
    }
    time::seconds(cell)
}
