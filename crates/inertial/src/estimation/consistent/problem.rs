//! Consistent estimator: least squares over physically possible bodies, with a prior.
//!
//! Over all parameters $\pi$ (ten per body) and joint terms $\varphi$ this finds
//! $$\min_{\pi, \varphi} \quad \frac12 \sum_c w_c^2 \lVert Y_c (K \pi, \varphi) - \tau_c \rVert^2 + W \sum_i d(P_{0,i}, P_i)
//! \qquad \text{where } P_i \succeq 0 \text{ for every body } i,$$
//! friction and rotor inertias are not negative, and [`Bounds`] hold; $K$ takes parameters to base parameters. The distance to
//! the prior body is
//! - entropic: $d = \operatorname{tr}(P_0^{-1} P) - \log \det P$, which keeps bodies strictly inside the cone;
//! - Euclidean: $d = \frac12 \lVert P_0^{-1/2} (P - P_0) P_0^{-1/2} \rVert^2$, its second-order part at $P_0$. (The plain distance of parameters would
//!   depend on units and frames; measured in the prior body it does not.) Bodies may lie on the boundary.
//!
//! **The prior's weight.** Forces are divided by their noise (`w_c`, from weighted least squares, counting independent
//! samples only), so the first sum is a log-likelihood and the prior one of a body known to about `1/√W` of itself. With the
//! data's information `A` and the prior's `B` the prior moves the estimate by `(A + B)⁻¹ B Δ`, `Δ` the distance to the prior:
//! against a direction that the data know to the relative error `ε` by about `W ε` of its standard error (times that distance
//! in units of the body itself). With the default `W = 1` what is known to ten percent moves by a tenth of its error, what
//! is known better by less, and what the data do not show stays at the prior.
//!
//! Joint terms have a prior too (module `joint_term_prior`): so wide that it matters only where the data are almost silent.
//!
//! **Solvers.** All find the same optimum of this convex problem and prove it by its lower bound: [`Solver::Barrier`] in the
//! parameters, [`Solver::Manifold`] in `(m, c, Q, L)` (paper 001, for any number of bodies), [`Solver::LogCholesky`] in the
//! logarithms of a triangular factor.

#![allow(clippy::doc_markdown, reason = "formulas have indices")]

use nalgebra::{DMatrix, DVector};

use crate::estimation::consistent::bounds::Bounds;
use crate::estimation::consistent::joint_term_prior::{grounded_rotor_widths, rotor_body_widths, widths};
use crate::estimation::consistent::prior::Prior;
use crate::estimation::equations::Equations;
use crate::estimation::estimator::Solver;
use crate::estimation::least_squares::fit::{LeastSquares, stacked};
use crate::estimation::least_squares::jackknife::{BlockScore, Jackknife, information};
use crate::estimation::reduction::summary::Summary;
use crate::identifiability::Regrouping;
use crate::linalg::{Cholesky, Svd, product};
use crate::mechanism::{BodyKind, Mechanism};
use crate::optimize::log_cholesky::LogCholesky;
use crate::optimize::manifold::Principal;
use crate::optimize::{Cone, ConicLeastSquares, Options, Solution, SolverStatus, chart, pseudo};
use crate::spatial::PseudoInertia;
use crate::{Error, Result};

/// Noise is taken as at least so much of a joint's force: the solver's squared factors carry no more digits.
pub(crate) const LEAST_NOISE: f64 = 1e-6;

/// Distance of a body from its prior.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PriorKind {
    /// `tr(P₀⁻¹ P) − log det P`.
    #[default]
    Entropic,
    /// `½ ‖P₀^{-½} (P − P₀) P₀^{-½}‖²`.
    Euclidean,
}

/// Options of the consistent estimator.
#[derive(Debug, Clone)]
pub struct Consistency<'a> {
    /// Solver to use.
    pub solver: Solver,
    /// Prior bodies.
    pub prior: &'a Prior,
    /// Distance to them.
    pub prior_kind: PriorKind,
    /// Weight.
    pub prior_weight: f64,
    /// Bounds on bodies; only for [`Solver::Barrier`].
    pub bounds: Option<&'a Bounds>,
    /// Stopping criteria.
    pub options: Options,
}

