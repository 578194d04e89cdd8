//! Meshes referenced by a URDF.

use inertial::spatial::Pose;

use crate::Model;

/// Mesh of a link of a URDF.
#[derive(Debug, Clone, PartialEq)]
pub struct NamedMesh {
    /// Name of the link.
    pub link: String,
    /// Frame of the mesh relative to that of the link.
    pub origin: Pose<f64>,
    /// Name of the file in the URDF.
    pub file: String,
    /// Scale factors of the coordinates.
    pub scale: [f64; 3],
    /// Whether it is a visual mesh; otherwise it is a collision mesh.
    pub is_visual: bool,
}

impl Model {
    /// Returns the meshes of the links, if the model is a URDF.
    pub fn meshes(&self) -> Vec<NamedMesh> {
        if !self.text.contains("<mesh") {
            return Vec::new();
        }
        let Ok(document) = roxmltree::Document::parse(&self.text) else { return Vec::new() };
        let mut out = Vec::new();
        for link in document.root_element().children().filter(|n| n.has_tag_name("link")) {
            for part in link.children() {
                let is_visual = part.has_tag_name("visual");
                if (is_visual || part.has_tag_name("collision"))
                    && let Some(name) = link.attribute("name")
                {
                    out.extend(named(part, name, is_visual));
                }
            }
        }
        out
    }
}

fn named(part: roxmltree::Node<'_, '_>, link: &str, is_visual: bool) -> Option<NamedMesh> {
    let child = |node: roxmltree::Node<'_, '_>, name: &str| {
        node.children().find(|n| n.has_tag_name(name)).map(|n| n.id())
    };
    let node = |id| part.document().get_node(id);
    let mesh = child(part, "geometry").and_then(node).and_then(|g| child(g, "mesh")).and_then(node)?;
    let origin = child(part, "origin").and_then(node);
    let three = |text: Option<&str>, default: f64| -> Option<[f64; 3]> {
        let Some(text) = text else { return Some([default; 3]) };
        let numbers: Vec<f64> = text.split_whitespace().map(str::parse).collect::<Result<_, _>>().ok()?;
        numbers.try_into().ok()
    };
    let read = |name: &str| three(origin.and_then(|o| o.attribute(name)), 0.0);
    Some(NamedMesh {
        link: link.to_owned(),
        origin: Pose::from_xyz_rpy(read("xyz")?, read("rpy")?),
        file: mesh.attribute("filename")?.to_owned(),
        scale: three(mesh.attribute("scale"), 1.0)?,
        is_visual,
    })
}
