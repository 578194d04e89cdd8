//! Curves of values that were predicted elsewhere: momenta, and readings of a force/torque sensor.

use super::{Curve, Curves, Film, ReportedResidual, Row, Sample, bucket, step};

/// Measured and predicted values of one log, or of a part of it, sample by sample.
pub struct Track {
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
    /// Computes the curves of tracks.
    pub fn of_tracks(tracks: Vec<Track>) -> Self {
        let tracks: Vec<Track> = tracks.into_iter().filter(|t| !t.counts.is_empty()).collect();
        let numbers: usize = tracks.iter().map(|t| t.measured.len()).sum();
        let bucket = bucket(numbers, 1);
        let films = tracks.len();
        let mut out = Self::default();
        for track in tracks {
            let samples = track.counts.len();
            let mut film = Film::new(samples, track.rate, films);
            film.take(&track.q, samples);
            let count = track.reported.len();
            let rows = track.reported.into_iter().zip(track.units).enumerate().filter_map(
                |(row, (reported, unit))| {
                    let mut out = Row::new(samples, bucket, track.rate, reported);
                    for (s, &counts) in track.counts.iter().enumerate() {
                        let (measured, predicted) =
                            (track.measured[s * count + row], track.predicted[s * count + row]);
                        out.push(&Sample { measured, predicted, counts, fitted: counts, friction: None });
                    }
                    out.finish((unit, ""))
                },
            );
            let curve = Curve {
                log: track.log,
                part: track.part,
                quantity: track.quantity,
                start: track.start,
                step: step(bucket, track.rate),
                samples,
                bucket,
                series: rows.collect(),
            };
            out.push(curve, film);
        }
        out
    }
}
