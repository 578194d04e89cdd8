//! Sequential quadratic programming for a smooth objective under many inequalities.
//!
//! Each step minimizes a quadratic model (damped BFGS of the Lagrangian, Nocedal and Wright 2006, procedure 18.2) under the
//! linearized constraints within a trust region; one slack variable with a price keeps the subproblem solvable. Steps are
//! judged by the objective plus the price of the largest violation, an exact penalty.

use super::quadratic::Program;
use super::status::SolverStatus;
use crate::{Error, Result};

/// Entries of multipliers below this part of the price are those of constraints that do not bind.
const BINDING: f64 = 1e-6;

/// Trust regions smaller than this end the search: no step of that size helps.
const LEAST_RADIUS: f64 = 1e-9;

/// Problem to be minimized. Variables should be of order one: the trust region is a box.
pub trait Problem {
    /// Number of variables.
    fn dimension(&self) -> usize;

    /// The objective at `x`, infinite where it has none, and its gradient where that is asked for.
    fn objective(&mut self, x: &[f64], gradient: Option<&mut [f64]>) -> f64;

    /// The largest of all constraint values at `x`: a point is feasible where none is above zero.
    fn violation(&mut self, x: &[f64]) -> f64;

    /// The constraints that may bind within `radius` of `x`, at least those that hold with equality.
    fn constraints(&mut self, x: &[f64], radius: f64, rows: &mut ConstraintRows);

    /// A feasible point near `x`, which is not feasible, where one is easily found. Steps follow curved constraints from outside, so
    /// that few of their ends are feasible before the search has converged.
    fn restore(&mut self, x: &[f64]) -> Option<Vec<f64>> {
        let _ = x;
        None
    }

    /// Adds `factor` times the gradient at `x` of the constraint with that key.
    fn add_gradient(&mut self, x: &[f64], key: usize, factor: f64, gradient: &mut [f64]);
}

/// Constraints `c ≤ 0`, linearized.
#[derive(Debug, Clone, Default)]
pub struct ConstraintRows {
    keys: Vec<usize>,
    values: Vec<f64>,
    /// (row, column, entry)
    entries: Vec<(usize, usize, f64)>,
}

impl ConstraintRows {
    /// Adds a constraint: the problem's own number for it, its value, and the entries of its gradient.
    pub fn push(&mut self, key: usize, value: f64, gradient: impl IntoIterator<Item = (usize, f64)>) {
        let row = self.values.len();
        self.keys.push(key);
        self.values.push(value);
        self.entries.extend(gradient.into_iter().filter(|(_, x)| *x != 0.0).map(|(c, x)| (row, c, x)));
    }

    /// Number of constraints.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Returns whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    fn clear(&mut self) {
        self.keys.clear();
        self.values.clear();
        self.entries.clear();
    }

    /// The largest value after the step `d`, or zero.
    fn predicted(&self, d: &[f64]) -> f64 {
        let mut values = self.values.clone();
        self.entries.iter().for_each(|&(r, c, x)| values[r] += x * d[c]);
        values.into_iter().fold(0.0, f64::max)
    }
}

/// Stopping criteria and initial trust region.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SqpOptions {
    /// Steps, at most.
    pub iterations: usize,
    /// A predicted decrease below this (relative to one plus the objective's size) ends the search.
    pub tolerance: f64,
    /// Largest change of a variable in the first step.
    pub radius: f64,
    /// Violations up to this count as none.
    pub feasibility: f64,
}

impl Default for SqpOptions {
    fn default() -> Self {
        Self { iterations: 200, tolerance: 1e-9, radius: 0.1, feasibility: 1e-9 }
    }
}

/// Progress of a search.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct SqpProgress {
    /// Steps taken.
    pub iteration: usize,
    /// The best feasible objective, infinite before there is one.
    pub best: f64,
}

/// The result of [`minimize`].
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct SqpResult {
    /// The best feasible point; the one of least violation where none was feasible.
    pub x: Vec<f64>,
    /// Objective.
    pub objective: f64,
    /// Largest constraint value.
    pub violation: f64,
    /// Steps taken.
    pub iterations: usize,
    /// Reason why the search ended.
    pub status: SolverStatus,
}

impl SqpResult {
    fn new(x: &[f64], objective: f64, violation: f64) -> Self {
        Self { x: x.to_vec(), objective, violation, iterations: 0, status: SolverStatus::StepLimit }
    }

