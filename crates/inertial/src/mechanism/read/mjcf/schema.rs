//! Which elements and attributes are known, so that none is passed over unnoticed.

use super::super::xml::{Element, quoted};
use crate::Result;

/// The sections of a model.
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

/// Sections and elements of the tree that neither move nor weigh anything: looks, contacts, measurements, states.
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

/// The attributes that an element of the tree, a default or the compiler may have; `None` where any is fine.
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

/// Refuses attributes that the element cannot have.
pub(super) fn check_attributes(element: Element<'_>) -> Result<()> {
    match attributes(element.tag()) {
        None => Ok(()),
        Some((known, oriented)) => check(element, known, if oriented { ORIENTATION } else { &[] }),
    }
}

/// Refuses attributes that an equality constraint cannot have.
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

/// Refuses sections that no model has.
pub(super) fn check_section(element: Element<'_>) -> Result<()> {
    match element.tag() {
        tag if SECTIONS.contains(&tag) => Ok(()),
        tag => Err(element.unsupported(format!("the section <{tag}>"))),
    }
}

/// Whether an element of the tree changes neither motion nor mass.
pub(super) fn is_irrelevant(tag: &str) -> bool {
    IRRELEVANT.contains(&tag)
}

/// The attributes that say how a frame is turned.
pub(super) fn orientation_attributes() -> &'static [&'static str] {
    ORIENTATION
}
