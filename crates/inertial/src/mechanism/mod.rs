//! A mechanism: bodies, joints, rotors and loops, validated once and then constant.
//!
//! A [`MechanismBuilder`] holds what a file (or a programmer) says; [`MechanismBuilder::build`] checks it, lumps links
//! joined by fixed joints, splits universal joints in two and numbers the coordinates.

mod assembled;
mod build;
mod builder;
pub mod builtin;
mod chain;
mod closing;
mod exact;
mod geometry;
mod joint;
mod orientation;
mod part;
pub mod read;
mod relations;
mod shapes;
mod snap;
pub mod write;

use std::sync::atomic::{AtomicU64, Ordering};

use nalgebra::Vector3;

pub use assembled::{Assembled, AssembledBody, AssembledLoop, ExactAssembly};
pub use builder::{
    ASSUMED_RATIO, BuildOptions, JointDynamics, JointSpec, Limits, LinkSpec, LoopEnd, LoopSpec,
    MechanismBuilder, Mimic, RotorModel, RotorSpec, Rounding, WheelSpec,
};
pub use closing::{Closing, Equations};
pub(crate) use exact::gcd;
pub use exact::{Angle, Surd};
pub(crate) use geometry::turn as turn_about;
pub use geometry::{BodyGeometry, Geometry, Pivoting};
pub use joint::{JointType, Modes, plane_directions, rotation_about};
pub(crate) use part::Part;
pub use relations::AssumedRelation;
pub use shapes::{CollisionShape, Shape, ShapeSpec};
pub use snap::{DEFAULT_SNAP, ExactGeometry, ROUNDING};

use crate::spatial::{Inertia, Motion, PARAMETER_NAMES, Pose};

/// Whether the robot's root is bolted down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Base {
    /// The root does not move.
    Fixed,
    /// The first body moves freely in space.
    Floating,
}

/// What a [`Body`] stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyKind {
    /// A link, with all that is fixed to it: ten parameters.
    Link,
    /// A geared rotor without symmetry: ten parameters.
    Rotor,
    /// A rotor that is symmetric about its axis (`z` of its frame): one parameter, `Izz`; the rest belongs to its carrier.
    SymmetricRotor,
    /// The massless piece between two joints of one link (universal joints, several MJCF joints, a joint that follows
    /// several others): no parameter.
    Massless,
}

/// How a body's joint follows the mechanism's coordinates: `q_joint = ratio · q + offset`.
///
/// A joint that follows several coordinates is several in line, one for each, with massless pieces between them.
/// Joints of several degrees of freedom are never coupled: their ratio is one and their offset zero.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Drive {
    /// First position coordinate.
    pub q: usize,
    /// First velocity coordinate.
    pub v: usize,
    /// Speed of this joint per unit of the coordinate's.
    pub ratio: f64,
    /// Position of this joint where the coordinate is zero.
    pub offset: f64,
}

/// A rigid body that moves, with the one joint that connects it to its parent.
#[derive(Debug, Clone)]
pub struct Body {
    /// Name of the link nearest the base (of a rotor: `JOINT.rotor`).
    pub name: String,
    /// What it stands for.
    pub kind: BodyKind,
    /// The body before the joint; `None` is the ground. Always smaller than the body's own index.
    pub parent: Option<usize>,
    /// The body's frame at zero, in its parent's frame.
    pub placement: Pose<f64>,
    /// The joint, never `Fixed` or `Universal`.
    pub joint_type: JointType,
    /// The coordinates that move it.
    pub drive: Drive,
    /// How its placement and axis were rounded; `None` where nobody knows.
    pub rounding: Option<Rounding>,
    /// Sum of the lengths that its placement was composed of (fixed joints included): the scale of its rounding.
    pub path: f64,
    /// Inertia as the model gives it, about the body's frame.
    pub inertia: Inertia<f64>,
    /// Index in [`Mechanism::joints`] of the joint it belongs to (of a rotor: the joint it drives).
    pub joint: usize,
}

