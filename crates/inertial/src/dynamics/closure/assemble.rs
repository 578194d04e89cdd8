//! Assembly of loops: a closed, regular configuration near that of the model, and the choice of independent
//! coordinates.

use nalgebra::{DMatrix, DVector};

use super::constraints::Constraints;
use super::immobile::{Step, immobile, locked_bodies};
use super::motions::{MotionKind, motions};
use super::newton::{Candidate, PROBE, advance, close, displacement, within_limits};
use crate::linalg::{self, Number, Rank, SplitMix, Svd};
use crate::mechanism::{BodyKind, JointType};
use crate::{Error, Place, Result};

/// Step lengths from a singular to a regular configuration, tried in order.
const LEAVE: [f64; 3] = [0.3, 0.1, PROBE];

/// Smallest ratio of singular values of the constraints in the dependent coordinates for which a choice of independent
/// coordinates is preferred.
const GOOD_CHOICE: f64 = 1e-3;

/// Closed, regular configuration with its choice of independent coordinates.
pub(super) struct Assembly {
    pub q: Vec<f64>,
    pub rank: Rank,
    /// Independent velocity coordinates, ascending.
    pub independent: Vec<usize>,
    /// Reason for leaving the configuration of the model.
    pub left: Option<Remaining>,
    /// Regular configurations on the other motions that intersect in the configuration of the model.
    pub others: Vec<Vec<f64>>,
    /// Bodies that cannot move relative to their parents although the constraints permit infinitely small motions.
    pub locked: Vec<usize>,
}

/// Reason why a closed configuration is not used as the assembly.
pub(super) enum Remaining {
    /// Dead point: the independent joints cannot start the motion there.
    DeadPoint,
    /// Singular configuration, with the motions that intersect there; the first one is followed.
    Singular(Vec<MotionKind>),
}

pub(super) fn assemble(constraints: &Constraints<'_>) -> Result<Assembly> {
    let mechanism = constraints.mechanism;
    let marks = mechanism.independent_marks();
    let marked: Vec<usize> = (0..mechanism.nv()).filter(|&k| marks[k] == Some(true)).collect();
    let unmarked = !marks.iter().all(Option::is_some);
    let held: &[usize] = if unmarked { &[] } else { &marked };
    let mut q = mechanism.assembly().to_vec();
    assemble_near(constraints, &mut q, held)?;
    let Regular { candidates, kinds, immobile } = regular(constraints, q, held)?;
    let locked = locked_bodies(mechanism, &immobile);
    let first = candidates.first().ok_or_else(no_candidate)?;
    let rank = first.rank;
    let mobility = mechanism.nv() - rank.rank;
    if mobility == 0 {
        return Err(Error::model(
            Place::default(),
            format!(
                "the loops leave no freedom to move: {} joint coordinates, {} independent constraints",
                mechanism.nv(),
                rank.rank
            ),
        ));
    }
    let chosen = if unmarked {
        Some((0, choose(constraints, &first.jacobian, rank.rank, &[])?))
    } else {
        let mut fits = None;
        for (i, c) in candidates.iter().enumerate() {
            let counts = marked.len() + c.rank.rank == mechanism.nv();
            if fits.is_none()
                && counts
                && follows(&c.jacobian, &marked, c.rank.rank, constraints.tolerances.rank)?
            {
                fits = Some((i, marked.clone()));
            }
        }
        fits
    };
    if let Some((i, independent)) = chosen {
        let Candidate { q, rank, moved, .. } = &candidates[i];
        let followed = kinds.get(i).copied();
        let rest = kinds.iter().enumerate().filter(|(k, _)| *k != i).map(|(_, kind)| *kind);
        let left = match (moved, followed) {
            (false, _) => None,
            (true, None) if kinds.is_empty() && !candidates[0].moved => Some(Remaining::DeadPoint),
            (true, _) => Some(Remaining::Singular(followed.into_iter().chain(rest).collect())),
        };
        let others = (0..kinds.len()).filter(|&k| k != i).map(|k| candidates[k].q.clone()).collect();
        return Ok(Assembly { q: q.clone(), rank: *rank, independent, left, others, locked });
    }
    if !locked.is_empty() {
        // The mobility and the suggestions are known after these joints are locked.
        let (q, independent) = (first.q.clone(), marked);
        return Ok(Assembly { q, rank, independent, left: None, others: Vec::new(), locked });
    }
    let names = mechanism.velocity_names();
    let list = |set: &[usize]| set.iter().map(|&k| names[k].as_str()).collect::<Vec<_>>().join(", ");
    let suggestion = list(&choose(constraints, &first.jacobian, rank.rank, &marked)?);
    Err(Error::model(
        Place::default(),
        if marked.len() == mobility {
            format!(
                "the independent coordinates ({}) do not determine the motion of the loops: choose others, for \
                 example {suggestion}",
                list(&marked)
            )
        } else {
            format!(
                "the mobility is {mobility} but {} coordinates are marked as independent: mark {mobility}, for example \
                 {suggestion}",
                marked.len()
            )
        },
    ))
}

