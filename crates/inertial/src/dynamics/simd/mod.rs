//! SIMD abstraction of the kernels: one `f64`, or four samples side by side.
//!
//! This module is used instead of a library because `wide` chooses instructions at compile time and `pulp` needs a type
//! for each kernel. Here one generic kernel runs with rounded or fused products, chosen at run time.
//!
//! The kernels are written once, generic over [`Lane`]; the instructions are determined by the instantiation.
//! Everything here must be inlined into the function that enables the instructions, so the kernels use no closures
//! around arithmetic (closures do not inherit `target_feature`).

use std::ops::{Add, Mul, Neg, Sub};

#[cfg(target_arch = "x86_64")]
pub(crate) use avx2::FusedFour;
#[cfg(not(target_arch = "x86_64"))]
pub(crate) use portable::PlainFour;
#[cfg(target_arch = "x86_64")]
pub(crate) use sse2::PlainFour;

/// Four numbers side by side in memory: the same quantity of four samples.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[repr(C, align(32))]
pub struct Four(pub [f64; 4]);

/// Number type of the kernels: one number, or several in lockstep.
pub(crate) trait Lane:
    Copy + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> + Neg<Output = Self>
{
    /// Representation in memory.
    type Memory: Copy;

    /// Returns the number in every lane.
    fn splat(x: f64) -> Self;

    /// Loads the lanes from memory.
    fn load(from: &Self::Memory) -> Self;

    /// Stores the lanes to memory.
    fn store(self, to: &mut Self::Memory);

    /// Computes `self · b + c`, fused if the instructions are available.
    fn mul_add(self, b: Self, c: Self) -> Self;

    /// Computes `c − self · b`, fused if the instructions are available.
    fn neg_mul_add(self, b: Self, c: Self) -> Self;

    /// Computes `2/self`, or 2 if it is zero: a zero quaternion counts as no rotation.
    fn twice_inverse(self) -> Self;

    /// Computes sine and cosine of `n π/2 + r` from those of `r`; `n` is in the low bits of `t = n + MAGIC`.
    fn quadrant(t: Self, sin: Self, cos: Self) -> (Self, Self);

    /// Returns whether every lane is within `±bound` (and not NaN).
    fn within(self, bound: f64) -> bool;
}

/// Returns whether the processor has the instructions of the fused kernels, and the process may use them.
pub(crate) fn has_fused() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        !inertial_dense::is_reproducible()
            && std::arch::is_x86_feature_detected!("avx2")
            && std::arch::is_x86_feature_detected!("fma")
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        false
    }
}

/// Runs a kernel that is generic over its number type, with or without fused instructions.
macro_rules! dispatch {
    ($use_fused:expr, $kernel:ident::<$plain:ident, $fused:ident>($($arg:ident: $type:ty),* $(,)?)) => {{
        #[cfg(target_arch = "x86_64")]
        {
            #[target_feature(enable = "avx2,fma")]
            fn fused($($arg: $type),*) {
                $kernel::<$crate::dynamics::simd::$fused>($($arg),*);
            }
            if $use_fused {
                // SAFETY: only where `has_fused` found both features.
                unsafe { fused($($arg),*) };
            } else {
                $kernel::<$plain>($($arg),*);
            }
        }
        #[cfg(not(target_arch = "x86_64"))]
        {
            let _ = $use_fused;
            $kernel::<$plain>($($arg),*);
        }
    }};
}
pub(crate) use dispatch;

/// Four numbers with operations across lanes.
pub(crate) trait Wide: Lane<Memory = Four> {
    /// Writes to the first four positions of `to`.
    fn write(self, to: &mut [f64]);

    /// Writes the first two lanes to the first two positions of `to`.
    fn write_two(self, to: &mut [f64]);

    /// Exchanges rows and lanes.
    fn transpose(rows: [Self; 4]) -> [Self; 4];
}

/// Single number, with the four-lane arithmetic of the same rounding.
pub(crate) trait Single: Lane<Memory = f64> {
    /// Type with four lanes.
    type Wide: Wide;
}

