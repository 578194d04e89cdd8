//! Open chains in exact numbers. Each joint is placed relative to the last rotating joint before it.
//!
//! Sliders keep directions, so all joints up to the next rotating joint are described in one frame, that of the *head*:
//! the last rotating body before them (or the ground). The module [`relations`](super::relations) decides once which
//! relations hold there; this module evaluates the result in any number type.

use nalgebra::{Matrix3, Vector3};

use super::body_plan::Outline;
use super::geometry::modes;
use super::orientation::{ExactDirection, ExactRotation, between, frame_along, turn};
use super::{Angle, BodyGeometry, Geometry, Pivoting, Surd};
use crate::linalg::Number;
use crate::spatial::Pose;

/// Direction in the frame of a head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Along {
    /// Axis of the head itself (for the ground: gravity).
    Head,
    /// Axis of a body that belongs to the head.
    Body(usize),
}

/// Exact description of the direction of a joint's axis.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Pointing {
    /// Direction given by the recognized rotations; true if it points to negative z of the head's frame.
    AsWritten(bool),
    /// Direction along another one, or (if true) opposite to it.
    Same(Along, bool),
    /// Direction at an angle to another one, with an azimuth about it.
    Polar { from: Along, tilt: Angle, azimuth: Angle },
}

/// Vector that an offset is perpendicular to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Across {
    /// Cross product of two directions.
    Pair(Along, Along),
    /// Component of the first direction perpendicular to the second.
    Foot(Along, Along),
    /// Direction itself.
    One(Along),
    /// Column, by number, of the frame of a direction: one of the two axes perpendicular to it.
    Beside(Along, usize),
    /// Coordinate axis of the head's frame.
    Axis(usize),
}

/// Exact description of one joint of an open chain.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct JointPlan {
    pub pivoting: Pivoting,
    /// Last rotating body before the joint; `None` is the ground.
    pub head: Option<usize>,
    /// Axis in the body's own frame.
    pub axis: ExactDirection,
    /// Rotation of the joint's frame in the parent's frame.
    pub rotation: ExactRotation,
    pub translation: [Surd; 3],
    pub pointing: Pointing,
    /// Whether the axis is parallel to the head's.
    pub parallel: bool,
    /// Vectors that the offset from the head's foot is perpendicular to.
    pub across: Vec<Across>,
    pub pitch: Surd,
    pub ratio: Surd,
    /// Position of the joint at zero coordinate, as an angle and as a length.
    pub rest: (Angle, Surd),
}

/// Joint in one number type; vectors are in the head's frame unless noted otherwise.
#[derive(Debug, Clone)]
pub(super) struct Placed<T: Number> {
    pub pivoting: Pivoting,
    pub rotation: Matrix3<T>,
    pub translation: Vector3<T>,
    /// Frame whose third axis is the joint's axis.
    pub frame: Matrix3<T>,
    /// Frame whose third axis is the joint's axis, in the body's own frame.
    pub own: Matrix3<T>,
    /// Point of the axis nearest the head's axis, in the body's own frame; the origin for offsets of the children.
    pub foot: Vector3<T>,
}

impl<T: Number> Placed<T> {
    /// Creates the ground; its axis is the direction of gravity.
    pub fn ground(gravity: Option<ExactDirection>) -> Self {
        let frame = gravity.map_or_else(Matrix3::identity, |g| g.frame());
        Self {
            pivoting: if gravity.is_some() { Pivoting::Prismatic } else { Pivoting::Floating },
            rotation: Matrix3::identity(),
            translation: Vector3::zeros(),
            frame,
            own: frame,
            foot: Vector3::zeros(),
        }
    }

    pub fn axis(&self) -> Vector3<T> {
        self.frame.column(2).into_owned()
    }
}

/// Bodies placed so far.
#[derive(Debug, Clone)]
pub(super) struct Chain<T: Number> {
    pub ground: Placed<T>,
    pub bodies: Vec<Placed<T>>,
}

