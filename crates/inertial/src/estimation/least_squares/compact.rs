//! Compact form of a summary, for storage and transport.
//!
//! Blocks of a log need many times the memory of the factors. Standard errors need little more of each block than its score near
//! the estimate, that is the products of its columns with the residual. The compact form has the scores at the weighted
//! least-squares estimate. A reader completes each block with its share of the products of all rows.

use schemars::JsonSchema;
use serde::Serialize;

use crate::estimation::equations::Equations;
use crate::estimation::least_squares::fit::{LeastSquares, Weighting};
use crate::estimation::reduction::blocks::Gram;
use crate::estimation::reduction::stored::{Stored, StoredBlock};
use crate::estimation::reduction::summary::Summary;

/// Summary with compact blocks and without factors of differences; it is read as a [`Summary`].
#[derive(Serialize, JsonSchema)]
#[serde(transparent)]
pub struct CompactSummary(Stored);

impl Summary {
    /// Returns the compact form. Estimates and residuals are the same, standard errors almost the same. Residuals have no
    /// whiteness tests.
    pub fn compact(&self, equations: &Equations<'_>) -> CompactSummary {
        // Too few samples for an estimate: any reference is valid.
        let estimate = LeastSquares::new(equations, self, Weighting::Weighted).ok();
        let mut out = Stored::from(self.clone().without_differences());
        for ((stored, channel), factor) in out.channels.iter_mut().zip(&equations.channels).zip(&self.factors)
        {
            let value = |k: &usize| estimate.as_ref().map_or(0.0, |estimate| estimate.values[*k]);
            let reference: Vec<f64> = channel.unknowns.iter().map(value).collect();
            if reference.is_empty() {
                continue;
            }
            stored.blocks = factor.blocks.iter().map(|block| compact(block, &reference)).collect();
            stored.left_out = (factor.left_out.rows > 0).then(|| compact(&factor.left_out, &reference));
            stored.reference = reference;
        }
        out.set_checksum();
        CompactSummary(out)
    }
}

/// Computes the products of the columns of a block with its residual, and the squared residual.
fn compact(block: &Gram, reference: &[f64]) -> StoredBlock {
    if block.rows == 0 {
        return StoredBlock { rows: 0, upper: Vec::new(), score: Vec::new() };
    }
    let n = reference.len();
    let residual: Vec<f64> = reference.iter().map(|x| -x).chain([1.0]).collect();
    let score = |i: usize| residual.iter().enumerate().map(|(j, x)| x * block.at(i, j, n + 1)).sum::<f64>();
    let mut out: Vec<f32> = (0..n).map(|i| score(i) as f32).collect();
    out.push(block.squares(&residual).0 as f32);
    StoredBlock { rows: block.rows, upper: Vec::new(), score: out }
}
