//! Preparation of a log: states and forces for estimation.

use std::ops::Range;

use inertial::consistency::significant;
use inertial::estimation::{Equations, LogSource, Measurements, RowFilter};
use inertial::mechanism::{JointType, Mechanism};

use crate::clean::checks;
use crate::clean::checks::Derivative;
use crate::clean::delay::Delay;
use crate::clean::first_pass::{LogStatistics, collect_statistics};
use crate::clean::resample::Grid;
use crate::clean::spool::Spool;
use crate::columns::layout::Layout;
use crate::filter::cutoff::{self, SMEAR};
use crate::filter::zero_phase::Kernel;
use crate::formats::log_reader::LogReader;
use crate::formats::timed_rows::TimedRows;
use crate::prepare::poses;
use crate::prepare::record::{Record, Recorder};
use crate::reader::Reader;
use crate::{Columns, Error, Log, Options, Result, count};

/// Rate after decimation, in cut-offs: four is the Nyquist rate for frequencies below 2 f₀ (−48 dB there); twice that adds a margin.
const RATE_PER_CUTOFF: f64 = 8.0;
/// Cut-off of the rows of equations, relative to the cut-off of the log: the states are still intact there (gain 0.996).
const ROWS_PER_CUTOFF: f64 = 0.5;
/// Share of reading in the work on a log; the rest is filtering.
const READ: f64 = 0.6;
/// Number of samples processed at once to count the usable ones.
const COUNTED: usize = 1 << 13;

/// States and torques of a log, or of a part of it, on a uniform grid, all with the same filter; sample after sample.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Prepared {
    /// Times.
    pub t: Vec<f64>,
    /// Positions, `nq` per sample.
    pub q: Vec<f64>,
    /// Velocities, `nv` per sample.
    pub v: Vec<f64>,
    /// Accelerations, `nv` per sample.
    pub a: Vec<f64>,
    /// Generalized forces, filtered like the motion, `nv` per sample; zero if not measured.
    pub tau: Vec<f64>,
    /// Unfiltered generalized forces.
    pub tau_raw: Vec<f64>,
    /// Whether each force is to be used, `nv` per sample: measured, not in a filter's transient, not interpolated, not saturated, and
    /// not of a joint near standstill.
    pub keep: Vec<bool>,
    /// Whether each force is measured, `nv` values.
    pub measured: Vec<bool>,
    /// Whether each sample is neither interpolated nor in a filter's transient, so that its `extra` can be used.
    pub sound: Vec<bool>,
    /// Columns [`Options::extra`], filtered like the motion, as many numbers per sample as there are names.
    pub extra: Vec<f64>,
    /// Unfiltered extra columns.
    pub extra_raw: Vec<f64>,
    /// Rate of these samples.
    pub rate_hz: f64,
    /// Rate of the log.
    pub log_rate_hz: f64,
    /// Cut-off of the low-pass, if there is one.
    pub cutoff_hz: Option<f64>,
    /// Low-pass for both sides of equations of these samples, with half the cut-off; `None` if nothing was filtered.
    pub row_filter: Option<RowFilter>,
    /// Notes about repairs and choices.
    pub notes: Vec<String>,
}

impl Prepared {
    /// Returns the number of samples.
    pub fn len(&self) -> usize {
        self.t.len()
    }

    /// Returns whether there are no samples.
    pub fn is_empty(&self) -> bool {
        self.t.is_empty()
    }

    /// Borrows these samples as measurements for the equations of a mechanism without loops, including all results of the preparation:
    /// raw forces, forces to use, independent samples, the filter of both sides, and [`Options::extra`] as the columns of the joint model.
    pub fn measurements<'a>(&'a self, equations: &Equations<'_>) -> inertial::Result<Measurements<'a>> {
        let samples = equations.samples(self.len(), &self.q, &self.v, &self.a)?;
        let mut out = Measurements::new(samples, &self.tau);
        out.tau_raw = Some(&self.tau_raw);
        out.keep = Some(&self.keep);
        out.measured = Some(&self.measured);
        if !equations.joint_model().columns.is_empty() {
            out.columns = Some(&self.extra);
        }
        out.independent = self.independent();
        out.filter = self.row_filter.as_ref();
        Ok(out)
    }

