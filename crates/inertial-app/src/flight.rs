//! Identification of a free-flying robot from its rates and from the momentum received from its wheels.

use std::ops::Range;

use inertial::dynamics::{Frame, Workspace, momentum};
use inertial::estimation::momentum::{MomentumEquations, MomentumSamples, RateNoise};
use inertial::estimation::momentum_identification::{
    MomentumIdentification, MomentumResidual, identify_momentum, integrate_rates, validate_momentum,
};
use inertial::estimation::{Estimator as Library, IdentifyOptions, Validation};
use inertial::identifiability::{Analysis, AnalyzeOptions, Measured, analyze};
use inertial::mechanism::{Base, DEFAULT_SNAP, Mechanism};
use inertial_data::{Cutoff, Log, Options as DataOptions, Requirement, prepare};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::choice::{self, Estimator, Positions};
use crate::curves::{Curves, PredictedSeries, ReportedResidual};
use crate::estimate::{Estimate, Subject};
use crate::identify::{check_holdout, check_writable, written};
use crate::logs::LogOptions;
use crate::setting::Setting;
use crate::{Context, Error, Located, Model, Note, Result, bail, ensure_option};

/// Columns of the momentum of the robot without its wheels.
const MOMENTUM: [&str; 6] =
    ["momentum.px", "momentum.py", "momentum.pz", "momentum.lx", "momentum.ly", "momentum.lz"];

/// Options of an identification from momentum.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Options {
    /// Logs to identify from.
    pub logs: Vec<String>,
    /// Logs to validate with.
    pub validate: Vec<String>,
    /// Fraction at the end of each log that is held out for validation.
    pub holdout: Option<f64>,
    /// Standard deviations of measured rates and momenta, by column or group of columns.
    pub noise: Vec<Setting>,
    /// Source of the positions.
    #[serde(with = "choice")]
    #[schemars(with = "choice::Words<Positions>")]
    pub positions: Positions,
    /// Estimation options.
    pub estimate: Estimate,
    /// Preparation of the logs.
    pub log: LogOptions,
    /// Whether the model with the identified values is written.
    pub write: bool,
    /// Whether the outcome contains curves for plots.
    pub draw: bool,
}

inertial::with_changes!(Options);

impl Options {
    /// Returns the names of all inputs except the model.
    pub fn files(&self) -> Vec<String> {
        let logs = self.logs.iter().chain(&self.validate).cloned();
        logs.chain(self.log.files()).chain(self.estimate.files()).collect()
    }
}

/// Parameters of a free-flying robot.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Outcome {
    /// Result of the estimation.
    #[serde(flatten)]
    pub result: MomentumIdentification,
    /// Text of the model with the identified values, if requested.
    #[serde(skip)]
    pub model: Option<String>,
    /// Measured and predicted momenta and the identifiability analysis, if requested.
    #[serde(skip)]
    pub page_data: Option<(Curves, Analysis)>,
}

/// Identifies a free-flying robot.
pub fn run(model: &Model, options: &Options, context: &Context<'_>) -> Result<Outcome> {
    let mechanism = &model.mechanism;
    check_holdout(options.holdout, &options.validate)?;
    options.estimate.check()?;
    ensure_option!(
        options.estimate.bounds_on.is_empty(),
        "bounds-on",
        "guaranteed intervals need measured forces, not momentum"
    );
    ensure_option!(
        !options.estimate.posterior,
        "posterior",
        "credible intervals need measured forces, not momentum"
    );
    if options.write {
        check_writable(model)?;
    }
    let wanted: IdentifyOptions = match options.estimate.estimator {
        None if options.noise.is_empty() => Library::Ols.into(),
        Some(Estimator::Ols) => Library::Ols.into(),
        Some(Estimator::Bcls) => Library::Bcls.into(),
        None | Some(Estimator::Eiv) => Library::Eiv.into(),
        Some(Estimator::Wls | Estimator::Irls) => {
            return Err(Error::option("estimator", "expected ols, bcls, eiv or consistent for momentum"));
        }
        Some(Estimator::Consistent) => options.estimate.options(model, Subject::Robot, context)?,
    };
    let noise = rate_noise(&options.noise, mechanism)?;
    let equations = MomentumEquations::new(mechanism, DEFAULT_SNAP).at(&model.label)?;
    let (mut fit, mut kept) = (Stack::default(), Stack::default());
    let mut logs = Vec::new();
    let held_out = options.holdout.unwrap_or(0.0);
    let all = options.logs.iter().map(|name| (name, held_out));
    let work = context.work_on(options.logs.iter().chain(&options.validate));
    for (name, held_out) in all.chain(options.validate.iter().map(|name| (name, 1.0))) {
        context.file(name);
        let log = Data::read(mechanism, name, options, context)?;
        let cut = log.cut(1.0 - held_out);
        fit.append(&log, 0..cut, mechanism);
        kept.append(&log, cut..log.len(), mechanism);
        if options.draw {
            logs.push((log, cut));
        }
        context.progress.share(1.0);
    }
    drop(work);
    let validation = kept.samples();
    let validation = (kept.len() > 0).then_some(&validation);
    let result = identify_momentum(&equations, &fit.samples(), validation, noise.as_ref(), &wanted)
        .at(options.logs.join(", "))?;
    let text = if options.write {
        Some(written(model, &result.parameters, None, None, context)?.text)
    } else {
        None
    };
    let page_data = if options.draw {
        let estimated = mechanism.clone().with_parameters(&result.parameters)?;
        let mut tracks = Vec::new();
        for (log, cut) in &logs {
            let rows =
                |residuals: &[MomentumResidual]| residuals.iter().map(ReportedResidual::from).collect();
            tracks.push(log.track(&estimated, 0..*cut, "fit", rows(&result.fit))?);
            tracks.push(log.track(&estimated, *cut..log.len(), "validation", rows(&result.validation))?);
        }
        let wanted = AnalyzeOptions::default().with(|o| o.measured = Some(Measured::Momentum));
        Some((Curves::of_predictions(tracks), analyze(mechanism, &wanted)?))
    } else {
        None
    };
    Ok(Outcome { result, model: text, page_data })
}

