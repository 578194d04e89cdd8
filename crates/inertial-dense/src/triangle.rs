//! Triangular factor (QR) of a tall matrix, updated block by block.

use nalgebra::DMatrix;

use crate::reflections::Reflections;
use crate::simd::dispatch;
use crate::{Error, Result};

/// Factor `R` of a QR decomposition `A = Q R` of rows that arrive block by block; `Q` is not stored.
///
/// `RᵀR = AᵀA`, but the rows are reduced by reflections, so no precision is lost by squaring. The diagonal is never
/// negative, so `R` is unique if `A` has full column rank, independent of the blocks.
///
/// ```
/// use inertial_dense::Triangle;
/// let mut grown = Triangle::new(2);
/// grown.add_rows(&mut [3.0, 0.0, 1.0, 2.0], 2)?; // two rows, column by column
/// grown.add_rows(&mut [4.0, 1.0], 1)?;
/// let r = grown.matrix();
/// assert!((r[(0, 0)] - 5.0).abs() < 1e-14 && (r[(0, 1)] - 7.0 / 5.0).abs() < 1e-14);
/// assert_eq!(r[(1, 0)], 0.0);
/// # Ok::<(), inertial_dense::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Triangle {
    width: usize,
    /// Entries of the factor, row by row; zero below the diagonal.
    r: Vec<f64>,
}

impl Triangle {
    /// Creates the factor of zero rows.
    pub fn new(width: usize) -> Self {
        Self { width, r: vec![0.0; width * width] }
    }

    /// Creates a factor from the entries on and above the diagonal, row by row.
    pub fn from_upper(width: usize, upper: &[f64]) -> Result<Self> {
        let expected = width * (width + 1) / 2;
        if upper.len() != expected {
            return Err(Error::Dimension { what: "triangular factor", expected, found: upper.len() });
        }
        let mut out = Self::new(width);
        let mut rest = upper;
        for i in 0..width {
            let (row, after) = rest.split_at(width - i);
            out.r[i * width + i..(i + 1) * width].copy_from_slice(row);
            rest = after;
        }
        // A factor written by this type has no negative diagonal; absorbing corrects the signs of any other.
        if (0..width).any(|i| out.at(i, i) < 0.0) {
            let mut rows = out.columns();
            out = Self::new(width);
            out.add_rows(&mut rows, width)?;
        }
        Ok(out)
    }

    /// Returns the entries on and above the diagonal, row by row.
    pub fn upper(&self) -> Vec<f64> {
        (0..self.width).flat_map(|i| self.row(i)[i..].iter().copied()).collect()
    }

    /// Returns the number of columns.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Returns one entry.
    pub fn at(&self, row: usize, column: usize) -> f64 {
        self.r[row * self.width + column]
    }

    /// Returns one row, zeros included.
    pub fn row(&self, row: usize) -> &[f64] {
        &self.r[row * self.width..(row + 1) * self.width]
    }

    /// Returns the factor as a matrix.
    pub fn matrix(&self) -> DMatrix<f64> {
        DMatrix::from_row_slice(self.width, self.width, &self.r)
    }

    /// Returns whether all entries are finite.
    pub fn is_finite(&self) -> bool {
        self.r.iter().all(|x| x.is_finite())
    }

    /// Adds rows: `block` holds them column by column and is overwritten.
    pub fn add_rows(&mut self, block: &mut [f64], rows: usize) -> Result<()> {
        let (width, expected) = (self.width, rows * self.width);
        if block.len() != expected {
            return Err(Error::Dimension { what: "block of rows", expected, found: block.len() });
        }
        if rows == 0 {
            return Ok(());
        }
        dispatch(Reflections { r: &mut self.r, width, block, rows });
        Ok(())
    }

    /// Multiplies all rows by `scale` (not negative).
    pub fn scale(&mut self, scale: f64) {
        self.r.iter_mut().for_each(|r| *r *= scale);
    }

    /// Adds the rows represented by another factor.
    pub fn merge(&mut self, other: &Self) -> Result<()> {
        if other.width != self.width {
            let (expected, found) = (self.width, other.width);
            return Err(Error::Dimension { what: "triangular factor to be merged", expected, found });
        }
        self.add_rows(&mut other.columns(), self.width)
    }

