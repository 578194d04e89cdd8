//! Matrices of three columns, each in the lanes of a register; the fourth lanes are zero.

use crate::dynamics::simd::vector::Vec3;
use crate::dynamics::simd::{Four, Single, Wide};

/// Matrix of three columns.
pub(crate) type Columns<W> = [W; 3];

/// Loads the columns from memory.
#[inline(always)]
pub(crate) fn load_columns<W: Wide>(from: &[Four; 3]) -> Columns<W> {
    [W::load(&from[0]), W::load(&from[1]), W::load(&from[2])]
}

/// Stores the columns to memory.
#[inline(always)]
pub(crate) fn store_columns<W: Wide>(columns: Columns<W>, to: &mut [Four; 3]) {
    columns[0].store(&mut to[0]);
    columns[1].store(&mut to[1]);
    columns[2].store(&mut to[2]);
}

/// Computes `m x`.
#[inline(always)]
pub(crate) fn times<W: Wide>(m: &Columns<W>, x: &Four) -> W {
    let [x, y, z, _] = x.0;
    W::splat(z).mul_add(m[2], W::splat(y).mul_add(m[1], W::splat(x) * m[0]))
}

/// Computes `m x + sum`.
#[inline(always)]
pub(crate) fn times_add<W: Wide>(m: &Columns<W>, x: &Four, sum: W) -> W {
    let [x, y, z, _] = x.0;
    W::splat(z).mul_add(m[2], W::splat(y).mul_add(m[1], W::splat(x).mul_add(m[0], sum)))
}

/// Computes `[d]× m` with both matrices by rows.
#[inline(always)]
pub(crate) fn crossed<W: Wide>(d: &Four, m: &Columns<W>) -> Columns<W> {
    let [x, y, z, _] = d.0;
    let (x, y, z) = (W::splat(x), W::splat(y), W::splat(z));
    [z.neg_mul_add(m[1], y * m[2]), x.neg_mul_add(m[2], z * m[0]), y.neg_mul_add(m[0], x * m[1])]
}

/// Computes `mᵀ`.
#[inline(always)]
pub(crate) fn transposed<W: Wide>(m: Columns<W>) -> Columns<W> {
    let [a, b, c, _] = W::transpose([m[0], m[1], m[2], W::splat(0.0)]);
    [a, b, c]
}

/// Writes a register to memory.
#[inline(always)]
pub(crate) fn stored<W: Wide>(x: W) -> Four {
    let mut out = Four::default();
    x.store(&mut out);
    out
}

/// Returns the first three lanes as single numbers.
#[inline(always)]
pub(crate) fn singles<L: Single>(x: &Four) -> Vec3<L> {
    [L::load(&x.0[0]), L::load(&x.0[1]), L::load(&x.0[2])]
}

/// Places three numbers in the first lanes.
#[inline(always)]
pub(crate) fn lanes<L: Single>(x: Vec3<L>) -> Four {
    let mut out = Four::default();
    x[0].store(&mut out.0[0]);
    x[1].store(&mut out.0[1]);
    x[2].store(&mut out.0[2]);
    out
}
