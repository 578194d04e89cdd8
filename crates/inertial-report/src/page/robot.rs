//! Robot in the form drawn by the page: frames, joints, limits and inertia cuboids.

use std::collections::HashSet;

use inertial::consistency::{DEFAULT_TOLERANCE, cuboid};
use inertial::dynamics::ClosedMechanism;
use inertial::mechanism::{BodyKind, JointType, LoopFrame, Mechanism, plane_directions};
use inertial::spatial::Inertia;
use inertial_app::{Context, Model, Result};
use nalgebra::Vector3;
use serde::Serialize;

use super::frame::{Frame, frame, rows};
use super::shapes::{Shape, shapes};

/// Data for drawing a mechanism in motion.
#[derive(Debug, Serialize)]
pub struct Robot {
    bodies: Vec<Body>,
    loops: Vec<Loop>,
    coordinates: Vec<Coordinate>,
    /// Initial positions: the assembled configuration.
    q: Vec<f64>,
    /// Shapes of the ground.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    ground: Vec<Shape>,
}

#[derive(Debug, Serialize)]
struct Body {
    name: String,
    kind: &'static str,
    parent: Option<usize>,
    placement: Frame,
    joint: Joint,
    drive: Drive,
    /// Shapes of the body.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    shapes: Vec<Shape>,
    /// Cuboid of the inertia in the model, if it is physically consistent.
    #[serde(skip_serializing_if = "Option::is_none")]
    before: Option<Cuboid>,
    /// Cuboid of the identified inertia.
    #[serde(skip_serializing_if = "Option::is_none")]
    after: Option<Cuboid>,
}

#[derive(Debug, Serialize)]
struct Drive {
    q: usize,
    ratio: f64,
    offset: f64,
}

#[derive(Debug, Serialize)]
struct Joint {
    #[serde(rename = "type")]
    kind: &'static str,
    /// Number of position coordinates of the joint.
    width: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    axis: Option<[f64; 3]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    axes: Option<[[f64; 3]; 2]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    plane: Option<[[f64; 3]; 2]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pitch: Option<f64>,
}

#[derive(Debug, Serialize)]
struct Loop {
    name: String,
    joint: Joint,
    predecessor: End,
    successor: End,
}

#[derive(Debug, Serialize)]
struct End {
    body: Option<usize>,
    pose: Frame,
}

#[derive(Debug, Serialize)]
struct Coordinate {
    name: String,
    index: usize,
    unit: &'static str,
    lower: f64,
    upper: f64,
    /// Whether the user may move it: it is independent and not a component of a quaternion.
    slider: bool,
}

#[derive(Debug, Serialize)]
struct Cuboid {
    centre: [f64; 3],
    half: [f64; 3],
    /// Matrix whose columns are the axes.
    axes: [f64; 9],
}

impl Robot {
    /// Creates the robot of a model, with identified parameters for comparison if given.
    pub fn new(mechanism: &Mechanism, identified: Option<&Mechanism>) -> Result<Self> {
        // Without loops, the memory of the dynamics, which grows with the square of the number of joints, is not needed.
        let loops = !mechanism.loops().is_empty();
        let closed = loops.then(|| ClosedMechanism::new(mechanism)).transpose()?;
        let q = closed.as_ref().map_or(mechanism.assembly(), |c| c.assembled()).to_vec();
        let independent: Option<HashSet<usize>> =
            closed.map(|c| c.independent_positions().iter().copied().collect());
        let after = |i: usize| identified.map(|m| m.bodies()[i].inertia);
        let bodies = mechanism.bodies().iter().enumerate().map(|(i, body)| {
            Ok(Body {
                name: body.name.clone(),
                kind: match body.kind {
                    BodyKind::Link => "link",
                    BodyKind::Rotor => "rotor",
                    BodyKind::SymmetricRotor => "symmetric-rotor",
                    BodyKind::Massless => "massless",
                },
                parent: body.parent,
                placement: frame(&body.placement),
                joint: joint(&body.joint_type),
                drive: Drive { q: body.drive.q, ratio: body.drive.ratio, offset: body.drive.offset },
                shapes: Vec::new(),
                before: equivalent_box(&body.inertia)?,
                after: after(i).map(|inertia| equivalent_box(&inertia)).transpose()?.flatten(),
            })
        });
        let end = |side: &LoopFrame| End { body: side.body, pose: frame(&side.pose) };
        let loops = mechanism.loops().iter().map(|l| Loop {
            name: l.name.clone(),
            joint: joint(&l.joint_type),
            predecessor: end(&l.predecessor),
            successor: end(&l.successor),
        });
        Ok(Self {
            bodies: bodies.collect::<Result<_>>()?,
            loops: loops.collect(),
            coordinates: coordinates(mechanism, |index| {
                independent.as_ref().is_none_or(|all| all.contains(&index))
            }),
            q,
            ground: Vec::new(),
        })
    }

