//! Projection of the packed regressor of the tree onto the independent coordinates.

use std::collections::BTreeMap;

use super::constraints::Constraints;
use crate::dynamics::{Four, InverseDynamics, PackedLayout};
use crate::mechanism::Mechanism;

/// Map from the blocks of the regressor of the tree to those of the independent coordinates.
#[derive(Debug, Clone)]
pub(super) struct Projection {
    pub layout: PackedLayout,
    pub terms: Vec<ProjectedBlock>,
}

/// Operation `out[to..] += G[map] · tree[from..]`.
#[derive(Debug, Clone, Copy)]
pub(super) struct ProjectedBlock {
    /// Index in `G`, column-major.
    pub map: usize,
    pub from: usize,
    pub to: usize,
    pub len: usize,
}

/// Memory for one chunk and one group of four samples.
#[derive(Debug, Clone, Default)]
pub(super) struct ChunkMemory {
    pub v: Vec<f64>,
    pub a: Vec<f64>,
    pub maps: Vec<f64>,
    pub tree: Vec<Four>,
    /// Matrices `G` of four samples, interleaved.
    pub lanes: Vec<Four>,
    pub packed: Vec<Four>,
}

impl Projection {
    /// Creates the map. An independent coordinate moves itself and the dependent coordinates of the loops connected
    /// with it.
    pub(super) fn new(
        constraints: &Constraints<'_>,
        independent: &[usize],
        dependent: &[usize],
        dynamics: &InverseDynamics,
    ) -> Self {
        let mechanism = constraints.mechanism;
        let group = groups(constraints);
        let nv = mechanism.nv();
        let tree = dynamics.layout();
        let mut layout = PackedLayout::new(independent.len());
        let mut terms = Vec::new();
        for (i, &own) in independent.iter().enumerate() {
            let follow = dependent.iter().copied().filter(|&k| group[k] == group[own]);
            let moved: Vec<usize> = std::iter::once(own).chain(follow).collect();
            // Blocks of one body start at the same column; their common length is that of the longest.
            let mut blocks = BTreeMap::new();
            for block in moved.iter().flat_map(|&k| tree.row(k)) {
                let len = blocks.entry(block.column).or_insert(0);
                *len = block.len.max(*len);
            }
            let starts: BTreeMap<usize, usize> =
                blocks.into_iter().map(|(column, len)| (column, layout.push(i, column, len))).collect();
            for &k in &moved {
                terms.extend(tree.row(k).iter().map(|block| ProjectedBlock {
                    map: i * nv + k,
                    from: block.start,
                    to: starts[&block.column],
                    len: block.len,
                }));
            }
        }
        layout.finish(mechanism.parameter_count());
        Self { layout, terms }
    }
}

/// Returns the group of each velocity coordinate; coordinates of connected loops share one.
fn groups(constraints: &Constraints<'_>) -> Vec<usize> {
    let mechanism: &Mechanism = constraints.mechanism;
    let mut group: Vec<usize> = (0..mechanism.nv()).collect();
    for l in &constraints.loops {
        let coordinates: Vec<usize> = l.bodies().flat_map(|b| mechanism.bodies()[b].v_range()).collect();
        let joined: Vec<usize> = coordinates.iter().map(|&k| group[k]).collect();
        if let Some(&least) = joined.iter().min() {
            group.iter_mut().filter(|g| joined.contains(g)).for_each(|g| *g = least);
        }
    }
    group
}
