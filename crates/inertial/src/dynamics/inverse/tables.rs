//! Constant tables of a mechanism for inverse dynamics.

use nalgebra::Matrix3;

use crate::dynamics::displacement::{Angle, Displacement, Kind, Turn};
use crate::dynamics::inverse::packed::PackedLayout;
use crate::mechanism::{Body, BodyKind, Mechanism};

/// Constant tables of a mechanism.
#[derive(Debug, Clone)]
pub(crate) struct Tables {
    pub nq: usize,
    pub nv: usize,
    pub parameters: usize,
    pub gravity: [f64; 3],
    pub armature: Vec<f64>,
    /// Nodes in the order of the kernels: depth first, rotors with their carriers, small subtrees first.
    pub nodes: Vec<Node>,
    /// Node index of each body.
    pub node_of: Vec<usize>,
    /// Free modes of the nodes, `[angular, linear]` in the child frame, per unit of the velocity coordinates of the
    /// mechanism.
    pub modes: Vec<[[f64; 3]; 2]>,
    /// Angles whose sines and cosines are needed.
    pub angles: Vec<Angle>,
    /// Pairs of a node with parameters and a coordinate that moves it.
    pub pairs: Vec<Pair>,
    /// Number of slots for the carried modes.
    pub carried: usize,
    /// Layout of the pairs in packed form.
    pub layout: PackedLayout,
}

/// Block of the regressor: the row of a coordinate, the columns of a body.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pair {
    pub block: Block,
    /// Row-major index of the first entry in the dense matrix.
    pub dense: usize,
    /// Index of the first entry in packed form.
    pub packed: usize,
}

/// Nonzero entries of a pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Block {
    /// All ten entries.
    Full,
    /// Mass and first moment: the coordinate only translates the body.
    Linear,
    /// Single entry of a symmetric rotor.
    Spin,
    /// Empty block of a symmetric rotor that is only translated.
    Empty,
}

impl Block {
    fn len(self) -> usize {
        match self {
            Self::Full => 10,
            Self::Linear => 4,
            Self::Spin => 1,
            Self::Empty => 0,
        }
    }
}

/// Relation of a node to a floating base, whose six rows are the wrench in its frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WithRoot {
    /// Tree on the ground.
    Ground,
    /// Floating body in the world.
    Base,
    /// Body carried by a floating base.
    OnBase,
}

/// Constants of a body and its joint.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub kind: Kind,
    /// Index of the parent plus one; zero is the ground.
    pub parent: usize,
    /// First velocity coordinate.
    pub v: usize,
    /// Range of the modes.
    pub modes: std::ops::Range<usize>,
    pub turn: Turn,
    /// Rotation from child to parent: `cos · [0] + sin · [1] + [2]` (`Quaternion`: `[2]` times that of the quaternion).
    pub rotations: [[[f64; 3]; 3]; 3],
    /// Origin in the parent frame at zero displacements.
    pub origin: [f64; 3],
    /// Directions `slides[k]` along which the displacement `ratio · q + offset` of coordinate `slide_q + k` moves the
    /// origin.
    pub slides: [[f64; 3]; 3],
    pub slide_count: usize,
    pub slide_q: usize,
    pub slide_ratio: f64,
    pub slide_offset: f64,
    pub mass: f64,
    pub first_moment: [f64; 3],
    pub rotational: [[f64; 3]; 3],
    /// Whether the inertia is zero, or nonzero about `z` alone.
    pub massless: bool,
    pub spin: bool,
    /// Number of parameters: ten, one or none.
    pub parameters: usize,
    /// Index of the first pair: the six of the floating base, then those of the carried modes.
    pub pairs: usize,
    pub rooted: WithRoot,
    /// Position and number of the carried modes of the parent.
    pub carried_from: usize,
    pub carried_count: usize,
    /// Position of the carried modes of the node itself, if a child needs them.
    pub carried_to: usize,
    pub carries: bool,
    /// Carried mode that moves with the same coordinate as this node.
    pub merge: Option<usize>,
}