    /// Returns whether another point is better: feasible and lower, or else nearer to feasible.
    fn is_beaten_by(&self, objective: f64, violation: f64, feasibility: f64) -> bool {
        match (self.violation <= feasibility, violation <= feasibility) {
            (true, true) => objective < self.objective,
            (false, true) => true,
            (true, false) => false,
            (false, false) => violation < self.violation,
        }
    }
}

/// Minimizes from `start`; `watch` is told of each step and ends the search by `false`.
///
/// ```
/// use inertial::optimize::sqp::{Problem, ConstraintRows, SqpOptions, minimize};
/// /// The nearest point to (2, 1) in the unit disc.
/// struct Disc;
/// impl Problem for Disc {
///     fn dimension(&self) -> usize { 2 }
///     fn objective(&mut self, x: &[f64], gradient: Option<&mut [f64]>) -> f64 {
///         let d = [x[0] - 2.0, x[1] - 1.0];
///         if let Some(g) = gradient { g.copy_from_slice(&d.map(|d| 2.0 * d)) }
///         d[0] * d[0] + d[1] * d[1]
///     }
///     fn violation(&mut self, x: &[f64]) -> f64 { x[0] * x[0] + x[1] * x[1] - 1.0 }
///     fn constraints(&mut self, x: &[f64], _: f64, rows: &mut ConstraintRows) {
///         rows.push(0, x[0] * x[0] + x[1] * x[1] - 1.0, [(0, 2.0 * x[0]), (1, 2.0 * x[1])]);
///     }
///     fn add_gradient(&mut self, x: &[f64], _: usize, factor: f64, g: &mut [f64]) {
///         (0..2).for_each(|i| g[i] += factor * 2.0 * x[i]);
///     }
/// }
/// let found = minimize(&mut Disc, &[0.0, 0.0], &SqpOptions::default(), &mut |_| true)?;
/// // The search ends where no step would gain 1e-9: some 3e-5 from the optimum.
/// assert!((found.x[0] - 2.0 / 5f64.sqrt()).abs() < 1e-4);
/// # Ok::<(), inertial::Error>(())
/// ```
pub fn minimize(
    problem: &mut impl Problem,
    start: &[f64],
    options: &SqpOptions,
    watch: &mut dyn FnMut(SqpProgress) -> bool,
) -> Result<SqpResult> {
    let n = problem.dimension();
    if start.len() != n {
        return Err(Error::Dimension { what: "start of the search", expected: n, found: start.len() });
    }
    let mut x = start.to_vec();
    let mut gradient = vec![0.0; n];
    let mut objective = problem.objective(&x, Some(&mut gradient));
    let mut violation = problem.violation(&x);
    if !objective.is_finite() || gradient.iter().any(|g| !g.is_finite()) {
        return Err(Error::Infeasible("the search starts where the objective has no value".into()));
    }
    let mut best = SqpResult::new(&x, objective, violation);
    let mut radius = options.radius;
    let mut hessian = Bfgs::new(n, gradient.iter().fold(0.0, |m: f64, g| m.max(g.abs())) / radius);
    let mut price = 10.0 * (1.0 + objective.abs());
    let mut rows = ConstraintRows::default();
    let (mut trial, mut next_gradient) = (vec![0.0; n], vec![0.0; n]);
    for iteration in 1..=options.iterations {
        rows.clear();
        problem.constraints(&x, radius, &mut rows);
        let subproblem = Program {
            hessian: &hessian.h,
            gradient: &gradient,
            values: &rows.values,
            entries: &rows.entries,
            radius,
            price,
        };
        let Some(step) = subproblem.solve() else {
            // Rounding in the subproblem: a fresh model and a smaller region.
            hessian.reset();
            radius *= 0.25;
            if radius < LEAST_RADIUS {
                best.status = SolverStatus::Stalled;
                break;
            }
            continue;
        };
        // An exact penalty costs more than the multipliers together.
        let load: f64 = step.multipliers.iter().sum();
        if load > 0.9 * price {
            price = 2.0 * load;
        }
        let now = violation.max(0.0);
        let predicted =
            -dot(&gradient, &step.d) - 0.5 * hessian.form(&step.d) + price * (now - rows.predicted(&step.d));
        if predicted <= options.tolerance * (1.0 + objective.abs()) && now <= options.feasibility {
            best.status = SolverStatus::Converged;
            best.iterations = iteration;
            break;
        }
        trial.iter_mut().zip(&x).zip(&step.d).for_each(|((t, x), d)| *t = x + d);
        let trial_objective = problem.objective(&trial, Some(&mut next_gradient));
        let trial_violation = problem.violation(&trial);
        let actual = objective - trial_objective + price * (now - trial_violation.max(0.0));
        let good = trial_objective.is_finite()
            && next_gradient.iter().all(|g| g.is_finite())
            && predicted > 0.0
            && actual >= 1e-4 * predicted;
        let length = step.d.iter().fold(0.0, |m: f64, d| m.max(d.abs()));
        if good {
            if actual > 0.75 * predicted && length > 0.8 * radius {
                radius = (2.0 * radius).min(100.0 * options.radius);
            } else if actual < 0.25 * predicted {
                radius *= 0.5;
            }
            // Change of the Lagrangian's gradient along the step.
            let mut change: Vec<f64> = next_gradient.iter().zip(&gradient).map(|(b, a)| b - a).collect();
            let binding = |row: usize| step.multipliers[row] > BINDING * price;
            for row in (0..rows.len()).filter(|&r| binding(r)) {
                problem.add_gradient(&trial, rows.keys[row], step.multipliers[row], &mut change);
            }
            for &(row, column, entry) in rows.entries.iter().filter(|e| binding(e.0)) {
                change[column] -= step.multipliers[row] * entry;
            }
            hessian.update(&step.d, &change);
            std::mem::swap(&mut x, &mut trial);
            std::mem::swap(&mut gradient, &mut next_gradient);
            (objective, violation) = (trial_objective, trial_violation);
            if best.is_beaten_by(objective, violation, options.feasibility) {
                best = SqpResult::new(&x, objective, violation);
            }
            if violation > options.feasibility
                && (objective < best.objective || best.violation > options.feasibility)
                && let Some(near) = problem.restore(&x)
            {
                let (objective, violation) = (problem.objective(&near, None), problem.violation(&near));
                if best.is_beaten_by(objective, violation, options.feasibility) {
                    best = SqpResult::new(&near, objective, violation);
                }
            }
        } else {
            radius = 0.4 * length.min(radius);
        }
        best.iterations = iteration;
        if radius < LEAST_RADIUS {
            best.status = SolverStatus::Converged;
            break;
        }
        let reached = if best.violation <= options.feasibility { best.objective } else { f64::INFINITY };
        if !watch(SqpProgress { iteration, best: reached }) {
            best.status = SolverStatus::Stopped;
            break;
        }
    }
    Ok(best)
}

