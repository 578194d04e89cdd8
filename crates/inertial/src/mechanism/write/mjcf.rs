//! Replacement of values in an MJCF text; all other bytes stay unchanged.

use std::collections::HashMap;

use nalgebra::Vector3;

use super::edits::{Edits, number, numbers};
use super::file::NewDynamics;
use super::share::share;
use super::unknown;
use super::urdf::Written;
use crate::mechanism::read::mjcf::{BodyText, includes_files, read, read_without_meshes, with_bodies};
use crate::mechanism::read::no_includes;
use crate::mechanism::read::repair::repaired;
use crate::mechanism::read::xml::Element;
use crate::mechanism::{BuildOptions, MechanismBuilder};
use crate::spatial::Inertia;
use crate::{Error, Place, Result};

/// Tolerance for values that are read back, relative to the largest number: about a dozen rounding errors.
const TOLERANCE: f64 = 1e-9;

/// Attributes of `<inertial>` that rotate its axes.
const ORIENTATIONS: [&str; 5] = ["quat", "axisangle", "euler", "xyaxes", "zaxis"];

/// Rejects texts that cannot be written: those that include other files.
pub fn check(text: &str) -> Result<()> {
    if includes_files(text)? {
        return Err(Error::unsupported(
            Place::default(),
            "writing MJCF that includes other files (give the file that contains the bodies)",
        ));
    }
    Ok(())
}

/// Writes new inertias of bodies (by their names in the mechanism, in their frames) and new dynamics of joints. Reading
/// the result with the same options gives these values. Bodies that are fixed together share the inertia as described
/// for [`super::urdf::write_bodies`].
pub fn write_bodies(
    text: &str,
    options: &BuildOptions,
    bodies: &[(&str, Inertia<f64>)],
    joints: &[(&str, NewDynamics)],
) -> Result<Written> {
    check(text)?;
    let model = read(text, &no_includes)?;
    let shares = share(&model, &model.rotor_names(), &model.build(options)?, bodies)?;
    let links: Vec<_> = shares.links.iter().map(|(name, inertia)| (name.as_str(), *inertia)).collect();
    Ok(Written { text: replace_values(text, &links, joints)?, notes: shares.notes })
}

/// Replaces inertias of links, each in its link's frame, and dynamics of joints.
///
/// A body without `<inertial>` gets one, which takes precedence over its geoms. A tensor is written along the axes of
/// the body.
///
/// ```
/// use inertial::mechanism::write::mjcf::replace_values;
/// use inertial::spatial::Inertia;
/// use nalgebra::{Matrix3, Vector3};
/// let text = r#"<mujoco><worldbody><body name="rod"><joint/><geom size="0.1"/></body></worldbody></mujoco>"#;
/// let ball = Inertia::from_com(2.0, Vector3::zeros(), Matrix3::identity());
/// let inertial = r#"<inertial pos="0.0 0.0 0.0" mass="2.0" diaginertia="1.0 1.0 1.0"/>"#;
/// assert_eq!(replace_values(text, &[("rod", ball)], &[])?, text.replace("<joint/>", &format!("{inertial}<joint/>")));
/// # Ok::<(), inertial::Error>(())
/// ```
pub fn replace_values(
    text: &str,
    links: &[(&str, Inertia<f64>)],
    joints: &[(&str, NewDynamics)],
) -> Result<String> {
    check(text)?;
    let repaired = repaired(text);
    let out = with_bodies(&repaired.text, |bodies| {
        let mut edits = Edits::new(&repaired.original);
        let by_name: HashMap<&str, &BodyText<'_>> = bodies.iter().map(|b| (b.name, b)).collect();
        for (name, inertia) in links {
            let body = by_name.get(name).ok_or_else(|| unknown(name))?;
            edits.body(body, inertia)?;
        }
        let by_name: HashMap<&str, Element<'_>> =
            bodies.iter().flat_map(|b| &b.joints).map(|(name, element)| (*name, *element)).collect();
        for (name, new) in joints {
            let joint = by_name.get(name).ok_or_else(|| {
                Error::model(Place::default(), format!("the model has no joint \"{name}\""))
            })?;
            edits.dynamics(*joint, new);
        }
        Ok(edits.apply())
    })?;
    verify(&read_without_meshes(&out)?, links, joints)?;
    Ok(out)
}

