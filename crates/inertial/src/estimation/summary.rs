//! What a log says of the unknowns, in a few kilobytes.

use rayon::prelude::{IntoParallelIterator, ParallelIterator};
use serde::{Deserialize, Serialize};

use super::equations::{Channel, Equations};
use super::expression::State;
use super::terms::GivenTerm;
use crate::dynamics::{PackedChunk, Samples};
use crate::linalg::Triangle;
use crate::{Error, Result};

/// Samples whose rows are reduced at once: with some fifty columns they stay in a core's cache.
const BLOCK: usize = 256;

const SCHEMA: &str = "inertial/summary/1";

/// Measured motion and forces, `nv` numbers per sample.
#[derive(Debug, Clone, Copy)]
pub struct Measurements<'a> {
    samples: Samples<'a>,
    pub(super) v: &'a [f64],
    pub(super) a: &'a [f64],
    tau: &'a [f64],
    /// The forces as the sensors gave them; those of the fit where they are not kept apart.
    pub tau_raw: Option<&'a [f64]>,
    /// Which forces count; all where absent.
    pub keep: Option<&'a [bool]>,
    /// Further columns of the log, those of [`super::JointModel::columns`], sample after sample.
    pub columns: Option<&'a [f64]>,
    /// The part of the samples that is independent: filtering to a band of `f` Hz leaves `2 f / rate` of them.
    pub independent: f64,
}

impl<'a> Measurements<'a> {
    /// All samples count, and are independent; `v` and `a` are those of the samples.
    pub fn new(samples: Samples<'a>, v: &'a [f64], a: &'a [f64], tau: &'a [f64]) -> Self {
        Self { samples, v, a, tau, tau_raw: None, keep: None, columns: None, independent: 1.0 }
    }

    /// Positions of all samples.
    pub(super) fn q(&self) -> &'a [f64] {
        self.samples.q()
    }

    /// Numbers per position.
    pub(super) fn nq(&self) -> usize {
        self.q().len() / self.samples.len().max(1)
    }

    /// Further numbers per sample.
    pub(super) fn columns_per_sample(&self) -> usize {
        self.columns.map_or(0, |c| c.len() / self.samples.len().max(1))
    }

    /// Numbers per velocity.
    pub(super) fn nv(&self) -> usize {
        self.v.len() / self.samples.len().max(1)
    }
}

/// The triangular factor of `[Y | terms | τ | τ_raw]` for each measured coordinate, and counts.
///
/// It is all that estimators and residuals need: `‖Y x − τ‖²` follows for any `x`, for filtered and raw forces, and
/// weights per coordinate can be chosen afterwards. Summaries of parts merge into that of the whole.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Stored", into = "Stored")]
pub struct Summary {
    names: Vec<String>,
    fingerprint: u64,
    /// Number of samples, whichever forces count.
    pub samples: usize,
    pub(super) factors: Vec<Factor>,
}

/// Of one coordinate.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Factor {
    pub triangle: Triangle,
    /// Forces that count.
    pub count: usize,
    /// Those of them that are independent.
    pub independent: f64,
}

impl Factor {
    /// Columns before the two of forces.
    pub fn unknowns(&self) -> usize {
        self.triangle.width() - 2
    }
}

impl Summary {
    /// Samples whose factor one thread builds. Constant, so that the result does not depend on the number of threads.
    pub const PART: usize = 8192;

    /// Of no samples.
    pub fn empty(equations: &Equations<'_>) -> Self {
        let factor = |c: &Channel| Factor {
            triangle: Triangle::new(c.unknowns.len() + 2),
            count: 0,
            independent: 0.0,
        };
        Self {
            names: equations.names.clone(),
            fingerprint: fingerprint(equations),
            samples: 0,
            factors: equations.channels.iter().map(factor).collect(),
        }
    }

    /// Of measurements, in one pass. The result is the same for any number of threads.
    pub fn new(equations: &Equations<'_>, data: &Measurements<'_>) -> Result<Self> {
        let (nv, count) = (equations.mechanism().nv(), data.samples.len());
        expect("v of the measurements", data.v.len(), count * nv)?;
        expect("a of the measurements", data.a.len(), count * nv)?;
        expect("tau of the measurements", data.tau.len(), count * nv)?;
        expect("raw tau of the measurements", data.tau_raw.map_or(count * nv, <[f64]>::len), count * nv)?;
        expect("keep of the measurements", data.keep.map_or(count * nv, <[bool]>::len), count * nv)?;
        let further = equations.joint_model().columns.len();
        expect("further columns of the measurements", data.columns.map_or(0, <[f64]>::len), count * further)?;
        if !(data.independent > 0.0 && data.independent <= 1.0) {
            return Err(Error::Numeric(format!(
                "the independent part of the samples is {}, expected a number above 0 and at most 1",
                data.independent
            )));
        }
        let parts: Vec<Self> = (0..count.div_ceil(Self::PART))
            .into_par_iter()
            .map(|k| Self::of_part(equations, data, k * Self::PART, Self::PART.min(count - k * Self::PART)))
            .collect::<Result<_>>()?;
        let mut out = Self::empty(equations);
        for part in &parts {
            out.merge(part)?;
        }
        match out.factors.iter().position(|f| !f.triangle.is_finite()) {
            None => Ok(out),
            Some(v) => {
                let name = &equations.mechanism().velocity_names()[v];
                Err(Error::Numeric(format!("the measurements of {name} are not finite")))
            }
        }
    }

