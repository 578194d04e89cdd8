//! Validation of model predictions with measured data.

use inertial::estimation::{Equations, Summary, Validation, validate};
use inertial::identifiability::Measured;
use inertial::mechanism::{Base, DEFAULT_SNAP};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::choice;
use crate::curves::{Curves, LogSegment};
use crate::logs::LogOptions;
use crate::model::joint_file::JointValues;
use crate::recording::Recording;
use crate::summary_file::saved_summary;
use crate::{Context, Located, Model, Note, Result, ensure, ensure_option, flight};

/// Options of a validation.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Options {
    /// Logs to predict.
    pub logs: Vec<String>,
    /// Measured quantities of the logs: `momentum` of a free-flying robot, otherwise forces.
    #[serde(with = "choice::optional")]
    #[schemars(with = "Option<choice::Words<Measured>>")]
    pub measured: Option<Measured>,
    /// Largest relative residual of all joints together that passes the validation.
    pub threshold: Option<f64>,
    /// Preparation of the logs.
    pub log: LogOptions,
    /// Whether the outcome contains curves for plots; the logs are then read once more.
    pub draw: bool,
}

inertial::with_changes!(Options);

impl Options {
    /// Returns the names of all inputs except the model.
    pub fn files(&self) -> Vec<String> {
        self.logs.iter().cloned().chain(self.log.files()).collect()
    }
}

/// Residuals of a model's prediction.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Outcome {
    /// Measured quantity if it is not forces: `momentum`, whose components are then listed as `joints`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["momentum"]))]
    pub measured: Option<&'static str>,
    /// Residuals of the prediction.
    #[serde(flatten)]
    pub result: Validation,
    /// Whether the residual does not exceed the threshold and every joint was validated.
    #[serde(skip)]
    pub passed: bool,
    /// Requested threshold.
    #[serde(skip)]
    pub threshold: Option<f64>,
    /// Measured and predicted forces, if requested.
    #[serde(skip)]
    pub curves: Option<Curves>,
}

/// Validates a model.
pub fn run(model: &Model, options: &Options, context: &Context<'_>) -> Result<Outcome> {
    ensure_option!(
        options.threshold.is_none_or(|most| most >= 0.0 && most.is_finite()),
        "threshold",
        "expected a number not below zero"
    );
    model.notes().iter().for_each(|note| context.note(note));
    if options.measured == Some(Measured::Momentum) {
        let (result, curves) = flight::validate(model, &options.logs, &options.log, options.draw, context)?;
        let passed = options.threshold.is_none_or(|most| result.is_within(most));
        let measured = Some(Measured::Momentum.name());
        return Ok(Outcome { measured, result, passed, threshold: options.threshold, curves });
    }
    let JointValues { joints, lag, file } = model.joint_values(context)?;
    let mut preparation = options.log.clone();
    if let Some(lag) = lag.filter(|_| options.log.lag.is_none()) {
        preparation.lag = Some(lag.value);
        context.note(&Note::LagOfJointFile { seconds: lag.value, std_error: lag.std_error, file });
    }
    let (equations, values) =
        Equations::with_joint_values(&model.mechanism, &joints, DEFAULT_SNAP).at(&model.label)?;
    let mut summary = Summary::empty(&equations);
    let mut logs = Vec::new();
    let work = context.work_on(&options.logs);
    for name in &options.logs {
        ensure!(
            saved_summary(context, name)?.is_none(),
            "{name}: is a summary: validation needs the log itself"
        );
        let mut log = Recording::open(context, &preparation, &equations, None, name)?;
        let all = 0..log.len();
        summary.merge(&log.summary(context, &equations, all, None)?)?;
        if options.draw {
            logs.push(log);
        }
    }
    drop(work);
    let mut result = validate(&equations, &summary, &values).at(options.logs.join(", "))?;
    let unmeasured = without_torques(&equations, &result, options);
    let curves = if options.draw {
        let pieces = logs.iter_mut().map(|log| {
            let piece = LogSegment::new(0..log.len(), "validation", &result.joints);
            (log, vec![piece])
        });
        Some(Curves::collect(context, &equations, &values, pieces.collect())?)
    } else {
        None
    };
    if options.threshold.is_some() {
        if !result.unjudged.is_empty() {
            context.note(&Note::NotJudged(result.unjudged.clone()));
        }
        if !unmeasured.is_empty() {
            context.note(&Note::NoTorques(unmeasured.clone()));
        }
    }
    result.unjudged.extend(unmeasured);
    let passed = options.threshold.is_none_or(|most| result.is_within(most));
    Ok(Outcome { measured: None, result, passed, threshold: options.threshold, curves })
}

/// Returns the joints without measured torques in logs that have torques of other joints, unless the joints to use were named.
fn without_torques(equations: &Equations<'_>, result: &Validation, options: &Options) -> Vec<String> {
    // Loops have passive joints.
    if equations.closed().is_some() || !options.log.joints.is_empty() {
        return Vec::new();
    }
    let mechanism = equations.mechanism();
    let base = if mechanism.base() == Base::Floating { 6 } else { 0 };
    let is_known =
        |name: &String| result.joints.iter().any(|r| r.joint == *name) || result.unjudged.contains(name);
    let joints = &mechanism.force_names()[base..];
    let (known, unmeasured): (Vec<_>, Vec<_>) = joints.iter().cloned().partition(is_known);
    if known.is_empty() { Vec::new() } else { unmeasured }
}
