//! URDF, and URDF+ with its loops and rotors.
//!
//! Collision shapes are kept if they are spheres, cylinders or boxes. Content without effect on the dynamics (meshes, `<gazebo>`,
//! `<transmission>`, unknown tags) is ignored.

use std::collections::{HashMap, HashSet};

use nalgebra::{Matrix3, Vector3};

use super::repair::{Repaired, repaired};
use super::rounding::{Numbers, mark};
use super::xml::{Element, Xml, quoted};
use super::{MechanismBuilder, check_size};
use crate::Result;
use crate::mechanism::{
    JointDynamics, JointSpec, JointType, Limits, LinkSpec, LoopEnd, LoopSpec, Mimic, RotorSpec, Shape,
    ShapeSpec,
};
use crate::spatial::{Inertia, Pose, rotation_from_quaternion, rotation_from_rpy};

/// Joint types of URDF.
const JOINT_TYPES: &str = "revolute, continuous, prismatic, fixed, floating or planar";

/// Types allowed for a loop joint.
const LOOP_TYPES: &str = "revolute, continuous, prismatic, fixed, floating, planar, spherical, universal, \
                          cylindrical or helical";

/// Reads a URDF or URDF+ text.
///
/// - The root is the link that is not the child of any joint. It is fixed to the world unless a floating joint follows it.
/// - The default axis is `1 0 0`; the default origin is the identity.
/// - `<limit>` without `lower` and `upper` limits speed and effort only; if one of them is missing, it is zero. Limits that are all
///   zero, as written by CAD exporters, count as not given.
/// - Errors that other URDF readers tolerate are ignored with a warning that contains the line: duplicate elements where one is
///   expected, missing products of inertia, `<inertial>` without `<mass>` or `<inertia>`, an axis without length, swapped limits,
///   blank lines before the XML declaration, `--` in comments, a document type whose entities are not used, undeclared prefixes, `&`
///   that is not escaped, infinite limits, elements after the outermost one.
/// - `quat_xyzw` has an effect in URDF 1.1 and 1.2 (`<robot version="1.1">`); in other versions it is ignored with a warning.
/// - `<mimic>` makes a joint follow another; it has no effect on a fixed joint.
/// - URDF+: `<loop>` closes a loop; a link that `<coupling>` couples to a joint's link is that joint's rotor.
/// ```
/// use inertial::mechanism::read::urdf;
/// let text = r#"<robot name="rod">
///   <link name="base"/>
///   <link name="rod"><inertial><origin xyz="0 0 0.5"/><mass value="2"/>
///     <inertia ixx="0.1" ixy="0" ixz="0" iyy="0.1" iyz="0" izz="0.01"/></inertial></link>
///   <joint name="hinge" type="continuous"><parent link="base"/><child link="rod"/></joint></robot>"#;
/// let rod = urdf::read(text)?.build(&Default::default())?;
/// assert_eq!(rod.bodies()[0].inertia.parameters()[4], 0.6); // Ixx about the hinge
/// assert_eq!(urdf::read("<robot>\n<link").unwrap_err().to_string(), "line 2: the XML text ends too early");
/// # Ok::<(), inertial::Error>(())
/// ```
pub fn read(text: &str) -> Result<MechanismBuilder> {
    read_with_rotor_links(text).map(|(model, _)| model)
}

