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
//! factor and `c` the number of candidate terms. If one joint needs a kind of term (such as an offset), the sensors or drives
//! have that effect, and an evidence of [`LIKE_OTHERS`] is sufficient for the other joints. Short or slow logs determine a term
//! poorly compared with its usual size `s` (see [`TYPICAL`]; of rotors at most the inertia that their joint moves): they are no
//! evidence against it, and `ln(1 + s²/variance)` replaces `ln n` and [`LIKE_OTHERS`] if it is smaller. Terms that the joints
//! together make [`PROBABLE`] are kept. Friction and offsets that the data do not determine at all are kept (see
//! [`UNDETERMINED`]). Negative friction and negative rotor inertias are removed, because they are impossible.
//!
//! **A removed term may still exist.** If it acts much like other unknowns, its removal reduces their errors by a large factor,
//! and the errors are wrong if the term exists. Each removed term therefore adds its effect on the other unknowns to their
//! variance, times the probability that it exists ([`OmittedTerm`]). Joints of one robot are similar: terms that are insignificant for
//! each joint but indicated by all joints probably exist (see [`probabilities`]).

use nalgebra::{DMatrix, DVector};
use schemars::JsonSchema;
use serde::Serialize;

use crate::Result;
use crate::estimation::consistent::joint_term_prior::{LEAST, rotor_widths};
use crate::estimation::consistent::prior::Prior;
use crate::estimation::equations::Equations;
use crate::estimation::joint_model::terms::Term;
use crate::estimation::least_squares::fit::{LeastSquares, Weighting, stacked};
use crate::estimation::least_squares::jackknife::{Jackknife, growth, variances};
use crate::estimation::least_squares::solution::Solution;
use crate::estimation::model_selection::term_probability::{IfPresent, probabilities};
use crate::estimation::reduction::factor::Factor;
use crate::estimation::reduction::summary::Summary;
use crate::linalg::product;

/// Largest negative Stribeck friction, in units of Coulomb friction. Fitted curves of real joints may be negative at rest, where
/// there are no samples. Beyond this limit they would accelerate the joint as strongly as Coulomb friction brakes it.
const MOST_AT_REST: f64 = 2.0;
/// Sufficient evidence for a term of a kind that another joint needs: three standard errors.
const LIKE_OTHERS: f64 = 9.0;
/// The same for a term that the log determines poorly: two standard errors.
const LEAST_EVIDENCE: f64 = 4.0;
/// Lower limit of the number of independent samples of a joint.
const FEWEST_SAMPLES: f64 = 10.0;
/// Usual root mean square of the force of a joint term, relative to that of the whole force of its joint.
const TYPICAL: f64 = 0.1;
/// Lower limit of the force of a joint, relative to the largest one of the robot.
const LEAST_FORCE: f64 = 0.1;
/// Standard error, relative to the usual size, from which a log does not determine friction or an offset. These exist in nearly all
/// joints. Without them, the errors of the other unknowns would be too small by far.
const UNDETERMINED: f64 = 1.0 / 3.0;
/// Probability of a term, given the evidence of all joints, from which it is kept.
const PROBABLE: f64 = 0.9;
/// The same for friction or an offset that the log determines poorly.
const PROBABLE_OF_POOR: f64 = 0.5;
/// Standard error, relative to the usual size, from which a log determines a term poorly.
const POOR: f64 = 0.25;
/// Evidence from which a negative value is impossible rather than uncertain: two standard errors.
const CLEARLY_NEGATIVE: f64 = 4.0;

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
    /// Probability that the joint has the term, given the evidence of all joints.
    pub probability: f64,
}

impl TermChoice {
    /// Returns whether the data do not decide if the term exists. Standard errors include its possible effect.
    pub fn is_undecided(&self) -> bool {
        if self.chosen { self.evidence < self.needed } else { self.probability >= UNDECIDED }
    }
}

