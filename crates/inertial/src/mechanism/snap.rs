//! Intended geometry of a model: which axes are parallel, perpendicular or intersecting, in exact numbers.
//!
//! A rounded angle (1.5708 for a right angle) changes the strict result of an identifiability analysis. The tolerance
//! is therefore applied once, here, and all later computations are exact. Numbers are first recognized one by one
//! ([`Surd`], [`Angle`]). If neighbouring axes are then within the tolerance of a special position but not exactly in
//! it (as with skewed link frames), the joint is rebuilt relative to the axis before it, as in the convention of
//! Denavit and Hartenberg: offset along that axis, along the child's axis, and along their common normal.

use nalgebra::{Matrix3, Vector3};

use super::body_plan::{Align, BodyPlan, Line, Offset, Outline};
use super::chain::{self, JointPlan};
use super::geometry::{BodyGeometry, Geometry, Pivoting, modes};
use super::orientation::{ExactDirection, Turns, aligned, best_turns, turns};
use super::relations::{self, AssumedRelation, pivoting};
use super::{Angle, BodyKind, Mechanism, Surd};
use crate::linalg::{Number, Shadow};
use crate::spatial::Field;

/// Rounding error below which two positions are equal (radians, and lengths relative to the size).
pub const ROUNDING: f64 = 2e-15;

/// Default snapping tolerance: the angles of model files are rounded to four or five digits.
pub const DEFAULT_SNAP: f64 = 1e-4;

type Real = Shadow<2_305_843_009_213_692_601>;

/// Intended geometry of a mechanism, which can be evaluated in any [`Number`](crate::linalg::Number).
///
/// ```
/// use inertial::mechanism::{ExactGeometry, JointSpec, JointType, MechanismBuilder};
/// use inertial::spatial::{Inertia, Pose};
/// use nalgebra::Vector3;
/// let hinge = JointType::Revolute { axis: Vector3::z() };
/// let arm = MechanismBuilder::new("arm", "ground")
///     .link("upper", Inertia::zero())
///     .joint(JointSpec::new("shoulder", hinge, "ground", "upper"))
///     .link("lower", Inertia::zero())
///     .joint(JointSpec::new("elbow", hinge, "upper", "lower").at(Pose::from_xyz_rpy([0.3, 0.0, 0.0], [1.5708, 0.0, 0.0])))
///     .build(&Default::default())?;
/// let snapped = ExactGeometry::new(&arm, 1e-4).to::<f64>();
/// assert_eq!(snapped.bodies[1].placement.rotation[(1, 1)], 0.0); // a right angle
/// # Ok::<(), inertial::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct ExactGeometry {
    pub(super) gravity: Option<[Angle; 2]>,
    pub(super) bodies: Vec<BodyPlan>,
    /// Plan of a mechanism without loops, used instead of the two fields above.
    pub(super) chain: Option<ChainPlan>,
    assumed: Vec<AssumedRelation>,
    pub(super) outline: Vec<Outline>,
    size: f64,
}

/// Plan of an open chain, joint by joint.
#[derive(Debug, Clone)]
pub(super) struct ChainPlan {
    pub gravity: Option<ExactDirection>,
    pub joints: Vec<JointPlan>,
}

impl ExactGeometry {
    /// Creates the geometry of `mechanism`; positions within `snap` of a special position are moved there (radians, and
    /// lengths relative to the robot's size).
    pub fn new(mechanism: &Mechanism, snap: f64) -> Self {
        Self::with_tolerances(mechanism, |_| snap)
    }

    /// Creates the geometry with a separate tolerance for each body's joint.
    pub fn with_tolerances(mechanism: &Mechanism, snap: impl Fn(usize) -> f64) -> Self {
        let size = size(mechanism);
        let outline = mechanism.bodies().iter();
        let outline = outline.map(|b| Outline { parent: b.parent, kind: b.kind, v: b.drive.v }).collect();
        if mechanism.loops().is_empty() {
            let relations::Decided { gravity, plans, assumed } = relations::decide(mechanism, snap);
            let chain = Some(ChainPlan { gravity, joints: plans });
            return Self { gravity: None, bodies: Vec::new(), chain, assumed, outline, size };
        }
        let overall = (0..mechanism.bodies().len()).map(&snap).fold(ROUNDING, f64::max);
        let gravity = mechanism.gravity();
        let gravity = (gravity.norm() > 0.0).then(|| inclination(&gravity, ROUNDING, overall));
        let mut planner =
            Planner { mechanism, size, ground: Line::ground(gravity), lines: Vec::new(), bodies: Vec::new() };
        for body in 0..mechanism.bodies().len() {
            planner.add(body, snap(body).max(ROUNDING));
        }
        Self { gravity, bodies: planner.bodies, chain: None, assumed: Vec::new(), outline, size }
    }

    /// Returns the longest offset between neighbouring joints, the unit for the comparison of lengths.
    pub fn size(&self) -> f64 {
        self.size
    }

    /// Returns the relations that hold only approximately and are assumed to hold exactly.
    pub fn assumed(&self) -> &[AssumedRelation] {
        &self.assumed
    }

