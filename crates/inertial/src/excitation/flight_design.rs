//! Velocity knots for a free-flying robot that its sensors' noise disturbs least.
//!
//! The Cramér–Rao bound of the errors-in-variables estimate is the inverse of the information `Σ KᵀC⁻¹K`. The D-criterion makes
//! its determinant least, whatever the units of the parameters; the A-criterion the mean of its relative variances at the
//! model's own values. Rates are `limit · sin x`, so that they keep their limits by themselves; a logarithmic barrier keeps
//! positions inside theirs.

use nalgebra::{DMatrix, DVector};
use rayon::prelude::{IntoParallelIterator, ParallelIterator};

use super::basis::Basis;
use super::flight::Flight;
use super::trajectory::Trajectory;
use crate::linalg::{SplitMix, Svd};
use crate::mechanism::Mechanism;
use crate::optimize::lbfgs;
use crate::{Error, Result};

/// Weight of the barrier per sample and joint: all together cost less than the information of one interval.
const BARRIER: f64 = 1e-4;

/// Steps of the first search from each start.
const FIRST_STEPS: usize = 40;

/// What the design makes small.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FlightCriterion {
    /// The determinant of the bound.
    #[default]
    Determinant,
    /// The mean of the squared relative standard errors, at the model's values.
    RelativeErrors,
}

/// Choices of [`design_flight`].
#[derive(Debug, Clone)]
pub struct FlightOptions {
    /// Duration (s).
    pub duration: f64,
    /// Time between knots (s).
    pub interval: f64,
    /// Samples per second.
    pub rate: f64,
    /// Standard deviations of the rates, one per velocity coordinate.
    pub noise: Vec<f64>,
    /// What is made small.
    pub criterion: FlightCriterion,
    /// Random starts.
    pub starts: usize,
    /// Steps of the final search.
    pub steps: usize,
    /// Seed of the starts.
    pub seed: u64,
}

/// A motion, and what it will tell.
#[derive(Debug, Clone)]
pub struct FlightDesign {
    /// Joints and wheels over time.
    pub trajectory: Trajectory,
    /// `½ log det` of the bound (D), or its root mean squared relative error (A).
    pub criterion: f64,
    /// Directions of base parameters that it shows, of all.
    pub rank: usize,
    /// Condition number of the whitened regressor, columns in units of their own size.
    pub condition: f64,
    /// Expected standard error of each base parameter (Cramér–Rao).
    pub std_errors: Vec<f64>,
    /// Steps of the search.
    pub steps: usize,
}

/// Designs velocity knots for the base parameters in `columns`. `watch(step, criterion)` sees each step of the final search
/// and ends it with `false`: the best so far is kept. The same for any number of threads.
pub fn design_flight(
    mechanism: &Mechanism,
    columns: &[usize],
    values: &[f64],
    options: &FlightOptions,
    mut watch: impl FnMut(usize, f64) -> bool,
) -> Result<FlightDesign> {
    if !(options.interval > 0.0 && options.interval <= options.duration / 2.0) {
        return Err(Error::Numeric(format!(
            "the knots are {} s apart in {} s, expected at least two intervals",
            options.interval, options.duration
        )));
    }
    let intervals = (options.duration / options.interval).round().max(2.0);
    if intervals > 1e4 {
        return Err(Error::Numeric(format!("{intervals} intervals are more than ten thousand")));
    }
    let knots = (0..=intervals as usize).map(|k| k as f64 * options.duration / intervals).collect();
    let basis = Basis::VelocityKnots { knots };
    let flight = Flight::new(mechanism, columns, basis, options.duration, options.rate)?;
    if 6 * flight.samples() < flight.parameters() {
        return Err(Error::Numeric(format!(
            "{} samples of six momenta cannot show {} parameters: expected a longer motion or a higher rate",
            flight.samples(),
            flight.parameters()
        )));
    }
    let problem = Problem::new(&flight, values, options)?;
    let first = lbfgs::Options { steps: FIRST_STEPS, ..lbfgs::Options::default() };
    let starts = (0..options.starts.max(1))
        .into_par_iter()
        .map(|k| {
            let x = problem.start(options.seed.wrapping_add(k as u64));
            lbfgs::minimize(&x, &first, |x, g| problem.cost(x, g), |_, _| true)
        })
        .collect::<Result<Vec<_>>>()?;
    // `min_by` takes the first of equals: the same whichever thread was faster.
    let best = starts.into_iter().min_by(|a, b| a.value.total_cmp(&b.value));
    let best = best.ok_or_else(|| Error::Numeric("no start was tried".into()))?;
    let last = lbfgs::Options { steps: options.steps, memory: 40, ..lbfgs::Options::default() };
    let found = lbfgs::minimize(&best.x, &last, |x, g| problem.cost(x, g), &mut watch)?;
    problem.design(&found.x, best.steps + found.steps)
}

