//! Consistent estimator from the momentum of a free-flying robot.
//!
//! Minimizes `½ Σ eᵀ C⁻¹ e + W Σ_bodies d(P₀, P)` over consistent bodies: the likelihood of
//! [`MomentumEquations::errors_in_variables`] with the prior and the cones of [`crate::estimation::consistent::problem`]. The
//! noise is in the regressor, so the likelihood is not quadratic. Each step uses its Gauss-Newton model at the most likely rates
//! so far, solves that convex problem with a certificate, and moves towards the solution as long as the cost decreases. Cones are
//! convex: every point on the way is feasible. At convergence, the gradient of the model equals that of the likelihood, so the
//! optimum of the last model is a stationary point of the problem.
//!
//! Without given noise, the rows are those of plain least squares divided by the noise estimated from its residuals: one convex
//! problem.

use nalgebra::{DMatrix, DVector};

use crate::estimation::consistent::problem::{Consistency, ConsistentProblem, LEAST_NOISE};
use crate::estimation::least_squares::solution::Solution;
use crate::estimation::momentum::equations::{MomentumEquations, MomentumFit, MomentumSamples, RateNoise};
use crate::optimize::{self, SolverStatus};
use crate::{Error, Result};

/// Largest number of steps; about ten are usual.
const MOST_STEPS: usize = 60;

/// Step length, in standard errors, that counts as converged. The convex problems are solved to nine digits of their cost, and the
/// change of the cost is the square of the step length.
const SETTLED: f64 = 1e-4;

/// Smallest fraction of a step that is tried.
const LEAST_PART: f64 = 1e-3;

/// Consistent estimate with its optimality certificate.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ConsistentMomentum {
    /// All inertial parameters; every body is physically consistent.
    pub parameters: Vec<f64>,
    /// Base parameters. Their covariance is the inverse of the sum of the information of the data and the curvature of the prior.
    pub fit: MomentumFit,
    /// Difference between the cost of the (last) convex problem and its proven lower bound.
    pub duality_gap: f64,
}

impl MomentumEquations<'_> {
    /// Computes the most likely consistent parameters, given a prior and, if known, the noise of the rates.
    pub fn consistent(
        &self,
        samples: &MomentumSamples<'_>,
        noise: Option<&RateNoise>,
        wanted: &Consistency<'_>,
    ) -> Result<ConsistentMomentum> {
        match noise {
            Some(noise) => self.consistent_likelihood(samples, noise, wanted),
            None => self.consistent_squares(samples, wanted),
        }
    }

    fn consistent_squares(
        &self,
        samples: &MomentumSamples<'_>,
        wanted: &Consistency<'_>,
    ) -> Result<ConsistentMomentum> {
        let count = self.check(samples, None)?;
        let rows = self.plain_rows(samples, count)?;
        let solution = Solution::of_factor(&rows.matrix(), None)?;
        let free = (6 * count).saturating_sub(solution.excited).max(1) as f64;
        let size = (samples.momentum.iter().map(|x| x * x).sum::<f64>() / (6 * count) as f64).sqrt();
        let sigma = (rows.at(self.len(), self.len()).abs() / free.sqrt()).max(LEAST_NOISE * size);
        if sigma <= 0.0 {
            return Err(Error::Unobservable("all momenta are zero: no parameter is excited".into()));
        }
        let problem = self.problem(&(rows.matrix() / sigma), wanted)?;
        let found = problem.solve(wanted, |_, _| true)?;
        finished(&problem, &found, solution, None)
    }

    fn consistent_likelihood(
        &self,
        samples: &MomentumSamples<'_>,
        noise: &RateNoise,
        wanted: &Consistency<'_>,
    ) -> Result<ConsistentMomentum> {
        let count = self.check(samples, Some(noise))?;
        let mut at = self.consistent_squares(samples, wanted)?.into_point();
        let mut chi = self.chi_squared(samples, noise, &at.values)?;
        let mut steps = 0;
        loop {
            let rows = self.likelihood_rows(samples, count, noise, &at.values)?;
            let n = self.len();
            // The unknowns are the parameters, not the step.
            let mut factor = rows.matrix();
            let moved = factor.column(n) + factor.columns(0, n) * &at.values;
            factor.set_column(n, &moved);
            let problem = self.problem(&factor, wanted)?;
            let found = problem.solve(wanted, |_, _| true)?;
            let step = problem.unknowns(&found.x) - &at.values;
            let length = (factor.columns(0, n) * &step).norm();
            let lower = if length <= SETTLED || steps == MOST_STEPS {
                None
            } else {
                let cost = |x: &DVector<f64>, values: &DVector<f64>, chi: f64| {
                    0.5 * chi + problem.conic.cost(x) - half_square(&factor, values)
                };
                let before = cost(&at.all, &at.values, chi);
                let mut part = 1.0;
                loop {
                    let all = &at.all + (&found.x - &at.all) * part;
                    let values = problem.unknowns(&all);
                    let trial = self.chi_squared(samples, noise, &values)?;
                    if cost(&all, &values, trial) < before {
                        break Some((Point { all, values }, trial));
                    }
                    part *= 0.5;
                    if part < LEAST_PART {
                        break None;
                    }
                }
            };
            let Some(lower) = lower else {
                let solution = Solution::of_factor(&rows.matrix(), None)?;
                let chi = self.chi_squared(samples, noise, &problem.unknowns(&found.x))?;
                let mut out = finished(&problem, &found, solution, Some(chi))?;
                out.fit.steps = steps;
                // If no fraction of a step reduces the cost, rounding error limits the progress: accept the point if the step is
                // small.
                if length > 100.0 * SETTLED || length.is_nan() {
                    out.fit.status =
                        if steps == MOST_STEPS { SolverStatus::StepLimit } else { SolverStatus::Stalled };
                }
                return Ok(out);
            };
            (at, chi) = lower;
            steps += 1;
        }
    }

    fn problem(&self, factor: &DMatrix<f64>, wanted: &Consistency<'_>) -> Result<ConsistentProblem> {
        ConsistentProblem::of_bodies(self.mechanism(), &self.regrouping, 0, &[], factor, wanted)
    }
}

/// Returns the estimate of a solved problem.
fn finished(
    problem: &ConsistentProblem,
    found: &optimize::Solution,
    solution: Solution,
    chi: Option<f64>,
) -> Result<ConsistentMomentum> {
    let values = problem.unknowns(&found.x);
    let fit = solution.fit(problem.covariance(&found.x)?, chi);
    Ok(ConsistentMomentum {
        duality_gap: found.gap(),
        fit: MomentumFit { values, status: found.status, ..fit },
        parameters: found.x.as_slice().to_vec(),
    })
}

/// All inertial parameters, and the base parameters.
struct Point {
    all: DVector<f64>,
    values: DVector<f64>,
}

impl ConsistentMomentum {
    fn into_point(self) -> Point {
        Point { all: DVector::from_vec(self.parameters), values: self.fit.values }
    }
}

/// Computes `½‖Ax − b‖²` of rows `[A | b]`.
fn half_square(factor: &DMatrix<f64>, x: &DVector<f64>) -> f64 {
    let n = x.len();
    0.5 * (factor.columns(0, n) * x - factor.column(n)).norm_squared()
}
