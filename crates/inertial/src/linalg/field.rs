//! Number types for exact analysis: prime fields, and `f64` paired with a prime field.
//!
//! The rank over GF(p) of geometry reduced modulo `p` never exceeds the true rank. It is smaller only if `p` divides
//! one particular number: for two primes near 2⁶¹ the probability is about 1e-15.

use std::ops::{Add, AddAssign, Mul, MulAssign, Neg, Sub, SubAssign};

use num_traits::{One, Zero};

use crate::spatial::Field;

/// Number type for eliminations: a [`Field`] with angles of whole degrees, small roots and weights for the choice of
/// pivots.
pub trait Number: Field + Send + Sync {
    /// Threshold below which entries of vectors of order one are zero; zero for exact numbers.
    ///
    /// For `f64`, geometry is snapped at 1e-4 and enters spans squared, and rounding errors are amplified by its
    /// inverse; 1e-10 lies between the two.
    const TOLERANCE: f64;

    /// Returns the magnitude used for the choice of pivots; zero only for zero.
    fn weight(self) -> f64;

    /// Returns the image of `n / d · 10^e`. `d` must not be zero.
    fn from_decimal(n: i64, d: i64, e: i32) -> Self;

    /// Returns the cosine and sine of a whole number of degrees.
    fn turn(degrees: i64) -> (Self, Self);

    /// Returns a random number: uniform in GF(p), in [-1, 1] for `f64`.
    fn random(source: &mut SplitMix) -> Self;

    /// Subtracts a product from the number. Types with many digits skip products with zero.
    #[inline]
    fn subtract_product(&mut self, a: Self, b: Self) {
        *self -= a * b;
    }

    /// Computes the cosine and sine of `n` times the angle whose cosine and sine are given.
    fn multiple_angle(unit: (Self, Self), n: i64) -> (Self, Self) {
        let times = |a: (Self, Self), b: (Self, Self)| (a.0 * b.0 - a.1 * b.1, a.0 * b.1 + a.1 * b.0);
        let (mut power, mut out, mut left) = (unit, (Self::one(), Self::zero()), n.unsigned_abs());
        while left > 0 {
            if left & 1 == 1 {
                out = times(out, power);
            }
            power = times(power, power);
            left >>= 1;
        }
        if n < 0 { (out.0, -out.1) } else { out }
    }

    /// Returns `√2`, `√3`, `√5` or `√6` (one for any other argument), the roots that occur in regular angles.
    fn root(n: u8) -> Self {
        let twice_cosine = |degrees| Self::turn(degrees).0 * Self::from_i64(2);
        match n {
            2 => twice_cosine(45),
            3 => twice_cosine(30),
            5 => twice_cosine(36) * Self::from_i64(2) - Self::one(),
            6 => twice_cosine(45) * twice_cosine(30),
            _ => Self::one(),
        }
    }
}

impl Number for f64 {
    const TOLERANCE: f64 = 1e-10;

    #[inline]
    fn weight(self) -> f64 {
        self.abs()
    }

    fn from_decimal(n: i64, d: i64, e: i32) -> Self {
        // Powers of ten are exact up to 10^22: one rounding per operation.
        let scaled = if e < 0 { n as f64 / 10f64.powi(-e) } else { n as f64 * 10f64.powi(e) };
        if d == 1 { scaled } else { scaled / d as f64 }
    }

    fn turn(degrees: i64) -> (Self, Self) {
        let (quarter, rest) = (degrees.div_euclid(90).rem_euclid(4), degrees.rem_euclid(90));
        let (s, c) = match rest {
            0 => (0.0, 1.0),
            30 => (0.5, 0.75f64.sqrt()),
            45 => (std::f64::consts::FRAC_1_SQRT_2, std::f64::consts::FRAC_1_SQRT_2),
            60 => (0.75f64.sqrt(), 0.5),
            _ => (rest as f64).to_radians().sin_cos(),
        };
        match quarter {
            0 => (c, s),
            1 => (-s, c),
            2 => (-c, -s),
            _ => (s, -c),
        }
    }

    fn multiple_angle((c, s): (Self, Self), n: i64) -> (Self, Self) {
        let (s, c) = (s.atan2(c) * n as f64).sin_cos();
        (c, s)
    }

