//! Reader of this project's mechanism files (JSON or TOML), which describe features that URDF lacks.
//!
//! Frames are given relative to the frame of the parent body. The frame of a body is that of its joint at zero. The root
//! is `ground`. The default axis is z; the default gravity is `0 0 -9.81`.
//!
//! # Denavit and Hartenberg
//! A body may be placed by `"dh": {"a", "alpha", "d", "theta"}` (missing values are zero). All joint axes are then z, and
//! `"convention"` at the top of the file selects one of two conventions:
//! - `modified` (Craig; Khalil and Kleinfinger): the frame of the body is `Rx(alpha) Tx(a) Rz(theta) Tz(d)` in that of its
//!   parent;
//! - `standard`: the classical row `Rz(theta + q) Tz(d) Tx(a) Rx(alpha)` leads from one *link end* to the next, and the
//!   joint turns about the z axis *before* the row. The frame of the body is in the middle of the row, after `Rz(theta)
//!   Tz(d)`, so that the axis of the joint passes through it. `Tx(a) Rx(alpha)` leads to the start of the rows of the
//!   children. Inertias are given in the frame of the body, as with the other convention; `a` and `alpha` of a last body
//!   have no effect. A `standard` table equals the `modified` table with `a` and `alpha` one row further down.

pub(in crate::mechanism) mod places;
pub(in crate::mechanism) mod text;

use std::collections::HashMap;

use nalgebra::{Matrix3, Vector3};
use schemars::{Schema, SchemaGenerator};

use super::MechanismBuilder;
use super::lines::Lines;
use crate::mechanism::read::rounding::{Numbers, mark};
use crate::mechanism::{
    JointDynamics, JointSpec, JointType, Limits, LinkSpec, LoopEnd, LoopSpec, Mimic, RotorSpec, WheelSpec,
    rotation_about,
};
use crate::spatial::{Inertia, Pose, rotation_from_quaternion, rotation_from_rpy};
use crate::{Error, Place, Result};
pub use places::is_json;
use places::{EntryPlace, Places};
use text::{Convention, Dh, Document, Kind, Origin, Position};

/// Schema that this reader supports.
pub(in crate::mechanism) const SCHEMA: &str = "inertial/mechanism/1";

/// Root of every mechanism file.
pub(in crate::mechanism) const GROUND: &str = "ground";

/// Reads a mechanism file (JSON or TOML).
///
/// ```
/// let pendulum = inertial::mechanism::read::file::read(r#"
///     schema = "inertial/mechanism/1"
///     [[bodies]]
///     name = "rod"
///     parent = "ground"
///     joint = { name = "hinge", type = "revolute", axis = [0, 1, 0] }
///     inertial = { mass = 1, com = [0, 0, -0.5], inertia = { ixx = 0.1, ixy = 0, ixz = 0, iyy = 0.1, iyz = 0, izz = 0 } }
/// "#)?.build(&Default::default())?;
/// assert_eq!(pendulum.nv(), 1);
/// # Ok::<(), inertial::Error>(())
/// ```
pub fn read(text: &str) -> Result<MechanismBuilder> {
    if text.trim().is_empty() {
        let message = "the model is empty: expected URDF, MJCF, SDF or a mechanism file (JSON or TOML)";
        return Err(Error::syntax(Place::default(), message));
    }
    let document = Document::parse(text)?;
    if document.schema != SCHEMA {
        let message = format!("\"{}\" is unknown: expected \"{SCHEMA}\"", document.schema);
        return Err(Error::model(Place::element("schema"), message));
    }
    Reader::new(text, &document).read()
}

/// Returns the JSON schema of mechanism files, generated from the types that [`read`] reads them into.
pub fn schema(generator: SchemaGenerator) -> Schema {
    generator.into_root_schema_for::<Document>()
}

/// Location of an entry: its line, and its path in the file.
struct Entry {
    line: Option<u32>,
    path: String,
}

impl Entry {
    fn place(&self, field: &str) -> Place {
        Place { line: self.line, element: format!("{}{field}", self.path) }
    }

    fn error(&self, field: &str, message: impl Into<String>) -> Error {
        Error::model(self.place(field), message)
    }
}

struct Reader<'a> {
    document: &'a Document,
    places: Option<Places>,
    lines: Lines<'a>,
    /// Rows of the standard convention by body; the children's rows begin after them.
    standard: HashMap<&'a str, Dh>,
}

