//! Resampling of logged rows on a uniform time grid.

use inertial::consistency::significant;

use crate::clean::first_pass::{LOST, LogStatistics};
use crate::clean::spool::Spool;
use crate::clean::timestamps::GAP;
use crate::columns::layout::Layout;
use crate::{Error, Result, count};

/// Maximum number of rows that wait for the end of a gap in some column.
const MOST_WAITING: usize = 1 << 17;
/// Largest number of gaps that count as pauses of the recording.
const FEW_GAPS: usize = 10;
/// Number of rows read from the spool at once.
const BLOCK: usize = 1 << 13;

/// Longest gap that is interpolated without a mark, in periods of the low-pass cut-off. For a motion within a fifth of the cut-off,
/// linear interpolation changes the filtered acceleration by less than 1 %.
const BRIDGED: f64 = 0.125;

/// Consumer of rows with their marks; see [`Layout::mark_bit`].
pub(crate) type Sink<'s> = dyn FnMut(&[f64], &[u64]) -> Result<()> + 's;

/// Uniform time grid of a log.
pub(crate) struct Grid {
    pub start: f64,
    pub step: f64,
    pub count: usize,
    /// Whether the rows are already on the grid.
    direct: bool,
    /// Longest time step, and longest interval without a value of a column, that are not gaps.
    gap: f64,
    hole: f64,
    /// Whether some values are missing.
    holes: bool,
    /// Whether each value of a row is used; the gaps of others are not bridged.
    used: Vec<bool>,
    /// Row and place of values that are treated as missing, ordered by row.
    alone: Vec<(usize, usize)>,
}

impl Grid {
    /// Creates the grid at the log's mean rate, or at the rate `resample` (Hz).
    pub fn new(
        layout: &Layout,
        statistics: &LogStatistics,
        resample: Option<f64>,
        notes: &mut Vec<String>,
    ) -> Result<Self> {
        let stamps = &statistics.stamps;
        let n = stamps.count;
        if n < 8 {
            return Err(Error::content(
                layout.place(),
                format!("{n} samples are too few, expected at least eight"),
            ));
        }
        let span = stamps.end - stamps.start;
        let (longest, line) = stamps.longest;
        let rounding = if stamps.is_uniform() { None } else { stamps.rounding() };
        let uniform = stamps.is_uniform() || rounding.is_some();
        let steps = if uniform { (n - 1) as f64 } else { stamps.grid_steps() };
        // More than twice as many steps as samples: the median is not representative of these stamps.
        if steps > 2.0 * n as f64 {
            let [longest, typical] = [longest, stamps.typical].map(|x| significant(x, 3));
            let message = if stamps.gaps() <= FEW_GAPS {
                format!(
                    "the time jumps by {longest} s here, the usual step is {typical} s: if the recording paused, split the log \
                     before this row and give both parts as logs; else correct the time"
                )
            } else {
                format!(
                    "time stamps are too irregular: the usual step is {typical} s, but there are {} longer gaps, the longest of \
                     {longest} s here; check the time column",
                    stamps.gaps()
                )
            };
            return Err(Error::time(layout.stamp(line), message));
        }
        if let Some(unit) = rounding {
            let rate = significant((n - 1) as f64 / span, 6);
            notes.push(format!("time stamps are rounded to {unit} s: taken as uniform at {rate} Hz"));
        }
        let mut missed = Vec::new();
        for (place, channel) in statistics.channels.iter().enumerate().filter(|(_, c)| c.missing > 0) {
            if !layout.is_used(place) {
                continue;
            }
            let (missing, name) = (channel.missing, &layout.names[place]);
            if missing as f64 > LOST * n as f64 {
                let message = format!("{missing} of {n} values are missing, the first in this row");
                let place = layout.place().row(channel.first_missing).column(name);
                return Err(Error::content(place, message));
            }
            missed.push(format!("{missing} of {name}"));
        }
        if !missed.is_empty() {
            notes.push(format!("missing values were interpolated: {}", missed.join(", ")));
        }
        let mut out = Self {
            start: stamps.start,
            step: span / steps,
            count: count(steps) + 1,
            direct: uniform,
            gap: GAP * stamps.typical,
            hole: 0.0,
            holes: !statistics.glitches.is_empty() || statistics.channels.iter().any(|c| c.missing > 0),
            used: (0..layout.width()).map(|place| layout.is_used(place)).collect(),
            alone: statistics.glitches.iter().map(|glitch| (glitch.row, glitch.place)).collect(),
        };
        if !uniform {
            out.irregular(layout, statistics, notes)?;
        }
        if let Some(rate) = resample {
            if !(rate > 0.0 && rate.is_finite() && span * rate >= 8.0 && rate * out.step <= 1e3) {
                let own = significant(1.0 / out.step, 6);
                let message = format!("resampling at {rate} Hz: the log has {own} Hz for {span:.3} s");
                return Err(Error::Option(message));
            }
            notes.push(format!("resampled at {rate} Hz"));
            // The last point may coincide with the last stamp up to rounding.
            out = Self { step: 1.0 / rate, count: count(span * rate + 1e-6) + 1, direct: false, ..out };
        }
        Ok(out)
    }

