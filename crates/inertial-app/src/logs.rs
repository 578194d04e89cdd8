//! Logs and summaries: preparation of logs, and reduction to normal equations.

use std::ops::{Range, RangeInclusive};

use inertial::dynamics::{InverseDynamics, Samples};
use inertial::estimation::{Equations, LogSource, Measurements, RowFilter, Summary};
use inertial::mechanism::Mechanism;
use inertial_data::{
    AbsentColumn, ColumnMap, Cutoff, Filter, Options, Prepared, PreparedLog, Reader, Requirement, Source,
    TimedRows,
};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use crate::choice::{self, FilterKind};
use crate::{Context, Error, Located, Note, Result, ensure_option};

/// Fraction of the work on a log that is its preparation; the rest is the summary of its samples.
pub(crate) const PREPARED: f64 = 0.7;

/// Size limit (bytes) of handwritten texts beside a model and its logs: column maps, joint models, bounds.
pub(crate) const TEXT_LIMIT: u64 = 16 << 20;

/// Valid range of frequencies (Hz) in options.
const FREQUENCIES: RangeInclusive<f64> = 1e-6..=1e9;

/// Options that determine the content of a summary.
const PREPARATION: [&str; 10] = [
    "cutoff",
    "filter",
    "filter-order",
    "filter-window",
    "rate",
    "resample",
    "lag",
    "decimate",
    "slow",
    "joints",
];

/// Preparation of logs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct LogOptions {
    /// Cut-off of the zero-phase low-pass filter: a frequency in Hz, `auto` (from the spectrum of the motion) or `off`.
    #[serde(serialize_with = "write_cutoff", deserialize_with = "read_cutoff")]
    #[schemars(with = "CutoffText")]
    pub cutoff: Cutoff,
    /// Kind of the low-pass filter.
    #[serde(with = "choice")]
    #[schemars(with = "choice::Words<FilterKind>")]
    pub filter: FilterKind,
    /// Order of the filter; by default 4 for Butterworth (each way), 3 for the polynomials of Savitzky and Golay.
    pub filter_order: Option<usize>,
    /// Number of samples of the Savitzky-Golay window, odd; derived from the cut-off if absent.
    pub filter_window: Option<usize>,
    /// Sampling rate (Hz) of logs without a time column.
    pub rate: Option<f64>,
    /// Rate (Hz) of the grid before filtering; the mean rate of the log if absent.
    pub resample: Option<f64>,
    /// Delay (s) of the torques relative to the motion; by default identifications estimate it and correct it if it is significant.
    pub lag: Option<f64>,
    /// Decimation factor after filtering; by default eight samples per period of the cut-off are kept.
    pub decimate: Option<usize>,
    /// Name of the input with names and units of the log's columns, in TOML.
    pub columns: Option<String>,
    /// Topics of a ROS bag, separated by commas; by default the only one with joint states.
    pub topic: Option<String>,
    /// Fraction of its largest speed below which a joint is left out, since the sign of its friction is uncertain.
    pub slow: f64,
    /// Joints whose torques are used; all if empty.
    pub joints: Vec<String>,
    /// Whether the units of the log are accepted even if they look wrong.
    pub trust_units: bool,
    /// Whether logs may contain static poses; identifications of payloads set it.
    #[serde(skip)]
    pub poses: bool,
}

inertial::with_changes!(LogOptions);

impl Default for LogOptions {
    fn default() -> Self {
        Self {
            cutoff: Cutoff::Auto,
            filter: FilterKind::Butterworth,
            filter_order: None,
            filter_window: None,
            rate: None,
            resample: None,
            lag: None,
            decimate: None,
            columns: None,
            topic: None,
            slow: Options::default().slow,
            joints: Vec::new(),
            trust_units: false,
            poses: false,
        }
    }
}

/// Cut-off as written in options.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
enum CutoffText {
    Hz(f64),
    Word(String),
}

