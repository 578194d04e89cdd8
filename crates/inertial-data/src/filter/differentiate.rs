//! Differentiation of a stream of rows, for velocities and accelerations that were not measured.

use crate::Result;
use crate::columns::layout::Layout;

/// Number of samples on either side in the stencil of a derivative.
pub(crate) const REACH: usize = 2;

/// Sample with all derivatives.
pub(crate) struct MotionState<'s> {
    /// Index of the sample.
    pub index: usize,
    pub q: &'s [f64],
    pub v: &'s [f64],
    pub a: &'s [f64],
    /// Velocities from positions (also if they were measured), and accelerations from velocities.
    pub derived: &'s [f64],
    pub derived_a: &'s [f64],
    /// Row after and before filtering.
    pub row: &'s [f64],
    pub raw: &'s [f64],
}

/// Differentiator that completes states, by differences over two and four steps combined to fourth order.
pub(crate) struct Derive<'l> {
    layout: &'l Layout,
    step: f64,
    count: usize,
    /// Interval between the requested states, in samples.
    every: usize,
    /// Whether accelerations are computed.
    accelerations: bool,
    /// Position and velocity coordinates of joints with one of each.
    single: Vec<(usize, usize)>,
    /// Waiting data: rows, rows before filtering, positions, derived velocities, velocities.
    rows: Queue,
    raw: Queue,
    q: Queue,
    derived: Queue,
    v: Queue,
    a: Vec<f64>,
    derived_a: Vec<f64>,
    next: usize,
}

/// Consecutive rows; the oldest are dropped from time to time.
struct Queue {
    width: usize,
    first: usize,
    data: Vec<f64>,
}

impl Queue {
    fn new(width: usize) -> Self {
        Self { width, first: 0, data: Vec::new() }
    }

    /// Returns the index after the last row; rows of zero width must be counted separately.
    fn end(&self) -> usize {
        self.first + self.data.len() / self.width.max(1)
    }

    fn row(&self, i: usize) -> &[f64] {
        let at = (i - self.first) * self.width;
        &self.data[at..at + self.width]
    }

    fn drop_before(&mut self, i: usize) {
        let rows = i.saturating_sub(self.first);
        self.data.drain(..rows * self.width);
        self.first += rows;
    }
}

impl<'l> Derive<'l> {
    /// Creates the differentiator for `count` samples, `step` seconds apart; it emits every n-th state.
    pub fn new(layout: &'l Layout, step: f64, count: usize, every: usize) -> Self {
        let nv = layout.nv();
        Self {
            layout,
            step,
            count,
            every,
            accelerations: true,
            single: layout.joints.iter().filter(|j| j.joint_type.nq() == 1).map(|j| (j.q, j.v)).collect(),
            rows: Queue::new(layout.width()),
            raw: Queue::new(layout.width()),
            q: Queue::new(layout.nq()),
            derived: Queue::new(nv),
            v: Queue::new(nv),
            a: vec![0.0; nv],
            derived_a: vec![0.0; nv],
            next: 0,
        }
    }

    /// Creates the differentiator of positions only: accelerations stay zero.
    pub fn velocities(layout: &'l Layout, step: f64, count: usize) -> Self {
        Self { accelerations: false, ..Self::new(layout, step, count, 1) }
    }

