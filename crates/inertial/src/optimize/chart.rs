//! Newton method in charts in which every point is a consistent body.
//!
//! It solves the same problem as [`super::barrier`], with each body in a [`Chart`] of ten coordinates, which is renewed at every
//! iterate. Every iterate is a set of consistent bodies and the cost never increases, so a solve may be stopped at any time.
//!
//! The problem is convex in the parameters but not in the coordinates. In addition to the Newton step `(H + λD) ξ = −g` with the
//! exact Hessian and Levenberg–Marquardt damping, three things are needed:
//! - *Bounds.* Coordinates with a closed bound (`m ≥ 0`, `L ≥ 0`, friction `≥ 0`) that a step would violate are fixed at the bound
//!   and the others are solved again, until no bound is violated. Bounds are reached exactly.
//! - *Degenerate points.* Axes of equal moments are not unique: [`Chart::align`] chooses axes for which the gradient is diagonal.
//! - *Stationary points that are not optimal* (a body without mass has no centre of mass to move). The gradient with respect to
//!   the parameters detects them: a step in the parameters leaves the point, and the body gets new coordinates.
//!
//! For a small weight of the prior, `−w log det P` is negligible until close to the boundary. Bodies with a prior therefore start
//! with the larger weight `w + μ`, and μ decreases to zero as the steps gain less. The best iterate so far is kept.
//!
//! The solver stops when the lower bound of the convex problem at the iterate ([`ConicLeastSquares::lower_bound`]) certifies the
//! requested gap. If the coordinates stall before that, the path of [`super::barrier`] continues from there.

use nalgebra::{DMatrix, DVector, Matrix4};

use super::conic::{ConicLeastSquares, Options, Solution};
use super::pseudo::{self, Matrix10, Vector10};
use super::status::SolverStatus;
use crate::linalg::{Definite, symmetric_eigen};
use crate::{Error, Result};

/// Local coordinates of consistent bodies.
pub trait Chart: Clone {
    /// Creates the chart of a pseudo-inertia; negative eigenvalues due to rounding become zero.
    fn new(p: &Matrix4<f64>) -> Result<Self>;
    /// Returns the pseudo-inertia.
    fn matrix(&self) -> Matrix4<f64>;
    /// Returns `log det P`.
    fn log_det(&self) -> f64;
    /// Returns the first derivatives of `log det P` and the diagonal of the second derivatives, which has no other entries.
    fn log_det_derivatives(&self) -> (Vector10, Vector10);
    /// Returns the distance of each coordinate to its lower bound; infinite for free coordinates.
    fn bound_distances(&self) -> Vector10;
    /// Returns whether a coordinate has no effect on the body.
    fn is_idle(&self, _coordinate: usize) -> bool {
        false
    }
    /// Returns the point at the coordinates `z` relative to this one, clipped to the bounds.
    fn retract(&self, z: &Vector10) -> Self;
    /// Returns the derivatives of the ten parameters (rows) with respect to the coordinates.
    fn jacobian(&self) -> Matrix10;
    /// Returns the second derivatives of `tr(S P)` with respect to the coordinates.
    fn trace_hessian(&self, s: &Matrix4<f64>) -> Matrix10;
    /// Returns the chart of the same body that is best suited to the gradient `S`, if there are several.
    #[must_use]
    fn align(&self, _s: &Matrix4<f64>) -> Self {
        self.clone()
    }
}

/// Largest fraction of the distance to a bound that a step may take if `−log det` keeps a coordinate away from it.
const TOWARDS: f64 = 0.9;

/// Damping: initial, smallest and largest value, and its factors after good and bad steps. The smallest value keeps unexcited
/// directions fixed.
const DAMPING: f64 = 1e-3;
const LEAST_DAMPING: f64 = 1e-11;
const MOST_DAMPING: f64 = 1e12;
const RELAX: f64 = 0.1;
const TIGHTEN: f64 = 8.0;

