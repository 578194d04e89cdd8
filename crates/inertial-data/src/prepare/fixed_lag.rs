//! Fixed-lag smoother: states and torques of a stream, with a fixed delay after their measurement.

use std::collections::VecDeque;

use inertial::mechanism::{JointType, Mechanism};

use crate::clean::checks::{self, Derivative, DerivativeCheck};
use crate::columns::assignment::is_angle;
use crate::columns::layout::check_unit_quaternion;
use crate::prepare::window::{Places, Row, Window};
use crate::{Columns, Error, Log, Options, Place, Result};

/// Maximum number of samples in a window; it bounds the memory for any time stamps.
const MOST_SAMPLES: usize = 100_000;

/// Longest gap, relative to the window, that does not start a new window.
const WIDEST_HOLE: f64 = 0.25;

/// Smoothed sample.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct StreamSample {
    /// Time of measurement.
    pub t: f64,
    /// Positions.
    pub q: Vec<f64>,
    /// Velocities.
    pub v: Vec<f64>,
    /// Accelerations.
    pub a: Vec<f64>,
    /// Forces, smoothed like the motion; zero if not measured.
    pub tau: Vec<f64>,
    /// Forces as measured.
    pub tau_raw: Vec<f64>,
    /// Whether each force is to be used: it is measured, and its joint is not near standstill.
    pub keep: Vec<bool>,
    /// Share of the samples that is statistically independent after smoothing.
    pub independent: f64,
}

/// Smoothing filter for streams. Around each sample, a polynomial of fourth order is fitted to each signal over a window of constant
/// duration, at the actual time stamps; its value and derivatives in the middle are the result. The filter has zero phase with a
/// delay of half the window; jitter and single missing rows do not matter. Poses of floating bases and other joints of
/// several coordinates are smoothed in logarithmic coordinates about the middle of the window.
///
/// ```
/// use inertial::mechanism::{BuildOptions, builtin};
/// use inertial_data::{CsvReader, FixedLag, Options};
/// let mechanism = builtin::get("planar-2r")?.build(&BuildOptions::default())?;
/// let mut text = String::from("t,q1,q2,tau1,tau2\n");
/// for k in 0..100 {
///     let t = 0.01 * f64::from(k);
///     text += &format!("{t},{},{},1,2\n", (3.0 * t).sin(), (2.0 * t).cos());
/// }
/// let mut reader = CsvReader::new(text.as_bytes(), "stream")?;
/// let mut filter = None;
/// while let Some(row) = reader.next_block(1)? {
///     let filter = match &mut filter {
///         Some(filter) => filter,
///         none => none.insert(FixedLag::new(&mechanism, &row, 0.2, &Options::default())?),
///     };
///     for sample in filter.push(&row)? {
///         assert!((sample.a[0] + 9.0 * (3.0 * sample.t).sin()).abs() < 2e-3);
///     }
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct FixedLag<'m> {
    mechanism: &'m Mechanism,
    columns: Columns,
    places: Places,
    half: f64,
    slow: f64,
    rows: VecDeque<Row>,
    /// Index of the first row that has not been the middle of a window.
    next: usize,
    /// Start of the current section without gaps.
    began: f64,
    /// Maximum speed of each coordinate so far.
    fastest: Vec<f64>,
    /// Statistics for the check of units; `None` if the units are not checked.
    units: Option<Units>,
}

/// Number of steps before the check of the unit of time (single gaps may be long), and number of samples before the check of velocities.
const STEPS: usize = 20;
const SAMPLES: usize = 100;

/// Statistics of the stream for the check of units.
#[derive(Debug)]
struct Units {
    names: Vec<String>,
    /// Number of steps so far, and the shortest of them.
    steps: usize,
    shortest: f64,
    /// Minimum, maximum and last value, and maximum speed of each logged position.
    positions: Vec<[f64; 4]>,
    /// Comparison of measured velocities and accelerations with derivatives.
    slips: [Vec<DerivativeCheck>; 2],
    samples: usize,
}

