//! Time stamps as they come, and signals on a uniform grid.

use crate::{Error, Log, Place, Result};

/// Stamps within this share of a step of the uniform grid count as uniform.
const UNIFORM: f64 = 0.01;
/// A step longer than this many median steps is a gap.
const GAP: f64 = 4.0;
/// How many median steps a row may arrive late and still be put in order; later, the clock was set back.
const LATE: f64 = 20.0;
/// Share of a log that may be lost in gaps and bridged.
const LOST: f64 = 0.1;

/// Signals on a uniform grid.
pub(crate) struct Uniform {
    /// Time of the first sample.
    pub start: f64,
    /// Time between samples.
    pub step: f64,
    /// The columns asked for.
    pub columns: Vec<Vec<f64>>,
    /// Samples that were not measured but bridged.
    pub bridged: Vec<bool>,
    /// What was repaired.
    pub notes: Vec<String>,
}

/// Signals in order of time, as they were sampled.
pub(crate) struct Ordered<'a> {
    log: &'a Log,
    t: usize,
    wanted: &'a [usize],
    time: Vec<f64>,
    /// Their numbers in the log.
    kept: Vec<usize>,
    /// The columns asked for; NaN in gaps.
    pub columns: Vec<Vec<f64>>,
    notes: Vec<String>,
}

impl<'a> Ordered<'a> {
    /// The columns `wanted` of a log in order of time, which is in column `t`.
    pub fn new(log: &'a Log, t: usize, wanted: &'a [usize]) -> Result<Self> {
        let mut notes = Vec::new();
        let kept = ordered(log, t, &mut notes)?;
        let column = |c: usize| kept.iter().map(|&i| log.column_at(c)[i]).collect();
        let (time, columns) = (column(t), wanted.iter().map(|&c| column(c)).collect());
        Ok(Self { log, t, wanted, time, kept, columns, notes })
    }

    /// Where a sample stands in the file.
    pub fn row(&self, i: usize) -> Place {
        self.log.place().row(self.log.rows()[self.kept[i]])
    }

    /// Samples per second, on average.
    pub fn mean_rate(&self) -> f64 {
        let span = self.time.last().zip(self.time.first()).map_or(0.0, |(end, start)| end - start);
        self.time.len() as f64 / span
    }

    /// Bridges gaps and puts the signals on a uniform grid.
    pub fn uniform(mut self) -> Result<Uniform> {
        let columns = std::mem::take(&mut self.columns);
        let mut notes = std::mem::take(&mut self.notes);
        let (log, t, time) = (self.log, self.t, &self.time);
        let row = |i: usize| self.row(i);
        let n = time.len();
        if n < 8 {
            return Err(Error::content(log.place(), format!("{n} samples are too few")));
        }
        let span = time[n - 1] - time[0];
        let median = median(time.windows(2).map(|w| w[1] - w[0]).collect());
        let count = (span / median).round();
        // More than twice as many steps as samples: the median says nothing about these stamps.
        if count > 2.0 * n as f64 {
            let (i, longest) = longest_step(time);
            let message = format!(
                "time stamps are too irregular: the median step is {median:.3e} s, here it is {longest:.3e} s"
            );
            return Err(Error::time(row(i + 1).column(&log.names()[t]), message));
        }
        let steps = crate::count(count);
        let step = span / count;
        let mut hole = vec![false; n];
        let mut bridged_columns = Vec::with_capacity(columns.len());
        for (values, &c) in columns.into_iter().zip(self.wanted) {
            let name = &log.names()[c];
            bridged_columns.push(bridge(
                time,
                values,
                &mut hole,
                &|i| row(i).column(name),
                &mut notes,
                name,
            )?);
        }
        let columns = bridged_columns;
        let off_grid = |i: usize| (time[i] - time[0] - step * i as f64).abs() > UNIFORM * step;
        if steps + 1 == n && !(0..n).any(off_grid) {
            return Ok(Uniform { start: time[0], step, columns, bridged: hole, notes });
        }
        let lost: f64 = time.windows(2).map(|w| w[1] - w[0]).filter(|dt| *dt > GAP * median).sum();
        if lost > LOST * span {
            let (i, longest) = longest_step(time);
            let message = format!(
                "{:.0} % of the time is in gaps; the longest, {longest:.3} s, ends here: cut the log in parts",
                100.0 * lost / span
            );
            return Err(Error::time(row(i + 1).column(&log.names()[t]), message));
        }
        let jitter = time.windows(2).map(|w| (w[1] - w[0] - step).powi(2)).sum::<f64>() / (n - 1) as f64;
        notes.push(format!(
            "time stamps are irregular (steps {:.3} ms ± {:.3} ms): resampled at {:.6} Hz{}",
            1e3 * step,
            1e3 * jitter.sqrt(),
            1.0 / step,
            if lost > 0.0 {
                format!(", {lost:.3} s in gaps bridged and left out of the fit")
            } else {
                String::new()
            }
        ));
        let grid = Grid::new(time, step, steps + 1);
        let bridged = grid
            .cells
            .iter()
            .map(|&(i, _)| hole[i] || hole[i + 1] || time[i + 1] - time[i] > GAP * median)
            .collect();
        let columns = columns.iter().map(|c| grid.resample(time, c)).collect();
        Ok(Uniform { start: time[0], step, columns, bridged, notes })
    }
}

