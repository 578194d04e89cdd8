//! Sums of products of long columns.

use pulp::Simd;

use crate::simd::{Kernel, Lanes, dispatch};

/// Computes the products of `weights` with the parts of a column that begin at each of `starts`.
///
/// ```
/// let mut out = [0.0; 2];
/// inertial_dense::window_sums(&[1.0, 10.0], &[1.0, 2.0, 3.0, 4.0], &[0, 2], &mut out);
/// assert_eq!(out, [21.0, 43.0]);
/// ```
///
/// # Panics
///
/// Panics if a part exceeds the column.
pub fn window_sums(weights: &[f64], column: &[f64], starts: &[usize], out: &mut [f64]) {
    dispatch(WindowSums { weights, column, starts, out });
}

/// Adds the sums of products of the first `width` columns of a block of rows, which holds them column by column, to the entries on and
/// above the diagonal of a symmetric matrix, row after row.
///
/// ```
/// let mut upper = [0.0; 3];
/// inertial_dense::add_products(&[1.0, 2.0, 3.0, 4.0], 2, 2, &mut upper);
/// assert_eq!(upper, [5.0, 11.0, 25.0]);
/// ```
///
/// # Panics
///
/// Panics if the block has fewer columns.
pub fn add_products(block: &[f64], rows: usize, width: usize, upper: &mut [f64]) {
    dispatch(Products { block: &block[..rows * width], rows, width, upper });
}

/// Number of windows that are summed together; their sums are independent of each other.
const WINDOWS: usize = 8;

struct WindowSums<'a> {
    weights: &'a [f64],
    column: &'a [f64],
    starts: &'a [usize],
    out: &'a mut [f64],
}

impl Kernel for WindowSums<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd, const ROUNDED: bool>(self, lanes: Lanes<S, ROUNDED>) {
        let Self { weights, column, starts, out } = self;
        let window = |start: usize| &column[start..start + weights.len()];
        let (starts, rest_starts) = starts.as_chunks::<WINDOWS>();
        let (out, rest) = out.as_chunks_mut::<WINDOWS>();
        for (out, starts) in out.iter_mut().zip(starts) {
            *out = products(lanes, [weights], starts.map(window)).map(|[sum]| sum);
        }
        for (out, &start) in rest.iter_mut().zip(rest_starts) {
            *out = dot(lanes, weights, window(start));
        }
    }
}

struct Products<'a> {
    block: &'a [f64],
    rows: usize,
    width: usize,
    upper: &'a mut [f64],
}

impl Kernel for Products<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd, const ROUNDED: bool>(self, lanes: Lanes<S, ROUNDED>) {
        let Self { block, rows, width, upper } = self;
        let column = |i: usize| &block[i * rows..(i + 1) * rows];
        let mut rest = upper;
        for i in 0..width {
            let (entries, after) = rest.split_at_mut(width - i);
            rest = after;
            let (entries, last) = entries.as_chunks_mut::<4>();
            let mut j = i;
            for entries in entries {
                let sums =
                    products(lanes, [column(i)], [column(j), column(j + 1), column(j + 2), column(j + 3)]);
                entries.iter_mut().zip(sums).for_each(|(entry, [sum])| *entry += sum);
                j += 4;
            }
            for entry in last {
                *entry += dot(lanes, column(i), column(j));
                j += 1;
            }
        }
    }
}

