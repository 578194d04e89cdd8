//! What leaves the program: standard output, the one line of an error, and files written as a whole.

use std::fs::File;
use std::io::{self, BufWriter, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::error::ErrorKind;
use comfy_table::{CellAlignment, ContentArrangement, Row, Table, presets};
use inertial::consistency::significant;
use tempfile::{NamedTempFile, SpooledTempFile};

use crate::{progress, session};

/// The answer to the question that a command asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// Done, and yes where the question has an answer.
    Yes,
    /// The answer is no.
    No,
}

/// Writes to standard output; a reader that went away is no error.
pub fn print(text: &str) -> Result<()> {
    if session::keep_output(text) {
        return Ok(());
    }
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(e) if e.kind() != io::ErrorKind::BrokenPipe => Err(e).context("standard output"),
        _ => Ok(()),
    }
}

/// Writes a result object to standard output.
pub fn print_json(value: &impl serde::Serialize) -> Result<()> {
    print(&(serde_json::to_string_pretty(value)? + "\n"))
}

/// Rows in columns, the first to the left and the `numbers` after it to the right, as wide as the terminal allows.
pub fn table<const N: usize>(
    header: [&str; N],
    numbers: usize,
    rows: impl IntoIterator<Item = [String; N]>,
) -> String {
    let mut table = plain_table(&header, rows);
    table.set_content_arrangement(ContentArrangement::Dynamic);
    for column in table.column_iter_mut().skip(1).take(numbers) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table.trim_fmt() + "\n"
}

/// The same with as many columns as there are, all after the first of numbers.
pub fn wide_table(header: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let mut table = plain_table(header, rows);
    table.set_content_arrangement(ContentArrangement::Dynamic);
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table.trim_fmt() + "\n"
}

/// Rows in narrow columns of symbols after the first, never wrapped.
pub fn symbol_table(header: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let mut table = plain_table(header, rows);
    table.set_content_arrangement(ContentArrangement::Disabled);
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Center);
    }
    table.trim_fmt() + "\n"
}

fn plain_table<R: Into<Row>>(header: &[&str], rows: impl IntoIterator<Item = R>) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(header.iter().copied());
    if let Some(width) = terminal_width() {
        table.set_width(width);
    }
    for row in rows {
        table.add_row(row);
    }
    table
}

/// Columns of a terminal that does not know how many it has.
pub const USUAL_WIDTH: u16 = 80;

/// Columns of the terminal that standard output is; none where it is no terminal.
pub fn terminal_width() -> Option<u16> {
    Table::new().width().map(|width| if width == 0 { USUAL_WIDTH } else { width })
}

/// Short decimals as they are, others to six digits.
pub fn number(x: f64) -> String {
    let full = x.to_string();
    if full.len() <= 10 { full } else { significant(x, 6) }
}

/// Says on standard error, in one line, what is wrong.
pub fn complain(error: &anyhow::Error) {
    say(&words(error));
}

/// What is wrong, from the place to the cause.
pub fn words(error: &anyhow::Error) -> String {
    let mut out: Vec<String> = Vec::new();
    for cause in error.chain() {
        let of_system = cause.downcast_ref::<io::Error>();
        let text = of_system.map_or_else(|| cause.to_string(), inertial_data::plain_io);
        // A place that what follows names itself.
        if out.last().is_some_and(|place| text.starts_with(&format!("{place}: "))) {
            out.pop();
        }
        out.push(text);
        if of_system.is_some() {
            break;
        }
    }
    out.join(": ")
}

/// One line on standard error; nothing can be done where that fails.
pub fn say(message: &str) {
    let line: Vec<&str> = message.lines().map(str::trim).filter(|l| !l.is_empty()).collect();
    // Control characters of an input must not reach the terminal.
    let line: String = line.join(" ").chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
    if !session::keep_message(&line) {
        progress::aside(|| {
            let _ = writeln!(io::stderr().lock(), "inertial: {line}");
        });
    }
}

/// Help and version as clap prints them; a wrong call in one line.
pub fn usage(error: &clap::Error) -> ExitCode {
    if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        // The reader may have gone away (`inertial --help | head`).
        let _ = error.print();
        return ExitCode::SUCCESS;
    }
    say(&format!("{}; see --help", wrong_call(error)));
    ExitCode::from(2)
}

/// What is wrong with a call, without how it is meant.
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

/// Writes a file completely or not at all; an existing file is replaced as a whole.
pub fn write_file(path: &Path, text: &str) -> Result<()> {
    let mut sink = Sink::new(Some(path))?;
    sink.write_all(text.as_bytes()).with_context(|| path.display().to_string())?;
    sink.finish()
}

