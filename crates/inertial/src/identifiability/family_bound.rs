//! Upper bounds of the rank of a mechanism with loops: ranks of random mechanisms with the same geometric relations.

use super::certificate::RankProblem;
use super::family::{Family, Relations};
use super::lifting::{Stalled, Start};
use super::probe::{Lifted, lift};
use crate::dynamics::ClosedMechanism;
use crate::linalg::{First, Gf, Pivot, Second, SplitMix};
use crate::mechanism::ExactAssembly;

/// Upper bound of the rank from one random member of a family.
pub(super) struct Bound {
    pub rank: usize,
    pub velocities: Vec<usize>,
    /// Bound of the probability that the rank of a generic member is larger.
    pub error_probability: f64,
}

/// Computes an upper bound of the rank from the relations, as the rank of two random mechanisms with the same
/// relations.
///
/// Each family of mechanisms that the relations define gives a bound. Returns the first bound, or the smallest of
/// all bounds down to `least`.
pub(super) fn bounds<const N: usize>(
    closed: &ClosedMechanism<'_>,
    assembly: &ExactAssembly,
    problem: &RankProblem<'_>,
    relations: &Relations<N>,
    least: Option<usize>,
) -> Result<Bound, &'static str> {
    let mut out: Result<Bound, &'static str> = Err("no relations");
    for family in relations.families() {
        let (first, second) = rayon::join(
            || bound::<{ First::PRIME }>(closed, assembly, problem, &family, 1),
            || bound::<{ Second::PRIME }>(closed, assembly, problem, &family, 2),
        );
        let found = first.and_then(|first| Ok((first, second?))).map(|(first, second)| Bound {
            rank: first.rank.max(second.rank),
            velocities: first.velocities,
            error_probability: first.error_probability * second.error_probability,
        });
        out = match (out, found) {
            // The bound holds unless one of the candidates it was chosen from is wrong.
            (Ok(a), Ok(b)) => {
                let error_probability = a.error_probability + b.error_probability;
                let better = if b.rank < a.rank { b } else { a };
                Ok(Bound { error_probability, ..better })
            }
            (Ok(a), Err(_)) => Ok(a),
            (Err(_), found) => found,
        };
        if out.as_ref().is_ok_and(|b| least.is_none_or(|least| b.rank <= least)) {
            break;
        }
    }
    out
}

/// Computes the rank of a random member of the family over GF(p).
fn bound<const P: u64>(
    closed: &ClosedMechanism<'_>,
    assembly: &ExactAssembly,
    problem: &RankProblem<'_>,
    family: &Family,
    seed: u64,
) -> Result<Bound, &'static str> {
    let mut source = SplitMix::new(seed);
    let member = family.member::<P>(assembly, &mut source).ok_or("the relations have no generic member")?;
    let mut dependent = vec![true; member.nv];
    closed.independent().iter().for_each(|&v| dependent[v] = false);
    let describe = |stalled: Stalled| match stalled {
        Stalled::Singular => "mechanisms with the same relations are singular",
        Stalled::Rigid => "mechanisms with the same relations do not move",
    };
    let start = Start::new(&member, &dependent).map_err(describe)?;
    if start.mobility() != closed.dof() {
        return Err("mechanisms with the same relations have another mobility");
    }
    let found: Lifted<Gf<P>> = lift(&start, problem.probe_inputs(), Pivot::First, seed).map_err(describe)?;
    // Each order of a curve adds one solve of the constraints; all rows of a determinant have the same degree
    // bound.
    let (rank, order) = (found.rows.rank(), found.order + 1);
    let constraints = member.nv - start.mobility() + 1;
    let degree = (rank * (2 * order + 1) * constraints) as f64 * family.degree() as f64;
    Ok(Bound { rank, velocities: found.velocities, error_probability: degree / P as f64 })
}
