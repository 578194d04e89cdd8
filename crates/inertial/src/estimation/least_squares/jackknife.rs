//! Delete-a-block jackknife: standard errors from the spread of estimates without each block of a log.
//!
//! Residuals of real logs are correlated: friction drifts, gears cause ripple, and unmodelled effects repeat with the motion.
//! Standard errors for independent residuals are several times too small. The jackknife does not need a model of the correlation:
//! the estimate is repeated without each block in turn, and the spread of these estimates gives the error. Sixteen blocks are
//! longer than most correlations and still sufficient for a spread, which is pooled with the variance of independent noise
//! ([`Jackknife::covariance`]). Everything is computed from the sums of each block, without a second pass over the log.
//!
//! If a few blocks contain most of the information about a direction, the plain jackknife overestimates its error, even for
//! independent noise. The spread is therefore divided by its expected value for independent noise, which is known in closed form
//! from the information of the blocks. Such a direction has fewer degrees of freedom than blocks, and the variance of independent
//! noise has more weight.
//!
//! If blocks of twice the length have a larger spread, neighbouring blocks are correlated (unmodelled effects repeat with the
//! motion), and all variances are multiplied by that factor.

use nalgebra::{DMatrix, DVector};

use crate::estimation::equations::Equations;
use crate::estimation::reduction::summary::Summary;
use crate::linalg::{Cholesky, product};

/// Smallest number of blocks for a spread.
const FEWEST: usize = 8;
/// Smallest number of blocks of twice the length.
const FEWEST_LONG: usize = 8;
/// Number of standard errors by which the spread of longer blocks must exceed that of short ones.
const CERTAIN: f64 = 2.0;
/// Regularization of the information without a block. A direction that is excited by one block only changes by at most fifty times
/// its score.
const LEFT: f64 = 0.02;

/// Information and gradient of the log-likelihood of one block, at an estimate.
pub(crate) struct BlockScore {
    information: DMatrix<f64>,
    gradient: DVector<f64>,
}

impl BlockScore {
    /// Returns the information and the gradient about `x`, where the unknowns are `map x`.
    pub fn mapped(&self, map: &DMatrix<f64>) -> Self {
        let information = product(&map.transpose(), &product(&self.information, map));
        Self { information, gradient: map.tr_mul(&self.gradient) }
    }
}

/// Sums the information of all blocks about the given number of unknowns.
pub(crate) fn information(scores: &[BlockScore], unknowns: usize) -> DMatrix<f64> {
    scores.iter().fold(DMatrix::zeros(unknowns, unknowns), |sum, score| sum + &score.information)
}

/// Changes of an estimate when each block is left out, in coordinates in which the information is the identity matrix.
pub(crate) struct Jackknife {
    /// Changes, one column per block.
    pub changes: DMatrix<f64>,
    /// Variance of each coordinate.
    variances: DVector<f64>,
    /// Degrees of freedom of the spread of each coordinate (Satterthwaite): number of blocks minus one if the blocks are equally
    /// informative.
    freedom: DVector<f64>,
    /// Factor by which variances from longer blocks exceed those from these blocks; at least one, and one if the difference is not
    /// significant.
    pub longer: f64,
}

/// Estimates without each of the blocks.
struct Spread {
    changes: DMatrix<f64>,
    variances: DVector<f64>,
    freedom: DVector<f64>,
}

impl Spread {
    /// Computes the estimates without each block, given by its information and its gradient.
    fn new(blocks: &[(DMatrix<f64>, DVector<f64>)], all: &DMatrix<f64>) -> Option<Self> {
        let n = all.ncols();
        let identity = DMatrix::identity(n, n);
        let rest = 2.0 * &identity - all;
        let mut changes = DMatrix::zeros(n, blocks.len());
        let (mut expected, mut squares) = (DVector::<f64>::zeros(n), DVector::<f64>::zeros(n));
        for (k, (block, gradient)) in blocks.iter().enumerate() {
            let mut left = identity.clone();
            Cholesky::new(&((1.0 + LEFT) * &identity - block)).ok()?.solve_in_place(&mut left).ok()?;
            changes.set_column(k, &(&left * -gradient));
            // The gradient of block `B` at the estimate has the covariance B − B (2 − Σ B) B; `left` times it on both sides, with
            // `left B = (1 + LEFT) left − 1`.
            let share = (1.0 + LEFT) * &left - &identity;
            let common = product(&share, &rest);
            for i in 0..n {
                let own = share.row(i).dot(&(left.row(i) - common.row(i)));
                expected[i] += own;
                squares[i] += own * own;
            }
        }
        if changes.iter().any(|x| !x.is_finite()) {
            return None;
        }
        let spread = variances(&changes);
        let part = 1.0 - 1.0 / blocks.len() as f64;
        let variances = DVector::from_fn(n, |i, _| {
            if expected[i] > 0.0 { all[(i, i)] * spread[i] / (part * expected[i]) } else { 0.0 }
        });
        let freedom = expected.zip_map(&squares, |sum, squares| {
            if squares > 0.0 { (sum * sum / squares - 1.0).max(0.0) } else { 0.0 }
        });
        Some(Self { changes, variances, freedom })
    }

