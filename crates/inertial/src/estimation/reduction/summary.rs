//! Summary of a log: triangular factors of all channels, with counts.

use rayon::prelude::{IntoParallelIterator, ParallelIterator};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::estimation::equations::{Channel, Equations};
use crate::estimation::joint_model::expression::FormulaState;
use crate::estimation::reduction::blocks::{self, BlockPlan, Gram};
use crate::estimation::reduction::factor::{Factor, Lag};
use crate::estimation::reduction::measurements::Measurements;
use crate::estimation::reduction::rows::BLOCK;
use crate::linalg::Triangle;
use crate::{Error, Result};

const SCHEMA: &str = "inertial/summary/1";

/// The triangular factor of `[Y | terms | τ | τ_raw]` for each measured coordinate, and counts.
///
/// It is all that estimators and residuals need: `‖Y x − τ‖²` follows for any `x`, for filtered and raw forces, and
/// weights per coordinate can be chosen afterwards. Summaries of parts merge into that of the whole.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "Stored", into = "Stored")]
pub struct Summary {
    names: Vec<String>,
    fingerprint: u64,
    /// Number of samples, whichever forces count.
    pub samples: usize,
    pub(crate) factors: Vec<Factor>,
}

impl Summary {
    /// Samples whose factor one thread builds, at most.
    pub const PART: usize = 8192;

    /// Creates an empty summary.
    pub fn empty(equations: &Equations<'_>) -> Self {
        let factor = |c: &Channel| Factor::new(c.unknowns.len() + 2);
        Self {
            names: equations.names.clone(),
            fingerprint: fingerprint(equations),
            samples: 0,
            factors: equations.channels.iter().map(factor).collect(),
        }
    }

    /// Reduces measurements to a summary, in one pass. The result is the same for any number of threads.
    pub fn new(equations: &Equations<'_>, data: &Measurements<'_>) -> Result<Self> {
        data.check(equations)?;
        let [before, after] = data.beyond;
        let count = data.len() - before - after;
        // Whatever the number of threads, so that the result does not depend on it: a short log has a few parts too, each much
        // longer than what the filter reaches beyond it.
        let least = (8 * data.reach()).clamp(1024, Self::PART);
        let size = (count / 8).clamp(least, Self::PART).next_multiple_of(BLOCK);
        let mut data = *data;
        // Blocks are counted from the first row's centre.
        let plan = data.blocks.unwrap_or_else(|| BlockPlan::of_log(count));
        data.blocks = Some(plan.that_fits(equations.channels.iter().map(|c| c.unknowns.len() + 1)));
        let part = |k: usize| Self::of_part(equations, &data, before + k * size, size.min(count - k * size));
        // One part needs no other threads.
        let parts: Vec<Self> = if count <= size {
            (0..count.div_ceil(size)).map(part).collect::<Result<_>>()?
        } else {
            (0..count.div_ceil(size)).into_par_iter().map(part).collect::<Result<_>>()?
        };
        let mut out = Self::empty(equations);
        for part in &parts {
            out.continue_with(part)?;
        }
        match out.factors.iter().position(|f| !f.triangle.is_finite()) {
            None => Ok(out),
            Some(v) => {
                let name = &equations.row_names()[v];
                Err(Error::NotFinite(format!("the measurements of {name} are not finite")))
            }
        }
    }

    fn of_part(
        equations: &Equations<'_>,
        data: &Measurements<'_>,
        first: usize,
        count: usize,
    ) -> Result<Self> {
        let mut out = Self::empty(equations);
        out.samples = count;
        data.reduce(equations, first, count, &mut out.factors)?;
        for factor in &mut out.factors {
            factor.independent = data.independent_rows() * factor.count as f64;
        }
        Ok(out)
    }

    /// Merges a summary of other logs, for the same equations.
    pub fn merge(&mut self, other: &Self) -> Result<()> {
        let own = self.blocks();
        self.add(other, own)?;
        self.factors.iter_mut().for_each(|factor| blocks::join(&mut factor.blocks));
        Ok(())
    }

    /// Adds the summary of a later part of the same log, made with the same [`BlockPlan`].
    pub fn continue_with(&mut self, other: &Self) -> Result<()> {
        self.add(other, 0)
    }

