//! Units in the names of columns, in brackets (`q1 [deg]`) or among their words (`tau_Nmm_1`).

use std::ops::Range;

use crate::columns::recognition::words::{self, Meaning, Quantity, meaning, words};
use crate::columns::units::{self, Dimension, dimensions};

/// Unit found in a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StatedUnit<'n> {
    Absent,
    /// Unit in the spelling of column maps.
    Known(&'static str),
    /// Text in the place of a unit.
    Unknown(&'n str),
}

/// Name of a column without its unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stated<'n> {
    /// The name, without the unit if the unit is at its end.
    pub rest: &'n str,
    pub unit: StatedUnit<'n>,
}

/// Words of comments in brackets that do not name a unit: `tau1 (filtered)`, `q1(t)`.
const COMMENTS: &[&str] = &[
    "filtered",
    "filt",
    "filter",
    "unfiltered",
    "lowpass",
    "lp",
    "smoothed",
    "smooth",
    "left",
    "right",
    "l",
    "r",
    "side",
    "motor",
    "link",
    "load",
    "gear",
    "gearbox",
    "output",
    "input",
    "sensor",
    "encoder",
    "signal",
    "value",
    "double",
    "float",
    "si",
    "t",
    "k",
    "n",
    "i",
    "j",
];
/// Words before the number of a joint.
const JOINT: &[&str] = &["joint", "jnt", "j", "axis", "a", "motor"];
/// Units that are words of names: others are more often an index or a name (`tau_m`, `joint_count`, `q_in`).
const IN_WORDS: &[&str] = &[
    "rad", "mrad", "deg", "mdeg", "cdeg", "rad/s", "deg/s", "rpm", "rev/s", "rad/s^2", "deg/s^2", "mm", "cm",
    "mm/s", "Nm", "daNm", "cNm", "mNm", "uNm", "kNm", "Ncm", "Nmm", "kgfm", "kgfcm", "lbfft", "lbfin",
    "ozfin", "mA", "urad", "arcmin", "arcsec", "gon", "rev",
];
/// Words of names that are no unit with a known size.
const NO_UNITS: &[&str] = &[
    "%",
    "percent",
    "percentage",
    "pct",
    "permille",
    "grad",
    "volt",
    "volts",
    "watt",
    "watts",
    "hz",
    "counts",
    "ticks",
    "pulses",
    "increments",
];

impl<'n> Stated<'n> {
    /// Finds the unit of a joint's column; `is_joint` returns whether a text names a joint of the model.
    pub fn of(name: &'n str, is_joint: &dyn Fn(&str) -> bool) -> Self {
        let absent = Self { rest: name, unit: StatedUnit::Absent };
        in_brackets(name, is_joint).or_else(|| in_words(name)).unwrap_or(absent)
    }

    /// Interprets the words of the name without index and joint. A unit alone also determines the quantity: `joint_1_deg`.
    pub fn meaning(&self, words: &[String]) -> Option<Meaning> {
        let mut found = meaning(words).or_else(|| self.meaning_of_unit(words))?;
        match self.unit {
            // `q_s` is not a position in seconds.
            StatedUnit::Absent | StatedUnit::Known("s") => {}
            StatedUnit::Known(unit) if suits(unit, found.quantity.symbol()) => {
                found.unit = Some(unit).filter(|unit| !is_si(unit));
            }
            StatedUnit::Known(_) | StatedUnit::Unknown(_) => found.unit = Some("count"),
        }
        Some(found)
    }

    fn meaning_of_unit(&self, words: &[String]) -> Option<Meaning> {
        let StatedUnit::Known(unit) = self.unit else { return None };
        let quantity = match units::unit(unit)?.0 {
            Dimension::Angle | Dimension::Length => Quantity::Position,
            Dimension::AngularVelocity | Dimension::Velocity => Quantity::Velocity,
            Dimension::AngularAcceleration => Quantity::Acceleration,
            Dimension::Torque | Dimension::Force | Dimension::Current => Quantity::Torque,
            _ => return None,
        };
        let is_joint = words.iter().all(|word| JOINT.contains(&word.as_str()));
        is_joint.then_some(Meaning { quantity, rank: 0, unit: None, writer: None, refused: None })
    }
}

/// Returns whether a unit measures a quantity.
pub(crate) fn suits(unit: &str, symbol: &str) -> bool {
    units::unit(unit).is_some_and(|(dimension, _)| dimensions(symbol).contains(&dimension))
}

