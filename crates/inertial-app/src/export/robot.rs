//! Robot with the values to export: those of its file, or of a result.

use inertial::estimation::JointEstimate;
use inertial::mechanism::{BodyKind, Mechanism, write};
use inertial::nalgebra::{Matrix3, Vector3};
use inertial::spatial::Inertia;
use serde::Deserialize;

use crate::logs::TEXT_LIMIT;
use crate::payload::PAYLOAD;
use crate::{Context, Error, Inputs, Located, Model, Note, Result, bail, ensure};

/// Schema of results that contain values.
const SCHEMA: &str = "inertial/identification/1";

/// Values of a result of `identify`.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Values {
    schema: String,
    /// Link that carries the payload.
    pub(super) link: Option<String>,
    bodies: Vec<BodyValues>,
    #[serde(default)]
    joints: Vec<JointEstimate>,
}

#[derive(Debug, Clone, Deserialize)]
struct BodyValues {
    name: String,
    /// Links that make up the body; absent if the link of the same name is the only one.
    #[serde(default)]
    links: Vec<String>,
    mass: f64,
    com: [f64; 3],
    inertia: TensorValues,
}

#[derive(Debug, Clone, Copy, Deserialize)]
struct TensorValues {
    ixx: f64,
    ixy: f64,
    ixz: f64,
    iyy: f64,
    iyz: f64,
    izz: f64,
}

impl BodyValues {
    fn inertia(&self) -> Inertia<f64> {
        let TensorValues { ixx, ixy, ixz, iyy, iyz, izz } = self.inertia;
        let tensor = Matrix3::new(ixx, ixy, ixz, ixy, iyy, iyz, ixz, iyz, izz);
        Inertia::from_com(self.mass, Vector3::from(self.com), tensor)
    }
}

/// Returns whether a text is a result of `identify`.
fn is_result(text: &str) -> bool {
    text.trim_start().starts_with('{') && text.contains(SCHEMA)
}

/// Returns whether an input is a result of `identify`, not a model.
pub(super) fn names_result(input: &str, inputs: &dyn Inputs) -> bool {
    let has_text = input != "-" && !input.starts_with("builtin:");
    // USD scenes may be binary.
    has_text && inputs.text(input, TEXT_LIMIT).is_ok_and(|text| is_result(&text))
}

impl Values {
    /// Reads a result.
    pub(super) fn read(name: &str, context: &Context<'_>) -> Result<Self> {
        let text = context.inputs.text(name, TEXT_LIMIT).at(name)?;
        ensure!(
            is_result(&text),
            "{name}: is not a result of identify: expected the output of 'inertial identify --json'"
        );
        let values: Self = serde_json::from_str(&text).at(name)?;
        ensure!(values.schema == SCHEMA, "{name}: has the schema {}, expected {SCHEMA}", values.schema);
        for body in &values.bodies {
            let finite = body.inertia().parameters().iter().all(|x| x.is_finite());
            ensure!(finite, "{name}: the values of the body {} are not finite", body.name);
        }
        Ok(values)
    }

    /// Returns whether the only body is not a body of the model, hence a payload on a link.
    pub(super) fn is_payload_of(&self, model: &Model) -> bool {
        matches!(&self.bodies[..], [one] if !model.mechanism.bodies().iter().any(|b| b.name == one.name))
    }

    /// Returns whether the result is that of a payload.
    pub(super) fn is_payload(&self) -> bool {
        self.link.is_some() || matches!(&self.bodies[..], [one] if one.name == PAYLOAD)
    }

    /// Returns the bodies with their inertias, in their frames.
    pub(super) fn parts(&self) -> Vec<Part> {
        let part =
            |b: &BodyValues| Part { name: b.name.clone(), links: b.links.clone(), inertia: b.inertia() };
        self.bodies.iter().map(part).collect()
    }