/// Validates a model with measured momenta; with `draw` also computes curves.
pub(crate) fn validate(
    model: &Model,
    logs: &[String],
    log: &LogOptions,
    draw: bool,
    context: &Context<'_>,
) -> Result<(Validation, Option<Curves>)> {
    let mechanism = &model.mechanism;
    ensure_option!(
        mechanism.base() == Base::Floating,
        "measured",
        "momentum needs a free-flying robot: make its base floating"
    );
    let options = Options { log: log.clone(), ..Options::default() };
    let mut all = Stack::default();
    let mut read = Vec::new();
    let work = context.work_on(logs);
    for name in logs {
        context.file(name);
        let log = Data::read(mechanism, name, &options, context)?;
        all.append(&log, 0..log.len(), mechanism);
        read.push(log);
        context.progress.share(1.0);
    }
    drop(work);
    let result = validate_momentum(mechanism, &all.samples()).at(logs.join(", "))?;
    let curves = if draw {
        let residuals: Vec<ReportedResidual> = result.joints.iter().map(ReportedResidual::from).collect();
        let tracks =
            read.iter().map(|log| log.track(mechanism, 0..log.len(), "validation", residuals.clone()));
        Some(Curves::of_predictions(tracks.collect::<Result<_>>()?))
    } else {
        None
    };
    Ok((result, curves))
}

/// Data of one log.
struct Data {
    path: String,
    start: f64,
    rate: f64,
    q: Vec<f64>,
    v: Vec<f64>,
    momentum: Vec<f64>,
    /// Whether each sample is used.
    sound: Vec<bool>,
}

impl Data {
    fn read(mechanism: &Mechanism, path: &str, own: &Options, context: &Context<'_>) -> Result<Self> {
        let log = Log::collect(own.log.reader(context, Some(mechanism), path)?)?;
        let given: Vec<usize> = (0..6).filter(|&k| log.column(MOMENTUM[k]).is_some()).collect();
        if let Some(missing) = (3..6).find(|k| !given.contains(k)) {
            bail!(
                "{path}: there is no column {} (momentum of the robot without its wheels)",
                MOMENTUM[missing]
            );
        }
        let options = DataOptions::default().with(|o| {
            // The estimators require white noise, so the data are not filtered.
            o.cutoff = Cutoff::Off;
            o.decimate = 1;
            o.slow = 0.0;
            o.torques = Requirement::Optional;
            o.base_pose = Requirement::Optional;
            o.extra = given.iter().map(|&k| MOMENTUM[k].to_owned()).collect();
            o.trust_units = own.log.trust_units;
        });
        let prepared = prepare(mechanism, &log, &options)?;
        for text in &prepared.notes {
            context.note(&Note::Log { log: path.to_owned(), text: text.clone() });
        }
        let nq = mechanism.nq();
        let q = match own.positions.rule() {
            None => prepared.q,
            Some(rule) => integrate_rates(mechanism, &prepared.t, &prepared.v, &prepared.q[..nq], rule)?,
        };
        let mut momentum = vec![0.0; 6 * prepared.t.len()];
        for (row, extra) in momentum.chunks_exact_mut(6).zip(prepared.extra.chunks_exact(given.len())) {
            given.iter().zip(extra).for_each(|(&k, x)| row[k] = *x);
        }
        Ok(Self {
            path: path.to_owned(),
            start: prepared.t.first().copied().unwrap_or(0.0),
            rate: prepared.rate_hz,
            q,
            v: prepared.v,
            momentum,
            sound: prepared.sound,
        })
    }

