//! `inertial identify`: identification of parameters from measured data.

mod jobs;

use std::path::PathBuf;

use anyhow::{Result, ensure};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use inertial::estimation::{ColumnOrder, PriorKind, Quantity};
use inertial::identifiability::Measured;
use inertial_app::choice::{Choice, Coupling, Estimator, Friction, Offset, Positions, Solver};
use inertial_app::estimate::{Estimate, SOLVERS_AS_ESTIMATORS};
use inertial_app::gains::Payload;
use inertial_app::setting::Setting;
use inertial_app::summary_file;
use inertial_app::unknowns::Unknowns;
use inertial_app::{Model, flight, follow, gains, identify, payload, regressor};

use crate::options::{LogArgs, ModelArgs, OUTPUT, choice, fraction, positive};
use crate::output::Answer;
use crate::pictures::Pictures;
use crate::shell::Shell;

const EXAMPLES: &str = "\
Examples:
  inertial identify robot.urdf log.csv.gz
  inertial identify robot.urdf a.csv b.csv --validate c.csv --json
  inertial identify robot.urdf log.csv --holdout 0.3 --out identified.urdf

Other options (--help lists them all): payloads (--payload), drive gains (--gains), free-flying
robots (--measured momentum), streams (--follow), summaries (--summary-out).";

const DETAILS: &str = r#"LOG is a text table (CSV, tabs, semicolons, spaces; also .gz), Parquet, .npz, .npy, .mat, HDF5, a ROS
bag (MCAP, .db3, .bag or a folder; sensor_msgs/JointState) or a LeRobot dataset, recognized by its
content, or - for standard input. Columns: t in seconds, q.JOINT (or q1, q2, ...), tau.JOINT and, where measured, dq.JOINT and
ddq.JOINT. Other names are recognized ('inertial columns LOG MODEL' shows how), and --columns MAP
gives names and units. Logs may be longer than memory. A file ending in .summary, written by --summary-out, replaces its logs.

--estimator consistent (default) estimates physically consistent bodies: weighted least squares
over positive semidefinite pseudo-inertias, with friction and rotor inertias not negative and a
prior for parameters that the motion does not excite. --solver barrier, manifold and log-cholesky
find the same optimum. ols and wls are plain least squares (wls divides each joint's torque by its
noise), irls gives outliers less weight (Huber; it reads the logs several times); their bodies
can be physically impossible. lmi, manifold and log-cholesky as --estimator are the consistent
estimator with that solver.

--prior model (default) takes the inertias of the model as prior, and where it has none derives
them from the distances between joints; another model file gives others. --prior-weight 1 means:
known to about 100 %. A value that the data determine to 10 % moves by a tenth of its standard
error. none leaves a small weight (0.01), so that undetermined values stay bounded.
With ols, wls and irls, none gives the parameters of least norm (the pseudo-inverse) instead of
the model's with their base parameters adjusted.
--prior-kind euclidean measures the distance to the prior quadratically: bodies may become rods,
plates or points.

--bounds-on m,com --noise-bound 0.2 adds intervals that are guaranteed to contain the true values
if no sample of a force is wrong by more than 0.2 (N or N m, after the filter): the values of all
consistent bodies that explain the log within this bound. 'h' are first moments, 'I' inertias
about the frame's origin, 'base' base parameters. --noise-bound ft.f=0.5,ft.t=0.02 bounds forces
by the prefix of their names.

--bounds links keeps each link's mass within the box around its collision shapes (boxes,
cylinders, spheres), or within a ball around its joints where it has none; a TOML file gives
other bounds:
  [bodies.link1]
  mass = [0.5, 4.0]
  com = { min = [-0.1, -0.1, 0.0], max = [0.1, 0.1, 0.3] }
  box = { min = [-0.1, -0.1, -0.05], max = [0.1, 0.1, 0.4] }
  ellipsoid = { centre = [0, 0, 0.15], semi_axes = [0.2, 0.2, 0.3] }

--measured base-wrench (or both) reads wrench.fx ... wrench.tz: with a floating base the net
external wrench on it, with a fixed base the wrench of the ground on the robot (a force plate),
at the world's origin. Columns contact.LINK.fx ... tz are known wrenches on links, in their
frames.

