//! `identify --follow`: estimates while a stream grows.

use std::fs::File;
use std::io::{IsTerminal, Read, stdout};

use anyhow::{Context, Result, ensure};
use inertial::consistency::significant;
use inertial::dynamics::{InverseDynamics, Samples};
use inertial::estimation::{Equations, Identification, IdentifyOptions, Measurements, Online, identify};
use inertial::mechanism::DEFAULT_SNAP;
use inertial_data::{CsvReader, FixedLag, StreamSample};
use serde::Serialize;

use super::Args;
use crate::model::Model;
use crate::output::{self, Answer};

/// Samples taken in at once: few, so that forgetting is smooth.
const BLOCK: usize = 16;

#[derive(Debug, clap::Args)]
pub struct FollowOptions {
    /// Read a growing CSV stream ('-' for standard input) and print an estimate at intervals
    #[arg(long, value_name = "STREAM", conflicts_with_all = ["logs", "validate", "holdout", "summary_out", "out", "payload"])]
    pub follow: Option<String>,
    /// With --follow: seconds of the log between estimates
    #[arg(long, value_name = "S", default_value_t = 1.0, value_parser = super::positive)]
    every: f64,
    /// With --follow: seconds after which a sample has faded to 1/e [default: never]
    #[arg(long, value_name = "S", value_parser = super::positive)]
    forget: Option<f64>,
    /// With --follow: seconds over which motion and torques are smoothed; results lag by half of it
    #[arg(long, value_name = "S", default_value_t = 0.2, value_parser = super::positive)]
    window: f64,
}

/// An estimate with its time.
#[derive(Serialize)]
struct Timed<'r> {
    t: f64,
    #[serde(flatten)]
    result: &'r Identification,
}

pub fn run(args: &Args, stream: &str) -> Result<Answer> {
    ensure!(!args.pictures.wanted(), "--follow draws nothing: a stream has no end");
    ensure!(args.model != "-" || stream != "-", "the model and the stream cannot both be standard input");
    let model = Model::load(&args.model)?;
    let mechanism = model.build(&args.options.build_options())?;
    let joint_model = super::joint_model(args, &mechanism)?;
    ensure!(joint_model.columns.is_empty(), "--joint-model: a stream has no further columns for formulas");
    let equations =
        Equations::new(&mechanism, joint_model, DEFAULT_SNAP).with_context(|| model.label.clone())?;
    let options = super::options(args, &mechanism)?;
    let (input, name): (Box<dyn Read + Send>, _) = if stream == "-" {
        (Box::new(std::io::stdin()), "standard input")
    } else {
        (Box::new(File::open(stream).with_context(|| stream.to_owned())?), stream)
    };
    let mut reader = CsvReader::new(input, name)?;
    let mut filter: Option<FixedLag<'_>> = None;
    let mut state = State::new(args, &equations, options);
    while let Some(rows) = reader.next_block(1)? {
        let filter = match &mut filter {
            Some(filter) => filter,
            none => {
                let new = FixedLag::new(&mechanism, &rows, args.follow.window, &args.log.options(&[]))?;
                new.notes().iter().for_each(|note| output::say(&format!("{name}: {note}")));
                none.insert(new)
            }
        };
        for sample in filter.push(&rows)? {
            state.take(sample).with_context(|| name.to_owned())?;
        }
    }
    state.finish().with_context(|| name.to_owned())?;
    Ok(Answer::Yes)
}

/// The filter, the samples that it has not taken in yet, and when to print.
struct State<'a, 'e, 'm> {
    args: &'a Args,
    equations: &'e Equations<'m>,
    options: IdentifyOptions,
    dynamics: InverseDynamics,
    online: Option<Online<'e, 'm>>,
    waiting: Vec<StreamSample>,
    /// Times of the first and last sample, and of the next estimate.
    first: Option<f64>,
    last: f64,
    due: f64,
    printed: bool,
}

