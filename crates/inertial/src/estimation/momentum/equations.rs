//! Momentum equations of a free-flying robot (paper 002).
//!
//! At every sample $$K(q, \nu) \varphi = m:$$ the momentum of the robot without its wheels, at the origin of the base in the axes
//! of the base, is linear in the base parameters $\varphi$, and $K$ is linear in the measured rates $\nu$ (base twist and joints).
//! For zero total momentum, `m` is the negative momentum of the wheels, and the position of the base does not matter.
//!
//! The noise of the rates is in `K`, so plain least squares is biased, and more samples do not reduce the bias. With $A = \partial
//! (K \varphi) / \partial \nu$, the rows of the base in the mass matrix, and $\Sigma$ the covariance of the rates, the error of a
//! sample is $$K \varphi - m \sim \mathcal N(0, C), \qquad C = A \Sigma A^\top.$$ [`MomentumEquations::least_squares`] ignores
//! this, [`MomentumEquations::bias_compensated`] subtracts the expected contribution of the noise to the normal equations, and
//! [`MomentumEquations::errors_in_variables`] maximizes the likelihood.

use nalgebra::{DMatrix, DVector};

pub use crate::dynamics::MomentumSamples;
use crate::identifiability::{AnalyzeOptions, Measured, Regrouping, analyze};
use crate::mechanism::{Base, Mechanism};
use crate::optimize::SolverStatus;
use crate::unknowns::base_names;
use crate::{Error, Result};

/// Standard deviations of the measured quantities.
#[derive(Debug, Clone, PartialEq)]
pub struct RateNoise {
    /// Standard deviation of each rate, one per velocity coordinate.
    pub rates: Vec<f64>,
    /// Standard deviation of the momentum, linear first.
    pub momentum: [f64; 6],
}

impl RateNoise {
    /// Creates the noise with one value for all components of a kind; the momentum is exact.
    pub fn new(mechanism: &Mechanism, linear: f64, angular: f64, joints: f64) -> Self {
        let rates = (0..mechanism.nv()).map(|k| match k {
            0..3 => linear,
            3..6 => angular,
            _ => joints,
        });
        Self { rates: rates.collect(), momentum: [0.0; 6] }
    }
}

/// Momentum equations of a mechanism, in its base parameters.
#[derive(Debug)]
pub struct MomentumEquations<'m> {
    mechanism: &'m Mechanism,
    /// Base parameters and their expressions.
    pub regrouping: Regrouping,
    /// Names of the base parameters.
    pub names: Vec<String>,
}

/// Estimate of the base parameters.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct MomentumFit {
    /// Base parameters; of least (scaled) norm in directions that are not excited.
    pub values: DVector<f64>,
    /// Covariance in the excited directions. For [`MomentumEquations::least_squares`] it does not include the bias.
    pub covariance: DMatrix<f64>,
    /// Number of excited directions.
    pub excited: usize,
    /// Orthonormal basis (scaled unknowns) of the directions that are not excited.
    pub unexcited: DMatrix<f64>,
    /// Chi-squared `Σ eᵀ C⁻¹ e`: about the number of momenta minus that of the unknowns if the noise is as given (absent without
    /// noise).
    pub chi_squared: Option<f64>,
    /// Number of steps of iterative estimates.
    pub steps: usize,
    /// Reason why the iteration stopped.
    pub status: SolverStatus,
}

impl MomentumFit {
    /// Returns the standard errors; for the likelihood they are the Cramér–Rao bound.
    pub fn std_errors(&self) -> Vec<f64> {
        self.covariance.diagonal().iter().map(|v| v.max(0.0).sqrt()).collect()
    }
}

impl<'m> MomentumEquations<'m> {
    /// Creates the momentum equations of a floating base with all bodies on it; `snap` is that of the identifiability analysis.
    pub fn new(mechanism: &'m Mechanism, snap: f64) -> Result<Self> {
        if mechanism.base() != Base::Floating {
            return Err(Error::NotApplicable(
                "momentum needs a robot with a floating base; this one is fixed".into(),
            ));
        }
        if !mechanism.loops().is_empty() {
            return Err(Error::NotApplicable(
                "the momentum model is for trees; this mechanism has loops".into(),
            ));
        }
        let options =
            AnalyzeOptions { snap, measured: Some(Measured::Momentum), ..AnalyzeOptions::default() };
        let regrouping = analyze(mechanism, &options)?.regrouping;
        let names = base_names(mechanism, &regrouping);
        Ok(Self { mechanism, regrouping, names })
    }

    /// Returns the mechanism.
    pub fn mechanism(&self) -> &'m Mechanism {
        self.mechanism
    }

    /// Returns the number of base parameters.
    pub fn len(&self) -> usize {
        self.regrouping.rank()
    }

    /// Returns whether there are no base parameters.
    pub fn is_empty(&self) -> bool {
        self.regrouping.base.is_empty()
    }

    /// Returns the mechanism with parameters that have these base parameters.
    pub(crate) fn with_values(&self, values: &DVector<f64>) -> Result<Mechanism> {
        let parameters = self.regrouping.expand(values.as_slice(), &[])?;
        self.mechanism.clone().with_parameters(&parameters)
    }

    /// Returns the number of samples if all arrays are consistent with it.
    pub(crate) fn check(&self, samples: &MomentumSamples<'_>, noise: Option<&RateNoise>) -> Result<usize> {
        let count = samples.momentum.len() / 6;
        let expect = |what, found, expected| {
            if found == expected { Ok(()) } else { Err(Error::Dimension { what, expected, found }) }
        };
        expect("momenta", samples.momentum.len(), 6 * count)?;
        expect("positions of the samples", samples.q.len(), count * self.mechanism.nq())?;
        expect("rates of the samples", samples.v.len(), count * self.mechanism.nv())?;
        if let Some(noise) = noise {
            expect("noise of the rates", noise.rates.len(), self.mechanism.nv())?;
            let all = noise.rates.iter().chain(&noise.momentum);
            if let Some(bad) = all.clone().find(|s| !(s.is_finite() && **s >= 0.0)) {
                return Err(Error::invalid_value(
                    "a standard deviation of the noise",
                    *bad,
                    "a number that is not negative",
                ));
            }
        }
        if 6 * count < self.len() {
            return Err(Error::Unobservable(format!(
                "{count} samples of six momenta are fewer than the {} unknowns",
                self.len()
            )));
        }
        let all = samples.q.iter().chain(samples.v).chain(samples.momentum);
        if all.clone().any(|x| !x.is_finite()) {
            return Err(Error::NotFinite("the samples hold numbers that are not finite".into()));
        }
        Ok(count)
    }
}
