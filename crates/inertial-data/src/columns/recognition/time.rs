//! Recognition of the time column.

use std::collections::HashMap;

use crate::columns::recognition::stated::split_unit;
use crate::columns::recognition::words::words;
use crate::columns::units::{self, Dimension};

/// Time column.
pub(crate) struct Time {
    pub column: usize,
    /// Column of nanoseconds that are added to the time.
    pub nanoseconds: Option<usize>,
    /// Unit given by the name.
    pub unit: Option<&'static str>,
}

/// Names of time columns, the most certain first; words are joined by `_`.
const NAMES: [&str; 33] = [
    "time",
    "t",
    "timestamp",
    "time_stamp",
    "stamp",
    "header_stamp",
    "field_header_stamp",
    "rtime",
    "robot_time",
    "sim_time",
    "ros_time",
    "log_time",
    "controller_time",
    "elapsed",
    "elapsed_time",
    "time_elapsed",
    "time_from_start",
    "unix_time",
    "epoch",
    "seconds",
    "secs",
    "sec",
    "datetime",
    "date_time",
    "clock",
    "rosbag_timestamp",
    "timestamps",
    "times",
    // Simulink; German programs.
    "tout",
    "zeit",
    "zeitstempel",
    "ts",
    // LCM: microseconds.
    "utime",
];
/// Suffixes of the two parts of a stamp.
const PARTS: [[&str; 2]; 3] = [["sec", "nanosec"], ["secs", "nsecs"], ["sec", "nsec"]];

/// Finds the time column.
pub(crate) fn find(names: &[String]) -> Option<Time> {
    let plain = |name: &str| words(name).into_iter().map(|(word, _)| word).collect::<Vec<_>>().join("_");
    let plain_names: Vec<String> = names.iter().map(|name| plain(name)).collect();
    // Only the first column of each name counts.
    let places: HashMap<&str, usize> =
        plain_names.iter().enumerate().rev().map(|(k, name)| (name.as_str(), k)).collect();
    let nanoseconds_of = |name: &str| {
        PARTS.iter().find_map(|[seconds, nanoseconds]| {
            let prefix = name.strip_suffix(seconds).filter(|p| p.is_empty() || p.ends_with('_'))?;
            let partner = format!("{prefix}{nanoseconds}");
            places.get(partner.as_str()).copied()
        })
    };
    let read: Vec<(String, Option<&'static str>)> = names
        .iter()
        .map(|name| {
            // These seconds are a part of a stamp.
            if nanoseconds_of(&plain(name)).is_some() {
                return (plain(name), None);
            }
            let (rest, unit) = split_unit(name);
            match unit.filter(|unit| units::unit(unit).is_some_and(|(d, _)| d == Dimension::Time)) {
                Some(unit) => (plain(rest), Some(unit)),
                None if name == "utime" => (plain(name), Some("us")),
                None => (plain(name), None),
            }
        })
        .collect();
    let exact = |wanted: &str| read.iter().position(|(name, _)| name == wanted);
    for name in NAMES {
        // A column of seconds is only a part of the stamp if there is a column of nanoseconds.
        if matches!(name, "sec" | "secs" | "seconds") {
            break;
        }
        if let Some(column) = exact(name) {
            return Some(Time { column, nanoseconds: None, unit: read[column].1 });
        }
    }
    for (column, name) in plain_names.iter().enumerate() {
        if let Some(fine) = nanoseconds_of(name) {
            return Some(Time { column, nanoseconds: Some(fine), unit: None });
        }
    }
    NAMES.into_iter().find_map(exact).map(|column| Time { column, nanoseconds: None, unit: read[column].1 })
}
