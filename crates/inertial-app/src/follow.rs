//! Estimation from a stream of samples.

use std::io::Read;
use std::ops::RangeInclusive;

use inertial::dynamics::{InverseDynamics, Samples};
use inertial::estimation::{Equations, Identification, IdentifyOptions, Measurements, Online, identify};
use inertial::identifiability::Measured;
use inertial::mechanism::{Base, DEFAULT_SNAP};
use inertial_data::{CsvReader, FixedLag, Requirement, StreamSample};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::estimate::{Estimate, Subject};
use crate::logs::LogOptions;
use crate::model::BaseMotion;
use crate::unknowns::Unknowns;
use crate::{Context, Error, Located, Model, Note, Result, ensure, ensure_option};

/// Number of samples that are processed at once; small, so that forgetting is smooth.
const BLOCK: usize = 16;

/// Valid range of times (s) in options.
const SECONDS: RangeInclusive<f64> = 1e-6..=1e9;

/// Options of estimates from a stream.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Options {
    /// Unknowns.
    pub unknowns: Unknowns,
    /// Estimation options.
    pub estimate: Estimate,
    /// Preparation of the samples.
    pub log: LogOptions,
    /// Interval between estimates (s of the stream).
    pub every: f64,
    /// Time (s) after which the weight of a sample has decayed to 1/e; no decay if absent.
    pub forget: Option<f64>,
    /// Length (s) of the smoothing window of motion and torques; results lag by half of it.
    pub window: f64,
}

inertial::with_changes!(Options);

impl Default for Options {
    fn default() -> Self {
        Self {
            unknowns: Unknowns::default(),
            estimate: Estimate::default(),
            log: LogOptions::default(),
            every: 1.0,
            forget: None,
            window: 0.2,
        }
    }
}

impl Options {
    /// Checks the options.
    pub fn check(&self) -> Result<()> {
        let given = [("every", Some(self.every)), ("window", Some(self.window)), ("forget", self.forget)];
        for (name, seconds) in given {
            if seconds.is_some_and(|s| !SECONDS.contains(&s)) {
                return Err(Error::option(
                    name,
                    format!("expected a time from {:e} to {:e} s", SECONDS.start(), SECONDS.end()),
                ));
            }
        }
        // A stream is smoothed by its window; nothing else is applied to it.
        let (log, usual) = (&self.log, LogOptions::default());
        let unused = [
            ("cutoff", log.cutoff != usual.cutoff),
            ("filter", log.filter != usual.filter),
            ("filter-order", log.filter_order.is_some()),
            ("filter-window", log.filter_window.is_some()),
            ("resample", log.resample.is_some()),
            ("lag", log.lag.is_some()),
            ("decimate", log.decimate.is_some()),
            ("columns", log.columns.is_some()),
            ("topic", log.topic.is_some()),
        ];
        if let Some((name, _)) = unused.iter().find(|(_, given)| *given) {
            return Err(Error::option(
                name,
                "is not applied to streams: their columns need standard names and units, and only the window smooths",
            ));
        }
        self.log.check()
    }
}

/// Estimate with its time.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Outcome {
    /// Time of the last sample (s).
    pub t: f64,
    /// Result of the estimation.
    #[serde(flatten)]
    pub result: Identification,
}

/// Reads a CSV stream and shows an estimate at intervals of its time, and at its end.
pub fn run(
    model: &Model,
    stream: Box<dyn Read + Send>,
    name: &str,
    options: &Options,
    context: &Context<'_>,
    show: &mut dyn FnMut(&Outcome) -> Result<()>,
) -> Result<()> {
    options.check()?;
    let joints = options.unknowns.given_joint_model(model, context)?;
    ensure_option!(joints.columns.is_empty(), "joint-model", "formulas cannot use log columns of a stream");
    let measured = options.unknowns.measured;
    let floating = model.mechanism.base() == Base::Floating;
    ensure_option!(
        floating || matches!(measured, None | Some(Measured::JointTorques)),
        "measured",
        "a stream with a fixed base needs joint-torques"
    );
    ensure_option!(
        measured != Some(Measured::Momentum),
        "measured",
        "estimation from momentum needs all samples of the logs; streams are not supported"
    );
    ensure_option!(
        model.mechanism.loops().is_empty(),
        "follow",
        "streams are not supported for robots with loops: identify from a log instead"
    );
    ensure_option!(options.log.rate.is_none(), "rate", "a stream needs a column t");
    let mut log = options.log.options(&[]);
    if measured == Some(Measured::BaseWrench) {
        log.torques = Requirement::Optional;
    }
    let equations = Equations::new(&model.mechanism, joints, DEFAULT_SNAP).at(&model.label)?;
    let wanted = options.estimate.options(model, Subject::Robot, context)?;
    let mut reader = CsvReader::new(stream, name)?;
    let mut filter: Option<FixedLag<'_>> = None;
    let mut state = Session::new(options, &equations, wanted, show);
    let mut base = None;
    while let Some(rows) = reader.next_block(1)? {
        context.check_interrupted()?;
        // A base that is fixed only by default must not move: its motion would be attributed to the links.
        if filter.is_none() && model.may_float() {
            base = BaseMotion::new(rows.names());
        }
        if let Some(motion) = &mut base {
            for i in 0..rows.rows().len() {
                motion.add_row(|column| rows.column_at(column)[i]);
            }
            ensure_option!(
                !motion.has_moved(),
                "base",
                "the base moves in {name} (base.*): give floating, or fixed to ignore its motion"
            );
        }
        let filter = match &mut filter {
            Some(filter) => filter,
            none => {
                let new = FixedLag::new(&model.mechanism, &rows, options.window, &log).map_err(of_stream)?;
                for text in new.notes() {
                    context.note(&Note::Log { log: name.to_owned(), text: text.clone() });
                }
                none.insert(new)
            }
        };
        for sample in filter.push(&rows).map_err(of_stream)? {
            state.push(sample).at(name)?;
        }
    }
    state.finish().at(name)
}

