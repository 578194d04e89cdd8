//! Least squares over 4×4 positive semidefinite cones and sign constraints, with an entropic prior.
//!
//! Minimises `½‖A x − b‖² + Σₖ wₖ (tr(Cₖ Pₖ(x)) − log det Pₖ(x))` subject to `Pₖ(x) ⪰ 0` and `xⱼ ≥ 0`, where each
//! `Pₖ` is linear in ten consecutive variables. A path-following barrier method in the primal variables: Newton's method
//! on `f + μ B`, `B = −Σ log det Pₖ − Σ log xⱼ`, for μ → 0. Every iterate is strictly feasible.
//!
//! **Certificate.** At an iterate `x` with Newton step `Δ`, the matrices `Sₖ = (wₖ+μ)(P⁻¹ − P⁻¹ ΔP P⁻¹)` and the numbers
//! `zⱼ = μ(1/xⱼ − Δⱼ/xⱼ²)` make `x + Δ` a stationary point of the convex function obtained by replacing each
//! `−wₖ log det Pₖ` by its tangent where `P̄⁻¹ = Sₖ/(wₖ+μ)` and adding the multipliers `μ/(wₖ+μ) Sₖ` and `zⱼ`. Where
//! they are positive that function is below `f` on the feasible set, so its minimum is a lower bound of the optimum,
//! whether or not the iterate is central. The gap between the two is reported.

use nalgebra::{DMatrix, DVector, Matrix4, SMatrix, SVector};

use crate::linalg::Cholesky;
use crate::{Error, Result};

/// A 4×4 symmetric matrix that is linear in ten consecutive variables.
#[derive(Debug, Clone)]
pub struct Cone {
    /// The first of its ten variables.
    pub offset: usize,
    /// The matrix as a function of the ten: `P = Σ x[offset+i] basis[i]`.
    pub basis: [Matrix4<f64>; 10],
    /// Weight `w` of the prior `w (tr(C P) − log det P)`; zero for none.
    pub prior_weight: f64,
    /// The prior's matrix `C` (the inverse of the matrix that the prior alone would give).
    pub prior: Matrix4<f64>,
}

impl Cone {
    /// The matrix at the variables `x`.
    pub fn matrix(&self, x: &DVector<f64>) -> Matrix4<f64> {
        self.basis.iter().enumerate().map(|(i, e)| e * x[self.offset + i]).sum()
    }

    /// `tr(M basis[i])` for each i.
    fn adjoint(&self, m: &Matrix4<f64>) -> SVector<f64, 10> {
        SVector::from_fn(|i, _| m.dot(&self.basis[i]))
    }
}

/// The problem, with the data already reduced to `AᵀA`, `Aᵀb` and `½bᵀb`.
#[derive(Debug, Clone)]
pub struct ConicLeastSquares {
    /// `AᵀA`.
    pub gram: DMatrix<f64>,
    /// `Aᵀb`.
    pub rhs: DVector<f64>,
    /// `½bᵀb`.
    pub constant: f64,
    /// The cones; their variables must not overlap.
    pub cones: Vec<Cone>,
    /// Variables that must not be negative; none of them in a cone.
    pub nonnegative: Vec<usize>,
}

/// When to stop.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// Gap between cost and lower bound, relative to the cost (plus a rounding unit of `bᵀb`).
    pub relative_gap: f64,
    /// Most Newton steps.
    pub max_steps: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { relative_gap: 1e-9, max_steps: 400 }
    }
}

/// A solution and what proves it.
#[derive(Debug, Clone)]
pub struct Solution {
    /// The variables, strictly feasible.
    pub x: DVector<f64>,
    /// Cost at `x`.
    pub cost: f64,
    /// Proven lower bound of the cost of any feasible point.
    pub lower_bound: f64,
    /// Newton steps taken.
    pub steps: usize,
    /// Whether the gap asked for was reached.
    pub converged: bool,
}

impl Solution {
    /// The duality gap.
    pub fn gap(&self) -> f64 {
        self.cost - self.lower_bound
    }
}

/// Step size below the boundary, Newton decrement that counts as central, factor of μ.
const TO_BOUNDARY: f64 = 0.95;
const CENTRAL: f64 = 0.3;
const SHRINK: f64 = 0.08;

struct Point {
    /// Inverse of each cone's matrix.
    inverse: Vec<Matrix4<f64>>,
    log_det: Vec<f64>,
}

