//! Nearest geometry for which overconstrained loops move.
//!
//! A linkage that moves although it has too many constraints (Bennett, Goldberg, ...) becomes rigid when its numbers
//! are rounded, and no list of relations between its axes describes the intended geometry. The intended property is the
//! motion: the loops close in every configuration. This module therefore searches for the nearest geometry whose loops
//! close in many configurations at once, and whose nearly parallel or nearly perpendicular axes are exactly so.

use nalgebra::Vector3;
use num_traits::{One, Zero};

use super::configurations::{Site, closure, displacement};
use super::lifting::inverse;
use super::random_walk::Walk;
use crate::linalg::{FullPivots, Number, Wide};
use crate::mechanism::{Assembled, AssembledLoop, Closing};
use crate::spatial::{Field, Force, Motion, Pose};

/// Number of configurations in which the loops have to close.
const CONFIGURATIONS: usize = 12;

/// Number of steps of the walk between two of these configurations.
const STRIDE: usize = 2;

/// Maximum number of Newton steps.
const MOST_STEPS: usize = 20;

/// Maximum number of joints; larger mechanisms are skipped because the equations are dense.
const MOST_JOINTS: usize = 40;

/// Pivots up to this, relative to the first, are rounding errors of doubles.
const SMALLEST_PIVOT: f64 = 1e-11;

/// Smallest factor of the pivot threshold. Conditions with pivots above the square root of the closure error are used
/// first; if they are not sufficient, the threshold is reduced down to this factor.
const WEAKEST: f64 = 1e-3;

/// Direction in a mechanism.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Heading {
    /// Direction of gravity.
    Gravity,
    /// Axis of the joint of a body.
    Body(usize),
    /// Axis of a loop joint.
    Loop(usize),
}

/// Two directions that are parallel or perpendicular.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Inclination {
    pub headings: [Heading; 2],
    pub parallel: bool,
}

/// Equation in one configuration: its value, and the wrench whose work in a relative motion of two bodies is the change
/// of the value.
struct Condition<const N: usize> {
    value: Wide<N>,
    wrench: Force<Wide<N>>,
    /// Bodies that enter with negative and positive sign.
    sides: [Option<usize>; 2],
    /// Loop joint whose end on the first body moves with it.
    end: Option<usize>,
}

impl<const N: usize> Site<'_, '_, N> {
    /// Returns the nearest geometry whose loops close in many configurations to the last digit, and its distance;
    /// `None` if there is none nearby.
    pub(super) fn mobile(
        &self,
        inclinations: &[Inclination],
        seed: u64,
    ) -> Option<(Assembled<Wide<N>>, f64)> {
        let joints = self.base.bodies.len() + self.base.loops.len();
        if joints > MOST_JOINTS {
            return None;
        }
        let mut walk = Walk::new(self.closed, self.size, seed);
        let mut places = Vec::with_capacity(CONFIGURATIONS);
        while places.len() < CONFIGURATIONS {
            for _ in 0..STRIDE {
                walk.step().ok()?;
            }
            places.push(walk.q.clone());
        }
        let (mut base, mut moved, mut before, mut least) = (self.base.clone(), 0.0, f64::INFINITY, 1.0);
        for _ in 0..MOST_STEPS {
            let site = self.with_base(base.clone());
            let mut rows: Vec<Wide<N>> = Vec::new();
            for q in &places {
                let (at, _) = site.refine(q).ok()?;
                rows.extend(site.net_rows(&site.conditions(&at, inclinations)?, &at)?);
            }
            let width = 6 * joints + 1;
            let open = rows.chunks_exact(width).map(|r| r[width - 1].weight()).fold(0.0, f64::max);
            if open <= Wide::<N>::NEGLIGIBLE || open > 0.5 * before && open <= Wide::<N>::TOLERANCE {
                return Some((base, moved));
            }
            if open > 0.5 * before {
                // The missing conditions may have been dropped because of small pivots.
                least *= 0.1;
                if least < WEAKEST {
                    return None;
                }
            }
            before = open;
            let step = least_step(&rows, width, (least * open.sqrt()).max(SMALLEST_PIVOT))?;
            moved += step.iter().map(|x| x.weight()).fold(0.0, f64::max);
            self.apply(&step, &mut base);
        }
        None
    }

