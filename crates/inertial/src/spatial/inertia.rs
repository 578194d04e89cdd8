//! Spatial inertia and its ten parameters.

use std::ops::{Add, AddAssign, Sub};

use nalgebra::{Matrix3, SMatrix, SVector, Vector3};

use super::{Field, Force, Motion, Pose};

/// Names of the ten parameters of a body, in order (paper 003, eq. 35).
pub const PARAMETER_NAMES: [&str; 10] = ["m", "hx", "hy", "hz", "Ixx", "Ixy", "Ixz", "Iyy", "Iyz", "Izz"];

/// Column of the ten parameters `π` of a body, in the order of [`PARAMETER_NAMES`].
pub type Parameters<T = f64> = SVector<T, 10>;

/// Spatial inertia of a body about the origin of its frame.
///
/// Any ten numbers are allowed; [`super::PseudoInertia`] decides whether they are physically consistent.
///
/// ```
/// use inertial::spatial::Inertia;
/// use nalgebra::{Matrix3, vector};
/// let rod = Inertia::from_com(2.0, vector![0.5, 0.0, 0.0], Matrix3::from_diagonal(&vector![0.0, 0.1, 0.1]));
/// assert_eq!(rod.parameters()[1], 1.0); // hx = m cx
/// assert_eq!(rod.parameters()[9], 0.6); // Izz = 0.1 + m cx²
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Inertia<T: Field = f64> {
    /// Mass (kg).
    pub mass: T,
    /// First moment `h = m c` (kg m).
    pub first_moment: Vector3<T>,
    /// Rotational inertia about the frame's origin (kg m²), symmetric.
    pub rotational: Matrix3<T>,
}

impl<T: Field> Inertia<T> {
    /// Creates the inertia of a massless body.
    #[inline]
    pub fn zero() -> Self {
        Self { mass: T::zero(), first_moment: Vector3::zeros(), rotational: Matrix3::zeros() }
    }

    /// Creates an inertia from the ten parameters.
    #[inline]
    pub fn from_parameters(p: &Parameters<T>) -> Self {
        Self {
            mass: p[0],
            first_moment: Vector3::new(p[1], p[2], p[3]),
            rotational: Matrix3::new(p[4], p[5], p[6], p[5], p[7], p[8], p[6], p[8], p[9]),
        }
    }

    /// Returns the ten parameters (the paper's `[I]^∨`).
    #[inline]
    pub fn parameters(&self) -> Parameters<T> {
        let (h, i) = (&self.first_moment, &self.rotational);
        SVector::from([
            self.mass,
            h.x,
            h.y,
            h.z,
            i[(0, 0)],
            i[(0, 1)],
            i[(0, 2)],
            i[(1, 1)],
            i[(1, 2)],
            i[(2, 2)],
        ])
    }

    /// Computes the momentum `I v` of the body moving with twist `v`.
    #[inline]
    pub fn apply(&self, v: &Motion<T>) -> Force<T> {
        Force::new(
            self.rotational * v.angular + self.first_moment.cross(&v.linear),
            v.linear * self.mass - self.first_moment.cross(&v.angular),
        )
    }

    /// Transforms the inertia to the parent of a frame at `pose` (the paper's `ⁱXᵀ I ⁱX`).
    #[inline]
    pub fn transformed(&self, pose: &Pose<T>) -> Self {
        let p = &pose.translation;
        let h = pose.rotation * self.first_moment;
        let ph = p.dot(&h);
        let spread = p * h.transpose();
        let shift = p * p.transpose();
        let diagonal = ph + ph + self.mass * p.dot(p);
        Self {
            mass: self.mass,
            first_moment: h + p * self.mass,
            rotational: pose.rotation * self.rotational * pose.rotation.transpose()
                + Matrix3::from_diagonal_element(diagonal)
                - spread
                - spread.transpose()
                - shift * self.mass,
        }
    }

    /// Computes the wrench needed to move the body: `I a + v ×* I v`.
    #[inline]
    pub fn wrench(&self, v: &Motion<T>, a: &Motion<T>) -> Force<T> {
        self.apply(a) + v.cross_force(&self.apply(v))
    }

    /// Computes the weight under `gravity` (in the body's axes), about the origin of its frame.
    #[inline]
    pub fn weight(&self, gravity: &Vector3<T>) -> Force<T> {
        Force::new(self.first_moment.cross(gravity), gravity * self.mass)
    }
}

impl Inertia<f64> {
    /// Creates an inertia from mass, centre of mass and the inertia about it, along the frame's axes (as in URDF).
    pub fn from_com(mass: f64, com: Vector3<f64>, inertia: Matrix3<f64>) -> Self {
        let shift = Matrix3::from_diagonal_element(com.norm_squared()) - com * com.transpose();
        Self { mass, first_moment: com * mass, rotational: inertia + shift * mass }
    }

