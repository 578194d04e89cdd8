//! Structure of a mechanism file for serde, identical for JSON and TOML.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::lines::Lines;
use super::SCHEMA;
use super::places::is_json;
use crate::{Error, Place, Result};

/// Mechanism file (JSON, or the same in TOML).
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::mechanism) struct Document {
    /// Schema of the file.
    #[schemars(extend("const" = SCHEMA))]
    pub schema: String,
    /// Name of the mechanism.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Description for the user; it has no effect.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Gravity (m/s²), world frame; 0 0 -9.81 by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gravity: Option<[f64; 3]>,
    /// Convention of `dh` (Denavit and Hartenberg).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub convention: Option<Convention>,
    /// Bodies; parents come before their children.
    #[schemars(length(min = 1))]
    pub bodies: Vec<Body>,
    /// Joints that close loops.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub loops: Vec<Loop>,
    /// Geared rotors.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rotors: Vec<Rotor>,
    /// Reaction wheels of a free-flying robot.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub wheels: Vec<Wheel>,
    /// Positions of joints (rad or m) near which the loops close; zero by default.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub assembly: BTreeMap<String, Position>,
}

/// Convention of Denavit and Hartenberg.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(in crate::mechanism) enum Convention {
    Modified,
    Standard,
}

/// Body and the joint that connects it to its parent.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "a body such as {\"name\": \"arm\", \"parent\": \"ground\", \"joint\": {…}}"
)]
pub(in crate::mechanism) struct Body {
    /// Name of the body.
    pub name: String,
    /// Body before the joint; `ground` is the world.
    pub parent: String,
    /// Joint that connects the body to its parent.
    pub joint: Joint,
    /// Inertial parameters; without mass by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inertial: Option<Inertial>,
    /// Whether the body only connects one joint to the next and has no parameters.
    #[serde(default, skip_serializing_if = "is_false")]
    pub massless: bool,
}

/// Joint of a body.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "a joint such as {\"name\": \"elbow\", \"type\": \"revolute\", \"axis\": [0, 0, 1]}"
)]
pub(in crate::mechanism) struct Joint {
    /// Name of the joint.
    pub name: String,
    /// Type of the joint.
    #[serde(rename = "type")]
    pub kind: Kind,
    /// Frame of the joint in that of the parent body.
    #[serde(default, skip_serializing_if = "Origin::is_empty")]
    pub origin: Origin,
    /// Frame of the joint as a row of Denavit and Hartenberg, instead of `origin`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dh: Option<Dh>,
    /// Direction of the axis (normal of the plane for planar joints), frame of the joint; z by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub axis: Option<[f64; 3]>,
    /// Both axes of a universal joint, the first on the parent's side.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub axes: Option<[[f64; 3]; 2]>,
    /// Advance of a helical joint (m/rad).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pitch: Option<f64>,
    /// Whether the position of the joint is one of the independent coordinates of a mechanism with loops.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub independent: Option<bool>,
    /// Limits of the joint.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limits: Option<Limits>,
    /// Forces in the joint.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dynamics: Option<Dynamics>,
    /// Joints that the joint follows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mimic: Option<Mimic>,
}

/// Type of a joint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(in crate::mechanism) enum Kind {
    Fixed,
    Revolute,
    Continuous,
    Prismatic,
    Helical,
    Cylindrical,
    Universal,
    Planar,
    Spherical,
    Floating,
}

/// Frame, given by a position and one kind of rotation, or by a row of Denavit and Hartenberg.
#[derive(Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "an origin such as {\"xyz\": [0, 0, 0.1], \"rpy\": [0, 0, 0]}")]
pub(in crate::mechanism) struct Origin {
    /// Position (m).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub xyz: Option<[f64; 3]>,
    /// Roll, pitch and yaw (rad): rotations about fixed x, then y, then z.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rpy: Option<[f64; 3]>,
    /// Rotation matrix, row by row.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rotation: Option<[[f64; 3]; 3]>,
    /// Quaternion x y z w.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quaternion: Option<[f64; 4]>,
    /// Row of Denavit and Hartenberg.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dh: Option<Dh>,
}

