//! Double-double numbers of about 31 digits: two `f64` that do not overlap (Dekker 1971, Hida, Li and Bailey 2001).

use std::ops::{Add, AddAssign, Mul, MulAssign, Neg, Sub, SubAssign};

use num_traits::{One, Zero};

use super::{Number, SplitMix};
use crate::spatial::Field;

/// Bound of the rounding error after a cancellation between numbers of order one.
const ROUNDING: f64 = 1e-27;

/// Number `high + low`, where `low` is at most half a unit in the last place of `high`.
///
/// Used for geometry without an exact representation: closures are solved to the last of 31 digits, so that ranks have
/// margins of twenty orders of magnitude.
///
/// ```
/// use inertial::linalg::{Double, Number};
/// use inertial::spatial::Field;
/// let third = Double::from_decimal(1, 3, 0);
/// let error = third + third + third - Double::from_i64(1);
/// assert!(f64::from(error).abs() < 1e-31);
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Double {
    high: f64,
    low: f64,
}

/// Computes `a + b` and its rounding error (Knuth).
#[inline]
fn two_sum(a: f64, b: f64) -> (f64, f64) {
    let s = a + b;
    let t = s - a;
    (s, (a - (s - t)) + (b - t))
}

/// Computes `a + b` and its rounding error for `|a| ≥ |b|` (Dekker).
#[inline]
fn quick_two_sum(a: f64, b: f64) -> (f64, f64) {
    let s = a + b;
    (s, b - (s - a))
}

/// Splits a number into two halves of 26 bits each (Veltkamp), without fused multiply-add, so the result is the same on
/// every machine.
#[inline]
fn split(a: f64) -> (f64, f64) {
    let t = 134_217_729.0 * a; // 2²⁷ + 1
    let high = t - (t - a);
    (high, a - high)
}

/// Computes `a b` and its rounding error (Dekker).
#[inline]
fn two_product(a: f64, b: f64) -> (f64, f64) {
    let p = a * b;
    let ((ah, al), (bh, bl)) = (split(a), split(b));
    (p, ((ah * bh - p) + ah * bl + al * bh) + al * bl)
}

impl Double {
    /// π.
    pub const PI: Self = Self { high: std::f64::consts::PI, low: 1.224_646_799_147_353_2e-16 };

    #[inline]
    fn normal(high: f64, low: f64) -> Self {
        let (high, low) = quick_two_sum(high, low);
        Self { high, low }
    }

    fn halved(self) -> Self {
        Self { high: 0.5 * self.high, low: 0.5 * self.low }
    }

    /// Computes the sine and cosine.
    pub fn sin_cos(self) -> (Self, Self) {
        let quarter_turn = Self::PI.halved();
        let quarters = (self.high / quarter_turn.high).round();
        let x = self - quarter_turn * Self::from(quarters);
        let square = x * x;
        // |x| ≤ π/4: thirty terms of the series are below 1e-33.
        let (mut sin, mut cos, mut term) = (x, Self::one(), x);
        for k in 1..15_i64 {
            let (even, odd) = (Self::from_i64(2 * k), Self::from_i64(2 * k + 1));
            // term = ± x^(2k−1)/(2k−1)!
            let next = -(term * x * even.inverse().unwrap_or_else(Self::zero));
            cos += next;
            term = -(term * square * (even * odd).inverse().unwrap_or_else(Self::zero));
            sin += term;
        }
        match (quarters as i64).rem_euclid(4) {
            0 => (sin, cos),
            1 => (cos, -sin),
            2 => (-sin, -cos),
            _ => (-cos, sin),
        }
    }
}

impl From<f64> for Double {
    fn from(x: f64) -> Self {
        Self { high: x, low: 0.0 }
    }
}

impl From<Double> for f64 {
    fn from(x: Double) -> Self {
        x.high + x.low
    }
}

/// Equality up to the rounding error of numbers of order one; the generic geometry uses it to test whether axes are
/// parallel.
impl PartialEq for Double {
    fn eq(&self, o: &Self) -> bool {
        (*self - *o).is_zero()
    }
}

impl Add for Double {
    type Output = Self;
    #[inline]
    fn add(self, o: Self) -> Self {
        let (s, e) = two_sum(self.high, o.high);
        let (t, f) = two_sum(self.low, o.low);
        let (s, e) = quick_two_sum(s, e + t);
        Self::normal(s, e + f)
    }
}

impl Sub for Double {
    type Output = Self;
    #[inline]
    fn sub(self, o: Self) -> Self {
        self + -o
    }
}

