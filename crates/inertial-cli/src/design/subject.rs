//! What is to be known of a model, how it is measured, and the room it moves in.

use anyhow::{Context, Result, bail, ensure};
use inertial::estimation::{Equations, JointTerms, information_matrix};
use inertial::excitation::{JointColumn, Room, Stribeck, Subject};
use inertial::identifiability::{AnalyzeOptions, Measured, Regrouping, Status, analyze};
use inertial::mechanism::{Base, BodyKind, BuildOptions, DEFAULT_SNAP, JointType, Mechanism};
use nalgebra::{DMatrix, Vector3};

use super::Args;
use crate::identify::FrictionChoice;
use crate::logs::saved_summary;
use crate::model::Model;

/// What is measured.
pub fn measured(args: &Args, mechanism: &Mechanism) -> Measured {
    let floating = mechanism.base() == Base::Floating;
    args.measured.map_or(if floating { Measured::Both } else { Measured::JointTorques }, Into::into)
}

/// The robot on a force plate: where the base is fixed and its wrench measured, the same robot with a base that could move but
/// rests has that wrench among its forces.
pub fn on_plate(args: &Args, model: &Model, mechanism: &Mechanism) -> Result<Option<Mechanism>> {
    if mechanism.base() == Base::Floating || measured(args, mechanism) != Measured::BaseWrench {
        return Ok(None);
    }
    let options = BuildOptions { base: Some(Base::Floating), ..args.options.build_options() };
    model.build(&options).context("--measured base-wrench").map(Some)
}

/// What is to be known of a model, and how it is measured.
pub fn subject<'m>(
    args: &Args,
    mechanism: &'m Mechanism,
    plate: Option<&'m Mechanism>,
) -> Result<Subject<'m>> {
    let measured = measured(args, mechanism);
    ensure!(
        mechanism.base() == Base::Floating || measured != Measured::Both,
        "--measured both: designs with a fixed base are for joint torques or for the base wrench"
    );
    let analysis = analyze(
        mechanism,
        &AnalyzeOptions {
            measured: Some(measured),
            torque_joints: args.joints.clone(),
            ..AnalyzeOptions::default()
        },
    )?;
    let regrouping = match plate {
        Some(plate) => carried(analysis.regrouping.listed()?, mechanism, plate)?,
        None => analysis.regrouping.listed()?,
    };
    let mechanism = plate.unwrap_or(mechanism);
    let mut subject = Subject {
        mechanism,
        regrouping,
        terms: terms(args, mechanism),
        noise: noise(args, mechanism, measured)?,
        effort: effort(mechanism, args.margin),
        prior: None,
    };
    subject.prior = prior(args, &subject)?;
    Ok(subject)
}

/// The same base parameters in the columns of another mechanism that has all the parameters of the first, by their names.
fn carried(mut regrouping: Regrouping, from: &Mechanism, to: &Mechanism) -> Result<Regrouping> {
    let names = to.parameter_names();
    let place = from
        .parameter_names()
        .iter()
        .map(|name| names.iter().position(|n| n == name))
        .collect::<Option<Vec<usize>>>()
        .context("--measured base-wrench: with a base that moves the model has other parameters")?;
    let mut status = vec![Status::Unidentifiable; names.len()];
    place.iter().zip(&regrouping.status).for_each(|(&at, s)| status[at] = *s);
    regrouping.base.iter_mut().for_each(|c| *c = place[*c]);
    regrouping.combinations.iter_mut().flatten().for_each(|(c, _)| *c = place[*c]);
    Ok(Regrouping { parameters: names.len(), status, ..regrouping })
}

/// Terms of the joints that identify would estimate.
fn terms(args: &Args, mechanism: &Mechanism) -> Vec<(usize, JointColumn)> {
    let wanted = joint_terms(args);
    let mut out = Vec::new();
    for (index, joint) in mechanism.joints().iter().enumerate().filter(|(_, j)| j.follows.is_none()) {
        if matches!(joint.joint_type, JointType::Floating | JointType::Spherical | JointType::Planar { .. }) {
            continue;
        }
        let rotors =
            |b: &&inertial::mechanism::Body| matches!(b.kind, BodyKind::Rotor | BodyKind::SymmetricRotor);
        let has_rotor = mechanism.bodies().iter().filter(rotors).any(|b| b.joint == index);
        for v in joint.v_range() {
            let rotor = (wanted.rotor_inertia && !has_rotor) || mechanism.armature()[v] > 0.0;
            let asymmetric = matches!(args.friction, FrictionChoice::Asymmetric);
            let bent = matches!(args.friction, FrictionChoice::Stribeck);
            let about = stribeck(args, joint.dynamics.friction);
            let choices = [
                (wanted.viscous, JointColumn::Viscous),
                (wanted.coulomb, JointColumn::Coulomb),
                (asymmetric, JointColumn::CoulombPositive),
                (asymmetric, JointColumn::CoulombNegative),
                (bent, JointColumn::Stribeck(about)),
                (bent, JointColumn::StribeckVelocity(about)),
                (wanted.offset, JointColumn::Offset),
                (rotor, JointColumn::RotorInertia),
            ];
            out.extend(choices.into_iter().filter(|c| c.0).map(|c| (v, c.1)));
        }
    }
    out
}

/// The friction at rest that a design is made about: given, or as large as the Coulomb friction of the model.
fn stribeck(args: &Args, coulomb: f64) -> Stribeck {
    match args.stribeck.as_deref() {
        Some(&[force, speed, exponent]) => Stribeck { force, speed, exponent },
        _ => Stribeck { force: if coulomb > 0.0 { coulomb } else { 1.0 }, speed: 0.1, exponent: 2.0 },
    }
}

