//! Inertias of meshes, computed as in MuJoCo.

use std::collections::{HashMap, HashSet};

use nalgebra::{Matrix3, Vector3};

use super::Mesh;
use crate::spatial::Inertia;
use crate::{Error, Place, Result};

/// Smallest volume (m³) or area (m²) of a mesh with an inertia, as in MuJoCo.
const SMALLEST: f64 = 1e-15;

/// Distribution of mass in a mesh.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MassDistribution {
    /// Mass fills the convex hull.
    Convex,
    /// Mass fills the inside of the surface, which must be oriented.
    Exact,
    /// Mass fills the cones between the triangles and a point inside, each counted as positive whatever its
    /// orientation. This is the inside of a convex mesh, and more than the inside of other meshes.
    Legacy,
    /// Mass lies on the surface.
    Shell,
}

impl Mesh {
    /// Computes the inertia for a density of one (kg/m³, or kg/m² for a shell) in the frame of the mesh: its mass is
    /// the volume or the area.
    pub fn inertia(&self, filling: MassDistribution) -> Result<Inertia<f64>> {
        let hull = match filling {
            MassDistribution::Convex => Some(
                self.hull()?.ok_or_else(|| refused("its points lie in a plane: it has no convex hull"))?,
            ),
            _ => None,
        };
        let mesh = hull.as_ref().unwrap_or(self);
        if filling == MassDistribution::Exact {
            mesh.check_orientation()?;
        }
        // The centroid of the surface is the first apex of the cones.
        let (mut area, mut sum) = (0.0, Vector3::zeros());
        for [a, b, c] in mesh.corners() {
            let own = (b - a).cross(&(c - a)).norm() / 2.0;
            area += own;
            sum += (a + b + c) * (own / 3.0);
        }
        if !(SMALLEST..).contains(&area) {
            return Err(refused(format!("its surface has {area} m²: it has no inertia")));
        }
        let mean = sum / area;
        if filling == MassDistribution::Shell {
            let weight = |[a, b, c]: [Vector3<f64>; 3]| (b - a).cross(&(c - a)).norm() / 2.0;
            // Triangles have three corners and no apex.
            return Ok(mesh.moments(&mean, 12.0, weight));
        }
        let weight = |[a, b, c]: [Vector3<f64>; 3]| {
            let volume = a.dot(&b.cross(&c)) / 6.0;
            if filling == MassDistribution::Legacy { volume.abs() } else { volume }
        };
        let (mut volume, mut sum) = (0.0, Vector3::zeros());
        for corners in mesh.corners() {
            let [a, b, c] = corners.map(|p| p - mean);
            let own = weight([a, b, c]);
            volume += own;
            sum += (a + b + c) * (own / 4.0);
        }
        check_volume(volume)?;
        // The cones from the centre of mass differ, and so does the sum of those that overlap.
        let out = mesh.moments(&(mean + sum / volume), 20.0, weight);
        check_volume(out.mass)?;
        Ok(out)
    }

    /// Sums the moments of the triangles about a centre; the weight of each is spread uniformly over the triangle (or
    /// over its cone to the centre).
    fn moments(
        &self,
        centre: &Vector3<f64>,
        parts: f64,
        weight: impl Fn([Vector3<f64>; 3]) -> f64,
    ) -> Inertia<f64> {
        let (mut mass, mut second) = (0.0, Matrix3::zeros());
        for corners in self.corners() {
            let corners = corners.map(|p| p - centre);
            let own = weight(corners);
            let sum = corners[0] + corners[1] + corners[2];
            mass += own;
            for p in corners.iter().chain([&sum]) {
                second += p * p.transpose() * (own / parts);
            }
        }
        Inertia::from_com(mass, *centre, Matrix3::from_diagonal_element(second.trace()) - second)
    }

    /// Rejects surfaces in which two neighbouring triangles have opposite orientations.
    fn check_orientation(&self) -> Result<()> {
        let mut numbers: HashMap<[u64; 3], usize> = HashMap::new();
        // Minus zero is mapped to zero.
        let key = |p: &Vector3<f64>| [p.x + 0.0, p.y + 0.0, p.z + 0.0].map(f64::to_bits);
        let own: Vec<usize> = self
            .points
            .iter()
            .map(|p| {
                let next = numbers.len();
                *numbers.entry(key(p)).or_insert(next)
            })
            .collect();
        let mut edges = HashSet::new();
        for triangle in &self.triangles {
            let [a, b, c] = triangle.map(|i| own[i]);
            for edge in [(a, b), (b, c), (c, a)] {
                if edge.0 != edge.1 && !edges.insert(edge) {
                    return Err(refused(
                        "its triangles have inconsistent orientations: inertia=\"exact\" needs all of them \
                         oriented outwards",
                    ));
                }
            }
        }
        Ok(())
    }
}