/// Probability from which a removed term is undecided.
const UNDECIDED: f64 = 0.2;

/// Selected terms, with the decisions.
pub(crate) struct Selection {
    /// Whether each term of the equations is kept.
    pub keep: Vec<bool>,
    pub choices: Vec<TermChoice>,
    /// Effects of the removed terms, weighted by the probability that they exist.
    pub omitted_terms: Vec<OmittedTerm>,
}

/// Effect of a removed term on the other unknowns, if it exists.
#[derive(Debug, Clone)]
pub(crate) struct OmittedTerm {
    /// Change of all unknowns per unit of the term.
    pub change: DVector<f64>,
    /// Expected square of the term.
    pub variance: f64,
    /// Whether the change contradicts the prior only: the data do not depend on the term, because it acts like base parameters.
    pub of_prior: bool,
}

/// Removed term, with its evidence at the time of removal.
struct LeftOut {
    term: usize,
    /// Logarithm of the Bayes factor.
    factor: f64,
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

/// State of the terms during the elimination.
struct Candidates<'a> {
    terms: &'a [(usize, Term)],
    /// Number of unknowns before the terms.
    rank: usize,
    /// Terms that may be removed.
    open: Vec<usize>,
    keep: Vec<bool>,
    fit: Elimination,
    /// Squared usual size of each term.
    usual: Vec<f64>,
    /// Logarithm of the number of independent samples.
    log_samples: f64,
    /// Evidence that is needed because several terms are tried.
    penalty: f64,
    /// Removed terms.
    left_out: Vec<LeftOut>,
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

    /// Returns the logarithm of the ratio of the squared usual size of a term to its variance, where one is added to the ratio.
    fn log_information(&self, i: usize) -> f64 {
        let variance = self.fit.variance(self.rank + i);
        if variance > 0.0 { (self.usual[i] / variance).ln_1p() } else { f64::INFINITY }
    }

    /// Returns the evidence that a term needs by itself.
    fn needed(&self, i: usize) -> f64 {
        let own = if self.terms[i].1 == Term::Stribeck { f64::INFINITY } else { self.log_information(i) };
        self.log_samples.min(own) + self.penalty
    }

    /// Returns the evidence that a term needs, given the terms of other joints.
    fn limit(&self, i: usize) -> f64 {
        let kind = self.terms[i].1;
        let clear = |&k: &usize| {
            let counts = self.keep[k] && self.terms[k].1 == kind && !self.is_impossible(k);
            counts && self.evidence(k) >= self.needed(k)
        };
        if kind != Term::Stribeck && self.open.iter().any(clear) {
            self.log_information(i).clamp(LEAST_EVIDENCE, LIKE_OTHERS)
        } else {
            self.needed(i)
        }
    }

    /// Returns whether nearly all joints have a term of this kind.
    fn exists_usually(&self, i: usize) -> bool {
        matches!(self.terms[i].1, Term::Coulomb | Term::Viscous | Term::Offset)
    }

    /// Returns whether the data neither determine nor contradict friction or an offset.
    fn is_undetermined(&self, i: usize) -> bool {
        let variance = self.fit.variance(self.rank + i);
        let clearly_negative = self.is_impossible(i) && self.evidence(i) >= CLEARLY_NEGATIVE;
        self.exists_usually(i) && !clearly_negative && variance > UNDETERMINED.powi(2) * self.usual[i]
    }

    /// Returns the estimate of a term if it exists; `None` if it is not excited.
    fn if_present(&self, i: usize) -> Option<IfPresent> {
        let variance = self.fit.variance(self.rank + i);
        let one_sided = self.terms[i].1.is_nonnegative();
        let sign = self.value(i).signum();
        (variance > 0.0).then(|| {
            IfPresent::new(self.evidence(i), sign, variance, self.usual[i], self.log_samples, one_sided)
        })
    }

