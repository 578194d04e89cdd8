//! Design of a free flight: velocity knots that minimize the Cramér–Rao bound.
//!
//! The Cramér–Rao bound of the errors-in-variables estimate is the inverse of the information `Σ KᵀC⁻¹K`. A [`Criterion`]
//! evaluates it as for arms. Rates are parametrized as `limit · sin x` and therefore satisfy their limits. Logarithmic barriers
//! keep positions, forces and distances within theirs.

use rayon::prelude::{IntoParallelIterator, ParallelIterator};

use super::basis::Basis;
use super::certificate::{Certificate, Excitation};
use super::clearance::CollisionModel;
use super::columns::Columns;
use super::criteria::{Criterion, Value};
use super::design_options::{Design, Progress};
use super::flight::{Flight, PART, flight_coordinates, moved};
use super::flight_limits::{FlightLimits, Memory};
use super::limits::{DefaultLimits, Usage};
use super::model_aggregation::ModelAggregation;
use super::motion_search::{BETWEEN_SAMPLES, TRIES, Watched};
use super::plan::Coordinate;
use super::scaling::unit_diagonal;
use super::starts::not_excited;
use super::trajectory::Trajectory;
use crate::identifiability::Regrouping;
use crate::linalg::SplitMix;
use crate::mechanism::Mechanism;
use crate::optimize::lbfgs;
use crate::{Error, Result};

/// Weight of the barrier per sample, joint and parameter: the total cost is less than the information of one interval.
const BARRIER: f64 = 1e-4;

/// Remaining fraction of a limit below which forces and distances have a barrier.
const NEAR: f64 = 0.3;

/// Number of steps of the first search from each start.
const FIRST_STEPS: usize = 40;

/// Rate (Hz) of the final check of the limits.
pub(super) const CHECK_RATE: f64 = 1000.0;

/// Options of [`design_flight`].
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct FlightOptions {
    /// Duration (s).
    pub duration: f64,
    /// Time between knots (s).
    pub interval: f64,
    /// Samples per second.
    pub rate: f64,
    /// Standard deviations of the rates, one per velocity coordinate.
    pub noise: Vec<f64>,
    /// Criterion to minimize.
    pub criterion: Criterion,
    /// Further guesses of the parameters of the same robot, for all of which the motion is designed; forces are those of the
    /// first.
    pub others: Vec<Mechanism>,
    /// Aggregation over the guesses.
    pub robust: ModelAggregation,
    /// Default limits of joints, and the margin to all limits; wheels have speed limits only.
    pub limits: DefaultLimits,
    /// Obstacles around the robot, in the frame of its base.
    pub collisions: CollisionModel,
    /// Number of random starts.
    pub starts: usize,
    /// Number of steps of the final search.
    pub steps: usize,
    /// Seed of the random starts.
    pub seed: u64,
}

crate::with_changes!(FlightOptions);

impl FlightOptions {
    /// Creates options for rates with these standard deviations: 20 s at 100 samples per second, with knots every second, and four
    /// searches until they converge.
    pub fn new(noise: Vec<f64>) -> Self {
        Self {
            duration: 20.0,
            interval: 1.0,
            rate: 100.0,
            noise,
            criterion: Criterion::default(),
            others: Vec::new(),
            robust: ModelAggregation::default(),
            limits: DefaultLimits::default(),
            collisions: CollisionModel::default(),
            starts: 4,
            steps: usize::MAX,
            seed: 1,
        }
    }
}