impl<'m> FixedLag<'m> {
    /// Creates the smoother of the stream that starts with `log`, with a window of `window` seconds. Of the options, only those for columns
    /// and slow joints are used.
    pub fn new(mechanism: &'m Mechanism, log: &Log, window: f64, options: &Options) -> Result<Self> {
        if !(window > 0.0 && window.is_finite()) {
            return Err(Error::Option(format!("window of {window} s: expected more than zero")));
        }
        options.check()?;
        let columns = Columns::of(mechanism, log, options)?;
        Ok(Self {
            mechanism,
            places: Places::new(mechanism, &columns),
            columns,
            half: 0.5 * window,
            slow: options.slow,
            rows: VecDeque::new(),
            next: 0,
            began: 0.0,
            fastest: vec![0.0; mechanism.nv()],
            units: (!options.trust_units).then(|| Units {
                names: log.names().to_vec(),
                steps: 0,
                shortest: f64::INFINITY,
                positions: vec![[f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 0.0]; mechanism.nq()],
                slips: [
                    vec![DerivativeCheck::default(); mechanism.nv()],
                    vec![DerivativeCheck::default(); mechanism.nv()],
                ],
                samples: 0,
            }),
        })
    }

    /// Checks the units of time and positions in the same way as for a whole log.
    fn check_units(&mut self, place: impl Fn() -> Place, t: f64, values: &[f64]) -> Result<()> {
        let Some(units) = &mut self.units else { return Ok(()) };
        let step = self.rows.back().map_or(f64::INFINITY, |last| t - last.t);
        if step.is_finite() {
            units.steps += 1;
            units.shortest = units.shortest.min(step);
            let warning = (units.steps == STEPS).then(|| checks::implausible_step(units.shortest)).flatten();
            if let Some(message) = warning {
                return Err(Error::units(place().column(&units.names[self.columns.t]), message));
            }
        }
        for joint in self.mechanism.joints().iter().filter(|j| j.follows.is_none()) {
            let limit = joint.limits.lower.abs().max(joint.limits.upper.abs());
            for k in joint.q_range() {
                let [low, high, last, speed] = &mut units.positions[k];
                let Some(now) = self.places.q[k].map(|place| values[place]) else { continue };
                (*low, *high) = (low.min(now), high.max(now));
                // The value before the second row is NaN, which `max` ignores.
                *speed = speed.max((now - *last).abs() / step);
                *last = now;
                let name = self.columns.q[k].map_or("", |c| &units.names[c]);
                let warning = if is_angle(self.mechanism, k) {
                    checks::implausible_angle(*low, *high, *speed, limit)
                } else {
                    let limit = if joint.joint_type.nq() == 1 { limit } else { f64::INFINITY };
                    checks::implausible_length(*low, *high, *speed, limit, name)
                };
                if let Some(message) = warning {
                    return Err(Error::units(place().column(name), message));
                }
            }
        }
        Ok(())
    }

    /// Returns the notes about the columns.
    pub fn notes(&self) -> &[String] {
        &self.columns.notes
    }

    /// Adds rows and returns the samples that are now known. An empty cell makes its row a gap; time that runs
    /// backwards is rejected.
    pub fn push(&mut self, log: &Log) -> Result<Vec<StreamSample>> {
        let mut out = Vec::new();
        for (i, &row) in log.rows().iter().enumerate() {
            let place = || Place::file(log.file()).row(row);
            let t = log.column_at(self.columns.t)[i];
            if t.is_nan() {
                return Err(Error::time(place(), "has no time"));
            }
            let last = self.rows.back().map(|r| r.t);
            if last.is_some_and(|last| t < last) {
                return Err(Error::time(place(), "time runs backwards: a stream cannot be sorted"));
            }
            let c = &self.columns;
            let wanted = c.q.iter().chain(&c.dq).chain(&c.ddq).chain(&c.tau).flatten();
            let mut values: Vec<f64> = wanted.map(|&k| log.column_at(k)[i]).collect();
            if last == Some(t) || values.iter().any(|x| x.is_nan()) {
                continue;
            }
            // Steps of half a window must be representable in the times.
            if t + self.half == t {
                let message = format!(
                    "a window of {:?} s is too short for times as large as {t:?} s: are they in seconds?",
                    2.0 * self.half
                );
                return Err(Error::time(place(), message));
            }
            self.check_units(place, t, &values)?;
            self.check_quaternions(place, &mut values)?;
            if last.is_none_or(|last| t - last > 2.0 * WIDEST_HOLE * self.half) {
                self.rows.clear();
                self.next = 0;
                self.began = t;
            } else if let Some(last) = self.rows.back() {
                unwrap(self.mechanism, &self.places, &last.values, &mut values);
            }
            self.rows.push_back(Row { t, values });
            if self.rows.len() > MOST_SAMPLES {
                let message =
                    format!("more than {MOST_SAMPLES} samples in one window: are the times in seconds?");
                return Err(Error::time(place(), message));
            }
            while let Some(middle) = self.rows.get(self.next).map(|row| row.t)
                && middle + self.half <= t
            {
                while self.rows[0].t < middle - self.half {
                    self.rows.pop_front();
                    self.next -= 1;
                }
                if middle - self.began >= self.half {
                    out.push(self.sample(middle, &place())?);
                }
                self.next += 1;
            }
        }
        Ok(out)
    }

