//! Conversion of models of any format to mechanism files.

use std::collections::HashMap;

use nalgebra::{Matrix3, Rotation3, Vector3};
use serde::Serialize;

use crate::mechanism::read::file::text::{
    Body, Document, Dynamics, End, Inertial, Joint, Kind, Leader, Limits, Loop, Mimic, Origin, Position,
    Rotor, Tensor, Wheel,
};
use crate::mechanism::read::file::{GROUND, SCHEMA};
use crate::mechanism::{self, Base, JointDynamics, JointSpec, JointType, MechanismBuilder};
use crate::spatial::{Inertia, Pose, rotation_from_rpy};
use crate::{Error, Place, Result};

/// Tolerance of a rotation that is written as angles: a few rounding errors.
const ROTATION: f64 = 2e-15;

/// Syntax of a mechanism file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Syntax {
    /// JSON.
    Json,
    /// TOML.
    Toml,
}

/// Describes a model as a mechanism file. The root link of other formats becomes a body that is fixed to the ground, or
/// that floats if `base` is floating. Collision shapes are not part of the file format.
///
/// ```
/// use inertial::mechanism::write::{Syntax, describe};
/// use inertial::mechanism::read;
/// let text = r#"<robot name="rod"><link name="base"/><link name="rod"/>
///   <joint name="hinge" type="continuous"><parent link="base"/><child link="rod"/></joint></robot>"#;
/// let file = describe(&read::urdf::read(text)?, None, Syntax::Toml)?;
/// assert_eq!(read::file::read(&file)?.joints[1].name, "hinge");
/// # Ok::<(), inertial::Error>(())
/// ```
pub fn describe(model: &MechanismBuilder, base: Option<Base>, syntax: Syntax) -> Result<String> {
    let document = document(model, base)?;
    let text = match syntax {
        Syntax::Json => serde_json::to_string_pretty(&document).map_err(|e| e.to_string()).map(|t| t + "\n"),
        Syntax::Toml => toml(&document).map_err(|e| e.to_string()),
    };
    text.map_err(|message| Error::model(Place::default(), message))
}

/// Writes a document as TOML, with bodies under headers of their own and everything else in single lines.
fn toml(document: &Document) -> Result<String, toml::ser::Error> {
    let mut out = String::new();
    let mut line = |key: &str, value: Option<String>| {
        if let Some(value) = value {
            out.extend([key, " = ", &value, "\n"]);
        }
    };
    line("schema", Some(inline(&document.schema)?));
    line("name", document.name.as_ref().map(inline).transpose()?);
    line("gravity", document.gravity.as_ref().map(inline).transpose()?);
    let assembly = Some(&document.assembly).filter(|a| !a.is_empty());
    line("assembly", assembly.map(inline).transpose()?);
    // Short lists precede the bodies, whose headers end the top-level keys of the file.
    line("loops", list(&document.loops)?);
    line("rotors", list(&document.rotors)?);
    line("wheels", list(&document.wheels)?);
    for body in &document.bodies {
        out.push_str("\n[[bodies]]\n");
        let mut line = |key: &str, value: String| out.extend([key, " = ", &value, "\n"]);
        line("name", inline(&body.name)?);
        line("parent", inline(&body.parent)?);
        line("joint", inline(&body.joint)?);
        if let Some(inertial) = &body.inertial {
            line("inertial", inline(inertial)?);
        }
        if body.massless {
            line("massless", "true".into());
        }
    }
    Ok(out)
}

/// Formats a list with one entry per line; `None` if it is empty.
fn list(entries: &[impl Serialize]) -> Result<Option<String>, toml::ser::Error> {
    let lines = entries.iter().map(|entry| Ok(format!("  {},\n", inline(entry)?)));
    let lines = lines.collect::<Result<String, toml::ser::Error>>()?;
    Ok((!lines.is_empty()).then(|| format!("[\n{lines}]")))
}

fn inline(value: &impl Serialize) -> Result<String, toml::ser::Error> {
    let mut out = String::new();
    value.serialize(toml::ser::ValueSerializer::new(&mut out))?;
    Ok(out)
}

