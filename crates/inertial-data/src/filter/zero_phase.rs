//! Zero-phase smoothing, block by block.
//!
//! The result is that of smoothing the whole signal at once, to rounding. A window (Savitzky–Golay) needs half a window on
//! either side. The forward pass of the Butterworth filter carries its state from block to block and is exact. The backward
//! pass of a block starts a stretch later than the block ends, in a state that is not the right one; the difference decays
//! by the filter's slowest pole, and the stretch is so long ([`LowPass::forgetting`]) that less than the rounding of a
//! number is left of it.

use crate::{LowPass, Result, SavitzkyGolay};

/// Rows smoothed at once.
const BLOCK: usize = 1 << 13;

/// A filter.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Kernel {
    Butterworth(LowPass),
    SavitzkyGolay(SavitzkyGolay),
}

impl Kernel {
    /// Rows by which a signal is continued at both ends, by its point reflection.
    fn pad(&self) -> usize {
        match self {
            Self::Butterworth(filter) => filter.settling(),
            Self::SavitzkyGolay(window) => window.half(),
        }
    }

    /// Gain at a frequency.
    pub fn gain(&self, frequency_hz: f64, rate_hz: f64) -> f64 {
        match self {
            Self::Butterworth(filter) => filter.gain(frequency_hz, rate_hz),
            Self::SavitzkyGolay(window) => window.gain(frequency_hz, rate_hz),
        }
    }

    /// Rows after a block that it depends on; at least as many as the continuation at the end mirrors.
    fn reach(&self) -> usize {
        match self {
            Self::Butterworth(filter) => filter.forgetting().max(filter.settling() + 1),
            Self::SavitzkyGolay(window) => window.half() + 1,
        }
    }
}

/// Smooths rows of numbers, each column alike.
pub(crate) struct Smoother {
    kernel: Option<Kernel>,
    width: usize,
    pad: usize,
    block: usize,
    /// Rows that wait for their smoothed values.
    raw: Vec<f64>,
    /// The signal with its continuations from the first row that is not done: after the forward pass, or as it came.
    ahead: Vec<f64>,
    /// Rows at its start that are done but still needed, and that belong to the continuation.
    behind: usize,
    skip: usize,
    /// States of the forward pass.
    states: Option<Vec<f64>>,
    smoothed: Vec<f64>,
}

/// Takes rows smoothed and as they came.
pub(crate) type Sink<'s> = &'s mut dyn FnMut(&[f64], &[f64]) -> Result<()>;

impl Smoother {
    /// Creates the smoother for a signal of `count` rows.
    pub fn new(kernel: Option<Kernel>, width: usize, count: usize) -> Self {
        let pad = kernel.as_ref().map_or(0, Kernel::pad).min(count.saturating_sub(1));
        // A block as long as what follows it costs at most one pass more.
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

    /// Takes more rows.
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

    /// After the last row.
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

    /// The point reflections of some waiting rows at another.
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
                rows.chunks_exact_mut(width).for_each(|row| filter.step(row, states));
            }
            Kernel::SavitzkyGolay(_) => self.states = Some(Vec::new()),
        }
    }

    /// Hands on the next `count` rows.
    fn emit(&mut self, kernel: &Kernel, count: usize, sink: Sink<'_>) -> Result<()> {
        let width = self.width;
        self.smoothed.clear();
        match kernel {
            Kernel::Butterworth(filter) => {
                self.smoothed.extend_from_slice(&self.ahead);
                if let Some(last) = self.smoothed.chunks_exact(width).next_back() {
                    let mut states = filter.rest(last);
                    let rows = self.smoothed.chunks_exact_mut(width).rev();
                    rows.for_each(|row| filter.step(row, &mut states));
                }
                self.smoothed.truncate(count * width);
                self.smoothed.drain(..self.skip.min(count) * width);
                self.skip -= self.skip.min(count);
                self.ahead.drain(..count * width);
            }
            Kernel::SavitzkyGolay(window) => {
                // The first row with a full window before it is the signal's first: the continuation is as long.
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

    /// Two columns of noise on a ramp.
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
    fn blocks_give_what_the_whole_gives() {
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
                    // Rounding of numbers up to 2e5, summed over the filter's memory of some hundred samples.
                    assert!((x - columns[i % 2][i / 2]).abs() < 1e-8, "{count} {block} {i}");
                }
                let kernel = Kernel::SavitzkyGolay(window.clone());
                let whole = smoothed(&kernel, &signal, 1 << 20, count);
                assert_eq!(smoothed(&kernel, &signal, block, fed), whole);
            }
        }
    }
}
