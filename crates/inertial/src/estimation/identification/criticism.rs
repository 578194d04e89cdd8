//! Criticism of a result: the verdict on it, with reasons that name the evidence and what mends it.

use schemars::JsonSchema;
use serde::Serialize;

use crate::Result;
use crate::consistency::significant;
use crate::estimation::equations::Equations;
use crate::estimation::identification::residuals::{Residual, Validation, validate};
use crate::estimation::least_squares::fit::{LeastSquares, stacked};
use crate::estimation::least_squares::jackknife::Contrast;
use crate::estimation::least_squares::solution::Solution;
use crate::estimation::reduction::summary::Summary;
use crate::mechanism::{BodyKind, Mechanism};

/// Relative residuals of all torques from which on a result is doubtful, and of no use. A model of rigid bodies with friction
/// leaves 2 to 6 % of the torques of real arms.
const DOUBTFUL: f64 = 0.12;
const USELESS: f64 = 0.3;
/// Largest relative residual of one joint.
const JOINT: f64 = 0.5;
/// Joints with less than this share of the largest torque may leave more: theirs is friction and noise.
const IDLE: f64 = 0.05;
/// Largest relative residual of such a joint: noise alone leaves no more than all of its torque.
const NOISE_ALONE: f64 = 1.05;
/// Largest residual of possible bodies, relative to that of unconstrained ones.
const CONSISTENT: f64 = 1.5;
/// Smallest relative residual to which that comparison applies.
const SMALL: f64 = 0.05;
/// Largest difference of the halves of a log, relative to that of other halves taken from everywhere. Clean logs of four arms
/// show at most 1.7.
const HALVES: f64 = 2.2;
/// Standard deviations of the logarithm of that ratio that chance explains: once in a thousand logs.
const CHANCE: f64 = 3.2;
/// Smallest relative residual whose halves are compared, and in which drives that turn with two joints are looked for: less is left by
/// filters and rounding on simulated logs without noise.
pub(crate) const NEGLIGIBLE: f64 = 1e-4;
/// Largest ratio of masses to those of the model, or of those to them: thousands are a wrong unit of the torques.
const MASSES: f64 = 20.0;

/// Whether a result can be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
pub enum Verdict {
    /// Nothing speaks against it.
    #[serde(rename = "good")]
    Good,
    /// Something is wrong with the data or the model.
    #[serde(rename = "doubtful")]
    Doubtful,
    /// The model does not explain the data.
    #[serde(rename = "do not use")]
    DoNotUse,
}

impl Verdict {
    /// Word of the verdict, as in results.
    pub fn word(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Doubtful => "doubtful",
            Self::DoNotUse => "do not use",
        }
    }
}

/// Kind of a reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum ReasonCode {
    /// The torque or the motion of a joint has the wrong sign.
    Sign,
    /// Columns of two joints are exchanged.
    Order,
    /// Gravity has another direction.
    Gravity,
    /// Torques come later than the motion.
    Lag,
    /// The zero of a joint is wrong.
    Zero,
    /// A length of the model is wrong.
    Length,
    /// The torque of a joint has a wrong scale.
    Gain,
    /// The residual of all torques is large.
    Residual,
    /// The residual of some joints is large.
    JointResidual,
    /// The friction of some joints would be negative.
    Friction,
    /// A joint does not move, and its torque is not explained.
    Motion,
    /// A few samples hold most of the squared residual of a joint.
    Outliers,
    /// Possible bodies explain the torques much worse than impossible ones.
    Consistency,
    /// The halves of the log differ.
    Drift,
    /// Bodies are far lighter or heavier than in the model.
    Mass,
}

/// Reason of a verdict.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct Reason {
    /// Kind.
    pub code: ReasonCode,
    /// Verdict that it leads to.
    pub verdict: Verdict,
    /// Evidence and what mends it, for people.
    pub message: String,
}

/// A verdict and its reasons.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Criticism {
    pub verdict: Verdict,
    pub reasons: Vec<Reason>,
}

impl Criticism {
    /// Criticises a fit of unconstrained or, where `consistent`, of possible bodies.
    pub fn new(
        equations: &Equations<'_>,
        summary: &Summary,
        squares: &LeastSquares,
        fit: &Validation,
        consistent: bool,
    ) -> Result<Self> {
        let mut out = Self { verdict: Verdict::Good, reasons: Vec::new() };
        let all = fit.relative_rms;
        out.check_residuals(all, &fit.joints);
        if consistent {
            out.check_consistency(all, validate(equations, summary, squares.values.as_slice())?.relative_rms);
        }
        if all > NEGLIGIBLE {
            out.check_halves(equations, summary, squares)?;
        }
        Ok(out)
    }

    fn add(&mut self, code: ReasonCode, verdict: Verdict, message: String) {
        self.verdict = self.verdict.max(verdict);
        self.reasons.push(Reason { code, verdict, message });
    }

