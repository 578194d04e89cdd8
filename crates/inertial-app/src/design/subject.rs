//! Unknowns of a design, measurement noise, and workspace limits.

use inertial::estimation::{Equations, JointTerms, Summary, information_matrix};
use inertial::excitation::{CollisionModel, JointColumn, Stribeck, Subject};
use inertial::identifiability::{AnalyzeOptions, Measured, Regrouping, Status, analyze};
use inertial::mechanism::{Base, BodyKind, DEFAULT_SNAP, Joint, JointType, Mechanism};
use nalgebra::{DMatrix, Vector3};

use super::Options;
use crate::choice::{Coupling, Friction, Offset};
use crate::setting::Setting;
use crate::summary_file::saved_summary;
use crate::unknowns::Unknowns;
use crate::{Context, Error, Located, Model, Result, ensure_option};

/// Returns the measured quantities.
pub fn measured(own: &Options, mechanism: &Mechanism) -> Measured {
    let floating = mechanism.base() == Base::Floating;
    own.measured.unwrap_or(if floating { Measured::Both } else { Measured::JointTorques })
}

/// Returns the robot on a force plate if the base is fixed and its wrench is measured: the same robot with a floating
/// base at rest, whose generalized forces include that wrench.
pub fn on_plate(own: &Options, model: &Model) -> Result<Option<Mechanism>> {
    if model.mechanism.base() == Base::Floating || measured(own, &model.mechanism) != Measured::BaseWrench {
        return Ok(None);
    }
    model.with_base(Base::Floating).map(Some)
}

/// Returns the unknowns of a model and their measurement.
pub fn subject<'m>(
    own: &Options,
    model: &'m Model,
    plate: Option<&'m Mechanism>,
    context: &Context<'_>,
) -> Result<Subject<'m>> {
    let mechanism = &model.mechanism;
    let measured = measured(own, mechanism);
    ensure_option!(
        mechanism.base() == Base::Floating || measured != Measured::Both,
        "measured",
        "expected joint-torques or base-wrench for a fixed base"
    );
    let analysis = analyze(
        mechanism,
        &AnalyzeOptions::default().with(|o| {
            o.measured = Some(measured);
            o.torque_joints.clone_from(&own.joints);
        }),
    )?;
    let regrouping = match plate {
        Some(plate) => carried(analysis.regrouping.listed()?, mechanism, plate)?,
        None => analysis.regrouping.listed()?,
    };
    let mechanism = plate.unwrap_or(mechanism);
    let mut subject = Subject {
        mechanism,
        regrouping,
        terms: terms(own, model, mechanism),
        noise: noise(own, mechanism, measured)?,
        effort: effort(mechanism, own.margin),
        prior: None,
    };
    subject.prior = prior(own, model, &subject, context)?;
    Ok(subject)
}

/// Maps base parameters to the columns of another mechanism that has all parameters of the first, by name.
fn carried(mut regrouping: Regrouping, from: &Mechanism, to: &Mechanism) -> Result<Regrouping> {
    let names = to.parameter_names();
    let place = from
        .parameter_names()
        .iter()
        .map(|name| names.iter().position(|n| n == name))
        .collect::<Option<Vec<usize>>>()
        .ok_or_else(|| Error::option("measured", "the parameters of the model change when its base moves"))?;
    let mut status = vec![Status::Unidentifiable; names.len()];
    place.iter().zip(&regrouping.status).for_each(|(&at, s)| status[at] = *s);
    regrouping.base.iter_mut().for_each(|c| *c = place[*c]);
    regrouping.combinations.iter_mut().flatten().for_each(|(c, _)| *c = place[*c]);
    Ok(Regrouping { parameters: names.len(), status, ..regrouping })
}

