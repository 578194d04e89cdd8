//! What links look like: the model's simple shapes, and meshes that are found beside it.

use std::path::{Path, PathBuf};

use inertial::mechanism::{Mechanism, Shape as Simple};
use inertial::spatial::Pose;
use serde::Serialize;

use super::mesh::Mesh;
use super::robot::{Frame, frame};
use crate::model::Model;
use crate::output;

/// Triangles of all meshes together: a canvas draws them in a few milliseconds.
const TRIANGLES: usize = 8000;
/// Folders above the model in which a package is looked for.
const ABOVE: usize = 6;

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
pub fn shapes(model: &Model, mechanism: &Mechanism) -> Vec<(Option<usize>, Shape)> {
    let seen = meshes(model);
    let most = (TRIANGLES / seen.len().max(1)).clamp(60, 1500);
    let mut out = Vec::new();
    for Found { link, origin, path, scale } in &seen {
        let Some(place) = mechanism.links().iter().find(|l| l.name == *link) else { continue };
        match Mesh::read(path) {
            Ok(mesh) => out.push((
                place.body,
                Shape {
                    pose: frame(&(place.pose * *origin)),
                    kind: Kind::Mesh(mesh.scaled(*scale).coarse(most)),
                },
            )),
            // A picture is no reason to fail.
            Err(error) => {
                output::say(&format!("{}: {error:#}; the page shows {link} without it", path.display()));
            }
        }
    }
    let simple = mechanism.shapes().iter().filter(|s| !seen.iter().any(|f| f.link == s.link)).map(|s| {
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

/// A mesh that a URDF names and that is there.
struct Found {
    link: String,
    origin: Pose<f64>,
    path: PathBuf,
    scale: [f64; 3],
}

/// The meshes of a URDF's links: those to look at, else those to collide with.
fn meshes(model: &Model) -> Vec<Found> {
    let path = Path::new(&model.label);
    if !model.text.contains("<mesh") || !path.is_file() {
        return Vec::new();
    }
    let Ok(document) = roxmltree::Document::parse(&model.text) else { return Vec::new() };
    let mut out = Vec::new();
    for link in document.root_element().children().filter(|n| n.has_tag_name("link")) {
        let of = |kind: &'static str| -> Vec<Found> {
            let parts = link.children().filter(|n| n.has_tag_name(kind));
            parts.filter_map(|part| found(part, link.attribute("name")?, path)).collect()
        };
        let mut own = of("visual");
        if own.is_empty() {
            own = of("collision");
        }
        out.extend(own);
    }
    out
}

fn found(part: roxmltree::Node<'_, '_>, link: &str, model: &Path) -> Option<Found> {
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
    Some(Found {
        link: link.to_owned(),
        origin: Pose::from_xyz_rpy(read("xyz")?, read("rpy")?),
        path: file(mesh.attribute("filename")?, model)?,
        scale: three(mesh.attribute("scale"), 1.0)?,
    })
}

/// The file that a name stands for: beside the model, or in a package that is a folder above it or next to one.
fn file(name: &str, model: &Path) -> Option<PathBuf> {
    let model = model.canonicalize().ok()?;
    let above: Vec<&Path> = model.ancestors().skip(1).take(ABOVE).collect();
    let candidates: Vec<PathBuf> = match name.strip_prefix("package://").and_then(|rest| rest.split_once('/'))
    {
        Some((package, rest)) => above
            .iter()
            .flat_map(|folder| {
                let own = folder.file_name().is_some_and(|n| n == package).then(|| folder.join(rest));
                own.into_iter().chain([folder.join(package).join(rest)])
            })
            .collect(),
        None => above.iter().take(1).map(|folder| folder.join(name.trim_start_matches("file://"))).collect(),
    };
    let known = |path: &PathBuf| {
        let end = path.extension().map(std::ffi::OsStr::to_ascii_lowercase);
        end.is_some_and(|e| e == "stl" || e == "obj") && path.is_file()
    };
    candidates.into_iter().find(known)
}
