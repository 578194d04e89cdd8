//! Mass and inertia of geoms.

use std::f64::consts::PI;

use nalgebra::{Matrix3, Vector3};

use super::compiler::Settings;
use super::defaults::Layered;
use super::mesh::{InertiaBox, Meshes};
use super::orientation;
use crate::Result;
use crate::spatial::{Inertia, Pose};

/// Default density (kg/m³, or kg/m² of a shell).
const DEFAULT_DENSITY: f64 = 1000.0;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Sphere,
    Capsule,
    Ellipsoid,
    Cylinder,
    Box,
    /// Plane or height field: part of the scenery, without mass.
    Flat,
    /// Mesh or signed distance field.
    Mesh,
}

/// Solid or shell: its volume or area, and its central moments of inertia per unit mass.
struct Shape {
    extent: f64,
    moments: Vector3<f64>,
}

/// Returns the inertia of a geom in its parent frame; `None` if it is massless or excluded.
pub(super) fn inertia(
    geom: &Layered<'_>,
    settings: &Settings,
    meshes: Option<&Meshes<'_>>,
) -> Result<Option<Inertia<f64>>> {
    let group = geom.number("group")?.unwrap_or(0.0);
    let kind = kind(geom)?;
    let mass = geom.number("mass")?;
    let density = geom.number("density")?.unwrap_or(DEFAULT_DENSITY);
    let [first, last] = settings.geom_groups;
    if group < first || group > last || kind == Kind::Flat || mass.unwrap_or(density) == 0.0 {
        return Ok(None);
    }
    let is_shell = geom.boolean("shellinertia")?.unwrap_or(false);
    let (size, pose) = if kind == Kind::Mesh || geom.text("mesh").is_some() {
        let Some(meshes) = meshes else {
            return Err(geom.element().unsupported("a mesh of a body that never moves"));
        };
        let pose = orientation::pose(geom, settings)?;
        if kind == Kind::Mesh {
            if is_shell {
                let message = "the inertia of a mesh is set in <asset>: give the <mesh> inertia=\"shell\"";
                return Err(geom.element().error(message));
            }
            let unit = meshes.inertia(geom, settings)?;
            let factor = mass.map_or(density, |mass| mass / unit.mass);
            return Ok(Some(Inertia::from_parameters(&(unit.parameters() * factor)).transformed(&pose)));
        }
        let InertiaBox { half, pose: own } = meshes.inertia_box(geom, settings)?;
        let scale = geom.number("fitscale")?.unwrap_or(1.0);
        (fitted(kind, half) * scale, pose * own)
    } else {
        dimensions(geom, kind, settings)?
    };
    let shape = if is_shell { shell(kind, size) } else { solid(kind, size) };
    let mass = mass.unwrap_or(density * shape.extent);
    let own = Inertia::from_com(mass, Vector3::zeros(), Matrix3::from_diagonal(&(shape.moments * mass)));
    Ok(Some(own.transformed(&pose)))
}

fn kind(geom: &Layered<'_>) -> Result<Kind> {
    let words = [
        ("sphere", Kind::Sphere),
        ("capsule", Kind::Capsule),
        ("ellipsoid", Kind::Ellipsoid),
        ("cylinder", Kind::Cylinder),
        ("box", Kind::Box),
        ("plane", Kind::Flat),
        ("hfield", Kind::Flat),
        ("mesh", Kind::Mesh),
        ("sdf", Kind::Mesh),
    ];
    Ok(geom.keyword("type", &words)?.unwrap_or(Kind::Sphere))
}

/// Returns the sizes of a primitive shape fitted to a box with these half edges, as in MuJoCo.
fn fitted(kind: Kind, half: Vector3<f64>) -> Vector3<f64> {
    let across = f64::midpoint(half.x, half.y);
    match kind {
        Kind::Sphere => Vector3::repeat(half.sum() / 3.0),
        Kind::Capsule => Vector3::new(across, (half.z - across / 2.0).max(0.0), 0.0),
        Kind::Cylinder => Vector3::new(across, half.z, 0.0),
        _ => half,
    }
}

/// Returns the sizes (radii and half lengths) and pose of a primitive shape.
fn dimensions(geom: &Layered<'_>, kind: Kind, settings: &Settings) -> Result<(Vector3<f64>, Pose<f64>)> {
    let mut size = Vector3::from(geom.overlay("size", [0.0; 3])?);
    let pose = match segment(geom)? {
        None => orientation::pose(geom, settings)?,
        Some((pose, half_length)) => {
            match kind {
                Kind::Capsule | Kind::Cylinder => size.y = half_length,
                Kind::Ellipsoid | Kind::Box => size = Vector3::new(size.x, size.x, half_length),
                _ => return Err(geom.element().error("fromto needs a capsule, cylinder, ellipsoid or box")),
            }
            pose
        }
    };
    let needed = match kind {
        Kind::Sphere => 1,
        Kind::Capsule | Kind::Cylinder => 2,
        _ => 3,
    };
    if size.iter().take(needed).any(|&x| x <= 0.0) {
        let message =
            format!("its shape needs {needed} positive sizes, not {} {} {}", size.x, size.y, size.z);
        return Err(geom.element().error(message));
    }
    Ok((size, pose))
}

