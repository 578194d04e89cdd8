//! Other readings of a log that the model explains badly: columns exchanged or negated, another direction of gravity.

use nalgebra::Vector3;

use crate::Result;
use crate::estimation::consistent::problem::{Consistency, ConsistentFit};
use crate::estimation::diagnosis::excerpt::Excerpt;
use crate::estimation::equations::Equations;
use crate::estimation::identification::residuals::{Validation, validate};
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
/// One of the two measures of the residual may grow to this part of itself where the other falls.
const GROWN: f64 = 1.05;
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

/// A reading with what it leaves, and what the log as it is leaves.
pub(crate) struct Better {
    pub reading: Reading,
    pub left: Left,
    pub as_it_is: Left,
}

/// Relative residuals of a fit.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Left {
    /// Of all torques together.
    pub all: f64,
    /// Root mean square over the joints, each at most one: a joint with little torque counts as much as the others.
    pub joints: f64,
}

impl Left {
    fn new(fit: &Validation) -> Self {
        let squares = fit.joints.iter().map(|r| r.relative_rms.min(1.0).powi(2)).sum::<f64>();
        let joints = (squares / fit.joints.len().max(1) as f64).sqrt();
        Self { all: fit.relative_rms, joints }
    }

    /// Parts of another that are left: of all torques and of the joints.
    fn parts(self, other: Self) -> [f64; 2] {
        let part = |own: f64, other: f64| if other > 0.0 { own / other } else { 1.0 };
        [part(self.all, other.all), part(self.joints, other.joints)]
    }

    /// The smaller part of another that is left, unless the other part has grown.
    fn part(self, other: Self) -> f64 {
        let [all, joints] = self.parts(other);
        if all.max(joints) < GROWN { all.min(joints) } else { 1.0 }
    }

    /// Whether the residual of all torques falls further than that of the joints, below another.
    pub fn falls_on_the_whole(self, other: Self) -> bool {
        let [all, joints] = self.parts(other);
        all <= joints
    }
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
    let Some(as_it_is) = residual(&plain, &excerpt, wanted, |_| true)? else { return Ok(None) };
    let part =
        |left: Left| if tried == Tried::Gravity { left.parts(as_it_is)[0] } else { left.part(as_it_is) };
    let mut most = if tried == Tried::Gravity { FALL_OF_GRAVITY } else { FALL };
    let mut best: Option<Better> = None;
    for reading in readings {
        let is_worth = |left: Left| part(left) < most;
        let left = match reading {
            Reading::Gravity(gravity) => {
                let other = mechanism.clone().with_gravity(gravity);
                let other = with_drives_of(equations, &other, terms)?;
                residual(&other, &excerpt, wanted, is_worth)?
            }
            _ => residual(&plain, &read(&excerpt, nv, reading), wanted, is_worth)?,
        };
        if let Some(left) = left {
            most = part(left);
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

/// Residuals of possible bodies; none where they, or even impossible ones, are not worth it.
fn residual(
    equations: &Equations<'_>,
    excerpt: &Excerpt,
    wanted: &Consistency<'_>,
    is_worth: impl Fn(Left) -> bool,
) -> Result<Option<Left>> {
    let mut data = excerpt.measurements(equations)?;
    // Standard errors are not asked for.
    data.blocks = Some(BlockPlan::NONE);
    let summary = Summary::new(equations, &data)?.without_differences();
    let squares = LeastSquares::new(equations, &summary, Weighting::Weighted)?;
    if !is_worth(Left::new(&validate(equations, &summary, squares.values.as_slice())?)) {
        return Ok(None);
    }
    let fit = ConsistentFit::new(equations, &summary, &squares, wanted)?;
    let left = Left::new(&validate(equations, &summary, &fit.values)?);
    Ok(is_worth(left).then_some(left))
}