/// Returns the error of a stream, for which column maps are not supported.
fn of_stream(error: inertial_data::Error) -> Error {
    match error {
        inertial_data::Error::Units { .. } => Error::Hint {
            reason: error.to_string(),
            option: "trust-units",
            effect: "accepts the values as they are".into(),
        },
        error => error.into(),
    }
}

/// State of the recursive estimation: filter, pending samples, and time of the next estimate.
struct Session<'a, 'e, 'm> {
    own: &'a Options,
    show: &'a mut dyn FnMut(&Outcome) -> Result<()>,
    equations: &'e Equations<'m>,
    options: IdentifyOptions,
    dynamics: InverseDynamics,
    online: Option<Online<'e, 'm>>,
    waiting: Vec<StreamSample>,
    /// Times of the first and last sample, and of the next estimate.
    first: Option<f64>,
    last: f64,
    due: f64,
}

impl<'a, 'e, 'm> Session<'a, 'e, 'm> {
    fn new(
        own: &'a Options,
        equations: &'e Equations<'m>,
        options: IdentifyOptions,
        show: &'a mut dyn FnMut(&Outcome) -> Result<()>,
    ) -> Self {
        let dynamics = InverseDynamics::new(equations.mechanism());
        Self {
            own,
            show,
            equations,
            options,
            dynamics,
            online: None,
            waiting: Vec::with_capacity(BLOCK),
            first: None,
            last: 0.0,
            due: 0.0,
        }
    }

    /// Adds a sample, and shows an estimate if the next one is due.
    fn push(&mut self, sample: StreamSample) -> Result<()> {
        let t = sample.t;
        if self.first.is_none() {
            self.first = Some(t);
            self.due = t + self.own.every;
        }
        self.last = t;
        self.waiting.push(sample);
        if self.waiting.len() == BLOCK {
            self.process_pending()?;
        }
        if t >= self.due {
            self.process_pending()?;
            self.estimate(false)?;
            // The next interval starts now, also after a long gap in the stream.
            self.due = t + self.own.every;
        }
        Ok(())
    }

    /// Adds the pending samples to the recursive estimate.
    fn process_pending(&mut self) -> Result<()> {
        let (Some(first), Some(last)) = (self.waiting.first(), self.waiting.last()) else { return Ok(()) };
        if self.online.is_none() {
            // Sampling interval of the stream, from its first block.
            let step = (last.t - first.t) / (self.waiting.len().max(2) - 1) as f64;
            let keep = self.own.forget.map_or(1.0, |s| (-step / s).exp());
            self.online = Some(Online::new(self.equations, keep)?);
        }
        let Some(online) = &mut self.online else { return Ok(()) };
        let all = |of: fn(&StreamSample) -> &Vec<f64>| -> Vec<f64> {
            self.waiting.iter().flat_map(|s| of(s).iter().copied()).collect()
        };
        let [q, v, a, tau, raw] =
            [all(|s| &s.q), all(|s| &s.v), all(|s| &s.a), all(|s| &s.tau), all(|s| &s.tau_raw)];
        let base = if self.equations.mechanism().base() == Base::Floating { 6 } else { 0 };
        let is_measured = |row: usize| match self.own.unknowns.measured {
            Some(Measured::JointTorques) => row >= base,
            Some(Measured::BaseWrench) => row < base,
            _ => true,
        };
        let kept = |s: &'_ StreamSample| -> Vec<bool> {
            s.keep.iter().enumerate().map(|(row, keep)| *keep && is_measured(row)).collect()
        };
        let keep: Vec<bool> = self.waiting.iter().flat_map(kept).collect();
        let samples = Samples::new(&self.dynamics, self.waiting.len(), &q, &v, &a)?;
        let mut data = Measurements::new(samples, &tau);
        data.tau_raw = Some(&raw);
        data.keep = Some(&keep);
        data.independent =
            self.waiting.iter().map(|s| s.independent).sum::<f64>() / self.waiting.len() as f64;
        online.update(&data)?;
        self.waiting.clear();
        Ok(())
    }

    /// Shows an estimate. Too few samples are an error for the last estimate only; earlier ones are skipped.
    fn estimate(&mut self, last: bool) -> Result<()> {
        let Some(online) = &self.online else { return Ok(()) };
        let result = match identify(self.equations, &online.summary(), None, &self.options) {
            Ok(result) => result,
            Err(_) if !last => return Ok(()),
            Err(e) => return Err(e.into()),
        };
        (self.show)(&Outcome { t: self.last, result })
    }

    /// Processes the remaining samples and shows the last estimate.
    fn finish(&mut self) -> Result<()> {
        ensure!(
            self.first.is_some(),
            "ended before the first window of {} s, so no estimate is possible",
            self.own.window
        );
        self.process_pending()?;
        self.estimate(true)
    }
}
