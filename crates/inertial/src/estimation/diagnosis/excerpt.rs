//! Uniformly spaced samples of logs.

use crate::Result;
use crate::estimation::equations::Equations;
use crate::estimation::reduction::blocks::BlockPlan;
use crate::estimation::reduction::measurements::Measurements;

/// Lags (s) of the forces that are tried because they are too large for a linearization.
pub(crate) const LAGS: [f64; 12] =
    [-0.05, -0.03, -0.015, -0.008, 0.008, 0.015, 0.025, 0.04, 0.06, 0.09, 0.13, 0.18];

/// Samples of logs in chronological order, with the motion around each.
#[derive(Debug, Clone, Default)]
pub struct Excerpt {
    pub(crate) count: usize,
    pub(crate) q: Vec<f64>,
    pub(crate) v: Vec<f64>,
    pub(crate) a: Vec<f64>,
    pub(crate) tau: Vec<f64>,
    /// Motion one step before and one step after each sample, and the time between them.
    before: Motion,
    after: Motion,
    between: Vec<f64>,
    /// Forces delayed by each of [`LAGS`], one after another.
    pub(crate) tau_later: Vec<f64>,
    pub(crate) keep: Vec<bool>,
    pub(crate) columns: Vec<f64>,
}

/// Motion at several instants.
#[derive(Debug, Clone, Default)]
struct Motion {
    q: Vec<f64>,
    v: Vec<f64>,
    a: Vec<f64>,
    columns: Vec<f64>,
}

impl Motion {
    fn add(&mut self, data: &Measurements<'_>, s: usize) {
        let (nq, nv, further) = (data.nq(), data.nv(), data.columns_per_sample());
        self.q.extend_from_slice(&data.q()[s * nq..(s + 1) * nq]);
        self.v.extend_from_slice(&data.v()[s * nv..(s + 1) * nv]);
        self.a.extend_from_slice(&data.a()[s * nv..(s + 1) * nv]);
        if let Some(columns) = data.columns {
            self.columns.extend_from_slice(&columns[s * further..(s + 1) * further]);
        }
    }

    fn picked(&self, pick: impl Fn(&[f64]) -> Vec<f64>) -> Self {
        let Self { q, v, a, columns } = self;
        Self { q: pick(q), v: pick(v), a: pick(a), columns: pick(columns) }
    }
}

impl Excerpt {
    /// Adds every n-th sample of measurements that are `step` seconds apart.
    pub fn add(&mut self, data: &Measurements<'_>, step: f64, every: usize) {
        let (count, nq, nv) = (data.len(), data.nq(), data.nv());
        let rows = data.tau.len() / count.max(1);
        let further = data.columns_per_sample();
        let inner = data.beyond[0].max(1)..(count - data.beyond[1]).min(count.saturating_sub(1));
        for s in inner.step_by(every.max(1)) {
            self.count += 1;
            self.q.extend_from_slice(&data.q()[s * nq..(s + 1) * nq]);
            self.v.extend_from_slice(&data.v()[s * nv..(s + 1) * nv]);
            self.a.extend_from_slice(&data.a()[s * nv..(s + 1) * nv]);
            let tau = |s: usize| &data.tau[s * rows..(s + 1) * rows];
            self.tau.extend_from_slice(tau(s));
            self.before.add(data, s - 1);
            self.after.add(data, s + 1);
            self.between.push(2.0 * step);
            for lag in LAGS {
                // Outside of the available samples, the last one is used.
                let at = (s as f64 + lag / step).clamp(0.0, (count - 1) as f64);
                let (before, share) = (at.floor() as usize, at.fract());
                let after = tau((before + 1).min(count - 1));
                self.tau_later.extend(tau(before).iter().zip(after).map(|(a, b)| a + share * (b - a)));
            }
            match data.keep {
                Some(keep) => self.keep.extend_from_slice(&keep[s * rows..(s + 1) * rows]),
                None => self.keep.extend(std::iter::repeat_n(true, rows)),
            }
            if let Some(columns) = data.columns {
                self.columns.extend_from_slice(&columns[s * further..(s + 1) * further]);
            }
        }
    }

    /// Returns the forces delayed by one of [`LAGS`].
    pub(crate) fn later(&self, lag: usize) -> Vec<f64> {
        let rows = self.tau.len() / self.count.max(1);
        let own = |all: &[f64]| all[lag * rows..(lag + 1) * rows].to_vec();
        self.tau_later.chunks_exact((LAGS.len() * rows).max(1)).flat_map(own).collect()
    }

    /// Returns the number of samples.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Returns whether there are no samples.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Returns every n-th of these samples.
    pub(crate) fn thinned(&self, every: usize) -> Self {
        fn pick<T: Copy>(all: &[T], count: usize, every: usize) -> Vec<T> {
            let width = all.len() / count.max(1);
            (0..count).step_by(every).flat_map(|s| all[s * width..(s + 1) * width].iter().copied()).collect()
        }
        let n = self.count;
        Self {
            count: n.div_ceil(every),
            q: pick(&self.q, n, every),
            v: pick(&self.v, n, every),
            a: pick(&self.a, n, every),
            tau: pick(&self.tau, n, every),
            before: self.before.picked(|all| pick(all, n, every)),
            after: self.after.picked(|all| pick(all, n, every)),
            between: pick(&self.between, n, every),
            tau_later: pick(&self.tau_later, n, every),
            keep: pick(&self.keep, n, every),
            columns: pick(&self.columns, n, every),
        }
    }

    /// Computes the time derivative of the forces predicted with given values of the unknowns.
    pub(crate) fn predicted_rate(&self, equations: &Equations<'_>, values: &[f64]) -> Result<Vec<f64>> {
        let force = |motion: &Motion| -> Result<Vec<f64>> {
            let samples = equations.samples(self.count, &motion.q, &motion.v, &motion.a)?;
            let mut data = Measurements::new(samples, &self.tau);
            data.columns = (!equations.joint_model().columns.is_empty()).then_some(&motion.columns[..]);
            Ok(equations.predict(&data, values)?.force)
        };
        let (before, after) = (force(&self.before)?, force(&self.after)?);
        let rows = self.tau.len() / self.count.max(1);
        let rate = |(k, (after, before)): (usize, (f64, f64))| (after - before) / self.between[k / rows];
        Ok(after.into_iter().zip(before).enumerate().map(rate).collect())
    }

    /// Borrows the samples as measurements without blocks.
    pub(crate) fn measurements<'a>(&'a self, equations: &Equations<'_>) -> Result<Measurements<'a>> {
        let mut out = Measurements::new(equations.samples(self.count, &self.q, &self.v, &self.a)?, &self.tau);
        out.keep = Some(&self.keep);
        out.blocks = Some(BlockPlan::NONE);
        if !equations.joint_model().columns.is_empty() {
            out.columns = Some(&self.columns);
        }
        Ok(out)
    }
}
