//! Equations of a payload in summaries of a robot.

use std::collections::BTreeMap;

use nalgebra::{DMatrix, DVector};

use crate::estimation::equations::Equations;
use crate::estimation::identification::result::ParameterEstimate;
use crate::estimation::least_squares::fit::named_directions;
use crate::estimation::least_squares::jackknife::{Jackknife, information};
use crate::estimation::least_squares::solution::UNEXCITED;
use crate::estimation::payload::link::PayloadLink;
use crate::estimation::payload::model_error::{KINDS, LinkErrors};
use crate::estimation::payload::unloaded::Unloaded;
use crate::estimation::reduction::summary::Summary;
use crate::linalg::{Svd, Triangle, product};
use crate::spatial::{PARAMETER_NAMES, Parameters};
use crate::{Error, Result};

/// Smallest noise, relative to the largest joint force. It keeps weights finite on noise-free data, so far that the prior of a model does not
/// vanish in rounding errors.
const LEAST_NOISE: f64 = 1e-6;

/// Largest number of reweighting steps, and the relative change of the noise at which they stop.
const REPEATS: usize = 50;
const SETTLED: f64 = 1e-6;

/// Relative error of a model at which the search for it begins, and the smallest one that counts.
const FIRST_ERROR: f64 = 0.03;
const LEAST_ERROR: f64 = 1e-4;

/// Smallest share of the data in the information about a direction whose residuals are considered.
const LEAST_SHARE: f64 = 0.1;

/// Change of a combination along an undetermined direction, relative to its largest part, that exceeds rounding error.
const OPEN: f64 = 1e-5;

/// Equations of one coordinate in one log, with columns `[common | payload | force]`.
struct ChannelRows {
    channel: usize,
    matrix: DMatrix<f64>,
    count: f64,
    independent: f64,
}

/// Weighted least-squares problem of a payload and the common unknowns of the logs.
pub(super) struct Problem<'a> {
    equations: &'a Equations<'a>,
    loaded: &'a Summary,
    unloaded: Option<&'a Summary>,
    rows: Vec<ChannelRows>,
    /// Number of common unknowns; from `certain` on they are relative errors of a model.
    common: usize,
    certain: usize,
    /// Kinds of these errors, and the standard deviation of each kind.
    kinds: Vec<usize>,
    deviations: [f64; KINDS],
    channels: usize,
    pub samples: usize,
    /// Weight of each coordinate, `√independent/noise`.
    weights: Vec<f64>,
    /// Map of common unknowns to unknowns of the equations, and the values of the latter at zero common unknowns: common unknowns are
    /// deviations from known values.
    to_unknowns: DMatrix<f64>,
    known: DVector<f64>,
    effect: DMatrix<f64>,
}

/// Estimate of a payload.
pub(super) struct Fit {
    /// Common unknowns.
    pub common: DVector<f64>,
    /// Parameters of the payload.
    pub payload: DVector<f64>,
    /// Number of excited combinations of the payload's parameters.
    pub excited: usize,
    /// Combinations of payload parameters that do not affect any force: undetermined directions, as vectors and by name.
    pub open: Vec<Parameters<f64>>,
    pub unexcited: Vec<BTreeMap<String, f64>>,
    /// Square root of the covariance of the common unknowns and the payload, for independent residuals.
    root: DMatrix<f64>,
}

/// Covariance of an estimate.
pub(super) struct Uncertainty {
    /// Covariance of the common unknowns.
    pub common: DMatrix<f64>,
    /// Covariance of the payload's parameters.
    pub payload: DMatrix<f64>,
    /// Factor by which it exceeds the covariance for residuals that are independent except for the filter.
    pub growth: f64,
}

impl Fit {
    /// Returns whether the data do not determine a parameter.
    pub fn is_open(&self, parameter: usize) -> bool {
        self.open.iter().any(|direction| direction[parameter] != 0.0)
    }

    /// Returns the names of the undetermined quantities.
    pub fn undetermined(&self) -> Vec<&'static str> {
        let quantities = [("mass", 0..1), ("centre of mass", 0..4), ("inertia", 4..10)];
        let open = quantities.into_iter().filter(|(_, range)| range.clone().any(|i| self.is_open(i)));
        open.map(|(name, _)| name).collect()
    }
}

