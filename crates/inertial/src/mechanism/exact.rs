//! Recognition of intended numbers: decimals, small fractions and roots, angles of a whole number of degrees.

use crate::linalg::Number;

/// Relative error allowed in recognition: the last bit or two of a few operations.
const ROUNDING: f64 = 4.5e-16;

/// Step between special angles (degrees).
const STEP: f64 = 15.0;

/// Largest deviation (radians) of an angle from a whole degree: the rounding error of products of a few rotations.
const WHOLE_DEGREE: f64 = 1e-14;

/// Largest deviation of an entry of a rational rotation (of order one, after a few operations) from its fraction.
const SHORT: f64 = 3e-15;

/// Largest difference between a decimal angle in a file and the angle recovered from its rotation matrix.
const WRITTEN: f64 = 4e-15;

/// Exact number `n/d · 10^e · √root`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Surd {
    n: i64,
    d: i64,
    e: i32,
    root: u8,
}

impl Surd {
    /// Zero.
    pub const ZERO: Self = Self { n: 0, d: 1, e: 0, root: 1 };

    /// Returns the number that `x` represents: a decimal of at most 13 digits or a fraction with a denominator up to a
    /// thousand, either of them optionally times `√2`, `√3`, `√5` or `√6`; otherwise the shortest decimal that reads as
    /// `x`.
    ///
    /// ```
    /// use inertial::mechanism::Surd;
    /// assert_eq!(Surd::recognize(0.153).ratio(), Some((153, 1000)));
    /// assert_eq!(Surd::recognize(1.0 / 3.0).ratio(), Some((1, 3)));
    /// assert_eq!(Surd::recognize(0.8660254037844386).to::<f64>(), 0.75f64.sqrt()); // √3/2
    /// ```
    pub fn recognize(x: f64) -> Self {
        Self::recognize_within(x, 0.0)
    }

    /// Recognizes a number with the absolute uncertainty `slack`, such as a difference of rounded numbers.
    pub fn recognize_within(x: f64, slack: f64) -> Self {
        if x.abs() <= slack || !x.is_finite() {
            return Self::ZERO;
        }
        let near = |y: f64, found: f64| (found - y).abs() <= slack.max(ROUNDING * y.abs());
        let plain = |y: f64| short_decimal(y, 13, near).or_else(|| fraction(y, near));
        let rooted = |root: u8| {
            let y = x / f64::root(root);
            let found = short_decimal(y, 6, near).or_else(|| fraction(y, near))?;
            Some(Self { root, ..found })
        };
        // With slack, a small number has fewer than thirteen known digits.
        let short = (slack > 0.0)
            .then(|| short_decimal(x, ((x.abs() / slack).log10() as i32 - 1).clamp(1, 13), near));
        let found =
            short.flatten().or_else(|| plain(x)).or_else(|| [2, 3, 5, 6].into_iter().find_map(rooted));
        found.unwrap_or_else(|| literal(x))
    }

    /// Returns the fraction with a denominator up to a thousand that equals `x` (of order one) up to rounding.
    pub(super) fn short_fraction(x: f64) -> Option<Self> {
        if x.abs() <= SHORT {
            return Some(Self::ZERO);
        }
        fraction(x, |y, found| (found - y).abs() <= SHORT)
    }

    /// Converts to another number type.
    pub fn to<T: Number>(self) -> T {
        let rational = T::from_decimal(self.n, self.d, self.e);
        if self.root == 1 { rational } else { rational * T::root(self.root) }
    }

    /// Returns the fraction `self / other` in lowest terms, if it is rational with numerator and denominator up to
    /// `most`.
    pub fn quotient(self, other: Self, most: i64) -> Option<(i64, i64)> {
        if self.root != other.root || other.n == 0 {
            return None;
        }
        let wide = i128::from;
        let (mut n, mut d) = (wide(self.n) * wide(other.d), wide(self.d) * wide(other.n));
        let reduce = |n: i128, d: i128| {
            let (mut a, mut b) = (n.abs(), d.abs());
            while b != 0 {
                (a, b) = (b, a % b);
            }
            (n / a.max(1), d / a.max(1))
        };
        (n, d) = reduce(n, d);
        let power = 10i128.checked_pow(self.e.abs_diff(other.e).min(30))?;
        if self.e > other.e {
            n = n.checked_mul(power)?;
        } else {
            d = d.checked_mul(power)?;
        }
        (n, d) = reduce(n, d);
        if d < 0 {
            (n, d) = (-n, -d);
        }
        let (n, d) = (i64::try_from(n).ok()?, i64::try_from(d).ok()?);
        (n.abs() <= most && d <= most).then_some((n, d))
    }

    /// Returns the number as a fraction in lowest terms, if it is rational and fits into 64 bits.
    pub fn ratio(self) -> Option<(i64, i64)> {
        let power = 10i64.checked_pow(self.e.unsigned_abs())?;
        let (n, d) = if self.e < 0 {
            (self.n, self.d.checked_mul(power)?)
        } else {
            (self.n.checked_mul(power)?, self.d)
        };
        let g = gcd(n, d);
        (self.root == 1).then_some((n / g, d / g))
    }
}

/// Returns the greatest common divisor, at least one.
pub(crate) fn gcd(a: i64, b: i64) -> i64 {
    let (mut a, mut b) = (a.abs(), b.abs());
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a.max(1)
}

fn short_decimal(x: f64, digits: i32, near: impl Fn(f64, f64) -> bool) -> Option<Surd> {
    let e = x.abs().log10().floor() as i32 - digits + 1;
    // Beyond these exponents a power of ten is not representable as a double or as a 64-bit integer.
    if !(-290..=290).contains(&e) {
        return None;
    }
    let scaled = if e < 0 { x * 10f64.powi(-e) } else { x / 10f64.powi(e) };
    let (mut n, mut e) = (scaled.round() as i64, e);
    while n != 0 && n % 10 == 0 {
        (n, e) = (n / 10, e + 1);
    }
    near(x, f64::from_decimal(n, 1, e)).then_some(Surd { n, d: 1, e, root: 1 })
}

