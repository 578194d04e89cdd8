//! Replacement of inertials in a mechanism file; all other bytes stay unchanged.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::ops::Range;

use super::share::share;
use super::unknown;
use super::urdf::Written;
use crate::mechanism::read::file::{self, places};
use crate::mechanism::{BuildOptions, JointDynamics};
use crate::spatial::Inertia;
use crate::{Error, Place, Result};
use places::{DynamicsPlace, EntryPlace, JointPlace, Places, is_json};

/// Replaces the inertials of the bodies named in `inertias`, and of rotors named `JOINT.rotor` (the second rotor of a
/// joint is `JOINT.rotor2`). An entry without inertial gets one. Nothing else in the text changes.
///
/// ```
/// use inertial::mechanism::{read, write};
/// use inertial::spatial::Inertia;
/// use nalgebra::{Matrix3, Vector3};
/// let text = r#"{"schema": "inertial/mechanism/1", "bodies": [
///   {"name": "rod", "parent": "ground", "joint": {"name": "hinge", "type": "revolute"}}]}"#;
/// let ball = Inertia::from_com(2.0, Vector3::zeros(), Matrix3::identity() * 0.1);
/// let text = write::file::replace_inertials(text, &[("rod", ball)])?;
/// assert_eq!(read::file::read(&text)?.links[0].inertia, Some(ball));
/// # Ok::<(), inertial::Error>(())
/// ```
pub fn replace_inertials(text: &str, inertias: &[(&str, Inertia<f64>)]) -> Result<String> {
    replace_values(text, inertias, &[])
}

/// New values of a joint's `dynamics`; absent values are not changed.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct NewDynamics {
    /// Viscous damping.
    pub damping: Option<f64>,
    /// Coulomb friction.
    pub friction: Option<f64>,
    /// Inertia added at the joint.
    pub armature: Option<f64>,
}

impl NewDynamics {
    /// Returns whether a joint has these values.
    pub(super) fn matches(&self, found: &JointDynamics) -> bool {
        let pairs =
            [(self.damping, found.damping), (self.friction, found.friction), (self.armature, found.armature)];
        pairs.iter().all(|(new, found)| new.is_none_or(|x| x == *found))
    }
}

/// Replaces inertials as [`replace_inertials`] does, and values of the `dynamics` of joints.
pub fn replace_values(
    text: &str,
    inertias: &[(&str, Inertia<f64>)],
    joints: &[(&str, NewDynamics)],
) -> Result<String> {
    let described = file::read(text)?;
    let unplaced = || Error::syntax(Place::default(), "the entries of the file cannot be located");
    let places = Places::find(text).ok_or_else(unplaced)?;
    let rotors = described.rotor_names();
    let bodies = described.links.iter().map(|l| l.name.as_str()).zip(&places.bodies);
    let entries: HashMap<&str, &EntryPlace> =
        bodies.chain(rotors.iter().map(String::as_str).zip(&places.rotors)).collect();
    let mut edits: Vec<(Range<usize>, String)> = Vec::new();
    for (name, inertia) in inertias {
        let entry = entries.get(name).ok_or_else(|| unknown(name))?;
        edit(text, entry, inertia, &mut edits);
    }
    for (name, new) in joints {
        let joint = described.joints.iter().find(|j| j.name == *name);
        let place = joint.and_then(|j| entries.get(j.child.as_str())?.joint.as_ref());
        let place = place
            .ok_or_else(|| Error::model(Place::default(), format!("the model has no joint \"{name}\"")))?;
        edit_dynamics(text, place, new, &mut edits);
    }
    edits.sort_by_key(|(range, _)| range.start);
    let mut out = String::with_capacity(text.len() + 64 * edits.len());
    let mut done = 0;
    for (range, new) in edits {
        out.push_str(&text[done..range.start]);
        out.push_str(&new);
        done = range.end;
    }
    out.push_str(&text[done..]);
    // New keys cannot be added to every notation of a table, so the result is read back and checked.
    let read = if joints.is_empty() { described } else { file::read(&out)? };
    for (name, new) in joints {
        let found = read.joints.iter().find(|j| j.name == *name).map(|j| j.dynamics).unwrap_or_default();
        if !new.matches(&found) {
            return Err(Error::unsupported(
                Place::default(),
                format!("writing the dynamics of \"{name}\" where they are given in this file"),
            ));
        }
    }
    Ok(out)
}

