//! Identifiability of inertial parameters and their combinations.
//!
//! [`analyze`] analyses a whole mechanism. It combines two exact methods: [`rpna`] computes the null space joint by
//! joint, and [`sampling`] computes the row space at random configurations. If both give the same rank, the result is
//! certain.

mod analysis;
pub mod base_parameters;
pub mod certificate;
mod compare;
pub mod configurations;
mod conserved;
pub mod drng;
mod experiment;
pub mod extended;
mod family;
mod family_bound;
pub mod lifting;
mod literal;
pub mod loops;
mod mobility;
pub mod momentum;
mod null_space;
mod open_chains;
mod options;
mod parts;
pub mod probe;
mod random_walk;
mod related_geometry;
mod rounding;
pub mod rpna;
pub mod sampling;
pub mod sections;
mod shared_coordinates;
pub mod topology;
mod velocities;
mod warning;

pub use analysis::{Analysis, BaseParameter, BodyReport, ModelSummary, NullCombination, analyze};
pub use base_parameters::{Regrouping, Status};
pub use certificate::{Certificate, CertificateKind, JointTransfers};
pub use compare::{Comparison, Prediction, compare};
pub use experiment::{Conservation, Experiment, Measured, TotalMomentum};
pub use options::{AnalyzeOptions, Method};
pub use rpna::{Regime, Rpna, Scope};
pub use sampling::Sampler;
pub use topology::Topology;
pub use warning::Warning;
