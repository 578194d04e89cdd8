//! Velocities of joints with one coordinate each, for spectra: joint by joint instead of sample by sample.

use rayon::prelude::{IntoParallelRefMutIterator, ParallelIterator};

use crate::columns::layout::Layout;
use crate::filter::differentiate::REACH;

/// Differentiator of a stream of rows. The velocities are those of [`Derive`](crate::filter::differentiate::Derive), to the last bit.
pub(crate) struct Velocities {
    signals: Vec<Signal>,
    width: usize,
    step: f64,
    /// Number of rows of the stream, of rows seen, and of samples emitted.
    count: usize,
    seen: usize,
    emitted: usize,
}

/// Signal that is one column of the rows, or its derivative.
struct Signal {
    /// Place in a row; `None` for a position that is not measured and stays constant.
    place: Option<usize>,
    is_derivative: bool,
    /// Values from sample [`Velocities::emitted`] minus [`REACH`] on, or from the first one.
    values: Vec<f64>,
    out: Vec<f64>,
}

impl Velocities {
    /// Creates the differentiator for `count` rows, `step` seconds apart, with further columns that are emitted as they are. Returns `None`
    /// if a joint has several coordinates.
    pub fn new(layout: &Layout, further: &[usize], step: f64, count: usize) -> Option<Self> {
        if layout.joints.iter().any(|joint| joint.joint_type.nq() != 1) || layout.joints.len() != layout.nv()
        {
            return None;
        }
        let signal =
            |place, is_derivative| Signal { place, is_derivative, values: Vec::new(), out: Vec::new() };
        let mut signals: Vec<Signal> = (0..layout.nv()).map(|v| signal(layout.dq[v], false)).collect();
        for joint in layout.joints.iter().filter(|joint| layout.dq[joint.v].is_none()) {
            signals[joint.v] = signal(layout.q[joint.q], true);
        }
        signals.extend(further.iter().map(|&place| signal(Some(place), false)));
        Some(Self { signals, width: layout.width(), step, count, seen: 0, emitted: 0 })
    }

    /// Adds rows, and passes the samples that are complete to `sink`, signal by signal; all of them after the last row.
    pub fn push(&mut self, rows: &[f64], sink: &mut dyn FnMut(&[&[f64]])) {
        let (width, step, count, from) = (self.width, self.step, self.count, self.emitted);
        self.seen += rows.len() / width;
        let end = if self.seen >= count { count } else { self.seen.saturating_sub(REACH) };
        if end <= from {
            self.signals.iter_mut().for_each(|signal| signal.load(rows, width));
            return;
        }
        self.signals.par_iter_mut().for_each(|signal| {
            signal.load(rows, width);
            signal.derive(from..end, step, count);
        });
        self.emitted = end;
        let samples: Vec<&[f64]> = self.signals.iter().map(|signal| &signal.out[..]).collect();
        sink(&samples);
    }
}

impl Signal {
    fn load(&mut self, rows: &[f64], width: usize) {
        match self.place {
            Some(place) => self.values.extend(rows.chunks_exact(width).map(|row| row[place])),
            None => self.values.resize(self.values.len() + rows.len() / width, 0.0),
        }
    }

    /// Writes the samples of a range, and drops the values that no later one needs.
    fn derive(&mut self, range: std::ops::Range<usize>, step: f64, count: usize) {
        // Index of the first of the values.
        let first = range.start.saturating_sub(REACH);
        let x = |i: usize| self.values[i - first];
        self.out.clear();
        if self.is_derivative {
            let at_end = |i: usize| {
                let (before, after) = (i.saturating_sub(1), (i + 1).min(count - 1));
                (x(after) - x(before)) / (step * (after - before) as f64)
            };
            let inner = range.start.max(REACH)
                ..range.end.min(count.saturating_sub(REACH)).max(range.start.max(REACH));
            self.out.extend((range.start..inner.start.min(range.end)).map(at_end));
            if !inner.is_empty() {
                let around = &self.values[inner.start - REACH - first..inner.end + REACH - first];
                self.out.extend(around.windows(2 * REACH + 1).map(|x| {
                    let (near, far) = (x[3] - x[1], x[4] - x[0]);
                    (8.0 * near - far) / (12.0 * step)
                }));
            }
            self.out.extend((inner.end.min(range.end)..range.end).map(at_end));
        } else {
            self.out.extend_from_slice(&self.values[range.start - first..range.end - first]);
        }
        self.values.drain(..range.end.saturating_sub(REACH) - first);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn velocities_are_those_of_the_stencils() {
        let (step, count) = (0.01, 50);
        let x = |i: usize| (0.3 * i as f64).sin() + 1e-3 * (i * i % 7) as f64;
        let rows: Vec<f64> = (0..count).flat_map(|i| [7.0, x(i)]).collect();
        let expected: Vec<f64> = (0..count)
            .map(|i| match i {
                0 => (x(1) - x(0)) / step,
                49 => (x(49) - x(48)) / step,
                1 | 48 => (x(i + 1) - x(i - 1)) / (step * 2.0),
                _ => (8.0 * (x(i + 1) - x(i - 1)) - (x(i + 2) - x(i - 2))) / (12.0 * step),
            })
            .collect();
        for fed in [1, 2, 3, 7, 48, 50] {
            let signal =
                |place, is_derivative| Signal { place, is_derivative, values: Vec::new(), out: Vec::new() };
            let signals = vec![signal(Some(1), true), signal(Some(1), false), signal(None, true)];
            let mut velocities = Velocities { signals, width: 2, step, count, seen: 0, emitted: 0 };
            let mut found = [Vec::new(), Vec::new(), Vec::new()];
            for part in rows.chunks(2 * fed) {
                let mut sink = |samples: &[&[f64]]| {
                    found.iter_mut().zip(samples).for_each(|(found, new)| found.extend_from_slice(new));
                };
                velocities.push(part, &mut sink);
            }
            assert_eq!(found[0], expected);
            assert_eq!(found[1], (0..count).map(x).collect::<Vec<_>>());
            assert_eq!(found[2], vec![0.0; count]);
        }
    }
}
