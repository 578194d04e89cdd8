//! Number type that gives the same bits on every processor.
//!
//! For `f64`, faer chooses instructions, block sizes and fused products depending on the processor, so that the last
//! digits differ between processors. With this type the same algorithms round every product and every sum separately,
//! in an order that depends only on the sizes of the matrices. They are slower: faer has no SIMD matrix product for
//! other types.

use std::num::ParseFloatError;
use std::ops::{Add, AddAssign, Div, DivAssign, Mul, MulAssign, Neg, Rem, RemAssign, Sub, SubAssign};

use bytemuck::{Pod, Zeroable};
use faer::traits::{ComplexField, RealField, SimdCapabilities};
use num_traits::{Num, One, Zero};
use pulp::{MemMask, Scalar, Simd};

/// An `f64` whose operations round identically on every processor, also within faer.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
#[repr(transparent)]
pub struct Portable(pub f64);

// SAFETY: the type is an `f64` (`repr(transparent)`), for which all-zero bits are a valid value.
unsafe impl Zeroable for Portable {}

// SAFETY: the type is an `f64` (`repr(transparent)`), for which all bit patterns are valid values.
unsafe impl Pod for Portable {}

macro_rules! operators {
    ($($operator:ident $function:ident, $assigning:ident $assign:ident;)*) => { $(
        impl $operator for Portable {
            type Output = Self;
            #[inline(always)]
            fn $function(self, other: Self) -> Self {
                Self(self.0.$function(other.0))
            }
        }
        impl $operator<&Portable> for Portable {
            type Output = Self;
            #[inline(always)]
            fn $function(self, other: &Self) -> Self {
                Self(self.0.$function(other.0))
            }
        }
        impl $operator<Portable> for &Portable {
            type Output = Portable;
            #[inline(always)]
            fn $function(self, other: Portable) -> Portable {
                Portable(self.0.$function(other.0))
            }
        }
        impl $operator for &Portable {
            type Output = Portable;
            #[inline(always)]
            fn $function(self, other: Self) -> Portable {
                Portable(self.0.$function(other.0))
            }
        }
        impl $assigning for Portable {
            #[inline(always)]
            fn $assign(&mut self, other: Self) {
                self.0.$assign(other.0);
            }
        }
        impl $assigning<&Portable> for Portable {
            #[inline(always)]
            fn $assign(&mut self, other: &Self) {
                self.0.$assign(other.0);
            }
        }
    )* };
}

operators! {
    Add add, AddAssign add_assign;
    Sub sub, SubAssign sub_assign;
    Mul mul, MulAssign mul_assign;
    Div div, DivAssign div_assign;
    Rem rem, RemAssign rem_assign;
}

impl Neg for Portable {
    type Output = Self;
    #[inline(always)]
    fn neg(self) -> Self {
        Self(-self.0)
    }
}

impl Neg for &Portable {
    type Output = Portable;
    #[inline(always)]
    fn neg(self) -> Portable {
        Portable(-self.0)
    }
}

impl Zero for Portable {
    fn zero() -> Self {
        Self(0.0)
    }
    fn is_zero(&self) -> bool {
        self.0 == 0.0
    }
}

impl One for Portable {
    fn one() -> Self {
        Self(1.0)
    }
}

impl Num for Portable {
    type FromStrRadixErr = ParseFloatError;
    /// Parses decimal numbers; `radix` is ignored because no other numbers are read.
    fn from_str_radix(text: &str, _: u32) -> Result<Self, ParseFloatError> {
        text.parse().map(Self)
    }
}

impl RealField for Portable {
    fn epsilon_impl() -> Self {
        Self(f64::epsilon_impl())
    }
    fn nbits_impl() -> usize {
        f64::nbits_impl()
    }
    fn min_positive_impl() -> Self {
        Self(f64::min_positive_impl())
    }
    fn max_positive_impl() -> Self {
        Self(f64::max_positive_impl())
    }
    fn sqrt_min_positive_impl() -> Self {
        Self(f64::sqrt_min_positive_impl())
    }
    fn sqrt_max_positive_impl() -> Self {
        Self(f64::sqrt_max_positive_impl())
    }
}

type Lanes<S> = <S as Simd>::f64s;
type Mask<S> = <S as Simd>::m64s;
type Indices<S> = <S as Simd>::u64s;

/// Defines functions of a number by those of `f64`.
macro_rules! of_number {
    ($($name:ident($($argument:ident),*);)*) => { $(
        #[inline(always)]
        fn $name($($argument: &Self),*) -> Self {
            Self(f64::$name($(&$argument.0),*))
        }
    )* };
}

/// Defines functions of lanes by those of `f64`; none of them fuses or reduces.
macro_rules! of_lanes {
    ($($name:ident($($argument:ident: $type:ty),*) -> $output:ty;)*) => { $(
        #[inline(always)]
        fn $name<S: Simd>(simd: &S, $($argument: $type),*) -> $output {
            <f64 as ComplexField>::$name(simd, $($argument),*)
        }
    )* };
}

impl ComplexField for Portable {
    type Arch = Scalar;
    type Index = u64;
    type Real = Self;
    type SimdCtx<S: Simd> = S;
    type SimdIndex<S: Simd> = Indices<S>;
    type SimdMask<S: Simd> = Mask<S>;
    type SimdMemMask<S: Simd> = MemMask<Mask<S>>;
    type SimdVec<S: Simd> = Lanes<S>;
    // The layout of lanes in memory is that of `f64`.
    type Unit = f64;

    const IS_REAL: bool = true;
    const SIMD_CAPABILITIES: SimdCapabilities = SimdCapabilities::Copy;

