//! Greedy selection and exchange of movement sequences.
//!
//! Starting at the end of the last movement, each next one is the candidate whose information improves the criterion most. When
//! the sequence is complete, each waypoint in turn is exchanged for a better one, as long as this improves the criterion (exchange
//! algorithm of Fedorov, on waypoints because neighbouring movements share them).

use nalgebra::DMatrix;

use super::basis::{Basis, Profile};
use super::motion_search::MotionSearch as _;
use super::plan::Plan;
use super::search::{Search, Task};
use crate::Result;
use crate::linalg::{Number, SplitMix};

/// Number of candidates for each movement and for each exchange.
const CANDIDATES: usize = 24;

/// Largest number of exchange rounds.
const ROUNDS: usize = 3;

/// Number of draws of a candidate after which no candidate within the limits is assumed to exist.
const DRAWS: usize = 20;

/// Creates a task whose motion is a single movement of the given length, for the same robot and the same limits.
pub(super) fn one_movement<'m>(task: &Task<'m>, length: f64, profile: Profile) -> Result<Task<'m>> {
    let basis = Basis::PointToPoint { knots: vec![0.0, length], profile };
    let plan = Plan::new(task.models[0].mechanism, task.plan.coordinates.clone(), basis, length, None)?;
    Ok(Task::new(task.models.clone(), plan, task.collisions.clone(), task.criterion, task.robust))
}

/// Movement from one posture to another.
struct Movement {
    to: Vec<f64>,
    information: Vec<DMatrix<f64>>,
}

/// Builder of a sequence within the limits.
pub(super) struct Sequence<'s, 't> {
    movement: &'s Task<'t>,
    search: Search<'s>,
    length: f64,
    random: SplitMix,
    /// Regularization of the information while it is still singular.
    ridge: Vec<DMatrix<f64>>,
}

impl<'s, 't> Sequence<'s, 't> {
    /// Creates the builder. `search` belongs to `movement`, the task of one movement of the given length.
    pub fn new(movement: &'s Task<'t>, search: Search<'s>, length: f64, seed: u64) -> Self {
        let ridge =
            movement.models.iter().map(|m| DMatrix::zeros(m.columns.len(), m.columns.len())).collect();
        Self { movement, search, length, random: SplitMix::new(seed), ridge }
    }

    /// Returns the postures of `count` movements, starting at `start`.
    pub fn postures(&mut self, start: &[f64], count: usize) -> Result<Vec<Vec<f64>>> {
        let Some(first) = self.candidate(start, None)? else { return Ok(vec![start.to_vec(); count + 1]) };
        // A millionth of the information of one movement about each unknown, or of the best known one for unknowns that are not
        // excited.
        for (ridge, information) in self.ridge.iter_mut().zip(&first.information) {
            let least = 1e-12 * information.diagonal().max();
            *ridge = DMatrix::from_diagonal(&information.diagonal().map(|d| 1e-6 * d + least));
        }
        let mut chosen: Vec<Movement> = Vec::with_capacity(count);
        for _ in 0..count {
            let from = chosen.last().map_or(start.to_vec(), |m| m.to.clone());
            let mut best: Option<(f64, Movement)> = None;
            for _ in 0..CANDIDATES {
                let Some(next) = self.candidate(&from, None)? else { break };
                let value = self.value(chosen.iter().chain([&next]))?;
                if best.as_ref().is_none_or(|b| value < b.0) {
                    best = Some((value, next));
                }
            }
            // If no candidate is within the limits, the robot rests for one interval.
            let rest = || Movement {
                to: from.clone(),
                information: self.ridge.iter().map(|r| DMatrix::zeros(r.nrows(), r.ncols())).collect(),
            };
            chosen.push(best.map_or_else(rest, |b| b.1));
        }
        self.exchange(start, &mut chosen)?;
        Ok(std::iter::once(start.to_vec()).chain(chosen.into_iter().map(|m| m.to)).collect())
    }

    /// Replaces waypoints by better ones.
    fn exchange(&mut self, start: &[f64], chosen: &mut [Movement]) -> Result<()> {
        let mut value = self.value(chosen.iter())?;
        for _ in 0..ROUNDS {
            let before = value;
            for k in 0..chosen.len() {
                for _ in 0..CANDIDATES / 4 {
                    let from = if k == 0 { start.to_vec() } else { chosen[k - 1].to.clone() };
                    let Some(next) = self.candidate(&from, None)? else { break };
                    let onward = match chosen.get(k + 1) {
                        Some(after) => self.candidate(&next.to, Some(&after.to.clone()))?.map(Some),
                        None => Some(None),
                    };
                    let Some(onward) = onward else { continue };
                    let old = std::mem::replace(&mut chosen[k], next);
                    let old_onward = onward.map(|o| std::mem::replace(&mut chosen[k + 1], o));
                    let found = self.value(chosen.iter())?;
                    if found < value {
                        value = found;
                        continue;
                    }
                    chosen[k] = old;
                    if let Some(old) = old_onward {
                        chosen[k + 1] = old;
                    }
                }
            }
            // An improvement by a thousandth of a standard error does not justify another round.
            if before - value < 1e-3 {
                break;
            }
        }
        Ok(())
    }

    /// Returns a movement within the limits, to the given posture or to a random one.
    fn candidate(&mut self, from: &[f64], to: Option<&[f64]>) -> Result<Option<Movement>> {
        let plan = &self.movement.plan;
        for _ in 0..if to.is_some() { 1 } else { DRAWS } {
            let to: Vec<f64> = if let Some(to) = to {
                to.to_vec()
            } else {
                let drawn = from.iter().zip(&plan.coordinates).map(|(x, c)| {
                    // The peak speed of a cycloid is twice the mean speed; that of a quintic is a little lower.
                    let most = (0.5 * c.velocity * self.length)
                        .min(c.acceleration * self.length.powi(2) / std::f64::consts::TAU)
                        .min(c.reach());
                    (x + 0.99 * most * f64::random(&mut self.random)).clamp(c.lower, c.upper)
                });
                drawn.collect()
            };
            let x = plan.through(&[from.to_vec(), to.clone()]);
            if self.search.largest(&x) <= 0.0 {
                return Ok(Some(Movement { to, information: self.search.information(&x)? }));
            }
        }
        Ok(None)
    }

    /// Evaluates the criterion of several movements together.
    fn value<'a>(&self, movements: impl Iterator<Item = &'a Movement>) -> Result<f64> {
        let mut sums = self.ridge.clone();
        for movement in movements {
            sums.iter_mut().zip(&movement.information).for_each(|(sum, i)| *sum += i);
        }
        let mut total = 0.0;
        for (sum, model) in sums.iter_mut().zip(&self.movement.models) {
            if let Some(prior) = &model.prior {
                *sum += prior;
            }
            // The speeds of all candidates are approximately equal and are ignored.
            total += self.movement.criterion.evaluate(sum, &model.scales, (1.0, 0))?.value;
        }
        Ok(total)
    }
}
