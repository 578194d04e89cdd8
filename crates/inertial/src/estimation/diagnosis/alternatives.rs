//! Other readings of a log that the model explains badly: columns exchanged or negated, another direction of gravity.

use nalgebra::Vector3;

use crate::Result;
use crate::estimation::consistent::problem::{Consistency, ConsistentFit};
use crate::estimation::diagnosis::excerpt::Excerpt;
use crate::estimation::equations::Equations;
use crate::estimation::identification::residuals::validate;
use crate::estimation::joint_model::terms::{JointTerms, Motor};
use crate::estimation::least_squares::fit::{LeastSquares, Weighting};
use crate::estimation::reduction::blocks::BlockPlan;
use crate::estimation::reduction::summary::Summary;
use crate::mechanism::Mechanism;

/// Samples that are enough to compare readings.
const SAMPLES: usize = 400;
/// A reading is named where the residual falls to this share of itself.
const FALL: f64 = 0.6;
/// The same of the opposite gravity, alone: one reading with as many unknowns, where two thirds of the squared residual remain.
const FALL_OF_GRAVITY: f64 = 0.8;
/// Most coordinates of a mechanism whose columns are exchanged in turn.
const MOST: usize = 12;

/// Another reading of a log.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Reading {
    /// Torque of one joint negated; of all where absent.
    NegatedTorque(Option<usize>),
    /// Torques of two joints exchanged.
    ExchangedTorques(usize, usize),
    /// Motion of a joint negated.
    NegatedMotion(usize),
    /// Axis of a joint reversed: its motion and its torque negated.
    ReversedAxis(usize),
    /// Motions of two joints exchanged.
    ExchangedMotions(usize, usize),
    /// Another gravity.
    Gravity(Vector3<f64>),
}

/// Readings that are tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tried {
    /// All.
    All,
    /// The opposite direction of gravity.
    Gravity,
}

/// A reading with the relative residual that it leaves, and that of the log as it is.
pub(crate) struct Better {
    pub reading: Reading,
    pub left: f64,
    pub as_it_is: f64,
}

/// Finds the reading of the log that the model explains best, if that is much better than the log as it is.
pub(crate) fn better_reading(
    equations: &Equations<'_>,
    excerpt: &Excerpt,
    wanted: &Consistency<'_>,
    tried: Tried,
) -> Result<Option<Better>> {
    let mechanism = equations.mechanism();
    let nv = mechanism.nv();
    let readings = match tried {
        Tried::All => readings(mechanism.gravity(), nv),
        Tried::Gravity if mechanism.gravity().norm() > 0.0 => vec![Reading::Gravity(-mechanism.gravity())],
        Tried::Gravity => Vec::new(),
    };
    if nv > MOST || readings.is_empty() {
        return Ok(None);
    }
    let excerpt = excerpt.thinned((excerpt.len() / SAMPLES).max(1));
    // All usual terms: which of them are needed was decided on a reading that may be wrong.
    let terms = JointTerms { viscous: true, coulomb: true, offset: true, rotor_inertia: true };
    let plain = with_drives_of(equations, mechanism, terms)?;
    let as_it_is = residual(&plain, &excerpt, wanted, f64::INFINITY)?.unwrap_or(f64::INFINITY);
    let fall = if tried == Tried::Gravity { FALL_OF_GRAVITY } else { FALL };
    let mut best: Option<Better> = None;
    for reading in readings {
        let most = best.as_ref().map_or(fall * as_it_is, |b| b.left);
        let left = match reading {
            Reading::Gravity(gravity) => {
                let other = mechanism.clone().with_gravity(gravity);
                let other = with_drives_of(equations, &other, terms)?;
                residual(&other, &excerpt, wanted, most)?
            }
            _ => residual(&plain, &read(&excerpt, nv, reading), wanted, most)?,
        };
        if let Some(left) = left.filter(|left| *left < most) {
            best = Some(Better { reading, left, as_it_is });
        }
    }
    Ok(best)
}

/// Equations of `mechanism` with the given terms; drives that turn with two joints in `equations` do so here too.
fn with_drives_of<'m>(
    equations: &Equations<'_>,
    mechanism: &'m Mechanism,
    terms: JointTerms,
) -> Result<Equations<'m>> {
    let drives = equations.motors().iter().map(|motor| Motor { bend: None, ..motor.clone() });
    Ok(Equations::new(mechanism, terms, equations.snap())?.with_motors(drives.collect()))
}

/// All readings, the simplest first.
fn readings(gravity: Vector3<f64>, nv: usize) -> Vec<Reading> {
    let mut out = vec![Reading::NegatedTorque(None)];
    let size = gravity.norm();
    if size > 0.0 {
        let axes = [Vector3::x(), Vector3::y(), Vector3::z()];
        let directions = axes.into_iter().flat_map(|axis| [axis, -axis]).map(|axis| size * axis);
        out.extend(directions.filter(|g| (g - gravity).norm() > 0.1 * size).map(Reading::Gravity));
    }
    for i in 0..nv {
        out.extend([Reading::NegatedTorque(Some(i)), Reading::NegatedMotion(i), Reading::ReversedAxis(i)]);
    }
    for i in 0..nv {
        for j in i + 1..nv {
            out.extend([Reading::ExchangedTorques(i, j), Reading::ExchangedMotions(i, j)]);
        }
    }
    out
}

/// The samples in another reading.
fn read(excerpt: &Excerpt, nv: usize, reading: Reading) -> Excerpt {
    let mut out = excerpt.clone();
    let each = |all: &mut Vec<f64>, change: &dyn Fn(&mut [f64])| all.chunks_exact_mut(nv).for_each(change);
    match reading {
        Reading::NegatedTorque(None) => out.tau.iter_mut().for_each(|x| *x = -*x),
        Reading::NegatedTorque(Some(i)) => each(&mut out.tau, &|row| row[i] = -row[i]),
        Reading::ExchangedTorques(i, j) => {
            each(&mut out.tau, &|row| row.swap(i, j));
            out.keep
                .chunks_exact_mut(nv)
                .for_each(|row| (row[i], row[j]) = (row[i] && row[j], row[i] && row[j]));
        }
        Reading::ReversedAxis(i) => {
            for x in [&mut out.q, &mut out.v, &mut out.a, &mut out.tau] {
                each(x, &|row| row[i] = -row[i]);
            }
        }
        Reading::NegatedMotion(i) => {
            for x in [&mut out.q, &mut out.v, &mut out.a] {
                each(x, &|row| row[i] = -row[i]);
            }
        }
        Reading::ExchangedMotions(i, j) => {
            for x in [&mut out.q, &mut out.v, &mut out.a] {
                each(x, &|row| row.swap(i, j));
            }
        }
        Reading::Gravity(_) => {}
    }
    out
}

/// Relative residual of possible bodies; none where even impossible ones leave more than `most`.
fn residual(
    equations: &Equations<'_>,
    excerpt: &Excerpt,
    wanted: &Consistency<'_>,
    most: f64,
) -> Result<Option<f64>> {
    let mut data = excerpt.measurements(equations)?;
    // Standard errors are not asked for.
    data.blocks = Some(BlockPlan::NONE);
    let summary = Summary::new(equations, &data)?.without_differences();
    let squares = LeastSquares::new(equations, &summary, Weighting::Weighted)?;
    if validate(equations, &summary, squares.values.as_slice())?.relative_rms >= most {
        return Ok(None);
    }
    let fit = ConsistentFit::new(equations, &summary, &squares, wanted)?;
    Ok(Some(validate(equations, &summary, &fit.values)?.relative_rms))
}
