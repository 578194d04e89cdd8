//! Cholesky solver for many symmetric positive definite systems of one size.

use bytemuck::cast_slice_mut;
use faer::dyn_stack::{MemBuffer, MemStack, StackReq};
use faer::linalg::cholesky::llt::factor::{LltRegularization, cholesky_in_place, cholesky_in_place_scratch};
use faer::linalg::cholesky::llt::solve::solve_in_place;
use faer::{MatMut, Par, Spec};
use nalgebra::{DMatrix, DVector};

use crate::portable::Portable;
use crate::{Error, Result, indefinite, view, view_mut, with_number};

/// Cholesky decomposition that reuses its memory from one matrix to the next, for matrices whose rows and columns may
/// differ in scale by many orders of magnitude.
///
/// ```
/// use inertial_dense::Definite;
/// use nalgebra::{dmatrix, dvector};
/// let mut system = Definite::new(2);
/// system.factorize(&dmatrix![2.0, 0.0; 1.0, 2e12], 0.0)?; // the lower triangle is read
/// let mut x = dvector![3.0, 1.0];
/// system.solve_in_place(&mut x)?;
/// assert!((x[0] - 1.5).abs() < 1e-11);
/// # Ok::<(), inertial_dense::Error>(())
/// ```
pub struct Definite {
    factor: DMatrix<f64>,
    scale: DVector<f64>,
    memory: MemBuffer,
}

impl Definite {
    /// Allocates memory for matrices of one size.
    pub fn new(size: usize) -> Self {
        // Memory for both number types, as the choice may change later.
        let need = StackReq::any_of(&[
            cholesky_in_place_scratch::<f64>(size.max(1), Par::Seq, Spec::default()),
            cholesky_in_place_scratch::<Portable>(size.max(1), Par::Seq, Spec::default()),
        ]);
        Self { factor: DMatrix::zeros(size, size), scale: DVector::zeros(size), memory: MemBuffer::new(need) }
    }

    /// Factorizes `A + shift · diag(A)`; only the lower triangle is read. Returns an error if the matrix is not
    /// positive definite. Rows and columns are first scaled to a unit diagonal.
    pub fn factorize(&mut self, a: &DMatrix<f64>, shift: f64) -> Result<()> {
        let n = self.scale.len();
        if a.shape() != (n, n) {
            let (expected, found) = (n * n, a.len());
            return Err(Error::Dimension { what: "matrix to be factorized", expected, found });
        }
        for i in 0..n {
            let d = a[(i, i)];
            if !(d > 0.0 && d.is_finite()) {
                return Err(indefinite());
            }
            self.scale[i] = d.sqrt().recip();
        }
        for j in 0..n {
            let (to, from) = (self.factor.column_mut(j), a.column(j));
            let s = self.scale[j];
            for ((t, f), r) in to.into_iter().zip(&from).zip(&self.scale).skip(j) {
                *t = f * s * r;
            }
            self.factor[(j, j)] = 1.0 + shift;
        }
        if n == 0 {
            return Ok(());
        }
        with_number!(T, {
            cholesky_in_place(
                view_mut::<T>(&mut self.factor),
                LltRegularization::default(),
                Par::Seq,
                MemStack::new(&mut self.memory),
                Spec::default(),
            )
            .map_err(|_| indefinite())?;
        });
        // The factorization does not detect values that are not finite.
        if self.factor.diagonal().iter().all(|d| d.is_finite()) { Ok(()) } else { Err(indefinite()) }
    }

    /// Solves with the matrix factorized last.
    pub fn solve_in_place(&mut self, b: &mut DVector<f64>) -> Result<()> {
        let n = self.scale.len();
        if b.len() != n {
            return Err(Error::Dimension { what: "right-hand side", expected: n, found: b.len() });
        }
        if n > 0 {
            b.component_mul_assign(&self.scale);
            with_number!(T, {
                let rhs = MatMut::<T>::from_column_major_slice_mut(cast_slice_mut(b.as_mut_slice()), n, 1);
                solve_in_place(view::<T>(&self.factor), rhs, Par::Seq, MemStack::new(&mut self.memory));
            });
            b.component_mul_assign(&self.scale);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn solves_badly_scaled_systems_and_refuses_indefinite_ones() {
        let n = 40;
        let mut state = 3u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((state >> 11) as f64) / ((1u64 << 52) as f64) - 1.0
        };
        let half = DMatrix::from_fn(n, n, |_, _| next());
        let scale = DVector::from_fn(n, |i, _| 10f64.powf((i % 13) as f64 - 6.0));
        let mut a = &half * half.transpose() + DMatrix::identity(n, n);
        for (i, j) in (0..n).flat_map(|i| (0..n).map(move |j| (i, j))) {
            a[(i, j)] *= scale[i] * scale[j];
        }
        let x = DVector::from_fn(n, |i, _| next() / scale[i]);
        let mut system = Definite::new(n);
        system.factorize(&a, 0.0).unwrap();
        let mut found = &a * &x;
        system.solve_in_place(&mut found).unwrap();
        // The condition number after scaling is about 1e2.
        assert!((found - &x).component_mul(&scale).amax() < 1e-11);
        a[(3, 2)] = 2.0 * (a[(3, 3)] * a[(2, 2)]).sqrt();
        assert!(system.factorize(&a, 0.0).is_err());
        // The entry is twice its bound; a shift of three makes the matrix definite.
        assert!(system.factorize(&a, 3.0).is_ok());
        a[(5, 5)] = f64::NAN;
        assert!(system.factorize(&a, 0.0).is_err());
        assert!(system.factorize(&DMatrix::identity(2, 2), 0.0).is_err());
    }
}
