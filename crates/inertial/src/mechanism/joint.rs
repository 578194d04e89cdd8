//! Joint types: their coordinates, motions and constant free modes.

use std::ops::Deref;

use nalgebra::{Matrix3, Vector3};

use crate::spatial::{Motion, Pose, rotation_from_quaternion, skew};

/// Motion that a joint allows. Axes are unit vectors in the joint's frame.
///
/// Rotations about three axes use unit quaternions. Velocities are in the child's frame, so every type except
/// [`JointType::Universal`] has constant free modes `Φ`:
///
/// | type | coordinates `q` | velocities `v` |
/// | --- | --- | --- |
/// | revolute, helical | angle | angular rate |
/// | prismatic | displacement | its rate |
/// | cylindrical | angle, displacement | their rates |
/// | universal | angle about the first axis, about the second | their rates |
/// | planar | x, y along [`plane_directions`], angle about the normal | vx, vy in the child's frame, angular rate |
/// | spherical | quaternion x y z w | angular velocity |
/// | floating | x y z, quaternion x y z w | linear velocity, angular velocity |
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum JointType {
    /// Rigid connection; used only in descriptions and loops (a built mechanism has lumped the bodies).
    Fixed,
    /// Rotation about an axis (URDF's `continuous` is this without limits).
    Revolute {
        /// Unit axis.
        axis: Vector3<f64>,
    },
    /// Translation along an axis.
    Prismatic {
        /// Unit axis.
        axis: Vector3<f64>,
    },
    /// Rotation about an axis coupled with translation along it.
    Helical {
        /// Unit axis.
        axis: Vector3<f64>,
        /// Advance in metres per radian.
        pitch: f64,
    },
    /// Rotation about and translation along one axis.
    Cylindrical {
        /// Unit axis.
        axis: Vector3<f64>,
    },
    /// Rotation about two intersecting axes, the first on the parent's side; used only in descriptions and loops (a
    /// built mechanism has two revolute joints with a massless body between them).
    Universal {
        /// Unit axes.
        axes: [Vector3<f64>; 2],
    },
    /// Translation in a plane and rotation about its normal.
    Planar {
        /// Unit normal.
        normal: Vector3<f64>,
    },
    /// Rotation about a point.
    Spherical,
    /// Unrestricted motion.
    Floating,
}

/// Set of up to six free modes, stored on the stack.
#[derive(Debug, Clone, Copy)]
pub struct Modes {
    modes: [Motion<f64>; 6],
    len: usize,
}

impl Modes {
    fn new(modes: &[Motion<f64>]) -> Self {
        let mut all = [Motion::zero(); 6];
        all[..modes.len()].copy_from_slice(modes);
        Self { modes: all, len: modes.len() }
    }
}

impl Deref for Modes {
    type Target = [Motion<f64>];
    fn deref(&self) -> &[Motion<f64>] {
        &self.modes[..self.len]
    }
}

/// Returns two unit vectors that complete `normal` to a right-handed frame; for a coordinate axis, the next two axes.
pub fn plane_directions(normal: &Vector3<f64>) -> [Vector3<f64>; 2] {
    let k = normal.iamax();
    let mut next = Vector3::zeros();
    next[(k + 1) % 3] = normal[k].signum();
    let first = (next - normal * normal.dot(&next)).normalize();
    [first, normal.cross(&first)]
}

/// Returns the rotation by `angle` about a unit `axis`.
pub fn rotation_about(axis: &Vector3<f64>, angle: f64) -> Matrix3<f64> {
    let (s, c) = angle.sin_cos();
    Matrix3::from_diagonal_element(c) + skew(axis) * s + axis * axis.transpose() * (1.0 - c)
}

