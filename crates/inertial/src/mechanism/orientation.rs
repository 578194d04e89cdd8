//! Rotations and unit vectors in exact numbers.

use nalgebra::{Matrix3, Vector3};

use super::{Angle, Surd};
use crate::linalg::Number;
use crate::spatial::{rotation_from_quaternion, skew};

/// Exact rotation as a product of rotations about three coordinate axes, in the given order.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Turns {
    pub order: [usize; 3],
    pub angles: [Angle; 3],
}

/// Returns the rotation about a coordinate axis.
pub(crate) fn turn<T: Number>(axis: usize, (c, s): (T, T)) -> Matrix3<T> {
    let (j, k) = ((axis + 1) % 3, (axis + 2) % 3);
    let mut m = Matrix3::identity();
    (m[(j, j)], m[(k, k)], m[(k, j)], m[(j, k)]) = (c, c, s, -s);
    m
}

/// Returns the product of three rotations about coordinate axes.
pub(super) fn turns<T: Number>(plan: &Turns) -> Matrix3<T> {
    plan.order.iter().zip(plan.angles).fold(Matrix3::identity(), |m, (&axis, angle)| match angle {
        Angle::Degrees(0) => m,
        _ => m * turn(axis, angle.cos_sin()),
    })
}

/// Returns a frame whose third axis has this azimuth and inclination.
pub(super) fn aligned<T: Number>(axis: &[Angle; 2]) -> Matrix3<T> {
    turns(&Turns { order: [2, 1, 0], angles: [axis[0], axis[1], Angle::ZERO] })
}

/// Exactly orthogonal rotation matrix.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum ExactRotation {
    /// Product of rotations about coordinate axes.
    Turns(Turns),
    /// Quaternion `x y z w` of any length.
    Quaternion([Surd; 4]),
}

/// Orders of rotation axes: URDF's roll-pitch-yaw first; the others reveal zero angles that it hides.
const ORDERS: [[usize; 3]; 6] = [[2, 1, 0], [0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1]];

impl ExactRotation {
    /// Recognizes a rotation. Angles within `tolerance` of a multiple of 15° become that multiple, and so do angles that
    /// are such a multiple rounded to a few decimals, up to `rounded`. Rational matrices are recognized by their quaternion.
    pub fn recognize(r: &Matrix3<f64>, tolerance: f64, rounded: f64) -> Self {
        let (special, turns) = best_turns(r, |a| Angle::recognize_rounded(a, tolerance, rounded));
        match rational(r) {
            Some(quaternion) if special == 0 => Self::Quaternion(quaternion),
            _ => Self::Turns(turns),
        }
    }

    /// Returns whether every entry is a short number, so that relations intended in the file hold exactly.
    pub fn is_short(&self) -> bool {
        match self {
            Self::Turns(t) => t.angles.iter().all(|a| a.is_special()),
            Self::Quaternion(_) => true,
        }
    }

    /// Evaluates the matrix in one number type.
    pub fn to<T: Number>(self) -> Matrix3<T> {
        match self {
            Self::Turns(t) => turns(&t),
            Self::Quaternion(q) => {
                let [x, y, z, w] = q.map(Surd::to::<T>);
                rotation_from_quaternion(x, y, z, w).unwrap_or_else(Matrix3::identity)
            }
        }
    }
}

/// Returns the product of rotations, in one of six orders, with the most angles recognized as multiples of 15°, and
/// their number.
pub(super) fn best_turns(r: &Matrix3<f64>, recognize: impl Fn(f64) -> Angle) -> (usize, Turns) {
    let mut best: Option<(usize, Turns)> = None;
    for order in ORDERS {
        let [i, j, k] = order;
        let sign = if (i + 1) % 3 == j { 1.0 } else { -1.0 };
        let across = r[(i, i)].hypot(r[(i, j)]);
        // Near the singularity of this order the outer angles are inaccurate; another order is regular there.
        if across < 0.1 {
            continue;
        }
        let angles = [
            (-sign * r[(j, k)]).atan2(r[(k, k)]),
            (sign * r[(i, k)]).atan2(across),
            (-sign * r[(i, j)]).atan2(r[(i, i)]),
        ];
        let angles = angles.map(&recognize);
        let special = angles.iter().filter(|a| a.is_special()).count();
        if best.is_none_or(|(count, _)| special > count) {
            best = Some((special, Turns { order, angles }));
        }
    }
    best.unwrap_or((0, Turns { order: ORDERS[0], angles: [Angle::ZERO; 3] }))
}