/// Several files that appear together: each waits, whole, beside its place until all of them can take theirs.
#[derive(Default)]
pub struct Files(Vec<Sink>);

impl Files {
    /// One more.
    pub fn add(&mut self, path: &Path, text: &str) -> Result<()> {
        let mut sink = Sink::new(Some(path))?;
        sink.write_all(text.as_bytes())
            .and_then(|()| sink.flush())
            .context("cannot be written")
            .with_context(|| path.display().to_string())?;
        self.0.push(sink);
        Ok(())
    }

    /// Each takes its place.
    pub fn finish(self) -> Result<()> {
        self.0.into_iter().try_for_each(Sink::finish)
    }
}

/// A long result, written as it is made: it appears when it is whole, or not at all.
pub struct Sink {
    out: BufWriter<Stage>,
    label: String,
}

/// Where a result waits until it is whole.
enum Stage {
    /// Beside the file that it will replace.
    File(NamedTempFile, PathBuf),
    /// In memory, or on disk where that is too much, until it goes to standard output.
    Standard(SpooledTempFile),
    /// Nowhere: a device or a pipe (`/dev/null`) is written to, never replaced.
    Device(File),
}

/// A result for standard output waits in memory up to this size.
const SPOOL: usize = 64 << 20;

impl Write for Stage {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::File(file, _) => file.write(bytes),
            Self::Standard(spool) => spool.write(bytes),
            Self::Device(device) => device.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::File(file, _) => file.flush(),
            Self::Standard(spool) => spool.flush(),
            Self::Device(device) => device.flush(),
        }
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.out.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

impl Sink {
    /// For a file, or standard output.
    pub fn new(path: Option<&Path>) -> Result<Self> {
        let label = path.map_or_else(|| "standard output".to_owned(), |p| p.display().to_string());
        let stage = match path {
            None => Stage::Standard(SpooledTempFile::new(SPOOL)),
            Some(path) if path.metadata().is_ok_and(|m| !m.is_file() && !m.is_dir()) => {
                let device = File::options().write(true).open(path);
                Stage::Device(device.context("cannot be written").with_context(|| label.clone())?)
            }
            Some(path) => {
                let (file, target) = stage(path).with_context(|| label.clone())?;
                Stage::File(file, target)
            }
        };
        Ok(Self { out: BufWriter::new(stage), label })
    }

    /// The result is whole: it takes its place.
    pub fn finish(self) -> Result<()> {
        // A caller that was interrupted gets no file, however late the work ends.
        session::go_on()?;
        let Self { out, label } = self;
        let stage = out.into_inner().map_err(io::IntoInnerError::into_error);
        let done = match stage {
            Err(e) => Err(e).context("cannot be written"),
            Ok(Stage::File(file, target)) => file
                .as_file()
                .sync_all()
                .and_then(|()| file.persist(&target).map_err(|e| e.error))
                .map(drop)
                .context("cannot be written"),
            Ok(Stage::Device(_)) => Ok(()),
            Ok(Stage::Standard(mut spool)) if session::has_caller() => {
                let mut text = String::new();
                let read = spool.rewind().and_then(|()| spool.read_to_string(&mut text));
                session::keep_output(&text);
                read.map(drop).context("cannot be read back")
            }
            Ok(Stage::Standard(mut spool)) => {
                let mut standard = io::stdout().lock();
                let copied = spool.rewind().and_then(|()| io::copy(&mut spool, &mut standard));
                match copied.and_then(|_| standard.flush()) {
                    Err(e) if e.kind() != io::ErrorKind::BrokenPipe => Err(e.into()),
                    _ => Ok(()),
                }
            }
        };
        done.context(label)
    }
}

/// A file beside the one at `path`, which it will replace, and where that really is.
fn stage(path: &Path) -> Result<(NamedTempFile, PathBuf)> {
    anyhow::ensure!(!path.is_dir(), "is a folder: give the name of a file");
    // Through a link the file behind it is replaced, not the link.
    let target = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let folder = match target.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    anyhow::ensure!(folder.is_dir(), "cannot be written: there is no folder {}", folder.display());
    let mut builder = tempfile::Builder::new();
    builder.prefix(".inertial-");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        // An existing file keeps its permissions; a new one gets what the user's mask leaves.
        let mode = target.metadata().map_or(0o666, |m| m.permissions().mode() & 0o777);
        builder.permissions(std::fs::Permissions::from_mode(mode));
    }
    let file = builder.tempfile_in(folder).context("cannot be written")?;
    Ok((file, target))
}
