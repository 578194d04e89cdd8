//! Reader of mesh files.

use nalgebra::Vector3;

use super::reading::{refused, triple};
use super::{Mesh, collada, gltf};
use crate::{Error, Place, Result};

/// Largest coordinate accepted; larger ones indicate a damaged file, and their products would leave the range of `f64`.
const LARGEST: f64 = 1e30;

impl Mesh {
    /// Reads a file in one of the formats STL (binary or text), OBJ, MSH, COLLADA or binary glTF, detected from the
    /// content.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        let out = if bytes.starts_with(gltf::MAGIC) {
            gltf::parse(bytes)?
        } else if let Some(count) = binary_count(bytes) {
            binary_stl(&bytes[84..84 + 50 * count])
        } else if let Some(sizes) = msh_sizes(bytes) {
            msh(bytes, sizes)
        } else {
            let text = std::str::from_utf8(bytes)
                .or_else(|_| refused("is not an STL, OBJ, MSH, COLLADA or glTF file"))?;
            let text = text.trim_start_matches('\u{feff}');
            if text.trim_start().starts_with('<') { collada::parse(text)? } else { text_mesh(text)? }
        };
        out.checked()
    }

    /// Rejects meshes without triangles, triangles without points, and points that are not finite.
    pub(crate) fn checked(self) -> Result<Self> {
        if self.triangles.is_empty() {
            return refused("has no triangles");
        }
        if let Some(corner) = self.triangles.iter().flatten().find(|&&i| i >= self.points.len()) {
            return refused(format!("has a triangle with the point {corner} of {}", self.points.len()));
        }
        if !self.points.iter().flatten().all(|x| x.abs() <= LARGEST) {
            return refused(format!("has a point that is not finite or beyond {LARGEST:e}"));
        }
        Ok(self)
    }
}

/// Returns the number of triangles of a binary STL, which is detected by its length.
fn binary_count(bytes: &[u8]) -> Option<usize> {
    let count = u32::from_le_bytes(bytes.get(80..84)?.try_into().ok()?) as usize;
    (bytes.len() >= 84 + 50 * count && bytes.len() < 84 + 50 * count + 50 && count > 0).then_some(count)
}

fn binary_stl(records: &[u8]) -> Mesh {
    let mut out = Mesh::default();
    for record in records.chunks_exact(50) {
        // Each record has a normal, three points and two arbitrary bytes.
        let first = out.points.len();
        out.points.extend((1..4).map(|p| triple(record, 3 * p)));
        out.triangles.push([first, first + 1, first + 2]);
    }
    out
}

/// Returns the numbers of points, normals, texture coordinates and faces of an MSH file, which is detected by its
/// length.
fn msh_sizes(bytes: &[u8]) -> Option<[usize; 4]> {
    let mut sizes = [0; 4];
    for (k, size) in sizes.iter_mut().enumerate() {
        let word = i32::from_le_bytes(bytes.get(4 * k..4 * k + 4)?.try_into().ok()?);
        *size = usize::try_from(word).ok()?;
    }
    let [points, normals, textures, faces] = sizes.map(|size| size as u64);
    let length = 16 + 12 * points + 12 * normals + 8 * textures + 12 * faces;
    (points > 0 && bytes.len() as u64 == length).then_some(sizes)
}

fn msh(bytes: &[u8], [points, normals, textures, faces]: [usize; 4]) -> Mesh {
    let (numbers, corners) = bytes[16..].split_at(12 * points + 12 * normals + 8 * textures);
    let corner = |k: usize| u32::from_le_bytes(std::array::from_fn(|b| corners[4 * k + b])) as usize;
    Mesh {
        points: (0..points).map(|p| triple(numbers, 3 * p)).collect(),
        triangles: (0..faces).map(|f| std::array::from_fn(|c| corner(3 * f + c))).collect(),
    }
}

