//! Operators of paper 003, section 5: `M(V,Φ)`, `k(v)`, `B(X)`, `A(Φ)`.
//!
//! A *gradient* here is a row that multiplies the ten parameters, such as `k(v)ᵀ`.

use nalgebra::{Matrix3, SMatrix, Vector3};

use super::{Field, Inertia, Motion, Parameters, Pose};

/// Computes `∂(vᵀ I(π) w)/∂π`, the bilinear form that defines `k` and `M`.
#[inline]
pub fn inertia_gradient<T: Field>(v: &Motion<T>, w: &Motion<T>) -> Parameters<T> {
    let (a, b) = (&v.angular, &w.angular);
    let h = w.linear.cross(a) + v.linear.cross(b);
    Parameters::from([
        v.linear.dot(&w.linear),
        h.x,
        h.y,
        h.z,
        a.x * b.x,
        a.x * b.y + a.y * b.x,
        a.x * b.z + a.z * b.x,
        a.y * b.y,
        a.y * b.z + a.z * b.y,
        a.z * b.z,
    ])
}

/// Computes `k(v) = ∇π ½ vᵀ I(π) v` (eq. 38), the row of the kinetic-energy regressor.
#[inline]
pub fn energy_gradient(v: &Motion<f64>) -> Parameters<f64> {
    inertia_gradient(v, v) * 0.5
}

/// Computes `M(V, Φ)` (eqs 36, 52): one column `∂(vᵀ I(π) φ)/∂π` for each `v` in `velocities` and `φ` in `free_modes`.
pub fn momentum_matrix<'a, T: Field>(
    velocities: &'a [Motion<T>],
    free_modes: &'a [Motion<T>],
) -> impl Iterator<Item = Parameters<T>> + 'a {
    free_modes.iter().flat_map(move |phi| velocities.iter().map(move |v| inertia_gradient(v, phi)))
}

/// Computes `B(X)` (eq. 39), the 10×10 matrix that maps parameters in a frame at `pose` to its parent frame.
pub fn transfer_matrix<T: Field>(pose: &Pose<T>) -> SMatrix<T, 10, 10> {
    columns(|unit| unit.transformed(pose))
}

/// Computes `A(Φ)` (eq. 40), `A(Φ) π = [(Φ×)ᵀ I(π) + I(π) (Φ×)]^∨`: the rate of the transfer to the parent along the
/// joint.
///
/// For a joint that has moved by `t` along `phi` from `pose`, `B = B(pose) exp(−t A(Φ))`.
pub fn transfer_rate<T: Field>(phi: &Motion<T>) -> SMatrix<T, 10, 10> {
    let w = super::skew(&phi.angular);
    columns(|unit| {
        let (h, i) = (&unit.first_moment, &unit.rotational);
        let spread = phi.linear * h.transpose();
        let along = phi.linear.dot(h);
        Inertia {
            mass: T::zero(),
            first_moment: -(w * h) - phi.linear * unit.mass,
            rotational: i * w - w * i + spread + spread.transpose()
                - Matrix3::from_diagonal_element(along + along),
        }
    })
}

/// Computes `B(X)ᵀ k`, which maps the gradient `k` for a parent's parameters to those of a body at `pose`.
#[inline]
pub fn pull_gradient<T: Field>(pose: &Pose<T>, k: &Parameters<T>, half: T) -> Parameters<T> {
    let (p, r) = (&pose.translation, &pose.rotation);
    let (m, h, s) = split(k, half);
    // The derivative of the shifted inertia with respect to h is twice this, with respect to m once.
    let shift = p * s.trace() - s * p;
    let h_new = r.tr_mul(&(h + shift + shift));
    join(m + p.dot(&(h + shift)), &h_new, &(r.tr_mul(&s) * r))
}

/// Computes `A(Φ)ᵀ k`, the rate of change of the gradient `k` as the joint moves along `phi`.
#[inline]
pub fn gradient_rate<T: Field>(phi: &Motion<T>, k: &Parameters<T>, half: T) -> Parameters<T> {
    let (w, l) = (super::skew(&phi.angular), &phi.linear);
    let (_, h, s) = split(k, half);
    let shift = s * l - l * s.trace();
    join(-h.dot(l), &(phi.angular.cross(&h) + shift + shift), &(w * s - s * w))
}

/// Splits a gradient into factors of the mass, the first moment and (symmetric) the rotational inertia.
#[inline]
fn split<T: Field>(k: &Parameters<T>, half: T) -> (T, Vector3<T>, Matrix3<T>) {
    let (xy, xz, yz) = (k[5] * half, k[6] * half, k[8] * half);
    (k[0], Vector3::new(k[1], k[2], k[3]), Matrix3::new(k[4], xy, xz, xy, k[7], yz, xz, yz, k[9]))
}

#[inline]
fn join<T: Field>(m: T, h: &Vector3<T>, s: &Matrix3<T>) -> Parameters<T> {
    let twice = |i, j| s[(i, j)] + s[(j, i)];
    let i = [s[(0, 0)], twice(0, 1), twice(0, 2), s[(1, 1)], twice(1, 2), s[(2, 2)]];
    Parameters::from([m, h.x, h.y, h.z, i[0], i[1], i[2], i[3], i[4], i[5]])
}

fn columns<T: Field>(map: impl Fn(&Inertia<T>) -> Inertia<T>) -> SMatrix<T, 10, 10> {
    let mut out = SMatrix::<T, 10, 10>::zeros();
    for k in 0..10 {
        let mut unit = Parameters::zeros();
        unit[k] = T::one();
        out.set_column(k, &map(&Inertia::from_parameters(&unit)).parameters());
    }
    out
}
