//! Unknowns of a robot and the measured channels that they act in.
//!
//! Design of motions ([`crate::excitation`]) and estimation ([`crate::estimation`]), from forces or from momentum, share this
//! model: the unknowns are the base parameters that [`crate::identifiability`] finds, then the terms of the joints. Each
//! measured channel (the force of a coordinate, a component of a wrench or of the momentum) holds the unknowns that act in it,
//! with the packed regressor entry of each base parameter and the feature that each joint term multiplies.

mod channel;
mod term_kind;

pub use channel::{Channel, base_channels, full_channels};
pub use term_kind::{TermKind, base_names};
