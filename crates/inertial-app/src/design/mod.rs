//! Experiment design: motions that determine the parameters best within the joint limits.

mod flight;
mod outcome;
mod subject;

use inertial::dynamics::ClosedMechanism;
use inertial::excitation::{
    Coordinate, Criterion, DefaultLimits, Design, DesignOptions, Family, ModelAggregation, Profile,
    Progress as Step, certify, coordinates, design,
};
use inertial::identifiability::Measured;
use inertial::mechanism::{Base, Mechanism};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::choice::{self, Combinations, Friction, Goal, Offset, Shape};
use crate::note::SearchEnd;
use crate::progress::Unit;
use crate::setting::Setting;
use crate::{Context, Error, Located, Model, Note, Result, ensure_option};
pub use outcome::{CriterionValue, Format, Outcome};
use subject::{collisions, measured, on_plate, subject};

/// Options of a design.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Options {
    /// Length of the motion (s).
    pub duration: f64,
    /// Sampling rate of the measurement (Hz).
    pub rate: f64,
    /// Basis of the trajectory; by default a Fourier series, for a free flight velocities at knots.
    #[serde(with = "choice::optional")]
    #[schemars(with = "Option<choice::Words<Shape>>")]
    pub trajectory: Option<Shape>,
    /// Harmonics of a Fourier series; by default one per two seconds, from 5 to 12.
    pub harmonics: Option<usize>,
    /// Intervals of other trajectories; by default one per second.
    pub intervals: Option<usize>,
    /// Seeds of the cycloids of a free flight: the start positions of all joints, then their ranges in an
    /// interval; optimized if absent.
    pub seeds: Option<Vec<f64>>,
    /// Direction combinations of the cycloids of a free flight.
    #[serde(with = "choice")]
    #[schemars(with = "choice::Words<Combinations>")]
    pub combinations: Combinations,
    /// Criterion to minimize; by default `d`, for the cycloids of a free flight `paper`.
    #[serde(with = "choice::optional")]
    #[schemars(with = "Option<choice::Words<Goal>>")]
    pub criterion: Option<Goal>,
    /// Weight of the speeds in the criterion `paper`.
    pub weight: f64,
    /// Measured quantities; joint torques by default, with a floating base also the base wrench.
    #[serde(with = "choice::optional")]
    #[schemars(with = "Option<choice::Words<Measured>>")]
    pub measured: Option<Measured>,
    /// Joints that have a torque sensor; all if absent.
    pub joints: Option<Vec<String>>,
    /// Standard deviations of the measurement: `tau`, `tau.JOINT`, `wrench.f`, `wrench.t`; for a free flight `dq`, `base.v`, `base.w`.
    pub noise: Vec<Setting>,
    /// Friction terms to be estimated.
    #[serde(with = "choice")]
    #[schemars(with = "choice::Words<Friction>")]
    pub friction: Friction,
    /// Stribeck friction (force above the Coulomb friction, speed, exponent) about which a design for Stribeck friction is linearized.
    pub stribeck: Option<[f64; 3]>,
    /// Constant offsets of the joints' torques that will be estimated; by default if unknown offsets would make standard errors
    /// much larger.
    #[serde(with = "choice::offset")]
    #[schemars(with = "choice::Words<Offset>")]
    pub offset: Offset,
    /// Summaries of earlier logs.
    pub prior_summary: Vec<String>,
    /// Acceleration limit of every joint (rad/s² or m/s²).
    pub acceleration: f64,
    /// Speed limit of joints without one in the model (rad/s or m/s).
    pub velocity: f64,
    /// Fraction of every limit that is kept free.
    pub margin: f64,
    /// Start position of every joint; optimized if absent.
    pub start: Option<Vec<f64>>,
    /// Box in which all links must stay: lower and upper corner (m).
    pub workspace: Option<[f64; 6]>,
    /// Height above which all links must stay (m).
    pub ground: Option<f64>,
    /// Radius (m) of capsules around the links, which must not collide with each other.
    pub link_radius: Option<f64>,
    /// Whether collisions between the collision shapes of the model are avoided.
    pub self_collision: bool,
    /// Minimum distance to all obstacles (m).
    pub clearance: f64,
    /// Range of motion of a floating base to each side (m, rad); the base is held still if absent.
    pub base_motion: Option<[f64; 2]>,
    /// Names of alternative models of the robot, for which the motion must be suitable too.
    pub robust: Vec<String>,
    /// Combination of the criteria of several models.
    #[serde(with = "choice")]
    #[schemars(with = "choice::Words<ModelAggregation>")]
    pub robust_by: ModelAggregation,
    /// Number of searches from different random motions.
    pub starts: usize,
    /// Largest number of steps of each search; by default until convergence.
    pub iterations: Option<usize>,
    /// Time limit (s), after which the search returns the best motion so far; 20 by default if the steps are not limited either.
    pub time_limit: Option<f64>,
    /// Seed of the random motions.
    pub seed: u64,
}

