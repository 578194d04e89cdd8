//! Alternative interpretations of a log that the model explains badly: exchanged or negated columns, another direction of gravity,
//! zeros that are off by quarter turns.

use std::f64::consts::FRAC_PI_2;

use nalgebra::Vector3;
use rayon::prelude::{IntoParallelIterator, ParallelIterator};

use crate::Result;
use crate::estimation::consistent::problem::{Consistency, ConsistentFit};
use crate::estimation::diagnosis::excerpt::Excerpt;
use crate::estimation::equations::Equations;
use crate::estimation::identification::residuals::{Validation, validate};
use crate::estimation::joint_model::terms::{JointTerms, Motor};
use crate::estimation::least_squares::fit::{LeastSquares, Weighting, stacked};
use crate::estimation::reduction::blocks::BlockPlan;
use crate::estimation::reduction::summary::Summary;
use crate::identifiability::Measured;
use crate::mechanism::{Body, BodyKind, JointType, Mechanism};

/// Number of samples that is sufficient to compare interpretations.
const SAMPLES: usize = 400;
/// Number of samples of the first comparison, which excludes most interpretations without a fit of consistent bodies.
const FEW_SAMPLES: usize = 150;
/// Ratio of residuals below which an alternative interpretation is reported.
const FALL: f64 = 0.6;
/// Ratio of residuals for opposite gravity if few alternatives are tried. It has the same number of unknowns, and the remaining squared
/// residual is two thirds.
const FALL_OF_GRAVITY: f64 = 0.8;
/// Largest growth of one of the two measures of the residual if the other one decreases.
const GROWN: f64 = 1.05;
/// Largest number of joints whose columns are negated and exchanged: those with the largest relative residuals.
const MOST: usize = 12;

/// Alternative interpretation of a log.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Interpretation {
    /// Negated torque of one joint; of all joints if absent.
    NegatedTorque(Option<usize>),
    /// Exchanged torques of two joints.
    ExchangedTorques(usize, usize),
    /// Negated motion of a joint.
    NegatedMotion(usize),
    /// Reversed axis of a joint: its motion and its torque are negated.
    ReversedAxis(usize),
    /// Exchanged motions of two joints.
    ExchangedMotions(usize, usize),
    /// Position of a revolute joint plus a number of quarter turns.
    TurnedZero(usize, i32),
    /// Different gravity vector.
    Gravity(Vector3<f64>),
}

/// Interpretations to try.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tried {
    /// All interpretations.
    All,
    /// Interpretations that fit so well that the residual does not raise suspicion: opposite gravity and turned zeros.
    Inconspicuous,
}

/// Alternative interpretation with its residual and the residual of the log as given.
pub(crate) struct BetterInterpretation {
    pub interpretation: Interpretation,
    pub residuals: RelativeResiduals,
    pub as_given: RelativeResiduals,
}

/// Relative residuals of a fit.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RelativeResiduals {
    /// Relative residual of all torques together.
    pub all: f64,
    /// Root mean square over the joints of the relative residual, each at most one: joints with small torques have the same weight
    /// as the others.
    pub joints: f64,
}

impl RelativeResiduals {
    fn new(fit: &Validation) -> Self {
        let squares = fit.joints.iter().map(|r| r.relative_rms.min(1.0).powi(2)).sum::<f64>();
        let joints = (squares / fit.joints.len().max(1) as f64).sqrt();
        Self { all: fit.relative_rms, joints }
    }

    /// Returns the ratios to another residual: of all torques and of the joints.
    fn ratios(self, other: Self) -> [f64; 2] {
        let ratio = |own: f64, other: f64| if other > 0.0 { own / other } else { 1.0 };
        [ratio(self.all, other.all), ratio(self.joints, other.joints)]
    }

    /// Returns the smaller of the two ratios to another residual, or one if the other ratio has grown.
    fn ratio(self, other: Self) -> f64 {
        let [all, joints] = self.ratios(other);
        if all.max(joints) < GROWN { all.min(joints) } else { 1.0 }
    }

    /// Returns whether the residual of all torques decreases more than that of the joints, relative to another.
    pub fn falls_more_for_all_torques(self, other: Self) -> bool {
        let [all, joints] = self.ratios(other);
        all <= joints
    }
}