impl ConicLeastSquares {
    /// Solves from a strictly feasible start; `watch` sees every iterate and may stop the solve by returning `false`.
    pub fn solve(
        &self,
        start: &DVector<f64>,
        options: &Options,
        mut watch: impl FnMut(&DVector<f64>, f64) -> bool,
    ) -> Result<Solution> {
        let n = self.rhs.len();
        if start.len() != n {
            return Err(Error::Dimension {
                what: "start of the optimisation",
                expected: n,
                found: start.len(),
            });
        }
        let mut x = start.clone();
        let mut point = self
            .point(&x)
            .ok_or_else(|| Error::Numeric("the optimisation must start strictly inside its cones".into()))?;
        let order = (4 * self.cones.len() + self.nonnegative.len()).max(1) as f64;
        let rounding = f64::EPSILON * self.constant.abs();
        let mut mu = (self.cost(&x, &point).abs() / order).max(rounding.max(1e-300));
        let mut best_bound = f64::NEG_INFINITY;
        let mut steps = 0;
        let mut hessian = self.gram.clone();
        let mut stalled = 0;
        loop {
            let cost = self.cost(&x, &point);
            let (gradient, newton, decrement) = self.newton(&x, &point, mu, &mut hessian)?;
            if let Some(bound) = self.lower_bound(&x, &point, &newton, mu) {
                best_bound = best_bound.max(bound.min(cost));
            }
            let goal = options.relative_gap * cost.abs() + 8.0 * rounding;
            let converged = cost - best_bound <= goal;
            if converged || steps >= options.max_steps || stalled > 3 || !watch(&x, cost) {
                return Ok(Solution { x, cost, lower_bound: best_bound, steps, converged });
            }
            steps += 1;
            let slope = gradient.dot(&newton);
            let current = self.barrier_cost(&x, &point, mu);
            let mut step = self.longest_step(&x, &point, &newton);
            let mut moved = false;
            for _ in 0..40 {
                let next = &x + &newton * step;
                if let Some(p) = self.point(&next) {
                    let value = self.barrier_cost(&next, &p, mu);
                    // Near the optimum the decrease drowns in rounding: accept a full step inside the Dikin ball.
                    if value <= current + 1e-4 * step * slope || (decrement < CENTRAL && step == 1.0) {
                        x = next;
                        point = p;
                        moved = true;
                        break;
                    }
                }
                step *= 0.5;
            }
            stalled = if moved { 0 } else { stalled + 1 };
            if decrement < CENTRAL || !moved {
                mu *= SHRINK;
            }
        }
    }

    fn point(&self, x: &DVector<f64>) -> Option<Point> {
        if self.nonnegative.iter().any(|&j| !(x[j] > 0.0 && x[j].is_finite())) {
            return None;
        }
        let mut inverse = Vec::with_capacity(self.cones.len());
        let mut log_det = Vec::with_capacity(self.cones.len());
        for cone in &self.cones {
            let factor = cone.matrix(x).cholesky()?;
            log_det.push(2.0 * factor.l_dirty().diagonal().iter().map(|d| d.ln()).sum::<f64>());
            inverse.push(factor.inverse());
        }
        Some(Point { inverse, log_det })
    }

    fn quadratic(&self, x: &DVector<f64>) -> f64 {
        self.constant + x.dot(&(&self.gram * x * 0.5 - &self.rhs))
    }

    fn cost(&self, x: &DVector<f64>, point: &Point) -> f64 {
        let prior: f64 = self
            .cones
            .iter()
            .zip(&point.log_det)
            .filter(|(c, _)| c.prior_weight > 0.0)
            .map(|(c, log_det)| c.prior_weight * (c.prior.dot(&c.matrix(x)) - log_det))
            .sum();
        self.quadratic(x) + prior
    }

    fn barrier_cost(&self, x: &DVector<f64>, point: &Point, mu: f64) -> f64 {
        let barrier =
            point.log_det.iter().sum::<f64>() + self.nonnegative.iter().map(|&j| x[j].ln()).sum::<f64>();
        self.cost(x, point) - mu * barrier
    }

