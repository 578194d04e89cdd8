//! Triangular factor (QR) of a tall matrix, updated block by block.

use nalgebra::DMatrix;
use pulp::{Arch, Simd, WithSimd};

use crate::{Error, Result};

/// Factor `R` of a QR decomposition `A = Q R` of rows that arrive block by block; `Q` is not stored.
///
/// `RᵀR = AᵀA`, but the rows are reduced by reflections, so no precision is lost by squaring. The diagonal is never
/// negative, so `R` is unique if `A` has full column rank, independent of the blocks.
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
            out.absorb(&mut rows, width)?;
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
        self.absorb(&mut other.columns(), self.width)
    }

    fn columns(&self) -> Vec<f64> {
        self.matrix().as_slice().to_vec()
    }
}

/// Reflections that add a block of rows to a factor, with the widest registers of this machine. Products and sums are
/// rounded one by one and in a fixed order, so the result is the same on every machine.
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
        if rows == 1 {
            return absorb_row(r, block);
        }
        for panel in (0..width).step_by(PANEL) {
            let end = (panel + PANEL).min(width);
            let mut reflections = [None; PANEL];
            for j in panel..end {
                let (done, rest) = block.split_at_mut((j + 1) * rows);
                let (column, row) = (&done[j * rows..], &mut r[j * width + j..(j + 1) * width]);
                let Some(reflection) = Reflection::new(column, &mut row[0]) else { continue };
                for (r, other) in row[1..end - j].iter_mut().zip(rest.chunks_exact_mut(rows)) {
                    reflection.apply(column, r, other);
                }
                reflections[j - panel] = Some(reflection);
            }
            let (done, rest) = block.split_at_mut(end * rows);
            for (group, others) in rest.chunks_mut(TOGETHER * rows).enumerate() {
                let first = end + group * TOGETHER;
                for (j, reflection) in (panel..end).zip(&reflections) {
                    if let Some(reflection) = reflection {
                        let column = &done[j * rows..(j + 1) * rows];
                        let entries = &mut r[j * width + first..(j + 1) * width];
                        reflection.apply_to_all(column, entries, others);
                    }
                }
            }
        }
    }
}

/// Adds one row to a factor: its entries are contiguous, so that each reflection is one pass over them.
#[inline(always)]
fn absorb_row(r: &mut [f64], row: &mut [f64]) {
    let width = row.len();
    for j in 0..width {
        let (done, others) = row.split_at_mut(j + 1);
        let (top, entries) = r[j * width + j..(j + 1) * width].split_at_mut(1);
        let Some(Reflection { first, factor }) = Reflection::new(&done[j..], &mut top[0]) else { continue };
        let own = done[j];
        for (entry, other) in entries.iter_mut().zip(others) {
            let step = factor * (first * *entry + own * *other);
            *entry -= step * first;
            *other -= step * own;
        }
    }
}

/// Number of columns whose reflections are applied to a later column one after the other, while all of them are in the
/// nearest cache.
const PANEL: usize = 4;

/// Number of columns that a reflection is applied to at once; their sums are independent of each other.
const TOGETHER: usize = 4;

/// Reflection that maps a column of a block to the diagonal of the factor.
#[derive(Clone, Copy)]
struct Reflection {
    /// First entry of the reflection vector; the other entries are the column.
    first: f64,
    factor: f64,
}

impl Reflection {
    /// Creates the reflection of the column to the diagonal entry `top`; `None` if the column is zero.
    #[inline(always)]
    fn new(column: &[f64], top: &mut f64) -> Option<Self> {
        let squares = dot(column, column);
        // If a block has fewer rows than columns, its last columns contain only rounding errors. They are ignored; the
        // inverse of their squared norm would not be finite.
        if squares < f64::MIN_POSITIVE {
            return None;
        }
        let norm = (*top * *top + squares).sqrt();
        // The reflection maps to +norm; its first entry `top − norm` is computed without cancellation, as top ≥ 0.
        let first = -squares / (*top + norm);
        *top = norm;
        Some(Self { first, factor: 2.0 / (first * first + squares) })
    }

    /// Applies the reflection to several consecutive later columns and to their entries in the row of the factor.
    #[inline(always)]
    fn apply_to_all(&self, column: &[f64], entries: &mut [f64], others: &mut [f64]) {
        let rows = column.len();
        if others.len() < TOGETHER * rows {
            for (entry, other) in entries.iter_mut().zip(others.chunks_exact_mut(rows)) {
                self.apply(column, entry, other);
            }
            return;
        }
        let (a, rest) = others.split_at_mut(rows);
        let (b, rest) = rest.split_at_mut(rows);
        let (c, rest) = rest.split_at_mut(rows);
        let d = &mut rest[..rows];
        let products = dots(column, [&*a, &*b, &*c, &*d]);
        for ((entry, product), other) in entries.iter_mut().zip(products).zip([a, b, c, d]) {
            self.subtract(product, column, entry, other);
        }
    }