impl<'a> Reader<'a> {
    fn new(text: &'a str, document: &'a Document) -> Self {
        let standard = document
            .bodies
            .iter()
            .filter(|_| document.convention == Some(Convention::Standard))
            .filter_map(|b| Some((b.name.as_str(), b.joint.dh.or(b.joint.origin.dh)?)))
            .collect();
        Self { document, places: Places::find(text), lines: Lines::new(text), standard }
    }

    fn read(&self) -> Result<MechanismBuilder> {
        let name = self.document.name.as_deref().unwrap_or("mechanism");
        let mut builder = MechanismBuilder::new(name, GROUND);
        if let Some(g) = self.document.gravity {
            builder.gravity = g.into();
        }
        for (i, body) in self.document.bodies.iter().enumerate() {
            let here = self.entry("bodies", |p| &p.bodies, i);
            let inertia = body.inertial.as_ref().map(inertia);
            if body.massless {
                if inertia.is_some() {
                    return Err(here.error(".massless", "a body with inertia is not massless"));
                }
                builder.massless.insert(body.name.clone());
            }
            builder.links.push(LinkSpec { name: body.name.clone(), inertia, line: here.line });
            builder.joints.push(self.joint(body, &here)?);
        }
        let numbers: Vec<Numbers> = self.document.bodies.iter().map(|b| self.numbers(b)).collect();
        mark(&mut builder.joints, &numbers);
        for (i, l) in self.document.loops.iter().enumerate() {
            let here = self.entry("loops", |p| &p.loops, i);
            let end = |end: &text::End, field: &str| -> Result<LoopEnd> {
                Ok(LoopEnd { link: end.body.clone(), origin: self.pose(&end.origin, &here, field)? })
            };
            builder.loops.push(LoopSpec {
                name: l.name.clone(),
                joint_type: joint_type(l.kind, l.axis, l.axes, l.pitch, &here, "")?,
                predecessor: end(&l.predecessor, ".predecessor.origin")?,
                successor: end(&l.successor, ".successor.origin")?,
                line: here.line,
            });
        }
        for (i, rotor) in self.document.rotors.iter().enumerate() {
            let here = self.entry("rotors", |p| &p.rotors, i);
            builder.rotors.push(RotorSpec {
                joint: rotor.joint.clone(),
                carrier: rotor.carrier.clone(),
                ratio: rotor.ratio,
                origin: self.pose(&rotor.origin, &here, ".origin")?,
                axis: rotor.axis.map_or_else(Vector3::z, Vector3::from),
                inertia: rotor.inertial.as_ref().map_or_else(Inertia::zero, inertia),
                symmetric: rotor.symmetric.unwrap_or(true),
                line: here.line,
            });
        }
        for (i, wheel) in self.document.wheels.iter().enumerate() {
            let here = self.entry("wheels", |p| &p.wheels, i);
            let limits = wheel.limits.as_ref().map(|l| limits(l, Kind::Continuous, &here, ".limits"));
            builder.wheels.push(WheelSpec {
                name: wheel.name.clone(),
                carrier: wheel.carrier.clone(),
                axis: wheel.axis.map_or_else(Vector3::z, Vector3::from),
                inertia: wheel.inertia,
                limits: limits.transpose()?.unwrap_or_default(),
                line: here.line,
            });
        }
        for (joint, position) in &self.document.assembly {
            let values = match position {
                Position::One(x) => vec![*x],
                Position::Several(list) => list.clone(),
            };
            builder.assembly.push((joint.clone(), values));
        }
        Ok(builder)
    }

    fn entry(&self, list: &str, of: fn(&Places) -> &Vec<EntryPlace>, index: usize) -> Entry {
        let line =
            self.places.as_ref().and_then(|p| of(p).get(index)).map(|entry| self.lines.at(entry.span.start));
        Entry { line, path: format!("{list}[{index}]") }
    }

