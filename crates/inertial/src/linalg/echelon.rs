//! Row reduction over any [`Number`]: row spaces that grow row by row, their null spaces and reduced forms.

use super::Number;

/// Choice of the pivot of a new row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pivot {
    /// Largest entry: best for `f64`.
    Largest,
    /// First nonzero entry: the pivots are then those of the reduced row echelon form.
    First,
}

/// Margin of a rank decision, relative to the vectors tested: `kept` above the tolerance, `dropped` below.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Gap {
    /// Smallest pivot that was taken as nonzero (infinite if there was none).
    pub kept: f64,
    /// Largest remainder that was taken as zero.
    pub dropped: f64,
}

impl Default for Gap {
    fn default() -> Self {
        Self { kept: f64::INFINITY, dropped: 0.0 }
    }
}

impl Gap {
    /// Returns the less clear of two decisions.
    pub fn worse(self, o: Self) -> Self {
        Self { kept: self.kept.min(o.kept), dropped: self.dropped.max(o.dropped) }
    }
}

/// Smallest scale of rounded vectors, which are expected to be of order one; smaller vectors are compared with this
/// scale instead of their own size.
const SMALLEST: f64 = 1e-3;

/// Basis of a row space in echelon form, extended by [`Echelon::insert`].
///
/// ```
/// use inertial::linalg::{Echelon, First, Pivot};
/// use inertial::spatial::Field;
/// let row = |v: [i64; 3]| v.map(First::from_i64);
/// let mut span = Echelon::new(3, Pivot::First);
/// assert!(span.insert(&row([1, 2, 3])));
/// assert!(span.insert(&row([1, 2, 4])));
/// assert!(!span.insert(&row([2, 4, 7])));
/// assert_eq!(span.null_space(), [row([-2, 1, 0])]);
/// ```
#[derive(Debug, Clone)]
pub struct Echelon<T> {
    width: usize,
    policy: Pivot,
    /// Rows with pivot one; each has zeros at the pivots of the rows before it.
    rows: Vec<T>,
    pivots: Vec<usize>,
    /// Range of columns in which each row is nonzero.
    extents: Vec<(usize, usize)>,
    scratch: Vec<T>,
    gap: Gap,
}

impl<T: Number> Echelon<T> {
    /// Creates the empty span in `width` columns.
    pub fn new(width: usize, policy: Pivot) -> Self {
        let (rows, scratch) = (Vec::new(), Vec::new());
        Self { width, policy, rows, pivots: Vec::new(), extents: Vec::new(), scratch, gap: Gap::default() }
    }

    /// Resets to the empty span with another number of columns, keeping the memory.
    pub fn reset(&mut self, width: usize) {
        self.width = width;
        self.rows.clear();
        self.pivots.clear();
        self.extents.clear();
        self.gap = Gap::default();
    }

    /// Removes the rows after the first `rank`.
    pub fn truncate(&mut self, rank: usize) {
        self.rows.truncate(rank * self.width);
        self.pivots.truncate(rank);
        self.extents.truncate(rank);
    }

    /// Returns the number of columns.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Returns the dimension of the span.
    pub fn rank(&self) -> usize {
        self.pivots.len()
    }

    /// Returns whether the span is the whole space.
    pub fn is_full(&self) -> bool {
        self.rank() == self.width
    }

    /// Returns the rows of the basis.
    pub fn rows(&self) -> impl Iterator<Item = &[T]> {
        self.rows.chunks_exact(self.width.max(1))
    }

    /// Returns one row of the basis.
    #[inline]
    pub fn row(&self, i: usize) -> &[T] {
        &self.rows[i * self.width..(i + 1) * self.width]
    }

    /// Returns the pivot column of each row.
    pub fn pivots(&self) -> &[usize] {
        &self.pivots
    }

    /// Returns the margin between dependent and independent rows.
    pub fn gap(&self) -> Gap {
        self.gap
    }

