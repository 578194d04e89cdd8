//! Significance of each joint term, and backward elimination of terms that are not needed.
//!
//! The estimate with all terms is computed once. A term is removed by conditioning the estimate, and its changes without each
//! block of the log (see [`jackknife`](crate::estimation::least_squares::jackknife)), on zero, which does not need another
//! solution. The term with the least evidence is removed first, until all remaining terms are needed.
//!
//! **Evidence** of a term is the squared ratio of its value to its standard error. The standard error is that of the jackknife,
//! which is valid for correlated residuals, but at least the one of independent noise times the overall factor by which errors
//! grow, because the spread of sixteen blocks may be small by chance. The ratio has Student's t-distribution; the evidence is the
//! square of the standard normal quantile of the same probability.
//!
//! **Needed** is `ln n + 2 ln c` (extended BIC), where `n` is the number of independent samples of a joint divided by that same
//! factor and `c` the number of candidate terms. If one joint needs a kind of term (such as an offset), the sensors or drives have
//! that effect, and an evidence of [`LIKE_OTHERS`] is sufficient for the other joints. Negative friction and negative rotor
//! inertias are removed, because the data contradict them.
//!
//! **A removed term may still exist.** If it acts much like other unknowns, its removal reduces their errors by a large factor,
//! and the errors are wrong if the term exists. Each removed term therefore adds its effect on the other unknowns to their
//! variance, times the probability that it exists ([`Doubt`]). Drives of one robot are similar: rotor inertias that are
//! insignificant for each joint but indicated by all joints probably exist (see [`probabilities`]).

use nalgebra::{DMatrix, DVector};
use schemars::JsonSchema;
use serde::Serialize;

use crate::Result;
use crate::estimation::equations::Equations;
use crate::estimation::joint_model::terms::Term;
use crate::estimation::least_squares::fit::{LeastSquares, Weighting, stacked};
use crate::estimation::least_squares::jackknife::{Jackknife, growth, variances};
use crate::estimation::least_squares::solution::Solution;
use crate::estimation::reduction::summary::Summary;
use crate::linalg::product;

/// Largest negative Stribeck friction, in units of Coulomb friction. Fitted curves of real joints may be negative at rest, where
/// there are no samples. Beyond this limit they would accelerate the joint as strongly as Coulomb friction brakes it.
const MOST_AT_REST: f64 = 2.0;
/// Sufficient evidence for a term of a kind that another joint needs: three standard errors.
const LIKE_OTHERS: f64 = 9.0;
/// Lower limit of the number of independent samples of a joint.
const FEWEST_SAMPLES: f64 = 10.0;

/// Decision on one term of a joint.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct TermChoice {
    /// Name of the joint.
    pub joint: String,
    /// Name of the term in the results of joints.
    pub term: &'static str,
    /// Whether the model has the term.
    pub chosen: bool,
    /// Squared ratio of the value to its standard error.
    pub evidence: f64,
    /// Evidence that is needed.
    pub needed: f64,
    /// Share of the squared residual of the joint that the term explains in addition to the other terms.
    pub gain: f64,
    /// Whether the value would be negative, which is impossible for friction and rotor inertia.
    pub contradicted: bool,
}

/// Selected terms, with the decisions.
pub(crate) struct Selection {
    /// Whether each term of the equations is kept.
    pub keep: Vec<bool>,
    pub choices: Vec<TermChoice>,
    pub doubts: Vec<Doubt>,
}

/// Effect of a removed term on the other unknowns, in case that it exists.
#[derive(Debug, Clone)]
pub(crate) struct Doubt {
    /// Change of all unknowns per unit of the term.
    pub change: DVector<f64>,
    /// Expected square of the term.
    pub variance: f64,
}

/// Removed term, with its evidence at the time of removal.
struct LeftOut {
    term: usize,
    evidence: f64,
    /// Evidence that was needed.
    limit: f64,
    /// Change of all unknowns per unit of the term.
    change: DVector<f64>,
    /// Expected square of the term if it exists.
    square: f64,
}

/// Estimate from which unknowns are eliminated one by one.
struct Elimination {
    values: DVector<f64>,
    /// Covariance of independent noise.
    inverse: DMatrix<f64>,
    /// Changes of the values without each block of the log; no columns if there are too few blocks.
    changes: DMatrix<f64>,
    /// Overall factor by which variances exceed those of independent noise.
    growth: f64,
    /// Factor by which variances from longer blocks exceed those from these.
    longer: f64,
}

