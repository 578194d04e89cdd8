//! Options that are common to several commands.

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use inertial::mechanism::{Base, RotorModel};
use inertial_app::ModelOptions;
use inertial_app::choice::{Choice, FilterKind};
use inertial_app::logs::{LogOptions, parse_cutoff};
use inertial_app::model::Argument;
use inertial_app::setting::Setting;
use inertial_data::Cutoff;

/// Help heading of model options.
pub const MODEL: &str = "Model";
/// Help heading of options for the preparation of logs.
pub const LOGS: &str = "Preparation of logs";
/// Help heading of output options.
pub const OUTPUT: &str = "Output";

/// Returns the parser of a choice.
pub fn choice<T: Choice>() -> impl TypedValueParser<Value = T> {
    let values = T::ALL.iter().map(|(_, word, about)| {
        let value = PossibleValue::new(*word);
        if about.is_empty() { value } else { value.help(*about) }
    });
    PossibleValuesParser::new(values)
        .try_map(|word| T::from_word(&word).ok_or_else(|| format!("'{word}' is not one of the choices")))
}

/// Model options.
#[derive(Debug, Args)]
#[command(next_help_heading = MODEL)]
pub struct ModelArgs {
    /// Whether the base is fixed or floating [default: fixed unless the model or the logs have a floating base]
    #[arg(long, value_name = "BASE", value_parser = choice::<Base>())]
    base: Option<Base>,
    /// Gravity in m/s², world frame; 0,0,0 is allowed [default: that of the model, else 0,0,-9.81]
    #[arg(long, value_name = "X,Y,Z", allow_hyphen_values = true, value_parser = numbers::<3>, hide_short_help = true)]
    gravity: Option<[f64; 3]>,
    /// Parameterisation of geared rotors: as mass of their carriers, by their inertia about the axis, or by all ten
    /// parameters [default: that of the model; identify adds inertias that the data require]
    #[arg(long, value_name = "ROTORS", value_parser = choice::<RotorModel>())]
    rotors: Option<RotorModel>,
    /// Lock a joint at a position (rad or m), so that its links form one body; for joints that a log does not have
    #[arg(long, value_name = "JOINT=VALUE", hide_short_help = true)]
    lock: Vec<Setting>,
    /// Value of an argument of a xacro file, as for the program xacro
    #[arg(long, value_name = "NAME:=VALUE", hide_short_help = true)]
    xacro_arg: Vec<Argument>,
    /// Refuse models that are read with warnings
    #[arg(long, hide_short_help = true)]
    strict: bool,
}

impl ModelArgs {
    /// Converts to the options of the application.
    pub fn options(&self) -> ModelOptions {
        ModelOptions::default().with(|o| {
            o.base = self.base;
            o.gravity = self.gravity;
            o.rotors = self.rotors;
            o.lock.clone_from(&self.lock);
            o.xacro_arg.clone_from(&self.xacro_arg);
            o.strict = self.strict;
        })
    }
}

/// Options for the preparation of logs.
#[derive(Debug, Args)]
#[command(next_help_heading = LOGS)]
pub struct LogArgs {
    /// Names and units of the log's columns, in TOML ('inertial columns' prints such a map)
    #[arg(long, value_name = "MAP")]
    columns: Option<String>,
    /// Cut-off of the zero-phase low-pass filter in Hz, 'auto' (from the spectrum of the motion) or 'off'
    #[arg(long, value_name = "HZ", default_value = "auto", value_parser = cutoff)]
    cutoff: Word,
    /// Kind of the low-pass filter; 'off' is the same as --cutoff off
    #[arg(long, value_name = "KIND", value_parser = choice::<FilterKind>(), hide_short_help = true,
          default_value = LogOptions::default().filter.word())]
    filter: FilterKind,
    /// Order of the filter: 4 for butterworth (each way), 3 for the polynomials of savitzky-golay
    #[arg(long, value_name = "N", hide_short_help = true)]
    filter_order: Option<usize>,
    /// Samples of the savitzky-golay window, an odd number [default: derived from the cut-off]
    #[arg(long, value_name = "N", hide_short_help = true)]
    filter_window: Option<usize>,
    /// Sampling rate of logs without a time column
    #[arg(long, value_name = "HZ", hide_short_help = true)]
    rate: Option<f64>,
    /// Resample the log at this rate before filtering [default: its mean rate]
    #[arg(long, value_name = "HZ", hide_short_help = true)]
    resample: Option<f64>,
    /// Delay of the torques or sensor readings relative to the motion; 0 for none [default: identify estimates it, validate uses that of the joint file, otherwise none]
    #[arg(long, value_name = "S", hide_short_help = true, allow_negative_numbers = true)]
    lag: Option<f64>,
    /// Keep every Nth sample after filtering [default: 8 per period of the cut-off]
    #[arg(long, value_name = "N", value_parser = samples, hide_short_help = true)]
    decimate: Option<usize>,
    /// Topics of a ROS bag, separated by commas [default: the only one with joint states]
    #[arg(long, value_name = "TOPICS", hide_short_help = true)]
    topic: Option<String>,
    /// Leave out samples of joints slower than this fraction of their greatest speed, where the sign of friction is uncertain
    #[arg(long, value_name = "SHARE", default_value_t = LogOptions::default().slow, hide_short_help = true)]
    slow: f64,
    /// Joints whose torques are used, by name; columns of others are not read [default: all but torques that are zero throughout]
    #[arg(long, value_name = "A,B,C", value_delimiter = ',', hide_short_help = true)]
    joints: Vec<String>,
    /// Accept the units of the log even if they look wrong
    #[arg(long, hide_short_help = true)]
    trust_units: bool,
}

/// Wrapper of a cut-off; clap requires a separate type.
#[derive(Debug, Clone, Copy)]
struct Word(Cutoff);

fn cutoff(text: &str) -> Result<Word, String> {
    parse_cutoff(text).map(Word)
}

fn samples(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|&n| n > 0).ok_or_else(|| "expected a number of samples, at least one".into())
}

impl LogArgs {
    /// Converts to the options of the application.
    pub fn options(&self) -> LogOptions {
        LogOptions::default().with(|o| {
            o.cutoff = self.cutoff.0;
            o.filter = self.filter;
            o.filter_order = self.filter_order;
            o.filter_window = self.filter_window;
            o.rate = self.rate;
            o.resample = self.resample;
            o.lag = self.lag;
            o.decimate = self.decimate;
            o.columns.clone_from(&self.columns);
            o.topic.clone_from(&self.topic);
            o.slow = self.slow;
            o.joints.clone_from(&self.joints);
            o.trust_units = self.trust_units;
        })
    }
}

/// Parses `N` numbers that are separated by commas.
pub fn numbers<const N: usize>(text: &str) -> Result<[f64; N], String> {
    let expected = || format!("expected {N} numbers separated by commas, not '{text}'");
    let values: Vec<f64> =
        text.split(',').map(|x| x.trim().parse()).collect::<Result<_, _>>().map_err(|_| expected())?;
    <[f64; N]>::try_from(values).ok().filter(|v| v.iter().all(|x| x.is_finite())).ok_or_else(expected)
}

/// Parses a positive number.
pub fn positive(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(x) if x > 0.0 && x.is_finite() => Ok(x),
        _ => Err("expected a number above zero".into()),
    }
}

/// Parses a fraction between 0 and 1.
pub fn fraction(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(x) if x > 0.0 && x < 1.0 => Ok(x),
        _ => Err("expected a fraction between 0 and 1".into()),
    }
}
