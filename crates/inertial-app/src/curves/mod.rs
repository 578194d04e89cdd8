//! Measured against predicted forces, passed once more over the logs and kept in a bounded number of points: for the page, the
//! terminal and pictures.

mod film;
mod floats;
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
use film::Film;
pub use film::Motion;
pub use floats::Floats;
pub use reduce::Reducer;
use row::{Row, Sample};
pub use track::Track;

/// Points of all curves together: in base64 they take seven megabytes of a page, and hold a minute of seven joints at 1 kHz.
const POINTS: usize = 1_300_000;
/// One log, or a part of it.
#[derive(Debug, Serialize)]
pub struct Curve {
    /// Its file.
    pub log: String,
    /// What it was for: `fit` or `validation`.
    pub part: &'static str,
    /// What was measured: `force` or `momentum`.
    pub quantity: &'static str,
    /// Time of the first point (s).
    pub start: f64,
    /// Time between points (s).
    pub step: f64,
    /// Number of samples behind the points.
    pub samples: usize,
    /// Samples behind each pair of points, its least and its greatest; one where the points are the samples.
    pub bucket: usize,
    /// By coordinate.
    pub series: Vec<Series>,
}

/// One coordinate.
#[derive(Debug, Serialize)]
pub struct Series {
    /// Its name.
    pub joint: String,
    /// Unit of its force.
    pub unit: &'static str,
    /// Unit of its speed.
    pub speed_unit: &'static str,
    /// The force in the band of the filter.
    pub measured: Floats,
    /// What the parameters predict.
    pub predicted: Floats,
    /// The difference, not a number where the sample does not count.
    pub residual: Floats,
    /// Samples that count.
    pub counted: usize,
    /// The result's root mean square residual, of all logs of this part.
    pub rms: f64,
    /// The same over that of the measured ones.
    pub relative_rms: f64,
    /// Of this log alone, of the rows that were fitted, from the curves' own samples: with one log the result's, but for the
    /// jump of friction, which the fit places between samples.
    pub own_rms: f64,
    /// Of all samples that count, as drawn.
    pub spread: f64,
    /// Spectrum of the residual.
    pub spectrum: Spectrum,
    /// Histogram of the residual.
    pub histogram: Histogram,
    /// What friction took.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub friction: Option<Friction>,
}

/// Amplitude density over frequency.
#[derive(Debug, Serialize)]
pub struct Spectrum {
    /// Hz from one value to the next.
    pub resolution: f64,
    /// Unit of the force per root hertz.
    pub density: Floats,
}

/// Numbers of samples in equal bins from minus to plus `reach`.
#[derive(Debug, Serialize)]
pub struct Histogram {
    /// End of the last bin.
    pub reach: f64,
    /// Samples in each bin.
    pub bins: Vec<u32>,
    /// Samples beyond.
    pub beyond: u32,
}

/// Force over speed: measured less all but friction, and the model's friction.
#[derive(Debug, Serialize)]
pub struct Friction {
    /// Speed of the joint.
    pub speed: Floats,
    /// What was left to friction.
    pub force: Floats,
    /// The model's.
    pub model: Floats,
}

/// What a page shows of the logs.
#[derive(Debug, Default)]
pub struct Curves {
    /// Forces or momenta.
    pub curves: Vec<Curve>,
    /// The motion of each.
    pub motions: Vec<Motion>,
}

/// What the result says of a coordinate.
#[derive(Debug, Clone, Default)]
pub struct Told {
    joint: String,
    rms: f64,
    relative_rms: f64,
}

impl From<&Residual> for Told {
    fn from(r: &Residual) -> Self {
        Self { joint: r.joint.clone(), rms: r.rms, relative_rms: r.relative_rms }
    }
}

impl From<&MomentumResidual> for Told {
    fn from(r: &MomentumResidual) -> Self {
        Self { joint: r.joint.clone(), rms: r.rms, relative_rms: r.relative_rms }
    }
}

/// A part of a log.
pub struct Piece {
    /// Which samples.
    pub range: Range<usize>,
    /// What they were for.
    pub part: &'static str,
    /// The result's residuals of all such parts, by coordinate.
    pub residuals: Vec<Told>,
}

impl Piece {
    /// A part of a log for which the result has these residuals.
    pub fn new(range: Range<usize>, part: &'static str, residuals: &[Residual]) -> Self {
        Self { range, part, residuals: residuals.iter().map(Told::from).collect() }
    }
}

/// Samples behind each pair of points, where `samples` samples have `rows` coordinates each: all pairs stand for as many.
fn bucket(samples: usize, rows: usize) -> usize {
    let points = 3 * rows * samples;
    if points <= POINTS { 1 } else { (2 * points).div_ceil(POINTS) }
}

/// Time between points.
fn step(bucket: usize, rate: f64) -> f64 {
    if bucket == 1 { 1.0 / rate } else { 0.5 * bucket as f64 / rate }
}

impl Curves {
    /// Passes over the logs, each with its parts, with the forces that `values` of the unknowns predict.
    pub(crate) fn collect(
        context: &Context<'_>,
        equations: &Equations<'_>,
        values: &[f64],
        mut logs: Vec<(&mut Recording, Vec<Piece>)>,
    ) -> Result<Self> {
        logs.iter_mut().for_each(|(_, pieces)| pieces.retain(|p| !p.range.is_empty()));
        let pieces = || logs.iter().flat_map(|(_, pieces)| pieces);
        let bucket = bucket(pieces().map(|p| p.range.len()).sum(), equations.row_names().len());
        let films = pieces().count();
        let mut out = Self::default();
        let paths: Vec<String> = logs.iter().map(|(recording, _)| recording.path().to_owned()).collect();
        let _work = context.work_on(&paths);
        for (recording, pieces) in logs {
            recording.again(context);
            for piece in pieces {
                let film = Film::new(piece.range.len(), recording.rate_hz(), films);
                out.take(context, equations, values, recording, &piece, bucket, film)?;
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
        piece: &Piece,
        bucket: usize,
        mut film: Film,
    ) -> Result<()> {
        let units = units(equations);
        let (samples, rate) = (piece.range.len(), recording.rate_hz());
        let told = |name: String| {
            let found = piece.residuals.iter().find(|r| r.joint == name).cloned();
            found.unwrap_or(Told { joint: name, ..Told::default() })
        };
        let names = equations.row_names().into_iter();
        let mut rows: Vec<Row> = names.map(|name| Row::new(samples, bucket, rate, told(name))).collect();
        let mut start = None;
        recording.predict(context, equations, piece.range.clone(), values, |part| {
            start = start.or(part.t.first().copied());
            let all = rows.len();
            rows.iter_mut().enumerate().for_each(|(row, to)| part.each(row, all, |sample| to.push(&sample)));
            film.take(part.q, part.t.len());
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
            film,
        );
        Ok(())
    }

    fn push(&mut self, curve: Curve, film: Film) {
        self.motions.extend(film.finish(format!("{} ({})", curve.log, curve.part)));
        self.curves.push(curve);
    }
}

impl Part<'_> {
    /// Shows the samples of a row of all.
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

/// Units of force and speed of each row.
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

/// Units of force and speed of each velocity coordinate.
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
