//! Experiment with the quadruped: a motion of base and legs is simulated with sensor noise, and the parameters are identified.

use std::fmt::Write as _;

use anyhow::Result;
use inertial::consistency::significant;
use inertial::estimation::{Equations, Estimator, Identification, IdentifyOptions, JointTerms, identify};
use inertial::excitation::{BASE_COORDINATES, Basis, Trajectory};
use inertial::linalg::SplitMix;
use inertial::mechanism::{DEFAULT_SNAP, Mechanism};
use inertial::simulation::JointForces;

use inertial_report::text::{self, Style};

use super::record::Record;

const SECONDS: f64 = 20.0;
const RATE: f64 = 100.0;
const HARMONICS: usize = 5;

/// Standard deviations of the sensors, by column.
const NOISE: [(&str, f64); 3] = [("tau", 0.05), ("wrench.f", 0.5), ("wrench.t", 0.1)];

/// Simulates the motion, identifies the parameters, and reports their errors.
pub fn experiment(mechanism: &Mechanism, style: Style) -> Result<String> {
    let motion = motion(mechanism)?;
    let clean = record(mechanism, &motion, None)?;
    let noisy = record(mechanism, &motion, Some(1))?;
    let equations = Equations::new(mechanism, JointTerms::default(), DEFAULT_SNAP)?;
    let truth = equations.model_values()?;
    let mut out = format!(
        "The base is moved and the legs swing for {SECONDS} s: {HARMONICS} harmonics in each of {} coordinates, within the \
         limits.\nThe wrench on the base and the torques of the joints are measured at {RATE} Hz.\n\n",
        motion.joints().len()
    );
    let exact = estimate(&equations, &clean)?;
    let scale = truth.iter().map(|x| x.abs()).fold(0.0, f64::max);
    let worst = errors(&exact, &truth).map(|(error, _)| error.abs() / scale).fold(0.0, f64::max);
    let _ = writeln!(
        out,
        "Without noise, {} of {} base parameters are excited; the largest error is {} of the largest parameter.",
        exact.excited,
        exact.rank,
        significant(worst, 2)
    );
    let found = estimate(&equations, &noisy)?;
    let mut ratios: Vec<f64> = errors(&found, &truth).map(|(error, sd)| (error / sd).abs()).collect();
    ratios.sort_by(f64::total_cmp);
    let within = ratios.iter().filter(|r| **r < 2.0).count();
    let noise: Vec<String> = NOISE.iter().map(|(column, sd)| format!("{column}={sd}")).collect();
    let _ = writeln!(
        out,
        "With noise ({}), {} of {} lie within two standard errors of the truth (95 % expected); the largest deviation is {}.\n",
        noise.join(", "),
        within,
        ratios.len(),
        significant(ratios.last().copied().unwrap_or_default(), 2)
    );
    let rows = found.base_parameters.iter().zip(&truth).take(10).map(|(p, truth)| {
        // Values that are zero by symmetry may have rounding errors.
        let truth = if truth.abs() < 1e-12 * scale { 0.0 } else { *truth };
        [p.name.clone(), significant(truth, 5), significant(p.value, 5), significant(p.std_error, 2)]
    });
    out += &text::table(style, ["base parameter", "truth", "found", "standard error"], 3, rows);
    let _ = writeln!(out, "… and {} more", found.base_parameters.len().saturating_sub(10));
    Ok(out)
}

/// Returns the error and standard error of each base parameter.
fn errors<'a>(found: &'a Identification, truth: &'a [f64]) -> impl Iterator<Item = (f64, f64)> + 'a {
    found.base_parameters.iter().zip(truth).map(|(p, truth)| (p.value - truth, p.std_error))
}

/// Returns sums of sines with random phases that cover nine tenths of the range of each joint, and a moderate motion of the base.
fn motion(mechanism: &Mechanism) -> Result<Trajectory> {
    let mut source = SplitMix::new(4);
    let mut draw = || (source.next_u64() >> 11) as f64 / (1u64 << 52) as f64 - 1.0;
    let mut wave = |centre: f64, half: f64| {
        let raw: Vec<f64> = (0..2 * HARMONICS).map(|k| draw() / (k / 2 + 1) as f64).collect();
        let sum: f64 = raw.iter().map(|x| x.abs()).sum();
        std::iter::once(centre).chain(raw.iter().map(|x| x * 0.9 * half / sum)).collect::<Vec<_>>()
    };
    let (mut names, mut rows) = (Vec::new(), Vec::new());
    for (k, name) in BASE_COORDINATES.iter().enumerate() {
        names.push((*name).to_owned());
        rows.push(wave(0.0, if k < 3 { 0.3 } else { 0.8 }));
    }
    for joint in mechanism.joints().iter().filter(|j| j.joint_type.nv() == 1 && j.follows.is_none()) {
        let (lower, upper) = (joint.limits.lower.max(-1.5), joint.limits.upper.min(1.5));
        let (lower, upper) =
            if lower < upper { (lower, upper) } else { (joint.limits.lower, joint.limits.upper) };
        names.push(joint.name.clone());
        rows.push(wave(0.5 * (lower + upper), 0.5 * (upper - lower)));
    }
    let basis = Basis::Fourier { period: SECONDS / 2.0, harmonics: HARMONICS };
    Ok(Trajectory::new(names, SECONDS, basis, &rows)?)
}

fn record(mechanism: &Mechanism, motion: &Trajectory, seed: Option<u64>) -> Result<Record> {
    Record::new(mechanism, motion, JointForces::none(mechanism), RATE, &NOISE, seed)
}

fn estimate(equations: &Equations<'_>, log: &Record) -> Result<Identification> {
    // A prior is not used, since the inertias of the model are the true ones.
    let options = IdentifyOptions::default().with(|o| o.estimator = Estimator::Wls);
    Ok(identify(equations, &log.summary(equations)?, None, &options)?)
}
