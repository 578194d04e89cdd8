//! Structure of a mechanism file for serde, identical for JSON and TOML.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::super::lines::Lines;
use super::places::is_json;
use crate::{Error, Place, Result};

#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(in crate::mechanism) struct Document {
    pub schema: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Description for the user; it has no effect.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gravity: Option<[f64; 3]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub convention: Option<Convention>,
    pub bodies: Vec<Body>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub loops: Vec<Loop>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rotors: Vec<Rotor>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub wheels: Vec<Wheel>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub assembly: BTreeMap<String, Position>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(in crate::mechanism) enum Convention {
    Modified,
    Standard,
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(in crate::mechanism) struct Body {
    pub name: String,
    pub parent: String,
    pub joint: Joint,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inertial: Option<Inertial>,
    /// Whether the body only connects one joint to the next and has no parameters.
    #[serde(default, skip_serializing_if = "is_false")]
    pub massless: bool,
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(in crate::mechanism) struct Joint {
    pub name: String,
    #[serde(rename = "type")]
    pub kind: Kind,
    #[serde(default, skip_serializing_if = "Origin::is_empty")]
    pub origin: Origin,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dh: Option<Dh>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub axis: Option<[f64; 3]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub axes: Option<[[f64; 3]; 2]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pitch: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub independent: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limits: Option<Limits>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dynamics: Option<Dynamics>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mimic: Option<Mimic>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
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

#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(in crate::mechanism) struct Origin {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub xyz: Option<[f64; 3]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rpy: Option<[f64; 3]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rotation: Option<[[f64; 3]; 3]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quaternion: Option<[f64; 4]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dh: Option<Dh>,
}

#[derive(Debug, Clone, Copy, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(in crate::mechanism) struct Dh {
    pub a: f64,
    pub alpha: f64,
    pub d: f64,
    pub theta: f64,
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(in crate::mechanism) struct Limits {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lower: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub upper: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub velocity: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effort: Option<f64>,
}

#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(in crate::mechanism) struct Dynamics {
    pub damping: f64,
    pub friction: f64,
    pub armature: f64,
    pub stiffness: f64,
    pub rest: f64,
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(in crate::mechanism) struct Mimic {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub joint: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ratio: Option<f64>,
    #[serde(default)]
    pub offset: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub joints: Option<Vec<Leader>>,
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(in crate::mechanism) struct Leader {
    pub joint: String,
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

#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(in crate::mechanism) struct Inertial {
    pub mass: f64,
    #[serde(default)]
    pub com: [f64; 3],
    pub inertia: Tensor,
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(in crate::mechanism) struct Tensor {
    pub ixx: f64,
    pub ixy: f64,
    pub ixz: f64,
    pub iyy: f64,
    pub iyz: f64,
    pub izz: f64,
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(in crate::mechanism) struct Loop {
    pub name: String,
    #[serde(rename = "type")]
    pub kind: Kind,
    pub predecessor: End,
    pub successor: End,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub axis: Option<[f64; 3]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub axes: Option<[[f64; 3]; 2]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pitch: Option<f64>,
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(in crate::mechanism) struct End {
    pub body: String,
    #[serde(default, skip_serializing_if = "Origin::is_empty")]
    pub origin: Origin,
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(in crate::mechanism) struct Rotor {
    pub joint: String,
    pub carrier: String,
    pub ratio: f64,
    #[serde(default, skip_serializing_if = "Origin::is_empty")]
    pub origin: Origin,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub axis: Option<[f64; 3]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub symmetric: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inertial: Option<Inertial>,
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(in crate::mechanism) struct Wheel {
    pub name: String,
    pub carrier: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub axis: Option<[f64; 3]>,
    pub inertia: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limits: Option<Limits>,
}

#[derive(Debug, Deserialize, Serialize)]
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
