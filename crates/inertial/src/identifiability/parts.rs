//! Analysis of mechanisms with loops by parts that are connected only through the base. Each part is analysed
//! separately, and the results are combined.
//!
//! Parts attached to the ground share no parameter and no coordinate, so the null space of the whole consists of
//! theirs. Parts attached to a floating base share its parameters: a change of parameters is null if each part changes
//! the energy by that of a rigid body on the base and the change of the base cancels their sum. The null space of the
//! whole is therefore the sum of the null spaces of the parts, each including the base. Since no change of the base
//! alone is null, the sum is direct (proof in the theory chapter).

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rayon::iter::{IntoParallelRefIterator, ParallelIterator};

use super::base_parameters::{Regrouping, SmallEntries, Status};
use super::certificate::{Certificate, CertificateKind, RankProblem, RankResult};
use super::drng::{Contact, Explanation, Principle, Reason};
use super::experiment::Experiment;
use super::loops::{LoopResult, Loops};
use super::options::AnalyzeOptions;
use super::rpna::{BodySpan, Regime};
use super::warning::Warning;
use crate::dynamics::ClosedMechanism;
use crate::mechanism::{AssumedRelation, Base, BodyKind, ExactGeometry, Mechanism, Part};
use crate::{Error, Result};

/// Largest number of parameters of bodies in loops that are not connected through the base alone: several minutes.
const MOST_PARAMETERS: usize = 2000;

/// Result for a mechanism with loops, with the additional data of a report.
pub(super) struct ClosedResult {
    pub loops: LoopResult,
    /// Degrees of freedom.
    pub dof: usize,
    /// Ranks on the other motions that intersect in the assembly configuration; `None` if a rank cannot be computed.
    pub other_ranks: Vec<Option<usize>>,
    /// Relations that hold only approximately and were assumed to be intended.
    pub assumed: Vec<AssumedRelation>,
}

impl ClosedResult {
    /// Analyses a mechanism as a whole; `numeric` and `explained` as for [`RankProblem::with_loops`].
    pub fn new(
        problem: &RankProblem<'_>,
        geometry: &ExactGeometry,
        snap: f64,
        numeric: bool,
        explained: bool,
    ) -> Result<Self> {
        let (mechanism, count) = (problem.mechanism, problem.mechanism.parameter_count());
        if !mechanism.loops().is_empty() && count > MOST_PARAMETERS {
            return Err(Error::Numeric(format!(
                "{} bodies are connected by {} loops other than through the base and have {count} parameters: \
                 the analysis of loops is limited to {MOST_PARAMETERS}",
                mechanism.link_bodies(),
                mechanism.loops().len(),
            )));
        }
        let loops = Loops::new(problem, geometry, snap)?;
        let result = problem.with_loops(&loops, numeric, explained)?;
        let other_ranks = problem.ranks_on_other_motions(&loops, geometry)?;
        let mut assumed = geometry.assumed().to_vec();
        assumed.extend_from_slice(&result.assumed);
        Ok(Self { loops: result, dof: loops.closed.dof(), other_ranks, assumed })
    }
}

/// Computes the rank of a mechanism with loops whose numbers are snapped with these tolerances and then taken as
/// written; `None` if the loops do not move.
pub(super) fn rank_as_written(problem: &RankProblem<'_>, tolerance: impl Fn(usize) -> f64) -> Option<usize> {
    let geometry = ExactGeometry::with_tolerances(problem.mechanism, tolerance);
    let loops = Loops::new(problem, &geometry, 0.0).ok()?;
    problem.rank_with_loops(&loops).ok()
}

/// Ranks by the index of a part and the bits of the tolerances of its bodies.
type KnownRanks = HashMap<(usize, Vec<u64>), Option<usize>>;

/// Mechanism divided into parts.
pub(super) struct Parts<'a> {
    problem: &'a RankProblem<'a>,
    all: Vec<Part>,
    experiment: Experiment,
    /// Cached ranks of the parts by tolerance.
    ranks: Mutex<KnownRanks>,
}

