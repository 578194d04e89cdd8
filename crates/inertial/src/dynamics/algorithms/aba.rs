//! Forward dynamics: the articulated-body algorithm, or the mass matrix where joints are coupled.

use crate::dynamics::algorithms::articulated_inertia::ArticulatedInertia;
use crate::dynamics::{Workspace, bias_forces, body_velocities, expect_len, mass_matrix};
use crate::linalg::{ldl, ldl_solve};
use crate::mechanism::Mechanism;
use crate::spatial::Force;
use crate::{Error, Result};

/// An articulated inertia that falls to this fraction of what it is the difference of is rounding.
///
/// Rounding makes about 1e-15; a light link between heavy ones makes 1e-9 at worst.
const SINGULAR: f64 = 1e-13;

/// The accelerations `a` that the generalized forces `tau` give, `nv` entries: `H(q) a + h(q, v) = τ`.
///
/// Trees without couplings take time proportional to the number of bodies (articulated-body algorithm). Where joints share
/// a coordinate (mimic joints, rotors) the mass matrix is factored.
///
/// ```
/// use inertial::dynamics::{Workspace, forward_dynamics};
/// use inertial::mechanism::{JointSpec, JointType, MechanismBuilder};
/// use inertial::spatial::Inertia;
/// use nalgebra::{Matrix3, Vector3};
///
/// let slide = JointType::Prismatic { axis: Vector3::z() };
/// let lift = MechanismBuilder::new("lift", "ground")
///     .link("cabin", Inertia::from_com(2.0, Vector3::zeros(), Matrix3::identity()))
///     .joint(JointSpec::new("rail", slide, "ground", "cabin"))
///     .build(&Default::default())?;
/// let mut a = [0.0];
/// forward_dynamics(&lift, &mut Workspace::new(&lift), &[0.0], &[0.0], &[0.0], &mut a)?;
/// assert_eq!(a, [-9.81]);
/// # Ok::<(), inertial::Error>(())
/// ```
pub fn forward_dynamics(
    mechanism: &Mechanism,
    workspace: &mut Workspace,
    q: &[f64],
    v: &[f64],
    tau: &[f64],
    a: &mut [f64],
) -> Result<()> {
    expect_len("force vector", tau.len(), mechanism.nv())?;
    expect_len("acceleration vector", a.len(), mechanism.nv())?;
    let joint_axes: usize = mechanism.bodies().iter().map(|b| b.joint_type.nv()).sum();
    if joint_axes == mechanism.nv() {
        articulated_bodies(mechanism, workspace, q, v, tau, a)
    } else {
        coupled(mechanism, workspace, q, v, tau, a)
    }
}

fn coupled(
    mechanism: &Mechanism,
    workspace: &mut Workspace,
    q: &[f64],
    v: &[f64],
    tau: &[f64],
    a: &mut [f64],
) -> Result<()> {
    let n = mechanism.nv();
    bias_forces(mechanism, workspace, q, v, a)?;
    for (a, tau) in a.iter_mut().zip(tau) {
        *a = tau - *a;
    }
    // Taken out while the workspace is in use; its memory grows once.
    let mut h = std::mem::take(&mut workspace.articulated.mass_matrix);
    h.resize(n * n, 0.0);
    let solved = mass_matrix(mechanism, workspace, q, &mut h).and_then(|()| {
        let scale = &mut workspace.articulated.scale;
        for (k, scale) in scale.iter_mut().enumerate() {
            *scale = h[k * n + k];
        }
        ldl(&mut h, n, |k| SINGULAR * scale[k].abs()).map_err(|k| not_definite(mechanism, k, h[k * n + k]))
    });
    if solved.is_ok() {
        ldl_solve(&h, n, a);
    }
    workspace.articulated.mass_matrix = h;
    solved
}

