//! Optimality criteria on the information matrix, with derivatives.

use nalgebra::DMatrix;

use super::scaling::unit_diagonal;
use crate::Result;
use crate::linalg::{Svd, ldl, ldl_solve};

/// Exponent of the p-norm of the squared relative errors that approximates their maximum. For fifty equal errors it is 1.28 times
/// too large.
const SHARPNESS: i32 = 8;

/// Optimality criterion to minimize.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Criterion {
    /// D-optimality: the logarithm of the geometric mean of the standard errors (along principal axes).
    #[default]
    D,
    /// A-optimality: the logarithm of the root mean square of the standard errors.
    A,
    /// E-optimality: the logarithm of the largest standard error of any direction.
    E,
    /// Cramér–Rao bound: the logarithm of the root mean square of the standard errors, each relative to the scale of its
    /// parameter.
    CramerRao,
    /// Smooth maximum: the logarithm of the largest standard error relative to the scale of its parameter.
    Worst,
    /// Logarithm of the condition number of the regressor.
    Condition,
    /// Condition number with columns scaled to equal length.
    ScaledCondition,
    /// Condition number plus `weight` divided by the mean square of velocities (paper 002, eq. 32).
    Paper {
        /// Weight `w` of the paper.
        weight: f64,
    },
}

/// Value and derivatives of a criterion.
#[derive(Debug, Clone)]
pub struct Value {
    /// Value of the criterion, infinite for singular information.
    pub value: f64,
    /// Derivative with respect to the information matrix.
    pub slope: DMatrix<f64>,
    /// Derivative with respect to the sum of squared velocities.
    pub energy_slope: f64,
}

impl Criterion {
    /// Returns the name of the criterion.
    pub fn name(self) -> &'static str {
        match self {
            Self::D => "d",
            Self::A => "a",
            Self::E => "e",
            Self::CramerRao => "crb",
            Self::Worst => "worst",
            Self::Condition => "condition",
            Self::ScaledCondition => "scaled-condition",
            Self::Paper { .. } => "paper",
        }
    }

    /// Returns the meaning of the criterion's value.
    pub fn meaning(self) -> &'static str {
        match self {
            Self::D => "logarithm of the geometric mean of the standard errors",
            Self::A => "logarithm of the root mean square of the standard errors",
            Self::E => "logarithm of the largest standard error of any direction",
            Self::CramerRao => "logarithm of the root mean square of the relative standard errors",
            Self::Worst => "logarithm of the largest relative standard error",
            Self::Condition => "logarithm of the condition number of the regressor divided by the noise",
            Self::ScaledCondition => "logarithm of the condition number with columns of equal length",
            Self::Paper { .. } => {
                "condition number of the regressor divided by the noise, plus the weight over the mean square of the speeds"
            }
        }
    }

    /// Evaluates the criterion at an information matrix; `scales` are the scales of the unknowns, `energy` is the sum of squared
    /// velocities and their number.
    pub fn evaluate(self, information: &DMatrix<f64>, scales: &[f64], energy: (f64, usize)) -> Result<Value> {
        let n = information.nrows();
        let none = || Value { value: f64::INFINITY, slope: DMatrix::zeros(n, n), energy_slope: 0.0 };
        if n == 0 || information.diagonal().iter().any(|d| !(*d > 0.0 && d.is_finite())) {
            return Ok(none());
        }
        let value = |value: f64, slope: DMatrix<f64>| Value { value, slope, energy_slope: 0.0 };
        let size = n as f64;
        Ok(match self {
            Self::D | Self::A | Self::CramerRao | Self::Worst => {
                let Some((inverse, log_det)) = inverse(information) else { return Ok(none()) };
                if self == Self::D {
                    return Ok(value(-0.5 * log_det / size, inverse * (-0.5 / size)));
                }
                let relative = |i: usize| inverse[(i, i)] * scales[i].powi(-2);
                let largest = (0..n).map(relative).fold(f64::MIN_POSITIVE, f64::max);
                let weight = |i: usize| match self {
                    Self::A => 1.0,
                    Self::CramerRao => scales[i].powi(-2),
                    _ => (relative(i) / largest).powi(SHARPNESS - 1) * scales[i].powi(-2),
                };
                let trace: f64 = (0..n).map(|i| weight(i) * inverse[(i, i)]).sum();
                // d tr(W M⁻¹) = −⟨M⁻¹ W M⁻¹, dM⟩; for the logarithm of a mean of squares or of a p-norm, the factor is ½ / trace.
                let weighted = DMatrix::from_fn(n, n, |i, j| inverse[(i, j)] * weight(j));
                let of = match self {
                    Self::Worst => largest.ln() + (trace / largest).ln() / f64::from(SHARPNESS),
                    _ => (trace / size).ln(),
                };
                value(0.5 * of, weighted * &inverse * (-0.5 / trace))
            }
            Self::E => {
                let Some([_, low]) = extremes(information)? else { return Ok(none()) };
                value(-0.5 * low.0.ln(), low.1 * (-0.5 / low.0))
            }
            Self::Condition => {
                let Some([high, low]) = extremes(information)? else { return Ok(none()) };
                value(0.5 * (high.0 / low.0).ln(), high.1 * (0.5 / high.0) - low.1 * (0.5 / low.0))
            }
            Self::ScaledCondition => {
                let scaled = unit_diagonal(information);
                let Some([high, low]) = extremes(&scaled)? else { return Ok(none()) };
                let inner = high.1 * (0.5 / high.0) - low.1 * (0.5 / low.0);
                let pull = &inner * &scaled;
                let root: Vec<f64> = information.diagonal().iter().map(|d| d.sqrt()).collect();
                // dM'ᵢⱼ = dMᵢⱼ/(rᵢ rⱼ) − ½ M'ᵢⱼ (dMᵢᵢ/Mᵢᵢ + dMⱼⱼ/Mⱼⱼ).
                let slope = DMatrix::from_fn(n, n, |i, j| {
                    let own = if i == j { pull[(i, i)] / information[(i, i)] } else { 0.0 };
                    inner[(i, j)] / (root[i] * root[j]) - own
                });
                value(0.5 * (high.0 / low.0).ln(), slope)
            }
            Self::Paper { weight } => {
                let Some([high, low]) = extremes(information)? else { return Ok(none()) };
                let (sum, count) = energy;
                if !(sum > 0.0) {
                    return Ok(none());
                }
                let condition = (high.0 / low.0).sqrt();
                let slope = (high.1 * (0.5 / high.0) - low.1 * (0.5 / low.0)) * condition;
                let signal = weight * count as f64 / sum;
                Value { value: condition + signal, slope, energy_slope: -signal / sum }
            }
        })
    }
}

