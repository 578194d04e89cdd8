//! Exact description of a body relative to its parent, and its evaluation in any number type.

use nalgebra::{Matrix3, Vector3};

use super::geometry::Pivoting;
use super::orientation::{Turns, aligned, between, turns};
use super::{Angle, BodyKind, Surd};
use crate::linalg::Number;
use crate::spatial::Pose;

/// Rotation of the child that brings its axis into a special position.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Align {
    /// Alignment not needed.
    No,
    /// Alignment at this angle to the parent's axis, with this azimuth about it.
    Parent(Angle, Angle),
    /// Alignment along (or, if true, opposite to) the axis of another body on the same parent.
    Sibling(usize, bool),
}

/// Position of the child's origin.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Offset {
    /// Coordinates in the parent's frame.
    Plain([Surd; 3]),
    /// Offsets from the parent's foot along its axis, the child's axis and their common normal (not of unit length).
    Lines([Surd; 3]),
    /// Offsets from the parent's foot along its axis and its two other directions.
    Beside([Surd; 3]),
    /// Offset from the parent's centre along the child's axis.
    Along(Surd),
}

/// Exact description of one body.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct BodyPlan {
    pub pivoting: Pivoting,
    /// Azimuth and inclination of the axis in the body's frame.
    pub axis: [Angle; 2],
    pub turns: Turns,
    pub align: Align,
    pub offset: Offset,
    pub pitch: Surd,
    pub ratio: Surd,
    /// Position of the joint at zero coordinate, as an angle and as a length.
    pub rest: (Angle, Surd),
}

/// Properties of a body that contain no real numbers.
#[derive(Debug, Clone, Copy)]
pub(super) struct Outline {
    pub parent: Option<usize>,
    pub kind: BodyKind,
    pub v: usize,
}

/// Axis of a body and the point on it that its children are measured from.
#[derive(Debug, Clone)]
pub(super) struct Line<T: Number> {
    pub pivoting: Pivoting,
    /// Frame of the body in its parent's frame.
    pub pose: Pose<T>,
    /// Frame whose third axis is the joint's axis, in the body's frame.
    pub frame: Matrix3<T>,
    /// Point of the axis nearest the parent's axis, in the body's frame; for a sliding body, whose axis has no fixed
    /// position, the parent's own foot.
    pub foot: Vector3<T>,
    /// Axis in the parent's frame.
    pub axis_in_parent: Vector3<T>,
    /// Origin relative to the parent's foot: components along the parent's axis, the child's axis and `z × c` (zero if
    /// parallel).
    pub along: [T; 3],
}

impl<T: Number> Line<T> {
    /// Creates the ground, treated as a slider along gravity (paper 003, section 6.5).
    pub fn ground(gravity: Option<[Angle; 2]>) -> Self {
        Self {
            pivoting: if gravity.is_some() { Pivoting::Prismatic } else { Pivoting::Floating },
            pose: Pose::identity(),
            frame: gravity.map_or_else(Matrix3::identity, |g| aligned(&g)),
            foot: Vector3::zeros(),
            axis_in_parent: Vector3::zeros(),
            along: [T::zero(); 3],
        }
    }

    pub fn axis(&self) -> Vector3<T> {
        self.frame.column(2).into_owned()
    }

    pub fn placed(plan: &BodyPlan, parent: &Self, others: &[Self]) -> Self {
        let mut frame: Matrix3<T> = aligned(&plan.axis);
        let own = frame.column(2).into_owned();
        let described: Matrix3<T> = turns(&plan.turns);
        let rotation = match plan.align {
            Align::No => described,
            Align::Parent(angle, azimuth) => {
                let ((c, s), (cos, sin)) = (angle.cos_sin::<T>(), azimuth.cos_sin::<T>());
                let target = parent.frame * Vector3::new(s * cos, s * sin, c);
                between(&(described * own), &target) * described
            }
            Align::Sibling(body, against) => {
                let axis = others[body].axis_in_parent;
                between(&(described * own), &if against { -axis } else { axis }) * described
            }
        };
        let (z, c) = (parent.axis(), rotation * own);
        let normal = z.cross(&c);
        let translation = match plan.offset {
            Offset::Plain(p) => Vector3::from(p.map(Surd::to)),
            Offset::Lines([s, t, a]) => {
                parent.foot + z * s.to::<T>() + c * t.to::<T>() + normal * a.to::<T>()
            }
            Offset::Beside([s, x, y]) => parent.foot + parent.frame * Vector3::new(x.to(), y.to(), s.to()),
            Offset::Along(t) => parent.foot + c * t.to::<T>(),
        };
        let pose = Pose::new(rotation, translation);
        let d = translation - parent.foot;
        let mut along = [T::zero(); 3];
        let foot = match plan.pivoting {
            Pivoting::Spherical | Pivoting::Floating => Vector3::zeros(),
            Pivoting::Prismatic | Pivoting::Planar => -rotation.tr_mul(&d),
            _ if !parent.pivoting.has_axis() || c == z || c == -z => -own * c.dot(&d),
            _ => {
                // d = s z + t c + a (z × c)
                let scale = normal.dot(&normal).inverse().unwrap_or_else(T::zero);
                along = [d.cross(&c).dot(&normal), -(d.cross(&z).dot(&normal)), d.dot(&normal)]
                    .map(|x| x * scale);
                -own * along[1]
            }
        };
        // A sliding body keeps its parent's directions: its frame contains the parent's axis if that is perpendicular.
        if plan.pivoting == Pivoting::Prismatic && parent.pivoting.has_axis() && c.dot(&z).is_zero() {
            let x = rotation.tr_mul(&z);
            frame = Matrix3::from_columns(&[x, own.cross(&x), own]);
        }
        Self { pivoting: plan.pivoting, pose, frame, foot, axis_in_parent: c, along }
    }
}