/// Computes the products of each of `b` with each of `a`, all of the same length; their sums are independent of each other.
#[inline(always)]
pub(crate) fn products<S: Simd, const ROUNDED: bool, const P: usize, const Q: usize>(
    lanes: Lanes<S, ROUNDED>,
    a: [&[f64]; P],
    b: [&[f64]; Q],
) -> [[f64; P]; Q] {
    let (a, b) = (a.map(S::as_simd_f64s), b.map(S::as_simd_f64s));
    let count = a[0].0.len();
    // Slices of one length need no further checks.
    let (heads, others) = (a.map(|a| &a.0[..count]), b.map(|b| &b.0[..count]));
    let mut sums = [[lanes.splat(0.0); P]; Q];
    for i in 0..count {
        let mut own = [lanes.splat(0.0); P];
        for p in 0..P {
            own[p] = heads[p][i];
        }
        for q in 0..Q {
            let other = others[q][i];
            for p in 0..P {
                sums[q][p] = lanes.multiply_add(own[p], other, sums[q][p]);
            }
        }
    }
    let mut out = [[0.0; P]; Q];
    for q in 0..Q {
        for p in 0..P {
            out[q][p] = lanes.sum([sums[q][p]]) + tail(a[p].1, b[q].1);
        }
    }
    out
}

/// Computes the product of two columns with four sums.
#[inline(always)]
pub(crate) fn dot<S: Simd, const ROUNDED: bool>(lanes: Lanes<S, ROUNDED>, a: &[f64], b: &[f64]) -> f64 {
    let ((a, a_tail), (b, b_tail)) = (S::as_simd_f64s(a), S::as_simd_f64s(b));
    let ((a4, a), (b4, b)) = (a.as_chunks::<4>(), b.as_chunks::<4>());
    let mut sums = [lanes.splat(0.0); 4];
    for (a, b) in a4.iter().zip(b4) {
        for k in 0..4 {
            sums[k] = lanes.multiply_add(a[k], b[k], sums[k]);
        }
    }
    for (a, b) in a.iter().zip(b) {
        sums[0] = lanes.multiply_add(*a, *b, sums[0]);
    }
    lanes.sum(sums) + tail(a_tail, b_tail)
}

/// Computes the product of the last entries, which do not fill a register.
#[inline(always)]
fn tail(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::tests::with_all;

    fn number(k: usize) -> f64 {
        ((k * k * 31 + 7 * k) % 101) as f64 / 37.0 - 1.0
    }

    fn plain(a: &[f64], b: &[f64]) -> f64 {
        a.iter().zip(b).map(|(a, b)| a * b).sum()
    }

    struct Window<'a>(&'a [f64], &'a [f64], &'a [usize]);

    impl Kernel for Window<'_> {
        type Output = Vec<f64>;

        fn run<S: Simd, const ROUNDED: bool>(self, lanes: Lanes<S, ROUNDED>) -> Vec<f64> {
            let mut out = vec![0.0; self.2.len()];
            WindowSums { weights: self.0, column: self.1, starts: self.2, out: &mut out }.run(lanes);
            out
        }
    }

    #[test]
    fn window_sums_are_products_with_parts() {
        let column: Vec<f64> = (0..200).map(number).collect();
        let starts: Vec<usize> = (0..21).map(|k| 6 * k + k % 3).collect();
        for length in [0, 1, 3, 4, 5, 51, 64] {
            let weights: Vec<f64> = (0..length).map(|k| number(k + 500)).collect();
            let [fused, rounded, portable] = with_all(|| Window(&weights, &column, &starts));
            assert_eq!(rounded, portable);
            for (k, &start) in starts.iter().enumerate() {
                // At most 64 products of numbers below two.
                let expected = plain(&weights, &column[start..start + length]);
                assert!((rounded[k] - expected).abs() < 1e-12 && (fused[k] - expected).abs() < 1e-12);
            }
        }
    }

    #[test]
    fn products_of_columns_are_added() {
        for (rows, width) in [(1, 1), (3, 2), (17, 9), (64, 6)] {
            let block: Vec<f64> = (0..rows * (width + 1)).map(number).collect();
            let mut upper = vec![1.0; width * (width + 1) / 2];
            add_products(&block, rows, width, &mut upper);
            let column = |i: usize| &block[i * rows..(i + 1) * rows];
            let pairs = (0..width).flat_map(|i| (i..width).map(move |j| (i, j)));
            for ((i, j), found) in pairs.zip(&upper) {
                assert!((found - 1.0 - plain(column(i), column(j))).abs() < 1e-12, "{rows} {width} {i} {j}");
            }
        }
    }
}
