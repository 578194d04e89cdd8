//! Logs of robots: read, repaired, filtered, ready for identification.
//!
//! [`open`] recognises a file (CSV, CSV.gz, Parquet, MCAP) and gives a [`Reader`] of its rows, renamed and scaled by a
//! [`ColumnMap`] where the log has other names and units → [`Columns`] matches the columns with a mechanism's
//! coordinates → [`PreparedLog`] puts them on one uniform time grid, filters all signals alike and computes what was not
//! measured; it is read in parts of any size ([`Prepared`]). All of it works in memory that does not depend on the log's
//! length. [`Log`] and [`prepare`] are for logs that fit into memory.
//! Columns that are no coordinate of a mechanism (`ft.fx`, `acc.x`, `wrench.fx`, `momentum.px` …) come along by name in
//! [`Options::extra`], filtered like the rest; [`prepare_columns`] needs no mechanism at all.
//! Bad input gives one [`Error`] that names the file, the row and the column.

mod ahead;
mod checks;
mod columns;
mod csv;
mod cutoff;
mod derive;
mod error;
mod filter;
mod glitch;
mod grid;
mod input;
mod joint_state;
mod layout;
mod log;
mod map;
mod mcap;
mod options;
mod parquet;
mod prepare;
mod reader;
mod record;
mod smooth;
mod spectrum;
mod spool;
mod stamps;
mod stream;
mod survey;
mod units;
mod window;
mod write;

pub use columns::{Columns, nearest_hint};
pub use csv::CsvReader;
pub use error::{Error, Place, Result, plain_io};
pub use filter::LowPass;
pub use input::{Source, open};
pub use log::Log;
pub use map::{ColumnMap, Mapped};
pub use mcap::McapReader;
pub use options::{Cutoff, Filter, Need, Options};
pub use parquet::ParquetReader;
pub use prepare::{Prepared, PreparedLog, prepare, prepare_columns};
pub use reader::{Reader, Rows};
pub use spectrum::motion_bandwidth;
pub use stream::{FixedLag, StreamSample};
pub use window::SavitzkyGolay;
pub use write::write_parquet;

/// A count from a number that is not negative; huge ones saturate.
fn count(x: f64) -> usize {
    x as usize
}
