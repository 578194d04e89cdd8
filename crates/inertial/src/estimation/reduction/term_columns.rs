//! Regressor columns of joint terms, for measured samples.

use crate::estimation::joint_model::expression::FormulaState;
use crate::estimation::joint_model::terms::{Feature, GivenTerm, Term};
use crate::estimation::reduction::measurements::Measurements;

impl Feature {
    /// Appends the column of this feature at some samples to `out`.
    pub fn fill(
        &self,
        given: &[GivenTerm],
        data: &Measurements<'_>,
        samples: impl Iterator<Item = usize>,
        out: &mut Vec<f64>,
    ) {
        let nv = data.nv();
        let along = |x: &[f64], s: usize| -> f64 {
            self.shaft.iter().map(|&(k, factor)| factor * x[s * nv + k]).sum()
        };
        let last = data.len().saturating_sub(1);
        let state = |s: usize| [along(data.v(), s), along(data.a(), s)];
        let sign = |s: usize| match (along(data.v(), s), data.filter) {
            // At the ends there is no change of sign to be seen.
            (_, Some(filter)) => {
                filter.sign([state(s.saturating_sub(1)), state(s), state((s + 1).min(last))])
            }
            (0.0, None) => 0.0,
            (v, None) => v.signum(),
        };
        match (self.term, self.bend) {
            (Term::Viscous, _) => out.extend(samples.map(|s| along(data.v(), s))),
            (Term::RotorInertia, _) => out.extend(samples.map(|s| along(data.a(), s))),
            (Term::Coulomb, _) => out.extend(samples.map(sign)),
            (Term::CoulombPositive, _) => out.extend(samples.map(|s| 0.5 * (sign(s) + 1.0))),
            (Term::CoulombNegative, _) => out.extend(samples.map(|s| 0.5 * (sign(s) - 1.0))),
            (Term::Stribeck, Some(bend)) => out.extend(samples.map(|s| match data.filter {
                Some(filter) => filter.mean(along(data.v(), s), along(data.a(), s), |v| bend.value(v)),
                None => bend.value(along(data.v(), s)),
            })),
            // Without its speed the column is zero.
            (Term::Stribeck, None) => out.extend(samples.map(|_| 0.0)),
            (Term::Offset, _) => out.extend(samples.map(|_| 1.0)),
            (Term::Given { index, .. }, _) => {
                let mut stack = Vec::new();
                let (nq, columns) = (data.nq(), data.columns_per_sample());
                out.extend(samples.map(|s| {
                    let own = s * nv..(s + 1) * nv;
                    let state = FormulaState {
                        q: &data.q()[s * nq..(s + 1) * nq],
                        v: &data.v()[own.clone()],
                        a: &data.a()[own],
                        columns: &data.columns.unwrap_or(&[])[s * columns..(s + 1) * columns],
                    };
                    given[index].expression.value(&state, &mut stack)
                }));
            }
        }
    }
}
