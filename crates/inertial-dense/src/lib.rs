//! QR, SVD, Cholesky and symmetric eigenvalues of dense matrices, and rank decisions with their margin.
//!
//! This is a separate crate, without generics in its interface, because faer's decompositions take most of a minute to
//! compile: they are compiled once and not with every change of the library. Use it as `inertial::linalg`.
//!
//! Results have the same bits on every processor if this is enabled by [`set_reproducible`].

use std::sync::atomic::{AtomicBool, Ordering};

use bytemuck::{Pod, cast, cast_slice, cast_slice_mut};
use faer::dyn_stack::{MemBuffer, MemStack, StackReq};
use faer::linalg::qr::col_pivoting::{factor, solve};
use faer::linalg::solvers::{Llt, SelfAdjointEigen, Solve, Svd as FaerSvd};
use faer::perm::PermRef;
use faer::{Conj, MatMut, MatRef, Par, Side};
use nalgebra::{DMatrix, DVector, SMatrix, SVector};

mod definite;
mod portable;
mod product;
mod reflections;
mod simd;
mod sums;
mod triangle;
mod vectorized;
pub use definite::Definite;
use portable::Portable;
pub use product::product;
pub use sums::{add_products, window_sums};
pub use triangle::Triangle;
pub use vectorized::vectorized;

/// Error of a decomposition.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Error {
    /// An argument of the wrong size.
    #[error("{what} has {found} entries, expected {expected}")]
    Dimension {
        /// Argument.
        what: &'static str,
        /// Expected number of entries.
        expected: usize,
        /// Number of entries found.
        found: usize,
    },
    /// A computation that has no result for this input.
    #[error("{0}")]
    Numeric(String),
}

type Result<T, E = Error> = std::result::Result<T, E>;

/// Whether decompositions of this process have the same bits on every processor.
static REPRODUCIBLE: AtomicBool = AtomicBool::new(false);

/// Sets whether decompositions of this process have the same bits on every processor or are as fast as possible on this
/// one.
pub fn set_reproducible(reproducible: bool) {
    REPRODUCIBLE.store(reproducible, Ordering::Relaxed);
}

/// Returns whether decompositions of this process have the same bits on every processor.
pub fn is_reproducible() -> bool {
    REPRODUCIBLE.load(Ordering::Relaxed)
}

/// Runs code with the number type of the chosen arithmetic.
macro_rules! with_number {
    ($T:ident, $body:expr) => {
        if $crate::is_reproducible() {
            type $T = $crate::portable::Portable;
            $body
        } else {
            type $T = f64;
            $body
        }
    };
}
pub(crate) use with_number;

fn view<T: Pod>(a: &DMatrix<f64>) -> MatRef<'_, T> {
    MatRef::from_column_major_slice(cast_slice(a.as_slice()), a.nrows(), a.ncols())
}

fn view_mut<T: Pod>(a: &mut DMatrix<f64>) -> MatMut<'_, T> {
    let (rows, cols) = a.shape();
    MatMut::from_column_major_slice_mut(cast_slice_mut(a.as_mut_slice()), rows, cols)
}

fn matrix<T: Pod>(a: MatRef<'_, T>) -> DMatrix<f64> {
    DMatrix::from_fn(a.nrows(), a.ncols(), |i, j| cast(a[(i, j)]))
}

fn numbers<T: Pod>(values: &[T]) -> Vec<f64> {
    cast_slice(values).to_vec()
}

fn finite(values: &[f64]) -> Result<()> {
    if values.iter().all(|x| x.is_finite()) {
        Ok(())
    } else {
        Err(Error::Numeric("a matrix to be factorized holds numbers that are not finite".into()))
    }
}

fn indefinite() -> Error {
    Error::Numeric("the matrix is not positive definite".into())
}

fn no_convergence() -> Error {
    Error::Numeric("a matrix decomposition did not converge".into())
}

/// Rank decision with its margin, the distance between the values on both sides of the threshold.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rank {
    /// Number of values that count as non-zero.
    pub rank: usize,
    /// Last value kept, relative to the largest (one if none is kept).
    pub kept: f64,
    /// First value dropped, relative to the largest (zero if none is dropped).
    pub dropped: f64,
}

