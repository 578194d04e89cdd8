//! Choice of the joint model from the data: drive couplings and Stribeck curves.

pub(crate) mod coupling;
pub(crate) mod projection;
pub(crate) mod stribeck;
