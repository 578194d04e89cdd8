//! Tolerances of loop closure.

use crate::mechanism::Mechanism;

/// Singular values of the scaled constraints below this fraction of the largest belong to redundant constraints.
///
/// It is the tolerance of special geometry (angles in files are rounded: 1.5708 for π/2), so that planar linkages and
/// other overconstrained machines move although their rounded geometry is slightly contradictory.
pub(super) const RANK_TOLERANCE: f64 = 1e-4;

/// Largest closure error (rad, or relative to the length of the loop) of a closed loop, even with rounded geometry.
const LARGEST_GAP: f64 = 1e-4;

/// Ratios of both tolerances to the unit of the last decimal of the angles: the errors of the frames along a loop add up.
const RANK_UNITS: f64 = 5.0;
const GAP_UNITS: f64 = 10.0;

/// Largest value of either tolerance. Coarser files do not tell redundant constraints from others.
const COARSEST: f64 = 1e-3;

/// Tolerances of the loops of a mechanism.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tolerances {
    /// Ratio of singular values of the scaled constraints below which a constraint is redundant.
    pub rank: f64,
    /// Largest closure error (rad, or relative to the length of the loop) of a closed loop.
    pub gap: f64,
}

impl Tolerances {
    /// Derives the tolerances from the rounding of the angles in the file.
    pub fn new(mechanism: &Mechanism) -> Self {
        let roundings = mechanism.bodies().iter().filter_map(|body| body.rounding);
        let unit = roundings.map(|rounding| rounding.angle).fold(0.0, f64::max);
        Self {
            rank: (RANK_UNITS * unit).clamp(RANK_TOLERANCE, COARSEST),
            gap: (GAP_UNITS * unit).clamp(LARGEST_GAP, COARSEST),
        }
    }
}