impl Rank {
    /// Decides the rank from values in descending order; values not above `tolerance` times the first count as zero.
    ///
    /// ```
    /// use inertial_dense::Rank;
    /// let rank = Rank::decide(&[2.0, 1.0, 1e-15], 1e-9);
    /// assert_eq!((rank.rank, rank.kept, rank.dropped), (2, 0.5, 5e-16));
    /// ```
    pub fn decide(descending: &[f64], tolerance: f64) -> Self {
        let largest = descending.first().copied().unwrap_or(0.0);
        if largest <= 0.0 {
            return Self { rank: 0, kept: 1.0, dropped: 0.0 };
        }
        let rank = descending.iter().take_while(|&&s| s > tolerance * largest).count();
        let relative = |i: usize| descending.get(i).map(|s| s / largest);
        Self {
            rank,
            kept: rank.checked_sub(1).and_then(relative).unwrap_or(1.0),
            dropped: relative(rank).unwrap_or(0.0),
        }
    }

    /// Returns kept over dropped: the larger, the clearer the decision (infinite if nothing is dropped).
    pub fn margin(&self) -> f64 {
        self.kept / self.dropped
    }
}

/// Singular value decomposition `A = U diag(s) Vᵀ`, with square `V` and thin `U`.
#[derive(Debug, Clone)]
pub struct Svd {
    /// Left singular vectors, one column for each singular value.
    pub u: DMatrix<f64>,
    /// Singular values, descending.
    pub values: DVector<f64>,
    /// Right singular vectors; the columns beyond the singular values complete them to a basis.
    pub v: DMatrix<f64>,
}

impl Svd {
    /// Decomposes `a`.
    pub fn new(a: &DMatrix<f64>) -> Result<Self> {
        finite(a.as_slice())?;
        let size = a.nrows().min(a.ncols());
        if size == 0 {
            return Ok(Self {
                u: DMatrix::zeros(a.nrows(), 0),
                values: DVector::zeros(0),
                v: DMatrix::identity(a.ncols(), a.ncols()),
            });
        }
        with_number!(T, {
            let svd = FaerSvd::<T>::new(view::<T>(a)).map_err(|_| no_convergence())?;
            let values = svd.S().column_vector();
            Ok(Self {
                u: matrix(svd.U().subcols(0, size)),
                values: DVector::from_fn(size, |i, _| cast(values[i])),
                v: matrix(svd.V()),
            })
        })
    }

    /// Returns the rank, with singular values up to `tolerance` times the largest taken as zero.
    pub fn rank(&self, tolerance: f64) -> Rank {
        Rank::decide(self.values.as_slice(), tolerance)
    }

    /// Returns an orthonormal basis of the null space for a given rank.
    pub fn null_space(&self, rank: usize) -> DMatrix<f64> {
        self.v.columns_range(rank..).into_owned()
    }

    /// Computes the least-squares solution of `A x = b` of minimum norm within the leading `rank` singular directions,
    /// each weighted with `s²/(s² + damping²)` (Levenberg's step; zero damping gives the pseudo-inverse).
    pub fn solve(&self, b: &DVector<f64>, rank: usize, damping: f64) -> DVector<f64> {
        let mut x = DVector::zeros(self.v.nrows());
        for i in 0..rank.min(self.values.len()) {
            let s = self.values[i];
            let weight = s / (s * s + damping * damping);
            x.axpy(weight * self.u.column(i).dot(b), &self.v.column(i), 1.0);
        }
        x
    }
}

/// Computes the singular values, descending.
pub fn singular_values(a: &DMatrix<f64>) -> Result<Vec<f64>> {
    finite(a.as_slice())?;
    if a.is_empty() {
        return Ok(Vec::new());
    }
    with_number!(T, Ok(numbers(&view::<T>(a).singular_values().map_err(|_| no_convergence())?)))
}

/// Computes the rank of `a`, with singular values up to `tolerance` times the largest taken as zero.
pub fn rank(a: &DMatrix<f64>, tolerance: f64) -> Result<Rank> {
    Ok(Rank::decide(&singular_values(a)?, tolerance))
}

/// Computes the rank of `a` and an orthonormal basis of its null space, one vector in each column.
pub fn null_space(a: &DMatrix<f64>, tolerance: f64) -> Result<(Rank, DMatrix<f64>)> {
    let svd = Svd::new(a)?;
    let rank = svd.rank(tolerance);
    Ok((rank, svd.null_space(rank.rank)))
}

/// Eigenvalues (ascending) and orthonormal eigenvectors (columns) of a symmetric matrix.
#[derive(Debug, Clone)]
pub struct SymmetricEigen<const N: usize> {
    /// Eigenvalues, ascending.
    pub values: SVector<f64, N>,
    /// Eigenvector of each value, in the same column.
    pub vectors: SMatrix<f64, N, N>,
}

