//! Second-order model of the problem at a point: Newton step with bounds on single variables, the resulting lower bound, and the
//! final steps of every solver.
//!
//! **Final steps.** A gap of some digits of the cost does not determine directions that are hardly excited, because the cost is
//! flat there. If every body has a prior, the optimum is strictly inside the cones and unique. Newton's method with the gradient
//! in factored form ([`super::rows`]) then converges to it up to rounding. All solvers, from any start and for data in any order,
//! yield the same bodies.

use nalgebra::{Const, DMatrix, DVector, Matrix4};

use super::conic::{Cone, ConicLeastSquares, Options, Solution};
use super::pseudo::{self, Vector10};
use crate::linalg::{Definite, Triangle, symmetric_eigen};

/// Eigenvalue of a pseudo-inertia, relative to its trace, that counts as zero for the certificate.
const ZERO: f64 = 1e-12;

/// Largest number of final steps; three or four are usual. A prior with a weight close to the requested gap needs more: each
/// shortened step gains about a tenth of its weight.
const LAST_STEPS: usize = 60;

/// Relative change of a body below which a step counts as zero; rounding may prevent steps smaller than ten times that.
const STILL: f64 = 1e-13;

/// Largest relative change of a body for which a full step is accepted without checking the cost.
const NEAR: f64 = 0.25;

/// Gradient and curvature at a point.
struct Local {
    gradient: DVector<f64>,
    hessian: DMatrix<f64>,
    /// Decomposition of the matrix of each cone with a prior.
    factors: Vec<Option<nalgebra::Cholesky<f64, Const<4>>>>,
}

/// Step to the minimum of the second-order model, and the multipliers of the bounds there.
struct Newton {
    step: DVector<f64>,
    multipliers: Vec<f64>,
}

/// Decomposition method of the curvature.
#[derive(Clone, Copy, PartialEq, Eq)]
enum By {
    /// Cholesky factorization of the sum of squares: fast, and sufficient if data and prior differ by fewer orders of magnitude
    /// than the precision.
    Squares,
    /// Orthogonal factorization of the rows: only half as many digits are lost.
    FactoredRows,
}

impl ConicLeastSquares {
    /// Computes a lower bound of the optimum from a dual point at the feasible `x`. It is tight to second order in the remaining
    /// gain. Returns `None` if `x` is too far from the optimum to yield dual values, if the data do not determine the minimum of
    /// the quadratic function, or with linear inequalities.
    pub fn lower_bound(&self, x: &DVector<f64>) -> Option<f64> {
        if !self.inequalities.is_empty() || x.len() != self.len() {
            return None;
        }
        let local = self.expand(x)?;
        let bound = |by| self.bound_of(x, &local, &self.newton_within(x, &local, by)?);
        bound(By::Squares).or_else(|| bound(By::FactoredRows))
    }

    /// Returns whether the optimum is inside all cones and the gradient is accurate enough to find it.
    pub(super) fn is_polished(&self) -> bool {
        let inside = self.cones.iter().all(|c| c.prior_weight > 0.0);
        inside && self.rows.is_some() && self.inequalities.is_empty()
    }

    /// Performs the final steps to an optimum inside all cones; does nothing otherwise.
    pub(super) fn polish(&self, found: &mut Solution, options: &Options) {
        if self.is_polished() {
            let bound = self.last_steps(found);
            found.certify(bound.or_else(|| self.lower_bound(&found.x)), self.goal(found.cost, options));
        }
    }

    /// Performs the final steps and returns the lower bound of the last one.
    fn last_steps(&self, found: &mut Solution) -> Option<f64> {
        let (mut by, mut last) = (By::Squares, None);
        for _ in 0..LAST_STEPS {
            let local = self.expand(&found.x)?;
            let newton = self.newton_within(&found.x, &local, by);
            let change = newton.as_ref().map_or(f64::INFINITY, |n| self.change_of_bodies(&local, &n.step));
            if let (Some(newton), Some(last)) = (&newton, last) {
                let enough = by == By::FactoredRows || change <= 10.0 * STILL;
                let still = change <= STILL || (change > 0.5 * last && enough);
                if still {
                    return self.bound_of(&found.x, &local, newton);
                }
            }
            let shrinks = last.is_none_or(|last| change <= 0.5 * last);
            let newton = newton.filter(|_| shrinks);
            match newton.and_then(|newton| self.advance_inside(found, &local, &newton, change)) {
                // Only full steps near the optimum decrease from one to the next.
                Some(whole) => last = (whole && change < NEAR).then_some(change),
                None if by == By::FactoredRows => return None,
                None => (by, last) = (By::FactoredRows, None),
            }
        }
        None
    }

