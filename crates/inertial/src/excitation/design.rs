//! From limits and a criterion to the motion that reveals the parameters best.

use std::sync::Mutex;

use nalgebra::DMatrix;
use rayon::prelude::{IntoParallelIterator, ParallelIterator};

use super::basis::{Basis, Profile};
use super::certificate::{Certificate, Seen};
use super::clearance::Room;
use super::columns::{Columns, JointColumn, unit_diagonal};
use super::criteria::Criterion;
use super::greedy::{Sequence, one_movement};
use super::information::{Evaluator, States};
use super::motion::{BASE_COORDINATES, Target, movable};
use super::plan::{Coordinate, Plan, Table};
use super::search::{Limit, Model, Robust, Search, Task};
use super::trajectory::Trajectory;
use crate::dynamics::InverseDynamics;
use crate::identifiability::Regrouping;
use crate::linalg::{Number, SplitMix};
use crate::mechanism::{Base, Mechanism};
use crate::optimize::sqp::{SqpOptions, minimise};
use crate::{Error, Result};

/// Part of each limit that the search keeps free between its samples; the final check decides.
const BETWEEN_SAMPLES: f64 = 2e-3;

/// Postures and motions that are tried before limits are said to allow none.
const TRIES: usize = 300;

/// Which functions of time a design is made of.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Family {
    /// A Fourier series whose first period is the duration.
    Fourier {
        /// How many harmonics.
        harmonics: usize,
    },
    /// A quintic B-spline.
    Spline {
        /// How many control points.
        points: usize,
    },
    /// Velocities at equally spaced knots.
    VelocityKnots {
        /// How many intervals.
        intervals: usize,
    },
    /// Movements from rest to rest, equally long.
    PointToPoint {
        /// How many.
        intervals: usize,
        /// Of each movement.
        profile: Profile,
    },
}

impl Family {
    /// Its functions over a duration (s).
    pub fn basis(self, duration: f64) -> Basis {
        let knots = |n: usize| (0..=n).map(|k| duration * k as f64 / n.max(1) as f64).collect();
        match self {
            Self::Fourier { harmonics } => Basis::Fourier { period: duration, harmonics },
            Self::Spline { points } => Basis::Spline { degree: 5, duration, points },
            Self::VelocityKnots { intervals } => Basis::VelocityKnots { knots: knots(intervals) },
            Self::PointToPoint { intervals, profile } => {
                Basis::PointToPoint { knots: knots(intervals), profile }
            }
        }
    }
}

/// A robot as it may be, and what is to be known of it.
#[derive(Debug, Clone)]
pub struct Subject<'m> {
    /// The robot.
    pub mechanism: &'m Mechanism,
    /// Its base parameters for what is measured.
    pub regrouping: Regrouping,
    /// Terms of its joints' own model.
    pub terms: Vec<(usize, JointColumn)>,
    /// Noise of each velocity coordinate's measured force; infinite where it is not measured.
    pub noise: Vec<f64>,
    /// Highest force of each velocity coordinate.
    pub effort: Vec<f64>,
    /// Information on the unknowns from before, in their order.
    pub prior: Option<DMatrix<f64>>,
}

/// Limits of a mechanism's coordinates, where its description gives none.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DefaultLimits {
    /// Highest speed (rad/s or m/s) of joints without one.
    pub velocity: f64,
    /// Highest acceleration (rad/s² or m/s²).
    pub acceleration: f64,
    /// Part of every limit that is kept free.
    pub margin: f64,
    /// Range of a floating base (m, rad), to both sides; it stays where it is without one.
    pub base: Option<[f64; 2]>,
}

impl Default for DefaultLimits {
    fn default() -> Self {
        Self { velocity: 2.0, acceleration: 10.0, margin: 0.05, base: None }
    }
}

