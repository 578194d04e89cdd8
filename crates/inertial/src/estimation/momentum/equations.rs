//! Parameters of a free-flying robot from its momentum (paper 002): the equations, and their linear estimates.
//!
//! At every sample $$K(q, \nu) \varphi = m:$$ the momentum of the robot without its wheels, at the base's origin in the base's axes,
//! is linear in the base parameters $\varphi$, and $K$ is linear in the measured rates $\nu$ (base twist and joints). With zero total
//! momentum `m` is the opposite of the wheels' momentum, and where the base is does not matter.
//!
//! The noise of the rates stands in `K`, so plain least squares is biased, and more samples do not help. With
//! $A = \partial (K \varphi) / \partial \nu$, the base's rows of the mass matrix, and $\Sigma$ the covariance of the rates, the
//! error of a sample is $$K \varphi - m \sim \mathcal N(0, C), \qquad C = A \Sigma A^\top.$$ [`MomentumEquations::least_squares`] ignores this, [`MomentumEquations::bias_compensated`]
//! subtracts what the noise adds to the normal equations, and [`MomentumEquations::errors_in_variables`] maximises the
//! likelihood.

use nalgebra::{DMatrix, DVector, Matrix6, Vector6};
use rayon::prelude::{IntoParallelIterator, ParallelIterator};

pub use crate::dynamics::MomentumSamples;
use crate::estimation::least_squares::solution::Solution;
use crate::estimation::momentum::rows::{Rows, Sampled, covariance_root, whitening};
use crate::identifiability::{AnalyzeOptions, Measured, Regrouping, analyze};
use crate::linalg::Triangle;
use crate::mechanism::{Base, Mechanism};
use crate::{Error, Result};

/// Samples that one thread takes in at once. Constant, so that the result does not depend on the number of threads.
const PART: usize = 256;

/// Standard deviations of what is measured.
#[derive(Debug, Clone, PartialEq)]
pub struct RateNoise {
    /// Of the rates, one per velocity coordinate.
    pub rates: Vec<f64>,
    /// Of the momentum, linear first.
    pub momentum: [f64; 6],
}

impl RateNoise {
    /// The same for all components of a kind; the momentum is exact.
    pub fn new(mechanism: &Mechanism, linear: f64, angular: f64, joints: f64) -> Self {
        let rates = (0..mechanism.nv()).map(|k| match k {
            0..3 => linear,
            3..6 => angular,
            _ => joints,
        });
        Self { rates: rates.collect(), momentum: [0.0; 6] }
    }
}

/// The momentum equations of a mechanism, in its base parameters.
#[derive(Debug)]
pub struct MomentumEquations<'m> {
    mechanism: &'m Mechanism,
    /// The base parameters and what they stand for.
    pub regrouping: Regrouping,
    /// Names of the base parameters.
    pub names: Vec<String>,
}

/// An estimate of the base parameters.
#[derive(Debug, Clone)]
pub struct MomentumFit {
    /// The base parameters; of least (scaled) norm in directions that the motion did not show.
    pub values: DVector<f64>,
    /// Their covariance, in the directions that the motion showed. Of [`MomentumEquations::least_squares`] it does not hold
    /// the bias.
    pub covariance: DMatrix<f64>,
    /// Number of directions that the motion showed.
    pub seen: usize,
    /// An orthonormal basis (scaled unknowns) of those it did not show.
    pub unseen: DMatrix<f64>,
    /// `Σ eᵀ C⁻¹ e`, about the number of momenta less that of the unknowns where the noise is as stated (absent without
    /// noise).
    pub chi_squared: Option<f64>,
    /// Steps of iterative estimates.
    pub steps: usize,
    /// Whether they settled.
    pub converged: bool,
}

impl MomentumFit {
    /// Standard errors; for the likelihood they are the Cramér–Rao bound.
    pub fn std_errors(&self) -> Vec<f64> {
        self.covariance.diagonal().iter().map(|v| v.max(0.0).sqrt()).collect()
    }
}

