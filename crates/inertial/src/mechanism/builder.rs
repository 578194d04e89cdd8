//! What a model says, before it is checked: filled by the readers, or by hand.

use std::collections::{HashMap, HashSet};

use nalgebra::Vector3;

use super::{Base, JointType, Mechanism, ShapeSpec};
use crate::Result;
use crate::spatial::{Inertia, Pose};

/// Limits of one joint; infinite where the model gives none. They hold for each of its coordinates.
#[derive(Debug, Clone, Copy, PartialEq)]
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

impl Default for Limits {
    fn default() -> Self {
        let inf = f64::INFINITY;
        Self { lower: -inf, upper: inf, velocity: inf, effort: inf }
    }
}

impl Limits {
    /// Highest speed (rad/s or m/s), where the model gives one: files write zero where they know none.
    pub fn given_velocity(&self) -> Option<f64> {
        given(self.velocity)
    }

    /// Highest torque or force (N m or N), where the model gives one.
    pub fn given_effort(&self) -> Option<f64> {
        given(self.effort)
    }
}

fn given(limit: f64) -> Option<f64> {
    (limit > 0.0 && limit.is_finite()).then_some(limit)
}

/// What acts in a joint besides its actuator.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct JointDynamics {
    /// Viscous damping (N m s/rad or N s/m).
    pub damping: f64,
    /// Coulomb friction (N m or N).
    pub friction: f64,
    /// Inertia added at the joint (kg m² or kg).
    pub armature: f64,
    /// Spring stiffness (N m/rad or N/m).
    pub stiffness: f64,
    /// Position where the spring rests.
    pub rest: f64,
}

/// A joint that follows others: `q = Σ ratio · q_leader + offset` (URDF's `<mimic>` names one leader).
#[derive(Debug, Clone, PartialEq)]
pub struct Mimic {
    /// The joints that lead, each with the follower's speed per unit of its own.
    pub leaders: Vec<(String, f64)>,
    /// Position where all leaders are at zero.
    pub offset: f64,
}

impl Mimic {
    /// Creates the coupling to one joint.
    pub fn new(joint: impl Into<String>, ratio: f64, offset: f64) -> Self {
        Self { leaders: vec![(joint.into(), ratio)], offset }
    }
}

/// How far the numbers of a joint may be from those that were meant, because they were rounded when they were written.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Rounding {
    /// Rotation of the frame and direction of the axis (radians).
    pub angle: f64,
    /// Position of the frame.
    pub length: f64,
    /// Direction of the axis alone (radians).
    pub axis: f64,
    /// Unit of the last decimal of all angles of the file (radians), where these are rounded so coarsely that no special position can be told
    /// from its neighbours; zero for other files.
    pub coarse: f64,
}

/// A link as described.
#[derive(Debug, Clone)]
pub struct LinkSpec {
    /// Its name.
    pub name: String,
    /// Its inertia in its own frame; `None` where the model says nothing.
    pub inertia: Option<Inertia<f64>>,
    /// Line of the description.
    pub line: Option<u32>,
}

/// A joint as described.
#[derive(Debug, Clone)]
pub struct JointSpec {
    /// Its name.
    pub name: String,
    /// Its type.
    pub joint_type: JointType,
    /// The link before it.
    pub parent: String,
    /// The link after it; its frame is the joint's frame at zero.
    pub child: String,
    /// The joint's frame in the parent link's frame.
    pub origin: Pose<f64>,
    /// Limits of motion, speed and effort.
    pub limits: Limits,
    /// Friction, damping, armature, spring.
    pub dynamics: JointDynamics,
    /// The joints it follows, if any.
    pub mimic: Option<Mimic>,
    /// Whether its coordinates are (in)dependent where there are loops.
    pub independent: Option<bool>,
    /// How its origin and axis were rounded; `None` where nobody knows.
    pub rounding: Option<Rounding>,
    /// Line of the description.
    pub line: Option<u32>,
}