fn document(model: &MechanismBuilder, base: Option<Base>) -> Result<Document> {
    let root = model.links.iter().find(|l| l.name == model.root && l.name != GROUND);
    if let Some(other) = model.links.iter().find(|l| l.name == GROUND && l.name != model.root) {
        let message = "a link of this name cannot be written: \"ground\" is the world of mechanism files";
        return Err(Error::model(Place::element(format!("link \"{}\"", other.name)), message));
    }
    let name = |link: &str| if link == model.root && root.is_none() { GROUND } else { link }.to_owned();
    let inertias: HashMap<&str, &Inertia<f64>> =
        model.links.iter().filter_map(|l| Some((l.name.as_str(), l.inertia.as_ref()?))).collect();
    let inertial = |link: &str| inertias.get(link).map(|i| described_inertia(link, i)).transpose();
    let mut bodies = Vec::with_capacity(model.joints.len() + 1);
    if let Some(root) = root {
        let floats =
            model.joints.iter().any(|j| j.parent == root.name && j.joint_type == JointType::Floating);
        let kind = if base == Some(Base::Floating) && !floats { Kind::Floating } else { Kind::Fixed };
        let mut joint = Joint { name: "root".into(), kind, ..plain_joint() };
        while model.joints.iter().any(|j| j.name == joint.name) {
            joint.name.push('_');
        }
        let (parent, inertial) = (GROUND.into(), inertial(&root.name)?);
        bodies.push(Body { name: root.name.clone(), parent, joint, inertial, massless: false });
    }
    for joint in &model.joints {
        let massless = model.massless.contains(&joint.child);
        bodies.push(Body {
            name: joint.child.clone(),
            parent: name(&joint.parent),
            joint: described_joint(joint),
            inertial: if massless { None } else { inertial(&joint.child)? },
            massless,
        });
    }
    let end = |end: &mechanism::LoopEnd| End { body: name(&end.link), origin: origin(&end.origin) };
    let loops = model.loops.iter().map(|l| {
        let Shape { kind, axis, axes, pitch } = shape(&l.joint_type);
        let (predecessor, successor) = (end(&l.predecessor), end(&l.successor));
        Loop { name: l.name.clone(), kind, predecessor, successor, axis, axes, pitch }
    });
    let rotors = model.rotors.iter().zip(model.rotor_names()).map(|(rotor, name_of_rotor)| {
        let inertial = Some(rotor.inertia).filter(|i| *i != Inertia::zero());
        Ok(Rotor {
            joint: rotor.joint.clone(),
            carrier: name(&rotor.carrier),
            ratio: rotor.ratio,
            origin: origin(&rotor.origin),
            axis: Some(rotor.axis.into()),
            symmetric: Some(rotor.symmetric),
            inertial: inertial.as_ref().map(|i| described_inertia(&name_of_rotor, i)).transpose()?,
        })
    });
    let wheels = model.wheels.iter().map(|wheel| Wheel {
        name: wheel.name.clone(),
        carrier: name(&wheel.carrier),
        axis: Some(wheel.axis.into()),
        inertia: wheel.inertia,
        limits: limits(&wheel.limits),
    });
    let position = |(joint, values): &(String, Vec<f64>)| match values[..] {
        [x] => (joint.clone(), Position::One(x)),
        _ => (joint.clone(), Position::Several(values.clone())),
    };
    Ok(Document {
        schema: SCHEMA.into(),
        name: Some(model.name.clone()),
        description: None,
        gravity: Some(model.gravity.into()),
        convention: None,
        bodies,
        loops: loops.collect(),
        rotors: rotors.collect::<Result<_>>()?,
        wheels: wheels.collect(),
        assembly: model.assembly.iter().map(position).collect(),
    })
}

fn described_inertia(name: &str, inertia: &Inertia<f64>) -> Result<Inertial> {
    let error = |message| Error::model(Place::element(format!("link \"{name}\"")), message);
    let (com, tensor) = (inertia.com().unwrap_or_default(), inertia.about_com());
    if !com.iter().chain(&tensor).all(|x| x.is_finite()) {
        return Err(error("its inertia is not finite"));
    }
    if inertia.mass == 0.0 && inertia.first_moment != Vector3::zeros() {
        return Err(error("first moments without mass cannot be written in mechanism files"));
    }
    let [ixx, ixy, ixz, iyy, iyz, izz] =
        [(0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)].map(|at| tensor[at] + 0.0);
    let inertia_tensor = Tensor { ixx, ixy, ixz, iyy, iyz, izz };
    Ok(Inertial { mass: inertia.mass, com: com.into(), inertia: inertia_tensor })
}

