//! Prior of joint terms: expected magnitudes of terms that the motion does not excite.
//!
//! Bodies have a prior from the model or from their size. Friction, offsets and rotors have a prior too. It is wide enough to
//! matter only for weak data: a joint at rest, or a motion so slow that friction dominates inertia. Without a prior, such a term
//! would be determined by rounding or noise, and `--out` would write it. The prior is normal with the value of the model as mean
//! (zero if the model has none). Its width is
//! - the root mean square force `τ` of the joint, at least a tenth of the largest one, for terms that act as a force: Coulomb
//!   friction (symmetric or per direction) and offsets;
//! - `τ` divided by the largest root mean square speed of the joints of the robot (hinges and slides separately) for viscous
//!   friction, which could explain the whole force at that speed;
//! - the inertia that the joint moves, according to the prior of the bodies, for rotors; at least a tenth of the largest such
//!   inertia of the robot, because rotors of geared wrists have more reflected inertia than the links;
//! - `τ` divided by the root mean square of the regressor column, for user-defined terms.
//!
//! The width is at least the magnitude of the model value, and at least the least-squares estimate if that is significant: the
//! prior does not bias terms that the data determine.

use crate::Result;
use crate::dynamics::{Workspace, mass_matrix};
use crate::estimation::consistent::prior::Prior;
use crate::estimation::equations::Equations;
use crate::estimation::joint_model::terms::Term;
use crate::estimation::least_squares::fit::LeastSquares;
use crate::estimation::reduction::summary::Summary;
use crate::mechanism::{Body, BodyKind, Mechanism};

/// Lower limit of the forces and rotor inertias of a joint, relative to the largest of the robot.
pub(crate) const LEAST: f64 = 0.1;

/// Number of standard errors from which a term counts as determined by least squares.
const CLEAR: f64 = 3.0;

/// Computes the widths of the priors, one for each term of the equations.
pub(crate) fn widths(
    equations: &Equations<'_>,
    summary: &Summary,
    squares: &LeastSquares,
    prior: &Prior,
) -> Result<Vec<f64>> {
    let mean = |square: f64, count: usize| (square / count.max(1) as f64).sqrt();
    let mut forces: Vec<f64> = summary.factors.iter().map(|f| mean(f.sums(|_| 0.0).tau, f.count)).collect();
    let largest = forces.iter().copied().fold(0.0, f64::max);
    // A joint that is held or was not measured has friction too. A robot without any force gets unit width.
    let least = if largest > 0.0 { LEAST * largest } else { 1.0 };
    forces.iter_mut().for_each(|force| *force = force.max(least));
    let rank = equations.rank();
    // Root mean square of the column of the k-th term in the force of its own coordinate.
    let size = |k: usize| {
        let row = equations.terms[k].0;
        let (channel, factor) = (&equations.channels[row], &summary.factors[row]);
        let place = channel.unknowns.iter().position(|&u| u == rank + k);
        place.map_or(0.0, |c| mean((0..=c).map(|i| factor.triangle.at(i, c).powi(2)).sum(), factor.count))
    };
    let mechanism = equations.mechanism();
    let slides: Vec<bool> =
        (0..equations.coordinates()).map(|row| is_slide(mechanism, equations.tree_coordinate(row))).collect();
    let mut speeds = [0.0_f64; 2];
    for (k, &(row, term)) in equations.terms.iter().enumerate() {
        if term == Term::Viscous {
            let kind = &mut speeds[usize::from(slides[row])];
            *kind = kind.max(size(k));
        }
    }
    let rotors = rotor_widths(mechanism, prior, LEAST)?;
    let width = |(k, &(row, term)): (usize, &(usize, Term))| {
        let over = |x: f64| forces[row] / if x > 0.0 { x } else { 1.0 };
        match term {
            Term::Viscous => over(speeds[usize::from(slides[row])]),
            Term::Coulomb | Term::CoulombPositive | Term::CoulombNegative | Term::Stribeck | Term::Offset => {
                forces[row]
            }
            Term::RotorInertia => rotors[equations.tree_coordinate(row)],
            Term::Given { .. } => over(size(k)),
        }
    };
    let errors = squares.std_errors();
    let model = equations.model_values()?;
    let width = |(k, term): (usize, &(usize, Term))| {
        let found = squares.values[rank + k].abs();
        let clear = if found > CLEAR * errors[rank + k] { found } else { 0.0 };
        width((k, term)).max(model[rank + k]).max(clear)
    };
    Ok(equations.terms.iter().enumerate().map(width).collect())
}

