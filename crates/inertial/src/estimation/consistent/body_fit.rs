//! Consistent estimate of one body from rows in its ten parameters.

use nalgebra::{DMatrix, DVector, Matrix4};

use crate::estimation::consistent::problem::{PriorKind, covariance, unproven};
use crate::estimation::estimator::Solver;
use crate::estimation::identification::identify::IdentifyOptions;
use crate::estimation::warning::Warning;
use crate::linalg::Triangle;
use crate::optimize::log_cholesky::LogCholesky;
use crate::optimize::manifold::Principal;
use crate::optimize::{Cone, ConicLeastSquares, Options, chart};
use crate::spatial::{Inertia, Parameters, PseudoInertia};
use crate::{Error, Result};

/// Largest rounding error of the squared factors, relative to the curvature of the prior. The prior then determines the parameters
/// that are not excited.
const ROUNDING: f64 = 1e-3;

/// Largest curvature of the data, relative to that of the prior, when some parameters are not excited. The iterates move far along
/// the unexcited directions, where larger values would be lost to rounding.
const MOST_WITH_UNSEEN: f64 = 1e7;

/// Physically consistent body.
pub(crate) struct ConsistentBody {
    pub parameters: Parameters<f64>,
    /// Posterior covariance, from data and prior.
    pub covariance: DMatrix<f64>,
    pub gap: f64,
    /// Warning about the solve.
    pub warning: Option<Warning>,
}

/// Computes the physically consistent body that fits `a π ≈ b` best, for noise of unit variance.
pub(crate) fn consistent_body(
    mut a: DMatrix<f64>,
    mut b: DVector<f64>,
    prior: &Inertia<f64>,
    options: &IdentifyOptions,
    all_seen: bool,
) -> Result<ConsistentBody> {
    if options.bounds.is_some() || options.prior_kind != PriorKind::Entropic {
        return Err(Error::Incompatible("a payload needs the entropic prior and cannot have bounds".into()));
    }
    let weight = options.prior_weight;
    if !(weight > 0.0 && weight.is_finite()) {
        return Err(Error::invalid_value("the prior's weight", weight, "a number above zero"));
    }
    if weight < 1.0 && !all_seen {
        return Err(Error::Unobservable(
            "these torques do not determine all ten parameters of the payload: use a prior weight of 1 or \
             more"
                .into(),
        ));
    }
    let p: Matrix4<f64> = PseudoInertia::from(prior).0;
    let inverse = p
        .cholesky()
        .ok_or_else(|| Error::Infeasible("the prior body is not strictly physically consistent".into()))?;
    // Curvature of the data in units of the prior body. The curvature of the prior is its weight in these units.
    let (m, t) = (p[(3, 3)], p[(0, 0)] + p[(1, 1)] + p[(2, 2)]);
    let unit = |j: usize| [m, (m * t).sqrt(), t][usize::from(j > 0) + usize::from(j > 3)];
    let most = (0..10).map(|j| a.column(j).norm_squared() * unit(j).powi(2)).fold(0.0, f64::max);
    let allowed = weight * if all_seen { ROUNDING / f64::EPSILON } else { MOST_WITH_UNSEEN };
    if most > allowed {
        // Nearly noise-free data: assume a small noise. The prior changes excited parameters by a relative `weight/allowed`.
        let scale = (allowed / most).sqrt();
        a *= scale;
        b *= scale;
    }
    // Reduce to eleven rows. The residual is in the last row only and does not affect the rounding of the gradient.
    let (mut rows, count) = (Triangle::new(11), a.nrows());
    let mut all = a.insert_column(10, 0.0);
    all.set_column(10, &b);
    rows.add_rows(all.as_mut_slice(), count)?;
    let (rows, identity) = (rows.matrix(), DMatrix::identity(10, 10));
    let forces = rows.column(10).into_owned();
    let mut conic = ConicLeastSquares::of_rows(rows.columns(0, 10).into_owned(), identity, forces);
    conic.cones = vec![Cone { offset: 0, prior_weight: weight, prior: inverse.inverse() }];
    let start = DVector::from_column_slice(prior.parameters().as_slice());
    let limits = Options { time_limit: options.time_limit, ..Options::default() };
    let has_time = limits.start();
    let watch = |_: &DVector<f64>, _| has_time();
    let solution = match options.solver {
        Solver::Manifold => chart::solve::<Principal>(&conic, &start, &limits, watch),
        Solver::LogCholesky => chart::solve::<LogCholesky>(&conic, &start, &limits, watch),
        Solver::Barrier => conic.solve(&start, &limits, watch),
    }?;
    Ok(ConsistentBody {
        parameters: Parameters::from_column_slice(solution.x.as_slice()),
        covariance: covariance(&conic, &solution.x, &DMatrix::identity(10, 10))?,
        gap: solution.gap(),
        warning: unproven(solution.status, solution.cost, solution.lower_bound),
    })
}
