//! Identification of a payload from joint torques or with a force/torque sensor.

pub(crate) mod force_sensor;
pub(crate) mod identify;
pub(crate) mod imu_noise;
pub(crate) mod link;
mod model_error;
pub(crate) mod problem;
pub(crate) mod sensor_lag;
pub(crate) mod unloaded;