/// Reads the model, and returns for each of its rotors the link that describes it.
pub(crate) fn read_with_rotor_links(text: &str) -> Result<(MechanismBuilder, Vec<String>)> {
    check_size(text)?;
    let Repaired { text, warnings, .. } = repaired(text);
    let xml = Xml::parse(&text)?;
    let robot = xml.root();
    if robot.tag() != "robot" {
        return Err(
            robot.error("expected <robot> (URDF), <mujoco> (MJCF) or <sdf> (SDF) as the outermost element")
        );
    }
    if let Some((macros, _)) = robot.foreign_children().find(|(_, uri)| uri.contains("xacro")) {
        return Err(macros.unsupported("xacro inside URDF (expand the text first)"));
    }
    let mut model = MechanismBuilder::new(robot.identifier("name")?.unwrap_or("robot"), "");
    let mut couplings = Vec::new();
    let mut numbers = Vec::new();
    for element in robot.children() {
        match element.tag() {
            "link" => {
                let link = link(element)?;
                model.shapes.extend(shapes(element, &link.name));
                model.links.push(link);
            }
            "joint" => {
                model.joints.push(joint(element)?);
                numbers.push(placing_numbers(element)?);
            }
            "loop" => model.loops.push(loop_joint(element)?),
            "coupling" => couplings.push(Coupling::read(element)?),
            _ => {}
        }
    }
    mark(&mut model.joints, &numbers);
    model.warnings.extend(warnings);
    model.warnings.extend(xml.warnings());
    drop_dangling_mimics(&mut model);
    let rotor_links = couple(&mut model, &couplings)?;
    let children: HashSet<&str> = model.joints.iter().map(|j| j.child.as_str()).collect();
    let root = model.links.iter().find(|l| !children.contains(l.name.as_str()));
    model.root = match root {
        Some(root) => root.name.clone(),
        None if model.links.is_empty() => return Err(robot.error("it has no <link>")),
        None => return Err(robot.error("every link is some joint's child: the joints form a cycle")),
    };
    Ok((model, rotor_links))
}

fn link(element: Element<'_>) -> Result<LinkSpec> {
    let name = element.required_identifier("name")?.to_owned();
    let inertia = element.first_child("inertial").map(inertial).transpose()?.flatten();
    Ok(LinkSpec { name, inertia, line: Some(element.line()) })
}

/// Returns the collision shapes that are not meshes. They do not change the dynamics, so unreadable shapes are ignored.
fn shapes(element: Element<'_>, link: &str) -> Vec<ShapeSpec> {
    let shape = |geometry: Element<'_>| {
        let length = |e: Element<'_>, name| e.required_number(name).ok().filter(|x| *x > 0.0);
        let named = |tag| geometry.child(tag).ok().flatten();
        if let Some(sphere) = named("sphere") {
            return Some(Shape::Sphere { radius: length(sphere, "radius")? });
        }
        if let Some(cylinder) = named("cylinder") {
            return Some(Shape::Cylinder {
                radius: length(cylinder, "radius")?,
                length: length(cylinder, "length")?,
            });
        }
        let size = named("box")?.numbers::<3>("size").ok().flatten()?;
        size.iter().all(|x| *x > 0.0).then_some(Shape::Box { size })
    };
    let spec = |collision: Element<'_>| {
        let shape = shape(collision.child("geometry").ok().flatten()?)?;
        Some(ShapeSpec { link: link.to_owned(), origin: origin(collision).ok()?, shape })
    };
    element.children_named("collision").filter_map(spec).collect()
}

/// Returns the inertia of `<inertial>` in the link's frame, or `None` without a mass.
///
/// Like Pinocchio, a missing `<inertia>` or moment of inertia makes the whole inertia about the centre of mass zero.
fn inertial(element: Element<'_>) -> Result<Option<Inertia<f64>>> {
    let pose = origin(element)?;
    let Some(mass) = element.first_child("mass") else {
        element.warn("it has no <mass>: the link is taken as massless");
        return Ok(None);
    };
    let mass = mass.required_number("value")?;
    let point = Inertia::from_com(mass, pose.translation, Matrix3::zeros());
    let Some(tensor) = element.first_child("inertia") else {
        element.warn("it has no <inertia>: all moments of inertia are taken as 0");
        return Ok(Some(point));
    };
    if let Some(name) = ["ixx", "iyy", "izz"].into_iter().find(|name| tensor.attribute(name).is_none()) {
        tensor.warn(&format!("{name} is missing: all moments of inertia are taken as 0"));
        return Ok(Some(point));
    }
    let moment = |name| tensor.required_number(name);
    let product = |name| -> Result<f64> {
        if tensor.attribute(name).is_none() {
            tensor.warn(&format!("{name} is missing: taken as 0"));
        }
        Ok(tensor.number(name)?.unwrap_or(0.0))
    };
    let (xx, xy, xz) = (moment("ixx")?, product("ixy")?, product("ixz")?);
    let (yy, yz, zz) = (moment("iyy")?, product("iyz")?, moment("izz")?);
    let about_com = Matrix3::new(xx, xy, xz, xy, yy, yz, xz, yz, zz);
    let about_link = pose.rotation * about_com * pose.rotation.transpose();
    Ok(Some(Inertia::from_com(mass, pose.translation, about_link)))
}

