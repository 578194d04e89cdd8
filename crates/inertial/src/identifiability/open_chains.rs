//! Analysis of open chains: the recursion gives the result, sections give the lower bound, and fresh configurations
//! verify the combinations.

use super::base_parameters::{EntryScale, PrintedNumber, Regrouping, SmallEntries};
use super::certificate::{Certificate, CertificateKind, JointTransfers, RankProblem, RankResult};
use super::rpna::{Rpna, Scope};
use super::sampling::Sampler;
use super::sections::local_rank;
use super::topology::Topology;
use super::warning::Warning;
use crate::linalg::{Double, Echelon, First, Number, Pivot, Second, Shadow, Wide};
use crate::mechanism::{ExactGeometry, Geometry};
use crate::spatial::Parameters;
use crate::{Error, Result};

const FIRST: u64 = First::PRIME;

/// Numbers with 77 digits.
pub(super) type Digits = Wide<4>;

/// Exact number (modulo a prime) paired with its multi-precision value.
pub(super) type Real<V = Digits> = Shadow<FIRST, V>;

/// Maximum number of columns for which combinations are computed with 77 digits; beyond it 31 digits are used.
const MOST_WIDE: usize = 700;

/// Tolerance of the residual of a printed combination on a fresh row, relative to its terms: a few rounding errors of
/// double precision.
const RESIDUAL: f64 = 1e-12;

/// Rounding error of a zero in 77 digits, relative to the largest number.
const NOTHING: f64 = 1e-40;

/// Rows with all entries below this are zero: random states are of order one, and lengths are rarely below a nanometre.
const SMALLEST_ROW: f64 = 1e-20;

/// Number of fresh rows used to verify combinations.
const FRESH: u64 = 2;

/// Number type to which a multi-precision value can be rounded.
trait Rounded: Number + Into<f64> {
    fn rounded(x: Digits) -> Self;
}

impl Rounded for Digits {
    fn rounded(x: Digits) -> Self {
        x
    }
}

impl Rounded for Double {
    fn rounded(x: Digits) -> Self {
        let high = f64::from(x);
        Self::from(high) + Self::from(f64::from(x - Digits::from(high)))
    }
}

/// Bounds the probability that a nonzero number is zero modulo both primes. `decisions` numbers are compared with zero;
/// each is a polynomial of the given degree in numbers that are effectively random modulo a prime (Schwartz and
/// Zippel). An error requires that both primes fail together.
pub(super) fn error_probability(decisions: f64, degree: f64) -> f64 {
    (decisions * degree / FIRST as f64).min(1.0).powi(2)
}

