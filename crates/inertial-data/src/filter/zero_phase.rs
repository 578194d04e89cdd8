//! Zero-phase smoothing, block by block.
//!
//! The result equals that of smoothing the whole signal at once, up to rounding errors. A window (Savitzky–Golay) needs half a window
//! on either side. The forward pass of the Butterworth filter carries its state from block to block and is exact. The backward
//! pass of a block starts some samples after the end of the block, in an approximate state. The difference decays with the filter's
//! slowest pole, and the number of samples ([`LowPass::forgetting`]) is so large that the rest is below the rounding error.

use inertial::linalg::vectorized;

use crate::{LowPass, Result, SavitzkyGolay};

/// Number of rows smoothed at once.
const BLOCK: usize = 1 << 13;

/// Smoothing filter.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Kernel {
    Butterworth(LowPass),
    SavitzkyGolay(SavitzkyGolay),
}

impl Kernel {
    /// Returns the number of rows by which a signal is extended at both ends, by point reflection.
    fn pad(&self) -> usize {
        match self {
            Self::Butterworth(filter) => filter.settling(),
            Self::SavitzkyGolay(window) => window.half(),
        }
    }

    /// Returns the gain at a frequency.
    pub fn gain(&self, frequency_hz: f64, rate_hz: f64) -> f64 {
        match self {
            Self::Butterworth(filter) => filter.gain(frequency_hz, rate_hz),
            Self::SavitzkyGolay(window) => window.gain(frequency_hz, rate_hz),
        }
    }

    /// Returns the number of rows after a block on which it depends; at least as many as the extension at the end reflects.
    fn reach(&self) -> usize {
        match self {
            Self::Butterworth(filter) => filter.forgetting().max(filter.settling() + 1),
            Self::SavitzkyGolay(window) => window.half() + 1,
        }
    }
}

/// Smoother of rows of numbers; all columns use the same filter.
pub(crate) struct Smoother {
    kernel: Option<Kernel>,
    width: usize,
    pad: usize,
    block: usize,
    /// Rows whose smoothed values are not complete yet.
    raw: Vec<f64>,
    /// Extended signal from the first unfinished row, after the forward pass if there is one.
    ahead: Vec<f64>,
    /// Number of rows at its start that are finished but still needed, and number of rows that belong to the extension.
    behind: usize,
    skip: usize,
    /// States of the forward pass.
    states: Option<Vec<f64>>,
    smoothed: Vec<f64>,
}

/// Consumer of smoothed rows and of the corresponding raw rows.
pub(crate) type Sink<'s> = &'s mut dyn FnMut(&[f64], &[f64]) -> Result<()>;

impl Smoother {
    /// Creates the smoother for a signal of `count` rows.
    pub fn new(kernel: Option<Kernel>, width: usize, count: usize) -> Self {
        let pad = kernel.as_ref().map_or(0, Kernel::pad).min(count.saturating_sub(1));
        // A block as long as the rows needed after it costs at most one additional pass.
        let block = kernel.as_ref().map_or(0, Kernel::reach).max(BLOCK);
        Self {
            kernel,
            width,
            pad,
            block,
            raw: Vec::new(),
            ahead: Vec::new(),
            behind: 0,
            skip: pad,
            states: None,
            smoothed: Vec::new(),
        }
    }

    #[cfg(test)]
    fn with_block(mut self, block: usize) -> Self {
        self.block = block;
        self
    }

    /// Adds rows.
    pub fn push(&mut self, rows: &[f64], sink: Sink<'_>) -> Result<()> {
        let Some(kernel) = self.kernel.take() else { return sink(rows, rows) };
        self.raw.extend_from_slice(rows);
        if self.states.is_some() {
            self.feed(&kernel, rows);
        } else if self.raw.len() / self.width > self.pad {
            let head = self.reflected(0, 1..=self.pad);
            self.feed(&kernel, &head);
            let start = std::mem::take(&mut self.raw);
            self.feed(&kernel, &start);
            self.raw = start;
        }
        while self.ahead.len() / self.width >= self.behind + self.block + kernel.reach() {
            self.emit(&kernel, self.block, sink)?;
        }
        self.kernel = Some(kernel);
        Ok(())
    }

    /// Finishes after the last row.
    pub fn finish(&mut self, sink: Sink<'_>) -> Result<()> {
        let Some(kernel) = self.kernel.take() else { return Ok(()) };
        let last = (self.raw.len() / self.width).saturating_sub(1);
        if self.states.is_some() {
            let tail = self.reflected(last, (last - self.pad..last).rev());
            self.feed(&kernel, &tail);
            let rest = self.ahead.len() / self.width - self.behind;
            self.emit(&kernel, rest - self.pad, sink)?;
        }
        Ok(())
    }

