//! Robust least squares: iteratively reweighted with Huber weights.

use crate::Result;
use crate::estimation::equations::Equations;
use crate::estimation::least_squares::fit::{LeastSquares, Weighting};
use crate::estimation::reduction::measurements::Huber;
use crate::estimation::reduction::summary::Summary;

/// Mean of the squared residual cut at 1.345 standard deviations, where noise is standard normal: Huber's proposal 2 takes the
/// noise from it.
const CLIPPED: f64 = 0.710_2;

/// Passes over the data, and the change (in standard errors, and of the noise relatively) that ends them.
const PASSES: usize = 60;
const SETTLED: f64 = 1e-3;

/// Each row counts by Huber's weight of its own residual, so the data are passed again for every step: `pass` makes their summary
/// with the weights given (see `Measurements::huber`). `summary` is the one without weights.
///
/// Of the noise, the standard deviation is Huber's proposal 2: that of the rows cut at 1.345 of it. Standard errors count the
/// weights; they are right to a hundredth where the noise is normal. After 60 passes the estimate counts as it is, and the second
/// part of the answer is false: without any noise but outliers, the noise shrinks for ever.
pub fn robust(
    equations: &Equations<'_>,
    summary: &Summary,
    mut pass: impl FnMut(Huber<'_>) -> Result<Summary>,
) -> Result<(LeastSquares, bool)> {
    let mut found = LeastSquares::new(equations, summary, Weighting::Weighted)?;
    // Noise of nothing but rounding leaves nothing to weigh.
    let least: Vec<f64> = found.noise.iter().map(|s| 1e-9 * s).collect();
    for _ in 0..PASSES {
        let weighted = pass(Huber { values: found.values.as_slice(), noise: &found.noise })?;
        weighted.check(equations)?;
        let total: usize = weighted.factors.iter().map(|f| f.count).sum();
        // Each channel gives up its share of the unknowns.
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