Models with loops: the log needs the columns of the independent joints; the others are computed.

--friction auto, --offset=auto and no --rotors (the defaults) give each joint the viscous, Coulomb
and Stribeck friction, offset and reflected rotor inertia that the data require; the result lists
the chosen terms with their evidence. Other values give a term to all joints or to none:
--friction coulomb+viscous, --offset, --offset=no, --rotors symmetric, --rotors none. Streams,
payloads and drive gains only use requested terms.

--friction asymmetric has separate Coulomb friction for each direction; stribeck adds friction at
low speed, F exp(-(|v|/vs)^d), with vs and d (1 or 2) estimated from the data.

--coupling auto looks for drives that turn with two neighbouring joints (as in many wrists) and
adopts those that the data confirm, with a note. --joint-model gives couplings, springs and
other terms in TOML:
  [[coupling]]
  motor = "joint6"
  turns_with = { joint5 = 1, joint6 = 1 }
  [define]
  angle = "q.joint2 - pi/2"
  [[term]]                   # torque k * sin(angle), k unknown
  joint = "joint2"
  name = "spring"
  formula = "sin(angle)"     # of q.J, dq.J, ddq.J, log.COLUMN

--measured momentum is for robots that fly freely with reaction wheels: the log has q.JOINT,
dq.JOINT, the base's twist base.vx ... base.wz, and momentum.lx momentum.ly momentum.lz (and
px py pz where it is not zero): the momentum of the robot without its wheels, at the base's
origin in its axes. --noise gives the standard deviations of the rates; with it --estimator eiv
(default) is maximum likelihood with noise in the regressor, bcls is linear and nearly as good,
ols is biased; consistent gives the most likely physically consistent bodies, with the prior as
above. --positions trapezoid integrates positions from the rates, euler reproduces published
results.

