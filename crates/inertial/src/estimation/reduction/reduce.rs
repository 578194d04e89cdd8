//! Reduction of rows to triangular factors, with filtering and robust weights.

use std::ops::Range;

use crate::Result;
use crate::estimation::equations::{Channel, Equations};
use crate::estimation::reduction::blocks::{BlockPlan, Gram};
use crate::estimation::reduction::factor::{Factor, LAGS};
use crate::estimation::reduction::measurements::{Huber, Measurements};
use crate::estimation::reduction::row_filter::RowFilter;
use crate::estimation::reduction::rows::{BLOCK, RowBlock, Visitor};
use crate::estimation::reduction::term_columns::ShaftSpeeds;
use crate::linalg::{Triangle, window_sums};

/// Approximate number of differences of rows that are stored; more are not needed for whiteness tests.
const DIFFERENCES: usize = 2048;

/// Huber bound in standard deviations: 95 % efficiency relative to least squares for normal noise.
const HUBER: f64 = 1.345;

/// Rows that are being reduced to the factors of all channels.
pub(crate) struct Reduction<'d> {
    data: &'d Measurements<'d>,
    equations: &'d Equations<'d>,
    factors: &'d mut [Factor],
    /// Samples at which rows are centred.
    centres: Range<usize>,
    kept: Vec<usize>,
    /// First value in the window of each kept row.
    starts: Vec<usize>,
    block: Vec<f64>,
    /// Rows of the current chunk that belong to one block of the log.
    part: Vec<f64>,
    speeds: ShaftSpeeds,
    /// Pairs of rows at the current lag.
    pairs: Vec<(usize, usize)>,
    /// Samples of each channel that later filtered rows need.
    waiting: Vec<RowBuffer>,
    /// Current block of the log of each channel; empty without blocks.
    open: Vec<OpenBlock>,
}

/// Rows of one channel in its current block of the log.
struct OpenBlock {
    number: usize,
    rows: usize,
    triangle: Triangle,
}

/// Rows of consecutive samples, stored column by column with spare capacity at the end of each.
struct RowBuffer {
    room: usize,
    len: usize,
    /// Index of the first sample.
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
        // Samples within the window of the filter, as far as available.
        let (from, to) = (first.saturating_sub(reach), (first + count + reach).min(self.len()));
        let mut reduction = Reduction::new(self, equations, factors, first..first + count, from);
        self.visit(equations, from..to, &mut reduction)?;
        reduction.finish()
    }
}

