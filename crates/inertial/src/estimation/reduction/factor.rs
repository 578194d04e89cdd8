//! Triangular factor of one measured channel.

use crate::Result;
use crate::estimation::reduction::blocks::Gram;
use crate::linalg::Triangle;

/// Triangular factor of the rows of one channel, with counts.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Factor {
    pub triangle: Triangle,
    /// Forces that count.
    pub count: usize,
    /// Independent forces among them.
    pub independent: f64,
    /// Differences between rows one, two, … independent samples apart, for the whiteness of residuals.
    pub lags: [Lag; LAGS],
    /// Sum of squared residuals, each at most Huber's bound: of robust passes only, and not kept in files.
    pub clipped: f64,
    /// Rows of each block of the log.
    pub blocks: Vec<Gram>,
    /// Rows that do not count, with the force as measured.
    pub left_out: Gram,
}

/// Differences between rows so many independent samples apart are kept at most.
pub(crate) const LAGS: usize = 4;

/// Differences between rows some distance apart.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Lag {
    /// The differences. Sums of products, not a factor: how white a residual is needs no more than a few digits.
    pub gram: Gram,
    /// Number of independent differences.
    pub independent: f64,
    /// Sum of the correlations that the rows of white noise would have.
    pub expected: f64,
}

impl Factor {
    /// Creates the factor of no rows.
    pub fn new(width: usize) -> Self {
        Self {
            lags: <[Lag; LAGS]>::default(),
            triangle: Triangle::new(width),
            count: 0,
            independent: 0.0,
            clipped: 0.0,
            blocks: Vec::new(),
            left_out: Gram::default(),
        }
    }

    /// Merges the factor of other rows, whose blocks come after so many of those here.
    pub fn merge(&mut self, other: &Self, first_block: usize) -> Result<()> {
        self.triangle.merge(&other.triangle)?;
        self.count += other.count;
        self.independent += other.independent;
        for (own, other) in self.lags.iter_mut().zip(&other.lags) {
            own.gram.merge(&other.gram);
            own.independent += other.independent;
            own.expected += other.expected;
        }
        self.clipped += other.clipped;
        self.left_out.merge(&other.left_out);
        if !other.blocks.is_empty() {
            let most = self.blocks.len().max(first_block + other.blocks.len());
            self.blocks.resize(most, Gram::default());
            let blocks = self.blocks[first_block..].iter_mut().zip(&other.blocks);
            blocks.for_each(|(own, other)| own.merge(other));
        }
        Ok(())
    }

    /// All sums of products: of blocks, of rows that do not count, and of differences.
    pub fn grams_mut(&mut self) -> impl Iterator<Item = &mut Gram> {
        let lags = self.lags.iter_mut().map(|lag| &mut lag.gram);
        self.blocks.iter_mut().chain([&mut self.left_out]).chain(lags)
    }

    /// Columns before the two of forces.
    pub fn unknowns(&self) -> usize {
        self.triangle.width() - 2
    }
}
