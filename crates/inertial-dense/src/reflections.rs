//! Reflections that add a block of rows to a triangular factor.

use pulp::Simd;

use crate::simd::{Kernel, Lanes};
use crate::sums::{dot, products};

/// Number of columns whose reflections are applied to later columns together.
const PANEL: usize = 4;

/// Rows to be added to the factor `r` (row by row, `width` columns). `block` holds them column by column.
pub(crate) struct Reflections<'a> {
    pub r: &'a mut [f64],
    pub width: usize,
    pub block: &'a mut [f64],
    pub rows: usize,
}

/// Reflection that maps a column of a block to the diagonal of the factor; without effect if both numbers are zero.
#[derive(Clone, Copy, Default)]
struct Reflection {
    /// First entry of the reflection vector; the other entries are the column.
    first: f64,
    factor: f64,
}

impl Kernel for Reflections<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd, const ROUNDED: bool>(self, lanes: Lanes<S, ROUNDED>) {
        let Self { r, width, block, rows } = self;
        if rows == 1 {
            return absorb_row(lanes, r, block);
        }
        for panel in (0..width).step_by(PANEL) {
            let end = (panel + PANEL).min(width);
            let mut reflections = [Reflection::default(); PANEL];
            for j in panel..end {
                let (done, rest) = block.split_at_mut((j + 1) * rows);
                let (column, row) = (&done[j * rows..], &mut r[j * width + j..(j + 1) * width]);
                let reflection = Reflection::new(dot(lanes, column, column), &mut row[0]);
                for (entry, other) in row[1..end - j].iter_mut().zip(rest.chunks_exact_mut(rows)) {
                    let step = reflection.step(entry, dot(lanes, column, other));
                    subtract(lanes, [column], [[step]], [other]);
                }
                reflections[j - panel] = reflection;
            }
            let (done, rest) = block.split_at_mut(end * rows);
            if !rest.is_empty() {
                let columns = std::array::from_fn(|k| &done[(panel + k) * rows..(panel + k + 1) * rows]);
                Panel { columns, reflections, first: panel }.apply(lanes, r, width, rest);
            }
        }
    }
}

impl Reflection {
    /// Creates the reflection of a column with the given sum of squares to the diagonal entry `top`.
    #[inline(always)]
    fn new(squares: f64, top: &mut f64) -> Self {
        // If a block has fewer rows than columns, its last columns contain only rounding errors. They are ignored; the inverse of their
        // squared norm would not be finite.
        if squares < f64::MIN_POSITIVE {
            return Self::default();
        }
        let norm = (*top * *top + squares).sqrt();
        // The reflection maps to +norm; its first entry `top − norm` is computed without cancellation, as top ≥ 0.
        let first = -squares / (*top + norm);
        *top = norm;
        Self { first, factor: 2.0 / (first * first + squares) }
    }

    /// Applies the reflection to the entry of a later column in the row of the factor. Returns the multiple of the reflection's column to
    /// be subtracted from the later column. `product` is the product of both columns.
    #[inline(always)]
    fn step(self, entry: &mut f64, product: f64) -> f64 {
        let step = self.factor * (self.first * *entry + product);
        *entry -= step * self.first;
        step
    }
}

/// Reflections of neighbouring columns. They are applied to later columns in one pass: as each reflection changes a column by a multiple of
/// its own, the products for all of them follow from those with the unchanged column.
struct Panel<'a> {
    columns: [&'a [f64]; PANEL],
    reflections: [Reflection; PANEL],
    /// Index of the first of the columns.
    first: usize,
}

