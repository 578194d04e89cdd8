//! Online estimation: a square-root information filter with exponential forgetting.
//!
//! The state is the triangular factor of the equations of each coordinate ([`Summary`]). New samples are added by reflections,
//! older ones decay. Nothing is squared and nothing grows, so the filter can run indefinitely. Estimates are those of a batch
//! whose samples have these weights, by any estimator that works on a summary.

use crate::estimation::equations::Equations;
use crate::estimation::reduction::blocks::Gram;
use crate::estimation::reduction::measurements::Measurements;
use crate::estimation::reduction::summary::Summary;
use crate::{Error, Result};

/// Largest number of samples that are added row by row.
const FEW: usize = 256;

/// Summary of a stream of samples with exponential forgetting.
///
/// When `n` samples arrive together, the squared weight of all previous ones is multiplied by `forgetting^n`. With 1 nothing is
/// forgotten, and the summary is that of all samples. Counts decay in the same way: residuals are divided by the sum of weights,
/// errors by Kish's effective sample size `(Σw)²/Σw²`.
///
/// ```
/// use inertial::dynamics::{InverseDynamics, Samples};
/// use inertial::estimation::{Equations, IdentifyOptions, JointTerms, Measurements, Online, identify};
/// use inertial::mechanism::{DEFAULT_SNAP, builtin};
/// let robot = builtin::get("planar-2r")?.build(&Default::default())?;
/// let equations = Equations::new(&robot, JointTerms::default(), DEFAULT_SNAP)?;
/// let dynamics = InverseDynamics::new(&robot);
/// let mut scratch = dynamics.scratch();
/// let mut online = Online::new(&equations, 0.999)?;
/// for k in 0..200 {
///     let t = 0.02 * f64::from(k);
///     let (q, v, a) = ([t.sin(), (2.0 * t).cos()], [t.cos(), -2.0 * (2.0 * t).sin()], [-t.sin(), -4.0 * (2.0 * t).cos()]);
///     let mut tau = [0.0; 2];
///     dynamics.rnea(&mut scratch, &q, &v, &a, &mut tau)?;
///     let samples = Samples::new(&dynamics, 1, &q, &v, &a)?;
///     online.update(&Measurements::new(samples, &tau))?;
/// }
/// let found = identify(&equations, &online.summary(), None, &IdentifyOptions::default())?;
/// assert!(found.bodies.iter().all(|b| b.consistent) && found.fit_relative_rms < 1e-4);
/// # Ok::<(), inertial::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Online<'e, 'm> {
    equations: &'e Equations<'m>,
    forgetting: f64,
    summary: Summary,
    /// Sums for each coordinate: weights, squared weights, and weights of independent samples.
    sums: Vec<[f64; 3]>,
}

impl<'e, 'm> Online<'e, 'm> {
    /// Creates a filter without samples. `forgetting` is the factor of the weight of a sample when the next one arrives, above 0
    /// and at most 1.
    pub fn new(equations: &'e Equations<'m>, forgetting: f64) -> Result<Self> {
        if !(forgetting > 0.0 && forgetting <= 1.0) {
            return Err(Error::invalid_value(
                "the forgetting factor",
                forgetting,
                "a number above 0 and at most 1",
            ));
        }
        let summary = Summary::empty(equations);
        let sums = vec![[0.0; 3]; summary.factors.len()];
        Ok(Self { equations, forgetting, summary, sums })
    }

    /// Adds new samples. If they are rejected, the filter is unchanged.
    pub fn update(&mut self, data: &Measurements<'_>) -> Result<()> {
        data.check(self.equations)?;
        data.check_finite(self.equations)?;
        if data.len() > FEW {
            return self.update_many(data);
        }
        // Add a few rows directly to the factors: a separate summary would cost more.
        let [before, after] = data.beyond;
        let count = data.len() - before - after;
        self.fade(count);
        let counts: Vec<usize> = self.summary.factors.iter().map(|f| f.count).collect();
        data.reduce(self.equations, before, count, &mut self.summary.factors)?;
        self.summary.samples += count;
        for ((factor, sums), before) in self.summary.factors.iter_mut().zip(&mut self.sums).zip(counts) {
            let count = (factor.count - before) as f64;
            let independent = data.independent_rows() * count;
            factor.independent += independent;
            *sums = [sums[0] + count, sums[1] + count, sums[2] + independent];
        }
        Ok(())
    }

    /// Adds samples through a separate summary, which is computed in parallel.
    fn update_many(&mut self, data: &Measurements<'_>) -> Result<()> {
        let new = Summary::new(self.equations, data)?;
        self.fade(new.samples);
        self.summary.merge(&new)?;
        // Decaying data have no blocks.
        self.summary.factors.iter_mut().for_each(|factor| factor.blocks.clear());
        for (factor, sums) in new.factors.iter().zip(&mut self.sums) {
            let count = factor.count as f64;
            *sums = [sums[0] + count, sums[1] + count, sums[2] + factor.independent];
        }
        Ok(())
    }

    /// Decreases the weight of older samples when the given number of samples arrives.
    fn fade(&mut self, samples: usize) {
        let keep = self.forgetting.powi(i32::try_from(samples).unwrap_or(i32::MAX));
        if keep == 1.0 {
            return;
        }
        for (factor, sums) in self.summary.factors.iter_mut().zip(&mut self.sums) {
            factor.triangle.scale(keep.sqrt());
            *sums = [sums[0] * keep, sums[1] * keep * keep, sums[2] * keep];
        }
    }

    /// Returns the number of samples so far, including forgotten ones.
    pub fn samples(&self) -> usize {
        self.summary.samples
    }

    /// Returns the current summary.
    pub fn summary(&self) -> Summary {
        let mut out = self.summary.clone();
        for (factor, &[weight, squares, independent]) in out.factors.iter_mut().zip(&self.sums) {
            let count = weight.round() as usize;
            factor.left_out = Gram::default();
            factor.count = count;
            // Effective sample size (Kish), times the independent share of the filter.
            factor.independent = if weight > 0.0 { weight / squares * independent } else { 0.0 };
        }
        out
    }
}