impl<'d> Reduction<'d> {
    /// Creates the reduction; `from` is the first sample that will be processed.
    pub fn new(
        data: &'d Measurements<'d>,
        equations: &'d Equations<'d>,
        factors: &'d mut [Factor],
        centres: Range<usize>,
        from: usize,
    ) -> Self {
        let waiting = |filter: &RowFilter| {
            let room = 2 * filter.half() + (BLOCK / 2 * filter.every()).max(BLOCK);
            // Rows are centred at multiples of their distance, and their windows are within the samples.
            let next = centres.start.max(from + filter.half()).next_multiple_of(filter.every());
            let channel = |channel: &Channel| RowBuffer {
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
        let (kept, starts, pairs) = (Vec::new(), Vec::new(), Vec::new());
        let (block, part) = (Vec::new(), Vec::new());
        let open = |channel: &Channel| OpenBlock {
            number: 0,
            rows: 0,
            triangle: Triangle::new(channel.unknowns.len() + 2),
        };
        let blocks = data.blocks.is_some_and(|plan| plan != BlockPlan::NONE);
        let open = if blocks { equations.channels.iter().map(open).collect() } else { Vec::new() };
        let speeds = ShaftSpeeds::default();
        Self { data, equations, factors, centres, kept, starts, block, part, speeds, pairs, waiting, open }
    }

    /// Processes the remaining rows after the last sample.
    pub fn finish(&mut self) -> Result<()> {
        (0..self.waiting.len()).try_for_each(|row| self.drain(row))?;
        (0..self.open.len()).try_for_each(|row| self.close_block(row))
    }

    /// Writes the columns of the samples `kept` to the block.
    fn fill(&mut self, rows: &RowBlock<'_>, entry: impl Fn(usize, usize) -> f64) {
        let (data, all) = (self.data, self.equations.channels.len());
        let channel = &self.equations.channels[rows.row];
        let (block, speeds, kept) = (&mut self.block, &mut self.speeds, &self.kept);
        block.clear();
        speeds.clear();
        for &e in &channel.entries {
            block.extend(kept.iter().map(|&s| entry(e, s)));
        }
        let given = &self.equations.joint_model().given;
        for (scale, feature) in &channel.features {
            let start = block.len();
            let samples = kept.iter().map(|s| rows.first + s);
            feature.fill(given, data, samples, speeds, block);
            if *scale != 1.0 {
                block[start..].iter_mut().for_each(|x| *x *= scale);
            }
        }
        for tau in [data.tau, data.tau_raw.unwrap_or(data.tau)] {
            block.extend(kept.iter().map(|&s| tau[(rows.first + s) * all + rows.row]));
        }
        debug_assert_eq!(block.len(), kept.len() * (channel.unknowns.len() + 2));
    }

    /// Filters the complete rows of a channel and drops samples that no later row needs.
    fn drain(&mut self, row: usize) -> Result<()> {
        let Some(filter) = self.data.filter else { return Ok(()) };
        let (half, every) = (filter.half(), filter.every());
        let waiting = &mut self.waiting[row];
        let end = (waiting.first + waiting.len).saturating_sub(half).min(self.centres.end);
        self.kept.clear();
        let before = half + waiting.first;
        let start = |centre: usize| centre - before;
        let whole = (waiting.next..end).step_by(every);
        let counts = |c: &usize| filter.keeps(&waiting.keep[start(*c)..]);
        self.block.clear();
        let width = waiting.columns.len() / waiting.room;
        // Rows that are not used: their columns, and the unfiltered force.
        let is_measured = self.data.measured.is_none_or(|measured| measured[row]);
        self.kept.extend(whole.clone().filter(|c| is_measured && !counts(c)));
        self.starts.clear();
        self.starts.extend(self.kept.iter().map(|&c| start(c)));
        for (k, column) in waiting.columns.chunks_exact(waiting.room).enumerate() {
            if k + 1 == width {
                self.block.extend(self.kept.iter().map(|&c| column[c - waiting.first]));
            } else if k + 2 < width {
                append_means(filter.column_weights(), column, &self.starts, &mut self.block);
            }
        }
        let rows = self.kept.len();
        if rows > 0 {
            self.factors[row].left_out.add_rows(&self.block, rows, width - 1);
        }
        self.kept.clear();
        self.kept.extend(whole.clone().filter(counts));
        self.starts.clear();
        self.starts.extend(self.kept.iter().map(|&c| start(c)));
        self.block.clear();
        for (k, column) in waiting.columns.chunks_exact(waiting.room).enumerate() {
            // The last column, the unfiltered force, is copied without filtering.
            if k + 1 == width && self.data.tau_raw.is_some() {
                self.block.extend(self.kept.iter().map(|&c| column[c - waiting.first]));
            } else {
                let force = k + 2 >= width;
                let weights = if force { filter.weights() } else { filter.column_weights() };
                append_means(weights, column, &self.starts, &mut self.block);
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
        self.reduce(row, every)
    }

    /// Adds the block to the factor; rows are `every` samples apart.
    fn reduce(&mut self, row: usize, every: usize) -> Result<()> {
        let channel = &self.equations.channels[row];
        let (rows, width) = (self.kept.len(), channel.unknowns.len() + 2);
        if let Some(huber) = self.data.huber {
            weigh(channel, &huber, huber.noise[row], rows, &mut self.block, &mut self.factors[row]);
        }
        let all_rows = self.data.len() / self.data.filter.map_or(1, RowFilter::every);
        let (share, step) = (self.data.independent_rows(), (all_rows / DIFFERENCES).max(1));
        for k in 0..LAGS {
            let distance = ((k + 1) as f64 / share).round().max(1.0) as usize;
            self.find_pairs(distance, step);
            let (pairs, lag) = (self.pairs.len(), &mut self.factors[row].lags[k]);
            if pairs > 0 {
                lag.gram.add_differences(&self.block, rows, width - 1, &self.pairs);
            }
            lag.independent += pairs as f64 * (share * step as f64).min(1.0);
            // For measurements that were filtered before, only the share of independent samples is known.
            lag.expected += pairs as f64 * self.data.filter.map_or(0.0, |f| f.correlation(distance));
        }
        self.factors[row].count += rows;
        if self.open.is_empty() {
            return Ok(self.factors[row].triangle.add_rows(&mut self.block, rows)?);
        }
        self.reduce_by_block(row, every)
    }

    /// Adds rows to the factor of the block of the log that they belong to.
    fn reduce_by_block(&mut self, row: usize, every: usize) -> Result<()> {
        let (before, rows) = (self.data.beyond[0], self.kept.len());
        let plan = self.data.blocks.unwrap_or(BlockPlan::NONE);
        let number = |kept: usize| plan.number((kept * every).saturating_sub(before)).unwrap_or(0);
        let mut start = 0;
        while start < rows {
            let block = number(self.kept[start]);
            if self.open[row].number != block {
                self.close_block(row)?;
                self.open[row].number = block;
            }
            let same = self.kept[start..].iter().take_while(|&&kept| number(kept) == block).count();
            let open = &mut self.open[row];
            open.rows += same;
            if same == rows {
                return Ok(open.triangle.add_rows(&mut self.block, rows)?);
            }
            self.part.clear();
            let columns = self.block.chunks_exact(rows);
            columns.for_each(|c| self.part.extend_from_slice(&c[start..start + same]));
            open.triangle.add_rows(&mut self.part, same)?;
            start += same;
        }
        Ok(())
    }

    /// Adds a complete block of the log to the factor of its channel.
    fn close_block(&mut self, row: usize) -> Result<()> {
        let (open, factor) = (&mut self.open[row], &mut self.factors[row]);
        if open.rows == 0 {
            return Ok(());
        }
        if factor.blocks.len() <= open.number {
            factor.blocks.resize(open.number + 1, Gram::default());
        }
        let width = open.triangle.width();
        factor.blocks[open.number].add_factor(&open.triangle, open.rows, width - 1);
        factor.triangle.merge(&open.triangle)?;
        *open = OpenBlock { number: open.number, rows: 0, triangle: Triangle::new(width) };
        Ok(())
    }

    /// Finds pairs of rows at a given lag, starting at every n-th row.
    fn find_pairs(&mut self, lag: usize, every: usize) {
        let kept = &self.kept;
        self.pairs.clear();
        // Both indices only increase, because samples are in order.
        let mut j = 0;
        for i in (0..kept.len()).step_by(every) {
            while j < kept.len() && kept[j] < kept[i] + lag {
                j += 1;
            }
            if kept.get(j) == Some(&(kept[i] + lag)) {
                self.pairs.push((i, j));
            }
        }
    }
}

impl Visitor for Reduction<'_> {
    /// Adds rows; those of a channel arrive in order.
    fn rows(&mut self, rows: &RowBlock<'_>, _: &Channel, entry: impl Fn(usize, usize) -> f64) -> Result<()> {
        let (data, all) = (self.data, self.equations.channels.len());
        let keep = |s: &usize| data.keep.is_none_or(|keep| keep[(rows.first + s) * all + rows.row]);
        if data.filter.is_none() {
            self.kept.clear();
            let is_measured = data.measured.is_none_or(|measured| measured[rows.row]);
            self.kept.extend((0..rows.count).filter(|s| is_measured && !keep(s)));
            let left = self.kept.len();
            if left > 0 {
                self.fill(rows, &entry);
                // Replace the force by the unfiltered one.
                let width = self.equations.channels[rows.row].unknowns.len() + 2;
                self.block.copy_within((width - 1) * left.., (width - 2) * left);
                self.factors[rows.row].left_out.add_rows(&self.block, left, width - 1);
                self.kept.clear();
            }
            self.kept.extend((0..rows.count).filter(keep));
            self.fill(rows, entry);
            self.kept.iter_mut().for_each(|s| *s += rows.first);
            return self.reduce(rows.row, 1);
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

/// Appends the weighted sums of the values from each of `starts` on.
fn append_means(weights: &[f64], column: &[f64], starts: &[usize], out: &mut Vec<f64>) {
    let first = out.len();
    out.resize(first + starts.len(), 0.0);
    window_sums(weights, column, starts, &mut out[first..]);
}

/// Multiplies rows by the square root of their Huber weight.
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
