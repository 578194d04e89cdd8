//! Texts of models: reading with includes, and expansion of xacro.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use inertial::mechanism::read::{self, ModelFiles, usd, xacro};
use inertial::mechanism::{MechanismBuilder, builtin};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::named_files::NamedFiles;
use crate::encoding::decoded;
use crate::{Error, Inputs, Located, Result, ensure, ensure_option};

/// Size limit (bytes) of model texts; the largest in use have a few megabytes.
const SIZE_LIMIT: u64 = 64 << 20;

/// Size limits (bytes) of a USD scene, which also contains meshes, and of all its files.
const SCENE_LIMIT: u64 = 256 << 20;
const ALL_OF_SCENE: u64 = 512 << 20;

/// Value of an argument (`<xacro:arg>`) of a xacro file: `prefix:=left_`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Argument {
    /// Name of the argument.
    #[serde(alias = "column")]
    pub name: String,
    /// Value of the argument.
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

/// Size limits (bytes) of one mesh file from which an inertia is computed, and of all of them.
const MESH_LIMIT: u64 = 64 << 20;
const ALL_MESHES: u64 = 512 << 20;

/// Mesh files from which inertias of a model are computed, by their names in the model. Written texts are parsed with them.
#[derive(Debug, Clone, Default)]
pub(crate) struct MeshFiles(Arc<HashMap<String, Vec<u8>>>);

impl ModelFiles for MeshFiles {
    fn text(&self, name: &str) -> Result<String, String> {
        read::no_includes(name)
    }

    fn mesh(&self, name: &str) -> Result<Vec<u8>, String> {
        self.0.get(name).map_or_else(|| read::no_includes.mesh(name), |bytes| Ok(bytes.clone()))
    }
}

/// Model as read from its input.
pub(super) struct ModelText {
    /// Text of the description; `None` for a USD scene.
    pub text: Option<String>,
    /// Description of the mechanism, parsed from the text.
    pub builder: MechanismBuilder,
    pub meshes: MeshFiles,
    /// Names of files in the text and in the texts that it includes.
    pub files: Vec<String>,
}

/// Returns whether a file has the name of a log.
fn is_log(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let name = name.strip_suffix(".gz").unwrap_or(&name);
    [".csv", ".tsv", ".parquet", ".mcap", ".bag", ".db3", ".npz", ".mat", ".h5", ".hdf5"]
        .iter()
        .any(|ending| name.ends_with(ending))
}

/// Reads a model.
pub(super) fn read(name: &str, arguments: &[Argument], inputs: &dyn Inputs) -> Result<ModelText> {
    let text = if let Some(name) = name.strip_prefix("builtin:") {
        builtin::text(name)?
    } else {
        let limit = if is_scene(name) { SCENE_LIMIT } else { SIZE_LIMIT };
        let bytes = inputs.model(name, limit).map_err(|error| advised(name, error))?;
        if usd::is_usd(&bytes) {
            ensure_option!(arguments.is_empty(), "xacro-arg", "the model is not a xacro file");
            return scene(name, &bytes, inputs);
        }
        ensure!(
            !is_scene(name),
            "is not a USD scene despite its name: it starts with none of #usda, PXR-USDC and PK"
        );
        ensure!(!is_log(name), "has the name of a log, not of a model: give the model first, then the logs");
        decoded(bytes)?
    };
    // Included files share the same size limit.
    let included_files = IncludedFiles {
        model: name,
        inputs,
        left: Cell::new(SIZE_LIMIT.saturating_sub(text.len() as u64)),
        left_for_meshes: Cell::new(ALL_MESHES),
        meshes: RefCell::default(),
        named: RefCell::default(),
    };
    let expected = is_xacro_name(name) || !arguments.is_empty();
    if !(xacro::is_xacro(&text) || (expected && xacro::has_expressions(&text))) {
        ensure_option!(arguments.is_empty(), "xacro-arg", "the model is not a xacro file");
        let builder = read::model(&text, &included_files)?;
        return Ok(included_files.finished(Some(text), builder));
    }
    let arguments: Vec<_> = arguments.iter().map(|a| (a.name.clone(), a.value.clone())).collect();
    let xacro::Expanded { text, warnings } = xacro::expand(&text, name, &arguments, &included_files)?;
    let mut builder = read::model(&text, &included_files).at("in the expanded text")?;
    let of_text = builder.warnings.into_iter().map(|warning| format!("in the expanded text: {warning}"));
    builder.warnings = warnings.into_iter().chain(of_text).collect();
    Ok(included_files.finished(Some(text), builder))
}

/// Returns whether a name is that of a xacro file.
fn is_xacro_name(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|ending| ending.eq_ignore_ascii_case("xacro"))
}