    /// Returns the point reflections of some waiting rows at another.
    fn reflected(&self, at: usize, rows: impl DoubleEndedIterator<Item = usize> + Clone) -> Vec<f64> {
        let row = |i: usize| &self.raw[i * self.width..(i + 1) * self.width];
        let order: Vec<usize> = if at == 0 { rows.rev().collect() } else { rows.collect() };
        let one = |i: &usize| row(*i).iter().zip(row(at)).map(|(x, at)| 2.0 * at - x);
        order.iter().flat_map(one).collect()
    }

    fn feed(&mut self, kernel: &Kernel, rows: &[f64]) {
        let from = self.ahead.len();
        self.ahead.extend_from_slice(rows);
        match kernel {
            Kernel::Butterworth(filter) => {
                let rows = &mut self.ahead[from..];
                let width = self.width;
                let states = self.states.get_or_insert_with(|| {
                    rows.chunks_exact(width).next().map_or(Vec::new(), |row| filter.rest(row))
                });
                vectorized(|| rows.chunks_exact_mut(width).for_each(|row| filter.step(row, states)));
            }
            Kernel::SavitzkyGolay(_) => self.states = Some(Vec::new()),
        }
    }

    /// Emits the next `count` rows.
    fn emit(&mut self, kernel: &Kernel, count: usize, sink: Sink<'_>) -> Result<()> {
        let width = self.width;
        self.smoothed.clear();
        match kernel {
            Kernel::Butterworth(filter) => {
                self.smoothed.extend_from_slice(&self.ahead);
                if let Some(last) = self.smoothed.chunks_exact(width).next_back() {
                    let mut states = filter.rest(last);
                    let rows = self.smoothed.chunks_exact_mut(width).rev();
                    vectorized(|| rows.for_each(|row| filter.step(row, &mut states)));
                }
                self.smoothed.truncate(count * width);
                self.smoothed.drain(..self.skip.min(count) * width);
                self.skip -= self.skip.min(count);
                self.ahead.drain(..count * width);
            }
            Kernel::SavitzkyGolay(window) => {
                // The extension is as long as half a window, so the first row with a full window before it is the signal's first.
                for i in self.behind.max(self.pad)..self.behind + count {
                    let around = &self.ahead[(i - self.pad) * width..(i + self.pad + 1) * width];
                    window.middle(around, width, self.pad, &mut self.smoothed);
                }
                let done = self.behind + count;
                let drop = done.saturating_sub(self.pad);
                self.ahead.drain(..drop * width);
                self.behind = done - drop;
            }
        }
        let done = self.smoothed.len();
        sink(&self.smoothed, &self.raw[..done])?;
        self.raw.drain(..done);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Creates two columns of noise on a ramp.
    fn signal(count: usize) -> Vec<f64> {
        (0..count as u64)
            .flat_map(|k| {
                [k.wrapping_mul(2_654_435_761) % 1009, 50 * k + k * k % 97].map(|x| x as f64 - 500.0)
            })
            .collect()
    }

    fn smoothed(kernel: &Kernel, signal: &[f64], block: usize, fed: usize) -> Vec<f64> {
        let mut out = Vec::new();
        let mut smoother = Smoother::new(Some(kernel.clone()), 2, signal.len() / 2).with_block(block);
        let mut sink = |smooth: &[f64], raw: &[f64]| {
            assert_eq!(raw, &signal[out.len()..out.len() + raw.len()]);
            out.extend_from_slice(smooth);
            Ok(())
        };
        signal.chunks(2 * fed).for_each(|rows| smoother.push(rows, &mut sink).unwrap());
        smoother.finish(&mut sink).unwrap();
        out
    }

    #[test]
    fn smoothing_in_blocks_equals_smoothing_at_once() {
        let filter = LowPass::new(4, 8.0, 200.0).unwrap();
        let window = SavitzkyGolay::new(25, 3).unwrap();
        for count in [2, 9, 40, 2000, 4001] {
            let signal = signal(count);
            let column = |k: usize| signal[k..].iter().step_by(2).copied().collect::<Vec<f64>>();
            let mut columns = [column(0), column(1)];
            columns.iter_mut().for_each(|c| filter.apply(c));
            for (block, fed) in [(1, 1), (64, 7), (500, 4001), (1 << 20, 100)] {
                let blocks = smoothed(&Kernel::Butterworth(filter.clone()), &signal, block, fed);
                assert_eq!(blocks.len(), signal.len());
                for (i, x) in blocks.iter().enumerate() {
                    // Rounding errors of numbers up to 2e5, summed over the filter's memory of some hundred samples.
                    assert!((x - columns[i % 2][i / 2]).abs() < 1e-8, "{count} {block} {i}");
                }
                let kernel = Kernel::SavitzkyGolay(window.clone());
                let whole = smoothed(&kernel, &signal, 1 << 20, count);
                assert_eq!(smoothed(&kernel, &signal, block, fed), whole);
            }
        }
    }
}
