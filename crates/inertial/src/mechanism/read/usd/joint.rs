//! Joints of a scene.

use nalgebra::{Matrix3, Vector3};

use super::super::rounding::Numbers;
use super::bodies::Robot;
use super::stage::Node;
use super::xform::quaternion;
use crate::Result;
use crate::mechanism::{JointDynamics, JointType, Limits, Mimic};
use crate::spatial::Pose;

/// Value above which speeds and forces count as unlimited (`PhysX` uses 1e6 degrees per second).
const UNLIMITED: f64 = 1e5;

/// Joint between two bodies, or between a body and the world.
pub(super) struct Described {
    pub node: usize,
    pub name: String,
    /// Indices of the bodies; `None` is the world.
    pub bodies: [Option<usize>; 2],
    /// Frame of the joint in each body's frame (or in the world).
    pub frames: [Pose<f64>; 2],
    /// Joint type; axes are in the joint's frame.
    pub kind: JointType,
    pub limits: Limits,
    pub dynamics: JointDynamics,
    /// Whether the joint is marked as closing a loop.
    pub excluded: bool,
    pub numbers: Numbers,
}

impl Described {
    /// Copies the joint without its name.
    pub fn copied(&self) -> Self {
        Self { name: String::new(), numbers: self.numbers.clone(), ..*self }
    }
}

/// Returns whether a prim is a joint.
pub(super) fn is_joint(node: &Node) -> bool {
    node.kind.starts_with("Physics") && node.kind.ends_with("Joint") || node.kind.starts_with("PhysxPhysics")
}

