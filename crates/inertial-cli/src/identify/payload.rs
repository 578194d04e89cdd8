//! `identify --payload LINK`: only what one link carries.

use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use inertial::estimation::{
    Equations, Identification, PayloadLink, SensorMotion, SingleBody, Summary, Term, Unloaded, WRENCH_NAMES,
    Wrenches, identify_payload, validate,
};
use inertial::mechanism::write::urdf::NewValues;
use inertial::mechanism::{DEFAULT_SNAP, Mechanism};
use inertial::spatial::{Inertia, Parameters};
use inertial_data::{Log, Need, Options, Prepared, prepare, prepare_columns};

use super::{Args, EstimatorChoice, FrictionChoice, written};
use crate::curves::{Curves, Piece, Told, Track};
use crate::logs::saved_summary;
use crate::model::Model;
use crate::output::{self, Answer, Files};
use crate::page;
use crate::progress::{self, Work};
use crate::recording::Recording;

/// Name of what the link carries, in results.
const PAYLOAD: &str = "payload";

/// Columns of an inertial measurement unit; angular accelerations may be missing.
const IMU: [&str; 9] =
    ["acc.x", "acc.y", "acc.z", "gyro.x", "gyro.y", "gyro.z", "alpha.x", "alpha.y", "alpha.z"];

/// Joints beyond the sensor may move by this much (rad or m) and still count as held.
const HELD: f64 = 1e-3;

pub fn run(args: &Args, link: &str) -> Result<Answer> {
    let model = Model::load(&args.model)?;
    let mechanism = model.build(&args.options.build_options())?;
    written::check(args, &model)?;
    ensure!(
        args.out.is_none() || model.text.trim_start().starts_with('<'),
        "{}: --out adds a payload to a URDF, not to a mechanism file",
        model.label
    );
    ensure!(
        !matches!(args.estimator, Some(EstimatorChoice::Irls)),
        "--estimator irls weighs the samples of joint torques of a whole robot: a payload takes ols, wls, lmi, manifold or log-cholesky"
    );
    ensure!(
        matches!(args.prior.as_str(), "model" | "none"),
        "--prior {}: a payload takes 'model' (a ball of water with the measured mass) or 'none'",
        args.prior
    );
    let exists = mechanism.links().iter().any(|l| l.name == link);
    let names: Vec<&str> = mechanism.links().iter().map(|l| l.name.as_str()).collect();
    let near = inertial::nearest_hint(link, names.iter().copied());
    let known = if near.is_empty() { format!("; there are {}", names.join(", ")) } else { near };
    ensure!(exists, "{}: has no link {link}{known}", model.label);
    let sensed = match args.logs.first() {
        Some(path) if args.unloaded.is_empty() && saved_summary(path)?.is_none() => has_sensor(path)?,
        _ => false,
    };
    let (result, curves) = if sensed {
        behind_sensor(args, &mechanism, link)?
    } else {
        from_torques(args, &model, &mechanism, link)?
    };
    let mut files = Files::default();
    if let Some(path) = &args.out {
        if result.joints.iter().any(|j| j.rotor_inertia.is_some()) {
            output::say("a URDF has no place for reflected rotor inertias: they are in the result only");
        }
        files.add(path, &loaded_model(&model, &mechanism, link, &result)?)?;
    }
    let drawn = args
        .pictures
        .draw(&args.files(), &mut files, || page::of_payload(&model, &mechanism, link, &result, curves))?;
    files.finish()?;
    if args.json {
        output::print_json(&result)?;
    } else {
        output::print(&(super::told::text(&result) + &drawn))?;
    }
    Ok(Answer::Yes)
}

/// Whether the log is one of a force/torque sensor; refused where it has no forces at all.
fn has_sensor(path: &str) -> Result<bool> {
    let log = Log::read(Path::new(path))?;
    let has = |prefix: &str| log.names().iter().any(|n| n.starts_with(prefix));
    ensure!(has("ft.") || has("tau"), "{path}: has neither ft.fx … ft.tz nor torques of joints (tau.JOINT)");
    Ok(has("ft."))
}

