//! Triangular factor of one measured channel.

use crate::Result;
use crate::estimation::reduction::blocks::Gram;
use crate::linalg::Triangle;

/// Triangular factor of the rows of one channel, with counts.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Factor {
    pub triangle: Triangle,
    /// Number of forces that are used.
    pub count: usize,
    /// Number of independent forces among them.
    pub independent: f64,
    /// Differences between rows one, two, … independent samples apart, for the whiteness of residuals.
    pub lags: [Lag; LAGS],
    /// Sum of squared residuals, each clipped at the Huber bound; for robust passes only, and not stored in files.
    pub clipped: f64,
    /// Rows of each block of the log.
    pub blocks: Vec<Gram>,
    /// Rows that are not used, with the unfiltered force.
    pub left_out: Gram,
}

/// Largest lag, in independent samples, for which differences between rows are stored.
pub(crate) const LAGS: usize = 4;

/// Differences between rows at a fixed lag.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Lag {
    /// Sums of products of the differences. A triangular factor is not needed, because whiteness tests need only a few digits.
    pub gram: Gram,
    /// Number of independent differences.
    pub independent: f64,
    /// Sum of the expected correlations of the rows for white noise.
    pub expected: f64,
}

impl Factor {
    /// Creates a factor without rows.
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

    /// Merges the factor of other rows, whose blocks follow after `first_block` blocks of this one.
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

    /// Returns all sums of products: of blocks, of rows that are not used, and of differences.
    pub fn grams_mut(&mut self) -> impl Iterator<Item = &mut Gram> {
        let lags = self.lags.iter_mut().map(|lag| &mut lag.gram);
        self.blocks.iter_mut().chain([&mut self.left_out]).chain(lags)
    }

    /// Returns the number of columns before the two columns of forces.
    pub fn unknowns(&self) -> usize {
        self.triangle.width() - 2
    }
}
