//! Inverse dynamics: the recursive Newton–Euler algorithm in body coordinates.
//!
//! The recursion carries the angular velocity `ω`, the angular acceleration `ω̇` and the acceleration `d` of the frame's
//! origin less gravity (Luh, Walker and Paul 1980): the velocity of the origin is never needed.

use super::inverse::{InverseDynamics, Kind, Memory, Node, State, Turn};
use super::simd::{
    Lane, Mat3, Vec3, add, cross, cross_add, dot, load3, mul, scale, scale_add, splat3, store3, tr_mul,
};

/// The motion that one step outward starts from or leads to.
#[derive(Clone, Copy)]
pub(super) struct Motion<L> {
    pub w: Vec3<L>,
    pub dw: Vec3<L>,
    pub d: Vec3<L>,
}

impl<L: Lane> Motion<L> {
    #[inline(always)]
    pub fn load(state: &State<L::Memory>) -> Self {
        Self { w: load3::<L>(&state.w), dw: load3::<L>(&state.dw), d: load3::<L>(&state.d) }
    }

    #[inline(always)]
    pub fn store(self, state: &mut State<L::Memory>) {
        store3(self.w, &mut state.w);
        store3(self.dw, &mut state.dw);
        store3(self.d, &mut state.d);
    }
}

/// Makes the ground accelerate against gravity.
#[inline(always)]
pub(super) fn ground<L: Lane>(dynamics: &InverseDynamics, state: &mut State<L::Memory>) {
    let zero = [L::splat(0.0); 3];
    let d = splat3(&dynamics.gravity.map(|g| -g));
    Motion::<L> { w: zero, dw: zero, d }.store(state);
}

