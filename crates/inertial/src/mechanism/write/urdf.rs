//! Replacement of values in a URDF text; all other bytes stay unchanged.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use nalgebra::Vector3;

use super::edits::{Edits, number, numbers};
use super::share::share;
use crate::mechanism::BuildOptions;
use crate::mechanism::read::repair::repaired;
use crate::mechanism::read::urdf::{has_quaternions, read_with_rotor_links};
use crate::mechanism::read::xml::{Element, Xml};
use crate::spatial::Inertia;
use crate::{Error, Place, Result};

/// New values for a URDF. Everything that is not named stays unchanged.
///
/// ```
/// use inertial::mechanism::write::urdf::NewValues;
/// use inertial::spatial::Inertia;
/// use nalgebra::{Matrix3, vector};
/// let text = r#"<robot name="rod"><link name="base"/><link name="rod"><inertial><mass value="1"/>
///   <inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial></link>
///   <joint name="hinge" type="continuous"><parent link="base"/><child link="rod"/></joint></robot>"#;
/// let rod = Inertia::from_com(2.0, vector![0.0, 0.0, 0.0], Matrix3::identity());
/// let new = NewValues { links: vec![("rod", rod)], ..NewValues::default() };
/// assert_eq!(new.write(text)?, text.replace(r#"value="1""#, r#"value="2.0""#));
/// # Ok::<(), inertial::Error>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct NewValues<'a> {
    /// Inertias of single links, each in its link's frame.
    pub links: Vec<(&'a str, Inertia<f64>)>,
    /// Viscous damping and Coulomb friction of joints.
    pub joints: Vec<(&'a str, Friction)>,
}

/// Values of a joint's `<dynamics>` element.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Friction {
    /// Viscous damping (N m s/rad or N s/m).
    pub damping: f64,
    /// Coulomb friction (N m or N).
    pub friction: f64,
}

/// Text with new values of whole bodies.
#[derive(Debug, Clone)]
pub struct Written {
    /// Text with the new values.
    pub text: String,
    /// Warnings for the user.
    pub notes: Vec<String>,
}

impl NewValues<'_> {
    /// Returns the text with these values.
    ///
    /// A tensor is written along the link's axes (`rpy` becomes zero). Numbers have the fewest digits that read back as
    /// the same value. A value that does not change keeps its digits. Each `&` that is not escaped becomes `&amp;`.
    pub fn write(&self, text: &str) -> Result<String> {
        let repaired = repaired(text);
        let xml = Xml::parse(&repaired.text)?;
        let mut edits = Edits::new(&repaired.original);
        let named = |tag: &str| -> HashMap<&str, Element<'_>> {
            xml.root().children_named(tag).filter_map(|e| e.attribute("name").map(|name| (name, e))).collect()
        };
        let (links, joints) = (named("link"), named("joint"));
        let missing =
            |what, name| Error::model(Place::default(), format!("the text has no {what} \"{name}\""));
        let twice = |name| Error::model(Place::default(), format!("\"{name}\" is given two new values"));
        let (mut seen_links, mut seen_joints) = (HashSet::new(), HashSet::new());
        for (name, inertia) in &self.links {
            if !seen_links.insert(name) {
                return Err(twice(name));
            }
            let link = links.get(name).ok_or_else(|| missing("link", name))?;
            edits.link(*link, inertia)?;
        }
        for (name, friction) in &self.joints {
            if !seen_joints.insert(name) {
                return Err(twice(name));
            }
            let joint = joints.get(name).ok_or_else(|| missing("joint", name))?;
            edits.joint(*joint, friction)?;
        }
        Ok(edits.apply())
    }
}

/// Writes new inertias of bodies (by their names in the mechanism, in their frames) and new friction of joints.
///
/// Reading the result with the same options gives these values. Links that are fixed together keep their shares of the
/// mass: their mass moves by one affine map. If the new or the old body is not physically consistent, the link nearest
/// the base takes the difference.
pub fn write_bodies(
    text: &str,
    options: &BuildOptions,
    bodies: &[(&str, Inertia<f64>)],
    joints: &[(&str, Friction)],
) -> Result<Written> {
    let (model, rotor_links) = read_with_rotor_links(text)?;
    let mechanism = model.build(options)?;
    let shares = share(&model, &rotor_links, &mechanism, bodies)?;
    let links = shares.links.iter().map(|(name, inertia)| (name.as_str(), *inertia)).collect();
    let text = NewValues { links, joints: joints.to_vec() }.write(text)?;
    Ok(Written { text, notes: shares.notes })
}

