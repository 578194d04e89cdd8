//! Experiments of the papers, repeated on simulated robots with known parameters.

pub mod leg_on_bench;
pub mod rotation_formulations;
pub mod sampled_rank;
pub mod slow_motion;
pub mod space_robot;
