//! Shapes of links: primitives of the model, and meshes that are found beside it.

use inertial::mechanism::Shape as Simple;
use inertial_app::model::NamedMesh;
use inertial_app::{Context, Model, Note};
use serde::Serialize;

use super::frame::{Frame, frame};
use super::mesh::{Mesh, SIZE_LIMIT};

/// Largest number of triangles of all meshes together, which a canvas draws in a few milliseconds.
const TRIANGLES: usize = 8000;

/// Shape of a body.
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

/// Returns the shapes of a robot, each with its body (`None` for the ground).
pub fn shapes(model: &Model, context: &Context<'_>) -> Vec<(Option<usize>, Shape)> {
    let mechanism = &model.mechanism;
    let named = displayed_meshes(model);
    let most = (TRIANGLES / named.len().max(1)).clamp(60, 1500);
    let (mut out, mut with_mesh) = (Vec::new(), Vec::new());
    for NamedMesh { link, origin, file, scale, .. } in &named {
        let Some((path, bytes)) = context.inputs.mesh(&model.label, file, SIZE_LIMIT) else { continue };
        with_mesh.push(link.as_str());
        let Some(place) = mechanism.links().iter().find(|l| l.name == *link) else { continue };
        match bytes.and_then(|bytes| Mesh::parse(&bytes)) {
            Ok(mesh) => out.push((
                place.body,
                Shape {
                    pose: frame(&(place.pose * *origin)),
                    kind: Kind::Mesh(mesh.scaled(*scale).coarse(most)),
                },
            )),
            // A mesh that cannot be drawn is not an error.
            Err(error) => {
                context.note(&Note::Mesh { file: path, reason: error.to_string(), link: link.clone() });
            }
        }
    }
    let simple = mechanism.shapes().iter().filter(|s| !with_mesh.contains(&s.link.as_str())).map(|s| {
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

/// Returns the visual meshes of the links of a URDF, or the collision meshes if there are none.
fn displayed_meshes(model: &Model) -> Vec<NamedMesh> {
    let all = model.meshes();
    let is_shown = |link: &str| all.iter().any(|mesh| mesh.is_visual && mesh.link == link);
    all.iter().filter(|mesh| mesh.is_visual || !is_shown(&mesh.link)).cloned().collect()
}
