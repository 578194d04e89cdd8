//! `inertial design`: design of a motion that determines the parameters within the joint limits.

use std::path::PathBuf;

use anyhow::Result;
use inertial::excitation::ModelAggregation;
use inertial::identifiability::Measured;
use inertial_app::Model;
use inertial_app::choice::{Choice as _, Combinations, Friction, Goal, Offset, Shape};
use inertial_app::design::{Format, Options, run as design};
use inertial_app::disk::OutputFiles;
use inertial_app::setting::Setting;
use inertial_report::{design as text, page};

use crate::options::{ModelArgs, OUTPUT, choice, numbers};
use crate::output::Answer;
use crate::pictures::Pictures;
use crate::shell::Shell;

const EXAMPLES: &str = "\
Examples:
  inertial design robot.urdf --out motion.csv
  inertial design robot.urdf --duration 20 --rate 100 \\
    --friction coulomb+viscous --noise tau=0.5
  inertial design robot.urdf --ground 0.05 --link-radius 0.06 \\
    --out motion.yaml --out motion.json
  inertial design builtin:quadruped --base-motion 0.1,0.3
  inertial design builtin:space-dual-arm --measured momentum \\
    --duration 67 --rate 10 --out flight.json \\
    --noise dq=5e-5,base.v=5e-5,base.w=8e-5";

const DETAILS: &str = "\
The motion starts and ends at rest and stays within the model's limits of position, speed and
torque (less --margin), within --acceleration, and, if requested, within a --workspace, above the
--ground and free of self-collision; the result is checked at 1 kHz for all of these limits. Among
all such motions the search (sequential quadratic programming from --starts random motions) looks
for the one whose data would give the smallest errors: --criterion d (volume of the error
ellipsoid), a (mean square error), e (worst direction), crb (mean square of the errors relative to
the parameters), worst (largest error relative to its parameter), condition, scaled-condition, or
paper (condition number plus --weight over the mean square speed). The unknowns are those that
identify estimates with the same --friction, --offset and --rotors.

The result has a certificate: the rank of the motion's regressor and the largest possible rank,
the expected standard error of every parameter for the given --noise, and which parameters stay
weak, and why. --prior-summary FILE adds the information of earlier logs (identify
--summary-out): the motion then excites what is not yet known.

With --measured momentum the robot flies freely: the motion is that of its joints and reaction
wheels, velocities at knots, for identify --measured momentum with noisy rates. A --workspace is
then a box about the base, in its frame. --trajectory cycloid is the published method (by default
with --criterion paper): in every interval each joint moves by its range in one direction, and
--combinations selects the combinations of directions, one per interval.

--out NAME.csv writes t, q.J, dq.J, ddq.J; NAME.yaml a ROS JointTrajectory; NAME.json or NAME.toml
the coefficients, which simulate reads. Give --out several times for several files.

The search runs until it converges, but not longer than --time-limit (20 s); with --iterations and
without --time-limit it has that many steps and gives the same motion on every machine. Ctrl-C ends
it and keeps the best motion so far.

";

/// Headings in the help.
const UNKNOWNS: &str = "Measurement and unknowns";
const ROOM: &str = "Limits of the motion";
const SEARCH: &str = "Search";

fn defaults() -> Options {
    Options::default()
}

