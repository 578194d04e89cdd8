//! Inverse dynamics by the recursive Newton–Euler algorithm in body coordinates.
//!
//! The recursion propagates the angular velocity `ω`, the angular acceleration `ω̇` and the acceleration `d` of the
//! frame origin minus gravity (Luh, Walker and Paul 1980). The velocity of the origin is not needed.

use crate::dynamics::displacement::{Angle, Kind, Turn};
use crate::dynamics::inverse::memory::{Memory, NodeState};
use crate::dynamics::inverse::tables::{Node, Tables};
use crate::dynamics::simd::sincos::sin_cos;
use crate::dynamics::simd::vector::{
    Mat3, Vec3, add, cross, cross_add, dot, load3, mul, scale, scale_add, splat3, store3, tr_mul,
};
use crate::dynamics::simd::{Four, Lane, Single};

/// Motion of a node in its own coordinates.
#[derive(Clone, Copy)]
pub(crate) struct Motion<L> {
    /// Angular velocity.
    pub w: Vec3<L>,
    /// Angular acceleration.
    pub dw: Vec3<L>,
    /// Acceleration of the origin minus gravity.
    pub d: Vec3<L>,
}

impl<L: Lane> Motion<L> {
    #[inline(always)]
    pub fn load(state: &NodeState<L::Memory>) -> Self {
        Self { w: load3::<L>(&state.w), dw: load3::<L>(&state.dw), d: load3::<L>(&state.d) }
    }

    #[inline(always)]
    pub fn store(self, state: &mut NodeState<L::Memory>) {
        store3(self.w, &mut state.w);
        store3(self.dw, &mut state.dw);
        store3(self.d, &mut state.d);
    }
}

/// Sets the acceleration of the ground opposite to gravity.
#[inline(always)]
pub(crate) fn ground<L: Lane>(tables: &Tables, state: &mut NodeState<L::Memory>) {
    let zero = [L::splat(0.0); 3];
    let [x, y, z] = tables.gravity;
    Motion::<L> { w: zero, dw: zero, d: splat3(&[-x, -y, -z]) }.store(state);
}

/// Computes sines and cosines of all angles of one configuration, four angles at a time.
#[inline(always)]
pub(crate) fn turn_single<L: Single>(angles: &[Angle], sin: &mut [f64], cos: &mut [f64], q: &[f64]) {
    let turns = sin.chunks_exact_mut(4).zip(cos.chunks_exact_mut(4));
    for (angles, (sin, cos)) in angles.chunks(4).zip(turns) {
        let mut x = Four::default();
        for (x, angle) in x.0.iter_mut().zip(angles) {
            *x = angle.ratio * q[angle.q] + angle.offset;
        }
        let (s, c) = sin_cos(<L::Wide as Lane>::load(&x));
        let (mut s4, mut c4) = (Four::default(), Four::default());
        s.store(&mut s4);
        c.store(&mut c4);
        sin.copy_from_slice(&s4.0);
        cos.copy_from_slice(&c4.0);
    }
}

/// Computes sines and cosines of all angles of four samples.
#[inline(always)]
pub(crate) fn turn_wide<L: Lane<Memory = Four>>(tables: &Tables, memory: &mut Memory<Four>, q: &[Four]) {
    for k in 0..tables.angles.len() {
        turn::<L>(tables, memory, k, q);
    }
}

/// Computes sine and cosine of angle `k` of four samples.
#[inline(always)]
pub(crate) fn turn<L: Lane<Memory = Four>>(tables: &Tables, memory: &mut Memory<Four>, k: usize, q: &[Four]) {
    let angle = &tables.angles[k];
    let x = L::load(&q[angle.q]) * L::splat(angle.ratio) + L::splat(angle.offset);
    let (sin, cos) = sin_cos(x);
    sin.store(&mut memory.sin[k]);
    cos.store(&mut memory.cos[k]);
}

