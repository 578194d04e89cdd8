//! Joints that are held at a position: their links count as one body.

use inertial::mechanism::{JointDynamics, JointType, Limits, MechanismBuilder};

use crate::setting::Setting;
use crate::{Error, Result};

/// Holds joints, and those that follow them, at positions (rad or m).
pub(super) fn lock(builder: &mut MechanismBuilder, locks: &[Setting]) -> Result<()> {
    let mut held: Vec<(String, f64)> = Vec::new();
    for lock in locks {
        if !builder.joints.iter().any(|j| j.name == lock.column) {
            let names: Vec<String> = builder.joints.iter().map(|j| j.name.clone()).collect();
            let hint = inertial_data::nearest_hint(&lock.column, &names);
            return Err(Error::option("lock", format!("the model has no joint {}{hint}", lock.column)));
        }
        if held.iter().any(|(name, _)| *name == lock.column) {
            return Err(Error::option("lock", format!("{} is given two positions", lock.column)));
        }
        held.push((lock.column.clone(), lock.value));
    }
    let mut next = 0;
    while next < held.len() {
        let (name, value) = held[next].clone();
        next += 1;
        hold(builder, &name, value)?;
        for joint in &mut builder.joints {
            let Some(mimic) = &mut joint.mimic else { continue };
            let before = mimic.leaders.len();
            let lead: f64 = mimic.leaders.iter().filter(|(leader, _)| *leader == name).map(|(_, r)| r).sum();
            mimic.leaders.retain(|(leader, _)| *leader != name);
            mimic.offset += lead * value;
            let free = mimic.leaders.is_empty() && before > 0;
            if free && !held.iter().any(|(other, _)| *other == joint.name) {
                held.push((joint.name.clone(), mimic.offset));
            }
        }
    }
    Ok(())
}

fn hold(builder: &mut MechanismBuilder, name: &str, value: f64) -> Result<()> {
    let refuse = |reason: String| Err(Error::option("lock", format!("{name} {reason}")));
    if builder.rotors.iter().any(|r| r.joint == name) {
        return refuse("has a rotor in the model: such joints are not locked".into());
    }
    builder.assembly.retain(|(joint, _)| joint != name);
    let Some(joint) = builder.joints.iter_mut().find(|j| j.name == name) else { return Ok(()) };
    match joint.joint_type.nq() {
        0 => return refuse("is fixed".into()),
        1 => {}
        count => return refuse(format!("has {count} coordinates: only joints with one are locked")),
    }
    joint.origin = joint.origin * joint.joint_type.pose(&[value]);
    joint.joint_type = JointType::Fixed;
    (joint.mimic, joint.independent) = (None, None);
    (joint.limits, joint.dynamics) = (Limits::default(), JointDynamics::default());
    if value != 0.0 {
        joint.rounding = None;
    }
    Ok(())
}
