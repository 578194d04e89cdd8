//! Reduction of rows to triangular factors, with filtering and robust weights.

use std::ops::Range;

use crate::Result;
use crate::estimation::equations::{Channel, Equations};
use crate::estimation::reduction::factor::{Factor, LAGS};
use crate::estimation::reduction::measurements::{Huber, Measurements};
use crate::estimation::reduction::row_filter::RowFilter;
use crate::estimation::reduction::rows::{BLOCK, RowBlock, Visitor};

/// Logs with more samples than this give every sixteenth difference only: how white a residual is needs no more.
const MANY: usize = 20_000;
const SOME: usize = 16;

/// Huber's bound in standard deviations: 95 % as good as least squares where noise is normal.
const HUBER: f64 = 1.345;

/// Rows on their way into the factors of all channels.
pub(crate) struct Reduction<'d> {
    data: &'d Measurements<'d>,
    equations: &'d Equations<'d>,
    factors: &'d mut [Factor],
    /// Samples at which rows are centred.
    centres: Range<usize>,
    kept: Vec<usize>,
    block: Vec<f64>,
    differences: Vec<f64>,
    /// Rows that are so far apart.
    pairs: Vec<(usize, usize)>,
    /// Samples of each channel that later filtered rows need.
    waiting: Vec<Waiting>,
}

/// Rows of consecutive samples, column after column with room at the end of each.
struct Waiting {
    room: usize,
    len: usize,
    /// Sample of the first.
    first: usize,
    columns: Vec<f64>,
    keep: Vec<bool>,
    /// Centre of the next row.
    next: usize,
}

impl Measurements<'_> {
    /// Reduces the rows centred at some samples into the factors of all channels.
    pub(crate) fn reduce(
        &self,
        equations: &Equations<'_>,
        first: usize,
        count: usize,
        factors: &mut [Factor],
    ) -> Result<()> {
        let reach = self.reach();
        // What the filter reaches, as far as it is there.
        let (from, to) = (first.saturating_sub(reach), (first + count + reach).min(self.len()));
        let mut reduction = Reduction::new(self, equations, factors, first..first + count, from);
        self.visit(equations, from..to, &mut reduction)?;
        reduction.finish()
    }
}

impl<'d> Reduction<'d> {
    /// `from` is the first sample that will be taken.
    pub fn new(
        data: &'d Measurements<'d>,
        equations: &'d Equations<'d>,
        factors: &'d mut [Factor],
        centres: Range<usize>,
        from: usize,
    ) -> Self {
        let waiting = |filter: &RowFilter| {
            let room = 2 * filter.half() + (BLOCK / 2 * filter.every()).max(BLOCK);
            // Rows are centred at multiples of their distance, and their windows lie within the samples.
            let next = centres.start.max(from + filter.half()).next_multiple_of(filter.every());
            let channel = |channel: &Channel| Waiting {
                room,
                len: 0,
                first: from,
                columns: vec![0.0; room * (channel.unknowns.len() + 2)],
                keep: Vec::with_capacity(room),
                next,
            };
            equations.channels.iter().map(channel).collect()
        };
        let waiting = data.filter.map_or_else(Vec::new, waiting);
        let (kept, block, differences, pairs) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Self { data, equations, factors, centres, kept, block, differences, pairs, waiting }
    }

    /// After the last sample.
    pub fn finish(&mut self) -> Result<()> {
        (0..self.waiting.len()).try_for_each(|row| self.drain(row))
    }

    /// Columns of the samples `kept` into the block.
    fn fill(&mut self, rows: &RowBlock<'_>, entry: impl Fn(usize, usize) -> f64) {
        let (data, all) = (self.data, self.equations.channels.len());
        let channel = &self.equations.channels[rows.row];
        let (block, kept) = (&mut self.block, &self.kept);
        block.clear();
        for &e in &channel.entries {
            block.extend(kept.iter().map(|&s| entry(e, s)));
        }
        let given = &self.equations.joint_model().given;
        for (scale, feature) in &channel.features {
            let start = block.len();
            feature.fill(given, data, kept.iter().map(|s| rows.first + s), block);
            if *scale != 1.0 {
                block[start..].iter_mut().for_each(|x| *x *= scale);
            }
        }
        for tau in [data.tau, data.tau_raw.unwrap_or(data.tau)] {
            block.extend(kept.iter().map(|&s| tau[(rows.first + s) * all + rows.row]));
        }
        debug_assert_eq!(block.len(), kept.len() * (channel.unknowns.len() + 2));
    }

    /// Filters what is complete of a channel and drops what no later row needs.
    fn drain(&mut self, row: usize) -> Result<()> {
        let Some(filter) = self.data.filter else { return Ok(()) };
        let (half, every) = (filter.half(), filter.every());
        let waiting = &mut self.waiting[row];
        let end = (waiting.first + waiting.len).saturating_sub(half).min(self.centres.end);
        self.kept.clear();
        let start = |centre: usize| centre - half - waiting.first;
        let whole = (waiting.next..end).step_by(every);
        let counts = |c: &usize| filter.keeps(&waiting.keep[start(*c)..]);
        self.kept.extend(whole.clone().filter(counts));
        self.block.clear();
        let width = waiting.columns.len() / waiting.room;
        for (k, column) in waiting.columns.chunks_exact(waiting.room).enumerate() {
            // The force as measured stays so: the last column.
            if k + 1 == width && self.data.tau_raw.is_some() {
                self.block.extend(self.kept.iter().map(|&c| column[c - waiting.first]));
            } else {
                let force = k + 2 >= width;
                let weights = if force { filter.weights() } else { filter.column_weights() };
                let mean = |&c: &usize| dot(weights, &column[start(c)..start(c) + weights.len()]);
                self.block.extend(self.kept.iter().map(mean));
            }
        }
        waiting.next += whole.len() * every;
        let done = waiting.next.saturating_sub(half + waiting.first).min(waiting.len);
        for column in waiting.columns.chunks_exact_mut(waiting.room) {
            column.copy_within(done..waiting.len, 0);
        }
        waiting.keep.drain(..done);
        waiting.first += done;
        waiting.len -= done;
        self.kept.iter_mut().for_each(|c| *c /= every);
        self.reduce(row)
    }

