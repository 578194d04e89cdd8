//! `inertial completions` and `inertial man`: what shells and manual readers know of the program, made from its own help.

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use clap::CommandFactory;
use clap::builder::Resettable;
use clap_complete::{Shell, generate};
use clap_mangen::Man;

use crate::Cli;
use crate::output::{self, Answer};

/// Print what a shell needs to complete commands and options
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  inertial completions bash > ~/.local/share/bash-completion/completions/inertial
  inertial completions zsh > ~/.zfunc/_inertial
  inertial completions fish > ~/.config/fish/completions/inertial.fish")]
pub struct CompletionArgs {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

/// Write manual pages: one for the program, one for each command
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:
  inertial man ~/.local/share/man/man1 && man inertial-identify")]
pub struct ManArgs {
    /// The folder, which must exist
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

pub fn completions(args: &CompletionArgs) -> Result<Answer> {
    let mut text = Vec::new();
    generate(args.shell, &mut Cli::command(), "inertial", &mut text);
    output::print(&String::from_utf8_lossy(&text))?;
    Ok(Answer::Yes)
}

pub fn man(args: &ManArgs) -> Result<Answer> {
    ensure!(args.folder.is_dir(), "{}: is no folder: make it first", args.folder.display());
    let mut program = Cli::command();
    program.build();
    write(args, "inertial", &program)?;
    for command in program.get_subcommands() {
        write(args, &format!("inertial-{}", command.get_name()), command)?;
    }
    Ok(Answer::Yes)
}

fn write(args: &ManArgs, name: &str, command: &clap::Command) -> Result<()> {
    let path = args.folder.join(format!("{name}.1"));
    let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let page = command.clone().display_name(name.to_owned()).after_help(Resettable::Reset);
    let page = Man::new(page).title(name).source(concat!("inertial ", env!("CARGO_PKG_VERSION")));
    let mut text = Vec::new();
    page.render(&mut text).with_context(|| path.display().to_string())?;
    output::write_file(&path, &(String::from_utf8_lossy(&text).into_owned() + &sections(&help)))
}

/// The text after the options as sections of a manual page. Indented lines stay as they are: examples are to be copied.
fn sections(help: &str) -> String {
    let mut out = String::from(".SH DETAILS\n");
    let mut verbatim = false;
    for line in help.lines() {
        let example = matches!(line, "Examples:" | "Example:");
        let indented = line.starts_with("  ");
        if verbatim && !indented {
            out += ".fi\n";
        } else if !verbatim && indented {
            out += ".nf\n";
        }
        verbatim = indented;
        match line {
            _ if example => out += ".SH EXAMPLES\n",
            "" => out += ".PP\n",
            text => out = out + &escaped(text) + "\n",
        }
    }
    if verbatim {
        out += ".fi\n";
    }
    // A command that is explained by its examples alone.
    out.replacen(".SH DETAILS\n.SH EXAMPLES\n", ".SH EXAMPLES\n", 1)
}

/// A line that roff takes as text.
fn escaped(line: &str) -> String {
    let line = line.replace('\\', "\\e").replace('-', "\\-").replace('\'', "\\(aq");
    if line.starts_with('.') { format!("\\&{line}") } else { line }
}
