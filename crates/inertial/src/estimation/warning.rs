//! Warnings of estimates: codes, data and texts.

use std::fmt;

use crate::consistency::significant;
use crate::warning::{Coded, Warnings};

/// Largest number of names in a message; the others are counted.
const NAMED: usize = 12;

/// Source of the split between a rotor inertia and the inertia of its link, of which the data determine the sum only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RotorSplit {
    /// Rotor inertia of the model.
    Model,
    /// Wide prior.
    Prior,
    /// None: the link receives all of it.
    Link,
}

/// Warning about an estimate. [`fmt::Display`] gives the text.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Warning {
    /// Warning about the model or its loops.
    Model(String),
    /// Joint terms of a mechanism with loops, which are estimated for the independent joints only.
    DependentJoints {
        /// Independent joints.
        independent: Vec<String>,
    },
    /// Rotor inertias that cannot be separated from the inertias of their links.
    RotorsNotSeparated {
        /// Joints of the rotors.
        joints: Vec<String>,
        /// Source of the split.
        split: RotorSplit,
    },
    /// Joints whose noise was replaced by the average of all joints.
    ShortLog {
        /// Joints.
        joints: Vec<String>,
    },
    /// Log with too few reversals of the joints to test for lags, zero errors, lengths and gravity.
    NotDiagnosed {
        /// Number of reversals that are needed.
        needed: usize,
    },
    /// Mechanism with loops, a floating base, ball joints or a base wrench: only errors of the torques are searched for.
    OnlyTorquesDiagnosed,
    /// Combinations of unknowns that the motion does not excite.
    NotExcited {
        /// Number of combinations.
        missing: usize,
        /// Number of unknowns.
        of: usize,
        /// What the unknowns are called: "unknowns" or "base parameters".
        kind: &'static str,
        /// Unknowns in these combinations.
        names: Vec<String>,
    },
    /// Base parameters that no motion can excite because some forces are not measured.
    NotMeasured {
        /// Forces that are not measured.
        missing: Vec<String>,
        /// Largest number of base parameters that a motion can excite.
        most: usize,
        /// Number of base parameters.
        of: usize,
    },
    /// Links without inertia in the model, whose prior was computed from the distances between joints.
    GuessedPrior {
        /// Links.
        links: Vec<String>,
    },
    /// Prior of bodies without a model: equal balls.
    BallPrior {
        /// Mass (kg).
        mass: f64,
        /// Radius (m).
        radius: f64,
    },
    /// Optimization that stopped before its optimality was proved.
    NotProved {
        /// Cost of the result.
        cost: f64,
        /// Proven lower bound of the cost; infinite if there is none.
        lower_bound: f64,
    },
    /// Credible intervals that have not converged.
    RoughIntervals {
        /// Number of independent points.
        points: f64,
    },
    /// Robust weights that did not converge.
    OutliersNotConverged {
        /// Number of passes.
        passes: usize,
    },
    /// Drive coupling that was adopted.
    CouplingAdopted {
        /// Description of the coupling.
        coupling: String,
        /// Share of the squared residual that it explains, at most one.
        share: f64,
        /// Joints of the coupling.
        joints: [String; 2],
    },
    /// Drive coupling that may exist.
    CouplingPossible {
        /// Description of the coupling.
        coupling: String,
        /// Share of the squared residual that it would explain.
        share: f64,
    },
    /// Drive coupling that was rejected because consistent bodies do not explain the torques with it.
    CouplingRejected,
    /// Joint terms that were removed because the fit gave them impossible negative values.
    NegativeTerms {
        /// Terms, as `joint.term`.
        terms: Vec<String>,
    },
    /// Drive gains that did not converge.
    GainsNotConverged,
    /// Drive gains with large standard errors.
    UncertainGains {
        /// Joints.
        joints: Vec<String>,
    },
    /// Readings of a force/torque sensor that were negated.
    WrenchNegated,
    /// Base parameters of a payload that the motion does not excite.
    PayloadNotExcited {
        /// Robot of a fleet, counted from one.
        robot: Option<usize>,
        /// Number of excited base parameters.
        excited: usize,
        /// Number of base parameters.
        of: usize,
        /// Quantities that are not determined.
        open: Vec<String>,
    },
    /// Quantities of a payload that the torques of this robot cannot determine.
    PayloadNotIdentifiable {
        /// Quantities.
        open: Vec<String>,
    },
    /// Known joint terms that the data contradict and that were estimated together with a payload.
    TermsContradicted {
        /// Names of the terms.
        terms: Vec<String>,
    },
    /// Links heavier than the robot can be.
    Implausible {
        /// Links with their masses (kg).
        links: Vec<(String, f64)>,
        /// Approximate mass of the robot (kg).
        robot: f64,
    },
    /// Physically impossible bodies.
    Impossible {
        /// Bodies.
        bodies: Vec<String>,
    },
    /// Likelihood that did not converge.
    LikelihoodNotConverged {
        /// Number of steps.
        steps: usize,
    },
    /// Least squares with noisy rates.
    Biased,
    /// Residuals larger than the stated noise explains.
    LargeResiduals {
        /// Ratio of the residuals to those expected.
        ratio: f64,
    },
}

