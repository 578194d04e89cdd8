//! Curves in the terminal, drawn with braille dots.

use std::fmt::Write as _;

use inertial::consistency::significant;

use super::{Chart, Figure, Role, figures, marks};
use crate::page::Page;
use crate::text::{DEFAULT_WIDTH, Style};

/// Number of text lines of a chart; each has four dots.
const ROWS: usize = 7;
/// Number of columns for the axis labels.
const SIDE: usize = 10;
/// Largest width of a chart (columns).
const WIDEST: usize = 140;

/// Draws the main curves of a page.
pub fn draw(page: &Page, style: Style) -> String {
    let width = usize::from(style.width.unwrap_or(DEFAULT_WIDTH));
    let mut out = match &page.analysis {
        Some(analysis) if page.identification.is_none() => marks::text(analysis),
        _ => String::new(),
    };
    let main =
        |f: &&Figure<'_>| ["forces", "momenta", "position"].iter().any(|name| f.name.starts_with(name));
    for figure in figures(page).iter().filter(main) {
        let _ = writeln!(out, "\n{}", figure.name.replace('-', " "));
        for chart in &figure.charts {
            out += &chart.text(width.clamp(SIDE + 20, WIDEST), style.colour);
        }
    }
    out
}

impl Role {
    /// Returns the escape code of its terminal colour.
    fn escape(self) -> &'static str {
        match self {
            Self::Measured => "\u{1b}[36m",
            Self::Predicted => "\u{1b}[33m",
            Self::Residual => "\u{1b}[35m",
            Self::Planned => "\u{1b}[34m",
        }
    }
}

/// Braille character, and the line drawn in it last.
#[derive(Clone, Copy, Default)]
struct Cell {
    dots: u8,
    role: Option<Role>,
}

/// Bits of the dots of a cell: two columns of four.
const DOTS: [[u8; 4]; 2] = [[0x01, 0x02, 0x04, 0x40], [0x08, 0x10, 0x20, 0x80]];

impl Chart<'_> {
    fn text(&self, width: usize, coloured: bool) -> String {
        let columns = width - SIDE;
        let [low, high] = self.range();
        let mut cells = vec![vec![Cell::default(); columns]; ROWS];
        let row = |x: f64| (((high - x) / (high - low)) * (4 * ROWS - 1) as f64).round().max(0.0) as usize;
        for (role, values) in &self.lines {
            for dot in 0..2 * columns {
                // Start at the previous sample to avoid gaps, and draw from minimum to maximum to keep every peak.
                let first = (dot * values.len() / (2 * columns)).saturating_sub(1);
                let last = ((dot + 1) * values.len()).div_ceil(2 * columns).min(values.len());
                let part = values[first..last].iter().map(|x| f64::from(*x)).filter(|x| x.is_finite());
                let (a, b) = part.fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), x| (a.min(x), b.max(x)));
                if a > b {
                    continue;
                }
                for y in row(b)..=row(a).min(4 * ROWS - 1) {
                    let cell = &mut cells[y / 4][dot / 2];
                    cell.dots |= DOTS[dot % 2][y % 4];
                    cell.role = Some(*role);
                }
            }
        }
        let names: Vec<String> = self
            .lines
            .iter()
            .map(|(role, _)| {
                if coloured {
                    format!("{}{}\u{1b}[0m", role.escape(), role.name())
                } else {
                    role.name().into()
                }
            })
            .collect();
        let mut out = format!("{} ({}): {}\n", self.title, self.y_label, names.join(" and "));
        for (i, line) in cells.iter().enumerate() {
            let number = match i {
                0 => significant(high, 3),
                _ if i == ROWS - 1 => significant(low, 3),
                _ => String::new(),
            };
            let _ = write!(out, "{number:>width$} ", width = SIDE - 1);
            out += &text_of(line, coloured);
            out.push('\n');
        }
        let (start, end) =
            (format!("{} s", significant(self.start, 4)), format!("{} s", significant(self.end(), 4)));
        let gap = columns.saturating_sub(start.chars().count() + end.chars().count());
        let _ = writeln!(out, "{:SIDE$}{start}{:gap$}{end}", "", "");
        out
    }
}

/// Returns a line of cells as text, without trailing empty cells.
fn text_of(line: &[Cell], coloured: bool) -> String {
    let (mut out, mut role) = (String::new(), None);
    let used = line.iter().rposition(|c| c.dots != 0).map_or(0, |k| k + 1);
    for cell in &line[..used] {
        if coloured && cell.role.is_some() && cell.role != role {
            role = cell.role;
            out += role.map_or("", Role::escape);
        }
        out.push(char::from_u32(0x2800 + u32::from(cell.dots)).unwrap_or(' '));
    }
    if role.is_some() {
        out += "\u{1b}[0m";
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peak_of_one_sample_is_drawn_and_lines_fit() {
        let mut values = vec![0.0f32; 100_000];
        values[54_321] = 1.0;
        let chart = Chart {
            title: "elbow".into(),
            x_label: "time (s)",
            y_label: "N m".into(),
            start: 0.0,
            step: 0.001,
            lines: vec![(Role::Measured, &values)],
            limits: Vec::new(),
        };
        let text = chart.text(60, false);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), ROWS + 2);
        assert!(lines.iter().all(|l| l.chars().count() <= 60), "{text}");
        // 54 % of the fifty columns.
        let top = lines[1].chars().position(|c| ('\u{2801}'..='\u{28ff}').contains(&c));
        assert_eq!(top, Some(SIDE + 27), "{text}");
        assert!(!text.contains('\u{1b}') && chart.text(60, true).contains('\u{1b}'));
    }
}
