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
use crate::linalg::Triangle;
use crate::{Error, Result};

/// Requested gap, relative to the minimum.
const RELATIVE_GAP: f64 = 1e-9;

/// Requested gap, relative to the width of the feasible set along the cost, if the minimum is close to zero.
const GAP_AT_ZERO: f64 = 1e-14;

/// Factor of the weight of the cost from one central point to the next.
const GROWTH: f64 = 8.0;

/// Newton decrement up to which a point counts as central.
const CENTRED: f64 = 1e-3;

/// Largest number of Newton steps.
const MOST_STEPS: usize = 600;

/// Number of successive steps without a smaller decrement after which rounding errors prevent progress.
const MOST_UNCHANGED: usize = 20;

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
    /// Triangular factor `R` of the Hessian `RᵀR`.
    root: Triangle,
}

impl Slope {
    /// Solves `RᵀR x = b`. Returns `R⁻ᵀ b` and `x`, or `None` if the factor is singular.
    fn solve(&self, b: &DVector<f64>) -> Option<(DVector<f64>, DVector<f64>)> {
        let (n, mut half) = (b.len(), b.clone());
        for i in 0..n {
            let row = self.root.row(i);
            half[i] /= row[i];
            for j in i + 1..n {
                half[j] -= row[j] * half[i];
            }
        }
        let mut x = half.clone();
        for i in (0..n).rev() {
            let row = self.root.row(i);
            let known: f64 = (i + 1..n).map(|j| row[j] * x[j]).sum();
            x[i] = (x[i] - known) / row[i];
        }
        x.iter().all(|v| v.is_finite()).then_some((half, x))
    }
}

/// Rows whose Gram matrix is a Hessian, column by column.
struct RootRows {
    entries: Vec<f64>,
    count: usize,
}

impl RootRows {
    /// Reserves `count` rows of `width` columns.
    fn zeros(count: usize, width: usize) -> Self {
        Self { entries: vec![0.0; count * width], count }
    }

    /// Adds to an entry. Constraints may name a variable twice.
    fn add(&mut self, row: usize, column: usize, value: f64) {
        self.entries[column * self.count + row] += value;
    }
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
    ///
    /// The Hessian is a sum of squares. Its factor comes from the rows by reflections: near the boundary the Hessian has
    /// condition numbers up to 1e18, which its own factorization would not survive.
    fn slope(&self, x: &DVector<f64>) -> Option<Slope> {
        let n = self.len();
        let norm_rows: usize = self.norms.iter().map(|b| b.rows.nrows() + 2).sum();
        let count = 16 * self.semidefinite.len() + norm_rows + self.inequalities.len();
        let mut rows = RootRows::zeros(count, n);
        let mut gradient = DVector::zeros(n);
        let mut next = 0;
        for constraint in &self.semidefinite {
            // With M = L Lᵀ the second derivative of −log det is the product of the matrices L⁻¹ Mᵢ L⁻ᵀ.
            let inverse = constraint.at(x).cholesky()?.l().try_inverse()?;
            for (i, m) in &constraint.terms {
                let scaled = inverse * m * inverse.transpose();
                gradient[*i] -= scaled.trace();
                for (k, &value) in scaled.iter().enumerate() {
                    rows.add(next + k, *i, value);
                }
            }
            next += 16;
        }
        for bound in &self.norms {
            let inner = &bound.rows * x - &bound.target;
            let right = bound.slope.dot(x) + bound.radius;
            let length = inner.norm();
            let gap = (right - length) * (right + length);
            if right <= 0.0 || gap <= 0.0 {
                return None;
            }
            // With the direction u of the residual and its length ρ, the barrier is −log(h − ρ) − log(h + ρ) along u
            // (h: right-hand side), and has the curvature 2/gap across it.
            let direction = if length > 0.0 { inner / length } else { inner };
            let along = bound.rows.tr_mul(&direction);
            let root = (2.0 / gap).sqrt();
            for j in 0..n {
                for k in 0..direction.len() {
                    rows.add(next + k, j, root * (bound.rows[(k, j)] - direction[k] * along[j]));
                }
                let (near, far) = (bound.slope[j] - along[j], bound.slope[j] + along[j]);
                let (near, far) = (near / (right - length), far / (right + length));
                gradient[j] -= near + far;
                rows.add(next + direction.len(), j, near);
                rows.add(next + direction.len() + 1, j, far);
            }
            next += direction.len() + 2;
        }
        for constraint in &self.inequalities {
            let slack = constraint.slack(x);
            if slack <= 0.0 {
                return None;
            }
            for &(i, a) in &constraint.coefficients {
                gradient[i] -= a / slack;
                rows.add(next, i, a / slack);
            }
            next += 1;
        }
        let mut root = Triangle::new(n);
        root.add_rows(&mut rows.entries, count).ok()?;
        Some(Slope { gradient, root })
    }

    /// Moves a strictly feasible point towards the minimum of the barrier, a good start for every cost.
    pub fn centred(&self, start: &DVector<f64>) -> DVector<f64> {
        let mut x = start.clone();
        for _ in 0..MOST_STEPS {
            let Some((step, decrement)) = self.step(&x, 0.0) else { break };
            if decrement < 0.25 {
                break;
            }
            let next = &x + step * (1.0 / (1.0 + decrement));
            if !self.is_inside(&next) || next == x {
                break;
            }
            x = next;
        }
        x
    }

    /// Minimizes the cost from a strictly feasible point.
    pub fn minimize(&self, start: &DVector<f64>) -> Result<Minimum> {
        self.minimize_until(start, |_| false)
    }

    /// Minimizes the cost until convergence, or until `enough` holds at a central point.
    fn minimize_until(&self, start: &DVector<f64>, enough: impl Fn(&Minimum) -> bool) -> Result<Minimum> {
        let outside = || Error::Numeric("the start of the minimization is not strictly feasible".into());
        let first = self.slope(start).ok_or_else(outside)?;
        let singular = || Error::Numeric("the feasible set of the minimization is not bounded".into());
        let along = first.solve(&self.cost).ok_or_else(singular)?.0.norm();
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
        let root = self.parameter().sqrt();
        let mut weight = along.recip();
        let mut x = start.clone();
        let (mut before, mut unchanged) = (f64::INFINITY, 0);
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
            if best.value - best.lower_bound <= (RELATIVE_GAP * best.value.abs()).max(GAP_AT_ZERO * along) {
                best.status = SolverStatus::Converged;
                break;
            }
            // Close to a central point the decrement is squared by each step, unless it consists of rounding errors.
            let at_rounding = before < 0.25 && decrement < 0.25 && decrement > 0.5 * before;
            unchanged = if decrement < before { 0 } else { unchanged + 1 };
            before = decrement;
            if unchanged > MOST_UNCHANGED {
                best.status = SolverStatus::Stalled;
                break;
            }
            if decrement <= CENTRED || at_rounding {
                if enough(&best) {
                    best.status = SolverStatus::Stopped;
                    break;
                }
                weight *= GROWTH;
                before = f64::INFINITY;
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

    /// Computes the Newton step of `weight · c·x + φ` and its decrement; `None` if the Hessian is singular due to rounding.
    fn step(&self, x: &DVector<f64>, weight: f64) -> Option<(DVector<f64>, f64)> {
        let slope = self.slope(x)?;
        let (half, step) = slope.solve(&(&slope.gradient + &self.cost * weight))?;
        Some((-step, half.norm()))
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
        Err(Error::Numeric("no strictly feasible point was found: relax the constraints".into()))
    }
}
