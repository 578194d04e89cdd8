//! Notes for the user about repairs, choices and omissions. All their texts are in this module.

use std::fmt;

use inertial::Coded;
use inertial::consistency::significant;
use inertial::estimation::Validation;

use crate::setting::Setting;

/// Reason why a search ended.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum SearchEnd {
    /// Convergence: further steps would not improve the motion.
    Converged,
    /// Step limit.
    Steps,
    /// Time limit (s).
    Time(f64),
    /// Stop by the user.
    Stopped,
}

/// Note for the user besides the result.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Note {
    /// Preparation of a log.
    Log {
        /// Name of the log.
        log: String,
        /// Repairs and choices.
        text: String,
    },
    /// Warning of the library about a model.
    Model(String),
    /// Identified joint values that the model format cannot represent, with the name of the file that has them.
    NotInModel(String),
    /// Joint file beside the model from which joint terms are read.
    JointFile(String),
    /// Lag of the torques that is read from the joint file of a model.
    LagOfJointFile {
        /// Lag (s).
        seconds: f64,
        /// Standard error of the lag, if it was estimated.
        std_error: Option<f64>,
        /// Name of the joint file.
        file: String,
    },
    /// Joint file that belongs to another version of the model.
    OtherJointFile(String),
    /// Reflected rotor inertias that a URDF cannot represent.
    NoRotorsInUrdf,
    /// Values that were changed or omitted in the written model.
    Written(String),
    /// Identified model that predicts worse than the given one and was not written.
    NotWritten {
        /// Relative residual of the given model.
        before: f64,
        /// Relative residual of the new model.
        after: f64,
    },
    /// Unusable result, whose model was not written.
    NotUsable,
    /// Joints with too few usable samples for validation.
    NotJudged(Vec<String>),
    /// Joints without measured torques while a threshold was given.
    NoTorques(Vec<String>),
    /// Two fitted logs with common rows.
    SameLog([String; 2]),
    /// Validation log with rows of a fitted one.
    ValidatedWithFitted([String; 2]),
    /// Two fitted logs that were prepared with different options.
    MixedPreparation([String; 2]),
    /// Trajectory without the motion of a floating base.
    BaseRests,
    /// Base that floats because the logs contain its motion.
    BaseFloats,
    /// Base that remains fixed because it does not move in the logs.
    BaseDoesNotMove,
    /// Wheels of a robot that does not fly.
    WheelsLocked,
    /// Unused columns.
    UnusedColumns(Vec<String>),
    /// Joints that are missing in the logs, with the positions at which they are locked.
    NotLogged(Vec<Setting>),
    /// Joints without range of motion.
    HeldStill(Vec<String>),
    /// Joints whose friction in the model reaches their effort limit, which a design then ignores.
    EffortNotHeld(Vec<String>),
    /// Joint terms that cannot be distinguished from the inertia of links.
    ActLikeLinks(Vec<String>),
    /// Unknown whose expected standard error would grow by a factor if a design left out offsets of the torques, so that it includes them.
    OffsetsIncluded {
        /// Name of the unknown.
        name: String,
        /// Factor of the standard error.
        factor: f64,
    },
    /// Unknown whose expected standard error grows by a factor if the torques have offsets.
    OffsetsMatter {
        /// Name of the unknown.
        name: String,
        /// Factor of the standard error.
        factor: f64,
    },
    /// Floating base that is held still during a design.
    BaseHeld,
    /// Lag of the torques behind the motion that was corrected.
    Lag {
        /// Lag (s).
        seconds: f64,
        /// Standard error of the lag.
        std_error: f64,
    },
    /// Lag of the readings of a force/torque sensor behind the motion that was corrected.
    SensorLag {
        /// Lag (s).
        seconds: f64,
        /// Standard error of the lag.
        std_error: f64,
    },
    /// Search that ended before convergence.
    NotConverged(SearchEnd),
    /// Mesh that cannot be shown.
    Mesh {
        /// File of the mesh.
        file: String,
        /// Reason of the failure.
        reason: String,
        /// Link of the mesh.
        link: String,
    },
    /// Kernels that were not measured.
    LeftOut {
        /// Names of the kernels.
        kernels: &'static str,
        /// Reason why the model does not support them.
        reason: String,
    },
    /// Joints with terms of a joint model or coupled drives, which no export format supports.
    NotExported(Vec<String>),
    /// Exported bodies of a result that consist of several links, with these links.
    MergedBodies(Vec<(String, Vec<String>)>),
    /// Links that joints move relative to the load of a controller.
    NotInLoad {
        /// Link of the load.
        link: String,
        /// Links that are not part of the load.
        links: Vec<String>,
        /// Joints that move them.
        joints: Vec<String>,
    },
}

