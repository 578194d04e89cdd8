//! Jacobian of a frame on a body.

use crate::dynamics::{Workspace, expect_len, forward_kinematics};
use crate::mechanism::Mechanism;
use crate::spatial::Pose;
use crate::{Error, Result};

/// Computes the Jacobian `J`, `6 × nv` row-major, of the frame with pose `frame` on `body`.
///
/// `J v` is the twist `[angular; linear]` of the frame in its own axes, at its own origin.
///
/// ```
/// use inertial::dynamics::{Workspace, frame_jacobian};
/// use inertial::mechanism::{JointSpec, JointType, MechanismBuilder};
/// use inertial::spatial::{Inertia, Pose};
/// use nalgebra::{Vector3, vector};
///
/// let hinge = JointType::Revolute { axis: Vector3::z() };
/// let arm = MechanismBuilder::new("arm", "ground")
///     .link("arm", Inertia::zero())
///     .joint(JointSpec::new("shoulder", hinge, "ground", "arm"))
///     .build(&Default::default())?;
/// let tip = Pose::from_translation(vector![2.0, 0.0, 0.0]);
/// let mut j = [0.0; 6];
/// frame_jacobian(&arm, &mut Workspace::new(&arm), &[0.7], 0, &tip, &mut j)?;
/// assert_eq!(j, [0.0, 0.0, 1.0, 0.0, 2.0, 0.0]);
/// # Ok::<(), inertial::Error>(())
/// ```
pub fn frame_jacobian(
    mechanism: &Mechanism,
    workspace: &mut Workspace,
    q: &[f64],
    body: usize,
    frame: &Pose<f64>,
    out: &mut [f64],
) -> Result<()> {
    expect_len("Jacobian", out.len(), 6 * mechanism.nv())?;
    let n = mechanism.bodies().len();
    if body >= n {
        return Err(Error::UnknownName(format!("there is no body {body}: the mechanism has {n}")));
    }
    forward_kinematics(mechanism, workspace, q)?;
    out.fill(0.0);
    let nv = mechanism.nv();
    let seen_from = (workspace.in_world[body] * *frame).inverse();
    let mut above = Some(body);
    while let Some(j) = above {
        let body = &mechanism.bodies()[j];
        let to_frame = seen_from * workspace.in_world[j];
        for (k, mode) in body.joint_type.free_modes().iter().enumerate() {
            let column = to_frame.push_motion(&(*mode * body.drive.ratio)).to_vector();
            for r in 0..6 {
                out[r * nv + body.drive.v + k] += column[r];
            }
        }
        above = body.parent;
    }
    Ok(())
}