/// Computes the eigenvalues and eigenvectors of a symmetric matrix of fixed size; only the lower triangle is read.
///
/// ```
/// use inertial_dense::symmetric_eigen;
/// use nalgebra::matrix;
/// let eigen = symmetric_eigen(&matrix![2.0, 1.0; 1.0, 2.0])?;
/// assert!((eigen.values[0] - 1.0).abs() < 1e-15 && (eigen.values[1] - 3.0).abs() < 1e-15);
/// # Ok::<(), inertial_dense::Error>(())
/// ```
pub fn symmetric_eigen<const N: usize>(a: &SMatrix<f64, N, N>) -> Result<SymmetricEigen<N>> {
    let (values, vectors) = self_adjoint(a.as_slice(), N)?;
    Ok(SymmetricEigen {
        values: SVector::from_fn(|i, _| values[i]),
        vectors: SMatrix::from_fn(|i, j| vectors[(i, j)]),
    })
}

fn self_adjoint(a: &[f64], n: usize) -> Result<(Vec<f64>, DMatrix<f64>)> {
    finite(a)?;
    with_number!(T, {
        let view = MatRef::<T>::from_column_major_slice(cast_slice(a), n, n);
        let eigen = SelfAdjointEigen::new(view, Side::Lower).map_err(|_| no_convergence())?;
        Ok((eigen.S().column_vector().iter().map(|x| cast(*x)).collect(), matrix(eigen.U())))
    })
}

/// Computes the eigenvalues (ascending) of a symmetric matrix; only the lower triangle is read.
pub fn symmetric_eigenvalues(a: &DMatrix<f64>) -> Result<Vec<f64>> {
    square(a)?;
    finite(a.as_slice())?;
    if a.is_empty() {
        return Ok(Vec::new());
    }
    with_number!(T, {
        Ok(numbers(&view::<T>(a).self_adjoint_eigenvalues(Side::Lower).map_err(|_| no_convergence())?))
    })
}

fn square(a: &DMatrix<f64>) -> Result<()> {
    if a.is_square() {
        Ok(())
    } else {
        Err(Error::Dimension { what: "square matrix", expected: a.nrows(), found: a.ncols() })
    }
}

/// Cholesky factor of a symmetric positive definite matrix, of which only the lower triangle is read.
#[derive(Debug)]
pub struct Cholesky {
    factor: Option<Factor>,
    size: usize,
}

#[derive(Debug)]
enum Factor {
    Fast(Llt<f64>),
    Portable(Llt<Portable>),
}

impl Cholesky {
    /// Factorizes `a`; returns an error if it is not positive definite.
    pub fn new(a: &DMatrix<f64>) -> Result<Self> {
        square(a)?;
        finite(a.as_slice())?;
        let size = a.nrows();
        let factor = match size {
            0 => None,
            _ if is_reproducible() => {
                Some(Factor::Portable(Llt::new(view::<Portable>(a), Side::Lower).map_err(|_| indefinite())?))
            }
            _ => Some(Factor::Fast(Llt::new(view::<f64>(a), Side::Lower).map_err(|_| indefinite())?)),
        };
        Ok(Self { factor, size })
    }

    /// Solves `A x = b` for each column of `b`, in place.
    pub fn solve_in_place(&self, b: &mut DMatrix<f64>) -> Result<()> {
        if b.nrows() != self.size {
            return Err(Error::Dimension { what: "right-hand side", expected: self.size, found: b.nrows() });
        }
        match &self.factor {
            Some(Factor::Fast(factor)) => factor.solve_in_place(view_mut::<f64>(b)),
            Some(Factor::Portable(factor)) => factor.solve_in_place(view_mut::<Portable>(b)),
            None => {}
        }
        Ok(())
    }

    /// Solves `A x = b` for one vector.
    pub fn solve(&self, b: &DVector<f64>) -> Result<DVector<f64>> {
        let mut x = DMatrix::from_column_slice(b.len(), 1, b.as_slice());
        self.solve_in_place(&mut x)?;
        Ok(x.column(0).into_owned())
    }
}

/// QR decomposition with column pivoting that reuses its memory from one matrix to the next.
///
/// ```
/// use inertial_dense::PivotedQr;
/// use nalgebra::dmatrix;
/// let a = dmatrix![1.0, 0.0; 0.0, 2.0; 1.0, 0.0];
/// let mut qr = PivotedQr::new(3, 2, 1);
/// qr.factorize(&a)?;
/// assert_eq!(qr.rank(1e-12).rank, 2);
/// let mut x = dmatrix![1.0; 4.0; 3.0];
/// qr.least_squares_in_place(&mut x)?; // the solution stands in the first rows
/// assert!((x[0] - 2.0).abs() < 1e-14 && (x[1] - 2.0).abs() < 1e-14);
/// # Ok::<(), inertial_dense::Error>(())
/// ```
pub struct PivotedQr {
    qr: DMatrix<f64>,
    coefficients: DMatrix<f64>,
    order: Vec<usize>,
    position: Vec<usize>,
    diagonal: Vec<f64>,
    memory: MemBuffer,
    right_sides: usize,
}

