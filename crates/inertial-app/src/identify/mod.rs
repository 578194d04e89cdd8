//! Identification of a robot from logs of motion and forces.

mod lengths;
mod outcome_check;
mod sources;
mod write_model;

use std::ops::Range;

use inertial::estimation::{
    Equations, Excerpt, Huber, Identification, IdentifyOptions, Summary, Verdict, diagnose, identify,
    identify_robust,
};
use inertial::identifiability::{Analysis, AnalyzeOptions, Measured, analyze};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::choice::Friction;
use crate::curves::{Curves, LogSegment};
use crate::estimate::{Estimate, Subject};
use crate::lag::{EXCERPT, with_corrected_lag};
use crate::logs::LogOptions;
use crate::model::joint_file::Lag;
use crate::progress::Quiet;
use crate::recording::Recording;
use crate::summary_file::saved_summary;
use crate::unknowns::Unknowns;
use crate::{Context, Located, Model, Note, Result, ensure_option};
pub use write_model::check_writable;
pub(crate) use write_model::written;

/// Options of an identification.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Options {
    /// Logs or summaries to identify from.
    pub logs: Vec<String>,
    /// Logs to validate with.
    pub validate: Vec<String>,
    /// Fraction at the end of each log that is held out for validation.
    pub holdout: Option<f64>,
    /// Unknowns.
    pub unknowns: Unknowns,
    /// Estimation options.
    pub estimate: Estimate,
    /// Preparation of the logs.
    pub log: LogOptions,
    /// Whether the model with the identified values is written.
    pub write: bool,
    /// Whether the model is written even if it predicts worse than the given one.
    pub force: bool,
    /// Whether the outcome contains curves for plots; the logs are then read once more.
    pub draw: bool,
}

inertial::with_changes!(Options);

impl Options {
    /// Checks the options.
    pub fn check(&self) -> Result<()> {
        check_holdout(self.holdout, &self.validate)?;
        self.log.check()?;
        self.estimate.check()
    }

    /// Returns the names of all inputs except the model.
    pub fn files(&self) -> Vec<String> {
        let logs = self.logs.iter().chain(&self.validate).cloned();
        logs.chain(self.log.files()).chain(self.unknowns.files()).chain(self.estimate.files()).collect()
    }
}

/// Checks the fraction of the logs that is held out for validation.
pub(crate) fn check_holdout(holdout: Option<f64>, validate: &[String]) -> Result<()> {
    let between = |x: f64| x > 0.0 && x < 1.0;
    ensure_option!(holdout.is_none_or(between), "holdout", "expected a fraction between 0 and 1");
    ensure_option!(
        holdout.is_none() || validate.is_empty(),
        "holdout",
        "cannot be combined with validation logs"
    );
    Ok(())
}

/// Identified parameters of a robot, with validation.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Outcome {
    /// Result of the estimation.
    #[serde(flatten)]
    pub result: Identification,
    /// Summary of the logs: their normal equations for the unknowns.
    #[serde(skip)]
    pub summary: Summary,
    /// Text of the model with the identified values, if requested and not worse than the given model.
    #[serde(skip)]
    pub model: Option<String>,
    /// Text of the [joint file](crate::model::joint_file) of that model, if the model format cannot represent all joint terms.
    #[serde(skip)]
    pub joint_file: Option<String>,
    /// Data for plots, if requested.
    #[serde(skip)]
    pub page_data: Option<PageData>,
}

/// Data for the page of an identification besides the result.
#[derive(Debug)]
pub struct PageData {
    /// Measured and predicted forces.
    pub curves: Curves,
    /// Values of the base parameters according to the model, if it has any.
    pub prior: Vec<Option<f64>>,
    /// Identifiability analysis.
    pub analysis: Analysis,
    /// Filter settings and repairs of each log.
    pub logs: Vec<String>,
}

