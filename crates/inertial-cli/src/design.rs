//! `inertial design`: which motion reveals the parameters best, within the joint limits?

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use clap::ValueEnum;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use inertial::consistency::significant;
use inertial::estimation::{Equations, JointTerms, information_matrix};
use inertial::excitation::{
    Certificate, Coordinate, Criterion, DefaultLimits, Design, DesignOptions, Expectation, Family,
    JointColumn, Profile, Progress, Robust, Room, Subject, Usage, coordinates, design,
};
use inertial::identifiability::{AnalyzeOptions, Measured, analyze};
use inertial::mechanism::{Base, BodyKind, DEFAULT_SNAP, JointType, Mechanism};
use nalgebra::{DMatrix, Vector3};
use serde::Serialize;

use crate::identify::FrictionChoice;
use crate::logs::saved_summary;
use crate::model::Model;
use crate::options::{MeasuredChoice, ModelOptions};
use crate::output::{self, Answer};

const HELP: &str = "\
The motion starts and ends at rest and stays within the model's limits of position, speed and
torque (less --margin), within --acceleration, and where asked within a --workspace, above the
--ground and free of self-collision; all of it is checked at 1 kHz in the end. Among all such
motions the search (sequential quadratic programming from --starts random motions) looks for the
one whose data would give the smallest errors: --criterion d (volume of the error ellipsoid), a
(mean square error), e (worst direction), crb (mean square of the errors relative to the
parameters), condition, scaled-condition, or paper (condition number plus --weight over the mean
square speed). The unknowns are those that identify estimates with the same --friction, --offset
and --rotors.

The result is certified: the rank that the motion reaches against the rank that the structure
allows, the standard error to be expected of every parameter for the given --noise, and which
stay weak, and why. --prior-summary FILE counts what earlier logs (identify --summary-out)
already say: the motion then looks for what is not yet known.

--out NAME.csv writes t, q.J, dq.J, ddq.J; NAME.yaml a ROS JointTrajectory; NAME.json or NAME.toml
the coefficients, which simulate reads. Give --out several times for several files. Ctrl-C and
--time-limit end the search and keep the best motion so far.

Examples:
  inertial design robot.urdf --out motion.csv
  inertial design robot.urdf --duration 20 --rate 100 --friction coulomb+viscous --noise tau=0.5
  inertial design robot.urdf --ground 0.05 --link-radius 0.06 --out motion.yaml --out motion.json
  inertial design builtin:quadruped --base-motion 0.1,0.3";

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
    /// What the motion is made of
    #[arg(long, value_enum, default_value = "fourier")]
    trajectory: TrajectoryChoice,
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
    /// Standard deviations of the measurement: tau (N m), tau.JOINT, wrench.f (N), wrench.t (N m)
    #[arg(long, value_name = "KEY=X,…", value_delimiter = ',', default_value = "tau=1")]
    noise: Vec<String>,
    /// Friction that will be estimated
    #[arg(long, value_enum, default_value = "none")]
    friction: FrictionChoice,
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
    #[arg(long, value_name = "X,Y,Z,X,Y,Z", value_delimiter = ',', allow_hyphen_values = true, num_args = 6)]
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
    Condition,
    ScaledCondition,
    Paper,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum RobustChoice {
    Mean,
    Worst,
}

/// The result object.
#[derive(Debug, Serialize)]
struct Report<'d> {
    schema: &'static str,
    model: ModelSize,
    measured: &'static str,
    criterion: Reached<'d>,
    duration: f64,
    rate: f64,
    samples: usize,
    #[serde(flatten)]
    certificate: &'d Certificate,
    weak: Vec<&'d str>,
    limits: &'d [Usage],
    trajectory: &'d inertial::excitation::Trajectory,
    interrupted: bool,
    warnings: Vec<String>,
}

#[derive(Debug, Serialize)]
struct ModelSize {
    name: String,
    bodies: usize,
    dof: usize,
}

