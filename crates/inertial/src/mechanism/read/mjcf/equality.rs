//! `<equality>`: loops, couplings and locked joints.

use std::collections::HashMap;

use super::super::xml::{Element, quoted};
use super::body::Tree;
use super::compiler::Settings;
use super::defaults::{Defaults, Layered};
use super::joint::name_of;
use super::source::Source;
use super::{coupling, orientation, schema};
use crate::Result;
use crate::mechanism::{JointType, Mimic};
use crate::spatial::Pose;

/// End of a constraint: index of a body, and a frame on it.
type End = (usize, Pose<f64>);

/// Joint that closes a loop between frames of bodies.
pub(super) struct Closure {
    pub(super) name: String,
    pub(super) line: u32,
    pub(super) joint_type: JointType,
    pub(super) ends: [End; 2],
}

/// Active constraints.
#[derive(Default)]
pub(super) struct Equalities {
    pub(super) closures: Vec<Closure>,
    /// Joints that follow others.
    pub(super) mimics: HashMap<String, Mimic>,
    /// Locked joints, with their displacement from the initial configuration.
    pub(super) locked: HashMap<String, f64>,
}

/// Reads the `<equality>` sections; constraints that are initially inactive are skipped.
pub(super) fn read<'a>(
    source: &'a Source<'_>,
    defaults: &Defaults<'a>,
    settings: &Settings,
    tree: &Tree<'_>,
    warnings: &mut Vec<String>,
) -> Result<Equalities> {
    let mut out = Equalities::default();
    let tendons = coupling::fixed_tendons(source)?;
    let mut couplings = coupling::System::new(tree);
    let mut count = 0;
    for section in source.section("equality")? {
        for element in source.children(section) {
            let inherited = defaults.layered_as(element, "equality", None)?;
            if is_led(element, tree) {
                // A mocap body guides others in a simulation; it has no counterpart on the robot.
                let message = "it acts on a mocap body and is left out";
                warnings.push(format!("{}{message}", element.place()));
            } else if inherited.boolean("active")?.unwrap_or(true) && settings.equality {
                match element.tag() {
                    "connect" => out.closures.push(connect(element, tree, count)?),
                    "weld" => out.closures.push(weld(element, tree, count)?),
                    "joint" => couplings.joints(element)?,
                    "tendon" => couplings.tendons(element, &tendons)?,
                    tag => return Err(element.unsupported(format!("the constraint <{tag}>"))),
                }
                schema::check_equality(element)?;
            } else {
                let message = "it is switched off and left out";
                warnings.push(format!("{}{message}", element.place()));
            }
            count += 1;
        }
    }
    (out.mimics, out.locked) = couplings.solved();
    Ok(out)
}

fn body(element: Element<'_>, attribute: &str, tree: &Tree<'_>) -> Result<Option<usize>> {
    let Some(name) = element.attribute(attribute) else { return Ok(None) };
    let missing = || element.error(format!("its {attribute} {} does not exist", quoted(name)));
    tree.bodies.iter().position(|b| b.name == name).ok_or_else(missing).map(Some)
}

/// Returns whether one side of a constraint is a mocap body.
fn is_led(element: Element<'_>, tree: &Tree<'_>) -> bool {
    let named = |attribute| element.attribute(attribute);
    let bodies = ["body1", "body2"].into_iter().filter_map(named);
    let sites = ["site1", "site2"].into_iter().filter_map(named).filter_map(|site| tree.sites.get(site));
    matches!(element.tag(), "connect" | "weld")
        && (bodies.filter_map(|name| tree.bodies.iter().find(|b| b.name == name)).any(|b| b.mocap)
            || sites.into_iter().any(|(body, _)| tree.bodies[*body].mocap))
}

/// Returns the two sites of a constraint that is defined by sites.
fn sites(element: Element<'_>, tree: &Tree<'_>) -> Result<Option<[End; 2]>> {
    let find = |attribute: &str| {
        let name = element.required(attribute)?;
        let site = tree.sites.get(name);
        site.copied().ok_or_else(|| element.error(format!("its {attribute} {} does not exist", quoted(name))))
    };
    if element.attribute("site1").is_none() && element.attribute("site2").is_none() {
        return Ok(None);
    }
    if let Some(other) =
        ["body1", "body2", "anchor", "relpose"].iter().find(|n| element.attribute(n).is_some())
    {
        return Err(element.error(format!("it is given by sites and cannot have {other} too")));
    }
    Ok(Some([find("site1")?, find("site2")?]))
}

fn bodies(element: Element<'_>, tree: &Tree<'_>) -> Result<[usize; 2]> {
    element.required("body1")?;
    Ok([body(element, "body1", tree)?.unwrap_or(0), body(element, "body2", tree)?.unwrap_or(0)])
}

fn closure(element: Element<'_>, count: usize, joint_type: JointType, ends: [End; 2]) -> Result<Closure> {
    let mut name = name_of(element)?;
    if name.is_empty() {
        name = format!("{}{count}", element.tag());
    }
    Ok(Closure { name, line: element.line(), joint_type, ends })
}

/// Reads a `<connect>`: a point of one body coincides with a point of another.
fn connect(element: Element<'_>, tree: &Tree<'_>, count: usize) -> Result<Closure> {
    let ends = if let Some(ends) = sites(element, tree)? {
        ends
    } else {
        let [first, second] = bodies(element, tree)?;
        element.required("anchor")?;
        let anchor = element.numbers::<3>("anchor")?.unwrap_or_default();
        let frame = Pose::from_translation(anchor.into());
        [(first, frame), (second, relative(tree, second, first) * frame)]
    };
    closure(element, count, JointType::Spherical, ends)
}

/// Reads a `<weld>`: one body is fixed to another.
fn weld(element: Element<'_>, tree: &Tree<'_>, count: usize) -> Result<Closure> {
    let ends = if let Some(ends) = sites(element, tree)? {
        ends
    } else {
        let [first, second] = bodies(element, tree)?;
        let anchor = element.numbers::<3>("anchor")?.unwrap_or_default();
        let on_second = Pose::from_translation(anchor.into());
        let given = Layered::alone(element).overlay("relpose", [0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0])?;
        let [x, y, z, quat @ ..] = given;
        let on_first = if quat == [0.0; 4] {
            relative(tree, first, second) * on_second
        } else {
            Pose::new(orientation::quaternion(element, quat)?, [x, y, z].into())
        };
        [(first, on_first), (second, on_second)]
    };
    // Without torque, the weld constrains only a point.
    let point = element.number("torquescale")? == Some(0.0);
    closure(element, count, if point { JointType::Spherical } else { JointType::Fixed }, ends)
}

/// Returns the frame of one body in another's frame at the initial configuration.
fn relative(tree: &Tree<'_>, base: usize, body: usize) -> Pose<f64> {
    tree.bodies[base].world.inverse() * tree.bodies[body].world
}
