//! Summary of a log: triangular factors of all channels, with counts.

use rayon::prelude::{
    IndexedParallelIterator, IntoParallelIterator, IntoParallelRefMutIterator, ParallelIterator,
};

use crate::estimation::equations::{Channel, Equations};
use crate::estimation::joint_model::expression::FormulaState;
use crate::estimation::reduction::blocks::{self, BlockPlan};
use crate::estimation::reduction::digest::Fnv;
use crate::estimation::reduction::factor::{Factor, LAGS, Lag};
use crate::estimation::reduction::measurements::Measurements;
use crate::estimation::reduction::rows::BLOCK;
use crate::estimation::reduction::source::LogSource;
use crate::linalg::Triangle;
use crate::{Error, Result};

/// Triangular factors of `[Y | terms | τ | τ_raw]`, one for each measured coordinate, with counts.
///
/// They are sufficient for all estimators and residuals: `‖Y x − τ‖²` can be computed for any `x`, for filtered and raw forces,
/// and weights per coordinate can be chosen afterwards. Summaries of parts can be merged into that of the whole.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    pub(super) names: Vec<String>,
    pub(super) fingerprint: u64,
    /// Number of samples, independent of which forces are used.
    pub samples: usize,
    pub(crate) factors: Vec<Factor>,
    /// Source logs of the samples, as far as they are known.
    pub sources: Vec<LogSource>,
}

/// Largest number of samples of a summary: up to this limit, all counts are exact as floating-point numbers.
pub(super) const MOST_SAMPLES: usize = 1 << 53;

impl Summary {
    /// Largest number of samples whose factor one thread computes.
    pub const PART: usize = 8192;

    /// Creates an empty summary.
    pub fn empty(equations: &Equations<'_>) -> Self {
        let factor = |c: &Channel| Factor::new(c.unknowns.len() + 2);
        Self {
            names: equations.names.clone(),
            fingerprint: fingerprint(equations),
            samples: 0,
            factors: equations.channels.iter().map(factor).collect(),
            sources: Vec::new(),
        }
    }

    /// Reduces measurements to a summary, in one pass. The result is the same for any number of threads.
    pub fn new(equations: &Equations<'_>, data: &Measurements<'_>) -> Result<Self> {
        data.check(equations)?;
        let [before, after] = data.beyond;
        let count = data.len() - before - after;
        // The size of the parts does not depend on the number of threads, so that the result does not either. A short log has a
        // few parts too, each much longer than the window of the filter.
        let least = (8 * data.reach()).clamp(1024, Self::PART);
        let size = (count / 8).clamp(least, Self::PART).next_multiple_of(BLOCK);
        let mut data = *data;
        // Blocks are counted from the centre of the first row.
        let plan = data.blocks.unwrap_or_else(|| BlockPlan::of_log(count));
        data.blocks = Some(plan.that_fits(equations.channels.iter().map(|c| c.unknowns.len() + 1)));
        let part = |k: usize| Self::of_part(equations, &data, before + k * size, size.min(count - k * size));
        // A single part does not need other threads.
        let parts: Vec<Self> = if count <= size {
            (0..count.div_ceil(size)).map(part).collect::<Result<_>>()?
        } else {
            (0..count.div_ceil(size)).into_par_iter().map(part).collect::<Result<_>>()?
        };
        let mut out = Self::empty(equations);
        for part in &parts {
            out.continue_with(part)?;
        }
        match out.factors.iter().position(|f| !f.triangle.is_finite()) {
            None => Ok(out),
            Some(v) => {
                let name = &equations.force_names()[v];
                Err(Error::NotFinite(format!("the measurements of {name} are not finite")))
            }
        }
    }

    fn of_part(
        equations: &Equations<'_>,
        data: &Measurements<'_>,
        first: usize,
        count: usize,
    ) -> Result<Self> {
        let mut out = Self::empty(equations);
        out.samples = count;
        data.reduce(equations, first, count, &mut out.factors)?;
        for factor in &mut out.factors {
            factor.independent = data.independent_rows() * factor.count as f64;
        }
        Ok(out)
    }

    /// Merges a summary of other logs, for the same equations.
    pub fn merge(&mut self, other: &Self) -> Result<()> {
        let first_block = self.blocks();
        if self.add_counts(other)? {
            let mut pairs = self.factors.iter_mut().zip(&other.factors);
            pairs.try_for_each(|(own, other)| own.merge(other, first_block))?;
        }
        self.factors.iter_mut().for_each(|factor| blocks::join(&mut factor.blocks));
        Ok(())
    }

