//! Torque regressor of one configuration; the SIMD lanes are columns.
//!
//! As for [many samples](super::regressor), the mode of each coordinate is carried outward in body coordinates. The
//! wrenches of the ten columns of a body are stored in rows of lane blocks (mass and first moment; inertia), so that a
//! row of the result takes about twelve multiply-adds of four lanes.

use crate::dynamics::displacement::Kind;
use crate::dynamics::inverse::memory::SingleMemory;
use crate::dynamics::inverse::regressor::Columns;
use crate::dynamics::inverse::rnea::{Motion, advance, ground, place};
use crate::dynamics::inverse::tables::{Block, Node, Pair, Tables, WithRoot};
use crate::dynamics::simd::vector::{Mat3, Vec3};
use crate::dynamics::simd::{Four, Lane, Single, Wide};

/// Wrenches of the columns of a body, by rows: the force of the first four, the moment of all ten (and two of padding).
struct WrenchRows<W> {
    force: [W; 3],
    moment: [[W; 3]; 3],
}

impl<W: Wide> WrenchRows<W> {
    #[inline(always)]
    fn new<L: Single<Wide = W>>(columns: &Columns<L>) -> Self {
        let (d, b, n) = (columns.d, &columns.b, &columns.inertia);
        let zero = L::splat(0.0);
        // The moment of the first moment h is h × d.
        let lever = [[zero, d[2], -d[1]], [-d[2], zero, d[0]], [d[1], -d[0], zero]];
        Self {
            force: [
                four([d[0], b[0][0], b[0][1], b[0][2]]),
                four([d[1], b[1][0], b[1][1], b[1][2]]),
                four([d[2], b[2][0], b[2][1], b[2][2]]),
            ],
            moment: [
                Self::moment(lever[0], n, 0),
                Self::moment(lever[1], n, 1),
                Self::moment(lever[2], n, 2),
            ],
        }
    }

    #[inline(always)]
    fn moment<L: Single<Wide = W>>(lever: Vec3<L>, n: &[Vec3<L>; 6], i: usize) -> [W; 3] {
        let zero = L::splat(0.0);
        [
            four([zero, lever[0], lever[1], lever[2]]),
            four([n[0][i], n[1][i], n[2][i], n[3][i]]),
            four([n[4][i], n[5][i], zero, zero]),
        ]
    }

    /// Writes the row of the mode `[z; l]`.
    #[inline(always)]
    fn put(&self, pair: &Pair, z: &[f64], l: &[f64], out: &mut [f64]) {
        let (l0, l1, l2) = (W::splat(l[0]), W::splat(l[1]), W::splat(l[2]));
        let (f, m) = (&self.force, &self.moment);
        let first = l2.mul_add(f[2], l1.mul_add(f[1], l0 * f[0]));
        match pair.block {
            Block::Full => {
                let (z0, z1, z2) = (W::splat(z[0]), W::splat(z[1]), W::splat(z[2]));
                let out = &mut out[pair.dense..pair.dense + 10];
                let first = z2.mul_add(m[2][0], z1.mul_add(m[1][0], z0.mul_add(m[0][0], first)));
                first.write(out);
                z2.mul_add(m[2][1], z1.mul_add(m[1][1], z0 * m[0][1])).write(&mut out[4..]);
                z2.mul_add(m[2][2], z1.mul_add(m[1][2], z0 * m[0][2])).write_two(&mut out[8..]);
            }
            Block::Linear => first.write(&mut out[pair.dense..]),
            Block::Spin => {
                let (z0, z1, z2) = (W::splat(z[0]), W::splat(z[1]), W::splat(z[2]));
                let mut last = Four::default();
                z2.mul_add(m[2][2], z1.mul_add(m[1][2], z0 * m[0][2])).store(&mut last);
                out[pair.dense] = last.0[1];
            }
            Block::Empty => {}
        }
    }

