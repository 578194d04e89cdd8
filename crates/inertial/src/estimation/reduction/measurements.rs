//! Measured motion and forces.

use std::ops::Range;

use crate::dynamics::{PackedChunk, Samples, Workspace, base_wrench_regressor};
use crate::estimation::equations::Equations;
use crate::estimation::reduction::row_filter::RowFilter;
use crate::estimation::reduction::rows::{BLOCK, Reduction, Rows, Visitor};
use crate::estimation::reduction::summary::Factor;
use crate::{Error, Result};

/// Larger numbers are no measurements in SI units; regressors multiply up to three of them, and factors hold sums of squares.
const LARGEST: f64 = 1e50;

/// Measured motion and forces, sample after sample.
#[derive(Debug, Clone, Copy)]
pub struct Measurements<'a> {
    samples: Samples<'a>,
    pub(crate) v: &'a [f64],
    pub(crate) a: &'a [f64],
    pub(crate) tau: &'a [f64],
    /// The forces as the sensors gave them; those of the fit where they are not kept apart.
    pub tau_raw: Option<&'a [f64]>,
    /// Which forces count; all where absent.
    pub keep: Option<&'a [bool]>,
    /// Further columns of the log, those of [`super::JointModel::columns`], sample after sample.
    pub columns: Option<&'a [f64]>,
    /// The part of the samples that is independent: filtering to a band of `f` Hz leaves `2 f / rate` of them.
    pub independent: f64,
    /// Weights against outliers.
    pub huber: Option<Huber<'a>>,
    /// The low-pass of both sides; then the independent part is that of its rows.
    pub filter: Option<&'a RowFilter>,
    /// Samples before the first and after the last at which rows are centred: those are of the parts of a log before and
    /// after this one.
    pub beyond: [usize; 2],
}

/// Rows whose residual is beyond 1.345 standard deviations count less, by Huber's weight.
#[derive(Debug, Clone, Copy)]
pub struct Huber<'a> {
    /// The unknowns so far.
    pub values: &'a [f64],
    /// Standard deviation of each row's noise.
    pub noise: &'a [f64],
}

impl<'a> Measurements<'a> {
    /// All samples count, and are independent; `v` and `a` are those of the samples: `nv` numbers each, or one for each
    /// independent coordinate where there are loops. `tau` has the forces of as many coordinates, and where the wrench on a
    /// fixed base is measured six more numbers.
    pub fn new(samples: Samples<'a>, v: &'a [f64], a: &'a [f64], tau: &'a [f64]) -> Self {
        Self {
            samples,
            v,
            a,
            tau,
            tau_raw: None,
            keep: None,
            columns: None,
            independent: 1.0,
            huber: None,
            filter: None,
            beyond: [0; 2],
        }
    }

    /// Number of samples.
    pub fn len(&self) -> usize {
        self.samples.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Positions of all samples.
    pub fn q(&self) -> &'a [f64] {
        self.samples.q()
    }

    /// Numbers per position.
    pub(crate) fn nq(&self) -> usize {
        self.q().len() / self.len().max(1)
    }

    /// Numbers per velocity.
    pub(crate) fn nv(&self) -> usize {
        self.v.len() / self.len().max(1)
    }

    /// Further numbers per sample.
    pub(crate) fn columns_per_sample(&self) -> usize {
        self.columns.map_or(0, |c| c.len() / self.len().max(1))
    }

    /// Refuses measurements that do not fit the equations.
    pub(crate) fn check(&self, equations: &Equations<'_>) -> Result<()> {
        let (count, rows) = (self.len(), equations.channels.len());
        let moving = count * equations.coordinates();
        expect("v of the measurements", self.v.len(), moving)?;
        expect("a of the measurements", self.a.len(), moving)?;
        expect("tau of the measurements", self.tau.len(), count * rows)?;
        expect("raw tau of the measurements", self.tau_raw.map_or(count * rows, <[f64]>::len), count * rows)?;
        expect("keep of the measurements", self.keep.map_or(count * rows, <[bool]>::len), count * rows)?;
        let further = equations.joint_model().columns.len();
        expect("further columns of the measurements", self.columns.map_or(0, <[f64]>::len), count * further)?;
        if let Some(huber) = self.huber {
            expect("values of a robust pass", huber.values.len(), equations.len())?;
            expect("noise of a robust pass", huber.noise.len(), rows)?;
        }
        if self.beyond[0] + self.beyond[1] > count {
            return Err(Error::Numeric("more samples beyond the rows than there are samples".into()));
        }
        if self.independent > 0.0 && self.independent <= 1.0 {
            return Ok(());
        }
        Err(Error::Numeric(format!(
            "the independent part of the samples is {}, expected a number above 0 and at most 1",
            self.independent
        )))
    }

