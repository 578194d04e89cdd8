//! Elimination with full pivoting: the most independent rows and columns of a rounded matrix.

use super::{Number, Rank};

/// What elimination with full pivoting found.
#[derive(Debug, Clone)]
pub struct FullPivots<T> {
    /// Row and column of each pivot, in the order of elimination.
    pub places: Vec<(usize, usize)>,
    /// Sizes of the pivots relative to the first, and of the one that was not taken.
    pub sizes: Vec<f64>,
    /// The eliminated matrix, row-major: row `i` of `places` is zero in the columns of the pivots before it.
    pub matrix: Vec<T>,
}

impl<T: Number> FullPivots<T> {
    /// Eliminates a row-major matrix until a pivot is not above `tolerance`, relative to the first: that one is the last, and
    /// says how clear the decision was.
    pub fn new(mut matrix: Vec<T>, columns: usize, tolerance: f64) -> Self {
        let rows = matrix.len().checked_div(columns).unwrap_or(0);
        let mut left: Vec<usize> = (0..rows).collect();
        let mut free: Vec<usize> = (0..columns).collect();
        let (mut places, mut sizes) = (Vec::new(), Vec::<f64>::new());
        let mut first = 0.0;
        loop {
            let mut best: Option<(f64, usize, usize)> = None;
            for (i, &row) in left.iter().enumerate() {
                for (j, &column) in free.iter().enumerate() {
                    let size = matrix[row * columns + column].weight();
                    if best.is_none_or(|(most, ..)| size >= most) {
                        best = Some((size, i, j));
                    }
                }
            }
            let Some((size, i, j)) = best else { break };
            let (row, column) = (left.swap_remove(i), free.swap_remove(j));
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
            let pivot: Vec<T> = matrix[row * columns..(row + 1) * columns].to_vec();
            for &other in &left {
                let target = &mut matrix[other * columns..(other + 1) * columns];
                let factor = target[column] * inverse;
                for &c in &free {
                    target[c].subtract_product(factor, pivot[c]);
                }
                target[column] = T::zero();
            }
            places.push((row, column));
            sizes.push(size / first);
        }
        Self { places, sizes, matrix }
    }

    /// Forgets the pivots after the first `rank`.
    pub fn truncate(&mut self, rank: usize) {
        self.places.truncate(rank);
        self.sizes.truncate(rank + 1);
    }

    /// The number of pivots, with its margin.
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
        let product = (0..rows * columns)
            .map(|k| {
                let (i, j) = (k / columns, k % columns);
                (0..inner).fold(Double::from(0.0), |sum, l| sum + a[i * inner + l] * b[l * columns + j])
            })
            .collect();
        let rank = FullPivots::new(product, columns, 1e-20).rank();
        assert_eq!(rank.rank, inner);
        assert!(rank.kept > 1e-4 && rank.dropped < 1e-28, "{rank:?}");
    }
}
