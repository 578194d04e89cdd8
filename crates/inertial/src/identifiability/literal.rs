//! Rank of the geometry as written in the file, without correction of rounded numbers.

use super::certificate::{RankProblem, RankResult};
use super::options::AnalyzeOptions;
use super::warning::Warning;
use crate::mechanism::ExactGeometry;

/// Maximum number of joints that are tested individually for rounding that changes the rank.
const MOST_SUSPECTS: usize = 64;

/// Smallest displacement by snapping (radians, and lengths relative to the size of the robot) that is reported.
const LEAST_REPORTED: f64 = 1e-9;

/// Largest rounding error, relative to the tolerance, of a file whose rounding errors cannot exceed it in sum.
const NEGLIGIBLE: f64 = 0.1;

/// Largest tolerance (rad) at which relations may be due to rounding.
const WIDEST: f64 = 1e-2;

/// Rank as a function of the tolerance of the geometry of each body; `None` if the loops do not move with it.
pub(super) type RankAsWritten<'a> = dyn Fn(&dyn Fn(usize) -> f64) -> Option<usize> + 'a;

/// Returns a warning that names the joint moved most by snapping, for the case that the combinations but not the rank
/// changed.
fn moved(problem: &RankProblem<'_>, snapped: &ExactGeometry, literal: &ExactGeometry) -> Option<Warning> {
    let (a, b) = (snapped.to::<f64>(), literal.to::<f64>());
    let displacement = |i: usize| {
        let (a, b) = (&a.bodies[i].placement, &b.bodies[i].placement);
        let turned = (a.rotation - b.rotation).norm() / std::f64::consts::SQRT_2;
        (turned, (a.translation - b.translation).norm())
    };
    let size = snapped.size();
    let joints = (0..a.bodies.len()).map(|i| (i, displacement(i)));
    let (worst, (turned, shifted)) = joints.max_by(|(_, x), (_, y)| {
        let weight = |(turned, shifted): &(f64, f64)| turned.max(shifted / size);
        weight(x).total_cmp(&weight(y))
    })?;
    let mechanism = problem.mechanism;
    let joint = &mechanism.joints()[mechanism.bodies()[worst].joint].name;
    (turned.max(shifted / size) > LEAST_REPORTED).then(|| Warning::Moved {
        joint: joint.clone(),
        turned,
        shifted,
    })
}

/// Computes the rank of the geometry as written; if it differs, adds a warning with the joints that cause the
/// difference.
pub(super) fn literal_rank(
    problem: &RankProblem<'_>,
    options: &AnalyzeOptions,
    geometry: &ExactGeometry,
    rank_of: &RankAsWritten<'_>,
    rank: usize,
    warnings: &mut Vec<Warning>,
) -> usize {
    let mechanism = problem.mechanism;
    let literal = ExactGeometry::new(mechanism, 0.0);
    let suspects = geometry.differences(&literal);
    if suspects.is_empty() && geometry.same_gravity(&literal) {
        return rank;
    }
    let Some(literal_rank) = rank_of(&|_| 0.0) else {
        warnings.push(Warning::LiterallyRigid);
        return rank;
    };
    if literal_rank == rank {
        if mechanism.loops().is_empty() {
            warnings.extend(moved(problem, geometry, &literal));
        }
        return rank;
    }
    let differs = |&body: &usize| {
        let one = |b| if b == body { 0.0 } else { options.snap };
        rank_of(&one).is_some_and(|r| r != rank)
    };
    let mut responsible: Vec<usize> = suspects.iter().copied().take(MOST_SUSPECTS).filter(differs).collect();
    if responsible.is_empty() {
        // No single joint causes the difference: several joints together, or gravity.
        responsible = suspects;
    }
    let mut joints: Vec<String> = Vec::new();
    for body in responsible {
        let name = &mechanism.joints()[mechanism.bodies()[body].joint].name;
        if !joints.contains(name) {
            joints.push(name.clone());
        }
    }
    warnings.push(Warning::LiteralRank { rank, literal: literal_rank, joints, snap: options.snap });
    literal_rank
}

/// Withdraws the certificate if relations that hold within the rounding error of the file, but not within `snap`, give a lower rank.
pub(super) fn check_coarse_relations(
    problem: &RankProblem<'_>,
    snap: f64,
    rank_of: &RankAsWritten<'_>,
    result: &mut RankResult,
) {
    let bodies = problem.mechanism.bodies();
    let is_coarse = bodies.iter().filter_map(|b| b.rounding).any(|r| r.angle > NEGLIGIBLE * snap);
    if problem.literal || !is_coarse {
        return;
    }
    let coarse_tolerance =
        |body: usize| if bodies[body].rounding.is_some() { snap.max(WIDEST) } else { snap };
    let (written, found) = (result.regrouping.rank(), rank_of(&coarse_tolerance));
    if found.is_some_and(|rank| rank < written) {
        result
            .certificate
            .make_numeric("relations hold up to the rounding of the file, which exceeds the tolerance");
        result.warnings.push(Warning::LostRelations { written, found });
    }
}