fn joint_terms(args: &Args) -> JointTerms {
    use FrictionChoice::{Asymmetric, Both, Coulomb, Stribeck, Viscous};
    JointTerms {
        viscous: matches!(args.friction, Viscous | Both | Asymmetric | Stribeck),
        coulomb: matches!(args.friction, Coulomb | Both | Stribeck),
        offset: args.offset,
        rotor_inertia: args.options.wants_rotors(),
    }
}

/// Standard deviation of each coordinate's force; infinite where it is not measured.
fn noise(args: &Args, mechanism: &Mechanism, measured: Measured) -> Result<Vec<f64>> {
    let names = mechanism.velocity_names();
    let base = if mechanism.base() == Base::Floating { 6 } else { 0 };
    let mut out = vec![1.0; mechanism.nv()];
    for setting in &args.noise {
        let expected = || format!("--noise {setting}: expected KEY=X with X above zero, like tau=0.1");
        let (key, value) = setting.split_once('=').with_context(expected)?;
        let value: f64 =
            value.trim().parse().ok().filter(|x: &f64| *x > 0.0 && x.is_finite()).with_context(expected)?;
        match key.trim() {
            "tau" => out[base..].fill(value),
            "wrench.f" if base > 0 => out[..3].fill(value),
            "wrench.t" if base > 0 => out[3..6].fill(value),
            other => {
                let joint = other.strip_prefix("tau.").and_then(|j| names.iter().position(|n| n == j));
                let Some(v) = joint else {
                    bail!(
                        "--noise {setting}: there is no sensor {other}; expected tau, tau.JOINT{}",
                        if base > 0 { ", wrench.f or wrench.t" } else { "" }
                    )
                };
                out[v] = value;
            }
        }
    }
    if measured == Measured::JointTorques {
        out[..base].fill(f64::INFINITY);
    }
    if measured == Measured::BaseWrench {
        out[base..].fill(f64::INFINITY);
    }
    if let Some(joints) = &args.joints {
        let with = |v: usize| {
            let joint = mechanism.joints().iter().find(|j| j.follows.is_none() && j.v_range().contains(&v));
            joint.is_some_and(|j| joints.contains(&j.name))
        };
        (base..out.len()).filter(|&v| !with(v)).for_each(|v| out[v] = f64::INFINITY);
    }
    Ok(out)
}

/// Highest force of each coordinate less the margin; a prescribed base takes whatever it needs.
pub fn effort(mechanism: &Mechanism, margin: f64) -> Vec<f64> {
    let mut out = vec![f64::INFINITY; mechanism.nv()];
    for joint in
        mechanism.joints().iter().filter(|j| j.follows.is_none() && j.joint_type != JointType::Floating)
    {
        // Files write zero where they know nothing.
        if joint.limits.effort > 0.0 {
            joint.v_range().for_each(|v| out[v] = joint.limits.effort * (1.0 - margin));
        }
    }
    out
}

/// What earlier logs say, in the order of the design's unknowns.
fn prior(args: &Args, subject: &Subject<'_>) -> Result<Option<DMatrix<f64>>> {
    if args.prior_summary.is_empty() {
        return Ok(None);
    }
    let mechanism = subject.mechanism;
    let equations = Equations::new(mechanism, joint_terms(args), DEFAULT_SNAP)?;
    let dynamics = inertial::dynamics::InverseDynamics::new(mechanism);
    let columns = inertial::excitation::Columns::new(
        mechanism,
        &dynamics,
        &subject.regrouping,
        &subject.terms,
        &subject.noise,
    )?;
    ensure!(
        columns.names == equations.names,
        "--prior-summary counts where all torques are measured and the unknowns are those of identify"
    );
    let mut total = DMatrix::zeros(columns.len(), columns.len());
    for path in &args.prior_summary {
        let summary =
            saved_summary(path)?.with_context(|| format!("{path}: expected a file ending in .summary"))?;
        total += information_matrix(&equations, &summary, &subject.noise).with_context(|| path.clone())?;
    }
    Ok(Some(total))
}

pub fn room(args: &Args, mechanism: &Mechanism) -> Result<Room> {
    let workspace =
        args.workspace.as_ref().map(|w| [Vector3::new(w[0], w[1], w[2]), Vector3::new(w[3], w[4], w[5])]);
    if let Some([low, high]) = workspace {
        ensure!(
            (0..3).all(|i| low[i] < high[i]),
            "--workspace: the first corner must be below the second in x, y and z"
        );
    }
    let shapes = Room::shapes(mechanism);
    if args.self_collision {
        ensure!(
            !shapes.is_empty(),
            "--self-collision: the model has no collision shapes but meshes, which are not read; use --link-radius"
        );
    }
    let mut capsules = match args.link_radius {
        Some(radius) => Room::along_links(mechanism, radius),
        None => Vec::new(),
    };
    capsules.extend(shapes);
    let pairs = if args.link_radius.is_some() || args.self_collision {
        Room::candidate_pairs(mechanism, &capsules)
    } else {
        Vec::new()
    };
    if capsules.is_empty() && (workspace.is_some() || args.ground.is_some()) {
        capsules = Room::along_links(mechanism, 0.0);
    }
    Ok(Room { capsules, pairs, workspace, ground: args.ground, clearance: args.clearance })
}
