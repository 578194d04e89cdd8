//! Loops compiled for the vector instructions of the processor.

use pulp::Arch;

/// Runs a loop over numbers with the vector instructions of this processor.
///
/// The result has the same bits on every processor: the compiler neither fuses products with sums nor reorders sums. Functions that the
/// loop calls must be inlined.
///
/// ```
/// let mut x = [1.0, 2.0, 3.0, 4.0];
/// inertial_dense::vectorized(|| x.iter_mut().for_each(|x| *x *= 2.0));
/// assert_eq!(x, [2.0, 4.0, 6.0, 8.0]);
/// ```
#[inline]
pub fn vectorized<R>(work: impl FnOnce() -> R) -> R {
    Arch::new().dispatch(work)
}
