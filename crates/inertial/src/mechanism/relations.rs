//! Recognition of intended relations between neighbouring joints: parallel, perpendicular, coplanar, intersecting.
//!
//! A relation is assumed if it holds within the rounding error of the numbers involved, and never beyond the snapping
//! tolerance. Angular errors add up along the path between the two joints, and an angular error times its lever arm
//! adds to the error of lengths. A joint is compared with the last rotating joint before it (its head), with the
//! sliders between them, and with joints that follow the same coordinate. Directions that must be aligned are described
//! by exact angles to another direction; offsets lose their components perpendicular to the relation.

use std::collections::HashMap;

use nalgebra::Vector3;

use super::chain::{Across, Along, Chain, JointPlan, Placed, Pointing};
use super::orientation::{ExactDirection, ExactRotation};
use super::{Angle, Body, JointType, Mechanism, Pivoting, Surd};
use crate::linalg::Shadow;
use crate::spatial::Field;

/// Angle (radians) below which directions are equal: the rounding error of a few double-precision operations.
pub(super) const SAME_DIRECTION: f64 = 1e-14;

/// Threshold below which an offset is zero, relative to the lengths whose difference it is.
pub(super) const SAME_POINT: f64 = 1e-14;

/// Maximum number of joints of other branches that a joint is compared with.
const MOST_SIBLINGS: usize = 64;

/// Smallest displacement (radians, metres) that is reported; smaller ones are rounding errors of double precision.
const LEAST_REPORTED: f64 = 1e-12;

/// Upper bound of the rounding error of a length, as a multiple of the snapping tolerance and relative to the lengths
/// on the path: with five decimals, a length of 3 cm has a relative error of 3e-4.
const LENGTH_CAP: f64 = 100.0;

type Real = Shadow<2_305_843_009_213_692_601>;

/// Relation that the numbers satisfy only approximately and that is assumed to hold exactly.
#[derive(Debug, Clone, PartialEq, serde::Serialize, schemars::JsonSchema)]
#[non_exhaustive]
pub struct AssumedRelation {
    /// Joint that was moved.
    pub joint: String,
    /// Relation in words.
    pub relation: String,
    /// Displacement of the joint.
    pub moved: f64,
    /// Unit of the displacement.
    #[schemars(extend("enum" = ["rad", "m"]))]
    pub unit: &'static str,
}

/// Result of [`decide`].
pub(super) struct Decided {
    pub gravity: Option<ExactDirection>,
    pub plans: Vec<JointPlan>,
    pub assumed: Vec<AssumedRelation>,
}

/// Uncertainty of a joint in its head's frame.
#[derive(Debug, Clone, Copy, Default)]
struct FrameUncertainty {
    /// Rotation (radians).
    angle: f64,
    /// Position.
    length: f64,
    /// Sum of the offsets on the path.
    path: f64,
    /// Position of the foot along the axis.
    foot: f64,
}

/// Finds the relations of an open chain; `snap` is the tolerance of each body's joint.
pub(super) fn decide(mechanism: &Mechanism, snap: impl Fn(usize) -> f64) -> Decided {
    let bodies = mechanism.bodies();
    let overall = (0..bodies.len()).map(&snap).fold(0.0, f64::max);
    let g = mechanism.gravity();
    let gravity =
        (g.norm() > 0.0).then(|| ExactDirection::recognize(&g.normalize(), SAME_DIRECTION, overall));
    let chain = Chain { ground: Placed::ground(gravity), bodies: Vec::with_capacity(bodies.len()) };
    let mut planner = Planner {
        mechanism,
        chain,
        plans: Vec::with_capacity(bodies.len()),
        uncertainties: Vec::with_capacity(bodies.len()),
        driven: vec![Vec::new(); mechanism.nv()],
        of_head: HashMap::new(),
        short: Vec::with_capacity(bodies.len()),
        assumed: Vec::new(),
    };
    for body in 0..bodies.len() {
        planner.add(body, snap(body));
    }
    Decided { gravity, plans: planner.plans, assumed: planner.assumed }
}

struct Planner<'a> {
    mechanism: &'a Mechanism,
    chain: Chain<Real>,
    plans: Vec<JointPlan>,
    uncertainties: Vec<FrameUncertainty>,
    /// Bodies that each coordinate moves.
    driven: Vec<Vec<usize>>,
    /// Bodies of each head.
    of_head: HashMap<Option<usize>, Vec<usize>>,
    /// Whether a body's rotation in its head's frame consists of short numbers.
    short: Vec<bool>,
    assumed: Vec<AssumedRelation>,
}

