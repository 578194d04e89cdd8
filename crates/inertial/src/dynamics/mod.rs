//! Kinematics and dynamics of a mechanism, and their regressors.
//!
//! A [`Mechanism`](crate::mechanism::Mechanism) is constant and shared; a [`Workspace`] is the scratch memory of one
//! thread, so that no call allocates. Matrices are row-major slices. Inverse dynamics and torque regressors, which are
//! evaluated millions of times, use precomputed tables: [`InverseDynamics`].

mod algorithms;
mod closure;
mod displacement;
mod inverse;
pub(crate) mod simd;

pub use algorithms::aba::forward_dynamics;
pub use algorithms::bias::bias_forces;
pub use algorithms::crba::mass_matrix;
pub use algorithms::energy::{
    kinetic_energy, kinetic_energy_regressor, potential_energy, potential_energy_regressor,
};
pub use algorithms::gravity::{gravity_forces, gravity_regressor};
pub use algorithms::jacobian::frame_jacobian;
pub use algorithms::kinematics::{Workspace, body_accelerations, body_velocities, forward_kinematics};
pub use algorithms::momentum::{MomentumSamples, momentum, momentum_regressor};
pub use algorithms::tetrahedral::{
    PSEUDO_INERTIA_ENTRIES, parameters_from_pseudo_inertia, pseudo_inertia_entries, tetrahedral_regressor,
};
pub use algorithms::wrench::{Frame, base_wrench, base_wrench_regressor};
pub(crate) use closure::PathLength;
pub use closure::{ClosedChunk, ClosedMechanism, ClosedWorkspace, MotionKind};
pub use inverse::batch::PackedChunk;
pub use inverse::frame_motion::FrameMotion;
pub use inverse::inverse_dynamics::{Arithmetic, InverseDynamics, Scratch};
pub use inverse::packed::{PackedBlock, PackedLayout};
pub use inverse::regressor_gradient::RegressorGradient;
pub use inverse::samples::Samples;
pub use simd::Four;

use crate::mechanism::ParameterBlock;
use crate::spatial::Parameters;
use crate::{Error, Result};

/// Returns an error if an argument has the wrong size.
fn expect_len(what: &'static str, found: usize, expected: usize) -> Result<()> {
    if found == expected { Ok(()) } else { Err(Error::Dimension { what, expected, found }) }
}

/// Writes the entries of one body into a row of the full parameter vector.
fn write_block(row: &mut [f64], block: &ParameterBlock, entries: &Parameters) {
    row[block.offset..block.offset + block.len].copy_from_slice(&entries.as_slice()[10 - block.len..]);
}
