//! Lag of the readings of a force/torque sensor behind the motion.
//!
//! The readings `f(t + lag)` are fitted with the parameters of the body and the offsets of the sensor, without constraints. The lag
//! that leaves the smallest residual is refined with the derivative of the predicted readings (that of the measured ones would
//! correlate with their noise). The standard error is computed from the scores of sixteen blocks of the samples, which is valid for
//! correlated residuals.

use nalgebra::{DMatrix, DVector, SMatrix};

use crate::Result;
use crate::estimation::diagnosis::deviation::{Deviation, DeviationKind};
use crate::estimation::least_squares::solution::Solution;
use crate::estimation::payload::force_sensor::SensorMotion;
use crate::estimation::reduction::blocks::BLOCKS;
use crate::linalg::{Triangle, cubic_weights};
use crate::spatial::body_regressor;

/// Largest lag (s) that is searched for, and its largest share of the duration of a log.
const LONGEST: f64 = 0.2;
const LONGEST_SHARE: f64 = 0.1;
/// Step (s) of the search. The residual of motions below 10 Hz is convex within such a distance of its minimum.
const STEP: f64 = 0.01;
/// Number of samples that is sufficient for the search, and the smallest one.
const SAMPLES: usize = 2000;
const FEWEST: usize = 64;
/// Largest number of refinements, and the change relative to the standard error at which they stop.
const REFINEMENTS: usize = 8;
const SETTLED: f64 = 0.02;
/// Squared share of the derivative that is independent of the parameters, below which a lag cannot be distinguished from them.
const INDEPENDENT: f64 = 1e-6;
/// Noise of a reading, relative to its size, below which it is rounding.
const ROUNDING: f64 = 1e-9;

/// Columns of the rows: ten parameters, six offsets, the derivative of the prediction, the reading.
const UNKNOWNS: usize = 16;
const RATE: usize = UNKNOWNS;
const READING: usize = UNKNOWNS + 1;
const WIDTH: usize = UNKNOWNS + 2;

/// Motion and readings of a force/torque sensor in one log, at a constant rate.
#[derive(Debug, Clone)]
pub struct SensorLog {
    /// Motion of the sensor.
    pub motion: SensorMotion,
    /// Readings, six per sample.
    pub wrench: Vec<f64>,
    /// Whether each sample is used.
    pub sound: Vec<bool>,
    /// Time between samples (s).
    pub step: f64,
}

/// Estimates the lag of the readings behind the motion, with the share of the squared residual that it explains; `None` if the logs
/// are too short or do not determine it (poses at rest).
pub fn sensor_lag(logs: &[SensorLog]) -> Result<Option<Deviation>> {
    let Some(mut search) = Search::new(logs) else { return Ok(None) };
    let mut now = search.fit(0.0, None)?;
    search.weigh(&now);
    let as_it_is = search.fit(0.0, None)?;
    let (mut lag, mut least) = (0.0, as_it_is.residual);
    let count = (search.longest / STEP) as i32;
    for k in (-count..=count).filter(|k| *k != 0) {
        let tried = STEP * f64::from(k);
        let fit = search.fit(tried, None)?;
        if fit.residual < least {
            (lag, least) = (tried, fit.residual);
        }
    }
    now = search.fit(lag, None)?;
    search.weigh(&now);
    let mut std_error = f64::INFINITY;
    for _ in 0..REFINEMENTS {
        let fit = search.fit(lag, Some(&now.values))?;
        let Some((change, error)) = fit.rest_of_lag()? else { return Ok(None) };
        std_error = error;
        lag = (lag + change.clamp(-STEP, STEP)).clamp(-search.longest, search.longest);
        search.weigh(&fit);
        now = fit;
        if change.abs() <= SETTLED * error {
            break;
        }
    }
    let (before, after) = (search.fit(0.0, None)?.residual, search.fit(lag, None)?.residual);
    let explains = if before > 0.0 { (1.0 - after / before).clamp(0.0, 1.0) } else { 0.0 };
    Ok(Some(Deviation { kind: DeviationKind::Lag, of: Some("ft".into()), value: lag, std_error, explains }))
}

