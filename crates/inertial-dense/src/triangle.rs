//! Triangular factor (QR) of a tall matrix, updated block by block.

use nalgebra::DMatrix;
use pulp::{Arch, Simd, WithSimd};

use crate::{Error, Result};

/// The factor `R` of a QR decomposition `A = Q R` of rows that arrive block by block; `Q` is not kept.
///
/// `RᵀR = AᵀA`, but the rows are reduced by reflections, so nothing is lost by squaring. The diagonal is never negative,
/// which makes `R` unique where `A` has full column rank, whatever the blocks were.
///
/// ```
/// use inertial_dense::Triangle;
/// let mut grown = Triangle::new(2);
/// grown.absorb(&mut [3.0, 0.0, 1.0, 2.0], 2)?; // two rows, column by column
/// grown.absorb(&mut [4.0, 1.0], 1)?;
/// let r = grown.matrix();
/// assert!((r[(0, 0)] - 5.0).abs() < 1e-14 && (r[(0, 1)] - 7.0 / 5.0).abs() < 1e-14);
/// assert_eq!(r[(1, 0)], 0.0);
/// # Ok::<(), inertial_dense::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Triangle {
    width: usize,
    /// Row after row; zero below the diagonal.
    r: Vec<f64>,
}

impl Triangle {
    /// The factor of no rows.
    pub fn new(width: usize) -> Self {
        Self { width, r: vec![0.0; width * width] }
    }

    /// From the entries on and above the diagonal, row after row.
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
        // A factor that this type wrote has no negative diagonal; absorbing restores that of any other.
        if (0..width).any(|i| out.at(i, i) < 0.0) {
            let mut rows = out.columns();
            out = Self::new(width);
            out.absorb(&mut rows, width)?;
        }
        Ok(out)
    }

    /// The entries on and above the diagonal, row after row.
    pub fn upper(&self) -> Vec<f64> {
        (0..self.width).flat_map(|i| self.row(i)[i..].iter().copied()).collect()
    }

    /// Number of columns.
    pub fn width(&self) -> usize {
        self.width
    }

    /// One entry.
    pub fn at(&self, row: usize, column: usize) -> f64 {
        self.r[row * self.width + column]
    }

    /// One row, zeros included.
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

    /// Takes in more rows: `block` holds them column by column and is used up.
    pub fn absorb(&mut self, block: &mut [f64], rows: usize) -> Result<()> {
        let (width, expected) = (self.width, rows * self.width);
        if block.len() != expected {
            return Err(Error::Dimension { what: "block of rows", expected, found: block.len() });
        }
        if rows == 0 {
            return Ok(());
        }
        Arch::new().dispatch(Reflections { r: &mut self.r, width, block, rows });
        Ok(())
    }

    /// The factor of the same rows, all times `scale` (not negative).
    pub fn scale(&mut self, scale: f64) {
        self.r.iter_mut().for_each(|r| *r *= scale);
    }

    /// Takes in the rows that another factor stands for.
    pub fn merge(&mut self, other: &Self) -> Result<()> {
        if other.width != self.width {
            let (expected, found) = (self.width, other.width);
            return Err(Error::Dimension { what: "triangular factor to be merged", expected, found });
        }
        self.absorb(&mut other.columns(), self.width)
    }

    fn columns(&self) -> Vec<f64> {
        self.matrix().as_slice().to_vec()
    }
}

/// The reflections that take a block of rows into a factor, in the widest registers of this machine. Products and sums are
/// rounded one by one and in one order, so the result is the same on every machine.
struct Reflections<'a> {
    r: &'a mut [f64],
    width: usize,
    block: &'a mut [f64],
    rows: usize,
}

impl WithSimd for Reflections<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Self { r, width, block, rows } = self;
        for j in 0..width {
            let (done, rest) = block.split_at_mut((j + 1) * rows);
            let column = &done[j * rows..];
            let squares = dot(column, column);
            // Where a block has fewer rows than columns its last columns are rounding of rounding: what is left of them does
            // not count, and its inverse would not be finite.
            if squares < f64::MIN_POSITIVE {
                continue;
            }
            let row = &mut r[j * width + j..(j + 1) * width];
            let top = row[0];
            let norm = (top * top + squares).sqrt();
            // The reflection to +norm; its first entry `top − norm` without cancellation, as top ≥ 0.
            let first = -squares / (top + norm);
            let factor = 2.0 / (first * first + squares);
            row[0] = norm;
            for (r, other) in row[1..].iter_mut().zip(rest.chunks_exact_mut(rows)) {
                let step = factor * (first * *r + dot(column, other));
                *r -= step * first;
                for (o, c) in other.iter_mut().zip(column) {
                    *o -= step * c;
                }
            }
        }
    }
}

/// Eight sums side by side: what the compiler may not reorder itself.
#[inline(always)]
fn dot(a: &[f64], b: &[f64]) -> f64 {
    let (a8, b8) = (a.chunks_exact(8), b.chunks_exact(8));
    let tail: f64 = a8.remainder().iter().zip(b8.remainder()).map(|(x, y)| x * y).sum();
    let mut sums = [0.0; 8];
    for (x, y) in a8.zip(b8) {
        for i in 0..8 {
            sums[i] += x[i] * y[i];
        }
    }
    sums.iter().sum::<f64>() + tail
}

#[cfg(test)]
mod tests {
    use super::*;

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
        whole.absorb(&mut block(&a, 0, 60), 60).unwrap();
        let gram = whole.matrix().transpose() * whole.matrix();
        assert!((gram - a.transpose() * &a).amax() < 1e-13);
        for sizes in [vec![1; 60], vec![20, 20, 20], vec![3, 50, 7]] {
            let (mut parts, mut first) = (Triangle::new(7), 0);
            for rows in sizes {
                let mut part = Triangle::new(7);
                part.absorb(&mut block(&a, first, rows), rows).unwrap();
                parts.merge(&part).unwrap();
                first += rows;
            }
            // Both are the one factor with a positive diagonal; rounding differs.
            assert!((parts.matrix() - whole.matrix()).amax() < 1e-13);
        }
    }

    #[test]
    fn single_rows_are_a_block() {
        // Wide rows one by one: the first have nothing left for most columns.
        let a = DMatrix::from_vec(90, 40, numbers(3600));
        let (mut one_by_one, mut whole) = (Triangle::new(40), Triangle::new(40));
        for i in 0..90 {
            one_by_one.absorb(&mut block(&a, i, 1), 1).unwrap();
            assert!(one_by_one.is_finite());
        }
        whole.absorb(&mut block(&a, 0, 90), 90).unwrap();
        assert!((one_by_one.matrix() - whole.matrix()).amax() < 1e-12);
    }

    #[test]
    fn empty_columns_and_dependent_columns_are_kept_apart_from_noise() {
        let mut a = DMatrix::from_vec(40, 4, numbers(160));
        a.column_mut(1).fill(0.0);
        let twice = a.column(0) * 2.0;
        a.set_column(2, &twice);
        let mut triangle = Triangle::new(4);
        triangle.absorb(&mut block(&a, 0, 40), 40).unwrap();
        assert_eq!(triangle.at(1, 1), 0.0);
        // The dependent column leaves rounding of its norm (about 7) behind.
        assert!(triangle.at(2, 2).abs() < 1e-14 && triangle.at(3, 3) > 1.0);
        assert_eq!(Triangle::from_upper(4, &triangle.upper()).unwrap(), triangle);
        assert!(triangle.absorb(&mut [1.0], 1).is_err() && Triangle::from_upper(4, &[0.0]).is_err());
    }
}