/// Row of Denavit and Hartenberg.
#[derive(Debug, Clone, Copy, Default, Deserialize, Serialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    default,
    expecting = "Denavit-Hartenberg parameters such as {\"a\": 0.4, \"alpha\": 0, \"d\": 0.1, \"theta\": 0}"
)]
pub(in crate::mechanism) struct Dh {
    /// Length of the common normal (m).
    pub a: f64,
    /// Angle between the axes (rad).
    pub alpha: f64,
    /// Distance along the axis of the joint (m).
    pub d: f64,
    /// Angle about the axis of the joint (rad).
    pub theta: f64,
}

/// Limits of a joint or wheel.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "limits such as {\"lower\": -1, \"upper\": 1}")]
pub(in crate::mechanism) struct Limits {
    /// Smallest position (rad or m).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lower: Option<f64>,
    /// Largest position (rad or m).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub upper: Option<f64>,
    /// Largest speed (rad/s or m/s).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub velocity: Option<f64>,
    /// Largest torque or force (N m or N).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub effort: Option<f64>,
}

/// Forces in a joint.
#[derive(Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default, expecting = "dynamics such as {\"damping\": 0.1, \"friction\": 0.2}")]
pub(in crate::mechanism) struct Dynamics {
    /// Viscous friction (N m s/rad, or N s/m).
    pub damping: f64,
    /// Coulomb friction (N m, or N for prismatic joints).
    pub friction: f64,
    /// Inertia of the drive, reflected to the joint (kg m², or kg).
    pub armature: f64,
    /// Stiffness of a spring (N m/rad, or N/m).
    pub stiffness: f64,
    /// Position at which the spring exerts no force (rad or m).
    pub rest: f64,
}

/// Joints that a joint follows: `joint` with `ratio`, or `joints`.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a mimic such as {\"joint\": \"finger\", \"ratio\": 1}")]
pub(in crate::mechanism) struct Mimic {
    /// Joint to follow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub joint: Option<String>,
    /// Motion per motion of that joint; 1 by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ratio: Option<f64>,
    /// Position if those of the followed joints are zero (rad or m).
    #[serde(default)]
    pub offset: f64,
    /// Several joints to follow, instead of `joint` and `ratio`; their motions are added.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub joints: Option<Vec<Leader>>,
}

/// Joint that another joint follows.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a leader such as {\"joint\": \"finger\", \"ratio\": 1}")]
pub(in crate::mechanism) struct Leader {
    /// Name of the joint to follow.
    pub joint: String,
    /// Motion per motion of that joint.
    #[serde(default = "one")]
    pub ratio: f64,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde hands out references")]
fn is_false(x: &bool) -> bool {
    !x
}

fn one() -> f64 {
    1.0
}

/// Inertial parameters.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "an inertial such as {\"mass\": 1, \"com\": [0, 0, 0.1], \"inertia\": {…}}"
)]
pub(in crate::mechanism) struct Inertial {
    /// Mass (kg).
    pub mass: f64,
    /// Centre of mass (m), frame of the body.
    #[serde(default)]
    pub com: [f64; 3],
    /// Rotational inertia about the centre of mass, along the axes of the frame of the body.
    pub inertia: Tensor,
}

/// Entries of a rotational inertia (kg m²); those off the diagonal are the negatives of the products of inertia.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "a tensor such as {\"ixx\": 1, \"ixy\": 0, \"ixz\": 0, \"iyy\": 1, \"iyz\": 0, \"izz\": 1}"
)]
pub(in crate::mechanism) struct Tensor {
    /// Moment about x (kg m²).
    pub ixx: f64,
    /// Entry x, y (kg m²).
    pub ixy: f64,
    /// Entry x, z (kg m²).
    pub ixz: f64,
    /// Moment about y (kg m²).
    pub iyy: f64,
    /// Entry y, z (kg m²).
    pub iyz: f64,
    /// Moment about z (kg m²).
    pub izz: f64,
}

/// Joint that closes a loop.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "a loop such as {\"name\": \"pin\", \"type\": \"revolute\", \"predecessor\": {\"body\": \"a\"}, \"successor\": {\"body\": \"b\"}}"
)]
pub(in crate::mechanism) struct Loop {
    /// Name of the loop joint.
    pub name: String,
    /// Type of the joint.
    #[serde(rename = "type")]
    pub kind: Kind,
    /// First end.
    pub predecessor: End,
    /// Second end.
    pub successor: End,
    /// Direction of the axis (normal of the plane for planar joints), frame of the joint; z by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub axis: Option<[f64; 3]>,
    /// Both axes of a universal joint, the first on the predecessor's side.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub axes: Option<[[f64; 3]; 2]>,
    /// Advance of a helical joint (m/rad).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pitch: Option<f64>,
}

