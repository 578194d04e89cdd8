//! Unchecked description of a mechanism, filled by the readers or by the user.

use std::collections::{HashMap, HashSet};

use nalgebra::Vector3;

use super::{Base, JointType, ShapeSpec};
use crate::spatial::{Inertia, Pose};

/// Limits of one joint; infinite if the model gives none. They apply to each coordinate of the joint.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Limits {
    /// Lowest position (rad or m).
    pub lower: f64,
    /// Highest position (rad or m).
    pub upper: f64,
    /// Highest speed (rad/s or m/s).
    pub velocity: f64,
    /// Highest torque or force (N m or N).
    pub effort: f64,
}

crate::with_changes!(Limits);

impl Default for Limits {
    fn default() -> Self {
        let inf = f64::INFINITY;
        Self { lower: -inf, upper: inf, velocity: inf, effort: inf }
    }
}

impl Limits {
    /// Returns the highest speed (rad/s or m/s) if the model gives one; files use zero for unknown values.
    pub fn given_velocity(&self) -> Option<f64> {
        given(self.velocity)
    }

    /// Returns the highest torque or force (N m or N) if the model gives one.
    pub fn given_effort(&self) -> Option<f64> {
        given(self.effort)
    }
}

fn given(limit: f64) -> Option<f64> {
    (limit > 0.0 && limit.is_finite()).then_some(limit)
}

/// Passive dynamics of a joint: damping, friction, armature and spring.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[non_exhaustive]
pub struct JointDynamics {
    /// Viscous damping (N m s/rad or N s/m).
    pub damping: f64,
    /// Coulomb friction (N m or N).
    pub friction: f64,
    /// Inertia added at the joint (kg m² or kg).
    pub armature: f64,
    /// Spring stiffness (N m/rad or N/m).
    pub stiffness: f64,
    /// Rest position of the spring.
    pub rest: f64,
}

crate::with_changes!(JointDynamics);

/// Coupling of a joint to others: `q = Σ ratio · q_leader + offset` (URDF's `<mimic>` has one leader).
#[derive(Debug, Clone, PartialEq)]
pub struct Mimic {
    /// Leading joints, each with the speed of the follower per unit speed of the leader.
    pub leaders: Vec<(String, f64)>,
    /// Position of the follower with all leaders at zero.
    pub offset: f64,
}

impl Mimic {
    /// Creates the coupling to one joint.
    pub fn new(joint: impl Into<String>, ratio: f64, offset: f64) -> Self {
        Self { leaders: vec![(joint.into(), ratio)], offset }
    }
}

/// Bounds of the rounding errors in the numbers of a joint, caused by the limited decimals in the file.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Rounding {
    /// Error of the frame's rotation and of the axis direction (radians).
    pub angle: f64,
    /// Error of the frame's position.
    pub length: f64,
    /// Error of the axis direction alone (radians).
    pub axis: f64,
    /// Unit of the last decimal of all angles in the file (radians) if they are rounded so coarsely that special
    /// positions cannot be distinguished from neighbouring ones; zero for other files.
    pub coarse: f64,
}

/// Description of a link.
#[derive(Debug, Clone)]
pub struct LinkSpec {
    /// Name of the link.
    pub name: String,
    /// Inertia in the link's own frame; `None` if the model gives none.
    pub inertia: Option<Inertia<f64>>,
    /// Line in the description.
    pub line: Option<u32>,
}

/// Description of a joint.
#[derive(Debug, Clone)]
pub struct JointSpec {
    /// Name of the joint.
    pub name: String,
    /// Type of the joint.
    pub joint_type: JointType,
    /// Name of the parent link.
    pub parent: String,
    /// Name of the child link; its frame is the joint's frame at zero.
    pub child: String,
    /// Frame of the joint in the parent link's frame.
    pub origin: Pose<f64>,
    /// Limits of motion, speed and effort.
    pub limits: Limits,
    /// Friction, damping, armature, spring.
    pub dynamics: JointDynamics,
    /// Coupling to other joints, if any.
    pub mimic: Option<Mimic>,
    /// Whether the coordinates are independent or dependent in loops; `None` leaves the choice open.
    pub independent: Option<bool>,
    /// Rounding of origin and axis; `None` if unknown.
    pub rounding: Option<Rounding>,
    /// Line in the description.
    pub line: Option<u32>,
}

