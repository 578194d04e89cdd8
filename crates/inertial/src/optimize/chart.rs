//! Newton method in charts whose every point is a possible body.
//!
//! The same problem as [`super::barrier`]'s, with each body in a [`Chart`]: its own ten coordinates, renewed at every
//! iterate. Every iterate is a set of possible bodies and none costs more than the one before, so a solve may be stopped at
//! any time.
//!
//! The problem is convex in the parameters but not in the coordinates, so three things are needed beside Newton's step
//! `(H + λD) ξ = −g` with the exact Hessian and Levenberg–Marquardt's damping:
//! - *Bounds.* Coordinates with a closed bound (`m ≥ 0`, `L ≥ 0`, friction `≥ 0`) that a step would carry beyond it are held
//!   there and the others solved again, until none goes beyond. They reach their bounds exactly.
//! - *Degenerate points.* Axes of equal moments are not unique: [`Chart::align`] chooses those in which the gradient is
//!   diagonal.
//! - *Stationary points that are not optimal* (a body without mass has no centre of mass to move). The parameters' gradient
//!   shows them: a step in the parameters themselves leads away, and the body gets new coordinates.
//!
//! With a small weight of the prior, `−w log det P` is a wall that is not felt before it is hit: bodies with a prior begin
//! with the larger weight `w + μ`, and μ falls to zero as the steps gain less. The best iterate so far counts.
//!
//! The solve ends when the convex problem's lower bound at the iterate ([`ConicLeastSquares::lower_bound`]) proves it good; where
//! the coordinates lead no further before that, the path of [`super::barrier`] goes on from there.

use nalgebra::{DMatrix, DVector, Matrix4};

use super::conic::{ConicLeastSquares, Options, Solution};
use super::pseudo::{self, Ten, TenByTen};
use super::status::SolverStatus;
use crate::linalg::{Definite, symmetric_eigen};
use crate::{Error, Result};

/// Coordinates of possible bodies about one of them.
pub trait Chart: Clone {
    /// Creates the chart of a pseudo-inertia; what rounding has made negative becomes zero.
    fn new(p: &Matrix4<f64>) -> Result<Self>;
    /// The pseudo-inertia.
    fn matrix(&self) -> Matrix4<f64>;
    /// `log det P`.
    fn log_det(&self) -> f64;
    /// First derivatives of `log det P`, and the diagonal of the second, which has no other entries.
    fn log_det_slope(&self) -> (Ten, Ten);
    /// Distance of each coordinate to its lower bound; infinite where it is free.
    fn room(&self) -> Ten;
    /// Returns whether a coordinate does not move the body at all.
    fn is_idle(&self, _coordinate: usize) -> bool {
        false
    }
    /// The point at the coordinates `z` from here, bounds kept.
    fn retract(&self, z: &Ten) -> Self;
    /// Derivatives of the ten parameters (rows) by the coordinates.
    fn jacobian(&self) -> TenByTen;
    /// Second derivatives of `tr(S P)` by the coordinates.
    fn bend(&self, s: &Matrix4<f64>) -> TenByTen;
    /// Returns the chart of the same body that suits the gradient `S` best, where there are several.
    #[must_use]
    fn align(&self, _s: &Matrix4<f64>) -> Self {
        self.clone()
    }
}

/// Part of the way to a bound that a step may take where `−log det` keeps a coordinate away from it.
const TOWARDS: f64 = 0.9;

/// Damping: at the start, at least, at most, and its factors after good and bad steps. At least so much that what no
/// datum shows stays where it is.
const DAMPING: f64 = 1e-3;
const LEAST_DAMPING: f64 = 1e-11;
const MOST_DAMPING: f64 = 1e12;
const RELAX: f64 = 0.1;
const TIGHTEN: f64 = 8.0;

/// The extra weight of priors: its factor, and the gain (over itself and the number of logarithms) below which it falls.
const SHRINK: f64 = 0.1;
const CENTRAL: f64 = 0.1;

/// Steps after which the coordinates are given up: where they lead to the optimum at all they take some twenty to sixty.
const PATIENCE: usize = 100;

/// Part of the way back to the start from where the coordinates lead no further.
const BACK: f64 = 0.1;

/// Minimizes the problem's cost from a possible start; `watch` sees every iterate with its cost and may stop the solve by
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
        return Err(Error::Infeasible("the optimization must start at possible bodies".into()));
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