impl Elimination {
    fn new(equations: &Equations<'_>, summary: &Summary) -> Result<Self> {
        let weights = LeastSquares::new(equations, summary, Weighting::Weighted)?.weights;
        let solution = Solution::of_factor(&stacked(equations, summary, &weights, true)?.matrix(), None)?;
        let scores = summary.scores(equations, &weights, &solution.values);
        let (changes, longer) = Jackknife::new(&scores, &solution.root).map_or_else(
            || (DMatrix::zeros(equations.len(), 0), 1.0),
            |j| (product(&solution.root, &j.changes), j.longer),
        );
        let mut out =
            Self { values: solution.values, inverse: solution.inverse, changes, growth: 1.0, longer };
        if out.changes.ncols() > 0 {
            out.growth = (longer * growth(&variances(&out.changes), &out.inverse.diagonal())).max(1.0);
        }
        Ok(out)
    }

    /// Returns the squared ratio of a value to its standard error; zero if it is not excited.
    fn evidence(&self, unknown: usize) -> f64 {
        let variance = self.variance(unknown);
        if variance <= 0.0 {
            return 0.0;
        }
        let square = self.values[unknown].powi(2) / variance;
        let blocks = self.changes.ncols();
        if blocks == 0 { square } else { as_normal(square, blocks as f64 - 1.0) }
    }

    /// Returns the variance of a value; zero if it is not excited.
    fn variance(&self, unknown: usize) -> f64 {
        let own = self.inverse[(unknown, unknown)];
        if own <= 0.0 || self.changes.ncols() == 0 {
            return own.max(0.0);
        }
        let row = self.changes.rows(unknown, 1).into_owned();
        (self.longer * variances(&row)[0]).max(self.growth * own)
    }

    /// Returns the increase of the squared residual without an unknown.
    fn gain(&self, unknown: usize) -> f64 {
        let own = self.inverse[(unknown, unknown)];
        if own > 0.0 { self.values[unknown].powi(2) / own } else { 0.0 }
    }

    /// Sets an unknown to zero and updates the others.
    fn remove(&mut self, unknown: usize) {
        let own = self.inverse[(unknown, unknown)];
        if own > 0.0 {
            let share = self.inverse.column(unknown) / own;
            self.values -= &share * self.values[unknown];
            let changes = self.changes.row(unknown).into_owned();
            self.changes -= &share * changes;
            let row = self.inverse.row(unknown).into_owned();
            self.inverse -= share * row;
        }
        // Set to exact zeros, without rounding errors.
        self.values[unknown] = 0.0;
        self.inverse.row_mut(unknown).fill(0.0);
        self.inverse.column_mut(unknown).fill(0.0);
        self.changes.row_mut(unknown).fill(0.0);
    }
}

/// Converts the square of a value with Student's t-distribution to the square of the standard normal value of the same probability
/// (Wallace 1959).
fn as_normal(square: f64, freedom: f64) -> f64 {
    ((8.0 * freedom + 1.0) / (8.0 * freedom + 3.0)).powi(2) * freedom * (square / freedom).ln_1p()
}

/// Computes the probabilities that terms of one kind exist, from the evidence of each joint.
///
/// The Bayes factor of a term is that of the information criterion, `exp((evidence − ln samples)/2)`. The share of joints that
/// have the term is unknown, with a uniform prior (Scott and Berger 2010): the more joints indicate the term, the more probable it
/// is for each of them. If no joint does, each additional joint makes it less probable.
fn probabilities(evidence: &[f64], log_samples: f64) -> Vec<f64> {
    /// Number of points of the integral over the share.
    const SHARES: usize = 64;
    /// Largest logarithm of a Bayes factor, from which the term is certain.
    const CERTAIN: f64 = 30.0;
    let factors: Vec<f64> = evidence.iter().map(|e| (0.5 * (e - log_samples)).min(CERTAIN).exp()).collect();
    let shares: Vec<f64> = (0..SHARES).map(|k| (k as f64 + 0.5) / SHARES as f64).collect();
    let weight = |share: &f64| factors.iter().map(|f| (1.0 - share + share * f).ln()).sum::<f64>();
    let logarithms: Vec<f64> = shares.iter().map(weight).collect();
    let largest = logarithms.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let weights: Vec<f64> = logarithms.iter().map(|w| (w - largest).exp()).collect();
    let total: f64 = weights.iter().sum();
    let probability = |f: &f64| {
        let present = |(share, weight): (&f64, &f64)| weight * share * f / (1.0 - share + share * f);
        shares.iter().zip(&weights).map(present).sum::<f64>() / total
    };
    factors.iter().map(probability).collect()
}

/// State of the terms during the elimination.
struct Candidates<'a> {
    terms: &'a [(usize, Term)],
    /// Number of unknowns before the terms.
    rank: usize,
    /// Terms that may be removed.
    open: Vec<usize>,
    keep: Vec<bool>,
    fit: Elimination,
    /// Evidence that is needed.
    needed: f64,
}

