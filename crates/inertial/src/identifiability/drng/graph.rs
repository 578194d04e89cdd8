//! Graph of bodies and joints, the points shared by connected bodies, and the propagation of fixed points over the
//! graph (paper 004, algorithms 1 and 2, extended to loop joints).

use std::borrow::Cow;
use std::collections::VecDeque;

use nalgebra::{Matrix3x4, Vector3};

use super::points::Points;
use crate::linalg::Number;
use crate::mechanism::{Assembled, BodyKind};
use crate::spatial::{Motion, Pose, skew};

/// Connection between two bodies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Contact {
    /// Tree joint of this body.
    Tree(usize),
    /// Loop joint with this index.
    Loop(usize),
    /// Common motion forced by the loops, without a joint.
    Motion,
}

/// Two bodies that share points.
#[derive(Debug, Clone, Copy)]
pub struct Edge<T: Number> {
    /// First body: node 0 is the ground, node `i + 1` body `i`; further nodes are the crosses of universal loop joints.
    pub a: usize,
    /// Second body.
    pub b: usize,
    /// Connection through which points are shared.
    pub contact: Contact,
    /// Points that coincide in every motion.
    pub shared: Points<T>,
    /// Direction of relative sliding, with the points that coincide except for sliding.
    pub slide: Option<(Vector3<T>, Points<T>)>,
}

/// Known properties of the motion of a body.
#[derive(Debug, Clone, Copy)]
pub struct Class<T: Number> {
    /// Points that are fixed in the world.
    pub fixed: Points<T>,
    /// Points of constant height.
    pub level: Points<T>,
}

impl<T: Number> Class<T> {
    /// Returns the axis about which the body turns, if its rotations are planar.
    pub fn planar_axis(&self) -> Option<Vector3<T>> {
        let mut directions = self.fixed.infinite();
        directions.next().filter(|_| directions.next().is_none())
    }
}

/// Bodies and joints in the configuration in which all body frames coincide with the world frame (the paper's spatial
/// assignment, section 5.2). A point shared by two bodies then has the same coordinates in both.
#[derive(Debug, Clone)]
pub struct Graph<T: Number> {
    /// Pose of each body in the world.
    pub poses: Vec<Pose<T>>,
    /// Whether each node is massless: crosses and massless pieces.
    pub massless: Vec<bool>,
    /// Connections between bodies.
    pub edges: Vec<Edge<T>>,
    /// Motion class of each node.
    pub classes: Vec<Class<T>>,
    gravity: Vector3<T>,
}

impl<T: Number> Graph<T> {
    /// Creates the graph of an assembled mechanism, with motion classes propagated from the ground.
    pub fn new(assembled: &Assembled<T>) -> Self {
        let mut poses: Vec<Pose<T>> = Vec::with_capacity(assembled.bodies.len());
        let mut massless = vec![false];
        let mut edges = Vec::with_capacity(assembled.bodies.len() + 2 * assembled.loops.len());
        for (i, body) in assembled.bodies.iter().enumerate() {
            let pose = body.parent.map_or(body.pose, |p| poses[p] * body.pose);
            let modes = body.modes.iter().map(|m| pose.push_motion(m));
            edges.push(edge(body.parent.map_or(0, |p| p + 1), i + 1, Contact::Tree(i), &modes));
            massless.push(body.kind == BodyKind::Massless);
            poses.push(pose);
        }
        for (l, joint) in assembled.loops.iter().enumerate() {
            let world = |body: Option<usize>| body.map_or_else(Pose::identity, |i| poses[i]);
            let (a, b) = (joint.predecessor.map_or(0, |i| i + 1), joint.successor.map_or(0, |i| i + 1));
            let (near, far) = (world(joint.predecessor), world(joint.successor));
            let modes = joint.modes.iter().map(|m| far.push_motion(m));
            // A rigid connection of a body with its parent is a locked joint of the tree.
            let locked = joint
                .successor
                .filter(|&i| joint.modes.is_empty() && assembled.bodies[i].parent == joint.predecessor);
            let contact = locked.map_or(Contact::Loop(l), Contact::Tree);
            match &joint.axes {
                None => edges.push(edge(a, b, contact, &modes)),
                Some([first, second]) => {
                    // Additional cross, like that of a universal joint in the tree.
                    let centre = far.transform_point(&joint.centre);
                    let turn = |axis: Vector3<T>| std::iter::once(Motion::new(axis, centre.cross(&axis)));
                    let cross = massless.len();
                    massless.push(true);
                    edges.push(edge(a, cross, Contact::Loop(l), &turn(near.rotation * first)));
                    edges.push(edge(cross, b, Contact::Loop(l), &turn(far.rotation * second)));
                }
            }
        }
        let nothing = Class { fixed: Points::none(), level: Points::none() };
        let classes = vec![nothing; massless.len()];
        let mut graph = Self { poses, massless, edges, classes, gravity: assembled.gravity };
        graph.spread();
        graph
    }

    /// Adds points that two bodies share without a joint between them (node 0 is the ground).
    pub fn add_shared(&mut self, a: usize, b: usize, shared: Points<T>) {
        self.edges.push(Edge { a, b, contact: Contact::Motion, shared, slide: None });
    }

