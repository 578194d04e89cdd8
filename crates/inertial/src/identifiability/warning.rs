//! Warnings of an analysis: codes, data and texts.

use std::fmt;

use crate::warning::Coded;

/// Warning about an analysis. [`fmt::Display`] gives the text.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Warning {
    /// Warning about the model or its loops.
    Model(String),
    /// Ranks of the recursion that differ between two primes.
    PrimesDiffer {
        /// Rank modulo each prime.
        ranks: [usize; 2],
    },
    /// Rank of the recursion that sampled rows do not reach.
    RecursionDiffers {
        /// Rank of the recursion.
        recursion: usize,
        /// Number of independent sampled rows.
        sampled: usize,
    },
    /// Combinations that differ from the regressor at new configurations.
    CombinationsDiffer {
        /// Largest difference relative to the terms.
        difference: f64,
    },
    /// Rank that was found by exact sampling because the recursion does not apply.
    Sampled {
        /// Reason.
        reason: String,
    },
    /// Rounded numbers that were corrected so that relations between joint axes hold.
    Restored {
        /// Largest change of a number.
        moved: f64,
        /// Rank as written; `None` if the loops do not move.
        literal: Option<usize>,
    },
    /// Assembly configuration in which several motion branches meet.
    Branches {
        /// Rank of the branch that is used.
        rank: usize,
        /// Ranks of the others; `None` if unknown.
        others: Vec<Option<usize>>,
    },
    /// Base parameters with too many combinations to list.
    NotListed {
        /// Number of base parameters.
        rank: usize,
    },
    /// Loops that do not move as written.
    LiterallyRigid,
    /// Rank that differs from the rank as written.
    LiteralRank {
        /// Rank of the corrected geometry.
        rank: usize,
        /// Rank as written.
        literal: usize,
        /// Joints that are nearly in a special position; none if gravity is.
        joints: Vec<String>,
        /// Tolerance of the correction.
        snap: f64,
    },
    /// Relations that hold up to rounding and were not restored.
    LostRelations {
        /// Rank without the relations.
        written: usize,
        /// Rank with the relations, if it is known.
        found: Option<usize>,
    },
    /// Combinations that differ from those as written.
    Moved {
        /// Joint that the correction moved most.
        joint: String,
        /// Rotation (rad).
        turned: f64,
        /// Displacement (m).
        shifted: f64,
    },
    /// Momentum that determines ratios of parameters only.
    OnlyRatios,
    /// Momentum that is assumed to be known because the model has no wheels.
    NoWheels,
    /// Momentum of a mechanism with loops and wheels, which is assumed to have any value.
    WheelsIgnored,
    /// Masses of the model for which the rank is special.
    SpecialMasses {
        /// Rank with other masses.
        generic: usize,
    },
    /// Free flight of which only the motion is measured.
    OnlyMotion,
    /// Combinations for random masses, because the model does not give all of them.
    RandomMasses,
}

impl Warning {
    /// Returns whether the warning only describes how the result was found and is no reason for doubt.
    pub fn is_note(&self) -> bool {
        matches!(self, Self::Sampled { .. })
    }
}