fn articulated_bodies(
    mechanism: &Mechanism,
    workspace: &mut Workspace,
    q: &[f64],
    v: &[f64],
    tau: &[f64],
    a: &mut [f64],
) -> Result<()> {
    body_velocities(mechanism, workspace, q, v)?;
    let gravity = mechanism.gravity();
    let bodies = mechanism.bodies();
    workspace.articulated.scale.copy_from_slice(mechanism.armature());
    for (i, body) in bodies.iter().enumerate() {
        let velocity = workspace.velocity[i];
        // What the velocities alone accelerate.
        workspace.acceleration[i] = velocity.cross(&body.joint_motion(v));
        let momentum = body.inertia.apply(&velocity);
        let weight = body.inertia.weight(&workspace.gravity_in(i, &gravity));
        workspace.force[i] = velocity.cross_force(&momentum) - weight;
        workspace.articulated.bodies[i].inertia = ArticulatedInertia::rigid(&body.inertia);
        for (scale, mode) in
            workspace.articulated.scale[body.v_range()].iter_mut().zip(&*body.joint_type.free_modes())
        {
            *scale += mode.dot(&body.inertia.apply(mode));
        }
    }
    for (i, body) in bodies.iter().enumerate().rev() {
        let modes = body.joint_type.free_modes();
        let n = modes.len();
        let first = body.drive.v;
        let inertia = workspace.articulated.bodies[i].inertia;
        let mut columns = [Force::zero(); 6];
        for (column, mode) in columns.iter_mut().zip(&*modes) {
            *column = inertia.apply(mode);
        }
        let factor = &mut workspace.articulated.bodies[i].factor;
        for k in 0..n {
            for l in 0..=k {
                factor[k * n + l] = modes[k].dot(&columns[l]);
            }
            factor[k * n + k] += mechanism.armature()[first + k];
            a[first + k] = tau[first + k] - modes[k].dot(&workspace.force[i]);
        }
        let scale = &mut workspace.articulated.scale;
        ldl(factor, n, |k| SINGULAR * scale[first + k].abs())
            .map_err(|k| not_definite(mechanism, first + k, factor[k * n + k]))?;
        ldl_solve(factor, n, &mut a[first..first + n]);
        let Some(p) = body.parent else { continue };
        let pose = workspace.in_parent[i];
        let above = &bodies[p];
        for (scale, mode) in scale[above.v_range()].iter_mut().zip(&*above.joint_type.free_modes()) {
            let mode = pose.pull_motion(mode);
            *scale += mode.dot(&inertia.apply(&mode));
        }
        // IA − U D⁻¹ Uᵀ, one rank at a time: with D = L d Lᵀ the columns of U L⁻ᵀ do not mix.
        let mut apparent = inertia;
        let mut bias = workspace.force[i];
        for k in 0..n {
            bias += columns[k] * a[first + k];
        }
        for k in 0..n {
            for l in 0..k {
                columns[k] = columns[k] - columns[l] * factor[k * n + l];
            }
            apparent.remove(&columns[k], factor[k * n + k].recip());
        }
        bias += apparent.apply(&workspace.acceleration[i]);
        workspace.force[p] += pose.push_force(&bias);
        workspace.articulated.bodies[p].inertia.add(&apparent.pushed(&pose));
    }
    for (i, body) in bodies.iter().enumerate() {
        if let Some(p) = body.parent {
            let carried = workspace.in_parent[i].pull_motion(&workspace.acceleration[p]);
            workspace.acceleration[i] += carried;
        }
        let own = &workspace.articulated.bodies[i];
        let force = own.inertia.apply(&workspace.acceleration[i]);
        let modes = body.joint_type.free_modes();
        let mut given = [0.0; 6];
        for (x, mode) in given.iter_mut().zip(&*modes) {
            *x = mode.dot(&force);
        }
        ldl_solve(&own.factor, modes.len(), &mut given);
        for (a, x) in a[body.v_range()].iter_mut().zip(given) {
            *a -= x;
        }
        workspace.acceleration[i] += body.joint_motion(a);
    }
    Ok(())
}

fn not_definite(mechanism: &Mechanism, coordinate: usize, pivot: f64) -> Error {
    let mut joints = mechanism.joints().iter();
    let joint = joints.find(|j| j.v_range().contains(&coordinate)).map_or("", |j| j.name.as_str());
    Error::Singular(if pivot.is_finite() {
        format!(
            "no acceleration follows from the forces: nothing resists joint \"{joint}\" (the mass matrix is not \
             positive definite: are bodies after it without mass, or with negative inertia?)"
        )
    } else {
        format!("the mass matrix is not finite at joint \"{joint}\": are all coordinates finite?")
    })
}