impl Coded for Note {
    fn code(&self) -> &'static str {
        match self {
            Self::Log { .. } => "log",
            Self::Model(_) => "model",
            Self::NotInModel(_) => "not-in-model",
            Self::JointFile(_) => "joint-file",
            Self::LagOfJointFile { .. } => "joint-file-lag",
            Self::OtherJointFile(_) => "other-joint-file",
            Self::NoRotorsInUrdf => "no-rotors-in-urdf",
            Self::Written(_) => "written",
            Self::NotWritten { .. } => "not-written",
            Self::NotUsable => "not-usable",
            Self::NotJudged(_) => "not-judged",
            Self::NoTorques(_) => "no-torques",
            Self::SameLog(_) => "same-log",
            Self::ValidatedWithFitted(_) => "validated-with-fitted",
            Self::MixedPreparation(_) => "mixed-preparation",
            Self::BaseRests => "base-rests",
            Self::BaseFloats => "base-floats",
            Self::BaseDoesNotMove => "base-does-not-move",
            Self::WheelsLocked => "wheels-locked",
            Self::UnusedColumns(_) => "unused-columns",
            Self::NotLogged(_) => "not-logged",
            Self::HeldStill(_) => "held-still",
            Self::EffortNotHeld(_) => "effort-not-held",
            Self::ActLikeLinks(_) => "act-like-links",
            Self::OffsetsIncluded { .. } => "offsets-included",
            Self::OffsetsMatter { .. } => "offsets-matter",
            Self::BaseHeld => "base-held",
            Self::Lag { .. } => "lag",
            Self::SensorLag { .. } => "sensor-lag",
            Self::NotConverged(_) => "not-converged",
            Self::Mesh { .. } => "mesh",
            Self::LeftOut { .. } => "left-out",
            Self::NotExported(_) => "not-exported",
            Self::MergedBodies(_) => "merged-bodies",
            Self::NotInLoad { .. } => "not-in-load",
        }
    }
}