inertial::with_changes!(Options);

impl Default for Options {
    fn default() -> Self {
        Self {
            duration: 20.0,
            rate: 100.0,
            trajectory: None,
            harmonics: None,
            intervals: None,
            seeds: None,
            combinations: Combinations::First,
            criterion: None,
            weight: 1.0,
            measured: None,
            joints: None,
            noise: Vec::new(),
            friction: Friction::None,
            stribeck: None,
            offset: Offset::Auto,
            prior_summary: Vec::new(),
            acceleration: 10.0,
            velocity: 2.0,
            margin: 0.05,
            start: None,
            workspace: None,
            ground: None,
            link_radius: None,
            self_collision: false,
            clearance: 0.0,
            base_motion: None,
            robust: Vec::new(),
            robust_by: ModelAggregation::Mean,
            starts: 4,
            iterations: None,
            time_limit: None,
            seed: 1,
        }
    }
}

/// Search that ends when the observer requests it or the time is over.
struct Search<'c> {
    context: &'c Context<'c>,
    /// Total number of steps of all searches, if limited.
    total: Option<usize>,
    /// Time limit (s).
    limit: Option<f64>,
}

/// Time limit (s) of a search whose steps are not limited.
const DEFAULT_TIME_LIMIT: f64 = 20.0;

impl Search<'_> {
    /// Reports the progress of a step; returns whether the search continues.
    fn step(&self, step: &Step) -> bool {
        let steps = self.total.map(|total| step.steps as f64 / total.max(1) as f64);
        let time = self.limit.map(|limit| self.context.progress.elapsed().as_secs_f64() / limit);
        self.context.progress.share(steps.into_iter().chain(time).fold(0.0, f64::max).min(1.0));
        if step.best.is_finite() {
            self.context.progress.best(step.best);
        }
        !self.interrupted()
    }

    fn interrupted(&self) -> bool {
        self.end().is_some()
    }

    /// Returns the reason to end the search now, if there is one.
    fn end(&self) -> Option<SearchEnd> {
        let progress = self.context.progress;
        let over = |limit: f64| progress.elapsed().as_secs_f64() >= limit;
        if progress.is_stopped() {
            Some(SearchEnd::Stopped)
        } else {
            self.limit.filter(|l| over(*l)).map(SearchEnd::Time)
        }
    }
}

