//! Motions that reveal the parameters.
//!
//! A [`Trajectory`] is linear in its coefficients: a Fourier series, a B-spline, velocities at knots, or a sequence of
//! movements from point to point, all start and end at rest. [`Motion`] makes of it the states of a mechanism.

mod basis;
mod motion;
mod trajectory;
mod write;

pub use basis::{Basis, Profile};
pub use motion::{BASE_COORDINATES, Motion};
pub use trajectory::Trajectory;