    /// Gradient of the barrier cost, Newton step and its decrement relative to μ.
    fn newton(
        &self,
        x: &DVector<f64>,
        point: &Point,
        mu: f64,
        hessian: &mut DMatrix<f64>,
    ) -> Result<(DVector<f64>, DVector<f64>, f64)> {
        hessian.copy_from(&self.gram);
        let mut gradient = &self.gram * x - &self.rhs;
        for (cone, inverse) in self.cones.iter().zip(&point.inverse) {
            let weight = cone.prior_weight + mu;
            let slope = cone.adjoint(&(cone.prior * cone.prior_weight - inverse * weight));
            let mut part = gradient.fixed_rows_mut::<10>(cone.offset);
            part += slope;
            // ∂²(−log det P) = tr(P⁻¹ Eᵢ P⁻¹ Eⱼ).
            let mut block = SMatrix::<f64, 10, 10>::zeros();
            for i in 0..10 {
                let column = cone.adjoint(&(inverse * cone.basis[i] * inverse));
                block.set_column(i, &(column * weight));
            }
            let mut view = hessian.view_mut((cone.offset, cone.offset), (10, 10));
            view += block;
        }
        for &j in &self.nonnegative {
            gradient[j] -= mu / x[j];
            hessian[(j, j)] += mu / (x[j] * x[j]);
        }
        let newton = -solve_regularised(hessian, &gradient)?;
        let decrement = (-gradient.dot(&newton)).max(0.0).sqrt() / mu.sqrt();
        Ok((gradient, newton, decrement))
    }

    /// The largest step (at most one) that keeps a distance to the boundary.
    fn longest_step(&self, x: &DVector<f64>, point: &Point, newton: &DVector<f64>) -> f64 {
        let mut most = f64::INFINITY;
        for &j in &self.nonnegative {
            if newton[j] < 0.0 {
                most = most.min(-x[j] / newton[j]);
            }
        }
        for (cone, inverse) in self.cones.iter().zip(&point.inverse) {
            // P + s ΔP stays positive for s < 1/‖P⁻¹ΔP‖; the Frobenius norm of the symmetric form bounds it.
            let m = inverse * cone.matrix(newton);
            let norm = (m * m).trace().max(0.0).sqrt();
            if norm > 0.0 {
                // The bound is loose by up to a factor of two (four eigenvalues); the line search halves if needed.
                most = most.min(2.0 / norm);
            }
        }
        (TO_BOUNDARY * most).min(1.0)
    }

    fn lower_bound(&self, x: &DVector<f64>, point: &Point, newton: &DVector<f64>, mu: f64) -> Option<f64> {
        let at = x + newton;
        let mut bound = self.quadratic(&at);
        for (cone, inverse) in self.cones.iter().zip(&point.inverse) {
            let weight = cone.prior_weight + mu;
            let p_inverse = inverse - inverse * cone.matrix(newton) * inverse;
            let factor = p_inverse.cholesky()?;
            let matrix = cone.matrix(&at);
            bound -= weight * p_inverse.dot(&matrix);
            if cone.prior_weight > 0.0 {
                // −w log det P̄ = w log det P̄⁻¹, and the tangent's constant 4w.
                let log_det_inverse = 2.0 * factor.l_dirty().diagonal().iter().map(|d| d.ln()).sum::<f64>();
                bound += cone.prior_weight * (cone.prior.dot(&matrix) + log_det_inverse + 4.0);
            }
        }
        for &j in &self.nonnegative {
            let z = mu * (1.0 - newton[j] / x[j]) / x[j];
            if z < 0.0 {
                return None;
            }
            bound -= z * at[j];
        }
        bound.is_finite().then_some(bound)
    }
}

/// Solves with the Hessian; where rounding has made it indefinite, adds the least multiple of its diagonal that helps.
fn solve_regularised(hessian: &mut DMatrix<f64>, gradient: &DVector<f64>) -> Result<DVector<f64>> {
    // Columns differ in scale by many orders (mass against inertia, near and far from the boundary): equilibrate.
    let scale: DVector<f64> = hessian.diagonal().map(|d| if d > 0.0 { d.sqrt().recip() } else { 1.0 });
    for j in 0..hessian.ncols() {
        for i in 0..hessian.nrows() {
            hessian[(i, j)] *= scale[i] * scale[j];
        }
    }
    let scaled = gradient.component_mul(&scale);
    let mut shift = 0.0;
    for _ in 0..12 {
        if let Ok(factor) = Cholesky::new(hessian) {
            return Ok(factor.solve(&scaled)?.component_mul(&scale));
        }
        let next = if shift == 0.0 { 1e-15 } else { shift * 10.0 };
        for i in 0..hessian.nrows() {
            hessian[(i, i)] += next - shift;
        }
        shift = next;
    }
    Err(Error::Numeric("the optimisation's Hessian is not positive definite".into()))
}
