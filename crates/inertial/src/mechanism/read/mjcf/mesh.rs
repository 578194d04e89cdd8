//! Meshes of `<asset>`, used for the inertia of geoms.

use std::cell::RefCell;
use std::collections::HashMap;

use nalgebra::{Matrix3, Vector3};

use super::super::Include;
use super::super::xml::quoted;
use super::compiler::Settings;
use super::defaults::{Defaults, Layered};
use super::orientation;
use super::source::Source;
use crate::Result;
use crate::mesh::{MassDistribution, Mesh};
use crate::spatial::{Inertia, Pose};

/// Meshes of a model by name; each is read at the first use by a geom.
pub(super) struct Meshes<'a> {
    assets: HashMap<String, Layered<'a>>,
    /// Source of the files; `None` if the inertia of meshes is not needed.
    files: Option<Include<'a>>,
    /// Inertias for unit density, by name.
    known: RefCell<HashMap<String, Inertia<f64>>>,
}

/// Box with the inertia of a mesh.
pub(super) struct InertiaBox {
    pub(super) half: Vector3<f64>,
    pub(super) pose: Pose<f64>,
}

impl<'a> Meshes<'a> {
    pub(super) fn read(
        source: &'a Source<'_>,
        defaults: &Defaults<'a>,
        files: Option<Include<'a>>,
    ) -> Result<Self> {
        let mut assets = HashMap::new();
        for section in source.section("asset")? {
            for element in source.children(section).into_iter().filter(|e| e.tag() == "mesh") {
                let mesh = defaults.layered(element, None)?;
                let file = element.attribute("file").unwrap_or_default();
                // An unnamed mesh is named after its file.
                let stem = file.rsplit(['/', '\\']).next().unwrap_or_default();
                let stem = stem.rsplit_once('.').map_or(stem, |(stem, _)| stem);
                let name = element.attribute("name").filter(|n| !n.is_empty()).unwrap_or(stem);
                assets.insert(name.to_owned(), mesh);
            }
        }
        Ok(Self { assets, files, known: RefCell::default() })
    }

    /// Returns whether the inertias of meshes are needed.
    pub(super) fn count(&self) -> bool {
        self.files.is_some()
    }

    /// Returns the inertia of a geom's mesh in the frame of the mesh, for unit density.
    pub(super) fn inertia(&self, geom: &Layered<'_>, settings: &Settings) -> Result<Inertia<f64>> {
        let Some(files) = self.files else {
            return Err(geom.element().unsupported("a body whose inertia comes from a mesh"));
        };
        let name = geom.text("mesh").ok_or_else(|| geom.element().error("it needs a mesh"))?;
        if let Some(known) = self.known.borrow().get(name) {
            return Ok(*known);
        }
        let asset = self.assets.get(name).ok_or_else(|| {
            let hint = crate::nearest_hint(name, self.assets.keys().map(String::as_str));
            geom.element().error(format!("there is no mesh {}{hint}", quoted(name)))
        })?;
        let inertia = inertia(asset, files, settings)?;
        self.known.borrow_mut().insert(name.to_owned(), inertia);
        Ok(inertia)
    }

    /// Returns the box with the inertia of a geom's mesh; primitives with a mesh are fitted to it.
    pub(super) fn inertia_box(&self, geom: &Layered<'_>, settings: &Settings) -> Result<InertiaBox> {
        let inertia = self.inertia(geom, settings)?;
        if settings.fit_box {
            return Err(geom.element().unsupported("a primitive fitted to a mesh with fitaabb=\"true\""));
        }
        let central = inertia.about_com();
        let scale = central.amax();
        let eigen = (central / scale).symmetric_eigen();
        // The longest axis has the smallest moment and becomes z.
        let mut order = [0, 1, 2];
        order.sort_by(|a, b| eigen.eigenvalues[*b].total_cmp(&eigen.eigenvalues[*a]));
        let moments = Vector3::from_fn(|i, _| eigen.eigenvalues[order[i]] * scale);
        let half = Vector3::from_fn(|i, _| {
            let square = 6.0 * (moments.sum() - 2.0 * moments[i]) / inertia.mass;
            square.max(0.0).sqrt() / 2.0
        });
        let axes = eigen.eigenvectors;
        let (x, y) = (axes.column(order[0]).into_owned(), axes.column(order[1]).into_owned());
        let rotation = Matrix3::from_columns(&[x, y, x.cross(&y)]);
        let centre = inertia.com().unwrap_or_default();
        Ok(InertiaBox { half, pose: Pose::new(rotation, centre) })
    }
}

fn inertia(asset: &Layered<'_>, files: Include<'_>, settings: &Settings) -> Result<Inertia<f64>> {
    let element = asset.element();
    let words = [
        ("convex", MassDistribution::Convex),
        ("exact", MassDistribution::Exact),
        ("legacy", MassDistribution::Legacy),
        ("shell", MassDistribution::Shell),
    ];
    let filling = asset.keyword("inertia", &words)?.unwrap_or(settings.mesh_filling);
    let mut mesh = match element.attribute("file").filter(|f| !f.is_empty()) {
        Some(file) => {
            let path = settings.mesh_path(file);
            let bytes = files.mesh(&path).map_err(|e| element.error(e))?;
            Mesh::parse(&bytes).map_err(|e| element.error(format!("{}: {e}", quoted(&path))))?
        }
        None => written(asset)?,
    };
    // Same order as in MuJoCo: translated, rotated, then scaled.
    let origin = Vector3::from(asset.numbers::<3>("refpos")?.unwrap_or_default());
    let turn = match asset.numbers::<4>("refquat")? {
        Some(q) => orientation::quaternion(element, q)?.transpose(),
        None => Matrix3::identity(),
    };
    let scale = Vector3::from(asset.numbers::<3>("scale")?.unwrap_or([1.0; 3]));
    mesh.points.iter_mut().for_each(|p| *p = (turn * (*p - origin)).component_mul(&scale));
    if scale.product() < 0.0 {
        mesh.triangles.iter_mut().for_each(|t| t.swap(0, 1));
    }
    let of_mesh = |e: crate::Error| element.error(e.to_string());
    mesh.checked().and_then(|mesh| mesh.inertia(filling)).map_err(of_mesh)
}

/// Returns a mesh whose points are given in the model: with its triangles, or else as a convex hull.
fn written(asset: &Layered<'_>) -> Result<Mesh> {
    let element = asset.element();
    let Some(numbers) = element.number_list("vertex")? else {
        let what =
            if element.attribute("builtin").is_some() { "a builtin mesh" } else { "a mesh without file" };
        return Err(element.unsupported(format!("{what} that a body gets its inertia from")));
    };
    let points: Vec<_> = numbers.chunks_exact(3).map(Vector3::from_column_slice).collect();
    if points.len() * 3 != numbers.len() {
        return Err(element.error(format!("vertex has {} numbers, expected three for each", numbers.len())));
    }
    let mut mesh = Mesh { points, triangles: Vec::new() };
    match element.number_list("face")? {
        Some(corners) => {
            let whole = |x: &f64| *x >= 0.0 && *x < mesh.points.len() as f64 && x.fract() == 0.0;
            if corners.len() % 3 != 0 || !corners.iter().all(whole) {
                return Err(element.error("face needs three numbers of points for each triangle"));
            }
            mesh.triangles =
                corners.chunks_exact(3).map(|c| std::array::from_fn(|k| c[k] as usize)).collect();
            Ok(mesh)
        }
        None => mesh.hull()?.ok_or_else(|| element.error("its points lie in a plane: it has no convex hull")),
    }
}
