//! Selection of the informative intervals of a long motion.
//!
//! Algorithm 1 of paper 002 processes the intervals once and keeps an interval if it adds a significant singular value, reduces
//! the condition number, or is one of at most `u_max` in a row that change neither. As printed, it never updates the reference of
//! the comparison, so that almost every interval counts as an improvement. With the update it still keeps most intervals, because
//! most of them reduce the condition number a little. See [`PruningRule`] for the interpretation that keeps about as many as
//! published. None of them considers the effect of the noise on the estimate. [`select`] instead maximizes the determinant of the
//! information of the selected intervals, with exchanges until there is no improvement.

use nalgebra::DMatrix;

use crate::linalg::{Triangle, singular_values};
use crate::{Error, Result};

/// Largest number of exchange passes; two or three are usual.
const MOST_PASSES: usize = 20;

/// Singular values up to this share of the largest are rounding errors.
const ROUNDING: f64 = 1e-14;

/// Regularization of the information of the first few intervals, relative to the mean information.
const REGULAR: f64 = 1e-9;

/// Variant of algorithm 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PruningRule {
    /// Algorithm as printed: compares with the first intervals throughout.
    Printed,
    /// Algorithm with update: compares with the intervals kept so far.
    #[default]
    Refreshed,
    /// Algorithm according to the accompanying text about significant singular values, with update: an unchanged number is
    /// accepted "continuously for not more than `u_max` times", so a run of intervals that add none continues while they are
    /// pruned. The condition number is not used.
    Counted,
}

/// Options of algorithm 1.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct PruneOptions {
    /// Largest number of successive intervals that change nothing (`u_max`).
    pub unchanged: usize,
    /// Threshold of significant singular values, relative to the largest (`δ`).
    pub significant: f64,
    /// Interpretation of the algorithm.
    pub rule: PruningRule,
}

crate::with_changes!(PruneOptions);

impl Default for PruneOptions {
    fn default() -> Self {
        Self { unchanged: 5, significant: 1.0 / 300.0, rule: PruningRule::default() }
    }
}

/// Applies algorithm 1: returns the kept intervals, given the triangular factor of the regressor of each interval and its number
/// of rows.
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
    let mut before = evaluate(&kept, options.significant)?;
    let mut unchanged = 0;
    for (i, interval) in intervals.iter().enumerate().skip(next) {
        let mut with = kept.clone();
        with.merge(interval)?;
        let now = evaluate(&with, options.significant)?;
        let same = now.0 == before.0 && unchanged <= options.unchanged;
        let better = options.rule != PruningRule::Counted && now.1 < before.1;
        if now.0 > before.0 || better || same {
            out.push(i);
            kept = with;
            unchanged = if same { unchanged + 1 } else { 0 };
            if options.rule != PruningRule::Printed {
                before = now;
            }
        } else if options.rule != PruningRule::Counted {
            unchanged = 0;
        }
    }
    Ok(out)
}

/// Returns the number of significant singular values, and the condition number; infinite if the smallest singular value is a rounding
/// error, so that rounding errors are not compared.
fn evaluate(factor: &Triangle, significant: f64) -> Result<(usize, f64)> {
    let values = singular_values(&factor.matrix())?;
    let largest = values.first().copied().unwrap_or(0.0);
    let count = values.iter().filter(|&&s| s > significant * largest).count();
    let smallest = values.last().copied().unwrap_or(0.0);
    Ok((count, if smallest > ROUNDING * largest { largest / smallest } else { f64::INFINITY }))
}

/// Selects the `count` intervals whose information together has the largest determinant, as far as single exchanges find it:
/// greedy from the empty set, then exchanges. The result is in ascending order. The factors are those of `C^{-½} K`.
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
    // In units of the total information of all intervals about each parameter.
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
            // Rounding errors of a sum of logarithms are not an improvement.
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

/// Returns the unselected interval with the largest value of `of`; the first of equal ones, independent of the order of the
/// threads.
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
