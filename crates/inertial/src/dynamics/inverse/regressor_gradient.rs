//! Gradient of weighted sums of regressor entries with respect to the motion (reverse mode).
//!
//! The entries of the mode `[z; l]` of a coordinate and a body, weighted with ten numbers `g`, sum to `l · F + z · N`,
//! where `[N; F]` is the inertial wrench of a body with the parameters `g`. Its derivatives are propagated back to the
//! modes and to the motion of the body, and from there inward to the coordinates. Derivatives with respect to positions
//! are taken along the free modes, like velocities.

use crate::Result;
use crate::dynamics::inverse::inverse_dynamics::{InverseDynamics, Scratch};
use crate::dynamics::inverse::rnea::{Motion, advance, ground, place, turn_wide};
use crate::dynamics::inverse::tables::{Block, Node, Tables, WithRoot};
use crate::dynamics::simd::vector::{
    Mat3, Vec3, add, cross, cross_add, dot, load3, mul, scale, scale_add, splat3, store3, tr_mul,
};
use crate::dynamics::simd::{Four, Lane, PlainFour, dispatch};
use crate::dynamics::{Samples, expect_len};

/// Derivatives of weighted sums of torque regressors, for one thread and one mechanism.
///
/// For weights `g` of the packed entries of each sample, it computes the gradient of `Σ g_e Y_e(q, v, a)` with respect
/// to `q` (along the velocity coordinates), `v` and `a` of the sample. The cost is about that of three regressors, and
/// nothing is allocated after the first call.
#[derive(Debug, Clone)]
pub struct RegressorGradient {
    /// Position and number of the modes that move each node.
    lists: Vec<(usize, usize)>,
    modes: Vec<[[Four; 3]; 2]>,
    mode_gradients: Vec<[[Four; 3]; 2]>,
    nodes: Vec<NodeMemory>,
    gradients: [Vec<Four>; 3],
}

/// Memory of a node in the outward and inward pass; the first is the ground.
#[derive(Debug, Clone, Copy, Default)]
struct NodeMemory {
    rotation: [[Four; 3]; 3],
    origin: [Four; 3],
    motion: [[Four; 3]; 3],
    gradient: [[Four; 3]; 3],
}

impl RegressorGradient {
    /// Allocates memory for a mechanism.
    pub fn new(dynamics: &InverseDynamics) -> Self {
        let tables = &dynamics.tables;
        let mut lists: Vec<(usize, usize)> = Vec::with_capacity(tables.nodes.len());
        let mut total = 0;
        for node in &tables.nodes {
            let carried = if node.parent > 0 { lists[node.parent - 1].1 } else { 0 };
            let own = if node.merge.is_some() { 0 } else { node.modes.len() };
            lists.push((total, carried + own));
            total += carried + own;
        }
        let zero = [[Four::default(); 3]; 2];
        Self {
            lists,
            modes: vec![zero; total],
            mode_gradients: vec![zero; total],
            nodes: vec![NodeMemory::default(); tables.nodes.len() + 1],
            gradients: std::array::from_fn(|_| vec![Four::default(); tables.nv]),
        }
    }

    /// Computes the gradients with respect to `q`, `v` and `a`, `nv` numbers per sample each; `weights` have the layout
    /// of the groups of a `PackedChunk`.
    pub fn run(
        &mut self,
        dynamics: &InverseDynamics,
        scratch: &mut Scratch,
        samples: &Samples<'_>,
        weights: &[Four],
        out: [&mut [f64]; 3],
    ) -> Result<()> {
        dynamics.matches(scratch, samples)?;
        let (nv, size) = (dynamics.nv(), dynamics.layout().len());
        expect_len("weights of the regressor", weights.len(), samples.len().div_ceil(4) * size)?;
        expect_len("memory of the gradient", self.nodes.len(), dynamics.tables.nodes.len() + 1)?;
        expect_len("memory of the gradient", self.gradients[0].len(), nv)?;
        for part in &out {
            expect_len("gradient", part.len(), samples.len() * nv)?;
        }
        let [gq, gv, ga] = out;
        for (group, first) in (0..samples.len()).step_by(4).enumerate() {
            dynamics.gather(scratch, samples, first);
            let tables = &dynamics.tables;
            let weights = &weights[group * size..(group + 1) * size];
            let memory = &mut *self;
            let scratch = &mut *scratch;
            dispatch!(dynamics.fused, gradient_wide::<PlainFour, FusedFour>(
                tables: &Tables, scratch: &mut Scratch, memory: &mut RegressorGradient, weights: &[Four]
            ));
            for (from, to) in self.gradients.iter().zip([&mut *gq, &mut *gv, &mut *ga]) {
                for (lane, to) in to[first * nv..].chunks_exact_mut(nv.max(1)).take(4).enumerate() {
                    to.iter_mut().zip(from).for_each(|(to, four)| *to = four.0[lane]);
                }
            }
        }
        Ok(())
    }
}

