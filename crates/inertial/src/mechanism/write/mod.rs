//! Writers of model texts: they replace values and keep all other bytes.

use std::collections::HashMap;

use crate::mechanism::read::{Format, detect, urdf::read_with_rotor_links};
use crate::mechanism::{Body, BodyKind, Mechanism, MechanismBuilder};
use crate::spatial::Inertia;
use crate::{Error, Place, Result};

mod describe;
mod edits;
pub mod file;
pub mod mjcf;
pub mod sdf;
mod share;
pub mod urdf;

pub use describe::{Syntax, describe};
pub use share::Shares;

/// Replaces the inertias of links and rotors (named as in [`super::MechanismBuilder::rotor_names`]), each in its own
/// frame, in a model of any format that can be written.
pub fn replace_inertias(text: &str, inertias: &[(&str, Inertia<f64>)]) -> Result<String> {
    match detect(text) {
        Format::File => file::replace_inertials(text, inertias),
        Format::Mjcf => mjcf::replace_values(text, inertias, &[]),
        Format::Sdf => sdf::replace_values(text, inertias, &[]),
        Format::Usd => Err(Error::unsupported(Place::default(), "writing scenes of USD")),
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

/// Returns the links and rotors whose inertias change if the bodies of `mechanism`, which was built from `model`, take
/// those of `new`. Links that are fixed together keep their shares of the mass.
pub fn changed_links(model: &MechanismBuilder, mechanism: &Mechanism, new: &Mechanism) -> Result<Shares> {
    let with_mass = |b: &&Body| b.kind != BodyKind::Massless;
    let bodies: Vec<_> =
        new.bodies().iter().filter(with_mass).map(|b| (b.name.as_str(), b.inertia)).collect();
    share::share(model, &model.rotor_names(), mechanism, &bodies)
}

/// Returns the inertias of the links that make up the bodies of `new`, each in its own frame, divided as in
/// [`changed_links`]. Links without inertia are omitted.
pub fn link_inertias(
    model: &MechanismBuilder,
    mechanism: &Mechanism,
    new: &Mechanism,
) -> Result<Vec<(String, Inertia<f64>)>> {
    let shares = changed_links(model, mechanism, new)?;
    let changed: HashMap<&str, Inertia<f64>> =
        shares.links.iter().map(|(name, inertia)| (name.as_str(), *inertia)).collect();
    let links = mechanism.links().iter().filter_map(|link| {
        let inertia = changed.get(link.name.as_str()).copied().or(link.inertia)?;
        Some((link.name.clone(), inertia)).filter(|(_, inertia)| *inertia != Inertia::zero())
    });
    Ok(links.collect())
}

fn unknown(name: &str) -> Error {
    Error::model(Place::default(), format!("the model has no link and no rotor \"{name}\""))
}
