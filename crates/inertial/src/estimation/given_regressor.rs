//! Consistent estimates from a regressor that was computed externally.
//!
//! The rows of `Y π = τ` are reduced to one triangular factor per channel (row of a sample). Weighted least squares gives the
//! noise of each channel. The consistent estimate then minimizes `½ Σ ‖Y π − τ‖²/σ² + W Σ d(P₀, P)` over consistent bodies, as
//! [`crate::estimation::consistent`] does. Columns after those of the bodies (friction, offsets) are unconstrained.

use nalgebra::{DMatrix, DVector};
use schemars::JsonSchema;
use serde::Serialize;

use super::consistent::problem::{LEAST_NOISE, PriorKind, covariance, unproven};
use super::identification::result::BodyEstimate;
use super::least_squares::solution::Solution;
use crate::estimation::warning::Warning;
use crate::linalg::Triangle;
use crate::optimize::{Cone, ConicLeastSquares, Options};
use crate::spatial::{Inertia, PARAMETER_NAMES, Parameters, PseudoInertia};
use crate::warning::Warnings;
use crate::{Error, Result};

/// Number of parameters of a body.
const TEN: usize = PARAMETER_NAMES.len();
/// Largest number of elements of all factors: columns squared, times the rows of a sample.
const MOST_NUMBERS: usize = 25_000_000;
/// Number of rows that are reduced at once.
const BLOCK: usize = 1024;
/// Number of least-squares passes that estimate the noise.
const PASSES: usize = 3;
/// Information of the prior of unconstrained columns, relative to that of the data.
const FREE: f64 = 1e-10;

/// Order of the ten parameters of a body among the columns of a regressor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ColumnOrder {
    /// Order `m hx hy hz Ixx Ixy Ixz Iyy Iyz Izz`, as everywhere in this library.
    #[default]
    Rows,
    /// Order `m hx hy hz Ixx Ixy Iyy Ixz Iyz Izz`, as in Pinocchio.
    Pinocchio,
}

impl ColumnOrder {
    /// Returns the column of a body that holds each parameter of this library.
    fn columns(self) -> [usize; TEN] {
        match self {
            Self::Rows => [0, 1, 2, 3, 4, 5, 6, 7, 8, 9],
            Self::Pinocchio => [0, 1, 2, 3, 4, 5, 7, 6, 8, 9],
        }
    }
}

/// Rows of a regressor with their right-hand sides, reduced to triangular factors.
///
/// ```
/// use inertial::estimation::{ColumnOrder, RegressorOptions, RegressorRows};
/// use inertial::spatial::Inertia;
/// use nalgebra::{Matrix3, Vector3};
/// let ball = |mass| Inertia::from_com(mass, Vector3::zeros(), Matrix3::identity() * (0.004 * mass));
/// // A balance that shows the mass and nothing else.
/// let mut rows = RegressorRows::new(10, 1, 1, ColumnOrder::Rows)?;
/// for k in 1..100 {
///     let load = f64::from(k);
///     let mut row = [0.0; 10];
///     row[0] = load;
///     rows.add(&row, &[2.0 * load])?;
/// }
/// let found = rows.identify(&["tool".into()], &[ball(1.0)], &RegressorOptions::default())?;
/// assert!((found.bodies[0].mass - 2.0).abs() < 1e-3 && found.rank == 1);
/// # Ok::<(), inertial::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct RegressorRows {
    bodies: usize,
    columns: usize,
    /// Column of the given rows for each column of the factors.
    from: Vec<usize>,
    channels: Vec<Channel>,
    /// Channel of the next row.
    next: usize,
}

/// Channel: one row of each sample.
#[derive(Debug, Clone)]
struct Channel {
    factor: Triangle,
    /// Rows that are not reduced yet, one after the other.
    waiting: Vec<f64>,
    count: usize,
    /// Sum of squared forces.
    forces: f64,
}

/// Options of an identification from a regressor.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RegressorOptions {
    /// Distance to the prior.
    pub prior_kind: PriorKind,
    /// Weight of the prior.
    pub prior_weight: f64,
}

crate::with_changes!(RegressorOptions);

impl Default for RegressorOptions {
    fn default() -> Self {
        Self { prior_kind: PriorKind::default(), prior_weight: 1.0 }
    }
}

