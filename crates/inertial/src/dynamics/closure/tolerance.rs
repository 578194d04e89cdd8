//! Tolerances of loop closure.

/// Singular values of the scaled constraints below this fraction of the largest belong to redundant constraints.
///
/// It is the tolerance of special geometry (angles in files are rounded: 1.5708 for π/2), so that planar linkages and
/// other overconstrained machines move although their rounded geometry is slightly contradictory.
pub(super) const RANK_TOLERANCE: f64 = 1e-4;

/// Tolerance instead of [`RANK_TOLERANCE`] for geometry in double precision. In a singular configuration the smallest
/// singular values are the square root of the rounding error.
pub(super) const PRECISE_RANK_TOLERANCE: f64 = 1e-6;

/// Largest closure error (rad, or relative to the length of the loop) in the configuration of the file for which its
/// geometry counts as written in double precision.
pub(super) const PRECISE_GAP: f64 = 1e-12;

/// Largest closure error (rad, or relative to the length of the loop) of a closed loop, even with rounded geometry.
pub(super) const LARGEST_GAP: f64 = 1e-4;