impl Body {
    /// The body's frame in its parent's frame at the mechanism's coordinates `q` (all of them).
    #[inline]
    pub fn pose(&self, q: &[f64]) -> Pose<f64> {
        let Drive { q: first, ratio, offset, .. } = self.drive;
        let moved = match self.joint_type.nq() {
            1 => self.joint_type.pose(&[ratio * q[first] + offset]),
            n => self.joint_type.pose(&q[first..first + n]),
        };
        self.placement * moved
    }

    /// `Φ v`: the joint's part of the body's twist at the mechanism's velocities `v` (or of its acceleration).
    #[inline]
    pub fn joint_motion(&self, v: &[f64]) -> Motion<f64> {
        let modes = self.joint_type.free_modes();
        modes
            .iter()
            .zip(&v[self.drive.v..])
            .fold(Motion::zero(), |sum, (mode, v)| sum + *mode * (self.drive.ratio * v))
    }

    /// The velocity coordinates that move it.
    #[inline]
    pub fn v_range(&self) -> std::ops::Range<usize> {
        self.drive.v..self.drive.v + self.joint_type.nv()
    }
}

impl Body {
    /// Number of its parameters: ten, one for a symmetric rotor, none for a massless piece.
    pub fn parameter_count(&self) -> usize {
        match self.kind {
            BodyKind::Link | BodyKind::Rotor => 10,
            BodyKind::SymmetricRotor => 1,
            BodyKind::Massless => 0,
        }
    }
}

/// A joint as described, with its coordinates.
#[derive(Debug, Clone)]
pub struct Joint {
    /// Its name.
    pub name: String,
    /// Its type (also `Universal`).
    pub joint_type: JointType,
    /// The body after it.
    pub body: usize,
    /// First position coordinate.
    pub q: usize,
    /// First velocity coordinate.
    pub v: usize,
    /// Limits of motion, speed and effort.
    pub limits: Limits,
    /// Friction, damping, armature, spring.
    pub dynamics: JointDynamics,
    /// The joint whose coordinate it follows (the first of several), where it has none of its own.
    pub follows: Option<usize>,
}

impl Joint {
    /// Range of its position coordinates.
    pub fn q_range(&self) -> std::ops::Range<usize> {
        self.q..self.q + self.joint_type.nq()
    }

    /// Range of its velocity coordinates.
    pub fn v_range(&self) -> std::ops::Range<usize> {
        self.v..self.v + self.joint_type.nv()
    }
}

/// A link of the description: where it ended up, and what the description says of it.
#[derive(Debug, Clone)]
pub struct Link {
    /// Its name.
    pub name: String,
    /// The body it belongs to; `None` is the ground.
    pub body: Option<usize>,
    /// Its frame in the body's frame (in the world for the ground).
    pub pose: Pose<f64>,
    /// Its own inertia in its own frame, where the description gives one.
    pub inertia: Option<Inertia<f64>>,
    /// Line of the description.
    pub line: Option<u32>,
}

/// One side of a loop joint.
#[derive(Debug, Clone)]
pub struct LoopFrame {
    /// The body; `None` is the ground.
    pub body: Option<usize>,
    /// The joint's frame on that body.
    pub pose: Pose<f64>,
}

/// A joint that closes a loop: the successor frame moves in the predecessor frame as the type allows.
#[derive(Debug, Clone)]
pub struct LoopJoint {
    /// Its name.
    pub name: String,
    /// Its type; axes are in the predecessor's frame.
    pub joint_type: JointType,
    /// The side that counts as the parent.
    pub predecessor: LoopFrame,
    /// The side that counts as the child.
    pub successor: LoopFrame,
}

/// A reaction wheel: it exchanges angular momentum with its carrier, and its speed is known.
///
/// Its mass and its inertia when locked are the carrier's, so it adds no parameter; turning at `rate` relative to the
/// carrier it holds the angular momentum `inertia · rate · axis` beyond that.
#[derive(Debug, Clone, PartialEq)]
pub struct Wheel {
    /// Its name.
    pub name: String,
    /// The body that carries it.
    pub body: usize,
    /// Its unit axis in that body's frame.
    pub axis: Vector3<f64>,
    /// Its inertia about the axis (kg m²).
    pub inertia: f64,
    /// Its greatest speed and torque.
    pub limits: Limits,
}