impl<T: Number> Chain<T> {
    pub fn head(&self, plan: &JointPlan) -> &Placed<T> {
        plan.head.map_or(&self.ground, |h| &self.bodies[h])
    }

    /// Returns the pose of a joint's parent in the head's frame.
    pub fn parent(&self, plan: &JointPlan, parent: Option<usize>) -> Pose<T> {
        match parent {
            Some(p) if plan.head != parent => Pose::new(self.bodies[p].rotation, self.bodies[p].translation),
            _ => Pose::identity(),
        }
    }

    /// Returns a frame whose third axis is the direction `along`, in the head's frame.
    pub fn frame(&self, plan: &JointPlan, along: Along) -> &Matrix3<T> {
        match along {
            Along::Head => &self.head(plan).own,
            Along::Body(b) => &self.bodies[b].frame,
        }
    }

    /// Returns the vector that an offset is perpendicular to; `own` is the frame of the joint itself, used for
    /// directions of body `index`.
    pub fn across(&self, plan: &JointPlan, across: Across, index: usize, own: &Matrix3<T>) -> Vector3<T> {
        let frame = |a| if a == Along::Body(index) { own } else { self.frame(plan, a) };
        let axis = |a| frame(a).column(2).into_owned();
        match across {
            Across::Pair(a, b) => axis(a).cross(&axis(b)),
            Across::Foot(a, b) => axis(b).cross(&axis(a).cross(&axis(b))),
            Across::One(a) => axis(a),
            Across::Beside(a, k) => frame(a).column(k).into_owned(),
            Across::Axis(k) => Vector3::from_fn(|i, _| if i == k { T::one() } else { T::zero() }),
        }
    }

    /// Returns the rotation of a joint's frame in the head's frame before its axis is aligned, and the axis in that
    /// frame.
    pub fn described(&self, plan: &JointPlan, parent: Option<usize>) -> (Matrix3<T>, Vector3<T>) {
        let rotation = self.parent(plan, parent).rotation * plan.rotation.to::<T>();
        let axis = rotation * plan.axis.frame::<T>().column(2);
        (rotation, axis)
    }

    /// Returns the direction of a joint's axis, as a frame, and the joint's rotation.
    pub fn pointed(&self, plan: &JointPlan, parent: Option<usize>) -> (Matrix3<T>, Matrix3<T>) {
        let (described, axis) = self.described(plan, parent);
        let frame = match plan.pointing {
            Pointing::AsWritten(down) => frame_along(&axis, down),
            Pointing::Same(along, against) => {
                let flip = Matrix3::from_diagonal(&Vector3::new(T::one(), -T::one(), -T::one()));
                let frame = *self.frame(plan, along);
                if against { frame * flip } else { frame }
            }
            Pointing::Polar { from, tilt, azimuth } => {
                self.frame(plan, from) * turn::<T>(2, azimuth.cos_sin()) * turn::<T>(1, tilt.cos_sin())
            }
        };
        let wanted = frame.column(2).into_owned();
        let rotation = if wanted == axis { described } else { between(&axis, &wanted) * described };
        (frame, rotation)
    }

    /// Returns the origin of a joint's frame before relations are applied, in the head's frame.
    pub fn origin(&self, plan: &JointPlan, parent: Option<usize>) -> Vector3<T> {
        self.parent(plan, parent).transform_point(&Vector3::from(plan.translation.map(Surd::to)))
    }

