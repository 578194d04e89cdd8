//! Estimation of the rounding error of the geometry of mechanisms with loops.

use crate::dynamics::ClosedMechanism;
use crate::mechanism::Mechanism;
use crate::spatial::Pose;

/// Accuracy of relations between numbers of double precision after a few rotations.
pub(super) const DOUBLES: f64 = 1e-11;

/// Maximum tolerance of intended relations, in tolerances of the geometry.
pub(super) const COARSEST: f64 = 5.0;

/// Largest closure error (rad, or relative to the length) of loops that count as closed as written in the file.
const AS_WRITTEN: f64 = 1e-11;

/// Closure error above which loops are not intended to be closed in the configuration given by the file.
const GUESSED: f64 = 3e-3;

/// Largest closure error, in units of the last decimal place, that is explained by rounding if the file gives no
/// initial configuration.
const MOST_UNITS: f64 = 10.0;

/// Tolerance, in units of the last decimal place, of relations that may be intended in a file whose loops close as
/// written.
const UNITS: f64 = 1.5;

/// Tolerance, in units of the last decimal place, for a file whose loops do not close: lengths are differences, and
/// directions products, of several rounded numbers.
const OPEN_UNITS: f64 = 3.0;

/// Tolerance, in multiples of the rounding tolerance, of relations that may be intended in a file with rounded numbers.
const MOST_TOLERANCES: f64 = 4.0;

/// Closure error, in tolerances of the geometry, above which a file is too coarse to restore relations.
const MOST_OPEN: f64 = 3.0;

/// Largest tolerance of intended relations in any file.
const WIDEST: f64 = 1e-2;

/// Maximum ratio of the last decimal place to the closure error of the loops of a rounded file.
const MOST_LUCK: f64 = 100.0;

/// Minimum number of digits of numbers in full double precision; shorter ones were rounded for display.
const DOUBLE_DIGITS: usize = 12;

/// Rounding error of the geometry of a mechanism with loops, in units of its size.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rounding {
    /// Tolerance of intended relations: the rounding error of doubles, or that of the file if its numbers do not close
    /// the loops.
    pub tolerance: f64,
    /// Unit of the last decimal place that is rounded; `None` if the lengths have the digits of doubles.
    pub unit: Option<f64>,
    /// Unit of the last decimal place of the lengths, whether it is rounded or not.
    last_place: Option<f64>,
    /// Closure error due to rounding. It is the rounding error of the angles if that is larger and the loops are not
    /// closed as written in the file.
    open: f64,
    /// Rounding error of axes that are not written as unit vectors.
    pub axes: f64,
    /// Whether all frames and axes are turned by special angles.
    special_angles: bool,
}

impl Rounding {
    /// Estimates the rounding error of a mechanism of the given size whose geometry is known to `snap` and whose
    /// closure error in motion is `gap`.
    pub fn new(closed: &ClosedMechanism<'_>, size: f64, snap: f64, gap: f64) -> Self {
        let unit = last_place(closed).map(|unit| unit / size).filter(|_| snap > 0.0);
        let mechanism = closed.mechanism();
        let is_guess = || mechanism.assembly() != mechanism.neutral();
        let start = closed.residual(&mut closed.workspace(), mechanism.assembly()).unwrap_or(0.0);
        let open = match unit {
            Some(unit) if start < GUESSED || start <= MOST_UNITS * unit && !is_guess() => start.max(gap),
            Some(_) => gap,
            None => 0.0,
        };
        let last_place = unit;
        // If the closure error is far below the last decimal place, that place is exact.
        let unit = unit.map(|unit| if open > AS_WRITTEN { unit.min(MOST_LUCK * open) } else { unit });
        let tolerance = match unit {
            // The loops can be nearly closed by accident.
            Some(unit) if open > AS_WRITTEN => {
                (10.0 * open).max(UNITS * unit).min(COARSEST * snap).max(DOUBLES)
            }
            _ => DOUBLES,
        };
        let coarse =
            mechanism.bodies().iter().filter_map(|b| b.rounding).map(|r| r.coarse).fold(0.0, f64::max);
        let open = if start > AS_WRITTEN { open.max(coarse) } else { open };
        let axes = mechanism.bodies().iter().filter_map(|b| b.rounding).map(|r| r.axis).fold(0.0, f64::max);
        let loops = mechanism.loops().iter().map(|l| l.joint_type);
        let axes_are_special = mechanism.bodies().iter().map(|b| b.joint_type).chain(loops).all(|joint| {
            joint
                .free_modes()
                .iter()
                .all(|m| m.angular.iter().chain(&m.linear).all(|&x| is_special_cosine(x)))
        });
        let special_angles = axes_are_special
            && frames(mechanism).all(|pose| pose.rotation.iter().all(|&x| is_special_cosine(x)));
        Self { tolerance, unit, last_place, open, axes, special_angles }
    }

