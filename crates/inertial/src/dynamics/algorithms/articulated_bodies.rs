//! Articulated-body algorithm in world axes, with each body about its own origin.
//!
//! The motion consists of angular velocity, angular acceleration and acceleration of the origin minus gravity, as in
//! inverse dynamics. The wrench on a body is linear in its accelerations, `[[A, B], [Bᵀ, C]] [ω̇, d] + bias`.

use crate::dynamics::algorithms::placement::{Placed, Placement, place, turn_inertia, turn_modes};
use crate::dynamics::algorithms::tree_constants::{BodyConstants, TreeConstants};
use crate::dynamics::displacement::Kind;
use crate::dynamics::simd::columns::{
    Columns, crossed, lanes, load_columns, singles, store_columns, stored, times, times_add, transposed,
};
use crate::dynamics::simd::vector::{Vec3, add, cross, cross_add, dot, scale_add};
use crate::dynamics::simd::{Four, Lane, Single, Wide};
use crate::linalg::{ldl, ldl_solve};
use crate::mechanism::Mechanism;
use crate::spatial::{Motion, Pose};

/// Ratio of an articulated inertia to the terms whose difference it is, below which it is a rounding error.
///
/// Rounding errors are about 1e-15; a light link between heavy ones gives 1e-9 at worst.
pub(crate) const SINGULAR: f64 = 1e-13;

/// Scratch memory of forward dynamics.
#[derive(Debug, Clone)]
pub(crate) struct ArticulatedScratch {
    /// States of the bodies; the first is the ground.
    states: Vec<BodyState>,
    /// Wrench `[moment, force]` per unit acceleration of each mode.
    columns: Vec<[Four; 2]>,
    /// Factors `L D Lᵀ` of the inertia along the modes of each body.
    factors: Vec<[f64; 36]>,
    /// Inertia of each velocity coordinate before the contribution of outer joint motions is subtracted.
    scale: Vec<f64>,
    /// Diagonal and entries of the mass matrix; the entries are used only for coupled mechanisms.
    pub diagonal: Vec<f64>,
    pub mass_matrix: Vec<f64>,
}

/// Motion of a body and its articulated inertia.
#[derive(Debug, Clone, Copy, Default)]
struct BodyState {
    /// Angular velocity, and velocity of the origin.
    w: Four,
    velocity: Four,
    /// Accelerations relative to the parent that are due to velocities alone.
    dw_rest: Four,
    d_rest: Four,
    /// Angular acceleration, and acceleration of the origin minus gravity.
    dw: Four,
    d: Four,
    /// Blocks `A` and `C` (symmetric), and `B` by rows.
    angular: [Four; 3],
    cross: [Four; 3],
    linear: [Four; 3],
    /// Wrench at zero accelerations.
    moment: Four,
    force: Four,
}

impl ArticulatedScratch {
    pub fn new(mechanism: &Mechanism, constants: &TreeConstants) -> Self {
        Self {
            states: vec![BodyState::default(); constants.bodies.len() + 1],
            columns: vec![[Four::default(); 2]; constants.modes.len()],
            factors: vec![[0.0; 36]; constants.bodies.len()],
            scale: vec![0.0; mechanism.nv()],
            diagonal: vec![0.0; mechanism.nv()],
            mass_matrix: Vec::new(),
        }
    }

    pub fn nv(&self) -> usize {
        self.diagonal.len()
    }
}

/// State of the coordinates, their forces, and their armature.
pub(crate) struct Inputs<'a> {
    pub q: &'a [f64],
    pub v: &'a [f64],
    pub tau: &'a [f64],
    pub armature: &'a [f64],
}

/// Accelerations of the coordinates, and motions of the bodies in their own frames.
pub(crate) struct Outputs<'a> {
    pub a: &'a mut [f64],
    pub in_world: &'a mut [Pose<f64>],
    pub velocity: &'a mut [Motion<f64>],
    pub acceleration: &'a mut [Motion<f64>],
    /// Coordinate without inertia, with its pivot.
    pub failure: Option<(usize, f64)>,
}

