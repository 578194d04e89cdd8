//! `inertial design`: which motion reveals the parameters best, within the joint limits?

mod flight;
mod outcome;
mod subject;
mod watch;

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use clap::ValueEnum;
use inertial::excitation::{
    Coordinate, Criterion, DefaultLimits, Design, DesignOptions, Family, Profile, Robust, coordinates, design,
};
use inertial::mechanism::{Base, Mechanism};

use crate::identify::FrictionChoice;
use crate::model::{Model, plural};
use crate::options::{MeasuredChoice, ModelOptions};
use crate::output::{self, Answer, Files};
use crate::page::{self, Designed};
use crate::pictures::Pictures;
use outcome::{kind, report, text, trajectory_text};
use subject::{effort, on_plate, room, subject};
use watch::Watcher;

const HELP: &str = "\
The motion starts and ends at rest and stays within the model's limits of position, speed and
torque (less --margin), within --acceleration, and where asked within a --workspace, above the
--ground and free of self-collision; all of it is checked at 1 kHz in the end. Among all such
motions the search (sequential quadratic programming from --starts random motions) looks for the
one whose data would give the smallest errors: --criterion d (volume of the error ellipsoid), a
(mean square error), e (worst direction), crb (mean square of the errors relative to the
parameters), worst (largest error relative to its parameter), condition, scaled-condition, or
paper (condition number plus --weight over the mean square speed). The unknowns are those that identify estimates with the same --friction, --offset
and --rotors.

The result is certified: the rank that the motion reaches against the rank that the structure
allows, the standard error to be expected of every parameter for the given --noise, and which
stay weak, and why. --prior-summary FILE counts what earlier logs (identify --summary-out)
already say: the motion then looks for what is not yet known.

With --measured momentum the robot flies freely: the motion is of its joints and reaction wheels,
velocities at knots, and shows what identify --measured momentum estimates from noisy rates. A
--workspace is then a box about the base, in its frame.

--out NAME.csv writes t, q.J, dq.J, ddq.J; NAME.yaml a ROS JointTrajectory; NAME.json or NAME.toml
the coefficients, which simulate reads. Give --out several times for several files. Ctrl-C and
--time-limit end the search and keep the best motion so far.

Examples:
  inertial design robot.urdf --out motion.csv
  inertial design robot.urdf --duration 20 --rate 100 --friction coulomb+viscous --noise tau=0.5
  inertial design robot.urdf --ground 0.05 --link-radius 0.06 --out motion.yaml --out motion.json
  inertial design builtin:quadruped --base-motion 0.1,0.3
  inertial design builtin:space-dual-arm --measured momentum --duration 67 --rate 10 \\
    --noise dq=5e-5,base.v=5e-5,base.w=8e-5 --out flight.json";