/// The search's function.
struct Problem<'a, 'm> {
    flight: &'a Flight<'m>,
    options: &'a FlightOptions,
    /// Units of the base parameters in which relative errors count.
    units: DVector<f64>,
    /// Greatest rate of each coordinate.
    rates: Vec<f64>,
    /// Where positions must stay at samples, so that they stay within limits between them.
    bounds: Vec<(f64, f64)>,
}

impl<'a, 'm> Problem<'a, 'm> {
    fn new(flight: &'a Flight<'m>, values: &[f64], options: &'a FlightOptions) -> Result<Self> {
        let mut rates = Vec::new();
        let mut bounds = Vec::new();
        for moved in &flight.moved {
            let (limits, name) = (&moved.limits, &moved.name);
            if !(limits.velocity > 0.0 && limits.velocity.is_finite()) {
                return Err(Error::Numeric(format!(
                    "{name} has no limit of its speed (it is {}): the faster, the better it shows; expected a velocity limit",
                    limits.velocity
                )));
            }
            // Between samples it goes no further than half a sample at full speed.
            let margin = 0.5 * limits.velocity / options.rate;
            let (low, high) = (limits.lower + margin, limits.upper - margin);
            if moved.joint.is_some() && low >= high {
                return Err(Error::Numeric(format!(
                    "{name} may move from {} to {} only: no room at {} per second and {} Hz",
                    limits.lower, limits.upper, limits.velocity, options.rate
                )));
            }
            rates.push(limits.velocity);
            bounds.push(if moved.joint.is_some() { (low, high) } else { (f64::NEG_INFINITY, f64::INFINITY) });
        }
        let units =
            DVector::from_iterator(values.len(), values.iter().map(|v| v.abs().max(f64::MIN_POSITIVE)));
        if units.len() != flight.parameters() {
            return Err(Error::Dimension {
                what: "values of the base parameters",
                expected: flight.parameters(),
                found: units.len(),
            });
        }
        Ok(Self { flight, options, units, rates, bounds })
    }

