//! Logs that say nothing, or say it in other units.

use inertial::mechanism::Mechanism;

use crate::columns::is_angle;
use crate::{Columns, Error, Log, Result};

/// Rates below this are no rates of a control computer: the unit of time is doubted.
const SLOWEST_HZ: f64 = 6.0;
/// How far beyond its limits a joint must be before its unit is doubted.
const BEYOND: f64 = 1.5;
/// An angle without limits is doubted where it spans more than this (rad) and is faster than [`FAST`].
const WIDE: f64 = 25.0;
/// Speed (rad/s) above which a wide angle is doubted.
const FAST: f64 = 30.0;
/// Least range of motion (rad or m) that counts as one.
const STILL: f64 = 1e-3;
/// Share of samples at a torque's extreme value that counts as saturation, and that makes a log useless.
const SATURATED: (f64, f64) = (0.02, 0.2);

/// Is the time in seconds?
pub(crate) fn time_unit(log: &Log, t: usize, step: f64) -> Result<()> {
    if step * SLOWEST_HZ <= 1.0 {
        return Ok(());
    }
    let unit = match step {
        s if s < 150.0 => "milliseconds",
        s if s < 1.5e5 => "microseconds",
        _ => "nanoseconds",
    };
    let message =
        format!("a step of {step:.4} s is too long for a robot's log: are these {unit}? Expected seconds");
    Err(Error::units(log.place().column(&log.names()[t]), message))
}

/// Are the angles in radians?
pub(crate) fn angle_units(
    mechanism: &Mechanism,
    log: &Log,
    columns: &Columns,
    q: &[Vec<f64>],
    rate: f64,
) -> Result<()> {
    for joint in mechanism.joints().iter().filter(|j| j.follows.is_none()) {
        for k in joint.q_range().filter(|&k| is_angle(mechanism, k)) {
            let (low, high) = range(&q[k]);
            let reach = low.abs().max(high.abs());
            let limit = joint.limits.lower.abs().max(joint.limits.upper.abs());
            let limited = limit.is_finite() && limit > 0.0 && joint.joint_type.nq() == 1;
            let speed = q[k].windows(2).map(|w| (w[1] - w[0]).abs()).fold(0.0, f64::max) * rate;
            let doubtful = if limited { reach > BEYOND * limit } else { high - low > WIDE && speed > FAST };
            if doubtful {
                let why =
                    if limited { format!("the limit is {limit:.3}") } else { format!("at {speed:.0} rad/s") };
                let message = format!(
                    "an angle of {reach:.1} rad ({why}) is unlikely: are these degrees? Expected radians"
                );
                let place = log.place();
                let place = match columns.q[k] {
                    Some(c) => place.column(&log.names()[c]),
                    None => place,
                };
                return Err(Error::units(place, message));
            }
        }
    }
    Ok(())
}

/// Does a measured velocity fit the position's derivative? Unit slips are refused, the rest is worth a note.
pub(crate) fn velocity_unit(
    log: &Log,
    column: usize,
    measured: &[f64],
    derived: &[f64],
) -> Result<Option<String>> {
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let (mm, md, dd) = (dot(measured, measured), dot(measured, derived), dot(derived, derived));
    if mm == 0.0 || dd == 0.0 {
        return Ok(None);
    }
    let correlation = md / (mm * dd).sqrt();
    let ratio = (mm / dd).sqrt();
    let name = &log.names()[column];
    let slips = [
        (180.0 / std::f64::consts::PI, "degrees per second, or its position in other units"),
        (std::f64::consts::PI / 180.0, "radians per second while its position is in degrees"),
        (1e3, "per second while time is in milliseconds"),
        (1e-3, "per millisecond"),
    ];
    if correlation > 0.8
        && let Some((_, unit)) = slips.iter().find(|(slip, _)| (ratio / slip).ln().abs() < 0.3)
    {
        let message =
            format!("is {ratio:.4} times the derivative of its position: is it {unit}? Expected SI units");
        return Err(Error::units(log.place().column(name), message));
    }
    let off = correlation < 0.9 || (ratio - 1.0).abs() > 0.2;
    Ok(off.then(|| {
        format!("column {name} differs from the derivative of its position (correlation {correlation:.2}, ratio {ratio:.2})")
    }))
}

/// Is there any motion, and a torque for every joint that should have one?
pub(crate) fn content(
    mechanism: &Mechanism,
    log: &Log,
    columns: &Columns,
    q: &[Vec<f64>],
) -> Result<Vec<String>> {
    let n = log.len();
    let measured = columns.tau.iter().flatten().count();
    if measured > 0 && n * measured < mechanism.parameter_count() {
        let message = format!(
            "{n} samples of {measured} torques are fewer than the {} parameters of the model",
            mechanism.parameter_count()
        );
        return Err(Error::content(log.place(), message));
    }
    for &c in columns.tau.iter().flatten() {
        let (low, high) = range(log.column_at(c));
        if low == high {
            let message = format!("the torque is constant ({low}): was it measured?");
            return Err(Error::content(log.place().column(&log.names()[c]), message));
        }
    }
    let widest = q.iter().map(|q| range(q)).map(|(low, high)| high - low).fold(0.0, f64::max);
    if widest < STILL && !q.is_empty() {
        let message = format!("nothing moves: the widest range of any position is {widest:.1e}");
        return Err(Error::content(log.place(), message));
    }
    let names = mechanism.position_names();
    let mut notes = Vec::new();
    for (k, q) in q.iter().enumerate().filter(|(k, _)| columns.q[*k].is_some()) {
        let (low, high) = range(q);
        if high - low < STILL {
            notes.push(format!("{} does not move", names[k]));
        } else if let Some(c) = velocity_column(mechanism, columns, k)
            && range(log.column_at(c)).0 == range(log.column_at(c)).1
        {
            let message = "the velocity is constant although the position changes";
            return Err(Error::content(log.place().column(&log.names()[c]), message));
        }
    }
    Ok(notes)
}

/// Marks samples where a torque stands at its extreme value: the sensor or the drive gave no more.
pub(crate) fn saturation(log: &Log, column: usize, tau: &[f64]) -> Result<Option<Vec<bool>>> {
    let (low, high) = range(tau);
    let extreme: Vec<bool> = tau.iter().map(|&x| x == low || x == high).collect();
    // A coarse torque may touch its extreme often, but does not stay there.
    let stays = extreme.windows(5).any(|w| w.iter().all(|&x| x));
    let share = extreme.iter().filter(|&&x| x).count() as f64 / tau.len().max(1) as f64;
    if !stays || share < SATURATED.0 {
        return Ok(None);
    }
    if share > SATURATED.1 {
        let message = format!(
            "{:.0} % of the torques stand at {low} or {high}: the signal is saturated",
            100.0 * share
        );
        return Err(Error::content(log.place().column(&log.names()[column]), message));
    }
    Ok(Some(extreme))
}

/// The measured velocity of a joint with one coordinate.
pub(crate) fn velocity_column(mechanism: &Mechanism, columns: &Columns, q: usize) -> Option<usize> {
    let joint =
        mechanism.joints().iter().find(|j| j.follows.is_none() && j.q == q && j.joint_type.nq() == 1)?;
    columns.dq[joint.v]
}

/// Least and greatest value, gaps left out.
fn range(values: &[f64]) -> (f64, f64) {
    values.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), &x| (low.min(x), high.max(x)))
}
