//! Residuals of given unknowns: relative size, whiteness, validation.

use schemars::JsonSchema;
use serde::Serialize;

use crate::estimation::equations::Equations;
use crate::estimation::reduction::factor::{Factor, LAGS, Lag};
use crate::estimation::reduction::summary::Summary;
use crate::{Error, Result};

/// The residual of one coordinate.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct Residual {
    /// The coordinate.
    pub joint: String,
    /// Number of samples that counted.
    pub samples: usize,
    /// Root mean square of measured less predicted force, in the band of the identification filter.
    pub rms: f64,
    /// Residual relative to the root mean square of the measured force; infinite (`null` in JSON) where that force was zero and the
    /// residual is not.
    #[schemars(with = "Option<f64>")]
    pub relative_rms: f64,
    /// Root mean square against the unfiltered force, over all samples, also those that did not count.
    pub rms_raw: f64,
    /// The same over the root mean square of the unfiltered force.
    #[schemars(with = "Option<f64>")]
    pub relative_rms_raw: f64,
    /// Share of the samples that did not count.
    pub left_out: f64,
    /// Durbin and Watson's statistic of residuals one independent sample apart (by the filter's band), less what the filter
    /// alone would make of it: about 2 where they are white, towards 0 where one is like the one before it. Absent where no
    /// two samples are that far apart.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub durbin_watson: Option<f64>,
    /// Whether it differs from that of white residuals by less than five standard deviations (of chance: once in two million).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub white: Option<bool>,
    /// Ljung and Box's statistic `Q = n (n + 2) Σ ρₖ²/(n − k)` of the correlations of residuals one to four independent
    /// samples apart, less those that the filter alone makes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ljung_box: Option<f64>,
    /// The probability that white noise has a larger one (chi-square with as many degrees of freedom as lags).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ljung_box_p: Option<f64>,
}

/// Residuals of a model; serializes to the JSON object of a validation.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct Validation {
    /// The object's schema.
    #[schemars(extend("const" = "inertial/validation/1"))]
    pub schema: &'static str,
    /// Number of samples.
    pub samples: usize,
    /// Residuals by coordinate.
    pub joints: Vec<Residual>,
    /// Coordinates whose force was measured, but with fewer than [`Validation::ENOUGH`] samples that count.
    pub unjudged: Vec<String>,
    /// Root of the summed squared residuals over the summed squared forces, all coordinates together.
    #[schemars(with = "Option<f64>")]
    pub relative_rms: f64,
    /// The same against unfiltered forces, over all samples.
    #[schemars(with = "Option<f64>")]
    pub relative_rms_raw: f64,
    /// Share of the samples that did not count, all coordinates together.
    pub left_out: f64,
}

impl Validation {
    /// Samples that a coordinate needs for a judgement: one per block of the standard errors.
    pub const ENOUGH: usize = 16;

    /// Returns whether the residual is not above a threshold and every coordinate was judged.
    pub fn is_within(&self, threshold: f64) -> bool {
        self.unjudged.is_empty() && self.relative_rms <= threshold
    }
}

/// Squared sums of residual, force and raw residual.
pub(crate) struct Sums {
    pub residual: f64,
    pub tau: f64,
    /// These two over all samples.
    pub residual_raw: f64,
    pub tau_raw: f64,
}

/// Probability of a Ljung-Box statistic below which a residual is not called white.
const UNLIKELY: f64 = 1e-4;

/// Squared residual, relative to the largest squared part of it, that sums of products show to a hundredth.
const VISIBLE: f64 = 1e-12;

/// Whiteness of a residual.
struct Whiteness {
    durbin_watson: f64,
    white: bool,
    ljung_box: Option<f64>,
}

impl Factor {
    /// Computes the whiteness of the residual at the values of this coordinate's own unknowns.
    fn whiteness(&self, x: impl Fn(usize) -> f64, residual: f64) -> Option<Whiteness> {
        if self.lags[0].gram.rows == 0 || residual <= 0.0 {
            return None;
        }
        let variance = residual / self.count as f64;
        let n = self.unknowns();
        let coefficients: Vec<f64> = (0..n).map(|k| -x(k)).chain([1.0]).collect();
        // Sums of products do not show residuals that are rounding errors of their parts.
        let parts = self.lags[0].gram.largest_part(&coefficients);
        if 2.0 * self.lags[0].gram.rows as f64 * variance < VISIBLE * parts {
            return None;
        }
        // `ρ − ρ₀`, from `E (r′ − r)² = 2 (1 − ρ) E r²`.
        let correlation = |lag: &Lag| {
            let squares = lag.gram.squares(&coefficients).0;
            let pairs = lag.gram.rows as f64;
            1.0 - 0.5 * squares / (pairs * variance) - lag.expected / pairs
        };
        let first = correlation(&self.lags[0]);
        let all = self.lags.iter().all(|lag| lag.gram.rows > 0);
        let squares = self.lags.iter().enumerate().map(|(k, lag)| {
            // Of n samples n − k pairs are k apart.
            let (pairs, k) = (lag.independent.max(1.0), (k + 1) as f64);
            (pairs + k) * (pairs + k + 2.0) / pairs * correlation(lag).powi(2)
        });
        let ljung_box: Option<f64> = all.then(|| squares.sum());
        Some(Whiteness {
            // Differences from what the filter leaves may pass the ends that the number itself has.
            durbin_watson: (2.0 * (1.0 - first)).clamp(0.0, 4.0),
            // ρ of independent samples has the variance of their number.
            white: first.abs() * self.lags[0].independent.sqrt() < 5.0
                && ljung_box.is_none_or(|q| chi_square_above(LAGS, q) >= UNLIKELY),
            ljung_box,
        })
    }

