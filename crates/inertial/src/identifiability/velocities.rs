//! Velocities of the bodies at one configuration.

use crate::linalg::Number;
use crate::spatial::Motion;

/// Velocities at one configuration.
pub(super) struct Velocities<T: Number> {
    /// Virtual velocities along which forces are measured, for the joints up to and including that of each body.
    pub virtually: Vec<Motion<T>>,
    /// Velocities of the bodies, gravity included.
    pub moving: Vec<Motion<T>>,
    /// Velocities that multiply the motion of a joint in the row of its force.
    pub along: Vec<Motion<T>>,
    /// Virtual velocity and velocity of the ground, gravity included.
    pub ground: (Motion<T>, Motion<T>),
}
