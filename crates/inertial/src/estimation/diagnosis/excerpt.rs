//! Uniformly spaced samples of logs.

use crate::Result;
use crate::estimation::equations::Equations;
use crate::estimation::reduction::blocks::BlockPlan;
use crate::estimation::reduction::measurements::Measurements;
use crate::estimation::reduction::row_filter::RowFilter;

/// Cut-off (Hz) of the low band. Arms move below 2 Hz, where a low-pass with this cut-off has gain one. Above it there are mainly
/// noise, stick-slip and elastic vibrations, which hide a lag.
const LOW_HZ: f64 = 8.0;
/// Rate of samples in the low band, in cut-offs.
const RATE_PER_CUTOFF: f64 = 8.0;

/// Smallest speed that counts as motion in one direction, relative to the highest speed of the joint.
const COUNTED_SPEED: f64 = 0.1;

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
    /// Forces delayed by each of [`LAGS`], one after another, rounded to whole samples.
    pub(crate) tau_later: Vec<f64>,
    /// Sum of the rounded lags of all samples, for each of [`LAGS`].
    lags: [f64; LAGS.len()],
    pub(crate) keep: Vec<bool>,
    pub(crate) columns: Vec<f64>,
    /// Mean signs of the speeds; empty in the whole band.
    signs: Vec<f64>,
    /// Samples of the same logs in the low band, if they contain a larger one.
    low: Option<Box<Self>>,
}

/// Consecutive samples of a log.
#[derive(Clone, Copy)]
struct Band<'a> {
    count: usize,
    q: &'a [f64],
    v: &'a [f64],
    a: &'a [f64],
    tau: &'a [f64],
    keep: Option<&'a [bool]>,
    columns: Option<&'a [f64]>,
    /// Mean signs of the speeds, in the low band: the sign of a filtered speed has no smooth transition.
    signs: &'a [f64],
}

impl<'a> Band<'a> {
    fn new(data: &Measurements<'a>) -> Self {
        let Measurements { tau, keep, columns, .. } = *data;
        Self { count: data.len(), q: data.q(), v: data.v(), a: data.a(), tau, keep, columns, signs: &[] }
    }

    /// Returns the values of one sample.
    fn of<T>(&self, all: &'a [T], s: usize) -> &'a [T] {
        let width = all.len() / self.count.max(1);
        &all[s * width..(s + 1) * width]
    }
}

/// Motion at several instants.
#[derive(Debug, Clone, Default)]
struct Motion {
    q: Vec<f64>,
    v: Vec<f64>,
    a: Vec<f64>,
    columns: Vec<f64>,
    signs: Vec<f64>,
}

impl Motion {
    fn add(&mut self, band: &Band<'_>, s: usize) {
        self.q.extend_from_slice(band.of(band.q, s));
        self.v.extend_from_slice(band.of(band.v, s));
        self.a.extend_from_slice(band.of(band.a, s));
        self.signs.extend_from_slice(band.of(band.signs, s));
        if let Some(columns) = band.columns {
            self.columns.extend_from_slice(band.of(columns, s));
        }
    }

    fn picked(&self, pick: impl Fn(&[f64]) -> Vec<f64>) -> Self {
        let Self { q, v, a, columns, signs } = self;
        Self { q: pick(q), v: pick(v), a: pick(a), columns: pick(columns), signs: pick(signs) }
    }
}

/// Returns the sample that is nearest to a lag (in samples) after a sample, among the available ones. Interpolation would average
/// the noise of neighbouring samples, so that a lag would seem to reduce the residual.
fn lagged(s: usize, lag: f64, last: usize) -> usize {
    (s as f64 + lag.round()).clamp(0.0, last as f64) as usize
}

impl Excerpt {
    /// Adds every n-th sample of measurements of the equations that are `step` seconds apart, and as many of their low band.
    pub fn add(
        &mut self,
        equations: &Equations<'_>,
        data: &Measurements<'_>,
        step: f64,
        every: usize,
    ) -> Result<()> {
        let count = data.len();
        let inner = data.beyond[0].max(1)..(count - data.beyond[1]).min(count.saturating_sub(1));
        let band = Band::new(data);
        self.add_band(&band, step, inner.step_by(every.max(1)));
        // Zero for samples that contain hardly more than the low band.
        let stride = (step * RATE_PER_CUTOFF * LOW_HZ).recip().floor() as usize;
        if stride > 0 {
            self.low.get_or_insert_default().add_filtered(equations, &band, step, stride, every)?;
        }
        Ok(())
    }

