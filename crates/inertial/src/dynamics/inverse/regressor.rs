//! Torque regressor in body coordinates.
//!
//! The mode of each coordinate is carried outward along the tree. At each body, its row of the ten columns of that body
//! is a closed form in the motion of the body. The six rows of a floating base are the wrench itself, transformed to
//! the base frame. The cost is proportional to the number of (coordinate, body moved by it) pairs.

use crate::dynamics::displacement::Kind;
use crate::dynamics::inverse::memory::{Memory, NodeState};
use crate::dynamics::inverse::rnea::{Motion, advance, ground, place};
use crate::dynamics::inverse::tables::{Block, Node, Pair, Tables, WithRoot};
use crate::dynamics::simd::Lane;
use crate::dynamics::simd::vector::{
    Mat3, Vec3, add, cross, cross_add, dot, load3, mul, splat3, store3, tr_mul,
};

/// Consumer of the entries of a pair.
pub(crate) trait Sink<L: Lane> {
    /// Receives the entries of one pair.
    fn put<const N: usize>(&mut self, pair: &Pair, entries: [L; N]);
}

/// Motion quantities of the ten columns of a body.
pub(crate) struct Columns<L> {
    /// Force of the mass.
    pub d: Vec3<L>,
    /// Rows of `B = [ω̇]× + [ω]×²`: force of the first moment.
    pub b: Mat3<L>,
    /// Moment of each entry of the inertia tensor.
    pub inertia: [Vec3<L>; 6],
}

impl<L: Lane> Columns<L> {
    #[inline(always)]
    pub fn new(m: &Motion<L>) -> Self {
        let [x, y, z] = m.w;
        let [ax, ay, az] = m.dw;
        let (xx, yy, zz) = (x * x, y * y, z * z);
        let (xy, xz, yz) = (x * y, x * z, y * z);
        let b =
            [[-(yy + zz), xy - az, xz + ay], [xy + az, -(xx + zz), yz - ax], [xz - ay, yz + ax, -(xx + yy)]];
        // Derivatives of I ω̇ + ω × I ω; the off-diagonal ones repeat entries of B.
        let inertia = [
            [ax, xz, -xy],
            [-b[2][0], b[2][1], xx - yy],
            [b[1][0], zz - xx, -b[1][2]],
            [-yz, ay, xy],
            [yy - zz, -b[0][1], b[0][2]],
            [yz, -xz, az],
        ];
        Self { d: m.d, b, inertia }
    }

    /// Computes the entries of the mode `[z; l]`: `l · force + z · moment` for each of the ten parameters.
    #[inline(always)]
    fn full(&self, z: Vec3<L>, l: Vec3<L>) -> [L; 10] {
        self.entries(dot(l, self.d), cross_add(self.d, z, tr_mul(&self.b, l)), z)
    }

    /// Computes the entries of the mode `[z; 0]`.
    #[inline(always)]
    fn angular(&self, z: Vec3<L>) -> [L; 10] {
        self.entries(L::splat(0.0), cross(self.d, z), z)
    }

    #[inline(always)]
    fn entries(&self, mass: L, moment: Vec3<L>, z: Vec3<L>) -> [L; 10] {
        // Not a closure, because closures are not compiled with the enabled processor features.
        let (h, i) = (moment, &self.inertia);
        [
            mass,
            h[0],
            h[1],
            h[2],
            dot(z, i[0]),
            dot(z, i[1]),
            dot(z, i[2]),
            dot(z, i[3]),
            dot(z, i[4]),
            dot(z, i[5]),
        ]
    }

    /// Computes the entries of the mode `[0; l]`.
    #[inline(always)]
    fn linear(&self, l: Vec3<L>) -> [L; 4] {
        let h = tr_mul(&self.b, l);
        [dot(l, self.d), h[0], h[1], h[2]]
    }

    #[inline(always)]
    fn put<S: Sink<L>>(&self, pair: &Pair, z: Vec3<L>, l: Vec3<L>, sink: &mut S) {
        match pair.block {
            Block::Full => sink.put(pair, self.full(z, l)),
            Block::Linear => sink.put(pair, self.linear(l)),
            Block::Spin => sink.put(pair, [dot(z, self.inertia[5])]),
            Block::Empty => {}
        }
    }

