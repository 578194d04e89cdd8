//! Comparison of a written model with the given one.

use inertial::estimation::{Equations, JointEstimate, Summary, validate};
use inertial::mechanism::{DEFAULT_SNAP, Mechanism};

use super::Data;
use super::write_model::Written;
use crate::{Context, Model, Note, Result};

/// Accepted factor and difference between the residuals of the written and the given model. Identified values contain
/// the noise of the log, while the given ones may be exact.
const FACTOR: f64 = 1.02;
const MORE: f64 = 0.001;

impl Data {
    /// Returns whether the written model, with its joint file, predicts the held-out parts of the logs (the fitted
    /// ones if nothing is held out) no worse than the given model. A note reports a worse prediction. Without logs
    /// the result is `true`.
    pub(super) fn is_no_worse(
        &mut self,
        given: &Model,
        written: &Written,
        joints: &[JointEstimate],
        context: &Context<'_>,
    ) -> Result<bool> {
        let new = given.target().with_text(written.text.clone())?;
        let joints = if written.joint_file.is_some() { joints } else { &[] };
        let before = self.residual(&given.mechanism, &[], context)?;
        let after = self.residual(&new.mechanism, joints, context)?;
        let (Some(before), Some(after)) = (before, after) else { return Ok(true) };
        let worse = after > FACTOR * before && after > before + MORE;
        if worse {
            context.note(&Note::NotWritten { before, after });
        }
        Ok(!worse)
    }

    /// Returns the relative residual of a model on the held-out parts of the logs, or on the fitted ones; `None` without logs.
    fn residual(
        &mut self,
        mechanism: &Mechanism,
        joints: &[JointEstimate],
        context: &Context<'_>,
    ) -> Result<Option<f64>> {
        let (equations, values) = Equations::with_joint_values(mechanism, joints, DEFAULT_SNAP)?;
        let mut summary = Summary::empty(&equations);
        let held_out = self.validation.is_some();
        for log in &mut self.logs {
            let range = if held_out { log.validation.clone() } else { log.fit.clone() };
            log.recording.restart(context);
            summary.merge(&log.recording.summary(context, &equations, range, None)?)?;
        }
        if summary.samples == 0 {
            return Ok(None);
        }
        Ok(Some(validate(&equations, &summary, &values)?.relative_rms))
    }
}