/// Finds the interpretation of the log that the model explains best, if it is much better than the log as given.
pub(crate) fn better_interpretation(
    equations: &Equations<'_>,
    excerpt: &Excerpt,
    wanted: &Consistency<'_>,
    tried: Tried,
) -> Result<Option<BetterInterpretation>> {
    let mechanism = equations.mechanism();
    let rows = equations.channels.len();
    let few = excerpt.thinned((excerpt.len() / FEW_SAMPLES).max(1));
    let excerpt = excerpt.thinned((excerpt.len() / SAMPLES).max(1));
    // Use all standard terms, because the terms were selected with an interpretation that may be wrong.
    let terms = JointTerms { viscous: true, coulomb: true, offset: true, rotor_inertia: true };
    let plain = with_drives_of(equations, mechanism, terms)?;
    let Some(given) = InterpretationFit::new(&plain, &excerpt, wanted, |_| true)? else { return Ok(None) };
    let as_given = given.residuals;
    let screening = Screening::new(&plain, &few, &given.values)?;
    let interpretations = match tried {
        Tried::All => interpretations(equations, &excerpt.keep, &screening.fits),
        Tried::Inconspicuous => {
            let opposite = Some(-mechanism.gravity()).filter(|g| g.norm() > 0.0).map(Interpretation::Gravity);
            opposite.into_iter().chain(turned_zeros(equations)).collect()
        }
    };
    let with_gravity_of = |interpretation| match interpretation {
        Interpretation::Gravity(gravity) => Some(mechanism.clone().with_gravity(gravity)),
        _ => None,
    };
    let promising = interpretations.into_par_iter().map(|interpretation| {
        let turned = with_gravity_of(interpretation);
        let own = turned.as_ref().map(|other| with_drives_of(equations, other, terms)).transpose()?;
        let passes = screening.passes(own.as_ref().unwrap_or(&plain), interpretation, tried)?;
        Ok(passes.then_some(interpretation))
    });
    let promising = promising.collect::<Result<Vec<Option<Interpretation>>>>()?;
    let mut most = 1.0;
    let mut best: Option<BetterInterpretation> = None;
    for interpretation in promising.into_iter().flatten() {
        let by_gravity =
            tried == Tried::Inconspicuous && matches!(interpretation, Interpretation::Gravity(_));
        let fall = if by_gravity { FALL_OF_GRAVITY } else { FALL };
        // Residual relative to the largest one that is reported.
        let ratio = |new: RelativeResiduals| {
            let ratio = if by_gravity { new.ratios(as_given)[0] } else { new.ratio(as_given) };
            ratio / fall
        };
        let is_worth = |new: RelativeResiduals| ratio(new) < most;
        let turned = with_gravity_of(interpretation);
        let own = turned.as_ref().map(|other| with_drives_of(equations, other, terms)).transpose()?;
        let own = own.as_ref().unwrap_or(&plain);
        let fit =
            InterpretationFit::new(own, &interpreted(&excerpt, rows, interpretation), wanted, is_worth)?;
        if let Some(InterpretationFit { residuals, .. }) = fit {
            most = ratio(residuals);
            best = Some(BetterInterpretation { interpretation, residuals, as_given });
        }
    }
    Ok(best)
}

/// First comparison of interpretations, by the weighted residual of unconstrained bodies. The weights are those of the log as given,
/// so that an interpretation that disturbs a well explained joint has a much larger residual.
struct Screening<'a> {
    samples: &'a Excerpt,
    weights: Vec<f64>,
    /// Weighted sums of squared residuals of the log as given, of unconstrained and of consistent bodies.
    unconstrained: f64,
    consistent: f64,
    /// Squared relative residual of each force for consistent bodies.
    fits: Vec<f64>,
}

