//! Published design: cycloidal intervals over direction combinations, from two seeds per joint (paper 002, section V).

use super::basis::{Basis, Profile};
use super::flight::{Flight, flight_coordinates};
use super::limits::DefaultLimits;
use super::plan::Coordinate;
use super::trajectory::Trajectory;
use crate::mechanism::Mechanism;
use crate::optimize::lbfgs;
use crate::{Error, Result};

/// Largest number of coordinates; more would have more than a million combinations.
const MOST_COORDINATES: usize = 21;

/// Smallest range of a joint in an interval, relative to its largest range: ranges are positive (eq. 37).
const LEAST_RANGE: f64 = 0.02;

/// Weight of the barrier that keeps the ends of all intervals within the joint limits (eq. 33).
const BARRIER: f64 = 1e-3;

/// Returns all `2^(n−1)` direction combinations of `n` coordinates. The first coordinate keeps its direction, the others count in
/// binary, the last one fastest.
///
/// The paper does not state the order. With this order and the seeds of its table 3, the numbers of significant singular values
/// equal the printed ones: 11 for one interval, 20 for three, 46 for forty. With the second coordinate fastest there are 42 for
/// forty.
pub fn direction_combinations(n: usize) -> Result<Vec<Vec<f64>>> {
    if !(1..=MOST_COORDINATES).contains(&n) {
        return Err(Error::InvalidOption(format!(
            "{n} coordinates, expected 1 to {MOST_COORDINATES} for direction combinations"
        )));
    }
    let sign = |number: usize, j: usize| if j == 0 || number >> (n - 1 - j) & 1 == 0 { 1.0 } else { -1.0 };
    Ok((0..1usize << (n - 1)).map(|k| (0..n).map(|j| sign(k, j)).collect()).collect())
}

/// Returns the largest range of a coordinate in an interval within its limits of speed and acceleration (eq. 36).
fn greatest_range(c: &Coordinate, interval: f64) -> f64 {
    let by_acceleration = c.acceleration * interval * interval / std::f64::consts::TAU;
    (0.5 * c.velocity * interval).min(by_acceleration)
}

/// Published parametrization of the motion of a free-flying robot: start of each joint and its range in an interval, in the
/// direction of the combination of the interval (eqs 28–31). Wheels move with their largest range.
#[derive(Debug, Clone)]
pub struct SeededFlight<'m> {
    /// Motion as point-to-point movements.
    pub flight: Flight<'m>,
    directions: Vec<Vec<f64>>,
    interval: f64,
    /// Largest range of each coordinate in an interval (eq. 36).
    greatest: Vec<f64>,
    joints: usize,
}

/// Seeds with their cost and condition number.
#[derive(Debug, Clone)]
pub struct Seeds {
    /// Start of each joint.
    pub start: Vec<f64>,
    /// Range of each joint in an interval.
    pub range: Vec<f64>,
    /// Condition number of the regressor.
    pub condition: f64,
    /// Cost of eq. 32.
    pub cost: f64,
}

impl<'m> SeededFlight<'m> {
    /// Creates the design for the base parameters in `columns`, sampled at `rate` (Hz), within the limits of position and speed of
    /// the robot description.
    pub fn new(
        mechanism: &'m Mechanism,
        columns: &[usize],
        directions: Vec<Vec<f64>>,
        interval: f64,
        rate: f64,
    ) -> Result<Self> {
        let limits =
            DefaultLimits { velocity: f64::INFINITY, acceleration: f64::INFINITY, margin: 0.0, base: None };
        Self::within(mechanism, columns, directions, (interval, rate), &limits)
    }

