//! Inverse dynamics of one mechanism: its constant tables, computed once, and the scratch memory of a thread.

use nalgebra::{Matrix3, Vector3};

use super::simd::Plain;
use super::{expect_len, regressor, rnea};
use crate::Result;
use crate::mechanism::{Body, BodyKind, JointType, Mechanism, plane_directions};
use crate::spatial::skew;

/// Inverse dynamics and torque regressor of one mechanism, prepared for speed.
///
/// What depends on the mechanism alone is computed here once; a [`Scratch`] holds what a call needs, so that no call
/// allocates. Share one `InverseDynamics` between threads and give each thread its scratch.
///
/// ```
/// use inertial::dynamics::InverseDynamics;
/// # use inertial::mechanism::{JointSpec, JointType, MechanismBuilder};
/// # use inertial::spatial::Inertia;
/// # use nalgebra::{Matrix3, Vector3, vector};
/// # let rod = Inertia::from_com(1.0, vector![0.5, 0.0, 0.0], Matrix3::from_diagonal(&vector![0.01, 0.1, 0.1]));
/// # let hinge = JointType::Revolute { axis: Vector3::y() };
/// # let mechanism = MechanismBuilder::new("pendulum", "ground")
/// #     .link("rod", rod).joint(JointSpec::new("hinge", hinge, "ground", "rod")).build(&Default::default())?;
/// let dynamics = InverseDynamics::new(&mechanism);
/// let mut scratch = dynamics.scratch();
/// let (q, v, a) = ([0.3], [1.0], [-2.0]);
/// let mut tau = [0.0];
/// dynamics.rnea(&mut scratch, &q, &v, &a, &mut tau)?;
/// let regressor = dynamics.torque_regressor(&mut scratch, &q, &v, &a)?;
/// let product: f64 = regressor.iter().zip(mechanism.parameters()).map(|(y, p)| y * p).sum();
/// assert!((product - tau[0]).abs() < 1e-12);
/// # Ok::<(), inertial::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct InverseDynamics {
    pub(super) nq: usize,
    pub(super) nv: usize,
    pub(super) parameters: usize,
    pub(super) gravity: [f64; 3],
    pub(super) armature: Vec<f64>,
    /// In an order of the kernels' own: depth first, rotors with their carriers, small subtrees first.
    pub(super) nodes: Vec<Node>,
    /// Free modes of the nodes, `[angular, linear]` in the child's frame, per unit of the mechanism's velocity.
    pub(super) modes: Vec<[[f64; 3]; 2]>,
    /// For each node with parameters, each coordinate on its path: where its ten (or one) entries start.
    pub(super) pairs: Vec<Pair>,
    /// Room for the carried modes.
    pub(super) carried: usize,
    /// Number of angles whose sine and cosine are needed.
    pub(super) angles: Vec<Angle>,
}

/// The angle `ratio · q + offset`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Angle {
    pub q: usize,
    pub ratio: f64,
    pub offset: f64,
}

/// A block of the regressor: the row of a coordinate, the columns of a body.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pair {
    /// Row-major index of its first entry in the dense matrix.
    pub dense: usize,
}

/// How a node's frame turns in its parent.
#[derive(Debug, Clone, Copy)]
pub(super) enum Turn {
    /// Not at all (or without effect).
    Constant,
    /// By the angle of that number.
    Angle(usize),
    /// By the quaternion at that coordinate.
    Quaternion(usize),
}

/// Which parts of the general step a node needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// One pure rotation.
    Revolute,
    /// One pure translation.
    Prismatic,
    /// A symmetric rotor: its angle does not matter, and its only inertia is about `z`.
    Spin,
    /// Any other.
    General,
}