impl<'a> Screening<'a> {
    /// Computes the residuals of the log as given. `consistent` are the unknowns of consistent bodies.
    fn new(equations: &Equations<'_>, samples: &'a Excerpt, consistent: &[f64]) -> Result<Self> {
        let summary = summary(equations, samples)?;
        let weights = LeastSquares::new(equations, &summary, Weighting::Weighted)?.weights;
        let (mut squares, mut fits) = (0.0, Vec::with_capacity(weights.len()));
        for ((factor, channel), weight) in summary.factors.iter().zip(&equations.channels).zip(&weights) {
            let sums = factor.sums(|k| consistent[channel.unknowns[k]]);
            squares += weight * weight * sums.residual;
            fits.push(if sums.residual > 0.0 { sums.residual / sums.tau } else { 0.0 });
        }
        let unconstrained = weighted_squares(equations, &summary, &weights)?;
        Ok(Self { samples, weights, unconstrained, consistent: squares, fits })
    }

    /// Returns whether an interpretation may be much better than the log as given.
    fn passes(
        &self,
        equations: &Equations<'_>,
        interpretation: Interpretation,
        tried: Tried,
    ) -> Result<bool> {
        let rows = self.weights.len();
        let summary = summary(equations, &interpreted(self.samples, rows, interpretation))?;
        let squares = weighted_squares(equations, &summary, &self.weights)?;
        Ok(match (tried, interpretation) {
            // The residual of one joint must fall, so the mean square of all joints falls by at least half of its share.
            (Tried::Inconspicuous, Interpretation::TurnedZero(..)) => {
                squares <= (1.0 - 0.5 * (1.0 - FALL * FALL) / rows as f64) * self.unconstrained
            }
            // Inconsistent bodies explain a wrong sign, so the residual of unconstrained bodies does not show it.
            _ => squares <= self.consistent.max(self.unconstrained),
        })
    }
}

/// Creates the equations of `mechanism` with the given terms. Drives that turn with two joints in `equations` do so here too.
fn with_drives_of<'m>(
    equations: &Equations<'_>,
    mechanism: &'m Mechanism,
    terms: JointTerms,
) -> Result<Equations<'m>> {
    let drives = equations.motors().iter().map(|motor| Motor { stribeck: None, ..motor.clone() });
    let measured = if equations.has_base_wrench() { Measured::Both } else { Measured::JointTorques };
    let own = Equations::measuring(mechanism, terms, equations.snap(), measured)?;
    Ok(own.with_motors(drives.collect()))
}

/// Returns all interpretations, the simplest first; those of positions for simple trees only. `keep` marks the forces that are used in
/// each sample, `fits` are their squared relative residuals.
fn interpretations(equations: &Equations<'_>, keep: &[bool], fits: &[f64]) -> Vec<Interpretation> {
    let (gravity, rows) = (equations.mechanism().gravity(), equations.channels.len());
    let moves = equations.is_simple_tree();
    let mut joints: Vec<usize> = equations.joint_forces().into_iter().map(|joint| joint.row).collect();
    joints.sort_by(|&i, &j| fits[j].total_cmp(&fits[i]));
    joints.truncate(MOST);
    joints.sort_unstable();
    let mut out = vec![Interpretation::NegatedTorque(None)];
    let size = gravity.norm();
    if size > 0.0 {
        let axes = [Vector3::x(), Vector3::y(), Vector3::z()];
        let directions = axes.into_iter().flat_map(|axis| [axis, -axis]).map(|axis| size * axis);
        out.extend(directions.filter(|g| (g - gravity).norm() > 0.1 * size).map(Interpretation::Gravity));
    }
    for &i in &joints {
        out.push(Interpretation::NegatedTorque(Some(i)));
        if moves {
            out.extend([Interpretation::NegatedMotion(i), Interpretation::ReversedAxis(i)]);
        }
    }
    out.extend(turned_zeros(equations));
    for (k, &i) in joints.iter().enumerate() {
        for &j in &joints[k + 1..] {
            // Exchanged torques leave only the samples at which both are used. If these are few, the residual is small
            // because the rows are missing.
            let count =
                |used: &dyn Fn(&[bool]) -> bool| keep.chunks_exact(rows).filter(|row| used(row)).count();
            let (either, both) = (count(&|row| row[i] || row[j]), count(&|row| row[i] && row[j]));
            if 2 * both > either {
                out.push(Interpretation::ExchangedTorques(i, j));
            }
            if moves {
                out.push(Interpretation::ExchangedMotions(i, j));
            }
        }
    }
    out
}

