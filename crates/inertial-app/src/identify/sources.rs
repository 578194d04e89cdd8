//! Comparison of the logs behind a fit and its validation.

use std::collections::HashMap;

use inertial::estimation::LogSource;

use crate::{Context, Note};

/// Reports logs that are used twice, validation with fitted logs, and logs that were prepared differently.
pub fn compare(fitted: &[LogSource], validated: &[LogSource], context: &Context<'_>) {
    let label = |source: &LogSource| source.name.clone();
    if let Some((a, b)) = overlapping(fitted, fitted, |a, b| a < b) {
        context.note(&Note::SameLog([label(a), label(b)]));
    }
    if let Some((a, b)) = overlapping(validated, fitted, |_, _| true) {
        context.note(&Note::ValidatedWithFitted([label(a), label(b)]));
    }
    if let Some(other) = fitted.iter().find(|source| source.preparation != fitted[0].preparation) {
        context.note(&Note::MixedPreparation([label(&fitted[0]), label(other)]));
    }
}

/// Finds two logs with common rows, among the pairs of indices that are compared.
fn overlapping<'s>(
    some: &'s [LogSource],
    others: &'s [LogSource],
    counts: impl Fn(usize, usize) -> bool,
) -> Option<(&'s LogSource, &'s LogSource)> {
    // Logs with common rows have common marks (hashes of rows), so only such logs are compared.
    let mut places: HashMap<u64, Vec<usize>> = HashMap::new();
    for (k, source) in others.iter().enumerate() {
        source.row_digests.iter().for_each(|&digest| places.entry(digest).or_default().push(k));
    }
    some.iter().enumerate().find_map(|(i, a)| {
        let known = a.row_digests.iter().filter_map(|digest| places.get(digest)).flatten();
        let pair = known.filter(|&&k| counts(i, k)).map(|&k| (a, &others[k]));
        pair.into_iter().find(|(a, b)| a.overlaps(b))
    })
}
