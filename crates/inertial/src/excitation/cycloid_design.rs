//! Published design of a free flight: seeds of cycloids over a selection of direction combinations (paper 002, section V).

use rayon::iter::{IntoParallelIterator, ParallelIterator};

use super::certificate::Certificate;
use super::clearance::CollisionModel;
use super::columns::Columns;
use super::cycloid::{SeededFlight, Seeds, direction_combinations};
use super::design_options::{Design, Progress};
use super::flight::{flight_coordinates, moved};
use super::flight_design::{CHECK_RATE, usage};
use super::flight_limits::FlightLimits;
use super::limits::DefaultLimits;
use super::motion_search::Watched;
use super::pruning::{PruneOptions, PruningRule, prune, select};
use crate::identifiability::Regrouping;
use crate::linalg::SplitMix;
use crate::mechanism::Mechanism;
use crate::{Error, Result};

/// Number of steps of the search over all combinations, before the selection.
const FIRST_STEPS: usize = 20;

/// Largest number of combinations of which all are evaluated.
const MOST_COMBINATIONS: usize = 4096;

/// Relative excess of a limit that is accepted for given seeds, because limits are written with three or four digits.
pub const ROUNDED: f64 = 5e-4;

/// Selection of direction combinations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Combinations {
    /// First combinations in binary order.
    First(usize),
    /// Most informative combinations ([`select`]).
    Best(usize),
    /// Combinations that algorithm 1 keeps, in one of three interpretations.
    Pruned(PruningRule),
}

/// Options of [`design_cycloids`].
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct CycloidOptions {
    /// Length of an interval (s).
    pub interval: f64,
    /// Samples per second.
    pub rate: f64,
    /// Standard deviations of the rates, one per velocity coordinate: for the certificate and [`Combinations::Best`].
    pub noise: Vec<f64>,
    /// Weight of the speeds in the cost (`w` of eq. 32).
    pub weight: f64,
    /// Selection of intervals.
    pub combinations: Combinations,
    /// Start and range of each joint; found by a search if absent.
    pub seeds: Option<[Vec<f64>; 2]>,
    /// Margin to the limits of the robot description, and defaults for missing limits. Given seeds have no margin and may exceed
    /// them.
    pub limits: DefaultLimits,
    /// Obstacles around the robot, in the frame of its base.
    pub collisions: CollisionModel,
    /// Number of searches from different random starts.
    pub starts: usize,
    /// Number of steps of each search.
    pub steps: usize,
    /// Seed of the random starts.
    pub seed: u64,
}

crate::with_changes!(CycloidOptions);

impl CycloidOptions {
    /// Creates options for rates with these standard deviations: the first 20 combinations, each for one second at 100 samples per
    /// second, and four searches until they converge.
    pub fn new(noise: Vec<f64>) -> Self {
        Self {
            interval: 1.0,
            rate: 100.0,
            noise,
            weight: 1.0,
            combinations: Combinations::First(20),
            seeds: None,
            limits: DefaultLimits::default(),
            collisions: CollisionModel::default(),
            starts: 4,
            steps: usize::MAX,
            seed: 1,
        }
    }
}

/// Designs cycloids from seeds for the base parameters of `regrouping`: steps 1 to 3 of section V of the paper from random starts,
/// of which the one with the least cost (eq. 32) is used, or the motion of given seeds. Searches run in parallel. `watch` receives
/// each step and stops the search by returning `false`; otherwise the result does not depend on the number of threads.
pub fn design_cycloids(
    mechanism: &Mechanism,
    regrouping: &Regrouping,
    options: &CycloidOptions,
    watch: &(dyn Fn(Progress) -> bool + Sync),
) -> Result<Design> {
    let problem = Problem { mechanism, regrouping, options };
    if options.seeds.is_some() {
        let limits = DefaultLimits { margin: 0.0, ..options.limits };
        let (flight, seeds) = problem.given_motion(&limits)?;
        return problem.design(&flight, &seeds, (vec![seeds.cost], true), &limits);
    }
    let watched = Watched::new(watch);
    let starts = (0..options.starts.max(1))
        .into_par_iter()
        // The first start is always searched; after a stop request, the others are not.
        .filter(|k| *k == 0 || !watched.is_ended())
        .map(|k| problem.search(options.seed.wrapping_add(k as u64), &mut |cost| watched.step(cost)));
    let (mut searches, mut best, mut refused) = (Vec::new(), None, None);
    for found in starts.collect::<Vec<_>>() {
        let found = match found {
            Ok(found) => found,
            Err(e @ Error::Infeasible(_)) => {
                refused = Some(e);
                continue;
            }
            Err(e) => return Err(e),
        };
        searches.push(found.1.cost);
        if best.as_ref().is_none_or(|(_, seeds, _): &(_, Seeds, _)| found.1.cost < seeds.cost) {
            best = Some(found);
        }
    }
    let none = || Error::InvalidOption("no start was tried".into());
    let (flight, seeds, converged) = best.ok_or_else(|| refused.unwrap_or_else(none))?;
    problem.design(&flight, &seeds, (searches, converged), &options.limits)
}

struct Problem<'a, 'm> {
    mechanism: &'m Mechanism,
    regrouping: &'a Regrouping,
    options: &'a CycloidOptions,
}

