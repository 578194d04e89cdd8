//! Least squares over the cones of possible bodies: the problem, its cost, and proofs of how good a point is.
//!
//! Minimises `½‖A x − b‖² + Σₖ wₖ (tr(Cₖ Pₖ(x)) − log det Pₖ(x))` subject to `Pₖ(x) ⪰ 0`, `xⱼ ≥ 0` and `aᵢ · x ≥ βᵢ`, where
//! each `Pₖ` is the pseudo-inertia of ten consecutive variables ([`super::pseudo`]). [`super::barrier`] solves it in `x`,
//! [`super::chart`] in coordinates that know no other points than possible ones.
//!
//! **Certificate.** For any `P̄ ≻ 0`, `S ⪰ 0` and `z ≥ 0` the function
//! `½‖A x − b‖² + Σ w (tr(C P) − log det P̄ + 4 − tr(P̄⁻¹ P)) − tr(S P) − z · x` lies below the cost wherever `x` is
//! feasible, because `−log det` lies above its tangents. It is quadratic: its least value, wherever that is taken, is a
//! lower bound of the optimum.

use nalgebra::{DMatrix, DVector, Matrix4};

use super::pseudo::{self, Ten};
use crate::linalg::{Definite, symmetric_eigen};
use crate::{Error, Result};

/// Eigenvalues of a pseudo-inertia below this part of its trace are zero, for the certificate.
const ZERO: f64 = 1e-12;

/// A pseudo-inertia of ten consecutive variables.
#[derive(Debug, Clone)]
pub struct Cone {
    /// The first of its ten variables.
    pub offset: usize,
    /// Weight `w` of the prior `w (tr(C P) − log det P)`; zero for none.
    pub prior_weight: f64,
    /// The prior's matrix `C` (the inverse of the matrix that the prior alone would give).
    pub prior: Matrix4<f64>,
}

impl Cone {
    /// Without prior.
    pub fn new(offset: usize) -> Self {
        Self { offset, prior_weight: 0.0, prior: Matrix4::zeros() }
    }

    /// Its part of the variables.
    pub(super) fn part<'x>(&self, x: &'x DVector<f64>) -> &'x [f64] {
        &x.as_slice()[self.offset..self.offset + 10]
    }

    /// The matrix at the variables `x`.
    pub fn matrix(&self, x: &DVector<f64>) -> Matrix4<f64> {
        pseudo::matrix(self.part(x))
    }
}

/// `Σ coefficient · variable ≥ least`.
#[derive(Debug, Clone, PartialEq)]
pub struct Inequality {
    /// Variables and their coefficients.
    pub coefficients: Vec<(usize, f64)>,
    /// The right side.
    pub least: f64,
}

impl Inequality {
    /// The linear form at `x`, without the right side.
    pub(super) fn form(&self, x: &DVector<f64>) -> f64 {
        self.coefficients.iter().map(|&(j, a)| a * x[j]).sum()
    }

    /// How far `x` is inside; negative outside.
    pub fn slack(&self, x: &DVector<f64>) -> f64 {
        self.form(x) - self.least
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
    /// Further linear constraints (only [`super::barrier`] takes them).
    pub inequalities: Vec<Inequality>,
}

/// When to stop.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// Gap between cost and lower bound, relative to the cost (plus a rounding unit of `bᵀb`).
    pub relative_gap: f64,
    /// Most steps.
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
    /// The variables, feasible.
    pub x: DVector<f64>,
    /// Cost at `x`.
    pub cost: f64,
    /// Proven lower bound of the cost of any feasible point; −∞ where there is no proof.
    pub lower_bound: f64,
    /// Steps taken.
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

impl ConicLeastSquares {
    /// The problem of one body, `½‖A π − b‖²` over `P(π) ⪰ 0`, from `AᵀA`, `Aᵀb` and `½bᵀb`.
    ///
    /// ```
    /// use inertial::optimize::{Options, chart, manifold::Principal, ConicLeastSquares};
    /// use inertial::spatial::{Inertia, PseudoInertia};
    /// use nalgebra::{DMatrix, DVector, Matrix4};
    /// // Data that ask for a negative moment: the best body that exists is a disc.
    /// let wish = Inertia::from_com(1.0, Default::default(), nalgebra::Matrix3::from_diagonal(&nalgebra::vector![1.0, 1.0, 3.0]));
    /// let b = DVector::from_column_slice(wish.parameters().as_slice());
    /// let problem = ConicLeastSquares::body(DMatrix::identity(10, 10), b.clone(), 0.5 * b.norm_squared());
    /// let start = PseudoInertia(Matrix4::identity()).to_inertia().parameters();
    /// let start = DVector::from_column_slice(start.as_slice());
    /// let found = chart::solve::<Principal>(&problem, &start, &Options::default(), |_, _| true)?;
    /// assert!(found.converged && found.gap() < 1e-8);
    /// # Ok::<(), inertial::Error>(())
    /// ```
    pub fn body(gram: DMatrix<f64>, rhs: DVector<f64>, constant: f64) -> Self {
        let (nonnegative, inequalities) = (Vec::new(), Vec::new());
        Self { gram, rhs, constant, cones: vec![Cone::new(0)], nonnegative, inequalities }
    }

