//! Batch computations for mechanisms with loops: closed configurations and torque regressors on the independent
//! coordinates.

use super::closed_mechanism::{ClosedMechanism, ClosedWorkspace};
use super::path::PathLength;
use super::projection::{ChunkMemory, ProjectedBlock};
use crate::dynamics::simd::{Lane, PlainFour, dispatch};
use crate::dynamics::{Four, PackedChunk, PackedLayout, Samples, expect_len};
use crate::{Error, Result};

/// Number of samples processed in lockstep.
const LANES: usize = 4;

/// Size of a chunk in bytes, such that it stays in the private cache of a core.
const CHUNK_BYTES: usize = 256 * 1024;

/// Torque regressors `GᵀY` of consecutive samples, with the motion of the tree.
///
/// Friction and rotors of dependent joints act on the independent coordinates through `G`: a term `t(v, a)` of tree
/// coordinate `k` enters row `i` as `G[k, i] t(v[k], a[k])`.
#[derive(Debug, Clone, Copy)]
pub struct ClosedChunk<'a> {
    /// Regressors; row `i` is that of independent coordinate `i` ([`ClosedMechanism::layout`]).
    pub regressors: PackedChunk<'a>,
    nv: usize,
    dof: usize,
    v: &'a [f64],
    a: &'a [f64],
    maps: &'a [f64],
}

impl<'a> ClosedChunk<'a> {
    /// Returns the velocities of the tree in a sample of this chunk.
    pub fn v(&self, sample: usize) -> &'a [f64] {
        &self.v[sample * self.nv..(sample + 1) * self.nv]
    }

    /// Returns the accelerations of the tree in a sample of this chunk.
    pub fn a(&self, sample: usize) -> &'a [f64] {
        &self.a[sample * self.nv..(sample + 1) * self.nv]
    }

    /// Returns `G` of `v = G v_ind` in a sample of this chunk, column by column: `nv` numbers for each independent
    /// coordinate.
    pub fn map(&self, sample: usize) -> &'a [f64] {
        let size = self.nv * self.dof;
        &self.maps[sample * size..(sample + 1) * size]
    }
}

