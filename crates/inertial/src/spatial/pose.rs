//! Poses (rigid displacements) and the transforms of spatial vectors.

use std::ops::Mul;

use nalgebra::{Matrix3, Matrix4, Vector3};

use super::{Field, Force, Motion};

/// Pose of a child frame in its parent: `x_parent = rotation · x_child + translation`.
///
/// The paper's `ⁱX_p` (parent motion to child coordinates) is [`Pose::pull_motion`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pose<T: Field = f64> {
    /// Axes of the child as columns, in parent coordinates.
    pub rotation: Matrix3<T>,
    /// Origin of the child, in parent coordinates.
    pub translation: Vector3<T>,
}

/// Returns the matrix `[v]×` with `[v]× w = v × w`.
#[inline]
pub fn skew<T: Field>(v: &Vector3<T>) -> Matrix3<T> {
    let o = T::zero();
    Matrix3::new(o, -v.z, v.y, v.z, o, -v.x, -v.y, v.x, o)
}

/// Computes the rotation from URDF's roll, pitch, yaw: `Rz(yaw) Ry(pitch) Rx(roll)`.
pub fn rotation_from_rpy(roll: f64, pitch: f64, yaw: f64) -> Matrix3<f64> {
    let (sr, cr) = roll.sin_cos();
    let (sp, cp) = pitch.sin_cos();
    let (sy, cy) = yaw.sin_cos();
    Matrix3::new(
        cy * cp,
        cy * sp * sr - sy * cr,
        cy * sp * cr + sy * sr,
        sy * cp,
        sy * sp * sr + cy * cr,
        sy * sp * cr - cy * sr,
        -sp,
        cp * sr,
        cp * cr,
    )
}

/// Computes the rotation from a quaternion `x y z w` of any non-zero length (exactly orthogonal over any field).
#[inline]
pub fn rotation_from_quaternion<T: Field>(x: T, y: T, z: T, w: T) -> Option<Matrix3<T>> {
    let s = (x * x + y * y + z * z + w * w).inverse()?;
    let s = s + s;
    let one = T::one();
    Some(Matrix3::new(
        one - s * (y * y + z * z),
        s * (x * y - z * w),
        s * (x * z + y * w),
        s * (x * y + z * w),
        one - s * (x * x + z * z),
        s * (y * z - x * w),
        s * (x * z - y * w),
        s * (y * z + x * w),
        one - s * (x * x + y * y),
    ))
}

impl<T: Field> Pose<T> {
    /// Creates a pose from rotation and translation.
    #[inline]
    pub fn new(rotation: Matrix3<T>, translation: Vector3<T>) -> Self {
        Self { rotation, translation }
    }

    /// Creates the identity pose.
    #[inline]
    pub fn identity() -> Self {
        Self::new(Matrix3::identity(), Vector3::zeros())
    }

    /// Creates a pure translation.
    #[inline]
    pub fn from_translation(translation: Vector3<T>) -> Self {
        Self::new(Matrix3::identity(), translation)
    }

    /// Returns the pose of the parent in the child.
    #[inline]
    pub fn inverse(&self) -> Self {
        let rt = self.rotation.transpose();
        Self::new(rt, -(rt * self.translation))
    }

    /// Transforms a point from child to parent coordinates.
    #[inline]
    pub fn transform_point(&self, x: &Vector3<T>) -> Vector3<T> {
        self.rotation * x + self.translation
    }

    /// Transforms a motion vector from child to parent coordinates.
    #[inline]
    pub fn push_motion(&self, m: &Motion<T>) -> Motion<T> {
        let angular = self.rotation * m.angular;
        Motion::new(angular, self.rotation * m.linear + self.translation.cross(&angular))
    }

    /// Transforms a motion vector from parent to child coordinates (`ⁱX_p`).
    #[inline]
    pub fn pull_motion(&self, m: &Motion<T>) -> Motion<T> {
        Motion::new(
            self.rotation.tr_mul(&m.angular),
            self.rotation.tr_mul(&(m.linear - self.translation.cross(&m.angular))),
        )
    }

    /// Transforms a force vector from child to parent coordinates (`ⁱX_pᵀ`).
    #[inline]
    pub fn push_force(&self, f: &Force<T>) -> Force<T> {
        let linear = self.rotation * f.linear;
        Force::new(self.rotation * f.angular + self.translation.cross(&linear), linear)
    }

    /// Transforms a force vector from parent to child coordinates.
    #[inline]
    pub fn pull_force(&self, f: &Force<T>) -> Force<T> {
        Force::new(
            self.rotation.tr_mul(&(f.angular - self.translation.cross(&f.linear))),
            self.rotation.tr_mul(&f.linear),
        )
    }

    /// Returns the homogeneous 4×4 matrix.
    #[inline]
    pub fn to_matrix(&self) -> Matrix4<T> {
        let mut m = Matrix4::identity();
        m.fixed_view_mut::<3, 3>(0, 0).copy_from(&self.rotation);
        m.fixed_view_mut::<3, 1>(0, 3).copy_from(&self.translation);
        m
    }
}

