//! Identification of drive gains: torque is a measured current times an unknown gain.
//!
//! The force of joint `j` is `gⱼ τⱼ`: the logged torque (current times nominal gain) times an unknown factor. The noise is in the
//! current, so the fit minimizes `Σⱼ ‖τⱼ − (Y x + known)ⱼ/gⱼ‖²/σⱼ²`. The equations `Y x = g τ` determine unknowns and gains only
//! up to a common factor. A log with a known payload, a measured base wrench, or prior knowledge of the gains fixes this factor.

use nalgebra::{DMatrix, DVector};

use crate::estimation::equations::Equations;
use crate::estimation::identification::result::Identification;
use crate::estimation::least_squares::fit::LEAST_NOISE;
use crate::estimation::least_squares::solution::Solution;
use crate::estimation::payload::link::PayloadLink;
use crate::estimation::reduction::summary::Summary;
use crate::estimation::warning::Warning;
use crate::linalg::Triangle;
use crate::mechanism::JointType;
use crate::optimize::SolverStatus;
use crate::spatial::{Inertia, Parameters};
use crate::{Error, Result};

/// Largest number of Gauss-Newton steps, and the change of `ln g` at which the iteration stops.
const STEPS: usize = 200;
const SETTLED: f64 = 1e-10;
/// Smallest noise relative to the force of the joint. With larger weights of the data, the prior would be lost to rounding.
const LEAST_OF_OWN: f64 = 1e-6;
/// Expected distance (m) of the centre of mass of a payload from its link, as a standard deviation.
const PAYLOAD_REACH: f64 = 0.3;
/// Largest number of step halvings.
const HALVINGS: usize = 30;

/// Summary of a robot with a known payload.
#[derive(Debug, Clone, Copy)]
pub struct KnownPayload<'a> {
    /// Summary of the logs.
    pub summary: &'a Summary,
    /// Link that carries the payload.
    pub link: &'a PayloadLink,
    /// Inertia of the payload in the link frame; only its mass is used if the rest is free.
    pub payload: Inertia<f64>,
    /// Whether centre of mass and inertia are unknown.
    pub is_free: bool,
}

impl KnownPayload<'_> {
    /// Returns the standard deviations of first moments and inertia if they are free.
    fn spreads(&self) -> Vec<f64> {
        let (first, second) = (self.payload.mass * PAYLOAD_REACH, self.payload.mass * PAYLOAD_REACH.powi(2));
        if self.is_free { [[first; 3].as_slice(), &[second; 6]].concat() } else { Vec::new() }
    }

    /// Returns the known parameters; the others are zero.
    fn known(&self) -> DVector<f64> {
        let mut out = DVector::from_column_slice(self.payload.parameters().as_slice());
        if self.is_free {
            out.rows_mut(1, 9).fill(0.0);
        }
        out
    }
}

/// Gains of all drives.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Gains {
    /// Factor of the logged force of each coordinate; one for coordinates without a drive.
    pub values: Vec<f64>,
    /// Standard errors; zero for gains that are one by definition.
    pub std_errors: Vec<f64>,
    /// Reason why the iteration stopped.
    pub status: SolverStatus,
    /// Parameters of the known payload, including the estimated ones, and their standard errors; `None` without a payload.
    pub payload: Option<(Parameters, Parameters)>,
    /// Variance of each unknown due to the errors of gains and payload.
    variance: Vec<f64>,
    /// Change of the unknowns due to the known payload.
    shift: Option<DVector<f64>>,
}

/// Equations of one coordinate in one log.
struct Block {
    row: usize,
    /// Columns of the unknowns, the force, and the contribution of the known payload.
    y: DMatrix<f64>,
    tau: DVector<f64>,
    known: DVector<f64>,
    count: f64,
    independent: f64,
}

