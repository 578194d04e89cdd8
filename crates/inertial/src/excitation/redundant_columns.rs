//! Construction of columns without redundant rotor inertias: those that act exactly like other unknowns.

use super::columns::{Columns, JointColumn};
use super::information::Evaluator;
use super::random_states::random_states;
use super::scaling::unit_diagonal;
use crate::dynamics::InverseDynamics;
use crate::identifiability::Regrouping;
use crate::mechanism::{DEFAULT_SNAP, Mechanism};
use crate::{Error, Result};

impl Columns {
    /// Creates the columns of the base parameters of `regrouping` and the given terms; `noise` is the standard deviation of each
    /// velocity coordinate's measured force, infinite where none is measured.
    pub fn new(
        mechanism: &Mechanism,
        dynamics: &InverseDynamics,
        regrouping: &Regrouping,
        terms: &[(usize, JointColumn)],
        noise: &[f64],
    ) -> Result<Self> {
        if noise.len() != mechanism.nv() {
            return Err(Error::Dimension { what: "noise", expected: mechanism.nv(), found: noise.len() });
        }
        if let Some(bad) = noise.iter().find(|s| !(**s > 0.0)) {
            return Err(Error::InvalidOption(format!(
                "a noise of {bad} is no standard deviation: expected more than zero"
            )));
        }
        let terms = terms.iter().copied().filter(|(v, _)| noise[*v].is_finite()).collect();
        let mut out = Self { terms, ..Self::named(mechanism, regrouping)? };
        out.number(mechanism, dynamics, regrouping, noise);
        out.absorb(mechanism, dynamics)?;
        out.number(mechanism, dynamics, regrouping, noise);
        out.evaluate(mechanism);
        Ok(out)
    }

    /// Leaves out rotor inertias that act like other unknowns (as that of a joint on the ground, which is part of its link's
    /// inertia about the axis): random motion decides, within the tolerance that geometry counts as special in, as
    /// identification does.
    fn absorb(&mut self, mechanism: &Mechanism, dynamics: &InverseDynamics) -> Result<()> {
        let rotor = |(_, term): &(usize, JointColumn)| *term == JointColumn::RotorInertia;
        if !self.terms.iter().any(rotor) {
            return Ok(());
        }
        let states = random_states(mechanism, 3 * self.len() + 20, None, 1);
        let all = unit_diagonal(&Evaluator::new(dynamics, self).information(&states)?);
        // The squared part of the last of unit columns that the others do not explain.
        let own = |columns: &[usize]| -> Option<f64> {
            let factor = all.select_columns(columns).select_rows(columns).cholesky()?;
            factor.l_dirty().diagonal().iter().next_back().map(|x| x * x)
        };
        let fixed = |i: &usize| *i < self.base || !rotor(&self.terms[*i - self.base]);
        let mut columns: Vec<usize> = (0..self.len()).filter(fixed).collect();
        if own(&columns).is_none() {
            // Other unknowns depend on each other already: the certificate reports it.
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
