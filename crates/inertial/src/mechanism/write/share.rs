//! From the values of bodies to those of the links that make them up.

use nalgebra::{Cholesky, Matrix4};

use crate::mechanism::{Body, BodyKind, Mechanism, MechanismBuilder};
use crate::spatial::{Inertia, PseudoInertia};
use crate::{Error, Place, Result};

/// New inertias of links, each in its own frame, and what people should know of them.
#[derive(Debug, Default)]
pub(super) struct Shares {
    pub(super) links: Vec<(String, Inertia<f64>)>,
    pub(super) notes: Vec<String>,
}

/// Finds new inertias of links so that the mechanism built from them has the given inertias of bodies.
///
/// The link that names the body takes the difference and what is fixed to it (links, the dead weight of rotors) stays
/// as it is. Where that leaves the link with an inertia that no body can have though the body's is possible, the link
/// takes all and the links fixed to it become massless.
pub(super) fn share(
    model: &MechanismBuilder,
    rotor_links: &[String],
    mechanism: &Mechanism,
    bodies: &[(&str, Inertia<f64>)],
) -> Result<Shares> {
    let mut shares = Shares::default();
    for &(name, wanted) in bodies {
        let found = mechanism.bodies().iter().position(|b| b.name == name && b.kind != BodyKind::Massless);
        let Some(index) = found else {
            return Err(Error::model(Place::default(), format!("the model has no body \"{name}\"")));
        };
        let body = &mechanism.bodies()[index];
        if let Some(rotor) = index.checked_sub(mechanism.link_bodies()) {
            let described = &model.rotors[rotor];
            let inertia = match body.kind {
                BodyKind::SymmetricRotor => {
                    // The spin inertia alone changes; what the carrier feels does not depend on it.
                    let spin = wanted.rotational[(2, 2)] - body.inertia.rotational[(2, 2)];
                    let axis = described.axis.normalize();
                    let added = Inertia { rotational: axis * axis.transpose() * spin, ..Inertia::zero() };
                    described.inertia + added
                }
                _ => wanted,
            };
            shares.links.push((rotor_links[rotor].clone(), inertia));
        } else {
            share_body(mechanism, index, body, wanted, &mut shares);
        }
    }
    Ok(shares)
}

fn share_body(mechanism: &Mechanism, index: usize, body: &Body, wanted: Inertia<f64>, shares: &mut Shares) {
    let parts = || mechanism.links().iter().filter(move |l| l.body == Some(index));
    // The link whose frame is the body's frame and that all others are fixed to comes first in the tree.
    let Some(first) = parts().find(|l| l.name == body.name).or_else(|| parts().next()) else { return };
    let fixed = || parts().filter(|l| l.name != first.name && l.inertia.is_some());
    let own = first.inertia.unwrap_or_else(Inertia::zero);
    let difference = own + (wanted - body.inertia);
    if is_possible(&difference) || !is_possible(&wanted) {
        shares.links.push((first.name.clone(), difference));
        return;
    }
    let mut whole = difference;
    let mut emptied = Vec::new();
    for link in fixed() {
        whole += link.inertia.unwrap_or_else(Inertia::zero).transformed(&link.pose);
        shares.links.push((link.name.clone(), Inertia::zero()));
        emptied.push(format!("\"{}\"", link.name));
    }
    if !emptied.is_empty() {
        shares.notes.push(format!(
            "link \"{}\" takes all inertia of its body; fixed to it and now massless: {}",
            first.name,
            emptied.join(", ")
        ));
    }
    shares.links.push((first.name.clone(), whole));
}

/// Whether the pseudo-inertia is positive semidefinite within rounding, in units in which its diagonal is one.
fn is_possible(inertia: &Inertia<f64>) -> bool {
    let p = PseudoInertia::from(inertia).0;
    let size = p.diagonal().map(|d| d.abs().sqrt());
    let scaled = Matrix4::from_fn(|i, j| {
        let unit = size[i] * size[j];
        if unit > 0.0 { p[(i, j)] / unit } else { p[(i, j)] }
    });
    Cholesky::new(scaled + Matrix4::from_diagonal_element(1e-12)).is_some()
}