    /// Writes the rows of a floating base: force and moment about its origin, in its frame, for a body with the given
    /// `pose` (rows of rotation and origin).
    #[inline(always)]
    fn put_base(&self, pairs: &[Pair], pose: &[Four; 3], out: &mut [f64]) {
        let f = &self.force;
        let (p, q, r) = (&pose[0].0, &pose[1].0, &pose[2].0);
        let force = [
            W::splat(p[2]).mul_add(f[2], W::splat(p[1]).mul_add(f[1], W::splat(p[0]) * f[0])),
            W::splat(q[2]).mul_add(f[2], W::splat(q[1]).mul_add(f[1], W::splat(q[0]) * f[0])),
            W::splat(r[2]).mul_add(f[2], W::splat(r[1]).mul_add(f[1], W::splat(r[0]) * f[0])),
        ];
        for i in 0..3 {
            if pairs[i].block == Block::Linear {
                force[i].write(&mut out[pairs[i].dense..]);
            }
        }
        for i in 0..3 {
            let (j, k) = ((i + 1) % 3, (i + 2) % 3);
            let lever = W::splat(pose[k].0[3]).neg_mul_add(force[j], W::splat(pose[j].0[3]) * force[k]);
            self.put_moment(&pairs[3 + i], &pose[i].0, lever, out);
        }
    }

    /// Writes the moment about `axis`, plus `lever` in the first four columns.
    #[inline(always)]
    fn put_moment(&self, pair: &Pair, axis: &[f64], lever: W, out: &mut [f64]) {
        let (z0, z1, z2) = (W::splat(axis[0]), W::splat(axis[1]), W::splat(axis[2]));
        let m = &self.moment;
        let last = z2.mul_add(m[2][2], z1.mul_add(m[1][2], z0 * m[0][2]));
        if pair.block == Block::Spin {
            let mut four = Four::default();
            last.store(&mut four);
            out[pair.dense] = four.0[1];
            return;
        }
        let out = &mut out[pair.dense..pair.dense + 10];
        z2.mul_add(m[2][0], z1.mul_add(m[1][0], z0.mul_add(m[0][0], lever))).write(out);
        z2.mul_add(m[2][1], z1.mul_add(m[1][1], z0 * m[0][1])).write(&mut out[4..]);
        last.write_two(&mut out[8..]);
    }
}

/// Packs four numbers into lanes.
#[inline(always)]
fn four<L: Single>(x: [L; 4]) -> L::Wide {
    let mut memory = Four::default();
    x[0].store(&mut memory.0[0]);
    x[1].store(&mut memory.0[1]);
    x[2].store(&mut memory.0[2]);
    x[3].store(&mut memory.0[3]);
    <L::Wide as Lane>::load(&memory)
}

/// Frame of a node relative to its parent, prepared to transform modes: rows of `[R, r]`, and of `Rᵀ` times the levers
/// of the axes.
struct Frame<W> {
    rows: [W; 3],
    levers: [W; 3],
}

impl<W: Wide> Frame<W> {
    #[inline(always)]
    fn new<L: Single<Wide = W>>(r: &Mat3<L>, p: Vec3<L>) -> Self {
        let rows = [
            four([r[0][0], r[0][1], r[0][2], p[0]]),
            four([r[1][0], r[1][1], r[1][2], p[1]]),
            four([r[2][0], r[2][1], r[2][2], p[2]]),
        ];
        let (mut x, mut y, mut z) = (0.0, 0.0, 0.0);
        p[0].store(&mut x);
        p[1].store(&mut y);
        p[2].store(&mut z);
        let (x, y, z) = (W::splat(x), W::splat(y), W::splat(z));
        // Rᵀ (e × p) for each axis e of the parent.
        let levers = [
            z.neg_mul_add(rows[1], y * rows[2]),
            x.neg_mul_add(rows[2], z * rows[0]),
            y.neg_mul_add(rows[0], x * rows[1]),
        ];
        Self { rows, levers }
    }

    /// Transforms a mode to the coordinates of the node; the fourth lanes are undefined.
    #[inline(always)]
    fn pull(&self, mode: &[Four; 2]) -> [W; 2] {
        let (z, l) = (&mode[0].0, &mode[1].0);
        let (z0, z1, z2) = (W::splat(z[0]), W::splat(z[1]), W::splat(z[2]));
        let (l0, l1, l2) = (W::splat(l[0]), W::splat(l[1]), W::splat(l[2]));
        let (r, q) = (&self.rows, &self.levers);
        let turned = l2.mul_add(r[2], l1.mul_add(r[1], l0 * r[0]));
        [
            z2.mul_add(r[2], z1.mul_add(r[1], z0 * r[0])),
            z2.mul_add(q[2], z1.mul_add(q[1], z0.mul_add(q[0], turned))),
        ]
    }