--payload LINK identifies only the load of LINK. A log with ft.fx … ft.tz (a force/torque
sensor whose frame is LINK's) gives the body beyond the sensor, its motion taken from the joints
or from acc.x…, gyro.x… (alpha.x…) in the same frame; sensor offsets are eliminated. Otherwise
the torques give the difference to the model, or to the logs of --unloaded. --out writes the
model with the payload added to LINK. See docs/payload.md.

--gains 0.2 takes the logged torques as currents times gains that are known to 20 % and
estimates each joint's factor together with all other unknowns. Logs with a known payload
(--loaded LOG --known-payload LINK=2.5) or a measured base wrench determine the common factor; without
them the result has the common uncertainty of the gains.

--regressor Y.npy --rhs tau.npy --bodies N gives consistent bodies for dynamics that were computed
elsewhere: Y has ten columns for each body (m hx hy hz Ixx Ixy Ixz Iyy Iyz Izz, or in the order of
--column-order pinocchio), then columns of other unknowns, such as friction. MODEL, if given,
provides the names of the bodies and the prior. See docs/estimation.md.

--follow - reads CSV from standard input as it grows and prints an estimate (a line of JSON,
or of text on a terminal) every --every seconds of its time.

Examples:
  inertial identify robot.urdf log.csv.gz
  inertial identify robot.urdf a.csv b.csv --validate c.csv --json
  inertial identify robot.urdf log.csv --holdout 0.3 --out identified.urdf
  inertial identify robot.urdf long.csv --summary-out long.summary
  inertial identify builtin:space-dual-arm flight.csv --measured momentum \
    --noise dq=5e-5,base.v=5e-5,base.w=8e-5
  inertial identify robot.urdf ft.csv --payload sensor_link --out with-tool.urdf
  inertial identify robot.urdf loaded.csv --payload flange \
    --unloaded empty.csv --offset
  inertial identify robot.urdf ft.csv --payload sensor_link --holdout 0.3
  inertial identify robot.urdf empty.csv --gains 0.5 --loaded loaded.csv \
    --known-payload flange=2.5
  inertial identify --regressor Y.npy --rhs tau.npy --bodies 7 \
    --column-order pinocchio
  stream | inertial identify robot.urdf --follow - --forget 30"#;

/// Headings in the help.
const UNKNOWNS: &str = "Unknowns";
const ESTIMATION: &str = "Estimation";
const VALIDATION: &str = "Validation";
const PAYLOAD: &str = "Payload";
const GAINS: &str = "Drive gains";
const FLIGHT: &str = "Free-flying robots";
const STREAM: &str = "Streams";
const REGRESSOR: &str = "Regressors";

/// Identify the parameters from measured data
#[allow(clippy::struct_excessive_bools, reason = "a command has as many switches as it needs")]
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, after_long_help = DETAILS)]
pub struct Args {
    /// Model file, '-' for standard input, or builtin:NAME
    #[arg(value_name = "MODEL", required_unless_present = "regressor")]
    model: Option<String>,
    /// Logs or summaries to identify from
    #[arg(value_name = "LOG", required_unless_present_any = ["follow", "regressor"])]
    logs: Vec<String>,
    /// Friction of the joints
    #[arg(long, value_name = "FRICTION", value_parser = choice::<Friction>(), help_heading = UNKNOWNS,
          default_value = Unknowns::default().friction.word())]
    friction: Friction,
    /// Constant torque offsets of the joints: if the data require them, for all joints (also --offset alone), or none
    #[arg(long, value_name = "OFFSET", value_parser = choice::<Offset>(), help_heading = UNKNOWNS, num_args = 0..=1,
          require_equals = true, default_value = Unknowns::default().offset.word(),
          default_missing_value = Offset::Yes.word())]
    offset: Offset,
    /// Measured quantities besides the motion [default: joint-torques; with a floating base both]
    #[arg(long, value_name = "WHAT", value_parser = choice::<Measured>(), help_heading = UNKNOWNS)]
    measured: Option<Measured>,
    /// Drives that are coupled to two neighbouring joints: searched for in the data, or only those of --joint-model
    #[arg(long, value_name = "COUPLING", value_parser = choice::<Coupling>(), help_heading = UNKNOWNS,
          hide_short_help = true, default_value = Unknowns::default().coupling.word())]
    coupling: Coupling,
    /// Couplings, springs, counterbalances and other terms of the joints, in TOML
    #[arg(long, value_name = "PATH", help_heading = UNKNOWNS, hide_short_help = true)]
    joint_model: Option<String>,
    /// Estimator [default: consistent; for momentum eiv, or ols without --noise]
    #[arg(long, value_name = "ESTIMATOR", value_parser = estimator(), help_heading = ESTIMATION)]
    estimator: Option<String>,
    /// Solver of the consistent estimator [default: barrier]
    #[arg(long, value_name = "SOLVER", value_parser = choice::<Solver>(), help_heading = ESTIMATION,
          hide_short_help = true)]
    solver: Option<Solver>,
    /// Prior of the consistent estimator: model, none, or a model file; with ols, wls and irls, none selects the pseudo-inverse
    #[arg(long, value_name = "PATH", default_value_t = Estimate::default().prior, help_heading = ESTIMATION)]
    prior: String,
    /// Weight of the prior [default: 1]
    #[arg(long, value_name = "W", value_parser = positive, help_heading = ESTIMATION, hide_short_help = true)]
    prior_weight: Option<f64>,
    /// Measure of the distance to the prior
    #[arg(long, value_name = "KIND", value_parser = choice::<PriorKind>(), help_heading = ESTIMATION,
          hide_short_help = true, default_value = Estimate::default().prior_kind.word())]
    prior_kind: PriorKind,
    /// Regions that contain the mass of bodies: links, or a TOML file
    #[arg(long, value_name = "PATH", help_heading = ESTIMATION, hide_short_help = true)]
    bounds: Option<String>,
    /// Report the unknowns below the noise level; ols, wls and irls set them to zero
    #[arg(long, help_heading = ESTIMATION, hide_short_help = true)]
    essential: bool,
    /// Include the covariance of the base parameters in the JSON
    #[arg(long, help_heading = ESTIMATION, hide_short_help = true)]
    covariance: bool,
    /// Compute guaranteed intervals of these quantities, valid if no sample has more noise than --noise-bound
    #[arg(long, value_name = "WHAT,…", value_delimiter = ',', value_parser = choice::<Quantity>(), requires = "noise_bound",
          help_heading = ESTIMATION, hide_short_help = true)]
    bounds_on: Vec<Quantity>,
    /// Largest noise of a sample after filtering: one number for all forces, or by joint or sensor column
    #[arg(long, value_name = "X|NAME=X,…", value_delimiter = ',', value_parser = noise_bound, requires = "bounds_on",
          help_heading = ESTIMATION, hide_short_help = true)]
    noise_bound: Vec<Setting>,
    /// Compute 95 % credible intervals of the posterior of consistent bodies, by sampling
    #[arg(long, help_heading = ESTIMATION, hide_short_help = true)]
    posterior: bool,
    /// Time limit of the consistent estimator's solver [s], after which the result is its best estimate so far, with its gap
    #[arg(long, value_name = "SECONDS", help_heading = ESTIMATION, hide_short_help = true)]
    time_limit: Option<f64>,
    /// Logs to validate with
    #[arg(long, value_name = "LOG", num_args = 1.., conflicts_with = "holdout", help_heading = VALIDATION)]
    validate: Vec<String>,
    /// Fraction at the end of each log that is held out for validation
    #[arg(long, value_name = "F", value_parser = fraction, help_heading = VALIDATION)]
    holdout: Option<f64>,
    /// Write the model with the identified values and nothing else changed, completely or not at all; as a mechanism
    /// file if PATH ends with .toml or .json
    #[arg(short, long, value_name = "PATH", help_heading = OUTPUT)]
    out: Option<PathBuf>,
    /// Write the model even if it predicts worse than the given one
    #[arg(long, requires = "out", help_heading = OUTPUT, hide_short_help = true)]
    force: bool,
    /// Print the result as JSON
    #[arg(long, help_heading = OUTPUT)]
    json: bool,
    /// Write a summary of the logs (.summary, or .json for text), to be merged or identified from later
    #[arg(long, value_name = "PATH", help_heading = OUTPUT, hide_short_help = true)]
    summary_out: Option<PathBuf>,
    #[command(flatten)]
    pictures: Pictures,
    /// Identify only the payload of LINK: with a force/torque sensor, or from the difference in torques
    #[arg(long, value_name = "LINK", conflicts_with = "summary_out", help_heading = PAYLOAD, hide_short_help = true)]
    payload: Option<String>,
    /// With --payload: logs of the unloaded robot [default: the model describes the unloaded robot]
    #[arg(long, value_name = "LOG", num_args = 1.., requires = "payload", help_heading = PAYLOAD, hide_short_help = true)]
    unloaded: Vec<String>,
    /// Estimate the torque gain of each joint, known beforehand to this relative uncertainty (0.2: 20 %)
    #[arg(long, value_name = "SHARE", value_parser = positive, conflicts_with_all = ["payload", "follow", "summary_out"],
          help_heading = GAINS, hide_short_help = true)]
    gains: Option<f64>,
    /// With --gains: logs of the robot with a known payload
    #[arg(long, value_name = "LOG", num_args = 1.., requires_all = ["gains", "known_payload"], help_heading = GAINS,
          hide_short_help = true)]
    loaded: Vec<String>,
    /// With --loaded: mass of the payload and, if known, centre of mass in the link's frame and inertia about it
    #[arg(long, value_name = "LINK=M[,X,Y,Z[,IXX,IYY,IZZ[,IXY,IXZ,IYZ]]]", requires = "loaded", help_heading = GAINS,
          hide_short_help = true)]
    known_payload: Option<Payload>,
    /// Standard deviations of measured rates and momenta, by column or group of columns
    #[arg(long, value_name = "COLUMN=SD,…", value_delimiter = ',', help_heading = FLIGHT, hide_short_help = true)]
    noise: Vec<Setting>,
    /// Source of the positions
    #[arg(long, value_name = "FROM", value_parser = choice::<Positions>(), help_heading = FLIGHT, hide_short_help = true,
          default_value = flight::Options::default().positions.word())]
    positions: Positions,
    /// Read a growing CSV stream ('-' for standard input) and print an estimate at intervals
    #[arg(long, value_name = "STREAM", help_heading = STREAM, hide_short_help = true,
          conflicts_with_all = ["logs", "validate", "holdout", "summary_out", "out", "payload"])]
    follow: Option<String>,
    /// With --follow: seconds of the log between estimates
    #[arg(long, value_name = "S", default_value_t = follow::Options::default().every, value_parser = positive,
          help_heading = STREAM, hide_short_help = true)]
    every: f64,
    /// With --follow: time in seconds after which the weight of a sample has decayed to 1/e [default: never]
    #[arg(long, value_name = "S", value_parser = positive, help_heading = STREAM, hide_short_help = true)]
    forget: Option<f64>,
    /// With --follow: seconds over which motion and torques are smoothed; results lag by half of it
    #[arg(long, value_name = "S", default_value_t = follow::Options::default().window, value_parser = positive,
          help_heading = STREAM, hide_short_help = true)]
    window: f64,
    /// Identify from a regressor (.npy, or a table): ten columns for each body, then columns of other unknowns
    #[arg(long, value_name = "PATH", requires = "rhs", help_heading = REGRESSOR, hide_short_help = true,
          conflicts_with_all = ["logs", "validate", "holdout", "follow", "payload", "gains", "out", "summary_out"])]
    regressor: Option<String>,
    /// With --regressor: right-hand sides, one number for each row, or one row for each sample
    #[arg(long, value_name = "PATH", requires = "regressor", help_heading = REGRESSOR, hide_short_help = true)]
    rhs: Option<String>,
    /// With --regressor: number of bodies [default: those of MODEL]
    #[arg(long, value_name = "N", requires = "regressor", help_heading = REGRESSOR, hide_short_help = true)]
    bodies: Option<usize>,
    /// With --regressor: rows per sample, each with its own noise level [default: columns of --rhs]
    #[arg(long, value_name = "N", requires = "regressor", help_heading = REGRESSOR, hide_short_help = true)]
    rows_per_sample: Option<usize>,
    /// With --regressor: order of the ten columns of a body
    #[arg(long, value_name = "ORDER", value_parser = choice::<ColumnOrder>(), requires = "regressor",
          help_heading = REGRESSOR, hide_short_help = true, default_value = ColumnOrder::default().word())]
    column_order: ColumnOrder,
    #[command(flatten)]
    log: LogArgs,
    #[command(flatten)]
    options: ModelArgs,
}

