//! Four `f64` in two SSE2 registers, with rounding after every operation. Every x86-64 processor has SSE2.

use std::arch::x86_64::{
    __m128d, _mm_add_epi64, _mm_add_pd, _mm_and_pd, _mm_and_si128, _mm_andnot_pd, _mm_castpd_si128,
    _mm_castsi128_pd, _mm_cmpeq_pd, _mm_cmple_pd, _mm_div_pd, _mm_load_pd, _mm_movemask_pd, _mm_mul_pd,
    _mm_or_pd, _mm_set1_epi64x, _mm_set1_pd, _mm_setzero_pd, _mm_setzero_si128, _mm_slli_epi64, _mm_store_pd,
    _mm_storeu_pd, _mm_sub_epi64, _mm_sub_pd, _mm_unpackhi_pd, _mm_unpacklo_pd, _mm_xor_pd,
};
use std::ops::{Add, Mul, Neg, Sub};

use super::{Four, Lane, Wide};

/// Four `f64` with rounding after every operation.
#[derive(Clone, Copy)]
pub(crate) struct PlainFour([__m128d; 2]);

operators!(PlainFour, a, b:
    // SAFETY: every x86-64 processor has SSE2; only values in registers are used.
    add unsafe { [_mm_add_pd(a[0], b[0]), _mm_add_pd(a[1], b[1])] },
    // SAFETY: every x86-64 processor has SSE2; only values in registers are used.
    sub unsafe { [_mm_sub_pd(a[0], b[0]), _mm_sub_pd(a[1], b[1])] },
    // SAFETY: every x86-64 processor has SSE2; only values in registers are used.
    mul unsafe { [_mm_mul_pd(a[0], b[0]), _mm_mul_pd(a[1], b[1])] },
    // SAFETY: every x86-64 processor has SSE2; only values in registers are used.
    neg unsafe { [_mm_xor_pd(a[0], _mm_set1_pd(-0.0)), _mm_xor_pd(a[1], _mm_set1_pd(-0.0))] });

impl Lane for PlainFour {
    type Memory = Four;

    #[inline(always)]
    fn splat(x: f64) -> Self {
        // SAFETY: every x86-64 processor has SSE2; only values in registers are used.
        Self(unsafe { [_mm_set1_pd(x); 2] })
    }

    #[inline(always)]
    fn load(from: &Four) -> Self {
        // SAFETY: every x86-64 processor has SSE2; `Four` has four numbers and is aligned to 32 bytes.
        Self(unsafe { [_mm_load_pd(from.0.as_ptr()), _mm_load_pd(from.0[2..].as_ptr())] })
    }

    #[inline(always)]
    fn store(self, to: &mut Four) {
        // SAFETY: every x86-64 processor has SSE2; `Four` has room for four numbers and is aligned to 32 bytes.
        unsafe {
            _mm_store_pd(to.0.as_mut_ptr(), self.0[0]);
            _mm_store_pd(to.0[2..].as_mut_ptr(), self.0[1]);
        }
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
        Self([twice_inverse(self.0[0]), twice_inverse(self.0[1])])
    }

    #[inline(always)]
    fn quadrant(t: Self, sin: Self, cos: Self) -> (Self, Self) {
        let (s0, c0) = quadrant(t.0[0], sin.0[0], cos.0[0]);
        let (s1, c1) = quadrant(t.0[1], sin.0[1], cos.0[1]);
        (Self([s0, s1]), Self([c0, c1]))
    }

    #[inline(always)]
    fn within(self, bound: f64) -> bool {
        // SAFETY: every x86-64 processor has SSE2; only values in registers are used.
        unsafe {
            let (sign, bound) = (_mm_set1_pd(-0.0), _mm_set1_pd(bound));
            let low = _mm_cmple_pd(_mm_andnot_pd(sign, self.0[0]), bound);
            let high = _mm_cmple_pd(_mm_andnot_pd(sign, self.0[1]), bound);
            _mm_movemask_pd(_mm_and_pd(low, high)) == 0b11
        }
    }
}

#[inline(always)]
fn twice_inverse(x: __m128d) -> __m128d {
    // SAFETY: every x86-64 processor has SSE2; only values in registers are used.
    unsafe {
        let zero = _mm_cmpeq_pd(x, _mm_setzero_pd());
        _mm_div_pd(_mm_set1_pd(2.0), _mm_or_pd(x, _mm_and_pd(zero, _mm_set1_pd(1.0))))
    }
}

#[inline(always)]
fn quadrant(t: __m128d, sin: __m128d, cos: __m128d) -> (__m128d, __m128d) {
    // SAFETY: every x86-64 processor has SSE2; only values in registers are used.
    unsafe {
        let n = _mm_castpd_si128(t);
        let one = _mm_set1_epi64x(1);
        let odd = _mm_castsi128_pd(_mm_sub_epi64(_mm_setzero_si128(), _mm_and_si128(n, one)));
        let swap = _mm_and_pd(_mm_xor_pd(sin, cos), odd);
        let sign = _mm_set1_pd(-0.0);
        let second = _mm_and_pd(_mm_castsi128_pd(_mm_slli_epi64::<62>(n)), sign);
        let next = _mm_and_pd(_mm_castsi128_pd(_mm_slli_epi64::<62>(_mm_add_epi64(n, one))), sign);
        (_mm_xor_pd(_mm_xor_pd(sin, swap), second), _mm_xor_pd(_mm_xor_pd(cos, swap), next))
    }
}

impl Wide for PlainFour {
    #[inline(always)]
    fn write(self, to: &mut [f64]) {
        let to = &mut to[..4];
        // SAFETY: every x86-64 processor has SSE2; the slice has room for four numbers, and the store needs no alignment.
        unsafe {
            _mm_storeu_pd(to.as_mut_ptr(), self.0[0]);
            _mm_storeu_pd(to[2..].as_mut_ptr(), self.0[1]);
        }
    }

    #[inline(always)]
    fn write_two(self, to: &mut [f64]) {
        let to = &mut to[..2];
        // SAFETY: every x86-64 processor has SSE2; the slice has room for two numbers, and the store needs no alignment.
        unsafe { _mm_storeu_pd(to.as_mut_ptr(), self.0[0]) }
    }

    #[inline(always)]
    fn transpose([a, b, c, d]: [Self; 4]) -> [Self; 4] {
        // SAFETY: every x86-64 processor has SSE2; only values in registers are used.
        unsafe {
            [
                Self([_mm_unpacklo_pd(a.0[0], b.0[0]), _mm_unpacklo_pd(c.0[0], d.0[0])]),
                Self([_mm_unpackhi_pd(a.0[0], b.0[0]), _mm_unpackhi_pd(c.0[0], d.0[0])]),
                Self([_mm_unpacklo_pd(a.0[1], b.0[1]), _mm_unpacklo_pd(c.0[1], d.0[1])]),
                Self([_mm_unpackhi_pd(a.0[1], b.0[1]), _mm_unpackhi_pd(c.0[1], d.0[1])]),
            ]
        }
    }
}