/// Bodies found from a regressor.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct RegressorIdentification {
    /// Number of rows.
    pub rows: usize,
    /// Number of columns.
    pub columns: usize,
    /// Rank: number of combinations of columns that the rows determine.
    pub rank: usize,
    /// Bodies, in the order of the columns.
    pub bodies: Vec<BodyEstimate>,
    /// Values of all columns, in their order (ten per body `m hx hy hz Ixx Ixy Ixz Iyy Iyz Izz`, then further columns).
    pub values: Vec<f64>,
    /// Standard errors of the values, for independent noise; as wide as the prior for directions that are not excited.
    pub std_errors: Vec<f64>,
    /// Residuals of each row of a sample.
    pub fit: Vec<RowResidual>,
    /// Difference between the cost and its proven lower bound.
    pub duality_gap: f64,
    /// Warnings.
    #[serde(flatten)]
    pub warnings: Warnings<Warning>,
}

/// Residual of one row of the samples.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct RowResidual {
    /// Index of the row in its sample, from 1.
    pub row: usize,
    /// Root mean square residual.
    pub rms: f64,
    /// Root mean square residual relative to the root mean square force.
    pub relative_rms: f64,
}

impl RegressorRows {
    /// Creates an empty set of rows with `columns` values: ten for each of `bodies`, then columns of other unknowns. Each sample
    /// has `channels` rows, each with its own noise.
    pub fn new(columns: usize, bodies: usize, channels: usize, order: ColumnOrder) -> Result<Self> {
        let wrong = |message: String| Err(Error::InvalidOption(message));
        if bodies == 0 || channels == 0 {
            return wrong("a regressor needs at least one body and one row per sample".into());
        }
        let needed = bodies.saturating_mul(TEN);
        if columns < needed {
            return wrong(format!("the regressor has {columns} columns: {bodies} bodies need {needed}"));
        }
        if columns.saturating_mul(columns).saturating_mul(channels) > MOST_NUMBERS {
            return wrong(format!("{columns} columns and {channels} rows per sample are too many"));
        }
        let own = order.columns();
        let from = (0..columns).map(|c| if c < needed { c / TEN * TEN + own[c % TEN] } else { c }).collect();
        let channel =
            Channel { factor: Triangle::new(columns + 1), waiting: Vec::new(), count: 0, forces: 0.0 };
        Ok(Self { bodies, columns, from, channels: vec![channel; channels], next: 0 })
    }

    /// Adds rows, one after the other, with their right-hand sides. Rows are assigned to the channels in turn.
    pub fn add(&mut self, rows: &[f64], rhs: &[f64]) -> Result<()> {
        let (expected, found) = (rhs.len() * self.columns, rows.len());
        if expected != found {
            return Err(Error::Dimension { what: "rows of the regressor", expected, found });
        }
        if let Some(bad) = rows.iter().chain(rhs).position(|x| !x.is_finite()) {
            let before = self.rows() + 1;
            let message = match bad.checked_sub(rows.len()) {
                Some(row) => format!("row {}: the right-hand side is not a finite number", before + row),
                None => format!(
                    "row {}, column {}: the entry is not a finite number",
                    before + bad / self.columns,
                    bad % self.columns + 1
                ),
            };
            return Err(Error::InvalidOption(message));
        }
        for (row, force) in rows.chunks_exact(self.columns).zip(rhs) {
            let channel = &mut self.channels[self.next];
            channel.waiting.extend(self.from.iter().map(|&c| row[c]));
            channel.waiting.push(*force);
            channel.count += 1;
            channel.forces += force * force;
            if channel.waiting.len() >= BLOCK * (self.columns + 1) {
                channel.reduce()?;
            }
            self.next = (self.next + 1) % self.channels.len();
        }
        Ok(())
    }

