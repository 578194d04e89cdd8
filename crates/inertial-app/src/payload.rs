//! Identification of a payload carried by one link.

use inertial::estimation::{
    Compensated, Equations, Estimator, Identification, IdentifyOptions, ImuNoise, IntervalOptions,
    NoiseBounds, PayloadLink, Quantity, SensorMotion, SingleBody, Summary, Term, Unloaded, WRENCH_NAMES,
    Wrenches, identify_payload, validate,
};
use inertial::mechanism::{DEFAULT_SNAP, Mechanism, write};
use inertial::spatial::{Inertia, Parameters};
use inertial_data::{Log, Options as DataOptions, Prepared, Requirement, prepare, prepare_columns};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::curves::{Curves, LogSegment, PredictedSeries, ReportedResidual};
use crate::estimate::{Estimate, Subject};
use crate::identify::{check_holdout, check_writable};
use crate::logs::LogOptions;
use crate::recording::Recording;
use crate::summary_file::saved_summary;
use crate::unknowns::Unknowns;
use crate::{Context, Located, Model, Note, Result, bail, ensure, ensure_option};

/// Name of the payload in results.
pub(crate) const PAYLOAD: &str = "payload";

/// Columns of an inertial measurement unit; angular accelerations may be missing.
const IMU: [&str; 9] =
    ["acc.x", "acc.y", "acc.z", "gyro.x", "gyro.y", "gyro.z", "alpha.x", "alpha.y", "alpha.z"];

/// Motion (rad or m) up to which joints beyond the sensor are considered to be still.
const HELD: f64 = 1e-3;

/// Options of a payload's identification.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Options {
    /// Link that carries the payload.
    pub link: String,
    /// Logs with the payload: of a force/torque sensor on the link, or of joint torques.
    pub logs: Vec<String>,
    /// Logs of the robot without the payload; if empty, the model describes the unloaded robot.
    pub unloaded: Vec<String>,
    /// Logs with the payload to validate with.
    pub validate: Vec<String>,
    /// Fraction at the end of each log that is held out for validation.
    pub holdout: Option<f64>,
    /// Joint terms.
    pub unknowns: Unknowns,
    /// Estimation options.
    pub estimate: Estimate,
    /// Preparation of the logs.
    pub log: LogOptions,
    /// Whether the model with the payload added to the link is written.
    pub write: bool,
    /// Whether the outcome contains curves for plots.
    pub draw: bool,
}

inertial::with_changes!(Options);

impl Options {
    /// Checks the options.
    pub fn check(&self) -> Result<()> {
        ensure_option!(
            !self.estimate.is_robust(),
            "estimator",
            "expected ols, wls or consistent for a payload, not irls"
        );
        ensure_option!(
            matches!(self.estimate.prior.as_str(), "model" | "none"),
            "prior",
            "expected 'model' (a ball of water with the measured mass) or 'none' for a payload, not {}",
            self.estimate.prior
        );
        self.log.check()?;
        check_holdout(self.holdout, &self.validate)
    }

    /// Returns the names of all inputs except the model.
    pub fn files(&self) -> Vec<String> {
        let logs = self.logs.iter().chain(&self.validate).chain(&self.unloaded).cloned();
        logs.chain(self.log.files()).chain(self.unknowns.files()).chain(self.estimate.files()).collect()
    }
}

/// Parameters of a payload.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Outcome {
    /// Result of the estimation.
    #[serde(flatten)]
    pub result: Identification,
    /// Link that carries the payload, in whose frame the body is expressed.
    pub link: String,
    /// Text of the model with the payload added to the link, if requested.
    #[serde(skip)]
    pub model: Option<String>,
    /// Measured and predicted forces, if requested.
    #[serde(skip)]
    pub curves: Option<Curves>,
}

impl Outcome {
    /// Returns the inertia of the payload in the frame of the link.
    pub fn inertia(&self) -> Inertia<f64> {
        Inertia::from_parameters(&Parameters::from_column_slice(&self.result.parameters))
    }
}

