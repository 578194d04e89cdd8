//! First pass over a log: sorts rows by time, unwraps angles, collects statistics.

use std::sync::mpsc::sync_channel;

use inertial::estimation::LogSource;

use crate::clean::glitches::{self, Glitch, GlitchDetector};
use crate::clean::spool::Spool;
use crate::clean::timestamps::{Stamps, TYPICAL, median};
use crate::columns::layout::{Layout, check_unit_quaternion};
use crate::reader::{LogRows, Reader};
use crate::{Error, Result};

/// Maximum delay of a row, in typical steps, that is corrected by sorting; larger ones mean that the clock was set back.
const LATE: f64 = 20.0;
/// Maximum number of turns by which a logger may wrap an angle.
const MOST_TURNS: f64 = 100.0;
/// Maximum share of a log that may be lost: repeated stamps, missing values, gaps.
pub(crate) const LOST: f64 = 0.1;
/// Minimum range (rad or m) that counts as motion.
pub(crate) const STILL: f64 = 1e-3;
/// Share of the changes after a repeated value, from which a signal counts as a staircase.
const REPEATED: f64 = 0.3;
/// Smallest change relative to the root mean square, from which a signal counts as a staircase, and the number of changes that this
/// test needs.
const COARSE: f64 = 0.02;
const MANY: usize = 1000;

/// Statistics of the first pass.
pub(crate) struct LogStatistics {
    /// Stamps of the rows without repeated ones.
    pub stamps: Stamps,
    pub channels: Vec<Channel>,
    /// Isolated outliers, ordered by row.
    pub glitches: Vec<Glitch>,
    pub notes: Vec<String>,
    /// Identity of the log, by its times and positions.
    pub source: LogSource,
}

impl LogStatistics {
    /// Returns whether a position does not move.
    pub fn is_still(&self, place: usize) -> bool {
        let (low, high) = self.channels[place].range;
        high - low < STILL
    }
}

/// Statistics of one value of the rows.
pub(crate) struct Channel {
    pub missing: usize,
    /// Line of the first missing value.
    pub first_missing: usize,
    /// Minimum and maximum, with angles unwrapped.
    pub range: (f64, f64),
    /// Range before unwrapping, over pairs of consecutive values, because a single value may be a glitch.
    pub logged: (f64, f64),
    /// Largest change between two rows, before unwrapping.
    pub jump: f64,
    /// Plateaus at the minimum and the maximum.
    pub plateaus: [Plateau; 2],
    /// Changes between consecutive values.
    pub steps: Steps,
    angle: bool,
    /// Previous value, and last value that was not an outlier, as logged.
    before: f64,
    last: f64,
    offset: f64,
    wraps: usize,
}

/// Changes of a signal between consecutive values, used to detect a staircase.
#[derive(Clone, Copy)]
pub(crate) struct Steps {
    last: f64,
    moved: bool,
    values: usize,
    /// Number of changes, sum of their squares, and smallest change.
    changes: usize,
    squares: f64,
    least: f64,
    /// Number of changes after a repeated value, and the sum of their squares.
    alone: usize,
    alone_squares: f64,
}

/// Staircase signal: coarsely quantized positions, or positions logged more often than measured.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stairs {
    /// Mean square of the step height.
    pub height_squared: f64,
    /// Share of the values that differ from the previous value.
    pub changing: f64,
}

impl Steps {
    fn new() -> Self {
        Self {
            last: f64::NAN,
            moved: true,
            values: 0,
            changes: 0,
            squares: 0.0,
            least: f64::INFINITY,
            alone: 0,
            alone_squares: 0.0,
        }
    }

    fn add(&mut self, x: f64) {
        let change = (x - self.last).abs();
        let moves = change > 0.0;
        self.values += 1;
        if moves {
            self.changes += 1;
            self.squares += change * change;
            self.least = self.least.min(change);
            if !self.moved {
                self.alone += 1;
                self.alone_squares += change * change;
            }
        }
        (self.last, self.moved) = (x, moves);
    }

    /// Returns the smallest change; infinite if the signal is constant.
    pub fn least(&self) -> f64 {
        self.least
    }

    /// Returns the staircase; `None` if the signal is smooth.
    pub fn stairs(&self) -> Option<Stairs> {
        let count = self.changes as f64;
        if self.alone as f64 > REPEATED * count {
            let height_squared = self.alone_squares / self.alone as f64;
            return Some(Stairs { height_squared, changing: count / self.values as f64 });
        }
        // For a smooth signal with that many changes, the smallest one is much smaller.
        let height_squared = self.least * self.least;
        let coarse = self.changes >= MANY && height_squared > COARSE * COARSE * self.squares / count;
        coarse.then_some(Stairs { height_squared, changing: 1.0 })
    }
}

