//! Mass matrix by the composite-rigid-body algorithm.

use crate::Result;
use crate::dynamics::algorithms::composite::Composite;
use crate::dynamics::algorithms::placement::{AXES, Placed, Placement, place, turn_inertia, turn_modes};
use crate::dynamics::algorithms::tree_constants::TreeConstants;
use crate::dynamics::displacement::Kind;
use crate::dynamics::simd::columns::{Columns, load_columns, singles, store_columns, stored, times};
use crate::dynamics::simd::vector::{Vec3, add, cross, cross_add, dot, scale};
use crate::dynamics::simd::{Four, Lane, Plain, Single, dispatch};
use crate::dynamics::{Workspace, expect_len};
use crate::mechanism::Mechanism;
use crate::spatial::Pose;

/// Computes the mass matrix `H(q)`, `nv × nv` row-major, armature included.
///
/// Contributions of bodies that share a coordinate (mimic joints, rotors) are added: `H = Gᵀ H_bodies G`, where
/// `H_bodies` is the matrix of the tree with every joint free and `G` maps the coordinates to the joints.
///
/// ```
/// use inertial::dynamics::{Workspace, mass_matrix};
/// use inertial::mechanism::{JointSpec, JointType, MechanismBuilder};
/// use inertial::spatial::Inertia;
/// use nalgebra::{Matrix3, Vector3, vector};
///
/// let rod = Inertia::from_com(3.0, vector![0.5, 0.0, 0.0], Matrix3::from_diagonal(&vector![0.0, 0.25, 0.25]));
/// let hinge = JointType::Revolute { axis: Vector3::z() };
/// let pendulum = MechanismBuilder::new("pendulum", "ground")
///     .link("rod", rod)
///     .joint(JointSpec::new("pivot", hinge, "ground", "rod"))
///     .build(&Default::default())?;
/// let mut h = [0.0];
/// mass_matrix(&pendulum, &mut Workspace::new(&pendulum), &[0.4], &mut h)?;
/// assert_eq!(h, [1.0]); // m l²/3
/// # Ok::<(), inertial::Error>(())
/// ```
pub fn mass_matrix(
    mechanism: &Mechanism,
    workspace: &mut Workspace,
    q: &[f64],
    out: &mut [f64],
) -> Result<()> {
    let n = mechanism.nv();
    expect_len("mass matrix", out.len(), n * n)?;
    workspace.prepare(mechanism, q)?;
    out.fill(0.0);
    for (k, armature) in mechanism.armature().iter().enumerate() {
        out[k * n + k] = *armature;
    }
    let Workspace { constants, placement, composites, in_world, .. } = workspace;
    let constants = &*constants;
    dispatch!(workspace.fused, fill::<Plain, Fused>(
        constants: &TreeConstants,
        placement: &mut Placement,
        composites: &mut [Composite],
        in_world: &mut [Pose<f64>],
        q: &[f64],
        n: usize,
        out: &mut [f64]
    ));
    Ok(())
}

/// Wrench about some origin, in world axes.
#[derive(Clone, Copy)]
struct Wrench<L> {
    moment: Vec3<L>,
    force: Vec3<L>,
}

#[inline(always)]
fn fill<L: Single>(
    constants: &TreeConstants,
    placement: &mut Placement,
    composites: &mut [Composite],
    in_world: &mut [Pose<f64>],
    q: &[f64],
    n: usize,
    out: &mut [f64],
) {
    place::<L>(constants, placement, q, in_world, &mut []);
    let Placement { placed, modes, .. } = placement;
    for ((body, placed), composite) in constants.bodies.iter().zip(&placed[1..]).zip(&mut *composites) {
        turn_modes::<L::Wide>(constants, body, &load_columns(&placed.axes), modes);
        let (rotational, first_moment) = turn_inertia::<L::Wide>(body, placed);
        store_columns(rotational, &mut composite.rotational);
        first_moment.store(&mut composite.first_moment);
        composite.mass = body.mass;
    }
    for (i, body) in constants.bodies.iter().enumerate().rev() {
        let own = &modes[body.mode..body.mode + body.mode_count];
        let composite = &composites[i];
        if body.kind == Kind::Free {
            free_block::<L>(composite, &placed[i + 1].axes, body.v, n, out);
        }
        for (k, mode) in own.iter().enumerate() {
            if body.kind == Kind::Free && body.parent == 0 {
                break;
            }
            let wrench = accelerate::<L>(body.kind, composite, mode);
            let row = body.v + k;
            if body.kind != Kind::Free {
                add_entry(out, n, row, row, power(body.kind, mode, &wrench));
                for (l, other) in own[..k].iter().enumerate() {
                    add_pair(out, n, row, body.v + l, power(body.kind, other, &wrench));
                }
            }
            project(constants, placed, modes, i, row, wrench, n, out);
        }
        if body.parent > 0 {
            let carried = shifted::<L>(composite, &placed[i + 1].lever);
            let mass = composite.mass;
            let parent = &mut composites[body.parent - 1];
            for k in 0..3 {
                (L::Wide::load(&parent.rotational[k]) + carried.0[k]).store(&mut parent.rotational[k]);
            }
            (L::Wide::load(&parent.first_moment) + carried.1).store(&mut parent.first_moment);
            parent.mass += mass;
        }
    }
}

/// Adds to one entry of the matrix.
#[inline(always)]
fn add_entry<L: Single>(out: &mut [f64], n: usize, row: usize, column: usize, x: L) {
    let mut number = 0.0;
    x.store(&mut number);
    out[row * n + column] += number;
}

