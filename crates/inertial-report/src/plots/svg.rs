//! Curves as SVG files for papers, black on white, with fonts of print size.

use inertial_app::curves::Reducer;
use inertial_app::{Error, Result};
use plotters::prelude::*;

use super::drawing::{Area, Drawn, FONT, SIZE, drawing, side_label};
use super::{Chart, Figure, Role, figures, marks};
use crate::page::Page;

/// Largest number of points of a line; more are not visible in print.
const POINTS: usize = 2000;

/// Draws the curves of a page, each with the name of its file.
pub fn files(page: &Page) -> Result<Vec<(String, String)>> {
    let mut out = Vec::new();
    let mut add = |name: &str, drawn: Drawn<String>| {
        let text = drawn.map_err(|e| Error::Input(format!("{name}: {e}")))?;
        out.push((format!("{name}.svg"), text));
        Ok::<_, Error>(())
    };
    for figure in figures(page) {
        add(&figure.name, figure.svg())?;
    }
    if !page.parameters.is_empty() {
        add("parameters", parameters(page))?;
    }
    if let Some(found) = page.singular_values.as_ref().filter(|s| !s.values.is_empty()) {
        add("singular-values", singular_values(&found.values, found.excited))?;
    }
    // The graph and the bars are drawn for an analysis only; a page with curves has them as its result.
    if let (Some(analysis), true) = (&page.analysis, page.identification.is_none()) {
        add("identifiability", marks::svg(analysis))?;
        page.graph.iter().try_for_each(|graph| add("graph", Ok(graph.clone())))?;
    }
    Ok(out)
}

impl Role {
    /// Returns colours that also differ in lightness, for print in grey.
    fn colour(self) -> RGBColor {
        match self {
            Self::Measured => RGBColor(150, 155, 165),
            Self::Predicted => RGBColor(194, 74, 0),
            Self::Residual => RGBColor(122, 63, 176),
            Self::Planned => RGBColor(31, 95, 191),
        }
    }
}

impl Figure<'_> {
    fn svg(&self) -> Drawn<String> {
        let columns = if self.charts.len() > 4 { 2 } else { 1 };
        let rows = self.charts.len().div_ceil(columns);
        drawing((SIZE.0 * columns as u32, SIZE.1 * rows as u32), |area| {
            for (chart, area) in self.charts.iter().zip(area.split_evenly((rows, columns))) {
                chart.svg(&area)?;
            }
            Ok(())
        })
    }
}

impl Chart<'_> {
    fn svg(&self, area: &Area<'_>) -> Drawn<()> {
        let [low, high] = self.range();
        let mut chart = ChartBuilder::on(area)
            .caption(&self.title, FONT)
            .margin(6)
            .x_label_area_size(34)
            .y_label_area_size(58)
            .build_cartesian_2d(self.start..self.end(), low..high)?;
        chart
            .configure_mesh()
            .light_line_style(TRANSPARENT)
            .bold_line_style(RGBColor(225, 228, 233))
            .x_desc(self.x_label)
            .y_desc(&self.y_label)
            .y_labels(5)
            .label_style(FONT)
            .y_label_formatter(&|y| inertial::consistency::significant(*y, 3))
            .draw()?;
        for limit in &self.limits {
            let ends = [(self.start, *limit), (self.end(), *limit)];
            chart.draw_series(DashedLineSeries::new(ends, 5, 4, RGBColor(179, 38, 30).stroke_width(1)))?;
        }
        for (role, values) in &self.lines {
            let colour = role.colour();
            for run in self.runs(values) {
                chart.draw_series(LineSeries::new(
                    run,
                    colour.stroke_width(if *role == Role::Measured { 2 } else { 1 }),
                ))?;
            }
        }
        if self.lines.len() > 1 {
            self.key(area)?;
        }
        Ok(())
    }

    /// Draws the legend above the curves, at the right.
    fn key(&self, area: &Area<'_>) -> Drawn<()> {
        let right = i32::try_from(area.dim_in_pixel().0)? - 10;
        for (k, (role, _)) in self.lines.iter().rev().enumerate() {
            let x = right - 95 * (i32::try_from(k)? + 1);
            area.draw(&PathElement::new([(x, 13), (x + 18, 13)], role.colour().stroke_width(2)))?;
            area.draw(&Text::new(role.name(), (x + 23, 7), FONT.into_font()))?;
        }
        Ok(())
    }

    /// Returns the points of a line, reduced if there are many but with every peak, and split at gaps.
    fn runs(&self, values: &[f32]) -> Vec<Vec<(f64, f64)>> {
        let bucket = if values.len() > POINTS { (2 * values.len()).div_ceil(POINTS) } else { 1 };
        let mut reducer = Reducer::new(bucket, values.len());
        values.iter().for_each(|x| reducer.push(*x));
        let step = self.step * if bucket == 1 { 1.0 } else { 0.5 * bucket as f64 };
        let points: Vec<(f64, f64)> = reducer
            .finish()
            .into_iter()
            .enumerate()
            .map(|(i, x)| (self.start + step * i as f64, f64::from(x)))
            .collect();
        points.split(|(_, x)| !x.is_finite()).filter(|run| !run.is_empty()).map(<[_]>::to_vec).collect()
    }
}