impl ClosedMechanism<'_> {
    /// Returns the layout of the nonzero entries of the torque regressor on the independent coordinates.
    pub fn layout(&self) -> &PackedLayout {
        &self.projection.layout
    }

    /// Computes closed configurations of the tree (`q`, `nq` numbers per sample) for consecutive samples of the
    /// independent positions (one number per sample for each of [`Self::independent_positions`]).
    ///
    /// The first configuration is reached from `from`, a closed configuration such as [`Self::assembled`], and each other one from its
    /// predecessor, so all lie on one assembly branch. If a log contains the positions of all joints, [`Self::close`] from the
    /// measured positions gives the same result. The number of steps is limited to 100 000 plus 10 for each sample.
    pub fn follow(
        &self,
        workspace: &mut ClosedWorkspace,
        from: &[f64],
        positions: &[f64],
        q: &mut [f64],
    ) -> Result<()> {
        let (nq, width) = (self.mechanism().nq(), self.independent_positions().len());
        expect_len("starting configuration", from.len(), nq)?;
        let count = q.len().checked_div(nq).unwrap_or(0);
        expect_len("configurations", q.len(), count * nq)?;
        expect_len("independent positions", positions.len(), count * width)?;
        if let Some(joint) = self.half_independent() {
            return Err(Error::Incompatible(format!(
                "joint {joint} is independent in part only, so the positions of the independent coordinates do not \
                 determine the mechanism's: mark other joints as independent"
            )));
        }
        let (mut before, mut left) = (from, q);
        let mut path = PathLength::default();
        for sample in 0..count {
            let (now, rest) = left.split_at_mut(nq);
            now.copy_from_slice(before);
            let target = &positions[sample * width..(sample + 1) * width];
            self.move_along(&mut path, workspace, now, target).map_err(|error| at_sample(error, sample))?;
            (before, left) = (now, rest);
        }
        Ok(())
    }

    /// Computes packed torque regressors of many samples on the independent coordinates, chunk by chunk in memory that
    /// stays in cache. It works like `InverseDynamics::packed_regressors`, with rows for the independent coordinates.
    ///
    /// Nothing is allocated after the first chunk. To use several threads, split the samples and give each thread its
    /// own workspace.
    ///
    /// ```
    /// # use inertial::Result;
    /// use inertial::dynamics::{ClosedMechanism, Samples};
    /// use inertial::mechanism::builtin;
    ///
    /// let four_bar = builtin::get("four-bar")?.build(&Default::default())?;
    /// let closed = ClosedMechanism::new(&four_bar)?;
    /// let mut workspace = closed.workspace();
    /// // A log of the crank alone: 100 samples of a slow swing about the assembly.
    /// let t = |s: usize| 0.01 * s as f64;
    /// let start = closed.assembled()[closed.independent_positions()[0]];
    /// let crank: Vec<f64> = (0..100).map(|s| start + 0.1 * t(s).sin()).collect();
    /// let v: Vec<f64> = (0..100).map(|s| 0.1 * t(s).cos()).collect();
    /// let a: Vec<f64> = (0..100).map(|s| -0.1 * t(s).sin()).collect();
    /// let mut q = vec![0.0; 100 * four_bar.nq()];
    /// closed.follow(&mut workspace, closed.assembled(), &crank, &mut q)?;
    ///
    /// let parameters = four_bar.parameters();
    /// let mut torque = Vec::new();
    /// closed.packed_regressors(&mut workspace, &Samples::closed(&closed, 100, &q, &v, &a)?, |chunk| {
    ///     let groups: Vec<_> = chunk.regressors.groups().collect();
    ///     for s in 0..chunk.regressors.count {
    ///         let row = closed.layout().row(0).iter();
    ///         torque.push(row.flat_map(|b| (0..b.len).map(move |k| (b.start + k, b.column + k)))
    ///             .map(|(entry, column)| groups[s / 4][entry].0[s % 4] * parameters[column]).sum::<f64>());
    ///     }
    /// })?;
    /// let mut expected = [0.0];
    /// closed.inverse_dynamics(&mut workspace, &q[99 * four_bar.nq()..], &v[99..], &a[99..], &mut expected)?;
    /// assert!((torque[99] - expected[0]).abs() < 1e-9);
    /// # Ok::<(), inertial::Error>(())
    /// ```
    pub fn packed_regressors(
        &self,
        workspace: &mut ClosedWorkspace,
        samples: &Samples<'_>,
        consume: impl FnMut(ClosedChunk<'_>),
    ) -> Result<()> {
        samples.fit(self.mechanism().nq(), self.dof())?;
        // Moved out while the workspace is in use, and always put back.
        let mut memory = std::mem::take(&mut workspace.batch);
        let done = self.pack_chunks(workspace, &mut memory, samples, consume);
        workspace.batch = memory;
        done
    }

    fn pack_chunks(
        &self,
        workspace: &mut ClosedWorkspace,
        memory: &mut ChunkMemory,
        samples: &Samples<'_>,
        mut consume: impl FnMut(ClosedChunk<'_>),
    ) -> Result<()> {
        let (nv, dof, len) = (self.mechanism().nv(), self.dof(), self.layout().len());
        let step = self.chunk_samples();
        memory.v.resize(step * nv, 0.0);
        memory.a.resize(step * nv, 0.0);
        memory.maps.resize(step * nv * dof, 0.0);
        memory.packed.resize(step.div_ceil(LANES) * len, Four::default());
        memory.tree.resize(self.dynamics.layout().len(), Four::default());
        memory.lanes.resize(nv * dof, Four::default());
        for first in (0..samples.count).step_by(step) {
            let count = step.min(samples.count - first);
            for group in (0..count).step_by(LANES) {
                let lanes = LANES.min(count - group);
                self.pack_group(workspace, memory, samples, first, group, lanes)?;
            }
            consume(ClosedChunk {
                regressors: PackedChunk {
                    first,
                    count,
                    layout: self.layout(),
                    data: &memory.packed[..count.div_ceil(LANES) * len],
                },
                nv,
                dof,
                v: &memory.v,
                a: &memory.a,
                maps: &memory.maps,
            });
        }
        Ok(())
    }

    /// Packs up to four samples: their motions one by one, their regressors in lockstep.
    fn pack_group(
        &self,
        workspace: &mut ClosedWorkspace,
        memory: &mut ChunkMemory,
        samples: &Samples<'_>,
        first: usize,
        group: usize,
        lanes: usize,
    ) -> Result<()> {
        let (nq, nv, dof) = (self.mechanism().nq(), self.mechanism().nv(), self.dof());
        let size = nv * dof;
        for lane in 0..LANES {
            // The last sample fills the remaining lanes.
            let s = group + lane.min(lanes - 1);
            if lane < lanes {
                let sample = first + s;
                self.accelerations(
                    workspace,
                    &samples.q[sample * nq..(sample + 1) * nq],
                    &samples.v[sample * dof..(sample + 1) * dof],
                    &samples.a[sample * dof..(sample + 1) * dof],
                    &mut memory.v[s * nv..(s + 1) * nv],
                    &mut memory.a[s * nv..(s + 1) * nv],
                )
                .map_err(|error| at_sample(error, sample))?;
                memory.maps[s * size..(s + 1) * size].copy_from_slice(workspace.map.as_slice());
            }
            let map = &memory.maps[s * size..(s + 1) * size];
            memory.lanes.iter_mut().zip(map).for_each(|(to, g)| to.0[lane] = *g);
        }
        let of = |width: usize, start: usize| start * width..(start + lanes) * width;
        let tree = Samples::new(
            &self.dynamics,
            lanes,
            &samples.q[of(nq, first + group)],
            &memory.v[of(nv, group)],
            &memory.a[of(nv, group)],
        )?;
        self.dynamics.pack(&mut workspace.scratch, &tree, &mut memory.tree);
        let len = self.layout().len();
        let at = group / LANES * len;
        let (terms, map, tree) = (&self.projection.terms[..], &memory.lanes[..], &memory.tree[..]);
        let out = &mut memory.packed[at..at + len];
        dispatch!(self.dynamics.fused, project::<PlainFour, FusedFour>(
            terms: &[ProjectedBlock], map: &[Four], tree: &[Four], out: &mut [Four]
        ));
        Ok(())
    }

    /// Returns the number of samples per chunk, a multiple of the group size.
    fn chunk_samples(&self) -> usize {
        let numbers = self.layout().len() + self.mechanism().nv() * (self.dof() + 2);
        (CHUNK_BYTES / (numbers.max(1) * size_of::<f64>())).clamp(1, 1024).next_multiple_of(LANES)
    }

    /// Returns the name of a joint of which only some coordinates are independent although they cannot be prescribed
    /// individually.
    fn half_independent(&self) -> Option<&str> {
        let positions = self.independent_positions();
        let mut joints = self.mechanism().joints().iter().filter(|j| j.follows.is_none());
        let half = joints.find(|j| {
            j.v_range().any(|k| self.independent.contains(&k)) && !j.q_range().any(|k| positions.contains(&k))
        });
        half.map(|j| j.name.as_str())
    }
}

#[inline(always)]
fn project<L: Lane<Memory = Four>>(terms: &[ProjectedBlock], map: &[Four], tree: &[Four], out: &mut [Four]) {
    out.fill(Four::default());
    for term in terms {
        let g = L::load(&map[term.map]);
        let from = &tree[term.from..term.from + term.len];
        for (to, y) in out[term.to..term.to + term.len].iter_mut().zip(from) {
            L::load(y).mul_add(g, L::load(to)).store(to);
        }
    }
}

/// Adds the number of the sample (from 1) to an error.
fn at_sample(error: Error, sample: usize) -> Error {
    let sample = sample + 1;
    match error {
        Error::Closure { name, residual, message } => {
            Error::Closure { name, residual, message: format!("sample {sample}: {message}") }
        }
        other => Error::Singular(format!("sample {sample}: {other}")),
    }
}

impl<'a> Samples<'a> {
    /// Borrows `count` samples of a mechanism with loops: `q` has the coordinates of the tree, which close the loops
    /// (see [`ClosedMechanism::follow`]); `v` and `a` have those of the independent coordinates.
    pub fn closed(
        closed: &ClosedMechanism<'_>,
        count: usize,
        q: &'a [f64],
        v: &'a [f64],
        a: &'a [f64],
    ) -> Result<Self> {
        Self::of(count, [closed.mechanism().nq(), closed.dof()], q, v, a)
    }
}
