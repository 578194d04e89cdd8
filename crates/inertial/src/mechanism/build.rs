//! Conversion of a description to a mechanism: validation, lumping, numbering.

mod check;
mod couplings;
mod rotors;
mod wheels;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet};

use check::{check_numbers, checked_pose, checked_type, finite, place};
use couplings::Coupling;

use super::{
    Base, Body, BodyKind, BuildOptions, CollisionShape, Drive, Joint, JointSpec, JointType, Link, LoopEnd,
    LoopFrame, LoopJoint, Mechanism, MechanismBuilder, ParameterBlock, Revision, Rounding, ShapeSpec,
};
use crate::spatial::{Inertia, Pose};
use crate::{Error, Place, Result};

impl MechanismBuilder {
    /// Validates the description and numbers the coordinates.
    pub fn build(&self, options: &BuildOptions) -> Result<Mechanism> {
        build(self, options)
    }
}

fn build(spec: &MechanismBuilder, options: &BuildOptions) -> Result<Mechanism> {
    let mut build = Build::new(spec, options)?;
    build.tree()?;
    build.follow()?;
    let link_bodies = build.bodies.len();
    build.rotors()?;
    build.check_bodies()?;
    let wheels = build.wheels()?;
    let loops = build.loops()?;
    let assembly = build.assembly()?;
    let independent = build.independent(&loops)?;
    let gravity = options.gravity.unwrap_or(spec.gravity);
    finite("gravity", None, gravity.as_slice())?;
    let shapes = build.shapes();
    let mechanism = Mechanism {
        shapes,
        name: spec.name.clone(),
        gravity,
        armature: build.armature(),
        nq: build.nq,
        nv: build.nv,
        blocks: parameter_blocks(&build.bodies),
        bodies: build.bodies,
        joints: build.joints,
        links: build.links,
        loops,
        wheels,
        link_bodies,
        independent,
        assembly,
        warnings: build.warnings,
        revision: Revision::next(),
    };
    Ok(mechanism)
}

struct Build<'a> {
    spec: &'a MechanismBuilder,
    options: &'a BuildOptions,
    /// Joints of the description with the base option applied.
    described: Vec<JointSpec>,
    /// Resolved coupling of each described joint.
    couplings: Vec<Option<Coupling>>,
    root: String,
    link_index: HashMap<String, usize>,
    links: Vec<Link>,
    /// Rounding of each link's pose in its body.
    roundings: Vec<Option<Rounding>>,
    /// Sum of the lengths that make up each link's pose in its body.
    paths: Vec<f64>,
    bodies: Vec<Body>,
    joints: Vec<Joint>,
    joint_index: HashMap<String, usize>,
    /// Index in `described` of each entry of `joints`.
    origin_of: Vec<usize>,
    warnings: Vec<String>,
    nq: usize,
    nv: usize,
}

impl<'a> Build<'a> {
    /// Returns the shapes placed on the bodies that contain their links; shapes of rotor links are omitted.
    fn shapes(&self) -> Vec<CollisionShape> {
        let place = |spec: &ShapeSpec| {
            let link = &self.links[*self.link_index.get(&spec.link)?];
            let pose = link.pose * spec.origin;
            Some(CollisionShape { link: spec.link.clone(), body: link.body, pose, shape: spec.shape })
        };
        self.spec.shapes.iter().filter_map(place).collect()
    }

