//! Triangle meshes: readers of STL, OBJ, COLLADA, glTF and MuJoCo's MSH, convex hulls, and inertias of solids and
//! shells.

mod collada;
mod filling;
mod gltf;
mod hull;
mod parse;
mod reading;
mod scene;

pub use filling::MassDistribution;

use nalgebra::Vector3;

use crate::consistency::Extent;

/// Triangle mesh: points and the triangles between them, counterclockwise as seen from outside.
///
/// ```
/// use inertial::mesh::{MassDistribution, Mesh};
/// let tetrahedron = b"v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n";
/// let inertia = Mesh::parse(tetrahedron)?.inertia(MassDistribution::Exact)?;
/// assert!((inertia.mass - 1.0 / 6.0).abs() < 1e-15);
/// # Ok::<(), inertial::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Mesh {
    /// Positions of the points.
    pub points: Vec<Vector3<f64>>,
    /// Point indices of the corners of each triangle.
    pub triangles: Vec<[usize; 3]>,
}

impl Mesh {
    /// Returns the axis-aligned bounding box of all points; `None` without points.
    pub fn extent(&self) -> Option<Extent> {
        let boxes = self.points.iter().map(|p| Extent { lower: *p, upper: *p });
        boxes.reduce(|sum, next| sum.join(&next))
    }

    /// Returns the convex hull of the points; `None` if they lie in a plane.
    pub fn hull(&self) -> crate::Result<Option<Self>> {
        let triangles = hull::triangles(&self.points)?;
        Ok(triangles.map(|triangles| Self { points: self.points.clone(), triangles }))
    }

    /// Returns the corners of each triangle.
    fn corners(&self) -> impl Iterator<Item = [Vector3<f64>; 3]> + '_ {
        self.triangles.iter().map(|t| t.map(|i| self.points[i]))
    }
}
