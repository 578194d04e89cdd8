//! Prior of joint terms: their likely size, for terms that the motion does not excite.
//!
//! Bodies have a prior, of the model or guessed from its size. Friction, offsets and rotors have one too, wide enough that it matters
//! only where the data are almost silent: a joint that is held still, or a motion so slow that inertia drowns in friction.
//! Without it such a term would be whatever rounding or noise makes of it, and `--out` would write that. The prior is normal, about
//! the model's own value (zero where it gives none), and as wide as
//! - the root mean square force `τ` of the joint, at least a tenth of the largest one, for what acts as a force: Coulomb friction, its
//!   parts, and offsets;
//! - `τ` over the fastest mean speed of the robot's joints (of hinges or of slides) for viscous friction: at that speed it could
//!   explain all of the force;
//! - the inertia that the joint moves, according to the bodies' prior, for rotors; at least a tenth of the largest such inertia of the
//!   robot, because geared wrists turn more rotor than link;
//! - `τ` over the root mean square of what it multiplies, for terms of the user's own;
//!
//! and at least as wide as the model's value, and as what least squares finds where that is clear: it never pulls on what the data determine.

use crate::Result;
use crate::dynamics::{Workspace, mass_matrix};
use crate::estimation::consistent::prior::Prior;
use crate::estimation::equations::Equations;
use crate::estimation::joint_model::terms::Term;
use crate::estimation::least_squares::fit::LeastSquares;
use crate::estimation::reduction::summary::Summary;
use crate::mechanism::{Body, BodyKind, Mechanism};

/// Forces and rotors of a joint may be this part of the robot's largest, however little its own joint needs or moves.
const LEAST: f64 = 0.1;

/// Standard errors from which on a term counts as determined by least squares.
const CLEAR: f64 = 3.0;

/// Widths of the terms' priors, one for each term of the equations.
pub(crate) fn widths(
    equations: &Equations<'_>,
    summary: &Summary,
    squares: &LeastSquares,
    prior: &Prior,
) -> Result<Vec<f64>> {
    let mean = |square: f64, count: usize| (square / count.max(1) as f64).sqrt();
    let mut forces: Vec<f64> = summary.factors.iter().map(|f| mean(f.sums(|_| 0.0).tau, f.count)).collect();
    let largest = forces.iter().copied().fold(0.0, f64::max);
    // A joint that is held, or was not measured, has friction all the same; a robot without any force: some.
    let least = if largest > 0.0 { LEAST * largest } else { 1.0 };
    forces.iter_mut().for_each(|force| *force = force.max(least));
    let rank = equations.rank();
    // Root mean square of what the k-th term multiplies in the force of its own coordinate.
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

/// Widths of the priors of rotors that are bodies of the model (zero for other bodies): the model's value, as bodies are known to
/// about themselves. Where it gives none, they may weigh as much as all that the robot moves, because what least squares finds of
/// them is part of combinations.
pub(crate) fn rotor_body_widths(mechanism: &Mechanism, prior: &Prior) -> Result<Vec<f64>> {
    let reflected = rotor_widths(mechanism, prior, 1.0)?;
    let width = |body: &Body| match body.kind {
        BodyKind::SymmetricRotor if body.inertia.rotational[(2, 2)] > 0.0 => body.inertia.rotational[(2, 2)],
        BodyKind::SymmetricRotor => reflected[body.drive.v] / body.drive.ratio.powi(2),
        _ => 0.0,
    };
    Ok(mechanism.bodies().iter().map(width).collect())
}

/// Widths of the priors of rotors that act like base parameters, in the order of [`Equations::grounded_rotors`]: the model's value,
/// or where it gives none what other rotors have.
pub(crate) fn grounded_rotor_widths(equations: &Equations<'_>, prior: &Prior) -> Result<Vec<f64>> {
    let reflected = rotor_widths(equations.mechanism(), prior, LEAST)?;
    let width = |(row, _, given): (usize, _, f64)| {
        if given > 0.0 { given } else { reflected[equations.tree_coordinate(row)] }
    };
    Ok(equations.grounded_rotors().map(width).collect())
}

/// Widths of the priors of rotors, reflected to each velocity coordinate; at least so much of the largest inertia of the robot.
fn rotor_widths(mechanism: &Mechanism, prior: &Prior, least: f64) -> Result<Vec<f64>> {
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

/// Returns whether a velocity coordinate is a length per second.
fn is_slide(mechanism: &Mechanism, v: usize) -> bool {
    let links = mechanism.bodies().iter().filter(|b| matches!(b.kind, BodyKind::Link | BodyKind::Massless));
    links.filter(|b| (b.drive.v..b.drive.v + b.joint_type.nv()).contains(&v)).any(|b| {
        let modes = b.joint_type.free_modes();
        modes.get(v - b.drive.v).is_some_and(|mode| mode.angular.norm() == 0.0)
    })
}
