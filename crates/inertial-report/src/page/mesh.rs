//! Meshes of links, read from STL and OBJ files and made coarse enough for a page.

use std::collections::{HashMap, HashSet};

use inertial_app::Error;
use serde::Serialize;

/// Larger files are not pictures of a link.
pub(super) const SIZE_LIMIT: u64 = 64 << 20;

type Result<T> = std::result::Result<T, Error>;

fn at(place: &str, error: &Error) -> Error {
    Error::Input(format!("{place}: {error}"))
}

fn refused<T>(reason: impl Into<String>) -> Result<T> {
    Err(Error::Input(reason.into()))
}

/// Points and triangles.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Mesh {
    points: Vec<[f32; 3]>,
    triangles: Vec<[usize; 3]>,
}

impl Mesh {
    /// Reads a file, whose content tells its format.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        let out = match binary_count(bytes) {
            Some(count) => binary_stl(&bytes[84..84 + 50 * count]),
            None => text(std::str::from_utf8(bytes).or_else(|_| refused("is not an STL or OBJ file"))?)?,
        };
        if out.triangles.is_empty() {
            return refused("has no triangles");
        }
        if !out.points.iter().flatten().all(|x| x.is_finite()) {
            return refused("has a point that is not finite");
        }
        Ok(out)
    }

    /// The same in other units, or mirrored.
    pub fn scaled(mut self, scale: [f64; 3]) -> Self {
        self.points
            .iter_mut()
            .for_each(|p| *p = std::array::from_fn(|k| (f64::from(p[k]) * scale[k]) as f32));
        self
    }

    /// Coarser until it has at most so many triangles: points of one cell of a grid become one, their mean.
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
            // A tenth of a millimetre is finer than a page shows.
            points: sums.iter().map(|(s, n)| s.map(|x| ((x / n * 1e4).round() / 1e4) as f32)).collect(),
        }
    }
}

/// Number of triangles of a binary STL: its length says whether it is one.
fn binary_count(bytes: &[u8]) -> Option<usize> {
    let count = u32::from_le_bytes(bytes.get(80..84)?.try_into().ok()?) as usize;
    (bytes.len() >= 84 + 50 * count && bytes.len() < 84 + 50 * count + 50 && count > 0).then_some(count)
}

fn binary_stl(records: &[u8]) -> Mesh {
    let mut out = Mesh::default();
    for record in records.chunks_exact(50) {
        // A normal, three points, two bytes of anything.
        let number = |k: usize| f32::from_le_bytes(std::array::from_fn(|b| record[12 + 4 * k + b]));
        let first = out.points.len();
        out.points.extend((0..3).map(|p| std::array::from_fn(|k| number(3 * p + k))));
        out.triangles.push([first, first + 1, first + 2]);
    }
    out
}

/// STL in words, or OBJ.
fn text(text: &str) -> Result<Mesh> {
    let mut out = Mesh::default();
    let stl = text.trim_start().starts_with("solid");
    for (line, content) in text.lines().enumerate() {
        let mut words = content.split_whitespace();
        let place = || format!("line {}", line + 1);
        match words.next() {
            Some("vertex" | "v") => out.points.push(point(words).map_err(|e| at(&place(), &e))?),
            Some("f") => polygon(words, &mut out).map_err(|e| at(&place(), &e))?,
            _ => {}
        }
    }
    if stl {
        out.triangles = (0..out.points.len() / 3).map(|k| [3 * k, 3 * k + 1, 3 * k + 2]).collect();
    }
    Ok(out)
}

fn point<'w>(mut words: impl Iterator<Item = &'w str>) -> Result<[f32; 3]> {
    let mut out = [0.0; 3];
    for x in &mut out {
        *x = words
            .next()
            .and_then(|w| w.parse().ok())
            .ok_or_else(|| Error::Input("expected three numbers".into()))?;
    }
    Ok(out)
}

/// The corners of a face are numbers of points from one, or from the last backwards.
fn polygon<'w>(words: impl Iterator<Item = &'w str>, out: &mut Mesh) -> Result<()> {
    let corners: Vec<usize> = words
        .map(|word| {
            let number: i64 = word
                .split('/')
                .next()
                .and_then(|w| w.parse().ok())
                .ok_or_else(|| Error::Input("expected numbers of points".into()))?;
            let all = out.points.len().try_into().or_else(|_| refused("too many points"))?;
            match if number > 0 { number - 1 } else { all + number } {
                index if number != 0 && (0..all).contains(&index) => Ok(index as usize),
                _ => refused(format!("there is no point {number}")),
            }
        })
        .collect::<Result<_>>()?;
    if corners.len() < 3 {
        return refused("a face has three corners at least");
    }
    out.triangles.extend((1..corners.len() - 1).map(|k| [corners[0], corners[k], corners[k + 1]]));
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::fmt::Write as _;

    use super::*;

    /// A square of two triangles in three formats.
    #[test]
    fn three_formats_of_one_square() {
        let corners = [[0.0f32, 0.0, 0.0], [1.0, 0.0, 0.0], [1.0, 1.0, 0.0], [0.0, 1.0, 0.0]];
        let faces = [[0, 1, 2], [0, 2, 3]];
        let mut binary = vec![b's'; 80];
        binary.extend(2u32.to_le_bytes());
        let mut words = String::from("solid square\n");
        for face in faces {
            binary.extend([0; 12]);
            for p in face {
                binary.extend(corners[p].iter().flat_map(|x| x.to_le_bytes()));
                writeln!(words, "vertex {} {} {}", corners[p][0], corners[p][1], corners[p][2]).unwrap();
            }
            binary.extend([0; 2]);
        }
        let obj = "v 0 0 0\nv 1 0 0\nv 1 1 0\nv 0 1 0\nf 1/1 2/2 3/3 -1/4\n";
        let shapes = |mesh: &Mesh| -> Vec<[[f32; 3]; 3]> {
            mesh.triangles.iter().map(|t| t.map(|i| mesh.points[i])).collect()
        };
        let expected: Vec<[[f32; 3]; 3]> = faces.iter().map(|f| f.map(|i| corners[i])).collect();
        for bytes in [&binary[..], words.as_bytes(), obj.as_bytes()] {
            let mesh = Mesh::parse(bytes).unwrap();
            assert_eq!(shapes(&mesh), expected);
            // Points that are the same become one.
            assert_eq!(mesh.coarse(100).points.len(), 4);
        }
    }

    #[test]
    fn what_is_no_mesh_is_refused() {
        for bytes in [
            &b""[..],
            b"solid nothing",
            b"\xff\xfe",
            b"v 1 2\n",
            b"v 0 0 0\nf 1 2 3\n",
            b"v 0 0 0\nv 1 0 0\nv nan 1 0\nf 1 2 3\n",
            b"f 0 0 0",
        ] {
            assert!(Mesh::parse(bytes).is_err(), "{bytes:?}");
        }
        // A binary file that promises more than it has.
        let mut short = vec![0; 84];
        short[80] = 9;
        assert!(Mesh::parse(&short).is_err());
    }

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
            // Means of points of a cell lie inside the ball, by a cell at most.
            assert!((0.7..=1.001).contains(&radius), "{radius}");
        }
    }
}
