//! Logs and summaries from files.

use std::io::Read;
use std::ops::Range;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use clap::ValueEnum;
use inertial::dynamics::{InverseDynamics, Samples};
use inertial::estimation::{Equations, Measurements, RowFilter, Summary};
use inertial::mechanism::Mechanism;
use inertial_data::{ColumnMap, Cutoff, Filter, Need, Options, Prepared, PreparedLog, Reader, Source, open};

use crate::{output, progress, session};

/// Bandwidths of the motion kept for Stribeck friction: a joint that turns back passes the bend, some tenths of its greatest speed
/// wide, in a fraction of its period, and a low-pass of five bandwidths leaves nothing of it.
const STRIBECK_BANDWIDTHS: f64 = 40.0;

/// How logs are prepared.
#[derive(Debug, clap::Args)]
pub struct LogOptions {
    /// Cut-off of the zero-phase low-pass in Hz, 'auto' (from the motion's spectrum) or 'off'
    #[arg(long, value_name = "HZ", default_value = "auto", value_parser = cutoff)]
    cutoff: Choice,
    /// Kind of the low-pass; 'off' is --cutoff off
    #[arg(long, value_enum, default_value = "butterworth")]
    filter: FilterChoice,
    /// Order of the filter: 4 for butterworth (each way), 3 for the polynomials of savitzky-golay
    #[arg(long, value_name = "N")]
    filter_order: Option<usize>,
    /// Samples of the savitzky-golay window, an odd number [default: chosen by the cut-off]
    #[arg(long, value_name = "N")]
    filter_window: Option<usize>,
    /// Put the log on a grid of this rate before filtering [default: its own mean rate]
    #[arg(long, value_name = "HZ")]
    resample: Option<f64>,
    /// Keep every Nth sample after filtering [default: 8 per period of the cut-off]
    #[arg(long, value_name = "N", value_parser = samples)]
    decimate: Option<usize>,
    /// Names and units of the log's columns, in TOML
    #[arg(long, value_name = "MAP")]
    columns: Option<PathBuf>,
    /// Topic of an MCAP log [default: the only one with joint states]
    #[arg(long, value_name = "TOPIC")]
    topic: Option<String>,
    /// Leave out joints slower than this share of their greatest speed: the sign of their friction is uncertain
    #[arg(long, value_name = "SHARE", default_value_t = Options::default().slow)]
    slow: f64,
    /// Joints whose torques count, by name; columns of others are not read [default: all]
    #[arg(long, value_name = "A,B,C", value_delimiter = ',')]
    joints: Vec<String>,
    /// Believe the units of the log even where they look wrong
    #[arg(long)]
    trust_units: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum FilterChoice {
    Butterworth,
    SavitzkyGolay,
    Off,
}

/// clap wants a type of its own.
#[derive(Debug, Clone, Copy)]
struct Choice(Cutoff);

fn cutoff(text: &str) -> Result<Choice, String> {
    match text {
        "auto" => Ok(Choice(Cutoff::Auto)),
        "off" => Ok(Choice(Cutoff::Off)),
        _ => match text.parse() {
            Ok(hz) if hz > 0.0 && f64::is_finite(hz) => Ok(Choice(Cutoff::Hz(hz))),
            _ => Err("expected a frequency in Hz, 'auto' or 'off'".into()),
        },
    }
}

fn samples(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|&n| n > 0).ok_or_else(|| "expected a number of samples, one at least".into())
}

impl LogOptions {
    /// Whether the units of the log are believed whatever they look like.
    pub fn trust_units(&self) -> bool {
        self.trust_units
    }

