//! Certificate of a motion: rank, expected standard errors, and causes of weak excitation.

use nalgebra::DMatrix;
use schemars::JsonSchema;
use serde::Serialize;

use super::columns::Columns;
use super::criteria::inverse;
use super::scaling::unit_diagonal;
use crate::Result;
use crate::linalg::{Svd, singular_values};

/// Relative eigenvalue of the information for unit columns, below which it counts as rounding error: singular values of 3e-7 and
/// less, which are useless in any experiment.
const UNEXCITED: f64 = 1e-13;

/// Relative standard error from which a parameter is weakly excited.
const WEAK: f64 = 0.3;

/// Inflation of the standard error by the other unknowns, from which correlation is reported as the reason.
const INFLATED: f64 = 5.0;

/// Expected accuracy of one unknown.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct ExpectedAccuracy {
    /// Name of a base parameter as `BODY.NAME`, or of a joint term as `JOINT.TERM`.
    pub name: String,
    /// Value according to the model.
    pub value: f64,
    /// Expected standard error; infinite (null in JSON) if the unknown is not excited.
    #[schemars(with = "Option<f64>")]
    pub std_error: f64,
    /// Standard error relative to the scale of the parameter.
    #[schemars(with = "Option<f64>")]
    pub relative: f64,
    /// Ratio of the standard error to the one for known other unknowns.
    #[schemars(with = "Option<f64>")]
    pub inflation: f64,
    /// Whether the unknown is weakly excited.
    pub weak: bool,
    /// Reason for weak excitation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Certificate of excitation.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct Certificate {
    /// Number of structurally identifiable base parameters.
    pub structural_rank: usize,
    /// Number of excited base parameters.
    pub rank: usize,
    /// Number of unknowns, including joint terms.
    pub unknowns: usize,
    /// Number of excited unknowns.
    pub excited: usize,
    /// Smallest singular value of the regressor divided by the noise.
    pub smallest_singular_value: f64,
    /// Condition number of the regressor divided by the noise.
    #[schemars(with = "Option<f64>")]
    pub condition: f64,
    /// Condition number with columns of equal length.
    #[schemars(with = "Option<f64>")]
    pub scaled_condition: f64,
    /// Expected accuracy of the base parameters.
    pub base_parameters: Vec<ExpectedAccuracy>,
    /// Expected accuracy of the joint terms.
    pub joint_terms: Vec<ExpectedAccuracy>,
}

impl Certificate {
    /// Creates the certificate from the information of a motion (including prior information, if there is any).
    pub fn new(columns: &Columns, information: &DMatrix<f64>) -> Result<Self> {
        let n = columns.len();
        let scaled = unit_diagonal(information);
        let excitation = Excitation::new(&scaled)?;
        let unexcited_base = singular_values(&excitation.unexcited.rows(0, columns.base).into_owned())?;
        // The columns are orthonormal: directions of joint terms alone yield only rounding errors.
        let unexcited = unexcited_base.into_iter().filter(|s| *s > 1e-6).count();
        let raw = singular_values(information)?;
        let full = (excitation.rank == n).then(|| inverse(information)).flatten();
        let scales = columns.scales();
        let expectation = |i: usize| {
            let alone = information[(i, i)].sqrt().recip();
            let std_error = match &full {
                Some((covariance, _)) => covariance[(i, i)].sqrt(),
                None if excitation.is_unexcited(i) => f64::INFINITY,
                None => excitation.std_error(i) * alone,
            };
            let (relative, inflation) = (std_error / scales[i], std_error / alone);
            let weak = !(relative <= WEAK);
            let reason = weak.then(|| match &full {
                _ if std_error.is_infinite() => "not excited by this motion".to_owned(),
                Some((covariance, _)) if inflation > INFLATED => confusion(columns, covariance, i),
                _ => format!("±{:.0} % even if everything else were known", 100.0 * alone / scales[i]),
            });
            ExpectedAccuracy {
                name: columns.names[i].clone(),
                value: columns.values[i],
                std_error,
                relative,
                inflation,
                weak,
                reason,
            }
        };
        let last = |values: &[f64]| match values {
            [] => 0.0,
            [.., last] => last.max(0.0),
        };
        let ratio = |values: &[f64]| (values.first().copied().unwrap_or(0.0) / last(values)).sqrt();
        Ok(Self {
            structural_rank: columns.base,
            rank: columns.base - unexcited,
            unknowns: n,
            excited: excitation.rank,
            smallest_singular_value: last(&raw).sqrt(),
            condition: ratio(&raw),
            scaled_condition: ratio(&singular_values(&scaled)?),
            base_parameters: (0..columns.base).map(expectation).collect(),
            joint_terms: (columns.base..n).map(expectation).collect(),
        })
    }

    /// Returns all weakly excited unknowns.
    pub fn weak(&self) -> impl Iterator<Item = &ExpectedAccuracy> {
        self.base_parameters.iter().chain(&self.joint_terms).filter(|e| e.weak)
    }
}

/// Excited and unexcited directions, in unknowns of unit columns.
pub(super) struct Excitation {
    pub rank: usize,
    /// Orthonormal basis of the directions that are not excited.
    pub unexcited: DMatrix<f64>,
    svd: Svd,
}

impl Excitation {
    pub fn new(scaled: &DMatrix<f64>) -> Result<Self> {
        let svd = Svd::new(scaled)?;
        let rank = svd.rank(UNEXCITED).rank;
        Ok(Self { rank, unexcited: svd.null_space(rank), svd })
    }

    /// Returns whether an unknown is involved in an unexcited direction.
    pub fn is_unexcited(&self, i: usize) -> bool {
        self.unexcited.row(i).norm() > 1e-6
    }

    /// Returns the standard error in units of the column, within the excited subspace.
    fn std_error(&self, i: usize) -> f64 {
        (0..self.rank).map(|k| self.svd.v[(i, k)].powi(2) / self.svd.values[k]).sum::<f64>().sqrt()
    }

    /// Names the unknowns that are involved in unexcited directions.
    pub fn unexcited_names(&self, columns: &Columns) -> Vec<String> {
        let part = |i: &usize| self.unexcited.row(*i).norm() > 0.05;
        (0..columns.len()).filter(part).map(|i| columns.names[i].clone()).collect()
    }
}

/// Names the unknowns that are confounded with another: those with the largest correlations.
fn confusion(columns: &Columns, covariance: &DMatrix<f64>, i: usize) -> String {
    let correlation =
        |j: usize| (covariance[(i, j)] / (covariance[(i, i)] * covariance[(j, j)]).sqrt()).abs();
    let mut others: Vec<usize> = (0..columns.len()).filter(|&j| j != i).collect();
    others.sort_by(|a, b| correlation(*b).total_cmp(&correlation(*a)));
    let named: Vec<String> = others
        .iter()
        .take(2)
        .map(|&j| format!("{} (correlation {:.2})", columns.names[j], correlation(j)))
        .collect();
    format!("strongly correlated with {}", named.join(" and "))
}