    fn random(source: &mut SplitMix) -> Self {
        // 53 random bits over 2^52, minus one.
        (source.next_u64() >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }
}

/// Field of integers modulo the prime `P = 2⁶¹ − c` with small `c` and `P ≡ 1 (mod 360)`. It contains the 360th roots
/// of unity, hence the cosine and sine of every whole degree and with them `√2`, `√3`, `√5`.
///
/// (2⁶¹ − 1 itself has no `√3`, since it is 7 modulo 12.)
///
/// ```
/// use inertial::linalg::{First, Number};
/// use inertial::spatial::Field;
/// let (c, s) = First::turn(60);
/// assert_eq!(c + c, First::from_i64(1));
/// assert_eq!(s + s, First::root(3));
/// assert_eq!(First::root(3) * First::root(3), First::from_i64(3));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Gf<const P: u64>(u64);

/// First of the two fields used for exact results, `p = 2⁶¹ − 1351`.
pub type First = Gf<2_305_843_009_213_692_601>;
/// Second of the two fields, `p = 2⁶¹ − 3151`.
pub type Second = Gf<2_305_843_009_213_690_801>;

const BITS: u32 = 61;
const MASK: u64 = (1 << BITS) - 1;

/// Computes `a b mod (2⁶¹ − c)` by folding the high bits down twice.
#[inline]
const fn multiply(a: u64, b: u64, c: u64) -> u64 {
    let t = a as u128 * b as u128;
    let t = (t >> BITS) * c as u128 + (t as u64 & MASK) as u128;
    let r = (t >> BITS) as u64 * c + (t as u64 & MASK);
    let p = (1 << BITS) - c;
    if r >= p { r - p } else { r }
}

const fn power(mut base: u64, mut exponent: u64, c: u64) -> u64 {
    let mut out = 1;
    while exponent > 0 {
        if exponent & 1 == 1 {
            out = multiply(out, base, c);
        }
        base = multiply(base, base, c);
        exponent >>= 1;
    }
    out
}

/// Finds a number of order exactly 360 modulo `2⁶¹ − c`.
const fn degree(c: u64) -> u64 {
    let p = (1 << BITS) - c;
    let mut g = 2;
    loop {
        let z = power(g, (p - 1) / 360, c);
        if power(z, 180, c) != 1 && power(z, 120, c) != 1 && power(z, 72, c) != 1 {
            return z;
        }
        g += 1;
    }
}

impl<const P: u64> Gf<P> {
    const C: u64 = {
        assert!(
            P < 1 << BITS && P > (1 << BITS) - (1 << 16) && P % 360 == 1,
            "not a prime of the wanted form"
        );
        (1 << BITS) - P
    };
    /// Prime of the field.
    pub const PRIME: u64 = P;
    /// Image of `e^{iπ/180}`.
    const DEGREE: u64 = degree(Self::C);
    const HALF: u64 = P.div_ceil(2);

    /// Returns the residue of `n`.
    #[inline]
    pub fn new(n: u64) -> Self {
        Self(n % P)
    }

    /// Returns the representative in `0..P`.
    #[inline]
    pub fn value(self) -> u64 {
        self.0
    }

    /// Computes `self^n`.
    pub fn pow(self, n: u64) -> Self {
        Self(power(self.0, n, Self::C))
    }

    /// Computes a square root; `None` if there is none (Tonelli and Shanks).
    ///
    /// ```
    /// use inertial::linalg::{First, Number};
    /// use inertial::spatial::Field;
    /// let root = First::from_i64(10).sqrt().map(|x| x * x);
    /// assert!(root.is_none() || root == Some(First::from_i64(10)));
    /// assert_eq!(First::from_i64(3).sqrt().map(|x| x * x), Some(First::from_i64(3)));
    /// ```
    pub fn sqrt(self) -> Option<Self> {
        if self.is_zero() {
            return Some(self);
        }
        let minus_one = -Self::one();
        if self.pow((P - 1) / 2) != Self::one() {
            return None;
        }
        // P − 1 = odd · 2^twos, and a non-square.
        let twos = (P - 1).trailing_zeros();
        let odd = (P - 1) >> twos;
        let other = (2..P).map(Self::new).find(|x| x.pow((P - 1) / 2) == minus_one)?;
        let (mut power, mut root, mut rest, mut order) =
            (other.pow(odd), self.pow(odd.div_ceil(2)), self.pow(odd), twos);
        while rest != Self::one() {
            let mut square = rest;
            let mut least = 0;
            while square != Self::one() {
                square *= square;
                least += 1;
            }
            for _ in 0..order - least - 1 {
                power *= power;
            }
            root *= power;
            power *= power;
            rest *= power;
            order = least;
        }
        Some(root)
    }