/// Returns the error for loops that are rigid although their constraints permit infinitely small motions.
pub(super) fn rigid() -> Error {
    Error::model(
        Place::default(),
        "the loops leave no freedom to move: from the assembly configuration only infinitely small motions are possible",
    )
}

fn no_candidate() -> Error {
    Error::Infeasible("no assembled configuration was found".into())
}

/// Closed, regular configurations.
struct Regular {
    /// Configurations, the preferred one first.
    candidates: Vec<Candidate>,
    /// Kinds of the motions of the configurations if several motions intersect; empty otherwise.
    kinds: Vec<MotionKind>,
    /// Velocity coordinates that cannot move although the constraints permit infinitely small motions of them.
    immobile: Vec<usize>,
}

/// Returns closed, regular configurations near `q`, the preferred one first; `q` itself if it is among them. If it is
/// singular, returns one configuration on each of the motions that intersect there, with their kinds.
///
/// The rank of the constraints drops only at singular configurations, so a higher rank nearby shows that `q` is
/// singular.
fn regular(constraints: &Constraints<'_>, q: Vec<f64>, held: &[usize]) -> Result<Regular> {
    let start = Candidate::new(constraints, q, false)?;
    let near = neighbours(constraints, &start, held, PROBE)?;
    let still = immobile_near(constraints, &start, &near)?;
    let far = |c: &Candidate| displacement(constraints, &start.q, &c.q).amax() > 0.25 * PROBE;
    let (mut found, back): (Vec<_>, Vec<_>) = near.into_iter().map(|n| n.at).partition(far);
    let highest = |found: &[Candidate]| found.iter().map(|c| c.rank.rank).max().unwrap_or(0);
    let best = highest(&found);
    if start.rank.rank >= best && (!found.is_empty() || back.is_empty()) {
        // A regular configuration can still be a dead point of the independent joints; its neighbours are not.
        found.retain(|c| c.rank.rank == start.rank.rank);
        found.insert(0, start);
        return Ok(Regular { candidates: found, kinds: Vec::new(), immobile: still });
    }
    let met = motions(constraints, &start, held)?;
    if let Some(first) = met.first() {
        let near = neighbours(constraints, &first.at, held, PROBE)?;
        let immobile = immobile_near(constraints, &first.at, &near)?;
        let (candidates, kinds) = met.into_iter().map(|m| (m.at, m.kind)).unzip();
        return Ok(Regular { candidates, kinds, immobile });
    }
    if found.is_empty() && !still.is_empty() {
        return Ok(Regular { candidates: vec![start], kinds: Vec::new(), immobile: still });
    }
    if found.is_empty() {
        return Err(rigid());
    }
    // No direction leads away: use more distant configurations with the rank of the constraints there.
    for step in LEAVE {
        let far = neighbours(constraints, &start, held, step)?;
        let mut candidates: Vec<Candidate> = far.into_iter().map(|n| n.at).collect();
        let top = highest(&candidates);
        if top >= best {
            candidates.retain(|c| c.rank.rank == top);
            return Ok(Regular { candidates, kinds: Vec::new(), immobile: Vec::new() });
        }
    }
    found.retain(|c| c.rank.rank == best);
    Ok(Regular { candidates: found, kinds: Vec::new(), immobile: Vec::new() })
}