    /// Returns the share of the samples that is independent: a band of `f` Hz carries `2 f` independent numbers per second.
    pub fn independent(&self) -> f64 {
        self.cutoff_hz.map_or(1.0, |f| (2.0 * f / self.rate_hz).min(1.0))
    }
}

/// Prepared log that is read in parts, in memory independent of its length.
///
/// The source is read once, from start to end, so it may be a pipe. Data for later steps are kept in memory, and beyond
/// 32 MB in a temporary file.
///
/// ```
/// use inertial::mechanism::{BuildOptions, builtin};
/// use inertial_data::{CsvReader, Options, PreparedLog};
/// let mechanism = builtin::get("planar-2r")?.build(&BuildOptions::default())?;
/// let mut text = String::from("t,q1,q2,tau1,tau2\n");
/// for k in 0..1000 {
///     let t = 0.005 * f64::from(k);
///     text += &format!("{t},{},{},{},{}\n", (3.0 * t).sin(), (4.0 * t).cos(), (5.0 * t).sin(), (7.0 * t).cos());
/// }
/// let mut reader = CsvReader::new(text.as_bytes(), "log.csv")?;
/// let mut log = PreparedLog::new(&mechanism, &mut reader, &Options::default())?;
/// let (fit, validate) = log.hold_out(0.25)?;
/// assert_eq!(fit.end, validate.start);
/// let part = log.read(fit.start..fit.start + 50)?;
/// assert_eq!((part.len(), part.q.len()), (50, 50 * mechanism.nq()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct PreparedLog {
    layout: Layout,
    records: Spool,
    record: Record,
    start: f64,
    /// Time between samples.
    step: f64,
    log_rate_hz: f64,
    cutoff_hz: Option<f64>,
    row_filter: Option<RowFilter>,
    /// Minimum speed of each velocity coordinate at which its force is used.
    slowest: Vec<f64>,
    /// Samples that belong to neither part of a split.
    mixed: Range<usize>,
    notes: Vec<String>,
    source: LogSource,
}

impl PreparedLog {
    /// Repairs, filters, differentiates and decimates a log of `mechanism`.
    ///
    /// Measured velocities and accelerations are used; others are derivatives of the filtered position or velocity
    /// (five points, fourth order). All signals pass the same filter, so both sides of the equation of motion lose the same
    /// band.
    pub fn new(mechanism: &Mechanism, reader: &mut dyn Reader, options: &Options) -> Result<Self> {
        Self::with_progress(mechanism, reader, options, &mut |_| ())
    }

    /// Prepares a log; `watch` receives the completed share of the work, 0 to 1.
    pub fn with_progress(
        mechanism: &Mechanism,
        reader: &mut dyn Reader,
        options: &Options,
        watch: &mut dyn FnMut(f64),
    ) -> Result<Self> {
        let is_timed = !options.poses || reader.names().iter().any(|name| name == "t");
        let mut numbered;
        let reader: &mut dyn Reader = if is_timed {
            reader
        } else {
            // Rows of poses are numbered instead.
            numbered = TimedRows::new(reader, 1.0);
            &mut numbered
        };
        let columns = Columns::matching(mechanism, reader.file(), reader.names(), options)
            .map_err(|error| error.advised(reader.advice()))?;
        let layout = Layout::new(Some(mechanism), &columns, reader.file(), reader.names());
        Self::of_layout(layout, reader, (&[], is_timed), options, columns.notes, watch)
    }