/// Factor of the additional weight of priors, and the gain (relative to that weight and the number of logarithms) below which it
/// decreases.
const SHRINK: f64 = 0.1;
const CENTRAL: f64 = 0.1;

/// Number of steps after which the coordinates are abandoned. When they converge, twenty to sixty steps are usual.
const PATIENCE: usize = 100;

/// Fraction of the way back to the start when the coordinates stall.
const BACK: f64 = 0.1;

/// Minimizes the cost of the problem from a feasible start; `watch` receives every iterate with its cost and stops the solver by
/// returning `false`.
pub fn solve<C: Chart>(
    problem: &ConicLeastSquares,
    start: &DVector<f64>,
    options: &Options,
    mut watch: impl FnMut(&DVector<f64>, f64) -> bool,
) -> Result<Solution> {
    if !problem.inequalities.is_empty() {
        return Err(Error::Incompatible("bounds on bodies need the barrier solver".into()));
    }
    problem.expect_size(start)?;
    let mut at = ChartState::<C>::new(problem, start)?;
    if !at.cost.is_finite() {
        return Err(Error::Infeasible("the optimization must start at physically consistent bodies".into()));
    }
    let weight = problem.cones.iter().map(|c| c.prior_weight).fold(0.0, f64::max);
    let order = 4.0 * problem.cones.len() as f64;
    if weight > 0.0 && at.cost / order > weight {
        at.extra = at.cost / order;
        at.assemble(problem);
    }
    let mut best = at.clone();
    let mut model = Model::new(problem.len());
    let (mut damping, mut steps, mut bound) = (DAMPING, 0, f64::NEG_INFINITY);
    let certify = |best: &ChartState<C>, bound: f64| {
        problem.lower_bound(&best.x).map_or(bound, |b| bound.max(b.min(best.cost)))
    };
    loop {
        let limit = steps >= options.max_steps;
        if limit || !watch(&best.x, best.cost) {
            let lower_bound = certify(&best, bound);
            let status = if limit { SolverStatus::StepLimit } else { SolverStatus::Stopped };
            return Ok(Solution { lower_bound, steps, status, x: best.x, cost: best.cost });
        }
        if steps == PATIENCE {
            let lower_bound = certify(&best, bound);
            let status = SolverStatus::Stalled;
            let found = Solution { lower_bound, steps, status, x: best.x, cost: best.cost };
            return Ok(finish(problem, start, found, options, watch));
        }
        steps += 1;
        model.expand(problem, &mut at);
        let gain = at.descend(problem, &mut model, &mut damping)?;
        if at.cost < best.cost {
            best.clone_from(&at);
        }
        if at.extra > 0.0 {
            if gain < CENTRAL * at.extra * order {
                at.extra = if at.extra < SHRINK * weight { 0.0 } else { SHRINK * at.extra };
                at.assemble(problem);
            }
            continue;
        }
        let goal = problem.goal(best.cost, options);
        if gain > 0.1 * goal {
            continue;
        }
        bound = certify(&best, bound);
        let converged = best.cost - bound <= goal;
        if converged || !at.escape(problem)? {
            let status = if converged { SolverStatus::Converged } else { SolverStatus::Stalled };
            let found = Solution { lower_bound: bound, steps, status, x: best.x, cost: best.cost };
            return Ok(finish(problem, start, found, options, watch));
        }
        best.clone_from(&at);
    }
}

/// Performs the final steps. If the coordinates stall or converge slowly without a certificate (for a very weak prior, the
/// curvature along the coordinates exceeds its decrease by many orders of magnitude), the path in the variables continues from a
/// point between the iterate and the start, within the remaining number of steps. `watch` still receives the best point so far.
fn finish(
    problem: &ConicLeastSquares,
    start: &DVector<f64>,
    mut found: Solution,
    options: &Options,
    mut watch: impl FnMut(&DVector<f64>, f64) -> bool,
) -> Solution {
    problem.polish(&mut found, options);
    if found.status.is_converged() {
        return found;
    }
    let inside = &found.x * (1.0 - BACK) + start * BACK;
    let left = Options { max_steps: options.max_steps.saturating_sub(found.steps), ..*options };
    let (mut best, mut least) = (found.x.clone(), found.cost);
    let path = problem.solve(&inside, &left, |x, cost| {
        if cost < least {
            best.copy_from(x);
            least = cost;
        }
        watch(&best, least)
    });
    // There is no path from a start on the boundary: return the result without a certificate.
    let Ok(path) = path else { return found };
    found.steps += path.steps;
    (found.x, found.cost) = if path.cost < least { (path.x, path.cost) } else { (best, least) };
    found.certify(Some(path.lower_bound), problem.goal(found.cost, options));
    found
}