/// Designs a motion.
pub fn run(model: &Model, options: &Options, context: &Context<'_>) -> Result<Outcome> {
    options.check()?;
    let total = options.iterations.map(|steps| options.starts.saturating_mul(steps));
    let usual = options.iterations.is_none().then_some(DEFAULT_TIME_LIMIT);
    let search = Search { context, total, limit: options.time_limit.or(usual) };
    // The number of steps until convergence is not known in advance.
    let work = context.work(Unit::Steps, total.unwrap_or(0) as u64);
    let mut included = None;
    let mut options = options.clone();
    if options.offset == Offset::Auto {
        options.offset = Offset::No;
        // Errors of the options are reported by the search itself.
        if let Ok(Some((name, factor))) = offsets_matter_at_first(&options, model, context) {
            options.offset = Offset::Yes;
            included = Some(Note::OffsetsIncluded { name, factor });
        }
    }
    let motion = |options: &Options| match options.measured {
        Some(Measured::Momentum) => flight::design(options, model, &search),
        _ => forces(options, model, &search),
    };
    let mut found = motion(&options);
    if found.is_err() && included.take().is_some() {
        // No motion tells the offsets from other unknowns.
        options.offset = Offset::No;
        found = motion(&options);
    }
    let options = &options;
    drop(work);
    let found = found.at(&model.label)?;
    let end = if found.converged { SearchEnd::Converged } else { search.end().unwrap_or(SearchEnd::Steps) };
    let offsets = offsets_matter(options, model, &found, context).at(&model.label)?;
    let mut outcome = Outcome::new(options, model, found, end);
    outcome.warnings.0.extend(included);
    outcome.warnings.0.extend(offsets.map(|(name, factor)| Note::OffsetsMatter { name, factor }));
    Ok(outcome)
}

/// Growth of a standard error due to unknown offsets from which a design includes them.
const OFFSETS_MATTER: f64 = 5.0;

/// Returns whether offsets can be unknowns of a design whose options leave them out.
fn can_have_offsets(own: &Options, mechanism: &Mechanism) -> bool {
    let has_offsets = own.offset == Offset::Yes || own.friction == Friction::Asymmetric;
    !has_offsets && own.prior_summary.is_empty() && measured(own, mechanism) != Measured::Momentum
}

/// Compares designs with and without offsets at the first motion of the search.
fn offsets_matter_at_first(
    own: &Options,
    model: &Model,
    context: &Context<'_>,
) -> Result<Option<(String, f64)>> {
    if !can_have_offsets(own, &model.mechanism) {
        return Ok(None);
    }
    let own = Options { iterations: Some(1), starts: 1, ..own.clone() };
    let first = forces(&own, model, &Search { context, total: None, limit: None })?;
    offsets_matter(&own, model, &first, context)
}

/// Returns the unknown whose expected standard error grows most, and the factor, if unknown offsets of the torques, which the design
/// leaves out, would make it much larger.
fn offsets_matter(
    own: &Options,
    model: &Model,
    found: &Design,
    context: &Context<'_>,
) -> Result<Option<(String, f64)>> {
    if !can_have_offsets(own, &model.mechanism) {
        return Ok(None);
    }
    let own = Options { offset: Offset::Yes, ..own.clone() };
    let plate = on_plate(&own, model)?;
    let with_offsets = subject(&own, model, plate.as_ref(), context)?;
    let after = certify(&with_offsets, &found.trajectory, own.rate)?;
    let before = &found.certificate;
    let growth = before.base_parameters.iter().filter(|e| !e.weak).filter_map(|e| {
        let other = after.base_parameters.iter().find(|other| other.name == e.name)?;
        Some((&e.name, other.std_error / e.std_error)).filter(|(_, factor)| factor.is_finite())
    });
    let most = growth.max_by(|a, b| a.1.total_cmp(&b.1)).filter(|(_, factor)| *factor > OFFSETS_MATTER);
    Ok(most.map(|(name, factor)| (name.clone(), factor)))
}

