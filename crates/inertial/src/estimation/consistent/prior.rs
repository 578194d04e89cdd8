//! Prior of bodies: the values of the model, or a guess based on its geometry.

use nalgebra::{DMatrix, Matrix3, Vector3};

use crate::Result;
use crate::consistency::nearest;
use crate::estimation::warning::Warning;
use crate::mechanism::{BodyKind, Mechanism};
use crate::spatial::{Inertia, PseudoInertia};

/// Density (kg/m³) and slenderness (radius over length) of a link of which only the size is known. Robot links are hollow metal,
/// with a mean density close to that of water.
const DENSITY: f64 = 1000.0;
const SLENDERNESS: f64 = 0.2;

/// Smallest size of a body relative to the robot, for links whose frames coincide (wrists).
const LEAST_SIZE: f64 = 0.1;

/// Smallest second moment of a prior body, relative to `m · size²`. Rods and point masses would otherwise have a prior without any
/// uncertainty.
const LEAST_MOMENT: f64 = 1e-3;

/// Standard error of a mass, relative to that of the prior alone, from which the prior determines the mass and not the data.
const UNDETERMINED: f64 = 0.7;

/// Weight of the prior of a guessed body, relative to the weight of a body of the model; `1/√W` is the relative uncertainty.
/// Distances between joints determine a mass only to its order of magnitude: the masses of the links of 22 arms in a public
/// collection (example-robot-data) differ from the guess by a factor of five (root mean square of the logarithm).
const GUESS: f64 = 0.1;
/// Smallest weight of a guessed body, unless a smaller weight is requested. With it a prior has no influence on determined values.
const LEAST_GUESS: f64 = 0.01;

/// Prior bodies, strictly inside the feasible cone.
#[derive(Debug, Clone)]
pub struct Prior {
    /// Prior of each body of the mechanism.
    pub bodies: Vec<Inertia<f64>>,
    /// Bodies without inertia in the model, guessed from the distances between joints.
    pub guessed: Vec<String>,
}

impl Prior {
    /// Creates the prior from the inertias of a model, and from the sizes of links without inertia.
    pub fn new(mechanism: &Mechanism) -> Result<Self> {
        let sizes = sizes(mechanism);
        let mut out = Self { bodies: Vec::new(), guessed: Vec::new() };
        for (i, body) in mechanism.bodies().iter().enumerate() {
            let (size, centre) = sizes[i];
            let near = nearest(&body.inertia)?;
            let given = near.com().filter(|_| near.mass > 0.0);
            let (mass, com, shape) = if let Some(com) = given {
                (near.mass, com, near.about_com())
            } else {
                if body.kind == BodyKind::Link {
                    out.guessed.push(body.name.clone());
                }
                let mass = DENSITY * std::f64::consts::PI * (SLENDERNESS * size).powi(2) * size;
                // A ball with the link length as diameter.
                (mass, centre, Matrix3::from_diagonal_element(0.4 * mass * (size / 2.0).powi(2)))
            };
            let central = Inertia { mass, first_moment: Vector3::zeros(), rotational: shape };
            let mut moments = PseudoInertia::from(&central).0.fixed_view::<3, 3>(0, 0).into_owned();
            moments += Matrix3::from_diagonal_element(LEAST_MOMENT * mass * size * size);
            let shape = Matrix3::from_diagonal_element(moments.trace()) - moments;
            out.bodies.push(Inertia::from_com(mass, com, shape));
        }
        Ok(out)
    }

    /// Returns the weight of the prior of the body with the given name, if bodies of the model have `weight`.
    pub(crate) fn weight(&self, name: &str, weight: f64) -> f64 {
        let guessed = self.guessed.iter().any(|other| other == name);
        if guessed { (GUESS * weight).max(weight.min(LEAST_GUESS)) } else { weight }
    }

    /// Reduces guessed bodies that are heavier than all other links of an estimate together and that the data do not determine.
    /// `covariance` is that of the estimated `parameters`, and `weight` that of the prior. Returns `None` if there are none, or fewer
    /// than three links to compare.
    pub(crate) fn without_heavy_guesses(
        &self,
        mechanism: &Mechanism,
        parameters: &[f64],
        covariance: &DMatrix<f64>,
        weight: f64,
    ) -> Option<Self> {
        let blocks = mechanism.parameter_blocks();
        let links: Vec<_> =
            blocks.iter().filter(|b| mechanism.bodies()[b.body].kind == BodyKind::Link).collect();
        let total: f64 = links.iter().map(|b| parameters[b.offset]).sum();
        let count = links.len();
        let mut out = self.clone();
        let mut any = false;
        for block in links {
            let mass = parameters[block.offset];
            let variance = covariance[(block.offset, block.offset)];
            let others = total - mass;
            let name = &mechanism.bodies()[block.body].name;
            let guessed = self.guessed.contains(name);
            // The standard deviation of the mass in the entropic prior of weight W is m/√W.
            let open = variance.sqrt() > UNDETERMINED * mass / self.weight(name, weight).sqrt();
            if guessed && open && others > 0.0 && mass > others && count > 2 {
                let body = &mut out.bodies[block.body];
                let scale = others / mass;
                *body = Inertia {
                    mass: scale * body.mass,
                    first_moment: body.first_moment * scale,
                    rotational: body.rotational * scale,
                };
                any = true;
            }
        }
        any.then_some(out)
    }

    /// Returns a warning about the prior.
    pub(crate) fn warning(&self) -> Option<Warning> {
        (!self.guessed.is_empty()).then(|| Warning::GuessedPrior { links: self.guessed.clone() })
    }
}

/// Returns the size and the centre of each body, computed from the frames of the joints on it.
pub(crate) fn sizes(mechanism: &Mechanism) -> Vec<(f64, Vector3<f64>)> {
    let bodies = mechanism.bodies();
    let arm = |i: usize| bodies[i].placement.translation.norm();
    let reach: f64 = (0..mechanism.link_bodies()).map(arm).sum();
    // All joints of the robot meet in one point: use an arbitrary size.
    let least = if reach > 0.0 { LEAST_SIZE * reach } else { LEAST_SIZE };
    (0..bodies.len())
        .map(|i| {
            let children = (0..bodies.len()).filter(|&k| bodies[k].parent == Some(i));
            let far = children.max_by(|&a, &b| arm(a).total_cmp(&arm(b)));
            let middle = far.map_or_else(Vector3::zeros, |k| bodies[k].placement.translation * 0.5);
            (far.map_or(0.0, arm).max(least), middle)
        })
        .collect()
}
