//! Tests of jobs called as a library, and of everything that reads user data with damaged inputs.

#![allow(clippy::unwrap_used)]

mod damaged_inputs;
mod damaged_parsers;
mod jobs;
#[path = "../../../../fuzz/mutation.rs"]
mod mutation;
#[path = "../../../../fuzz/parsers.rs"]
mod parsers;
mod studies;
#[path = "../../../../fuzz/targets.rs"]
mod targets;
