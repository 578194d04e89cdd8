//! Notes beside a result: what was repaired, chosen or left out. All their words stand here.

use std::fmt;

use inertial::consistency::significant;
use inertial::estimation::Validation;

use crate::setting::Setting;

/// Reason why a search ended.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum SearchEnd {
    /// Further steps would not improve the motion.
    Converged,
    /// The steps were used up.
    Steps,
    /// The time (s) was over.
    Time(f64),
    /// The user stopped it.
    Stopped,
}

/// Something that people should know beside the result.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Note {
    /// How a log was prepared.
    Log {
        /// Name of the log.
        log: String,
        /// What was repaired or chosen.
        text: String,
    },
    /// What the library says of a model.
    Model(String),
    /// The format of the model has no place for some identified values of joints.
    NotInModel,
    /// Terms of joints come from this file beside the model.
    JointFile(String),
    /// A joint file belongs to another version of the model.
    OtherJointFile(String),
    /// A URDF has no place for reflected rotor inertias.
    NoRotorsInUrdf,
    /// Values that a writer changed or left out.
    Written(String),
    /// The model with the identified values predicts worse than the given one.
    NotWritten {
        /// Relative residual of the given model.
        before: f64,
        /// Relative residual of the new model.
        after: f64,
    },
    /// The result is of no use, so the model with the identified values was not written.
    NotUsable,
    /// Joints with too few samples that count.
    NotJudged(Vec<String>),
    /// Two logs of a fit with common rows.
    SameLog([String; 2]),
    /// A log to validate with has rows of one that was fitted.
    ValidatedWithFitted([String; 2]),
    /// Two logs of a fit that were prepared by other options.
    MixedPreparation([String; 2]),
    /// The trajectory does not say how a floating base moves.
    BaseRests,
    /// Wheels are given but the robot does not fly.
    WheelsLocked,
    /// Columns that no part of the job needs.
    UnusedColumns(Vec<String>),
    /// Joints that the logs do not have, with the positions at which they are held.
    NotLogged(Vec<Setting>),
    /// Joints without room to move.
    HeldStill(Vec<String>),
    /// Joints whose friction in the model reaches their effort limit, which a design does not hold then.
    EffortNotHeld(Vec<String>),
    /// Joint terms that cannot be told from the inertia of links.
    ActLikeLinks(Vec<String>),
    /// A floating base is held still during a design.
    BaseHeld,
    /// Torques came later than the motion, which was corrected.
    Lag {
        /// Lag (s).
        seconds: f64,
        /// Its standard error.
        std_error: f64,
    },
    /// A search ended before it converged.
    NotConverged(SearchEnd),
    /// A mesh that cannot be shown.
    Mesh {
        /// Its file.
        file: String,
        /// What is wrong with it.
        reason: String,
        /// The link that it belongs to.
        link: String,
    },
}

impl Note {
    /// Stable code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Log { .. } => "log",
            Self::Model(_) => "model",
            Self::NotInModel => "not-in-model",
            Self::JointFile(_) => "joint-file",
            Self::OtherJointFile(_) => "other-joint-file",
            Self::NoRotorsInUrdf => "no-rotors-in-urdf",
            Self::Written(_) => "written",
            Self::NotWritten { .. } => "not-written",
            Self::NotUsable => "not-usable",
            Self::NotJudged(_) => "not-judged",
            Self::SameLog(_) => "same-log",
            Self::ValidatedWithFitted(_) => "validated-with-fitted",
            Self::MixedPreparation(_) => "mixed-preparation",
            Self::BaseRests => "base-rests",
            Self::WheelsLocked => "wheels-locked",
            Self::UnusedColumns(_) => "unused-columns",
            Self::NotLogged(_) => "not-logged",
            Self::HeldStill(_) => "held-still",
            Self::EffortNotHeld(_) => "effort-not-held",
            Self::ActLikeLinks(_) => "act-like-links",
            Self::BaseHeld => "base-held",
            Self::Lag { .. } => "lag",
            Self::NotConverged(_) => "not-converged",
            Self::Mesh { .. } => "mesh",
        }
    }

    /// The message, with options spelled as the caller's users know them.
    pub fn message(&self, spell: &dyn Fn(&str) -> String) -> String {
        match self {
            Self::Log { log, text } => format!("{log}: {text}"),
            Self::Model(text) | Self::Written(text) => text.clone(),
            Self::NotInModel => {
                "the format of the model has no place for all values of joints (offsets, rotor inertias, some friction): all of them are \
                 in NAME.joints.json beside it, which validate and export read"
                    .into()
            }
            Self::JointFile(name) => format!("the terms of the joints come from {name}"),
            Self::OtherJointFile(name) => {
                format!("{name} was written for another version of the model and is not used")
            }
            Self::NoRotorsInUrdf => {
                "a URDF has no place for reflected rotor inertias: they are in the result only".into()
            }
            Self::NotWritten { before, after } => format!(
                "the model was not written: it would predict the torques worse ({:.1} %) than the given one ({:.1} %); {} writes it anyway",
                100.0 * after,
                100.0 * before,
                spell("force")
            ),
            Self::NotUsable => {
                format!("the model was not written: the verdict is \"do not use\"; {} writes it anyway", spell("force"))
            }
            Self::NotJudged(names) => format!(
                "{}: fewer than {} samples count, too few to judge the model: no threshold is met",
                names.join(", "),
                Validation::ENOUGH
            ),
            Self::SameLog([a, b]) => {
                format!("{a} and {b} have common rows: what counts twice makes standard errors too small")
            }
            Self::ValidatedWithFitted([a, b]) => {
                format!("{a} overlaps the fitted log {b}: validate with a different log")
            }
            Self::MixedPreparation([a, b]) => format!(
                "{a} and {b} were prepared with different options (filter, joints, slow samples): their residuals are not comparable"
            ),
            Self::BaseRests => "there are no columns base.x … base.qw: the base rests".into(),
            Self::WheelsLocked => {
                format!("wheels turn only with {} momentum: here they count as locked", spell("measured"))
            }
            Self::UnusedColumns(names) => format!("columns that are not used: {}", names.join(" ")),
            Self::NotLogged(held) => {
                let held: Vec<String> = held.iter().map(|s| format!("{}={}", s.column, s.value)).collect();
                format!(
                    "joints that the logs do not have are held: {} ({} holds them elsewhere)",
                    held.join(", "),
                    spell("lock")
                )
            }
            Self::HeldStill(names) => format!("the limits hold {} still", names.join(", ")),
            Self::EffortNotHeld(names) => format!(
                "the friction of {} in the model reaches the effort limit, which is not held: check both",
                names.join(", ")
            ),
            Self::ActLikeLinks(names) => {
                format!("{} act like the inertia of their links and count there", names.join(", "))
            }
            Self::BaseHeld => format!("the base is held still: {} X,A moves it", spell("base-motion")),
            Self::Lag { seconds, std_error } => format!(
                "torques come {} ± {} ms {} than the motion: corrected ({} {} does the same elsewhere)",
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
                    "the search was stopped before it converged: this is the best motion until then".into()
                }
            },
            Self::Mesh { file, reason, link } => {
                format!("{file}: {reason}; the page shows {link} without it")
            }
        }
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message(&str::to_owned))
    }
}

/// Spells options as the command line does: `--prior-weight`. Texts of results use it.
pub fn as_flag(option: &str) -> String {
    format!("--{option}")
}