    /// Returns the factor by which variances exceed those of independent noise, and the standard error of its logarithm.
    fn growth(&self, all: &DMatrix<f64>) -> (f64, f64) {
        let freedom = self.changes.ncols() as f64 - 1.0;
        // The logarithm of a variance has the variance 2/freedom; the variance of a median is π/2 times that of a mean.
        let error = (std::f64::consts::PI / (freedom * self.variances.len() as f64)).sqrt();
        (growth(&self.variances, &all.diagonal()) / median_of_variances(freedom), error)
    }
}

/// Returns the median of estimated variances with the given degrees of freedom, relative to their mean (Wilson-Hilferty).
fn median_of_variances(freedom: f64) -> f64 {
    (1.0 - 2.0 / (9.0 * freedom)).powi(3)
}

impl Jackknife {
    /// Creates the jackknife of the estimate whose information is `(root rootᵀ)⁻¹`; returns `None` if there are too few blocks.
    pub fn new(scores: &[BlockScore], root: &DMatrix<f64>) -> Option<Self> {
        if scores.len() < FEWEST {
            return None;
        }
        let n = root.ncols();
        let mut blocks = normalized(scores, root);
        let all = blocks.iter().fold(DMatrix::zeros(n, n), |sum, block| sum + &block.0);
        let spread = Spread::new(&blocks, &all)?;
        let (own, _) = spread.growth(&all);
        let Spread { changes, variances, freedom } = spread;
        let mut out = Self { changes, variances, freedom, longer: 1.0 };
        while blocks.len() >= 2 * FEWEST_LONG && own > 0.0 {
            blocks = blocks.chunks(2).map(joined).collect();
            let Some(spread) = Spread::new(&blocks, &all) else { break };
            let (growth, error) = spread.growth(&all);
            if growth > own * (CERTAIN * error).exp() {
                out.longer = out.longer.max(growth / own);
            }
        }
        out.variances *= out.longer;
        Some(out)
    }

    /// Computes the covariance of `map y` for coordinates `y`: the spread of the blocks, pooled with the covariance of `y` under
    /// independent noise times the overall factor by which the spread exceeds it.
    ///
    /// Variances from sixteen blocks have a standard error of 37 %, and some of many unknowns are small by chance. Correlations
    /// are not taken from the jackknife: a matrix of sixteen blocks has rank fifteen, and other directions would have no error.
    pub fn covariance(&self, map: &DMatrix<f64>, noise: &DMatrix<f64>, growth: f64) -> DMatrix<f64> {
        let usual = self.changes.ncols() as f64 - 1.0;
        let weights = self.freedom.map(|own| own / (own + usual));
        let kept = weights.map(|w| (growth * (1.0 - w)).sqrt());
        let mut middle = DMatrix::from_fn(kept.len(), kept.len(), |i, j| kept[i] * noise[(i, j)] * kept[j]);
        for (i, variance) in self.variances.iter().enumerate() {
            middle[(i, i)] += weights[i] * variance;
        }
        let out = product(&product(map, &middle), &map.transpose());
        // Make it exactly symmetric.
        0.5 * (&out + out.transpose())
    }

    /// Returns the factor by which the variances of `map y` from the blocks exceed those of independent noise: the median.
    pub fn growth(&self, map: &DMatrix<f64>, noise: &DMatrix<f64>) -> f64 {
        let own = |i: usize, _| map.row(i).iter().zip(&self.variances).map(|(x, v)| x * x * v).sum();
        let spread = DVector::from_fn(map.nrows(), own);
        let independent = product(map, noise).component_mul(map).column_sum();
        growth(&spread, &independent) / median_of_variances(self.changes.ncols() as f64 - 1.0)
    }
}

