//! Standard errors from the spread of estimates without each block of a log.
//!
//! Residuals of real logs are correlated: friction drifts, gears ripple, and what the model lacks repeats with the motion. Errors
//! that take residuals as independent are several times too small. The jackknife needs no model of the correlation: the estimate
//! is repeated without each block in turn, and the spread of these estimates gives the error. Sixteen blocks are longer than most
//! correlations last and still enough for a spread, which is pooled with the variance of independent noise ([`Jackknife::covariance`]). All of it
//! follows from the sums of each block, without a second pass over the log.
//!
//! Where a few blocks hold most of the information on a direction, the plain jackknife overstates its error, also for independent
//! noise. The spread is therefore divided by what independent noise leads one to expect, which the information of the blocks gives
//! in closed form. Such a direction has also fewer degrees of freedom than blocks, and relies the more on independent noise.

use nalgebra::{DMatrix, DVector};

use crate::estimation::equations::Equations;
use crate::estimation::reduction::summary::Summary;
use crate::linalg::Cholesky;

/// Fewest blocks that give a spread.
const FEWEST: usize = 8;
/// Added to the information that is left without a block: a direction that one block alone shows changes by at most fifty times
/// its score.
const LEFT: f64 = 0.02;

/// Information and gradient of the log-likelihood of one block, at an estimate.
pub(crate) struct BlockScore {
    information: DMatrix<f64>,
    gradient: DVector<f64>,
}

/// Information that all blocks together give on so many unknowns.
pub(crate) fn information(scores: &[BlockScore], unknowns: usize) -> DMatrix<f64> {
    scores.iter().fold(DMatrix::zeros(unknowns, unknowns), |sum, score| sum + &score.information)
}

/// Changes of an estimate when each block is left out, in coordinates in which the information is the unit matrix.
pub(crate) struct Jackknife {
    /// Changes, one column for each block.
    pub changes: DMatrix<f64>,
    /// Variance of each coordinate that independent noise gives the estimate, and the spread of the changes that it leads to.
    independent: DVector<f64>,
    expected: DVector<f64>,
    /// Degrees of freedom of the spread of each coordinate (Satterthwaite): one less than the blocks where they show it equally well.
    freedom: DVector<f64>,
}

impl Jackknife {
    /// Creates the jackknife of the estimate whose information is `(root rootᵀ)⁻¹`; none where there are too few blocks.
    pub fn new(scores: &[BlockScore], root: &DMatrix<f64>) -> Option<Self> {
        if scores.len() < FEWEST {
            return None;
        }
        let n = root.ncols();
        let blocks: Vec<_> = scores.iter().map(|s| root.tr_mul(&(&s.information * root))).collect();
        let all = blocks.iter().fold(DMatrix::zeros(n, n), |sum, block| sum + block);
        let identity = DMatrix::identity(n, n);
        let rest = 2.0 * &identity - &all;
        let mut changes = DMatrix::zeros(n, scores.len());
        let (mut expected, mut squares) = (DVector::<f64>::zeros(n), DVector::<f64>::zeros(n));
        for (k, (block, score)) in blocks.iter().zip(scores).enumerate() {
            let mut left = identity.clone();
            Cholesky::new(&((1.0 + LEFT) * &identity - block)).ok()?.solve_in_place(&mut left).ok()?;
            changes.set_column(k, &(&left * -root.tr_mul(&score.gradient)));
            // The gradient of block `B` at the estimate has the covariance B − B (2 − Σ B) B; `left` times it on both sides, with
            // `left B = (1 + LEFT) left − 1`.
            let share = (1.0 + LEFT) * &left - &identity;
            let common = &share * &rest;
            for i in 0..n {
                let own = share.row(i).dot(&(left.row(i) - common.row(i)));
                expected[i] += own;
                squares[i] += own * own;
            }
        }
        let freedom = expected.zip_map(&squares, |sum, squares| {
            if squares > 0.0 { (sum * sum / squares - 1.0).max(0.0) } else { 0.0 }
        });
        let expected = expected * (1.0 - 1.0 / scores.len() as f64);
        let jackknife = Self { changes, independent: all.diagonal(), expected, freedom };
        jackknife.changes.iter().all(|x| x.is_finite()).then_some(jackknife)
    }

    /// Covariance of `map y` for coordinates `y`: the spread of the blocks pooled with the covariance of `y` under independent noise,
    /// times the factor by which the spread exceeds it on the whole.
    ///
    /// Variances from sixteen blocks alone are known to 37 %, and for some of many unknowns small by chance. Of correlations the
    /// jackknife says nothing: those from sixteen blocks have a rank of fifteen, and would leave other directions without error.
    pub fn covariance(&self, map: &DMatrix<f64>, noise: &DMatrix<f64>, growth: f64) -> DMatrix<f64> {
        let usual = self.changes.ncols() as f64 - 1.0;
        let weights = self.freedom.map(|own| own / (own + usual));
        let kept = weights.map(|w| (growth * (1.0 - w)).sqrt());
        let mut middle = DMatrix::from_fn(kept.len(), kept.len(), |i, j| kept[i] * noise[(i, j)] * kept[j]);
        for (i, variance) in self.variances().iter().enumerate() {
            middle[(i, i)] += weights[i] * variance;
        }
        let out = map * middle * map.transpose();
        // Symmetric to the last bit.
        0.5 * (&out + out.transpose())
    }