/// The frame of a node in its parent.
#[inline(always)]
pub(super) fn place<L: Lane>(node: &Node, turns: &[[L::Memory; 2]], q: &[L::Memory]) -> (Mat3<L>, Vec3<L>) {
    let [f, g, h] = &node.rotations;
    let rotation = match node.turn {
        Turn::Constant => [splat3(&h[0]), splat3(&h[1]), splat3(&h[2])],
        Turn::Angle(k) => {
            let (s, c) = (L::load(&turns[k][0]), L::load(&turns[k][1]));
            std::array::from_fn(|i| scale_add(c, splat3(&f[i]), scale_add(s, splat3(&g[i]), splat3(&h[i]))))
        }
        Turn::Quaternion(k) => {
            let r = quaternion([L::load(&q[k]), L::load(&q[k + 1]), L::load(&q[k + 2]), L::load(&q[k + 3])]);
            std::array::from_fn(|i| tr_mul(&r, splat3(&h[i])))
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

/// Rotation of a quaternion `x y z w` of any length.
#[inline(always)]
fn quaternion<L: Lane>([x, y, z, w]: [L; 4]) -> Mat3<L> {
    let one = L::splat(1.0);
    let n = x.mul_add(x, y.mul_add(y, z.mul_add(z, w * w)));
    let s = L::splat(2.0) / n.one_where_zero();
    let (sx, sy, sz) = (s * x, s * y, s * z);
    [
        [sz.neg_mul_add(z, sy.neg_mul_add(y, one)), sz.neg_mul_add(w, sx * y), sy.mul_add(w, sx * z)],
        [sz.mul_add(w, sx * y), sz.neg_mul_add(z, sx.neg_mul_add(x, one)), sx.neg_mul_add(w, sy * z)],
        [sy.neg_mul_add(w, sx * z), sx.mul_add(w, sy * z), sy.neg_mul_add(y, sx.neg_mul_add(x, one))],
    ]
}

/// One step outward: the motion of a node from its parent's.
#[inline(always)]
pub(super) fn advance<L: Lane>(
    dynamics: &InverseDynamics,
    node: &Node,
    rotation: &Mat3<L>,
    origin: Vec3<L>,
    parent: &Motion<L>,
    v: &[L::Memory],
    a: &[L::Memory],
) -> Motion<L> {
    let carried = cross_add(parent.dw, origin, cross_add(parent.w, cross(parent.w, origin), parent.d));
    let (w, dw, d) = (tr_mul(rotation, parent.w), tr_mul(rotation, parent.dw), tr_mul(rotation, carried));
    let modes = &dynamics.modes[node.modes.clone()];
    let (rate, acceleration) = (L::load(&v[node.v]), L::load(&a[node.v]));
    match node.kind {
        Kind::Revolute | Kind::Spin => {
            let axis = splat3(&modes[0][0]);
            let turn = scale(rate, axis);
            Motion { w: add(w, turn), dw: cross_add(w, turn, scale_add(acceleration, axis, dw)), d }
        }
        Kind::Prismatic => {
            let axis = splat3(&modes[0][1]);
            let coriolis = scale(rate + rate, axis);
            Motion { w, dw, d: cross_add(w, coriolis, scale_add(acceleration, axis, d)) }
        }
        Kind::General => {
            let (mut turn, mut slide) = ([L::splat(0.0); 3], [L::splat(0.0); 3]);
            let (mut dw, mut d) = (dw, d);
            for (k, mode) in modes.iter().enumerate() {
                let (rate, acceleration) = (L::load(&v[node.v + k]), L::load(&a[node.v + k]));
                turn = scale_add(rate, splat3(&mode[0]), turn);
                slide = scale_add(rate, splat3(&mode[1]), slide);
                dw = scale_add(acceleration, splat3(&mode[0]), dw);
                d = scale_add(acceleration, splat3(&mode[1]), d);
            }
            let own = add(w, turn);
            // The origin slides in the parent, which turns with w, along directions that turn with own.
            Motion { w: own, dw: cross_add(w, turn, dw), d: cross_add(add(w, own), slide, d) }
        }
    }
}

/// The wrench `[moment, force]` that a node's own inertia needs.
#[inline(always)]
fn wrench<L: Lane>(node: &Node, m: &Motion<L>) -> [Vec3<L>; 2] {
    let zero = L::splat(0.0);
    if node.massless {
        return [[zero; 3]; 2];
    }
    if node.kind == Kind::Spin {
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

/// Sines and cosines of all angles.
#[inline(always)]
pub(super) fn turn(dynamics: &InverseDynamics, turns: &mut [[f64; 2]], q: &[f64]) {
    for (turn, angle) in turns.iter_mut().zip(&dynamics.angles) {
        let (s, c) = (angle.ratio * q[angle.q] + angle.offset).sin_cos();
        *turn = [s, c];
    }
}

/// The algorithm: outward for motions, inward for wrenches. `turns` holds sines and cosines already.
#[inline(always)]
pub(super) fn run<L: Lane<Memory = f64>>(
    dynamics: &InverseDynamics,
    memory: &mut Memory<f64>,
    q: &[f64],
    v: &[f64],
    a: &[f64],
    tau: &mut [f64],
) {
    turn(dynamics, &mut memory.turns, q);
    let states = &mut memory.states[..];
    ground::<L>(dynamics, &mut states[0]);
    for (k, node) in dynamics.nodes.iter().enumerate() {
        let parent = Motion::<L>::load(&states[node.parent]);
        let (rotation, origin) = place::<L>(node, &memory.turns, q);
        let motion = advance(dynamics, node, &rotation, origin, &parent, v, a);
        let [moment, force] = wrench(node, &motion);
        let state = &mut states[k + 1];
        motion.store(state);
        for i in 0..3 {
            store3(rotation[i], &mut state.rotation[i]);
        }
        store3(origin, &mut state.origin);
        store3(moment, &mut state.moment);
        store3(force, &mut state.force);
    }
    for ((tau, armature), a) in tau.iter_mut().zip(&dynamics.armature).zip(a) {
        *tau = armature * a;
    }
    for (k, node) in dynamics.nodes.iter().enumerate().rev() {
        let state = &states[k + 1];
        let (moment, force) = (load3::<L>(&state.moment), load3::<L>(&state.force));
        for (j, mode) in dynamics.modes[node.modes.clone()].iter().enumerate() {
            let power = dot(splat3(&mode[0]), moment) + dot(splat3(&mode[1]), force);
            (L::load(&tau[node.v + j]) + power).store(&mut tau[node.v + j]);
        }
        if node.parent > 0 {
            let rotation: Mat3<L> = std::array::from_fn(|i| load3::<L>(&state.rotation[i]));
            let origin = load3::<L>(&state.origin);
            let parent = &mut states[node.parent];
            let force = mul(&rotation, force);
            let moment = cross_add(origin, force, mul(&rotation, moment));
            store3(add(moment, load3::<L>(&parent.moment)), &mut parent.moment);
            store3(add(force, load3::<L>(&parent.force)), &mut parent.force);
        }
    }
}
