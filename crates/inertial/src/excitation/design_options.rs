//! Subject, options and result of a design.

use nalgebra::DMatrix;

use super::basis::{Basis, Profile};
use super::certificate::Certificate;
use super::columns::JointColumn;
use super::criteria::Criterion;
use super::limits::Usage;
use super::model_aggregation::ModelAggregation;
use super::trajectory::Trajectory;
use crate::identifiability::Regrouping;
use crate::mechanism::Mechanism;

/// Family of basis functions of a design.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Family {
    /// Fourier series whose first period is the duration.
    Fourier {
        /// Number of harmonics.
        harmonics: usize,
    },
    /// Quintic B-spline.
    Spline {
        /// Number of control points.
        points: usize,
    },
    /// Velocities at equally spaced knots.
    VelocityKnots {
        /// Number of intervals.
        intervals: usize,
    },
    /// Movements from rest to rest, of equal duration.
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

/// Possible variant of a robot, with the unknowns to identify.
#[derive(Debug, Clone)]
pub struct Subject<'m> {
    /// Mechanism of the robot.
    pub mechanism: &'m Mechanism,
    /// Base parameters of the measured quantities.
    pub regrouping: Regrouping,
    /// Terms of the joint model.
    pub terms: Vec<(usize, JointColumn)>,
    /// Noise of the measured force of each velocity coordinate; infinite if it is not measured.
    pub noise: Vec<f64>,
    /// Largest force of each velocity coordinate.
    pub effort: Vec<f64>,
    /// Prior information about the unknowns, in their order.
    pub prior: Option<DMatrix<f64>>,
}

/// Options of [`design()`](super::design()).
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct DesignOptions {
    /// Family of basis functions.
    pub family: Family,
    /// Duration in seconds.
    pub duration: f64,
    /// Sampling rate of the measurement (Hz).
    pub rate: f64,
    /// Rate (Hz) of the final check of all limits.
    pub check_rate: f64,
    /// Criterion to minimize.
    pub criterion: Criterion,
    /// Aggregation over several models.
    pub robust: ModelAggregation,
    /// Position of each coordinate (of each independent one for mechanisms with loops) at the start and, for Fourier series, at
    /// the end; optimized if absent.
    pub start: Option<Vec<f64>>,
    /// Number of searches from different random motions; the best result is used.
    pub starts: usize,
    /// Largest number of steps of each search.
    pub iterations: usize,
    /// Seed of the random motions; equal seeds yield equal designs.
    pub seed: u64,
}

crate::with_changes!(DesignOptions);

impl Default for DesignOptions {
    fn default() -> Self {
        Self {
            family: Family::Fourier { harmonics: 8 },
            duration: 20.0,
            rate: 100.0,
            check_rate: 1000.0,
            criterion: Criterion::D,
            robust: ModelAggregation::Mean,
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
    /// Number of steps of all searches together.
    pub steps: usize,
    /// Best criterion so far.
    pub best: f64,
}

/// Designed motion with its certificate.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Design {
    /// Designed trajectory.
    pub trajectory: Trajectory,
    /// Criterion of the motion.
    pub criterion: f64,
    /// Criterion reached by each search.
    pub searches: Vec<f64>,
    /// Certificate of the motion for the first model.
    pub certificate: Certificate,
    /// Used fractions of the limits, in descending order.
    pub usage: Vec<Usage>,
    /// Coordinates that cannot move because of their limits.
    pub held: Vec<String>,
    /// Terms that act exactly like other unknowns.
    pub absorbed: Vec<String>,
    /// Whether the search that found the motion converged: further steps would not improve it.
    pub converged: bool,
}