/// State of an iterate.
#[derive(Clone)]
struct ChartState<C> {
    bodies: Vec<C>,
    x: DVector<f64>,
    cost: f64,
    /// Additional weight of the priors, and the cost with it.
    extra: f64,
    merit: f64,
}

impl<C: Chart> ChartState<C> {
    fn new(problem: &ConicLeastSquares, x: &DVector<f64>) -> Result<Self> {
        let bodies = problem.cones.iter().map(|c| C::new(&c.matrix(x))).collect::<Result<_>>()?;
        let mut out = Self { bodies, x: x.clone(), cost: 0.0, extra: 0.0, merit: 0.0 };
        for &j in &problem.nonnegative {
            out.x[j] = out.x[j].max(0.0);
        }
        out.assemble(problem);
        Ok(out)
    }

    /// Computes parameters and cost of the bodies.
    fn assemble(&mut self, problem: &ConicLeastSquares) {
        let (mut prior, mut walls) = (0.0, 0.0);
        for (cone, body) in problem.cones.iter().zip(&self.bodies) {
            let matrix = body.matrix();
            self.x.fixed_rows_mut::<10>(cone.offset).copy_from(&pseudo::parameters(&matrix));
            if cone.prior_weight > 0.0 {
                let log_det = body.log_det();
                prior += cone.prior_weight * (cone.prior.dot(&matrix) - log_det);
                walls -= log_det;
            }
        }
        self.cost = problem.quadratic(&self.x) + prior;
        self.merit = self.cost + if self.extra > 0.0 { self.extra * walls } else { 0.0 };
    }

    fn retract(&self, problem: &ConicLeastSquares, step: &DVector<f64>) -> Self {
        let mut out = self.clone();
        out.x += step;
        for &j in &problem.nonnegative {
            out.x[j] = out.x[j].max(0.0);
        }
        for (cone, body) in problem.cones.iter().zip(&mut out.bodies) {
            *body = body.retract(&step.fixed_rows::<10>(cone.offset).into_owned());
        }
        out.assemble(problem);
        out
    }

    /// Performs one damped step that reduces the cost; returns the decrease, or zero if there is none.
    fn descend(&mut self, problem: &ConicLeastSquares, model: &mut Model, damping: &mut f64) -> Result<f64> {
        while *damping <= MOST_DAMPING {
            if model.step(*damping)? {
                let expected = model.expected_gain();
                let next = self.retract(problem, &model.step);
                let gain = self.merit - next.merit;
                // A gain below the rounding error is accepted, because the model is more accurate.
                if expected <= 4.0 * problem.rounding(self.cost) {
                    if gain >= 0.0 {
                        *self = next;
                    }
                    return Ok(0.0);
                }
                if gain > 1e-3 * expected {
                    *self = next;
                    if gain > 0.7 * expected {
                        *damping = (*damping * RELAX).max(LEAST_DAMPING);
                    } else if gain < 0.25 * expected {
                        *damping *= TIGHTEN;
                    }
                    return Ok(gain);
                }
            }
            *damping *= TIGHTEN;
        }
        *damping = DAMPING;
        Ok(0.0)
    }

