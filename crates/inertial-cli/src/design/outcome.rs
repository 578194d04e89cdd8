//! What a design came to: its files, its certificate in words and as JSON.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Result, bail};
use inertial::consistency::significant;
use inertial::excitation::{Certificate, Design, Expectation, Usage};
use inertial::mechanism::{BodyKind, Mechanism};
use serde::Serialize;

use super::subject::measured;
use super::{Args, criterion, rests};
use crate::output;

/// The result object.
#[derive(Debug, Serialize)]
pub struct Report<'d> {
    schema: &'static str,
    model: ModelSize,
    measured: &'static str,
    criterion: Reached<'d>,
    duration: f64,
    rate: f64,
    samples: usize,
    #[serde(flatten)]
    certificate: &'d Certificate,
    weak: Vec<&'d str>,
    limits: &'d [Usage],
    trajectory: &'d inertial::excitation::Trajectory,
    interrupted: bool,
    warnings: Vec<String>,
}

#[derive(Debug, Serialize)]
struct ModelSize {
    name: String,
    bodies: usize,
    dof: usize,
}

#[derive(Debug, Serialize)]
struct Reached<'d> {
    name: &'static str,
    value: f64,
    searches: &'d [f64],
}

#[derive(Clone, Copy)]
pub enum Kind {
    Csv,
    Yaml,
    Json,
    Toml,
}

pub fn kind(path: &Path) -> Result<Kind> {
    match path.extension().and_then(|e| e.to_str()) {
        Some("csv") => Ok(Kind::Csv),
        Some("yaml" | "yml") => Ok(Kind::Yaml),
        Some("json") => Ok(Kind::Json),
        Some("toml") => Ok(Kind::Toml),
        _ => bail!("--out {}: expected a name ending in .csv, .yaml, .json or .toml", path.display()),
    }
}

/// The trajectory as the file's name says.
pub fn trajectory_text(path: &Path, design: &Design, rate: f64) -> Result<String> {
    let trajectory = &design.trajectory;
    Ok(match kind(path)? {
        Kind::Csv => trajectory.to_csv(rate)?,
        Kind::Yaml => trajectory.to_ros_yaml(rate)?,
        Kind::Json => trajectory.to_json(),
        Kind::Toml => trajectory.to_toml(),
    })
}

pub fn report<'d>(args: &Args, mechanism: &Mechanism, design: &'d Design, interrupted: bool) -> Report<'d> {
    let mut warnings = mechanism.warnings().to_vec();
    if !design.held.is_empty() {
        warnings.push(format!("the limits hold {} still", design.held.join(", ")));
    }
    if !design.absorbed.is_empty() {
        warnings.push(format!(
            "{} act like the inertia of their links and count there",
            design.absorbed.join(", ")
        ));
    }
    if rests(args, mechanism) {
        warnings.push("the base is held still: --base-motion X,A moves it".into());
    }
    if interrupted {
        warnings.push("the search was ended early: this is the best motion until then".into());
    }
    Report {
        schema: "inertial/design/1",
        model: ModelSize {
            name: mechanism.name().to_owned(),
            bodies: mechanism.bodies().iter().filter(|b| b.kind == BodyKind::Link).count(),
            dof: mechanism.nv(),
        },
        measured: measured(args, mechanism).name(),
        criterion: Reached {
            name: criterion(args).name(),
            value: design.criterion,
            searches: &design.searches,
        },
        duration: args.duration,
        rate: args.rate,
        samples: design.trajectory.samples(args.rate).unwrap_or(0),
        weak: design.certificate.weak().map(|e| e.name.as_str()).collect(),
        certificate: &design.certificate,
        limits: &design.usage,
        trajectory: &design.trajectory,
        interrupted,
        warnings,
    }
}

pub fn text(report: &Report<'_>, design: &Design) -> String {
    let c = report.certificate;
    let mut out = format!(
        "{}: {} s at {} Hz, {} of {} base parameters shown (measured: {})\n",
        report.model.name, report.duration, report.rate, c.rank, c.structural_rank, report.measured
    );
    let _ = writeln!(
        out,
        "criterion {}: {}; condition number {} (columns of equal length: {}), smallest singular value {}\n",
        report.criterion.name,
        significant(report.criterion.value, 6),
        significant(c.condition, 4),
        significant(c.scaled_condition, 4),
        significant(c.smallest_singular_value, 4),
    );
    let row = |e: &Expectation| {
        let percent =
            if e.relative.is_finite() { format!("{:.2} %", 100.0 * e.relative) } else { "-".into() };
        [e.name.clone(), significant(e.value, 5), significant(e.std_error, 2), percent]
    };
    let rows = c.base_parameters.iter().chain(&c.joint_terms).map(row);
    out += &output::table(["unknown", "model's value", "expected standard error", "of its size"], 3, rows);
    out += "size: of the model's value, but at least a hundredth of the largest of its kind\n";
    let weak: Vec<_> = c.weak().collect();
    if !weak.is_empty() {
        let _ = writeln!(out, "\n{} stay weak:", crate::model::plural(weak.len(), "unknown", "unknowns"));
        for e in weak {
            let _ = writeln!(out, "  {}: {}", e.name, e.reason.as_deref().unwrap_or_default());
        }
    }
    let full = design.usage.iter().take(8).map(|u| {
        let distance = u.limit.starts_with("the distance")
            || u.limit.starts_with("the workspace")
            || u.limit.starts_with("the ground");
        let used = if distance {
            format!("{} m left", significant(u.used, 3))
        } else {
            format!("{:.1} %", 100.0 * u.used)
        };
        [u.limit.clone(), used]
    });
    out += "\n";
    out += &output::table(["limits used most (margins taken off)", "used"], 1, full);
    for warning in &report.warnings {
        let _ = writeln!(out, "note: {warning}");
    }
    out
}
