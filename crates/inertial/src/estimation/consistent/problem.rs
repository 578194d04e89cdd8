//! Consistent estimator: least squares over physically consistent bodies, with a prior.
//!
//! Over all parameters $\pi$ (ten per body) and joint terms $\varphi$ this solves
//! $$\min_{\pi, \varphi} \quad \frac12 \sum_c w_c^2 \lVert Y_c (K \pi, \varphi) - \tau_c \rVert^2 + W \sum_i d(P_{0,i}, P_i)
//! \qquad \text{where } P_i \succeq 0 \text{ for every body } i,$$
//! subject to nonnegative friction and rotor inertias and to the [`Bounds`]. $K$ maps parameters to base parameters. The distance
//! to the prior body is
//! - entropic: $d = \operatorname{tr}(P_0^{-1} P) - \log \det P$, which keeps bodies strictly inside the cone;
//! - Euclidean: $d = \frac12 \lVert P_0^{-1/2} (P - P_0) P_0^{-1/2} \rVert^2$, the second-order term of the entropic distance at
//!   $P_0$. (The plain distance of parameters would depend on units and frames; this scaled one does not.) Bodies may lie on the
//!   boundary.
//!
//! **Weight of the prior.** Forces are divided by their noise (`w_c`, from weighted least squares, counting independent samples
//! only). The first sum is therefore a negative log-likelihood, and the prior describes a body with a relative uncertainty of
//! about `1/√W`. With the information `A` of the data and `B` of the prior, the prior moves the estimate by `(A + B)⁻¹ B Δ`, where
//! `Δ` is the distance to the prior. A direction that the data determine to the relative error `ε` moves by about `W ε` of its
//! standard error (times the distance in units of the body). With the default `W = 1`, a quantity known to ten percent moves by a
//! tenth of its standard error, a more accurate one by less, and directions that are not excited keep the value of the prior.
//!
//! Joint terms have a prior too (module `joint_term_prior`). It is wide enough to matter only where the data contain almost no
//! information.
//!
//! **Solvers.** All solvers find the same optimum of this convex problem and certify it with a lower bound: [`Solver::Barrier`] in
//! the parameters, [`Solver::Manifold`] in `(m, c, Q, L)` (paper 001, for any number of bodies), [`Solver::LogCholesky`] in the
//! logarithms of a triangular factor.

#![allow(clippy::doc_markdown, reason = "formulas have indices")]

use nalgebra::{DMatrix, DVector};

use crate::estimation::consistent::bounds::Bounds;
use crate::estimation::consistent::joint_term_prior::{grounded_rotor_widths, rotor_body_widths, widths};
use crate::estimation::consistent::prior::Prior;
use crate::estimation::equations::Equations;
use crate::estimation::estimator::Solver;
use crate::estimation::least_squares::fit::{LeastSquares, information as data_information, stacked};
use crate::estimation::least_squares::jackknife::{BlockScore, Jackknife, information};
use crate::estimation::reduction::summary::Summary;
use crate::estimation::warning::Warning;
use crate::identifiability::Regrouping;
use crate::linalg::{Cholesky, Svd, product};
use crate::mechanism::{BodyKind, Mechanism};
use crate::optimize::log_cholesky::LogCholesky;
use crate::optimize::manifold::Principal;
use crate::optimize::{Cone, ConicLeastSquares, Options, Solution, SolverStatus, chart, pseudo};
use crate::spatial::PseudoInertia;
use crate::{Error, Result};

/// Smallest noise relative to the force of a joint. The squared factors of the solver are not accurate beyond that.
pub(crate) const LEAST_NOISE: f64 = 1e-6;

/// Distance between a body and its prior.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PriorKind {
    /// Entropic distance `tr(P₀⁻¹ P) − log det P`.
    #[default]
    Entropic,
    /// Euclidean distance `½ ‖P₀^{-½} (P − P₀) P₀^{-½}‖²`.
    Euclidean,
}

/// Options of the consistent estimator.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Consistency<'a> {
    /// Solver to use.
    pub solver: Solver,
    /// Prior bodies.
    pub prior: &'a Prior,
    /// Distance to the prior bodies.
    pub prior_kind: PriorKind,
    /// Weight of the prior.
    pub prior_weight: f64,
    /// Bounds on bodies; [`Solver::Barrier`] only.
    pub bounds: Option<&'a Bounds>,
    /// Stopping criteria.
    pub options: Options,
}

