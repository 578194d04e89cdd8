//! Knowledge of a robot without its payload.

use crate::estimation::reduction::summary::Summary;

/// Knowledge of the value of a joint term.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TermKnowledge {
    /// Known value.
    Fixed,
    /// Value that is known unless the data contradict it.
    Presumed,
    /// Unknown value.
    Unknown,
}

/// Knowledge of the robot without its payload.
#[derive(Debug, Clone, Copy)]
pub enum Unloaded<'a> {
    /// Values of all unknowns. Joint terms whose value is unknown, or contradicted by the data, are estimated together with the payload.
    Model {
        /// Values of the unknowns, zero for unknown ones.
        values: &'a [f64],
        /// Knowledge of each of [`Equations::terms`](crate::estimation::Equations::terms).
        terms: &'a [TermKnowledge],
    },
    /// Summary of another log of the same robot.
    Log(&'a Summary),
}
