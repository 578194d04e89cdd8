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

/// Name, dimension, and size in SI units.
const UNITS: [(&str, Dimension, f64); 47] = [
    ("s", D::Time, 1.0),
    ("ms", D::Time, 1e-3),
    ("us", D::Time, 1e-6),
    ("ns", D::Time, 1e-9),
    ("min", D::Time, 60.0),
    ("rad", D::Angle, 1.0),
    ("mrad", D::Angle, 1e-3),
    ("deg", D::Angle, PI / 180.0),
    ("rev", D::Angle, 2.0 * PI),
    ("m", D::Length, 1.0),
    ("cm", D::Length, 1e-2),
    ("mm", D::Length, 1e-3),
    ("um", D::Length, 1e-6),
    ("in", D::Length, 0.0254),
    ("rad/s", D::AngularVelocity, 1.0),
    ("mrad/s", D::AngularVelocity, 1e-3),
    ("deg/s", D::AngularVelocity, PI / 180.0),
    ("rpm", D::AngularVelocity, 2.0 * PI / 60.0),
    ("rev/s", D::AngularVelocity, 2.0 * PI),
    ("m/s", D::Velocity, 1.0),
    ("cm/s", D::Velocity, 1e-2),
    ("mm/s", D::Velocity, 1e-3),
    ("rad/s^2", D::AngularAcceleration, 1.0),
    ("deg/s^2", D::AngularAcceleration, PI / 180.0),
    ("rev/s^2", D::AngularAcceleration, 2.0 * PI),
    ("rpm/s", D::AngularAcceleration, 2.0 * PI / 60.0),
    ("m/s^2", D::Acceleration, 1.0),
    ("mm/s^2", D::Acceleration, 1e-3),
    ("g", D::Acceleration, 9.80665),
    ("mg", D::Acceleration, 9.80665e-3),
    ("Nm", D::Torque, 1.0),
    ("mNm", D::Torque, 1e-3),
    ("kNm", D::Torque, 1e3),
    ("Ncm", D::Torque, 1e-2),
    ("kgfm", D::Torque, 9.80665),
    ("lbfft", D::Torque, 1.355_817_948_331_400_4),
    ("lbfin", D::Torque, 0.112_984_829_027_616_7),
    ("N", D::Force, 1.0),
    ("mN", D::Force, 1e-3),
    ("kN", D::Force, 1e3),
    ("kgf", D::Force, 9.80665),
    ("lbf", D::Force, 4.448_221_615_260_5),
    ("kgm/s", D::Momentum, 1.0),
    ("Nms", D::AngularMomentum, 1.0),
    ("A", D::Current, 1.0),
    ("mA", D::Current, 1e-3),
    ("count", D::Count, 1.0),
];

/// Looks up a unit; spaces, dots and stars between its parts are ignored, `µ` is `u` and `²` is `^2`.
pub(crate) fn unit(name: &str) -> Option<(Dimension, f64)> {
    let plain = plain(name);
    UNITS.iter().find(|(known, ..)| *known == plain).map(|&(_, dimension, size)| (dimension, size))
}

fn plain(name: &str) -> String {
    name.chars()
        .filter(|c| !matches!(c, ' ' | '·' | '.' | '*'))
        .flat_map(|c| match c {
            'µ' | 'μ' => vec!['u'],
            '²' => vec!['^', '2'],
            other => vec![other],
        })
        .collect()
}

/// Returns the unit of a name in its usual spelling.
pub(crate) fn spelling(name: &str) -> Option<&'static str> {
    let plain = plain(name);
    UNITS.iter().find(|(known, ..)| *known == plain).map(|&(known, ..)| known)
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