    fn columns(&self) -> Vec<f64> {
        self.matrix().as_slice().to_vec()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::tests::with_all;
    use crate::simd::{Kernel, Lanes};

    fn numbers(count: usize) -> Vec<f64> {
        let mut state = 5u64;
        (0..count)
            .map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                ((state >> 11) as f64) / ((1u64 << 52) as f64) - 1.0
            })
            .collect()
    }

    fn block(a: &DMatrix<f64>, first: usize, rows: usize) -> Vec<f64> {
        a.rows(first, rows).into_owned().as_slice().to_vec()
    }

    #[test]
    fn the_factor_does_not_depend_on_the_blocks() {
        let a = DMatrix::from_vec(60, 7, numbers(420));
        let mut whole = Triangle::new(7);
        whole.add_rows(&mut block(&a, 0, 60), 60).unwrap();
        let gram = whole.matrix().transpose() * whole.matrix();
        assert!((gram - a.transpose() * &a).amax() < 1e-13);
        for sizes in [vec![1; 60], vec![20, 20, 20], vec![3, 50, 7]] {
            let (mut parts, mut first) = (Triangle::new(7), 0);
            for rows in sizes {
                let mut part = Triangle::new(7);
                part.add_rows(&mut block(&a, first, rows), rows).unwrap();
                parts.merge(&part).unwrap();
                first += rows;
            }
            // Both are the unique factor with a positive diagonal; rounding differs.
            assert!((parts.matrix() - whole.matrix()).amax() < 1e-13);
        }
    }

    struct Absorbed<'a>(&'a [Vec<f64>], usize);

    impl Kernel for Absorbed<'_> {
        type Output = Vec<f64>;

        fn run<S: pulp::Simd, const ROUNDED: bool>(self, lanes: Lanes<S, ROUNDED>) -> Vec<f64> {
            let width = self.0[0].len() / self.1;
            let mut r: Vec<f64> = vec![0.0; width * width];
            for block in self.0 {
                Reflections { r: &mut r, width, block: &mut block.clone(), rows: self.1 }.run(lanes);
            }
            r
        }
    }

    /// Adds rows by plane rotations, entry by entry.
    fn rotated(blocks: &[Vec<f64>], rows: usize) -> Vec<f64> {
        let width = blocks[0].len() / rows;
        let mut r: Vec<f64> = vec![0.0; width * width];
        for (block, i) in blocks.iter().flat_map(|block| (0..rows).map(move |i| (block, i))) {
            let mut row: Vec<f64> = block[i..].iter().step_by(rows).copied().collect();
            for j in 0..width {
                let norm = f64::hypot(r[j * width + j], row[j]);
                if norm > 0.0 {
                    let (c, s) = (r[j * width + j] / norm, row[j] / norm);
                    for (r, x) in r[j * width..(j + 1) * width].iter_mut().zip(&mut row).skip(j) {
                        (*r, *x) = (c * *r + s * *x, c * *x - s * *r);
                    }
                }
            }
        }
        r
    }

    #[test]
    fn reflections_equal_rotations_and_have_the_same_bits_everywhere() {
        for (width, rows) in [(1, 5), (3, 17), (4, 8), (5, 9), (6, 33), (11, 40), (30, 9), (9, 1)] {
            let all = numbers(5 * width * rows);
            let blocks: Vec<Vec<f64>> = all.chunks_exact(width * rows).map(<[f64]>::to_vec).collect();
            let [fused, rounded, portable] = with_all(|| Absorbed(&blocks, rows));
            assert_eq!(rounded, portable);
            for (expected, found) in rotated(&blocks, rows).iter().zip(fused.iter().zip(&rounded)) {
                // Up to 200 rows of numbers below one.
                assert!((expected - found.0).abs() < 1e-12 && (expected - found.1).abs() < 1e-12);
            }
        }
    }

    #[test]
    fn single_rows_are_a_block() {
        // Wide rows one by one: the first rows leave most columns zero.
        let a = DMatrix::from_vec(90, 40, numbers(3600));
        let (mut one_by_one, mut whole) = (Triangle::new(40), Triangle::new(40));
        for i in 0..90 {
            one_by_one.add_rows(&mut block(&a, i, 1), 1).unwrap();
            assert!(one_by_one.is_finite());
        }
        whole.add_rows(&mut block(&a, 0, 90), 90).unwrap();
        assert!((one_by_one.matrix() - whole.matrix()).amax() < 1e-12);
    }

    #[test]
    fn empty_columns_and_dependent_columns_are_kept_apart_from_noise() {
        let mut a = DMatrix::from_vec(40, 4, numbers(160));
        a.column_mut(1).fill(0.0);
        let twice = a.column(0) * 2.0;
        a.set_column(2, &twice);
        let mut triangle = Triangle::new(4);
        triangle.add_rows(&mut block(&a, 0, 40), 40).unwrap();
        assert_eq!(triangle.at(1, 1), 0.0);
        // The dependent column leaves a rounding error relative to its norm (about 7).
        assert!(triangle.at(2, 2).abs() < 1e-14 && triangle.at(3, 3) > 1.0);
        assert_eq!(Triangle::from_upper(4, &triangle.upper()).unwrap(), triangle);
        assert!(triangle.add_rows(&mut [1.0], 1).is_err() && Triangle::from_upper(4, &[0.0]).is_err());
    }
}
