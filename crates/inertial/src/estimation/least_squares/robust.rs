//! Robust least squares: iteratively reweighted least squares with Huber weights.

use crate::Result;
use crate::estimation::equations::Equations;
use crate::estimation::least_squares::fit::{LeastSquares, Weighting};
use crate::estimation::reduction::measurements::Huber;
use crate::estimation::reduction::summary::Summary;

/// Mean of the squared residual, clipped at 1.345 standard deviations, for standard normal noise. Proposal 2 of Huber estimates
/// the noise from it.
const CLIPPED: f64 = 0.710_2;

/// Largest number of passes over the data, and the change (in standard errors, and relative for the noise) at which they stop.
pub(crate) const PASSES: usize = 60;
const SETTLED: f64 = 1e-3;

/// Computes a robust least-squares estimate. Each row is weighted by the Huber weight of its residual, so each iteration needs a
/// pass over the data: `pass` computes their summary with the given weights (see `Measurements::huber`). `summary` is the one
/// without weights.
///
/// The standard deviation of the noise follows proposal 2 of Huber, from residuals clipped at 1.345 standard deviations. Standard
/// errors take the weights into account; they are accurate to a hundredth for normal noise. After 60 passes the current estimate
/// is returned, and the second part of the result is false: for data with outliers but without noise, the estimated noise
/// decreases without limit.
pub fn robust(
    equations: &Equations<'_>,
    summary: &Summary,
    mut pass: impl FnMut(Huber<'_>) -> Result<Summary>,
) -> Result<(LeastSquares, bool)> {
    let mut found = LeastSquares::new(equations, summary, Weighting::Weighted)?;
    // Lower limit of the noise: residuals at the level of rounding errors need no weights.
    let least: Vec<f64> = found.noise.iter().map(|s| 1e-9 * s).collect();
    for _ in 0..PASSES {
        let weighted = pass(Huber { values: found.values.as_slice(), noise: &found.noise })?;
        weighted.check(equations)?;
        let total: usize = weighted.factors.iter().map(|f| f.count).sum();
        // The degrees of freedom of the unknowns are shared by all channels in proportion to their rows.
        let free = 1.0 - equations.len() as f64 / total.max(1) as f64;
        let noise: Vec<f64> = weighted
            .factors
            .iter()
            .zip(&least)
            .map(|(f, &least)| {
                let count = CLIPPED * free * f.count as f64;
                if f.count == 0 { 0.0 } else { (f.clipped / count.max(1.0)).sqrt().max(least) }
            })
            .collect();
        let next = LeastSquares::with_noise(equations, &weighted, noise, None)?;
        let errors = next.std_errors();
        let moved = (0..errors.len())
            .filter(|&i| errors[i] > 0.0)
            .map(|i| ((next.values[i] - found.values[i]) / errors[i]).abs())
            .chain(
                next.noise
                    .iter()
                    .zip(&found.noise)
                    .filter(|(n, _)| **n > 0.0)
                    .map(|(n, f)| (f / n - 1.0).abs()),
            )
            .fold(0.0, f64::max);
        found = next;
        if moved < SETTLED {
            return Ok((found, true));
        }
    }
    Ok((found, false))
}
