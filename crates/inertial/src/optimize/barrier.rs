//! Path-following method in the variables of the problem: Newton's method on `f + μ B` with
//! `B = −Σ log det Pₖ − Σ log xⱼ − Σ log(aᵢ·x − βᵢ)`, for μ → 0. Every iterate is strictly feasible. A cone with a prior has
//! `tr(C P) − log det P` in `B`. Otherwise, variables that are only determined by a weak prior would grow along the path by the
//! factor μ/w, to numbers whose squares leave no significant digits for the data.
//!
//! **Certificate.** At an iterate `x` with Newton step `Δ`, the matrices `Sₖ = (wₖ+μ)(P⁻¹ − P⁻¹ ΔP P⁻¹)` and the numbers
//! `zⱼ = μ(1/xⱼ − Δⱼ/xⱼ²)` make `x + Δ` the stationary point of the quadratic function of [`super::conic`] with
//! `P̄⁻¹ = Sₖ/(wₖ+μ)`, the multipliers `μ/(wₖ+μ) Sₖ` and `zⱼ`. If they are positive, its value there is a lower bound, whether or
//! not the iterate is central. The solver reports the gap between cost and bound.

use nalgebra::{DMatrix, DVector, Matrix4};

use super::conic::{Cone, ConicLeastSquares, Options, Solution};
use super::pseudo::{self, Vector10};
use super::status::SolverStatus;
use crate::linalg::Definite;
use crate::{Error, Result};

/// Fraction of the step to the boundary, Newton decrement that counts as central, factor of μ.
const TO_BOUNDARY: f64 = 0.95;
const CENTRAL: f64 = 0.5;
const SHRINK: f64 = 0.05;

/// Gap, relative to the weight of the prior, within which Newton's method without a barrier converges to an optimum inside all
/// cones.
const REACH: f64 = 0.1;

/// Remaining expected gain, relative to the goal, at which the path is abandoned.
const SPENT: f64 = 1e-4;

/// Largest number of final centring steps, and the decrement at which they stop. The square of the decrement is the remaining
/// barrier cost over μ.
const SETTLING: usize = 5;
const SETTLED: f64 = 1e-10;

/// Memory of the iterations.
struct Workspace {
    x: DVector<f64>,
    next: DVector<f64>,
    gradient: DVector<f64>,
    newton: DVector<f64>,
    hessian: DMatrix<f64>,
    system: Definite,
    /// Inverse of the matrix of each cone, at `x` and at `next`, and the logarithms of their determinants.
    inverse: Vec<Matrix4<f64>>,
    next_inverse: Vec<Matrix4<f64>>,
    log_det: Vec<f64>,
    next_log_det: Vec<f64>,
}

