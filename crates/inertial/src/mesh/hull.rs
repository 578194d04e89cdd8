//! Convex hulls by quickhull. Exact predicates (the crate `robust`) keep the result correct if many points lie in one
//! plane, as is common for machine parts. The available hull crates either use tolerances or depend on a whole
//! collision library.

use std::collections::HashMap;

use nalgebra::Vector3;
use robust::{Coord3D, orient3d};

use crate::{Error, Place, Result};

/// Maximum number of predicate evaluations: a hundred for each point of the largest files.
const MOST: usize = 200_000_000;

struct Face {
    corners: [usize; 3],
    /// Face across the edge from each corner to the next.
    neighbours: [usize; 3],
    /// Points strictly above the face that are assigned to no other face.
    above: Vec<usize>,
    alive: bool,
}

struct Hull<'p> {
    points: &'p [Vector3<f64>],
    faces: Vec<Face>,
    predicates: usize,
}

/// Computes the triangles of the convex hull, counterclockwise from outside; `None` if all points lie in a plane.
pub(super) fn triangles(points: &[Vector3<f64>]) -> Result<Option<Vec<[usize; 3]>>> {
    let mut hull = Hull { points, faces: Vec::new(), predicates: 0 };
    let Some(corners) = hull.simplex() else { return Ok(None) };
    hull.start(corners);
    let mut open: Vec<usize> = (0..4).collect();
    let mut rest: Vec<usize> = (0..points.len()).filter(|i| !corners.contains(i)).collect();
    hull.assign(&mut rest, &open);
    while let Some(face) = open.pop() {
        if !hull.faces[face].alive || hull.faces[face].above.is_empty() {
            continue;
        }
        if hull.predicates > MOST {
            return Err(Error::model(Place::default(), "its convex hull takes too long"));
        }
        // The predicates are not exact for numbers near the underflow limit, so the horizon may be open.
        let Some(new) = hull.grow(face) else { return Ok(None) };
        open.extend(new);
    }
    Ok(Some(hull.faces.iter().filter(|f| f.alive).map(|f| f.corners).collect()))
}

