//! Geometry of a mechanism in any number type: placements, free modes, ratios.

use nalgebra::{Matrix3, Vector3};

use super::chain;
use super::orientation::between;
use super::snap::{Align, BodyPlan, Offset, Turns};
use super::{Angle, BodyKind, ExactGeometry, Surd};
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

impl ExactGeometry {
    /// Evaluates the geometry in one number type.
    pub fn to<T: Number>(&self) -> Geometry<T> {
        if let Some(plan) = &self.chain {
            return chain::geometry(plan.gravity, &plan.joints, &self.outline);
        }
        let ground = Line::ground(self.gravity);
        let mut lines: Vec<Line<T>> = Vec::with_capacity(self.bodies.len());
        for (plan, outline) in self.bodies.iter().zip(&self.outline) {
            let line = Line::placed(plan, outline.parent.map_or(&ground, |p| &lines[p]), &lines);
            lines.push(line);
        }
        let bodies = lines.iter().zip(&self.bodies).zip(&self.outline).map(|((line, plan), outline)| {
            let pitch = plan.pitch.to();
            BodyGeometry {
                parent: outline.parent,
                kind: outline.kind,
                v: outline.v,
                placement: line.pose,
                pivoting: plan.pivoting,
                frame: line.frame,
                pitch,
                ratio: plan.ratio.to(),
                exact_ratio: plan.ratio,
                rest: (plan.rest.0.cos_sin(), plan.rest.1.to()),
                modes: modes(plan.pivoting, &line.frame, pitch),
            }
        });
        let gravity = if self.gravity.is_some() { ground.axis() } else { Vector3::zeros() };
        Geometry { gravity, bodies: bodies.collect() }
    }
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

/// Returns the rotation about a coordinate axis.
pub(crate) fn turn<T: Number>(axis: usize, (c, s): (T, T)) -> Matrix3<T> {
    let (j, k) = ((axis + 1) % 3, (axis + 2) % 3);
    let mut m = Matrix3::identity();
    (m[(j, j)], m[(k, k)], m[(k, j)], m[(j, k)]) = (c, c, s, -s);
    m
}

/// Returns the product of three rotations about coordinate axes.
pub(super) fn turns<T: Number>(plan: &Turns) -> Matrix3<T> {
    plan.order.iter().zip(plan.angles).fold(Matrix3::identity(), |m, (&axis, angle)| match angle {
        Angle::Degrees(0) => m,
        _ => m * turn(axis, angle.cos_sin()),
    })
}

/// Returns a frame whose third axis has this azimuth and inclination.
pub(super) fn aligned<T: Number>(axis: &[Angle; 2]) -> Matrix3<T> {
    turns(&Turns { order: [2, 1, 0], angles: [axis[0], axis[1], Angle::ZERO] })
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
