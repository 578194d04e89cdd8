//! Mechanisms with loops: closed configurations, and the motion of all joints from that of the independent ones.
//!
//! With loops, the coordinates of the tree are dependent. A [`ClosedMechanism`] finds a regular assembled
//! configuration, chooses or checks the independent coordinates, and provides the maps `v = G v_ind` and `a = G a_ind +
//! g` used by all projected dynamics. The results do not depend on where the loops were cut.

mod assemble;
mod batch;
mod closed_mechanism;
mod constraints;
mod immobile;
mod loops;
mod maps;
mod motions;
mod newton;
mod path;
mod projected_dynamics;
mod projection;
mod solve;
mod tolerance;

pub use self::batch::ClosedChunk;
pub use self::closed_mechanism::{ClosedMechanism, ClosedWorkspace};
pub use self::motions::MotionKind;
pub(crate) use self::path::PathLength;