/// Draws the estimates with two standard errors and the values of the model, each relative to its largest value.
fn parameters(page: &Page) -> Drawn<String> {
    let read = |p: &serde_json::Value| {
        let number = |key: &str| p[key].as_f64().unwrap_or(0.0);
        (p["name"].as_str().unwrap_or_default().to_owned(), number("value"), number("std_error"))
    };
    let result = page.identification.as_ref().and_then(|i| i["base_parameters"].as_array());
    let all: Vec<_> = result.into_iter().flatten().map(read).zip(&page.parameters).collect();
    let size = |value: f64, model: f64| {
        if value == 0.0 && model == 0.0 { 1.0 } else { value.abs().max(model.abs()) }
    };
    let height = 60 + 20 * all.len() as u32;
    drawing((SIZE.0, height), |area| {
        let mut chart = ChartBuilder::on(area)
            .margin(6)
            .x_label_area_size(36)
            .y_label_area_size(150)
            .build_cartesian_2d(-2.5..2.5, 0.0..all.len() as f64)?;
        chart
            .configure_mesh()
            .disable_y_mesh()
            .disable_y_axis()
            .light_line_style(TRANSPARENT)
            .bold_line_style(RGBColor(225, 228, 233))
            .x_desc("relative to the larger of estimate and model value; ring: model value")
            .label_style(FONT)
            .draw()?;
        let (after, before) = (RGBColor(31, 111, 208), RGBColor(138, 109, 0));
        for (i, ((name, value, error), own)) in all.iter().enumerate() {
            let (y, unit) = (all.len() as f64 - i as f64 - 0.5, size(*value, own.model.unwrap_or(0.0)));
            let at = |x: f64| (x / unit).clamp(-2.5, 2.5);
            let bar = [(at(value - 2.0 * error), y), (at(value + 2.0 * error), y)];
            chart.draw_series([PathElement::new(bar, after.stroke_width(2))])?;
            chart.draw_series([Circle::new((at(*value), y), 3, after.filled())])?;
            chart.draw_series(own.model.map(|x| Circle::new((at(x), y), 4, before.stroke_width(1))))?;
            let place = chart.backend_coord(&(-2.5, y));
            side_label(area, name, place)?;
        }
        Ok(())
    })
}

/// Draws the singular values of the data; those of directions that the motion does not excite are red.
fn singular_values(values: &[f64], excited: usize) -> Drawn<String> {
    let greatest = values[0].max(f64::MIN_POSITIVE);
    let least = values.iter().copied().filter(|v| *v > 0.0).fold(greatest, f64::min).max(1e-18 * greatest);
    drawing((SIZE.0, 260), |area| {
        let mut chart = ChartBuilder::on(area)
            .margin(6)
            .x_label_area_size(36)
            .y_label_area_size(64)
            .build_cartesian_2d(0.5..values.len() as f64 + 0.5, (0.5 * least..2.0 * greatest).log_scale())?;
        chart
            .configure_mesh()
            .light_line_style(TRANSPARENT)
            .bold_line_style(RGBColor(225, 228, 233))
            .x_desc("direction of base parameters")
            .y_desc("singular value")
            .label_style(FONT)
            .x_label_formatter(&|x| format!("{x:.0}"))
            .y_label_formatter(&|y| format!("{y:.0e}"))
            .draw()?;
        chart.draw_series(values.iter().enumerate().map(|(k, v)| {
            let colour = if k < excited { RGBColor(31, 111, 208) } else { RGBColor(179, 38, 30) };
            Circle::new((k as f64 + 1.0, v.max(0.5 * least)), 3, colour.filled())
        }))?;
        Ok(())
    })
}
