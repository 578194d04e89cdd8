//! Physically consistent estimation: least squares over feasible bodies, with a prior.

pub(crate) mod body_fit;
pub(crate) mod bounds;
pub(crate) mod intervals;
pub(crate) mod joint_term_prior;
pub(crate) mod posterior;
pub(crate) mod prior;
pub(crate) mod problem;

pub use problem::*;