#[inline(always)]
fn gradient_wide<L: Lane<Memory = Four>>(
    tables: &Tables,
    scratch: &mut Scratch,
    memory: &mut RegressorGradient,
    weights: &[Four],
) {
    let [q, v, a, _] = &scratch.samples;
    turn_wide::<L>(tables, &mut scratch.wide, q);
    ground::<L>(tables, &mut scratch.wide.states[0]);
    outward::<L>(tables, scratch, memory, [q, v, a]);
    for part in &mut memory.gradients {
        part.fill(Four::default());
    }
    for (k, node) in tables.nodes.iter().enumerate().rev() {
        inward::<L>(tables, memory, k, node, v, weights);
    }
}

/// Computes the motions and modes of all nodes.
#[inline(always)]
fn outward<L: Lane<Memory = Four>>(
    tables: &Tables,
    scratch: &Scratch,
    memory: &mut RegressorGradient,
    [q, v, a]: [&[Four]; 3],
) {
    let zero = [Four::default(); 3];
    let start = Motion::<L>::load(&scratch.wide.states[0]);
    memory.nodes[0] = NodeMemory::default();
    store_motion(start, &mut memory.nodes[0].motion);
    memory.mode_gradients.fill([zero; 2]);
    for (k, node) in tables.nodes.iter().enumerate() {
        let parent = load_motion::<L>(&memory.nodes[node.parent].motion);
        let (rotation, origin) = place::<L>(node, &scratch.wide.sin, &scratch.wide.cos, q);
        let motion = advance(tables, node, &rotation, origin, &parent, v, a);
        let own = &mut memory.nodes[k + 1];
        store_motion(motion, &mut own.motion);
        for i in 0..3 {
            store3(rotation[i], &mut own.rotation[i]);
        }
        store3(origin, &mut own.origin);
        own.gradient = [zero; 3];
        let (first, count) = memory.lists[k];
        let modes = &tables.modes[node.modes.start..node.modes.end];
        let mut carried = 0;
        if node.parent > 0 {
            let from = memory.lists[node.parent - 1].0;
            carried = memory.lists[node.parent - 1].1;
            for e in 0..carried {
                let [z, l] = &memory.modes[from + e];
                let (z, l) = (load3::<L>(z), load3::<L>(l));
                let to = &mut memory.modes[first + e];
                store3(tr_mul(&rotation, z), &mut to[0]);
                store3(tr_mul(&rotation, cross_add(z, origin, l)), &mut to[1]);
            }
        }
        match merged(node) {
            Some(e) => {
                let to = &mut memory.modes[first + e];
                let (z, l) = (load3::<L>(&to[0]), load3::<L>(&to[1]));
                store3(add(z, splat3(&modes[0][0])), &mut to[0]);
                store3(add(l, splat3(&modes[0][1])), &mut to[1]);
            }
            None => {
                for (mode, to) in modes.iter().zip(&mut memory.modes[first + carried..first + count]) {
                    store3(splat3::<L>(&mode[0]), &mut to[0]);
                    store3(splat3::<L>(&mode[1]), &mut to[1]);
                }
            }
        }
    }
}

/// Returns the mode in the list of a node that moves with the same coordinate; the six modes of a floating base come
/// first.
#[inline(always)]
fn merged(node: &Node) -> Option<usize> {
    match (node.merge, node.rooted) {
        (Some(e), WithRoot::Ground) => Some(e),
        (Some(e), _) => Some(e + 6),
        (None, _) => None,
    }
}