/// Designs velocity knots for the base parameters of `regrouping`. Searches from random starts run in parallel, and the best one
/// is continued. `watch` receives each step and stops all searches by returning `false`; the best motion so far is kept. The
/// result is the same for any number of threads unless `watch` stops the search.
pub fn design_flight(
    mechanism: &Mechanism,
    regrouping: &Regrouping,
    options: &FlightOptions,
    watch: &(dyn Fn(Progress) -> bool + Sync),
) -> Result<Design> {
    if !(options.interval > 0.0 && options.interval <= options.duration / 2.0) {
        return Err(Error::InvalidOption(format!(
            "the knots are {} s apart in {} s, expected at least two intervals",
            options.interval, options.duration
        )));
    }
    if matches!(options.criterion, Criterion::Paper { .. }) {
        return Err(Error::Incompatible(
            "the criterion paper is only for flights with seeded cycloids, expected another for velocity \
             knots"
                .into(),
        ));
    }
    let intervals = (options.duration / options.interval).round().max(2.0);
    if intervals > 1e4 {
        return Err(Error::InvalidOption(format!("{intervals} intervals are more than ten thousand")));
    }
    let knots = (0..=intervals as usize).map(|k| k as f64 * options.duration / intervals).collect();
    let basis = Basis::VelocityKnots { knots };
    let fly =
        |mechanism| Flight::new(mechanism, &regrouping.base, basis.clone(), options.duration, options.rate);
    let flight = fly(mechanism)?;
    if 6 * flight.samples() < flight.parameters() {
        return Err(Error::Unobservable(format!(
            "{} samples of six momenta cannot determine {} parameters: use a longer motion or a higher rate",
            flight.samples(),
            flight.parameters()
        )));
    }
    let columns = Columns::named(mechanism, regrouping)?;
    let mut problem = Problem::new(mechanism, &flight, &columns, options)?;
    for other in &options.others {
        let moves = |m: &Mechanism| moved(m).into_iter().map(|m| m.name).collect::<Vec<_>>();
        if mechanism.parameter_names() != other.parameter_names() || moves(mechanism) != moves(other) {
            return Err(Error::Incompatible(format!(
                "{} has other bodies, joints or wheels than {}: expected the same robot with other values",
                other.name(),
                mechanism.name()
            )));
        }
        problem.others.push((fly(other)?, Columns::named(other, regrouping)?.scales()));
    }
    problem.reachable()?;
    let watched = Watched::new(watch);
    let scale = columns.len() as f64;
    let search = |x: &[f64], settings: &lbfgs::Options| {
        lbfgs::minimize(x, settings, |x, g| problem.cost(x, g), |_, value| watched.step(value / scale))
    };
    let first = lbfgs::Options { steps: FIRST_STEPS, ..lbfgs::Options::default() };
    let starts = (0..options.starts.max(1))
        .into_par_iter()
        // The first start always needs its motion; after a stop request, the others do not.
        .filter(|k| *k == 0 || !watched.is_ended())
        .map(|k| search(&problem.start(options.seed.wrapping_add(k as u64))?, &first))
        .collect::<Result<Vec<_>>>()?;
    let searches = starts.iter().map(|s| s.value / scale).collect();
    // `min_by` returns the first of equal elements: the result does not depend on the order of the threads.
    let best = starts.into_iter().min_by(|a, b| a.value.total_cmp(&b.value));
    let best = best.ok_or_else(|| Error::InvalidOption("no start was tried".into()))?;
    let last = lbfgs::Options { steps: options.steps, memory: 40, ..lbfgs::Options::default() };
    let found = search(&best.x, &last)?;
    problem.design(&found.x, searches, found.settled)
}

