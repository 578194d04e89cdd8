//! Conversion of MJCF bodies to links and joints; link frames are joint frames.

use std::collections::HashSet;

use super::body::{Body, Tree, WORLD};
use super::equality::Equalities;
use crate::mechanism::{JointSpec, JointType, LinkSpec, LoopEnd, LoopSpec, MechanismBuilder};
use crate::spatial::{Pose, quaternion_from_rotation};

/// Result of converting a body: its link, and the body's frame in the link's frame.
struct Placed {
    link: String,
    frame: Pose<f64>,
}

/// Set of used names.
#[derive(Default)]
struct Names(HashSet<String>);

impl Names {
    /// Returns an unused name based on `stem`.
    fn fresh(&mut self, stem: String) -> String {
        let mut name = stem;
        while !self.0.insert(name.clone()) {
            name.push('_');
        }
        name
    }
}

/// Names unnamed bodies and joints after MuJoCo's indices: `body3`, `joint5`.
pub(super) fn name_all(tree: &mut Tree<'_>) {
    let mut names = Names(tree.bodies.iter().map(|b| b.name.clone()).collect());
    for (i, body) in tree.bodies.iter_mut().enumerate().filter(|(_, b)| b.name.is_empty()) {
        body.name = names.fresh(format!("body{i}"));
    }
    let joints = || tree.bodies.iter().flat_map(|b| &b.joints);
    let mut names = Names(joints().map(|j| j.name.clone()).collect());
    for (i, joint) in tree.bodies.iter_mut().flat_map(|b| &mut b.joints).enumerate() {
        if joint.name.is_empty() {
            joint.name = names.fresh(format!("joint{i}"));
        }
    }
}

/// Fills the builder, and returns the frame of each body in its link's frame.
pub(super) fn assemble(
    tree: &Tree<'_>,
    equalities: &Equalities,
    builder: &mut MechanismBuilder,
) -> Vec<Pose<f64>> {
    let mut out = Assembler {
        equalities,
        links: Names(tree.bodies.iter().map(|b| b.name.clone()).collect()),
        joints: Names(tree.bodies.iter().flat_map(|b| &b.joints).map(|j| j.name.clone()).collect()),
        placed: vec![Placed { link: WORLD.to_owned(), frame: Pose::identity() }],
        builder,
    };
    for body in &tree.bodies[1..] {
        out.body(body);
    }
    for closure in &equalities.closures {
        let end = |(body, frame): &(usize, Pose<f64>)| {
            let placed = &out.placed[*body];
            LoopEnd { link: placed.link.clone(), origin: placed.frame * *frame }
        };
        let [predecessor, successor] = closure.ends.each_ref().map(end);
        out.builder.loops.push(LoopSpec {
            name: closure.name.clone(),
            joint_type: closure.joint_type,
            predecessor,
            successor,
            line: Some(closure.line),
        });
    }
    out.placed.iter().map(|placed| placed.frame).collect()
}

struct Assembler<'b> {
    equalities: &'b Equalities,
    links: Names,
    joints: Names,
    placed: Vec<Placed>,
    builder: &'b mut MechanismBuilder,
}

impl Assembler<'_> {
    fn body(&mut self, body: &Body<'_>) {
        let line = Some(body.element.line());
        let parent = &self.placed[body.parent];
        let mut link = parent.link.clone();
        // Frame of the body in `link`, after the joints processed so far.
        let mut frame = parent.frame * body.pose;
        let moving = body.joints.iter().filter(|j| !self.equalities.locked.contains_key(&j.name)).count();
        let mut seen = 0;
        for joint in &body.joints {
            if let Some(&displacement) = self.equalities.locked.get(&joint.name) {
                frame = frame * joint.moved(displacement);
                continue;
            }
            seen += 1;
            let child = if seen == moving {
                body.name.clone()
            } else {
                let name = self.links.fresh(format!("{}:{}", body.name, joint.name));
                self.builder.massless.insert(name.clone());
                self.builder.links.push(LinkSpec { name: name.clone(), inertia: None, line });
                name
            };
            let mut spec = JointSpec::new(joint.name.clone(), joint.kind, link, child.clone());
            spec.limits = joint.limits;
            spec.dynamics = joint.dynamics;
            spec.line = Some(joint.element.line());
            spec.mimic = self.equalities.mimics.get(&joint.name).cloned();
            if joint.kind == JointType::Floating {
                // The coordinates are the body's pose in the world.
                let [x, y, z, w] = quaternion_from_rotation(&frame.rotation);
                let [px, py, pz] = frame.translation.into();
                self.builder.assembly.push((joint.name.clone(), vec![px, py, pz, x, y, z, w]));
                frame = Pose::identity();
            } else {
                // The origin is moved back by the reference position, so that the coordinate at the initial pose is the reference.
                let anchor = Pose::from_translation(joint.anchor);
                spec.origin = frame * joint.moved(-joint.reference) * anchor;
                if joint.reference != 0.0 && spec.mimic.is_none() {
                    self.builder.assembly.push((joint.name.clone(), vec![joint.reference]));
                }
                frame = anchor.inverse();
            }
            self.builder.joints.push(spec);
            link = child;
        }
        if moving == 0 {
            let name = self.joints.fresh(format!("{}:fixed", body.name));
            let mut spec = JointSpec::new(name, JointType::Fixed, link, body.name.clone()).at(frame);
            spec.line = line;
            self.builder.joints.push(spec);
            frame = Pose::identity();
        }
        let inertia = body.inertia.map(|i| i.transformed(&frame));
        self.builder.links.push(LinkSpec { name: body.name.clone(), inertia, line });
        if frame != Pose::identity() {
            self.mark_frame(body, frame);
        }
        self.placed.push(Placed { link: body.name.clone(), frame });
    }

    /// Adds a massless link if the body's frame differs from the joint's frame.
    fn mark_frame(&mut self, body: &Body<'_>, frame: Pose<f64>) {
        let line = Some(body.element.line());
        let name = self.links.fresh(format!("{}.frame", body.name));
        let joint = self.joints.fresh(format!("{name}:fixed"));
        let mut spec = JointSpec::new(joint, JointType::Fixed, body.name.clone(), name.clone()).at(frame);
        spec.line = line;
        self.builder.joints.push(spec);
        self.builder.links.push(LinkSpec { name, inertia: None, line });
    }
}