    /// Performs a step in the parameters, body after body, if the coordinates are stationary; returns whether the cost decreased.
    fn escape(&mut self, problem: &ConicLeastSquares) -> Result<bool> {
        let before = self.cost;
        let mut gradient = DVector::zeros(problem.len());
        for k in 0..self.bodies.len() {
            let (cone, matrix) = (&problem.cones[k], self.bodies[k].matrix());
            problem.smooth_gradient(&self.x, &mut gradient);
            let slope: Vector10 = gradient.fixed_rows::<10>(cone.offset).into_owned();
            let gram: Matrix10 = problem.gram.fixed_view::<10, 10>(cone.offset, cone.offset).into_owned();
            let way = if cone.prior_weight > 0.0 {
                newton_of_body(&matrix, &slope, &gram, cone.prior_weight)
            } else {
                // Outer product of steepest descent, up to the minimum of the quadratic cost.
                let eigen = symmetric_eigen(&pseudo::adjoint_inverse(&slope))?;
                let vector = eigen.vectors.column(0);
                let way = vector * vector.transpose();
                let ten = pseudo::parameters(&way);
                let bend = ten.dot(&(gram * ten));
                (eigen.values[0] < 0.0 && bend > 0.0).then(|| way * (-eigen.values[0] / bend))
            };
            let Some(mut way) = way else { continue };
            for _ in 0..20 {
                let mut next = self.clone();
                next.bodies[k] = C::new(&(matrix + way))?;
                next.assemble(problem);
                if next.cost < self.cost {
                    *self = next;
                    break;
                }
                way *= 0.5;
            }
        }
        Ok(before - self.cost > 4.0 * problem.rounding(self.cost))
    }
}

/// Returns the Newton step of the parameters of one body against its prior, kept inside the cone.
fn newton_of_body(p: &Matrix4<f64>, slope: &Vector10, gram: &Matrix10, weight: f64) -> Option<Matrix4<f64>> {
    let inverse = p.cholesky()?.inverse();
    let gradient = slope - pseudo::adjoint(&inverse) * weight;
    let step = -(gram + pseudo::curvature(&inverse) * weight).cholesky()?.solve(&gradient);
    let way = pseudo::matrix(step.as_slice());
    let m = inverse * way;
    let norm = (m * m).trace().max(0.0).sqrt();
    Some(way * (TOWARDS / norm.max(TOWARDS)))
}

/// Second-order model of the cost in the coordinates at an iterate, and its step.
struct Model {
    gradient: DVector<f64>,
    hessian: DMatrix<f64>,
    /// Distance of each coordinate to its lower bound.
    room: DVector<f64>,
    /// Coordinates without effect.
    idle: Vec<bool>,
    /// Scale of the damping.
    scale: DVector<f64>,
    step: DVector<f64>,
    fixed: Vec<bool>,
    damped: DMatrix<f64>,
    system: Definite,
}

impl Model {
    fn new(n: usize) -> Self {
        Self {
            gradient: DVector::zeros(n),
            hessian: DMatrix::zeros(n, n),
            room: DVector::zeros(n),
            idle: vec![false; n],
            scale: DVector::zeros(n),
            step: DVector::zeros(n),
            fixed: vec![false; n],
            damped: DMatrix::zeros(n, n),
            system: Definite::new(n),
        }
    }