impl Candidates<'_> {
    fn place(&self, row: usize, wanted: Term) -> Option<usize> {
        self.terms.iter().position(|&(v, term)| v == row && term == wanted)
    }

    fn value(&self, i: usize) -> f64 {
        self.fit.values[self.rank + i]
    }

    fn evidence(&self, i: usize) -> f64 {
        self.fit.evidence(self.rank + i)
    }

    /// Returns whether a joint has a Stribeck term that may still be removed.
    fn has_open_stribeck(&self, row: usize) -> bool {
        self.place(row, Term::Stribeck).is_some_and(|s| self.keep[s] && self.open.contains(&s))
    }

    /// Returns whether the value of a term is physically impossible. Stribeck friction is part of a curve. It is removed before
    /// Coulomb or viscous friction if one of these is negative with it, or if it would accelerate the joint near rest (as a lag of
    /// the torques does).
    fn is_impossible(&self, i: usize) -> bool {
        let (row, term) = self.terms[i];
        let negative = |k: usize| self.keep[k] && self.value(k) < 0.0;
        match term {
            Term::Stribeck => {
                let coulomb = self.place(row, Term::Coulomb).filter(|&k| self.keep[k]);
                let coulomb = coulomb.map_or(0.0, |k| self.value(k));
                self.value(i) < -MOST_AT_REST * coulomb
                    || [Term::Coulomb, Term::Viscous]
                        .iter()
                        .any(|&t| self.place(row, t).is_some_and(negative))
            }
            Term::Coulomb | Term::Viscous if self.has_open_stribeck(row) => false,
            _ => term.is_nonnegative() && self.value(i) < 0.0,
        }
    }

    /// Returns the evidence that a term needs, given the terms of other joints.
    fn limit(&self, i: usize) -> f64 {
        let kind = self.terms[i].1;
        let clear = |&k: &usize| {
            let counts = self.keep[k] && self.terms[k].1 == kind && !self.is_impossible(k);
            counts && self.evidence(k) >= self.needed
        };
        if kind != Term::Stribeck && self.open.iter().any(clear) { LIKE_OTHERS } else { self.needed }
    }

    /// Returns the least needed term and the evidence that it needs; `None` if all terms are needed.
    fn worst(&self) -> Option<(usize, f64)> {
        let score = |i: usize| {
            let limit = self.limit(i);
            let score = if self.is_impossible(i) { -1.0 } else { self.evidence(i) / limit };
            (i, limit, score)
        };
        // Other friction is removed after the Stribeck term, which can replace it.
        let waits = |i: usize| {
            let (row, term) = self.terms[i];
            matches!(term, Term::Coulomb | Term::Viscous)
                && self.place(row, Term::Stribeck).is_some_and(|s| self.keep[s])
        };
        self.open
            .iter()
            .filter(|&&i| self.keep[i] && !waits(i))
            .map(|&i| score(i))
            .filter(|(_, _, score)| *score < 1.0)
            .min_by(|a, b| a.2.total_cmp(&b.2))
            .map(|(i, limit, _)| (i, limit))
    }

    /// Returns the uncertainty due to the removal of a term; `None` if its value is impossible, or for Stribeck friction, which
    /// resembles other friction only.
    fn left_out(&self, i: usize, limit: f64) -> Option<LeftOut> {
        let unknown = self.rank + i;
        let own = self.fit.inverse[(unknown, unknown)];
        if self.terms[i].1 == Term::Stribeck || self.is_impossible(i) || own <= 0.0 {
            return None;
        }
        let mut change = self.fit.inverse.column(unknown) / own;
        change[unknown] = 0.0;
        let square = self.value(i).powi(2) + self.fit.variance(unknown);
        Some(LeftOut { term: i, evidence: self.evidence(i), limit, change, square })
    }

    /// Weights the effects of removed terms by the probability that they exist.
    fn doubts(&self, left_out: &[LeftOut], log_samples: f64) -> Vec<Doubt> {
        let is_rotor = |i: usize| self.terms[i].1 == Term::RotorInertia;
        let kept = self.open.iter().filter(|&&i| self.keep[i] && is_rotor(i)).map(|&i| self.evidence(i));
        let rotors = left_out.iter().filter(|l| is_rotor(l.term)).map(|l| l.evidence);
        let rotors: Vec<f64> = rotors.chain(kept).collect();
        let mut of_rotors = probabilities(&rotors, log_samples).into_iter();
        let doubt = |l: &LeftOut| {
            let probability = if is_rotor(l.term) {
                of_rotors.next().unwrap_or(0.0)
            } else {
                // A term with exactly the needed evidence has a probability of one half.
                (1.0 + (0.5 * (l.limit - l.evidence)).exp()).recip()
            };
            Doubt { change: l.change.clone(), variance: probability * l.square }
        };
        left_out.iter().map(doubt).collect()
    }

    fn choice(&self, i: usize, needed: f64, names: &[String], summary: &Summary) -> TermChoice {
        let (row, term) = self.terms[i];
        let gain = self.fit.gain(self.rank + i);
        TermChoice {
            joint: names[row].clone(),
            term: term.name(),
            chosen: self.keep[i],
            evidence: self.evidence(i),
            needed,
            // Weighted by the noise, the squared residual of a joint equals its number of independent samples.
            gain: gain / (gain + summary.factors[row].independent.max(1.0)),
            contradicted: term.is_nonnegative() && self.value(i) < 0.0,
        }
    }
}