    /// Returns the fraction `n/d` with `|n|, d ≤ √(P/2)` whose image this is, if there is one (Wang's reconstruction).
    ///
    /// ```
    /// use inertial::linalg::{First, Number};
    /// assert_eq!(First::from_decimal(-22, 7, 0).fraction(), Some((-22, 7)));
    /// ```
    pub fn fraction(self) -> Option<(i64, i64)> {
        let bound = 1_073_741_823; // √(P/2) for every P here
        let (mut r0, mut r1) = (P.cast_signed(), self.0.cast_signed());
        let (mut t0, mut t1) = (0i64, 1i64);
        while r1 > bound {
            let q = r0 / r1;
            (r0, r1) = (r1, r0 - q * r1);
            (t0, t1) = (t1, t0.checked_sub(q.checked_mul(t1)?)?);
        }
        if t1 == 0 || t1.abs() > bound {
            return None;
        }
        Some(if t1 < 0 { (-r1, -t1) } else { (r1, t1) })
    }
}

impl<const P: u64> std::fmt::Debug for Gf<P> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.fraction() {
            Some((n, 1)) => write!(f, "{n}"),
            Some((n, d)) if d < 1_000_000 => write!(f, "{n}/{d}"),
            _ => write!(f, "{} mod {P}", self.0),
        }
    }
}

impl<const P: u64> Add for Gf<P> {
    type Output = Self;
    #[inline]
    fn add(self, o: Self) -> Self {
        let s = self.0 + o.0;
        Self(if s >= P { s - P } else { s })
    }
}

impl<const P: u64> Sub for Gf<P> {
    type Output = Self;
    #[inline]
    fn sub(self, o: Self) -> Self {
        Self(if self.0 >= o.0 { self.0 - o.0 } else { self.0 + P - o.0 })
    }
}

impl<const P: u64> Mul for Gf<P> {
    type Output = Self;
    #[inline]
    fn mul(self, o: Self) -> Self {
        Self(multiply(self.0, o.0, Self::C))
    }
}

impl<const P: u64> Neg for Gf<P> {
    type Output = Self;
    #[inline]
    fn neg(self) -> Self {
        Self(if self.0 == 0 { 0 } else { P - self.0 })
    }
}

impl<const P: u64> Zero for Gf<P> {
    #[inline]
    fn zero() -> Self {
        Self(0)
    }
    #[inline]
    fn is_zero(&self) -> bool {
        self.0 == 0
    }
}

impl<const P: u64> One for Gf<P> {
    #[inline]
    fn one() -> Self {
        Self(1)
    }
}

impl<const P: u64> Field for Gf<P> {
    fn from_i64(n: i64) -> Self {
        Self(n.rem_euclid(P.cast_signed()).cast_unsigned())
    }

    fn inverse(self) -> Option<Self> {
        // Extended Euclid: |t| stays at most P/2.
        let (mut r0, mut r1) = (P.cast_signed(), self.0.cast_signed());
        let (mut t0, mut t1) = (0i64, 1i64);
        while r1 != 0 {
            let q = r0 / r1;
            (r0, r1) = (r1, r0 - q * r1);
            (t0, t1) = (t1, t0.wrapping_sub(q.wrapping_mul(t1)));
        }
        (r0 == 1).then(|| Self::from_i64(t0))
    }
}

impl<const P: u64> Number for Gf<P> {
    const TOLERANCE: f64 = 0.0;

    #[inline]
    fn weight(self) -> f64 {
        if self.0 == 0 { 0.0 } else { 1.0 }
    }

    fn from_decimal(n: i64, d: i64, e: i32) -> Self {
        let ten = Self(10).pow(u64::from(e.unsigned_abs()));
        let (n, d) = (Self::from_i64(n), Self::from_i64(d));
        let (n, d) = if e < 0 { (n, d * ten) } else { (n * ten, d) };
        // Denominators of a model are never multiples of a prime near 2⁶¹.
        n * d.inverse().unwrap_or_else(Self::zero)
    }

    fn turn(degrees: i64) -> (Self, Self) {
        let k = degrees.rem_euclid(360).cast_unsigned();
        let (z, w) = (Self(Self::DEGREE).pow(k), Self(Self::DEGREE).pow(360 - k));
        // i = e^{iπ/2}, 1/i = −i.
        let minus_i = Self(Self::DEGREE).pow(270);
        ((z + w) * Self(Self::HALF), (z - w) * Self(Self::HALF) * minus_i)
    }

    fn random(source: &mut SplitMix) -> Self {
        Self::new(source.next_u64())
    }
}

/// Real number in two representations: exact in GF(p), which decides whether it is zero, and rounded (`f64` or more
/// digits), for its value and for pivots.
#[derive(Debug, Clone, Copy)]
pub struct Shadow<const P: u64, V = f64> {
    /// Image in GF(p).
    pub exact: Gf<P>,
    /// Rounded value.
    pub value: V,
}

