//! Interpolation between equidistant values.

/// Returns the weights of four equidistant values for their cubic interpolant between the second and the third; `part` is the position
/// there, from 0 to 1.
///
/// ```
/// let weights = inertial::linalg::cubic_weights(0.25);
/// let cube = |x: f64| x.powi(3) - 2.0 * x;
/// let value: f64 = weights.iter().zip([-1.0, 0.0, 1.0, 2.0]).map(|(w, x)| w * cube(x)).sum();
/// assert!((value - cube(0.25)).abs() < 1e-15);
/// ```
pub fn cubic_weights(part: f64) -> [f64; 4] {
    let f = part;
    [
        -f * (f - 1.0) * (f - 2.0) / 6.0,
        (f + 1.0) * (f - 1.0) * (f - 2.0) / 2.0,
        -(f + 1.0) * f * (f - 2.0) / 2.0,
        (f + 1.0) * f * (f - 1.0) / 6.0,
    ]
}
