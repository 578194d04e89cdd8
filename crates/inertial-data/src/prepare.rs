//! From a log to states and torques that an estimator can use.

use inertial::mechanism::{BuildOptions, Joint, JointType, Mechanism, read};

use crate::columns::is_angle;
use crate::time::{Ordered, Uniform};
use crate::{Columns, Error, Log, LowPass, Result, checks, count, motion_bandwidth};

/// Order of the low-pass in one pass.
const ORDER: usize = 4;
/// The automatic cut-off, in bandwidths of the motion: gravity, friction and products of velocities put the torques' band at
/// several times that of the motion; at five times, the filter's gain is above 0.999 over the lower two fifths.
const CUTOFF_PER_BANDWIDTH: f64 = 5.0;
/// The highest cut-off, in rates: beyond it the filter has nothing left to remove.
const HIGHEST_CUTOFF: f64 = 0.4;
/// Periods of the cut-off after which a disturbance at one sample is forgotten (it decays as exp(−2.4 f₀ t)).
const SMEAR: f64 = 2.0;
/// Rate after decimation, in cut-offs: four are Nyquist's for what lies below 2 f₀ (−48 dB there), twice that is a margin.
const RATE_PER_CUTOFF: f64 = 8.0;

/// The cut-off of the low-pass.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Cutoff {
    /// Five times the bandwidth of the motion.
    #[default]
    Auto,
    /// In Hz.
    Hz(f64),
    /// No filter.
    Off,
}

/// Whether some columns must be there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Need {
    /// A log without them is refused.
    #[default]
    Required,
    /// They are used where they are there.
    Optional,
}

/// How to prepare a log.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// Cut-off of the low-pass.
    pub cutoff: Cutoff,
    /// Keep every n-th sample after filtering; 0 chooses by the cut-off, 1 keeps all.
    pub decimate: usize,
    /// Joints slower than this share of their greatest speed are left out: the sign of their friction is uncertain. 0 keeps
    /// all.
    pub slow: f64,
    /// Joints that have a torque sensor; empty for all.
    pub torque_joints: Vec<String>,
    /// Believe the units even where they look wrong.
    pub trust_units: bool,
    /// Further columns by name, such as `ft.fx` or `momentum.px`: they must be there and are filtered like all others.
    pub extra: Vec<String>,
    /// Torques of the joints.
    pub torques: Need,
    /// Pose of a floating base. Where it need not be known and is not there, it stays neutral and the twist must be measured.
    pub base_pose: Need,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            cutoff: Cutoff::Auto,
            decimate: 0,
            slow: 0.02,
            torque_joints: Vec::new(),
            trust_units: false,
            extra: Vec::new(),
            torques: Need::Required,
            base_pose: Need::Required,
        }
    }
}

/// States and torques of a log on a uniform grid, all filtered alike; sample after sample.
#[derive(Debug, Clone, PartialEq)]
pub struct Prepared {
    /// Times.
    pub t: Vec<f64>,
    /// Positions, `nq` per sample.
    pub q: Vec<f64>,
    /// Velocities, `nv` per sample.
    pub v: Vec<f64>,
    /// Accelerations, `nv` per sample.
    pub a: Vec<f64>,
    /// Generalised forces, filtered like the motion, `nv` per sample; zero where not measured.
    pub tau: Vec<f64>,
    /// The same, unfiltered.
    pub tau_raw: Vec<f64>,
    /// Which of the forces to use, `nv` per sample: measured, not in a filter's transient, not bridged, not saturated, and
    /// not of a joint near standstill.
    pub keep: Vec<bool>,
    /// Samples, one mark each, that are neither bridged nor in a filter's transient: those of `extra` to use.
    pub sound: Vec<bool>,
    /// The columns [`Options::extra`], filtered like the motion, as many numbers per sample as there are names.
    pub extra: Vec<f64>,
    /// The same, unfiltered.
    pub extra_raw: Vec<f64>,
    /// Rate of these samples.
    pub rate_hz: f64,
    /// Rate of the log.
    pub log_rate_hz: f64,
    /// Cut-off of the low-pass, where there is one.
    pub cutoff_hz: Option<f64>,
    /// What was repaired and chosen, for people.
    pub notes: Vec<String>,
}

impl Prepared {
    /// Number of samples.
    pub fn len(&self) -> usize {
        self.t.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.t.is_empty()
    }

