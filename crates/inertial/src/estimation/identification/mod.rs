//! Identification of a robot: parameters, residuals and warnings from a summary.

pub(crate) mod criticism;
pub(crate) mod excited;
pub(crate) mod identify;
pub(crate) mod joint_values;
pub(crate) mod least_norm;
pub(crate) mod prediction;
pub(crate) mod residuals;
pub(crate) mod result;
pub(crate) mod unmeasured;
