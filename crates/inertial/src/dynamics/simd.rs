//! The numbers that the kernels run on: one `f64`, or four samples side by side.
//!
//! The kernels are written once, generic over [`Lane`]; which instructions they become is decided where they are
//! instantiated. Everything here must be inlined into the function that enables the instructions, so the kernels use no
//! closures around arithmetic (closures do not inherit `target_feature`).

use std::ops::{Add, Mul, Neg, Sub};

/// Four numbers side by side in memory: the same quantity of four samples.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[repr(C, align(32))]
pub struct Four(pub [f64; 4]);

/// A number of the kernels, or several in lockstep.
pub(super) trait Lane:
    Copy + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> + Neg<Output = Self>
{
    /// How it lies in memory.
    type Memory: Copy;

    /// The same number in every lane.
    fn splat(x: f64) -> Self;

    /// From memory.
    fn load(from: &Self::Memory) -> Self;

    /// To memory.
    fn store(self, to: &mut Self::Memory);

    /// `self · b + c`, fused where the instructions are.
    fn mul_add(self, b: Self, c: Self) -> Self;

    /// `c − self · b`, fused where the instructions are.
    fn neg_mul_add(self, b: Self, c: Self) -> Self;

    /// `2/self`, or 2 where it is zero: a zero quaternion counts as no rotation.
    fn twice_inverse(self) -> Self;

    /// Sine and cosine of `n π/2 + r` from those of `r`; `n` stands in the low bits of `t = n + MAGIC`.
    fn quadrant(t: Self, sin: Self, cos: Self) -> (Self, Self);

    /// Is every lane within `±bound` (and a number)?
    fn within(self, bound: f64) -> bool;
}

/// Whether the processor has the instructions of the fused kernels.
pub(super) fn has_fused() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma")
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        false
    }
}

/// Runs a kernel, generic over its number, with or without the fused instructions.
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
pub(super) use dispatch;

/// Four numbers that also move between lanes.
pub(super) trait Wide: Lane<Memory = Four> {
    /// The first four numbers of `from`.
    fn read(from: &[f64]) -> Self;

    /// To the first four places of `to`.
    fn write(self, to: &mut [f64]);

    /// The first two lanes, to the first two places of `to`.
    fn write_two(self, to: &mut [f64]);

    /// Exchanges rows and lanes.
    fn transpose(rows: [Self; 4]) -> [Self; 4];
}

/// A single number, with the four-wide arithmetic of the same rounding.
pub(super) trait Single: Lane<Memory = f64> {
    /// Four at once.
    type Wide: Wide;
}

/// One `f64`, every operation rounded: the same bits on every machine.
#[derive(Clone, Copy)]
pub(super) struct Plain(f64);

/// One `f64` with fused multiply-add; only for functions that enable the instruction.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy)]
pub(super) struct Fused(f64);

/// Four `f64`, every operation rounded.
#[derive(Clone, Copy)]
pub(super) struct PlainFour([f64; 4]);

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
    fn read(from: &[f64]) -> Self {
        Self([from[0], from[1], from[2], from[3]])
    }

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

#[cfg(target_arch = "x86_64")]
pub(super) use x86::FusedFour;

#[cfg(target_arch = "x86_64")]
mod x86 {
    //! Four `f64` in an AVX register. Only for functions that enable `avx2` and `fma`.

    use std::arch::x86_64::{
        __m256d, _CMP_EQ_OQ, _CMP_LE_OQ, _mm_storeu_pd, _mm256_add_epi64, _mm256_add_pd, _mm256_and_pd,
        _mm256_andnot_pd, _mm256_blendv_pd, _mm256_castpd_si256, _mm256_castpd256_pd128, _mm256_castsi256_pd,
        _mm256_cmp_pd, _mm256_div_pd, _mm256_fmadd_pd, _mm256_fnmadd_pd, _mm256_load_pd, _mm256_loadu_pd,
        _mm256_movemask_pd, _mm256_mul_pd, _mm256_permute2f128_pd, _mm256_set1_epi64x, _mm256_set1_pd,
        _mm256_setzero_pd, _mm256_slli_epi64, _mm256_store_pd, _mm256_storeu_pd, _mm256_sub_pd,
        _mm256_unpackhi_pd, _mm256_unpacklo_pd, _mm256_xor_pd,
    };
    use std::ops::{Add, Mul, Neg, Sub};

    use super::{Four, Lane, Wide};

    /// Four `f64` with fused multiply-add.
    #[derive(Clone, Copy)]
    pub(in super::super) struct FusedFour(__m256d);

    // SAFETY (of every block below): the type is only used in functions that enable avx2 and fma, which are only
    // called where the processor has them; loads and stores go through references to `Four`, aligned to 32 bytes.

