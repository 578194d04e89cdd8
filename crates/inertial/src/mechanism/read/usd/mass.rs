//! Masses of bodies: explicit, or computed from the collision shapes of a body.

use std::f64::consts::PI;

use nalgebra::{Matrix3, Vector3};

use super::bodies::Units;
use super::stage::{Node, Stage};
use super::xform::{Frame, quaternion};
use crate::Result;
use crate::mechanism::Shape;
use crate::mesh::{MassDistribution, Mesh};
use crate::spatial::{Inertia, Pose};

/// Default density (kg/m³).
const DENSITY: f64 = 1000.0;

/// Collision shape: its inertia for unit density in the frame of its body, and its shape if it is a primitive.
pub(super) struct Collider {
    inertia: Inertia<f64>,
    pub simple: Option<(Pose<f64>, Shape)>,
}

/// Explicit mass properties of a prim.
#[derive(Default)]
struct Written {
    mass: Option<f64>,
    density: Option<f64>,
    com: Option<Vector3<f64>>,
    /// Inertia tensor from the principal moments and axes.
    tensor: Option<Matrix3<f64>>,
}

impl Written {
    fn read(node: &Node, scale: &Vector3<f64>, units: &Units) -> Result<Self> {
        if !node.has_schema("PhysicsMassAPI") {
            return Ok(Self::default());
        }
        let positive = |x: f64| (x > 0.0).then_some(x);
        let finite = |x: &[f64; 3]| x.iter().all(|x| x.is_finite());
        let com = node.array::<3>("physics:centerOfMass")?.filter(finite);
        let axes = node.array::<4>("physics:principalAxes")?.unwrap_or_default();
        let axes = quaternion(node, "physics:principalAxes", axes)?;
        let moments = node.array::<3>("physics:diagonalInertia")?.map(Vector3::from);
        let moments = moments.filter(|m| *m != Vector3::zeros()).map(|m| m * units.inertia());
        Ok(Self {
            mass: node.number("physics:mass")?.filter(|m| *m != 0.0).map(|m| m * units.mass),
            density: node.number("physics:density")?.and_then(positive).map(|d| d * units.density()),
            com: com.map(|c| Vector3::from(c).component_mul(scale) * units.length),
            tensor: moments.map(|m| axes * Matrix3::from_diagonal(&m) * axes.transpose()),
        })
    }
}

/// Returns the inertia of a body in its frame; `None` if it has no mass.
pub(super) fn inertia(
    stage: &Stage,
    frames: &[Frame],
    body: usize,
    colliders: &[usize],
    units: &Units,
    warnings: &mut Vec<String>,
) -> Result<Option<Inertia<f64>>> {
    let node = &stage.nodes[body];
    let scale = frames[body].scale();
    let written = Written::read(node, &scale, units)?;
    if let (Some(mass), Some(com), Some(tensor)) =
        (written.mass, written.com.or(colliders.is_empty().then(Vector3::zeros)), written.tensor)
    {
        return Ok(Some(Inertia::from_com(mass, com, tensor)));
    }
    let mut sum = nalgebra::SVector::<f64, 10>::zeros();
    for &at in colliders {
        let own = &stage.nodes[at];
        let unit = collider(stage, frames, body, at, units, warnings)?;
        let Some(Collider { inertia: unit, .. }) = unit else { continue };
        let Written { mass, density, .. } = Written::read(own, &Vector3::repeat(1.0), units)?;
        let density = match (density, material_density(stage, own, units)?) {
            (Some(density), _) | (None, Some(density)) => density,
            (None, None) => written.density.unwrap_or(DENSITY),
        };
        sum += unit.parameters() * mass.map_or(density, |mass| mass / unit.mass);
    }
    let mut total = Inertia::from_parameters(&sum);
    if !(total.mass > 0.0) {
        let Some(mass) = written.mass else { return Ok(None) };
        if written.tensor.is_none() {
            warnings.push(format!("{}: it has a mass, but neither inertia nor collision shapes", node.path));
        }
        let (com, tensor) = (written.com.unwrap_or_default(), written.tensor.unwrap_or_default());
        return Ok(Some(Inertia::from_com(mass, com, tensor)));
    }
    if let Some(mass) = written.mass {
        total = Inertia::from_parameters(&(sum * (mass / total.mass)));
    }
    let centre = total.com().unwrap_or_default();
    let com = written.com.unwrap_or(centre);
    let tensor = written.tensor.unwrap_or_else(|| {
        // About the given centre of mass, as in the functions of the USD schema.
        let d = com - centre;
        let shift = Matrix3::from_diagonal_element(d.norm_squared()) - d * d.transpose();
        total.about_com() + shift * total.mass
    });
    Ok(Some(Inertia::from_com(total.mass, com, tensor)))
}

