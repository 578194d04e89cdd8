//! Tolerances of loop closure.

/// Singular values of the scaled constraints below this fraction of the largest are redundant constraints.
///
/// It is the tolerance of special geometry (angles in files are rounded: 1.5708 for π/2), so that planar linkages and other
/// overconstrained machines move although their rounded geometry contradicts itself a little.
pub(super) const RANK_TOLERANCE: f64 = 1e-4;

/// A loop open by more than this (rad, or relative to its length) is not closed, however rounded its geometry.
pub(super) const LARGEST_GAP: f64 = 1e-4;
