//! Mathematical functions with the same bits on every processor, for a whole program.
//!
//! `f64::sin`, `exp`, `ln`, `powf` and similar functions call the system's C library. Its results differ between
//! releases and between processors, because it chooses variants with or without fused products. A program on Linux that
//! links this crate (`use inertial_libm as _;`) uses the functions of the crate [`libm`] instead, in its dependencies
//! too, because the linker prefers a program's own symbols. On other systems the crate is empty.
//!
//! Intended for programs and Python extensions, not for libraries: it replaces the functions of everything that is
//! linked with it.

/// Defines C functions by those of [`libm`].
#[cfg(target_os = "linux")]
macro_rules! functions {
    ($number:ty: $($name:ident($($argument:ident),+);)*) => { $(
        // The name is unsafe because it replaces that of the C library: arguments, result and meaning are the same.
        #[unsafe(no_mangle)]
        extern "C" fn $name($($argument: $number),+) -> $number {
            libm::$name($($argument),+)
        }
    )* };
}

// All functions that are not exact and that the standard library calls or the compiler substitutes (`exp10`).
#[cfg(target_os = "linux")]
functions! {
    f64:
    acos(x);
    asin(x);
    atan(x);
    atan2(y, x);
    cbrt(x);
    cos(x);
    cosh(x);
    exp(x);
    exp10(x);
    exp2(x);
    expm1(x);
    hypot(x, y);
    log(x);
    log10(x);
    log1p(x);
    log2(x);
    pow(x, y);
    sin(x);
    sinh(x);
    tan(x);
    tanh(x);
}

// The one function of single precision that a dependency refers to.
#[cfg(target_os = "linux")]
functions! {
    f32:
    hypotf(x, y);
}

/// Replacement of C's `sincos`, which the compiler calls for a sine and a cosine of one number.
///
/// # Safety
///
/// Both pointers must be valid for writing.
#[cfg(target_os = "linux")]
// The name is unsafe because it replaces that of the C library: arguments and meaning are the same.
#[unsafe(no_mangle)]
unsafe extern "C" fn sincos(x: f64, sin: *mut f64, cos: *mut f64) {
    let (s, c) = libm::sincos(x);
    // SAFETY: a caller of C's `sincos` passes a valid pointer for the sine.
    unsafe { sin.write(s) };
    // SAFETY: a caller of C's `sincos` passes a valid pointer for the cosine.
    unsafe { cos.write(c) };
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::hint::black_box;

    /// Returns numbers over the usual range, without structure.
    fn numbers() -> impl Iterator<Item = f64> {
        let mut state = 1u64;
        (0..20_000).map(move |_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let unit = ((state >> 11) as f64) / ((1u64 << 53) as f64);
            black_box((unit - 0.5) * 40.0)
        })
    }

    #[test]
    fn the_standard_library_calls_the_portable_functions() {
        type Function = fn(f64) -> f64;
        let of_one: [(Function, Function); 17] = [
            (f64::acos, libm::acos),
            (f64::asin, libm::asin),
            (f64::atan, libm::atan),
            (f64::cbrt, libm::cbrt),
            (f64::cos, libm::cos),
            (f64::cosh, libm::cosh),
            (f64::exp, libm::exp),
            (f64::exp2, libm::exp2),
            (f64::exp_m1, libm::expm1),
            (f64::ln, libm::log),
            (f64::ln_1p, libm::log1p),
            (f64::log10, libm::log10),
            (f64::log2, libm::log2),
            (f64::sin, libm::sin),
            (f64::sinh, libm::sinh),
            (f64::tan, libm::tan),
            (f64::tanh, libm::tanh),
        ];
        let same = |a: f64, b: f64| a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan();
        for x in numbers() {
            let y = black_box(0.5 + x.abs() / 40.0);
            assert!(of_one.iter().all(|(standard, portable)| same(standard(x), portable(x))), "{x}");
            assert!(same(x.atan2(y), libm::atan2(x, y)) && same(x.hypot(y), libm::hypot(x, y)), "{x} {y}");
            assert!(same(y.powf(x), libm::pow(y, x)), "{x} {y}");
            let (sin, cos) = x.sin_cos();
            assert!(same(sin, libm::sin(x)) && same(cos, libm::cos(x)), "{x}");
        }
    }
}