#[derive(Debug, Serialize)]
struct Reached<'d> {
    name: &'static str,
    value: f64,
    searches: &'d [f64],
}

pub fn run(args: &Args) -> Result<Answer> {
    check(args)?;
    let model = Model::load(&args.model)?;
    let mechanism = model.build(&args.options.build_options())?;
    let others: Vec<(String, Mechanism)> = args
        .robust
        .iter()
        .map(|path| Ok((path.clone(), Model::load(path)?.build(&args.options.build_options())?)))
        .collect::<Result<_>>()?;
    let mut subjects = vec![subject(args, &mechanism).with_context(|| model.label.clone())?];
    for (path, other) in &others {
        subjects.push(subject(args, other).with_context(|| path.clone())?);
    }
    let limits = DefaultLimits {
        velocity: args.velocity,
        acceleration: args.acceleration,
        margin: args.margin,
        base: args.base_motion.as_ref().map(|b| [b[0], b[1]]),
    };
    let coordinates = coordinates(&mechanism, &limits);
    let room = room(args, &mechanism)?;
    let options = DesignOptions {
        family: family(args),
        duration: args.duration,
        rate: args.rate,
        criterion: criterion(args),
        robust: match args.robust_by {
            RobustChoice::Mean => Robust::Mean,
            RobustChoice::Worst => Robust::Worst,
        },
        start: start(args, &coordinates)?,
        starts: args.starts,
        iterations: args.iterations,
        seed: args.seed,
        ..DesignOptions::default()
    };
    let watcher = Watcher::new(args)?;
    let found = design(&subjects, &coordinates, &room, &options, &|p| watcher.step(p))
        .with_context(|| model.label.clone())?;
    watcher.bar.finish_and_clear();
    for path in &args.out {
        write(path, &found, args.rate)?;
    }
    let report = report(args, &mechanism, &found, watcher.interrupted());
    if args.json {
        output::print_json(&report)?;
    } else {
        output::print(&text(&report, &found))?;
    }
    Ok(Answer::Yes)
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
        !matches!(args.friction, FrictionChoice::Asymmetric | FrictionChoice::Stribeck),
        "--friction: designs know none, viscous, coulomb and coulomb+viscous"
    );
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
    match args.trajectory {
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
    ensure!(start.len() == joints, "--start has {} positions, the model has {joints} joints", start.len());
    Ok(Some(vec![0.0; base].into_iter().chain(start.iter().copied()).collect()))
}

/// What is to be known of a model, and how it is measured.
fn subject<'m>(args: &Args, mechanism: &'m Mechanism) -> Result<Subject<'m>> {
    let floating = mechanism.base() == Base::Floating;
    let default = if floating { Measured::Both } else { Measured::JointTorques };
    let measured = args.measured.map_or(default, Into::into);
    ensure!(
        measured == Measured::JointTorques || floating && measured != Measured::Momentum,
        "--measured {}: designs are for joint torques, and with a floating base for the base wrench",
        measured.name()
    );
    let analysis = analyze(
        mechanism,
        &AnalyzeOptions {
            measured: Some(measured),
            torque_joints: args.joints.clone(),
            ..AnalyzeOptions::default()
        },
    )?;
    let noise = noise(args, mechanism, measured)?;
    let mut subject = Subject {
        mechanism,
        regrouping: analysis.regrouping,
        terms: terms(args, mechanism),
        noise,
        effort: effort(mechanism, args.margin),
        prior: None,
    };
    subject.prior = prior(args, &subject)?;
    Ok(subject)
}