/// Returns the interpretations with the zero of a revolute joint off by quarter turns, for simple trees.
fn turned_zeros(equations: &Equations<'_>) -> impl Iterator<Item = Interpretation> {
    let mechanism = equations.mechanism();
    let is_revolute = |i: &usize| {
        let is_link = |body: &&Body| body.kind == BodyKind::Link && body.v_range().contains(i);
        mechanism.bodies().iter().filter(is_link).all(|b| matches!(b.joint_type, JointType::Revolute { .. }))
    };
    let count = if equations.is_simple_tree() { mechanism.nv() } else { 0 };
    let revolute: Vec<usize> = (0..count).filter(is_revolute).collect();
    revolute.into_iter().flat_map(|i| [1, -1, 2].map(|quarters| Interpretation::TurnedZero(i, quarters)))
}

/// Returns the samples under another interpretation.
fn interpreted(excerpt: &Excerpt, rows: usize, interpretation: Interpretation) -> Excerpt {
    let mut out = excerpt.clone();
    let each = |all: &mut Vec<f64>, change: &dyn Fn(&mut [f64])| all.chunks_exact_mut(rows).for_each(change);
    match interpretation {
        Interpretation::NegatedTorque(None) => out.tau.iter_mut().for_each(|x| *x = -*x),
        Interpretation::NegatedTorque(Some(i)) => each(&mut out.tau, &|row| row[i] = -row[i]),
        Interpretation::ExchangedTorques(i, j) => {
            each(&mut out.tau, &|row| row.swap(i, j));
            out.keep
                .chunks_exact_mut(rows)
                .for_each(|row| (row[i], row[j]) = (row[i] && row[j], row[i] && row[j]));
        }
        Interpretation::ReversedAxis(i) => {
            for x in [&mut out.q, &mut out.v, &mut out.a, &mut out.tau] {
                each(x, &|row| row[i] = -row[i]);
            }
        }
        Interpretation::NegatedMotion(i) => {
            for x in [&mut out.q, &mut out.v, &mut out.a] {
                each(x, &|row| row[i] = -row[i]);
            }
        }
        Interpretation::ExchangedMotions(i, j) => {
            for x in [&mut out.q, &mut out.v, &mut out.a] {
                each(x, &|row| row.swap(i, j));
            }
        }
        Interpretation::TurnedZero(i, quarters) => {
            each(&mut out.q, &|row| row[i] += f64::from(quarters) * FRAC_PI_2);
        }
        Interpretation::Gravity(_) => {}
    }
    out
}

/// Reduces samples to a summary without what standard errors need.
fn summary(equations: &Equations<'_>, excerpt: &Excerpt) -> Result<Summary> {
    let mut data = excerpt.measurements(equations)?;
    data.blocks = Some(BlockPlan::NONE);
    Ok(Summary::new(equations, &data)?.without_differences())
}

/// Computes the weighted sum of squared residuals of unconstrained bodies.
fn weighted_squares(equations: &Equations<'_>, summary: &Summary, weights: &[f64]) -> Result<f64> {
    let factor = stacked(equations, summary, weights, true)?;
    Ok(factor.at(equations.len(), equations.len()).powi(2))
}

/// Fit of consistent bodies to an interpretation.
struct InterpretationFit {
    residuals: RelativeResiduals,
    values: Vec<f64>,
}

impl InterpretationFit {
    /// Fits consistent bodies; returns `None` if their residuals or those of unconstrained bodies are not worthwhile.
    fn new(
        equations: &Equations<'_>,
        excerpt: &Excerpt,
        wanted: &Consistency<'_>,
        is_worth: impl Fn(RelativeResiduals) -> bool,
    ) -> Result<Option<Self>> {
        let summary = summary(equations, excerpt)?;
        let squares = LeastSquares::new(equations, &summary, Weighting::Weighted)?;
        if !is_worth(RelativeResiduals::new(&validate(equations, &summary, squares.values.as_slice())?)) {
            return Ok(None);
        }
        let fit = ConsistentFit::new(equations, &summary, &squares, wanted)?;
        let residuals = RelativeResiduals::new(&validate(equations, &summary, &fit.values)?);
        Ok(is_worth(residuals).then_some(Self { residuals, values: fit.values }))
    }
}
