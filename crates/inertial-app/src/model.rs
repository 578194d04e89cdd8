//! Models: text, description, and the mechanism built from it.

mod base;
pub mod joint_file;
mod lock;
mod meshes;
mod named_files;
mod target;
mod text;

use std::borrow::Cow;
use std::path::PathBuf;

use inertial::dynamics::ClosedMechanism;
use inertial::mechanism::read::Format;
use inertial::mechanism::write::{Syntax, describe};
use inertial::mechanism::{
    ASSUMED_RATIO, Base, BodyKind, BuildOptions, Mechanism, MechanismBuilder, RotorModel, read,
};
use nalgebra::Vector3;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::setting::Setting;
pub(crate) use base::BaseMotion;
pub use meshes::NamedMesh;
pub use text::Argument;

use crate::{Context, Error, Inputs, Located, Note, Result, choice, ensure, ensure_option};

/// Choices about a model that its file does not make, or that override it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct ModelOptions {
    /// Whether the base is fixed or floating; by default fixed unless the model declares a floating base.
    #[serde(with = "choice::optional")]
    #[schemars(with = "Option<choice::Words<Base>>")]
    pub base: Option<Base>,
    /// Gravity (m/s², world frame); by default that of the model, otherwise 0, 0, -9.81.
    pub gravity: Option<[f64; 3]>,
    /// Parameterisation of geared rotors; by default that of the model.
    #[serde(with = "choice::optional")]
    #[schemars(with = "Option<choice::Words<RotorModel>>")]
    pub rotors: Option<RotorModel>,
    /// Locked joints, each with its position (rad or m); their links form one body.
    pub lock: Vec<Setting>,
    /// Values of the arguments of a xacro file.
    pub xacro_arg: Vec<Argument>,
    /// Whether a model with warnings is rejected.
    pub strict: bool,
}

inertial::with_changes!(ModelOptions);

/// Largest component of gravity (m/s²): a thousand times that of the Earth.
const STRONGEST_GRAVITY: f64 = 1e4;

impl ModelOptions {
    fn build_options(&self) -> Result<BuildOptions> {
        let small = |g: [f64; 3]| g.iter().all(|x| x.abs() <= STRONGEST_GRAVITY);
        ensure_option!(
            self.gravity.is_none_or(small),
            "gravity",
            "expected three numbers up to {STRONGEST_GRAVITY} m/s²"
        );
        Ok(BuildOptions::default().with(|o| {
            o.base = self.base;
            o.gravity = self.gravity.map(Vector3::from);
            o.rotors = self.rotors;
        }))
    }
}

/// Model with the mechanism built from it.
#[derive(Debug, Clone)]
pub struct Model {
    /// Name for messages: the file, or `standard input`.
    pub label: String,
    /// Text of the model; for a xacro file the expanded text, for a USD scene the equivalent mechanism file.
    pub text: String,
    /// Whether it is a USD scene.
    is_scene: bool,
    /// Description of the mechanism, parsed from the text.
    pub builder: MechanismBuilder,
    /// Mesh files from which inertias are computed.
    mesh_files: text::MeshFiles,
    /// Options with which the mechanism was built.
    pub options: BuildOptions,
    /// Joints that are locked at a position, overriding the text.
    pub lock: Vec<Setting>,
    /// Whether models with warnings are rejected.
    strict: bool,
    /// Mechanism of the model.
    pub mechanism: Mechanism,
    /// Path to which the model is written, if known.
    pub(crate) out: Option<PathBuf>,
    /// Same model in the format of the output, if that differs.
    target: Option<Box<Model>>,
}

impl Model {
    /// Reads and builds a model, by a name known to the inputs or as `builtin:NAME`.
    pub fn load(name: &str, options: &ModelOptions, inputs: &dyn Inputs) -> Result<Self> {
        let build = options.build_options()?;
        let label = label(name);
        let text::ModelText { text, mut builder, meshes: mesh_files, files } =
            text::read(name, &options.xacro_arg, inputs).at(&label)?;
        inputs.check_outputs()?;
        let is_scene = text.is_none();
        let text = match text {
            Some(text) => text,
            None => describe(&builder, build.base, Syntax::Toml).at(&label)?,
        };
        inputs.files_of_model(name, &text, &files)?;
        lock::lock(&mut builder, &options.lock)?;
        if let Some(warning) = builder.warnings.first().filter(|_| options.strict) {
            return Err(Error::Input(warning.clone())).at(&label);
        }
        let mechanism = builder.build(&build).at(&label)?;
        check_names(&mechanism).at(&label)?;
        let lock = options.lock.clone();
        Ok(Self {
            label,
            text,
            is_scene,
            builder,
            mesh_files,
            options: build,
            lock,
            strict: options.strict,
            mechanism,
            out: None,
            target: None,
        })
    }

    /// Loads another model with the same options; its warnings become notes.
    pub fn load_other(&self, name: &str, context: &Context<'_>) -> Result<Self> {
        let BuildOptions { base, gravity, rotors, .. } = self.options;
        let (gravity, lock, strict) = (gravity.map(Into::into), self.lock.clone(), self.strict);
        let options = ModelOptions { base, gravity, rotors, lock, strict, ..ModelOptions::default() };
        let other = Self::load(name, &options, context.inputs)?;
        other.notes().iter().for_each(|note| context.note(note));
        Ok(other)
    }

