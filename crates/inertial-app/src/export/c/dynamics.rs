//! Inverse dynamics and regressor as symbolic expressions.
//!
//! The recursion propagates the angular velocity, the angular acceleration and the acceleration of the frame origin
//! minus gravity, in body coordinates.

use std::collections::BTreeMap;

use inertial::mechanism::{Body, JointType, Mechanism, plane_directions};
use inertial::nalgebra::{Matrix3, Vector3};
use inertial::spatial::skew;

use super::graph::{Array, Graph, Matrix, Value, Vector, transposed};

/// Magnitude below which entries of rotations and axes are rounding errors of zero.
const ROUNDING: f64 = 1e-15;

/// State of the robot: moving or at rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mobility {
    Moving,
    Resting,
}

/// Motion of a body in its own coordinates.
#[derive(Clone, Copy)]
struct Motion {
    w: Vector,
    dw: Vector,
    d: Vector,
}

/// Free mode or wrench: angular part, linear part.
type Pair = [Vector; 2];

/// Body with its motion.
struct Moved {
    parent: Option<usize>,
    rotation: Matrix,
    origin: Vector,
    /// Free modes of the joint of the body, by coordinate.
    modes: Vec<(usize, Pair)>,
    motion: Motion,
}

/// Symbolic state of all bodies.
pub(super) struct Bodies<'m> {
    graph: Graph,
    mechanism: &'m Mechanism,
    moved: Vec<Moved>,
}

fn clean(x: f64) -> f64 {
    let near = x.round();
    if (x - near).abs() < ROUNDING { near } else { x }
}

impl<'m> Bodies<'m> {
    /// Computes the motion of all bodies.
    pub(super) fn new(mechanism: &'m Mechanism, state: Mobility) -> Self {
        let mut out = Self { graph: Graph::default(), mechanism, moved: Vec::new() };
        for body in mechanism.bodies() {
            let moved = out.advance(body, state);
            out.moved.push(moved);
        }
        out
    }

    /// Returns the expressions.
    pub(super) fn graph(&self) -> &Graph {
        &self.graph
    }

    fn matrix(&mut self, m: &Matrix3<f64>) -> Matrix {
        std::array::from_fn(|i| std::array::from_fn(|j| self.graph.constant(clean(m[(i, j)]))))
    }

    fn rate(&mut self, state: Mobility, array: Array, index: usize) -> Value {
        match state {
            Mobility::Moving => self.graph.entry(array, index),
            Mobility::Resting => self.graph.constant(0.0),
        }
    }

    fn advance(&mut self, body: &Body, state: Mobility) -> Moved {
        let (rotation, origin) = self.place(body);
        let parent = if let Some(parent) = body.parent {
            self.moved[parent].motion
        } else {
            let (zero, gravity) = (self.graph.zeros(), self.mechanism.gravity());
            Motion { w: zero, dw: zero, d: self.graph.constants((-gravity).into()) }
        };
        let g = &mut self.graph;
        let turned = g.cross(parent.w, origin);
        let centripetal = g.cross(parent.w, turned);
        let tangential = g.cross(parent.dw, origin);
        let carried = g.add(tangential, centripetal);
        let carried = g.add(carried, parent.d);
        let w = g.apply_transposed(&rotation, parent.w);
        let mut dw = g.apply_transposed(&rotation, parent.dw);
        let mut d = g.apply_transposed(&rotation, carried);
        let (mut turn, mut slide) = (g.zeros(), g.zeros());
        let mut modes = Vec::new();
        for (k, mode) in body.joint_type.free_modes().iter().enumerate() {
            let coordinate = body.drive.v + k;
            let (v, a) = (
                self.rate(state, Array::Velocity, coordinate),
                self.rate(state, Array::Acceleration, coordinate),
            );
            let g = &mut self.graph;
            let part = |x: Vector3<f64>| <[f64; 3]>::from(x).map(|x| clean(x) * body.drive.ratio);
            let (angular, linear) = (g.constants(part(mode.angular)), g.constants(part(mode.linear)));
            for (sum, direction, rate) in
                [(&mut turn, angular, v), (&mut slide, linear, v), (&mut dw, angular, a), (&mut d, linear, a)]
            {
                let added = g.scaled(rate, direction);
                *sum = g.add(*sum, added);
            }
            modes.push((coordinate, [angular, linear]));
        }
        let g = &mut self.graph;
        // The origin slides in the parent, which rotates with w, along directions that rotate with the body.
        let own = g.add(w, turn);
        let swept = g.cross(w, turn);
        let both = g.add(w, own);
        let coriolis = g.cross(both, slide);
        let motion = Motion { w: own, dw: g.add(dw, swept), d: g.add(d, coriolis) };
        Moved { parent: body.parent, rotation, origin, modes, motion }
    }