/// Design a motion that determines the parameters best within the joint limits
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, after_long_help = [DETAILS, EXAMPLES].concat())]
pub struct Args {
    /// Model file, '-' for standard input, or builtin:NAME
    #[arg(value_name = "MODEL")]
    model: String,
    /// Length of the motion in seconds
    #[arg(long, value_name = "S", default_value_t = defaults().duration)]
    duration: f64,
    /// Sampling rate of the measurement in Hz
    #[arg(long, value_name = "HZ", default_value_t = defaults().rate)]
    rate: f64,
    /// Basis of the trajectory [default: fourier; for a free flight velocity]
    #[arg(long, value_name = "BASIS", value_parser = choice::<Shape>(), help_heading = SEARCH, hide_short_help = true)]
    trajectory: Option<Shape>,
    /// Harmonics of a Fourier series [default: one per two seconds, 5 to 12]
    #[arg(long, value_name = "N", help_heading = SEARCH, hide_short_help = true)]
    harmonics: Option<usize>,
    /// Intervals of other trajectories [default: one per second]
    #[arg(long, value_name = "N", help_heading = SEARCH, hide_short_help = true)]
    intervals: Option<usize>,
    /// Seeds of the cycloids of a free flight: start positions of all joints, then their ranges in an interval (rad or m) [default: optimized]
    #[arg(long, value_name = "Q1,…,R1,…", value_delimiter = ',', allow_hyphen_values = true, help_heading = SEARCH,
          hide_short_help = true)]
    seeds: Option<Vec<f64>>,
    /// Direction combinations of the cycloids of a free flight, one per interval
    #[arg(long, value_name = "WHICH", value_parser = choice::<Combinations>(),
          default_value = defaults().combinations.word(), help_heading = SEARCH, hide_short_help = true)]
    combinations: Combinations,
    /// Criterion to minimize [default: d; for the cycloids of a free flight paper]
    #[arg(long, value_name = "CRITERION", value_parser = choice::<Goal>(), help_heading = SEARCH, hide_short_help = true)]
    criterion: Option<Goal>,
    /// Weight of the speeds in --criterion paper
    #[arg(long, value_name = "W", default_value_t = defaults().weight, help_heading = SEARCH, hide_short_help = true)]
    weight: f64,
    /// Measured quantities [default: joint-torques; with a floating base both]
    #[arg(long, value_name = "WHAT", value_parser = choice::<Measured>(), help_heading = UNKNOWNS)]
    measured: Option<Measured>,
    /// Joints that have a torque sensor, by name [default: all]
    #[arg(long, value_name = "A,B,C", value_delimiter = ',', help_heading = UNKNOWNS, hide_short_help = true)]
    joints: Option<Vec<String>>,
    /// Standard deviations of the measurement: tau (N m), tau.JOINT, wrench.f (N), wrench.t (N m); for a free flight
    /// dq, base.v and base.w [default: 1; for a free flight 1e-4]
    #[arg(long, value_name = "KEY=X,…", value_delimiter = ',', help_heading = UNKNOWNS)]
    noise: Vec<Setting>,
    /// Friction terms to be estimated
    #[arg(long, value_name = "FRICTION", value_parser = choice::<Friction>(), default_value = defaults().friction.word(),
          help_heading = UNKNOWNS)]
    friction: Friction,
    /// Stribeck friction about which --friction stribeck is linearized: force (N m or N), speed (rad/s or m/s),
    /// exponent [default: the model's Coulomb friction or 1, 0.1, 2]
    #[arg(long, value_name = "F,V,D", value_parser = numbers::<3>, help_heading = UNKNOWNS, hide_short_help = true)]
    stribeck: Option<[f64; 3]>,
    /// Constant torque offsets of the joints among the unknowns: if unknown ones would make standard errors more than five times as
    /// large, for all joints (also --offset alone), or none
    #[arg(long, value_name = "OFFSET", value_parser = choice::<Offset>(), help_heading = UNKNOWNS, num_args = 0..=1,
          require_equals = true, default_value = defaults().offset.word(), default_missing_value = Offset::Yes.word())]
    offset: Offset,
    /// Summary of earlier logs, as identify --summary-out writes it
    #[arg(long, value_name = "FILE", help_heading = UNKNOWNS, hide_short_help = true)]
    prior_summary: Vec<String>,
    /// Acceleration limit of every joint (rad/s² or m/s²)
    #[arg(long, value_name = "A", default_value_t = defaults().acceleration, help_heading = ROOM)]
    acceleration: f64,
    /// Speed limit of joints without one in the model (rad/s or m/s)
    #[arg(long, value_name = "V", default_value_t = defaults().velocity, help_heading = ROOM)]
    velocity: f64,
    /// Fraction of every limit that is kept free
    #[arg(long, value_name = "F", default_value_t = defaults().margin, help_heading = ROOM)]
    margin: f64,
    /// Start position of every joint, in the order of the model [default: optimized]
    #[arg(long, value_name = "Q1,Q2,…", value_delimiter = ',', allow_hyphen_values = true, help_heading = ROOM, hide_short_help = true)]
    start: Option<Vec<f64>>,
    /// Box in which all links must stay: lower and upper corner (m)
    #[arg(long, value_name = "X,Y,Z,X,Y,Z", allow_hyphen_values = true, value_parser = numbers::<6>,
          help_heading = ROOM)]
    workspace: Option<[f64; 6]>,
    /// Height above which all links must stay (m)
    #[arg(long, value_name = "Z", allow_hyphen_values = true, help_heading = ROOM)]
    ground: Option<f64>,
    /// Treat links as capsules of this radius (m), and avoid collisions between them
    #[arg(long, value_name = "R", help_heading = ROOM)]
    link_radius: Option<f64>,
    /// Avoid collisions between the collision shapes of the model (spheres, cylinders, boxes)
    #[arg(long, help_heading = ROOM, hide_short_help = true)]
    self_collision: bool,
    /// Minimum distance to all obstacles (m)
    #[arg(long, value_name = "D", default_value_t = defaults().clearance, help_heading = ROOM, hide_short_help = true)]
    clearance: f64,
    /// Range of motion of a floating base to each side (m, rad) [default: held still]
    #[arg(long, value_name = "X,A", value_parser = numbers::<2>, help_heading = ROOM, hide_short_help = true)]
    base_motion: Option<[f64; 2]>,
    /// Alternative models of the robot, for which the motion must be suitable too
    #[arg(long, value_name = "MODEL", num_args = 1.., help_heading = SEARCH, hide_short_help = true)]
    robust: Vec<String>,
    /// Combination of the criteria of several models
    #[arg(long, value_name = "BY", value_parser = choice::<ModelAggregation>(), default_value = defaults().robust_by.word(),
          help_heading = SEARCH, hide_short_help = true)]
    robust_by: ModelAggregation,
    /// Number of searches from different random motions, of which the better half continues after 30 steps
    #[arg(long, value_name = "N", default_value_t = defaults().starts, help_heading = SEARCH, hide_short_help = true)]
    starts: usize,
    /// Largest number of steps of each search [default: until convergence]
    #[arg(long, value_name = "N", help_heading = SEARCH, hide_short_help = true)]
    iterations: Option<usize>,
    /// Time limit in seconds, after which the best motion so far is kept [default: 20 without --iterations]
    #[arg(long, visible_alias = "time", value_name = "S", help_heading = SEARCH)]
    time_limit: Option<f64>,
    /// Seed of the random motions: same inputs and seed, same result
    #[arg(long, value_name = "N", default_value_t = defaults().seed, help_heading = SEARCH, hide_short_help = true)]
    seed: u64,
    /// Print the result as JSON
    #[arg(long, help_heading = OUTPUT)]
    json: bool,
    /// Write the motion: .csv, .yaml (ROS), .json or .toml, completely or not at all
    #[arg(short, long, value_name = "PATH", help_heading = OUTPUT)]
    out: Vec<PathBuf>,
    #[command(flatten)]
    pictures: Pictures,
    #[command(flatten)]
    options: ModelArgs,
}

