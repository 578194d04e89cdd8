//! Check of a written model against the one that was given.

use inertial::estimation::{Equations, JointTerms, Summary, validate};
use inertial::mechanism::DEFAULT_SNAP;

use super::Data;
use crate::{Context, Model, Note, Result};

/// A written model may leave this many times the residual of the given one, or this much more: identified values carry the noise
/// of the log, and the given ones may be exact.
const FACTOR: f64 = 1.1;
const MORE: f64 = 0.005;

impl Data {
    /// Whether the written model predicts the held-out parts of the logs (the fitted ones where nothing is held out) no worse than
    /// the given model does; a note tells where not. Without logs nothing can be compared.
    pub(super) fn is_no_worse(
        &mut self,
        given: &Model,
        written: &str,
        context: &Context<'_>,
    ) -> Result<bool> {
        let new = given.target().with_text(written.to_owned())?;
        let terms = JointTerms { viscous: true, coulomb: true, ..JointTerms::default() };
        let equations = Equations::with_all_terms(&given.mechanism, terms, DEFAULT_SNAP)?;
        let other = Equations::with_all_terms(&new.mechanism, terms, DEFAULT_SNAP)?;
        let mut summary = Summary::empty(&equations);
        let held_out = self.validation.is_some();
        for log in &mut self.logs {
            let range = if held_out { log.kept.clone() } else { log.fit.clone() };
            log.recording.again(context);
            summary.merge(&log.recording.summary(context, &equations, range, None)?)?;
        }
        if summary.samples == 0 || other.names != equations.names {
            return Ok(true);
        }
        let residual = |values: &[f64]| validate(&equations, &summary, values).map(|v| v.relative_rms);
        let (before, after) = (residual(&equations.model_values()?)?, residual(&other.model_values()?)?);
        let worse = after > FACTOR * before && after > before + MORE;
        if worse {
            context.note(&Note::NotWritten { before, after });
        }
        Ok(!worse)
    }
}
