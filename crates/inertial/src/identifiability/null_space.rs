//! Null spaces that were found by sampling: basis with a reason for each vector.

use super::base_parameters::Regrouping;
use super::certificate::RankProblem;
use super::drng::{Principle, Reason};
use super::experiment::Experiment;
use super::open_chains::Real;
use super::rpna::{Regime, Rpna, Scope};
use super::topology::Topology;
use crate::linalg::{Echelon, First, Pivot};
use crate::mechanism::{Base, ExactGeometry};

/// Reason of a null vector that is the vector of all parameters: without a known force, only ratios can be determined.
const COMMON_SCALE: &str = "common scale of all parameters";

/// Minimum parts of vectors outside the span of earlier ones, the largest first. The vectors are rounded to double precision.
const STANDING_OUT: [f64; 3] = [1e-2, 1e-5, 1e-8];

/// Null vector: index and change of each parameter that changes.
type Sparse = Vec<(usize, f64)>;

impl RankProblem<'_> {
    /// Returns a basis of the null space of an open chain with a reason for each vector: transfers across joints, the common scale of
    /// all parameters, and vectors that change only what is not measured or not possible in this experiment.
    pub fn named_null_space(
        &self,
        geometry: &ExactGeometry,
        regrouping: &Regrouping,
    ) -> Vec<(String, Sparse)> {
        let mut vectors = regrouping.null_vectors();
        let scale = common_scale(regrouping, &self.mechanism.parameters(), &mut vectors);
        let transfers =
            self.mechanism.loops().is_empty().then(|| self.complete_transfers(geometry)).flatten();
        let rest = transfers.as_ref().and_then(|_| self.limitation()).unwrap_or(Principle::Computation);
        let reason = |k: usize| if scale == Some(k) { COMMON_SCALE } else { rest.name() };
        // The common scale precedes the vectors that contain it.
        let mut named: Vec<(String, Sparse)> =
            vectors.into_iter().enumerate().map(|(k, v)| (reason(k).to_owned(), v)).collect();
        named.sort_by_key(|(reason, _)| reason != COMMON_SCALE);
        let transfers = transfers.unwrap_or_default();
        basis(regrouping, &[&transfers, &named], |(_, vector)| vector).unwrap_or(named)
    }

    /// Returns the reasons of null vectors of a mechanism with loops: those of the experiment with all measurements and motions
    /// (`complete`) as far as they hold, then the vectors that only this experiment does not determine.
    pub fn reasons(&self, regrouping: &Regrouping, found: Vec<Reason>, complete: &[Reason]) -> Vec<Reason> {
        let Some(limitation) = self.limitation() else { return found };
        let renamed = |reason: &Reason| match reason.kind {
            Principle::Computation => {
                Reason { principle: limitation.name(), kind: limitation, ..reason.clone() }
            }
            _ => reason.clone(),
        };
        let rest: Vec<Reason> = found.iter().map(renamed).collect();
        basis(regrouping, &[complete, &rest], |reason| &reason.vector).unwrap_or(found)
    }

    /// Returns the transfers across joints that change no force at all, if the recursion covers the mechanism.
    fn complete_transfers(&self, geometry: &ExactGeometry) -> Option<Vec<(String, Sparse)>> {
        let topology = Topology::new(&geometry.to::<First>()).ok()?;
        let is_restricted = self.experiment.ballistic || self.experiment.conservation.is_some();
        let regime = if is_restricted { Regime::Full } else { self.experiment.regime };
        let real = geometry.to::<Real>();
        let found = Rpna::new(&real, &topology, Scope::from(regime));
        let mut transfers =
            self.named_transfers(&self.transfers_by_column(&real, &found, &topology), &topology);
        transfers.iter_mut().for_each(|(_, v)| v.sort_unstable_by_key(|(c, _)| *c));
        Some(transfers)
    }

    /// Returns why this experiment determines less than one with all measurements and motions; `None` if it does not.
    pub fn limitation(&self) -> Option<Principle> {
        let floating = self.mechanism.base() == Base::Floating;
        let complete = Experiment::complete(floating, self.experiment.regime);
        if self.experiment.ballistic {
            Some(Principle::FreeFlight)
        } else if self.experiment.conservation.is_some() {
            Some(Principle::Conservation)
        } else if self.experiment.measured != complete.measured || self.experiment.torques.contains(&false) {
            Some(Principle::NotMeasured)
        } else {
            None
        }
    }
}

/// Selects a basis of the null space from groups of null vectors, earlier ones first. Vectors that do not hold are left out; returns
/// `None` if the others do not span the null space.
fn basis<T: Clone>(
    regrouping: &Regrouping,
    groups: &[&[T]],
    vector: impl Fn(&T) -> &Sparse,
) -> Option<Vec<T>> {
    let nullity = regrouping.parameters - regrouping.rank();
    let mut span: Echelon<f64> = Echelon::new(regrouping.parameters, Pivot::Largest);
    let size = |v: &[f64]| v.iter().fold(0.0f64, |a, x| a.max(x.abs()));
    let mut out = Vec::with_capacity(nullity);
    for group in groups {
        let dense = |item| {
            let mut all = vec![0.0; regrouping.parameters];
            vector(item).iter().for_each(|&(c, x)| all[c] = x);
            all
        };
        let pairs = group.iter().map(|item| (item, dense(item)));
        let group: Vec<(&T, Vec<f64>)> = pairs.filter(|(_, vector)| holds(regrouping, vector)).collect();
        for least in STANDING_OUT {
            for (item, vector) in &group {
                let left = span.remainder(vector);
                if out.len() < nullity && size(&left) > least * size(vector) && span.insert(&left) {
                    out.push((*item).clone());
                }
            }
        }
    }
    (out.len() == nullity).then_some(out)
}

/// Returns whether all combinations vanish on a vector. They are known to rounding errors of their largest terms.
fn holds(regrouping: &Regrouping, vector: &[f64]) -> bool {
    let vanishes = |row: &Vec<(usize, f64)>| {
        let terms = || row.iter().map(|&(c, x)| x * vector[c]);
        terms().sum::<f64>().abs() <= 1e-9 * terms().map(f64::abs).sum::<f64>()
    };
    regrouping.combinations.iter().all(vanishes)
}

/// Replaces a null vector by all parameters of the model if these change no measurement; returns its index.
fn common_scale(regrouping: &Regrouping, parameters: &[f64], vectors: &mut [Sparse]) -> Option<usize> {
    if !holds(regrouping, parameters) {
        return None;
    }
    // The other vectors do not contain the last column of the replaced one, so they remain independent.
    let is_free = |v: &Sparse| v.iter().any(|&(c, _)| !regrouping.base.contains(&c) && parameters[c] != 0.0);
    let (k, vector) =
        vectors.iter_mut().enumerate().filter(|(_, v)| is_free(v)).max_by_key(|(_, v)| v.len())?;
    *vector = parameters.iter().copied().enumerate().filter(|(_, x)| *x != 0.0).collect();
    Some(k)
}
