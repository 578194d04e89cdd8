//! File formats of logs: CSV, Parquet, MCAP; reading and writing.

pub(crate) mod csv;
pub(crate) mod joint_state;
pub(crate) mod log_reader;
pub(crate) mod mcap;
pub(crate) mod open;
pub(crate) mod parquet;
pub(crate) mod read_ahead;
pub(crate) mod reader;
pub(crate) mod write_parquet;