    /// Number of variables.
    pub fn len(&self) -> usize {
        self.rhs.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.rhs.is_empty()
    }

    /// Adds `½ strength (x_j − value)²` to the cost.
    pub fn pull(&mut self, j: usize, value: f64, strength: f64) {
        self.gram[(j, j)] += strength;
        self.rhs[j] += strength * value;
        self.constant += 0.5 * strength * value * value;
    }

    /// Adds `½ w ‖P₀^{-½} (P − P₀) P₀^{-½}‖²` for the body at `offset`: the entropic prior's second-order part at `P₀`.
    pub fn pull_body(&mut self, offset: usize, body: &Matrix4<f64>, inverse: &Matrix4<f64>, weight: f64) {
        let metric = pseudo::curvature(inverse) * weight;
        let value = pseudo::parameters(body);
        let slope = metric * value;
        let mut block = self.gram.view_mut((offset, offset), (10, 10));
        block += metric;
        let mut part = self.rhs.rows_mut(offset, 10);
        part += slope;
        self.constant += 0.5 * value.dot(&slope);
    }

    pub(super) fn expect_size(&self, x: &DVector<f64>) -> Result<()> {
        let (expected, found) = (self.len(), x.len());
        if expected == found {
            return Ok(());
        }
        Err(Error::Dimension { what: "start of the optimisation", expected, found })
    }

    /// What rounding leaves uncertain of the cost.
    pub(super) fn rounding(&self) -> f64 {
        f64::EPSILON * self.constant.abs()
    }

    pub(super) fn quadratic(&self, x: &DVector<f64>) -> f64 {
        let mut sum = self.constant;
        for (j, column) in self.gram.column_iter().enumerate() {
            sum += x[j] * (0.5 * column.dot(x) - self.rhs[j]);
        }
        sum
    }

    /// The cost; infinite where a body with a prior is not strictly possible. Feasibility is not asked otherwise.
    pub fn cost(&self, x: &DVector<f64>) -> f64 {
        let mut cost = self.quadratic(x);
        for cone in self.cones.iter().filter(|c| c.prior_weight > 0.0) {
            let matrix = cone.matrix(x);
            let Some(factor) = matrix.cholesky() else { return f64::INFINITY };
            cost += cone.prior_weight * (cone.prior.dot(&matrix) - pseudo::log_det(&factor));
        }
        cost
    }

    /// Gradient of the cost without `−log det`, which only some coordinates like to have here.
    pub(super) fn smooth_gradient(&self, x: &DVector<f64>, out: &mut DVector<f64>) {
        out.copy_from(&self.rhs);
        out.gemv(1.0, &self.gram, x, -1.0);
        for cone in self.cones.iter().filter(|c| c.prior_weight > 0.0) {
            let slope = pseudo::adjoint(&cone.prior) * cone.prior_weight;
            let mut part = out.fixed_rows_mut::<10>(cone.offset);
            part += slope;
        }
    }

