//! `inertial identify`: what are the parameters, given what was measured?

mod follow;
mod gains;
pub mod momentum;
mod payload;
mod pictures;
pub mod told;
mod written;

use std::ops::Range;
use std::path::PathBuf;

use anyhow::{Context, Result, bail, ensure};
use clap::ValueEnum;
use inertial::estimation::{
    Bounds, Carried, Equations, Estimator, Fleet, Huber, Identification, IdentifyOptions, JointModel,
    JointTerms, PayloadLink, Prior, PriorKind, Solver, Summary, TRACE_OF_PRIOR, identify, identify_fleet,
    identify_robust,
};
use inertial::identifiability::Measured;
use inertial::mechanism::{DEFAULT_SNAP, Mechanism};

use crate::logs::{LogOptions, saved_summary};
use crate::model::Model;
use crate::options::{MeasuredChoice, ModelOptions, Setting};
use crate::output::{self, Answer, Files};
use crate::pictures::Pictures;
use crate::progress::{self, Work};
use crate::recording::Recording;

const HELP: &str = r#"LOG is CSV, CSV.gz, Parquet or MCAP (sensor_msgs/JointState), recognised by its content, or -
for standard input. Columns: t in seconds, q.JOINT (or q1, q2, ...), tau.JOINT and, where
measured, dq.JOINT and ddq.JOINT; --columns MAP says what other names and units mean. Logs may
be longer than memory. A file ending in .summary is what --summary-out wrote: it stands for its
logs.

--estimator lmi (default) finds parameters that bodies can have: weighted least squares over
positive semidefinite pseudo-inertias, friction and rotor inertias not negative, with an
entropic prior that holds what the motion does not show. manifold and log-cholesky find the
same optimum in other coordinates (mass, centre of mass, principal axes and moments; logarithms
of a triangular factor). ols and wls are plain least squares (wls divides each joint's torque by
its noise), irls gives outliers less weight (Huber; it passes the logs several times); their
bodies need not be possible.

--prior model (default) takes the model's own inertias as prior, and the distances between
joints where it has none; another model file gives others. --prior-weight 1 means: known to
about 100 %. Against what the data show to 10 % it moves the result by a tenth of its standard
error. none leaves a trace (0.01) so that what nothing shows stays bounded. --prior-kind
euclidean measures the distance to the prior quadratically: bodies may become rods, plates or
points.

--bounds links keeps each link's mass within the box around its collision shapes (boxes, cylinders,
balls), or within a ball around its joints where it has none; a TOML file says more:
  [bodies.link1]
  mass = [0.5, 4.0]
  com = { min = [-0.1, -0.1, 0.0], max = [0.1, 0.1, 0.3] }
  box = { min = [-0.1, -0.1, -0.05], max = [0.1, 0.1, 0.4] }
  ellipsoid = { centre = [0, 0, 0.15], semi_axes = [0.2, 0.2, 0.3], rpy = [0, 0, 0] }

--measured base-wrench (or both) takes wrench.fx ... wrench.tz: with a floating base the net
external wrench on it, with a fixed base what the ground exerts on the robot (a force plate), at
the world's origin. Columns contact.LINK.fx ... tz are known wrenches on links, in their frames.

Models with loops: the log needs the columns of the independent joints; the others follow.

--rotors symmetric adds a reflected rotor inertia to each joint whose rotor the model does not
have.

--friction asymmetric has a Coulomb friction for each direction; stribeck adds friction at rest,
F exp(-(|v|/vs)^d), with vs and d (1 or 2) found from the data.

--coupling auto looks for drives that turn with two neighbouring joints (as in many wrists) and
adopts what the data leave no doubt of; a note says so. --joint-model gives couplings, springs
and other terms in TOML:
  [[coupling]]
  motor = "joint6"
  turns_with = { joint5 = 1, joint6 = 1 }
  [define]
  angle = "q.joint2 - pi/2"
  [[term]]                   # joint2's torque contains k * sin(angle), k unknown
  joint = "joint2"
  name = "spring"
  formula = "sin(angle)"     # of q.J, dq.J, ddq.J, log.COLUMN

--measured momentum is for robots that fly freely with reaction wheels: the log has q.JOINT,
dq.JOINT, the base's twist base.vx ... base.wz, and momentum.lx momentum.ly momentum.lz (and
px py pz where it is not zero): the momentum of the robot without its wheels, at the base's
origin in its axes. --noise gives the standard deviations of the rates; with it --estimator eiv
(default) is maximum likelihood with noise in the regressor, bcls linear and nearly as good, ols
biased; lmi, manifold and log-cholesky are the likeliest bodies that can exist, with the prior as
above. --positions trapezoid integrates positions from the rates, euler as others did.

