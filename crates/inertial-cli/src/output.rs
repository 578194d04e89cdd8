//! Answers of commands, and one-line error messages.

use std::io;
use std::process::ExitCode;

use clap::error::ErrorKind;
use inertial_app::note::as_flag;

use crate::shell::Shell;

/// Answer of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// Success; the positive answer if the command tests a condition.
    Yes,
    /// Negative answer.
    No,
}

impl Answer {
    /// Returns the positive answer if a condition holds.
    pub fn of(yes: bool) -> Self {
        if yes { Self::Yes } else { Self::No }
    }
}

/// Returns the error message in one line, from the location to the cause.
pub fn words(error: &anyhow::Error) -> String {
    let mut out: Vec<String> = Vec::new();
    for cause in error.chain() {
        let of_system = cause.downcast_ref::<io::Error>();
        let of_app = cause.downcast_ref::<inertial_app::Error>();
        let text = match (of_app, of_system) {
            (Some(error), _) => error.message(&as_flag),
            (_, Some(error)) => inertial_data::plain_io(error),
            _ => cause.to_string(),
        };
        // The next message may already contain the location.
        if out.last().is_some_and(|place| text.starts_with(&format!("{place}: "))) {
            out.pop();
        }
        out.push(text);
        if of_system.is_some() || of_app.is_some() {
            break;
        }
    }
    out.join(": ")
}

/// Prints help and version as clap does, and other errors of the command line in one line.
pub fn usage(shell: &Shell, error: &clap::Error) -> ExitCode {
    if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        // The pipe may be closed (`inertial --help | head`).
        let _ = error.print();
        return ExitCode::SUCCESS;
    }
    shell.say(&format!("{}; see --help", wrong_call(error)));
    ExitCode::from(2)
}

/// Returns the error of a command line, without the usage.
pub fn wrong_call(error: &clap::Error) -> String {
    let text = error.render().to_string();
    let message: Vec<&str> = text
        .lines()
        .take_while(|l| !l.starts_with("Usage:") && !l.starts_with("For more information"))
        .map(str::trim)
        .filter(|l| !l.is_empty())
        .collect();
    let line = message.join(" ").trim_start_matches("error: ").replace(" tip: ", "; ");
    // Plain wording instead of the messages of the standard library.
    line.replace("invalid float literal", "expected a number")
        .replace("invalid digit found in string", "expected a whole number")
}
