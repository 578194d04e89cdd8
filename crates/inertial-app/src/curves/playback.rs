//! Motion of a log, for playback.

use serde::Serialize;

use super::Floats;

/// Largest number of frames of one motion and of all motions together, and largest frame rate (Hz).
const FRAMES: usize = 3000;
const ALL_FRAMES: usize = 12_000;
const FRAME_RATE: f64 = 60.0;

/// Positions over time, for playback.
#[derive(Debug, Serialize)]
pub struct Motion {
    /// Name of the log, and its part.
    pub name: String,
    /// Time between frames (s).
    pub step: f64,
    /// Number of frames.
    pub length: usize,
    /// Time series of each coordinate.
    pub q: Vec<Floats>,
}

/// Collector of the frames of a motion.
pub(super) struct Playback {
    every: usize,
    rate: f64,
    seen: usize,
    q: Vec<Vec<f32>>,
}

impl Playback {
    /// Creates a collector for `samples` samples at a rate in Hz, one of `playbacks` motions that share the frames.
    pub(super) fn new(samples: usize, rate: f64, playbacks: usize) -> Self {
        let often = (rate / FRAME_RATE).round().max(1.0) as usize;
        let frames = FRAMES.min((ALL_FRAMES / playbacks.max(1)).max(1));
        Self { every: samples.div_ceil(frames).max(often), rate, seen: 0, q: Vec::new() }
    }

    /// Adds the next `count` samples.
    pub(super) fn take(&mut self, q: &[f64], count: usize) {
        let nq = q.len() / count.max(1);
        self.q.resize_with(nq, Vec::new);
        for q in q.chunks_exact(nq.max(1)) {
            if self.seen.is_multiple_of(self.every) {
                self.q.iter_mut().zip(q).for_each(|(to, x)| to.push(*x as f32));
            }
            self.seen += 1;
        }
    }

    /// Returns the motion; `None` if it has fewer than two frames.
    pub(super) fn finish(self, name: String) -> Option<Motion> {
        let length = self.q.first().map_or(0, Vec::len);
        let step = self.every as f64 / self.rate;
        let q = self.q.into_iter().map(Floats).collect();
        (length > 1).then_some(Motion { name, step, length, q })
    }
}
