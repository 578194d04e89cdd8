//! Certificates of the rank: the rank is certain if two independent methods give the same value.

use super::base_parameters::{Dependence, EntryScale, PrintedNumber, Regrouping, SmallEntries};
use super::experiment::Experiment;
use super::rpna::{BodySpan, Regime, Rpna};
use super::sampling::Sampler;
use super::topology::Topology;
use super::warning::Warning;
use crate::Result;
use crate::linalg::{Echelon, First, Gap, Number, Pivot, Shadow, Svd, singular_values};
use crate::mechanism::{ExactGeometry, Mechanism};

/// Exact number (modulo a prime) paired with its floating-point value.
pub type Real = Shadow<2_305_843_009_213_692_601>;

/// Singular values of the sampled regressor (with unit columns) below this, relative to the largest, count as zero.
/// Rounding errors are slightly above 1e-15.
const NUMERIC_TOLERANCE: f64 = 1e-12;

/// Multiple of the rounding error of the file up to which a singular value may be due to it.
const LOST: f64 = 30.0;

/// Minimum ratio of the singular values before and after a rank that rounding errors hide.
const STEP: f64 = 100.0;

/// Largest number of parameters for which singular values are compared.
const MOST_COMPARED: usize = 600;

/// Relations that rounding destroyed.
#[derive(Debug, Clone, Copy)]
pub(super) enum LostRelations {
    /// Relations with which the regressor has this rank in double precision.
    WithRank(usize),
    /// Relations of a file that is too coarse to give the rank.
    Unclear,
}

/// Type of evidence for a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CertificateKind {
    /// Deterministic proof.
    Proved,
    /// Exact computation at random points, wrong with a stated probability.
    Randomised,
    /// Computation with limited precision, with a margin.
    Numeric,
}

/// Bounds of the rank and the methods that prove them.
#[derive(Debug, Clone, PartialEq, serde::Serialize, schemars::JsonSchema)]
#[non_exhaustive]
pub struct Certificate {
    /// Lower bound of the number of identifiable combinations.
    pub rank_lower: usize,
    /// Upper bound of the number of identifiable combinations.
    pub rank_upper: usize,
    /// Whether the bounds agree, both are proved or randomised, and the combinations are those of the proved row space.
    pub exact: bool,
    /// Type of evidence.
    pub kind: CertificateKind,
    /// Upper bound of the probability that the result is wrong; null for numeric results.
    pub error_probability: Option<f64>,
    /// Ratio of the smallest kept pivot to the largest dropped one, if the rank was decided with limited precision.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub margin: Option<f64>,
    /// Method that proves the lower bound.
    pub lower_by: String,
    /// Method that proves the upper bound.
    pub upper_by: String,
}

impl Certificate {
    /// Makes the result numeric, because a pivot of the combinations may be a rounding error of the file.
    pub(super) fn withdraw(&mut self) {
        self.make_numeric("a coefficient may be a rounding error of the file");
    }

    /// Makes the result numeric, with the reason.
    pub(super) fn make_numeric(&mut self, why: &str) {
        self.exact = false;
        self.kind = CertificateKind::Numeric;
        self.error_probability = None;
        self.upper_by += "; no proof: ";
        self.upper_by += why;
    }
}

/// Result of one method.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RankResult {
    /// Name of the method.
    pub method: &'static str,
    /// Base parameters with their combinations.
    pub regrouping: Regrouping,
    /// Treatment of coefficients that are as small as rounding errors of the file.
    pub(super) small_entries: SmallEntries,
    /// Bounds of the rank.
    pub certificate: Certificate,
    /// Spans of each body: dim `V`, dim `K` and the parameters that appear in no combination.
    pub spans: Vec<BodySpan>,
    /// Number of transfers of each body (transfers that involve the rotors of a joint are counted at its first body).
    pub freedoms: Vec<usize>,
    /// Null vectors by column, each with its reason, if the method finds them individually.
    pub null_space: Vec<(String, Vec<(usize, f64)>)>,
    /// Transfers for each joint of the recursion: its first body, the receiving body and the transfers across it.
    pub transfers: Vec<JointTransfers>,
    /// Warnings.
    pub warnings: Vec<Warning>,
}