    /// Creates the design for an interval (s) and a rate (Hz), with a margin to the limits, limits of acceleration, and speed
    /// limits for joints without one in the description.
    pub fn within(
        mechanism: &'m Mechanism,
        columns: &[usize],
        directions: Vec<Vec<f64>>,
        (interval, rate): (f64, f64),
        limits: &DefaultLimits,
    ) -> Result<Self> {
        let count = directions.len();
        let knots: Vec<f64> = (0..=count).map(|k| k as f64 * interval).collect();
        let duration = knots[count];
        let basis = Basis::PointToPoint { knots, profile: Profile::Cycloid };
        let mut flight = Flight::new(mechanism, columns, basis, duration, rate)?;
        let n = flight.moved.len();
        if directions.iter().any(|d| d.len() != n) {
            return Err(Error::Dimension {
                what: "directions of an interval",
                expected: n,
                found: directions.iter().map(Vec::len).find(|l| *l != n).unwrap_or(0),
            });
        }
        let coordinates = flight_coordinates(mechanism, &flight.moved, limits);
        let mut greatest = Vec::with_capacity(n);
        for (moved, c) in flight.moved.iter_mut().zip(&coordinates) {
            if !(c.velocity > 0.0 && c.velocity.is_finite()) {
                return Err(Error::InvalidOption(format!(
                    "{} has no velocity limit, expected one",
                    moved.name
                )));
            }
            (moved.limits.lower, moved.limits.upper) = (c.lower, c.upper);
            greatest.push(greatest_range(c, interval));
        }
        let joints = flight.moved.iter().filter(|m| m.joint.is_some()).count();
        Ok(Self { flight, directions, interval, greatest, joints })
    }

    /// Returns the positions at the ends of all intervals, by interval and coordinate.
    fn coefficients(&self, start: &[f64], range: &[f64]) -> Vec<f64> {
        let n = self.greatest.len();
        let range = |j: usize| if j < self.joints { range[j] } else { self.greatest[j] };
        let mut at: Vec<f64> = (0..n).map(|j| if j < self.joints { start[j] } else { 0.0 }).collect();
        let mut out = at.clone();
        for direction in &self.directions {
            for j in 0..n {
                at[j] += direction[j] * range(j);
            }
            out.extend_from_slice(&at);
        }
        out
    }

    /// Returns the motion of given seeds, for a [`Flight`] or a controller.
    pub fn trajectory(&self, seeds: &Seeds) -> Result<Trajectory> {
        self.flight.trajectory(&self.coefficients(&seeds.start, &seeds.range))
    }

    /// Returns the triangular factor of the regressor of each interval, or of its information if the noise of the rates is given.
    pub fn intervals(&self, seeds: &Seeds, noise: Option<&[f64]>) -> Result<Vec<crate::linalg::Triangle>> {
        let per = (self.flight.samples() - 1) / self.directions.len();
        self.flight.factors(&self.coefficients(&seeds.start, &seeds.range), noise, per)
    }

    /// Computes the Fisher information of the base parameters for given noise of the rates.
    pub fn information(&self, seeds: &Seeds, noise: &[f64]) -> Result<nalgebra::DMatrix<f64>> {
        self.flight.information(&self.coefficients(&seeds.start, &seeds.range), noise)
    }

    /// Minimizes eq. 32 with the weight `w` over the seeds, from given starts at full range. The limits (eqs 33, 37) always hold:
    /// a range is a squared sine times its maximum, and a barrier limits the positions.
    pub fn optimize(&self, start: &[f64], w: f64, steps: usize) -> Result<Seeds> {
        self.optimize_observed(start, w, steps, |_| true).map(|found| found.0)
    }

    /// Minimizes eq. 32 with an observer, which receives the cost after each step and stops the search by returning `false`. Also
    /// returns whether the search converged.
    pub fn optimize_observed(
        &self,
        start: &[f64],
        w: f64,
        steps: usize,
        mut observe: impl FnMut(f64) -> bool,
    ) -> Result<(Seeds, bool)> {
        let n = self.joints;
        if start.len() != n {
            return Err(Error::Dimension { what: "starts of the joints", expected: n, found: start.len() });
        }
        let mut x = start.to_vec();
        x.resize(2 * n, 0.9);
        // Reduce the initial ranges until they fit: the limits may be too narrow for the largest ones.
        for j in 0..n {
            while !self.fits(&x, j) {
                x[n + j] *= 0.8;
                if x[n + j] < 1e-3 {
                    return Err(Error::Infeasible(format!(
                        "no range of {} fits between its limits from the start {}, expected a start inside",
                        self.flight.moved[j].name, x[j]
                    )));
                }
            }
        }
        let options = lbfgs::Options { steps, gain: 1e-4, ..lbfgs::Options::default() };
        let cost = |x: &[f64], g: &mut [f64]| self.cost(x, w, g).map(|c| c.0);
        if !cost(&x, &mut vec![0.0; 2 * n])?.is_finite() {
            return Err(Error::Infeasible(format!(
                "the directions of these {} intervals do not excite all unknowns: use more intervals, or \
                 other combinations of directions",
                self.directions().len()
            )));
        }
        let found = lbfgs::minimize(&x, &options, cost, |_, value| observe(value))?;
        let seeds = self.seeds(&found.x[..n], &self.ranges(&found.x), w)?;
        Ok((seeds, found.settled))
    }