    /// Adds another summary, whose blocks come after so many of those here.
    fn add(&mut self, other: &Self, first_block: usize) -> Result<()> {
        if self.names != other.names || self.fingerprint != other.fingerprint {
            return Err(Error::SummaryMismatch(
                "two summaries of different models or joint terms cannot be merged".into(),
            ));
        }
        if self.samples == 0 {
            // Not by orthogonal maps: the summary of one log is that log's, bit for bit.
            *self = other.clone();
            return Ok(());
        }
        self.samples += other.samples;
        for (own, other) in self.factors.iter_mut().zip(&other.factors) {
            own.triangle.merge(&other.triangle)?;
            own.count += other.count;
            own.independent += other.independent;
            for (own, other) in own.lags.iter_mut().zip(&other.lags) {
                own.triangle.merge(&other.triangle)?;
                own.pairs += other.pairs;
                own.independent += other.independent;
                own.expected += other.expected;
            }
            own.clipped += other.clipped;
            own.left_out.merge(&other.left_out);
            if !other.blocks.is_empty() {
                let most = own.blocks.len().max(first_block + other.blocks.len());
                own.blocks.resize(most, Gram::default());
                own.blocks[first_block..]
                    .iter_mut()
                    .zip(&other.blocks)
                    .for_each(|(own, other)| own.merge(other));
            }
        }
        Ok(())
    }

    /// Drops the factors of differences, which only the whiteness of residuals needs: a fifth of the size is left. Estimates and
    /// residuals stay the same.
    #[must_use]
    pub fn without_differences(mut self) -> Self {
        for factor in &mut self.factors {
            factor.lags = Factor::new(factor.triangle.width()).lags;
        }
        self
    }

    /// Drops the blocks: standard errors then take noise as independent.
    #[must_use]
    pub fn without_blocks(mut self) -> Self {
        self.factors.iter_mut().for_each(|factor| factor.blocks.clear());
        self
    }

    /// Returns the summary with the opposite sign of all forces.
    pub(crate) fn with_forces_reversed(&self) -> Result<Self> {
        let mut out = self.clone();
        for factor in &mut out.factors {
            let (width, n) = (factor.triangle.width(), factor.unknowns());
            let differences = factor.lags.iter_mut().map(|lag| &mut lag.triangle);
            for triangle in std::iter::once(&mut factor.triangle).chain(differences) {
                let mut upper = triangle.upper();
                // The last two columns; row i begins at its diagonal.
                let mut start = 0;
                for i in 0..width {
                    (n.max(i)..width).for_each(|j| upper[start + j - i] *= -1.0);
                    start += width - i;
                }
                *triangle = Triangle::from_upper(width, &upper)?;
            }
            factor.blocks.iter_mut().for_each(|block| block.reverse_force(n + 1));
            factor.left_out.reverse_force(n + 1);
        }
        Ok(out)
    }

    /// Refuses a summary that was made for other equations.
    pub fn check(&self, equations: &Equations<'_>) -> Result<()> {
        let fits = self.names == equations.names
            && self.fingerprint == fingerprint(equations)
            && self.factors.len() == equations.channels.len()
            && self.factors.iter().zip(&equations.channels).all(|(f, c)| f.unknowns() == c.unknowns.len());
        if fits {
            Ok(())
        } else {
            Err(Error::SummaryMismatch("the summary was made for another model or other joint terms: give the model and the options of the call that made it".into()))
        }
    }
}

