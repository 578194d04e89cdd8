//! Built-in models, stored as mechanism files, for examples and tests.
//!
//! ```
//! use inertial::mechanism::builtin;
//! let arm = builtin::get("puma560")?.build(&Default::default())?;
//! assert_eq!((arm.nv(), arm.parameter_count()), (6, 60));
//! # Ok::<(), inertial::Error>(())
//! ```

use super::MechanismBuilder;
use super::read::file;
use crate::{Error, Place, Result};

/// Name, short description and text of a model.
struct Model {
    name: &'static str,
    about: &'static str,
    text: &'static str,
}

/// Defines the models, each with the files that make up its text.
macro_rules! models {
    ($($name:literal: $about:literal $(+ $file:literal)+,)*) => {
        [$(Model { name: $name, about: $about, text: concat!($(include_str!($file)),+) },)*]
    };
}

static MODELS: [Model; 13] = models! {
    "puma560": "six-axis arm with a spherical wrist" + "puma560.toml",
    "puma560-rotors": "the same with its geared rotors" + "puma560.toml" + "puma560-rotors.toml",
    "scara": "four-axis SCARA arm" + "scara.toml",
    "scara-rotors": "the same with its geared rotors" + "scara.toml" + "scara-rotors.toml",
    "cheetah-leg": "three-joint leg with geared rotors" + "cheetah-leg.toml",
    "quadruped": "floating torso, four legs, twelve geared rotors" + "quadruped.toml",
    "arm7": "seven-axis arm with limits and friction" + "arm7.toml",
    "planar-2r": "double pendulum" + "planar-2r.toml",
    "four-bar": "planar linkage with one loop" + "four-bar.toml",
    "2rru-1rrs": "parallel mechanism with two universal loop joints" + "2rru-1rrs.toml",
    "2prs-1psr": "parallel mechanism driven by slides" + "2prs-1psr.toml",
    "space-dual-arm": "free-flying robot with two arms, published inertias" + "space-dual-arm.toml",
    "space-dual-arm-offset": "the same with the inertias assumed in its design" + "space-dual-arm-offset.toml",
};

/// Returns the names of all models.
pub fn names() -> impl Iterator<Item = &'static str> {
    MODELS.iter().map(|m| m.name)
}

/// Returns a short description of a model.
pub fn description(name: &str) -> Option<&'static str> {
    MODELS.iter().find(|m| m.name == name).map(|m| m.about)
}

/// Returns the text of a model, a mechanism file with the name of the model.
pub fn text(name: &str) -> Result<String> {
    // The files of a variant start with those of the plain model and its name.
    let named = |model: &Model| {
        let is_name = |line: &&str| line.starts_with("name = ");
        let line = model.text.lines().find(is_name).unwrap_or_default();
        model.text.replacen(line, &format!("name = \"{}\"", model.name), 1)
    };
    MODELS.iter().find(|m| m.name == name).map(named).ok_or_else(|| {
        let all = names().collect::<Vec<_>>().join(", ");
        Error::model(Place::default(), format!("there is no built-in model \"{name}\"; there are {all}"))
    })
}

/// Reads a model, ready to build.
pub fn get(name: &str) -> Result<MechanismBuilder> {
    file::read(&text(name)?)
}