    /// Adds samples after a low-pass filter, of which one in `stride` is sufficient. The signs of quaternions are continuous, so that they
    /// can be filtered; their lengths do not matter. Nothing is added if a loop does not close at filtered positions.
    fn add_filtered(
        &mut self,
        equations: &Equations<'_>,
        band: &Band<'_>,
        step: f64,
        stride: usize,
        every: usize,
    ) -> Result<()> {
        let filter = RowFilter::new(LOW_HZ, step.recip())?;
        let (weights, half) = (filter.weights(), filter.half());
        let centres: Vec<usize> = (half..band.count.saturating_sub(half)).step_by(stride).collect();
        let inner = 1..centres.len().saturating_sub(1);
        let samples = inner.step_by((every / stride).max(1));
        // Centres whose motion and forces are used; the others stay zero, because filtering them all would take much longer.
        let (mut motions, mut forces) = (vec![false; centres.len()], vec![false; centres.len()]);
        for s in samples.clone() {
            motions[s - 1..=s + 1].fill(true);
            forces[s] = true;
            for lag in LAGS {
                forces[lagged(s, lag / (step * stride as f64), centres.len() - 1)] = true;
            }
        }
        let smooth = |all: &[f64], used: &[bool]| -> Vec<f64> {
            let width = all.len() / band.count.max(1);
            let mut out = vec![0.0; centres.len() * width];
            let places = out.chunks_exact_mut(width.max(1)).zip(&centres).zip(used);
            for ((out, &centre), _) in places.filter(|(_, used)| **used) {
                let rows = all[(centre - half) * width..(centre + half + 1) * width].chunks_exact(width);
                for (row, w) in rows.zip(weights) {
                    out.iter_mut().zip(row).for_each(|(out, x)| *out += w * x);
                }
            }
            out
        };
        let filtered_keep = |keep: &[bool]| -> Vec<bool> {
            let rows = keep.len() / band.count.max(1);
            let mut window = Vec::with_capacity(weights.len());
            let mut out = vec![false; centres.len() * rows];
            for s in samples.clone() {
                for (row, out) in out[s * rows..(s + 1) * rows].iter_mut().enumerate() {
                    window.clear();
                    window.extend((centres[s] - half..=centres[s] + half).map(|s| keep[s * rows + row]));
                    *out = filter.keeps(&window);
                }
            }
            out
        };
        let [mut q, v, a] = [band.q, band.v, band.a].map(|all| smooth(all, &motions));
        if let Some(closed) = equations.closed() {
            let mut workspace = closed.workspace();
            let rows = q.chunks_exact_mut(closed.mechanism().nq());
            for (q, _) in rows.zip(&motions).filter(|(_, used)| **used) {
                if closed.close(&mut workspace, q).is_err() {
                    return Ok(());
                }
            }
        }
        let tau = smooth(band.tau, &forces);
        let signs: Vec<f64> = band.v.iter().map(|v| if *v == 0.0 { 0.0 } else { v.signum() }).collect();
        let signs = smooth(&signs, &motions);
        let (keep, columns) = (band.keep.map(filtered_keep), band.columns.map(|all| smooth(all, &motions)));
        let (keep, columns) = (keep.as_deref(), columns.as_deref());
        let low = Band { count: centres.len(), q: &q, v: &v, a: &a, tau: &tau, keep, columns, signs: &signs };
        self.add_band(&low, step * stride as f64, samples);
        Ok(())
    }

