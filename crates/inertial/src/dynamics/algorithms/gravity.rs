//! Gravity forces and their regressor.

use crate::Result;
use crate::dynamics::algorithms::bias::project;
use crate::dynamics::{Workspace, expect_len, forward_kinematics};
use crate::mechanism::Mechanism;
use crate::spatial::Motion;

/// Computes the generalized forces `g(q)` that hold the mechanism at rest, `nv` entries: the gradient of the potential
/// energy.
pub fn gravity_forces(
    mechanism: &Mechanism,
    workspace: &mut Workspace,
    q: &[f64],
    out: &mut [f64],
) -> Result<()> {
    expect_len("gravity force vector", out.len(), mechanism.nv())?;
    forward_kinematics(mechanism, workspace, q)?;
    let gravity = mechanism.gravity();
    for (i, body) in mechanism.bodies().iter().enumerate() {
        workspace.force[i] = -body.inertia.weight(&workspace.gravity_in(i, &gravity));
    }
    project(mechanism, workspace, out);
    Ok(())
}

/// Computes the static regressor, `nv × np` row-major: `g(q) = Y_g(q) π`. Only columns of masses and first moments are
/// nonzero.
///
/// ```
/// use inertial::dynamics::{Workspace, gravity_regressor};
/// use inertial::mechanism::{JointSpec, JointType, MechanismBuilder};
/// use inertial::spatial::Inertia;
/// use nalgebra::Vector3;
///
/// let hinge = JointType::Revolute { axis: -Vector3::y() };
/// let pendulum = MechanismBuilder::new("pendulum", "ground")
///     .link("bob", Inertia::zero())
///     .joint(JointSpec::new("pivot", hinge, "ground", "bob"))
///     .build(&Default::default())?;
/// let mut y = [0.0; 10];
/// gravity_regressor(&pendulum, &mut Workspace::new(&pendulum), &[0.0], &mut y)?;
/// assert_eq!(y, [0.0, 9.81, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]); // τ = 9.81 hx
/// # Ok::<(), inertial::Error>(())
/// ```
pub fn gravity_regressor(
    mechanism: &Mechanism,
    workspace: &mut Workspace,
    q: &[f64],
    out: &mut [f64],
) -> Result<()> {
    let np = mechanism.parameter_count();
    expect_len("gravity regressor", out.len(), mechanism.nv() * np)?;
    forward_kinematics(mechanism, workspace, q)?;
    out.fill(0.0);
    let bodies = mechanism.bodies();
    for block in mechanism.parameter_blocks().iter().filter(|b| b.len == 10) {
        let up = -workspace.gravity_in(block.body, &mechanism.gravity());
        let seen_from = workspace.in_world[block.body].inverse();
        let mut above = Some(block.body);
        while let Some(j) = above {
            let body = &bodies[j];
            let to_body = seen_from * workspace.in_world[j];
            for (k, mode) in body.joint_type.free_modes().iter().enumerate() {
                let Motion { angular, linear } = to_body.push_motion(&(*mode * body.drive.ratio));
                // Force m·up, moment h × up.
                let row = (body.drive.v + k) * np + block.offset;
                let moment = up.cross(&angular);
                out[row] += linear.dot(&up);
                out[row + 1] += moment.x;
                out[row + 2] += moment.y;
                out[row + 3] += moment.z;
            }
            above = body.parent;
        }
    }
    Ok(())
}
