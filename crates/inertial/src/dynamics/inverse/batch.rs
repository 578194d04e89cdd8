//! Batch inverse dynamics: four samples in lockstep, with threads over groups.

use rayon::prelude::{IndexedParallelIterator, ParallelIterator, ParallelSliceMut};

use crate::Result;
use crate::dynamics::expect_len;
use crate::dynamics::inverse::inverse_dynamics::{InverseDynamics, Scratch};
use crate::dynamics::inverse::memory::Memory;
use crate::dynamics::inverse::packed::PackedLayout;
use crate::dynamics::inverse::regressor::{self, Sink};
use crate::dynamics::inverse::rnea;
use crate::dynamics::inverse::samples::Samples;
use crate::dynamics::inverse::tables::{Pair, Tables};
use crate::dynamics::simd::{Four, Lane, PlainFour, Wide, dispatch};

/// Number of samples processed in lockstep.
pub(crate) const LANES: usize = 4;

/// Size of packed regressors in bytes, such that they stay in the private cache of a core.
const CHUNK_BYTES: usize = 256 * 1024;

/// Torque regressors of consecutive samples with nonzero blocks only: a chunk that fits into the cache of the
/// processor.
///
/// Four samples are interleaved: entry `e` of sample `s` is `groups()[s / 4 · layout.len() + e].0[s % 4]`.
#[derive(Debug, Clone, Copy)]
pub struct PackedChunk<'a> {
    /// Index of the first sample.
    pub first: usize,
    /// Number of samples; the remaining lanes repeat the last one.
    pub count: usize,
    pub(crate) layout: &'a PackedLayout,
    pub(crate) data: &'a [Four],
}

impl<'a> PackedChunk<'a> {
    /// Returns the layout of the entries.
    pub fn layout(&self) -> &'a PackedLayout {
        self.layout
    }

    /// Returns the entries in groups of four samples.
    pub fn groups(&self) -> impl ExactSizeIterator<Item = &'a [Four]> + use<'a> {
        self.data.chunks_exact(self.layout.len().max(1))
    }
}

impl InverseDynamics {
    /// Computes the generalized forces of many samples into `tau`, `nv` numbers per sample.
    pub fn rnea_batch(&self, scratch: &mut Scratch, samples: &Samples<'_>, tau: &mut [f64]) -> Result<()> {
        self.matches(scratch, samples)?;
        expect_len("tau of the samples", tau.len(), samples.count * self.nv())?;
        let nv = self.nv();
        for first in (0..samples.count).step_by(LANES) {
            self.gather(scratch, samples, first);
            let (tables, memory) = (&self.tables, &mut scratch.wide);
            let [q, v, a, out] = &mut scratch.samples;
            let (q, v, a, out) = (&q[..], &v[..], &a[..], &mut out[..]);
            dispatch!(self.fused, rnea_wide::<PlainFour, FusedFour>(
                tables: &Tables, memory: &mut Memory<Four>, q: &[Four], v: &[Four], a: &[Four], out: &mut [Four]
            ));
            for (lane, tau) in tau[first * nv..].chunks_exact_mut(nv.max(1)).take(LANES).enumerate() {
                tau.iter_mut().zip(&scratch.samples[3]).for_each(|(tau, four)| *tau = four.0[lane]);
            }
        }
        Ok(())
    }

