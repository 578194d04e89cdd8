//! Reasons that a diagnosis adds to a result.

use std::f64::consts::FRAC_PI_2;
use std::ops::RangeInclusive;

use crate::Result;
use crate::consistency::significant;
use crate::estimation::diagnosis::alternatives::{
    BetterInterpretation, Interpretation, Tried, better_interpretation,
};
use crate::estimation::diagnosis::deviation::{Deviation, DeviationKind, OtherLength};
use crate::estimation::diagnosis::deviations::{Estimate, deviations};
use crate::estimation::diagnosis::excerpt::Excerpt;
use crate::estimation::equations::Equations;
use crate::estimation::identification::criticism::{ReasonCode, Verdict, is_suspicious};
use crate::estimation::identification::identify::IdentifyOptions;
use crate::estimation::identification::residuals::Residual;
use crate::estimation::identification::result::{Identification, TorqueLag};
use crate::estimation::warning::Warning;

/// Smallest squared ratio of a deviation to its standard error that is significant.
const EVIDENCE: f64 = 25.0;
/// Smallest share of the squared residual that a deviation must explain. On clean logs of four arms, no deviation in the reported
/// range explains more than 0.03.
const SHARE: f64 = 0.05;
/// Squared ratio of a deviation to its standard error from which a smaller share is sufficient: other bodies explain most of a
/// wrong torque constant. Halves and thirds of clean logs of three arms show at most 50.
const EVIDENCE_ALONE: f64 = 100.0;
const SMALL_SHARE: f64 = 0.005;
/// Smallest wrong torque constant for which a smaller share is sufficient as well, and that share. Friction that depends on the load
/// looks like a gain of up to 12 % on clean logs of four arms.
const LARGE_GAIN: f64 = 0.15;
const SHARE_OF_GAIN: f64 = 0.02;
/// Smallest error of a torque constant that is reported.
const LEAST_GAIN: f64 = -0.6;
/// Smallest share of the squared residual of its joint that a spring must explain (clean logs of four arms show at most 0.14), and
/// the ratio by which it must exceed every other deviation.
const SHARE_OF_SPRING: f64 = 0.5;
const SPRING_OVER_OTHERS: f64 = 1.5;
/// Squared ratio of a spring's stiffness to its standard error from which a smaller share is sufficient: masses and offsets explain
/// most of the torque of a spring over a small range.
const EVIDENCE_OF_SPRING: f64 = 400.0;
/// Ratio by which the lag of one torque must exceed that of all torques in the share that it explains.
const JOINT_OVER_ALL: f64 = 1.5;
/// Share that a lag must explain to be corrected. The correction is harmless if noise hides most of the effect.
const SHARE_OF_LAG: f64 = 0.01;
/// Squared ratio of the remaining lag to its standard error, from which a corrected lag is corrected once more.
const EVIDENCE_OF_REST: f64 = 9.0;
/// Squared ratio of a deviation to its standard error that is needed in the low band too.
const EVIDENCE_IN_BOTH: f64 = 9.0;
/// Smallest number of samples of a diagnosis.
const FEWEST: usize = 64;
/// Smallest number of reversals of the joint that reverses most often. The errors of deviations come from sixteen blocks of the log,
/// which are not independent if the motion hardly changes from block to block.
const FEWEST_REVERSALS: usize = 6;
/// Smallest lag (s) that is corrected. Smaller lags are the time between the readings of two sensors.
const LEAST_LAG: f64 = 5e-4;
/// Ratio of the largest speed of a joint to that of the fastest joint, below which the joint counts as at rest.
const STILL: f64 = 1e-3;
/// Relative residual of a joint at rest from which it is a reason.
const UNEXPLAINED: f64 = 0.25;
/// Share of the samples with the largest residuals, and the share of the squared residual of a joint from which they count as
/// outliers. For Gaussian noise the latter would be 0.44.
const FARTHEST: f64 = 0.1;
const OF_OUTLIERS: f64 = 0.9;
/// Relative residual of a joint from which its outliers are a reason.
const LARGE: f64 = 0.1;

