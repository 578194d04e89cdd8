//! Analysis of mechanisms with loops in multi-precision arithmetic: the rank of the regressor at random closed
//! configurations, and the coefficients of the combinations.
//!
//! Random closed configurations are solved to the last digit. Each one gives rows of the regressor, and elimination
//! with full pivoting determines the rank. Valid pivots can be small (on the short path of a mechanism with one degree
//! of freedom many functions are nearly dependent), so the precision is increased until the last kept pivot is well
//! above the rounding error. Slightly contradicting constraints (rounded overconstrained machines) are solved in the
//! least-squares sense; their residual determines the tolerance.

use std::collections::VecDeque;

use num_traits::{One, Zero};
use rayon::iter::{IntoParallelIterator, IntoParallelRefIterator, ParallelIterator};

use super::base_parameters::PrintedNumber;
use super::certificate::RankProblem;
use super::configurations::{Site, dead_point};
use super::lifting::Start;
use super::probe::{Probe, ProbeInputs};
use super::random_walk::Walk;
use crate::Result;
use crate::linalg::{Double, Echelon, FullPivots, Number, Pivot, Rank, SplitMix, Wide};
use crate::spatial::{Field, Motion};

/// Minimum ratio of the last kept pivot to the tolerance for a clear rank.
const CLEAR: f64 = 1e12;

/// Amplification of the closure error in the regressor, due to its conditioning.
const MAGNIFIED: f64 = 100.0;

/// Minimum ratio of consecutive pivots at which the smaller ones count as rounding errors. Dimensions intended to be
/// equal differ in the last digit of a file. The resulting pivots are smaller than the square of the snapping tolerance
/// (the size that a dimension at that tolerance would cause) and lie this far below the valid ones; valid pivots
/// decrease in smaller steps. Dimensions written with 12 decimals or more are therefore recognized as equal.
const CLEAR_STEP: f64 = 1e5;

/// Minimum ratio of the last valid pivot to the first one that is a rounding error of the geometry.
const NOISE_STEP: f64 = 1e3;

/// Ratio of consecutive pivots that does not occur in a gradual decrease.
const LARGE_STEP: f64 = 1e6;

/// Largest factor by which a valid pivot differs between two mechanisms at the distance of rounding errors of doubles.
const MOST_CHANGE: f64 = 2.0;

/// Largest factor by which a valid pivot grows between two mechanisms at a multiple of the rounding error of a coarse file. Pivots due to
/// rounding grow by about that multiple.
const MOST_GROWTH: f64 = 8.0;

/// Number of consecutive configurations without a new row after which sampling stops.
const QUIET: usize = 4;

/// Number of rows beyond the expected rank, so that no pivot is small by accident.
const SPARE_ROWS: usize = 8;

/// Approximate number of configurations from which rows are taken if the rank is known, and maximum number of
/// directions of motion in each.
const CONFIGURATIONS: usize = 12;
const MOST_DIRECTIONS: usize = 16;

/// Maximum number of configurations that are skipped because the loops do not close there: with rounded numbers the
/// mechanism in double precision reaches slightly farther than the restored one.
const MOST_SKIPPED: usize = 10;

/// Minimum number of parameters of a large mechanism.
const LARGE: usize = 200;

/// Numbers of configurations that are evaluated in parallel, for small and for large mechanisms: the last ones may be in vain.
const TOGETHER: [usize; 2] = [2, 4];

/// Rows and velocities at one configuration.
struct Sample<const N: usize> {
    /// Rows of the regressor, each scaled to a largest entry of one.
    rows: Vec<Vec<Wide<N>>>,
    /// Velocities attained by the bodies.
    velocities: Vec<(usize, Motion<Wide<N>>)>,
    /// Closure error of the loops.
    open: f64,
}

/// Random configuration, and the seed of the motions through it.
struct Draw {
    q: Vec<f64>,
    seed: u64,
}

/// Evaluation of rows at random configurations.
struct Sampler<'a> {
    inputs: ProbeInputs<'a>,
    /// Number of motions through each configuration.
    directions: usize,
    /// Number of orders in time.
    orders: usize,
}

