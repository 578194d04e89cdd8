//! Certificate of a motion: rank, expected standard errors, and causes of weak excitation.

use nalgebra::DMatrix;
use schemars::JsonSchema;
use serde::Serialize;

use super::columns::Columns;
use super::criteria::inverse;
use super::scaling::unit_diagonal;
use crate::Result;
use crate::linalg::{Svd, singular_values};

/// Eigenvalues of the information in unit columns below this, relative to the largest, are rounding: singular values of
/// 3e-7 and less, which no experiment could use.
const UNSEEN: f64 = 1e-13;

/// A standard error above this part of the parameter's size is weak.
const WEAK: f64 = 0.3;

/// Above this inflation of the standard error by the other unknowns, they are the reason.
const INFLATED: f64 = 5.0;

/// Expected accuracy of one unknown.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct Expectation {
    /// `BODY.NAME` of a base parameter, or `JOINT.TERM`.
    pub name: String,
    /// Value according to the model.
    pub value: f64,
    /// Expected standard error; infinite (null in JSON) where the motion does not show it.
    #[schemars(with = "Option<f64>")]
    pub std_error: f64,
    /// The standard error over the parameter's size.
    #[schemars(with = "Option<f64>")]
    pub relative: f64,
    /// Standard error over the one it would have were all others known.
    #[schemars(with = "Option<f64>")]
    pub inflation: f64,
    /// Whether it stays weak.
    pub weak: bool,
    /// Why, where it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// The certificate of excitation.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct Certificate {
    /// Number of base parameters that the structure of the mechanism allows to know.
    pub structural_rank: usize,
    /// Number of them that this motion shows.
    pub rank: usize,
    /// Number of unknowns, terms of the joints included.
    pub unknowns: usize,
    /// Number of unknowns that this motion shows.
    pub excited: usize,
    /// Smallest singular value of the regressor divided by the noise.
    pub smallest_singular_value: f64,
    /// Condition number of the regressor divided by the noise.
    #[schemars(with = "Option<f64>")]
    pub condition: f64,
    /// Condition number with columns of equal length.
    #[schemars(with = "Option<f64>")]
    pub scaled_condition: f64,
    /// The base parameters.
    pub base_parameters: Vec<Expectation>,
    /// The terms of the joints.
    pub joint_terms: Vec<Expectation>,
}

impl Certificate {
    /// Creates the certificate from the information of a motion (with prior information, where that counts).
    pub fn new(columns: &Columns, information: &DMatrix<f64>) -> Result<Self> {
        let n = columns.len();
        let scaled = unit_diagonal(information);
        let seen = Seen::new(&scaled)?;
        let hidden_base = singular_values(&seen.hidden.rows(0, columns.base).into_owned())?;
        // Of orthonormal columns: those of joint terms alone leave rounding.
        let hidden = hidden_base.into_iter().filter(|s| *s > 1e-6).count();
        let raw = singular_values(information)?;
        let full = (seen.rank == n).then(|| inverse(information)).flatten();
        let scales = columns.scales();
        let expectation = |i: usize| {
            let alone = information[(i, i)].sqrt().recip();
            let std_error = match &full {
                Some((covariance, _)) => covariance[(i, i)].sqrt(),
                None if seen.hides(i) => f64::INFINITY,
                None => seen.std_error(i) * alone,
            };
            let (relative, inflation) = (std_error / scales[i], std_error / alone);
            let weak = !(relative <= WEAK);
            let reason = weak.then(|| match &full {
                _ if std_error.is_infinite() => "this motion does not show it".to_owned(),
                Some((covariance, _)) if inflation > INFLATED => confusion(columns, covariance, i),
                _ => format!("±{:.0} % even if everything else were known", 100.0 * alone / scales[i]),
            });
            Expectation {
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
            rank: columns.base - hidden,
            unknowns: n,
            excited: seen.rank,
            smallest_singular_value: last(&raw).sqrt(),
            condition: ratio(&raw),
            scaled_condition: ratio(&singular_values(&scaled)?),
            base_parameters: (0..columns.base).map(expectation).collect(),
            joint_terms: (columns.base..n).map(expectation).collect(),
        })
    }

    /// Returns all weakly excited unknowns.
    pub fn weak(&self) -> impl Iterator<Item = &Expectation> {
        self.base_parameters.iter().chain(&self.joint_terms).filter(|e| e.weak)
    }
}

/// Excited and unexcited directions, in unknowns of unit columns.
pub(super) struct Seen {
    pub rank: usize,
    /// Orthonormal basis of what it does not show.
    pub hidden: DMatrix<f64>,
    svd: Svd,
}

impl Seen {
    pub fn new(scaled: &DMatrix<f64>) -> Result<Self> {
        let svd = Svd::new(scaled)?;
        let rank = svd.rank(UNSEEN).rank;
        Ok(Self { rank, hidden: svd.null_space(rank), svd })
    }

    /// Returns whether an unknown has a part in what is not shown.
    pub fn hides(&self, i: usize) -> bool {
        self.hidden.row(i).norm() > 1e-6
    }

    /// Standard error in units of the column, within what is shown.
    fn std_error(&self, i: usize) -> f64 {
        (0..self.rank).map(|k| self.svd.v[(i, k)].powi(2) / self.svd.values[k]).sum::<f64>().sqrt()
    }

    /// The combinations that are not shown, in words: the unknowns with a part in them.
    pub fn hidden_names(&self, columns: &Columns) -> Vec<String> {
        let part = |i: &usize| self.hidden.row(*i).norm() > 0.05;
        (0..columns.len()).filter(part).map(|i| columns.names[i].clone()).collect()
    }
}

/// The unknowns that another is confused with: those of the largest correlations.
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
