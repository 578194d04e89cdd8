//! `inertial columns`: columns of a log and their interpretation.

use std::path::PathBuf;

use anyhow::Result;
use inertial_app::Model;
use inertial_app::columns::{Options, run as list};
use inertial_app::disk::OutputFiles;
use inertial_app::logs::LogOptions;
use inertial_report::columns as text;

use crate::options::{ModelArgs, OUTPUT};
use crate::output::Answer;
use crate::shell::Shell;

const EXAMPLES: &str = "\
Examples:
  inertial columns log.csv
  inertial columns log.csv robot.urdf      with the joints of a model
  inertial columns log.csv --out map.toml  a column map to edit
  inertial identify robot.urdf log.csv --columns map.toml";

const DETAILS: &str = "\
Columns are recognized by their names: time, joints by number (from 0 or 1) or by name, positions,
velocities, accelerations and torques as controllers and programs of the field call them (UR RTDE,
Franka, KUKA, ABB, Unitree, ROS, PlotJuggler). identify and validate recognize them in the same way
and report it. Commands and external torques are not used. Currents need a scale in a column map.

Exit status: 0 done, 1 the log lacks a column that MODEL needs, 2 bad input.

";

/// List the columns of a log and their interpretation
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, after_long_help = [DETAILS, EXAMPLES].concat())]
pub struct Args {
    /// Log file
    #[arg(value_name = "LOG")]
    log: String,
    /// Model file, or builtin:NAME
    #[arg(value_name = "MODEL")]
    model: Option<String>,
    /// Names and units of the log's columns, in TOML
    #[arg(long, value_name = "MAP")]
    columns: Option<String>,
    /// Topics of a ROS bag, separated by commas [default: the only one with joint states]
    #[arg(long, value_name = "TOPICS")]
    topic: Option<String>,
    /// Sampling rate of a log without a time column
    #[arg(long, value_name = "HZ")]
    rate: Option<f64>,
    /// Write the column map to a file, completely or not at all
    #[arg(short, long, value_name = "PATH", help_heading = OUTPUT)]
    out: Option<PathBuf>,
    /// Print the result as JSON
    #[arg(long, help_heading = OUTPUT)]
    json: bool,
    #[command(flatten)]
    options: ModelArgs,
}

pub fn run(args: &Args, shell: &Shell) -> Result<Answer> {
    shell.reserve(&args.out)?;
    let model =
        args.model.as_ref().map(|m| Model::load(m, &args.options.options(), shell.disk())).transpose()?;
    let log = LogOptions::default().with(|o| {
        o.columns.clone_from(&args.columns);
        o.topic.clone_from(&args.topic);
        o.rate = args.rate;
    });
    // As identify does.
    let float =
        |model: Model| model.float_logged_base(std::slice::from_ref(&args.log), &log, &shell.context());
    let model = model.map(float).transpose()?;
    let options = Options::default().with(|o| {
        o.log.clone_from(&args.log);
        o.columns.clone_from(&args.columns);
        o.topic.clone_from(&args.topic);
        o.rate = args.rate;
    });
    let outcome = list(model.as_ref(), &options, &shell.context())?;
    let mut files = OutputFiles::new(shell.disk());
    if let Some(path) = &args.out {
        files.add(path, &outcome.map)?;
    }
    shell.write(files, args.json)?;
    if args.json {
        shell.print_json(&outcome)?;
    } else {
        shell.print(&text::text(&outcome, shell.style()))?;
    }
    Ok(Answer::of(outcome.missing.is_none()))
}
