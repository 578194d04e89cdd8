//! Posterior of consistent bodies: credible intervals that respect the boundary of the feasible set.
//!
//! The posterior is `exp(−cost)` of the consistent estimator over the parameters of consistent bodies: Gaussian data and the prior
//! `det(P)^w exp(−c tr(P₀⁻¹ P))` of each body. This is a Wishart distribution with `2w + 5` degrees of freedom and the mean
//! `(w + 5/2) P₀/c`. For `w ≥ 1` the mean is the prior body: with the `c = w` of the estimator, which has its mode there, the mean
//! would be 3.5 times as heavy for `w = 1`, because most consistent bodies are heavier than a given one. Weaker priors are guesses;
//! their mean is `P₀/√w`, so that they are flat in the limit. Standard errors describe a Gaussian that ignores the boundary. Near the boundary, only the intervals of the
//! posterior are valid. Correlated residuals are treated as in the standard errors: along each principal axis of the information
//! of the data, the variance is that of the jackknife over blocks of the logs.

use nalgebra::{DMatrix, DVector};
use schemars::JsonSchema;
use serde::Serialize;

use crate::Result;
use crate::estimation::consistent::intervals::{IntervalKind, bodies};
use crate::estimation::consistent::problem::{Consistency, ConsistentFit, ConsistentProblem, data_factor};
use crate::estimation::equations::Equations;
use crate::estimation::estimator::Solver;
use crate::estimation::least_squares::fit::LeastSquares;
use crate::estimation::reduction::summary::Summary;
use crate::estimation::warning::Warning;
use crate::linalg::Svd;
use crate::optimize::sampling::Sampler;
use crate::spatial::{Inertia, PARAMETER_NAMES, Parameters};

/// Number of steps before points are kept.
const BURN_IN: usize = 1000;

/// Number of points that are kept. If they are too correlated, every second one is dropped and the chain continues with a larger
/// thinning interval.
const KEPT: usize = 4000;

/// Effective sample size that the ends of intervals need. The probability beyond an end of a 95 % interval is then 2.5 % ± 0.8 %.
const ENOUGH: f64 = 400.0;

/// Largest thinning interval (steps between two points that are kept).
const MOST_THINNED: usize = 64;

/// Information, relative to the largest with columns of unit length, below which a direction counts as not excited.
const UNEXCITED: f64 = 1e-12;

/// Degrees of freedom of the Wishart distribution of a pseudo-inertia with a constant density: its size plus one.
const DIMENSIONS: f64 = 5.0;

/// Options of the posterior.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct PosteriorOptions {
    /// Probability inside an interval.
    pub level: f64,
    /// Seed of the random numbers.
    pub seed: u64,
    /// Weight of the bodies' prior; the weight of the estimator if absent.
    pub prior_weight: Option<f64>,
}

crate::with_changes!(PosteriorOptions);

impl Default for PosteriorOptions {
    fn default() -> Self {
        Self { level: 0.95, seed: 1, prior_weight: None }
    }
}

/// Credible interval.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct CredibleInterval {
    /// Name of the base parameter or joint term, or `BODY.NAME`; `cx`, `cy`, `cz` are the centre of mass, inertias refer to it.
    pub name: String,
    /// Kind of the value. A base parameter can have the name of a plain parameter.
    pub kind: IntervalKind,
    /// Lower end of the shortest interval with the probability.
    pub lower: f64,
    /// Median.
    pub median: f64,
    /// Upper end.
    pub upper: f64,
}

/// Posterior of consistent bodies.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct Posterior {
    /// Probability inside each interval.
    pub level: f64,
    /// Number of points of the chain from which the intervals are computed.
    pub points: usize,
    /// Smallest effective sample size of all intervals.
    pub effective_points: f64,
    /// Intervals.
    pub intervals: Vec<CredibleInterval>,
}