    /// Computes sums of squares at the values of this coordinate's own unknowns.
    pub(crate) fn sums(&self, x: impl Fn(usize) -> f64) -> Sums {
        let n = self.unknowns();
        let (mut out, r) =
            (Sums { residual: 0.0, tau: 0.0, residual_raw: 0.0, tau_raw: 0.0 }, &self.triangle);
        for i in 0..n + 2 {
            let row = r.row(i);
            let predicted: f64 = (i.min(n)..n).map(|k| row[k] * x(k)).sum();
            out.residual += (row[n] - predicted).powi(2);
            out.tau += row[n].powi(2);
            out.residual_raw += (row[n + 1] - predicted).powi(2);
            out.tau_raw += row[n + 1].powi(2);
        }
        if self.left_out.rows > 0 {
            let values: Vec<f64> = (0..=n).map(|k| if k < n { -x(k) } else { 1.0 }).collect();
            let (residual, force) = self.left_out.squares(&values);
            out.residual_raw += residual;
            out.tau_raw += force;
        }
        out
    }
}

/// Judges any values of the unknowns by a summary.
pub fn validate(equations: &Equations<'_>, summary: &Summary, values: &[f64]) -> Result<Validation> {
    summary.check(equations)?;
    if values.len() != equations.len() {
        let (expected, found) = (equations.len(), values.len());
        return Err(Error::Dimension { what: "unknowns", expected, found });
    }
    let names = equations.row_names();
    let (mut joints, mut residual, mut tau) = (Vec::new(), 0.0, 0.0);
    let (mut residual_raw, mut tau_raw, mut counted, mut left_out) = (0.0, 0.0, 0, 0);
    let mut unjudged = Vec::new();
    for ((factor, channel), name) in summary.factors.iter().zip(&equations.channels).zip(names) {
        let sums = factor.sums(|k| values[channel.unknowns[k]]);
        // A force that was not measured is zero in all samples.
        if factor.count < Validation::ENOUGH && sums.tau_raw > 0.0 {
            unjudged.push(name.clone());
        }
        if factor.count == 0 {
            continue;
        }
        residual += sums.residual;
        tau += sums.tau;
        let whiteness = factor.whiteness(|k| values[channel.unknowns[k]], sums.residual);
        let (own, all) = (factor.left_out.rows, factor.count + factor.left_out.rows);
        residual_raw += sums.residual_raw;
        tau_raw += sums.tau_raw;
        counted += factor.count;
        left_out += own;
        joints.push(Residual {
            joint: name,
            samples: factor.count,
            rms: (sums.residual / factor.count as f64).sqrt(),
            relative_rms: ratio(sums.residual, sums.tau),
            rms_raw: (sums.residual_raw / all as f64).sqrt(),
            relative_rms_raw: ratio(sums.residual_raw, sums.tau_raw),
            left_out: own as f64 / all as f64,
            durbin_watson: whiteness.as_ref().map(|w| w.durbin_watson),
            white: whiteness.as_ref().map(|w| w.white),
            ljung_box: whiteness.as_ref().and_then(|w| w.ljung_box),
            ljung_box_p: whiteness.and_then(|w| w.ljung_box).map(|q| chi_square_above(LAGS, q)),
        });
    }
    if joints.is_empty() {
        return Err(Error::Unobservable(
            "no force is left to compare with: none was measured, or all samples are near standstill or the ends of the \
             log, which must then be longer"
                .into(),
        ));
    }
    Ok(Validation {
        schema: "inertial/validation/1",
        samples: summary.samples,
        joints,
        unjudged,
        relative_rms: ratio(residual, tau),
        relative_rms_raw: ratio(residual_raw, tau_raw),
        left_out: left_out as f64 / (counted + left_out) as f64,
    })
}

/// Root of a ratio of squares. No residual is none of any force; a residual of no force is beyond every bound.
fn ratio(residual: f64, tau: f64) -> f64 {
    if residual == 0.0 { 0.0 } else { (residual / tau).sqrt() }
}

/// The probability that chi-square with an even number of degrees of freedom is above `x`.
fn chi_square_above(freedom: usize, x: f64) -> f64 {
    let half = 0.5 * x;
    let (mut sum, mut term) = (0.0, (-half).exp());
    for k in 0..freedom / 2 {
        sum += term;
        term *= half / (k + 1) as f64;
    }
    sum
}
