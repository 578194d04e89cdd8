//! Low-pass filter of both sides of the equations.

use std::f64::consts::PI;

use crate::{Error, Result};

/// Half of the window, in periods of the cut-off: the gain is one within 1 % below 0.5 of the cut-off, and below 1 % above 1.5 of
/// it.
const HALF: f64 = 1.5;
/// Rate of the rows, in cut-offs: twice the Nyquist rate of the cut-off. Little is left above 1.5 of the cut-off.
const RATE: f64 = 4.0;
/// Largest weight of unused samples in a row that is used. A joint that reverses is slow for a few hundredths of the window, a
/// joint at rest for all of it.
const LOST: f64 = 0.1;
/// Number of points at which a nonlinear function is averaged over the neighbourhood of a sample.
pub(crate) const POINTS: usize = 16;
/// Weights of these points; their sum is one.
const POINT_WEIGHTS: [f64; POINTS] = point_weights();

/// Zero-phase low-pass filter over the rows of the equations, including forces, that keeps every n-th row.
///
/// States and forces are low-pass filtered before derivatives are computed. However, the regressor of filtered states is not the
/// filtered regressor: friction jumps when a joint reverses, and products of velocities have a larger bandwidth than velocities.
/// With this filter on both sides (and a cut-off at half that of the states, where these are unaffected) the filtered equations
/// hold for any columns. Columns also pass the previous filter of the forces ([`RowFilter::after`]): the filtered force is smooth
/// where friction jumps, its column is not.
///
/// ```
/// use inertial::estimation::RowFilter;
/// let filter = RowFilter::new(2.0, 32.0)?;
/// assert_eq!(filter.every(), 4);
/// assert!((filter.weights().iter().sum::<f64>() - 1.0).abs() < 1e-12);
/// # Ok::<(), inertial::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct RowFilter {
    /// Weights of forces and of columns.
    weights: Vec<f64>,
    columns: Vec<f64>,
    every: usize,
    /// Time between samples (s).
    step: f64,
    /// Number of force samples within that time, if they were taken at these instants.
    sampled: Option<f64>,
}

impl RowFilter {
    /// Creates a filter with gain one half at the cut-off, for samples at a given rate: a sinc in a Hann window.
    pub fn new(cutoff_hz: f64, rate_hz: f64) -> Result<Self> {
        if !(cutoff_hz > 0.0 && cutoff_hz < 0.5 * rate_hz && rate_hz.is_finite()) {
            return Err(Error::InvalidOption(format!(
                "the rows' cut-off of {cutoff_hz} Hz: expected more than 0 and less than half the rate of {rate_hz} Hz"
            )));
        }
        let half = (HALF * rate_hz / cutoff_hz).ceil();
        let weight = |k: f64| {
            let x = 2.0 * PI * cutoff_hz / rate_hz * k;
            let sinc = if k == 0.0 { 1.0 } else { x.sin() / x };
            sinc * (0.5 * PI * k / (half + 1.0)).cos().powi(2)
        };
        let n = half as usize;
        let mut weights: Vec<f64> = (0..=2 * n).map(|k| weight(k as f64 - half)).collect();
        let sum: f64 = weights.iter().sum();
        weights.iter_mut().for_each(|w| *w /= sum);
        let every = (rate_hz / (RATE * cutoff_hz)).floor().max(1.0) as usize;
        Ok(Self { columns: weights.clone(), weights, every, step: 1.0 / rate_hz, sampled: None })
    }

