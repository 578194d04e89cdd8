//! The model with the identified values.

use anyhow::{Context, Result};
use inertial::estimation::Identification;
use inertial::mechanism::{BodyKind, Mechanism, write};
use inertial::spatial::Inertia;

use super::Args;
use crate::model::Model;
use crate::output;

/// The model's text with the identified values.
pub(super) fn written(
    args: &Args,
    model: &Model,
    mechanism: &Mechanism,
    result: &Identification,
) -> Result<String> {
    let with = mechanism.clone().with_parameters(&result.parameters)?;
    if !model.text.trim_start().starts_with('<') {
        return written_mechanism(model, &with, result);
    }
    let parts = |b: &&inertial::mechanism::Body| b.kind != BodyKind::Massless;
    let bodies: Vec<_> = with.bodies().iter().filter(parts).map(|b| (b.name.as_str(), b.inertia)).collect();
    let known = |j: &&inertial::estimation::JointEstimate| j.viscous.is_some() || j.coulomb.is_some();
    let friction = |j: &inertial::estimation::JointEstimate| write::urdf::Friction {
        damping: j.viscous.unwrap_or(0.0),
        friction: j.coulomb.unwrap_or(0.0),
    };
    let joints: Vec<_> = result.joints.iter().filter(known).map(|j| (j.name.as_str(), friction(j))).collect();
    let written = write::urdf::write_bodies(&model.text, &args.options.build_options(), &bodies, &joints)
        .with_context(|| model.label.clone())?;
    written.notes.iter().for_each(|note| output::say(note));
    if result.joints.iter().any(|j| j.rotor_inertia.is_some_and(|x| x != 0.0) || j.offset.is_some()) {
        output::say(
            "a URDF has no place for offsets and reflected rotor inertias: they are in the result only",
        );
    }
    Ok(written.text)
}

/// The text of a mechanism file with the identified inertias: of links fixed to each other, the first has all.
fn written_mechanism(model: &Model, with: &Mechanism, result: &Identification) -> Result<String> {
    let mut inertias = Vec::new();
    let bodies = with.bodies().iter().enumerate().filter(|(_, b)| b.kind == BodyKind::Link);
    for (i, body) in bodies {
        for link in with.links().iter().filter(|l| l.body == Some(i)) {
            if link.name == body.name {
                inertias.push((link.name.as_str(), body.inertia));
            } else if link.inertia.is_some() {
                inertias.push((link.name.as_str(), Inertia::zero()));
            }
        }
    }
    output::say(
        "a mechanism file takes the inertias: friction, offsets and rotor inertias are in the result only",
    );
    let names = with.velocity_names();
    let given =
        names.iter().zip(with.armature()).filter(|(_, armature)| **armature > 0.0).map(|(name, _)| name);
    let in_links =
        |name: &&String| result.joints.iter().any(|j| j.name == **name && j.rotor_inertia.is_none());
    let twice: Vec<&str> = given.filter(in_links).map(String::as_str).collect();
    if !twice.is_empty() {
        output::say(&format!(
            "the armature of {} cannot be told from the inertia of links and is part of it now: set it to 0 in the written file, \
             or it counts twice",
            twice.join(", ")
        ));
    }
    write::replace_inertias(&model.text, &inertias).with_context(|| model.label.clone())
}
