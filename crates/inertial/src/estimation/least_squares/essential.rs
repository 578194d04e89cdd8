//! Essential parameters: those that are significant against their standard error.

use schemars::JsonSchema;
use serde::Serialize;

use crate::Result;
use crate::estimation::equations::Equations;
use crate::estimation::least_squares::fit::LeastSquares;
use crate::estimation::reduction::summary::Summary;

/// Number of standard errors below which an unknown is not significant.
const COVERED: f64 = 2.0;

/// Essential unknowns.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct Essential {
    /// Essential parameters.
    pub parameters: Vec<String>,
    /// Dropped parameters, in the order of dropping.
    pub dropped: Vec<String>,
    #[serde(skip)]
    pub(crate) fit: LeastSquares,
}

/// Drops the unknown that is smallest relative to its standard error, one after the other, until all remaining ones exceed two
/// standard errors.
pub(crate) fn essential(
    equations: &Equations<'_>,
    summary: &Summary,
    full: &LeastSquares,
) -> Result<Essential> {
    let mut only = vec![true; equations.len()];
    let mut dropped = Vec::new();
    loop {
        let fit = LeastSquares::with_noise(equations, summary, full.noise.clone(), Some(&only))?;
        let errors = fit.std_errors();
        let ratio = |i: usize| if errors[i] > 0.0 { fit.values[i].abs() / errors[i] } else { 0.0 };
        let least = (0..only.len()).filter(|&i| only[i]).min_by(|&a, &b| ratio(a).total_cmp(&ratio(b)));
        match least.filter(|&i| ratio(i) < COVERED) {
            Some(i) if dropped.len() + 1 < only.len() => {
                only[i] = false;
                dropped.push(equations.names[i].clone());
            }
            _ => {
                let kept = equations.names.iter().zip(&only).filter(|(_, only)| **only);
                return Ok(Essential { parameters: kept.map(|(n, _)| n.clone()).collect(), dropped, fit });
            }
        }
    }
}