impl PivotedQr {
    /// Allocates memory for matrices of one shape and up to `right_sides` right-hand sides.
    pub fn new(rows: usize, cols: usize, right_sides: usize) -> Self {
        let size = rows.min(cols);
        let block = factor::recommended_block_size::<f64>(rows.max(1), cols.max(1));
        let (params, portable) = (faer::Spec::default(), faer::Spec::default());
        // Memory for both number types, as the choice may change later.
        let memory = MemBuffer::new(StackReq::any_of(&[
            factor::qr_in_place_scratch::<usize, Portable>(rows, cols, block, Par::Seq, portable),
            factor::qr_in_place_scratch::<usize, f64>(rows, cols, block, Par::Seq, params),
            solve::solve_lstsq_in_place_scratch::<usize, Portable>(rows, cols, block, right_sides, Par::Seq),
            solve::solve_lstsq_in_place_scratch::<usize, f64>(rows, cols, block, right_sides, Par::Seq),
        ]));
        Self {
            qr: DMatrix::zeros(rows, cols),
            coefficients: DMatrix::zeros(block, size),
            order: (0..cols).collect(),
            position: (0..cols).collect(),
            diagonal: vec![0.0; size],
            memory,
            right_sides,
        }
    }

    /// Factorizes `a`, which must have the shape given to [`PivotedQr::new`].
    pub fn factorize(&mut self, a: &DMatrix<f64>) -> Result<()> {
        if a.shape() != self.qr.shape() {
            let (expected, found) = (self.qr.len(), a.len());
            return Err(Error::Dimension { what: "matrix to be factorized", expected, found });
        }
        finite(a.as_slice())?;
        self.qr.copy_from(a);
        if !a.is_empty() {
            with_number!(T, {
                factor::qr_in_place(
                    view_mut::<T>(&mut self.qr),
                    view_mut(&mut self.coefficients),
                    &mut self.order,
                    &mut self.position,
                    Par::Seq,
                    MemStack::new(&mut self.memory),
                    faer::Spec::default(),
                );
            });
        }
        for (i, d) in self.diagonal.iter_mut().enumerate() {
            *d = self.qr[(i, i)].abs();
        }
        Ok(())
    }

    /// Returns the rank, from the diagonal of `R`.
    pub fn rank(&self, tolerance: f64) -> Rank {
        Rank::decide(&self.diagonal, tolerance)
    }

    /// Returns the columns in the order chosen by pivoting.
    pub fn order(&self) -> &[usize] {
        &self.order
    }

    /// Computes least-squares solutions for each column of `b`. They replace its first rows, one for each column of the
    /// matrix, which must have full column rank.
    pub fn least_squares_in_place(&mut self, b: &mut DMatrix<f64>) -> Result<()> {
        let (rows, cols) = self.qr.shape();
        if b.nrows() != rows || b.ncols() > self.right_sides {
            return Err(Error::Dimension { what: "right-hand side", expected: rows, found: b.nrows() });
        }
        if rows < cols || self.diagonal.contains(&0.0) {
            return Err(Error::Numeric(
                "a least-squares problem has fewer independent equations than unknowns".into(),
            ));
        }
        if self.qr.is_empty() {
            return Ok(());
        }
        with_number!(T, {
            let qr = view::<T>(&self.qr);
            solve::solve_lstsq_in_place_with_conj(
                qr,
                view(&self.coefficients),
                qr.subrows(0, cols),
                PermRef::new_checked(&self.order, &self.position, cols),
                Conj::No,
                view_mut(b),
                Par::Seq,
                MemStack::new(&mut self.memory),
            );
        });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns deterministic numbers in (−1, 1) without structure.
    fn numbers(seed: u64) -> impl FnMut() -> f64 {
        let mut state = seed;
        move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((state >> 11) as f64) / ((1u64 << 52) as f64) - 1.0
        }
    }

    fn random(rows: usize, cols: usize, next: &mut impl FnMut() -> f64) -> DMatrix<f64> {
        DMatrix::from_fn(rows, cols, |_, _| next())
    }

