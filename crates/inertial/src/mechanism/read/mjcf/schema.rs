//! Known elements and attributes; unknown ones are reported.

use super::super::xml::{Element, quoted};
use crate::Result;

/// Sections of a model.
const SECTIONS: &[&str] = &[
    "actuator",
    "asset",
    "compiler",
    "contact",
    "custom",
    "default",
    "deformable",
    "equality",
    "extension",
    "keyframe",
    "option",
    "sensor",
    "size",
    "statistic",
    "tendon",
    "visual",
    "worldbody",
];

/// Elements of the tree that affect neither motion nor mass: visuals, contacts, measurements, states.
const IRRELEVANT: &[&str] = &["camera", "light", "site", "skin"];

const ORIENTATION: &[&str] = &["quat", "axisangle", "euler", "xyaxes", "zaxis"];

const BODY: &[&str] = &["childclass", "fuse", "gravcomp", "mocap", "name", "pos", "simple", "sleep", "user"];

const FRAME: &[&str] = &["childclass", "massscale", "name", "pos", "scale", "scaling"];

const INERTIAL: &[&str] = &["diaginertia", "fullinertia", "mass", "pos"];

const JOINT: &[&str] = &[
    "actuatorfrclimited",
    "actuatorfrcrange",
    "actuatorgravcomp",
    "armature",
    "axis",
    "class",
    "damping",
    "frictionloss",
    "group",
    "limited",
    "margin",
    "name",
    "pos",
    "range",
    "ref",
    "solimpfriction",
    "solimplimit",
    "solreffriction",
    "solreflimit",
    "springdamper",
    "springref",
    "springyield",
    "stiffness",
    "type",
    "user",
];

const FREEJOINT: &[&str] = &["align", "group", "name"];

const GEOM: &[&str] = &[
    "adhesion",
    "castshadow",
    "class",
    "conaffinity",
    "condim",
    "contype",
    "density",
    "fitscale",
    "fluidcoef",
    "fluidshape",
    "friction",
    "fromto",
    "gap",
    "group",
    "hfield",
    "margin",
    "mass",
    "material",
    "mesh",
    "name",
    "pos",
    "priority",
    "rgba",
    "shellinertia",
    "size",
    "solimp",
    "solmix",
    "solref",
    "surfacevel",
    "type",
    "user",
];

const COMPILER: &[&str] = &[
    "alignfree",
    "angle",
    "assetdir",
    "autolimits",
    "balanceinertia",
    "boundinertia",
    "boundmass",
    "conflict",
    "convexhull",
    "coordinate",
    "discardvisual",
    "eulerseq",
    "exactmeshinertia",
    "fitaabb",
    "fusestatic",
    "inertiafromgeom",
    "inertiagrouprange",
    "meshdir",
    "passthrough",
    "savecanonical",
    "savecompiled",
    "saveinertial",
    "settotalmass",
    "strippath",
    "texturedir",
    "usethread",
];

const EQUALITY: &[&str] = &[
    "active",
    "anchor",
    "body1",
    "body2",
    "class",
    "joint1",
    "joint2",
    "name",
    "polycoef",
    "relpose",
    "site1",
    "site2",
    "solimp",
    "solref",
    "tendon1",
    "tendon2",
    "torquescale",
];

/// Returns the attributes allowed for an element of the tree, a default or the compiler; `None` if all are allowed.
fn attributes(tag: &str) -> Option<(&'static [&'static str], bool)> {
    match tag {
        "body" => Some((BODY, true)),
        "frame" => Some((FRAME, true)),
        "inertial" => Some((INERTIAL, true)),
        "joint" => Some((JOINT, false)),
        "freejoint" => Some((FREEJOINT, false)),
        "geom" => Some((GEOM, true)),
        "compiler" => Some((COMPILER, false)),
        "worldbody" => Some((&[], false)),
        _ => None,
    }
}

/// Rejects attributes that the element cannot have.
pub(super) fn check_attributes(element: Element<'_>) -> Result<()> {
    match attributes(element.tag()) {
        None => Ok(()),
        Some((known, oriented)) => check(element, known, if oriented { ORIENTATION } else { &[] }),
    }
}

/// Rejects attributes that an equality constraint cannot have.
pub(super) fn check_equality(element: Element<'_>) -> Result<()> {
    check(element, EQUALITY, &[])
}

fn check(element: Element<'_>, known: &[&str], more: &[&str]) -> Result<()> {
    let unknown = element.attributes().find(|(name, _)| !known.contains(name) && !more.contains(name));
    match unknown {
        None => Ok(()),
        Some((name, _)) => Err(element.unsupported(format!("the attribute {}", quoted(name)))),
    }
}

/// Rejects unknown sections.
pub(super) fn check_section(element: Element<'_>) -> Result<()> {
    match element.tag() {
        tag if SECTIONS.contains(&tag) => Ok(()),
        tag => Err(element.unsupported(format!("the section <{tag}>"))),
    }
}

/// Returns whether an element of the tree affects neither motion nor mass.
pub(super) fn is_irrelevant(tag: &str) -> bool {
    IRRELEVANT.contains(&tag)
}

/// Returns the attributes that define the orientation of a frame.
pub(super) fn orientation_attributes() -> &'static [&'static str] {
    ORIENTATION
}