/// Computes the widths of the priors of rotors that are bodies of the model (zero for other bodies). The width is the value of the
/// model, that is a relative uncertainty of about one. If the model has no value, it is the largest inertia that the robot moves,
/// because least squares determines these rotors only in combination with other parameters.
pub(crate) fn rotor_body_widths(mechanism: &Mechanism, prior: &Prior) -> Result<Vec<f64>> {
    let reflected = rotor_widths(mechanism, prior, 1.0)?;
    let width = |body: &Body| match body.kind {
        BodyKind::SymmetricRotor if body.inertia.rotational[(2, 2)] > 0.0 => body.inertia.rotational[(2, 2)],
        BodyKind::SymmetricRotor => reflected[body.drive.v] / body.drive.ratio.powi(2),
        _ => 0.0,
    };
    Ok(mechanism.bodies().iter().map(width).collect())
}

/// Computes the widths of the priors of rotors that act like base parameters, in the order of [`Equations::grounded_rotors`]: the
/// value of the model, or the width of other rotors if the model has no value.
pub(crate) fn grounded_rotor_widths(equations: &Equations<'_>, prior: &Prior) -> Result<Vec<f64>> {
    let reflected = rotor_widths(equations.mechanism(), prior, LEAST)?;
    let width = |(row, _, given): (usize, _, f64)| {
        if given > 0.0 { given } else { reflected[equations.tree_coordinate(row)] }
    };
    Ok(equations.grounded_rotors().map(width).collect())
}

/// Computes the widths of the priors of rotors, reflected to each velocity coordinate. `least` is the lower limit relative to the
/// largest inertia of the robot.
pub(crate) fn rotor_widths(mechanism: &Mechanism, prior: &Prior, least: f64) -> Result<Vec<f64>> {
    let mut parameters = vec![0.0; mechanism.parameter_count()];
    for block in mechanism.parameter_blocks().iter().filter(|b| b.len == 10) {
        let own = prior.bodies[block.body].parameters();
        parameters[block.offset..block.offset + 10].copy_from_slice(own.as_slice());
    }
    let links = mechanism.clone().with_parameters(&parameters)?;
    let n = links.nv();
    let mut matrix = vec![0.0; n * n];
    mass_matrix(&links, &mut Workspace::new(&links), &links.neutral(), &mut matrix)?;
    let slides: Vec<bool> = (0..n).map(|v| is_slide(mechanism, v)).collect();
    let largest = |kind: bool| {
        let same = (0..n).filter(|&v| slides[v] == kind);
        same.map(|v| matrix[v * n + v]).fold(0.0, f64::max)
    };
    let largest = [largest(false), largest(true)];
    let width = |v: usize| matrix[v * n + v].max(least * largest[usize::from(slides[v])]);
    Ok((0..n).map(|v| Some(width(v)).filter(|x| *x > 0.0).unwrap_or(1.0)).collect())
}

/// Returns whether a velocity coordinate is translational.
fn is_slide(mechanism: &Mechanism, v: usize) -> bool {
    let links = mechanism.bodies().iter().filter(|b| matches!(b.kind, BodyKind::Link | BodyKind::Massless));
    links.filter(|b| (b.drive.v..b.drive.v + b.joint_type.nv()).contains(&v)).any(|b| {
        let modes = b.joint_type.free_modes();
        modes.get(v - b.drive.v).is_some_and(|mode| mode.angular.norm() == 0.0)
    })
}