/// Terms of the joints that identify would estimate.
fn terms(args: &Args, mechanism: &Mechanism) -> Vec<(usize, JointColumn)> {
    let wanted = joint_terms(args);
    let mut out = Vec::new();
    for (index, joint) in mechanism.joints().iter().enumerate().filter(|(_, j)| j.follows.is_none()) {
        if matches!(joint.joint_type, JointType::Floating | JointType::Spherical | JointType::Planar { .. }) {
            continue;
        }
        let rotors =
            |b: &&inertial::mechanism::Body| matches!(b.kind, BodyKind::Rotor | BodyKind::SymmetricRotor);
        let has_rotor = mechanism.bodies().iter().filter(rotors).any(|b| b.joint == index);
        for v in joint.v_range() {
            let rotor = (wanted.rotor_inertia && !has_rotor) || mechanism.armature()[v] > 0.0;
            let choices = [
                (wanted.viscous, JointColumn::Viscous),
                (wanted.coulomb, JointColumn::Coulomb),
                (wanted.offset, JointColumn::Offset),
                (rotor, JointColumn::RotorInertia),
            ];
            out.extend(choices.into_iter().filter(|c| c.0).map(|c| (v, c.1)));
        }
    }
    out
}

fn joint_terms(args: &Args) -> JointTerms {
    JointTerms {
        viscous: matches!(args.friction, FrictionChoice::Viscous | FrictionChoice::Both),
        coulomb: matches!(args.friction, FrictionChoice::Coulomb | FrictionChoice::Both),
        offset: args.offset,
        rotor_inertia: args.options.wants_rotors(),
    }
}

/// Standard deviation of each coordinate's force; infinite where it is not measured.
fn noise(args: &Args, mechanism: &Mechanism, measured: Measured) -> Result<Vec<f64>> {
    let names = mechanism.velocity_names();
    let base = if mechanism.base() == Base::Floating { 6 } else { 0 };
    let mut out = vec![1.0; mechanism.nv()];
    for setting in &args.noise {
        let expected = || format!("--noise {setting}: expected KEY=X with X above zero, like tau=0.1");
        let (key, value) = setting.split_once('=').with_context(expected)?;
        let value: f64 =
            value.trim().parse().ok().filter(|x: &f64| *x > 0.0 && x.is_finite()).with_context(expected)?;
        match key.trim() {
            "tau" => out[base..].fill(value),
            "wrench.f" if base > 0 => out[..3].fill(value),
            "wrench.t" if base > 0 => out[3..6].fill(value),
            other => {
                let joint = other.strip_prefix("tau.").and_then(|j| names.iter().position(|n| n == j));
                let Some(v) = joint else {
                    bail!(
                        "--noise {setting}: there is no sensor {other}; expected tau, tau.JOINT{}",
                        if base > 0 { ", wrench.f or wrench.t" } else { "" }
                    )
                };
                out[v] = value;
            }
        }
    }
    if measured == Measured::JointTorques {
        out[..base].fill(f64::INFINITY);
    }
    if measured == Measured::BaseWrench {
        out[base..].fill(f64::INFINITY);
    }
    if let Some(joints) = &args.joints {
        let with = |v: usize| {
            let joint = mechanism.joints().iter().find(|j| j.follows.is_none() && j.v_range().contains(&v));
            joint.is_some_and(|j| joints.contains(&j.name))
        };
        (base..out.len()).filter(|&v| !with(v)).for_each(|v| out[v] = f64::INFINITY);
    }
    Ok(out)
}

/// Highest force of each coordinate less the margin; a prescribed base takes whatever it needs.
fn effort(mechanism: &Mechanism, margin: f64) -> Vec<f64> {
    let mut out = vec![f64::INFINITY; mechanism.nv()];
    for joint in
        mechanism.joints().iter().filter(|j| j.follows.is_none() && j.joint_type != JointType::Floating)
    {
        // Files write zero where they know nothing.
        if joint.limits.effort > 0.0 {
            joint.v_range().for_each(|v| out[v] = joint.limits.effort * (1.0 - margin));
        }
    }
    out
}

