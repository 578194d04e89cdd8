//! Parameters of least norm among all that explain the data alike: the solution that the pseudo-inverse of the regressor gives.

use nalgebra::{DMatrix, DVector};

use crate::Result;
use crate::estimation::least_squares::fit::LeastSquares;
use crate::identifiability::Regrouping;
use crate::linalg::{Svd, null_space};

/// Relative singular value below which directions of a basis count as dependent: the basis is orthonormal but for its units.
const DEPENDENT: f64 = 1e-12;

/// Returns all parameters, and the unknowns that they have, of least Euclidean norm (joint terms counted) among those that a
/// least-squares fit does not tell apart.
///
/// With `u = M x` the unknowns of parameters and joint terms `x`, and `C` orthogonal to the directions that the motion did not
/// show, it is the shortest `x` with `Cᵀ M x = Cᵀ u` for the fitted `u`.
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
    let mut unseen = fit.unseen.clone();
    for (mut row, &scale) in unseen.row_iter_mut().zip(fit.scale()) {
        row *= if scale > 0.0 { scale } else { 1.0 };
    }
    let shown = if unseen.ncols() == 0 {
        DMatrix::identity(unknowns, unknowns)
    } else {
        null_space(&unseen.transpose(), DEPENDENT)?.1
    };
    let seen = shown.tr_mul(&all);
    let found = Svd::new(&seen)?.solve(&shown.tr_mul(&fit.values), seen.nrows(), 0.0);
    let values: DVector<f64> = all * &found;
    Ok((found.as_slice()[..parameters].to_vec(), values.as_slice().to_vec()))
}