/// Returns the density of the material bound to a prim or to one of its ancestors.
fn material_density(stage: &Stage, node: &Node, units: &Units) -> Result<Option<f64>> {
    let mut next = Some(node);
    while let Some(node) = next {
        for name in ["material:binding:physics", "material:binding"] {
            if let Some(path) = node.targets(name).first()
                && let Some(material) = stage.find(path)
                && material.has_schema("PhysicsMaterialAPI")
            {
                let density = stage_number(material, "physics:density")?;
                return Ok(density.map(|d| d * units.density()));
            }
        }
        next = node.parent.map(|p| &stage.nodes[p]);
    }
    Ok(None)
}

fn stage_number(node: &Node, name: &str) -> Result<Option<f64>> {
    Ok(node.number(name)?.filter(|x| *x > 0.0))
}

/// Returns a collision shape of a body; `None` if it has no volume.
pub(super) fn collider(
    stage: &Stage,
    frames: &[Frame],
    body: usize,
    at: usize,
    units: &Units,
    warnings: &mut Vec<String>,
) -> Result<Option<Collider>> {
    let (node, frame) = (&stage.nodes[at], &frames[at]);
    let around = frames[body].pose(&stage.nodes[body], units.length)?;
    if node.kind == "Mesh" {
        let to_body = around.inverse();
        let point = |p: &[f64]| {
            let moved = frame.matrix * nalgebra::Vector4::new(p[0], p[1], p[2], 1.0);
            to_body.transform_point(&(moved.xyz() * units.length))
        };
        let mirrored = frame.matrix.fixed_view::<3, 3>(0, 0).determinant() < 0.0;
        let inertia = mesh(node, point, mirrored, warnings)?;
        return Ok(Some(Collider { inertia, simple: None }));
    }
    let size = |name: &str, default: f64| -> Result<f64> {
        let x = node.number(name)?.unwrap_or(default) * units.length;
        if x > 0.0 && x.is_finite() { Ok(x) } else { Err(node.error(format!("{name} is not positive"))) }
    };
    let scale = frame.scale();
    let axis = match node.text("axis") {
        Some("X") => 0,
        Some("Y") => 1,
        _ => 2,
    };
    let across = scale[(axis + 1) % 3].max(scale[(axis + 2) % 3]);
    let (volume, moments, shape) = match node.kind.as_str() {
        "Cube" => {
            let edges = scale * size("size", 2.0)?;
            let square = edges.component_mul(&edges);
            let moments = Vector3::new(square.y + square.z, square.x + square.z, square.x + square.y) / 12.0;
            (edges.product(), moments, Some(Shape::Box { size: edges.into() }))
        }
        "Sphere" => {
            let r = size("radius", 1.0)? * scale.max();
            (4.0 / 3.0 * PI * r.powi(3), Vector3::repeat(0.4 * r * r), Some(Shape::Sphere { radius: r }))
        }
        "Cylinder" => {
            let (r, h) = (size("radius", 1.0)? * across, size("height", 2.0)? * scale[axis]);
            let side = r * r / 4.0 + h * h / 12.0;
            let shape = Shape::Cylinder { radius: r, length: h };
            (PI * r * r * h, Vector3::new(side, side, r * r / 2.0), Some(shape))
        }
        "Capsule" => {
            let (r, h) = (size("radius", 0.5)? * across, size("height", 1.0)? * scale[axis]);
            // A cylinder between two half balls, whose centres of mass lie 3/8 r beyond the ends of the cylinder.
            let (tube, ball) = (PI * r * r * h, 4.0 / 3.0 * PI * r.powi(3));
            let along = tube * r * r / 2.0 + ball * 0.4 * r * r;
            let side =
                tube * (r * r / 4.0 + h * h / 12.0) + ball * (0.4 * r * r + h * h / 4.0 + 3.0 / 8.0 * r * h);
            let volume = tube + ball;
            (volume, Vector3::new(side, side, along) / volume, None)
        }
        "Cone" => {
            let (r, h) = (size("radius", 1.0)? * across, size("height", 2.0)? * scale[axis]);
            let side = 3.0 / 20.0 * r * r + 3.0 / 80.0 * h * h;
            (PI * r * r * h / 3.0, Vector3::new(side, side, 0.3 * r * r), None)
        }
        "Plane" => return Ok(None),
        other => {
            let what = if other.is_empty() { "a prim without type" } else { other };
            return Err(
                node.unsupported(format!("{what} as a collision shape that a body gets its mass from"))
            );
        }
    };
    // The axis of the shape itself is z.
    let turn = match axis {
        0 => Matrix3::new(0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0),
        1 => Matrix3::new(0.0, 1.0, 0.0, 0.0, 0.0, 1.0, 1.0, 0.0, 0.0),
        _ => Matrix3::identity(),
    };
    let turn = if matches!(node.kind.as_str(), "Cube" | "Sphere") { Matrix3::identity() } else { turn };
    let pose =
        around.inverse() * upright(frame).pose(node, units.length)? * Pose::new(turn, Vector3::zeros());
    // The base of a cone is a quarter of its height below its centre of mass, and half of its height below its origin.
    let centre = match node.kind.as_str() {
        "Cone" => Vector3::z() * (-size("height", 2.0)? * scale[axis] / 4.0),
        _ => Vector3::zeros(),
    };
    let own = Inertia::from_com(volume, centre, Matrix3::from_diagonal(&(moments * volume)));
    Ok(Some(Collider { inertia: own.transformed(&pose), simple: shape.map(|shape| (pose, shape)) }))
}

