//! The four helpers of paper 003, section 5: `M(V,Φ)`, `k(v)`, `B(X)`, `A(Φ)`.

use nalgebra::{Matrix3, SMatrix};

use super::{Field, Inertia, Motion, Parameters, Pose};

/// `∂(vᵀ I(π) w)/∂π`: the bilinear form behind `k` and `M`.
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

/// `k(v) = ∇π ½ vᵀ I(π) v` (eq. 38): the row of the kinetic-energy regressor.
#[inline]
pub fn energy_gradient(v: &Motion<f64>) -> Parameters<f64> {
    inertia_gradient(v, v) * 0.5
}

/// `M(V, Φ)` (eqs 36, 52): one column `∂(vᵀ I(π) φ)/∂π` for each `v` in `velocities` and `φ` in `free_modes`.
pub fn momentum_matrix<'a, T: Field>(
    velocities: &'a [Motion<T>],
    free_modes: &'a [Motion<T>],
) -> impl Iterator<Item = Parameters<T>> + 'a {
    free_modes.iter().flat_map(move |phi| velocities.iter().map(move |v| inertia_gradient(v, phi)))
}

/// `B(X)` (eq. 39): the 10×10 matrix that takes parameters in a frame at `pose` to its parent frame.
pub fn transfer_matrix<T: Field>(pose: &Pose<T>) -> SMatrix<T, 10, 10> {
    columns(|unit| unit.transformed(pose))
}

/// `A(Φ)` (eq. 40), `A(Φ) π = [(Φ×)ᵀ I(π) + I(π) (Φ×)]^∨`: how the transfer to the parent changes along the joint.
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

fn columns<T: Field>(map: impl Fn(&Inertia<T>) -> Inertia<T>) -> SMatrix<T, 10, 10> {
    let mut out = SMatrix::<T, 10, 10>::zeros();
    for k in 0..10 {
        let mut unit = Parameters::zeros();
        unit[k] = T::one();
        out.set_column(k, &map(&Inertia::from_parameters(&unit)).parameters());
    }
    out
}
