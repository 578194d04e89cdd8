//! Tolerances of loop closure.

/// Singular values of the scaled constraints below this fraction of the largest belong to redundant constraints.
///
/// It is the tolerance of special geometry (angles in files are rounded: 1.5708 for π/2), so that planar linkages and
/// other overconstrained machines move although their rounded geometry is slightly contradictory.
pub(super) const RANK_TOLERANCE: f64 = 1e-4;

/// Largest closure error (rad, or relative to the length of the loop) of a closed loop, even with rounded geometry.
pub(super) const LARGEST_GAP: f64 = 1e-4;
