//! Rows of the equations, built block by block from measurements.

use std::ops::Range;

use crate::Result;
use crate::dynamics::{PackedChunk, Workspace, base_wrench_regressor};
use crate::estimation::equations::{Channel, Equations};
use crate::estimation::reduction::measurements::Measurements;

/// Number of samples whose rows are reduced at once: with some fifty columns they fit into the cache of a core.
pub(crate) const BLOCK: usize = 256;

/// Consumer of the rows of measurements, block by block.
pub(crate) trait Visitor {
    /// Processes rows of a channel; `entry` returns an entry of the packed regressor of one of these samples.
    fn rows(
        &mut self,
        rows: &RowBlock<'_>,
        channel: &Channel,
        entry: impl Fn(usize, usize) -> f64,
    ) -> Result<()>;
}

/// Consecutive samples of one channel.
pub(crate) struct RowBlock<'d> {
    pub data: &'d Measurements<'d>,
    pub equations: &'d Equations<'d>,
    /// First sample.
    pub first: usize,
    pub count: usize,
    /// Index of the channel.
    pub row: usize,
}

impl Measurements<'_> {
    /// Passes the rows of a range of samples to a visitor, one channel at a time.
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
                    RowBlock { data: self, equations, first: start + chunk.first, count: chunk.count, row };
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

    /// Visits the rows of the wrench on a fixed base.
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
                let (v, a) = (&self.v()[own.clone()], &self.a()[own]);
                match &mut closed {
                    Some((closed, workspace)) => closed.base_wrench_regressor(workspace, q, v, a, out)?,
                    None => base_wrench_regressor(mechanism, &mut workspace, q, v, a, out)?,
                }
            }
            for (k, channel) in equations.channels.iter().skip(joints).enumerate() {
                let rows = RowBlock { data: self, equations, first: start, count: size, row: joints + k };
                let entry = |entry: usize, s: usize| dense[(6 * s + k) * width + entry];
                visitor.rows(&rows, channel, entry)?;
            }
        }
        Ok(())
    }
}
