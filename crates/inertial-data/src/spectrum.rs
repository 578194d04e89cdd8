//! The bandwidth of a motion, from its spectrum.

use std::f64::consts::PI;

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
    signals.into_iter().map(|signal| bandwidth(signal, rate_hz)).fold(0.0, f64::max)
}

fn bandwidth(signal: &[f64], rate_hz: f64) -> f64 {
    let n = signal.len();
    if n < 2 {
        return 0.0;
    }
    let mean = signal.iter().sum::<f64>() / n as f64;
    let size = n.next_power_of_two();
    let mut re = vec![0.0; size];
    let mut im = vec![0.0; size];
    // Hann window: leakage must not look like bandwidth.
    for (k, x) in signal.iter().enumerate() {
        re[k] = (x - mean) * (0.5 - 0.5 * (2.0 * PI * (k as f64 + 0.5) / n as f64).cos());
    }
    fft(&mut re, &mut im);
    let power: Vec<f64> = (0..=size / 2).map(|k| re[k] * re[k] + im[k] * im[k]).collect();
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
    bin.unwrap_or(size / 2) as f64 * rate_hz / size as f64
}

/// In-place discrete Fourier transform, radix 2; the length is a power of two.
fn fft(re: &mut [f64], im: &mut [f64]) {
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
        let turns: Vec<(f64, f64)> = (0..half).map(|k| (-PI * k as f64 / half as f64).sin_cos()).collect();
        for start in (0..n).step_by(2 * half) {
            for (k, &(s, c)) in turns.iter().enumerate() {
                let (i, j) = (start + k, start + k + half);
                let (x, y) = (re[j] * c - im[j] * s, re[j] * s + im[j] * c);
                (re[j], im[j]) = (re[i] - x, im[i] - y);
                (re[i], im[i]) = (re[i] + x, im[i] + y);
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
        fft(&mut re, &mut im);
        for f in 0..n {
            let angle = |k: usize| -2.0 * PI * (f * k) as f64 / n as f64;
            let c: f64 = x.iter().enumerate().map(|(k, x)| x * angle(k).cos()).sum();
            let s: f64 = x.iter().enumerate().map(|(k, x)| x * angle(k).sin()).sum();
            // 32 terms of size 6: rounding is below 1e-12.
            assert!((re[f] - c).abs() < 1e-12 && (im[f] - s).abs() < 1e-12);
        }
    }
}
