//! `inertial simulate`: simulation of sensor readings during a motion.

use std::path::PathBuf;

use anyhow::{Result, ensure};
use inertial::identifiability::Measured;
use inertial::simulation::PoseRule;
use inertial_app::choice::{Choice as _, JointForcesOf};
use inertial_app::disk::Sink;
use inertial_app::setting::Setting;
use inertial_app::simulate::{Csv, Options, RowSink, run as simulate};
use inertial_app::{Error, Located as _, Model};
use inertial_report::simulation as text;

use crate::options::{ModelArgs, OUTPUT, choice, numbers, positive};
use crate::output::Answer;
use crate::shell::Shell;

const EXAMPLES: &str = "\
Examples:
  inertial simulate robot.urdf motion.csv --out log.csv
  inertial simulate robot.urdf points.csv --waypoints --rate 500 \\
    --noise q=1e-5,tau=0.05
  inertial simulate builtin:planar-2r drop.csv --forward --rate 100 --json
  inertial simulate builtin:space-dual-arm motion.csv \\
    --measured momentum --rate 10 --seed 1 \\
    --noise dq=5e-5,base.v=5e-5,base.w=8e-5 --out flight.csv";

const DETAILS: &str = "\
TRAJECTORY is CSV with a header: t in seconds and q.JOINT (or q1, q2, ...), optionally dq.JOINT
and ddq.JOINT, or a ROS JointTrajectory in YAML: the sensors are read at its rows, or at --rate. In
between, positions alone are joined by a cubic spline, positions with velocities by quintic
polynomials. --waypoints takes the rows as points to stop at, with quintic movements between.
Or it is a trajectory file that 'inertial design' wrote (JSON or TOML), read at --rate.

Without --forward the motion is given and the forces are computed. A floating base moves as given
in base.x ... base.qw (and base.vx ... base.alz), or is fixed without these columns. With loops the
independent joints are given and the others are computed.
With --forward the forces are given (tau.JOINT, wrench.fx ... wrench.tz on a floating base,
linear between rows, zero if not given) and the motion is computed, from q and dq of the first row;
the drift of energy and momentum is reported.
With --measured momentum the robot flies freely: joints and reaction wheels (dq.WHEEL or
q.WHEEL) are given and the base reacts so that the total momentum stays at --momentum (zero by
default). Gravity is ignored: the robot is in free fall.

--noise, --bias and --quantum are for columns or groups of them: q, dq, tau, tau.elbow, base.v,
base.w, base.q (an angle), wrench.f, momentum. The longest matching name applies. The noise of
a column depends only on --seed and its name.

";

/// Heading in the help.
const SENSORS: &str = "Sensors";