/// Returns the frame without its reflection, which does not change primitive shapes.
fn upright(frame: &Frame) -> Frame {
    let mut out = *frame;
    if out.matrix.fixed_view::<3, 3>(0, 0).determinant() < 0.0 {
        let flipped = -out.matrix.fixed_view::<3, 3>(0, 0);
        out.matrix.fixed_view_mut::<3, 3>(0, 0).copy_from(&flipped);
    }
    out
}

/// Returns the inertia of a mesh for unit density.
fn mesh(
    node: &Node,
    point: impl Fn(&[f64]) -> Vector3<f64>,
    mirrored: bool,
    warnings: &mut Vec<String>,
) -> Result<Inertia<f64>> {
    let numbers = |name: &str| -> Result<Vec<f64>> {
        node.numbers(name)?.ok_or_else(|| node.error(format!("the mesh has no {name}")))
    };
    let points: Vec<_> = numbers("points")?.chunks_exact(3).map(point).collect();
    let (counts, corners) = (numbers("faceVertexCounts")?, numbers("faceVertexIndices")?);
    let flipped = mirrored != (node.text("orientation") == Some("leftHanded"));
    let mut triangles = Vec::new();
    let mut rest = &corners[..];
    for count in counts {
        let (face, after) = rest
            .split_at_checked(count as usize)
            .ok_or_else(|| node.error("the faces of the mesh have more corners than faceVertexIndices"))?;
        rest = after;
        for k in 1..face.len().saturating_sub(1) {
            let (b, c) = if flipped { (k + 1, k) } else { (k, k + 1) };
            triangles.push([face[0], face[b], face[c]].map(|x| x as usize));
        }
    }
    let of_mesh = |e: crate::Error| node.error(e.to_string());
    let mesh = Mesh { points, triangles }.checked().map_err(of_mesh)?;
    match node.text("physics:approximation").unwrap_or("none") {
        "convexHull" => mesh.inertia(MassDistribution::Convex).map_err(of_mesh),
        "boundingCube" | "boundingSphere" => Err(node
            .unsupported("a mesh approximated by a bounding box or sphere that a body gets its mass from")),
        _ => mesh.inertia(MassDistribution::Exact).or_else(|_| {
            warnings
                .push(format!("{}: the mesh is not closed: its mass is that of its convex hull", node.path));
            mesh.inertia(MassDistribution::Convex).map_err(of_mesh)
        }),
    }
}