    /// Takes the block into the factor.
    fn reduce(&mut self, row: usize) -> Result<()> {
        let channel = &self.equations.channels[row];
        let (rows, width) = (self.kept.len(), channel.unknowns.len() + 2);
        if let Some(huber) = self.data.huber {
            weigh(channel, &huber, huber.noise[row], rows, &mut self.block, &mut self.factors[row]);
        }
        let (share, every) = (self.data.independent_rows(), if self.data.len() > MANY { SOME } else { 1 });
        for k in 0..LAGS {
            let distance = ((k + 1) as f64 / share).round().max(1.0) as usize;
            let pairs = self.differences(width, distance, every);
            let lag = &mut self.factors[row].lags[k];
            lag.triangle.absorb(&mut self.differences, pairs)?;
            lag.pairs += pairs;
            lag.independent += pairs as f64 * (share * every as f64).min(1.0);
            // Of measurements that come filtered, nothing is known but how many of them are independent.
            lag.expected += pairs as f64 * self.data.filter.map_or(0.0, |f| f.correlation(distance));
        }
        let factor = &mut self.factors[row];
        factor.count += rows;
        Ok(factor.triangle.absorb(&mut self.block, rows)?)
    }

    /// Differences between rows some rows apart, column by column, beginning at every n-th row; their number.
    fn differences(&mut self, width: usize, lag: usize, every: usize) -> usize {
        let (kept, out) = (&self.kept, &mut self.differences);
        out.clear();
        let columns = self.block.chunks_exact(kept.len().max(1)).take(width);
        // Where no sample is missing, as in most blocks, a column's later rows stand beside its earlier ones.
        if every == 1 && kept.last().is_some_and(|last| last - kept[0] + 1 == kept.len()) {
            columns.for_each(|c| out.extend(c.iter().skip(lag).zip(c).map(|(later, row)| later - row)));
            return kept.len().saturating_sub(lag);
        }
        self.pairs.clear();
        // Both ends go forward only, as samples are in order.
        let mut j = 0;
        for i in (0..kept.len()).step_by(every) {
            while j < kept.len() && kept[j] < kept[i] + lag {
                j += 1;
            }
            if kept.get(j) == Some(&(kept[i] + lag)) {
                self.pairs.push((i, j));
            }
        }
        columns.for_each(|c| out.extend(self.pairs.iter().map(|&(i, j)| c[j] - c[i])));
        self.pairs.len()
    }
}

impl Visitor for Reduction<'_> {
    /// Takes rows; those of a channel come in order.
    fn rows(&mut self, rows: &RowBlock<'_>, _: &Channel, entry: impl Fn(usize, usize) -> f64) -> Result<()> {
        let (data, all) = (self.data, self.equations.channels.len());
        let keep = |s: &usize| data.keep.is_none_or(|keep| keep[(rows.first + s) * all + rows.row]);
        if data.filter.is_none() {
            self.kept.clear();
            self.kept.extend((0..rows.count).filter(keep));
            self.fill(rows, entry);
            return self.reduce(rows.row);
        }
        if self.waiting[rows.row].len + rows.count > self.waiting[rows.row].room {
            self.drain(rows.row)?;
        }
        self.kept.clear();
        self.kept.extend(0..rows.count);
        self.fill(rows, entry);
        let waiting = &mut self.waiting[rows.row];
        waiting.keep.extend(self.kept.iter().map(keep));
        let columns = waiting.columns.chunks_exact_mut(waiting.room);
        for (to, from) in columns.zip(self.block.chunks_exact(rows.count)) {
            to[waiting.len..waiting.len + rows.count].copy_from_slice(from);
        }
        waiting.len += rows.count;
        Ok(())
    }
}

/// Multiplies rows by the square root of Huber's weight.
fn weigh(
    channel: &Channel,
    huber: &Huber<'_>,
    noise: f64,
    rows: usize,
    block: &mut [f64],
    factor: &mut Factor,
) {
    let n = channel.unknowns.len();
    let bound = HUBER * noise;
    for i in 0..rows {
        let predicted: f64 =
            channel.unknowns.iter().enumerate().map(|(k, &x)| block[k * rows + i] * huber.values[x]).sum();
        let residual = (block[n * rows + i] - predicted).abs();
        factor.clipped += residual.min(bound).powi(2);
        if residual > bound {
            let root = (bound / residual).sqrt();
            (0..n + 2).for_each(|k| block[k * rows + i] *= root);
        }
    }
}

/// Four sums side by side: what the compiler may not reorder itself.
fn dot(a: &[f64], b: &[f64]) -> f64 {
    let (a4, b4) = (a.chunks_exact(4), b.chunks_exact(4));
    let tail: f64 = a4.remainder().iter().zip(b4.remainder()).map(|(x, y)| x * y).sum();
    let mut sums = [0.0; 4];
    for (x, y) in a4.zip(b4) {
        (0..4).for_each(|i| sums[i] += x[i] * y[i]);
    }
    sums.iter().sum::<f64>() + tail
}
