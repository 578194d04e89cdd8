//! Frames of an SDF model: relative poses of links, joints and frames.

use std::collections::HashMap;

use nalgebra::{Matrix3, Vector3};

use super::super::rounding::Numbers;
use super::super::xml::{Element, quoted};
use crate::Result;
use crate::spatial::{Pose, rotation_from_quaternion, rotation_from_rpy};

/// Name of the model's frame.
pub(super) const MODEL: &str = "__model__";
/// Name of the world.
pub(super) const WORLD: &str = "world";
/// Maximum depth of a chain of relative frames.
const DEEPEST: usize = 1000;

/// Pose in an element's `<pose>`, with its numbers and its reference frame.
#[derive(Default)]
pub(super) struct Placed<'a> {
    pub pose: Option<Pose<f64>>,
    pub relative_to: Option<&'a str>,
    pub numbers: Numbers,
}

/// Reads the `<pose>` of an element.
pub(super) fn placed(element: Element<'_>) -> Result<Placed<'_>> {
    let Some(pose) = element.first_child("pose") else { return Ok(Placed::default()) };
    let relative_to = pose.identifier("relative_to")?.or(pose.identifier("frame")?);
    let list = pose.text_numbers()?;
    let degrees = pose.boolean("degrees")?.unwrap_or(false);
    let numbers =
        |angles: &[f64]| Numbers { lengths: list[..3].to_vec(), angles: angles.to_vec(), axis: Vec::new() };
    let (rotation, numbers) = match (pose.attribute("rotation_format").unwrap_or("euler_rpy"), list.len()) {
        (_, 0) => return Ok(Placed { pose: None, relative_to, numbers: Numbers::default() }),
        ("euler_rpy", 6) => {
            let unit = if degrees { 1f64.to_radians() } else { 1.0 };
            let [roll, pitch, yaw] = [list[3], list[4], list[5]].map(|x| x * unit);
            (rotation_from_rpy(roll, pitch, yaw), numbers(&[roll, pitch, yaw]))
        }
        ("quat_xyzw", 7) if !degrees => {
            let rotation = rotation_from_quaternion(list[3], list[4], list[5], list[6]);
            let rotation = rotation.filter(|r: &Matrix3<f64>| r.iter().all(|x| x.is_finite()));
            let rotation = rotation.ok_or_else(|| pose.error("the quaternion has no length"))?;
            (rotation, numbers(&list[3..]))
        }
        ("euler_rpy", n) => {
            return Err(pose.error(format!("it has {n} numbers, expected 6 (x y z roll pitch yaw)")));
        }
        ("quat_xyzw", n) => {
            return Err(
                pose.error(format!("it has {n} numbers, expected 7 (x y z and a quaternion x y z w)"))
            );
        }
        (other, _) => {
            let message =
                format!("rotation_format={} is unknown: expected euler_rpy or quat_xyzw", quoted(other));
            return Err(pose.error(message));
        }
    };
    let pose = Pose::new(rotation, Vector3::new(list[0], list[1], list[2]));
    Ok(Placed { pose: Some(pose), relative_to, numbers })
}

/// Link, joint or frame.
struct Frame<'a> {
    element: Element<'a>,
    pose: Pose<f64>,
    /// Reference frame of the pose.
    relative_to: &'a str,
    /// Link to which the frame is attached, or the frame that defines this link.
    attached_to: &'a str,
    is_link: bool,
}

/// All frames of a model by name.
pub(super) struct Frames<'a> {
    frames: HashMap<&'a str, Frame<'a>>,
    canonical: &'a str,
}

impl<'a> Frames<'a> {
    /// Collects the frames of a model.
    pub fn new(model: Element<'a>) -> Result<Self> {
        let mut frames: HashMap<&'a str, Frame<'a>> = HashMap::new();
        let mut canonical = model.identifier("canonical_link")?;
        for element in model.children() {
            let (is_link, default, attached) = match element.tag() {
                "link" => {
                    let name = element.required_identifier("name")?;
                    canonical = canonical.or(Some(name));
                    (true, MODEL, name)
                }
                "joint" => {
                    let child = element.required_first_child("child")?.name_inside()?;
                    (false, child, child)
                }
                "frame" => {
                    let attached = element.identifier("attached_to")?.unwrap_or(MODEL);
                    (false, attached, attached)
                }
                _ => continue,
            };
            let name = element.required_identifier("name")?;
            if name == MODEL || name == WORLD {
                return Err(element.error(format!("the name {} is reserved", quoted(name))));
            }
            let Placed { pose, relative_to, .. } = placed(element)?;
            let frame = Frame {
                element,
                pose: pose.unwrap_or_else(Pose::identity),
                relative_to: relative_to.filter(|r| !r.is_empty()).unwrap_or(default),
                attached_to: attached,
                is_link,
            };
            if frames.insert(name, frame).is_some() {
                let message = "the name is taken: links, joints and frames of a model need distinct names";
                return Err(element.error(message));
            }
        }
        let canonical = canonical.ok_or_else(|| model.error("it has no <link>"))?;
        Ok(Self { frames, canonical })
    }

    /// Returns the pose of a frame in the model's frame.
    pub fn pose(&self, name: &'a str, asked: Element<'_>) -> Result<Pose<f64>> {
        let mut out = Pose::identity();
        let mut next = name;
        for _ in 0..DEEPEST {
            if next == MODEL {
                return Ok(out);
            }
            let frame = self.frame(next, asked)?;
            out = frame.pose * out;
            next = frame.relative_to;
        }
        Err(asked.error(format!("the pose of {} is relative to itself", quoted(name))))
    }

    /// Returns the link to which a frame is attached.
    pub fn link(&self, name: &'a str, asked: Element<'_>) -> Result<&'a str> {
        let mut next = name;
        for _ in 0..DEEPEST {
            if next == MODEL {
                next = self.canonical;
            }
            let frame = self.frame(next, asked)?;
            if frame.is_link {
                return Ok(next);
            }
            next = frame.attached_to;
        }
        Err(asked.error(format!("the frame {} is attached to itself", quoted(name))))
    }

    fn frame(&self, name: &str, asked: Element<'_>) -> Result<&Frame<'a>> {
        self.frames.get(name).ok_or_else(|| {
            let message = if name.contains("::") {
                format!(
                    "{} is a frame of a nested model: expected one model without others inside",
                    quoted(name)
                )
            } else {
                format!("there is no link, joint or frame {}", quoted(name))
            };
            asked.error(message)
        })
    }

    /// Returns the canonical link: the one named by the model, or else the first link.
    pub fn canonical(&self) -> &'a str {
        self.canonical
    }

    /// Returns the element of a link.
    pub fn element(&self, name: &str) -> Option<Element<'a>> {
        self.frames.get(name).map(|frame| frame.element)
    }
}
