//! Bar chart of the identifiable parameters of each body.

use std::fmt::Write as _;

use plotters::prelude::*;
use serde_json::Value;

use super::drawing::{Drawn, FONT, SIZE, drawing, side_label};

/// Categories of a bar with their symbol and colour, from identifiable (dark) to unidentifiable (light).
const KINDS: [(&str, char, RGBColor); 4] = [
    ("identifiable alone", '█', RGBColor(20, 62, 125)),
    ("base parameter", '▓', RGBColor(31, 111, 208)),
    ("part of another's combination", '▒', RGBColor(150, 190, 235)),
    ("not identifiable", '░', RGBColor(225, 228, 233)),
];

/// Number of parameters of one body in each category.
struct Bar {
    body: String,
    counts: [usize; KINDS.len()],
}

/// Reads the bars from the object of `analyze --json`.
fn bars(analysis: &Value) -> Vec<Bar> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let bar = |body: &Value| {
        let base = list(&body["base_parameters"]);
        let mut counts = [0; KINDS.len()];
        for (name, status) in body["parameters"].as_object().into_iter().flatten() {
            let kind = match status.as_str() {
                Some("identifiable") => 0,
                Some("unidentifiable") => 3,
                _ if base.iter().any(|b| b == name) => 1,
                _ => 2,
            };
            counts[kind] += 1;
        }
        Bar { body: body["name"].as_str().unwrap_or_default().to_owned(), counts }
    };
    list(&analysis["bodies"]).iter().map(bar).collect()
}

/// Draws the bars for the terminal.
pub fn text(analysis: &Value) -> String {
    let bars = bars(analysis);
    let widest = bars.iter().map(|b| b.body.chars().count()).max().unwrap_or(0);
    let key: Vec<String> = KINDS.iter().map(|(name, mark, _)| format!("{mark} {name}")).collect();
    let mut out = format!("\nparameters of each body: {}\n", key.join("  "));
    for Bar { body, counts } in bars {
        let marks: String =
            KINDS.iter().zip(counts).map(|((_, mark, _), n)| mark.to_string().repeat(n)).collect();
        let _ = writeln!(out, "{body:<widest$} {marks}");
    }
    out
}

/// Draws the bars as SVG for a paper.
pub fn svg(analysis: &Value) -> Drawn<String> {
    let bars = bars(analysis);
    let most = bars.iter().map(|b| b.counts.iter().sum::<usize>()).max().unwrap_or(0).max(1);
    let height = 110 + 18 * bars.len() as u32;
    drawing((SIZE.0, height), |area| {
        let (head, below) = area.split_vertically(56);
        for (k, (name, _, colour)) in (0..).zip(&KINDS) {
            let (x, y) = (20 + 260 * (k % 2), 10 + 20 * (k / 2));
            head.draw(&Rectangle::new([(x, y), (x + 14, y + 12)], colour.filled()))?;
            head.draw(&Text::new(*name, (x + 20, y), FONT.into_font()))?;
        }
        let mut chart = ChartBuilder::on(&below)
            .margin(6)
            .x_label_area_size(36)
            .y_label_area_size(170)
            .build_cartesian_2d(0.0..most as f64, 0.0..bars.len() as f64)?;
        chart
            .configure_mesh()
            .disable_mesh()
            .disable_y_axis()
            .x_desc("inertial parameters")
            .x_labels(most.min(10) + 1)
            .x_label_formatter(&|x| format!("{x:.0}"))
            .label_style(FONT)
            .draw()?;
        for (i, Bar { body, counts }) in bars.iter().enumerate() {
            let y = (bars.len() - i) as f64;
            let mut from = 0.0;
            for ((_, _, colour), n) in KINDS.iter().zip(counts) {
                let to = from + *n as f64;
                chart.draw_series([Rectangle::new([(from, y - 0.15), (to, y - 0.85)], colour.filled())])?;
                from = to;
            }
            let place = chart.backend_coord(&(0.0, y - 0.5));
            side_label(area, body, place)?;
        }
        Ok(())
    })
}
