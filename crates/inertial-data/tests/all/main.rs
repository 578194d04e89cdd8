//! Tests of reading, repairing and filtering logs, in one program.

mod common;

mod bad_logs;
mod filter;
mod formats;
mod prepare;
mod reading;
mod real_logs;