/// Samples of a signal at an extreme value.
#[derive(Clone, Copy)]
pub(crate) struct Plateau {
    pub value: f64,
    pub count: usize,
    run: usize,
    /// Length of the longest run.
    pub longest: usize,
}

impl Plateau {
    fn at(value: f64) -> Self {
        Self { value, count: 0, run: 0, longest: 0 }
    }

    fn add(&mut self, x: f64, beyond: bool) {
        if beyond {
            *self = Self::at(x);
        }
        if x == self.value {
            self.count += 1;
            self.run += 1;
            self.longest = self.longest.max(self.run);
        } else {
            self.run = 0;
        }
    }
}

impl Channel {
    fn new(angle: bool) -> Self {
        let none = (f64::INFINITY, f64::NEG_INFINITY);
        Self {
            missing: 0,
            first_missing: 0,
            range: none,
            logged: none,
            jump: 0.0,
            plateaus: [Plateau::at(f64::INFINITY), Plateau::at(f64::NEG_INFINITY)],
            steps: Steps::new(),
            angle,
            before: f64::NAN,
            last: f64::NAN,
            offset: 0.0,
            wraps: 0,
        }
    }

    fn add(&mut self, x: &mut f64, line: usize) {
        if x.is_nan() {
            if self.missing == 0 {
                self.first_missing = line;
            }
            self.missing += 1;
            return;
        }
        self.steps.add(*x);
        self.plateaus[0].add(*x, *x < self.plateaus[0].value);
        self.plateaus[1].add(*x, *x > self.plateaus[1].value);
        let change = *x - self.last;
        if change.is_finite() {
            self.logged = (self.logged.0.min(x.max(self.before)), self.logged.1.max(x.min(self.before)));
        }
        self.before = *x;
        self.jump = self.jump.max(change.abs());
        if self.angle {
            // No joint makes half a turn between two samples. The first change is NaN, which is not a turn. A change by more turns than any
            // logger wraps is an outlier. Rounding is slow, and almost all changes are small.
            let turns = if change.abs() > 3.0 { (change / std::f64::consts::TAU).round() } else { 0.0 };
            if turns.abs() > 0.0 && turns.abs() <= MOST_TURNS {
                self.offset -= turns * std::f64::consts::TAU;
                self.wraps += 1;
            }
            if turns.abs() <= MOST_TURNS {
                self.last = *x;
            }
            *x += self.offset;
        } else {
            self.last = *x;
        }
        self.range = (self.range.0.min(*x), self.range.1.max(*x));
    }
}

/// Reads a log to its end and stores the rows, time first and ordered by time, in the spool. `watch` receives the share read.
pub(crate) fn collect_statistics(
    reader: &mut dyn Reader,
    layout: &Layout,
    watch: &mut dyn FnMut(f64),
) -> Result<(LogStatistics, Spool)> {
    reader.select(&layout.sources);
    let mut order = Sorter::new(layout);
    let mut collector = Collector::new(layout);
    let mut take = |rows: LogRows, share: Option<f64>| {
        share.map(&mut *watch);
        order.push(rows)?;
        if order.typical.is_some() || order.lines.len() >= TYPICAL {
            order.release(false, &mut collector)?;
        }
        Ok(())
    };
    if rayon::current_num_threads() == 1 || !ahead(reader, &mut take)? {
        while let Some(rows) = reader.next_rows()? {
            take(rows, reader.fraction_read())?;
        }
    }
    if order.total == 0 {
        return Err(Error::content(layout.place(), "has a header but no rows"));
    }
    order.release(true, &mut collector)?;
    let (mut statistics, spool) = collector.finish(&order)?;
    statistics.stamps.inserted = reader.inserted_time();
    Ok((statistics, spool))
}

/// Reads to the end in a separate thread: the next rows are parsed while the current ones are processed. Returns whether a thread was
/// available; otherwise nothing is read.
fn ahead(reader: &mut dyn Reader, take: &mut impl FnMut(LogRows, Option<f64>) -> Result<()>) -> Result<bool> {
    std::thread::scope(|scope| {
        let (sender, received) = sync_channel(1);
        let started = std::thread::Builder::new().spawn_scoped(scope, move || {
            while let Some(rows) = reader.next_rows().transpose() {
                let last = rows.is_err();
                // The channel is closed if an earlier row was rejected.
                if sender.send((rows, reader.fraction_read())).is_err() || last {
                    return;
                }
            }
        });
        if started.is_err() {
            return Ok(false);
        }
        received.into_iter().try_for_each(|(rows, share)| take(rows?, share))?;
        Ok(true)
    })
}

