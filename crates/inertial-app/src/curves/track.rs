//! Curves of values that were predicted elsewhere: momenta, and readings of a force/torque sensor.

use super::{Curve, Curves, Playback, ReportedResidual, Row, Sample, bucket, step};

/// Measured and predicted values of one log, or of a part of it, sample by sample.
pub struct PredictedSeries {
    /// Name of the log.
    pub log: String,
    /// Use of the samples: `fit` or `validation`.
    pub part: &'static str,
    /// Measured quantity: `force` or `momentum`.
    pub quantity: &'static str,
    /// Time of the first sample (s).
    pub start: f64,
    /// Sampling rate (Hz).
    pub rate: f64,
    /// Residuals of each row according to the result.
    pub reported: Vec<ReportedResidual>,
    /// Unit of each row.
    pub units: Vec<&'static str>,
    /// Measured values of all rows.
    pub measured: Vec<f64>,
    /// Predicted values of all rows.
    pub predicted: Vec<f64>,
    /// Whether each sample is used.
    pub counts: Vec<bool>,
    /// Positions of the mechanism; empty if they are unknown.
    pub q: Vec<f64>,
}

impl Curves {
    /// Computes the curves of predicted series.
    pub fn of_predictions(series: Vec<PredictedSeries>) -> Self {
        let series: Vec<PredictedSeries> = series.into_iter().filter(|t| !t.counts.is_empty()).collect();
        let numbers: usize = series.iter().map(|t| t.measured.len()).sum();
        let bucket = bucket(numbers, 1);
        let playbacks = series.len();
        let mut out = Self::default();
        for one in series {
            let samples = one.counts.len();
            let mut playback = Playback::new(samples, one.rate, playbacks);
            playback.take(&one.q, samples);
            let count = one.reported.len();
            let rows =
                one.reported.into_iter().zip(one.units).enumerate().filter_map(|(row, (reported, unit))| {
                    let mut out = Row::new(samples, bucket, one.rate, reported);
                    for (s, &counts) in one.counts.iter().enumerate() {
                        let (measured, predicted) =
                            (one.measured[s * count + row], one.predicted[s * count + row]);
                        out.push(&Sample { measured, predicted, counts, fitted: counts, friction: None });
                    }
                    out.finish((unit, ""))
                });
            let curve = Curve {
                log: one.log,
                part: one.part,
                quantity: one.quantity,
                start: one.start,
                step: step(bucket, one.rate),
                samples,
                bucket,
                series: rows.collect(),
            };
            out.push(curve, playback);
        }
        out
    }
}
