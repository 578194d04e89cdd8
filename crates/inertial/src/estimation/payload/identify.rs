//! Identification of a payload on a link from joint torques.
//!
//! A payload with the parameters `π` in the frame of its link changes the base parameters by `K π`, where `K` are the columns of
//! that link in the regrouping, transformed to the link frame. Summaries of the equations of the robot are therefore sufficient.
//! With one log and a known model, the equations are `R (x₀ + [K π; δ]) ≈ r`, where `δ` are the joint terms that are estimated
//! anew. With two logs of the same robot, without and with the payload, they are `R₁ x ≈ r₁` and `R₂ (x + [K π; 0]) ≈ r₂`. The
//! common unknowns (`x` or `δ`) are eliminated. Ten unknowns remain, of which those outside the null space of `K` are
//! identifiable.

use std::collections::BTreeMap;

use nalgebra::{DMatrix, DVector};

use crate::estimation::consistent::body_fit::possible_body;
use crate::estimation::equations::Equations;
use crate::estimation::estimator::Estimator;
use crate::estimation::identification::criticism::Criticism;
use crate::estimation::identification::identify::IdentifyOptions;
use crate::estimation::identification::residuals::validate;
use crate::estimation::identification::result::{
    BodyEstimate, Identification, ModelSize, ParameterEstimate, joints,
};
use crate::estimation::joint_model::terms::Term;
use crate::estimation::least_squares::fit::named_directions;
use crate::estimation::least_squares::solution::UNSEEN;
use crate::estimation::payload::force_sensor::measured_prior;
use crate::estimation::payload::link::PayloadLink;
use crate::estimation::reduction::summary::Summary;
use crate::estimation::warning::Warning;
use crate::linalg::{Svd, Triangle};
use crate::spatial::{Inertia, PARAMETER_NAMES, Parameters};
use crate::warning::Warnings;
use crate::{Error, Result};

/// Smallest noise, relative to the largest joint force. It keeps weights finite on noise-free data.
const LEAST_NOISE: f64 = 1e-9;

/// Largest number of reweighting steps, and the relative change of the noise at which they stop.
const REPEATS: usize = 20;
const SETTLED: f64 = 1e-6;

/// Change of a combination along an undetermined direction, relative to its largest part, that exceeds rounding error.
const OPEN: f64 = 1e-5;

/// Weight of a negligible prior.
pub const TRACE_OF_PRIOR: f64 = 1e-6;

/// Knowledge of the robot without its payload.
#[derive(Debug, Clone, Copy)]
pub enum Unloaded<'a> {
    /// Parameters and joint terms of the model, except for the terms selected by `free` (`--friction`, `--offset`), which are
    /// estimated together with the payload.
    Model {
        /// Whether each of [`Equations::terms`] is estimated anew.
        free: &'a [bool],
    },
    /// Summary of another log of the same robot.
    Log(&'a Summary),
}

