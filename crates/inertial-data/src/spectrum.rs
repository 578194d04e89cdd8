//! The bandwidth of a motion, from its spectrum.

use std::f64::consts::PI;

use rayon::prelude::{IntoParallelRefMutIterator, ParallelIterator};

/// Bins weaker than this share of the strongest are noise: quantisation and sensor noise spread over all bins and lie
/// below −40 dB on real logs, while the motion is concentrated.
const NOISE: f64 = 1e-4;
/// Share of a motion's energy within its bandwidth.
const ENERGY: f64 = 0.999;

/// The frequency below which 99.9 % of the energy of every signal lies, bins below −40 dB of its peak left out.
///
/// Signals that stand still have no say; zero where all do.
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
        spectrum.bandwidth(rate_hz)
    };
    signals.into_iter().map(of).fold(0.0, f64::max)
}

/// Samples transformed at once: a longer signal is cut into equal parts no longer than this, whose powers are averaged.
const PART: usize = 1 << 16;

/// Powers of several signals, sample by sample, in memory that does not depend on their length.
pub(crate) struct Spectrum {
    count: usize,
    parts: usize,
    /// Samples seen, and those of the parts that are complete.
    seen: usize,
    complete: usize,
    pairs: Vec<Pair>,
    turns: Vec<(f64, f64)>,
}

/// Two real signals are transformed together, as real and imaginary part of one.
struct Pair {
    signals: [Vec<f64>; 2],
    powers: [Vec<f64>; 2],
}

impl Spectrum {
    /// Of `channels` signals of `count` samples.
    pub fn new(channels: usize, count: usize) -> Self {
        let parts = count.div_ceil(PART).max(1);
        let size = count.div_ceil(parts).max(1).next_power_of_two();
        let pair = |_| Pair {
            signals: [Vec::with_capacity(size), Vec::with_capacity(size)],
            powers: [vec![0.0; size / 2 + 1], vec![0.0; size / 2 + 1]],
        };
        let turns = (0..size / 2).map(|k| (-2.0 * PI * k as f64 / size as f64).sin_cos()).collect();
        Self {
            count,
            parts,
            seen: 0,
            complete: 0,
            pairs: (0..channels.div_ceil(2)).map(pair).collect(),
            turns,
        }
    }

    /// The next sample of every signal.
    pub fn push(&mut self, sample: &[f64]) {
        for (pair, values) in self.pairs.iter_mut().zip(sample.chunks(2)) {
            for (signal, x) in pair.signals.iter_mut().zip(values) {
                signal.push(*x);
            }
        }
        self.seen += 1;
        // Part k ends at (k + 1) count / parts.
        if self.seen * self.parts >= (self.complete + 1) * self.count {
            self.complete += 1;
            let turns = &self.turns;
            self.pairs.par_iter_mut().for_each(|pair| pair.transform(turns));
        }
    }

    /// The greatest bandwidth of all signals; zero where all stand still.
    pub fn bandwidth(&self, rate_hz: f64) -> f64 {
        self.pairs.iter().flat_map(|pair| pair.bandwidths(rate_hz)).fold(0.0, f64::max)
    }
}

/// A signal with less than this share of its partner's power is rounding of the common transform: it stands still.
const ROUNDING: f64 = 1e-24;

impl Pair {
    fn bandwidths(&self, rate_hz: f64) -> [f64; 2] {
        let peaks = self.powers.each_ref().map(|power| power.iter().copied().fold(0.0, f64::max));
        [0, 1].map(
            |k| {
                if peaks[k] > ROUNDING * peaks[1 - k] { bandwidth(&self.powers[k], rate_hz) } else { 0.0 }
            },
        )
    }