impl Gains {
    /// Estimates the gains from logs without a payload and, if available, with a known one. `spread` is the relative accuracy of
    /// the logged forces (standard deviation of `ln g`).
    pub fn new(
        equations: &Equations<'_>,
        summary: &Summary,
        loaded: Option<KnownPayload<'_>>,
        spread: f64,
    ) -> Result<Self> {
        if !(spread > 0.0 && spread.is_finite()) {
            return Err(Error::InvalidOption(format!(
                "the relative uncertainty of the gains is {spread}, expected a number above 0"
            )));
        }
        let spreads = loaded.map_or(Vec::new(), |l| l.spreads());
        let without = DMatrix::zeros(equations.len(), spreads.len());
        let mut blocks = blocks(equations, summary, &DVector::zeros(equations.len()), &without)?;
        if let Some(loaded) = loaded {
            let effect = loaded.link.effect.clone().resize_vertically(equations.len(), 0.0);
            let free = effect.columns(10 - spreads.len(), spreads.len()).into_owned();
            blocks.extend(self::blocks(equations, loaded.summary, &(&effect * loaded.known()), &free)?);
        }
        let found: f64 = blocks.iter().map(|b| b.count).sum();
        let drives = drives(equations);
        let wanted = equations.len() + drives.iter().filter(|d| **d).count();
        if found < wanted as f64 {
            return Err(Error::TooFewForces { found, unknowns: wanted });
        }
        let mut fit = Fit::new(equations.len(), blocks, drives, spread, spreads)?;
        let settled = fit.run(1.0 - wanted as f64 / found.max(1.0 + wanted as f64))?;
        let status = if settled { SolverStatus::Converged } else { SolverStatus::StepLimit };
        let (n, inverse) = (equations.len(), fit.system()?.inverse);
        let payload_places = n..n + fit.spreads.len();
        let places: Vec<usize> = fit.places.iter().flatten().copied().chain(payload_places.clone()).collect();
        let own = DMatrix::from_fn(places.len(), places.len(), |i, j| inverse[(places[i], places[j])]);
        let cross = DMatrix::from_fn(n, places.len(), |i, j| inverse[(i, places[j])]);
        let regression = own
            .clone()
            .try_inverse()
            .map(|inverse| &cross * inverse)
            .ok_or_else(|| Error::Unobservable("the data do not determine the gains".into()))?;
        let variance = (0..n).map(|i| regression.row(i).dot(&cross.row(i)).max(0.0)).collect();
        let values: Vec<f64> = fit.logs.iter().map(|k| k.exp()).collect();
        let error =
            |(place, g): (&Option<usize>, &f64)| place.map_or(0.0, |p| g * inverse[(p, p)].max(0.0).sqrt());
        let std_errors = fit.places.iter().zip(&values).map(error).collect();
        let (mut shift, mut payload) = (None, None);
        if let Some(loaded) = loaded {
            let (mut parameters, mut errors) = (loaded.known(), DVector::zeros(10));
            for (k, place) in (10 - fit.spreads.len()..).zip(payload_places) {
                (parameters[k], errors[k]) = (fit.x[place], inverse[(place, place)].max(0.0).sqrt());
            }
            shift = Some((&loaded.link.effect * &parameters).resize_vertically(n, 0.0));
            let fixed = |v: &DVector<f64>| Parameters::from_column_slice(v.as_slice());
            payload = Some((fixed(&parameters), fixed(&errors)));
        }
        Ok(Self { values, std_errors, status, payload, variance, shift })
    }

    /// Applies the gains to a summary, and removes the payload if the logs are `loaded` with it.
    pub fn apply(&self, equations: &Equations<'_>, summary: &Summary, loaded: bool) -> Result<Summary> {
        summary.check(equations)?;
        let shift = self.shift.as_ref().filter(|_| loaded);
        let mut out = summary.clone();
        for ((factor, channel), gain) in out.factors.iter_mut().zip(&equations.channels).zip(&self.values) {
            let n = factor.unknowns();
            let mut matrix = factor.triangle.matrix();
            let known = shift.map_or_else(
                || DVector::zeros(n + 2),
                |shift| matrix.columns(0, n) * shift.select_rows(&channel.unknowns),
            );
            for force in [n, n + 1] {
                let new = matrix.column(force) * *gain - &known;
                matrix.set_column(force, &new);
            }
            factor.triangle = Triangle::new(n + 2);
            factor.triangle.add_rows(matrix.as_mut_slice(), n + 2)?;
            let mut force = vec![(n, *gain)];
            if let Some(shift) = shift {
                force.extend(channel.unknowns.iter().enumerate().map(|(k, &unknown)| (k, -shift[unknown])));
            }
            let own: Vec<[(usize, f64); 1]> = (0..n).map(|k| [(k, 1.0)]).collect();
            let columns: Vec<&[(usize, f64)]> = own.iter().map(|c| &c[..]).chain([&force[..]]).collect();
            factor.grams_mut().for_each(|gram| *gram = gram.project(n + 1, &columns));
        }
        Ok(out)
    }