    /// Moves the joints of a mechanism relative to the bodies that carry them.
    fn apply(&self, step: &[Wide<N>], to: &mut Assembled<Wide<N>>) {
        let size = Wide::from(self.size);
        let mut steps = step.chunks_exact(6).map(|x| {
            let angular = Vector3::new(x[0], x[1], x[2]);
            displacement(&Motion::new(angular, Vector3::new(x[3], x[4], x[5]) * size))
        });
        for (body, step) in to.bodies.iter_mut().zip(&mut steps) {
            body.pose = step * body.pose;
        }
        for (joint, step) in to.loops.iter_mut().zip(steps) {
            let ends = [step * joint.ends[0], joint.ends[1]];
            *joint = AssembledLoop::new(joint.predecessor, joint.successor, ends, joint.closing);
        }
    }

    /// Returns the conditions in one configuration: closed loops, and the inclinations.
    fn conditions(&self, at: &Assembled<Wide<N>>, inclinations: &[Inclination]) -> Option<Vec<Condition<N>>> {
        let poses = at.world_poses();
        let mut out = closures(at, &poses).ok()?;
        let length = Wide::from(self.size.recip());
        for (condition, has_length) in &mut out {
            // Lengths in units of the size of the mechanism.
            if *has_length {
                condition.value *= length;
                condition.wrench = condition.wrench * length;
            }
        }
        let mut out: Vec<Condition<N>> = out.into_iter().map(|(condition, _)| condition).collect();
        let direction = |heading: Heading| match heading {
            Heading::Gravity => Some((at.gravity, None)),
            Heading::Body(i) => Some((poses[i].rotation * self.geometry.bodies[i].axis(), Some(i))),
            Heading::Loop(l) => {
                let joint = &at.loops[l];
                let world = joint.successor.map_or_else(Pose::identity, |i| poses[i]);
                match joint.closing {
                    Closing::Free(_, frame, _) => {
                        Some((world.rotation * (joint.ends[1].rotation * frame.column(2)), joint.successor))
                    }
                    _ => None,
                }
            }
        };
        for inclination in inclinations {
            let [a, b] = inclination.headings.map(direction);
            let (Some((u, near)), Some((v, far))) = (a, b) else { continue };
            let against = if inclination.parallel { across(&u) } else { vec![u] };
            out.extend(against.into_iter().map(|u| Condition {
                value: u.dot(&v),
                wrench: Force::new(v.cross(&u), Vector3::zeros()),
                sides: [near, far],
                end: None,
            }));
        }
        Some(out)
    }

