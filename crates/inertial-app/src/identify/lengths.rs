//! Mechanisms with other lengths, for a diagnosis.

use inertial::estimation::OtherLength;
use inertial::mechanism::JointType;

use crate::Model;

/// Change of a length (m).
const STEP: f64 = 1e-3;
/// Shorter offsets between joints are not tried.
const SHORTEST: f64 = 0.02;

/// Mechanisms with one distance between joints changed each.
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
