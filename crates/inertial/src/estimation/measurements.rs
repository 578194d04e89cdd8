//! Measured motion and forces, and how they become rows of the equations.

use super::equations::{Channel, Equations};
use super::summary::Factor;
use crate::dynamics::{ClosedSamples, PackedChunk, Samples, Workspace, base_wrench_regressor};
use crate::{Error, Result};

/// Samples whose rows are reduced at once: with some fifty columns they stay in a core's cache.
const BLOCK: usize = 256;

/// Logs with more samples than this give every fourth difference only: how white a residual is needs no more.
const MANY: usize = 20_000;

/// Huber's bound in standard deviations: 95 % as good as least squares where noise is normal.
pub(super) const HUBER: f64 = 1.345;

/// Measured motion and forces, sample after sample.
#[derive(Debug, Clone, Copy)]
pub struct Measurements<'a> {
    motion: Motion<'a>,
    pub(super) v: &'a [f64],
    pub(super) a: &'a [f64],
    tau: &'a [f64],
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
}

/// Rows whose residual is beyond 1.345 standard deviations count less, by Huber's weight.
#[derive(Debug, Clone, Copy)]
pub struct Huber<'a> {
    /// The unknowns so far.
    pub values: &'a [f64],
    /// Standard deviation of each row's noise.
    pub noise: &'a [f64],
}