/// Sorter of rows that arrive late.
struct Sorter<'l> {
    layout: &'l Layout,
    width: usize,
    /// Rows that wait for later ones, time first.
    rows: Vec<f64>,
    lines: Vec<usize>,
    /// Number of these rows that were compared with the previous ones.
    compared: usize,
    typical: Option<f64>,
    latest: f64,
    late: usize,
    total: usize,
    places: Vec<usize>,
}

impl<'l> Sorter<'l> {
    fn new(layout: &'l Layout) -> Self {
        Self {
            layout,
            width: layout.width() + 1,
            rows: Vec::new(),
            lines: Vec::new(),
            compared: 0,
            typical: None,
            latest: f64::NEG_INFINITY,
            late: 0,
            total: 0,
            places: Vec::new(),
        }
    }

    fn push(&mut self, rows: LogRows) -> Result<()> {
        if let Some(i) = (0..rows.len()).find(|i| !rows.values[i * self.width].is_finite()) {
            return Err(Error::time(self.layout.stamp(rows.lines[i]), "there is no time stamp"));
        }
        self.total += rows.len();
        if self.lines.is_empty() {
            (self.rows, self.lines) = (rows.values, rows.lines);
        } else {
            self.rows.extend(rows.values);
            self.lines.extend(rows.lines);
        }
        Ok(())
    }

    fn time(&self, i: usize) -> f64 {
        self.rows[i * self.width]
    }

    /// Returns the error about a time that never advances.
    fn stands_still(&self) -> Error {
        let (first, second) = (self.time(0), self.time(self.lines.len().min(2) - 1));
        let message = if self.lines.len() == 1 {
            "one row is too few".to_owned()
        } else if second < first {
            format!("time runs backwards, from {first} to {second}")
        } else {
            format!("time does not advance: it is {second}, as in the row before")
        };
        Error::time(self.layout.stamp(self.lines[self.lines.len().min(2) - 1]), message)
    }

    /// Releases the rows that no later row can precede; all of them at the end.
    fn release(&mut self, end: bool, collector: &mut Collector<'_>) -> Result<()> {
        let count = self.lines.len();
        let typical = if let Some(typical) = self.typical {
            typical
        } else {
            let steps = (1..count).map(|i| self.time(i) - self.time(i - 1)).filter(|dt| *dt > 0.0);
            let typical = median(steps.collect());
            if typical <= 0.0 {
                return Err(self.stands_still());
            }
            *self.typical.insert(typical)
        };
        let mut sorted = true;
        for i in self.compared..count {
            let now = self.time(i);
            if self.latest - now > LATE * typical {
                let message = format!("time runs backwards, from {} to {now}", self.latest);
                return Err(Error::time(self.layout.stamp(self.lines[i]), message));
            }
            if now < self.latest {
                self.late += 1;
                sorted = false;
            }
            self.latest = self.latest.max(now);
        }
        if !sorted {
            let mut order = std::mem::take(&mut self.places);
            order.clear();
            order.extend(0..count);
            order.sort_by(|&a, &b| self.time(a).total_cmp(&self.time(b)));
            let row = |&i: &usize| &self.rows[i * self.width..(i + 1) * self.width];
            self.rows = order.iter().flat_map(row).copied().collect();
            self.lines = order.iter().map(|&i| self.lines[i]).collect();
            self.places = order;
        }
        let final_before = if end { f64::INFINITY } else { self.latest - LATE * typical };
        let released = (0..count).rev().find(|&i| self.time(i) < final_before).map_or(0, |i| i + 1);
        collector.take(&mut self.rows[..released * self.width], &self.lines[..released], typical)?;
        self.rows.drain(..released * self.width);
        self.lines.drain(..released);
        self.compared = self.lines.len();
        Ok(())
    }
}

/// Collector of statistics and storage of the sorted rows.
struct Collector<'l> {
    layout: &'l Layout,
    statistics: LogStatistics,
    watch: GlitchDetector,
    spool: Spool,
    doubles: usize,
    first_double: usize,
    /// Number of rows that are equal to the row before.
    copies: usize,
    /// Last row as logged.
    last: Vec<f64>,
    quaternions: Vec<Option<[f64; 4]>>,
}