    fn new(spec: &'a MechanismBuilder, options: &'a BuildOptions) -> Result<Self> {
        let mut described = spec.joints.clone();
        let mut root = spec.root.clone();
        let mut links: Vec<Link> = Vec::with_capacity(spec.links.len() + 2);
        let mut link_index = HashMap::new();
        let mut add =
            |links: &mut Vec<Link>, name: &str, inertia: Option<Inertia<f64>>, line: Option<u32>| {
                if let Some(i) = &inertia {
                    finite(&format!("link \"{name}\""), line, i.parameters().as_slice())?;
                }
                if link_index.insert(name.to_owned(), links.len()).is_some() {
                    return Err(Error::model(
                        place(line, format!("link \"{name}\"")),
                        "the name is taken: links need distinct names",
                    ));
                }
                links.push(Link { name: name.to_owned(), body: None, pose: Pose::identity(), inertia, line });
                Ok(())
            };
        if !spec.links.iter().any(|l| l.name == root) {
            add(&mut links, &root, None, None)?;
        }
        for link in &spec.links {
            add(&mut links, &link.name, link.inertia, link.line)?;
        }
        match options.base {
            Some(Base::Floating) if !floats(&described, &root) => {
                let world = fresh_name("world", |n| links.iter().any(|l| l.name == n));
                add(&mut links, &world, None, None)?;
                let name = fresh_name("root", |n| described.iter().any(|j| j.name == n));
                described.insert(0, JointSpec::new(name, JointType::Floating, world.clone(), root));
                root = world;
            }
            Some(Base::Fixed) => {
                for joint in &mut described {
                    if joint.parent == root && joint.joint_type == JointType::Floating {
                        // Fixes the base at the pose given by the model.
                        let start = spec.assembly.iter().find(|(name, _)| *name == joint.name);
                        if let Some((_, q)) = start.filter(|(_, q)| q.len() == 7) {
                            joint.origin = joint.origin * JointType::Floating.pose(q);
                        }
                        joint.joint_type = JointType::Fixed;
                    }
                }
            }
            _ => {}
        }
        Ok(Self {
            spec,
            options,
            couplings: couplings::resolve(&described)?,
            described,
            root,
            link_index,
            roundings: vec![Some(Rounding::default()); links.len()],
            paths: vec![0.0; links.len()],
            links,
            bodies: Vec::new(),
            joints: Vec::new(),
            joint_index: HashMap::new(),
            origin_of: Vec::new(),
            warnings: spec.warnings.clone(),
            nq: 0,
            nv: 0,
        })
    }

    /// Adds the joints in the order of the description, but each after the joint of its parent link.
    fn tree(&mut self) -> Result<()> {
        let children = self.children()?;
        let Some(&root) = self.link_index.get(&self.root) else {
            return Err(Error::model(Place::default(), format!("there is no root link \"{}\"", self.root)));
        };
        let mut connected = vec![false; self.links.len()];
        connected[root] = true;
        let mut reached: BinaryHeap<Reverse<usize>> = children[root].iter().copied().map(Reverse).collect();
        while let Some(Reverse(j)) = reached.pop() {
            let joint = self.described[j].clone();
            let child = self.link_index[&joint.child];
            connected[child] = true;
            self.add_joint(j, &joint, child)?;
            reached.extend(children[child].iter().copied().map(Reverse));
        }
        match connected.iter().position(|c| !c) {
            None => Ok(()),
            Some(link) => Err(self.unconnected(link)),
        }
    }

    /// Returns the error for a link that cannot be reached from the root: one of its ancestors is a second root or on a
    /// cycle.
    fn unconnected(&self, link: usize) -> Error {
        let above: HashMap<&str, &str> =
            self.described.iter().map(|j| (j.child.as_str(), j.parent.as_str())).collect();
        let mut top = self.links[link].name.as_str();
        let mut message = "it lies on a cycle of joints: open the cycle and close it with a loop joint";
        // After as many steps as there are links, `top` is either on a cycle or has no parent.
        for _ in 0..self.links.len() {
            let Some(parent) = above.get(top) else {
                message = "it is not connected to the rest: only one link may have no parent joint";
                break;
            };
            top = parent;
        }
        let line = self.link_index.get(top).and_then(|&l| self.links[l].line);
        Error::model(place(line, format!("link \"{top}\"")), message)
    }

