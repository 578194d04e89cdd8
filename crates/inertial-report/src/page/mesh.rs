//! Meshes of links, simplified for a page.

use std::collections::{HashMap, HashSet};

use inertial_app::Result;
use serde::Serialize;

/// Size limit (bytes) of mesh files.
pub(super) const SIZE_LIMIT: u64 = 64 << 20;

/// Mesh of points and triangles.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Mesh {
    points: Vec<[f32; 3]>,
    triangles: Vec<[usize; 3]>,
}

impl Mesh {
    /// Reads a file; the format is recognized by its content.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        let mesh = inertial::mesh::Mesh::parse(bytes)?;
        let points = mesh.points.iter().map(|p| std::array::from_fn(|k| p[k] as f32)).collect();
        Ok(Self { points, triangles: mesh.triangles })
    }

    /// Scales the points, for other units or a mirrored mesh.
    pub fn scaled(mut self, scale: [f64; 3]) -> Self {
        self.points
            .iter_mut()
            .for_each(|p| *p = std::array::from_fn(|k| (f64::from(p[k]) * scale[k]) as f32));
        self
    }

    /// Simplifies the mesh until it has at most `most` triangles: the points of each cell of a grid are merged into their mean.
    pub fn coarse(&self, most: usize) -> Self {
        let mut cells = 256.0;
        let mut out = self.clustered(cells);
        while out.triangles.len() > most && cells > 2.0 {
            cells *= 0.8;
            out = self.clustered(cells);
        }
        out.triangles.truncate(most);
        out
    }

    fn clustered(&self, cells: f32) -> Self {
        let bound =
            |k: usize, pick: fn(f32, f32) -> f32, start| self.points.iter().map(|p| p[k]).fold(start, pick);
        let low: [f32; 3] = std::array::from_fn(|k| bound(k, f32::min, f32::INFINITY));
        let span = (0..3).map(|k| bound(k, f32::max, f32::NEG_INFINITY) - low[k]).fold(0.0, f32::max);
        let size = if span > 0.0 { span / cells } else { 1.0 };
        let mut numbers: HashMap<[i32; 3], usize> = HashMap::new();
        let mut sums: Vec<([f64; 3], f64)> = Vec::new();
        let own: Vec<usize> = self
            .points
            .iter()
            .map(|p| {
                let cell = std::array::from_fn(|k| ((p[k] - low[k]) / size) as i32);
                let number = *numbers.entry(cell).or_insert_with(|| {
                    sums.push(([0.0; 3], 0.0));
                    sums.len() - 1
                });
                let (sum, count) = &mut sums[number];
                sum.iter_mut().zip(p).for_each(|(s, x)| *s += f64::from(*x));
                *count += 1.0;
                number
            })
            .collect();
        let mut seen = HashSet::new();
        let kept = self.triangles.iter().map(|t| t.map(|i| own[i])).filter(|t| {
            let mut sorted = *t;
            sorted.sort_unstable();
            sorted[0] < sorted[1] && sorted[1] < sorted[2] && seen.insert(sorted)
        });
        Self {
            triangles: kept.collect(),
            // A tenth of a millimetre is below the resolution of a page.
            points: sums.iter().map(|(s, n)| s.map(|x| ((x / n * 1e4).round() / 1e4) as f32)).collect(),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::fmt::Write as _;

    use super::*;

    #[test]
    fn a_fine_ball_becomes_a_coarse_one_of_the_same_size() {
        let (rings, sectors) = (100, 200);
        let mut text = String::new();
        for i in 0..=rings {
            for j in 0..sectors {
                let (a, b) = (
                    std::f64::consts::PI * f64::from(i) / f64::from(rings),
                    std::f64::consts::TAU * f64::from(j) / f64::from(sectors),
                );
                writeln!(text, "v {} {} {}", a.sin() * b.cos(), a.sin() * b.sin(), a.cos()).unwrap();
            }
        }
        for i in 0..rings {
            for j in 0..sectors {
                let at = |i: i32, j: i32| 1 + i * sectors + j % sectors;
                writeln!(text, "f {} {} {} {}", at(i, j), at(i, j + 1), at(i + 1, j + 1), at(i + 1, j))
                    .unwrap();
            }
        }
        let mesh = Mesh::parse(text.as_bytes()).unwrap().coarse(500);
        assert!((50..=500).contains(&mesh.triangles.len()), "{}", mesh.triangles.len());
        for p in &mesh.points {
            let radius = p.iter().map(|x| x * x).sum::<f32>().sqrt();
            // Means of the points of a cell lie inside the ball, by at most the size of a cell.
            assert!((0.7..=1.001).contains(&radius), "{radius}");
        }
    }
}
