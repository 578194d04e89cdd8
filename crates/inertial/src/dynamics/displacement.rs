//! Displacement of a body relative to its parent as a function of the coordinates, with precomputed constants.

use nalgebra::{Matrix3, Vector3};

use crate::mechanism::{Body, JointType, plane_directions};
use crate::spatial::skew;

/// Angle `ratio · q + offset`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Angle {
    pub q: usize,
    pub ratio: f64,
    pub offset: f64,
}

/// Rotation of a body relative to its parent.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Turn {
    /// Constant rotation (or one without effect).
    Constant,
    /// Rotation by the angle with this index.
    Angle(usize),
    /// Rotation by the quaternion at this coordinate.
    Quaternion(usize),
}

/// Motion of a body relative to its parent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Single pure rotation.
    Revolute,
    /// Single pure translation.
    Prismatic,
    /// Free motion: linear velocity, then angular.
    Free,
    /// General motion, given by its modes.
    General,
}

/// Pose of a body relative to its parent.
#[derive(Debug, Clone)]
pub(crate) struct Displacement {
    pub kind: Kind,
    pub turn: Turn,
    /// Rotation from child to parent: `cos · [0] + sin · [1] + [2]` (`Quaternion`: `[2]` times that of the quaternion).
    pub rotations: [Matrix3<f64>; 3],
    /// Directions along which coordinates `slide_q + k` move the origin, in the parent frame.
    pub slides: [Vector3<f64>; 3],
    pub slide_count: usize,
    pub slide_q: usize,
}

impl Displacement {
    /// Computes the constants of a body; a new angle is added to `angles`.
    pub fn new(body: &Body, angles: &mut Vec<Angle>) -> Self {
        let along = |a: &Vector3<f64>| body.placement.rotation * a;
        let q = body.drive.q;
        let mut out = Self {
            kind: Kind::General,
            turn: Turn::Constant,
            rotations: [Matrix3::zeros(), Matrix3::zeros(), body.placement.rotation],
            slides: [Vector3::zeros(); 3],
            slide_count: 0,
            slide_q: q,
        };
        match body.joint_type {
            // Does not occur in a built mechanism.
            JointType::Fixed | JointType::Universal { .. } => {}
            JointType::Revolute { axis } => {
                out.kind = Kind::Revolute;
                out.turns(body, &axis, q, angles);
            }
            JointType::Prismatic { axis } => {
                out.kind = Kind::Prismatic;
                out.slides[0] = along(&axis);
                out.slide_count = 1;
            }
            JointType::Helical { axis, pitch } => {
                out.turns(body, &axis, q, angles);
                out.slides[0] = along(&(axis * pitch));
                out.slide_count = 1;
            }
            JointType::Cylindrical { axis } => {
                out.turns(body, &axis, q, angles);
                out.slides[0] = along(&axis);
                (out.slide_count, out.slide_q) = (1, q + 1);
            }
            JointType::Planar { normal } => {
                out.turns(body, &normal, q + 2, angles);
                let [a, b] = plane_directions(&normal);
                (out.slides[0], out.slides[1]) = (along(&a), along(&b));
                out.slide_count = 2;
            }
            JointType::Spherical => out.turn = Turn::Quaternion(q),
            JointType::Floating => {
                out.kind = Kind::Free;
                out.turn = Turn::Quaternion(q + 3);
                out.slides = [along(&Vector3::x()), along(&Vector3::y()), along(&Vector3::z())];
                out.slide_count = 3;
            }
        }
        out
    }

    /// Sets a rotation about `axis` after the placement, by Rodrigues' formula: `c (1 − a aᵀ) + s [a]× + a aᵀ`.
    fn turns(&mut self, body: &Body, axis: &Vector3<f64>, q: usize, angles: &mut Vec<Angle>) {
        let place = body.placement.rotation;
        let outer = axis * axis.transpose();
        self.rotations = [place * (Matrix3::identity() - outer), place * skew(axis), place * outer];
        self.turn = Turn::Angle(angles.len());
        angles.push(Angle { q, ratio: body.drive.ratio, offset: body.drive.offset });
    }
}
