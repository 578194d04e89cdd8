//! Subject, options and result of a design.

use nalgebra::DMatrix;

use super::basis::{Basis, Profile};
use super::certificate::Certificate;
use super::columns::JointColumn;
use super::criteria::Criterion;
use super::limits::Usage;
use super::search::Robust;
use super::trajectory::Trajectory;
use crate::identifiability::Regrouping;
use crate::mechanism::Mechanism;

/// Family of basis functions of a design.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Family {
    /// A Fourier series whose first period is the duration.
    Fourier {
        /// Number of harmonics.
        harmonics: usize,
    },
    /// A quintic B-spline.
    Spline {
        /// Number of control points.
        points: usize,
    },
    /// Velocities at equally spaced knots.
    VelocityKnots {
        /// Number of intervals.
        intervals: usize,
    },
    /// Movements from rest to rest, equally long.
    PointToPoint {
        /// Number of intervals.
        intervals: usize,
        /// Profile of each movement.
        profile: Profile,
    },
}

impl Family {
    /// Returns the basis over a duration (s).
    pub fn basis(self, duration: f64) -> Basis {
        let knots = |n: usize| (0..=n).map(|k| duration * k as f64 / n.max(1) as f64).collect();
        match self {
            Self::Fourier { harmonics } => Basis::Fourier { period: duration, harmonics },
            Self::Spline { points } => Basis::Spline { degree: 5, duration, points },
            Self::VelocityKnots { intervals } => Basis::VelocityKnots { knots: knots(intervals) },
            Self::PointToPoint { intervals, profile } => {
                Basis::PointToPoint { knots: knots(intervals), profile }
            }
        }
    }
}

/// A robot as it may be, and what is to be known of it.
#[derive(Debug, Clone)]
pub struct Subject<'m> {
    /// The robot.
    pub mechanism: &'m Mechanism,
    /// Base parameters for what is measured.
    pub regrouping: Regrouping,
    /// Terms of its joints' own model.
    pub terms: Vec<(usize, JointColumn)>,
    /// Noise of each velocity coordinate's measured force; infinite where it is not measured.
    pub noise: Vec<f64>,
    /// Highest force of each velocity coordinate.
    pub effort: Vec<f64>,
    /// Information on the unknowns from before, in their order.
    pub prior: Option<DMatrix<f64>>,
}

/// Choices of [`design()`](super::design()).
#[derive(Debug, Clone, PartialEq)]
pub struct DesignOptions {
    /// Functions of time.
    pub family: Family,
    /// Duration in seconds.
    pub duration: f64,
    /// Samples that will be measured (Hz).
    pub rate: f64,
    /// Rate (Hz) at which all limits are checked in the end.
    pub check_rate: f64,
    /// Criterion to minimize.
    pub criterion: Criterion,
    /// Aggregation over several models.
    pub robust: Robust,
    /// Position of each coordinate (with loops, of each independent one) at the start and, for Fourier series, at the end; the best one where not given.
    pub start: Option<Vec<f64>>,
    /// Searches from different random motions; the best one counts.
    pub starts: usize,
    /// Steps of each search, at most.
    pub iterations: usize,
    /// Seed of the random motions: same seed, same design.
    pub seed: u64,
}

impl Default for DesignOptions {
    fn default() -> Self {
        Self {
            family: Family::Fourier { harmonics: 8 },
            duration: 20.0,
            rate: 100.0,
            check_rate: 1000.0,
            criterion: Criterion::D,
            robust: Robust::Mean,
            start: None,
            starts: 4,
            iterations: 100,
            seed: 1,
        }
    }
}

/// Progress of a design.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Progress {
    /// Steps taken, of all searches together.
    pub steps: usize,
    /// The best criterion so far.
    pub best: f64,
}

/// A motion and what it shows.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Design {
    /// The motion.
    pub trajectory: Trajectory,
    /// The criterion reached.
    pub criterion: f64,
    /// The criterion that each search reached.
    pub searches: Vec<f64>,
    /// Certificate of the motion for the first model.
    pub certificate: Certificate,
    /// Used parts of the limits, the fullest first.
    pub usage: Vec<Usage>,
    /// Coordinates that the limits hold still.
    pub held: Vec<String>,
    /// Terms that act exactly like other unknowns.
    pub absorbed: Vec<String>,
    /// Whether the search that found the motion converged: further steps would not improve it.
    pub converged: bool,
}
