//! Joints of SDF.

use nalgebra::Vector3;

use super::super::rounding::Numbers;
use super::super::xml::{Element, parse_number, quoted};
use super::frames::{MODEL, WORLD, placed};
use super::{Moved, Reader, joined};
use crate::Result;
use crate::mechanism::{JointDynamics, JointSpec, JointType, Limits, LoopEnd, LoopSpec, Mimic};
use crate::spatial::Pose;

/// Supported joint types.
const TYPES: &str = "revolute, continuous, prismatic, fixed, ball, universal or screw";

/// Value from which Gazebo's limits mean unlimited.
const UNLIMITED: f64 = 1e16;

/// Joint with the frames that it connects.
pub(super) struct Described<'a> {
    pub name: &'a str,
    pub element: Element<'a>,
    pub parent: &'a str,
    pub child: &'a str,
    /// Frame of the joint in the model's frame.
    frame: Pose<f64>,
    /// Joint type; axes are in the joint's frame.
    kind: JointType,
    pub numbers: Numbers,
}

impl<'a> Reader<'a> {
    /// Returns all joints, and the links whose frames are moved to their joints.
    pub fn joints(&self) -> Result<(Vec<Described<'a>>, Moved<'a>)> {
        let joints =
            self.model.children_named("joint").map(|e| self.described(e)).collect::<Result<Vec<_>>>()?;
        let mut moved = Moved::new();
        let mut seen = std::collections::HashSet::new();
        for joint in &joints {
            if !seen.insert(joint.child) {
                continue;
            }
            let frame = self.frames.pose(joint.child, joint.element)?.inverse() * joint.frame;
            let turns = !matches!(joint.kind, JointType::Fixed | JointType::Prismatic { .. });
            if turns && frame.translation != Vector3::zeros() {
                moved.insert(joint.child, Pose::from_translation(-frame.translation));
            }
        }
        Ok((joints, moved))
    }

    fn described(&self, element: Element<'a>) -> Result<Described<'a>> {
        let name = element.required_identifier("name")?;
        let [parent, child] = ["parent", "child"]
            .map(|tag| element.required_first_child(tag).and_then(|end| end.name_inside()));
        let (parent, child) = (parent?, child?);
        if child == WORLD {
            return Err(element.error("the world cannot be a child: exchange parent and child"));
        }
        let link = self.frames.link(child, element)?;
        let parent = if parent == WORLD { WORLD } else { self.frames.link(parent, element)? };
        if parent == link {
            return Err(element.error(format!("both sides are the link {}", quoted(link))));
        }
        let frame = self.frames.pose(name, element)?;
        let mut numbers = vec![placed(element)?.numbers];
        for link in [parent, link] {
            if let Some(link) = self.frames.element(link) {
                numbers.push(placed(link)?.numbers);
            }
        }
        let mut numbers = joined(&numbers);
        let mut axis = |tag: &str| -> Result<Vector3<f64>> {
            let Some(xyz) = element.first_child(tag).and_then(|axis| axis.first_child("xyz")) else {
                return Ok(Vector3::z());
            };
            let given = xyz.text_array::<3>()?;
            numbers.axis.extend(given);
            let given = Vector3::from(given);
            if given.norm() < 1e-12 {
                return Err(xyz.error("the axis has no length"));
            }
            let in_model = element.first_child(tag).and_then(|a| a.first_child("use_parent_model_frame"));
            let in_model = self.old && in_model.is_some_and(|e| matches!(e.text(), "1" | "true"));
            let around = match xyz.identifier("expressed_in")?.filter(|e| !e.is_empty()) {
                _ if in_model => Pose::identity(),
                Some(MODEL) => Pose::identity(),
                Some(other) => self.frames.pose(other, xyz)?,
                None => frame,
            };
            Ok(frame.rotation.tr_mul(&(around.rotation * given)))
        };
        let kind = element.required("type")?;
        let kind = match kind {
            "revolute" | "continuous" => JointType::Revolute { axis: axis("axis")? },
            "prismatic" => JointType::Prismatic { axis: axis("axis")? },
            "fixed" => JointType::Fixed,
            "ball" => JointType::Spherical,
            "universal" => JointType::Universal { axes: [axis("axis")?, axis("axis2")?] },
            "screw" => JointType::Helical { axis: axis("axis")?, pitch: pitch(element)? },
            "revolute2" | "gearbox" => return Err(element.unsupported(format!("a {kind} joint"))),
            other => {
                return Err(element.error(format!("unknown joint type {}: expected {TYPES}", quoted(other))));
            }
        };
        Ok(Described { name, element, parent, child: link, frame, kind, numbers })
    }

    /// Returns the frame of a link (moved to its joint) in the model's frame, or the frame of the world.
    fn link_frame(&self, name: &'a str, moved: &Moved<'a>, asked: Element<'_>) -> Result<Pose<f64>> {
        if name == WORLD {
            return Ok(self.pose.inverse());
        }
        let pose = self.frames.pose(name, asked)?;
        Ok(moved.get(name).map_or(pose, |frame| pose * frame.inverse()))
    }

    pub fn joint(&self, joint: &Described<'a>, moved: &Moved<'a>) -> Result<JointSpec> {
        let Described { name, element, parent, child, .. } = *joint;
        let parent_frame = self.link_frame(parent, moved, element)?;
        let child_frame = self.link_frame(child, moved, element)?;
        let kind = turned(&joint.kind, &(child_frame.inverse() * joint.frame));
        Ok(JointSpec {
            limits: limits(element)?,
            dynamics: dynamics(element)?,
            mimic: mimic(element)?,
            line: Some(element.line()),
            ..JointSpec::new(name, kind, parent, child).at(parent_frame.inverse() * child_frame)
        })
    }

    pub fn closing(&self, joint: &Described<'a>, moved: &Moved<'a>) -> Result<LoopSpec> {
        let end = |link: &'a str| -> Result<LoopEnd> {
            let frame = self.link_frame(link, moved, joint.element)?;
            Ok(LoopEnd { link: link.to_owned(), origin: frame.inverse() * joint.frame })
        };
        Ok(LoopSpec {
            name: joint.name.to_owned(),
            joint_type: joint.kind,
            predecessor: end(joint.parent)?,
            successor: end(joint.child)?,
            line: Some(joint.element.line()),
        })
    }
}