    fn transform(&mut self, turns: &[(f64, f64)]) {
        let size = (2 * turns.len()).max(1);
        let n = self.signals[0].len();
        for signal in &mut self.signals {
            let mean = signal.iter().sum::<f64>() / n as f64;
            // Hann window: leakage must not look like bandwidth.
            for (k, x) in signal.iter_mut().enumerate() {
                *x = (*x - mean) * (0.5 - 0.5 * (2.0 * PI * (k as f64 + 0.5) / n as f64).cos());
            }
            signal.resize(size, 0.0);
        }
        let [re, im] = &mut self.signals;
        fft(re, im, turns);
        for k in 0..self.powers[0].len() {
            // The transform of a real signal is even, that of an imaginary one odd (conjugated).
            let j = (size - k) % size;
            let (even, odd) = ((re[k] + re[j], im[k] - im[j]), (im[k] + im[j], re[j] - re[k]));
            self.powers[0][k] += 0.25 * (even.0 * even.0 + even.1 * even.1);
            self.powers[1][k] += 0.25 * (odd.0 * odd.0 + odd.1 * odd.1);
        }
        self.signals.iter_mut().for_each(Vec::clear);
    }
}

fn bandwidth(power: &[f64], rate_hz: f64) -> f64 {
    let floor = NOISE * power.iter().copied().fold(0.0, f64::max);
    let clean = |p: f64| if p > floor { p } else { 0.0 };
    let total: f64 = power.iter().copied().map(clean).sum();
    if total <= 0.0 {
        return 0.0;
    }
    let mut sum = 0.0;
    let bin = power.iter().position(|&p| {
        sum += clean(p);
        sum >= ENERGY * total
    });
    let half = power.len() - 1;
    bin.unwrap_or(half) as f64 * rate_hz / (2 * half).max(1) as f64
}

/// In-place discrete Fourier transform, radix 2; the length is a power of two, `turns` the sines and cosines of half a turn.
fn fft(re: &mut [f64], im: &mut [f64], turns: &[(f64, f64)]) {
    let n = re.len();
    let bits = n.trailing_zeros();
    for i in 0..n {
        let j = if bits == 0 { i } else { i.reverse_bits() >> (usize::BITS - bits) };
        if i < j {
            re.swap(i, j);
            im.swap(i, j);
        }
    }
    let mut half = 1;
    while half < n {
        let stride = n / 2 / half;
        for start in (0..n).step_by(2 * half) {
            let (re, im) = (&mut re[start..start + 2 * half], &mut im[start..start + 2 * half]);
            for k in 0..half {
                let ((s, c), j) = (turns[k * stride], k + half);
                let (x, y) = (re[j] * c - im[j] * s, re[j] * s + im[j] * c);
                (re[j], im[j]) = (re[k] - x, im[k] - y);
                (re[k], im[k]) = (re[k] + x, im[k] + y);
            }
        }
        half *= 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_transform_agrees_with_its_definition() {
        let n = 32;
        let x: Vec<f64> = (0..n).map(|k| ((k * k * 7 + 3 * k) % 13) as f64 - 6.0).collect();
        let (mut re, mut im) = (x.clone(), vec![0.0; n]);
        let turns: Vec<_> = (0..n / 2).map(|k| (-2.0 * PI * k as f64 / n as f64).sin_cos()).collect();
        fft(&mut re, &mut im, &turns);
        for f in 0..n {
            let angle = |k: usize| -2.0 * PI * (f * k) as f64 / n as f64;
            let c: f64 = x.iter().enumerate().map(|(k, x)| x * angle(k).cos()).sum();
            let s: f64 = x.iter().enumerate().map(|(k, x)| x * angle(k).sin()).sum();
            // 32 terms of size 6: rounding is below 1e-12.
            assert!((re[f] - c).abs() < 1e-12 && (im[f] - s).abs() < 1e-12);
        }
    }

    #[test]
    fn signals_in_pairs_and_in_parts_have_the_bandwidth_of_one_alone() {
        let count = 3 * PART - 1000;
        let wave = |f: f64, k: usize| (2.0 * PI * f * k as f64 / 1000.0).sin();
        let mut spectrum = Spectrum::new(3, count);
        (0..count).for_each(|k| spectrum.push(&[wave(1.0, k), 1e3 * wave(7.0, k), wave(3.0, k)]));
        let found: Vec<f64> = spectrum.pairs.iter().flat_map(|pair| pair.bandwidths(1000.0)).collect();
        // A part lasts 65 s, and the window widens a line by two of its bins of 1/65 Hz.
        for (found, expected) in found.iter().zip([1.0, 7.0, 3.0, 0.0]) {
            assert!((found - expected).abs() < 0.04, "{found} {expected}");
        }
        assert_eq!(spectrum.complete, 3);
    }
}
