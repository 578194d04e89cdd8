//! Sequential quadratic programming for a smooth objective with many inequality constraints.
//!
//! Each step minimizes a quadratic model (damped BFGS of the Lagrangian, Nocedal and Wright 2006, procedure 18.2) subject to the
//! linearized constraints within a trust region. One slack variable with a penalty keeps the subproblem feasible. The merit
//! function is the objective plus the penalty times the largest violation, an exact penalty.

use super::quadratic::Program;
use super::status::SolverStatus;
use crate::{Error, Result};

/// Multiplier, relative to the penalty, below which a constraint counts as inactive.
const BINDING: f64 = 1e-6;

/// Smallest trust region; the search stops below it.
const LEAST_RADIUS: f64 = 1e-9;

/// Problem to minimize. Variables should be of order one, because the trust region is a box.
pub trait Problem {
    /// Returns the number of variables.
    fn dimension(&self) -> usize;

    /// Returns the objective at `x`, infinite outside of its domain, and its gradient if requested.
    fn objective(&mut self, x: &[f64], gradient: Option<&mut [f64]>) -> f64;

    /// Returns the largest of all constraint values at `x`. A point is feasible if none is positive.
    fn violation(&mut self, x: &[f64]) -> f64;

    /// Adds the constraints that may be active within `radius` of `x`, at least those that hold with equality.
    fn constraints(&mut self, x: &[f64], radius: f64, rows: &mut ConstraintRows);

    /// Returns a feasible point near the infeasible `x`, if one is easy to find. Steps follow curved constraints from outside, so
    /// that few of their end points are feasible before convergence.
    fn restore(&mut self, x: &[f64]) -> Option<Vec<f64>> {
        let _ = x;
        None
    }

    /// Returns whether a stop was requested. It is asked within each step; the search then rejects the step.
    fn is_stopped(&self) -> bool {
        false
    }

    /// Adds `factor` times the gradient at `x` of the constraint with that key.
    fn add_gradient(&mut self, x: &[f64], key: usize, factor: f64, gradient: &mut [f64]);
}

/// Linearized constraints `c ≤ 0`.
#[derive(Debug, Clone, Default)]
pub struct ConstraintRows {
    keys: Vec<usize>,
    values: Vec<f64>,
    /// Gradient entries as (row, column, entry).
    entries: Vec<(usize, usize, f64)>,
}

impl ConstraintRows {
    /// Adds a constraint: the key of the problem for it, its value, and the entries of its gradient.
    pub fn push(&mut self, key: usize, value: f64, gradient: impl IntoIterator<Item = (usize, f64)>) {
        let row = self.values.len();
        self.keys.push(key);
        self.values.push(value);
        self.entries.extend(gradient.into_iter().filter(|(_, x)| *x != 0.0).map(|(c, x)| (row, c, x)));
    }

    /// Returns the number of constraints.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Returns whether there are no constraints.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    fn clear(&mut self) {
        self.keys.clear();
        self.values.clear();
        self.entries.clear();
    }

    /// Returns the largest predicted value after the step `d`, or zero.
    fn predicted(&self, d: &[f64]) -> f64 {
        let mut values = self.values.clone();
        self.entries.iter().for_each(|&(r, c, x)| values[r] += x * d[c]);
        values.into_iter().fold(0.0, f64::max)
    }
}

/// Stopping criteria and initial trust region.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct SqpOptions {
    /// Largest number of steps.
    pub iterations: usize,
    /// Predicted decrease (relative to one plus the magnitude of the objective) below which the search stops.
    pub tolerance: f64,
    /// Largest change of a variable in the first step.
    pub radius: f64,
    /// Largest violation that counts as feasible.
    pub feasibility: f64,
}

crate::with_changes!(SqpOptions);

impl Default for SqpOptions {
    fn default() -> Self {
        Self { iterations: 200, tolerance: 1e-9, radius: 0.1, feasibility: 1e-9 }
    }
}

/// Progress of a search.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct SqpProgress {
    /// Number of steps.
    pub iteration: usize,
    /// Best feasible objective, infinite before there is one.
    pub best: f64,
}