/// Samples that are compared for all lags, with the weights of the readings.
struct Search<'a> {
    logs: &'a [SensorLog],
    /// Log and index of each sample.
    samples: Vec<(usize, usize)>,
    longest: f64,
    weights: [f64; 6],
}

/// Fit of the readings at one lag.
struct Fit {
    values: DVector<f64>,
    blocks: Vec<DMatrix<f64>>,
    all: DMatrix<f64>,
    /// Sum of the squared weighted residuals.
    residual: f64,
    /// Variance of the residual of each reading.
    variances: [f64; 6],
}

impl SensorLog {
    /// Returns the regressor of the readings in the ten parameters, forces first.
    fn regressor(&self, sample: usize) -> SMatrix<f64, 6, 10> {
        let (v, a) = self.motion.at(sample);
        // Spatial vectors start with moments, readings with forces.
        let y = body_regressor(&v, &a);
        SMatrix::from_fn(|i, j| y[((i + 3) % 6, j)])
    }

    /// Returns the readings `lag` seconds after a sample, with cubic interpolation through four samples.
    fn readings(&self, sample: usize, lag: f64) -> [f64; 6] {
        let steps = lag / self.step;
        let whole = steps.floor();
        let weights = cubic_weights(steps - whole);
        let last = self.motion.len().saturating_sub(1);
        let first = sample.cast_signed() + whole as isize - 1;
        std::array::from_fn(|c| {
            let of = |(k, w): (usize, f64)| {
                let at = first.saturating_add_unsigned(k).max(0).unsigned_abs().min(last);
                w * self.wrench[6 * at + c]
            };
            weights.into_iter().enumerate().map(of).sum()
        })
    }
}

impl<'a> Search<'a> {
    /// Selects samples; `None` if there are too few that are sound together with all samples within the largest lag.
    fn new(logs: &'a [SensorLog]) -> Option<Self> {
        let duration = |log: &SensorLog| log.step * log.motion.len() as f64;
        let shortest = logs.iter().map(duration).fold(f64::INFINITY, f64::min);
        let longest = LONGEST.min(LONGEST_SHARE * shortest);
        let mut samples = Vec::new();
        // Consecutive samples of poses at rest are no motion.
        for (k, log) in logs.iter().enumerate().filter(|(_, log)| !log.motion.is_at_rest()) {
            let reach = (longest / log.step).ceil() as usize + 2;
            // Number of sound samples in a row up to each sample.
            let mut row = 0;
            for (s, sound) in log.sound.iter().enumerate() {
                row = if *sound { row + 1 } else { 0 };
                if row > 2 * reach {
                    samples.push((k, s - reach));
                }
            }
        }
        let every = samples.len().div_ceil(SAMPLES).max(1);
        let samples: Vec<(usize, usize)> = samples.into_iter().step_by(every).collect();
        let enough = samples.len() >= FEWEST;
        let mut out = Self { logs, samples, longest, weights: [1.0; 6] };
        out.weights = out.sizes().map(|size| if size > 0.0 { size.recip() } else { 0.0 });
        enough.then_some(out)
    }

    /// Returns the root mean square of each reading.
    fn sizes(&self) -> [f64; 6] {
        let mut sums = [0.0; 6];
        for &(k, s) in &self.samples {
            let readings = &self.logs[k].wrench[6 * s..6 * s + 6];
            sums.iter_mut().zip(readings).for_each(|(sum, x)| *sum += x * x);
        }
        sums.map(|sum| (sum / self.samples.len().max(1) as f64).sqrt())
    }

    /// Weights the readings by the residuals of a fit.
    fn weigh(&mut self, fit: &Fit) {
        let sizes = self.sizes();
        for (c, weight) in self.weights.iter_mut().enumerate() {
            let noise = fit.variances[c].sqrt().max(ROUNDING * sizes[c]);
            *weight = if noise > 0.0 { noise.recip() } else { 0.0 };
        }
    }

