//! Contributions of actuators and tendons to the joints.

use std::collections::HashMap;

use super::super::xml::quoted;
use super::body::Tree;
use super::compiler::Settings;
use super::defaults::Defaults;
use super::source::Source;
use crate::Result;

/// Adds the rotor inertias and dampers of actuators to their joints; both are multiplied by the square of the gear ratio.
pub(super) fn actuators<'a>(
    source: &'a Source<'_>,
    defaults: &Defaults<'a>,
    settings: &Settings,
    tree: &mut Tree<'_>,
    warnings: &mut Vec<String>,
) -> Result<()> {
    let mut joints = HashMap::new();
    for (b, body) in tree.bodies.iter().enumerate() {
        joints.extend(body.joints.iter().enumerate().map(|(j, joint)| (joint.name.clone(), (b, j))));
    }
    for section in source.section("actuator")? {
        for element in source.children(section) {
            let actuator = defaults.layered(element, None)?;
            let armature = actuator.number("armature")?.unwrap_or(0.0);
            let damping = actuator.overlay("damping", [0.0; 3])?;
            if armature == 0.0 && damping == [0.0; 3] {
                continue;
            }
            if actuator.text("tendon").is_some() && armature != 0.0 {
                return Err(element.unsupported("armature on a tendon"));
            }
            let Some(name) = actuator.text("joint").or(actuator.text("jointinparent")) else {
                warnings.push(format!("{}its damping is left out", element.place()));
                continue;
            };
            let &(b, j) = joints
                .get(name)
                .ok_or_else(|| element.error(format!("its joint {} does not exist", quoted(name))))?;
            let [gear, ..] = actuator.overlay("gear", [1.0, 0.0, 0.0, 0.0, 0.0, 0.0])?;
            let dynamics = &mut tree.bodies[b].joints[j].dynamics;
            dynamics.armature += armature * gear * gear;
            if settings.damper {
                dynamics.damping += damping[0] * gear * gear;
            }
            if damping[1..] != [0.0; 2] {
                warnings.push(format!("{}only the linear term of its damping is kept", element.place()));
            }
        }
    }
    Ok(())
}

/// Rejects tendons with inertia; warns about tendon forces that are omitted.
pub(super) fn tendons<'a>(
    source: &'a Source<'_>,
    defaults: &Defaults<'a>,
    warnings: &mut Vec<String>,
) -> Result<()> {
    for section in source.section("tendon")? {
        for element in source.children(section) {
            let tendon = defaults.layered(element, None)?;
            if tendon.number("armature")?.is_some_and(|a| a != 0.0) {
                return Err(element.unsupported("armature on a tendon"));
            }
            let forces = [
                ("stiffness", tendon.overlay("stiffness", [0.0; 3])? != [0.0; 3]),
                ("damping", tendon.overlay("damping", [0.0; 3])? != [0.0; 3]),
                ("frictionloss", tendon.number("frictionloss")?.is_some_and(|f| f != 0.0)),
            ];
            for (force, _) in forces.iter().filter(|(_, acts)| *acts) {
                warnings.push(format!("{}its {force} is left out", element.place()));
            }
        }
    }
    Ok(())
}