impl<'m> Problem<'_, 'm> {
    fn flight(&self, directions: Vec<Vec<f64>>, limits: &DefaultLimits) -> Result<SeededFlight<'m>> {
        let times = (self.options.interval, self.options.rate);
        SeededFlight::within(self.mechanism, &self.regrouping.base, directions, times, limits)
    }

    /// Returns the first combinations if these are requested, else all of them.
    fn directions(&self) -> Result<Vec<Vec<f64>>> {
        let mut all = direction_combinations(moved(self.mechanism).len())?;
        match self.options.combinations {
            Combinations::First(count) | Combinations::Best(count) if count == 0 || count > all.len() => {
                Err(Error::InvalidOption(format!(
                    "{count} intervals, expected 1 to {}, the number of direction combinations of joints and \
                     wheels",
                    all.len()
                )))
            }
            Combinations::First(count) => {
                all.truncate(count);
                Ok(all)
            }
            _ if all.len() > MOST_COMBINATIONS => Err(Error::InvalidOption(format!(
                "{} combinations of directions are too many to choose from, expected at most \
                 {MOST_COMBINATIONS}: use the first ones",
                all.len()
            ))),
            _ => Ok(all),
        }
    }

    /// Returns the combinations to keep of a flight through all; `None` if all are kept anyway.
    fn kept_combinations(&self, all: &SeededFlight<'_>, seeds: &Seeds) -> Result<Option<Vec<Vec<f64>>>> {
        let kept = match self.options.combinations {
            Combinations::First(_) => return Ok(None),
            Combinations::Best(count) => select(&all.intervals(seeds, Some(&self.options.noise))?, count)?,
            Combinations::Pruned(rule) => {
                let intervals = all.intervals(seeds, None)?;
                let rows = 6 * ((all.flight.samples() - 1) / all.directions().len());
                prune(&intervals, rows, &PruneOptions { rule, ..PruneOptions::default() })?
            }
        };
        Ok(Some(kept.into_iter().map(|i| all.directions()[i].clone()).collect()))
    }

    /// Returns the motion of given seeds, within limits.
    fn given_motion(&self, limits: &DefaultLimits) -> Result<(SeededFlight<'m>, Seeds)> {
        let Some([start, range]) = &self.options.seeds else {
            return Err(Error::InvalidOption("there are no seeds".into()));
        };
        let of = |flight: &SeededFlight<'_>| flight.seeds(start, range, self.options.weight);
        let all = self.flight(self.directions()?, limits)?;
        let seeds = of(&all)?;
        let flight = match self.kept_combinations(&all, &seeds)? {
            Some(few) => self.flight(few, limits)?,
            None => all,
        };
        let seeds = of(&flight)?;
        Ok((flight, seeds))
    }

    /// Performs steps 1 to 3 of the paper from one random start: seeds for all combinations, selection, and seeds for the selected
    /// ones.
    fn search(
        &self,
        seed: u64,
        tell: &mut dyn FnMut(f64) -> bool,
    ) -> Result<(SeededFlight<'m>, Seeds, bool)> {
        let (options, limits) = (self.options, &self.options.limits);
        let all = self.flight(self.directions()?, limits)?;
        let start = Self::start(&all, seed);
        let (flight, start) = if matches!(options.combinations, Combinations::First(_)) {
            (all, start)
        } else {
            let steps = FIRST_STEPS.min(options.steps);
            let (first, _) = all.optimize_observed(&start, options.weight, steps, &mut *tell)?;
            let few = self.kept_combinations(&all, &first)?.unwrap_or_else(|| all.directions().to_vec());
            // The starts of the intervals have changed: optimize the seeds again.
            (self.flight(few, limits)?, first.start)
        };
        let (seeds, converged) = flight.optimize_observed(&start, options.weight, options.steps, tell)?;
        Ok((flight, seeds, converged))
    }

    /// Returns random positions in the middle half of the limits.
    fn start(flight: &SeededFlight<'_>, seed: u64) -> Vec<f64> {
        let mut source = SplitMix::new(seed);
        let mut uniform = || (source.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
        let joints = flight.flight.moved.iter().filter(|m| m.joint.is_some());
        let place = |m: &super::flight::MovableCoordinate| {
            let (low, high) = (m.limits.lower, m.limits.upper);
            let part = uniform();
            match (low.is_finite(), high.is_finite()) {
                (true, true) => low + (high - low) * (0.25 + 0.5 * part),
                (true, false) => low + 1.0 + part,
                (false, true) => high - 1.0 - part,
                (false, false) => std::f64::consts::PI * (2.0 * part - 1.0),
            }
        };
        joints.map(place).collect()
    }

    fn design(
        &self,
        flight: &SeededFlight<'_>,
        seeds: &Seeds,
        (searches, converged): (Vec<f64>, bool),
        limits: &DefaultLimits,
    ) -> Result<Design> {
        let columns = Columns::named(self.mechanism, self.regrouping)?;
        let all = moved(self.mechanism);
        let coordinates = flight_coordinates(self.mechanism, &all, limits);
        let held = FlightLimits::new(self.mechanism, &all, &self.options.collisions, limits.margin);
        let trajectory = flight.trajectory(seeds)?;
        let least = held.least(&trajectory, CHECK_RATE)?;
        let usage = usage(&coordinates, &held, &trajectory, &least)?;
        // Given seeds are the responsibility of the caller: exceeded limits are listed.
        let searched = self.options.seeds.is_none();
        if let Some(full) = usage.first().filter(|u| searched && u.used > 1.0 + ROUNDED) {
            return Err(Error::Infeasible(format!(
                "{} is exceeded: the motion uses {:.4} of it; try other seeds or lower limits of speed and \
                 acceleration",
                full.limit, full.used
            )));
        }
        let information = flight.information(seeds, &self.options.noise)?;
        Ok(Design {
            criterion: seeds.cost,
            searches,
            certificate: Certificate::new(&columns, &information)?,
            usage,
            trajectory,
            held: Vec::new(),
            absorbed: Vec::new(),
            converged,
        })
    }
}
