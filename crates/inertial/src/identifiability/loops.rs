//! Certified analysis of mechanisms with loops, from multi-precision arithmetic and random members of the family of the
//! mechanism.
//!
//! The lower bound of the rank, and the combinations, are computed for the mechanism itself at random closed
//! configurations ([`Extended`]). The upper bound is the rank of random mechanisms over GF(p) with the same geometric
//! relations (`family`). If both bounds agree, the result is certain except for the probability that the two random
//! members are not generic.

use super::base_parameters::EntryScale;
use super::certificate::{Certificate, CertificateKind, RankProblem, RankResult};
use super::configurations::Site;
use super::drng::{Explanation, explain};
use super::extended::{Extended, Known, Nearby};
use super::family::Relations;
use super::family_bound::{Bound, bounds};
use super::lifting::Start;
use super::probe::{ProbeInputs, shared_points};
use super::related_geometry::{RELATED, RelatedGeometry, VIEWS_SEED};
use super::rounding::{DOUBLES, Rounding, resolution};
use super::warning::Warning;
use crate::dynamics::ClosedMechanism;
use crate::linalg::{Number, SplitMix, Wide};
use crate::mechanism::{Assembled, AssumedRelation, Base, ExactAssembly, ExactGeometry};
use crate::{Error, Result};

/// Coefficients up to this are zero unless the geometry is taken as written. It is the square of the rounding error of
/// doubles in intended relations.
const ROUNDING_SQUARED: f64 = 1e-30;

/// Multiples of the rounding error of the file up to which relations are searched; the larger ones are used if no
/// relation is found.
const TOLERANCES: [f64; 3] = [1.0, 4.0, 16.0];

/// Maximum displacement, relative to the rounding error, by which relations that hold only to multiples of the rounding
/// error may be restored.
const LITTLE: f64 = 0.3;

/// Maximum displacement, relative to the size of the mechanism, that restores intended relations of a file whose loops
/// close as written. The displacement must not exceed one unit of the last decimal place either; otherwise the file is
/// ambiguous.
const FINE: f64 = 1e-5;

/// Largest dimension, in units of the size of the mechanism, that is small enough to look like a rounding error in the
/// pivots.
const SMALL: f64 = 1e-2;

/// Largest rounding error, relative to the smallest dimension that the file resolves.
const FEATURE: f64 = 0.1;

/// Pivots below this multiple of the rounding error may be rounding errors.
const FAINT: f64 = 100.0;

/// Pivots up to this may be rounding errors of double precision.
const NOISE: f64 = 2e-14;

/// Distance of the mechanism that shows which pivots are rounding errors: far above the rounding error of doubles, so
/// that such pivots grow by orders of magnitude, and small for valid pivots.
const NEARBY: f64 = 1e-13;

/// Minimum distance of that mechanism, in rounding errors of the file.
const NEARBY_ERRORS: f64 = 100.0;

/// Largest distance of that mechanism if the file is coarse, so that valid pivots keep their size.
const FARTHEST: f64 = 3e-3;

/// Pivots up to this multiple of the rounding error of the file may be rounding errors.
const AMPLIFIED: f64 = 50.0;

/// Largest entry of a valid null vector, in units of the size of the mechanism, with one at its own parameter. Larger
/// entries result from a pivot that is a rounding error.
const LARGEST_ENTRY: f64 = 1e6;

/// Number of orders in time for which points shared by two bodies are followed. Except in singular configurations the
/// first few orders are sufficient.
const ORDERS_OF_POINTS: usize = 6;

/// Mechanism with loops, prepared for analysis.
#[derive(Debug)]
pub struct Loops<'m> {
    /// Mechanism with numerically closed loops.
    pub closed: ClosedMechanism<'m>,
    /// Exact geometry in the configuration of the numeric closure.
    pub(super) assembly: ExactAssembly,
    /// Tolerance of the geometry; zero if the last digit of every number is significant.
    snap: f64,
}

/// Result for a mechanism with loops.
#[derive(Debug)]
#[non_exhaustive]
pub struct LoopResult {
    /// Rank, base parameters and certificate.
    pub result: RankResult,
    /// Null vectors with their reasons.
    pub explanation: Explanation,
    /// Distance by which the geometry was moved (rad, or relative to the size of the mechanism) to restore relations
    /// lost by rounding.
    pub repaired: Option<f64>,
    /// Relations that hold only approximately and were restored.
    pub assumed: Vec<AssumedRelation>,
}

