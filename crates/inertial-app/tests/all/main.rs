//! Jobs without a program around them, and everything that reads a user's bytes on damaged ones.

#![allow(clippy::unwrap_used)]

mod damaged_inputs;
mod jobs;
#[path = "../../../../fuzz/mutation.rs"]
mod mutation;
mod studies;
#[path = "../../../../fuzz/targets.rs"]
mod targets;
