//! What links look like: the model's simple shapes, and meshes that are found beside it.

use inertial::mechanism::Shape as Simple;
use inertial::spatial::Pose;
use inertial_app::{Context, Model, Note};
use serde::Serialize;

use super::mesh::{Mesh, SIZE_LIMIT};
use super::robot::{Frame, frame};

/// Triangles of all meshes together: a canvas draws them in a few milliseconds.
const TRIANGLES: usize = 8000;

/// A shape of a body.
#[derive(Debug, Serialize)]
pub struct Shape {
    pose: Frame,
    #[serde(flatten)]
    kind: Kind,
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum Kind {
    Sphere { radius: f64 },
    Cylinder { radius: f64, length: f64 },
    Box { half: [f64; 3] },
    Mesh(Mesh),
}

/// The shapes of a robot, each with the body it belongs to (none for the ground).
pub fn shapes(model: &Model, context: &Context<'_>) -> Vec<(Option<usize>, Shape)> {
    let mechanism = &model.mechanism;
    let named = meshes(model);
    let most = (TRIANGLES / named.len().max(1)).clamp(60, 1500);
    let (mut out, mut seen) = (Vec::new(), Vec::new());
    for Named { link, origin, file, scale } in &named {
        let Some((path, bytes)) = context.inputs.mesh(&model.label, file, SIZE_LIMIT) else { continue };
        seen.push(link.as_str());
        let Some(place) = mechanism.links().iter().find(|l| l.name == *link) else { continue };
        match bytes.and_then(|bytes| Mesh::parse(&bytes)) {
            Ok(mesh) => out.push((
                place.body,
                Shape {
                    pose: frame(&(place.pose * *origin)),
                    kind: Kind::Mesh(mesh.scaled(*scale).coarse(most)),
                },
            )),
            // A picture is no reason to fail.
            Err(error) => {
                context.note(&Note::Mesh { file: path, reason: error.to_string(), link: link.clone() });
            }
        }
    }
    let simple = mechanism.shapes().iter().filter(|s| !seen.contains(&s.link.as_str())).map(|s| {
        let kind = match s.shape {
            Simple::Sphere { radius } => Kind::Sphere { radius },
            Simple::Cylinder { radius, length } => Kind::Cylinder { radius, length },
            Simple::Box { size } => Kind::Box { half: size.map(|x| 0.5 * x) },
        };
        (s.body, Shape { pose: frame(&s.pose), kind })
    });
    out.extend(simple);
    out
}

/// A mesh that a URDF names.
struct Named {
    link: String,
    origin: Pose<f64>,
    file: String,
    scale: [f64; 3],
}

/// The meshes of a URDF's links: those to look at, else those to collide with.
fn meshes(model: &Model) -> Vec<Named> {
    if !model.text.contains("<mesh") {
        return Vec::new();
    }
    let Ok(document) = roxmltree::Document::parse(&model.text) else { return Vec::new() };
    let mut out = Vec::new();
    for link in document.root_element().children().filter(|n| n.has_tag_name("link")) {
        let of = |kind: &'static str| -> Vec<Named> {
            let parts = link.children().filter(|n| n.has_tag_name(kind));
            parts.filter_map(|part| named(part, link.attribute("name")?)).collect()
        };
        let mut own = of("visual");
        if own.is_empty() {
            own = of("collision");
        }
        out.extend(own);
    }
    out
}

fn named(part: roxmltree::Node<'_, '_>, link: &str) -> Option<Named> {
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
    Some(Named {
        link: link.to_owned(),
        origin: Pose::from_xyz_rpy(read("xyz")?, read("rpy")?),
        file: mesh.attribute("filename")?.to_owned(),
        scale: three(mesh.attribute("scale"), 1.0)?,
    })
}
