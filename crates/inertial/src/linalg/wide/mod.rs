//! Floating-point numbers of fixed, large precision: `N` limbs of 64 bits, about `19 N` decimal digits.
//!
//! The generic recursions need a `Copy` number of fixed size. Arbitrary-precision crates allocate on every operation and are some
//! ten times as slow at these sizes, so this small type is written here. Operations are not inlined: they take longer than a call, and
//! unrolled matrix products of them would multiply the size of the program.

#![allow(clippy::cast_possible_wrap, reason = "numbers of limbs and biased exponents are small")]

mod functions;

use std::cmp::Ordering;
use std::ops::{Add, AddAssign, Mul, MulAssign, Neg, Sub, SubAssign};

use num_traits::{One, Zero};

use super::{Number, SplitMix};
use crate::spatial::Field;

/// Number `± 0.m × 2^exponent` with a mantissa `m` of `N` limbs, rounded towards zero.
///
/// Equality and [`Zero::is_zero`] treat differences below [`Wide::NEGLIGIBLE`] as rounding errors of numbers of order one. The generic
/// geometry uses them to test whether axes are parallel.
///
/// ```
/// use inertial::linalg::{Number, Wide};
/// use inertial::spatial::Field;
/// let third = Wide::<4>::from_decimal(1, 3, 0);
/// let error = third + third + third - Wide::from_i64(1);
/// assert!(f64::from(error).abs() < 1e-75);
/// ```
#[derive(Clone, Copy)]
pub struct Wide<const N: usize> {
    /// Mantissa, least significant limb first; its highest bit is set unless the number is zero.
    limbs: [u64; N],
    exponent: i64,
    /// Sign: −1, 0 or 1.
    sign: i8,
}

impl<const N: usize> Wide<N> {
    const ZERO: Self = Self { limbs: [0; N], exponent: 0, sign: 0 };

    /// Number of bits of the mantissa.
    const BITS: i64 = 64 * N as i64;

    /// Largest rounding error after a cancellation between numbers of order one: the last 48 bits do not count.
    pub const NEGLIGIBLE: f64 = power_of_two(48 - Self::BITS);

    /// Creates a normalized number from a mantissa that may have leading zeros.
    #[inline(never)]
    fn normal(mut limbs: [u64; N], mut exponent: i64, sign: i8) -> Self {
        let Some(top) = limbs.iter().rposition(|&l| l != 0) else { return Self::ZERO };
        let (whole, bits) = (N - 1 - top, limbs[top].leading_zeros());
        if whole > 0 {
            limbs.copy_within(0..=top, whole);
            limbs[..whole].fill(0);
        }
        if bits > 0 {
            for k in (1..N).rev() {
                limbs[k] = limbs[k] << bits | limbs[k - 1] >> (64 - bits);
            }
            limbs[0] <<= bits;
        }
        exponent -= 64 * whole as i64 + i64::from(bits);
        Self { limbs, exponent, sign }
    }

    /// Returns the mantissa shifted right by `count < 64 N` bits.
    #[inline]
    fn shifted(&self, count: u64) -> [u64; N] {
        let (whole, bits) = ((count / 64) as usize, count % 64);
        let limb = |k: usize| u128::from(self.limbs.get(k).copied().unwrap_or(0));
        std::array::from_fn(|k| ((limb(k + whole + 1) << 64 | limb(k + whole)) >> bits) as u64)
    }

