//! Identifiability analysis: parameters that some experiment can determine, and their combinations.

use inertial::identifiability::{
    Analysis, AnalyzeOptions, Comparison, Measured, Method, Regime, TotalMomentum, Warning, analyze, compare,
};
use inertial::mechanism::{Base, DEFAULT_SNAP, Mechanism};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Context, Located, Model, Result, bail, choice, ensure_option};

/// Options of the analysis.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Options {
    /// Measured quantities; joint torques by default, with a floating base also the base wrench.
    #[serde(with = "choice::optional")]
    #[schemars(with = "Option<choice::Words<Measured>>")]
    pub measured: Option<Measured>,
    /// Free flight: no external force acts on the floating base.
    pub ballistic: bool,
    /// Total momentum of a free-flying robot including its wheels, if momentum is measured: zero, angular (known) or
    /// any (known). By default zero if the model has wheels, otherwise any.
    #[serde(with = "choice::optional")]
    #[schemars(with = "Option<choice::Words<TotalMomentum>>")]
    pub total_momentum: Option<TotalMomentum>,
    /// Joints that have a torque sensor; all if absent.
    pub joints: Option<Vec<String>>,
    /// Whether only static experiments are considered, in which gravity alone excites the parameters.
    #[serde(rename = "static")]
    pub at_rest: bool,
    /// Whether only the kinetic energy is considered, without gravity.
    pub kinetic: bool,
    /// Method that finds the rank.
    #[serde(with = "choice")]
    #[schemars(with = "choice::Words<Method>")]
    pub method: Method,
    /// Tolerance within which geometry is treated as special (rad; lengths relative to the size of the robot).
    pub snap: f64,
    /// Parameters to prefer as base parameters, in this order.
    pub choose: Vec<String>,
    /// Other setup to compare with: `floating`, `fixed`, or the name of a model.
    pub compare: Option<String>,
    /// Seed of the random configurations.
    pub seed: u64,
}

inertial::with_changes!(Options);

impl Default for Options {
    fn default() -> Self {
        Self {
            measured: None,
            ballistic: false,
            total_momentum: None,
            joints: None,
            at_rest: false,
            kinetic: false,
            method: Method::Auto,
            snap: DEFAULT_SNAP,
            choose: Vec::new(),
            compare: None,
            seed: 1,
        }
    }
}

impl Options {
    fn for_library(&self, mechanism: &Mechanism) -> Result<AnalyzeOptions> {
        ensure_option!(
            !(self.at_rest && self.kinetic),
            "static",
            "cannot be combined with the kinetic energy alone"
        );
        Ok(AnalyzeOptions::default().with(|o| {
            o.snap = self.snap;
            o.method = self.method;
            o.measured = self.measured;
            o.ballistic = self.ballistic;
            o.total_momentum = self.total_momentum.unwrap_or_else(|| usual_momentum(mechanism));
            o.torque_joints.clone_from(&self.joints);
            o.regime = match (self.at_rest, self.kinetic) {
                (true, _) => Regime::Static,
                (_, true) => Regime::Kinetic,
                _ => Regime::Full,
            };
            o.choose.clone_from(&self.choose);
            o.seed = self.seed;
        }))
    }
}

/// Result of an identifiability analysis.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Outcome {
    /// Analysis of the model.
    #[serde(flatten)]
    pub analysis: Analysis,
    /// Name of the setup that the model was compared with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compared_with: Option<String>,
    /// Parameters that the other setup determines and this one does not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub comparison: Option<Comparison>,
}

/// Analyses a model, including the rotors that [`Model::with_missing_rotors`] adds.
pub fn run(model: &Model, options: &Options, context: &Context<'_>) -> Result<Outcome> {
    let model = &*model.with_missing_rotors()?;
    let wanted = options.for_library(&model.mechanism)?;
    let mut analysis = analyze(&model.mechanism, &wanted).at(&model.label)?;
    ensure_option!(
        options.total_momentum.is_none() || analysis.total_momentum.is_some(),
        "total-momentum",
        "only a measured momentum can have a given total"
    );
    let assumed = options.total_momentum.is_none() && wanted.total_momentum == TotalMomentum::Any;
    if assumed && analysis.total_momentum.is_some() && model.mechanism.base() == Base::Floating {
        let has_wheels = !model.mechanism.wheels().is_empty();
        analysis.warnings.push(if has_wheels { Warning::WheelsIgnored } else { Warning::NoWheels });
    }
    let Some(other) = &options.compare else {
        return Ok(Outcome { analysis, compared_with: None, comparison: None });
    };
    let (label, other) = set_up(other, model, context)?;
    // The names to prefer belong to this model only.
    let wanted = wanted.with(|o| o.choose.clear());
    let found = analyze(&other, &wanted).at(&label)?;
    let comparison = compare((&model.mechanism, &analysis), (&other, &found), options.seed)?;
    Ok(Outcome { analysis, compared_with: Some(label), comparison: Some(comparison) })
}

/// Returns the total momentum assumed by default: zero for a robot with wheels and without loops, otherwise any.
fn usual_momentum(mechanism: &Mechanism) -> TotalMomentum {
    if mechanism.wheels().is_empty() || !mechanism.loops().is_empty() {
        TotalMomentum::Any
    } else {
        TotalMomentum::Zero
    }
}

/// Builds the setup to compare with.
fn set_up(other: &str, model: &Model, context: &Context<'_>) -> Result<(String, Mechanism)> {
    let base = match other {
        "floating" => Base::Floating,
        "fixed" => Base::Fixed,
        path => {
            let other = model.load_other(path, context)?;
            let other = other.with_missing_rotors()?.into_owned();
            return Ok((other.label, other.mechanism));
        }
    };
    let mechanism = model.with_base(base)?;
    if mechanism.base() != base {
        bail!("{}: the base cannot be made {other}", model.label);
    }
    Ok((format!("{other} base"), mechanism))
}
