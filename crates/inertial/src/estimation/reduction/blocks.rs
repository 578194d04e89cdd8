//! Consecutive blocks of a log, whose sums of products are stored separately for standard errors and model tests.

use crate::linalg::{Triangle, add_products, vectorized};

/// Number of blocks of one log.
pub const BLOCKS: usize = 16;
/// Largest number of blocks of several logs together; beyond that, neighbouring blocks are merged.
const MOST: usize = 2 * BLOCKS;
/// Largest memory (bytes) of the blocks of a summary; larger mechanisms have no blocks.
const MEMORY: usize = 1 << 28;

/// Assignment of measurements to blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct BlockPlan {
    /// Number of samples per block; zero disables blocks.
    pub samples: usize,
    /// Number of samples of the log before the first measurement.
    pub before: usize,
}

impl BlockPlan {
    /// Plan without blocks.
    pub const NONE: Self = Self { samples: 0, before: 0 };

    /// Divides a log with the given number of samples into [`BLOCKS`] blocks.
    pub fn of_log(samples: usize) -> Self {
        Self { samples: samples.div_ceil(BLOCKS), before: 0 }
    }

    /// Returns the plan relative to a later sample of the log.
    #[must_use]
    pub fn after(self, samples: usize) -> Self {
        Self { before: self.before + samples, ..self }
    }

    /// Returns the index of the block of a sample; `None` without blocks.
    pub(crate) fn number(self, sample: usize) -> Option<usize> {
        (self.before + sample).checked_div(self.samples)
    }

    /// Returns the plan if the blocks of channels with these numbers of columns fit into memory, else [`Self::NONE`].
    pub(crate) fn that_fits(self, widths: impl Iterator<Item = usize>) -> Self {
        let bytes: usize = widths.map(|w| w * (w + 1) / 2 * size_of::<f64>()).sum();
        if bytes.saturating_mul(MOST) > MEMORY { Self::NONE } else { self }
    }
}

/// Sums of products of the columns of rows: the unknowns of a channel, then its force.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Gram {
    /// Number of rows.
    pub rows: usize,
    /// Entries on and above the diagonal, row after row; empty if there are no rows.
    pub upper: Vec<f64>,
}

impl Gram {
    /// Adds the first `width` columns of rows that are given column by column.
    pub fn add_rows(&mut self, columns: &[f64], rows: usize, width: usize) {
        self.upper.resize(width * (width + 1) / 2, 0.0);
        add_products(columns, rows, width, &mut self.upper);
        self.rows += rows;
    }

    /// Adds the first `width` columns of the differences between pairs of rows, which are given column by column.
    pub fn add_differences(&mut self, columns: &[f64], rows: usize, width: usize, pairs: &[(usize, usize)]) {
        self.upper.resize(width * (width + 1) / 2, 0.0);
        let mut difference = vec![0.0; width];
        for &(i, j) in pairs {
            for (column, out) in columns.chunks_exact(rows).zip(&mut difference) {
                *out = column[j] - column[i];
            }
            vectorized(|| {
                let mut rest = &mut self.upper[..];
                for (i, &own) in difference.iter().enumerate() {
                    let (entries, after) = rest.split_at_mut(width - i);
                    entries.iter_mut().zip(&difference[i..]).for_each(|(entry, x)| *entry += own * x);
                    rest = after;
                }
            });
        }
        self.rows += pairs.len();
    }

    /// Adds the first `width` columns of the rows that a triangular factor represents.
    pub fn add_factor(&mut self, factor: &Triangle, rows: usize, width: usize) {
        self.upper.resize(width * (width + 1) / 2, 0.0);
        let mut rest = &mut self.upper[..];
        for i in 0..width {
            let (entries, after) = rest.split_at_mut(width - i);
            // Rows below the i-th are zero in column i.
            for k in 0..=i {
                let row = &factor.row(k)[i..width];
                let own = row[0];
                entries.iter_mut().zip(row).for_each(|(entry, x)| *entry += own * x);
            }
            rest = after;
        }
        self.rows += rows;
    }

    /// Adds the sums of other rows.
    pub fn merge(&mut self, other: &Self) {
        if self.upper.is_empty() {
            self.upper.clone_from(&other.upper);
        } else {
            self.upper.iter_mut().zip(&other.upper).for_each(|(x, y)| *x += y);
        }
        self.rows += other.rows;
    }

    /// Returns the sum of squares of the combination of columns with these coefficients, and that of the last column.
    pub fn squares(&self, coefficients: &[f64]) -> (f64, f64) {
        let n = coefficients.len();
        let mut entries = self.upper.iter();
        let mut sum = 0.0;
        for i in 0..n {
            for (j, x) in (i..n).zip(&mut entries) {
                let twice = if i == j { 1.0 } else { 2.0 };
                sum += twice * coefficients[i] * coefficients[j] * x;
            }
        }
        // Rounding errors must not make a square negative.
        (sum.max(0.0), self.upper.last().copied().unwrap_or(0.0))
    }

    /// Returns the largest sum of squares of one column times its coefficient.
    pub fn largest_part(&self, coefficients: &[f64]) -> f64 {
        let width = coefficients.len();
        let part = |(k, x): (usize, &f64)| x * x * self.at(k, k, width);
        coefficients.iter().enumerate().map(part).fold(0.0, f64::max)
    }

    /// Returns one entry, for `width` columns.
    pub fn at(&self, i: usize, j: usize, width: usize) -> f64 {
        let (i, j) = (i.min(j), i.max(j));
        // Rows 0 … i − 1 have width, width − 1, … entries.
        self.upper[i * (2 * width + 1 - i) / 2 + j - i]
    }

    /// Returns the sums of combinations of the `width` columns.
    pub fn project(&self, width: usize, combinations: &[&[(usize, f64)]]) -> Self {
        if self.upper.is_empty() {
            return Self::default();
        }
        let n = combinations.len();
        let mut upper = Vec::with_capacity(n * (n + 1) / 2);
        for (i, left) in combinations.iter().enumerate() {
            for right in &combinations[i..] {
                let products = left
                    .iter()
                    .flat_map(|&(k, x)| right.iter().map(move |&(l, y)| x * y * self.at(k, l, width)));
                upper.push(products.sum());
            }
        }
        Self { rows: self.rows, upper }
    }

    /// Reverses the sign of the force, the last of `width` columns.
    pub fn reverse_force(&mut self, width: usize) {
        // Last entry of each row, except for the last row, which is the square of the force.
        let mut end = 0;
        for i in 0..width.saturating_sub(1) {
            end += width - i;
            if let Some(x) = self.upper.get_mut(end - 1) {
                *x = -*x;
            }
        }
    }
}

/// Merges neighbouring blocks until there are no more than [`MOST`].
pub(crate) fn join(blocks: &mut Vec<Gram>) {
    while blocks.len() > MOST {
        let pairs = std::mem::take(blocks);
        blocks.extend(pairs.chunks(2).map(|pair| {
            let mut out = pair[0].clone();
            pair[1..].iter().for_each(|other| out.merge(other));
            out
        }));
    }
}