    of_number! {
        zero_impl();
        one_impl();
        nan_impl();
        infinity_impl();
        from_real_impl(value);
        real_part_impl(value);
        imag_part_impl(value);
        copy_impl(value);
        conj_impl(value);
        recip_impl(value);
        sqrt_impl(value);
        abs_impl(value);
        abs1_impl(value);
        abs2_impl(value);
        mul_real_impl(a, b);
        mul_pow2_impl(a, b);
    }

    #[inline(always)]
    fn from_f64_impl(value: f64) -> Self {
        Self(value)
    }

    #[inline(always)]
    fn is_finite_impl(value: &Self) -> bool {
        value.0.is_finite()
    }

    #[inline(always)]
    fn simd_ctx<S: Simd>(simd: S) -> S {
        simd
    }

    #[inline(always)]
    fn ctx_from_simd<S: Simd>(simd: &S) -> S {
        *simd
    }

    #[inline(always)]
    fn simd_splat<S: Simd>(simd: &S, value: &Self) -> Lanes<S> {
        simd.splat_f64s(value.0)
    }

    #[inline(always)]
    fn simd_splat_real<S: Simd>(simd: &S, value: &Self) -> Lanes<S> {
        simd.splat_f64s(value.0)
    }

    #[inline(always)]
    fn simd_mul_add<S: Simd>(simd: &S, a: Lanes<S>, b: Lanes<S>, c: Lanes<S>) -> Lanes<S> {
        simd.add_f64s(simd.mul_f64s(a, b), c)
    }

    #[inline(always)]
    fn simd_conj_mul_add<S: Simd>(simd: &S, a: Lanes<S>, b: Lanes<S>, c: Lanes<S>) -> Lanes<S> {
        simd.add_f64s(simd.mul_f64s(a, b), c)
    }

    #[inline(always)]
    fn simd_abs2_add<S: Simd>(simd: &S, a: Lanes<S>, c: Lanes<S>) -> Lanes<S> {
        simd.add_f64s(simd.mul_f64s(a, a), c)
    }

    #[inline(always)]
    fn simd_reduce_sum<S: Simd>(simd: &S, a: Lanes<S>) -> Self {
        Self(simd.reduce_sum_f64s(a))
    }

    #[inline(always)]
    fn simd_reduce_max<S: Simd>(simd: &S, a: Lanes<S>) -> Self {
        Self(simd.reduce_max_f64s(a))
    }

    of_lanes! {
        simd_add(a: Lanes<S>, b: Lanes<S>) -> Lanes<S>;
        simd_sub(a: Lanes<S>, b: Lanes<S>) -> Lanes<S>;
        simd_neg(a: Lanes<S>) -> Lanes<S>;
        simd_conj(a: Lanes<S>) -> Lanes<S>;
        simd_abs1(a: Lanes<S>) -> Lanes<S>;
        simd_abs_max(a: Lanes<S>) -> Lanes<S>;
        simd_abs2(a: Lanes<S>) -> Lanes<S>;
        simd_mul(a: Lanes<S>, b: Lanes<S>) -> Lanes<S>;
        simd_conj_mul(a: Lanes<S>, b: Lanes<S>) -> Lanes<S>;
        simd_mul_real(a: Lanes<S>, b: Lanes<S>) -> Lanes<S>;
        simd_mul_pow2(a: Lanes<S>, b: Lanes<S>) -> Lanes<S>;
        simd_equal(a: Lanes<S>, b: Lanes<S>) -> Mask<S>;
        simd_less_than(a: Lanes<S>, b: Lanes<S>) -> Mask<S>;
        simd_less_than_or_equal(a: Lanes<S>, b: Lanes<S>) -> Mask<S>;
        simd_greater_than(a: Lanes<S>, b: Lanes<S>) -> Mask<S>;
        simd_greater_than_or_equal(a: Lanes<S>, b: Lanes<S>) -> Mask<S>;
        simd_select(mask: Mask<S>, a: Lanes<S>, b: Lanes<S>) -> Lanes<S>;
        simd_index_select(mask: Mask<S>, a: Indices<S>, b: Indices<S>) -> Indices<S>;
        simd_index_splat(value: u64) -> Indices<S>;
        simd_index_add(a: Indices<S>, b: Indices<S>) -> Indices<S>;
        simd_index_less_than(a: Indices<S>, b: Indices<S>) -> Mask<S>;
        simd_and_mask(a: Mask<S>, b: Mask<S>) -> Mask<S>;
        simd_or_mask(a: Mask<S>, b: Mask<S>) -> Mask<S>;
        simd_not_mask(mask: Mask<S>) -> Mask<S>;
        simd_first_true_mask(mask: Mask<S>) -> usize;
        simd_mask_between(start: u64, end: u64) -> Mask<S>;
        simd_mem_mask_between(start: u64, end: u64) -> MemMask<Mask<S>>;
    }

    #[inline(always)]
    unsafe fn simd_mask_load_raw<S: Simd>(
        simd: &S,
        mask: MemMask<Mask<S>>,
        from: *const Lanes<S>,
    ) -> Lanes<S> {
        // SAFETY: the caller guarantees for `from` what `f64` requires, and the layout is the same.
        unsafe { <f64 as ComplexField>::simd_mask_load_raw(simd, mask, from) }
    }

    #[inline(always)]
    unsafe fn simd_mask_store_raw<S: Simd>(
        simd: &S,
        mask: MemMask<Mask<S>>,
        to: *mut Lanes<S>,
        values: Lanes<S>,
    ) {
        // SAFETY: the caller guarantees for `to` what `f64` requires, and the layout is the same.
        unsafe { <f64 as ComplexField>::simd_mask_store_raw(simd, mask, to, values) };
    }
}