    /// Adds the gains to a result, and their errors to its standard errors.
    pub fn note(&self, equations: &Equations<'_>, result: &mut Identification) {
        for (joint, row) in result.joints.iter_mut().zip(0..).filter(|(_, row)| self.std_errors[*row] > 0.0) {
            joint.gain = Some(self.values[row]);
            joint.gain_std_error = Some(self.std_errors[row]);
        }
        for (parameter, variance) in result.base_parameters.iter_mut().zip(&self.variance) {
            parameter.set_std_error((parameter.std_error.powi(2) + variance).sqrt());
        }
        for (&(row, term), variance) in equations.terms.iter().zip(&self.variance[equations.rank()..]) {
            let joint = result.joints.get_mut(row);
            if let Some(error) = joint.and_then(|j| j.std_errors.get_mut(equations.short_name(term))) {
                *error = (error.powi(2) + variance).sqrt();
            }
        }
        if !self.status.is_converged() {
            result.warnings.push(Warning::GainsNotConverged);
        }
        let joints: Vec<String> = equations
            .row_names()
            .into_iter()
            .zip(self.values.iter().zip(&self.std_errors))
            .filter(|(_, (g, e))| **e > 0.2 * **g)
            .map(|(name, _)| name)
            .collect();
        if !joints.is_empty() {
            result.warnings.push(Warning::UncertainGains { joints });
        }
    }
}

/// Returns which forces are drive forces, that is not components of the wrench on a base.
fn drives(equations: &Equations<'_>) -> Vec<bool> {
    let mechanism = equations.mechanism();
    let driven = |row: usize| {
        let v = equations.tree_coordinate(row);
        let floats = |j: &&crate::mechanism::Joint| j.joint_type == JointType::Floating;
        !mechanism.joints().iter().filter(floats).any(|j| j.v_range().contains(&v))
    };
    (0..equations.channels.len()).map(|row| row < equations.coordinates() && driven(row)).collect()
}

/// Returns the equations of a summary of logs. The unknowns of the robot differ by `shift` there, and by unknowns that `further`
/// has a column for.
fn blocks(
    equations: &Equations<'_>,
    summary: &Summary,
    shift: &DVector<f64>,
    further: &DMatrix<f64>,
) -> Result<Vec<Block>> {
    summary.check(equations)?;
    let mut out = Vec::new();
    let channels = equations.channels.iter().zip(&summary.factors).enumerate();
    for (row, (channel, factor)) in channels.filter(|(_, (_, f))| f.count > 0) {
        let n = factor.unknowns();
        let own = DMatrix::from_fn(n + 1, n, |i, j| factor.triangle.at(i, j));
        let known = &own * shift.select_rows(&channel.unknowns);
        let mut y = DMatrix::zeros(n + 1, equations.len() + further.ncols());
        channel.unknowns.iter().enumerate().for_each(|(k, &x)| y.set_column(x, &own.column(k)));
        y.columns_mut(equations.len(), further.ncols())
            .copy_from(&(&own * further.select_rows(&channel.unknowns)));
        let tau = DVector::from_fn(n + 1, |i, _| factor.triangle.at(i, n));
        out.push(Block { row, y, tau, known, count: factor.count as f64, independent: factor.independent });
    }
    Ok(out)
}

struct Fit {
    blocks: Vec<Block>,
    /// Unknowns of the robot, then those of the payload.
    x: DVector<f64>,
    /// Standard deviations of the unknowns of the payload.
    spreads: Vec<f64>,
    /// `ln g` of each coordinate, and its index among the unknowns.
    logs: Vec<f64>,
    places: Vec<Option<usize>>,
    spread: f64,
    noise: Vec<f64>,
}

impl Fit {
    fn new(
        unknowns: usize,
        blocks: Vec<Block>,
        drives: Vec<bool>,
        spread: f64,
        spreads: Vec<f64>,
    ) -> Result<Self> {
        let (n, rows) = (unknowns + spreads.len(), drives.len());
        let mut place = n..;
        let places = drives.into_iter().map(|drive| drive.then(|| place.next()).flatten()).collect();
        let mut out = Self {
            blocks,
            x: DVector::zeros(n),
            spreads,
            logs: vec![0.0; rows],
            places,
            spread,
            noise: vec![1.0; rows],
        };
        // Start from the unknowns at nominal gains.
        let places = std::mem::replace(&mut out.places, vec![None; rows]);
        out.noise = out.noises(1.0);
        out.x = out.system()?.values.rows(0, n).into_owned();
        out.noise = out.noises(1.0);
        out.places = places;
        Ok(out)
    }