    fn check_residuals(&mut self, all: f64, joints: &[Residual]) {
        if all > DOUBTFUL {
            let verdict = if all > USELESS { Verdict::DoNotUse } else { Verdict::Doubtful };
            self.add(
                ReasonCode::Residual,
                verdict,
                format!(
                    "residual: {} of all torques is not explained; check units, signs, zeros and order of the joints, gravity and \
                     friction",
                    percent(all)
                ),
            );
        }
        let largest = largest_force(joints);
        let (loud, quiet): (Vec<&Residual>, Vec<&Residual>) =
            joints.iter().partition(|r| r.force() >= IDLE * largest);
        let names = |joints: Vec<&Residual>, most: f64| -> Vec<String> {
            let bad = joints.into_iter().filter(|r| r.relative_rms.is_finite() && r.relative_rms > most);
            bad.map(|r| r.joint.clone()).collect()
        };
        let message = |bad: &[String], share: &str, verb: &str| match bad {
            [] => None,
            [one] => Some(format!(
                "residual: {share} of the torque of {one} {verb}; check the sign, scale and axis of that joint, and its \
                 friction"
            )),
            several => Some(format!(
                "residual: {share} of the torques of {} {verb}; check that their columns are in the order of the joints \
                 of the model",
                several.join(", ")
            )),
        };
        if let Some(message) = message(&names(loud, JOINT), "more than half", "is not explained") {
            self.add(ReasonCode::JointResidual, Verdict::DoNotUse, message);
        }
        if let Some(message) = message(&names(quiet, NOISE_ALONE), "none", "is explained") {
            self.add(ReasonCode::JointResidual, Verdict::Doubtful, message);
        }
    }

    /// Compares the masses of the bodies, all together and one by one, with those of the model, where it has any.
    pub fn check_mass(&mut self, given: &Mechanism, estimated: &Mechanism) {
        let masses = given.bodies().iter().zip(estimated.bodies());
        let masses: Vec<[f64; 2]> = masses
            .filter(|(b, _)| b.kind == BodyKind::Link && b.inertia.mass > 0.0)
            .map(|(model, found)| [model.inertia.mass, found.inertia.mass])
            .collect();
        let [model, found] = [0, 1].map(|k| masses.iter().map(|m| m[k]).sum::<f64>());
        let differs = |[model, found]: [f64; 2]| model > MASSES * found || found > MASSES * model;
        let most = 2 * masses.iter().filter(|m| differs(**m)).count() > masses.len();
        if !masses.is_empty() && (most || differs([model, found])) {
            self.add(
                ReasonCode::Mass,
                Verdict::Doubtful,
                format!(
                    "mass: the bodies have {} kg together, those of the model {} kg; check the unit of the torques and the masses of \
                     the model",
                    significant(found, 2),
                    significant(model, 2)
                ),
            );
        }
    }

    fn check_consistency(&mut self, all: f64, free: f64) {
        if all > SMALL && all > CONSISTENT * free {
            self.add(
                ReasonCode::Consistency,
                Verdict::Doubtful,
                format!(
                    "consistency: physically possible bodies leave a residual of {}, impossible ones {}; a sign, a zero, a length \
                     or the gravity of the model is wrong, or a joint term is missing",
                    percent(all),
                    percent(free)
                ),
            );
        }
    }

    /// Compares the halves of the log with halves that are taken from everywhere.
    fn check_halves(
        &mut self,
        equations: &Equations<'_>,
        summary: &Summary,
        squares: &LeastSquares,
    ) -> Result<()> {
        let solution =
            Solution::of_factor(&stacked(equations, summary, &squares.weights, true)?.matrix(), None)?;
        let scores = summary.scores(equations, &squares.weights, &solution.values);
        let Some(contrast) = Contrast::new(&scores, &solution.root) else { return Ok(()) };
        let blocks = scores.len();
        let first = contrast.between(|k| 2 * k < blocks);
        let others = [1, 2, 4].map(|length| contrast.between(move |k| (k / length) % 2 == 0));
        let ([Some(a), Some(b), Some(c)], Some(first)) = (others, first) else { return Ok(()) };
        let ratio = 3.0 * first / (a + b + c);
        // The sums have one degree of freedom for each unknown, so that of few unknowns scatters.
        let scatter = (8.0 / (3.0 * solution.root.ncols() as f64)).sqrt();
        if ratio > HALVES.max((CHANCE * scatter).exp()) {
            self.add(
                ReasonCode::Drift,
                Verdict::Doubtful,
                format!(
                    "drift: the first half of the log and the second differ {ratio:.1} times as much as other halves of it; check \
                     whether the load, the friction (temperature) or a sensor changed, and identify from the parts separately"
                ),
            );
        }
        Ok(())
    }
}

/// Whether a residual is so large that the log may have to be read in another way.
pub(crate) fn is_suspicious(all: f64, joints: &[Residual]) -> bool {
    let largest = largest_force(joints);
    let most = |r: &Residual| if r.force() >= IDLE * largest { 0.5 * JOINT } else { JOINT };
    all > DOUBTFUL || joints.iter().any(|r| r.relative_rms > most(r))
}

fn percent(x: f64) -> String {
    format!("{:.0} %", 100.0 * x)
}

impl Residual {
    /// Root mean square of the force.
    fn force(&self) -> f64 {
        if self.relative_rms > 0.0 { self.rms / self.relative_rms } else { 0.0 }
    }
}

fn largest_force(joints: &[Residual]) -> f64 {
    joints.iter().map(Residual::force).fold(0.0, f64::max)
}