    #[test]
    fn svd_and_qr_agree_on_matrices_of_known_rank() {
        let mut next = numbers(1);
        for (m, n, r) in
            [(6, 6, 6), (6, 6, 3), (12, 7, 4), (5, 9, 5), (5, 9, 2), (4, 4, 0), (1, 1, 1), (8, 3, 3)]
        {
            let a = random(m, r, &mut next) * random(r, n, &mut next);
            let svd = Svd::new(&a).unwrap();
            // Products of random factors have singular values far above 1e-9; the others are rounding errors.
            let found = svd.rank(1e-9);
            assert_eq!(found.rank, r);
            assert!(found.dropped < 1e-13 && found.kept > 1e-6);
            let rebuilt =
                &svd.u * DMatrix::from_diagonal(&svd.values) * svd.v.columns(0, m.min(n)).transpose();
            assert!((rebuilt - &a).amax() < 1e-13);
            assert!((svd.v.transpose() * &svd.v - DMatrix::identity(n, n)).amax() < 1e-13);
            let (rank, basis) = null_space(&a, 1e-9).unwrap();
            assert_eq!((rank.rank, basis.ncols()), (r, n - r));
            assert!((&a * basis).amax() < 1e-13);
            let mut qr = PivotedQr::new(m, n, 2);
            qr.factorize(&a).unwrap();
            assert_eq!(qr.rank(1e-9).rank, r);
            // Consistent equations: the minimum-norm solution reproduces the right-hand side.
            let b = &a * DVector::from_fn(n, |_, _| next());
            let x = svd.solve(&b, r, 0.0);
            assert!((&a * &x - &b).amax() < 1e-12);
            if r > 0 {
                assert!((svd.null_space(r).transpose() * x).amax() < 1e-12);
            }
        }
    }

    #[test]
    fn pivoted_least_squares_meets_the_normal_equations() {
        let mut next = numbers(2);
        let mut qr = PivotedQr::new(9, 4, 3);
        for _ in 0..5 {
            let a = random(9, 4, &mut next);
            let b = random(9, 3, &mut next);
            qr.factorize(&a).unwrap();
            let mut x = b.clone();
            qr.least_squares_in_place(&mut x).unwrap();
            let residual = &a * x.rows(0, 4) - &b;
            assert!((a.transpose() * residual).amax() < 1e-13);
        }
        let mut wide = PivotedQr::new(2, 3, 1);
        wide.factorize(&random(2, 3, &mut next)).unwrap();
        assert!(wide.least_squares_in_place(&mut DMatrix::zeros(2, 1)).is_err());
    }

    #[test]
    fn eigenvalues_and_cholesky_of_symmetric_matrices() {
        let mut next = numbers(3);
        let f = SMatrix::<f64, 4, 4>::from_fn(|_, _| next());
        let a = f * f.transpose();
        let eigen = symmetric_eigen(&a).unwrap();
        let rebuilt = eigen.vectors * SMatrix::from_diagonal(&eigen.values) * eigen.vectors.transpose();
        assert!((rebuilt - a).amax() < 1e-14);
        assert!(eigen.values.as_slice().is_sorted());
        let d = DMatrix::from_column_slice(4, 4, a.as_slice());
        let values = symmetric_eigenvalues(&d).unwrap();
        assert!(values.iter().zip(eigen.values.iter()).all(|(x, y)| (x - y).abs() < 1e-14));
        let b = DVector::from_fn(4, |_, _| next());
        let x = Cholesky::new(&d).unwrap().solve(&b).unwrap();
        assert!((d * x - b).amax() < 1e-12);
        assert!(Cholesky::new(&DMatrix::from_diagonal_element(2, 2, -1.0)).is_err());
    }

    #[test]
    fn matrices_that_are_not_finite_are_refused() {
        let bad = DMatrix::from_element(2, 2, f64::NAN);
        assert!(Svd::new(&bad).is_err() && singular_values(&bad).is_err() && Cholesky::new(&bad).is_err());
        assert!(PivotedQr::new(2, 2, 1).factorize(&bad).is_err());
        assert_eq!(rank(&DMatrix::zeros(0, 3), 1e-9).unwrap().rank, 0);
        assert_eq!(null_space(&DMatrix::zeros(0, 3), 1e-9).unwrap().1.ncols(), 3);
        assert_eq!(rank(&DMatrix::zeros(3, 3), 1e-9).unwrap().rank, 0);
        let mut empty = PivotedQr::new(3, 0, 1);
        empty.factorize(&DMatrix::zeros(3, 0)).unwrap();
        empty.least_squares_in_place(&mut DMatrix::zeros(3, 1)).unwrap();
        assert_eq!(Cholesky::new(&DMatrix::zeros(0, 0)).unwrap().solve(&DVector::zeros(0)).unwrap().len(), 0);
    }
}