fn write_cutoff<S: Serializer>(cutoff: &Cutoff, serializer: S) -> Result<S::Ok, S::Error> {
    match cutoff {
        Cutoff::Auto => CutoffText::Word("auto".into()),
        Cutoff::Off => CutoffText::Word("off".into()),
        Cutoff::Hz(hz) => CutoffText::Hz(*hz),
    }
    .serialize(serializer)
}

fn read_cutoff<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Cutoff, D::Error> {
    let text = match CutoffText::deserialize(deserializer)? {
        CutoffText::Hz(hz) => hz.to_string(),
        CutoffText::Word(word) => word,
    };
    parse_cutoff(&text).map_err(serde::de::Error::custom)
}

/// Reads a cut-off: a frequency in Hz, `auto` or `off`.
pub fn parse_cutoff(text: &str) -> Result<Cutoff, String> {
    match text {
        "auto" => Ok(Cutoff::Auto),
        "off" => Ok(Cutoff::Off),
        _ => match text.parse() {
            Ok(hz) if FREQUENCIES.contains(&hz) => Ok(Cutoff::Hz(hz)),
            Ok(hz) if hz > 0.0 => Err(format!(
                "expected a frequency from {:e} to {:e} Hz, 'auto' or 'off'",
                FREQUENCIES.start(),
                FREQUENCIES.end()
            )),
            _ => Err("expected a frequency in Hz, 'auto' or 'off'".into()),
        },
    }
}

impl LogOptions {
    /// Checks the options for consistency.
    pub fn check(&self) -> Result<()> {
        let windowed = self.filter == FilterKind::SavitzkyGolay;
        ensure_option!(
            windowed || self.filter_window.is_none(),
            "filter-window",
            "only the filter savitzky-golay has a window"
        );
        let off = self.filter == FilterKind::Off;
        ensure_option!(
            !off || !matches!(self.cutoff, Cutoff::Hz(_)),
            "cutoff",
            "the filter is off and has no cut-off"
        );
        for (name, rate) in [("rate", self.rate), ("resample", self.resample)] {
            if rate.is_some_and(|hz| !FREQUENCIES.contains(&hz)) {
                let [least, most] = [FREQUENCIES.start(), FREQUENCIES.end()];
                return Err(Error::option(name, format!("expected a rate from {least:e} to {most:e} Hz")));
            }
        }
        ensure_option!(self.decimate != Some(0), "decimate", "expected a number of samples, at least one");
        Ok(())
    }

    /// Returns the options that determine the content of a summary, as a text.
    pub(crate) fn preparation(&self) -> Result<String> {
        // Names of files and topics do not affect the numbers.
        let numbers = Self { columns: None, topic: None, trust_units: false, ..self.clone() };
        Ok(serde_json::to_string(&numbers)?)
    }

    /// Checks that a summary was made with these options, since they cannot be applied to it afterwards.
    pub(crate) fn check_summary(&self, name: &str, summary: &Summary) -> Result<()> {
        let fields = |options: &Self| -> Result<Map<String, Value>> {
            Ok(serde_json::from_str(&options.preparation()?)?)
        };
        let (given, usual) = (fields(self)?, fields(&Self::default())?);
        let made: Vec<Map<String, Value>> = summary
            .sources
            .iter()
            .map(|LogSource { preparation, .. }| serde_json::from_str(preparation).unwrap_or_default())
            .collect();
        for option in PREPARATION {
            let value = |options: &Map<String, Value>| options.get(&option.replace('-', "_")).cloned();
            let wanted = value(&given);
            let same = !made.is_empty() && made.iter().all(|source| value(source) == wanted);
            if wanted != value(&usual) && !same {
                let reason =
                    "is a summary of logs that were prepared with other options: give the logs themselves";
                return Err(Error::option(option, format!("{name} {reason}")));
            }
        }
        Ok(())
    }

    /// Checks that there is a log for the options that determine how logs are read, if all inputs are summaries.
    pub(crate) fn check_summaries_only(&self) -> Result<()> {
        let reason = "summaries contain no columns: give the logs themselves";
        ensure_option!(self.columns.is_none(), "columns", "{reason}");
        ensure_option!(self.topic.is_none(), "topic", "{reason}");
        Ok(())
    }