    /// Moves along a step with a line search; returns whether the full step was taken, or `None` if there is no decrease.
    fn advance_inside(
        &self,
        found: &mut Solution,
        local: &Local,
        newton: &Newton,
        change: f64,
    ) -> Option<bool> {
        let slope = local.gradient.dot(&newton.step);
        let mut part = 1.0;
        while part > 1e-9 {
            let mut next = &found.x + &newton.step * part;
            self.nonnegative.iter().for_each(|&j| next[j] = next[j].max(0.0));
            let cost = self.cost(&next);
            // Near the optimum the decrease is below the rounding error.
            let near = part == 1.0 && change < NEAR && cost.is_finite();
            if near || cost <= found.cost + 1e-4 * part * slope {
                (found.x, found.cost) = (next, cost);
                return Some(part == 1.0);
            }
            part *= 0.5;
        }
        None
    }

    /// Returns the largest relative change of a body due to a step.
    fn change_of_bodies(&self, local: &Local, step: &DVector<f64>) -> f64 {
        let change = |(cone, factor): (&Cone, &Option<nalgebra::Cholesky<f64, Const<4>>>)| {
            let relative = factor.as_ref().map_or_else(Matrix4::zeros, |f| f.solve(&cone.matrix(step)));
            (relative * relative).trace().max(0.0).sqrt()
        };
        self.cones.iter().zip(&local.factors).map(change).fold(0.0, f64::max)
    }

    /// Computes gradient and curvature at `x`. For a body without a prior, its dual matrix is already subtracted from the
    /// gradient.
    fn expand(&self, x: &DVector<f64>) -> Option<Local> {
        let mut gradient = DVector::zeros(self.len());
        self.smooth_gradient(x, &mut gradient);
        let mut hessian = self.gram.clone();
        let mut factors = Vec::with_capacity(self.cones.len());
        for cone in &self.cones {
            let matrix = cone.matrix(x);
            let mut slope: Vector10 = gradient.fixed_rows::<10>(cone.offset).into_owned();
            if cone.prior_weight > 0.0 {
                let factor = matrix.cholesky()?;
                let inverse = factor.inverse();
                slope -= pseudo::adjoint(&inverse) * cone.prior_weight;
                let mut block = hessian.fixed_view_mut::<10, 10>(cone.offset, cone.offset);
                block += pseudo::curvature(&inverse) * cone.prior_weight;
                factors.push(Some(factor));
            } else {
                slope -= pseudo::adjoint(&multiplier(&matrix, &pseudo::adjoint_inverse(&slope))?);
                factors.push(None);
            }
            gradient.fixed_rows_mut::<10>(cone.offset).copy_from(&slope);
        }
        Some(Local { gradient, hessian, factors })
    }

    /// Computes the Newton step with nonnegative variables. Variables that would become negative are fixed at zero and the others
    /// are solved again; fixed variables that would leave zero are released, until there is no change.
    fn newton_within(&self, x: &DVector<f64>, local: &Local, by: By) -> Option<Newton> {
        let (gradient, hessian) = (&local.gradient, &local.hessian);
        let root = match by {
            By::Squares => None,
            By::FactoredRows => Some(self.root(local)?),
        };
        let mut system = Definite::new(self.len());
        // At the bound, or moved there by a step of this variable alone.
        let driven = |&j: &usize| gradient[j] > 0.0 && x[j] * hessian[(j, j)] <= gradient[j];
        let mut held: Vec<bool> = self.nonnegative.iter().map(driven).collect();
        let rounding = f64::EPSILON * (2.0 * self.constant).sqrt();
        for _ in 0..=2 * held.len() {
            let fixed: Vec<usize> =
                self.nonnegative.iter().zip(&held).filter(|(_, held)| **held).map(|(&j, _)| j).collect();
            // Fixed variables move to zero; the others are solved given that.
            let mut step = -gradient;
            fixed.iter().for_each(|&j| step.axpy(x[j], &hessian.column(j), 1.0));
            fixed.iter().for_each(|&j| step[j] = -x[j]);
            if let Some(root) = &root {
                step = solve_squares_of(root, &fixed, &step)?;
            } else {
                let mut reduced = hessian.clone();
                for &j in &fixed {
                    reduced.row_mut(j).fill(0.0);
                    reduced.column_mut(j).fill(0.0);
                    reduced[(j, j)] = 1.0;
                }
                system.factorize(&reduced, 0.0).ok()?;
                system.solve_in_place(&mut step).ok()?;
            }
            let below = |j: usize| x[j] + step[j] < 0.0;
            if self.nonnegative.iter().zip(&held).any(|(&j, held)| !held && below(j)) {
                self.nonnegative.iter().zip(&mut held).for_each(|(&j, held)| *held |= below(j));
                continue;
            }
            let pull = |j: usize| gradient[j] + hessian.column(j).dot(&step);
            let multipliers: Vec<f64> = self
                .nonnegative
                .iter()
                .zip(&held)
                .map(|(&j, &held)| if held { pull(j) } else { 0.0 })
                .collect();
            // A negative multiplier within the rounding error of the forces is zero.
            let unit = |k: usize| rounding * hessian[(self.nonnegative[k], self.nonnegative[k])].sqrt();
            let worst = (0..held.len())
                .filter(|&k| multipliers[k] < -unit(k))
                .min_by(|&a, &b| (multipliers[a] / unit(a)).total_cmp(&(multipliers[b] / unit(b))));
            let Some(worst) = worst else {
                let multipliers = multipliers.into_iter().map(|z| z.max(0.0)).collect();
                return Some(Newton { step, multipliers });
            };
            held[worst] = false;
        }
        None
    }

