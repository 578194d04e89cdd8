//! Residuals for given unknowns: relative size, whiteness, validation.

use schemars::JsonSchema;
use serde::Serialize;

use crate::estimation::equations::Equations;
use crate::estimation::reduction::factor::{Factor, LAGS, Lag};
use crate::estimation::reduction::summary::Summary;
use crate::{Error, Result};

/// Residual of one coordinate.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct Residual {
    /// Name of the coordinate.
    pub joint: String,
    /// Number of samples that were used.
    pub samples: usize,
    /// Root mean square of the difference between measured and predicted force, in the band of the identification filter.
    pub rms: f64,
    /// Residual relative to the root mean square of the measured force; infinite (`null` in JSON) if that force is zero and the
    /// residual is not.
    #[schemars(with = "Option<f64>")]
    pub relative_rms: f64,
    /// Root mean square residual of the unfiltered force, over all samples, including those that were not used.
    pub rms_raw: f64,
    /// Residual `rms_raw` relative to the root mean square of the unfiltered force.
    #[schemars(with = "Option<f64>")]
    pub relative_rms_raw: f64,
    /// Share of the samples that were not used.
    pub left_out: f64,
    /// Durbin-Watson statistic of residuals one independent sample apart (according to the band of the filter), corrected for the
    /// correlation caused by the filter: about 2 for white residuals, towards 0 for positively correlated ones. Absent if no two
    /// samples are that far apart.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub durbin_watson: Option<f64>,
    /// Whether the statistic differs from that of white residuals by less than five standard deviations (exceeded by chance once
    /// in two million).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub white: Option<bool>,
    /// Ljung-Box statistic `Q = n (n + 2) Σ ρₖ²/(n − k)` of the correlations of residuals one to four independent samples apart,
    /// corrected for the correlations caused by the filter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ljung_box: Option<f64>,
    /// Probability that white noise has a larger Ljung-Box statistic (chi-square with as many degrees of freedom as lags).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ljung_box_p: Option<f64>,
}

/// Residuals of a model; serializes to the JSON object of a validation.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct Validation {
    /// Schema of the JSON object.
    #[schemars(extend("const" = "inertial/validation/1"))]
    pub schema: &'static str,
    /// Number of samples.
    pub samples: usize,
    /// Residuals by coordinate.
    pub joints: Vec<Residual>,
    /// Coordinates without a verdict: fewer than [`Validation::ENOUGH`] usable samples, or no torques in a log that has those of other
    /// joints.
    pub unjudged: Vec<String>,
    /// Root of the summed squared residuals over the summed squared forces, for all coordinates together.
    #[schemars(with = "Option<f64>")]
    pub relative_rms: f64,
    /// Relative residual of the unfiltered forces, over all samples.
    #[schemars(with = "Option<f64>")]
    pub relative_rms_raw: f64,
    /// Share of the samples that were not used, for all coordinates together.
    pub left_out: f64,
}

impl Validation {
    /// Number of samples that the assessment of a coordinate needs: one per block of the standard errors.
    pub const ENOUGH: usize = 16;

    /// Returns whether the residual does not exceed a threshold and every coordinate was assessed.
    pub fn is_within(&self, threshold: f64) -> bool {
        self.unjudged.is_empty() && self.relative_rms <= threshold
    }
}

/// Sums of squares of residual, force and raw residual.
pub(crate) struct Sums {
    pub residual: f64,
    pub tau: f64,
    /// Sums of squares of the unfiltered residual and force over all samples.
    pub residual_raw: f64,
    pub tau_raw: f64,
}

/// Probability of a Ljung-Box statistic below which a residual is not white.
const UNLIKELY: f64 = 1e-4;

/// Squared residual, relative to its largest squared part, from which sums of products are accurate to a hundredth.
const VISIBLE: f64 = 1e-12;

/// Whiteness of a residual.
struct Whiteness {
    durbin_watson: f64,
    white: bool,
    ljung_box: Option<f64>,
}

impl Factor {
    /// Computes the whiteness of the residual at the given values of the unknowns of this coordinate.
    fn whiteness(&self, x: impl Fn(usize) -> f64, residual: f64) -> Option<Whiteness> {
        if self.lags[0].gram.rows == 0 || residual <= 0.0 {
            return None;
        }
        let variance = residual / self.count as f64;
        let n = self.unknowns();
        let coefficients: Vec<f64> = (0..n).map(|k| -x(k)).chain([1.0]).collect();
        // Sums of products are not accurate for residuals at the level of rounding errors.
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
            // There are n − k pairs of n samples at lag k.
            let (pairs, k) = (lag.independent.max(1.0), (k + 1) as f64);
            (pairs + k) * (pairs + k + 2.0) / pairs * correlation(lag).powi(2)
        });
        let ljung_box: Option<f64> = all.then(|| squares.sum());
        Some(Whiteness {
            // After the correction for the filter, the statistic may exceed its range.
            durbin_watson: (2.0 * (1.0 - first)).clamp(0.0, 4.0),
            // The variance of ρ of n independent samples is 1/n.
            white: first.abs() * self.lags[0].independent.sqrt() < 5.0
                && ljung_box.is_none_or(|q| chi_square_above(LAGS, q) >= UNLIKELY),
            ljung_box,
        })
    }

    /// Computes sums of squares at the given values of the unknowns of this coordinate.
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

/// Computes the residuals of a summary at given values of the unknowns.
pub fn validate(equations: &Equations<'_>, summary: &Summary, values: &[f64]) -> Result<Validation> {
    summary.check(equations)?;
    if values.len() != equations.len() {
        let (expected, found) = (equations.len(), values.len());
        return Err(Error::Dimension { what: "unknowns", expected, found });
    }
    let names = equations.force_names();
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

/// Returns the root of a ratio of squares: zero for a zero residual, infinite for a nonzero residual of a zero force.
fn ratio(residual: f64, tau: f64) -> f64 {
    if residual == 0.0 { 0.0 } else { (residual / tau).sqrt() }
}

/// Returns the probability that a chi-square variable with an even number of degrees of freedom exceeds `x`.
fn chi_square_above(freedom: usize, x: f64) -> f64 {
    let half = 0.5 * x;
    let (mut sum, mut term) = (0.0, (-half).exp());
    for k in 0..freedom / 2 {
        sum += term;
        term *= half / (k + 1) as f64;
    }
    sum
}