    /// Adapts the filter to forces that have passed a zero-phase filter with the given gain at a frequency (Hz): columns pass it
    /// here.
    ///
    /// The length of the window does not change. If the gain is smooth below one and a half of the cut-off, it is approximated to
    /// some ten-thousandths.
    pub fn after(mut self, gain: impl Fn(f64) -> f64) -> Self {
        let half = self.half();
        let bins = 4 * half;
        let angle = |m: usize, k: usize| PI * (m * k) as f64 / bins as f64;
        // Both are even functions: sums of cosines, from zero to half of the rate.
        let response: Vec<f64> = (0..=bins)
            .map(|m| {
                let own = self.weights[half]
                    + 2.0 * (1..=half).map(|k| self.weights[half + k] * angle(m, k).cos()).sum::<f64>();
                own * gain(0.5 * m as f64 / (bins as f64 * self.step))
            })
            .collect();
        let ends = |k: usize| response[0] + response[bins] * if k.is_multiple_of(2) { 1.0 } else { -1.0 };
        let weight = |k: usize| {
            let inner: f64 = (1..bins).map(|m| response[m] * angle(m, k).cos()).sum();
            0.5 * (ends(k) + 2.0 * inner) / bins as f64
        };
        let side: Vec<f64> = (0..=half).map(weight).collect();
        let sum = side[0] + 2.0 * side[1..].iter().sum::<f64>();
        // The other filter has gain one for constants.
        self.columns = (0..=2 * half).map(|k| side[k.abs_diff(half)] / sum).collect();
        self
    }

    /// Adapts the filter to forces that a sensor sampled at a multiple of the rate, with one force sample at each sample. A force
    /// that jumps with the sign of a speed then jumps between two samples of the sensor, and the best estimate of the instant is
    /// the midpoint between them.
    pub fn sampled(mut self, times: usize) -> Self {
        self.sampled = Some(times.max(1) as f64);
        self
    }

    /// Returns the correlation of two rows at a lag of `rows` rows for white noise.
    pub(crate) fn correlation(&self, rows: usize) -> f64 {
        let shift = rows * self.every;
        let of = |shift: usize| self.weights.iter().zip(self.weights.iter().skip(shift)).map(|(a, b)| a * b);
        of(shift).sum::<f64>() / of(0).sum::<f64>()
    }

    /// Returns the weights of the samples around the centre of a row, for forces.
    pub fn weights(&self) -> &[f64] {
        &self.weights
    }

    /// Returns the weights for the columns of the regressor.
    pub fn column_weights(&self) -> &[f64] {
        &self.columns
    }

    /// Returns the number of samples on either side of the centre of a row.
    pub fn half(&self) -> usize {
        self.weights.len() / 2
    }

    /// Returns the number of samples from row to row.
    pub fn every(&self) -> usize {
        self.every
    }

    /// Returns the share of independent rows: the rows keep `Σh²` of the variance of white noise, compared with `1/every` for
    /// independent rows with the same information.
    pub fn independent(&self) -> f64 {
        (self.every as f64 * self.weights.iter().map(|w| w * w).sum::<f64>()).min(1.0)
    }

    /// Returns whether a row is used, given which of its samples are used.
    pub fn keeps(&self, keep: &[bool]) -> bool {
        let lost: f64 = self.weights.iter().zip(keep).filter(|(_, k)| !**k).map(|(w, _)| w.abs()).sum();
        lost <= LOST
    }

    /// Returns the sign of a speed, averaged over the neighbourhood of a sample; a single sample would misplace a jump by up to
    /// half a step. The jump is where the speed changes its sign, or where the sensor detects it ([`RowFilter::sampled`]).
    ///
    /// Arguments are speed and acceleration at the previous, current and next sample. Between them the speed is the cubic Hermite
    /// interpolant. The weight over two steps is `(9 − 15 u²)/8`, with mean one and zero second moment, so slow changes pass with
    /// gain one (within 1e-4 at the cut-off, with 16 samples per period).
    pub(crate) fn sign(&self, [before, now, after]: [[f64; 2]; 3]) -> f64 {
        let [v, a] = now;
        if v == 0.0 {
            return 0.0;
        }
        // Accelerations have the opposite sign backwards in time.
        let after = self.part_before_turn(now, after);
        let before = self.part_before_turn([v, -a], [before[0], -before[1]]);
        v.signum() * (after + before - 1.0)
    }