impl<const P: u64, V> PartialEq for Shadow<P, V> {
    fn eq(&self, o: &Self) -> bool {
        self.exact == o.exact
    }
}

impl<const P: u64, V: Number> Shadow<P, V> {
    #[inline]
    fn sum(exact: Gf<P>, value: V) -> Self {
        // If the terms cancel exactly, the rounding error is removed too.
        Self { exact, value: if exact.is_zero() { V::zero() } else { value } }
    }
}

impl<const P: u64, V: Number> Add for Shadow<P, V> {
    type Output = Self;
    #[inline]
    fn add(self, o: Self) -> Self {
        Self::sum(self.exact + o.exact, self.value + o.value)
    }
}

impl<const P: u64, V: Number> Sub for Shadow<P, V> {
    type Output = Self;
    #[inline]
    fn sub(self, o: Self) -> Self {
        Self::sum(self.exact - o.exact, self.value - o.value)
    }
}

impl<const P: u64, V: Number> Mul for Shadow<P, V> {
    type Output = Self;
    #[inline]
    fn mul(self, o: Self) -> Self {
        Self { exact: self.exact * o.exact, value: self.value * o.value }
    }
}

impl<const P: u64, V: Number> Neg for Shadow<P, V> {
    type Output = Self;
    #[inline]
    fn neg(self) -> Self {
        Self { exact: -self.exact, value: -self.value }
    }
}

impl<const P: u64, V: Number> Zero for Shadow<P, V> {
    #[inline]
    fn zero() -> Self {
        Self { exact: Gf::zero(), value: V::zero() }
    }
    #[inline]
    fn is_zero(&self) -> bool {
        self.exact.is_zero()
    }
}

impl<const P: u64, V: Number> One for Shadow<P, V> {
    #[inline]
    fn one() -> Self {
        Self { exact: Gf::one(), value: V::one() }
    }
}

impl<const P: u64, V: Number> Field for Shadow<P, V> {
    fn from_i64(n: i64) -> Self {
        Self { exact: Gf::from_i64(n), value: V::from_i64(n) }
    }

    fn inverse(self) -> Option<Self> {
        // The inverse of a rounded value that cancelled completely is set to zero.
        Some(Self { exact: self.exact.inverse()?, value: self.value.inverse().unwrap_or_else(V::zero) })
    }
}

impl<const P: u64, V: Number> Number for Shadow<P, V> {
    const TOLERANCE: f64 = 0.0;

    #[inline]
    fn weight(self) -> f64 {
        if self.is_zero() { 0.0 } else { self.value.weight().max(f64::MIN_POSITIVE) }
    }

    fn from_decimal(n: i64, d: i64, e: i32) -> Self {
        Self { exact: Gf::from_decimal(n, d, e), value: V::from_decimal(n, d, e) }
    }

    fn turn(degrees: i64) -> (Self, Self) {
        let (e, v) = (Gf::turn(degrees), V::turn(degrees));
        (Self::sum(e.0, v.0), Self::sum(e.1, v.1))
    }

    fn multiple_angle(unit: (Self, Self), n: i64) -> (Self, Self) {
        let e = Gf::multiple_angle((unit.0.exact, unit.1.exact), n);
        let v = V::multiple_angle((unit.0.value, unit.1.value), n);
        (Self::sum(e.0, v.0), Self::sum(e.1, v.1))
    }

    fn random(source: &mut SplitMix) -> Self {
        let n = (source.next_u64() >> 40).cast_signed() - (1 << 23);
        Self::from_decimal(n, 1 << 23, 0)
    }
}

macro_rules! assign {
    ($name:ty, $($generics:tt)*) => {
        impl<$($generics)*> AddAssign for $name {
            #[inline]
            fn add_assign(&mut self, o: Self) {
                *self = *self + o;
            }
        }
        impl<$($generics)*> SubAssign for $name {
            #[inline]
            fn sub_assign(&mut self, o: Self) {
                *self = *self - o;
            }
        }
        impl<$($generics)*> MulAssign for $name {
            #[inline]
            fn mul_assign(&mut self, o: Self) {
                *self = *self * o;
            }
        }
    };
}
assign!(Gf<P>, const P: u64);
assign!(Shadow<P, V>, const P: u64, V: Number);

/// Small random number generator (Steele, Lea and Flood's SplitMix64): the same seed gives the same numbers on every
/// machine.
#[derive(Debug, Clone)]
pub struct SplitMix(u64);

impl SplitMix {
    /// Creates a generator with this seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns the next 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}
