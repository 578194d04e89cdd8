//! Logs of robots: read, repaired, filtered, ready for identification.
//!
//! [`open`] recognizes a file (CSV, CSV.gz, Parquet, MCAP) and gives a [`Reader`] of its rows, renamed and scaled by a
//! [`ColumnMap`] where the log has other names and units → [`Columns`] matches the columns with a mechanism's
//! coordinates → [`PreparedLog`] puts them on one uniform time grid, filters all signals alike and computes what was not
//! measured; it is read in parts of any size ([`Prepared`]). All of it works in memory that does not depend on the log's
//! length. [`Log`] and [`prepare`] are for logs that fit into memory.
//! Columns that are no coordinate of a mechanism (`ft.fx`, `acc.x`, `wrench.fx`, `momentum.px` …) come along by name in
//! [`Options::extra`], filtered like the rest; [`prepare_columns`] needs no mechanism at all.
//! Bad input gives one [`Error`] that names the file, the row and the column.

mod clean;
mod columns;
mod error;
mod filter;
mod formats;
mod log;
mod prepare;

pub use columns::assignment::Columns;
pub use columns::map::{ColumnMap, Mapped};
pub use error::{Error, Place, Result, nearest_hint, plain_io};
pub use filter::butterworth::LowPass;
pub use filter::savitzky_golay::SavitzkyGolay;
pub use filter::spectrum::motion_bandwidth;
pub use formats::csv::CsvReader;
pub use formats::mcap::McapReader;
pub use formats::open::{Source, open};
pub use formats::parquet::ParquetReader;
pub use formats::reader::{LogRows, Reader};
pub use formats::write_parquet::write_parquet;
pub use log::Log;
pub use prepare::fixed_lag::{FixedLag, StreamSample};
pub use prepare::options::{Cutoff, Filter, Need, Options};
pub use prepare::prepared_log::{Prepared, PreparedLog, prepare, prepare_columns};

/// A count from a number that is not negative; huge ones saturate.
fn count(x: f64) -> usize {
    x as usize
}
