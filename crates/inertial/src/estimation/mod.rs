//! From measured motion to parameters that a body can have.
//!
//! [`Equations`] say which unknowns act in which measured force: the base parameters of the mechanism and the terms of
//! the joints' own model. A log becomes a [`Summary`] in one pass; whatever comes after ([`least_squares`],
//! [`consistent`], residuals of any parameters) works on summaries and costs milliseconds, however long the log was.
//! [`identify`] goes all the way.

pub mod consistent;
mod equations;
mod errors_in_variables;
mod identify;
pub mod least_squares;
pub mod momentum;
mod prior;
mod residuals;
mod summary;

pub use consistent::ConsistentFit;
pub use equations::{Equations, JointTerms, Term};
pub use identify::{
    BodyEstimate, Estimator, Identification, IdentifyOptions, JointEstimate, ModelSize, ParameterEstimate,
    Tensor, identify,
};
pub use least_squares::{LeastSquares, Weighting};
pub use prior::Prior;
pub use residuals::{Residual, Validation, validate};
pub use summary::{Measurements, Summary};