/// The samples in order of time, each time once.
fn ordered(log: &Log, t: usize, notes: &mut Vec<String>) -> Result<Vec<usize>> {
    let time = log.column_at(t);
    let place = |i: usize| log.place().row(log.rows()[i]).column(&log.names()[t]);
    if let Some(i) = time.iter().position(|t| !t.is_finite()) {
        return Err(Error::time(place(i), "there is no time stamp"));
    }
    let steps: Vec<f64> = time.windows(2).map(|w| w[1] - w[0]).filter(|dt| *dt > 0.0).collect();
    if steps.is_empty() {
        return Err(Error::time(log.place().column(&log.names()[t]), "time does not advance"));
    }
    let typical = median(steps);
    let (mut latest, mut late) = (f64::NEG_INFINITY, 0);
    for (i, &now) in time.iter().enumerate() {
        if latest - now > LATE * typical {
            return Err(Error::time(place(i), format!("time runs backwards, from {latest} to {now}")));
        }
        late += usize::from(now < latest);
        latest = latest.max(now);
    }
    let mut order: Vec<usize> = (0..time.len()).collect();
    if late > 0 {
        order.sort_by(|&a, &b| time[a].total_cmp(&time[b]));
        notes.push(format!("{late} rows came late and were put in order of time"));
    }
    let first_double = order.windows(2).find(|w| time[w[0]] == time[w[1]]).map(|w| w[1]);
    if let Some(first) = first_double {
        let before = order.len();
        order.dedup_by(|b, a| time[*a] == time[*b]);
        let doubles = before - order.len();
        if doubles as f64 > LOST * before as f64 {
            let message =
                format!("{doubles} of {before} time stamps repeat the one before: they are too coarse");
            return Err(Error::time(place(first), message));
        }
        notes.push(format!("{doubles} rows with a repeated time stamp were dropped"));
    }
    Ok(order)
}

/// Fills gaps by straight lines and marks them as holes.
fn bridge(
    time: &[f64],
    mut values: Vec<f64>,
    hole: &mut [bool],
    place: &dyn Fn(usize) -> Place,
    notes: &mut Vec<String>,
    name: &str,
) -> Result<Vec<f64>> {
    let Some(first) = values.iter().position(|v| v.is_nan()) else { return Ok(values) };
    let known: Vec<usize> = (0..values.len()).filter(|&i| !values[i].is_nan()).collect();
    let missing = values.len() - known.len();
    if missing as f64 > LOST * values.len() as f64 {
        let message = format!("{missing} of {} values are missing, the first here", values.len());
        return Err(Error::content(place(first), message));
    }
    let fill = |range: std::ops::Range<usize>,
                value: &dyn Fn(usize) -> f64,
                values: &mut [f64],
                hole: &mut [bool]| {
        for i in range {
            values[i] = value(i);
            hole[i] = true;
        }
    };
    let (start, end) = (known[0], known[known.len() - 1]);
    let (head, tail, n) = (values[start], values[end], values.len());
    fill(0..start, &|_| head, &mut values, hole);
    fill(end + 1..n, &|_| tail, &mut values, hole);
    for w in known.windows(2).filter(|w| w[1] > w[0] + 1) {
        let (a, b) = (w[0], w[1]);
        let (va, vb) = (values[a], values[b]);
        let line = |i: usize| va + (vb - va) * (time[i] - time[a]) / (time[b] - time[a]);
        fill(a + 1..b, &line, &mut values, hole);
    }
    notes.push(format!("column {name}: {missing} missing values were bridged and left out of the fit"));
    Ok(values)
}

fn longest_step(time: &[f64]) -> (usize, f64) {
    time.windows(2).map(|w| w[1] - w[0]).enumerate().max_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or((0, 0.0))
}

pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    let middle = values.len() / 2;
    if values.is_empty() { 0.0 } else { *values.select_nth_unstable_by(middle, f64::total_cmp).1 }
}

/// Where the points of a uniform grid lie between the samples.
struct Grid {
    /// The sample before, and the share of the interval after it.
    cells: Vec<(usize, f64)>,
}

impl Grid {
    fn new(time: &[f64], step: f64, count: usize) -> Self {
        let mut i = 0;
        let cells = (0..count)
            .map(|k| {
                let now = time[0] + step * k as f64;
                while i + 2 < time.len() && time[i + 1] <= now {
                    i += 1;
                }
                (i, ((now - time[i]) / (time[i + 1] - time[i])).clamp(0.0, 1.0))
            })
            .collect();
        Self { cells }
    }

    /// Cubic Hermite interpolation with the slopes of the parabola through three samples.
    fn resample(&self, time: &[f64], values: &[f64]) -> Vec<f64> {
        let n = time.len();
        let secant = |i: usize| (values[i + 1] - values[i]) / (time[i + 1] - time[i]);
        let slope = |i: usize| {
            if i == 0 || i + 1 == n {
                return secant(i.min(n - 2));
            }
            let (before, after) = (time[i] - time[i - 1], time[i + 1] - time[i]);
            (secant(i - 1) * after + secant(i) * before) / (before + after)
        };
        self.cells
            .iter()
            .map(|&(i, s)| {
                let h = time[i + 1] - time[i];
                let (rest, s2) = (1.0 - s, s * s);
                values[i] * (1.0 + 2.0 * s) * rest * rest
                    + values[i + 1] * s2 * (3.0 - 2.0 * s)
                    + h * s * rest * (slope(i) * rest - slope(i + 1) * s)
            })
            .collect()
    }
}