/// Returns whether a unit converts a value without a scale.
pub(crate) fn is_convertible(unit: &str) -> bool {
    !matches!(unit, "A" | "mA" | "count")
}

fn is_si(unit: &str) -> bool {
    is_convertible(unit) && units::unit(unit).is_some_and(|(_, size)| size == 1.0)
}

/// Finds the last brackets that contain a unit, or a text in the place of a unit.
fn in_brackets<'n>(name: &'n str, is_joint: &dyn Fn(&str) -> bool) -> Option<Stated<'n>> {
    for inner in brackets(name).into_iter().rev() {
        let (before, after) = (name[..inner.start - 1].trim_end(), &name[inner.end + 1..]);
        let text = name[inner].trim();
        let is_end =
            words(after).iter().all(|(word, _)| is_comment_word(word) || JOINT.contains(&word.as_str()))
                || is_joint(after);
        let rest = if after.trim().is_empty() && !before.is_empty() { before } else { name };
        match units::spelling(text) {
            Some(unit) if is_end || (before.is_empty() && IN_WORDS.contains(&unit)) => {
                return Some(Stated { rest, unit: StatedUnit::Known(unit) });
            }
            _ if is_index(text) || is_comment(text) || is_joint(text) => {}
            _ if is_end && !before.is_empty() => {
                return Some(Stated { rest, unit: StatedUnit::Unknown(text) });
            }
            _ => {}
        }
    }
    None
}

/// Returns the contents of all brackets.
fn brackets(name: &str) -> Vec<Range<usize>> {
    let mut out = Vec::new();
    let mut from = 0;
    while let Some(open) = name[from..].find(['[', '(']).map(|k| from + k) {
        let close = if name.as_bytes()[open] == b'[' { ']' } else { ')' };
        let Some(length) = name[open + 1..].find(close) else { break };
        out.push(open + 1..open + 1 + length);
        from = open + 2 + length;
    }
    out
}

/// Returns whether a text in brackets is an index: `[0]`, `(1,:)`, `[joint_1]`, `(A1)`.
fn is_index(text: &str) -> bool {
    let letters = text.trim_end_matches(|c: char| c.is_ascii_digit());
    let named = letters.starts_with(char::is_alphabetic)
        && letters.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | ' '));
    // A text such as `x1000` is a factor.
    let named = named && letters.len() < text.len() && !letters.eq_ignore_ascii_case("x");
    named || text.chars().all(|c| c.is_ascii_digit() || matches!(c, ',' | ':' | ' '))
}

fn is_comment(text: &str) -> bool {
    let own = words(text);
    !own.is_empty() && own.iter().all(|(word, _)| is_comment_word(word) || words::is_quantity(word))
}

fn is_comment_word(word: &str) -> bool {
    let lists = [
        COMMENTS,
        words::MEASURED,
        words::COMMAND,
        words::EXTERNAL,
        words::CARTESIAN,
        words::OTHER,
        &["joint", "axis"],
    ];
    word.bytes().all(|b| b.is_ascii_digit()) || lists.iter().any(|list| list.contains(&word))
}

/// Finds a unit among the words of a name.
fn in_words(name: &str) -> Option<Stated<'_>> {
    // Texts in brackets were considered before.
    let brackets = brackets(name);
    let is_outside = |part: &Range<usize>| brackets.iter().all(|inner| !inner.contains(&part.start));
    let parts: Vec<Range<usize>> = parts(name).into_iter().filter(is_outside).collect();
    for first in 0..parts.len() {
        for end in (first + 1..=parts.len().min(first + 3)).rev() {
            let texts: Vec<&str> = parts[first..end].iter().map(|range| &name[range.clone()]).collect();
            let start = parts[first].start;
            let is_last = end == parts.len() && name[..start].ends_with('_');
            // The unit in `filtered_50_Hz` is not that of the quantity.
            let is_counted = first > 0 && name[parts[first - 1].clone()].bytes().all(|b| b.is_ascii_digit());
            let rest = name[..start].trim_end_matches(|c: char| !c.is_alphanumeric() && c != ']' && c != ')');
            let has_number = name[..parts[end - 1].end].ends_with(|c: char| c.is_ascii_digit());
            let is_end = end == parts.len() && !rest.is_empty() && (texts.len() > 1 || !has_number);
            let rest = if is_end { rest } else { name };
            // The number of a joint may follow without a separator: `q_deg1`.
            let letter_count = |word: &str| word.trim_end_matches(|c: char| c.is_ascii_digit()).len();
            let no_unit =
                |word: &str| NO_UNITS.contains(&word[..letter_count(word)].to_ascii_lowercase().as_str());
            let unit = match &texts[..] {
                [hertz] if is_counted && hertz.eq_ignore_ascii_case("hz") => continue,
                [word] if no_unit(word) => StatedUnit::Unknown(&name[start..start + letter_count(word)]),
                [word] => {
                    match word_unit(&word[..letter_count(word)], is_last && letter_count(word) == word.len())
                    {
                        Some(unit) => StatedUnit::Known(unit),
                        None => continue,
                    }
                }
                [per, mille] if per.eq_ignore_ascii_case("per") && *mille == "mille" => {
                    StatedUnit::Unknown(&name[start..parts[end - 1].end])
                }
                [size, per, time] if *per == "per" => match of_list(&format!("{size}/{time}")) {
                    Some(unit) => StatedUnit::Known(unit),
                    None => continue,
                },
                [size, time] => match of_list(&format!("{size}/{time}")).or_else(|| torque(size, time)) {
                    Some(unit) => StatedUnit::Known(unit),
                    None => continue,
                },
                _ => continue,
            };
            // A name that is only a unit has no quantity.
            let is_whole = first == 0 && end == parts.len();
            if !is_whole
                || (texts.len() == 1 && units::spelling(&texts[0][..letter_count(texts[0])]).is_none())
            {
                return Some(Stated { rest, unit });
            }
        }
    }
    None
}

