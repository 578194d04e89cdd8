//! Four `f64` in an AVX register, for functions that enable `avx2` and `fma` only.

use std::arch::x86_64::{
    __m256d, _CMP_EQ_OQ, _CMP_LE_OQ, _mm_storeu_pd, _mm256_add_epi64, _mm256_add_pd, _mm256_and_pd,
    _mm256_andnot_pd, _mm256_blendv_pd, _mm256_castpd_si256, _mm256_castpd256_pd128, _mm256_castsi256_pd,
    _mm256_cmp_pd, _mm256_div_pd, _mm256_fmadd_pd, _mm256_fnmadd_pd, _mm256_load_pd, _mm256_movemask_pd,
    _mm256_mul_pd, _mm256_permute2f128_pd, _mm256_set1_epi64x, _mm256_set1_pd, _mm256_setzero_pd,
    _mm256_slli_epi64, _mm256_store_pd, _mm256_storeu_pd, _mm256_sub_pd, _mm256_unpackhi_pd,
    _mm256_unpacklo_pd, _mm256_xor_pd,
};
use std::ops::{Add, Mul, Neg, Sub};

use super::{Four, Lane, Wide};

/// Four `f64` with fused multiply-add.
#[derive(Clone, Copy)]
pub(crate) struct FusedFour(__m256d);

operators!(FusedFour, a, b:
    // SAFETY: kernels with this type run only where the processor has AVX2 and FMA; only values in registers are used.
    add unsafe { _mm256_add_pd(a, b) },
    // SAFETY: kernels with this type run only where the processor has AVX2 and FMA; only values in registers are used.
    sub unsafe { _mm256_sub_pd(a, b) },
    // SAFETY: kernels with this type run only where the processor has AVX2 and FMA; only values in registers are used.
    mul unsafe { _mm256_mul_pd(a, b) },
    // SAFETY: kernels with this type run only where the processor has AVX2 and FMA; only values in registers are used.
    neg unsafe { _mm256_xor_pd(a, _mm256_set1_pd(-0.0)) });

impl Lane for FusedFour {
    type Memory = Four;

    #[inline(always)]
    fn splat(x: f64) -> Self {
        // SAFETY: kernels with this type run only where the processor has AVX2 and FMA; only values in registers are used.
        Self(unsafe { _mm256_set1_pd(x) })
    }

    #[inline(always)]
    fn load(from: &Four) -> Self {
        // SAFETY: kernels with this type run only where the processor has AVX2 and FMA; `Four` has four numbers and is aligned to 32 bytes.
        Self(unsafe { _mm256_load_pd(from.0.as_ptr()) })
    }

    #[inline(always)]
    fn store(self, to: &mut Four) {
        // SAFETY: kernels with this type run only where the processor has AVX2 and FMA; `Four` has room for four numbers and is aligned to 32 bytes.
        unsafe { _mm256_store_pd(to.0.as_mut_ptr(), self.0) }
    }

    #[inline(always)]
    fn mul_add(self, b: Self, c: Self) -> Self {
        // SAFETY: kernels with this type run only where the processor has AVX2 and FMA; only values in registers are used.
        Self(unsafe { _mm256_fmadd_pd(self.0, b.0, c.0) })
    }

    #[inline(always)]
    fn neg_mul_add(self, b: Self, c: Self) -> Self {
        // SAFETY: kernels with this type run only where the processor has AVX2 and FMA; only values in registers are used.
        Self(unsafe { _mm256_fnmadd_pd(self.0, b.0, c.0) })
    }

    #[inline(always)]
    fn twice_inverse(self) -> Self {
        // SAFETY: kernels with this type run only where the processor has AVX2 and FMA; only values in registers are used.
        Self(unsafe {
            let one = _mm256_set1_pd(1.0);
            let zero = _mm256_cmp_pd::<_CMP_EQ_OQ>(self.0, _mm256_setzero_pd());
            _mm256_div_pd(_mm256_set1_pd(2.0), _mm256_blendv_pd(self.0, one, zero))
        })
    }

    #[inline(always)]
    fn quadrant(t: Self, sin: Self, cos: Self) -> (Self, Self) {
        // SAFETY: kernels with this type run only where the processor has AVX2 and FMA; only values in registers are used.
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
        // SAFETY: kernels with this type run only where the processor has AVX2 and FMA; only values in registers are used.
        unsafe {
            let size = _mm256_andnot_pd(_mm256_set1_pd(-0.0), self.0);
            _mm256_movemask_pd(_mm256_cmp_pd::<_CMP_LE_OQ>(size, _mm256_set1_pd(bound))) == 0b1111
        }
    }
}

impl Wide for FusedFour {
    #[inline(always)]
    fn write(self, to: &mut [f64]) {
        let to = &mut to[..4];
        // SAFETY: kernels with this type run only where the processor has AVX2 and FMA; the slice has room for four numbers, and the store needs no alignment.
        unsafe { _mm256_storeu_pd(to.as_mut_ptr(), self.0) }
    }

    #[inline(always)]
    fn write_two(self, to: &mut [f64]) {
        let to = &mut to[..2];
        // SAFETY: kernels with this type run only where the processor has AVX2 and FMA; the slice has room for two numbers, and the store needs no alignment.
        unsafe { _mm_storeu_pd(to.as_mut_ptr(), _mm256_castpd256_pd128(self.0)) }
    }

    #[inline(always)]
    fn transpose([a, b, c, d]: [Self; 4]) -> [Self; 4] {
        // SAFETY: kernels with this type run only where the processor has AVX2 and FMA; only values in registers are used.
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