impl Panel<'_> {
    /// Applies the reflections to the columns after the panel.
    #[inline(always)]
    fn apply<S: Simd, const ROUNDED: bool>(
        &self,
        lanes: Lanes<S, ROUNDED>,
        r: &mut [f64],
        width: usize,
        others: &mut [f64],
    ) {
        let rows = self.columns[0].len();
        let mut between = [[0.0; PANEL]; PANEL];
        for k in 1..PANEL {
            for l in 0..k {
                between[k][l] = dot(lanes, self.columns[k], self.columns[l]);
            }
        }
        let mut steps = |column: usize, products: [f64; PANEL]| {
            let mut steps = [0.0; PANEL];
            for k in 0..PANEL {
                let earlier: f64 = (0..k).map(|l| steps[l] * between[k][l]).sum();
                let entry = &mut r[(self.first + k) * width + column];
                steps[k] = self.reflections[k].step(entry, products[k] - earlier);
            }
            steps
        };
        let mut column = self.first + PANEL;
        let mut pairs = others.chunks_exact_mut(2 * rows);
        for pair in &mut pairs {
            let (a, b) = pair.split_at_mut(rows);
            let [of_a, of_b] = products(lanes, self.columns, [&*a, &*b]);
            let both = [steps(column, of_a), steps(column + 1, of_b)];
            subtract(lanes, self.columns, both, [a, b]);
            column += 2;
        }
        let last = pairs.into_remainder();
        if !last.is_empty() {
            let [products] = products(lanes, self.columns, [&*last]);
            subtract(lanes, self.columns, [steps(column, products)], [last]);
        }
    }
}

/// Subtracts multiples of `columns` from each of `others`, all of the same length.
#[inline(always)]
fn subtract<S: Simd, const ROUNDED: bool, const P: usize, const Q: usize>(
    lanes: Lanes<S, ROUNDED>,
    columns: [&[f64]; P],
    steps: [[f64; P]; Q],
    others: [&mut [f64]; Q],
) {
    let columns = columns.map(S::as_simd_f64s);
    let count = columns[0].0.len();
    let heads = columns.map(|column| &column.0[..count]);
    let mut others = others.map(|other| {
        let (head, tail) = S::as_mut_simd_f64s(other);
        (&mut head[..count], tail)
    });
    let mut factors = [[lanes.splat(0.0); P]; Q];
    for q in 0..Q {
        for p in 0..P {
            factors[q][p] = lanes.splat(-steps[q][p]);
        }
    }
    for i in 0..count {
        let mut own = [lanes.splat(0.0); P];
        for p in 0..P {
            own[p] = heads[p][i];
        }
        for q in 0..Q {
            let mut other = others[q].0[i];
            for p in 0..P {
                other = lanes.multiply_add(factors[q][p], own[p], other);
            }
            others[q].0[i] = other;
        }
    }
    for ((_, tail), steps) in others.iter_mut().zip(&steps) {
        for (p, step) in steps.iter().enumerate() {
            tail.iter_mut().zip(columns[p].1).for_each(|(other, own)| *other -= step * own);
        }
    }
}

/// Adds one row to a factor: its entries are contiguous, so that each reflection is one pass over them.
#[inline(always)]
fn absorb_row<S: Simd, const ROUNDED: bool>(lanes: Lanes<S, ROUNDED>, r: &mut [f64], row: &mut [f64]) {
    let width = row.len();
    for j in 0..width {
        let (done, others) = row.split_at_mut(j + 1);
        let (top, entries) = r[j * width + j..(j + 1) * width].split_at_mut(1);
        let own = done[j];
        let Reflection { first, factor } = Reflection::new(own * own, &mut top[0]);
        // A step is the sum of multiples of both entries.
        let (of_entry, of_other) = (factor * first, factor * own);
        let ((entries, last_entries), (others, last_others)) =
            (S::as_mut_simd_f64s(entries), S::as_mut_simd_f64s(others));
        let [first4, own4, of_entry4, of_other4] = [-first, -own, of_entry, of_other].map(|x| lanes.splat(x));
        for (entry, other) in entries.iter_mut().zip(others) {
            let step = lanes.multiply_add(of_entry4, *entry, lanes.multiply(of_other4, *other));
            *entry = lanes.multiply_add(step, first4, *entry);
            *other = lanes.multiply_add(step, own4, *other);
        }
        for (entry, other) in last_entries.iter_mut().zip(last_others) {
            let step = of_entry * *entry + of_other * *other;
            *entry -= step * first;
            *other -= step * own;
        }
    }
}