impl Sampler<'_> {
    /// Evaluates rows and velocities of a mechanism at one configuration.
    fn sample<const N: usize>(&self, site: &Site<'_, '_, N>, draw: &Draw) -> Result<Sample<N>> {
        let source = &mut SplitMix::new(draw.seed);
        let (assembled, left) = site.refine(&draw.q)?;
        let assembled = site.in_own_units(&assembled);
        let start = Start::new(&assembled, &site.dependent).map_err(|_| dead_point())?;
        let mut probe = Probe::random(&start, self.inputs, self.directions, source);
        let (mut rows, mut velocities) = (Vec::new(), Vec::new());
        for _ in 0..self.orders {
            let advanced = probe.advance(source, |row| {
                let size = row.iter().map(|x| x.weight()).fold(0.0, f64::max);
                // Skip rows that contain only rounding errors.
                if size > Wide::<N>::TOLERANCE {
                    let scale = Wide::from(size.recip());
                    rows.push(row.iter().map(|&x| x * scale).collect());
                }
            });
            advanced.map_err(|_| dead_point())?;
        }
        probe.velocities(|body, v| velocities.push((body, *v)));
        Ok(Sample { rows, velocities, open: left.max(probe.slack()) })
    }

    /// Evaluates the given rows of the given draws for another mechanism, row-major; `None` if its loops do not close.
    fn rows_of<const N: usize>(
        &self,
        site: &Site<'_, '_, N>,
        used: &[(Draw, Vec<usize>)],
    ) -> Option<Vec<Wide<N>>> {
        let rows_at = |(draw, rows): &(Draw, Vec<usize>)| {
            let sample = self.sample(site, draw).ok()?;
            let closes = sample.open <= Wide::<N>::TOLERANCE;
            let rows = closes.then(|| rows.iter().map(|&n| sample.rows.get(n).cloned()));
            rows?.collect::<Option<Vec<_>>>()
        };
        let samples: Vec<_> = used.par_iter().map(rows_at).collect::<Option<_>>()?;
        Some(samples.into_iter().flatten().flatten().collect())
    }
}

/// Mechanism with the same relations at a small distance.
pub struct Nearby<'a, 'm, const N: usize> {
    /// The mechanism.
    pub site: Site<'a, 'm, N>,
    /// Whether the distance is a multiple of the rounding error of a coarse file, not of doubles.
    pub is_coarse: bool,
}

/// Properties of a mechanism that are known before it is sampled.
#[derive(Debug, Clone, Copy)]
pub struct Known {
    /// Tolerance of the geometry. If it is zero, the last digit of every number is significant; otherwise pivots that
    /// result from the last digit alone are dropped.
    pub snap: f64,
    /// Upper bound of the rank: only as many rows are drawn as are needed to reach it.
    pub expected: Option<usize>,
    /// Whether the geometry is known only up to rounding, so that pivots caused by rounding do not count.
    pub blurred: bool,
    /// Whether the loops close. Configurations in which they do not are then beyond the reach of the mechanism and are
    /// skipped.
    pub closes: bool,
    /// Rounding error of the geometry. Pivots below it count only if they are part of a gradual decrease.
    pub noise: f64,
}

/// Rows of the regressor at random closed configurations after elimination, in units of the size of the mechanism.
#[derive(Debug)]
pub struct Extended<const N: usize> {
    /// Rank with its margin.
    pub rank: Rank,
    /// Largest closure error at the configurations (rad, or relative to the size of the mechanism).
    pub open: f64,
    /// Pivots up to this, relative to the first, count as zero.
    pub tolerance: f64,
    /// Whether pivots explained by rounding of the geometry were dropped.
    pub truncated: bool,
    /// Basis of the row space.
    pub rows: Echelon<Wide<N>>,
    /// Dimension of the span of velocities attained by each body, gravity included.
    pub velocities: Vec<usize>,
    /// Factors that convert parameters from units of the size of the mechanism to those of the file.
    pub lengths: Vec<f64>,
    /// Rows of all samples, each scaled to a largest entry of one.
    samples: Vec<f64>,
}