fn plain_joint() -> Joint {
    Joint {
        name: String::new(),
        kind: Kind::Fixed,
        origin: Origin::default(),
        dh: None,
        axis: None,
        axes: None,
        pitch: None,
        independent: None,
        limits: None,
        dynamics: None,
        mimic: None,
    }
}

fn described_joint(joint: &JointSpec) -> Joint {
    let Shape { kind, axis, axes, pitch } = shape(&joint.joint_type);
    let leader = |(joint, ratio): &(String, f64)| Leader { joint: joint.clone(), ratio: *ratio };
    let mimic = joint.mimic.as_ref().map(|mimic| match &mimic.leaders[..] {
        [(leader, ratio)] => {
            Mimic { joint: Some(leader.clone()), ratio: Some(*ratio), offset: mimic.offset, joints: None }
        }
        several => Mimic {
            joint: None,
            ratio: None,
            offset: mimic.offset,
            joints: Some(several.iter().map(leader).collect()),
        },
    });
    let JointDynamics { damping, friction, armature, stiffness, rest } = joint.dynamics;
    let dynamics = Dynamics { damping, friction, armature, stiffness, rest };
    Joint {
        name: joint.name.clone(),
        kind,
        origin: origin(&joint.origin),
        axis,
        axes,
        pitch,
        independent: joint.independent,
        limits: limits(&joint.limits),
        dynamics: (joint.dynamics != JointDynamics::default()).then_some(dynamics),
        mimic,
        ..plain_joint()
    }
}

/// Joint type in terms of the file format.
struct Shape {
    kind: Kind,
    axis: Option<[f64; 3]>,
    axes: Option<[[f64; 3]; 2]>,
    pitch: Option<f64>,
}

fn shape(joint_type: &JointType) -> Shape {
    let plain = |kind| Shape { kind, axis: None, axes: None, pitch: None };
    let along = |kind, axis: &Vector3<f64>| Shape { axis: Some((*axis).into()), ..plain(kind) };
    match joint_type {
        JointType::Fixed => plain(Kind::Fixed),
        JointType::Revolute { axis } => along(Kind::Revolute, axis),
        JointType::Prismatic { axis } => along(Kind::Prismatic, axis),
        JointType::Helical { axis, pitch } => Shape { pitch: Some(*pitch), ..along(Kind::Helical, axis) },
        JointType::Cylindrical { axis } => along(Kind::Cylindrical, axis),
        JointType::Universal { axes } => Shape { axes: Some(axes.map(Into::into)), ..plain(Kind::Universal) },
        JointType::Planar { normal } => along(Kind::Planar, normal),
        JointType::Spherical => plain(Kind::Spherical),
        JointType::Floating => plain(Kind::Floating),
    }
}

fn limits(limits: &mechanism::Limits) -> Option<Limits> {
    let given = |x: f64| x.is_finite().then_some(x);
    let mechanism::Limits { lower, upper, velocity, effort } = *limits;
    (*limits != mechanism::Limits::default()).then(|| Limits {
        lower: given(lower),
        upper: given(upper),
        velocity: given(velocity),
        effort: given(effort),
    })
}

/// Describes a pose by its position and angles, or by a matrix if angles would lose digits.
fn origin(pose: &Pose<f64>) -> Origin {
    let mut out = Origin::default();
    if pose.translation != Vector3::zeros() {
        out.xyz = Some(pose.translation.into());
    }
    if pose.rotation == Matrix3::identity() {
        return out;
    }
    let (roll, pitch, yaw) = Rotation3::from_matrix_unchecked(pose.rotation).euler_angles();
    let [roll, pitch, yaw] = [roll, pitch, yaw].map(without_rounding);
    if (rotation_from_rpy(roll, pitch, yaw) - pose.rotation).amax() <= ROTATION {
        out.rpy = Some([roll, pitch, yaw]);
    } else {
        out.rotation = Some([0, 1, 2].map(|i| [0, 1, 2].map(|j| pose.rotation[(i, j)] + 0.0)));
    }
    out
}

/// Returns the short decimal that equals an angle up to rounding, or the angle itself if there is none.
fn without_rounding(angle: f64) -> f64 {
    let short = format!("{angle:.12}").parse().unwrap_or(angle);
    if (short - angle).abs() <= 5e-16 * angle.abs().max(1.0) { short + 0.0 } else { angle }
}