/// Identifies the payload on a link; `loaded` is the summary of the robot with the payload.
///
/// The result has the payload as its only body, in the frame of the link. `base_parameters` are the combinations of its ten
/// parameters that the torques of the robot determine. Without `options.prior` (which refers to the robot) the prior is
/// [`measured_prior`].
pub fn identify_payload(
    equations: &Equations<'_>,
    link: &PayloadLink,
    loaded: &Summary,
    unloaded: Unloaded<'_>,
    options: &IdentifyOptions,
) -> Result<Identification> {
    if options.intervals.is_some() || options.posterior.is_some() {
        return Err(Error::Incompatible(
            "guaranteed and credible intervals of a payload need a force/torque sensor, not torques of joints"
                .into(),
        ));
    }
    loaded.check(equations)?;
    let mut problem = Problem::new(equations, link, loaded, unloaded)?;
    let fit = problem.fit(options.estimator == Estimator::Ols)?;
    let mut warnings = Warnings::of_model(equations.mechanism().warnings());
    let rank = link.regrouping.rank();
    let open: Vec<String> = fit.undetermined().into_iter().map(Into::into).collect();
    if fit.seen < rank {
        warnings.push(Warning::PayloadNotExcited { robot: None, excited: fit.seen, of: rank, open });
    } else if !open.is_empty() {
        warnings.push(Warning::PayloadNotIdentifiable { open });
    }
    let values: [f64; 10] = std::array::from_fn(|i| fit.payload[i]);
    let (parameters, proven) = match options.estimator {
        Estimator::Ols | Estimator::Wls => (Parameters::from(values), None),
        _ => {
            let errors = std::array::from_fn(|i| fit.covariance[(i, i)].max(0.0).sqrt());
            let prior = measured_prior(&values, &errors);
            let Reduced { a, b, .. } = problem.without_common(&problem.weights)?;
            let found = possible_body(a, b, &prior, options, fit.seen == 10)?;
            warnings.extend(found.warning);
            (found.parameters, Some((found.gap, found.covariance)))
        }
    };
    let unknowns = problem.unknowns(&fit, &parameters);
    let residuals = validate(equations, loaded, &unknowns)?;
    let free = match proven {
        Some(_) => {
            let unconstrained = problem.unknowns(&fit, &Parameters::from(values));
            Some(validate(equations, loaded, &unconstrained)?)
        }
        None => None,
    };
    let criticism = Criticism::of_payload(&residuals, free.as_ref());
    let inertia = Inertia::from_parameters(&parameters);
    let mut body = BodyEstimate::new("payload", &inertia)?;
    if let Some((_, covariance)) = &proven {
        body = body.with_errors(|i, j| covariance[(i, j)]);
        // Undetermined quantities come from the prior, which contains no knowledge here.
        if fit.is_open(0) {
            body.mass_std_error = None;
        }
        if (0..4).any(|i| fit.is_open(i)) {
            body.com_std_error = None;
        }
    }
    let base_parameters = combinations(link, &parameters, &fit.covariance, &fit.open)?;
    let mechanism = equations.mechanism();
    let mut joint_estimates = joints(equations, mechanism, &unknowns, None, &[]);
    if let Unloaded::Model { free } = unloaded {
        // Values of the model that were not estimated are not part of the result.
        for (&(v, term), _) in equations.terms.iter().zip(free).filter(|(_, free)| !**free) {
            let joint = &mut joint_estimates[v];
            match term {
                Term::Viscous => joint.viscous = None,
                Term::Coulomb => joint.coulomb = None,
                Term::RotorInertia => joint.rotor_inertia = None,
                _ => {}
            }
        }
    }
    Ok(Identification {
        unexcited: fit.unexcited,
        essential: None,
        covariance: Vec::new(),
        intervals: Vec::new(),
        posterior: None,
        names: Vec::new(),
        value_covariance: DMatrix::zeros(0, 0),
        schema: "inertial/identification/1",
        model: ModelSize { name: mechanism.name().to_owned(), bodies: 1, dof: mechanism.nv() },
        estimator: options.estimator.result_name(options.solver),
        samples: problem.samples,
        rank,
        excited: fit.seen,
        least_norm: None,
        bodies: vec![body],
        joints: joint_estimates,
        base_parameters,
        fit_relative_rms: residuals.relative_rms,
        fit_relative_rms_raw: residuals.relative_rms_raw,
        fit_left_out: residuals.left_out,
        fit: residuals.joints,
        validation: Vec::new(),
        validation_relative_rms: None,
        validation_relative_rms_raw: None,
        validation_left_out: None,
        duality_gap: proven.map(|(gap, _)| gap),
        warnings,
        parameters: parameters.as_slice().to_vec(),
        values: unknowns,
        singular_values: Vec::new(),
        motors: Vec::new(),
        joint_terms: Vec::new(),
        terms: Vec::new(),
        verdict: Some(criticism.verdict),
        reasons: criticism.reasons,
        deviations: Vec::new(),
        lag: None,
        rotors: Vec::new(),
    })
}

/// Equations of one coordinate in one log, with columns `[common | payload | force]`.
struct ChannelRows {
    channel: usize,
    matrix: DMatrix<f64>,
    count: f64,
    independent: f64,
}

struct Problem {
    rows: Vec<ChannelRows>,
    /// Number of common unknowns.
    common: usize,
    channels: usize,
    samples: usize,
    /// Weight of each coordinate, `√independent/noise`.
    weights: Vec<f64>,
    /// Map of common unknowns to unknowns of the equations, and the values of the latter at zero common unknowns.
    to_unknowns: DMatrix<f64>,
    known: DVector<f64>,
    effect: DMatrix<f64>,
}

struct Fit {
    common: DVector<f64>,
    payload: DVector<f64>,
    covariance: DMatrix<f64>,
    seen: usize,
    /// Combinations of payload parameters that do not affect any force: undetermined directions, as vectors and by name.
    open: Vec<Parameters<f64>>,
    unexcited: Vec<BTreeMap<String, f64>>,
}

