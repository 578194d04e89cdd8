//! Figures 4, 6 and 7 of paper 002.

use inertial_app::studies::space_robot::{INTERVALS, Outcome, Published, Validation};
use inertial_app::{Error, Result};
use plotters::prelude::*;

use super::drawing::{Area, Drawn, FONT, SIZE, drawing};

/// Height of one panel (pixels).
const HEIGHT: u32 = 230;

/// Condition number above which a matrix is singular up to rounding error.
const LARGEST_CONDITION: f64 = 1e20;

/// Colours of up to six lines, which also differ in lightness.
const COLOURS: [RGBColor; 6] = [
    RGBColor(31, 95, 191),
    RGBColor(194, 74, 0),
    RGBColor(30, 130, 76),
    RGBColor(122, 63, 176),
    RGBColor(20, 20, 20),
    RGBColor(150, 155, 165),
];

const MESH: RGBColor = RGBColor(225, 228, 233);

/// Draws the figures, each with the name of its file.
pub fn files(outcome: &Outcome) -> Result<Vec<(String, String)>> {
    let figures = [
        ("figure-4", excitation(&outcome.published)),
        ("figure-6", motion(&outcome.validation)),
        ("figure-7", errors(&outcome.validation)),
    ];
    let text = |(name, drawn): (&str, Drawn<String>)| match drawn {
        Ok(text) => Ok((format!("{name}.svg"), text)),
        Err(e) => Err(Error::Input(format!("{name}: {e}"))),
    };
    figures.into_iter().map(text).collect()
}

/// Draws condition numbers and numbers of significant singular values over the intervals.
fn excitation(published: &Published) -> Drawn<String> {
    let numbered = |values: Vec<f64>| -> Vec<(f64, f64)> {
        values.into_iter().enumerate().map(|(k, y)| (k as f64 + 1.0, y)).collect()
    };
    let both = [(&published.alone, "one interval"), (&published.together, "all intervals up to it")];
    let end = INTERVALS as f64 + 0.5;
    drawing((SIZE.0, 2 * HEIGHT), |area| {
        let (upper, lower) = area.split_vertically(HEIGHT);
        let mut chart = ChartBuilder::on(&upper)
            .caption("a) condition number of the regressor", FONT)
            .margin(6)
            .x_label_area_size(34)
            .y_label_area_size(58)
            // Space for the legend at the top.
            .build_cartesian_2d(0.5..end, (100.0..1e4 * LARGEST_CONDITION).log_scale())?;
        chart
            .configure_mesh()
            .light_line_style(TRANSPARENT)
            .bold_line_style(MESH)
            .x_desc("interval")
            .label_style(FONT)
            .x_label_formatter(&|x| format!("{x:.0}"))
            .y_label_formatter(&|y| format!("{y:.0e}"))
            .y_labels(6)
            .draw()?;
        for ((counts, _), colour) in both.iter().zip(COLOURS) {
            let capped = counts.condition.iter().map(|c| c.min(LARGEST_CONDITION)).collect();
            chart.draw_series(LineSeries::new(numbered(capped), colour.stroke_width(2)))?;
        }
        key(&upper, &both.map(|b| b.1))?;
        let counts: Vec<(Vec<(f64, f64)>, &str)> = both
            .iter()
            .map(|(c, name)| (numbered(c.significant.iter().map(|n| *n as f64).collect()), *name))
            .collect();
        panel(&lower, "b) singular values above 1/300 of the largest", ("interval", ""), &counts)
    })
}

/// Draws angles and rates of the joints during the validation motion.
fn motion(validation: &Validation) -> Drawn<String> {
    drawing((SIZE.0, 2 * HEIGHT), |area| {
        let (upper, lower) = area.split_vertically(HEIGHT);
        let lines = |values| over_time(&validation.t, values, &validation.joints);
        panel(&upper, "joint angles", ("time (s)", "rad"), &lines(&validation.positions))?;
        panel(&lower, "joint rates", ("time (s)", "rad/s"), &lines(&validation.rates))
    })
}

/// Draws the prediction errors.
fn errors(validation: &Validation) -> Drawn<String> {
    let axes = ["x", "y", "z"].map(String::from);
    let [linear, angular] = [&validation.base_errors[..3], &validation.base_errors[3..]];
    drawing((SIZE.0, 3 * HEIGHT), |area| {
        let areas = area.split_evenly((3, 1));
        let lines = |values, names| over_time(&validation.t, values, names);
        let time = "time (s)";
        panel(&areas[0], "error of the base's linear velocity", (time, "m/s"), &lines(linear, &axes))?;
        panel(&areas[1], "error of the base's angular velocity", (time, "rad/s"), &lines(angular, &axes))?;
        let torques = lines(&validation.torque_errors, &validation.joints);
        panel(&areas[2], "error of the joint torques", (time, "N m"), &torques)
    })
}

fn over_time<'a>(t: &[f64], values: &[Vec<f64>], names: &'a [String]) -> Vec<(Vec<(f64, f64)>, &'a str)> {
    let line = |(values, name): (&Vec<f64>, &'a String)| {
        (t.iter().copied().zip(values.iter().copied()).collect(), name.as_str())
    };
    values.iter().zip(names).map(line).collect()
}

/// Draws lines over one axis, with a legend.
fn panel(
    area: &Area<'_>,
    title: &str,
    (x_label, y_label): (&str, &str),
    lines: &[(Vec<(f64, f64)>, &str)],
) -> Drawn<()> {
    let all = || lines.iter().flat_map(|(line, _)| line.iter());
    let ends = |values: &mut dyn Iterator<Item = f64>| {
        values.fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), x| (a.min(x), b.max(x)))
    };
    let (left, right) = ends(&mut all().map(|p| p.0));
    let (low, high) = ends(&mut all().map(|p| p.1));
    // Space for the legend at the top.
    let (low, high) = (low - 0.05 * (high - low), high + 0.2 * (high - low));
    let mut chart = ChartBuilder::on(area)
        .caption(title, FONT)
        .margin(6)
        .margin_right(16)
        .x_label_area_size(34)
        .y_label_area_size(64)
        .build_cartesian_2d(left..right, low..high)?;
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(MESH)
        .x_desc(x_label)
        .y_desc(y_label)
        .y_labels(6)
        .label_style(FONT)
        .x_label_formatter(&|x| format!("{x:.0}"))
        // Rounding error may replace an exact zero.
        .y_label_formatter(&|y| {
            let y = if y.abs() < 1e-9 * (high - low) { 0.0 } else { *y };
            inertial::consistency::significant(y, 3)
        })
        .draw()?;
    for ((line, _), colour) in lines.iter().zip(COLOURS) {
        chart.draw_series(LineSeries::new(line.iter().copied(), colour.stroke_width(1)))?;
    }
    key(area, &lines.iter().map(|l| l.1).collect::<Vec<_>>())
}

/// Draws the legend in a row at the top of the panel.
fn key(area: &Area<'_>, names: &[&str]) -> Drawn<()> {
    let mut x = 80;
    for (name, colour) in names.iter().zip(COLOURS) {
        area.draw(&PathElement::new([(x, 36), (x + 16, 36)], colour.stroke_width(2)))?;
        area.draw(&Text::new((*name).to_owned(), (x + 20, 30), FONT.into_font()))?;
        x += 36 + 7 * i32::try_from(name.chars().count())?;
    }
    Ok(())
}
