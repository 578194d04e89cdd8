//! Plausibility checks of a log: units, limits, content.

use inertial::consistency::significant;
use inertial::mechanism::JointType;

use crate::clean::first_pass::{LogStatistics, STILL};
use crate::columns::layout::{Layout, LayoutJoint};
use crate::{Error, Options, Place, Requirement, Result};

/// Torque (N m) below which all values count as zero, because their squares are rounded to zero.
const LEAST_TORQUE: f64 = 1e-100;

/// Rate (Hz) below which the unit of time is suspect, because no control computer is so slow.
const SLOWEST_HZ: f64 = 6.0;
/// Factor beyond its limits from which the unit of a joint is suspect.
const BEYOND: f64 = 1.5;
/// Factor beyond its limit from which the speed of a joint is suspect; it is large, because speed limits in model files are often round
/// numbers. One turn per second is always accepted.
const BEYOND_SPEED: f64 = 2.0;
/// Range (rad) beyond which an angle without limits is suspect if it is also faster than [`FAST`].
const WIDE: f64 = 25.0;
/// Speed (rad/s) above which an angle of wide range is suspect.
const FAST: f64 = 30.0;
/// Factor beyond its limits from which the unit of a sliding joint is suspect. Millimetres give a factor of a thousand, while the limits
/// in a model file may be shorter than those of the robot.
const BEYOND_LENGTH: f64 = 20.0;
/// Range (m) beyond which a length without limits is suspect if it is also faster than [`FAST_LENGTH`].
const WIDE_LENGTH: f64 = 20.0;
/// Speed (m/s) above which a length of wide range is suspect.
const FAST_LENGTH: f64 = 50.0;
/// Shares of samples at a torque's extreme value: the first counts as saturation, the second makes a log useless.
const SATURATED: (f64, f64) = (0.02, 0.2);
/// Number of consecutive samples at an extreme value that count as saturation: a coarsely quantized torque may reach it often, but does
/// not stay there.
const STAYS: usize = 5;
/// Largest number of levels of a torque whose resolution is too coarse to recognize saturation: a small torque stays at an extreme level
/// because the next one is far away.
const FEW_LEVELS: f64 = 16.0;
/// Ratio of a measured velocity to the derivative of its position from which the position counts as constant. No unit explains it.
const CONSTANT: f64 = 1e5;

/// Checks whether the time is in seconds.
pub(crate) fn time_unit(layout: &Layout, step: f64) -> Result<()> {
    match implausible_step(step) {
        None => Ok(()),
        Some(message) => Err(Error::units(layout.place().column(&layout.time), message)),
    }
}

/// Returns the message about a time step that is too long.
pub(crate) fn implausible_step(step: f64) -> Option<String> {
    if step * SLOWEST_HZ <= 1.0 {
        return None;
    }
    let unit = match step {
        s if s < 150.0 => "milliseconds",
        s if s < 1.5e5 => "microseconds",
        _ => "nanoseconds",
    };
    Some(format!("a step of {step:.4} s is too long for a robot's log: are these {unit}? Expected seconds"))
}

/// Checks whether the positions are in radians and metres.
pub(crate) fn position_units(layout: &Layout, statistics: &LogStatistics) -> Result<()> {
    for joint in &layout.joints {
        for k in joint.positions() {
            let Some(place) = layout.q[k] else { continue };
            let channel = &statistics.channels[place];
            let (low, high) = channel.logged;
            let limit = if joint.joint_type.nq() == 1 { joint.limit } else { f64::INFINITY };
            let speed = channel.jump * statistics.stamps.mean_rate();
            let warning = if layout.angles[k] {
                implausible_angle(low, high, speed, limit)
            } else {
                implausible_length(low, high, speed, limit, &layout.names[place])
            };
            if let Some(message) = warning {
                return Err(Error::units(layout.column(place), message));
            }
        }
    }
    Ok(())
}

