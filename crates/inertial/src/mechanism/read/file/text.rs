//! The shape of a mechanism file, as serde sees it: the same for JSON and TOML.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::super::lines::Lines;
use super::places::is_json;
use crate::{Error, Place, Result};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Document {
    pub schema: String,
    pub name: Option<String>,
    /// For people; has no effect.
    #[serde(rename = "description")]
    _description: Option<String>,
    pub gravity: Option<[f64; 3]>,
    pub convention: Option<Convention>,
    pub bodies: Vec<Body>,
    #[serde(default)]
    pub loops: Vec<Loop>,
    #[serde(default)]
    pub rotors: Vec<Rotor>,
    #[serde(default)]
    pub wheels: Vec<Wheel>,
    #[serde(default)]
    pub assembly: BTreeMap<String, Position>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Convention {
    Modified,
    Standard,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Body {
    pub name: String,
    pub parent: String,
    pub joint: Joint,
    pub inertial: Option<Inertial>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Joint {
    pub name: String,
    #[serde(rename = "type")]
    pub kind: Kind,
    #[serde(default)]
    pub origin: Origin,
    pub dh: Option<Dh>,
    pub axis: Option<[f64; 3]>,
    pub axes: Option<[[f64; 3]; 2]>,
    pub pitch: Option<f64>,
    pub independent: Option<bool>,
    pub limits: Option<Limits>,
    pub dynamics: Option<Dynamics>,
    pub mimic: Option<Mimic>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Kind {
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

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Origin {
    pub xyz: Option<[f64; 3]>,
    pub rpy: Option<[f64; 3]>,
    pub rotation: Option<[[f64; 3]; 3]>,
    pub quaternion: Option<[f64; 4]>,
    pub dh: Option<Dh>,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Dh {
    pub a: f64,
    pub alpha: f64,
    pub d: f64,
    pub theta: f64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Limits {
    pub lower: Option<f64>,
    pub upper: Option<f64>,
    pub velocity: Option<f64>,
    pub effort: Option<f64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Dynamics {
    pub damping: f64,
    pub friction: f64,
    pub armature: f64,
    pub stiffness: f64,
    pub rest: f64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Mimic {
    pub joint: Option<String>,
    pub ratio: Option<f64>,
    #[serde(default)]
    pub offset: f64,
    pub joints: Option<Vec<Leader>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Leader {
    pub joint: String,
    #[serde(default = "one")]
    pub ratio: f64,
}

fn one() -> f64 {
    1.0
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Inertial {
    pub mass: f64,
    #[serde(default)]
    pub com: [f64; 3],
    pub inertia: Tensor,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Tensor {
    pub ixx: f64,
    pub ixy: f64,
    pub ixz: f64,
    pub iyy: f64,
    pub iyz: f64,
    pub izz: f64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Loop {
    pub name: String,
    #[serde(rename = "type")]
    pub kind: Kind,
    pub predecessor: End,
    pub successor: End,
    pub axis: Option<[f64; 3]>,
    pub axes: Option<[[f64; 3]; 2]>,
    pub pitch: Option<f64>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct End {
    pub body: String,
    #[serde(default)]
    pub origin: Origin,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Rotor {
    pub joint: String,
    pub carrier: String,
    pub ratio: f64,
    #[serde(default)]
    pub origin: Origin,
    pub axis: Option<[f64; 3]>,
    pub symmetric: Option<bool>,
    pub inertial: Option<Inertial>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Wheel {
    pub name: String,
    pub carrier: String,
    pub axis: Option<[f64; 3]>,
    pub inertia: f64,
    pub limits: Option<Limits>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "expected a number or a list of numbers")]
pub(super) enum Position {
    One(f64),
    Several(Vec<f64>),
}

impl Document {
    pub fn parse(text: &str) -> Result<Self> {
        if is_json(text) { Self::from_json(text) } else { Self::from_toml(text) }
    }

    fn from_json(text: &str) -> Result<Self> {
        // A mark of the byte order at the start is no JSON; it stands before the first line's content only.
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

/// The path of a value; where it breaks off inside a key (`?`), that of what holds it.
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