/// Rejects values that do not read back: compiler settings and classes may change them.
fn verify(
    model: &MechanismBuilder,
    links: &[(&str, Inertia<f64>)],
    joints: &[(&str, NewDynamics)],
) -> Result<()> {
    for (name, wanted) in links {
        let link = model.links.iter().find(|l| l.name == *name);
        let found = link.and_then(|l| l.inertia).unwrap_or_else(Inertia::zero).parameters();
        let wanted = wanted.parameters();
        if (found - wanted).amax() > TOLERANCE * wanted.amax() {
            return Err(Error::unsupported(
                Place::default(),
                format!(
                    "writing the inertia of \"{name}\" into this MJCF: settings of its <compiler> \
                     (inertiafromgeom, settotalmass, boundmass, boundinertia, balanceinertia) change what is written"
                ),
            ));
        }
    }
    for (name, new) in joints {
        let found = model.joints.iter().find(|j| j.name == *name).map(|j| j.dynamics).unwrap_or_default();
        if !new.matches(&found) {
            return Err(Error::unsupported(
                Place::default(),
                format!(
                    "writing the dynamics of \"{name}\" into this MJCF: its options or actuators change them"
                ),
            ));
        }
    }
    Ok(())
}

impl Edits<'_> {
    /// Sets the inertia of a body, given in its link's frame.
    fn body(&mut self, body: &BodyText<'_>, inertia: &Inertia<f64>) -> Result<()> {
        let around = body.inertial.map_or(body.frame, |(_, frame)| body.frame * frame);
        let inertia = inertia.transformed(&around.inverse());
        let (com, tensor) = (inertia.com().unwrap_or_else(Vector3::zeros), inertia.about_com());
        if !inertia.parameters().iter().chain(&com).chain(&tensor).all(|x| x.is_finite()) {
            return Err(body.element.error("its new inertia is not finite"));
        }
        if inertia.mass == 0.0 && inertia.first_moment != Vector3::zeros() {
            return Err(body.element.error("first moments without mass cannot be written in MJCF"));
        }
        let diagonal = [(0, 0), (1, 1), (2, 2)].map(|at| tensor[at]);
        let products = [(0, 1), (0, 2), (1, 2)].map(|at| tensor[at]);
        let list = |x: &[f64]| x.iter().map(|x| number(*x)).collect::<Vec<_>>().join(" ");
        let (name, values) = if products == [0.0; 3] {
            ("diaginertia", list(&diagonal))
        } else {
            ("fullinertia", list(&[diagonal, products].concat()))
        };
        let Some((element, _)) = body.inertial else {
            let (pos, mass) = (numbers(&com), number(inertia.mass));
            self.prepend(
                body.element,
                format!("<inertial pos=\"{pos}\" mass=\"{mass}\" {name}=\"{values}\"/>"),
            );
            return Ok(());
        };
        self.set_vector(element, "pos", &com);
        self.set(element, "mass", inertia.mass);
        for orientation in ORIENTATIONS {
            self.remove_attribute(element, orientation);
        }
        let old = ["diaginertia", "fullinertia"].into_iter().find_map(|old| element.attribute_range(old));
        match old {
            Some(range) => self.replace(range, format!("{name}=\"{values}\"")),
            None => self.insert(element.layout().attributes, format!(" {name}=\"{values}\"")),
        }
        Ok(())
    }

    fn dynamics(&mut self, joint: Element<'_>, new: &NewDynamics) {
        for (name, value) in
            [("damping", new.damping), ("frictionloss", new.friction), ("armature", new.armature)]
        {
            let Some(value) = value else { continue };
            // A missing attribute is always added: a class may define another value.
            match joint.value_range(name) {
                Some(range) => self.replace(range, number(value)),
                None => self.insert(joint.layout().attributes, format!(" {name}=\"{}\"", number(value))),
            }
        }
    }
}
