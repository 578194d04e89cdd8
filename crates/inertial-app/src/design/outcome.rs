//! A designed motion with its certificate.

use std::path::Path;

use inertial::excitation::{Certificate, Coordinate, Design, Trajectory, Usage};
use inertial::mechanism::BodyKind;
use schemars::JsonSchema;
use serde::Serialize;

use super::subject::{effort, measured, stuck_joints};
use super::{Options, moving, rests};
use crate::note::{SearchEnd, as_flag};
use crate::{Error, Model, Note, Result};

const SCHEMA: &str = "inertial/design/1";

/// A designed motion and what it will show.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Outcome {
    /// Schema of the object.
    #[schemars(extend("const" = SCHEMA))]
    schema: &'static str,
    /// The robot.
    pub model: ModelSize,
    /// What the sensors give.
    pub measured: &'static str,
    /// What was made small.
    pub criterion: Reached,
    /// Length (s).
    pub duration: f64,
    /// Samples per second.
    pub rate: f64,
    /// Number of samples.
    pub samples: usize,
    /// What the data of this motion will show, and how well.
    #[serde(flatten)]
    pub certificate: Certificate,
    /// Unknowns whose expected error is large.
    pub weak: Vec<String>,
    /// Limits, the fullest first.
    pub limits: Vec<Usage>,
    /// The motion.
    pub trajectory: Trajectory,
    /// Whether the search was ended early, by its time or by the user.
    pub interrupted: bool,
    /// Whether the search converged: further steps would not improve the motion.
    pub converged: bool,
    /// Notes in words.
    pub warnings: Vec<String>,
    /// What moves, with its limits.
    #[serde(skip)]
    pub coordinates: Vec<Coordinate>,
    /// Highest force of each velocity coordinate.
    #[serde(skip)]
    pub effort: Vec<f64>,
    /// Seed of the random motions.
    #[serde(skip)]
    pub seed: u64,
}

/// Size of a model.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ModelSize {
    /// Its name.
    pub name: String,
    /// Number of links that move.
    pub bodies: usize,
    /// Number of velocity coordinates.
    pub dof: usize,
}

/// Value of the criterion.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Reached {
    /// Its name.
    pub name: &'static str,
    /// Its value for this motion; null where it is infinite.
    #[schemars(with = "Option<f64>")]
    pub value: f64,
    /// Its value for the best motion of each search.
    #[schemars(with = "Vec<Option<f64>>")]
    pub searches: Vec<f64>,
}

impl Outcome {
    pub(super) fn new(own: &Options, model: &Model, design: Design, end: SearchEnd) -> Self {
        let mechanism = &model.mechanism;
        let mut notes: Vec<Note> = mechanism.warnings().iter().cloned().map(Note::Model).collect();
        if !design.held.is_empty() {
            notes.push(Note::HeldStill(design.held));
        }
        if !design.absorbed.is_empty() {
            notes.push(Note::ActLikeLinks(design.absorbed));
        }
        let stuck = stuck_joints(mechanism, own.margin);
        if !stuck.is_empty() {
            notes.push(Note::EffortNotHeld(stuck));
        }
        if rests(own, mechanism) {
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
            criterion: Reached {
                name: own.goal().name(),
                value: design.criterion,
                searches: design.searches,
            },
            // Intervals that were pruned make it shorter.
            duration: design.trajectory.duration(),
            rate: own.rate,
            samples: design.trajectory.samples(own.rate).unwrap_or(0),
            weak: design.certificate.weak().map(|e| e.name.clone()).collect(),
            certificate: design.certificate,
            limits: design.usage,
            trajectory: design.trajectory,
            interrupted: matches!(end, SearchEnd::Time(_) | SearchEnd::Stopped),
            converged: end == SearchEnd::Converged,
            warnings: notes.iter().map(|note| note.message(&as_flag)).collect(),
            coordinates: moving(own, mechanism),
            effort: effort(mechanism, own.margin),
            seed: own.seed,
        }
    }

    /// Writes the trajectory in a format.
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
    /// Samples.
    Csv,
    /// A ROS `JointTrajectory`.
    Yaml,
    /// Coefficients.
    Json,
    /// Coefficients.
    Toml,
}

impl Format {
    /// The format that a file's name asks for.
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
