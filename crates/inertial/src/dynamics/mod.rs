//! Kinematics and dynamics of a mechanism, and their regressors.
//!
//! A [`Mechanism`](crate::mechanism::Mechanism) is constant and shared; a [`Workspace`] is the scratch memory of one
//! thread, so that no call allocates. Matrices are row-major slices.
//! Inverse dynamics and torque regressors, which run millions of times, have tables of their own: [`InverseDynamics`].

mod aba;
mod adjoint;
mod batch;
mod bias;
mod closure;
mod constrained;
mod crba;
mod energy;
mod frame;
mod gravity;
mod inverse;
mod jacobian;
mod kinematics;
pub(crate) mod lanes;
mod momentum;
mod packed;
mod regressor;
mod rnea;
mod simd;
mod sincos;
mod single;
mod tables;
mod tetrahedral;
mod vector;
mod wrench;

pub use aba::forward_dynamics;
pub use adjoint::RegressorGradient;
pub use batch::{PackedChunk, Samples};
pub use bias::bias_forces;
pub use closure::{ClosedChunk, ClosedMechanism, ClosedWorkspace, MotionKind};
pub use crba::mass_matrix;
pub use energy::{kinetic_energy, kinetic_energy_regressor, potential_energy, potential_energy_regressor};
pub use frame::FrameMotion;
pub use gravity::{gravity_forces, gravity_regressor};
pub use inverse::{Arithmetic, InverseDynamics, Scratch};
pub use jacobian::frame_jacobian;
pub use kinematics::{Workspace, body_accelerations, body_velocities, forward_kinematics};
pub use momentum::{momentum, momentum_regressor};
pub use packed::{PackedBlock, PackedLayout};
pub use simd::Four;
pub use tetrahedral::{
    PSEUDO_INERTIA_ENTRIES, parameters_from_pseudo_inertia, pseudo_inertia_entries, tetrahedral_regressor,
};
pub use wrench::{Frame, base_wrench, base_wrench_regressor};

use crate::mechanism::ParameterBlock;
use crate::spatial::Parameters;
use crate::{Error, Result};

/// Refuses an argument of the wrong size.
fn expect_len(what: &'static str, found: usize, expected: usize) -> Result<()> {
    if found == expected { Ok(()) } else { Err(Error::Dimension { what, expected, found }) }
}

/// Writes the entries of one body into a row of the full parameter vector.
fn write_block(row: &mut [f64], block: &ParameterBlock, entries: &Parameters) {
    row[block.offset..block.offset + block.len].copy_from_slice(&entries.as_slice()[10 - block.len..]);
}