impl ConicLeastSquares {
    /// Solves the problem from a strictly feasible start; `watch` receives every iterate and stops the solver by returning
    /// `false`.
    pub fn solve(
        &self,
        start: &DVector<f64>,
        options: &Options,
        mut watch: impl FnMut(&DVector<f64>, f64) -> bool,
    ) -> Result<Solution> {
        self.expect_size(start)?;
        let (n, cones) = (self.len(), self.cones.len());
        let mut w = Workspace {
            x: start.clone(),
            next: start.clone(),
            gradient: DVector::zeros(n),
            newton: DVector::zeros(n),
            hessian: self.gram.clone(),
            system: Definite::new(n),
            inverse: vec![Matrix4::zeros(); cones],
            next_inverse: vec![Matrix4::zeros(); cones],
            log_det: vec![0.0; cones],
            next_log_det: vec![0.0; cones],
        };
        if !self.invert(&w.x, &mut w.inverse, &mut w.log_det) {
            return Err(Error::Infeasible("the optimization must start strictly inside its cones".into()));
        }
        let order = (4 * cones + self.nonnegative.len() + self.inequalities.len()).max(1) as f64;
        let mut cost = self.cost_with(&w.x, &w.log_det);
        let mut mu = (cost.abs() / order).max(self.rounding(cost).max(1e-300));
        let mut best_bound = f64::NEG_INFINITY;
        let (mut steps, mut stalled) = (0, 0);
        let weight = self.cones.iter().map(|c| c.prior_weight).fold(f64::INFINITY, f64::min);
        let mut reachable = self.is_polished();
        loop {
            let decrement = self.newton(&mut w, mu)?;
            if let Some(bound) = self.lower_bound_of_step(&w, mu) {
                best_bound = best_bound.max(bound.min(cost));
            }
            let goal = self.goal(cost, options);
            let converged = cost - best_bound <= goal;
            // On the path, the remaining gain is μ times the number of logarithms. Far below the goal, only rounding prevents
            // convergence.
            let ended = converged || stalled > 3 || mu * order < SPENT * goal;
            let limit = steps >= options.max_steps;
            if ended || limit || !watch(&w.x, cost) {
                if converged {
                    self.settle(&mut w, mu, &mut cost)?;
                }
                let lower_bound = f64::NEG_INFINITY;
                let status = match (ended, limit) {
                    (true, _) => SolverStatus::Stalled,
                    (_, true) => SolverStatus::StepLimit,
                    _ => SolverStatus::Stopped,
                };
                let mut found = Solution { x: w.x, cost, lower_bound, steps, status };
                found.certify(Some(best_bound), goal);
                if ended {
                    self.polish(&mut found, options);
                }
                return Ok(found);
            }
            if reachable && cost - best_bound <= REACH * weight {
                reachable = false;
                let status = SolverStatus::Stalled;
                let mut found = Solution { x: w.x.clone(), cost, lower_bound: best_bound, steps, status };
                self.polish(&mut found, options);
                if found.status.is_converged() {
                    return Ok(found);
                }
            }
            steps += 1;
            let moved = self.advance(&mut w, mu, decrement, &mut cost);
            stalled = if moved { 0 } else { stalled + 1 };
            if decrement < CENTRAL || !moved {
                mu *= SHRINK;
            }
        }
    }

    /// Continues to the central point. The cost is flat in directions that are hardly excited, and a gap within the goal does not
    /// determine them. The central point depends on the data only, not on the end of the last step: data that differ by rounding
    /// errors yield results that do so too. If the optimum is inside all cones, [`Self::polish`] is more accurate.
    fn settle(&self, w: &mut Workspace, mu: f64, cost: &mut f64) -> Result<()> {
        if self.is_polished() {
            return Ok(());
        }
        for _ in 0..SETTLING {
            let decrement = self.newton(w, mu)?;
            if decrement < SETTLED || !self.advance(w, mu, decrement, cost) {
                break;
            }
        }
        Ok(())
    }

    /// Moves along the Newton step with a line search.
    fn advance(&self, w: &mut Workspace, mu: f64, decrement: f64, cost: &mut f64) -> bool {
        let slope = w.gradient.dot(&w.newton);
        let current = *cost - mu * self.log_barrier(&w.x, &w.log_det);
        let mut step = self.longest_step(w);
        for _ in 0..40 {
            w.next.copy_from(&w.x);
            w.next.axpy(step, &w.newton, 1.0);
            if self.invert(&w.next, &mut w.next_inverse, &mut w.next_log_det) {
                let next = self.cost_with(&w.next, &w.next_log_det);
                let value = next - mu * self.log_barrier(&w.next, &w.next_log_det);
                // Near the optimum the decrease is below the rounding error: accept a full step inside the Dikin ellipsoid.
                if value <= current + 1e-4 * step * slope || (decrement < CENTRAL && step == 1.0) {
                    std::mem::swap(&mut w.x, &mut w.next);
                    std::mem::swap(&mut w.inverse, &mut w.next_inverse);
                    std::mem::swap(&mut w.log_det, &mut w.next_log_det);
                    *cost = next;
                    return true;
                }
            }
            step *= 0.5;
        }
        false
    }

    /// Computes the inverses of the matrices of the cones; returns whether `x` is strictly feasible.
    fn invert(&self, x: &DVector<f64>, inverse: &mut [Matrix4<f64>], log_det: &mut [f64]) -> bool {
        let inside = |s: f64| s > 0.0 && s.is_finite();
        if !self.nonnegative.iter().all(|&j| inside(x[j]))
            || !self.inequalities.iter().all(|i| inside(i.slack(x)))
        {
            return false;
        }
        for ((cone, inverse), log_det) in self.cones.iter().zip(inverse).zip(log_det) {
            let Some(factor) = cone.matrix(x).cholesky() else { return false };
            *log_det = pseudo::log_det(&factor);
            *inverse = factor.inverse();
        }
        true
    }

