//! Least squares over the cones of consistent bodies: problem, cost and optimality bounds.
//!
//! Minimizes `½‖A x − b‖² + Σₖ wₖ (tr(Cₖ Pₖ(x)) − log det Pₖ(x))` subject to `Pₖ(x) ⪰ 0`, `xⱼ ≥ 0` and `aᵢ · x ≥ βᵢ`, where each
//! `Pₖ` is the pseudo-inertia of ten consecutive variables ([`super::pseudo`]). [`super::barrier`] solves it in `x`,
//! [`super::chart`] in coordinates in which all points are feasible.
//!
//! **Certificate.** For any `P̄ ≻ 0`, `S ⪰ 0` and `z ≥ 0` the function
//! `½‖A x − b‖² + Σ w (tr(C P) − log det P̄ + 4 − tr(P̄⁻¹ P)) − tr(S P) − z · x` is below the cost for all feasible `x`, because
//! `−log det` is above its tangents. It is quadratic: its minimum over all `x` is a lower bound of the optimum.

use std::time::{Duration, Instant};

use nalgebra::{Cholesky, Const, DMatrix, DVector, Matrix4};

use super::pseudo;
use super::rows::FactoredRows;
use super::status::SolverStatus;
use crate::linalg::product;
use crate::{Error, Result};

/// Cone constraint: pseudo-inertia of ten consecutive variables.
#[derive(Debug, Clone)]
pub struct Cone {
    /// Index of the first of the ten variables.
    pub offset: usize,
    /// Weight `w` of the prior `w (tr(C P) − log det P)`; zero without a prior.
    pub prior_weight: f64,
    /// Matrix `C` of the prior (the inverse of the optimal matrix of the prior alone).
    pub prior: Matrix4<f64>,
}

impl Cone {
    /// Creates a cone without a prior.
    pub fn new(offset: usize) -> Self {
        Self { offset, prior_weight: 0.0, prior: Matrix4::zeros() }
    }

    /// Returns the ten variables of the cone.
    pub(super) fn part<'x>(&self, x: &'x DVector<f64>) -> &'x [f64] {
        &x.as_slice()[self.offset..self.offset + 10]
    }

    /// Returns the matrix at the variables `x`.
    pub fn matrix(&self, x: &DVector<f64>) -> Matrix4<f64> {
        pseudo::matrix(self.part(x))
    }
}

/// Linear inequality `Σ coefficient · variable ≥ least`.
#[derive(Debug, Clone, PartialEq)]
pub struct Inequality {
    /// Variables and their coefficients.
    pub coefficients: Vec<(usize, f64)>,
    /// Right-hand side.
    pub least: f64,
}

impl Inequality {
    /// Returns the linear form at `x`, without the right-hand side.
    pub(super) fn form(&self, x: &DVector<f64>) -> f64 {
        self.coefficients.iter().map(|&(j, a)| a * x[j]).sum()
    }

    /// Returns the slack at `x`; negative if the constraint is violated.
    pub fn slack(&self, x: &DVector<f64>) -> f64 {
        self.form(x) - self.least
    }
}

/// Problem with the data reduced to `AᵀA`, `Aᵀb` and `½bᵀb`, and in factored form if available.
#[derive(Debug, Clone)]
pub struct ConicLeastSquares {
    /// Gram matrix `AᵀA`.
    pub gram: DMatrix<f64>,
    /// Right-hand side `Aᵀb`.
    pub rhs: DVector<f64>,
    /// Constant `½bᵀb`.
    pub constant: f64,
    /// Data in factored form ([`Self::of_rows`]), from which cost and gradient are then computed.
    pub rows: Option<FactoredRows>,
    /// Cones; their variables must not overlap.
    pub cones: Vec<Cone>,
    /// Nonnegative variables; none of them in a cone.
    pub nonnegative: Vec<usize>,
    /// Further linear constraints (supported by [`super::barrier`] only).
    pub inequalities: Vec<Inequality>,
}

