//! Rotor inertias of joints on the ground: adopted if consistent bodies without them explain the data much worse.
//!
//! Such a rotor inertia acts exactly like base parameters, so least squares cannot show whether it exists. Consistent bodies can: as a
//! part of a link, a large rotor inertia may need a link that is impossible.

use nalgebra::{DMatrix, DVector};

use crate::Result;
use crate::estimation::consistent::problem::data_factor;
use crate::estimation::equations::Equations;
use crate::estimation::least_squares::fit::LeastSquares;
use crate::estimation::least_squares::jackknife::growth;
use crate::estimation::least_squares::solution::Solution;
use crate::estimation::reduction::summary::Summary;

/// Decrease of the weighted squared residual, in units of its expected value per unknown, that shows rotor inertias on the ground
/// (odds of e¹⁵, as for drive couplings).
const EVIDENCE: f64 = 30.0;

/// Weighted squared residuals of estimates with the same unknowns.
pub(crate) struct Misfit {
    factor: DMatrix<f64>,
    /// Squared residual of least squares.
    least: f64,
    /// Factor by which variances exceed those of independent noise.
    growth: f64,
}

impl Misfit {
    pub fn new(equations: &Equations<'_>, summary: &Summary, squares: &LeastSquares) -> Result<Self> {
        let factor = data_factor(equations, summary, squares)?;
        let independent = Solution::of_factor(&factor, None)?.inverse.diagonal();
        let growth = growth(&squares.covariance.diagonal(), &independent).max(1.0);
        let least = squared(&factor, squares.values.as_slice());
        Ok(Self { factor, least, growth })
    }

    /// Returns whether consistent bodies explain the data so much worse than least squares that rotors may be the cause.
    pub fn is_large(&self, values: &[f64]) -> bool {
        squared(&self.factor, values) - self.least > EVIDENCE * self.growth
    }

    /// Returns whether the estimate `with` rotors explains the data much better than the one without them.
    pub fn falls(&self, without: &[f64], with: &[f64]) -> bool {
        squared(&self.factor, without) - squared(&self.factor, with) > EVIDENCE * self.growth
    }
}

/// Computes the squared residual of rows `[A | b]`.
fn squared(factor: &DMatrix<f64>, values: &[f64]) -> f64 {
    let mut all = DVector::from_row_slice(values).push(-1.0);
    all = factor * all;
    all.norm_squared()
}