/// Returns the pose in an element's `<origin>`; the identity without one.
fn origin(element: Element<'_>) -> Result<Pose<f64>> {
    let Some(origin) = element.first_child("origin") else { return Ok(Pose::identity()) };
    let xyz = origin.numbers::<3>("xyz")?.unwrap_or_default();
    if let Some([x, y, z, w]) = quaternion(origin)? {
        let rotation = rotation_from_quaternion(x, y, z, w).filter(|r| r.iter().all(|x| x.is_finite()));
        let rotation = rotation.ok_or_else(|| origin.error("quat_xyzw has no length"))?;
        return Ok(Pose::new(rotation, xyz.into()));
    }
    // Zero angles result in the exact identity.
    let [roll, pitch, yaw] = origin.numbers::<3>("rpy")?.unwrap_or_default();
    Ok(Pose::new(rotation_from_rpy(roll, pitch, yaw), xyz.into()))
}

/// Returns the quaternion of an `<origin>` if it has an effect. Like urdfdom, both `rpy` and `quat_xyzw` are an error in versions with
/// quaternions, and other versions ignore `quat_xyzw`.
fn quaternion(origin: Element<'_>) -> Result<Option<[f64; 4]>> {
    let has_rpy = origin.attribute("rpy").is_some();
    if origin.attribute("quat_xyzw").is_none() {
        return Ok(None);
    }
    if !has_quaternions(origin) {
        let taken = if has_rpy { "rpy is used" } else { "taken as no rotation" };
        origin.warn(&format!("quat_xyzw needs <robot version=\"1.1\">: it is ignored, {taken}"));
        return Ok(None);
    }
    if has_rpy {
        return Err(origin.error("it has rpy and quat_xyzw: expected only one of them"));
    }
    origin.numbers::<4>("quat_xyzw")
}

/// Returns whether `quat_xyzw` has an effect in the text of an element: in URDF 1.1 and 1.2.
pub(crate) fn has_quaternions(element: Element<'_>) -> bool {
    let version = element.root().attribute("version").and_then(|version| version.trim().split_once('.'));
    let number = |text: &str| text.parse::<u32>().ok();
    matches!(version.map(|(major, minor)| (number(major), number(minor))), Some((Some(1), Some(1 | 2))))
}

fn axis(element: Element<'_>) -> Result<Vector3<f64>> {
    match element.first_child("axis") {
        None => Ok(Vector3::x()),
        Some(axis) => direction(axis),
    }
}

/// Returns the numbers that define a joint's placement.
fn placing_numbers(element: Element<'_>) -> Result<Numbers> {
    let mut out = Numbers::default();
    if let Some(origin) = element.first_child("origin") {
        out.lengths.extend(origin.numbers::<3>("xyz")?.into_iter().flatten());
        match quaternion(origin)? {
            Some(quaternion) => out.angles.extend(quaternion),
            None => out.angles.extend(origin.numbers::<3>("rpy")?.into_iter().flatten()),
        }
    }
    if let Some(axis) = element.first_child("axis") {
        out.axis.extend(axis.numbers::<3>("xyz")?.into_iter().flatten());
    }
    Ok(out)
}

fn direction(axis: Element<'_>) -> Result<Vector3<f64>> {
    axis.required("xyz")?;
    let direction = Vector3::from(axis.numbers::<3>("xyz")?.unwrap_or_default());
    if direction.norm() < 1e-12 {
        return Err(axis.error("the axis has no length: expected a direction such as 0 0 1"));
    }
    Ok(direction)
}