impl<'a> Parts<'a> {
    /// Divides a mechanism; `None` if it has only one part, if the experiment measures sums over several parts, or if
    /// the loops of a part leave it no freedom (only the mechanism as a whole moves then).
    pub fn new(problem: &'a RankProblem<'a>) -> Option<Self> {
        let mechanism = problem.mechanism;
        let floating = mechanism.base() == Base::Floating;
        // For a base at rest only its mass and first moment are identifiable: parts could then share null vectors.
        let applies = problem.experiment.is_complete(floating)
            && problem.experiment.conservation.is_none()
            && !(floating && problem.experiment.regime == Regime::Static)
            && problem.order.is_sorted();
        let groups = if applies { groups(mechanism)? } else { return None };
        let count = groups.iter().flatten().max().map_or(0, |last| last + 1);
        if count < 2 {
            return None;
        }
        let part = |n: usize| {
            let keep: Vec<bool> = groups.iter().map(|g| g.is_none_or(|g| g == n)).collect();
            mechanism.part(&keep)
        };
        let experiment = Experiment { torques: Vec::new(), ..problem.experiment.clone() };
        let all: Vec<Part> = (0..count).map(part).collect();
        let moves = |p: &Part| p.mechanism.loops().is_empty() || ClosedMechanism::new(&p.mechanism).is_ok();
        all.iter().all(moves).then(|| Self { problem, all, experiment, ranks: Mutex::default() })
    }

    /// Returns the rank problem of a part.
    fn problem_of<'p>(&'p self, part: &'p Part) -> RankProblem<'p> {
        let mechanism = &part.mechanism;
        let order = (0..mechanism.parameter_count()).collect();
        let (seed, literal) = (self.problem.seed, self.problem.literal);
        RankProblem { mechanism, experiment: &self.experiment, order, seed, literal }
    }

    /// Computes the rank of the whole from the ranks of the parts.
    fn rank_of_all(&self, ranks: impl Iterator<Item = usize>) -> usize {
        let nullities = self.all.iter().zip(ranks).map(|(p, rank)| p.columns.len() - rank);
        self.problem.mechanism.parameter_count() - nullities.sum::<usize>()
    }

    /// Analyses the parts and combines the results.
    pub fn analyze(&self, options: &AnalyzeOptions, explained: bool) -> Result<ClosedResult> {
        let one = |part: &Part| {
            let geometry = ExactGeometry::new(&part.mechanism, options.snap);
            ClosedResult::new(&self.problem_of(part), &geometry, options.snap, false, explained)
        };
        let results = self.all.par_iter().map(one).collect::<Result<Vec<_>>>()?;
        let rank_results: Vec<&RankResult> = results.iter().map(|r| &r.loops.result).collect();
        let rank = |i: usize| rank_results[i].regrouping.rank();
        let mut other_ranks = Vec::new();
        for (i, result) in results.iter().enumerate() {
            let instead = |other: usize| {
                self.rank_of_all((0..results.len()).map(|k| if k == i { other } else { rank(k) }))
            };
            other_ranks.extend(result.other_ranks.iter().map(|other| other.map(instead)));
        }
        let shared = if self.problem.mechanism.base() == Base::Floating { 6 } else { 0 };
        let dof = shared + results.iter().map(|r| r.dof - shared).sum::<usize>();
        let result = self.combined(&rank_results);
        let explanation = self.explanation(results.iter().map(|r| &r.loops.explanation));
        let repaired = results.iter().filter_map(|r| r.loops.repaired).reduce(f64::max);
        let assumed = results.into_iter().flat_map(|r| r.assumed).collect();
        let loops = LoopResult { result, explanation, repaired, assumed: Vec::new() };
        Ok(ClosedResult { loops, dof, other_ranks, assumed })
    }

