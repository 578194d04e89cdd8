//! Spatial algebra without allocation: motion and force vectors, poses, inertias and their ten parameters.
//!
//! All types are generic over a [`Field`], so that the same recursion runs in `f64` and exactly (in prime fields).
//! Functions that need angles or square roots exist for `f64` only.

mod field;
mod inertia;
pub mod pga;
mod pose;
mod pseudo;
mod regroup;
mod vector;

pub use field::Field;
pub(crate) use inertia::momentum_columns;
pub use inertia::{Inertia, PARAMETER_NAMES, Parameters, body_regressor};
pub use pose::{Pose, quaternion_from_rotation, rotation_from_quaternion, rotation_from_rpy, skew};
pub use pseudo::PseudoInertia;
pub use regroup::{
    energy_gradient, gradient_rate, inertia_gradient, momentum_matrix, pull_gradient, transfer_matrix,
    transfer_rate,
};
pub use vector::{Force, Motion};