impl Mul for Double {
    type Output = Self;
    #[inline]
    fn mul(self, o: Self) -> Self {
        let (p, e) = two_product(self.high, o.high);
        Self::normal(p, e + (self.high * o.low + self.low * o.high))
    }
}

impl Neg for Double {
    type Output = Self;
    #[inline]
    fn neg(self) -> Self {
        Self { high: -self.high, low: -self.low }
    }
}

impl AddAssign for Double {
    #[inline]
    fn add_assign(&mut self, o: Self) {
        *self = *self + o;
    }
}

impl SubAssign for Double {
    #[inline]
    fn sub_assign(&mut self, o: Self) {
        *self = *self - o;
    }
}

impl MulAssign for Double {
    #[inline]
    fn mul_assign(&mut self, o: Self) {
        *self = *self * o;
    }
}

impl Zero for Double {
    fn zero() -> Self {
        Self::from(0.0)
    }

    /// Returns whether the value is within the rounding error of numbers of order one.
    fn is_zero(&self) -> bool {
        self.high.abs() <= ROUNDING
    }
}

impl One for Double {
    fn one() -> Self {
        Self::from(1.0)
    }
}

impl Field for Double {
    fn from_i64(n: i64) -> Self {
        let high = n as f64;
        // 64 bits: the remainder after the first 53 bits fits into the second number.
        Self::normal(high, (i128::from(n) - high as i128) as f64)
    }

    fn inverse(self) -> Option<Self> {
        if self.high == 0.0 {
            return None;
        }
        // Newton's method from 53 bits.
        let x = Self::from(self.high.recip());
        let x = x + x * (Self::one() - self * x);
        Some(x + x * (Self::one() - self * x))
    }
}

impl Number for Double {
    /// Tolerance far above the rounding error of 31 digits and far below the last digit of a file.
    const TOLERANCE: f64 = 1e-26;

    fn weight(self) -> f64 {
        self.high.abs()
    }

    fn from_decimal(n: i64, d: i64, e: i32) -> Self {
        let ten = (0..e.unsigned_abs()).fold(Self::one(), |x, _| x * Self::from(10.0));
        let (n, d) = (Self::from_i64(n), Self::from_i64(d));
        let (n, d) = if e < 0 { (n, d * ten) } else { (n * ten, d) };
        n * d.inverse().unwrap_or_else(Self::zero)
    }

    fn turn(degrees: i64) -> (Self, Self) {
        let (s, c) = (Self::PI * Self::from_decimal(degrees.rem_euclid(360), 180, 0)).sin_cos();
        (c, s)
    }

    fn random(source: &mut SplitMix) -> Self {
        Self::from(f64::random(source))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(a: Double, b: Double, tolerance: f64) -> bool {
        f64::from(a - b).abs() <= tolerance
    }

    #[test]
    fn arithmetic_keeps_thirty_digits() {
        let mut source = SplitMix::new(5);
        for _ in 0..200 {
            let [a, b, c] = [0; 3].map(|_| Double::random(&mut source) * Double::random(&mut source));
            assert!(close((a + b) * c, a * c + b * c, 1e-31));
            assert!(close(a - b + b, a, 1e-31));
            let inverse = a.inverse().unwrap_or_else(Double::zero);
            // The error is relative to a number that may be small.
            assert!(close(a * inverse, Double::one(), 1e-30));
        }
        assert_eq!(Double::zero().inverse(), None);
        // 2⁶² + 1 has more than 53 bits.
        let n = Double::from_i64((1 << 62) + 1);
        assert_eq!(f64::from(n - Double::from_i64(1 << 62)), 1.0);
    }

    #[test]
    fn angles() {
        for k in -50..50 {
            let x = Double::from_decimal(17 * k, 23, 0);
            let (s, c) = x.sin_cos();
            assert!(close(s * s + c * c, Double::one(), 1e-30));
            assert!((f64::from(s) - f64::from(x).sin()).abs() < 4e-15);
            assert!((f64::from(c) - f64::from(x).cos()).abs() < 4e-15);
            // Double-angle formulas, which the series does not use.
            let (s2, c2) = (x + x).sin_cos();
            assert!(close(s2, (s + s) * c, 1e-29) && close(c2, c * c - s * s, 1e-29));
        }
        let (c, s) = Double::turn(60);
        assert!(
            close(c + c, Double::one(), 1e-31) && close(s * s * Double::from(4.0), Double::from(3.0), 1e-30)
        );
        let five = Double::root(5);
        assert!(close(five * five, Double::from(5.0), 1e-29));
    }
}