impl Args {
    fn design_options(&self) -> Options {
        Options::default().with(|o| {
            o.duration = self.duration;
            o.rate = self.rate;
            o.trajectory = self.trajectory;
            o.harmonics = self.harmonics;
            o.intervals = self.intervals;
            o.seeds.clone_from(&self.seeds);
            o.combinations = self.combinations;
            o.criterion = self.criterion;
            o.weight = self.weight;
            o.measured = self.measured;
            o.joints.clone_from(&self.joints);
            o.noise.clone_from(&self.noise);
            o.friction = self.friction;
            o.stribeck = self.stribeck;
            o.offset = self.offset;
            o.prior_summary.clone_from(&self.prior_summary);
            o.acceleration = self.acceleration;
            o.velocity = self.velocity;
            o.margin = self.margin;
            o.start.clone_from(&self.start);
            o.workspace = self.workspace;
            o.ground = self.ground;
            o.link_radius = self.link_radius;
            o.self_collision = self.self_collision;
            o.clearance = self.clearance;
            o.base_motion = self.base_motion;
            o.robust.clone_from(&self.robust);
            o.robust_by = self.robust_by;
            o.starts = self.starts;
            o.iterations = self.iterations;
            o.time_limit = self.time_limit;
            o.seed = self.seed;
        })
    }
}

pub fn run(args: &Args, shell: &Shell) -> Result<Answer> {
    let options = args.design_options();
    options.check()?;
    let formats = args.out.iter().map(|path| Format::of_file(path)).collect::<Result<Vec<_>, _>>()?;
    shell.reserve(args.out.iter().chain(args.pictures.outputs()))?;
    let model = Model::load(&args.model, &args.options.options(), shell.disk())?;
    shell.listen_to_ctrl_c()?;
    let context = shell.context();
    let outcome = design(&model, &options, &context)?;
    let mut files = OutputFiles::new(shell.disk());
    for (path, format) in args.out.iter().zip(formats) {
        files.add(path, &outcome.trajectory_text(format)?)?;
    }
    let drawn = args.pictures.draw(shell, &options.files(), &mut files, |origin| {
        page::of_design(&model, &outcome, origin, &context)
    })?;
    shell.write(files, args.json)?;
    if args.json {
        shell.print_json(&outcome)?;
    } else {
        shell.print(&(text::text(&outcome, shell.style()) + &drawn))?;
    }
    Ok(Answer::Yes)
}