    /// Eliminates the dependent coordinates from the conditions of one configuration. Returns rows of coefficients in
    /// the displacements of the joints, each with its value.
    fn net_rows(&self, conditions: &[Condition<N>], at: &Assembled<Wide<N>>) -> Option<Vec<Wide<N>>> {
        let poses = at.world_poses();
        let (bodies, inner) = (at.bodies.len(), self.columns.len());
        let width = inner + 6 * (bodies + at.loops.len()) + 1;
        let size = Wide::from(self.size);
        let world = |body: Option<usize>| body.map_or_else(Pose::identity, |i| poses[i]);
        let mut rows: Vec<Vec<Wide<N>>> = Vec::with_capacity(conditions.len());
        for condition in conditions {
            let mut row = vec![Wide::zero(); width];
            let add = |row: &mut [Wide<N>], joint: usize, frame: &Pose<Wide<N>>, sign: Wide<N>| {
                let felt = frame.pull_force(&condition.wrench);
                for k in 0..3 {
                    row[inner + 6 * joint + k] += felt.angular[k] * sign;
                    row[inner + 6 * joint + 3 + k] += felt.linear[k] * size * sign;
                }
            };
            for (side, sign) in condition.sides.into_iter().zip([-Wide::one(), Wide::one()]) {
                let mut body = side;
                while let Some(i) = body {
                    for (k, mode) in at.bodies[i].modes.iter().enumerate() {
                        if let Ok(place) = self.columns.binary_search(&(at.bodies[i].v + k)) {
                            row[place] += poses[i].push_motion(mode).dot(&condition.wrench) * sign;
                        }
                    }
                    body = at.bodies[i].parent;
                    add(&mut row, i, &world(body), sign);
                }
            }
            if let Some(l) = condition.end {
                add(&mut row, bodies + l, &world(condition.sides[0]), -Wide::one());
            }
            row[width - 1] = condition.value;
            rows.push(row);
        }
        for column in 0..inner {
            let size = |row: &Vec<Wide<N>>| row[column].weight();
            let (best, _) = rows.iter().enumerate().max_by(|(_, a), (_, b)| size(a).total_cmp(&size(b)))?;
            let pivot = rows.swap_remove(best);
            let scale = pivot[column].inverse()?;
            for row in &mut rows {
                let factor = row[column] * scale;
                if factor.weight() > 0.0 {
                    for (x, &p) in row[column..].iter_mut().zip(&pivot[column..]) {
                        x.subtract_product(factor, p);
                    }
                }
            }
        }
        Some(rows.into_iter().flat_map(|row| row.into_iter().skip(inner)).collect())
    }
}

/// Returns the closure equations of the loops, each with whether its value is a length.
fn closures<const N: usize>(
    at: &Assembled<Wide<N>>,
    poses: &[Pose<Wide<N>>],
) -> crate::Result<Vec<(Condition<N>, bool)>> {
    let mut out = Vec::new();
    for (l, joint) in at.loops.iter().enumerate() {
        for (value, wrench) in closure(joint, poses)? {
            let has_length = !wrench.linear.iter().all(Zero::is_zero);
            let sides = [joint.predecessor, joint.successor];
            out.push((Condition { value, wrench, sides, end: Some(l) }, has_length));
        }
    }
    Ok(out)
}

/// Returns two unit vectors perpendicular to another one.
fn across<const N: usize>(u: &Vector3<Wide<N>>) -> Vec<Vector3<Wide<N>>> {
    let least = (0..3).min_by(|&i, &j| u[i].weight().total_cmp(&u[j].weight())).unwrap_or(0);
    let x = u.cross(&Vector3::ith(least, Wide::one()));
    let x = x * x.dot(&x).sqrt().inverse().unwrap_or_else(Wide::one);
    vec![x, u.cross(&x)]
}

/// Computes the smallest `x` with `A x = −b` on the clearly independent rows among `[A | b]`.
fn least_step<const N: usize>(rows: &[Wide<N>], width: usize, tolerance: f64) -> Option<Vec<Wide<N>>> {
    let rough: Vec<f64> =
        rows.chunks_exact(width).flat_map(|r| r[..width - 1].iter().map(|&x| f64::from(x))).collect();
    let chosen: Vec<usize> =
        FullPivots::new(rough, width - 1, tolerance).places.iter().map(|p| p.0).collect();
    let row = |i: usize| &rows[chosen[i] * width..(chosen[i] + 1) * width];
    let n = chosen.len();
    let dot = |a: &[Wide<N>], b: &[Wide<N>]| {
        a[..width - 1].iter().zip(b).fold(Wide::zero(), |sum: Wide<N>, (&x, &y)| sum + x * y)
    };
    let gram = (0..n * n).map(|k| dot(row(k / n), row(k % n))).collect();
    let inverse = inverse(gram, n)?;
    let mut out = vec![Wide::zero(); width - 1];
    for i in 0..n {
        let factor =
            (0..n).fold(Wide::zero(), |sum: Wide<N>, j| sum + inverse[i * n + j] * row(j)[width - 1]);
        for (x, &r) in out.iter_mut().zip(row(i)) {
            *x -= r * factor;
        }
    }
    Some(out)
}
