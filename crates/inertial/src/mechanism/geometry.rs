//! Geometry of a mechanism in any number type: placements, free modes, ratios.

use nalgebra::{Matrix3, Vector3};

use super::{BodyKind, Surd};
use crate::linalg::Number;
use crate::spatial::{Motion, Pose};

/// Motion that a joint of a built mechanism allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pivoting {
    /// Rotation about the axis.
    Revolute,
    /// Rotation about the axis with proportional translation along it.
    Helical,
    /// Rotation about and translation along the axis.
    Cylindrical,
    /// Translation along the axis.
    Prismatic,
    /// Translation perpendicular to the axis and rotation about it.
    Planar,
    /// Rotation about the origin.
    Spherical,
    /// Unrestricted motion.
    Floating,
}

impl Pivoting {
    /// Returns whether the joint has an axis.
    pub fn has_axis(self) -> bool {
        !matches!(self, Self::Spherical | Self::Floating)
    }

    /// Returns the number of degrees of freedom.
    pub fn freedoms(self) -> usize {
        match self {
            Self::Revolute | Self::Helical | Self::Prismatic => 1,
            Self::Cylindrical => 2,
            Self::Planar | Self::Spherical => 3,
            Self::Floating => 6,
        }
    }
}

/// Geometry of one body.
#[derive(Debug, Clone)]
pub struct BodyGeometry<T: Number> {
    /// Parent body; `None` is the ground.
    pub parent: Option<usize>,
    /// Kind of the body.
    pub kind: BodyKind,
    /// First velocity coordinate that moves the body.
    pub v: usize,
    /// Frame of the body at zero, in its parent's frame.
    pub placement: Pose<T>,
    /// Motion that the joint allows.
    pub pivoting: Pivoting,
    /// Frame whose third axis is the joint's axis, in the body's frame.
    pub frame: Matrix3<T>,
    /// Advance per radian (helical joints).
    pub pitch: T,
    /// Speed of the joint per unit speed of its coordinate.
    pub ratio: T,
    /// Exact value of the ratio.
    pub exact_ratio: Surd,
    /// Position of the joint at zero coordinate: its cosine and sine as an angle, and its length.
    pub rest: ((T, T), T),
    pub(super) modes: [Motion<T>; 6],
}

impl<T: Number> BodyGeometry<T> {
    /// Returns the free modes `Φ` in the body's frame, without the ratio.
    #[inline]
    pub fn modes(&self) -> &[Motion<T>] {
        &self.modes[..self.pivoting.freedoms()]
    }

    /// Returns the free modes in a frame whose third axis is the joint's axis, without the ratio.
    pub fn modes_about_z(&self) -> Vec<Motion<T>> {
        modes(self.pivoting, &Matrix3::identity(), self.pitch)[..self.pivoting.freedoms()].to_vec()
    }

    /// Returns the joint's axis in the body's frame.
    #[inline]
    pub fn axis(&self) -> Vector3<T> {
        self.frame.column(2).into_owned()
    }
}

/// Geometry of a mechanism, which determines the identifiability.
#[derive(Debug, Clone)]
pub struct Geometry<T: Number> {
    /// Unit vector of gravity in the world frame; zero without gravity.
    pub gravity: Vector3<T>,
    /// Bodies in the order of the mechanism.
    pub bodies: Vec<BodyGeometry<T>>,
}

impl Geometry<f64> {
    /// Returns the geometry with all lengths multiplied by `factor`.
    pub fn scaled(mut self, factor: f64) -> Self {
        for body in &mut self.bodies {
            body.placement.translation *= factor;
            body.pitch *= factor;
            body.rest.1 *= factor;
            body.modes = modes(body.pivoting, &body.frame, body.pitch);
        }
        self
    }
}

pub(super) fn modes<T: Number>(pivoting: Pivoting, frame: &Matrix3<T>, pitch: T) -> [Motion<T>; 6] {
    let zero = Vector3::zeros();
    let column = |k: usize| frame.column(k).into_owned();
    let turn = |a: Vector3<T>| Motion::new(a, zero);
    let slide = |a: Vector3<T>| Motion::new(zero, a);
    let (x, y, z, none) = (column(0), column(1), column(2), Motion::zero());
    match pivoting {
        Pivoting::Revolute => [turn(z), none, none, none, none, none],
        Pivoting::Helical => [Motion::new(z, z * pitch), none, none, none, none, none],
        Pivoting::Prismatic => [slide(z), none, none, none, none, none],
        Pivoting::Cylindrical => [turn(z), slide(z), none, none, none, none],
        Pivoting::Planar => [slide(x), slide(y), turn(z), none, none, none],
        Pivoting::Spherical => [turn(x), turn(y), turn(z), none, none, none],
        Pivoting::Floating => [slide(x), slide(y), slide(z), turn(x), turn(y), turn(z)],
    }
}
