//! Mechanisms with modified link lengths, for the diagnosis.

use inertial::estimation::OtherLength;
use inertial::mechanism::JointType;

use crate::Model;

/// Change of a length (m).
const STEP: f64 = 1e-3;
/// Smallest offset between joints (m) that is modified.
const SHORTEST: f64 = 0.02;

/// Returns mechanisms in which one distance between joints is modified.
pub(super) fn others(model: &Model) -> Vec<OtherLength> {
    let mut out = Vec::new();
    for (k, joint) in model.builder.joints.iter().enumerate() {
        let length = joint.origin.translation.norm();
        if matches!(joint.joint_type, JointType::Fixed) || length < SHORTEST {
            continue;
        }
        let mut builder = model.builder.clone();
        builder.joints[k].origin.translation *= 1.0 + STEP / length;
        let Ok(mechanism) = builder.build(&model.options) else { continue };
        if mechanism.parameter_count() == model.mechanism.parameter_count() {
            out.push(OtherLength { joint: joint.name.clone(), by: STEP, mechanism });
        }
    }
    out
}
