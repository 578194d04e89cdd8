//! Inverse dynamics, forward dynamics and free flight, sample by sample.

use inertial::dynamics::ClosedMechanism;
use inertial::excitation::ROUNDED;
use inertial::mechanism::Mechanism;
use inertial::simulation::{
    ForceSensor, Forward, FreeFlyer, JointForces, PoseRule, Prescribed, PrescribedMotion, SensorReading,
    Sensors,
};
use inertial::spatial::Force;
use nalgebra::{Matrix3, Vector3};

use super::Drift;
use super::sink::RowSink;
use super::table::Table;
use crate::{Context, Error, Located, Result, ensure};

/// Sampling rate (Hz) if the trajectory has no rows.
const DEFAULT_RATE: f64 = 100.0;

/// Largest number of samples, which limits the disk space.
const MOST_SAMPLES: f64 = 1e8;

/// Number of samples between progress reports.
const REPORT_INTERVAL: usize = 1 << 10;

/// Times at which the sensors are read.
pub enum Times {
    Rows(Vec<f64>),
    Uniform { start: f64, end: f64, rate: f64, count: usize },
}

impl Times {
    /// Creates times at a rate, or at the rows of the trajectory.
    pub fn new(prescribed: &PrescribedMotion<'_, '_>, rate: Option<f64>) -> Result<Self> {
        let (start, end) = prescribed.span();
        if let (None, Some(times)) = (rate, prescribed.times()) {
            return Ok(Self::Rows(times.to_vec()));
        }
        let rate = rate.unwrap_or(DEFAULT_RATE);
        let count = (end - start) * rate;
        ensure!(
            count <= MOST_SAMPLES,
            "{} s at {rate} Hz are {count:.1e} samples, more than the limit of {MOST_SAMPLES:.0e}",
            end - start
        );
        // A last sample slightly after the end due to rounding is included.
        let count = (count + 1e-6).floor() as usize + 1;
        Ok(Self::Uniform { start, end, rate, count })
    }

    pub fn len(&self) -> usize {
        match self {
            Self::Rows(times) => times.len(),
            Self::Uniform { count, .. } => *count,
        }
    }

    fn at(&self, k: usize) -> f64 {
        match self {
            Self::Rows(times) => times[k],
            Self::Uniform { start, end, rate, .. } => (start + k as f64 / rate).min(*end),
        }
    }

    /// Iterates over the sample indices, reports progress at intervals, and stops if requested.
    fn with_progress<'c>(&self, context: &'c Context<'c>) -> impl Iterator<Item = Result<usize>> + use<'c> {
        let count = self.len();
        (0..count).map(move |k| {
            if k.is_multiple_of(REPORT_INTERVAL) {
                context.check_interrupted()?;
                context.progress.share(k as f64 / count as f64);
            }
            Ok(k)
        })
    }

    pub fn span(&self) -> (f64, f64) {
        (self.at(0), self.at(self.len() - 1))
    }
}

/// Writer of sensor readings to a sink.
pub struct Output<'o> {
    table: Table,
    sensors: Sensors,
    sink: Option<&'o mut dyn RowSink>,
    row: Vec<f64>,
}

impl<'o> Output<'o> {
    /// Creates an output and passes the names of the columns to the sink.
    pub fn new(table: Table, sensors: Sensors, mut sink: Option<&'o mut dyn RowSink>) -> Result<Self> {
        if let Some(sink) = &mut sink {
            sink.names(table.names())?;
        }
        Ok(Self { table, sensors, sink, row: Vec::new() })
    }

    fn write(&mut self, t: f64, reading: &SensorReading) -> Result<()> {
        let Some(sink) = &mut self.sink else { return Ok(()) };
        self.table.row(t, reading, &mut self.row);
        self.sensors.measure(&mut self.row);
        sink.row(&self.row)
    }

    /// Returns the names of the columns.
    pub fn names(&self) -> &[String] {
        self.table.names()
    }
}

/// Joint limits that a given motion must satisfy.
pub struct Limits {
    /// Name, index of position and velocity, lower limit, upper limit, speed limit.
    joints: Vec<(String, usize, usize, f64, f64, f64)>,
}

impl Limits {
    pub fn new(mechanism: &Mechanism) -> Self {
        let names = mechanism.position_names();
        let leaders = mechanism.joints().iter().filter(|j| j.follows.is_none());
        let simple = leaders.filter(|j| j.joint_type.nq() == j.joint_type.nv());
        let joints = simple.flat_map(|j| {
            let l = j.limits;
            let speed = l.given_velocity().unwrap_or(f64::INFINITY);
            j.q_range().zip(j.v_range()).map(move |(q, v)| (q, v, l.lower, l.upper, speed))
        });
        Self { joints: joints.map(|(q, v, a, b, c)| (names[q].clone(), q, v, a, b, c)).collect() }
    }