    fn cost_with(&self, x: &DVector<f64>, log_det: &[f64]) -> f64 {
        let cones = self.cones.iter().zip(log_det).filter(|(c, _)| c.prior_weight > 0.0);
        let prior: f64 =
            cones.map(|(c, log_det)| c.prior_weight * (c.prior.dot(&c.matrix(x)) - log_det)).sum();
        self.quadratic(x) + prior
    }

    /// Returns the sum of the logarithms of all positive quantities, minus the prior terms of cones with a prior.
    fn log_barrier(&self, x: &DVector<f64>, log_det: &[f64]) -> f64 {
        let held = |cone: &&Cone| cone.prior_weight > 0.0;
        log_det.iter().sum::<f64>()
            - self.cones.iter().filter(held).map(|c| c.prior.dot(&c.matrix(x))).sum::<f64>()
            + self.nonnegative.iter().map(|&j| x[j].ln()).sum::<f64>()
            + self.inequalities.iter().map(|i| i.slack(x).ln()).sum::<f64>()
    }

    /// Computes the gradient of the barrier cost and the Newton step; returns its decrement relative to μ.
    fn newton(&self, w: &mut Workspace, mu: f64) -> Result<f64> {
        w.hessian.copy_from(&self.gram);
        self.smooth_gradient(&w.x, &mut w.gradient);
        for (cone, inverse) in self.cones.iter().zip(&w.inverse) {
            let weight = cone.prior_weight + mu;
            let mut part = w.gradient.fixed_rows_mut::<10>(cone.offset);
            part -= pseudo::adjoint(inverse) * weight;
            if cone.prior_weight > 0.0 {
                part += pseudo::adjoint(&cone.prior) * mu;
            }
            let mut block = w.hessian.fixed_view_mut::<10, 10>(cone.offset, cone.offset);
            block += pseudo::curvature(inverse) * weight;
        }
        for &j in &self.nonnegative {
            w.gradient[j] -= mu / w.x[j];
            w.hessian[(j, j)] += mu / (w.x[j] * w.x[j]);
        }
        for inequality in &self.inequalities {
            let slack = inequality.slack(&w.x);
            for &(j, a) in &inequality.coefficients {
                w.gradient[j] -= mu * a / slack;
                for &(k, b) in &inequality.coefficients {
                    w.hessian[(j, k)] += mu * a * b / (slack * slack);
                }
            }
        }
        // If rounding has made the matrix indefinite, add the smallest sufficient multiple of its diagonal.
        let mut shift = 0.0;
        while let Err(error) = w.system.factorize(&w.hessian, shift) {
            shift = if shift == 0.0 { 1e-15 } else { shift * 10.0 };
            if shift > 1e-3 {
                return Err(error.into());
            }
        }
        w.newton.copy_from(&w.gradient);
        w.newton.neg_mut();
        w.system.solve_in_place(&mut w.newton)?;
        Ok((-w.gradient.dot(&w.newton)).max(0.0).sqrt() / mu.sqrt())
    }

    /// Returns the largest step (at most one) that keeps a distance to the boundary.
    fn longest_step(&self, w: &Workspace) -> f64 {
        let mut most = f64::INFINITY;
        let mut keep = |slack: f64, change: f64| {
            if change < 0.0 {
                most = most.min(-slack / change);
            }
        };
        self.nonnegative.iter().for_each(|&j| keep(w.x[j], w.newton[j]));
        self.inequalities.iter().for_each(|i| keep(i.slack(&w.x), i.form(&w.newton)));
        for (cone, inverse) in self.cones.iter().zip(&w.inverse) {
            // P + s ΔP stays positive for s < 1/‖P⁻¹ΔP‖; the Frobenius norm of the symmetric form bounds it.
            let m = inverse * cone.matrix(&w.newton);
            let norm = (m * m).trace().max(0.0).sqrt();
            if norm > 0.0 {
                // The bound is loose by up to a factor of two (four eigenvalues); the line search halves if needed.
                most = most.min(2.0 / norm);
            }
        }
        (TO_BOUNDARY * most).min(1.0)
    }