/// FNV-1a of what the columns depend on beside their names: geometry and gravity.
fn fingerprint(equations: &Equations<'_>) -> u64 {
    let mechanism = equations.mechanism();
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut add = |x: f64| {
        // Both zeros are one number.
        for byte in (x + 0.0).to_bits().to_le_bytes() {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    };
    mechanism.gravity().iter().for_each(|&x| add(x));
    for body in mechanism.bodies() {
        body.placement.rotation.iter().chain(body.placement.translation.iter()).for_each(|&x| add(x));
        for mode in body.joint_type.free_modes().iter() {
            mode.angular.iter().chain(mode.linear.iter()).for_each(|&x| add(x));
        }
        add(body.drive.ratio);
        add(body.drive.offset);
    }
    for motor in equations.motors() {
        motor.shaft.iter().for_each(|&(v, factor)| {
            add(v as f64);
            add(factor);
        });
        motor.bend.iter().for_each(|bend| {
            add(bend.speed);
            add(bend.exponent);
        });
    }
    // Formulas are the same where they agree at a few states.
    for given in &equations.joint_model().given {
        for k in 1..4 {
            let state = |n: usize| (0..n).map(|i| f64::from(k) * 0.37 + 0.11 * i as f64).collect::<Vec<_>>();
            let (q, v) = (state(mechanism.nq()), state(mechanism.nv()));
            let columns = state(equations.joint_model().columns.len());
            add(given
                .expression
                .value(&FormulaState { q: &q, v: &v, a: &v, columns: &columns }, &mut Vec::new()));
        }
    }
    hash
}

/// Representation in files.
#[derive(Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Summary")]
pub(crate) struct Stored {
    /// Schema of the object.
    #[schemars(extend("const" = SCHEMA))]
    schema: String,
    /// Digest of the model and the joint terms, in hexadecimal digits.
    fingerprint: String,
    /// Names of the unknowns.
    unknowns: Vec<String>,
    /// Number of samples.
    samples: usize,
    /// Factors, one for each measured coordinate.
    pub channels: Vec<StoredFactor>,
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Factor")]
pub(crate) struct StoredFactor {
    /// Number of rows.
    count: usize,
    /// Number of independent rows.
    independent: f64,
    /// Number of columns: those of the unknowns, the force, and the unfiltered force.
    width: usize,
    /// The factor on and above its diagonal, row after row.
    upper: Vec<f64>,
    /// Factors of differences; absent in old files.
    #[serde(default)]
    lags: Vec<StoredLag>,
    /// Sums of products of the columns (force included) of each block; absent in old files.
    #[serde(default)]
    pub blocks: Vec<StoredBlock>,
    /// Sums of rows that do not count, with the force as measured; absent in old files.
    #[serde(default)]
    pub left_out: Option<StoredBlock>,
    /// Values of the unknowns at which compact blocks are exact; empty where blocks are complete.
    #[serde(default)]
    pub reference: Vec<f64>,
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Block")]
pub(crate) struct StoredBlock {
    /// Number of rows.
    pub rows: usize,
    /// Sums of products on and above the diagonal, row after row; empty where the block is compact.
    pub upper: Vec<f64>,
    /// Of a compact block: products of the unknowns' columns with the residual at the reference, then the squared residual.
    #[serde(default)]
    pub score: Vec<f32>,
}

impl From<Gram> for StoredBlock {
    fn from(block: Gram) -> Self {
        Self { rows: block.rows, upper: block.upper, score: Vec::new() }
    }
}

/// Sums of products of all rows of a channel, from which compact blocks are completed: each is taken to have its share of them, and
/// its own residual at the reference.
struct Expected<'r> {
    /// Sums of the unknowns' columns.
    gram: Gram,
    count: usize,
    reference: &'r [f64],
    /// Products of the columns with what the reference predicts.
    predicted: Vec<f64>,
}

impl<'r> Expected<'r> {
    fn new(triangle: &Triangle, count: usize, reference: &'r [f64]) -> Result<Option<Self>, String> {
        let n = triangle.width() - 2;
        if reference.is_empty() {
            return Ok(None);
        }
        if reference.len() != n || !reference.iter().all(|x| x.is_finite()) {
            return Err("the reference does not fit its channel".to_owned());
        }
        let mut gram = Gram::default();
        gram.add_factor(triangle, count, n);
        let predicted =
            (0..n).map(|i| reference.iter().enumerate().map(|(j, x)| x * gram.at(i, j, n)).sum()).collect();
        Ok(Some(Self { gram, count, reference, predicted }))
    }

    fn block(&self, stored: &StoredBlock) -> Gram {
        let n = self.reference.len();
        let share = stored.rows as f64 / self.count.max(1) as f64;
        let mut upper = Vec::with_capacity((n + 1) * (n + 2) / 2);
        let mut entries = self.gram.upper.iter();
        // Squared force: ‖τ‖² = ‖τ − Y x‖² + 2 xᵀYᵀ(τ − Y x) + ‖Y x‖².
        let mut square = stored.score.get(n).map_or(f64::NAN, |&x| f64::from(x));
        for (i, (x, predicted)) in self.reference.iter().zip(&self.predicted).enumerate() {
            upper.extend(entries.by_ref().take(n - i).map(|entry| share * entry));
            let score = stored.score.get(i).map_or(f64::NAN, |&x| f64::from(x));
            upper.push(share * predicted + score);
            square += x * (2.0 * score + share * predicted);
        }
        upper.push(square);
        Gram { rows: stored.rows, upper }
    }
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Lag")]
struct StoredLag {
    /// The factor on and above its diagonal, row after row.
    upper: Vec<f64>,
    /// Number of pairs of rows.
    pairs: usize,
    /// Number of independent pairs.
    independent: f64,
    /// Sum of the expected squared differences of white noise.
    expected: f64,
}

impl From<Summary> for Stored {
    fn from(summary: Summary) -> Self {
        let channel = |f: Factor| StoredFactor {
            count: f.count,
            independent: f.independent,
            width: f.triangle.width(),
            upper: f.triangle.upper(),
            lags: f
                .lags
                .iter()
                .take_while(|lag| lag.pairs > 0)
                .map(|lag| StoredLag {
                    upper: lag.triangle.upper(),
                    pairs: lag.pairs,
                    independent: lag.independent,
                    expected: lag.expected,
                })
                .collect(),
            blocks: f.blocks.into_iter().map(|b| StoredBlock::from(b)).collect(),
            left_out: (f.left_out.rows > 0).then(|| StoredBlock::from(f.left_out)),
            reference: Vec::new(),
        };
        Self {
            schema: SCHEMA.into(),
            fingerprint: format!("{:016x}", summary.fingerprint),
            unknowns: summary.names,
            samples: summary.samples,
            channels: summary.factors.into_iter().map(channel).collect(),
        }
    }
}

impl TryFrom<Stored> for Summary {
    type Error = String;

    fn try_from(stored: Stored) -> Result<Self, String> {
        if stored.schema != SCHEMA {
            return Err(format!("the schema is \"{}\", expected \"{SCHEMA}\"", stored.schema));
        }
        let factor = |c: StoredFactor| {
            if c.width < 2 || !(c.independent >= 0.0 && c.independent <= c.count as f64) {
                return Err("the counts of a channel are impossible".to_owned());
            }
            let triangle = Triangle::from_upper(c.width, &c.upper).map_err(|e| e.to_string())?;
            let mut out = Factor::new(c.width);
            for (own, stored) in out.lags.iter_mut().zip(c.lags) {
                if !(stored.independent >= 0.0 && stored.expected.is_finite()) {
                    return Err("the counts of a channel are impossible".to_owned());
                }
                *own = Lag {
                    triangle: Triangle::from_upper(c.width, &stored.upper).map_err(|e| e.to_string())?,
                    pairs: stored.pairs,
                    independent: stored.independent,
                    expected: stored.expected,
                };
            }
            if !(triangle.is_finite() && out.lags.iter().all(|lag| lag.triangle.is_finite())) {
                return Err("a factor is not finite".to_owned());
            }
            let entries = c.width * (c.width - 1) / 2;
            let all = Expected::new(&triangle, c.count, &c.reference)?;
            let block = |b: StoredBlock| {
                let out = match &all {
                    Some(all) if b.rows > 0 => all.block(&b),
                    _ => Gram { rows: b.rows, upper: b.upper },
                };
                let fits = out.upper.len() == if b.rows > 0 { entries } else { 0 };
                if fits && out.upper.iter().all(|x| x.is_finite()) {
                    Ok(out)
                } else {
                    Err("a block does not fit its channel".to_owned())
                }
            };
            let blocks = c.blocks.into_iter().map(block).collect::<Result<_, _>>()?;
            let left_out = c.left_out.map(block).transpose()?.unwrap_or_default();
            Ok(Factor { triangle, count: c.count, independent: c.independent, blocks, left_out, ..out })
        };
        Ok(Self {
            names: stored.unknowns,
            fingerprint: u64::from_str_radix(&stored.fingerprint, 16)
                .map_err(|_| "the fingerprint is no hexadecimal number".to_owned())?,
            samples: stored.samples,
            factors: stored.channels.into_iter().map(factor).collect::<Result<_, _>>()?,
        })
    }
}