/// Mechanism sampled at closed configurations, with the relations that hold there.
struct Sampled<const N: usize> {
    found: Extended<N>,
    views: Vec<Assembled<Wide<N>>>,
    bound: Result<Bound, &'static str>,
    repaired: Option<f64>,
    /// Distance by which the geometry was moved, also within the rounding error of doubles.
    moved: f64,
    /// Whether some relations hold to the rounding error of the file but could not be restored exactly.
    unresolved: bool,
    /// Restored relations.
    assumed: Vec<AssumedRelation>,
}

/// Interpretation of relations that hold to the last decimal places of a file.
enum Interpretation<'a, 'm, const N: usize> {
    /// Relations that hold by chance: the geometry is used as written.
    AsWritten,
    /// Intended relations, with the mechanism that satisfies them exactly.
    AsIntended(Box<RelatedGeometry<'a, 'm, N>>),
    /// Possibly intended relations, with the rank of mechanisms that satisfy them, if known.
    Ambiguous(Option<usize>),
}

impl<'m> Loops<'m> {
    /// Closes the loops; `snap` is the tolerance of `geometry`.
    pub fn new(problem: &RankProblem<'m>, geometry: &ExactGeometry, snap: f64) -> Result<Self> {
        Self::on(problem, geometry, snap, ClosedMechanism::new(problem.mechanism)?)
    }

    /// Prepares the mechanism on the motion that `closed` follows.
    fn on(
        problem: &RankProblem<'m>,
        geometry: &ExactGeometry,
        snap: f64,
        closed: ClosedMechanism<'m>,
    ) -> Result<Self> {
        for (v, _) in problem.experiment.torques.iter().enumerate().filter(|(_, t)| **t) {
            if !closed.independent().contains(&v) {
                let name = &problem.mechanism.velocity_names()[v];
                return Err(Error::Numeric(format!(
                    "joint {name} is a dependent joint of the loops; torque sensors must be at the \
                     independent joints ({})",
                    closed.independent_names().join(", ")
                )));
            }
        }
        let assembly = ExactAssembly::new(problem.mechanism, geometry, closed.assembled(), snap)
            .with_locked(closed.locked());
        Ok(Self { closed, assembly, snap })
    }

