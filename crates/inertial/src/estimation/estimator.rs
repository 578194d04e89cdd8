//! Choice of estimator and solver.

/// Estimator of the unknowns.
///
/// Joint torques and wrenches take [`Ols`](Self::Ols), [`Wls`](Self::Wls), [`Irls`](Self::Irls) and
/// [`Consistent`](Self::Consistent); momentum takes [`Ols`](Self::Ols), [`Bcls`](Self::Bcls), [`Eiv`](Self::Eiv) and
/// [`Consistent`](Self::Consistent).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Estimator {
    /// Ordinary least squares.
    Ols,
    /// Least squares weighted by the noise of each channel.
    Wls,
    /// Weighted least squares with Huber weights against outliers; needs the samples themselves, see
    /// [`identify_robust`](crate::estimation::identify_robust).
    Irls,
    /// Weighted least squares over physically consistent bodies, with a prior; solved by a [`Solver`].
    #[default]
    Consistent,
    /// Bias-compensated least squares, for momentum.
    Bcls,
    /// Maximum likelihood with noise in the regressor (errors in variables), for momentum.
    Eiv,
}

impl Estimator {
    /// Returns the name of the estimator.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ols => "ols",
            Self::Wls => "wls",
            Self::Irls => "irls",
            Self::Consistent => "consistent",
            Self::Bcls => "bcls",
            Self::Eiv => "eiv",
        }
    }

    /// Returns the name used in results. Consistent estimates are named after their solver (`lmi` for [`Solver::Barrier`]).
    pub fn result_name(self, solver: Solver) -> &'static str {
        match (self, solver) {
            (Self::Consistent, Solver::Barrier) => "lmi",
            (Self::Consistent, solver) => solver.name(),
            (other, _) => other.name(),
        }
    }
}

/// Solver of the consistent estimator. All solvers find the same optimum of the same convex problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Solver {
    /// Barrier Newton method in the parameters.
    #[default]
    Barrier,
    /// Newton method on the manifold of mass, centre of mass, principal axes and moments (paper 001).
    Manifold,
    /// Newton method in log-Cholesky coordinates; needs the entropic prior.
    LogCholesky,
}

impl Solver {
    /// Returns the name of the solver.
    pub fn name(self) -> &'static str {
        match self {
            Self::Barrier => "barrier",
            Self::Manifold => "manifold",
            Self::LogCholesky => "log-cholesky",
        }
    }
}