/// Returns the parser of estimator names, which also accepts those of solvers.
fn estimator() -> impl TypedValueParser<Value = String> {
    let own = Estimator::ALL.iter().map(|(_, word, about)| PossibleValue::new(*word).help(*about));
    let solvers = SOLVERS_AS_ESTIMATORS.iter().map(|(word, _)| PossibleValue::new(*word).hide(true));
    PossibleValuesParser::new(own.chain(solvers))
}

impl Args {
    /// Loads the model, after the outputs are reserved.
    pub fn load(&self, shell: &Shell) -> Result<Model> {
        let joints = self.out.as_deref().map(|out| shell.disk().joint_file(out)).transpose()?;
        let files = self.out.iter().chain(&joints).chain(&self.summary_out);
        shell.reserve(files.chain(self.pictures.outputs()))?;
        self.summary_out.as_deref().map_or(Ok(()), summary_file::check_name)?;
        let mut model = Model::load(self.model_name(), &self.options.options(), shell.disk())?;
        if self.follow.is_none() && self.measured != Some(Measured::Momentum) {
            let logs = [&self.logs[..], &self.validate, &self.unloaded, &self.loaded].concat();
            let (log, context) = (self.log.options(), shell.context());
            model = model.float_logged_base(&logs, &log, &context)?.hold_unlogged(&logs, &log, &context)?;
        }
        Ok(match &self.out {
            Some(out) => model.to_be_written(out)?,
            None => model,
        })
    }