/// Simulate the sensor readings during a motion
#[allow(clippy::struct_excessive_bools, reason = "a command has as many switches as it needs")]
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, after_long_help = [DETAILS, EXAMPLES].concat())]
pub struct Args {
    /// Model file, '-' for standard input, or builtin:NAME
    #[arg(value_name = "MODEL")]
    model: String,
    /// Trajectory: CSV, ROS `JointTrajectory` (YAML), or a trajectory file (JSON, TOML); '-' reads standard input
    #[arg(value_name = "TRAJECTORY")]
    trajectory: String,
    /// Compute the motion from given forces (forward dynamics)
    #[arg(long, conflicts_with = "waypoints")]
    forward: bool,
    /// Treat the rows as waypoints at which the robot stops
    #[arg(long)]
    waypoints: bool,
    /// Measured quantities [default: joint-torques; with a floating base both]
    #[arg(long, value_name = "WHAT", value_parser = choice::<Measured>(), help_heading = SENSORS)]
    measured: Option<Measured>,
    /// Joints that have a torque sensor, by name [default: all]
    #[arg(long, value_name = "A,B,C", value_delimiter = ',', help_heading = SENSORS, hide_short_help = true)]
    joints: Vec<String>,
    /// Force/torque sensor in the frame of this link, which carries the link and everything attached to it (ft.fx … ft.tz)
    #[arg(long, value_name = "LINK", help_heading = SENSORS, hide_short_help = true)]
    force_sensor: Option<String>,
    /// Sampling rate in Hz [default: the rows of the trajectory; 100 if it has none]
    #[arg(long, value_name = "HZ", value_parser = positive)]
    rate: Option<f64>,
    /// Standard deviation of noise by column
    #[arg(long, value_name = "COLUMN=SD,...", value_delimiter = ',', help_heading = SENSORS)]
    noise: Vec<Setting>,
    /// Constant errors by column
    #[arg(long, value_name = "COLUMN=X,...", value_delimiter = ',', allow_hyphen_values = true, help_heading = SENSORS, hide_short_help = true)]
    bias: Vec<Setting>,
    /// Quantization steps by column
    #[arg(long, value_name = "COLUMN=STEP,...", value_delimiter = ',', help_heading = SENSORS, hide_short_help = true)]
    quantum: Vec<Setting>,
    /// Seed of the noise
    #[arg(long, value_name = "N", default_value_t = Options::default().seed, help_heading = SENSORS)]
    seed: u64,
    /// Friction, damping and springs of the joints: those of the model, or none
    #[arg(long, value_name = "FRICTION", value_parser = choice::<JointForcesOf>(), hide_short_help = true,
          default_value = Options::default().friction.word())]
    friction: JointForcesOf,
    /// Total momentum of a free flight, world frame (N s, N m s) [default: 0,0,0,0,0,0]
    #[arg(long, value_name = "PX,PY,PZ,LX,LY,LZ", allow_hyphen_values = true, value_parser = numbers::<6>,
          hide_short_help = true)]
    momentum: Option<[f64; 6]>,
    /// Integration rule for the pose of a free flight
    #[arg(long, value_name = "RULE", value_parser = choice::<PoseRule>(), hide_short_help = true,
          default_value = Options::default().pose.word())]
    pose: PoseRule,
    /// Simulate motion beyond the joints' limits too
    #[arg(long, hide_short_help = true)]
    ignore_limits: bool,
    /// Print a summary as JSON; the log goes to --out
    #[arg(long, help_heading = OUTPUT)]
    json: bool,
    /// Write the log, completely or not at all [default: standard output]
    #[arg(short, long, value_name = "PATH", help_heading = OUTPUT)]
    out: Option<PathBuf>,
    #[command(flatten)]
    options: ModelArgs,
}

impl Args {
    fn simulation_options(&self) -> Options {
        Options::default().with(|o| {
            o.trajectory.clone_from(&self.trajectory);
            o.forward = self.forward;
            o.waypoints = self.waypoints;
            o.measured = self.measured;
            o.joints.clone_from(&self.joints);
            o.force_sensor.clone_from(&self.force_sensor);
            o.rate = self.rate;
            o.noise.clone_from(&self.noise);
            o.bias.clone_from(&self.bias);
            o.quantum.clone_from(&self.quantum);
            o.seed = self.seed;
            o.friction = self.friction;
            o.momentum = self.momentum;
            o.pose = self.pose;
            o.ignore_limits = self.ignore_limits;
        })
    }
}

pub fn run(args: &Args, shell: &Shell) -> Result<Answer> {
    ensure!(
        args.model != "-" || args.trajectory != "-",
        "MODEL and TRAJECTORY cannot both come from standard input"
    );
    shell.reserve(&args.out)?;
    let model = Model::load(&args.model, &args.options.options(), shell.disk())?;
    let sink = match &args.out {
        Some(path) => Some(Sink::to_file(shell.disk(), path)?),
        None if args.json => None,
        None => Some(Sink::to_stream("standard output")),
    };
    let mut csv = sink.map(Csv::new);
    let written = csv.as_mut().map(|csv| csv as &mut dyn RowSink);
    let outcome = match (simulate(&model, &args.simulation_options(), &shell.context(), written), &args.out) {
        (Err(Error::Io(error)), Some(path)) => Err(error).at(path.display())?,
        (outcome, _) => outcome?,
    };
    match (csv.map(Csv::into_inner), &args.out) {
        (Some(sink), Some(path)) => {
            sink.finish()?;
            shell.wrote(&[path.display().to_string()], args.json);
        }
        (Some(sink), None) => shell.print_sink(sink)?,
        _ => {}
    }
    if args.json {
        shell.print_json(&outcome)?;
    } else if args.out.is_some() {
        shell.print(&text::text(&outcome))?;
    }
    Ok(Answer::Yes)
}