/// Returns a joint type with its axes in another frame; `frame` is the pose of the old frame in the new one.
fn turned(kind: &JointType, frame: &Pose<f64>) -> JointType {
    let turn = |axis: Vector3<f64>| frame.rotation * axis;
    match *kind {
        JointType::Revolute { axis } => JointType::Revolute { axis: turn(axis) },
        JointType::Prismatic { axis } => JointType::Prismatic { axis: turn(axis) },
        JointType::Helical { axis, pitch } => JointType::Helical { axis: turn(axis), pitch },
        JointType::Universal { axes } => JointType::Universal { axes: axes.map(turn) },
        other => other,
    }
}

/// Returns the pitch of a screw (m/rad).
fn pitch(element: Element<'_>) -> Result<f64> {
    if let Some(pitch) = element.first_child("screw_thread_pitch") {
        return Ok(pitch.text_array::<1>()?[0] / std::f64::consts::TAU);
    }
    let Some(old) = element.first_child("thread_pitch") else {
        return Err(element.error("a screw joint needs <screw_thread_pitch> (m per turn)"));
    };
    // The older element is in radians per metre, with the opposite sign.
    match old.text_array::<1>()? {
        [x] if x != 0.0 => Ok(-1.0 / x),
        _ => Err(old.error("it is zero: expected radians per metre")),
    }
}

fn limits(element: Element<'_>) -> Result<Limits> {
    let mut out = Limits::default();
    let axis = element.first_child("axis");
    let Some(limit) = axis.and_then(|axis| axis.first_child("limit")) else { return Ok(out) };
    let number = |tag: &str| -> Result<Option<f64>> {
        let Some(element) = limit.first_child(tag) else { return Ok(None) };
        let text = element.text();
        let value = match text.trim_start_matches('+').to_ascii_lowercase().as_str() {
            "inf" | "infinity" => f64::INFINITY,
            "-inf" | "-infinity" => f64::NEG_INFINITY,
            _ => parse_number(text)
                .ok_or_else(|| element.error(format!("{} is not a number", quoted(text))))?,
        };
        Ok(Some(value).filter(|x| x.abs() < UNLIMITED))
    };
    if element.attribute("type") != Some("continuous") {
        out.lower = number("lower")?.unwrap_or(out.lower);
        out.upper = number("upper")?.unwrap_or(out.upper);
        if out.lower > out.upper {
            limit.warn(&format!("lower {} is above upper {}: the two are swapped", out.lower, out.upper));
            std::mem::swap(&mut out.lower, &mut out.upper);
        }
    }
    // Negative values mean no limit.
    out.velocity = number("velocity")?.filter(|x| *x >= 0.0).unwrap_or(out.velocity);
    out.effort = number("effort")?.filter(|x| *x >= 0.0).unwrap_or(out.effort);
    Ok(out)
}

fn dynamics(element: Element<'_>) -> Result<JointDynamics> {
    let axis = element.first_child("axis");
    let Some(dynamics) = axis.and_then(|a| a.first_child("dynamics")) else {
        return Ok(JointDynamics::default());
    };
    let number = |tag: &str| -> Result<f64> {
        dynamics.first_child(tag).map_or(Ok(0.0), |e| Ok(e.text_array::<1>()?[0]))
    };
    Ok(JointDynamics {
        damping: number("damping")?,
        friction: number("friction")?,
        stiffness: number("spring_stiffness")?,
        rest: number("spring_reference")?,
        ..JointDynamics::default()
    })
}

/// Reads a `<mimic>`: `q = multiplier · (q_leader − reference) + offset`.
fn mimic(element: Element<'_>) -> Result<Option<Mimic>> {
    let axis = element.first_child("axis");
    let Some(mimic) = axis.and_then(|axis| axis.first_child("mimic")) else { return Ok(None) };
    let number = |tag: &str, default: f64| -> Result<f64> {
        mimic.first_child(tag).map_or(Ok(default), |e| Ok(e.text_array::<1>()?[0]))
    };
    let (ratio, offset) = (number("multiplier", 1.0)?, number("offset", 0.0)?);
    let reference = number("reference", 0.0)?;
    Ok(Some(Mimic::new(mimic.required_identifier("joint")?, ratio, offset - ratio * reference)))
}