    /// Computes `a ± b`; `sign` is the sign of `b`.
    #[inline(always)]
    fn sum(a: &Self, b: &Self, sign: i8) -> Self {
        let other = b.sign * sign;
        if other == 0 {
            return *a;
        }
        if a.sign == 0 {
            return Self { sign: other, ..*b };
        }
        let distance = a.exponent - b.exponent;
        let (large, mut sign, small) = if distance >= 0 { (a, a.sign, b) } else { (b, other, a) };
        if distance.abs() >= Self::BITS {
            return Self { sign, ..*large };
        }
        let shifted = small.shifted(distance.unsigned_abs());
        let (mut limbs, exponent) = (large.limbs, large.exponent);
        if a.sign == other {
            let mut carry = false;
            for (x, y) in limbs.iter_mut().zip(shifted) {
                let (sum, first) = x.overflowing_add(y);
                let (sum, second) = sum.overflowing_add(u64::from(carry));
                (*x, carry) = (sum, first | second);
            }
            if !carry {
                return Self { limbs, exponent, sign };
            }
            for k in 0..N {
                let above = if k + 1 < N { limbs[k + 1] << 63 } else { 1 << 63 };
                limbs[k] = limbs[k] >> 1 | above;
            }
            return Self { limbs, exponent: exponent + 1, sign };
        }
        let mut borrow = false;
        for (x, y) in limbs.iter_mut().zip(shifted) {
            let (rest, first) = x.overflowing_sub(y);
            let (rest, second) = rest.overflowing_sub(u64::from(borrow));
            (*x, borrow) = (rest, first | second);
        }
        // With equal exponents, the subtrahend may be the larger number.
        if borrow {
            sign = -sign;
            let mut carry = true;
            for x in &mut limbs {
                (*x, carry) = (!*x).overflowing_add(u64::from(carry));
            }
        }
        if limbs[N - 1] >> 63 == 1 {
            return Self { limbs, exponent, sign };
        }
        Self::normal(limbs, exponent, sign)
    }

    /// Computes the upper half of the product, with one guard limb.
    #[inline(always)]
    fn product(a: &Self, b: &Self) -> Self {
        if a.sign == 0 || b.sign == 0 {
            return Self::ZERO;
        }
        let (mut limbs, mut guard) = ([0u64; N], 0u64);
        for i in 0..N {
            let x = u128::from(a.limbs[i]);
            let t = x * u128::from(b.limbs[N - 1 - i]) + u128::from(guard);
            guard = t as u64;
            let mut carry = t >> 64;
            for k in 0..i {
                let t = x * u128::from(b.limbs[N - i + k]) + u128::from(limbs[k]) + carry;
                limbs[k] = t as u64;
                carry = t >> 64;
            }
            limbs[i] = carry as u64;
        }
        let mut exponent = a.exponent + b.exponent;
        // Both mantissas are at least one half: at most one bit is missing.
        if limbs[N - 1] >> 63 == 0 {
            for k in (1..N).rev() {
                limbs[k] = limbs[k] << 1 | limbs[k - 1] >> 63;
            }
            limbs[0] = limbs[0] << 1 | guard >> 63;
            exponent -= 1;
        }
        Self { limbs, exponent, sign: a.sign * b.sign }
    }

    /// Returns the absolute value.
    pub fn abs(self) -> Self {
        Self { sign: self.sign.abs(), ..self }
    }

    /// Returns the number times `2^power`.
    pub fn scaled(self, power: i64) -> Self {
        if self.sign == 0 { self } else { Self { exponent: self.exponent + power, ..self } }
    }
}

/// Returns `2^exponent`; zero below the range of normal numbers.
const fn power_of_two(exponent: i64) -> f64 {
    if exponent < -1022 { 0.0 } else { f64::from_bits(((1023 + exponent) as u64) << 52) }
}

impl<const N: usize> From<f64> for Wide<N> {
    /// Converts `x` without rounding; a number that is not finite becomes zero.
    fn from(x: f64) -> Self {
        if x == 0.0 || !x.is_finite() {
            return Self::ZERO;
        }
        let bits = x.to_bits();
        let (biased, fraction) = ((bits >> 52 & 0x7ff) as i64, bits & ((1 << 52) - 1));
        let mantissa = if biased == 0 { fraction } else { fraction | 1 << 52 };
        let mut limbs = [0; N];
        limbs[N - 1] = mantissa;
        Self::normal(limbs, biased.max(1) - 1075 + 64, if x < 0.0 { -1 } else { 1 })
    }
}

impl<const N: usize> From<Wide<N>> for f64 {
    /// Rounds to the nearest `f64`.
    fn from(x: Wide<N>) -> Self {
        if x.sign == 0 {
            return 0.0;
        }
        let top = x.limbs[N - 1];
        let sticky = u64::from(x.limbs[..N - 1].iter().any(|&l| l != 0));
        // Sixty-four bits with a sticky bit are rounded only once, to nearest.
        let magnitude = (top | sticky) as f64;
        let exponent = x.exponent - 64;
        // The scaling has two steps, so that neither power of two overflows before the product does.
        let half = exponent.clamp(-2000, 2000) / 2;
        let value = magnitude
            * power_of_two(half.max(-1000))
            * power_of_two((exponent.clamp(-2000, 2000) - half).max(-1000));
        if x.sign < 0 { -value } else { value }
    }
}