/// Expands `x` as a continued fraction and returns the first convergent that equals `x` up to rounding.
fn fraction(x: f64, near: impl Fn(f64, f64) -> bool) -> Option<Surd> {
    let (mut p0, mut p1, mut q0, mut q1) = (0i64, 1i64, 1i64, 0i64);
    let mut rest = x.abs();
    if rest > 1e9 {
        return None;
    }
    loop {
        let whole = rest.floor();
        let a = whole as i64;
        (p0, p1) = (p1, a.checked_mul(p1)?.checked_add(p0)?);
        (q0, q1) = (q1, a.checked_mul(q1)?.checked_add(q0)?);
        if q1 > 1000 {
            return None;
        }
        if near(x.abs(), p1 as f64 / q1 as f64) {
            return Some(Surd { n: if x < 0.0 { -p1 } else { p1 }, d: q1, e: 0, root: 1 });
        }
        rest = (rest - whole).recip();
        if !rest.is_finite() || rest > 1e9 {
            return None;
        }
    }
}

/// Returns the shortest decimal that reads as `x`.
fn literal(x: f64) -> Surd {
    let text = format!("{x:e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (whole, decimals) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    // At most 17 digits, which fit; Rust prints no other format.
    let n = format!("{whole}{decimals}").parse().unwrap_or(0);
    let e = exponent.parse::<i32>().unwrap_or(0) - i32::try_from(decimals.len()).unwrap_or(0);
    Surd { n, d: 1, e, root: 1 }
}

/// Returns the multiple of 15° nearest to an angle (radians).
fn nearest_special(radians: f64) -> f64 {
    ((radians.to_degrees() / STEP).round() * STEP).to_radians()
}

/// Angle with exact cosine and sine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Angle {
    /// Whole number of degrees.
    Degrees(i64),
    /// Number of quarter turns, plus an angle given by the tangent of its half.
    HalfTangent(i64, Surd),
}

impl Angle {
    /// Zero angle.
    pub const ZERO: Self = Self::Degrees(0);

    /// Returns the angle that `radians` represents: the nearest multiple of 15° if it is within `tolerance`, the
    /// nearest whole degree if it agrees up to rounding, otherwise an angle with a rational half-angle tangent that
    /// does.
    pub fn recognize(radians: f64, tolerance: f64) -> Self {
        let nearest = (radians.to_degrees() / STEP).round() * STEP;
        if (radians - nearest.to_radians()).abs() <= tolerance {
            return Self::Degrees((nearest as i64).rem_euclid(360));
        }
        let whole = radians.to_degrees().round();
        if (radians - whole.to_radians()).abs() <= WHOLE_DEGREE {
            return Self::Degrees((whole as i64).rem_euclid(360));
        }
        let quarter = (radians / std::f64::consts::FRAC_PI_2).round();
        let rest = radians - quarter * std::f64::consts::FRAC_PI_2;
        Self::HalfTangent((quarter as i64).rem_euclid(4), Surd::recognize((0.5 * rest).tan()))
    }

    /// Recognizes an angle as [`Angle::recognize`] does; in addition, a multiple of 15° that was rounded (or truncated)
    /// to some decimals is recognized if it is within `rounded`. The angle may be written as its supplement: a rotation
    /// by 3.14159265359 about y is 2e-13 about y after half turns about z and x.
    pub fn recognize_rounded(radians: f64, tolerance: f64, rounded: f64) -> Self {
        use std::f64::consts::PI;
        let written = |radians: f64, digits: i32| {
            let (unit, nearest) = (10f64.powi(-digits), nearest_special(radians));
            let n = (nearest / unit).trunc();
            [n - 1.0, n, n + 1.0].iter().any(|n| (n * unit - radians).abs() <= WRITTEN)
                && (nearest - radians).abs() < unit
        };
        let forms = [radians, PI - radians, -PI - radians, radians - PI, radians + PI];
        let near = (nearest_special(radians) - radians).abs() <= rounded
            && forms.iter().any(|&form| (3..=12).any(|digits| written(form, digits)));
        Self::recognize(radians, if near { rounded } else { tolerance })
    }

    /// Returns the angle increased by `quarters` right angles.
    pub(super) fn turned(self, quarters: i64) -> Self {
        match self {
            Self::Degrees(k) => Self::Degrees((k + 90 * quarters).rem_euclid(360)),
            Self::HalfTangent(q, t) => Self::HalfTangent((q + quarters).rem_euclid(4), t),
        }
    }

    /// Returns whether the angle is a multiple of 15°.
    pub fn is_special(self) -> bool {
        matches!(self, Self::Degrees(k) if k % STEP as i64 == 0)
    }

    /// Returns the cosine and sine.
    pub fn cos_sin<T: Number>(self) -> (T, T) {
        match self {
            Self::Degrees(k) => T::turn(k),
            Self::HalfTangent(quarter, t) => {
                let t = t.to::<T>();
                let (one, square) = (T::one(), t * t);
                // 1 + t² ≠ 0 because t is real (its image in GF(p) is a root of −1 only with a probability of 1e-18).
                let scale = (one + square).inverse().unwrap_or(one);
                let (c, s) = ((one - square) * scale, (t + t) * scale);
                match quarter {
                    0 => (c, s),
                    1 => (-s, c),
                    2 => (-c, -s),
                    _ => (s, -c),
                }
            }
        }
    }
}
