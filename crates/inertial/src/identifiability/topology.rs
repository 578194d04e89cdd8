//! Groups of bodies that move together: the joints visited by the recursion, each with its link, rotors and followers.

use std::ops::Range;

use crate::linalg::Number;
use crate::mechanism::{BodyKind, Geometry};

/// Coordinate (or the coordinates of one joint) with every body that it moves relative to the same parent.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Cluster {
    /// Parent body of the joint; `None` is the ground.
    pub parent: Option<usize>,
    /// Bodies of the cluster, as a range of [`Topology::members`].
    pub members: Range<usize>,
    /// Whether the cluster is the massless piece between two joints of one link.
    pub massless: bool,
    /// Nearest inward body that has parameters.
    pub receiver: Option<usize>,
}

/// Clusters of a mechanism, parents before children.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Topology {
    /// Clusters in order.
    pub clusters: Vec<Cluster>,
    /// Bodies of all clusters.
    pub members: Vec<usize>,
}

impl Topology {
    /// Groups the bodies. The error is the reason why the recursion of paper 003 does not cover the mechanism: its
    /// remark 11 requires that bodies driven by one coordinate share a parent.
    pub fn new<T: Number>(geometry: &Geometry<T>) -> Result<Self, &'static str> {
        const NONE: usize = usize::MAX;
        let bodies = &geometry.bodies;
        let coordinates = bodies.iter().map(|b| b.v + 1).max().unwrap_or(0);
        let mut cluster_of = vec![NONE; coordinates];
        let mut clusters: Vec<Cluster> = Vec::with_capacity(bodies.len());
        let mut group: Vec<usize> = Vec::with_capacity(bodies.len());
        for body in bodies {
            let slot = &mut cluster_of[body.v];
            if *slot == NONE {
                *slot = clusters.len();
                let receiver = match body.parent {
                    Some(p) if bodies[p].kind == BodyKind::Massless => clusters[group[p]].receiver,
                    parent => parent,
                };
                let massless = body.kind == BodyKind::Massless;
                clusters.push(Cluster { parent: body.parent, members: 0..0, massless, receiver });
            } else if clusters[*slot].parent != body.parent {
                return Err("one coordinate moves bodies on different parents");
            }
            group.push(*slot);
        }
        let mut members = Vec::with_capacity(bodies.len());
        let mut count = vec![0; clusters.len()];
        for &g in &group {
            count[g] += 1;
        }
        let mut start = 0;
        for (cluster, &n) in clusters.iter_mut().zip(&count) {
            if cluster.massless && n > 1 {
                return Err("a massless body shares its coordinate");
            }
            cluster.members = start..start;
            start += n;
        }
        members.resize(start, 0);
        for (body, &g) in group.iter().enumerate() {
            members[clusters[g].members.end] = body;
            clusters[g].members.end += 1;
        }
        let mut carries = vec![false; bodies.len()];
        for cluster in &clusters {
            let piece = cluster.parent.filter(|&p| bodies[p].kind == BodyKind::Massless);
            if piece.is_some_and(|p| std::mem::replace(&mut carries[p], true)) {
                return Err("several joints start from one massless body");
            }
        }
        Ok(Self { clusters, members })
    }

    /// Returns the bodies of one cluster, the link first.
    pub fn bodies(&self, cluster: &Cluster) -> &[usize] {
        &self.members[cluster.members.clone()]
    }
}