    /// The first part, and the last `fraction` to validate with. Samples that the filter mixes across the cut are not kept in
    /// either, so the second part is new to the first.
    pub fn holdout(&self, fraction: f64) -> Result<(Self, Self)> {
        if !(fraction > 0.0 && fraction < 1.0) {
            return Err(Error::Option(format!("holdout {fraction}: expected a fraction between 0 and 1")));
        }
        let n = self.len();
        let cut = count(((1.0 - fraction) * n as f64).round());
        let (mut first, mut last) = (self.part(0..cut), self.part(cut..n));
        if let Some(cutoff) = self.cutoff_hz {
            let mixed = count((0.5 * SMEAR * self.rate_hz / cutoff).ceil());
            let nv = self.v.len() / n.max(1);
            for (marks, width) in [(&mut first.keep, nv), (&mut first.sound, 1)] {
                let from = marks.len().saturating_sub(mixed * width);
                marks[from..].fill(false);
            }
            for (marks, width) in [(&mut last.keep, nv), (&mut last.sound, 1)] {
                let to = marks.len().min(mixed * width);
                marks[..to].fill(false);
            }
        }
        Ok((first, last))
    }

    fn part(&self, range: std::ops::Range<usize>) -> Self {
        let n = self.len().max(1);
        let (nq, nv) = (self.q.len() / n, self.v.len() / n);
        let rows = |x: &[f64], m: usize| x[range.start * m..range.end * m].to_vec();
        Self {
            t: rows(&self.t, 1),
            q: rows(&self.q, nq),
            v: rows(&self.v, nv),
            a: rows(&self.a, nv),
            tau: rows(&self.tau, nv),
            tau_raw: rows(&self.tau_raw, nv),
            keep: self.keep[range.start * nv..range.end * nv].to_vec(),
            sound: self.sound[range.clone()].to_vec(),
            extra: rows(&self.extra, self.extra.len() / n),
            extra_raw: rows(&self.extra_raw, self.extra.len() / n),
            rate_hz: self.rate_hz,
            log_rate_hz: self.log_rate_hz,
            cutoff_hz: self.cutoff_hz,
            notes: self.notes.clone(),
        }
    }
}

/// Repairs, filters, differentiates and decimates a log of `mechanism`.
///
/// Velocities and accelerations that were measured are used; others are derivatives of the filtered signal before them
/// (five points, fourth order). All signals pass the same filter, so both sides of the equation of motion lose the same band.
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
    run(mechanism, log, &[], options)
}

