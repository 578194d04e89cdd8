//! `inertial demo arm`: identify a seven-axis arm from a log that ships inside the program, and compare with the truth; then
//! the whole loop, from the design of a motion to the parameters.

use std::fmt::Write as _;
use std::time::Instant;

use anyhow::Result;
use inertial::consistency::significant;
use inertial::dynamics::{InverseDynamics, Samples};
use inertial::estimation::{
    Equations, IdentifyOptions, JointTerms, LeastSquares, Measurements, Summary, Weighting, identify,
};
use inertial::excitation::{
    DefaultLimits, DesignOptions, Family, JointColumn, Room, Subject, coordinates, design,
};
use inertial::identifiability::{AnalyzeOptions, analyze};
use inertial::mechanism::{BuildOptions, DEFAULT_SNAP, Mechanism, builtin};
use inertial::simulation::JointForces;
use inertial_data::{CsvReader, Log, Options, Prepared, prepare};

use super::record::Record;
use crate::logs::summarise;
use crate::output::{self, Answer};

/// Made by `cargo run -p inertial-cli --example arm_log`.
const LOG: &[u8] = include_bytes!("../../data/arm.csv.gz");

pub fn run() -> Result<Answer> {
    let truth = builtin::get("arm7")?.build(&BuildOptions::default())?;
    // What is given is geometry alone: no masses, no centres of mass, no inertias of links.
    let mut builder = builtin::get("arm7")?;
    builder.links.iter_mut().for_each(|link| link.inertia = None);
    let arm = builder.build(&BuildOptions::default())?;
    let terms = JointTerms { viscous: true, coulomb: true, ..JointTerms::default() };
    let equations = Equations::new(&arm, terms, DEFAULT_SNAP)?;

    let log = Log::collect(CsvReader::new(LOG, "arm.csv.gz")?)?;
    let prepared = prepare(&arm, &log, &Options::default())?;
    let summary = summarise(&equations, &prepared)?;
    let result = identify(&equations, &summary, None, &IdentifyOptions::default())?;
    let errors = LeastSquares::new(&equations, &summary, Weighting::Weighted)?.std_errors();
    let exact = exact_values(&equations, &truth, &prepared)?;

    let number = |x: f64| significant(x, 4);
    let away: Vec<f64> =
        result.values.iter().zip(&exact).zip(&errors).map(|((x, y), e)| (x - y) / e).collect();
    let rows = equations.names.iter().enumerate().map(|(i, name)| {
        let cells = [exact[i], result.values[i], errors[i]].map(number);
        let [truth, found, error] = cells;
        [name.clone(), truth, found, error, format!("{:+.1}", away[i])]
    });
    let header = ["unknown", "truth", "found", "standard error", "errors away"];
    let table = output::table(header, 4, rows);
    let far = away.iter().fold(0.0, |m: f64, x| m.max(x.abs()));
    let near = away.iter().filter(|x| x.abs() <= 2.0).count();
    let mut out = format!(
        "A seven-axis arm moved for {:.0} s; its {} joint angles and torques were logged at {:.0} Hz, with noise.\n\
         Given are the log and the arm's geometry, and no inertia of any link\n\
         (as in: inertial identify arm.urdf log.csv --friction coulomb+viscous).\n\n",
        prepared.t.last().copied().unwrap_or(0.0),
        arm.nv(),
        prepared.log_rate_hz,
    );
    for note in &prepared.notes {
        let _ = writeln!(out, "{note}");
    }
    let _ = writeln!(
        out,
        "{} of {} base parameters are shown by this motion; residual {:.2} % of the torques\n\n{table}",
        result.excited,
        result.rank,
        100.0 * result.fit_relative_rms
    );
    let possible = result.bodies.iter().filter(|b| b.consistent).count();
    let _ = writeln!(
        out,
        "{near} of {} unknowns are within two standard errors of the truth, the farthest at {far:.1}.\n\
         {possible} of {} bodies can exist.",
        away.len(),
        result.bodies.len()
    );
    for warning in &result.warnings {
        let _ = writeln!(out, "note: {warning}");
    }
    output::print(&out)?;
    output::print(&whole_loop(&equations, &truth)?)?;
    Ok(Answer::Yes)
}

/// Noise of the simulated torque sensors (N m).
const NOISE: f64 = 0.5;

/// Part of the torque limits that is kept free.
const MARGIN: f64 = 0.05;

