//! Deviation of model or sensors, with its estimate.

use schemars::JsonSchema;
use serde::Serialize;

use crate::mechanism::Mechanism;

/// Kind of a deviation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum DeviationKind {
    /// Lag of the torques, or of the readings of a force/torque sensor, behind the motion (s).
    Lag,
    /// Lag of the torque of one joint behind the motion (s).
    JointLag,
    /// Angle between the base and its orientation in the model (rad), from a change of the direction of gravity.
    Tilt,
    /// Error of the zero position of a joint (rad or m).
    Zero,
    /// Error of a length before a joint (m).
    Length,
    /// Relative error of the torque of a joint.
    Gain,
    /// Stiffness of a spring in a joint (N m/rad or N/m), with any rest position.
    Spring,
}

/// Estimate of an error of model or sensors.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct Deviation {
    /// Kind of the deviation.
    pub kind: DeviationKind,
    /// Joint, direction of a tilt, or `ft` for a force/torque sensor; absent if it applies to all joints.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub of: Option<String>,
    /// Value, in the unit of the kind.
    pub value: f64,
    /// Standard error.
    pub std_error: f64,
    /// Share of the squared residual that the deviation explains.
    pub explains: f64,
}

/// Mechanism with a modified length.
#[derive(Debug, Clone)]
pub struct OtherLength {
    /// Joint whose placement in its parent is modified.
    pub joint: String,
    /// Change of the length (m).
    pub by: f64,
    /// Modified mechanism.
    pub mechanism: Mechanism,
}