/// Designs a motion that determines the parameters from measured forces.
fn forces(own: &Options, model: &Model, search: &Search<'_>) -> Result<Design> {
    let (mechanism, context) = (&model.mechanism, search.context);
    let flights_only =
        [("seeds", own.seeds.is_some()), ("combinations", own.combinations != Combinations::First)];
    if let Some((name, _)) = flights_only.iter().find(|(_, given)| *given) {
        return Err(Error::option(name, "needs the cycloids of a free flight (measured momentum)"));
    }
    let plate = on_plate(own, model)?;
    let mut others = Vec::new();
    for name in &own.robust {
        let other = model.load_other(name, context)?;
        let plate = on_plate(own, &other)?;
        others.push((name, other, plate));
    }
    let mut subjects = vec![subject(own, model, plate.as_ref(), context)?];
    for (name, other, plate) in &others {
        subjects.push(subject(own, other, plate.as_ref(), context).at(name)?);
    }
    let is_base_held = is_base_held(own, mechanism);
    let mechanism = plate.as_ref().unwrap_or(mechanism);
    let coordinates = coordinates(mechanism, &own.limits());
    let collisions = collisions(own, mechanism)?;
    let start = start(own, mechanism, &coordinates)?;
    let options = DesignOptions::default().with(|o| {
        o.family = own.family();
        o.duration = own.duration;
        o.rate = own.rate;
        o.criterion = own.criterion(measured(own, mechanism));
        o.robust = own.robust_by;
        o.start = start;
        o.starts = own.starts;
        o.iterations = own.steps();
        o.seed = own.seed;
    });
    let found = design(&subjects, &coordinates, &collisions, &options, &|step| search.step(&step));
    found.map_err(|error| match error {
        error if is_base_held => Error::Hint {
            reason: format!("the base is held still: {error}"),
            option: "base-motion",
            effect: "lets it move (for a robot in free flight, measure the momentum instead)".into(),
        },
        error => error.into(),
    })
}

/// Returns whether a floating base is held still.
fn is_base_held(own: &Options, mechanism: &Mechanism) -> bool {
    let momentum = own.measured == Some(Measured::Momentum);
    mechanism.base() == Base::Floating && own.base_motion.is_none() && !momentum
}

/// Returns the coordinates that move, including the wheels in free flight.
fn moving(own: &Options, mechanism: &Mechanism) -> Vec<Coordinate> {
    let limits = own.limits();
    let wheels = mechanism.wheels().iter().map(|w| Coordinate {
        name: w.name.clone(),
        lower: f64::NEG_INFINITY,
        upper: f64::INFINITY,
        velocity: w.limits.velocity * (1.0 - limits.margin),
        acceleration: f64::INFINITY,
    });
    coordinates(mechanism, &limits).into_iter().chain(wheels).collect()
}

impl Options {
    /// Returns the largest number of steps of each search.
    fn steps(&self) -> usize {
        self.iterations.unwrap_or(usize::MAX)
    }

    fn limits(&self) -> DefaultLimits {
        DefaultLimits::default().with(|l| {
            l.velocity = self.velocity;
            l.acceleration = self.acceleration;
            l.margin = self.margin;
            l.base = self.base_motion;
        })
    }

    /// Checks the options.
    pub fn check(&self) -> Result<()> {
        macro_rules! positive {
            ($name:literal, $x:expr) => {
                ensure_option!($x > 0.0 && $x.is_finite(), $name, "{}: expected a number above zero", $x)
            };
        }
        positive!("duration", self.duration);
        positive!("rate", self.rate);
        positive!("acceleration", self.acceleration);
        positive!("velocity", self.velocity);
        ensure_option!(self.iterations != Some(0), "iterations", "0: expected at least one step");
        if let Some(limit) = self.time_limit {
            positive!("time-limit", limit);
        }
        if let Some(radius) = self.link_radius {
            positive!("link-radius", radius);
        }
        ensure_option!(self.duration <= 3600.0, "duration", "{} s: expected at most an hour", self.duration);
        let samples = self.duration * self.rate;
        ensure_option!(
            (10.0..=200_000.0).contains(&samples),
            "rate",
            "{} s at {} Hz are {samples:.0} samples, expected 10 to 200000",
            self.duration,
            self.rate
        );
        let margin = self.margin;
        ensure_option!(
            (0.0..1.0).contains(&margin),
            "margin",
            "{margin}: expected a fraction from 0 to below 1"
        );
        ensure_option!(
            self.clearance >= 0.0 && self.clearance.is_finite(),
            "clearance",
            "{}: expected zero or more",
            self.clearance
        );
        ensure_option!(
            self.weight >= 0.0 && self.weight.is_finite(),
            "weight",
            "{}: expected zero or more",
            self.weight
        );
        let finite = |x: &f64| x.is_finite();
        ensure_option!(self.ground.iter().all(finite), "ground", "expected a finite height");
        ensure_option!((1..=1000).contains(&self.starts), "starts", "{}: expected 1 to 1000", self.starts);
        let few = |count: usize| (2..=500).contains(&count);
        ensure_option!(self.harmonics.is_none_or(few), "harmonics", "expected 2 to 500");
        ensure_option!(self.intervals.is_none_or(few), "intervals", "expected 2 to 500");
        ensure_option!(
            !(self.offset == Offset::Yes && self.friction == Friction::Asymmetric),
            "offset",
            "cannot be combined with asymmetric friction, which already contains an offset"
        );
        if let Some(s) = &self.stribeck {
            ensure_option!(self.friction == Friction::Stribeck, "stribeck", "needs the friction stribeck");
            ensure_option!(
                s.iter().all(|x| *x > 0.0 && x.is_finite()),
                "stribeck",
                "expected three numbers above zero: force, speed, exponent"
            );
        }
        if let Some(range) = &self.base_motion {
            ensure_option!(
                range.iter().all(|x| *x > 0.0 && x.is_finite()),
                "base-motion",
                "expected two numbers above zero"
            );
            ensure_option!(
                range[1] < 1.5,
                "base-motion",
                "rotations of {} rad are too large for roll, pitch and yaw",
                range[1]
            );
        }
        Ok(())
    }

