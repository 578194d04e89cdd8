//! Composite rigid bodies of the mass matrix.

use crate::dynamics::simd::Four;

/// Inertia of a body and all bodies that move with it, in world axes about its origin.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Composite {
    pub(super) rotational: [Four; 3],
    pub(super) first_moment: Four,
    pub(super) mass: f64,
}