    /// Returns an upper bound of the rank from the relations.
    fn bounds<const N: usize>(
        &self,
        problem: &RankProblem<'_>,
        relations: &Relations<N>,
        least: Option<usize>,
    ) -> Result<Bound, &'static str> {
        bounds(&self.closed, &self.assembly, problem, relations, least)
    }

    /// Samples the mechanism after restoring the relations and the closure lost by rounding.
    fn sampled<const N: usize>(&self, problem: &RankProblem<'_>) -> Result<Sampled<N>> {
        let base = self.assembly.to::<Wide<N>>();
        let q = self.closed.assembled().to_vec();
        let site = Site::new(&self.closed, &self.assembly, base, q);
        let resolution = resolution(&self.closed, site.unit);
        let mut current = RelatedGeometry::new(site, 0.0, resolution)?;
        let as_written = current.relations.clone();
        let mut repaired = None;
        let (mut unresolved, mut equal_angles) = (false, None);
        // Relations that hold only to multiples of the rounding error.
        let mut doubtful: Vec<Relations<N>> = Vec::new();
        let limits = Rounding::new(&self.closed, current.site.size, self.snap, current.open);
        let rounding = limits.tolerance;
        for (n, scale) in TOLERANCES.into_iter().enumerate() {
            // Small errors of a file are amplified in relations that follow from the motion, so the mechanism may move
            // only slightly.
            if n > 0 && (rounding <= DOUBLES || repaired.is_some()) {
                break;
            }
            let intended = current.relations_to(scale * rounding);
            let more = intended.count() > current.relations.count();
            if n == 0 {
                unresolved = more;
                equal_angles = (rounding <= DOUBLES).then(|| intended.equal_angles());
            }
            let restored = (more || current.open > RELATED).then(|| current.restored(&intended)).flatten();
            if more && n > 0 {
                doubtful.push(intended);
            }
            let Some(new) = restored else { continue };
            let little = if rounding < self.snap { 1.0 } else { LITTLE };
            if new.is_better_than(&current) && (n == 0 || new.moved <= little * rounding) {
                let now = new.relations_to(DOUBLES);
                unresolved = now.count() > new.relations.count();
                equal_angles = Some(now.equal_angles());
                repaired = (rounding > DOUBLES).then_some(new.moved);
                current = new;
            }
        }
        // Some of the relations contradict each other.
        let mut in_part = false;
        if repaired.is_none() && rounding > DOUBLES && self.snap > 0.0 {
            let intended = current.relations_to(rounding);
            if intended.count() > current.relations.count()
                && let Some(new) = current.restored_in_part(&intended)
                && new.is_better_than(&current)
                && new.open <= RELATED
            {
                in_part = true;
                unresolved = new.relations_to(DOUBLES).count() > new.relations.count();
                equal_angles = None;
                repaired = Some(new.moved);
                current = new;
            }
        }
        if self.snap > 0.0
            && current.open > RELATED
            && let Some(new) = current.mobile(rounding)
        {
            unresolved = new.relations_to(rounding).count() > new.relations.count();
            equal_angles = None;
            repaired = (rounding > DOUBLES).then_some(new.moved);
            current = new;
        }
        // With a coarse file, or if relations to its rounding cannot be restored, it is unknown which ones are intended.
        let failed = unresolved && rounding > DOUBLES;
        if repaired.is_some() || rounding < self.snap && !failed {
            doubtful.clear();
        }
        let mut alternative_ranks: Vec<Option<usize>> =
            doubtful.iter().map(|s| self.bounds(problem, s, Some(0)).ok().map(|b| b.rank)).collect();
        if in_part {
            let all = current.relations_to(rounding);
            if all.count() > current.relations.count() {
                alternative_ranks.push(self.bounds(problem, &all, Some(0)).ok().map(|b| b.rank));
            }
        }
        match self.interpretation(problem, &current, &limits) {
            Interpretation::AsWritten => {}
            Interpretation::Ambiguous(rank) => alternative_ranks.push(rank),
            Interpretation::AsIntended(new) => {
                unresolved = new.relations_to(DOUBLES).count() > new.relations.count();
                equal_angles = None;
                repaired = Some(new.moved);
                current = *new;
            }
        }
        let blur = limits.blur();
        let is_changed = limits.is_coarse() || repaired.is_some();
        let blurred = (is_changed || current.moved > 0.0).then(|| current.relations_to(blur));
        let loose =
            is_changed && blurred.as_ref().is_some_and(|b| b.equal_links() > current.relations.equal_links());
        // One symmetry of a loop is restored.
        let more_symmetric = blurred.is_some_and(|b| b.symmetries() > current.relations.symmetries());
        let beyond = limits
            .beyond(self.snap)
            .is_some_and(|t| current.relations_to(t).count() > current.relations.count());
        let RelatedGeometry { site, views, relations, open, moved, .. } = current;
        let mut bound = self.bounds(problem, &relations, None);
        let expected = bound.as_ref().ok().map(|b| b.rank);
        // Equal angles are never restored.
        let equal_angles = equal_angles.unwrap_or_else(|| {
            Relations::new(&views.configurations, &site.geometry, DOUBLES, resolution).equal_angles()
        });
        unresolved |= equal_angles > relations.equal_angles();
        // Numbers that close the loops as written are exact.
        let is_exact = self.snap == 0.0 || limits.is_exact() && (moved == 0.0 || !limits.is_coarse());
        // Relations that were not recognized hold to the last decimals of the file.
        let written =
            if limits.is_coarse() { resolution.length.max(resolution.angle).min(self.snap) } else { 0.0 };
        let error = moved.max(limits.axes).max(written);
        let noise = if is_exact { 0.0 } else { NOISE.max(AMPLIFIED * error) };
        let known = Known { snap: self.snap, expected, blurred: unresolved, closes: open <= RELATED, noise };
        // A mechanism with the same relations; others, which were not recognized, do not hold there.
        let distance = if is_changed {
            (NEARBY_ERRORS * error).min(FARTHEST)
        } else {
            NEARBY.max(NEARBY_ERRORS * moved.max(limits.axes))
        };
        let nearby = || {
            let source = &mut SplitMix::new(VIEWS_SEED);
            let at = relations.neighbour(&views.configurations[0], &site.geometry, distance, source)?;
            let site = Site::new(&self.closed, &self.assembly, site.in_file_units(&at), views.q.clone());
            Some(Nearby { site, is_coarse: is_changed })
        };
        let mut found = Extended::new(problem, &site, known, nearby)?;
        // Unrestored relations matter only if rounding errors appear among the pivots.
        unresolved = found.truncated;
        // Pivots that small dimensions of the file explain are no rounding errors, although nothing proves it.
        let small = relations.smallest_feature().filter(|&x| unresolved && x < SMALL);
        if let Some(least) = small.map(|x| FEATURE * x) {
            let known = Known { snap: self.snap.min(least), noise: noise.min(least * least), ..known };
            let finer = Extended::new(problem, &site, known, || None)?;
            if expected == Some(finer.rank.rank) {
                found = finer;
            }
        }
        // Equal angles and distances of skew axes are not restored, nor are relations without a family that bounds
        // their rank. Small pivots may then be rounding errors.
        let left = loose || alternative_ranks.contains(&None) && limits.is_coarse();
        unresolved |= left && found.rank.kept < FAINT * blur;
        // A file with closed loops is used as written unless mechanisms with more relations have a lower rank.
        let differs = |rank: usize| rank < found.rank.rank || limits.is_coarse() && rank > found.rank.rank;
        unresolved |= beyond || more_symmetric;
        // Rounding can lock loops with redundant constraints.
        unresolved |= limits.is_coarse() && !self.closed.locked().is_empty();
        unresolved |= alternative_ranks.iter().any(|rank| rank.is_none_or(differs));
        if !unresolved && expected.is_some_and(|rank| rank > found.rank.rank) {
            let known = Known { expected: None, blurred: false, ..known };
            found = Extended::new(problem, &site, known, nearby)?;
            unresolved = found.truncated;
            let least = found.rank.rank;
            if expected.is_some_and(|rank| rank > least) {
                bound = self.bounds(problem, &relations, Some(least)).or(bound);
            }
        }
        // Rounding does not explain that a dimension disappears.
        unresolved |= repaired.is_some() && relations.distorts(&as_written);
        let assumed = match repaired {
            Some(_) => relations.gained(&as_written, problem.mechanism, site.unit),
            None => Vec::new(),
        };
        Ok(Sampled { found, views: views.configurations, bound, repaired, moved, unresolved, assumed })
    }

    /// Interprets relations that hold only to the last decimal places of the file.
    fn interpretation<'a, const N: usize>(
        &'a self,
        problem: &RankProblem<'_>,
        current: &RelatedGeometry<'a, 'm, N>,
        limits: &Rounding,
    ) -> Interpretation<'a, 'm, N> {
        let (Some(tolerance), Some(unit)) = (limits.last_places(self.snap), limits.unit) else {
            return Interpretation::AsWritten;
        };
        let nearly = current.relations_to(tolerance);
        if nearly.count() <= current.relations.count() {
            return Interpretation::AsWritten;
        }
        if !limits.is_coarse()
            && let Some(new) = current.restored(&nearly)
            && new.is_better_than(current)
            && new.open <= RELATED
            && new.moved <= unit.min(FINE)
        {
            return Interpretation::AsIntended(Box::new(new));
        }
        match self.bounds(problem, &nearly, None) {
            Ok(bound) => Interpretation::Ambiguous(Some(bound.rank)),
            Err(_) if limits.is_coarse() => Interpretation::Ambiguous(None),
            Err(_) => Interpretation::AsWritten,
        }
    }
}

