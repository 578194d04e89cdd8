//! Mass matrix by the composite-rigid-body algorithm.

use crate::Result;
use crate::dynamics::{Workspace, expect_len, forward_kinematics};
use crate::mechanism::Mechanism;

/// The mass matrix `H(q)`, `nv × nv` row-major, armature included.
///
/// Bodies that share a coordinate (mimic joints, rotors) add up: `H = Gᵀ H_bodies G`, where `H_bodies` is the matrix of
/// the tree with every joint free and `G` distributes the coordinates over the joints.
///
/// ```
/// use inertial::dynamics::{Workspace, mass_matrix};
/// use inertial::mechanism::{JointSpec, JointType, MechanismBuilder};
/// use inertial::spatial::Inertia;
/// use nalgebra::{Matrix3, Vector3, vector};
///
/// let rod = Inertia::from_com(3.0, vector![0.5, 0.0, 0.0], Matrix3::from_diagonal(&vector![0.0, 0.25, 0.25]));
/// let hinge = JointType::Revolute { axis: Vector3::z() };
/// let pendulum = MechanismBuilder::new("pendulum", "ground")
///     .link("rod", rod)
///     .joint(JointSpec::new("pivot", hinge, "ground", "rod"))
///     .build(&Default::default())?;
/// let mut h = [0.0];
/// mass_matrix(&pendulum, &mut Workspace::new(&pendulum), &[0.4], &mut h)?;
/// assert_eq!(h, [1.0]); // m l²/3
/// # Ok::<(), inertial::Error>(())
/// ```
pub fn mass_matrix(
    mechanism: &Mechanism,
    workspace: &mut Workspace,
    q: &[f64],
    out: &mut [f64],
) -> Result<()> {
    let n = mechanism.nv();
    expect_len("mass matrix", out.len(), n * n)?;
    forward_kinematics(mechanism, workspace, q)?;
    out.fill(0.0);
    for (k, armature) in mechanism.armature().iter().enumerate() {
        out[k * n + k] = *armature;
    }
    let bodies = mechanism.bodies();
    for (body, composite) in bodies.iter().zip(&mut workspace.composite) {
        *composite = body.inertia;
    }
    for (i, body) in bodies.iter().enumerate().rev() {
        let modes = body.joint_type.free_modes();
        for (k, mode) in modes.iter().enumerate() {
            let row = body.drive.v + k;
            // The wrench that accelerates all after this joint along the mode, carried towards the base.
            let mut force = workspace.composite[i].apply(&(*mode * body.drive.ratio));
            for (l, other) in modes[..=k].iter().enumerate() {
                let h = body.drive.ratio * other.dot(&force);
                out[row * n + body.drive.v + l] += h;
                if l < k {
                    out[(body.drive.v + l) * n + row] += h;
                }
            }
            let mut here = i;
            while let Some(above) = bodies[here].parent {
                force = workspace.in_parent[here].push_force(&force);
                let ancestor = &bodies[above];
                for (l, other) in ancestor.joint_type.free_modes().iter().enumerate() {
                    let h = ancestor.drive.ratio * other.dot(&force);
                    // Two bodies, two terms; both on the diagonal where they share the coordinate.
                    out[row * n + ancestor.drive.v + l] += h;
                    out[(ancestor.drive.v + l) * n + row] += h;
                }
                here = above;
            }
        }
        if let Some(p) = body.parent {
            let carried = workspace.composite[i].transformed(&workspace.in_parent[i]);
            workspace.composite[p] += carried;
        }
    }
    Ok(())
}