    /// Fits the readings at a lag; `values` are the parameters from which the derivative is predicted.
    fn fit(&self, lag: f64, values: Option<&DVector<f64>>) -> Result<Fit> {
        let per_block = self.samples.len().div_ceil(BLOCKS);
        let (mut blocks, mut all) = (Vec::new(), Triangle::new(WIDTH));
        for samples in self.samples.chunks(per_block) {
            let count = 6 * samples.len();
            let mut rows = vec![0.0; count * WIDTH];
            for (i, &(k, s)) in samples.iter().enumerate() {
                let log = &self.logs[k];
                let (y, readings) = (log.regressor(s), log.readings(s, lag));
                let change = values.map(|_| log.regressor(s + 1) - log.regressor(s - 1));
                for c in 0..6 {
                    let (row, weight) = (6 * i + c, self.weights[c]);
                    (0..10).for_each(|j| rows[j * count + row] = weight * y[(c, j)]);
                    rows[(10 + c) * count + row] = weight;
                    rows[READING * count + row] = weight * readings[c];
                    if let (Some(change), Some(values)) = (&change, values) {
                        let rate: f64 = (0..10).map(|j| change[(c, j)] * values[j]).sum();
                        rows[RATE * count + row] = -weight * rate / (2.0 * log.step);
                    }
                }
            }
            let mut triangle = Triangle::new(WIDTH);
            triangle.add_rows(&mut rows, count)?;
            let factor = triangle.matrix();
            blocks.push(factor.tr_mul(&factor));
            all.merge(&triangle)?;
        }
        let all = all.matrix();
        let values = Solution::of_factor(&without_rate(&all), None)?.values;
        let (mut residual, mut variances) = (0.0, [0.0; 6]);
        for &(k, s) in &self.samples {
            let log = &self.logs[k];
            let (y, readings) = (log.regressor(s), log.readings(s, lag));
            for c in 0..6 {
                let left = readings[c] - values[10 + c] - (0..10).map(|j| y[(c, j)] * values[j]).sum::<f64>();
                variances[c] += left * left / self.samples.len() as f64;
                residual += (self.weights[c] * left).powi(2);
            }
        }
        Ok(Fit { values, blocks, all, residual, variances })
    }
}

/// Returns a factor without the column of the derivative.
fn without_rate(factor: &DMatrix<f64>) -> DMatrix<f64> {
    factor.clone().remove_column(RATE)
}

impl Fit {
    /// Estimates the remaining lag and its standard error, together with all unknowns.
    fn rest_of_lag(&self) -> Result<Option<(f64, f64)>> {
        let system = self.all.columns(0, UNKNOWNS + 1).into_owned();
        let explained = Solution::of_factor(&system, None)?.values;
        let mut rate = DVector::zeros(WIDTH);
        rate.rows_mut(0, UNKNOWNS).copy_from(&-explained);
        rate[RATE] = 1.0;
        let mut left = DVector::zeros(WIDTH);
        left.rows_mut(0, UNKNOWNS).copy_from(&-&self.values);
        left[READING] = 1.0;
        let scores: Vec<[f64; 2]> =
            self.blocks.iter().map(|b| [rate.dot(&(b * &left)), rate.dot(&(b * &rate))]).collect();
        let [score, information] = scores.iter().fold([0.0; 2], |s, x| [s[0] + x[0], s[1] + x[1]]);
        let energy: f64 = self.blocks.iter().map(|b| b[(RATE, RATE)]).sum();
        if !(information > INDEPENDENT * energy) {
            return Ok(None);
        }
        let value = score / information;
        let spread: f64 = scores.iter().map(|[s, i]| (s - value * i).powi(2)).sum();
        let count = scores.len() as f64;
        Ok(Some((value, (spread * count / (count - 1.0)).sqrt() / information)))
    }
}
