//! SDF, the models of Gazebo.
//!
//! The reader supports one model without nested models: links, joints, frames, inertias and collision shapes other than meshes.
//! All other content affects neither motion nor mass and is ignored. A link's frame has the axes of the SDF link and its origin at
//! the joint's origin; if this differs from the SDF link's origin, the link `LINK.frame` marks the SDF frame. A second joint to the
//! same link closes a loop. The root link is fixed to the world, as in URDF; gravity is rotated into its frame.

mod frames;
mod joint;

use std::collections::{HashMap, HashSet};

use nalgebra::{Matrix3, Vector3};

use super::repair::{Repaired, repaired};
use super::rounding::{Numbers, mark};
use super::xml::{Element, Xml, quoted};
use super::{MechanismBuilder, check_size};
use crate::Result;
use crate::mechanism::{JointSpec, JointType, LinkSpec, Shape, ShapeSpec};
use crate::spatial::{Inertia, Pose};
use frames::{Frames, WORLD, placed};

/// Reads an SDF text.
///
/// ```
/// use inertial::mechanism::read::sdf;
/// let text = r#"<sdf version="1.9"><model name="rod">
///   <link name="base"/><link name="rod"><pose>0 0 1 0 0 0</pose><inertial><pose>0 0 -0.5 0 0 0</pose><mass>2</mass>
///     <inertia><ixx>0.1</ixx><iyy>0.1</iyy><izz>0.01</izz></inertia></inertial></link>
///   <joint name="hinge" type="revolute"><parent>base</parent><child>rod</child><axis><xyz>1 0 0</xyz></axis></joint>
/// </model></sdf>"#;
/// let rod = sdf::read(text)?.build(&Default::default())?;
/// assert_eq!(rod.bodies()[0].inertia.parameters()[4], 0.6); // Ixx about the hinge
/// # Ok::<(), inertial::Error>(())
/// ```
pub fn read(text: &str) -> Result<MechanismBuilder> {
    check_size(text)?;
    let Repaired { text, warnings, .. } = repaired(text);
    let xml = Xml::parse(&text)?;
    let mut out = Reader::new(&xml)?.read()?;
    out.warnings.splice(0..0, warnings);
    out.warnings.extend(xml.warnings());
    Ok(out)
}

/// Link of a text, for writers.
pub(crate) struct LinkText<'a> {
    pub(crate) name: &'a str,
    pub(crate) element: Element<'a>,
    /// SDF frame in the link's frame.
    pub(crate) frame: Pose<f64>,
}

/// Passes the links and joints of a text to a writer.
pub(crate) fn with_links<R>(
    xml: &Xml<'_>,
    work: impl FnOnce(&[LinkText<'_>], &[(&str, Element<'_>)]) -> Result<R>,
) -> Result<R> {
    let reader = Reader::new(xml)?;
    let (joints, moved) = reader.joints()?;
    let links = reader.model.children_named("link").map(|element| {
        let name = element.required_identifier("name")?;
        let frame = moved.get(name).copied().unwrap_or_else(Pose::identity);
        Ok(LinkText { name, element, frame })
    });
    let joints: Vec<_> = joints.iter().map(|j| (j.name, j.element)).collect();
    work(&links.collect::<Result<Vec<_>>>()?, &joints)
}

/// Reader of the one model of a text.
struct Reader<'a> {
    model: Element<'a>,
    frames: Frames<'a>,
    gravity: Vector3<f64>,
    /// Frame of the model in the world.
    pose: Pose<f64>,
    /// Whether axes may be given in the model's frame (before version 1.7).
    old: bool,
}

/// Frames of SDF links in their links' frames, if they differ.
type Moved<'a> = HashMap<&'a str, Pose<f64>>;