/// Identifies a payload.
pub fn run(model: &Model, options: &Options, context: &Context<'_>) -> Result<Outcome> {
    options.check()?;
    let (mechanism, link) = (&model.mechanism, options.link.as_str());
    if options.write {
        check_writable(model)?;
    }
    let exists = mechanism.links().iter().any(|l| l.name == link);
    let names: Vec<&str> = mechanism.links().iter().map(|l| l.name.as_str()).collect();
    let near = inertial::nearest_hint(link, names.iter().copied());
    let known = if near.is_empty() { format!("; there are {}", names.join(", ")) } else { near };
    ensure!(exists, "{}: has no link {link}{known}", model.label);
    let sensed = match options.logs.first() {
        Some(name) if options.unloaded.is_empty() && saved_summary(context, name)?.is_none() => {
            has_sensor(model, options, context, name)?
        }
        _ => false,
    };
    let (result, curves) =
        if sensed { behind_sensor(model, options, context)? } else { from_torques(model, options, context)? };
    let mut out =
        Outcome { result, link: link.to_owned(), model: None, curves: options.draw.then_some(curves) };
    if options.write {
        if out.result.joints.iter().any(|j| j.rotor_inertia.is_some()) {
            context.note(&Note::NoRotorsInUrdf);
        }
        out.model = Some(loaded_model(model, &out)?);
    }
    Ok(out)
}

fn read(model: &Model, own: &Options, context: &Context<'_>, name: &str) -> Result<Log> {
    Ok(Log::collect(own.log.reader(context, Some(&model.mechanism), name)?)?)
}

/// Returns whether the log contains a force/torque sensor; fails if it has no forces at all.
fn has_sensor(model: &Model, own: &Options, context: &Context<'_>, name: &str) -> Result<bool> {
    let log = read(model, own, context, name)?;
    let has = |prefix: &str| log.names().iter().any(|n| n.starts_with(prefix));
    ensure!(has("ft.") || has("tau"), "{name}: has neither ft.fx … ft.tz nor torques of joints (tau.JOINT)");
    Ok(has("ft."))
}

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