crate::with_changes!(Consistency<'_>);

impl<'a> Consistency<'a> {
    /// Creates options with the default solver and an entropic prior.
    pub fn new(prior: &'a Prior, prior_weight: f64) -> Self {
        let (solver, prior_kind) = (Solver::default(), PriorKind::default());
        Self { solver, prior, prior_kind, prior_weight, bounds: None, options: Options::default() }
    }
}

/// Consistent estimate with its optimality certificate.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ConsistentFit {
    /// All inertial parameters, in the order of [`crate::mechanism::Mechanism::parameters`]; every body is physically consistent.
    pub parameters: Vec<f64>,
    /// Unknowns of the equations: base parameters, then joint terms.
    pub values: Vec<f64>,
    /// Rotor inertias of the model that the data cannot separate from the inertia of links, by row.
    pub rotors: Vec<(usize, f64)>,
    /// Covariance of the unknowns: inverse of the sum of the information of the data and the curvature of the prior at the
    /// estimate. The part of the data is computed by the jackknife over the blocks of the logs. It equals that of least squares
    /// for informative data and is as wide as the prior for directions that are not excited. Active constraints would only reduce
    /// it and are ignored.
    pub covariance: DMatrix<f64>,
    /// Covariance of all inertial parameters. If only combinations are excited, each single parameter has the uncertainty of the
    /// prior.
    pub parameter_covariance: DMatrix<f64>,
    /// Change of the unknowns per change of the unconstrained least-squares estimate: the covariance times the information of the
    /// data. It is the identity if the data determine everything, and zero if the prior does.
    pub(crate) response: DMatrix<f64>,
    /// Cost at the estimate.
    pub cost: f64,
    /// Proven lower bound of the cost over all consistent parameters.
    pub lower_bound: f64,
    /// Number of Newton steps.
    pub steps: usize,
    /// Reason why the solver stopped; [`SolverStatus::Converged`] if cost and bound agree to nine digits.
    pub status: SolverStatus,
}

impl ConsistentFit {
    /// Returns a warning if the solver stopped without the requested certificate.
    pub fn warning(&self) -> Option<Warning> {
        unproven(self.status, self.cost, self.lower_bound)
    }

    /// Solves the problem, with the noise estimated by weighted least squares.
    pub fn new(
        equations: &Equations<'_>,
        summary: &Summary,
        noise: &LeastSquares,
        wanted: &Consistency<'_>,
    ) -> Result<Self> {
        Self::with_observer(equations, summary, noise, wanted, |_, _| true)
    }

    /// Solves the problem. `watch` receives every iterate (all parameters, then joint terms) and its cost, and stops the solver by
    /// returning `false`. The result is then the best iterate so far, which is feasible.
    pub fn with_observer(
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
        let factor = data_information(equations, summary, &weights)?.matrix();
        let of_data = product(&factor.transpose(), &factor);
        let [covariance, parameter_covariance, response] =
            problem.covariances(&solution.x, equations.regrouping.parameters, &scores, &of_data)?;
        Ok(Self {
            parameters: solution.x.as_slice()[..equations.regrouping.parameters].to_vec(),
            rotors: {
                let first = equations.regrouping.parameters + equations.terms.len();
                let found = &solution.x.as_slice()[first..];
                equations.grounded_rotors().zip(found).map(|((row, _, _), &x)| (row, x)).collect()
            },
            covariance,
            parameter_covariance,
            response,
            values: values.as_slice().to_vec(),
            cost: solution.cost,
            lower_bound: solution.lower_bound,
            steps: solution.steps,
            status: solution.status,
        })
    }

    /// Returns the standard errors of the unknowns.
    pub fn std_errors(&self) -> Vec<f64> {
        self.covariance.diagonal().iter().map(|v| v.max(0.0).sqrt()).collect()
    }
}

/// Duality gap (in units of the squared residual over the noise) above which a stalled barrier method is replaced by the method in
/// log-Cholesky coordinates: bodies that are nearly singular, or far from a guessed prior, can stall it.
const STALLED_GAP: f64 = 1e-2;

