//! Replacement of values in an SDF text; all other bytes stay unchanged.

use std::collections::HashMap;

use nalgebra::Vector3;

use super::edits::{Edits, number, numbers};
use super::unknown;
use super::urdf::Friction;
use crate::mechanism::read::repair::repaired;
use crate::mechanism::read::sdf::{LinkText, read, with_links};
use crate::mechanism::read::xml::{Element, Xml, parse_number};
use crate::spatial::Inertia;
use crate::{Error, Place, Result};

/// Tolerance for values that are read back, relative to the largest number: about a dozen rounding errors.
const TOLERANCE: f64 = 1e-9;

/// Replaces inertias of links, each in its link's frame, and friction of joints.
///
/// A tensor is written along the axes of the SDF link. A link without `<inertial>` gets one.
///
/// ```
/// use inertial::mechanism::write::sdf::replace_values;
/// use inertial::spatial::Inertia;
/// use nalgebra::{Matrix3, Vector3};
/// let text = "<sdf version=\"1.9\"><model name=\"m\"><link name=\"a\"><inertial><mass>1</mass></inertial></link></model></sdf>";
/// let ball = Inertia::from_com(2.0, Vector3::zeros(), Matrix3::identity());
/// assert_eq!(replace_values(text, &[("a", ball)], &[])?, text.replace("<mass>1<", "<mass>2.0<"));
/// # Ok::<(), inertial::Error>(())
/// ```
pub fn replace_values(
    text: &str,
    links: &[(&str, Inertia<f64>)],
    joints: &[(&str, Friction)],
) -> Result<String> {
    let repaired = repaired(text);
    let xml = Xml::parse(&repaired.text)?;
    let out = with_links(&xml, |own, described| {
        let mut edits = Edits::new(&repaired.original);
        let by_name: HashMap<&str, &LinkText<'_>> = own.iter().map(|link| (link.name, link)).collect();
        for (name, inertia) in links {
            let link = by_name.get(name).ok_or_else(|| unknown(name))?;
            edits.sdf_link(link, inertia)?;
        }
        let by_name: HashMap<&str, Element<'_>> = described.iter().copied().collect();
        for (name, friction) in joints {
            let joint = by_name.get(name).ok_or_else(|| {
                Error::model(Place::default(), format!("the model has no joint \"{name}\""))
            })?;
            edits.sdf_joint(*joint, friction)?;
        }
        Ok(edits.apply())
    })?;
    // The result is read back and checked.
    let again = read(&out)?;
    for (name, wanted) in links {
        let found = again.links.iter().find(|l| l.name == *name).and_then(|l| l.inertia);
        let (found, wanted) = (found.unwrap_or_else(Inertia::zero).parameters(), wanted.parameters());
        if (found - wanted).amax() > TOLERANCE * wanted.amax() {
            let feature = format!("writing the inertia of \"{name}\" where it is given in this file");
            return Err(Error::unsupported(Place::default(), feature));
        }
    }
    Ok(out)
}