/// Splits a name at characters that are not in words or units, and before letters that follow a number.
fn parts(name: &str) -> Vec<Range<usize>> {
    let mut out: Vec<Range<usize>> = Vec::new();
    let mut before: Option<char> = None;
    for (at, c) in name.char_indices() {
        let is_part = |c: char| c.is_alphanumeric() || matches!(c, '°' | '%' | '^');
        let joined = before.is_some_and(|b| is_part(b) && (c.is_ascii_digit() || !b.is_ascii_digit()));
        before = Some(c);
        match out.last_mut() {
            Some(range) if joined && is_part(c) => range.end = at + c.len_utf8(),
            _ if is_part(c) => out.push(at..at + c.len_utf8()),
            _ => {}
        }
    }
    out
}

/// Returns the unit of a text, if it is one of those in names.
fn of_list(text: &str) -> Option<&'static str> {
    // `q_1_s` and `dq_r_s` do not contain a unit of speed.
    let size = text.split('/').next().unwrap_or_default();
    if size.len() < 2 || size == "turn" {
        return None;
    }
    units::spelling(text).filter(|unit| IN_WORDS.contains(unit))
}

/// Returns the unit of a word.
fn word_unit(word: &str, is_last: bool) -> Option<&'static str> {
    let joined = ["Deg", "Degrees", "Rad", "Rpm"].into_iter().find(|end| word.ends_with(end));
    if is_last { suffix_unit(word) } else { None }.or_else(|| of_list(word)).or_else(|| of_list(joined?))
}

/// Returns the unit of torque of two words: `N_m`, `in_lb`.
fn torque(first: &str, second: &str) -> Option<&'static str> {
    let forces = ["N", "mN", "cN", "kN", "daN", "uN", "lbf", "lb", "kgf", "ft", "in", "oz", "ozf"];
    let found = units::spelling(&format!("{first}{second}")).filter(|_| forces.contains(&first))?;
    units::unit(found).filter(|(dimension, _)| *dimension == Dimension::Torque).map(|_| found)
}

/// Returns the name without its known unit at the end (`q1 [deg]`, `time_ms`, `tau1 (Nm)`), and the unit.
pub(crate) fn split_unit(name: &str) -> (&str, Option<&'static str>) {
    let trimmed = name.trim_end();
    if trimmed.ends_with([']', ')'])
        && let Some(inner) = brackets(trimmed).pop().filter(|inner| inner.end + 1 == trimmed.len())
    {
        let rest = name[..inner.start - 1].trim_end();
        return match units::spelling(name[inner].trim()).filter(|_| !rest.is_empty()) {
            Some(unit) => (rest, Some(unit)),
            None => (name, None),
        };
    }
    match name.rsplit_once('_').and_then(|(rest, unit)| Some((rest, suffix_unit(unit)?))) {
        Some((rest, unit)) if !rest.is_empty() => (rest, Some(unit)),
        _ => (name, None),
    }
}

/// Returns the unit after the last underscore of a name.
fn suffix_unit(text: &str) -> Option<&'static str> {
    match text {
        // These letters are more often an index, a name, or the second part of a time stamp.
        "N" | "g" | "in" | "ft" | "m" | "min" | "amp" | "turn" | "secs" | "nsec" | "nsecs" | "nanosec" => {
            None
        }
        text => units::spelling(text).filter(|unit| *unit != "count"),
    }
}