fn check_volume(volume: f64) -> Result<()> {
    if volume < 0.0 {
        return Err(refused("its volume is negative: the triangles are oriented inwards"));
    }
    if !(SMALLEST..).contains(&volume) {
        return Err(refused(format!("its volume is {volume} m³: inertia=\"shell\" suits thin meshes")));
    }
    Ok(())
}

fn refused(reason: impl Into<String>) -> Error {
    Error::model(Place::default(), reason)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use nalgebra::vector;

    use super::*;

    /// Returns a box between two corners, with two triangles per side.
    fn brick(lower: Vector3<f64>, upper: Vector3<f64>) -> Mesh {
        let points = (0..8)
            .map(|k| Vector3::from_fn(|i, _| if k >> i & 1 == 1 { upper[i] } else { lower[i] }))
            .collect();
        let sides = [[0, 2, 3, 1], [4, 5, 7, 6], [0, 1, 5, 4], [2, 6, 7, 3], [0, 4, 6, 2], [1, 3, 7, 5]];
        let triangles = sides.iter().flat_map(|[a, b, c, d]| [[*a, *b, *c], [*a, *c, *d]]).collect();
        Mesh { points, triangles }
    }

    #[test]
    fn boxes_have_their_inertia() {
        let (lower, upper) = (vector![0.1, -0.2, 0.3], vector![0.5, 0.4, 1.3]);
        let mesh = brick(lower, upper);
        let size = upper - lower;
        let mass = size.product();
        let square = size.component_mul(&size) * (mass / 12.0);
        let central = Matrix3::from_diagonal(&(Vector3::repeat(square.sum()) - square));
        let expected = Inertia::from_com(mass, (lower + upper) / 2.0, central).parameters();
        for filling in [MassDistribution::Convex, MassDistribution::Exact, MassDistribution::Legacy] {
            let found = mesh.inertia(filling).unwrap().parameters();
            assert!((found - expected).amax() < 1e-14, "{filling:?}: {found}");
        }
        // Three pairs of rectangles.
        let area = 2.0 * (size.x * size.y + size.y * size.z + size.x * size.z);
        let shell = mesh.inertia(MassDistribution::Shell).unwrap();
        assert!((shell.mass - area).abs() < 1e-14);
        let second = |k: usize| {
            let face = size.product() / size[k];
            size[k] * size[k] / 4.0 * (2.0 * face) + size[k] * size[k] / 12.0 * (area - 2.0 * face)
        };
        let expected = Matrix3::from_diagonal(&vector![
            second(1) + second(2),
            second(0) + second(2),
            second(0) + second(1)
        ]);
        assert!((shell.about_com() - expected).amax() < 1e-13, "{}", shell.about_com());
    }

    #[test]
    fn surfaces_without_an_inside_are_refused() {
        let whole = brick(Vector3::zeros(), Vector3::repeat(1.0));
        let inwards = Mesh {
            triangles: whole.triangles.iter().map(|[a, b, c]| [*a, *c, *b]).collect(),
            ..whole.clone()
        };
        assert!(inwards.inertia(MassDistribution::Exact).unwrap_err().to_string().contains("inwards"));
        assert!((inwards.inertia(MassDistribution::Legacy).unwrap().mass - 1.0).abs() < 1e-14);
        let mut mixed = whole.clone();
        mixed.triangles[3].swap(0, 1);
        assert!(mixed.inertia(MassDistribution::Exact).unwrap_err().to_string().contains("orientation"));
        let flat = brick(Vector3::zeros(), vector![1.0, 1.0, 0.0]);
        for filling in [MassDistribution::Convex, MassDistribution::Legacy, MassDistribution::Exact] {
            assert!(flat.inertia(filling).is_err(), "{filling:?}");
        }
        assert!((flat.inertia(MassDistribution::Shell).unwrap().mass - 2.0).abs() < 1e-14);
        let point = brick(Vector3::zeros(), Vector3::zeros());
        assert!(point.inertia(MassDistribution::Shell).is_err());
    }
}