impl Fit {
    /// Returns whether the data do not determine a parameter.
    fn is_open(&self, parameter: usize) -> bool {
        self.open.iter().any(|direction| direction[parameter] != 0.0)
    }

    /// Returns the names of the undetermined quantities.
    fn undetermined(&self) -> Vec<&'static str> {
        let quantities = [("mass", 0..1), ("centre of mass", 0..4), ("inertia", 4..10)];
        let open = quantities.into_iter().filter(|(_, range)| range.clone().any(|i| self.is_open(i)));
        open.map(|(name, _)| name).collect()
    }
}

impl Problem {
    fn new(
        equations: &Equations<'_>,
        link: &PayloadLink,
        loaded: &Summary,
        unloaded: Unloaded<'_>,
    ) -> Result<Self> {
        let (n, rank) = (equations.len(), equations.rank());
        let mut effect = DMatrix::zeros(n, 10);
        effect.rows_mut(0, rank).copy_from(&link.effect);
        let (to_unknowns, known) = match unloaded {
            Unloaded::Model { free } => {
                if free.len() != equations.terms.len() {
                    let (expected, found) = (equations.terms.len(), free.len());
                    return Err(Error::Dimension { what: "choice of joint terms", expected, found });
                }
                let chosen: Vec<usize> = (0..free.len()).filter(|&i| free[i]).collect();
                let mut map = DMatrix::zeros(n, chosen.len());
                let mut known = DVector::from_vec(equations.model_values()?);
                for (j, &i) in chosen.iter().enumerate() {
                    map[(rank + i, j)] = 1.0;
                    known[rank + i] = 0.0;
                }
                (map, known)
            }
            Unloaded::Log(_) => (DMatrix::identity(n, n), DVector::zeros(n)),
        };
        let mut out = Self {
            rows: Vec::new(),
            common: to_unknowns.ncols(),
            channels: equations.channels.len(),
            samples: loaded.samples,
            weights: vec![1.0; equations.channels.len()],
            to_unknowns,
            known,
            effect,
        };
        out.push(equations, loaded, true);
        if let Unloaded::Log(summary) = unloaded {
            summary.check(equations)?;
            out.samples += summary.samples;
            out.push(equations, summary, false);
        }
        let found: f64 = out.rows.iter().map(|r| r.count).sum();
        let needed = out.common + link.regrouping.rank();
        if found < needed as f64 {
            return Err(Error::TooFewForces { found, unknowns: needed });
        }
        Ok(out)
    }

