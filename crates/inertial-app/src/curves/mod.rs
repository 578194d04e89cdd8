//! Measured and predicted forces for the page, the terminal and figures, computed in another pass over the logs and
//! reduced to a bounded number of points.

mod floats;
mod playback;
mod reduce;
mod row;
mod spectrum;
mod track;

use std::ops::Range;

use inertial::dynamics::ClosedMechanism;
use inertial::estimation::momentum_identification::MomentumResidual;
use inertial::estimation::{Equations, Residual};
use inertial::mechanism::{JointType, Mechanism};
use serde::Serialize;

use crate::recording::{Part, Recording};
use crate::{Context, Result};
pub use floats::Floats;
pub use playback::Motion;
use playback::Playback;
pub use reduce::Reducer;
use row::{Row, Sample};
pub use track::PredictedSeries;

/// Largest number of points of all curves together: about seven megabytes in base64, or one minute of seven joints at 1 kHz.
const POINTS: usize = 1_300_000;
/// Curves of one log, or of a part of it.
#[derive(Debug, Serialize)]
pub struct Curve {
    /// Name of the log.
    pub log: String,
    /// Use of the samples: `fit` or `validation`.
    pub part: &'static str,
    /// Measured quantity: `force` or `momentum`.
    pub quantity: &'static str,
    /// Time of the first point (s).
    pub start: f64,
    /// Time between points (s).
    pub step: f64,
    /// Number of samples that the points represent.
    pub samples: usize,
    /// Samples represented by each pair of points (minimum and maximum); one if the points are the samples.
    pub bucket: usize,
    /// Series of each coordinate.
    pub series: Vec<Series>,
}

/// Curves of one coordinate.
#[derive(Debug, Serialize)]
pub struct Series {
    /// Name of the coordinate.
    pub joint: String,
    /// Unit of the force.
    pub unit: &'static str,
    /// Unit of the speed.
    pub speed_unit: &'static str,
    /// Measured force, low-pass filtered.
    pub measured: Floats,
    /// Force predicted by the parameters.
    pub predicted: Floats,
    /// Residual; NaN for samples that are not used.
    pub residual: Floats,
    /// Number of samples that are used.
    pub counted: usize,
    /// Root mean square residual of the result, over all logs of this part.
    pub rms: f64,
    /// Root mean square residual relative to that of the measured values.
    pub relative_rms: f64,
    /// Root mean square residual of this log over the fitted rows, computed from the samples of the curves. With a
    /// single log it equals that of the result, except for the jump of Coulomb friction, which the fit places between
    /// samples.
    pub own_rms: f64,
    /// Root mean square residual of all used samples, as drawn.
    pub spread: f64,
    /// Spectrum of the residual.
    pub spectrum: Spectrum,
    /// Histogram of the residual.
    pub histogram: Histogram,
    /// Friction over speed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub friction: Option<Friction>,
}

/// Amplitude spectral density.
#[derive(Debug, Serialize)]
pub struct Spectrum {
    /// Frequency step (Hz).
    pub resolution: f64,
    /// Amplitude density (unit of the force per root hertz).
    pub density: Floats,
}

/// Numbers of samples in equal bins from `-reach` to `reach`.
#[derive(Debug, Serialize)]
pub struct Histogram {
    /// Upper end of the last bin.
    pub reach: f64,
    /// Samples in each bin.
    pub bins: Vec<u32>,
    /// Number of samples outside the bins.
    pub beyond: u32,
}

/// Friction force over speed: measured force minus all modelled terms except friction, and the friction of the model.
#[derive(Debug, Serialize)]
pub struct Friction {
    /// Speed of the joint.
    pub speed: Floats,
    /// Measured force minus all modelled terms except friction.
    pub force: Floats,
    /// Friction of the model.
    pub model: Floats,
}

/// Curves and motions of the logs, for the page.
#[derive(Debug, Default)]
pub struct Curves {
    /// Curves of forces or momenta.
    pub curves: Vec<Curve>,
    /// Motion of each curve.
    pub motions: Vec<Motion>,
}

/// Residuals of a coordinate according to the result.
#[derive(Debug, Clone, Default)]
pub struct ReportedResidual {
    joint: String,
    rms: f64,
    relative_rms: f64,
}

impl From<&Residual> for ReportedResidual {
    fn from(r: &Residual) -> Self {
        Self { joint: r.joint.clone(), rms: r.rms, relative_rms: r.relative_rms }
    }
}

impl From<&MomentumResidual> for ReportedResidual {
    fn from(r: &MomentumResidual) -> Self {
        Self { joint: r.joint.clone(), rms: r.rms, relative_rms: r.relative_rms }
    }
}

/// Part of a log.
pub struct LogSegment {
    /// Range of the samples.
    pub range: Range<usize>,
    /// Use of the samples: `fit` or `validation`.
    pub part: &'static str,
    /// Residuals of the result over all parts with this use, by coordinate.
    pub residuals: Vec<ReportedResidual>,
}

impl LogSegment {
    /// Creates a part of a log with the residuals of the result.
    pub fn new(range: Range<usize>, part: &'static str, residuals: &[Residual]) -> Self {
        Self { range, part, residuals: residuals.iter().map(ReportedResidual::from).collect() }
    }
}

