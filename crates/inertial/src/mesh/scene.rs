//! Scenes: meshes placed by nodes, joined to one mesh.

use std::fmt::Display;

use nalgebra::{Matrix4, Point3};

use super::Mesh;
use super::reading::refused;
use crate::Result;

/// Maximum size of the mesh data of a scene (bytes); each mesh counts as often as it is placed.
const MOST_BYTES: usize = 300_000_000;
/// Maximum number of nodes of a scene; each node counts as often as it is placed.
const MOST_NODES: usize = 100_000;
/// Maximum number of levels of nodes.
const DEEPEST: usize = 64;

/// Scene that is traversed from its roots.
#[derive(Default)]
pub(super) struct Scene {
    mesh: Mesh,
    nodes: usize,
    bytes: usize,
}

impl Scene {
    /// Counts a node at a level; returns an error beyond the limits, which cyclic references always exceed.
    pub fn enter(&mut self, level: usize) -> Result<()> {
        self.nodes += 1;
        if level > DEEPEST {
            return refused(format!("has more than {DEEPEST} levels of nodes"));
        }
        if self.nodes > MOST_NODES {
            return refused(format!("places more than {MOST_NODES} nodes"));
        }
        Ok(())
    }

    /// Counts bytes that are read for a mesh.
    pub fn read(&mut self, bytes: usize) -> Result<()> {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes > MOST_BYTES {
            return refused(format!("places meshes of more than {} MB", MOST_BYTES / 1_000_000));
        }
        Ok(())
    }

    /// Adds a mesh with the transformation `place`.
    pub fn add(&mut self, mesh: &Mesh, place: &Matrix4<f64>) {
        let first = self.mesh.points.len();
        self.mesh.points.extend(mesh.points.iter().map(|p| place.transform_point(&Point3::from(*p)).coords));
        let is_mirrored = place.fixed_view::<3, 3>(0, 0).determinant() < 0.0;
        self.mesh.triangles.extend(mesh.triangles.iter().map(|t| {
            let [a, b, c] = t.map(|corner| first + corner);
            if is_mirrored { [a, c, b] } else { [a, b, c] }
        }));
    }

    /// Returns all meshes as one.
    pub fn mesh(self) -> Mesh {
        self.mesh
    }
}

/// Returns the triangles of a strip of `count` corners, as corner indices.
pub(super) fn strip(count: usize) -> impl Iterator<Item = [usize; 3]> {
    (2..count).map(|k| if k % 2 == 0 { [k - 2, k - 1, k] } else { [k - 1, k - 2, k] })
}

/// Returns the triangles of a convex polygon or fan whose first corner is `first`.
pub(super) fn fan(first: usize, count: usize) -> impl Iterator<Item = [usize; 3]> {
    (2..count).map(move |k| [first, first + k - 1, first + k])
}

/// Maps triangles of indices into `corners` to triangles of points; returns an error if a point is missing.
pub(super) fn indexed(
    triangles: impl Iterator<Item = [usize; 3]>,
    corners: &[usize],
    points: usize,
    name: impl Display,
) -> Result<Vec<[usize; 3]>> {
    if let Some(corner) = corners.iter().find(|&&corner| corner >= points) {
        return refused(format!("{name} has a triangle with the point {corner} of {points}"));
    }
    Ok(triangles.map(|t| t.map(|k| corners[k])).collect())
}