/// What is constant of a body and its joint.
#[derive(Debug, Clone)]
pub(super) struct Node {
    pub kind: Kind,
    /// The parent's number plus one; zero is the ground.
    pub parent: usize,
    /// First velocity coordinate.
    pub v: usize,
    /// Its modes.
    pub modes: std::ops::Range<usize>,
    pub turn: Turn,
    /// Rotation from child to parent: `cos · [0] + sin · [1] + [2]` (`Quaternion`: `[2]` times the quaternion's).
    pub rotations: [[[f64; 3]; 3]; 3],
    /// Origin in the parent's frame where all displacements are zero.
    pub origin: [f64; 3],
    /// Displacements: coordinate `slide_q + k` moves the origin along `slides[k]`.
    pub slides: [[f64; 3]; 3],
    pub slide_count: usize,
    pub slide_q: usize,
    pub slide_ratio: f64,
    pub slide_offset: f64,
    pub mass: f64,
    pub first_moment: [f64; 3],
    pub rotational: [[f64; 3]; 3],
    pub massless: bool,
    /// Number of parameters: ten, one or none.
    pub parameters: usize,
    /// First of its pairs.
    pub pairs: usize,
    /// Where the parent's carried modes lie, and how many.
    pub carried_from: usize,
    pub carried_count: usize,
    /// Where its own go, where a child needs them.
    pub carried_to: usize,
    pub carries: bool,
    /// The carried mode that moves with the same coordinate as this node.
    pub merge: Option<usize>,
}

/// The scratch memory of one thread, for one [`InverseDynamics`].
#[derive(Debug, Clone)]
pub struct Scratch {
    pub(super) single: Memory<f64>,
    pub(super) regressor: Vec<f64>,
}

/// What the recursions remember, per number (or block of numbers) `M`.
#[derive(Debug, Clone)]
pub(super) struct Memory<M> {
    /// Sines and cosines of the angles.
    pub turns: Vec<[M; 2]>,
    /// State of each node; the first is the ground.
    pub states: Vec<State<M>>,
    /// Modes carried outward.
    pub carried: Vec<[[M; 3]; 2]>,
}

/// Motion of a body and the wrench it needs, in its own frame.
#[derive(Debug, Clone, Copy)]
pub(super) struct State<M> {
    /// Rotation to the parent.
    pub rotation: [[M; 3]; 3],
    /// Origin in the parent.
    pub origin: [M; 3],
    /// Angular velocity.
    pub w: [M; 3],
    /// Angular acceleration.
    pub dw: [M; 3],
    /// Acceleration of the origin, less gravity.
    pub d: [M; 3],
    /// Moment about the origin.
    pub moment: [M; 3],
    /// Force.
    pub force: [M; 3],
}

impl<M: Copy> Memory<M> {
    fn new(dynamics: &InverseDynamics, zero: M) -> Self {
        let z = [zero; 3];
        let state = State { rotation: [z; 3], origin: z, w: z, dw: z, d: z, moment: z, force: z };
        Self {
            turns: vec![[zero; 2]; dynamics.angles.len()],
            states: vec![state; dynamics.nodes.len() + 1],
            carried: vec![[z; 2]; dynamics.carried],
        }
    }
}

impl InverseDynamics {
    /// Prepares the tables of a mechanism.
    pub fn new(mechanism: &Mechanism) -> Self {
        Tables::new(mechanism).finish()
    }

    /// Scratch memory for one thread.
    pub fn scratch(&self) -> Scratch {
        Scratch { single: Memory::new(self, 0.0), regressor: vec![0.0; self.nv * self.parameters] }
    }

    /// Number of velocity coordinates: rows of the regressor.
    pub fn nv(&self) -> usize {
        self.nv
    }

    /// Number of position coordinates.
    pub fn nq(&self) -> usize {
        self.nq
    }

    /// Length of the parameter vector: columns of the regressor.
    pub fn parameter_count(&self) -> usize {
        self.parameters
    }

    /// Generalised forces `tau` of the motion `q, v, a` of the tree (recursive Newton–Euler, rotors and armature
    /// included; Featherstone 2008, table 5.1).
    pub fn rnea(
        &self,
        scratch: &mut Scratch,
        q: &[f64],
        v: &[f64],
        a: &[f64],
        tau: &mut [f64],
    ) -> Result<()> {
        self.check(q, v, a)?;
        expect_len("tau", tau.len(), self.nv)?;
        self.fits(scratch)?;
        rnea::run::<Plain>(self, &mut scratch.single, q, v, a, tau);
        Ok(())
    }

