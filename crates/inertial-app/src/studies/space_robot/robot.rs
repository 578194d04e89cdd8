//! True and assumed robot: flights, measurements and estimates.

use inertial::estimation::momentum::{MomentumEquations, MomentumFit, RateNoise};
use inertial::estimation::momentum_identification::{RateRule, integrate_rates};
use inertial::excitation::{Basis, Trajectory};
use inertial::mechanism::{DEFAULT_SNAP, Mechanism};
use inertial::simulation::{FlightSamples, Sensors, prediction_errors};
use rayon::iter::{IntoParallelIterator, ParallelIterator};

use super::{DRAWS, Method, NOISE, RATE, Row, Validation, median};
use crate::Result;

/// Arbitrary start positions of the joints (rad) before the seeds are optimized; the best design on the assumed model is used.
pub const STARTS: [[f64; 6]; 4] = [
    [0.5, -1.0, -1.0, 1.0, -1.0, 1.0],
    [0.2, 1.5, -1.5, -0.7, 1.2, -1.1],
    [0.05, 1.8, -1.42, 1.79, -0.75, -0.31],
    [-2.0, -1.5, -1.5, 2.0, -2.0, 0.3],
];

/// True robot and assumed robot.
pub struct Robot<'m> {
    pub truth: &'m Mechanism,
    pub guess: &'m Mechanism,
    pub equations: MomentumEquations<'m>,
    /// True values of the base parameters.
    values: Vec<f64>,
    pub noise: RateNoise,
}

/// Estimates of simulated experiments; errors in percent.
pub struct Estimate {
    /// Median error of each experiment, and its largest error.
    pub medians: Vec<f64>,
    pub maxima: Vec<f64>,
    /// Root mean square of errors in units of their standard errors.
    scaled: f64,
    /// Median and largest error without noise.
    pub noise_free: [f64; 2],
    /// Estimated values of the first experiment.
    pub first: Vec<f64>,
    /// Parameters with their true values and median errors, largest error first.
    errors: Vec<(String, f64, f64)>,
}

impl Estimate {
    pub fn worst(&self, count: usize) -> Vec<(String, f64, f64)> {
        self.errors[..count].to_vec()
    }
}

impl<'m> Robot<'m> {
    pub fn new(truth: &'m Mechanism, guess: &'m Mechanism) -> Result<Self> {
        let equations = MomentumEquations::new(truth, DEFAULT_SNAP)?;
        let values = equations.regrouping.regroup(&truth.parameters())?;
        let noise = RateNoise::new(truth, NOISE[0].1, NOISE[1].1, NOISE[2].1);
        Ok(Self { truth, guess, equations, values, noise })
    }

    pub fn names(&self) -> &[String] {
        &self.equations.names
    }

    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// Simulates a flight, repeats its noisy measurement, and estimates the parameters each time.
    pub fn estimate(&self, motion: &Trajectory, rule: RateRule, method: Method) -> Result<Estimate> {
        let flight_motion = FlightSamples::new(self.truth, motion, RATE)?;
        let names = self.rate_names();
        let draws = (0..DRAWS).into_par_iter().map(|draw| {
            let settings = NOISE.map(|(name, s)| (name.to_owned(), s));
            let mut sensors = Sensors::new(&names, &settings, &[], &[], draw)?;
            let mut v = flight_motion.v.clone();
            v.chunks_exact_mut(self.truth.nv()).for_each(|row| sensors.measure(row));
            self.fit(&flight_motion, &v, rule, method)
        });
        let draws = draws.collect::<Result<Vec<MomentumFit>>>()?;
        let (mut medians, mut maxima, mut scaled) = (Vec::new(), Vec::new(), 0.0);
        let mut errors = vec![Vec::new(); self.values.len()];
        for fit in &draws {
            let relative = self.relative(fit);
            errors.iter_mut().zip(&relative).for_each(|(all, e)| all.push(*e));
            let sigma = fit.std_errors();
            let squares = (0..relative.len()).map(|i| ((fit.values[i] - self.values[i]) / sigma[i]).powi(2));
            scaled += squares.sum::<f64>() / relative.len() as f64;
            maxima.push(largest(&relative));
            medians.push(median(&relative));
        }
        let first = draws.first().map_or_else(Vec::new, |fit| fit.values.as_slice().to_vec());
        let exact = self.relative(&self.fit(&flight_motion, &flight_motion.v, rule, method)?);
        let named = self.equations.names.iter().zip(&self.values).zip(&errors);
        let mut errors: Vec<_> = named.map(|((name, value), e)| (name.clone(), *value, median(e))).collect();
        errors.sort_by(|a, b| b.2.total_cmp(&a.2));
        Ok(Estimate {
            medians,
            maxima,
            scaled: (scaled / DRAWS as f64).sqrt(),
            noise_free: [median(&exact), largest(&exact)],
            first,
            errors,
        })
    }