    /// Returns the centre of mass; `None` for a massless body.
    pub fn com(&self) -> Option<Vector3<f64>> {
        (self.mass != 0.0).then(|| self.first_moment / self.mass)
    }

    /// Returns the rotational inertia about the centre of mass (about the origin for a massless body).
    pub fn about_com(&self) -> Matrix3<f64> {
        let Some(c) = self.com() else { return self.rotational };
        let shift = Matrix3::from_diagonal_element(c.norm_squared()) - c * c.transpose();
        self.rotational - shift * self.mass
    }
}

impl<T: Field> Add for Inertia<T> {
    type Output = Self;
    #[inline]
    fn add(self, o: Self) -> Self {
        Self {
            mass: self.mass + o.mass,
            first_moment: self.first_moment + o.first_moment,
            rotational: self.rotational + o.rotational,
        }
    }
}

impl<T: Field> AddAssign for Inertia<T> {
    #[inline]
    fn add_assign(&mut self, o: Self) {
        *self = *self + o;
    }
}

impl<T: Field> Sub for Inertia<T> {
    type Output = Self;
    #[inline]
    fn sub(self, o: Self) -> Self {
        Self {
            mass: self.mass - o.mass,
            first_moment: self.first_moment - o.first_moment,
            rotational: self.rotational - o.rotational,
        }
    }
}

/// Computes the 6×10 matrix with `body_regressor(v, a) · π = I(π) a + v ×* I(π) v`, rows `[moment; force]`.
#[inline]
pub fn body_regressor<T: Field>(v: &Motion<T>, a: &Motion<T>) -> SMatrix<T, 6, 10> {
    let w = &v.angular;
    let b = super::skew(&a.angular) + super::skew(w) * super::skew(w);
    // Acceleration of the body-fixed point at the origin.
    let d = a.linear + w.cross(&v.linear);
    let mut y = SMatrix::<T, 6, 10>::zeros();
    // force = m d + B h;  moment = h × d + (I α + ω × I ω)
    y.fixed_view_mut::<3, 1>(3, 0).copy_from(&d);
    y.fixed_view_mut::<3, 3>(3, 1).copy_from(&b);
    y.fixed_view_mut::<3, 3>(0, 1).copy_from(&-super::skew(&d));
    for (k, (i, j)) in [(0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)].into_iter().enumerate() {
        let mut e = Matrix3::zeros();
        e[(i, j)] = T::one();
        e[(j, i)] = T::one();
        let column = e * a.angular + w.cross(&(e * w));
        y.fixed_view_mut::<3, 1>(0, 4 + k).copy_from(&column);
    }
    y
}

/// Computes the 6×10 matrix `M` with `M π = I(π) v`, the momentum of a body: rows `[angular; linear]`. The parameters `π` are those in the
/// frame of the body at `pose`; the twist `v` of the body and its momentum are about the origin to which `pose` refers, in its axes.
pub(crate) fn momentum_columns(v: &Motion<f64>, pose: &Pose<f64>) -> SMatrix<f64, 6, 10> {
    let (w, p) = (&v.angular, &pose.translation);
    // Velocity of the origin of the body.
    let d = v.linear + w.cross(p);
    let axes = [0, 1, 2].map(|k| pose.rotation.column(k).into_owned());
    let along = [0, 1, 2].map(|k| axes[k].dot(w));
    let mut out = SMatrix::<f64, 6, 10>::zeros();
    let mut set = |column: usize, angular: Vector3<f64>, linear: Vector3<f64>| {
        out.fixed_view_mut::<3, 1>(0, column).copy_from(&angular);
        out.fixed_view_mut::<3, 1>(3, column).copy_from(&linear);
    };
    set(0, p.cross(&d), d);
    for (k, axis) in axes.iter().enumerate() {
        let linear = w.cross(axis);
        set(1 + k, axis.cross(&d) + p.cross(&linear), linear);
    }
    for (k, (i, j)) in [(0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)].into_iter().enumerate() {
        let angular = if i == j { axes[i] * along[i] } else { axes[i] * along[j] + axes[j] * along[i] };
        set(4 + k, angular, Vector3::zeros());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spatial::rotation_from_rpy;
    use nalgebra::vector;

    #[test]
    fn momentum_columns_are_momenta_of_unit_bodies() {
        let pose = Pose::new(rotation_from_rpy(0.3, -1.1, 2.0), vector![0.4, -0.7, 1.3]);
        let v = Motion::new(vector![0.9, -0.2, 0.5], vector![-1.0, 0.6, 0.8]);
        let columns = momentum_columns(&v, &pose);
        for k in 0..10 {
            let mut unit = Parameters::zeros();
            unit[k] = 1.0;
            let momentum = Inertia::from_parameters(&unit).transformed(&pose).apply(&v).to_vector();
            assert!((columns.column(k) - momentum).amax() < 1e-14, "{k}");
        }
    }
}
