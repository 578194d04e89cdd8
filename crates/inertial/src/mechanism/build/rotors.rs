//! Rotors: the spinning part becomes a body of its own, the rest is added to the carrier.

use nalgebra::{Matrix3, Vector3};

use super::Build;
use super::check::{checked_axis, checked_pose, finite, place};
use crate::mechanism::{Body, BodyKind, Drive, JointType, RotorModel, rotation_about};
use crate::spatial::{Inertia, Pose};
use crate::{Error, Result};

/// Relative deviation from symmetry above which a symmetric rotor causes a warning.
const SYMMETRY_TOLERANCE: f64 = 1e-6;

impl Build<'_> {
    pub(super) fn rotors(&mut self) -> Result<()> {
        for (rotor, name) in self.spec.rotors.iter().zip(self.spec.rotor_names()) {
            let here = || place(rotor.line, format!("rotor of joint \"{}\"", rotor.joint));
            finite(&here().element, rotor.line, &[rotor.ratio])?;
            finite(&here().element, rotor.line, rotor.inertia.parameters().as_slice())?;
            let axis = checked_axis(&rotor.axis, here())?;
            let origin = checked_pose(&rotor.origin, here())?;
            let joint = *self
                .joint_index
                .get(&rotor.joint)
                .ok_or_else(|| Error::model(here(), "there is no moving joint of that name"))?;
            let carrier = self.link_index.get(&rotor.carrier).copied().ok_or_else(|| {
                Error::model(here(), format!("its carrier \"{}\" does not exist", rotor.carrier))
            })?;
            if self.joints[joint].joint_type.nv() != 1 {
                return Err(Error::model(here(), "a rotor drives a joint of one degree of freedom only"));
            }
            if self.couplings[self.origin_of[joint]].as_ref().is_some_and(|c| c.leaders.len() > 1) {
                return Err(Error::model(
                    here(),
                    "its joint follows several others: describe the rotor as a link with a joint of its own that \
                     follows them too",
                ));
            }
            let path = self.paths[carrier] + origin.translation.norm();
            let carrier = &self.links[carrier];
            let (parent, placement) = (carrier.body, carrier.pose * origin);
            let model = self.options.rotors.unwrap_or(if rotor.symmetric {
                RotorModel::Symmetric
            } else {
                RotorModel::General
            });
            let follower = self.bodies[self.joints[joint].body].drive;
            let drive = Drive {
                ratio: rotor.ratio * follower.ratio,
                offset: rotor.ratio * follower.offset,
                ..follower
            };
            finite(&here().element, rotor.line, &[drive.ratio, drive.offset])?;
            let joint_type = JointType::Revolute { axis };
            let (kind, inertia) = (BodyKind::Rotor, rotor.inertia);
            let body = Body {
                name,
                kind,
                parent,
                placement,
                joint_type,
                drive,
                rounding: None,
                path,
                inertia,
                joint,
            };
            self.add_rotor(model, axis, body);
        }
        Ok(())
    }

    fn add_rotor(&mut self, model: RotorModel, axis: Vector3<f64>, mut body: Body) {
        let inertia = body.inertia;
        let in_carrier = body.placement;
        let dead_weight = match model {
            RotorModel::None => Some(inertia),
            RotorModel::General => None,
            RotorModel::Symmetric => {
                // The part that is invariant under the spin is added to the carrier; the inertia about the axis
                // remains.
                let spin = axis.dot(&(inertia.rotational * axis));
                let across = 0.5 * (inertia.rotational.trace() - spin);
                let outer = axis * axis.transpose();
                let carried = Inertia {
                    mass: inertia.mass,
                    first_moment: outer * inertia.first_moment,
                    rotational: (Matrix3::identity() - outer) * across,
                };
                let own = Inertia { rotational: outer * spin, ..Inertia::zero() };
                let defect = (inertia - carried - own).parameters().amax();
                if defect > SYMMETRY_TOLERANCE * inertia.parameters().amax() {
                    self.warnings.push(format!(
                        "rotor of joint \"{}\" is not symmetric about its axis as described; it is taken as its \
                         symmetric part (use --rotors general for all ten parameters)",
                        self.joints[body.joint].name
                    ));
                }
                // Rotates the frame so that the axis is z and the one parameter is Izz.
                body.placement = body.placement * Pose::new(frame_along(&axis), Vector3::zeros());
                body.joint_type = JointType::Revolute { axis: Vector3::z() };
                body.kind = BodyKind::SymmetricRotor;
                let rotational = Matrix3::from_diagonal(&Vector3::new(0.0, 0.0, spin));
                body.inertia = Inertia { rotational, ..Inertia::zero() };
                Some(carried)
            }
        };
        if let (Some(inertia), Some(carrier)) = (dead_weight, body.parent) {
            self.bodies[carrier].inertia += inertia.transformed(&in_carrier);
        }
        if model != RotorModel::None {
            self.bodies.push(body);
        }
    }
}

/// Returns a rotation whose z axis is `axis`; the identity if `axis` is already z.
fn frame_along(axis: &Vector3<f64>) -> Matrix3<f64> {
    let z = Vector3::z();
    let normal = z.cross(axis);
    let sine = normal.norm();
    if sine < 1e-15 {
        if axis.z > 0.0 { Matrix3::identity() } else { rotation_about(&Vector3::x(), std::f64::consts::PI) }
    } else {
        rotation_about(&(normal / sine), sine.atan2(axis.z))
    }
}