    /// Returns the name of the model; empty if there is none.
    pub fn model_name(&self) -> &str {
        self.model.as_deref().unwrap_or_default()
    }

    /// Returns the options of the unknowns.
    pub fn unknowns(&self) -> Unknowns {
        Unknowns::default().with(|u| {
            u.measured = self.measured;
            u.friction = self.friction;
            u.coupling = self.coupling;
            u.joint_model.clone_from(&self.joint_model);
            u.offset = self.offset;
        })
    }

    fn estimate(&self) -> Result<Estimate> {
        let mut out = Estimate::default().with(|e| {
            e.prior.clone_from(&self.prior);
            e.prior_weight = self.prior_weight;
            e.prior_kind = self.prior_kind;
            e.bounds.clone_from(&self.bounds);
            e.essential = self.essential;
            e.covariance = self.covariance;
            e.bounds_on.clone_from(&self.bounds_on);
            e.noise_bound.clone_from(&self.noise_bound);
            e.posterior = self.posterior;
            e.time_limit = self.time_limit;
        });
        out.choose(self.estimator.as_deref(), self.solver)?;
        Ok(out)
    }

    /// Returns the options of an identification from forces.
    pub fn identify_options(&self) -> Result<identify::Options> {
        let estimate = self.estimate()?;
        Ok(identify::Options::default().with(|o| {
            o.logs.clone_from(&self.logs);
            o.validate.clone_from(&self.validate);
            o.holdout = self.holdout;
            o.unknowns = self.unknowns();
            o.estimate = estimate;
            o.log = self.log.options();
            o.write = self.out.is_some();
            o.force = self.force;
            o.draw = self.pictures.wanted();
        }))
    }

