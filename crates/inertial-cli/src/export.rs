//! `inertial export`: export of values for controllers, simulators and programs.

use std::path::PathBuf;

use anyhow::{Result, bail};
use inertial_app::Model;
use inertial_app::choice::{Choice as _, Inertias, Target};
use inertial_app::disk::OutputFiles;
use inertial_app::export::{Options, is_result, run as export};

use crate::options::{ModelArgs, OUTPUT, choice};
use crate::output::Answer;
use crate::shell::Shell;

const EXAMPLES: &str = "\
Examples:
  inertial export robot.urdf --to c --out arm.c    arm.h, arm.c, arm_test.c
  inertial identify robot.urdf log.csv --json > result.json
  inertial export robot.urdf --values result.json --to c --out arm.c
  inertial identify robot.urdf carried.csv --payload tool0 --json > load.json
  inertial export load.json --to ur                set_payload, in URScript
  inertial export robot.urdf --to kuka --link gripper \\
    --lock finger=0.02 --frame flange";

const DETAILS: &str = "\
INPUT is a model, or a result of 'identify --json' if only its bodies are needed. --values replaces
the bodies, friction and rotor inertias of the model by those of a result. Links that are fixed
together share the inertia of their body in proportion to the model's.

C code: C99, no allocation, no state, SI units; coordinates are listed in the header. The functions
give the forces of a motion, those that hold the robot against gravity, friction, and the regressor
of the base parameters, whose values are there too. The self-test compares them with numbers of the
library: cc arm.c arm_test.c -lm && ./a.out. Robots with loops are not supported.

The load of a controller is the link with everything that fixed and locked joints attach to it. Lock
fingers with --lock to include them. Controllers expect the load in the frame of the flange: --frame
expresses it there. The default is the frame of the link, for a payload that of the link that carries it.

";

/// Export values for controllers, simulators and programs, and C code of the dynamics
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, after_long_help = [DETAILS, EXAMPLES].concat())]
pub struct Args {
    /// Model file, builtin:NAME, or a result of 'identify --json'
    #[arg(value_name = "INPUT")]
    input: String,
    /// Target format
    #[arg(long, value_name = "TARGET", value_parser = choice::<Target>())]
    to: Target,
    /// Result of 'identify --json' whose values replace those of the model
    #[arg(long, value_name = "RESULT")]
    values: Option<String>,
    /// Link that is the load of a controller, with everything that is fixed to it [default: the only body of a result]
    #[arg(long, value_name = "LINK")]
    link: Option<String>,
    /// Link in whose frame the load is expressed [default: that of the load]
    #[arg(long, value_name = "LINK")]
    frame: Option<String>,
    /// Inertias from which the C code computes forces
    #[arg(long, value_name = "WHICH", value_parser = choice::<Inertias>(), default_value = Inertias::default().word())]
    inertias: Inertias,
    /// File to write, completely or not at all; for C code the source, with the other files beside it
    #[arg(short, long, value_name = "PATH", help_heading = OUTPUT)]
    out: Option<PathBuf>,
    /// Print the result as JSON
    #[arg(long, help_heading = OUTPUT)]
    json: bool,
    #[command(flatten)]
    model: ModelArgs,
}

pub fn run(args: &Args, shell: &Shell) -> Result<Answer> {
    shell.reserve(&args.out)?;
    let is_values = is_result(&args.input, shell.disk());
    if is_values && args.values.is_some() {
        bail!("{}: is a result: give the model as INPUT and the result as --values", args.input);
    }
    let options = Options::default().with(|o| {
        o.to = args.to;
        o.values = if is_values { Some(args.input.clone()) } else { args.values.clone() };
        o.link.clone_from(&args.link);
        o.frame.clone_from(&args.frame);
        o.inertias = args.inertias;
    });
    let options = args.out.as_deref().map_or(Ok(options.clone()), |out| options.named_after(out))?;
    if args.to == Target::C && args.out.is_none() && !args.json {
        bail!("C code has several files: give the name of the source with --out, such as --out arm.c");
    }
    let model =
        if is_values { None } else { Some(Model::load(&args.input, &args.model.options(), shell.disk())?) };
    let outcome = export(model.as_ref(), &options, &shell.context())?;
    for warning in &outcome.warnings {
        shell.context().note(warning);
    }
    // Files of Desk have no comments.
    if let Some(load) = outcome.load.as_ref().filter(|_| args.to == Target::FrankaDesk && !args.json) {
        shell.say(&load.to_string());
    }
    let mut files = OutputFiles::new(shell.disk());
    if let Some(out) = &args.out {
        for (path, text) in outcome.places(out) {
            files.add(&path, text)?;
        }
    }
    shell.write(files, args.json)?;
    if args.json {
        shell.print_json(&outcome)?;
    } else if args.out.is_none() {
        outcome.files.iter().try_for_each(|file| shell.print(&file.text))?;
    }
    Ok(Answer::Yes)
}
