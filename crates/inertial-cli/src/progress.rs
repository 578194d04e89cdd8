//! How far long work is: a bar on a terminal, once the work has lasted a while; nothing anywhere else.
//!
//! One bar at a time belongs to a thread. What works tells it a share; where there is no bar, that does nothing.

use std::cell::RefCell;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::session;

/// Work that is done sooner shows no bar.
const PATIENCE: Duration = Duration::from_secs(1);

/// Share of the work on a log until it is prepared; the rest is what its samples say of the unknowns.
const PREPARED: f64 = 0.7;

/// Where the bar is.
struct Bar {
    drawn: ProgressBar,
    /// Where the part of the work begins that is under way, how large it is, and the share of it that is done before it is
    /// told of.
    start: u64,
    size: u64,
    skipped: f64,
    shown: bool,
}

impl Bar {
    fn new(total: u64, unit: &str) -> Self {
        // Hidden until the work has lasted a while.
        let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::hidden());
        let style = match total {
            0 => "{spinner} {elapsed} {msg}".to_owned(),
            _ => format!("{{bar:30}} {unit}, {{elapsed}}, {{eta}} left {{msg}}"),
        };
        if let Ok(style) = ProgressStyle::with_template(&style) {
            bar.set_style(style);
        }
        Self { drawn: bar, start: 0, size: total, skipped: 0.0, shown: false }
    }

    /// A part of the work begins where the last one ended.
    fn begin(&mut self, size: u64, name: &str, skipped: f64) {
        (self.start, self.size, self.skipped) = (self.drawn.position(), size, skipped);
        self.drawn.set_message(name.to_owned());
    }

    fn at(&mut self, share: f64) {
        let share = ((share - self.skipped) / (1.0 - self.skipped)).clamp(0.0, 1.0);
        self.drawn.set_position(self.start + (share * self.size as f64).round() as u64);
        if !self.shown && self.drawn.elapsed() > PATIENCE {
            // Stays hidden by indicatif itself where standard error is no terminal.
            self.drawn.set_draw_target(ProgressDrawTarget::stderr());
            self.shown = true;
        }
        if self.drawn.length() == Some(0) {
            self.drawn.tick();
        }
    }
}

thread_local! {
    static CURRENT: RefCell<Option<Bar>> = const { RefCell::new(None) };
}

fn with(work: impl FnOnce(&mut Bar)) {
    CURRENT.with_borrow_mut(|current| current.as_mut().map(work));
}

/// Work under way; its bar goes when this does.
#[must_use]
pub struct Work(());

impl Work {
    fn begin(total: u64, unit: &str) -> Self {
        // Another program that called has no terminal of ours.
        if !session::has_caller() {
            CURRENT.with_borrow_mut(|current| *current = Some(Bar::new(total, unit)));
        }
        Self(())
    }

    /// On files, as many bytes as they have.
    pub fn on_files<'p>(paths: impl IntoIterator<Item = &'p String>) -> Self {
        Self::begin(paths.into_iter().map(|path| bytes(path)).sum(), "{bytes}/{total_bytes}")
    }

    /// On so many samples.
    pub fn on_samples(count: usize) -> Self {
        Self::begin(count as u64, "{pos}/{len} samples")
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        if let Some(bar) = CURRENT.with_borrow_mut(Option::take) {
            bar.drawn.finish_and_clear();
        }
    }
}

/// Bytes of a file; none of a pipe, or of what cannot be read.
fn bytes(path: &str) -> u64 {
    std::fs::metadata(path).map_or(0, |m| m.len())
}

/// The next of the files begins.
pub fn file(path: &str) {
    with(|bar| bar.begin(bytes(path), path, 0.0));
}

/// The next of the files begins, which was prepared before.
pub fn file_again(path: &str) {
    with(|bar| bar.begin(bytes(path), path, PREPARED));
}

/// The file is prepared to this share.
pub fn prepared(share: f64) {
    at(PREPARED * share);
}

/// The file is prepared and taken in to this share.
pub fn taken_in(share: f64) {
    at(PREPARED + (1.0 - PREPARED) * share);
}

/// This share of the file, or of all samples, is done.
pub fn at(share: f64) {
    with(|bar| bar.at(share));
}

/// Writes beside the bar, not into it.
pub fn aside(write: impl FnOnce()) {
    let bar = CURRENT.with_borrow(|current| current.as_ref().map(|b| b.drawn.clone()));
    match bar {
        Some(bar) => bar.suspend(write),
        None => write(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn position() -> u64 {
        CURRENT.with_borrow(|c| c.as_ref().map_or(u64::MAX, |b| b.drawn.position()))
    }

    #[test]
    fn files_follow_each_other_by_their_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str, size: usize| {
            let path = folder.path().join(name).display().to_string();
            std::fs::write(&path, vec![b'x'; size]).unwrap();
            path
        };
        let (a, b) = (path("a.csv", 1000), path("b.csv", 3000));
        let work = Work::on_files([&a, &b]);
        file(&a);
        assert_eq!(position(), 0);
        prepared(1.0);
        assert_eq!(position(), 700);
        taken_in(1.0);
        assert_eq!(position(), 1000);
        file(&b);
        assert_eq!(position(), 1000);
        prepared(0.5);
        assert_eq!(position(), 2050);
        taken_in(1.0);
        assert_eq!(position(), 4000);
        drop(work);
        let again = Work::on_files([&a, &b]);
        file_again(&a);
        taken_in(0.5);
        assert_eq!(position(), 500, "what was prepared before is not done again");
        drop(again);
        // Without a bar, what is told goes nowhere.
        at(0.5);
        assert_eq!(position(), u64::MAX);
    }
}