/// End of a loop joint.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "the end of a loop such as {\"body\": \"arm\", \"origin\": {\"xyz\": [0, 0, 0.3]}}"
)]
pub(in crate::mechanism) struct End {
    /// Name of the body.
    pub body: String,
    /// Frame of the loop joint in that of the body.
    #[serde(default, skip_serializing_if = "Origin::is_empty")]
    pub origin: Origin,
}

/// Geared rotor.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "a rotor such as {\"joint\": \"elbow\", \"carrier\": \"arm\", \"ratio\": 100, \"inertial\": {…}}"
)]
pub(in crate::mechanism) struct Rotor {
    /// Joint that the rotor drives.
    pub joint: String,
    /// Body that carries the rotor.
    pub carrier: String,
    /// Turns of the rotor per turn of the joint.
    pub ratio: f64,
    /// Frame of the rotor in that of its carrier.
    #[serde(default, skip_serializing_if = "Origin::is_empty")]
    pub origin: Origin,
    /// Direction of the axis, frame of the rotor; z by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub axis: Option<[f64; 3]>,
    /// Whether the rotor is symmetric about its axis; true by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub symmetric: Option<bool>,
    /// Inertial parameters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inertial: Option<Inertial>,
}

/// Reaction wheel.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "a wheel such as {\"name\": \"wheel\", \"carrier\": \"base\", \"inertia\": 0.01}"
)]
pub(in crate::mechanism) struct Wheel {
    /// Name of the wheel.
    pub name: String,
    /// Body that carries the wheel.
    pub carrier: String,
    /// Direction of the axis, frame of the carrier; z by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub axis: Option<[f64; 3]>,
    /// Inertia about the axis (kg m²).
    pub inertia: f64,
    /// Limits of its speed and torque.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limits: Option<Limits>,
}

/// Position of a joint: a number, or a list for joints with several coordinates.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(untagged, expecting = "expected a number or a list of numbers")]
pub(in crate::mechanism) enum Position {
    One(f64),
    Several(Vec<f64>),
}

impl Document {
    pub fn parse(text: &str) -> Result<Self> {
        if is_json(text) { Self::from_json(text) } else { Self::from_toml(text) }
    }

    fn from_json(text: &str) -> Result<Self> {
        // A byte order mark at the start is not JSON; removing it does not change the line numbers.
        let text = text.trim_start_matches('\u{feff}');
        let mut source = serde_json::Deserializer::from_str(text);
        let document = serde_path_to_error::deserialize(&mut source)
            .map_err(|e| json_error(&path(e.path()), e.inner()))?;
        source.end().map_err(|e| json_error("", &e))?;
        Ok(document)
    }

    fn from_toml(text: &str) -> Result<Self> {
        let source = toml::Deserializer::parse(text).map_err(|e| {
            let mut error = toml_error(text, "", &e);
            if let Error::Syntax { message, .. } = &mut error {
                *message = format!("neither XML nor JSON, and as TOML: {message}");
            }
            error
        })?;
        serde_path_to_error::deserialize(source).map_err(|e| toml_error(text, &path(e.path()), e.inner()))
    }
}

/// Returns the path of a value; if it ends inside a key (`?`), the path of the parent.
fn path(path: &serde_path_to_error::Path) -> String {
    path.to_string().trim_end_matches(['?', '.']).to_owned()
}

fn json_error(path: &str, error: &serde_json::Error) -> Error {
    let (line, column) = (error.line(), error.column());
    let text = error.to_string();
    let message = text.strip_suffix(&format!(" at line {line} column {column}")).unwrap_or(&text);
    let place = Place { line: (line > 0).then_some(line as u32), element: path.to_owned() };
    Error::syntax(place, message)
}

fn toml_error(text: &str, path: &str, error: &toml::de::Error) -> Error {
    let line = error.span().map(|s| Lines::new(text).at(s.start));
    let message = error.message().lines().collect::<Vec<_>>().join(", ");
    Error::syntax(Place { line, element: path.to_owned() }, message)
}