    /// Returns the joints below each link, after checking names and references.
    fn children(&self) -> Result<Vec<Vec<usize>>> {
        let mut children = vec![Vec::new(); self.links.len()];
        let mut parent_joint: Vec<Option<usize>> = vec![None; self.links.len()];
        let mut names: HashMap<&str, usize> = HashMap::new();
        for (j, joint) in self.described.iter().enumerate() {
            let here = || place(joint.line, format!("joint \"{}\"", joint.name));
            if names.insert(&joint.name, j).is_some() {
                return Err(Error::model(here(), "the name is taken: joints need distinct names"));
            }
            let find = |role: &str, link: &str| {
                self.link_index
                    .get(link)
                    .copied()
                    .ok_or_else(|| Error::model(here(), format!("its {role} link \"{link}\" does not exist")))
            };
            let (parent, child) = (find("parent", &joint.parent)?, find("child", &joint.child)?);
            if joint.child == self.root {
                return Err(Error::model(
                    here(),
                    format!(
                        "the root link \"{}\" cannot be a child; is there a cycle of joints?",
                        joint.child
                    ),
                ));
            }
            if let Some(other) = parent_joint[child].replace(j) {
                return Err(Error::model(
                    here(),
                    format!(
                        "link \"{}\" already has the parent joint \"{}\": close loops with a loop joint",
                        joint.child, self.described[other].name
                    ),
                ));
            }
            children[parent].push(j);
        }
        Ok(children)
    }

    fn add_joint(&mut self, j: usize, joint: &JointSpec, child: usize) -> Result<()> {
        let here = || place(joint.line, format!("joint \"{}\"", joint.name));
        let parent = &self.links[self.link_index[&joint.parent]];
        let (parent_body, origin) = (parent.body, parent.pose * checked_pose(&joint.origin, here())?);
        let parent = self.link_index[&joint.parent];
        let rounding = carried(self.roundings[parent], joint.rounding, &joint.origin);
        let path = self.paths[parent] + joint.origin.translation.norm();
        let joint_type = checked_type(&joint.joint_type, here())?;
        check_numbers(joint)?;
        if joint.mimic.is_some() && joint_type.nv() != 1 {
            return Err(Error::model(
                here(),
                "only a joint of one degree of freedom can follow another (mimic)",
            ));
        }
        let inertia = self.links[child].inertia;
        if joint_type == JointType::Fixed {
            self.links[child].body = parent_body;
            self.links[child].pose = origin;
            (self.roundings[child], self.paths[child]) = (rounding, path);
            if let (Some(body), Some(inertia)) = (parent_body, inertia) {
                self.bodies[body].inertia += inertia.transformed(&origin);
            }
            return Ok(());
        }
        let index = self.joints.len();
        let (q, v) = (self.nq, self.nv);
        if joint.mimic.is_none() {
            self.nq += joint_type.nq();
            self.nv += joint_type.nv();
        }
        let body = |name: String, kind, parent, placement, joint_type, shift, inertia| Body {
            name,
            kind,
            parent,
            placement,
            joint_type,
            drive: Drive { q: q + shift, v: v + shift, ratio: 1.0, offset: 0.0 },
            rounding,
            path,
            inertia,
            joint: index,
        };
        let inertia = inertia.unwrap_or_else(Inertia::zero);
        let mut pieces = Vec::new();
        let (mut parent_body, mut origin) = (parent_body, origin);
        // Motions along one axis add up: a joint that follows several others becomes several joints in series.
        if let Some((_, others)) = self.couplings[j].as_ref().and_then(|c| c.leaders.split_last()) {
            for (leader, _) in others {
                let name = format!("{}:{}", joint.name, self.described[*leader].name);
                let parent = parent_body.replace(self.bodies.len() + pieces.len());
                pieces.push(body(name, BodyKind::Massless, parent, origin, joint_type, 0, Inertia::zero()));
                origin = Pose::identity();
            }
        }
        self.bodies.extend(pieces);
        if let JointType::Universal { axes: [first, second] } = joint_type {
            let name = format!("{}:cross", joint.name);
            let hinge = JointType::Revolute { axis: first };
            let between = self.bodies.len();
            self.bodies.push(body(name, BodyKind::Massless, parent_body, origin, hinge, 0, Inertia::zero()));
            let hinge = JointType::Revolute { axis: second };
            let name = joint.child.clone();
            self.bodies.push(body(name, BodyKind::Link, Some(between), Pose::identity(), hinge, 1, inertia));
        } else {
            // A root link named "ground" is renamed if the base floats.
            let name = if joint.child == self.spec.root && joint.child == "ground" {
                fresh_name("base", |n| self.link_index.contains_key(n))
            } else {
                joint.child.clone()
            };
            let kind =
                if self.spec.massless.contains(&joint.child) { BodyKind::Massless } else { BodyKind::Link };
            self.bodies.push(body(name, kind, parent_body, origin, joint_type, 0, inertia));
        }
        let body = self.bodies.len() - 1;
        self.links[child].body = Some(body);
        self.joint_index.insert(joint.name.clone(), index);
        self.origin_of.push(j);
        self.joints.push(Joint {
            name: joint.name.clone(),
            joint_type,
            body,
            q,
            v,
            limits: joint.limits,
            dynamics: joint.dynamics,
            follows: None,
        });
        Ok(())
    }