/// Merges neighbouring blocks.
fn joined(blocks: &[(DMatrix<f64>, DVector<f64>)]) -> (DMatrix<f64>, DVector<f64>) {
    let (mut information, mut gradient) = blocks[0].clone();
    for block in &blocks[1..] {
        information += &block.0;
        gradient += &block.1;
    }
    (information, gradient)
}

/// Computes variances from the changes of unknowns, one row each.
pub(crate) fn variances(changes: &DMatrix<f64>) -> DVector<f64> {
    let blocks = changes.ncols() as f64;
    let variance = |row: usize| {
        let row = changes.row(row);
        let mean = row.sum() / blocks;
        (blocks - 1.0) / blocks * row.iter().map(|x| (x - mean).powi(2)).sum::<f64>()
    };
    DVector::from_fn(changes.nrows(), |i, _| variance(i))
}

/// Returns the factor by which variances exceed those of independent noise: the median over all unknowns.
pub(crate) fn growth(variances: &DVector<f64>, independent: &DVector<f64>) -> f64 {
    let ratio = |(x, own): (&f64, &f64)| (*own > 0.0).then(|| x / own);
    let mut all: Vec<f64> = variances.iter().zip(independent.iter()).filter_map(ratio).collect();
    all.sort_by(f64::total_cmp);
    all.get(all.len() / 2).copied().unwrap_or(1.0)
}

/// Returns the information and gradient of each block, in coordinates in which the information `(root rootᵀ)⁻¹` is the identity
/// matrix.
fn normalized(scores: &[BlockScore], root: &DMatrix<f64>) -> Vec<(DMatrix<f64>, DVector<f64>)> {
    let across = root.transpose();
    let block = |s: &BlockScore| (product(&across, &product(&s.information, root)), root.tr_mul(&s.gradient));
    scores.iter().map(block).collect()
}

/// Comparison of separate estimates from parts of a log.
pub(crate) struct Contrast {
    /// Information and gradient of each block, in coordinates in which the total information is the identity matrix.
    blocks: Vec<(DMatrix<f64>, DVector<f64>)>,
}

impl Contrast {
    /// Creates the comparison for the estimate whose information is `(root rootᵀ)⁻¹`; returns `None` if there are too few blocks.
    pub fn new(scores: &[BlockScore], root: &DMatrix<f64>) -> Option<Self> {
        (scores.len() >= FEWEST).then(|| Self { blocks: normalized(scores, root) })
    }

    /// Compares separate estimates from the selected blocks and from the others.
    pub fn between(&self, some: impl Fn(usize) -> bool) -> Option<Difference> {
        let mut out = Difference { decrease: 0.0, freedom: 0.0 };
        for side in [true, false] {
            let mut sum: Option<(DMatrix<f64>, DVector<f64>)> = None;
            for (_, (gram, gradient)) in self.blocks.iter().enumerate().filter(|(k, _)| some(*k) == side) {
                sum = Some(match sum {
                    None => (gram.clone(), gradient.clone()),
                    Some((a, b)) => (a + gram, b + gradient),
                });
            }
            let (mut gram, gradient) = sum?;
            let (n, share) = (gram.nrows(), gram.trace());
            for i in 0..n {
                gram[(i, i)] += LEFT;
            }
            let factor = Cholesky::new(&gram).ok()?;
            out.decrease += gradient.dot(&factor.solve(&gradient).ok()?);
            // The gradient has the covariance `G (1 − G)`, where `G` is the information of this side.
            let mut inverse = DMatrix::identity(n, n);
            factor.solve_in_place(&mut inverse).ok()?;
            out.freedom += n as f64 - share - LEFT * ((1.0 + LEFT) * inverse.trace() - n as f64);
        }
        Some(out)
    }
}

/// Difference between separate estimates from two parts of a log.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Difference {
    /// Decrease of the squared residual with separate estimates.
    pub decrease: f64,
    /// Expected decrease for independent noise of unit variance: the number of unknowns that both parts determine.
    pub freedom: f64,
}

impl Summary {
    /// Returns the number of blocks.
    pub(crate) fn blocks(&self) -> usize {
        self.factors.iter().map(|f| f.blocks.len()).max().unwrap_or(0)
    }

    /// Computes the scores of all blocks at given values of the unknowns, with the rows of each coordinate multiplied by its
    /// weight.
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
