//! Answers and the one line of an error.

use std::io;
use std::process::ExitCode;

use clap::error::ErrorKind;
use inertial_app::note::as_flag;

use crate::shell::Shell;

/// The answer to the question that a command asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// Done, and yes where the question has an answer.
    Yes,
    /// The answer is no.
    No,
}

impl Answer {
    /// Yes where a condition holds.
    pub fn of(yes: bool) -> Self {
        if yes { Self::Yes } else { Self::No }
    }
}

/// What is wrong, from the place to the cause, in one line.
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
        // A place that what follows names itself.
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

/// Help and version as clap prints them; a wrong call in one line.
pub fn usage(shell: &Shell, error: &clap::Error) -> ExitCode {
    if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        // The reader may have gone away (`inertial --help | head`).
        let _ = error.print();
        return ExitCode::SUCCESS;
    }
    shell.say(&format!("{}; see --help", wrong_call(error)));
    ExitCode::from(2)
}

/// What is wrong with a call, without the usage.
pub fn wrong_call(error: &clap::Error) -> String {
    let text = error.render().to_string();
    let message: Vec<&str> = text
        .lines()
        .take_while(|l| !l.starts_with("Usage:") && !l.starts_with("For more information"))
        .map(str::trim)
        .filter(|l| !l.is_empty())
        .collect();
    let line = message.join(" ").trim_start_matches("error: ").replace(" tip: ", "; ");
    // Numbers as people know them.
    line.replace("invalid float literal", "expected a number")
        .replace("invalid digit found in string", "expected a whole number")
}
