//! File formats of logs: text tables, Parquet, NumPy and MATLAB arrays, ROS bags, LeRobot datasets; reading and writing.

pub(crate) mod arrays;
pub(crate) mod bags;
pub(crate) mod csv;
pub(crate) mod folder_files;
pub(crate) mod gzip;
pub(crate) mod kinds;
pub(crate) mod lerobot;
pub(crate) mod log_reader;
pub(crate) mod open;
mod panics;
pub(crate) mod parquet;
mod parquet_pages;
pub(crate) mod read_ahead;
pub(crate) mod text;
pub(crate) mod timed_rows;
pub(crate) mod write_parquet;
pub(crate) mod zstd;