impl<'l> Collector<'l> {
    fn new(layout: &'l Layout) -> Self {
        let mut angle = vec![false; layout.width()];
        for (place, is_angle) in layout.q.iter().zip(&layout.angles) {
            if let Some(place) = place {
                angle[*place] = *is_angle;
            }
        }
        Self {
            layout,
            statistics: LogStatistics {
                stamps: Stamps::new(),
                channels: angle.into_iter().map(Channel::new).collect(),
                glitches: Vec::new(),
                notes: Vec::new(),
                source: LogSource { name: layout.file.clone(), ..LogSource::default() },
            },
            watch: GlitchDetector::new(layout.width() + 1),
            spool: Spool::new(layout.width() + 1),
            doubles: 0,
            first_double: 0,
            copies: 0,
            last: vec![f64::NAN; layout.width() + 1],
            quaternions: vec![None; layout.quaternions.len()],
        }
    }

    /// Adds rows in the order of time; rows with a repeated stamp are dropped.
    fn take(&mut self, rows: &mut [f64], lines: &[usize], typical: f64) -> Result<()> {
        let width = self.layout.width() + 1;
        // Rows since the last repeated one are stored in the spool at once.
        let mut from = 0;
        for (i, &line) in lines.iter().enumerate() {
            let row = &mut rows[i * width..(i + 1) * width];
            let stamps = &mut self.statistics.stamps;
            if stamps.count > 0 && row[0] == stamps.end {
                let is_copy = row.iter().zip(&self.last).all(|(x, last)| x.to_bits() == last.to_bits());
                if is_copy {
                    self.copies += 1;
                } else {
                    if self.doubles == 0 {
                        self.first_double = line;
                    }
                    self.doubles += 1;
                }
                self.keep(&rows[from * width..i * width], &lines[from..i])?;
                from = i + 1;
                continue;
            }
            stamps.add(row[0], line, typical);
            self.last.copy_from_slice(row);
            let identity = self.layout.identity().map(|place| row[1 + place]);
            self.statistics.source.add_row(std::iter::once(row[0]).chain(identity));
            for (channel, x) in self.statistics.channels.iter_mut().zip(&mut row[1..]) {
                channel.add(x, line);
            }
            self.turn(&mut row[1..], line)?;
        }
        self.keep(&rows[from * width..], &lines[from..])
    }

    fn keep(&mut self, rows: &[f64], lines: &[usize]) -> Result<()> {
        self.watch.push(rows, lines);
        self.spool.push(rows)
    }

    /// Keeps the sign of quaternions continuous, so that they can be interpolated and filtered.
    fn turn(&mut self, row: &mut [f64], line: usize) -> Result<()> {
        for (&first, last) in self.layout.quaternions.iter().zip(&mut self.quaternions) {
            let places = &self.layout.q[first..first + 4];
            let &[Some(x), Some(y), Some(z), Some(w)] = places else { continue };
            let now = [x, y, z, w].map(|k| row[k]);
            let norm = now.iter().map(|x| x * x).sum::<f64>().sqrt();
            if norm.is_nan() {
                continue;
            }
            check_unit_quaternion(norm, &self.layout.positions[first], || self.layout.place().row(line))?;
            let flip = last.is_some_and(|last| (0..4).map(|c| last[c] * now[c]).sum::<f64>() < 0.0);
            let now = now.map(|x| if flip { -x } else { x });
            [x, y, z, w].iter().zip(now).for_each(|(&k, x)| row[k] = x);
            *last = Some(now);
        }
        Ok(())
    }

    fn finish(mut self, order: &Sorter<'_>) -> Result<(LogStatistics, Spool)> {
        let statistics = &mut self.statistics;
        if order.late > 0 {
            statistics.notes.push(format!("{} rows were out of order and were sorted by time", order.late));
        }
        if self.doubles > 0 {
            let (doubles, before) = (self.doubles, order.total);
            if doubles as f64 > LOST * before as f64 {
                let message = format!(
                    "{doubles} of {before} rows have the time of the row before, but other values: the resolution of the time is \
                     too coarse; write it with more digits, or remove its column and give the sampling rate"
                );
                return Err(Error::time(self.layout.stamp(self.first_double), message));
            }
            statistics.notes.push(format!(
                "rows with the time of the row before, but other values, were dropped: {doubles}"
            ));
        }
        if self.copies > 0 {
            statistics.notes.push(format!("rows that repeat the row before were dropped: {}", self.copies));
        }
        statistics.stamps.finish();
        statistics.glitches = self.watch.finish();
        statistics.notes.extend(glitches::notes(&statistics.glitches, &self.layout.names));
        for (k, name) in self.layout.positions.iter().enumerate() {
            let wraps = self.layout.q[k].map_or(0, |place| statistics.channels[place].wraps);
            if wraps > 0 {
                statistics.notes.push(format!("the angle of {name} was unwrapped {wraps} times"));
            }
        }
        Ok((self.statistics, self.spool))
    }
}