    /// Writes the rows of a floating base: force and moment about its origin, in its frame, for a body with the pose
    /// `rotation, origin`.
    #[inline(always)]
    fn base_rows<S: Sink<L>>(&self, node: &Node, pairs: &[Pair], pose: (&Mat3<L>, Vec3<L>), sink: &mut S) {
        let (r, p) = pose;
        if node.spin {
            let moment = mul(r, self.inertia[5]);
            for i in 0..3 {
                sink.put(&pairs[3 + i], [moment[i]]);
            }
            return;
        }
        let f = mul(r, self.d);
        // Rows of R B: force of the first moment.
        let g = [tr_mul(&self.b, r[0]), tr_mul(&self.b, r[1]), tr_mul(&self.b, r[2])];
        for i in 0..3 {
            sink.put(&pairs[i], [f[i], g[i][0], g[i][1], g[i][2]]);
        }
        for i in 0..3 {
            let (j, k) = ((i + 1) % 3, (i + 2) % 3);
            // Row i of [p]× [f, R B] − R [0, [d]×].
            let (a, b) = (p[j], p[k]);
            let h = [
                b.neg_mul_add(g[j][0], a * g[k][0]),
                b.neg_mul_add(g[j][1], a * g[k][1]),
                b.neg_mul_add(g[j][2], a * g[k][2]),
            ];
            let h = cross_add(self.d, r[i], h);
            let n = &self.inertia;
            sink.put(
                &pairs[3 + i],
                [
                    b.neg_mul_add(f[j], a * f[k]),
                    h[0],
                    h[1],
                    h[2],
                    dot(r[i], n[0]),
                    dot(r[i], n[1]),
                    dot(r[i], n[2]),
                    dot(r[i], n[3]),
                    dot(r[i], n[4]),
                    dot(r[i], n[5]),
                ],
            );
        }
    }
}

/// Computes the pose of a node in the frame of its floating base from that of its parent.
#[inline(always)]
fn base_pose<L: Lane>(
    node: &Node,
    states: &mut [NodeState<L::Memory>],
    number: usize,
    rotation: &Mat3<L>,
    origin: Vec3<L>,
) -> (Mat3<L>, Vec3<L>) {
    let (one, zero) = (L::splat(1.0), L::splat(0.0));
    let pose = if node.rooted == WithRoot::Base {
        ([[one, zero, zero], [zero, one, zero], [zero, zero, one]], [zero; 3])
    } else {
        let above = &states[node.parent];
        let r =
            [load3::<L>(&above.rotation[0]), load3::<L>(&above.rotation[1]), load3::<L>(&above.rotation[2])];
        let p = add(mul(&r, origin), load3::<L>(&above.origin));
        ([tr_mul(rotation, r[0]), tr_mul(rotation, r[1]), tr_mul(rotation, r[2])], p)
    };
    if node.carries {
        let state = &mut states[number];
        for i in 0..3 {
            store3(pose.0[i], &mut state.rotation[i]);
        }
        store3(pose.1, &mut state.origin);
    }
    pose
}

/// Passes every structurally nonzero entry to `sink`. The sines and cosines must have been computed.
#[inline(always)]
pub(crate) fn run<L: Lane, S: Sink<L>>(
    tables: &Tables,
    memory: &mut Memory<L::Memory>,
    carried: &mut [[[L::Memory; 3]; 2]],
    [q, v, a]: [&[L::Memory]; 3],
    sink: &mut S,
) {
    let states = &mut memory.states[..];
    ground::<L>(tables, &mut states[0]);
    for (k, node) in tables.nodes.iter().enumerate() {
        let parent = Motion::<L>::load(&states[node.parent]);
        let (rotation, origin) = place::<L>(node, &memory.sin, &memory.cos, q);
        let motion = advance(tables, node, &rotation, origin, &parent, v, a);
        if node.carries {
            motion.store(&mut states[k + 1]);
        }
        let columns = Columns::new(&motion);
        let mut pairs = &tables.pairs[node.pairs..];
        if node.rooted != WithRoot::Ground {
            let (r, p) = base_pose(node, states, k + 1, &rotation, origin);
            if node.parameters > 0 {
                columns.base_rows(node, pairs, (&r, p), sink);
                pairs = &pairs[6..];
            }
        }
        let modes = &tables.modes[node.modes.start..node.modes.end];
        for e in 0..node.carried_count {
            let [z, l] = &carried[node.carried_from + e];
            let (z, l) = (load3::<L>(z), load3::<L>(l));
            let (mut z, mut l) = (tr_mul(&rotation, z), tr_mul(&rotation, cross_add(z, origin, l)));
            if node.merge == Some(e) {
                z = add(z, splat3(&modes[0][0]));
                l = add(l, splat3(&modes[0][1]));
            }
            if node.carries {
                let to = &mut carried[node.carried_to + e];
                store3(z, &mut to[0]);
                store3(l, &mut to[1]);
            }
            if node.parameters > 0 {
                columns.put(&pairs[e], z, l, sink);
            }
        }
        if node.merge.is_some() || node.rooted == WithRoot::Base {
            continue;
        }
        for (j, mode) in modes.iter().enumerate() {
            let e = node.carried_count + j;
            let (z, l) = (splat3::<L>(&mode[0]), splat3::<L>(&mode[1]));
            if node.carries {
                let to = &mut carried[node.carried_to + e];
                store3(z, &mut to[0]);
                store3(l, &mut to[1]);
            }
            if node.parameters == 0 {
                continue;
            }
            // A hinge does not move its own origin.
            if node.kind == Kind::Revolute && pairs[e].block == Block::Full {
                sink.put(&pairs[e], columns.angular(z));
            } else {
                columns.put(&pairs[e], z, l, sink);
            }
        }
    }
}