impl Robot<'_> {
    /// Reads a joint; returns `None` if it is disabled or does not constrain any motion.
    pub fn joint(&mut self, at: usize) -> Result<Option<Described>> {
        let node = &self.stage.nodes[at];
        if node.is_set("physics:jointEnabled")? == Some(false) {
            return Ok(None);
        }
        let axis = match node.text("physics:axis") {
            None | Some("X") => Vector3::x(),
            Some("Y") => Vector3::y(),
            Some("Z") => Vector3::z(),
            Some(other) => return Err(node.error(format!("physics:axis is \"{other}\", expected X, Y or Z"))),
        };
        let kind = match node.kind.as_str() {
            "PhysicsRevoluteJoint" => JointType::Revolute { axis },
            "PhysicsPrismaticJoint" => JointType::Prismatic { axis },
            "PhysicsFixedJoint" => JointType::Fixed,
            "PhysicsSphericalJoint" => JointType::Spherical,
            "PhysicsJoint" => match generic(node)? {
                Some(kind) => kind,
                None => return Ok(None),
            },
            other => return Err(node.unsupported(other)),
        };
        let mut numbers = Numbers::default();
        let first = self.side(node, 0, &mut numbers)?;
        let second = self.side(node, 1, &mut numbers)?;
        let excluded = node.is_set("physics:excludeFromArticulation")?.unwrap_or(false);
        let (limits, dynamics) = (self.limits(node, &kind)?, self.dynamics(node, &kind)?);
        let name = String::new();
        let (bodies, frames) = ([first.0, second.0], [first.1, second.1]);
        Ok(Some(Described { node: at, name, bodies, frames, kind, limits, dynamics, excluded, numbers }))
    }

    /// Returns the body on one side, with the joint's frame in it.
    fn side(&self, node: &Node, side: usize, numbers: &mut Numbers) -> Result<(Option<usize>, Pose<f64>)> {
        let name = |what: &str| format!("physics:local{what}{side}");
        let position = node.array::<3>(&name("Pos"))?.unwrap_or_default();
        let turn = node.array::<4>(&name("Rot"))?.unwrap_or([1.0, 0.0, 0.0, 0.0]);
        numbers.lengths.extend(position);
        numbers.angles.extend(turn);
        let position = Vector3::from(position);
        let rotation = quaternion(node, &name("Rot"), turn)?;
        let targets = node.targets(&format!("physics:body{side}"));
        let Some(path) = targets.first() else {
            return Ok((None, Pose::new(rotation, position * self.units.length)));
        };
        let Some(target) = self.stage.place(path) else {
            return Err(node.error(format!("physics:body{side} refers to {path}, which does not exist")));
        };
        let body = self.body_of(target);
        if let Some(body) = body.filter(|b| self.bodies[*b].node == target) {
            let scaled = position.component_mul(&self.frames[target].scale()) * self.units.length;
            return Ok((Some(body), Pose::new(rotation, scaled)));
        }
        // The target is a prim that is carried by a body, or a static prim.
        let frame = &self.frames[target];
        let point = (frame.matrix * position.push(1.0)).xyz() * self.units.length;
        let pose = Pose::new(frame.pose(&self.stage.nodes[target], 1.0)?.rotation * rotation, point);
        Ok(match body {
            Some(body) => (Some(body), self.bodies[body].pose.inverse() * pose),
            None => (None, pose),
        })
    }

    fn limits(&mut self, node: &Node, kind: &JointType) -> Result<Limits> {
        let mut out = Limits::default();
        let (unit, drive, force) = match kind {
            JointType::Revolute { .. } => (1f64.to_radians(), "angular", self.units.torque()),
            JointType::Prismatic { .. } => (self.units.length, "linear", self.units.force()),
            _ => return Ok(out),
        };
        let number = |name: &str| -> Result<Option<f64>> { Ok(node.number(name)?.filter(|x| x.is_finite())) };
        if let Some(lower) = number("physics:lowerLimit")? {
            out.lower = lower * unit;
        }
        if let Some(upper) = number("physics:upperLimit")? {
            out.upper = upper * unit;
        }
        if out.lower > out.upper {
            let (lower, upper) = (out.lower, out.upper);
            self.warnings.push(format!(
                "{}: the lower limit {lower} is above the upper one, {upper}: the two are swapped",
                node.path
            ));
            std::mem::swap(&mut out.lower, &mut out.upper);
        }
        let speeds =
            [format!("physxJointAxis:{drive}:maxJointVelocity"), "physxJoint:maxJointVelocity".into()];
        for name in speeds {
            if let Some(speed) = number(&name)?.filter(|x| *x > 0.0 && *x < UNLIMITED) {
                out.velocity = speed * unit;
                break;
            }
        }
        if let Some(effort) = number(&format!("drive:{drive}:physics:maxForce"))?
            && effort > 0.0
            && effort < UNLIMITED / force
        {
            out.effort = effort * force;
        }
        Ok(out)
    }

    fn dynamics(&mut self, node: &Node, kind: &JointType) -> Result<JointDynamics> {
        let mut out = JointDynamics::default();
        let units = &self.units;
        let (drive, inertia, force, speed) = match kind {
            JointType::Revolute { .. } => ("angular", units.inertia(), units.torque(), 1f64.to_radians()),
            JointType::Prismatic { .. } => ("linear", units.mass, units.force(), units.length),
            _ => return Ok(out),
        };
        let number = |name: &str| -> Result<Option<f64>> { Ok(node.number(name)?.filter(|x| *x > 0.0)) };
        let of_axis = |what: &str| number(&format!("physxJointAxis:{drive}:{what}"));
        let armature = of_axis("armature")?.or(number("physxJoint:armature")?);
        out.armature = armature.unwrap_or(0.0) * inertia;
        out.friction = of_axis("dynamicFrictionEffort")?.unwrap_or(0.0) * force;
        out.damping = of_axis("viscousFrictionCoefficient")?.unwrap_or(0.0) * force / speed;
        if number("physxJoint:jointFriction")?.is_some() {
            self.warnings.push(format!(
                "{}: physxJoint:jointFriction is a coefficient of the joint's load, not a torque: left out",
                node.path
            ));
        }
        Ok(out)
    }

    /// Returns the leader of a joint (`PhysxMimicJointAPI`) with ratio and offset. The constraint is
    /// `position + gearing · leader position + offset = 0`.
    pub fn mimic(&self, joint: &Described, others: &[Described]) -> Result<Option<Mimic>> {
        let node = &self.stage.nodes[joint.node];
        let Some(axis) = node.schemas.iter().find_map(|s| s.strip_prefix("PhysxMimicJointAPI:")) else {
            return Ok(None);
        };
        let name = |what: &str| format!("physxMimicJoint:{axis}:{what}");
        let leader = node.targets(&name("referenceJoint"));
        let leader = leader.first().and_then(|path| self.stage.place(path));
        let leader = leader.and_then(|at| others.iter().find(|other| other.node == at));
        let leader = leader
            .ok_or_else(|| node.error(format!("{} does not refer to a joint", name("referenceJoint"))))?;
        let unit = |kind: &JointType| {
            if matches!(kind, JointType::Prismatic { .. }) { self.units.length } else { 1f64.to_radians() }
        };
        let gearing = node.number(&name("gearing"))?.unwrap_or(1.0) * unit(&joint.kind) / unit(&leader.kind);
        let offset = node.number(&name("offset"))?.unwrap_or(0.0) * unit(&joint.kind);
        Ok(Some(Mimic::new(&leader.name, -gearing, -offset)))
    }
}

/// Returns the type of a joint that is defined by its locked directions; `None` if no direction is locked.
fn generic(node: &Node) -> Result<Option<JointType>> {
    let locked = |axis: &str| -> Result<bool> {
        let limit = |side: &str, default: f64| -> Result<f64> {
            Ok(node.number(&format!("limit:{axis}:physics:{side}"))?.unwrap_or(default))
        };
        Ok(limit("low", f64::NEG_INFINITY)? > limit("high", f64::INFINITY)?)
    };
    let axes = Matrix3::identity();
    let free = |names: [&str; 3]| -> Result<Vec<Vector3<f64>>> {
        let mut out = Vec::new();
        for (i, name) in names.into_iter().enumerate() {
            if !locked(name)? {
                out.push(axes.column(i).into_owned());
            }
        }
        Ok(out)
    };
    let (slides, turns) = (free(["transX", "transY", "transZ"])?, free(["rotX", "rotY", "rotZ"])?);
    Ok(Some(match (&slides[..], &turns[..]) {
        ([], []) => JointType::Fixed,
        ([], [axis]) => JointType::Revolute { axis: *axis },
        ([axis], []) => JointType::Prismatic { axis: *axis },
        ([], [_, _, _]) => JointType::Spherical,
        ([_, _, _], [_, _, _]) => return Ok(None),
        _ => {
            return Err(node
                .unsupported(format!("a PhysicsJoint with {} free directions", slides.len() + turns.len())));
        }
    }))
}