impl<'a> Consistency<'a> {
    /// The default solver with an entropic prior.
    pub fn new(prior: &'a Prior, prior_weight: f64) -> Self {
        let (solver, prior_kind) = (Solver::default(), PriorKind::default());
        Self { solver, prior, prior_kind, prior_weight, bounds: None, options: Options::default() }
    }
}

/// A consistent estimate and what proves it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ConsistentFit {
    /// All inertial parameters, in the order of [`crate::mechanism::Mechanism::parameters`]; every body is possible.
    pub parameters: Vec<f64>,
    /// The unknowns of the equations: base parameters, then joint terms.
    pub values: Vec<f64>,
    /// Rotor inertias that the model gives and the data cannot separate from the inertia of links, by row.
    pub rotors: Vec<(usize, f64)>,
    /// Covariance: the inverse of the data's information plus the prior's curvature at the estimate, the data's part of the
    /// variances by the jackknife over the blocks of the logs. It is that of least squares where the data are strong and as wide as the
    /// prior where they are silent. Constraints that hold with equality would only make it smaller and are not counted.
    pub covariance: DMatrix<f64>,
    /// Covariance of all inertial parameters: where only combinations are excited, each alone is as uncertain as the prior leaves it.
    pub parameter_covariance: DMatrix<f64>,
    /// Cost reached.
    pub cost: f64,
    /// No possible parameters have a cost below this.
    pub lower_bound: f64,
    /// Newton steps.
    pub steps: usize,
    /// Reason why the solver ended; [`SolverStatus::Converged`] where cost and bound meet to nine digits.
    pub status: SolverStatus,
}

impl ConsistentFit {
    /// Warning about a solve that ended without the proof asked for.
    pub fn note(&self) -> Option<String> {
        unproven(self.status, self.cost, self.lower_bound)
    }

    /// Solves, with the noise found by weighted least squares.
    pub fn new(
        equations: &Equations<'_>,
        summary: &Summary,
        noise: &LeastSquares,
        wanted: &Consistency<'_>,
    ) -> Result<Self> {
        Self::watched(equations, summary, noise, wanted, |_, _| true)
    }

    /// Solves; `watch` sees every iterate (all parameters, then joint terms) and its cost, and may stop by returning
    /// `false`: what is returned then is the best so far, and possible.
    pub fn watched(
        equations: &Equations<'_>,
        summary: &Summary,
        noise: &LeastSquares,
        wanted: &Consistency<'_>,
        watch: impl FnMut(&DVector<f64>, f64) -> bool,
    ) -> Result<Self> {
        let problem = ConsistentProblem::new(equations, summary, noise, wanted)?;
        let solution = problem.solve(wanted, watch)?;
        let values = problem.unknowns(&solution.x);
        let weights = bounded_weights(summary, noise);
        let scores = summary.scores(equations, &weights, &values);
        let [covariance, parameter_covariance] =
            problem.covariances(&solution.x, equations.regrouping.parameters, &scores)?;
        Ok(Self {
            parameters: solution.x.as_slice()[..equations.regrouping.parameters].to_vec(),
            rotors: {
                let first = equations.regrouping.parameters + equations.terms.len();
                let found = &solution.x.as_slice()[first..];
                equations.grounded_rotors().zip(found).map(|((row, _, _), &x)| (row, x)).collect()
            },
            covariance,
            parameter_covariance,
            values: values.as_slice().to_vec(),
            cost: solution.cost,
            lower_bound: solution.lower_bound,
            steps: solution.steps,
            status: solution.status,
        })
    }

    /// Standard errors of the unknowns.
    pub fn std_errors(&self) -> Vec<f64> {
        self.covariance.diagonal().iter().map(|v| v.max(0.0).sqrt()).collect()
    }
}

/// A rotor inertia that acts like base parameters.
pub(crate) struct GroundedRotor<'a> {
    /// The base parameters that one unit of it is.
    pub effect: &'a DVector<f64>,
    /// The model's value, zero where it gives none.
    pub given: f64,
    /// How wide its prior is at weight one.
    pub width: f64,
}