/// Computes the pose of a node relative to its parent.
#[inline(always)]
pub(crate) fn place<L: Lane>(
    node: &Node,
    sin: &[L::Memory],
    cos: &[L::Memory],
    q: &[L::Memory],
) -> (Mat3<L>, Vec3<L>) {
    let [f, g, h] = &node.rotations;
    let rotation = match node.turn {
        Turn::Constant => [splat3(&h[0]), splat3(&h[1]), splat3(&h[2])],
        Turn::Angle(k) => {
            let (s, c) = (L::load(&sin[k]), L::load(&cos[k]));
            [
                scale_add(c, splat3(&f[0]), scale_add(s, splat3(&g[0]), splat3(&h[0]))),
                scale_add(c, splat3(&f[1]), scale_add(s, splat3(&g[1]), splat3(&h[1]))),
                scale_add(c, splat3(&f[2]), scale_add(s, splat3(&g[2]), splat3(&h[2]))),
            ]
        }
        Turn::Quaternion(k) => {
            let r = quaternion([L::load(&q[k]), L::load(&q[k + 1]), L::load(&q[k + 2]), L::load(&q[k + 3])]);
            [tr_mul(&r, splat3(&h[0])), tr_mul(&r, splat3(&h[1])), tr_mul(&r, splat3(&h[2]))]
        }
    };
    let mut origin = splat3(&node.origin);
    for k in 0..node.slide_count {
        let x =
            L::load(&q[node.slide_q + k]).mul_add(L::splat(node.slide_ratio), L::splat(node.slide_offset));
        origin = scale_add(x, splat3(&node.slides[k]), origin);
    }
    (rotation, origin)
}

/// Returns the rotation of a quaternion `x y z w` of any length.
#[inline(always)]
pub(crate) fn quaternion<L: Lane>([x, y, z, w]: [L; 4]) -> Mat3<L> {
    let one = L::splat(1.0);
    let s = x.mul_add(x, y.mul_add(y, z.mul_add(z, w * w))).twice_inverse();
    let (sx, sy, sz) = (s * x, s * y, s * z);
    [
        [sz.neg_mul_add(z, sy.neg_mul_add(y, one)), sz.neg_mul_add(w, sx * y), sy.mul_add(w, sx * z)],
        [sz.mul_add(w, sx * y), sz.neg_mul_add(z, sx.neg_mul_add(x, one)), sx.neg_mul_add(w, sy * z)],
        [sy.neg_mul_add(w, sx * z), sx.mul_add(w, sy * z), sy.neg_mul_add(y, sx.neg_mul_add(x, one))],
    ]
}

/// Computes the acceleration minus gravity of a point fixed to a frame with the given motion.
#[inline(always)]
pub(crate) fn carry<L: Lane>(motion: &Motion<L>, point: Vec3<L>) -> Vec3<L> {
    cross_add(motion.dw, point, cross_add(motion.w, cross(motion.w, point), motion.d))
}

/// Performs one outward step: the motion of a node from that of its parent.
#[inline(always)]
pub(crate) fn advance<L: Lane>(
    tables: &Tables,
    node: &Node,
    rotation: &Mat3<L>,
    origin: Vec3<L>,
    parent: &Motion<L>,
    v: &[L::Memory],
    a: &[L::Memory],
) -> Motion<L> {
    let carried = carry(parent, origin);
    let (w, dw, d) = (tr_mul(rotation, parent.w), tr_mul(rotation, parent.dw), tr_mul(rotation, carried));
    let modes = &tables.modes[node.modes.start..node.modes.end];
    let (v, a) = (&v[node.v..], &a[node.v..]);
    let (turn, slide, dw, d) = match node.kind {
        Kind::Revolute => {
            let axis = splat3(&modes[0][0]);
            let turn = scale(L::load(&v[0]), axis);
            let dw = cross_add(w, turn, scale_add(L::load(&a[0]), axis, dw));
            return Motion { w: add(w, turn), dw, d };
        }
        Kind::Prismatic => {
            let axis = splat3(&modes[0][1]);
            let rate = L::load(&v[0]);
            let coriolis = scale(rate + rate, axis);
            return Motion { w, dw, d: cross_add(w, coriolis, scale_add(L::load(&a[0]), axis, d)) };
        }
        Kind::Free => {
            let (slide, turn) = (take3::<L>(v, 0), take3::<L>(v, 3));
            (turn, slide, add(dw, take3::<L>(a, 3)), add(d, take3::<L>(a, 0)))
        }
        Kind::General => {
            let (mut turn, mut slide, mut dw, mut d) = ([L::splat(0.0); 3], [L::splat(0.0); 3], dw, d);
            for (mode, (v, a)) in modes.iter().zip(v.iter().zip(a)) {
                let (v, a) = (L::load(v), L::load(a));
                turn = scale_add(v, splat3(&mode[0]), turn);
                slide = scale_add(v, splat3(&mode[1]), slide);
                dw = scale_add(a, splat3(&mode[0]), dw);
                d = scale_add(a, splat3(&mode[1]), d);
            }
            (turn, slide, dw, d)
        }
    };
    // The origin translates in the parent, which rotates with w, along directions that rotate with the node.
    let own = add(w, turn);
    Motion { w: own, dw: cross_add(w, turn, dw), d: cross_add(add(w, own), slide, d) }
}

