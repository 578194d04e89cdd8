//! Motions that reveal the parameters.
//!
//! A [`Trajectory`] is linear in its coefficients: a Fourier series, a B-spline, velocities at knots, or a sequence of
//! movements from point to point, all start and end at rest. [`Motion`] makes of it the states of a mechanism.

mod basis;
pub mod cycloid;
mod flight;
mod flight_design;
mod free_flight;
mod motion;
pub mod pruning;
mod trajectory;
mod write;

pub use basis::{Basis, Profile};
pub use flight::{Flight, Moved, PublishedCost};
pub use flight_design::{FlightCriterion, FlightDesign, FlightOptions, design_flight};
pub use free_flight::{Instant, InstantGradient};
pub use motion::{BASE_COORDINATES, Motion};
pub use trajectory::Trajectory;
