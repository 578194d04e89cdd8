//! Optimisers that know nothing of robots.

pub mod barrier;
pub mod lbfgs;
pub mod sqp;
