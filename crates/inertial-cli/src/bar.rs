//! Progress bar on a terminal for work that lasts longer than a second.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use inertial::consistency::significant;
use inertial_app::Unit;

/// Time after which the bar appears.
const DELAY: Duration = Duration::from_secs(1);

/// Progress bar that is cleared when it is dropped.
pub struct Bar {
    drawn: ProgressBar,
    /// Start and size of the current part.
    start: u64,
    size: u64,
    shown: bool,
}

impl Bar {
    /// Creates a hidden bar; a total of zero is unknown.
    pub fn new(unit: Unit, total: u64) -> Self {
        let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::hidden());
        let unit = match unit {
            Unit::Bytes => "{bytes}/{total_bytes}",
            Unit::Samples => "{pos}/{len} samples",
            Unit::Steps => "{pos}/{len} steps",
        };
        let style = match total {
            0 => "{spinner} {elapsed} {msg}".to_owned(),
            _ => format!("{{bar:30}} {unit}, {{elapsed}}, {{eta}} left {{msg}}"),
        };
        if let Ok(style) = ProgressStyle::with_template(&style) {
            bar.set_style(style);
        }
        Self { drawn: bar, start: 0, size: total, shown: false }
    }

    /// Starts a part at the end of the last one.
    pub fn part(&mut self, name: &str, size: u64) {
        (self.start, self.size) = (self.drawn.position(), size);
        self.drawn.set_message(name.to_owned());
    }

    /// Shows the completed fraction of the part.
    pub fn share(&mut self, share: f64) {
        self.drawn.set_position(self.start + (share.clamp(0.0, 1.0) * self.size as f64).round() as u64);
        if !self.shown && self.drawn.elapsed() > DELAY {
            // The bar stays hidden in indicatif if standard error is not a terminal.
            self.drawn.set_draw_target(ProgressDrawTarget::stderr());
            self.shown = true;
        }
        if self.drawn.length() == Some(0) {
            self.drawn.tick();
        }
    }

    /// Shows the best value of a search.
    pub fn best(&self, value: f64) {
        self.drawn.set_message(format!("criterion {}", significant(value, 6)));
    }

    /// Hides the bar while `write` runs.
    pub fn suspend<T>(&self, write: impl FnOnce() -> T) -> T {
        self.drawn.suspend(write)
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.drawn.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_follow_each_other_by_their_sizes() {
        let mut bar = Bar::new(Unit::Bytes, 4000);
        bar.part("a.csv", 1000);
        assert_eq!(bar.drawn.position(), 0);
        bar.share(0.7);
        assert_eq!(bar.drawn.position(), 700);
        bar.share(1.0);
        bar.part("b.csv", 3000);
        assert_eq!(bar.drawn.position(), 1000);
        bar.share(0.5);
        assert_eq!(bar.drawn.position(), 2500);
        bar.share(1.5);
        assert_eq!(bar.drawn.position(), 4000);
    }
}
