//! Robot of a scene: bodies, joints, and the tree that they form.

use std::collections::{HashMap, HashSet, VecDeque};

use nalgebra::{Matrix3, Vector3};

use super::super::rounding::mark;
use super::bodies::{Body, Robot, refused};
use super::joint::{Described, is_joint};
use super::mass;
use super::stage::Stage;
use crate::Result;
use crate::mechanism::{JointSpec, JointType, LinkSpec, LoopEnd, LoopSpec, MechanismBuilder, ShapeSpec};
use crate::spatial::{Inertia, Pose, quaternion_from_rotation};

/// Name of the world.
const WORLD: &str = "world";
/// Default gravity (m/s²).
const GRAVITY: f64 = 9.81;

/// Reads the one robot of a scene.
pub(super) fn read(stage: &Stage) -> Result<MechanismBuilder> {
    let mut robot = Robot::new(stage)?;
    let joints = robot.joints()?;
    let members = robot.members(&joints)?;
    robot.build(&joints, &members)
}

impl Robot<'_> {
    fn joints(&mut self) -> Result<Vec<Described>> {
        let mut out = Vec::new();
        for (at, node) in self.stage.nodes.iter().enumerate() {
            if is_joint(node)
                && let Some(joint) = self.joint(at)?
            {
                match joint.bodies {
                    [None, None] => {
                        self.warnings.push(format!("{}: it connects no bodies: left out", node.path));
                    }
                    [a, b] if a == b => return Err(node.error("both of its bodies are the same")),
                    _ => out.push(joint),
                }
            }
        }
        Ok(out)
    }

    /// Returns the bodies of the one robot: the group connected by joints, with an articulation mark if any group has one.
    fn members(&mut self, joints: &[Described]) -> Result<Vec<bool>> {
        if self.bodies.is_empty() {
            let missing = self.stage.warnings.first().map(|w| format!(" ({w})")).unwrap_or_default();
            return Err(refused(format!(
                "the scene has no rigid body (PhysicsRigidBodyAPI) that moves{missing}"
            )));
        }
        // Groups connected by joints, each represented by its first body.
        let mut group: Vec<usize> = (0..self.bodies.len()).collect();
        for joint in joints {
            if let [Some(a), Some(b)] = joint.bodies {
                let (a, b) = (first(&mut group, a), first(&mut group, b));
                group[a.max(b)] = a.min(b);
            }
        }
        let groups: Vec<usize> = (0..group.len()).map(|i| first(&mut group, i)).collect();
        let with_joints: HashSet<usize> =
            joints.iter().flat_map(|j| j.bodies).flatten().map(|body| groups[body]).collect();
        let mut marked = HashSet::new();
        for (at, node) in self.stage.nodes.iter().enumerate() {
            if node.has_schema("PhysicsArticulationRootAPI") {
                let of_joint = joints.iter().find(|j| j.node == at).and_then(|j| j.bodies[1].or(j.bodies[0]));
                let inside = || (0..self.bodies.len()).filter(|b| self.is_below(self.bodies[*b].node, at));
                match of_joint.or(self.carriers[at]) {
                    Some(body) => drop(marked.insert(groups[body])),
                    None => marked.extend(inside().map(|b| groups[b]).filter(|g| with_joints.contains(g))),
                }
            }
        }
        let mut candidates: Vec<usize> =
            if marked.is_empty() { with_joints } else { marked }.into_iter().collect();
        candidates.sort_unstable();
        let chosen = match candidates[..] {
            [one] => one,
            [] if self.bodies.len() == 1 => 0,
            [] => return Err(refused("no joint connects the rigid bodies of the scene")),
            [one, two, ..] => {
                return Err(refused(format!(
                    "the scene has more than one robot ({} and {}): expected one; keep the robot alone",
                    self.stage.nodes[self.bodies[one].node].path,
                    self.stage.nodes[self.bodies[two].node].path
                )));
            }
        };
        let members: Vec<bool> = groups.iter().map(|g| *g == chosen).collect();
        let others = members.iter().filter(|m| !**m).count();
        if others > 0 {
            self.warnings.push(format!("{others} rigid bodies that are not part of the robot are left out"));
        }
        Ok(members)
    }

    fn is_below(&self, mut node: usize, above: usize) -> bool {
        while let Some(parent) = self.stage.nodes[node].parent {
            if node == above {
                return true;
            }
            node = parent;
        }
        above == 0
    }

    fn build(mut self, joints: &[Described], members: &[bool]) -> Result<MechanismBuilder> {
        let named = |nodes: Vec<usize>| names(self.stage, &nodes);
        let body_names =
            named((0..self.bodies.len()).filter(|b| members[*b]).map(|b| self.bodies[b].node).collect());
        for body in &mut self.bodies {
            body.name = body_names.get(&body.node).cloned().unwrap_or_default();
        }
        let mut joints: Vec<&Described> =
            joints.iter().filter(|j| j.bodies.iter().flatten().all(|b| members[*b])).collect();
        let joint_names = names(self.stage, &joints.iter().map(|j| j.node).collect::<Vec<_>>());
        // Joints that may close loops come last.
        joints.sort_by_key(|j| j.excluded);
        let tree = self.tree(&joints, members);
        let name = self.robot_name(members);
        let mut out = MechanismBuilder::new(name, WORLD);
        out.gravity = self.gravity()?;

        // A link's frame has the body's axes and its origin at its joint.
        let mut origin = vec![Vector3::zeros(); self.bodies.len()];
        for step in &tree.steps {
            if let Some(joint) = step.joint {
                origin[step.body] = joints[joint].frames[step.side].translation;
            }
        }
        let link = |body: Option<usize>| body.map_or(WORLD, |b| self.bodies[b].name.as_str());
        let in_link = |body: Option<usize>, pose: Pose<f64>| match body {
            Some(b) => Pose::new(pose.rotation, pose.translation - origin[b]),
            None => pose,
        };
        let mut numbers = Vec::new();
        let mut taken: HashSet<String> = joint_names.values().cloned().collect();
        let others: Vec<Described> =
            joints.iter().map(|j| Described { name: joint_names[&j.node].clone(), ..j.copied() }).collect();
        for step in &tree.steps {
            let Some(at) = step.joint else {
                let mut name = "root".to_owned();
                while !taken.insert(name.clone()) {
                    name.push('_');
                }
                let pose = self.bodies[step.body].pose;
                let [x, y, z, w] = quaternion_from_rotation(&pose.rotation);
                let t = pose.translation;
                out.assembly.push((name.clone(), vec![t.x, t.y, t.z, x, y, z, w]));
                out.joints.push(JointSpec::new(name, JointType::Floating, WORLD, link(Some(step.body))));
                numbers.push(super::super::rounding::Numbers::default());
                continue;
            };
            let joint = &others[at];
            let (near, far) = (joint.frames[1 - step.side], joint.frames[step.side]);
            let before = joint.bodies[1 - step.side];
            // Axes of the child at zero, in the parent's link.
            let placed = in_link(before, near) * Pose::new(far.rotation.transpose(), Vector3::zeros());
            // If the joint is traversed in the reverse direction, its axis changes sign.
            let kind = turned(&joint.kind, &far.rotation, if step.side == 1 { 1.0 } else { -1.0 });
            if step.side == 0 && kind == JointType::Spherical {
                self.warnings.push(format!(
                    "{}: its coordinates are those of body0 in body1, which is nearer the base",
                    self.stage.nodes[joint.node].path
                ));
            }
            let mut spec = JointSpec::new(&joint.name, kind, link(before), link(Some(step.body))).at(placed);
            spec.limits = joint.limits;
            spec.dynamics = joint.dynamics;
            spec.line = self.stage.nodes[joint.node].line;
            spec.mimic = self.mimic(joint, &others)?;
            out.joints.push(spec);
            let mut own = joint.numbers.clone();
            if let Some(before) = before {
                own.lengths.extend(
                    tree.steps
                        .iter()
                        .find(|s| s.body == before)
                        .and_then(|s| s.joint)
                        .map_or(Vec::new(), |j| joints[j].numbers.lengths.clone()),
                );
            }
            numbers.push(own);
        }
        mark(&mut out.joints, &numbers);
        for rounding in out.joints.iter_mut().filter_map(|j| j.rounding.as_mut()) {
            // The numbers are in units of the scene.
            rounding.length *= self.units.length;
        }
        for &at in &tree.closing {
            let joint = &others[at];
            let end = |side: usize| LoopEnd {
                link: link(joint.bodies[side]).to_owned(),
                origin: in_link(joint.bodies[side], joint.frames[side]),
            };
            out.loops.push(LoopSpec {
                name: joint.name.clone(),
                joint_type: joint.kind,
                predecessor: end(0),
                successor: end(1),
                line: self.stage.nodes[joint.node].line,
            });
        }
        if !tree.closing.is_empty() {
            for step in &tree.steps {
                if let Some(at) = step.joint
                    && let Some(q) = self.position(&others[at])
                {
                    out.assembly.push((others[at].name.clone(), vec![q]));
                }
            }
        }
        for step in &tree.steps {
            let Body { node, colliders, .. } = &self.bodies[step.body];
            let mut warnings = Vec::new();
            let inertia =
                mass::inertia(self.stage, &self.frames, *node, colliders, &self.units, &mut warnings)?;
            let name = self.bodies[step.body].name.clone();
            let line = self.stage.nodes[*node].line;
            let moved = Pose::from_translation(-origin[step.body]);
            if inertia.is_none() {
                let path = &self.stage.nodes[*node].path;
                warnings
                    .push(format!("{path}: it has neither a mass nor collision shapes: taken without mass"));
            }
            let inertia = inertia.map(|i: Inertia<f64>| i.transformed(&moved));
            out.links.push(LinkSpec { name: name.clone(), inertia, line });
            for &at in colliders {
                // Unreadable shapes have no effect here.
                let mut ignored = Vec::new();
                let found = mass::collider(self.stage, &self.frames, *node, at, &self.units, &mut ignored);
                if self.stage.nodes[at].kind != "Mesh"
                    && let Ok(Some(mass::Collider { simple: Some((pose, shape)), .. })) = found
                {
                    out.shapes.push(ShapeSpec { link: name.clone(), origin: moved * pose, shape });
                }
            }
            if origin[step.body] != Vector3::zeros() {
                let mark = format!("{name}.frame");
                out.links.push(LinkSpec { name: mark.clone(), inertia: None, line });
                out.joints.push(JointSpec::new(&mark, JointType::Fixed, &name, &mark).at(moved));
            }
            self.warnings.append(&mut warnings);
        }
        out.warnings = self.warnings;
        Ok(out)
    }

    /// Returns the name of the prim that contains all bodies of the robot, or of the default prim.
    fn robot_name(&self, members: &[bool]) -> String {
        let mut paths =
            self.bodies.iter().zip(members).filter(|(_, m)| **m).map(|(b, _)| &self.stage.nodes[b.node]);
        let first = paths.next().map(|n| n.path.as_str()).unwrap_or_default();
        let mut common: Vec<&str> = first.split('/').collect();
        common.pop();
        for node in paths {
            let same = common.iter().zip(node.path.split('/')).take_while(|(a, b)| *a == b).count();
            common.truncate(same);
        }
        let name = common.pop().filter(|n| !n.is_empty()).unwrap_or(&self.stage.root_layer.default_prim);
        if name.is_empty() { "robot".to_owned() } else { name.trim_start_matches('/').to_owned() }
    }

    /// Returns gravity in the world.
    fn gravity(&self) -> Result<Vector3<f64>> {
        let down = match self.stage.root_layer.up_axis.as_deref() {
            Some("Z") => -Vector3::z(),
            Some("X") => -Vector3::x(),
            // Default of USD.
            _ => -Vector3::y(),
        };
        let Some(scene) = self.stage.nodes.iter().find(|n| n.kind == "PhysicsScene") else {
            return Ok(down * GRAVITY);
        };
        let direction = scene.array::<3>("physics:gravityDirection")?.map(Vector3::from);
        let direction = direction.and_then(|d| d.try_normalize(1e-12)).unwrap_or(down);
        let size = scene.number("physics:gravityMagnitude")?.filter(|m| m.is_finite() && *m >= 0.0);
        Ok(direction * size.map_or(GRAVITY, |m| m * self.units.length))
    }

    /// Returns the position of a joint with one coordinate in the scene.
    fn position(&self, joint: &Described) -> Option<f64> {
        let [first, second] = [0, 1].map(|side| {
            joint.bodies[side].map_or(joint.frames[side], |b| self.bodies[b].pose * joint.frames[side])
        });
        let moved = first.inverse() * second;
        match joint.kind {
            JointType::Revolute { axis } => {
                let r = moved.rotation;
                let turn = Vector3::new(r[(2, 1)] - r[(1, 2)], r[(0, 2)] - r[(2, 0)], r[(1, 0)] - r[(0, 1)]);
                Some(turn.dot(&axis).atan2(r.trace() - 1.0))
            }
            JointType::Prismatic { axis } => Some(moved.translation.dot(&axis)),
            _ => None,
        }
    }

    /// Builds the tree of the robot's bodies. The root is the world if a joint fixes the robot to it, otherwise the floating base.
    fn tree(&self, joints: &[&Described], members: &[bool]) -> Tree {
        let mut at_body: HashMap<Option<usize>, Vec<usize>> = HashMap::new();
        for (i, joint) in joints.iter().enumerate() {
            for body in joint.bodies {
                at_body.entry(body).or_default().push(i);
            }
        }
        let mut out = Tree { steps: Vec::new(), closing: Vec::new() };
        let mut seen: HashSet<Option<usize>> = HashSet::new();
        let mut used: HashSet<usize> = HashSet::new();
        let mut open = VecDeque::new();
        if at_body.contains_key(&None) {
            seen.insert(None);
            open.push_back(None);
        } else {
            let led: HashSet<usize> =
                joints.iter().filter(|j| !j.excluded).filter_map(|j| j.bodies[1]).collect();
            let mut own = (0..members.len()).filter(|b| members[*b]);
            let marked =
                |b: &usize| self.stage.nodes[self.bodies[*b].node].has_schema("PhysicsArticulationRootAPI");
            let first = own.clone().find(marked).or(own.clone().find(|b| !led.contains(b))).or(own.next());
            if let Some(base) = first {
                seen.insert(Some(base));
                out.steps.push(Step { body: base, joint: None, side: 1 });
                open.push_back(Some(base));
            }
        }
        // Joints marked as closing loops are used only if no other joint reaches further bodies.
        for with_excluded in [false, true] {
            let mut open =
                if with_excluded { seen.iter().copied().collect() } else { std::mem::take(&mut open) };
            while let Some(body) = open.pop_front() {
                for &i in at_body.get(&body).map_or(&[][..], Vec::as_slice) {
                    if (joints[i].excluded && !with_excluded) || used.contains(&i) {
                        continue;
                    }
                    let side = usize::from(joints[i].bodies[0] == body);
                    if let Some(next) = joints[i].bodies[side]
                        && seen.insert(Some(next))
                    {
                        used.insert(i);
                        out.steps.push(Step { body: next, joint: Some(i), side });
                        open.push_back(Some(next));
                    }
                }
            }
        }
        out.closing = (0..joints.len()).filter(|i| !used.contains(i)).collect();
        out
    }
}

