//! Quality assessment of a result: a verdict with reasons, each with its evidence and a remedy.

use schemars::JsonSchema;
use serde::Serialize;

use crate::Result;
use crate::consistency::significant;
use crate::estimation::equations::Equations;
use crate::estimation::identification::residuals::{Residual, Validation, validate};
use crate::estimation::least_squares::fit::{LeastSquares, stacked};
use crate::estimation::least_squares::jackknife::{Contrast, Difference};
use crate::estimation::least_squares::solution::Solution;
use crate::estimation::reduction::summary::Summary;
use crate::estimation::warning::Warning;

/// Relative residuals of all torques from which a result is doubtful, and from which it is useless. Rigid-body models with
/// friction leave 2 to 6 % of the torques of real arms unexplained.
const DOUBTFUL: f64 = 0.12;
const USELESS: f64 = 0.3;

/// Largest residual on validation data, relative to that of the fit.
const MOST_GROWTH: f64 = 3.0;
/// Largest relative residual of one joint.
const JOINT: f64 = 0.5;
/// Share of the largest torque below which a joint may have a larger relative residual, because its torque is mainly friction and
/// noise.
const IDLE: f64 = 0.05;
/// Largest relative residual of such a joint. Pure noise yields a relative residual of at most about one.
const NOISE_ALONE: f64 = 1.05;
/// Largest residual of consistent bodies, relative to that of unconstrained ones.
const CONSISTENT: f64 = 1.5;
/// Smallest relative residual for which that comparison is made.
const SMALL: f64 = 0.05;
/// Largest difference between the halves of a log, relative to that between interleaved halves. Clean logs of four arms have at
/// most 1.7.
const HALVES: f64 = 2.2;
/// Number of standard deviations of the logarithm of that ratio that count as chance: exceeded in one of a thousand logs.
const CHANCE: f64 = 3.2;
/// Smallest number of unknowns that both parts of a log must determine to be compared.
const LEAST_FREEDOM: f64 = 1.0;
/// Smallest relative residual for which the halves are compared and drives that turn with two joints are searched for. Filters and
/// rounding leave smaller residuals on noise-free simulated logs.
pub(crate) const NEGLIGIBLE: f64 = 1e-4;
/// Largest factor between the torques due to the identified bodies and those due to the bodies of the model, in either direction. Wrong
/// units and gear ratios are factors of 10 and more.
const SCALE: f64 = 6.0;

/// Uncertainty of a payload due to errors of the model of the robot, relative to its torques or its mass, from which it is doubtful, and
/// useless.
const MODEL_DOUBTFUL: f64 = 0.1;
const MODEL_USELESS: f64 = 0.5;

/// Largest duality gap of consistent bodies. The cost is half the sum of squared residuals in units of the noise: a gap of one
/// half moves the estimate by at most one standard error.
pub(crate) const GAP: f64 = 0.5;

/// Usability of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
pub enum Verdict {
    /// Result without objections.
    #[serde(rename = "good")]
    Good,
    /// Result of data or a model with an error.
    #[serde(rename = "doubtful")]
    Doubtful,
    /// Result of a model that does not explain the data.
    #[serde(rename = "do not use")]
    DoNotUse,
}

impl Verdict {
    /// Returns the word for the verdict, as used in results.
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
    /// Wrong sign of the torque or the motion of a joint.
    Sign,
    /// Exchanged columns of two joints.
    Order,
    /// Wrong direction of gravity.
    Gravity,
    /// Torques that lag behind the motion.
    Lag,
    /// Wrong zero position of a joint.
    Zero,
    /// Wrong length in the model.
    Length,
    /// Wrong scale of the torque of a joint.
    Gain,
    /// Torque of a joint that is proportional to its position.
    Spring,
    /// Large residual of all torques.
    Residual,
    /// Large residual of some joints.
    JointResidual,
    /// Negative friction of some joints.
    Friction,
    /// Joint that does not move and whose torque is not explained.
    Motion,
    /// Few samples that contain most of the squared residual of a joint.
    Outliers,
    /// Fit of consistent bodies that is much worse than that of unconstrained ones.
    Consistency,
    /// Difference between the halves of the log.
    Drift,
    /// Masses or torques of bodies that are far smaller or larger than in the model.
    Mass,
    /// Search for consistent bodies that ended far from the best fit.
    NotConverged,
    /// Residual on validation data that is much larger than that of the fit.
    Validation,
    /// Errors of the model of the robot that make its payload uncertain.
    Model,
}

