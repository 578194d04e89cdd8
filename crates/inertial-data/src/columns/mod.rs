//! Columns of a log: names, units, and the coordinates they belong to.

pub(crate) mod assignment;
pub(crate) mod layout;
pub(crate) mod listed;
pub(crate) mod map;
pub(crate) mod mapped;
pub(crate) mod name_lists;
pub(crate) mod pattern;
pub(crate) mod recognition;
pub(crate) mod units;

pub(crate) use recognition::{is_unit, unit_suffix};
