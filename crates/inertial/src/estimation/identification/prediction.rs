//! Prediction of forces from values of the unknowns, sample by sample.

use crate::estimation::equations::{Channel, Equations};
use crate::estimation::identification::result::Identification;
use crate::estimation::joint_model::terms::Term;
use crate::estimation::reduction::measurements::Measurements;
use crate::estimation::reduction::rows::{RowBlock, Visitor};
use crate::estimation::reduction::term_columns::ShaftSpeeds;
use crate::{Error, Result};

/// Predicted forces, sample after sample: those of the coordinates and, if it is measured, the wrench on a fixed base.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct Prediction {
    /// Total force.
    pub force: Vec<f64>,
    /// Friction part of the force.
    pub friction: Vec<f64>,
}

impl Equations<'_> {
    /// Returns the equations whose unknowns are the [`Identification::values`] of a result of these equations. If the joint model
    /// was selected from the data, these are the equations of the selected model.
    pub fn chosen(&self, result: &Identification) -> Result<Self> {
        if !self.has_candidates() {
            return Ok(self.clone());
        }
        if result.motors.len() != self.coordinates() {
            let (expected, found) = (self.coordinates(), result.motors.len());
            return Err(Error::Dimension { what: "drives of the result", expected, found });
        }
        Ok(self.with_chosen(result.motors.clone(), result.joint_terms.clone()))
    }

    /// Predicts the forces of measured motion from values of the unknowns.
    pub fn predict(&self, data: &Measurements<'_>, values: &[f64]) -> Result<Prediction> {
        data.check(self)?;
        if values.len() != self.len() {
            return Err(Error::Dimension { what: "unknowns", expected: self.len(), found: values.len() });
        }
        let rows = data.len() * self.channels.len();
        let out = Prediction { force: vec![0.0; rows], friction: vec![0.0; rows] };
        let mut predictor = Predictor { values, out, column: Vec::new() };
        data.visit(self, 0..data.len(), &mut predictor)?;
        Ok(predictor.out)
    }
}

struct Predictor<'v> {
    values: &'v [f64],
    out: Prediction,
    /// Reusable memory.
    column: Vec<f64>,
}

impl Visitor for Predictor<'_> {
    fn rows(
        &mut self,
        rows: &RowBlock<'_>,
        channel: &Channel,
        entry: impl Fn(usize, usize) -> f64,
    ) -> Result<()> {
        let Self { values, out, column } = self;
        let all = rows.equations.channels.len();
        let place = |s: usize| (rows.first + s) * all + rows.row;
        for s in 0..rows.count {
            let parts = channel.entries.iter().zip(&channel.unknowns);
            out.force[place(s)] = parts.map(|(&e, &unknown)| values[unknown] * entry(e, s)).sum();
        }
        let given = &rows.equations.joint_model().given;
        let unknowns = &channel.unknowns[channel.entries.len()..];
        let mut speeds = ShaftSpeeds::default();
        for ((scale, feature), &unknown) in channel.features.iter().zip(unknowns) {
            column.clear();
            feature.fill(given, rows.data, rows.first..rows.first + rows.count, &mut speeds, column);
            let factor = scale * values[unknown];
            for (s, x) in column.iter().enumerate() {
                out.force[place(s)] += factor * x;
                if feature.term.is_friction() {
                    out.friction[place(s)] += factor * x;
                }
            }
        }
        Ok(())
    }
}

impl Term {
    /// Returns whether the term is friction, that is a force that depends on the speed.
    fn is_friction(self) -> bool {
        matches!(
            self,
            Self::Viscous | Self::Coulomb | Self::CoulombPositive | Self::CoulombNegative | Self::Stribeck
        )
    }
}
