//! Coordinates of a body on the manifold of consistent parameters (paper 001): mass, centre of mass, principal axes and second moments.

use nalgebra::{Matrix3, Vector3};
use schemars::JsonSchema;
use serde::Serialize;

use super::central_second_moments;
use crate::Result;
use crate::linalg::symmetric_eigen;
use crate::spatial::Inertia;

/// Coordinates `θ = (m, c, Q, L)` of paper 001: the inertia about the centre of mass is `Q (tr(L) 1 − diag(L)) Qᵀ`. A body is
/// physically consistent if and only if `m ≥ 0` and `L ≥ 0`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct ManifoldCoordinates {
    /// Mass (kg).
    #[serde(rename = "m")]
    pub mass: f64,
    /// Centre of mass (m).
    #[serde(rename = "c")]
    pub com: [f64; 3],
    /// Rotation matrix, by rows, whose columns are the principal axes; the largest entry of the first two columns is positive.
    #[serde(rename = "Q")]
    pub axes: [[f64; 3]; 3],
    /// Second moments of mass about the centre of mass along these axes (kg m²), in descending order.
    #[serde(rename = "L")]
    pub second_moments: [f64; 3],
}

impl ManifoldCoordinates {
    /// Computes the coordinates of a body; returns `None` without a mass. A second moment is negative if the body is inconsistent.
    ///
    /// ```
    /// use inertial::consistency::ManifoldCoordinates;
    /// use inertial::spatial::Inertia;
    /// use nalgebra::{Matrix3, vector};
    ///
    /// let rod = Inertia::from_com(2.0, vector![0.0, 0.0, 0.5], Matrix3::from_diagonal(&vector![0.3, 0.3, 0.0]));
    /// let found = ManifoldCoordinates::new(&rod)?.unwrap();
    /// assert!((found.second_moments[0] - 0.3).abs() < 1e-15 && found.axes[2][0].abs() == 1.0);
    /// assert!((found.inertia().parameters() - rod.parameters()).amax() < 1e-14);
    /// # Ok::<(), inertial::Error>(())
    /// ```
    pub fn new(inertia: &Inertia<f64>) -> Result<Option<Self>> {
        let Some(com) = inertia.com() else { return Ok(None) };
        let eigen = symmetric_eigen(&central_second_moments(inertia))?;
        // Eigenvalues come in ascending order.
        let column = |k: usize| -> Vector3<f64> {
            let axis = eigen.vectors.column(2 - k).into_owned();
            if axis[axis.iamax()] < 0.0 { -axis } else { axis }
        };
        let (first, second) = (column(0), column(1));
        let axes = Matrix3::from_columns(&[first, second, first.cross(&second)]);
        Ok(Some(Self {
            mass: inertia.mass,
            com: com.into(),
            axes: std::array::from_fn(|i| std::array::from_fn(|j| axes[(i, j)])),
            second_moments: std::array::from_fn(|k| eigen.values[2 - k]),
        }))
    }

    /// Returns the inertia with these coordinates.
    pub fn inertia(&self) -> Inertia<f64> {
        let axes = Matrix3::from_fn(|i, j| self.axes[i][j]);
        let moments = Vector3::from(self.second_moments);
        let central = Matrix3::from_diagonal_element(moments.sum()) - Matrix3::from_diagonal(&moments);
        Inertia::from_com(self.mass, self.com.into(), axes * central * axes.transpose())
    }
}
