//! Errors-in-variables estimator: maximum likelihood with noise in the regressor.
//!
//! The true rates are unknowns too. For given parameters the most likely ones are `ν̂ = ν − Σ Aᵀ C⁻¹ e`, and the remaining cost is
//! `Σ eᵀ C⁻¹ e` with `e = K(q, ν) φ − m` and `C = A(φ) Σ A(φ)ᵀ`. Because `K` is linear in the rates, its gradient is
//! `2 Σ K(q, ν̂)ᵀ C⁻¹ e`: the dependence of the weights on `φ` is completely in `ν̂`. Gauss-Newton steps use
//! `Σ K(q, ν̂)ᵀ C⁻¹ K(q, ν̂)`, whose inverse is the Cramér–Rao bound.

use nalgebra::DVector;

use crate::Result;
use crate::estimation::least_squares::solution::Solution;
use crate::estimation::momentum::equations::{MomentumEquations, MomentumFit, MomentumSamples, RateNoise};
use crate::linalg::Triangle;
use crate::optimize::SolverStatus;

/// Largest number of steps; five are usual.
const MOST_STEPS: usize = 50;

/// Step length, in standard errors, that counts as converged.
const SETTLED: f64 = 1e-7;

/// Step length, in standard errors, below which the change of the cost (its square) is below the rounding error of some thousand
/// samples.
const ROUNDING: f64 = 1e-4;

/// Smallest fraction of a step that is tried.
const LEAST_PART: f64 = 1e-3;

impl MomentumEquations<'_> {
    /// Computes the maximum-likelihood parameters, given the noise of the rates.
    pub fn errors_in_variables(
        &self,
        samples: &MomentumSamples<'_>,
        noise: &RateNoise,
    ) -> Result<MomentumFit> {
        let count = self.check(samples, Some(noise))?;
        // If the compensation fails, plain least squares is a sufficient start.
        let start = self.bias_compensated(samples, noise).or_else(|_| self.least_squares(samples, None))?;
        let mut values = start.values;
        let mut cost = self.chi_squared(samples, noise, &values)?;
        let mut steps = 0;
        loop {
            let rows = self.likelihood_rows(samples, count, noise, &values)?;
            let solution = Solution::of_factor(&rows.matrix(), None)?;
            let step = &solution.values;
            let length = (rows.matrix().columns(0, self.len()) * step).norm();
            let lower = if length <= SETTLED || steps == MOST_STEPS {
                None
            } else {
                self.lower(samples, noise, &values, step, cost)?
            };
            let Some(lower) = lower else {
                let covariance = solution.inverse.clone();
                let fit = solution.fit(covariance, Some(cost));
                let status = match (length <= ROUNDING, steps == MOST_STEPS) {
                    (true, _) => SolverStatus::Converged,
                    (_, true) => SolverStatus::StepLimit,
                    _ => SolverStatus::Stalled,
                };
                return Ok(MomentumFit { values, steps, status, ..fit });
            };
            (values, cost) = lower;
            steps += 1;
        }
    }

    /// Returns the Gauss-Newton model of the likelihood at given base parameters: rows `[A | b]` with `½ Σ eᵀC⁻¹e ≈ ½‖A δ − b‖²`
    /// for a step `δ`, with the exact gradient at `δ = 0`.
    pub(crate) fn likelihood_rows(
        &self,
        samples: &MomentumSamples<'_>,
        count: usize,
        noise: &RateNoise,
        values: &DVector<f64>,
    ) -> Result<Triangle> {
        let with = self.with_values(values)?;
        self.reduce(count, |sampled, t, rows| {
            let error = sampled.error(&with, samples, t, noise)?;
            sampled.load_corrected(self.mechanism(), samples, t, noise, &error.weighted)?;
            rows.push(&error.whiten, &sampled.k, &(-error.e));
            Ok(())
        })
    }

    /// Returns the first fraction of a step that reduces the cost.
    fn lower(
        &self,
        samples: &MomentumSamples<'_>,
        noise: &RateNoise,
        values: &DVector<f64>,
        step: &DVector<f64>,
        cost: f64,
    ) -> Result<Option<(DVector<f64>, f64)>> {
        let mut part = 1.0;
        while part > LEAST_PART {
            let trial = values + step * part;
            let trial_cost = self.chi_squared(samples, noise, &trial)?;
            if trial_cost < cost {
                return Ok(Some((trial, trial_cost)));
            }
            part *= 0.5;
        }
        Ok(None)
    }
}
