//! Starting points of searches: states, postures and motions within the limits.

use super::certificate::Seen;
use super::columns::Columns;
use super::greedy::Sequence;
use super::information::Evaluator;
use super::plan::{Coordinate, Table};
use super::random_states::random_states;
use super::scaling::unit_diagonal;
use super::search::{Model, Search, Task};
use crate::linalg::{Number, SplitMix};
use crate::{Error, Result};

/// Part of each limit that the search keeps free between its samples; the final check decides.
pub(super) const BETWEEN_SAMPLES: f64 = 2e-3;

/// Postures and motions that are tried before limits are said to allow none.
pub(super) const TRIES: usize = 300;

/// Refuses limits within which no motion shows all unknowns, and names those it hides.
pub(super) fn reachable(model: &Model<'_>, free: &[Coordinate], seed: u64) -> Result<()> {
    let columns = &model.columns;
    if columns.is_empty() {
        return Err(Error::Unobservable(
            "there are no unknowns: no measured force depends on any parameter".into(),
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
    Err(hidden(columns, &seen, "motion"))
}

/// Returns the error about unknowns that no motion (of some kind) within the limits excites.
pub(super) fn hidden(columns: &Columns, seen: &Seen, motion: &str) -> Error {
    let mut names = seen.hidden_names(columns);
    let more = names.len().saturating_sub(8);
    names.truncate(8);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    Error::Infeasible(format!(
        "no {motion} within the limits shows {} of {} unknowns: combinations of {}{more}",
        columns.len() - seen.rank,
        columns.len(),
        names.join(", ")
    ))
}

/// A posture at which no limit is exceeded, as a point of the plan.
pub(super) fn posture(task: &Task<'_>, seed: u64) -> Result<Vec<f64>> {
    let table = Table::posture(&task.plan)?;
    let mut search = Search::new(task, &table, BETWEEN_SAMPLES);
    let mut x = vec![0.0; task.plan.dimension()];
    let (value, limit) = search.worst(&x)?;
    if value <= 0.0 {
        return Ok(x);
    }
    let limit = limit.map_or_else(String::new, |l| task.name(l));
    if task.plan.fixed_start {
        return Err(Error::Infeasible(format!("the start is outside of the limits: {limit} is exceeded")));
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
    Err(Error::Infeasible(format!(
        "the limits allow no posture: none of {TRIES} was found within them; in the middle of all ranges {limit} is exceeded"
    )))
}

/// A random motion about a posture, as large as the limits allow.
pub(super) fn random_motion(
    task: &Task<'_>,
    search: &mut Search<'_>,
    posture: &[f64],
    seed: u64,
) -> Result<Vec<f64>> {
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
    Err(Error::Infeasible(format!(
        "no motion was found that stays within the limits and shows all unknowns: {limit}"
    )))
}

/// A sequence of movements, each chosen for what it adds, as a point of the plan.
pub(super) fn sequence(
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