impl JointType {
    /// Returns the name of the type in files and results.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Fixed => "fixed",
            Self::Revolute { .. } => "revolute",
            Self::Prismatic { .. } => "prismatic",
            Self::Helical { .. } => "helical",
            Self::Cylindrical { .. } => "cylindrical",
            Self::Universal { .. } => "universal",
            Self::Planar { .. } => "planar",
            Self::Spherical => "spherical",
            Self::Floating => "floating",
        }
    }

    /// Returns the number of position coordinates.
    pub fn nq(&self) -> usize {
        match self {
            Self::Spherical => 4,
            Self::Floating => 7,
            _ => self.nv(),
        }
    }

    /// Returns the number of velocity coordinates (degrees of freedom).
    pub fn nv(&self) -> usize {
        match self {
            Self::Fixed => 0,
            Self::Revolute { .. } | Self::Prismatic { .. } | Self::Helical { .. } => 1,
            Self::Cylindrical { .. } | Self::Universal { .. } => 2,
            Self::Planar { .. } | Self::Spherical => 3,
            Self::Floating => 6,
        }
    }

    /// Returns the suffixes of the position coordinates of a joint with several coordinates (`elbow.qx`); empty for
    /// one.
    pub fn coordinate_suffixes(&self) -> &'static [&'static str] {
        match self {
            Self::Cylindrical { .. } => &["angle", "displacement"],
            Self::Universal { .. } => &["1", "2"],
            Self::Planar { .. } => &["x", "y", "angle"],
            Self::Spherical => &["qx", "qy", "qz", "qw"],
            Self::Floating => &["x", "y", "z", "qx", "qy", "qz", "qw"],
            _ => &[],
        }
    }

    /// Returns the suffixes of the velocity coordinates of a joint with several coordinates (`elbow.wx`); empty for
    /// one.
    pub fn velocity_suffixes(&self) -> &'static [&'static str] {
        match self {
            Self::Planar { .. } => &["vx", "vy", "w"],
            Self::Spherical => &["wx", "wy", "wz"],
            Self::Floating => &["vx", "vy", "vz", "wx", "wy", "wz"],
            _ => self.coordinate_suffixes(),
        }
    }

    /// Returns the suffixes of the forces of a joint with several coordinates: those of the velocities, but force and torque
    /// (`root.fx`) for a floating joint, whose forces are a wrench.
    pub fn force_suffixes(&self) -> &'static [&'static str] {
        match self {
            Self::Floating => &["fx", "fy", "fz", "tx", "ty", "tz"],
            _ => self.velocity_suffixes(),
        }
    }

    /// Writes the coordinates of zero displacement.
    pub fn neutral(&self, q: &mut [f64]) {
        q.fill(0.0);
        if matches!(self, Self::Spherical | Self::Floating) {
            q[self.nq() - 1] = 1.0;
        }
    }

    /// Returns the child's displacement at `q`. Quaternions need not be normalized; a zero quaternion counts as no
    /// rotation.
    pub fn pose(&self, q: &[f64]) -> Pose<f64> {
        let quaternion =
            |q: &[f64]| rotation_from_quaternion(q[0], q[1], q[2], q[3]).unwrap_or_else(Matrix3::identity);
        match self {
            Self::Fixed => Pose::identity(),
            Self::Revolute { axis } => Pose::new(rotation_about(axis, q[0]), Vector3::zeros()),
            Self::Prismatic { axis } => Pose::from_translation(axis * q[0]),
            Self::Helical { axis, pitch } => Pose::new(rotation_about(axis, q[0]), axis * (pitch * q[0])),
            Self::Cylindrical { axis } => Pose::new(rotation_about(axis, q[0]), axis * q[1]),
            Self::Universal { axes } => {
                Pose::new(rotation_about(&axes[0], q[0]) * rotation_about(&axes[1], q[1]), Vector3::zeros())
            }
            Self::Planar { normal } => {
                let [a, b] = plane_directions(normal);
                Pose::new(rotation_about(normal, q[2]), a * q[0] + b * q[1])
            }
            Self::Spherical => Pose::new(quaternion(q), Vector3::zeros()),
            Self::Floating => Pose::new(quaternion(&q[3..]), Vector3::new(q[0], q[1], q[2])),
        }
    }

    /// Returns the free modes `Φ` in the child's frame at `q` (constant except for universal joints).
    pub fn free_modes_at(&self, q: &[f64]) -> Modes {
        match self {
            Self::Universal { axes } => Modes::new(&[
                Motion::new(rotation_about(&axes[1], -q[1]) * axes[0], Vector3::zeros()),
                Motion::new(axes[1], Vector3::zeros()),
            ]),
            _ => self.free_modes(),
        }
    }

    /// Returns the constant free modes `Φ` in the child's frame; for a universal joint, the modes at zero.
    pub fn free_modes(&self) -> Modes {
        let zero = Vector3::zeros();
        let turn = |a: Vector3<f64>| Motion::new(a, zero);
        let slide = |a: Vector3<f64>| Motion::new(zero, a);
        let (x, y, z) = (Vector3::x(), Vector3::y(), Vector3::z());
        match *self {
            Self::Fixed => Modes::new(&[]),
            Self::Revolute { axis } => Modes::new(&[turn(axis)]),
            Self::Prismatic { axis } => Modes::new(&[slide(axis)]),
            Self::Helical { axis, pitch } => Modes::new(&[Motion::new(axis, axis * pitch)]),
            Self::Cylindrical { axis } => Modes::new(&[turn(axis), slide(axis)]),
            Self::Universal { axes } => Modes::new(&[turn(axes[0]), turn(axes[1])]),
            Self::Planar { normal } => {
                let [a, b] = plane_directions(&normal);
                Modes::new(&[slide(a), slide(b), turn(normal)])
            }
            Self::Spherical => Modes::new(&[turn(x), turn(y), turn(z)]),
            Self::Floating => Modes::new(&[slide(x), slide(y), slide(z), turn(x), turn(y), turn(z)]),
        }
    }

    /// Computes the body velocity `v` that moves the coordinates `from` to `to` in unit time, by the shorter rotation.
    pub fn difference(&self, from: &[f64], to: &[f64], v: &mut [f64]) {
        let twist = || (self.pose(from).inverse() * self.pose(to)).log();
        match self {
            Self::Planar { normal } => {
                let [a, b] = plane_directions(normal);
                let twist = twist();
                v.copy_from_slice(&[a.dot(&twist.linear), b.dot(&twist.linear), normal.dot(&twist.angular)]);
            }
            Self::Spherical => v.copy_from_slice(twist().angular.as_slice()),
            Self::Floating => {
                let twist = twist();
                v[..3].copy_from_slice(twist.linear.as_slice());
                v[3..].copy_from_slice(twist.angular.as_slice());
            }
            _ => v.iter_mut().zip(to.iter().zip(from)).for_each(|(v, (to, from))| *v = to - from),
        }
    }

    /// Integrates the coordinates `q` along the body velocity `v` for unit time.
    pub fn integrate(&self, q: &mut [f64], v: &[f64]) {
        match self {
            Self::Planar { normal } => {
                let [a, b] = plane_directions(normal);
                let step = Pose::exp(&Motion::new(normal * v[2], a * v[0] + b * v[1]));
                let moved = self.pose(q) * step;
                q[0] = moved.translation.dot(&a);
                q[1] = moved.translation.dot(&b);
                q[2] += v[2];
            }
            Self::Spherical => turn_quaternion(q, Vector3::new(v[0], v[1], v[2])),
            Self::Floating => {
                let w = Vector3::new(v[3], v[4], v[5]);
                let step = Pose::exp(&Motion::new(w, Vector3::new(v[0], v[1], v[2])));
                let moved = self.pose(q) * step;
                q[..3].copy_from_slice(moved.translation.as_slice());
                turn_quaternion(&mut q[3..], w);
            }
            _ => q.iter_mut().zip(v).for_each(|(q, v)| *q += v),
        }
    }

    /// Computes the time derivative of the coordinates `q` at the velocity `v`; quaternions need not have unit length.
    pub fn position_rates(&self, q: &[f64], v: &[f64], rates: &mut [f64]) {
        match self {
            Self::Planar { .. } => {
                let (s, c) = q[2].sin_cos();
                rates.copy_from_slice(&[c * v[0] - s * v[1], s * v[0] + c * v[1], v[2]]);
            }
            Self::Spherical => quaternion_rates(q, v, rates),
            Self::Floating => {
                let linear = self.pose(q).rotation * Vector3::new(v[0], v[1], v[2]);
                rates[..3].copy_from_slice(linear.as_slice());
                quaternion_rates(&q[3..], &v[3..], &mut rates[3..]);
            }
            _ => rates.copy_from_slice(v),
        }
    }

    /// Normalizes quaternions to unit length.
    pub fn normalize(&self, q: &mut [f64]) {
        if matches!(self, Self::Spherical | Self::Floating) {
            let quaternion = &mut q[self.nq() - 4..];
            let length = quaternion.iter().map(|x| x * x).sum::<f64>().sqrt();
            if length > 0.0 {
                for x in quaternion {
                    *x /= length;
                }
            }
        }
    }
}