impl<'a> Problem<'a> {
    /// Creates the problem. For a known robot, the joint terms selected by `free` are estimated anew.
    pub fn new(
        equations: &'a Equations<'a>,
        link: &PayloadLink,
        loaded: &'a Summary,
        unloaded: Unloaded<'a>,
        free: &[bool],
    ) -> Result<Self> {
        let (n, rank) = (equations.len(), equations.rank());
        let mut effect = DMatrix::zeros(n, 10);
        effect.rows_mut(0, rank).copy_from(&link.effect);
        let mut kinds = Vec::new();
        let (to_unknowns, known, other) = match unloaded {
            Unloaded::Model { values, .. } => {
                let chosen: Vec<usize> = (0..free.len()).filter(|&i| free[i]).collect();
                let errors = LinkErrors::new(equations);
                let mut map = DMatrix::zeros(n, chosen.len() + errors.kinds.len());
                chosen.iter().enumerate().for_each(|(j, &i)| map[(rank + i, j)] = 1.0);
                map.view_mut((0, chosen.len()), errors.columns.shape()).copy_from(&errors.columns);
                kinds = errors.kinds;
                (map, DVector::from_column_slice(values), None)
            }
            Unloaded::Log(other) => (DMatrix::identity(n, n), DVector::zeros(n), Some(other)),
        };
        let certain = to_unknowns.ncols() - kinds.len();
        let mut out = Self {
            equations,
            loaded,
            unloaded: other,
            rows: Vec::new(),
            common: to_unknowns.ncols(),
            certain,
            kinds,
            deviations: [FIRST_ERROR; KINDS],
            channels: equations.channels.len(),
            samples: loaded.samples,
            weights: vec![1.0; equations.channels.len()],
            to_unknowns,
            known,
            effect,
        };
        out.push(loaded, true);
        if let Some(summary) = other {
            summary.check(equations)?;
            out.samples += summary.samples;
            out.push(summary, false);
        }
        let found: f64 = out.rows.iter().map(|r| r.count).sum();
        let needed = certain + link.regrouping.rank();
        if found < needed as f64 {
            return Err(Error::TooFewForces { found, unknowns: needed });
        }
        Ok(out)
    }

    fn push(&mut self, summary: &Summary, with_payload: bool) {
        let channels = self.equations.channels.iter().zip(&summary.factors).enumerate();
        for (c, (channel, factor)) in channels.filter(|(_, (_, f))| f.count > 0) {
            let n = factor.unknowns();
            let factor_rows = DMatrix::from_fn(n + 1, n, |i, j| factor.triangle.at(i, j));
            let pick = |m: &DMatrix<f64>| m.select_rows(&channel.unknowns);
            let mut matrix = DMatrix::zeros(n + 1, self.common + 11);
            matrix.columns_mut(0, self.common).copy_from(&(&factor_rows * pick(&self.to_unknowns)));
            if with_payload {
                matrix.columns_mut(self.common, 10).copy_from(&(&factor_rows * pick(&self.effect)));
            }
            let known = DVector::from_iterator(n, channel.unknowns.iter().map(|&k| self.known[k]));
            let force = DVector::from_fn(n + 1, |i, _| factor.triangle.at(i, n)) - &factor_rows * known;
            matrix.set_column(self.common + 10, &force);
            self.rows.push(ChannelRows {
                channel: c,
                matrix,
                count: factor.count as f64,
                independent: factor.independent,
            });
        }
    }

    /// Reduces all weighted rows, and those of the prior of the model's errors.
    fn reduced(&self) -> Result<DMatrix<f64>> {
        let mut out = Triangle::new(self.common + 11);
        let mut prior = DMatrix::zeros(self.kinds.len(), self.common + 11);
        for (i, kind) in self.kinds.iter().enumerate() {
            prior[(i, self.certain + i)] = self.deviations[*kind].recip();
        }
        out.add_rows(prior.as_mut_slice(), self.kinds.len())?;
        for rows in &self.rows {
            let mut block = &rows.matrix * self.weights[rows.channel];
            let count = block.nrows();
            out.add_rows(block.as_mut_slice(), count)?;
        }
        Ok(out.matrix())
    }

    /// Returns the columns of the payload and the forces, after elimination of the common unknowns.
    pub fn without_common(&self) -> Result<[DMatrix<f64>; 2]> {
        let all = self.reduced()?;
        self.eliminated(&all, self.common)
    }

