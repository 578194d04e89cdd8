//! Product of dense matrices.

use nalgebra::DMatrix;
use pulp::{Arch, Simd, WithSimd};

/// Computes the product `a b` with the same bits on every processor: every entry is summed in the order of the inner
/// index, and products and sums are rounded one by one. For matrices of dozens of rows it is several times as fast as
/// nalgebra's operator.
///
/// ```
/// use inertial_dense::product;
/// use nalgebra::dmatrix;
/// let c = product(&dmatrix![1.0, 2.0; 3.0, 4.0], &dmatrix![5.0; 6.0]);
/// assert_eq!(c, dmatrix![17.0; 39.0]);
/// ```
///
/// # Panics
///
/// Panics if the sizes do not match, as nalgebra's operator does.
pub fn product(a: &DMatrix<f64>, b: &DMatrix<f64>) -> DMatrix<f64> {
    assert_eq!(a.ncols(), b.nrows(), "matrices of sizes that do not match");
    let mut out = DMatrix::zeros(a.nrows(), b.ncols());
    let (rows, inner) = a.shape();
    if rows > 0 && inner > 0 {
        let (a, b) = (a.as_slice(), b.as_slice());
        Arch::new().dispatch(Product { a, b, out: out.as_mut_slice(), rows, inner });
    }
    out
}

/// Numbers of rows and columns of the result that are summed together, in registers.
const ROWS: usize = 8;
const COLUMNS: usize = 4;

struct Product<'a> {
    a: &'a [f64],
    b: &'a [f64],
    out: &'a mut [f64],
    rows: usize,
    inner: usize,
}

impl WithSimd for Product<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Self { a, b, out, rows, inner } = self;
        for (out, b) in out.chunks_mut(COLUMNS * rows).zip(b.chunks(COLUMNS * inner)) {
            if b.len() < COLUMNS * inner {
                for (out, b) in out.chunks_exact_mut(rows).zip(b.chunks_exact(inner)) {
                    column(a, b, out, 0);
                }
                continue;
            }
            let (b0, rest) = b.split_at(inner);
            let (b1, rest) = rest.split_at(inner);
            let (b2, b3) = rest.split_at(inner);
            let mut first = 0;
            while first + ROWS <= rows {
                let mut sums = [[0.0; ROWS]; COLUMNS];
                for ((((a, x), y), z), w) in a.chunks_exact(rows).zip(b0).zip(b1).zip(b2).zip(b3) {
                    if let Some(a) = a[first..].first_chunk::<ROWS>() {
                        add(&mut sums[0], a, *x);
                        add(&mut sums[1], a, *y);
                        add(&mut sums[2], a, *z);
                        add(&mut sums[3], a, *w);
                    }
                }
                for (out, sums) in out.chunks_exact_mut(rows).zip(&sums) {
                    out[first..first + ROWS].copy_from_slice(sums);
                }
                first += ROWS;
            }
            for (out, b) in out.chunks_exact_mut(rows).zip([b0, b1, b2, b3]) {
                column(a, b, out, first);
            }
        }
    }
}

#[inline(always)]
fn add(sums: &mut [f64; ROWS], a: &[f64; ROWS], x: f64) {
    for i in 0..ROWS {
        sums[i] += a[i] * x;
    }
}

/// Computes one column of the result, from row `first` on.
#[inline(always)]
fn column(a: &[f64], b: &[f64], out: &mut [f64], first: usize) {
    for (a, x) in a.chunks_exact(out.len()).zip(b) {
        for (sum, a) in out[first..].iter_mut().zip(&a[first..]) {
            *sum += a * x;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_entry_is_the_sum_in_order() {
        let mut state = 9u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((state >> 11) as f64) / ((1u64 << 52) as f64) - 1.0
        };
        for (rows, inner, columns) in
            [(1, 1, 1), (8, 5, 4), (9, 6, 5), (7, 3, 11), (40, 33, 26), (3, 0, 2), (0, 3, 2), (5, 4, 0)]
        {
            let a = DMatrix::from_fn(rows, inner, |_, _| next());
            let b = DMatrix::from_fn(inner, columns, |_, _| next());
            let c = product(&a, &b);
            assert_eq!(c.shape(), (rows, columns));
            for (i, j) in (0..rows).flat_map(|i| (0..columns).map(move |j| (i, j))) {
                let expected = (0..inner).fold(0.0, |sum, k| sum + a[(i, k)] * b[(k, j)]);
                assert_eq!(c[(i, j)].to_bits(), expected.to_bits(), "{rows} {inner} {columns}");
            }
        }
    }
}