impl JointSpec {
    /// A joint of the given type between two links, at the parent's frame, without limits.
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

/// One side of a loop joint as described.
#[derive(Debug, Clone)]
pub struct LoopEnd {
    /// The link.
    pub link: String,
    /// The joint's frame in the link's frame.
    pub origin: Pose<f64>,
}

/// A joint that closes a loop, as described.
#[derive(Debug, Clone)]
pub struct LoopSpec {
    /// Its name.
    pub name: String,
    /// Its type; axes are in the predecessor's frame.
    pub joint_type: JointType,
    /// The side that counts as the parent.
    pub predecessor: LoopEnd,
    /// The side that counts as the child.
    pub successor: LoopEnd,
    /// Line of the description.
    pub line: Option<u32>,
}

/// A geared rotor as described.
#[derive(Debug, Clone)]
pub struct RotorSpec {
    /// The joint it drives (one degree of freedom).
    pub joint: String,
    /// The link that carries it.
    pub carrier: String,
    /// Its speed per unit of the joint's.
    pub ratio: f64,
    /// Its frame in the carrier link's frame.
    pub origin: Pose<f64>,
    /// Its axis in its own frame.
    pub axis: Vector3<f64>,
    /// Its inertia about its own frame.
    pub inertia: Inertia<f64>,
    /// Whether it is symmetric about its axis.
    pub symmetric: bool,
    /// Line of the description.
    pub line: Option<u32>,
}

/// A reaction wheel as described: what it adds to its carrier's inertia when locked belongs to the carrier.
#[derive(Debug, Clone)]
pub struct WheelSpec {
    /// Its name, distinct from those of joints.
    pub name: String,
    /// The link that carries it.
    pub carrier: String,
    /// Its axis in the carrier link's frame.
    pub axis: Vector3<f64>,
    /// Its inertia about the axis (kg m²).
    pub inertia: f64,
    /// Its greatest speed and torque.
    pub limits: Limits,
    /// Line of the description.
    pub line: Option<u32>,
}

/// Gear ratio of rotors that a model does not describe. Ranks are the same for all ratios but 1 and -1, which add nothing.
pub const ASSUMED_RATIO: f64 = 100.0;

/// How rotors enter the parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RotorModel {
    /// As dead weight of their carriers.
    None,
    /// By their inertia about the axis, one parameter each; the rest belongs to the carrier.
    Symmetric,
    /// By all ten parameters.
    General,
}

/// Choices that the user may make against the model.
#[derive(Debug, Clone, Copy, Default)]
pub struct BuildOptions {
    /// Fixed or floating base; `None` as the model says.
    pub base: Option<Base>,
    /// How rotors enter the parameters; `None` as each rotor says.
    pub rotors: Option<RotorModel>,
    /// Gravity; `None` as the model says.
    pub gravity: Option<Vector3<f64>>,
}

/// A mechanism under construction.
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
    /// Name of the link that all others hang from: bolted to the world, unless the base floats.
    pub root: String,
    /// Gravitational acceleration (m/s²), world frame.
    pub gravity: Vector3<f64>,
    /// The links; the root need not be among them.
    pub links: Vec<LinkSpec>,
    /// Collision shapes of the links.
    pub shapes: Vec<ShapeSpec>,
    /// The joints of the tree.
    pub joints: Vec<JointSpec>,
    /// The joints that close loops.
    pub loops: Vec<LoopSpec>,
    /// The rotors.
    pub rotors: Vec<RotorSpec>,
    /// The reaction wheels.
    pub wheels: Vec<WheelSpec>,
    /// Coordinates of the assembled mechanism by joint; zero (no displacement) where not given.
    pub assembly: Vec<(String, Vec<f64>)>,
    /// Links that only carry a joint to the next (several MJCF joints of one body): they have no parameters.
    pub massless: HashSet<String>,
    /// What the reader wants people to know.
    pub warnings: Vec<String>,
}

impl MechanismBuilder {
    /// An empty mechanism that hangs from the link `root`, under standard gravity along −z.
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

    /// Adds a rotor of unknown inertia to each of the named joints of one degree of freedom that has none: on the joint's axis, carried
    /// by the link before it, with the gear ratio [`ASSUMED_RATIO`]. Returns the joints that got one.
    ///
    /// Joints that follow others are left out: the rotors of their leaders turn with them.
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

    /// Names of the rotors: `JOINT.rotor`, `JOINT.rotor2` for the second rotor of the same joint, and so on.
    pub fn rotor_names(&self) -> Vec<String> {
        let mut driven: HashMap<&str, usize> = HashMap::new();
        let mut name = |joint| match driven.entry(joint).and_modify(|n| *n += 1).or_insert(1) {
            1 => format!("{joint}.rotor"),
            n => format!("{joint}.rotor{n}"),
        };
        self.rotors.iter().map(|rotor| name(rotor.joint.as_str())).collect()
    }

    /// Checks everything and numbers the coordinates.
    pub fn build(&self, options: &BuildOptions) -> Result<Mechanism> {
        super::build::build(self, options)
    }
}
