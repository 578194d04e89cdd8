//! Drawing of charts: size, font, areas and labels.

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

/// Size of one chart (pixels).
pub(super) const SIZE: (u32, u32) = (560, 190);
/// Font of all labels.
pub(super) const FONT: (&str, u32) = ("sans-serif", 13);

/// Area of a chart.
pub(super) type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// Result of a drawing, with the boxed errors of plotters.
pub(super) type Drawn<T> = Result<T, Box<dyn std::error::Error>>;

/// Draws into an SVG of this size (pixels).
pub(super) fn drawing(size: (u32, u32), draw: impl FnOnce(&Area<'_>) -> Drawn<()>) -> Drawn<String> {
    let mut text = String::new();
    {
        let area = SVGBackend::with_string(&mut text, size).into_drawing_area();
        area.fill(&WHITE)?;
        draw(&area)?;
        area.present()?;
    }
    Ok(text)
}

/// Draws a label beside the axis.
pub(super) fn side_label(area: &Area<'_>, name: &str, (x, y): (i32, i32)) -> Drawn<()> {
    let style = TextStyle::from(FONT.into_font()).pos(Pos::new(HPos::Right, VPos::Center));
    area.draw(&Text::new(name.to_owned(), (x - 8, y), style))?;
    Ok(())
}
