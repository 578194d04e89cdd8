//! Channels: the unknowns that act in one measured quantity.

use crate::dynamics::PackedLayout;
use crate::identifiability::Regrouping;

/// Unknowns that act in one measured channel: base parameters first, then joint terms.
///
/// `F` is the type of the feature that the unknown of a joint term multiplies.
#[derive(Debug, Clone)]
pub struct Channel<F> {
    /// Indices of the unknowns.
    pub unknowns: Vec<usize>,
    /// Regressor entry of each base parameter (the first unknowns).
    pub entries: Vec<usize>,
    /// Feature of each joint term (the remaining unknowns).
    pub features: Vec<F>,
}

impl<F> Channel<F> {
    /// Appends the unknown of a joint term.
    pub fn push(&mut self, unknown: usize, feature: F) {
        self.unknowns.push(unknown);
        self.features.push(feature);
    }
}

/// Returns the channels of the first `rows` rows of a packed regressor, with their base parameters.
pub fn base_channels<F>(regrouping: &Regrouping, layout: &PackedLayout, rows: usize) -> Vec<Channel<F>> {
    let mut number = vec![None; regrouping.parameters];
    regrouping.base.iter().enumerate().for_each(|(i, &column)| number[column] = Some(i));
    let channel = |row: usize| {
        let entries =
            layout.row(row).iter().flat_map(|b| (0..b.len).map(move |k| (b.column + k, b.start + k)));
        let (unknowns, entries) = entries.filter_map(|(column, e)| number[column].map(|u| (u, e))).unzip();
        Channel { unknowns, entries, features: Vec::new() }
    };
    (0..rows).map(channel).collect()
}

/// Returns `count` channels in which every base parameter acts, with the columns of a full regressor as entries: the
/// components of a wrench or of the momentum.
pub fn full_channels<F: Clone>(regrouping: &Regrouping, count: usize) -> Vec<Channel<F>> {
    let base = &regrouping.base;
    vec![Channel { unknowns: (0..base.len()).collect(), entries: base.clone(), features: Vec::new() }; count]
}