    /// Adds the shapes of the links.
    pub fn with_shapes(mut self, model: &Model, context: &Context<'_>) -> Self {
        for (body, shape) in shapes(model, context) {
            match body {
                Some(body) => self.bodies[body].shapes.push(shape),
                None => self.ground.push(shape),
            }
        }
        self
    }
}

impl Robot {
    /// Adds the payload of a link.
    pub fn with_payload(mut self, mechanism: &Mechanism, link: &str, payload: &Inertia<f64>) -> Result<Self> {
        let found = mechanism.links().iter().find(|l| l.name == link);
        if let Some((body, pose)) = found.and_then(|l| Some((l.body?, l.pose))) {
            self.bodies[body].after = equivalent_box(&payload.transformed(&pose))?;
        }
        Ok(self)
    }
}

fn coordinates(mechanism: &Mechanism, is_independent: impl Fn(usize) -> bool) -> Vec<Coordinate> {
    let names = mechanism.position_names();
    let mut out = Vec::new();
    for joint in mechanism.joints().iter().filter(|j| j.follows.is_none()) {
        for (k, index) in joint.q_range().enumerate() {
            let (unit, of_its_own) = match joint.joint_type {
                JointType::Prismatic { .. } => ("m", true),
                JointType::Cylindrical { .. } => (["rad", "m"][k.min(1)], true),
                JointType::Planar { .. } => (["m", "m", "rad"][k.min(2)], true),
                JointType::Floating => ("m", k < 3),
                JointType::Spherical => ("", false),
                _ => ("rad", true),
            };
            // Default range without limits: half a turn to both sides, or half a metre.
            let reach = if unit == "rad" { std::f64::consts::PI } else { 0.5 };
            let bounded = |x: f64, other: f64| if x.is_finite() { x } else { other };
            out.push(Coordinate {
                name: names[index].clone(),
                index,
                unit,
                lower: bounded(joint.limits.lower, -reach),
                upper: bounded(joint.limits.upper, reach),
                slider: of_its_own && is_independent(index),
            });
        }
    }
    out
}

fn equivalent_box(inertia: &Inertia<f64>) -> Result<Option<Cuboid>> {
    Ok(cuboid(inertia, DEFAULT_TOLERANCE)?.map(|c| Cuboid {
        centre: c.centre.into(),
        half: c.half_sides.into(),
        axes: rows(&c.axes),
    }))
}

fn joint(joint: &JointType) -> Joint {
    let triple = |v: &Vector3<f64>| -> [f64; 3] { (*v).into() };
    let mut out =
        Joint { kind: joint.name(), width: joint.nq(), axis: None, axes: None, plane: None, pitch: None };
    match joint {
        JointType::Revolute { axis } | JointType::Prismatic { axis } | JointType::Cylindrical { axis } => {
            out.axis = Some(triple(axis));
        }
        JointType::Helical { axis, pitch } => {
            out.axis = Some(triple(axis));
            out.pitch = Some(*pitch);
        }
        JointType::Universal { axes } => out.axes = Some([triple(&axes[0]), triple(&axes[1])]),
        JointType::Planar { normal } => {
            let [a, b] = plane_directions(normal);
            out.axis = Some(triple(normal));
            out.plane = Some([triple(&a), triple(&b)]);
        }
        JointType::Fixed | JointType::Spherical | JointType::Floating => {}
    }
    out
}