    // SAFETY: see above.
    operators!(FusedFour, a, b:
        add unsafe { _mm256_add_pd(a, b) },
        sub unsafe { _mm256_sub_pd(a, b) },
        mul unsafe { _mm256_mul_pd(a, b) },
        neg unsafe { _mm256_xor_pd(a, _mm256_set1_pd(-0.0)) });

    impl Lane for FusedFour {
        type Memory = Four;

        #[inline(always)]
        fn splat(x: f64) -> Self {
            // SAFETY: see above.
            Self(unsafe { _mm256_set1_pd(x) })
        }

        #[inline(always)]
        fn load(from: &Four) -> Self {
            // SAFETY: see above.
            Self(unsafe { _mm256_load_pd(from.0.as_ptr()) })
        }

        #[inline(always)]
        fn store(self, to: &mut Four) {
            // SAFETY: see above.
            unsafe { _mm256_store_pd(to.0.as_mut_ptr(), self.0) }
        }

        #[inline(always)]
        fn mul_add(self, b: Self, c: Self) -> Self {
            // SAFETY: see above.
            Self(unsafe { _mm256_fmadd_pd(self.0, b.0, c.0) })
        }

        #[inline(always)]
        fn neg_mul_add(self, b: Self, c: Self) -> Self {
            // SAFETY: see above.
            Self(unsafe { _mm256_fnmadd_pd(self.0, b.0, c.0) })
        }

        #[inline(always)]
        fn twice_inverse(self) -> Self {
            // SAFETY: see above.
            Self(unsafe {
                let one = _mm256_set1_pd(1.0);
                let zero = _mm256_cmp_pd::<_CMP_EQ_OQ>(self.0, _mm256_setzero_pd());
                _mm256_div_pd(_mm256_set1_pd(2.0), _mm256_blendv_pd(self.0, one, zero))
            })
        }

        #[inline(always)]
        fn quadrant(t: Self, sin: Self, cos: Self) -> (Self, Self) {
            // SAFETY: see above.
            unsafe {
                let n = _mm256_castpd_si256(t.0);
                let sign = _mm256_set1_pd(-0.0);
                // blendv selects by the sign bit: move the lowest bit there.
                let odd = _mm256_castsi256_pd(_mm256_slli_epi64::<63>(n));
                let s = _mm256_blendv_pd(sin.0, cos.0, odd);
                let c = _mm256_blendv_pd(cos.0, sin.0, odd);
                let second = _mm256_castsi256_pd(_mm256_slli_epi64::<62>(n));
                let next = _mm256_add_epi64(n, _mm256_set1_epi64x(1));
                let next = _mm256_castsi256_pd(_mm256_slli_epi64::<62>(next));
                (
                    Self(_mm256_xor_pd(s, _mm256_and_pd(second, sign))),
                    Self(_mm256_xor_pd(c, _mm256_and_pd(next, sign))),
                )
            }
        }

        #[inline(always)]
        fn within(self, bound: f64) -> bool {
            // SAFETY: see above.
            unsafe {
                let size = _mm256_andnot_pd(_mm256_set1_pd(-0.0), self.0);
                _mm256_movemask_pd(_mm256_cmp_pd::<_CMP_LE_OQ>(size, _mm256_set1_pd(bound))) == 0b1111
            }
        }
    }

    impl Wide for FusedFour {
        #[inline(always)]
        fn read(from: &[f64]) -> Self {
            let from = &from[..4];
            // SAFETY: see above; four numbers are there.
            Self(unsafe { _mm256_loadu_pd(from.as_ptr()) })
        }

        #[inline(always)]
        fn write(self, to: &mut [f64]) {
            let to = &mut to[..4];
            // SAFETY: see above; there is room for four.
            unsafe { _mm256_storeu_pd(to.as_mut_ptr(), self.0) }
        }

        #[inline(always)]
        fn write_two(self, to: &mut [f64]) {
            let to = &mut to[..2];
            // SAFETY: see above; there is room for two.
            unsafe { _mm_storeu_pd(to.as_mut_ptr(), _mm256_castpd256_pd128(self.0)) }
        }

        #[inline(always)]
        fn transpose([a, b, c, d]: [Self; 4]) -> [Self; 4] {
            // SAFETY: see above.
            unsafe {
                let (ab, ba) = (_mm256_unpacklo_pd(a.0, b.0), _mm256_unpackhi_pd(a.0, b.0));
                let (cd, dc) = (_mm256_unpacklo_pd(c.0, d.0), _mm256_unpackhi_pd(c.0, d.0));
                [
                    Self(_mm256_permute2f128_pd::<0x20>(ab, cd)),
                    Self(_mm256_permute2f128_pd::<0x20>(ba, dc)),
                    Self(_mm256_permute2f128_pd::<0x31>(ab, cd)),
                    Self(_mm256_permute2f128_pd::<0x31>(ba, dc)),
                ]
            }
        }
    }
}