    fn of_part(
        equations: &Equations<'_>,
        data: &Measurements<'_>,
        first: usize,
        count: usize,
    ) -> Result<Self> {
        let dynamics = &equations.dynamics;
        let mut out = Self::empty(equations);
        out.samples = count;
        let (mut scratch, mut memory) = (dynamics.scratch(), Vec::new());
        for start in (first..first + count).step_by(BLOCK) {
            let size = BLOCK.min(first + count - start);
            let mut failed = Ok(());
            dynamics.packed_regressors(&mut scratch, &data.samples.part(dynamics, start, size), |chunk| {
                for (v, (channel, factor)) in equations.channels.iter().zip(&mut out.factors).enumerate() {
                    let given = &equations.joint_model().given;
                    let rows =
                        Rows { data, given, first: start + chunk.first, v, nv: equations.channels.len() };
                    if let Err(e) = rows.absorb(channel, &chunk, &mut memory, factor) {
                        failed = Err(e);
                    }
                }
            })?;
            failed?;
        }
        for factor in &mut out.factors {
            factor.independent = data.independent * factor.count as f64;
        }
        Ok(out)
    }

    /// Adds what another summary of the same equations says.
    pub fn merge(&mut self, other: &Self) -> Result<()> {
        if self.names != other.names || self.fingerprint != other.fingerprint {
            return Err(Error::Numeric(
                "two summaries of different models or joint terms cannot be merged".into(),
            ));
        }
        self.samples += other.samples;
        for (own, other) in self.factors.iter_mut().zip(&other.factors) {
            own.triangle.merge(&other.triangle)?;
            own.count += other.count;
            own.independent += other.independent;
        }
        Ok(())
    }

    /// Of the same log with the opposite sign of all forces.
    pub(super) fn with_forces_reversed(&self) -> Result<Self> {
        let mut out = self.clone();
        for factor in &mut out.factors {
            let (width, n) = (factor.triangle.width(), factor.unknowns());
            let mut upper = factor.triangle.upper();
            // The last two columns; row i begins at its diagonal.
            let mut start = 0;
            for i in 0..width {
                (n.max(i)..width).for_each(|j| upper[start + j - i] *= -1.0);
                start += width - i;
            }
            factor.triangle = Triangle::from_upper(width, &upper)?;
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
            Err(Error::Numeric("the summary was made for another model or other joint terms".into()))
        }
    }
}

/// Some rows of one coordinate.
struct Rows<'d> {
    data: &'d Measurements<'d>,
    given: &'d [GivenTerm],
    /// First sample.
    first: usize,
    v: usize,
    nv: usize,
}

impl Rows<'_> {
    fn absorb(
        &self,
        channel: &Channel,
        chunk: &PackedChunk<'_>,
        memory: &mut Vec<f64>,
        factor: &mut Factor,
    ) -> Result<()> {
        let data = self.data;
        let index = |s: usize| (self.first + s) * self.nv + self.v;
        let kept: Vec<usize> =
            (0..chunk.count).filter(|&s| data.keep.is_none_or(|keep| keep[index(s)])).collect();
        let rows = kept.len();
        let width = channel.unknowns.len() + 2;
        memory.clear();
        let groups: Vec<_> = chunk.groups().collect();
        for &entry in &channel.entries {
            memory.extend(kept.iter().map(|&s| groups[s / 4][entry].0[s % 4]));
        }
        for (factor, feature) in &channel.features {
            let start = memory.len();
            feature.fill(self.given, data, kept.iter().map(|s| self.first + s), memory);
            if *factor != 1.0 {
                memory[start..].iter_mut().for_each(|x| *x *= factor);
            }
        }
        for tau in [data.tau, data.tau_raw.unwrap_or(data.tau)] {
            memory.extend(kept.iter().map(|&s| tau[index(s)]));
        }
        factor.count += rows;
        debug_assert_eq!(memory.len(), rows * width);
        Ok(factor.triangle.absorb(memory, rows)?)
    }
}

fn expect(what: &'static str, found: usize, expected: usize) -> Result<()> {
    if found == expected { Ok(()) } else { Err(Error::Dimension { what, expected, found }) }
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
            add(given.expression.value(&State { q: &q, v: &v, a: &v, columns: &columns }, &mut Vec::new()));
        }
    }
    hash
}

/// As written to files.
#[derive(Serialize, Deserialize)]
struct Stored {
    schema: String,
    fingerprint: String,
    unknowns: Vec<String>,
    samples: usize,
    channels: Vec<StoredFactor>,
}

#[derive(Serialize, Deserialize)]
struct StoredFactor {
    count: usize,
    independent: f64,
    width: usize,
    /// The factor on and above its diagonal, row after row.
    upper: Vec<f64>,
}

impl From<Summary> for Stored {
    fn from(summary: Summary) -> Self {
        let channel = |f: Factor| StoredFactor {
            count: f.count,
            independent: f.independent,
            width: f.triangle.width(),
            upper: f.triangle.upper(),
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
            if !triangle.is_finite() {
                return Err("a factor is not finite".to_owned());
            }
            Ok(Factor { triangle, count: c.count, independent: c.independent })
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