    /// Computes packed torque regressors of many samples, chunk by chunk in one buffer that stays in cache.
    ///
    /// This is the fastest way to compute regressors that are consumed immediately, for example by a factorization.
    pub fn packed_regressors(
        &self,
        scratch: &mut Scratch,
        samples: &Samples<'_>,
        mut consume: impl FnMut(PackedChunk<'_>),
    ) -> Result<()> {
        self.matches(scratch, samples)?;
        let step = self.chunk_samples();
        let mut data = std::mem::take(&mut scratch.packed);
        for first in (0..samples.count).step_by(step) {
            let count = step.min(samples.count - first);
            let len = count.div_ceil(LANES) * self.layout().len();
            if data.len() < len {
                data.resize(len, Four::default());
            }
            self.pack(scratch, &samples.part(first, count), &mut data[..len]);
            consume(PackedChunk { first, count, layout: self.layout(), data: &data[..len] });
        }
        scratch.packed = data;
        Ok(())
    }

    /// Computes the torque regressors of many samples as one dense matrix: `nv` rows per sample, one sample after the
    /// other, each row of [`Self::parameter_count`] entries.
    ///
    /// Only structurally nonzero entries are written: `out` must be zero elsewhere, as it is when new and after earlier
    /// calls. The work is divided among threads; the result is the same for any number of them.
    pub fn stacked_regressor(&self, samples: &Samples<'_>, out: &mut [f64]) -> Result<()> {
        let size = self.nv() * self.parameter_count();
        expect_len("stacked regressor", out.len(), samples.count * size)?;
        if size == 0 {
            return Ok(());
        }
        let step = self.chunk_samples();
        if rayon::current_num_threads() == 1 || samples.count <= step {
            self.stack(&mut self.scratch(), samples, out);
            return Ok(());
        }
        out.par_chunks_mut(step * size).enumerate().for_each_init(
            || self.scratch(),
            |scratch, (k, out)| {
                self.stack(scratch, &samples.part(k * step, out.len() / size), out);
            },
        );
        Ok(())
    }

    /// Computes the stacked regressor on the current thread, without allocation.
    pub fn stacked_regressor_with(
        &self,
        scratch: &mut Scratch,
        samples: &Samples<'_>,
        out: &mut [f64],
    ) -> Result<()> {
        self.matches(scratch, samples)?;
        expect_len("stacked regressor", out.len(), samples.count * self.nv() * self.parameter_count())?;
        self.stack(scratch, samples, out);
        Ok(())
    }

    /// Returns the number of samples per chunk, a multiple of the number of lanes.
    fn chunk_samples(&self) -> usize {
        let bytes = self.layout().len().max(1) * size_of::<f64>();
        (CHUNK_BYTES / bytes).clamp(1, 1024).next_multiple_of(LANES)
    }

    pub(crate) fn matches(&self, scratch: &Scratch, samples: &Samples<'_>) -> Result<()> {
        samples.fit(self.nq(), self.nv())?;
        self.fits(scratch)
    }

    pub(crate) fn pack(&self, scratch: &mut Scratch, samples: &Samples<'_>, out: &mut [Four]) {
        let groups = out.chunks_exact_mut(self.layout().len().max(1));
        for (first, out) in (0..samples.count).step_by(LANES).zip(groups) {
            self.gather(scratch, samples, first);
            let tables = &self.tables;
            dispatch!(self.fused, pack_wide::<PlainFour, FusedFour>(
                tables: &Tables, scratch: &mut Scratch, out: &mut [Four]
            ));
        }
    }

    /// Packs four samples at a time in cache, then copies whole runs of columns, so that memory is written in long
    /// streams.
    fn stack(&self, scratch: &mut Scratch, samples: &Samples<'_>, out: &mut [f64]) {
        let size = self.nv() * self.parameter_count();
        let mut packed = std::mem::take(&mut scratch.packed);
        if packed.len() < self.layout().len() {
            packed.resize(self.layout().len(), Four::default());
        }
        for (first, out) in (0..samples.count).step_by(LANES).zip(out.chunks_mut(LANES * size.max(1))) {
            let part = samples.part(first, LANES.min(samples.count - first));
            let group = &mut packed[..self.layout().len()];
            self.pack(scratch, &part, group);
            let layout = self.layout();
            let group = &*group;
            dispatch!(self.fused, unpack::<PlainFour, FusedFour>(
                layout: &PackedLayout, group: &[Four], size: usize, out: &mut [f64]
            ));
        }
        scratch.packed = packed;
    }

    /// Interleaves four samples; the last one fills the remaining lanes.
    pub(crate) fn gather(&self, scratch: &mut Scratch, samples: &Samples<'_>, first: usize) {
        let (nq, nv) = (self.nq(), self.nv());
        let [q, v, a, _] = &mut scratch.samples;
        for (from, width, to) in [(samples.q, nq, q), (samples.v, nv, v), (samples.a, nv, a)] {
            for lane in 0..LANES {
                let sample = (first + lane).min(samples.count - 1);
                let row = &from[sample * width..(sample + 1) * width];
                to.iter_mut().zip(row).for_each(|(to, x)| to.0[lane] = *x);
            }
        }
    }
}

#[inline(always)]
fn rnea_wide<L: Lane<Memory = Four>>(
    tables: &Tables,
    memory: &mut Memory<Four>,
    q: &[Four],
    v: &[Four],
    a: &[Four],
    tau: &mut [Four],
) {
    rnea::turn_wide::<L>(tables, memory, q);
    rnea::run::<L>(tables, memory, q, v, a, tau);
}

#[inline(always)]
fn pack_wide<L: Lane<Memory = Four>>(tables: &Tables, scratch: &mut Scratch, out: &mut [Four]) {
    let [q, v, a, _] = &scratch.samples;
    rnea::turn_wide::<L>(tables, &mut scratch.wide, q);
    regressor::run::<L, _>(tables, &mut scratch.wide, &mut scratch.carried, [q, v, a], &mut Packed(out));
}

/// Copies the packed entries of up to four samples into their dense matrices, one after the other.
#[inline(always)]
fn unpack<L: Wide>(layout: &PackedLayout, group: &[Four], size: usize, out: &mut [f64]) {
    let mut matrices = out.chunks_exact_mut(size.max(1));
    let [Some(m0), Some(m1), Some(m2), Some(m3)] =
        [matrices.next(), matrices.next(), matrices.next(), matrices.next()]
    else {
        for (lane, matrix) in out.chunks_exact_mut(size.max(1)).enumerate() {
            for run in &layout.runs {
                let entries = &group[run.packed..run.packed + run.len];
                let to = &mut matrix[run.dense..run.dense + run.len];
                to.iter_mut().zip(entries).for_each(|(to, four)| *to = four.0[lane]);
            }
        }
        return;
    };
    for run in &layout.runs {
        let entries = &group[run.packed..run.packed + run.len];
        let to = run.dense..run.dense + run.len;
        let (t0, t1) = (&mut m0[to.clone()], &mut m1[to.clone()]);
        let (t2, t3) = (&mut m2[to.clone()], &mut m3[to]);
        let in_fours = run.len - run.len % 4;
        for k in (0..in_fours).step_by(4) {
            let e = &entries[k..k + 4];
            let [a, b, c, d] = L::transpose([L::load(&e[0]), L::load(&e[1]), L::load(&e[2]), L::load(&e[3])]);
            a.write(&mut t0[k..]);
            b.write(&mut t1[k..]);
            c.write(&mut t2[k..]);
            d.write(&mut t3[k..]);
        }
        for k in in_fours..run.len {
            [t0[k], t1[k], t2[k], t3[k]] = entries[k].0;
        }
    }
}

/// Packed entries of four samples.
struct Packed<'a>(&'a mut [Four]);

impl<L: Lane<Memory = Four>> Sink<L> for Packed<'_> {
    #[inline(always)]
    fn put<const N: usize>(&mut self, pair: &Pair, entries: [L; N]) {
        let to = &mut self.0[pair.packed..pair.packed + N];
        for k in 0..N {
            entries[k].store(&mut to[k]);
        }
    }
}
