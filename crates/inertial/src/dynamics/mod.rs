//! Kinematics and dynamics of a mechanism, and their regressors.
//!
//! A [`Mechanism`](crate::mechanism::Mechanism) is constant and shared; a [`Workspace`] is the scratch memory of one
//! thread, so that no call allocates. Matrices are row-major slices.

mod kinematics;

pub use kinematics::{Workspace, body_accelerations, body_velocities, forward_kinematics};

use crate::{Error, Result};

/// Refuses an argument of the wrong size.
fn expect_len(what: &'static str, found: usize, expected: usize) -> Result<()> {
    if found == expected { Ok(()) } else { Err(Error::Dimension { what, expected, found }) }
}
