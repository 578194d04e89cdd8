//! Filtered and downsampled records of a log.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::mpsc::{channel, sync_channel};

use crate::Result;
use crate::clean::checks::DerivativeCheck;
use crate::clean::delay::Delay;
use crate::clean::first_pass::LogStatistics;
use crate::clean::resample::Grid;
use crate::clean::spool::Spool;
use crate::columns::layout::Layout;
use crate::filter::differentiate::Derive;
use crate::filter::zero_phase::{Kernel, Smoother};

/// Record of a sample: states, forces and further columns, filtered and raw, and marks.
pub(crate) struct Record {
    pub width: usize,
    /// Velocity coordinates whose force was measured.
    pub measured: Vec<usize>,
    /// Columns whose force saturates, and the values of saturation.
    pub saturated: Vec<(usize, [f64; 2])>,
    /// Position coordinate, velocity coordinate and position of joints that do not move. Deviations from this position are noise, whose
    /// derivatives must not count as motion.
    pub still: Vec<(usize, usize, f64)>,
    /// Ends of the parts.
    ends: [usize; 8],
}

/// Parts of a record.
pub(crate) struct Parts<'r> {
    pub q: &'r [f64],
    pub v: &'r [f64],
    pub a: &'r [f64],
    pub tau: &'r [f64],
    pub tau_raw: &'r [f64],
    pub extra: &'r [f64],
    pub extra_raw: &'r [f64],
    /// Bits of the values that must not be used here; see [`Layout::mark_bit`].
    pub marks: u64,
}

impl Record {
    pub fn new(layout: &Layout, statistics: &LogStatistics, saturated: Vec<(usize, [f64; 2])>) -> Self {
        let measured: Vec<usize> = (0..layout.nv()).filter(|&v| layout.tau[v].is_some()).collect();
        let (nv, nt, ne) = (layout.nv(), measured.len(), layout.extra.len());
        let mut end = 0;
        let ends = [layout.nq(), nv, nv, nt, nt, ne, ne, 1].map(|len| {
            end += len;
            end
        });
        let still = layout.joints.iter().filter(|j| j.joint_type.nq() == 1).filter_map(|j| {
            let place = layout.q[j.q].filter(|&place| statistics.is_still(place))?;
            let (low, high) = statistics.channels[place].range;
            Some((j.q, j.v, 0.5 * (low + high)))
        });
        Self { width: end, measured, saturated, still: still.collect(), ends }
    }

    pub fn split<'r>(&self, row: &'r [f64]) -> Parts<'r> {
        let part = |k: usize| &row[if k == 0 { 0 } else { self.ends[k - 1] }..self.ends[k]];
        Parts {
            q: part(0),
            v: part(1),
            a: part(2),
            tau: part(3),
            tau_raw: part(4),
            extra: part(5),
            extra_raw: part(6),
            marks: part(7)[0] as u64,
        }
    }
}

/// Recorder that filters, differentiates and decimates rows of the grid.
pub(crate) struct Recorder<'l> {
    layout: &'l Layout,
    record: &'l Record,
    derive: Derive<'l>,
    pub records: Spool,
    row: Vec<f64>,
    /// Marks of each kind of unusable value.
    marks: Vec<Marks>,
    /// Maximum speeds.
    pub speeds: Vec<f64>,
    /// Comparisons of velocities and of accelerations with derivatives.
    pub slips: [Vec<DerivativeCheck>; 2],
}

impl<'l> Recorder<'l> {
    pub fn new(layout: &'l Layout, record: &'l Record, grid: &Grid, every: usize, smear: usize) -> Self {
        Self {
            layout,
            record,
            derive: Derive::new(layout, grid.step, grid.count, every),
            records: Spool::new(record.width),
            row: Vec::with_capacity(record.width),
            marks: (0..=record.measured.len().min(52)).map(|_| Marks::new(smear, grid.count)).collect(),
            speeds: vec![0.0; layout.nv()],
            slips: [
                vec![DerivativeCheck::default(); layout.nv()],
                vec![DerivativeCheck::default(); layout.nv()],
            ],
        }
    }

    /// Processes all rows; `watch` receives the share processed.
    pub fn run(
        &mut self,
        grid: &Grid,
        mut delay: Option<Delay>,
        rows: &mut Spool,
        kernel: Option<Kernel>,
        watch: &mut dyn FnMut(f64),
    ) -> Result<()> {
        let source = SmoothedRows { layout: self.layout, record: self.record, grid };
        if rayon::current_num_threads() > 1
            && let Some(done) = std::thread::scope(|scope| {
                let (sender, received) = sync_channel::<Smoothed>(1);
                let (back, used) = channel();
                let recorder = &mut *self;
                let follow = move || {
                    received.into_iter().try_for_each(|smoothed| {
                        recorder.take(&smoothed.rows, &smoothed.raw, &smoothed.marked)?;
                        // After the last rows the memory is no longer needed.
                        let _ = back.send(smoothed);
                        Ok(())
                    })
                };
                // Filtering takes about as long as the following steps, so they run in parallel.
                let follower = std::thread::Builder::new().spawn_scoped(scope, follow).ok()?;
                let done =
                    source.each(delay.as_mut(), rows, kernel.clone(), watch, &mut |rows, raw, marked| {
                        let mut smoothed: Smoothed = used.try_recv().unwrap_or_default();
                        smoothed.rows.clear();
                        smoothed.rows.extend_from_slice(rows);
                        smoothed.raw.clear();
                        smoothed.raw.extend_from_slice(raw);
                        smoothed.marked.clear();
                        std::mem::swap(&mut smoothed.marked, marked);
                        // If the channel is closed, the other thread has failed and reports its error.
                        let _ = sender.send(smoothed);
                        Ok(())
                    });
                drop(sender);
                let followed = follower.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
                Some(followed.and(done))
            })
        {
            return done;
        }
        source.each(delay.as_mut(), rows, kernel, watch, &mut |rows, raw, marked| {
            self.take(rows, raw, marked)?;
            marked.clear();
            Ok(())
        })
    }

