//! Limits of position, velocity and acceleration of each coordinate.

use super::motion::{BASE_COORDINATES, Target, movable};
use super::plan::Coordinate;
use crate::mechanism::{Base, Body, Mechanism};
use crate::{Error, Result};

/// Violation of a distance (m) that is equivalent to a violation by a whole limit.
pub(super) const METRES: f64 = 0.1;

/// Default limits of coordinates without limits in the description.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct DefaultLimits {
    /// Speed limit (rad/s or m/s) of joints without one.
    pub velocity: f64,
    /// Acceleration limit (rad/s² or m/s²).
    pub acceleration: f64,
    /// Relative margin to every limit.
    pub margin: f64,
    /// Range of a floating base (m, rad), to both sides; a base without a range does not move.
    pub base: Option<[f64; 2]>,
}

crate::with_changes!(DefaultLimits);

impl Default for DefaultLimits {
    fn default() -> Self {
        Self { velocity: 2.0, acceleration: 10.0, margin: 0.05, base: None }
    }
}

/// Returns the coordinates that a trajectory of a mechanism can move, with their limits.
pub fn coordinates(mechanism: &Mechanism, limits: &DefaultLimits) -> Vec<Coordinate> {
    let keep = 1.0 - limits.margin;
    let mut out = Vec::new();
    if let (Base::Floating, Some(range)) = (mechanism.base(), limits.base) {
        for (k, name) in BASE_COORDINATES.iter().enumerate() {
            let range = range[k / 3] * keep;
            // Speed of a sine of half a hertz over the whole range.
            let w = std::f64::consts::PI;
            out.push(Coordinate {
                name: (*name).to_owned(),
                lower: -range,
                upper: range,
                velocity: w * range,
                acceleration: w * w * range,
            });
        }
    }
    for (name, q, _) in movable(mechanism) {
        let joints = mechanism.joints().iter().filter(|j| j.follows.is_none());
        let Some(joint) = joints.clone().find(|j| j.q_range().contains(&q)) else { continue };
        let mut lower = joint.limits.lower;
        let mut upper = joint.limits.upper;
        let mut velocity = joint.limits.given_velocity().unwrap_or(limits.velocity);
        // Joints that follow this one add their own limits.
        for follower in mechanism.bodies().iter().filter(|b| b.drive.q == q && b.joint_type.nq() == 1) {
            let own = &mechanism.joints()[follower.joint];
            if own.follows.is_none() || follower.drive.ratio == 0.0 {
                continue;
            }
            let pieces = mechanism.joint_bodies(follower.joint);
            let share = pieces.len() as f64;
            // A joint that follows several ones assigns each an equal share of its range about the assembled configuration.
            let (here, there) = match pieces {
                [one] => (0.0, one.drive.offset),
                several => {
                    let at = |b: &Body| b.drive.ratio * mechanism.assembly()[b.drive.q] + b.drive.offset;
                    (mechanism.assembly()[q], several.iter().map(at).sum())
                }
            };
            let ends = [own.limits.lower, own.limits.upper]
                .map(|x| here + (x - there) / (share * follower.drive.ratio));
            lower = lower.max(ends[0].min(ends[1]));
            upper = upper.min(ends[0].max(ends[1]));
            if let Some(own) = own.limits.given_velocity() {
                velocity = velocity.min(own / (share * follower.drive.ratio.abs()));
            }
        }
        let spare = if (upper - lower).is_finite() { 0.5 * limits.margin * (upper - lower) } else { 0.0 };
        out.push(Coordinate {
            name,
            lower: lower + spare,
            upper: upper - spare,
            velocity: velocity * keep,
            acceleration: limits.acceleration * keep,
        });
    }
    out
}

/// Used fraction of a limit.
#[derive(Debug, Clone, PartialEq, serde::Serialize, schemars::JsonSchema)]
#[non_exhaustive]
pub struct Usage {
    /// Description of the limit.
    pub limit: String,
    /// Largest used fraction; above one only if the limit is violated.
    pub used: f64,
    /// Remaining distance (m) above the minimum, for distance limits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left: Option<f64>,
}

impl Usage {
    pub(super) fn part(limit: String, used: f64) -> Self {
        Self { limit, used, left: None }
    }

    /// Creates the usage of a distance limit: one if no margin is left, zero for a margin of [`METRES`] or more.
    pub(super) fn distance(limit: String, left: f64) -> Self {
        Self { limit, used: (1.0 - left / METRES).max(0.0), left: Some(left) }
    }
}

/// Returns the coordinates that can move, and the names of those that cannot.
pub(super) fn split(coordinates: &[Coordinate]) -> Result<(Vec<Coordinate>, Vec<String>)> {
    let empty = coordinates.iter().find(|c| c.lower > c.upper);
    if let Some(c) = empty {
        return Err(Error::Infeasible(format!(
            "the limits of {} leave no position: {} to {}",
            c.name, c.lower, c.upper
        )));
    }
    let (free, held): (Vec<_>, Vec<_>) = coordinates.iter().cloned().partition(Coordinate::is_free);
    if free.is_empty() {
        return Err(Error::Infeasible(match held.first() {
            None => "the robot has no joint that a trajectory could move".into(),
            Some(c) => format!(
                "the limits allow no motion: {} may go from {} to {} at a speed of at most {} and an acceleration of at \
                 most {}",
                c.name, c.lower, c.upper, c.velocity, c.acceleration
            ),
        }));
    }
    Ok((free, held.into_iter().map(|c| c.name).collect()))
}

/// Returns the start of the coordinates that can move.
pub(super) fn checked_start(coordinates: &[Coordinate], start: &[f64]) -> Result<Vec<f64>> {
    if start.len() != coordinates.len() {
        let (expected, found) = (coordinates.len(), start.len());
        return Err(Error::Dimension { what: "start of the motion", expected, found });
    }
    for (c, &x) in coordinates.iter().zip(start) {
        if !(x >= c.lower && x <= c.upper) {
            return Err(Error::Infeasible(format!(
                "the start of {} is {x}, outside of its limits with their margin, {} to {}",
                c.name, c.lower, c.upper
            )));
        }
    }
    Ok(coordinates.iter().zip(start).filter(|(c, _)| c.is_free()).map(|(_, x)| *x).collect())
}

/// Returns the mechanism with joints that cannot move fixed at their only position.
pub(super) fn held_in_place(
    mechanism: &Mechanism,
    coordinates: &[Coordinate],
    start: Option<&[f64]>,
) -> Mechanism {
    let mut out = mechanism.clone();
    for (k, c) in coordinates.iter().enumerate().filter(|(_, c)| !c.is_free()) {
        if let Ok(Target::Joint { q, .. }) = super::motion::target(mechanism, &c.name) {
            out.assembly[q] = start.map_or(c.middle(), |s| s[k]);
        }
    }
    out
}