pub(super) fn pivoting(joint: &JointType) -> (Pivoting, Vector3<f64>, f64) {
    match *joint {
        JointType::Revolute { axis } => (Pivoting::Revolute, axis, 0.0),
        JointType::Helical { axis, pitch } => (Pivoting::Helical, axis, pitch),
        JointType::Cylindrical { axis } => (Pivoting::Cylindrical, axis, 0.0),
        JointType::Prismatic { axis } => (Pivoting::Prismatic, axis, 0.0),
        JointType::Planar { normal } => (Pivoting::Planar, normal, 0.0),
        JointType::Spherical => (Pivoting::Spherical, Vector3::z(), 0.0),
        // A built mechanism has neither fixed nor universal joints.
        JointType::Floating | JointType::Fixed | JointType::Universal { .. } => {
            (Pivoting::Floating, Vector3::z(), 0.0)
        }
    }
}

fn value(v: &Vector3<Real>) -> Vector3<f64> {
    v.map(|x| x.value)
}

fn is_zero(x: Real) -> bool {
    x == Real::from_i64(0)
}

/// Relation of a new direction to those before it.
struct Near {
    exact: bool,
}

impl Planner<'_> {
    fn add(&mut self, index: usize, snap: f64) {
        let body = &self.mechanism.bodies()[index];
        let parent = body.parent;
        let head = match parent {
            Some(p) if self.plans[p].pivoting == Pivoting::Prismatic => self.plans[p].head,
            parent => parent,
        };
        let (pivoting, axis, pitch) = pivoting(&body.joint_type);
        let mut uncertainty = self.uncertainty(body, head, snap);
        // The author may choose any angles for a frame: they are snapped only within their rounding error.
        let open = body.rounding.map_or(0.0, |r| r.angle);
        let tolerance = open.clamp(SAME_DIRECTION, snap.max(SAME_DIRECTION));
        let offset = body.drive.offset;
        let mut plan = JointPlan {
            pivoting,
            head,
            axis: ExactDirection::recognize(&axis, tolerance, snap),
            rotation: ExactRotation::recognize(&body.placement.rotation, tolerance, snap),
            translation: translation(&body.placement.translation, body.path),
            pointing: Pointing::AsWritten(false),
            parallel: false,
            across: Vec::new(),
            pitch: Surd::recognize(pitch),
            ratio: Surd::recognize(body.drive.ratio),
            rest: (Angle::recognize_rounded(offset, SAME_DIRECTION, snap), Surd::recognize(offset)),
        };
        let carried = parent.filter(|_| parent != head).is_none_or(|p| self.short[p]);
        let short = carried && plan.rotation.is_short() && plan.axis.is_short();
        if pivoting.has_axis() {
            plan.pointing = self.pointing(index, &plan, uncertainty.angle, snap, short);
            let (frame, _) = self.chain.pointed(&plan, parent);
            let (z, c) = (self.chain.head(&plan).own.column(2).into_owned(), frame.column(2).into_owned());
            plan.parallel = c == z || c == -z;
        }
        let slides = matches!(pivoting, Pivoting::Prismatic | Pivoting::Floating);
        if !slides && head.is_some_and(|h| self.plans[h].pivoting != Pivoting::Floating) {
            plan.across = self.across(index, &plan, &mut uncertainty, snap);
        }
        self.chain.push(&plan, parent);
        self.driven[body.drive.v].push(index);
        self.of_head.entry(head).or_default().push(index);
        self.plans.push(plan);
        self.uncertainties.push(uncertainty);
        self.short.push(short);
    }

    /// Computes the uncertainty due to the rounding of all numbers between head and joint.
    fn uncertainty(&self, body: &Body, head: Option<usize>, snap: f64) -> FrameUncertainty {
        let before =
            body.parent.filter(|_| body.parent != head).map(|p| self.uncertainties[p]).unwrap_or_default();
        let step = body.placement.translation.norm();
        let path = before.path + step.max(body.path);
        let (angle, length) = match body.rounding {
            Some(r) => (r.angle, r.length),
            None => (snap, snap * step),
        };
        let angle = before.angle + angle;
        FrameUncertainty { angle, length: before.length + length + before.angle * step, path, foot: 0.0 }
    }

    fn tolerance(&self, angle: f64, other: Along, plan: &JointPlan, snap: f64) -> f64 {
        let other_angle = match other {
            Along::Body(b) => self.uncertainties[b].angle,
            // Rounding error of the head's own axis.
            Along::Head => plan.head.map_or(0.0, |h| self.own_axis_uncertainty(h)),
        };
        (angle + other_angle).min(snap).max(SAME_DIRECTION)
    }

    fn own_axis_uncertainty(&self, body: usize) -> f64 {
        self.mechanism.bodies()[body].rounding.map_or(0.0, |r| r.axis)
    }

    /// Returns the directions that a joint is compared with.
    fn related_axes(&self, index: usize, plan: &JointPlan) -> Vec<Along> {
        let body = &self.mechanism.bodies()[index];
        let mut out = Vec::new();
        if self.chain.head(plan).pivoting.has_axis() {
            out.push(Along::Head);
        }
        let sliders = out.len();
        let mut at = body.parent;
        while let Some(p) = at.filter(|_| at != plan.head) {
            out.push(Along::Body(p));
            at = self.mechanism.bodies()[p].parent;
        }
        out[sliders..].reverse();
        let same_coordinate = self.driven[body.drive.v].iter().copied();
        out.extend(
            same_coordinate
                .filter(|&b| self.plans[b].head == plan.head && self.plans[b].pivoting.has_axis())
                .map(Along::Body),
        );
        out
    }

    /// Returns the directions of other branches on the same head. They matter if forces of several branches are measured
    /// together, such as the wrench on the base.
    fn siblings(&self, index: usize, plan: &JointPlan) -> Vec<Along> {
        let on_path = |b: usize| {
            let mut at = self.mechanism.bodies()[index].parent;
            while let Some(p) = at.filter(|&p| p > b) {
                at = self.mechanism.bodies()[p].parent;
            }
            at == Some(b)
        };
        let same_head = self.of_head.get(&plan.head).into_iter().flatten().copied();
        same_head
            .filter(|&b| self.plans[b].pivoting.has_axis() && !on_path(b))
            .take(MOST_SIBLINGS)
            .map(Along::Body)
            .collect()
    }

    fn axis(&self, plan: &JointPlan, along: Along) -> Vector3<Real> {
        self.chain.frame(plan, along).column(2).into_owned()
    }

    fn pointing(
        &mut self,
        index: usize,
        plan: &JointPlan,
        uncertainty: f64,
        snap: f64,
        short: bool,
    ) -> Pointing {
        let (_, w) = self.chain.described(plan, self.mechanism.bodies()[index].parent);
        let rough = value(&w);
        let as_written = Pointing::AsWritten(rough.z < 0.0);
        let related = self.related_axes(index, plan);
        let siblings = self.siblings(index, plan);
        for (k, &other) in related.iter().chain(&siblings).enumerate() {
            let d = self.axis(plan, other);
            let apart = value(&w.cross(&d)).norm();
            if apart <= self.tolerance(uncertainty, other, plan, snap) {
                let against = rough.dot(&value(&d)) < 0.0;
                if w == if against { -d } else { d } {
                    return as_written;
                }
                // The direction of another branch must satisfy the relations of this one.
                let fits = |d: &Vector3<Real>| {
                    let wanted = self.near(plan, &related, &w, uncertainty, snap).len();
                    self.near(plan, &related, d, uncertainty, snap).iter().filter(|r| r.exact).count()
                        >= wanted
                };
                if k >= related.len() && !fits(&d) {
                    continue;
                }
                self.assume(index, "parallel to", Some((plan, other)), apart, "rad");
                return Pointing::Same(other, against);
            }
        }
        let relations = self.near(plan, &related, &w, uncertainty, snap);
        if relations.iter().all(|r| r.exact) && (short || !relations.is_empty()) {
            return as_written;
        }
        let mut best: Option<(usize, Pointing)> = None;
        // Without any relation, all reference directions are equivalent; the last one is used.
        for &from in &related {
            let (score, pointing) = self.polar(plan, from, &related, &w, uncertainty, snap);
            if best.is_none_or(|(s, _)| score > s || score == 0 && s == 0) {
                best = Some((score, pointing));
            }
        }
        let Some((score, pointing)) = best else { return as_written };
        if score > 0
            && let Pointing::Polar { from, .. } = pointing
        {
            let mut moved = plan.clone();
            moved.pointing = pointing;
            let (frame, _) = self.chain.pointed(&moved, self.mechanism.bodies()[index].parent);
            let apart = value(&w.cross(&frame.column(2).into_owned())).norm();
            let what = match pointing {
                Pointing::Polar { tilt: Angle::Degrees(90), .. } => "perpendicular to",
                _ => "in a plane with",
            };
            self.assume(index, what, Some((plan, from)), apart, "rad");
        }
        pointing
    }

    /// Finds directions that are perpendicular or coplanar within the tolerance.
    fn near(
        &self,
        plan: &JointPlan,
        related: &[Along],
        w: &Vector3<Real>,
        uncertainty: f64,
        snap: f64,
    ) -> Vec<Near> {
        let mut out = Vec::new();
        for (k, &a) in related.iter().enumerate() {
            let d = self.axis(plan, a);
            let tolerance = self.tolerance(uncertainty, a, plan, snap);
            if w.dot(&d).value.abs() <= tolerance {
                out.push(Near { exact: is_zero(w.dot(&d)) });
            }
            for &b in &related[..k] {
                let n = d.cross(&self.axis(plan, b));
                let size = value(&n).norm();
                let tolerance = tolerance.max(self.tolerance(uncertainty, b, plan, snap));
                if size > tolerance && w.dot(&n).value.abs() <= tolerance * size {
                    out.push(Near { exact: is_zero(w.dot(&n)) });
                }
            }
        }
        out
    }

    /// Describes a direction by its angle to another one and its azimuth about it; also returns a score of the
    /// relations that become exact.
    fn polar(
        &self,
        plan: &JointPlan,
        from: Along,
        related: &[Along],
        w: &Vector3<Real>,
        uncertainty: f64,
        snap: f64,
    ) -> (usize, Pointing) {
        let v = value(&self.chain.frame(plan, from).tr_mul(w));
        let across = v.x.hypot(v.y);
        let tolerance = self.tolerance(uncertainty, from, plan, snap);
        let square = v.z.abs() <= tolerance;
        let tilt =
            if square { Angle::Degrees(90) } else { Angle::recognize(across.atan2(v.z), SAME_DIRECTION) };
        let mut score = if square { 4 } else { 0 };
        let angle = v.y.atan2(v.x);
        let mut azimuth = None;
        for &other in related.iter().filter(|&&o| o != from) {
            let Some(known) = self.azimuth(plan, from, other) else { continue };
            let tolerance = tolerance.max(self.tolerance(uncertainty, other, plan, snap)) / across;
            let (c, s) = known.cos_sin::<f64>();
            let quarters = (angle - s.atan2(c)) / std::f64::consts::FRAC_PI_2;
            let off = (quarters - quarters.round()).abs() * std::f64::consts::FRAC_PI_2;
            if off <= tolerance {
                score += 1;
                azimuth = azimuth.or(Some(known.turned(quarters.round() as i64)));
            }
        }
        // Otherwise the azimuth is recognized in the frame of the model (multiples of 15°).
        let azimuth = azimuth.unwrap_or_else(|| Angle::recognize(angle, tolerance / across));
        (score, Pointing::Polar { from, tilt, azimuth })
    }

    /// Returns the exact azimuth of one direction about another, if known.
    fn azimuth(&self, plan: &JointPlan, about: Along, of: Along) -> Option<Angle> {
        let described = |b: usize| self.plans[b].pointing;
        if let Along::Body(b) = of
            && let Pointing::Polar { from, azimuth, .. } = described(b)
            && from == about
        {
            return Some(azimuth);
        }
        if let Along::Body(b) = about
            && let Pointing::Polar { from, .. } = described(b)
            && from == of
        {
            return Some(Angle::Degrees(180));
        }
        let v = self.chain.frame(plan, about).tr_mul(&self.axis(plan, of));
        let rough = value(&v);
        let angle = Angle::recognize(rough.y.atan2(rough.x), SAME_DIRECTION);
        let (c, s) = angle.cos_sin::<Real>();
        (rough.x.hypot(rough.y) > SAME_DIRECTION && is_zero(v.y * c - v.x * s)).then_some(angle)
    }

    /// Returns the vectors that the offset from the head's foot to the joint is perpendicular to; empty if this holds
    /// exactly.
    fn across(
        &mut self,
        index: usize,
        plan: &JointPlan,
        uncertainty: &mut FrameUncertainty,
        snap: f64,
    ) -> Vec<Across> {
        let parent = self.mechanism.bodies()[index].parent;
        let (frame, _) = self.chain.pointed(plan, parent);
        let head = self.chain.head(plan);
        let d = self.chain.origin(plan, parent) - head.foot;
        let reach = uncertainty.path + value(&head.foot).norm();
        let lever = uncertainty.angle * value(&d).norm();
        let clamped = |x: f64| x.min(LENGTH_CAP * snap * uncertainty.path).max(SAME_POINT * reach);
        let own = uncertainty.length + lever;
        let tolerance = clamped(own + plan.head.map_or(0.0, |h| self.uncertainties[h].foot));
        let turned = value(&head.own.column(2).cross(&frame.column(2))).norm();
        // The closest point of two lines does not depend on the head's foot, unless the lines are parallel.
        uncertainty.foot = if turned > 0.0 { clamped(own) / turned } else { tolerance };
        let own = Along::Body(index);
        let mut directions = Vec::new();
        let has_axis = plan.pivoting.has_axis();
        let related = self.related_axes(index, plan);
        let sliders = related.iter().copied().filter(|&a| self.on_path(index, plan, a));
        directions.extend(sliders);
        if has_axis {
            directions.push(own);
        }
        let mut tests: Vec<Vec<Across>> = vec![(0..3).map(Across::Axis).collect()];
        for (k, &a) in directions.iter().enumerate() {
            tests.push(vec![Across::Beside(a, 0), Across::Beside(a, 1)]);
            tests.extend(directions[..k].iter().map(|&b| vec![Across::Pair(b, a)]));
        }
        if directions.first() == Some(&Along::Head) {
            tests.push(vec![if has_axis {
                Across::Foot(Along::Head, own)
            } else {
                Across::One(Along::Head)
            }]);
        }
        let mut out = Vec::new();
        let mut exact = true;
        for test in tests {
            let normals: Vec<_> = test.iter().map(|&a| self.chain.across(plan, a, index, &frame)).collect();
            let off = normals.iter().map(|n| {
                let size = value(n).norm();
                // Parallel directions span no plane.
                if size <= snap.max(SAME_DIRECTION) { f64::INFINITY } else { n.dot(&d).value.abs() / size }
            });
            if off.fold(0.0, f64::max) <= tolerance {
                exact &= normals.iter().all(|n| is_zero(n.dot(&d)));
                out.extend(test);
            }
        }
        if exact {
            return Vec::new();
        }
        let mut moved = plan.clone();
        moved.across.clone_from(&out);
        let apart = value(&(self.chain.offset(&moved, parent, &frame) - d)).norm();
        self.assume(index, "in one line or plane with", Some((plan, Along::Head)), apart, "m");
        out
    }

    fn on_path(&self, index: usize, plan: &JointPlan, along: Along) -> bool {
        let Along::Body(b) = along else { return true };
        let mut at = self.mechanism.bodies()[index].parent;
        while let Some(p) = at.filter(|_| at != plan.head) {
            if p == b {
                return true;
            }
            at = self.mechanism.bodies()[p].parent;
        }
        false
    }

    fn assume(
        &mut self,
        index: usize,
        relation: &str,
        with: Option<(&JointPlan, Along)>,
        moved: f64,
        unit: &'static str,
    ) {
        // Rounding errors of double precision are not reported as assumptions.
        if moved <= LEAST_REPORTED {
            return;
        }
        let bodies = self.mechanism.bodies();
        let joint = |b: usize| self.mechanism.joints()[bodies[b].joint].name.clone();
        let other = match with {
            Some((_, Along::Body(b))) => format!("the axis of joint {}", joint(b)),
            Some((plan, Along::Head)) => {
                plan.head.map_or_else(|| "gravity".to_owned(), |h| format!("the axis of joint {}", joint(h)))
            }
            None => String::new(),
        };
        let relation = format!("{relation} {other}");
        self.assumed.push(AssumedRelation { joint: joint(index), relation, moved, unit });
    }
}

/// Returns the offset in exact numbers; components within rounding error of zero become zero.
fn translation(t: &Vector3<f64>, path: f64) -> [Surd; 3] {
    let size = t.amax().max(path);
    t.data.0[0].map(|x| if x.abs() <= SAME_POINT * size { Surd::ZERO } else { Surd::recognize(x) })
}