fn run(mechanism: &Mechanism, log: &Log, motion: &[&str], options: &Options) -> Result<Prepared> {
    if !(options.slow >= 0.0 && options.slow < 1.0) {
        return Err(Error::Option(format!("slow share {}: expected 0 to 1", options.slow)));
    }
    let columns = Columns::of(mechanism, log, options)?;
    // A pose that is not there has the place of the time until it is filled in.
    let q = columns.q.iter().map(|c| c.unwrap_or(columns.t));
    let optional = columns.dq.iter().chain(&columns.ddq).chain(&columns.tau);
    let wanted: Vec<usize> = q.chain(optional.flatten().chain(&columns.extra).copied()).collect();
    let mut notes = columns.notes.clone();
    let mut ordered = Ordered::new(log, columns.t, &wanted)?;
    let neutral = mechanism.neutral();
    for k in (0..columns.q.len()).filter(|&k| columns.q[k].is_none()) {
        ordered.columns[k].fill(neutral[k]);
    }
    if !options.trust_units {
        checks::angle_units(mechanism, log, &columns, &ordered.columns, ordered.mean_rate())?;
    }
    continuous(mechanism, &mut ordered, &mut notes)?;
    let Uniform { start, step, columns: mut signals, bridged, notes: repairs } = ordered.uniform()?;
    let rate = 1.0 / step;
    notes.extend(repairs);

    let mut rest = signals.split_off(columns.q.len()).into_iter();
    let mut q = signals;
    let mut take = |found: &[Option<usize>]| -> Vec<Option<Vec<f64>>> {
        found.iter().map(|c| c.and_then(|_| rest.next())).collect()
    };
    let (mut v, mut a, tau) = (take(&columns.dq), take(&columns.ddq), take(&columns.tau));
    let extra_raw: Vec<Vec<f64>> = rest.collect();
    if !options.trust_units {
        checks::time_unit(log, columns.t, step)?;
    }
    notes.extend(checks::content(mechanism, log, &columns, &q)?);

    let n = bridged.len();
    let moving: Vec<&[f64]> = (0..extra_raw.len())
        .filter(|&k| motion.contains(&options.extra[k].as_str()))
        .map(|k| &extra_raw[k][..])
        .collect();
    let cutoff = cutoff_hz(mechanism, options.cutoff, &q, &moving, &v, rate, &mut notes)?;
    let filter = cutoff.map(|f| LowPass::new(ORDER, f, rate)).transpose()?;
    let raw = tau.clone();
    let (mut tau, mut extra) = (tau, extra_raw.clone());
    if let Some(filter) = &filter {
        let optional = v.iter_mut().chain(&mut a).chain(&mut tau).flatten();
        q.iter_mut().chain(optional).chain(&mut extra).for_each(|x| filter.apply(x));
    }
    normalise(mechanism, &mut q);
    for joint in mechanism.joints().iter().filter(|j| j.follows.is_none()) {
        let range = joint.v_range();
        let derived = differentiate(joint, &q, step);
        for (k, derived) in range.clone().zip(derived) {
            match (&v[k], columns.dq[k]) {
                (Some(measured), Some(c)) if !options.trust_units => {
                    notes.extend(checks::velocity_unit(log, c, measured, &derived)?);
                }
                (Some(_), _) => {}
                (None, _) => v[k] = Some(derived),
            }
        }
        for k in range {
            if a[k].is_none() {
                a[k] = v[k].as_ref().map(|v| derivative(v, step));
            }
        }
    }
    let v: Vec<Vec<f64>> = v.into_iter().flatten().collect();
    let a: Vec<Vec<f64>> = a.into_iter().flatten().collect();

    // A disturbance decays to a hundredth within two periods of the cut-off; the stencils of two derivatives reach four
    // samples.
    let smear = cutoff.map_or(4, |f| count((SMEAR * rate / f).ceil())).max(4);
    let sound = away_from(&bridged, smear);
    let mut keep: Vec<Vec<bool>> = Vec::with_capacity(v.len());
    for (k, speed) in v.iter().enumerate() {
        let Some(column) = columns.tau[k] else {
            keep.push(vec![false; n]);
            continue;
        };
        let threshold = options.slow * speed.iter().fold(0.0, |m: f64, x| m.max(x.abs()));
        let base = mechanism
            .joints()
            .iter()
            .any(|j| j.v_range().contains(&k) && j.joint_type == JointType::Floating);
        let mut kept: Vec<bool> = (0..n).map(|i| sound[i] && (base || speed[i].abs() >= threshold)).collect();
        if let Some(saturated) =
            raw[k].as_ref().map(|raw| checks::saturation(log, column, raw)).transpose()?.flatten()
        {
            let name = &log.names()[column];
            notes.push(format!("column {name}: the torque saturates; those samples are left out"));
            let clear = away_from(&saturated, smear);
            kept.iter_mut().zip(clear).for_each(|(kept, clear)| *kept &= clear);
        }
        keep.push(kept);
    }

    let every = match (options.decimate, cutoff) {
        (0, Some(f)) => count((rate / (RATE_PER_CUTOFF * f)).floor()).max(1),
        (0, None) => 1,
        (every, _) => every,
    };
    if every > 1 {
        notes.push(format!("every {every}th sample is kept after filtering ({:.6} Hz)", rate / every as f64));
    }
    let pick = |signals: &[Vec<f64>]| -> Vec<f64> {
        (0..n).step_by(every).flat_map(|i| signals.iter().map(move |s| s[i])).collect()
    };
    let measured = |signals: &[Option<Vec<f64>>]| -> Vec<f64> {
        (0..n)
            .step_by(every)
            .flat_map(|i| signals.iter().map(move |s| s.as_ref().map_or(0.0, |s| s[i])))
            .collect()
    };
    let keep: Vec<bool> = (0..n).step_by(every).flat_map(|i| keep.iter().map(move |k| k[i])).collect();
    let kept = keep.iter().filter(|&&k| k).count();
    if kept < mechanism.parameter_count() && columns.tau.iter().any(Option::is_some) {
        let message = format!(
            "only {kept} torque samples are usable, fewer than the {} parameters of the model",
            mechanism.parameter_count()
        );
        return Err(Error::content(log.place(), message));
    }
    Ok(Prepared {
        t: (0..n).step_by(every).map(|i| start + step * i as f64).collect(),
        q: pick(&q),
        v: pick(&v),
        a: pick(&a),
        tau: measured(&tau),
        tau_raw: measured(&raw),
        keep,
        sound: sound.into_iter().step_by(every).collect(),
        extra: pick(&extra),
        extra_raw: pick(&extra_raw),
        rate_hz: rate / every as f64,
        log_rate_hz: rate,
        cutoff_hz: cutoff,
        notes,
    })
}

