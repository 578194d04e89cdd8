//! Parameters of least norm among all that fit the data equally well: the solution given by the pseudo-inverse of the regressor.

use nalgebra::{DMatrix, DVector};

use crate::Result;
use crate::estimation::least_squares::fit::LeastSquares;
use crate::identifiability::Regrouping;
use crate::linalg::{Svd, null_space};

/// Relative singular value below which directions of a basis count as dependent. The basis is orthonormal up to its units.
const DEPENDENT: f64 = 1e-12;

/// Returns all parameters of least Euclidean norm (including joint terms) among those that a least-squares fit cannot distinguish,
/// and the corresponding unknowns.
///
/// Let `u = M x` be the unknowns of parameters and joint terms `x`, and `C` a basis orthogonal to the directions that are not
/// excited. The solution is the shortest `x` with `Cᵀ M x = Cᵀ u` for the fitted `u`.
pub(crate) fn least_norm(regrouping: &Regrouping, fit: &LeastSquares) -> Result<(Vec<f64>, Vec<f64>)> {
    regrouping.check_listed()?;
    let (unknowns, parameters) = (fit.values.len(), regrouping.parameters);
    let terms = unknowns - regrouping.rank();
    let mut all = DMatrix::zeros(unknowns, parameters + terms);
    for (row, combination) in regrouping.combinations.iter().enumerate() {
        combination.iter().for_each(|&(column, x)| all[(row, column)] = x);
    }
    for term in 0..terms {
        all[(regrouping.rank() + term, parameters + term)] = 1.0;
    }
    let mut unexcited = fit.unexcited.clone();
    for (mut row, &scale) in unexcited.row_iter_mut().zip(fit.scale()) {
        row *= if scale > 0.0 { scale } else { 1.0 };
    }
    let excited = if unexcited.ncols() == 0 {
        DMatrix::identity(unknowns, unknowns)
    } else {
        null_space(&unexcited.transpose(), DEPENDENT)?.1
    };
    let map = excited.tr_mul(&all);
    let found = Svd::new(&map)?.solve(&excited.tr_mul(&fit.values), map.nrows(), 0.0);
    let values: DVector<f64> = all * &found;
    Ok((found.as_slice()[..parameters].to_vec(), values.as_slice().to_vec()))
}