/// Propagates the gradients of one node: from its entries to its motion and modes, and from there to its parent and its
/// coordinates.
#[inline(always)]
fn inward<L: Lane<Memory = Four>>(
    tables: &Tables,
    memory: &mut RegressorGradient,
    k: usize,
    node: &Node,
    v: &[Four],
    weights: &[Four],
) {
    let zero = [L::splat(0.0); 3];
    let own = memory.nodes[k + 1];
    let motion = load_motion::<L>(&own.motion);
    let mut bar = load_motion::<L>(&own.gradient);
    let (first, count) = memory.lists[k];
    if node.parameters > 0 {
        for e in 0..count {
            let pair = &tables.pairs[node.pairs + e];
            let g = match pair.block {
                Block::Full => parameters::<L>(&weights[pair.packed..pair.packed + 10]),
                Block::Linear => {
                    let g = &weights[pair.packed..pair.packed + 4];
                    (L::load(&g[0]), [L::load(&g[1]), L::load(&g[2]), L::load(&g[3])], [L::splat(0.0); 6])
                }
                Block::Spin => {
                    let mut tensor = [L::splat(0.0); 6];
                    tensor[5] = L::load(&weights[pair.packed]);
                    (L::splat(0.0), zero, tensor)
                }
                Block::Empty => continue,
            };
            let mode = &memory.modes[first + e];
            let (z, l) = (load3::<L>(&mode[0]), load3::<L>(&mode[1]));
            let [moment, force] = entry::<L>(g, &motion, z, l, &mut bar);
            let to = &mut memory.mode_gradients[first + e];
            let (zb, lb) = (load3::<L>(&to[0]), load3::<L>(&to[1]));
            store3(add(zb, moment), &mut to[0]);
            store3(add(lb, force), &mut to[1]);
        }
    }
    let rotation: Mat3<L> =
        [load3::<L>(&own.rotation[0]), load3::<L>(&own.rotation[1]), load3::<L>(&own.rotation[2])];
    let origin = load3::<L>(&own.origin);
    // Gradients with respect to a rotation of the node frame (in its axes) and a shift of its origin (in the parent
    // frame).
    let (mut turned, mut shifted) = (zero, zero);
    let modes = &tables.modes[node.modes.start..node.modes.end];
    if node.parent > 0 {
        let (from, carried) = memory.lists[node.parent - 1];
        for e in 0..carried {
            let mode = &memory.modes[first + e];
            let (mut z, mut l) = (load3::<L>(&mode[0]), load3::<L>(&mode[1]));
            if merged(node) == Some(e) {
                z = sub(z, splat3(&modes[0][0]));
                l = sub(l, splat3(&modes[0][1]));
            }
            let bars = &memory.mode_gradients[first + e];
            let (zb, lb) = (load3::<L>(&bars[0]), load3::<L>(&bars[1]));
            turned = cross_add(zb, z, cross_add(lb, l, turned));
            let y = mul(&rotation, lb);
            let above = load3::<L>(&memory.modes[from + e][0]);
            shifted = cross_add(y, above, shifted);
            let to = &mut memory.mode_gradients[from + e];
            let (zp, lp) = (load3::<L>(&to[0]), load3::<L>(&to[1]));
            store3(add(zp, cross_add(origin, y, mul(&rotation, zb))), &mut to[0]);
            store3(add(lp, y), &mut to[1]);
        }
    }
    // Motion of the joint itself: rotation t and translation s.
    let (mut t, mut s) = (zero, zero);
    for (mode, v) in modes.iter().zip(&v[node.v..]) {
        let v = L::load(v);
        t = scale_add(v, splat3(&mode[0]), t);
        s = scale_add(v, splat3(&mode[1]), s);
    }
    let parent = load_motion::<L>(&memory.nodes[node.parent].motion);
    let carried = cross_add(parent.dw, origin, cross_add(parent.w, cross(parent.w, origin), parent.d));
    let (w0, dw0, d0) =
        (tr_mul(&rotation, parent.w), tr_mul(&rotation, parent.dw), tr_mul(&rotation, carried));
    // w = w0 + t; dw = dw0 + Φω a + w0 × t; d = d0 + Φv a + (2 w0 + t) × s.
    let slid = cross(s, bar.d);
    let t_bar = add(add(bar.w, slid), cross(bar.dw, w0));
    let s_bar = cross(bar.d, add(add(w0, w0), t));
    let w0_bar = add(add(bar.w, add(slid, slid)), cross(t, bar.dw));
    turned = cross_add(w0_bar, w0, cross_add(bar.dw, dw0, cross_add(bar.d, d0, turned)));
    let up = Motion { w: mul(&rotation, w0_bar), dw: mul(&rotation, bar.dw), d: mul(&rotation, bar.d) };
    let u = up.d;
    shifted = cross_add(u, parent.dw, cross_add(parent.w, cross(parent.w, u), shifted));
    if node.parent > 0 {
        let above = &mut memory.nodes[node.parent].gradient;
        let old = load_motion::<L>(above);
        store_motion(
            Motion {
                w: add(old.w, add(up.w, swing(u, parent.w, origin))),
                dw: add(old.dw, cross_add(origin, u, up.dw)),
                d: add(old.d, u),
            },
            above,
        );
    }
    let shifted = tr_mul(&rotation, shifted);
    let [gq, gv, ga] = &mut memory.gradients;
    for (j, mode) in modes.iter().enumerate() {
        let (z, l) = (splat3::<L>(&mode[0]), splat3::<L>(&mode[1]));
        accumulate(dot(z, turned) + dot(l, shifted), &mut gq[node.v + j]);
        accumulate(dot(z, t_bar) + dot(l, s_bar), &mut gv[node.v + j]);
        accumulate(dot(z, bar.dw) + dot(l, bar.d), &mut ga[node.v + j]);
    }
}