impl DeviationKind {
    /// Returns the range of values that are reported; larger ones exceed the validity of the linearization at the estimate.
    fn range(self) -> RangeInclusive<f64> {
        match self {
            Self::Lag | Self::JointLag => 0.005..=0.5,
            Self::Tilt | Self::Zero => 0.035..=0.8,
            Self::Length => 0.02..=0.5,
            // Larger errors appear in the residual; friction that changes can look like a gain of several hundred percent.
            Self::Gain => 0.1..=1.2,
            Self::Spring => f64::MIN_POSITIVE..=f64::INFINITY,
        }
    }
}

/// Diagnoses a result of these equations (the [chosen](Equations::chosen) ones) from samples of its logs: adds deviations, and
/// reasons where the verdict needs them. For mechanisms with loops, a floating base, ball joints or a base wrench, only errors of the
/// torques are diagnosed, and a warning says so.
pub fn diagnose(
    equations: &Equations<'_>,
    result: &mut Identification,
    excerpt: &Excerpt,
    lengths: Vec<OtherLength>,
    options: &IdentifyOptions,
) -> Result<()> {
    let mechanism = equations.mechanism();
    if excerpt.len() < FEWEST {
        return Ok(());
    }
    if !equations.is_simple_tree() {
        result.warnings.push(Warning::OnlyTorquesDiagnosed);
    }
    let names = equations.force_names();
    let prior = options.prior(mechanism)?;
    // Bodies with reversed centres of mass explain much of a reversed gravity: it is tested for every log.
    let suspicious = is_suspicious(result.fit_relative_rms, &result.fit)
        || result.reasons.iter().any(|r| r.code == ReasonCode::Friction);
    let is_short = excerpt.reversals().is_some_and(|most| most < FEWEST_REVERSALS);
    if is_short {
        result.warnings.push(Warning::NotDiagnosed { needed: FEWEST_REVERSALS });
        if !suspicious {
            return Ok(());
        }
    }
    let tried = if suspicious { Tried::All } else { Tried::Inconspicuous };
    let noise = noise(result, &names);
    let wanted = options.consistency(&prior);
    let estimate = Estimate { values: &result.values, parameters: &result.parameters, noise: &noise };
    let (better, found) = rayon::join(
        || better_interpretation(equations, excerpt, &wanted, tried),
        || in_both_bands(equations, excerpt, estimate, lengths),
    );
    let (mut better, found) = (better?, found?);
    let deviation = named(&found, names.len()).filter(|_| !is_short);
    // Exchanged torques of equal legs can look like a wrong gain.
    let is_of_torque = |d: &Deviation| matches!(d.kind, DeviationKind::Gain | DeviationKind::Spring);
    if better.is_none() && tried == Tried::Inconspicuous && deviation.is_some_and(is_of_torque) {
        better = better_interpretation(equations, excerpt, &wanted, Tried::All)?;
    }
    if let Some(better) = better {
        let (code, what) = described(better.interpretation, &names);
        let percent = |x: f64| format!("{:.0} %", 100.0 * x);
        let BetterInterpretation { residuals, as_given, .. } = better;
        let (measure, new, given) = if residuals.falls_more_for_all_torques(as_given) {
            ("the residual is", residuals.all, as_given.all)
        } else {
            ("the mean residual of the joints is", residuals.joints, as_given.joints)
        };
        let message = format!("{what} {measure} {} instead of {}", percent(new), percent(given));
        result.add_reason(code, Verdict::DoNotUse, &message);
    } else {
        check_still_joints(equations, result, excerpt, &names);
        check_outliers(equations, result, excerpt, &names)?;
        if let Some(deviation) = deviation {
            let (code, message) = reason(deviation);
            result.add_reason(code, Verdict::Doubtful, &message);
        }
    }
    if !is_short {
        result.deviations = found;
    }
    Ok(())
}

