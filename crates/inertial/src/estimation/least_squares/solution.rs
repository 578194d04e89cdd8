//! Minimum-norm solution of a triangular factor.

use nalgebra::{DMatrix, DVector};

use crate::linalg::{Svd, product};
use crate::{Error, Result};

/// Singular value of unit columns, relative to the largest, below which a direction counts as not excited. Excited directions of
/// measured motion are above 1e-5, unexcited ones at the rounding level (1e-12 after long sums).
pub(crate) const UNEXCITED: f64 = 1e-8;

/// Least-squares solution of the rows that a factor of `[A | b]` represents; of least norm, in units of the column norms, in
/// directions that are not excited.
pub(crate) struct Solution {
    pub values: DVector<f64>,
    /// Matrix `V/s` in the units of the unknowns: `rootᵀ AᵀA root = 1` in the excited directions.
    pub root: DMatrix<f64>,
    /// Pseudo-inverse of `AᵀA`.
    pub inverse: DMatrix<f64>,
    /// Number of excited directions.
    pub excited: usize,
    /// Orthonormal basis (scaled unknowns) of the other directions.
    pub unexcited: DMatrix<f64>,
    /// Ratios of unknowns to scaled unknowns; zero for unknowns that are not excited.
    pub scale: DVector<f64>,
}

impl Solution {
    /// Solves the factor `[A | b]`; unknowns that are not in `only` are zero.
    pub fn of_factor(all: &DMatrix<f64>, only: Option<&[bool]>) -> Result<Self> {
        let n = all.ncols() - 1;
        let b = all.column(n).into_owned();
        let mut a = all.columns(0, n).into_owned();
        // Columns in units of their norms: ranks must not depend on units (kg and kg m²).
        let norms: DVector<f64> = DVector::from_fn(n, |j, _| a.column(j).norm());
        let largest = norms.iter().copied().fold(0.0, f64::max);
        if largest == 0.0 {
            return Err(Error::Unobservable(
                "the log holds no motion and no force that excite a parameter".into(),
            ));
        }
        let scale = DVector::from_fn(n, |j, _| {
            let counts = norms[j] > UNEXCITED * largest && only.is_none_or(|only| only[j]);
            if counts { norms[j].recip() } else { 0.0 }
        });
        for (mut column, s) in a.column_iter_mut().zip(scale.iter()) {
            column *= *s;
        }
        let svd = Svd::new(&a)?;
        let excited = svd.rank(UNEXCITED).rank;
        let values = svd.solve(&b, excited, 0.0).component_mul(&scale);
        let mut root = svd.v.columns(0, excited).into_owned();
        for j in 0..excited {
            root.column_mut(j).unscale_mut(svd.values[j]);
        }
        for (mut row, s) in root.row_iter_mut().zip(scale.iter()) {
            row *= *s;
        }
        let inverse = product(&root, &root.transpose());
        Ok(Self { values, root, inverse, excited, unexcited: svd.null_space(excited), scale })
    }
}
