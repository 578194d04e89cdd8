//! Estimates the rounding of the numbers in a file from their number of decimals.

use crate::mechanism::{JointSpec, Rounding};

/// Number of significant digits from which a number counts as written with full double precision. With 15 digits, a frame has
/// errors of a few 1e-14, above the rounding errors of doubles.
const FULL: i32 = 16;

/// Minimum number of significant digits of a file with a fixed number of them.
const SIGNIFICANT: i32 = 5;

/// Unit of the last decimal up to which angles may differ by [`TYPED`] units: constants that were typed by hand, such as 1.570796325,
/// can be wrong in the last digit.
const FINE: f64 = 1e-8;

/// Error of fine angles, in units of the last decimal.
const TYPED: f64 = 4.0;

/// Number of decimals to which shorter numbers are at least exact (for lengths near one): 0.25 means 0.2500.
const LEAST: i32 = 4;

/// Largest number of decimals to which short numbers are exact if the file has longer ones: 0.25 beside 0.12345 means 0.25000.
const SHARED: i32 = 5;

/// Number of angles that must share the same two or three decimals, with none having more, to count as rounded to these decimals.
const MANY: usize = 6;

/// Relative precision of single-precision numbers that are written as doubles.
const SINGLE: f64 = 1.2e-7;

/// Numbers that define a joint's frame and axis in the file.
#[derive(Debug, Clone, Default)]
pub(super) struct Numbers {
    pub lengths: Vec<f64>,
    /// Angles, or entries of rotation matrices and quaternions.
    pub angles: Vec<f64>,
    pub axis: Vec<f64>,
}

/// Returns the number of digits and the decimal exponent of the shortest text of `x`, or `None` if it has full double
/// precision.
fn digits(x: f64) -> Option<(i32, i32)> {
    let text = format!("{x:e}");
    let (mantissa, exponent) = text.split_once('e')?;
    let digits = i32::try_from(mantissa.chars().filter(char::is_ascii_digit).count()).ok()?;
    (digits < FULL).then_some((digits, exponent.parse().ok()?))
}

/// Returns the number of decimals in the shortest text of `x`, or `None` if it has full double precision.
fn decimals(x: f64) -> Option<i32> {
    if x == 0.0 || !x.is_finite() {
        return Some(0);
    }
    digits(x).map(|(digits, exponent)| (digits - 1 - exponent).max(0))
}

/// Returns the number of significant digits of a file that was written with a fixed number of them (as by `%.6g`) instead of a
/// fixed number of decimals: more numbers have that many digits than have the largest number of decimals.
fn significant<'a>(numbers: impl Iterator<Item = &'a f64>) -> Option<i32> {
    let written = numbers.filter(|x| **x != 0.0 && x.is_finite()).map(|&x| digits(x));
    let written: Vec<(i32, i32)> = written.collect::<Option<_>>()?;
    let alike = |of: fn((i32, i32)) -> i32| {
        let most = written.iter().map(|&w| of(w)).max().unwrap_or(0);
        (most, written.iter().filter(|&&w| of(w) == most).count())
    };
    let ((most, of_digits), (_, of_decimals)) = (alike(|w| w.0), alike(|w| w.0 - w.1));
    (most >= SIGNIFICANT && of_digits > of_decimals).then_some(most)
}

/// Returns whether a number of full double precision is exactly representable in single precision.
fn is_single(x: f64) -> bool {
    decimals(x).is_none() && f64::from(x as f32) == x
}

/// Returns one unit of the last decimal of the numbers, counting at least `least` decimals; zero if one has full double precision.
///
/// In a file with a fixed number of `significant` digits, it is the unit of the last digit of the largest number.
fn unit(numbers: &[f64], least: i32, significant: Option<i32>) -> f64 {
    if numbers.iter().any(|&x| is_single(x)) {
        return SINGLE * numbers.iter().fold(0.0, |m: f64, x| m.max(x.abs()));
    }
    if numbers.iter().all(|&x| x == 0.0) {
        return 0.0;
    }
    if let Some(significant) = significant {
        let largest = numbers.iter().fold(0.0, |m: f64, x| m.max(x.abs()));
        return 10f64.powi(largest.log10().floor() as i32 + 1 - significant);
    }
    let mut most = least;
    for &x in numbers {
        match decimals(x) {
            Some(d) => most = most.max(d),
            None => return 0.0,
        }
    }
    10f64.powi(-most)
}

/// Returns the number of decimals to which all numbers of a kind count as exact, increased by `shift` for small numbers.
fn least<'a>(numbers: impl Iterator<Item = &'a f64>, shift: i32) -> i32 {
    let most = numbers.map(|&x| decimals(x).unwrap_or(SHARED + shift)).max().unwrap_or(0);
    most.clamp(LEAST + shift, SHARED + shift)
}