/// Coordinate on the path from the ground to a node.
#[derive(Debug, Clone, Copy)]
struct Coordinate {
    v: usize,
    /// Whether the coordinate only translates the node.
    linear: bool,
}

/// Tables under construction.
struct Builder<'a> {
    mechanism: &'a Mechanism,
    /// First column of each body.
    columns: Vec<usize>,
    out: Tables,
    /// First velocity coordinate of the floating base of each node.
    base: Vec<usize>,
    /// Coordinates of the carried modes of each node.
    coordinates: Vec<Vec<Coordinate>>,
}

impl Tables {
    pub fn new(mechanism: &Mechanism) -> Self {
        let mut columns = vec![0; mechanism.bodies().len()];
        for block in mechanism.parameter_blocks() {
            columns[block.body] = block.offset;
        }
        let out = Tables {
            nq: mechanism.nq(),
            nv: mechanism.nv(),
            parameters: mechanism.parameter_count(),
            gravity: mechanism.gravity().into(),
            armature: mechanism.armature().to_vec(),
            nodes: Vec::with_capacity(mechanism.bodies().len()),
            node_of: vec![0; mechanism.bodies().len()],
            modes: Vec::new(),
            angles: Vec::new(),
            pairs: Vec::new(),
            carried: 0,
            layout: PackedLayout::default(),
        };
        let mut builder = Builder { mechanism, columns, out, base: Vec::new(), coordinates: Vec::new() };
        builder.visit();
        builder.pack();
        builder.out
    }

    /// Returns the nodes that carry a body, from the ground to its own.
    pub fn path(&self, body: usize) -> Vec<usize> {
        let mut out = vec![self.node_of[body]];
        while let Some(parent) = self.nodes[out[out.len() - 1]].parent.checked_sub(1) {
            out.push(parent);
        }
        out.reverse();
        out
    }
}