/// Which motion reveals the parameters best, within the joint limits?
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// Model file, '-' for standard input, or builtin:NAME
    #[arg(value_name = "MODEL")]
    model: String,
    /// Length of the motion in seconds
    #[arg(long, value_name = "S", default_value_t = 20.0)]
    duration: f64,
    /// Samples that will be measured per second
    #[arg(long, value_name = "HZ", default_value_t = 100.0)]
    rate: f64,
    /// What the motion is made of [default: fourier; of a free flight velocity]
    #[arg(long, value_enum)]
    trajectory: Option<TrajectoryChoice>,
    /// Harmonics of a Fourier series [default: one for each two seconds, 5 to 12]
    #[arg(long, value_name = "N")]
    harmonics: Option<usize>,
    /// Pieces of other trajectories [default: one for each second]
    #[arg(long, value_name = "N")]
    intervals: Option<usize>,
    /// What is to be small
    #[arg(long, value_enum, default_value = "d")]
    criterion: CriterionChoice,
    /// Weight of the speeds in --criterion paper
    #[arg(long, value_name = "W", default_value_t = 1.0)]
    weight: f64,
    /// What the sensors give [default: joint-torques; with a floating base both]
    #[arg(long, value_enum)]
    measured: Option<MeasuredChoice>,
    /// Joints that have a torque sensor, by name [default: all]
    #[arg(long, value_name = "A,B,C", value_delimiter = ',')]
    joints: Option<Vec<String>>,
    /// Standard deviations of the measurement: tau (N m), tau.JOINT, wrench.f (N), wrench.t (N m); of a free flight dq,
    /// base.v and base.w [default: 1; of a free flight 1e-4]
    #[arg(long, value_name = "KEY=X,…", value_delimiter = ',')]
    noise: Vec<String>,
    /// Friction that will be estimated
    #[arg(long, value_enum, default_value = "none")]
    friction: FrictionChoice,
    /// Friction at rest above that of sliding that --friction stribeck is designed about: force (N m or N), speed (rad/s
    /// or m/s), exponent [default: the model's Coulomb friction or 1, 0.1, 2]
    #[arg(long, value_name = "F,V,D", value_delimiter = ',')]
    stribeck: Option<Vec<f64>>,
    /// A constant offset of each joint's torque will be estimated
    #[arg(long)]
    offset: bool,
    /// What earlier logs say, as identify --summary-out wrote it
    #[arg(long, value_name = "FILE")]
    prior_summary: Vec<String>,
    /// Highest acceleration of every joint (rad/s² or m/s²)
    #[arg(long, value_name = "A", default_value_t = 10.0)]
    acceleration: f64,
    /// Highest speed of joints whose model gives none (rad/s or m/s)
    #[arg(long, value_name = "V", default_value_t = 2.0)]
    velocity: f64,
    /// Part of every limit that is kept free
    #[arg(long, value_name = "F", default_value_t = 0.05)]
    margin: f64,
    /// Position of every joint at the start, in the model's order [default: the best one]
    #[arg(long, value_name = "Q1,Q2,…", value_delimiter = ',', allow_hyphen_values = true)]
    start: Option<Vec<f64>>,
    /// Box that all links must stay in: lowest and highest corner (m)
    #[arg(long, value_name = "X,Y,Z,X,Y,Z", value_delimiter = ',', allow_hyphen_values = true)]
    workspace: Option<Vec<f64>>,
    /// Height that all links must stay above (m)
    #[arg(long, value_name = "Z", allow_hyphen_values = true)]
    ground: Option<f64>,
    /// Take links as capsules of this radius (m), and keep them from each other
    #[arg(long, value_name = "R")]
    link_radius: Option<f64>,
    /// Keep the model's own collision shapes (spheres, cylinders, boxes) from each other
    #[arg(long)]
    self_collision: bool,
    /// Distance to keep from everything (m)
    #[arg(long, value_name = "D", default_value_t = 0.0)]
    clearance: f64,
    /// Move a floating base so far to each side (m, rad) [default: it is held still]
    #[arg(long, value_name = "X,A", value_delimiter = ',')]
    base_motion: Option<Vec<f64>>,
    /// Other models that the robot might be
    #[arg(long, value_name = "MODEL", num_args = 1..)]
    robust: Vec<String>,
    /// How several models count
    #[arg(long, value_enum, default_value = "mean")]
    robust_by: RobustChoice,
    /// Searches from different random motions
    #[arg(long, value_name = "N", default_value_t = 4)]
    starts: usize,
    /// Steps of each search, at most
    #[arg(long, value_name = "N", default_value_t = 100)]
    iterations: usize,
    /// End the search after so many seconds and keep the best motion so far
    #[arg(long, value_name = "S")]
    time_limit: Option<f64>,
    /// Seed of the random motions: same inputs and seed, same result
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
    /// Write the motion: .csv, .yaml (ROS), .json or .toml, completely or not at all
    #[arg(long, value_name = "PATH")]
    out: Vec<PathBuf>,
    #[command(flatten)]
    pictures: Pictures,
    #[command(flatten)]
    options: ModelOptions,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum TrajectoryChoice {
    /// A Fourier series
    Fourier,
    /// A B-spline
    Spline,
    /// Velocities at knots
    Velocity,
    /// Movements along cycloids from rest to rest
    Cycloid,
    /// Movements along polynomials from rest to rest
    Quintic,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum CriterionChoice {
    D,
    A,
    E,
    Crb,
    Worst,
    Condition,
    ScaledCondition,
    Paper,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum RobustChoice {
    Mean,
    Worst,
}

pub fn run(args: &Args) -> Result<Answer> {
    check(args)?;
    let model = Model::load(&args.model)?;
    let mechanism = model.build(&args.options.build_options())?;
    let watcher = Watcher::new(args)?;
    let found = match args.measured {
        Some(MeasuredChoice::Momentum) => flight::design(args, &mechanism, &watcher),
        _ => forces(args, &model, &mechanism, &watcher),
    };
    let found = found.with_context(|| model.label.clone())?;
    watcher.bar.finish_and_clear();
    let mut written = Files::default();
    for path in &args.out {
        written.add(path, &trajectory_text(path, &found, args.rate)?)?;
    }
    let report = report(args, &mechanism, &found, watcher.interrupted());
    let files: Vec<String> = args.robust.iter().chain(&args.prior_summary).cloned().collect();
    let drawn = args.pictures.draw(&files, &mut written, || {
        let designed = Designed {
            mechanism: &mechanism,
            coordinates: &shown(args, &mechanism),
            effort: &effort(&mechanism, args.margin),
            design: &found,
            rate: args.rate,
            seed: args.seed,
        };
        page::of_design(&model, &designed, &report)
    })?;
    written.finish()?;
    if args.json {
        output::print_json(&report)?;
    } else {
        output::print(&(text(&report, &found) + &drawn))?;
    }
    Ok(Answer::Yes)
}

/// A motion that measured forces tell the parameters from.
fn forces(args: &Args, model: &Model, mechanism: &Mechanism, watcher: &Watcher) -> Result<Design> {
    let plate = on_plate(args, model, mechanism)?;
    let mut others = Vec::new();
    for path in &args.robust {
        let model = Model::load(path)?;
        let other = model.build(&args.options.build_options())?;
        let plate = on_plate(args, &model, &other)?;
        others.push((path, other, plate));
    }
    let mut subjects = vec![subject(args, mechanism, plate.as_ref())?];
    for (path, other, plate) in &others {
        let subject = subject(args, other, plate.as_ref());
        subjects.push(subject.with_context(|| format!("--robust {path}"))?);
    }
    let rests = rests(args, mechanism);
    let mechanism = plate.as_ref().unwrap_or(mechanism);
    let coordinates = coordinates(mechanism, &limits(args));
    let room = room(args, mechanism)?;
    let options = DesignOptions {
        family: family(args),
        duration: args.duration,
        rate: args.rate,
        criterion: criterion(args),
        robust: robust(args),
        start: start(args, &coordinates)?,
        starts: args.starts,
        iterations: args.iterations,
        seed: args.seed,
        ..DesignOptions::default()
    };
    let found = design(&subjects, &coordinates, &room, &options, &|p| watcher.step(p));
    Ok(if rests { found.context("the base is held still (--base-motion X,A moves it)")? } else { found? })
}

/// Whether a base that could move is held still.
fn rests(args: &Args, mechanism: &Mechanism) -> bool {
    let momentum = args.measured == Some(MeasuredChoice::Momentum);
    mechanism.base() == Base::Floating && args.base_motion.is_none() && !momentum
}

fn robust(args: &Args) -> Robust {
    match args.robust_by {
        RobustChoice::Mean => Robust::Mean,
        RobustChoice::Worst => Robust::Worst,
    }
}

/// What moves the robot, its wheels in free flight included.
fn shown(args: &Args, mechanism: &Mechanism) -> Vec<Coordinate> {
    let limits = limits(args);
    let wheels = mechanism.wheels().iter().map(|w| Coordinate {
        name: w.name.clone(),
        lower: f64::NEG_INFINITY,
        upper: f64::INFINITY,
        velocity: w.limits.velocity * (1.0 - limits.margin),
        acceleration: f64::INFINITY,
    });
    coordinates(mechanism, &limits).into_iter().chain(wheels).collect()
}

fn limits(args: &Args) -> DefaultLimits {
    DefaultLimits {
        velocity: args.velocity,
        acceleration: args.acceleration,
        margin: args.margin,
        base: args.base_motion.as_ref().map(|b| [b[0], b[1]]),
    }
}

/// Numbers that make no sense, before anything is read.
fn check(args: &Args) -> Result<()> {
    let positive = |name: &str, x: f64| {
        ensure!(x > 0.0 && x.is_finite(), "--{name} {x}: expected a number above zero");
        Ok(())
    };
    positive("duration", args.duration)?;
    positive("rate", args.rate)?;
    positive("acceleration", args.acceleration)?;
    positive("velocity", args.velocity)?;
    args.time_limit.map_or(Ok(()), |t| positive("time-limit", t))?;
    args.link_radius.map_or(Ok(()), |r| positive("link-radius", r))?;
    ensure!(
        args.duration <= 3600.0,
        "--duration {}: more than an hour of motion is not designed",
        args.duration
    );
    let samples = args.duration * args.rate;
    ensure!(
        (10.0..=200_000.0).contains(&samples),
        "--duration {} at --rate {} are {samples:.0} samples, expected 10 to 200000",
        args.duration,
        args.rate
    );
    ensure!(
        args.margin >= 0.0 && args.margin < 1.0,
        "--margin {}: expected a part from 0 to below 1",
        args.margin
    );
    ensure!(
        args.clearance >= 0.0 && args.clearance.is_finite(),
        "--clearance {}: expected no less than zero",
        args.clearance
    );
    ensure!((1..=1000).contains(&args.starts), "--starts {}: expected 1 to 1000", args.starts);
    for (name, count) in [("harmonics", args.harmonics), ("intervals", args.intervals)] {
        if let Some(count) = count {
            ensure!((2..=500).contains(&count), "--{name} {count}: expected 2 to 500");
        }
    }
    ensure!(
        !(args.offset && matches!(args.friction, FrictionChoice::Asymmetric)),
        "--offset beside --friction asymmetric says nothing new: two frictions that differ are an offset"
    );
    if let Some(s) = &args.stribeck {
        ensure!(
            matches!(args.friction, FrictionChoice::Stribeck),
            "--stribeck: expected beside --friction stribeck"
        );
        ensure!(
            s.len() == 3 && s.iter().all(|x| *x > 0.0 && x.is_finite()),
            "--stribeck: expected three numbers above zero: force, speed, exponent"
        );
    }
    if let Some(corners) = &args.workspace {
        ensure!(corners.len() == 6, "--workspace has {} numbers, expected six", corners.len());
    }
    if let Some(range) = &args.base_motion {
        ensure!(
            range.len() == 2 && range.iter().all(|x| *x > 0.0 && x.is_finite()),
            "--base-motion: expected two numbers above zero"
        );
        ensure!(
            range[1] < 1.5,
            "--base-motion: turns of {} rad are too much for roll, pitch and yaw",
            range[1]
        );
    }
    for path in &args.out {
        kind(path)?;
    }
    Ok(())
}

fn family(args: &Args) -> Family {
    let harmonics = args.harmonics.unwrap_or(((0.5 * args.duration).round() as usize).clamp(5, 12));
    let intervals = args.intervals.unwrap_or((args.duration.round() as usize).clamp(6, 60));
    match args.trajectory.unwrap_or(TrajectoryChoice::Fourier) {
        TrajectoryChoice::Fourier => Family::Fourier { harmonics },
        TrajectoryChoice::Spline => Family::Spline { points: intervals + 5 },
        TrajectoryChoice::Velocity => Family::VelocityKnots { intervals },
        TrajectoryChoice::Cycloid => Family::PointToPoint { intervals, profile: Profile::Cycloid },
        TrajectoryChoice::Quintic => Family::PointToPoint { intervals, profile: Profile::Quintic },
    }
}

fn criterion(args: &Args) -> Criterion {
    match args.criterion {
        CriterionChoice::D => Criterion::D,
        CriterionChoice::A => Criterion::A,
        CriterionChoice::E => Criterion::E,
        CriterionChoice::Crb => Criterion::CramerRao,
        CriterionChoice::Worst => Criterion::Worst,
        CriterionChoice::Condition => Criterion::Condition,
        CriterionChoice::ScaledCondition => Criterion::ScaledCondition,
        CriterionChoice::Paper => Criterion::Paper { weight: args.weight },
    }
}

/// The start in the order of the coordinates; the joints alone may be given, the base then starts at its middle.
fn start(args: &Args, coordinates: &[Coordinate]) -> Result<Option<Vec<f64>>> {
    let Some(start) = &args.start else { return Ok(None) };
    let base = coordinates.iter().filter(|c| c.name.starts_with("base.")).count();
    let joints = coordinates.len() - base;
    ensure!(
        start.len() == joints,
        "--start has {}, the model has {}",
        plural(start.len(), "position", "positions"),
        plural(joints, "joint", "joints")
    );
    Ok(Some(vec![0.0; base].into_iter().chain(start.iter().copied()).collect()))
}
