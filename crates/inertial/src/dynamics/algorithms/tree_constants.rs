//! Constants of the bodies of a tree, arranged for the kernels of one configuration.

use nalgebra::{Matrix3, Vector3};

use crate::dynamics::displacement::{Angle, Displacement, Kind, Turn};
use crate::dynamics::simd::Four;
use crate::mechanism::{Body, Mechanism, Revision};

/// Constants of a mechanism.
#[derive(Debug, Clone)]
pub(crate) struct TreeConstants {
    revision: Revision,
    /// Constants of each body, in the order of the bodies of the mechanism.
    pub bodies: Vec<BodyConstants>,
    /// Free modes `[angular, linear]` in the body frame, per unit of the velocity coordinates of the mechanism.
    pub modes: Vec<[Four; 2]>,
    /// Angles whose sines and cosines are needed.
    pub angles: Vec<Angle>,
    pub gravity: Four,
    /// Whether no two joints share a coordinate.
    pub uncoupled: bool,
}

/// Constants of a body and its joint. Matrices are stored by columns.
#[derive(Debug, Clone)]
pub(crate) struct BodyConstants {
    pub kind: Kind,
    /// Index of the parent plus one; zero is the ground.
    pub parent: usize,
    /// First velocity coordinate.
    pub v: usize,
    /// First mode and number of modes.
    pub mode: usize,
    pub mode_count: usize,
    pub turn: Turn,
    /// Rotation to the parent: `cos · [0] + sin · [1] + [2]` (`Quaternion`: `[2]` times that of the quaternion).
    pub rotations: [[Four; 3]; 3],
    /// Origin in the parent frame at zero displacements.
    pub origin: Four,
    /// Directions `slides[k]` along which the displacement `ratio · q + offset` of coordinate `slide_q + k` moves the
    /// origin.
    pub slides: [Four; 3],
    pub slide_count: usize,
    pub slide_q: usize,
    pub ratio: f64,
    pub offset: f64,
    pub mass: f64,
    pub first_moment: Four,
    pub rotational: [Four; 3],
}

impl TreeConstants {
    pub fn new(mechanism: &Mechanism) -> Self {
        let mut out = Self {
            revision: mechanism.revision(),
            bodies: Vec::with_capacity(mechanism.bodies().len()),
            modes: Vec::new(),
            angles: Vec::new(),
            gravity: vector(&mechanism.gravity()),
            uncoupled: false,
        };
        for body in mechanism.bodies() {
            out.add(body);
        }
        out.uncoupled = out.modes.len() == mechanism.nv();
        out
    }

    /// Recomputes the constants if they belong to another mechanism.
    pub fn update(&mut self, mechanism: &Mechanism) {
        if self.revision != mechanism.revision() {
            *self = Self::new(mechanism);
        }
    }

    fn add(&mut self, body: &Body) {
        let displacement = Displacement::new(body, &mut self.angles);
        let drive = &body.drive;
        let modes = body.joint_type.free_modes();
        self.bodies.push(BodyConstants {
            kind: displacement.kind,
            parent: body.parent.map_or(0, |p| p + 1),
            v: drive.v,
            mode: self.modes.len(),
            mode_count: modes.len(),
            turn: displacement.turn,
            rotations: displacement.rotations.map(|m| columns(&m)),
            origin: vector(&body.placement.translation),
            slides: displacement.slides.map(|s| vector(&s)),
            slide_count: displacement.slide_count,
            slide_q: displacement.slide_q,
            ratio: drive.ratio,
            offset: drive.offset,
            mass: body.inertia.mass,
            first_moment: vector(&body.inertia.first_moment),
            rotational: columns(&body.inertia.rotational),
        });
        let scaled =
            modes.iter().map(|m| [vector(&(m.angular * drive.ratio)), vector(&(m.linear * drive.ratio))]);
        self.modes.extend(scaled);
    }
}

fn vector(x: &Vector3<f64>) -> Four {
    Four([x.x, x.y, x.z, 0.0])
}

fn columns(m: &Matrix3<f64>) -> [Four; 3] {
    std::array::from_fn(|k| Four([m[(0, k)], m[(1, k)], m[(2, k)], 0.0]))
}