/// Transfers across one joint that change no measurement.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct JointTransfers {
    /// Index of the body that the joint moves.
    pub body: usize,
    /// Index of the body that loses the parameters that the bodies of the joint gain; `None` is the ground.
    pub receiver: Option<usize>,
    /// Basis vectors: bodies of the joint with the change of their ten parameters.
    pub basis: Vec<Vec<(usize, [f64; 10])>>,
}

/// Problem to be analysed, except for the geometry.
#[derive(Debug, Clone)]
pub struct RankProblem<'a> {
    /// Mechanism to be analysed.
    pub mechanism: &'a Mechanism,
    /// Experiment to be analysed.
    pub experiment: &'a Experiment,
    /// Order in which columns are preferred as base parameters.
    pub order: Vec<usize>,
    /// Seed of random configurations.
    pub seed: u64,
    /// Whether every digit of the geometry is significant, so that no small number counts as a rounding error.
    pub literal: bool,
}

impl RankProblem<'_> {
    /// Computes the result from singular values alone, with their margin.
    pub fn by_singular_values(&self, geometry: &ExactGeometry) -> Result<RankResult> {
        let (matrix, norms) = self.numeric_rows(geometry);
        let svd = Svd::new(&matrix)?;
        let rank = svd.rank(NUMERIC_TOLERANCE);
        // Convert back to columns and lengths in the units of the file.
        let length = unit(geometry);
        let basis = svd.null_space(rank.rank);
        let mut null = Echelon::new(matrix.ncols(), Pivot::Largest);
        for column in basis.column_iter() {
            let mut vector: Vec<f64> = column.iter().zip(&norms).map(|(x, n)| x / n).collect();
            self.rescale(&mut vector, length.recip());
            null.insert(&vector);
        }
        let mut rows = Echelon::new(matrix.ncols(), Pivot::Largest);
        for vector in null.null_space() {
            rows.insert(&vector);
        }
        let by = format!(
            "singular values of the regressor at random configurations: last kept {:.1e}, first dropped {:.1e}",
            rank.kept, rank.dropped
        );
        let certificate = Certificate {
            rank_lower: rank.rank,
            rank_upper: rank.rank,
            exact: false,
            kind: CertificateKind::Numeric,
            error_probability: None,
            margin: Some(rank.kept / rank.dropped.max(f64::MIN_POSITIVE)),
            lower_by: by.clone(),
            upper_by: by,
        };
        let scale = self.scale(geometry);
        Ok(self.finish("numeric", rows, certificate, self.velocities(geometry), f64::TOLERANCE, &scale))
    }

    pub(super) fn velocities(&self, geometry: &ExactGeometry) -> Vec<usize> {
        let field = geometry.to::<First>();
        Sampler::new(self.mechanism, &field, self.experiment, self.seed).velocity_dimensions()
    }

    /// Computes spans, transfers and base parameters from a row space; entries up to `tolerance` of its reduced form
    /// count as zero.
    pub(super) fn finish<T: PrintedNumber>(
        &self,
        method: &'static str,
        mut space: Echelon<T>,
        certificate: Certificate,
        velocities: Vec<usize>,
        tolerance: f64,
        scale: &EntryScale,
    ) -> RankResult {
        let bodies = self.mechanism.bodies().len();
        let mut spans = vec![BodySpan::default(); bodies];
        for block in self.mechanism.parameter_blocks() {
            let mut span = Echelon::new(block.len, Pivot::Largest);
            for row in space.rows() {
                let own = &row[block.offset..block.offset + block.len];
                if own.iter().any(|x| x.weight() > tolerance) {
                    span.insert(own);
                }
            }
            spans[block.body].identifiable = span.rank();
        }
        let dependence = self.dependence(&mut space, tolerance, scale);
        let (mut certificate, small_entries) = (certificate, dependence.small_entries);
        if small_entries == SmallEntries::Doubtful {
            certificate.withdraw();
        }
        // Null vectors of several joints count at the last body that they involve.
        let mut freedoms = vec![0; bodies];
        let base = if self.experiment.shows_only_ratios() {
            let mut space = space.clone();
            self.add_total_mass(&mut space);
            self.dependence(&mut space, tolerance, scale).base()
        } else {
            dependence.base()
        };
        for block in self.mechanism.parameter_blocks() {
            let before = |column: usize| base.partition_point(|&c| c < column);
            freedoms[block.body] = block.len - (before(block.offset + block.len) - before(block.offset));
        }
        for ((span, v), body) in spans.iter_mut().zip(velocities).zip(self.mechanism.bodies()) {
            span.velocity = if body.parameter_count() == 1 { v.min(1) } else { v };
        }
        let regrouping = dependence.regrouping(|| {
            (0..space.width()).map(|c| space.rows().all(|r| r[c].weight() <= tolerance)).collect()
        });
        RankResult {
            null_space: Vec::new(),
            method,
            regrouping,
            small_entries,
            certificate,
            spans,
            freedoms,
            transfers: Vec::new(),
            warnings: Vec::new(),
        }
    }

    /// Adds the total mass to a row space. A common scale of all parameters changes it; transfers across joints do not.
    fn add_total_mass<T: PrintedNumber>(&self, space: &mut Echelon<T>) {
        let mut row = vec![T::zero(); space.width()];
        for block in self.mechanism.parameter_blocks().iter().filter(|block| block.len == 10) {
            row[block.offset] = T::one();
        }
        space.insert(&row);
    }

    /// Returns the columns that depend on earlier columns; entries up to `tolerance` of the reduced form of a row space
    /// count as zero.
    pub(super) fn dependence<T: PrintedNumber>(
        &self,
        space: &mut Echelon<T>,
        tolerance: f64,
        scale: &EntryScale,
    ) -> Dependence<T> {
        let null = space.null_space();
        let dependence = |tolerance: f64| {
            let entries =
                |x: &Vec<T>| x.iter().copied().enumerate().filter(|(_, x)| x.weight() > tolerance).collect();
            let vectors: Vec<Vec<(usize, T)>> = null.iter().map(entries).collect();
            self.dependence_of(&vectors, tolerance, scale)
        };
        let found = dependence(tolerance);
        // If all entries of a null vector are below the tolerance, keep the small entries as well.
        if tolerance > T::TOLERANCE && found.base().len() != space.rank() {
            return dependence(T::TOLERANCE);
        }
        found
    }

    /// Returns the echelon form of sparse null vectors.
    pub(super) fn dependence_of<T: PrintedNumber>(
        &self,
        null_vectors: &[Vec<(usize, T)>],
        tolerance: f64,
        scale: &EntryScale,
    ) -> Dependence<T> {
        if self.literal {
            return Dependence::new(self.order.clone(), null_vectors.iter().cloned(), tolerance);
        }
        Dependence::of_rounded(self.order.clone(), null_vectors, tolerance, scale)
    }

    /// Returns the scale of masses, first moments and inertias.
    pub(super) fn scale(&self, geometry: &ExactGeometry) -> EntryScale {
        let mut units = vec![1.0; self.mechanism.parameter_count()];
        self.rescale(&mut units, unit(geometry).recip());
        EntryScale::of_doubles(units)
    }

    /// Returns the largest rounding error of the numbers of the file (rad, or relative to the size of the robot), if it is known.
    fn rounding(&self, geometry: &ExactGeometry) -> Option<f64> {
        let known = self.mechanism.bodies().iter().filter_map(|b| b.rounding);
        known.map(|r| r.angle.max(r.length * unit(geometry))).reduce(f64::max)
    }

    /// Returns rows of the regressor in floating point, with lengths in units of the size of the robot and columns
    /// scaled to unit length, and the original lengths of the columns.
    fn numeric_rows(&self, geometry: &ExactGeometry) -> (nalgebra::DMatrix<f64>, Vec<f64>) {
        let scaled = geometry.to::<f64>().scaled(unit(geometry));
        let width = self.mechanism.parameter_count();
        // More rows than columns, so that the smallest singular values are not small by accident.
        let rows = width + 30;
        let mut matrix = nalgebra::DMatrix::zeros(rows, width);
        let mut sampler = Sampler::new(self.mechanism, &scaled, self.experiment, self.seed);
        let mut row = Vec::new();
        for mut target in matrix.row_iter_mut() {
            sampler.row(&mut row);
            target.copy_from_slice(&row);
        }
        let mut norms = Vec::with_capacity(width);
        for mut column in matrix.column_iter_mut() {
            let norm = column.norm();
            // A column that contains only rounding errors counts as zero.
            let clear = norm > NUMERIC_TOLERANCE;
            column.scale_mut(if clear { norm.recip() } else { 0.0 });
            norms.push(if clear { norm } else { 1.0 });
        }
        (matrix, norms)
    }

    /// Computes the rank, with its margin, from singular values of the regressor at random configurations.
    pub fn numeric_rank(&self, geometry: &ExactGeometry) -> Result<crate::linalg::Rank> {
        Ok(Svd::new(&self.numeric_rows(geometry).0)?.rank(NUMERIC_TOLERANCE))
    }

    /// Compares the singular values of the regressor with the rounding error of the file: the rank counts relations that rounding
    /// destroyed, for example between the fingers of a gripper. Returns `None` if it does not.
    pub(super) fn lost_relations(
        &self,
        geometry: &ExactGeometry,
        rank: usize,
    ) -> Result<Option<LostRelations>> {
        if self.literal || self.mechanism.parameter_count() > MOST_COMPARED {
            return Ok(None);
        }
        let noise = LOST * self.rounding(geometry).unwrap_or(0.0).max(f64::EPSILON);
        let values = singular_values(&self.numeric_rows(geometry).0)?;
        let Some(smallest) = values.get(rank.wrapping_sub(1)).filter(|x| **x <= noise * values[0]) else {
            return Ok(None);
        };
        let clear = values[..rank].iter().position(|x| *x <= noise * values[0]).filter(|&k| {
            let above = k.checked_sub(1).map_or(0.0, |k| values[k]);
            above >= STEP * values[k] && *smallest > 0.0
        });
        let is_negligible = |x: f64| x <= NUMERIC_TOLERANCE * values[0];
        let lost = |k: usize| {
            let is_visible = is_negligible(values[k]) && !is_negligible(values[k - 1]);
            if is_visible { LostRelations::WithRank(k) } else { LostRelations::Unclear }
        };
        Ok(clear.map(lost))
    }

    /// Converts parameters to another unit of length: first moments scale with the unit, inertias with its square.
    fn rescale(&self, parameters: &mut [f64], factor: f64) {
        for block in self.mechanism.parameter_blocks() {
            for (k, x) in parameters[block.offset..block.offset + block.len].iter_mut().enumerate() {
                *x *= match 10 - block.len + k {
                    0 => 1.0,
                    1..=3 => factor,
                    _ => factor * factor,
                };
            }
        }
    }
}

/// Computes the nullity by the recursion in floating point, with lengths in units of the size of the robot, and the gap
/// of its rank decisions.
pub fn numeric_recursion(geometry: &ExactGeometry, topology: &Topology, regime: Regime) -> (usize, Gap) {
    let found = Rpna::new(&geometry.to::<f64>().scaled(unit(geometry)), topology, regime);
    (found.nullity(topology), found.gap)
}

/// Returns the power of two that scales lengths to about one without rounding them.
fn unit(geometry: &ExactGeometry) -> f64 {
    (-geometry.size().log2().round()).exp2()
}
