//! Ordinary and weighted least squares for the unknowns, with covariance.

use nalgebra::{DMatrix, DVector};

use crate::estimation::equations::Equations;
use crate::estimation::least_squares::jackknife::Jackknife;
use crate::estimation::least_squares::solution::Solution;
use crate::estimation::reduction::summary::Summary;
use crate::linalg::{Triangle, product};
use crate::{Error, Result};

/// Smallest noise of a joint, relative to the largest joint force. It keeps weights finite on noise-free data, and limits the
/// weight of joints without force.
pub(crate) const LEAST_NOISE: f64 = 1e-9;

/// Number of independent rows, beyond the degrees of freedom of the unknowns, that are needed to estimate the noise of a
/// coordinate.
const NEEDED: f64 = 10.0;

/// Noise relative to the force if no coordinate has that many rows.
const ASSUMED: f64 = 0.01;

/// Largest number of reweighting steps, and the relative change of the noise at which they stop.
const REPEATS: usize = 20;
const SETTLED: f64 = 1e-6;

/// Weighting of joints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weighting {
    /// Equal weights of all forces.
    Ordinary,
    /// Weights by the inverse noise of each joint, estimated from the residuals and iterated until convergence.
    Weighted,
}

/// Least-squares estimate.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct LeastSquares {
    /// Unknowns; of least (scaled) norm in directions that the motion does not excite.
    pub values: DVector<f64>,
    /// Covariance in the excited directions, from the jackknife over the blocks of the logs. If a summary has too few blocks,
    /// noise is assumed independent between joints, and in time except for the correlation caused by the filter.
    pub covariance: DMatrix<f64>,
    /// Standard deviation of the noise of each coordinate.
    pub noise: Vec<f64>,
    /// Factor of the square root of the information of each coordinate, `√(independent part)/noise`.
    pub weights: Vec<f64>,
    /// Number of excited directions.
    pub excited: usize,
    /// Orthonormal basis (scaled unknowns) of the directions that are not excited.
    pub unexcited: DMatrix<f64>,
    /// Ratios of unknowns to scaled unknowns; zero for unknowns that are not excited at all.
    scale: DVector<f64>,
    /// Coordinates with too few residuals to estimate their noise.
    pub(crate) few_residuals: Vec<usize>,
}

impl LeastSquares {
    /// Solves the least-squares problem.
    pub fn new(equations: &Equations<'_>, summary: &Summary, weighting: Weighting) -> Result<Self> {
        summary.check(equations)?;
        let equations_found: usize = summary.factors.iter().map(|f| f.count).sum();
        if equations_found < equations.len() {
            return Err(Error::TooFewForces { found: equations_found as f64, unknowns: equations.len() });
        }
        let mut weights = vec![1.0; equations.channels.len()];
        let mut solution = Solution::new(equations, summary, &weights, None)?;
        let mut residuals = solution.residuals(equations, summary, &weights);
        let mut noise = ChannelResiduals::noise(&residuals);
        if weighting == Weighting::Weighted {
            for _ in 0..REPEATS {
                weights = information_weights(summary, &noise);
                solution = Solution::new(equations, summary, &weights, None)?;
                residuals = solution.residuals(equations, summary, &weights);
                let next = ChannelResiduals::noise(&residuals);
                let change = noise.iter().zip(&next).map(|(a, b)| (a / b - 1.0).abs()).fold(0.0, f64::max);
                noise = next;
                if change < SETTLED {
                    break;
                }
            }
        }
        Ok(Self {
            few_residuals: ChannelResiduals::few_residuals(&residuals),
            ..Self::of(equations, summary, solution, &weights, noise)?
        })
    }

    /// Solves the problem weighted by known noise. With `only`, the other unknowns are zero.
    pub(crate) fn with_noise(
        equations: &Equations<'_>,
        summary: &Summary,
        noise: Vec<f64>,
        only: Option<&[bool]>,
    ) -> Result<Self> {
        let weights = information_weights(summary, &noise);
        let solution = Solution::new(equations, summary, &weights, only)?;
        Self::of(equations, summary, solution, &weights, noise)
    }