/// Returns the message about a length whose range from `low` to `high` with speeds up to `speed` (m/s) does not fit its limit.
/// Components of quaternions are never reported, because they are small.
pub(crate) fn implausible_length(
    low: f64,
    high: f64,
    speed: f64,
    limit: f64,
    column: &str,
) -> Option<String> {
    let reach = low.abs().max(high.abs());
    let limited = limit.is_finite() && limit > 0.0;
    let is_implausible =
        if limited { reach > BEYOND_LENGTH * limit } else { high - low > WIDE_LENGTH && speed > FAST_LENGTH };
    let why = if limited {
        format!("the limit is {}", significant(limit, 4))
    } else {
        format!("at {} m/s", significant(speed, 3))
    };
    (is_implausible && reach.is_finite()).then(|| {
        let reach = significant(reach, 3);
        format!(
            "a position of {reach} m ({why}) is unlikely: are these millimetres? Expected metres; a column map converts them: \
             \"{column}\" = {{ column = \"{column}\", unit = \"mm\" }}"
        )
    })
}

/// Returns the message about an angle whose range from `low` to `high` with speeds up to `speed` (rad/s) does not fit its limit.
pub(crate) fn implausible_angle(low: f64, high: f64, speed: f64, limit: f64) -> Option<String> {
    let reach = low.abs().max(high.abs());
    let limited = limit.is_finite() && limit > 0.0;
    let is_implausible = if limited { reach > BEYOND * limit } else { high - low > WIDE && speed > FAST };
    let why = if limited {
        format!("the limit is {}", significant(limit, 4))
    } else {
        format!("at {} rad/s", significant(speed, 3))
    };
    // Without measurements there is nothing to check.
    (is_implausible && reach.is_finite()).then(|| {
        let reach = significant(reach, 3);
        format!(
            "an angle of {reach} rad ({why}) is unlikely: are these degrees? Or is it another joint's column? Expected radians"
        )
    })
}

/// Smallest delay (s) of a measured velocity after the derivative of the position for which the column is not used, the share of the
/// difference between both that the delay must explain, and the smallest relative error of the velocity due to it. Smaller delays are
/// those between two sensors, or half a sample of a difference quotient; their effect is below that of noise.
const LATE_VELOCITY: f64 = 2e-3;
const BY_DELAY: f64 = 0.5;
const BY_DELAY_OF_ALL: f64 = 0.01;

/// Comparison of a measured velocity with the derivative of the position: sums of products.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct DerivativeCheck {
    measured: f64,
    both: f64,
    derived: f64,
    /// Sums of products of the derivative of the measured values: with itself, and with the difference of both values.
    slope: f64,
    slope_and_difference: f64,
}

impl DerivativeCheck {
    pub fn add(&mut self, measured: f64, derived: f64) {
        self.measured += measured * measured;
        self.both += measured * derived;
        self.derived += derived * derived;
    }

    /// Adds the derivative of the measured value, for [`Self::delay`].
    pub fn add_slope(&mut self, measured: f64, derived: f64, slope: f64) {
        self.slope += slope * slope;
        self.slope_and_difference += slope * (derived - measured);
    }

    /// Returns the delay (s) of the measured values, if it is evident. Delayed values are less than the others by the delay times their
    /// derivative.
    pub fn delay(&self) -> Option<f64> {
        let delay = self.slope_and_difference / self.slope;
        let explained = delay * self.slope_and_difference;
        let difference = self.measured + self.derived - 2.0 * self.both;
        let is_evident = delay.abs() >= LATE_VELOCITY
            && explained >= BY_DELAY * difference
            && explained >= BY_DELAY_OF_ALL.powi(2) * self.derived;
        is_evident.then_some(delay)
    }
}

