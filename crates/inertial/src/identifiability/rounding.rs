//! How far the numbers of a mechanism with loops are rounded.

use crate::dynamics::ClosedMechanism;

/// Relations between numbers of double precision hold to this, after a few rotations.
pub(super) const DOUBLES: f64 = 1e-11;

/// Relations are meant that hold to at most so many tolerances of the geometry.
pub(super) const COARSEST: f64 = 5.0;

/// Loops that are open by no more than this (rad, or relative to their length) are closed as the file is written.
const AS_WRITTEN: f64 = 1e-9;

/// Loops that are open by more than this are not meant to be closed in the configuration that the file gives.
const GUESSED: f64 = 3e-3;

/// Without a guess of the configuration, loops that are open by up to so many units of the last decimal place are rounded.
const MOST_UNITS: f64 = 10.0;

/// Relations that hold to so many units of the last decimal place of a file may be meant though its loops close as written.
const UNITS: f64 = 1.5;

/// The same where its loops do not close: lengths are differences, and directions products, of several rounded numbers.
const OPEN_UNITS: f64 = 3.0;

/// Relations of a file whose numbers are rounded may be meant where they hold to so many tolerances.
const MOST_TOLERANCES: f64 = 4.0;

/// Files whose loops are open by more than so many tolerances of the geometry are rounded more coarsely than relations are restored.
const MOST_OPEN: f64 = 3.0;

/// Relations that do not hold to this are not meant in any file.
const WIDEST: f64 = 1e-2;

/// Loops of a rounded file are open by at least the last decimal place over this.
const MOST_LUCK: f64 = 100.0;

/// Numbers with at least so many digits are doubles, not rounded for people.
const DOUBLE_DIGITS: usize = 12;

/// How far the numbers of a mechanism with loops are rounded, in units of its size.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rounding {
    /// The tolerance within which relations were meant: the rounding of doubles, or that of the file where its numbers do not close the
    /// loops.
    pub tolerance: f64,
    /// The unit of the last decimal place that is rounded; `None` where the lengths have the digits of doubles.
    pub unit: Option<f64>,
    /// The unit of the last decimal place of the lengths, whether it is rounded or not.
    last_place: Option<f64>,
    /// How far the loops are open because of rounding; the rounding of the angles where that is larger and the loops are not closed as the
    /// file is written.
    open: f64,
}

impl Rounding {
    /// Measures a mechanism of some size whose geometry is known to `snap` and whose loops stay open by `gap` as it moves.
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
        // Loops that are open by far less than the last decimal place say that it is exact.
        let unit = unit.map(|unit| if open > AS_WRITTEN { unit.min(MOST_LUCK * open) } else { unit });
        let tolerance = match unit {
            // They can be nearly closed by accident.
            Some(unit) if open > AS_WRITTEN => {
                (10.0 * open).max(UNITS * unit).min(COARSEST * snap).max(DOUBLES)
            }
            _ => DOUBLES,
        };
        let coarse =
            mechanism.bodies().iter().filter_map(|b| b.rounding).map(|r| r.coarse).fold(0.0, f64::max);
        let open = if start > AS_WRITTEN { open.max(coarse) } else { open };
        Self { tolerance, unit, last_place, open }
    }

    /// The tolerance of relations that a file with rounded numbers may mean: loops can be nearly closed by accident.
    pub fn blur(&self) -> f64 {
        let lengths = self.last_place.map_or(0.0, |unit| (OPEN_UNITS * unit).min(WIDEST));
        lengths.max(MOST_TOLERANCES * self.tolerance)
    }

    /// The tolerance of relations that hold to the last decimal places of the file; `None` where these are below the rounding of doubles.
    pub fn last_places(&self, snap: f64) -> Option<f64> {
        let unit = self.unit.filter(|&unit| unit > DOUBLES)?;
        Some(if self.is_coarse() {
            self.tolerance.max((OPEN_UNITS * unit).min(WIDEST))
        } else {
            (UNITS * unit).min(COARSEST * snap)
        })
    }

    /// The tolerance of relations that may be meant in a file so coarse that they are not restored; `None` for other files.
    pub fn beyond(&self, snap: f64) -> Option<f64> {
        (self.open > MOST_OPEN * snap).then_some((10.0 * self.open).min(WIDEST))
    }

    /// Whether the file has fewer digits than doubles, so that its loops do not close.
    pub fn is_coarse(&self) -> bool {
        self.tolerance > DOUBLES
    }
}

/// The unit of the last decimal place that the lengths of a file use; `None` where one has the digits of a double.
fn last_place(closed: &ClosedMechanism<'_>) -> Option<f64> {
    let mechanism = closed.mechanism();
    let tree = mechanism.bodies().iter().map(|b| &b.placement);
    let ends = mechanism.loops().iter().flat_map(|l| [&l.predecessor.pose, &l.successor.pose]);
    let mut least: Option<i32> = None;
    for x in tree.chain(ends).flat_map(|pose| pose.translation.iter()).filter(|x| **x != 0.0) {
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