/// The coordinates that a trajectory of a mechanism can move, with their limits.
pub fn coordinates(mechanism: &Mechanism, limits: &DefaultLimits) -> Vec<Coordinate> {
    let keep = 1.0 - limits.margin;
    let mut out = Vec::new();
    if let (Base::Floating, Some(range)) = (mechanism.base(), limits.base) {
        for (k, name) in BASE_COORDINATES.iter().enumerate() {
            let range = range[k / 3] * keep;
            // As fast as a wave of half a hertz over the whole range.
            let w = std::f64::consts::PI;
            out.push(Coordinate {
                name: (*name).to_owned(),
                lower: -range,
                upper: range,
                velocity: w * range,
                acceleration: w * w * range,
            });
        }
    }
    for (name, q, _) in movable(mechanism) {
        let joints = mechanism.joints().iter().filter(|j| j.follows.is_none());
        let Some(joint) = joints.clone().find(|j| j.q_range().contains(&q)) else { continue };
        let mut lower = joint.limits.lower;
        let mut upper = joint.limits.upper;
        let mut velocity =
            if joint.limits.velocity.is_finite() { joint.limits.velocity } else { limits.velocity };
        // Joints that follow this one bring their own limits.
        for follower in mechanism.bodies().iter().filter(|b| b.drive.q == q && b.joint_type.nq() == 1) {
            let own = &mechanism.joints()[follower.joint];
            if own.follows.is_none() || follower.drive.ratio == 0.0 {
                continue;
            }
            let ends = [own.limits.lower, own.limits.upper]
                .map(|x| (x - follower.drive.offset) / follower.drive.ratio);
            lower = lower.max(ends[0].min(ends[1]));
            upper = upper.min(ends[0].max(ends[1]));
            velocity = velocity.min(own.limits.velocity / follower.drive.ratio.abs());
        }
        let spare = if (upper - lower).is_finite() { 0.5 * limits.margin * (upper - lower) } else { 0.0 };
        out.push(Coordinate {
            name,
            lower: lower + spare,
            upper: upper - spare,
            velocity: velocity * keep,
            acceleration: limits.acceleration * keep,
        });
    }
    out
}

/// Choices of [`design`].
#[derive(Debug, Clone, PartialEq)]
pub struct DesignOptions {
    /// Functions of time.
    pub family: Family,
    /// In seconds.
    pub duration: f64,
    /// Samples that will be measured (Hz).
    pub rate: f64,
    /// Rate (Hz) at which all limits are checked in the end.
    pub check_rate: f64,
    /// What is to be small.
    pub criterion: Criterion,
    /// How several models count.
    pub robust: Robust,
    /// Position of each coordinate at the start and, for Fourier series, at the end; the best one where not given.
    pub start: Option<Vec<f64>>,
    /// Searches from different random motions; the best one counts.
    pub starts: usize,
    /// Steps of each search, at most.
    pub iterations: usize,
    /// Of the random motions: same seed, same design.
    pub seed: u64,
}

impl Default for DesignOptions {
    fn default() -> Self {
        Self {
            family: Family::Fourier { harmonics: 8 },
            duration: 20.0,
            rate: 100.0,
            check_rate: 1000.0,
            criterion: Criterion::D,
            robust: Robust::Mean,
            start: None,
            starts: 4,
            iterations: 100,
            seed: 1,
        }
    }
}

/// Where a design stands.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Progress {
    /// Steps taken, of all searches together.
    pub steps: usize,
    /// The best criterion so far.
    pub best: f64,
}

/// How much of a limit a motion uses.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Usage {
    /// The limit, in words.
    pub limit: String,
    /// Highest part of it that is used; of distances, how much (m) is left above what must be.
    pub used: f64,
}

/// A motion and what it shows.
#[derive(Debug, Clone)]
pub struct Design {
    /// The motion.
    pub trajectory: Trajectory,
    /// The criterion reached.
    pub criterion: f64,
    /// The criterion that each search reached.
    pub searches: Vec<f64>,
    /// What the motion shows of the first model.
    pub certificate: Certificate,
    /// How much of the limits it uses, the fullest first.
    pub usage: Vec<Usage>,
    /// Coordinates that the limits hold still.
    pub held: Vec<String>,
    /// Terms that act exactly like other unknowns.
    pub absorbed: Vec<String>,
}

