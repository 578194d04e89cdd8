//! Savitzky–Golay smoothing: the value of the best-fitting polynomial in the middle of a window.

use std::f64::consts::PI;

use crate::{Error, Result};

/// Maximum number of samples of a window: the work on a log is its length times that of the window.
pub const MOST_WINDOW: usize = 20_001;

/// Symmetric window of weights; polynomials up to its order pass unchanged.
///
/// ```
/// // The classic window of five points for parabolas.
/// let window = inertial_data::SavitzkyGolay::new(5, 2)?;
/// let expected = [-3.0, 12.0, 17.0, 12.0, -3.0].map(|w| w / 35.0);
/// assert!(window.weights().iter().zip(expected).all(|(w, e)| (w - e).abs() < 1e-15));
/// # Ok::<(), inertial_data::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct SavitzkyGolay {
    weights: Vec<f64>,
}

impl SavitzkyGolay {
    /// Creates a window of an odd number of samples, for polynomials of `order`.
    pub fn new(window: usize, order: usize) -> Result<Self> {
        if window.is_multiple_of(2) || window <= order || order > 8 {
            let message = format!(
                "a Savitzky–Golay window of {window} samples for order {order}: expected an odd window longer than an order of at most 8"
            );
            return Err(Error::Option(message));
        }
        if window > MOST_WINDOW {
            let message = format!(
                "a Savitzky–Golay window of {window} samples: expected at most {MOST_WINDOW}; resample the log"
            );
            return Err(Error::Option(message));
        }
        let half = (window / 2) as f64;
        // Polynomials orthonormal on the window, by Stieltjes' recurrence. The weights are the sum of these polynomials, each
        // multiplied by its value in the middle; the odd polynomials vanish there but are needed by the recurrence.
        let at = |i: usize| if half > 0.0 { (i as f64 - half) / half } else { 0.0 };
        let mut weights = vec![0.0; window];
        let mut before = vec![0.0; window];
        let mut now = vec![1.0 / (window as f64).sqrt(); window];
        for _ in 0..=order {
            let middle = now[window / 2];
            weights.iter_mut().zip(&now).for_each(|(w, p)| *w += middle * p);
            let mut next: Vec<f64> = (0..window).map(|i| at(i) * now[i]).collect();
            for known in [&now, &before] {
                let share: f64 = next.iter().zip(known).map(|(n, k)| n * k).sum();
                next.iter_mut().zip(known).for_each(|(n, k)| *n -= share * k);
            }
            let norm = next.iter().map(|x| x * x).sum::<f64>().sqrt();
            if norm > 0.0 {
                next.iter_mut().for_each(|x| *x /= norm);
            }
            before = std::mem::replace(&mut now, next);
        }
        Ok(Self { weights })
    }

    /// Creates the shortest window of `order` whose gain is one half at most `cutoff_hz`.
    pub fn with_cutoff(order: usize, cutoff_hz: f64, rate_hz: f64) -> Result<Self> {
        // Except for short windows, the gain depends on the product of frequency and length: bisection over odd lengths.
        let most = MOST_WINDOW / 2;
        let (mut low, mut high) = (order / 2, 1);
        while Self::new(2 * high.max(low + 1) + 1, order)?.cutoff_hz(rate_hz) > cutoff_hz {
            if high >= most {
                let message = format!(
                    "a Savitzky–Golay filter with the cut-off {cutoff_hz:?} Hz needs a window of more than {MOST_WINDOW} samples: choose \
                     a higher cut-off, resample the log, or use the Butterworth filter"
                );
                return Err(Error::Option(message));
            }
            low = high.max(low);
            high = (2 * high).min(most);
        }
        high = high.max(low + 1);
        while high - low > 1 {
            let middle = usize::midpoint(low, high);
            if Self::new(2 * middle + 1, order)?.cutoff_hz(rate_hz) > cutoff_hz {
                low = middle;
            } else {
                high = middle;
            }
        }
        Self::new(2 * high + 1, order)
    }

    /// Returns the weights.
    pub fn weights(&self) -> &[f64] {
        &self.weights
    }

    /// Returns the number of samples on either side of the middle.
    pub fn half(&self) -> usize {
        self.weights.len() / 2
    }

    /// Returns the gain at a frequency.
    pub fn gain(&self, frequency_hz: f64, rate_hz: f64) -> f64 {
        let turn = 2.0 * PI * frequency_hz / rate_hz;
        let half = self.half() as f64;
        self.weights.iter().enumerate().map(|(i, w)| w * (turn * (i as f64 - half)).cos()).sum()
    }

    /// Returns the lowest frequency with a gain of one half.
    pub fn cutoff_hz(&self, rate_hz: f64) -> f64 {
        // The width of the first lobe is a few periods per window.
        let step = rate_hz / self.weights.len() as f64 / 16.0;
        let mut high = step;
        while high < 0.5 * rate_hz && self.gain(high, rate_hz) > 0.5 {
            high += step;
        }
        if high >= 0.5 * rate_hz {
            return 0.5 * rate_hz;
        }
        let mut low = high - step;
        for _ in 0..50 {
            let middle = 0.5 * (low + high);
            if self.gain(middle, rate_hz) > 0.5 {
                low = middle;
            } else {
                high = middle;
            }
        }
        high
    }

    /// Appends the smoothed middle row of `2 pad + 1` rows; `pad` is smaller than half the window if the signal is shorter.
    pub(crate) fn middle(&self, rows: &[f64], width: usize, pad: usize, out: &mut Vec<f64>) {
        let start = out.len();
        out.resize(start + width, 0.0);
        let skipped = self.half() - pad;
        let inner = &self.weights[skipped..self.weights.len() - skipped];
        // The weights beyond the ends are added to the middle, so that constants pass unchanged.
        let beyond: f64 = 1.0 - inner.iter().sum::<f64>();
        for (k, (row, weight)) in rows.chunks_exact(width).zip(inner).enumerate() {
            let weight = if k == pad { weight + beyond } else { *weight };
            out[start..].iter_mut().zip(row).for_each(|(y, x)| *y += weight * x);
        }
    }
}
