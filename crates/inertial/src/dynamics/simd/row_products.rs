//! Sums of products of rows for information matrices, four samples side by side.

use crate::dynamics::simd::{Four, Lane, PlainFour, has_fused};

/// Adds `Σ yᵢ yⱼ` over all groups to the lower triangle of `sums` (row-major, `n` × `n`), lane by lane; `rows` has `n`
/// numbers per group.
pub(crate) fn add_products(n: usize, rows: &[Four], sums: &mut [Four]) {
    assert!(rows.len().is_multiple_of(n.max(1)) && sums.len() == n * n);
    if n == 0 {
        return;
    }
    dispatch!(has_fused(), products::<PlainFour, FusedFour>(n: usize, rows: &[Four], sums: &mut [Four]));
}

/// Computes `out = matrix · row` for four rows at once; `matrix` is row-major, `n` × `n`.
pub(crate) fn multiply(n: usize, matrix: &[f64], row: &[Four], out: &mut [Four]) {
    assert!(matrix.len() == n * n && row.len() == n && out.len() == n);
    dispatch!(has_fused(), product::<PlainFour, FusedFour>(n: usize, matrix: &[f64], row: &[Four], out: &mut [Four]));
}

#[inline(always)]
fn products<L: Lane<Memory = Four>>(n: usize, rows: &[Four], sums: &mut [Four]) {
    for i in 0..n {
        let sums = &mut sums[(i * n)..=(i * n + i)];
        // Four groups at a time, so that a sum is loaded and stored once for all of them.
        let mut blocks = rows.chunks_exact(4 * n);
        for block in &mut blocks {
            let y = [
                L::load(&block[i]),
                L::load(&block[n + i]),
                L::load(&block[2 * n + i]),
                L::load(&block[3 * n + i]),
            ];
            for (j, sum) in sums.iter_mut().enumerate() {
                let a = y[0].mul_add(L::load(&block[j]), L::load(sum));
                let b = y[1] * L::load(&block[n + j]);
                let a = y[2].mul_add(L::load(&block[2 * n + j]), a);
                let b = y[3].mul_add(L::load(&block[3 * n + j]), b);
                (a + b).store(sum);
            }
        }
        for row in blocks.remainder().chunks_exact(n) {
            let y = L::load(&row[i]);
            for (j, sum) in sums.iter_mut().enumerate() {
                y.mul_add(L::load(&row[j]), L::load(sum)).store(sum);
            }
        }
    }
}

#[inline(always)]
fn product<L: Lane<Memory = Four>>(n: usize, matrix: &[f64], row: &[Four], out: &mut [Four]) {
    let mut i = 0;
    // Four rows of the matrix at a time: each number of the row is loaded once for all of them.
    while i + 4 <= n {
        let m = &matrix[i * n..(i + 4) * n];
        let mut sums = [L::splat(0.0); 4];
        for j in 0..n {
            let y = L::load(&row[j]);
            sums[0] = y.mul_add(L::splat(m[j]), sums[0]);
            sums[1] = y.mul_add(L::splat(m[n + j]), sums[1]);
            sums[2] = y.mul_add(L::splat(m[2 * n + j]), sums[2]);
            sums[3] = y.mul_add(L::splat(m[3 * n + j]), sums[3]);
        }
        for k in 0..4 {
            sums[k].store(&mut out[i + k]);
        }
        i += 4;
    }
    for i in i..n {
        let mut sum = L::splat(0.0);
        for j in 0..n {
            sum = L::load(&row[j]).mul_add(L::splat(matrix[i * n + j]), sum);
        }
        sum.store(&mut out[i]);
    }
}
