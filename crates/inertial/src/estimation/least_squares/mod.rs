//! Linear estimators: ordinary, weighted and robust least squares, with covariance.

pub(crate) mod compact;
pub(crate) mod essential;
pub(crate) mod fit;
pub(crate) mod jackknife;
pub(crate) mod robust;
pub(crate) mod solution;

pub use fit::*;
