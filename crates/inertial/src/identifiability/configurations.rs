//! Closed configurations of a mechanism in multi-precision arithmetic.

use nalgebra::{DMatrix, Matrix3, Rotation3, UnitQuaternion, Vector3};
use num_traits::{One, Zero};

use super::random_walk::Walk;
use crate::dynamics::ClosedMechanism;
use crate::linalg::{Number, PivotedQr, Wide};
use crate::mechanism::{
    Assembled, AssembledLoop, Body, Closing, ExactAssembly, Geometry, Pivoting, turn_about,
};
use crate::spatial::{Field, Force, Motion, Pose, rotation_from_quaternion, skew};
use crate::{Error, Result};

/// Number of configurations in which relations are searched; a single one may be special by accident.
const VIEWS: usize = 3;

/// Largest part of the closure error that may remain after a step with the first Jacobian. The rounding error of doubles
/// allows 1e-16 times the condition number.
const SLOW: f64 = 1e-4;

/// Maximum number of Newton steps.
const NEWTON_STEPS: usize = 14;

/// Several closed configurations.
pub struct Views<const N: usize> {
    /// Configurations with lengths in units of the size of the mechanism.
    pub configurations: Vec<Assembled<Wide<N>>>,
    /// Coordinates of the first configuration.
    pub q: Vec<f64>,
}

/// Geometry of a mechanism in multi-precision arithmetic, which can be placed in any configuration.
#[derive(Clone)]
pub struct Site<'a, 'm, const N: usize> {
    pub(super) closed: &'a ClosedMechanism<'m>,
    /// Types, axes and ratios of the joints.
    pub geometry: Geometry<Wide<N>>,
    /// Reference configuration from which others are reached, and its coordinates.
    pub(super) base: Assembled<Wide<N>>,
    q: Vec<f64>,
    pub(super) dependent: Vec<bool>,
    pub(super) columns: Vec<usize>,
    pub(super) size: f64,
    /// Size rounded to a power of two, so that scaling is exact.
    pub(super) unit: f64,
    /// Whether each velocity coordinate is a length.
    is_length: Vec<bool>,
    /// Whether each velocity coordinate moves several bodies.
    shared: Vec<bool>,
}

impl<'a, 'm, const N: usize> Site<'a, 'm, N> {
    /// Closure error of closed loops: 20 bits more than the rounding error of one operation.
    const CLOSED: f64 = Wide::<N>::NEGLIGIBLE / (1u64 << 28) as f64;

    /// Creates the geometry from the configuration `base` at the coordinates `q`.
    pub fn new(
        closed: &'a ClosedMechanism<'m>,
        assembly: &ExactAssembly,
        base: Assembled<Wide<N>>,
        q: Vec<f64>,
    ) -> Self {
        let nv = closed.mechanism().nv();
        let dependent: Vec<bool> = (0..nv).map(|v| !closed.independent().contains(&v)).collect();
        let columns = (0..nv).filter(|&v| dependent[v]).collect();
        let size = if assembly.size() > 0.0 { assembly.size() } else { 1.0 };
        let geometry = assembly.geometry().to();
        let mut is_length = vec![false; nv];
        let mechanism = closed.mechanism();
        // The joint to which a coordinate belongs follows no other joint.
        let own = |b: &&Body| mechanism.joints()[b.joint].follows.is_none();
        for body in mechanism.bodies()[..mechanism.link_bodies()].iter().filter(own) {
            for (v, mode) in body.v_range().zip(&*body.joint_type.free_modes()) {
                is_length[v] = mode.angular.norm_squared() == 0.0;
            }
        }
        let mut moved = vec![0; nv];
        closed.mechanism().bodies().iter().for_each(|b| moved[b.drive.v] += 1);
        let shared = moved.into_iter().map(|n| n > 1).collect();
        let unit = size.log2().round().exp2();
        Self { closed, geometry, base, q, dependent, columns, size, unit, is_length, shared }
    }

    /// Returns a copy with another geometry in the reference configuration.
    pub(super) fn with_base(&self, base: Assembled<Wide<N>>) -> Self {
        Self { base, ..self.clone() }
    }

    /// Returns a copy with another geometry, in another reference configuration.
    pub(super) fn placed_at(&self, base: Assembled<Wide<N>>, q: Vec<f64>) -> Self {
        Self { base, q, ..self.clone() }
    }

