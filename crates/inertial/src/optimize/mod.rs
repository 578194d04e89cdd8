//! Optimizers: conic least squares over consistent bodies, SQP, L-BFGS.

pub mod barrier;
pub mod chart;
pub mod conic;
pub mod lbfgs;
pub mod linear;
pub mod log_cholesky;
pub mod manifold;
mod newton;
pub mod pseudo;
mod quadratic;
pub mod rows;
pub mod sampling;
pub mod sqp;
mod status;

pub use conic::{Cone, ConicLeastSquares, Inequality, Options, Solution};
pub use status::SolverStatus;