#[derive(Debug, Clone, Copy)]
enum Motion<'a> {
    Open(Samples<'a>),
    Closed(ClosedSamples<'a>),
}

impl<'a> Measurements<'a> {
    /// All samples count, and are independent; `v` and `a` are those of the samples, `nv` numbers each. `tau` has the forces
    /// of as many coordinates, and where the wrench on a fixed base is measured six more numbers.
    pub fn new(samples: Samples<'a>, v: &'a [f64], a: &'a [f64], tau: &'a [f64]) -> Self {
        Self::of(Motion::Open(samples), v, a, tau)
    }

    /// The same for a mechanism with loops: `v`, `a` and `tau` are those of its independent coordinates.
    pub fn closed(samples: ClosedSamples<'a>, v: &'a [f64], a: &'a [f64], tau: &'a [f64]) -> Self {
        Self::of(Motion::Closed(samples), v, a, tau)
    }

    fn of(motion: Motion<'a>, v: &'a [f64], a: &'a [f64], tau: &'a [f64]) -> Self {
        let (tau_raw, keep, columns, huber) = (None, None, None, None);
        Self { motion, v, a, tau, tau_raw, keep, columns, independent: 1.0, huber }
    }

    /// Number of samples.
    pub fn len(&self) -> usize {
        match self.motion {
            Motion::Open(samples) => samples.len(),
            Motion::Closed(samples) => samples.len(),
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Positions of all samples, those of the whole mechanism.
    pub fn q(&self) -> &'a [f64] {
        match self.motion {
            Motion::Open(samples) => samples.q(),
            Motion::Closed(samples) => samples.q(),
        }
    }

    /// Numbers per position.
    pub(super) fn nq(&self) -> usize {
        self.q().len() / self.len().max(1)
    }

    /// Numbers per velocity.
    pub(super) fn nv(&self) -> usize {
        self.v.len() / self.len().max(1)
    }

    /// Further numbers per sample.
    pub(super) fn columns_per_sample(&self) -> usize {
        self.columns.map_or(0, |c| c.len() / self.len().max(1))
    }

    /// Refuses measurements that do not fit the equations.
    pub(super) fn check(&self, equations: &Equations<'_>) -> Result<()> {
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
        if matches!(self.motion, Motion::Closed(_)) != equations.closed().is_some() {
            return Err(Error::Numeric(
                "mechanisms with loops take samples of their independent coordinates, others of all".into(),
            ));
        }
        if self.independent > 0.0 && self.independent <= 1.0 {
            return Ok(());
        }
        Err(Error::Numeric(format!(
            "the independent part of the samples is {}, expected a number above 0 and at most 1",
            self.independent
        )))
    }

    /// Reduces the rows of some samples into the factors of all channels.
    pub(super) fn reduce(
        &self,
        equations: &Equations<'_>,
        first: usize,
        count: usize,
        factors: &mut [Factor],
    ) -> Result<()> {
        self.visit(equations, first, count, &mut Reduction { factors, memory: Memory::default() })
    }

    /// Shows the rows of some samples, some of one channel at a time, to a visitor.
    pub(super) fn visit(
        &self,
        equations: &Equations<'_>,
        first: usize,
        count: usize,
        visitor: &mut impl Visitor,
    ) -> Result<()> {
        let joints = equations.coordinates();
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
        match (self.motion, equations.closed()) {
            (Motion::Open(samples), _) => {
                let dynamics = &equations.dynamics;
                let mut scratch = dynamics.scratch();
                for start in (first..first + count).step_by(BLOCK) {
                    let part = samples.part(dynamics, start, BLOCK.min(first + count - start));
                    dynamics.packed_regressors(&mut scratch, &part, |chunk| take(start, chunk))?;
                }
            }
            (Motion::Closed(samples), Some(closed)) => {
                let mut workspace = closed.workspace();
                for start in (first..first + count).step_by(BLOCK) {
                    let part = samples.part(closed, start, BLOCK.min(first + count - start));
                    closed.packed_regressors(&mut workspace, &part, |chunk| take(start, chunk.regressors))?;
                }
            }
            (Motion::Closed(_), None) => {}
        }
        failed?;
        if equations.channels.len() > joints {
            self.visit_wrench(equations, first, count, visitor)
        } else {
            Ok(())
        }
    }

    /// The same for the wrench on a fixed base.
    fn visit_wrench(
        &self,
        equations: &Equations<'_>,
        first: usize,
        count: usize,
        visitor: &mut impl Visitor,
    ) -> Result<()> {
        let (mechanism, joints) = (equations.mechanism(), equations.coordinates());
        let (nq, nv, width) = (mechanism.nq(), mechanism.nv(), mechanism.parameter_count());
        let mut workspace = Workspace::new(mechanism);
        let mut dense = vec![0.0; BLOCK * 6 * width];
        for start in (first..first + count).step_by(BLOCK) {
            let size = BLOCK.min(first + count - start);
            for (s, out) in (start..start + size).zip(dense.chunks_exact_mut(6 * width)) {
                let (q, own) = (&self.q()[s * nq..(s + 1) * nq], s * nv..(s + 1) * nv);
                base_wrench_regressor(mechanism, &mut workspace, q, &self.v[own.clone()], &self.a[own], out)?;
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

/// What is done with the rows of measurements, whose regressors are at hand only for a moment.
pub(super) trait Visitor {
    /// Some rows of a channel; `entry` gives an entry of the packed regressor of one of these samples.
    fn rows(&mut self, rows: &Rows<'_>, channel: &Channel, entry: impl Fn(usize, usize) -> f64)
    -> Result<()>;
}

/// Reduces rows into factors.
struct Reduction<'f> {
    factors: &'f mut [Factor],
    memory: Memory,
}

impl Visitor for Reduction<'_> {
    fn rows(
        &mut self,
        rows: &Rows<'_>,
        channel: &Channel,
        entry: impl Fn(usize, usize) -> f64,
    ) -> Result<()> {
        rows.absorb(channel, entry, &mut self.memory, &mut self.factors[rows.row])
    }
}

/// Memory to be used again.
#[derive(Default)]
struct Memory {
    kept: Vec<usize>,
    block: Vec<f64>,
    differences: Vec<f64>,
}

/// Some rows of one channel.
pub(super) struct Rows<'d> {
    pub data: &'d Measurements<'d>,
    pub equations: &'d Equations<'d>,
    /// First sample.
    pub first: usize,
    pub count: usize,
    pub row: usize,
}

impl Rows<'_> {
    fn absorb(
        &self,
        channel: &Channel,
        entry: impl Fn(usize, usize) -> f64,
        memory: &mut Memory,
        factor: &mut Factor,
    ) -> Result<()> {
        let (data, all) = (self.data, self.equations.channels.len());
        let Memory { kept, block, differences } = memory;
        let index = |s: usize| (self.first + s) * all + self.row;
        kept.clear();
        kept.extend((0..self.count).filter(|&s| data.keep.is_none_or(|keep| keep[index(s)])));
        let rows = kept.len();
        let width = channel.unknowns.len() + 2;
        block.clear();
        for &e in &channel.entries {
            block.extend(kept.iter().map(|&s| entry(e, s)));
        }
        let given = &self.equations.joint_model().given;
        for (scale, feature) in &channel.features {
            let start = block.len();
            feature.fill(given, data, kept.iter().map(|s| self.first + s), block);
            if *scale != 1.0 {
                block[start..].iter_mut().for_each(|x| *x *= scale);
            }
        }
        for tau in [data.tau, data.tau_raw.unwrap_or(data.tau)] {
            block.extend(kept.iter().map(|&s| tau[index(s)]));
        }
        debug_assert_eq!(block.len(), rows * width);
        if let Some(huber) = data.huber {
            weigh(channel, &huber, huber.noise[self.row], rows, block, factor);
        }
        factor.count += rows;
        let pairs = self.differences(kept, block, width, differences);
        factor.pairs += pairs;
        factor.steps.absorb(differences, pairs)?;
        Ok(factor.triangle.absorb(block, rows)?)
    }

    /// Differences between rows one independent sample apart, column by column; their number.
    fn differences(&self, kept: &[usize], block: &[f64], width: usize, out: &mut Vec<f64>) -> usize {
        let lag = (1.0 / self.data.independent).round().max(1.0) as usize;
        let every = if self.data.len() > MANY { 4 } else { 1 };
        let pair = |i: usize| kept[i..].binary_search(&(kept[i] + lag)).ok().map(|k| (i, i + k));
        let pairs: Vec<(usize, usize)> = (0..kept.len()).step_by(every).filter_map(pair).collect();
        out.clear();
        for column in block.chunks_exact(kept.len().max(1)).take(width) {
            out.extend(pairs.iter().map(|&(i, j)| column[j] - column[i]));
        }
        if kept.is_empty() { 0 } else { pairs.len() }
    }
}

/// Multiplies rows by the square root of Huber's weight.
fn weigh(
    channel: &Channel,
    huber: &Huber<'_>,
    noise: f64,
    rows: usize,
    block: &mut [f64],
    factor: &mut Factor,
) {
    let n = channel.unknowns.len();
    let bound = HUBER * noise;
    for i in 0..rows {
        let predicted: f64 =
            channel.unknowns.iter().enumerate().map(|(k, &x)| block[k * rows + i] * huber.values[x]).sum();
        let residual = (block[n * rows + i] - predicted).abs();
        factor.clipped += residual.min(bound).powi(2);
        if residual > bound {
            let root = (bound / residual).sqrt();
            (0..n + 2).for_each(|k| block[k * rows + i] *= root);
        }
    }
}

fn expect(what: &'static str, found: usize, expected: usize) -> Result<()> {
    if found == expected { Ok(()) } else { Err(Error::Dimension { what, expected, found }) }
}