    /// Adds rows, filtered and raw, and emits the states that are complete; all of them after the last row.
    pub fn push(
        &mut self,
        rows: &[f64],
        raw: &[f64],
        sink: &mut dyn FnMut(&MotionState<'_>) -> Result<()>,
    ) -> Result<()> {
        let (nq, nv) = (self.layout.nq(), self.layout.nv());
        let from = self.rows.end();
        self.rows.data.extend_from_slice(rows);
        self.raw.data.extend_from_slice(raw);
        let end = self.rows.end();
        let start = self.q.data.len();
        self.q.data.resize(start + (end - from) * nq, 0.0);
        // Values outside the stencils of requested states stay zero; velocities are also needed in the stencil of an acceleration.
        let every = self.every;
        let wanted = |i: usize, reach: usize| (i + reach) % every <= 2 * reach;
        for i in (from..end).filter(|&i| wanted(i, 2 * REACH)) {
            let at = start + (i - from) * nq;
            let q = &mut self.q.data[at..at + nq];
            self.layout.positions(self.rows.row(i), q);
            normalize(&self.layout.quaternions, q);
        }
        // Number of known values, reduced by the reach of a stencil.
        let known = |end: usize| if end == self.count { end } else { end.saturating_sub(REACH) };
        let velocities = known(end);
        let from = if nv == 0 { velocities } else { self.v.end() };
        let start = self.v.data.len();
        for queue in [&mut self.derived, &mut self.v] {
            queue.data.resize(start + velocities.saturating_sub(from) * nv, 0.0);
        }
        for i in (from..velocities).filter(|&i| wanted(i, REACH)) {
            let at = start + (i - from) * nv;
            self.velocity(i, at);
            self.v.data[at..at + nv].copy_from_slice(&self.derived.data[at..at + nv]);
            let row = self.rows.row(i);
            for (k, place) in self.layout.dq.iter().enumerate() {
                if let Some(place) = place {
                    self.v.data[at + k] = row[*place];
                }
            }
        }
        let states = if velocities == self.count { velocities } else { velocities.saturating_sub(REACH) };
        for i in (self.next.next_multiple_of(self.every)..states).step_by(self.every) {
            let [mut a, mut derived_a] = [&mut self.a, &mut self.derived_a].map(std::mem::take);
            if self.accelerations {
                self.acceleration(i, &mut derived_a);
                a.copy_from_slice(&derived_a);
            }
            let [row, raw] = [&self.rows, &self.raw].map(|queue| queue.row(i));
            for (a, place) in a.iter_mut().zip(&self.layout.ddq) {
                if let Some(place) = place {
                    *a = row[*place];
                }
            }
            let (v, derived) = (self.v.row(i), self.derived.row(i));
            let q = self.q.row(i);
            sink(&MotionState { index: i, q, v, a: &a, derived, derived_a: &derived_a, row, raw })?;
            (self.a, self.derived_a) = (a, derived_a);
        }
        self.next = self.next.max(states);
        let keep = self.next.saturating_sub(REACH);
        for queue in [&mut self.rows, &mut self.raw, &mut self.q, &mut self.derived, &mut self.v] {
            queue.drop_before(keep);
        }
        Ok(())
    }

    /// Returns the samples around `i` for the near difference, and whether the far one is available.
    fn stencil(&self, i: usize) -> (usize, usize, bool) {
        (i.saturating_sub(1), (i + 1).min(self.count - 1), i >= REACH && i + REACH < self.count)
    }

    /// Computes a velocity: the usual five-point stencil for joints with one coordinate; for others the differences are twists.
    fn velocity(&mut self, i: usize, start: usize) {
        let (before, after, inner) = self.stencil(i);
        let out = &mut self.derived.data[start..];
        let [far_before, far_after] = if inner { [i - 2, i + 2] } else { [before, after] };
        let [before_q, after_q, far_before_q, far_after_q] =
            [before, after, far_before, far_after].map(|i| self.q.row(i));
        let span = self.step * (after - before) as f64;
        for &(q, v) in &self.single {
            let near = after_q[q] - before_q[q];
            let far = far_after_q[q] - far_before_q[q];
            out[v] = if inner { (8.0 * near - far) / (12.0 * self.step) } else { near / span };
        }
        for joint in self.layout.joints.iter().filter(|joint| joint.joint_type.nq() > 1) {
            let (places, range) = (joint.positions(), joint.velocities());
            let nv = range.len();
            let difference = |from: &[f64], to: &[f64]| {
                let mut v = [0.0; 6];
                joint.joint_type.difference(&from[places.clone()], &to[places.clone()], &mut v[..nv]);
                v
            };
            let near = difference(before_q, after_q);
            let out = &mut out[range];
            if inner {
                let far = difference(far_before_q, far_after_q);
                (0..nv).for_each(|c| out[c] = (8.0 * near[c] - far[c]) / (12.0 * self.step));
            } else {
                (0..nv).for_each(|c| out[c] = near[c] / span);
            }
        }
    }

    fn acceleration(&self, i: usize, out: &mut [f64]) {
        let (before, after, inner) = self.stencil(i);
        let (from, to) = (self.v.row(before), self.v.row(after));
        if inner {
            let (far_from, far_to) = (self.v.row(i - 2), self.v.row(i + 2));
            for (k, out) in out.iter_mut().enumerate() {
                *out = (8.0 * (to[k] - from[k]) - (far_to[k] - far_from[k])) / (12.0 * self.step);
            }
        } else {
            let span = self.step * (after - before) as f64;
            out.iter_mut().zip(to.iter().zip(from)).for_each(|(out, (to, from))| *out = (to - from) / span);
        }
    }
}

/// Normalizes filtered quaternions.
fn normalize(quaternions: &[usize], q: &mut [f64]) {
    for &first in quaternions {
        let part = &mut q[first..first + 4];
        let norm = part.iter().map(|x| x * x).sum::<f64>().sqrt();
        if norm > 0.0 {
            part.iter_mut().for_each(|x| *x /= norm);
        }
    }
}