/// Stopping criteria.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Options {
    /// Gap between cost and lower bound, relative to the cost (plus the rounding error of the cost).
    pub relative_gap: f64,
    /// Largest number of steps.
    pub max_steps: usize,
    /// Time limit, after which the solver returns its best point so far; without a limit, the clock is not read.
    pub time_limit: Option<Duration>,
}

crate::with_changes!(Options);

impl Default for Options {
    fn default() -> Self {
        Self { relative_gap: 1e-9, max_steps: 400, time_limit: None }
    }
}

impl Options {
    /// Starts the clock; the returned function checks whether time is left.
    pub fn start(&self) -> impl Fn() -> bool + use<> {
        let clock = self.time_limit.map(|limit| (Instant::now(), limit));
        move || clock.is_none_or(|(start, limit)| start.elapsed() < limit)
    }
}

/// Solution with its optimality certificate.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Solution {
    /// Variables, feasible.
    pub x: DVector<f64>,
    /// Cost at `x`.
    pub cost: f64,
    /// Proven lower bound of the cost of any feasible point; −∞ without a certificate.
    pub lower_bound: f64,
    /// Number of steps.
    pub steps: usize,
    /// Reason why the solver stopped; [`SolverStatus::Converged`] if the requested gap was reached.
    pub status: SolverStatus,
}

impl Solution {
    /// Returns the duality gap.
    pub fn gap(&self) -> f64 {
        self.cost - self.lower_bound
    }

    /// Adopts a bound if it is better, and updates the status. If the cost is below its bound by more than the goal, rounding has
    /// invalidated the bound, and there is no certificate.
    pub(super) fn certify(&mut self, bound: Option<f64>, goal: f64) {
        let best = bound.map_or(self.lower_bound, |b| b.max(self.lower_bound));
        self.lower_bound = if self.cost >= best - goal { best.min(self.cost) } else { f64::NEG_INFINITY };
        self.status = match self.status {
            _ if self.gap() <= goal => SolverStatus::Converged,
            SolverStatus::Converged => SolverStatus::Stalled,
            other => other,
        };
    }
}

impl ConicLeastSquares {
    /// Creates the problem of one body, `½‖A π − b‖²` over `P(π) ⪰ 0`, from `AᵀA`, `Aᵀb` and `½bᵀb`.
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
    /// assert!(found.status.is_converged() && found.gap() < 1e-8);
    /// # Ok::<(), inertial::Error>(())
    /// ```
    pub fn body(gram: DMatrix<f64>, rhs: DVector<f64>, constant: f64) -> Self {
        let (nonnegative, inequalities) = (Vec::new(), Vec::new());
        Self { gram, rhs, constant, rows: None, cones: vec![Cone::new(0)], nonnegative, inequalities }
    }

    /// Creates the problem `½‖R K x − b‖²` without constraints, in factored form. Directions in the null space of `K` are then
    /// determined by the priors alone, for any weight of the data, and bodies with a prior are accurate to rounding.
    pub fn of_rows(factor: DMatrix<f64>, map: DMatrix<f64>, right: DVector<f64>) -> Self {
        let a = product(&factor, &map);
        Self {
            gram: product(&a.transpose(), &a),
            rhs: a.tr_mul(&right),
            constant: 0.5 * right.norm_squared(),
            rows: Some(FactoredRows::new(factor, map, right)),
            cones: Vec::new(),
            nonnegative: Vec::new(),
            inequalities: Vec::new(),
        }
    }

    /// Returns the number of variables.
    pub fn len(&self) -> usize {
        self.rhs.len()
    }

    /// Returns whether there are no variables.
    pub fn is_empty(&self) -> bool {
        self.rhs.is_empty()
    }

    /// Adds `½ strength (x_j − value)²` to the cost.
    pub fn add_penalty(&mut self, j: usize, value: f64, strength: f64) {
        let root = DMatrix::from_element(1, 1, strength.sqrt());
        self.add_quadratic(j, root, DVector::from_element(1, value));
    }

