//! Frames in the form drawn by the page.

use inertial::spatial::Pose;
use nalgebra::Matrix3;
use serde::Serialize;

/// Rotation matrix by rows, and position.
#[derive(Debug, Serialize)]
pub(super) struct Frame {
    #[serde(rename = "R")]
    rotation: [f64; 9],
    p: [f64; 3],
}

pub(super) fn frame(pose: &Pose<f64>) -> Frame {
    Frame { rotation: rows(&pose.rotation), p: pose.translation.into() }
}

/// Returns the entries of a matrix row by row.
pub(super) fn rows(matrix: &Matrix3<f64>) -> [f64; 9] {
    std::array::from_fn(|k| matrix[(k / 3, k % 3)])
}
