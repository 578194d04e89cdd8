//! Inverse dynamics and torque regressors on precomputed tables, for one sample or for many.

pub(crate) mod batch;
pub(crate) mod frame_motion;
pub(crate) mod inverse_dynamics;
pub(crate) mod memory;
pub(crate) mod packed;
pub(crate) mod regressor;
pub(crate) mod regressor_gradient;
pub(crate) mod regressor_single;
pub(crate) mod rnea;
pub(crate) mod samples;
pub(crate) mod tables;
