//! Progress of long work, notes beside the result, and the request to stop.

use std::time::Duration;

use crate::{Error, Inputs, Note, Result};

/// Unit in which work is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Bytes of files.
    Bytes,
    /// Samples.
    Samples,
    /// Steps of a search.
    Steps,
}

/// Observer of a job, called from any of its threads. Every method does nothing by default; [`Silent`] is an observer that only does that.
pub trait Progress: Sync {
    /// Work of a known size begins; a size of zero is unknown.
    fn begin(&self, unit: Unit, total: u64) {
        let _ = (unit, total);
    }

    /// The next part of the work begins.
    fn part(&self, name: &str, size: u64) {
        let _ = (name, size);
    }

    /// This share of the part, or of the whole work where it has no parts, is done.
    fn share(&self, share: f64) {
        let _ = share;
    }

    /// Best value that a search has found so far.
    fn best(&self, value: f64) {
        let _ = value;
    }

    /// The work ends.
    fn end(&self) {}

    /// Something that people should know beside the result.
    fn note(&self, note: &Note) {
        let _ = note;
    }

    /// Whether the work shall stop.
    fn is_stopped(&self) -> bool {
        false
    }

    /// Time since the job began; zero where there is no clock.
    fn elapsed(&self) -> Duration {
        Duration::ZERO
    }
}

/// Observer that ignores everything.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Progress for Silent {}

/// Observer that passes on everything but notes.
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

/// Surroundings of a job: where its inputs come from, and who observes it.
#[derive(Clone, Copy)]
pub struct Context<'c> {
    /// Source of inputs.
    pub inputs: &'c dyn Inputs,
    /// Observer.
    pub progress: &'c dyn Progress,
}

impl Context<'_> {
    /// Passes on a note.
    pub fn note(&self, note: &Note) {
        self.progress.note(note);
    }

    /// Returns [`Error::Interrupted`] where the work shall stop.
    pub fn go_on(&self) -> Result<()> {
        if self.progress.is_stopped() { Err(Error::Interrupted) } else { Ok(()) }
    }

    /// Begins work on files.
    pub(crate) fn work_on<'n>(&self, names: impl IntoIterator<Item = &'n String>) -> Work<'_> {
        let total = names.into_iter().map(|name| self.inputs.size(name)).sum();
        self.work(Unit::Bytes, total)
    }

    /// Begins work of a known size.
    pub(crate) fn work(&self, unit: Unit, total: u64) -> Work<'_> {
        self.progress.begin(unit, total);
        Work(self.progress)
    }

    /// Begins with the next file.
    pub(crate) fn file(&self, name: &str) {
        self.progress.part(name, self.inputs.size(name));
    }
}

/// Work under way; it ends when this is dropped.
#[must_use]
pub(crate) struct Work<'p>(&'p dyn Progress);

impl Drop for Work<'_> {
    fn drop(&mut self) {
        self.0.end();
    }
}
