//! Simulation of the sensor readings during a motion.

mod ros;
mod run;
mod sink;
mod table;
mod trajectory;

use inertial::Warnings;
use inertial::dynamics::ClosedMechanism;
use inertial::identifiability::Measured;
use inertial::mechanism::{Base, Mechanism};
use inertial::simulation::{ForceSensor, JointForces, PoseRule, Sensors};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::choice::{self, JointForcesOf};
use crate::model::{Summary, label};
use crate::progress::Unit;
use crate::setting::Setting;
use crate::{Context, Located, Model, Note, Result, ensure_option};
pub use sink::{Csv, RowSink};
use table::Table;
use trajectory::Source;

/// Options of a simulation.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Options {
    /// Name of the trajectory: CSV, a ROS `JointTrajectory` in YAML, or coefficients in JSON or TOML.
    pub trajectory: String,
    /// Whether the forces are given and the motion is computed.
    pub forward: bool,
    /// Whether the rows are waypoints at which the robot stops.
    pub waypoints: bool,
    /// Measured quantities; joint torques by default, with a floating base also the base wrench.
    #[serde(with = "choice::optional")]
    #[schemars(with = "Option<choice::Words<Measured>>")]
    pub measured: Option<Measured>,
    /// Joints that have a torque sensor; all if empty.
    pub joints: Vec<String>,
    /// Link that carries a force/torque sensor in its frame; the sensor carries the link and everything attached to it.
    pub force_sensor: Option<String>,
    /// Sampling rate (Hz); by default the sensors are read at the rows of the trajectory, or at 100 Hz if it has none.
    pub rate: Option<f64>,
    /// Standard deviations of the noise by column.
    pub noise: Vec<Setting>,
    /// Constant errors by column.
    pub bias: Vec<Setting>,
    /// Quantization steps by column.
    pub quantum: Vec<Setting>,
    /// Seed of the noise.
    pub seed: u64,
    /// Friction, damping and springs of the joints.
    #[serde(with = "choice")]
    #[schemars(with = "choice::Words<JointForcesOf>")]
    pub friction: JointForcesOf,
    /// Total momentum of a free flight, world frame (N s, N m s); zero if absent.
    pub momentum: Option<[f64; 6]>,
    /// Integration rule for the pose of a free flight.
    #[serde(with = "choice")]
    #[schemars(with = "choice::Words<PoseRule>")]
    pub pose: PoseRule,
    /// Whether motion beyond the joint limits is simulated.
    pub ignore_limits: bool,
}

inertial::with_changes!(Options);

impl Options {
    /// Checks the options.
    pub fn check(&self) -> Result<()> {
        ensure_option!(!(self.forward && self.waypoints), "forward", "cannot be combined with waypoints");
        let positive = |x: f64| x > 0.0 && x.is_finite();
        ensure_option!(self.rate.is_none_or(positive), "rate", "expected a number above zero");
        let finite = |m: [f64; 6]| m.iter().all(|x| x.is_finite());
        ensure_option!(self.momentum.is_none_or(finite), "momentum", "expected six finite numbers");
        Ok(())
    }
}

/// Kind of simulation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Inverse dynamics: the motion is given, the forces are computed.
    InverseDynamics,
    /// Forward dynamics: the forces are given, the motion is computed.
    ForwardDynamics,
    /// Free flight: the motion of joints and wheels is given, that of the base is computed.
    FreeFlight,
}

/// Violation of conservation laws and loop constraints; quantities that do not apply are absent.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct Drift {
    /// Largest difference between change of energy and work (J).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub energy: Option<f64>,
    /// Largest difference between change of energy and work, relative to the energies involved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub energy_relative: Option<f64>,
    /// Largest difference between change of momentum and impulse (N s, N m s).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub momentum: Option<f64>,
    /// Largest distance of the centre of mass from its straight line (m).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub centre_of_mass: Option<f64>,
    /// Largest closure error of the loops (rad, or relative to their length).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub closure: Option<f64>,
}

const SCHEMA: &str = "inertial/simulation/1";

/// Properties of a simulated log, without its samples.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Outcome {
    /// Schema of the object.
    #[schemars(extend("const" = SCHEMA))]
    schema: &'static str,
    /// Simulated model.
    pub model: Summary,
    /// Kind of simulation.
    pub mode: Mode,
    /// Measured quantities.
    pub measured: &'static str,
    /// Number of samples.
    pub samples: usize,
    /// Time of the first sample (s).
    pub start: f64,
    /// Time of the last sample (s).
    pub end: f64,
    /// Names of the columns.
    pub columns: Vec<String>,
    /// Seed of the noise.
    pub seed: u64,
    /// Violation of conservation laws and loop constraints.
    pub drift: Drift,
    /// Warnings.
    #[serde(flatten)]
    pub warnings: Warnings<Note>,
}