/// Returns the first body of a group, with path compression.
fn first(group: &mut [usize], mut i: usize) -> usize {
    while group[i] != i {
        group[i] = group[group[i]];
        i = group[i];
    }
    i
}

/// Body with the joint that leads to it (`None` for a floating base), and its side of the joint.
struct Step {
    body: usize,
    joint: Option<usize>,
    side: usize,
}

struct Tree {
    steps: Vec<Step>,
    /// Joints that close loops.
    closing: Vec<usize>,
}

/// Returns a joint type with its axis rotated and multiplied by `sign`.
fn turned(kind: &JointType, rotation: &Matrix3<f64>, sign: f64) -> JointType {
    match *kind {
        JointType::Revolute { axis } => JointType::Revolute { axis: rotation * axis * sign },
        JointType::Prismatic { axis } => JointType::Prismatic { axis: rotation * axis * sign },
        other => other,
    }
}

/// Returns the names of prims: the last part of the path, or as many parts as needed to be unique.
fn names(stage: &Stage, nodes: &[usize]) -> HashMap<usize, String> {
    let mut parts = 1;
    loop {
        let name = |node: &usize| {
            let path: Vec<&str> = stage.nodes[*node].path.split('/').filter(|p| !p.is_empty()).collect();
            path[path.len().saturating_sub(parts)..].join("/")
        };
        let mut counts: HashMap<String, usize> = HashMap::new();
        nodes.iter().for_each(|n| *counts.entry(name(n)).or_default() += 1);
        if counts.values().all(|n| *n == 1) || parts > 256 {
            return nodes.iter().map(|n| (*n, name(n))).collect();
        }
        parts += 1;
    }
}