/// Identifies the body carried by a force/torque sensor.
fn behind_sensor(model: &Model, own: &Options, context: &Context<'_>) -> Result<(Identification, Curves)> {
    let mechanism = &model.mechanism;
    let single = SingleBody::new(mechanism.name(), PAYLOAD)?;
    let equations = single.equations()?;
    let (mut all, mut kept) = (Summary::empty(&equations), Summary::empty(&equations));
    let mut notes = Vec::new();
    let mut shown = Vec::new();
    let logs = own.logs.iter().map(|path| (path, own.holdout.unwrap_or(0.0)));
    let work = context.work_on(own.logs.iter().chain(&own.validate));
    for (path, share) in logs.chain(own.validate.iter().map(|path| (path, 1.0))) {
        context.file(path);
        let log = read(model, own, context, path)?;
        let options = own.log.options(&[]);
        let (prepared, motion, noise) = if log.column("acc.x").is_some() {
            let (prepared, motion) = from_imu(&log, options)?;
            let noise = imu_noise(&log, &prepared);
            (prepared, motion, Some(noise))
        } else {
            let (prepared, motion) = from_joints(&log, options, mechanism, &own.link).at(path)?;
            (prepared, motion, None)
        };
        notes.extend(prepared.notes.iter().map(|text| Note::Log { log: path.clone(), text: text.clone() }));
        let width = prepared.extra.len() / prepared.len().max(1);
        let wrench = |all: &[f64]| all.chunks_exact(width.max(6)).flat_map(|r| r[..6].to_vec()).collect();
        let (filtered, raw): (Vec<f64>, Vec<f64>) = (wrench(&prepared.extra), wrench(&prepared.extra_raw));
        let keep: Vec<bool> = prepared.sound.iter().flat_map(|&k| [k; 6]).collect();
        let cut = ((1.0 - share) * prepared.len() as f64).round() as usize;
        for (range, to) in [(0..cut, &mut all), (cut..prepared.len(), &mut kept)] {
            let six = 6 * range.start..6 * range.end;
            let measured = Wrenches {
                raw: Some(&raw[six.clone()]),
                keep: Some(&keep[six.clone()]),
                independent: prepared.independent(),
                ..Wrenches::new(&filtered[six])
            };
            let part = motion.part(range.clone());
            let mut summary = single.summary(&equations, &part, &measured).at(path)?;
            if let Some(noise) = noise.filter(|_| range.start == 0 && share < 1.0) {
                let (without, taken) = noise.compensate(&equations, summary);
                summary = without;
                if taken == Compensated::Nothing && !range.is_empty() {
                    let text = "the noise of the inertial measurement unit is as large as the motion: estimates are too small; \
                                use a lower cut-off or the motion of the joints";
                    notes.push(Note::Log { log: path.clone(), text: text.into() });
                }
            }
            to.merge(&summary)?;
        }
        if own.draw {
            shown.push((path, cut, prepared, motion, filtered));
        }
        context.progress.share(1.0);
    }
    drop(work);
    let options = own.estimate.options(model, Subject::Body, context)?;
    let validation = (kept.samples > 0).then_some(&kept);
    let logs = own.logs.join(", ");
    let mut result = single.identify(&equations, &all, validation, &options).at(&logs)?;
    if let Some(asked) = usual_intervals(&options, &result) {
        // If no body explains the data within the noise bound, intervals are omitted.
        if let Ok(more) = single.identify(&equations, &all, validation, &asked) {
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
    notes.iter().for_each(|note| context.note(note));
    let mut tracks = Vec::new();
    for (path, cut, prepared, motion, measured) in shown {
        let nq = prepared.q.len() / prepared.len().max(1);
        let parts = [(0..cut, "fit", &result.fit), (cut..prepared.len(), "validation", &result.validation)];
        for (range, part, residuals) in parts.into_iter().filter(|(range, ..)| !range.is_empty()) {
            tracks.push(PredictedSeries {
                log: path.clone(),
                part,
                quantity: "force",
                start: prepared.t[range.start],
                rate: prepared.rate_hz,
                reported: residuals.iter().map(ReportedResidual::from).collect(),
                units: [["N"; 3], ["N m"; 3]].concat(),
                measured: measured[6 * range.start..6 * range.end].to_vec(),
                predicted: single.readings(&equations, &all, &motion.part(range.clone()), &result)?,
                counts: prepared.sound[range.clone()].to_vec(),
                q: prepared.q[nq * range.start..nq * range.end].to_vec(),
            });
        }
    }
    Ok((result, Curves::of_predictions(tracks)))
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
            if path > HELD
                || (path == 0.0
                    && change(log, mechanism.nq(), mechanism.joints()[bodies[body].joint].q_range()) > HELD)
            {
                let name = &mechanism.joints()[bodies[body].joint].name;
                bail!("the joint {name} moves parts of the load of the sensor on {link}: keep it still");
            }
        }
    }
    Ok(())
}

/// Use of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    /// Log with the payload, for the fit.
    Loaded,
    /// Log without the payload.
    Unloaded,
    /// Log with the payload, for validation.
    Validation,
}