impl RankProblem<'_> {
    fn sparse<V: Number>(
        &self,
        transfer: &[(usize, Parameters<Real<V>>)],
        offsets: &[usize],
    ) -> Vec<(usize, Real<V>)> {
        let mut out = Vec::with_capacity(20);
        for (body, values) in transfer {
            let len = self.mechanism.bodies()[*body].parameter_count();
            for (k, &x) in values.as_slice()[10 - len..].iter().enumerate() {
                if x.weight() > 0.0 {
                    out.push((offsets[*body] + k, x));
                }
            }
        }
        out
    }

    /// Returns the null vectors of the recursion by column, each with the cluster whose joint the transfer crosses.
    pub(super) fn transfers_by_column(
        &self,
        real: &Geometry<Real>,
        found: &Rpna<Real>,
        topology: &Topology,
    ) -> Vec<(usize, Vec<(usize, Real)>)> {
        let mut offsets = vec![0; self.mechanism.bodies().len()];
        for block in self.mechanism.parameter_blocks() {
            offsets[block.body] = block.offset;
        }
        let vectors = found.null_vectors(real, topology);
        vectors.map(|(joint, transfer)| (joint, self.sparse(&transfer, &offsets))).collect()
    }

    /// Names the joint that each null vector of the recursion crosses.
    pub(super) fn named_transfers(
        &self,
        transfers: &[(usize, Vec<(usize, Real)>)],
        topology: &Topology,
    ) -> Vec<(String, Vec<(usize, f64)>)> {
        let name = |(joint, v): &(usize, Vec<(usize, Real)>)| {
            let body = topology.bodies(&topology.clusters[*joint])[0];
            let joint = &self.mechanism.joints()[self.mechanism.bodies()[body].joint].name;
            let values = v.iter().map(|&(c, x)| (c, x.value.into())).collect();
            (format!("transfer across joint {joint}"), values)
        };
        transfers.iter().map(name).collect()
    }

    /// Computes the result by the recursion, certified joint by joint.
    pub fn by_recursion(&self, geometry: &ExactGeometry, topology: &Topology, scope: Scope) -> RankResult {
        let width = self.mechanism.parameter_count();
        let real = geometry.to::<Real>();
        let found = Rpna::new(&real, topology, scope);
        let nullity = found.nullity(topology);
        let upper = width - nullity;
        let mut warnings = Vec::new();
        let second = Rpna::new(&geometry.to::<Second>(), topology, scope).nullity(topology);
        if second != nullity {
            warnings.push(Warning::PrimesDiffer { ranks: [upper, width - second] });
        }
        let field = geometry.to::<First>();
        let mut sampler = Sampler::new(self.mechanism, &field, self.experiment, self.seed);
        let most: Vec<usize> = found
            .joints
            .iter()
            .zip(&topology.clusters)
            .filter(|(_, c)| !c.massless)
            .map(|(j, _)| j.width - j.freedoms)
            .collect();
        let lower = local_rank(&mut sampler, &field, topology, scope, &most);
        if lower != upper {
            warnings.push(Warning::RecursionDiffers { recursion: upper, sampled: lower });
        }
        let null = self.transfers_by_column(&real, &found, topology);
        let zero_columns = || {
            let mut row = Vec::new();
            sampler.row(&mut row);
            row.iter().map(num_traits::Zero::is_zero).collect()
        };
        let vectors = null.iter().map(|(_, v)| v);
        let scale = self.scale(geometry);
        let (regrouping, small_entries) = if width <= MOST_WIDE {
            self.regroup::<Digits>(vectors, &scale, zero_columns)
        } else {
            self.regroup::<Double>(vectors, &scale, zero_columns)
        };
        let null_space = self.named_transfers(&null, topology);
        let holds = self.check(&regrouping, small_entries, &null_space, geometry, &mut warnings);
        let restricted = found.restricted as f64;
        let mut certificate = Certificate {
            rank_lower: lower,
            rank_upper: upper,
            exact: lower == upper && second == nullity && holds,
            kind: if found.restricted == 0 { CertificateKind::Proved } else { CertificateKind::Randomised },
            // Three spans of at most 20 columns for each joint, with entries that depend on the joints before it.
            error_probability: Some(error_probability(60.0 * restricted, 20.0 * (1.0 + restricted))),
            margin: None,
            lower_by: "independent rows of each joint's own force and of what changes as it moves, at random \
                       configurations modulo a prime of 61 bits"
                .into(),
            upper_by: "parameter transfers that change no measurement, by the recursion (RPNA) modulo two primes of 61 bits"
                .into(),
        };
        if small_entries == SmallEntries::Doubtful {
            certificate.withdraw();
        }
        let mut spans = found.bodies.clone();
        if scope.wrench {
            let moving = Rpna::new(&field, topology, scope.regime);
            spans.iter_mut().zip(&moving.bodies).for_each(|(s, m)| s.velocity = m.velocity);
        }
        let (freedoms, transfers) = self.transfers(&found, topology);
        RankResult {
            method: "rpna",
            regrouping,
            small_entries,
            certificate,
            spans,
            freedoms,
            null_space,
            transfers,
            warnings,
        }
    }

    /// Computes base parameters from sparse null vectors, in numbers of another precision.
    fn regroup<'v, V: Rounded>(
        &self,
        null: impl Iterator<Item = &'v Vec<(usize, Real)>>,
        scale: &EntryScale,
        zero_columns: impl FnOnce() -> Vec<bool>,
    ) -> (Regrouping, SmallEntries)
    where
        Real<V>: PrintedNumber,
    {
        let rounded = |v: &Vec<(usize, Real)>| {
            let number = |x: &Real| Real::<V> { exact: x.exact, value: V::rounded(x.value) };
            v.iter().map(|(c, x)| (*c, number(x))).collect()
        };
        let vectors: Vec<Vec<(usize, Real<V>)>> = null.map(rounded).collect();
        let dependence = self.dependence_of(&vectors, 0.0, scale);
        let small_entries = dependence.small_entries;
        (dependence.regrouping(zero_columns), small_entries)
    }

    fn transfers(&self, found: &Rpna<Real>, topology: &Topology) -> (Vec<usize>, Vec<JointTransfers>) {
        let mut freedoms = vec![0; self.mechanism.bodies().len()];
        let mut transfers = Vec::with_capacity(topology.clusters.len());
        for (i, (joint, cluster)) in found.joints.iter().zip(&topology.clusters).enumerate() {
            if cluster.massless {
                continue;
            }
            let body = topology.bodies(cluster)[0];
            freedoms[body] = joint.freedoms;
            let split = |x: &[Real]| {
                let mut at = 0;
                let bodies = topology.bodies(cluster).iter().map(|&b| {
                    let len = self.mechanism.bodies()[b].parameter_count();
                    let mut out = [0.0; 10];
                    out[10 - len..].iter_mut().zip(&x[at..at + len]).for_each(|(o, x)| *o = x.value.into());
                    at += len;
                    (b, out)
                });
                bodies.filter(|(_, v)| v.iter().any(|&x| x != 0.0)).collect()
            };
            let basis = found.local_transfers(i).map(split).collect();
            transfers.push(JointTransfers { body, receiver: cluster.receiver, basis });
        }
        (freedoms, transfers)
    }

    /// Checks combinations and null vectors on fresh rows of the regressor, evaluated with 77 digits: every column must
    /// equal the combination of base columns that the regrouping states.
    fn check(
        &self,
        regrouping: &Regrouping,
        small_entries: SmallEntries,
        null_space: &[(String, Vec<(usize, f64)>)],
        geometry: &ExactGeometry,
        warnings: &mut Vec<Warning>,
    ) -> bool {
        let (numbers, scale) = (geometry.to::<Digits>(), self.scale(geometry));
        // Residuals of this size are due to the entries that were dropped.
        let dropped = if small_entries == SmallEntries::Dropped { scale.error } else { 0.0 };
        let seed = self.seed.wrapping_mul(0x9e37_79b9).wrapping_add(FRESH);
        let mut sampler = Sampler::new(self.mechanism, &numbers, self.experiment, seed);
        let mut row = Vec::new();
        let mut worst = 0.0f64;
        for _ in 0..FRESH {
            sampler.row(&mut row);
            let values: Vec<f64> = row.iter().map(|&x| x.into()).collect();
            worst = worst.max(missed_by_combinations(regrouping, &values, &scale.units, dropped));
            let all = values.iter().fold(SMALLEST_ROW, |a: f64, b| a.max(b.abs()));
            let vectors = null_space.iter().map(|(_, v)| missed_by_vector(v, &values, NOTHING * all));
            worst = vectors.fold(worst, f64::max);
        }
        if worst > RESIDUAL {
            warnings.push(Warning::CombinationsDiffer { difference: worst });
        }
        worst <= RESIDUAL
    }

    /// Computes the rank by sampling modulo one prime.
    pub fn sampled_rank<T: Number>(&self, geometry: &ExactGeometry) -> usize {
        let geometry = geometry.to::<T>();
        Sampler::new(self.mechanism, &geometry, self.experiment, self.seed).row_space(Pivot::First).rank()
    }

    /// Computes the row space by sampling, with values, for a known rank.
    fn sampled_space<V: Number>(&self, geometry: &ExactGeometry, rank: usize) -> Option<Echelon<Real<V>>> {
        let real = geometry.to::<Real<V>>();
        // Random numbers are short here, so that their values are exact as well. An accidental rank loss is rare and
        // detected.
        (0..4).find_map(|k| {
            let mut sampler = Sampler::new(self.mechanism, &real, self.experiment, self.seed.wrapping_add(k));
            let space = sampler.row_space(Pivot::Largest);
            (space.rank() == rank).then_some(space)
        })
    }

    /// Computes the result by exact sampling alone.
    pub fn by_sampling(&self, geometry: &ExactGeometry) -> Result<RankResult> {
        let field = geometry.to::<First>();
        let mut sampler = Sampler::new(self.mechanism, &field, self.experiment, self.seed);
        let (degree, rank) = (sampler.degree(), sampler.row_space(Pivot::First).rank());
        let second = self.sampled_rank::<Second>(geometry);
        let certificate = Certificate {
            rank_lower: rank.max(second),
            rank_upper: rank.max(second),
            exact: rank == second,
            kind: CertificateKind::Randomised,
            error_probability: Some(error_probability(rank as f64 + 2.0, degree)),
            margin: None,
            lower_by:
                "independent rows of the regressor at random configurations, modulo two primes of 61 bits"
                    .into(),
            upper_by: "null vectors that hold at fresh random configurations modulo two primes of 61 bits"
                .into(),
        };
        let velocities = self.velocities(geometry);
        let uncertain = || Error::Numeric("sampling gives no certain rank: try another seed".into());
        let (width, scale) = (self.mechanism.parameter_count(), self.scale(geometry));
        let mut result = if width <= MOST_WIDE / 2 {
            let space = self.sampled_space::<Digits>(geometry, rank).ok_or_else(uncertain)?;
            self.finish("exact", space, certificate, velocities, 0.0, &scale)
        } else {
            let space = self.sampled_space::<Double>(geometry, rank).ok_or_else(uncertain)?;
            self.finish("exact", space, certificate, velocities, 0.0, &scale)
        };
        let mut warnings = Vec::new();
        result.certificate.exact &=
            self.check(&result.regrouping, result.small_entries, &[], geometry, &mut warnings);
        result.warnings.extend(warnings);
        Ok(result)
    }
}