/// Writes new inertias of bodies (by their names in the mechanism, in their frames, including rotors) and new dynamics
/// of joints. Reading the result with the same options gives these values. Links that are fixed together share the
/// inertia as described for [`super::urdf::write_bodies`].
pub fn write_bodies(
    text: &str,
    options: &BuildOptions,
    bodies: &[(&str, Inertia<f64>)],
    joints: &[(&str, NewDynamics)],
) -> Result<Written> {
    let model = file::read(text)?;
    let shares = share(&model, &model.rotor_names(), &model.build(options)?, bodies)?;
    let links: Vec<_> = shares.links.iter().map(|(name, inertia)| (name.as_str(), *inertia)).collect();
    Ok(Written { text: replace_values(text, &links, joints)?, notes: shares.notes })
}

fn edit_dynamics(text: &str, joint: &JointPlace, new: &NewDynamics, edits: &mut Vec<(Range<usize>, String)>) {
    let key = |name: &str| if is_json(text) { format!("\"{name}\": ") } else { format!("{name} = ") };
    let place =
        |of: fn(&DynamicsPlace) -> &Option<Range<usize>>| joint.dynamics.as_ref().and_then(|d| of(d).clone());
    let mut missing = Vec::new();
    for (name, value, place) in [
        ("damping", new.damping, place(|d| &d.damping)),
        ("friction", new.friction, place(|d| &d.friction)),
        ("armature", new.armature, place(|d| &d.armature)),
    ] {
        match (value, place) {
            (Some(value), Some(range)) => edits.push((range, format!("{value:?}"))),
            // A missing value is zero.
            (Some(value), None) if value != 0.0 => missing.push(format!("{}{value:?}", key(name))),
            _ => {}
        }
    }
    if missing.is_empty() {
        return;
    }
    let (at, entry) = match &joint.dynamics {
        Some(dynamics) => (dynamics.span.start, missing.join(", ")),
        None => (joint.span.start, format!("{}{{ {} }}", key("dynamics"), missing.join(", "))),
    };
    if text[at..].starts_with('{') {
        let comma = if text[at + 1..].trim_start().starts_with('}') { "" } else { ", " };
        edits.push((at + 1..at + 1, format!("{entry}{comma}")));
    } else {
        // The table has its own header: the keys are added on the lines below it.
        let end = text[at..].find('\n').map_or(text.len(), |n| at + n);
        let lines = if joint.dynamics.is_some() { missing.join("\n") } else { entry };
        edits.push((end..end, format!("\n{lines}")));
    }
}

fn edit(text: &str, entry: &EntryPlace, inertia: &Inertia<f64>, edits: &mut Vec<(Range<usize>, String)>) {
    let com = inertia.com().unwrap_or_default();
    let com_text = format!("[{:?}, {:?}, {:?}]", com.x, com.y, com.z);
    let central = inertia.about_com();
    let tensor = [(0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)].map(|at| central[at]);
    let inline = |at: usize| text[at..].starts_with('{');
    let Some(place) = &entry.inertial else {
        let start = entry.span.start;
        let key = |name: &str| if is_json(text) { format!("\"{name}\": ") } else { format!("{name} = ") };
        let mut new = format!(
            "{}{{ {}{:?}, {}{com_text}, {}{{ ",
            key("inertial"),
            key("mass"),
            inertia.mass,
            key("com"),
            key("inertia")
        );
        for (i, (name, value)) in ["ixx", "ixy", "ixz", "iyy", "iyz", "izz"].iter().zip(tensor).enumerate() {
            let comma = if i == 0 { "" } else { ", " };
            let _ = write!(new, "{comma}{}{value:?}", key(name));
        }
        new.push_str(" } }");
        // Inserted first in the braces, or on a line of its own below the header `[[bodies]]`.
        if inline(start) {
            edits.push((start + 1..start + 1, format!("{new}, ")));
        } else {
            let end = text[start..].find('\n').map_or(text.len(), |n| start + n);
            edits.push((end..end, format!("\n{new}")));
        }
        return;
    };
    let mut set = |range: &Range<usize>, new: String| edits.push((range.clone(), new));
    set(&place.mass, format!("{:?}", inertia.mass));
    for (range, value) in place.tensor.iter().zip(tensor) {
        set(range, format!("{value:?}"));
    }
    if let Some(range) = &place.com {
        set(range, com_text);
    } else if com.amax() > 0.0 {
        let end = place.mass.end;
        let new = match (is_json(text), inline(place.span.start)) {
            (true, _) => format!(", \"com\": {com_text}"),
            (false, true) => format!(", com = {com_text}"),
            (false, false) => format!("\ncom = {com_text}"),
        };
        set(&(end..end), new);
    }
}
