//! Mechanisms with loops in numbers of many digits: the rank of the regressor at random closed configurations, and the values of the
//! combinations.
//!
//! Random closed configurations are solved to the last digit, each gives rows of the regressor, and elimination with full pivoting
//! decides. True pivots can be small (on the short path of a mechanism with one freedom many functions look alike), so the precision
//! grows until the last pivot that counts stands clear of rounding. Constraints that contradict each other a little (rounded
//! overconstrained machines) are met in the least-squares sense; what they leave open sets the tolerance.

use std::collections::VecDeque;

use num_traits::{One, Zero};
use rayon::iter::{IntoParallelIterator, ParallelIterator};

use super::base_parameters::Written;
use super::certificate::Question;
use super::configurations::{Site, dead_point};
use super::lifting::Start;
use super::probe::Probe;
use super::walk::Walk;
use crate::Result;
use crate::linalg::{Double, Echelon, FullPivots, Number, Pivot, Rank, SplitMix, Wide};
use crate::spatial::{Field, Motion};

/// A rank is clear where its last pivot stands this far above the tolerance.
const CLEAR: f64 = 1e12;

/// What the loops leave open enters the regressor magnified by its conditioning.
const MAGNIFIED: f64 = 100.0;

/// Dimensions that were meant equal differ in the last digit of a file. What that leaves is smaller than the square of the snapping
/// tolerance (so small would be what a dimension at that tolerance reveals), and lies this far below what was meant;
/// true pivots fall off in smaller steps. So dimensions written with 12 decimals or more are recognised as equal.
const CLEAR_STEP: f64 = 1e5;

/// Configurations are added until so many in a row bring nothing new.
const QUIET: usize = 4;

/// Rows beyond the expected rank, so that no pivot is small by accident.
const SPARE_ROWS: usize = 8;

/// Where the rank is known, rows are taken from about so many configurations, along at most so many directions of motion in each.
const CONFIGURATIONS: usize = 12;
const MOST_DIRECTIONS: usize = 16;

/// Parameters of large mechanisms, and configurations of them that threads share.
const LARGE: usize = 200;
const TOGETHER: usize = 4;

/// What one configuration gives.
struct Sample<const N: usize> {
    /// Rows of the regressor, each with a largest entry of one.
    rows: Vec<Vec<Wide<N>>>,
    /// Velocities that bodies attain.
    velocities: Vec<(usize, Motion<Wide<N>>)>,
    /// What the loops leave open.
    open: f64,
}

/// Rows of the regressor at random closed configurations, eliminated, in units of the mechanism's size.
#[derive(Debug)]
pub struct Extended<const N: usize> {
    /// The rank with its margin.
    pub rank: Rank,
    /// Largest gap of the loops at the configurations (rad, or relative to the mechanism's size).
    pub open: f64,
    /// Pivots up to this, relative to the first, counted as zero.
    pub tolerance: f64,
    /// Whether pivots that rounding of the geometry explains were left out.
    pub truncated: bool,
    /// Basis of the row space.
    pub rows: Echelon<Wide<N>>,
    /// Dimension of the velocities that each body attains, gravity included.
    pub velocities: Vec<usize>,
    /// Factors from parameters in units of the mechanism's size to those of the file.
    pub lengths: Vec<f64>,
    /// All rows, each with a largest entry of one.
    samples: Vec<f64>,
}

