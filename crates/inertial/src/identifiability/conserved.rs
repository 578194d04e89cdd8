//! Conservation laws of free-flying robots: possible values of the momentum, and their effect on identifiability.
//!
//! The momentum of the robot without its wheels is measured about the origin of its base, in the base frame. If no
//! external force acts on the robot, its linear momentum is constant, and zero for an observer moving with the centre
//! of mass. Its angular momentum is the total minus the part stored in the wheels. The base therefore cannot move
//! independently: its velocity follows from the joint velocities and the masses. Rows of the regressor are sampled at
//! such velocities only.
//!
//! - With three wheels, or a known angular momentum, nine of the ten parameters of a single body are identifiable: a
//!   point mass at the centre of mass does not move. If joints move the centre of mass relative to the base, no further
//!   parameter is lost.
//! - Without wheels and at zero momentum, every row is orthogonal to the parameters of the robot itself: only their
//!   ratios are identifiable.

use nalgebra::Vector3;

use super::certificate::RankProblem;
use super::experiment::{Conservation, Experiment, TotalMomentum};
use super::warning::Warning;
use crate::linalg::First;
use crate::mechanism::{Base, BodyKind, ExactGeometry, Mechanism};

/// Returns the conservation law of the momentum of a robot; `None` if the momentum can have every value.
pub(super) fn law(mechanism: &Mechanism, total: TotalMomentum, snap: f64) -> Option<Conservation> {
    let free = mechanism.base() == Base::Floating && mechanism.loops().is_empty();
    if !free || total == TotalMomentum::Any {
        return None;
    }
    let axes = match total {
        TotalMomentum::Zero => wheel_axes(mechanism, snap),
        _ => [Vector3::x(), Vector3::y(), Vector3::z()].map(|axis| (0, axis)).to_vec(),
    };
    Some(Conservation { total, axes })
}

/// Returns whether the model gives the masses that determine how a robot moves freely.
pub(super) fn has_masses(mechanism: &Mechanism) -> bool {
    let mut links = mechanism.bodies().iter().filter(|b| b.kind == BodyKind::Link);
    let has_masses = links.clone().all(|b| b.inertia.mass > 0.0);
    // If one body resists every rotation, the whole robot does.
    has_masses && links.any(|b| b.inertia.about_com().determinant() != 0.0)
}

/// Returns the axes of the wheels, without those that are linearly dependent on others on the same body.
fn wheel_axes(mechanism: &Mechanism, snap: f64) -> Vec<(usize, Vector3<f64>)> {
    let mut out: Vec<(usize, Vector3<f64>)> = Vec::new();
    let mut normals: Vec<(usize, Vector3<f64>)> = Vec::new();
    for wheel in mechanism.wheels() {
        let mut rest = wheel.axis;
        for (_, normal) in normals.iter().filter(|(body, _)| *body == wheel.body) {
            rest -= normal * normal.dot(&rest);
        }
        if rest.norm() > snap.max(f64::EPSILON) {
            normals.push((wheel.body, rest.normalize()));
            out.push((wheel.body, wheel.axis));
        }
    }
    out
}

/// Returns warnings about a result that depends on the masses: under a conservation law, or of a free flight of which only
/// the motion is measured.
pub(super) fn notes(problem: &RankProblem<'_>, geometry: &ExactGeometry, rank: usize) -> Vec<Warning> {
    let experiment = problem.experiment;
    let mut out = match &experiment.conservation {
        Some(law) if law.axes.is_empty() => vec![Warning::OnlyRatios],
        Some(_) => Vec::new(),
        None if experiment.is_motion_only() => vec![Warning::OnlyMotion],
        None => return Vec::new(),
    };
    if experiment.model_masses {
        let experiment = Experiment { model_masses: false, ..experiment.clone() };
        let generic =
            RankProblem { experiment: &experiment, ..problem.clone() }.sampled_rank::<First>(geometry);
        if generic != rank {
            out.push(Warning::SpecialMasses { generic });
        }
    } else if problem.mechanism.loops().is_empty() {
        out.push(Warning::RandomMasses);
    }
    out
}