/// The problem in the solver's terms.
#[derive(Debug, Clone)]
pub struct ConsistentProblem {
    /// Over all parameters, then joint terms.
    pub conic: ConicLeastSquares,
    /// A strictly feasible point.
    pub start: DVector<f64>,
    /// From parameters and terms to the unknowns of the equations.
    pub(super) to_unknowns: DMatrix<f64>,
}

impl ConsistentProblem {
    /// Creates the problem of a summary, with the noise found by weighted least squares.
    pub fn new(
        equations: &Equations<'_>,
        summary: &Summary,
        noise: &LeastSquares,
        wanted: &Consistency<'_>,
    ) -> Result<Self> {
        Self::with_factor(equations, summary, noise, wanted, &data_factor(equations, summary, noise)?)
    }

    /// Creates the problem with other rows `[A | b]` of the data, in the unknowns of the equations.
    pub(crate) fn with_factor(
        equations: &Equations<'_>,
        summary: &Summary,
        noise: &LeastSquares,
        wanted: &Consistency<'_>,
        factor: &DMatrix<f64>,
    ) -> Result<Self> {
        let (n, rank) = (equations.regrouping.parameters, equations.rank());
        let terms = equations.terms.len();
        let grounded = grounded_rotor_widths(equations, wanted.prior)?;
        let rotors: Vec<_> = equations
            .grounded_rotors()
            .zip(grounded)
            .map(|((_, effect, given), width)| GroundedRotor { effect, given, width })
            .collect();
        let Self { mut conic, mut start, to_unknowns } =
            Self::of_bodies(equations.mechanism(), &equations.regrouping, terms, &rotors, factor, wanted)?;
        let widths = widths(equations, summary, noise, wanted.prior)?;
        let model = &equations.model_values()?[rank..];
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
            conic.pull(j, model[i], wanted.prior_weight / widths[i].powi(2));
        }
        Ok(Self { conic, start, to_unknowns })
    }

    /// Creates the problem of weighted rows `[A | b]` in the base parameters and some further, unconstrained unknowns.
    ///
    /// `rotors` are inertias that the data cannot separate from those of links. Were they counted as the link's, that would have to be a
    /// body with such moments, and its prior would pull on them.
    pub(crate) fn of_bodies(
        mechanism: &Mechanism,
        regrouping: &Regrouping,
        terms: usize,
        rotors: &[GroundedRotor<'_>],
        factor: &DMatrix<f64>,
        wanted: &Consistency<'_>,
    ) -> Result<Self> {
        let weight = wanted.prior_weight;
        if !(weight > 0.0 && weight.is_finite()) {
            return Err(Error::invalid_value("the prior's weight", weight, "a number above zero"));
        }
        let bounded = wanted.bounds.filter(|b| !b.is_empty());
        if bounded.is_some() && wanted.solver != Solver::Barrier {
            return Err(Error::Incompatible("bounds on bodies need the barrier solver".into()));
        }
        if wanted.solver == Solver::LogCholesky && wanted.prior_kind != PriorKind::Entropic {
            return Err(Error::Incompatible(
                "log-Cholesky coordinates cannot reach the boundary: they need the entropic prior".into(),
            ));
        }
        if let Some(bounds) = bounded {
            bounds.check(mechanism)?;
        }
        let (n, rank) = (regrouping.parameters, regrouping.rank());
        let (width, unknowns) = (n + terms + rotors.len(), rank + terms);
        let mut to_unknowns = DMatrix::zeros(unknowns, width);
        for (i, combination) in regrouping.combinations.iter().enumerate() {
            for &(column, x) in combination {
                to_unknowns[(i, column)] = x;
            }
        }
        (0..terms).for_each(|i| to_unknowns[(rank + i, n + i)] = 1.0);
        for (k, rotor) in rotors.iter().enumerate() {
            to_unknowns.view_mut((0, n + terms + k), (rank, 1)).copy_from(rotor.effect);
        }

        let rows = factor.columns(0, unknowns).into_owned();
        let forces = factor.column(unknowns).into_owned();
        let mut conic = ConicLeastSquares::of_rows(rows, to_unknowns.clone(), forces);
        let mut start = DVector::zeros(width);
        let widths = rotor_body_widths(mechanism, wanted.prior)?;
        for block in mechanism.parameter_blocks() {
            let (body, offset) = (&wanted.prior.bodies[block.body], block.offset);
            let known = &mechanism.bodies()[block.body];
            if known.kind == BodyKind::SymmetricRotor {
                let given = known.inertia.rotational[(2, 2)];
                conic.nonnegative.push(offset);
                start[offset] = if given > 0.0 { given } else { body.rotational[(2, 2)] };
                conic.pull(offset, given.max(0.0), weight / widths[block.body].powi(2));
                continue;
            }
            let given = PseudoInertia::from(body).0.cholesky().ok_or_else(|| {
                Error::Infeasible(format!("the prior of {} is not strictly possible", known.name))
            })?;
            let cone = match wanted.prior_kind {
                PriorKind::Entropic => Cone { offset, prior_weight: weight, prior: given.inverse() },
                PriorKind::Euclidean => {
                    conic.pull_body(offset, &given, weight);
                    Cone::new(offset)
                }
            };
            conic.cones.push(cone);
            let mut inside = *body;
            if let Some(own) = bounded.and_then(|b| b.bodies.get(&known.name)) {
                conic.inequalities.extend(own.inequalities(offset));
                inside = own.inside(&known.name, body)?;
            }
            start.rows_mut(offset, 10).copy_from(&inside.parameters());
        }
        for (k, rotor) in rotors.iter().enumerate() {
            let place = n + terms + k;
            conic.nonnegative.push(place);
            conic.pull(place, rotor.given, weight / rotor.width.powi(2));
            start[place] = if rotor.given > 0.0 { rotor.given } else { 0.1 * rotor.width };
        }
        Ok(Self { conic, start, to_unknowns })
    }

    /// Solves by the wanted method.
    pub fn solve(
        &self,
        wanted: &Consistency<'_>,
        mut watch: impl FnMut(&DVector<f64>, f64) -> bool,
    ) -> Result<Solution> {
        let (problem, start, options) = (&self.conic, &self.start, &wanted.options);
        let has_time = options.start();
        let watch = |x: &DVector<f64>, cost| watch(x, cost) && has_time();
        match wanted.solver {
            Solver::Barrier => problem.solve(start, options, watch),
            Solver::Manifold => chart::solve::<Principal>(problem, start, options, watch),
            Solver::LogCholesky => chart::solve::<LogCholesky>(problem, start, options, watch),
        }
    }

    /// The unknowns of the parameters and terms `x`.
    pub(crate) fn unknowns(&self, x: &DVector<f64>) -> DVector<f64> {
        &self.to_unknowns * x
    }

    /// Computes the covariance of the unknowns at the estimate `x`.
    pub(crate) fn covariance(&self, x: &DVector<f64>) -> Result<DMatrix<f64>> {
        covariance(&self.conic, x, &self.to_unknowns)
    }

    /// Of the unknowns and of the `count` inertial parameters, which come first among the variables. Where the logs have blocks,
    /// the data's part of both is that of the jackknife.
    fn covariances(
        &self,
        x: &DVector<f64>,
        count: usize,
        scores: &[BlockScore],
    ) -> Result<[DMatrix<f64>; 2]> {
        let n = self.to_unknowns.nrows();
        let mut map = DMatrix::zeros(n + count, x.len());
        map.view_mut((0, 0), (n, x.len())).copy_from(&self.to_unknowns);
        map.view_mut((n, 0), (count, count)).fill_with_identity();
        let both = covariance(&self.conic, x, &map)?;
        let mut unknowns = both.view((0, 0), (n, n)).into_owned();
        let mut parameters = both.view((n, n), (count, count)).into_owned();
        let cross = both.view((n, 0), (count, n)).into_owned();
        let root = Root::new(&unknowns)?;
        if let Some(jackknife) = Jackknife::new(scores, &root.factor) {
            let back = product(&cross, &root.inverse);
            let seen = product(&root.factor.transpose(), &product(&information(scores, n), &root.factor));
            let growth = jackknife.growth(&root.factor, &seen);
            for (covariance, map) in [(&mut unknowns, &root.factor), (&mut parameters, &back)] {
                // The rest is the prior's.
                let shown = product(&product(map, &seen), &map.transpose());
                *covariance += jackknife.covariance(map, &seen, growth) - shown;
            }
        }
        Ok([unknowns, parameters])
    }
}