/// Computes `½ q ⊗ w` for a body's angular velocity `w`.
fn quaternion_rates(q: &[f64], w: &[f64], rates: &mut [f64]) {
    let (v, w) = (Vector3::new(q[0], q[1], q[2]), Vector3::new(w[0], w[1], w[2]));
    let turned = (w * q[3] + v.cross(&w)) * 0.5;
    rates.copy_from_slice(&[turned.x, turned.y, turned.z, -0.5 * v.dot(&w)]);
}

/// Computes `q ← q ⊗ exp(w/2)`, normalized.
fn turn_quaternion(q: &mut [f64], w: Vector3<f64>) {
    let half = 0.5 * w.norm();
    // Evaluates sin(x)/x to full precision near zero.
    let scale = 0.5 * if half < 1e-4 { 1.0 - half * half / 6.0 } else { half.sin() / half };
    let (d, dw) = (w * scale, half.cos());
    let v = Vector3::new(q[0], q[1], q[2]);
    let (v, s) = if q[..4].iter().all(|&x| x == 0.0) { (v, 1.0) } else { (v, q[3]) };
    let out = v * dw + d * s + v.cross(&d);
    let w = s * dw - v.dot(&d);
    let n = (out.norm_squared() + w * w).sqrt().recip();
    q[..4].copy_from_slice(&[out.x * n, out.y * n, out.z * n, w * n]);
}