impl<'a, 'e, 'm> State<'a, 'e, 'm> {
    fn new(args: &'a Args, equations: &'e Equations<'m>, options: IdentifyOptions) -> Self {
        let dynamics = InverseDynamics::new(equations.mechanism());
        Self {
            args,
            equations,
            options,
            dynamics,
            online: None,
            waiting: Vec::with_capacity(BLOCK),
            first: None,
            last: 0.0,
            due: 0.0,
            printed: false,
        }
    }

    fn take(&mut self, sample: StreamSample) -> Result<()> {
        let t = sample.t;
        if self.first.is_none() {
            self.first = Some(t);
            self.due = t + self.args.follow.every;
        }
        self.last = t;
        self.waiting.push(sample);
        if self.waiting.len() == BLOCK {
            self.absorb()?;
        }
        if t >= self.due {
            self.absorb()?;
            self.estimate(false)?;
            // Also after a long hole the next interval begins now.
            self.due = t + self.args.follow.every;
        }
        Ok(())
    }

    fn absorb(&mut self) -> Result<()> {
        let (Some(first), Some(last)) = (self.waiting.first(), self.waiting.last()) else { return Ok(()) };
        if self.online.is_none() {
            // The rate of the stream, from its first block.
            let step = (last.t - first.t) / (self.waiting.len().max(2) - 1) as f64;
            let keep = self.args.follow.forget.map_or(1.0, |s| (-step / s).exp());
            self.online = Some(Online::new(self.equations, keep)?);
        }
        let Some(online) = &mut self.online else { return Ok(()) };
        let all = |of: fn(&StreamSample) -> &Vec<f64>| -> Vec<f64> {
            self.waiting.iter().flat_map(|s| of(s).iter().copied()).collect()
        };
        let [q, v, a, tau, raw] =
            [all(|s| &s.q), all(|s| &s.v), all(|s| &s.a), all(|s| &s.tau), all(|s| &s.tau_raw)];
        let keep: Vec<bool> = self.waiting.iter().flat_map(|s| s.keep.iter().copied()).collect();
        let samples = Samples::new(&self.dynamics, self.waiting.len(), &q, &v, &a)?;
        let mut data = Measurements::new(samples, &tau);
        data.tau_raw = Some(&raw);
        data.keep = Some(&keep);
        data.independent =
            self.waiting.iter().map(|s| s.independent).sum::<f64>() / self.waiting.len() as f64;
        online.absorb(&data)?;
        self.waiting.clear();
        Ok(())
    }

    /// Prints an estimate; while there are too few samples for one there is none, unless it is the last.
    fn estimate(&mut self, last: bool) -> Result<()> {
        let Some(online) = &self.online else { return Ok(()) };
        let result = match identify(self.equations, &online.summary(), None, &self.options) {
            Ok(result) => result,
            Err(_) if !last => return Ok(()),
            Err(e) => return Err(e.into()),
        };
        self.printed = true;
        if self.args.json || !stdout().is_terminal() {
            let timed = Timed { t: self.last, result: &result };
            output::print(&(serde_json::to_string(&timed)? + "\n"))
        } else {
            output::print(&line(self.last, &result))
        }
    }

    fn finish(&mut self) -> Result<()> {
        ensure!(
            self.first.is_some(),
            "ended before a whole window of {} s: nothing can be said",
            self.args.follow.window
        );
        self.absorb()?;
        self.estimate(true)
    }
}

/// One line for people.
fn line(t: f64, result: &Identification) -> String {
    let masses: Vec<String> =
        result.bodies.iter().map(|b| format!("{} {}", b.name, significant(b.mass, 4))).collect();
    format!(
        "t {:.2} s  {} of {} shown  fit {:.2} %  masses (kg): {}\n",
        t,
        result.excited,
        result.rank,
        100.0 * result.fit_relative_rms,
        masses.join(", ")
    )
}
