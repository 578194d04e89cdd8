//! `inertial completions` and `inertial man`: what shells and manual readers know of the program, made from its own help.

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use clap::CommandFactory;
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
    write(args, "inertial", &Man::new(program.clone()))?;
    for command in program.get_subcommands() {
        let name = format!("inertial-{}", command.get_name());
        let page = command.clone().display_name(name.clone());
        write(args, &name, &Man::new(page).title(name.clone()))?;
    }
    Ok(Answer::Yes)
}

fn write(args: &ManArgs, name: &str, page: &Man) -> Result<()> {
    let path = args.folder.join(format!("{name}.1"));
    let mut text = Vec::new();
    page.render(&mut text).with_context(|| path.display().to_string())?;
    output::write_file(&path, &String::from_utf8_lossy(&text))
}