    /// Computes the rank as [`rank_as_written`] does; results of parts are cached by tolerance.
    pub fn rank_as_written(&self, tolerance: &dyn Fn(usize) -> f64) -> Option<usize> {
        let rank = |(i, part): (usize, &Part)| {
            let key = (i, part.bodies.iter().map(|&b| tolerance(b).to_bits()).collect());
            let known = self.known_ranks().get(&key).copied();
            known.unwrap_or_else(|| {
                let found = rank_as_written(&self.problem_of(part), |b| tolerance(part.bodies[b]));
                self.known_ranks().insert(key, found);
                found
            })
        };
        let ranks: Option<Vec<usize>> = self.all.iter().enumerate().map(rank).collect();
        Some(self.rank_of_all(ranks?.into_iter()))
    }

    fn known_ranks(&self) -> MutexGuard<'_, KnownRanks> {
        self.ranks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Combines the spans, base parameters, certificates and warnings of the parts.
    fn combined(&self, results: &[&RankResult]) -> RankResult {
        let bodies = self.problem.mechanism.bodies().len();
        let (mut spans, mut freedoms) = (vec![BodySpan::default(); bodies], vec![0; bodies]);
        let mut warnings: Vec<Warning> = Vec::new();
        for (part, result) in self.all.iter().zip(results) {
            for (b, &global) in part.bodies.iter().enumerate() {
                (spans[global], freedoms[global]) = (result.spans[b], result.freedoms[b]);
            }
            for warning in &result.warnings {
                if !warnings.contains(warning) {
                    warnings.push(warning.clone());
                }
            }
        }
        RankResult {
            method: results[0].method,
            regrouping: self.regrouping(results),
            small_entries: results.iter().map(|f| f.small_entries).max().unwrap_or(SmallEntries::Kept),
            certificate: self.certificate(results),
            spans,
            freedoms,
            null_space: Vec::new(),
            transfers: Vec::new(),
            warnings,
        }
    }

    /// Combines the base parameters of the parts; contributions to the parameters of the base are added.
    fn regrouping(&self, results: &[&RankResult]) -> Regrouping {
        let parameters = self.problem.mechanism.parameter_count();
        let mut combinations: Vec<Option<Vec<(usize, f64)>>> = vec![None; parameters];
        let mut status = vec![Status::Identifiable; parameters];
        let mut listed = true;
        for (part, found) in self.all.iter().zip(results).map(|(p, f)| (p, &f.regrouping)) {
            listed &= found.is_listed();
            for (&column, &own) in part.columns.iter().zip(&found.status) {
                if own != Status::Identifiable {
                    status[column] = own;
                }
            }
            for (i, &column) in found.base.iter().enumerate() {
                let global = part.columns[column];
                let combination = combinations[global].get_or_insert_with(|| vec![(global, 1.0)]);
                let others = found.combinations.get(i).into_iter().flatten().filter(|(c, _)| *c != column);
                combination.extend(others.map(|&(c, x)| (part.columns[c], x)));
            }
        }
        let base = (0..parameters).filter(|&c| combinations[c].is_some()).collect();
        let mut combinations: Vec<Vec<(usize, f64)>> = combinations.into_iter().flatten().collect();
        for combination in &mut combinations {
            combination[1..].sort_unstable_by_key(|(c, _)| *c);
        }
        if !listed {
            combinations.clear();
        }
        Regrouping { parameters, base, combinations, status }
    }