/// Returns whether the axis of a joint has no direction. Such a joint does not move, as in Pinocchio.
fn has_no_direction(element: Element<'_>) -> Result<bool> {
    let Some(axis) = element.first_child("axis") else { return Ok(false) };
    let xyz = axis.numbers::<3>("xyz")?;
    if xyz.is_none_or(|xyz| xyz == [0.0; 3]) {
        let what = if xyz.is_none() { "it has no xyz" } else { "the axis has no length" };
        axis.warn(&format!("{what}: the joint is treated as fixed; expected a direction such as 0 0 1"));
        return Ok(true);
    }
    Ok(false)
}

/// Returns the joint type if joints and loops share it; `None` for any other.
fn joint_type(element: Element<'_>, name: &str) -> Result<Option<JointType>> {
    Ok(Some(match name {
        "revolute" | "continuous" => JointType::Revolute { axis: axis(element)? },
        "prismatic" => JointType::Prismatic { axis: axis(element)? },
        "planar" => JointType::Planar { normal: axis(element)? },
        "fixed" => JointType::Fixed,
        "floating" => JointType::Floating,
        _ => return Ok(None),
    }))
}

fn joint(element: Element<'_>) -> Result<JointSpec> {
    let name = element.required_identifier("name")?;
    let kind = element.required("type")?;
    let still = matches!(kind, "revolute" | "continuous" | "prismatic") && has_no_direction(element)?;
    let joint_type = if still { Some(JointType::Fixed) } else { joint_type(element, kind)? };
    let joint_type = joint_type.ok_or_else(|| {
        element.error(format!("unknown joint type {}: expected {JOINT_TYPES}", quoted(kind)))
    })?;
    let end = |tag| element.required_first_child(tag)?.required_identifier("link");
    let mimic = match element.first_child("mimic") {
        Some(mimic) if joint_type != JointType::Fixed => Some(Mimic::new(
            mimic.required_identifier("joint")?,
            mimic.number("multiplier")?.unwrap_or(1.0),
            mimic.number("offset")?.unwrap_or(0.0),
        )),
        _ => None,
    };
    Ok(JointSpec {
        origin: origin(element)?,
        limits: limits(element, kind)?,
        dynamics: dynamics(element)?,
        mimic,
        independent: element.boolean("independent")?,
        line: Some(element.line()),
        ..JointSpec::new(name, joint_type, end("parent")?, end("child")?)
    })
}

fn limits(element: Element<'_>, kind: &str) -> Result<Limits> {
    let mut limits = Limits::default();
    let Some(limit) = element.first_child("limit") else { return Ok(limits) };
    let number = |name: &str| match limit.attribute(name).map(str::trim) {
        Some(text) if is_infinite(text) => {
            limit.warn(&format!("{name}={}: taken as not limited", quoted(text)));
            Ok(Some(if text.starts_with('-') { f64::NEG_INFINITY } else { f64::INFINITY }))
        }
        _ => limit.number(name),
    };
    let (lower, upper) = (number("lower")?, number("upper")?);
    if kind != "continuous" && (lower.is_some() || upper.is_some()) {
        (limits.lower, limits.upper) = (lower.unwrap_or(0.0), upper.unwrap_or(0.0));
        if limits.lower > limits.upper {
            limit.warn(&format!(
                "lower={} is above upper={}: the two are swapped",
                limits.lower, limits.upper
            ));
            std::mem::swap(&mut limits.lower, &mut limits.upper);
        }
    }
    limits.velocity = number("velocity")?.unwrap_or(limits.velocity);
    limits.effort = number("effort")?.unwrap_or(limits.effort);
    if [limits.lower, limits.upper, limits.velocity, limits.effort] == [0.0; 4] {
        limit.warn("all limits are zero: taken as not given");
        (limits.lower, limits.upper) = (f64::NEG_INFINITY, f64::INFINITY);
    }
    Ok(limits)
}