    /// Connects followers (mimic joints) to the coordinates that drive them.
    fn follow(&mut self) -> Result<()> {
        for index in 0..self.joints.len() {
            let joint = &self.described[self.origin_of[index]];
            let Some(coupling) = &self.couplings[self.origin_of[index]] else { continue };
            let here = || place(joint.line, format!("joint \"{}\"", joint.name));
            finite(&here().element, joint.line, &[coupling.offset])?;
            if coupling.leaders.len() > 1 && joint.dynamics.armature != 0.0 {
                return Err(Error::unsupported(here(), "armature at a joint that follows several others"));
            }
            let first = self.joints[index].body + 1 - coupling.leaders.len();
            for (k, (leader, ratio)) in coupling.leaders.iter().enumerate() {
                finite(&here().element, joint.line, &[*ratio])?;
                let leader = self.joint_index[&self.described[*leader].name];
                let (q, v) = (self.joints[leader].q, self.joints[leader].v);
                let last = k + 1 == coupling.leaders.len();
                let offset = if last { coupling.offset } else { 0.0 };
                self.bodies[first + k].drive = Drive { q, v, ratio: *ratio, offset };
                let follower = &mut self.joints[index];
                if k == 0 {
                    (follower.q, follower.v, follower.follows) = (q, v, Some(leader));
                }
            }
        }
        Ok(())
    }

    /// Checks properties of the whole tree: which bodies have mass, and whether names are distinct.
    fn check_bodies(&mut self) -> Result<()> {
        let mut names = HashSet::new();
        for body in &mut self.bodies {
            // A link with mass was fixed to a massless body.
            if body.kind == BodyKind::Massless && body.inertia != Inertia::zero() {
                body.kind = BodyKind::Link;
            }
            if !names.insert(body.name.as_str()) {
                return Err(Error::model(
                    Place::element(format!("body \"{}\"", body.name)),
                    "two bodies have this name: rename the link (a rotor is named JOINT.rotor)",
                ));
            }
        }
        Ok(())
    }

    /// Returns the coordinates of the assembled mechanism.
    fn assembly(&self) -> Result<Vec<f64>> {
        let mut q = vec![0.0; self.nq];
        for joint in self.joints.iter().filter(|j| j.follows.is_none()) {
            joint.joint_type.neutral(&mut q[joint.q_range()]);
        }
        for (name, values) in &self.spec.assembly {
            let here = || Place::element(format!("assembly of joint \"{name}\""));
            let joint = match self.joint_index.get(name).map(|&j| &self.joints[j]) {
                Some(joint) if joint.follows.is_none() => joint,
                Some(_) => return Err(Error::model(here(), "it follows another joint (mimic)")),
                // A floating base that the user fixed has no coordinates.
                None if self
                    .spec
                    .joints
                    .iter()
                    .any(|j| j.name == *name && j.joint_type == JointType::Floating) =>
                {
                    continue;
                }
                None => return Err(Error::model(here(), "there is no moving joint of that name")),
            };
            finite(&here().element, None, values)?;
            if values.len() != joint.joint_type.nq() {
                let message = format!("it needs {} numbers, not {}", joint.joint_type.nq(), values.len());
                return Err(Error::model(here(), message));
            }
            q[joint.q_range()].copy_from_slice(values);
        }
        Ok(q)
    }