    /// Computes the pose relative to the floating base, as rows of `[R, p]`, from that of the parent.
    #[inline(always)]
    fn pose(&self, above: &[Four; 3], to: &mut [Four; 3]) {
        let last = W::load(&Four([0.0, 0.0, 0.0, 1.0]));
        for i in 0..3 {
            let [x, y, z, p] = above[i].0;
            let start = W::splat(p) * last;
            W::splat(z)
                .mul_add(
                    self.rows[2],
                    W::splat(y).mul_add(self.rows[1], W::splat(x).mul_add(self.rows[0], start)),
                )
                .store(&mut to[i]);
        }
    }
}

/// Writes the structurally nonzero entries of the dense matrix `out`. The sines and cosines must have been computed.
#[inline(always)]
pub(crate) fn run<L: Single>(
    tables: &Tables,
    single: &mut SingleMemory,
    q: &[f64],
    v: &[f64],
    a: &[f64],
    out: &mut [f64],
) {
    let SingleMemory { memory, carried, poses } = single;
    let states = &mut memory.states[..];
    ground::<L>(tables, &mut states[0]);
    for (k, node) in tables.nodes.iter().enumerate() {
        let parent = Motion::<L>::load(&states[node.parent]);
        let (rotation, origin) = place::<L>(node, &memory.sin, &memory.cos, q);
        let motion = advance(tables, node, &rotation, origin, &parent, v, a);
        motion.store(&mut states[k + 1]);
        let rows = WrenchRows::new(&Columns::new(&motion));
        let frame = Frame::new(&rotation, origin);
        let mut pairs = &tables.pairs[node.pairs..];
        if node.rooted != WithRoot::Ground {
            let mut pose = IDENTITY;
            if node.rooted == WithRoot::OnBase {
                frame.pose(&poses[node.parent], &mut pose);
            }
            if node.carries {
                poses[k + 1] = pose;
            }
            if node.parameters > 0 {
                rows.put_base(pairs, &pose, out);
                pairs = &pairs[6..];
            }
        }
        modes(tables, node, &rows, &frame, pairs, carried, out);
    }
}

/// Identity pose, as rows of `[R, p]`.
const IDENTITY: [Four; 3] =
    [Four([1.0, 0.0, 0.0, 0.0]), Four([0.0, 1.0, 0.0, 0.0]), Four([0.0, 0.0, 1.0, 0.0])];

/// Carries the modes to a node and writes their rows.
#[inline(always)]
fn modes<W: Wide>(
    tables: &Tables,
    node: &Node,
    rows: &WrenchRows<W>,
    frame: &Frame<W>,
    pairs: &[Pair],
    carried: &mut [[Four; 2]],
    out: &mut [f64],
) {
    let own = &tables.modes[node.modes.start..node.modes.end];
    for e in 0..node.carried_count {
        let [z, l] = frame.pull(&carried[node.carried_from + e]);
        let mut mode = [Four::default(); 2];
        z.store(&mut mode[0]);
        l.store(&mut mode[1]);
        if node.merge == Some(e) {
            for i in 0..3 {
                mode[0].0[i] += own[0][0][i];
                mode[1].0[i] += own[0][1][i];
            }
        }
        if node.carries {
            carried[node.carried_to + e] = mode;
        }
        if node.parameters > 0 {
            rows.put(&pairs[e], &mode[0].0, &mode[1].0, out);
        }
    }
    if node.merge.is_some() || node.rooted == WithRoot::Base {
        return;
    }
    for (j, [z, l]) in own.iter().enumerate() {
        let e = node.carried_count + j;
        if node.carries {
            carried[node.carried_to + e] = [Four([z[0], z[1], z[2], 0.0]), Four([l[0], l[1], l[2], 0.0])];
        }
        if node.parameters == 0 {
            continue;
        }
        // A hinge does not move its own origin.
        if node.kind == Kind::Revolute {
            rows.put_moment(&pairs[e], z, W::splat(0.0), out);
        } else {
            rows.put(&pairs[e], z, l, out);
        }
    }
}
