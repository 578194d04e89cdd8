//! Measured against predicted forces, passed once more over the logs and kept in a bounded number of points: for the page, the
//! terminal and pictures.

mod floats;
mod reduce;
mod spectrum;

use std::ops::Range;

use anyhow::Result;
use inertial::dynamics::ClosedMechanism;
use inertial::estimation::{Equations, Residual};
use inertial::mechanism::{JointType, Mechanism};
use serde::Serialize;

use crate::recording::{Part, Recording};
pub use floats::Floats;
pub use reduce::Reducer;
use spectrum::Welch;

/// Points of all curves together: in base64 they take seven megabytes of a page, and hold a minute of seven joints at 1 kHz.
const POINTS: usize = 1_300_000;
/// Frames of the motion, and the most per second: what an eye can follow.
const FRAMES: usize = 3000;
const FRAME_RATE: f64 = 60.0;
/// Dots of a friction diagram.
const DOTS: usize = 700;
/// Bins of a histogram, from minus to plus this many root mean squares of the fit.
const BINS: usize = 41;
const REACH: f64 = 4.0;

/// One log, or a part of it.
#[derive(Debug, Serialize)]
pub struct Curve {
    /// Its file.
    pub log: String,
    /// What it was for: `fit` or `validation`.
    pub part: &'static str,
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
    /// Root mean square residual of the rows that were fitted: the result's, where one log has them all.
    pub rms: f64,
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

/// Positions over time, to be played.
#[derive(Debug, Serialize)]
pub struct Motion {
    /// Time between frames (s).
    pub step: f64,
    /// Number of frames.
    pub length: usize,
    /// Each coordinate over time.
    pub q: Vec<Floats>,
}

/// What a page shows of the logs.
#[derive(Debug, Default)]
pub struct Curves {
    /// Forces.
    pub curves: Vec<Curve>,
    /// The motion of the first log.
    pub motion: Option<Motion>,
}

/// A part of a log.
pub struct Piece<'r> {
    /// Which samples.
    pub range: Range<usize>,
    /// What they were for.
    pub part: &'static str,
    /// The result's residuals of all such parts, by coordinate.
    pub residuals: &'r [Residual],
}

impl Curves {
    /// Passes over the logs, each with its parts, with the forces that `values` of the unknowns predict.
    pub fn collect(
        equations: &Equations<'_>,
        values: &[f64],
        logs: Vec<(&mut Recording, Vec<Piece<'_>>)>,
    ) -> Result<Self> {
        let total: usize = logs.iter().flat_map(|(_, pieces)| pieces).map(|p| p.range.len()).sum();
        let points = 3 * equations.row_names().len() * total;
        // Pairs of points stand for buckets that all have the same size.
        let bucket = if points <= POINTS { 1 } else { (2 * points).div_ceil(POINTS) };
        let mut out = Self::default();
        for (recording, pieces) in logs {
            for piece in pieces.into_iter().filter(|p| !p.range.is_empty()) {
                out.take(equations, values, recording, &piece, bucket)?;
            }
        }
        Ok(out)
    }

    fn take(
        &mut self,
        equations: &Equations<'_>,
        values: &[f64],
        recording: &mut Recording,
        piece: &Piece<'_>,
        bucket: usize,
    ) -> Result<()> {
        let (names, units) = (equations.row_names(), units(equations));
        let (samples, rate) = (piece.range.len(), recording.rate_hz());
        let mut film = self.motion.is_none().then(|| Film::new(samples, rate));
        let rms = |name: &String| piece.residuals.iter().find(|r| r.joint == *name).map_or(0.0, |r| r.rms);
        let mut rows: Vec<Row> = names.iter().map(|n| Row::new(samples, bucket, rate, rms(n))).collect();
        let mut start = None;
        recording.predict(equations, piece.range.clone(), values, |part| {
            start = start.or(part.t.first().copied());
            rows.iter_mut().enumerate().for_each(|(row, to)| to.take(part, row, names.len()));
            if let Some(film) = &mut film {
                film.take(part);
            }
        })?;
        let series = rows.into_iter().zip(&names).zip(&units);
        self.curves.push(Curve {
            log: recording.path().to_owned(),
            part: piece.part,
            start: start.unwrap_or(0.0),
            step: if bucket == 1 { 1.0 } else { 0.5 * bucket as f64 } / rate,
            samples,
            bucket,
            series: series.filter_map(|((row, name), units)| row.finish(name, *units)).collect(),
        });
        if let Some(film) = film {
            self.motion = Some(film.finish());
        }
        Ok(())
    }
}

/// Collects one coordinate.
struct Row {
    measured: Reducer,
    predicted: Reducer,
    residual: Reducer,
    welch: Welch,
    histogram: Histogram,
    friction: [Vec<f32>; 3],
    every: usize,
    seen: usize,
    counted: usize,
    squares: f64,
    /// Of them, the rows of the fit.
    fitted: usize,
    fitted_squares: f64,
}

impl Row {
    fn new(samples: usize, bucket: usize, rate: f64, rms: f64) -> Self {
        Self {
            measured: Reducer::new(bucket, samples),
            predicted: Reducer::new(bucket, samples),
            residual: Reducer::new(bucket, samples),
            welch: Welch::new(samples, rate),
            histogram: Histogram { reach: REACH * rms, bins: vec![0; BINS], beyond: 0 },
            friction: Default::default(),
            every: samples.div_ceil(DOTS).max(1),
            seen: 0,
            counted: 0,
            squares: 0.0,
            fitted: 0,
            fitted_squares: 0.0,
        }
    }

