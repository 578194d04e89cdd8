//! Total momentum and its regressor.

use crate::Result;
use crate::dynamics::algorithms::wrench::write_columns;
use crate::dynamics::{Frame, Workspace, body_velocities, expect_len};
use crate::mechanism::Mechanism;
use crate::spatial::{Force, momentum_columns};

/// Velocities and momenta of a free-flying robot, stored sample by sample.
#[derive(Debug, Clone, Copy)]
pub struct MomentumSamples<'a> {
    /// Positions, `nq` per sample; the position of the base is irrelevant.
    pub q: &'a [f64],
    /// Measured velocities, `nv` per sample: base twist in the axes of the base (linear first), then the joints.
    pub v: &'a [f64],
    /// Momentum of the robot without its wheels, six numbers per sample: linear first, at the origin of the base in its
    /// axes.
    pub momentum: &'a [f64],
}

/// Computes the total momentum of all bodies: angular about the origin of `frame`, and linear, in its axes.
///
/// ```
/// use inertial::dynamics::{Frame, Workspace, momentum};
/// use inertial::mechanism::{JointSpec, JointType, MechanismBuilder};
/// use inertial::spatial::Inertia;
/// use nalgebra::{Matrix3, vector};
///
/// let satellite = MechanismBuilder::new("satellite", "space")
///     .link("body", Inertia::from_com(2.0, vector![0.0, 0.0, 0.0], Matrix3::identity()))
///     .joint(JointSpec::new("free", JointType::Floating, "space", "body"))
///     .build(&Default::default())?;
/// let mut workspace = Workspace::new(&satellite);
/// let q = [0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0];
/// let v = [3.0, 0.0, 0.0, 0.0, 0.0, 0.0];
/// let at_world = momentum(&satellite, &mut workspace, &q, &v, Frame::World)?;
/// assert_eq!(at_world.linear, vector![6.0, 0.0, 0.0]);
/// assert_eq!(at_world.angular, vector![0.0, 0.0, -6.0]);
/// assert_eq!(momentum(&satellite, &mut workspace, &q, &v, Frame::Base)?.angular, vector![0.0, 0.0, 0.0]);
/// # Ok::<(), inertial::Error>(())
/// ```
pub fn momentum(
    mechanism: &Mechanism,
    workspace: &mut Workspace,
    q: &[f64],
    v: &[f64],
    frame: Frame,
) -> Result<Force<f64>> {
    body_velocities(mechanism, workspace, q, v)?;
    let mut total = Force::zero();
    for (i, body) in mechanism.bodies().iter().enumerate() {
        total += workspace.in_world[i].push_force(&body.inertia.apply(&workspace.velocity[i]));
    }
    Ok(frame.pose(mechanism, workspace).pull_force(&total))
}

/// Computes the momentum regressor, `6 × np` row-major, rows `px py pz lx ly lz` (linear first, as in logs).
pub fn momentum_regressor(
    mechanism: &Mechanism,
    workspace: &mut Workspace,
    q: &[f64],
    v: &[f64],
    frame: Frame,
    out: &mut [f64],
) -> Result<()> {
    expect_len("momentum regressor", out.len(), 6 * mechanism.parameter_count())?;
    body_velocities(mechanism, workspace, q, v)?;
    let seen_from = frame.pose(mechanism, workspace).inverse();
    for block in mechanism.parameter_blocks() {
        let pose = seen_from * workspace.in_world[block.body];
        let twist = pose.push_motion(&workspace.velocity[block.body]);
        write_columns(mechanism, out, block, &momentum_columns(&twist, &pose));
    }
    Ok(())
}