    /// Returns the fraction (twice the weight) of the step from one sample to another before the speed changes its sign; one if it
    /// does not change.
    fn part_before_turn(&self, [v, a]: [f64; 2], [to_v, to_a]: [f64; 2]) -> f64 {
        if v * to_v >= 0.0 {
            return 1.0;
        }
        let (a, to_a) = (a * self.step, to_a * self.step);
        let cubic = |u: f64| {
            let (rest, both) = (1.0 - u, u * (1.0 - u));
            v * rest * rest * (1.0 + 2.0 * u) + to_v * u * u * (3.0 - 2.0 * u) + both * (a * rest - to_a * u)
        };
        let (mut low, mut high) = (0.0, 1.0);
        for _ in 0..30 {
            let middle = 0.5 * (low + high);
            *(if cubic(middle) * v > 0.0 { &mut low } else { &mut high }) = middle;
        }
        let turn = self.sampled.map_or(low, |times| ((low * times).floor() + 0.5) / times);
        1.25 * turn * (1.8 - turn * turn)
    }

    /// Returns the change of a speed within the neighbourhood of a sample, to either side.
    pub(crate) fn reach(&self, a: f64) -> f64 {
        a * self.step
    }

    /// Returns the speeds up to `reach` away from a speed at which a function of the speed is averaged.
    pub(crate) fn points(v: f64, reach: f64) -> [f64; POINTS] {
        std::array::from_fn(|i| v + reach * point(i))
    }

    /// Averages the values of a function at these speeds, with the same weight as [`RowFilter::sign`].
    pub(crate) fn mean(values: &[f64]) -> f64 {
        values.iter().zip(&POINT_WEIGHTS).map(|(value, weight)| weight * value).sum()
    }
}

/// Returns the position of a point in the neighbourhood of a sample, from −1 to 1.
const fn point(i: usize) -> f64 {
    (2.0 * i as f64 + 1.0) / POINTS as f64 - 1.0
}