    fn take(&mut self, part: &Part<'_>, row: usize, rows: usize) {
        let nv = part.v.len() / part.t.len().max(1);
        for s in 0..part.t.len() {
            let at = s * rows + row;
            let (measured, predicted) = (part.tau[at], part.prediction.force[at]);
            self.measured.push(measured as f32);
            self.predicted.push(predicted as f32);
            let counts = part.keep[at];
            let residual = measured - predicted;
            self.residual.push(if counts { residual as f32 } else { f32::NAN });
            self.welch.push(if counts { residual } else { 0.0 });
            self.seen += 1;
            if !counts {
                continue;
            }
            self.counted += 1;
            self.squares += residual * residual;
            if part.is_fitted(s) {
                self.fitted += 1;
                self.fitted_squares += residual * residual;
            }
            self.histogram.take(residual);
            if self.seen.is_multiple_of(self.every) && row < nv {
                let friction = part.prediction.friction[at];
                let values = [part.v[s * nv + row], residual + friction, friction];
                self.friction.iter_mut().zip(values).for_each(|(to, x)| to.push(x as f32));
            }
        }
    }

    /// Nothing where the force was not measured.
    fn finish(self, name: &str, (unit, speed_unit): (&'static str, &'static str)) -> Option<Series> {
        let [speed, force, model] = self.friction;
        let has_friction = model.iter().any(|x| *x != 0.0);
        (self.counted > 0).then(|| Series {
            joint: name.to_owned(),
            unit,
            speed_unit,
            measured: Floats(self.measured.finish()),
            predicted: Floats(self.predicted.finish()),
            residual: Floats(self.residual.finish()),
            counted: self.counted,
            rms: (self.fitted_squares / self.fitted.max(1) as f64).sqrt(),
            spread: (self.squares / self.counted as f64).sqrt(),
            spectrum: self.welch.finish(),
            histogram: self.histogram,
            friction: has_friction.then_some(Friction {
                speed: Floats(speed),
                force: Floats(force),
                model: Floats(model),
            }),
        })
    }
}

impl Histogram {
    fn take(&mut self, x: f64) {
        let place = (x + self.reach) / (2.0 * self.reach) * self.bins.len() as f64;
        match self.bins.get_mut(place.floor() as usize) {
            Some(bin) if place >= 0.0 => *bin += 1,
            _ => self.beyond += 1,
        }
    }
}

/// Collects the motion.
struct Film {
    every: usize,
    rate: f64,
    seen: usize,
    q: Vec<Vec<f32>>,
}

impl Film {
    fn new(samples: usize, rate: f64) -> Self {
        let often = (rate / FRAME_RATE).round().max(1.0) as usize;
        Self { every: samples.div_ceil(FRAMES).max(often), rate, seen: 0, q: Vec::new() }
    }

    fn take(&mut self, part: &Part<'_>) {
        let nq = part.q.len() / part.t.len().max(1);
        self.q.resize_with(nq, Vec::new);
        for q in part.q.chunks_exact(nq.max(1)) {
            if self.seen.is_multiple_of(self.every) {
                self.q.iter_mut().zip(q).for_each(|(to, x)| to.push(*x as f32));
            }
            self.seen += 1;
        }
    }

    fn finish(self) -> Motion {
        let length = self.q.first().map_or(0, Vec::len);
        Motion { step: self.every as f64 / self.rate, length, q: self.q.into_iter().map(Floats).collect() }
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
