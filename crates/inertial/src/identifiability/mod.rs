//! Which inertial parameters can be known, and in which combinations.

pub mod lifting;
pub mod rpna;
pub mod topology;

pub use rpna::{Regime, Rpna};
pub use topology::Topology;
