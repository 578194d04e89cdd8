//! Number field of the recursions.

use std::ops::Neg;

use nalgebra::{ClosedAddAssign, ClosedMulAssign, ClosedSubAssign, Scalar};
use num_traits::{One, Zero};

/// A commutative field (or, for p-adic lifting, a local ring): `f64`, GF(p), Z/pᵏ.
///
/// The bounds are those under which nalgebra multiplies fixed-size matrices.
pub trait Field:
    Scalar + Copy + Zero + One + ClosedAddAssign + ClosedSubAssign + ClosedMulAssign + Neg<Output = Self>
{
    /// The image of an integer.
    fn from_i64(n: i64) -> Self;

    /// The multiplicative inverse, `None` for zero and other non-units.
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
