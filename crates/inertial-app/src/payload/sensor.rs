//! Identification of a payload behind a force/torque sensor.

use inertial::estimation::{
    Compensated, Deviation, Equations, Estimator, Identification, IdentifyOptions, ImuNoise, IntervalOptions,
    NoiseBounds, Quantity, SensorLog, SensorMotion, SingleBody, Summary, WRENCH_NAMES, Wrenches, sensor_lag,
};
use inertial::mechanism::Mechanism;
use inertial_data::{Log, Options as DataOptions, Prepared, Requirement, prepare, prepare_columns};

use super::{Options, PAYLOAD, read};
use crate::curves::{Curves, PredictedSeries, ReportedResidual};
use crate::estimate::Subject;
use crate::progress::Quiet;
use crate::{Context, Located, Model, Note, Result, bail, ensure};

/// Columns of an inertial measurement unit; angular accelerations may be missing.
const IMU: [&str; 9] =
    ["acc.x", "acc.y", "acc.z", "gyro.x", "gyro.y", "gyro.z", "alpha.x", "alpha.y", "alpha.z"];

/// Motion (rad or m) up to which joints beyond the sensor are considered to be still.
const STILL: f64 = 1e-3;

/// Noise bound of the default guaranteed intervals, in units of the rms residual.
const NOISE_BOUND: f64 = 3.0;

/// Returns options with the default intervals of a payload, for its mass and its centre of mass.
fn usual_intervals(options: &IdentifyOptions, result: &Identification) -> Option<IdentifyOptions> {
    let wanted = options.estimator == Estimator::Consistent
        && options.intervals.is_none()
        && !result.fit.is_empty()
        && result.fit.iter().all(|r| r.rms > 0.0);
    wanted.then(|| {
        options.clone().with(|o| {
            o.intervals = Some(IntervalOptions::default().with(|o| {
                o.quantities = vec![Quantity::Mass, Quantity::Com];
                o.noise =
                    NoiseBounds(result.fit.iter().map(|r| (r.joint.clone(), NOISE_BOUND * r.rms)).collect());
            }));
        })
    })
}

/// Logs of a force/torque sensor.
struct Data<'e> {
    /// Summaries for fit and validation.
    fit: Summary,
    validation: Summary,
    notes: Vec<Note>,
    logs: Vec<ReadLog>,
    single: &'e SingleBody,
    equations: &'e Equations<'e>,
}

/// Log of a force/torque sensor; samples from `cut` on are held out.
struct ReadLog {
    path: String,
    cut: usize,
    prepared: Prepared,
    sensor: SensorLog,
}