impl<'m> MomentumEquations<'m> {
    /// Of a floating base with everything that it carries; `snap` is that of the identifiability analysis.
    pub fn new(mechanism: &'m Mechanism, snap: f64) -> Result<Self> {
        if mechanism.base() != Base::Floating {
            return Err(Error::Numeric(
                "the momentum is that of a robot with a floating base; this one is bolted down".into(),
            ));
        }
        if !mechanism.loops().is_empty() {
            return Err(Error::Numeric("the momentum model is for trees; this mechanism has loops".into()));
        }
        let options =
            AnalyzeOptions { snap, measured: Some(Measured::Momentum), ..AnalyzeOptions::default() };
        let regrouping = analyze(mechanism, &options)?.regrouping;
        let all = mechanism.parameter_names();
        let names = regrouping.base.iter().map(|&c| all[c].clone()).collect();
        Ok(Self { mechanism, regrouping, names })
    }

    /// The mechanism.
    pub fn mechanism(&self) -> &'m Mechanism {
        self.mechanism
    }

    /// Number of base parameters.
    pub fn len(&self) -> usize {
        self.regrouping.rank()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.regrouping.base.is_empty()
    }

    /// Least squares (eq. 27). `noise`, where known, gives the covariance; else the residuals do.
    pub fn least_squares(
        &self,
        samples: &MomentumSamples<'_>,
        noise: Option<&RateNoise>,
    ) -> Result<MomentumFit> {
        let count = self.check(samples, noise)?;
        let model = self.mechanism;
        let rows = self.plain_rows(samples, count)?;
        let solution = Solution::of_factor(&rows.matrix(), None)?;
        let Some(noise) = noise else {
            let free = (6 * count).saturating_sub(solution.seen).max(1) as f64;
            let residual = rows.at(self.len(), self.len()).powi(2);
            let covariance = &solution.inverse * (residual / free);
            return Ok(solution.fit(covariance, None));
        };
        // M⁻¹ (Σ Kᵀ C K) M⁻¹: the rows of K times a root of C.
        let with = self.with_values(&solution.values)?;
        let spread = self.reduce(count, |sampled, t, rows| {
            sampled.load(model, samples, t)?;
            let root = covariance_root(&sampled.covariance(&with, samples, t, noise)?)?;
            rows.push(&root.transpose(), &sampled.k, &Vector6::zeros());
            Ok(())
        })?;
        let middle = spread.matrix().view((0, 0), (self.len(), self.len())) * &solution.inverse;
        let covariance = middle.transpose() * middle;
        let chi = self.chi_squared(samples, noise, &solution.values)?;
        Ok(solution.fit(covariance, Some(chi)))
    }

    /// Least squares less what the noise adds to the normal equations, `(Σ KᵀC⁻¹K − Σ σ²ₖ KₖᵀC⁻¹Kₖ) φ = Σ KᵀC⁻¹m` with `Kₖ`
    /// the regressor of a unit rate `k` and `C` from plain least squares. Linear, and without bias to first order.
    pub fn bias_compensated(&self, samples: &MomentumSamples<'_>, noise: &RateNoise) -> Result<MomentumFit> {
        let count = self.check(samples, Some(noise))?;
        let start = self.least_squares(samples, None)?;
        let model = self.mechanism;
        let with = self.with_values(&start.values)?;
        let n = self.len();
        let weighted = self.reduce(count, |sampled, t, rows| {
            sampled.load(model, samples, t)?;
            let whiten = whitening(&sampled.covariance(&with, samples, t, noise)?)?;
            rows.push(&whiten, &sampled.k, &sampled.m);
            Ok(())
        })?;
        let excess = self.reduce(count, |sampled, t, rows| {
            let whiten = whitening(&sampled.covariance(&with, samples, t, noise)?)?;
            for (k, &sigma) in noise.rates.iter().enumerate().filter(|(_, s)| **s > 0.0) {
                sampled.load_unit(model, samples, t, k)?;
                rows.push(&(whiten * sigma), &sampled.k, &Vector6::zeros());
            }
            Ok(())
        })?;
        let solution = Solution::of_factor(&weighted.matrix(), None)?;
        let (r, s) = (weighted.matrix(), excess.matrix());
        let (a, b) = (r.columns(0, n), r.column(n));
        // In the basis of the motion's own singular directions the correction is a small part of the identity.
        let root = &solution.root;
        let s_root = s.columns(0, n) * root;
        let left = DMatrix::identity(solution.seen, solution.seen) - s_root.transpose() * s_root;
        let factor = crate::linalg::Cholesky::new(&left).map_err(|_| {
            Error::Numeric(
                "the stated noise is larger than the motion: nothing is left of it, expected a smaller --noise".into(),
            )
        })?;
        let right = root.transpose() * (a.transpose() * b);
        let values = root * factor.solve(&right)?;
        let chi = self.chi_squared(samples, noise, &values)?;
        let mut inner = root.transpose();
        factor.solve_in_place(&mut inner)?;
        let covariance = inner.transpose() * &inner;
        Ok(MomentumFit { values, ..solution.fit(covariance, Some(chi)) })
    }

    /// `Σ eᵀ C⁻¹ e` at given base parameters.
    pub fn chi_squared(
        &self,
        samples: &MomentumSamples<'_>,
        noise: &RateNoise,
        values: &DVector<f64>,
    ) -> Result<f64> {
        let count = self.check(samples, Some(noise))?;
        let with = self.with_values(values)?;
        let parts: Vec<f64> = (0..count.div_ceil(PART))
            .into_par_iter()
            .map(|part| {
                let mut sampled = Sampled::new(self);
                let mut sum = 0.0;
                for t in part * PART..count.min((part + 1) * PART) {
                    let error = sampled.error(&with, samples, t, noise)?;
                    sum += error.weighted.dot(&error.e);
                }
                Ok(sum)
            })
            .collect::<Result<_>>()?;
        Ok(parts.iter().sum())
    }

    /// The mechanism with parameters that have these base parameters.
    pub(crate) fn with_values(&self, values: &DVector<f64>) -> Result<Mechanism> {
        let parameters = self.regrouping.expand(values.as_slice(), &[])?;
        self.mechanism.clone().with_parameters(&parameters)
    }

    /// Number of samples, where all arrays agree about it.
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
                return Err(Error::Numeric(format!(
                    "a standard deviation of the noise is {bad}, expected a number that is not negative"
                )));
            }
        }
        if 6 * count < self.len() {
            return Err(Error::Numeric(format!(
                "{count} samples of six momenta are fewer than the {} unknowns",
                self.len()
            )));
        }
        let all = samples.q.iter().chain(samples.v).chain(samples.momentum);
        if all.clone().any(|x| !x.is_finite()) {
            return Err(Error::Numeric("the samples hold numbers that are not finite".into()));
        }
        Ok(count)
    }

    /// Rows of plain least squares, `[K | m]`.
    pub(crate) fn plain_rows(&self, samples: &MomentumSamples<'_>, count: usize) -> Result<Triangle> {
        self.reduce(count, |sampled, t, rows| {
            sampled.load(self.mechanism, samples, t)?;
            rows.push(&Matrix6::identity(), &sampled.k, &sampled.m);
            Ok(())
        })
    }

    /// The triangular factor of the rows that `each` sample gives, `[K | m]` times something.
    pub(crate) fn reduce(
        &self,
        count: usize,
        each: impl Fn(&mut Sampled, usize, &mut Rows) -> Result<()> + Sync,
    ) -> Result<Triangle> {
        let parts: Vec<Triangle> = (0..count.div_ceil(PART))
            .into_par_iter()
            .map(|part| {
                let (mut sampled, mut rows) = (Sampled::new(self), Rows::new(self));
                for t in part * PART..count.min((part + 1) * PART) {
                    each(&mut sampled, t, &mut rows)?;
                    rows.flush_if_full()?;
                }
                rows.finish()
            })
            .collect::<Result<_>>()?;
        let mut out = Triangle::new(self.len() + 1);
        for part in &parts {
            out.merge(part)?;
        }
        Ok(out)
    }
}