/// Returns the joint terms that `identify` would estimate.
fn terms(own: &Options, model: &Model, mechanism: &Mechanism) -> Vec<(usize, JointColumn)> {
    let wanted = joint_terms(own, model);
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
            let asymmetric = own.friction == Friction::Asymmetric;
            let bent = own.friction == Friction::Stribeck;
            let about = stribeck(own, joint.dynamics.friction);
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

/// Returns the Stribeck friction for the design: as given, or with the Coulomb friction of the model as its force.
fn stribeck(own: &Options, coulomb: f64) -> Stribeck {
    match own.stribeck {
        Some([force, speed, exponent]) => Stribeck { force, speed, exponent },
        _ => Stribeck { force: if coulomb > 0.0 { coulomb } else { 1.0 }, speed: 0.1, exponent: 2.0 },
    }
}

fn joint_terms(own: &Options, model: &Model) -> JointTerms {
    JointTerms::default().with(|t| {
        // The terms that the data require are not known yet, so the usual friction is assumed.
        t.viscous = own.friction == Friction::Auto || own.friction.is_viscous();
        t.coulomb = own.friction == Friction::Auto || own.friction.is_coulomb();
        t.offset = own.offset == Offset::Yes;
        t.rotor_inertia = model.wants_rotors();
    })
}

/// Returns the standard deviation of the force of each coordinate; infinite if it is not measured.
fn noise(own: &Options, mechanism: &Mechanism, measured: Measured) -> Result<Vec<f64>> {
    let names = mechanism.velocity_names();
    let base = if mechanism.base() == Base::Floating { 6 } else { 0 };
    let mut out = vec![1.0; mechanism.nv()];
    for Setting { column, value } in &own.noise {
        ensure_option!(*value > 0.0, "noise", "{column} is {value}, expected a number above zero");
        match column.as_str() {
            "tau" => out[base..].fill(*value),
            "wrench.f" if base > 0 => out[..3].fill(*value),
            "wrench.t" if base > 0 => out[3..6].fill(*value),
            other => {
                let joint = other.strip_prefix("tau.").and_then(|j| names.iter().position(|n| n == j));
                let wrench = if base > 0 { ", wrench.f or wrench.t" } else { "" };
                let v = joint.ok_or_else(|| {
                    let reason = format!("there is no sensor {other}; expected tau, tau.JOINT{wrench}");
                    Error::option("noise", reason)
                })?;
                out[v] = *value;
            }
        }
    }
    if measured == Measured::JointTorques {
        out[..base].fill(f64::INFINITY);
    }
    if measured == Measured::BaseWrench {
        out[base..].fill(f64::INFINITY);
    }
    if let Some(joints) = &own.joints {
        let with = |v: usize| {
            let joint = mechanism.joints().iter().find(|j| j.follows.is_none() && j.v_range().contains(&v));
            joint.is_some_and(|j| joints.contains(&j.name))
        };
        (base..out.len()).filter(|&v| !with(v)).for_each(|v| out[v] = f64::INFINITY);
    }
    Ok(out)
}

/// Returns the joints whose friction alone reaches their force limit, so that no motion could satisfy it.
pub fn joints_held_by_friction(mechanism: &Mechanism, margin: f64) -> Vec<String> {
    let own = mechanism.joints().iter().filter(|j| j.follows.is_none() && is_held_by_friction(j, margin));
    own.map(|joint| joint.name.clone()).collect()
}

/// Returns whether the friction of a joint alone reaches its force limit.
fn is_held_by_friction(joint: &Joint, margin: f64) -> bool {
    joint.limits.given_effort().is_some_and(|effort| joint.dynamics.friction >= effort * (1.0 - margin))
}

/// Returns the force limit of each coordinate, reduced by the margin. It is infinite for a prescribed base and for
/// joints whose friction alone reaches the limit.
pub fn effort(mechanism: &Mechanism, margin: f64) -> Vec<f64> {
    let mut out = vec![f64::INFINITY; mechanism.nv()];
    for joint in
        mechanism.joints().iter().filter(|j| j.follows.is_none() && j.joint_type != JointType::Floating)
    {
        if let (Some(effort), false) = (joint.limits.given_effort(), is_held_by_friction(joint, margin)) {
            joint.v_range().for_each(|v| out[v] = effort * (1.0 - margin));
        }
    }
    out
}

/// Returns the information matrix of earlier logs, in the order of the unknowns of the design.
fn prior(
    own: &Options,
    model: &Model,
    subject: &Subject<'_>,
    context: &Context<'_>,
) -> Result<Option<DMatrix<f64>>> {
    if own.prior_summary.is_empty() {
        return Ok(None);
    }
    let mechanism = subject.mechanism;
    let equations = Equations::new(mechanism, joint_terms(own, model), DEFAULT_SNAP)?;
    let dynamics = inertial::dynamics::InverseDynamics::new(mechanism);
    let columns = inertial::excitation::Columns::new(
        mechanism,
        &dynamics,
        &subject.regrouping,
        &subject.terms,
        &subject.noise,
    )?;
    ensure_option!(
        columns.names == equations.names,
        "prior-summary",
        "needs all torques measured and the same unknowns as the summary"
    );
    let mut total = DMatrix::zeros(columns.len(), columns.len());
    for name in &own.prior_summary {
        let summary = saved_summary(context, name)?
            .ok_or_else(|| Error::Input(format!("{name}: expected a file ending in .summary")))?;
        let summary = match summary.check(&equations) {
            Ok(()) => summary,
            Err(e) => project_automatic(own, model, &summary, &equations, context)?.ok_or(e).at(name)?,
        };
        total += information_matrix(&equations, &summary, &subject.noise).at(name)?;
    }
    Ok(Some(total))
}

/// Projects a summary with automatically chosen terms onto the unknowns of a design; `None` if the summary belongs to another model.
fn project_automatic(
    own: &Options,
    model: &Model,
    summary: &Summary,
    equations: &Equations<'_>,
    context: &Context<'_>,
) -> Result<Option<Summary>> {
    let friction = if own.friction == Friction::Auto { Friction::None } else { own.friction };
    for coupling in [Coupling::Auto, Coupling::None] {
        for friction in [Friction::Auto, friction] {
            for offset in [Offset::Auto, own.offset] {
                let unknowns = Unknowns { friction, coupling, offset, ..Unknowns::default() };
                let earlier = unknowns.equations(model, context)?;
                if summary.check(&earlier).is_ok() {
                    return Ok(Some(summary.project(&earlier, equations)?));
                }
            }
        }
    }
    Ok(None)
}

/// Returns the space in which the links may move: workspace, ground and obstacles, and the capsules of the links.
pub fn collisions(own: &Options, mechanism: &Mechanism) -> Result<CollisionModel> {
    let workspace =
        own.workspace.as_ref().map(|w| [Vector3::new(w[0], w[1], w[2]), Vector3::new(w[3], w[4], w[5])]);
    if let Some([low, high]) = workspace {
        ensure_option!(
            (0..3).all(|i| low[i] < high[i]),
            "workspace",
            "the first corner must be below the second in x, y and z"
        );
    }
    let shapes = CollisionModel::shapes(mechanism);
    if own.self_collision {
        ensure_option!(
            !shapes.is_empty(),
            "self-collision",
            "the model has no collision shapes other than meshes, which are not read; give the links a radius instead"
        );
    }
    let mut capsules = match own.link_radius {
        Some(radius) => CollisionModel::along_links(mechanism, radius),
        None => Vec::new(),
    };
    capsules.extend(shapes);
    let pairs = if own.link_radius.is_some() || own.self_collision {
        CollisionModel::candidate_pairs(mechanism, &capsules)
    } else {
        Vec::new()
    };
    if capsules.is_empty() && (workspace.is_some() || own.ground.is_some()) {
        capsules = CollisionModel::along_links(mechanism, 0.0);
    }
    Ok(CollisionModel::default().with(|r| {
        r.capsules = capsules;
        r.pairs = pairs;
        r.workspace = workspace;
        r.ground = own.ground;
        r.clearance = own.clearance;
    }))
}
