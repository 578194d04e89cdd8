//! Closure of loops by a damped Newton iteration, and small steps between closed configurations.

use nalgebra::{DMatrix, DVector};

use super::constraints::Constraints;
use crate::Result;
use crate::linalg::{self, Rank, Svd};

/// Step of the coordinates (rad, or loop lengths) in the test for singular configurations: large enough that a
/// vanishing singular value rises well above the tolerance of ranks, small enough to stay on the branch.
pub(super) const PROBE: f64 = 0.05;

/// Closed configuration with the Jacobian and rank of its constraints.
pub(super) struct Candidate {
    pub q: Vec<f64>,
    pub jacobian: DMatrix<f64>,
    pub rank: Rank,
    /// Whether it differs from the configuration of the model.
    pub moved: bool,
}

impl Candidate {
    pub fn new(constraints: &Constraints<'_>, q: Vec<f64>, moved: bool) -> Result<Self> {
        Self::with_tolerance(constraints, q, moved, constraints.tolerances.rank)
    }

    /// Creates a candidate whose rank is decided with another tolerance.
    pub fn with_tolerance(
        constraints: &Constraints<'_>,
        q: Vec<f64>,
        moved: bool,
        tolerance: f64,
    ) -> Result<Self> {
        let jacobian = constraints.jacobian_at(&q);
        let rank = linalg::rank(&jacobian, tolerance)?;
        Ok(Self { q, jacobian, rank, moved })
    }
}

/// Returns whether all joints with one axis are within their limits (with a small tolerance for those that start at a
/// limit).
pub(super) fn within_limits(constraints: &Constraints<'_>, q: &[f64]) -> bool {
    let mut joints =
        constraints.mechanism.joints().iter().filter(|j| j.follows.is_none() && j.joint_type.nq() == 1);
    joints.all(|j| (j.limits.lower - 1e-9..=j.limits.upper + 1e-9).contains(&q[j.q]))
}

/// Moves `q` by `x` times the scale of each coordinate.
pub(super) fn advance(constraints: &Constraints<'_>, q: &mut [f64], x: &DVector<f64>) {
    let v: Vec<f64> = x.iter().zip(&constraints.scale).map(|(x, s)| x * s).collect();
    constraints.mechanism.integrate(q, &v);
}

/// Returns the displacement of each coordinate between two configurations, in units of its scale.
pub(super) fn displacement(constraints: &Constraints<'_>, from: &[f64], to: &[f64]) -> DVector<f64> {
    let mut out = DVector::zeros(constraints.mechanism.nv());
    for joint in constraints.mechanism.joints().iter().filter(|j| j.follows.is_none()) {
        let (q, v) = (joint.q_range(), &mut out.as_mut_slice()[joint.v_range()]);
        joint.joint_type.difference(&from[q.clone()], &to[q], v);
    }
    out.iter_mut().zip(&constraints.scale).for_each(|(x, s)| *x /= s);
    out
}

/// Closes the loops by Levenberg's method with all coordinates except `fixed` free; returns the remaining residual.
///
/// The damping decreases with the residual, so convergence is quadratic even if constraints are redundant (Fan and Yuan
/// 2005).
pub(super) fn close(constraints: &Constraints<'_>, q: &mut Vec<f64>, fixed: &[usize]) -> Result<f64> {
    let mut c = DVector::zeros(constraints.rows);
    let mut size = constraints.residual(q, c.as_mut_slice());
    let mut damping = 1.0;
    // Near the solution only directions that count in the rank are used: the others are redundant constraints in
    // inexact geometry, which no motion can satisfy.
    let mut truncate = size < 1e-3;
    for _ in 0..200 {
        let mut jacobian = constraints.jacobian_at(q);
        for &k in fixed {
            jacobian.column_mut(k).fill(0.0);
        }
        let svd = Svd::new(&jacobian)?;
        let rank = if truncate { svd.rank(constraints.tolerances.rank).rank } else { svd.values.len() };
        let mut better = false;
        for _ in 0..20 {
            let mut step = -svd.solve(&c, rank, (damping * size).sqrt());
            let largest = step.amax();
            if largest > 0.5 {
                step *= 0.5 / largest;
            }
            let mut trial = q.clone();
            advance(constraints, &mut trial, &step);
            let mut left = DVector::zeros(constraints.rows);
            let now = constraints.residual(&trial, left.as_mut_slice());
            if now < size {
                better = now < 0.99 * size;
                damping = (damping * 0.1).max(1e-8);
                (*q, c, size) = (trial, left, now);
                break;
            }
            damping *= 8.0;
            // The residual is at the rounding error and cannot be improved.
            if size < 1e-14 {
                break;
            }
        }
        if size == 0.0 {
            break;
        }
        if !better {
            if truncate && size > constraints.tolerances.gap {
                truncate = false;
                damping = 1.0;
                continue;
            }
            break;
        }
        truncate = truncate || size < 1e-3;
    }
    Ok(size)
}