impl JointSpec {
    /// Creates a joint of the given type between two links, at the parent's frame, without limits.
    pub fn new(
        name: impl Into<String>,
        joint_type: JointType,
        parent: impl Into<String>,
        child: impl Into<String>,
    ) -> Self {
        Self {
            name: name.into(),
            joint_type,
            parent: parent.into(),
            child: child.into(),
            origin: Pose::identity(),
            limits: Limits::default(),
            dynamics: JointDynamics::default(),
            mimic: None,
            independent: None,
            rounding: None,
            line: None,
        }
    }

    /// Places the joint in the parent link's frame.
    pub fn at(mut self, origin: Pose<f64>) -> Self {
        self.origin = origin;
        self
    }
}

/// Description of one side of a loop joint.
#[derive(Debug, Clone)]
pub struct LoopEnd {
    /// Name of the link.
    pub link: String,
    /// Frame of the joint in the link's frame.
    pub origin: Pose<f64>,
}

/// Description of a joint that closes a loop.
#[derive(Debug, Clone)]
pub struct LoopSpec {
    /// Name of the joint.
    pub name: String,
    /// Joint type; axes are in the predecessor's frame.
    pub joint_type: JointType,
    /// Side that acts as the parent.
    pub predecessor: LoopEnd,
    /// Side that acts as the child.
    pub successor: LoopEnd,
    /// Line in the description.
    pub line: Option<u32>,
}

/// Description of a geared rotor.
#[derive(Debug, Clone)]
pub struct RotorSpec {
    /// Name of the driven joint (one degree of freedom).
    pub joint: String,
    /// Name of the link that carries the rotor.
    pub carrier: String,
    /// Speed of the rotor per unit speed of the joint.
    pub ratio: f64,
    /// Frame of the rotor in the carrier link's frame.
    pub origin: Pose<f64>,
    /// Axis in the rotor's own frame.
    pub axis: Vector3<f64>,
    /// Inertia about the rotor's own frame.
    pub inertia: Inertia<f64>,
    /// Whether the rotor is symmetric about its axis.
    pub symmetric: bool,
    /// Line in the description.
    pub line: Option<u32>,
}

/// Description of a reaction wheel. The inertia of the locked wheel is part of its carrier.
#[derive(Debug, Clone)]
pub struct WheelSpec {
    /// Name of the wheel, distinct from the names of joints.
    pub name: String,
    /// Name of the link that carries the wheel.
    pub carrier: String,
    /// Axis in the carrier link's frame.
    pub axis: Vector3<f64>,
    /// Inertia about the axis (kg m²).
    pub inertia: f64,
    /// Maximum speed and torque.
    pub limits: Limits,
    /// Line in the description.
    pub line: Option<u32>,
}

/// Gear ratio assumed for rotors that a model does not describe. Ranks are the same for all ratios except 1 and -1, for
/// which a rotor adds nothing.
pub const ASSUMED_RATIO: f64 = 100.0;

/// Model of the rotors in the parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RotorModel {
    /// Rotors as part of the mass of their carriers.
    None,
    /// One parameter per rotor, the inertia about its axis; the rest is part of the carrier.
    Symmetric,
    /// Ten parameters per rotor.
    General,
}

/// Options that override the model.
#[derive(Debug, Clone, Copy, Default)]
#[non_exhaustive]
pub struct BuildOptions {
    /// Fixed or floating base; `None` uses the model.
    pub base: Option<Base>,
    /// Model of the rotors in the parameters; `None` uses the setting of each rotor.
    pub rotors: Option<RotorModel>,
    /// Gravity; `None` uses the model.
    pub gravity: Option<Vector3<f64>>,
}

crate::with_changes!(BuildOptions);