    /// Factor by which the variances of `map y` from the blocks exceed those of independent noise: the median.
    pub fn growth(&self, map: &DMatrix<f64>, noise: &DMatrix<f64>) -> f64 {
        let own = self.variances();
        let spread =
            DVector::from_fn(map.nrows(), |i, _| map.row(i).iter().zip(&own).map(|(x, v)| x * x * v).sum());
        let independent = (map * noise).component_mul(map).column_sum();
        // The median of variances with so many degrees of freedom is below their mean (Wilson and Hilferty).
        let freedom = self.changes.ncols() as f64 - 1.0;
        growth(&spread, &independent) / (1.0 - 2.0 / (9.0 * freedom)).powi(3)
    }

    /// Variance of each coordinate.
    fn variances(&self) -> DVector<f64> {
        let spread = variances(&self.changes);
        DVector::from_fn(spread.len(), |i, _| {
            if self.expected[i] > 0.0 { self.independent[i] * spread[i] / self.expected[i] } else { 0.0 }
        })
    }
}

/// Variances from the changes of some unknowns, one row each.
pub(crate) fn variances(changes: &DMatrix<f64>) -> DVector<f64> {
    let blocks = changes.ncols() as f64;
    let variance = |row: usize| {
        let row = changes.row(row);
        let mean = row.sum() / blocks;
        (blocks - 1.0) / blocks * row.iter().map(|x| (x - mean).powi(2)).sum::<f64>()
    };
    DVector::from_fn(changes.nrows(), |i, _| variance(i))
}

/// Factor by which variances exceed those of independent noise: the median over all unknowns.
pub(crate) fn growth(variances: &DVector<f64>, independent: &DVector<f64>) -> f64 {
    let ratio = |(x, own): (&f64, &f64)| (*own > 0.0).then(|| x / own);
    let mut all: Vec<f64> = variances.iter().zip(independent.iter()).filter_map(ratio).collect();
    all.sort_by(f64::total_cmp);
    all.get(all.len() / 2).copied().unwrap_or(1.0)
}

/// Comparison of parts of a log by estimates of their own.
pub(crate) struct Contrast {
    /// Information and gradient of each block, in coordinates in which the information of all is the unit matrix.
    blocks: Vec<(DMatrix<f64>, DVector<f64>)>,
}

impl Contrast {
    /// Creates the comparison for the estimate whose information is `(root rootᵀ)⁻¹`; none where there are too few blocks.
    pub fn new(scores: &[BlockScore], root: &DMatrix<f64>) -> Option<Self> {
        let block = |s: &BlockScore| (root.tr_mul(&(&s.information * root)), root.tr_mul(&s.gradient));
        (scores.len() >= FEWEST).then(|| Self { blocks: scores.iter().map(block).collect() })
    }

    /// Returns by how much the squared residual falls if some blocks and the others have an estimate of their own each.
    pub fn between(&self, some: impl Fn(usize) -> bool) -> Option<f64> {
        let mut out = 0.0;
        for side in [true, false] {
            let mut sum: Option<(DMatrix<f64>, DVector<f64>)> = None;
            for (_, (gram, gradient)) in self.blocks.iter().enumerate().filter(|(k, _)| some(*k) == side) {
                sum = Some(match sum {
                    None => (gram.clone(), gradient.clone()),
                    Some((a, b)) => (a + gram, b + gradient),
                });
            }
            let (mut gram, gradient) = sum?;
            for i in 0..gram.nrows() {
                gram[(i, i)] += LEFT;
            }
            out += gradient.dot(&Cholesky::new(&gram).ok()?.solve(&gradient).ok()?);
        }
        Some(out)
    }
}

impl Summary {
    /// Number of blocks.
    pub(crate) fn blocks(&self) -> usize {
        self.factors.iter().map(|f| f.blocks.len()).max().unwrap_or(0)
    }

    /// Computes the scores of all blocks at some values of the unknowns, each coordinate's rows times its weight.
    pub(crate) fn scores(
        &self,
        equations: &Equations<'_>,
        weights: &[f64],
        values: &DVector<f64>,
    ) -> Vec<BlockScore> {
        let n = equations.len();
        let mut out = Vec::new();
        for number in 0..self.blocks() {
            let mut score = BlockScore { information: DMatrix::zeros(n, n), gradient: DVector::zeros(n) };
            let mut rows = 0;
            for ((channel, factor), weight) in equations.channels.iter().zip(&self.factors).zip(weights) {
                let Some(block) = factor.blocks.get(number).filter(|b| b.rows > 0) else { continue };
                rows += block.rows;
                let (own, square) = (channel.unknowns.len(), weight * weight);
                let mut entries = block.upper.iter();
                for (i, &row) in channel.unknowns.iter().enumerate() {
                    for (&column, x) in channel.unknowns[i..].iter().zip(&mut entries) {
                        let x = square * x;
                        score.information[(row, column)] += x;
                        score.gradient[row] -= x * values[column];
                        if column != row {
                            score.information[(column, row)] += x;
                            score.gradient[column] -= x * values[row];
                        }
                    }
                    score.gradient[row] += square * entries.next().copied().unwrap_or(0.0);
                }
                debug_assert_eq!(block.upper.len(), (own + 1) * (own + 2) / 2);
            }
            if rows > 0 {
                out.push(score);
            }
        }
        out
    }
}
