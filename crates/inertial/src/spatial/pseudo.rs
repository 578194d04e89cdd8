//! Pseudo-inertia (4×4): positive semidefinite if and only if some mass density has these parameters.

use nalgebra::{Matrix3, Matrix4};

use super::{Field, Inertia};

/// Pseudo-inertia `P = [[Σ, h], [hᵀ, m]]` with `Σ = ½ tr(I) 1 − I = ∫ x xᵀ dm`.
///
/// A frame change by the homogeneous matrix `T` is `T P Tᵀ`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PseudoInertia<T: Field = f64>(pub Matrix4<T>);

impl<T: Field> PseudoInertia<T> {
    /// Creates a pseudo-inertia from a spatial inertia. `None` in a field of characteristic two.
    pub fn from_inertia(inertia: &Inertia<T>) -> Option<Self> {
        Some(Self::assemble(inertia, T::from_i64(2).inverse()?))
    }

    fn assemble(inertia: &Inertia<T>, half: T) -> Self {
        let i = &inertia.rotational;
        let sigma = Matrix3::from_diagonal_element(i.trace() * half) - i;
        let h = &inertia.first_moment;
        let mut p = Matrix4::zeros();
        p.fixed_view_mut::<3, 3>(0, 0).copy_from(&sigma);
        p.fixed_view_mut::<3, 1>(0, 3).copy_from(h);
        p.fixed_view_mut::<1, 3>(3, 0).copy_from(&h.transpose());
        p[(3, 3)] = inertia.mass;
        Self(p)
    }

    /// Converts to the spatial inertia: `I = tr(Σ) 1 − Σ`.
    pub fn to_inertia(&self) -> Inertia<T> {
        let sigma = self.0.fixed_view::<3, 3>(0, 0).into_owned();
        Inertia {
            mass: self.0[(3, 3)],
            first_moment: self.0.fixed_view::<3, 1>(0, 3).into_owned(),
            rotational: Matrix3::from_diagonal_element(sigma.trace()) - sigma,
        }
    }
}

impl From<&Inertia<f64>> for PseudoInertia<f64> {
    fn from(inertia: &Inertia<f64>) -> Self {
        Self::assemble(inertia, 0.5)
    }
}