impl Posterior {
    /// Returns a warning about intervals that have not converged.
    pub(crate) fn warning(&self) -> Option<Warning> {
        let points = self.effective_points;
        (points < ENOUGH).then_some(Warning::RoughIntervals { points })
    }
}

/// Samples the posterior of a consistent fit.
pub fn posterior(
    equations: &Equations<'_>,
    summary: &Summary,
    squares: &LeastSquares,
    wanted: &Consistency<'_>,
    fit: &ConsistentFit,
    options: PosteriorOptions,
) -> Result<Posterior> {
    let wanted = Consistency { solver: Solver::Barrier, ..wanted.clone() };
    let problem = ConsistentProblem::new(equations, summary, squares, &wanted)?;
    let mode = problem.solve(&wanted, |_, _| true)?.x;
    let independent = problem.covariance(&mode)?;
    let rows = data_factor(equations, summary, squares)?;
    let factor = calibrated(&rows, squares, &independent, &fit.covariance)?;
    let prior_weight = options.prior_weight.unwrap_or(wanted.prior_weight);
    let wanted = Consistency { prior_weight, ..wanted };
    let mut problem = ConsistentProblem::with_factor(equations, summary, squares, &wanted, &factor)?;
    for cone in problem.conic.cones.iter_mut().filter(|cone| cone.prior_weight > 0.0) {
        let weight = cone.prior_weight;
        cone.prior *= (weight + DIMENSIONS / 2.0) / weight * weight.min(1.0).sqrt();
    }
    let start = problem.solve(&wanted, |_, _| true)?.x;
    let bodies: Vec<_> = bodies(equations.mechanism()).collect();
    let mut names: Vec<_> = equations.names.iter().map(|name| (name.clone(), IntervalKind::Base)).collect();
    for (name, _) in &bodies {
        names.push((format!("{name}.m"), IntervalKind::Mass));
        names.extend(["cx", "cy", "cz"].map(|axis| (format!("{name}.{axis}"), IntervalKind::Com)));
        let inertias = PARAMETER_NAMES[4..].iter();
        names.extend(inertias.map(|part| (format!("{name}.{part}"), IntervalKind::CentralInertia)));
    }
    let chain = sample(&mut Sampler::new(&problem.conic, &start, options.seed)?, names.len(), |x, out| {
        out.extend(problem.unknowns(x).iter());
        for (_, offset) in &bodies {
            let ten = Parameters::from_column_slice(&x.as_slice()[*offset..offset + 10]);
            let body = Inertia::from_parameters(&ten);
            let about = body.about_com();
            out.push(body.mass);
            out.extend(body.com().unwrap_or_default().iter());
            out.extend([(0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)].map(|place| about[place]));
        }
    });
    let effective_points = chain.effective();
    let points = chain.points();
    let intervals = names.into_iter().zip(chain.values).map(|((name, kind), mut values)| {
        values.sort_by(f64::total_cmp);
        let [lower, upper] = shortest(&values, options.level);
        let median = quantile(&values, 0.5);
        CredibleInterval { name, kind, lower, median, upper }
    });
    Ok(Posterior { level: options.level, points, effective_points, intervals: intervals.collect() })
}

/// Computes rows `[A | b]` of the data whose information has the variances of the jackknife along its principal axes.
///
/// `independent` and `covariance` are covariances of the unknowns, for independent residuals and from the jackknife.
fn calibrated(
    rows: &DMatrix<f64>,
    squares: &LeastSquares,
    independent: &DMatrix<f64>,
    covariance: &DMatrix<f64>,
) -> Result<DMatrix<f64>> {
    let n = rows.ncols() - 1;
    let size = DVector::from_iterator(n, rows.column_iter().take(n).map(|c| c.norm()));
    let unit =
        DMatrix::from_fn(rows.nrows(), n, |i, j| if size[j] > 0.0 { rows[(i, j)] / size[j] } else { 0.0 });
    let svd = Svd::new(&unit)?;
    let excited =
        svd.values.iter().take_while(|s| **s * **s > UNEXCITED * svd.values[0] * svd.values[0]).count();
    let mut out = DMatrix::zeros(excited, n + 1);
    for k in 0..excited {
        // The unknowns move along this axis by `v/size`; the product with `size v` is the coordinate along it.
        let axis = DVector::from_fn(n, |j, _| svd.v[(j, k)] * size[j]);
        let [own, counted] = [independent, covariance].map(|c| axis.dot(&(c * &axis)));
        let ratio = if own > 0.0 && counted > 0.0 { own / counted } else { 1.0 };
        let row = axis * (svd.values[k] * ratio.sqrt());
        out[(k, n)] = row.dot(&squares.values);
        out.view_mut((k, 0), (1, n)).copy_from(&row.transpose());
    }
    Ok(out)
}