/// Reads a text STL or an OBJ.
fn text_mesh(text: &str) -> Result<Mesh> {
    let mut out = Mesh::default();
    let stl = text.trim_start().starts_with("solid");
    for (line, content) in text.lines().enumerate() {
        let mut words = content.split_whitespace();
        let here = |reason: String| Error::syntax(Place::default(), format!("line {}: {reason}", line + 1));
        match words.next() {
            Some("vertex" | "v") => out.points.push(point(words).map_err(here)?),
            Some("f") => polygon(words, &mut out).map_err(here)?,
            _ => {}
        }
    }
    if stl {
        out.triangles = (0..out.points.len() / 3).map(|k| [3 * k, 3 * k + 1, 3 * k + 2]).collect();
    }
    Ok(out)
}

fn point<'w>(mut words: impl Iterator<Item = &'w str>) -> Result<Vector3<f64>, String> {
    let mut out = Vector3::zeros();
    for x in &mut out {
        *x = words.next().and_then(|w| w.parse().ok()).ok_or("expected three numbers")?;
    }
    Ok(out)
}

/// Reads a face, whose corners are point numbers counted from one, or from the last point backwards if negative.
fn polygon<'w>(words: impl Iterator<Item = &'w str>, out: &mut Mesh) -> Result<(), String> {
    let all = i64::try_from(out.points.len()).map_err(|_| "too many points")?;
    let corners = words.map(|word| {
        let number: i64 =
            word.split('/').next().and_then(|w| w.parse().ok()).ok_or("expected point indices")?;
        let index = if number > 0 { number - 1 } else { all.saturating_add(number) };
        match usize::try_from(index) {
            Ok(index) if number != 0 && index < out.points.len() => Ok(index),
            _ => Err(format!("there is no point {number}")),
        }
    });
    let corners = corners.collect::<Result<Vec<usize>, String>>()?;
    if corners.len() < 3 {
        return Err("a face needs at least three corners".to_owned());
    }
    out.triangles.extend((1..corners.len() - 1).map(|k| [corners[0], corners[k], corners[k + 1]]));
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::fmt::Write as _;

    use super::*;

    /// Reads a square of two triangles in four formats.
    #[test]
    fn four_formats_of_one_square() {
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
        // Four points, one normal, one texture coordinate, two faces.
        let mut msh: Vec<u8> = [4i32, 1, 1, 2].iter().flat_map(|x| x.to_le_bytes()).collect();
        msh.extend(corners.iter().flatten().flat_map(|x| x.to_le_bytes()));
        msh.extend([0; 20]);
        msh.extend(faces.iter().flatten().flat_map(|&x| (x as u32).to_le_bytes()));
        let obj = "v 0 0 0\nv 1 0 0\nv 1 1 0\nv 0 1 0\nf 1/1 2/2 3/3 -1/4\n";
        let expected: Vec<[Vector3<f64>; 3]> =
            faces.iter().map(|f| f.map(|i| Vector3::from(corners[i]).cast())).collect();
        for bytes in [&binary[..], words.as_bytes(), &msh, obj.as_bytes()] {
            let mesh = Mesh::parse(bytes).unwrap();
            assert_eq!(mesh.corners().collect::<Vec<_>>(), expected);
            let extent = mesh.extent().unwrap();
            assert_eq!((extent.lower, extent.upper), (Vector3::zeros(), Vector3::new(1.0, 1.0, 0.0)));
        }
    }

    #[test]
    fn bytes_that_are_not_a_mesh_are_refused() {
        for bytes in [
            &b""[..],
            b"solid nothing",
            b"\xff\xfe",
            b"v 1 2\n",
            b"v 0 0 0\nf 1 2 3\n",
            b"v 0 0 0\nv 1 0 0\nv nan 1 0\nf 1 2 3\n",
            b"v 0 0 0\nv 1 0 0\nv 1e200 1 0\nf 1 2 3\n",
            b"f 0 0 0",
            // One point, and a face with the points 7, 7 and 7.
            b"\x01\0\0\0\0\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x07\0\0\0\x07\0\0\0\x07\0\0\0",
        ] {
            let error = Mesh::parse(bytes).unwrap_err().to_string();
            assert_eq!(error.lines().count(), 1, "{error}");
        }
        // A binary file that is shorter than its header states.
        let mut short = vec![0; 84];
        short[80] = 9;
        assert!(Mesh::parse(&short).is_err());
    }
}
