//! Errors and numbers of mesh files.

use nalgebra::Vector3;

use crate::{Error, Place, Result};

/// Returns an error with this reason.
pub(super) fn refused<T>(reason: impl Into<String>) -> Result<T> {
    Err(Error::syntax(Place::default(), reason))
}

/// Reads three numbers, starting at the `k`-th.
pub(super) fn triple(bytes: &[u8], k: usize) -> Vector3<f64> {
    let number = |k: usize| f32::from_le_bytes(std::array::from_fn(|b| bytes[4 * k + b]));
    Vector3::from_fn(|i, _| f64::from(number(k + i)))
}
