//! Selection of the informative intervals of a long motion.
//!
//! Algorithm 1 of paper 002 goes through the intervals once and keeps one that adds a significant singular value, lowers the
//! condition number, or comes within `u_max` that change neither. As printed it never refreshes what it compares with, so that
//! nearly every interval counts as an improvement; with the refresh it still keeps most, because most lower the condition
//! number a little. See [`Reading`] for the one that keeps about as many as were published. None looks at what the noise
//! makes of the estimate: [`select`] takes the intervals whose information has the greatest determinant, and exchanges until
//! none improves it.

use nalgebra::DMatrix;

use crate::linalg::{Triangle, singular_values};
use crate::{Error, Result};

/// Passes of exchanges at most; two or three are usual.
const MOST_PASSES: usize = 20;

/// Part of the mean information that makes that of the first few intervals regular.
const REGULAR: f64 = 1e-9;

/// Interpretation of algorithm 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Reading {
    /// As printed: compares with the first intervals throughout.
    Printed,
    /// Compares with the intervals kept so far.
    #[default]
    Refreshed,
    /// As the text beside it says of the significant singular values, refreshed: as many are enough "continuously for not
    /// more than `u_max` times", so a run of intervals that add none goes on where they are pruned. The condition number
    /// decides nothing.
    Counted,
}

/// Algorithm 1's choices.
#[derive(Debug, Clone, Copy)]
pub struct PruneOptions {
    /// Largest number of intervals in a row that change nothing (`u_max`).
    pub unchanged: usize,
    /// Singular values above this part of the largest are significant (`δ`).
    pub significant: f64,
    /// Interpretation of the algorithm.
    pub reading: Reading,
}

impl Default for PruneOptions {
    fn default() -> Self {
        Self { unchanged: 5, significant: 1.0 / 300.0, reading: Reading::default() }
    }
}

/// Algorithm 1: the intervals kept, given the triangular factor of each one's regressor and its number of rows.
pub fn prune(intervals: &[Triangle], rows: usize, options: &PruneOptions) -> Result<Vec<usize>> {
    let Some(first) = intervals.first() else { return Ok(Vec::new()) };
    let columns = first.width();
    let mut kept = Triangle::new(columns);
    let mut out = Vec::new();
    let mut next = 0;
    while out.len() * rows <= columns && next < intervals.len() {
        kept.merge(&intervals[next])?;
        out.push(next);
        next += 1;
    }
    let mut before = judge(&kept, options.significant)?;
    let mut unchanged = 0;
    for (i, interval) in intervals.iter().enumerate().skip(next) {
        let mut with = kept.clone();
        with.merge(interval)?;
        let now = judge(&with, options.significant)?;
        let same = now.0 == before.0 && unchanged <= options.unchanged;
        let better = options.reading != Reading::Counted && now.1 < before.1;
        if now.0 > before.0 || better || same {
            out.push(i);
            kept = with;
            unchanged = if same { unchanged + 1 } else { 0 };
            if options.reading != Reading::Printed {
                before = now;
            }
        } else if options.reading != Reading::Counted {
            unchanged = 0;
        }
    }
    Ok(out)
}

/// Number of significant singular values, and condition number.
fn judge(factor: &Triangle, significant: f64) -> Result<(usize, f64)> {
    let values = singular_values(&factor.matrix())?;
    let largest = values.first().copied().unwrap_or(0.0);
    let count = values.iter().filter(|&&s| s > significant * largest).count();
    Ok((count, largest / values.last().copied().unwrap_or(0.0)))
}

/// The `count` intervals whose information together has the greatest determinant, as far as single exchanges find it: greedy
/// from the empty set, then exchanges. Ascending. The factors are those of `C^{-½} K`.
pub fn select(intervals: &[Triangle], count: usize) -> Result<Vec<usize>> {
    if count > intervals.len() {
        return Err(Error::InvalidOption(format!("{count} intervals of {} cannot be kept", intervals.len())));
    }
    let Some(first) = intervals.first() else { return Ok(Vec::new()) };
    let n = first.width();
    let grams: Vec<DMatrix<f64>> = intervals
        .iter()
        .map(|t| {
            let r = t.matrix();
            r.transpose() * r
        })
        .collect();
    let total = grams.iter().fold(DMatrix::zeros(n, n), |sum, g| sum + g);
    // In units of the information of all intervals on each parameter.
    let scale: Vec<f64> =
        (0..n).map(|i| if total[(i, i)] > 0.0 { total[(i, i)].sqrt().recip() } else { 0.0 }).collect();
    let scaled = |g: &DMatrix<f64>| DMatrix::from_fn(n, n, |i, j| g[(i, j)] * scale[i] * scale[j]);
    let grams: Vec<_> = grams.iter().map(scaled).collect();
    let mut sum = DMatrix::identity(n, n) * REGULAR;
    let mut kept = vec![false; intervals.len()];
    for _ in 0..count {
        let best = best(&grams, &kept, |g| log_det(&(&sum + g)));
        if let Some((i, _)) = best {
            kept[i] = true;
            sum += &grams[i];
        }
    }
    let mut value = log_det(&sum);
    for _ in 0..MOST_PASSES {
        let mut improved = false;
        for out in 0..grams.len() {
            if !kept[out] {
                continue;
            }
            let without = &sum - &grams[out];
            let Some((i, there)) = best(&grams, &kept, |g| log_det(&(&without + g))) else { continue };
            // Rounding of a sum of logarithms is no improvement.
            if there > value + 1e-9 {
                (kept[out], kept[i]) = (false, true);
                sum = without + &grams[i];
                value = there;
                improved = true;
            }
        }
        if !improved {
            break;
        }
    }
    Ok((0..kept.len()).filter(|&i| kept[i]).collect())
}

/// The interval not kept for which `of` is greatest; the first of equals, whatever thread was faster.
fn best(
    grams: &[DMatrix<f64>],
    kept: &[bool],
    of: impl Fn(&DMatrix<f64>) -> f64 + Sync,
) -> Option<(usize, f64)> {
    use rayon::prelude::{IndexedParallelIterator, IntoParallelRefIterator, ParallelIterator};
    let values: Vec<f64> =
        grams.par_iter().enumerate().map(|(i, g)| if kept[i] { f64::NEG_INFINITY } else { of(g) }).collect();
    let mut found = None;
    for (i, value) in values.into_iter().enumerate() {
        if value > found.map_or(f64::NEG_INFINITY, |(_, v)| v) {
            found = Some((i, value));
        }
    }
    found
}

fn log_det(m: &DMatrix<f64>) -> f64 {
    m.clone().cholesky().map_or(f64::NEG_INFINITY, |c| c.ln_determinant())
}
