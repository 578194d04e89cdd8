//! The model with the identified values.

use anyhow::{Context, Result, ensure};
use inertial::estimation::JointEstimate;
use inertial::mechanism::write::file::NewDynamics;
use inertial::mechanism::{BodyKind, Mechanism, read, write};

use super::Args;
use crate::model::Model;
use crate::output;

/// Refuses, before any work, a model that cannot be written.
pub(super) fn check(args: &Args, model: &Model) -> Result<()> {
    let mjcf = args.out.is_some() && read::detect(&model.text) == read::Format::Mjcf;
    ensure!(
        !mjcf,
        "{}: --out writes URDF and mechanism files, not MJCF: take the values from --json, or give the robot's URDF",
        model.label
    );
    Ok(())
}

/// The model's text with the identified values; `joints` are absent where nothing was asked of them.
pub(super) fn written(
    args: &Args,
    model: &Model,
    mechanism: &Mechanism,
    parameters: &[f64],
    joints: Option<&[JointEstimate]>,
) -> Result<String> {
    let with = mechanism.clone().with_parameters(parameters)?;
    let parts = |b: &&inertial::mechanism::Body| b.kind != BodyKind::Massless;
    let bodies: Vec<_> = with.bodies().iter().filter(parts).map(|b| (b.name.as_str(), b.inertia)).collect();
    let options = args.options.build_options();
    let written = if model.text.trim_start().starts_with('<') {
        let joints = joints.unwrap_or_default();
        if joints.iter().any(|j| j.rotor_inertia.is_some_and(|x| x != 0.0) || has_more(j)) {
            output::say(
                "a URDF takes inertias, viscous and Coulomb friction: all else is in the result only",
            );
        }
        let known = |j: &&JointEstimate| j.viscous.is_some() || j.coulomb.is_some();
        let friction = |j: &JointEstimate| write::urdf::Friction {
            damping: j.viscous.unwrap_or(0.0),
            friction: j.coulomb.unwrap_or(0.0),
        };
        let friction: Vec<_> = joints.iter().filter(known).map(|j| (j.name.as_str(), friction(j))).collect();
        write::urdf::write_bodies(&model.text, &options, &bodies, &friction)
    } else {
        let joints = joints.map_or_else(Vec::new, |joints| dynamics(&with, joints));
        write::file::write_bodies(&model.text, &options, &bodies, &joints)
    };
    let written = written.with_context(|| model.label.clone())?;
    written.notes.iter().for_each(|note| output::say(note));
    Ok(written.text)
}

/// Whether a joint has something that no model file has a place for.
fn has_more(joint: &JointEstimate) -> bool {
    let more = [joint.offset, joint.stribeck, joint.coulomb_positive, joint.coulomb_negative, joint.gain];
    more.iter().any(Option::is_some) || !joint.terms.is_empty() || !joint.turns_with.is_empty()
}

/// New dynamics of the joints, with which the written model predicts what was identified: an armature that was not estimated
/// apart acts like the inertia of links and is part of it, so it must not count again.
fn dynamics<'m>(with: &'m Mechanism, joints: &[JointEstimate]) -> Vec<(&'m str, NewDynamics)> {
    let mut left = joints.iter().any(has_more);
    let mut out = Vec::new();
    for joint in with.joints() {
        let mut new = NewDynamics::default();
        let found = joints.iter().find(|j| j.name == joint.name && joint.follows.is_none());
        if let Some(found) = found {
            (new.damping, new.friction) = (found.viscous, found.coulomb);
        } else if joint.follows.is_none() {
            // Joints of several coordinates have one number for all.
            let own =
                |j: &&JointEstimate| j.name.strip_prefix(&joint.name).is_some_and(|r| r.starts_with('.'));
            left |= joints.iter().filter(own).any(|j| j.viscous.is_some() || j.rotor_inertia.is_some());
        }
        if joint.dynamics.armature != 0.0 || found.is_some_and(|j| j.rotor_inertia.is_some()) {
            // Rotors that are bodies of the model keep their own inertia.
            let of_bodies: f64 = with
                .bodies()
                .iter()
                .filter(|b| b.kind == BodyKind::SymmetricRotor && b.drive.v == joint.v)
                .map(|b| b.drive.ratio.powi(2) * b.inertia.rotational[(2, 2)])
                .sum();
            let own = found.filter(|j| j.turns_with.is_empty()).and_then(|j| j.rotor_inertia);
            new.armature = Some(own.map_or(0.0, |all| (all - of_bodies).max(0.0)));
        }
        if new != NewDynamics::default() {
            out.push((joint.name.as_str(), new));
        }
    }
    if left {
        output::say(
            "a mechanism file takes inertias, viscous and Coulomb friction and rotor inertias of joints with one coordinate: \
             all else is in the result only",
        );
    }
    out
}