/// Computes accelerations from forces.
#[inline(always)]
pub(crate) fn run<L: Single>(
    constants: &TreeConstants,
    placement: &mut Placement,
    scratch: &mut ArticulatedScratch,
    inputs: &Inputs<'_>,
    outputs: &mut Outputs<'_>,
) {
    place::<L>(constants, placement, inputs.q, outputs.in_world, &mut []);
    let Placement { placed, modes, .. } = placement;
    let [x, y, z, _] = constants.gravity.0;
    scratch.states[0].d = Four([-x, -y, -z, 0.0]);
    outward::<L>(constants, placed, modes, &mut scratch.states, inputs.v);
    outputs.failure = inward::<L>(constants, placed, modes, scratch, inputs, outputs.a);
    if outputs.failure.is_none() {
        accelerate::<L>(constants, placed, modes, scratch, outputs);
    }
}

/// Computes velocities, inertias of the single bodies and velocity-dependent wrenches.
#[inline(always)]
fn outward<L: Single>(
    constants: &TreeConstants,
    placed: &[Placed],
    modes: &mut [[Four; 2]],
    states: &mut [BodyState],
    v: &[f64],
) {
    for (i, body) in constants.bodies.iter().enumerate() {
        let here = &placed[i + 1];
        turn_modes::<L::Wide>(constants, body, &load_columns(&here.axes), modes);
        let parent = &states[body.parent];
        let (above, carried) = (singles::<L>(&parent.w), singles::<L>(&parent.velocity));
        let [spin, slide] = joint_motion::<L>(body, modes, v);
        let swing = cross(above, singles(&here.lever));
        let w = add(above, spin);
        let (rotational, first_moment) = turn_inertia::<L::Wide>(body, here);
        let (w_lanes, h) = (lanes(w), stored(first_moment));
        let momentum = singles(&stored(times(&rotational, &w_lanes)));
        let state = &mut states[i + 1];
        state.w = w_lanes;
        state.velocity = lanes(add(carried, add(swing, slide)));
        state.dw_rest = lanes(cross(above, spin));
        state.d_rest = lanes(cross_add(above, swing, cross(add(above, w), slide)));
        state.moment = lanes(cross(w, momentum));
        state.force = lanes(cross(w, cross(w, singles(&h))));
        store_columns(rotational, &mut state.angular);
        let [x, y, z, _] = h.0;
        state.cross = [Four([0.0, -z, y, 0.0]), Four([z, 0.0, -x, 0.0]), Four([-y, x, 0.0, 0.0])];
        for k in 0..3 {
            state.linear[k] = Four::default();
            state.linear[k].0[k] = body.mass;
        }
    }
}

/// Computes the angular and linear motion of a joint for the velocities `v` (or accelerations) of its coordinates.
#[inline(always)]
fn joint_motion<L: Single>(body: &BodyConstants, modes: &[[Four; 2]], v: &[f64]) -> [Vec3<L>; 2] {
    let zero = [L::splat(0.0); 3];
    let (mut spin, mut slide) = (zero, zero);
    for k in 0..body.mode_count {
        let (rate, mode) = (L::load(&v[body.v + k]), &modes[body.mode + k]);
        if body.kind != Kind::Prismatic {
            spin = scale_add(rate, singles(&mode[0]), spin);
        }
        if body.kind != Kind::Revolute {
            slide = scale_add(rate, singles(&mode[1]), slide);
        }
    }
    [spin, slide]
}

/// Computes the power of the wrench `[moment, force]` along a mode.
#[inline(always)]
fn power<L: Single>(kind: Kind, mode: &[Four; 2], moment: Vec3<L>, force: Vec3<L>) -> f64 {
    let product = match kind {
        Kind::Revolute => dot(singles(&mode[0]), moment),
        Kind::Prismatic => dot(singles(&mode[1]), force),
        Kind::Free | Kind::General => dot(singles(&mode[0]), moment) + dot(singles(&mode[1]), force),
    };
    let mut out = 0.0;
    product.store(&mut out);
    out
}