/// Simulates a motion and writes the samples to `out`.
pub fn run(
    model: &Model,
    options: &Options,
    context: &Context<'_>,
    out: Option<&mut dyn RowSink>,
) -> Result<Outcome> {
    options.check()?;
    let mechanism = &model.mechanism;
    let closed = ClosedMechanism::new(mechanism).at(&model.label)?;
    let measured = measured(options, model)?;
    let mode = match measured {
        _ if options.forward => Mode::ForwardDynamics,
        Measured::Momentum => Mode::FreeFlight,
        _ => Mode::InverseDynamics,
    };
    ensure_option!(
        options.momentum.is_none() || mode == Mode::FreeFlight,
        "momentum",
        "needs a free flight (measured momentum)"
    );
    let forces = match options.friction {
        JointForcesOf::Model => JointForces::of(mechanism).at(&model.label)?,
        JointForcesOf::None => JointForces::none(mechanism),
    };
    let mut notes = model.notes_with_loops(&closed);
    let place = label(&options.trajectory);
    let source = Source::load(context, &options.trajectory, options.waypoints, mechanism)?;
    let mut prescribed = source.prescribed_motion(&closed, mode, &mut notes).at(&place)?;
    let times = run::Times::new(&prescribed, options.rate).at(&place)?;
    ensure_option!(
        options.force_sensor.is_none() || mode == Mode::InverseDynamics,
        "force-sensor",
        "needs a given motion (inverse dynamics)"
    );
    let sensor = options.force_sensor.as_deref();
    let sensor = sensor.map(|link| ForceSensor::new(&model.builder, mechanism, link)).transpose()?;
    let table = Table::new(&closed, measured, mode, &options.joints, sensor.is_some())?;
    let pairs = |list: &[Setting]| list.iter().map(|s| (s.column.clone(), s.value)).collect::<Vec<_>>();
    let (noise, bias, quantum) = (pairs(&options.noise), pairs(&options.bias), pairs(&options.quantum));
    let sensors = Sensors::new(table.names(), &noise, &bias, &quantum, options.seed)?;
    let flight = run::Flight { momentum: options.momentum.unwrap_or_default(), rule: options.pose };
    let limits = (!options.ignore_limits).then(|| run::Limits::new(mechanism));
    let work = context.work(Unit::Samples, times.len() as u64);
    let mut output = run::Output::new(table, sensors, out)?;
    let drift = match mode {
        Mode::InverseDynamics => {
            let plant = run::Inverse { closed: &closed, forces, sensor };
            run::inverse(context, plant, &mut prescribed, &times, limits.as_ref(), &mut output)
        }
        Mode::ForwardDynamics => run::forward(context, &closed, forces, &mut prescribed, &times, &mut output),
        Mode::FreeFlight => run::free_flight(
            context,
            mechanism,
            &flight,
            &mut prescribed,
            &times,
            limits.as_ref(),
            &mut output,
        ),
    };
    drop(work);
    let drift = match drift {
        // Write errors are not located in the input.
        Err(crate::Error::Io(error)) => return Err(error.into()),
        other => other.at(&place)?,
    };
    let (start, end) = times.span();
    notes.iter().for_each(|note| context.note(note));
    Ok(Outcome {
        schema: SCHEMA,
        model: Summary::new(&closed),
        mode,
        measured: measured.name(),
        samples: times.len(),
        start,
        end,
        columns: output.names().to_vec(),
        seed: options.seed,
        drift,
        warnings: Warnings(notes),
    })
}

/// Returns the measured quantities, and checks that they can be measured.
fn measured(options: &Options, model: &Model) -> Result<Measured> {
    let mechanism: &Mechanism = &model.mechanism;
    let floating = mechanism.base() == Base::Floating;
    let usual = if floating { Measured::Both } else { Measured::JointTorques };
    let measured = options.measured.unwrap_or(usual);
    if measured == Measured::Momentum {
        ensure_option!(
            !options.forward,
            "forward",
            "cannot be combined with measured momentum: a free flight needs a given motion"
        );
        ensure_option!(floating, "measured", "momentum needs a free-flying robot: make its base floating");
        run::check_wheels(mechanism, options.momentum.unwrap_or_default()).at(&model.label)?;
    }
    Ok(measured)
}