    /// Returns the columns of the payload and the forces, after elimination of the first columns.
    fn eliminated(&self, all: &DMatrix<f64>, columns: usize) -> Result<[DMatrix<f64>; 2]> {
        let mut out =
            [all.columns(self.common, 10).into_owned(), all.columns(self.common + 10, 1).into_owned()];
        if columns > 0 {
            let common = Scaled::new(&all.columns(0, columns).into_owned())?;
            let range = common.svd.u.columns(0, common.excited);
            out.iter_mut().for_each(|x| *x -= range * range.tr_mul(x));
        }
        Ok(out)
    }

    /// Estimates the unknowns; the noise of each coordinate is estimated too, or one noise of all if `ordinary` is set.
    pub fn fit(&mut self, ordinary: bool) -> Result<Fit> {
        let mut noise: Vec<f64> = Vec::new();
        for _ in 0..REPEATS {
            let fit = self.solve()?;
            let mut next = self.noise(&fit);
            if ordinary {
                // The same noise for all coordinates.
                let (mut sum, mut count) = (0.0, 0.0);
                for rows in &self.rows {
                    sum += next[rows.channel].powi(2) * rows.count;
                    count += rows.count;
                }
                next.fill((sum / count).sqrt());
            }
            let mut change = if noise.is_empty() { f64::INFINITY } else { 0.0 };
            change = noise.iter().zip(&next).map(|(a, b)| (a / b - 1.0).abs()).fold(change, f64::max);
            let deviations = if noise.is_empty() { self.deviations } else { self.next_deviations(&fit) };
            let counts = |(a, b): &(&f64, &f64)| a.max(**b) > LEAST_ERROR;
            let changes = deviations.iter().zip(&self.deviations).filter(counts);
            change = changes.map(|(a, b)| (a / b - 1.0).abs()).fold(change, f64::max);
            (noise, self.deviations) = (next, deviations);
            self.weigh(&noise);
            if change < SETTLED {
                break;
            }
        }
        self.solve()
    }

    /// Returns the standard deviations of the errors of the model that make the data more probable: the mean squares of the errors, divided by
    /// the number of errors that the data determine (the fixed-point update of the evidence).
    fn next_deviations(&self, fit: &Fit) -> [f64; KINDS] {
        let (mut squares, mut determined) = ([0.0; KINDS], [0.0; KINDS]);
        for (i, &kind) in self.kinds.iter().enumerate() {
            let error = self.certain + i;
            squares[kind] += fit.common[error].powi(2);
            determined[kind] += 1.0 - fit.root.row(error).norm_squared() / self.deviations[kind].powi(2);
        }
        std::array::from_fn(|kind| {
            if determined[kind] <= 0.0 {
                return self.deviations[kind];
            }
            (squares[kind] / determined[kind]).sqrt().clamp(0.1 * LEAST_ERROR, 1.0)
        })
    }

    fn weigh(&mut self, noise: &[f64]) {
        for c in 0..self.channels {
            let own = self.rows.iter().filter(|r| r.channel == c);
            let (count, independent) = own.fold((0.0, 0.0), |s, r| (s.0 + r.count, s.1 + r.independent));
            self.weights[c] =
                if count > 0.0 && noise[c] > 0.0 { (independent / count).sqrt() / noise[c] } else { 0.0 };
        }
    }

    fn solve(&self) -> Result<Fit> {
        let all = self.reduced()?;
        let width = self.common + 10;
        let system = Scaled::new(&all.columns(0, width).into_owned())?;
        let values = system.solve(&all.column(width).into_owned());
        // A payload that the errors of the model can imitate is excited nevertheless.
        let norms = norms(&all.columns(self.common, 10).into_owned());
        let [a, _] = self.eliminated(&all, self.certain)?;
        let payload = Scaled::with_norms(&a, &norms)?;
        let open = payload.open();
        let named = |direction: &Parameters<f64>| {
            let parts = direction.iter().enumerate().filter(|(_, x)| **x != 0.0);
            parts.map(|(i, x)| (format!("payload.{}", PARAMETER_NAMES[i]), *x)).collect()
        };
        Ok(Fit {
            unexcited: open.iter().map(named).collect(),
            open,
            common: values.rows(0, self.common).into_owned(),
            excited: payload.excited,
            payload: values.rows(self.common, 10).into_owned(),
            root: system.root,
        })
    }

