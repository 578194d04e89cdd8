//! Units of log columns and their factors to SI.

use std::f64::consts::PI;

/// Physical dimension.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dimension {
    Time,
    Angle,
    Length,
    AngularVelocity,
    Velocity,
    AngularAcceleration,
    Acceleration,
    Torque,
    Force,
    AngularMomentum,
    Momentum,
    /// Motor current, which a scale converts to a torque.
    Current,
    /// Raw number of the device, which a scale converts to a quantity.
    Count,
}
use Dimension as D;

/// Ounce-force in newtons: the international pound is 0.45359237 kg.
const OUNCE_FORCE: f64 = 0.453_592_37 * 9.806_65 / 16.0;

/// Name, dimension, and size in SI units.
const UNITS: [(&str, Dimension, f64); 71] = [
    ("s", D::Time, 1.0),
    ("ms", D::Time, 1e-3),
    ("us", D::Time, 1e-6),
    ("ns", D::Time, 1e-9),
    ("min", D::Time, 60.0),
    ("rad", D::Angle, 1.0),
    ("mrad", D::Angle, 1e-3),
    ("urad", D::Angle, 1e-6),
    ("deg", D::Angle, PI / 180.0),
    ("cdeg", D::Angle, PI / 18_000.0),
    ("mdeg", D::Angle, PI / 180_000.0),
    ("arcmin", D::Angle, PI / 10_800.0),
    ("arcsec", D::Angle, PI / 648_000.0),
    ("gon", D::Angle, PI / 200.0),
    ("rev", D::Angle, 2.0 * PI),
    ("m", D::Length, 1.0),
    ("cm", D::Length, 1e-2),
    ("mm", D::Length, 1e-3),
    ("um", D::Length, 1e-6),
    ("in", D::Length, 0.0254),
    ("ft", D::Length, 0.3048),
    ("rad/s", D::AngularVelocity, 1.0),
    ("mrad/s", D::AngularVelocity, 1e-3),
    ("rad/min", D::AngularVelocity, 1.0 / 60.0),
    ("deg/s", D::AngularVelocity, PI / 180.0),
    ("mdeg/s", D::AngularVelocity, PI / 180_000.0),
    ("deg/min", D::AngularVelocity, PI / 10_800.0),
    ("rpm", D::AngularVelocity, 2.0 * PI / 60.0),
    ("rev/s", D::AngularVelocity, 2.0 * PI),
    ("m/s", D::Velocity, 1.0),
    ("cm/s", D::Velocity, 1e-2),
    ("mm/s", D::Velocity, 1e-3),
    ("um/s", D::Velocity, 1e-6),
    ("in/s", D::Velocity, 0.0254),
    ("m/min", D::Velocity, 1.0 / 60.0),
    ("mm/min", D::Velocity, 1e-3 / 60.0),
    ("rad/s^2", D::AngularAcceleration, 1.0),
    ("mrad/s^2", D::AngularAcceleration, 1e-3),
    ("deg/s^2", D::AngularAcceleration, PI / 180.0),
    ("rev/s^2", D::AngularAcceleration, 2.0 * PI),
    ("rpm/s", D::AngularAcceleration, 2.0 * PI / 60.0),
    ("m/s^2", D::Acceleration, 1.0),
    ("cm/s^2", D::Acceleration, 1e-2),
    ("mm/s^2", D::Acceleration, 1e-3),
    ("g", D::Acceleration, 9.80665),
    ("mg", D::Acceleration, 9.80665e-3),
    ("Nm", D::Torque, 1.0),
    ("daNm", D::Torque, 10.0),
    ("cNm", D::Torque, 1e-2),
    ("mNm", D::Torque, 1e-3),
    ("uNm", D::Torque, 1e-6),
    ("kNm", D::Torque, 1e3),
    ("Ncm", D::Torque, 1e-2),
    ("Nmm", D::Torque, 1e-3),
    ("kgfm", D::Torque, 9.80665),
    ("kgfcm", D::Torque, 9.80665e-2),
    ("lbfft", D::Torque, 1.355_817_948_331_400_4),
    ("lbfin", D::Torque, 0.112_984_829_027_616_7),
    ("ozfin", D::Torque, OUNCE_FORCE * 0.0254),
    ("N", D::Force, 1.0),
    ("mN", D::Force, 1e-3),
    ("daN", D::Force, 10.0),
    ("kN", D::Force, 1e3),
    ("kgf", D::Force, 9.80665),
    ("lbf", D::Force, 4.448_221_615_260_5),
    ("ozf", D::Force, OUNCE_FORCE),
    ("kgm/s", D::Momentum, 1.0),
    ("Nms", D::AngularMomentum, 1.0),
    ("A", D::Current, 1.0),
    ("mA", D::Current, 1e-3),
    ("count", D::Count, 1.0),
];

