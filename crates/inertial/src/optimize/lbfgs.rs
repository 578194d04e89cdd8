//! Unconstrained gradient-based minimization: limited-memory BFGS (Nocedal 1980).

use std::collections::VecDeque;

use crate::{Error, Result};

/// Options of [`minimize`].
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Options {
    /// Largest number of steps.
    pub steps: usize,
    /// Number of stored pairs of steps and gradient changes.
    pub memory: usize,
    /// Decrease over ten steps, relative to the value, below which the search stops.
    pub gain: f64,
}

crate::with_changes!(Options);

impl Default for Options {
    fn default() -> Self {
        Self { steps: 200, memory: 20, gain: 1e-6 }
    }
}

/// Minimum found.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Minimum {
    /// Minimizer.
    pub x: Vec<f64>,
    /// Value at the minimizer.
    pub value: f64,
    /// Number of steps.
    pub steps: usize,
    /// Whether the search converged, that is, was not stopped by a limit or by the caller.
    pub settled: bool,
}

/// Number of steps over which the decrease is measured.
const WINDOW: usize = 10;

/// Fraction of the decrease predicted by the gradient that a step must achieve (Armijo).
const DECREASE: f64 = 1e-4;

/// Largest number of step halvings.
const HALVINGS: usize = 30;

/// Minimizes `f(x, gradient) → value` from `x`. A value that is not finite is outside of the domain (a barrier) and the step is
/// shortened. `watch(steps, value)` is called after every step and stops the search by returning `false`; the best point so far is
/// kept.
///
/// ```
/// use inertial::optimize::lbfgs::{Options, minimize};
/// let bowl = |x: &[f64], g: &mut [f64]| {
///     (g[0], g[1]) = (2.0 * (x[0] - 1.0), 20.0 * x[1]);
///     Ok((x[0] - 1.0).powi(2) + 10.0 * x[1] * x[1])
/// };
/// let found = minimize(&[4.0, 3.0], &Options::default(), bowl, |_, _| true)?;
/// assert!((found.x[0] - 1.0).abs() < 1e-3 && found.x[1].abs() < 1e-3);
/// # Ok::<(), inertial::Error>(())
/// ```
pub fn minimize(
    x: &[f64],
    options: &Options,
    mut f: impl FnMut(&[f64], &mut [f64]) -> Result<f64>,
    mut watch: impl FnMut(usize, f64) -> bool,
) -> Result<Minimum> {
    let n = x.len();
    let mut x = x.to_vec();
    let mut gradient = vec![0.0; n];
    let mut value = f(&x, &mut gradient)?;
    if !value.is_finite() {
        return Err(Error::Infeasible("the search starts outside the domain of its function".into()));
    }
    let (mut trial, mut trial_gradient, mut direction) = (x.clone(), gradient.clone(), vec![0.0; n]);
    let mut memory: VecDeque<(Vec<f64>, Vec<f64>, f64)> = VecDeque::with_capacity(options.memory + 1);
    let mut values = VecDeque::from([value]);
    let (mut steps, mut settled) = (0, false);
    while steps < options.steps {
        two_loops(&memory, &gradient, &mut direction);
        let mut slope = dot(&gradient, &direction);
        if slope >= 0.0 {
            // The stored curvature is outdated: restart with steepest descent.
            memory.clear();
            two_loops(&memory, &gradient, &mut direction);
            slope = dot(&gradient, &direction);
        }
        let mut part = 1.0;
        let mut found = None;
        for _ in 0..HALVINGS {
            trial.iter_mut().zip(&x).zip(&direction).for_each(|((t, x), d)| *t = x + part * d);
            let there = f(&trial, &mut trial_gradient)?;
            if there <= value + DECREASE * part * slope {
                found = Some(there);
                break;
            }
            part *= 0.5;
        }
        let Some(there) = found else {
            if memory.is_empty() {
                settled = true;
                break;
            }
            memory.clear();
            continue;
        };
        let step: Vec<f64> = trial.iter().zip(&x).map(|(a, b)| a - b).collect();
        let change: Vec<f64> = trial_gradient.iter().zip(&gradient).map(|(a, b)| a - b).collect();
        let curvature = dot(&step, &change);
        if curvature > 1e-12 * dot(&change, &change) {
            memory.push_back((step, change, curvature.recip()));
            if memory.len() > options.memory {
                memory.pop_front();
            }
        }
        std::mem::swap(&mut x, &mut trial);
        std::mem::swap(&mut gradient, &mut trial_gradient);
        value = there;
        steps += 1;
        values.push_back(value);
        if !watch(steps, value) {
            break;
        }
        if values.len() > WINDOW {
            let before = values.pop_front().unwrap_or(value);
            if before - value <= options.gain * value.abs().max(1e-12) {
                settled = true;
                break;
            }
        }
    }
    Ok(Minimum { x, value, steps, settled })
}

/// Computes `−H g` with the stored curvature; without any, a step of unit length along the steepest descent.
fn two_loops(memory: &VecDeque<(Vec<f64>, Vec<f64>, f64)>, gradient: &[f64], direction: &mut [f64]) {
    direction.iter_mut().zip(gradient).for_each(|(d, g)| *d = -g);
    let Some((step, change, _)) = memory.back() else {
        let length = dot(gradient, gradient).sqrt().max(1.0);
        direction.iter_mut().for_each(|d| *d /= length);
        return;
    };
    let scale = dot(step, change) / dot(change, change);
    let mut alphas = Vec::with_capacity(memory.len());
    for (s, y, rho) in memory.iter().rev() {
        let alpha = rho * dot(s, direction);
        direction.iter_mut().zip(y).for_each(|(d, y)| *d -= alpha * y);
        alphas.push(alpha);
    }
    direction.iter_mut().for_each(|d| *d *= scale);
    for ((s, y, rho), alpha) in memory.iter().zip(alphas.iter().rev()) {
        let beta = rho * dot(y, direction);
        direction.iter_mut().zip(s).for_each(|(d, s)| *d += (alpha - beta) * s);
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}