impl<'a> Reader<'a> {
    fn new(xml: &'a Xml<'_>) -> Result<Self> {
        let root = xml.root();
        if root.tag() != "sdf" {
            return Err(root.error("expected <sdf> as the outermost element"));
        }
        let version = root.attribute("version").and_then(|v| v.split_once('.')).unwrap_or(("1", "7"));
        let old = version.0 == "1" && version.1.parse::<u32>().is_ok_and(|minor| minor < 7);
        let world = root.first_child("world");
        let around = world.unwrap_or(root);
        let mut gravity = Vector3::new(0.0, 0.0, -9.81);
        if let Some(element) = world.and_then(|w| w.first_child("gravity")) {
            gravity = element.text_array::<3>()?.into();
        }
        let is_static = |model: &Element<'_>| -> bool {
            let text = model.first_child("static").map(|s| s.text());
            matches!(text, Some("true" | "1"))
        };
        let mut models: Vec<_> = around.children_named("model").collect();
        if models.len() > 1 {
            models.retain(|model| !is_static(model));
        }
        let model = match models[..] {
            [model] => model,
            [] => {
                if let Some(include) = around.children_named("include").next() {
                    return Err(include.unsupported(INCLUDE));
                }
                return Err(around.error("it has no <model>"));
            }
            [_, second, ..] => {
                return Err(
                    second.error("it is the second model that moves: expected one; keep the robot alone")
                );
            }
        };
        for tag in ["include", "model"] {
            if let Some(inner) = model.children_named(tag).next() {
                return Err(inner.unsupported(if tag == "include" {
                    INCLUDE
                } else {
                    "a model inside a model"
                }));
            }
        }
        let frames = Frames::new(model)?;
        let place = placed(model)?;
        let mut pose = place.pose.unwrap_or_else(Pose::identity);
        if let Some(frame) = model.identifier("placement_frame")? {
            pose = pose * frames.pose(frame, model)?.inverse();
        }
        Ok(Self { model, frames, gravity, pose, old })
    }

    fn read(&self) -> Result<MechanismBuilder> {
        let name = self.model.identifier("name")?.unwrap_or("robot");
        let mut out = MechanismBuilder::new(name, "");
        let (joints, moved) = self.joints()?;
        let mut numbers = Vec::new();
        let mut children: HashSet<&str> = HashSet::new();
        for joint in &joints {
            if children.insert(joint.child) {
                out.joints.push(self.joint(joint, &moved)?);
                numbers.push(joint.numbers.clone());
            } else {
                out.loops.push(self.closing(joint, &moved)?);
            }
        }
        mark(&mut out.joints, &numbers);
        for element in self.model.children_named("link") {
            let name = element.required_identifier("name")?;
            let frame = moved.get(name).copied().unwrap_or_else(Pose::identity);
            let inertia = Some(inertial(element)?.transformed(&frame));
            out.links.push(LinkSpec { name: name.to_owned(), inertia, line: Some(element.line()) });
            out.shapes.extend(shapes(element, name).into_iter().map(|mut shape| {
                shape.origin = frame * shape.origin;
                shape
            }));
            if moved.contains_key(name) {
                let mark = format!("{name}.frame");
                out.links.push(LinkSpec { name: mark.clone(), inertia: None, line: Some(element.line()) });
                out.joints.push(JointSpec::new(&mark, JointType::Fixed, name, &mark).at(frame));
            }
        }
        let on_world = joints.iter().any(|joint| joint.parent == WORLD);
        let first = if self.frames.element(self.frames.canonical()).is_none_or(|e| e.tag() != "link") {
            return Err(self.model.error("its canonical_link is not one of its links"));
        } else if children.contains(self.frames.canonical()) {
            self.model
                .children_named("link")
                .filter_map(|l| l.attribute("name"))
                .find(|l| !children.contains(l))
        } else {
            Some(self.frames.canonical())
        };
        match (on_world, first) {
            (true, _) => WORLD.clone_into(&mut out.root),
            (false, Some(root)) => {
                root.clone_into(&mut out.root);
                let turned = self.pose.rotation * self.frames.pose(root, self.model)?.rotation;
                out.gravity = turned.tr_mul(&self.gravity);
            }
            (false, None) => {
                return Err(self.model.error("every link is some joint's child: the joints form a cycle"));
            }
        }
        if on_world {
            out.gravity = self.gravity;
        }
        Ok(out)
    }
}