    /// Returns the noise of each coordinate, corrected for the degrees of freedom of the fit.
    fn noise(&self, fit: &Fit) -> Vec<f64> {
        let solution =
            DVector::from_iterator(self.common + 10, fit.common.iter().chain(&fit.payload).copied());
        let mut sums = vec![(0.0, 0.0, 0.0); self.channels];
        for rows in &self.rows {
            let a = rows.matrix.columns(0, self.common + 10);
            let force = rows.matrix.column(self.common + 10);
            let taken = (a * &fit.root).norm_squared() * self.weights[rows.channel].powi(2);
            let sum = &mut sums[rows.channel];
            sum.0 += (force - a * &solution).norm_squared();
            sum.1 += rows.count - taken * rows.count / rows.independent;
            sum.2 += force.norm_squared() / rows.count;
        }
        let least = LEAST_NOISE.powi(2) * sums.iter().map(|s| s.2).fold(0.0, f64::max);
        let of = |&(residual, free, _): &(f64, f64, f64)| (residual / free.max(1.0)).max(least).sqrt();
        sums.iter().map(of).collect()
    }

    /// Returns the unknowns of the equations for the robot with its payload.
    pub fn unknowns(&self, fit: &Fit, payload: &Parameters<f64>) -> Vec<f64> {
        let payload = DVector::from_column_slice(payload.as_slice());
        (self.without_payload(fit) + &self.effect * payload).as_slice().to_vec()
    }

    fn without_payload(&self, fit: &Fit) -> DVector<f64> {
        &self.known + &self.to_unknowns * &fit.common
    }

    /// Computes the covariance of an estimate from the jackknife over the blocks of the logs. If the summaries have too few blocks,
    /// the residuals are assumed independent except for the filter.
    pub fn uncertainty(&self, fit: &Fit) -> Uncertainty {
        let (width, root) = (self.common + 10, &fit.root);
        let mut map = DMatrix::zeros(self.equations.len(), width);
        map.columns_mut(0, self.common).copy_from(&self.to_unknowns);
        let mut scores = Vec::new();
        let mut add = |summary: &Summary, map: &DMatrix<f64>, values: &DVector<f64>| {
            let own = summary.scores(self.equations, &self.weights, values);
            scores.extend(own.iter().map(|score| score.mapped(map)));
        };
        let values = self.without_payload(fit);
        if let Some(unloaded) = self.unloaded {
            add(unloaded, &map, &values);
        }
        map.columns_mut(self.common, 10).copy_from(&self.effect);
        add(self.loaded, &map, &(values + &self.effect * &fit.payload));
        // Share of the data in the information; the rest is that of the prior of the model's errors, which has no residuals.
        let of_data = product(&root.transpose(), &product(&information(&scores, width), root));
        let chosen: Vec<usize> = (0..root.ncols()).filter(|&i| of_data[(i, i)] > LEAST_SHARE).collect();
        let chosen_root = root.select_columns(&chosen);
        let all = product(root, &root.transpose());
        let (all, growth) = match Jackknife::new(&scores, &chosen_root) {
            Some(jackknife) => {
                let of_data = of_data.select_columns(&chosen).select_rows(&chosen);
                let estimated = (0..self.certain).chain(self.common..width);
                let growth =
                    jackknife.growth(&chosen_root.select_rows(&estimated.collect::<Vec<_>>()), &of_data);
                let independent = product(&product(&chosen_root, &of_data), &chosen_root.transpose());
                (all - independent + jackknife.covariance(&chosen_root, &of_data, growth), growth)
            }
            None => (all, 1.0),
        };
        Uncertainty {
            common: all.view((0, 0), (self.common, self.common)).into_owned(),
            payload: all.view((self.common, self.common), (10, 10)).into_owned(),
            growth,
        }
    }

