//! Consistency of printed parameters: existence of a consistent body that rounds to the printed digits.

use nalgebra::{DVector, Matrix4};
use schemars::JsonSchema;
use serde::Serialize;

use crate::linalg::symmetric_eigen;
use crate::optimize::Inequality;
use crate::optimize::linear::{LinearConic, Semidefinite};
use crate::optimize::pseudo;
use crate::spatial::Parameters;
use crate::{Error, Result};

/// Verdict on printed parameters.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct RoundingVerdict {
    /// Whether a consistent body has parameters that round to the printed ones.
    pub consistent: bool,
    /// Largest minimum eigenvalue of the pseudo-inertia among all such parameters.
    pub best_min_eigenvalue: f64,
    /// Proven upper bound of that value.
    pub upper_bound: f64,
}

/// Checks the consistency of parameters that are known to within half a unit of their last digits.
///
/// Finds the largest `s` with `P(π) ⪰ s 1` over the box `|π − printed| ≤ half_units`, a semidefinite program. If its upper bound
/// is negative, no consistent body has parameters that round to the printed ones.
///
/// ```
/// use inertial::consistency::check_rounded_inertia;
/// use inertial::spatial::Parameters;
/// // A point mass of 2 kg at 1/3 m, with two decimals: Ixx should be 2/9.
/// let printed = Parameters::from([2.0, 0.0, 0.0, 0.67, 0.22, 0.0, 0.0, 0.22, 0.0, 0.0]);
/// assert!(check_rounded_inertia(&printed, &Parameters::repeat(0.005))?.consistent);
/// assert!(!check_rounded_inertia(&printed, &Parameters::repeat(0.0005))?.consistent);
/// # Ok::<(), inertial::Error>(())
/// ```
pub fn check_rounded_inertia(
    printed: &Parameters<f64>,
    half_units: &Parameters<f64>,
) -> Result<RoundingVerdict> {
    if half_units.iter().any(|&u| !(u > 0.0 && u.is_finite())) {
        return Err(Error::Numeric("half a unit of the last digit must be above zero".into()));
    }
    let mut body = Semidefinite::body(0);
    body.terms.push((10, -Matrix4::identity()));
    let side = |k: usize, sign: f64| Inequality {
        coefficients: vec![(k, sign)],
        least: sign * printed[k] - half_units[k],
    };
    let mut cost = DVector::zeros(11);
    cost[10] = -1.0;
    let problem = LinearConic {
        cost,
        semidefinite: vec![body],
        norms: Vec::new(),
        inequalities: (0..10).flat_map(|k| [side(k, 1.0), side(k, -1.0)]).collect(),
    };
    let matrix = pseudo::matrix(printed.as_slice());
    let mut start = DVector::from_column_slice(printed.as_slice()).push(0.0);
    start[10] = symmetric_eigen(&matrix)?.values[0] - matrix.amax().max(half_units.amax());
    let found = problem.minimize(&start)?;
    let (best, bound) = (-found.value, -found.lower_bound);
    Ok(RoundingVerdict { consistent: bound >= 0.0, best_min_eigenvalue: best, upper_bound: bound })
}
