//! Sampling of the density `exp(−cost)` over the feasible set of a conic least-squares problem.
//!
//! The cost is quadratic except for the prior `w (tr(C P) − log det P)` of each body, which is a Wishart distribution with
//! `ν = 2 w + 5` degrees of freedom and scale `C⁻¹/(2 w)`. The reference distribution of elliptical slice sampling (Murray and
//! others 2010) is the product of the quadratic part and of Gaussians with the mean and the covariance of the priors. A step
//! draws a point of the reference distribution and moves on the ellipse through it and the current point to a point where the
//! density relative to the reference exceeds a random level. Quantities that the data determine well are drawn independently at
//! each step, for any number of variables. Constraints only shorten the interval on the ellipse.

use std::f64::consts::TAU;

use nalgebra::{DMatrix, DVector, Matrix4};

use super::conic::ConicLeastSquares;
use super::pseudo::{self, Matrix10, Vector10};
use crate::linalg::SplitMix;
use crate::{Error, Result};

/// Largest number of trial points of one step; the interval normally shrinks to the current point long before.
const MOST_TRIALS: usize = 1000;

/// Prior of a body, and the Gaussian that replaces it in the reference.
struct BodyPrior {
    offset: usize,
    weight: f64,
    matrix: Matrix4<f64>,
    precision: Matrix10,
    mean: Vector10,
}

/// Markov chain with the stationary density `exp(−cost)`.
pub struct Sampler<'p> {
    problem: &'p ConicLeastSquares,
    priors: Vec<BodyPrior>,
    /// Lower factor of the precision of the reference in scaled variables, and the scales.
    factor: DMatrix<f64>,
    scale: DVector<f64>,
    centre: DVector<f64>,
    /// Current point, and its difference from the centre.
    x: DVector<f64>,
    offset: DVector<f64>,
    /// Memory of a step.
    draw: DVector<f64>,
    trial: DVector<f64>,
    source: SplitMix,
}

impl<'p> Sampler<'p> {
    /// Creates a chain from a strictly feasible start.
    pub fn new(problem: &'p ConicLeastSquares, start: &DVector<f64>, seed: u64) -> Result<Self> {
        problem.expect_size(start)?;
        let (mut precision, mut slope) = (problem.gram.clone(), problem.rhs.clone());
        let mut priors = Vec::new();
        for cone in problem.cones.iter().filter(|c| c.prior_weight > 0.0) {
            let own = cone.prior.try_inverse().map(|p| pseudo::parameters(&p));
            let body = own.ok_or_else(|| Error::Infeasible("a prior body is singular".into()))?;
            let (offset, weight) = (cone.offset, cone.prior_weight);
            // Mean ν V and covariance 2 ν (V ⊗ V) of the symmetric matrix, with the scale V = C⁻¹/(2 w).
            let degrees = 2.0 * weight + 5.0;
            let mean = body * (degrees / (2.0 * weight));
            let own = pseudo::curvature(&cone.prior) * (2.0 * weight * weight / degrees);
            let mut block = precision.fixed_view_mut::<10, 10>(offset, offset);
            block += own;
            let mut part = slope.fixed_rows_mut::<10>(offset);
            part += own * mean;
            priors.push(BodyPrior { offset, weight, matrix: cone.prior, precision: own, mean });
        }
        // The scales of the variables differ by many orders of magnitude.
        let scale = precision.diagonal().map(|d| if d > 0.0 { d.sqrt().recip() } else { 1.0 });
        let scaled =
            DMatrix::from_fn(scale.len(), scale.len(), |i, j| precision[(i, j)] * scale[i] * scale[j]);
        let factor = scaled.cholesky().ok_or_else(|| {
            Error::Unobservable("neither data nor prior determine all parameters: give a prior".into())
        })?;
        let centre = factor.solve(&slope.component_mul(&scale)).component_mul(&scale);
        let out = Self {
            problem,
            priors,
            factor: factor.unpack(),
            scale,
            offset: start - &centre,
            centre,
            x: start.clone(),
            draw: DVector::zeros(start.len()),
            trial: DVector::zeros(start.len()),
            source: SplitMix::new(seed),
        };
        if out.log_ratio(start).is_none() {
            return Err(Error::Infeasible("sampling must start strictly inside the cones".into()));
        }
        Ok(out)
    }

    /// Returns the current point.
    pub fn point(&self) -> &DVector<f64> {
        &self.x
    }

    /// Moves to the next point.
    pub fn step(&mut self) {
        for k in 0..self.draw.len() {
            // Box-Muller transform.
            let (radius, angle) = ((-2.0 * self.uniform().ln()).sqrt(), TAU * self.uniform());
            self.draw[k] = radius * angle.cos();
        }
        // The diagonal of a Cholesky factor is positive: a solution exists.
        self.factor.tr_solve_lower_triangular_mut(&mut self.draw);
        self.draw.component_mul_assign(&self.scale);
        let Some(here) = self.log_ratio(&self.x) else { return };
        let level = here + self.uniform().ln();
        let mut angle = TAU * self.uniform();
        let (mut low, mut high) = (angle - TAU, angle);
        for _ in 0..MOST_TRIALS {
            let (sin, cos) = angle.sin_cos();
            let points = self.centre.iter().zip(&self.offset).zip(&self.draw);
            for (trial, ((centre, offset), draw)) in self.trial.iter_mut().zip(points) {
                *trial = centre + cos * offset + sin * draw;
            }
            if self.log_ratio(&self.trial).is_some_and(|ratio| ratio > level) {
                std::mem::swap(&mut self.x, &mut self.trial);
                self.x.sub_to(&self.centre, &mut self.offset);
                return;
            }
            *(if angle < 0.0 { &mut low } else { &mut high }) = angle;
            angle = low + (high - low) * self.uniform();
        }
    }

    /// Returns a uniform number in the open interval from zero to one.
    fn uniform(&mut self) -> f64 {
        ((self.source.next_u64() >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    }

    /// Returns the logarithm of the density relative to the reference, up to a constant; `None` outside of the feasible set.
    fn log_ratio(&self, x: &DVector<f64>) -> Option<f64> {
        let feasible = self.problem.nonnegative.iter().all(|&j| x[j] >= 0.0)
            && self.problem.inequalities.iter().all(|i| i.slack(x) >= 0.0);
        if !feasible {
            return None;
        }
        let mut priors = self.priors.iter().peekable();
        let mut sum = 0.0;
        for cone in &self.problem.cones {
            let matrix = cone.matrix(x);
            let factor = matrix.cholesky()?;
            if let Some(prior) = priors.next_if(|p| p.offset == cone.offset) {
                let deviation = x.fixed_rows::<10>(prior.offset) - prior.mean;
                let quadratic = 0.5 * deviation.dot(&(prior.precision * deviation));
                sum += quadratic + prior.weight * (pseudo::log_det(&factor) - prior.matrix.dot(&matrix));
            }
        }
        Some(sum)
    }
}
