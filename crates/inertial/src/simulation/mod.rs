//! Simulation of motion and sensors.
//!
//! A [`PrescribedMotion`] prescribes motion or forces over time. Based on it, sample by sample in constant memory, [`Prescribed`]
//! computes the forces of a given motion, [`Forward`] the motion for given forces, and [`FreeFlyer`] the motion of a floating base
//! from the conservation of momentum. [`Sensors`] add bias, noise and quantization.

mod curve;
mod extrapolation;
mod flight_samples;
mod force_sensor;
mod forward;
mod free_flying;
mod joint_forces;
mod prescribed;
mod prescribed_motion;
mod rates;
mod sensors;

pub use curve::Curve;
pub use extrapolation::Extrapolation;
pub use flight_samples::{FlightSamples, PredictionErrors, prediction_errors};
pub use force_sensor::ForceSensor;
pub use forward::{Balance, Forward};
pub use free_flying::{FreeFlyer, PoseRule};
pub use joint_forces::{JointForces, Standstill};
pub use prescribed::{Prescribed, SensorReading};
pub use prescribed_motion::PrescribedMotion;
pub use sensors::{Sensors, Settings};
