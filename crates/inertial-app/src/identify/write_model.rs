//! Model with the identified values.

use inertial::estimation::JointEstimate;
use inertial::mechanism::read::{self, Format};
use inertial::mechanism::write::file::NewDynamics;
use inertial::mechanism::write::urdf::{Friction, NewValues};
use inertial::mechanism::{BodyKind, Mechanism, write};

use crate::model::joint_file::{self, Lag};
use crate::{Context, Located, Model, Note, Result};

/// Checks that the model can be written, before any work is done.
pub fn check_writable(model: &Model) -> Result<()> {
    let model = model.target();
    if read::detect(&model.text) == Format::Mjcf {
        write::mjcf::check(&model.text).at(&model.label)?;
    }
    Ok(())
}

/// Text of the model with the identified values, and of its joint file.
pub(crate) struct Written {
    /// Text of the model.
    pub text: String,
    /// Text of the joint file beside it, if the model format cannot represent all joint terms.
    pub joint_file: Option<String>,
}

/// Writes the identified values into the model; `joints` is `None` if joint terms were not estimated. The lag is that of the
/// torques with which the values were identified.
pub(crate) fn written(
    model: &Model,
    parameters: &[f64],
    joints: Option<&[JointEstimate]>,
    lag: Option<Lag>,
    context: &Context<'_>,
) -> Result<Written> {
    let model = model.target();
    let with = model.mechanism.clone().with_parameters(parameters)?;
    let shares = write::changed_links(&model.builder, &model.mechanism, &with).at(&model.label)?;
    let links: Vec<_> = shares.links.iter().map(|(name, inertia)| (name.as_str(), *inertia)).collect();
    let text = write::replace_inertias(&model.text, &links).at(&model.label)?;
    let all = joints.unwrap_or_default();
    let rotors = all.iter().any(|j| j.rotor_inertia.is_some_and(|x| x != 0.0));
    let mut more = all.iter().any(has_more);
    let text = match read::detect(&text) {
        Format::Urdf => {
            more |= rotors;
            NewValues { links: Vec::new(), joints: friction(&with, all) }.write(&text)
        }
        Format::Sdf => {
            more |= rotors;
            write::sdf::replace_values(&text, &[], &friction(&with, all))
        }
        format => {
            let (new, left) = joints.map(|joints| dynamics(&with, joints)).unwrap_or_default();
            more |= left;
            match format {
                Format::Mjcf => write::mjcf::replace_values(&text, &[], &new),
                // USD scenes are written as mechanism files.
                _ => write::file::replace_values(&text, &[], &new),
            }
        }
    };
    shares.notes.into_iter().for_each(|note| context.note(&Note::Written(note)));
    let text = text.at(&model.label)?;
    let lag = lag.filter(|lag| lag.value != 0.0);
    let joint_file = if more || lag.is_some() { Some(joint_file::text(&text, all, lag)?) } else { None };
    if joint_file.is_some() {
        let name = match &model.out {
            Some(out) => joint_file::joint_file(out).display().to_string(),
            None => "the joint file".to_owned(),
        };
        context.note(&Note::NotInModel(name));
    }
    Ok(Written { text, joint_file })
}

/// Returns the new friction of the joints of a URDF or SDF.
fn friction<'j>(with: &Mechanism, joints: &'j [JointEstimate]) -> Vec<(&'j str, Friction)> {
    // Friction of the file that the fit does not contain is set to zero.
    let in_file = |j: &JointEstimate| {
        let own = with.joints().iter().find(|own| own.name == j.name);
        own.is_some_and(|own| own.dynamics.damping != 0.0 || own.dynamics.friction != 0.0)
    };
    let known = |j: &&JointEstimate| j.viscous.is_some() || coulomb(j).is_some() || in_file(j);
    let of = |j: &JointEstimate| Friction {
        damping: j.viscous.unwrap_or(0.0),
        friction: coulomb(j).unwrap_or(0.0),
    };
    joints.iter().filter(known).map(|j| (j.name.as_str(), of(j))).collect()
}

/// Returns the Coulomb friction of a joint: the mean of both directions if they differ.
fn coulomb(joint: &JointEstimate) -> Option<f64> {
    let both = joint.coulomb_positive.zip(joint.coulomb_negative);
    joint.coulomb.or(both.map(|(positive, negative)| 0.5 * (positive + negative)))
}

/// Returns whether a joint has a term that no model format can represent.
fn has_more(joint: &JointEstimate) -> bool {
    let more = [joint.offset, joint.stribeck, joint.coulomb_positive, joint.coulomb_negative, joint.gain];
    more.iter().any(Option::is_some) || !joint.terms.is_empty() || !joint.turns_with.is_empty()
}

/// Returns the new dynamics of the joints, with which the written model reproduces the identified one. An armature
/// that was not estimated separately is contained in the inertia of the links, so it is set to zero. The second value
/// states whether a joint with several coordinates has values that cannot be written.
fn dynamics<'m>(with: &'m Mechanism, joints: &[JointEstimate]) -> (Vec<(&'m str, NewDynamics)>, bool) {
    let (mut out, mut left) = (Vec::new(), false);
    for joint in with.joints() {
        let mut new = NewDynamics::default();
        let found = joints.iter().find(|j| j.name == joint.name && joint.follows.is_none());
        if let Some(found) = found {
            let or_none = |found: Option<f64>, given: f64| found.or((given != 0.0).then_some(0.0));
            new.damping = or_none(found.viscous, joint.dynamics.damping);
            new.friction = or_none(coulomb(found), joint.dynamics.friction);
        } else if joint.follows.is_none() {
            // Joints with several coordinates have one value for all of them.
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
    (out, left)
}
