//! How the numbers of a file were rounded, from the decimals that they are written with.

use crate::mechanism::{JointSpec, Rounding};

/// Numbers with at least so many significant digits carry the full precision of a double.
const FULL: i32 = 12;

/// Shorter numbers are taken as exact to at least so many decimals (of a length near one): 0.25 means 0.2500.
const LEAST: i32 = 4;

/// Where a file has longer numbers, short ones are exact to up to so many decimals: 0.25 beside 0.12345 means 0.25000.
const SHARED: i32 = 5;

/// So many angles with the same two or three decimals, and none with more, are rounded to these.
const MANY: usize = 6;

/// Relative precision of single-precision numbers that are written out as doubles.
const SINGLE: f64 = 1.2e-7;

/// The numbers that a joint's frame and axis are written with.
#[derive(Debug, Clone, Default)]
pub(super) struct Numbers {
    pub lengths: Vec<f64>,
    /// Angles, or entries of rotation matrices and quaternions.
    pub angles: Vec<f64>,
    pub axis: Vec<f64>,
}

/// Decimals after the point in the shortest text of `x`; `None` where it has the full precision of a double.
fn decimals(x: f64) -> Option<i32> {
    if x == 0.0 || !x.is_finite() {
        return Some(0);
    }
    let text = format!("{x:e}");
    let (mantissa, exponent) = text.split_once('e')?;
    let digits = i32::try_from(mantissa.chars().filter(char::is_ascii_digit).count()).ok()?;
    (digits < FULL).then_some((digits - 1 - exponent.parse::<i32>().ok()?).max(0))
}

/// Whether a number of many digits is a single-precision one.
fn is_single(x: f64) -> bool {
    decimals(x).is_none() && f64::from(x as f32) == x
}

/// One unit of the last decimal of some numbers, at least `least` decimals; zero where one has full precision.
fn unit(numbers: &[f64], least: i32) -> f64 {
    if numbers.iter().any(|&x| is_single(x)) {
        return SINGLE * numbers.iter().fold(0.0, |m: f64, x| m.max(x.abs()));
    }
    if numbers.iter().all(|&x| x == 0.0) {
        return 0.0;
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

/// Decimals that all numbers of a kind may be taken as exact to; `shift` more where they are small.
fn least<'a>(numbers: impl Iterator<Item = &'a f64>, shift: i32) -> i32 {
    let most = numbers.map(|&x| decimals(x).unwrap_or(SHARED + shift)).max().unwrap_or(0);
    most.clamp(LEAST + shift, SHARED + shift)
}

/// One unit of the last decimal of all angles, where many of them are rounded to fewer than [`LEAST`] decimals; otherwise zero.
fn coarse<'a>(angles: impl Iterator<Item = &'a f64>) -> f64 {
    let places: Option<Vec<i32>> = angles.filter(|x| **x != 0.0).map(|&x| decimals(x)).collect();
    let Some(places) = places else { return 0.0 };
    let most = places.iter().copied().max().unwrap_or(0);
    let alike = places.iter().filter(|&&d| d == most).count();
    if (2..LEAST).contains(&most) && alike >= MANY { 10f64.powi(-most) } else { 0.0 }
}

/// Whether axes are written without rounding: along a coordinate axis, or of unit length.
fn is_exact(axes: &[f64]) -> bool {
    axes.chunks(3).all(|axis| {
        let along = axis.iter().filter(|x| **x != 0.0).count() == 1;
        along || (axis.iter().map(|x| x * x).sum::<f64>() - 1.0).abs() < 1e-12
    })
}

/// Says of each joint how its numbers were rounded.
pub(super) fn mark(joints: &mut [JointSpec], numbers: &[Numbers]) {
    let size = numbers.iter().flat_map(|n| &n.lengths).fold(0.0, |m: f64, x| m.max(x.abs()));
    // Lengths in other units have their decimals elsewhere.
    let shift = if size > 0.0 { -(size.log10().floor() as i32) - 1 } else { 0 };
    let lengths = least(numbers.iter().flat_map(|n| &n.lengths), shift);
    let angles = least(numbers.iter().flat_map(|n| &n.angles), 0);
    let coarse = coarse(numbers.iter().flat_map(|n| &n.angles));
    for (joint, n) in joints.iter_mut().zip(numbers) {
        let axis = if is_exact(&n.axis) { 0.0 } else { unit(&n.axis, LEAST) };
        let (angle, length) = (unit(&n.angles, angles) + axis, unit(&n.lengths, lengths));
        joint.rounding = Some(Rounding { angle, length, axis, coarse });
    }
}

#[cfg(test)]
mod tests {
    use super::coarse;

    #[test]
    fn angles_are_coarse_where_many_have_the_same_few_decimals() {
        let rounded = [0.785, 1.571, -0.322, 0.125, 0.0, 0.927, 1.0, 0.644];
        assert_eq!(coarse(rounded.iter()), 1e-3);
        // Fewer say nothing, one with more decimals says that they are exact, and so does full precision.
        assert_eq!(coarse(rounded[..6].iter()), 0.0);
        assert_eq!(coarse(rounded.iter().chain(&[0.1234])), 0.0);
        assert_eq!(coarse(rounded.iter().chain(&[std::f64::consts::FRAC_PI_3])), 0.0);
        assert_eq!(coarse([0.5, 1.5, -0.5, 0.1, 0.2, 0.3, 0.4].iter()), 0.0);
    }
}
