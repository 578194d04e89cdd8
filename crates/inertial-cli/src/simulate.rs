//! `inertial simulate`: what would the sensors read during that motion?

mod ros;
mod run;
mod settings;
mod table;
mod trajectory;

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use clap::ValueEnum;
use inertial::consistency::significant;
use inertial::dynamics::ClosedMechanism;
use inertial::mechanism::{Base, Mechanism};
use inertial::simulation::{JointForces, PoseRule, Sensors};
use serde::Serialize;

use crate::model::{self, Model};
use crate::options::{MeasuredChoice, ModelOptions, Setting};
use crate::output::{self, Answer, Sink};
use crate::progress::Work;
use table::Table;
use trajectory::Source;

const HELP: &str = "\
TRAJECTORY is CSV with a header: t in seconds and q.JOINT (or q1, q2, ...), perhaps dq.JOINT and
ddq.JOINT, or a ROS JointTrajectory in YAML: the sensors are read at its rows, or at --rate. In
between, positions alone are joined by a cubic spline, positions with velocities by quintic
polynomials. --waypoints takes the rows as points to stop at, with quintic movements between.
Or it is a trajectory file that 'inertial design' wrote (JSON or TOML), read at --rate.

Without --forward the motion is given and the forces follow. A floating base moves as base.x ...
base.qw (and base.vx ... base.alz) say, or rests. With loops the independent joints are given and
the others follow.
With --forward the forces are given (tau.JOINT, wrench.fx ... wrench.tz on a floating base,
straight between rows, zero where not given) and the motion follows, from the first row's q and
dq; energy and momentum are balanced and their drift is reported.
With --measured momentum the robot flies freely: joints and reaction wheels (dq.WHEEL or
q.WHEEL) are given and the base answers so that the total momentum stays what --momentum says
(zero by default). Gravity plays no part: the world falls with the robot.

--noise, --bias and --quantum are for columns or groups of them: q, dq, tau, tau.elbow, base.v,
base.w, base.q (an angle), wrench.f, momentum. The longest name that fits counts. The noise of a
column depends on --seed and its name alone.

Examples:
  inertial simulate robot.urdf motion.csv --out log.csv
  inertial simulate robot.urdf points.csv --waypoints --rate 500 --noise q=1e-5,tau=0.05
  inertial simulate builtin:planar-2r drop.csv --forward --rate 100 --json
  inertial simulate builtin:space-dual-arm motion.csv --measured momentum --rate 10 \\
    --noise dq=5e-5,base.v=5e-5,base.w=8e-5 --seed 1 --out flight.csv";