--payload LINK identifies only what LINK carries. A log with ft.fx … ft.tz (a force/torque
sensor whose frame is LINK's) gives the body beyond the sensor, its motion taken from the joints
or from acc.x…, gyro.x… (alpha.x…) in the same frame; sensor offsets are eliminated. Otherwise
the torques give the difference to the model, or to the logs of --unloaded. --out writes the
model with the payload added to LINK. See docs/payload.md.

--gains 0.2 takes the logged torques as currents times gains that are known to 20 % and finds
each joint's factor with all else. Logs with a known payload (--loaded LOG --known-payload
LINK=2.5,0,0,0.1) or a measured base wrench fix what is common to all; without them the result
is as uncertain as the gains are together.

--follow - reads CSV from standard input as it grows and prints an estimate (a line of JSON,
or of text on a terminal) every --every seconds of its time.

Examples:
  inertial identify robot.urdf log.csv.gz --friction coulomb+viscous --offset
  inertial identify robot.urdf a.csv b.csv --validate c.csv --json
  inertial identify robot.urdf log.csv --holdout 0.3 --out identified.urdf
  inertial identify robot.urdf long.csv --summary-out long.summary
  inertial identify builtin:space-dual-arm flight.csv --measured momentum \
    --noise dq=5e-5,base.v=5e-5,base.w=8e-5
  inertial identify robot.urdf ft.csv --payload sensor_link --out with-tool.urdf
  inertial identify robot.urdf loaded.csv --payload flange --unloaded empty.csv --offset
  inertial identify robot.urdf ft.csv --payload sensor_link --holdout 0.3
  inertial identify robot.urdf empty.csv --gains 0.5 --loaded loaded.csv \
    --known-payload flange=2.5,0,0,0.1
  stream | inertial identify robot.urdf --follow - --forget 30"#;

/// What are the parameters, given what was measured?
#[allow(clippy::struct_excessive_bools, reason = "a command has as many switches as it needs")]
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// Model file, '-' for standard input, or builtin:NAME
    #[arg(value_name = "MODEL")]
    model: String,
    /// Logs or summaries to identify from
    #[arg(value_name = "LOG", required_unless_present = "follow")]
    logs: Vec<String>,
    /// What the sensors give besides the motion [default: joint-torques; with a floating base both]
    #[arg(long, value_enum)]
    measured: Option<MeasuredChoice>,
    /// How parameters are estimated [default: lmi; from momentum eiv, without --noise ols]
    #[arg(long, value_enum)]
    estimator: Option<EstimatorChoice>,
    /// Standard deviations of measured rates and momenta, by column or group of columns (from momentum)
    #[arg(long, value_name = "COLUMN=SD,…", value_delimiter = ',')]
    noise: Vec<Setting>,
    /// Where positions come from (from momentum)
    #[arg(long, value_enum, default_value = "log")]
    positions: momentum::PositionChoice,
    /// Friction of the joints
    #[arg(long, value_enum, default_value = "none")]
    friction: FrictionChoice,
    /// Drives that turn with two neighbouring joints: looked for in the data, or only those of --joint-model
    #[arg(long, value_enum, default_value = "auto")]
    coupling: CouplingChoice,
    /// Couplings, springs, counterbalances and other terms of the joints, in TOML
    #[arg(long, value_name = "PATH")]
    joint_model: Option<PathBuf>,
    /// Estimate a constant offset of each joint's torque
    #[arg(long)]
    offset: bool,
    /// Prior of estimators whose bodies can exist: model, none, or a model file
    #[arg(long, value_name = "PATH", default_value = "model")]
    prior: String,
    /// Weight of the prior [default: 1]
    #[arg(long, value_name = "W", value_parser = positive)]
    prior_weight: Option<f64>,
    /// How the distance to the prior is measured
    #[arg(long, value_enum, default_value = "entropic")]
    prior_kind: PriorKindChoice,
    /// Where the mass of bodies may be (lmi): links, or a TOML file
    #[arg(long, value_name = "PATH")]
    bounds: Option<String>,
    /// Logs to validate with
    #[arg(long, value_name = "LOG", num_args = 1.., conflicts_with = "holdout")]
    validate: Vec<String>,
    /// Keep the last fraction of each log to validate with
    #[arg(long, value_name = "F", value_parser = fraction)]
    holdout: Option<f64>,
    /// Say which unknowns the noise does not cover; ols, wls and irls take the others as zero
    #[arg(long)]
    essential: bool,
    /// Give the covariance of the base parameters in the JSON
    #[arg(long)]
    covariance: bool,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
    /// Write the model (URDF or mechanism file) with the identified values and nothing else changed, completely or not at all
    #[arg(long, value_name = "PATH")]
    out: Option<PathBuf>,
    #[command(flatten)]
    pictures: Pictures,
    /// Write what the logs say of the unknowns, to be merged or identified from later
    #[arg(long, value_name = "PATH")]
    summary_out: Option<PathBuf>,
    /// Identify only what LINK carries: behind a force/torque sensor, or as a difference in torques
    #[arg(long, value_name = "LINK", conflicts_with = "summary_out")]
    payload: Option<String>,
    /// With --payload: logs of the robot without it [default: the model is the robot without it]
    #[arg(long, value_name = "LOG", num_args = 1.., requires = "payload")]
    unloaded: Vec<String>,
    #[command(flatten)]
    gains: gains::GainOptions,
    #[command(flatten)]
    follow: follow::FollowOptions,
    #[command(flatten)]
    log: LogOptions,
    #[command(flatten)]
    options: ModelOptions,
}

