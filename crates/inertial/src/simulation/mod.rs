//! What a mechanism does and its sensors read when its joints follow a trajectory or feel given forces.
//!
//! Everything advances sample by sample in constant memory: [`FreeFlyer`] finds the motion of a floating base from the
//! conservation of momentum.

mod extrapolation;
mod free_flying;

pub use extrapolation::Extrapolation;
pub use free_flying::{FreeFlyer, PoseRule};