/// Designs the motion that makes the criterion smallest within all limits.
///
/// The first subject is the robot; others are robots that it might be, of the same joints. Searches run in parallel from
/// random motions; `watch` is told of each step and ends all searches by `false`, keeping the best motion so far. The
/// result is the same for any number of threads unless `watch` ends it.
pub fn design(
    subjects: &[Subject<'_>],
    coordinates: &[Coordinate],
    room: &Room,
    options: &DesignOptions,
    watch: &(dyn Fn(Progress) -> bool + Sync),
) -> Result<Design> {
    let Some(first) = subjects.first() else {
        return Err(Error::Numeric("there is no robot to design a motion for".into()));
    };
    let mechanism = first.mechanism;
    if !mechanism.loops().is_empty() {
        return Err(Error::Numeric("the mechanism has loops: designs are for open chains".into()));
    }
    let (free, held) = split(coordinates)?;
    let start = options.start.as_ref().map(|s| checked_start(coordinates, s)).transpose()?;
    let mechanism = held_in_place(mechanism, coordinates, options.start.as_deref());
    let mut models = subjects.iter().map(|s| model(s, &mechanism)).collect::<Result<Vec<Model<'_>>>>()?;
    models[0].mechanism = &mechanism;
    reachable(&models[0], &free, options.seed)?;
    let basis = options.family.basis(options.duration);
    let plan = Plan::new(&mechanism, free, basis, options.duration, start.as_deref())?;
    let task = Task::new(models, plan, room.clone(), options.criterion, options.robust);
    let table = task.plan.table(options.rate)?;
    let posture = posture(&task, options.seed)?;
    let movement = match options.family {
        Family::PointToPoint { intervals, profile } => {
            let movement = one_movement(&task, options.duration / intervals.max(1) as f64, profile)?;
            let table = movement.plan.table(options.rate)?;
            Some((movement, table))
        }
        _ => None,
    };
    let (steps, found) = (Mutex::new((0usize, f64::INFINITY)), options.starts.max(1));
    let results: Vec<Result<(Vec<f64>, f64)>> = (0..found)
        .into_par_iter()
        .map(|k| {
            let mut search = Search::new(&task, &table, BETWEEN_SAMPLES);
            let seed = options.seed.wrapping_add(k as u64);
            let x = match (options.family, &movement) {
                (Family::PointToPoint { intervals, .. }, Some((movement, table))) => {
                    sequence(&task, movement, table, intervals, &posture, seed)?
                }
                _ => random_motion(&task, &mut search, &posture, seed)?,
            };
            let settings =
                SqpOptions { iterations: options.iterations, tolerance: 1e-5, ..SqpOptions::default() };
            let mut last = 0;
            let found = minimise(&mut search, &x, &settings, &mut |p| {
                // A poisoned lock only holds numbers for display.
                let mut all = steps.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                all.0 += p.iteration - last;
                all.1 = all.1.min(p.best);
                last = p.iteration;
                watch(Progress { steps: all.0, best: all.1 })
            })?;
            Ok((found.x, found.objective))
        })
        .collect();
    let mut searches = results.into_iter().collect::<Result<Vec<_>>>()?;
    let reached = searches.iter().map(|s| s.1).collect();
    searches.sort_by(|a, b| a.1.total_cmp(&b.1));
    let check = task.plan.table(options.check_rate)?;
    let mut checker = Search::new(&task, &check, 0.0);
    let x = &searches[0].0;
    let x = within_limits(&task, &mut checker, x)?;
    let mut search = Search::new(&task, &table, 0.0);
    let criterion = crate::optimize::sqp::Problem::objective(&mut search, &x, None);
    let mut information = search.information(&x)?.swap_remove(0);
    if let Some(prior) = &task.models[0].prior {
        information += prior;
    }
    let certificate = Certificate::new(&task.models[0].columns, &information)?;
    Ok(Design {
        trajectory: task.plan.trajectory(&x)?,
        criterion,
        searches: reached,
        certificate,
        usage: usage(&task, &mut checker, &x)?,
        held,
        absorbed: task.models[0].columns.absorbed.clone(),
    })
}

/// What a given trajectory shows of a robot, by the same rules.
pub fn certify(subject: &Subject<'_>, trajectory: &Trajectory, rate: f64) -> Result<Certificate> {
    let model = model(subject, subject.mechanism)?;
    let [q, v, a] = super::Motion::new(subject.mechanism, trajectory)?.sample(rate)?;
    let states = States { count: trajectory.samples(rate)?, q, v, a };
    let mut information = Evaluator::new(&model.dynamics, &model.columns).information(&states)?;
    if let Some(prior) = &model.prior {
        information += prior;
    }
    Certificate::new(&model.columns, &information)
}

/// Random states, within the coordinates' limits where these are given.
pub(super) fn random_states(
    mechanism: &Mechanism,
    count: usize,
    coordinates: Option<&[Coordinate]>,
    seed: u64,
) -> States {
    let dynamics = InverseDynamics::new(mechanism);
    let mut states = States::new(&dynamics, count);
    let mut random = SplitMix::new(seed);
    let mut next = || f64::random(&mut random);
    let (nq, nv) = (mechanism.nq(), mechanism.nv());
    match coordinates {
        None => {
            for i in 0..count {
                let mut q = mechanism.neutral();
                let step: Vec<f64> = (0..nv).map(|_| 3.0 * next()).collect();
                mechanism.integrate(&mut q, &step);
                states.q[i * nq..(i + 1) * nq].copy_from_slice(&q);
                states.v[i * nv..(i + 1) * nv].fill_with(|| 3.0 * next());
                states.a[i * nv..(i + 1) * nv].fill_with(|| 10.0 * next());
            }
        }
        Some(coordinates) => {
            let targets = coordinates.iter().filter_map(|c| super::motion::target(mechanism, &c.name).ok());
            let targets: Vec<Target> = targets.collect();
            let at_most = |x: f64, other: f64| if x.is_finite() { x } else { other };
            for i in 0..count {
                let mut base = [[0.0; 6]; 3];
                let q = &mut states.q[i * nq..(i + 1) * nq];
                q.copy_from_slice(mechanism.assembly());
                for (c, target) in coordinates.iter().zip(&targets) {
                    let x = [
                        (c.middle() + c.reach() * next()).clamp(c.lower, c.upper),
                        at_most(c.velocity, 3.0) * next(),
                        at_most(c.acceleration, 10.0) * next(),
                    ];
                    match *target {
                        Target::Joint { q: iq, v } => {
                            (q[iq], states.v[i * nv + v], states.a[i * nv + v]) = (x[0], x[1], x[2]);
                        }
                        Target::Base(k) => (0..3).for_each(|d| base[d][k] = x[d]),
                    }
                }
                if targets.iter().any(|t| matches!(t, Target::Base(_))) {
                    let (pose, twist, acceleration) = super::motion::base_state(&base);
                    q[..7].copy_from_slice(&pose);
                    states.v[i * nv..i * nv + 6].copy_from_slice(&twist);
                    states.a[i * nv..i * nv + 6].copy_from_slice(&acceleration);
                }
            }
        }
    }
    states
}

/// The coordinates that can move, and the names of those that cannot.
fn split(coordinates: &[Coordinate]) -> Result<(Vec<Coordinate>, Vec<String>)> {
    let empty = coordinates.iter().find(|c| c.lower > c.upper);
    if let Some(c) = empty {
        return Err(Error::Numeric(format!(
            "the limits of {} leave no position: {} to {}",
            c.name, c.lower, c.upper
        )));
    }
    let (free, held): (Vec<_>, Vec<_>) = coordinates.iter().cloned().partition(Coordinate::is_free);
    if free.is_empty() {
        return Err(Error::Numeric(match held.first() {
            None => "the robot has no joint that a trajectory could move".into(),
            Some(c) => format!(
                "the limits allow no motion: {} may go from {} to {} at a speed of at most {}",
                c.name, c.lower, c.upper, c.velocity
            ),
        }));
    }
    Ok((free, held.into_iter().map(|c| c.name).collect()))
}

/// The start of the coordinates that can move.
fn checked_start(coordinates: &[Coordinate], start: &[f64]) -> Result<Vec<f64>> {
    if start.len() != coordinates.len() {
        let (expected, found) = (coordinates.len(), start.len());
        return Err(Error::Dimension { what: "start of the motion", expected, found });
    }
    for (c, &x) in coordinates.iter().zip(start) {
        if !(x >= c.lower && x <= c.upper) {
            return Err(Error::Numeric(format!(
                "the start of {} is {x}, outside of its limits with their margin, {} to {}",
                c.name, c.lower, c.upper
            )));
        }
    }
    Ok(coordinates.iter().zip(start).filter(|(c, _)| c.is_free()).map(|(_, x)| *x).collect())
}

/// The mechanism with the joints that cannot move at their only place.
fn held_in_place(mechanism: &Mechanism, coordinates: &[Coordinate], start: Option<&[f64]>) -> Mechanism {
    let mut out = mechanism.clone();
    for (k, c) in coordinates.iter().enumerate().filter(|(_, c)| !c.is_free()) {
        if let Ok(Target::Joint { q, .. }) = super::motion::target(mechanism, &c.name) {
            out.assembly[q] = start.map_or(c.middle(), |s| s[k]);
        }
    }
    out
}

fn model<'m>(subject: &Subject<'m>, like: &Mechanism) -> Result<Model<'m>> {
    let mechanism = subject.mechanism;
    if mechanism.position_names() != like.position_names() {
        return Err(Error::Numeric(format!(
            "the model {} has other joints than {}: robust designs need the same",
            mechanism.name(),
            like.name()
        )));
    }
    let dynamics = InverseDynamics::new(mechanism);
    let columns = Columns::new(mechanism, &dynamics, &subject.regrouping, &subject.terms, &subject.noise)?;
    if let Some(prior) = &subject.prior
        && prior.shape() != (columns.len(), columns.len())
    {
        let (expected, found) = (columns.len(), prior.nrows());
        return Err(Error::Dimension { what: "information from before", expected, found });
    }
    let joint_of =
        |v: usize| mechanism.joints().iter().find(|j| j.follows.is_none() && j.v_range().contains(&v));
    let of = |f: fn(&crate::mechanism::JointDynamics) -> f64| -> Vec<f64> {
        (0..mechanism.nv()).map(|v| joint_of(v).map_or(0.0, |j| f(&j.dynamics))).collect()
    };
    Ok(Model {
        scales: columns.scales(),
        dynamics,
        prior: subject.prior.clone(),
        effort: subject.effort.clone(),
        damping: of(|d| d.damping),
        friction: of(|d| d.friction),
        columns,
        mechanism,
    })
}