/// Prepares columns of a log that belongs to no mechanism: [`Options::extra`], the automatic cut-off taken from the spectra of
/// those named in `motion` (angular velocities, say).
///
/// ```
/// use inertial_data::{CsvReader, Log, Options, prepare_columns};
/// let mut text = String::from("t,ft.fz,gyro.x\n");
/// for k in 0..1000 {
///     let t = 0.005 * f64::from(k);
///     text += &format!("{t},{},{}\n", 5.0 * (3.0 * t).sin(), (3.0 * t).cos());
/// }
/// let log = Log::collect(CsvReader::new(text.as_bytes(), "log.csv")?)?;
/// let options = Options { extra: vec!["ft.fz".into(), "gyro.x".into()], ..Options::default() };
/// let prepared = prepare_columns(&log, &["gyro.x"], &options)?;
/// assert_eq!(prepared.extra.len(), 2 * prepared.len());
/// # Ok::<(), inertial_data::Error>(())
/// ```
pub fn prepare_columns(log: &Log, motion: &[&str], options: &Options) -> Result<Prepared> {
    let nothing = r#"<robot name="columns"><link name="ground"/></robot>"#;
    let mechanism = read::model(nothing, &read::no_includes)
        .and_then(|m| m.build(&BuildOptions::default()))
        .map_err(|e| Error::Option(e.to_string()))?;
    let options = Options { torques: Need::Optional, ..options.clone() };
    run(&mechanism, log, motion, &options)
}

/// Unwraps angles and keeps quaternions from changing sign, so that they can be interpolated and filtered.
fn continuous(mechanism: &Mechanism, samples: &mut Ordered<'_>, notes: &mut Vec<String>) -> Result<()> {
    let turn = 2.0 * std::f64::consts::PI;
    let names = mechanism.position_names();
    for k in (0..mechanism.nq()).filter(|&k| is_angle(mechanism, k)) {
        let (mut offset, mut wraps, mut last) = (0.0, 0, None);
        for x in samples.columns[k].iter_mut().filter(|x| !x.is_nan()) {
            // No joint makes half a turn between two samples.
            let turns = ((*x - last.unwrap_or(*x)) / turn).round();
            last = Some(*x);
            if turns != 0.0 {
                offset -= turns * turn;
                wraps += 1;
            }
            *x += offset;
        }
        if wraps > 0 {
            notes.push(format!("the angle of {} was unwrapped {wraps} times", names[k]));
        }
    }
    for first in quaternions(mechanism) {
        let mut last: Option<[f64; 4]> = None;
        for i in 0..samples.columns[first].len() {
            let now: [f64; 4] = std::array::from_fn(|c| samples.columns[first + c][i]);
            let norm = now.iter().map(|x| x * x).sum::<f64>().sqrt();
            // Printing with three digits stays well within this.
            if (norm - 1.0).abs() > 0.05 {
                let message = format!("the quaternion of {} has length {norm:.3}: expected 1", names[first]);
                return Err(Error::content(samples.row(i), message));
            }
            if norm.is_nan() {
                continue;
            }
            let flip = last.is_some_and(|last| (0..4).map(|c| last[c] * now[c]).sum::<f64>() < 0.0);
            let now = now.map(|x| if flip { -x } else { x });
            (0..4).for_each(|c| samples.columns[first + c][i] = now[c]);
            last = Some(now);
        }
    }
    Ok(())
}

/// Makes the filtered quaternions unit again.
fn normalise(mechanism: &Mechanism, q: &mut [Vec<f64>]) {
    for first in quaternions(mechanism) {
        for i in 0..q[first].len() {
            let norm = (0..4).map(|c| q[first + c][i].powi(2)).sum::<f64>().sqrt();
            if norm > 0.0 {
                (0..4).for_each(|c| q[first + c][i] /= norm);
            }
        }
    }
}