/// Returns mass, first moment and tensor (xx xy xz yy yz zz) from ten weights.
#[inline(always)]
fn parameters<L: Lane<Memory = Four>>(g: &[Four]) -> (L, Vec3<L>, [L; 6]) {
    (
        L::load(&g[0]),
        [L::load(&g[1]), L::load(&g[2]), L::load(&g[3])],
        [L::load(&g[4]), L::load(&g[5]), L::load(&g[6]), L::load(&g[7]), L::load(&g[8]), L::load(&g[9])],
    )
}

/// Returns the wrench `[N, F]` of a body with the given parameters, which is the gradient with respect to the mode;
/// adds the gradient with respect to the motion.
#[inline(always)]
fn entry<L: Lane<Memory = Four>>(
    (mass, h, i): (L, Vec3<L>, [L; 6]),
    m: &Motion<L>,
    z: Vec3<L>,
    l: Vec3<L>,
    bar: &mut Motion<L>,
) -> [Vec3<L>; 2] {
    let tensor = [[i[0], i[1], i[2]], [i[1], i[3], i[4]], [i[2], i[4], i[5]]];
    let force = scale_add(mass, m.d, cross_add(m.dw, h, cross(m.w, cross(m.w, h))));
    let spin = mul(&tensor, m.w);
    let moment = cross_add(h, m.d, cross_add(m.w, spin, mul(&tensor, m.dw)));
    bar.d = add(bar.d, scale_add(mass, l, cross(z, h)));
    bar.dw = add(bar.dw, cross_add(h, l, mul(&tensor, z)));
    bar.w = add(bar.w, add(swing(l, m.w, h), cross_add(spin, z, mul(&tensor, cross(z, m.w)))));
    [moment, force]
}

/// Computes the gradient of `f · (w × (w × x))` with respect to `w`.
#[inline(always)]
fn swing<L: Lane>(f: Vec3<L>, w: Vec3<L>, x: Vec3<L>) -> Vec3<L> {
    let fx = dot(f, x);
    scale_add(dot(w, x), f, scale_add(dot(f, w), x, scale(-(fx + fx), w)))
}

#[inline(always)]
fn sub<L: Lane>(a: Vec3<L>, b: Vec3<L>) -> Vec3<L> {
    [a[0] - b[0], a[1] - b[1], a[2] - b[2]]
}

#[inline(always)]
fn load_motion<L: Lane<Memory = Four>>(from: &[[Four; 3]; 3]) -> Motion<L> {
    Motion { w: load3::<L>(&from[0]), dw: load3::<L>(&from[1]), d: load3::<L>(&from[2]) }
}

#[inline(always)]
fn store_motion<L: Lane<Memory = Four>>(motion: Motion<L>, to: &mut [[Four; 3]; 3]) {
    store3(motion.w, &mut to[0]);
    store3(motion.dw, &mut to[1]);
    store3(motion.d, &mut to[2]);
}

#[inline(always)]
fn accumulate<L: Lane<Memory = Four>>(x: L, to: &mut Four) {
    (L::load(to) + x).store(to);
}