/// Computes articulated inertias; leaves in `a` the accelerations of the joints for parents without acceleration.
#[inline(always)]
fn inward<L: Single>(
    constants: &TreeConstants,
    placed: &[Placed],
    modes: &[[Four; 2]],
    scratch: &mut ArticulatedScratch,
    inputs: &Inputs<'_>,
    a: &mut [f64],
) -> Option<(usize, f64)> {
    let ArticulatedScratch { states, columns, factors, scale, .. } = scratch;
    scale.fill(0.0);
    for (i, body) in constants.bodies.iter().enumerate().rev() {
        let (n, first) = (body.mode_count, body.v);
        let state = &states[i + 1];
        let modes_here = &modes[body.mode..body.mode + n];
        let columns = &mut columns[body.mode..body.mode + n];
        for (column, mode) in columns.iter_mut().zip(modes_here) {
            *column = apply::<L::Wide>(body.kind, state, mode);
        }
        let (moment, force) = (singles::<L>(&state.moment), singles::<L>(&state.force));
        let factor = &mut factors[i];
        for k in 0..n {
            for l in 0..=k {
                let [moment, force] = &columns[l];
                factor[k * n + l] = power::<L>(body.kind, &modes_here[k], singles(moment), singles(force));
            }
            factor[k * n + k] += inputs.armature[first + k];
            // Size of the terms whose difference is the pivot.
            scale[first + k] += factor[k * n + k];
            a[first + k] = inputs.tau[first + k] - power(body.kind, &modes_here[k], moment, force);
        }
        if let Err(k) = ldl(factor, n, |k| SINGULAR * scale[first + k].abs()) {
            return Some((first + k, factor[k * n + k]));
        }
        ldl_solve(factor, n, &mut a[first..first + n]);
        if body.parent > 0 {
            let lever = &placed[i + 1].lever;
            let above = &constants.bodies[body.parent - 1];
            let mut removed = [[Four::default(); 2]; 6];
            independent::<L::Wide>(columns, factor, &mut removed);
            for (k, [moment, force]) in removed[..n].iter().enumerate() {
                let (moment, force) = (singles::<L>(moment), singles::<L>(force));
                let moment = cross_add(singles(lever), force, moment);
                for l in 0..above.mode_count {
                    let share = power(above.kind, &modes[above.mode + l], moment, force);
                    scale[above.v + l] += share * share / factor[k * n + k];
                }
            }
            let mut apparent = states[i + 1];
            release::<L>(&mut apparent, columns, &removed[..n], factor, &a[first..first + n]);
            carry::<L>(&apparent, lever, &mut states[body.parent]);
        }
    }
    None
}

/// Computes the wrench that accelerates an articulated body along a mode.
#[inline(always)]
fn apply<W: Wide>(kind: Kind, state: &BodyState, mode: &[Four; 2]) -> [Four; 2] {
    let cross: Columns<W> = load_columns(&state.cross);
    let zero = W::splat(0.0);
    let (mut moment, mut force) = (zero, zero);
    if kind != Kind::Prismatic {
        moment = times(&load_columns(&state.angular), &mode[0]);
        force = times(&cross, &mode[0]);
    }
    if kind != Kind::Revolute {
        moment = times_add(&transposed(cross), &mode[1], moment);
        force = times_add(&load_columns(&state.linear), &mode[1], force);
    }
    [stored(moment), stored(force)]
}

/// Computes the decoupled columns of `U L⁻ᵀ`: with `D = L d Lᵀ` the motion of the joint subtracts `u uᵀ/d` for each of
/// them.
#[inline(always)]
fn independent<W: Wide>(columns: &[[Four; 2]], factor: &[f64; 36], to: &mut [[Four; 2]; 6]) {
    let n = columns.len();
    for k in 0..n {
        for part in 0..2 {
            let mut column = W::load(&columns[k][part]);
            for l in 0..k {
                column = W::splat(factor[k * n + l]).neg_mul_add(W::load(&to[l][part]), column);
            }
            column.store(&mut to[k][part]);
        }
    }
}

/// Releases the joint of a body: computes inertia and wrench as transmitted to the parent, still about the origin of
/// the body.
#[inline(always)]
fn release<L: Single>(
    state: &mut BodyState,
    columns: &[[Four; 2]],
    removed: &[[Four; 2]],
    factor: &[f64; 36],
    a: &[f64],
) {
    let n = columns.len();
    let mut angular: Columns<L::Wide> = load_columns(&state.angular);
    let mut across: Columns<L::Wide> = load_columns(&state.cross);
    let mut linear: Columns<L::Wide> = load_columns(&state.linear);
    for (k, [moment, force]) in removed.iter().enumerate() {
        let inverse = factor[k * n + k].recip();
        let (u, f) = (L::Wide::load(moment), L::Wide::load(force));
        for j in 0..3 {
            let (turn, push) = (L::Wide::splat(moment.0[j] * inverse), L::Wide::splat(force.0[j] * inverse));
            angular[j] = turn.neg_mul_add(u, angular[j]);
            across[j] = turn.neg_mul_add(f, across[j]);
            linear[j] = push.neg_mul_add(f, linear[j]);
        }
    }
    let (mut moment, mut force) = (L::Wide::load(&state.moment), L::Wide::load(&state.force));
    for (column, a) in columns.iter().zip(a) {
        moment = L::Wide::splat(*a).mul_add(L::Wide::load(&column[0]), moment);
        force = L::Wide::splat(*a).mul_add(L::Wide::load(&column[1]), force);
    }
    moment = times_add(&angular, &state.dw_rest, times_add(&transposed(across), &state.d_rest, moment));
    force = times_add(&across, &state.dw_rest, times_add(&linear, &state.d_rest, force));
    moment.store(&mut state.moment);
    force.store(&mut state.force);
    store_columns(angular, &mut state.angular);
    store_columns(across, &mut state.cross);
    store_columns(linear, &mut state.linear);
}

