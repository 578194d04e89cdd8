//! Mechanisms: bodies, joints, rotors and loops, validated once and then constant.
//!
//! A [`MechanismBuilder`] holds the unchecked description from a file or a program. [`MechanismBuilder::build`]
//! validates it, lumps links connected by fixed joints, splits universal joints in two and numbers the coordinates.

mod assembled;
mod body_plan;
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
pub use geometry::{BodyGeometry, Geometry, Pivoting};
pub use joint::{JointType, Modes, plane_directions, rotation_about};
pub(crate) use orientation::turn as turn_about;
pub(crate) use part::Part;
pub use relations::AssumedRelation;
pub use shapes::{CollisionShape, Shape, ShapeSpec};
pub use snap::{DEFAULT_SNAP, ExactGeometry, ROUNDING};

use crate::spatial::{Inertia, Motion, PARAMETER_NAMES, Pose};

/// Type of base.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Base {
    /// Base that does not move.
    Fixed,
    /// Base that moves freely in space; it is the first body.
    Floating,
}

/// Kind of a [`Body`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyKind {
    /// Link with everything that is fixed to it: ten parameters.
    Link,
    /// Geared rotor without symmetry: ten parameters.
    Rotor,
    /// Rotor that is symmetric about its axis (`z` of its frame): one parameter, `Izz`; the other parameters are part
    /// of the carrier.
    SymmetricRotor,
    /// Massless body between two joints of one link (universal joints, several MJCF joints, a joint that follows
    /// several others): no parameters.
    Massless,
}

/// Relation of a joint to a coordinate of the mechanism: `q_joint = ratio · q + offset`.
///
/// A joint that follows several coordinates is replaced by several joints in series, one per coordinate, with massless
/// bodies between them. Joints with several degrees of freedom are never coupled: their ratio is one and their offset
/// zero.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Drive {
    /// First position coordinate.
    pub q: usize,
    /// First velocity coordinate.
    pub v: usize,
    /// Speed of the joint per unit speed of the coordinate.
    pub ratio: f64,
    /// Position of the joint at zero coordinate.
    pub offset: f64,
}

/// Moving rigid body with the joint that connects it to its parent.
#[derive(Debug, Clone)]
pub struct Body {
    /// Name of the link nearest the base (rotors: `JOINT.rotor`).
    pub name: String,
    /// Kind of the body.
    pub kind: BodyKind,
    /// Parent body; `None` is the ground. Always smaller than the body's own index.
    pub parent: Option<usize>,
    /// Frame of the body at zero, in its parent's frame.
    pub placement: Pose<f64>,
    /// Joint type, never `Fixed` or `Universal`.
    pub joint_type: JointType,
    /// Coordinates that move the body.
    pub drive: Drive,
    /// Rounding of placement and axis; `None` if unknown.
    pub rounding: Option<Rounding>,
    /// Sum of the lengths that make up the placement (fixed joints included), the scale of its rounding error.
    pub path: f64,
    /// Inertia given by the model, about the body's frame.
    pub inertia: Inertia<f64>,
    /// Index in [`Mechanism::joints`] of the body's joint (rotors: of the driven joint).
    pub joint: usize,
}

impl Body {
    /// Returns the body's frame in its parent's frame at the mechanism's coordinates `q` (all of them).
    #[inline]
    pub fn pose(&self, q: &[f64]) -> Pose<f64> {
        let Drive { q: first, ratio, offset, .. } = self.drive;
        let moved = match self.joint_type.nq() {
            1 => self.joint_type.pose(&[ratio * q[first] + offset]),
            n => self.joint_type.pose(&q[first..first + n]),
        };
        self.placement * moved
    }

    /// Computes `Φ v`, the contribution of the joint to the body's twist at the mechanism's velocities `v` (or to its
    /// acceleration).
    #[inline]
    pub fn joint_motion(&self, v: &[f64]) -> Motion<f64> {
        let modes = self.joint_type.free_modes();
        modes
            .iter()
            .zip(&v[self.drive.v..])
            .fold(Motion::zero(), |sum, (mode, v)| sum + *mode * (self.drive.ratio * v))
    }

    /// Returns the range of velocity coordinates that move the body.
    #[inline]
    pub fn v_range(&self) -> std::ops::Range<usize> {
        self.drive.v..self.drive.v + self.joint_type.nv()
    }
}

impl Body {
    /// Returns the number of parameters: ten, one for a symmetric rotor, zero for a massless body.
    pub fn parameter_count(&self) -> usize {
        match self.kind {
            BodyKind::Link | BodyKind::Rotor => 10,
            BodyKind::SymmetricRotor => 1,
            BodyKind::Massless => 0,
        }
    }
}

