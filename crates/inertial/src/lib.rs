//! `inertial` weighs a robot by moving it.
//!
//! The modules tell the story, each using only those before it:
//! [`spatial`] vectors and inertias, and whether a body can have them ([`consistency`]) → a [`mechanism`] → its
//! [`dynamics`], linear in the inertial parameters → their [`identifiability`]: which of them can be known → what
//! sensors read during a motion ([`simulation`]) → their [`estimation`] from logs.
//!
//! All of it rests on one fact: forces are linear in the inertial parameters,
//! $$\tau = Y(q, \dot q, \ddot q) \pi,$$
//! and of the parameters $\pi$ only the combinations $\beta = K \pi$, the base parameters, ever show.
//!
//! Conventions used everywhere:
//! - spatial vectors are `[angular; linear]`, in body coordinates, at the body frame's origin;
//! - a [`spatial::Pose`] maps child coordinates to parent coordinates;
//! - the ten inertial parameters of a body are `m hx hy hz Ixx Ixy Ixz Iyy Iyz Izz`, about the origin of its frame;
//! - SI units throughout.

pub mod consistency;
pub mod dynamics;
pub mod estimation;
pub mod excitation;
pub mod identifiability;
pub mod linalg;
pub mod mechanism;
pub mod optimize;
pub mod simulation;
pub mod spatial;
pub mod unknowns;

mod error;
pub use error::{Error, Place, Result, nearest_hint};

#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