/// Adds inertia and wrench of a body to those of its parent, about the origin of the parent.
#[inline(always)]
fn carry<L: Single>(from: &BodyState, lever: &Four, to: &mut BodyState) {
    let linear: Columns<L::Wide> = load_columns(&from.linear);
    let cross: Columns<L::Wide> = load_columns(&from.cross);
    let angular: Columns<L::Wide> = load_columns(&from.angular);
    // B' = B + [d]× C, and A' = A + P + Pᵀ where the rows of P are d × (B + [d]× C/2).
    let lifted = crossed(lever, &linear);
    let half = L::Wide::splat(0.5);
    let middle = transposed([
        half.mul_add(lifted[0], cross[0]),
        half.mul_add(lifted[1], cross[1]),
        half.mul_add(lifted[2], cross[2]),
    ]);
    let columns = crossed(lever, &middle);
    let rows = transposed(columns);
    for k in 0..3 {
        (L::Wide::load(&to.linear[k]) + linear[k]).store(&mut to.linear[k]);
        (L::Wide::load(&to.cross[k]) + (cross[k] + lifted[k])).store(&mut to.cross[k]);
        (L::Wide::load(&to.angular[k]) + (angular[k] + (columns[k] + rows[k]))).store(&mut to.angular[k]);
    }
    let force = singles::<L>(&from.force);
    let moment = cross_add(singles(lever), force, singles(&from.moment));
    to.moment = lanes(add(singles(&to.moment), moment));
    to.force = lanes(add(singles(&to.force), force));
}

/// Computes accelerations from the ground outward, and all motions in the body frames.
#[inline(always)]
fn accelerate<L: Single>(
    constants: &TreeConstants,
    placed: &[Placed],
    modes: &[[Four; 2]],
    scratch: &mut ArticulatedScratch,
    outputs: &mut Outputs<'_>,
) {
    let a = &mut *outputs.a;
    let gravity = singles::<L>(&constants.gravity);
    for (i, body) in constants.bodies.iter().enumerate() {
        let here = &placed[i + 1];
        let parent = &scratch.states[body.parent];
        let turning = singles::<L>(&parent.dw);
        let carried = cross_add(turning, singles(&here.lever), singles(&parent.d));
        let state = &mut scratch.states[i + 1];
        let dw = add(turning, singles(&state.dw_rest));
        let d = add(carried, singles(&state.d_rest));
        let mut given = [0.0; 6];
        let n = body.mode_count;
        for (x, [moment, force]) in given.iter_mut().zip(&scratch.columns[body.mode..body.mode + n]) {
            (dot(singles(moment), dw) + dot(singles(force), d)).store(x);
        }
        ldl_solve(&scratch.factors[i], n, &mut given);
        for (a, x) in a[body.v..body.v + n].iter_mut().zip(given) {
            *a -= x;
        }
        let [spun, slid] = joint_motion::<L>(body, modes, a);
        let (dw, d) = (add(dw, spun), add(d, slid));
        (state.dw, state.d) = (lanes(dw), lanes(d));
        let (w, velocity) = (singles::<L>(&state.w), singles::<L>(&state.velocity));
        // Derivative of the twist: the acceleration of the body-fixed point minus ω × v.
        let linear = add(add(d, gravity), cross(velocity, w));
        let axes = &here.axes;
        outputs.velocity[i] = in_frame(axes, w, velocity);
        outputs.acceleration[i] = in_frame(axes, dw, linear);
    }
}

/// Transforms a motion to the axes of a body.
#[inline(always)]
fn in_frame<L: Single>(axes: &[Four; 3], angular: Vec3<L>, linear: Vec3<L>) -> Motion<f64> {
    let mut out = Motion::zero();
    for (k, axis) in axes.iter().enumerate() {
        dot(singles(axis), angular).store(&mut out.angular[k]);
        dot(singles(axis), linear).store(&mut out.linear[k]);
    }
    out
}