    /// Returns the pose of the frame of the body in that of its parent.
    fn place(&mut self, body: &Body) -> (Matrix, Vector) {
        let base = body.placement.rotation;
        let q = body.drive.q;
        let position = |own: &mut Self, k: usize| {
            let x = own.graph.entry(Array::Position, q + k);
            if body.joint_type.nq() > 1 {
                return x;
            }
            let (ratio, offset) =
                (own.graph.constant(body.drive.ratio), own.graph.constant(body.drive.offset));
            let scaled = own.graph.product(ratio, x);
            own.graph.sum(scaled, offset)
        };
        let mut origin = self.graph.constants(body.placement.translation.into());
        let mut slide = |own: &mut Self, direction: Vector3<f64>, x: Value| {
            let direction = own.graph.constants(<[f64; 3]>::from(base * direction).map(clean));
            let moved = own.graph.scaled(x, direction);
            origin = own.graph.add(origin, moved);
        };
        let rotation = match body.joint_type {
            JointType::Revolute { axis } => {
                let angle = position(self, 0);
                self.turned(&base, &axis, angle)
            }
            JointType::Prismatic { axis } => {
                let x = position(self, 0);
                slide(self, axis, x);
                self.matrix(&base)
            }
            JointType::Helical { axis, pitch } => {
                let angle = position(self, 0);
                let pitch = self.graph.constant(pitch);
                let x = self.graph.product(pitch, angle);
                slide(self, axis, x);
                self.turned(&base, &axis, angle)
            }
            JointType::Cylindrical { axis } => {
                let (angle, x) = (position(self, 0), position(self, 1));
                slide(self, axis, x);
                self.turned(&base, &axis, angle)
            }
            JointType::Planar { normal } => {
                let [a, b] = plane_directions(&normal);
                let (x, y, angle) = (position(self, 0), position(self, 1), position(self, 2));
                slide(self, a, x);
                slide(self, b, y);
                self.turned(&base, &normal, angle)
            }
            JointType::Spherical => self.quaternion(&base, q),
            JointType::Floating => {
                for (k, axis) in [Vector3::x(), Vector3::y(), Vector3::z()].into_iter().enumerate() {
                    let x = position(self, k);
                    slide(self, axis, x);
                }
                self.quaternion(&base, q + 3)
            }
            // A built mechanism has neither type.
            JointType::Fixed | JointType::Universal { .. } => self.matrix(&base),
        };
        (rotation, origin)
    }

    /// Returns `base` times the rotation about an axis: `F cos + G sin + H`.
    fn turned(&mut self, base: &Matrix3<f64>, axis: &Vector3<f64>, angle: Value) -> Matrix {
        let still = base * axis * axis.transpose();
        let (f, s, h) =
            (self.matrix(&(base - still)), self.matrix(&(base * skew(axis))), self.matrix(&still));
        let g = &mut self.graph;
        let (sine, cosine) = (g.sine(angle), g.cosine(angle));
        std::array::from_fn(|i| {
            let (by_cosine, by_sine) = (g.scaled(cosine, f[i]), g.scaled(sine, s[i]));
            let both = g.add(by_cosine, by_sine);
            g.add(both, h[i])
        })
    }