/// Weight of a robot's prior that is as good as none: bodies known to 1000 %. Against what the data know to 100 % it moves the
/// result by a hundredth of its standard error; with less, what nothing shows leaves too few digits for the data.
const LITTLE_PRIOR: f64 = 1e-2;

#[derive(Debug, Clone, Copy, ValueEnum)]
enum EstimatorChoice {
    Ols,
    Wls,
    Irls,
    Lmi,
    Manifold,
    LogCholesky,
    /// Least squares less the bias of noise in the regressor (from momentum)
    Bcls,
    /// Maximum likelihood with noise in the regressor (from momentum)
    Eiv,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum PriorKindChoice {
    Entropic,
    Euclidean,
}

/// Friction of the joints.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum FrictionChoice {
    None,
    Viscous,
    Coulomb,
    #[value(name = "coulomb+viscous")]
    Both,
    /// Viscous, and Coulomb friction of each direction apart
    Asymmetric,
    /// Coulomb, viscous, and more at rest
    Stribeck,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum CouplingChoice {
    Auto,
    None,
}

pub fn run(args: &Args) -> Result<Answer> {
    if let Some(link) = &args.payload {
        return payload::run(args, link);
    }
    if let Some(stream) = &args.follow.follow {
        return follow::run(args, stream);
    }
    let model = Model::load(&args.model)?;
    let mechanism = model.build(&args.options.build_options())?;
    written::check(args, &model)?;
    if args.measured == Some(MeasuredChoice::Momentum) {
        return momentum::run(args, &model, &mechanism);
    }
    ensure!(
        args.noise.is_empty(),
        "--noise: the noise of torques is found from the data; give it with --measured momentum"
    );
    let equations = equations(args, &mechanism)?;
    let options = options(args, &mechanism)?;
    let gains = gains::Search::new(args, &equations, &options)?;
    let mut data = read(args, &equations)?;
    let result = match gains {
        Some(gains) => gains.estimate(args, &equations, &mut data, &options),
        None => estimate(&equations, &mut data, &options),
    };
    let result = result.with_context(|| args.logs.join(", "))?;
    let write = |_| written::written(args, &model, &mechanism, &result.parameters, Some(&result.joints));
    let written = args.out.as_ref().map(write).transpose()?;
    let mut files = Files::default();
    if let Some(path) = &args.summary_out {
        files.add(path, &(serde_json::to_string(&data.fit)? + "\n"))?;
    }
    if let (Some(path), Some(text)) = (&args.out, written) {
        files.add(path, &text)?;
    }
    let drawn = pictures::draw(args, &model, &equations, &mut data, &result, &mut files)?;
    files.finish()?;
    if args.json {
        output::print_json(&result)?;
    } else {
        output::print(&(told::text(&result) + &drawn))?;
    }
    Ok(Answer::Yes)
}

/// What the logs say of the unknowns, without estimating them.
pub fn summary(args: &Args) -> Result<Summary> {
    let mechanism = mechanism(args)?;
    Ok(read(args, &equations(args, &mechanism)?)?.fit)
}

/// The mechanism that the call names.
pub fn mechanism(args: &Args) -> Result<Mechanism> {
    Model::load(&args.model)?.build(&args.options.build_options())
}

/// Robots of one type, identified together; some carry something of their own on the link of `--payload`. `--out` takes what they
/// have in common.
pub fn fleet(args: &Args, robots: &[Summary], carries: &[bool]) -> Result<Fleet> {
    let model = Model::load(&args.model)?;
    let mechanism = model.build(&args.options.build_options())?;
    let equations = equations(args, &mechanism)?;
    let link = args.payload.as_deref().map(|link| PayloadLink::new(&equations, link)).transpose()?;
    let carried = link.as_ref().map(|link| Carried { link, carries });
    let fleet = identify_fleet(&equations, robots, carried, &options(args, &mechanism)?)?;
    if let Some(path) = &args.out {
        let Identification { parameters, joints, .. } = &fleet.common;
        output::write_file(
            path,
            &written::written(args, &model, &mechanism, parameters, Some(joints.as_slice()))?,
        )?;
    }
    Ok(fleet)
}

/// What the sensors give of the unknowns, as the call says.
pub fn equations<'m>(args: &Args, mechanism: &'m Mechanism) -> Result<Equations<'m>> {
    ensure!(
        args.measured != Some(MeasuredChoice::Momentum),
        "--measured momentum needs every sample of the logs: there are no summaries, streams and fleets of it"
    );
    let measured = args.measured.map_or(Measured::JointTorques, Measured::from);
    Equations::measuring(mechanism, joint_model(args, mechanism)?, DEFAULT_SNAP, measured)
        .with_context(|| args.model.clone())
}

