//! Sizes of links: bounding boxes of their shapes and meshes.

use std::collections::{HashMap, HashSet};

use inertial::consistency::Extent;
use inertial::mechanism::{Link, Mechanism};
use inertial::mesh::Mesh;
use inertial::spatial::Pose;
use nalgebra::Vector3;

use crate::model::NamedMesh;
use crate::{Context, Model, Result};

/// Size limits (bytes) of one mesh and of all meshes together.
const LARGEST: u64 = 64 << 20;
const ALL: u64 = 1 << 30;

/// Bounding boxes of meshes, along the axes of the links.
#[derive(Default)]
pub(super) struct Extents {
    known: HashMap<String, Extent>,
    /// Links of unknown size: they have a collision mesh that could not be read.
    unknown: HashSet<String>,
}

impl Extents {
    /// Reads the meshes of the links of the model. Meshes that cannot be read are skipped without an error.
    pub(super) fn new(model: &Model, context: &Context<'_>) -> Result<Self> {
        let mut out = Self::default();
        let mut read: HashMap<String, Option<Mesh>> = HashMap::new();
        let mut left = ALL;
        for NamedMesh { link, origin, file, scale, is_visual } in model.meshes() {
            context.check_interrupted()?;
            let mesh = read.entry(file.clone()).or_insert_with(|| {
                let (_, bytes) = context.inputs.mesh(&model.label, &file, LARGEST.min(left))?;
                let bytes = bytes.ok()?;
                left -= bytes.len() as u64;
                Mesh::parse(&bytes).ok()
            });
            match mesh.as_ref().and_then(|mesh| placed(mesh, &origin, scale)) {
                Some(own) => {
                    out.known.entry(link).and_modify(|sum| *sum = sum.join(&own)).or_insert(own);
                }
                None if !is_visual => {
                    out.unknown.insert(link);
                }
                None => {}
            }
        }
        Ok(out)
    }

    /// Returns the bounding box of the collision shapes and meshes of a link; `None` if its size is unknown.
    pub(super) fn of(&self, mechanism: &Mechanism, link: &Link) -> Option<Extent> {
        if self.unknown.contains(&link.name) {
            return None;
        }
        let shapes = mechanism.shapes().iter().filter(|shape| shape.link == link.name);
        let boxes = shapes.map(|shape| shape.extent(&link.pose)).chain(self.known.get(&link.name).copied());
        boxes.reduce(|sum, next| sum.join(&next))
    }
}

/// Returns the bounding box of a mesh in the frame of its link.
fn placed(mesh: &Mesh, origin: &Pose<f64>, scale: [f64; 3]) -> Option<Extent> {
    let scale = Vector3::from(scale);
    let points = mesh.points.iter().map(|p| origin.transform_point(&p.component_mul(&scale)));
    points.map(|p| Extent { lower: p, upper: p }).reduce(|sum, next| sum.join(&next))
}