/// Other spellings of each unit. `grad` is none of them: it is a gon in French and English, and a degree in German.
const SPELLINGS: [(&str, &[&str]); 18] = [
    ("s", &["sec", "secs", "second", "seconds"]),
    ("ms", &["msec", "msecs", "millis", "millisec", "milliseconds"]),
    ("us", &["usec", "usecs", "micros", "microseconds"]),
    ("ns", &["nsec", "nsecs", "nanos", "nanosec", "nanoseconds"]),
    ("min", &["mins", "minute", "minutes"]),
    ("rad", &["Rad", "RAD", "radian", "radians"]),
    ("deg", &["Deg", "DEG", "degree", "degrees", "Degree", "Degrees"]),
    ("rev", &["revs", "turn", "turns", "revolution", "revolutions"]),
    ("rad/s", &["rads", "radps", "1/s"]),
    ("deg/s", &["degs", "degps", "dps"]),
    ("rpm", &["RPM", "Rpm", "1/min", "U/min", "r/min", "rev/min", "min^-1", "min-1"]),
    ("rev/s", &["rps", "RPS", "r/s", "U/s", "turn/s", "turns/s"]),
    ("Nm", &["nm", "NM", "newtonmeter", "newtonmeters"]),
    ("lbfft", &["lbft", "ftlb", "ftlbs", "ftlbf"]),
    ("lbfin", &["lbin", "inlb", "inlbs", "inlbf"]),
    ("ozfin", &["ozin", "inoz", "inozf"]),
    ("A", &["amp", "amps", "Amp", "Amps", "ampere", "amperes"]),
    (
        "count",
        &[
            "counts",
            "cnt",
            "cnts",
            "tick",
            "ticks",
            "step",
            "steps",
            "inc",
            "incs",
            "increment",
            "increments",
            "pulse",
            "pulses",
            "LSB",
        ],
    ),
];

/// Looks up a unit; spaces, dots, stars, hyphens and underscores between its parts are ignored.
pub(crate) fn unit(name: &str) -> Option<(Dimension, f64)> {
    let spelling = spelling(name)?;
    UNITS.iter().find(|(known, ..)| *known == spelling).map(|&(_, dimension, size)| (dimension, size))
}

fn plain(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    let mut rest = name.chars().peekable();
    while let Some(c) = rest.next() {
        let before_digit = rest.peek().is_some_and(char::is_ascii_digit);
        match c {
            ' ' | '·' | '⋅' | '×' | '.' | '*' | '_' => {}
            // The sign of an exponent is kept.
            '-' if !before_digit => {}
            'µ' | 'μ' => out.push('u'),
            '²' => out.push_str("^2"),
            '°' | 'º' => out.push_str("deg"),
            other => out.push(other),
        }
    }
    let mut out = out.replace("/second", "/s").replace("/sec", "/s");
    for (written, normalized) in
        [("/s2", "/s^2"), ("/s/s", "/s^2"), ("s^-2", "/s^2"), ("s-2", "/s^2"), ("s^-1", "/s"), ("s-1", "/s")]
    {
        match out.strip_suffix(written) {
            Some(before) if !before.is_empty() => out = format!("{before}{normalized}"),
            _ => {}
        }
    }
    out
}

/// Returns the unit of a name in its usual spelling.
pub(crate) fn spelling(name: &str) -> Option<&'static str> {
    let plain = plain(name);
    UNITS.iter().map(|(known, ..)| *known).find(|known| *known == plain).or_else(|| {
        SPELLINGS.iter().find(|(_, others)| others.contains(&plain.as_str())).map(|(known, _)| *known)
    })
}