/// Treats velocities that are recorded later or earlier than the positions (by a filter in the controller) as not measured; returns a note.
pub(crate) fn leave_out_late_velocities(
    layout: &mut Layout,
    statistics: &LogStatistics,
    slips: &[DerivativeCheck],
) -> Option<String> {
    let joints =
        layout.joints.iter().filter(|j| j.joint_type.nv() == 1 && j.joint_type != JointType::Floating);
    let coordinates: Vec<usize> = joints.map(|j| j.v).collect();
    let mut late = Vec::new();
    for v in coordinates {
        let place = layout.dq[v].filter(|_| !is_still(layout, statistics, v));
        if let Some((place, delay)) = place.zip(slips[v].delay()) {
            late.push((layout.names[place].clone(), delay));
            layout.dq[v] = None;
        }
    }
    let listed = |(name, delay): &(String, f64)| {
        format!(
            "{name} {} ms {}",
            significant(1e3 * delay.abs(), 2),
            if *delay > 0.0 { "later" } else { "earlier" }
        )
    };
    (!late.is_empty()).then(|| {
        format!(
            "velocities that are recorded later or earlier than the derivatives of the positions are computed from the positions \
             instead: {}",
            late.iter().map(listed).collect::<Vec<_>>().join(", ")
        )
    })
}

/// Measured quantity that is also a derivative of another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Derivative {
    Velocity,
    Acceleration,
}

/// Checks whether a measured velocity or acceleration fits the derivative of the position or velocity. Unit errors and wrong signs are
/// rejected; other deviations result in a note.
pub(crate) fn derivative_unit(
    place: &Place,
    of: Derivative,
    slip: &DerivativeCheck,
) -> Result<Option<String>> {
    let DerivativeCheck { measured, both, derived, .. } = *slip;
    if measured == 0.0 || derived == 0.0 {
        return Ok(None);
    }
    let correlation = both / (measured * derived).sqrt();
    let ratio = (measured / derived).sqrt();
    if ratio > CONSTANT {
        return Ok(None);
    }
    let (before, power, square) = match of {
        Derivative::Velocity => ("position", 1, ""),
        Derivative::Acceleration => ("velocity", 2, "²"),
    };
    let slips = [
        (180.0 / std::f64::consts::PI, format!("degrees per second{square}, or its {before} in other units")),
        (
            std::f64::consts::PI / 180.0,
            format!("radians per second{square} while its {before} is in degrees"),
        ),
        (1e3_f64.powi(power), format!("per second{square} while time is in milliseconds")),
        (1e-3_f64.powi(power), format!("per millisecond{square}")),
    ];
    if correlation > 0.8
        && let Some((_, unit)) = slips.iter().find(|(slip, _)| (ratio / slip).ln().abs() < 0.3)
    {
        let message =
            format!("is {ratio:.4} times the derivative of its {before}: is it {unit}? Expected SI units");
        return Err(Error::units(place.clone(), message));
    }
    if correlation < -0.8 {
        let message = format!("has the opposite sign of the derivative of its {before}");
        return Err(Error::units(place.clone(), message));
    }
    let off = correlation < 0.9 || (ratio - 1.0).abs() > 0.2;
    let name = place.column.as_deref().unwrap_or_default();
    Ok(off.then(|| {
        format!("column {name} differs from the derivative of its {before} (correlation {correlation:.2}, ratio {ratio:.2})")
    }))
}

/// Checks the units of joint speeds: joints faster than their limits are probably in degrees.
pub(crate) fn speed_units(layout: &Layout, speeds: &[f64]) -> Result<()> {
    for joint in layout.joints.iter().filter(|j| j.joint_type.nv() == 1 && layout.angles[j.q]) {
        let (speed, limit) = (speeds[joint.v], joint.fastest);
        // The speed is that of the velocity column, if there is one.
        let Some(place) = layout.dq[joint.v].or(layout.q[joint.q]) else { continue };
        if speed > BEYOND_SPEED * limit && speed > std::f64::consts::TAU {
            let message = format!(
                "moves at {speed:.1} rad/s (the limit is {}), which is unlikely: are these degrees? Expected radians",
                significant(limit, 4)
            );
            return Err(Error::units(layout.column(place), message));
        }
    }
    Ok(())
}

