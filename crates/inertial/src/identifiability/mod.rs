//! Which inertial parameters can be known, and in which combinations.
//!
//! [`analyze`] answers for a whole mechanism. Underneath, [`rpna`] finds what cannot be known, joint by joint; [`sampling`]
//! finds what can, at random configurations; both run on exact numbers, and where they meet the answer is certain.

mod analysis;
pub mod base_parameters;
pub mod certificate;
pub mod closed;
mod compare;
pub mod configurations;
mod conserved;
pub mod drng;
mod experiment;
pub mod extended;
mod family;
mod joined;
pub mod lifting;
mod literal;
mod mobility;
pub mod momentum;
mod open;
mod options;
mod parts;
pub mod probe;
mod rounding;
pub mod rpna;
pub mod sampling;
pub mod sections;
pub mod topology;
mod walk;

pub use analysis::{Analysis, BaseParameter, BodyReport, ModelSummary, NullCombination, analyze};
pub use base_parameters::{Regrouping, Status};
pub use certificate::{Certificate, JointTransfers};
pub use compare::{Comparison, Prediction, compare};
pub use experiment::{Conservation, Experiment, Measured, TotalMomentum};
pub use options::{AnalyzeOptions, Method};
pub use rpna::{Regime, Rpna, Scope};
pub use sampling::Sampler;
pub use topology::Topology;