/// Returns the inverse and the logarithm of the determinant; `None` if the matrix is singular to working precision.
pub(super) fn inverse(m: &DMatrix<f64>) -> Option<(DMatrix<f64>, f64)> {
    let n = m.nrows();
    // The matrix is symmetric: rows and columns are the same.
    let mut factor = unit_diagonal(m).as_slice().to_vec();
    // Pivots of a matrix with unit diagonal; smaller ones are rounding errors.
    ldl(&mut factor, n, |_| 1e-14).ok()?;
    let root: Vec<f64> = m.diagonal().iter().map(|d| d.sqrt()).collect();
    let log_det = (0..n).map(|i| factor[i * n + i].ln() + 2.0 * root[i].ln()).sum();
    let mut inverse = DMatrix::identity(n, n);
    inverse.as_mut_slice().chunks_exact_mut(n).for_each(|column| ldl_solve(&factor, n, column));
    Some((DMatrix::from_fn(n, n, |i, j| inverse[(i, j)] / (root[i] * root[j])), log_det))
}

type Extreme = (f64, DMatrix<f64>);

/// Returns the largest and the smallest eigenvalue with the projections on their vectors; `None` if the matrix is singular.
fn extremes(m: &DMatrix<f64>) -> Result<Option<[Extreme; 2]>> {
    let svd = Svd::new(m)?;
    let last = m.nrows() - 1;
    if !(svd.values[last] > 1e-15 * svd.values[0]) {
        return Ok(None);
    }
    let extreme = |k: usize| {
        let u = svd.v.column(k);
        (svd.values[k], u * u.transpose())
    };
    Ok(Some([extreme(0), extreme(last)]))
}