    /// Returns the offset of the next joint from the head's foot after applying its relations; the third axis of
    /// `frame` is the joint's axis.
    pub fn offset(&self, plan: &JointPlan, parent: Option<usize>, frame: &Matrix3<T>) -> Vector3<T> {
        let mut d = self.origin(plan, parent) - self.head(plan).foot;
        // Gram-Schmidt orthogonalisation without square roots.
        let mut removed: Vec<Vector3<T>> = Vec::new();
        for &across in &plan.across {
            let mut l = self.across(plan, across, self.bodies.len(), frame);
            for r in &removed {
                l -= r * (l.dot(r) * r.dot(r).inverse().unwrap_or_else(T::zero));
            }
            if let Some(scale) = l.dot(&l).inverse().filter(|_| !negligible(&l)) {
                d -= l * (l.dot(&d) * scale);
                removed.push(l);
            }
        }
        d
    }

    /// Places the next body.
    pub fn push(&mut self, plan: &JointPlan, parent: Option<usize>) {
        let (frame, rotation) = self.pointed(plan, parent);
        let mut d = self.offset(plan, parent, &frame);
        let head = self.head(plan);
        let (z, c, foot) = (head.own.column(2).into_owned(), frame.column(2).into_owned(), head.foot);
        let slides = plan.pivoting == Pivoting::Prismatic;
        if slides {
            d += c * plan.rest.1.to::<T>();
        }
        let own_foot = match plan.pivoting {
            Pivoting::Spherical | Pivoting::Floating | Pivoting::Prismatic => Vector3::zeros(),
            _ if !head.pivoting.has_axis() || plan.head.is_none() || plan.parallel => c * -c.dot(&d),
            _ => {
                // d = s z + t c + a (z × c); the foot is at −t along the axis.
                let n = z.cross(&c);
                let scale = n.dot(&n).inverse().unwrap_or_else(T::zero);
                c * (d.cross(&z).dot(&n) * scale)
            }
        };
        let placed = Placed {
            pivoting: plan.pivoting,
            rotation,
            translation: foot + d,
            frame,
            own: plan.axis.frame(),
            foot: rotation.tr_mul(&own_foot),
        };
        self.bodies.push(placed);
    }
}

/// Returns whether a vector composed of unit vectors is zero.
fn negligible<T: Number>(v: &Vector3<T>) -> bool {
    v.iter().all(|x| x.weight() <= T::TOLERANCE)
}

/// Evaluates a chain in one number type.
pub(super) fn geometry<T: Number>(
    gravity: Option<ExactDirection>,
    plans: &[JointPlan],
    outline: &[Outline],
) -> Geometry<T> {
    let ground = Placed::ground(gravity);
    let mut chain = Chain { ground, bodies: Vec::with_capacity(plans.len()) };
    let mut bodies = Vec::with_capacity(plans.len());
    for (plan, outline) in plans.iter().zip(outline) {
        chain.push(plan, outline.parent);
        let Some(body) = chain.bodies.last() else { continue };
        let parent = chain.parent(plan, outline.parent);
        let mut placement = Pose::new(
            parent.rotation.tr_mul(&body.rotation),
            parent.rotation.tr_mul(&(body.translation - parent.translation)),
        );
        let pitch = plan.pitch.to();
        // A follower is rotated by its offset at zero coordinate.
        if matches!(plan.pivoting, Pivoting::Revolute | Pivoting::Helical) && plan.rest.1 != Surd::ZERO {
            let turned = body.own * turn::<T>(2, plan.rest.0.cos_sin()) * body.own.transpose();
            let advanced = body.own.column(2) * (plan.rest.1.to::<T>() * pitch);
            placement = placement * Pose::new(turned, advanced);
        }
        bodies.push(BodyGeometry {
            parent: outline.parent,
            kind: outline.kind,
            v: outline.v,
            placement,
            pivoting: plan.pivoting,
            frame: body.own,
            pitch,
            ratio: plan.ratio.to(),
            exact_ratio: plan.ratio,
            rest: ((T::one(), T::zero()), T::zero()),
            modes: modes(plan.pivoting, &body.own, pitch),
        });
    }
    let gravity = if gravity.is_some() { chain.ground.axis() } else { Vector3::zeros() };
    Geometry { gravity, bodies }
}
