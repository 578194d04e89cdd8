//! Distribution of the inertias of bodies among the links that make them up.

use nalgebra::{Cholesky, Matrix3, Matrix4, SymmetricEigen, Vector3};

use crate::mechanism::{Body, BodyKind, Link, Mechanism, MechanismBuilder};
use crate::spatial::{Inertia, PseudoInertia};
use crate::{Error, Place, Result};

/// New inertias of links, each in its own frame, with warnings for the user.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Shares {
    /// Names of links and rotors with their inertias.
    pub links: Vec<(String, Inertia<f64>)>,
    /// Warnings for the user.
    pub notes: Vec<String>,
}

/// Finds new inertias of links so that the mechanism built from them has the given inertias of bodies.
///
/// Links that are fixed together keep their shares of the body's mass, see [`split`]. The mass of
/// rotors that is part of their carriers does not change.
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
                    // Only the spin inertia changes; the part added to the carrier does not depend on it.
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
    if wanted == body.inertia {
        return;
    }
    let links = || mechanism.links().iter().filter(move |l| l.body == Some(index));
    // The link whose frame is the body's frame, to which all others are fixed, comes first in the tree.
    let Some(first) = links().find(|l| l.name == body.name).or_else(|| links().next()) else { return };
    let in_body = |link: &Link| Some(link.inertia?.transformed(&link.pose)).filter(|i| *i != Inertia::zero());
    let parts: Vec<(&Link, Inertia<f64>)> = links().filter_map(|link| Some((link, in_body(link)?))).collect();
    let sum = parts.iter().fold(Inertia::zero(), |sum, (_, part)| sum + *part);
    let target = sum + (wanted - body.inertia);
    let largest = parts.iter().max_by(|(_, a), (_, b)| a.mass.total_cmp(&b.mass));
    let (Some((largest, _)), Some(division)) = (largest, split(&sum, &target)) else {
        let own = first.inertia.unwrap_or_else(Inertia::zero);
        shares.links.push((first.name.clone(), own + (wanted - body.inertia)));
        return;
    };
    // The largest part takes the remainder, so that the sum equals the target up to rounding.
    let mut rest = target;
    for (link, part) in parts.iter().filter(|(link, _)| link.name != largest.name) {
        let new = division.of(part);
        rest = rest - new;
        shares.links.push((link.name.clone(), new.transformed(&link.pose.inverse())));
    }
    shares.links.push((largest.name.clone(), rest.transformed(&largest.pose.inverse())));
    if division.stretch.is_none() && parts.len() > 1 {
        let names: Vec<String> = parts.iter().map(|(link, _)| format!("\"{}\"", link.name)).collect();
        shares.notes.push(format!(
            "the inertia of the body of links {} is split by mass: their own inertias do not determine its \
             distribution",
            names.join(", ")
        ));
    }
}

/// Distribution of a body's new inertia among its parts.
struct Division {
    /// Factor of all masses.
    mass: f64,
    /// Centres of mass of the old and the new body.
    centres: [Vector3<f64>; 2],
    /// Linear map of positions relative to the centre of mass; without one, all parts are proportional to the whole
    /// body.
    stretch: Option<Matrix3<f64>>,
    /// Second moments of the new body about its centre of mass, per unit mass.
    moments: Matrix3<f64>,
}

/// Divides the inertia of a body among its parts in proportion to their old inertias. Each part keeps its share of the
/// mass. The mass moves by the affine map that takes the second moments of the old body to those of the new one with
/// the least motion (the optimal transport between two Gaussians). Physically consistent parts stay consistent. Returns
/// `None` if the old or the new body has no mass or the new one is not physically consistent.
fn split(old: &Inertia<f64>, new: &Inertia<f64>) -> Option<Division> {
    if !(old.mass > 0.0 && new.mass > 0.0 && is_possible(new)) {
        return None;
    }
    let central = |inertia: &Inertia<f64>| {
        let about = inertia.about_com() / inertia.mass;
        Matrix3::from_diagonal_element(0.5 * about.trace()) - about
    };
    let (from, to) = (central(old), central(new));
    let centres = [old.com()?, new.com()?];
    // A = F^-1/2 (F^1/2 T F^1/2)^1/2 F^-1/2 gives A F A = T.
    let stretch = root(&from, false).zip(root(&from, true)).and_then(|(root_from, inverse)| {
        let middle = SymmetricEigen::new(root_from * to * root_from);
        let values = middle.eigenvalues.map(|x| x.max(0.0).sqrt());
        let middle = middle.eigenvectors * Matrix3::from_diagonal(&values) * middle.eigenvectors.transpose();
        Some(inverse * middle * inverse).filter(|a| a.iter().all(|x| x.is_finite()))
    });
    Some(Division { mass: new.mass / old.mass, centres, stretch, moments: to })
}

/// Returns the square root of a positive definite matrix, or the inverse of that root; `None` for other matrices.
fn root(m: &Matrix3<f64>, inverse: bool) -> Option<Matrix3<f64>> {
    let eigen = SymmetricEigen::new(*m);
    let least = eigen.eigenvalues.max() * 1e-12;
    if !(eigen.eigenvalues.min() > least && least > 0.0) {
        return None;
    }
    let values = eigen.eigenvalues.map(|x| if inverse { x.sqrt().recip() } else { x.sqrt() });
    Some(eigen.eigenvectors * Matrix3::from_diagonal(&values) * eigen.eigenvectors.transpose())
}

impl Division {
    /// Computes the new inertia of a part, in the frame of the body.
    fn of(&self, part: &Inertia<f64>) -> Inertia<f64> {
        let mass = part.mass * self.mass;
        let Some(stretch) = self.stretch else {
            return with_moments(mass, self.centres[1], self.moments * mass);
        };
        let about = part.about_com();
        let moments = Matrix3::from_diagonal_element(0.5 * about.trace()) - about;
        let moments = stretch * moments * stretch * self.mass;
        let com = part.com().map_or(self.centres[1], |c| self.centres[1] + stretch * (c - self.centres[0]));
        with_moments(mass, com, moments)
    }
}

/// Returns the inertia of a mass with these second moments about its centre.
fn with_moments(mass: f64, com: Vector3<f64>, moments: Matrix3<f64>) -> Inertia<f64> {
    Inertia::from_com(mass, com, Matrix3::from_diagonal_element(moments.trace()) - moments)
}

/// Returns whether the pseudo-inertia, scaled to a unit diagonal, is positive semidefinite within rounding.
fn is_possible(inertia: &Inertia<f64>) -> bool {
    let p = PseudoInertia::from(inertia).0;
    let size = p.diagonal().map(|d| d.abs().sqrt());
    let scaled = Matrix4::from_fn(|i, j| {
        let unit = size[i] * size[j];
        if unit > 0.0 { p[(i, j)] / unit } else { p[(i, j)] }
    });
    Cholesky::new(scaled + Matrix4::from_diagonal_element(1e-12)).is_some()
}