    /// Returns the least needed term and the evidence that it needs; `None` if all terms are needed.
    fn worst(&self) -> Option<(usize, f64)> {
        let least = |i: usize| {
            let poor = self.fit.variance(self.rank + i) > POOR.powi(2) * self.usual[i];
            if poor && self.exists_usually(i) { PROBABLE_OF_POOR } else { PROBABLE }
        };
        let probable = self.probabilities().into_iter().filter(|(i, p)| *p >= least(*i));
        let probable: Vec<usize> = probable.map(|(i, _)| i).collect();
        let stays = |i: usize| self.is_undetermined(i) || (probable.contains(&i) && !self.is_impossible(i));
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
            .filter(|&&i| self.keep[i] && !waits(i) && !stays(i))
            .map(|&i| score(i))
            .filter(|(_, _, score)| *score < 1.0)
            .min_by(|a, b| a.2.total_cmp(&b.2))
            .map(|(i, limit, _)| (i, limit))
    }

    /// Returns the uncertainty due to the removal of a term; `None` if it is not excited, or for Stribeck friction, which
    /// resembles other friction only.
    fn left_out(&self, i: usize) -> Option<LeftOut> {
        let unknown = self.rank + i;
        let own = self.fit.inverse[(unknown, unknown)];
        if self.terms[i].1 == Term::Stribeck || own <= 0.0 {
            return None;
        }
        let IfPresent { factor, square } = self.if_present(i)?;
        let mut change = self.fit.inverse.column(unknown) / own;
        change[unknown] = 0.0;
        Some(LeftOut { term: i, factor, change, square })
    }

    /// Computes the probabilities of all open terms except Stribeck friction.
    fn probabilities(&self) -> Vec<(usize, f64)> {
        let kept = self.open.iter().filter(|&&i| self.keep[i] && self.terms[i].1 != Term::Stribeck);
        let kept = kept.filter_map(|&i| Some((i, self.if_present(i)?.factor)));
        let mut left: Vec<(usize, f64)> =
            self.left_out.iter().map(|l| (l.term, l.factor)).chain(kept).collect();
        let mut out = Vec::new();
        while let Some(&(first, _)) = left.first() {
            let kind = self.terms[first].1;
            let (same, others): (Vec<_>, Vec<_>) =
                left.into_iter().partition(|(i, _)| self.terms[*i].1 == kind);
            let factors: Vec<f64> = same.iter().map(|(_, factor)| *factor).collect();
            out.extend(same.iter().map(|(i, _)| *i).zip(probabilities(&factors)));
            left = others;
        }
        out
    }