/// Reason for a verdict.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct Reason {
    /// Kind of the reason.
    pub code: ReasonCode,
    /// Verdict that the reason leads to.
    pub verdict: Verdict,
    /// Evidence and remedy, for the user.
    pub message: String,
}

impl ReasonCode {
    /// Returns the word of the code, as in the JSON.
    pub fn word(self) -> &'static str {
        match self {
            Self::Sign => "sign",
            Self::Order => "order",
            Self::Gravity => "gravity",
            Self::Lag => "lag",
            Self::Zero => "zero",
            Self::Length => "length",
            Self::Gain => "gain",
            Self::Spring => "spring",
            Self::Residual => "residual",
            Self::JointResidual => "joint-residual",
            Self::Friction => "friction",
            Self::Motion => "motion",
            Self::Outliers => "outliers",
            Self::Consistency => "consistency",
            Self::Drift => "drift",
            Self::Mass => "mass",
            Self::NotConverged => "not-converged",
            Self::Validation => "validation",
            Self::Model => "model",
        }
    }
}

impl Reason {
    /// Creates a reason; its message begins with the word of the code.
    pub(crate) fn new(code: ReasonCode, verdict: Verdict, text: &str) -> Self {
        Self { code, verdict, message: format!("{}: {text}", code.word()) }
    }
}

/// Verdict with its reasons.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Criticism {
    pub verdict: Verdict,
    pub reasons: Vec<Reason>,
}

impl Criticism {
    /// Assesses a fit of unconstrained bodies or, if `consistent`, of physically consistent bodies.
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

    /// Assesses the residuals of a payload, given those of unconstrained parameters if its body is consistent.
    pub fn of_payload(fit: &Validation, free: Option<&Validation>) -> Self {
        let mut out = Self { verdict: Verdict::Good, reasons: Vec::new() };
        out.check_residuals(fit.relative_rms, &fit.joints);
        if let Some(free) = free {
            out.check_consistency(fit.relative_rms, free.relative_rms);
        }
        out
    }

    fn add(&mut self, code: ReasonCode, verdict: Verdict, message: impl AsRef<str>) {
        self.verdict = self.verdict.max(verdict);
        self.reasons.push(Reason::new(code, verdict, message.as_ref()));
    }

    fn check_residuals(&mut self, all: f64, joints: &[Residual]) {
        if all > DOUBTFUL {
            let verdict = if all > USELESS { Verdict::DoNotUse } else { Verdict::Doubtful };
            self.add(
                ReasonCode::Residual,
                verdict,
                format!(
                    "{} of all torques is not explained; check units, signs, zeros and order of the joints, gravity and \
                     friction",
                    percent(all)
                ),
            );
        }
        let largest = largest_force(joints);
        let (large, small): (Vec<&Residual>, Vec<&Residual>) =
            joints.iter().partition(|r| r.force() >= IDLE * largest);
        let names = |joints: Vec<&Residual>, most: f64| -> Vec<String> {
            let bad = joints.into_iter().filter(|r| r.relative_rms.is_finite() && r.relative_rms > most);
            bad.map(|r| r.joint.clone()).collect()
        };
        let message = |bad: &[String], share: &str, verb: &str| match bad {
            [] => None,
            [one] => Some(format!(
                "{share} of the torque of {one} {verb}; check the sign, scale and axis of that joint, and its \
                 friction"
            )),
            several => Some(format!(
                "{share} of the torques of {} {verb}; check that their columns are in the order of the joints \
                 of the model",
                several.join(", ")
            )),
        };
        if let Some(message) = message(&names(large, JOINT), "more than half", "is not explained") {
            self.add(ReasonCode::JointResidual, Verdict::DoNotUse, message);
        }
        if let Some(message) = message(&names(small, NOISE_ALONE), "none", "is explained") {
            self.add(ReasonCode::JointResidual, Verdict::Doubtful, message);
        }
    }

