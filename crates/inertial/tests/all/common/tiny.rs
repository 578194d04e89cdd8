//! Integers modulo small primes, where random choices fail often enough to measure the failure rate.

use inertial::linalg::{Number, SplitMix};
use inertial::spatial::Field;
use num_traits::{One, Zero};
use std::ops::{Add, AddAssign, Mul, MulAssign, Neg, Sub, SubAssign};

/// Integers modulo a small prime.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tiny<const P: u64>(u64);

macro_rules! operator {
    ($op:ident, $f:ident, $assign:ident, $g:ident, |$a:ident, $b:ident| $e:expr) => {
        impl<const P: u64> $op for Tiny<P> {
            type Output = Self;
            fn $f(self, o: Self) -> Self {
                let ($a, $b) = (self.0, o.0);
                Self($e % P)
            }
        }
        impl<const P: u64> $assign for Tiny<P> {
            fn $g(&mut self, o: Self) {
                *self = $op::$f(*self, o);
            }
        }
    };
}
operator!(Add, add, AddAssign, add_assign, |a, b| a + b);
operator!(Sub, sub, SubAssign, sub_assign, |a, b| a + P - b);
operator!(Mul, mul, MulAssign, mul_assign, |a, b| a * b);

impl<const P: u64> Neg for Tiny<P> {
    type Output = Self;
    fn neg(self) -> Self {
        Self((P - self.0) % P)
    }
}

impl<const P: u64> Zero for Tiny<P> {
    fn zero() -> Self {
        Self(0)
    }
    fn is_zero(&self) -> bool {
        self.0 == 0
    }
}

impl<const P: u64> One for Tiny<P> {
    fn one() -> Self {
        Self(1)
    }
}

impl<const P: u64> Field for Tiny<P> {
    fn from_i64(n: i64) -> Self {
        Self(n.rem_euclid(P.cast_signed()).cast_unsigned())
    }
    fn inverse(self) -> Option<Self> {
        let (mut out, mut base, mut left) = (1, self.0, P - 2);
        while left > 0 {
            if left & 1 == 1 {
                out = out * base % P;
            }
            base = base * base % P;
            left >>= 1;
        }
        (self.0 != 0).then_some(Self(out))
    }
}

impl<const P: u64> Number for Tiny<P> {
    const TOLERANCE: f64 = 0.0;
    fn weight(self) -> f64 {
        if self.0 == 0 { 0.0 } else { 1.0 }
    }
    fn from_decimal(n: i64, d: i64, e: i32) -> Self {
        let mut ten = Self::one();
        (0..e.unsigned_abs()).for_each(|_| ten *= Self(10 % P));
        let (n, d) = (Self::from_i64(n), Self::from_i64(d));
        let (n, d) = if e < 0 { (n, d * ten) } else { (n * ten, d) };
        n * d.inverse().expect("a denominator that the prime does not divide")
    }
    fn turn(degrees: i64) -> (Self, Self) {
        let (zero, one) = (Self::zero(), Self::one());
        match degrees.rem_euclid(360) {
            0 => (one, zero),
            90 => (zero, one),
            180 => (-one, zero),
            270 => (zero, -one),
            other => panic!("{other} degrees"),
        }
    }
    fn random(source: &mut SplitMix) -> Self {
        Self(source.next_u64() % P)
    }
}

/// Checks that `short` failures in `runs` random computations agree with a bound of the probability.
pub fn assert_rate(short: u32, runs: u32, bound: f64, what: &str) {
    let bound = bound.min(1.0);
    // Three standard deviations of the count.
    let allowed = f64::from(runs) * bound + 3.0 * (f64::from(runs) * bound * (1.0 - bound)).sqrt();
    assert!(f64::from(short) <= allowed, "{what}: {short} of {runs} runs, bound {bound}");
}