    /// Returns rows whose squares are the curvature: those of the data, and of the priors at the point.
    fn root(&self, local: &Local) -> Option<DMatrix<f64>> {
        let more = 10 * local.factors.iter().flatten().count();
        let mut out = self.rows.as_ref()?.stacked(more);
        let mut at = out.nrows() - more;
        for (cone, factor) in self.cones.iter().zip(&local.factors) {
            if let Some(factor) = factor {
                let rows = pseudo::relative(factor) * cone.prior_weight.sqrt();
                out.fixed_view_mut::<10, 10>(at, cone.offset).copy_from(&rows);
                at += 10;
            }
        }
        Some(out)
    }

    /// Computes the bound of the module [`super::conic`] with the dual values of a step.
    fn bound_of(&self, x: &DVector<f64>, local: &Local, newton: &Newton) -> Option<f64> {
        // The minimum of the quadratic function is at x + step: its gradient is zero there by construction.
        let at = x + &newton.step;
        let mut bound = self.quadratic(&at);
        let mut offered = DVector::zeros(self.len());
        self.smooth_gradient(x, &mut offered);
        for (cone, factor) in self.cones.iter().zip(&local.factors) {
            let matrix = cone.matrix(&at);
            if let Some(factor) = factor {
                let inverse = factor.inverse();
                let tangent = inverse - inverse * cone.matrix(&newton.step) * inverse;
                let log_det = pseudo::log_det(&tangent.cholesky()?);
                bound += cone.prior_weight * (cone.prior.dot(&matrix) + log_det + 4.0 - tangent.dot(&matrix));
            } else {
                let given: Vector10 = offered.fixed_rows::<10>(cone.offset).into_owned();
                let kept: Vector10 = local.gradient.fixed_rows::<10>(cone.offset).into_owned();
                bound -= pseudo::adjoint_inverse(&(given - kept)).dot(&matrix);
            }
        }
        for (&j, z) in self.nonnegative.iter().zip(&newton.multipliers) {
            bound -= z * at[j];
        }
        bound.is_finite().then_some(bound)
    }
}

/// Solves `AᵀA x = b` except for the fixed variables, which keep the values of `b`.
fn solve_squares_of(a: &DMatrix<f64>, held: &[usize], b: &DVector<f64>) -> Option<DVector<f64>> {
    let (rows, n) = a.shape();
    let mut block = a.clone().insert_rows(rows, held.len(), 0.0);
    let mut scale = DVector::from_element(n, 1.0);
    for (k, &j) in held.iter().enumerate() {
        block.column_mut(j).fill(0.0);
        block[(rows + k, j)] = 1.0;
    }
    for (mut column, scale) in block.column_iter_mut().zip(&mut scale) {
        *scale = column.norm().recip();
        column *= *scale;
    }
    let mut triangle = Triangle::new(n);
    triangle.add_rows(block.as_mut_slice(), rows + held.len()).ok()?;
    let upper = triangle.matrix();
    let inner = upper.tr_solve_upper_triangular(&b.component_mul(&scale))?;
    let out = upper.solve_upper_triangular(&inner)?.component_mul(&scale);
    out.iter().all(|x| x.is_finite()).then_some(out)
}

/// Returns the dual matrix of a body without a prior: the positive part of the gradient on the null space of its pseudo-inertia.
fn multiplier(matrix: &Matrix4<f64>, gradient: &Matrix4<f64>) -> Option<Matrix4<f64>> {
    let own = symmetric_eigen(matrix).ok()?;
    let mut null = Matrix4::zeros();
    for (value, vector) in own.values.iter().zip(own.vectors.column_iter()) {
        if *value <= ZERO * matrix.trace() {
            null += vector * vector.transpose();
        }
    }
    let eigen = symmetric_eigen(&(null * gradient * null)).ok()?;
    let mut out = Matrix4::zeros();
    for (value, vector) in eigen.values.iter().zip(eigen.vectors.column_iter()) {
        out += vector * vector.transpose() * value.max(0.0);
    }
    Some(out)
}