/// Rotor inertia that acts like base parameters.
pub(crate) struct GroundedRotor {
    /// Change of the unknowns per unit of this rotor inertia.
    pub effect: DVector<f64>,
    /// Value of the model, zero if it has none.
    pub given: f64,
    /// Width of the prior at weight one.
    pub width: f64,
}

/// Conic problem of the consistent estimator.
#[derive(Debug, Clone)]
pub struct ConsistentProblem {
    /// Problem over all parameters, then joint terms.
    pub conic: ConicLeastSquares,
    /// Strictly feasible point.
    pub start: DVector<f64>,
    /// Map of parameters and terms to the unknowns of the equations.
    pub(super) to_unknowns: DMatrix<f64>,
}

impl ConsistentProblem {
    /// Creates the problem of a summary, with the noise estimated by weighted least squares.
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
            let information = conic.gram[(j, j)];
            start[j] = found;
            if term.is_nonnegative() {
                conic.nonnegative.push(j);
                // Start in the interior, not too close to zero.
                let unit = if information > 0.0 { (2.0 * conic.constant / information).sqrt() } else { 1.0 };
                start[j] = found.max(1e-3 * unit).max(f64::MIN_POSITIVE);
            }
            conic.add_penalty(j, model[i], wanted.prior_weight / widths[i].powi(2));
        }
        Ok(Self { conic, start, to_unknowns })
    }

    /// Creates the problem of weighted rows `[A | b]` in the base parameters and in further, unconstrained unknowns.
    ///
    /// `rotors` are inertias that the data cannot separate from those of links. As a part of the link inertia, they would have to
    /// satisfy the consistency constraint of the link, and its prior would bias them.
    pub(crate) fn of_bodies(
        mechanism: &Mechanism,
        regrouping: &Regrouping,
        terms: usize,
        rotors: &[GroundedRotor],
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
                "log-Cholesky coordinates cannot represent singular bodies: they need the entropic prior"
                    .into(),
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
            to_unknowns.column_mut(n + terms + k).copy_from(&rotor.effect);
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
                conic.add_penalty(offset, given.max(0.0), weight / widths[block.body].powi(2));
                continue;
            }
            let given = PseudoInertia::from(body).0.cholesky().ok_or_else(|| {
                Error::Infeasible(format!(
                    "the prior of {} is not strictly physically consistent",
                    known.name
                ))
            })?;
            let weight = wanted.prior.weight(&known.name, weight);
            let cone = match wanted.prior_kind {
                PriorKind::Entropic => Cone { offset, prior_weight: weight, prior: given.inverse() },
                PriorKind::Euclidean => {
                    conic.add_body_prior(offset, &given, weight);
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
            conic.add_penalty(place, rotor.given, weight / rotor.width.powi(2));
            start[place] = if rotor.given > 0.0 { rotor.given } else { 0.1 * rotor.width };
        }
        Ok(Self { conic, start, to_unknowns })
    }

    /// Solves the problem with the requested solver.
    pub fn solve(
        &self,
        wanted: &Consistency<'_>,
        mut watch: impl FnMut(&DVector<f64>, f64) -> bool,
    ) -> Result<Solution> {
        let (problem, start, options) = (&self.conic, &self.start, &wanted.options);
        let has_time = options.start();
        let watch = |x: &DVector<f64>, cost| watch(x, cost) && has_time();
        match wanted.solver {
            Solver::Barrier => {
                let mut watch = watch;
                let found = problem.solve(start, options, &mut watch)?;
                let is_far = found.status == SolverStatus::Stalled && found.gap() > STALLED_GAP;
                let applies = wanted.prior_kind == PriorKind::Entropic && problem.inequalities.is_empty();
                if !is_far || !applies {
                    return Ok(found);
                }
                let other = chart::solve::<LogCholesky>(problem, start, options, watch)?;
                Ok(if other.cost < found.cost { other } else { found })
            }
            Solver::Manifold => chart::solve::<Principal>(problem, start, options, watch),
            Solver::LogCholesky => chart::solve::<LogCholesky>(problem, start, options, watch),
        }
    }

    /// Returns the unknowns at the parameters and terms `x`.
    pub(crate) fn unknowns(&self, x: &DVector<f64>) -> DVector<f64> {
        &self.to_unknowns * x
    }

    /// Computes the covariance of the unknowns at the estimate `x`.
    pub(crate) fn covariance(&self, x: &DVector<f64>) -> Result<DMatrix<f64>> {
        covariance(&self.conic, x, &self.to_unknowns)
    }

    /// Computes the covariances of the unknowns and of the `count` inertial parameters, which are the first variables, and the
    /// response of the unknowns to the least-squares estimate, whose information is `of_data`. If the logs have blocks, the part of
    /// the data in both covariances is that of the jackknife.
    fn covariances(
        &self,
        x: &DVector<f64>,
        count: usize,
        scores: &[BlockScore],
        of_data: &DMatrix<f64>,
    ) -> Result<[DMatrix<f64>; 3]> {
        let n = self.to_unknowns.nrows();
        let mut map = DMatrix::zeros(n + count, x.len());
        map.view_mut((0, 0), (n, x.len())).copy_from(&self.to_unknowns);
        map.view_mut((n, 0), (count, count)).fill_with_identity();
        let both = covariance(&self.conic, x, &map)?;
        let mut unknowns = both.view((0, 0), (n, n)).into_owned();
        let mut parameters = both.view((n, n), (count, count)).into_owned();
        let response = product(&unknowns, of_data);
        let cross = both.view((n, 0), (count, n)).into_owned();
        let root = Root::new(&unknowns)?;
        if let Some(jackknife) = Jackknife::new(scores, &root.factor) {
            let back = product(&cross, &root.inverse);
            let independent =
                product(&root.factor.transpose(), &product(&information(scores, n), &root.factor));
            let growth = jackknife.growth(&root.factor, &independent);
            for (covariance, map) in [(&mut unknowns, &root.factor), (&mut parameters, &back)] {
                // The remainder is the part of the prior.
                let independent_part = product(&product(map, &independent), &map.transpose());
                *covariance += jackknife.covariance(map, &independent, growth) - independent_part;
            }
        }
        Ok([unknowns, parameters, response])
    }
}

