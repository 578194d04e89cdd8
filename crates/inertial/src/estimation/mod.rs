//! From measured motion to parameters that a body can have.
//!
//! [`Equations`] say which unknowns act in which measured force: the base parameters of the mechanism and the terms of
//! the joints' own model. A log becomes a [`Summary`] in one pass; whatever comes after ([`least_squares`],
//! [`consistent`], residuals of any parameters) works on summaries and costs milliseconds, however long the log was.
//! [`identify`] goes all the way.

mod absorb;
mod bounds;
mod candidates;
pub mod consistent;
mod coupling;
mod equations;
mod errors_in_variables;
mod essential;
mod expression;
mod fleet;
pub mod fleet_payload;
pub mod flown;
mod gains;
mod identification;
mod identify;
mod joint_model;
pub mod least_squares;
mod measurements;
pub mod momentum;
mod momentum_consistent;
pub mod momentum_identification;
mod momentum_rows;
mod online;
mod payload;
mod payload_link;
mod possible_body;
mod prediction;
mod prior;
mod residuals;
mod robust;
mod row_filter;
mod rows;
mod scales;
mod sensors;
mod shown;
mod single_body;
mod solution;
mod stribeck;
mod summary;
mod terms;

pub use bounds::{BodyBounds, Bounds, Ellipsoid, Span};
pub use consistent::{Consistency, ConsistentFit, Method, PriorKind};
pub use equations::Equations;
pub use essential::Essential;
pub use expression::{Expression, Meaning, State, Variable};
pub use fleet::{Fleet, Member, identify_fleet};
pub use fleet_payload::{Carried, FleetPayload};
pub use gains::{Gains, KnownPayload};
pub use identification::{BodyEstimate, Identification, JointEstimate, ModelSize, ParameterEstimate, Tensor};
pub use identify::{Estimator, IdentifyOptions, identify, identify_robust};
pub use least_squares::{LeastSquares, Weighting, information_matrix};
pub use measurements::{Huber, Measurements};
pub use momentum_consistent::ConsistentMomentum;
pub use online::Online;
pub use payload::{TRACE_OF_PRIOR, Unloaded, identify_payload};
pub use payload_link::PayloadLink;
pub use prediction::Prediction;
pub use prior::Prior;
pub use residuals::{Residual, Validation, validate};
pub use robust::robust;
pub use row_filter::RowFilter;
pub use single_body::{SensorMotion, SingleBody, WRENCH_NAMES, Wrenches, measured_prior};
pub use stribeck::Bend;
pub use summary::Summary;
pub use terms::{Coupling, GivenTerm, JointModel, JointTerms, Term};
