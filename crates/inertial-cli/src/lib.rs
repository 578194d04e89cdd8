//! The `inertial` program: parses options, runs jobs of [`inertial_app`], and prints outcomes formatted by [`inertial_report`].

mod analyze;
mod bar;
mod bench;
mod check;
mod columns;
mod demo;
mod design;
mod export;
mod identify;
mod manual;
mod options;
mod output;
mod pictures;
mod serve;
mod shell;
#[cfg(unix)]
mod signals;
mod simulate;
mod terminal;
mod threads;
mod validate;

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

use inertial::dynamics::Arithmetic;
use inertial_app::choice::{Choice as _, words};
use output::Answer;
use shell::Shell;

/// Environment variable by which `serve` passes its process number to its jobs, which end with it.
const SERVER: &str = "INERTIAL_SERVER";

const EXAMPLES: &str = "\
Examples:
  inertial demo                            try it on a built-in model
  inertial check robot.urdf                are the bodies physically consistent?
  inertial check robot.urdf --fix --out fixed.urdf
  inertial analyze robot.urdf              which parameters are identifiable?
  inertial design robot.urdf --out m.csv   which motion excites them best?
  inertial simulate robot.urdf motion.csv  what would sensors measure?
  inertial identify robot.urdf log.csv     what are the parameters?
  inertial validate robot.urdf log.csv     how well are logs predicted?
  inertial columns log.csv robot.urdf      what is each column of a log?
  inertial export robot.urdf --to c --out arm.c
  inertial serve                           use it in the browser
  inertial bench builtin:quadruped         how fast is each kernel?

MODEL is a URDF, URDF+ (<loop>, <coupling>), xacro, MJCF, SDF, USD or mechanism file, recognized by
its content; '-' reads standard input, 'builtin:NAME' is a model inside the program ('inertial
demo --list' names them). Exit status: 0 done (check, validate: yes), 1 the answer is no, 2 the
input or the call is wrong.";

/// Identifies the inertial parameters of robots from model files and measured motion.
#[derive(Parser)]
#[command(name = "inertial", version, after_help = EXAMPLES, max_term_width = 110, disable_help_subcommand = true, arg_required_else_help = false)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    /// Speed, or the same bits on every processor [default: fast, or the environment variable `INERTIAL_ARITHMETIC`]
    #[arg(long, value_name = "KIND", global = true, hide_short_help = true, value_parser = options::choice::<Arithmetic>())]
    arithmetic: Option<Arithmetic>,
}

#[derive(Subcommand)]
enum Command {
    Check(check::Args),
    Analyze(analyze::Args),
    Design(Box<design::Args>),
    Simulate(Box<simulate::Args>),
    Identify(Box<identify::Args>),
    Validate(validate::Args),
    Columns(columns::Args),
    Export(export::Args),
    Serve(serve::Args),
    Bench(bench::Args),
    Demo(demo::Args),
    Completions(manual::CompletionArgs),
    Man(manual::ManArgs),
}

/// Runs the program with the arguments of the process.
pub fn main() -> ExitCode {
    main_with(std::env::args_os())
}

/// Runs the program with the given arguments, of which the first is its name.
pub fn main_with(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let words: Vec<String> = arguments.iter().skip(1).map(|a| a.to_string_lossy().into_owned()).collect();
    let shell = Shell::new(&words);
    let cli = match read_line(arguments) {
        Ok(cli) => cli,
        Err(error) => return output::usage(&shell, &error),
    };
    match arithmetic(cli.arithmetic) {
        Ok(arithmetic) => arithmetic.make_default(),
        Err(error) => {
            shell.say(&output::words(&error));
            return ExitCode::from(2);
        }
    }
    threads::prepare();
    #[cfg(target_os = "linux")]
    if let Some(server) = std::env::var(SERVER).ok().and_then(|id| id.parse().ok()) {
        signals::end_with(server);
    }
    #[cfg(unix)]
    signals::ignore_file_size();
    #[cfg(unix)]
    if !matches!(cli.command, Command::Serve(_)) {
        signals::prepare();
    }
    match run(cli.command, &shell) {
        Ok(Answer::Yes) => ExitCode::SUCCESS,
        Ok(Answer::No) => ExitCode::from(1),
        Err(error) => {
            shell.say(&output::words(&error));
            ExitCode::from(2)
        }
    }
}

/// Returns the arithmetic of the process: given on the command line, otherwise by the environment.
fn arithmetic(given: Option<Arithmetic>) -> Result<Arithmetic> {
    let variable = "INERTIAL_ARITHMETIC";
    match (given, std::env::var(variable)) {
        (Some(given), _) => Ok(given),
        (None, Ok(word)) if !word.is_empty() => Arithmetic::from_word(&word)
            .with_context(|| format!("{variable}: '{word}': expected one of {}", words::<Arithmetic>())),
        _ => Ok(Arithmetic::default()),
    }
}

/// Parses a command line. A negative number is always treated as a value, never as an unknown option.
fn read_line<T: Into<OsString> + Clone>(arguments: impl IntoIterator<Item = T>) -> Result<Cli, clap::Error> {
    let value = |a: clap::Arg| {
        let plain = a.get_action().takes_values() && !a.is_positional() && !a.is_allow_hyphen_values_set();
        if plain { a.allow_negative_numbers(true) } else { a }
    };
    let mut line = with_paragraphs(Cli::command().mut_subcommands(|c| with_paragraphs(c.mut_args(value))));
    let matches = line.try_get_matches_from_mut(arguments)?;
    Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut line))
}

/// Joins the lines of each paragraph after the options, which are then wrapped at the width of the terminal.
fn with_paragraphs(command: clap::Command) -> clap::Command {
    let joined = |text: Option<&clap::builder::StyledStr>| text.map(|text| paragraphs(&text.to_string()));
    let (short, long) = (joined(command.get_after_help()), joined(command.get_after_long_help()));
    let command = short.into_iter().fold(command, clap::Command::after_help);
    long.into_iter().fold(command, clap::Command::after_long_help)
}

/// Joins consecutive lines that are not indented.
fn paragraphs(text: &str) -> String {
    let mut out = String::new();
    let mut inside = false;
    for line in text.lines() {
        let is_text = !line.is_empty() && !line.starts_with(' ');
        if !out.is_empty() {
            out.push(if inside && is_text { ' ' } else { '\n' });
        }
        out.push_str(line);
        inside = is_text;
    }
    out
}

fn run(command: Command, shell: &Shell) -> Result<Answer> {
    match command {
        Command::Check(args) => check::run(&args, shell),
        Command::Analyze(args) => analyze::run(&args, shell),
        Command::Design(args) => design::run(&args, shell),
        Command::Simulate(args) => simulate::run(&args, shell),
        Command::Identify(args) => identify::run(&args, shell),
        Command::Validate(args) => validate::run(&args, shell),
        Command::Columns(args) => columns::run(&args, shell),
        Command::Export(args) => export::run(&args, shell),
        Command::Serve(args) => serve::run(&args, shell),
        Command::Bench(args) => bench::run(&args, shell),
        Command::Demo(args) => demo::run(&args, shell),
        Command::Completions(args) => manual::completions(&args, shell),
        Command::Man(args) => manual::man(&args, shell),
    }
}