/// The last steps. Where the coordinates lead no further, or only at a crawl, and nothing proves the cost least (hardly a prior: it
/// bends by many orders more along the coordinates than it falls), the path in the variables leads on from between here and the
/// start, as far as the steps left allow. What is watched stays the best so far.
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
    // From a start on the boundary there is no path; what was found stands, unproven.
    let Ok(path) = path else { return found };
    found.steps += path.steps;
    (found.x, found.cost) = if path.cost < least { (path.x, path.cost) } else { (best, least) };
    found.certify(Some(path.lower_bound), problem.goal(found.cost, options));
    found
}

/// An iterate.
#[derive(Clone)]
struct ChartState<C> {
    bodies: Vec<C>,
    x: DVector<f64>,
    cost: f64,
    /// Weight added to those of priors, and the cost with it.
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

    /// Parameters and cost of the bodies.
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

    /// One damped step that lowers the cost; returns by how much, or zero where none does.
    fn descend(&mut self, problem: &ConicLeastSquares, model: &mut Model, damping: &mut f64) -> Result<f64> {
        while *damping <= MOST_DAMPING {
            if model.step(*damping)? {
                let expected = model.expected_gain();
                let next = self.retract(problem, &model.step);
                let gain = self.merit - next.merit;
                // What rounding hides counts as gained: the model knows better.
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

    /// A step in the parameters, body after body, where the coordinates see no way down; whether one was found.
    fn escape(&mut self, problem: &ConicLeastSquares) -> Result<bool> {
        let before = self.cost;
        let mut gradient = DVector::zeros(problem.len());
        for k in 0..self.bodies.len() {
            let (cone, matrix) = (&problem.cones[k], self.bodies[k].matrix());
            problem.smooth_gradient(&self.x, &mut gradient);
            let slope: Ten = gradient.fixed_rows::<10>(cone.offset).into_owned();
            let gram: TenByTen = problem.gram.fixed_view::<10, 10>(cone.offset, cone.offset).into_owned();
            let way = if cone.prior_weight > 0.0 {
                newton_of_body(&matrix, &slope, &gram, cone.prior_weight)
            } else {
                // The outer product that lowers the cost fastest, as far as the quadratic cost falls.
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

/// Newton's step of one body's parameters against its prior, kept inside.
fn newton_of_body(p: &Matrix4<f64>, slope: &Ten, gram: &TenByTen, weight: f64) -> Option<Matrix4<f64>> {
    let inverse = p.cholesky()?.inverse();
    let gradient = slope - pseudo::adjoint(&inverse) * weight;
    let step = -(gram + pseudo::curvature(&inverse) * weight).cholesky()?.solve(&gradient);
    let way = pseudo::matrix(step.as_slice());
    let m = inverse * way;
    let norm = (m * m).trace().max(0.0).sqrt();
    Some(way * (TOWARDS / norm.max(TOWARDS)))
}

/// The cost to second order in the coordinates at an iterate, and the step from it.
struct Model {
    gradient: DVector<f64>,
    hessian: DMatrix<f64>,
    /// Distance of each coordinate to its lower bound.
    room: DVector<f64>,
    /// Coordinates that move nothing.
    idle: Vec<bool>,
    /// Scale of the damping.
    scale: DVector<f64>,
    step: DVector<f64>,
    held: Vec<bool>,
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
            held: vec![false; n],
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
        let jacobians: Vec<TenByTen> = at.bodies.iter().map(Chart::jacobian).collect();
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
            let mut bend = body.bend(slope);
            let mut room = body.room();
            if weight > 0.0 {
                let (first, second) = body.log_det_slope();
                gradient -= first * weight;
                bend -= TenByTen::from_diagonal(&(second * weight));
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
                // Without curvature of its own: as much as its coupling to others would need.
                let row = (0..n).filter(|&j| self.scale[j] > 0.0);
                let need = row.map(|j| self.hessian[(j, i)].powi(2) / self.scale[j]);
                self.scale[i] = need.fold(f64::MIN_POSITIVE.sqrt(), f64::max);
            }
        }
    }

    /// The damped step within the bounds; `false` where the damped matrix is not positive definite.
    fn step(&mut self, damping: f64) -> Result<bool> {
        let n = self.gradient.len();
        for i in 0..n {
            self.held[i] = self.idle[i] || (self.room[i] <= 0.0 && self.gradient[i] >= 0.0);
        }
        loop {
            self.damped.copy_from(&self.hessian);
            for i in 0..n {
                self.damped[(i, i)] += damping * self.scale[i];
            }
            // The held coordinates fall by all their room; the others answer to that.
            let mut right = -&self.gradient;
            for i in (0..n).filter(|&i| self.held[i] && !self.idle[i]) {
                right.axpy(self.room[i], &self.damped.column(i), 1.0);
            }
            for i in (0..n).filter(|&i| self.held[i]) {
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
                if !self.held[i] && self.step[i] < -self.room[i] {
                    self.held[i] = true;
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