/// Diagnoses a payload from samples of the log with the payload: adds deviations, and a reason where the verdict needs one.
pub fn diagnose_payload(
    equations: &Equations<'_>,
    result: &mut Identification,
    excerpt: &Excerpt,
) -> Result<()> {
    if !equations.is_simple_tree() || excerpt.len() < FEWEST {
        return Ok(());
    }
    if excerpt.reversals().is_some_and(|most| most < FEWEST_REVERSALS) {
        result.warnings.push(Warning::NotDiagnosed { needed: FEWEST_REVERSALS });
        return Ok(());
    }
    let names = equations.force_names();
    let given = equations.mechanism().parameters();
    let parameters = equations.regrouping.expand(&result.values[..equations.rank()], &given)?;
    let noise = noise(result, &names);
    let estimate = Estimate { values: &result.values, parameters: &parameters, noise: &noise };
    let found = in_both_bands(equations, excerpt, estimate, Vec::new())?;
    result.set_deviations(found, names.len());
    Ok(())
}

/// Returns the standard deviation of the residuals of each force.
fn noise(result: &Identification, names: &[String]) -> Vec<f64> {
    let of = |name: &String| result.fit.iter().find(|r| r.joint == *name).map_or(0.0, |r| r.rms);
    names.iter().map(of).collect()
}

/// Computes the deviations of an estimate from the whole band and from the low band.
fn in_both_bands(
    equations: &Equations<'_>,
    excerpt: &Excerpt,
    estimate: Estimate<'_>,
    lengths: Vec<OtherLength>,
) -> Result<Vec<Deviation>> {
    let low = excerpt.low_band().filter(|low| low.len() >= FEWEST);
    let in_low_band = low.map(|low| deviations(equations, low, estimate, lengths.clone()));
    let found = deviations(equations, excerpt, estimate, lengths)?;
    match in_low_band {
        Some(low) => Ok(with_low_band(found, &low?)),
        None => Ok(found),
    }
}

/// Returns the deviation to report: the one that explains most. A spring, which can imitate other errors, must explain much more.
///
/// The residual of each of the `joints` counts equally, so a joint's own share is larger by this factor.
fn named(found: &[Deviation], joints: usize) -> Option<&Deviation> {
    let most = |springs: bool| {
        let candidates = found.iter().filter(|d| d.counts() && (d.kind == DeviationKind::Spring) == springs);
        candidates.max_by(|a, b| a.explains.total_cmp(&b.explains))
    };
    // The lag of all torques is also a lag of each.
    let of_all = found.iter().find(|d| d.kind == DeviationKind::Lag && d.counts());
    let other = most(false).map(|other| match of_all {
        Some(lag) if other.kind == DeviationKind::JointLag && !other.outweighs(lag) => lag,
        _ => other,
    });
    let spring = most(true).filter(|spring| {
        (spring.explains * joints as f64 >= SHARE_OF_SPRING || spring.evidence() >= EVIDENCE_OF_SPRING)
            && other.is_none_or(|other| spring.explains > SPRING_OVER_OTHERS * other.explains)
    });
    spring.or(other)
}

/// Compares deviations with those of the low band.
///
/// A lag is replaced by that of the low band if it is clearer there. Noise, stick-slip and vibrations above the band of the motion
/// make a lag appear too small and its error too. A fast motion shows it better in the whole band. Noise of positions also looks like
/// errors of the model, because it is multiplied by the inertia of the bodies. The low band contains little of it, so it must show
/// such an error too.
fn with_low_band(mut found: Vec<Deviation>, low: &[Deviation]) -> Vec<Deviation> {
    let lag_explains_most = |lag: &Deviation| low.iter().all(|d| d.explains <= lag.explains);
    for own in &mut found {
        let Some(other) = low.iter().find(|d| d.kind == own.kind && d.of == own.of) else { continue };
        let agree = own.value * other.value > 0.0;
        let (whole, in_low_band) = (own.evidence(), other.evidence());
        let clearer = whole <= in_low_band.max(EVIDENCE)
            && (in_low_band < EVIDENCE || (lag_explains_most(other) && agree));
        let in_both = agree && other.is_evident(EVIDENCE_IN_BOTH, SMALL_SHARE);
        let is_better = match own.kind {
            DeviationKind::Lag => clearer,
            DeviationKind::JointLag => clearer || !in_both,
            _ => !in_both,
        };
        if is_better {
            *own = other.clone();
        }
    }
    found
}