    /// Applies the reflection to a later column and its entry in the row of the factor.
    #[inline(always)]
    fn apply(&self, column: &[f64], entry: &mut f64, other: &mut [f64]) {
        self.subtract(dot(column, other), column, entry, other);
    }

    /// Applies the reflection to a column whose dot product with `column` is known.
    #[inline(always)]
    fn subtract(&self, product: f64, column: &[f64], entry: &mut f64, other: &mut [f64]) {
        let step = self.factor * (self.first * *entry + product);
        *entry -= step * self.first;
        for (o, c) in other.iter_mut().zip(column) {
            *o -= step * c;
        }
    }
}

/// Computes a dot product with eight independent sums, a reordering that the compiler may not do itself.
#[inline(always)]
fn dot(a: &[f64], b: &[f64]) -> f64 {
    let ((a8, a), (b8, b)) = (a.as_chunks(), b.as_chunks());
    let mut sums = [0.0; 8];
    for (x, y) in a8.iter().zip(b8) {
        accumulate(&mut sums, x, y);
    }
    total(&sums, a, b)
}

/// Computes [`dot`] of `a` with four columns, whose sums are independent of each other.
#[inline(always)]
fn dots(a: &[f64], others: [&[f64]; TOGETHER]) -> [f64; TOGETHER] {
    let (a8, a) = a.as_chunks();
    let [(b8, b), (c8, c), (d8, d), (e8, e)] = others.map(<[f64]>::as_chunks);
    let [mut sb, mut sc, mut sd, mut se] = [[0.0; 8]; TOGETHER];
    for ((((x, b), c), d), e) in a8.iter().zip(b8).zip(c8).zip(d8).zip(e8) {
        accumulate(&mut sb, x, b);
        accumulate(&mut sc, x, c);
        accumulate(&mut sd, x, d);
        accumulate(&mut se, x, e);
    }
    [total(&sb, a, b), total(&sc, a, c), total(&sd, a, d), total(&se, a, e)]
}

#[inline(always)]
fn accumulate(sums: &mut [f64; 8], x: &[f64; 8], y: &[f64; 8]) {
    for i in 0..8 {
        sums[i] += x[i] * y[i];
    }
}

/// Adds the eight sums and the remaining entries. Not inlined: otherwise the compiler would interleave the sums of
/// several columns.
#[inline(never)]
fn total(sums: &[f64; 8], a: &[f64], b: &[f64]) -> f64 {
    let tail: f64 = a.iter().zip(b).map(|(x, y)| x * y).sum();
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
            // Both are the unique factor with a positive diagonal; rounding differs.
            assert!((parts.matrix() - whole.matrix()).amax() < 1e-13);
        }
    }

    /// Absorbs one column after the other, without panels.
    fn absorb_by_columns(width: usize, blocks: &[Vec<f64>], rows: usize) -> Vec<f64> {
        let mut r = vec![0.0; width * width];
        for block in blocks {
            let mut block = block.clone();
            for j in 0..width {
                let (done, rest) = block.split_at_mut((j + 1) * rows);
                let column = &done[j * rows..];
                let row = &mut r[j * width + j..(j + 1) * width];
                let Some(reflection) = Reflection::new(column, &mut row[0]) else { continue };
                for (r, other) in row[1..].iter_mut().zip(rest.chunks_exact_mut(rows)) {
                    reflection.apply(column, r, other);
                }
            }
        }
        r
    }

    #[test]
    fn panels_change_no_bit() {
        for (width, rows) in [(1, 5), (3, 17), (4, 8), (11, 40), (30, 9), (9, 1)] {
            let all = numbers(3 * width * rows);
            let blocks: Vec<Vec<f64>> = all.chunks_exact(width * rows).map(<[f64]>::to_vec).collect();
            let mut triangle = Triangle::new(width);
            blocks.iter().for_each(|b| triangle.absorb(&mut b.clone(), rows).unwrap());
            assert_eq!(triangle.r, absorb_by_columns(width, &blocks, rows));
        }
    }

    #[test]
    fn single_rows_are_a_block() {
        // Wide rows one by one: the first rows leave most columns zero.
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
        // The dependent column leaves a rounding error relative to its norm (about 7).
        assert!(triangle.at(2, 2).abs() < 1e-14 && triangle.at(3, 3) > 1.0);
        assert_eq!(Triangle::from_upper(4, &triangle.upper()).unwrap(), triangle);
        assert!(triangle.absorb(&mut [1.0], 1).is_err() && Triangle::from_upper(4, &[0.0]).is_err());
    }
}