    /// Returns the decision on a term. Its probability is not yet that given all joints.
    fn choice(&self, i: usize, needed: f64, names: &[String], summary: &Summary) -> TermChoice {
        let (row, term) = self.terms[i];
        let evidence = self.evidence(i);
        let gain = self.fit.gain(self.rank + i);
        TermChoice {
            joint: names[row].clone(),
            term: term.name(),
            chosen: self.keep[i],
            evidence,
            needed,
            // Weighted by the noise, the squared residual of a joint equals its number of independent samples.
            gain: gain / (gain + summary.factors[row].independent.max(1.0)),
            contradicted: term.is_nonnegative() && self.value(i) < 0.0 && !self.keep[i],
            // A term with exactly the needed evidence has a probability of one half.
            probability: (1.0 + (0.5 * (needed - evidence)).exp()).recip(),
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
        return Ok(Selection {
            keep: vec![true; terms.len()],
            choices: Vec::new(),
            omitted_terms: Vec::new(),
        });
    }
    let fit = Elimination::new(equations, summary)?;
    let joints = summary.factors.iter().filter(|f| f.count > 0).count().max(1) as f64;
    let independent = summary.factors.iter().map(|f| f.independent).sum::<f64>() / joints;
    let log_samples = (independent / fit.growth).max(FEWEST_SAMPLES).ln();
    let penalty = 2.0 * (open.len() as f64).ln();
    let (rank, keep) = (equations.rank(), vec![true; terms.len()]);
    let usual = usual_squares(equations, summary)?;
    let mut candidates =
        Candidates { terms, rank, open, keep, fit, usual, log_samples, penalty, left_out: Vec::new() };
    let (names, mut choices) = (equations.force_names(), Vec::new());
    while let Some((i, limit)) = candidates.worst() {
        let left_out = candidates.left_out(i);
        candidates.left_out.extend(left_out);
        candidates.keep[i] = false;
        choices.push((i, candidates.choice(i, limit, &names, summary)));
        candidates.fit.remove(rank + i);
    }
    let kept = candidates.open.iter().filter(|&&i| candidates.keep[i]);
    choices.extend(kept.map(|&i| (i, candidates.choice(i, candidates.limit(i), &names, summary))));
    let probabilities = candidates.probabilities();
    for (i, choice) in &mut choices {
        if let Some((_, probability)) = probabilities.iter().find(|(term, _)| term == i) {
            choice.probability = *probability;
        }
    }
    let mut choices: Vec<TermChoice> = choices.into_iter().map(|(_, choice)| choice).collect();
    choices.sort_by_key(|c| names.iter().position(|name| *name == c.joint));
    let omitted = |l: LeftOut| {
        let (_, probability) = probabilities.iter().find(|(term, _)| *term == l.term)?;
        Some(OmittedTerm { change: l.change, variance: probability * l.square, of_prior: false })
    };
    let omitted_terms = candidates.left_out.into_iter().filter_map(omitted).collect();
    Ok(Selection { keep: candidates.keep, choices, omitted_terms })
}

/// Returns the squared usual size of each term: that of a term with a share of [`TYPICAL`] of the force of its joint. Forces below
/// [`LEAST_FORCE`] of the largest one are replaced by that, because friction of light joints does not depend on their load.
///
/// In slow motion such a rotor would be far larger than the links: it has at most the inertia that the joint moves.
fn usual_squares(equations: &Equations<'_>, summary: &Summary) -> Result<Vec<f64>> {
    let energy = |factor: &Factor, j: usize| {
        (0..=factor.unknowns()).map(|k| factor.triangle.at(k, j).powi(2)).sum::<f64>()
    };
    let mean_square = |factor: &Factor| energy(factor, factor.unknowns()) / factor.count.max(1) as f64;
    let largest = summary.factors.iter().map(mean_square).fold(0.0, f64::max);
    let rank = equations.rank();
    let mechanism = equations.mechanism();
    let rotors = rotor_widths(mechanism, &Prior::new(mechanism)?, LEAST)?;
    let square = |(i, &(row, term)): (usize, &(usize, Term))| {
        let (channel, factor) = (&equations.channels[row], &summary.factors[row]);
        let Some(column) = channel.unknowns.iter().position(|unknown| *unknown == rank + i) else {
            return 0.0;
        };
        let own = energy(factor, column) / factor.count.max(1) as f64;
        let force = mean_square(factor).max(LEAST_FORCE.powi(2) * largest);
        let usual = if own > 0.0 { TYPICAL.powi(2) * force / own } else { 0.0 };
        match term {
            Term::RotorInertia => usual.min(rotors[equations.tree_coordinate(row)].powi(2)),
            _ => usual,
        }
    };
    Ok(equations.terms.iter().enumerate().map(square).collect())
}

#[cfg(test)]
mod tests {
    use super::as_normal;

    /// Reference: quantiles of Student's t-distribution with an upper tail of 0.00135 (three standard deviations of the normal
    /// one), from a table.
    #[test]
    fn squares_of_student_values_are_converted_to_normal_ones() {
        for (freedom, quantile) in [(7.0, 4.530), (15.0, 3.586), (30.0, 3.270)] {
            assert!((as_normal(f64::powi(quantile, 2), freedom) - 9.0).abs() < 0.1, "{freedom}");
        }
    }
}
