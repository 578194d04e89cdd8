//! Construction of columns without redundant rotor inertias, that is those that act exactly like other unknowns.

use nalgebra::DMatrix;

use super::columns::{Columns, JointColumn};
use super::information::Evaluator;
use super::random_states::random_states;
use super::scaling::unit_diagonal;
use super::size::check_columns;
use crate::dynamics::{ClosedMechanism, InverseDynamics};
use crate::identifiability::Regrouping;
use crate::mechanism::{DEFAULT_SNAP, Mechanism};
use crate::{Error, Result};

impl Columns {
    /// Creates the columns of the base parameters of `regrouping` and the given terms; `noise` is the standard deviation of the
    /// measured force of each velocity coordinate, infinite if it is not measured.
    pub fn new(
        mechanism: &Mechanism,
        dynamics: &InverseDynamics,
        regrouping: &Regrouping,
        terms: &[(usize, JointColumn)],
        noise: &[f64],
    ) -> Result<Self> {
        let names = mechanism.velocity_names();
        let mut out = Self::checked(mechanism, &names, regrouping, terms, noise)?;
        out.number(&names, dynamics.layout(), regrouping, noise);
        check_columns(&out)?;
        out.add_rows(|columns| {
            let states = random_states(mechanism, 3 * columns.len() + 20, None, 1);
            Evaluator::new(dynamics, columns).information(&states)
        })?;
        out.number(&names, dynamics.layout(), regrouping, noise);
        out.evaluate(mechanism, |v| v);
        Ok(out)
    }

    /// Creates the columns of a mechanism with loops; terms and noise are those of its independent coordinates. `random` computes
    /// the information of random motion.
    pub(super) fn closed(
        closed: &ClosedMechanism<'_>,
        regrouping: &Regrouping,
        terms: &[(usize, JointColumn)],
        noise: &[f64],
        random: impl FnOnce(&Self) -> Result<DMatrix<f64>>,
    ) -> Result<Self> {
        let (mechanism, names) = (closed.mechanism(), closed.independent_names());
        let mut out = Self::checked(mechanism, &names, regrouping, terms, noise)?;
        out.number(&names, closed.layout(), regrouping, noise);
        check_columns(&out)?;
        out.add_rows(random)?;
        out.number(&names, closed.layout(), regrouping, noise);
        out.evaluate(mechanism, |row| closed.independent()[row]);
        Ok(out)
    }

    /// Creates the columns with the terms of measured coordinates, not numbered yet.
    fn checked(
        mechanism: &Mechanism,
        names: &[String],
        regrouping: &Regrouping,
        terms: &[(usize, JointColumn)],
        noise: &[f64],
    ) -> Result<Self> {
        if noise.len() != names.len() {
            return Err(Error::Dimension { what: "noise", expected: names.len(), found: noise.len() });
        }
        if let Some(bad) = noise.iter().find(|s| !(**s > 0.0)) {
            return Err(Error::InvalidOption(format!(
                "a noise of {bad} is no standard deviation: expected more than zero"
            )));
        }
        let terms = terms.iter().copied().filter(|(v, _)| noise[*v].is_finite()).collect();
        Ok(Self { terms, ..Self::named(mechanism, regrouping)? })
    }

    /// Removes rotor inertias that act like other unknowns (such as that of a joint on the ground, which is part of the inertia of
    /// its link about the axis). As in identification, linear dependence is tested on random motion, within the tolerance for
    /// special geometry.
    fn add_rows(&mut self, information: impl FnOnce(&Self) -> Result<DMatrix<f64>>) -> Result<()> {
        let rotor = |(_, term): &(usize, JointColumn)| *term == JointColumn::RotorInertia;
        if !self.terms.iter().any(rotor) {
            return Ok(());
        }
        let all = unit_diagonal(&information(self)?);
        // Squared part of the last of the unit columns that is independent of the others.
        let own = |columns: &[usize]| -> Option<f64> {
            let factor = all.select_columns(columns).select_rows(columns).cholesky()?;
            factor.l_dirty().diagonal().iter().next_back().map(|x| x * x)
        };
        let fixed = |i: &usize| *i < self.base || !rotor(&self.terms[*i - self.base]);
        let mut columns: Vec<usize> = (0..self.len()).filter(fixed).collect();
        if own(&columns).is_none() {
            // Other unknowns are already dependent on each other: the certificate reports it.
            return Ok(());
        }
        let mut keep = vec![true; self.terms.len()];
        for i in (0..self.terms.len()).filter(|&i| rotor(&self.terms[i])) {
            columns.push(self.base + i);
            if own(&columns).is_none_or(|part| part <= (10.0 * DEFAULT_SNAP).powi(2)) {
                columns.pop();
                keep[i] = false;
                self.absorbed.push(self.names[self.base + i].clone());
            }
        }
        let mut kept = keep.into_iter();
        self.terms.retain(|_| kept.next() == Some(true));
        Ok(())
    }
}
