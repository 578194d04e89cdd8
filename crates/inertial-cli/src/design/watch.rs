//! A search as its user sees it: progress on a terminal, the clock, and Ctrl-C.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use inertial::consistency::significant;
use inertial::excitation::Progress;

use super::Args;
use crate::session;

/// Progress on a terminal, the clock, and Ctrl-C.
pub struct Watcher {
    pub bar: ProgressBar,
    start: Instant,
    limit: Option<Duration>,
    stop: Arc<AtomicBool>,
}

impl Watcher {
    pub fn new(args: &Args) -> Result<Self> {
        let total = (args.starts * args.iterations) as u64;
        // Hidden by indicatif itself where standard error is no terminal.
        let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr());
        let style = "{bar:30} {pos}/{len} steps, {elapsed}, {eta} left: {msg}";
        bar.set_style(ProgressStyle::with_template(style)?);
        let limit = args.time_limit.map(Duration::try_from_secs_f64).transpose().context("--time-limit")?;
        Ok(Self { bar, start: Instant::now(), limit, stop: session::stop_flag()? })
    }

    pub fn step(&self, progress: Progress) -> bool {
        self.bar.set_position(progress.steps as u64);
        if progress.best.is_finite() {
            self.bar.set_message(format!("criterion {}", significant(progress.best, 6)));
        }
        !self.interrupted()
    }

    pub fn interrupted(&self) -> bool {
        self.stop.load(Ordering::Relaxed) || self.limit.is_some_and(|l| self.start.elapsed() >= l)
    }
}
