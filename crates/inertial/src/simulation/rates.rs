//! Conversion between joint velocities (in the child frame) and derivatives of joint coordinates.

use nalgebra::{Quaternion, Vector3};

use crate::mechanism::JointType;

fn vector(x: &[f64]) -> Vector3<f64> {
    Vector3::new(x[0], x[1], x[2])
}

fn quaternion(x: &[f64]) -> Quaternion<f64> {
    Quaternion::new(x[3], x[0], x[1], x[2])
}

/// Computes the first and second derivatives of the coordinates `q` at the velocities `v` and accelerations `a`.
pub(super) fn derivatives(
    joint: &JointType,
    q: &[f64],
    v: &[f64],
    a: &[f64],
    first: &mut [f64],
    second: &mut [f64],
) {
    joint.position_rates(q, v, first);
    match joint {
        JointType::Planar { .. } => {
            // d/dt R(θ) v = R(θ) (a + θ' × v)
            let turned = [a[0] - v[2] * v[1], a[1] + v[2] * v[0], a[2]];
            joint.position_rates(q, &turned, second);
        }
        JointType::Spherical => turning(q, v, a, first, second),
        JointType::Floating => {
            let turned = vector(a) + vector(&v[3..]).cross(&vector(v));
            second[..3].copy_from_slice((joint.pose(q).rotation * turned).as_slice());
            turning(&q[3..], &v[3..], &a[3..], &first[3..], &mut second[3..]);
        }
        _ => second.copy_from_slice(a),
    }
}

/// Computes `q'' = ½ (q' ⊗ ω + q ⊗ ω')`.
fn turning(q: &[f64], w: &[f64], dw: &[f64], first: &[f64], second: &mut [f64]) {
    let imaginary = |w: &[f64]| Quaternion::from_imag(vector(w));
    let sum = (quaternion(first) * imaginary(w) + quaternion(q) * imaginary(dw)) * 0.5;
    second[..4].copy_from_slice(sum.coords.as_slice());
}

/// Computes velocities and accelerations from the derivatives of the coordinates, and normalizes the quaternion in `q`.
pub(super) fn motion(
    joint: &JointType,
    q: &mut [f64],
    first: &[f64],
    second: &[f64],
    v: &mut [f64],
    a: &mut [f64],
) {
    match joint {
        JointType::Planar { .. } => {
            let (s, c) = q[2].sin_cos();
            let turned = |x: &[f64]| [c * x[0] + s * x[1], c * x[1] - s * x[0]];
            let (rate, change) = (turned(first), turned(second));
            v.copy_from_slice(&[rate[0], rate[1], first[2]]);
            a.copy_from_slice(&[change[0] + v[2] * v[1], change[1] - v[2] * v[0], second[2]]);
        }
        JointType::Spherical => turned(joint, q, first, second, v, a),
        JointType::Floating => {
            turned(&JointType::Spherical, &mut q[3..], &first[3..], &second[3..], &mut v[3..], &mut a[3..]);
            let rotation = joint.pose(q).rotation;
            let linear = rotation.tr_mul(&vector(first));
            let change = rotation.tr_mul(&vector(second)) - vector(&v[3..]).cross(&linear);
            v[..3].copy_from_slice(linear.as_slice());
            a[..3].copy_from_slice(change.as_slice());
        }
        _ => {
            v.copy_from_slice(first);
            a.copy_from_slice(second);
        }
    }
}

/// Computes the angular velocity of a quaternion `s` of any length: `ω = 2 Im(s̄ ⊗ s')/|s|²`.
fn turned(joint: &JointType, q: &mut [f64], first: &[f64], second: &[f64], w: &mut [f64], dw: &mut [f64]) {
    let (s, ds, dds) = (quaternion(q), quaternion(first), quaternion(second));
    let square = s.norm_squared();
    let angular = (s.conjugate() * ds).imag() * (2.0 / square);
    let change = (s.conjugate() * dds).imag() * (2.0 / square) - angular * (2.0 * s.dot(&ds) / square);
    w[..3].copy_from_slice(angular.as_slice());
    dw[..3].copy_from_slice(change.as_slice());
    joint.normalize(q);
}
