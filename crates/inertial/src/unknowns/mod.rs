//! Unknowns of a robot and the measured channels that they act in.
//!
//! Excitation design ([`crate::excitation`]) and estimation ([`crate::estimation`]), from forces or from momentum,
//! share this model. The unknowns are the base parameters from [`crate::identifiability`], followed by the joint terms.
//! Each measured channel (the force of a coordinate, a component of a wrench or of the momentum) lists the unknowns
//! that act in it, with the packed regressor entry of each base parameter and the feature that each joint term
//! multiplies.

mod channel;
mod term_kind;

pub use channel::{Channel, base_channels, full_channels};
pub use term_kind::{TermKind, base_names};