/// Selects among the terms that are `open`, given all others.
pub(crate) fn select(
    equations: &Equations<'_>,
    summary: &Summary,
    open: impl Fn(usize, Term) -> bool,
) -> Result<Selection> {
    let terms = &equations.terms;
    let open: Vec<usize> = (0..terms.len()).filter(|&i| open(terms[i].0, terms[i].1)).collect();
    if open.is_empty() {
        return Ok(Selection { keep: vec![true; terms.len()], choices: Vec::new(), doubts: Vec::new() });
    }
    let fit = Elimination::new(equations, summary)?;
    let joints = summary.factors.iter().filter(|f| f.count > 0).count().max(1) as f64;
    let independent = summary.factors.iter().map(|f| f.independent).sum::<f64>() / joints;
    let log_samples = (independent / fit.growth).max(FEWEST_SAMPLES).ln();
    let needed = log_samples + 2.0 * (open.len() as f64).ln();
    let (rank, keep) = (equations.rank(), vec![true; terms.len()]);
    let mut candidates = Candidates { terms, rank, open, keep, fit, needed };
    let (names, mut choices, mut left_out) = (equations.force_names(), Vec::new(), Vec::new());
    while let Some((i, limit)) = candidates.worst() {
        left_out.extend(candidates.left_out(i, limit));
        candidates.keep[i] = false;
        choices.push(candidates.choice(i, limit, &names, summary));
        candidates.fit.remove(rank + i);
    }
    let kept = candidates.open.iter().filter(|&&i| candidates.keep[i]);
    choices.extend(kept.map(|&i| candidates.choice(i, needed, &names, summary)));
    choices.sort_by_key(|c| names.iter().position(|name| *name == c.joint));
    let doubts = candidates.doubts(&left_out, log_samples);
    Ok(Selection { keep: candidates.keep, choices, doubts })
}

#[cfg(test)]
mod tests {
    use super::{as_normal, probabilities};

    /// Reference: sum over all subsets of terms, where subsets of the same size have the same prior probability.
    #[test]
    fn probabilities_of_terms_as_sums_over_subsets() {
        let (evidence, samples) = ([3.2_f64, 4.5, 0.4, 9.0], 18.0_f64);
        let n = evidence.len();
        let choose = |m: u32| [1.0, 4.0, 6.0, 4.0, 1.0][m as usize];
        let (mut total, mut with) = (0.0, vec![0.0; n]);
        for subset in 0..1_u32 << n {
            let inside = |k: usize| subset >> k & 1 == 1;
            let factor: f64 =
                (0..n).filter(|&k| inside(k)).map(|k| (evidence[k] / 2.0).exp() / samples.sqrt()).product();
            let weight = factor / choose(subset.count_ones());
            total += weight;
            (0..n).filter(|&k| inside(k)).for_each(|k| with[k] += weight);
        }
        // The error of the midpoint rule is 1/(24 · 64²) = 1e-5 times the second derivative of the integrand, which is below a
        // hundred here.
        for (found, expected) in probabilities(&evidence, samples.ln()).iter().zip(&with) {
            assert!((found - expected / total).abs() < 1e-3, "{found} {}", expected / total);
        }
    }

    /// Tests that a weakly indicated term is probable if all joints indicate it, and improbable if no other joint does.
    #[test]
    fn weak_evidence_of_several_joints_adds_up() {
        let log_samples = 18.0_f64.ln();
        assert!(probabilities(&[3.2, 4.5, 3.5, 4.1], log_samples).iter().all(|p| *p > 0.5));
        assert!(probabilities(&[1.0; 6], log_samples).iter().all(|p| *p < 0.15));
        assert!(probabilities(&[1.0; 6], 1000.0_f64.ln()).iter().all(|p| *p < 0.015));
        assert!(probabilities(&[1e6, 4.0], log_samples)[1] > 0.5);
    }

    /// Reference: quantiles of Student's t-distribution with an upper tail of 0.00135 (three standard deviations of the normal
    /// one), from a table.
    #[test]
    fn squares_of_student_values_are_converted_to_normal_ones() {
        for (freedom, quantile) in [(7.0, 4.530), (15.0, 3.586), (30.0, 3.270)] {
            assert!((as_normal(f64::powi(quantile, 2), freedom) - 9.0).abs() < 0.1, "{freedom}");
        }
    }
}