    /// Returns the relative error of the model and its effect on the payload; `None` if the model has no significant errors.
    pub fn model_error(&self, fit: &Fit, uncertainty: &Uncertainty) -> Result<Option<ModelError>> {
        let relative = self.deviations.iter().map(|x| x * x).sum::<f64>().sqrt();
        if self.kinds.is_empty() || relative <= LEAST_ERROR {
            return Ok(None);
        }
        let [effect, _] = self.eliminated(&self.reduced()?, self.certain)?;
        // Covariance without the errors of the model.
        let root = Scaled::new(&effect)?.root;
        let added = &uncertainty.payload - product(&root, &root.transpose()) * uncertainty.growth;
        let torque = (&effect * &added).component_mul(&effect).sum() / (effect * &fit.payload).norm_squared();
        let mass = if fit.is_open(0) { 0.0 } else { added[(0, 0)] / fit.payload[0].powi(2) };
        let share = torque.max(mass).max(0.0).sqrt();
        Ok(share.is_finite().then_some(ModelError { relative, share }))
    }
}

/// Errors of the model of a robot.
pub(super) struct ModelError {
    /// Error of the parameters of a link, relative to the size of the link.
    pub relative: f64,
    /// Uncertainty of the payload due to these errors: of its torques or of its mass, the larger one, relative to its value.
    pub share: f64,
}

/// Returns the combinations of payload parameters that the data determine, with standard errors.
pub(crate) fn combinations(
    link: &PayloadLink,
    payload: &Parameters<f64>,
    covariance: &DMatrix<f64>,
    open: &[Parameters<f64>],
) -> Result<Vec<ParameterEstimate>> {
    let base = link.regrouping.regroup(payload.as_slice())?;
    let estimate = |(combination, &value): (&Vec<(usize, f64)>, &f64)| {
        let mut row = DVector::zeros(10);
        combination.iter().for_each(|&(c, x)| row[c] = x);
        // A combination is determined if no undetermined direction changes it.
        let changes = |direction: &Parameters<f64>| {
            let parts = row.iter().zip(direction.iter()).map(|(a, b)| a * b);
            let size = parts.clone().map(f64::abs).fold(0.0, f64::max);
            parts.sum::<f64>().abs() > OPEN * size
        };
        let variance = row.dot(&(covariance * &row));
        let name = format!("payload.{}", PARAMETER_NAMES[combination[0].0]);
        let estimate = ParameterEstimate::new(name, value, variance.max(0.0).sqrt());
        (!open.iter().any(changes)).then_some(estimate)
    };
    Ok(link.regrouping.combinations.iter().zip(&base).filter_map(estimate).collect())
}

fn norms(a: &DMatrix<f64>) -> DVector<f64> {
    DVector::from_fn(a.ncols(), |j, _| a.column(j).norm())
}

/// Singular value decomposition of columns in units of their norms.
pub(crate) struct Scaled {
    pub svd: Svd,
    scale: DVector<f64>,
    pub excited: usize,
    /// Square root of the pseudo-inverse: `root rootᵀ` is the pseudo-inverse of `AᵀA`.
    pub root: DMatrix<f64>,
}

impl Scaled {
    pub fn new(a: &DMatrix<f64>) -> Result<Self> {
        Self::with_norms(a, &norms(a))
    }

    /// Scales columns by given norms: columns that are small relative to them count as not excited.
    fn with_norms(a: &DMatrix<f64>, norms: &DVector<f64>) -> Result<Self> {
        let largest = norms.iter().copied().fold(0.0, f64::max);
        let scale = norms.map(|s| if s > UNEXCITED * largest { s.recip() } else { 0.0 });
        let svd = Svd::new(&(a * DMatrix::from_diagonal(&scale)))?;
        let excited = svd.values.iter().filter(|&&s| s > UNEXCITED).count();
        let mut root = svd.v.columns(0, excited).into_owned();
        for j in 0..excited {
            root.column_mut(j).unscale_mut(svd.values[j]);
        }
        for (mut row, s) in root.row_iter_mut().zip(scale.iter()) {
            row *= *s;
        }
        Ok(Self { svd, scale, excited, root })
    }

    /// Returns the directions of payload parameters that the rows do not determine.
    pub fn open(&self) -> Vec<Parameters<f64>> {
        let direction = |(_, parts): (_, Vec<(usize, f64)>)| {
            let mut out = Parameters::zeros();
            parts.into_iter().for_each(|(i, x)| out[i] = x);
            out
        };
        named_directions(&self.svd.null_space(self.excited), &self.scale).into_iter().map(direction).collect()
    }

    pub fn solve(&self, b: &DVector<f64>) -> DVector<f64> {
        self.svd.solve(b, self.excited, 0.0).component_mul(&self.scale)
    }
}