    /// Returns the tolerance of relations that may be intended in a file with rounded numbers; loops can be nearly
    /// closed by accident.
    pub fn blur(&self) -> f64 {
        let lengths = self.last_place.map_or(0.0, |unit| (OPEN_UNITS * unit).min(WIDEST));
        lengths.max(MOST_TOLERANCES * self.tolerance)
    }

    /// Returns the tolerance of relations that hold to the last decimal places of the file; `None` if these are below
    /// the rounding error of doubles.
    pub fn last_places(&self, snap: f64) -> Option<f64> {
        let unit = self.unit.filter(|&unit| unit > DOUBLES)?;
        Some(if self.is_coarse() {
            self.tolerance.max((OPEN_UNITS * unit).min(WIDEST))
        } else {
            (UNITS * unit).min(COARSEST * snap)
        })
    }

    /// Returns the tolerance of relations that may be intended in a file too coarse to restore them; `None` for other
    /// files.
    pub fn beyond(&self, snap: f64) -> Option<f64> {
        (self.open > MOST_OPEN * snap).then_some((10.0 * self.open).min(WIDEST))
    }

    /// Returns whether all lengths are short decimals and all frames are turned by special angles, so that the geometry
    /// has no rounding errors.
    pub fn is_exact(&self) -> bool {
        self.last_place.is_some() && self.special_angles && self.axes == 0.0
    }

    /// Returns whether the file has fewer digits than doubles, so that its loops do not close.
    pub fn is_coarse(&self) -> bool {
        self.tolerance > DOUBLES
    }
}

/// Rounding errors of the numbers that place joints on one body.
#[derive(Debug, Clone, Copy)]
pub(super) struct Resolution {
    /// Unit of the last decimal place of lengths, in units of the size of the mechanism.
    pub length: f64,
    /// Error of the direction of an axis (rad).
    pub angle: f64,
}

/// Returns the rounding errors of the numbers that place joints on one body; `unit` is the unit of lengths.
pub(super) fn resolution(closed: &ClosedMechanism<'_>, unit: f64) -> Resolution {
    let roundings = closed.mechanism().bodies().iter().filter_map(|b| b.rounding);
    let angle = roundings.map(|r| r.angle.max(r.coarse)).fold(DOUBLES, f64::max);
    Resolution { length: last_place(closed).map_or(DOUBLES, |place| place / unit).max(DOUBLES), angle }
}

/// Returns the frames of all joints.
fn frames(mechanism: &Mechanism) -> impl Iterator<Item = &Pose<f64>> {
    let tree = mechanism.bodies().iter().map(|b| &b.placement);
    let ends = mechanism.loops().iter().flat_map(|l| [&l.predecessor.pose, &l.successor.pose]);
    tree.chain(ends)
}

/// Returns whether a number is the cosine of a multiple of 30° or 45°.
fn is_special_cosine(x: f64) -> bool {
    let special = [0.0, 0.5, 0.5f64.sqrt(), 0.75f64.sqrt(), 1.0];
    special.iter().any(|s| (x.abs() - s).abs() < 4.0 * f64::EPSILON)
}

/// Returns the unit of the last decimal place used by the lengths of a file; `None` if one of them has the digits of a
/// double.
fn last_place(closed: &ClosedMechanism<'_>) -> Option<f64> {
    let mut least: Option<i32> = None;
    for x in frames(closed.mechanism()).flat_map(|pose| pose.translation.iter()).filter(|x| **x != 0.0) {
        let written = format!("{x:e}");
        let (mantissa, exponent) = written.split_once('e')?;
        let digits = mantissa.bytes().filter(u8::is_ascii_digit).count();
        if digits >= DOUBLE_DIGITS {
            return None;
        }
        let place = exponent.parse::<i32>().ok()? + 1 - i32::try_from(digits).ok()?;
        least = Some(least.map_or(place, |l| l.min(place)));
    }
    Some(least.map_or(1.0, |place| 10f64.powi(place)))
}
