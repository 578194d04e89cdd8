//! Identification of a free-flying robot from its momentum.

pub(crate) mod consistent;
pub(crate) mod equations;
pub(crate) mod errors_in_variables;
pub mod identify;
pub(crate) mod least_squares;
pub(crate) mod rows;

pub use equations::*;
