//! Text tables: their dialect and their cells.

pub(crate) mod cells;
pub(crate) mod dialect;
pub(crate) mod preamble;
pub(crate) mod time;