/// Refuses limits within which no motion shows all unknowns, and names those it hides.
fn reachable(model: &Model<'_>, free: &[Coordinate], seed: u64) -> Result<()> {
    let columns = &model.columns;
    if columns.is_empty() {
        return Err(Error::Numeric(
            "there is nothing to know: no measured force depends on any parameter".into(),
        ));
    }
    let states = random_states(model.mechanism, 3 * columns.len() + 50, Some(free), seed);
    let mut information = Evaluator::new(&model.dynamics, columns).information(&states)?;
    if let Some(prior) = &model.prior {
        information += prior;
    }
    let seen = Seen::new(&unit_diagonal(&information))?;
    if seen.rank == columns.len() {
        return Ok(());
    }
    let mut names = seen.hidden_names(columns);
    let more = names.len().saturating_sub(8);
    names.truncate(8);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    Err(Error::Numeric(format!(
        "no motion within the limits shows {} of {} unknowns: combinations of {}{more}",
        columns.len() - seen.rank,
        columns.len(),
        names.join(", ")
    )))
}

/// A posture at which no limit is exceeded, as a point of the plan.
fn posture(task: &Task<'_>, seed: u64) -> Result<Vec<f64>> {
    let table = Table::posture(&task.plan)?;
    let mut search = Search::new(task, &table, BETWEEN_SAMPLES);
    let mut x = vec![0.0; task.plan.dimension()];
    let (value, limit) = search.worst(&x)?;
    if value <= 0.0 {
        return Ok(x);
    }
    let limit = limit.map_or_else(String::new, |l| task.name(l));
    if task.plan.fixed_start {
        return Err(Error::Numeric(format!("the start is outside of the limits: {limit} is exceeded")));
    }
    let mut random = SplitMix::new(seed);
    for _ in 0..TRIES {
        for j in 0..task.plan.coordinates.len() {
            let unit = task.plan.unit(j, 0);
            x[j * task.plan.functions()] =
                0.9 * task.plan.coordinates[j].reach() / unit * f64::random(&mut random);
        }
        if search.worst(&x)?.0 <= 0.0 {
            return Ok(x);
        }
    }
    Err(Error::Numeric(format!(
        "the limits allow no posture: none of {TRIES} was found within them; in the middle of all ranges {limit} is exceeded"
    )))
}

