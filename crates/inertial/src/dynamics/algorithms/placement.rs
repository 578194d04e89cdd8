//! Frames, modes and inertias of all bodies in world axes: the outward pass shared by the kernels of one configuration.
//!
//! All quantities use the axes of the world and the origins of the bodies. Nothing has to be rotated between bodies,
//! and no sum grows with the distance from the world origin.

use crate::dynamics::algorithms::tree_constants::{BodyConstants, TreeConstants};
use crate::dynamics::displacement::{Kind, Turn};
use crate::dynamics::inverse::rnea::{quaternion, turn_single};
use crate::dynamics::simd::columns::{Columns, load_columns, store_columns, stored, times};
use crate::dynamics::simd::{Four, Lane, Single, Wide};
use crate::spatial::Pose;

/// Frame of a body in world axes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Placed {
    /// Axes of the frame.
    pub axes: [Four; 3],
    /// Origin in the world.
    pub origin: Four,
    /// Vector from the origin of the parent to this origin.
    pub lever: Four,
}

/// Scratch memory of the outward pass.
#[derive(Debug, Clone)]
pub(crate) struct Placement {
    /// Sines and cosines of the angles.
    sin: Vec<f64>,
    cos: Vec<f64>,
    /// Frames of the bodies; the first is the ground.
    pub placed: Vec<Placed>,
    /// Free modes `[angular, linear]` in world axes; the linear part of a hinge and the angular part of a slide stay
    /// zero.
    pub modes: Vec<[Four; 2]>,
}

/// Axes of the world.
pub(crate) const AXES: [Four; 3] =
    [Four([1.0, 0.0, 0.0, 0.0]), Four([0.0, 1.0, 0.0, 0.0]), Four([0.0, 0.0, 1.0, 0.0])];

impl Placement {
    pub fn new(constants: &TreeConstants) -> Self {
        let zero = Four::default();
        let angles = constants.angles.len().next_multiple_of(4);
        Self {
            sin: vec![0.0; angles],
            cos: vec![0.0; angles],
            placed: vec![Placed { axes: AXES, origin: zero, lever: zero }; constants.bodies.len() + 1],
            modes: vec![[zero; 2]; constants.modes.len()],
        }
    }

    /// Returns whether the memory has the sizes of a mechanism.
    pub fn fits(&self, constants: &TreeConstants) -> bool {
        self.placed.len() == constants.bodies.len() + 1
            && self.modes.len() == constants.modes.len()
            && self.sin.len() == constants.angles.len().next_multiple_of(4)
    }
}

/// Places all bodies at `q`. Writes their poses in the world to `in_world`, and those relative to their parents to
/// `in_parent` unless it is empty.
#[inline(always)]
pub(crate) fn place<L: Single>(
    constants: &TreeConstants,
    memory: &mut Placement,
    q: &[f64],
    in_world: &mut [Pose<f64>],
    in_parent: &mut [Pose<f64>],
) {
    turn_single::<L>(&constants.angles, &mut memory.sin, &mut memory.cos, q);
    for (i, body) in constants.bodies.iter().enumerate() {
        let mut turned = [Four::default(); 3];
        turn::<L>(body, memory, q, &mut turned);
        let mut origin = L::Wide::load(&body.origin);
        for k in 0..body.slide_count {
            let x = L::load(&q[body.slide_q + k]).mul_add(L::splat(body.ratio), L::splat(body.offset));
            let mut number = 0.0;
            x.store(&mut number);
            origin = L::Wide::splat(number).mul_add(L::Wide::load(&body.slides[k]), origin);
        }
        let origin = stored(origin);
        let parent = &memory.placed[body.parent];
        let axes: Columns<L::Wide> = load_columns(&parent.axes);
        let lever = times(&axes, &origin);
        let here = L::Wide::load(&parent.origin) + lever;
        let own = [times(&axes, &turned[0]), times(&axes, &turned[1]), times(&axes, &turned[2])];
        let placed = &mut memory.placed[i + 1];
        store_columns(own, &mut placed.axes);
        here.store(&mut placed.origin);
        lever.store(&mut placed.lever);
        write::<L::Wide>(&placed.axes, &placed.origin, &mut in_world[i]);
        if let Some(pose) = in_parent.get_mut(i) {
            write::<L::Wide>(&turned, &origin, pose);
        }
    }
}

