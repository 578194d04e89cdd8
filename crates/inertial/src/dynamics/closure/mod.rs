//! Mechanisms with loops: closed configurations, and the motion of all joints from that of the independent ones.
//!
//! The tree's coordinates are dependent where there are loops. A [`ClosedMechanism`] finds a regular assembled configuration, chooses or
//! checks the independent coordinates, and gives the maps `v = G v_ind` and `a = G a_ind + g` on which all projected
//! dynamics stand. Nothing depends on where the loops were cut.

mod assemble;
mod batch;
mod closed_mechanism;
mod constraints;
mod loops;
mod maps;
mod motions;
mod newton;
mod projected_dynamics;
mod projection;
mod solve;
mod tolerance;

pub use self::batch::ClosedChunk;
pub use self::closed_mechanism::{ClosedMechanism, ClosedWorkspace};
pub use self::motions::MotionKind;