    /// Adds `½ w ‖L⁻¹ (P − P₀) L⁻ᵀ‖²` for the body at `offset`, `P₀ = L Lᵀ`: the second-order term of the entropic prior at `P₀`.
    pub fn add_body_prior(&mut self, offset: usize, body: &Cholesky<f64, Const<4>>, weight: f64) {
        let l = body.l();
        let value = pseudo::parameters(&(l * l.transpose()));
        let root = pseudo::relative(body) * weight.sqrt();
        let value = DVector::from_column_slice(value.as_slice());
        self.add_quadratic(offset, DMatrix::from_column_slice(10, 10, root.as_slice()), value);
    }

    /// Adds `½‖root (x − value)‖²` for the variables starting at `offset`.
    fn add_quadratic(&mut self, offset: usize, root: DMatrix<f64>, value: DVector<f64>) {
        let (size, metric) = (value.len(), root.tr_mul(&root));
        let slope = &metric * &value;
        let mut block = self.gram.view_mut((offset, offset), (size, size));
        block += metric;
        let mut part = self.rhs.rows_mut(offset, size);
        part += &slope;
        self.constant += 0.5 * value.dot(&slope);
        if let Some(rows) = &mut self.rows {
            rows.pull(offset, root, value);
        }
    }

    pub(super) fn expect_size(&self, x: &DVector<f64>) -> Result<()> {
        let (expected, found) = (self.len(), x.len());
        if expected == found {
            return Ok(());
        }
        Err(Error::Dimension { what: "start of the optimization", expected, found })
    }

    /// Returns the rounding error of a cost. Squared data lose digits relative to `½bᵀb`. In factored form, each residual loses
    /// digits relative to its force, and the cost those of their products.
    pub(super) fn rounding(&self, cost: f64) -> f64 {
        let size = if self.rows.is_some() {
            let priors: f64 = self.cones.iter().map(|c| c.prior_weight).sum();
            cost.abs() + 2.0 * (cost.abs() * self.constant).sqrt() + 4.0 * priors
        } else {
            self.constant.abs()
        };
        f64::EPSILON * size
    }

    /// Returns the requested gap at a cost.
    pub(super) fn goal(&self, cost: f64, options: &Options) -> f64 {
        options.relative_gap * cost.abs() + 8.0 * self.rounding(cost)
    }

    pub(super) fn quadratic(&self, x: &DVector<f64>) -> f64 {
        if let Some(rows) = &self.rows {
            return rows.value(x);
        }
        let mut sum = self.constant;
        for (j, column) in self.gram.column_iter().enumerate() {
            sum += x[j] * (0.5 * column.dot(x) - self.rhs[j]);
        }
        sum
    }

    /// Returns the cost; infinite if a body with a prior is not strictly feasible. Other constraints are not checked.
    pub fn cost(&self, x: &DVector<f64>) -> f64 {
        let mut cost = self.quadratic(x);
        for cone in self.cones.iter().filter(|c| c.prior_weight > 0.0) {
            let matrix = cone.matrix(x);
            let Some(factor) = matrix.cholesky() else { return f64::INFINITY };
            cost += cone.prior_weight * (cone.prior.dot(&matrix) - pseudo::log_det(&factor));
        }
        cost
    }

    /// Computes the gradient of the cost without `−log det`, which is added by some charts only.
    pub(super) fn smooth_gradient(&self, x: &DVector<f64>, out: &mut DVector<f64>) {
        if let Some(rows) = &self.rows {
            rows.gradient(x, out);
        } else {
            out.copy_from(&self.rhs);
            out.gemv(1.0, &self.gram, x, -1.0);
        }
        for cone in self.cones.iter().filter(|c| c.prior_weight > 0.0) {
            let slope = pseudo::adjoint(&cone.prior) * cone.prior_weight;
            let mut part = out.fixed_rows_mut::<10>(cone.offset);
            part += slope;
        }
    }
}