    /// Returns the names of the inputs that are read besides the logs.
    pub fn files(&self) -> impl Iterator<Item = String> + '_ {
        self.columns.iter().cloned()
    }

    /// Returns the options of the data layer, with additional columns.
    pub(crate) fn options(&self, extra: &[String]) -> Options {
        let filter = match self.filter {
            FilterKind::SavitzkyGolay => {
                Filter::SavitzkyGolay { window: self.filter_window, order: self.filter_order.unwrap_or(3) }
            }
            FilterKind::Butterworth | FilterKind::Off => {
                Filter::Butterworth { order: self.filter_order.unwrap_or(4) }
            }
        };
        Options::default().with(|o| {
            o.cutoff = if self.filter == FilterKind::Off { Cutoff::Off } else { self.cutoff };
            o.filter = filter;
            o.resample = self.resample;
            o.lag = self.lag.unwrap_or(0.0);
            o.decimate = self.decimate.unwrap_or(0);
            o.slow = self.slow;
            o.torque_joints.clone_from(&self.joints);
            o.trust_units = self.trust_units;
            o.extra = extra.to_vec();
            o.poses = self.poses;
        })
    }

    /// Prepares a whole log for callers that need its samples. The result contains the notes.
    pub fn prepare(&self, context: &Context<'_>, mechanism: &Mechanism, name: &str) -> Result<Prepared> {
        self.check()?;
        let mut reader = self.reader(context, Some(mechanism), name)?;
        Ok(PreparedLog::new(mechanism, reader.as_mut(), &self.options(&[]))?.read_all()?)
    }

    /// Opens a log of any format with the column map; other columns are recognized by the joint names of the mechanism.
    pub(crate) fn reader(
        &self,
        context: &Context<'_>,
        mechanism: Option<&Mechanism>,
        name: &str,
    ) -> Result<Box<dyn Reader>> {
        let map = match &self.columns {
            Some(file) => {
                let text = context.inputs.text(file, TEXT_LIMIT).at(file)?;
                Some(ColumnMap::parse(&text, file.clone())?)
            }
            None => None,
        };
        let joints = mechanism.map_or(Vec::new(), |m| m.joints().iter().map(|j| j.name.clone()).collect());
        let source = Source::default().with(|s| {
            s.map = map;
            s.joints = joints;
            s.topic.clone_from(&self.topic);
        });
        timed(context.inputs.log(name, &source)?, name, self.rate)
    }

    /// Prepares a log with additional columns for reading in parts, so that memory use does not depend on the length
    /// of the log. Notes report repairs and choices.
    pub(crate) fn open_with(
        &self,
        context: &Context<'_>,
        mechanism: &Mechanism,
        name: &str,
        extra: &[String],
        torques: Requirement,
    ) -> Result<PreparedLog> {
        self.check()?;
        let options = self.options(extra).with(|o| o.torques = torques);
        let mut reader = self.reader(context, Some(mechanism), name)?;
        let log = PreparedLog::with_progress(mechanism, &mut reader, &options, &mut |share| {
            context.progress.share(PREPARED * share);
        })
        .map_err(|error| held_joints(error, mechanism, reader.names()))?;
        for text in log.notes() {
            context.note(&Note::Log { log: name.to_owned(), text: text.clone() });
        }
        Ok(log)
    }
}

/// Adds times to a log that has none, if its rate is given.
pub(crate) fn timed(reader: Box<dyn Reader>, name: &str, rate: Option<f64>) -> Result<Box<dyn Reader>> {
    let Some(rate) = rate else { return Ok(reader) };
    ensure_option!(
        !reader.names().iter().any(|column| column == "t"),
        "rate",
        "{name} has a time column: a rate is given only for logs without times"
    );
    Ok(Box::new(TimedRows::new(reader, rate)))
}

