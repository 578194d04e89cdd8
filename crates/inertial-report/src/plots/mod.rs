//! Curves of a page without a browser: in the terminal, and as SVG files for a paper.

mod drawing;
mod marks;
mod space_robot;
mod svg;
mod terminal;

use std::path::Path;

use inertial_app::Result;
use inertial_app::curves::Series;
use inertial_app::disk::OutputFiles;

use crate::page::Page;
pub use space_robot::files as space_robot;
pub use svg::files;
pub use terminal::draw;

/// Adds plots to the output files, in a folder that is created if it does not exist.
pub fn write(plots: Vec<(String, String)>, folder: &Path, files: &mut OutputFiles) -> Result<()> {
    files.create_folder(folder)?;
    plots.into_iter().try_for_each(|(name, text)| files.add(&folder.join(name), &text))
}

/// Role of a line, which determines its appearance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Measured,
    Predicted,
    Residual,
    Planned,
}

impl Role {
    fn name(self) -> &'static str {
        match self {
            Self::Measured => "measured",
            Self::Predicted => "predicted",
            Self::Residual => "residual",
            Self::Planned => "planned",
        }
    }
}

/// Lines over a common axis with equal steps.
struct Chart<'p> {
    title: String,
    x_label: &'static str,
    y_label: String,
    start: f64,
    step: f64,
    lines: Vec<(Role, &'p [f32])>,
    limits: Vec<f64>,
}

/// Charts that belong together, one per joint.
struct Figure<'p> {
    name: String,
    charts: Vec<Chart<'p>>,
}

impl Chart<'_> {
    /// Returns the minimum and maximum of all drawn values, slightly extended.
    fn range(&self) -> [f64; 2] {
        let values = self.lines.iter().flat_map(|(_, values)| values.iter().map(|x| f64::from(*x)));
        let all = values.filter(|x| x.is_finite()).chain(self.limits.iter().copied());
        let (low, high) = all.fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), x| (a.min(x), b.max(x)));
        match high - low {
            span if span > 0.0 => [low - 0.04 * span, high + 0.04 * span],
            _ if low.is_finite() => [low - 1.0, low + 1.0],
            _ => [-1.0, 1.0],
        }
    }

    fn end(&self) -> f64 {
        let count = self.lines.iter().map(|(_, values)| values.len()).max().unwrap_or(0);
        self.start + self.step * count.saturating_sub(1).max(1) as f64
    }
}

/// Returns all curves of a page.
fn figures(page: &Page) -> Vec<Figure<'_>> {
    let mut out = Vec::new();
    for (k, curve) in page.curves.iter().enumerate() {
        let place = if page.curves.len() == 1 { String::new() } else { format!("-{}-{}", k + 1, curve.part) };
        let chart = |s: &Series, lines| Chart {
            title: s.joint.clone(),
            x_label: "time (s)",
            y_label: s.unit.to_owned(),
            start: curve.start,
            step: curve.step,
            lines,
            limits: Vec::new(),
        };
        let forces = curve.series.iter().map(|s| {
            chart(s, vec![(Role::Measured, &s.measured.0[..]), (Role::Predicted, &s.predicted.0[..])])
        });
        let name = if curve.quantity == "momentum" { "momenta" } else { "forces" };
        out.push(Figure { name: format!("{name}{place}"), charts: forces.collect() });
        let residuals = curve.series.iter().map(|s| chart(s, vec![(Role::Residual, &s.residual.0[..])]));
        out.push(Figure { name: format!("residuals{place}"), charts: residuals.collect() });
        let spectra = curve.series.iter().map(|s| Chart {
            x_label: "frequency (Hz)",
            y_label: format!("{}/√Hz", s.unit),
            start: 0.0,
            step: s.spectrum.resolution,
            ..chart(s, vec![(Role::Residual, &s.spectrum.density.0[..])])
        });
        out.push(Figure { name: format!("spectra{place}"), charts: spectra.collect() });
    }
    if let Some(trajectory) = &page.trajectory {
        for (k, name) in ["position", "speed", "acceleration", "force"].into_iter().enumerate() {
            let charts = trajectory.joints.iter().filter_map(|joint| {
                let quantity = joint.quantities.get(k)?;
                Some(Chart {
                    title: joint.joint.clone(),
                    x_label: "time (s)",
                    y_label: quantity.unit.to_owned(),
                    start: 0.0,
                    step: trajectory.step,
                    lines: vec![(Role::Planned, &quantity.values.0[..])],
                    limits: quantity.limits.into_iter().flatten().collect(),
                })
            });
            out.push(Figure { name: name.to_owned(), charts: charts.collect() });
        }
    }
    out.retain(|figure| !figure.charts.is_empty());
    out
}
