//! Limit on the number of steps along a path of many configurations.

use super::closed_mechanism::{ClosedMechanism, ClosedWorkspace};
use crate::{Error, Result};

/// Maximum number of steps of a path, in addition to [`STEPS_EACH`] for each of its configurations. Steps are at most 0.3 rad long,
/// and most configurations of a log need one or two.
const MOST_STEPS: usize = 100_000;
const STEPS_EACH: usize = 10;

/// Length of a path through many configurations so far. The steps to each configuration are bounded by [`ClosedMechanism::move_to`]
/// alone, which is not enough for a log whose positions jump in every row.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct PathLength {
    steps: usize,
    configurations: usize,
}

impl PathLength {
    fn add(&mut self, steps: usize) -> Result<()> {
        self.steps += steps;
        self.configurations += 1;
        let most = MOST_STEPS.saturating_add(STEPS_EACH.saturating_mul(self.configurations));
        if self.steps > most {
            return Err(Error::Infeasible(format!(
                "the independent coordinates move too far between samples: the loops were followed in {} steps up to here, \
                 expected at most {most}",
                self.steps
            )));
        }
        Ok(())
    }
}

impl ClosedMechanism<'_> {
    /// Moves `q` to the next configuration of a path.
    pub(crate) fn move_along(
        &self,
        path: &mut PathLength,
        workspace: &mut ClosedWorkspace,
        q: &mut [f64],
        target: &[f64],
    ) -> Result<f64> {
        let before = workspace.steps;
        let residual = self.move_to(workspace, q, target)?;
        path.add(workspace.steps - before)?;
        Ok(residual)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn long_paths_are_refused() {
        let mut path = PathLength::default();
        path.add(MOST_STEPS + STEPS_EACH).unwrap();
        path.add(STEPS_EACH).unwrap();
        let message = path.add(STEPS_EACH + 1).unwrap_err().to_string();
        assert!(message.contains("in 100031 steps up to here, expected at most 100030"), "{message}");
    }
}