/// Result of [`minimize`].
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct SqpResult {
    /// Best feasible point, or the point of least violation if none is feasible.
    pub x: Vec<f64>,
    /// Objective.
    pub objective: f64,
    /// Largest constraint value.
    pub violation: f64,
    /// Number of steps.
    pub iterations: usize,
    /// Reason why the search stopped.
    pub status: SolverStatus,
}

impl SqpResult {
    fn new(x: &[f64], objective: f64, violation: f64) -> Self {
        Self { x: x.to_vec(), objective, violation, iterations: 0, status: SolverStatus::StepLimit }
    }

    /// Replaces the point by a better one: feasible and lower, or else closer to feasibility.
    fn improve(&mut self, x: &[f64], objective: f64, violation: f64, feasibility: f64) {
        let better = match (self.violation <= feasibility, violation <= feasibility) {
            (true, true) => objective < self.objective,
            (false, true) => true,
            (true, false) => false,
            (false, false) => violation < self.violation,
        };
        if better && objective.is_finite() {
            let (iterations, status) = (self.iterations, self.status);
            *self = Self { iterations, status, ..Self::new(x, objective, violation) };
        }
    }
}

/// Minimizes the problem from `start`; `watch` receives each step and stops the search by returning `false`.
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
    let mut search = Minimizer::new(problem, start, *options)?;
    search.run(problem, options.iterations, watch);
    Ok(search.best)
}

/// Search that can be continued: the state of [`minimize`] between two steps.
pub(crate) struct Minimizer {
    options: SqpOptions,
    x: Vec<f64>,
    gradient: Vec<f64>,
    objective: f64,
    violation: f64,
    best: SqpResult,
    radius: f64,
    hessian: Bfgs,
    /// Penalty of the largest violation.
    price: f64,
    rows: ConstraintRows,
    trial: Vec<f64>,
    next_gradient: Vec<f64>,
    ended: bool,
}

impl Minimizer {
    /// Evaluates the problem at the start.
    pub fn new(problem: &mut impl Problem, start: &[f64], options: SqpOptions) -> Result<Self> {
        let n = problem.dimension();
        if start.len() != n {
            return Err(Error::Dimension { what: "start of the search", expected: n, found: start.len() });
        }
        let mut gradient = vec![0.0; n];
        let objective = problem.objective(start, Some(&mut gradient));
        let violation = problem.violation(start);
        if !objective.is_finite() || gradient.iter().any(|g| !g.is_finite()) {
            return Err(Error::Infeasible("the search starts where the objective has no value".into()));
        }
        let radius = options.radius;
        Ok(Self {
            x: start.to_vec(),
            best: SqpResult::new(start, objective, violation),
            radius,
            hessian: Bfgs::new(n, gradient.iter().fold(0.0, |m: f64, g| m.max(g.abs())) / radius),
            price: 10.0 * (1.0 + objective.abs()),
            rows: ConstraintRows::default(),
            trial: vec![0.0; n],
            next_gradient: vec![0.0; n],
            ended: false,
            options,
            gradient,
            objective,
            violation,
        })
    }

    /// Returns the best point so far.
    pub fn best(&self) -> &SqpResult {
        &self.best
    }

    /// Returns the best point.
    pub fn into_best(self) -> SqpResult {
        self.best
    }

    /// Performs up to `steps` steps unless the search has ended.
    pub fn run(
        &mut self,
        problem: &mut impl Problem,
        steps: usize,
        watch: &mut dyn FnMut(SqpProgress) -> bool,
    ) {
        for _ in 0..steps {
            if self.ended || self.best.iterations >= self.options.iterations {
                return;
            }
            self.best.iterations += 1;
            let ended = self.step(problem).or_else(|| {
                let feasible = self.best.violation <= self.options.feasibility;
                let best = if feasible { self.best.objective } else { f64::INFINITY };
                let go_on = watch(SqpProgress { iteration: self.best.iterations, best });
                (!go_on).then_some(SolverStatus::Stopped)
            });
            if let Some(status) = ended {
                self.best.status = status;
                self.ended = true;
            }
        }
    }

