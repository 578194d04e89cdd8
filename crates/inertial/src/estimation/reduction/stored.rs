//! Storage of summaries in files, with a checksum: a damaged or edited file is rejected.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::estimation::reduction::blocks::Gram;
use crate::estimation::reduction::digest::Fnv;
use crate::estimation::reduction::factor::{Factor, Lag};
use crate::estimation::reduction::source::LogSource;
use crate::estimation::reduction::summary::{MOST_SAMPLES, Summary};
use crate::linalg::Triangle;

const SCHEMA: &str = "inertial/summary/3";

/// Stored representation of a summary.
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
    /// Source logs of the samples, as far as they are known.
    logs: Vec<LogSource>,
    /// Digest of all other fields, in hexadecimal digits.
    checksum: String,
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
    /// Factor on and above its diagonal, row after row.
    upper: Vec<f64>,
    /// Differences of neighbouring rows, for the whiteness of the residuals.
    #[serde(default)]
    lags: Vec<StoredLag>,
    /// Sums of products of the columns (force included) of each block.
    #[serde(default)]
    pub blocks: Vec<StoredBlock>,
    /// Sums of rows that are not used, with the unfiltered force; absent if all rows are used.
    #[serde(default)]
    pub left_out: Option<StoredBlock>,
    /// Values of the unknowns at which compact blocks are exact; empty if blocks are complete.
    #[serde(default)]
    pub reference: Vec<f64>,
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Block")]
pub(crate) struct StoredBlock {
    /// Number of rows.
    pub rows: usize,
    /// Sums of products on and above the diagonal, row after row; empty if the block is compact.
    pub upper: Vec<f64>,
    /// Score of a compact block: products of the columns of the unknowns with the residual at the reference, then the squared
    /// residual.
    #[serde(default)]
    pub score: Vec<f32>,
}

impl From<Gram> for StoredBlock {
    fn from(block: Gram) -> Self {
        Self { rows: block.rows, upper: block.upper, score: Vec::new() }
    }
}

/// Sums of products of all rows of a channel, from which compact blocks are completed: each block is assumed to have its share of
/// them, and its own residual at the reference.
struct Expected<'r> {
    /// Sums of the columns of the unknowns.
    gram: Gram,
    count: usize,
    reference: &'r [f64],
    /// Products of the columns with the prediction at the reference.
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
    /// Sums of products of the differences, on and above the diagonal, row after row.
    upper: Vec<f64>,
    /// Number of pairs of rows.
    pairs: usize,
    /// Number of independent pairs.
    independent: f64,
    /// Sum of the expected squared differences of white noise.
    expected: f64,
}

impl Stored {
    /// Sets the checksum of the content.
    pub fn set_checksum(&mut self) {
        self.checksum = self.digest();
    }

    /// Computes the digest of all fields except for the checksum.
    fn digest(&self) -> String {
        let mut hash = Fnv::default();
        hash.text(&self.schema);
        hash.text(&self.fingerprint);
        hash.whole(self.unknowns.len());
        self.unknowns.iter().for_each(|name| hash.text(name));
        hash.whole(self.samples);
        hash.whole(self.channels.len());
        self.channels.iter().for_each(|channel| channel.add_to(&mut hash));
        hash.whole(self.logs.len());
        for log in &self.logs {
            hash.text(&log.name);
            hash.text(&log.preparation);
            hash.whole(log.rows);
            hash.whole(log.row_digests.len());
            log.row_digests.iter().for_each(|&digest| hash.bits(digest));
        }
        format!("{:016x}", hash.value())
    }
}

impl StoredFactor {
    fn add_to(&self, hash: &mut Fnv) {
        let Self { count, independent, width, upper, lags, blocks, left_out, reference } = self;
        hash.whole(*count);
        hash.number(*independent);
        hash.whole(*width);
        hash.numbers(upper);
        hash.whole(lags.len());
        for StoredLag { upper, pairs, independent, expected } in lags {
            hash.numbers(upper);
            hash.whole(*pairs);
            hash.number(*independent);
            hash.number(*expected);
        }
        hash.whole(blocks.len());
        for StoredBlock { rows, upper, score } in blocks.iter().chain(left_out) {
            hash.whole(*rows);
            hash.numbers(upper);
            hash.whole(score.len());
            score.iter().for_each(|&x| hash.number(f64::from(x)));
        }
        hash.numbers(reference);
    }
}

impl Serialize for Summary {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Stored::from(self.clone()).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Summary {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Stored::deserialize(deserializer)?.try_into().map_err(de::Error::custom)
    }
}

impl JsonSchema for Summary {
    fn schema_name() -> Cow<'static, str> {
        Stored::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        Stored::json_schema(generator)
    }
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
                .take_while(|lag| lag.gram.rows > 0)
                .map(|lag| StoredLag {
                    upper: lag.gram.upper.clone(),
                    pairs: lag.gram.rows,
                    independent: lag.independent,
                    expected: lag.expected,
                })
                .collect(),
            blocks: f.blocks.into_iter().map(StoredBlock::from).collect(),
            left_out: (f.left_out.rows > 0).then(|| StoredBlock::from(f.left_out)),
            reference: Vec::new(),
        };
        let mut out = Self {
            schema: SCHEMA.into(),
            fingerprint: format!("{:016x}", summary.fingerprint),
            unknowns: summary.names,
            samples: summary.samples,
            channels: summary.factors.into_iter().map(channel).collect(),
            logs: summary.sources,
            checksum: String::new(),
        };
        out.set_checksum();
        out
    }
}

impl TryFrom<Stored> for Summary {
    type Error = String;

    fn try_from(stored: Stored) -> Result<Self, String> {
        if stored.schema != SCHEMA {
            return Err(format!("the schema is \"{}\", expected \"{SCHEMA}\"", stored.schema));
        }
        if stored.digest() != stored.checksum {
            return Err("it is damaged: the checksum does not match".to_owned());
        }
        if stored.samples > MOST_SAMPLES {
            return Err(format!("it has more than {MOST_SAMPLES} samples"));
        }
        let factor = |c: StoredFactor| {
            let rows = c.blocks.iter().chain(&c.left_out).map(|block| block.rows);
            let most = rows.chain(c.lags.iter().map(|lag| lag.pairs)).fold(c.count, usize::max);
            if c.width < 2
                || most > MOST_SAMPLES
                || !(c.independent >= 0.0 && c.independent <= c.count as f64)
            {
                return Err("the counts of a channel are invalid".to_owned());
            }
            let triangle = Triangle::from_upper(c.width, &c.upper).map_err(|e| e.to_string())?;
            let mut out = Factor::new(c.width);
            let entries = c.width * (c.width - 1) / 2;
            for (own, stored) in out.lags.iter_mut().zip(c.lags) {
                if !(stored.independent >= 0.0 && stored.expected.is_finite()) {
                    return Err("the counts of a channel are invalid".to_owned());
                }
                let fits = stored.upper.len() == entries && stored.upper.iter().all(|x| x.is_finite());
                if !fits || stored.pairs == 0 {
                    return Err("the differences of a channel do not fit it".to_owned());
                }
                *own = Lag {
                    gram: Gram { rows: stored.pairs, upper: stored.upper },
                    independent: stored.independent,
                    expected: stored.expected,
                };
            }
            if !triangle.is_finite() {
                return Err("a factor is not finite".to_owned());
            }
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
                .map_err(|_| "the fingerprint is not a hexadecimal number".to_owned())?,
            samples: stored.samples,
            factors: stored.channels.into_iter().map(factor).collect::<Result<_, _>>()?,
            sources: stored.logs,
        })
    }
}
