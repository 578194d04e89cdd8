//! Conservation laws of free-flying robots: what the momentum can be, and what that leaves of the parameters.
//!
//! The momentum of the robot without its wheels is measured about the origin of its base, in the base's frame. Where nothing pushes
//! the robot, its linear momentum is constant, and zero for an observer who moves along; its angular momentum is what the wheels
//! do not hold. So the base cannot move on its own: its velocity follows from those of the joints and from the masses. Rows of
//! the regressor are sampled at such velocities only.
//!
//! - With three wheels, or a known angular momentum, a single body shows nine of its ten parameters: a point of mass at its centre of
//!   mass does not move. Where joints move the centre of mass in the base, nothing else is lost.
//! - Without wheels and at zero momentum every row is orthogonal to the robot's own parameters: only their ratios show.

use nalgebra::Vector3;

use super::certificate::Question;
use super::experiment::{Conservation, Experiment, TotalMomentum};
use crate::linalg::First;
use crate::mechanism::{Base, BodyKind, ExactGeometry, Mechanism};

/// The law that a robot's momentum obeys; none where it can have every value.
pub(super) fn law(mechanism: &Mechanism, total: TotalMomentum, snap: f64) -> Option<Conservation> {
    let free = mechanism.base() == Base::Floating && mechanism.loops().is_empty();
    if !free || total == TotalMomentum::Any {
        return None;
    }
    let axes = match total {
        TotalMomentum::Zero => wheel_axes(mechanism, snap),
        _ => [Vector3::x(), Vector3::y(), Vector3::z()].map(|axis| (0, axis)).to_vec(),
    };
    let mut links = mechanism.bodies().iter().filter(|b| b.kind == BodyKind::Link);
    let has_masses = links.clone().all(|b| b.inertia.mass > 0.0);
    // One body that resists every rotation: the robot then does, too.
    let turns_hard = links.any(|b| b.inertia.about_com().determinant() != 0.0);
    Some(Conservation { total, axes, model_masses: has_masses && turns_hard })
}

/// Axes of the wheels, without those that others on the same body replace.
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

/// What people should know of an answer under a conservation law.
pub(super) fn notes(question: &Question<'_>, geometry: &ExactGeometry, rank: usize) -> Vec<String> {
    let Some(law) = &question.experiment.conservation else { return Vec::new() };
    let mut out = Vec::new();
    if law.axes.is_empty() {
        out.push(
            "without wheels and at zero total momentum only ratios of parameters are identifiable: one must be known".into(),
        );
    }
    if law.model_masses {
        let conservation = Some(Conservation { model_masses: false, ..law.clone() });
        let experiment = Experiment { conservation, ..question.experiment.clone() };
        let generic =
            Question { experiment: &experiment, ..question.clone() }.sampled_rank::<First>(geometry);
        if generic != rank {
            out.push(format!("the masses of the model are special: with other masses the rank is {generic}"));
        }
    } else {
        out.push(
            "the model does not give all masses: the combinations are those of a robot with random masses"
                .into(),
        );
    }
    out
}
