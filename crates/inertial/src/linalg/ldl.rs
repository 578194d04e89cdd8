//! Factorization `A = L D Lᵀ` of symmetric positive definite matrices, in place and without allocation.

/// Factors the row-major `n × n` matrix `a` in place: unit lower `L` below the diagonal, `D` on it.
///
/// The upper triangle is not read. Each pivot must exceed `tolerance(k)`; the index of the first that does not is the
/// error.
pub(crate) fn ldl(a: &mut [f64], n: usize, tolerance: impl Fn(usize) -> f64) -> Result<(), usize> {
    for i in 0..n {
        let (before, row) = a.split_at_mut(i * n);
        let row = &mut row[..=i];
        // Row i of L D, by forward substitution; then divide by D for L.
        for j in 0..i {
            let above = &before[j * n..j * n + j];
            row[j] -= above.iter().zip(&row[..j]).map(|(l, x)| l * x).sum::<f64>();
        }
        for j in 0..i {
            let scaled = row[j] / before[j * n + j];
            row[i] -= scaled * row[j];
            row[j] = scaled;
        }
        if row[i].is_nan() || row[i] <= tolerance(i) {
            return Err(i);
        }
    }
    Ok(())
}

/// Solves `A x = b` in place with the factors of [`ldl`].
pub(crate) fn ldl_solve(a: &[f64], n: usize, x: &mut [f64]) {
    for i in 0..n {
        x[i] -= (0..i).map(|j| a[i * n + j] * x[j]).sum::<f64>();
    }
    for i in 0..n {
        x[i] /= a[i * n + i];
    }
    for i in (0..n).rev() {
        for j in 0..i {
            x[j] -= a[i * n + j] * x[i];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{ldl, ldl_solve};

    #[test]
    fn solves_a_hilbert_matrix() {
        let n = 5;
        let hilbert = |i: usize, j: usize| 1.0 / (i + j + 1) as f64;
        let mut a: Vec<f64> = (0..n * n).map(|k| hilbert(k / n, k % n)).collect();
        let mut x: Vec<f64> =
            (0..n).map(|i| (0..n).map(|j| hilbert(i, j) * (j as f64 - 1.0)).sum()).collect();
        assert_eq!(ldl(&mut a, n, |_| 0.0), Ok(()));
        ldl_solve(&a, n, &mut x);
        // The condition number is 5e5.
        for (i, x) in x.iter().enumerate() {
            assert!((x - (i as f64 - 1.0)).abs() < 1e-10);
        }
    }

    #[test]
    fn names_the_first_pivot_that_is_not_positive() {
        assert_eq!(ldl(&mut [1.0, 0.0, 1.0, 1.0], 2, |_| 0.0), Err(1));
        assert_eq!(ldl(&mut [f64::NAN], 1, |_| 0.0), Err(0));
        assert_eq!(ldl(&mut [], 0, |_| 0.0), Ok(()));
    }
}
