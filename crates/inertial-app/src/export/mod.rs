//! Export of values for controllers and simulators: C code of the dynamics, loads, inertias of links.

mod attached;
mod c;
mod loads;
mod robot;
mod simulators;

use std::fmt;
use std::path::{Path, PathBuf};

use inertial::Warnings;
use inertial::mechanism::MechanismBuilder;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::choice::{self, Choice as _, Inertias, Target};
use crate::{Context, Error, Inputs, Model, Note, Result, ensure_option};
use attached::Load;
use robot::{Part, Robot, Values};

/// Options of an export.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Options {
    /// Format to export to.
    #[serde(with = "choice")]
    #[schemars(with = "choice::Words<Target>")]
    pub to: Target,
    /// Name of a result of `identify` whose values replace those of the model.
    pub values: Option<String>,
    /// Link that is the load of a controller, with everything that fixed and locked joints attach to it; by default the only body of
    /// a result.
    pub link: Option<String>,
    /// Link in whose frame a load is expressed; by default that of the load.
    pub frame: Option<String>,
    /// Base name of the C files and prefix of their identifiers; by default the name of the robot.
    pub name: Option<String>,
    /// Inertias from which the C code computes forces.
    #[serde(with = "choice")]
    #[schemars(with = "choice::Words<Inertias>")]
    pub inertias: Inertias,
}

inertial::with_changes!(Options);

impl Options {
    /// Returns the same options with the C code named after the path of its source.
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

/// Returns whether a name is a valid C identifier.
fn is_identifier(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

const SCHEMA: &str = "inertial/export/1";

/// Exported texts for a controller, a simulator or a program.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Outcome {
    /// Schema of the object.
    #[schemars(extend("const" = SCHEMA))]
    schema: &'static str,
    /// Format of the texts.
    pub to: &'static str,
    /// Texts, each with the name of a file.
    pub files: Vec<File>,
    /// Links and frame of the load of a controller.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load: Option<LoadParts>,
    /// Operation counts of the functions of C code.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub operations: Vec<Operations>,
    /// Warnings about the model and about values that are not exported.
    #[serde(flatten)]
    pub warnings: Warnings<Note>,
}

/// Links and frame of the load of a controller.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LoadParts {
    /// Links of the load: the chosen one, and those that fixed and locked joints attach to it. `payload` for a payload.
    pub links: Vec<String>,
    /// Link in whose frame the load is expressed, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frame: Option<String>,
}

impl fmt::Display for LoadParts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let frame = self.frame.as_deref().unwrap_or("the link that carries it");
        write!(f, "load: {}; in the frame of {frame}", self.links.join(", "))
    }
}

/// Operation counts of a function.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Operations {
    /// Name of the function without the prefix.
    pub function: &'static str,
    /// Products and quotients.
    pub products: usize,
    /// Sums and differences.
    pub sums: usize,
    /// Sines and cosines.
    pub functions: usize,
}

/// Text with the name of a file.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct File {
    /// Name of the file.
    pub name: String,
    /// Content of the file.
    pub text: String,
}

impl Outcome {
    /// Returns the paths of the texts: the given one, or several beside it.
    pub fn places(&self, out: &Path) -> Vec<(PathBuf, &str)> {
        match &self.files[..] {
            [one] => vec![(out.to_owned(), one.text.as_str())],
            several => {
                several.iter().map(|file| (out.with_file_name(&file.name), file.text.as_str())).collect()
            }
        }
    }
}

/// Returns whether an input of an export is a result of `identify`, which contains values and no model.
pub fn is_result(input: &str, inputs: &dyn Inputs) -> bool {
    robot::names_result(input, inputs)
}

/// Exports a model as texts; without a model, only the values of a result are exported.
pub fn run(model: Option<&Model>, options: &Options, context: &Context<'_>) -> Result<Outcome> {
    if let Some(name) = &options.name {
        ensure_option!(
            is_identifier(name),
            "name",
            "expected letters, digits and _, a letter first, not '{name}'"
        );
    }
    let values = options.values.as_ref().map(|name| Values::read(name, context)).transpose()?;
    ensure_option!(
        options.frame.is_none() || options.to.is_load(),
        "frame",
        "applies to loads of controllers only, not to {}",
        options.to.word()
    );
    // A payload on a link is exported as a load by itself.
    let alone =
        values.as_ref().is_some_and(|v| options.to.is_load() && model.is_none_or(|m| v.is_payload_of(m)));
    let frames = model;
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
    let (link, frame) = (options.link.as_deref(), options.frame.as_deref());
    let load = match (&robot, model, &values) {
        _ if !options.to.is_load() => None,
        (Some(robot), Some(model), _) => Some(Load::of_robot(robot, model, link, frame)?),
        (_, _, Some(values)) => Some(Load::of_result(values, frames, link, frame)?),
        _ => None,
    };
    let stem = || {
        let own = robot.as_ref().map_or("load", |robot| robot.mechanism.name());
        options.name.clone().unwrap_or_else(|| c::identifier(own))
    };
    let one = |name: &str, text: String| vec![File { name: format!("{}{name}", stem()), text }];
    let mut operations = Vec::new();
    let files = match (options.to, &load) {
        (Target::C, _) => {
            let (Some(model), Some(robot)) = (model, &robot) else {
                return Err(Error::option(
                    "to",
                    "c needs a model, because a result has no geometry; give the result as values of the model",
                ));
            };
            let (files, counts) = c::files(model, robot, &stem(), options.inertias)?;
            operations = counts;
            files
        }
        (Target::Ur, Some(load)) => one(".script", loads::universal_robots(load)),
        (Target::Franka, Some(load)) => one(".cpp", loads::franka(load)),
        (Target::FrankaDesk, Some(load)) => one(".json", loads::franka_desk(load)),
        (Target::Kuka, Some(load)) => one(".src", loads::kuka(load)),
        (Target::Ros2Control, Some(load)) => {
            let gravity = robot
                .as_ref()
                .map_or_else(|| MechanismBuilder::new("", "").gravity, |r| r.mechanism.gravity());
            one(".yaml", loads::ros2_control(load, &gravity)?)
        }
        (Target::Mujoco, _) => one(".xml", simulators::mujoco(&parts)),
        (Target::Gazebo, _) => one(".sdf", simulators::gazebo(&parts)),
        (Target::Pinocchio, _) => one(".py", simulators::pinocchio(&parts)),
        (Target::Drake, _) => one(".py", simulators::drake(&parts)),
        (_, None) => Vec::new(),
    };
    let of_model = frames.iter().flat_map(|m| m.notes());
    let of_load = load.iter().flat_map(|load| load.warnings.clone());
    // Loads list their links, and the function for Pinocchio replaces the sum of all links of a joint.
    let by_link = matches!(options.to, Target::Mujoco | Target::Gazebo | Target::Drake);
    let merged = values.as_ref().filter(|_| robot.is_none() && by_link).and_then(Values::merged);
    let warnings =
        of_model.chain(robot.and_then(|robot| robot.warning)).chain(of_load).chain(merged).collect();
    let load = load.map(|load| LoadParts { links: load.links, frame: load.frame });
    Ok(Outcome { schema: SCHEMA, to: options.to.word(), files, load, operations, warnings })
}