    /// Prepares columns that belong to no mechanism: [`Options::extra`]. The automatic cut-off is determined by the spectra of
    /// the columns in `motion` (for example angular velocities).
    pub fn of_columns(reader: &mut dyn Reader, motion: &[&str], options: &Options) -> Result<Self> {
        let columns = Columns::named(reader.file(), reader.names(), options)
            .map_err(|error| error.advised(reader.advice()))?;
        let layout = Layout::new(None, &columns, reader.file(), reader.names());
        let moving =
            options.extra.iter().zip(&layout.extra).filter(|(name, _)| motion.contains(&name.as_str()));
        let moving: Vec<usize> = moving.map(|(_, place)| *place).collect();
        Self::of_layout(layout, reader, (&moving, true), options, columns.notes, &mut |_| ())
    }

    fn of_layout(
        mut layout: Layout,
        reader: &mut dyn Reader,
        (moving, is_timed): (&[usize], bool),
        options: &Options,
        mut notes: Vec<String>,
        watch: &mut dyn FnMut(f64),
    ) -> Result<Self> {
        options.check()?;
        let (statistics, mut rows) = collect_statistics(reader, &layout, &mut |share| watch(READ * share))?;
        notes.splice(0..0, reader.notes());
        notes.extend(checks::leave_out_empty_columns(&mut layout, &statistics, options));
        if options.poses {
            if let Some(found) = poses::find(&layout, &statistics, &mut rows, is_timed)? {
                return Self::of_poses(layout, statistics, &mut rows, &found, options, notes);
            } else if !is_timed {
                return Err(poses::no_times(&layout));
            }
        }
        notes.extend(statistics.notes.iter().cloned());
        if !options.trust_units {
            checks::position_units(&layout, &statistics)?;
        }
        let grid = Grid::new(&layout, &statistics, options.resample, &mut notes)?;
        if !options.trust_units {
            checks::time_unit(&layout, grid.step)?;
        }
        notes.extend(checks::leave_out_zero_torques(&mut layout, &statistics, options));
        notes.extend(checks::content(&layout, &statistics, options)?);
        Self::of_grid((layout, statistics, grid), rows, moving, options, notes, watch)
    }