/// A root of a covariance, and the transposed inverse of that root; directions without variance are left out.
struct Root {
    factor: DMatrix<f64>,
    inverse: DMatrix<f64>,
}

impl Root {
    fn new(covariance: &DMatrix<f64>) -> Result<Self> {
        // Unknowns differ in scale by many orders.
        let scale = covariance.diagonal().map(|d| d.max(0.0).sqrt());
        let scaled = |i: usize, j: usize| {
            let size = scale[i] * scale[j];
            if size > 0.0 { covariance[(i, j)] / size } else { 0.0 }
        };
        // Singular vectors of a covariance are its eigenvectors.
        let (n, svd) = (scale.len(), Svd::new(&DMatrix::from_fn(scale.len(), scale.len(), scaled))?);
        let seen = svd.rank(1e-13).rank;
        let size = |k: usize| svd.values[k].sqrt();
        Ok(Self {
            factor: DMatrix::from_fn(n, seen, |i, k| scale[i] * svd.v[(i, k)] * size(k)),
            inverse: DMatrix::from_fn(n, seen, |i, k| {
                if scale[i] > 0.0 { svd.v[(i, k)] / size(k) / scale[i] } else { 0.0 }
            }),
        })
    }
}

/// Covariance of what `map` makes of the variables at the optimum `x`: the inverse of the data's information and the priors'
/// curvature.
pub(crate) fn covariance(
    conic: &ConicLeastSquares,
    x: &DVector<f64>,
    map: &DMatrix<f64>,
) -> Result<DMatrix<f64>> {
    let mut information = conic.gram.clone();
    for cone in conic.cones.iter().filter(|c| c.prior_weight > 0.0) {
        if let Some(factor) = cone.matrix(x).cholesky() {
            let mut block = information.fixed_view_mut::<10, 10>(cone.offset, cone.offset);
            block += pseudo::curvature(&factor.inverse()) * cone.prior_weight;
        }
    }
    // Rows and columns differ in scale by many orders.
    let scale = information.diagonal().map(|d| if d > 0.0 { d.sqrt().recip() } else { 1.0 });
    for (i, j) in (0..x.len()).flat_map(|i| (0..x.len()).map(move |j| (i, j))) {
        information[(i, j)] *= scale[i] * scale[j];
    }
    let map = map * DMatrix::from_diagonal(&scale);
    let mut columns = map.transpose();
    // Data without noise count more than the prior by more than the digits of a number: what of it rounding has made
    // negative is taken as that rounding.
    let shifted = |exponent: i32| {
        let shift = 10.0_f64.powi(exponent);
        Cholesky::new(&DMatrix::from_fn(x.len(), x.len(), |i, j| {
            information[(i, j)] + if i == j { shift } else { 0.0 }
        }))
    };
    let factor = Cholesky::new(&information).or_else(|_| shifted(-14)).or_else(|_| shifted(-12))?;
    factor.solve_in_place(&mut columns)?;
    Ok(map * columns)
}

/// Warning about a solve that ended without the proof asked for.
pub(crate) fn unproven(status: SolverStatus, cost: f64, lower_bound: f64) -> Option<String> {
    let gap = cost - lower_bound;
    let how = if gap.is_finite() {
        format!("with a gap of {gap:.1e}")
    } else {
        "without any proof of how good it is".to_owned()
    };
    let said = format!("the optimization stopped {how} at cost {cost:.6e}: better bodies may exist");
    (!status.is_converged()).then_some(said)
}

/// Rows `[A | b]` of the data in the unknowns of the equations, in units of their noise.
pub(crate) fn data_factor(
    equations: &Equations<'_>,
    summary: &Summary,
    noise: &LeastSquares,
) -> Result<DMatrix<f64>> {
    Ok(stacked(equations, summary, &bounded_weights(summary, noise), true)?.matrix())
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
