//! Scaling of information matrices.

use nalgebra::DMatrix;

/// Divides rows and columns by the square root of the diagonal; those with a zero diagonal stay zero.
pub(super) fn unit_diagonal(m: &DMatrix<f64>) -> DMatrix<f64> {
    let scale: Vec<f64> =
        m.diagonal().iter().map(|d| if *d > 0.0 { d.sqrt().recip() } else { 0.0 }).collect();
    DMatrix::from_fn(m.nrows(), m.ncols(), |i, j| m[(i, j)] * scale[i] * scale[j])
}
