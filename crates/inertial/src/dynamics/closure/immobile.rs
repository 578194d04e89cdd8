//! Joints of rigid loops whose constraints permit infinitely small motions.
//!
//! Such a joint returns to its position whenever the loops are closed after a small step. This alone is no proof: a
//! mechanism near the end of its stroke returns as well. The joint is therefore immobile only if the constraints forbid
//! its motion to first order, or leave it free to first order and restrict it to second order.

use nalgebra::DVector;

use super::constraints::Constraints;
use super::motions::tangents;
use super::newton::Candidate;
use crate::Result;
use crate::mechanism::{BodyKind, Mechanism};

/// Fraction of an intended step below which a coordinate has returned. A coordinate of a mobile loop moves by the
/// intended step except for terms of second order.
const RETURNED: f64 = 0.1;

/// Fraction of the length of a step below which the intended motion of one coordinate does not count.
const NEGLIGIBLE_SHARE: f64 = 0.1;

/// Smallest number of steps from which immobility is concluded.
const ENOUGH_STEPS: usize = 3;

/// Singular values of the constraints, relative to the largest, that are zero in a geometry of double precision. A
/// rounding error of 1e-16 in a singular configuration changes the coordinates, and with them the singular values, by
/// its square root.
const SINGULAR: f64 = 1e-7;

/// Closure error of the model above which its numbers are rounded.
const ROUNDED: f64 = 1e-9;

/// Largest motion of a coordinate in the free directions (of unit length) that counts as zero.
const STILL: f64 = 1e-6;

/// Step from a closed configuration, in scaled coordinates.
pub(super) struct Step {
    /// Displacement before the loops were closed.
    pub intended: DVector<f64>,
    /// Displacement after the loops were closed.
    pub moved: DVector<f64>,
}

/// Returns the velocity coordinates that cannot move, from `steps` of about the given length.
pub(super) fn immobile(
    constraints: &Constraints<'_>,
    start: &Candidate,
    steps: &[Step],
    length: f64,
) -> Result<Vec<usize>> {
    let returns = |&k: &usize| {
        let counts = |s: &&Step| s.intended[k].abs() > NEGLIGIBLE_SHARE * length;
        let tried = steps.iter().filter(counts).count();
        let returned = |s: &Step| s.moved[k].abs() < RETURNED * s.intended[k].abs();
        tried >= ENOUGH_STEPS && steps.iter().filter(counts).all(returned)
    };
    let mut out: Vec<usize> =
        (0..constraints.mechanism.nv()).filter(|&k| constraints.on_loop[k]).filter(returns).collect();
    if !out.is_empty() {
        let assembly = constraints.mechanism.assembly();
        let residual = constraints.residual(assembly, &mut vec![0.0; constraints.rows]);
        let tolerance = if residual > ROUNDED { constraints.tolerances.rank } else { SINGULAR };
        let at = Candidate::with_tolerance(constraints, start.q.clone(), start.moved, tolerance)?;
        let (free, is_restricted) = tangents(constraints, &at)?;
        out.retain(|&k| is_restricted || free.row(k).amax() < STILL);
    }
    Ok(out)
}

/// Returns the bodies whose joints have only immobile coordinates.
pub(super) fn locked_bodies(mechanism: &Mechanism, immobile: &[usize]) -> Vec<usize> {
    let is_locked = |i: &usize| {
        let body = &mechanism.bodies()[*i];
        let moves_itself = matches!(body.kind, BodyKind::Link | BodyKind::Massless)
            && mechanism.joints()[body.joint].follows.is_none();
        moves_itself && body.v_range().all(|k| immobile.contains(&k))
    };
    (0..mechanism.bodies().len()).filter(is_locked).collect()
}
