//! Meaning of the words in column names.

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

    /// Returns whether only a scale, in a column map, converts the values: currents, counts, and values in an unknown unit.
    pub fn needs_scale(&self) -> bool {
        self.is_current() || self.unit == Some("count")
    }
}

pub(super) const MEASURED: &[&str] = &[
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
pub(super) const COMMAND: &[&str] = &[
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
    "aspos",
    "qcmd",
];
pub(super) const EXTERNAL: &[&str] = &["ext", "external"];
pub(super) const CARTESIAN: &[&str] =
    &["tcp", "tool", "ee", "cart", "cartesian", "flange", "pose", "base", "imu", "linear", "angular"];
pub(super) const OTHER: &[&str] = &[
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
/// Words of parts of a torque that a model or an observer computes.
const COMPUTED: &[&str] = &[
    "gravity",
    "grav",
    "friction",
    "fric",
    "coriolis",
    "inertia",
    "residual",
    "residuals",
    "disturbance",
    "dist",
    "contact",
    "interaction",
    "collision",
    "bias",
    "nle",
    "feedforward",
    "ff",
    "predicted",
    "prediction",
    "pred",
    // MuJoCo: qfrc_passive, qfrc_constraint, qfrc_inverse.
    "passive",
    "constraint",
    "inverse",
    "rnea",
];
/// Words of computed torques beside a word of a torque; elsewhere they are parts of other names (`motor_id_1_torque`).
const COMPUTED_BESIDE: &[&str] = &["model", "id", "dyn", "dynamics", "g"];

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
        () if quantity == Quantity::Torque && (has(COMPUTED) || is_beside(words)) => {
            Some("a computed torque, not a measured one")
        }
        () if has(OTHER) => Some("not a measured joint quantity"),
        () => None,
    };
    let rank = if vague { 0 } else { 1 + u8::from(has(MEASURED)) };
    let writer = writer(words);
    Some(Meaning { quantity, rank, unit, writer, refused })
}

/// Returns whether a word of a computed torque follows a word of a torque: `tau_id`, or precedes it: `model_torque`.
fn is_beside(words: &[String]) -> bool {
    let is_torque =
        |word: &String| quantity(std::slice::from_ref(word)).is_some_and(|(q, ..)| q == Quantity::Torque);
    words.windows(2).any(|pair| {
        let follows = is_torque(&pair[0]) && COMPUTED_BESIDE.contains(&pair[1].as_str());
        follows || (is_torque(&pair[1]) && matches!(pair[0].as_str(), "model" | "dynamics"))
    })
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
            // KUKA: RSI has axes in degrees, and the DataRecorder of Sunrise in radians.
            "aipos" | "aspos" => (Position, Some("deg"), false),
            "qmsr" | "qcmd" => (Position, None, false),
            "theta" => (Position, None, true),
            _ => return None,
        })
    };
    // Names of forces and derivatives also contain words of positions: the most specific word counts.
    words.iter().filter_map(of_word).max_by_key(|(quantity, ..)| *quantity)
}

/// Returns whether a word names a quantity.
pub(super) fn is_quantity(word: &str) -> bool {
    quantity(&[word.to_owned()]).is_some()
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
        () if has(&["aipos"]) => Some("KUKA RSI, degrees"),
        () if has(&["axis", "qmsr"]) || has(&["axis", "tau", "msr"]) => Some("KUKA Sunrise"),
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