    /// The matrix `Y` with `tau = Y π + armature ∘ a`, dense and row-major, `nv` × [`Self::parameter_count`].
    ///
    /// It stays in the scratch memory until the next call; structural zeros are written once.
    pub fn torque_regressor<'s>(
        &self,
        scratch: &'s mut Scratch,
        q: &[f64],
        v: &[f64],
        a: &[f64],
    ) -> Result<&'s [f64]> {
        self.check(q, v, a)?;
        self.fits(scratch)?;
        regressor::run::<Plain>(self, &mut scratch.single, q, v, a, &mut scratch.regressor);
        Ok(&scratch.regressor)
    }

    fn check(&self, q: &[f64], v: &[f64], a: &[f64]) -> Result<()> {
        expect_len("q", q.len(), self.nq)?;
        expect_len("v", v.len(), self.nv)?;
        expect_len("a", a.len(), self.nv)
    }

    fn fits(&self, scratch: &Scratch) -> Result<()> {
        expect_len("scratch memory", scratch.single.states.len(), self.nodes.len() + 1)?;
        expect_len("scratch regressor", scratch.regressor.len(), self.nv * self.parameters)
    }
}

/// The tables under construction.
struct Tables<'a> {
    mechanism: &'a Mechanism,
    /// First column of each body.
    columns: Vec<usize>,
    out: InverseDynamics,
    /// Coordinates that move each node, in the order of its carried modes.
    coordinates: Vec<Vec<usize>>,
}

impl<'a> Tables<'a> {
    fn new(mechanism: &'a Mechanism) -> Self {
        let mut columns = vec![0; mechanism.bodies().len()];
        for block in mechanism.parameter_blocks() {
            columns[block.body] = block.offset;
        }
        let out = InverseDynamics {
            nq: mechanism.nq(),
            nv: mechanism.nv(),
            parameters: mechanism.parameter_count(),
            gravity: mechanism.gravity().into(),
            armature: mechanism.armature().to_vec(),
            nodes: Vec::with_capacity(mechanism.bodies().len()),
            modes: Vec::new(),
            pairs: Vec::new(),
            carried: 0,
            angles: Vec::new(),
        };
        Self { mechanism, columns, out, coordinates: Vec::new() }
    }

    /// Visits the bodies depth first, rotors with their carriers, small subtrees first: then few modes of bodies whose
    /// other children still wait have to be kept.
    fn finish(mut self) -> InverseDynamics {
        let bodies = self.mechanism.bodies();
        let mut size = vec![1usize; bodies.len()];
        let mut children = vec![Vec::new(); bodies.len()];
        let mut roots = Vec::new();
        for (i, body) in bodies.iter().enumerate().rev() {
            match body.parent {
                Some(p) => {
                    size[p] += size[i];
                    children[p].push(i);
                }
                None => roots.push(i),
            }
        }
        // Visited from the end: largest first here is largest last there.
        for list in children.iter_mut().chain([&mut roots]) {
            list.sort_by_key(|&i| std::cmp::Reverse(size[i]));
        }
        let mut stack: Vec<(usize, usize, bool)> = roots.into_iter().map(|i| (i, 0, false)).collect();
        while let Some((i, parent, last)) = stack.pop() {
            self.add(i, parent, last, !children[i].is_empty());
            let number = self.out.nodes.len();
            stack.extend(children[i].iter().enumerate().map(|(k, &c)| (c, number, k == 0)));
        }
        self.out
    }

    /// Adds a body below node `parent − 1`; the last child takes over its parent's room for carried modes.
    fn add(&mut self, index: usize, parent: usize, last: bool, carries: bool) {
        let body = &self.mechanism.bodies()[index];
        let (from, mut coordinates) = match parent {
            0 => (0, Vec::new()),
            p => (self.out.nodes[p - 1].carried_to, self.coordinates[p - 1].clone()),
        };
        let carried_count = coordinates.len();
        let mut node = self.node(body, parent);
        node.carried_from = from;
        node.carried_count = carried_count;
        node.carried_to = if last || parent == 0 { from } else { from + carried_count };
        node.carries = carries;
        node.merge = coordinates.iter().position(|&v| v == node.v);
        if node.merge.is_none() {
            coordinates.extend((0..node.modes.len()).map(|k| node.v + k));
        }
        self.out.carried = self.out.carried.max(node.carried_to + coordinates.len());
        node.pairs = self.out.pairs.len();
        if node.parameters > 0 {
            let (width, column) = (self.out.parameters, self.columns[index]);
            self.out.pairs.extend(coordinates.iter().map(|&v| Pair { dense: v * width + column }));
        }
        self.out.nodes.push(node);
        self.coordinates.push(coordinates);
    }

