//! Meaning of the words in column names.

use crate::columns::units;

/// Quantity of a joint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Quantity {
    Position,
    Velocity,
    Acceleration,
    Torque,
}

impl Quantity {
    pub const ALL: [Self; 4] = [Self::Position, Self::Velocity, Self::Acceleration, Self::Torque];

    /// Returns the symbol in column names.
    pub fn symbol(self) -> &'static str {
        match self {
            Self::Position => "q",
            Self::Velocity => "dq",
            Self::Acceleration => "ddq",
            Self::Torque => "tau",
        }
    }
}

/// Meaning of the words of a name.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Meaning {
    pub quantity: Quantity,
    /// Evidence for a measurement of a joint: 2 is explicit, 0 is vague.
    pub rank: u8,
    /// Unit given by the name, or by the controller that writes it.
    pub unit: Option<&'static str>,
    /// Controller or program that uses these words.
    pub writer: Option<&'static str>,
    /// Reason for rejecting the column.
    pub refused: Option<&'static str>,
}

impl Meaning {
    /// Returns whether the quantity is a current, which needs a scale to become a torque.
    pub fn is_current(&self) -> bool {
        matches!(self.unit, Some("A" | "mA"))
    }
}

const MEASURED: &[&str] = &[
    "actual",
    "act",
    "measured",
    "meas",
    "msr",
    "feedback",
    "fb",
    "state",
    "states",
    "est",
    "observation",
    "real",
];
const COMMAND: &[&str] = &[
    "target",
    "desired",
    "des",
    "cmd",
    "command",
    "commanded",
    "ref",
    "reference",
    "goal",
    "setpoint",
    "set",
    "sp",
    "action",
    "ideal",
    "d",
    "interpolated",
    "planned",
    "ctrl",
];
const EXTERNAL: &[&str] = &["ext", "external"];
const CARTESIAN: &[&str] =
    &["tcp", "tool", "ee", "cart", "cartesian", "flange", "pose", "base", "imu", "linear", "angular"];
const OTHER: &[&str] = &[
    "err",
    "error",
    "std",
    "noise",
    "limit",
    "limits",
    "max",
    "min",
    "analog",
    "temp",
    "temperature",
    "scaling",
    "gain",
    "kp",
    "kd",
    "status",
    "mode",
    "robot",
    "supply",
    "raw",
];

/// Interprets the words of a name without index and joint; `None` if they contain no quantity.
pub(crate) fn meaning(words: &[String]) -> Option<Meaning> {
    let has = |list: &[&str]| words.iter().any(|w| list.contains(&w.as_str()));
    let (quantity, unit, vague) = quantity(words).or_else(|| {
        // Axes of ABB and KUKA are in degrees.
        (has(&["rax"]) || (has(&["axis"]) && has(&["act"]))).then_some((
            Quantity::Position,
            Some("deg"),
            false,
        ))
    })?;
    let refused = match () {
        () if has(EXTERNAL) => Some("an external torque, not the joint torque"),
        () if has(CARTESIAN) => Some("not a joint quantity"),
        () if has(COMMAND) => Some("a command, not a measurement"),
        () if quantity != Quantity::Position
            && has(&["axis"])
            && has(&["act"])
            && has(&["vel", "curr", "cur"]) =>
        {
            Some("in percent of the largest value (KUKA)")
        }
        () if has(OTHER) => Some("not a measured joint quantity"),
        () => None,
    };
    let rank = if vague { 0 } else { 1 + u8::from(has(MEASURED)) };
    let writer = writer(words);
    Some(Meaning { quantity, rank, unit, writer, refused })
}

/// Returns the quantity of the most specific word, its unit if the word implies one, and whether the word is vague.
fn quantity(words: &[String]) -> Option<(Quantity, Option<&'static str>, bool)> {
    use Quantity::{Acceleration, Position, Torque, Velocity};
    let of_word = |word: &String| {
        Some(match word.as_str() {
            "tau" | "torque" | "torques" | "trq" | "eff" | "effort" | "efforts" | "moment" | "qfrc" => {
                (Torque, None, false)
            }
            "current" | "currents" | "curr" | "cur" => (Torque, Some("A"), false),
            "ddq" | "qdd" | "qddot" | "acc" | "acceleration" | "accelerations" | "accel" | "qacc" => {
                (Acceleration, None, false)
            }
            "dq" | "qd" | "qdot" | "vel" | "velocity" | "velocities" | "speed" | "qvel" => {
                (Velocity, None, false)
            }
            "dtheta" | "omega" => (Velocity, None, true),
            "q" | "pos" | "position" | "positions" | "angle" | "angles" | "qpos" | "jpos" => {
                (Position, None, false)
            }
            "theta" => (Position, None, true),
            _ => return None,
        })
    };
    // Names of forces and derivatives also contain words of positions: the most specific word counts.
    words.iter().filter_map(of_word).max_by_key(|(quantity, ..)| *quantity)
}

/// Returns the controller or program that writes such names.
fn writer(words: &[String]) -> Option<&'static str> {
    let has = |wanted: &[&str]| wanted.iter().all(|w| words.iter().any(|own| own == w));
    let starts = |wanted: &[&str]| words.iter().zip(wanted).filter(|(a, b)| a == *b).count() == wanted.len();
    match () {
        () if starts(&["actual", "q"]) || starts(&["actual", "qd"]) || starts(&["actual", "current"]) => {
            Some("UR RTDE")
        }
        () if has(&["tau", "j"]) => Some("Franka"),
        () if has(&["motor", "state"]) || has(&["tau", "est"]) => Some("Unitree"),
        () if has(&["rax"]) => Some("ABB, degrees"),
        () if has(&["axis", "act"]) => Some("KUKA"),
        () if starts(&["field"]) => Some("rostopic echo -p"),
        () if has(&["joint", "states"]) => Some("ROS joint states"),
        () => None,
    }
}

