//! Three-vectors and 3×3 matrices of SIMD lanes, with fused products.

use crate::dynamics::simd::Lane;

/// Vector of three lanes.
pub(crate) type Vec3<L> = [L; 3];

/// Matrix of size 3×3, by rows.
pub(crate) type Mat3<L> = [Vec3<L>; 3];

/// Computes `a + b`.
#[inline(always)]
pub(crate) fn add<L: Lane>(a: Vec3<L>, b: Vec3<L>) -> Vec3<L> {
    [a[0] + b[0], a[1] + b[1], a[2] + b[2]]
}

/// Computes `s · a`.
#[inline(always)]
pub(crate) fn scale<L: Lane>(s: L, a: Vec3<L>) -> Vec3<L> {
    [s * a[0], s * a[1], s * a[2]]
}

/// Computes `s · a + b`.
#[inline(always)]
pub(crate) fn scale_add<L: Lane>(s: L, a: Vec3<L>, b: Vec3<L>) -> Vec3<L> {
    [s.mul_add(a[0], b[0]), s.mul_add(a[1], b[1]), s.mul_add(a[2], b[2])]
}

/// Computes `a · b`.
#[inline(always)]
pub(crate) fn dot<L: Lane>(a: Vec3<L>, b: Vec3<L>) -> L {
    a[2].mul_add(b[2], a[1].mul_add(b[1], a[0] * b[0]))
}

/// Computes `a × b`.
#[inline(always)]
pub(crate) fn cross<L: Lane>(a: Vec3<L>, b: Vec3<L>) -> Vec3<L> {
    [
        a[2].neg_mul_add(b[1], a[1] * b[2]),
        a[0].neg_mul_add(b[2], a[2] * b[0]),
        a[1].neg_mul_add(b[0], a[0] * b[1]),
    ]
}

/// Computes `a × b + c`.
#[inline(always)]
pub(crate) fn cross_add<L: Lane>(a: Vec3<L>, b: Vec3<L>, c: Vec3<L>) -> Vec3<L> {
    [
        a[2].neg_mul_add(b[1], a[1].mul_add(b[2], c[0])),
        a[0].neg_mul_add(b[2], a[2].mul_add(b[0], c[1])),
        a[1].neg_mul_add(b[0], a[0].mul_add(b[1], c[2])),
    ]
}

/// Computes `m · a`.
#[inline(always)]
pub(crate) fn mul<L: Lane>(m: &Mat3<L>, a: Vec3<L>) -> Vec3<L> {
    [dot(m[0], a), dot(m[1], a), dot(m[2], a)]
}

/// Computes `mᵀ · a`.
#[inline(always)]
pub(crate) fn tr_mul<L: Lane>(m: &Mat3<L>, a: Vec3<L>) -> Vec3<L> {
    scale_add(a[2], m[2], scale_add(a[1], m[1], scale(a[0], m[0])))
}

/// Returns a constant vector in all lanes.
#[inline(always)]
pub(crate) fn splat3<L: Lane>(a: &[f64; 3]) -> Vec3<L> {
    [L::splat(a[0]), L::splat(a[1]), L::splat(a[2])]
}

/// Loads a vector from memory.
#[inline(always)]
pub(crate) fn load3<L: Lane>(a: &[L::Memory; 3]) -> Vec3<L> {
    [L::load(&a[0]), L::load(&a[1]), L::load(&a[2])]
}

/// Stores a vector to memory.
#[inline(always)]
pub(crate) fn store3<L: Lane>(a: Vec3<L>, to: &mut [L::Memory; 3]) {
    a[0].store(&mut to[0]);
    a[1].store(&mut to[1]);
    a[2].store(&mut to[2]);
}