    /// Returns whether another geometry of the same mechanism has the same direction of gravity.
    pub fn same_gravity(&self, other: &Self) -> bool {
        match (&self.chain, &other.chain) {
            (Some(a), Some(b)) => a.gravity == b.gravity,
            _ => self.gravity == other.gravity,
        }
    }

    /// Returns the bodies whose joint differs in another geometry of the same mechanism.
    pub fn differences(&self, other: &Self) -> Vec<usize> {
        match (&self.chain, &other.chain) {
            (Some(a), Some(b)) => (0..a.joints.len()).filter(|&i| a.joints[i] != b.joints[i]).collect(),
            _ => (0..self.bodies.len()).filter(|&i| self.bodies[i] != other.bodies[i]).collect(),
        }
    }

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

/// Returns the uncertainty of offsets. In mechanisms with loops they are often differences of the intended numbers, and
/// equal lengths must be equal exactly.
pub(super) fn slack(mechanism: &Mechanism, size: f64) -> f64 {
    if mechanism.loops().is_empty() { 0.0 } else { ROUNDING * size }
}

fn size(mechanism: &Mechanism) -> f64 {
    let longest = |all: bool| {
        let bodies = mechanism.bodies().iter().filter(|b| all || b.parent.is_some());
        bodies.map(|b| b.placement.translation.norm()).fold(0.0, f64::max)
    };
    // The distance of the robot from the world's origin is used only if there is no other length.
    match longest(false) {
        0.0 => match longest(true) {
            0.0 => 1.0,
            l => l,
        },
        l => l,
    }
}

/// Returns the azimuth and inclination of a direction; angles are recognized as in [`Angle::recognize_rounded`].
pub(super) fn inclination(v: &Vector3<f64>, tolerance: f64, rounded: f64) -> [Angle; 2] {
    let across = v.x.hypot(v.y);
    let tilt = Angle::recognize_rounded(across.atan2(v.z), tolerance, rounded);
    // A direction along z has no azimuth.
    let azimuth = match tilt {
        Angle::Degrees(0 | 180) => Angle::ZERO,
        _ => Angle::recognize_rounded(v.y.atan2(v.x), tolerance, rounded),
    };
    [azimuth, tilt]
}

pub(super) fn recognize_rotation(r: &Matrix3<f64>, tolerance: f64, rounded: f64) -> Turns {
    best_turns(r, |a| Angle::recognize_rounded(a, tolerance, rounded)).1
}

struct Planner<'a> {
    mechanism: &'a Mechanism,
    size: f64,
    ground: Line<Real>,
    lines: Vec<Line<Real>>,
    bodies: Vec<BodyPlan>,
}