/// Objective function of the search.
struct Problem<'a, 'm> {
    flight: &'a Flight<'m>,
    /// Flights of the other guesses, with their scales.
    others: Vec<(Flight<'a>, Vec<f64>)>,
    columns: &'a Columns,
    options: &'a FlightOptions,
    /// Units of the base parameters for relative errors.
    units: Vec<f64>,
    coordinates: Vec<Coordinate>,
    /// Largest rate of each coordinate.
    rates: Vec<f64>,
    /// Bounds of positions at samples, tightened so that positions between samples stay within the limits.
    bounds: Vec<(f64, f64)>,
    /// Limits of forces and distances.
    flight_limits: FlightLimits,
}

impl<'a, 'm> Problem<'a, 'm> {
    fn new(
        mechanism: &Mechanism,
        flight: &'a Flight<'m>,
        columns: &'a Columns,
        options: &'a FlightOptions,
    ) -> Result<Self> {
        let all = flight_coordinates(mechanism, &flight.moved, &options.limits);
        let (mut rates, mut bounds) = (Vec::new(), Vec::new());
        for c in &all {
            if !(c.velocity > 0.0 && c.velocity.is_finite()) {
                return Err(Error::InvalidOption(format!(
                    "{} has no velocity limit (it is {}), so the criterion has no optimum: set a velocity limit",
                    c.name, c.velocity
                )));
            }
            // Reversal from full speed to full speed along half a cosine.
            let rate = c.velocity.min(c.acceleration * options.interval / std::f64::consts::PI);
            // Between samples the position changes by at most half a sample at full speed.
            let margin = 0.5 * rate / options.rate;
            let (low, high) = (c.lower + margin, c.upper - margin);
            if low >= high {
                return Err(Error::Infeasible(format!(
                    "{} may move from {} to {} only, which is too small a range at {rate} per second and {} Hz",
                    c.name, c.lower, c.upper, options.rate
                )));
            }
            rates.push(rate);
            bounds.push((low, high));
        }
        let flight_limits =
            FlightLimits::new(mechanism, &flight.moved, &options.collisions, options.limits.margin);
        let others = Vec::new();
        Ok(Self {
            flight,
            others,
            columns,
            options,
            units: columns.scales(),
            coordinates: all,
            rates,
            bounds,
            flight_limits,
        })
    }

    /// Checks that random motion excites all unknowns.
    fn reachable(&self) -> Result<()> {
        let coefficients = self.coefficients(&self.start(self.options.seed)?);
        let information = self.flight.information(&coefficients, &self.options.noise)?;
        let excitation = Excitation::new(&unit_diagonal(&information))?;
        if excitation.rank == self.columns.len() {
            return Ok(());
        }
        let (duration, interval) = (self.options.duration, self.options.interval);
        Err(not_excited(
            self.columns,
            &excitation,
            &format!("motion of {duration} s with knots every {interval} s"),
        ))
    }