/// What the call says of the joints.
fn joint_model(args: &Args, mechanism: &Mechanism) -> Result<JointModel> {
    use FrictionChoice::{Asymmetric, Both, Coulomb, Stribeck, Viscous};
    let terms = JointTerms {
        viscous: matches!(args.friction, Viscous | Both | Asymmetric | Stribeck),
        coulomb: matches!(args.friction, Coulomb | Both | Stribeck),
        offset: args.offset,
        rotor_inertia: args.options.wants_rotors(),
    };
    let mut out = match &args.joint_model {
        Some(path) => {
            let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
            JointModel::parse(mechanism, terms, &text).with_context(|| path.display().to_string())?
        }
        None => JointModel::from(terms),
    };
    out.asymmetric = matches!(args.friction, Asymmetric);
    out.stribeck = matches!(args.friction, Stribeck);
    out.search_couplings = args.coupling == CouplingChoice::Auto && args.gains.gains.is_none();
    ensure!(
        args.gains.gains.is_none() || !out.stribeck,
        "--gains: expected friction that is linear in its unknowns, not stribeck"
    );
    Ok(out)
}

fn options(args: &Args, mechanism: &Mechanism) -> Result<IdentifyOptions> {
    let estimator = match args.estimator {
        Some(EstimatorChoice::Ols) => Estimator::Ols,
        Some(EstimatorChoice::Wls) => Estimator::Wls,
        Some(EstimatorChoice::Irls) => Estimator::Irls,
        Some(EstimatorChoice::Lmi) | None => Estimator::Consistent,
        Some(EstimatorChoice::Manifold | EstimatorChoice::LogCholesky) => Estimator::Consistent,
        Some(EstimatorChoice::Bcls | EstimatorChoice::Eiv) => {
            bail!("--estimator: bcls and eiv are for --measured momentum")
        }
    };
    let solver = match args.estimator {
        Some(EstimatorChoice::Manifold) => Solver::Manifold,
        Some(EstimatorChoice::LogCholesky) => Solver::LogCholesky,
        _ => Solver::Barrier,
    };
    let prior_kind = match args.prior_kind {
        PriorKindChoice::Entropic => PriorKind::Entropic,
        PriorKindChoice::Euclidean => PriorKind::Euclidean,
    };
    let bounds = match args.bounds.as_deref() {
        None => None,
        Some("links") => Some(Bounds::of_links(mechanism)),
        Some(path) => {
            let text = std::fs::read_to_string(path).with_context(|| path.to_owned())?;
            Some(Bounds::from_toml(&text).with_context(|| path.to_owned())?)
        }
    };
    let default = IdentifyOptions {
        estimator,
        solver,
        prior_kind,
        bounds,
        essential: args.essential,
        covariance: args.covariance,
        ..IdentifyOptions::default()
    };
    let (prior, weight) = match args.prior.as_str() {
        "model" => (None, 1.0),
        "none" => {
            ensure!(args.prior_weight.is_none(), "--prior none has no weight");
            // One body has ten numbers, which a sensor shows or does not; a robot has many that only the prior holds.
            (None, if args.payload.is_some() { TRACE_OF_PRIOR } else { LITTLE_PRIOR })
        }
        path => {
            let other = Model::load(path)?.build(&args.options.build_options())?;
            ensure!(
                other.parameter_names() == mechanism.parameter_names(),
                "{path}: has other bodies than the model, expected {}",
                mechanism.bodies().iter().map(|b| b.name.as_str()).collect::<Vec<_>>().join(", ")
            );
            (Some(Prior::new(&other)?), 1.0)
        }
    };
    Ok(IdentifyOptions { prior, prior_weight: args.prior_weight.unwrap_or(weight), ..default })
}

