//! Texts of models: read, with what they include, and expanded where they are xacro.

use std::cell::Cell;
use std::path::Path;

use inertial::mechanism::read::{self, xacro};
use inertial::mechanism::{MechanismBuilder, builtin};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Error, Inputs, Located, Result, ensure, ensure_option};

/// Models are texts that people edit; the largest of the field have a few megabytes.
const SIZE_LIMIT: u64 = 64 << 20;

/// Value of an argument (`<xacro:arg>`) of a xacro file: `prefix:=left_`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Argument {
    /// Its name.
    #[serde(alias = "column")]
    pub name: String,
    /// Its value.
    pub value: String,
}

impl std::str::FromStr for Argument {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.split_once(":=").or_else(|| text.split_once('='));
        match parts {
            Some((name, value)) if !name.trim().is_empty() => {
                Ok(Self { name: name.trim().to_owned(), value: value.to_owned() })
            }
            _ => Err(format!("expected NAME:=VALUE like prefix:=left_, not '{text}'")),
        }
    }
}

/// Reads a model: the text that describes it, and what it describes.
pub(super) fn read(
    name: &str,
    arguments: &[Argument],
    inputs: &dyn Inputs,
) -> Result<(String, MechanismBuilder)> {
    let text = match name.strip_prefix("builtin:") {
        Some(name) => builtin::text(name)?.to_owned(),
        None => inputs.text(name, SIZE_LIMIT).map_err(|error| advised(name, error))?,
    };
    ensure!(!text.starts_with("#usda"), "{USD}");
    // What is included counts towards the same limit.
    let surroundings =
        Surroundings { model: name, inputs, left: Cell::new(SIZE_LIMIT.saturating_sub(text.len() as u64)) };
    if !xacro::is_xacro(&text) {
        ensure_option!(arguments.is_empty(), "xacro-arg", "the model is no xacro file");
        let builder = read::model(&text, &|included| surroundings.included(included))?;
        return Ok((text, builder));
    }
    let arguments: Vec<_> = arguments.iter().map(|a| (a.name.clone(), a.value.clone())).collect();
    let xacro::Expanded { text, warnings } = xacro::expand(&text, name, &arguments, &surroundings)?;
    let mut builder =
        read::model(&text, &|included| surroundings.included(included)).at("in the expanded text")?;
    let of_text = builder.warnings.into_iter().map(|warning| format!("in the expanded text: {warning}"));
    builder.warnings = warnings.into_iter().chain(of_text).collect();
    Ok((text, builder))
}

/// What to do with a scene of USD.
const USD: &str = "is a scene of USD, which is not read: export the robot as URDF (Isaac Sim: File, Export, URDF) and give that file";

/// Adds to an error of reading what the name asks for.
fn advised(name: &str, error: Error) -> Error {
    let path = Path::new(name);
    let ending = path.extension().map(std::ffi::OsStr::to_ascii_lowercase).unwrap_or_default();
    if path.is_file() && ["usd", "usda", "usdc", "usdz"].iter().any(|own| ending == *own) {
        return Error::Input(USD.to_owned());
    }
    // Names of Python's package robot_descriptions: a program in Python is not run on behalf of a name.
    let is_module =
        name.ends_with("_description") && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    if is_module && !path.exists() {
        return Error::Input(format!(
            "is no file; for the robot of that name in the Python package robot_descriptions give \"$(python3 -c 'from \
             robot_descriptions.{name} import URDF_PATH as p; print(p)')\", or MJCF_PATH"
        ));
    }
    error
}

/// What a model finds around it.
struct Surroundings<'a> {
    model: &'a str,
    inputs: &'a dyn Inputs,
    /// Bytes that may still be read.
    left: Cell<u64>,
}

impl Surroundings<'_> {
    /// Whether the model is one of a file system.
    fn is_file(&self) -> bool {
        self.model != "-" && !self.model.starts_with("builtin:")
    }

    fn included(&self, name: &str) -> Result<String, String> {
        if !self.is_file() {
            return read::no_includes(name);
        }
        let text = self.inputs.included(self.model, name, self.left.get()).map_err(|e| e.to_string())?;
        self.left.set(self.left.get().saturating_sub(text.len() as u64));
        Ok(text)
    }
}

impl xacro::Files for Surroundings<'_> {
    fn text(&self, path: &str) -> Result<String, String> {
        // Names of included files are relative to the model.
        let folder = Path::new(self.model).parent().unwrap_or(Path::new(""));
        let relative = Path::new(path).strip_prefix(folder).unwrap_or(Path::new(path));
        self.included(&relative.to_string_lossy())
    }

    fn package(&self, name: &str) -> Result<String, String> {
        if !self.is_file() {
            return xacro::Alone.package(name);
        }
        self.inputs.package(self.model, name).ok_or_else(|| {
            format!(
                "cannot find the package \"{name}\": it is looked for in the folders around the model, in \
                 ROS_PACKAGE_PATH and in AMENT_PREFIX_PATH"
            )
        })
    }

    fn variable(&self, name: &str) -> Option<String> {
        if self.is_file() { std::env::var(name).ok() } else { None }
    }

    fn folder(&self) -> Option<String> {
        let folder = std::env::current_dir().ok().filter(|_| self.is_file())?;
        Some(folder.to_string_lossy().into_owned())
    }
}
