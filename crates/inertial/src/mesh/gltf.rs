//! Binary glTF files (`.glb`): the triangles of a scene, with the axes of the file.
//!
//! Implemented here because only the positions of triangles are needed from the format.

use nalgebra::{Matrix4, Quaternion, UnitQuaternion, Vector3};
use serde::Deserialize;

use super::Mesh;
use super::reading::{refused, triple};
use super::scene::{Scene, fan, indexed, strip};
use crate::Result;

/// First bytes of a file.
pub(super) const MAGIC: &[u8] = b"glTF";

const JSON: &[u8] = b"JSON";
const BIN: &[u8] = b"BIN\0";

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Document {
    scene: usize,
    scenes: Vec<Roots>,
    nodes: Vec<Part>,
    meshes: Vec<Primitives>,
    accessors: Vec<Accessor>,
    buffer_views: Vec<View>,
    extensions_required: Vec<String>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Roots {
    nodes: Vec<usize>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Part {
    children: Vec<usize>,
    mesh: Option<usize>,
    matrix: Option<[f64; 16]>,
    translation: Option<[f64; 3]>,
    rotation: Option<[f64; 4]>,
    scale: Option<[f64; 3]>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Primitives {
    primitives: Vec<Primitive>,
}

#[derive(Deserialize)]
struct Primitive {
    attributes: Attributes,
    indices: Option<usize>,
    #[serde(default = "triangle_list")]
    mode: u32,
}

fn triangle_list() -> u32 {
    4
}

#[derive(Deserialize)]
struct Attributes {
    #[serde(rename = "POSITION")]
    position: Option<usize>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Accessor {
    buffer_view: Option<usize>,
    #[serde(default)]
    byte_offset: usize,
    component_type: u32,
    count: usize,
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    normalized: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct View {
    #[serde(default)]
    buffer: usize,
    #[serde(default)]
    byte_offset: usize,
    byte_length: usize,
    byte_stride: Option<usize>,
}

impl Part {
    fn place(&self) -> Matrix4<f64> {
        if let Some(columns) = &self.matrix {
            return Matrix4::from_column_slice(columns);
        }
        let [x, y, z, w] = self.rotation.unwrap_or([0.0, 0.0, 0.0, 1.0]);
        let rotation = UnitQuaternion::try_new(Quaternion::new(w, x, y, z), 1e-12).unwrap_or_default();
        Matrix4::new_translation(&Vector3::from(self.translation.unwrap_or_default()))
            * rotation.to_homogeneous()
            * Matrix4::new_nonuniform_scaling(&Vector3::from(self.scale.unwrap_or([1.0; 3])))
    }
}

/// Reads a binary glTF file.
pub(super) fn parse(bytes: &[u8]) -> Result<Mesh> {
    let Some(version) = word(bytes, 4) else { return refused("ends within its header") };
    if version != 2 {
        return refused(format!("is of version {version} of glTF, not 2"));
    }
    let (mut json, mut data, mut rest) = (None, &[][..], bytes.get(12..).unwrap_or_default());
    while let (Some(length), Some(kind)) = (word(rest, 0), rest.get(4..8)) {
        let Some(chunk) = rest.get(8..8 + length) else { return refused("ends within a chunk") };
        match kind {
            JSON => json = json.or(Some(chunk)),
            BIN if data.is_empty() => data = chunk,
            _ => {}
        }
        rest = &rest[8 + length..];
    }
    let Some(json) = json else { return refused("has no description of its content") };
    let document: Document = serde_json::from_slice(json).or_else(|e| refused(e.to_string()))?;
    if let Some(extension) = document.extensions_required.iter().find(|e| e.contains("compression")) {
        return refused(format!("is compressed ({extension}), which is not read"));
    }
    let mut scene = Scene::default();
    let file = File { document, data };
    for root in file.roots() {
        file.node(root, &mut scene, &Matrix4::identity(), 1)?;
    }
    Ok(scene.mesh())
}

fn word(bytes: &[u8], at: usize) -> Option<usize> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?) as usize)
}

struct File<'d> {
    document: Document,
    data: &'d [u8],
}

impl File<'_> {
    /// Returns the roots of the scene; without a scene, the nodes without parent.
    fn roots(&self) -> Vec<usize> {
        if let Some(roots) = self.document.scenes.get(self.document.scene) {
            return roots.nodes.clone();
        }
        let mut is_root = vec![true; self.document.nodes.len()];
        for child in self.document.nodes.iter().flat_map(|n| &n.children) {
            if let Some(is_root) = is_root.get_mut(*child) {
                *is_root = false;
            }
        }
        (0..is_root.len()).filter(|k| is_root[*k]).collect()
    }

    fn node(&self, index: usize, scene: &mut Scene, place: &Matrix4<f64>, level: usize) -> Result<()> {
        scene.enter(level)?;
        let Some(node) = self.document.nodes.get(index) else {
            return refused(format!("refers to the node {index}, which does not exist"));
        };
        let place = place * node.place();
        if let Some(mesh) = node.mesh {
            let Some(mesh) = self.document.meshes.get(mesh) else {
                return refused(format!("refers to the mesh {mesh}, which does not exist"));
            };
            for primitive in &mesh.primitives {
                scene.enter(level)?;
                let part = self.primitive(primitive, scene)?;
                scene.add(&part, &place);
            }
        }
        node.children.iter().try_for_each(|child| self.node(*child, scene, &place, level + 1))
    }

    /// Returns the triangles of a primitive; points and lines have none.
    fn primitive(&self, primitive: &Primitive, scene: &mut Scene) -> Result<Mesh> {
        let Some(position) = primitive.attributes.position.filter(|_| primitive.mode >= 4) else {
            return Ok(Mesh::default());
        };
        let points = self.points(position, scene)?;
        let corners = match primitive.indices {
            Some(indices) => self.indices(indices, scene)?,
            None => (0..points.len()).collect(),
        };
        let count = corners.len();
        let triangles = match primitive.mode {
            4 => indexed(
                (0..count / 3).map(|k| [3 * k, 3 * k + 1, 3 * k + 2]),
                &corners,
                points.len(),
                "a mesh",
            )?,
            5 => indexed(strip(count), &corners, points.len(), "a mesh")?,
            _ => indexed(fan(0, count), &corners, points.len(), "a mesh")?,
        };
        Ok(Mesh { points, triangles })
    }

    /// Returns the elements of an accessor, of `size` bytes each.
    fn elements(
        &self,
        accessor: &Accessor,
        size: usize,
        scene: &mut Scene,
    ) -> Result<impl Iterator<Item = &[u8]> + use<'_>> {
        let view = accessor.buffer_view.and_then(|view| self.document.buffer_views.get(view));
        let found = view.filter(|view| view.buffer == 0).and_then(|view| {
            let view_end = view.byte_offset.checked_add(view.byte_length)?;
            let bytes = self.data.get(view.byte_offset..view_end)?.get(accessor.byte_offset..)?;
            let stride = view.byte_stride.unwrap_or(size).max(size);
            let end = accessor
                .count
                .checked_sub(1)
                .map_or(Some(0), |last| last.checked_mul(stride)?.checked_add(size))?;
            (end <= bytes.len()).then_some((bytes, stride, accessor.count))
        });
        let Some((bytes, stride, count)) = found else {
            return refused("refers to bytes beyond the end of the file");
        };
        scene.read(size * count)?;
        Ok((0..count).map(move |k| &bytes[k * stride..k * stride + size]))
    }

    fn accessor(&self, index: usize, kind: &str) -> Result<&Accessor> {
        match self.document.accessors.get(index) {
            Some(accessor) if accessor.kind == kind && !accessor.normalized => Ok(accessor),
            _ => refused(format!("has no list {index} of {kind}")),
        }
    }

    fn points(&self, index: usize, scene: &mut Scene) -> Result<Vec<Vector3<f64>>> {
        let accessor = self.accessor(index, "VEC3")?;
        if accessor.component_type != 5126 {
            return refused("has points that are not floating-point numbers");
        }
        Ok(self.elements(accessor, 12, scene)?.map(|bytes| triple(bytes, 0)).collect())
    }

    fn indices(&self, index: usize, scene: &mut Scene) -> Result<Vec<usize>> {
        let accessor = self.accessor(index, "SCALAR")?;
        let size = match accessor.component_type {
            5121 => 1,
            5123 => 2,
            5125 => 4,
            other => return refused(format!("has point indices of an unknown type {other}")),
        };
        let value = |bytes: &[u8]| bytes.iter().rev().fold(0, |sum, byte| sum << 8 | usize::from(*byte));
        Ok(self.elements(accessor, size, scene)?.map(value).collect())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::mesh::MassDistribution;

    /// Returns a file with this description and data.
    fn file(json: &str, data: &[u8]) -> Vec<u8> {
        let mut chunks = Vec::new();
        for (kind, content, pad) in [(JSON, json.as_bytes(), b' '), (BIN, data, 0)] {
            let mut content = content.to_vec();
            content.resize(content.len().next_multiple_of(4), pad);
            chunks.extend(u32::try_from(content.len()).unwrap().to_le_bytes());
            chunks.extend(kind);
            chunks.extend(content);
        }
        let mut out = MAGIC.to_vec();
        out.extend(2u32.to_le_bytes());
        out.extend(u32::try_from(12 + chunks.len()).unwrap().to_le_bytes());
        out.extend(chunks);
        out
    }

    /// Returns a tetrahedron with unit edges along the axes: four points, then twelve point indices of two bytes.
    fn tetrahedron() -> Vec<u8> {
        let points = [[0.0f32, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]];
        let corners = [0u16, 2, 1, 0, 1, 3, 0, 3, 2, 1, 2, 3];
        let mut out: Vec<u8> = points.iter().flatten().flat_map(|x| x.to_le_bytes()).collect();
        out.extend(corners.iter().flat_map(|x| x.to_le_bytes()));
        out
    }

    fn description(nodes: &str) -> String {
        format!(
            r#"{{"asset":{{"version":"2.0"}},"scene":0,"scenes":[{{"nodes":[0]}}],"nodes":{nodes},
            "meshes":[{{"primitives":[{{"attributes":{{"POSITION":0}},"indices":1}}]}}],
            "accessors":[{{"bufferView":0,"componentType":5126,"count":4,"type":"VEC3"}},
                         {{"bufferView":1,"componentType":5123,"count":12,"type":"SCALAR"}}],
            "bufferViews":[{{"buffer":0,"byteLength":48}},{{"buffer":0,"byteOffset":48,"byteLength":24}}],
            "buffers":[{{"byteLength":72}}]}}"#
        )
    }

    #[test]
    fn scenes_place_meshes() {
        let nodes = r#"[{"mesh":0,"children":[1]},
            {"mesh":0,"translation":[5,0,0],"rotation":[0,0,0.7071067811865476,0.7071067811865476],"scale":[2,1,-1]}]"#;
        let mesh = Mesh::parse(&file(&description(nodes), &tetrahedron())).unwrap();
        assert_eq!((mesh.points.len(), mesh.triangles.len()), (8, 8));
        let extent = mesh.extent().unwrap();
        assert!((extent.lower - Vector3::new(0.0, 0.0, -1.0)).norm() < 1e-12, "{extent:?}");
        assert!((extent.upper - Vector3::new(5.0, 2.0, 1.0)).norm() < 1e-12, "{extent:?}");
        // One sixth, and twice that: mirrored triangles are flipped.
        let volume = mesh.inertia(MassDistribution::Exact).unwrap().mass;
        assert!((volume - 0.5).abs() < 1e-12, "{volume}");
    }

    #[test]
    fn damaged_files_are_refused() {
        let whole = file(&description(r#"[{"mesh":0}]"#), &tetrahedron());
        assert!(Mesh::parse(&whole).is_ok());
        for end in 0..whole.len() {
            assert!(Mesh::parse(&whole[..end]).is_err(), "{end}");
        }
        for (from, to) in [
            (r#"[{"mesh":0}]"#, r#"[{"children":[0]}]"#),
            (r#"[{"mesh":0}]"#, r#"[{"mesh":7}]"#),
            (r#""count":4"#, r#""count":18446744073709551615"#),
            (r#""byteOffset":48"#, r#""byteOffset":18446744073709551615"#),
            (r#""indices":1"#, r#""indices":9"#),
            (r#""asset""#, r#""extensionsRequired":["KHR_draco_mesh_compression"],"asset""#),
        ] {
            let text = description(r#"[{"mesh":0}]"#).replace(from, to);
            let error = Mesh::parse(&file(&text, &tetrahedron())).unwrap_err().to_string();
            assert_eq!(error.lines().count(), 1, "{error}");
        }
    }
}