    /// Returns a random start: positions within the limits and random rates, reduced until the motion is feasible.
    fn start(&self, seed: u64) -> Result<Vec<f64>> {
        let mut source = SplitMix::new(seed);
        let mut uniform = || (source.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
        let n = self.rates.len();
        for _ in 0..TRIES {
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
            // At rest only distances can be violated: try another posture.
            let rest = self.coefficients(&[&x[..n], &vec![0.0; x.len() - n][..]].concat());
            if self.limit_barrier(&rest, None)?.is_infinite() {
                continue;
            }
            while self.limit_barrier(&self.coefficients(&x), None)?.is_infinite() {
                x[n..].iter_mut().for_each(|x| *x *= 0.5);
            }
            return Ok(x);
        }
        Err(Error::Infeasible(format!(
            "the limits allow no posture: none of {TRIES} has the required clearance"
        )))
    }

    /// Computes the barrier of forces and distances and adds its gradient with respect to the coefficients; infinite if a limit is
    /// exceeded.
    fn limit_barrier(&self, coefficients: &[f64], gradient: Option<&mut [f64]>) -> Result<f64> {
        if self.flight_limits.is_empty() {
            return Ok(0.0);
        }
        let (count, n, wanted) = (self.flight.samples(), self.rates.len(), gradient.is_some());
        let parts = (0..count.div_ceil(PART)).into_par_iter().map(|part| {
            let mut memory = Memory::new(&self.flight_limits)?;
            let (mut left, mut slopes) =
                (vec![0.0; self.flight_limits.len()], vec![0.0; self.flight_limits.len()]);
            let (mut row, mut back) = (vec![[0.0; 3]; n], vec![[0.0; 3]; n]);
            let (mut value, mut sum) = (0.0, vec![0.0; if wanted { coefficients.len() } else { 0 }]);
            for t in part * PART..count.min((part + 1) * PART) {
                for (j, row) in row.iter_mut().enumerate() {
                    *row = self.flight.state(coefficients, t, j);
                }
                memory.left(&row, &mut left)?;
                slopes.fill(0.0);
                let mut any = false;
                for (left, slope) in left.iter().zip(&mut slopes) {
                    let left = left - BETWEEN_SAMPLES;
                    if left <= 0.0 {
                        return Ok((f64::INFINITY, sum));
                    }
                    if left < NEAR {
                        // The slope is zero at NEAR, so that most samples do not contribute.
                        value += BARRIER * ((left - NEAR) / NEAR - (left / NEAR).ln());
                        *slope = BARRIER * (NEAR.recip() - left.recip());
                        any = true;
                    }
                }
                if any && wanted {
                    back.fill([0.0; 3]);
                    memory.pull(&row, &slopes, &mut back)?;
                    for (j, back) in back.iter().enumerate() {
                        self.flight.add_gradient(t, j, *back, &mut sum);
                    }
                }
            }
            Ok((value, sum))
        });
        let parts = parts.collect::<Result<Vec<_>>>()?;
        if let Some(gradient) = gradient {
            for (_, sum) in &parts {
                gradient.iter_mut().zip(sum).for_each(|(g, x)| *g += x);
            }
        }
        Ok(parts.iter().map(|p| p.0).sum())
    }

    fn inside(&self, coefficients: &[f64]) -> bool {
        (0..self.flight.samples()).all(|t| {
            self.bounds.iter().enumerate().all(|(j, &(low, high))| {
                let [q, ..] = self.flight.state(coefficients, t, j);
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
        let mut barrier = self.barrier(&coefficients, gradient);
        if barrier.is_finite() {
            barrier += self.limit_barrier(&coefficients, Some(gradient))?;
        }
        if !barrier.is_finite() {
            return Ok(f64::INFINITY);
        }
        let (value, criteria) = self.value_and_slopes(&coefficients)?;
        if !value.is_finite() {
            return Ok(f64::INFINITY);
        }
        // Scale per parameter, as for the barrier.
        let scale = self.columns.len() as f64;
        for ((flight, _), (criteria, weight)) in self.flights().zip(&criteria) {
            let slope = flight.information_gradient(&coefficients, &self.options.noise, &criteria.slope)?;
            gradient.iter_mut().zip(slope).for_each(|(g, s)| *g += scale * weight * s);
        }
        for (i, g) in gradient.iter_mut().enumerate().skip(n) {
            *g *= self.rates[i % n] * x[i].cos();
        }
        Ok(scale * value + barrier)
    }

    /// Returns the motion of every guess, with its units.
    fn flights(&self) -> impl Iterator<Item = (&Flight<'_>, &[f64])> {
        let others = self.others.iter().map(|(flight, units)| (flight, &units[..]));
        std::iter::once((self.flight, &self.units[..])).chain(others)
    }

    /// Evaluates the criterion of all guesses together, and of each guess with its weight.
    fn value_and_slopes(&self, coefficients: &[f64]) -> Result<(f64, Vec<(Value, f64)>)> {
        let one = |(flight, units): (&Flight<'_>, &[f64])| {
            let information = flight.information(coefficients, &self.options.noise)?;
            self.options.criterion.evaluate(&information, units, (0.0, 0))
        };
        let criteria = self.flights().map(one).collect::<Result<Vec<_>>>()?;
        let values: Vec<f64> = criteria.iter().map(|v| v.value).collect();
        let (value, weights) = self.options.robust.combine(&values);
        Ok((value, criteria.into_iter().zip(weights).collect()))
    }

    /// Computes the barrier and adds its gradient with respect to the coefficients.
    fn barrier(&self, coefficients: &[f64], gradient: &mut [f64]) -> f64 {
        let mut sum = 0.0;
        for (j, &(low, high)) in
            self.bounds.iter().enumerate().filter(|(_, b)| b.0.is_finite() || b.1.is_finite())
        {
            for t in 0..self.flight.samples() {
                let [q, ..] = self.flight.state(coefficients, t, j);
                if !(q > low && q < high) {
                    return f64::INFINITY;
                }
                // An infinite bound has no gradient; its logarithm is omitted.
                let mut slope = 0.0;
                for (distance, sign) in [(q - low, -1.0), (high - q, 1.0)] {
                    if distance.is_finite() {
                        sum -= BARRIER * distance.ln();
                        slope += sign * BARRIER / distance;
                    }
                }
                self.flight.add_gradient(t, j, [slope, 0.0, 0.0], gradient);
            }
        }
        sum
    }

    fn design(&self, x: &[f64], searches: Vec<f64>, converged: bool) -> Result<Design> {
        let (coefficients, least) = self.within(&self.coefficients(x))?;
        let information = self.flight.information(&coefficients, &self.options.noise)?;
        let trajectory = self.flight.trajectory(&coefficients)?;
        Ok(Design {
            criterion: self.value_and_slopes(&coefficients)?.0,
            searches,
            certificate: Certificate::new(self.columns, &information)?,
            usage: usage(&self.coordinates, &self.flight_limits, &trajectory, &least)?,
            trajectory,
            held: Vec::new(),
            absorbed: Vec::new(),
            converged,
        })
    }

    /// Reduces the motion about its start until it satisfies the force and distance limits at every sample of the check; also
    /// returns the smallest margin of each.
    fn within(&self, full: &[f64]) -> Result<(Vec<f64>, Vec<f64>)> {
        let n = self.rates.len();
        let (mut coefficients, mut reduction) = (full.to_vec(), 0.0);
        while reduction < 1.0 {
            let least = self.flight_limits.least(&self.flight.trajectory(&coefficients)?, CHECK_RATE)?;
            if least.iter().all(|left| *left >= 0.0) {
                return Ok((coefficients, least));
            }
            reduction = if reduction == 0.0 { 1e-3 } else { 1.5 * reduction };
            let slower = |(i, x): (usize, &f64)| if i < n { *x } else { (1.0 - reduction) * x };
            coefficients = full.iter().enumerate().map(slower).collect();
        }
        Err(Error::Infeasible("the motion does not stay within the limits between its samples".into()))
    }
}

/// Computes the used fractions of the limits, in descending order; `least` is the smallest margin of forces and distances.
pub(super) fn usage(
    coordinates: &[Coordinate],
    flight_limits: &FlightLimits,
    trajectory: &Trajectory,
    least: &[f64],
) -> Result<Vec<Usage>> {
    let n = coordinates.len();
    let (mut q, mut v, mut a) = (vec![0.0; n], vec![0.0; n], vec![0.0; n]);
    let mut most = vec![[f64::NEG_INFINITY; 4]; n];
    for i in 0..trajectory.samples(CHECK_RATE)? {
        trajectory.evaluate(i as f64 / CHECK_RATE, &mut q, &mut v, &mut a);
        for (j, (most, c)) in most.iter_mut().zip(coordinates).enumerate() {
            let used = [
                1.0 + (q[j] - c.upper) / c.reach(),
                1.0 + (c.lower - q[j]) / c.reach(),
                v[j].abs() / c.velocity,
                a[j].abs() / c.acceleration,
            ];
            most.iter_mut().zip(used).for_each(|(m, x)| *m = m.max(x));
        }
    }
    let mut all = Vec::new();
    for (most, c) in most.iter().zip(coordinates) {
        let words = ["highest position", "lowest position", "speed", "acceleration"];
        let limits = [c.upper, c.lower, c.velocity, c.acceleration];
        for ((word, limit), used) in words.iter().zip(limits).zip(most) {
            if limit.is_finite() {
                all.push(Usage::part(format!("the {word} of {}", c.name), *used));
            }
        }
    }
    all.extend(flight_limits.usage(least));
    all.sort_by(|a, b| b.used.total_cmp(&a.used));
    Ok(all)
}
