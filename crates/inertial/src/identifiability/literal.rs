//! What the numbers of a file say where they are taken literally.

use super::analysis::AnalyzeOptions;
use super::certificate::Question;
use crate::mechanism::ExactGeometry;

/// At most so many joints are tried one by one to find those whose rounding makes a difference.
const MOST_SUSPECTS: usize = 64;

/// The rank of the numbers as they stand; where it differs, a warning names the joints that make the difference.
pub(super) fn literal_rank(
    question: &Question<'_>,
    options: &AnalyzeOptions,
    geometry: &ExactGeometry,
    rank_of: &dyn Fn(&ExactGeometry) -> Option<usize>,
    rank: usize,
    warnings: &mut Vec<String>,
) -> usize {
    let mechanism = question.mechanism;
    let literal = ExactGeometry::new(mechanism, 0.0);
    let suspects = geometry.differences(&literal);
    if suspects.is_empty() && geometry.same_gravity(&literal) {
        return rank;
    }
    let Some(literal_rank) = rank_of(&literal) else {
        warnings.push("taken literally (--snap 0) the loops do not move: their geometry is rounded".into());
        return rank;
    };
    if literal_rank == rank {
        return rank;
    }
    let differs = |&body: &usize| {
        let one = |b| if b == body { 0.0 } else { options.snap };
        rank_of(&ExactGeometry::with_tolerances(mechanism, one)).is_some_and(|r| r != rank)
    };
    let mut guilty: Vec<usize> = suspects.iter().copied().take(MOST_SUSPECTS).filter(differs).collect();
    if guilty.is_empty() {
        // Only several of them together, or gravity.
        guilty = suspects;
    }
    let mut names: Vec<&str> = Vec::new();
    for body in guilty {
        let name = mechanism.joints()[mechanism.bodies()[body].joint].name.as_str();
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let who = match names.as_slice() {
        [] => "gravity lies".to_owned(),
        [one] => format!("joint {one} lies"),
        several => format!("joints {} lie", several.join(", ")),
    };
    warnings.push(format!(
        "rank {rank} is that of the geometry as it is meant; taken literally (--snap 0) it is {literal_rank}: \
         {who} within {} of a special position without being in it",
        options.snap
    ));
    literal_rank
}