    /// Accepts gaps that are short compared with the period of a low-pass; returns a note if there are gaps.
    pub fn tolerate(&mut self, cutoff_hz: f64) -> Option<String> {
        let short = BRIDGED / cutoff_hz;
        // The interval between values is one step longer than the gap.
        self.hole = short + 1.001 * self.step;
        self.gap = self.gap.max(self.hole);
        self.holes.then(|| format!("samples near gaps longer than {short:.3} s are left out of the fit"))
    }

    /// Returns whether the rows are the logged ones, without interpolation.
    pub fn is_direct(&self) -> bool {
        self.direct
    }

    fn irregular(&self, layout: &Layout, statistics: &LogStatistics, notes: &mut Vec<String>) -> Result<()> {
        let stamps = &statistics.stamps;
        let (span, in_gaps, (longest, line)) = (stamps.end - stamps.start, stamps.in_gaps, stamps.longest);
        let (own, recorded) = (in_gaps - stamps.inserted, span - stamps.inserted);
        if own > LOST * recorded {
            let message = format!(
                "{:.0} % of the time is in gaps; the longest, {longest:.3} s, ends here: split the log at \
                 its gaps",
                100.0 * own / recorded
            );
            return Err(Error::time(layout.stamp(line), message));
        }
        let gaps =
            if in_gaps > 0.0 { format!(", {in_gaps:.3} s in gaps interpolated") } else { String::new() };
        notes.push(format!(
            "time stamps are irregular (steps {:.3} ms ± {:.3} ms): resampled at {} Hz{gaps}",
            1e3 * self.step,
            1e3 * stamps.jitter(self.step),
            significant(1.0 / self.step, 6),
        ));
        Ok(())
    }

    /// Passes the rows on the grid (without time) to `sink`, with a mark for each interpolated one.
    pub fn each(&self, layout: &Layout, spool: &mut Spool, sink: &mut Sink<'_>) -> Result<()> {
        let width = layout.width() + 1;
        let mut bridge = Bridge::new(layout, &self.used, self.hole);
        let mut alone = self.alone.iter().peekable();
        let mut resampler = Resampler::new(self, width);
        let (mut values, mut block) = (Vec::new(), Vec::new());
        let total = spool.len();
        for first in (0..total).step_by(BLOCK) {
            let last = (first + BLOCK).min(total);
            let ended = last == total;
            if self.holes {
                block.clear();
                let held = bridge.rows.len();
                spool.read(first..last, &mut bridge.rows)?;
                while let Some((row, place)) = alone.next_if(|(row, _)| *row < last) {
                    bridge.rows[held + (row - first) * width + place + 1] = f64::NAN;
                }
                bridge.fill(ended)?;
                bridge.release(&mut block, &mut resampler.hole);
            } else {
                spool.replace(first..last, &mut block)?;
                resampler.hole.resize(resampler.hole.len() + last - first, 0);
            }
            if self.direct {
                values.resize(block.len() / width * (width - 1), 0.0);
                let rows = values.chunks_exact_mut((width - 1).max(1)).zip(block.chunks_exact(width));
                rows.for_each(|(to, row)| to.copy_from_slice(&row[1..]));
                sink(&values, &resampler.hole)?;
                resampler.hole.clear();
            } else {
                resampler.rows.extend_from_slice(&block);
                resampler.advance(ended, sink)?;
            }
        }
        Ok(())
    }
}

/// Linear interpolation of gaps, with marks for those that are not short.
struct Bridge<'l> {
    layout: &'l Layout,
    used: &'l [bool],
    width: usize,
    /// Longest interval (s) without a value that counts as short.
    short: f64,
    rows: Vec<f64>,
    hole: Vec<u64>,
    /// Number of rows processed.
    seen: usize,
    /// First row of the open gap of each value.
    open: Vec<Option<usize>>,
    /// Time and value before the gap.
    known: Vec<Option<(f64, f64)>>,
}

impl<'l> Bridge<'l> {
    fn new(layout: &'l Layout, used: &'l [bool], short: f64) -> Self {
        let width = layout.width() + 1;
        Self {
            layout,
            used,
            width,
            short,
            rows: Vec::new(),
            hole: Vec::new(),
            seen: 0,
            open: vec![None; width],
            known: vec![None; width],
        }
    }