/// Computes the inertial wrench `[moment, force]` of a single node.
#[inline(always)]
fn wrench<L: Lane>(node: &Node, m: &Motion<L>) -> [Vec3<L>; 2] {
    let zero = L::splat(0.0);
    if node.massless {
        return [[zero; 3]; 2];
    }
    if node.spin {
        let spin = L::splat(node.rotational[2][2]);
        let swing = spin * m.w[2];
        return [[m.w[1] * swing, -(m.w[0] * swing), m.dw[2] * spin], [zero; 3]];
    }
    let h = splat3(&node.first_moment);
    let i = [splat3(&node.rotational[0]), splat3(&node.rotational[1]), splat3(&node.rotational[2])];
    let force = scale_add(L::splat(node.mass), m.d, cross_add(m.dw, h, cross(m.w, cross(m.w, h))));
    let moment = cross_add(h, m.d, cross_add(m.w, tr_mul(&i, m.w), tr_mul(&i, m.dw)));
    [moment, force]
}

/// Runs the algorithm: outward for motions, inward for wrenches. The sines and cosines must have been computed.
#[inline(always)]
pub(crate) fn run<L: Lane>(
    tables: &Tables,
    memory: &mut Memory<L::Memory>,
    q: &[L::Memory],
    v: &[L::Memory],
    a: &[L::Memory],
    tau: &mut [L::Memory],
) {
    let states = &mut memory.states[..];
    ground::<L>(tables, &mut states[0]);
    for (k, node) in tables.nodes.iter().enumerate() {
        let parent = Motion::<L>::load(&states[node.parent]);
        let (rotation, origin) = place::<L>(node, &memory.sin, &memory.cos, q);
        let motion = advance(tables, node, &rotation, origin, &parent, v, a);
        let [moment, force] = wrench(node, &motion);
        let state = &mut states[k + 1];
        motion.store(state);
        store3(rotation[0], &mut state.rotation[0]);
        store3(rotation[1], &mut state.rotation[1]);
        store3(rotation[2], &mut state.rotation[2]);
        store3(origin, &mut state.origin);
        store3(moment, &mut state.moment);
        store3(force, &mut state.force);
    }
    for ((tau, armature), a) in tau.iter_mut().zip(&tables.armature).zip(a) {
        (L::splat(*armature) * L::load(a)).store(tau);
    }
    for (k, node) in tables.nodes.iter().enumerate().rev() {
        let state = &states[k + 1];
        let (moment, force) = (load3::<L>(&state.moment), load3::<L>(&state.force));
        let modes = &tables.modes[node.modes.start..node.modes.end];
        let tau = &mut tau[node.v..];
        match node.kind {
            Kind::Revolute => accumulate(dot(splat3(&modes[0][0]), moment), &mut tau[0]),
            Kind::Prismatic => accumulate(dot(splat3(&modes[0][1]), force), &mut tau[0]),
            Kind::Free => {
                for i in 0..3 {
                    accumulate(force[i], &mut tau[i]);
                    accumulate(moment[i], &mut tau[3 + i]);
                }
            }
            Kind::General => {
                for (mode, tau) in modes.iter().zip(tau) {
                    accumulate(dot(splat3(&mode[0]), moment) + dot(splat3(&mode[1]), force), tau);
                }
            }
        }
        if node.parent > 0 {
            let rotation = [
                load3::<L>(&state.rotation[0]),
                load3::<L>(&state.rotation[1]),
                load3::<L>(&state.rotation[2]),
            ];
            let origin = load3::<L>(&state.origin);
            let parent = &mut states[node.parent];
            let force = mul(&rotation, force);
            let moment = cross_add(origin, force, mul(&rotation, moment));
            store3(add(moment, load3::<L>(&parent.moment)), &mut parent.moment);
            store3(add(force, load3::<L>(&parent.force)), &mut parent.force);
        }
    }
}

/// Loads three numbers from index `k`.
#[inline(always)]
fn take3<L: Lane>(x: &[L::Memory], k: usize) -> Vec3<L> {
    [L::load(&x[k]), L::load(&x[k + 1]), L::load(&x[k + 2])]
}

#[inline(always)]
fn accumulate<L: Lane>(x: L, to: &mut L::Memory) {
    (L::load(to) + x).store(to);
}