    /// Processes smoothed rows, and the marks up to their end.
    fn take(&mut self, rows: &[f64], raw: &[f64], marked: &[(usize, u64)]) -> Result<()> {
        for &(i, mut bits) in marked {
            while bits != 0 {
                self.marks[bits.trailing_zeros() as usize].mark(i);
                bits &= bits - 1;
            }
        }
        self.derive(rows, raw)
    }

    fn derive(&mut self, smooth: &[f64], raw: &[f64]) -> Result<()> {
        let Self { derive, layout, record, records, row, marks, speeds, slips } = self;
        derive.push(smooth, raw, &mut |state| {
            row.clear();
            row.extend_from_slice(state.q);
            row.extend_from_slice(state.v);
            row.extend_from_slice(state.a);
            let (nq, nv) = (state.q.len(), state.v.len());
            for &(q, v, position) in &record.still {
                (row[q], row[nq + v], row[nq + nv + v]) = (position, 0.0, 0.0);
            }
            for (k, speed) in speeds.iter_mut().enumerate() {
                *speed = speed.max(row[nq + k].abs());
                slips[0][k].add(state.v[k], state.derived[k]);
                slips[0][k].add_slope(state.v[k], state.derived[k], state.derived_a[k]);
                slips[1][k].add(state.a[k], state.derived_a[k]);
            }
            for source in [state.row, state.raw] {
                row.extend(record.measured.iter().filter_map(|&v| layout.tau[v]).map(|place| source[place]));
            }
            for source in [state.row, state.raw] {
                row.extend(layout.extra.iter().map(|&place| source[place]));
            }
            let bit = |(k, marks): (usize, &mut Marks)| u64::from(!marks.clear(state.index)) << k;
            row.push(marks.iter_mut().enumerate().map(bit).sum::<u64>() as f64);
            records.push(row)
        })
    }
}

/// Rows passed from one thread to another.
#[derive(Default)]
struct Smoothed {
    rows: Vec<f64>,
    raw: Vec<f64>,
    marked: Vec<(usize, u64)>,
}

/// Consumer of smoothed rows, raw rows, and the indices of marked rows with their marks.
type SmoothedSink<'s> = &'s mut dyn FnMut(&[f64], &[f64], &mut Vec<(usize, u64)>) -> Result<()>;

/// Filtered rows of the grid.
struct SmoothedRows<'l> {
    layout: &'l Layout,
    record: &'l Record,
    grid: &'l Grid,
}

impl SmoothedRows<'_> {
    /// Passes all rows to the consumer; `watch` receives the share processed.
    fn each(
        &self,
        delay: Option<&mut Delay>,
        rows: &mut Spool,
        kernel: Option<Kernel>,
        watch: &mut dyn FnMut(f64),
        sink: SmoothedSink<'_>,
    ) -> Result<()> {
        let Self { layout, record, grid } = *self;
        let mut smoother = Smoother::new(kernel, layout.width(), grid.count);
        let (mut processed, mut marked) = (0, Vec::new());
        let mut take = |rows: &[f64], bridged: &[u64]| {
            for (i, (row, &bridged)) in rows.chunks_exact(layout.width()).zip(bridged).enumerate() {
                let mut bits = bridged;
                for (v, limits) in &record.saturated {
                    if let Some(place) = layout.tau[*v].filter(|&place| limits.contains(&row[place])) {
                        bits |= layout.mark_bit(place);
                    }
                }
                if bits != 0 {
                    marked.push((processed + i, bits));
                }
            }
            processed += bridged.len();
            watch(processed as f64 / grid.count.max(1) as f64);
            smoother.push(rows, &mut |smooth, raw| sink(smooth, raw, &mut marked))
        };
        match delay {
            Some(delay) => {
                grid.each(layout, rows, &mut |rows, bridged| delay.push(rows, bridged, &mut take))?;
                delay.finish(&mut take)?;
            }
            None => grid.each(layout, rows, &mut take)?,
        }
        smoother.finish(&mut |smooth, raw| sink(smooth, raw, &mut marked))
    }
}

/// Samples too close to a mark or to an end.
struct Marks {
    reach: usize,
    count: usize,
    near: VecDeque<Range<usize>>,
}

impl Marks {
    fn new(reach: usize, count: usize) -> Self {
        Self { reach, count, near: VecDeque::new() }
    }

    /// Adds a mark; marks are in order.
    fn mark(&mut self, i: usize) {
        let around = i.saturating_sub(self.reach)..i + self.reach + 1;
        match self.near.back_mut() {
            Some(last) if last.end >= around.start => last.end = around.end,
            _ => self.near.push_back(around),
        }
    }

    /// Returns whether sample `i` is not close to a mark; calls must be in order.
    fn clear(&mut self, i: usize) -> bool {
        while self.near.front().is_some_and(|near| near.end <= i) {
            self.near.pop_front();
        }
        let inside = i >= self.reach && i + self.reach < self.count;
        inside && self.near.front().is_none_or(|near| i < near.start)
    }
}
