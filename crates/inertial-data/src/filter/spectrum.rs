//! Bandwidth of a motion from its spectrum.

use std::f64::consts::PI;
use std::sync::Arc;

use rayon::prelude::{IntoParallelRefMutIterator, ParallelIterator};
use realfft::num_complex::Complex;
use realfft::{RealFftPlanner, RealToComplex};

use crate::clean::first_pass::Stairs;

/// Share of the strongest bin below which bins do not count as motion.
const WEAK: f64 = 1e-4;
/// Ratio to the mean noise power from which a bin is significant: a bin of white noise exceeds it with a probability of 2e-9, so none of
/// a spectrum's 32 768 bins does.
const CLEAR: f64 = 20.0;
/// Share of a motion's energy within its bandwidth.
const ENERGY: f64 = 0.999;
/// Part of the band that contains only noise, relative to half the rate. Derivatives and interpolation are weak above.
const QUIET: [f64; 2] = [0.5, 0.9];
/// Ratio of the power of quantization errors to that of white noise: the errors of a periodic motion are concentrated in spectral lines.
const LINES: f64 = 10.0;
/// Highest frequency of a motion, relative to half the rate at which its values change.
const UPDATES: f64 = 0.8;

/// Origin of a velocity.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Origin {
    /// Measured by a sensor.
    Measured,
    /// Derived from positions, with their staircase if any.
    Derived(Option<Stairs>),
}

/// Computes the frequency below which 99.9 % of the energy of every signal lies. Bins below −40 dB of the signal's peak are excluded,
/// and bins that do not exceed its noise, which is estimated from the upper half of the band and assumed white.
///
/// Signals that are constant or contain only noise are ignored; the result is zero if all are.
///
/// ```
/// let wave: Vec<f64> = (0..2000).map(|k| (2.0 * 3.14159 * 3.0 * k as f64 / 200.0).sin()).collect();
/// let bandwidth = inertial_data::motion_bandwidth([&wave[..]], 200.0);
/// assert!((bandwidth - 3.0).abs() < 0.3);
/// ```
pub fn motion_bandwidth<'a>(signals: impl IntoIterator<Item = &'a [f64]>, rate_hz: f64) -> f64 {
    let of = |signal: &'a [f64]| {
        let mut spectrum = Spectrum::new(1, signal.len());
        signal.iter().for_each(|x| spectrum.push(&[*x]));
        spectrum.bands(rate_hz, |_| Origin::Measured)[0].map_or(0.0, |band| band.bandwidth_hz)
    };
    signals.into_iter().map(of).fold(0.0, f64::max)
}

/// Part of a velocity's spectrum that is motion.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Band {
    /// Frequency below which 99.9 % of the energy lies.
    pub bandwidth_hz: f64,
    /// Energy of the velocity, and of the acceleration.
    pub energy: f64,
    pub acceleration: f64,
    /// Energy of the position noise per Hz.
    pub noise: f64,
}

/// Maximum number of samples transformed at once: a longer signal is divided into equal parts, whose power spectra are averaged.
const PART: usize = 1 << 16;

/// Power spectra of several signals, updated sample by sample, in memory independent of their length.
pub(crate) struct Spectrum {
    count: usize,
    parts: usize,
    /// Number of samples seen, and number of complete parts.
    seen: usize,
    complete: usize,
    signals: Vec<Signal>,
    transform: Arc<dyn RealToComplex<f64>>,
    /// Hann window of a part.
    window: Vec<f64>,
}

struct Signal {
    samples: Vec<f64>,
    amplitudes: Vec<Complex<f64>>,
    power: Vec<f64>,
}

impl Spectrum {
    /// Creates the spectrum of `channels` signals of `count` samples.
    pub fn new(channels: usize, count: usize) -> Self {
        let parts = count.div_ceil(PART).max(1);
        let size = count.div_ceil(parts).max(1).next_power_of_two();
        let transform = RealFftPlanner::new().plan_fft_forward(size);
        let signal = |_| Signal {
            samples: Vec::with_capacity(size),
            amplitudes: transform.make_output_vec(),
            power: vec![0.0; size / 2 + 1],
        };
        let signals = (0..channels).map(signal).collect();
        Self { count, parts, seen: 0, complete: 0, signals, transform, window: Vec::new() }
    }

    /// Adds the next sample of every signal.
    pub fn push(&mut self, sample: &[f64]) {
        self.signals.iter_mut().zip(sample).for_each(|(signal, x)| signal.samples.push(*x));
        self.seen += 1;
        self.transform_complete_part();
    }