    /// Returns the names of all inputs except the model.
    pub fn files(&self) -> Vec<String> {
        self.robust.iter().chain(&self.prior_summary).cloned().collect()
    }

    fn family(&self) -> Family {
        let harmonics = self.harmonics.unwrap_or(((0.5 * self.duration).round() as usize).clamp(5, 12));
        let intervals = self.intervals.unwrap_or((self.duration.round() as usize).clamp(6, 60));
        match self.trajectory.unwrap_or(Shape::Fourier) {
            Shape::Fourier => Family::Fourier { harmonics },
            Shape::Spline => Family::Spline { points: intervals + 5 },
            Shape::Velocity => Family::VelocityKnots { intervals },
            Shape::Cycloid => Family::PointToPoint { intervals, profile: Profile::Cycloid },
            Shape::Quintic => Family::PointToPoint { intervals, profile: Profile::Quintic },
        }
    }

    /// Returns the criterion that is given, or the default of the experiment.
    fn goal(&self, measured: Measured) -> Goal {
        let published = self.trajectory == Some(Shape::Cycloid) && measured == Measured::Momentum;
        self.criterion.unwrap_or(if published { Goal::Paper } else { Goal::D })
    }

    fn criterion(&self, measured: Measured) -> Criterion {
        match self.goal(measured) {
            Goal::D => Criterion::D,
            Goal::A => Criterion::A,
            Goal::E => Criterion::E,
            Goal::Crb => Criterion::CramerRao,
            Goal::Worst => Criterion::Worst,
            Goal::Condition => Criterion::Condition,
            Goal::ScaledCondition => Criterion::ScaledCondition,
            Goal::Paper => Criterion::Paper { weight: self.weight },
        }
    }
}

/// Returns the start in the order of the coordinates. If only the joints are given, the base starts at the middle of
/// its range. With loops only the independent joints are given.
fn start(own: &Options, mechanism: &Mechanism, coordinates: &[Coordinate]) -> Result<Option<Vec<f64>>> {
    let Some(start) = &own.start else { return Ok(None) };
    let base = coordinates.iter().filter(|c| c.name.starts_with("base.")).count();
    let (joints, kind) = if mechanism.loops().is_empty() {
        (coordinates.len() - base, "joints")
    } else {
        (ClosedMechanism::new(mechanism)?.dof(), "independent joints")
    };
    ensure_option!(
        start.len() == joints,
        "start",
        "has {} positions, the model has {joints} {kind}",
        start.len()
    );
    Ok(Some(vec![0.0; base].into_iter().chain(start.iter().copied()).collect()))
}
