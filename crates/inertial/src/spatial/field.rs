//! Number field of the recursions.

use std::ops::Neg;

use nalgebra::{ClosedAddAssign, ClosedMulAssign, ClosedSubAssign, Scalar};
use num_traits::{One, Zero};

/// Commutative field (or, for p-adic lifting, a local ring): `f64`, GF(p), Z/pᵏ.
///
/// The bounds are those required by nalgebra to multiply fixed-size matrices.
pub trait Field:
    Scalar + Copy + Zero + One + ClosedAddAssign + ClosedSubAssign + ClosedMulAssign + Neg<Output = Self>
{
    /// Returns the image of an integer.
    fn from_i64(n: i64) -> Self;

    /// Returns the multiplicative inverse, `None` for zero and other non-units.
    fn inverse(self) -> Option<Self>;
}

impl Field for f64 {
    #[inline]
    fn from_i64(n: i64) -> Self {
        n as f64
    }

    #[inline]
    fn inverse(self) -> Option<Self> {
        (self != 0.0).then(|| self.recip())
    }
}
