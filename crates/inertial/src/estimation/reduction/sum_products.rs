//! Sums of products of long columns.

/// Returns the scalar product, with four parallel sums: the compiler must not reorder a single sum.
#[inline(always)]
pub(crate) fn dot(a: &[f64], b: &[f64]) -> f64 {
    let (a4, b4) = (a.chunks_exact(4), b.chunks_exact(4));
    let tail: f64 = a4.remainder().iter().zip(b4.remainder()).map(|(x, y)| x * y).sum();
    let mut sums = [0.0; 4];
    for (x, y) in a4.zip(b4) {
        (0..4).for_each(|i| sums[i] += x[i] * y[i]);
    }
    sums.iter().sum::<f64>() + tail
}
