//! The process around a command, or the program that called it: inputs, standard output, messages, progress and Ctrl-C.

use std::collections::HashMap;
use std::io::{self, IsTerminal as _, Read, Write as _};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use inertial::estimation::Summary;
use inertial_app::disk::{OutputFiles, Sink};
use inertial_app::note::as_flag;
use inertial_app::{Checksum, Context, Disk, Given, Inputs, Note, Progress, Unit};
use inertial_data::{Log, Reader, Source};
use inertial_report::page::Origin;
use inertial_report::text::Style;

use crate::bar::Bar;

/// What another program brings to a call, and what the call leaves.
#[derive(Debug, Default)]
pub struct Session {
    /// Texts of models, by the argument that names them.
    pub models: HashMap<String, String>,
    /// Summaries of logs, by the argument that names them.
    pub summaries: HashMap<String, Summary>,
    /// Arguments of the call, for pages to say how they were obtained; those of the process are not the caller's to show.
    pub arguments: Vec<String>,
    /// Set by the caller to stop long work.
    pub stop: Arc<AtomicBool>,
    /// What would have gone to standard output.
    pub output: String,
    /// The lines that would have gone to standard error.
    pub messages: Vec<String>,
}

/// Surroundings of a command.
pub struct Shell {
    texts: HashMap<String, String>,
    logs: HashMap<String, Log>,
    summaries: HashMap<String, Summary>,
    /// Whether another program called: output and messages are kept for it.
    called: bool,
    output: Mutex<String>,
    messages: Mutex<Vec<String>>,
    stop: Arc<AtomicBool>,
    bar: Mutex<Option<Bar>>,
    start: Instant,
    /// The call, as it can be repeated.
    command: String,
}

impl Shell {
    /// The surroundings of the program itself, called by these arguments.
    pub fn of_process(arguments: Vec<String>) -> Self {
        Self::new(Session { arguments, ..Session::default() }, false)
    }

    /// The surroundings of a call by another program.
    pub fn of_caller(session: Session) -> Self {
        Self::new(session, true)
    }

    fn new(session: Session, called: bool) -> Self {
        let words: Vec<String> = session.arguments.iter().map(|a| quoted(a)).collect();
        Self {
            texts: session.models,
            logs: HashMap::new(),
            summaries: session.summaries,
            called,
            output: Mutex::default(),
            messages: Mutex::default(),
            stop: session.stop,
            bar: Mutex::default(),
            start: Instant::now(),
            command: format!("inertial {}", words.join(" ")),
        }
    }

    /// What was printed and said for the caller.
    pub fn finish(self) -> (String, Vec<String>) {
        (std::mem::take(&mut *lock(&self.output)), std::mem::take(&mut *lock(&self.messages)))
    }

    /// Whether another program called.
    pub fn is_called(&self) -> bool {
        self.called
    }

