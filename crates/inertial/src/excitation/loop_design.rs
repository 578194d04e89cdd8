//! Design of motions for mechanisms with loops.

use nalgebra::DMatrix;
use rayon::prelude::{IntoParallelIterator, ParallelIterator};

use super::certificate::Certificate;
use super::clearance::CollisionModel;
use super::columns::{Columns, JointColumn};
use super::design_options::{Design, DesignOptions, Progress, Subject};
use super::limits::{checked_start, split};
use super::loop_search::LoopSearch;
use super::loop_task::{Evaluation, Goal, LimitedJoint, LoopMemory, LoopTask, place};
use super::motion::{Target, target};
use super::motion_search::{
    BETWEEN_SAMPLES, Watched, posture, random_motion, settings, usage, within_limits,
};
use super::plan::{Coordinate, Plan, Table};
use super::size::check_searches;
use super::trajectory::Trajectory;
use crate::dynamics::ClosedMechanism;
use crate::linalg::{Number, SplitMix};
use crate::mechanism::Base;
use crate::optimize::sqp::{Problem as _, SqpResult, minimize};
use crate::{Error, Result};

/// Number of steps from the assembled configuration to each end of the range of a joint.
const PROBES: usize = 100;

/// Largest speed of another joint, relative to its limit, while a joint moves at its speed limit. It is unbounded near a singular
/// configuration.
const FASTEST: f64 = 10.0;

/// Size of the random motions that detect redundant terms, relative to all ranges.
const SMALL: f64 = 0.2;

/// Designs the motion of the independent joints that minimizes the criterion within the limits of all joints.
pub(super) fn design_loops(
    subject: &Subject<'_>,
    coordinates: &[Coordinate],
    collisions: &CollisionModel,
    options: &DesignOptions,
    watch: &(dyn Fn(Progress) -> bool + Sync),
) -> Result<Design> {
    let closed = ClosedMechanism::new(subject.mechanism)?;
    let names = closed.independent_names();
    let own = |c: &&Coordinate| names.contains(&c.name);
    let moved: Vec<Coordinate> = coordinates.iter().filter(own).cloned().collect();
    let start = options.start.as_ref().map(|s| checked_start(&moved, s)).transpose()?;
    let (free, held) = split(&moved)?;
    let free = free.into_iter().map(|c| within_reach(&closed, coordinates, c)).collect::<Result<Vec<_>>>()?;
    let narrowed = |c: &Coordinate| free.iter().find(|own| own.name == c.name).unwrap_or(c).clone();
    let coordinates: Vec<Coordinate> = coordinates.iter().map(narrowed).collect();
    let task = task(subject, &closed, &coordinates, free, collisions, options, start.as_deref())?;
    let rates = [options.rate, options.check_rate];
    check_searches(&task.plan, task.columns.products(), task.limits.len(), options.starts.max(1), rates)?;
    let (rate, weight) = task.plan.search_rate(options.rate)?;
    let table = task.plan.table(rate)?;
    let start = Table::posture(&task.plan)?;
    let posture = posture(&mut LoopSearch::new(&task, &start, BETWEEN_SAMPLES, 1.0), options.seed)?;
    let watched = Watched::new(watch);
    let results: Vec<Result<SqpResult>> = (0..options.starts.max(1))
        .into_par_iter()
        // The first search always needs its motion; after a stop request, the others do not.
        .filter(|k| *k == 0 || !watched.is_stopped())
        .map(|k| {
            let mut search = LoopSearch::new(&task, &table, BETWEEN_SAMPLES, weight);
            let x = random_motion(&mut search, &posture, options.seed.wrapping_add(k as u64))?;
            minimize(&mut search, &x, &settings(options.iterations), &mut watched.observer())
        })
        .collect();
    let mut searches = results.into_iter().collect::<Result<Vec<_>>>()?;
    let reached = searches.iter().map(|s| s.objective).collect();
    searches.sort_by(|a, b| a.objective.total_cmp(&b.objective));
    let check = task.plan.table(options.check_rate)?;
    let mut checker = LoopSearch::new(&task, &check, 0.0, 1.0);
    let x = within_limits(&mut checker, &searches[0].x)?;
    let usage = usage(&mut checker, &x)?;
    let table = task.plan.table(options.rate)?;
    let mut search = LoopSearch::new(&task, &table, 0.0, 1.0);
    let criterion = search.objective(&x, None);
    Ok(Design {
        trajectory: task.plan.trajectory(&x)?,
        criterion,
        searches: reached,
        certificate: Certificate::new(&task.columns, &search.here.information)?,
        usage,
        held,
        absorbed: task.columns.absorbed.clone(),
        converged: searches[0].status.is_converged(),
    })
}