/// The body beyond a force/torque sensor.
fn behind_sensor(args: &Args, mechanism: &Mechanism, link: &str) -> Result<(Identification, Curves)> {
    let single = SingleBody::new(mechanism.name(), PAYLOAD)?;
    let equations = single.equations()?;
    let (mut all, mut kept) = (Summary::empty(&equations), Summary::empty(&equations));
    let mut notes = Vec::new();
    let mut shown = Vec::new();
    let logs = args.logs.iter().map(|path| (path, args.holdout.unwrap_or(0.0)));
    let work = Work::on_files(args.logs.iter().chain(&args.validate));
    for (path, share) in logs.chain(args.validate.iter().map(|path| (path, 1.0))) {
        progress::file(path);
        let log = Log::read(Path::new(path))?;
        let options = args.log.options(&[]);
        let (prepared, motion) = if log.column("acc.x").is_some() {
            from_imu(&log, options)?
        } else {
            from_joints(&log, options, mechanism, link).with_context(|| path.clone())?
        };
        notes.extend(prepared.notes.iter().map(|note| format!("{path}: {note}")));
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
            let part = motion.part(range);
            to.merge(&single.summary(&equations, &part, &measured).with_context(|| path.clone())?)?;
        }
        if args.pictures.wanted() {
            shown.push((path, cut, prepared, motion, filtered));
        }
        progress::at(1.0);
    }
    drop(work);
    let options = super::options(args, mechanism)?;
    let validation = (kept.samples > 0).then_some(&kept);
    let result =
        single.identify(&equations, &all, validation, &options).with_context(|| args.logs.join(", "))?;
    ensure!(
        result.excited > 0,
        "{}: the sensor never turns: its offsets hide the body; hold it in several orientations at least",
        args.logs.join(", ")
    );
    notes.iter().for_each(|note| output::say(note));
    let mut tracks = Vec::new();
    for (path, cut, prepared, motion, measured) in shown {
        let nq = prepared.q.len() / prepared.len().max(1);
        let parts = [(0..cut, "fit", &result.fit), (cut..prepared.len(), "validation", &result.validation)];
        for (range, part, residuals) in parts.into_iter().filter(|(range, ..)| !range.is_empty()) {
            tracks.push(Track {
                log: path.clone(),
                part,
                quantity: "force",
                start: prepared.t[range.start],
                rate: prepared.rate_hz,
                told: residuals.iter().map(Told::from).collect(),
                units: [["N"; 3], ["N m"; 3]].concat(),
                measured: measured[6 * range.start..6 * range.end].to_vec(),
                predicted: single.readings(&equations, &all, &motion.part(range.clone()), &result)?,
                counts: prepared.sound[range.clone()].to_vec(),
                q: prepared.q[nq * range.start..nq * range.end].to_vec(),
            });
        }
    }
    Ok((result, Curves::of_tracks(tracks)))
}

/// Forces and the motion of the sensor, from an inertial measurement unit in the sensor's frame.
fn from_imu(log: &Log, mut options: Options) -> Result<(Prepared, SensorMotion)> {
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
    // One-sided differences at the ends are worth little.
    let n = prepared.sound.len();
    (0..n).filter(|&i| i < 2 || i + 2 >= n).for_each(|i| prepared.sound[i] = false);
    Ok((prepared, motion))
}

/// Central differences of fourth order of three numbers per sample; zero at the two ends.
fn derivative(x: &[f64], step: f64) -> Vec<f64> {
    let mut out = vec![0.0; x.len()];
    for i in 6..x.len().saturating_sub(6) {
        out[i] = (8.0 * (x[i + 3] - x[i - 3]) - (x[i + 6] - x[i - 6])) / (12.0 * step);
    }
    out
}

/// Forces and the motion of the sensor, from the joints.
fn from_joints(
    log: &Log,
    mut options: Options,
    mechanism: &Mechanism,
    link: &str,
) -> Result<(Prepared, SensorMotion)> {
    options.extra = WRENCH_NAMES.iter().map(|&n| n.to_owned()).collect();
    options.torques = Need::Optional;
    let prepared = prepare(mechanism, log, &options)?;
    held_beyond(mechanism, link, &prepared)?;
    let motion = SensorMotion::from_joints(mechanism, link, &prepared.q, &prepared.v, &prepared.a)?;
    Ok((prepared, motion))
}

/// Refuses joints that move parts of what the sensor carries.
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
            if path > HELD {
                let name = &mechanism.joints()[bodies[body].joint].name;
                bail!("the joint {name} moves what the sensor on {link} carries: hold it still");
            }
        }
    }
    Ok(())
}

/// What a log is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Loaded,
    Unloaded,
    /// With the payload, to judge by.
    Kept,
}