    /// A random start: anywhere in the limits, at any rates, shrunk until it stays inside.
    fn start(&self, seed: u64) -> Vec<f64> {
        let mut source = SplitMix::new(seed);
        let mut uniform = || (source.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
        let n = self.rates.len();
        let mut x: Vec<f64> = (0..self.flight.coefficients())
            .map(|i| {
                let (low, high) = self.bounds[i % n];
                let part = uniform();
                if i >= n {
                    return 2.0 * part - 1.0; // arcs of the sine away from its flat ends
                }
                match (low.is_finite(), high.is_finite()) {
                    (true, true) => low + (high - low) * (0.25 + 0.5 * part),
                    (true, false) => low + 1.0 + part,
                    (false, true) => high - 1.0 - part,
                    (false, false) => std::f64::consts::PI * (2.0 * part - 1.0),
                }
            })
            .collect();
        while !self.inside(&self.coefficients(&x)) {
            x[n..].iter_mut().for_each(|x| *x *= 0.5);
        }
        x
    }

    fn inside(&self, coefficients: &[f64]) -> bool {
        (0..self.flight.samples()).all(|t| {
            self.bounds.iter().enumerate().all(|(j, &(low, high))| {
                let (q, _) = self.flight.state(coefficients, t, j);
                q > low && q < high
            })
        })
    }

    fn coefficients(&self, x: &[f64]) -> Vec<f64> {
        let n = self.rates.len();
        x.iter().enumerate().map(|(i, x)| if i < n { *x } else { self.rates[i % n] * x.sin() }).collect()
    }

    fn cost(&self, x: &[f64], gradient: &mut [f64]) -> Result<f64> {
        let n = self.rates.len();
        let coefficients = self.coefficients(x);
        gradient.fill(0.0);
        let barrier = self.barrier(&coefficients, gradient);
        if !barrier.is_finite() {
            return Ok(f64::INFINITY);
        }
        let noise = &self.options.noise;
        let information = self.flight.information(&coefficients, noise)?;
        let Some((value, weight)) = self.criterion(&information) else { return Ok(f64::INFINITY) };
        let slope = self.flight.information_gradient(&coefficients, noise, &weight)?;
        for (i, (g, s)) in gradient.iter_mut().zip(slope).enumerate() {
            *g -= s;
            if i >= n {
                *g *= self.rates[i % n] * x[i].cos();
            }
        }
        Ok(value + barrier)
    }

    /// The criterion, and `W` such that its derivative is `−tr(W dM)`; none where the information is not positive.
    fn criterion(&self, information: &DMatrix<f64>) -> Option<(f64, DMatrix<f64>)> {
        let r = information.nrows();
        let scale = DVector::from_fn(r, |i, _| information[(i, i)].sqrt().recip());
        if scale.iter().any(|s| !s.is_finite()) {
            return None;
        }
        let unit = DMatrix::from_fn(r, r, |i, j| information[(i, j)] * scale[i] * scale[j]);
        let factor = unit.cholesky()?;
        let unit = factor.inverse();
        let inverse = DMatrix::from_fn(r, r, |i, j| unit[(i, j)] * scale[i] * scale[j]);
        Some(match self.options.criterion {
            FlightCriterion::Determinant => {
                let log_det = factor.ln_determinant() - 2.0 * scale.iter().map(|s| s.ln()).sum::<f64>();
                (-0.5 * log_det, inverse * 0.5)
            }
            FlightCriterion::RelativeErrors => {
                let inverse_units = self.units.map(|u| u.powi(-2));
                let mean = inverse.diagonal().dot(&inverse_units);
                let mut left = inverse.clone();
                for (mut column, u) in left.column_iter_mut().zip(inverse_units.iter()) {
                    column *= *u / mean;
                }
                // In logarithms both criteria have the same size: half of it is that of standard errors.
                (0.5 * r as f64 * mean.ln(), left * inverse * (0.5 * r as f64))
            }
        })
    }

    /// The barrier, whose gradient with respect to the coefficients it adds.
    fn barrier(&self, coefficients: &[f64], gradient: &mut [f64]) -> f64 {
        let mut sum = 0.0;
        for (j, &(low, high)) in
            self.bounds.iter().enumerate().filter(|(_, b)| b.0.is_finite() || b.1.is_finite())
        {
            for t in 0..self.flight.samples() {
                let (q, _) = self.flight.state(coefficients, t, j);
                if !(q > low && q < high) {
                    return f64::INFINITY;
                }
                // A bound at infinity gives no force; its logarithm is left out.
                let mut slope = 0.0;
                for (distance, sign) in [(q - low, -1.0), (high - q, 1.0)] {
                    if distance.is_finite() {
                        sum -= BARRIER * distance.ln();
                        slope += sign * BARRIER / distance;
                    }
                }
                self.flight.add_gradient(t, j, slope, 0.0, gradient);
            }
        }
        sum
    }

    fn design(&self, x: &[f64], steps: usize) -> Result<FlightDesign> {
        let coefficients = self.coefficients(x);
        let mut a = self.flight.factor(&coefficients, Some(&self.options.noise))?.matrix();
        let norms = DVector::from_fn(a.ncols(), |j, _| a.column(j).norm());
        for (mut column, s) in a.column_iter_mut().zip(norms.iter()) {
            if *s > 0.0 {
                column /= *s;
            }
        }
        let svd = Svd::new(&a)?;
        // Below this relative to the largest a direction shows itself in nothing but rounding.
        let rank = svd.rank(1e-8).rank;
        let mut variances = DVector::zeros(a.ncols());
        for (k, s) in svd.values.iter().enumerate().take(rank) {
            variances += svd.v.column(k).map(|v| (v / s).powi(2));
        }
        let std_errors: Vec<f64> = variances.iter().zip(norms.iter()).map(|(v, s)| v.sqrt() / s).collect();
        let criterion = match self.options.criterion {
            FlightCriterion::Determinant => {
                -svd.values.iter().zip(norms.iter()).map(|(s, n)| s.ln() + n.ln()).sum::<f64>()
            }
            FlightCriterion::RelativeErrors => {
                let relative = std_errors.iter().zip(self.units.iter()).map(|(s, u)| (s / u).powi(2));
                (relative.sum::<f64>() / std_errors.len() as f64).sqrt()
            }
        };
        let (largest, smallest) = (svd.values.max(), svd.values.min());
        Ok(FlightDesign {
            trajectory: self.flight.trajectory(&coefficients)?,
            criterion,
            rank,
            condition: largest / smallest,
            std_errors,
            steps,
        })
    }
}