impl Note {
    /// Returns the message, with options spelled as in the interface of the caller.
    pub fn message(&self, spell: &dyn Fn(&str) -> String) -> String {
        match self {
            Self::Log { log, text } => format!("{log}: {text}"),
            Self::Model(text) | Self::Written(text) => text.clone(),
            Self::NotInModel(file) => format!(
                "the model format cannot represent all joint values (offsets, rotor inertias, some friction, a lag): {file} \
                 contains all of them; validate and export read it"
            ),
            Self::JointFile(name) => format!("the joint terms are read from {name}"),
            Self::LagOfJointFile { seconds, std_error, file } => format!(
                "the lag in {file} is corrected: torques recorded {}{} ms {} than the motion; {} 0 disables the correction",
                significant(1e3 * seconds.abs(), 3),
                std_error.map_or(String::new(), |error| format!(" ± {}", significant(1e3 * error, 1))),
                if *seconds < 0.0 { "earlier" } else { "later" },
                spell("lag")
            ),
            Self::OtherJointFile(name) => {
                format!("{name} was written for another version of the model and is not used")
            }
            Self::NoRotorsInUrdf => {
                "a URDF cannot represent reflected rotor inertias: they are in the result only".into()
            }
            Self::NotWritten { before, after } => format!(
                "the model was not written: it would predict the torques worse ({:.1} %) than the given one ({:.1} %); {} writes it anyway",
                100.0 * after,
                100.0 * before,
                spell("force")
            ),
            Self::NotUsable => {
                format!(
                    "the model was not written: the verdict is \"do not use\"; {} writes it anyway",
                    spell("force")
                )
            }
            Self::NotJudged(names) => format!(
                "{}: fewer than {} usable samples, too few to judge the model: the threshold is not met",
                names.join(", "),
                Validation::ENOUGH
            ),
            Self::NoTorques(names) => format!(
                "{}: no measured torques, so the threshold is not met; if they have no sensor, name the joints to judge with {}",
                names.join(", "),
                spell("joints")
            ),
            Self::SameLog([a, b]) => {
                format!("{a} and {b} share rows; counting them twice makes standard errors too small")
            }
            Self::ValidatedWithFitted([a, b]) => {
                format!("{a} overlaps the fitted log {b}: validate with a different log")
            }
            Self::MixedPreparation([a, b]) => format!(
                "{a} and {b} were prepared with different options (filter, joints, slow samples): their residuals are not comparable"
            ),
            Self::BaseRests => "no columns base.x … base.qw: the base is treated as fixed".into(),
            Self::BaseFloats => format!(
                "the logs contain the motion of the base (base.*): it is treated as floating, as with {0} floating; {0} fixed keeps it fixed",
                spell("base")
            ),
            Self::BaseDoesNotMove => format!(
                "the base does not move in the logs and is treated as fixed: base.* is not used; {} floating uses it",
                spell("base")
            ),
            Self::WheelsLocked => {
                format!("the wheels are locked: they turn only with {} momentum", spell("measured"))
            }
            Self::UnusedColumns(names) => format!("unused columns: {}", names.join(" ")),
            Self::NotLogged(held) => {
                let held: Vec<String> = held.iter().map(|s| format!("{}={}", s.column, s.value)).collect();
                format!(
                    "joints that the logs do not have are locked: {} ({} sets other positions)",
                    held.join(", "),
                    spell("lock")
                )
            }
            Self::HeldStill(names) => format!("the limits permit no motion of {}", names.join(", ")),
            Self::EffortNotHeld(names) => format!(
                "the friction of {} in the model reaches the effort limit, which is therefore not enforced: check both",
                names.join(", ")
            ),
            Self::OffsetsIncluded { name, factor } => format!(
                "the design includes unknown offsets of the torques, as identifications estimate them: with a motion designed without \
                 them, standard errors could be {} times as large ({name}); {} leaves them out",
                significant(*factor, 2),
                spell("offset=no")
            ),
            Self::OffsetsMatter { name, factor } => format!(
                "with unknown offsets of the torques, which identifications estimate unless the data show that there are none, \
                 standard errors are up to {} times as large ({name}); {} designs for them",
                significant(*factor, 2),
                spell("offset")
            ),
            Self::ActLikeLinks(names) => {
                format!(
                    "{} cannot be separated from the inertia of their links and are included there",
                    names.join(", ")
                )
            }
            Self::BaseHeld => format!("the base is held still: {} X,A lets it move", spell("base-motion")),
            Self::Lag { seconds, std_error } | Self::SensorLag { seconds, std_error } => format!(
                "the {} are recorded {} ± {} ms {} than the motion, which is corrected ({} {} sets this lag)",
                if matches!(self, Self::Lag { .. }) { "torques" } else { "readings of the sensor" },
                significant(1e3 * seconds.abs(), 3),
                significant(1e3 * std_error, 1),
                if *seconds < 0.0 { "earlier" } else { "later" },
                spell("lag"),
                significant(*seconds, 3)
            ),
            Self::NotConverged(end) => match end {
                SearchEnd::Time(seconds) => format!(
                    "the search did not converge within {seconds} s; a longer {} may give a better motion",
                    spell("time-limit")
                ),
                SearchEnd::Steps => format!(
                    "the search did not converge; more {} may give a better motion",
                    spell("iterations")
                ),
                SearchEnd::Stopped | SearchEnd::Converged => {
                    "the search was stopped before it converged: this is the best motion found".into()
                }
            },
            Self::Mesh { file, reason, link } => {
                format!("{file}: {reason}; the page shows {link} without it")
            }
            Self::LeftOut { kernels, reason } => format!("left out: {kernels}: {reason}"),
            Self::NotExported(joints) => {
                format!("terms of a joint model and coupled drives are left out: {}", joints.join(", "))
            }
            Self::MergedBodies(bodies) => {
                let bodies: Vec<String> =
                    bodies.iter().map(|(name, links)| format!("{name} ({})", links.join(" + "))).collect();
                format!(
                    "links that are fixed together are exported as one body: {}; give such a body the whole inertia and \
                     remove those of its other links, or export the model with {} RESULT, which distributes them over the links",
                    bodies.join(", "),
                    spell("values")
                )
            }
            Self::NotInLoad { link, links, joints } => format!(
                "the load of {link} does not include {} (moved by {}); {} JOINT=VALUE includes such links",
                links.join(", "),
                joints.join(", "),
                spell("lock")
            ),
        }
    }
}

/// Text with options spelled as on the command line.
impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message(&as_flag))
    }
}

/// Spells options as on the command line: `--prior-weight`. Texts of results use it.
pub fn as_flag(option: &str) -> String {
    format!("--{option}")
}
