//! Bias forces: Coriolis, centrifugal and gravity terms at zero joint acceleration.

use crate::Result;
use crate::dynamics::algorithms::kinematics::accelerate;
use crate::dynamics::{Workspace, body_velocities, expect_len};
use crate::mechanism::Mechanism;

/// Computes the bias forces `h(q, v)` of `τ = H(q) a + h(q, v)`: Coriolis, centrifugal and gravity terms, `nv` entries.
///
/// ```
/// use inertial::dynamics::{Workspace, bias_forces};
/// use inertial::mechanism::{JointSpec, JointType, MechanismBuilder};
/// use inertial::spatial::Inertia;
/// use nalgebra::{Matrix3, Vector3, vector};
///
/// let bob = Inertia::from_com(2.0, vector![1.0, 0.0, 0.0], Matrix3::zeros());
/// let hinge = JointType::Revolute { axis: -Vector3::y() };
/// let pendulum = MechanismBuilder::new("pendulum", "ground")
///     .link("bob", bob)
///     .joint(JointSpec::new("pivot", hinge, "ground", "bob"))
///     .build(&Default::default())?;
/// let mut h = [0.0];
/// bias_forces(&pendulum, &mut Workspace::new(&pendulum), &[0.0], &[5.0], &mut h)?;
/// assert_eq!(h, [2.0 * 9.81]); // its weight at the arm of one metre
/// # Ok::<(), inertial::Error>(())
/// ```
pub fn bias_forces(
    mechanism: &Mechanism,
    workspace: &mut Workspace,
    q: &[f64],
    v: &[f64],
    out: &mut [f64],
) -> Result<()> {
    expect_len("bias force vector", out.len(), mechanism.nv())?;
    body_velocities(mechanism, workspace, q, v)?;
    accelerate(mechanism, workspace, v, None);
    let gravity = mechanism.gravity();
    for (i, body) in mechanism.bodies().iter().enumerate() {
        let weight = body.inertia.weight(&workspace.gravity_in(i, &gravity));
        workspace.force[i] = body.inertia.wrench(&workspace.velocity[i], &workspace.acceleration[i]) - weight;
    }
    project(mechanism, workspace, out);
    Ok(())
}

/// Computes the generalized forces of the wrenches on the bodies (`workspace.force`), which are accumulated towards the
/// base.
pub(crate) fn project(mechanism: &Mechanism, workspace: &mut Workspace, out: &mut [f64]) {
    out.fill(0.0);
    for (i, body) in mechanism.bodies().iter().enumerate().rev() {
        let force = workspace.force[i];
        for (k, mode) in body.joint_type.free_modes().iter().enumerate() {
            out[body.drive.v + k] += body.drive.ratio * mode.dot(&force);
        }
        if let Some(p) = body.parent {
            workspace.force[p] += workspace.in_parent[i].push_force(&force);
        }
    }
}
