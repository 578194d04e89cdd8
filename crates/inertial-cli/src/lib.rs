//! The `inertial` program as a library: the program itself is [`main`], and the Python package calls the same commands.

mod analyze;
mod bench;
mod check;
mod demo;
mod design;
mod identifiability_text;
mod identify;
mod logs;
mod model;
mod options;
mod output;
mod page;
mod recording;
mod report;
mod simulate;
mod validate;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use output::Answer;

const EXAMPLES: &str = "\
Examples:
  inertial demo                            try it on a model that ships with the program
  inertial check robot.urdf                can these inertial parameters belong to physical bodies?
  inertial check robot.urdf --fix --out fixed.urdf
  inertial analyze robot.urdf              which of them can any experiment reveal?
  inertial design robot.urdf --out m.csv   which motion reveals them best, within the limits?
  inertial simulate robot.urdf motion.csv  what would the sensors read during that motion?
  inertial identify robot.urdf log.csv     what are they, given what was measured?
  inertial validate robot.urdf log.csv     how well does the model predict it?
  inertial bench builtin:quadruped         how fast is each kernel here?

MODEL is a URDF, URDF+ (<loop>, <coupling>), MJCF or mechanism file (JSON, TOML), recognised by
its content; '-' reads standard input, 'builtin:NAME' is a model inside the program ('inertial
demo --list' names them). Exit status: 0 done (check: yes), 1 the answer is no, 2 the input or
the call is wrong.";

/// Weighs a robot by moving it: its inertial parameters, from model files and measured motion.
#[derive(Parser)]
#[command(name = "inertial", version, after_help = EXAMPLES, max_term_width = 110, disable_help_subcommand = true, arg_required_else_help = false)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Check(check::Args),
    Analyze(analyze::Args),
    Design(Box<design::Args>),
    Simulate(Box<simulate::Args>),
    Identify(Box<identify::Args>),
    Validate(validate::Args),
    Bench(bench::Args),
    Demo(demo::Args),
}

/// Runs the program on the process's arguments.
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return output::usage(&error),
    };
    let answer = match cli.command {
        Command::Check(args) => check::run(&args),
        Command::Analyze(args) => analyze::run(&args),
        Command::Design(args) => design::run(&args),
        Command::Simulate(args) => simulate::run(&args),
        Command::Identify(args) => identify::run(&args),
        Command::Validate(args) => validate::run(&args),
        Command::Bench(args) => bench::run(&args),
        Command::Demo(args) => demo::run(&args),
    };
    match answer {
        Ok(Answer::Yes) => ExitCode::SUCCESS,
        Ok(Answer::No) => ExitCode::from(1),
        Err(error) => {
            output::complain(&error);
            ExitCode::from(2)
        }
    }
}
