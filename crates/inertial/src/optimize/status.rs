//! Reason why an iterative solver stopped.

use std::fmt;

/// Reason why an iterative solver stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SolverStatus {
    /// Stopping criterion met.
    Converged,
    /// Stalled without meeting the stopping criterion: no further step improves the result.
    Stalled,
    /// Largest number of steps reached.
    StepLimit,
    /// Stopped by the caller.
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
