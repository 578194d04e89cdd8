//! Tests of the library against independent ways to the same numbers, in one program.

#![allow(clippy::unwrap_used)]

mod common;
mod golden;
mod loops;
mod machines;

mod automatic_terms;
mod base_parameters;
mod builtin;
mod closure;
mod closure_allocation;
mod closure_dynamics;
mod conservation;
mod consistency;
mod consistent;
mod design;
mod dynamics;
mod estimation;
mod estimation_classes;
mod field;
mod flight;
mod identifiability;
mod intervals;
mod invariance;
mod joint_models;
mod least_norm;
mod log_source;
mod loops_catalogue;
mod loops_identifiability;
mod loops_invariance;
mod mechanism;
mod mechanism_file;
mod mechanism_file_write;
mod mjcf;
mod momentum;
mod mujoco;
mod open_chains;
mod optimize;
mod payload;
mod pga;
mod pinocchio;
mod poor_data;
mod posterior;
mod regressor;
mod rpna;
mod sampling;
mod simulation;
mod simulation_signals;
mod spatial;
mod sqp;
mod tetrahedral;
mod trajectories;
mod urdf;
mod write_mjcf;
mod write_urdf;
