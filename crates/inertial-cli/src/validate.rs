//! `inertial validate`: validation of model predictions with measured data.

use anyhow::Result;
use inertial::identifiability::Measured;
use inertial_app::Model;
use inertial_app::disk::OutputFiles;
use inertial_app::validate::{Options, run as validate};
use inertial_report::identification::{Predicted, TotalResidual, residuals};
use inertial_report::page;

use crate::options::{LogArgs, ModelArgs, OUTPUT, choice};
use crate::output::Answer;
use crate::pictures::Pictures;
use crate::shell::Shell;

const EXAMPLES: &str = "\
Examples:
  inertial validate identified.urdf log.csv
  inertial validate identified.urdf log.csv --threshold 0.1 --json";

const DETAILS: &str = "\
The model's inertias, joint damping and friction (and rotors, armature) predict the torques. The
residual is measured minus predicted torque, in the band of the filter, relative to the measured
torque. Offsets and other values that the model's format cannot hold are read from the joint file
beside it (robot.joints.json), which 'identify --out' writes.

With --measured momentum the model of a free-flying robot predicts its momentum from its rates.

--threshold needs at least 16 usable samples of every joint.

Exit status: 0 done and not above --threshold, 1 above it or too few samples, 2 bad input.

";

/// Compare the predictions of a model with measured data
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, after_long_help = [DETAILS, EXAMPLES].concat())]
pub struct Args {
    /// Model file, '-' for standard input, or builtin:NAME
    #[arg(value_name = "MODEL")]
    model: String,
    /// Logs to predict
    #[arg(value_name = "LOG", required = true)]
    logs: Vec<String>,
    /// Measured quantities of the logs: momentum of a free-flying robot, else forces
    #[arg(long, value_name = "WHAT", value_parser = choice::<Measured>())]
    measured: Option<Measured>,
    /// Largest relative residual of all joints together that passes
    #[arg(long, value_name = "REL")]
    threshold: Option<f64>,
    /// Print the result as JSON
    #[arg(long, help_heading = OUTPUT)]
    json: bool,
    #[command(flatten)]
    pictures: Pictures,
    #[command(flatten)]
    log: LogArgs,
    #[command(flatten)]
    options: ModelArgs,
}

pub fn run(args: &Args, shell: &Shell) -> Result<Answer> {
    shell.reserve(args.pictures.outputs())?;
    let model = Model::load(&args.model, &args.options.options(), shell.disk())?;
    let (log, context) = (args.log.options(), shell.context());
    let model = model.float_logged_base(&args.logs, &log, &context)?;
    let model = model.hold_unlogged(&args.logs, &log, &context)?;
    let options = Options::default().with(|o| {
        o.logs.clone_from(&args.logs);
        o.measured = args.measured;
        o.threshold = args.threshold;
        o.log = args.log.options();
        o.draw = args.pictures.wanted();
    });
    let mut outcome = validate(&model, &options, &context)?;
    let mut files = OutputFiles::new(shell.disk());
    let drawn = args.pictures.draw(shell, &options.files(), &mut files, |origin| {
        page::of_validation(&model, &mut outcome, origin, &context)
    })?;
    shell.write(files, args.json)?;
    if args.json {
        shell.print_json(&outcome)?;
    } else {
        let result = &outcome.result;
        let all = TotalResidual {
            relative_rms: result.relative_rms,
            relative_rms_raw: result.relative_rms_raw,
            left_out: result.left_out,
        };
        let (title, predicted) = match outcome.measured {
            Some(_) => ("component", Predicted::Momentum),
            None => ("joint", Predicted::Forces),
        };
        shell.print(&(residuals(title, &result.joints, all, predicted, shell.style()) + &drawn))?;
    }
    Ok(Answer::of(outcome.passed))
}