    fn add_band(&mut self, band: &Band<'_>, step: f64, samples: impl Iterator<Item = usize>) {
        let last = band.count.saturating_sub(1);
        let rows = band.tau.len() / band.count.max(1);
        let tau = |s: usize| band.of(band.tau, s);
        for s in samples {
            self.count += 1;
            self.q.extend_from_slice(band.of(band.q, s));
            self.v.extend_from_slice(band.of(band.v, s));
            self.a.extend_from_slice(band.of(band.a, s));
            self.tau.extend_from_slice(tau(s));
            self.signs.extend_from_slice(band.of(band.signs, s));
            self.before.add(band, s - 1);
            self.after.add(band, s + 1);
            self.between.push(2.0 * step);
            for (lag, sum) in LAGS.into_iter().zip(&mut self.lags) {
                self.tau_later.extend_from_slice(tau(lagged(s, lag / step, last)));
                *sum += (lag / step).round() * step;
            }
            match band.keep {
                Some(keep) => self.keep.extend_from_slice(band.of(keep, s)),
                None => self.keep.extend(std::iter::repeat_n(true, rows)),
            }
            if let Some(columns) = band.columns {
                self.columns.extend_from_slice(band.of(columns, s));
            }
        }
    }

    /// Returns the samples in the low band, if there are any.
    pub(crate) fn low_band(&self) -> Option<&Self> {
        self.low.as_deref()
    }

    /// Returns the mean of one of [`LAGS`] (s) after rounding to whole samples.
    pub(crate) fn rounded_lag(&self, lag: usize) -> f64 {
        self.lags[lag] / self.count.max(1) as f64
    }

    /// Returns the forces delayed by one of [`LAGS`].
    pub(crate) fn later(&self, lag: usize) -> Vec<f64> {
        let rows = self.tau.len() / self.count.max(1);
        let own = |all: &[f64]| all[lag * rows..(lag + 1) * rows].to_vec();
        self.tau_later.chunks_exact((LAGS.len() * rows).max(1)).flat_map(own).collect()
    }

    /// Returns the number of reversals of the joint that reverses most often; `None` if no joint moves. Speeds below a tenth of the
    /// highest one of the joint do not count, because they may be noise.
    pub(crate) fn reversals(&self) -> Option<usize> {
        let nv = self.v.len() / self.count.max(1);
        let of_joint = |joint: usize| {
            let speeds = || self.v.iter().skip(joint).step_by(nv);
            let highest = speeds().fold(0.0_f64, |most, v| most.max(v.abs()));
            let mut signs = speeds().filter(|v| v.abs() > COUNTED_SPEED * highest).map(|v| v.signum());
            let mut last = signs.next()?;
            let changes = signs.filter(|sign| std::mem::replace(&mut last, *sign) != *sign);
            Some(changes.count())
        };
        (0..nv).filter_map(of_joint).max()
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
            lags: self.lags.map(|sum| sum / n.max(1) as f64 * n.div_ceil(every) as f64),
            keep: pick(&self.keep, n, every),
            columns: pick(&self.columns, n, every),
            signs: pick(&self.signs, n, every),
            low: None,
        }
    }

    /// Computes the time derivative of the forces predicted with given values of the unknowns.
    pub(crate) fn predicted_rate(&self, equations: &Equations<'_>, values: &[f64]) -> Result<Vec<f64>> {
        let force = |motion: &Motion| -> Result<Vec<f64>> {
            let samples = equations.samples(self.count, &motion.q, &motion.v, &motion.a)?;
            let mut data = Measurements::new(samples, &self.tau);
            data.columns = (!equations.joint_model().columns.is_empty()).then_some(&motion.columns[..]);
            data.signs = (!motion.signs.is_empty()).then_some(&motion.signs[..]);
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
        out.signs = (!self.signs.is_empty()).then_some(&self.signs[..]);
        if !equations.joint_model().columns.is_empty() {
            out.columns = Some(&self.columns);
        }
        Ok(out)
    }
}