impl Coded for Warning {
    fn code(&self) -> &'static str {
        match self {
            Self::Model(_) => "model",
            Self::PrimesDiffer { .. } => "primes-differ",
            Self::RecursionDiffers { .. } => "recursion-differs",
            Self::CombinationsDiffer { .. } => "combinations-differ",
            Self::Sampled { .. } => "sampled",
            Self::Restored { .. } => "restored",
            Self::Branches { .. } => "branches",
            Self::NotListed { .. } => "not-listed",
            Self::LiterallyRigid => "literally-rigid",
            Self::LiteralRank { .. } => "literal-rank",
            Self::LostRelations { .. } => "lost-relations",
            Self::Moved { .. } => "moved",
            Self::OnlyRatios => "only-ratios",
            Self::NoWheels => "no-wheels",
            Self::WheelsIgnored => "wheels-ignored",
            Self::SpecialMasses { .. } => "special-masses",
            Self::OnlyMotion => "only-motion",
            Self::RandomMasses => "random-masses",
        }
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Model(text) => f.write_str(text),
            Self::PrimesDiffer { ranks: [a, b] } => write!(
                f,
                "the recursion gives rank {a} modulo one prime and {b} modulo another: the result is not certain"
            ),
            Self::RecursionDiffers { recursion, sampled } => write!(
                f,
                "the recursion gives rank {recursion}, but at random configurations only {sampled} rows are independent"
            ),
            Self::CombinationsDiffer { difference } => write!(
                f,
                "the combinations differ from the torques at new configurations by {difference:.1e} of their terms: the \
                 result is not certain"
            ),
            Self::Sampled { reason } => {
                write!(f, "the rank was found by exact sampling instead of the recursion: {reason}")
            }
            Self::Restored { moved, literal } => {
                write!(
                    f,
                    "the numbers of the file are rounded: relations between joint axes were restored by moving numbers by at \
                     most {moved:.1e}; as written "
                )?;
                match literal {
                    Some(rank) => write!(f, "the rank is {rank}"),
                    None => f.write_str("the loops do not move"),
                }
            }
            Self::Branches { rank, others } => {
                let others: Vec<String> =
                    others.iter().map(|r| r.map_or_else(|| "unknown".into(), |r| r.to_string())).collect();
                write!(
                    f,
                    "several motion branches meet in the assembly configuration: the one that is used has rank {rank}; not \
                     used: rank {}",
                    others.join(", ")
                )
            }
            Self::NotListed { rank } => write!(
                f,
                "the combinations of {rank} base parameters are too many to list; see null_space for their dependencies"
            ),
            Self::LiterallyRigid => {
                f.write_str("taken literally (snap 0) the loops do not move: their geometry is rounded")
            }
            Self::LiteralRank { rank, literal, joints, snap } => {
                write!(
                    f,
                    "rank {rank} is that of the geometry with rounded numbers corrected; taken literally (snap 0) it is \
                     {literal}: "
                )?;
                match joints.as_slice() {
                    [] => f.write_str("gravity lies")?,
                    [one] => write!(f, "joint {one} lies")?,
                    several => write!(f, "joints {} lie", several.join(", "))?,
                }
                write!(f, " within {snap} of a special position without being in it")
            }
            Self::LostRelations { written, found } => {
                let found = found.map_or_else(|| "lower".into(), |rank| rank.to_string());
                write!(
                    f,
                    "some relations between joint axes hold only up to the rounding of the file: with them the rank is {found}, \
                     without them it is {written}"
                )
            }
            Self::Moved { joint, turned, shifted } => write!(
                f,
                "the combinations are those of the geometry with rounded numbers corrected: joint {joint} was moved by \
                 {turned:.1e} rad and {shifted:.1e} m (as written: snap 0)"
            ),
            Self::OnlyRatios => f.write_str(
                "without wheels and at zero total momentum only ratios of parameters are identifiable: one must be known",
            ),
            Self::OnlyMotion => f.write_str(
                "only the motion of the free flight is measured, no force: only ratios of parameters are identifiable, so one must \
                 be known",
            ),
            Self::NoWheels => f.write_str(
                "the model has no wheels, so a known momentum (thrusters, a drift that is measured) is assumed; at zero total \
                 momentum only ratios of parameters are identifiable",
            ),
            Self::WheelsIgnored => f.write_str(
                "the mechanism has loops, so a known momentum (thrusters, a drift that is measured) is assumed; at the momentum that \
                 its wheels can store, fewer combinations are identifiable",
            ),
            Self::SpecialMasses { generic } => {
                write!(f, "the masses of the model are special: with other masses the rank is {generic}")
            }
            Self::RandomMasses => f.write_str(
                "the model does not give all masses: the combinations are those of a robot with random masses",
            ),
        }
    }
}