/// Joint of the description with its coordinates.
#[derive(Debug, Clone)]
pub struct Joint {
    /// Name of the joint.
    pub name: String,
    /// Joint type; may be `Universal`.
    pub joint_type: JointType,
    /// Body after the joint.
    pub body: usize,
    /// First position coordinate.
    pub q: usize,
    /// First velocity coordinate.
    pub v: usize,
    /// Limits of motion, speed and effort.
    pub limits: Limits,
    /// Friction, damping, armature, spring.
    pub dynamics: JointDynamics,
    /// Leader whose coordinate the joint follows (the first of several); `None` if the joint has its own coordinates.
    pub follows: Option<usize>,
}

impl Joint {
    /// Returns the range of position coordinates.
    pub fn q_range(&self) -> std::ops::Range<usize> {
        self.q..self.q + self.joint_type.nq()
    }

    /// Returns the range of velocity coordinates.
    pub fn v_range(&self) -> std::ops::Range<usize> {
        self.v..self.v + self.joint_type.nv()
    }
}

/// Link of the description, with the body that contains it.
#[derive(Debug, Clone)]
pub struct Link {
    /// Name of the link.
    pub name: String,
    /// Body that contains the link; `None` is the ground.
    pub body: Option<usize>,
    /// Frame of the link in the body's frame (world frame for the ground).
    pub pose: Pose<f64>,
    /// Inertia in the link's own frame, if the description gives one.
    pub inertia: Option<Inertia<f64>>,
    /// Line in the description.
    pub line: Option<u32>,
}

/// One side of a loop joint.
#[derive(Debug, Clone)]
pub struct LoopFrame {
    /// Body; `None` is the ground.
    pub body: Option<usize>,
    /// Frame of the joint on that body.
    pub pose: Pose<f64>,
}

/// Joint that closes a loop: the successor frame moves relative to the predecessor frame as the type allows.
#[derive(Debug, Clone)]
pub struct LoopJoint {
    /// Name of the joint.
    pub name: String,
    /// Joint type; axes are in the predecessor's frame.
    pub joint_type: JointType,
    /// Side that acts as the parent.
    pub predecessor: LoopFrame,
    /// Side that acts as the child.
    pub successor: LoopFrame,
}

/// Reaction wheel: it exchanges angular momentum with its carrier, and its speed is known.
///
/// The mass and the locked inertia of the wheel are part of the carrier, so a wheel adds no parameter. At the speed
/// `rate` relative to the carrier it has the additional angular momentum `inertia · rate · axis`.
#[derive(Debug, Clone, PartialEq)]
pub struct Wheel {
    /// Name of the wheel.
    pub name: String,
    /// Body that carries the wheel.
    pub body: usize,
    /// Unit axis in that body's frame.
    pub axis: Vector3<f64>,
    /// Inertia about the axis (kg m²).
    pub inertia: f64,
    /// Maximum speed and torque.
    pub limits: Limits,
}

/// Columns of the full parameter vector that belong to one body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ParameterBlock {
    /// Index of the body.
    pub body: usize,
    /// First column.
    pub offset: usize,
    /// Number of columns: ten, or one (`Izz`) for a symmetric rotor.
    pub len: usize,
}

/// Validated, constant model of a robot, which can be shared between threads.
///
/// [`Mechanism::bodies`] lists links first, in the order of the description except that parents precede children, then
/// rotors.
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

/// Identity of the constants of a mechanism; clones share it, modified mechanisms get a new one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Revision(u64);

impl Revision {
    /// Returns a new, unique revision.
    pub fn next() -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        Self(COUNT.fetch_add(1, Ordering::Relaxed))
    }
}

impl Mechanism {
    /// Returns the identity of the constants of this mechanism, for tables computed from them.
    pub(crate) fn revision(&self) -> Revision {
        self.revision
    }

    /// Returns the name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the gravitational acceleration in the world frame (m/s²).
    pub fn gravity(&self) -> Vector3<f64> {
        self.gravity
    }

    /// Returns the mechanism with another gravity.
    pub fn with_gravity(mut self, gravity: Vector3<f64>) -> Self {
        self.gravity = gravity;
        self.revision = Revision::next();
        self
    }

    /// Returns all moving bodies: links in the order of the description (parents before children), then rotors.
    pub fn bodies(&self) -> &[Body] {
        &self.bodies
    }

    /// Returns the number of bodies that are not rotors (they come first).
    pub fn link_bodies(&self) -> usize {
        self.link_bodies
    }

    /// Returns the joints with motion, in the order of their coordinates (followers included).
    pub fn joints(&self) -> &[Joint] {
        &self.joints
    }