    /// Returns `base` times the rotation of the quaternion `x y z w` at an index; the quaternion need not have unit length.
    fn quaternion(&mut self, base: &Matrix3<f64>, index: usize) -> Matrix {
        let base = self.matrix(base);
        let g = &mut self.graph;
        let [x, y, z, w] = std::array::from_fn(|k| g.entry(Array::Position, index + k));
        let (vector, square_w) = (g.dot([x, y, z], [x, y, z]), g.product(w, w));
        let length = g.sum(vector, square_w);
        let two = g.constant(2.0);
        let scale = g.quotient(two, length);
        let mut entry = |a: Value, b: Value, c: Value, d: Value, sign: bool| {
            let (left, right) = (g.product(a, b), g.product(c, d));
            let sum = if sign { g.sum(left, right) } else { g.difference(left, right) };
            g.product(scale, sum)
        };
        let squares = [entry(y, y, z, z, true), entry(x, x, z, z, true), entry(x, x, y, y, true)];
        let others = [
            [entry(x, y, z, w, false), entry(x, z, y, w, true)],
            [entry(x, y, z, w, true), entry(y, z, x, w, false)],
            [entry(x, z, y, w, false), entry(y, z, x, w, true)],
        ];
        let one = g.constant(1.0);
        let [a, b, c] = squares.map(|square| g.difference(one, square));
        let [r, s, t] = others;
        let turn: Matrix = [[a, r[0], r[1]], [s[0], b, s[1]], [t[0], t[1], c]];
        let columns = transposed(&turn);
        transposed(&columns.map(|column| g.apply(&base, column)))
    }

    /// Returns the rows of `B = [ω̇]× + [ω]×²`, which maps the first moment to its force.
    fn spread(&mut self, motion: &Motion) -> Matrix {
        let g = &mut self.graph;
        let ([x, y, z], [ax, ay, az]) = (motion.w, motion.dw);
        let [xx, yy, zz] = [x, y, z].map(|a| g.product(a, a));
        let (xy, xz, yz) = (g.product(x, y), g.product(x, z), g.product(y, z));
        let mut minus = |a: Value, b: Value| {
            let sum = g.sum(a, b);
            g.negative(sum)
        };
        let diagonal = [minus(yy, zz), minus(xx, zz), minus(xx, yy)];
        [
            [diagonal[0], g.difference(xy, az), g.sum(xz, ay)],
            [g.sum(xy, az), diagonal[1], g.difference(yz, ax)],
            [g.difference(xz, ay), g.sum(yz, ax), diagonal[2]],
        ]
    }

    /// Returns the torques and forces of all coordinates.
    pub(super) fn inverse_dynamics(&mut self, armature: &[f64], state: Mobility) -> Vec<Value> {
        let mut wrenches: Vec<Pair> = Vec::new();
        for (k, body) in self.mechanism.bodies().iter().enumerate() {
            let motion = self.moved[k].motion;
            let b = self.spread(&motion);
            let inertia = &body.inertia;
            let g = &mut self.graph;
            let (mass, h) = (g.constant(inertia.mass), g.constants(inertia.first_moment.into()));
            let weight = g.scaled(mass, motion.d);
            let inner = g.apply(&b, h);
            let force = g.add(weight, inner);
            let tensor: Matrix =
                std::array::from_fn(|i| std::array::from_fn(|j| g.constant(inertia.rotational[(i, j)])));
            let (momentum, change) = (g.apply(&tensor, motion.w), g.apply(&tensor, motion.dw));
            let gyroscopic = g.cross(motion.w, momentum);
            let lever = g.cross(h, motion.d);
            let moment = g.add(change, gyroscopic);
            wrenches.push([g.add(moment, lever), force]);
        }
        let mut tau: Vec<Value> = Vec::new();
        for (k, armature) in armature.iter().enumerate() {
            let (a, armature) = (self.rate(state, Array::Acceleration, k), self.graph.constant(*armature));
            tau.push(self.graph.product(armature, a));
        }
        let g = &mut self.graph;
        for (k, moved) in self.moved.iter().enumerate().rev() {
            let [moment, force] = wrenches[k];
            for (coordinate, [angular, linear]) in &moved.modes {
                let (turning, sliding) = (g.dot(*angular, moment), g.dot(*linear, force));
                let both = g.sum(turning, sliding);
                tau[*coordinate] = g.sum(tau[*coordinate], both);
            }
            let Some(parent) = moved.parent else { continue };
            let (force, moment) = (g.apply(&moved.rotation, force), g.apply(&moved.rotation, moment));
            let lever = g.cross(moved.origin, force);
            let moment = g.add(moment, lever);
            let [above_moment, above_force] = wrenches[parent];
            wrenches[parent] = [g.add(above_moment, moment), g.add(above_force, force)];
        }
        tau
    }

