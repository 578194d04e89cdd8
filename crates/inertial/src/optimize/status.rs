//! Reason why an iterative solver ended.

use std::fmt;

/// Reason why an iterative solver ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SolverStatus {
    /// The stopping criterion was met.
    Converged,
    /// No further step improves the result, but the stopping criterion was not met.
    Stalled,
    /// The largest number of steps was taken.
    StepLimit,
    /// The caller stopped the solver.
    Stopped,
}

impl SolverStatus {
    /// Returns whether the stopping criterion was met.
    pub fn is_converged(self) -> bool {
        self == Self::Converged
    }
}

impl fmt::Display for SolverStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Converged => "converged",
            Self::Stalled => "stalled",
            Self::StepLimit => "step limit reached",
            Self::Stopped => "stopped by the caller",
        })
    }
}