    fn node(&mut self, body: &Body, parent: usize) -> Node {
        let placement = &body.placement;
        let along = |a: &Vector3<f64>| -> [f64; 3] { (placement.rotation * a).into() };
        let mut node = Node {
            kind: Kind::General,
            parent,
            v: body.drive.v,
            modes: self.out.modes.len()..self.out.modes.len() + body.joint_type.nv(),
            turn: Turn::Constant,
            rotations: [[[0.0; 3]; 3], [[0.0; 3]; 3], rows(&placement.rotation)],
            origin: placement.translation.into(),
            slides: [[0.0; 3]; 3],
            slide_count: 0,
            slide_q: body.drive.q,
            slide_ratio: body.drive.ratio,
            slide_offset: body.drive.offset,
            mass: body.inertia.mass,
            first_moment: body.inertia.first_moment.into(),
            rotational: rows(&body.inertia.rotational),
            massless: body.inertia.parameters().iter().all(|&p| p == 0.0),
            parameters: match body.kind {
                BodyKind::Link | BodyKind::Rotor => 10,
                BodyKind::SymmetricRotor => 1,
                BodyKind::Massless => 0,
            },
            pairs: 0,
            carried_from: 0,
            carried_count: 0,
            carried_to: 0,
            carries: false,
            merge: None,
        };
        self.out.modes.extend(
            body.joint_type
                .free_modes()
                .iter()
                .map(|m| [(m.angular * body.drive.ratio).into(), (m.linear * body.drive.ratio).into()]),
        );
        let q = body.drive.q;
        match body.joint_type {
            JointType::Fixed | JointType::Universal { .. } => {}
            JointType::Revolute { .. } if body.kind == BodyKind::SymmetricRotor => node.kind = Kind::Spin,
            JointType::Revolute { axis } => {
                node.kind = Kind::Revolute;
                self.turns(&mut node, body, &axis, q);
            }
            JointType::Prismatic { axis } => {
                node.kind = Kind::Prismatic;
                node.slides[0] = along(&axis);
                node.slide_count = 1;
            }
            JointType::Helical { axis, pitch } => {
                self.turns(&mut node, body, &axis, q);
                node.slides[0] = along(&(axis * pitch));
                node.slide_count = 1;
            }
            JointType::Cylindrical { axis } => {
                self.turns(&mut node, body, &axis, q);
                node.slides[0] = along(&axis);
                (node.slide_count, node.slide_q) = (1, q + 1);
            }
            JointType::Planar { normal } => {
                self.turns(&mut node, body, &normal, q + 2);
                let [a, b] = plane_directions(&normal);
                (node.slides[0], node.slides[1]) = (along(&a), along(&b));
                node.slide_count = 2;
            }
            JointType::Spherical => node.turn = Turn::Quaternion(q),
            JointType::Floating => {
                node.turn = Turn::Quaternion(q + 3);
                node.slides = [along(&Vector3::x()), along(&Vector3::y()), along(&Vector3::z())];
                node.slide_count = 3;
            }
        }
        node
    }

    /// A rotation about `axis` after the placement, by Rodrigues' formula: `c (1 − a aᵀ) + s [a]× + a aᵀ`.
    fn turns(&mut self, node: &mut Node, body: &Body, axis: &Vector3<f64>, q: usize) {
        let place = body.placement.rotation;
        let outer = axis * axis.transpose();
        node.rotations =
            [place * (Matrix3::identity() - outer), place * skew(axis), place * outer].map(|m| rows(&m));
        node.turn = Turn::Angle(self.out.angles.len());
        self.out.angles.push(Angle { q, ratio: body.drive.ratio, offset: body.drive.offset });
    }
}

fn rows(m: &Matrix3<f64>) -> [[f64; 3]; 3] {
    std::array::from_fn(|i| std::array::from_fn(|j| m[(i, j)]))
}