    fn check(&self, reading: &SensorReading) -> Result<()> {
        // Designed trajectories may reach a limit up to rounding error; the tolerance of speeds covers the rounding of digits in a file.
        let slack = |limit: f64| 1e-9 * (1.0 + limit.abs());
        for (name, q, v, lower, upper, speed) in &self.joints {
            let (q, v) = (reading.q[*q], reading.v[*v]);
            let problem = if q < lower - slack(*lower) {
                format!("{name} is at {q}, below its limit {lower}")
            } else if q > upper + slack(*upper) {
                format!("{name} is at {q}, above its limit {upper}")
            } else if v.abs() > (1.0 + ROUNDED) * speed + slack(*speed) {
                format!("{name} moves at {v}, faster than its limit {speed}")
            } else {
                continue;
            };
            return Err(Error::Hint {
                reason: problem,
                option: "ignore-limits",
                effect: "simulates it anyway".into(),
            });
        }
        Ok(())
    }
}

fn largest(most: &mut Option<f64>, value: f64) {
    *most = Some(most.map_or(value, |m| m.max(value)));
}

/// Robot whose motion is given.
pub struct Inverse<'r> {
    pub closed: &'r ClosedMechanism<'r>,
    pub forces: JointForces,
    pub sensor: Option<ForceSensor<'r>>,
}

/// Simulates inverse dynamics: the motion is given, the forces are computed.
pub fn inverse(
    context: &Context<'_>,
    robot: Inverse<'_>,
    prescribed: &mut PrescribedMotion<'_, '_>,
    times: &Times,
    limits: Option<&Limits>,
    output: &mut Output<'_>,
) -> Result<Drift> {
    let Inverse { closed, forces, mut sensor } = robot;
    let mut sensors = Prescribed::new(closed, forces)?;
    let mut workspace = closed.workspace();
    let mut reading = SensorReading::new(closed);
    let mut drift = Drift::default();
    for k in times.with_progress(context) {
        let k = k?;
        let t = times.at(k);
        let here = || format!("t = {t} s");
        let SensorReading { q, v, a, wheels, .. } = &mut reading;
        prescribed.state(t, q, v, a, wheels)?;
        sensors.complete(&mut reading).at(here())?;
        if let Some(limits) = limits {
            limits.check(&reading).at(here())?;
        }
        if let Some(sensor) = &mut sensor {
            reading.sensor = sensor.read(&reading).at(here())?;
        }
        if !closed.mechanism().loops().is_empty() {
            largest(&mut drift.closure, closed.residual(&mut workspace, &reading.q)?);
        }
        output.write(t, &reading)?;
    }
    Ok(drift)
}

/// Simulates forward dynamics: the forces are given, the motion is computed.
pub fn forward(
    context: &Context<'_>,
    closed: &ClosedMechanism<'_>,
    forces: JointForces,
    prescribed: &mut PrescribedMotion<'_, '_>,
    times: &Times,
    output: &mut Output<'_>,
) -> Result<Drift> {
    let mut reading = SensorReading::new(closed);
    let mut workspace = closed.workspace();
    let SensorReading { q, v, a, wheels, .. } = &mut reading;
    prescribed.state(times.at(0), q, v, a, wheels)?;
    let mut plant = Forward::new(closed, forces, &reading.q, &reading.v)?;
    let mut tau = vec![0.0; closed.mechanism().nv()];
    let kinks = prescribed.times().unwrap_or_default();
    let (mut drift, mut scale) = (Drift::default(), 0.0f64);
    let mut t = times.at(0);
    for k in times.with_progress(context) {
        let k = k?;
        let next = times.at(k);
        let here = |t: f64| format!("after t = {t} s");
        // Forces have kinks at the rows of the trajectory, which no step crosses.
        while t < next {
            let kink = kinks.get(kinks.partition_point(|&s| s <= t)).copied().unwrap_or(next);
            let to = kink.min(next);
            plant.advance(t, to, |t, tau| prescribed.forces(t, tau)).at(here(t))?;
            t = to;
        }
        prescribed.forces(t, &mut tau);
        plant.read(&tau, &mut reading).at(here(t))?;
        let balance = plant.balance()?;
        largest(&mut drift.energy, balance.energy);
        scale = scale.max(balance.energy_scale);
        if let Some(momentum) = balance.momentum {
            largest(&mut drift.momentum, momentum);
        }
        if !closed.mechanism().loops().is_empty() {
            largest(&mut drift.closure, closed.residual(&mut workspace, &reading.q)?);
        }
        output.write(t, &reading)?;
    }
    drift.energy_relative = drift.energy.map(|e| if scale > 0.0 { e / scale } else { 0.0 });
    Ok(drift)
}

