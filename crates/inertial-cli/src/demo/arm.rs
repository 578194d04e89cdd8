//! `inertial demo arm`: identify a seven-axis arm from a log that ships inside the program, and compare with the truth.

use std::fmt::Write as _;

use anyhow::Result;
use inertial::consistency::significant;
use inertial::dynamics::{InverseDynamics, Samples};
use inertial::estimation::{
    Equations, IdentifyOptions, JointTerms, LeastSquares, Measurements, Summary, Weighting, identify,
};
use inertial::mechanism::{BuildOptions, DEFAULT_SNAP, Mechanism, builtin};
use inertial_data::{CsvReader, Cutoff, Log, Options, Prepared, prepare};

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
    // Friction jumps where a joint turns back: a wide band and the samples away from there show it unblurred.
    let options = Options { cutoff: Cutoff::Hz(10.0), slow: 0.1, ..Options::default() };
    let prepared = prepare(&arm, &log, &options)?;
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
         (as in: inertial identify arm.urdf log.csv --friction coulomb+viscous --cutoff 10 --slow 0.1).\n\n",
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
    Ok(Answer::Yes)
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
    let summary = Summary::new(equations, &Measurements::new(samples, &log.v, &log.a, &tau))?;
    Ok(LeastSquares::new(equations, &summary, Weighting::Ordinary)?.values.as_slice().to_vec())
}