/// Identifies a robot.
pub fn run(model: &Model, options: &Options, context: &Context<'_>) -> Result<Outcome> {
    options.check()?;
    if options.write {
        check_writable(model)?;
    }
    let equations = options.unknowns.equations(model, context)?;
    let wanted = options.estimate.options(model, Subject::Robot, context)?;
    let given = &options.log;
    let estimate = |options: &Options, context: &Context<'_>| -> Result<(Data, Identification)> {
        let mut data = Data::read(options, given, &equations, context)?;
        let mut result = data.estimate(&equations, &wanted, context).at(options.logs.join(", "))?;
        diagnose(&equations.chosen(&result)?, &mut result, &data.excerpt, lengths::others(model), &wanted)?;
        Ok((data, result))
    };
    let first = estimate(options, context)?;
    let (data, result) = with_corrected_lag(can_correct_lag(options), first, context, |lag| {
        // Notes about the logs were already emitted in the first pass.
        let quiet = Quiet { progress: context.progress };
        let again = Options { log: LogOptions { lag: Some(lag), ..options.log.clone() }, ..options.clone() };
        estimate(&again, &Context { progress: &quiet, ..*context })
    })?;
    finish(model, options, &equations, data, result, context)
}

/// Returns whether a lag of the torques can be corrected: the logs can be read again, and viscous friction, which resembles a lag, is among
/// the unknowns.
fn can_correct_lag(options: &Options) -> bool {
    let again = options.log.lag.is_none() && !options.logs.iter().chain(&options.validate).any(|l| l == "-");
    again && (options.unknowns.friction == Friction::Auto || options.unknowns.friction.is_viscous())
}

/// Summarizes the logs without estimating the unknowns.
pub fn summarize(model: &Model, options: &Options, context: &Context<'_>) -> Result<Summary> {
    options.check()?;
    let equations = options.unknowns.equations(model, context)?;
    Ok(Data::read(options, &options.log, &equations, context)?.fit)
}

/// Completes the outcome of an estimate with the written model and the curves, if requested.
pub(crate) fn finish(
    model: &Model,
    options: &Options,
    equations: &Equations<'_>,
    mut data: Data,
    result: Identification,
    context: &Context<'_>,
) -> Result<Outcome> {
    // An unusable result is not written.
    let unusable = result.verdict == Some(Verdict::DoNotUse) && !options.force;
    let written = if options.write && unusable {
        context.note(&Note::NotUsable);
        None
    } else if options.write {
        let estimated = result.lag.map(|lag| Lag { value: lag.value, std_error: Some(lag.std_error) });
        let lag = estimated.or(options.log.lag.map(|value| Lag { value, std_error: None }));
        let new = written(model, &result.parameters, Some(&result.joints), lag, context)?;
        let better = options.force || data.is_no_worse(model, &new, &result.joints, context)?;
        better.then_some(new)
    } else {
        None
    };
    let (written, joint_file) = written.map(|w| (w.text, w.joint_file)).unzip();
    let page_data = if options.draw { Some(data.draw(model, equations, &result, context)?) } else { None };
    Ok(Outcome { result, summary: data.fit, model: written, joint_file: joint_file.flatten(), page_data })
}

/// Summaries for fit and validation, and the logs themselves if they are read again.
pub(crate) struct Data {
    pub fit: Summary,
    pub validation: Option<Summary>,
    excerpt: Excerpt,
    logs: Vec<OpenLog>,
}

/// Log that is read again, with its parts for fit and validation.
struct OpenLog {
    recording: Recording,
    fit: Range<usize>,
    validation: Range<usize>,
}