/// Returns whether a torque is always zero although its joint was named, which means that the joint has no drive.
fn is_passive(layout: &Layout, statistics: &LogStatistics, options: &Options, place: usize) -> bool {
    let joints = || layout.joints.iter().filter(|j| j.joint_type != JointType::Floating);
    let own = || joints().any(|j| layout.tau[j.velocities()].contains(&Some(place)));
    statistics.channels[place].range == (0.0, 0.0) && !options.torque_joints.is_empty() && own()
}

/// Treats velocities, accelerations and torques whose columns have no value as not measured; returns notes. Torques of named joints are
/// kept, as are all if no torque would be left although torques are required.
pub(crate) fn leave_out_empty_columns(
    layout: &mut Layout,
    statistics: &LogStatistics,
    options: &Options,
) -> Vec<String> {
    let is_empty = |place: usize| statistics.channels[place].missing == statistics.stamps.count;
    let mut notes = Vec::new();
    let joints = layout.joints.iter().filter(|j| j.joint_type != JointType::Floating);
    let coordinates: Vec<std::ops::Range<usize>> = joints.map(LayoutJoint::velocities).collect();
    for derivative in [&mut layout.dq, &mut layout.ddq] {
        for range in &coordinates {
            // A joint with several coordinates needs all of them or none.
            let own = derivative[range.clone()].iter().flatten().copied().find(|&place| is_empty(place));
            if let Some(place) = own {
                derivative[range.clone()].fill(None);
                notes.push(format!("column {}: it has no values: computed instead", layout.names[place]));
            }
        }
    }
    let is_left = layout.tau.iter().flatten().any(|&place| !is_empty(place));
    if options.torque_joints.is_empty() && (is_left || options.torques == Requirement::Optional) {
        for v in coordinates.into_iter().flatten() {
            if let Some(place) = layout.tau[v].take_if(|place| is_empty(*place)) {
                let name = &layout.names[place];
                notes.push(format!("column {name}: it has no values: the torque counts as not measured"));
            }
        }
    }
    notes
}

/// Treats torques that are always zero as not measured, unless their joints were named or no torque would be left; returns notes.
pub(crate) fn leave_out_zero_torques(
    layout: &mut Layout,
    statistics: &LogStatistics,
    options: &Options,
) -> Vec<String> {
    let is_zero = |place: usize| statistics.channels[place].range == (0.0, 0.0);
    if !options.torque_joints.is_empty() || layout.tau.iter().flatten().all(|&place| is_zero(place)) {
        return Vec::new();
    }
    let joints = layout.joints.iter().filter(|j| j.joint_type != JointType::Floating);
    let coordinates: Vec<usize> = joints.flat_map(LayoutJoint::velocities).collect();
    let mut notes = Vec::new();
    for v in coordinates {
        if let Some(place) = layout.tau[v].take_if(|place| is_zero(*place)) {
            let name = &layout.names[place];
            notes.push(format!(
                "column {name}: the torque is always zero: taken as not measured; if the joint has no drive, \
                 list it among the joints with measured torques"
            ));
        }
    }
    notes
}