/// What would the sensors read during that motion?
#[allow(clippy::struct_excessive_bools, reason = "a command has as many switches as it needs")]
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// Model file, '-' for standard input, or builtin:NAME
    #[arg(value_name = "MODEL")]
    model: String,
    /// Trajectory: CSV, ROS `JointTrajectory` (YAML), or a trajectory file (JSON, TOML); '-' reads standard input
    #[arg(value_name = "TRAJECTORY")]
    trajectory: String,
    /// Forces are given, motion follows
    #[arg(long, conflicts_with = "waypoints")]
    forward: bool,
    /// The rows are points to stop at
    #[arg(long)]
    waypoints: bool,
    /// What the sensors give [default: joint-torques; with a floating base both]
    #[arg(long, value_enum)]
    measured: Option<MeasuredChoice>,
    /// Joints that have a torque sensor, by name [default: all]
    #[arg(long, value_name = "A,B,C", value_delimiter = ',')]
    joints: Vec<String>,
    /// Samples per second [default: the trajectory's rows, else 100]
    #[arg(long, value_name = "HZ", value_parser = settings::positive)]
    rate: Option<f64>,
    /// Standard deviation of noise by column
    #[arg(long, value_name = "COLUMN=SD,...", value_delimiter = ',')]
    noise: Vec<Setting>,
    /// Constant errors by column
    #[arg(long, value_name = "COLUMN=X,...", value_delimiter = ',', allow_hyphen_values = true)]
    bias: Vec<Setting>,
    /// Steps of quantisation by column
    #[arg(long, value_name = "COLUMN=STEP,...", value_delimiter = ',')]
    quantum: Vec<Setting>,
    /// Seed of the noise
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// Friction, damping and springs of the joints: as the model says, or none
    #[arg(long, value_enum, default_value = "model")]
    friction: FrictionChoice,
    /// Total momentum of a free flight, world frame (N s, N m s) [default: 0,0,0,0,0,0]
    #[arg(long, value_name = "PX,PY,PZ,LX,LY,LZ", allow_hyphen_values = true, value_parser = settings::six)]
    momentum: Option<[f64; 6]>,
    /// How a free flight's pose follows from its twist
    #[arg(long, value_enum, default_value = "exact")]
    pose: PoseChoice,
    /// Simulate motion beyond the joints' limits too
    #[arg(long)]
    ignore_limits: bool,
    /// Print a summary as JSON; the log goes to --out
    #[arg(long)]
    json: bool,
    /// Write the log, completely or not at all [default: standard output]
    #[arg(long, value_name = "PATH")]
    out: Option<PathBuf>,
    #[command(flatten)]
    options: ModelOptions,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum FrictionChoice {
    Model,
    None,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum PoseChoice {
    Exact,
    Trapezoid,
    Euler,
}

impl From<PoseChoice> for PoseRule {
    fn from(choice: PoseChoice) -> Self {
        match choice {
            PoseChoice::Exact => Self::Exact,
            PoseChoice::Trapezoid => Self::Trapezoid,
            PoseChoice::Euler => Self::Euler,
        }
    }
}

/// What is simulated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    InverseDynamics,
    ForwardDynamics,
    FreeFlight,
}

/// How well the laws of mechanics are kept; what does not apply is left out.
#[derive(Debug, Default, Serialize)]
pub struct Drift {
    /// Change of energy less work (J), at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub energy: Option<f64>,
    /// The same over the energies involved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub energy_relative: Option<f64>,
    /// Change of momentum less impulse (N s, N m s), at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub momentum: Option<f64>,
    /// Distance of the centre of mass from its straight line (m), at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub centre_of_mass: Option<f64>,
    /// Residual of the loops (rad, or relative to their length), at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub closure: Option<f64>,
}

#[derive(Serialize)]
struct Summary<'a> {
    schema: &'static str,
    model: model::Summary,
    mode: Mode,
    measured: &'static str,
    samples: usize,
    start: f64,
    end: f64,
    columns: &'a [String],
    seed: u64,
    drift: Drift,
    warnings: Vec<String>,
}