/// Columns of the full parameter vector that belong to one body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ParameterBlock {
    /// The body.
    pub body: usize,
    /// First column.
    pub offset: usize,
    /// Ten, or one (`Izz`) for a symmetric rotor.
    pub len: usize,
}

/// A robot: constant, validated, shared between threads.
///
/// Links come first in [`Mechanism::bodies`], in the order of the description but none before its parent, then rotors.
#[derive(Debug, Clone)]
pub struct Mechanism {
    pub(crate) name: String,
    pub(crate) gravity: Vector3<f64>,
    pub(crate) bodies: Vec<Body>,
    pub(crate) joints: Vec<Joint>,
    pub(crate) links: Vec<Link>,
    pub(crate) shapes: Vec<CollisionShape>,
    pub(crate) loops: Vec<LoopJoint>,
    pub(crate) wheels: Vec<Wheel>,
    pub(crate) blocks: Vec<ParameterBlock>,
    pub(crate) link_bodies: usize,
    pub(crate) independent: Vec<Option<bool>>,
    pub(crate) assembly: Vec<f64>,
    pub(crate) armature: Vec<f64>,
    pub(crate) nq: usize,
    pub(crate) nv: usize,
    pub(crate) warnings: Vec<String>,
    pub(crate) revision: Revision,
}

/// Identity of the constants of a mechanism: clones share it, changed mechanisms have another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Revision(u64);

impl Revision {
    /// Returns a revision that no other mechanism has.
    pub fn next() -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        Self(COUNT.fetch_add(1, Ordering::Relaxed))
    }
}