/// Returns whether a text is a unit.
pub(crate) fn is_unit(text: &str) -> bool {
    units::spelling(text).is_some()
}

/// Returns the suffix that names a unit in a column's name, ` [deg]`; empty for SI units and for texts without a letter or `%`.
pub(crate) fn unit_suffix(text: &str) -> String {
    match units::spelling(text) {
        Some(unit) if is_si(unit) => String::new(),
        Some(unit) => format!(" [{unit}]"),
        None if text.contains(|c: char| c.is_alphabetic() || c == '%')
            && !matches!(text, "none" | "bool") =>
        {
            format!(" [{text}]")
        }
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::StatedUnit::{Absent, Known, Unknown};
    use super::*;

    #[test]
    fn unit_suffixes_are_split_off() {
        assert_eq!(split_unit("q1 [deg]"), ("q1", Some("deg")));
        assert_eq!(split_unit("time_ms"), ("time", Some("ms")));
        assert_eq!(split_unit("Time [min]"), ("Time", Some("min")));
        assert_eq!(split_unit("time [msec]"), ("time", Some("ms")));
        assert_eq!(split_unit("stamp_nsec"), ("stamp_nsec", None));
        assert_eq!(split_unit("Torque J1 (Nm)"), ("Torque J1", Some("Nm")));
        assert_eq!(split_unit("position[0]"), ("position[0]", None));
        assert_eq!(split_unit("q_1"), ("q_1", None));
        assert_eq!(split_unit("tau_m"), ("tau_m", None));
    }

    #[test]
    fn units_in_names_are_found() {
        let of = |name: &'static str| Stated::of(name, &|text| text == "elbow").unit;
        for (name, expected) in [
            ("tau1 [Nmm]", Known("Nmm")),
            ("tau1 [Nmm] (filtered)", Known("Nmm")),
            ("torque [Nm] J1", Known("Nm")),
            ("tau [N·mm][0]", Known("Nmm")),
            ("tau1(in-lb)", Known("lbfin")),
            ("q1 [in]", Known("in")),
            ("acc1 [m/s^2]", Known("m/s^2")),
            ("[deg] q1", Known("deg")),
            ("q_deg_0", Known("deg")),
            ("q_turns_1", Known("rev")),
            ("pos_rev_1", Known("rev")),
            ("q1deg", Known("deg")),
            ("posDeg1", Known("deg")),
            ("q_deg1", Known("deg")),
            ("tau_Nmm1", Known("Nmm")),
            ("tau_percent1", Unknown("percent")),
            ("J1_vel_deg_s", Known("deg/s")),
            ("joint_1_acc_rad_per_s2", Known("rad/s^2")),
            ("tau_mNm_1", Known("mNm")),
            ("tau_N_mm_1", Known("Nmm")),
            ("torque_in_lb_1", Known("lbfin")),
            ("tau1 [%]", Unknown("%")),
            ("tau [% of max] 1", Unknown("% of max")),
            ("q1 [grad]", Unknown("grad")),
            ("dq1 (Hz)", Unknown("Hz")),
            ("tau1 [10^-3 Nm]", Unknown("10^-3 Nm")),
            ("tau1 [x1000]", Unknown("x1000")),
            ("torque_percent_0", Unknown("percent")),
            ("torque_per_mille_0", Unknown("per_mille")),
            ("q_counts_1", Unknown("counts")),
            ("position[0]", Absent),
            ("effort[joint_1]", Absent),
            ("effort[elbow]", Absent),
            ("effort(elbow)", Absent),
            ("position (joint 1)", Absent),
            ("motor_state[3].tau_est", Absent),
            ("arm(A).q_1", Absent),
            ("arm(in).q_1", Absent),
            ("arm[cm].q_1", Absent),
            ("dq_r_s_1", Absent),
            ("dq_1_min", Absent),
            ("q_1_s", Known("s")),
            ("q(1,:)", Absent),
            ("q1(t)", Absent),
            ("tau1 (measured)", Absent),
            ("tau1 (low-pass filtered)", Unknown("low-pass filtered")),
            ("q_filtered_50_Hz_1", Absent),
            ("tau_m", Absent),
            ("q_1", Absent),
            ("$AXIS_ACT.A1", Absent),
        ] {
            assert_eq!(of(name), expected, "{name}");
        }
    }
}