    /// Propagates fixed points and points of constant height from body to body until nothing changes.
    pub fn spread(&mut self) {
        let no_gravity = self.gravity.iter().all(T::is_zero);
        self.classes[0] = Class { fixed: Points::all(), level: Points::all() };
        if no_gravity {
            self.classes.iter_mut().for_each(|c| c.level = Points::all());
        }
        let gravity = self.gravity.push(T::zero());
        let (edges, classes) = (&self.edges, &mut self.classes);
        flow(edges, classes.len(), |edge, from, to| {
            let source = classes[from];
            let target = &mut classes[to];
            let mut changed = false;
            let mut carried = None;
            if !target.fixed.includes(&source.fixed) {
                let fixed = carried.insert(edge.shared.meet(&source.fixed));
                changed |= target.fixed.join(fixed);
                // Two fixed directions permit no rotation.
                if changed && target.fixed.infinite().count() == 2 {
                    target.fixed.join(&Points::directions());
                }
            }
            if !target.level.includes(&source.level) {
                // Fixed points have constant height: if both spaces have the same dimension, they are equal.
                let same = carried.filter(|_| source.level.len() == source.fixed.len());
                changed |= target.level.join(&same.unwrap_or_else(|| edge.shared.meet(&source.level)));
            }
            if changed && target.level.len() < 4 {
                let fixed = target.fixed;
                target.level.join(&fixed);
                let directions = target.level.infinite().count();
                // Gravity in the body frame is constant if two of its components are, since its length is constant.
                if directions < 3 && (directions == 2 || fixed.contains(gravity)) {
                    target.level.join(&Points::directions());
                }
            }
            changed
        });
    }

    /// Returns for each body the points that move only along a given fixed direction.
    pub fn axial(&self, direction: &Vector3<T>) -> Vec<Points<T>> {
        let mut axial = vec![Points::none(); self.classes.len()];
        axial[0] = Points::all();
        let along = Points::spanned(&[direction.push(T::zero())]);
        flow(&self.edges, axial.len(), |edge, from, to| {
            let points = match &edge.slide {
                Some((d, points)) if along.contains(d.push(T::zero())) => points,
                _ => &edge.shared,
            };
            let source = axial[from];
            !axial[to].includes(&source) && axial[to].join(&points.meet(&source))
        });
        axial
    }

    /// Returns the edges between bodies with mass. Massless pieces are skipped; the points shared along the whole path
    /// remain.
    pub fn contacts(&self) -> Cow<'_, [Edge<T>]> {
        if !self.massless.contains(&true) {
            return Cow::Borrowed(&self.edges);
        }
        let mut edges = self.edges.clone();
        for node in (0..self.massless.len()).filter(|&n| self.massless[n]) {
            let (touching, mut rest): (Vec<_>, Vec<_>) =
                edges.into_iter().partition(|e| e.a == node || e.b == node);
            for (i, first) in touching.iter().enumerate() {
                for second in &touching[i + 1..] {
                    let other = |e: &Edge<T>| if e.a == node { e.b } else { e.a };
                    let shared = first.shared.meet(&second.shared);
                    if !shared.is_empty() && other(first) != other(second) {
                        // The outer one of the skipped joints gives its name.
                        let contact = second.contact;
                        rest.push(Edge { a: other(first), b: other(second), contact, shared, slide: None });
                    }
                }
            }
            edges = rest;
        }
        Cow::Owned(edges)
    }
}

/// Propagates information along edges; a node is processed again whenever `step` (edge, from, to) returns that it
/// changed.
fn flow<T: Number>(edges: &[Edge<T>], nodes: usize, mut step: impl FnMut(&Edge<T>, usize, usize) -> bool) {
    let mut waiting = vec![true; nodes];
    let mut queue: VecDeque<usize> = (0..nodes).collect();
    while let Some(node) = queue.pop_front() {
        waiting[node] = false;
        for edge in edges {
            let other = match node {
                n if n == edge.a => edge.b,
                n if n == edge.b => edge.a,
                _ => continue,
            };
            if step(edge, node, other) && !std::mem::replace(&mut waiting[other], true) {
                queue.push_back(other);
            }
        }
    }
}

/// Computes the points shared by two bodies at a joint (algorithm 1), from its free modes as twists in the world frame.
fn edge<T: Number>(
    a: usize,
    b: usize,
    contact: Contact,
    modes: &(impl Iterator<Item = Motion<T>> + Clone),
) -> Edge<T> {
    // The velocity of the point (x, w) is ω × x + w v: zero for every mode at shared points.
    let velocity = |mode: Motion<T>| {
        let mut map = Matrix3x4::zeros();
        map.fixed_view_mut::<3, 3>(0, 0).copy_from(&skew(&mode.angular));
        map.set_column(3, &mode.linear);
        map
    };
    let shared = Points::annihilated(modes.clone().map(velocity));
    let slide = modes.clone().find_map(|mode| {
        if is_zero(&mode.angular) {
            return Some(mode.linear);
        }
        let advance = mode.angular.dot(&mode.linear);
        (advance.weight() > T::TOLERANCE).then_some(mode.angular)
    });
    let slide = slide.map(|d| (d, Points::annihilated(modes.clone().map(|m| skew(&d) * velocity(m)))));
    Edge { a, b, contact, shared, slide }
}

fn is_zero<T: Number>(v: &Vector3<T>) -> bool {
    v.iter().all(|x| x.weight() <= T::TOLERANCE)
}