impl Builder<'_> {
    /// Visits the bodies depth first, rotors with their carriers, small subtrees first. This minimizes the number of
    /// modes that are kept for bodies with unvisited children.
    fn visit(&mut self) {
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
        // The stack is processed from its end: sort the largest subtrees first so that they are visited last.
        for list in children.iter_mut().chain([&mut roots]) {
            list.sort_by_key(|&i| std::cmp::Reverse(size[i]));
        }
        let mut stack: Vec<(usize, usize, bool)> = roots.into_iter().map(|i| (i, 0, false)).collect();
        while let Some((i, parent, last)) = stack.pop() {
            self.add(i, parent, last, !children[i].is_empty());
            let number = self.out.nodes.len();
            stack.extend(children[i].iter().enumerate().map(|(k, &c)| (c, number, k == 0)));
        }
    }

    /// Adds a body below node `parent − 1`; the last child reuses the slots of its parent for carried modes.
    fn add(&mut self, index: usize, parent: usize, last: bool, carries: bool) {
        let body = &self.mechanism.bodies()[index];
        let mut node = self.node(body, parent);
        let mut coordinates = Vec::new();
        let mut base = node.v;
        node.rooted = if node.kind == Kind::Free { WithRoot::Base } else { WithRoot::Ground };
        if parent > 0 {
            let above = &self.out.nodes[parent - 1];
            coordinates.clone_from(&self.coordinates[parent - 1]);
            base = self.base[parent - 1];
            node.rooted = if above.rooted == WithRoot::Ground { WithRoot::Ground } else { WithRoot::OnBase };
            node.carried_from = above.carried_to;
            node.carried_to = above.carried_to + if last { 0 } else { coordinates.len() };
        }
        node.carried_count = coordinates.len();
        node.carries = carries;
        let modes = &self.out.modes[node.modes.clone()];
        let linear = |mode: &[[f64; 3]; 2]| mode[0] == [0.0; 3];
        node.merge = coordinates.iter().position(|c| c.v == node.v);
        match node.merge {
            Some(e) => coordinates[e].linear &= linear(&modes[0]),
            None if node.rooted == WithRoot::Base => {}
            None => {
                let own = modes.iter().enumerate();
                coordinates.extend(own.map(|(k, mode)| Coordinate { v: node.v + k, linear: linear(mode) }));
            }
        }
        self.out.carried = self.out.carried.max(node.carried_to + coordinates.len());
        node.pairs = self.out.pairs.len();
        if node.parameters > 0 {
            let six = if node.rooted == WithRoot::Ground { 0 } else { 6 };
            let rows = (0..six)
                .map(|k| Coordinate { v: base + k, linear: k < 3 })
                .chain(coordinates.iter().copied());
            for row in rows {
                let block = match (node.spin, row.linear) {
                    (false, false) => Block::Full,
                    (false, true) => Block::Linear,
                    (true, false) => Block::Spin,
                    (true, true) => Block::Empty,
                };
                let dense = row.v * self.out.parameters + self.columns[index];
                self.out.pairs.push(Pair { block, dense, packed: 0 });
            }
        }
        self.out.node_of[index] = self.out.nodes.len();
        self.out.nodes.push(node);
        self.base.push(base);
        self.coordinates.push(coordinates);
    }

    fn node(&mut self, body: &Body, parent: usize) -> Node {
        let placement = &body.placement;
        let spin = body.kind == BodyKind::SymmetricRotor;
        let mut displacement = Displacement::new(body, &mut self.out.angles);
        // Bodies that are symmetric about the axis do not depend on the angle.
        if spin && displacement.kind == Kind::Revolute {
            self.out.angles.pop();
            displacement.turn = Turn::Constant;
            displacement.rotations = [Matrix3::zeros(), Matrix3::zeros(), placement.rotation];
        }
        let node = Node {
            kind: displacement.kind,
            parent,
            v: body.drive.v,
            modes: self.out.modes.len()..self.out.modes.len() + body.joint_type.nv(),
            turn: displacement.turn,
            rotations: displacement.rotations.map(|m| rows(&m)),
            origin: placement.translation.into(),
            slides: displacement.slides.map(Into::into),
            slide_count: displacement.slide_count,
            slide_q: displacement.slide_q,
            slide_ratio: body.drive.ratio,
            slide_offset: body.drive.offset,
            mass: body.inertia.mass,
            first_moment: body.inertia.first_moment.into(),
            rotational: rows(&body.inertia.rotational),
            massless: body.inertia.parameters().iter().all(|&p| p == 0.0),
            spin,
            parameters: match body.kind {
                BodyKind::Link | BodyKind::Rotor => 10,
                BodyKind::SymmetricRotor => 1,
                BodyKind::Massless => 0,
            },
            pairs: 0,
            rooted: WithRoot::Ground,
            carried_from: 0,
            carried_count: 0,
            carried_to: 0,
            carries: false,
            merge: None,
        };
        let ratio = body.drive.ratio;
        let modes = body.joint_type.free_modes();
        self.out.modes.extend(modes.iter().map(|m| [(m.angular * ratio).into(), (m.linear * ratio).into()]));
        node
    }

    /// Numbers the packed entries row by row, so that the entries of a row are contiguous.
    fn pack(&mut self) {
        let mut order: Vec<usize> = (0..self.out.pairs.len()).collect();
        order.sort_by_key(|&k| self.out.pairs[k].dense);
        let mut layout = PackedLayout::new(self.out.nv);
        for k in order {
            let pair = &mut self.out.pairs[k];
            let (row, column) = (pair.dense / self.out.parameters, pair.dense % self.out.parameters);
            pair.packed = layout.push(row, column, pair.block.len());
        }
        layout.finish(self.out.parameters);
        self.out.layout = layout;
    }
}

fn rows(m: &Matrix3<f64>) -> [[f64; 3]; 3] {
    std::array::from_fn(|i| std::array::from_fn(|j| m[(i, j)]))
}