/// Values along a chain, one list per quantity.
struct Chain {
    values: Vec<Vec<f64>>,
}

impl Chain {
    fn points(&self) -> usize {
        self.values.first().map_or(0, Vec::len)
    }

    /// Returns the smallest effective sample size of the lists.
    fn effective(&self) -> f64 {
        self.values.iter().map(|values| effective(values)).fold(f64::INFINITY, f64::min)
    }
}

/// Runs the chain until the effective sample size is large enough or the thinning interval reaches its limit.
fn sample(
    sampler: &mut Sampler<'_>,
    quantities: usize,
    read: impl Fn(&DVector<f64>, &mut Vec<f64>),
) -> Chain {
    (0..BURN_IN).for_each(|_| sampler.step());
    let mut chain = Chain { values: vec![Vec::new(); quantities] };
    let mut row = Vec::with_capacity(quantities);
    let mut thinned = 1;
    loop {
        while chain.points() < KEPT {
            (0..thinned).for_each(|_| sampler.step());
            row.clear();
            read(sampler.point(), &mut row);
            chain.values.iter_mut().zip(&row).for_each(|(values, x)| values.push(*x));
        }
        if thinned >= MOST_THINNED || chain.effective() >= ENOUGH {
            return chain;
        }
        thinned *= 2;
        for values in &mut chain.values {
            let mut place = 0;
            values.retain(|_| {
                place += 1;
                place % 2 == 0
            });
        }
    }
}

/// Returns the shortest interval that contains the given share of sorted values. Near a boundary of the possible values it reaches the
/// boundary, where an interval with equal tails would exclude it.
fn shortest(sorted: &[f64], share: f64) -> [f64; 2] {
    let inside = (share * (sorted.len() - 1) as f64).round() as usize;
    let ends = sorted.iter().zip(&sorted[inside..]).map(|(&low, &high)| [low, high]);
    let widths = |[low, high]: &[f64; 2]| high - low;
    ends.min_by(|a, b| widths(a).total_cmp(&widths(b))).unwrap_or([f64::NAN; 2])
}

/// Returns the quantile of sorted values at the given probability.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let place = share * (sorted.len() - 1) as f64;
    let (below, part) = (place.floor(), place.fract());
    let [low, high] = [below, place.ceil()].map(|k| sorted[k as usize]);
    low + part * (high - low)
}

/// Computes the effective sample size of a stationary sequence for its mean (initial positive sequence of Geyer).
fn effective(values: &[f64]) -> f64 {
    let n = values.len();
    let mean = values.iter().sum::<f64>() / n as f64;
    let at = |lag: usize| -> f64 {
        values[lag..].iter().zip(values).map(|(a, b)| (a - mean) * (b - mean)).sum::<f64>() / n as f64
    };
    let variance = at(0);
    // A quantity that is constant up to rounding error has no sampling error.
    if variance <= (1e-12 * mean).powi(2) {
        return n as f64;
    }
    let mut sum = -variance;
    for pair in 0..n / 4 {
        let both = at(2 * pair) + at(2 * pair + 1);
        if both <= 0.0 {
            break;
        }
        sum += 2.0 * both;
    }
    n as f64 * (variance / sum.max(variance / n as f64)).min(1.0)
}