    fn push(&mut self, equations: &Equations<'_>, summary: &Summary, with_payload: bool) {
        let channels = equations.channels.iter().zip(&summary.factors).enumerate();
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

    /// Reduces all weighted rows.
    fn reduced(&self, weights: &[f64]) -> Result<DMatrix<f64>> {
        let mut out = Triangle::new(self.common + 11);
        for rows in &self.rows {
            let mut block = &rows.matrix * weights[rows.channel];
            let count = block.nrows();
            out.absorb(block.as_mut_slice(), count)?;
        }
        Ok(out.matrix())
    }

    /// Returns the columns of the payload and the forces, after elimination of the common unknowns.
    fn without_common(&self, weights: &[f64]) -> Result<Reduced> {
        let all = self.reduced(weights)?;
        let common = if self.common == 0 {
            None
        } else {
            Some(Scaled::new(&all.columns(0, self.common).into_owned())?)
        };
        let own = all.columns(self.common, 10).into_owned();
        let norms = norms(&own);
        let (mut a, mut b) = (own, all.column(self.common + 10).into_owned());
        if let Some(common) = &common {
            let range = common.svd.u.columns(0, common.seen);
            a -= range * (range.transpose() * &a);
            b -= range * (range.transpose() * &b);
        }
        Ok(Reduced { all, common, norms, a, b })
    }

    fn fit(&mut self, ordinary: bool) -> Result<Fit> {
        let mut fit = self.solve()?;
        let mut noise = self.noise(&fit)?;
        if ordinary {
            // The same noise for all coordinates.
            let (mut sum, mut count) = (0.0, 0.0);
            for rows in &self.rows {
                sum += noise[rows.channel].powi(2) * rows.count;
                count += rows.count;
            }
            noise.fill((sum / count).sqrt());
            self.weigh(&noise);
            return self.solve();
        }
        for _ in 0..REPEATS {
            self.weigh(&noise);
            fit = self.solve()?;
            let next = self.noise(&fit)?;
            let change = noise.iter().zip(&next).map(|(a, b)| (a / b - 1.0).abs()).fold(0.0, f64::max);
            noise = next;
            if change < SETTLED {
                break;
            }
        }
        self.weigh(&noise);
        self.solve()
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
        let Reduced { all, common, norms, a, b } = self.without_common(&self.weights)?;
        let payload = Scaled::with_norms(&a, &norms)?;
        let values = payload.solve(&b);
        let rest = all.column(self.common + 10) - all.columns(self.common, 10) * &values;
        let open = payload.open();
        let named = |direction: &Parameters<f64>| {
            let parts = direction.iter().enumerate().filter(|(_, x)| **x != 0.0);
            parts.map(|(i, x)| (format!("payload.{}", PARAMETER_NAMES[i]), *x)).collect()
        };
        Ok(Fit {
            unexcited: open.iter().map(named).collect(),
            open,
            common: common.map_or_else(|| DVector::zeros(0), |c| c.solve(&rest)),
            covariance: &payload.root * payload.root.transpose(),
            seen: payload.seen,
            payload: values,
        })
    }

    /// Returns the noise of each coordinate, corrected for the degrees of freedom of the fit.
    fn noise(&self, fit: &Fit) -> Result<Vec<f64>> {
        let all = self.reduced(&self.weights)?;
        let root = Scaled::new(&all.columns(0, self.common + 10).into_owned())?.root;
        let solution =
            DVector::from_iterator(self.common + 10, fit.common.iter().chain(&fit.payload).copied());
        let mut sums = vec![(0.0, 0.0, 0.0); self.channels];
        for rows in &self.rows {
            let a = rows.matrix.columns(0, self.common + 10);
            let force = rows.matrix.column(self.common + 10);
            let taken = (a * &root).norm_squared() * self.weights[rows.channel].powi(2);
            let sum = &mut sums[rows.channel];
            sum.0 += (force - a * &solution).norm_squared();
            sum.1 += rows.count - taken * rows.count / rows.independent;
            sum.2 += force.norm_squared() / rows.count;
        }
        let least = LEAST_NOISE.powi(2) * sums.iter().map(|s| s.2).fold(0.0, f64::max);
        let of = |&(residual, free, _): &(f64, f64, f64)| (residual / free.max(1.0)).max(least).sqrt();
        Ok(sums.iter().map(of).collect())
    }

    /// Returns the unknowns of the equations for the robot with its payload.
    fn unknowns(&self, fit: &Fit, payload: &Parameters<f64>) -> Vec<f64> {
        let payload = DVector::from_column_slice(payload.as_slice());
        (&self.known + &self.to_unknowns * &fit.common + &self.effect * payload).as_slice().to_vec()
    }
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

/// Weighted problem with its common unknowns eliminated.
struct Reduced {
    /// Factor before the elimination.
    all: DMatrix<f64>,
    common: Option<Scaled>,
    /// Norms of the columns of the payload before the elimination.
    norms: DVector<f64>,
    a: DMatrix<f64>,
    b: DVector<f64>,
}

fn norms(a: &DMatrix<f64>) -> DVector<f64> {
    DVector::from_fn(a.ncols(), |j, _| a.column(j).norm())
}

/// Singular value decomposition of columns in units of their norms.
pub(crate) struct Scaled {
    pub svd: Svd,
    scale: DVector<f64>,
    pub seen: usize,
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
        let scale = norms.map(|s| if s > UNSEEN * largest { s.recip() } else { 0.0 });
        let svd = Svd::new(&(a * DMatrix::from_diagonal(&scale)))?;
        let seen = svd.values.iter().filter(|&&s| s > UNSEEN).count();
        let mut root = svd.v.columns(0, seen).into_owned();
        for j in 0..seen {
            root.column_mut(j).unscale_mut(svd.values[j]);
        }
        for (mut row, s) in root.row_iter_mut().zip(scale.iter()) {
            row *= *s;
        }
        Ok(Self { svd, scale, seen, root })
    }

    /// Returns the directions of payload parameters that the rows do not determine.
    pub fn open(&self) -> Vec<Parameters<f64>> {
        let direction = |(_, parts): (_, Vec<(usize, f64)>)| {
            let mut out = Parameters::zeros();
            parts.into_iter().for_each(|(i, x)| out[i] = x);
            out
        };
        named_directions(&self.svd.null_space(self.seen), &self.scale).into_iter().map(direction).collect()
    }

    pub fn solve(&self, b: &DVector<f64>) -> DVector<f64> {
        self.svd.solve(b, self.seen, 0.0).component_mul(&self.scale)
    }
}