    /// Filters and records the rows on their grid.
    fn of_grid(
        (mut layout, statistics, mut grid): (Layout, LogStatistics, Grid),
        mut rows: Spool,
        moving: &[usize],
        options: &Options,
        mut notes: Vec<String>,
        watch: &mut dyn FnMut(f64),
    ) -> Result<Self> {
        let mut before = notes.clone();
        let saturation = checks::saturation(&layout, &statistics, options)?;
        notes.extend(saturation.notes);
        let record = Record::new(&layout, &statistics, saturation.limits);
        for &(v, _) in &record.saturated {
            if let Some(place) = layout.tau[v] {
                let name = &layout.names[place];
                notes.push(format!("column {name}: the torque saturates; those samples are left out"));
            }
        }
        let rate = 1.0 / grid.step;
        let choose = || cutoff::choose(&layout, &statistics, &grid, &mut rows, moving, options.bandwidths);
        let (kernel, cutoff) = cutoff::kernel(options, rate, choose, &mut notes)?;
        notes.extend(cutoff.and_then(|f| grid.tolerate(f)));
        let every = match (options.decimate, cutoff) {
            (0, Some(f)) => count((rate / (RATE_PER_CUTOFF * f)).floor()).max(1),
            (0, None) => 1,
            (every, _) => every,
        };
        if every > 1 {
            let left = rate / every as f64;
            notes.push(format!("downsampled to {} Hz (one sample of {every})", significant(left, 4)));
        }
        // A disturbance decays to a hundredth within two periods of the cut-off; the stencils of two derivatives reach four
        // samples.
        let smear = cutoff.map_or(4, |f| count((SMEAR * rate / f).ceil())).max(4);
        cutoff::check_length(options, grid.count, rate, (cutoff, smear), every)?;
        let filtered = kernel.as_ref().zip(cutoff);
        let row_filter =
            filtered.map(|filter| row_filter(filter, rate, rate / every as f64)).transpose()?.flatten();
        let row_filter = if grid.is_direct() { row_filter.map(|f| f.sampled(every)) } else { row_filter };
        let mut recorder = Recorder::new(&layout, &record, &grid, every, smear);
        let delay = Delay::new(&layout, options.lag / grid.step);
        if let Some(delay) = &delay {
            notes.push(format!(
                "a {} lag of {} ms was corrected",
                delay.what,
                significant(1e3 * options.lag, 4)
            ));
        }
        recorder.run(&grid, delay, &mut rows, kernel, &mut |share| watch(READ + (1.0 - READ) * share))?;
        let Recorder { records, speeds, slips, .. } = recorder;
        if let Some(note) = checks::leave_out_late_velocities(&mut layout, &statistics, &slips[0]) {
            // Without these columns, other joints can determine the cut-off.
            let grid = Grid::new(&layout, &statistics, options.resample, &mut Vec::new())?;
            before.push(note);
            return Self::of_grid((layout, statistics, grid), rows, moving, options, before, watch);
        }
        drop(rows);
        if !options.trust_units {
            let kinds = [(Derivative::Velocity, &layout.dq), (Derivative::Acceleration, &layout.ddq)];
            for ((of, places), slips) in kinds.into_iter().zip(&slips) {
                for (v, (slip, place)) in slips.iter().zip(places).enumerate() {
                    if let Some(place) = place.as_ref().filter(|_| !checks::is_still(&layout, &statistics, v))
                    {
                        notes.extend(checks::derivative_unit(&layout.column(*place), of, slip)?);
                    }
                }
            }
            checks::speed_units(&layout, &speeds)?;
        }
        let mut slowest: Vec<f64> = speeds.iter().map(|speed| options.slow * speed).collect();
        for base in layout.joints.iter().filter(|j| j.joint_type == JointType::Floating) {
            slowest[base.velocities()].fill(0.0);
        }
        let mut out = Self {
            layout,
            records,
            record,
            start: grid.start,
            step: grid.step * every as f64,
            log_rate_hz: rate,
            cutoff_hz: cutoff,
            row_filter,
            slowest,
            mixed: 0..0,
            notes,
            source: statistics.source,
        };
        out.check_usable()?;
        Ok(out)
    }

    /// Converts rows of poses at rest to one sample per pose.
    fn of_poses(
        layout: Layout,
        statistics: LogStatistics,
        rows: &mut Spool,
        poses: &[Range<usize>],
        options: &Options,
        mut notes: Vec<String>,
    ) -> Result<Self> {
        if !options.trust_units {
            checks::position_units(&layout, &statistics)?;
        }
        notes.push(format!(
            "{} poses at rest: the mean values of each are used, with zero velocity",
            poses.len()
        ));
        let record = Record::new(&layout, &statistics, Vec::new());
        let step = (statistics.stamps.end - statistics.stamps.start) / poses.len() as f64;
        Ok(Self {
            records: poses::records(&layout, &record, rows, poses)?,
            record,
            start: statistics.stamps.start,
            step,
            log_rate_hz: 1.0 / step,
            cutoff_hz: None,
            row_filter: None,
            slowest: vec![0.0; layout.nv()],
            mixed: 0..0,
            notes,
            source: statistics.source,
            layout,
        })
    }

    /// Returns the number of samples.
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// Returns whether there are no samples.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the notes about repairs and choices.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Returns the identity of the log: its name and some of its rows.
    pub fn source(&self) -> &LogSource {
        &self.source
    }

    /// Returns the rate of the samples.
    pub fn rate_hz(&self) -> f64 {
        1.0 / self.step
    }

    /// Returns the cut-off of the low-pass, if there is one.
    pub fn cutoff_hz(&self) -> Option<f64> {
        self.cutoff_hz
    }

