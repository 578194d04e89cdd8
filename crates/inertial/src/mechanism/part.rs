//! Parts of a mechanism as separate mechanisms.

use super::{Body, Drive, Joint, LoopFrame, LoopJoint, Mechanism, Revision, build};

/// Part of a mechanism, with the positions of its bodies, loops and parameters in the whole.
#[derive(Debug)]
pub(crate) struct Part {
    /// Mechanism of the part.
    pub mechanism: Mechanism,
    /// Index in the whole mechanism of each body.
    pub bodies: Vec<usize>,
    /// Index in the whole mechanism of each loop.
    pub loops: Vec<usize>,
    /// Column in the whole mechanism of each parameter.
    pub columns: Vec<usize>,
}

/// Indices of the kept items, and the new index of each old one.
struct Kept {
    old: Vec<usize>,
    new: Vec<usize>,
}

impl Kept {
    fn new(count: usize, keep: impl Fn(usize) -> bool) -> Self {
        let old: Vec<usize> = (0..count).filter(|&i| keep(i)).collect();
        let mut new = vec![0; count];
        old.iter().enumerate().for_each(|(n, &o)| new[o] = n);
        Self { old, new }
    }

    fn pick<T: Clone>(&self, all: &[T]) -> Vec<T> {
        self.old.iter().map(|&i| all[i].clone()).collect()
    }
}

impl Mechanism {
    /// Returns the part that consists of the bodies for which `keep` is true, with their joints and the loops between
    /// them and the ground.
    ///
    /// The parent of each kept body must be kept, and so must every body that shares a coordinate with a kept body.
    pub(crate) fn part(&self, keep: &[bool]) -> Part {
        let is_kept = |body: Option<usize>| body.is_none_or(|b| keep[b]);
        let bodies = Kept::new(self.bodies.len(), |b| keep[b]);
        let joints = Kept::new(self.joints.len(), |j| keep[self.joints[j].body]);
        let loops = Kept::new(self.loops.len(), |l| {
            is_kept(self.loops[l].predecessor.body) && is_kept(self.loops[l].successor.body)
        });
        let (mut in_q, mut in_v) = (vec![false; self.nq], vec![false; self.nv]);
        for joint in joints.old.iter().map(|&j| &self.joints[j]).filter(|j| j.follows.is_none()) {
            in_q[joint.q_range()].fill(true);
            in_v[joint.v_range()].fill(true);
        }
        let (q, v) = (Kept::new(self.nq, |i| in_q[i]), Kept::new(self.nv, |i| in_v[i]));
        let body = |&b: &usize| {
            let old = &self.bodies[b];
            let drive = Drive { q: q.new[old.drive.q], v: v.new[old.drive.v], ..old.drive };
            let (parent, joint) = (old.parent.map(|p| bodies.new[p]), joints.new[old.joint]);
            Body { parent, drive, joint, ..old.clone() }
        };
        let joint = |&j: &usize| {
            let old = &self.joints[j];
            let (body, follows) = (bodies.new[old.body], old.follows.map(|l| joints.new[l]));
            Joint { body, q: q.new[old.q], v: v.new[old.v], follows, ..old.clone() }
        };
        let frame = |old: &LoopFrame| LoopFrame { body: old.body.map(|b| bodies.new[b]), ..old.clone() };
        let closing = |&l: &usize| {
            let old = &self.loops[l];
            let (predecessor, successor) = (frame(&old.predecessor), frame(&old.successor));
            LoopJoint { predecessor, successor, ..old.clone() }
        };
        let own_bodies: Vec<Body> = bodies.old.iter().map(body).collect();
        let mut links = self.links.clone();
        links.retain(|l| is_kept(l.body));
        links.iter_mut().for_each(|l| l.body = l.body.map(|b| bodies.new[b]));
        let mut shapes = self.shapes.clone();
        shapes.retain(|s| is_kept(s.body));
        shapes.iter_mut().for_each(|s| s.body = s.body.map(|b| bodies.new[b]));
        let mut wheels = self.wheels.clone();
        wheels.retain(|w| keep[w.body]);
        wheels.iter_mut().for_each(|w| w.body = bodies.new[w.body]);
        let blocks = self.blocks.iter().filter(|b| keep[b.body]);
        let columns = blocks.flat_map(|b| b.offset..b.offset + b.len).collect();
        let mechanism = Mechanism {
            name: self.name.clone(),
            gravity: self.gravity,
            blocks: build::parameter_blocks(&own_bodies),
            bodies: own_bodies,
            joints: joints.old.iter().map(joint).collect(),
            links,
            shapes,
            loops: loops.old.iter().map(closing).collect(),
            wheels,
            link_bodies: bodies.old.partition_point(|&b| b < self.link_bodies),
            independent: v.pick(&self.independent),
            assembly: q.pick(&self.assembly),
            armature: v.pick(&self.armature),
            nq: q.old.len(),
            nv: v.old.len(),
            warnings: Vec::new(),
            revision: Revision::next(),
        };
        Part { mechanism, bodies: bodies.old, loops: loops.old, columns }
    }
}