impl Hull<'_> {
    /// Computes six times the volume between a triangle and a point; positive above the triangle.
    fn height(&mut self, [a, b, c]: [usize; 3], p: usize) -> f64 {
        self.predicates += 1;
        let at = |i: usize| {
            let p = &self.points[i];
            Coord3D { x: p.x, y: p.y, z: p.z }
        };
        -orient3d(at(a), at(b), at(c), at(p))
    }

    /// Finds four points that are not in a plane, the last below the first three.
    fn simplex(&mut self) -> Option<[usize; 4]> {
        let points = self.points;
        let farthest = |measure: &dyn Fn(&Vector3<f64>) -> f64| {
            let all = points.iter().enumerate().map(|(i, p)| (i, measure(p)));
            all.max_by(|a, b| a.1.total_cmp(&b.1)).filter(|(_, most)| *most > 0.0).map(|(i, _)| i)
        };
        let first = points.first()?;
        let a = farthest(&|p| (p - first).norm_squared())?;
        let b = farthest(&|p| (p - points[a]).norm_squared())?;
        let line = points[b] - points[a];
        let c = farthest(&|p| line.cross(&(p - points[a])).norm_squared())?;
        let mut best = (0.0, 0);
        for p in 0..points.len() {
            let height = self.height([a, b, c], p);
            if height.abs() > f64::abs(best.0) {
                best = (height, p);
            }
        }
        match best {
            (0.0, _) => None,
            (height, d) if height > 0.0 => Some([a, c, b, d]),
            (_, d) => Some([a, b, c, d]),
        }
    }

    fn start(&mut self, [a, b, c, d]: [usize; 4]) {
        let faces = [[a, b, c], [b, a, d], [c, b, d], [a, c, d]];
        let across = |u: usize, w: usize| {
            faces.iter().position(|f| (0..3).any(|k| f[k] == w && f[(k + 1) % 3] == u)).unwrap_or(0)
        };
        self.faces = faces
            .iter()
            .map(|f| Face {
                corners: *f,
                neighbours: std::array::from_fn(|k| across(f[k], f[(k + 1) % 3])),
                above: Vec::new(),
                alive: true,
            })
            .collect();
    }

    /// Assigns points to the first face that they are above; the others are inside.
    fn assign(&mut self, points: &mut Vec<usize>, faces: &[usize]) {
        for p in points.drain(..) {
            for &face in faces {
                if self.height(self.faces[face].corners, p) > 0.0 {
                    self.faces[face].above.push(p);
                    break;
                }
            }
        }
    }

    /// Adds the farthest point above a face: removes the faces visible from it and adds a cone from the horizon to the
    /// point.
    fn grow(&mut self, face: usize) -> Option<Vec<usize>> {
        let corners = self.faces[face].corners;
        let mut best = (f64::NEG_INFINITY, 0);
        for k in 0..self.faces[face].above.len() {
            let p = self.faces[face].above[k];
            let height = self.height(corners, p);
            if height > best.0 {
                best = (height, p);
            }
        }
        let tip = best.1;
        // Faces coplanar with the tip are removed too, so that no new face has zero area.
        let (mut removed, mut horizon) = (vec![face], Vec::new());
        self.faces[face].alive = false;
        let mut next = 0;
        while next < removed.len() {
            let own = removed[next];
            next += 1;
            let Face { corners, neighbours, .. } = self.faces[own];
            for k in 0..3 {
                let other = neighbours[k];
                if !self.faces[other].alive {
                    continue;
                }
                if self.height(self.faces[other].corners, tip) >= 0.0 {
                    self.faces[other].alive = false;
                    removed.push(other);
                } else {
                    horizon.push((corners[k], corners[(k + 1) % 3], other));
                }
            }
        }
        let first = self.faces.len();
        let starts: HashMap<usize, usize> =
            horizon.iter().enumerate().map(|(k, (u, ..))| (*u, first + k)).collect();
        let ends: HashMap<usize, usize> =
            horizon.iter().enumerate().map(|(k, (_, w, _))| (*w, first + k)).collect();
        for (k, &(u, w, other)) in horizon.iter().enumerate() {
            let neighbours = [other, *starts.get(&w)?, *ends.get(&u)?];
            self.faces.push(Face { corners: [u, w, tip], neighbours, above: Vec::new(), alive: true });
            let beyond = &mut self.faces[other];
            let edge = (0..3).find(|&e| beyond.corners[e] == w && beyond.corners[(e + 1) % 3] == u)?;
            beyond.neighbours[edge] = first + k;
        }
        let mut rest: Vec<usize> = removed
            .iter()
            .flat_map(|&f| std::mem::take(&mut self.faces[f].above))
            .filter(|&p| p != tip)
            .collect();
        let new: Vec<usize> = (first..self.faces.len()).collect();
        self.assign(&mut rest, &new);
        Some(new)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn random(state: &mut u64) -> f64 {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (*state >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Checks that every edge has two faces, that Euler's formula holds, and that no point is above a face.
    fn check(points: &[Vector3<f64>]) -> Vec<[usize; 3]> {
        let found = triangles(points).unwrap().unwrap();
        let mut edges: HashMap<(usize, usize), usize> = HashMap::new();
        for [a, b, c] in &found {
            for edge in [(*a, *b), (*b, *c), (*c, *a)] {
                *edges.entry(edge).or_default() += 1;
            }
        }
        assert!(edges.iter().all(|((u, w), count)| *count == 1 && edges.contains_key(&(*w, *u))));
        let corners: std::collections::HashSet<usize> = found.iter().flatten().copied().collect();
        assert_eq!(corners.len() + found.len(), edges.len() / 2 + 2);
        let mut hull = Hull { points, faces: Vec::new(), predicates: 0 };
        for face in &found {
            assert!((0..points.len()).all(|p| hull.height(*face, p) <= 0.0));
        }
        found
    }

    #[test]
    fn hulls_of_grids_and_clouds_are_closed() {
        // A grid: hundreds of points in each plane, edge and corner.
        let grid: Vec<_> = (0..343)
            .map(|k| Vector3::new(f64::from(k % 7), f64::from(k / 7 % 7), f64::from(k / 49)))
            .collect();
        let volume = |points: &[Vector3<f64>], faces: &[[usize; 3]]| -> f64 {
            faces.iter().map(|[a, b, c]| points[*a].dot(&points[*b].cross(&points[*c])) / 6.0).sum()
        };
        assert!((volume(&grid, &check(&grid)) - 216.0).abs() < 1e-9);
        let mut state = 3;
        for round in 0..20 {
            let cloud: Vec<_> = (0..300)
                .map(|_| {
                    let p = Vector3::from_fn(|_, _| random(&mut state) - 0.5);
                    // A ball, a sphere, and points rounded to few values.
                    match round % 3 {
                        0 => p,
                        1 => p.normalize(),
                        _ => p.map(|x| (x * 8.0).round()),
                    }
                })
                .collect();
            check(&cloud);
        }
    }

    #[test]
    fn points_in_a_plane_have_no_hull() {
        let flat: Vec<_> = (0..50).map(|k| Vector3::new(f64::from(k % 7), f64::from(k / 7), 0.0)).collect();
        for points in [&flat[..], &flat[..7], &flat[..1], &[]] {
            assert_eq!(triangles(points).unwrap(), None);
        }
        // Products of these numbers underflow: the function must return, with or without a hull.
        let mut state = 5;
        let tiny: Vec<_> = (0..100).map(|_| Vector3::from_fn(|_, _| random(&mut state) * 1e-200)).collect();
        let _ = triangles(&tiny);
    }
}