/// Identifies the payload from the difference that it makes in the torques.
fn from_torques(model: &Model, own: &Options, context: &Context<'_>) -> Result<(Identification, Curves)> {
    let mechanism = &model.mechanism;
    // Friction of the model is taken as known unless its estimation is requested.
    let in_model = mechanism.joints().iter().any(|j| j.dynamics.damping != 0.0 || j.dynamics.friction != 0.0);
    let friction = if in_model { own.unknowns.friction } else { own.unknowns.given_friction() };
    let mut joint_model = own.unknowns.given_joint_model(model, context)?;
    ensure_option!(
        !joint_model.stribeck,
        "friction",
        "expected friction that is linear in its unknowns for a payload, not stribeck"
    );
    joint_model.search_couplings = false;
    let alone = own.unloaded.is_empty();
    // Without an unloaded log the model is the reference; its friction is used unless its estimation is requested.
    let equations = if alone {
        joint_model.terms.viscous = true;
        joint_model.terms.coulomb = !joint_model.asymmetric;
        Equations::with_all_terms(mechanism, joint_model, DEFAULT_SNAP)
    } else {
        Equations::new(mechanism, joint_model, DEFAULT_SNAP)
    };
    let equations = equations.at(&model.label)?;
    let carrier = PayloadLink::new(&equations, &own.link).at(&model.label)?;
    let mut loaded = Summary::empty(&equations);
    let (mut unloaded, mut kept) = (loaded.clone(), loaded.clone());
    let mut shown = Vec::new();
    let all =
        |paths: &[String], role: Role| paths.iter().map(|path| (path.clone(), role)).collect::<Vec<_>>();
    let logs = [
        all(&own.logs, Role::Loaded),
        all(&own.unloaded, Role::Unloaded),
        all(&own.validate, Role::Validation),
    ];
    let work = context.work_on(own.logs.iter().chain(&own.unloaded).chain(&own.validate));
    let options_of_logs = LogOptions { poses: true, ..own.log.clone() };
    for (path, role) in logs.into_iter().flatten() {
        if let Some(summary) = saved_summary(context, &path)? {
            ensure_option!(
                own.holdout.is_none() || role != Role::Loaded,
                "holdout",
                "{path} is a summary: holding out a part needs the log itself"
            );
            summary.check(&equations).at(&path)?;
            own.log.check_summary(&path, &summary)?;
            match role {
                Role::Loaded => &mut loaded,
                Role::Unloaded => &mut unloaded,
                Role::Validation => &mut kept,
            }
            .merge(&summary)?;
            continue;
        }
        let mut log = Recording::open(context, &options_of_logs, &equations, None, &path)?;
        let (first, last) = match (role, own.holdout) {
            (Role::Loaded, Some(fraction)) => log.hold_out(fraction)?,
            (Role::Validation, _) => (0..0, 0..log.len()),
            _ => (0..log.len(), 0..0),
        };
        let fitted = if role == Role::Unloaded { &mut unloaded } else { &mut loaded };
        fitted.merge(&log.summary(context, &equations, first.clone(), None)?)?;
        kept.merge(&log.summary(context, &equations, last.clone(), None)?)?;
        if role != Role::Unloaded && own.draw {
            shown.push((log, first, last));
        }
    }
    drop(work);
    let free: Vec<bool> = equations
        .terms
        .iter()
        .map(|(_, term)| match term {
            Term::Viscous => friction.is_viscous(),
            Term::Coulomb => friction.is_coulomb(),
            // Most models do not contain rotor inertias, although the joint torques do.
            Term::RotorInertia => model.wants_rotors(),
            _ => true,
        })
        .collect();
    let known = if alone { Unloaded::Model { free: &free } } else { Unloaded::Log(&unloaded) };
    let options = own.estimate.options(model, Subject::Body, context)?;
    let mut result =
        identify_payload(&equations, &carrier, &loaded, known, &options).at(own.logs.join(", "))?;
    if kept.samples > 0 {
        let judged = validate(&equations, &kept, &result.values).at("validation")?;
        result.validation_relative_rms = Some(judged.relative_rms);
        result.validation = judged.joints;
    }
    let pieces = shown.iter_mut().map(|(log, first, last)| {
        let parts = [(first, "fit", &result.fit), (last, "validation", &result.validation)];
        let parts = parts.into_iter().filter(|(range, ..)| range.start < range.end);
        (log, parts.map(|(range, part, residuals)| LogSegment::new(range.clone(), part, residuals)).collect())
    });
    let curves = Curves::collect(context, &equations, &result.values, pieces.collect())?;
    Ok((result, curves))
}

/// Returns the text of the model with the payload added to the link.
fn loaded_model(model: &Model, found: &Outcome) -> Result<String> {
    let link = found.link.as_str();
    let own = model.mechanism.links().iter().find(|l| l.name == link).and_then(|l| l.inertia);
    let inertia = own.unwrap_or_else(Inertia::zero) + found.inertia();
    write::replace_inertias(&model.target().text, &[(link, inertia)]).at(&model.label)
}
