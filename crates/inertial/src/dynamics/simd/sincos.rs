//! Sine and cosine of several angles in lockstep.
//!
//! Cody–Waite reduction to `|r| ≤ π/4` with π/2 in two pieces, then two polynomials of near-minimax coefficients
//! (Chebyshev interpolation in `r²`; truncation below 2e-17). Absolute error at most 2.2e-16 for `|x| ≤ 1e5`.

use crate::dynamics::simd::{Four, Lane};

/// Largest angle for which the product of the multiple with the first piece of π/2 is exact.
const REACH: f64 = 1e5;

/// Constant whose addition rounds to an integer in the low bits: 1.5 · 2⁵².
const MAGIC: f64 = 6_755_399_441_055_744.0;

/// Two pieces of π/2: 33 bits, so that the product with the multiple (17 bits) is exact, and the remainder.
const HALF_PI: [f64; 2] = [f64::from_bits(0x3ff9_21fb_5440_0000), 6.077_100_506_506_192e-11];

/// Coefficients of `S` in `sin r = r + r³ S(r²)`.
const SIN: [f64; 6] = [
    -0.166_666_666_666_666_66,
    0.008_333_333_333_330_948,
    -0.000_198_412_698_367_567_74,
    2.755_731_610_161_787_4e-6,
    -2.505_113_165_023_518e-8,
    1.591_811_526_326_597_4e-10,
];

/// Coefficients of `C` in `cos r = 1 − r²/2 + r⁴ C(r²)`.
const COS: [f64; 6] = [
    0.041_666_666_666_666_664,
    -0.001_388_888_888_888_739_8,
    2.480_158_729_876_456e-5,
    -2.755_731_727_114_514_4e-7,
    2.087_614_614_655_861e-9,
    -1.138_262_364_747_460_4e-11,
];

#[inline(always)]
fn polynomial<L: Lane>(c: &[f64; 6], z: L) -> L {
    // Two chains of half the length, which the processor executes in parallel.
    let zz = z * z;
    let even = zz.mul_add(zz.mul_add(L::splat(c[4]), L::splat(c[2])), L::splat(c[0]));
    let odd = zz.mul_add(zz.mul_add(L::splat(c[5]), L::splat(c[3])), L::splat(c[1]));
    z.mul_add(odd, even)
}

/// Computes sines and cosines of `x`.
#[inline(always)]
pub(crate) fn sin_cos<L: Lane<Memory = Four>>(x: L) -> (L, L) {
    if !x.within(REACH) {
        let mut memory = Four::default();
        x.store(&mut memory);
        let (sin, cos) = far(memory);
        return (L::load(&sin), L::load(&cos));
    }
    let t = x.mul_add(L::splat(std::f64::consts::FRAC_2_PI), L::splat(MAGIC));
    let n = t - L::splat(MAGIC);
    let near = n.neg_mul_add(L::splat(HALF_PI[0]), x);
    let r = n.neg_mul_add(L::splat(HALF_PI[1]), near);
    let z = r * r;
    let sin = (r * z).mul_add(polynomial(&SIN, z), r);
    // 1 − z/2 is rounded: add its rounding error.
    let (half, one) = (z * L::splat(0.5), L::splat(1.0));
    let w = one - half;
    let cos = w + (z * z).mul_add(polynomial(&COS, z), (one - w) - half);
    L::quadrant(t, sin, cos)
}

/// Computes large angles, infinities and NaN one by one; these cases are rare, and the result is the same on every
/// machine.
#[cold]
fn far(x: Four) -> (Four, Four) {
    let (mut sin, mut cos) = (Four::default(), Four::default());
    for k in 0..4 {
        (sin.0[k], cos.0[k]) = libm::sincos(x.0[k]);
    }
    (sin, cos)
}

#[cfg(test)]
mod tests {
    #[cfg(target_arch = "x86_64")]
    use super::super::FusedFour;
    use super::super::{PlainFour, portable};
    use super::*;

    fn run<L: Lane<Memory = Four>>(x: &[Four], out: &mut [(Four, Four)]) {
        for (x, (sin, cos)) in x.iter().zip(out) {
            let (s, c) = sin_cos(L::load(x));
            s.store(sin);
            c.store(cos);
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,fma")]
    fn run_fused(x: &[Four], out: &mut [(Four, Four)]) {
        run::<FusedFour>(x, out);
    }

    /// Returns angles of every size: uniform up to the limit and beyond it, and near multiples of π/4, where the
    /// reduction is most difficult.
    fn angles() -> Vec<Four> {
        let mut state = 1u64;
        let mut uniform = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / (1u64 << 53) as f64
        };
        let mut all = vec![0.0, -0.0, f64::MIN_POSITIVE, REACH, -REACH, 1.0001 * REACH, 1e22, f64::INFINITY];
        for _ in 0..100_000 {
            all.push((2.0 * uniform() - 1.0) * REACH);
            all.push((2.0 * uniform() - 1.0) * 7.0);
            all.push(
                (uniform() * 127_000.0).floor() * std::f64::consts::FRAC_PI_4 * (1.0 + 1e-15 * uniform()),
            );
            all.push((2.0 * uniform() - 1.0) * 1e7);
        }
        all.chunks_exact(4).map(|c| Four([c[0], c[1], c[2], c[3]])).collect()
    }

    fn check(x: &[Four], out: &[(Four, Four)]) {
        for (x, (sin, cos)) in x.iter().zip(out) {
            for k in 0..4 {
                let (s, c) = libm::sincos(x.0[k]);
                if s.is_nan() {
                    assert!(sin.0[k].is_nan() && cos.0[k].is_nan(), "at {}", x.0[k]);
                    continue;
                }
                // The bound plus half a unit in the last place of the reference.
                let error = (sin.0[k] - s).abs().max((cos.0[k] - c).abs());
                assert!(error <= 2.2e-16 + 5.6e-17, "{error:e} at {}", x.0[k]);
            }
        }
    }

    #[test]
    fn error_is_bounded() {
        let x = angles();
        let mut out = vec![(Four::default(), Four::default()); x.len()];
        run::<PlainFour>(&x, &mut out);
        check(&x, &out);
        let plain = out.clone();
        run::<portable::PlainFour>(&x, &mut out);
        let bits = |out: &[(Four, Four)]| -> Vec<u64> {
            out.iter().flat_map(|(s, c)| s.0.into_iter().chain(c.0)).map(f64::to_bits).collect()
        };
        assert_eq!(bits(&plain), bits(&out), "every machine has the same bits");
        #[cfg(target_arch = "x86_64")]
        if std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma") {
            out.fill((Four::default(), Four::default()));
            // SAFETY: the processor has both.
            unsafe { run_fused(&x, &mut out) };
            check(&x, &out);
        }
    }
}
