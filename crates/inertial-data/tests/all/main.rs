//! Tests of reading, repairing and filtering logs, in one program.

#![allow(clippy::unwrap_used)]

mod common;

mod absent_columns;
mod arrays;
mod bad_logs;
mod bags;
mod episodes;
mod filter;
mod formats;
mod late_velocities;
mod prepare;
mod reading;
mod real_logs;
mod streams;
mod tables;