/// What earlier logs say, in the order of the design's unknowns.
fn prior(args: &Args, subject: &Subject<'_>) -> Result<Option<DMatrix<f64>>> {
    if args.prior_summary.is_empty() {
        return Ok(None);
    }
    let mechanism = subject.mechanism;
    let equations = Equations::new(mechanism, joint_terms(args), DEFAULT_SNAP)?;
    let dynamics = inertial::dynamics::InverseDynamics::new(mechanism);
    let columns = inertial::excitation::Columns::new(
        mechanism,
        &dynamics,
        &subject.regrouping,
        &subject.terms,
        &subject.noise,
    )?;
    ensure!(
        columns.names == equations.names,
        "--prior-summary counts where all torques are measured and the unknowns are those of identify"
    );
    let mut total = DMatrix::zeros(columns.len(), columns.len());
    for path in &args.prior_summary {
        let summary =
            saved_summary(path)?.with_context(|| format!("{path}: expected a file ending in .summary"))?;
        total += information_matrix(&equations, &summary, &subject.noise).with_context(|| path.clone())?;
    }
    Ok(Some(total))
}

fn room(args: &Args, mechanism: &Mechanism) -> Result<Room> {
    let workspace =
        args.workspace.as_ref().map(|w| [Vector3::new(w[0], w[1], w[2]), Vector3::new(w[3], w[4], w[5])]);
    if let Some([low, high]) = workspace {
        ensure!(
            (0..3).all(|i| low[i] < high[i]),
            "--workspace: the first corner must be below the second in x, y and z"
        );
    }
    let shapes = Room::shapes(mechanism);
    if args.self_collision {
        ensure!(
            !shapes.is_empty(),
            "--self-collision: the model has no collision shapes but meshes, which are not read; use --link-radius"
        );
    }
    let mut capsules = match args.link_radius {
        Some(radius) => Room::along_links(mechanism, radius),
        None => Vec::new(),
    };
    capsules.extend(shapes);
    let pairs = if args.link_radius.is_some() || args.self_collision {
        Room::candidate_pairs(mechanism, &capsules)
    } else {
        Vec::new()
    };
    if capsules.is_empty() && (workspace.is_some() || args.ground.is_some()) {
        capsules = Room::along_links(mechanism, 0.0);
    }
    Ok(Room { capsules, pairs, workspace, ground: args.ground, clearance: args.clearance })
}

/// Progress on a terminal, the clock, and Ctrl-C.
struct Watcher {
    bar: ProgressBar,
    start: Instant,
    limit: Option<Duration>,
}

/// Set by Ctrl-C.
static INTERRUPTED: AtomicBool = AtomicBool::new(false);

impl Watcher {
    fn new(args: &Args) -> Result<Self> {
        // A second Ctrl-C ends the program at once.
        ctrlc::set_handler(|| {
            if INTERRUPTED.swap(true, Ordering::Relaxed) {
                std::process::exit(130);
            }
        })
        .context("cannot listen to Ctrl-C")?;
        let total = (args.starts * args.iterations) as u64;
        // Hidden by indicatif itself where standard error is no terminal.
        let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr());
        let style = "{bar:30} {pos}/{len} steps, {elapsed}: {msg}";
        bar.set_style(ProgressStyle::with_template(style)?);
        let limit = args.time_limit.map(Duration::try_from_secs_f64).transpose().context("--time-limit")?;
        Ok(Self { bar, start: Instant::now(), limit })
    }

    fn step(&self, progress: Progress) -> bool {
        self.bar.set_position(progress.steps as u64);
        if progress.best.is_finite() {
            self.bar.set_message(format!("criterion {}", significant(progress.best, 6)));
        }
        !self.interrupted()
    }

    fn interrupted(&self) -> bool {
        INTERRUPTED.load(Ordering::Relaxed) || self.limit.is_some_and(|l| self.start.elapsed() >= l)
    }
}

#[derive(Clone, Copy)]
enum Kind {
    Csv,
    Yaml,
    Json,
    Toml,
}

fn kind(path: &Path) -> Result<Kind> {
    match path.extension().and_then(|e| e.to_str()) {
        Some("csv") => Ok(Kind::Csv),
        Some("yaml" | "yml") => Ok(Kind::Yaml),
        Some("json") => Ok(Kind::Json),
        Some("toml") => Ok(Kind::Toml),
        _ => bail!("--out {}: expected a name ending in .csv, .yaml, .json or .toml", path.display()),
    }
}