/// Returns the dimensions that a named column may have; empty if the name is unknown.
pub(crate) fn dimensions(column: &str) -> &'static [Dimension] {
    let (group, part) =
        column.split_once('.').unwrap_or((column.trim_end_matches(|c: char| c.is_ascii_digit()), ""));
    match (group, part) {
        ("t", _) => &[D::Time],
        ("q", _) => &[D::Angle, D::Length, D::Count],
        ("dq", _) => &[D::AngularVelocity, D::Velocity, D::Count],
        ("ddq", _) => &[D::AngularAcceleration, D::Acceleration, D::Count],
        ("tau", _) => &[D::Torque, D::Force, D::Current, D::Count],
        ("ft" | "wrench", "fx" | "fy" | "fz") => &[D::Force, D::Count],
        ("ft" | "wrench", _) => &[D::Torque, D::Count],
        ("acc", _) | ("base", "ax" | "ay" | "az") => &[D::Acceleration, D::Count],
        ("gyro", _) | ("base", "wx" | "wy" | "wz") => &[D::AngularVelocity, D::Count],
        ("alpha", _) | ("base", "alx" | "aly" | "alz") => &[D::AngularAcceleration, D::Count],
        ("base", "x" | "y" | "z") => &[D::Length],
        ("base", "vx" | "vy" | "vz") => &[D::Velocity],
        ("momentum", "px" | "py" | "pz") => &[D::Momentum],
        ("momentum", _) => &[D::AngularMomentum],
        _ => &[],
    }
}

/// Returns the names of the units that a column may have.
pub(crate) fn names(column: &str) -> String {
    let wanted = dimensions(column);
    let known = UNITS.iter().filter(|(_, d, _)| wanted.is_empty() || wanted.contains(d));
    known.map(|(name, ..)| *name).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_have_many_spellings() {
        for (texts, dimension, size) in [
            (&["Nmm", "N·mm", "N*mm", "N-mm", "N mm", "N.mm", "mNm", "mN·m"][..], D::Torque, 1e-3),
            (&["cNm", "Ncm", "N-cm"], D::Torque, 1e-2),
            (&["daNm", "daN·m"], D::Torque, 10.0),
            (&["uNm", "µN·m"], D::Torque, 1e-6),
            (&["kgf.cm", "kgf·cm", "kgf-cm"], D::Torque, 0.098_066_5),
            // NIST SP 811, appendix B.8, rounded to seven digits.
            (&["lbf-in", "in-lb", "lb-in", "in·lbf", "lbf·in"], D::Torque, 0.112_984_8),
            (&["ft-lb", "lb-ft", "lbf·ft", "ft_lb"], D::Torque, 1.355_818),
            (&["oz-in", "ozf·in", "in·oz"], D::Torque, 7.061_552e-3),
            (&["ozf"], D::Force, 0.278_013_9),
            (&["turns", "rev", "turn"], D::Angle, 2.0 * PI),
            (&["gon"], D::Angle, PI / 200.0),
            (&["arcmin"], D::Angle, PI / 180.0 / 60.0),
            (&["arcsec"], D::Angle, PI / 180.0 / 3600.0),
            (&["cdeg"], D::Angle, PI / 180.0 / 100.0),
            (&["°", "Deg", "degrees"], D::Angle, PI / 180.0),
            (&["°/s", "deg/sec", "deg s^-1", "deg·s-1"], D::AngularVelocity, PI / 180.0),
            (&["rps", "rev/s", "turns/s"], D::AngularVelocity, 2.0 * PI),
            (&["°/s²", "deg/s2", "deg/s**2", "deg/s/s", "deg s^-2"], D::AngularAcceleration, PI / 180.0),
            (&["msec"], D::Time, 1e-3),
            (&["counts", "ticks", "inc", "steps"], D::Count, 1.0),
        ] {
            for text in texts {
                let (found, own) = unit(text).unwrap();
                assert!(found == dimension && (own / size - 1.0).abs() < 3e-7, "{text}: {own}");
            }
        }
        for text in
            ["grad", "Grad", "Hz", "%", "V", "W", "MNm", "kg.m", "kg.cm", "lb", "s^-1", "", "10^-3 Nm"]
        {
            assert_eq!(unit(text), None, "{text}");
        }
        for (name, others) in SPELLINGS {
            assert!(UNITS.iter().any(|(known, ..)| *known == name), "{name}");
            assert!(others.iter().all(|other| UNITS.iter().all(|(known, ..)| known != other)), "{name}");
        }
    }
}