    /// Describes the bodies that consist of several links.
    pub(super) fn merged(&self) -> Option<Note> {
        let several = self.bodies.iter().filter(|b| !b.links.is_empty());
        let merged: Vec<_> = several.map(|b| (b.name.clone(), b.links.clone())).collect();
        (!merged.is_empty()).then_some(Note::MergedBodies(merged))
    }
}

/// Describes the values that no export format supports.
fn left_out(joints: &[JointEstimate]) -> Option<Note> {
    let has_left_out = |j: &&JointEstimate| !j.turns_with.is_empty() || !j.terms.is_empty();
    let names: Vec<String> = joints.iter().filter(has_left_out).map(|j| j.name.clone()).collect();
    (!names.is_empty()).then_some(Note::NotExported(names))
}

/// Link or body with its inertia, in its own frame.
#[derive(Debug, Clone)]
pub(super) struct Part {
    pub name: String,
    /// Links that make up a body of a result, if there are other ones than the link of the same name.
    pub links: Vec<String>,
    pub inertia: Inertia<f64>,
}

impl Part {
    /// Creates a link.
    fn link(name: String, inertia: Inertia<f64>) -> Self {
        Self { name, links: Vec::new(), inertia }
    }
}

/// Friction and offset of one coordinate.
#[derive(Debug, Clone, Default)]
pub(super) struct Friction {
    pub viscous: f64,
    /// Coulomb friction of forward motion.
    pub forward: f64,
    /// Coulomb friction of backward motion.
    pub backward: f64,
    /// Height, speed and exponent.
    pub stribeck: Option<[f64; 3]>,
    pub offset: f64,
}

/// Robot with the values to export.
#[derive(Debug, Clone)]
pub(super) struct Robot {
    /// Mechanism with these values.
    pub mechanism: Mechanism,
    /// Drive inertia of each velocity coordinate.
    pub armature: Vec<f64>,
    /// Friction of each velocity coordinate.
    pub friction: Vec<Friction>,
    /// Links with inertias that make up the bodies.
    pub links: Vec<Part>,
    /// Warning about values that are not exported.
    pub warning: Option<Note>,
}

impl Robot {
    /// Uses the values of the model file.
    pub(super) fn of_model(model: &Model) -> Self {
        let mechanism = model.mechanism.clone();
        let mut friction = vec![Friction::default(); mechanism.nv()];
        for joint in mechanism.joints().iter().filter(|j| j.follows.is_none()) {
            for own in &mut friction[joint.v_range()] {
                own.viscous = joint.dynamics.damping;
                (own.forward, own.backward) = (joint.dynamics.friction, joint.dynamics.friction);
            }
        }
        let links = mechanism.links().iter().filter_map(|link| {
            let inertia = link.inertia.filter(|i| *i != Inertia::zero())?;
            Some(Part::link(link.name.clone(), inertia))
        });
        let (links, armature) = (links.collect(), mechanism.armature().to_vec());
        Self { mechanism, armature, friction, links, warning: None }
    }

    /// Uses the values of the model file and of the joint file beside it.
    pub(super) fn of_model_and_joints(model: &Model, context: &Context<'_>) -> Result<Self> {
        let joints = model.joint_values(context)?.joints;
        let mut out = Self::of_model(model);
        if !joints.is_empty() {
            let mut parameters = model.mechanism.parameters();
            out.set_joints(&joints, &mut parameters)
                .map_err(|joint| Error::Input(format!("{}: has no joint {joint}", model.label)))?;
            out.mechanism = model.mechanism.clone().with_parameters(&parameters)?;
            out.warning = left_out(&joints);
        }
        Ok(out)
    }