    fn of(
        equations: &Equations<'_>,
        summary: &Summary,
        solution: Solution,
        weights: &[f64],
        noise: Vec<f64>,
    ) -> Result<Self> {
        // H⁻¹ (Σ w⁴ σ²/f RᵀR) H⁻¹: exact for any weights; equals H⁻¹ for the weights of the information.
        let spread: Vec<f64> = weights
            .iter()
            .zip(information_weights(summary, &noise))
            .map(|(w, i)| if i > 0.0 { w * w / i } else { 0.0 })
            .collect();
        let factor = information(equations, summary, &spread)?.matrix();
        let middle = product(&factor, &solution.inverse);
        let mut covariance = product(&middle.transpose(), &middle);
        let scores = summary.scores(equations, weights, &solution.values);
        if let Some(jackknife) = Jackknife::new(&scores, &solution.root) {
            let root = &solution.root;
            let middle = product(&factor, root);
            let independent = product(&middle.transpose(), &middle);
            covariance = jackknife.covariance(root, &independent, jackknife.growth(root, &independent));
        }
        Ok(Self {
            values: solution.values,
            covariance,
            weights: information_weights(summary, &noise),
            noise,
            excited: solution.excited,
            unexcited: solution.unexcited,
            scale: solution.scale,
            few_residuals: Vec::new(),
        })
    }

    /// Returns the directions that are zero up to rounding, each with the unknown that it is named after. Adding any of them to
    /// the unknowns does not change a prediction. Coefficients at the level of rounding errors are omitted.
    pub fn unexcited_combinations(&self) -> Vec<(usize, Vec<(usize, f64)>)> {
        named_directions(&self.unexcited, &self.scale)
    }

    /// Returns the ratios of unknowns to scaled unknowns.
    pub(crate) fn scale(&self) -> &DVector<f64> {
        &self.scale
    }

    /// Returns the standard errors of the unknowns.
    pub fn std_errors(&self) -> Vec<f64> {
        self.covariance.diagonal().iter().map(|v| v.max(0.0).sqrt()).collect()
    }
}

/// Converts directions given by an orthonormal basis in scaled unknowns to their units, each named after a different unknown.
pub(crate) fn named_directions(
    unexcited: &DMatrix<f64>,
    scale: &DVector<f64>,
) -> Vec<(usize, Vec<(usize, f64)>)> {
    let mut basis = unexcited.clone();
    let mut pivots = Vec::new();
    // Gauss-Jordan elimination on columns: each direction gets a different pivot unknown.
    for k in 0..basis.ncols() {
        let free = basis.columns(k, basis.ncols() - k);
        let (row, column) = free.abs().iamax_full();
        basis.swap_columns(k, k + column);
        let pivot = basis[(row, k)];
        basis.column_mut(k).unscale_mut(pivot);
        for j in (0..basis.ncols()).filter(|&j| j != k) {
            let (own, factor) = (basis.column(k).into_owned(), basis[(row, j)]);
            basis.column_mut(j).axpy(-factor, &own, 1.0);
        }
        pivots.push(row);
    }
    let size = |i: usize| if scale[i] > 0.0 { scale[i] } else { 1.0 };
    let direction = |(k, pivot): (usize, usize)| {
        // Scaled columns have unit length: much smaller entries are rounding errors of the basis.
        let entries = (0..basis.nrows()).filter(|&i| basis[(i, k)].abs() > 1e-6);
        (pivot, entries.map(|i| (i, basis[(i, k)] * size(i) / size(pivot))).collect())
    };
    pivots.into_iter().enumerate().map(direction).collect()
}

fn information_weights(summary: &Summary, noise: &[f64]) -> Vec<f64> {
    let weight = |independent: f64, count: usize, noise: f64| {
        if count == 0 || noise == 0.0 { 0.0 } else { (independent / count as f64).sqrt() / noise }
    };
    summary.factors.iter().zip(noise).map(|(f, &s)| weight(f.independent, f.count, s)).collect()
}

/// Computes the information of a summary about the unknowns for a known noise of each coordinate: the inverse of the covariance of
/// weighted least squares.
pub fn information_matrix(
    equations: &Equations<'_>,
    summary: &Summary,
    noise: &[f64],
) -> Result<DMatrix<f64>> {
    summary.check(equations)?;
    if noise.len() != equations.channels.len() {
        let (expected, found) = (equations.channels.len(), noise.len());
        return Err(Error::Dimension { what: "noise", expected, found });
    }
    let factor = information(equations, summary, &information_weights(summary, noise))?.matrix();
    Ok(product(&factor.transpose(), &factor))
}

/// Returns the factor of all equations in the columns of all unknowns (without forces), with the rows of each coordinate
/// multiplied by its weight.
pub(crate) fn information(equations: &Equations<'_>, summary: &Summary, weights: &[f64]) -> Result<Triangle> {
    stacked(equations, summary, weights, false)
}