fn write(path: &Path, design: &Design, rate: f64) -> Result<()> {
    let trajectory = &design.trajectory;
    let text = match kind(path)? {
        Kind::Csv => trajectory.to_csv(rate)?,
        Kind::Yaml => trajectory.to_ros_yaml(rate)?,
        Kind::Json => trajectory.to_json(),
        Kind::Toml => trajectory.to_toml(),
    };
    output::write_file(path, &text)
}

fn report<'d>(args: &Args, mechanism: &Mechanism, design: &'d Design, interrupted: bool) -> Report<'d> {
    let floating = mechanism.base() == Base::Floating;
    let default = if floating { Measured::Both } else { Measured::JointTorques };
    let mut warnings = mechanism.warnings().to_vec();
    if !design.held.is_empty() {
        warnings.push(format!("the limits hold {} still", design.held.join(", ")));
    }
    if !design.absorbed.is_empty() {
        warnings.push(format!(
            "{} act like the inertia of their links and count there",
            design.absorbed.join(", ")
        ));
    }
    if interrupted {
        warnings.push("the search was ended early: this is the best motion until then".into());
    }
    Report {
        schema: "inertial/design/1",
        model: ModelSize {
            name: mechanism.name().to_owned(),
            bodies: mechanism.bodies().iter().filter(|b| b.kind == BodyKind::Link).count(),
            dof: mechanism.nv(),
        },
        measured: args.measured.map_or(default, Into::into).name(),
        criterion: Reached {
            name: criterion(args).name(),
            value: design.criterion,
            searches: &design.searches,
        },
        duration: args.duration,
        rate: args.rate,
        samples: design.trajectory.samples(args.rate).unwrap_or(0),
        weak: design.certificate.weak().map(|e| e.name.as_str()).collect(),
        certificate: &design.certificate,
        limits: &design.usage,
        trajectory: &design.trajectory,
        interrupted,
        warnings,
    }
}

fn text(report: &Report<'_>, design: &Design) -> String {
    let c = report.certificate;
    let mut out = format!(
        "{}: {} s at {} Hz, {} of {} base parameters shown (measured: {})\n",
        report.model.name, report.duration, report.rate, c.rank, c.structural_rank, report.measured
    );
    let _ = writeln!(
        out,
        "criterion {}: {}; condition number {} (columns of equal length: {}), smallest singular value {}\n",
        report.criterion.name,
        significant(report.criterion.value, 6),
        significant(c.condition, 4),
        significant(c.scaled_condition, 4),
        significant(c.smallest_singular_value, 4),
    );
    let row = |e: &Expectation| {
        let percent =
            if e.relative.is_finite() { format!("{:.2} %", 100.0 * e.relative) } else { "-".into() };
        [e.name.clone(), significant(e.value, 5), significant(e.std_error, 2), percent]
    };
    let rows = c.base_parameters.iter().chain(&c.joint_terms).map(row);
    out += &output::table(["unknown", "model's value", "expected standard error", "of its size"], 3, rows);
    let weak: Vec<_> = c.weak().collect();
    if !weak.is_empty() {
        let _ = writeln!(out, "\n{} stay weak:", crate::model::plural(weak.len(), "unknown", "unknowns"));
        for e in weak {
            let _ = writeln!(out, "  {}: {}", e.name, e.reason.as_deref().unwrap_or_default());
        }
    }
    let full = design.usage.iter().take(8).map(|u| {
        let distance = u.limit.starts_with("the distance")
            || u.limit.starts_with("the workspace")
            || u.limit.starts_with("the ground");
        let used = if distance {
            format!("{} m left", significant(u.used, 3))
        } else {
            format!("{:.1} %", 100.0 * u.used)
        };
        [u.limit.clone(), used]
    });
    out += "\n";
    out += &output::table(["limits used most (margins taken off)", "used"], 1, full);
    for warning in &report.warnings {
        let _ = writeln!(out, "note: {warning}");
    }
    out
}