impl Edits<'_> {
    fn sdf_link(&mut self, link: &LinkText<'_>, inertia: &Inertia<f64>) -> Result<()> {
        let inertia = inertia.transformed(&link.frame.inverse());
        let (com, tensor) = (inertia.com().unwrap_or_else(Vector3::zeros), inertia.about_com());
        if !inertia.parameters().iter().chain(&com).chain(&tensor).all(|x| x.is_finite()) {
            return Err(link.element.error("its new inertia is not finite"));
        }
        if inertia.mass == 0.0 && inertia.first_moment != Vector3::zeros() {
            return Err(link.element.error("first moments without mass cannot be written in SDF"));
        }
        // The third entry is the default of a missing element.
        let entries = [
            ("ixx", tensor[(0, 0)], 1.0),
            ("ixy", tensor[(0, 1)], 0.0),
            ("ixz", tensor[(0, 2)], 0.0),
            ("iyy", tensor[(1, 1)], 1.0),
            ("iyz", tensor[(1, 2)], 0.0),
            ("izz", tensor[(2, 2)], 1.0),
        ];
        let Some(inertial) = link.element.first_child("inertial") else {
            let tensor = entries.iter().map(|(tag, x, _)| format!("\t\t<{tag}>{}</{tag}>", number(*x)));
            let mut lines = vec![
                "<inertial>".to_owned(),
                format!("\t<pose>{} 0 0 0</pose>", numbers(&com)),
                format!("\t<mass>{}</mass>", number(inertia.mass)),
                "\t<inertia>".to_owned(),
            ];
            lines.extend(tensor);
            lines.extend(["\t</inertia>".to_owned(), "</inertial>".to_owned()]);
            self.append(link.element, &lines);
            return Ok(());
        };
        match inertial.first_child("pose") {
            Some(pose) => {
                let quaternion = pose.attribute("rotation_format") == Some("quat_xyzw");
                let rotation = if quaternion { "0 0 0 1" } else { "0 0 0" };
                let wanted = format!("{} {rotation}", numbers(&com));
                let list = |text: &str| -> Option<Vec<f64>> {
                    text.split_ascii_whitespace().map(parse_number).collect()
                };
                if list(pose.text()) != list(&wanted) {
                    self.replace_text(pose, wanted);
                }
            }
            None if com == Vector3::zeros() => {}
            None => self.append(inertial, &[format!("<pose>{} 0 0 0</pose>", numbers(&com))]),
        }
        self.set_child(inertial, "mass", inertia.mass, 1.0);
        match inertial.first_child("inertia") {
            Some(element) => {
                entries.iter().for_each(|(tag, x, default)| self.set_child(element, tag, *x, *default));
            }
            None if entries.iter().all(|(_, x, default)| x == default) => {}
            None => {
                let mut lines = vec!["<inertia>".to_owned()];
                lines.extend(entries.iter().map(|(tag, x, _)| format!("\t<{tag}>{}</{tag}>", number(*x))));
                lines.push("</inertia>".to_owned());
                self.append(inertial, &lines);
            }
        }
        Ok(())
    }

    fn sdf_joint(&mut self, joint: Element<'_>, friction: &Friction) -> Result<()> {
        let Friction { damping, friction } = *friction;
        if !(damping.is_finite() && friction.is_finite()) {
            return Err(joint.error("its new friction is not finite"));
        }
        let axis = joint.required_first_child("axis")?;
        if let Some(dynamics) = axis.first_child("dynamics") {
            self.set_child(dynamics, "damping", damping, 0.0);
            self.set_child(dynamics, "friction", friction, 0.0);
        } else if damping != 0.0 || friction != 0.0 {
            let lines = [
                "<dynamics>".to_owned(),
                format!("\t<damping>{}</damping>", number(damping)),
                format!("\t<friction>{}</friction>", number(friction)),
                "</dynamics>".to_owned(),
            ];
            self.append(axis, &lines);
        }
        Ok(())
    }

    /// Sets the number in a child element; a missing element is added unless the value is its default.
    fn set_child(&mut self, element: Element<'_>, tag: &str, value: f64, default: f64) {
        match element.first_child(tag) {
            Some(child) if parse_number(child.text()) == Some(value) => {}
            Some(child) => self.replace_text(child, number(value)),
            None if value == default => {}
            None => self.append(element, &[format!("<{tag}>{}</{tag}>", number(value))]),
        }
    }

    /// Replaces the content of an element.
    fn replace_text(&mut self, element: Element<'_>, text: String) {
        let layout = element.layout();
        if let Some(end) = layout.end_tag {
            self.replace(layout.start_tag_end..end, text);
        } else {
            let tag = element.tag();
            // `<mass/>` becomes a pair of tags.
            let slash = layout.start_tag_end - 2;
            self.replace(slash..layout.start_tag_end, format!(">{text}</{tag}>"));
        }
    }
}
