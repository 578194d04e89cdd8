//! Accumulation of the curves of one coordinate, sample by sample.

use super::spectrum::Welch;
use super::{Floats, Friction, Histogram, Reducer, ReportedResidual, Series};

/// Largest number of points of a friction diagram.
const DOTS: usize = 700;
/// Number of bins of a histogram, and its half-width in root mean square residuals of the fit.
const BINS: usize = 41;
const REACH: f64 = 4.0;

/// Accumulator of the curves of one coordinate.
pub(super) struct Row {
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
    /// Number of used samples that are rows of the fit.
    fitted: usize,
    fitted_squares: f64,
    reported: ReportedResidual,
}

/// One sample of a coordinate.
pub(super) struct Sample {
    pub measured: f64,
    pub predicted: f64,
    /// Whether the sample is used.
    pub counts: bool,
    /// Whether the sample is a row of the fit.
    pub fitted: bool,
    /// Speed, and the friction of the model at this speed; absent if the row is not a velocity coordinate.
    pub friction: Option<[f64; 2]>,
}

impl Row {
    /// Creates an accumulator for `samples` samples at a rate in Hz, with buckets of `bucket` samples and the residuals of the result.
    pub(super) fn new(samples: usize, bucket: usize, rate: f64, reported: ReportedResidual) -> Self {
        Self {
            measured: Reducer::new(bucket, samples),
            predicted: Reducer::new(bucket, samples),
            residual: Reducer::new(bucket, samples),
            welch: Welch::new(samples, rate),
            histogram: Histogram { reach: REACH * reported.rms, bins: vec![0; BINS], beyond: 0 },
            friction: Default::default(),
            every: samples.div_ceil(DOTS).max(1),
            seen: 0,
            counted: 0,
            squares: 0.0,
            fitted: 0,
            fitted_squares: 0.0,
            reported,
        }
    }

    pub(super) fn push(&mut self, sample: &Sample) {
        let residual = sample.measured - sample.predicted;
        self.measured.push(sample.measured as f32);
        self.predicted.push(sample.predicted as f32);
        self.residual.push(if sample.counts { residual as f32 } else { f32::NAN });
        self.welch.push(if sample.counts { residual } else { 0.0 });
        self.seen += 1;
        if !sample.counts {
            return;
        }
        self.counted += 1;
        self.squares += residual * residual;
        if sample.fitted {
            self.fitted += 1;
            self.fitted_squares += residual * residual;
        }
        self.histogram.take(residual);
        if let (Some([speed, friction]), true) = (sample.friction, self.seen.is_multiple_of(self.every)) {
            let values = [speed, residual + friction, friction];
            self.friction.iter_mut().zip(values).for_each(|(to, x)| to.push(x as f32));
        }
    }

    /// Returns the series; `None` if no sample was used.
    pub(super) fn finish(self, (unit, speed_unit): (&'static str, &'static str)) -> Option<Series> {
        let [speed, force, model] = self.friction;
        let has_friction = model.iter().any(|x| *x != 0.0);
        (self.counted > 0).then(|| Series {
            joint: self.reported.joint,
            unit,
            speed_unit,
            measured: Floats(self.measured.finish()),
            predicted: Floats(self.predicted.finish()),
            residual: Floats(self.residual.finish()),
            counted: self.counted,
            rms: self.reported.rms,
            relative_rms: self.reported.relative_rms,
            own_rms: (self.fitted_squares / self.fitted.max(1) as f64).sqrt(),
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