    /// Returns the low-pass for both sides of equations of these samples, with half the cut-off; `None` if nothing was filtered.
    pub fn row_filter(&self) -> Option<&RowFilter> {
        self.row_filter.as_ref()
    }

    /// Splits the samples: the last `fraction` of them is held out for validation. Afterwards, samples that the filter mixes
    /// across the split are kept on neither side, so the held-out part is independent of the first.
    pub fn hold_out(&mut self, fraction: f64) -> Result<(Range<usize>, Range<usize>)> {
        if !(fraction > 0.0 && fraction < 1.0) {
            return Err(Error::Option(format!("holdout {fraction}: expected a fraction between 0 and 1")));
        }
        let n = self.len();
        let cut = count(((1.0 - fraction) * n as f64).round());
        if let Some(cutoff) = self.cutoff_hz {
            let reach = count((0.5 * SMEAR * self.rate_hz() / cutoff).ceil());
            self.mixed = cut.saturating_sub(reach)..(cut + reach).min(n);
        }
        Ok((0..cut, cut..n))
    }

    /// Reads some samples.
    pub fn read(&mut self, range: Range<usize>) -> Result<Prepared> {
        let (nq, nv) = (self.layout.nq(), self.layout.nv());
        let range = range.start.min(self.len())..range.end.min(self.len());
        let mut data = Vec::with_capacity(range.len() * self.record.width);
        self.records.read(range.clone(), &mut data)?;
        let n = range.len();
        let mut out = Prepared {
            t: range.clone().map(|i| self.start + self.step * i as f64).collect(),
            q: Vec::with_capacity(n * nq),
            v: Vec::with_capacity(n * nv),
            a: Vec::with_capacity(n * nv),
            tau: vec![0.0; n * nv],
            tau_raw: vec![0.0; n * nv],
            keep: vec![false; n * nv],
            measured: self.layout.tau.iter().map(Option::is_some).collect(),
            sound: Vec::with_capacity(n),
            extra: Vec::with_capacity(n * self.layout.extra.len()),
            extra_raw: Vec::with_capacity(n * self.layout.extra.len()),
            rate_hz: self.rate_hz(),
            log_rate_hz: self.log_rate_hz,
            cutoff_hz: self.cutoff_hz,
            row_filter: self.row_filter.clone(),
            notes: Vec::new(),
        };
        for (i, row) in data.chunks_exact(self.record.width).enumerate() {
            let parts = self.record.split(row);
            let sound = parts.marks & 1 == 0 && !self.mixed.contains(&(range.start + i));
            for (to, part) in [
                (&mut out.q, parts.q),
                (&mut out.v, parts.v),
                (&mut out.a, parts.a),
                (&mut out.extra, parts.extra),
            ] {
                to.extend_from_slice(part);
            }
            out.extra_raw.extend_from_slice(parts.extra_raw);
            out.sound.push(sound);
            for (k, &v) in self.record.measured.iter().enumerate() {
                out.tau[i * nv + v] = parts.tau[k];
                out.tau_raw[i * nv + v] = parts.tau_raw[k];
                let clear = k >= 52 || parts.marks & 2 << k == 0;
                out.keep[i * nv + v] = sound && clear && parts.v[v].abs() >= self.slowest[v];
            }
        }
        Ok(out)
    }

    /// Reads all samples at once, with the notes.
    pub fn read_all(&mut self) -> Result<Prepared> {
        let mut out = self.read(0..self.len())?;
        out.notes.clone_from(&self.notes);
        Ok(out)
    }