/// Returns one unit of the last decimal of all angles if many of them are rounded to fewer than [`LEAST`] decimals; otherwise zero.
fn coarse<'a>(angles: impl Iterator<Item = &'a f64>) -> f64 {
    let places: Option<Vec<i32>> = angles.filter(|x| **x != 0.0).map(|&x| decimals(x)).collect();
    let Some(places) = places else { return 0.0 };
    let most = places.iter().copied().max().unwrap_or(0);
    let alike = places.iter().filter(|&&d| d == most).count();
    if (2..LEAST).contains(&most) && alike >= MANY { 10f64.powi(-most) } else { 0.0 }
}

impl Numbers {
    /// Adds the entries of a rotation matrix (row by row) or a quaternion. Entries that form a rotation in double precision are exact,
    /// whatever the number of their digits (the identity).
    pub fn add_rotation(&mut self, entries: &[f64]) {
        let product = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        let is_unit = |row: &[f64]| (product(row, row) - 1.0).abs() < 4.0 * f64::EPSILON;
        let is_exact = match entries.len() {
            9 => {
                let rows: Vec<&[f64]> = entries.chunks(3).collect();
                let pairs = [(0, 1), (0, 2), (1, 2)];
                rows.iter().all(|row| is_unit(row))
                    && pairs.iter().all(|&(i, j)| product(rows[i], rows[j]).abs() < 4.0 * f64::EPSILON)
            }
            _ => is_unit(entries),
        };
        if !is_exact {
            self.angles.extend(entries);
        }
    }
}

/// Returns whether axes are written without rounding: along a coordinate axis, or of unit length.
fn is_exact(axes: &[f64]) -> bool {
    axes.chunks(3).all(|axis| {
        let along = axis.iter().filter(|x| **x != 0.0).count() == 1;
        along || (axis.iter().map(|x| x * x).sum::<f64>() - 1.0).abs() < 4.0 * f64::EPSILON
    })
}

/// Sets the rounding of each joint's numbers.
pub(super) fn mark(joints: &mut [JointSpec], numbers: &[Numbers]) {
    let size = numbers.iter().flat_map(|n| &n.lengths).fold(0.0, |m: f64, x| m.max(x.abs()));
    // The number of decimals depends on the unit of length.
    let shift = if size > 0.0 { -(size.log10().floor() as i32) - 1 } else { 0 };
    let lengths = least(numbers.iter().flat_map(|n| &n.lengths), shift);
    let angles = least(numbers.iter().flat_map(|n| &n.angles), 0);
    let coarse = coarse(numbers.iter().flat_map(|n| &n.angles));
    let digits = significant(numbers.iter().flat_map(|n| n.lengths.iter().chain(&n.angles).chain(&n.axis)));
    for (joint, n) in joints.iter_mut().zip(numbers) {
        let axis = if is_exact(&n.axis) { 0.0 } else { unit(&n.axis, LEAST, digits) };
        let angle = unit(&n.angles, angles, digits);
        let angle = if angle <= FINE { TYPED * angle } else { angle } + axis;
        let length = unit(&n.lengths, lengths, digits);
        joint.rounding = Some(Rounding { angle, length, axis, coarse });
    }
}

#[cfg(test)]
mod tests {
    use super::{coarse, significant};

    #[test]
    fn a_fixed_number_of_digits_is_told_from_a_fixed_number_of_decimals() {
        let exact = [0.1, 2.0, 1e-7, 7.0, 1e-3, 0.3].map(f64::sqrt);
        let written = |format: &dyn Fn(f64) -> String| exact.map(|x| format(x).parse::<f64>().unwrap());
        for digits in 5..=14u8 {
            let rounded = written(&|x| format!("{x:.*e}", usize::from(digits) - 1));
            assert_eq!(significant(rounded.iter()), Some(digits.into()), "{digits}");
        }
        for decimals in 4..=8 {
            assert_eq!(significant(written(&|x| format!("{x:.decimals$}")).iter()), None, "{decimals}");
        }
        // Typed numbers: the angles have the most digits, and the most decimals.
        assert_eq!(significant([2.3562, 0.1273, 0.612, 0.5723, -2.3562, 0.1].iter()), None);
        assert_eq!(significant([1.5, std::f64::consts::PI].iter()), None);
    }

    #[test]
    fn angles_are_coarse_where_many_have_the_same_few_decimals() {
        let rounded = [0.785, 1.571, -0.322, 0.125, 0.0, 0.927, 1.0, 0.644];
        assert_eq!(coarse(rounded.iter()), 1e-3);
        // Fewer angles are not enough evidence; one angle with more decimals or with full precision means that the angles are exact.
        assert_eq!(coarse(rounded[..6].iter()), 0.0);
        assert_eq!(coarse(rounded.iter().chain(&[0.1234])), 0.0);
        assert_eq!(coarse(rounded.iter().chain(&[std::f64::consts::FRAC_PI_3])), 0.0);
        assert_eq!(coarse([0.5, 1.5, -0.5, 0.1, 0.2, 0.3, 0.4].iter()), 0.0);
    }
}