    /// Sets friction and rotor inertias of joints; those of rotors that are bodies are set in `parameters`. The error
    /// is the name of a joint that the mechanism does not have.
    fn set_joints(&mut self, joints: &[JointEstimate], parameters: &mut [f64]) -> Result<(), String> {
        let own = &self.mechanism;
        let names = own.velocity_names();
        for joint in joints {
            let v = names.iter().position(|n| *n == joint.name).ok_or_else(|| joint.name.clone())?;
            let curve = joint.stribeck.zip(joint.stribeck_velocity).zip(joint.stribeck_exponent);
            let value = |x: Option<f64>| x.unwrap_or(0.0);
            self.friction[v] = Friction {
                viscous: value(joint.viscous),
                forward: value(joint.coulomb) + value(joint.coulomb_positive),
                backward: value(joint.coulomb) + value(joint.coulomb_negative),
                stribeck: curve.map(|((height, speed), exponent)| [height, speed, exponent]),
                offset: value(joint.offset),
            };
            self.armature[v] = 0.0;
            let Some(total) = joint.rotor_inertia else { continue };
            // The total is distributed over rotors that are bodies in proportion to their inertia in the model.
            let rotors: Vec<_> = own
                .parameter_blocks()
                .iter()
                .map(|block| (block.offset, &own.bodies()[block.body]))
                .filter(|(_, body)| body.kind == BodyKind::SymmetricRotor && body.drive.v == v)
                .collect();
            let square = |ratio: f64| ratio * ratio;
            let given: f64 = rotors.iter().map(|(at, body)| square(body.drive.ratio) * parameters[*at]).sum();
            match &rotors[..] {
                [(at, body)] if body.drive.ratio != 0.0 => {
                    parameters[*at] = total / square(body.drive.ratio);
                }
                [] => self.armature[v] = total,
                several if given > 0.0 => {
                    several.iter().for_each(|(at, _)| parameters[*at] *= total / given);
                }
                _ => self.armature[v] = total,
            }
        }
        Ok(())
    }

    /// Sets the inertias of bodies, and those of their links.
    fn set_parameters(&mut self, model: &Model, parameters: &[f64]) -> Result<()> {
        let own = &model.mechanism;
        self.mechanism = own.clone().with_parameters(parameters)?;
        let links = write::link_inertias(&model.builder, own, &self.mechanism).at(&model.label)?;
        self.links = links.into_iter().map(|(name, inertia)| Part::link(name, inertia)).collect();
        Ok(())
    }

    /// Uses the values of a result instead of those of the model file.
    pub(super) fn of_result(model: &Model, name: &str, values: &Values) -> Result<Self> {
        let own = &model.mechanism;
        let has_ten = |kind: BodyKind| matches!(kind, BodyKind::Link | BodyKind::Rotor);
        let unknown = values.bodies.iter().find(|b| !own.bodies().iter().any(|o| o.name == b.name));
        if let Some(body) = unknown {
            bail!(
                "{name}: has a body {} that {} does not have: is it the result of another model?",
                body.name,
                model.label
            );
        }
        let mut parameters = own.parameters();
        for block in own.parameter_blocks() {
            let body = &own.bodies()[block.body];
            if !has_ten(body.kind) {
                continue;
            }
            let Some(found) = values.bodies.iter().find(|b| b.name == body.name) else {
                // `identify` locks joints that the logs do not contain.
                let reason = format!(
                    "{name}: has no body {} of {}: it is the result of another model, or of a log without the joint {}",
                    body.name,
                    model.label,
                    own.joints()[body.joint].name
                );
                return Err(Error::Hint { reason, option: "lock", effect: "locks such joints".into() });
            };
            let inertia = found.inertia().parameters();
            parameters[block.offset..block.offset + 10].copy_from_slice(inertia.as_slice());
        }
        let mut out = Self::of_model(model);
        (out.friction, out.armature) = (vec![Friction::default(); own.nv()], vec![0.0; own.nv()]);
        out.set_joints(&values.joints, &mut parameters).map_err(|joint| {
            Error::Input(format!("{name}: has a joint {joint} that {} does not have", model.label))
        })?;
        out.warning = left_out(&values.joints);
        out.set_parameters(model, &parameters)?;
        Ok(out)
    }
}