    fn len(&self) -> usize {
        self.sound.len()
    }

    /// Returns the index of the sample that splits off the given fraction of the used samples.
    fn cut(&self, part: f64) -> usize {
        let mut counting = (0..self.len()).filter(|&i| self.sound[i]);
        let before = (part * counting.clone().count() as f64).round() as usize;
        counting.nth(before).unwrap_or(self.len())
    }

    /// Returns the measured and predicted momenta of some samples.
    fn track(
        &self,
        estimated: &Mechanism,
        range: Range<usize>,
        part: &'static str,
        residuals: Vec<ReportedResidual>,
    ) -> Result<PredictedSeries> {
        let (nq, nv) = (estimated.nq(), estimated.nv());
        let mut workspace = Workspace::new(estimated);
        let mut predicted = Vec::with_capacity(6 * range.len());
        for i in range.clone() {
            let (q, v) = (&self.q[i * nq..(i + 1) * nq], &self.v[i * nv..(i + 1) * nv]);
            let found = momentum(estimated, &mut workspace, q, v, Frame::Base)?;
            predicted.extend(found.linear.iter().chain(&found.angular));
        }
        Ok(PredictedSeries {
            log: self.path.clone(),
            part,
            quantity: "momentum",
            start: self.start + range.start as f64 / self.rate,
            rate: self.rate,
            reported: residuals,
            units: [["N s"; 3], ["N m s"; 3]].concat(),
            measured: self.momentum[6 * range.start..6 * range.end].to_vec(),
            predicted,
            counts: self.sound[range.clone()].to_vec(),
            q: self.q[range.start * nq..range.end * nq].to_vec(),
        })
    }
}

/// Used samples of all logs, one log after the other.
#[derive(Default)]
struct Stack {
    q: Vec<f64>,
    v: Vec<f64>,
    momentum: Vec<f64>,
}

impl Stack {
    fn len(&self) -> usize {
        self.momentum.len() / 6
    }

    fn append(&mut self, log: &Data, range: Range<usize>, mechanism: &Mechanism) {
        let (nq, nv) = (mechanism.nq(), mechanism.nv());
        for i in range.filter(|&i| log.sound[i]) {
            self.q.extend_from_slice(&log.q[i * nq..(i + 1) * nq]);
            self.v.extend_from_slice(&log.v[i * nv..(i + 1) * nv]);
            self.momentum.extend_from_slice(&log.momentum[6 * i..6 * i + 6]);
        }
    }

    fn samples(&self) -> MomentumSamples<'_> {
        MomentumSamples { q: &self.q, v: &self.v, momentum: &self.momentum }
    }
}

/// Returns the standard deviations by column: `dq`, `dq.JOINT`, `base.v`, `base.w`, `momentum.p`, `momentum.l` or a
/// single component. The longest matching name takes precedence.
pub fn rate_noise(settings: &[Setting], mechanism: &Mechanism) -> Result<Option<RateNoise>> {
    if settings.is_empty() {
        return Ok(None);
    }
    let base = ["base.vx", "base.vy", "base.vz", "base.wx", "base.wy", "base.wz"].map(String::from);
    let joints = mechanism.velocity_names().into_iter().skip(6).map(|name| format!("dq.{name}"));
    let names: Vec<String> = base.into_iter().chain(joints).chain(MOMENTUM.map(String::from)).collect();
    for Setting { column, value } in settings {
        ensure_option!(*value >= 0.0, "noise", "{column} is {value}, expected a standard deviation");
        ensure_option!(
            names.iter().any(|name| fits(column, name)),
            "noise",
            "there is no column {column}; expected {}base.v, base.w, momentum or one of {}",
            if mechanism.nv() > 6 { "dq, " } else { "" },
            names.join(" ")
        );
    }
    let of = |name: &String| {
        let fitting = settings.iter().filter(|s| fits(&s.column, name));
        fitting.max_by_key(|s| s.column.len()).map_or(0.0, |s| s.value)
    };
    let mut all: Vec<f64> = names.iter().map(of).collect();
    let last = all.split_off(mechanism.nv());
    Ok(Some(RateNoise { rates: all, momentum: std::array::from_fn(|k| last[k]) }))
}

/// Returns whether `key` is the name of a column, the part of it before a dot, or a vector without the component.
fn fits(key: &str, name: &str) -> bool {
    name.strip_prefix(key).is_some_and(|rest| {
        rest.is_empty() || rest.starts_with('.') || (key.contains('.') && matches!(rest, "x" | "y" | "z"))
    })
}