impl<const N: usize> Extended<N> {
    /// Samples a mechanism. `nearby` returns a mechanism at the distance of rounding errors with the same relations; it
    /// is called if small pivots may be rounding errors, which differ there.
    pub fn new<'a, 'm>(
        problem: &RankProblem<'_>,
        site: &Site<'a, 'm, N>,
        known: Known,
        nearby: impl Fn() -> Option<Nearby<'a, 'm, N>>,
    ) -> Result<Self> {
        let Known { snap, expected, blurred, closes, noise } = known;
        let inputs = problem.probe_inputs();
        let width = problem.mechanism.parameter_count();
        let mut walk = Walk::new(site.closed, site.size, problem.seed);
        let mut source = SplitMix::new(problem.seed);
        let orders = if inputs.needs_accelerations() { 2 } else { 1 };
        let mut matrix: Vec<Wide<N>> = Vec::new();
        let mut span = Echelon::new(width, Pivot::Largest);
        // If the rank is known, it is sufficient to keep the rows that are independent in 31 digits, and a few spare
        // ones.
        let mut rough = Echelon::<Double>::new(width, Pivot::Largest);
        let (mut spare, mut all) = (SPARE_ROWS, false);
        let directions = expected.map_or(1, |rank| (rank / CONFIGURATIONS).clamp(1, MOST_DIRECTIONS));
        let bodies = problem.mechanism.bodies().len();
        let mut spans = vec![Echelon::<Wide<N>>::new(6, Pivot::Largest); bodies];
        let mut rounded_spans = vec![Echelon::<f64>::new(6, Pivot::Largest); bodies];
        let (mut open, mut quiet) = (0.0f64, 0);
        let sampler = Sampler { inputs, directions, orders };
        // The batch size does not depend on the number of threads.
        let together = TOGETHER[usize::from(width > LARGE)];
        // More rows than columns, so that no pivot is small by accident.
        let mut left = expected.map_or(width, |r| 4 * r) + 30;
        let mut samples: VecDeque<Result<(Draw, Sample<N>)>> = VecDeque::new();
        let mut used: Vec<(Draw, Vec<usize>)> = Vec::new();
        let mut skipped = 0;
        while left > 0 {
            left -= 1;
            if samples.is_empty() {
                let mut draws = Vec::new();
                for k in 0..together {
                    match walk.step() {
                        Ok(()) => draws.push(Draw { q: walk.q.clone(), seed: source.next_u64() }),
                        Err(error) if k == 0 => return Err(error),
                        Err(_) => break,
                    }
                }
                let of = |draw: Draw| sampler.sample(site, &draw).map(|sample| (draw, sample));
                samples = draws.into_par_iter().map(of).collect::<Vec<_>>().into();
            }
            let Some((draw, sample)) = samples.pop_front().transpose()? else { break };
            if closes && sample.open > Wide::<N>::TOLERANCE && skipped < MOST_SKIPPED {
                skipped += 1;
                left += 1;
                continue;
            }
            let before = (span.rank(), rough.rank());
            let mut kept = Vec::new();
            for (n, row) in sample.rows.into_iter().enumerate() {
                if expected.is_none() {
                    span.insert(&row);
                } else {
                    let rounded: Vec<Double> = row.iter().map(|&x| x.rounded()).collect();
                    if !rough.insert(&rounded) {
                        if spare == 0 {
                            continue;
                        }
                        spare -= 1;
                    }
                }
                matrix.extend(row);
                kept.push(n);
            }
            used.push((draw, kept));
            for (body, v) in sample.velocities {
                spans[body].insert(v.to_vector().as_slice());
                rounded_spans[body].insert(v.to_vector().map(f64::from).as_slice());
            }
            open = open.max(sample.open);
            quiet = if (span.rank(), rough.rank()) > before { 0 } else { quiet + 1 };
            // Elimination in row order can miss small pivots that full pivoting still finds.
            let done = match expected {
                Some(rank) if quiet >= QUIET && rough.rank() < rank && !all => {
                    // No new independent rows: keep further rows, since the missing pivots may be small.
                    all = true;
                    spare += rank - rough.rank();
                    false
                }
                Some(rank) => spare == 0 && (rough.rank() >= rank || all),
                None => quiet >= QUIET && matrix.len() >= (2 * span.rank() + SPARE_ROWS) * width,
            };
            if done {
                break;
            }
        }
        let tolerance = Wide::<N>::TOLERANCE.max(MAGNIFIED * open);
        let samples = matrix.iter().map(|&x| f64::from(x)).collect();
        let mut found = FullPivots::new(matrix, width, tolerance);
        // If the loops do not close to the last digit, or relations hold only up to rounding, rounding errors also
        // enter squared. A large step between pivots then separates the intended rank from the squared rounding errors.
        let mut truncated = false;
        let sizes_nearby = || {
            let doubtful = open <= Wide::<N>::TOLERANCE && found.rank().kept <= noise;
            let Nearby { site, is_coarse } = doubtful.then(nearby).flatten()?;
            let rows = sampler.rows_of(&site, &used)?;
            Some((FullPivots::sizes_at(rows, width, &found.places), is_coarse))
        };
        let sizes_nearby = sizes_nearby();
        if let Some((sizes, is_coarse)) = &sizes_nearby {
            let changes = |(there, here): (&f64, &f64)| {
                let [growth, decline] = [there / here, here / there];
                !if *is_coarse { growth < MOST_GROWTH } else { growth < MOST_CHANGE && decline < MOST_CHANGE }
            };
            if let Some(valid) = sizes.iter().zip(&found.sizes).position(changes) {
                truncated = true;
                found.truncate(valid);
            }
        }
        // A neighbour at the rounding error of doubles is decisive.
        let is_decided = truncated || sizes_nearby.is_some_and(|(_, is_coarse)| !is_coarse);
        let step = |w: &[f64]| {
            if blurred || open > Wide::<N>::TOLERANCE {
                w[1] < snap * snap && w[0] > CLEAR_STEP * w[1] && w[0] * w[0] > w[1]
            } else {
                // Relations that no family describes (such as equal angles of two shafts in a double universal joint) hold
                // only to the rounding error of the file.
                let is_large = w[0] * w[0] > w[1] || w[0] > LARGE_STEP * w[1];
                w[1] <= noise && w[0] > NOISE_STEP * w[1] && is_large
            }
        };
        if let Some(last) = found.sizes.windows(2).position(step).filter(|_| !is_decided) {
            truncated = last + 1 < found.places.len();
            found.truncate(last + 1);
        }
        let rank = found.rank();
        let tolerance = tolerance.max(MAGNIFIED * rank.dropped);
        let mut rows = Echelon::new(width, Pivot::Largest);
        for &(row, column) in &found.places {
            let entries = &found.matrix[row * width..(row + 1) * width];
            let scale = entries[column].inverse().unwrap_or_else(Wide::one);
            // Columns of earlier pivots contain values that elimination did not update.
            let mut done: Vec<Wide<N>> = entries.iter().map(|&x| x * scale).collect();
            for &(_, earlier) in found.places.iter().take_while(|p| p.0 != row) {
                done[earlier] = Wide::zero();
            }
            rows.insert(&done);
        }
        rows.reduce();
        let velocities = if truncated {
            rounded_spans.iter().map(Echelon::rank).collect()
        } else {
            spans.iter().map(Echelon::rank).collect()
        };
        let lengths = lengths(problem, site.unit);
        Ok(Self { rank, open, tolerance, truncated, rows, velocities, lengths, samples })
    }