    /// Files that were read for it.
    pub fn files(&self) -> impl Iterator<Item = String> + '_ {
        self.columns.iter().map(|p| p.display().to_string())
    }

    /// How logs are prepared, with further columns.
    pub fn options(&self, extra: &[String]) -> Options {
        let filter = match self.filter {
            FilterChoice::SavitzkyGolay => {
                Filter::SavitzkyGolay { window: self.filter_window, order: self.filter_order.unwrap_or(3) }
            }
            FilterChoice::Butterworth | FilterChoice::Off => {
                Filter::Butterworth { order: self.filter_order.unwrap_or(4) }
            }
        };
        Options {
            cutoff: if self.filter == FilterChoice::Off { Cutoff::Off } else { self.cutoff.0 },
            filter,
            resample: self.resample,
            decimate: self.decimate.unwrap_or(0),
            slow: self.slow,
            torque_joints: self.joints.clone(),
            trust_units: self.trust_units,
            extra: extra.to_vec(),
            ..Options::default()
        }
    }

    /// Opens a log of any format, with the column map.
    pub fn reader(&self, path: &str) -> Result<Box<dyn Reader>> {
        let map = match &self.columns {
            Some(file) => {
                let name = file.display().to_string();
                let text = std::fs::read_to_string(file).with_context(|| name.clone())?;
                Some(ColumnMap::parse(&text, name)?)
            }
            None => None,
        };
        Ok(open(Path::new(path), &Source { map, topic: self.topic.clone() })?)
    }

    /// Names of a log's columns.
    pub fn names(&self, path: &str) -> Result<Vec<String>> {
        Ok(self.reader(path)?.names().to_vec())
    }

    /// Prepares a log with further columns, to be read in parts: memory does not depend on the log's length. What was repaired
    /// or chosen is said on standard error.
    pub fn open_with(
        &self,
        mechanism: &Mechanism,
        path: &str,
        extra: &[String],
        torques: Need,
        stribeck: bool,
    ) -> Result<PreparedLog> {
        let windowed = self.filter == FilterChoice::SavitzkyGolay;
        ensure!(windowed || self.filter_window.is_none(), "--filter-window is for --filter savitzky-golay");
        let off = self.filter == FilterChoice::Off;
        ensure!(!off || !matches!(self.cutoff.0, Cutoff::Hz(_)), "--filter off has no cut-off");
        let mut options = Options { torques, ..self.options(extra) };
        if stribeck {
            options.bandwidths = STRIBECK_BANDWIDTHS;
        }
        let log =
            PreparedLog::watched(mechanism, &mut self.reader(path)?, &options, &mut progress::prepared)?;
        log.notes().iter().for_each(|note| output::say(&format!("{path}: {note}")));
        Ok(log)
    }
}

/// What a prepared log says of the unknowns.
pub fn summarise(equations: &Equations<'_>, log: &Prepared) -> Result<Summary> {
    let dynamics = InverseDynamics::new(equations.mechanism());
    let samples = Samples::new(&dynamics, log.len(), &log.q, &log.v, &log.a)?;
    let mut data = Measurements::new(samples, &log.tau);
    data.tau_raw = Some(&log.tau_raw);
    data.keep = Some(&log.keep);
    if !equations.joint_model().columns.is_empty() {
        data.columns = Some(&log.extra);
    }
    (data.independent, data.filter) = (log.independent(), log.row_filter.as_ref());
    Ok(Summary::new(equations, &data)?)
}

/// Numbers of a log held at once: the forces of some ten thousand samples of an arm.
const HELD: usize = 1 << 19;

/// A part of a log that is held at once.
pub struct Part {
    /// Its samples, with those that the rows' filter reaches.
    pub samples: Range<usize>,
    /// How many of them are before and after those at which rows are centred.
    pub beyond: [usize; 2],
}

/// Cuts samples of a log into parts. They depend on the model alone, so what is summed does not depend on the machine.
pub fn parts(
    mechanism: &Mechanism,
    range: Range<usize>,
    filter: Option<&RowFilter>,
) -> impl Iterator<Item = Part> + use<> {
    let size = (HELD / mechanism.nv().max(1)).next_multiple_of(Summary::PART);
    let reach = filter.map_or(0, RowFilter::half);
    range.clone().step_by(size).map(move |start| {
        let end = range.end.min(start + size);
        let samples = start.saturating_sub(reach).max(range.start)..(end + reach).min(range.end);
        let beyond = [start - samples.start, samples.end - end];
        Part { samples, beyond }
    })
}

/// Summaries have some kilobytes per joint.
const LIMIT: u64 = 64 << 20;

/// A summary that an earlier run saved, where the file is one.
pub fn saved_summary(path: &str) -> Result<Option<Summary>> {
    if let Some(given) = session::summary(path) {
        return Ok(Some(given));
    }
    let named = Path::new(path).extension().is_some_and(|e| e == "json" || e == "summary");
    if !named {
        return Ok(None);
    }
    let mut text = String::new();
    let read = std::fs::File::open(path).and_then(|f| f.take(LIMIT + 1).read_to_string(&mut text));
    read.with_context(|| path.to_owned())?;
    ensure!(text.len() as u64 <= LIMIT, "{path}: is larger than any summary");
    serde_json::from_str(&text).with_context(|| format!("{path}: is no summary")).map(Some)
}