/// Returns the residual of the combinations on a row, relative to the terms of each column. Residuals up to `dropped`,
/// relative to the largest term in `units`, count as zero.
fn missed_by_combinations(regrouping: &Regrouping, row: &[f64], units: &[f64], dropped: f64) -> f64 {
    if !regrouping.is_listed() {
        return 0.0;
    }
    let mut left = row.to_vec();
    let mut size: Vec<f64> = row.iter().map(|x| x.abs()).collect();
    for (&own, combination) in regrouping.base.iter().zip(&regrouping.combinations) {
        for &(column, x) in combination {
            left[column] -= x * row[own];
            size[column] += (x * row[own]).abs();
        }
    }
    let all = size.iter().fold(SMALLEST_ROW, |a: f64, &b| a.max(b));
    let scaled = size.iter().zip(units).fold(0.0, |a: f64, (s, u)| a.max(s * u));
    // Ignore columns that contain only rounding errors of this arithmetic.
    let counts = |((l, s), u): ((&f64, &f64), &f64)| {
        let is_zero = *s <= NOTHING * all || l.abs() * u <= dropped * scaled;
        if is_zero { 0.0 } else { l.abs() / s }
    };
    left.iter().zip(&size).zip(units).map(counts).fold(0.0, f64::max)
}

/// Returns the residual of a null vector on a row, relative to its terms; terms up to `nothing` count as zero.
fn missed_by_vector(vector: &[(usize, f64)], row: &[f64], nothing: f64) -> f64 {
    let (mut sum, mut size) = (0.0, 0.0);
    for &(column, x) in vector {
        sum += x * row[column];
        size += (x * row[column]).abs();
    }
    if size > nothing { sum.abs() / size } else { 0.0 }
}