/// The difference that a payload makes in the torques.
fn from_torques(
    args: &Args,
    model: &Model,
    mechanism: &Mechanism,
    link: &str,
) -> Result<(Identification, Curves)> {
    let mut joint_model = super::joint_model(args, mechanism)?;
    ensure!(
        !joint_model.stribeck,
        "--friction stribeck: a payload takes friction that is linear in its unknowns"
    );
    joint_model.search_couplings = false;
    let alone = args.unloaded.is_empty();
    // One log alone is compared with the model, whose friction counts where it is not asked for anew.
    let equations = if alone {
        joint_model.terms.viscous = true;
        joint_model.terms.coulomb = !joint_model.asymmetric;
        Equations::with_all_terms(mechanism, joint_model, DEFAULT_SNAP)
    } else {
        Equations::new(mechanism, joint_model, DEFAULT_SNAP)
    };
    let equations = equations.with_context(|| model.label.clone())?;
    let carrier = PayloadLink::new(&equations, link).with_context(|| model.label.clone())?;
    let mut loaded = Summary::empty(&equations);
    let (mut unloaded, mut kept) = (loaded.clone(), loaded.clone());
    let mut shown = Vec::new();
    let all =
        |paths: &[String], role: Role| paths.iter().map(|path| (path.clone(), role)).collect::<Vec<_>>();
    let logs =
        [all(&args.logs, Role::Loaded), all(&args.unloaded, Role::Unloaded), all(&args.validate, Role::Kept)];
    let work = Work::on_files(args.logs.iter().chain(&args.unloaded).chain(&args.validate));
    for (path, role) in logs.into_iter().flatten() {
        if let Some(summary) = saved_summary(&path)? {
            ensure!(
                args.holdout.is_none() || role != Role::Loaded,
                "{path}: --holdout needs the log itself, not its summary"
            );
            summary.check(&equations).with_context(|| path.clone())?;
            match role {
                Role::Loaded => &mut loaded,
                Role::Unloaded => &mut unloaded,
                Role::Kept => &mut kept,
            }
            .merge(&summary)?;
            continue;
        }
        let mut log = Recording::open(&args.log, &equations, None, &path)?;
        let (first, last) = match (role, args.holdout) {
            (Role::Loaded, Some(fraction)) => log.hold_out(fraction)?,
            (Role::Kept, _) => (0..0, 0..log.len()),
            _ => (0..log.len(), 0..0),
        };
        let fitted = if role == Role::Unloaded { &mut unloaded } else { &mut loaded };
        fitted.merge(&log.summary(&equations, first.clone(), None)?)?;
        kept.merge(&log.summary(&equations, last.clone(), None)?)?;
        if role != Role::Unloaded && args.pictures.wanted() {
            shown.push((log, first, last));
        }
    }
    drop(work);
    let free: Vec<bool> = equations
        .terms
        .iter()
        .map(|(_, term)| match term {
            Term::Viscous => !matches!(args.friction, FrictionChoice::None | FrictionChoice::Coulomb),
            Term::Coulomb => !matches!(args.friction, FrictionChoice::None | FrictionChoice::Viscous),
            // Most models have none, and the joints' torques contain it.
            Term::RotorInertia => args.options.wants_rotors(),
            _ => true,
        })
        .collect();
    let known = if alone { Unloaded::Model { free: &free } } else { Unloaded::Log(&unloaded) };
    let options = super::options(args, mechanism)?;
    let mut result = identify_payload(&equations, &carrier, &loaded, known, &options)
        .with_context(|| args.logs.join(", "))?;
    if kept.samples > 0 {
        let judged = validate(&equations, &kept, &result.values).context("--holdout, --validate")?;
        result.validation_relative_rms = Some(judged.relative_rms);
        result.validation = judged.joints;
    }
    let pieces = shown.iter_mut().map(|(log, first, last)| {
        let parts = [(first, "fit", &result.fit), (last, "validation", &result.validation)];
        let parts = parts.into_iter().filter(|(range, ..)| range.start < range.end);
        (log, parts.map(|(range, part, residuals)| Piece::new(range.clone(), part, residuals)).collect())
    });
    let curves = Curves::collect(&equations, &result.values, pieces.collect())?;
    Ok((result, curves))
}

/// The model's text with the payload added to the link.
fn loaded_model(model: &Model, mechanism: &Mechanism, link: &str, result: &Identification) -> Result<String> {
    let own = mechanism.links().iter().find(|l| l.name == link).and_then(|l| l.inertia);
    let payload = Inertia::from_parameters(&Parameters::from_column_slice(&result.parameters));
    let links = vec![(link, own.unwrap_or_else(Inertia::zero) + payload)];
    NewValues { links, joints: Vec::new() }.write(&model.text).with_context(|| model.label.clone())
}