    fn joint(&self, body: &text::Body, here: &Entry) -> Result<JointSpec> {
        if body.name == GROUND {
            return Err(here.error(".name", "\"ground\" is the world: give the body another name"));
        }
        let joint = &body.joint;
        let dh = match (joint.dh, joint.origin.dh) {
            (Some(_), Some(_)) => return Err(here.error(".joint", "dh is given twice")),
            (a, b) => a.or(b),
        };
        let origin = match dh {
            None => self.pose(&joint.origin, here, ".joint.origin")?,
            Some(row) => {
                if joint.dh.is_some() && !joint.origin.is_empty() {
                    return Err(here.error(".joint", "dh and origin exclude each other"));
                }
                self.only_dh(&joint.origin, here, ".joint.origin")?;
                if joint.axis.is_some_and(|a| Vector3::from(a).normalize() != Vector3::z()) {
                    return Err(here.error(".joint.axis", "with dh the axis is z: leave it out"));
                }
                match self.convention(here, ".joint")? {
                    Convention::Modified => along_x(row.a, row.alpha) * about_axis(&row),
                    Convention::Standard => {
                        let parent = self.standard.get(body.parent.as_str()).copied().unwrap_or_default();
                        along_x(parent.a, parent.alpha) * about_axis(&row)
                    }
                }
            }
        };
        let kind = joint_type(joint.kind, joint.axis, joint.axes, joint.pitch, here, ".joint")?;
        let mut spec = JointSpec::new(&joint.name, kind, &body.parent, &body.name).at(origin);
        spec.line = here.line;
        spec.independent = joint.independent;
        if let Some(l) = &joint.limits {
            spec.limits = limits(l, joint.kind, here, ".joint.limits")?;
        }
        if let Some(d) = &joint.dynamics {
            spec.dynamics = JointDynamics {
                damping: d.damping,
                friction: d.friction,
                armature: d.armature,
                stiffness: d.stiffness,
                rest: d.rest,
            };
        }
        spec.mimic = joint.mimic.as_ref().map(|m| mimic(m, here)).transpose()?;
        Ok(spec)
    }

    /// Returns the numbers that define a joint's placement.
    fn numbers(&self, body: &text::Body) -> Numbers {
        let (joint, origin) = (&body.joint, &body.joint.origin);
        let mut out = Numbers::default();
        let before = self.standard.get(body.parent.as_str()).copied();
        for row in joint.dh.or(origin.dh).into_iter().chain(before) {
            out.lengths.extend([row.a, row.d]);
            out.angles.extend([row.alpha, row.theta]);
        }
        out.lengths.extend(origin.xyz.iter().flatten());
        out.angles.extend(origin.rpy.iter().flatten());
        if let Some(rotation) = &origin.rotation {
            out.add_rotation(rotation.as_flattened());
        }
        if let Some(quaternion) = &origin.quaternion {
            out.add_rotation(quaternion);
        }
        out.axis.extend(joint.axis.iter().flatten());
        out.axis.extend(joint.axes.iter().flatten().flatten());
        out
    }

    fn convention(&self, here: &Entry, field: &str) -> Result<Convention> {
        self.document.convention.ok_or_else(|| {
            let message = "dh needs \"convention\": \"modified\" or \"standard\" at the top of the file";
            here.error(field, message)
        })
    }

    fn only_dh(&self, origin: &Origin, here: &Entry, field: &str) -> Result<()> {
        if origin.xyz.is_some() || origin.rotations() > 0 {
            return Err(here.error(field, "dh cannot be combined with xyz or a rotation"));
        }
        self.convention(here, field).map(drop)
    }

    fn pose(&self, origin: &Origin, here: &Entry, field: &str) -> Result<Pose<f64>> {
        if let Some(row) = &origin.dh {
            self.only_dh(origin, here, field)?;
            if self.convention(here, field)? == Convention::Standard {
                return Err(here.error(field, "standard dh rows place bodies only: use xyz and a rotation"));
            }
            return Ok(along_x(row.a, row.alpha) * about_axis(row));
        }
        if origin.rotations() > 1 {
            return Err(here.error(field, "expected only one of rpy, rotation and quaternion"));
        }
        let rotation = if let Some([roll, pitch, yaw]) = origin.rpy {
            rotation_from_rpy(roll, pitch, yaw)
        } else if let Some([x, y, z]) = origin.rotation {
            Matrix3::new(x[0], x[1], x[2], y[0], y[1], y[2], z[0], z[1], z[2])
        } else if let Some([x, y, z, w]) = origin.quaternion {
            rotation_from_quaternion(x, y, z, w).ok_or_else(|| {
                here.error(&format!("{field}.quaternion"), "a quaternion of zeros is not a rotation")
            })?
        } else {
            Matrix3::identity()
        };
        Ok(Pose::new(rotation, origin.xyz.unwrap_or_default().into()))
    }
}

impl Origin {
    fn rotations(&self) -> usize {
        [self.rpy.is_some(), self.rotation.is_some(), self.quaternion.is_some()]
            .iter()
            .filter(|x| **x)
            .count()
    }

