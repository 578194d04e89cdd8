//! Lower bound of the rank, computed joint by joint.
//!
//! The force along a joint depends only on the bodies that the joint carries, and so does the change of any other row
//! when only this joint moves. With joints in order from the base, such rows form a block triangular matrix, whose rank
//! is at least the sum of the ranks of its diagonal blocks. Each block is a matrix in the parameters of the bodies that
//! one joint moves, independent of the size of the mechanism.

use super::rpna::{Regime, Scope};
use super::sampling::Sampler;
use super::topology::Topology;
use super::velocities::Velocities;
use crate::linalg::{Echelon, Number, Pivot};
use crate::mechanism::{BodyKind, Geometry};
use crate::spatial::{Motion, Pose, inertia_gradient};

/// Number of draws without growth after which a block is abandoned.
const IDLE: usize = 3;

/// Joint with parameters: its bodies, and the massless pieces that carry them.
struct Section {
    /// Parent body; `None` is the ground.
    parent: Option<usize>,
    /// Massless pieces, innermost first.
    pieces: Vec<usize>,
    bodies: Vec<usize>,
    span: usize,
}

fn sections<T: Number>(geometry: &Geometry<T>, topology: &Topology) -> Vec<Section> {
    let mut out = Vec::new();
    for cluster in topology.clusters.iter().filter(|c| !c.massless) {
        let mut pieces = Vec::new();
        let mut parent = cluster.parent;
        while let Some(p) = parent.filter(|&p| geometry.bodies[p].kind == BodyKind::Massless) {
            pieces.push(p);
            parent = geometry.bodies[p].parent;
        }
        pieces.reverse();
        out.push(Section { parent, pieces, bodies: topology.bodies(cluster).to_vec(), span: 0 });
    }
    out
}

/// Computes a lower bound of the number of identifiable combinations: the sum of the ranks of the diagonal blocks. Each
/// block is sampled until it stops growing or has reached the bound `most` of its joint.
pub fn local_rank<T: Number>(
    sampler: &mut Sampler<'_, T>,
    geometry: &Geometry<T>,
    topology: &Topology,
    scope: Scope,
    most: &[usize],
) -> usize {
    let mut sections = sections(geometry, topology);
    let width = |s: &Section| s.bodies.iter().map(|&b| columns(geometry.bodies[b].kind)).sum();
    let mut spans: Vec<Echelon<T>> = sections.iter().map(|s| Echelon::new(width(s), Pivot::First)).collect();
    let mut open: Vec<(usize, usize)> = (0..sections.len()).map(|i| (i, 0)).collect();
    let mut row = Vec::new();
    while !open.is_empty() {
        sampler.draw();
        let before: Vec<Pose<T>> = sampler.poses().collect();
        sampler.draw();
        let velocities = sampler.attained(scope);
        open.retain_mut(|(i, idle)| {
            let (section, span) = (&mut sections[*i], &mut spans[*i]);
            let rank = span.rank();
            if scope.regime != Regime::Static || scope.torques {
                own_row(geometry, sampler, section, &velocities.along, &mut row);
                span.insert(&row);
            }
            // The first joint is the only one on the ground: all rows measured at the ground belong to its block.
            let all_rows = section.parent.is_none() && scope.wrench;
            change_row(geometry, sampler, section, (!all_rows).then_some(&before), &velocities, &mut row);
            span.insert(&row);
            section.span = span.rank();
            *idle = if span.rank() > rank { 0 } else { *idle + 1 };
            *idle < IDLE && section.span < most[*i]
        });
    }
    sections.iter().map(|s| s.span).sum()
}

fn columns(kind: BodyKind) -> usize {
    match kind {
        BodyKind::Link | BodyKind::Rotor => 10,
        BodyKind::SymmetricRotor => 1,
        BodyKind::Massless => 0,
    }
}

fn extend<T: Number>(kind: BodyKind, gradient: &crate::spatial::Parameters<T>, out: &mut Vec<T>) {
    let width = columns(kind);
    out.extend_from_slice(&gradient.as_slice()[10 - width..]);
}

/// Computes the row of the force of the section's own joint.
fn own_row<T: Number>(
    geometry: &Geometry<T>,
    sampler: &mut Sampler<'_, T>,
    section: &Section,
    along: &[Motion<T>],
    row: &mut Vec<T>,
) {
    row.clear();
    let mut carried = Motion::zero();
    for &piece in &section.pieces {
        carried = sampler.pose(piece).pull_motion(&carried) + sampler.random_mode(piece);
    }
    // One coordinate moves all bodies of the section: the same factor for each.
    let factors = sampler.random_factors();
    for &b in &section.bodies {
        let body = &geometry.bodies[b];
        let mut own = sampler.pose(b).pull_motion(&carried);
        for (mode, &factor) in body.modes().iter().zip(&factors) {
            own += *mode * (body.ratio * factor);
        }
        extend(body.kind, &inertia_gradient(&own, &along[b]), row);
    }
}

/// Computes the change of another row as the section moves (the row itself if the poses `before` are absent).
fn change_row<T: Number>(
    geometry: &Geometry<T>,
    sampler: &Sampler<'_, T>,
    section: &Section,
    before: Option<&Vec<Pose<T>>>,
    velocities: &Velocities<T>,
    row: &mut Vec<T>,
) {
    row.clear();
    let (a, b) = match section.parent {
        Some(p) => (velocities.virtually[p], velocities.moving[p]),
        None => velocities.ground,
    };
    let through = |pose: &dyn Fn(usize) -> Pose<T>| {
        section.pieces.iter().fold((a, b), |(a, b), &piece| {
            let pose = pose(piece);
            (pose.pull_motion(&a), pose.pull_motion(&b))
        })
    };
    let now = |i: usize| *sampler.pose(i);
    let first = through(&now);
    let second = before.map(|before| (before, through(&|i| before[i])));
    for &i in &section.bodies {
        let gradient = |pose: &Pose<T>, (a, b): &(Motion<T>, Motion<T>)| {
            inertia_gradient(&pose.pull_motion(a), &pose.pull_motion(b))
        };
        let mut change = gradient(&now(i), &first);
        if let Some((before, second)) = &second {
            change -= gradient(&before[i], second);
        }
        extend(geometry.bodies[i].kind, &change, row);
    }
}