    /// Inputs and observer of a job.
    pub fn context(&self) -> Context<'_> {
        Context { inputs: self, progress: self }
    }

    fn given(&self) -> Given<'_> {
        Given { texts: &self.texts, logs: &self.logs, summaries: &self.summaries, others: &Disk }
    }

    /// How the result was obtained, for pages.
    pub fn origin(&self, inputs: &[String]) -> Result<Origin> {
        Ok(Origin { command: self.command.clone(), inputs: Checksum::of_inputs(self, inputs)? })
    }

    /// Width and colours of text on standard output.
    pub fn style(&self) -> Style {
        if self.called {
            return Style::default();
        }
        let forbidden = std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty());
        Style { width: terminal_width(), colour: io::stdout().is_terminal() && !forbidden }
    }

    /// The same for curves, whose width the environment may give.
    pub fn curve_style(&self) -> Style {
        let style = self.style();
        let given = std::env::var("COLUMNS").ok().and_then(|c| c.parse().ok()).filter(|&c: &u16| c > 0);
        Style { width: given.or(style.width), ..style }
    }

    /// Writes to standard output; a reader that went away is no error.
    pub fn print(&self, text: &str) -> Result<()> {
        if self.called {
            lock(&self.output).push_str(text);
            return Ok(());
        }
        let mut out = io::stdout().lock();
        match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
            Err(e) if e.kind() != io::ErrorKind::BrokenPipe => Err(e).context("standard output"),
            _ => Ok(()),
        }
    }

    /// Writes a result object to standard output.
    pub fn print_json(&self, value: &impl serde::Serialize) -> Result<()> {
        self.print(&(serde_json::to_string_pretty(value)? + "\n"))
    }

    /// Copies what waits for standard output to it.
    pub fn print_sink(&self, sink: Sink) -> Result<()> {
        if self.called {
            let mut text = Vec::new();
            sink.copy_to(&mut text)?;
            return self.print(&String::from_utf8_lossy(&text));
        }
        Ok(sink.copy_to(&mut io::stdout().lock())?)
    }

    /// One line on standard error; nothing can be done where that fails.
    pub fn say(&self, message: &str) {
        let line: Vec<&str> = message.lines().map(str::trim).filter(|l| !l.is_empty()).collect();
        // Control characters of an input must not reach the terminal.
        let line: String =
            line.join(" ").chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
        if self.called {
            lock(&self.messages).push(line);
            return;
        }
        let write = || {
            let _ = writeln!(io::stderr().lock(), "inertial: {line}");
        };
        match lock(&self.bar).as_ref() {
            Some(bar) => bar.suspend(write),
            None => write(),
        }
    }

    /// Puts files in their places and says which they are; with `json` a program reads the answer, which knows what it asked
    /// for.
    pub fn write(&self, files: OutputFiles, json: bool) -> Result<()> {
        if self.called {
            // A caller that was interrupted gets no file, however late the work ends.
            self.context().go_on()?;
        }
        let paths: Vec<String> = files.paths().map(str::to_owned).collect();
        files.finish()?;
        self.wrote(&paths, json);
        Ok(())
    }

    /// Says which files were written.
    pub fn wrote(&self, paths: &[String], json: bool) {
        if !self.called && !json && !paths.is_empty() {
            self.say(&format!("wrote {}", paths.join(", ")));
        }
    }

    /// Writes one file and says so.
    pub fn write_file(&self, path: &Path, text: &str) -> Result<()> {
        let mut files = OutputFiles::default();
        files.add(path, text)?;
        self.write(files, false)
    }

    /// Lets Ctrl-C stop long work, which then ends in order; a second one ends the program at once.
    pub fn listen_to_ctrl_c(&self) -> Result<()> {
        static HANDLED: OnceLock<Arc<AtomicBool>> = OnceLock::new();
        if self.called || HANDLED.set(Arc::clone(&self.stop)).is_err() {
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

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Every change is one step: a panic while it was held leaves a whole value.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Columns of the terminal that standard output is; none where it is not a terminal.
fn terminal_width() -> Option<u16> {
    let (width, _) = terminal_size::terminal_size_of(io::stdout())?;
    Some(if width.0 == 0 { inertial_report::text::USUAL_WIDTH } else { width.0 })
}

/// A word of a command as a shell takes it.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,+%@".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

impl Inputs for Shell {
    fn text(&self, name: &str, most: u64) -> inertial_app::Result<String> {
        self.given().text(name, most)
    }

    fn included(&self, model: &str, name: &str, most: u64) -> inertial_app::Result<String> {
        self.given().included(model, name, most)
    }

    fn log(&self, name: &str, source: &Source) -> inertial_app::Result<Box<dyn Reader>> {
        self.given().log(name, source)
    }

    fn open(&self, name: &str) -> inertial_app::Result<Box<dyn Read + Send>> {
        self.given().open(name)
    }

    fn mesh(&self, model: &str, name: &str, most: u64) -> Option<(String, inertial_app::Result<Vec<u8>>)> {
        self.given().mesh(model, name, most)
    }

    fn columns(&self, name: &str) -> Option<&Log> {
        self.logs.get(name)
    }

    fn summary(&self, name: &str) -> Option<&Summary> {
        self.summaries.get(name)
    }

    fn size(&self, name: &str) -> u64 {
        self.given().size(name)
    }
}

impl Progress for Shell {
    fn begin(&self, unit: Unit, total: u64) {
        // Another program that called has no terminal of ours.
        if !self.called {
            *lock(&self.bar) = Some(Bar::new(unit, total));
        }
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
