//! Logs of robots: reading, cleaning, filtering and preparation for identification.
//!
//! ```no_run
//! use inertial::estimation::{Equations, IdentifyOptions, JointTerms, Summary, identify};
//! use inertial::mechanism::{BuildOptions, DEFAULT_SNAP, read::urdf};
//! use inertial_data::{Log, Options, prepare};
//!
//! let robot = urdf::read(&std::fs::read_to_string("robot.urdf")?)?.build(&BuildOptions::default())?;
//! let log = prepare(&robot, &Log::read("log.csv".as_ref())?, &Options::default())?;
//! let friction = JointTerms::friction();
//! let equations = Equations::new(&robot, friction, DEFAULT_SNAP)?;
//! let summary = Summary::new(&equations, &log.measurements(&equations)?)?;
//! let result = identify(&equations, &summary, None, &IdentifyOptions::default())?;
//! for body in &result.bodies {
//!     println!("{}: {} kg", body.name, body.mass);
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! 1. [`open`] detects the format of a file (text tables, Parquet, `.npz`, `.mat`, ROS bags, LeRobot datasets) and returns a [`Reader`]
//!    of its rows. A [`ColumnMap`] renames and scales columns if the log has other names or units.
//! 2. [`Columns`] assigns the columns to the coordinates of a mechanism.
//! 3. [`PreparedLog`] resamples them on a uniform time grid, applies the same filter to all signals and differentiates quantities that
//!    were not measured. It is read in parts of any size ([`Prepared`]).
//!
//! Memory does not depend on the length of the log; [`Log`] and [`prepare`] are for logs that fit into memory.
//! Columns that belong to no coordinate (`ft.fx`, `acc.x`, `wrench.fx`, `momentum.px` …) are listed in [`Options::extra`] and
//! filtered like the rest; [`prepare_columns`] needs no mechanism. An [`Error`] names the file, the row and the column.

mod clean;
mod columns;
mod error;
mod filter;
mod formats;
mod joint_names;
mod log;
mod options;
mod prepare;
mod reader;
mod temporary;

pub use columns::assignment::{BASE_A, BASE_Q, BASE_V, Columns};
pub use columns::map::ColumnMap;
pub use columns::mapped::Mapped;
pub use columns::recognition::{Recognition, RecognizedColumn};
pub use error::{AbsentColumn, Error, Place, Result, nearest_hint, plain_io};
pub use filter::butterworth::LowPass;
pub use filter::savitzky_golay::SavitzkyGolay;
pub use filter::spectrum::motion_bandwidth;
pub use formats::arrays::ArrayReader;
pub use formats::bags::{BagReader, TopicChoice};
pub use formats::csv::CsvReader;
pub use formats::folder_files::FolderFiles;
pub use formats::lerobot::LeRobotReader;
pub use formats::open::{Source, folder_files, open, open_as, with_standard_names};
pub use formats::parquet::ParquetReader;
pub use formats::timed_rows::TimedRows;
pub use formats::write_parquet::write_parquet;
pub use joint_names::JointNames;
pub use log::Log;
pub use options::{Cutoff, Filter, Options, Requirement};
pub use prepare::fixed_lag::{FixedLag, StreamSample};
pub use prepare::prepared_log::{Prepared, PreparedLog, prepare, prepare_columns};
pub use reader::{LogRows, Reader, Selection};

/// Converts a nonnegative number to a count; large ones saturate.
fn count(x: f64) -> usize {
    x as usize
}

// The README example needs both crates.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