impl<T: Field> Mul for Pose<T> {
    type Output = Self;
    #[inline]
    fn mul(self, child: Self) -> Self {
        Self::new(self.rotation * child.rotation, self.transform_point(&child.translation))
    }
}

impl Pose<f64> {
    /// Creates a pose from URDF's `xyz` and `rpy`.
    pub fn from_xyz_rpy(xyz: [f64; 3], rpy: [f64; 3]) -> Self {
        Self::new(rotation_from_rpy(rpy[0], rpy[1], rpy[2]), xyz.into())
    }

    /// Computes the displacement of a body that moves with constant body twist for unit time.
    ///
    /// ```
    /// use inertial::spatial::{Motion, Pose};
    /// use nalgebra::{Vector3, vector};
    /// let turn = Pose::exp(&Motion::new(vector![0.0, 0.0, std::f64::consts::FRAC_PI_2], Vector3::zeros()));
    /// assert!((turn.transform_point(&Vector3::x()) - Vector3::y()).norm() < 1e-15);
    /// ```
    pub fn exp(m: &Motion<f64>) -> Self {
        let w = m.angular;
        let t2 = w.norm_squared();
        let t = t2.sqrt();
        // a = sin t/t, b = (1−cos t)/t², c = (t−sin t)/t³; the series keep full precision near zero.
        let (a, b, c) = if t2 < 1e-4 {
            (
                1.0 - t2 / 6.0 * (1.0 - t2 / 20.0 * (1.0 - t2 / 42.0)),
                0.5 - t2 / 24.0 * (1.0 - t2 / 30.0 * (1.0 - t2 / 56.0)),
                1.0 / 6.0 - t2 / 120.0 * (1.0 - t2 / 42.0 * (1.0 - t2 / 72.0)),
            )
        } else {
            let half = (0.5 * t).sin();
            (t.sin() / t, 2.0 * half * half / t2, (t - t.sin()) / (t2 * t))
        };
        let k = skew(&w);
        let k2 = k * k;
        let one = Matrix3::identity();
        Self::new(one + k * a + k2 * b, (one + k * b + k2 * c) * m.linear)
    }

    /// Computes the body twist of smallest rotation whose [`Pose::exp`] is this pose (rotation angle in [0, π]).
    pub fn log(&self) -> Motion<f64> {
        let r = &self.rotation;
        // Uses the quaternion, which is stable for every angle, π included.
        let [x, y, z, w] = quaternion_from_rotation(r);
        let v = Vector3::new(x, y, z);
        let n = v.norm();
        let scale = if n < 1e-10 { 2.0 / w } else { 2.0 * n.atan2(w) / n };
        let rot = v * scale;
        let t2 = rot.norm_squared();
        let t = t2.sqrt();
        // V⁻¹ = 1 − ½[ω]× + d [ω]×², d = (1 − (t/2)cot(t/2))/t².
        let d = if t2 < 1e-3 {
            1.0 / 12.0 + t2 / 720.0 + t2 * t2 / 30240.0 + t2 * t2 * t2 / 1_209_600.0
        } else {
            (1.0 - 0.5 * t / (0.5 * t).tan()) / t2
        };
        let k = skew(&rot);
        Motion::new(rot, (Matrix3::identity() - k * 0.5 + k * k * d) * self.translation)
    }
}

/// Computes the unit quaternion `x y z w` (w ≥ 0) of a rotation matrix.
pub fn quaternion_from_rotation(r: &Matrix3<f64>) -> [f64; 4] {
    let trace = r.trace();
    // Shepperd's method: divides by the largest of the four components.
    let (x, y, z, w);
    if trace > 0.0 {
        let s = 2.0 * (1.0 + trace).max(0.0).sqrt();
        (w, x, y, z) =
            (0.25 * s, (r[(2, 1)] - r[(1, 2)]) / s, (r[(0, 2)] - r[(2, 0)]) / s, (r[(1, 0)] - r[(0, 1)]) / s);
    } else {
        let i = if r[(0, 0)] >= r[(1, 1)] && r[(0, 0)] >= r[(2, 2)] {
            0
        } else if r[(1, 1)] >= r[(2, 2)] {
            1
        } else {
            2
        };
        let (j, k) = ((i + 1) % 3, (i + 2) % 3);
        let s = 2.0 * (1.0 + r[(i, i)] - r[(j, j)] - r[(k, k)]).max(0.0).sqrt();
        let mut v = [0.0; 3];
        v[i] = 0.25 * s;
        v[j] = (r[(i, j)] + r[(j, i)]) / s;
        v[k] = (r[(i, k)] + r[(k, i)]) / s;
        (x, y, z, w) = (v[0], v[1], v[2], (r[(k, j)] - r[(j, k)]) / s);
    }
    let sign = if w < 0.0 { -1.0 } else { 1.0 };
    let n = sign / (x * x + y * y + z * z + w * w).sqrt();
    [x * n, y * n, z * n, w * n]
}