    /// Returns whether the loops close to the last digit and the last kept pivot is well above the rounding error.
    pub fn is_clear(&self) -> bool {
        self.open <= Wide::<N>::TOLERANCE && self.rank.kept > CLEAR * Wide::<N>::TOLERANCE
    }

    /// Returns whether a change of the parameters (in units of the size of the mechanism) is null: its product with
    /// every row vanishes within the tolerance and the rounding error of `f64`.
    pub fn annihilates(&self, x: &[Wide<N>]) -> bool {
        let entries = x.iter().enumerate().filter(|(_, x)| x.weight() > 0.0);
        let entries: Vec<(usize, f64)> = entries.map(|(c, &x)| (c, f64::from(x))).collect();
        let size = entries.iter().fold(0.0f64, |m, (_, x)| m.max(x.abs()));
        let tolerance = self.tolerance.max(1e-10) * size;
        let mut rows = self.samples.chunks_exact(x.len().max(1));
        rows.all(|row| entries.iter().map(|&(c, x)| row[c] * x).sum::<f64>().abs() <= tolerance)
    }
}

/// Returns for each parameter the power of `unit` that brings masses, first moments and inertias to one scale.
fn lengths(problem: &RankProblem<'_>, unit: f64) -> Vec<f64> {
    let mut out = vec![1.0; problem.mechanism.parameter_count()];
    for block in problem.mechanism.parameter_blocks() {
        for (k, x) in out[block.offset..block.offset + block.len].iter_mut().enumerate() {
            *x = match 10 - block.len + k {
                0 => 1.0,
                1..=3 => unit,
                _ => unit * unit,
            };
        }
    }
    out
}
