//! Environment of a command: standard output, messages, progress and Ctrl-C.

use std::io::{self, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use inertial_app::disk::{OutputFiles, Sink};
use inertial_app::note::as_flag;
use inertial_app::{Checksum, Context, Disk, Note, Progress, Unit};
use inertial_report::page::Origin;
use inertial_report::text::Style;

use crate::bar::Bar;
use crate::{terminal, threads};

/// Environment of a command.
pub struct Shell {
    stop: Arc<AtomicBool>,
    bar: Mutex<Option<Bar>>,
    disk: Disk,
    start: Instant,
    style: Style,
    /// Command line for repeating the call.
    command: String,
}

impl Shell {
    /// Creates the environment of a call with these arguments.
    pub fn new(arguments: &[String]) -> Self {
        let words: Vec<String> = arguments.iter().map(|a| quoted(a)).collect();
        Self {
            stop: Arc::default(),
            bar: Mutex::default(),
            disk: Disk::default(),
            start: Instant::now(),
            style: style(),
            command: format!("inertial {}", words.join(" ")),
        }
    }

    /// Returns the files that the command reads and writes.
    pub fn disk(&self) -> &Disk {
        &self.disk
    }

    /// Returns the inputs and the observer of a job.
    pub fn context(&self) -> Context<'_> {
        Context { inputs: &self.disk, progress: self }
    }

    /// Rejects outputs that are inputs or the same file, before the work begins.
    pub fn reserve<'p>(&self, outputs: impl IntoIterator<Item = &'p PathBuf>) -> Result<()> {
        Ok(self.disk.reserve(outputs.into_iter().map(PathBuf::as_path))?)
    }

    /// Returns the provenance of the result, for pages.
    pub fn origin(&self, inputs: &[String]) -> Result<Origin> {
        Ok(Origin { command: self.command.clone(), inputs: Checksum::of_inputs(&self.disk, inputs)? })
    }

    /// Returns the width and colours of text on standard output.
    pub fn style(&self) -> Style {
        self.style
    }

    /// Returns the style of curves, whose width can be set in the environment.
    pub fn curve_style(&self) -> Style {
        let style = self.style();
        let given = std::env::var("COLUMNS").ok().and_then(|c| c.parse().ok()).filter(|&c: &u16| c > 0);
        Style { width: given.or(style.width), ..style }
    }

    /// Writes to standard output; a closed pipe is not an error.
    pub fn print(&self, text: &str) -> Result<()> {
        let text = terminal::printable(text, self.style.colour);
        let written = self.beside_bar(|| {
            let mut out = io::stdout().lock();
            out.write_all(text.as_bytes()).and_then(|()| out.flush())
        });
        match written {
            Err(e) if e.kind() != io::ErrorKind::BrokenPipe => Err(e).context("standard output"),
            _ => Ok(()),
        }
    }

    /// Writes something while the bar is hidden.
    fn beside_bar<T>(&self, write: impl FnOnce() -> T) -> T {
        match lock(&self.bar).as_ref() {
            Some(bar) => bar.suspend(write),
            None => write(),
        }
    }

    /// Writes a result object to standard output.
    pub fn print_json(&self, value: &impl serde::Serialize) -> Result<()> {
        self.print(&(terminal::escaped(&serde_json::to_string_pretty(value)?) + "\n"))
    }

    /// Copies a result that is staged for standard output.
    pub fn print_sink(&self, sink: Sink) -> Result<()> {
        Ok(self.beside_bar(|| sink.copy_to(&mut io::stdout().lock()))?)
    }

    /// Writes one line to standard error; failures are ignored.
    pub fn say(&self, message: &str) {
        let line: Vec<&str> = message.lines().map(str::trim).filter(|l| !l.is_empty()).collect();
        let line = line.join(" ");
        let line = terminal::printable(&line, false);
        self.beside_bar(|| {
            let _ = writeln!(io::stderr().lock(), "inertial: {line}");
        });
    }

    /// Moves files to their paths and prints their names, except with `json`, where the caller is a program.
    pub fn write(&self, files: OutputFiles, json: bool) -> Result<()> {
        let paths: Vec<String> = files.paths().map(str::to_owned).collect();
        files.finish()?;
        self.wrote(&paths, json);
        Ok(())
    }

    /// Prints the names of the written files.
    pub fn wrote(&self, paths: &[String], json: bool) {
        if !json && !paths.is_empty() {
            self.say(&format!("wrote {}", paths.join(", ")));
        }
    }

    /// Writes one file and prints its name.
    pub fn write_file(&self, path: &Path, text: &str) -> Result<()> {
        let mut files = OutputFiles::new(&self.disk);
        files.add(path, text)?;
        self.write(files, false)
    }

    /// Installs a Ctrl-C handler that stops long work in an orderly way; a second Ctrl-C ends the program at once.
    pub fn listen_to_ctrl_c(&self) -> Result<()> {
        static HANDLED: OnceLock<Arc<AtomicBool>> = OnceLock::new();
        if HANDLED.set(Arc::clone(&self.stop)).is_err() {
            return Ok(());
        }
        // If no thread can be started for the handler, Ctrl-C ends the program at once.
        if threads::ensure_available(1).is_err() {
            return Ok(());
        }
        let stop = Arc::clone(&self.stop);
        ctrlc::set_handler(move || {
            if stop.swap(true, Ordering::Relaxed) {
                std::process::exit(130);
            }
        })
        .context("cannot listen to Ctrl-C")
    }
}

/// Locks a mutex, also after a panic of another holder.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Every change is a single step, so a panic leaves a consistent value.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the width and colours of text on standard output.
fn style() -> Style {
    let forbidden = std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty());
    Style { width: terminal_width(), colour: io::stdout().is_terminal() && !forbidden }
}

/// Returns the width of the terminal on standard output; `None` if it is not a terminal.
fn terminal_width() -> Option<u16> {
    let (width, _) = terminal_size::terminal_size_of(io::stdout())?;
    Some(if width.0 == 0 { inertial_report::text::DEFAULT_WIDTH } else { width.0 })
}

/// Quotes a word of a command for a shell.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,+%@".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

impl Progress for Shell {
    fn begin(&self, unit: Unit, total: u64) {
        *lock(&self.bar) = Some(Bar::new(unit, total));
    }

    fn part(&self, name: &str, size: u64) {
        if let Some(bar) = lock(&self.bar).as_mut() {
            bar.part(name, size);
        }
    }

    fn share(&self, share: f64) {
        if let Some(bar) = lock(&self.bar).as_mut() {
            bar.share(share);
        }
    }

    fn best(&self, value: f64) {
        if let Some(bar) = lock(&self.bar).as_mut() {
            bar.best(value);
        }
    }

    fn end(&self) {
        *lock(&self.bar) = None;
    }

    fn note(&self, note: &Note) {
        self.say(&note.message(&as_flag));
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }
}