/// Returns the frame in the middle of `fromto` and half the segment's length. The z axis points towards the first point, as in
/// MuJoCo's code (its manual states the opposite).
pub(super) fn segment(element: &Layered<'_>) -> Result<Option<(Pose<f64>, f64)>> {
    let Some([a, b, c, d, e, f]) = element.numbers("fromto")? else { return Ok(None) };
    let (from, to) = (Vector3::new(a, b, c), Vector3::new(d, e, f));
    let z = orientation::direction(element.element(), "fromto", (from - to).into())?;
    Ok(Some((Pose::new(orientation::z_towards(&z), (from + to) * 0.5), (to - from).norm() * 0.5)))
}

fn solid(kind: Kind, size: Vector3<f64>) -> Shape {
    let (a, b, c) = (size.x, size.y, size.z);
    match kind {
        Kind::Sphere => Shape { extent: 4.0 / 3.0 * PI * a.powi(3), moments: Vector3::repeat(0.4 * a * a) },
        Kind::Ellipsoid => Shape { extent: 4.0 / 3.0 * PI * a * b * c, moments: crossed(size, 0.2) },
        Kind::Box => Shape { extent: 8.0 * a * b * c, moments: crossed(size, 1.0 / 3.0) },
        Kind::Cylinder => {
            let h = 2.0 * b;
            Shape { extent: PI * a * a * h, moments: round(a * a / 4.0 + h * h / 12.0, a * a / 2.0) }
        }
        Kind::Capsule => {
            // A cylinder of length h between two half balls, whose centres of mass lie 3/8 a beyond the ends of the cylinder.
            let h = 2.0 * b;
            let cylinder = solid(Kind::Cylinder, size);
            let ball = solid(Kind::Sphere, size);
            let spread = h * h / 4.0 + 3.0 / 8.0 * a * h;
            combined(&cylinder, &ball, spread)
        }
        Kind::Flat | Kind::Mesh => Shape { extent: 0.0, moments: Vector3::zeros() },
    }
}

fn shell(kind: Kind, size: Vector3<f64>) -> Shape {
    let (a, b, c) = (size.x, size.y, size.z);
    match kind {
        Kind::Sphere => Shape { extent: 4.0 * PI * a * a, moments: Vector3::repeat(2.0 / 3.0 * a * a) },
        Kind::Ellipsoid => {
            // As in MuJoCo: the area by Thomsen's formula, the moments of the thin layer between two ellipsoids
            // whose semiaxes differ by the same small length.
            const P: f64 = 1.6075;
            let term = |x: f64, y: f64| (x * y).powf(P);
            let area = 4.0 * PI * ((term(a, b) + term(a, c) + term(b, c)) / 3.0).powf(1.0 / P);
            let faces = b * c + a * c + a * b;
            let volume = a * b * c;
            let moment = |x: f64, y: f64| 0.2 * (x * x + y * y + 2.0 * volume * (x + y) / faces);
            Shape { extent: area, moments: Vector3::new(moment(b, c), moment(a, c), moment(a, b)) }
        }
        Kind::Box => {
            // Three pairs of rectangles; the second moment of x over the surface, and so on.
            let faces = Vector3::new(b * c, a * c, a * b) * 8.0;
            let area = faces.sum();
            let square = size.component_mul(&size);
            // A pair of faces at ±a has x² = a² throughout; on the other two pairs x² averages a²/3.
            let second = Vector3::from_fn(|i, _| square[i] * (faces[i] + (area - faces[i]) / 3.0) / area);
            let moments = Vector3::from_fn(|i, _| second.sum() - second[i]);
            Shape { extent: area, moments }
        }
        Kind::Cylinder => {
            let h = 2.0 * b;
            let (side, caps) = (2.0 * PI * a * h, 2.0 * PI * a * a);
            let area = side + caps;
            let across = side * (a * a / 2.0 + h * h / 12.0) + caps * (a * a / 4.0 + h * h / 4.0);
            let along = side * a * a + caps * a * a / 2.0;
            Shape { extent: area, moments: round(across / area, along / area) }
        }
        Kind::Capsule => {
            // A tube of length h between two half spheres, whose centres of mass lie a/2 beyond the ends of the tube.
            let h = 2.0 * b;
            let tube = Shape { extent: 2.0 * PI * a * h, moments: round(a * a / 2.0 + h * h / 12.0, a * a) };
            let sphere = shell(Kind::Sphere, size);
            combined(&tube, &sphere, h * h / 4.0 + a * h / 2.0)
        }
        Kind::Flat | Kind::Mesh => Shape { extent: 0.0, moments: Vector3::zeros() },
    }
}

/// Returns `factor · (b² + c², a² + c², a² + b²)`.
fn crossed(size: Vector3<f64>, factor: f64) -> Vector3<f64> {
    let s = size.component_mul(&size);
    Vector3::new(s.y + s.z, s.x + s.z, s.x + s.y) * factor
}

/// Returns the moments of a shape with rotational symmetry about z.
fn round(across: f64, along: f64) -> Vector3<f64> {
    Vector3::new(across, across, along)
}

/// Combines a middle part with two half balls at its ends; splitting the ball adds `spread` to its moments across z.
fn combined(middle: &Shape, ball: &Shape, spread: f64) -> Shape {
    let extent = middle.extent + ball.extent;
    let ball_moments = ball.moments + round(spread, 0.0);
    Shape { extent, moments: (middle.moments * middle.extent + ball_moments * ball.extent) / extent }
}