    fn is_empty(&self) -> bool {
        self.xyz.is_none() && self.dh.is_none() && self.rotations() == 0
    }
}

/// Returns `Rx(alpha) Tx(a)`; the two commute, so this is also the end of a standard row.
fn along_x(a: f64, alpha: f64) -> Pose<f64> {
    Pose::new(rotation_about(&Vector3::x(), alpha), Vector3::new(a, 0.0, 0.0))
}

/// Returns `Rz(theta) Tz(d)`, the part of a row about the joint's axis.
fn about_axis(row: &Dh) -> Pose<f64> {
    Pose::new(rotation_about(&Vector3::z(), row.theta), Vector3::new(0.0, 0.0, row.d))
}

fn inertia(text: &text::Inertial) -> Inertia<f64> {
    let t = &text.inertia;
    let tensor = Matrix3::new(t.ixx, t.ixy, t.ixz, t.ixy, t.iyy, t.iyz, t.ixz, t.iyz, t.izz);
    Inertia::from_com(text.mass, text.com.into(), tensor)
}

fn joint_type(
    kind: Kind,
    axis: Option<[f64; 3]>,
    axes: Option<[[f64; 3]; 2]>,
    pitch: Option<f64>,
    here: &Entry,
    field: &str,
) -> Result<JointType> {
    if pitch.is_some() && kind != Kind::Helical {
        return Err(here.error(&format!("{field}.pitch"), "only a helical joint has a pitch"));
    }
    if axes.is_some() && kind != Kind::Universal {
        return Err(here.error(&format!("{field}.axes"), "only a universal joint takes \"axes\""));
    }
    if axis.is_some() && kind == Kind::Universal {
        return Err(here.error(&format!("{field}.axis"), "a universal joint takes two axes: \"axes\""));
    }
    let axis = axis.map_or_else(Vector3::z, Vector3::from);
    Ok(match kind {
        Kind::Fixed => JointType::Fixed,
        Kind::Revolute | Kind::Continuous => JointType::Revolute { axis },
        Kind::Prismatic => JointType::Prismatic { axis },
        Kind::Helical => {
            let pitch = pitch
                .ok_or_else(|| here.error(field, "a helical joint needs \"pitch\" in metres per radian"))?;
            JointType::Helical { axis, pitch }
        }
        Kind::Cylindrical => JointType::Cylindrical { axis },
        Kind::Universal => {
            let [first, second] = axes.ok_or_else(|| {
                here.error(field, "a universal joint needs \"axes\", the first on the parent's side")
            })?;
            JointType::Universal { axes: [first.into(), second.into()] }
        }
        Kind::Planar => JointType::Planar { normal: axis },
        Kind::Spherical => JointType::Spherical,
        Kind::Floating => JointType::Floating,
    })
}

fn mimic(text: &text::Mimic, here: &Entry) -> Result<Mimic> {
    match (&text.joint, &text.joints, text.ratio) {
        (Some(joint), None, ratio) => Ok(Mimic::new(joint, ratio.unwrap_or(1.0), text.offset)),
        (None, Some(joints), None) => {
            let leaders = joints.iter().map(|l| (l.joint.clone(), l.ratio)).collect();
            Ok(Mimic { leaders, offset: text.offset })
        }
        _ => {
            let message = "it needs \"joint\" (and perhaps \"ratio\"), or \"joints\" with a ratio each";
            Err(here.error(".joint.mimic", message))
        }
    }
}

fn limits(text: &text::Limits, kind: Kind, here: &Entry, field: &str) -> Result<Limits> {
    let none = Limits::default();
    let limits = Limits {
        lower: text.lower.unwrap_or(none.lower),
        upper: text.upper.unwrap_or(none.upper),
        velocity: text.velocity.unwrap_or(none.velocity),
        effort: text.effort.unwrap_or(none.effort),
    };
    let error = |message: String| Err(here.error(field, message));
    if kind == Kind::Continuous && (text.lower.is_some() || text.upper.is_some()) {
        return error(
            "a continuous joint cannot have a lower or upper limit: make the joint revolute".into(),
        );
    }
    if limits.lower > limits.upper {
        return error(format!("lower {} is above upper {}", limits.lower, limits.upper));
    }
    if limits.velocity < 0.0 || limits.effort < 0.0 {
        return error("velocity and effort are magnitudes: they cannot be negative".into());
    }
    Ok(limits)
}