impl Edits<'_> {
    fn link(&mut self, link: Element<'_>, inertia: &Inertia<f64>) -> Result<()> {
        let com = inertia.com().unwrap_or_else(Vector3::zeros);
        let tensor = inertia.about_com();
        if !inertia.parameters().iter().chain(&com).chain(&tensor).all(|x| x.is_finite()) {
            return Err(link.error("its new inertia is not finite"));
        }
        if inertia.mass == 0.0 && inertia.first_moment != Vector3::zeros() {
            return Err(link.error("first moments without mass cannot be written in URDF"));
        }
        let entries = [
            ("ixx", tensor[(0, 0)]),
            ("ixy", tensor[(0, 1)]),
            ("ixz", tensor[(0, 2)]),
            ("iyy", tensor[(1, 1)]),
            ("iyz", tensor[(1, 2)]),
            ("izz", tensor[(2, 2)]),
        ];
        let inertial = link.first_child("inertial");
        let Some((inertial, mass)) = inertial.and_then(|i| i.first_child("mass").map(|mass| (i, mass)))
        else {
            // An element without mass has no effect.
            if let Some(empty) = inertial.filter(|_| *inertia != Inertia::zero()) {
                self.replace(empty.layout().range, String::new());
            }
            if *inertia != Inertia::zero() {
                self.insert_inertial(link, inertia.mass, &com, &entries);
            }
            return Ok(());
        };
        match inertial.first_child("origin") {
            Some(origin) => {
                self.set_vector(origin, "xyz", &com);
                match origin.value_range("quat_xyzw").filter(|_| has_quaternions(origin)) {
                    Some(range) => self.replace(range, "0 0 0 1".to_owned()),
                    None => self.set_vector(origin, "rpy", &Vector3::zeros()),
                }
            }
            None if com == Vector3::zeros() => {}
            None => {
                let at = mass.layout().range.start;
                let gap = self.line_indent(at).map_or(String::new(), |i| format!("{}{i}", self.newline));
                self.insert(at, format!("<origin xyz=\"{}\"/>{gap}", numbers(&com)));
            }
        }
        self.set(mass, "value", inertia.mass);
        // Without a moment of inertia, all of them are read as zero.
        let tensor = inertial.first_child("inertia");
        let moments = ["ixx", "iyy", "izz"];
        let complete = tensor.filter(|t| moments.iter().all(|name| t.attribute(name).is_some()));
        match (complete, tensor) {
            (Some(tensor), _) => entries.iter().for_each(|(name, value)| self.set(tensor, name, *value)),
            (None, _) if entries.iter().all(|(_, value)| *value == 0.0) => {}
            (None, Some(tensor)) => self.replace(tensor.layout().range, inertia_element(&entries)),
            (None, None) => {
                let Range { start, end } = mass.layout().range;
                let gap = self.line_indent(start).map_or(String::new(), |i| format!("{}{i}", self.newline));
                self.insert(end, gap + &inertia_element(&entries));
            }
        }
        Ok(())
    }

    fn joint(&mut self, joint: Element<'_>, friction: &Friction) -> Result<()> {
        let Friction { damping, friction } = *friction;
        if !(damping.is_finite() && friction.is_finite()) {
            return Err(joint.error("its new friction is not finite"));
        }
        if let Some(dynamics) = joint.first_child("dynamics") {
            self.set(dynamics, "damping", damping);
            self.set(dynamics, "friction", friction);
        } else if damping != 0.0 || friction != 0.0 {
            let (damping, friction) = (number(damping), number(friction));
            let element = format!("<dynamics damping=\"{damping}\" friction=\"{friction}\"/>");
            self.append(joint, &[element]);
        }
        Ok(())
    }

    fn insert_inertial(&mut self, link: Element<'_>, mass: f64, com: &Vector3<f64>, entries: &[(&str, f64)]) {
        self.append(
            link,
            &[
                "<inertial>".to_owned(),
                format!("\t<origin xyz=\"{}\"/>", numbers(com)),
                format!("\t<mass value=\"{}\"/>", number(mass)),
                format!("\t{}", inertia_element(entries)),
                "</inertial>".to_owned(),
            ],
        );
    }
}

fn inertia_element(entries: &[(&str, f64)]) -> String {
    let attributes: Vec<_> =
        entries.iter().map(|(name, value)| format!("{name}=\"{}\"", number(*value))).collect();
    format!("<inertia {}/>", attributes.join(" "))
}