/// Returns whether a name is that of a USD scene.
fn is_scene(name: &str) -> bool {
    let ending = Path::new(name).extension().map(std::ffi::OsStr::to_ascii_lowercase).unwrap_or_default();
    ["usd", "usda", "usdc", "usdz"].iter().any(|own| ending == *own)
}

/// Reads a USD scene.
fn scene(name: &str, bytes: &[u8], inputs: &dyn Inputs) -> Result<ModelText> {
    let included_files = IncludedFiles {
        model: name,
        inputs,
        left: Cell::new(ALL_OF_SCENE.saturating_sub(bytes.len() as u64)),
        left_for_meshes: Cell::new(0),
        meshes: RefCell::default(),
        named: RefCell::default(),
    };
    let builder = usd::read(bytes, &included_files)?;
    Ok(included_files.finished(None, builder))
}

/// Adds advice to the error of reading a name that looks like a Python module.
fn advised(name: &str, error: Error) -> Error {
    let path = Path::new(name);
    // Modules of the Python package `robot_descriptions`; Python is not run to resolve a name.
    let is_module =
        name.ends_with("_description") && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    if is_module && !path.exists() {
        return Error::Input(format!(
            "there is no such file; for the robot of that name in the Python package robot_descriptions give \"$(python3 -c \
             'from robot_descriptions.{name} import URDF_PATH as p; print(p)')\", or MJCF_PATH"
        ));
    }
    error
}

/// Files that a model includes.
struct IncludedFiles<'a> {
    model: &'a str,
    inputs: &'a dyn Inputs,
    /// Number of bytes that may still be read.
    left: Cell<u64>,
    left_for_meshes: Cell<u64>,
    meshes: RefCell<HashMap<String, Vec<u8>>>,
    /// Files that the included texts name.
    named: RefCell<NamedFiles>,
}

impl IncludedFiles<'_> {
    /// Returns whether the model is in a file system.
    fn is_file(&self) -> bool {
        self.model != "-" && !self.model.starts_with("builtin:")
    }

    fn finished(self, text: Option<String>, builder: MechanismBuilder) -> ModelText {
        let mut named = self.named.into_inner();
        text.iter().for_each(|text| named.add(text));
        ModelText {
            text,
            builder,
            meshes: MeshFiles(Arc::new(self.meshes.into_inner())),
            files: named.list(),
        }
    }

    fn included(&self, name: &str) -> Result<String, String> {
        if !self.is_file() {
            return read::no_includes(name);
        }
        let text = self.inputs.included(self.model, name, self.left.get()).map_err(|e| e.to_string())?;
        self.left.set(self.left.get().saturating_sub(text.len() as u64));
        self.named.borrow_mut().add(&text);
        Ok(text)
    }
}

impl ModelFiles for IncludedFiles<'_> {
    fn text(&self, name: &str) -> Result<String, String> {
        self.included(name)
    }

    fn file(&self, name: &str) -> Result<Vec<u8>, String> {
        if !self.is_file() {
            return read::no_includes(name).map(String::into_bytes);
        }
        let bytes = self.inputs.referenced(self.model, name, self.left.get()).map_err(|e| e.to_string())?;
        self.left.set(self.left.get().saturating_sub(bytes.len() as u64));
        Ok(bytes)
    }

    fn mesh(&self, name: &str) -> Result<Vec<u8>, String> {
        if !self.is_file() {
            return MeshFiles::default().mesh(name);
        }
        if let Some(known) = self.meshes.borrow().get(name) {
            return Ok(known.clone());
        }
        let refused = |reason: String| format!("cannot read the mesh \"{name}\": {reason}");
        let most = MESH_LIMIT.min(self.left_for_meshes.get());
        let bytes = match self.inputs.mesh(self.model, name, most) {
            None => return Err(refused("there is no such STL, OBJ, MSH, COLLADA or glTF file".to_owned())),
            Some((_, bytes)) => bytes.map_err(|e| refused(e.to_string()))?,
        };
        self.left_for_meshes.set(self.left_for_meshes.get().saturating_sub(bytes.len() as u64));
        self.meshes.borrow_mut().insert(name.to_owned(), bytes.clone());
        Ok(bytes)
    }
}

impl xacro::Files for IncludedFiles<'_> {
    fn text(&self, path: &str) -> Result<String, String> {
        // Names of included files are relative to the model.
        let folder = Path::new(self.model).parent().unwrap_or(Path::new(""));
        let relative = Path::new(path).strip_prefix(folder).unwrap_or(Path::new(path));
        self.included(&relative.to_string_lossy())
    }

    fn package(&self, name: &str) -> Result<String, String> {
        if !self.is_file() {
            return xacro::NoFiles.package(name);
        }
        self.inputs.package(self.model, name).ok_or_else(|| {
            format!(
                "cannot find the package \"{name}\" in the folders around the model, in ROS_PACKAGE_PATH or in \
                 AMENT_PREFIX_PATH"
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