/// Advice for models that consist of several files.
const INCLUDE: &str = "an <include> (merge all files into one first: 'gz sdf -p FILE.sdf > robot.sdf')";

/// Returns the inertia of a link in its SDF frame; missing values have Gazebo's defaults.
fn inertial(link: Element<'_>) -> Result<Inertia<f64>> {
    let Some(element) = link.first_child("inertial") else {
        link.warn("it has no <inertial>: taken as 1 kg and 1 kg m², as in Gazebo");
        return Ok(Inertia::from_com(1.0, Vector3::zeros(), Matrix3::identity()));
    };
    if element.boolean("auto")? == Some(true) {
        return Err(element.unsupported("<inertial auto=\"true\">"));
    }
    let place = placed(element)?;
    if let Some(other) = place.relative_to.filter(|r| !r.is_empty() && link.attribute("name") != Some(r)) {
        return Err(element.error(format!("its pose is relative to the link, not to {}", quoted(other))));
    }
    let pose = place.pose.unwrap_or_else(Pose::identity);
    let number = |parent: Option<Element<'_>>, tag: &str, default: f64| -> Result<f64> {
        match parent.and_then(|e| e.first_child(tag)) {
            Some(element) => Ok(element.text_array::<1>()?[0]),
            None => Ok(default),
        }
    };
    let mass = number(Some(element), "mass", 1.0)?;
    let tensor = element.first_child("inertia");
    let moment = |tag| number(tensor, tag, 1.0);
    let product = |tag| number(tensor, tag, 0.0);
    let (xx, xy, xz) = (moment("ixx")?, product("ixy")?, product("ixz")?);
    let (yy, yz, zz) = (moment("iyy")?, product("iyz")?, moment("izz")?);
    let about = Matrix3::new(xx, xy, xz, xy, yy, yz, xz, yz, zz);
    let about = pose.rotation * about * pose.rotation.transpose();
    Ok(Inertia::from_com(mass, pose.translation, about))
}

/// Returns the collision shapes that are not meshes. They do not change the dynamics, so unreadable shapes are ignored.
fn shapes(link: Element<'_>, name: &str) -> Vec<ShapeSpec> {
    let length = |e: Element<'_>, tag: &str| -> Option<f64> {
        let [x] = e.first_child(tag)?.text_array::<1>().ok()?;
        (x > 0.0).then_some(x)
    };
    let shape = |geometry: Element<'_>| {
        if let Some(sphere) = geometry.first_child("sphere") {
            return Some(Shape::Sphere { radius: length(sphere, "radius")? });
        }
        if let Some(cylinder) = geometry.first_child("cylinder") {
            return Some(Shape::Cylinder {
                radius: length(cylinder, "radius")?,
                length: length(cylinder, "length")?,
            });
        }
        let size = geometry.first_child("box")?.first_child("size")?.text_array::<3>().ok()?;
        size.iter().all(|x| *x > 0.0).then_some(Shape::Box { size })
    };
    let spec = |collision: Element<'_>| {
        let shape = shape(collision.first_child("geometry")?)?;
        let place = placed(collision).ok().filter(|p| p.relative_to.is_none())?;
        let origin = place.pose.unwrap_or_else(Pose::identity);
        Some(ShapeSpec { link: name.to_owned(), origin, shape })
    };
    link.children_named("collision").filter_map(spec).collect()
}

/// Joins the numbers that define the placement of several frames.
fn joined<'n>(all: impl IntoIterator<Item = &'n Numbers>) -> Numbers {
    let mut out = Numbers::default();
    for numbers in all {
        out.lengths.extend(&numbers.lengths);
        out.angles.extend(&numbers.angles);
        out.axis.extend(&numbers.axis);
    }
    out
}