/// One `f64` with rounding after every operation: the same bits on every machine.
#[derive(Clone, Copy)]
pub(crate) struct Plain(f64);

/// One `f64` with fused multiply-add, for functions that enable the instruction only.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy)]
pub(crate) struct Fused(f64);

macro_rules! operators {
    ($lane:ident, $a:ident, $b:ident: add $add:expr, sub $sub:expr, mul $mul:expr, neg $neg:expr) => {
        impl Add for $lane {
            type Output = Self;
            #[inline(always)]
            fn add(self, other: Self) -> Self {
                let ($a, $b) = (self.0, other.0);
                Self($add)
            }
        }
        impl Sub for $lane {
            type Output = Self;
            #[inline(always)]
            fn sub(self, other: Self) -> Self {
                let ($a, $b) = (self.0, other.0);
                Self($sub)
            }
        }
        impl Mul for $lane {
            type Output = Self;
            #[inline(always)]
            fn mul(self, other: Self) -> Self {
                let ($a, $b) = (self.0, other.0);
                Self($mul)
            }
        }
        impl Neg for $lane {
            type Output = Self;
            #[inline(always)]
            fn neg(self) -> Self {
                let $a = self.0;
                Self($neg)
            }
        }
    };
}

#[cfg(target_arch = "x86_64")]
mod avx2;
pub(crate) mod columns;
#[cfg(any(test, not(target_arch = "x86_64")))]
pub(crate) mod portable;
pub(crate) mod row_products;
pub(crate) mod sincos;
#[cfg(target_arch = "x86_64")]
mod sse2;
pub(crate) mod vector;

/// Moves sine and cosine to quadrant `n` (low bits of `t`): swap on odd `n`, negate by the second bit of `n` and `n+1`.
#[inline(always)]
fn quadrant(t: f64, sin: f64, cos: f64) -> (f64, f64) {
    let n = t.to_bits();
    let (s, c) = (sin.to_bits(), cos.to_bits());
    let swap = (s ^ c) & 0u64.wrapping_sub(n & 1);
    let sign = |n: u64| (n << 62) & (1 << 63);
    (f64::from_bits(s ^ swap ^ sign(n)), f64::from_bits(c ^ swap ^ sign(n.wrapping_add(1))))
}

macro_rules! single {
    ($lane:ident, $wide:ty, $a:ident $b:ident $c:ident, $mul_add:expr, $neg_mul_add:expr) => {
        operators!($lane, a, b: add a + b, sub a - b, mul a * b, neg -a);

        impl Lane for $lane {
            type Memory = f64;

            #[inline(always)]
            fn splat(x: f64) -> Self {
                Self(x)
            }

            #[inline(always)]
            fn load(from: &f64) -> Self {
                Self(*from)
            }

            #[inline(always)]
            fn store(self, to: &mut f64) {
                *to = self.0;
            }

            #[inline(always)]
            fn mul_add(self, b: Self, c: Self) -> Self {
                let ($a, $b, $c) = (self.0, b.0, c.0);
                Self($mul_add)
            }

            #[inline(always)]
            fn neg_mul_add(self, b: Self, c: Self) -> Self {
                let ($a, $b, $c) = (self.0, b.0, c.0);
                Self($neg_mul_add)
            }

            #[inline(always)]
            fn twice_inverse(self) -> Self {
                Self(2.0 / if self.0 == 0.0 { 1.0 } else { self.0 })
            }

            #[inline(always)]
            fn quadrant(t: Self, sin: Self, cos: Self) -> (Self, Self) {
                let (sin, cos) = quadrant(t.0, sin.0, cos.0);
                (Self(sin), Self(cos))
            }

            #[inline(always)]
            fn within(self, bound: f64) -> bool {
                self.0.abs() <= bound
            }
        }

        impl Single for $lane {
            type Wide = $wide;
        }
    };
}

single!(Plain, PlainFour, a b c, a * b + c, c - a * b);
#[cfg(target_arch = "x86_64")]
single!(Fused, FusedFour, a b c, a.mul_add(b, c), (-a).mul_add(b, c));