    /// Returns the warnings of the reader and the builder as notes with the name of the model.
    pub fn notes(&self) -> Vec<Note> {
        self.mechanism.warnings().iter().map(|warning| self.note(warning)).collect()
    }

    /// Returns the warnings of [`notes`](Self::notes), and those about the assembly of its loops.
    pub(crate) fn notes_with_loops(&self, closed: &ClosedMechanism<'_>) -> Vec<Note> {
        let of_loops = closed.warnings().iter().map(|warning| self.note(warning));
        self.notes().into_iter().chain(of_loops).collect()
    }

    fn note(&self, warning: &str) -> Note {
        Note::Model(format!("{}: {warning}", self.label))
    }

    /// Builds a model from a self-contained text.
    pub fn from_text(label: &str, text: String, options: BuildOptions) -> Result<Self> {
        let builder = read::model(&text, &read::no_includes).at(label)?;
        let is_scene = read::detect(&text) == Format::Usd;
        let text = if is_scene { describe(&builder, options.base, Syntax::Toml).at(label)? } else { text };
        let mechanism = builder.build(&options).at(label)?;
        check_names(&mechanism).at(label)?;
        Ok(Self {
            label: label.to_owned(),
            text,
            is_scene,
            builder,
            mesh_files: text::MeshFiles::default(),
            options,
            lock: Vec::new(),
            strict: false,
            mechanism,
            out: None,
            target: None,
        })
    }

    /// Builds the same model from another self-contained text.
    pub(crate) fn with_text(&self, text: String) -> Result<Self> {
        let mut builder = read::model(&text, &self.mesh_files).at(&self.label)?;
        lock::lock(&mut builder, &self.lock)?;
        let mechanism = builder.build(&self.options).at(&self.label)?;
        Ok(Self { text, builder, mechanism, ..self.clone() })
    }

    /// Builds the mechanism with another base.
    pub fn with_base(&self, base: Base) -> Result<Mechanism> {
        let options = self.options.with(|o| o.base = Some(base));
        self.builder.build(&options).at(&self.label)
    }

    /// Returns whether rotor inertias are identified for joints whose rotor is missing in the model.
    pub fn wants_rotors(&self) -> bool {
        matches!(self.options.rotors, Some(RotorModel::Symmetric | RotorModel::General))
    }

    /// Adds the rotors that [`wants_rotors`](Self::wants_rotors) requests to driven joints without one, for jobs
    /// without data to estimate a rotor inertia from.
    pub fn with_missing_rotors(&self) -> Result<Cow<'_, Self>> {
        if !self.wants_rotors() {
            return Ok(Cow::Borrowed(self));
        }
        let driven = ClosedMechanism::new(&self.mechanism).at(&self.label)?.independent_names();
        let mut builder = self.builder.clone();
        let added = builder.add_missing_rotors(&driven);
        if added.is_empty() {
            return Ok(Cow::Borrowed(self));
        }
        builder.warnings.push(format!(
            "the model has no rotor of {}: rotors on the axes of these joints are assumed, with gear ratio {ASSUMED_RATIO}",
            added.join(", ")
        ));
        let mechanism = builder.build(&self.options).at(&self.label)?;
        Ok(Cow::Owned(Self { builder, mechanism, ..self.clone() }))
    }
}

/// Rejects names with control characters, which would affect terminals and break tables.
fn check_names(mechanism: &Mechanism) -> Result<()> {
    let links = mechanism.links().iter().map(|link| ("link", &*link.name));
    let joints = mechanism.joints().iter().map(|joint| ("joint", &*joint.name));
    let bodies = mechanism.bodies().iter().map(|body| ("body", &*body.name));
    let wheels = mechanism.wheels().iter().map(|wheel| ("wheel", &*wheel.name));
    let all = links.chain(joints).chain(bodies).chain(wheels).chain([("robot", mechanism.name())]);
    for (kind, name) in all {
        ensure!(
            !name.contains(char::is_control),
            "the name of {kind} \"{}\" has a control character",
            name.escape_debug()
        );
    }
    Ok(())
}

/// Returns the name of an input for messages.
pub fn label(name: &str) -> String {
    if name == "-" { "standard input".into() } else { name.to_owned() }
}

/// Properties of a model in a result object.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Summary {
    /// Name of the model.
    pub name: String,
    /// Number of links that move.
    pub bodies: usize,
    /// Number of degrees of freedom, with closed loops.
    pub dof: usize,
    /// Kind of the base: `fixed` or `floating`.
    #[schemars(extend("enum" = ["fixed", "floating"]))]
    pub base: &'static str,
    /// Gravity (m/s²).
    pub gravity: [f64; 3],
    /// Number of loops.
    pub loops: usize,
    /// Number of rotors.
    pub rotors: usize,
}

impl Summary {
    /// Describes a mechanism with closed loops.
    pub fn new(closed: &ClosedMechanism<'_>) -> Self {
        let mechanism = closed.mechanism();
        let count =
            |kinds: &[BodyKind]| mechanism.bodies().iter().filter(|b| kinds.contains(&b.kind)).count();
        Self {
            name: mechanism.name().to_owned(),
            bodies: count(&[BodyKind::Link]),
            dof: closed.dof(),
            base: if mechanism.base() == Base::Floating { "floating" } else { "fixed" },
            gravity: mechanism.gravity().into(),
            loops: mechanism.loops().len(),
            rotors: count(&[BodyKind::Rotor, BodyKind::SymmetricRotor]),
        }
    }
}