    /// Refuses numbers that are not finite, or so large that their squares would not be.
    pub(super) fn check_finite(&self, equations: &Equations<'_>) -> Result<()> {
        let wrong = |x: &f64| !(x.abs() < LARGEST);
        let row = |values: &[f64], width: usize| values.iter().position(wrong).map(|k| k % width.max(1));
        let (joints, rows) = (equations.coordinates(), equations.channels.len());
        let forces = row(self.tau, rows).or_else(|| row(self.tau_raw?, rows));
        if let Some(row) = forces.or_else(|| row(self.v, joints)).or_else(|| row(self.a, joints)) {
            let name = &equations.row_names()[row];
            return Err(Error::Numeric(format!("the measurements of {name} are not finite")));
        }
        if self.q().iter().chain(self.columns.unwrap_or_default()).any(wrong) {
            return Err(Error::Numeric("the positions of the measurements are not finite".into()));
        }
        Ok(())
    }

    /// The part of the rows that is independent.
    pub(crate) fn independent_rows(&self) -> f64 {
        self.filter.map_or(self.independent, RowFilter::independent)
    }

    /// Samples on both sides of a row's centre that it is made of.
    pub(crate) fn reach(&self) -> usize {
        self.filter.map_or(0, RowFilter::half)
    }

    /// Reduces the rows centred at some samples into the factors of all channels.
    pub(crate) fn reduce(
        &self,
        equations: &Equations<'_>,
        first: usize,
        count: usize,
        factors: &mut [Factor],
    ) -> Result<()> {
        let reach = self.reach();
        // What the filter reaches, as far as it is there.
        let (from, to) = (first.saturating_sub(reach), (first + count + reach).min(self.len()));
        let mut reduction = Reduction::new(self, equations, factors, first..first + count, from);
        self.visit(equations, from..to, &mut reduction)?;
        reduction.finish()
    }

    /// Shows the rows of some samples, some of one channel at a time, to a visitor.
    pub(crate) fn visit(
        &self,
        equations: &Equations<'_>,
        samples: Range<usize>,
        visitor: &mut impl Visitor,
    ) -> Result<()> {
        let (joints, from, to) = (equations.coordinates(), samples.start, samples.end);
        let mut failed = Ok(());
        let mut take = |start: usize, chunk: PackedChunk<'_>| {
            let groups: Vec<_> = chunk.groups().collect();
            for (row, channel) in equations.channels.iter().take(joints).enumerate() {
                let rows =
                    Rows { data: self, equations, first: start + chunk.first, count: chunk.count, row };
                let entry = |entry: usize, s: usize| groups[s / 4][entry].0[s % 4];
                if let Err(e) = visitor.rows(&rows, channel, entry) {
                    failed = Err(e);
                }
            }
        };
        match equations.closed() {
            None => {
                let dynamics = &equations.dynamics;
                let mut scratch = dynamics.scratch();
                for start in (from..to).step_by(BLOCK) {
                    let part = self.samples.part(start, BLOCK.min(to - start));
                    dynamics.packed_regressors(&mut scratch, &part, |chunk| take(start, chunk))?;
                }
            }
            Some(closed) => {
                let mut workspace = closed.workspace();
                for start in (from..to).step_by(BLOCK) {
                    let part = self.samples.part(start, BLOCK.min(to - start));
                    closed.packed_regressors(&mut workspace, &part, |chunk| take(start, chunk.regressors))?;
                }
            }
        }
        failed?;
        if equations.channels.len() > joints {
            self.visit_wrench(equations, samples, visitor)?;
        }
        Ok(())
    }

    /// The same for the wrench on a fixed base.
    fn visit_wrench(
        &self,
        equations: &Equations<'_>,
        samples: Range<usize>,
        visitor: &mut impl Visitor,
    ) -> Result<()> {
        let (mechanism, joints) = (equations.mechanism(), equations.coordinates());
        let (nq, nv, width) = (mechanism.nq(), joints, mechanism.parameter_count());
        let mut workspace = Workspace::new(mechanism);
        let mut closed = equations.closed().map(|c| (c, c.workspace()));
        let mut dense = vec![0.0; BLOCK * 6 * width];
        for start in samples.clone().step_by(BLOCK) {
            let size = BLOCK.min(samples.end - start);
            for (s, out) in (start..start + size).zip(dense.chunks_exact_mut(6 * width)) {
                let (q, own) = (&self.q()[s * nq..(s + 1) * nq], s * nv..(s + 1) * nv);
                let (v, a) = (&self.v[own.clone()], &self.a[own]);
                match &mut closed {
                    Some((closed, workspace)) => closed.base_wrench_regressor(workspace, q, v, a, out)?,
                    None => base_wrench_regressor(mechanism, &mut workspace, q, v, a, out)?,
                }
            }
            for (k, channel) in equations.channels.iter().skip(joints).enumerate() {
                let rows = Rows { data: self, equations, first: start, count: size, row: joints + k };
                let entry = |entry: usize, s: usize| dense[(6 * s + k) * width + entry];
                visitor.rows(&rows, channel, entry)?;
            }
        }
        Ok(())
    }
}

fn expect(what: &'static str, found: usize, expected: usize) -> Result<()> {
    if found == expected { Ok(()) } else { Err(Error::Dimension { what, expected, found }) }
}