    /// Returns the bodies that a joint adds between its parent link and its child link: one per coordinate of a
    /// universal joint or per coordinate that the joint follows, the link itself last.
    ///
    /// # Panics
    /// Panics if there is no such joint.
    pub fn joint_bodies(&self, joint: usize) -> &[Body] {
        let last = self.joints[joint].body;
        let others = self.bodies[..last].iter().rev().take_while(|b| b.joint == joint).count();
        &self.bodies[last - others..=last]
    }

    /// Returns all links of the description.
    pub fn links(&self) -> &[Link] {
        &self.links
    }

    /// Returns the collision shapes that are not meshes.
    pub fn shapes(&self) -> &[CollisionShape] {
        &self.shapes
    }

    /// Returns the joints that close loops.
    pub fn loops(&self) -> &[LoopJoint] {
        &self.loops
    }

    /// Returns the reaction wheels.
    pub fn wheels(&self) -> &[Wheel] {
        &self.wheels
    }

    /// Returns the number of position coordinates of the tree.
    pub fn nq(&self) -> usize {
        self.nq
    }

    /// Returns the number of velocity coordinates of the tree.
    pub fn nv(&self) -> usize {
        self.nv
    }

    /// Returns for each velocity coordinate whether it must be independent or dependent; `None` leaves the choice to
    /// the loop analysis.
    pub fn independent_marks(&self) -> &[Option<bool>] {
        &self.independent
    }

    /// Returns the position coordinates of the assembled mechanism (a starting guess if there are loops).
    pub fn assembly(&self) -> &[f64] {
        &self.assembly
    }

    /// Returns the inertia added to each velocity coordinate (MJCF's `armature`, kg m² or kg).
    pub fn armature(&self) -> &[f64] {
        &self.armature
    }

    /// Returns the warnings of the reader and the builder.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Returns the type of base: floating if the first body floats and carries all others.
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

    /// Returns the columns of the full parameter vector that belong to each body.
    pub fn parameter_blocks(&self) -> &[ParameterBlock] {
        &self.blocks
    }

    /// Returns the length of the full parameter vector.
    pub fn parameter_count(&self) -> usize {
        self.blocks.last().map_or(0, |b| b.offset + b.len)
    }

    /// Returns the full parameter vector with the values of the model.
    pub fn parameters(&self) -> Vec<f64> {
        let mut out = vec![0.0; self.parameter_count()];
        for block in &self.blocks {
            let p = self.bodies[block.body].inertia.parameters();
            out[block.offset..block.offset + block.len].copy_from_slice(&p.as_slice()[10 - block.len..]);
        }
        out
    }

    /// Returns the mechanism with other parameter values (in the order of [`Mechanism::parameters`]).
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

    /// Returns the names of the entries of the full parameter vector, `BODY.NAME`.
    pub fn parameter_names(&self) -> Vec<String> {
        let mut out = Vec::with_capacity(self.parameter_count());
        for block in &self.blocks {
            let body = &self.bodies[block.body].name;
            out.extend(PARAMETER_NAMES[10 - block.len..].iter().map(|p| format!("{body}.{p}")));
        }
        out
    }

    /// Returns the names of the velocity coordinates: the joint's name, with a suffix if the joint has several.
    pub fn velocity_names(&self) -> Vec<String> {
        self.coordinate_names_by(JointType::velocity_suffixes)
    }

    /// Returns the names of the forces of the velocity coordinates: those of the coordinates, but `root.fx … root.tz` for the
    /// wrench of a floating joint.
    pub fn force_names(&self) -> Vec<String> {
        self.coordinate_names_by(JointType::force_suffixes)
    }

    /// Returns the names of the position coordinates: the joint's name, with a suffix if the joint has several.
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

    /// Returns the position coordinates of zero displacement (unit quaternions).
    pub fn neutral(&self) -> Vec<f64> {
        let mut q = vec![0.0; self.nq];
        for joint in self.joints.iter().filter(|j| j.follows.is_none()) {
            joint.joint_type.neutral(&mut q[joint.q_range()]);
        }
        q
    }

    /// Integrates the velocity `v` for unit time and updates `q`, joint by joint.
    ///
    /// # Panics
    /// Panics if `q` has fewer than [`Mechanism::nq`] or `v` fewer than [`Mechanism::nv`] entries.
    pub fn integrate(&self, q: &mut [f64], v: &[f64]) {
        for joint in self.joints.iter().filter(|j| j.follows.is_none()) {
            joint.joint_type.integrate(&mut q[joint.q_range()], &v[joint.v_range()]);
        }
    }
}