/// Reports joints that do not move although their torques are neither small nor those of a joint at rest.
fn check_still_joints(
    equations: &Equations<'_>,
    result: &mut Identification,
    excerpt: &Excerpt,
    names: &[String],
) {
    let nv = equations.coordinates();
    let mut speeds = vec![0.0_f64; nv];
    for row in excerpt.v.chunks_exact(nv) {
        speeds.iter_mut().zip(row).for_each(|(most, v)| *most = most.max(v.abs()));
    }
    let fastest = speeds.iter().copied().fold(0.0, f64::max);
    // The torque of a joint at rest is arbitrary within its friction: a small torque is no evidence of an error.
    let counts = |r: &Residual| r.relative_rms > UNEXPLAINED && !r.is_idle(&result.fit);
    let unexplained = |name: &str| result.fit.iter().any(|r| r.joint == name && counts(r));
    let still: Vec<&str> = names
        .iter()
        .zip(&speeds)
        .filter(|(name, speed)| **speed < STILL * fastest && unexplained(name))
        .map(|(name, _)| name.as_str())
        .collect();
    if !still.is_empty() {
        let only_these = !result.fit.iter().any(|r| counts(r) && !still.contains(&r.joint.as_str()));
        let message = format!(
            "the log has no motion of {}, but more than a quarter of the torque is not explained; check the encoder, or leave \
             the torque out if a brake holds the joint",
            still.join(", ")
        );
        if only_these {
            // The torque of a parked joint is arbitrary within its friction, and does not question the other joints.
            result.remove_reasons(ReasonCode::JointResidual, Verdict::DoNotUse);
        }
        result.add_reason(ReasonCode::Motion, Verdict::Doubtful, &message);
    }
}

/// Reports joints whose squared residual is almost completely due to a few samples.
fn check_outliers(
    equations: &Equations<'_>,
    result: &mut Identification,
    excerpt: &Excerpt,
    names: &[String],
) -> Result<()> {
    let large = |name: &String| result.fit.iter().any(|r| r.joint == *name && r.relative_rms > LARGE);
    if !names.iter().any(large) {
        return Ok(());
    }
    let predicted = equations.predict(&excerpt.measurements(equations)?, &result.values)?.force;
    let mut found = Vec::new();
    for (row, name) in names.iter().enumerate().filter(|(_, name)| large(name)) {
        let samples = (row..predicted.len()).step_by(names.len()).filter(|&k| excerpt.keep[k]);
        let mut squares: Vec<f64> = samples.map(|k| (excerpt.tau[k] - predicted[k]).powi(2)).collect();
        squares.sort_by(|a, b| b.total_cmp(a));
        let farthest = (FARTHEST * squares.len() as f64) as usize;
        let share = squares[..farthest].iter().sum::<f64>() / squares.iter().sum::<f64>();
        if share > OF_OUTLIERS {
            found.push(format!("{:.0} % of the squared residual of {name}", 100.0 * share));
        }
    }
    if !found.is_empty() {
        let message = format!(
            "{:.0} % of the samples cause {}; remove them from the log, or give outliers less \
             weight (estimator irls)",
            100.0 * FARTHEST,
            found.join(" and ")
        );
        result.add_reason(ReasonCode::Outliers, Verdict::Doubtful, &message);
    }
    Ok(())
}