pub fn run(args: &Args) -> Result<Answer> {
    ensure!(
        args.model != "-" || args.trajectory != "-",
        "MODEL and TRAJECTORY cannot both come from standard input"
    );
    let model = Model::load(&args.model)?;
    let mechanism = model.build(&args.options.build_options())?;
    let closed = ClosedMechanism::new(&mechanism).with_context(|| model.label.clone())?;
    let measured = measured(args, &mechanism)?;
    let mode = match measured {
        _ if args.forward => Mode::ForwardDynamics,
        MeasuredChoice::Momentum => Mode::FreeFlight,
        _ => Mode::InverseDynamics,
    };
    ensure!(
        args.momentum.is_none() || mode == Mode::FreeFlight,
        "--momentum is of a free flight: it needs --measured momentum"
    );
    let forces = match args.friction {
        FrictionChoice::Model => JointForces::of(&mechanism).with_context(|| model.label.clone())?,
        FrictionChoice::None => JointForces::none(&mechanism),
    };
    let mut notes: Vec<String> = closed.warnings().to_vec();
    let source = Source::load(&args.trajectory, args.waypoints, &mechanism)?;
    let mut course =
        source.course(&closed, mode, &mut notes).with_context(|| trajectory::label(&args.trajectory))?;
    let times = run::Times::new(&course, args.rate).with_context(|| trajectory::label(&args.trajectory))?;
    let table = Table::new(&closed, measured, mode, &args.joints)?;
    let pairs = |list: &[Setting]| list.iter().map(|s| (s.column.clone(), s.value)).collect::<Vec<_>>();
    let (noise, bias, quantum) = (pairs(&args.noise), pairs(&args.bias), pairs(&args.quantum));
    let sensors = Sensors::new(table.names(), &noise, &bias, &quantum, args.seed)?;
    let to_file = args.out.is_some();
    let sink = if to_file || !args.json { Some(Sink::new(args.out.as_deref())?) } else { None };
    let mut output = run::Output::new(table, sensors, sink)?;
    let flight = run::Flight { momentum: args.momentum.unwrap_or_default(), rule: args.pose.into() };
    let limits = (!args.ignore_limits).then(|| run::Limits::new(&mechanism));
    let work = Work::on_samples(times.len());
    let drift = match mode {
        Mode::InverseDynamics => {
            run::inverse(&closed, forces, &mut course, &times, limits.as_ref(), &mut output)
        }
        Mode::ForwardDynamics => run::forward(&closed, forces, &mut course, &times, &mut output),
        Mode::FreeFlight => {
            run::free_flight(&mechanism, &flight, &mut course, &times, limits.as_ref(), &mut output)
        }
    };
    drop(work);
    let drift = drift.map_err(|error| match &args.out {
        // What cannot be written is no fault of what was read.
        Some(path) if error.is::<std::io::Error>() => error.context(path.display().to_string()),
        _ => error.context(trajectory::label(&args.trajectory)),
    })?;
    for note in &notes {
        output::say(note);
    }
    let (start, end) = times.span();
    let names = output.finish()?;
    let summary = Summary {
        schema: "inertial/simulation/1",
        model: model::Summary::new(&closed),
        mode,
        measured: name(measured),
        samples: times.len(),
        start,
        end,
        columns: &names,
        seed: args.seed,
        drift,
        warnings: notes,
    };
    if args.json {
        output::print_json(&summary)?;
    } else if to_file {
        output::print(&summary.text())?;
    }
    Ok(Answer::Yes)
}

/// What is measured, and whether that can be.
fn measured(args: &Args, mechanism: &Mechanism) -> Result<MeasuredChoice> {
    let floating = mechanism.base() == Base::Floating;
    let measured =
        args.measured.unwrap_or(if floating { MeasuredChoice::Both } else { MeasuredChoice::JointTorques });
    if measured == MeasuredChoice::Momentum {
        ensure!(!args.forward, "--forward gives forces: --measured momentum takes motion");
        ensure!(floating, "--measured momentum needs a robot that flies (--base floating)");
        run::check_wheels(mechanism, args.momentum.unwrap_or_default())
            .with_context(|| trajectory::label(&args.model))?;
    }
    Ok(measured)
}

fn name(measured: MeasuredChoice) -> &'static str {
    match measured {
        MeasuredChoice::JointTorques => "joint-torques",
        MeasuredChoice::BaseWrench => "base-wrench",
        MeasuredChoice::Both => "both",
        MeasuredChoice::Momentum => "momentum",
    }
}

impl Summary<'_> {
    fn text(&self) -> String {
        let mut out =
            format!("{}\n{} samples, t = {} to {} s\n", self.model, self.samples, self.start, self.end);
        let d = &self.drift;
        for (what, value, unit) in [
            ("energy drift", d.energy, "J"),
            ("energy drift over the energies", d.energy_relative, ""),
            ("momentum drift", d.momentum, "N s, N m s"),
            ("drift of the centre of mass", d.centre_of_mass, "m"),
            ("loops open by at most", d.closure, ""),
        ] {
            if let Some(value) = value {
                out += format!("{what}: {} {unit}", significant(value, 3)).trim_end();
                out += "\n";
            }
        }
        out
    }
}