const fn point_weights() -> [f64; POINTS] {
    let (mut weights, mut total, mut i) = ([0.0; POINTS], 0.0, 0);
    while i < POINTS {
        weights[i] = 9.0 - 15.0 * point(i) * point(i);
        total += weights[i];
        i += 1;
    }
    while i > 0 {
        i -= 1;
        weights[i] /= total;
    }
    weights
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gain_falls_from_one_to_zero_at_the_cutoff() {
        for rate in [5.0, 16.0, 100.0] {
            let filter = RowFilter::new(1.0, rate).unwrap();
            let gain = |f: f64| -> f64 {
                let middle = filter.half() as f64;
                let term = |(k, w): (usize, &f64)| w * (2.0 * PI * f / rate * (k as f64 - middle)).cos();
                filter.weights().iter().enumerate().map(term).sum()
            };
            assert!((gain(1.0) - 0.5).abs() < 0.005, "{rate}");
            assert!((0..50).all(|k| (gain(0.01 * f64::from(k)) - 1.0).abs() < 0.011));
            assert!((0..100).all(|k| gain(1.5 + 0.01 * f64::from(k)).abs() < 0.011));
        }
        assert!(RowFilter::new(0.0, 1.0).is_err() && RowFilter::new(0.5, 1.0).is_err());
        assert!(RowFilter::new(f64::NAN, 1.0).is_err());
    }

    #[test]
    fn columns_pass_the_same_filters_as_forces() {
        let gain = |f: f64| 1.0 / (1.0 + (f / 2.0).powi(8));
        let plain = RowFilter::new(1.0, 16.0).unwrap();
        assert_eq!(plain.weights(), plain.column_weights());
        let filter = plain.after(gain);
        let response = |weights: &[f64], f: f64| -> f64 {
            let middle = filter.half() as f64;
            let term = |(k, w): (usize, &f64)| w * (2.0 * PI * f / 16.0 * (k as f64 - middle)).cos();
            weights.iter().enumerate().map(term).sum()
        };
        for f in (0..150).map(|k| 0.01 * f64::from(k)) {
            let (force, column) =
                (response(filter.weights(), f) * gain(f), response(filter.column_weights(), f));
            assert!((force - column).abs() < 1e-3, "{f}: {force} {column}");
        }
    }

    #[test]
    fn jumps_between_samples_are_averaged() {
        let filter = RowFilter::new(1.0, 16.0).unwrap();
        let fine = |v: f64, a: f64, f: &dyn Fn(f64) -> f64| {
            let n = 20_000;
            let value = |i: i32| {
                let u = f64::from(2 * i + 1) / f64::from(n) - 1.0;
                (9.0 - 15.0 * u * u) / 8.0 * f(v + a * u / 16.0)
            };
            (0..n).map(value).sum::<f64>() * 2.0 / f64::from(n)
        };
        let bend = |v: f64| v.signum() * (-v.abs() / 0.02).exp();
        let line = |v: f64, a: f64| [-1.0, 0.0, 1.0].map(|u| [v + a * u / 16.0, a]);
        for (v, a) in [(0.01, 1.0), (-0.03, 0.7), (0.02, -0.5), (0.5, 1.0), (0.3, 0.0)] {
            // The jump of 2 is within one step of the fine sum.
            assert!((filter.sign(line(v, a)) - fine(v, a, &f64::signum)).abs() < 4e-4, "{v} {a}");
            // Sixteen points locate the jump to an eighth of a step, with a weight of at most 9/8.
            let mean = RowFilter::mean(&RowFilter::points(v, filter.reach(a)).map(bend));
            assert!((mean - fine(v, a, &bend)).abs() < 0.15, "{v} {a}");
        }
        assert_eq!(filter.sign([[0.0; 2]; 3]), 0.0);
        // A cubic that changes its sign twice, at −0.5 and at 0.25 steps.
        let turning = [-1.0, 0.0, 1.0].map(|u: f64| {
            let (v, slope) = ((u + 0.5) * (0.25 - u), -2.0 * u - 0.25);
            [v, 16.0 * slope]
        });
        let part = |u: f64| 1.25 * u * (1.8 - u * u);
        assert!((filter.sign(turning) - (part(0.5) + part(0.25) - 1.0)).abs() < 1e-8);
        // A sensor with four samples in each step locates the jump at the midpoint between two of them.
        let seen = filter.clone().sampled(4);
        let quarter = 0.25 / 16.0;
        for (v, at) in [(0.1, 0.5), (0.9, 0.5), (1.1, 1.5), (-0.1, -0.5), (-3.2, -3.5), (4.1, 9.0)] {
            let expected = if at > 4.0 { 1.0 } else { filter.sign(line(at * quarter, 1.0)) };
            assert!((seen.sign(line(v * quarter, 1.0)) - expected).abs() < 1e-8, "{v}");
        }
    }

    #[test]
    fn rows_of_white_noise_are_correlated_as_stated() {
        let filter = RowFilter::new(1.0, 16.0).unwrap();
        assert!((filter.correlation(0) - 1.0).abs() < 1e-15);
        // Fourier transform of the squared gain, by numerical integration.
        let gain = |f: f64| -> f64 {
            let middle = filter.half() as f64;
            let term = |(k, w): (usize, &f64)| w * (2.0 * PI * f / 16.0 * (k as f64 - middle)).cos();
            filter.weights().iter().enumerate().map(term).sum()
        };
        let integral = |lag: usize| -> f64 {
            let time = (lag * filter.every()) as f64 / 16.0;
            let term = |f: f64| gain(f).powi(2) * (2.0 * PI * f * time).cos();
            (0..8000).map(|k| term(0.001 * f64::from(k) + 5e-4)).sum()
        };
        for lag in 1..5 {
            let found = filter.correlation(lag);
            assert!((found - integral(lag) / integral(0)).abs() < 1e-4, "{lag}: {found}");
        }
    }
}
