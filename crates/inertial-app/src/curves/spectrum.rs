//! Welch's power spectrum of a signal that arrives sample by sample.

use std::f64::consts::PI;

use super::{Floats, Spectrum};

/// Largest window length (samples).
const WINDOW: usize = 4096;

/// Accumulator that averages the periodograms of windows with 50 % overlap.
pub struct Welch {
    window: Vec<f64>,
    power: Vec<f64>,
    held: Vec<f64>,
    count: usize,
    rate: f64,
}

impl Welch {
    /// Creates an accumulator for `samples` samples at a rate in Hz.
    pub fn new(samples: usize, rate: f64) -> Self {
        // Largest power of two that the signal fills.
        let size = WINDOW.min((samples.max(16) / 2 + 1).next_power_of_two());
        // Hann window.
        let window = (0..size).map(|k| 0.5 - 0.5 * (2.0 * PI * k as f64 / size as f64).cos()).collect();
        Self { window, power: vec![0.0; size / 2], held: Vec::with_capacity(size), count: 0, rate }
    }

    /// Adds the next sample.
    pub fn push(&mut self, x: f64) {
        self.held.push(x);
        if self.held.len() == self.window.len() {
            self.close();
            self.held.drain(..self.window.len() / 2);
        }
    }

    fn close(&mut self) {
        let mut values: Vec<(f64, f64)> =
            self.held.iter().zip(&self.window).map(|(x, w)| (x * w, 0.0)).collect();
        values.resize(self.window.len(), (0.0, 0.0));
        transform(&mut values);
        self.power.iter_mut().zip(&values).for_each(|(p, (re, im))| *p += re * re + im * im);
        self.count += 1;
    }

    /// Returns the one-sided amplitude density: the sum of its squares times the resolution is the mean square.
    pub fn finish(mut self) -> Spectrum {
        if self.count == 0 {
            self.close();
        }
        let area: f64 = self.window.iter().map(|w| w * w).sum();
        let density = |(k, p): (usize, &f64)| {
            let sides = if k == 0 { 1.0 } else { 2.0 };
            (sides * p / (area * self.count as f64 * self.rate)).sqrt() as f32
        };
        Spectrum {
            resolution: self.rate / self.window.len() as f64,
            density: Floats(self.power.iter().enumerate().map(density).collect()),
        }
    }
}

/// Computes the fast Fourier transform in place; the length is a power of two.
fn transform(x: &mut [(f64, f64)]) {
    let n = x.len();
    let mut j = 0;
    for i in 1..n {
        let mut bit = n >> 1;
        while j & bit != 0 {
            j ^= bit;
            bit >>= 1;
        }
        j ^= bit;
        if i < j {
            x.swap(i, j);
        }
    }
    let mut size = 2;
    while size <= n {
        let turns: Vec<(f64, f64)> =
            (0..size / 2).map(|k| (-2.0 * PI * k as f64 / size as f64).sin_cos()).collect();
        for part in x.chunks_exact_mut(size) {
            let (low, high) = part.split_at_mut(size / 2);
            for ((a, b), (sin, cos)) in low.iter_mut().zip(high).zip(&turns) {
                let turned = (b.0 * cos - b.1 * sin, b.0 * sin + b.1 * cos);
                *b = (a.0 - turned.0, a.1 - turned.1);
                *a = (a.0 + turned.0, a.1 + turned.1);
            }
        }
        size *= 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_transform_equals_its_defining_sum() {
        let mut random = inertial::linalg::SplitMix::new(7);
        let mut next = || (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64 - 0.5;
        let signal: Vec<(f64, f64)> = (0..64).map(|_| (next(), next())).collect();
        let mut fast = signal.clone();
        transform(&mut fast);
        for (k, found) in fast.iter().enumerate() {
            let sum = signal.iter().enumerate().fold((0.0, 0.0), |sum, (n, (re, im))| {
                let (sin, cos) = (-2.0 * PI * (k * n) as f64 / 64.0).sin_cos();
                (sum.0 + re * cos - im * sin, sum.1 + re * sin + im * cos)
            });
            // Rounding error of six levels of additions of numbers below one.
            assert!((found.0 - sum.0).abs() < 1e-13 && (found.1 - sum.1).abs() < 1e-13, "{k}");
        }
    }

    #[test]
    fn a_sine_has_one_spectral_line_with_its_power() {
        let (rate, count) = (1000.0, 40_000);
        let mut welch = Welch::new(count, rate);
        // Centre of a bin: 128/4096 of the rate.
        (0..count).for_each(|k| welch.push(3.0 * (2.0 * PI * 31.25 * k as f64 / rate).sin()));
        let Spectrum { resolution, density } = welch.finish();
        let power: Vec<f64> = density.0.iter().map(|d| f64::from(*d).powi(2) * resolution).collect();
        let strongest = (0..power.len()).max_by(|a, b| power[*a].total_cmp(&power[*b]));
        assert_eq!(strongest, Some(128));
        // Mean square of a sine of amplitude three, to the precision of 32-bit floats.
        assert!((power.iter().sum::<f64>() - 4.5).abs() < 1e-4);
    }

    #[test]
    fn the_spectrum_of_a_short_signal_is_finite() {
        let mut welch = Welch::new(5, 10.0);
        (0..5).for_each(|k| welch.push(f64::from(k)));
        assert!(welch.finish().density.0.iter().all(|d| d.is_finite()));
    }
}