impl Mechanism {
    /// Identity of the constants of this mechanism, for tables made from them.
    pub(crate) fn revision(&self) -> Revision {
        self.revision
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Gravitational acceleration in the world frame (m/s²).
    pub fn gravity(&self) -> Vector3<f64> {
        self.gravity
    }

    /// The same mechanism under another gravity.
    pub fn with_gravity(mut self, gravity: Vector3<f64>) -> Self {
        self.gravity = gravity;
        self.revision = Revision::next();
        self
    }

    /// Everything that moves: links in the order of the description but none before its parent, then rotors.
    pub fn bodies(&self) -> &[Body] {
        &self.bodies
    }

    /// Number of bodies that are not rotors (they come first).
    pub fn link_bodies(&self) -> usize {
        self.link_bodies
    }

    /// Joints with motion, in the order of their coordinates (followers included).
    pub fn joints(&self) -> &[Joint] {
        &self.joints
    }

    /// The bodies between the link before a joint and the one after it: one for each coordinate that a universal joint has
    /// or that a joint follows, the link itself last.
    ///
    /// # Panics
    /// Where there is no such joint.
    pub fn pieces(&self, joint: usize) -> &[Body] {
        let last = self.joints[joint].body;
        let others = self.bodies[..last].iter().rev().take_while(|b| b.joint == joint).count();
        &self.bodies[last - others..=last]
    }

    /// All links of the description.
    pub fn links(&self) -> &[Link] {
        &self.links
    }

    /// Collision shapes that are no meshes.
    pub fn shapes(&self) -> &[CollisionShape] {
        &self.shapes
    }

    /// The joints that close loops.
    pub fn loops(&self) -> &[LoopJoint] {
        &self.loops
    }

    /// The reaction wheels.
    pub fn wheels(&self) -> &[Wheel] {
        &self.wheels
    }

    /// Number of position coordinates of the tree.
    pub fn nq(&self) -> usize {
        self.nq
    }

    /// Number of velocity coordinates of the tree.
    pub fn nv(&self) -> usize {
        self.nv
    }

    /// For each velocity coordinate: must it be (in)dependent where loops leave a choice?
    pub fn independent_marks(&self) -> &[Option<bool>] {
        &self.independent
    }

    /// Position coordinates of the assembled mechanism (a guess where there are loops).
    pub fn assembly(&self) -> &[f64] {
        &self.assembly
    }

    /// Inertia added to each velocity coordinate (MJCF's `armature`, kg m² or kg).
    pub fn armature(&self) -> &[f64] {
        &self.armature
    }

    /// What the reader or the builder wants people to know.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Whether the first body floats and carries all others.
    pub fn base(&self) -> Base {
        match self.bodies.split_first() {
            Some((first, others))
                if first.joint_type == JointType::Floating && others.iter().all(|b| b.parent.is_some()) =>
            {
                Base::Floating
            }
            _ => Base::Fixed,
        }
    }

    /// Which columns of the full parameter vector belong to which body.
    pub fn parameter_blocks(&self) -> &[ParameterBlock] {
        &self.blocks
    }

    /// Length of the full parameter vector.
    pub fn parameter_count(&self) -> usize {
        self.blocks.last().map_or(0, |b| b.offset + b.len)
    }

    /// The full parameter vector, as the model gives it.
    pub fn parameters(&self) -> Vec<f64> {
        let mut out = vec![0.0; self.parameter_count()];
        for block in &self.blocks {
            let p = self.bodies[block.body].inertia.parameters();
            out[block.offset..block.offset + block.len].copy_from_slice(&p.as_slice()[10 - block.len..]);
        }
        out
    }

    /// The same mechanism with other parameter values (in the order of [`Mechanism::parameters`]).
    pub fn with_parameters(mut self, values: &[f64]) -> crate::Result<Self> {
        let expected = self.parameter_count();
        if values.len() != expected {
            return Err(crate::Error::Dimension { what: "parameter vector", expected, found: values.len() });
        }
        for block in &self.blocks {
            let mut p = crate::spatial::Parameters::zeros();
            p.as_mut_slice()[10 - block.len..]
                .copy_from_slice(&values[block.offset..block.offset + block.len]);
            self.bodies[block.body].inertia = Inertia::from_parameters(&p);
        }
        self.revision = Revision::next();
        Ok(self)
    }

    /// Names of the full parameter vector, `BODY.NAME`.
    pub fn parameter_names(&self) -> Vec<String> {
        let mut out = Vec::with_capacity(self.parameter_count());
        for block in &self.blocks {
            let body = &self.bodies[block.body].name;
            out.extend(PARAMETER_NAMES[10 - block.len..].iter().map(|p| format!("{body}.{p}")));
        }
        out
    }

    /// Names of the velocity coordinates: the joint's name, with a suffix where it has several.
    pub fn velocity_names(&self) -> Vec<String> {
        self.coordinate_names_by(JointType::velocity_suffixes)
    }

    /// Names of the position coordinates: the joint's name, with a suffix where it has several.
    pub fn position_names(&self) -> Vec<String> {
        self.coordinate_names_by(JointType::coordinate_suffixes)
    }

    fn coordinate_names_by(&self, suffixes: fn(&JointType) -> &'static [&'static str]) -> Vec<String> {
        let mut out = Vec::new();
        for joint in self.joints.iter().filter(|j| j.follows.is_none()) {
            match suffixes(&joint.joint_type) {
                [] => out.push(joint.name.clone()),
                several => out.extend(several.iter().map(|s| format!("{}.{s}", joint.name))),
            }
        }
        out
    }

    /// Position coordinates of no displacement (unit quaternions).
    pub fn neutral(&self) -> Vec<f64> {
        let mut q = vec![0.0; self.nq];
        for joint in self.joints.iter().filter(|j| j.follows.is_none()) {
            joint.joint_type.neutral(&mut q[joint.q_range()]);
        }
        q
    }

    /// Moves `q` along the velocity `v` for unit time, joint by joint.
    ///
    /// # Panics
    /// Where `q` has fewer than [`Mechanism::nq`] or `v` fewer than [`Mechanism::nv`] entries.
    pub fn integrate(&self, q: &mut [f64], v: &[f64]) {
        for joint in self.joints.iter().filter(|j| j.follows.is_none()) {
            joint.joint_type.integrate(&mut q[joint.q_range()], &v[joint.v_range()]);
        }
    }
}
