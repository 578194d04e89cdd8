//! Zero-phase Butterworth low-pass: run forward, then backward.

use std::f64::consts::PI;

use crate::{Error, Result, count};

/// Lowest cut-off relative to the sampling rate. Below it the filter's memory exceeds the length of logs, and its coefficients suffer
/// from rounding errors.
pub const LOWEST_CUTOFF: f64 = 1e-5;

/// Second-order section, `b0 b1 b2 a1 a2` with `a0 = 1`.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Section {
    b: [f64; 3],
    a: [f64; 2],
}

impl Section {
    /// Returns the logarithmic decrement per sample of the slower pole.
    fn decay(&self) -> f64 {
        // z² + a₀ z + a₁: a pair of modulus √a₁, or two real poles.
        let discriminant = self.a[0] * self.a[0] - 4.0 * self.a[1];
        let radius =
            if discriminant < 0.0 { self.a[1].sqrt() } else { 0.5 * (self.a[0].abs() + discriminant.sqrt()) };
        -radius.ln()
    }
}

/// Butterworth low-pass, applied forward and backward: zero phase, gain `1/(1 + (tan πf/r / tan πf₀/r)^2n)` at the frequency
/// `f` for the order `n`, the cut-off `f₀` and the rate `r`. The gain at the cut-off is one half (−6 dB).
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
    forgetting: usize,
}

impl LowPass {
    /// Creates a filter of the given order for signals of the given rate, by the bilinear transform.
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
        if cutoff_hz < LOWEST_CUTOFF * rate_hz {
            let message = format!(
                "cut-off {cutoff_hz:?} Hz: expected at least {:?} Hz, a 100000th of the rate of the log",
                LOWEST_CUTOFF * rate_hz
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
        // The slowest pole pair decays as exp(−2π f₀ sin(π/2n) t): to 1e-3 after this many samples.
        let decay = 2.0 * PI * cutoff_hz * (PI / (2 * order) as f64).sin();
        let settling = count((1e3_f64.ln() / decay * rate_hz).ceil());
        // The bilinear transform distorts this decay at high cut-offs; a strict bound follows from the poles themselves.
        let slowest = sections.iter().map(Section::decay).fold(f64::INFINITY, f64::min);
        let forgetting = count((1e18_f64.ln() / slowest).ceil());
        Ok(Self { sections, settling, forgetting })
    }

    /// Returns the number of samples after which a disturbance is below the rounding error.
    pub(crate) fn forgetting(&self) -> usize {
        self.forgetting
    }

    /// Returns the states in which every column is at rest at its value in `row`: two numbers per section and column.
    pub(crate) fn rest(&self, row: &[f64]) -> Vec<f64> {
        let first = |s: &Section| s.b[1] - s.a[0] + s.b[2] - s.a[1];
        let second = |s: &Section| s.b[2] - s.a[1];
        let parts = self.sections.iter().flat_map(|s| [first(s), second(s)]);
        parts.flat_map(|gain| row.iter().map(move |x| gain * x)).collect()
    }

    /// Performs one step of all columns of a row (transposed direct form II).
    #[inline(always)]
    pub(crate) fn step(&self, row: &mut [f64], states: &mut [f64]) {
        let width = row.len();
        for (s, states) in self.sections.iter().zip(states.chunks_exact_mut(2 * width)) {
            let (first, second) = states.split_at_mut(width);
            for ((x, z0), z1) in row.iter_mut().zip(first).zip(second) {
                let y = s.b[0] * *x + *z0;
                *z0 = s.b[1] * *x - s.a[0] * y + *z1;
                *z1 = s.b[2] * *x - s.a[1] * y;
                *x = y;
            }
        }
    }

    /// Returns the gain of both passes together at a frequency.
    pub fn gain(&self, frequency_hz: f64, rate_hz: f64) -> f64 {
        let (sine, cosine) = (2.0 * PI * frequency_hz / rate_hz).sin_cos();
        let (sine2, cosine2) = (2.0 * sine * cosine, cosine * cosine - sine * sine);
        let square = |c0: f64, c1: f64, c2: f64| {
            (c0 + c1 * cosine + c2 * cosine2).powi(2) + (c1 * sine + c2 * sine2).powi(2)
        };
        self.sections.iter().map(|s| square(s.b[0], s.b[1], s.b[2]) / square(1.0, s.a[0], s.a[1])).product()
    }

    /// Returns the number of samples until a disturbance has decayed to a thousandth.
    pub fn settling(&self) -> usize {
        self.settling
    }

    /// Filters in place, forward and backward. The signal is extended at both ends by point reflection, and each pass
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
        for _ in 0..2 {
            let mut states = self.rest(&long[..1]);
            long.chunks_exact_mut(1).for_each(|x| self.step(x, &mut states));
            long.reverse();
        }
        x.copy_from_slice(&long[pad..pad + n]);
    }
}