impl<'e> Data<'e> {
    /// Reads the logs, with the readings shifted by a lag.
    fn read(
        model: &Model,
        own: &Options,
        (single, equations): (&'e SingleBody, &'e Equations<'e>),
        lag: Option<f64>,
        context: &Context<'_>,
    ) -> Result<Self> {
        let (fit, validation) = (Summary::empty(equations), Summary::empty(equations));
        let mut out = Self { fit, validation, notes: Vec::new(), logs: Vec::new(), single, equations };
        let logs = own.logs.iter().map(|path| (path, own.holdout.unwrap_or(0.0)));
        let _work = context.work_on(own.logs.iter().chain(&own.validate));
        for (path, share) in logs.chain(own.validate.iter().map(|path| (path, 1.0))) {
            context.file(path);
            out.add(model, own, lag, (path, share), context)?;
            context.progress.share(1.0);
        }
        Ok(out)
    }

    /// Reads a log, of which a share is held out.
    fn add(
        &mut self,
        model: &Model,
        own: &Options,
        lag: Option<f64>,
        (path, share): (&str, f64),
        context: &Context<'_>,
    ) -> Result<()> {
        let (mechanism, equations) = (&model.mechanism, self.equations);
        let log = read(model, own, context, path)?;
        let mut options = own.log.options(&[]);
        options.lag = lag.unwrap_or(options.lag);
        let (prepared, motion, noise) = if log.column("acc.x").is_some() {
            let (prepared, motion) = from_imu(&log, options)?;
            let noise = imu_noise(&log, &prepared);
            (prepared, motion, Some(noise))
        } else {
            let (prepared, motion) = from_joints(&log, options, mechanism, &own.link).at(path)?;
            (prepared, motion, None)
        };
        let note = |text: &str| Note::Log { log: path.to_owned(), text: text.to_owned() };
        self.notes.extend(prepared.notes.iter().map(|text| note(text)));
        let width = prepared.extra.len() / prepared.len().max(1);
        let wrench = |all: &[f64]| all.chunks_exact(width.max(6)).flat_map(|r| r[..6].to_vec()).collect();
        let (filtered, raw): (Vec<f64>, Vec<f64>) = (wrench(&prepared.extra), wrench(&prepared.extra_raw));
        let keep: Vec<bool> = prepared.sound.iter().flat_map(|&k| [k; 6]).collect();
        let cut = ((1.0 - share) * prepared.len() as f64).round() as usize;
        for (range, to) in [(0..cut, &mut self.fit), (cut..prepared.len(), &mut self.validation)] {
            let six = 6 * range.start..6 * range.end;
            let measured = Wrenches {
                raw: Some(&raw[six.clone()]),
                keep: Some(&keep[six.clone()]),
                independent: prepared.independent(),
                ..Wrenches::new(&filtered[six])
            };
            let part = motion.part(range.clone());
            let mut summary = self.single.summary(equations, &part, &measured).at(path)?;
            if let Some(noise) = noise.filter(|_| range.start == 0 && share < 1.0) {
                let (without, taken) = noise.compensate(equations, summary);
                summary = without;
                if taken == Compensated::Nothing && !range.is_empty() {
                    self.notes.push(note(
                        "the noise of the inertial measurement unit is as large as the motion: estimates are too small; \
                         use a lower cut-off or the motion of the joints",
                    ));
                }
            }
            to.merge(&summary)?;
        }
        let sensor = SensorLog {
            motion,
            wrench: filtered,
            sound: prepared.sound.clone(),
            step: 1.0 / prepared.rate_hz,
        };
        self.logs.push(ReadLog { path: path.to_owned(), cut, prepared, sensor });
        Ok(())
    }

    /// Estimates the lag of the readings in the fitted parts of the logs.
    fn lag(&self) -> Result<Option<Deviation>> {
        let fitted = self.logs.iter().filter(|log| log.cut > 0).map(|log| SensorLog {
            motion: log.sensor.motion.part(0..log.cut),
            wrench: log.sensor.wrench[..6 * log.cut].to_vec(),
            sound: log.sensor.sound[..log.cut].to_vec(),
            step: log.sensor.step,
        });
        Ok(sensor_lag(&fitted.collect::<Vec<_>>())?)
    }

    /// Returns the measured and predicted readings.
    fn curves(&self, result: &Identification) -> Result<Curves> {
        let mut tracks = Vec::new();
        for ReadLog { path, cut, prepared, sensor } in &self.logs {
            let (cut, nq) = (*cut, prepared.q.len() / prepared.len().max(1));
            let parts =
                [(0..cut, "fit", &result.fit), (cut..prepared.len(), "validation", &result.validation)];
            for (range, part, residuals) in parts.into_iter().filter(|(range, ..)| !range.is_empty()) {
                let motion = sensor.motion.part(range.clone());
                tracks.push(PredictedSeries {
                    log: path.clone(),
                    part,
                    quantity: "force",
                    start: prepared.t[range.start],
                    rate: prepared.rate_hz,
                    reported: residuals.iter().map(ReportedResidual::from).collect(),
                    units: [["N"; 3], ["N m"; 3]].concat(),
                    measured: sensor.wrench[6 * range.start..6 * range.end].to_vec(),
                    predicted: self.single.readings(self.equations, &self.fit, &motion, result)?,
                    counts: prepared.sound[range.clone()].to_vec(),
                    q: prepared.q[nq * range.start..nq * range.end].to_vec(),
                });
            }
        }
        Ok(Curves::of_predictions(tracks))
    }
}

/// Identifies the body carried by a force/torque sensor. A significant lag of its readings is corrected.
pub(super) fn behind_sensor(
    model: &Model,
    own: &Options,
    context: &Context<'_>,
) -> Result<(Identification, Curves)> {
    let single = SingleBody::new(model.mechanism.name(), PAYLOAD)?;
    let equations = single.equations()?;
    let subject = (&single, &equations);
    let mut data = Data::read(model, own, subject, None, context)?;
    let mut found = data.lag()?;
    let mut notes = std::mem::take(&mut data.notes);
    let again = own.log.lag.is_none() && !own.logs.iter().chain(&own.validate).any(|log| log == "-");
    let mut corrected = None;
    if let Some(lag) = found.clone().filter(|lag| again && lag.is_certain_lag()) {
        // Notes about the logs were already emitted.
        let quiet = Quiet { progress: context.progress };
        let context = Context { progress: &quiet, ..*context };
        data = Data::read(model, own, subject, Some(lag.value), &context)?;
        found = data.lag()?;
        corrected = Some(lag);
    }
    let options = own.estimate.options(model, Subject::Body, context)?;
    let validation = (data.validation.samples > 0).then_some(&data.validation);
    let logs = own.logs.join(", ");
    let mut result = single.identify(&equations, &data.fit, validation, &options).at(&logs)?;
    if let Some(with_intervals) = usual_intervals(&options, &result) {
        // If no body explains the data within the noise bound, intervals are omitted.
        if let Ok(more) = single.identify(&equations, &data.fit, validation, &with_intervals) {
            result = more;
            let text = format!(
                "guaranteed intervals assume that no reading of the sensor is wrong by more than {NOISE_BOUND} times its rms residual"
            );
            notes.push(Note::Log { log: logs.clone(), text });
        }
    }
    ensure!(
        result.excited > 0,
        "{logs}: the sensor never rotates, so its offsets cannot be separated from the payload: hold it in several orientations"
    );
    result.set_deviations(found.into_iter().collect(), 1);
    if let Some(lag) = corrected {
        let lag = result.set_lag(lag.value, lag.std_error);
        notes.push(Note::SensorLag { seconds: lag.value, std_error: lag.std_error });
    }
    notes.iter().for_each(|note| context.note(note));
    let curves = if own.draw { data.curves(&result)? } else { Curves::of_predictions(Vec::new()) };
    Ok((result, curves))
}

/// Returns the forces and the motion of the sensor from an inertial measurement unit in the frame of the sensor.
fn from_imu(log: &Log, mut options: DataOptions) -> Result<(Prepared, SensorMotion)> {
    let columns = if log.column("alpha.x").is_some() { &IMU[..] } else { &IMU[..6] };
    options.extra = WRENCH_NAMES.iter().chain(columns).map(|&n| n.to_owned()).collect();
    let mut prepared = prepare_columns(log, columns, &options)?;
    let width = options.extra.len();
    let pick = |first: usize| -> Vec<f64> {
        prepared.extra.chunks_exact(width).flat_map(|r| r[first..first + 3].to_vec()).collect()
    };
    let gyro = pick(9);
    let alpha = if columns.len() == 9 { pick(12) } else { derivative(&gyro, 1.0 / prepared.rate_hz) };
    let motion = SensorMotion::from_imu(pick(6), gyro, alpha)?;
    // Derivatives at the two ends are inaccurate.
    let n = prepared.sound.len();
    (0..n).filter(|&i| i < 2 || i + 2 >= n).for_each(|i| prepared.sound[i] = false);
    Ok((prepared, motion))
}

/// Equivalent noise bandwidth of the forward-backward low-pass filter, in units of its cut-off: `∫ du/(1 + u⁸)²`.
const NOISE_BAND: f64 = 0.898;

/// Equivalent noise bandwidth of the derivative of that filter: `∫ u² du/(1 + u⁸)²`.
const NOISE_BAND_OF_DERIVATIVE: f64 = 0.266;

/// Estimates the noise variances of accelerations and angular accelerations in the frequency band of the equations.
/// White noise is separated from motion with third differences, which suppress slow signals; their variance is twenty
/// times that of the noise.
fn imu_noise(log: &Log, prepared: &Prepared) -> ImuNoise {
    let variance = |name: &str| {
        let x = log.column(name).unwrap_or_default();
        let thirds = x.windows(4).map(|w| w[3] - 3.0 * w[2] + 3.0 * w[1] - w[0]).filter(|d| d.is_finite());
        let (sum, count) = thirds.fold((0.0, 0usize), |(s, n), d| (s + d * d, n + 1));
        sum / (20.0 * count.max(1) as f64)
    };
    let of =
        |sensor: &str, share: f64| ["x", "y", "z"].map(|axis| share * variance(&format!("{sensor}.{axis}")));
    let nyquist = 0.5 * prepared.log_rate_hz;
    let in_band = prepared.cutoff_hz.map_or(1.0, |f| (NOISE_BAND * f / nyquist).min(1.0));
    let angular_acceleration = if log.column("alpha.x").is_some() {
        of("alpha", in_band)
    } else {
        // Noise of differences of the filtered angular velocity.
        let f = prepared.cutoff_hz.unwrap_or(nyquist).min(nyquist);
        of("gyro", NOISE_BAND_OF_DERIVATIVE * (std::f64::consts::TAU * f).powi(2) * f / nyquist)
    };
    ImuNoise { acceleration: of("acc", in_band), angular_acceleration }
}

/// Computes fourth-order central differences of three values per sample; zero for the two samples at each end.
fn derivative(x: &[f64], step: f64) -> Vec<f64> {
    let mut out = vec![0.0; x.len()];
    for i in 6..x.len().saturating_sub(6) {
        out[i] = (8.0 * (x[i + 3] - x[i - 3]) - (x[i + 6] - x[i - 6])) / (12.0 * step);
    }
    out
}

/// Returns the forces and the motion of the sensor from the joints.
fn from_joints(
    log: &Log,
    mut options: DataOptions,
    mechanism: &Mechanism,
    link: &str,
) -> Result<(Prepared, SensorMotion)> {
    options.extra = WRENCH_NAMES.iter().map(|&n| n.to_owned()).collect();
    (options.torques, options.poses) = (Requirement::Optional, true);
    let prepared = prepare(mechanism, log, &options)?;
    held_beyond(mechanism, link, &prepared)?;
    let motion = SensorMotion::from_joints(mechanism, link, &prepared.q, &prepared.v, &prepared.a)?;
    Ok((prepared, motion))
}

/// Returns the largest change of coordinates between consecutive samples, which detects motion between static poses.
fn change(log: &Prepared, nq: usize, coordinates: std::ops::Range<usize>) -> f64 {
    let samples: Vec<&[f64]> = log.q.chunks_exact(nq.max(1)).collect();
    let changes = samples.windows(2).flat_map(|w| coordinates.clone().map(|k| (w[1][k] - w[0][k]).abs()));
    changes.fold(0.0, f64::max)
}

/// Rejects joints that move within the load of the sensor.
fn held_beyond(mechanism: &Mechanism, link: &str, log: &Prepared) -> Result<()> {
    let Some(carrier) = mechanism.links().iter().find(|l| l.name == link).and_then(|l| l.body) else {
        return Ok(());
    };
    let bodies = mechanism.bodies();
    let beyond = |mut i: usize| loop {
        match bodies[i].parent {
            Some(p) if p == carrier => return true,
            Some(p) => i = p,
            None => return false,
        }
    };
    for body in (0..bodies.len()).filter(|&i| beyond(i)) {
        for v in bodies[body].v_range() {
            let speeds = log.v.iter().skip(v).step_by(mechanism.nv().max(1));
            let path: f64 = speeds.map(|x| x.abs()).sum::<f64>() / log.rate_hz;
            if path > STILL
                || (path == 0.0
                    && change(log, mechanism.nq(), mechanism.joints()[bodies[body].joint].q_range()) > STILL)
            {
                let name = &mechanism.joints()[bodies[body].joint].name;
                bail!("the joint {name} moves parts of the load of the sensor on {link}: keep it still");
            }
        }
    }
    Ok(())
}