    /// Adds a reason if the model of a robot, with link parameters wrong by `relative`, makes a large `share` of its payload uncertain.
    pub fn check_model(&mut self, relative: f64, share: f64) {
        if share > MODEL_DOUBTFUL {
            let verdict = if share > MODEL_USELESS { Verdict::DoNotUse } else { Verdict::Doubtful };
            let message = format!(
                "the link parameters of the model are wrong by about {}, which makes the payload uncertain by {}; identify the robot \
                 first, or give a log without the payload (unloaded)",
                percent(relative),
                percent(share)
            );
            self.add(ReasonCode::Model, verdict, message);
        }
    }

    /// Adds a reason if validation data are predicted much worse than the data of the fit.
    pub fn check_validation(&mut self, fit: f64, validation: f64) {
        if validation > DOUBTFUL && validation > MOST_GROWTH * fit {
            let verdict = if validation > USELESS { Verdict::DoNotUse } else { Verdict::Doubtful };
            let message = format!(
                "{} of the torques of the validation data is not explained, {} of the fit; check that both were \
                 recorded with the same robot, load and columns",
                percent(validation),
                percent(fit)
            );
            self.add(ReasonCode::Validation, verdict, message);
        }
    }

    /// Adds a reason for links heavier than the robot can be.
    pub fn check_implausible(&mut self, warning: &Warning) {
        let Warning::Implausible { links, robot } = warning else { return };
        let heavy: Vec<String> =
            links.iter().map(|(name, mass)| format!("{name} ({} kg)", significant(*mass, 2))).collect();
        self.add(
            ReasonCode::Mass,
            Verdict::Doubtful,
            format!(
                "{} heavier than three times the whole robot (about {} kg); check the gravity, the lengths and the \
                 masses of the model, and the unit of the torques",
                heavy.join(", "),
                significant(*robot, 2)
            ),
        );
    }

    /// Compares the torques due to the bodies with those due to the bodies of the model, if these have masses.
    pub fn check_scale(
        &mut self,
        equations: &Equations<'_>,
        summary: &Summary,
        parameters: &[f64],
    ) -> Result<()> {
        let base = |parameters: &[f64]| equations.regrouping.regroup(parameters);
        let (model, estimated) = (base(&equations.mechanism().parameters())?, base(parameters)?);
        let [mut given, mut found] = [0.0; 2];
        for (channel, factor) in equations.channels.iter().zip(&summary.factors) {
            let n = factor.unknowns();
            let of_bodies = |values: &[f64]| {
                let own = |&k: &usize| values.get(k).copied().unwrap_or(0.0);
                let values: Vec<f64> = channel.unknowns.iter().map(own).collect();
                let row = |i: usize| (i..n).map(|j| factor.triangle.at(i, j) * values[j]).sum::<f64>();
                (0..n).map(|i| row(i).powi(2)).sum::<f64>()
            };
            given += of_bodies(&model);
            found += of_bodies(&estimated);
        }
        let ratio = (found / given).sqrt();
        if given > 0.0 && !(SCALE.recip()..SCALE).contains(&ratio) {
            self.add(
                ReasonCode::Mass,
                Verdict::Doubtful,
                format!(
                    "the torques due to the identified bodies are {} times those of the model; check the unit of the torques and \
                     the masses of the model",
                    significant(ratio, 2)
                ),
            );
        }
        Ok(())
    }

