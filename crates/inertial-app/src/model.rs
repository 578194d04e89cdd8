//! Models: their text, what it describes, and the mechanism built from it.

pub mod joint_file;
mod lock;
mod meshes;
mod target;
mod text;

use std::borrow::Cow;

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
pub use meshes::NamedMesh;
pub use text::Argument;

use crate::{Context, Error, Inputs, Located, Result, choice, ensure, ensure_option};

/// Choices about a model that its file leaves open or that shall be made against it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ModelOptions {
    /// Whether the base is fixed or floating; floating by default only where the model says so.
    #[serde(with = "choice::optional")]
    #[schemars(with = "Option<choice::Words<Base>>")]
    pub base: Option<Base>,
    /// Gravity (m/s², world frame); by default as the model says, else 0, 0, -9.81.
    pub gravity: Option<[f64; 3]>,
    /// How geared rotors enter the parameters; by default as the model says.
    #[serde(with = "choice::optional")]
    #[schemars(with = "Option<choice::Words<RotorModel>>")]
    pub rotors: Option<RotorModel>,
    /// Joints that are held, each with its position (rad or m): their links count as one body.
    pub lock: Vec<Setting>,
    /// Values of arguments of a xacro file.
    pub xacro_arg: Vec<Argument>,
    /// Whether a model with warnings is refused.
    pub strict: bool,
}

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
        Ok(BuildOptions { base: self.base, gravity: self.gravity.map(Vector3::from), rotors: self.rotors })
    }
}

/// A model with the mechanism that is built from it.
#[derive(Debug, Clone)]
pub struct Model {
    /// Name for messages: the file, or `standard input`.
    pub label: String,
    /// Its text; of a xacro file the one that it expands to, of a scene of USD the mechanism file that says the same.
    pub text: String,
    /// Whether it is a scene of USD.
    is_scene: bool,
    /// What the text describes.
    pub builder: MechanismBuilder,
    /// Mesh files that inertias come from.
    mesh_files: text::MeshFiles,
    /// Choices with which the mechanism was built.
    pub options: BuildOptions,
    /// Joints that are held at a position, against the text.
    pub lock: Vec<Setting>,
    /// The mechanism.
    pub mechanism: Mechanism,
    /// The same model in the format of the output, where that is another one.
    target: Option<Box<Model>>,
}

impl Model {
    /// Reads and builds a model: a name that the inputs know, or `builtin:NAME`.
    pub fn load(name: &str, options: &ModelOptions, inputs: &dyn Inputs) -> Result<Self> {
        let build = options.build_options()?;
        let label = label(name);
        let text::ModelText { text, mut builder, meshes: mesh_files } =
            text::read(name, &options.xacro_arg, inputs).at(&label)?;
        let is_scene = text.is_none();
        let text = match text {
            Some(text) => text,
            None => describe(&builder, build.base, Syntax::Toml).at(&label)?,
        };
        if let Some(warning) = builder.warnings.first().filter(|_| options.strict) {
            return Err(Error::Input(warning.clone())).at(&label);
        }
        lock::lock(&mut builder, &options.lock)?;
        let mechanism = builder.build(&build).at(&label)?;
        check_names(&mechanism).at(&label)?;
        let lock = options.lock.clone();
        Ok(Self { label, text, is_scene, builder, mesh_files, options: build, lock, mechanism, target: None })
    }

    /// Loads another model with the same choices.
    pub fn like(&self, name: &str, context: &Context<'_>) -> Result<Self> {
        let BuildOptions { base, gravity, rotors } = self.options;
        let (gravity, lock) = (gravity.map(Into::into), self.lock.clone());
        let options = ModelOptions { base, gravity, rotors, lock, ..ModelOptions::default() };
        Self::load(name, &options, context.inputs)
    }

    /// Builds a model from a text that stands alone.
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
            mechanism,
            target: None,
        })
    }

    /// Builds the same model from another text, which stands alone.
    pub(crate) fn with_text(&self, text: String) -> Result<Self> {
        let mut builder = read::model(&text, &self.mesh_files).at(&self.label)?;
        lock::lock(&mut builder, &self.lock)?;
        let mechanism = builder.build(&self.options).at(&self.label)?;
        Ok(Self { text, builder, mechanism, ..self.clone() })
    }

    /// Builds the mechanism with another base.
    pub fn with_base(&self, base: Base) -> Result<Mechanism> {
        let options = BuildOptions { base: Some(base), ..self.options };
        self.builder.build(&options).at(&self.label)
    }

    /// Whether rotor inertias shall be identified for joints whose rotor the model does not have.
    pub fn wants_rotors(&self) -> bool {
        matches!(self.options.rotors, Some(RotorModel::Symmetric | RotorModel::General))
    }

    /// Adds the rotors that [`wants_rotors`](Self::wants_rotors) asks for to the driven joints that have none, where the data are not
    /// there to give joints an inertia.
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

/// Refuses names with control characters: they would act on terminals and break tables.
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

/// Name of an input for messages.
pub fn label(name: &str) -> String {
    if name == "-" { "standard input".into() } else { name.to_owned() }
}

/// A model in a result object.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Summary {
    /// Its name.
    pub name: String,
    /// Number of links that move.
    pub bodies: usize,
    /// Number of degrees of freedom, loops closed.
    pub dof: usize,
    /// `fixed` or `floating`.
    pub base: &'static str,
    /// Gravity (m/s²).
    pub gravity: [f64; 3],
    /// Number of loops.
    pub loops: usize,
    /// Number of rotors.
    pub rotors: usize,
}

impl Summary {
    /// Describes a mechanism with its loops closed.
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
