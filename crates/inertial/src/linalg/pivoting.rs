//! Elimination with full pivoting, which selects the most independent rows and columns of a rounded matrix.

use rayon::iter::{IndexedParallelIterator, ParallelIterator};
use rayon::slice::ParallelSliceMut;

use super::{Number, Rank};

/// Number of products in one elimination step above which several threads are used.
const MANY: usize = 1 << 14;

/// Result of elimination with full pivoting.
#[derive(Debug, Clone)]
pub struct FullPivots<T> {
    /// Row and column of each pivot, in the order of elimination.
    pub places: Vec<(usize, usize)>,
    /// Sizes of the pivots relative to the first, followed by the size of the rejected pivot.
    pub sizes: Vec<f64>,
    /// Eliminated matrix, row-major: row `i` of `places` is zero in the columns of the pivots before it.
    pub matrix: Vec<T>,
}

impl<T: Number> FullPivots<T> {
    /// Eliminates a row-major matrix until a pivot is not above `tolerance`, relative to the first. The size of that
    /// rejected pivot is the last one stored and gives the margin of the decision.
    pub fn new(mut matrix: Vec<T>, columns: usize, tolerance: f64) -> Self {
        let mut free: Vec<usize> = (0..columns).collect();
        let largest = |row: &[T], free: &[usize]| {
            let sizes = free.iter().map(|&c| (row[c].weight(), c));
            sizes.fold((0.0, columns), |best, own| if own.0 > best.0 { own } else { best })
        };
        // Largest entry of each remaining row, with its column.
        let mut left: Vec<Option<(f64, usize)>> =
            matrix.chunks_exact(columns.max(1)).map(|row| Some(largest(row, &free))).collect();
        let (mut places, mut sizes) = (Vec::new(), Vec::<f64>::new());
        let mut first = 0.0;
        loop {
            let entries = left.iter().enumerate().filter_map(|(row, best)| best.map(|b| (b.0, row, b.1)));
            let best = entries.reduce(|best, own| if own.0 > best.0 { own } else { best });
            let Some((size, row, column)) = best else { break };
            if places.is_empty() {
                first = size;
            }
            if size <= tolerance * first {
                if first > 0.0 {
                    sizes.push(size / first);
                }
                break;
            }
            let Some(inverse) = matrix[row * columns + column].inverse() else { break };
            left[row] = None;
            free.retain(|&c| c != column);
            let pivot = &matrix[row * columns..(row + 1) * columns];
            let pivot: Vec<(usize, T)> =
                free.iter().map(|&c| (c, pivot[c])).filter(|(_, x)| x.weight() > 0.0).collect();
            let eliminate = |(target, best): (&mut [T], &mut Option<(f64, usize)>)| {
                if best.is_none() || target[column].weight() == 0.0 {
                    return;
                }
                let factor = target[column] * inverse;
                pivot.iter().for_each(|&(c, x)| target[c].subtract_product(factor, x));
                target[column] = T::zero();
                *best = Some(largest(target, &free));
            };
            if left.len() * pivot.len() > MANY {
                matrix.par_chunks_exact_mut(columns).zip(&mut left).for_each(eliminate);
            } else {
                matrix.chunks_exact_mut(columns).zip(&mut left).for_each(eliminate);
            }
            places.push((row, column));
            sizes.push(size / first);
        }
        Self { places, sizes, matrix }
    }

    /// Eliminates a row-major matrix with given pivots and returns their sizes relative to the first.
    pub fn sizes_at(mut matrix: Vec<T>, columns: usize, places: &[(usize, usize)]) -> Vec<f64> {
        let mut sizes = vec![0.0; places.len()];
        for (k, &(row, column)) in places.iter().enumerate() {
            let pivot = matrix[row * columns..(row + 1) * columns].to_vec();
            sizes[k] = pivot[column].weight();
            let Some(inverse) = pivot[column].inverse() else { break };
            for &(other, _) in &places[k + 1..] {
                let target = &mut matrix[other * columns..(other + 1) * columns];
                let factor = target[column] * inverse;
                places[k + 1..].iter().for_each(|&(_, c)| target[c].subtract_product(factor, pivot[c]));
            }
        }
        let first = sizes.first().copied().unwrap_or(1.0);
        sizes.iter().map(|size| size / first).collect()
    }

    /// Removes the pivots after the first `rank`.
    pub fn truncate(&mut self, rank: usize) {
        self.places.truncate(rank);
        self.sizes.truncate(rank + 1);
    }

    /// Returns the number of pivots, with its margin.
    pub fn rank(&self) -> Rank {
        let rank = self.places.len();
        let size = |k: usize| self.sizes.get(k).copied();
        Rank {
            rank,
            kept: self.sizes[..rank].iter().copied().fold(1.0, f64::min),
            dropped: size(rank).unwrap_or(0.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::{Double, SplitMix};

    #[test]
    fn the_rank_of_a_product_with_its_margin() {
        let mut source = SplitMix::new(9);
        let (rows, inner, columns) = (20, 7, 12);
        let mut random = |n: usize| (0..n).map(|_| Double::random(&mut source)).collect::<Vec<_>>();
        let (a, b) = (random(rows * inner), random(inner * columns));
        let product: Vec<Double> = (0..rows * columns)
            .map(|k| {
                let (i, j) = (k / columns, k % columns);
                (0..inner).fold(Double::from(0.0), |sum, l| sum + a[i * inner + l] * b[l * columns + j])
            })
            .collect();
        let again = product.clone();
        let found = FullPivots::new(product, columns, 1e-20);
        let sizes = FullPivots::sizes_at(again, columns, &found.places);
        assert!(sizes.iter().zip(&found.sizes).all(|(a, b)| (a - b).abs() < 1e-12 * b), "{sizes:?}");
        let rank = found.rank();
        assert_eq!(rank.rank, inner);
        assert!(rank.kept > 1e-4 && rank.dropped < 1e-28, "{rank:?}");
    }
}