/// Splits a name into lower-case words at characters other than letters and digits, between letters and digits, and before capitals.
/// Each word has its range in the name.
pub(crate) fn words(name: &str) -> Vec<(String, std::ops::Range<usize>)> {
    let mut out: Vec<(String, std::ops::Range<usize>)> = Vec::new();
    let mut before: Option<char> = None;
    for (at, c) in name.char_indices() {
        let joined = before.is_some_and(|b| {
            b.is_alphanumeric()
                && b.is_ascii_digit() == c.is_ascii_digit()
                && !(b.is_lowercase() && c.is_uppercase())
        });
        before = Some(c);
        if !c.is_alphanumeric() {
            continue;
        }
        let lower = c.to_lowercase();
        match out.last_mut() {
            Some((word, range)) if joined => {
                word.extend(lower);
                range.end = at + c.len_utf8();
            }
            _ => out.push((lower.collect(), at..at + c.len_utf8())),
        }
    }
    out
}

/// Returns the name without its unit suffix (`q1 [deg]`, `time_ms`, `tau1 (Nm)`), and the unit.
pub(crate) fn split_unit(name: &str) -> (&str, Option<&'static str>) {
    let bracketed = [('[', ']'), ('(', ')')].into_iter().find_map(|(open, close)| {
        let inner = name.trim_end().strip_suffix(close)?;
        let at = inner.rfind(open)?;
        Some((inner[..at].trim_end(), &inner[at + open.len_utf8()..]))
    });
    let suffixed = || name.rsplit_once('_');
    for (rest, unit) in bracketed.into_iter().chain(suffixed()) {
        if let Some(unit) = known_unit(unit.trim()).filter(|_| !rest.is_empty()) {
            return (rest, Some(unit));
        }
    }
    (name, None)
}

/// Returns whether a text is a unit.
pub(crate) fn is_unit(text: &str) -> bool {
    known_unit(text).is_some() || units::unit(text).is_some()
}

/// Returns the suffix that names a unit in a column's name, ` [deg]`; empty for SI units and other texts.
pub(crate) fn unit_suffix(unit: &str) -> String {
    let si = |unit: &str| units::unit(unit).is_none_or(|(_, size)| size == 1.0);
    match known_unit(unit) {
        Some(unit) if !si(unit) || matches!(unit, "A" | "count") => format!(" [{unit}]"),
        _ => String::new(),
    }
}

/// Returns the unit in the spelling of column maps.
fn known_unit(text: &str) -> Option<&'static str> {
    // A single letter is more often an index or a name, except for seconds.
    let spelled = match text {
        "°" | "degree" | "degrees" => "deg",
        "°/s" | "degs" | "dps" | "degps" => "deg/s",
        "rads" | "radps" | "1/s" => "rad/s",
        "1/min" | "U/min" | "min^-1" | "r/min" => "rpm",
        "sec" | "seconds" => "s",
        "N" | "g" | "in" | "m" | "min" | "count" => return None,
        "nm" | "NM" => "Nm",
        other => other,
    };
    units::spelling(spelled)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_split_into_words() {
        let cut = |name: &str| words(name).into_iter().map(|(w, _)| w).collect::<Vec<_>>();
        assert_eq!(cut("actual_q_0"), ["actual", "q", "0"]);
        assert_eq!(cut("motorState[3].tauEst"), ["motor", "state", "3", "tau", "est"]);
        assert_eq!(cut("$AXIS_ACT.A1"), ["axis", "act", "a", "1"]);
        assert_eq!(cut("state.tau_J[0]"), ["state", "tau", "j", "0"]);
    }

    #[test]
    fn unit_suffixes_are_split_off() {
        assert_eq!(split_unit("q1 [deg]"), ("q1", Some("deg")));
        assert_eq!(split_unit("time_ms"), ("time", Some("ms")));
        assert_eq!(split_unit("Torque J1 (Nm)"), ("Torque J1", Some("Nm")));
        assert_eq!(split_unit("position[0]"), ("position[0]", None));
        assert_eq!(split_unit("q_1"), ("q_1", None));
        assert_eq!(split_unit("tau_m"), ("tau_m", None));
    }

    #[test]
    fn words_determine_quantities() {
        let of = |name: &str| meaning(&words(name).into_iter().map(|(w, _)| w).collect::<Vec<_>>());
        let quantity = |name: &str| of(name).map(|m| (m.quantity.symbol(), m.refused.is_none()));
        for (name, expected) in [
            ("actual_q", Some(("q", true))),
            ("actual_qd", Some(("dq", true))),
            ("target_q", Some(("q", false))),
            ("state.q_d", Some(("q", false))),
            ("state.tau_J", Some(("tau", true))),
            ("state.tau_ext_hat_filtered", Some(("tau", false))),
            ("actual_TCP_speed", Some(("dq", false))),
            ("motor_state.tau_est", Some(("tau", true))),
            ("motor_cmd.tau", Some(("tau", false))),
            ("$TORQUE_AXIS_ACT", Some(("tau", true))),
            ("$VEL_AXIS_ACT", Some(("dq", false))),
            ("$AXIS_ACT.A", Some(("q", true))),
            ("robax.rax", Some(("q", true))),
            ("joint_temperatures", None),
        ] {
            assert_eq!(quantity(name), expected, "{name}");
        }
        assert!(of("actual_current").unwrap().is_current());
    }
}