/// Stacks the factors of all channels, with the (filtered) forces as the last column.
pub(crate) fn stacked(
    equations: &Equations<'_>,
    summary: &Summary,
    weights: &[f64],
    with_forces: bool,
) -> Result<Triangle> {
    let width = equations.len() + usize::from(with_forces);
    let mut out = Triangle::new(width);
    for ((channel, factor), &weight) in equations.channels.iter().zip(&summary.factors).zip(weights) {
        let n = factor.unknowns();
        let rows = n + 1;
        let mut block = vec![0.0; rows * width];
        for i in 0..rows {
            let row = factor.triangle.row(i);
            for (&unknown, r) in channel.unknowns.iter().zip(row) {
                block[unknown * rows + i] = weight * r;
            }
            if with_forces {
                block[(width - 1) * rows + i] = weight * row[n];
            }
        }
        out.add_rows(&mut block, rows)?;
    }
    Ok(out)
}

impl Solution {
    fn new(
        equations: &Equations<'_>,
        summary: &Summary,
        weights: &[f64],
        only: Option<&[bool]>,
    ) -> Result<Self> {
        Self::of_factor(&stacked(equations, summary, weights, true)?.matrix(), only)
    }

    /// Computes the residuals of the rows of each coordinate and its remaining degrees of freedom: independent rows minus the
    /// trace of their part of the hat matrix.
    fn residuals(
        &self,
        equations: &Equations<'_>,
        summary: &Summary,
        weights: &[f64],
    ) -> Vec<ChannelResiduals> {
        let channels = equations.channels.iter().zip(&summary.factors).zip(weights);
        channels
            .map(|((channel, factor), weight)| {
                if factor.count == 0 {
                    return ChannelResiduals::default();
                }
                let n = factor.unknowns();
                let r = DMatrix::from_fn(n, n, |i, j| factor.triangle.at(i, j));
                let own =
                    DMatrix::from_fn(n, n, |i, j| self.inverse[(channel.unknowns[i], channel.unknowns[j])]);
                let taken = product(&r, &own).component_mul(&r).sum() * weight * weight;
                let sums = factor.sums(|k| self.values[channel.unknowns[k]]);
                // For correlated rows, each unknown uses as many rows as correspond to one independent row.
                let rows_each = factor.count as f64 / factor.independent;
                ChannelResiduals {
                    rows: factor.count,
                    free: (factor.independent - taken).max(0.0),
                    residual: sums.residual / rows_each,
                    force: sums.tau / factor.count as f64,
                }
            })
            .collect()
    }
}

/// Residuals of the independent rows of a coordinate.
#[derive(Clone, Copy, Default)]
struct ChannelResiduals {
    /// Number of rows, independent or not.
    rows: usize,
    /// Number of independent rows minus the degrees of freedom of the unknowns.
    free: f64,
    /// Sum of squared residuals.
    residual: f64,
    /// Mean square of the force.
    force: f64,
}

impl ChannelResiduals {
    /// Returns the standard deviation of the noise of all coordinates.
    ///
    /// A coordinate with hardly more independent rows than unknowns is overfitted, and its weight would grow without limit. If
    /// fewer than [`NEEDED`] degrees of freedom remain, the missing ones are filled with the noise of the other coordinates
    /// relative to their force. If all coordinates together have too few, [`ASSUMED`] is used.
    fn noise(all: &[Self]) -> Vec<f64> {
        let with_force = || all.iter().filter(|c| c.force > 0.0);
        let mut relative: Vec<f64> =
            with_force().filter(|c| c.free >= NEEDED).map(|c| c.residual / c.free / c.force).collect();
        relative.sort_by(f64::total_cmp);
        let usual = relative.get(relative.len() / 2).copied().unwrap_or_else(|| {
            let free: f64 = with_force().map(|c| c.free).sum();
            let residual: f64 = with_force().map(|c| c.residual / c.force).sum();
            let missing = (NEEDED - free).max(0.0);
            (residual + missing * ASSUMED.powi(2)) / (free + missing)
        });
        let least = LEAST_NOISE.powi(2) * all.iter().map(|c| c.force).fold(0.0, f64::max);
        let noise = |c: &Self| {
            let missing = (NEEDED - c.free).max(0.0);
            let square = (c.residual + missing * usual * c.force) / (c.free + missing);
            if c.rows == 0 { 0.0 } else { square.max(least).sqrt() }
        };
        all.iter().map(noise).collect()
    }

    /// Returns the coordinates that were measured and have fewer than [`NEEDED`] degrees of freedom.
    fn few_residuals(all: &[Self]) -> Vec<usize> {
        (0..all.len()).filter(|&k| all[k].rows > 0 && all[k].free < NEEDED).collect()
    }
}