    fn fill(&mut self, ended: bool) -> Result<()> {
        let count = self.rows.len() / self.width;
        self.hole.resize(count, 0);
        for i in self.seen..count {
            for c in 1..self.width {
                let (now, x) = (self.rows[i * self.width], self.rows[i * self.width + c]);
                if x.is_nan() && !self.used[c - 1] {
                    self.rows[i * self.width + c] = 0.0;
                    continue;
                }
                if x.is_nan() {
                    self.open[c].get_or_insert(i);
                    continue;
                }
                if let Some(first) = self.open[c].take() {
                    self.line(c, first..i, Some((now, x)));
                }
                self.known[c] = Some((now, x));
            }
        }
        self.seen = count;
        if ended {
            for c in 1..self.width {
                if let Some(first) = self.open[c].take() {
                    self.line(c, first..count, None);
                }
            }
        }
        let longest = self.open.iter().flatten().map(|first| count - first).max().unwrap_or(0);
        if longest > MOST_WAITING {
            let c = self.open.iter().position(Option::is_some).unwrap_or(1);
            let message = format!(
                "{longest} consecutive rows have missing values, after {} s: split the log there",
                self.known[c].map_or(0.0, |(t, _)| t)
            );
            return Err(Error::content(self.layout.column(c - 1), message));
        }
        Ok(())
    }

    /// Interpolates linearly between the values before and after a gap; with only one of them, the result is constant.
    fn line(&mut self, c: usize, gap: std::ops::Range<usize>, after: Option<(f64, f64)>) {
        let ends = match (self.known[c], after) {
            (Some(before), Some(after)) => [before, after],
            (Some(only), None) | (None, Some(only)) => [only, only],
            (None, None) => return,
        };
        let [(ta, a), (tb, b)] = ends;
        let short = tb > ta && tb - ta <= self.short;
        for i in gap {
            if !short {
                self.hole[i] |= self.layout.mark_bit(c - 1);
            }
            let share = if tb > ta { (self.rows[i * self.width] - ta) / (tb - ta) } else { 0.0 };
            self.rows[i * self.width + c] = a + (b - a) * share;
        }
    }

    /// Releases the rows before any open gap.
    fn release(&mut self, rows: &mut Vec<f64>, hole: &mut Vec<u64>) {
        let count = self.open.iter().flatten().copied().min().unwrap_or(self.seen);
        rows.extend(self.rows.drain(..count * self.width));
        hole.extend(self.hole.drain(..count));
        self.open.iter_mut().flatten().for_each(|first| *first -= count);
        self.seen -= count;
    }
}

/// Cubic Hermite interpolation with slopes from the parabola through three samples.
struct Resampler<'g> {
    grid: &'g Grid,
    width: usize,
    /// Rows around the next point, time first.
    rows: Vec<f64>,
    hole: Vec<u64>,
    /// Whether the first of these rows is the log's first row.
    start: bool,
    /// Index of the next point of the grid.
    next: usize,
    /// Index of the row before the next point.
    before: usize,
    values: Vec<f64>,
    bridged: Vec<u64>,
}

impl<'g> Resampler<'g> {
    fn new(grid: &'g Grid, width: usize) -> Self {
        Self {
            grid,
            width,
            rows: Vec::new(),
            hole: Vec::new(),
            start: true,
            next: 0,
            before: 0,
            values: Vec::new(),
            bridged: Vec::new(),
        }
    }

    fn time(&self, i: usize) -> f64 {
        self.rows[i * self.width]
    }

    fn advance(&mut self, ended: bool, sink: &mut Sink<'_>) -> Result<()> {
        let count = self.rows.len() / self.width;
        self.values.clear();
        self.bridged.clear();
        while self.next < self.grid.count {
            let now = self.grid.start + self.grid.step * self.next as f64;
            while self.before + 2 < count && self.time(self.before + 1) <= now {
                self.before += 1;
            }
            // The slope after the point needs one more row, which is missing only at the end of the log.
            let reached = self.before + 2 < count && self.time(self.before + 1) > now;
            if !(reached || ended) {
                break;
            }
            self.point(now, count);
            self.next += 1;
        }
        sink(&self.values, &self.bridged)?;
        // One earlier row is kept for the slope.
        let done = self.before.saturating_sub(1);
        self.rows.drain(..done * self.width);
        self.hole.drain(..done);
        self.before -= done;
        self.start &= done == 0;
        Ok(())
    }

    fn point(&mut self, now: f64, count: usize) {
        let i = self.before;
        let (rows, width, start) = (&self.rows, self.width, self.start);
        let time = |i: usize| rows[i * width];
        let step = |i: usize| time(i + 1) - time(i);
        let h = step(i);
        let s = ((now - time(i)) / h).clamp(0.0, 1.0);
        let (rest, s2) = (1.0 - s, s * s);
        for c in 1..width {
            let value = |i: usize| rows[i * width + c];
            let secant = |i: usize| (value(i + 1) - value(i)) / step(i);
            let slope = |i: usize| {
                if (i == 0 && start) || i + 1 == count {
                    return secant(i.min(count - 2));
                }
                let (before, after) = (step(i - 1), step(i));
                (secant(i - 1) * after + secant(i) * before) / (before + after)
            };
            let x = value(i) * (1.0 + 2.0 * s) * rest * rest
                + value(i + 1) * s2 * (3.0 - 2.0 * s)
                + h * s * rest * (slope(i) * rest - slope(i + 1) * s);
            self.values.push(x);
        }
        self.bridged.push(self.hole[i] | self.hole[i + 1] | u64::from(h > self.grid.gap));
    }
}