    /// Performs one step; returns the reason if the search ends.
    fn step(&mut self, problem: &mut impl Problem) -> Option<SolverStatus> {
        let Self { x, gradient, rows, trial, next_gradient, hessian, best, options, .. } = self;
        rows.clear();
        problem.constraints(x, self.radius, rows);
        let subproblem = Program {
            hessian: &hessian.h,
            gradient,
            values: &rows.values,
            entries: &rows.entries,
            radius: self.radius,
            price: self.price,
            is_stopped: &|| problem.is_stopped(),
        };
        let Some(step) = subproblem.solve() else {
            // Rounding error in the subproblem, or a stop: restart with a new model and a smaller trust region.
            hessian.reset();
            self.radius *= 0.25;
            return (self.radius < LEAST_RADIUS).then_some(SolverStatus::Stalled);
        };
        // An exact penalty must exceed the sum of the multipliers.
        let load: f64 = step.multipliers.iter().sum();
        if load > 0.9 * self.price {
            self.price = 2.0 * load;
        }
        let price = self.price;
        let now = self.violation.max(0.0);
        let predicted =
            -dot(gradient, &step.d) - 0.5 * hessian.form(&step.d) + price * (now - rows.predicted(&step.d));
        if predicted <= options.tolerance * (1.0 + self.objective.abs()) && now <= options.feasibility {
            return Some(SolverStatus::Converged);
        }
        trial.iter_mut().zip(&*x).zip(&step.d).for_each(|((t, x), d)| *t = x + d);
        let trial_objective = problem.objective(trial, Some(next_gradient));
        let trial_violation = problem.violation(trial);
        let actual = self.objective - trial_objective + price * (now - trial_violation.max(0.0));
        let good = trial_objective.is_finite()
            && next_gradient.iter().all(|g| g.is_finite())
            && predicted > 0.0
            && actual >= 1e-4 * predicted;
        let length = step.d.iter().fold(0.0, |m: f64, d| m.max(d.abs()));
        if !good {
            self.radius = 0.4 * length.min(self.radius);
            return (self.radius < LEAST_RADIUS).then_some(SolverStatus::Converged);
        }
        if actual > 0.75 * predicted && length > 0.8 * self.radius {
            self.radius = (2.0 * self.radius).min(100.0 * options.radius);
        } else if actual < 0.25 * predicted {
            self.radius *= 0.5;
        }
        // Change of the gradient of the Lagrangian along the step.
        let mut change: Vec<f64> = next_gradient.iter().zip(&*gradient).map(|(b, a)| b - a).collect();
        let binding = |row: usize| step.multipliers[row] > BINDING * price;
        for row in (0..rows.len()).filter(|&r| binding(r)) {
            problem.add_gradient(trial, rows.keys[row], step.multipliers[row], &mut change);
        }
        for &(row, column, entry) in rows.entries.iter().filter(|e| binding(e.0)) {
            change[column] -= step.multipliers[row] * entry;
        }
        hessian.update(&step.d, &change);
        std::mem::swap(x, trial);
        std::mem::swap(gradient, next_gradient);
        (self.objective, self.violation) = (trial_objective, trial_violation);
        best.improve(x, self.objective, self.violation, options.feasibility);
        if self.violation > options.feasibility
            && (self.objective < best.objective || best.violation > options.feasibility)
            && let Some(near) = problem.restore(x)
        {
            let (objective, violation) = (problem.objective(&near, None), problem.violation(&near));
            best.improve(&near, objective, violation, options.feasibility);
        }
        (self.radius < LEAST_RADIUS).then_some(SolverStatus::Converged)
    }
}

/// Positive definite approximation of a Hessian.
struct Bfgs {
    n: usize,
    /// Matrix in row-major order.
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

    /// Returns `dᵀHd`.
    fn form(&self, d: &[f64]) -> f64 {
        dot(d, &self.times(d))
    }

    /// Performs Powell's damped update with the step `s` and the change `y` of the gradient.
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