    /// Adds the next samples, signal by signal.
    pub fn extend(&mut self, samples: &[&[f64]]) {
        let (mut from, count) = (0, samples.first().map_or(0, |samples| samples.len()));
        while from < count {
            // Part k ends at (k + 1) count / parts, rounded up.
            let end = ((self.complete + 1) * self.count).div_ceil(self.parts);
            let to = count.min(from + end.saturating_sub(self.seen).max(1));
            for (signal, samples) in self.signals.iter_mut().zip(samples) {
                signal.samples.extend_from_slice(&samples[from..to]);
            }
            self.seen += to - from;
            from = to;
            self.transform_complete_part();
        }
    }

    /// Transforms the samples of the current part if it is complete.
    fn transform_complete_part(&mut self) {
        // Part k ends at (k + 1) count / parts.
        if self.seen * self.parts >= (self.complete + 1) * self.count {
            self.complete += 1;
            let n = self.signals.first().map_or(0, |signal| signal.samples.len());
            if self.window.len() != n {
                self.window.clear();
                let wave = |k: usize| (2.0 * PI * (k as f64 + 0.5) / n as f64).cos();
                self.window.extend((0..n).map(|k| 0.5 - 0.5 * wave(k)));
            }
            let (transform, window) = (&*self.transform, &self.window);
            self.signals.par_iter_mut().for_each(|signal| signal.transform(transform, window));
        }
    }

    /// Returns the band of motion of each signal; `None` if the signal is constant or contains only noise. The noise of signals that are
    /// derivatives of positions (see [`Derive`](crate::filter::differentiate::Derive)) increases with the frequency like their gain, and is
    /// at least that of their quantization.
    pub fn bands(&self, rate_hz: f64, origin: impl Fn(usize) -> Origin) -> Vec<Option<Band>> {
        // The squares of a Hann window sum up to 3/8 of its length.
        let white = 0.375 * self.seen as f64 * rate_hz.powi(2);
        let of = |(k, signal): (usize, &Signal)| match origin(k) {
            Origin::Measured => band(&signal.power, self.complete, rate_hz, None, |_| 1.0),
            Origin::Derived(stairs) => {
                // Quantization errors are uniformly distributed over the step height.
                let limits = stairs.map(|s| Limits {
                    noise: LINES * white * s.height_squared / 12.0,
                    band: UPDATES * s.changing,
                });
                band(&signal.power, self.complete, rate_hz, limits, derivative_gain)
            }
        };
        self.signals.iter().enumerate().map(of).collect()
    }
}

impl Signal {
    /// Adds the power spectrum of the samples, and clears them.
    fn transform(&mut self, transform: &dyn RealToComplex<f64>, window: &[f64]) {
        let mean = self.samples.iter().sum::<f64>() / self.samples.len() as f64;
        // Mean removal and window avoid leakage, which would increase the bandwidth.
        self.samples.iter_mut().zip(window).for_each(|(x, weight)| *x = (*x - mean) * weight);
        self.samples.resize(transform.len(), 0.0);
        // Both vectors have the lengths of the transform, which is its only requirement.
        if transform.process(&mut self.samples, &mut self.amplitudes).is_ok() {
            let powers = self.amplitudes.iter().map(Complex::norm_sqr);
            self.power.iter_mut().zip(powers).for_each(|(sum, power)| *sum += power);
        }
        self.samples.clear();
    }
}

/// Limits of a spectrum due to a staircase.
#[derive(Clone, Copy)]
struct Limits {
    /// Minimum power of the noise.
    noise: f64,
    /// Part of the band, from zero to half the rate, that can contain motion.
    band: f64,
}

/// Finds the motion in the power spectrum of a velocity. `gain` is the gain of the derivative at an angle per sample, times the step.
fn band(
    power: &[f64],
    parts: usize,
    rate_hz: f64,
    limits: Option<Limits>,
    gain: impl Fn(f64) -> f64,
) -> Option<Band> {
    let Limits { noise: least, band } = limits.unwrap_or(Limits { noise: 0.0, band: 1.0 });
    let half = power.len() - 1;
    let angle = |k: usize| PI * k as f64 / half.max(1) as f64;
    let shape = |k: usize| gain(angle(k)).powi(2);
    let [low, high] = QUIET.map(|share| (share * half as f64) as usize);
    let mut quiet: Vec<f64> = (low.max(1)..high).map(|k| power[k] / shape(k)).collect();
    let middle = quiet.len() / 2;
    let median = if quiet.is_empty() { 0.0 } else { *quiet.select_nth_unstable_by(middle, f64::total_cmp).1 };
    // Median of the mean of n exponentially distributed numbers (Wilson and Hilferty).
    let noise = (median / (1.0 - 1.0 / (9.0 * parts.max(1) as f64)).powi(3)).max(least);
    let last = ((band * half as f64) as usize).min(half);
    let weak = WEAK * power[..=last].iter().copied().fold(0.0, f64::max);
    let motion = |k: usize| {
        if k <= last && power[k] > weak.max(CLEAR * noise * shape(k)) { power[k] } else { 0.0 }
    };
    let energy: f64 = (0..=half).map(motion).sum();
    if energy <= 0.0 {
        return None;
    }
    let mut sum = 0.0;
    let end = (0..=half).find(|&k| {
        sum += motion(k);
        sum >= ENERGY * energy
    });
    let bin = 0.5 * rate_hz / half.max(1) as f64;
    Some(Band {
        bandwidth_hz: end.unwrap_or(half) as f64 * bin,
        energy,
        acceleration: (0..=half).map(|k| motion(k) * (angle(k) * rate_hz).powi(2)).sum(),
        noise: noise / (rate_hz.powi(2) * bin),
    })
}

