//! Kinetic and potential energy, and their regressors (one row each).

use crate::Result;
use crate::dynamics::{Workspace, body_velocities, expect_len, forward_kinematics, write_block};
use crate::mechanism::Mechanism;
use crate::spatial::{Parameters, energy_gradient};

/// Computes the kinetic energy `½ vᵀ H(q) v` (J), armature included.
///
/// ```
/// use inertial::dynamics::{Workspace, kinetic_energy, kinetic_energy_regressor};
/// use inertial::mechanism::{JointSpec, JointType, MechanismBuilder};
/// use inertial::spatial::Inertia;
/// use nalgebra::{Matrix3, Vector3, vector};
///
/// let slide = JointType::Prismatic { axis: Vector3::x() };
/// let cart = MechanismBuilder::new("cart", "ground")
///     .link("cart", Inertia::from_com(3.0, Vector3::zeros(), Matrix3::identity()))
///     .joint(JointSpec::new("rail", slide, "ground", "cart"))
///     .build(&Default::default())?;
/// let mut workspace = Workspace::new(&cart);
/// assert_eq!(kinetic_energy(&cart, &mut workspace, &[0.0], &[2.0])?, 6.0);
/// let mut y = [0.0; 10];
/// kinetic_energy_regressor(&cart, &mut workspace, &[0.0], &[2.0], &mut y)?;
/// assert_eq!(y[0], 2.0); // ½ v², times the mass
/// # Ok::<(), inertial::Error>(())
/// ```
pub fn kinetic_energy(mechanism: &Mechanism, workspace: &mut Workspace, q: &[f64], v: &[f64]) -> Result<f64> {
    body_velocities(mechanism, workspace, q, v)?;
    let bodies = mechanism.bodies().iter().zip(&workspace.velocity);
    let of_bodies: f64 = bodies.map(|(body, v)| v.dot(&body.inertia.apply(v))).sum();
    let of_armature: f64 = mechanism.armature().iter().zip(v).map(|(r, v)| r * v * v).sum();
    Ok(0.5 * (of_bodies + of_armature))
}

/// Computes the potential energy (J) of gravity, zero for a mass at the world origin.
pub fn potential_energy(mechanism: &Mechanism, workspace: &mut Workspace, q: &[f64]) -> Result<f64> {
    forward_kinematics(mechanism, workspace, q)?;
    let gravity = mechanism.gravity();
    let height = |(body, pose): (&crate::mechanism::Body, &crate::spatial::Pose<f64>)| {
        gravity.dot(&(pose.translation * body.inertia.mass + pose.rotation * body.inertia.first_moment))
    };
    Ok(-mechanism.bodies().iter().zip(&workspace.in_world).map(height).sum::<f64>())
}

/// Computes the row `k` with `T = k π` (paper 003, eq. 38). Armature is not a parameter and is excluded.
pub fn kinetic_energy_regressor(
    mechanism: &Mechanism,
    workspace: &mut Workspace,
    q: &[f64],
    v: &[f64],
    out: &mut [f64],
) -> Result<()> {
    expect_len("kinetic energy regressor", out.len(), mechanism.parameter_count())?;
    body_velocities(mechanism, workspace, q, v)?;
    for block in mechanism.parameter_blocks() {
        write_block(out, block, &energy_gradient(&workspace.velocity[block.body]));
    }
    Ok(())
}

/// Computes the row `u` with `U = u π`.
pub fn potential_energy_regressor(
    mechanism: &Mechanism,
    workspace: &mut Workspace,
    q: &[f64],
    out: &mut [f64],
) -> Result<()> {
    expect_len("potential energy regressor", out.len(), mechanism.parameter_count())?;
    forward_kinematics(mechanism, workspace, q)?;
    let gravity = mechanism.gravity();
    for block in mechanism.parameter_blocks() {
        let up = -workspace.gravity_in(block.body, &gravity);
        let mut row = Parameters::zeros();
        row[0] = -gravity.dot(&workspace.in_world[block.body].translation);
        row.fixed_rows_mut::<3>(1).copy_from(&up);
        write_block(out, block, &row);
    }
    Ok(())
}