    fn payload_options(&self, link: &str) -> Result<payload::Options> {
        let estimate = self.estimate()?;
        Ok(payload::Options::default().with(|o| {
            o.link = link.to_owned();
            o.logs.clone_from(&self.logs);
            o.unloaded.clone_from(&self.unloaded);
            o.validate.clone_from(&self.validate);
            o.holdout = self.holdout;
            o.unknowns = self.unknowns();
            o.estimate = estimate;
            o.log = self.log.options();
            o.write = self.out.is_some();
            o.draw = self.pictures.wanted();
        }))
    }

    fn flight_options(&self) -> Result<flight::Options> {
        let estimate = self.estimate()?;
        Ok(flight::Options::default().with(|o| {
            o.logs.clone_from(&self.logs);
            o.validate.clone_from(&self.validate);
            o.holdout = self.holdout;
            o.noise.clone_from(&self.noise);
            o.positions = self.positions;
            o.estimate = estimate;
            o.log = self.log.options();
            o.write = self.out.is_some();
            o.draw = self.pictures.wanted();
        }))
    }

    fn follow_options(&self) -> Result<follow::Options> {
        let estimate = self.estimate()?;
        Ok(follow::Options::default().with(|o| {
            o.unknowns = self.unknowns();
            o.estimate = estimate;
            o.log = self.log.options();
            o.every = self.every;
            o.forget = self.forget;
            o.window = self.window;
        }))
    }

    fn regressor_options(&self, regressor: &str) -> regressor::Options {
        let rhs = self.rhs.clone().unwrap_or_default();
        regressor::Options::new(regressor.to_owned(), rhs).with(|o| {
            o.subject.bodies = self.bodies;
            o.subject.order = self.column_order;
            o.subject.prior_kind = self.prior_kind;
            if let Some(weight) = self.prior_weight {
                o.subject.prior_weight = weight;
            }
            o.rows_per_sample = self.rows_per_sample;
        })
    }

    fn gains_options(&self, spread: f64) -> Result<gains::Options> {
        Ok(gains::Options::new(self.identify_options()?, spread).with(|o| {
            o.loaded.clone_from(&self.loaded);
            o.known_payload.clone_from(&self.known_payload);
        }))
    }
}

fn noise_bound(text: &str) -> Result<Setting, String> {
    let setting = match text.parse::<f64>() {
        Ok(value) => Setting { column: String::new(), value },
        Err(_) => text.parse()?,
    };
    if setting.value > 0.0 && setting.value.is_finite() {
        Ok(setting)
    } else {
        Err("expected a number above zero, or NAME=NUMBER".into())
    }
}

pub fn run(args: &Args, shell: &Shell) -> Result<Answer> {
    if let Some(regressor) = &args.regressor {
        return jobs::regressor(args, regressor, shell);
    }
    if let Some(link) = &args.payload {
        return jobs::payload(args, link, shell);
    }
    if let Some(stream) = &args.follow {
        return jobs::follow(args, stream, shell);
    }
    if args.measured == Some(Measured::Momentum) {
        return jobs::flight(args, shell);
    }
    ensure!(
        args.noise.is_empty(),
        "--noise: the noise of torques is estimated from the data; give it with --measured momentum"
    );
    jobs::identify(args, shell)
}
