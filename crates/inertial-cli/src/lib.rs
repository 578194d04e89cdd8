//! The `inertial` program as a library: the program itself is [`main`], and the Python package calls the same commands.

mod analyze;
mod bench;
mod check;
mod curves;
mod demo;
mod design;
mod identifiability_text;
mod identify;
mod logs;
mod manual;
mod model;
mod options;
mod output;
mod page;
mod pictures;
mod plots;
mod progress;
mod recording;
mod report;
mod serve;
mod session;
mod simulate;
mod validate;

use std::ffi::OsString;
use std::fmt::Write as _;
use std::process::ExitCode;

use anyhow::Result;
use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use inertial::estimation::{Equations, Fleet, Summary};
use inertial::mechanism::Mechanism;

use output::Answer;
pub use session::Session;

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
  inertial serve                           a page on this machine: drop in a model and logs
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
    Serve(serve::Args),
    Bench(bench::Args),
    Demo(demo::Args),
    Completions(manual::CompletionArgs),
    Man(manual::ManArgs),
}

/// Runs the program on the process's arguments.
pub fn main() -> ExitCode {
    main_with(std::env::args_os())
}

/// Runs the program on these arguments, the first being its name.
pub fn main_with(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let cli = match read_line(arguments) {
        Ok(cli) => cli,
        Err(error) => return output::usage(&error),
    };
    match run(cli.command) {
        Ok(Answer::Yes) => ExitCode::SUCCESS,
        Ok(Answer::No) => ExitCode::from(1),
        Err(error) => {
            output::complain(&error);
            ExitCode::from(2)
        }
    }
}

/// Reads a command line. A number below zero is a value, whether the option takes it or not: it is no unknown option.
fn read_line<T: Into<OsString> + Clone>(arguments: impl IntoIterator<Item = T>) -> Result<Cli, clap::Error> {
    let value = |a: clap::Arg| {
        let plain = a.get_action().takes_values() && !a.is_positional() && !a.is_allow_hyphen_values_set();
        if plain { a.allow_negative_numbers(true) } else { a }
    };
    let mut line = Cli::command().mut_subcommands(|c| c.mut_args(value));
    let matches = line.try_get_matches_from_mut(arguments)?;
    Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut line))
}

fn run(command: Command) -> Result<Answer> {
    match command {
        Command::Check(args) => check::run(&args),
        Command::Analyze(args) => analyze::run(&args),
        Command::Design(args) => design::run(&args),
        Command::Simulate(args) => simulate::run(&args),
        Command::Identify(args) => identify::run(&args),
        Command::Validate(args) => validate::run(&args),
        Command::Serve(args) => serve::run(&args),
        Command::Bench(args) => bench::run(&args),
        Command::Demo(args) => demo::run(&args),
        Command::Completions(args) => manual::completions(&args),
        Command::Man(args) => manual::man(&args),
    }
}

/// What a command answered to another program.
pub struct Reply {
    /// The answer to a question of yes or no (`check`, `validate`); otherwise yes.
    pub yes: bool,
    /// What it printed.
    pub output: String,
    /// The notes beside it.
    pub messages: Vec<String>,
}

/// Calls a command as `main` does, for another program. The error is the program's one line.
pub fn call(arguments: &[String], session: Session) -> Result<Reply, String> {
    let command = parse(arguments)?;
    let session = Session { arguments: arguments.to_vec(), ..session };
    let (answer, session) = session::within(session, || run(command));
    let yes = answer.map_err(|error| output::words(&error))? == Answer::Yes;
    Ok(Reply { yes, output: session.output, messages: session.messages })
}

/// What the logs of a call of `identify` say of the unknowns, to be merged with others and identified from.
pub fn summarize(arguments: &[String], session: Session) -> Result<(Summary, Vec<String>), String> {
    let args = parse_identify(arguments)?;
    let (summary, session) = session::within(session, || identify::summary(&args));
    Ok((summary.map_err(|error| output::words(&error))?, session.messages))
}

/// The mechanism of a call of `identify`.
pub fn mechanism(arguments: &[String], session: Session) -> Result<Mechanism, String> {
    let args = parse_identify(arguments)?;
    session::within(session, || identify::mechanism(&args)).0.map_err(|error| output::words(&error))
}

/// The unknowns of a call of `identify`, for measurements that are no log.
pub fn equations<'m>(arguments: &[String], mechanism: &'m Mechanism) -> Result<Equations<'m>, String> {
    let args = parse_identify(arguments)?;
    identify::equations(&args, mechanism).map_err(|error| output::words(&error))
}

/// Robots of one type, one summary each, identified together as a call of `identify` says; with `--payload` some carry something
/// of their own.
pub fn fleet(
    arguments: &[String],
    session: Session,
    robots: &[Summary],
    carries: &[bool],
) -> Result<(Fleet, Vec<String>), String> {
    let args = parse_identify(arguments)?;
    let (fleet, session) = session::within(session, || identify::fleet(&args, robots, carries));
    Ok((fleet.map_err(|error| output::words(&error))?, session.messages))
}

/// The options of a command, each with what its help says in one line; none where there is no such command.
pub fn options(command: &str) -> Vec<(String, String)> {
    let line = Cli::command();
    let told = |argument: &clap::Arg| {
        let name = argument.get_long()?.to_owned();
        let mut help = argument.get_help()?.to_string();
        if argument.get_action().takes_values() {
            let defaults: Vec<_> =
                argument.get_default_values().iter().map(|v| v.to_string_lossy().into_owned()).collect();
            if !defaults.is_empty() && !argument.is_hide_default_value_set() {
                let _ = write!(help, " [default: {}]", defaults.join(" "));
            }
            let values = argument.get_possible_values();
            if !values.is_empty() {
                let names: Vec<&str> = values.iter().map(clap::builder::PossibleValue::get_name).collect();
                let _ = write!(help, " [possible values: {}]", names.join(", "));
            }
        }
        Some((name, help))
    };
    line.find_subcommand(command).map_or_else(Vec::new, |c| c.get_arguments().filter_map(told).collect())
}

fn parse_identify(arguments: &[String]) -> Result<Box<identify::Args>, String> {
    match parse(arguments)? {
        Command::Identify(args) => Ok(args),
        _ => Err("expected the arguments of identify".into()),
    }
}

fn parse(arguments: &[String]) -> Result<Command, String> {
    let program = std::iter::once("inertial");
    let cli = read_line(program.chain(arguments.iter().map(String::as_str)));
    cli.map(|cli| cli.command).map_err(|error| output::wrong_call(&error))
}
