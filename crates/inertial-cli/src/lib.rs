//! The `inertial` program: reads flags, runs jobs of [`inertial_app`], and prints what [`inertial_report`] makes of the outcome.

mod analyze;
mod bar;
mod bench;
mod check;
mod demo;
mod design;
mod identify;
mod manual;
mod options;
mod output;
mod pictures;
mod serve;
mod shell;
mod simulate;
mod validate;

use std::ffi::OsString;
use std::fmt::Write as _;
use std::process::ExitCode;

use anyhow::Result;
use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use inertial::estimation::{Equations, Fleet, Summary};
use inertial::mechanism::Mechanism;
use inertial_app::Model;

use output::Answer;
pub use shell::Session;
use shell::Shell;

const EXAMPLES: &str = "\
Examples:
  inertial demo                            try it on a model that ships with the program
  inertial check robot.urdf                are these inertial parameters physically consistent?
  inertial check robot.urdf --fix --out fixed.urdf
  inertial analyze robot.urdf              which of them can be identified?
  inertial design robot.urdf --out m.csv   which motion excites them best, within the limits?
  inertial simulate robot.urdf motion.csv  what would the sensors read during that motion?
  inertial identify robot.urdf log.csv     what are the parameters, given this log?
  inertial validate robot.urdf log.csv     how well does the model predict this log?
  inertial serve                           use it in the browser, on this machine
  inertial bench builtin:quadruped         how fast is each kernel on this machine?

MODEL is a URDF, URDF+ (<loop>, <coupling>), MJCF or mechanism file (JSON, TOML), recognised by
its content; '-' reads standard input, 'builtin:NAME' is a model inside the program ('inertial
demo --list' names them). Exit status: 0 done (check, validate: yes), 1 the answer is no, 2 the
input or the call is wrong.";

/// Identifies the inertial parameters of robots from model files and measured motion.
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
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let words: Vec<String> = arguments.iter().skip(1).map(|a| a.to_string_lossy().into_owned()).collect();
    let shell = Shell::of_process(words);
    let cli = match read_line(arguments) {
        Ok(cli) => cli,
        Err(error) => return output::usage(&shell, &error),
    };
    match run(cli.command, &shell) {
        Ok(Answer::Yes) => ExitCode::SUCCESS,
        Ok(Answer::No) => ExitCode::from(1),
        Err(error) => {
            shell.say(&output::words(&error));
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

fn run(command: Command, shell: &Shell) -> Result<Answer> {
    match command {
        Command::Check(args) => check::run(&args, shell),
        Command::Analyze(args) => analyze::run(&args, shell),
        Command::Design(args) => design::run(&args, shell),
        Command::Simulate(args) => simulate::run(&args, shell),
        Command::Identify(args) => identify::run(&args, shell),
        Command::Validate(args) => validate::run(&args, shell),
        Command::Serve(args) => serve::run(&args, shell),
        Command::Bench(args) => bench::run(&args, shell),
        Command::Demo(args) => demo::run(&args, shell),
        Command::Completions(args) => manual::completions(&args, shell),
        Command::Man(args) => manual::man(&args, shell),
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
///
/// A program in Rust has no need of this: [`inertial_app`] has the same jobs with typed options and outcomes, and
/// [`inertial_report`] their texts and pages. The Python package calls this function until it uses those crates itself: each
/// of its functions then builds the `Options` of one job, calls `run` with an [`inertial_app::Given`] for what it holds in
/// memory and an [`inertial_app::Progress`] for notes, progress and Ctrl-C, and gives the `Outcome` to Python.
pub fn call(arguments: &[String], session: Session) -> Result<Reply, String> {
    let command = parse(arguments)?;
    let shell = Shell::of_caller(Session { arguments: arguments.to_vec(), ..session });
    let yes = run(command, &shell).map_err(|error| output::words(&error))? == Answer::Yes;
    let (output, messages) = shell.finish();
    Ok(Reply { yes, output, messages })
}

/// What the logs of a call of `identify` say of the unknowns, to be merged with others and identified from.
pub fn summarize(arguments: &[String], session: Session) -> Result<(Summary, Vec<String>), String> {
    let args = parse_identify(arguments)?;
    with_shell(session, |shell| {
        let model = args.load(shell)?;
        Ok(inertial_app::identify::summarize(&model, &args.identify_options()?, &shell.context())?)
    })
}

/// The mechanism of a call of `identify`.
pub fn mechanism(arguments: &[String], session: Session) -> Result<Mechanism, String> {
    let args = parse_identify(arguments)?;
    with_shell(session, |shell| Ok(args.load(shell)?.mechanism)).map(|(mechanism, _)| mechanism)
}

/// The model of a call of `identify`.
pub fn model(arguments: &[String], session: Session) -> Result<Model, String> {
    let args = parse_identify(arguments)?;
    with_shell(session, |shell| args.load(shell)).map(|(model, _)| model)
}

/// The unknowns of a call of `identify`, for measurements that are not a log.
pub fn equations<'m>(arguments: &[String], model: &'m Model) -> Result<Equations<'m>, String> {
    let args = parse_identify(arguments)?;
    let shell = Shell::of_caller(Session::default());
    let equations = args.unknowns().equations(model, &shell.context());
    equations.map_err(|error| output::words(&error.into()))
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
    with_shell(session, |shell| identify::fleet(&args, robots, carries, shell))
}

/// Does something for another program; gives the notes too.
fn with_shell<T>(
    session: Session,
    work: impl FnOnce(&Shell) -> Result<T>,
) -> Result<(T, Vec<String>), String> {
    let shell = Shell::of_caller(session);
    let done = work(&shell).map_err(|error| output::words(&error))?;
    Ok((done, shell.finish().1))
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