impl<const N: usize> Extended<N> {
    /// Samples a mechanism. With a tolerance `snap` of zero the last digit of every number counts; otherwise what it alone reveals does
    /// not.
    ///
    /// Where an upper bound of the rank is known (`expected`), no more rows are drawn than it takes to reach it. Where the geometry is
    /// known to rounding only (`blurred`), pivots that rounding leaves do not count.
    pub fn new(
        question: &Question<'_>,
        site: &Site<'_, '_, N>,
        snap: f64,
        expected: Option<usize>,
        blurred: bool,
    ) -> Result<Self> {
        let inquiry = question.inquiry();
        let width = question.mechanism.parameter_count();
        let mut walk = Walk::new(site.closed, site.size, question.seed);
        let mut source = SplitMix::new(question.seed);
        let orders = if inquiry.needs_accelerations() { 2 } else { 1 };
        let mut matrix: Vec<Wide<N>> = Vec::new();
        let mut span = Echelon::new(width, Pivot::Largest);
        // Where the rank is known, rows that 31 digits tell from those before suffice, and a few to spare.
        let mut rough = Echelon::<Double>::new(width, Pivot::Largest);
        let (mut spare, mut all) = (SPARE_ROWS, false);
        let directions = expected.map_or(1, |rank| (rank / CONFIGURATIONS).clamp(1, MOST_DIRECTIONS));
        let bodies = question.mechanism.bodies().len();
        let mut spans = vec![Echelon::<Wide<N>>::new(6, Pivot::Largest); bodies];
        let mut rounded_spans = vec![Echelon::<f64>::new(6, Pivot::Largest); bodies];
        let (mut open, mut quiet) = (0.0f64, 0);
        let sample = |q: &[f64], source: &mut SplitMix| -> Result<Sample<N>> {
            let (assembled, left) = site.refine(q)?;
            let assembled = site.in_own_units(&assembled);
            let start = Start::new(&assembled, &site.dependent).map_err(|_| dead_point())?;
            let mut probe = Probe::random(&start, inquiry, directions, source);
            let (mut rows, mut velocities) = (Vec::new(), Vec::new());
            for _ in 0..orders {
                let advanced = probe.advance(source, |row| {
                    let size = row.iter().map(|x| x.weight()).fold(0.0, f64::max);
                    // A row of rounding alone is no row.
                    if size > Wide::<N>::TOLERANCE {
                        let scale = Wide::from(size.recip());
                        rows.push(row.iter().map(|&x| x * scale).collect());
                    }
                });
                advanced.map_err(|_| dead_point())?;
            }
            probe.velocities(|body, v| velocities.push((body, *v)));
            Ok(Sample { rows, velocities, open: left.max(probe.slack()) })
        };
        // Threads share the configurations of large mechanisms. How many are drawn at once does not depend on the threads.
        let together = if width > LARGE { TOGETHER } else { 1 };
        // More rows than columns, so that no pivot is small by accident.
        let mut left = expected.map_or(width, |r| 4 * r) + 30;
        let mut samples: VecDeque<Result<Sample<N>>> = VecDeque::new();
        while left > 0 {
            left -= 1;
            if samples.is_empty() {
                let mut draws = Vec::new();
                for k in 0..together {
                    match walk.step() {
                        Ok(()) => draws.push((walk.q.clone(), SplitMix::new(source.next_u64()))),
                        Err(error) if k == 0 => return Err(error),
                        Err(_) => break,
                    }
                }
                let of = |(q, mut source): (Vec<f64>, SplitMix)| sample(&q, &mut source);
                samples = if together == 1 {
                    draws.into_iter().map(of).collect()
                } else {
                    draws.into_par_iter().map(of).collect::<Vec<_>>().into()
                };
            }
            let Some(sample) = samples.pop_front().transpose()? else { break };
            let before = (span.rank(), rough.rank());
            for row in sample.rows {
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
            }
            for (body, v) in sample.velocities {
                spans[body].insert(v.to_vector().as_slice());
                rounded_spans[body].insert(v.to_vector().map(f64::from).as_slice());
            }
            open = open.max(sample.open);
            quiet = if (span.rank(), rough.rank()) > before { 0 } else { quiet + 1 };
            // Elimination in the order of rows can miss small pivots that full pivoting still sees.
            let done = match expected {
                Some(rank) if quiet >= QUIET && rough.rank() < rank && !all => {
                    // They see no more: what is missing may be small.
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
        // Where the loops do not close to the last digit, or relations hold to rounding only, rounding enters squared too: between its
        // square and itself there is a step, but no rank that anybody meant.
        let mut truncated = false;
        if blurred || open > Wide::<N>::TOLERANCE {
            let step = |w: &[f64]| w[1] < snap * snap && w[0] > CLEAR_STEP * w[1] && w[0] * w[0] > w[1];
            if let Some(last) = found.sizes.windows(2).position(step) {
                truncated = last + 1 < found.places.len();
                found.truncate(last + 1);
            }
        }
        let rank = found.rank();
        let tolerance = tolerance.max(MAGNIFIED * rank.dropped);
        let mut rows = Echelon::new(width, Pivot::Largest);
        for &(row, column) in &found.places {
            let entries = &found.matrix[row * width..(row + 1) * width];
            let scale = entries[column].inverse().unwrap_or_else(Wide::one);
            // Columns of earlier pivots hold what elimination skipped there.
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
        let lengths = lengths(question, site.unit);
        Ok(Self { rank, open, tolerance, truncated, rows, velocities, lengths, samples })
    }

    /// Whether the loops close to the last digit and the last pivot that counts stands clear of rounding.
    pub fn is_clear(&self) -> bool {
        self.open <= Wide::<N>::TOLERANCE && self.rank.kept > CLEAR * Wide::<N>::TOLERANCE
    }

    /// Whether a change of the parameters (in units of the mechanism's size) is null: it vanishes on every row to the tolerance (and to
    /// the rounding of `f64`).
    pub fn annihilates(&self, x: &[Wide<N>]) -> bool {
        let entries = x.iter().enumerate().filter(|(_, x)| x.weight() > 0.0);
        let entries: Vec<(usize, f64)> = entries.map(|(c, &x)| (c, f64::from(x))).collect();
        let size = entries.iter().fold(0.0f64, |m, (_, x)| m.max(x.abs()));
        let tolerance = self.tolerance.max(1e-10) * size;
        let mut rows = self.samples.chunks_exact(x.len().max(1));
        rows.all(|row| entries.iter().map(|&(c, x)| row[c] * x).sum::<f64>().abs() <= tolerance)
    }
}

/// For each parameter the power of `unit` that brings masses, first moments and inertias to one scale.
fn lengths(question: &Question<'_>, unit: f64) -> Vec<f64> {
    let mut out = vec![1.0; question.mechanism.parameter_count()];
    for block in question.mechanism.parameter_blocks() {
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