/// Narrows the range of an independent joint to the positions that the loops permit while the other independent joints rest: up to
/// the limits of the dependent joints, or to a singular configuration.
fn within_reach(
    closed: &ClosedMechanism<'_>,
    coordinates: &[Coordinate],
    c: Coordinate,
) -> Result<Coordinate> {
    let mechanism = closed.mechanism();
    let [own, rate] = place(closed, &c.name)?;
    let followers: Vec<(usize, usize, &Coordinate)> = coordinates
        .iter()
        .filter_map(|c| match target(mechanism, &c.name) {
            Ok(Target::Joint { q, v }) => Some((q, v, c)),
            _ => None,
        })
        .collect();
    let here = closed.assembled()[closed.independent_positions()[own]];
    let mut workspace = closed.workspace();
    let mut farthest = |end: f64| {
        let mut q = closed.assembled().to_vec();
        let mut positions: Vec<f64> = closed.independent_positions().iter().map(|&k| q[k]).collect();
        let mut reached = here;
        let step = (end - here).clamp(-std::f64::consts::PI, std::f64::consts::PI) / PROBES as f64;
        for k in 1..=PROBES {
            positions[own] = here + step * k as f64;
            let closes = closed.move_to(&mut workspace, &mut q, &positions).is_ok();
            let map = if closes { closed.velocity_map(&mut workspace, &q).ok() } else { None };
            let Some(map) = map else { break };
            let inside = followers.iter().all(|&(k, v, other)| {
                let speed = map[(v, rate)].abs() * c.velocity;
                q[k] >= other.lower && q[k] <= other.upper && speed <= FASTEST * other.velocity
            });
            if !inside {
                break;
            }
            reached = positions[own];
        }
        reached
    };
    let (lower, upper) = (farthest(c.lower.min(here)), farthest(c.upper.max(here)));
    Ok(Coordinate { lower, upper, ..c })
}

/// Computes the certificate of a given trajectory of a mechanism with loops.
pub(super) fn certify_loops(
    subject: &Subject<'_>,
    trajectory: &Trajectory,
    rate: f64,
) -> Result<Certificate> {
    let closed = ClosedMechanism::new(subject.mechanism)?;
    let (count, n) = (trajectory.samples(rate)?, trajectory.joints().len());
    let coordinates: Vec<Coordinate> =
        trajectory.joints().iter().map(|name| Coordinate::free(name)).collect();
    let options = DesignOptions { duration: trajectory.duration(), ..DesignOptions::default() };
    let task = task(subject, &closed, &[], coordinates, &CollisionModel::default(), &options, None)?;
    let mut followed = Vec::with_capacity(count * n);
    let [mut q, mut v, mut a] = [vec![0.0; n], vec![0.0; n], vec![0.0; n]];
    for i in 0..count {
        trajectory.evaluate(i as f64 / rate, &mut q, &mut v, &mut a);
        followed.extend((0..n).map(|j| [q[j], v[j], a[j]]));
    }
    let mut found = Evaluation::default();
    let memory = &mut LoopMemory::new(&closed, &task.columns);
    task.evaluate(memory, &followed, None, &Goal::Information, &mut found)?;
    if let Some(prior) = &task.prior {
        found.information += prior;
    }
    Certificate::new(&task.columns, &found.information)
}

/// Creates the constant part of a search that moves the `free` coordinates.
fn task<'m>(
    subject: &Subject<'_>,
    closed: &'m ClosedMechanism<'m>,
    coordinates: &[Coordinate],
    free: Vec<Coordinate>,
    collisions: &CollisionModel,
    options: &DesignOptions,
    start: Option<&[f64]>,
) -> Result<LoopTask<'m>> {
    let mechanism = closed.mechanism();
    if mechanism.base() == Base::Floating {
        return Err(Error::NotApplicable("designs for mechanisms with loops need a fixed base".into()));
    }
    for (what, found) in [("noise", subject.noise.len()), ("highest forces", subject.effort.len())] {
        if found != mechanism.nv() {
            return Err(Error::Dimension { what, expected: mechanism.nv(), found });
        }
    }
    let row = |v: usize| closed.independent().iter().position(|&k| k == v);
    let terms: Vec<(usize, JointColumn)> =
        subject.terms.iter().filter_map(|&(v, term)| Some((row(v)?, term))).collect();
    let of_rows = |all: &[f64]| -> Vec<f64> { closed.independent().iter().map(|&v| all[v]).collect() };
    let noise = of_rows(&subject.noise);
    let mut plan =
        Plan::new(mechanism, free, options.family.basis(options.duration), options.duration, start)?;
    if start.is_none() {
        // The middle of all ranges need not close the loops.
        let here = |c: &Coordinate| {
            place(closed, &c.name).map(|[k, _]| closed.assembled()[closed.independent_positions()[k]])
        };
        let place = |c: &Coordinate| Ok(here(c)?.clamp(c.lower, c.upper));
        plan.middle = plan.coordinates.iter().map(place).collect::<Result<_>>()?;
    }
    let places = plan.coordinates.iter().map(|c| place(closed, &c.name)).collect::<Result<Vec<_>>>()?;
    let columns = Columns::closed(closed, &subject.regrouping, &terms, &noise, |columns| {
        Ok(random_information(closed, columns, &plan, &places))
    })?;
    if let Some(prior) = subject.prior.as_ref().filter(|p| p.shape() != (columns.len(), columns.len())) {
        let (expected, found) = (columns.len(), prior.nrows());
        return Err(Error::Dimension { what: "prior information", expected, found });
    }
    let limited =
        coordinates.iter().filter(|c| c.is_free()).filter_map(|c| match target(mechanism, &c.name) {
            Ok(Target::Joint { q, v }) => Some(LimitedJoint { limits: c.clone(), q, v }),
            _ => None,
        });
    let (joints, effort) = (limited.collect(), of_rows(&subject.effort));
    let mut out =
        LoopTask::new(closed, columns, plan, joints, effort, collisions.clone(), options.criterion)?;
    out.prior.clone_from(&subject.prior);
    Ok(out)
}

