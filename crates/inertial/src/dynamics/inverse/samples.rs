//! Borrowed states of a mechanism for many samples.

use crate::Result;
use crate::dynamics::expect_len;
use crate::dynamics::inverse::inverse_dynamics::InverseDynamics;

/// States of a mechanism, one after the other: `q` has `nq` numbers per sample; `v` and `a` have `nv`, or one for each
/// independent coordinate if there are loops.
#[derive(Debug, Clone, Copy)]
pub struct Samples<'a> {
    pub(crate) count: usize,
    nq: usize,
    nv: usize,
    pub(crate) q: &'a [f64],
    pub(crate) v: &'a [f64],
    pub(crate) a: &'a [f64],
}

impl<'a> Samples<'a> {
    /// Borrows `count` samples.
    pub fn new(
        dynamics: &InverseDynamics,
        count: usize,
        q: &'a [f64],
        v: &'a [f64],
        a: &'a [f64],
    ) -> Result<Self> {
        Self::of(count, [dynamics.nq(), dynamics.nv()], q, v, a)
    }

    /// Checks the sizes of the arrays.
    pub(crate) fn of(
        count: usize,
        [nq, nv]: [usize; 2],
        q: &'a [f64],
        v: &'a [f64],
        a: &'a [f64],
    ) -> Result<Self> {
        expect_len("q of the samples", q.len(), count * nq)?;
        expect_len("v of the samples", v.len(), count * nv)?;
        expect_len("a of the samples", a.len(), count * nv)?;
        Ok(Self { count, nq, nv, q, v, a })
    }

    /// Returns an error if the samples belong to another mechanism.
    pub(crate) fn fit(&self, nq: usize, nv: usize) -> Result<()> {
        expect_len("q of a sample", self.nq, nq)?;
        expect_len("v of a sample", self.nv, nv)
    }

    /// Returns the number of samples.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Returns whether there are no samples.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Returns the positions of all samples.
    pub(crate) fn q(&self) -> &'a [f64] {
        self.q
    }

    /// Returns the samples `first..first + count`, which must exist.
    pub(crate) fn part(&self, first: usize, count: usize) -> Self {
        let (nq, nv, end) = (self.nq, self.nv, first + count);
        Self {
            count,
            nq,
            nv,
            q: &self.q[first * nq..end * nq],
            v: &self.v[first * nv..end * nv],
            a: &self.a[first * nv..end * nv],
        }
    }
}