impl Data {
    /// Reads the logs for fit and validation. Summaries must have been made with the `given` options.
    pub fn read(
        options: &Options,
        given: &LogOptions,
        equations: &Equations<'_>,
        context: &Context<'_>,
    ) -> Result<Self> {
        let robust = options.estimate.is_robust();
        let again = robust || options.draw || (options.write && !options.force);
        let _work = context.work_on(options.logs.iter().chain(&options.validate));
        let open =
            |name: &str| Recording::open(context, &options.log, equations, options.unknowns.measured, name);
        let mut fit = Summary::empty(equations);
        let mut validation = Summary::empty(equations);
        let (mut logs, mut excerpt) = (Vec::new(), Excerpt::default());
        let samples = (EXCERPT / options.logs.len().max(1)).max(1);
        let mut has_log = !options.validate.is_empty();
        for name in &options.logs {
            if let Some(summary) = saved_summary(context, name)? {
                ensure_option!(
                    options.holdout.is_none(),
                    "holdout",
                    "{name} is a summary: holding out a part needs the log itself"
                );
                ensure_option!(
                    !robust,
                    "estimator",
                    "{name} is a summary: irls weights every sample and needs the log itself"
                );
                summary.check(equations).at(name)?;
                given.check_summary(name, &summary)?;
                fit.merge(&summary)?;
                continue;
            }
            has_log = true;
            let mut log = open(name)?;
            let (first, last) = match options.holdout {
                Some(fraction) => log.hold_out(fraction)?,
                None => (0..log.len(), 0..0),
            };
            let part = Some((&mut excerpt, samples));
            fit.merge(&log.summary_and_excerpt(context, equations, first.clone(), None, part)?)?;
            validation.merge(&log.summary(context, equations, last.clone(), None)?)?;
            if again {
                logs.push(OpenLog { recording: log, fit: first, validation: last });
            }
        }
        if !has_log {
            options.log.check_summaries_only()?;
        }
        for name in &options.validate {
            let mut log = open(name)?;
            let all = 0..log.len();
            validation.merge(&log.summary(context, equations, all.clone(), None)?)?;
            if again {
                logs.push(OpenLog { recording: log, fit: 0..0, validation: all });
            }
        }
        let validated = if options.holdout.is_some() { &[][..] } else { &validation.sources };
        sources::compare(&fit.sources, validated, context);
        Ok(Self { fit, validation: (validation.samples > 0).then_some(validation), excerpt, logs })
    }

    /// Estimates the unknowns; the robust estimator reads the logs again.
    fn estimate(
        &mut self,
        equations: &Equations<'_>,
        options: &IdentifyOptions,
        context: &Context<'_>,
    ) -> Result<Identification> {
        let Self { fit, validation, logs, .. } = self;
        if options.estimator != inertial::estimation::Estimator::Irls {
            return Ok(identify(equations, fit, validation.as_ref(), options)?);
        }
        let mut pass = |equations: &Equations<'_>, huber: Huber<'_>| -> Result<Summary> {
            let mut out = Summary::empty(equations);
            let names: Vec<String> = logs.iter().map(|log| log.recording.path().to_owned()).collect();
            let _work = context.work_on(&names);
            for log in logs.iter_mut() {
                log.recording.restart(context);
                out.merge(&log.recording.summary(context, equations, log.fit.clone(), Some(huber))?)?;
            }
            Ok(out)
        };
        let pass = |equations: &Equations<'_>, huber: Huber<'_>| {
            pass(equations, huber).map_err(|e| inertial::Error::Numeric(e.to_string()))
        };
        Ok(identify_robust(equations, fit, validation.as_ref(), options, pass)?)
    }

    /// Reads the logs once more and collects the data for plots.
    fn draw(
        &mut self,
        model: &Model,
        equations: &Equations<'_>,
        result: &Identification,
        context: &Context<'_>,
    ) -> Result<PageData> {
        let mechanism = &model.mechanism;
        let chosen = equations.chosen(result)?;
        let mut facts = Vec::new();
        let logs = self.logs.iter_mut().map(|log| {
            let cutoff =
                log.recording.cutoff_hz().map_or("no filter".into(), |f| format!("cut-off {f:.3} Hz"));
            let rate = log.recording.rate_hz();
            facts.push(format!("{}: {cutoff}, fitted at {rate:.1} samples per second", log.recording.path()));
            facts
                .extend(log.recording.notes().iter().map(|note| format!("{}: {note}", log.recording.path())));
            let pieces = vec![
                LogSegment::new(log.fit.clone(), "fit", &result.fit),
                LogSegment::new(log.validation.clone(), "validation", &result.validation),
            ];
            (&mut log.recording, pieces)
        });
        let curves = Curves::collect(context, &chosen, &result.values, logs.collect())?;
        let has_values = mechanism.parameters().iter().any(|x| *x != 0.0);
        let prior = chosen.model_values()?.into_iter().map(|x| has_values.then_some(x)).collect();
        let measured = chosen.has_base_wrench().then_some(Measured::Both);
        let analysis = analyze(mechanism, &AnalyzeOptions::default().with(|o| o.measured = measured))?;
        Ok(PageData { curves, prior, analysis, logs: facts })
    }
}
