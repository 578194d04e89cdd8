//! Result of a design: the motion and its certificate.

use std::path::Path;

use inertial::Warnings;
use inertial::estimation::ModelSize;
use inertial::excitation::{Certificate, Coordinate, Design, Trajectory, Usage};
use inertial::identifiability::Measured;
use inertial::mechanism::{BodyKind, Mechanism};
use schemars::JsonSchema;
use serde::Serialize;

use super::subject::{effort, joints_held_by_friction, measured};
use super::{Options, is_base_held, moving};
use crate::choice::{Goal, Shape};
use crate::note::SearchEnd;
use crate::{Error, Model, Note, Result};

const SCHEMA: &str = "inertial/design/1";

/// Designed motion with its expected accuracy.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Outcome {
    /// Schema of the object.
    #[schemars(extend("const" = SCHEMA))]
    schema: &'static str,
    /// Size of the model.
    pub model: ModelSize,
    /// Measured quantities.
    pub measured: &'static str,
    /// Criterion that was minimized.
    pub criterion: CriterionValue,
    /// Length (s).
    pub duration: f64,
    /// Sampling rate (Hz).
    pub rate: f64,
    /// Number of samples.
    pub samples: usize,
    /// Certificate: parameters that the motion determines, with expected standard errors.
    #[serde(flatten)]
    pub certificate: Certificate,
    /// Unknowns with a large expected error.
    pub weak: Vec<String>,
    /// Usage of the limits, largest first.
    pub limits: Vec<Usage>,
    /// Designed trajectory.
    pub trajectory: Trajectory,
    /// Whether the search was ended early, by the time limit or by the user.
    pub interrupted: bool,
    /// Whether the search converged: further steps would not improve the motion.
    pub converged: bool,
    /// Warnings.
    #[serde(flatten)]
    pub warnings: Warnings<Note>,
    /// Moving coordinates with their limits.
    #[serde(skip)]
    pub coordinates: Vec<Coordinate>,
    /// Force limit of each velocity coordinate.
    #[serde(skip)]
    pub effort: Vec<f64>,
    /// Seed of the random motions.
    #[serde(skip)]
    pub seed: u64,
}

/// Returns the meaning of the criterion's value. The published method for cycloids of free flights does not divide by the noise.
fn meaning(own: &Options, mechanism: &Mechanism) -> &'static str {
    let measured = measured(own, mechanism);
    let published = own.trajectory == Some(Shape::Cycloid) && measured == Measured::Momentum;
    match own.goal(measured) {
        Goal::Condition if published => "condition number of the regressor, not divided by the noise",
        Goal::Paper if published => {
            "condition number of the regressor, not divided by the noise, plus the weight over the mean square of the speeds"
        }
        _ => own.criterion(measured).meaning(),
    }
}

/// Value of the criterion.
#[derive(Debug, Serialize, JsonSchema)]
pub struct CriterionValue {
    /// Name of the criterion.
    pub name: &'static str,
    /// Meaning of its value.
    pub meaning: &'static str,
    /// Value of the criterion for this motion; null if infinite.
    #[schemars(with = "Option<f64>")]
    pub value: f64,
    /// Value of the criterion for the best motion of each search.
    #[schemars(with = "Vec<Option<f64>>")]
    pub searches: Vec<f64>,
}

impl Outcome {
    pub(super) fn new(own: &Options, model: &Model, design: Design, end: SearchEnd) -> Self {
        let mechanism = &model.mechanism;
        let mut notes = model.notes();
        if !design.held.is_empty() {
            notes.push(Note::HeldStill(design.held));
        }
        if !design.absorbed.is_empty() {
            notes.push(Note::ActLikeLinks(design.absorbed));
        }
        let held_by_friction = joints_held_by_friction(mechanism, own.margin);
        if !held_by_friction.is_empty() {
            notes.push(Note::EffortNotHeld(held_by_friction));
        }
        if is_base_held(own, mechanism) {
            notes.push(Note::BaseHeld);
        }
        if end != SearchEnd::Converged {
            notes.push(Note::NotConverged(end));
        }
        Self {
            schema: SCHEMA,
            model: ModelSize {
                name: mechanism.name().to_owned(),
                bodies: mechanism.bodies().iter().filter(|b| b.kind == BodyKind::Link).count(),
                dof: mechanism.nv(),
            },
            measured: measured(own, mechanism).name(),
            criterion: CriterionValue {
                name: own.criterion(measured(own, mechanism)).name(),
                meaning: meaning(own, mechanism),
                value: design.criterion,
                searches: design.searches,
            },
            // Pruned intervals shorten the motion.
            duration: design.trajectory.duration(),
            rate: own.rate,
            samples: design.trajectory.samples(own.rate).unwrap_or(0),
            weak: design.certificate.weak().map(|e| e.name.clone()).collect(),
            certificate: design.certificate,
            limits: design.usage,
            trajectory: design.trajectory,
            interrupted: matches!(end, SearchEnd::Time(_) | SearchEnd::Stopped),
            converged: end == SearchEnd::Converged,
            warnings: Warnings(notes),
            coordinates: moving(own, mechanism),
            effort: effort(mechanism, own.margin),
            seed: own.seed,
        }
    }

    /// Returns the text of the trajectory in a format.
    pub fn trajectory_text(&self, format: Format) -> Result<String> {
        Ok(match format {
            Format::Csv => self.trajectory.to_csv(self.rate)?,
            Format::Yaml => self.trajectory.to_ros_yaml(self.rate)?,
            Format::Json => self.trajectory.to_json(),
            Format::Toml => self.trajectory.to_toml(),
        })
    }
}

/// Format of a trajectory file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Samples in CSV.
    Csv,
    /// ROS `JointTrajectory` in YAML.
    Yaml,
    /// Coefficients in JSON.
    Json,
    /// Coefficients in TOML.
    Toml,
}

impl Format {
    /// Returns the format for the extension of a file name.
    pub fn of_file(path: &Path) -> Result<Self> {
        match path.extension().and_then(|e| e.to_str()) {
            Some("csv") => Ok(Self::Csv),
            Some("yaml" | "yml") => Ok(Self::Yaml),
            Some("json") => Ok(Self::Json),
            Some("toml") => Ok(Self::Toml),
            _ => {
                let reason =
                    format!("{}: expected a name ending in .csv, .yaml, .json or .toml", path.display());
                Err(Error::option("out", reason))
            }
        }
    }
}
