//! Vector instructions for sums of products.
//!
//! Kernels are generic over the registers of the processor. By default they use its widest ones and fuse products with sums. If results must
//! have the same bits on every processor ([`crate::set_reproducible`]), they work on four numbers at a time and round every product and every
//! sum.

use bytemuck::cast_slice;
use pulp::{Arch, Scalar256b, Simd, WithSimd};

/// Computation on columns of numbers.
pub(crate) trait Kernel {
    type Output;

    fn run<S: Simd, const ROUNDED: bool>(self, lanes: Lanes<S, ROUNDED>) -> Self::Output;
}

/// Operations of one kind of registers; `ROUNDED` if products are rounded before they are added.
#[derive(Clone, Copy)]
pub(crate) struct Lanes<S, const ROUNDED: bool>(S);

impl<S: Simd, const ROUNDED: bool> Lanes<S, ROUNDED> {
    #[inline(always)]
    pub fn splat(self, x: f64) -> S::f64s {
        self.0.splat_f64s(x)
    }

    #[inline(always)]
    pub fn multiply(self, a: S::f64s, b: S::f64s) -> S::f64s {
        self.0.mul_f64s(a, b)
    }

    /// Computes `a b + c`.
    #[inline(always)]
    pub fn multiply_add(self, a: S::f64s, b: S::f64s, c: S::f64s) -> S::f64s {
        if ROUNDED { self.0.add_f64s(self.0.mul_f64s(a, b), c) } else { self.0.mul_add_e_f64s(a, b, c) }
    }

    /// Returns the sum of the numbers of several registers.
    #[inline(always)]
    pub fn sum<const N: usize>(self, registers: [S::f64s; N]) -> f64 {
        let all = registers.into_iter().reduce(|a, b| self.0.add_f64s(a, b));
        all.map_or(0.0, |all| cast_slice::<_, f64>(&[all]).iter().sum())
    }
}

struct Dispatched<K, const ROUNDED: bool>(K);

impl<K: Kernel, const ROUNDED: bool> WithSimd for Dispatched<K, ROUNDED> {
    type Output = K::Output;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> K::Output {
        self.0.run(Lanes::<S, ROUNDED>(simd))
    }
}

/// Runs a kernel with the registers for the chosen arithmetic.
pub(crate) fn dispatch<K: Kernel>(kernel: K) -> K::Output {
    if crate::is_reproducible() {
        dispatch_rounded(kernel)
    } else {
        Arch::new().dispatch(Dispatched::<K, false>(kernel))
    }
}

/// Runs a kernel with four numbers at a time and rounded products.
fn dispatch_rounded<K: Kernel>(kernel: K) -> K::Output {
    let kernel = Dispatched::<K, true>(kernel);
    match Arch::new() {
        #[cfg(target_arch = "x86_64")]
        Arch::V3(simd) => Simd::vectorize(simd, kernel),
        _ => Simd::vectorize(Scalar256b, kernel),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Runs a kernel three times: as by default, and with rounded products on this processor and on any other.
    pub fn with_all<K: Kernel>(kernel: impl Fn() -> K) -> [K::Output; 3] {
        [
            Arch::new().dispatch(Dispatched::<K, false>(kernel())),
            dispatch_rounded(kernel()),
            Simd::vectorize(Scalar256b, Dispatched::<K, true>(kernel())),
        ]
    }
}