    /// Returns several closed configurations and their largest closure error (rad, or relative to the size of the
    /// mechanism).
    pub fn views(&self, seed: u64) -> Result<(Views<N>, f64)> {
        let mut walk = Walk::new(self.closed, self.size, seed);
        let mut views = Views { configurations: Vec::with_capacity(VIEWS), q: Vec::new() };
        let mut gap = 0.0f64;
        for _ in 0..VIEWS {
            walk.step()?;
            walk.step()?;
            let (assembled, open) = self.refine(&walk.q)?;
            views.configurations.push(self.in_own_units(&assembled));
            gap = gap.max(open);
            if views.q.is_empty() {
                views.q.clone_from(&walk.q);
            }
        }
        Ok((views, gap))
    }

    /// Converts a configuration to lengths in units of the size of the mechanism.
    pub(super) fn in_own_units(&self, at: &Assembled<Wide<N>>) -> Assembled<Wide<N>> {
        self.rescaled(at, self.unit.recip())
    }

    /// Converts a configuration from units of the size of the mechanism to those of the file.
    pub fn in_file_units(&self, at: &Assembled<Wide<N>>) -> Assembled<Wide<N>> {
        self.rescaled(at, self.unit)
    }

    fn rescaled(&self, at: &Assembled<Wide<N>>, factor: f64) -> Assembled<Wide<N>> {
        let (factor, back) = (Wide::from(factor), Wide::from(factor.recip()));
        let scaled = |pose: &Pose<Wide<N>>| Pose::new(pose.rotation, pose.translation * factor);
        let mut out = at.clone();
        for body in &mut out.bodies {
            body.pose = scaled(&body.pose);
            for (k, mode) in body.modes.iter_mut().enumerate() {
                let rate = if self.is_length[body.v + k] { back } else { Wide::one() };
                *mode = Motion::new(mode.angular * rate, mode.linear * (factor * rate));
            }
        }
        for joint in &mut out.loops {
            let closing = match joint.closing {
                Closing::Free(pivoting, frame, pitch) => Closing::Free(pivoting, frame, pitch * factor),
                other => other,
            };
            let ends = [scaled(&joint.ends[0]), scaled(&joint.ends[1])];
            *joint = AssembledLoop::new(joint.predecessor, joint.successor, ends, closing);
        }
        out
    }

    /// Returns the mechanism near `q` with its loops closed to the last digits, and the remaining closure error.
    pub(super) fn refine(&self, q: &[f64]) -> Result<(Assembled<Wide<N>>, f64)> {
        let start = self.place(q);
        let (open, equations) = self.equations(&start)?;
        if open <= Self::CLOSED || self.columns.is_empty() {
            return Ok((start, open));
        }
        let (mut at, mut open) = self.refine_by_chords(start, open, &equations)?;
        for _ in 0..NEWTON_STEPS {
            if open <= Self::CLOSED {
                break;
            }
            let (_, equations) = self.equations(&at)?;
            let step = least_squares(&equations, self.columns.len()).ok_or_else(dead_point)?;
            let next = self.moved(&at, &step);
            let (now, _) = self.closure_errors(&next)?;
            // The closure error no longer decreases: rounding, or contradicting geometry.
            if now >= open {
                break;
            }
            let stalled = now > 0.5 * open;
            (at, open) = (next, now);
            if stalled {
                break;
            }
        }
        Ok((at, open))
    }

    /// Closes the loops with the Jacobian of the first configuration in double precision, as long as each step gains several
    /// digits. Contradicting loops and nearly singular configurations are left to Newton's method.
    fn refine_by_chords(
        &self,
        mut at: Assembled<Wide<N>>,
        mut open: f64,
        equations: &[Wide<N>],
    ) -> Result<(Assembled<Wide<N>>, f64)> {
        let width = self.columns.len() + 1;
        let rows = equations.len() / width;
        let jacobian = DMatrix::from_fn(rows, width - 1, |i, j| f64::from(equations[i * width + j]));
        let mut qr = PivotedQr::new(rows, width - 1, 1);
        if rows < width - 1 || qr.factorize(&jacobian).is_err() {
            return Ok((at, open));
        }
        let mut values = DMatrix::from_fn(rows, 1, |i, _| -f64::from(equations[i * width + width - 1]));
        while open > Self::CLOSED {
            if qr.least_squares_in_place(&mut values).is_err() {
                break;
            }
            let step: Vec<Wide<N>> = values.iter().take(width - 1).map(|&x| Wide::from(x)).collect();
            let next = self.moved(&at, &step);
            let (now, errors) = self.closure_errors(&next)?;
            if now.is_nan() || now > SLOW * open {
                break;
            }
            (at, open) = (next, now);
            values = DMatrix::from_iterator(rows, 1, errors.iter().map(|&x| -f64::from(x)));
        }
        Ok((at, open))
    }