impl RankProblem<'_> {
    /// Returns the parameters and the experiment for which curves are evaluated.
    pub(super) fn probe_inputs(&self) -> ProbeInputs<'_> {
        ProbeInputs {
            blocks: self.mechanism.parameter_blocks(),
            experiment: self.experiment,
            floating: self.mechanism.base() == Base::Floating,
        }
    }

    /// Computes the rank of a mechanism with loops, with as many digits as necessary.
    pub fn rank_with_loops(&self, loops: &Loops<'_>) -> Result<usize> {
        let found = loops.sampled::<4>(self)?.found;
        if found.is_clear() {
            return Ok(found.rank.rank);
        }
        Ok(loops.sampled::<8>(self)?.found.rank.rank)
    }

    /// Analyses a mechanism with loops. The result is certified unless `numeric` is set; the null vectors are explained
    /// if `explained` is set.
    pub fn with_loops(&self, loops: &Loops<'_>, numeric: bool, explained: bool) -> Result<LoopResult> {
        let sampled = loops.sampled::<4>(self)?;
        if sampled.found.is_clear() {
            return Ok(self.written(loops, sampled, numeric, explained));
        }
        Ok(self.written(loops, loops.sampled::<8>(self)?, numeric, explained))
    }

    fn written<const N: usize>(
        &self,
        loops: &Loops<'_>,
        sampled: Sampled<N>,
        numeric: bool,
        explained: bool,
    ) -> LoopResult {
        let Sampled { found, views, bound, repaired, moved, unresolved, assumed } = sampled;
        let rank = found.rank;
        let warnings = loops.closed.warnings().iter().cloned().map(Warning::Model);
        let digits = 19 * N;
        let by = format!(
            "elimination with full pivoting of the regressor at random closed configurations, in {digits} digits"
        );
        let measured = format!(
            "{by}: last kept {:.1e}, first dropped {:.1e}, loops closed to {:.1e}",
            rank.kept, rank.dropped, found.open
        );
        let mut certificate = Certificate {
            rank_lower: rank.rank,
            rank_upper: rank.rank,
            exact: false,
            kind: CertificateKind::Numeric,
            error_probability: None,
            margin: Some(rank.kept / rank.dropped.max(f64::MIN_POSITIVE)),
            lower_by: measured.clone(),
            upper_by: measured,
        };
        let mut velocities = found.velocities.clone();
        if !numeric && found.is_clear() {
            match bound {
                Ok(bound) if bound.rank == rank.rank && unresolved => {
                    certificate.upper_by = format!(
                        "{}; no proof: joint axes are nearly in special positions that could not be restored",
                        certificate.upper_by
                    );
                }
                Ok(bound) if bound.rank == rank.rank => {
                    certificate.error_probability = Some(bound.error_probability);
                    certificate.kind = CertificateKind::Randomised;
                    certificate.exact = true;
                    // The pivots depend on the seed, the certified result does not.
                    certificate.margin = None;
                    certificate.lower_by = by;
                    certificate.upper_by =
                        "random mechanisms with the same geometric relations, modulo two primes of 61 bits"
                            .into();
                    velocities = bound.velocities;
                }
                Ok(bound) => {
                    certificate.rank_upper = bound.rank.max(rank.rank);
                    certificate.upper_by = format!(
                        "random mechanisms with the same geometric relations have rank {}: the mechanism has relations that were \
                         not recognized",
                        bound.rank
                    );
                }
                Err(why) => certificate.upper_by = format!("{}; no proof: {why}", certificate.upper_by),
            }
        }
        let method = match (numeric, explained) {
            (true, _) => "numeric",
            (false, true) => "drng",
            (false, false) => "exact",
        };
        let tolerance = match (found.is_clear(), loops.snap > 0.0) {
            (true, true) => Wide::<N>::TOLERANCE.max(ROUNDING_SQUARED),
            (true, false) => Wide::<N>::TOLERANCE,
            (false, _) => found.tolerance.max(f64::TOLERANCE),
        };
        let scale = EntryScale::of_repaired(vec![1.0; found.lengths.len()], moved);
        let rows = found.rows.clone();
        let explanation = if explained || numeric {
            let mut dependent = vec![true; self.mechanism.nv()];
            loops.closed.independent().iter().for_each(|&v| dependent[v] = false);
            let start = Start::new(&views[0], &dependent);
            let shared = || {
                let points = start.as_ref().map(|start| shared_points(start, ORDERS_OF_POINTS, VIEWS_SEED));
                points.ok().and_then(Result::ok).unwrap_or_default()
            };
            let nullity = rows.width() - rows.rank();
            let computed = || self.null_space(&found, tolerance, &scale);
            explain(self.mechanism, &views[0], nullity, |x| found.annihilates(x), shared, computed)
        } else {
            Explanation::default()
        };
        let mut result = self.finish(method, rows, certificate, velocities, tolerance, &scale);
        result.regrouping.rescale(&found.lengths);
        result.warnings.extend(warnings);
        LoopResult { result, explanation: explanation.rescaled(&found.lengths), repaired, assumed }
    }

    /// Returns the null space in a canonical basis, as long as that basis is well conditioned.
    fn null_space<const N: usize>(
        &self,
        found: &Extended<N>,
        tolerance: f64,
        scale: &EntryScale,
    ) -> Vec<Vec<Wide<N>>> {
        let mut rows = found.rows.clone();
        let canonical = self.dependence(&mut rows, tolerance, scale).null_space();
        // If rows were truncated at the rounding error, or a pivot is a rounding error, use the largest pivots instead.
        let is_clear = canonical.len() == rows.width() - rows.rank()
            && canonical.iter().flatten().all(|x| x.weight() <= LARGEST_ENTRY);
        if is_clear && !found.truncated { canonical } else { rows.null_space() }
    }

    /// Computes the ranks on the other motions that intersect in a singular assembly configuration; `None` if a rank
    /// cannot be computed, for example because joints with sensors cannot be independent there.
    pub fn ranks_on_other_motions(
        &self,
        loops: &Loops<'_>,
        geometry: &ExactGeometry,
    ) -> Result<Vec<Option<usize>>> {
        let rank_on = |closed| self.rank_with_loops(&Loops::on(self, geometry, loops.snap, closed)?);
        Ok(loops.closed.other_motions()?.into_iter().map(|closed| rank_on(closed).ok()).collect())
    }
}