impl Planner<'_> {
    fn add(&mut self, index: usize, tolerance: f64) {
        let body = &self.mechanism.bodies()[index];
        let (pivoting, axis, pitch) = pivoting(&body.joint_type);
        // The author may choose any angles for a frame: they are snapped only within their rounding error.
        let open = body.rounding.map_or(ROUNDING, |r| r.angle.clamp(ROUNDING, tolerance));
        let mut plan = BodyPlan {
            pivoting,
            axis: inclination(&axis, open, tolerance),
            turns: recognize_rotation(&body.placement.rotation, open, tolerance),
            align: Align::No,
            offset: Offset::Plain([Surd::ZERO; 3]),
            pitch: Surd::recognize(pitch),
            ratio: Surd::recognize(body.drive.ratio),
            rest: (
                Angle::recognize_rounded(body.drive.offset, ROUNDING, tolerance),
                Surd::recognize(body.drive.offset),
            ),
        };
        plan.align = self.align(index, &plan, tolerance, open);
        // Small offsets matter in mechanisms with loops; the loop analysis corrects their rounding errors.
        let length = if self.mechanism.loops().is_empty() { tolerance } else { ROUNDING } * self.size;
        let slack = slack(self.mechanism, self.size);
        let snapped = |x: f64| if x.abs() <= length { Surd::ZERO } else { Surd::recognize_within(x, slack) };
        plan.offset = Offset::Plain(body.placement.translation.data.0[0].map(snapped));
        if body.parent.is_some() {
            plan.offset = self.offset(index, &plan, length);
        }
        let line = Line::placed(&plan, self.parent(index), &self.lines);
        self.lines.push(line);
        self.bodies.push(plan);
    }

    fn parent(&self, index: usize) -> &Line<Real> {
        self.mechanism.bodies()[index].parent.map_or(&self.ground, |p| &self.lines[p])
    }

    /// Aligns the axis with the parent's axis (or a rotor's axis with its joint's axis) if it is special within the
    /// tolerance. `open` is the rounding error of the frames in the file.
    fn align(&self, index: usize, plan: &BodyPlan, tolerance: f64, open: f64) -> Align {
        let body = &self.mechanism.bodies()[index];
        let parent = self.parent(index);
        if !plan.pivoting.has_axis() {
            return Align::No;
        }
        let own = turns::<Real>(&plan.turns) * aligned::<Real>(&plan.axis);
        let c = own.column(2).into_owned();
        if matches!(body.kind, BodyKind::Rotor | BodyKind::SymmetricRotor) {
            let driven = self.mechanism.joints()[body.joint].body;
            if self.mechanism.bodies()[driven].parent == body.parent
                && self.bodies[driven].pivoting.has_axis()
            {
                let axis = self.lines[driven].axis_in_parent;
                if near_zero(&c.cross(&axis), tolerance) {
                    let against = value(c.dot(&axis)) < 0.0;
                    let exact = if against { c == -axis } else { c == axis };
                    return if exact { Align::No } else { Align::Sibling(driven, against) };
                }
            }
        }
        if !parent.pivoting.has_axis() {
            return Align::No;
        }
        let z = parent.axis();
        let cosine = c.dot(&z);
        if near_zero(&c.cross(&z), tolerance) {
            let against = value(cosine) < 0.0;
            let exact = if against { c == -z } else { c == z };
            let angle = Angle::Degrees(if against { 180 } else { 0 });
            return if exact { Align::No } else { Align::Parent(angle, Angle::ZERO) };
        }
        if value(cosine).abs() > tolerance {
            return Align::No;
        }
        let (x, y) = (parent.frame.column(0).dot(&c), parent.frame.column(1).dot(&c));
        // About a hinge, the azimuth is measured from an axis of the link's frame, which may have any direction.
        let is_arbitrary = parent.pivoting != Pivoting::Prismatic;
        let azimuth = Angle::recognize(value(y).atan2(value(x)), if is_arbitrary { open } else { tolerance });
        // A special azimuth in the plane perpendicular to the axis is made exact too: for a sliding parent it is a
        // direction of the parent's own parent.
        let (cos, sin) = azimuth.cos_sin::<Real>();
        let exact =
            cosine.exact == Real::from_i64(0).exact && (!azimuth.is_special() || (x == cos && y == sin));
        if exact { Align::No } else { Align::Parent(Angle::Degrees(90), azimuth) }
    }

    /// Makes axes intersect and feet coincide if they do so within the tolerance.
    fn offset(&self, index: usize, plan: &BodyPlan, length: f64) -> Offset {
        let parent = self.parent(index);
        let line = Line::placed(plan, parent, &self.lines);
        let d = line.pose.translation - parent.foot;
        let (z, c) = (parent.axis(), line.axis_in_parent);
        let zero = |x: Real| x.value.abs() <= length;
        let loose = |x: Real| zero(x) && x != Real::from_i64(0);
        let surd = |x: Real| if zero(x) { Surd::ZERO } else { Surd::recognize(x.value) };
        let local = parent.frame.tr_mul(&d);
        match (parent.pivoting, plan.pivoting) {
            (Pivoting::Floating, _) | (_, Pivoting::Floating | Pivoting::Prismatic | Pivoting::Planar) => {
                plan.offset
            }
            (Pivoting::Spherical, Pivoting::Spherical) => {
                if near_zero(&d, length) && d != Vector3::from_element(Real::from_i64(0)) {
                    Offset::Beside([Surd::ZERO; 3])
                } else {
                    plan.offset
                }
            }
            (Pivoting::Spherical, _) => {
                let along = c.dot(&d);
                let across = d - c * along;
                let off_axis =
                    near_zero(&across, length) && across != Vector3::from_element(Real::from_i64(0));
                if off_axis || loose(along) && near_zero(&across, length) {
                    Offset::Along(surd(along))
                } else {
                    plan.offset
                }
            }
            (_, Pivoting::Spherical) => {
                let beside = near_zero(&Vector3::new(local.x, local.y, Real::from_i64(0)), length);
                let off_axis = beside && (loose(local.x) || loose(local.y));
                if off_axis || loose(local.z) {
                    let side = |x| if beside { Surd::ZERO } else { Surd::recognize(value(x)) };
                    Offset::Beside([surd(local.z), side(local.x), side(local.y)])
                } else {
                    plan.offset
                }
            }
            _ if c == z || c == -z => {
                let beside = near_zero(&Vector3::new(local.x, local.y, Real::from_i64(0)), length);
                if beside && (loose(local.x) || loose(local.y)) {
                    Offset::Beside([Surd::recognize(value(local.z)), Surd::ZERO, Surd::ZERO])
                } else {
                    plan.offset
                }
            }
            _ => {
                let [s, t, a] = line.along;
                let width = z.cross(&c).map(value).norm();
                let apart = Real { value: a.value * width, ..a };
                if loose(apart) || loose(s) {
                    let normal = if zero(apart) { Surd::ZERO } else { Surd::recognize(a.value) };
                    Offset::Lines([surd(s), surd(t), normal])
                } else {
                    plan.offset
                }
            }
        }
    }
}

fn value(x: Real) -> f64 {
    x.value
}

fn near_zero(v: &Vector3<Real>, tolerance: f64) -> bool {
    v.map(value).norm() <= tolerance
}

impl Mechanism {
    /// Returns the intended geometry of the model, snapped within `snap`; see [`ExactGeometry`].
    pub fn exact_geometry(&self, snap: f64) -> ExactGeometry {
        ExactGeometry::new(self, snap)
    }
}
