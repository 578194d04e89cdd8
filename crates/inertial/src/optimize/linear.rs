//! Linear cost over positive semidefinite, norm and linear constraints: barrier method with a proven lower bound.
//!
//! Minimizes `c · x` subject to `Mₖ(x) ⪰ 0` (4×4, affine), `‖F x − f‖ ≤ g · x + h` and `aᵢ · x ≥ βᵢ`.
//!
//! **Certificate.** The barrier `φ = −Σ log det M − Σ log((g·x + h)² − ‖F x − f‖²) − Σ log(a·x − β)` is self-concordant with
//! parameter `ν` (the sizes of the matrices, two for each norm, one for each inequality). If the Newton decrement of `t c · x + φ`
//! is `λ < 1`, no feasible point has a cost below `c · x − (ν + λ (λ + √ν)/(1 − λ))/t` (Nesterov, *Lectures on Convex
//! Optimization*, theorem 5.3.10). The bound does not depend on the correctness of the solver: any feasible `x` with its `λ`
//! proves it.

use nalgebra::{DMatrix, DVector, Matrix4};

use super::conic::Inequality;
use super::status::SolverStatus;
use crate::linalg::Cholesky;
use crate::{Error, Result};

/// Requested gap, relative to the width of the feasible set along the cost.
const RELATIVE_GAP: f64 = 1e-9;

/// Factor of the weight of the cost from one central point to the next.
const GROWTH: f64 = 8.0;

/// Newton decrement up to which a point counts as central.
const CENTRED: f64 = 1e-3;

/// Largest number of Newton steps.
const MOST_STEPS: usize = 600;

/// Relaxation of all constraints, relative to their sizes, below which a point counts as strictly feasible.
const STRICTLY: f64 = -1e-9;

/// Constraint that an affine symmetric matrix is positive semidefinite.
#[derive(Debug, Clone)]
pub struct Semidefinite {
    /// Matrix at zero.
    pub constant: Matrix4<f64>,
    /// Variables with their matrices.
    pub terms: Vec<(usize, Matrix4<f64>)>,
}

impl Semidefinite {
    /// Creates the pseudo-inertia of ten consecutive variables.
    pub fn body(offset: usize) -> Self {
        let unit = |k: usize| {
            super::pseudo::matrix(&std::array::from_fn::<f64, 10, _>(|i| f64::from(u8::from(i == k))))
        };
        Self { constant: Matrix4::zeros(), terms: (0..10).map(|k| (offset + k, unit(k))).collect() }
    }

    fn at(&self, x: &DVector<f64>) -> Matrix4<f64> {
        self.terms.iter().fold(self.constant, |sum, (i, m)| sum + m * x[*i])
    }
}

/// Norm constraint `‖rows x − target‖ ≤ slope · x + radius`.
#[derive(Debug, Clone)]
pub struct NormBound {
    /// Matrix of the norm.
    pub rows: DMatrix<f64>,
    /// Vector that is subtracted.
    pub target: DVector<f64>,
    /// Coefficients of the right-hand side.
    pub slope: DVector<f64>,
    /// Constant of the right-hand side.
    pub radius: f64,
}

/// Problem with a linear cost and conic constraints.
#[derive(Debug, Clone)]
pub struct LinearConic {
    /// Coefficients of the cost.
    pub cost: DVector<f64>,
    /// Matrices that must be positive semidefinite.
    pub semidefinite: Vec<Semidefinite>,
    /// Norm constraints.
    pub norms: Vec<NormBound>,
    /// Linear constraints.
    pub inequalities: Vec<Inequality>,
}

/// Minimum with its optimality certificate.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Minimum {
    /// Variables, strictly feasible.
    pub x: DVector<f64>,
    /// Cost at `x`.
    pub value: f64,
    /// Proven lower bound of the cost over all feasible points.
    pub lower_bound: f64,
    /// Number of Newton steps.
    pub steps: usize,
    /// Reason why the solver stopped.
    pub status: SolverStatus,
}

/// Gradient and Hessian of the barrier.
struct Slope {
    gradient: DVector<f64>,
    hessian: DMatrix<f64>,
}

impl LinearConic {
    /// Returns the number of variables.
    fn len(&self) -> usize {
        self.cost.len()
    }

    /// Returns the parameter of the barrier.
    fn parameter(&self) -> f64 {
        (4 * self.semidefinite.len() + 2 * self.norms.len() + self.inequalities.len()) as f64
    }

    /// Returns whether a point is strictly feasible.
    fn is_inside(&self, x: &DVector<f64>) -> bool {
        self.semidefinite.iter().all(|m| m.at(x).cholesky().is_some())
            && self.inequalities.iter().all(|i| i.slack(x) > 0.0)
            && self.norms.iter().all(|n| n.slope.dot(x) + n.radius > (&n.rows * x - &n.target).norm())
    }

    /// Computes the derivatives of the barrier; `None` outside of the feasible set.
    fn slope(&self, x: &DVector<f64>) -> Option<Slope> {
        let n = self.len();
        let mut out = Slope { gradient: DVector::zeros(n), hessian: DMatrix::zeros(n, n) };
        for constraint in &self.semidefinite {
            let inverse = constraint.at(x).cholesky()?.inverse();
            let products: Vec<_> = constraint.terms.iter().map(|(i, m)| (*i, inverse * m)).collect();
            for (i, a) in &products {
                out.gradient[*i] -= a.trace();
                for (j, b) in &products {
                    out.hessian[(*i, *j)] += a.transpose().dot(b);
                }
            }
        }
        for bound in &self.norms {
            let inner = &bound.rows * x - &bound.target;
            let right = bound.slope.dot(x) + bound.radius;
            let gap = (right - inner.norm()) * (right + inner.norm());
            if right <= 0.0 || gap <= 0.0 {
                return None;
            }
            let direction = (&bound.slope * right - bound.rows.tr_mul(&inner)) * (2.0 / gap);
            out.gradient -= &direction;
            out.hessian.ger(1.0, &direction, &direction, 1.0);
            out.hessian.ger(-2.0 / gap, &bound.slope, &bound.slope, 1.0);
            out.hessian.gemm_tr(2.0 / gap, &bound.rows, &bound.rows, 1.0);
        }
        for constraint in &self.inequalities {
            let slack = constraint.slack(x);
            if slack <= 0.0 {
                return None;
            }
            for &(i, a) in &constraint.coefficients {
                out.gradient[i] -= a / slack;
                for &(j, b) in &constraint.coefficients {
                    out.hessian[(i, j)] += a / slack * (b / slack);
                }
            }
        }
        Some(out)
    }