/// Description of a mechanism under construction.
///
/// ```
/// use inertial::mechanism::{JointSpec, JointType, MechanismBuilder};
/// use inertial::spatial::{Inertia, Pose};
/// use nalgebra::{Matrix3, Vector3, vector};
///
/// let rod = Inertia::from_com(1.0, vector![0.5, 0.0, 0.0], Matrix3::from_diagonal(&vector![0.01, 0.1, 0.1]));
/// let hinge = JointType::Revolute { axis: Vector3::z() };
/// let arm = MechanismBuilder::new("planar-2r", "ground")
///     .link("upper", rod)
///     .joint(JointSpec::new("shoulder", hinge, "ground", "upper"))
///     .link("lower", rod)
///     .joint(JointSpec::new("elbow", hinge, "upper", "lower").at(Pose::from_translation(vector![1.0, 0.0, 0.0])))
///     .build(&Default::default())?;
/// assert_eq!((arm.nv(), arm.parameter_count()), (2, 20));
/// # Ok::<(), inertial::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct MechanismBuilder {
    /// Name of the mechanism.
    pub name: String,
    /// Name of the root link of the tree, fixed to the world unless the base floats.
    pub root: String,
    /// Gravitational acceleration (m/s²), world frame.
    pub gravity: Vector3<f64>,
    /// Links; the root may be omitted.
    pub links: Vec<LinkSpec>,
    /// Collision shapes of the links.
    pub shapes: Vec<ShapeSpec>,
    /// Joints of the tree.
    pub joints: Vec<JointSpec>,
    /// Joints that close loops.
    pub loops: Vec<LoopSpec>,
    /// Rotors.
    pub rotors: Vec<RotorSpec>,
    /// Reaction wheels.
    pub wheels: Vec<WheelSpec>,
    /// Coordinates of the assembled mechanism by joint; zero displacement if not given.
    pub assembly: Vec<(String, Vec<f64>)>,
    /// Links without parameters that only connect two joints (several MJCF joints of one body).
    pub massless: HashSet<String>,
    /// Warnings for the user.
    pub warnings: Vec<String>,
}

impl MechanismBuilder {
    /// Creates an empty mechanism with the root link `root`, under standard gravity along −z.
    pub fn new(name: impl Into<String>, root: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            root: root.into(),
            gravity: Vector3::new(0.0, 0.0, -9.81),
            links: Vec::new(),
            shapes: Vec::new(),
            joints: Vec::new(),
            loops: Vec::new(),
            rotors: Vec::new(),
            wheels: Vec::new(),
            assembly: Vec::new(),
            massless: HashSet::new(),
            warnings: Vec::new(),
        }
    }

    /// Adds a link.
    pub fn link(mut self, name: impl Into<String>, inertia: Inertia<f64>) -> Self {
        self.links.push(LinkSpec { name: name.into(), inertia: Some(inertia), line: None });
        self
    }

    /// Adds a joint of the tree.
    pub fn joint(mut self, joint: JointSpec) -> Self {
        self.joints.push(joint);
        self
    }

    /// Adds a joint that closes a loop.
    pub fn close_loop(mut self, spec: LoopSpec) -> Self {
        self.loops.push(spec);
        self
    }

    /// Adds a rotor.
    pub fn rotor(mut self, spec: RotorSpec) -> Self {
        self.rotors.push(spec);
        self
    }

    /// Adds a rotor of unknown inertia to each of the named joints that has one degree of freedom and no rotor. The
    /// rotor lies on the joint's axis, is carried by the parent link and has the gear ratio [`ASSUMED_RATIO`]. Returns
    /// the joints that got a rotor.
    ///
    /// Joints that follow others are skipped: the rotors of their leaders turn with them.
    pub fn add_missing_rotors(&mut self, joints: &[String]) -> Vec<String> {
        let mut added = Vec::new();
        for joint in self.joints.iter().filter(|j| joints.contains(&j.name)) {
            let (JointType::Revolute { axis }
            | JointType::Prismatic { axis }
            | JointType::Helical { axis, .. }) = joint.joint_type
            else {
                continue;
            };
            if joint.mimic.is_some() || self.rotors.iter().any(|r| r.joint == joint.name) {
                continue;
            }
            self.rotors.push(RotorSpec {
                joint: joint.name.clone(),
                carrier: joint.parent.clone(),
                ratio: ASSUMED_RATIO,
                origin: joint.origin,
                axis,
                inertia: Inertia::zero(),
                symmetric: true,
                line: joint.line,
            });
            added.push(joint.name.clone());
        }
        added
    }

    /// Returns the names of the rotors: `JOINT.rotor`, `JOINT.rotor2` for the second rotor of the same joint, and so
    /// on.
    pub fn rotor_names(&self) -> Vec<String> {
        let mut driven: HashMap<&str, usize> = HashMap::new();
        let mut name = |joint| match driven.entry(joint).and_modify(|n| *n += 1).or_insert(1) {
            1 => format!("{joint}.rotor"),
            n => format!("{joint}.rotor{n}"),
        };
        self.rotors.iter().map(|rotor| name(rotor.joint.as_str())).collect()
    }
}