/// First coordinates of the quaternions.
fn quaternions(mechanism: &Mechanism) -> impl Iterator<Item = usize> + use<'_> {
    mechanism.joints().iter().filter(|j| j.follows.is_none()).filter_map(|j| match j.joint_type {
        JointType::Spherical => Some(j.q),
        JointType::Floating => Some(j.q + 3),
        _ => None,
    })
}

fn cutoff_hz(
    mechanism: &Mechanism,
    cutoff: Cutoff,
    q: &[Vec<f64>],
    moving: &[&[f64]],
    v: &[Option<Vec<f64>>],
    rate: f64,
    notes: &mut Vec<String>,
) -> Result<Option<f64>> {
    match cutoff {
        Cutoff::Off => Ok(None),
        Cutoff::Hz(f) if f > 0.0 && f < 0.5 * rate => Ok(Some(f)),
        Cutoff::Hz(f) => Err(Error::Option(format!(
            "cut-off {f} Hz: expected more than 0 and less than half the rate, {:.6} Hz",
            0.5 * rate
        ))),
        Cutoff::Auto => {
            let mut bandwidth = motion_bandwidth(moving.iter().copied(), rate);
            for joint in mechanism.joints().iter().filter(|j| j.follows.is_none()) {
                let derived = differentiate(joint, q, 1.0 / rate);
                for (k, derived) in joint.v_range().zip(&derived) {
                    let signal = v[k].as_ref().unwrap_or(derived);
                    bandwidth = bandwidth.max(motion_bandwidth([&signal[..]], rate));
                }
            }
            let f = (CUTOFF_PER_BANDWIDTH * bandwidth).min(HIGHEST_CUTOFF * rate);
            if f <= 0.0 {
                return Ok(None);
            }
            notes.push(format!(
                "low-pass at {f:.3} Hz: {CUTOFF_PER_BANDWIDTH} times the {bandwidth:.3} Hz within which 99.9 % of the motion's energy lies"
            ));
            Ok(Some(f))
        }
    }
}

/// The joint's velocity from its positions: the differences over two and four steps, combined to fourth order.
///
/// For joints with one coordinate this is the usual five-point stencil; for others the differences are twists.
fn differentiate(joint: &Joint, q: &[Vec<f64>], step: f64) -> Vec<Vec<f64>> {
    let (nq, nv) = (joint.joint_type.nq(), joint.joint_type.nv());
    let n = q[joint.q].len();
    let at = |i: usize| -> [f64; 7] { std::array::from_fn(|c| if c < nq { q[joint.q + c][i] } else { 0.0 }) };
    let difference = |from: usize, to: usize| {
        let mut v = [0.0; 6];
        joint.joint_type.difference(&at(from)[..nq], &at(to)[..nq], &mut v[..nv]);
        v
    };
    let mut out = vec![vec![0.0; n]; nv];
    for i in 0..n {
        let near = difference(i.saturating_sub(1), (i + 1).min(n - 1));
        if i < 2 || i + 2 >= n {
            let span = step * ((i + 1).min(n - 1) - i.saturating_sub(1)) as f64;
            (0..nv).for_each(|c| out[c][i] = near[c] / span);
        } else {
            let far = difference(i - 2, i + 2);
            (0..nv).for_each(|c| out[c][i] = (8.0 * near[c] - far[c]) / (12.0 * step));
        }
    }
    out
}

/// The derivative of a signal, by the same stencil.
fn derivative(x: &[f64], step: f64) -> Vec<f64> {
    let n = x.len();
    (0..n)
        .map(|i| {
            if i < 2 || i + 2 >= n {
                let (from, to) = (i.saturating_sub(1), (i + 1).min(n - 1));
                (x[to] - x[from]) / (step * (to - from) as f64)
            } else {
                (8.0 * (x[i + 1] - x[i - 1]) - (x[i + 2] - x[i - 2])) / (12.0 * step)
            }
        })
        .collect()
}

/// True for samples further than `reach` from any mark and from both ends.
fn away_from(marks: &[bool], reach: usize) -> Vec<bool> {
    let n = marks.len();
    let mut out = vec![true; n];
    let ends = reach.min(n);
    out[..ends].fill(false);
    out[n - ends..].fill(false);
    for i in (0..n).filter(|&i| marks[i]) {
        out[i.saturating_sub(reach)..(i + reach + 1).min(n)].fill(false);
    }
    out
}