    /// Adds the summary of a later part of the same log, computed with the same [`BlockPlan`], in parallel.
    pub fn continue_with(&mut self, other: &Self) -> Result<()> {
        if !self.add_counts(other)? {
            return Ok(());
        }
        self.factors.par_iter_mut().zip(&other.factors).try_for_each(|(own, other)| own.merge(other, 0))
    }

    /// Adds samples and logs of another summary; returns whether its factors still have to be merged.
    fn add_counts(&mut self, other: &Self) -> Result<bool> {
        if self.names != other.names || self.fingerprint != other.fingerprint {
            return Err(Error::SummaryMismatch(
                "two summaries of different models or joint terms cannot be merged".into(),
            ));
        }
        if self.samples == 0 {
            // Copy instead of merging by orthogonal transformations: the summary of one log is preserved bit for bit.
            *self = other.clone();
            return Ok(false);
        }
        let samples = self.samples.checked_add(other.samples).filter(|&all| all <= MOST_SAMPLES);
        self.samples = samples.ok_or_else(|| {
            Error::SummaryMismatch(format!("the summaries have more than {MOST_SAMPLES} samples together"))
        })?;
        self.sources.extend_from_slice(&other.sources);
        Ok(true)
    }

    /// Drops the sums of differences, which are only needed for whiteness tests of residuals and take four fifths of the memory.
    /// Estimates and residuals do not change.
    #[must_use]
    pub fn without_differences(mut self) -> Self {
        for factor in &mut self.factors {
            factor.lags = <[Lag; LAGS]>::default();
        }
        self
    }

    /// Drops the blocks. Standard errors then assume independent noise.
    #[must_use]
    pub fn without_blocks(mut self) -> Self {
        self.factors.iter_mut().for_each(|factor| factor.blocks.clear());
        self
    }

    /// Returns the summary with the opposite sign of all forces.
    pub(crate) fn with_forces_reversed(&self) -> Result<Self> {
        let mut out = self.clone();
        for factor in &mut out.factors {
            let (width, n) = (factor.triangle.width(), factor.unknowns());
            let mut upper = factor.triangle.upper();
            // The last two columns; row i starts at its diagonal.
            let mut start = 0;
            for i in 0..width {
                (n.max(i)..width).for_each(|j| upper[start + j - i] *= -1.0);
                start += width - i;
            }
            factor.triangle = Triangle::from_upper(width, &upper)?;
            factor.grams_mut().for_each(|gram| gram.reverse_force(n + 1));
        }
        Ok(out)
    }

    /// Checks that a summary belongs to the given equations.
    pub fn check(&self, equations: &Equations<'_>) -> Result<()> {
        let fits = self.names == equations.names
            && self.fingerprint == fingerprint(equations)
            && self.factors.len() == equations.channels.len()
            && self.factors.iter().zip(&equations.channels).all(|(f, c)| f.unknowns() == c.unknowns.len());
        if fits {
            Ok(())
        } else {
            Err(Error::SummaryMismatch("the summary was made for another model or other joint terms: give the model and the options of the call that made it".into()))
        }
    }
}

/// Computes the FNV-1a digest of the geometry and gravity, on which the columns depend in addition to their names.
fn fingerprint(equations: &Equations<'_>) -> u64 {
    let mechanism = equations.mechanism();
    let mut hash = Fnv::default();
    let mut add = |x: f64| hash.number(x);
    mechanism.gravity().iter().for_each(|&x| add(x));
    for body in mechanism.bodies() {
        body.placement.rotation.iter().chain(body.placement.translation.iter()).for_each(|&x| add(x));
        for mode in body.joint_type.free_modes().iter() {
            mode.angular.iter().chain(mode.linear.iter()).for_each(|&x| add(x));
        }
        add(body.drive.ratio);
        add(body.drive.offset);
    }
    for motor in equations.motors() {
        motor.shaft.iter().for_each(|&(v, factor)| {
            add(v as f64);
            add(factor);
        });
        motor.stribeck.iter().for_each(|stribeck| {
            add(stribeck.speed);
            add(stribeck.exponent);
        });
    }
    // Formulas are considered equal if they agree at a few states.
    for given in &equations.joint_model().given {
        for k in 1..4 {
            let state = |n: usize| (0..n).map(|i| f64::from(k) * 0.37 + 0.11 * i as f64).collect::<Vec<_>>();
            let (q, v) = (state(mechanism.nq()), state(mechanism.nv()));
            let columns = state(equations.joint_model().columns.len());
            add(given
                .expression
                .value(&FormulaState { q: &q, v: &v, a: &v, columns: &columns }, &mut Vec::new()));
        }
    }
    hash.value()
}