/// Computes the information of random states near the assembled configuration.
fn random_information(
    closed: &ClosedMechanism<'_>,
    columns: &Columns,
    plan: &Plan,
    places: &[[usize; 2]],
) -> DMatrix<f64> {
    let mut random = SplitMix::new(1);
    let mut next = || f64::random(&mut random);
    let mut out = DMatrix::zeros(columns.len(), columns.len());
    let (mut memory, mut found) = (LoopMemory::new(closed, columns), 0);
    // Some states near the assembled configuration may not be reachable.
    for _ in 0..4 * (3 * columns.len() + 20) {
        let state: Vec<[f64; 3]> = plan
            .coordinates
            .iter()
            .zip(&plan.middle)
            .map(|(c, middle)| [middle + SMALL * c.reach() * next(), 3.0 * next(), 10.0 * next()])
            .collect();
        if let Ok(one) = memory.information(closed, columns, places, &state) {
            out += one;
            found += 1;
        }
        if found == 3 * columns.len() + 20 {
            break;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::excitation::{Criterion, DefaultLimits, Family, coordinates};
    use crate::identifiability::{AnalyzeOptions, analyze};
    use crate::mechanism::builtin;
    use crate::optimize::sqp::ConstraintRows;

    /// Compares the gradients of criterion and limits with central differences with respect to the variables.
    #[test]
    fn gradients_are_those_of_differences() {
        for name in ["four-bar", "2prs-1psr"] {
            let mechanism =
                builtin::get(name).unwrap().build(&crate::mechanism::BuildOptions::default()).unwrap();
            let nv = mechanism.nv();
            let subject = Subject {
                mechanism: &mechanism,
                regrouping: analyze(&mechanism, &AnalyzeOptions::default())
                    .unwrap()
                    .regrouping
                    .listed()
                    .unwrap(),
                terms: (0..nv).map(|v| (v, JointColumn::Viscous)).collect(),
                noise: vec![0.1; nv],
                effort: vec![50.0; nv],
                prior: None,
            };
            let all = coordinates(&mechanism, &DefaultLimits::default());
            let closed = ClosedMechanism::new(&mechanism).unwrap();
            let names = closed.independent_names();
            let own = all.iter().filter(|c| names.contains(&c.name)).cloned();
            let free = own.map(|c| within_reach(&closed, &all, c).unwrap()).collect();
            let options = DesignOptions {
                family: Family::Fourier { harmonics: 3 },
                duration: 5.0,
                criterion: Criterion::A,
                ..DesignOptions::default()
            };
            let mut task =
                task(&subject, &closed, &all, free, &CollisionModel::default(), &options, None).unwrap();
            // Large enough to keep rounding errors below the differences of the smallest eigenvalue.
            task.prior = Some(DMatrix::identity(task.columns.len(), task.columns.len()));
            let table = task.plan.table(12.0).unwrap();
            let mut search = LoopSearch::new(&task, &table, 0.0, 1.0);
            let start = Table::posture(&task.plan).unwrap();
            let posture = posture(&mut LoopSearch::new(&task, &start, BETWEEN_SAMPLES, 1.0), 1).unwrap();
            let x = random_motion(&mut search, &posture, 1).unwrap();
            let mut gradient = vec![0.0; x.len()];
            search.objective(&x, Some(&mut gradient));
            let mut rows = ConstraintRows::default();
            search.constraints(&x, 1.0, &mut rows);
            assert!(!rows.is_empty());
            let moved = |k: usize, by: f64| {
                let mut x = x.clone();
                x[k] += by;
                x
            };
            let h = 1e-5;
            let largest = gradient.iter().fold(0.0, |m: f64, g| m.max(g.abs()));
            for k in 0..x.len() {
                let at = |search: &mut LoopSearch<'_>, by: f64| search.objective(&moved(k, by), None);
                let expected = (at(&mut search, h) - at(&mut search, -h)) / (2.0 * h);
                // Forward differences with a step of 1e-6, and the curvature over 1e-5.
                assert!(
                    (gradient[k] - expected).abs() < 1e-4 * largest,
                    "{name} {k}: {} for {expected}",
                    gradient[k]
                );
            }
        }
    }
}
