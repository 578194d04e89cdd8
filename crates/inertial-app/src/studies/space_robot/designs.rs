//! Motions of the study: the published motion, the published method, and velocities at knots.

use inertial::excitation::cycloid::{SeededFlight, Seeds, direction_combinations};
use inertial::excitation::pruning::{PruneOptions, PruningRule, prune};
use inertial::excitation::{Criterion, DefaultLimits, FlightOptions, Trajectory, design_flight};
use inertial::linalg::{Triangle, singular_values};
use inertial::mechanism::Mechanism;
use rayon::iter::{IntoParallelRefIterator, ParallelIterator};

use super::robot::{Robot, STARTS};
use super::{Counts, INTERVAL, INTERVALS, Ours, PRINTED_SEEDS, Published, RATE, Repeated, WEIGHT, median};
use crate::Result;

/// Number of rows per interval.
const ROWS: usize = 6 * (RATE * INTERVAL) as usize;

impl<'m> Robot<'m> {
    fn combinations(&self) -> Result<Vec<Vec<f64>>> {
        Ok(direction_combinations(STARTS[0].len() + self.truth.wheels().len())?)
    }

    fn seeded(&self, on: &'m Mechanism, directions: Vec<Vec<f64>>) -> Result<SeededFlight<'m>> {
        Ok(SeededFlight::new(on, &self.equations.regrouping.base, directions, INTERVAL, RATE)?)
    }

    /// Returns the published motion with the first direction combinations.
    pub fn first_intervals(&self, count: usize) -> Result<Trajectory> {
        let mut first = self.combinations()?;
        first.truncate(count);
        Ok(self.seeded(self.truth, first)?.trajectory(&printed_seeds())?)
    }

    /// Returns the published seeds with the first combinations in binary order; the paper does not state which ones were kept.
    pub fn published_motion(&self) -> Result<(Trajectory, Published)> {
        let seeds = printed_seeds();
        let all = self.seeded(self.guess, self.combinations()?)?;
        let kept = kept(&all.intervals(&seeds, None)?)?;
        let mut first = self.combinations()?;
        first.truncate(INTERVALS);
        let believed = self.seeded(self.guess, first.clone())?;
        let seeded_flight = self.seeded(self.truth, first)?;
        let intervals = seeded_flight.intervals(&seeds, None)?;
        let [mut alone, mut together] =
            [(); 2].map(|()| Counts { condition: Vec::new(), significant: Vec::new() });
        let mut sum = Triangle::new(self.equations.len());
        for interval in &intervals {
            sum.merge(interval).map_err(inertial::Error::from)?;
            alone.push(interval)?;
            together.push(&sum)?;
        }
        let published = Published {
            condition_believed: condition(&believed.intervals(&seeds, None)?)?,
            condition: together.condition[INTERVALS - 1],
            alone,
            together,
            kept,
        };
        Ok((seeded_flight.trajectory(&seeds)?, published))
    }

    /// Performs steps 1 to 3 of section V of the paper with the assumed model.
    pub fn repeated_design(&self) -> Result<(Trajectory, Repeated)> {
        let all = self.seeded(self.guess, self.combinations()?)?;
        let designs = STARTS.par_iter().map(|start| {
            let first = all.optimize(start, WEIGHT, 20)?;
            let intervals = all.intervals(&first, None)?;
            let counted = pruned(&intervals, PruningRule::Counted)?;
            // The intervals start elsewhere after pruning, so the seeds are optimized again.
            let directions: Vec<_> = counted.iter().map(|&i| all.directions()[i].clone()).collect();
            let few = self.seeded(self.guess, directions)?;
            let seeds = few.optimize(&first.start, WEIGHT, 60)?;
            Ok((few, seeds, kept(&intervals)?))
        });
        let mut designs = designs.collect::<Result<Vec<_>>>()?;
        designs.sort_by(|a, b| a.1.cost.total_cmp(&b.1.cost));
        let (few, seeds, kept) = &designs[0];
        let seeded_flight = self.seeded(self.truth, few.directions().to_vec())?;
        let properties = Repeated {
            starts: STARTS.len(),
            kept: *kept,
            start: seeds.start.clone(),
            range: seeds.range.clone(),
            condition_believed: seeds.condition,
            condition: condition(&seeded_flight.intervals(seeds, None)?)?,
        };
        Ok((few.trajectory(seeds)?, properties))
    }

    /// Designs velocities at knots with the assumed model.
    pub fn our_design(&self) -> Result<(Trajectory, Ours)> {
        let options = FlightOptions::new(self.noise.rates.clone()).with(|o| {
            o.duration = INTERVALS as f64 * INTERVAL;
            o.interval = INTERVAL;
            o.rate = RATE;
            o.criterion = Criterion::Worst;
            // Only the published speed limits are applied.
            o.limits = DefaultLimits::default().with(|l| {
                l.acceleration = f64::INFINITY;
                l.margin = 0.0;
            });
            o.starts = 2;
            o.steps = 120;
        });
        let design = design_flight(self.guess, &self.equations.regrouping, &options, &|_| true)?;
        let certificate = &design.certificate;
        let relative: Vec<f64> = certificate.base_parameters.iter().map(|e| 100.0 * e.relative).collect();
        let properties = Ours {
            criterion: options.criterion.name(),
            value: design.criterion,
            rank: [certificate.rank, certificate.structural_rank],
            expected_percent: [median(&relative), relative.iter().copied().fold(0.0, f64::max)],
        };
        Ok((design.trajectory, properties))
    }
}

fn printed_seeds() -> Seeds {
    let [start, range] = PRINTED_SEEDS.map(|row| row.map(f64::to_radians).to_vec());
    Seeds { start, range, condition: f64::NAN, cost: f64::NAN }
}

impl Counts {
    fn push(&mut self, factor: &Triangle) -> Result<()> {
        let values = singular_values(&factor.matrix()).map_err(inertial::Error::from)?;
        let least = PruneOptions::default().significant * values[0];
        self.condition.push(values[0] / values[values.len() - 1]);
        self.significant.push(values.iter().filter(|s| **s > least).count());
        Ok(())
    }
}

fn condition(intervals: &[Triangle]) -> Result<f64> {
    let mut sum = Triangle::new(intervals.first().map_or(0, Triangle::width));
    for part in intervals {
        sum.merge(part).map_err(inertial::Error::from)?;
    }
    let values = singular_values(&sum.matrix()).map_err(inertial::Error::from)?;
    Ok(values[0] / values[values.len() - 1])
}

fn pruned(intervals: &[Triangle], rule: PruningRule) -> Result<Vec<usize>> {
    Ok(prune(intervals, ROWS, &PruneOptions::default().with(|o| o.rule = rule))?)
}

/// Returns the numbers of intervals that algorithm 1 keeps, in its three interpretations.
fn kept(intervals: &[Triangle]) -> Result<[usize; 3]> {
    let count = |rule| pruned(intervals, rule).map(|kept| kept.len());
    Ok([count(PruningRule::Printed)?, count(PruningRule::Refreshed)?, count(PruningRule::Counted)?])
}
