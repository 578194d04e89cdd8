//! Base wrench (between the robot and the world) and its regressor.

use nalgebra::{SMatrix, Vector3};

use crate::Result;
use crate::dynamics::{Workspace, body_accelerations, expect_len};
use crate::mechanism::{Base, Mechanism, ParameterBlock};
use crate::spatial::{Force, Motion, Pose, body_regressor};

/// Reference frame of momentum and wrench.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Frame {
    /// World frame.
    World,
    /// Frame of the floating base; the world frame if the base is fixed.
    Base,
}

impl Frame {
    /// Returns the pose of the frame in the world, after forward kinematics.
    pub(crate) fn pose(self, mechanism: &Mechanism, workspace: &Workspace) -> Pose<f64> {
        match (self, mechanism.base()) {
            (Self::Base, Base::Floating) => workspace.in_world[0],
            _ => Pose::identity(),
        }
    }
}

/// Computes the wrench that moves the robot, excluding gravity, in [`Frame::Base`].
///
/// With a fixed base it is the wrench exerted by the ground on the robot, at the world origin in world axes. With a
/// floating base it is the net external wrench on the base in the base frame, which is the generalized force of the
/// floating joint.
///
/// ```
/// use inertial::dynamics::{Workspace, base_wrench};
/// use inertial::mechanism::{JointSpec, JointType, MechanismBuilder};
/// use inertial::spatial::Inertia;
/// use nalgebra::{Matrix3, Vector3, vector};
///
/// let hinge = JointType::Revolute { axis: Vector3::z() };
/// let turntable = MechanismBuilder::new("turntable", "ground")
///     .link("table", Inertia::from_com(2.0, vector![1.0, 0.0, 0.0], Matrix3::zeros()))
///     .joint(JointSpec::new("turn", hinge, "ground", "table"))
///     .build(&Default::default())?;
/// let wrench = base_wrench(&turntable, &mut Workspace::new(&turntable), &[0.0], &[3.0], &[0.0])?;
/// assert_eq!(wrench.linear, vector![-18.0, 0.0, 19.62]); // centripetal force and weight
/// # Ok::<(), inertial::Error>(())
/// ```
pub fn base_wrench(
    mechanism: &Mechanism,
    workspace: &mut Workspace,
    q: &[f64],
    v: &[f64],
    a: &[f64],
) -> Result<Force<f64>> {
    body_accelerations(mechanism, workspace, q, v, a)?;
    let mut total = Force::zero();
    for (i, body) in mechanism.bodies().iter().enumerate() {
        let proper = proper_acceleration(mechanism, workspace, i);
        let wrench = body.inertia.wrench(&workspace.velocity[i], &proper);
        total += workspace.in_world[i].push_force(&wrench);
    }
    Ok(Frame::Base.pose(mechanism, workspace).pull_force(&total))
}

/// Computes the regressor of [`base_wrench`], `6 × np` row-major, rows `fx fy fz tx ty tz` (force first, as in logs).
pub fn base_wrench_regressor(
    mechanism: &Mechanism,
    workspace: &mut Workspace,
    q: &[f64],
    v: &[f64],
    a: &[f64],
    out: &mut [f64],
) -> Result<()> {
    expect_len("base wrench regressor", out.len(), 6 * mechanism.parameter_count())?;
    body_accelerations(mechanism, workspace, q, v, a)?;
    let seen_from = Frame::Base.pose(mechanism, workspace).inverse();
    for block in mechanism.parameter_blocks() {
        let i = block.body;
        let mut y = body_regressor(&workspace.velocity[i], &proper_acceleration(mechanism, workspace, i));
        let pose = seen_from * workspace.in_world[i];
        for mut column in y.column_iter_mut() {
            let wrench = pose.push_force(&Force::from_vector(&column.clone_owned()));
            column.copy_from(&wrench.to_vector());
        }
        write_columns(mechanism, out, block, &y);
    }
    Ok(())
}

/// Returns the spatial acceleration of body `i` minus gravity, in the body frame.
fn proper_acceleration(mechanism: &Mechanism, workspace: &Workspace, i: usize) -> Motion<f64> {
    let gravity = workspace.gravity_in(i, &mechanism.gravity());
    workspace.acceleration[i] - Motion::new(Vector3::zeros(), gravity)
}

/// Writes the columns of one body, rows `[moment; force]`, into a `6 × np` regressor with the linear rows first.
pub(crate) fn write_columns(
    mechanism: &Mechanism,
    out: &mut [f64],
    block: &ParameterBlock,
    columns: &SMatrix<f64, 6, 10>,
) {
    let np = mechanism.parameter_count();
    for c in 0..block.len {
        let column = columns.column(10 - block.len + c);
        for r in 0..3 {
            out[r * np + block.offset + c] = column[3 + r];
            out[(3 + r) * np + block.offset + c] = column[r];
        }
    }
}