/// Adds a term of two coordinates to both symmetric entries; if two bodies share one coordinate, both go to the
/// diagonal.
#[inline(always)]
fn add_pair<L: Single>(out: &mut [f64], n: usize, row: usize, column: usize, x: L) {
    add_entry(out, n, row, column, x);
    add_entry(out, n, column, row, x);
}

/// Writes the block of a floating body, which translates along its axes and rotates about them.
#[inline(always)]
fn free_block<L: Single>(composite: &Composite, axes: &[Four; 3], v: usize, n: usize, out: &mut [f64]) {
    let moment = singles::<L>(&composite.first_moment);
    let rotational: Columns<L::Wide> = load_columns(&composite.rotational);
    let mut h = [L::splat(0.0); 3];
    for j in 0..3 {
        h[j] = dot(singles(&axes[j]), moment);
        add_entry(out, n, v + j, v + j, L::splat(composite.mass));
        let column = singles::<L>(&stored(times(&rotational, &axes[j])));
        add_entry(out, n, v + 3 + j, v + 3 + j, dot(singles(&axes[j]), column));
        for i in 0..j {
            add_pair(out, n, v + 3 + i, v + 3 + j, dot(singles(&axes[i]), column));
        }
    }
    // The force ω × h of a rotation about each axis, along the other axes.
    for (linear, angular, force) in
        [(1, 0, -h[2]), (2, 0, h[1]), (0, 1, h[2]), (2, 1, -h[0]), (0, 2, -h[1]), (1, 2, h[0])]
    {
        add_pair(out, n, v + linear, v + 3 + angular, force);
    }
}

/// Computes the wrench that accelerates a composite body along a mode.
#[inline(always)]
fn accelerate<L: Single>(kind: Kind, composite: &Composite, mode: &[Four; 2]) -> Wrench<L> {
    let h = singles::<L>(&composite.first_moment);
    let rotational: Columns<L::Wide> = load_columns(&composite.rotational);
    let (z, l) = (singles::<L>(&mode[0]), singles::<L>(&mode[1]));
    match kind {
        Kind::Revolute => {
            Wrench { moment: singles(&stored(times(&rotational, &mode[0]))), force: cross(z, h) }
        }
        Kind::Prismatic => Wrench { moment: cross(h, l), force: scale(L::splat(composite.mass), l) },
        Kind::Free | Kind::General => Wrench {
            moment: cross_add(h, l, singles(&stored(times(&rotational, &mode[0])))),
            force: add(cross(z, h), scale(L::splat(composite.mass), l)),
        },
    }
}

/// Computes the power of a wrench along a mode at the same origin.
#[inline(always)]
fn power<L: Single>(kind: Kind, mode: &[Four; 2], wrench: &Wrench<L>) -> L {
    match kind {
        Kind::Revolute => dot(singles(&mode[0]), wrench.moment),
        Kind::Prismatic => dot(singles(&mode[1]), wrench.force),
        Kind::Free | Kind::General => {
            dot(singles(&mode[0]), wrench.moment) + dot(singles(&mode[1]), wrench.force)
        }
    }
}

/// Adds the power of a wrench on body `i` along the modes of all bodies that carry it.
#[inline(always)]
#[allow(clippy::too_many_arguments, reason = "each is memory of its own")]
fn project<L: Single>(
    constants: &TreeConstants,
    placed: &[Placed],
    modes: &[[Four; 2]],
    i: usize,
    row: usize,
    mut wrench: Wrench<L>,
    n: usize,
    out: &mut [f64],
) {
    let mut here = i + 1;
    loop {
        let above = constants.bodies[here - 1].parent;
        if above == 0 {
            return;
        }
        wrench.moment = cross_add(singles(&placed[here].lever), wrench.force, wrench.moment);
        let ancestor = &constants.bodies[above - 1];
        if ancestor.kind == Kind::Free {
            // A floating body translates along its axes and rotates about them.
            for (k, axis) in placed[above].axes.iter().enumerate() {
                add_pair(out, n, row, ancestor.v + k, dot(singles(axis), wrench.force));
                add_pair(out, n, row, ancestor.v + 3 + k, dot(singles(axis), wrench.moment));
            }
        } else {
            for k in 0..ancestor.mode_count {
                let h = power(ancestor.kind, &modes[ancestor.mode + k], &wrench);
                add_pair(out, n, row, ancestor.v + k, h);
            }
        }
        here = above;
    }
}

/// Returns rotational inertia and first moment of a composite body about the origin of its parent.
#[inline(always)]
fn shifted<L: Single>(composite: &Composite, lever: &Four) -> (Columns<L::Wide>, L::Wide) {
    let (d, h) = (L::Wide::load(lever), L::Wide::load(&composite.first_moment));
    let mass = L::Wide::splat(composite.mass);
    // With g = h + m d/2 the shift is 2 (d·g) 1 − d gᵀ − g dᵀ.
    let g = (mass * L::Wide::splat(0.5)).mul_add(d, h);
    let arm = stored(g);
    let mut diagonal = 0.0;
    let product = dot(singles::<L>(lever), singles(&arm));
    (product + product).store(&mut diagonal);
    let mut rotational: Columns<L::Wide> = load_columns(&composite.rotational);
    for k in 0..3 {
        let own = L::Wide::splat(diagonal).mul_add(L::Wide::load(&AXES[k]), rotational[k]);
        let own = L::Wide::splat(arm.0[k]).neg_mul_add(d, own);
        rotational[k] = L::Wide::splat(lever.0[k]).neg_mul_add(g, own);
    }
    (rotational, mass.mul_add(d, h))
}