    /// Adds that the search for consistent bodies was stopped with a duality gap above [`GAP`].
    pub fn add_gap(&mut self, gap: f64) {
        let distance = if gap.is_finite() {
            let [gap, errors] = [gap, (2.0 * gap).sqrt()].map(|x| significant(x, 2));
            format!("with a duality gap of {gap}; the best fit may be {errors} standard errors away")
        } else {
            "without a bound on its distance from the best fit".to_owned()
        };
        let message = format!("the search for consistent bodies was stopped {distance}; let it run longer");
        self.add(ReasonCode::NotConverged, Verdict::Doubtful, message);
    }

    fn check_consistency(&mut self, all: f64, free: f64) {
        if all > SMALL && all > CONSISTENT * free {
            self.add(
                ReasonCode::Consistency,
                Verdict::Doubtful,
                format!(
                    "the residual of physically consistent bodies is {}, of unconstrained ones \
                     {}; a sign, a zero, a length or the gravity of the model is wrong, or a joint term is \
                     missing",
                    percent(all),
                    percent(free)
                ),
            );
        }
    }

    /// Compares the two halves of the log with interleaved halves.
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
        let parts = [first, a, b, c];
        if parts.iter().any(|part| part.freedom < LEAST_FREEDOM) {
            return Ok(());
        }
        let ratio_of = |of: &dyn Fn(&Difference) -> f64| {
            let [first, a, b, c] = [0, 1, 2, 3].map(|k| of(&parts[k]));
            3.0 * first / (a + b + c)
        };
        // Halves of a repeated motion determine more unknowns than interleaved parts, which correlated noise affects less.
        let ratio = ratio_of(&|part| part.decrease).min(ratio_of(&|part| part.decrease / part.freedom));
        let freedom = parts.iter().map(|part| part.freedom).fold(f64::INFINITY, f64::min);
        // Sums with few degrees of freedom scatter more.
        let scatter = (8.0 / (3.0 * freedom)).sqrt();
        if ratio > HALVES.max((CHANCE * scatter).exp()) {
            self.add(
                ReasonCode::Drift,
                Verdict::Doubtful,
                format!(
                    "the first and second half of the log differ {ratio:.1} times as much as \
                     interleaved halves; check whether the load, the friction (temperature) or a sensor \
                     changed, and identify from the parts separately"
                ),
            );
        }
        Ok(())
    }
}

/// Returns whether a residual is large enough to test other interpretations of the log.
pub(crate) fn is_suspicious(all: f64, joints: &[Residual]) -> bool {
    let largest = largest_force(joints);
    let most = |r: &Residual| if r.force() >= IDLE * largest { 0.5 * JOINT } else { JOINT };
    all > DOUBTFUL || joints.iter().any(|r| r.relative_rms > most(r))
}

fn percent(x: f64) -> String {
    format!("{:.0} %", 100.0 * x)
}

impl Residual {
    /// Returns whether the force is small compared with those of the other joints.
    pub(crate) fn is_idle(&self, joints: &[Self]) -> bool {
        self.force() < IDLE * largest_force(joints)
    }

    /// Returns the root mean square of the force.
    fn force(&self) -> f64 {
        if self.relative_rms > 0.0 { self.rms / self.relative_rms } else { 0.0 }
    }
}

fn largest_force(joints: &[Residual]) -> f64 {
    joints.iter().map(Residual::force).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::{Reason, ReasonCode, Verdict};

    /// Messages begin with the code of the JSON.
    #[test]
    fn words_of_reasons_are_their_codes() {
        use ReasonCode as C;
        for code in [
            C::Sign,
            C::Order,
            C::Gravity,
            C::Lag,
            C::Zero,
            C::Length,
            C::Gain,
            C::Spring,
            C::Residual,
            C::JointResidual,
            C::Friction,
            C::Motion,
            C::Outliers,
            C::Consistency,
            C::Drift,
            C::Mass,
            C::NotConverged,
            C::Validation,
            C::Model,
        ] {
            let reason = Reason::new(code, Verdict::Doubtful, "text");
            let word = serde_json::to_value(code).unwrap();
            assert_eq!(reason.message, format!("{}: text", word.as_str().unwrap()));
        }
    }
}