/// Returns whether a text is an infinite number as other programs print it.
fn is_infinite(text: &str) -> bool {
    let text = text.strip_prefix(['+', '-']).unwrap_or(text);
    text.eq_ignore_ascii_case("inf") || text.eq_ignore_ascii_case("infinity")
}

fn dynamics(element: Element<'_>) -> Result<JointDynamics> {
    let Some(dynamics) = element.first_child("dynamics") else { return Ok(JointDynamics::default()) };
    Ok(JointDynamics {
        damping: dynamics.number("damping")?.unwrap_or(0.0),
        friction: dynamics.number("friction")?.unwrap_or(0.0),
        ..JointDynamics::default()
    })
}

/// Removes references to missing leader joints, which occur in real files; such a follower moves freely, and a warning is added.
fn drop_dangling_mimics(model: &mut MechanismBuilder) {
    let names: HashSet<String> = model.joints.iter().map(|j| j.name.clone()).collect();
    for joint in &mut model.joints {
        let mut leaders = joint.mimic.iter().flat_map(|m| &m.leaders);
        let Some((lost, _)) = leaders.find(|(leader, _)| !names.contains(leader)) else { continue };
        model.warnings.push(format!(
            "joint \"{}\" follows \"{lost}\" (mimic), which does not exist; it is taken as free",
            joint.name
        ));
        joint.mimic = None;
    }
}

/// Reads a `<loop>` of URDF+.
fn loop_joint(element: Element<'_>) -> Result<LoopSpec> {
    let kind = element.required("type")?;
    let joint_type = match kind {
        "spherical" => JointType::Spherical,
        "cylindrical" => JointType::Cylindrical { axis: axis(element)? },
        "helical" => JointType::Helical { axis: axis(element)?, pitch: element.required_number("pitch")? },
        "universal" => {
            let axes: Vec<_> = element.children_named("axis").map(direction).collect::<Result<_>>()?;
            let axes = <[_; 2]>::try_from(axes)
                .map_err(|_| element.error("a universal joint needs two <axis>, the predecessor's first"))?;
            JointType::Universal { axes }
        }
        _ => joint_type(element, kind)?.ok_or_else(|| {
            element.error(format!("unknown joint type {}: expected {LOOP_TYPES}", quoted(kind)))
        })?,
    };
    let end = |tag| -> Result<LoopEnd> {
        let end = element.required_child(tag)?;
        Ok(LoopEnd { link: end.required_identifier("link")?.to_owned(), origin: origin(end)? })
    };
    Ok(LoopSpec {
        name: element.required_identifier("name")?.to_owned(),
        joint_type,
        predecessor: end("predecessor")?,
        successor: end("successor")?,
        line: Some(element.line()),
    })
}

/// A `<coupling>` of URDF+: the sum of the joint speeds that move the successor is `ratio` times the sum of those that move the
/// predecessor; joints that move both do not count.
struct Coupling<'a> {
    element: Element<'a>,
    predecessor: &'a str,
    successor: &'a str,
    ratio: f64,
}

impl<'a> Coupling<'a> {
    fn read(element: Element<'a>) -> Result<Self> {
        let end = |tag| element.required_child(tag)?.required_identifier("link");
        Ok(Self {
            element,
            predecessor: end("predecessor")?,
            successor: end("successor")?,
            ratio: element.required_child("ratio")?.required_number("value")?,
        })
    }
}