/// Adds a hint about a joint missing from the log: the column map if the log has other names for all joints, otherwise the option
/// that locks the joint.
fn held_joints(error: inertial_data::Error, mechanism: &Mechanism, names: &[String]) -> Error {
    let is_missing =
        matches!(&error, inertial_data::Error::Columns { absent: Some(AbsentColumn::JointPosition), .. });
    if !is_missing {
        return Error::Data(error);
    }
    let reason = error.to_string();
    match other_names(mechanism, names) {
        Some(map) => {
            let effect = format!("takes a map of the names: {map}").into();
            Error::Hint { reason, option: "columns", effect }
        }
        None => {
            Error::Hint { reason, option: "lock", effect: "locks joints that the log does not have".into() }
        }
    }
}

/// Returns the line `joints = { … }` of a column map if the log has as many positions as the model has joints, some of them under other
/// names. Joints are matched by the model's name within that of the log, otherwise by their order.
pub(crate) fn other_names(mechanism: &Mechanism, names: &[String]) -> Option<String> {
    let is_single = |name: &&String| mechanism.joints().iter().any(|joint| joint.name == **name);
    let all = mechanism.position_names();
    let joints: Vec<&String> = all.iter().filter(is_single).collect();
    let logged: Vec<&str> = names.iter().filter_map(|name| name.strip_prefix("q.")).collect();
    let open: Vec<&str> =
        logged.iter().copied().filter(|name| !joints.iter().any(|joint| *joint == name)).collect();
    let wanted: Vec<&str> =
        joints.iter().map(|joint| joint.as_str()).filter(|joint| !logged.contains(joint)).collect();
    if open.is_empty() || open.len() != wanted.len() || logged.len() != joints.len() {
        return None;
    }
    let within = |name: &str| {
        let longest = wanted.iter().filter(|joint| name.contains(**joint)).max_by_key(|joint| joint.len());
        longest.copied()
    };
    let mut matched: Vec<Option<&str>> = open.iter().map(|name| within(name)).collect();
    let is_complete = wanted.iter().all(|joint| matched.contains(&Some(joint)));
    if !is_complete {
        matched = wanted.iter().map(|joint| Some(*joint)).collect();
    }
    let pairs: Vec<String> = open
        .iter()
        .zip(matched)
        .map(|(name, joint)| format!("{name:?} = {:?}", joint.unwrap_or_default()))
        .collect();
    Some(format!("joints = {{ {} }}", pairs.join(", ")))
}

/// Summarizes a prepared log.
pub fn summarize(equations: &Equations<'_>, log: &Prepared) -> Result<Summary> {
    let dynamics = InverseDynamics::new(equations.mechanism());
    let samples = Samples::new(&dynamics, log.len(), &log.q, &log.v, &log.a)?;
    let mut data = Measurements::new(samples, &log.tau);
    data.tau_raw = Some(&log.tau_raw);
    data.keep = Some(&log.keep);
    data.measured = Some(&log.measured);
    if !equations.joint_model().columns.is_empty() {
        data.columns = Some(&log.extra);
    }
    (data.independent, data.filter) = (log.independent(), log.row_filter.as_ref());
    Ok(Summary::new(equations, &data)?)
}

/// Number of values of a log that are held at once: the forces of about ten thousand samples of an arm.
const MOST_VALUES: usize = 1 << 19;

/// Part of a log that is held at once.
pub struct Part {
    /// Range of the samples, including those that the row filter needs.
    pub samples: Range<usize>,
    /// Numbers of samples before the first and after the last row centre.
    pub beyond: [usize; 2],
}

/// Splits the samples of a log into parts. They depend on the model only, so sums are reproducible across machines.
pub fn parts(
    mechanism: &Mechanism,
    range: Range<usize>,
    filter: Option<&RowFilter>,
) -> impl Iterator<Item = Part> + use<> {
    let size = (MOST_VALUES / mechanism.nv().max(1)).next_multiple_of(Summary::PART);
    let reach = filter.map_or(0, RowFilter::half);
    range.clone().step_by(size).map(move |start| {
        let end = range.end.min(start + size);
        let samples = start.saturating_sub(reach).max(range.start)..(end + reach).min(range.end);
        let beyond = [start - samples.start, samples.end - end];
        Part { samples, beyond }
    })
}
