//! Parameters that bodies can have: least squares over the cones of possible bodies, with an entropic prior.
//!
//! Minimises over all parameters `π` (ten per body) and joint terms `φ`
//! `½ Σ_c w_c² ‖Y_c (K π, φ) − τ_c‖² + W Σ_bodies (tr(P₀⁻¹ P) − log det P)` subject to `P ⪰ 0` for every body, friction and
//! rotor inertias `≥ 0`, where `K` takes parameters to base parameters.
//!
//! **The prior's weight.** Forces are divided by their noise (`w_c`, from weighted least squares, counting independent
//! samples only), so the first sum is a log-likelihood and the prior one of a body known to about `1/√W` of itself: near
//! `P₀` it is `½ W ‖P₀^{-½} (P − P₀) P₀^{-½}‖²`. Against a direction that the data know to the relative error `ε` it moves
//! the estimate by about `W ε` of its standard error (times the distance to the prior in units of the body itself): with
//! the default `W = 1` what is known to ten percent moves by a tenth of its error, what is known better by less, and what
//! the data do not show stays at the prior.

use nalgebra::{DMatrix, DVector};

use super::equations::Equations;
use super::least_squares::{LeastSquares, stacked};
use super::prior::Prior;
use super::summary::Summary;
use crate::mechanism::BodyKind;
use crate::optimize::{Cone, ConicLeastSquares, Options};
use crate::spatial::PseudoInertia;
use crate::{Error, Result};

/// Noise is taken as at least so much of a joint's force: the solver's squared factors carry no more digits.
const LEAST_NOISE: f64 = 1e-6;

/// Pull of joint terms towards zero, relative to what the data say: bounds terms that the motion does not show, and moves
/// others by a hundred-millionth.
const RIDGE: f64 = 1e-8;

/// A consistent estimate and what proves it.
#[derive(Debug, Clone)]
pub struct ConsistentFit {
    /// All parameters, in the order of [`crate::mechanism::Mechanism::parameters`]; every body is possible.
    pub parameters: Vec<f64>,
    /// The unknowns of the equations: base parameters, then joint terms.
    pub values: Vec<f64>,
    /// Cost reached.
    pub cost: f64,
    /// No possible parameters have a cost below this.
    pub lower_bound: f64,
    /// Newton steps.
    pub steps: usize,
    /// Whether cost and bound meet to nine digits.
    pub converged: bool,
}

impl ConsistentFit {
    /// Solves, with the noise found by weighted least squares.
    pub fn new(
        equations: &Equations<'_>,
        summary: &Summary,
        noise: &LeastSquares,
        prior: &Prior,
        prior_weight: f64,
    ) -> Result<Self> {
        if !(prior_weight > 0.0 && prior_weight.is_finite()) {
            return Err(Error::Numeric(format!(
                "the prior's weight is {prior_weight}, expected a number above zero"
            )));
        }
        let problem = Problem::new(equations, summary, noise, prior, prior_weight)?;
        let solution = problem.conic.solve(&problem.start, &Options::default(), |_, _| true)?;
        let values = &problem.to_unknowns * &solution.x;
        Ok(Self {
            parameters: solution.x.as_slice()[..equations.regrouping.parameters].to_vec(),
            values: values.as_slice().to_vec(),
            cost: solution.cost,
            lower_bound: solution.lower_bound,
            steps: solution.steps,
            converged: solution.converged,
        })
    }
}

/// The problem in the solver's terms.
struct Problem {
    conic: ConicLeastSquares,
    start: DVector<f64>,
    /// From parameters and terms to the unknowns of the equations.
    to_unknowns: DMatrix<f64>,
}

impl Problem {
    fn new(
        equations: &Equations<'_>,
        summary: &Summary,
        noise: &LeastSquares,
        prior: &Prior,
        prior_weight: f64,
    ) -> Result<Self> {
        let (mechanism, regrouping) = (equations.mechanism(), &equations.regrouping);
        let (n, rank) = (regrouping.parameters, equations.rank());
        let width = n + equations.terms.len();
        let mut to_unknowns = DMatrix::zeros(equations.len(), width);
        for (i, combination) in regrouping.combinations.iter().enumerate() {
            for &(column, x) in combination {
                to_unknowns[(i, column)] = x;
            }
        }
        (0..equations.terms.len()).for_each(|i| to_unknowns[(rank + i, n + i)] = 1.0);

        let factor = stacked(equations, summary, &bounded_weights(summary, noise), true)?.matrix();
        let a = factor.columns(0, equations.len()) * &to_unknowns;
        let b = factor.column(equations.len()).into_owned();
        let mut conic = ConicLeastSquares {
            gram: a.transpose() * &a,
            rhs: a.transpose() * &b,
            constant: 0.5 * b.norm_squared(),
            cones: Vec::new(),
            nonnegative: Vec::new(),
            inequalities: Vec::new(),
        };
        let mut start = DVector::zeros(width);
        let largest = conic.gram.diagonal().amax().max(f64::MIN_POSITIVE);
        for block in mechanism.parameter_blocks() {
            let body = &prior.bodies[block.body];
            if mechanism.bodies()[block.body].kind == BodyKind::SymmetricRotor {
                let given = mechanism.bodies()[block.body].inertia.rotational[(2, 2)];
                let j = block.offset;
                conic.nonnegative.push(j);
                start[j] = if given > 0.0 { given } else { body.rotational[(2, 2)] };
                // Where the model gives one, known to about 1/√W of itself, as bodies are.
                let (value, strength) = if given > 0.0 {
                    (given, prior_weight / (given * given))
                } else {
                    (0.0, RIDGE * largest)
                };
                conic.pull(j, value, strength);
            } else {
                let given = PseudoInertia::from(body).0;
                let inverse = given
                    .cholesky()
                    .ok_or_else(|| Error::Numeric("a prior body is not strictly possible".into()))?;
                start.rows_mut(block.offset, 10).copy_from(&body.parameters());
                conic.cones.push(Cone { offset: block.offset, prior_weight, prior: inverse.inverse() });
            }
        }
        for (i, &(_, term)) in equations.terms.iter().enumerate() {
            let (j, found) = (n + i, noise.values[rank + i]);
            let seen = conic.gram[(j, j)];
            start[j] = found;
            if term.is_nonnegative() {
                conic.nonnegative.push(j);
                // Inside, and not so near zero that the solver has to climb out.
                let unit = if seen > 0.0 { (2.0 * conic.constant / seen).sqrt() } else { 1.0 };
                start[j] = found.max(1e-3 * unit).max(f64::MIN_POSITIVE);
            }
            conic.pull(j, 0.0, RIDGE * if seen > 0.0 { seen } else { largest });
        }
        Ok(Self { conic, start, to_unknowns })
    }
}

fn bounded_weights(summary: &Summary, noise: &LeastSquares) -> Vec<f64> {
    let weights = summary.factors.iter().zip(&noise.weights);
    weights
        .map(|(factor, &weight)| {
            let tau = factor.sums(|_| 0.0).tau;
            if tau > 0.0 { weight.min((factor.count as f64 / tau).sqrt() / LEAST_NOISE) } else { weight }
        })
        .collect()
}