/// Converts couplings into rotors, or into follower joints if the coupled link carries other bodies.
/// Returns the link of each rotor.
fn couple(model: &mut MechanismBuilder, couplings: &[Coupling<'_>]) -> Result<Vec<String>> {
    let above: HashMap<String, usize> =
        model.joints.iter().enumerate().map(|(j, joint)| (joint.child.clone(), j)).collect();
    let links: HashMap<String, usize> =
        model.links.iter().enumerate().map(|(l, link)| (link.name.clone(), l)).collect();
    // Links that carry other elements remain links.
    let mut carries: HashSet<String> = model.joints.iter().map(|j| j.parent.clone()).collect();
    carries.extend(model.loops.iter().flat_map(|l| [&l.predecessor.link, &l.successor.link]).cloned());
    carries.extend(couplings.iter().map(|c| c.predecessor.to_owned()));
    let mut coupled = HashSet::new();
    let (mut rotor_links, mut rotor_joints) = (Vec::new(), HashSet::new());
    for coupling in couplings {
        let error = |message: String| Err(coupling.element.error(message));
        let joint_above = |link: &str| match (links.contains_key(link), above.get(link)) {
            (_, Some(&j)) => Ok(j),
            (true, None) => Err(coupling.element.error(format!("no joint moves the link {}", quoted(link)))),
            (false, None) => Err(coupling.element.error(format!("its link {} does not exist", quoted(link)))),
        };
        let (leader, follower) = (joint_above(coupling.predecessor)?, joint_above(coupling.successor)?);
        if leader == follower {
            return error("a link cannot be coupled to itself".into());
        }
        if !coupled.insert(follower) || model.joints[follower].mimic.is_some() {
            return error(format!("link {} is coupled twice", quoted(coupling.successor)));
        }
        let sides = [leader, follower].map(|j| joints_inward(&model.joints, &above, j));
        let [led, following] = apart(sides);
        // A coupling relates the motions of the two links relative to the last body that carries both.
        if (led.as_slice(), following.as_slice()) != ([leader].as_slice(), [follower].as_slice()) {
            if led.is_empty() || following.is_empty() {
                return error(
                    "one of its links carries the other: couple links of different branches".into(),
                );
            }
            let name = |j: usize| model.joints[j].name.clone();
            let others = following.iter().filter(|&&j| j != follower).map(|&j| (name(j), -1.0));
            let leaders = led.iter().map(|&j| (name(j), coupling.ratio)).chain(others).collect();
            model.joints[follower].mimic = Some(Mimic { leaders, offset: 0.0 });
            continue;
        }
        let is_rotor = !carries.contains(coupling.successor);
        let leader = model.joints[leader].name.clone();
        match model.joints[follower].joint_type {
            JointType::Revolute { axis } if is_rotor => {
                let Some(&link) = links.get(coupling.successor) else { continue };
                rotor_links.push(coupling.successor.to_owned());
                rotor_joints.insert(follower);
                let joint = &model.joints[follower];
                model.rotors.push(RotorSpec {
                    joint: leader,
                    carrier: joint.parent.clone(),
                    ratio: coupling.ratio,
                    origin: joint.origin,
                    axis,
                    inertia: model.links[link].inertia.unwrap_or_else(Inertia::zero),
                    symmetric: true,
                    line: joint.line,
                });
            }
            _ => {
                model.joints[follower].mimic = Some(Mimic::new(leader, coupling.ratio, 0.0));
            }
        }
    }
    if !rotor_links.is_empty() {
        let mut joint = 0..;
        model.joints.retain(|_| joint.next().is_none_or(|j| !rotor_joints.contains(&j)));
        let removed: HashSet<&String> = rotor_links.iter().collect();
        model.links.retain(|l| !removed.contains(&l.name));
    }
    Ok(rotor_links)
}

/// Returns a moving joint and all moving joints between it and the root, outermost first.
fn joints_inward(joints: &[JointSpec], above: &HashMap<String, usize>, joint: usize) -> Vec<usize> {
    let inward = |&j: &usize| above.get(&joints[j].parent).copied();
    // A cycle of joints is rejected later; this walk must still terminate.
    let path = std::iter::successors(Some(joint), inward).take(joints.len());
    path.filter(|&j| joints[j].joint_type != JointType::Fixed).collect()
}

/// Returns two paths to the root without their common part.
fn apart(mut paths: [Vec<usize>; 2]) -> [Vec<usize>; 2] {
    let [a, b] = &mut paths;
    while a.last().is_some() && a.last() == b.last() {
        a.pop();
        b.pop();
    }
    paths
}
