//! `inertial completions` and `inertial man`: shell completions and manual pages, generated from the help.

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use clap::CommandFactory;
use clap::builder::Resettable;
use clap_complete::{Shell as ShellKind, generate};
use clap_mangen::Man;
use inertial_app::disk::OutputFiles;

use crate::Cli;
use crate::output::Answer;
use crate::shell::Shell;

/// Print the completion script of a shell
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  inertial completions bash > \\
    ~/.local/share/bash-completion/completions/inertial
  inertial completions zsh > ~/.zfunc/_inertial
  inertial completions fish > ~/.config/fish/completions/inertial.fish")]
pub struct CompletionArgs {
    /// Shell
    #[arg(value_enum)]
    shell: ShellKind,
}

/// Write manual pages: one for the program, one for each command
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:
  inertial man ~/.local/share/man/man1 && man inertial-identify")]
pub struct ManArgs {
    /// Existing folder
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

pub fn completions(args: &CompletionArgs, shell: &Shell) -> Result<Answer> {
    let mut text = Vec::new();
    generate(args.shell, &mut Cli::command(), "inertial", &mut text);
    shell.print(&String::from_utf8_lossy(&text))?;
    Ok(Answer::Yes)
}

pub fn man(args: &ManArgs, shell: &Shell) -> Result<Answer> {
    ensure!(args.folder.is_dir(), "{}: is not a folder: create it first", args.folder.display());
    let mut program = Cli::command();
    program.build();
    let mut files = OutputFiles::new(shell.disk());
    write(args, "inertial", &program, &mut files)?;
    for command in program.get_subcommands() {
        write(args, &format!("inertial-{}", command.get_name()), command, &mut files)?;
    }
    shell.write(files, false)?;
    Ok(Answer::Yes)
}

fn write(args: &ManArgs, name: &str, command: &clap::Command, files: &mut OutputFiles) -> Result<()> {
    let path = args.folder.join(format!("{name}.1"));
    let help = command.get_after_long_help().or_else(|| command.get_after_help());
    let help = help.map(ToString::to_string).unwrap_or_default();
    let page = command
        .clone()
        .display_name(name.to_owned())
        .after_help(Resettable::Reset)
        .after_long_help(Resettable::Reset);
    let page = Man::new(page).title(name).source(concat!("inertial ", env!("CARGO_PKG_VERSION")));
    let mut text = Vec::new();
    page.render(&mut text).with_context(|| path.display().to_string())?;
    Ok(files.add(&path, String::from_utf8_lossy(&text).into_owned() + &sections(&help))?)
}

/// Converts the text after the options to sections of a manual page, with examples last. Indented lines are kept verbatim for copying.
fn sections(help: &str) -> String {
    let [mut details, mut examples] = [Section::default(), Section::default()];
    let mut of_examples = false;
    for line in help.lines() {
        if matches!(line, "Examples:" | "Example:") {
            of_examples = true;
            continue;
        }
        of_examples &= line.is_empty() || line.starts_with("  ");
        if of_examples { &mut examples } else { &mut details }.add(line);
    }
    details.titled("DETAILS") + &examples.titled("EXAMPLES")
}

/// Lines of a section in roff syntax.
#[derive(Default)]
struct Section {
    text: String,
    verbatim: bool,
}

impl Section {
    fn add(&mut self, line: &str) {
        self.switch(line.starts_with("  "));
        match line {
            "" => self.text += ".PP\n",
            line => self.text += &(escaped(line) + "\n"),
        }
    }

    fn switch(&mut self, verbatim: bool) {
        if verbatim != self.verbatim {
            self.text += if verbatim { ".nf\n" } else { ".fi\n" };
            self.verbatim = verbatim;
        }
    }

    fn titled(mut self, title: &str) -> String {
        self.switch(false);
        let text = self.text.trim_end_matches(".PP\n");
        if text.is_empty() { String::new() } else { format!(".SH {title}\n{text}") }
    }
}

/// Escapes a line of text for roff.
fn escaped(line: &str) -> String {
    let line = line.replace('\\', "\\e").replace('-', "\\-").replace('\'', "\\(aq");
    if line.starts_with('.') { format!("\\&{line}") } else { line }
}