impl<const N: usize> std::fmt::Debug for Wide<N> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:e}", f64::from(*self))
    }
}

impl<const N: usize> PartialEq for Wide<N> {
    fn eq(&self, o: &Self) -> bool {
        (*self - *o).is_zero()
    }
}

impl<const N: usize> PartialOrd for Wide<N> {
    fn partial_cmp(&self, o: &Self) -> Option<Ordering> {
        Some((*self - *o).sign.cmp(&0))
    }
}

impl<const N: usize> Add for Wide<N> {
    type Output = Self;

    #[inline(never)]
    fn add(self, o: Self) -> Self {
        Self::sum(&self, &o, 1)
    }
}

impl<const N: usize> Sub for Wide<N> {
    type Output = Self;

    #[inline(never)]
    fn sub(self, o: Self) -> Self {
        Self::sum(&self, &o, -1)
    }
}

impl<const N: usize> Neg for Wide<N> {
    type Output = Self;

    fn neg(self) -> Self {
        Self { sign: -self.sign, ..self }
    }
}

impl<const N: usize> Mul for Wide<N> {
    type Output = Self;

    #[inline(never)]
    fn mul(self, o: Self) -> Self {
        Self::product(&self, &o)
    }
}

impl<const N: usize> AddAssign for Wide<N> {
    fn add_assign(&mut self, o: Self) {
        *self = *self + o;
    }
}

impl<const N: usize> SubAssign for Wide<N> {
    fn sub_assign(&mut self, o: Self) {
        *self = *self - o;
    }
}

impl<const N: usize> MulAssign for Wide<N> {
    fn mul_assign(&mut self, o: Self) {
        *self = *self * o;
    }
}

impl<const N: usize> Zero for Wide<N> {
    fn zero() -> Self {
        Self::ZERO
    }

    /// Returns whether the number is a rounding error of numbers of order one.
    fn is_zero(&self) -> bool {
        self.sign == 0 || self.exponent <= 48 - Self::BITS
    }
}

impl<const N: usize> One for Wide<N> {
    fn one() -> Self {
        let mut limbs = [0; N];
        limbs[N - 1] = 1 << 63;
        Self { limbs, exponent: 1, sign: 1 }
    }
}

impl<const N: usize> Field for Wide<N> {
    fn from_i64(n: i64) -> Self {
        let mut limbs = [0; N];
        limbs[N - 1] = n.unsigned_abs();
        Self::normal(limbs, 64, n.signum() as i8)
    }

    #[inline(never)]
    fn inverse(self) -> Option<Self> {
        if self.sign == 0 {
            return None;
        }
        // Newton's method on the mantissa, from 53 bits.
        let m = Self { exponent: 0, ..self };
        let mut x = Self::from(f64::from(m).recip());
        let mut correct = 50;
        while correct < Self::BITS {
            x += x * (Self::one() - m * x);
            correct *= 2;
        }
        Some(x.scaled(-self.exponent))
    }
}

impl<const N: usize> Number for Wide<N> {
    /// Threshold above the rounding errors of long eliminations and far below the last digit of a file.
    const TOLERANCE: f64 = power_of_two(128 - Self::BITS);

    fn weight(self) -> f64 {
        f64::from(self).abs()
    }

    #[inline(never)]
    fn from_decimal(n: i64, d: i64, e: i32) -> Self {
        let ten = (0..e.unsigned_abs()).fold(Self::one(), |x, _| x * Self::from(10.0));
        let (n, d) = (Self::from_i64(n), Self::from_i64(d));
        let (n, d) = if e < 0 { (n, d * ten) } else { (n * ten, d) };
        n * d.inverse().unwrap_or_else(Self::zero)
    }

    fn turn(degrees: i64) -> (Self, Self) {
        let k = degrees.rem_euclid(360);
        let exact = |c: i64, s: i64| (Self::from_i64(c), Self::from_i64(s));
        match k {
            0 => exact(1, 0),
            90 => exact(0, 1),
            180 => exact(-1, 0),
            270 => exact(0, -1),
            _ => {
                let (s, c) = (Self::pi() * Self::from_decimal(k, 180, 0)).sin_cos();
                (c, s)
            }
        }
    }