    /// Minimizes the cost from a strictly feasible point.
    pub fn minimize(&self, start: &DVector<f64>) -> Result<Minimum> {
        self.minimize_until(start, |_| false)
    }

    /// Minimizes the cost until convergence, or until `enough` holds at a central point.
    fn minimize_until(&self, start: &DVector<f64>, enough: impl Fn(&Minimum) -> bool) -> Result<Minimum> {
        let outside = || Error::Numeric("the start of the minimization is not strictly feasible".into());
        let first = self.slope(start).ok_or_else(outside)?;
        let along = Cholesky::new(&first.hessian)?.solve(&self.cost)?.dot(&self.cost).sqrt();
        let mut best = Minimum {
            x: start.clone(),
            value: self.cost.dot(start),
            lower_bound: f64::NEG_INFINITY,
            steps: 0,
            status: SolverStatus::StepLimit,
        };
        if along == 0.0 {
            best.lower_bound = best.value;
            best.status = SolverStatus::Converged;
            return Ok(best);
        }
        let (root, goal) = (self.parameter().sqrt(), RELATIVE_GAP * along);
        let mut weight = along.recip();
        let mut x = start.clone();
        while best.steps < MOST_STEPS {
            best.steps += 1;
            let Some((step, decrement)) = self.step(&x, weight) else {
                best.status = SolverStatus::Stalled;
                break;
            };
            let value = self.cost.dot(&x);
            if decrement < 0.5 {
                let loss = decrement * (decrement + root) / (1.0 - decrement);
                let bound = value - (self.parameter() + loss) / weight;
                if bound > best.lower_bound {
                    (best.lower_bound, best.value) = (bound, value);
                    best.x.copy_from(&x);
                }
            }
            if best.value - best.lower_bound <= goal {
                best.status = SolverStatus::Converged;
                break;
            }
            if decrement <= CENTRED {
                if enough(&best) {
                    best.status = SolverStatus::Stopped;
                    break;
                }
                weight *= GROWTH;
                continue;
            }
            let mut length = if decrement < 0.25 { 1.0 } else { 1.0 / (1.0 + decrement) };
            let mut next = &x + &step * length;
            while !self.is_inside(&next) && length > 1e-6 {
                length *= 0.5;
                next = &x + &step * length;
            }
            if length <= 1e-6 || next == x {
                best.status = SolverStatus::Stalled;
                break;
            }
            x = next;
        }
        Ok(best)
    }

    /// Computes the Newton step of `weight · c·x + φ` and its decrement; `None` if the Hessian is not positive definite due to
    /// rounding.
    fn step(&self, x: &DVector<f64>, weight: f64) -> Option<(DVector<f64>, f64)> {
        let Slope { gradient, hessian } = self.slope(x)?;
        let gradient = gradient + &self.cost * weight;
        let step = -Cholesky::new(&hessian).ok()?.solve(&gradient).ok()?;
        let decrement = -step.dot(&gradient);
        (decrement >= 0.0).then(|| (step, decrement.sqrt()))
    }

    /// Finds a strictly feasible point near `start`; `None` if it is proven that there is none.
    ///
    /// All constraints are relaxed by one variable, in units of their size, which is minimized.
    pub fn feasible(&self, start: &DVector<f64>) -> Result<Option<DVector<f64>>> {
        if self.is_inside(start) {
            return Ok(Some(start.clone()));
        }
        let n = self.len();
        let mut relaxed = self.clone();
        relaxed.cost = DVector::zeros(n + 1);
        relaxed.cost[n] = 1.0;
        let positive = |x: f64| if x > 0.0 { x } else { 1.0 };
        for m in &mut relaxed.semidefinite {
            let size = positive(m.at(start).amax());
            m.terms.push((n, Matrix4::identity() * size));
        }
        for bound in &mut relaxed.norms {
            let inner = (&bound.rows * start - &bound.target).norm();
            let size = positive(inner.max((bound.slope.dot(start) + bound.radius).abs()));
            bound.rows = std::mem::replace(&mut bound.rows, DMatrix::zeros(0, 0)).insert_column(n, 0.0);
            bound.slope = bound.slope.clone().push(size);
        }
        for inequality in &mut relaxed.inequalities {
            let size = positive(inequality.slack(start).abs().max(inequality.least.abs()));
            inequality.coefficients.push((n, size));
        }
        relaxed.inequalities.push(Inequality { coefficients: vec![(n, 1.0)], least: -1.0 });
        // Matrices of size one have eigenvalues above -4.
        let start = start.clone().push(5.0);
        let found = relaxed.minimize_until(&start, |m| m.value < STRICTLY.min(-0.01))?;
        if found.value < STRICTLY {
            return Ok(Some(found.x.rows(0, n).into_owned()));
        }
        if found.lower_bound > STRICTLY {
            return Ok(None);
        }
        Err(Error::Numeric("the constraints can hardly be met: no strictly feasible point was found".into()))
    }
}
