//! Diagnosis of a result from samples of the log: causes other than the parameters that could explain the residual.
//!
//! A summary contains the equations of one model. Testing whether another model explains the log better needs samples; a few
//! hundred are sufficient ([`excerpt::Excerpt`]). Small errors of model and sensors are estimated together with all unknowns
//! ([`deviations`]): a lag of the torques, a tilted base, zero positions and gains of joints, lengths. If the fit is bad,
//! alternative interpretations of the log are tried ([`alternatives`]): exchanged or negated columns, another direction of
//! gravity. Mechanisms with loops, floating bases, ball joints and measured base wrenches get only those that concern the torques.

pub(crate) mod alternatives;
pub(crate) mod deviation;
pub(crate) mod deviations;
pub(crate) mod diagnose;
pub(crate) mod excerpt;
pub(crate) mod joint_forces;
