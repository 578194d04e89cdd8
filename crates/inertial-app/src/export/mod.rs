//! Values for controllers and simulators: C code of the dynamics, loads, inertias of links.

mod c;
mod loads;
mod robot;
mod simulators;

use std::path::{Path, PathBuf};

use inertial::mechanism::MechanismBuilder;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::choice::{self, Choice as _, Inertias, Target};
use crate::{Context, Error, Inputs, Model, Result, ensure_option};
use robot::{Part, Robot, Values, load};

/// Options of an export.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Options {
    /// What the values are written for.
    #[serde(with = "choice")]
    #[schemars(with = "choice::Words<Target>")]
    pub to: Target,
    /// Name of a result of identify whose values count instead of those of the model.
    pub values: Option<String>,
    /// Link whose inertia is the load of a controller; by default the only one of a result.
    pub link: Option<String>,
    /// Name of the files of C code and of what they define; by default that of the robot.
    pub name: Option<String>,
    /// Inertias that the forces of C code are computed from.
    #[serde(with = "choice")]
    #[schemars(with = "choice::Words<Inertias>")]
    pub inertias: Inertias,
}

impl Options {
    /// The same options, with C code named after the path of its source.
    pub fn named_after(self, out: &Path) -> Result<Self> {
        if self.to != Target::C {
            return Ok(self);
        }
        let stem = out.file_stem().filter(|_| out.extension().is_some_and(|e| e == "c"));
        let stem = stem.and_then(|stem| stem.to_str()).map(str::to_owned);
        let plain = |name: &String| is_identifier(name);
        ensure_option!(
            stem.as_ref().is_some_and(plain),
            "out",
            "{}: expected the name of a C source in letters, digits and _, such as arm.c",
            out.display()
        );
        Ok(Self { name: stem, ..self })
    }
}

/// Whether a name can stand in C code.
fn is_identifier(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

const SCHEMA: &str = "inertial/export/1";

/// Texts for a controller, a simulator or a program.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Outcome {
    /// Schema of the object.
    #[schemars(extend("const" = SCHEMA))]
    schema: &'static str,
    /// What they are for.
    pub to: &'static str,
    /// The texts, each with the name of a file.
    pub files: Vec<File>,
    /// Operations of the functions of C code.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub operations: Vec<Operations>,
    /// What is left out.
    pub warnings: Vec<String>,
}

/// Operations of a function.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Operations {
    /// Its name without the prefix.
    pub function: &'static str,
    /// Products and quotients.
    pub products: usize,
    /// Sums and differences.
    pub sums: usize,
    /// Sines and cosines.
    pub functions: usize,
}

/// A text with the name of a file.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct File {
    /// Name of the file.
    pub name: String,
    /// Its text.
    pub text: String,
}

impl Outcome {
    /// Paths of the texts: the one that is given, or several beside it.
    pub fn places(&self, out: &Path) -> Vec<(PathBuf, &str)> {
        match &self.files[..] {
            [one] => vec![(out.to_owned(), one.text.as_str())],
            several => {
                several.iter().map(|file| (out.with_file_name(&file.name), file.text.as_str())).collect()
            }
        }
    }
}

/// Whether an input of an export is a result of identify, which holds values and no model.
pub fn is_result(input: &str, inputs: &dyn Inputs) -> bool {
    robot::names_result(input, inputs)
}

/// Writes the texts; without a model, the values of a result are all there is.
pub fn run(model: Option<&Model>, options: &Options, context: &Context<'_>) -> Result<Outcome> {
    if let Some(name) = &options.name {
        ensure_option!(
            is_identifier(name),
            "name",
            "expected letters, digits and _, a letter first, not '{name}'"
        );
    }
    let values = options.values.as_ref().map(|name| Values::read(name, context)).transpose()?;
    // What a link carries is a load by itself.
    let alone =
        values.as_ref().is_some_and(|v| options.to.is_load() && model.is_none_or(|m| v.is_payload_of(m)));
    let model = model.filter(|_| !alone);
    let robot = match (model, &options.values, &values) {
        (Some(model), Some(name), Some(values)) => Some(Robot::of_result(model, name, values)?),
        (Some(model), ..) => Some(Robot::of_model_and_joints(model, context)?),
        _ => None,
    };
    let parts: Vec<Part> = match (&robot, &values) {
        (Some(robot), _) => robot.links.clone(),
        (None, Some(values)) => values.parts(),
        (None, None) => return Err(Error::option("values", "there is neither a model nor a result")),
    };
    let stem = || {
        let own = robot.as_ref().map_or("load", |robot| robot.mechanism.name());
        options.name.clone().unwrap_or_else(|| c::identifier(own))
    };
    let link = options.link.as_deref();
    let one = |name: &str, text: String| vec![File { name: format!("{}{name}", stem()), text }];
    let mut operations = Vec::new();
    let files = match options.to {
        Target::C => {
            let (Some(model), Some(robot)) = (model, &robot) else {
                return Err(Error::option(
                    "to",
                    "c needs the model: a result has no geometry; give it as values of the model",
                ));
            };
            let (files, counts) = c::files(model, robot, &stem(), options.inertias)?;
            operations = counts;
            files
        }
        Target::Ur => one(".script", loads::universal_robots(load(&parts, link)?)),
        Target::Franka => one(".cpp", loads::franka(load(&parts, link)?)),
        Target::FrankaDesk => one(".json", loads::franka_desk(load(&parts, link)?)),
        Target::Kuka => one(".src", loads::kuka(load(&parts, link)?)),
        Target::Ros2Control => {
            let gravity = robot
                .as_ref()
                .map_or_else(|| MechanismBuilder::new("", "").gravity, |r| r.mechanism.gravity());
            one(".yaml", loads::ros2_control(load(&parts, link)?, &gravity))
        }
        Target::Mujoco => one(".xml", simulators::mujoco(&parts)),
        Target::Gazebo => one(".sdf", simulators::gazebo(&parts)),
        Target::Pinocchio => one(".py", simulators::pinocchio(&parts)),
        Target::Drake => one(".py", simulators::drake(&parts)),
    };
    let warnings = robot.map_or(Vec::new(), |robot| robot.warnings);
    Ok(Outcome { schema: SCHEMA, to: options.to.word(), files, operations, warnings })
}
