//! The torque regressor in body coordinates.
//!
//! Each coordinate's mode is carried outward along the tree; where it meets a body, its row of that body's ten columns
//! is a closed form in the body's motion. Cost: proportional to the number of (coordinate, body moved by it) pairs.

use super::inverse::{InverseDynamics, Kind, Memory};
use super::rnea::{Motion, advance, ground, place, turn};
use super::simd::{Lane, Vec3, add, cross_add, dot, load3, splat3, store3, tr_mul};

/// What the ten columns of a body need of its motion.
struct Columns<L> {
    d: Vec3<L>,
    /// Rows of `B = [ω̇]× + [ω]×²`.
    b: [Vec3<L>; 3],
    /// Moment of each entry of the inertia tensor.
    inertia: [Vec3<L>; 6],
}

impl<L: Lane> Columns<L> {
    #[inline(always)]
    fn new(m: &Motion<L>) -> Self {
        let [x, y, z] = m.w;
        let [ax, ay, az] = m.dw;
        let (xx, yy, zz) = (x * x, y * y, z * z);
        let (xy, xz, yz) = (x * y, x * z, y * z);
        let b =
            [[-(yy + zz), xy - az, xz + ay], [xy + az, -(xx + zz), yz - ax], [xz - ay, yz + ax, -(xx + yy)]];
        // ∂/∂I of I ω̇ + ω × I ω; the off-diagonal columns repeat entries of B.
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

    /// The row of the mode `[z; l]`: `l · force + z · moment` for each of the ten parameters.
    #[inline(always)]
    fn row(&self, z: Vec3<L>, l: Vec3<L>, out: &mut [L::Memory]) {
        let first = cross_add(self.d, z, tr_mul(&self.b, l));
        dot(l, self.d).store(&mut out[0]);
        for k in 0..3 {
            first[k].store(&mut out[1 + k]);
        }
        for k in 0..6 {
            dot(z, self.inertia[k]).store(&mut out[4 + k]);
        }
    }
}

/// Fills the nonzero entries of `out`.
#[inline(always)]
pub(super) fn run<L: Lane<Memory = f64>>(
    dynamics: &InverseDynamics,
    memory: &mut Memory<f64>,
    q: &[f64],
    v: &[f64],
    a: &[f64],
    out: &mut [f64],
) {
    turn(dynamics, &mut memory.turns, q);
    let states = &mut memory.states[..];
    ground::<L>(dynamics, &mut states[0]);
    for (k, node) in dynamics.nodes.iter().enumerate() {
        let parent = Motion::<L>::load(&states[node.parent]);
        let (rotation, origin) = place::<L>(node, &memory.turns, q);
        let motion = advance(dynamics, node, &rotation, origin, &parent, v, a);
        motion.store(&mut states[k + 1]);
        let columns = Columns::new(&motion);
        let mut write = |pair: usize, z: Vec3<L>, l: Vec3<L>| match node.parameters {
            0 => {}
            1 => {
                debug_assert!(node.kind == Kind::Spin);
                dot(z, columns.inertia[5]).store(&mut out[dynamics.pairs[node.pairs + pair].dense]);
            }
            _ => {
                let start = dynamics.pairs[node.pairs + pair].dense;
                columns.row(z, l, &mut out[start..start + 10]);
            }
        };
        let modes = &dynamics.modes[node.modes.clone()];
        for e in 0..node.carried_count {
            let [z, l] = &memory.carried[node.carried_from + e];
            let (z, l) = (load3::<L>(z), load3::<L>(l));
            let l = cross_add(z, origin, l);
            let (mut z, mut l) = (tr_mul(&rotation, z), tr_mul(&rotation, l));
            if node.merge == Some(e) {
                z = add(z, splat3(&modes[0][0]));
                l = add(l, splat3(&modes[0][1]));
            }
            if node.carries {
                let to = &mut memory.carried[node.carried_to + e];
                store3(z, &mut to[0]);
                store3(l, &mut to[1]);
            }
            write(e, z, l);
        }
        if node.merge.is_none() {
            for (j, mode) in modes.iter().enumerate() {
                let e = node.carried_count + j;
                let (z, l) = (splat3(&mode[0]), splat3(&mode[1]));
                if node.carries {
                    let to = &mut memory.carried[node.carried_to + e];
                    store3::<L>(z, &mut to[0]);
                    store3::<L>(l, &mut to[1]);
                }
                write(e, z, l);
            }
        }
    }
}