    /// Moves the dependent coordinates by a small step.
    fn moved(&self, at: &Assembled<Wide<N>>, step: &[Wide<N>]) -> Assembled<Wide<N>> {
        let mut out = at.clone();
        for body in &mut out.bodies {
            for (k, mode) in body.modes.iter().enumerate() {
                let Ok(place) = self.columns.binary_search(&(body.v + k)) else { continue };
                // Coordinates shared by several bodies must agree to the last digit, and so must the rotation and advance
                // of a screw.
                let is_screw = [mode.angular, mode.linear].iter().all(|v| v.iter().any(|x| !x.is_zero()));
                let moved =
                    if self.shared[body.v + k] || is_screw { displacement } else { small_displacement };
                body.pose = body.pose * moved(&(*mode * step[place]));
            }
        }
        out
    }

    /// Places the mechanism at `q`; the loops are closed as accurately as by `q`.
    fn place(&self, q: &[f64]) -> Assembled<Wide<N>> {
        let mut out = self.base.clone();
        let bodies = self.closed.mechanism().bodies().iter();
        for ((body, exact), to) in bodies.zip(&self.geometry.bodies).zip(&mut out.bodies) {
            let range = body.drive.q..body.drive.q + body.joint_type.nq();
            let (then, now) = (&self.q[range.clone()], &q[range]);
            let shared = self.shared[body.drive.v];
            // Coordinates shared by several bodies must agree to the last digit, and so must the rotation and advance
            // of a screw.
            let position = |k: usize| (Wide::from(now[k]) - Wide::from(then[k])) * exact.ratio;
            let turned = |x: Wide<N>| {
                // Unless several joints share the angle, any angle near that of `q` is sufficient: use one with
                // rational tangent of its half.
                let (c, s) = if shared || exact.pivoting == Pivoting::Helical {
                    let (s, c) = x.sin_cos();
                    (c, s)
                } else {
                    let t = Wide::from((0.5 * f64::from(x)).tan());
                    let scale = (Wide::one() + t * t).inverse().unwrap_or_else(Wide::one);
                    ((Wide::one() - t * t) * scale, t * scale.scaled(1))
                };
                exact.frame * turn_about(2, (c, s)) * exact.frame.transpose()
            };
            let slid = |x: Wide<N>| exact.axis() * x;
            let pose = match exact.pivoting {
                Pivoting::Revolute => Pose::new(turned(position(0)), Vector3::zeros()),
                Pivoting::Prismatic => Pose::from_translation(slid(position(0))),
                Pivoting::Helical => {
                    let x = position(0);
                    Pose::new(turned(x), slid(exact.pitch * x))
                }
                Pivoting::Cylindrical => Pose::new(turned(position(0)), slid(position(1))),
                Pivoting::Planar | Pivoting::Spherical | Pivoting::Floating => {
                    // Joints with several freedoms: each coordinate may be rounded independently.
                    let rough = body.joint_type.pose(then).inverse() * body.joint_type.pose(now);
                    if exact.pivoting == Pivoting::Planar {
                        let across = exact.frame.map(f64::from).tr_mul(&rough.translation);
                        let shift =
                            exact.frame * Vector3::new(across.x.into(), across.y.into(), Wide::zero());
                        Pose::new(turned(position(2)), shift)
                    } else {
                        let shift = match exact.pivoting {
                            Pivoting::Floating => rough.translation.map(Wide::from),
                            _ => Vector3::zeros(),
                        };
                        Pose::new(exact_rotation(&rough.rotation), shift)
                    }
                }
            };
            to.pose = to.pose * pose;
        }
        out
    }