    /// Estimates physically consistent bodies, with one prior for each.
    pub fn identify(
        mut self,
        names: &[String],
        prior: &[Inertia<f64>],
        options: &RegressorOptions,
    ) -> Result<RegressorIdentification> {
        for (what, found) in [("names of bodies", names.len()), ("prior bodies", prior.len())] {
            if found != self.bodies {
                return Err(Error::Dimension { what, expected: self.bodies, found });
            }
        }
        self.channels.iter_mut().try_for_each(Channel::reduce)?;
        if self.next != 0 {
            let (rows, each) = (self.rows(), self.channels.len());
            return Err(Error::InvalidOption(format!(
                "{rows} rows are not a multiple of the {each} rows per sample"
            )));
        }
        if !self.channels.iter().any(|c| c.forces > 0.0) {
            return Err(Error::Unobservable("all right-hand sides are zero: no parameter is excited".into()));
        }
        let (weights, solution) = self.noise()?;
        let factor = self.weighted(&weights)?.matrix();
        let n = self.columns;
        let rows = factor.columns(0, n).into_owned();
        let forces = factor.column(n).into_owned();
        let mut conic = ConicLeastSquares::of_rows(rows, DMatrix::identity(n, n), forces);
        let mut start = DVector::zeros(n);
        for (k, (body, name)) in prior.iter().zip(names).enumerate() {
            let offset = TEN * k;
            let given = PseudoInertia::from(body).0.cholesky();
            let given = given.ok_or_else(|| {
                Error::Infeasible(format!("the prior of {name} is not strictly physically consistent"))
            })?;
            let cone = match options.prior_kind {
                PriorKind::Entropic => {
                    Cone { offset, prior_weight: options.prior_weight, prior: given.inverse() }
                }
                PriorKind::Euclidean => {
                    conic.add_body_prior(offset, &given, options.prior_weight);
                    Cone::new(offset)
                }
            };
            conic.cones.push(cone);
            start.rows_mut(offset, TEN).copy_from(&body.parameters());
        }
        for j in TEN * self.bodies..n {
            let information = conic.gram[(j, j)];
            conic.add_penalty(j, 0.0, if information > 0.0 { FREE * information } else { 1.0 });
        }
        let found = conic.solve(&start, &Options::default(), |_, _| true)?;
        let covariance = covariance(&conic, &found.x, &DMatrix::identity(n, n))?;
        let bodies = names.iter().enumerate().map(|(k, name)| {
            let own = Parameters::from_fn(|i, _| found.x[TEN * k + i]);
            let estimate = BodyEstimate::new(name, &Inertia::from_parameters(&own))?;
            Ok(estimate.with_errors(|i, j| covariance[(TEN * k + i, TEN * k + j)]))
        });
        Ok(RegressorIdentification {
            rows: self.rows(),
            columns: n,
            rank: solution.excited,
            bodies: bodies.collect::<Result<_>>()?,
            std_errors: (0..n).map(|i| covariance[(i, i)].max(0.0).sqrt()).collect(),
            fit: self.residuals(&found.x),
            duality_gap: found.gap(),
            warnings: unproven(found.status, found.cost, found.lower_bound).into_iter().collect(),
            values: found.x.as_slice().to_vec(),
        })
    }

    fn rows(&self) -> usize {
        self.channels.iter().map(|channel| channel.count).sum()
    }

    /// Estimates the weights of the channels from the residuals of weighted least squares. Also returns the last solution.
    fn noise(&self) -> Result<(Vec<f64>, Solution)> {
        let mut weights = vec![1.0; self.channels.len()];
        let mut pass = 0;
        loop {
            let solution = Solution::of_factor(&self.weighted(&weights)?.matrix(), None)?;
            pass += 1;
            if pass == PASSES {
                return Ok((weights, solution));
            }
            // The degrees of freedom of the fit are shared by all rows.
            let free = 1.0 - (solution.excited as f64 / self.rows() as f64).min(0.999);
            for (weight, channel) in weights.iter_mut().zip(&self.channels) {
                let least = LEAST_NOISE * (channel.forces / channel.count.max(1) as f64).sqrt();
                let noise = (channel.squares(&solution.values) / (free * channel.count.max(1) as f64)).sqrt();
                let noise = noise.max(least);
                *weight = if noise > 0.0 { noise.recip() } else { 0.0 };
            }
        }
    }

    fn weighted(&self, weights: &[f64]) -> Result<Triangle> {
        let mut out = Triangle::new(self.columns + 1);
        for (channel, weight) in self.channels.iter().zip(weights) {
            let mut factor = channel.factor.clone();
            factor.scale(*weight);
            out.merge(&factor)?;
        }
        Ok(out)
    }

    fn residuals(&self, values: &DVector<f64>) -> Vec<RowResidual> {
        let of = |(k, channel): (usize, &Channel)| {
            let squares = channel.squares(values);
            let relative_rms = if channel.forces > 0.0 { (squares / channel.forces).sqrt() } else { 0.0 };
            RowResidual { row: k + 1, rms: (squares / channel.count.max(1) as f64).sqrt(), relative_rms }
        };
        self.channels.iter().enumerate().map(of).collect()
    }
}

impl Channel {
    /// Reduces the waiting rows into the factor.
    fn reduce(&mut self) -> Result<()> {
        let width = self.factor.width();
        let rows = self.waiting.len() / width;
        let mut block = DMatrix::from_row_slice(rows, width, &self.waiting);
        self.waiting.clear();
        Ok(self.factor.add_rows(block.as_mut_slice(), rows)?)
    }

    /// Returns the sum of squared residuals.
    fn squares(&self, values: &DVector<f64>) -> f64 {
        let n = values.len();
        let row = |i: usize| {
            let row = self.factor.row(i);
            let fitted: f64 =
                row[i..].iter().zip(i..).map(|(r, j)| if j < n { r * values[j] } else { -r }).sum();
            fitted * fitted
        };
        (0..=n).map(row).sum()
    }
}
