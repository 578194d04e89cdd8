//! A Butterworth low-pass without phase: run forward, then backward.

use std::f64::consts::PI;

use crate::{Error, Result, count};

/// One second-order section, `b0 b1 b2 a1 a2` with `a0 = 1`.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Section {
    b: [f64; 3],
    a: [f64; 2],
}

/// Butterworth low-pass, applied forward and backward: no phase, gain `1/(1 + (tan πf/r / tan πf₀/r)^2n)` at the frequency
/// `f` for the order `n`, the cut-off `f₀` and the rate `r`; so one half (−6 dB) at the cut-off.
///
/// ```
/// let filter = inertial_data::LowPass::new(4, 5.0, 100.0)?;
/// let mut x = vec![2.5; 200];
/// filter.apply(&mut x);
/// assert!(x.iter().all(|x| (x - 2.5).abs() < 1e-12));
/// # Ok::<(), inertial_data::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct LowPass {
    sections: Vec<Section>,
    settling: usize,
}

impl LowPass {
    /// A filter of the given order for signals of the given rate, by the bilinear transform.
    pub fn new(order: usize, cutoff_hz: f64, rate_hz: f64) -> Result<Self> {
        if !(1..=20).contains(&order) {
            return Err(Error::Option(format!("filter order {order}: expected 1 to 20")));
        }
        if !(cutoff_hz > 0.0 && cutoff_hz < 0.5 * rate_hz && rate_hz.is_finite()) {
            let message = format!(
                "cut-off {cutoff_hz} Hz: expected more than 0 and less than half the rate of {rate_hz} Hz"
            );
            return Err(Error::Option(message));
        }
        // The bilinear transform maps the analogue frequency k to the cut-off.
        let k = (PI * cutoff_hz / rate_hz).tan();
        // Poles of a pair at the angle φ from the negative real axis: s² + 2 cos φ s + 1.
        let mut sections: Vec<Section> = (0..order / 2)
            .map(|i| {
                let damping = 2.0 * (PI * (order - 1 - 2 * i) as f64 / (2 * order) as f64).cos();
                let norm = 1.0 / (1.0 + damping * k + k * k);
                let b = k * k * norm;
                Section {
                    b: [b, 2.0 * b, b],
                    a: [2.0 * (k * k - 1.0) * norm, (1.0 - damping * k + k * k) * norm],
                }
            })
            .collect();
        if order % 2 == 1 {
            let norm = 1.0 / (1.0 + k);
            sections.push(Section { b: [k * norm, k * norm, 0.0], a: [(k - 1.0) * norm, 0.0] });
        }
        // The slowest pair decays as exp(−2π f₀ sin(π/2n) t): to 1e-3 after this many samples.
        let decay = 2.0 * PI * cutoff_hz * (PI / (2 * order) as f64).sin();
        let settling = count((1e3_f64.ln() / decay * rate_hz).ceil());
        Ok(Self { sections, settling })
    }

    /// Samples until a disturbance has decayed to a thousandth.
    pub fn settling(&self) -> usize {
        self.settling
    }

    /// Filters in place, forward and backward. The signal is continued at both ends by its point reflection, and each pass
    /// starts in the steady state of its first value.
    pub fn apply(&self, x: &mut [f64]) {
        let n = x.len();
        if n < 2 {
            return;
        }
        let pad = self.settling.min(n - 1);
        let (first, last) = (x[0], x[n - 1]);
        let mut long: Vec<f64> = Vec::with_capacity(n + 2 * pad);
        long.extend((1..=pad).rev().map(|k| 2.0 * first - x[k]));
        long.extend_from_slice(x);
        long.extend((1..=pad).map(|k| 2.0 * last - x[n - 1 - k]));
        self.pass(long.iter_mut());
        self.pass(long.iter_mut().rev());
        x.copy_from_slice(&long[pad..pad + n]);
    }

    /// One pass, all sections at once (transposed direct form II).
    fn pass<'a>(&self, signal: impl Iterator<Item = &'a mut f64>) {
        let mut signal = signal.peekable();
        let Some(start) = signal.peek().map(|x| **x) else { return };
        // Each section has gain one at rest, so the steady state of all is that of the first value.
        let mut states: Vec<[f64; 2]> = self
            .sections
            .iter()
            .map(|s| {
                let second = (s.b[2] - s.a[1]) * start;
                [(s.b[1] - s.a[0]) * start + second, second]
            })
            .collect();
        for x in signal {
            for (s, z) in self.sections.iter().zip(&mut states) {
                let y = s.b[0] * *x + z[0];
                z[0] = s.b[1] * *x - s.a[0] * y + z[1];
                z[1] = s.b[2] * *x - s.a[1] * y;
                *x = y;
            }
        }
    }
}