/// Square root of a covariance and the transposed inverse of that root; directions without variance are omitted.
struct Root {
    factor: DMatrix<f64>,
    inverse: DMatrix<f64>,
}

impl Root {
    fn new(covariance: &DMatrix<f64>) -> Result<Self> {
        // The scales of the unknowns differ by many orders of magnitude.
        let scale = covariance.diagonal().map(|d| d.max(0.0).sqrt());
        let scaled = |i: usize, j: usize| {
            let size = scale[i] * scale[j];
            if size > 0.0 { covariance[(i, j)] / size } else { 0.0 }
        };
        // The singular vectors of a covariance are its eigenvectors.
        let (n, svd) = (scale.len(), Svd::new(&DMatrix::from_fn(scale.len(), scale.len(), scaled))?);
        let rank = svd.rank(1e-13).rank;
        let size = |k: usize| svd.values[k].sqrt();
        Ok(Self {
            factor: DMatrix::from_fn(n, rank, |i, k| scale[i] * svd.v[(i, k)] * size(k)),
            inverse: DMatrix::from_fn(n, rank, |i, k| {
                if scale[i] > 0.0 { svd.v[(i, k)] / size(k) / scale[i] } else { 0.0 }
            }),
        })
    }
}

/// Computes the covariance of `map` times the variables at the optimum `x`: the inverse of the information of the data plus the
/// curvature of the priors.
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
    // The scales of rows and columns differ by many orders of magnitude.
    let scale = information.diagonal().map(|d| if d > 0.0 { d.sqrt().recip() } else { 1.0 });
    for (i, j) in (0..x.len()).flat_map(|i| (0..x.len()).map(move |j| (i, j))) {
        information[(i, j)] *= scale[i] * scale[j];
    }
    let map = map * DMatrix::from_diagonal(&scale);
    let mut columns = map.transpose();
    // For noise-free data the information of the prior is below the rounding error of the information of the data. Negative
    // eigenvalues due to rounding are removed by a shift of that size.
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

/// Returns a warning if a solver stopped without the requested certificate.
pub(crate) fn unproven(status: SolverStatus, cost: f64, lower_bound: f64) -> Option<Warning> {
    (!status.is_converged()).then_some(Warning::NotProved { cost, lower_bound })
}

/// Returns rows `[A | b]` of the data in the unknowns of the equations, scaled to unit noise.
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
