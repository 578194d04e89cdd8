//! A mechanism's geometry in any kind of number: placements, free modes, ratios.

use nalgebra::{Matrix3, Vector3};

use super::chain;
use super::orientation::between;
use super::snap::{Align, BodyPlan, Offset, Turns};
use super::{Angle, BodyKind, ExactGeometry, Surd};
use crate::linalg::Number;
use crate::spatial::{Motion, Pose};

/// What a joint of a built mechanism lets its body do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pivoting {
    /// Turn about its axis.
    Revolute,
    /// Turn about and advance along its axis in proportion.
    Helical,
    /// Turn about and slide along its axis.
    Cylindrical,
    /// Slide along its axis.
    Prismatic,
    /// Slide across and turn about its axis.
    Planar,
    /// Turn about its origin.
    Spherical,
    /// Anything.
    Floating,
}

impl Pivoting {
    /// Whether it has a direction of its own.
    pub fn has_axis(self) -> bool {
        !matches!(self, Self::Spherical | Self::Floating)
    }

    /// Number of degrees of freedom.
    pub fn freedoms(self) -> usize {
        match self {
            Self::Revolute | Self::Helical | Self::Prismatic => 1,
            Self::Cylindrical => 2,
            Self::Planar | Self::Spherical => 3,
            Self::Floating => 6,
        }
    }
}

/// One body's geometry.
#[derive(Debug, Clone)]
pub struct BodyGeometry<T: Number> {
    /// The body before the joint; `None` is the ground.
    pub parent: Option<usize>,
    /// What the body stands for.
    pub kind: BodyKind,
    /// First velocity coordinate that moves it.
    pub v: usize,
    /// The body's frame at zero, in its parent's.
    pub placement: Pose<T>,
    /// What the joint allows.
    pub pivoting: Pivoting,
    /// A frame whose third axis is the joint's, in the body's frame.
    pub frame: Matrix3<T>,
    /// Advance per radian (helical joints).
    pub pitch: T,
    /// The joint's speed per unit of its coordinate's.
    pub ratio: T,
    /// That ratio, exactly.
    pub exact_ratio: Surd,
    /// Cosine and sine, and length, of the joint's position where its coordinate is zero.
    pub rest: ((T, T), T),
    pub(super) modes: [Motion<T>; 6],
}

impl<T: Number> BodyGeometry<T> {
    /// The free modes `Φ` in the body's frame, without the ratio.
    #[inline]
    pub fn modes(&self) -> &[Motion<T>] {
        &self.modes[..self.pivoting.freedoms()]
    }

    /// The free modes in a frame whose third axis is the joint's, without the ratio.
    pub fn modes_about_z(&self) -> Vec<Motion<T>> {
        modes(self.pivoting, &Matrix3::identity(), self.pitch)[..self.pivoting.freedoms()].to_vec()
    }

    /// The joint's axis in the body's frame.
    #[inline]
    pub fn axis(&self) -> Vector3<T> {
        self.frame.column(2).into_owned()
    }
}

/// A mechanism's geometry: what identifiability depends on.
#[derive(Debug, Clone)]
pub struct Geometry<T: Number> {
    /// Direction of gravity in the world, of length one; zero where there is none.
    pub gravity: Vector3<T>,
    /// The bodies, in the mechanism's order.
    pub bodies: Vec<BodyGeometry<T>>,
}

impl ExactGeometry {
    /// Writes the geometry in numbers of one kind.
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
    /// The same with all lengths multiplied by `factor`.
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

/// Rotation about a coordinate axis.
pub(crate) fn turn<T: Number>(axis: usize, (c, s): (T, T)) -> Matrix3<T> {
    let (j, k) = ((axis + 1) % 3, (axis + 2) % 3);
    let mut m = Matrix3::identity();
    (m[(j, j)], m[(k, k)], m[(k, j)], m[(j, k)]) = (c, c, s, -s);
    m
}

/// The product of three turns.
pub(super) fn turns<T: Number>(plan: &Turns) -> Matrix3<T> {
    plan.order.iter().zip(plan.angles).fold(Matrix3::identity(), |m, (&axis, angle)| match angle {
        Angle::Degrees(0) => m,
        _ => m * turn(axis, angle.cos_sin()),
    })
}

/// A frame whose third axis has this azimuth and inclination.
pub(super) fn aligned<T: Number>(axis: &[Angle; 2]) -> Matrix3<T> {
    turns(&Turns { order: [2, 1, 0], angles: [axis[0], axis[1], Angle::ZERO] })
}

/// A body's axis and the point on it that its children are measured from.
#[derive(Debug, Clone)]
pub(super) struct Line<T: Number> {
    pub pivoting: Pivoting,
    /// The body's frame in its parent's.
    pub pose: Pose<T>,
    /// A frame whose third axis is the joint's, in the body's frame.
    pub frame: Matrix3<T>,
    /// The point of the axis nearest the parent's axis, in the body's frame; for a sliding body, which no line belongs
    /// to, the parent's own foot.
    pub foot: Vector3<T>,
    /// The axis in the parent's frame.
    pub axis_in_parent: Vector3<T>,
    /// The origin from the parent's foot: along its axis, along the child's, along `z × c` (zero if parallel).
    pub along: [T; 3],
}

impl<T: Number> Line<T> {
    /// The world: it slides along gravity, as it were (paper 003, section 6.5).
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
        // A sliding body keeps its parent's directions: let the frame show the parent's axis where it can.
        if plan.pivoting == Pivoting::Prismatic && parent.pivoting.has_axis() && c.dot(&z).is_zero() {
            let x = rotation.tr_mul(&z);
            frame = Matrix3::from_columns(&[x, own.cross(&x), own]);
        }
        Self { pivoting: plan.pivoting, pose, frame, foot, axis_in_parent: c, along }
    }
}