    /// Adds a row; returns whether it was independent of the rows before.
    pub fn insert(&mut self, row: &[T]) -> bool {
        debug_assert_eq!(row.len(), self.width);
        self.scratch.clear();
        self.scratch.extend_from_slice(row);
        let size = weight(&self.scratch);
        if size == 0.0 || self.is_full() {
            return false;
        }
        // A vector much smaller than the others contains only their rounding errors.
        let scale = size.max(SMALLEST);
        eliminate(&self.rows, &self.pivots, &self.extents, self.width, &mut self.scratch);
        let threshold = T::TOLERANCE * scale;
        let mut pivot = None;
        let mut best = threshold;
        let mut left = 0.0f64;
        for (k, x) in self.scratch.iter().enumerate() {
            let w = x.weight();
            left = left.max(w);
            if w > best {
                pivot = Some(k);
                if self.policy == Pivot::First {
                    break;
                }
                best = w;
            }
        }
        let Some(k) = pivot else {
            self.gap.dropped = self.gap.dropped.max(left / scale);
            return false;
        };
        let Some(inverse) = self.scratch[k].inverse() else { return false };
        self.gap.kept = self.gap.kept.min(self.scratch[k].weight() / scale);
        // The pivot is exactly one, also in rounded arithmetic.
        self.scratch[k] = T::zero();
        self.rows.extend(self.scratch.iter().map(|&x| x * inverse));
        let row = self.pivots.len() * self.width;
        self.rows[row + k] = T::one();
        self.extents.push(extent(&self.rows[row..]));
        self.pivots.push(k);
        true
    }

    /// Returns the remainder of a row after elimination of the pivots.
    pub fn remainder(&self, row: &[T]) -> Vec<T> {
        let mut left = row.to_vec();
        eliminate(&self.rows, &self.pivots, &self.extents, self.width, &mut left);
        left
    }

    /// Returns whether a row lies in the span.
    pub fn contains(&self, row: &[T]) -> bool {
        weight(&self.remainder(row)) <= T::TOLERANCE * weight(row)
    }

    /// Makes each pivot the only nonzero entry of its column; with [`Pivot::First`] this gives the reduced row echelon
    /// form, up to the order of rows.
    pub fn reduce(&mut self) {
        let w = self.width;
        for i in (0..self.rank()).rev() {
            let (above, below) = self.rows.split_at_mut((i + 1) * w);
            let row = &mut above[i * w..];
            eliminate(below, &self.pivots[i + 1..], &self.extents[i + 1..], w, row);
            self.extents[i] = extent(row);
        }
    }

    /// Returns a basis of the vectors `x` with `row · x = 0` for every row: one vector for each column without pivot,
    /// with a one there and zeros at the other columns without pivot. Reduces the rows first.
    pub fn null_space(&mut self) -> Vec<Vec<T>> {
        let mut flat = Vec::new();
        self.null_space_into(&mut flat);
        flat.chunks_exact(self.width.max(1)).map(<[T]>::to_vec).collect()
    }

    /// Appends the vectors of [`Echelon::null_space`] to `out`, one after the other, and returns their number.
    pub fn null_space_into(&mut self, out: &mut Vec<T>) -> usize {
        self.reduce();
        let (w, nullity) = (self.width, self.width - self.rank());
        for c in (0..w).filter(|c| !self.pivots.contains(c)) {
            let start = out.len();
            out.resize(start + w, T::zero());
            out[start + c] = T::one();
            for (i, &p) in self.pivots.iter().enumerate() {
                out[start + p] = -self.rows[i * w + c];
            }
        }
        nullity
    }
}

#[inline]
fn weight<T: Number>(row: &[T]) -> f64 {
    row.iter().map(|x| x.weight()).fold(0.0, f64::max)
}

/// Returns the first nonzero column and the column after the last one.
#[inline]
fn extent<T: Number>(row: &[T]) -> (usize, usize) {
    let nonzero = |x: &T| !x.is_zero();
    (row.iter().position(nonzero).unwrap_or(0), row.iter().rposition(nonzero).map_or(0, |k| k + 1))
}

/// Clears the pivot columns of `target`, row by row in the order of insertion.
#[inline]
fn eliminate<T: Number>(
    rows: &[T],
    pivots: &[usize],
    extents: &[(usize, usize)],
    width: usize,
    target: &mut [T],
) {
    for ((row, &p), &(from, to)) in rows.chunks_exact(width.max(1)).zip(pivots).zip(extents) {
        let factor = target[p];
        if !factor.is_zero() {
            for (t, &r) in target[from..to].iter_mut().zip(&row[from..to]) {
                t.subtract_product(factor, r);
            }
            // Exactly zero, also in rounded arithmetic.
            target[p] = T::zero();
        }
    }
}