    /// Normalizes quaternions, and rejects those whose length is far from one.
    fn check_quaternions(&self, place: impl Fn() -> Place, values: &mut [f64]) -> Result<()> {
        for joint in self.mechanism.joints().iter().filter(|j| j.follows.is_none()) {
            let first = match joint.joint_type {
                JointType::Spherical => joint.q,
                JointType::Floating => joint.q + 3,
                _ => continue,
            };
            let &[Some(x), Some(y), Some(z), Some(w)] = &self.places.q[first..first + 4] else { continue };
            let norm = [x, y, z, w].iter().map(|&k| values[k] * values[k]).sum::<f64>().sqrt();
            check_unit_quaternion(norm, &joint.name, &place)?;
            [x, y, z, w].iter().for_each(|&k| values[k] /= norm);
        }
        Ok(())
    }

    /// Computes the sample in the middle of the window.
    fn sample(&mut self, middle: f64, place: &Place) -> Result<StreamSample> {
        let rows = self.rows.iter().take_while(|r| r.t <= middle + self.half);
        let window =
            Window::new(rows, middle, self.half).map_err(|message| Error::time(place.clone(), message))?;
        let places = &self.places;
        let raw = &self.rows[self.next].values;
        let n = self.mechanism.nv();
        // Velocities and accelerations derived from the positions, and those to be used.
        let state = window.state(self.mechanism, places, raw);
        let fit = |k: usize, order: usize| window.fit(|values| values[k], order);
        let derived_a: Vec<f64> = (0..n).map(|k| places.dq[k].map_or(state.a[k], |p| fit(p, 1))).collect();
        let sample = StreamSample {
            t: middle,
            v: (0..n).map(|k| places.dq[k].map_or(state.v[k], |p| fit(p, 0))).collect(),
            a: (0..n).map(|k| places.ddq[k].map_or(derived_a[k], |p| fit(p, 0))).collect(),
            tau: places.tau.iter().map(|p| p.map_or(0.0, |p| fit(p, 0))).collect(),
            tau_raw: places.tau.iter().map(|p| p.map_or(0.0, |p| raw[p])).collect(),
            keep: Vec::new(),
            independent: window.independent(),
            q: state.q,
        };
        if let Some(units) = self.units.as_mut().filter(|units| units.samples < SAMPLES) {
            units.samples += 1;
            let c = &self.columns;
            for k in 0..n {
                for (of, column, measured, derived) in [
                    (Derivative::Velocity, c.dq[k], sample.v[k], state.v[k]),
                    (Derivative::Acceleration, c.ddq[k], sample.a[k], derived_a[k]),
                ] {
                    let Some(column) = column else { continue };
                    let slip = &mut units.slips[usize::from(of != Derivative::Velocity)][k];
                    slip.add(measured, derived);
                    if units.samples == SAMPLES {
                        checks::derivative_unit(&place.clone().column(&units.names[column]), of, slip)?;
                    }
                }
            }
        }
        let mut keep = Vec::with_capacity(n);
        for k in 0..n {
            let speed = sample.v[k].abs();
            self.fastest[k] = self.fastest[k].max(speed);
            // A floating base has no friction whose sign could be uncertain.
            let slowest = if places.free[k] { 0.0 } else { self.slow * self.fastest[k] };
            keep.push(places.tau[k].is_some() && speed >= slowest);
        }
        Ok(StreamSample { keep, ..sample })
    }
}

/// Unwraps angles relative to the last row.
fn unwrap(mechanism: &Mechanism, places: &Places, last: &[f64], values: &mut [f64]) {
    let turn = 2.0 * std::f64::consts::PI;
    for k in (0..mechanism.nq()).filter(|&k| is_angle(mechanism, k)) {
        if let Some(place) = places.q[k] {
            values[place] -= turn * ((values[place] - last[place]) / turn).round();
        }
    }
}