/// Closed configuration near another one.
struct Neighbour {
    at: Candidate,
    /// Step before the loops were closed, in scaled coordinates.
    intended: DVector<f64>,
}

impl Neighbour {
    /// Returns the step from `start`.
    fn step(&self, constraints: &Constraints<'_>, start: &Candidate) -> Step {
        Step { intended: self.intended.clone(), moved: displacement(constraints, &start.q, &self.at.q) }
    }
}

/// Returns the velocity coordinates that cannot move, from neighbours at a distance of about [`PROBE`].
fn immobile_near(constraints: &Constraints<'_>, start: &Candidate, near: &[Neighbour]) -> Result<Vec<usize>> {
    let steps: Vec<Step> = near.iter().map(|n| n.step(constraints, start)).collect();
    immobile(constraints, start, &steps, PROBE)
}

/// Returns closed configurations at a distance of about `step`: first along the independent coordinates, which
/// minimizes the motion of the others, then along free directions of the constraints; those beyond joint limits last.
fn neighbours(
    constraints: &Constraints<'_>,
    start: &Candidate,
    held: &[usize],
    step: f64,
) -> Result<Vec<Neighbour>> {
    let nv = constraints.mechanism.nv();
    let mut found = Vec::new();
    // A fixed seed: the same input gives the same assembly.
    let mut source = SplitMix::new(1);
    let svd = Svd::new(&start.jacobian)?;
    let free = svd.null_space(start.rank.rank);
    let along_independent = if held.is_empty() { 0 } else { 2 };
    for trial in 0..along_independent + 6 {
        let mut direction = DVector::zeros(nv);
        let fixed: &[usize] = if trial < along_independent {
            let sign = if trial == 0 { 1.0 } else { -1.0 };
            for &k in held {
                direction[k] = sign * (0.75 + 0.25 * f64::random(&mut source));
            }
            held
        } else {
            for column in free.column_iter() {
                direction.axpy(f64::random(&mut source), &column, 1.0);
            }
            &[]
        };
        // Joints outside the loops keep the position of the model.
        for (d, _) in direction.iter_mut().zip(&constraints.on_loop).filter(|(_, on)| !**on) {
            *d = 0.0;
        }
        let size = direction.amax();
        if size == 0.0 {
            continue;
        }
        let mut q = start.q.clone();
        let intended = direction * (step / size);
        advance(constraints, &mut q, &intended);
        if close(constraints, &mut q, fixed)? <= constraints.tolerances.gap {
            found.push(Neighbour { at: Candidate::new(constraints, q, true)?, intended });
        }
    }
    found.sort_by_key(|n| !within_limits(constraints, &n.at.q));
    Ok(found)
}

/// Closes the loops near `q`: first with the independent coordinates held, then with all coordinates free, then from
/// nearby configurations.
fn assemble_near(constraints: &Constraints<'_>, q: &mut Vec<f64>, held: &[usize]) -> Result<()> {
    let mut source = SplitMix::new(2);
    let mut best: Option<(f64, Vec<f64>)> = None;
    for trial in 0..24 {
        let mut at = q.clone();
        if trial >= 2 {
            // At increasing distances.
            let size = 0.1 * f64::from(trial);
            let direction =
                DVector::from_fn(constraints.mechanism.nv(), |_, _| size * f64::random(&mut source));
            advance(constraints, &mut at, &direction);
        }
        let fixed = if trial == 0 { held } else { &[] };
        let gap = close(constraints, &mut at, fixed)?;
        if best.as_ref().is_none_or(|(least, _)| gap < *least) {
            best = Some((gap, at));
        }
        if best.as_ref().is_some_and(|(least, _)| *least <= constraints.tolerances.gap) {
            break;
        }
    }
    let (gap, at) = best.ok_or_else(no_candidate)?;
    *q = at;
    if gap <= constraints.tolerances.gap {
        return Ok(());
    }
    let Some((widest, residual)) = constraints.widest(q) else { return Ok(()) };
    let alone = Constraints::new(constraints.mechanism, std::slice::from_ref(&widest.joint));
    let mut try_alone = constraints.mechanism.assembly().to_vec();
    let closes_alone =
        constraints.loops.len() > 1 && close(&alone, &mut try_alone, &[])? <= constraints.tolerances.gap;
    Err(Error::Closure {
        name: widest.joint.name.clone(),
        residual,
        message: if closes_alone {
            "it closes alone but not together with the other loops: they contradict each other".into()
        } else {
            "it cannot be closed near the assembly configuration: check its frames, or give a better guess in \
             `assembly`"
                .into()
        },
    })
}

