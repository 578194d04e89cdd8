//! Tests of the command-line program as a process.
//!
//! The program is the one that Cargo built for this profile (`CARGO_BIN_EXE_inertial`): with `cargo test --release`,
//! as called by `scripts/test.sh`, that is `target/release/inertial`.

#![allow(clippy::unwrap_used)]

// Mathematical functions of the program, so that both have the same rounding.
use inertial_libm as _;

mod common;

mod analyze;
mod bad_input;
mod bench_and_demo;
mod benchmark;
mod check;
mod columns;
mod design;
mod export;
mod floating_streams;
mod identify;
mod identify_lag;
mod identify_loops;
mod identify_out;
mod identify_prior;
mod identify_torque_errors;
mod limits;
mod lock;
mod messages;
mod model_warnings;
mod momentum;
mod outputs;
mod papers;
mod payload;
mod payload_poses;
mod published_flight;
mod real_robots;
mod regressor;
mod report;
mod reproducible;
mod serve;
mod simulate;
mod standard_errors;
mod summaries;
mod threshold;
mod under_actuated;
mod xacro;