    /// Computes an estimate, and its prediction errors on another motion.
    pub fn row(
        &self,
        design: &'static str,
        motion: &Trajectory,
        rule: RateRule,
        method: Method,
    ) -> Result<Row> {
        let found = self.estimate(motion, rule, method)?;
        let prediction =
            prediction_errors(self.truth, &self.estimated(&found)?, &self.validation_motion()?, RATE)?;
        Ok(Row {
            design,
            estimator: match method {
                Method::LeastSquares => "ols",
                Method::BiasCompensated => "bcls",
                Method::ErrorsInVariables => "eiv",
            },
            positions: match rule {
                RateRule::Euler => "euler",
                RateRule::Trapezoid => "trapezoid",
            },
            median_percent: median(&found.medians),
            largest_percent: median(&found.maxima),
            rms_in_std_errors: found.scaled,
            noise_free_percent: found.noise_free,
            worst: found.worst(4),
            base: prediction.base,
            torques: prediction.forces,
        })
    }

    /// Returns the robot with the estimated values of the first experiment.
    fn estimated(&self, found: &Estimate) -> Result<Mechanism> {
        let parameters = self.equations.regrouping.expand(&found.first, &[])?;
        Ok(self.truth.clone().with_parameters(&parameters)?)
    }

    fn rate_names(&self) -> Vec<String> {
        let base = ["base.vx", "base.vy", "base.vz", "base.wx", "base.wy", "base.wz"].map(String::from);
        let joints = self.joint_names().into_iter().map(|name| format!("dq.{name}"));
        base.into_iter().chain(joints).collect()
    }

    fn joint_names(&self) -> Vec<String> {
        self.truth.velocity_names().into_iter().skip(6).collect()
    }

    /// Returns the relative errors (%).
    fn relative(&self, fit: &MomentumFit) -> Vec<f64> {
        fit.values.iter().zip(&self.values).map(|(x, y)| 100.0 * ((x - y) / y).abs()).collect()
    }

    fn fit(
        &self,
        flight_motion: &FlightSamples,
        v: &[f64],
        rule: RateRule,
        method: Method,
    ) -> Result<MomentumFit> {
        let start = &flight_motion.q[..self.truth.nq()];
        let q = integrate_rates(self.truth, &flight_motion.t, v, start, rule)?;
        let samples = flight_motion.samples(&q, v);
        Ok(match method {
            Method::LeastSquares => self.equations.least_squares(&samples, Some(&self.noise))?,
            Method::BiasCompensated => self.equations.bias_compensated(&samples, &self.noise)?,
            Method::ErrorsInVariables => self.equations.errors_in_variables(&samples, &self.noise)?,
        })
    }

    /// Returns the validation motion: two harmonics over 40 s (eq. 40). The coefficients are not stated in the paper;
    /// these move every joint by about 0.3 rad.
    fn validation_motion(&self) -> Result<Trajectory> {
        let names = self.joint_names();
        let basis = Basis::Fourier { period: 40.0, harmonics: 2 };
        let row = |j: usize| {
            let phase = j as f64;
            let [s, c] = [phase.sin(), phase.cos()];
            vec![STARTS[0][j], 0.2 * c, 0.2 * s, 0.1 * s, -0.1 * c]
        };
        let rows: Vec<Vec<f64>> = (0..names.len()).map(row).collect();
        Ok(Trajectory::new(names, 40.0, basis, &rows)?)
    }

    /// Returns the validation motion and its prediction errors over time.
    pub fn validation_errors(&self, found: &Estimate) -> Result<Validation> {
        let (motion, estimated) = (self.validation_motion()?, self.estimated(found)?);
        let real = FlightSamples::new(self.truth, &motion, RATE)?;
        let predicted = FlightSamples::new(&estimated, &motion, RATE)?;
        let forces = [real.forces(self.truth)?, predicted.forces(&estimated)?];
        let (nq, nv) = (self.truth.nq(), self.truth.nv());
        let column = |values: &[f64], width: usize, k: usize| -> Vec<f64> {
            values.iter().skip(k).step_by(width).copied().collect()
        };
        let error = |a: &[f64], b: &[f64], k: usize| -> Vec<f64> {
            column(a, nv, k).into_iter().zip(column(b, nv, k)).map(|(a, b)| b - a).collect()
        };
        Ok(Validation {
            joints: self.joint_names(),
            positions: (nq - (nv - 6)..nq).map(|k| column(&real.q, nq, k)).collect(),
            rates: (6..nv).map(|k| column(&real.v, nv, k)).collect(),
            base_errors: (0..6).map(|k| error(&real.v, &predicted.v, k)).collect(),
            torque_errors: (6..nv).map(|k| error(&forces[0], &forces[1], k)).collect(),
            t: real.t,
        })
    }
}

fn largest(values: &[f64]) -> f64 {
    values.iter().copied().fold(0.0, f64::max)
}
