//! Smooth interpolation of samples.

use crate::{Error, Result};

/// Scalar function of time through samples: exact at the samples, a polynomial between successive samples.
///
/// The polynomial depends on the known quantities at the samples: for values only, it is a cubic spline (continuous acceleration,
/// not-a-knot end conditions); with velocities and optionally accelerations, it is a quintic that interpolates all of them
/// (missing accelerations are those of a spline through the velocities).
///
/// ```
/// use inertial::simulation::Curve;
/// let square = Curve::new(&[0.0, 1.0, 2.0, 4.0], vec![0.0, 1.0, 4.0, 16.0], None, None)?;
/// let [y, dy, ddy] = square.at(&[0.0, 1.0, 2.0, 4.0], 3.0);
/// assert!((y - 9.0).abs() < 1e-12 && (dy - 6.0).abs() < 1e-12 && (ddy - 2.0).abs() < 1e-12);
/// # Ok::<(), inertial::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Curve {
    values: Vec<f64>,
    velocities: Vec<f64>,
    /// Accelerations at the samples; `None` for a spline, whose pieces are cubics.
    accelerations: Option<Vec<f64>>,
}

impl Curve {
    /// Creates a curve through `values` at `times`, which must be ascending.
    pub fn new(
        times: &[f64],
        values: Vec<f64>,
        velocities: Option<Vec<f64>>,
        accelerations: Option<Vec<f64>>,
    ) -> Result<Self> {
        let expected = times.len();
        let sizes = [Some(&values), velocities.as_ref(), accelerations.as_ref()];
        for found in sizes.into_iter().flatten().map(Vec::len) {
            if found != expected {
                return Err(Error::Dimension { what: "column of samples", expected, found });
            }
        }
        if times.is_empty() || !times.is_sorted_by(|a, b| a < b) {
            return Err(Error::InvalidOption("the times of samples must ascend".into()));
        }
        let splined = velocities.is_none();
        let velocities = velocities.unwrap_or_else(|| slopes(times, &values));
        let accelerations =
            if splined { None } else { Some(accelerations.unwrap_or_else(|| slopes(times, &velocities))) };
        Ok(Self { values, velocities, accelerations })
    }

    /// Returns value, velocity and acceleration at `t`; `times` are those of the constructor. The curve is constant beyond its
    /// ends.
    pub fn at(&self, times: &[f64], t: f64) -> [f64; 3] {
        let last = times.len() - 1;
        if t < times[0] || last == 0 {
            return [self.values[0], 0.0, 0.0];
        }
        if t > times[last] {
            return [self.values[last], 0.0, 0.0];
        }
        let k = times.partition_point(|&s| s <= t).clamp(1, last) - 1;
        let h = times[k + 1] - times[k];
        let (y, dy) = (&self.values[k..k + 2], &self.velocities[k..k + 2]);
        let c = if let Some(a) = &self.accelerations {
            let a = &a[k..k + 2];
            for (i, &end) in times[k..k + 2].iter().enumerate() {
                if t == end {
                    return [y[i], dy[i], a[i]];
                }
            }
            let (c1, c2) = (h * dy[0], 0.5 * h * h * a[0]);
            let gap = y[1] - y[0] - c1 - c2;
            let slope = h * dy[1] - c1 - 2.0 * c2;
            let bend = h * h * a[1] - 2.0 * c2;
            [
                y[0],
                c1,
                c2,
                10.0 * gap - 4.0 * slope + 0.5 * bend,
                7.0 * slope - 15.0 * gap - bend,
                6.0 * gap - 3.0 * slope + 0.5 * bend,
            ]
        } else {
            let rise = y[1] - y[0];
            let (first, second) = (h * dy[0], h * dy[1]);
            [y[0], first, 3.0 * rise - 2.0 * first - second, first + second - 2.0 * rise, 0.0, 0.0]
        };
        let s = (t - times[k]) / h;
        let sum = |weights: [f64; 6], from: usize| {
            weights.iter().zip(c).skip(from).rev().fold(0.0, |sum, (n, c)| sum * s + n * c)
        };
        let velocity = sum([0.0, 1.0, 2.0, 3.0, 4.0, 5.0], 1) / h;
        let acceleration = sum([0.0, 0.0, 2.0, 6.0, 12.0, 20.0], 2) / (h * h);
        [sum([1.0; 6], 0), velocity, acceleration]
    }
}

/// Computes the slopes at the samples of the not-a-knot cubic spline through them (de Boor 1978, chapter IV), or of the
/// interpolating polynomial for fewer than four samples.
fn slopes(x: &[f64], y: &[f64]) -> Vec<f64> {
    let n = x.len();
    if n == 1 {
        return vec![0.0];
    }
    let h: Vec<f64> = x.windows(2).map(|x| x[1] - x[0]).collect();
    let s: Vec<f64> = y.windows(2).zip(&h).map(|(y, h)| (y[1] - y[0]) / h).collect();
    if n == 2 {
        return vec![s[0]; 2];
    }
    if n == 3 {
        let bend = (s[1] - s[0]) / (h[0] + h[1]);
        return vec![s[0] - bend * h[0], s[0] + bend * h[0], s[1] + bend * h[1]];
    }
    // Rows `lower d[i−1] + diagonal d[i] + upper d[i+1] = right`.
    let (mut lower, mut diagonal, mut upper, mut right) =
        (vec![0.0; n], vec![0.0; n], vec![0.0; n], vec![0.0; n]);
    for i in 1..n - 1 {
        (lower[i], diagonal[i], upper[i]) = (h[i], 2.0 * (h[i - 1] + h[i]), h[i - 1]);
        right[i] = 3.0 * (h[i] * s[i - 1] + h[i - 1] * s[i]);
    }
    let both = h[0] + h[1];
    (diagonal[0], upper[0]) = (h[1], both);
    right[0] = ((h[0] + 2.0 * both) * h[1] * s[0] + h[0] * h[0] * s[1]) / both;
    let (a, b) = (h[n - 2], h[n - 3]);
    (diagonal[n - 1], lower[n - 1]) = (b, a + b);
    right[n - 1] = (a * a * s[n - 3] + (2.0 * (a + b) + a) * b * s[n - 2]) / (a + b);
    for i in 1..n {
        let factor = lower[i] / diagonal[i - 1];
        diagonal[i] -= factor * upper[i - 1];
        right[i] -= factor * right[i - 1];
    }
    right[n - 1] /= diagonal[n - 1];
    for i in (0..n - 1).rev() {
        right[i] = (right[i] - upper[i] * right[i + 1]) / diagonal[i];
    }
    right
}
