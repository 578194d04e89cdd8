//! Diagnosis of a result from samples of the log: what else than the parameters would explain the residual.
//!
//! A summary holds the equations of one model. Whether another model explains the log better takes the samples themselves; some
//! hundred of them are enough ([`excerpt::Excerpt`]). Small errors of model and sensors are estimated beside all unknowns
//! ([`deviations`]): a lag of the torques, a tilted base, zeros and gains of joints, lengths. Where the fit is bad, other readings
//! of the log are tried ([`alternatives`]): columns exchanged or negated, another direction of gravity.

pub(crate) mod alternatives;
pub(crate) mod deviations;
pub(crate) mod diagnose;
pub(crate) mod excerpt;
