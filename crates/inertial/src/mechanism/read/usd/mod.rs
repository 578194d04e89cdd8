//! USD scenes with the physics schema, the robot format of Isaac Sim: text (`.usda`), crate files (`.usdc`) and packages (`.usdz`).
//!
//! The reader supports one robot: prims with `PhysicsRigidBodyAPI` are links, joints of the physics schema connect them, and
//! `excludeFromArticulation` marks those that close loops. Visuals, drives and all other content affect neither motion nor mass and
//! are ignored. The project has its own reader because the crate `openusd` needs a newer compiler and compiles 119 000 lines.
//!
//! - Layers, references, payloads, inherits, specializes and selected variants are composed, including files beside the model. Files
//!   that are not available are omitted with a warning.
//! - A joint between a body and nothing, or a prim that is not a body, fixes the body to the world. A robot without such a joint has
//!   a floating base.
//! - A link's frame has the axes of the prim and its origin at the joint's origin; if this differs from the prim's origin, the link
//!   `LINK.frame` marks the prim's frame. Coordinates are those of the joint's two frames; a joint whose second body is nearer the
//!   base keeps its sign.
//! - Lengths and masses are in the units of the scene (`metersPerUnit`, `kilogramsPerUnit`). Gravity points against `upAxis` unless
//!   the scene sets another direction.

mod asset_path;
mod binary;
mod bodies;
mod compression;
mod files;
mod joint;
mod layer;
mod mass;
mod package;
mod robot;
mod stage;
mod text;
mod values;
mod xform;

use super::{Include, MechanismBuilder};
use crate::Result;

/// Returns whether the bytes are a USD scene.
pub fn is_usd(bytes: &[u8]) -> bool {
    let start = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    start.starts_with(b"#usda") || bytes.starts_with(binary::MAGIC) || bytes.starts_with(package::MAGIC)
}

/// Reads a scene.
///
/// ```
/// use inertial::mechanism::read::{no_includes, usd};
/// let scene = r#"#usda 1.0
/// ( metersPerUnit = 1
///   upAxis = "Z" )
/// def Xform "rod" ( apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsMassAPI"] ) {
///   float physics:mass = 2
///   point3f physics:centerOfMass = (0, 0, -0.5)
///   float3 physics:diagonalInertia = (0.1, 0.1, 0.01)
/// }
/// def PhysicsRevoluteJoint "hinge" {
///   rel physics:body1 = </rod>
///   uniform token physics:axis = "X"
/// }
/// "#;
/// let rod = usd::read(scene.as_bytes(), &no_includes)?.build(&Default::default())?;
/// assert!((rod.bodies()[0].inertia.parameters()[4] - 0.6).abs() < 1e-6); // Ixx about the hinge
/// # Ok::<(), inertial::Error>(())
/// ```
pub fn read(bytes: &[u8], include: Include<'_>) -> Result<MechanismBuilder> {
    let stage = stage::compose(bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes), include)?;
    robot::read(&stage)
}
