//! Starting points of searches: states within the limits, and sequences of movements.

use super::certificate::Excitation;
use super::columns::Columns;
use super::greedy::Sequence;
use super::information::Evaluator;
use super::motion_search::BETWEEN_SAMPLES;
use super::plan::{Coordinate, Table};
use super::random_states::random_states;
use super::scaling::unit_diagonal;
use super::search::{Model, Search, Task};
use crate::{Error, Result};

/// Checks that some motion within the limits excites all unknowns; the error names the others.
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
    let excitation = Excitation::new(&unit_diagonal(&information))?;
    if excitation.rank == columns.len() {
        return Ok(());
    }
    Err(not_excited(columns, &excitation, "motion"))
}

/// Returns the error about unknowns that no motion (of some kind) within the limits excites.
pub(super) fn not_excited(columns: &Columns, excitation: &Excitation, motion: &str) -> Error {
    let mut names = excitation.unexcited_names(columns);
    let more = names.len().saturating_sub(8);
    names.truncate(8);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    Error::Infeasible(format!(
        "no {motion} within the limits excites {} of {} unknowns: combinations of {}{more}",
        columns.len() - excitation.rank,
        columns.len(),
        names.join(", ")
    ))
}

/// Builds a sequence of movements, each selected by its gain of information, as a point of the plan.
pub(super) fn sequence(
    task: &Task<'_>,
    movement: &Task<'_>,
    table: &Table,
    intervals: usize,
    posture: &[f64],
    seed: u64,
) -> Result<Vec<f64>> {
    let search = Search::new(movement, table, BETWEEN_SAMPLES, 1.0);
    let length = movement.plan.duration();
    let (plan, m) = (&task.plan, task.plan.functions());
    let start: Vec<f64> =
        (0..plan.coordinates.len()).map(|j| plan.middle[j] + plan.unit(j, 0) * posture[j * m]).collect();
    let postures = Sequence::new(movement, search, length, seed).postures(&start, intervals)?;
    Ok(plan.through(&postures))
}