/// A positive definite approximation of a Hessian.
struct Bfgs {
    n: usize,
    /// Row-major.
    h: Vec<f64>,
    scale: f64,
    fresh: bool,
}

impl Bfgs {
    fn new(n: usize, scale: f64) -> Self {
        let mut out =
            Self { n, h: vec![0.0; n * n], scale: if scale > 0.0 { scale } else { 1.0 }, fresh: true };
        out.reset();
        out
    }

    fn reset(&mut self) {
        self.h.fill(0.0);
        (0..self.n).for_each(|i| self.h[i * self.n + i] = self.scale);
        self.fresh = true;
    }

    fn times(&self, d: &[f64]) -> Vec<f64> {
        self.h.chunks_exact(self.n.max(1)).map(|row| dot(row, d)).collect()
    }

    /// `dᵀHd`.
    fn form(&self, d: &[f64]) -> f64 {
        dot(d, &self.times(d))
    }

    /// Powell's damped update with the step `s` and the change `y` of the gradient.
    fn update(&mut self, s: &[f64], y: &[f64]) {
        let (ss, sy, yy) = (dot(s, s), dot(s, y), dot(y, y));
        if ss == 0.0 {
            return;
        }
        if self.fresh && sy > 1e-8 * (ss * yy).sqrt() {
            self.scale = yy / sy;
            self.reset();
        }
        self.fresh = false;
        let hs = self.times(s);
        let shs = dot(s, &hs);
        let theta = if sy >= 0.2 * shs { 1.0 } else { 0.8 * shs / (shs - sy) };
        let r: Vec<f64> = y.iter().zip(&hs).map(|(y, h)| theta * y + (1.0 - theta) * h).collect();
        let sr = dot(s, &r);
        if !(sr > 0.0 && shs > 0.0) {
            return;
        }
        for i in 0..self.n {
            for j in 0..self.n {
                self.h[i * self.n + j] += r[i] * r[j] / sr - hs[i] * hs[j] / shs;
            }
        }
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}