/// Returns the number of samples per pair of points for `samples` samples of `rows` coordinates; it is the same for all curves.
fn bucket(samples: usize, rows: usize) -> usize {
    let points = 3 * rows * samples;
    if points <= POINTS { 1 } else { (2 * points).div_ceil(POINTS) }
}

/// Returns the time between points.
fn step(bucket: usize, rate: f64) -> f64 {
    if bucket == 1 { 1.0 / rate } else { 0.5 * bucket as f64 / rate }
}

impl Curves {
    /// Reads the logs once more and collects the parts of each, with the forces predicted by `values` of the unknowns.
    pub(crate) fn collect(
        context: &Context<'_>,
        equations: &Equations<'_>,
        values: &[f64],
        mut logs: Vec<(&mut Recording, Vec<LogSegment>)>,
    ) -> Result<Self> {
        logs.iter_mut().for_each(|(_, pieces)| pieces.retain(|p| !p.range.is_empty()));
        let pieces = || logs.iter().flat_map(|(_, pieces)| pieces);
        let bucket = bucket(pieces().map(|p| p.range.len()).sum(), equations.row_names().len());
        let playbacks = pieces().count();
        let mut out = Self::default();
        let paths: Vec<String> = logs.iter().map(|(recording, _)| recording.path().to_owned()).collect();
        let _work = context.work_on(&paths);
        for (recording, pieces) in logs {
            recording.restart(context);
            for piece in pieces {
                let playback = Playback::new(piece.range.len(), recording.rate_hz(), playbacks);
                out.take(context, equations, values, recording, &piece, bucket, playback)?;
            }
        }
        Ok(out)
    }

    #[allow(clippy::too_many_arguments, reason = "one log of a figure, passed once")]
    fn take(
        &mut self,
        context: &Context<'_>,
        equations: &Equations<'_>,
        values: &[f64],
        recording: &mut Recording,
        piece: &LogSegment,
        bucket: usize,
        mut playback: Playback,
    ) -> Result<()> {
        let units = units(equations);
        let (samples, rate) = (piece.range.len(), recording.rate_hz());
        let reported = |name: String| {
            let found = piece.residuals.iter().find(|r| r.joint == name).cloned();
            found.unwrap_or(ReportedResidual { joint: name, ..ReportedResidual::default() })
        };
        let names = equations.force_names().into_iter();
        let mut rows: Vec<Row> = names.map(|name| Row::new(samples, bucket, rate, reported(name))).collect();
        let mut start = None;
        recording.predict(context, equations, piece.range.clone(), values, |part| {
            start = start.or(part.t.first().copied());
            let all = rows.len();
            rows.iter_mut().enumerate().for_each(|(row, to)| part.each(row, all, |sample| to.push(&sample)));
            playback.take(part.q, part.t.len());
        })?;
        self.push(
            Curve {
                log: recording.path().to_owned(),
                part: piece.part,
                quantity: "force",
                start: start.unwrap_or(0.0),
                step: step(bucket, rate),
                samples,
                bucket,
                series: rows.into_iter().zip(units).filter_map(|(row, units)| row.finish(units)).collect(),
            },
            playback,
        );
        Ok(())
    }

    fn push(&mut self, curve: Curve, playback: Playback) {
        self.motions.extend(playback.finish(format!("{} ({})", curve.log, curve.part)));
        self.curves.push(curve);
    }
}

impl Part<'_> {
    /// Calls `show` with each sample of one of the rows.
    fn each(&self, row: usize, rows: usize, mut show: impl FnMut(Sample)) {
        let nv = self.v.len() / self.t.len().max(1);
        for s in 0..self.t.len() {
            let at = s * rows + row;
            show(Sample {
                measured: self.tau[at],
                predicted: self.prediction.force[at],
                counts: self.keep[at],
                fitted: self.is_fitted(s),
                friction: (row < nv).then(|| [self.v[s * nv + row], self.prediction.friction[at]]),
            });
        }
    }
}

/// Returns the units of force and speed of each row.
fn units(equations: &Equations<'_>) -> Vec<(&'static str, &'static str)> {
    let all = coordinate_units(equations.mechanism());
    let mut out = equations.closed().map_or_else(
        || all.clone(),
        |c: &ClosedMechanism<'_>| c.independent().iter().map(|&v| all[v]).collect(),
    );
    if equations.has_base_wrench() {
        out.extend([LINEAR, LINEAR, LINEAR, ANGULAR, ANGULAR, ANGULAR]);
    }
    out
}

const LINEAR: (&str, &str) = ("N", "m/s");
const ANGULAR: (&str, &str) = ("N m", "rad/s");

/// Returns the units of force and speed of each velocity coordinate.
pub fn coordinate_units(mechanism: &Mechanism) -> Vec<(&'static str, &'static str)> {
    let mut out = vec![ANGULAR; mechanism.nv()];
    for joint in mechanism.joints().iter().filter(|j| j.follows.is_none()) {
        let linear = match joint.joint_type {
            JointType::Prismatic { .. } => 0..1,
            JointType::Cylindrical { .. } => 1..2,
            JointType::Planar { .. } => 0..2,
            JointType::Floating => 0..3,
            _ => 0..0,
        };
        linear.for_each(|k| out[joint.v + k] = LINEAR);
    }
    out
}