    /// Returns the closure error and the closure equations, one per row: coefficients in the dependent coordinates,
    /// then the value.
    fn equations(&self, at: &Assembled<Wide<N>>) -> Result<(f64, Vec<Wide<N>>)> {
        let poses = at.world_poses();
        // The dependent coordinates of each body, with their screws in the world.
        let screws: Vec<Vec<(usize, Motion<Wide<N>>)>> = (at.bodies.iter().zip(&poses))
            .map(|(body, pose)| {
                let place = |k: usize| self.columns.binary_search(&(body.v + k)).ok();
                let modes = body.modes.iter().enumerate();
                modes.filter_map(|(k, mode)| Some((place(k)?, pose.push_motion(mode)))).collect()
            })
            .collect();
        let mut out = Vec::new();
        let mut sum = 0.0;
        for joint in &at.loops {
            for (value, held) in closure(joint, &poses)? {
                let start = out.len();
                out.resize(start + self.columns.len() + 1, Wide::zero());
                for (side, sign) in [(joint.successor, Wide::one()), (joint.predecessor, -Wide::one())] {
                    let mut body = side;
                    while let Some(i) = body {
                        for (place, screw) in &screws[i] {
                            out[start + place] += screw.dot(&held) * sign;
                        }
                        body = at.bodies[i].parent;
                    }
                }
                out[start + self.columns.len()] = value;
                sum += self.squared_error(value, &held);
            }
        }
        Ok((sum.sqrt(), out))
    }

    /// Returns the closure error of the loops, and the values of their equations.
    fn closure_errors(&self, at: &Assembled<Wide<N>>) -> Result<(f64, Vec<Wide<N>>)> {
        let poses = at.world_poses();
        let (mut out, mut sum) = (Vec::new(), 0.0);
        for joint in &at.loops {
            for (value, wrench) in closure_in_joint(joint, &poses)? {
                out.push(value);
                sum += self.squared_error(value, &wrench);
            }
        }
        Ok((sum.sqrt(), out))
    }

    /// Returns the square of a closure error (rad, or relative to the size of the mechanism).
    fn squared_error(&self, value: Wide<N>, wrench: &Force<Wide<N>>) -> f64 {
        let length = if wrench.linear.iter().all(Zero::is_zero) { 1.0 } else { self.size };
        (f64::from(value) / length).powi(2)
    }
}

/// Returns the equations of a loop joint: their values, and the wrenches in the world frame that do no work in the
/// joint.
pub(super) fn closure<const N: usize>(
    joint: &AssembledLoop<Wide<N>>,
    poses: &[Pose<Wide<N>>],
) -> Result<Vec<(Wide<N>, Force<Wide<N>>)>> {
    let far = joint.successor.map_or_else(Pose::identity, |i| poses[i]);
    let end = far * joint.ends[1];
    let found = closure_in_joint(joint, poses)?;
    Ok(found.into_iter().map(|(value, wrench)| (value, end.push_force(&wrench))).collect())
}

/// Returns the equations of a loop joint: their values, and the wrenches in the joint frame of the successor.
fn closure_in_joint<const N: usize>(
    joint: &AssembledLoop<Wide<N>>,
    poses: &[Pose<Wide<N>>],
) -> Result<Vec<(Wide<N>, Force<Wide<N>>)>> {
    let world = |body: Option<usize>| body.map_or_else(Pose::identity, |i| poses[i]);
    let (near, far) = (world(joint.predecessor), world(joint.successor));
    joint.equations(&near, &far, |c, s, advanced| Some(angle(c, s, advanced))).ok_or_else(dead_point)
}

/// Returns the angle with this cosine and sine that is nearest to the value given by the advance.
fn angle<const N: usize>(c: Wide<N>, s: Wide<N>, advanced: Wide<N>) -> Wide<N> {
    let rough = f64::from(s).atan2(f64::from(c));
    let turns = ((f64::from(advanced) - rough) / std::f64::consts::TAU).round();
    // Newton's method: the correction is the sine of the remaining angle, and each step triples the number of digits.
    let mut found = Wide::from(rough);
    for _ in 0..4 {
        let (s0, c0) = found.sin_cos();
        found += s * c0 - c * s0;
    }
    found + Wide::pi() * Wide::from(2.0 * turns)
}

