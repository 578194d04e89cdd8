//! Advice about columns whose unit is unknown, or needs a scale.

use crate::columns::recognition::groups::Group;
use crate::columns::recognition::stated::{Stated, StatedUnit};
use crate::columns::recognition::words::Quantity;
use crate::columns::units;

/// Texts about a group of columns.
pub(crate) struct Advice {
    /// Reason for not using a column.
    pub reason: String,
    /// Comment and line of a column map to complete.
    pub map: String,
    /// Sentence for the user.
    pub text: String,
}

/// Returns the advice for a group that needs a scale; `name` is one of its columns.
pub(crate) fn on_scale(group: &Group, name: &str, is_joint: &dyn Fn(&str) -> bool) -> Advice {
    let symbol = group.meaning.quantity.symbol();
    // A single column is no pattern.
    let target = if group.is_pattern() { symbol.to_owned() } else { format!("{symbol}1") };
    let scales = vec!["1.0"; group.members.len()].join(", ");
    let line = |unit: &str| {
        format!("{target} = {{ column = {:?}, unit = \"{unit}\", scale = [{scales}] }}", group.template)
    };
    if let Some(unit) = group.meaning.unit.filter(|_| group.meaning.is_current()) {
        let line = line(unit);
        return Advice {
            reason: format!(
                "a current: set its scale (N m per {unit}, at the joint) in a column map to convert it to a torque"
            ),
            map: format!("# N m per {unit} of each drive, at the joint:\n# {line}"),
            text: format!(
                "{} are currents: set their scales (N m per {unit}) in a column map to convert them to torques: {line}",
                group.template
            ),
        };
    }
    let si = match group.meaning.quantity {
        Quantity::Position => "rad or m",
        Quantity::Velocity => "rad/s or m/s",
        Quantity::Acceleration => "rad/s^2 or m/s^2",
        Quantity::Torque => "N m or N",
    };
    let unit = Stated::of(name, is_joint).unit;
    if let StatedUnit::Unknown(text) = unit
        && text.eq_ignore_ascii_case("grad")
    {
        let line = format!("{target} = {{ column = {:?}, unit = \"deg\" }}", group.template);
        let what = format!("{text} may be degrees (deg) or gon: set the unit in a column map");
        return Advice {
            map: format!("# deg or gon:\n# {line}"),
            text: format!("unit of {}: {what}: {line}", group.template),
            reason: what,
        };
    }
    let (what, per) = match unit {
        StatedUnit::Unknown(text) if is_share(text) => {
            (format!("in {text} of a value that the log does not give"), text)
        }
        StatedUnit::Unknown(text) if units::spelling(text) == Some("count") => {
            (format!("in {text} of the device"), text)
        }
        StatedUnit::Unknown(text) => (format!("{text} is not a known unit"), text),
        StatedUnit::Known("count") | StatedUnit::Absent => ("in counts of the device".to_owned(), "count"),
        StatedUnit::Known(text) => (format!("{text} is not a unit of {symbol}"), text),
    };
    let line = line("count");
    Advice {
        reason: format!("{what}: set its scale ({si} per {per}) in a column map"),
        map: format!("# {si} per {per}:\n# {line}"),
        text: format!("{}: {what}: set its scale ({si} per {per}) in a column map: {line}", group.template),
    }
}

/// Returns whether a unit is a share of another value.
fn is_share(text: &str) -> bool {
    let plain: String =
        text.to_lowercase().chars().filter(|c| c.is_alphanumeric() || "%‰".contains(*c)).collect();
    ["%", "‰", "percent", "percentage", "pct", "permille"].contains(&plain.as_str())
}
