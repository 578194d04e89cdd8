//! Bodies of a scene, and its units.

use super::stage::Stage;
use super::xform::Frame;
use crate::spatial::Pose;
use crate::{Error, Place, Result};

/// Size of the scene's units in SI units.
#[derive(Debug, Clone, Copy)]
pub(super) struct Units {
    /// Metres per unit.
    pub length: f64,
    /// Kilograms per unit.
    pub mass: f64,
}

impl Units {
    pub fn inertia(&self) -> f64 {
        self.mass * self.length.powi(2)
    }

    pub fn density(&self) -> f64 {
        self.mass / self.length.powi(3)
    }

    pub fn force(&self) -> f64 {
        self.mass * self.length
    }

    pub fn torque(&self) -> f64 {
        self.inertia()
    }
}

/// Rigid body.
pub(super) struct Body {
    pub node: usize,
    pub name: String,
    /// Frame in the world.
    pub pose: Pose<f64>,
    pub colliders: Vec<usize>,
}

/// Bodies of a scene.
pub(super) struct Robot<'s> {
    pub stage: &'s Stage,
    pub frames: Vec<Frame>,
    pub units: Units,
    pub bodies: Vec<Body>,
    pub warnings: Vec<String>,
    /// Index of the body that carries each prim.
    pub carriers: Vec<Option<usize>>,
}

impl<'s> Robot<'s> {
    /// Reads the bodies of a scene.
    pub fn new(stage: &'s Stage) -> Result<Self> {
        let layer = &stage.root_layer;
        let mut warnings = stage.warnings.clone();
        let length = layer.meters_per_unit.unwrap_or_else(|| {
            warnings.push("the scene has no metersPerUnit: taken as 0.01, the default of USD".to_owned());
            0.01
        });
        let units = Units { length, mass: layer.kilograms_per_unit.unwrap_or(1.0) };
        for (name, value) in [("metersPerUnit", units.length), ("kilogramsPerUnit", units.mass)] {
            if !(1e-9..1e9).contains(&value) {
                return Err(refused(format!("{name} is {value}, expected a number between 1e-9 and 1e9")));
            }
        }
        let frames = stage.frames()?;
        let mut out = Self { stage, frames, units, bodies: Vec::new(), warnings, carriers: Vec::new() };
        for (at, node) in stage.nodes.iter().enumerate() {
            let mut carrier = node.parent.and_then(|p| out.carriers[p]);
            if node.has_schema("PhysicsRigidBodyAPI") {
                let still = node.is_set("physics:rigidBodyEnabled")? == Some(false)
                    || node.is_set("physics:kinematicEnabled")? == Some(true);
                carrier = (!still).then_some(out.bodies.len());
                if !still {
                    let pose = out.frames[at].pose(node, units.length)?;
                    out.bodies.push(Body { node: at, name: String::new(), pose, colliders: Vec::new() });
                }
            }
            out.carriers.push(carrier);
            if let Some(body) = carrier.filter(|_| node.has_schema("PhysicsCollisionAPI")) {
                out.bodies[body].colliders.push(at);
            }
        }
        Ok(out)
    }

    /// Returns the body that carries a prim.
    pub fn body_of(&self, node: usize) -> Option<usize> {
        self.carriers[node]
    }
}

pub(super) fn refused(message: impl Into<String>) -> Error {
    Error::model(Place::default(), message)
}
