//! Design of the most informative motion within limits.

use rayon::prelude::{IndexedParallelIterator, IntoParallelIterator, ParallelIterator};

use super::certificate::Certificate;
use super::clearance::CollisionModel;
use super::columns::Columns;
use super::design_options::{Design, DesignOptions, Family, Progress, Subject};
use super::greedy::one_movement;
use super::information::Evaluator;
use super::limits::{checked_start, held_in_place, split};
use super::loop_design::{certify_loops, design_loops};
use super::motion_search::{
    BETWEEN_SAMPLES, Watched, posture, random_motion, settings, usage, within_limits,
};
use super::plan::{Coordinate, Plan, Table};
use super::search::{Model, Search, Task};
use super::size::check_searches;
use super::starts::{reachable, sequence};
use super::states::States;
use super::trajectory::Trajectory;
use crate::dynamics::InverseDynamics;
use crate::mechanism::Mechanism;
use crate::optimize::sqp::{Minimizer, SqpResult};
use crate::{Error, Result};

/// Number of steps after which the better half of the searches is selected. Searches that continue end at similar criteria.
const TRIAL_STEPS: usize = 30;

/// Designs the motion that minimizes the criterion within all limits.
///
/// The first subject is the robot; the others are possible variants of it with the same joints. Searches run in parallel from
/// random motions. `watch` receives each step, is asked again within long steps, and stops all searches by returning `false`; the best
/// motion so far is kept. The result is the same for any number of threads unless `watch` stops the search.
pub fn design(
    subjects: &[Subject<'_>],
    coordinates: &[Coordinate],
    collisions: &CollisionModel,
    options: &DesignOptions,
    watch: &(dyn Fn(Progress) -> bool + Sync),
) -> Result<Design> {
    let Some(first) = subjects.first() else {
        return Err(Error::InvalidOption("there is no robot to design a motion for".into()));
    };
    let mechanism = first.mechanism;
    if !mechanism.loops().is_empty() {
        if subjects.len() > 1 {
            return Err(Error::NotApplicable(
                "the mechanism has loops: designs for several models at once are for open chains".into(),
            ));
        }
        return design_loops(first, coordinates, collisions, options, watch);
    }
    let (free, held) = split(coordinates)?;
    let start = options.start.as_ref().map(|s| checked_start(coordinates, s)).transpose()?;
    let mechanism = held_in_place(mechanism, coordinates, options.start.as_deref());
    let mut models = subjects.iter().map(|s| model(s, &mechanism)).collect::<Result<Vec<Model<'_>>>>()?;
    models[0].mechanism = &mechanism;
    reachable(&models[0], &free, options.seed)?;
    let basis = options.family.basis(options.duration);
    let plan = Plan::new(&mechanism, free, basis, options.duration, start.as_deref())?;
    let task = Task::new(models, plan, collisions.clone(), options.criterion, options.robust);
    let products = task.models.iter().map(|m| m.columns.products()).sum();
    let rates = [options.rate, options.check_rate];
    check_searches(&task.plan, products, task.limits.len(), options.starts.max(1), rates)?;
    let (rate, weight) = task.plan.search_rate(options.rate)?;
    let table = task.plan.table(rate)?;
    let start = Table::posture(&task.plan)?;
    let posture = posture(&mut Search::new(&task, &start, BETWEEN_SAMPLES, 1.0), options.seed)?;
    let movement = match options.family {
        Family::PointToPoint { intervals, profile } => {
            let movement = one_movement(&task, options.duration / intervals.max(1) as f64, profile)?;
            let table = movement.plan.table(rate)?;
            Some((movement, table))
        }
        _ => None,
    };
    let watched = Watched::new(watch);
    let starts = options.starts.max(1);
    let mut begun: Vec<_> = (0..starts)
        .into_par_iter()
        // The first search always needs its motion; after a stop request, the others do not.
        .filter(|k| *k == 0 || !watched.is_ended())
        .map(|k| {
            let mut search = Search::new(&task, &table, BETWEEN_SAMPLES, weight);
            if k > 0 {
                search.stop_with(&watched);
            }
            // Different seeds must not share starts.
            let seed = options.seed.wrapping_add((k as u64) << 32);
            let mut begin = || -> Result<Minimizer> {
                let x = match (options.family, &movement) {
                    (Family::PointToPoint { intervals, .. }, Some((movement, table))) => {
                        sequence(&task, movement, table, intervals, &posture, seed)?
                    }
                    _ => random_motion(&mut search, &posture, seed)?,
                };
                Minimizer::new(&mut search, &x, settings(options.iterations))
            };
            let mut minimizer = match begin() {
                // A stop is no failure of this start.
                Err(_) if k > 0 && watched.is_ended() => return Ok(None),
                begun => begun?,
            };
            search.stop_with(&watched);
            let mut observer = watched.observer();
            minimizer.run(&mut search, TRIAL_STEPS, &mut observer);
            Ok(Some((search, minimizer, observer)))
        })
        .filter_map(Result::transpose)
        .collect::<Result<_>>()?;
    begun.sort_by(|a, b| a.1.best().objective.total_cmp(&b.1.best().objective));
    let continued = begun.len().div_ceil(2);
    let mut searches: Vec<SqpResult> = begun
        .into_par_iter()
        .enumerate()
        .map(|(rank, (mut search, mut minimizer, mut observer))| {
            if rank < continued {
                minimizer.run(&mut search, usize::MAX, &mut observer);
            }
            minimizer.into_best()
        })
        .collect();
    searches.sort_by(|a, b| a.objective.total_cmp(&b.objective));
    let reached = searches.iter().map(|s| s.objective).collect();
    let check = task.plan.table(options.check_rate)?;
    let mut checker = Search::new(&task, &check, 0.0, 1.0);
    let converged = searches[0].status.is_converged();
    let x = within_limits(&mut checker, &searches[0].x)?;
    let table = task.plan.table(options.rate)?;
    let mut search = Search::new(&task, &table, 0.0, 1.0);
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
        usage: usage(&mut checker, &x)?,
        held,
        absorbed: task.models[0].columns.absorbed.clone(),
        converged,
    })
}

/// Computes the certificate of a given trajectory.
pub fn certify(subject: &Subject<'_>, trajectory: &Trajectory, rate: f64) -> Result<Certificate> {
    if !subject.mechanism.loops().is_empty() {
        return certify_loops(subject, trajectory, rate);
    }
    let model = model(subject, subject.mechanism)?;
    let [q, v, a] = super::Motion::new(subject.mechanism, trajectory)?.sample(rate)?;
    let states = States { count: trajectory.samples(rate)?, q, v, a };
    let mut information = Evaluator::new(&model.dynamics, &model.columns).information(&states)?;
    if let Some(prior) = &model.prior {
        information += prior;
    }
    Certificate::new(&model.columns, &information)
}

fn model<'m>(subject: &Subject<'m>, like: &Mechanism) -> Result<Model<'m>> {
    let mechanism = subject.mechanism;
    if mechanism.position_names() != like.position_names() {
        return Err(Error::Incompatible(format!(
            "the model {} has other joints than {}: robust designs need models with the same joints",
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
        return Err(Error::Dimension { what: "prior information", expected, found });
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