    fn expand<C: Chart>(&mut self, problem: &ConicLeastSquares, at: &mut ChartState<C>) {
        let n = problem.len();
        problem.smooth_gradient(&at.x, &mut self.gradient);
        self.hessian.copy_from(&problem.gram);
        self.room.fill(f64::INFINITY);
        problem.nonnegative.iter().for_each(|&j| self.room[j] = at.x[j]);
        let slopes: Vec<Matrix4<f64>> = problem
            .cones
            .iter()
            .map(|c| pseudo::adjoint_inverse(&self.gradient.fixed_rows::<10>(c.offset).into_owned()))
            .collect();
        for (body, slope) in at.bodies.iter_mut().zip(&slopes) {
            *body = body.align(slope);
        }
        let jacobians: Vec<Matrix10> = at.bodies.iter().map(Chart::jacobian).collect();
        for (cone, jacobian) in problem.cones.iter().zip(&jacobians) {
            let turned = self.hessian.fixed_columns::<10>(cone.offset) * jacobian;
            self.hessian.fixed_columns_mut::<10>(cone.offset).copy_from(&turned);
        }
        for (cone, jacobian) in problem.cones.iter().zip(&jacobians) {
            let turned = jacobian.transpose() * self.hessian.fixed_rows::<10>(cone.offset);
            self.hessian.fixed_rows_mut::<10>(cone.offset).copy_from(&turned);
        }
        self.scale.copy_from(&self.hessian.diagonal());
        for (((cone, body), jacobian), slope) in
            problem.cones.iter().zip(&at.bodies).zip(&jacobians).zip(&slopes)
        {
            let weight = if cone.prior_weight > 0.0 { cone.prior_weight + at.extra } else { 0.0 };
            let mut gradient =
                jacobian.transpose() * self.gradient.fixed_rows::<10>(cone.offset).into_owned();
            let mut bend = body.trace_hessian(slope);
            let mut room = body.bound_distances();
            if weight > 0.0 {
                let (first, second) = body.log_det_derivatives();
                gradient -= first * weight;
                bend -= Matrix10::from_diagonal(&(second * weight));
                room *= TOWARDS;
            }
            self.gradient.fixed_rows_mut::<10>(cone.offset).copy_from(&gradient);
            self.room.fixed_rows_mut::<10>(cone.offset).copy_from(&room);
            let mut block = self.hessian.fixed_view_mut::<10, 10>(cone.offset, cone.offset);
            block += bend;
            (0..10).for_each(|i| self.idle[cone.offset + i] = body.is_idle(i));
        }
        for i in 0..n {
            self.scale[i] = self.scale[i].max(self.hessian[(i, i)].abs());
        }
        for i in 0..n {
            if self.scale[i] <= 0.0 {
                // No curvature in this coordinate: use as much as its coupling to others requires.
                let row = (0..n).filter(|&j| self.scale[j] > 0.0);
                let need = row.map(|j| self.hessian[(j, i)].powi(2) / self.scale[j]);
                self.scale[i] = need.fold(f64::MIN_POSITIVE.sqrt(), f64::max);
            }
        }
    }

    /// Computes the damped step within the bounds; returns `false` if the damped matrix is not positive definite.
    fn step(&mut self, damping: f64) -> Result<bool> {
        let n = self.gradient.len();
        for i in 0..n {
            self.fixed[i] = self.idle[i] || (self.room[i] <= 0.0 && self.gradient[i] >= 0.0);
        }
        loop {
            self.damped.copy_from(&self.hessian);
            for i in 0..n {
                self.damped[(i, i)] += damping * self.scale[i];
            }
            // Fixed coordinates move to their bounds; the others are solved given that.
            let mut right = -&self.gradient;
            for i in (0..n).filter(|&i| self.fixed[i] && !self.idle[i]) {
                right.axpy(self.room[i], &self.damped.column(i), 1.0);
            }
            for i in (0..n).filter(|&i| self.fixed[i]) {
                self.damped.row_mut(i).fill(0.0);
                self.damped.column_mut(i).fill(0.0);
                self.damped[(i, i)] = 1.0;
                right[i] = if self.idle[i] { 0.0 } else { -self.room[i] };
            }
            if self.system.factorize(&self.damped, 0.0).is_err() {
                return Ok(false);
            }
            self.step.copy_from(&right);
            self.system.solve_in_place(&mut self.step)?;
            let mut more = false;
            for i in 0..n {
                if !self.fixed[i] && self.step[i] < -self.room[i] {
                    self.fixed[i] = true;
                    more = true;
                }
            }
            if !more {
                return Ok(true);
            }
        }
    }

    /// Returns the gain of the step according to the model.
    fn expected_gain(&self) -> f64 {
        -self.gradient.dot(&self.step) - 0.5 * self.step.dot(&(&self.hessian * &self.step))
    }
}
