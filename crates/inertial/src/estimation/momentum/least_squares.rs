//! Linear estimates from momentum: least squares, and bias-compensated least squares.

use nalgebra::{DMatrix, DVector, Matrix6, Vector6};
use rayon::prelude::{IntoParallelIterator, ParallelIterator};

use crate::dynamics::MomentumSamples;
use crate::estimation::least_squares::solution::Solution;
use crate::estimation::momentum::equations::{MomentumEquations, MomentumFit, RateNoise};
use crate::estimation::momentum::rows::{MomentumRows, Sampled, covariance_root, whitening};
use crate::linalg::Triangle;
use crate::{Error, Result};

/// Number of samples that one thread processes at once. It is constant, so that the result does not depend on the number of
/// threads.
const PART: usize = 256;

impl MomentumEquations<'_> {
    /// Computes the least-squares estimate (eq. 27). The covariance follows from `noise` if it is given, else from the residuals.
    pub fn least_squares(
        &self,
        samples: &MomentumSamples<'_>,
        noise: Option<&RateNoise>,
    ) -> Result<MomentumFit> {
        let count = self.check(samples, noise)?;
        let model = self.mechanism();
        let rows = self.plain_rows(samples, count)?;
        let solution = Solution::of_factor(&rows.matrix(), None)?;
        let Some(noise) = noise else {
            let free = (6 * count).saturating_sub(solution.excited).max(1) as f64;
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

    /// Computes the bias-compensated estimate, which subtracts the contribution of the noise from the normal equations:
    /// `(Σ KᵀC⁻¹K − Σ σ²ₖ KₖᵀC⁻¹Kₖ) φ = Σ KᵀC⁻¹m`, where `Kₖ` is the regressor of a unit rate `k` and `C` is that of plain least
    /// squares. It is linear and unbiased to first order.
    pub fn bias_compensated(&self, samples: &MomentumSamples<'_>, noise: &RateNoise) -> Result<MomentumFit> {
        let count = self.check(samples, Some(noise))?;
        let start = self.least_squares(samples, None)?;
        let model = self.mechanism();
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
        // In the basis of the singular directions of the motion, the correction is small relative to the identity.
        let root = &solution.root;
        let s_root = s.columns(0, n) * root;
        let left = DMatrix::identity(solution.excited, solution.excited) - s_root.transpose() * s_root;
        let factor = crate::linalg::Cholesky::new(&left).map_err(|_| {
            Error::Unobservable("the stated noise is larger than the motion: reduce the noise".into())
        })?;
        let right = root.transpose() * (a.transpose() * b);
        let values = root * factor.solve(&right)?;
        let chi = self.chi_squared(samples, noise, &values)?;
        let mut inner = root.transpose();
        factor.solve_in_place(&mut inner)?;
        let covariance = inner.transpose() * &inner;
        Ok(MomentumFit { values, ..solution.fit(covariance, Some(chi)) })
    }

    /// Computes `Σ eᵀ C⁻¹ e` at given base parameters.
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

    /// Returns the rows `[K | m]` of plain least squares.
    pub(crate) fn plain_rows(&self, samples: &MomentumSamples<'_>, count: usize) -> Result<Triangle> {
        self.reduce(count, |sampled, t, rows| {
            sampled.load(self.mechanism(), samples, t)?;
            rows.push(&Matrix6::identity(), &sampled.k, &sampled.m);
            Ok(())
        })
    }

    /// Computes the triangular factor of the rows of all samples; `each` provides the multiplied rows `[K | m]` of a sample.
    pub(crate) fn reduce(
        &self,
        count: usize,
        each: impl Fn(&mut Sampled, usize, &mut MomentumRows) -> Result<()> + Sync,
    ) -> Result<Triangle> {
        let parts: Vec<Triangle> = (0..count.div_ceil(PART))
            .into_par_iter()
            .map(|part| {
                let (mut sampled, mut rows) = (Sampled::new(self), MomentumRows::new(self));
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