    fn loops(&self) -> Result<Vec<LoopJoint>> {
        let mut out = Vec::with_capacity(self.spec.loops.len());
        let mut names = HashSet::new();
        for spec in &self.spec.loops {
            let here = || place(spec.line, format!("loop \"{}\"", spec.name));
            if !names.insert(&spec.name) {
                return Err(Error::model(here(), "the name is taken: loops need distinct names"));
            }
            let frame = |end: &LoopEnd| -> Result<LoopFrame> {
                let link = self.link_index.get(&end.link).map(|&l| &self.links[l]).ok_or_else(|| {
                    Error::model(here(), format!("its link \"{}\" does not exist", end.link))
                })?;
                Ok(LoopFrame { body: link.body, pose: link.pose * checked_pose(&end.origin, here())? })
            };
            let (predecessor, successor) = (frame(&spec.predecessor)?, frame(&spec.successor)?);
            if predecessor.body == successor.body {
                return Err(Error::model(here(), "both sides belong to the same rigid body"));
            }
            let joint_type = checked_type(&spec.joint_type, here())?;
            out.push(LoopJoint { name: spec.name.clone(), joint_type, predecessor, successor });
        }
        Ok(out)
    }

    /// Marks coordinates as independent or dependent. Coordinates off every loop are independent; on loops the marks of
    /// the description apply, and without marks the choice is left to the loop analysis.
    fn independent(&self, loops: &[LoopJoint]) -> Result<Vec<Option<bool>>> {
        let mut on_loop = vec![false; self.nv];
        for l in loops {
            let (mut a, mut b) = (l.predecessor.body, l.successor.body);
            // Indices increase away from the root: replaces the larger one by its parent until both sides meet.
            while a != b {
                let higher = if a > b { &mut a } else { &mut b };
                if let Some(i) = *higher {
                    let body = &self.bodies[i];
                    on_loop[body.drive.v..body.drive.v + body.joint_type.nv()].fill(true);
                    *higher = body.parent;
                }
            }
        }
        let mut marks: Vec<Option<bool>> =
            on_loop.iter().map(|&l| if l { None } else { Some(true) }).collect();
        let mut chosen = false;
        for (joint, &origin) in self.joints.iter().zip(&self.origin_of) {
            let spec = &self.described[origin];
            let Some(mark) = spec.independent else { continue };
            if joint.follows.is_some() {
                continue;
            }
            for v in joint.v_range() {
                if on_loop[v] {
                    marks[v] = Some(mark);
                    chosen |= mark;
                } else if !mark {
                    return Err(Error::model(
                        place(spec.line, format!("joint \"{}\"", joint.name)),
                        "it is marked as dependent but lies on no loop",
                    ));
                }
            }
        }
        if chosen {
            marks.iter_mut().filter(|m| m.is_none()).for_each(|m| *m = Some(false));
        }
        Ok(marks)
    }

    fn armature(&self) -> Vec<f64> {
        let mut out = vec![0.0; self.nv];
        for joint in &self.joints {
            let ratio = self.bodies[joint.body].drive.ratio;
            for v in joint.v_range() {
                out[v] += joint.dynamics.armature * ratio * ratio;
            }
        }
        out
    }
}

/// Returns the rounding of a frame on a link whose own pose was rounded; an angular error of the link displaces the
/// frame.
fn carried(link: Option<Rounding>, own: Option<Rounding>, origin: &Pose<f64>) -> Option<Rounding> {
    let (link, own) = (link?, own?);
    Some(Rounding {
        angle: link.angle + own.angle,
        length: link.length + own.length + link.angle * origin.translation.norm(),
        axis: own.axis,
        coarse: link.coarse.max(own.coarse),
    })
}

fn floats(joints: &[JointSpec], root: &str) -> bool {
    joints.iter().any(|j| j.parent == root && j.joint_type == JointType::Floating)
}

fn fresh_name(stem: &str, taken: impl Fn(&str) -> bool) -> String {
    let mut name = stem.to_owned();
    while taken(&name) {
        name.push('_');
    }
    name
}

pub(super) fn parameter_blocks(bodies: &[Body]) -> Vec<ParameterBlock> {
    let mut offset = 0;
    let mut out = Vec::with_capacity(bodies.len());
    for (body, b) in bodies.iter().enumerate() {
        let len = match b.kind {
            BodyKind::Link | BodyKind::Rotor => 10,
            BodyKind::SymmetricRotor => 1,
            BodyKind::Massless => continue,
        };
        out.push(ParameterBlock { body, offset, len });
        offset += len;
    }
    out
}