    /// Combines the certificates; the result fails if that of a part fails.
    fn certificate(&self, results: &[&RankResult]) -> Certificate {
        let all = || results.iter().map(|f| &f.certificate);
        let weakest = all().find(|c| !c.exact).unwrap_or(&results[0].certificate);
        let describe = |by: &str| {
            format!("{by}; for each of {} parts that are connected only through the base", results.len())
        };
        Certificate {
            rank_lower: self.rank_of_all(all().map(|c| c.rank_lower)),
            rank_upper: self.rank_of_all(all().map(|c| c.rank_upper)),
            exact: all().all(|c| c.exact),
            kind: if all().all(|c| c.exact) { weakest.kind } else { CertificateKind::Numeric },
            error_probability: all().map(|c| c.error_probability).sum(),
            margin: all().filter_map(|c| c.margin).reduce(f64::min),
            lower_by: describe(&weakest.lower_by),
            upper_by: describe(&weakest.upper_by),
        }
    }

    fn explanation<'e>(&self, found: impl Iterator<Item = &'e Explanation>) -> Explanation {
        let (mut reasons, mut computed, mut unsound) = (Vec::new(), Vec::new(), 0);
        for (part, own) in self.all.iter().zip(found) {
            let of_all = |reason: &Reason| Reason {
                kind: match reason.kind {
                    Principle::SharedPoints(contact) => Principle::SharedPoints(placed(part, contact)),
                    Principle::AxialSliding(contact) => Principle::AxialSliding(placed(part, contact)),
                    other => other,
                },
                vector: reason.vector.iter().map(|&(c, x)| (part.columns[c], x)).collect(),
                ..reason.clone()
            };
            let (by_principles, by_computation) = own.reasons.split_at(own.explained);
            reasons.extend(by_principles.iter().map(of_all));
            computed.extend(by_computation.iter().map(of_all));
            unsound += own.unsound;
        }
        let explained = reasons.len();
        reasons.append(&mut computed);
        Explanation { reasons, explained, unsound }
    }
}

fn placed(part: &Part, contact: Contact) -> Contact {
    match contact {
        Contact::Tree(body) => Contact::Tree(part.bodies[body]),
        Contact::Loop(l) => Contact::Loop(part.loops[l]),
        Contact::Motion => Contact::Motion,
    }
}

/// Returns for each body the index of its group: the bodies connected with it other than through the base, in the order
/// of the first body of each. A floating base itself has `None`. Returns `None` if a loop connects the floating base to
/// the ground, or if the base has no parameters that could receive those of the parts.
fn groups(mechanism: &Mechanism) -> Option<Vec<Option<usize>>> {
    let bodies = mechanism.bodies();
    // Index of the floating base; `None` for the ground.
    let floating_base = (mechanism.base() == Base::Floating).then_some(0);
    if floating_base.is_some_and(|b| bodies[b].kind != BodyKind::Link) {
        return None;
    }
    let mut leader: Vec<usize> = (0..bodies.len()).collect();
    let mut join = |a: Option<usize>, b: Option<usize>| {
        if let (Some(a), Some(b)) = (a.filter(|_| a != floating_base), b.filter(|_| b != floating_base)) {
            let (a, b) = (first(&leader, a), first(&leader, b));
            leader[a.max(b)] = a.min(b);
        }
    };
    for (i, body) in bodies.iter().enumerate() {
        join(Some(i), body.parent);
    }
    let mut moved_by: Vec<Option<usize>> = vec![None; mechanism.nv()];
    for (i, body) in bodies.iter().enumerate() {
        join(Some(i), Some(*moved_by[body.drive.v].get_or_insert(i)));
    }
    for closing in mechanism.loops() {
        let (a, b) = (closing.predecessor.body, closing.successor.body);
        if a == b || floating_base.is_some() && (a.is_none() || b.is_none()) {
            return None;
        }
        join(a, b);
    }
    let mut count = 0;
    let mut out: Vec<Option<usize>> = Vec::with_capacity(bodies.len());
    for i in 0..bodies.len() {
        out.push(if Some(i) == floating_base {
            None
        } else if leader[i] == i {
            count += 1;
            Some(count - 1)
        } else {
            out[first(&leader, i)]
        });
    }
    Some(out)
}

fn first(leader: &[usize], mut body: usize) -> usize {
    while leader[body] != body {
        body = leader[body];
    }
    body
}