/// Returns the rotation whose rational quaternion is nearest to that of a rounded rotation.
fn exact_rotation<const N: usize>(r: &Matrix3<f64>) -> Matrix3<Wide<N>> {
    let q = UnitQuaternion::from_rotation_matrix(&Rotation3::from_matrix_unchecked(*r));
    let [x, y, z, w] = [q.i, q.j, q.k, q.w].map(Wide::from);
    rotation_from_quaternion(x, y, z, w).unwrap_or_else(Matrix3::identity)
}

/// Computes the pose after a small twist, by the series of the exponential.
pub(super) fn displacement<const N: usize>(twist: &Motion<Wide<N>>) -> Pose<Wide<N>> {
    let size = twist.angular.iter().map(|x| x.weight()).fold(0.0, f64::max);
    let k = skew(&twist.angular);
    let (mut rotation, mut term, mut left) = (Matrix3::identity(), Matrix3::identity(), 1.0);
    for n in 1.. {
        left *= 2.0 * size / f64::from(n);
        if left < Wide::<N>::NEGLIGIBLE * 1e-16 {
            break;
        }
        term = term * k * Wide::from_i64(i64::from(n)).inverse().unwrap_or_else(Wide::zero);
        rotation += term;
    }
    // Free modes rotate about the origin or translate along their own axis.
    Pose::new(rotation, twist.linear)
}

/// Returns the pose after a small twist, to second order: Cayley's map gives a rotation without a series.
fn small_displacement<const N: usize>(twist: &Motion<Wide<N>>) -> Pose<Wide<N>> {
    let half = twist.angular.map(|x| x.scaled(-1));
    let square = half.dot(&half);
    let factor = (Wide::one() + square).inverse().unwrap_or_else(Wide::one).scaled(1);
    let mut rotation = (half * half.transpose() + skew(&half)) * factor;
    (0..3).for_each(|i| rotation[(i, i)] += Wide::one() - square * factor);
    Pose::new(rotation, twist.linear)
}

/// Computes the `x` that minimizes `‖A x + b‖`, for rows `[A | b]` of `n + 1` entries. Uses the normal equations, which
/// are accurate enough in multi-precision arithmetic.
fn least_squares<const N: usize>(rows: &[Wide<N>], n: usize) -> Option<Vec<Wide<N>>> {
    let mut a = vec![Wide::zero(); n * (n + 1)];
    for row in rows.chunks_exact(n + 1) {
        for i in (0..n).filter(|&i| row[i].weight() > 0.0) {
            for j in i..=n {
                a[i * (n + 1) + j] += row[i] * row[j];
            }
        }
    }
    // Elimination of a symmetric positive definite matrix, upper triangle only.
    for k in 0..n {
        let inverse = a[k * (n + 1) + k].inverse()?;
        for i in k + 1..n {
            let factor = a[k * (n + 1) + i] * inverse;
            for j in i..=n {
                let x = a[k * (n + 1) + j];
                a[i * (n + 1) + j].subtract_product(factor, x);
            }
        }
    }
    let mut x = vec![Wide::zero(); n];
    for k in (0..n).rev() {
        let known = (k + 1..n).fold(a[k * (n + 1) + n], |sum, j| sum + a[k * (n + 1) + j] * x[j]);
        x[k] = -(known * a[k * (n + 1) + k].inverse()?);
    }
    Some(x)
}

pub(super) fn dead_point() -> Error {
    Error::Numeric(
        "a random configuration is a dead point of the independent joints: try another seed".into(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Cayley's map gives a rotation, which differs from the exponential by θ³/12 to leading order.
    #[test]
    fn small_displacements_are_rotations_to_second_order() {
        let axis = Vector3::new(0.36, -0.48, 0.8);
        for size in [1e-3, 1e-6, 1e-9] {
            let twist = Motion::new((axis * size).map(Wide::<4>::from), Vector3::zeros());
            let small = small_displacement(&twist).rotation;
            let rest = small * small.transpose() - Matrix3::identity();
            // Some ten roundings of 256 bits.
            assert!(rest.iter().all(|x| x.weight() < 1e-74), "{rest:?}");
            let error = (small - displacement(&twist).rotation).map(f64::from).norm();
            // The norm of the generator of a rotation about a unit axis is √2.
            let expected = 2f64.sqrt() * size.powi(3) / 12.0;
            assert!((error / expected - 1.0).abs() < 1e-5, "{size:e}: {error:e}, expected {expected:e}");
        }
    }
}
