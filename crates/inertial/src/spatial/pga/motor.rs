//! Motors: rigid displacements as unit elements of even grade.

use std::ops::Mul;

use nalgebra::Vector3;

use super::element::Element;
use super::{Line, Multivector, PSEUDOSCALAR};
use crate::spatial::pose::quaternion_from_rotation;
use crate::spatial::{Field, Pose, rotation_from_quaternion};

/// Even element `c + r·(e23 e31 e12) + u·(e01 e02 e03) + p I` (eq. 24), a motor if `M̃ M = 1` (eq. 26).
///
/// It moves elements by `X = M̃ X⁰ M` (eq. 27), so in a product the **left** factor acts first:
/// the motor of the pose `a * b` is `motor(b) * motor(a)`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Motor<T: Field = f64> {
    /// Scalar part.
    pub scalar: T,
    /// Bivector part: rotation on `e23 e31 e12`, translation on `e01 e02 e03`.
    pub bivector: Line<T>,
    /// Pseudoscalar part.
    pub pseudoscalar: T,
}

impl<T: Field> Motor<T> {
    /// Creates the identity displacement.
    pub fn identity() -> Self {
        let bivector = Line { direction: Vector3::zeros(), moment: Vector3::zeros() };
        Self { scalar: T::one(), bivector, pseudoscalar: T::zero() }
    }

    /// Returns the reverse; for a motor, the inverse displacement.
    pub fn reverse(&self) -> Self {
        let bivector = Line { direction: -self.bivector.direction, moment: -self.bivector.moment };
        Self { bivector, ..*self }
    }

    /// Moves an element by this motor, `M̃ X M`.
    pub fn transform<E: Element<T>>(&self, x: &E) -> E {
        E::from_multivector(&x.to_multivector().sandwich(&self.to_multivector()))
    }

    /// Computes `M̃ M` as its scalar and pseudoscalar parts, which are one and zero for a motor.
    pub fn norm_squared(&self) -> [T; 2] {
        let (r, u) = (&self.bivector.direction, &self.bivector.moment);
        let half = self.scalar * self.pseudoscalar - r.dot(u);
        [self.scalar * self.scalar + r.dot(r), half + half]
    }

    /// Returns the displacement of a motor, or of any multiple of one; `None` for elements without inverse.
    pub fn to_pose(&self) -> Option<Pose<T>> {
        let (c, r, u, p) = (self.scalar, self.bivector.direction, self.bivector.moment, self.pseudoscalar);
        let rotation = rotation_from_quaternion(r.x, r.y, r.z, c)?;
        let half = u * c + r.cross(&u) + r * p;
        Some(Pose::new(rotation, (half + half) * self.norm_squared()[0].inverse()?))
    }
}

impl<T: Field> Element<T> for Motor<T> {
    fn to_multivector(&self) -> Multivector<T> {
        let mut m = self.bivector.to_multivector();
        m.0[0] = self.scalar;
        m.0[PSEUDOSCALAR] = self.pseudoscalar;
        m
    }

    fn from_multivector(m: &Multivector<T>) -> Self {
        Self {
            scalar: m.scalar_part(),
            bivector: Line::from_multivector(m),
            pseudoscalar: m.pseudoscalar_part(),
        }
    }
}

/// Geometric product; the left factor acts first.
impl<T: Field> Mul for Motor<T> {
    type Output = Self;
    fn mul(self, o: Self) -> Self {
        let (c, r, u, p) = (self.scalar, &self.bivector.direction, &self.bivector.moment, self.pseudoscalar);
        let (d, s, v, q) = (o.scalar, &o.bivector.direction, &o.bivector.moment, o.pseudoscalar);
        Self {
            scalar: c * d - r.dot(s),
            bivector: Line {
                direction: s * c + r * d - r.cross(s),
                moment: v * c + u * d - r.cross(v) - u.cross(s) - s * p - r * q,
            },
            pseudoscalar: c * q + p * d + r.dot(v) + u.dot(s),
        }
    }
}

impl Motor<f64> {
    /// Computes the motor `exp(B/2)` of the displacement by the (spatial) twist `B` for unit time.
    ///
    /// ```
    /// use inertial::spatial::pga::{Line, Motor, Point};
    /// use nalgebra::vector;
    /// // A half turn about the vertical line through (1, 0, 0).
    /// let axis = Line::through(&vector![1.0, 0.0, 0.0], vector![0.0, 0.0, std::f64::consts::PI]);
    /// let moved = Motor::exp(&axis).transform(&Point::finite(vector![3.0, 0.0, 0.0]));
    /// assert!((moved.position - vector![-1.0, 0.0, 0.0]).norm() < 1e-15);
    /// ```
    pub fn exp(twist: &Line<f64>) -> Self {
        let (w, v) = (&twist.direction, &twist.moment);
        // B² = −(θ² − 2 d I): functions of B are functions of the dual number θ − (d/θ) I.
        let d = w.dot(v);
        let (sinc, slope) = half_sinc(w.norm());
        Self {
            scalar: (0.5 * w.norm()).cos(),
            bivector: Line { direction: w * sinc, moment: v * sinc + w * (d * slope) },
            pseudoscalar: 0.5 * d * sinc,
        }
    }

    /// Computes the twist of smallest rotation whose [`Motor::exp`] is this motor or its negative, which has the same
    /// effect.
    pub fn log(&self) -> Line<f64> {
        let sign = if self.scalar < 0.0 { -1.0 } else { 1.0 };
        let (r, u) = (self.bivector.direction * sign, self.bivector.moment * sign);
        let (sinc, slope) = half_sinc(2.0 * r.norm().atan2(self.scalar * sign));
        let w = r / sinc;
        let d = 2.0 * self.pseudoscalar * sign / sinc;
        Line { direction: w, moment: (u - w * (d * slope)) / sinc }
    }
}

/// Computes `s(θ) = sin(θ/2)/θ` and `s'(θ)/θ`.
fn half_sinc(t: f64) -> (f64, f64) {
    let t2 = t * t;
    if t2 < 1e-3 {
        // Series expansion: the closed form of the slope suffers from cancellation near zero.
        (
            0.5 - t2 / 48.0 * (1.0 - t2 / 80.0 * (1.0 - t2 / 168.0)),
            -1.0 / 24.0 * (1.0 - t2 / 40.0 * (1.0 - t2 / 112.0 * (1.0 - t2 / 216.0))),
        )
    } else {
        let (s, c) = (0.5 * t).sin_cos();
        (s / t, (0.5 * c * t - s) / (t2 * t))
    }
}

impl From<&Pose<f64>> for Motor<f64> {
    fn from(pose: &Pose<f64>) -> Self {
        let [x, y, z, c] = quaternion_from_rotation(&pose.rotation);
        let turn = Self {
            scalar: c,
            bivector: Line { direction: Vector3::new(x, y, z), moment: Vector3::zeros() },
            pseudoscalar: 0.0,
        };
        let shift = Line { direction: Vector3::zeros(), moment: pose.translation * 0.5 };
        turn * Self { bivector: shift, ..Self::identity() }
    }
}