impl Deviation {
    /// Returns whether the deviation is large, significant and explains much of the residual.
    fn counts(&self) -> bool {
        let is_large_gain = self.kind == DeviationKind::Gain && self.value.abs() >= LARGE_GAIN;
        let share = if is_large_gain { SHARE_OF_GAIN } else { SHARE };
        let evident = self.is_evident(EVIDENCE, share) || self.is_evident(EVIDENCE_ALONE, SMALL_SHARE);
        // A drive whose torque is less than half of the logged one is improbable: friction that changes with the load looks like it.
        let is_possible = self.kind != DeviationKind::Gain || self.value > LEAST_GAIN;
        evident && is_possible && self.kind.range().contains(&self.value.abs())
    }

    /// Returns whether this is a lag that is significant and explains enough of the residual to be corrected.
    pub fn is_certain_lag(&self) -> bool {
        let certain = self.value.abs() >= LEAST_LAG && self.is_evident(EVIDENCE, SHARE_OF_LAG);
        certain && self.kind == DeviationKind::Lag
    }

    /// Returns whether this lag of one torque explains much more than the lag of all torques.
    fn outweighs(&self, lag: &Self) -> bool {
        self.explains > JOINT_OVER_ALL * lag.explains
    }

    /// Returns the squared ratio of the value to its standard error.
    fn evidence(&self) -> f64 {
        (self.value / self.std_error).powi(2)
    }

    fn is_evident(&self, evidence: f64, share: f64) -> bool {
        self.value.powi(2) >= evidence * self.std_error.powi(2) && self.explains >= share
    }
}

impl Identification {
    /// Returns the lag of the torques if it is significant and explains more of the residual than any other deviation except springs.
    pub fn certain_lag(&self) -> Option<&Deviation> {
        let of_joints = |d: &&Deviation| d.kind == DeviationKind::JointLag;
        let others = self.deviations.iter().filter(|d| d.kind != DeviationKind::Spring && !of_joints(d));
        let most = others.max_by(|a, b| a.explains.total_cmp(&b.explains))?;
        let late = self.deviations.iter().filter(of_joints).any(|d| d.counts() && d.outweighs(most));
        (most.is_certain_lag() && !late).then_some(most)
    }

    /// Returns the remaining lag after a correction, if it is significant.
    pub fn rest_of_lag(&self) -> Option<&Deviation> {
        let left = self.deviations.iter().find(|d| d.kind == DeviationKind::Lag)?;
        let is_left =
            left.value.abs() >= LEAST_LAG && left.value.powi(2) >= EVIDENCE_OF_REST * left.std_error.powi(2);
        is_left.then_some(left)
    }

    /// Sets the deviations of a result that was not [diagnosed](diagnose), and adds a reason for the one that explains most, if it
    /// counts. `joints` is the number of joints with equal weight.
    pub fn set_deviations(&mut self, found: Vec<Deviation>, joints: usize) {
        if let Some((code, message)) = named(&found, joints).map(reason) {
            self.add_reason(code, Verdict::Doubtful, &message);
        }
        self.deviations = found;
    }

    /// Records that a lag was corrected before this fit. The remaining lag of the fit refines it.
    pub fn set_lag(&mut self, corrected: f64, std_error: f64) -> TorqueLag {
        let left = self.deviations.iter().find(|d| d.kind == DeviationKind::Lag);
        let lag = match left {
            Some(left) => TorqueLag { value: corrected + left.value, std_error: left.std_error },
            None => TorqueLag { value: corrected, std_error },
        };
        *self.lag.insert(lag)
    }
}