    /// A lower bound of the optimum from a dual point at the feasible `x`, tight to second order in what is left to gain
    /// there. `None` where `x` is too far from optimal to give dual values, where the data leave the least value of
    /// the quadratic function undetermined, or with linear inequalities.
    pub fn lower_bound(&self, x: &DVector<f64>) -> Option<f64> {
        if !self.inequalities.is_empty() || x.len() != self.len() {
            return None;
        }
        let mut gradient = DVector::zeros(self.len());
        self.smooth_gradient(x, &mut gradient);
        let mut hessian = self.gram.clone();
        let mut inverses = Vec::with_capacity(self.cones.len());
        for cone in &self.cones {
            let matrix = cone.matrix(x);
            let mut slope: Ten = gradient.fixed_rows::<10>(cone.offset).into_owned();
            if cone.prior_weight > 0.0 {
                let inverse = matrix.cholesky()?.inverse();
                slope -= pseudo::adjoint(&inverse) * cone.prior_weight;
                let mut block = hessian.fixed_view_mut::<10, 10>(cone.offset, cone.offset);
                block += pseudo::curvature(&inverse) * cone.prior_weight;
                inverses.push(inverse);
            } else {
                slope -= pseudo::adjoint(&multiplier(&matrix, &pseudo::adjoint_inverse(&slope))?);
                inverses.push(Matrix4::zeros());
            }
            gradient.fixed_rows_mut::<10>(cone.offset).copy_from(&slope);
        }
        let (step, multipliers) = self.reduced_newton(x, &gradient, &hessian)?;
        // The quadratic function's least value is at x + step: its slope there vanishes by construction.
        let at = x + &step;
        let mut bound = self.quadratic(&at);
        let mut offered = DVector::zeros(self.len());
        self.smooth_gradient(x, &mut offered);
        for (cone, inverse) in self.cones.iter().zip(&inverses) {
            let matrix = cone.matrix(&at);
            if cone.prior_weight > 0.0 {
                let tangent = inverse - inverse * cone.matrix(&step) * inverse;
                let log_det = pseudo::log_det(&tangent.cholesky()?);
                bound += cone.prior_weight * (cone.prior.dot(&matrix) + log_det + 4.0 - tangent.dot(&matrix));
            } else {
                let given: Ten = offered.fixed_rows::<10>(cone.offset).into_owned();
                let kept: Ten = gradient.fixed_rows::<10>(cone.offset).into_owned();
                bound -= pseudo::adjoint_inverse(&(given - kept)).dot(&matrix);
            }
        }
        for (&j, z) in self.nonnegative.iter().zip(&multipliers) {
            bound -= z * at[j];
        }
        bound.is_finite().then_some(bound)
    }

    /// Newton's step with the variables at their bounds held, and the multipliers of the bounds.
    fn reduced_newton(
        &self,
        x: &DVector<f64>,
        gradient: &DVector<f64>,
        hessian: &DMatrix<f64>,
    ) -> Option<(DVector<f64>, Vec<f64>)> {
        // At the bound, or driven there by a step of its own.
        let held = |j: usize| gradient[j] > 0.0 && x[j] * hessian[(j, j)] <= gradient[j];
        let held: Vec<bool> = self.nonnegative.iter().map(|&j| held(j)).collect();
        let mut reduced = hessian.clone();
        let mut step = -gradient;
        for (&j, _) in self.nonnegative.iter().zip(&held).filter(|(_, held)| **held) {
            reduced.row_mut(j).fill(0.0);
            reduced.column_mut(j).fill(0.0);
            reduced[(j, j)] = 1.0;
            step[j] = 0.0;
        }
        let mut system = Definite::new(self.len());
        system.factorise(&reduced, 0.0).ok()?;
        system.solve_in_place(&mut step).ok()?;
        let multiplier = |(&j, &held): (&usize, &bool)| {
            if held { gradient[j] + hessian.row(j).transpose().dot(&step) } else { 0.0 }
        };
        let multipliers: Vec<f64> = self.nonnegative.iter().zip(&held).map(multiplier).collect();
        multipliers.iter().all(|&z| z >= 0.0).then_some((step, multipliers))
    }
}

/// The dual matrix of a body without prior: the positive part of the gradient on the null space of its pseudo-inertia.
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
