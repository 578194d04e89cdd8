//! Selection of the joint model from the data: terms, drive couplings and Stribeck curves.

pub(crate) mod coupling;
pub(crate) mod evidence;
pub(crate) mod grounded_rotors;
pub(crate) mod joint_terms;
pub(crate) mod projection;
pub(crate) mod stribeck;
mod term_probability;