/// Returns the quaternion of a rotation matrix with short rational entries, scaled so that its largest entry is one.
fn rational(r: &Matrix3<f64>) -> Option<[Surd; 4]> {
    let trace = r.trace();
    // Four times the squares of x, y, z, w.
    let squares = [0, 1, 2].map(|i| 1.0 + 2.0 * r[(i, i)] - trace);
    let squares = [squares[0], squares[1], squares[2], 1.0 + trace];
    let largest = (0..4).max_by(|&a, &b| squares[a].total_cmp(&squares[b]))?;
    let odd = |i: usize, j: usize| r[(i, j)] - r[(j, i)];
    let even = |i: usize, j: usize| r[(i, j)] + r[(j, i)];
    let products = match largest {
        0 => [squares[0], even(0, 1), even(0, 2), odd(2, 1)],
        1 => [even(0, 1), squares[1], even(1, 2), odd(0, 2)],
        2 => [even(0, 2), even(1, 2), squares[2], odd(1, 0)],
        _ => [odd(2, 1), odd(0, 2), odd(1, 0), squares[3]],
    };
    let mut out = [Surd::ZERO; 4];
    for (k, slot) in out.iter_mut().enumerate() {
        *slot = if k == largest {
            Surd::recognize(1.0)
        } else {
            Surd::short_fraction(products[k] / squares[largest])?
        };
    }
    Some(out)
}

/// Exact unit vector.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum ExactDirection {
    /// Azimuth and inclination.
    Angles([Angle; 2]),
    /// Rational vector: its stereographic coordinates, projected from the end of the named axis that lies opposite.
    Rational { axis: usize, negative: bool, at: [Surd; 2], down: bool },
}

impl ExactDirection {
    /// Recognizes the direction of `v`, as in [`ExactRotation::recognize`].
    pub fn recognize(v: &Vector3<f64>, tolerance: f64, rounded: f64) -> Self {
        let across = v.x.hypot(v.y);
        let tilt = Angle::recognize_rounded(across.atan2(v.z), tolerance, rounded);
        // A direction along z has no azimuth.
        let azimuth = match tilt {
            Angle::Degrees(0 | 180) => Angle::ZERO,
            _ => Angle::recognize_rounded(v.y.atan2(v.x), tolerance, rounded),
        };
        let angles = [azimuth, tilt];
        if angles.iter().any(|a| a.is_special()) {
            return Self::Angles(angles);
        }
        let axis = v.iamax();
        let negative = v[axis] < 0.0;
        let scale = (v.norm() + v[axis].abs()).recip();
        let near = |k: usize| Surd::short_fraction(v[(axis + k) % 3] * scale);
        match (near(1), near(2)) {
            (Some(a), Some(b)) => Self::Rational { axis, negative, at: [a, b], down: v.z < 0.0 },
            _ => Self::Angles(angles),
        }
    }

    /// Returns whether every entry is a short number.
    pub fn is_short(&self) -> bool {
        match self {
            Self::Angles(a) => a.iter().all(|a| a.is_special()),
            Self::Rational { .. } => true,
        }
    }

    /// Returns a frame whose third axis is this direction.
    pub fn frame<T: Number>(&self) -> Matrix3<T> {
        match self {
            Self::Angles([azimuth, tilt]) => turn::<T>(2, azimuth.cos_sin()) * turn(1, tilt.cos_sin()),
            Self::Rational { axis, negative, at, down } => {
                let [a, b] = at.map(Surd::to::<T>);
                let (one, square) = (T::one(), a * a + b * b);
                let scale = (one + square).inverse().unwrap_or(one);
                let mut v = Vector3::zeros();
                v[*axis] = (one - square) * scale * if *negative { -one } else { one };
                v[(axis + 1) % 3] = (a + a) * scale;
                v[(axis + 2) % 3] = (b + b) * scale;
                frame_along(&v, *down)
            }
        }
    }
}

/// Returns a frame whose third axis is the unit vector `v`; `down` if `v` points to negative z (the smallest rotation
/// from z does not exist at the opposite pole).
pub(super) fn frame_along<T: Number>(v: &Vector3<T>, down: bool) -> Matrix3<T> {
    let z = Vector3::new(T::zero(), T::zero(), T::one());
    if !down {
        return between(&z, v);
    }
    let flip = Matrix3::from_diagonal(&Vector3::new(T::one(), -T::one(), -T::one()));
    between(&-z, v) * flip
}

/// Returns the smallest rotation from one unit vector to another that is not opposite.
pub(super) fn between<T: Number>(from: &Vector3<T>, to: &Vector3<T>) -> Matrix3<T> {
    let w = skew(&from.cross(to));
    let scale = (T::one() + from.dot(to)).inverse().unwrap_or_else(T::zero);
    Matrix3::identity() + w + w * w * scale
}
