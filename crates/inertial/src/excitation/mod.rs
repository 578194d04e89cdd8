//! Design of motions that excite the parameters.
//!
//! A [`Trajectory`] is linear in its coefficients: a Fourier series, a B-spline, velocities at knots, or a sequence of
//! point-to-point movements, all of which start and end at rest. [`Motion`] converts it to states of a mechanism. [`Columns`] hold
//! the unknowns and the measured forces, an [`Evaluator`] computes the information of a motion and its gradient, a [`Criterion`]
//! evaluates it, and [`design()`] finds the best motion within the limits, with its [`Certificate`]. For mechanisms with loops it
//! moves the independent joints. Free-flying robots have separate designs: [`design_flight`] and the published
//! [`design_cycloids`].

mod basis;
mod certificate;
mod clearance;
mod columns;
mod criteria;
pub mod cycloid;
mod cycloid_design;
mod design;
mod design_options;
mod flight;
mod flight_design;
mod flight_limits;
mod free_flight;
mod greedy;
mod information;
mod limits;
mod loop_design;
mod loop_search;
mod loop_task;
mod model_aggregation;
mod motion;
mod motion_search;
mod plan;
pub mod pruning;
mod random_states;
mod redundant_columns;
mod scaling;
mod search;
mod size;
mod starts;
mod states;
mod trajectory;
mod write;

pub use basis::{Basis, Profile};
pub use certificate::{Certificate, ExpectedAccuracy};
pub use clearance::{Capsule, CollisionModel};
pub use columns::{Columns, JointColumn, Stribeck};
pub use criteria::{Criterion, Value};
pub use cycloid_design::{Combinations, CycloidOptions, ROUNDED, design_cycloids};
pub use design::{certify, design};
pub use design_options::{Design, DesignOptions, Family, Progress, Subject};
pub use flight::{Flight, MovableCoordinate, PublishedCost};
pub use flight_design::{FlightOptions, design_flight};
pub use flight_limits::flight_forces;
pub use free_flight::{MomentumState, MomentumStateGradient};
pub use information::Evaluator;
pub use limits::{DefaultLimits, Usage, coordinates};
pub use model_aggregation::ModelAggregation;
pub use motion::{BASE_COORDINATES, Motion, base_state};
pub use plan::Coordinate;
pub use states::States;
pub use trajectory::Trajectory;
