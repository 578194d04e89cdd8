//! Progress of long work, notes for the user, and stop requests.

use std::time::Duration;

use crate::{Error, Inputs, Note, Result};

/// Unit in which work is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Bytes of files.
    Bytes,
    /// Number of samples.
    Samples,
    /// Steps of a search.
    Steps,
}

/// Observer of a job, called from any of its threads. By default all methods do nothing, as in [`NoProgress`].
pub trait Progress: Sync {
    /// Starts work of a known size; zero if the size is unknown.
    fn begin(&self, unit: Unit, total: u64) {
        let _ = (unit, total);
    }

    /// Starts the next part of the work.
    fn part(&self, name: &str, size: u64) {
        let _ = (name, size);
    }

    /// Reports the completed fraction of the part, or of the whole work if it has no parts.
    fn share(&self, share: f64) {
        let _ = share;
    }

    /// Reports the best value that a search has found so far.
    fn best(&self, value: f64) {
        let _ = value;
    }

    /// Ends the work.
    fn end(&self) {}

    /// Reports a note for the user.
    fn note(&self, note: &Note) {
        let _ = note;
    }

    /// Returns whether the work must stop.
    fn is_stopped(&self) -> bool {
        false
    }

    /// Returns the time since the job began; zero if there is no clock.
    fn elapsed(&self) -> Duration {
        Duration::ZERO
    }
}

/// Observer that ignores everything.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoProgress;

impl Progress for NoProgress {}

/// Observer that forwards everything except notes.
pub(crate) struct Quiet<'p> {
    pub progress: &'p dyn Progress,
}

impl Progress for Quiet<'_> {
    fn begin(&self, unit: Unit, total: u64) {
        self.progress.begin(unit, total);
    }

    fn part(&self, name: &str, size: u64) {
        self.progress.part(name, size);
    }

    fn share(&self, share: f64) {
        self.progress.share(share);
    }

    fn best(&self, value: f64) {
        self.progress.best(value);
    }

    fn end(&self) {
        self.progress.end();
    }

    fn is_stopped(&self) -> bool {
        self.progress.is_stopped()
    }

    fn elapsed(&self) -> Duration {
        self.progress.elapsed()
    }
}

/// Environment of a job: source of inputs, and observer.
#[derive(Clone, Copy)]
pub struct Context<'c> {
    /// Source of inputs.
    pub inputs: &'c dyn Inputs,
    /// Observer of the work.
    pub progress: &'c dyn Progress,
}

impl Context<'_> {
    /// Forwards a note to the observer.
    pub fn note(&self, note: &Note) {
        self.progress.note(note);
    }

    /// Returns [`Error::Interrupted`] if the work must stop.
    pub fn check_interrupted(&self) -> Result<()> {
        if self.progress.is_stopped() { Err(Error::Interrupted) } else { Ok(()) }
    }

    /// Starts work on files.
    pub(crate) fn work_on<'n>(&self, names: impl IntoIterator<Item = &'n String>) -> Work<'_> {
        let total = names.into_iter().map(|name| self.inputs.size(name)).sum();
        self.work(Unit::Bytes, total)
    }

    /// Starts work of a known size.
    pub(crate) fn work(&self, unit: Unit, total: u64) -> Work<'_> {
        self.progress.begin(unit, total);
        Work(self.progress)
    }

    /// Starts the next file.
    pub(crate) fn file(&self, name: &str) {
        self.progress.part(name, self.inputs.size(name));
    }
}

/// Work in progress; it ends when this is dropped.
#[must_use]
pub(crate) struct Work<'p>(&'p dyn Progress);

impl Drop for Work<'_> {
    fn drop(&mut self) {
        self.0.end();
    }
}