    fn random(source: &mut SplitMix) -> Self {
        Self::from(f64::random(source))
    }

    #[inline(never)]
    fn subtract_product(&mut self, a: Self, b: Self) {
        if a.sign != 0 && b.sign != 0 {
            *self = Self::sum(self, &Self::product(&a, &b), -1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close<const N: usize>(a: Wide<N>, b: Wide<N>, lost_bits: i64) -> bool {
        let error = (a - b).abs();
        error.sign == 0 || error.exponent <= lost_bits - 64 * N as i64
    }

    fn arithmetic<const N: usize>() {
        let mut source = SplitMix::new(7);
        let full = |source: &mut SplitMix| {
            // Every limb is random.
            (0..N as i64).fold(Wide::<N>::zero(), |x, k| x + Wide::random(source).scaled(-53 * k))
        };
        for _ in 0..200 {
            let [a, b, c] = [0; 3].map(|_| full(&mut source));
            assert!(close((a + b) * c, a * c + b * c, 6));
            assert!(close(a - b + b, a, 4));
            assert!(close(a * b, b * a, 2));
            let inverse = a.inverse().unwrap_or_else(Wide::zero);
            assert!(close(a * inverse, Wide::one(), 6));
            assert!(close(a.abs().sqrt() * a.abs().sqrt(), a.abs(), 6));
            let (s, k) = (a * Wide::from_i64(20)).sin_cos();
            assert!(close(s * s + k * k, Wide::one(), 24));
            assert!((f64::from(s) - (20.0 * f64::from(a)).sin()).abs() < 1e-14);
            // The addition theorem, which the series does not use.
            let ((s1, c1), (s2, c2), (s12, c12)) = (a.sin_cos(), b.sin_cos(), (a + b).sin_cos());
            assert!(close(s12, s1 * c2 + c1 * s2, 24) && close(c12, c1 * c2 - s1 * s2, 24));
        }
    }

    #[test]
    fn arithmetic_keeps_its_digits() {
        arithmetic::<3>();
        arithmetic::<4>();
        arithmetic::<8>();
        arithmetic::<12>();
    }

    #[test]
    fn conversions_are_exact() {
        let mut source = SplitMix::new(3);
        for k in 0..2000 {
            let x = f64::random(&mut source) * 2f64.powi(k % 600 - 300);
            assert_eq!(f64::from(Wide::<4>::from(x)), x);
        }
        for x in [f64::MIN_POSITIVE, 5e-324, f64::MAX, -1.0, 0.0, 0.1] {
            assert_eq!(f64::from(Wide::<4>::from(x)), x, "{x:e}");
        }
        // Halfway cases round to even: 2⁵³ + 1 has two neighbours.
        assert_eq!(f64::from(Wide::<4>::from_i64((1 << 53) + 1)), 2f64.powi(53));
        assert_eq!(f64::from(Wide::<4>::from_i64((1 << 53) + 3)), 2f64.powi(53) + 4.0);
        assert_eq!(f64::from(Wide::<4>::from_decimal(1, 3, 0)), 1.0 / 3.0);
        assert_eq!(f64::from(Wide::<4>::from_decimal(123, 1, -7)), 123e-7);
        assert_eq!(f64::from(Wide::<8>::pi()), std::f64::consts::PI);
        // 100 digits of π (published tables).
        let digits =
            [3_141_592_653_589_793_i64, 2_384_626_433_832_795, 288_419_716_939_937, 5_105_820_974_944_592];
        let sum = digits.iter().enumerate().fold(Wide::<8>::zero(), |x, (k, &d)| {
            x + Wide::from_decimal(d, 1, -15 - 16 * i32::try_from(k).unwrap_or(0))
        });
        assert!(f64::from(Wide::<8>::pi() - sum).abs() < 1e-62);
    }

    #[test]
    fn angles_of_whole_degrees() {
        let (c, s) = Wide::<4>::turn(60);
        assert!(close(c + c, Wide::one(), 24) && close(s * s * Wide::from_i64(4), Wide::from_i64(3), 24));
        let five = Wide::<4>::root(5);
        assert!(close(five * five, Wide::from_i64(5), 30));
    }
}