/// Total momentum, and integration rule for the pose.
pub struct Flight {
    pub momentum: [f64; 6],
    pub rule: PoseRule,
}

/// Simulates free flight: the motion of joints and wheels is given, that of the base is computed.
pub fn free_flight(
    context: &Context<'_>,
    mechanism: &Mechanism,
    flight: &Flight,
    prescribed: &mut PrescribedMotion<'_, '_>,
    times: &Times,
    limits: Option<&Limits>,
    output: &mut Output<'_>,
) -> Result<Drift> {
    let [px, py, pz, lx, ly, lz] = flight.momentum;
    let total = Force::new(Vector3::new(lx, ly, lz), Vector3::new(px, py, pz));
    let mut flyer = FreeFlyer::new(mechanism)?.with_momentum(total).with_rule(flight.rule);
    let closed = ClosedMechanism::new(mechanism)?;
    let mut reading = SensorReading::new(&closed);
    let mut given = SensorReading::new(&closed);
    let mut drift = Drift::default();
    let mut start = None;
    for k in times.with_progress(context) {
        let k = k?;
        let t = times.at(k);
        let here = || format!("t = {t} s");
        prescribed.state(t, &mut given.q, &mut given.v, &mut given.a, &mut given.wheels)?;
        if k == 0 {
            // Initial pose of the trajectory, or the origin.
            reading.q.copy_from_slice(&given.q);
        }
        reading.q[7..].copy_from_slice(&given.q[7..]);
        reading.v[6..].copy_from_slice(&given.v[6..]);
        reading.wheels.copy_from_slice(&given.wheels);
        if let Some(limits) = limits {
            limits.check(&reading).at(here())?;
        }
        let own = flyer.respond(&reading.q, &mut reading.v, &reading.wheels).at(here())?;
        let (l, a) = (own.linear, own.angular);
        reading.momentum = [l.x, l.y, l.z, a.x, a.y, a.z];
        let (now, mass, centre) = flyer.totals(&reading.q, &reading.v, &reading.wheels)?;
        largest(&mut drift.momentum, (now - total).to_vector().amax());
        let (begin, first) = *start.get_or_insert((t, centre));
        largest(&mut drift.centre_of_mass, (centre - first - total.linear * ((t - begin) / mass)).norm());
        output.write(t, &reading)?;
        if k + 1 < times.len() {
            let mut failed = Ok(());
            let motion = |t: f64, q: &mut [f64], v: &mut [f64], wheels: &mut [f64]| {
                let state = prescribed.state(t, &mut given.q, &mut given.v, &mut given.a, wheels);
                if state.is_err() {
                    failed = state;
                }
                q[7..].copy_from_slice(&given.q[7..]);
                v[6..].copy_from_slice(&given.v[6..]);
            };
            flyer.advance(t, times.at(k + 1), &mut reading.q, motion).at(here())?;
            failed?;
        }
    }
    Ok(drift)
}

/// Rejects a robot whose wheels cannot exchange momentum in every direction, unless it has a momentum of its own.
pub fn check_wheels(mechanism: &Mechanism, momentum: [f64; 6]) -> Result<()> {
    let wheels = mechanism.wheels();
    if momentum.iter().any(|x| *x != 0.0) {
        return Ok(());
    }
    ensure!(
        !wheels.is_empty(),
        "the robot has no reaction wheels, so its momentum is zero and carries no information (add [[wheels]], or give a total momentum)"
    );
    // Wheel axes in the world frame, with the model at rest.
    let mut workspace = inertial::dynamics::Workspace::new(mechanism);
    inertial::dynamics::forward_kinematics(mechanism, &mut workspace, mechanism.assembly())?;
    let axes = wheels.iter().map(|w| workspace.poses()[w.body].rotation * w.axis);
    let spread: Matrix3<f64> = axes.map(|a| a * a.transpose()).sum();
    // The determinant is 1 for three orthogonal axes; 1e-3 corresponds to an angle of two degrees to a plane.
    ensure!(
        spread.determinant() > 1e-3,
        "the axes of the wheels ({}) do not span space: along one direction no momentum can be exchanged",
        wheels.iter().map(|w| w.name.as_str()).collect::<Vec<_>>().join(", ")
    );
    Ok(())
}