impl Coded for Warning {
    fn code(&self) -> &'static str {
        match self {
            Self::Model(_) => "model",
            Self::DependentJoints { .. } => "dependent-joints",
            Self::RotorsNotSeparated { .. } => "rotors-not-separated",
            Self::ShortLog { .. } => "short-log",
            Self::NotDiagnosed { .. } => "not-diagnosed",
            Self::OnlyTorquesDiagnosed => "only-torques-diagnosed",
            Self::NotExcited { .. } => "not-excited",
            Self::NotMeasured { .. } => "not-measured",
            Self::GuessedPrior { .. } => "guessed-prior",
            Self::BallPrior { .. } => "ball-prior",
            Self::NotProved { .. } => "not-proved",
            Self::RoughIntervals { .. } => "rough-intervals",
            Self::OutliersNotConverged { .. } => "outliers-not-converged",
            Self::CouplingAdopted { .. } => "coupling-adopted",
            Self::CouplingPossible { .. } => "coupling-possible",
            Self::CouplingRejected => "coupling-rejected",
            Self::NegativeTerms { .. } => "negative-terms",
            Self::GainsNotConverged => "gains-not-converged",
            Self::UncertainGains { .. } => "uncertain-gains",
            Self::WrenchNegated => "wrench-negated",
            Self::PayloadNotExcited { .. } => "payload-not-excited",
            Self::PayloadNotIdentifiable { .. } => "payload-not-identifiable",
            Self::TermsContradicted { .. } => "terms-contradicted",
            Self::Implausible { .. } => "implausible",
            Self::Impossible { .. } => "impossible",
            Self::LikelihoodNotConverged { .. } => "likelihood-not-converged",
            Self::Biased => "biased",
            Self::LargeResiduals { .. } => "large-residuals",
        }
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Model(text) => f.write_str(text),
            Self::DependentJoints { independent } => write!(
                f,
                "joint terms are estimated for the independent joints {} only: friction of the other joints is included \
                 as far as it has the same effect",
                independent.join(", ")
            ),
            Self::RotorsNotSeparated { joints, split } => {
                let how = match split {
                    RotorSplit::Model => "the split is taken from the model",
                    RotorSplit::Prior => "a wide prior determines the split",
                    RotorSplit::Link => "all of it is assigned to the link",
                };
                let links = if joints.len() == 1 { "its link" } else { "their links" };
                let joints = joints.join(", ");
                write!(
                    f,
                    "the data determine only the sum of the rotor inertia of {joints} and the inertia of {links}: {how}"
                )
            }
            Self::ShortLog { joints } => write!(
                f,
                "the log is too short to estimate the noise of {}: the average of all joints, relative to their forces, \
                 is used; record a longer log or use a higher cut-off",
                joints.join(", ")
            ),
            Self::NotDiagnosed { needed } => write!(
                f,
                "no joint reverses {needed} times in the log: lags, zeros, lengths and gravity are not checked; record a longer motion"
            ),
            Self::OnlyTorquesDiagnosed => f.write_str(
                "zeros, lengths, a tilt of the base and exchanged or negated motions are not checked for mechanisms with loops, a \
                 floating base, ball joints or a base wrench",
            ),
            Self::NotExcited { missing, of, kind, names } => {
                let named = names[..names.len().min(NAMED)].join(", ");
                write!(f, "this motion does not excite {missing} of {of} {kind}: combinations of {named}")?;
                match names.len().saturating_sub(NAMED) {
                    0 => Ok(()),
                    more => write!(f, " and {more} more"),
                }
            }
            Self::NotMeasured { missing, most, of } => write!(
                f,
                "without {} no motion can excite more than {most} of the {of} base parameters",
                missing.join(" and ")
            ),
            Self::GuessedPrior { links } => write!(
                f,
                "the model has no inertias of {}: the prior takes them from the distances between joints",
                links.join(", ")
            ),
            Self::BallPrior { mass, radius } => write!(
                f,
                "without a model the prior of each body is a ball of {mass} kg with a radius of {radius} m: values that the \
                 rows do not determine come from it"
            ),
            Self::NotProved { cost, lower_bound } => {
                let gap = cost - lower_bound;
                f.write_str("the optimization stopped ")?;
                if gap.is_finite() {
                    write!(f, "with a duality gap of {gap:.1e}")?;
                } else {
                    f.write_str("without a bound on its optimality")?;
                }
                write!(f, " at cost {cost:.6e}: better bodies may exist")
            }
            Self::RoughIntervals { points } => write!(
                f,
                "the credible intervals come from about {points:.0} independent points and are rough: use a stronger prior \
                 or more data"
            ),
            Self::OutliersNotConverged { passes } => {
                write!(f, "the weights of outliers did not converge in {passes} passes")
            }
            Self::CouplingAdopted { coupling, share, joints: [a, b] } => write!(
                f,
                "{coupling}: found from the data, it explains {:.0} % of the squared residual of {a} and {b}",
                100.0 * share
            ),
            Self::CouplingPossible { coupling, share } => write!(
                f,
                "possibly {coupling}: it would explain {:.0} % of their squared residual; state it in a joint model to use \
                 it",
                100.0 * share
            ),
            Self::CouplingRejected => f.write_str(
                "a drive coupling was found but not adopted: physically consistent bodies do not explain the torques with \
                 it either",
            ),
            Self::NegativeTerms { terms } => write!(
                f,
                "the fit gives negative values of {}, which is impossible, so these terms are left out: another term is \
                 missing, or torque and motion are not simultaneous",
                terms.join(", ")
            ),
            Self::GainsNotConverged => f.write_str("the gains did not converge: the logs do not determine them"),
            Self::UncertainGains { joints } => write!(
                f,
                "the gains of {} have standard errors above 20 %, and so have the parameters that depend on them: add logs \
                 with a known payload",
                joints.join(", ")
            ),
            Self::WrenchNegated => f.write_str(
                "the sensor measures the wrench of the body on the sensor: its readings were negated",
            ),
            Self::PayloadNotExcited { robot: Some(robot), excited, of, .. } => write!(
                f,
                "the motion of robot {robot} excites {excited} of the {of} base parameters of its payload"
            ),
            Self::PayloadNotExcited { robot: None, excited, of, open } => {
                write!(f, "this motion excites {excited} of the {of} base parameters of the payload")?;
                if open.is_empty() { Ok(()) } else { write!(f, "; it does not determine the {}", listed(open)) }
            }
            Self::PayloadNotIdentifiable { open } => write!(
                f,
                "the torques of this robot do not determine the {} of the payload: only its base parameters are identified",
                listed(open)
            ),
            Self::TermsContradicted { terms } => write!(
                f,
                "the data contradict the known values of {}: they were estimated together with the payload",
                terms.join(", ")
            ),
            Self::Implausible { links, robot } => {
                let heavy: Vec<String> =
                    links.iter().map(|(name, mass)| format!("{name} ({} kg)", significant(*mass, 2))).collect();
                write!(
                    f,
                    "a link is implausibly heavy: {}, more than three times the whole robot (about {} kg); its \
                     combinations with other parameters may still be right",
                    heavy.join(", "),
                    significant(*robot, 2)
                )
            }
            Self::Impossible { bodies } => {
                write!(f, "physically impossible: {}; use the consistent estimator", bodies.join(", "))
            }
            Self::LikelihoodNotConverged { steps } => {
                write!(f, "the likelihood did not converge in {steps} steps")
            }
            Self::Biased => f.write_str(
                "least squares is biased by the noise of the rates, which standard errors do not include: use eiv",
            ),
            Self::LargeResiduals { ratio } => write!(
                f,
                "residuals are {ratio:.2} times as large as the stated noise explains: the noise may be larger, or the \
                 geometry or positions wrong"
            ),
        }
    }
}

/// Joins names with commas and a final "and".
fn listed(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [one] => one.clone(),
        [others @ .., last] => format!("{} and {last}", others.join(", ")),
    }
}

impl Warnings<Warning> {
    /// Creates the list with the warnings about a model.
    pub(crate) fn of_model(texts: &[String]) -> Self {
        texts.iter().cloned().map(Warning::Model).collect()
    }
}