/// Returns whether the other coordinates follow from the `independent` ones: their constraints have the full rank.
fn follows(jacobian: &DMatrix<f64>, independent: &[usize], rank: usize, tolerance: f64) -> Result<bool> {
    let rest: Vec<usize> = (0..jacobian.ncols()).filter(|k| !independent.contains(k)).collect();
    Ok(linalg::rank(&jacobian.select_columns(&rest), tolerance)?.rank == rank)
}

/// Chooses independent coordinates joint by joint, as long as the others still follow from them.
///
/// Joints outside all loops come first (they are always independent), then those in `preferred`, then joints that
/// appear to be actuated (an effort limit or a rotor), with one axis, near the ground, in the order of the model.
/// Joints marked as dependent come last. Joints with coupled coordinates (planar, spherical, floating) are taken as a
/// whole if possible.
pub(super) fn choose(
    constraints: &Constraints<'_>,
    jacobian: &DMatrix<f64>,
    rank: usize,
    preferred: &[usize],
) -> Result<Vec<usize>> {
    let mechanism = constraints.mechanism;
    let bodies = mechanism.bodies();
    let mut groups: Vec<(_, Vec<usize>)> = Vec::new();
    for (index, joint) in mechanism.joints().iter().enumerate().filter(|(_, j)| j.follows.is_none()) {
        let driven = |b: &crate::mechanism::Body| {
            b.joint == index && matches!(b.kind, BodyKind::Rotor | BodyKind::SymmetricRotor)
        };
        let actuated = joint.limits.given_effort().is_some() || bodies.iter().any(driven);
        let depth = std::iter::successors(Some(joint.body), |&b| bodies[b].parent).count();
        let key = |k: usize| {
            let dependent = mechanism.independent_marks()[k] == Some(false);
            (
                constraints.on_loop[k],
                !preferred.contains(&k),
                dependent,
                !actuated,
                joint.joint_type.nv() > 1,
                depth,
            )
        };
        let together =
            matches!(joint.joint_type, JointType::Planar { .. } | JointType::Spherical | JointType::Floating);
        if together {
            groups.push((key(joint.v), joint.v_range().collect()));
        } else {
            groups.extend(joint.v_range().map(|k| (key(k), vec![k])));
        }
    }
    // Stable sort: equal keys keep the order of the model.
    groups.sort_by_key(|(key, _)| *key);
    let singles = groups.iter().flat_map(|(_, g)| g.iter().map(|&k| vec![k]));
    let passes: [(f64, Vec<Vec<usize>>); 3] = [
        (GOOD_CHOICE, groups.iter().map(|(_, g)| g.clone()).collect()),
        (constraints.tolerances.rank, groups.iter().map(|(_, g)| g.clone()).collect()),
        (constraints.tolerances.rank, singles.collect()),
    ];
    let mobility = mechanism.nv() - rank;
    let mut chosen: Vec<usize> = Vec::with_capacity(mobility);
    for (tolerance, groups) in passes {
        for group in groups {
            if chosen.len() + group.len() > mobility || group.iter().any(|k| chosen.contains(k)) {
                continue;
            }
            chosen.extend(&group);
            if !follows(jacobian, &chosen, rank, tolerance)? {
                chosen.truncate(chosen.len() - group.len());
            }
        }
    }
    chosen.sort_unstable();
    Ok(chosen)
}
