//! Four `f64` in plain Rust for any machine, with rounding after every operation.

use std::ops::{Add, Mul, Neg, Sub};

use super::{Four, Lane, Wide, quadrant};

/// Four `f64` with rounding after every operation.
#[derive(Clone, Copy)]
pub(crate) struct PlainFour([f64; 4]);

operators!(PlainFour, a, b:
    add [a[0] + b[0], a[1] + b[1], a[2] + b[2], a[3] + b[3]],
    sub [a[0] - b[0], a[1] - b[1], a[2] - b[2], a[3] - b[3]],
    mul [a[0] * b[0], a[1] * b[1], a[2] * b[2], a[3] * b[3]],
    neg [-a[0], -a[1], -a[2], -a[3]]);

impl Lane for PlainFour {
    type Memory = Four;

    #[inline(always)]
    fn splat(x: f64) -> Self {
        Self([x; 4])
    }

    #[inline(always)]
    fn load(from: &Four) -> Self {
        Self(from.0)
    }

    #[inline(always)]
    fn store(self, to: &mut Four) {
        to.0 = self.0;
    }

    #[inline(always)]
    fn mul_add(self, b: Self, c: Self) -> Self {
        self * b + c
    }

    #[inline(always)]
    fn neg_mul_add(self, b: Self, c: Self) -> Self {
        c - self * b
    }

    #[inline(always)]
    fn twice_inverse(self) -> Self {
        Self(self.0.map(|x| 2.0 / if x == 0.0 { 1.0 } else { x }))
    }

    #[inline(always)]
    fn quadrant(t: Self, sin: Self, cos: Self) -> (Self, Self) {
        let (mut s, mut c) = (sin.0, cos.0);
        for k in 0..4 {
            (s[k], c[k]) = quadrant(t.0[k], s[k], c[k]);
        }
        (Self(s), Self(c))
    }

    #[inline(always)]
    fn within(self, bound: f64) -> bool {
        self.0.iter().all(|x| x.abs() <= bound)
    }
}

impl Wide for PlainFour {
    #[inline(always)]
    fn write(self, to: &mut [f64]) {
        to[..4].copy_from_slice(&self.0);
    }

    #[inline(always)]
    fn write_two(self, to: &mut [f64]) {
        to[..2].copy_from_slice(&self.0[..2]);
    }

    #[inline(always)]
    fn transpose([a, b, c, d]: [Self; 4]) -> [Self; 4] {
        [
            Self([a.0[0], b.0[0], c.0[0], d.0[0]]),
            Self([a.0[1], b.0[1], c.0[1], d.0[1]]),
            Self([a.0[2], b.0[2], c.0[2], d.0[2]]),
            Self([a.0[3], b.0[3], c.0[3], d.0[3]]),
        ]
    }
}