/// Checks that there is motion, and a torque for every joint that should have one.
pub(crate) fn content(layout: &Layout, statistics: &LogStatistics, options: &Options) -> Result<Vec<String>> {
    let (n, parameters) = (statistics.stamps.count, layout.parameters);
    let measured = layout.tau.iter().flatten().count();
    if measured > 0 && n * measured < parameters {
        let message = format!(
            "{n} samples of {measured} torques are fewer than the {parameters} parameters of the model"
        );
        return Err(Error::content(layout.place(), message));
    }
    let range = |place: usize| statistics.channels[place].range;
    for &place in layout.tau.iter().flatten() {
        let (low, high) = range(place);
        if is_passive(layout, statistics, options, place) {
            continue;
        }
        if low == high {
            let message = format!("the torque is constant ({}): was it measured?", significant(low, 6));
            return Err(Error::content(layout.column(place), message));
        }
        let most = low.abs().max(high.abs());
        if most < LEAST_TORQUE {
            let message = format!("the torque is at most {most:?}: expected N m or N");
            return Err(Error::content(layout.column(place), message));
        }
    }
    let extent = |&place: &usize| range(place).1 - range(place).0;
    let widest = layout.q.iter().flatten().map(extent).fold(0.0, f64::max);
    if widest < STILL && layout.nq() > 0 {
        let message = format!("no joint moves: the largest range of any position is {widest:.1e}");
        return Err(Error::content(layout.place(), message));
    }
    let mut notes = Vec::new();
    for (k, name) in layout.positions.iter().enumerate() {
        let Some(place) = layout.q[k] else { continue };
        if extent(&place) < STILL {
            notes.push(format!("{name} does not move in this log: it is treated as fixed"));
            continue;
        }
        for (derivative, name) in [(&layout.dq, "velocity"), (&layout.ddq, "acceleration")] {
            let constant = derivative_place(layout, derivative, k).filter(|place| extent(place) == 0.0);
            if let Some(place) = constant {
                let message = format!("the {name} is constant although the position changes");
                return Err(Error::content(layout.column(place), message));
            }
        }
    }
    Ok(notes)
}

/// Returns whether a velocity coordinate belongs to a joint whose measured position does not move.
pub(crate) fn is_still(layout: &Layout, statistics: &LogStatistics, v: usize) -> bool {
    let joint = layout.joints.iter().find(|j| j.v == v && j.joint_type.nv() == 1);
    joint.and_then(|j| layout.q[j.q]).is_some_and(|place| statistics.is_still(place))
}

/// Torques at the limits of a sensor or drive.
pub(crate) struct Saturation {
    /// Velocity coordinates whose force saturates, with their extreme values.
    pub limits: Vec<(usize, [f64; 2])>,
    /// Notes about torques.
    pub notes: Vec<String>,
}

/// Finds forces that saturate at their extreme values (of the sensor or the drive). Forces with few levels are not tested.
pub(crate) fn saturation(
    layout: &Layout,
    statistics: &LogStatistics,
    options: &Options,
) -> Result<Saturation> {
    let mut out = Saturation { limits: Vec::new(), notes: Vec::new() };
    for (v, place) in layout.tau.iter().enumerate() {
        let Some(place) = place.filter(|&place| !is_passive(layout, statistics, options, place)) else {
            continue;
        };
        let plateaus = &statistics.channels[place].plateaus;
        let stays = plateaus.iter().any(|p| p.longest >= STAYS);
        let share = plateaus.iter().map(|p| p.count).sum::<usize>() as f64 / statistics.stamps.count as f64;
        let [low, high] = [plateaus[0].value, plateaus[1].value];
        let resolution = statistics.channels[place].steps.least();
        if high - low < (FEW_LEVELS - 0.5) * resolution {
            out.notes.push(format!(
                "column {}: the torque has only {:.0} levels, {} apart; its resolution is coarse for this motion",
                layout.names[place],
                ((high - low) / resolution).round() + 1.0,
                significant(resolution, 3)
            ));
            continue;
        }
        if !stays || share < SATURATED.0 {
            continue;
        }
        if share > SATURATED.1 {
            let message = format!(
                "{:.0} % of the torques are at {} or {}: the signal is saturated",
                100.0 * share,
                significant(low, 6),
                significant(high, 6)
            );
            return Err(Error::content(layout.column(place), message));
        }
        out.limits.push((v, [low, high]));
    }
    Ok(out)
}

/// Returns the measured derivative of a position, for a joint with one coordinate.
fn derivative_place(layout: &Layout, derivative: &[Option<usize>], q: usize) -> Option<usize> {
    let joint = layout.joints.iter().find(|j| j.q == q && j.joint_type.nq() == 1)?;
    derivative[joint.v]
}
