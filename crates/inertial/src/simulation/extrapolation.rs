//! Integration of ordinary differential equations by extrapolation, with almost full precision.

use crate::{Error, Result};

/// Largest number of columns of the extrapolation table: order 16.
const COLUMNS: usize = 8;

/// Column up to which convergence permits a larger step; later convergence requires a smaller one.
const EASY: usize = 4;

/// Smallest step, relative to the interval (or to the time); smaller steps make no progress.
const SHORTEST: f64 = 1e-12;

/// Largest number of steps between two requested times.
const MOST_STEPS: usize = 10_000;

/// Integrator of `y' = f(t, y)` with step size and order selected for a tolerance (Gragg, Bulirsch and Stoer; Hairer, Nørsett and
/// Wanner, *Solving Ordinary Differential Equations I*, II.9).
///
/// The explicit midpoint rule with 2, 4, 6 … substeps has an error expansion in even powers of the substep, which is extrapolated
/// to zero. Steps end exactly at the requested times, so there is no interpolation, and a step can end at a kink of `f`.
///
/// ```
/// use inertial::simulation::Extrapolation;
/// let mut integrator = Extrapolation::new(2, 1e-13);
/// let mut y = [1.0, 0.0];
/// let oscillator = |_: f64, y: &[f64], rate: &mut [f64]| {
///     rate.copy_from_slice(&[y[1], -y[0]]);
///     Ok(())
/// };
/// integrator.advance(0.0, 10.0, &mut y, oscillator)?;
/// assert!((y[0] - 10f64.cos()).abs() < 1e-11);
/// # Ok::<(), inertial::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Extrapolation {
    tolerance: f64,
    /// Step size that is likely to succeed next; kept between calls.
    step: f64,
    /// Last row of the table, one column after the other.
    table: [Vec<f64>; COLUMNS],
    start: Vec<f64>,
    rate: Vec<f64>,
    before: Vec<f64>,
    now: Vec<f64>,
}

impl Extrapolation {
    /// Creates an integrator of `n` unknowns; the error of each step is at most `tolerance · (1 + |y|)` in every unknown.
    pub fn new(n: usize, tolerance: f64) -> Self {
        let zeros = || vec![0.0; n];
        Self {
            tolerance,
            step: f64::INFINITY,
            table: std::array::from_fn(|_| zeros()),
            start: zeros(),
            rate: zeros(),
            before: zeros(),
            now: zeros(),
        }
    }

    /// Integrates `y` from time `from` to time `to`. If `rate` fails on the way, shorter steps are tried first.
    pub fn advance(
        &mut self,
        from: f64,
        to: f64,
        y: &mut [f64],
        mut rate: impl FnMut(f64, &[f64], &mut [f64]) -> Result<()>,
    ) -> Result<()> {
        let (mut t, mut steps) = (from, 0);
        while t < to {
            steps += 1;
            if steps > MOST_STEPS {
                let message = format!(
                    "the motion from t = {from} s to {to} s is too fast: it needs more than {MOST_STEPS} steps"
                );
                return Err(Error::Infeasible(message));
            }
            let left = to - t;
            // If two steps are needed, the last one should not be very short.
            let last = self.step >= left;
            let step = if last {
                left
            } else if 2.0 * self.step > left {
                0.5 * left
            } else {
                self.step
            };
            rate(t, y, &mut self.start)?;
            match self.attempt(t, step, y, &mut rate) {
                Ok(Some(column)) => {
                    y.copy_from_slice(&self.table[column]);
                    t = if last { to } else { t + step };
                    let factor = if column <= EASY {
                        2.0
                    } else if column + 2 > COLUMNS {
                        0.7
                    } else {
                        1.0
                    };
                    // A step that was shortened by the end of the interval does not limit later ones.
                    self.step =
                        if last && factor >= 1.0 { self.step.max(step * factor) } else { step * factor };
                }
                failed => {
                    self.step = 0.5 * step;
                    if self.step <= SHORTEST * (to - from).max(t.abs() * f64::EPSILON / SHORTEST) {
                        let too_small =
                            || Error::Singular(format!("the motion cannot be followed beyond t = {t} s"));
                        return Err(failed.err().unwrap_or_else(too_small));
                    }
                }
            }
        }
        Ok(())
    }

    /// Fills the table until a column agrees with the previous one and returns its index; `None` without convergence.
    fn attempt(
        &mut self,
        t: f64,
        step: f64,
        y: &[f64],
        rate: &mut impl FnMut(f64, &[f64], &mut [f64]) -> Result<()>,
    ) -> Result<Option<usize>> {
        for row in 0..COLUMNS {
            self.midpoint(t, step, 2 * (row + 1), y, rate)?;
            // Neville's scheme in the square of the substep: `now` becomes the next column of the row, and the previous row is
            // replaced in the table.
            for column in 0..row {
                let ratio = (row + 1) as f64 / (row - column) as f64;
                let factor = (ratio * ratio - 1.0).recip();
                for (old, now) in self.table[column].iter_mut().zip(&mut self.now) {
                    let next = *now + (*now - *old) * factor;
                    *old = std::mem::replace(now, next);
                }
            }
            self.table[row].copy_from_slice(&self.now);
            if row >= 2 {
                let scaled = |((new, old), y): ((&f64, &f64), &f64)| {
                    (new - old).abs() / (1.0 + y.abs().max(new.abs()))
                };
                let pairs = self.now.iter().zip(&self.table[row - 1]).zip(y);
                // The comparison fails for NaN.
                let converged = pairs.map(scaled).all(|error| error <= self.tolerance);
                if converged {
                    return Ok(Some(row));
                }
            }
        }
        Ok(None)
    }

    /// Applies the midpoint rule with `count` substeps, from the rate in `start`; the result is in `now`.
    fn midpoint(
        &mut self,
        t: f64,
        step: f64,
        count: usize,
        y: &[f64],
        rate: &mut impl FnMut(f64, &[f64], &mut [f64]) -> Result<()>,
    ) -> Result<()> {
        let h = step / count as f64;
        self.before.copy_from_slice(y);
        for ((now, y), start) in self.now.iter_mut().zip(y).zip(&self.start) {
            *now = y + h * start;
        }
        for k in 1..count {
            rate(t + h * k as f64, &self.now, &mut self.rate)?;
            for (before, rate) in self.before.iter_mut().zip(&self.rate) {
                *before += 2.0 * h * rate;
            }
            std::mem::swap(&mut self.before, &mut self.now);
        }
        Ok(())
    }
}