/// Describes the meaning of an alternative interpretation and its remedy.
fn described(interpretation: Interpretation, names: &[String]) -> (ReasonCode, String) {
    match interpretation {
        Interpretation::NegatedTorque(joint) => {
            let name = joint.map_or("all joints", |joint| names[joint].as_str());
            (
                ReasonCode::Sign,
                format!("negate the torque of {name} (scale = -1 in the column map); with that,"),
            )
        }
        Interpretation::ExchangedTorques(i, j) => (
            ReasonCode::Order,
            format!("the torques of {} and {} seem to be swapped; after swapping them,", names[i], names[j]),
        ),
        Interpretation::NegatedMotion(joint) => (
            ReasonCode::Sign,
            format!(
                "negate the motion of {} (scale = -1 in the column map) or its axis in the model; with \
                 that,",
                names[joint]
            ),
        ),
        Interpretation::ReversedAxis(joint) => (
            ReasonCode::Sign,
            format!("the axis of {} seems to be reversed in the model; after reversing it,", names[joint]),
        ),
        Interpretation::ExchangedMotions(i, j) => (
            ReasonCode::Order,
            format!("the motions of {} and {} seem to be swapped; after swapping them,", names[i], names[j]),
        ),
        Interpretation::TurnedZero(joint, quarters) => (
            ReasonCode::Zero,
            format!(
                "the zero of {} seems to be off by {}°; after adding {} to its position (offset in the column map),",
                names[joint],
                90 * quarters.abs(),
                significant(f64::from(quarters) * FRAC_PI_2, 5)
            ),
        ),
        Interpretation::Gravity(g) => {
            // Adding zero turns a negative zero into zero.
            let numbers = [g.x, g.y, g.z].map(|x| significant(x + 0.0, 3)).join(",");
            (ReasonCode::Gravity, format!("it seems to have another direction; with gravity {numbers},"))
        }
    }
}

/// Describes the meaning of a deviation and its remedy.
fn reason(deviation: &Deviation) -> (ReasonCode, String) {
    let (value, error, of) =
        (deviation.value, deviation.std_error, deviation.of.as_deref().unwrap_or_default());
    let number =
        |factor: f64| format!("{} ± {}", significant(factor * value, 2), significant(factor * error, 1));
    let degrees = 1.0_f64.to_degrees();
    let share = format!("correcting it removes {:.0} % of the squared residual", 100.0 * deviation.explains);
    match deviation.kind {
        DeviationKind::Lag => (
            ReasonCode::Lag,
            format!(
                "the {} lag the motion by {} ms; {share}; align their clocks or filters",
                if of.is_empty() { "torques" } else { "readings of the force/torque sensor" },
                number(1e3)
            ),
        ),
        DeviationKind::JointLag => (
            ReasonCode::Lag,
            format!(
                "the torque of {of} lags the motion by {} ms; {share}; align its clock or filter with those of the other joints",
                number(1e3)
            ),
        ),
        DeviationKind::Tilt => (
            ReasonCode::Gravity,
            format!(
                "the base is tilted about {of} by {}°; {share}; correct the gravity of the model",
                number(degrees)
            ),
        ),
        DeviationKind::Zero => (
            ReasonCode::Zero,
            format!(
                "the zero of {of} is off by {} ({}°); {share}; correct it in the log (offset in the column map)",
                number(1.0),
                significant(degrees * value, 2)
            ),
        ),
        DeviationKind::Length => (
            ReasonCode::Length,
            format!(
                "the model places {of} {} ± {} m too {} the previous joint; {share}; \
                 measure that length",
                significant(value.abs(), 2),
                significant(error, 1),
                if value > 0.0 { "far from" } else { "close to" }
            ),
        ),
        DeviationKind::Spring => (
            ReasonCode::Spring,
            format!(
                "the torque of {of} contains a part proportional to its position, {} N m/rad (N/m), like that of a spring \
                 or a hose; {share}; add a term to the joint model",
                number(1.0)
            ),
        ),
        DeviationKind::Gain => (
            ReasonCode::Gain,
            format!(
                "the logged torque of {of} has an error of {} %; {share}; check its unit and its torque constant",
                number(1e2)
            ),
        ),
    }
}