/// Returns the gain of the fourth-order differences, times the step, at an angle per sample.
fn derivative_gain(angle: f64) -> f64 {
    (8.0 * angle.sin() - (2.0 * angle).sin()) / 6.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bandwidth_does_not_depend_on_other_signals_or_parts() {
        let count = 3 * PART - 1000;
        let wave = |f: f64, k: usize| (2.0 * PI * f * k as f64 / 1000.0).sin();
        let mut spectrum = Spectrum::new(3, count);
        (0..count).for_each(|k| spectrum.push(&[wave(1.0, k), 1e3 * wave(7.0, k), wave(3.0, k)]));
        let mut extended = Spectrum::new(3, count);
        let waves = [(1.0, 1.0), (1e3, 7.0), (1.0, 3.0)];
        let columns = waves.map(|(size, f)| (0..count).map(|k| size * wave(f, k)).collect::<Vec<f64>>());
        for from in (0..count).step_by(50_001) {
            let to = count.min(from + 50_001);
            extended.extend(&columns.each_ref().map(|column| &column[from..to]));
        }
        let powers =
            |spectrum: &Spectrum| spectrum.signals.iter().map(|s| s.power.clone()).collect::<Vec<_>>();
        assert_eq!(powers(&extended), powers(&spectrum));
        let bands = spectrum.bands(1000.0, |_| Origin::Measured);
        let found: Vec<f64> = bands.iter().map(|b| b.map_or(0.0, |b| b.bandwidth_hz)).collect();
        // A part lasts 65 s, and the window widens a line by two of its bins of 1/65 Hz.
        for (found, expected) in found.iter().zip([1.0, 7.0, 3.0, 0.0]) {
            assert!((found - expected).abs() < 0.04, "{found} {expected}");
        }
        assert_eq!(spectrum.complete, 3);
    }

    #[test]
    fn stairs_are_no_motion() {
        // A motion of 0.5 Hz in steps of a tenth of a degree: the errors are lines far above the median of the spectrum.
        let (rate, height) = (1000.0, 0.1f64.to_radians());
        let position = |k: usize| ((0.5 * (PI * k as f64 / rate).sin()) / height).round() * height;
        let mut spectrum = Spectrum::new(1, 20_000);
        (2..20_002).for_each(|k| {
            let near = position(k + 1) - position(k - 1);
            spectrum.push(&[(8.0 * near - (position(k + 2) - position(k - 2))) * rate / 12.0]);
        });
        let bandwidth = |stairs| spectrum.bands(rate, |_| Origin::Derived(stairs))[0].unwrap().bandwidth_hz;
        assert!(bandwidth(None) > 50.0);
        let stairs = Stairs { height_squared: height * height, changing: 1.0 };
        assert!((bandwidth(Some(stairs)) - 0.5).abs() < 0.2);
    }

    #[test]
    fn repeated_values_are_no_motion() {
        // Measured at 50 Hz, logged at 250 Hz: the aliases lie at multiples of 50 Hz.
        let rate = 250.0;
        let position = |k: usize| (2.0 * PI * (k / 5) as f64 / 50.0).sin();
        let mut spectrum = Spectrum::new(1, 10_000);
        (2..10_002).for_each(|k| {
            let near = position(k + 1) - position(k - 1);
            spectrum.push(&[(8.0 * near - (position(k + 2) - position(k - 2))) * rate / 12.0]);
        });
        // The mean square of a step is half the square of the largest, 2π/50.
        let stairs = Stairs { height_squared: 0.5 * (2.0 * PI / 50.0).powi(2), changing: 0.2 };
        let found = spectrum.bands(rate, |_| Origin::Derived(Some(stairs)))[0].unwrap().bandwidth_hz;
        assert!((found - 1.0).abs() < 0.2, "{found}");
    }
}