    /// Returns the nonzero entries of the given columns of the regressor: row, index in `columns`, value.
    pub(super) fn regressor(&mut self, columns: &[usize]) -> Vec<(usize, usize, Value)> {
        let mut out = Vec::new();
        // Modes of the coordinates that move a body, in its frame.
        let mut carried: Vec<BTreeMap<usize, Pair>> = Vec::new();
        for k in 0..self.moved.len() {
            let own = &self.moved[k];
            let g = &mut self.graph;
            let mut modes = BTreeMap::new();
            for (coordinate, [z, l]) in own.parent.map(|p| carried[p].clone()).unwrap_or_default() {
                let lever = g.cross(z, own.origin);
                let l = g.add(l, lever);
                let mode = [g.apply_transposed(&own.rotation, z), g.apply_transposed(&own.rotation, l)];
                modes.insert(coordinate, mode);
            }
            for (coordinate, [z, l]) in &own.modes {
                let mode = modes.get(coordinate).copied();
                let mode = mode.map_or([*z, *l], |[z0, l0]| [g.add(z0, *z), g.add(l0, *l)]);
                modes.insert(*coordinate, mode);
            }
            let block = self.mechanism.parameter_blocks().iter().find(|block| block.body == k);
            let wanted = block.map_or(Vec::new(), |block| {
                let inside = |c: &&usize| (block.offset..block.offset + block.len).contains(*c);
                let number = |c: &usize| c - block.offset + 10 - block.len;
                columns.iter().enumerate().filter(|(_, c)| inside(c)).map(|(p, c)| (p, number(c))).collect()
            });
            if !wanted.is_empty() {
                let motion = self.moved[k].motion;
                let wrenches = self.unit_wrenches(&motion);
                for (coordinate, [z, l]) in &modes {
                    for (place, number) in &wanted {
                        let [moment, force] = wrenches[*number];
                        let g = &mut self.graph;
                        let (turning, sliding) = (g.dot(*z, moment), g.dot(*l, force));
                        out.push((*coordinate, *place, g.sum(turning, sliding)));
                    }
                }
            }
            carried.push(modes);
        }
        out
    }

    /// Returns the moment and force of each of the ten parameters, with the value one.
    fn unit_wrenches(&mut self, motion: &Motion) -> [Pair; 10] {
        let b = self.spread(motion);
        let columns = transposed(&b);
        let g = &mut self.graph;
        let zero = g.zeros();
        let ([x, y, z], [dx, dy, dz]) = (motion.w, motion.d);
        let [ax, ay, az] = motion.dw;
        let [xx, yy, zz] = [x, y, z].map(|a| g.product(a, a));
        let (xy, xz, yz) = (g.product(x, y), g.product(x, z), g.product(y, z));
        let nil = g.constant(0.0);
        let [minus_dx, minus_dy, minus_dz] = [dx, dy, dz].map(|d| g.negative(d));
        let levers = [[nil, minus_dz, dy], [dz, nil, minus_dx], [minus_dy, dx, nil]];
        let [minus_xy, minus_xz, minus_yz] = [xy, xz, yz].map(|p| g.negative(p));
        // Derivatives of I ω̇ + ω × I ω; those with respect to products of inertia reuse entries of B.
        let moments = [
            [ax, xz, minus_xy],
            [g.negative(b[2][0]), b[2][1], g.difference(xx, yy)],
            [b[1][0], g.difference(zz, xx), g.negative(b[1][2])],
            [minus_yz, ay, xy],
            [g.difference(yy, zz), g.negative(b[0][1]), b[0][2]],
            [yz, minus_xz, az],
        ];
        std::array::from_fn(|k| match k {
            0 => [zero, motion.d],
            1..=3 => [levers[k - 1], columns[k - 1]],
            _ => [moments[k - 4], zero],
        })
    }
}
