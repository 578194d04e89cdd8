//! Forward dynamics by the articulated-body algorithm, or by the mass matrix if joints are coupled.

use crate::dynamics::algorithms::articulated_bodies::{ArticulatedScratch, Inputs, Outputs, SINGULAR, run};
use crate::dynamics::algorithms::placement::Placement;
use crate::dynamics::algorithms::tree_constants::TreeConstants;
use crate::dynamics::simd::{Plain, dispatch};
use crate::dynamics::{Workspace, bias_forces, expect_len, mass_matrix};
use crate::linalg::{ldl, ldl_solve};
use crate::mechanism::Mechanism;
use crate::{Error, Result};

/// Computes the accelerations `a` caused by the generalized forces `tau`, `nv` entries: `H(q) a + h(q, v) = τ`.
///
/// For trees without couplings the cost is proportional to the number of bodies (articulated-body algorithm). If joints
/// share a coordinate (mimic joints, rotors), the mass matrix is factored.
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
    workspace.prepare(mechanism, q)?;
    if workspace.constants.uncoupled {
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
    // Moved out while the workspace is in use; its memory is allocated once.
    let mut h = std::mem::take(&mut workspace.articulated.mass_matrix);
    h.resize(n * n, 0.0);
    let solved = mass_matrix(mechanism, workspace, q, &mut h).and_then(|()| {
        let diagonal = &mut workspace.articulated.diagonal;
        for (k, entry) in diagonal.iter_mut().enumerate() {
            *entry = h[k * n + k];
        }
        ldl(&mut h, n, |k| SINGULAR * diagonal[k].abs()).map_err(|k| not_definite(mechanism, k, h[k * n + k]))
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
    expect_len("velocity vector", v.len(), mechanism.nv())?;
    let inputs = &Inputs { q, v, tau, armature: mechanism.armature() };
    let Workspace { constants, placement, in_world, velocity, acceleration, articulated, .. } = workspace;
    let constants = &*constants;
    let outputs = &mut Outputs { a, in_world, velocity, acceleration, failure: None };
    dispatch!(workspace.fused, run::<Plain, Fused>(
        constants: &TreeConstants,
        placement: &mut Placement,
        articulated: &mut ArticulatedScratch,
        inputs: &Inputs<'_>,
        outputs: &mut Outputs<'_>
    ));
    outputs.failure.map_or(Ok(()), |(k, pivot)| Err(not_definite(mechanism, k, pivot)))
}

fn not_definite(mechanism: &Mechanism, coordinate: usize, pivot: f64) -> Error {
    let mut joints = mechanism.joints().iter();
    let joint = joints.find(|j| j.v_range().contains(&coordinate)).map_or("", |j| j.name.as_str());
    Error::Singular(if pivot.is_finite() {
        format!(
            "the mass matrix is not positive definite at joint \"{joint}\": do the bodies after it have no \
             mass, or negative inertia?"
        )
    } else {
        format!("the mass matrix is not finite at joint \"{joint}\": are all coordinates finite?")
    })
}