/// Computes the rotation of a body relative to its parent, by columns.
#[inline(always)]
fn turn<L: Single>(body: &BodyConstants, memory: &Placement, q: &[f64], to: &mut [Four; 3]) {
    let [f, g, h] = &body.rotations;
    match body.turn {
        Turn::Constant => *to = *h,
        Turn::Angle(k) => {
            let (s, c) = (L::Wide::splat(memory.sin[k]), L::Wide::splat(memory.cos[k]));
            for k in 0..3 {
                let (f, g, h) = (L::Wide::load(&f[k]), L::Wide::load(&g[k]), L::Wide::load(&h[k]));
                c.mul_add(f, s.mul_add(g, h)).store(&mut to[k]);
            }
        }
        Turn::Quaternion(k) => {
            let r = quaternion([L::load(&q[k]), L::load(&q[k + 1]), L::load(&q[k + 2]), L::load(&q[k + 3])]);
            let h: Columns<L::Wide> = load_columns(h);
            for k in 0..3 {
                let mut column = Four::default();
                r[0][k].store(&mut column.0[0]);
                r[1][k].store(&mut column.0[1]);
                r[2][k].store(&mut column.0[2]);
                times(&h, &column).store(&mut to[k]);
            }
        }
    }
}

/// Writes a frame as a pose.
#[inline(always)]
fn write<W: Wide>(axes: &[Four; 3], origin: &Four, pose: &mut Pose<f64>) {
    let rotation = pose.rotation.as_mut_slice();
    // A store of four numbers overlaps the next column, which is written afterwards.
    W::load(&axes[0]).write(&mut rotation[0..4]);
    W::load(&axes[1]).write(&mut rotation[3..7]);
    W::load(&axes[2]).write_two(&mut rotation[6..8]);
    rotation[8] = axes[2].0[2];
    let translation = pose.translation.as_mut_slice();
    W::load(origin).write_two(&mut translation[0..2]);
    translation[2] = origin.0[2];
}

/// Transforms the free modes of a placed body to world axes.
#[inline(always)]
pub(crate) fn turn_modes<W: Wide>(
    constants: &TreeConstants,
    body: &BodyConstants,
    axes: &Columns<W>,
    modes: &mut [[Four; 2]],
) {
    let own = body.mode..body.mode + body.mode_count;
    for (from, to) in constants.modes[own.clone()].iter().zip(&mut modes[own]) {
        if body.kind != Kind::Prismatic {
            times(axes, &from[0]).store(&mut to[0]);
        }
        if body.kind != Kind::Revolute {
            times(axes, &from[1]).store(&mut to[1]);
        }
    }
}

/// Computes rotational inertia and first moment of a body in world axes, about its origin.
#[inline(always)]
pub(crate) fn turn_inertia<W: Wide>(body: &BodyConstants, placed: &Placed) -> (Columns<W>, W) {
    let axes: Columns<W> = load_columns(&placed.axes);
    let half = [
        times(&axes, &body.rotational[0]),
        times(&axes, &body.rotational[1]),
        times(&axes, &body.rotational[2]),
    ];
    let inertia = [
        times(&half, &row(&placed.axes, 0)),
        times(&half, &row(&placed.axes, 1)),
        times(&half, &row(&placed.axes, 2)),
    ];
    (inertia, times(&axes, &body.first_moment))
}

/// Returns row `k` of a matrix stored by columns.
#[inline(always)]
fn row(columns: &[Four; 3], k: usize) -> Four {
    Four([columns[0].0[k], columns[1].0[k], columns[2].0[k], 0.0])
}