/// What was read: summaries to fit and to validate with, and the logs themselves where they are to be passed again.
struct Data {
    fit: Summary,
    validation: Option<Summary>,
    logs: Vec<Passed>,
}

/// A log that is passed again, with its parts to fit and to validate with.
struct Passed {
    recording: Recording,
    fit: Range<usize>,
    kept: Range<usize>,
}

/// Reads the logs to fit and those to validate with.
fn read(args: &Args, equations: &Equations<'_>) -> Result<Data> {
    let robust = matches!(args.estimator, Some(EstimatorChoice::Irls));
    let again = robust || args.pictures.wanted();
    let _work = Work::on_files(args.logs.iter().chain(&args.validate));
    let open = |path: &str| Recording::open(&args.log, equations, args.measured, path);
    let mut fit = Summary::empty(equations);
    let mut kept = Summary::empty(equations);
    let mut logs = Vec::new();
    for path in &args.logs {
        if let Some(summary) = saved_summary(path)? {
            ensure!(args.holdout.is_none(), "{path}: --holdout needs the log itself, not its summary");
            ensure!(
                !robust,
                "{path}: --estimator irls weighs every sample: it needs the log itself, not its summary"
            );
            summary.check(equations).with_context(|| path.clone())?;
            fit.merge(&summary)?;
            continue;
        }
        let mut log = open(path)?;
        let (first, last) = match args.holdout {
            Some(fraction) => log.hold_out(fraction)?,
            None => (0..log.len(), 0..0),
        };
        fit.merge(&log.summary(equations, first.clone(), None)?)?;
        kept.merge(&log.summary(equations, last.clone(), None)?)?;
        if again {
            logs.push(Passed { recording: log, fit: first, kept: last });
        }
    }
    for path in &args.validate {
        let mut log = open(path)?;
        let all = 0..log.len();
        kept.merge(&log.summary(equations, all.clone(), None)?)?;
        if again {
            logs.push(Passed { recording: log, fit: 0..0, kept: all });
        }
    }
    Ok(Data { fit, validation: (kept.samples > 0).then_some(kept), logs })
}

/// Estimates; robustly by passing the logs again.
fn estimate(equations: &Equations<'_>, data: &mut Data, options: &IdentifyOptions) -> Result<Identification> {
    let Data { fit, validation, logs } = data;
    if options.estimator != Estimator::Irls {
        return Ok(identify(equations, fit, validation.as_ref(), options)?);
    }
    let mut pass = |equations: &Equations<'_>, huber: Huber<'_>| -> Result<Summary> {
        let mut out = Summary::empty(equations);
        let paths: Vec<String> = logs.iter().map(|log| log.recording.path().to_owned()).collect();
        let _work = Work::on_files(&paths);
        for log in logs.iter_mut() {
            progress::file_again(log.recording.path());
            out.merge(&log.recording.summary(equations, log.fit.clone(), Some(huber))?)?;
        }
        Ok(out)
    };
    let pass = |equations: &Equations<'_>, huber: Huber<'_>| {
        pass(equations, huber).map_err(|e| inertial::Error::Numeric(format!("{e:#}")))
    };
    Ok(identify_robust(equations, fit, validation.as_ref(), options, pass)?)
}

fn positive(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(x) if x > 0.0 && x.is_finite() => Ok(x),
        _ => Err("expected a number above zero".into()),
    }
}

fn fraction(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(x) if x > 0.0 && x < 1.0 => Ok(x),
        _ => Err("expected a fraction between 0 and 1".into()),
    }
}
