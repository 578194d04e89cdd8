//! Logs of robots: read, repaired, filtered, ready for identification.
//!
//! [`CsvReader`] streams a file → [`Log`] holds its columns → [`Columns`] matches them with a mechanism's coordinates →
//! [`prepare`] puts them on one uniform time grid, filters all signals alike and computes what was not measured.
//! Columns that are no coordinate of a mechanism (`ft.fx`, `acc.x`, `wrench.fx`, `momentum.px` …) come along by name in
//! [`Options::extra`], filtered like the rest; [`prepare_columns`] needs no mechanism at all.
//! Bad input gives one [`Error`] that names the file, the row and the column.

mod checks;
mod columns;
mod csv;
mod error;
mod filter;
mod log;
mod prepare;
mod spectrum;
mod time;

pub use columns::{Columns, nearest_hint};
pub use csv::CsvReader;
pub use error::{Error, Place, Result};
pub use filter::LowPass;
pub use log::Log;
pub use prepare::{Cutoff, Need, Options, Prepared, prepare, prepare_columns};
pub use spectrum::motion_bandwidth;

/// A count from a number that is not negative; huge ones saturate.
#[allow(clippy::cast_sign_loss)]
fn count(x: f64) -> usize {
    x as usize
}