/// A motion designed for this arm, flown with noise, and what is found beside what was promised.
fn whole_loop(equations: &Equations<'_>, truth: &Mechanism) -> Result<String> {
    let began = Instant::now();
    let kinds = [JointColumn::Viscous, JointColumn::Coulomb, JointColumn::RotorInertia];
    let subject = Subject {
        mechanism: truth,
        regrouping: analyze(truth, &AnalyzeOptions::default())?.regrouping,
        terms: (0..truth.nv()).flat_map(|v| kinds.map(|kind| (v, kind))).collect(),
        noise: vec![NOISE; truth.nv()],
        effort: truth.joints().iter().map(|j| (1.0 - MARGIN) * j.limits.effort).collect(),
        prior: None,
    };
    let options = DesignOptions {
        family: Family::Fourier { harmonics: 5 },
        duration: 10.0,
        starts: 2,
        iterations: 40,
        ..DesignOptions::default()
    };
    let limits = coordinates(truth, &DefaultLimits { margin: MARGIN, ..DefaultLimits::default() });
    let designed = design(&[subject], &limits, &Room::default(), &options, &|_| true)?;
    let took = began.elapsed().as_secs_f64();
    let record = |seed: Option<u64>| {
        let forces = JointForces::of(truth)?;
        Record::new(truth, &designed.trajectory, forces, options.rate, &[("tau", NOISE)], seed)
    };
    let measured = record(Some(1))?.summary(equations)?;
    let found = identify(equations, &measured, None, &IdentifyOptions::default())?;
    let errors = LeastSquares::new(equations, &measured, Weighting::Weighted)?.std_errors();
    let exact = LeastSquares::new(equations, &record(None)?.summary(equations)?, Weighting::Ordinary)?.values;
    let mut away: Vec<f64> =
        (0..errors.len()).map(|i| ((found.values[i] - exact[i]) / errors[i]).abs()).collect();
    away.sort_by(f64::total_cmp);
    let promises = designed.certificate.base_parameters.iter().chain(&designed.certificate.joint_terms);
    let mut ratios: Vec<f64> = promises
        .filter_map(|e| {
            let i = equations.names.iter().position(|name| *name == e.name)?;
            Some(errors[i] / e.std_error)
        })
        .collect();
    ratios.sort_by(f64::total_cmp);
    let ends =
        |all: &[f64]| [all.first(), all.last()].map(|x| significant(x.copied().unwrap_or(f64::NAN), 3));
    let [least, most] = ends(&ratios);
    let c = &designed.certificate;
    let fullest = designed
        .usage
        .first()
        .map_or_else(String::new, |u| format!("; fullest is {}, {:.1} % used", u.limit, 100.0 * u.used));
    Ok(format!(
        "\nThe whole loop (inertial design, inertial simulate, inertial identify):\n\n\
         Designed in {took:.1} s: {} s at {} Hz that show {} of {} base parameters, condition number {} with columns of equal\n\
         length, all limits held at 1 kHz{fullest}.\n\
         Simulated with noise of {NOISE} N m and identified: {} of {} unknowns are within two standard errors of the truth, \
         the\nfarthest at {}. The standard errors are {least} to {most} times what the design promised.\n",
        options.duration,
        options.rate,
        c.rank,
        c.structural_rank,
        significant(c.scaled_condition, 3),
        away.iter().filter(|x| **x <= 2.0).count(),
        away.len(),
        ends(&away)[1]
    ))
}

/// What the unknowns are for the true arm: those that explain its own torques on the same motion without noise.
fn exact_values(equations: &Equations<'_>, truth: &Mechanism, log: &Prepared) -> Result<Vec<f64>> {
    let dynamics = InverseDynamics::new(truth);
    let samples = Samples::new(&dynamics, log.len(), &log.q, &log.v, &log.a)?;
    let mut tau = vec![0.0; log.v.len()];
    dynamics.rnea_batch(&mut dynamics.scratch(), &samples, &mut tau)?;
    for joint in truth.joints().iter().filter(|j| j.follows.is_none()) {
        for k in (joint.v..log.v.len()).step_by(truth.nv()) {
            let sign = if log.v[k] == 0.0 { 0.0 } else { log.v[k].signum() };
            tau[k] += joint.dynamics.damping * log.v[k] + joint.dynamics.friction * sign;
        }
    }
    let summary = Summary::new(equations, &Measurements::new(samples, &tau))?;
    Ok(LeastSquares::new(equations, &summary, Weighting::Ordinary)?.values.as_slice().to_vec())
}