    /// Creates the seeds of given starts and ranges, with their cost (eq. 32) and condition number.
    pub fn seeds(&self, start: &[f64], range: &[f64], w: f64) -> Result<Seeds> {
        for (what, given) in [("starts of the joints", start), ("ranges of the joints", range)] {
            if given.len() != self.joints {
                return Err(Error::Dimension { what, expected: self.joints, found: given.len() });
            }
        }
        let coefficients = self.coefficients(start, range);
        let found = self.flight.published_cost(&coefficients, w, &mut vec![0.0; coefficients.len()])?;
        Ok(Seeds {
            start: start.to_vec(),
            range: range.to_vec(),
            condition: found.condition,
            cost: found.cost,
        })
    }

    fn ranges(&self, x: &[f64]) -> Vec<f64> {
        let part = |x: f64| LEAST_RANGE + (1.0 - LEAST_RANGE) * x.sin().powi(2);
        (0..self.joints).map(|j| self.greatest[j] * part(x[self.joints + j])).collect()
    }

    /// Computes the cost with its barrier, and the condition number.
    fn cost(&self, x: &[f64], w: f64, gradient: &mut [f64]) -> Result<(f64, f64)> {
        let n = self.joints;
        gradient.fill(0.0);
        let barrier = self.barrier(x, gradient);
        if barrier.is_infinite() {
            return Ok((barrier, f64::INFINITY));
        }
        let ranges = self.ranges(x);
        let coefficients = self.coefficients(&x[..n], &ranges);
        let mut slope = vec![0.0; coefficients.len()];
        let found = self.flight.published_cost(&coefficients, w, &mut slope)?;
        let all = self.greatest.len();
        let mut displacement = vec![0.0; n];
        for k in 0..=self.directions.len() {
            for j in 0..n {
                if k > 0 {
                    displacement[j] += self.directions[k - 1][j];
                }
                let s = slope[k * all + j];
                gradient[j] += s;
                gradient[n + j] += s * displacement[j] * self.range_slope(x, j);
            }
        }
        Ok((found.cost + barrier, found.condition))
    }

    /// Returns whether joint `j` stays within its limits.
    fn fits(&self, x: &[f64], j: usize) -> bool {
        let (limits, range) = (&self.flight.moved[j].limits, self.ranges(x)[j]);
        let inside = |displacement: f64| {
            let q = x[j] + displacement * range;
            q > limits.lower && q < limits.upper
        };
        let mut displacement = 0.0;
        inside(displacement)
            && self.directions.iter().all(|d| {
                displacement += d[j];
                inside(displacement)
            })
    }

    fn range_slope(&self, x: &[f64], j: usize) -> f64 {
        self.greatest[j] * (1.0 - LEAST_RANGE) * (2.0 * x[self.joints + j]).sin()
    }

    /// Computes `−μ Σ log(distance to a limit)` over the ends of all intervals. Movements are monotonic, so the ends are
    /// sufficient.
    fn barrier(&self, x: &[f64], gradient: &mut [f64]) -> f64 {
        let (n, ranges) = (self.joints, self.ranges(x));
        let mut sum = 0.0;
        for j in 0..n {
            let limits = &self.flight.moved[j].limits;
            let mut displacement = 0.0;
            for k in 0..=self.directions.len() {
                if k > 0 {
                    displacement += self.directions[k - 1][j];
                }
                let q = x[j] + displacement * ranges[j];
                for (distance, sign) in [(q - limits.lower, -1.0), (limits.upper - q, 1.0)] {
                    if distance <= 0.0 {
                        return f64::INFINITY;
                    }
                    if distance.is_finite() {
                        sum -= BARRIER * distance.ln();
                        let slope = sign * BARRIER / distance;
                        gradient[j] += slope;
                        gradient[n + j] += slope * displacement * self.range_slope(x, j);
                    }
                }
            }
        }
        sum
    }

    /// Returns the directions of the intervals.
    pub fn directions(&self) -> &[Vec<f64>] {
        &self.directions
    }

    /// Returns the length of an interval (s).
    pub fn interval(&self) -> f64 {
        self.interval
    }
}