/// A random motion about a posture, as large as the limits allow.
fn random_motion(task: &Task<'_>, search: &mut Search<'_>, posture: &[f64], seed: u64) -> Result<Vec<f64>> {
    let m = task.plan.functions();
    let mut random = SplitMix::new(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let mut limit = None;
    for _ in 0..10 {
        let direction: Vec<f64> = (0..posture.len())
            .map(|i| if i % m == 0 { 0.0 } else { f64::random(&mut random) / (1.0 + (i % m) as f64 / 4.0) })
            .collect();
        let mut size = 1.0;
        while size > 1e-4 {
            let x: Vec<f64> = posture.iter().zip(&direction).map(|(p, d)| p + size * d).collect();
            let (value, worst) = search.worst(&x)?;
            if value <= 0.0 {
                if crate::optimize::sqp::Problem::objective(search, &x, None).is_finite() {
                    return Ok(x);
                }
                break;
            }
            limit = worst;
            size *= 0.8;
        }
    }
    let limit = limit.map_or_else(|| "too few functions of time".into(), |l| task.name(l));
    Err(Error::Numeric(format!(
        "no motion was found that stays within the limits and shows all unknowns: {limit}"
    )))
}

/// A sequence of movements, each chosen for what it adds, as a point of the plan.
fn sequence(
    task: &Task<'_>,
    movement: &Task<'_>,
    table: &Table,
    intervals: usize,
    posture: &[f64],
    seed: u64,
) -> Result<Vec<f64>> {
    let search = Search::new(movement, table, BETWEEN_SAMPLES);
    let length = movement.plan.duration();
    let (plan, m) = (&task.plan, task.plan.functions());
    let start: Vec<f64> =
        (0..plan.coordinates.len()).map(|j| plan.middle[j] + plan.unit(j, 0) * posture[j * m]).collect();
    let postures = Sequence::new(movement, search, length, seed).postures(&start, intervals)?;
    Ok(plan.through(&postures))
}

/// The motion, made smaller about its start until it is within all limits at every sample of the check.
fn within_limits(task: &Task<'_>, checker: &mut Search<'_>, x: &[f64]) -> Result<Vec<f64>> {
    let m = task.plan.functions();
    let shrunk = |size: f64| -> Vec<f64> {
        x.iter().enumerate().map(|(i, x)| if i % m == 0 { *x } else { size * x }).collect()
    };
    let mut spare = 0.0;
    while spare < 1.0 {
        let x = shrunk(1.0 - spare);
        if checker.worst(&x)?.0 <= 0.0 {
            return Ok(x);
        }
        spare = if spare == 0.0 { 1e-3 } else { 1.5 * spare };
    }
    Err(Error::Numeric("the motion does not stay within the limits between its samples".into()))
}

fn usage(task: &Task<'_>, checker: &mut Search<'_>, x: &[f64]) -> Result<Vec<Usage>> {
    let mut all: Vec<(f64, Usage)> = checker
        .usage(x)?
        .into_iter()
        .map(|(limit, value)| {
            let used = match limit {
                Limit::Room(_) => -value * super::search::METRES,
                _ => 1.0 + value,
            };
            (value, Usage { limit: task.name(limit), used })
        })
        .collect();
    all.sort_by(|a, b| b.0.total_cmp(&a.0));
    Ok(all.into_iter().map(|(_, u)| u).collect())
}