    /// Computes the lower bound described in the module documentation. The Newton step has rounding errors (and a shift if the
    /// matrix was indefinite), so the function may have a nonzero gradient at `x + Δ`. There are two remedies, each with a valid
    /// bound: subtract the largest possible gain of this gradient over a distance of the size of the variables, or move the
    /// gradient into the dual values. The first is tight if the gradient is a rounding error, the second if the dual values are
    /// far from zero. An inaccurate step yields a poor bound or none.
    fn lower_bound_of_step(&self, w: &Workspace, mu: f64) -> Option<f64> {
        let at = &w.x + &w.newton;
        let mut given = DVector::zeros(self.len());
        self.smooth_gradient(&at, &mut given);
        let mut fixed = self.quadratic(&at);
        for inequality in &self.inequalities {
            let slack = inequality.slack(&w.x);
            let z = multiplier(mu, slack, inequality.form(&w.newton))?;
            inequality.coefficients.iter().for_each(|&(j, a)| given[j] -= z * a);
            fixed -= z * inequality.slack(&at);
        }
        let as_stepped = self.bound_with(
            &at,
            &given,
            fixed,
            mu,
            |cone, k, _| {
                let inverse = &w.inverse[k];
                Some(inverse - inverse * cone.matrix(&w.newton) * inverse)
            },
            |j, _| multiplier(mu, w.x[j], w.newton[j]),
            &w.x,
        );
        let as_given = self.bound_with(
            &at,
            &given,
            fixed,
            mu,
            |cone, _, slope| Some(pseudo::adjoint_inverse(slope) / (cone.prior_weight + mu)),
            |_, slope| (slope >= 0.0).then_some(slope),
            &w.x,
        );
        as_stepped.into_iter().chain(as_given).reduce(f64::max)
    }

    /// Computes the bound of given dual values, minus the possible gain of the remaining gradient at `at`.
    #[allow(clippy::too_many_arguments)]
    fn bound_with(
        &self,
        at: &DVector<f64>,
        given: &DVector<f64>,
        fixed: f64,
        mu: f64,
        tangent: impl Fn(&Cone, usize, &Vector10) -> Option<Matrix4<f64>>,
        bound_multiplier: impl Fn(usize, f64) -> Option<f64>,
        x: &DVector<f64>,
    ) -> Option<f64> {
        let (mut bound, mut slope) = (fixed, given.clone());
        for (k, cone) in self.cones.iter().enumerate() {
            let weight = cone.prior_weight + mu;
            let own: Vector10 = slope.fixed_rows::<10>(cone.offset).into_owned();
            let tangent = tangent(cone, k, &own)?;
            let factor = tangent.cholesky()?;
            let matrix = cone.matrix(at);
            bound -= weight * tangent.dot(&matrix);
            if cone.prior_weight > 0.0 {
                // −w log det P̄ = w log det P̄⁻¹, and the constant 4w of the tangent.
                bound += cone.prior_weight * (cone.prior.dot(&matrix) + pseudo::log_det(&factor) + 4.0);
            }
            slope.fixed_rows_mut::<10>(cone.offset).copy_from(&(own - pseudo::adjoint(&tangent) * weight));
        }
        for &j in &self.nonnegative {
            let z = bound_multiplier(j, slope[j])?;
            bound -= z * at[j];
            slope[j] -= z;
        }
        bound -=
            slope.iter().zip(at.iter().zip(x)).map(|(s, (a, b))| s.abs() * (a.abs() + b.abs())).sum::<f64>();
        bound.is_finite().then_some(bound)
    }
}

/// Returns the multiplier `μ (1 − Δ/s)/s` of a positive quantity.
fn multiplier(mu: f64, slack: f64, change: f64) -> Option<f64> {
    let z = mu * (1.0 - change / slack) / slack;
    (z >= 0.0).then_some(z)
}