    /// Rejects a log with fewer usable forces than the mechanism has parameters; the error contains the reason.
    fn check_usable(&mut self) -> Result<()> {
        let (wanted, nv) = (self.layout.parameters, self.layout.nv());
        let (mut kept, mut slow, mut first) = (0, 0, 0);
        while kept < wanted && first < self.len() {
            let part = self.read(first..first + COUNTED)?;
            kept += part.keep.iter().filter(|&&k| k).count();
            let slowest = self.record.measured.iter().map(|&v| (v, self.slowest[v]));
            for (v, slowest) in slowest {
                slow += (0..part.len()).filter(|i| part.v[i * nv + v].abs() < slowest).count();
            }
            first += COUNTED;
        }
        let measured = self.record.measured.len();
        if kept >= wanted || measured == 0 {
            return Ok(());
        }
        let total = measured * self.len();
        let (near, within) =
            (total - kept - slow.min(total - kept), self.cutoff_hz.map_or(0.0, |f| SMEAR / f));
        let message = format!(
            "only {kept} of {total} torque samples are usable, fewer than the {wanted} parameters of the model: {slow} are of slow \
             joints, {near} within {within:.2} s of a gap, a saturated torque or an end of the log"
        );
        Err(Error::content(self.layout.place(), message))
    }
}

/// Prepares a log that is in memory; see [`PreparedLog::new`].
///
/// ```
/// use inertial::mechanism::{BuildOptions, builtin};
/// use inertial_data::{CsvReader, Log, Options, prepare};
/// let mechanism = builtin::get("planar-2r")?.build(&BuildOptions::default())?;
/// let mut text = String::from("t,q1,q2,tau1,tau2\n");
/// for k in 0..1000 {
///     let t = 0.005 * f64::from(k);
///     text += &format!("{t},{},{},{},{}\n", (3.0 * t).sin(), (4.0 * t).cos(), (5.0 * t).sin(), (7.0 * t).cos());
/// }
/// let log = Log::collect(CsvReader::new(text.as_bytes(), "log.csv")?)?;
/// let prepared = prepare(&mechanism, &log, &Options::default())?;
/// assert_eq!(prepared.q.len(), prepared.len() * mechanism.nq());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn prepare(mechanism: &Mechanism, log: &Log, options: &Options) -> Result<Prepared> {
    PreparedLog::new(mechanism, &mut LogReader::new(log), options)?.read_all()
}

/// Prepares columns of a log that belongs to no mechanism; see [`PreparedLog::of_columns`].
///
/// ```
/// use inertial_data::{CsvReader, Log, Options, prepare_columns};
/// let mut text = String::from("t,ft.fz,gyro.x\n");
/// for k in 0..1000 {
///     let t = 0.005 * f64::from(k);
///     text += &format!("{t},{},{}\n", 5.0 * (3.0 * t).sin(), (3.0 * t).cos());
/// }
/// let log = Log::collect(CsvReader::new(text.as_bytes(), "log.csv")?)?;
/// let options = Options::default().with(|o| o.extra = vec!["ft.fz".into(), "gyro.x".into()]);
/// let prepared = prepare_columns(&log, &["gyro.x"], &options)?;
/// assert_eq!(prepared.extra.len(), 2 * prepared.len());
/// # Ok::<(), inertial_data::Error>(())
/// ```
pub fn prepare_columns(log: &Log, motion: &[&str], options: &Options) -> Result<Prepared> {
    PreparedLog::of_columns(&mut LogReader::new(log), motion, options)?.read_all()
}

/// Returns the row filter for samples that passed a filter at the rate of the log.
fn row_filter(
    (kernel, cutoff_hz): (&Kernel, f64),
    log_rate_hz: f64,
    rate_hz: f64,
) -> Result<Option<RowFilter>> {
    let cutoff = ROWS_PER_CUTOFF * cutoff_hz;
    // If decimation already removed all frequencies above the cut-off, there is nothing left to filter.
    if cutoff >= 0.5 * rate_hz {
        return Ok(None);
    }
    let filter = RowFilter::new(cutoff, rate_hz).map_err(|e| Error::Option(e.to_string()))?;
    Ok(Some(filter.after(|f| kernel.gain(f, log_rate_hz))))
}