    /// Returns the residual of a block, unweighted, and the predicted force.
    fn residual(&self, block: &Block) -> (DVector<f64>, DVector<f64>) {
        let predicted = (&block.y * &self.x + &block.known) * (-self.logs[block.row]).exp();
        (&block.tau - &predicted, predicted)
    }

    fn weight(&self, block: &Block) -> f64 {
        (block.independent / block.count).sqrt() / self.noise[block.row]
    }

    fn cost(&self) -> f64 {
        let data: f64 =
            self.blocks.iter().map(|b| self.residual(b).0.norm_squared() * self.weight(b).powi(2)).sum();
        let payload: f64 = self.payload().map(|(_, x, spread)| (x / spread).powi(2)).sum();
        data + payload + self.logs.iter().map(|k| (k / self.spread).powi(2)).sum::<f64>()
    }

    /// Returns the indices, values and standard deviations of the unknowns of the payload.
    fn payload(&self) -> impl Iterator<Item = (usize, f64, f64)> + '_ {
        let first = self.x.len() - self.spreads.len();
        self.spreads.iter().enumerate().map(move |(k, spread)| (first + k, self.x[first + k], *spread))
    }

    /// Returns the noise of each coordinate; `free` is the ratio of degrees of freedom to equations.
    fn noises(&self, free: f64) -> Vec<f64> {
        let mut sums = vec![[0.0; 3]; self.logs.len()];
        for block in &self.blocks {
            let [residual, force, count] = &mut sums[block.row];
            *residual += self.residual(block).0.norm_squared();
            *force += block.tau.norm_squared();
            *count += block.count;
        }
        let force = |s: &[f64; 3]| if s[2] > 0.0 { s[1] / s[2] } else { 0.0 };
        let least = LEAST_NOISE.powi(2) * sums.iter().map(force).fold(f64::MIN_POSITIVE, f64::max);
        let least = |s: &[f64; 3]| least.max(LEAST_OF_OWN.powi(2) * force(s));
        sums.iter().map(|s| (s[0] / (free * s[2]).max(1.0)).max(least(s)).sqrt()).collect()
    }

    /// Solves the linearized system at the current point. The solution is the step.
    fn system(&self) -> Result<Solution> {
        let n = self.x.len();
        let width = n + self.places.iter().flatten().count() + 1;
        let mut all = Triangle::new(width);
        for block in &self.blocks {
            let (weight, gain) = (self.weight(block), self.logs[block.row].exp());
            let (residual, predicted) = self.residual(block);
            let mut rows = DMatrix::zeros(residual.len(), width);
            rows.columns_mut(0, n).copy_from(&(&block.y * (weight / gain)));
            if let Some(place) = self.places[block.row] {
                rows.set_column(place, &(&predicted * -weight));
            }
            rows.set_column(width - 1, &(residual * weight));
            all.add_rows(rows.as_mut_slice(), block.tau.len())?;
        }
        let gains = self
            .places
            .iter()
            .zip(&self.logs)
            .filter_map(|(place, log)| Some(((*place)?, *log, self.spread)));
        for (place, value, spread) in gains.chain(self.payload()) {
            let mut row = vec![0.0; width];
            (row[place], row[width - 1]) = (1.0 / spread, -value / spread);
            all.add_rows(&mut row, 1)?;
        }
        Solution::of_factor(&all.matrix(), None)
    }

    /// Iterates until the step is negligible. Returns whether the iteration converged.
    fn run(&mut self, free: f64) -> Result<bool> {
        let n = self.x.len();
        for _ in 0..STEPS {
            let step = self.system()?.values;
            let (x, logs, before) = (self.x.clone(), self.logs.clone(), self.cost());
            let mut moved = 0.0_f64;
            for halving in 0..HALVINGS {
                let size = 0.5_f64.powi(i32::try_from(halving).unwrap_or(i32::MAX));
                self.x = &x + step.rows(0, n) * size;
                moved = 0.0;
                for ((log, old), place) in self.logs.iter_mut().zip(&logs).zip(&self.places) {
                    let change = place.map_or(0.0, |p| size * step[p]);
                    *log = old + change;
                    moved = moved.max(change.abs());
                }
                // At the optimum, differences of the cost are rounding errors and the step is negligible.
                if self.cost() <= before * (1.0 + 1e-12) {
                    break;
                }
            }
            let noise = self.noises(free);
            let change = noise.iter().zip(&self.noise).map(|(a, b)| (a / b - 1.0).abs()).fold(0.0, f64::max);
            self.noise = noise;
            if moved < SETTLED && change < 1e-6 {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
