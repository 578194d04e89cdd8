//! Writers of model texts: new values in, every other byte as it was.

use std::collections::HashMap;

use crate::mechanism::read::{Format, detect, urdf::read_with_rotor_links};
use crate::spatial::Inertia;
use crate::{Error, Place, Result};

pub mod file;
mod share;
pub mod urdf;

/// Replaces the inertias of links and rotors (named as in [`super::MechanismBuilder::rotor_names`]) in a model of any
/// format that can be written, each in its own frame.
pub fn replace_inertias(text: &str, inertias: &[(&str, Inertia<f64>)]) -> Result<String> {
    match detect(text) {
        Format::File => file::replace_inertials(text, inertias),
        Format::Mjcf => Err(Error::unsupported(Place::default(), "writing MJCF")),
        Format::Urdf => {
            // In URDF+ a rotor is a link of its own.
            let (model, rotor_links) = read_with_rotor_links(text)?;
            let links = model.links.iter().map(|l| (l.name.as_str(), l.name.as_str()));
            let names = model.rotor_names();
            let rotors = names.iter().map(String::as_str).zip(rotor_links.iter().map(String::as_str));
            let link_of: HashMap<&str, &str> = links.chain(rotors).collect();
            let link = |name| link_of.get(name).copied().ok_or_else(|| unknown(name));
            let links = inertias.iter().map(|(name, i)| Ok((link(name)?, *i))).collect::<Result<_>>()?;
            urdf::NewValues { links, ..urdf::NewValues::default() }.write(text)
        }
    }
}

fn unknown(name: &str) -> Error {
    Error::model(Place::default(), format!("the model has no link and no rotor \"{name}\""))
}
