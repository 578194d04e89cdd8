//! Recursive parameter nullspace algorithm (paper 003, algorithms 1 to 3 and appendix I), over any number type.
//!
//! Parameter changes that change no torque and no energy are sums of transfers across single joints: one body gains
//! parameters that its parent loses. For each joint the recursion computes
//! - `V`, the span of the velocities that the body can attain (gravity counts as a velocity of the ground),
//! - `K`, the span of the rows `k(v)` that multiply the parameters of the body in the energy,
//! - `N`, whose null space consists of the transfers across the joint that change no measurement. They change neither the
//!   momentum along the joint nor, as the joint moves, a measured combination of the parent,
//!   $$\delta \in \ker M(V, \Phi)^\top \cap \ker K_-^\top A(\Phi),$$
//!   with $\Phi$ the modes of the joint and $K_-$ the span of the parent. The number of base parameters is
//!   $$r = \sum_i \operatorname{rank} N_i.$$

#![allow(clippy::doc_markdown, reason = "formulas have indices")]

use nalgebra::{Matrix3, SVector, Vector3};
use num_traits::Zero;

use super::shared_coordinates::{Joined, dimensions};
use super::topology::{Cluster, Topology};
use crate::linalg::{Echelon, Gap, Number, Pivot};
use crate::mechanism::{BodyKind, Geometry, Pivoting};
use crate::spatial::{Inertia, Motion, Parameters, inertia_gradient, pull_gradient};

/// Admissible motions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Regime {
    /// Any motion.
    #[default]
    Full,
    /// Static postures (remark 8): only gravity contributes.
    Static,
    /// Kinetic energy alone, without gravity.
    Kinetic,
}

/// Scope of an experiment on an open chain, as needed by the recursion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scope {
    /// Admissible motions.
    pub regime: Regime,
    /// Whether the torques of all joints are measured.
    pub torques: bool,
    /// Whether the wrench between the ground and the robot is measured. It is the power of all forces along virtual
    /// motions of the ground: every velocity counts as attained (`V` is the whole space), and the weight is measured at
    /// the ground. Only one joint may be attached to the ground.
    pub wrench: bool,
}

impl From<Regime> for Scope {
    fn from(regime: Regime) -> Self {
        Self { regime, torques: true, wrench: false }
    }
}

impl Scope {
    /// Returns whether the motions of the joints themselves count as velocities along which forces are measured.
    fn own_motion(self) -> bool {
        self.regime != Regime::Static && self.torques
    }
}

/// Result of the recursion at one joint.
#[derive(Debug, Clone)]
pub struct JointSpan {
    /// Number of parameters of the bodies that the joint moves.
    pub width: usize,
    /// Number of transfers across the joint that change no measurement, dim `T`.
    pub freedoms: usize,
    start: usize,
}

/// Result of the recursion at one body.
#[derive(Debug, Clone, Copy, Default)]
pub struct BodySpan {
    /// Dimension of `V`.
    pub velocity: usize,
    /// Dimension of `K`.
    pub identifiable: usize,
}

/// Result of the recursion.
#[derive(Debug, Clone)]
pub struct Rpna<T: Number> {
    /// Results for each cluster of the topology.
    pub joints: Vec<JointSpan>,
    /// Results for each body.
    pub bodies: Vec<BodySpan>,
    /// Gap of the rank decisions (relevant only for `f64`).
    pub gap: Gap,
    /// Number of joints whose transfers are not determined by the joint type alone.
    pub restricted: usize,
    transfers: Vec<T>,
}

/// Sparse parameter vector: bodies with their ten (or one) entries.
pub type Transfer<T> = Vec<(usize, Parameters<T>)>;

impl<T: Number> Rpna<T> {
    /// Runs the recursion.
    pub fn new(geometry: &Geometry<T>, topology: &Topology, scope: impl Into<Scope>) -> Self {
        Recursion::new(geometry, topology, scope.into()).run()
    }

    /// Returns the dimension of the null space of the parameters.
    pub fn nullity(&self, topology: &Topology) -> usize {
        self.joints.iter().zip(&topology.clusters).filter(|(_, c)| !c.massless).map(|(j, _)| j.freedoms).sum()
    }

    /// Returns the transfers across one joint, as changes of the parameters of its own bodies (the columns of `R_i`,
    /// appendix G).
    pub fn local_transfers(&self, joint: usize) -> impl Iterator<Item = &[T]> {
        let j = &self.joints[joint];
        self.transfers[j.start..j.start + j.freedoms * j.width].chunks_exact(j.width.max(1))
    }

    /// Returns a basis of the null space `N` of the whole system (appendix G), joint by joint.
    pub fn null_vectors<'a>(
        &'a self,
        geometry: &'a Geometry<T>,
        topology: &'a Topology,
    ) -> impl Iterator<Item = (usize, Transfer<T>)> + 'a {
        let joints = topology.clusters.iter().enumerate().filter(|(_, c)| !c.massless);
        joints.flat_map(move |(i, cluster)| {
            self.local_transfers(i).map(move |x| (i, spread(geometry, topology, cluster, x)))
        })
    }
}

impl<T: Number> Rpna<T> {
    /// Returns rows that span the identifiable space `N⊥` (appendix G): for each joint its descriptor `N_i`, acting on
    /// the bodies of the joint and, through `B`, on all bodies that they carry.
    pub fn identifiable_rows(&self, geometry: &Geometry<T>, topology: &Topology) -> Vec<Transfer<T>> {
        let half = T::from_decimal(1, 2, 0);
        let mut out = Vec::new();
        for (i, cluster) in topology.clusters.iter().enumerate().filter(|(_, c)| !c.massless) {
            let mut transfers = Echelon::new(self.joints[i].width, Pivot::Largest);
            for transfer in self.local_transfers(i) {
                transfers.insert(transfer);
            }
            for row in transfers.null_space() {
                let mut gradient: Vec<Option<Parameters<T>>> = vec![None; geometry.bodies.len()];
                let mut at = 0;
                for &b in topology.bodies(cluster) {
                    let (_, width) = dimensions(&geometry.bodies[b]);
                    let mut own = Parameters::zeros();
                    own.as_mut_slice()[10 - width..].copy_from_slice(&row[at..at + width]);
                    gradient[b] = Some(own);
                    at += width;
                }
                for (b, body) in geometry.bodies.iter().enumerate() {
                    if let (None, Some(parent)) = (gradient[b], body.parent.and_then(|p| gradient[p])) {
                        gradient[b] = Some(pull_gradient(&body.placement, &parent, half));
                    }
                }
                let with_parameters = |b: &usize| geometry.bodies[*b].kind != BodyKind::Massless;
                let bodies = (0..gradient.len()).filter(with_parameters);
                out.push(bodies.filter_map(|b| Some((b, gradient[b]?))).collect());
            }
        }
        out
    }
}

/// Returns the change of every body by a transfer: the bodies of the joint gain `x`, the receiver loses it.
pub(super) fn spread<T: Number>(
    geometry: &Geometry<T>,
    topology: &Topology,
    cluster: &Cluster,
    x: &[T],
) -> Transfer<T> {
    let mut out: Transfer<T> = Vec::with_capacity(3);
    let mut transferred = Parameters::zeros();
    let mut at = 0;
    for &b in topology.bodies(cluster) {
        let body = &geometry.bodies[b];
        let (_, width) = dimensions(body);
        let mut own = Parameters::zeros();
        own.as_mut_slice()[10 - width..].copy_from_slice(&x[at..at + width]);
        at += width;
        if own.iter().all(Zero::is_zero) {
            continue;
        }
        out.push((b, own));
        let mut inertia = Inertia::from_parameters(&own).transformed(&body.placement);
        let mut carrier = body.parent;
        while carrier != cluster.receiver {
            let Some(p) = carrier else { break };
            inertia = inertia.transformed(&geometry.bodies[p].placement);
            carrier = geometry.bodies[p].parent;
        }
        transferred += inertia.parameters();
    }
    if let Some(receiver) = cluster.receiver.filter(|_| !transferred.iter().all(Zero::is_zero)) {
        out.insert(0, (receiver, -transferred));
    }
    out
}

/// Bases of `V` and `K` of one body, for its children; not stored if they are the whole space.
struct Spans<T: Number> {
    v: [[T; 6]; 6],
    k: [[T; 10]; 10],
    dim_v: usize,
    dim_k: usize,
}

struct Recursion<'a, T: Number> {
    geometry: &'a Geometry<T>,
    topology: &'a Topology,
    scope: Scope,
    half: T,
    /// Index of the stored spans of each body.
    stored: Vec<Option<u32>>,
    spans: Vec<Spans<T>>,
    /// Descriptors `N` of massless pieces, which also constrain their children.
    requirements: Vec<(usize, Vec<T>)>,
    out: Rpna<T>,
    v: Echelon<T>,
    k: Echelon<T>,
    n: Echelon<T>,
    block: Echelon<T>,
    buffer: Vec<T>,
}

impl<'a, T: Number> Recursion<'a, T> {
    fn new(geometry: &'a Geometry<T>, topology: &'a Topology, scope: Scope) -> Self {
        let bodies = geometry.bodies.len();
        let span = |width| Echelon::new(width, Pivot::Largest);
        Self {
            geometry,
            topology,
            scope,
            half: T::from_decimal(1, 2, 0),
            stored: vec![None; bodies],
            spans: Vec::new(),
            requirements: Vec::new(),
            out: Rpna {
                joints: Vec::with_capacity(topology.clusters.len()),
                bodies: vec![BodySpan::default(); bodies],
                gap: Gap::default(),
                restricted: 0,
                transfers: Vec::with_capacity(40 * bodies),
            },
            v: span(6),
            k: span(10),
            n: span(10),
            block: span(10),
            buffer: Vec::with_capacity(20),
        }
    }

    fn run(mut self) -> Rpna<T> {
        for cluster in &self.topology.clusters {
            let bodies = self.topology.bodies(cluster);
            let start = self.out.transfers.len();
            let joint = if let Some(joint) = self.unrestricted(cluster, bodies) {
                joint
            } else {
                let joined = Joined::new(self.geometry, bodies);
                let freedoms = self.restricted(cluster, &joined);
                self.out.restricted += 1;
                JointSpan { width: joined.width_k, freedoms, start }
            };
            self.out.joints.push(joint);
        }
        self.out
    }

    /// Applies algorithm 3: if the parent moves without restriction, the transfers follow from the joint type alone,
    /// also with a symmetric rotor (section 8).
    fn unrestricted(&mut self, cluster: &Cluster, bodies: &[usize]) -> Option<JointSpan> {
        let all = &self.geometry.bodies;
        let (index, rotor) = match *bodies {
            [index] => (index, None),
            [index, rotor] if all[rotor].kind == BodyKind::SymmetricRotor => (index, Some(rotor)),
            _ => return None,
        };
        let body = &all[index];
        let free = body.pivoting == Pivoting::Floating && self.scope.regime != Regime::Static;
        let full = |b: usize| self.out.bodies[b].velocity == 6 && self.out.bodies[b].identifiable == 10;
        let parent_full = cluster.parent.is_some_and(|p| full(p) && all[p].kind != BodyKind::Massless);
        let simple = bodies.iter().all(|&b| !all[b].ratio.is_zero())
            && !matches!(body.kind, BodyKind::Massless | BodyKind::SymmetricRotor)
            && !(body.pivoting == Pivoting::Helical && body.pitch.is_zero());
        if !(free || parent_full) || !simple {
            return None;
        }
        self.out.bodies[index] = BodySpan { velocity: 6, identifiable: 10 };
        if let Some(rotor) = rotor {
            self.out.bodies[rotor] = BodySpan { velocity: 1, identifiable: 1 };
        }
        let a = body.axis();
        let (one, zero, start) = (T::one(), T::zero(), self.out.transfers.len());
        let width = if rotor.is_some() { 11 } else { 10 };
        let mut freedoms = 0;
        let mut transfer = |parameters: [T; 10], spin: T| {
            self.out.transfers.extend(parameters);
            self.out.transfers.extend(rotor.map(|_| spin));
            freedoms += 1;
        };
        let unit = |k: usize| std::array::from_fn(|j| if j == k { one } else { zero });
        let inertia = |m: Matrix3<T>| {
            [zero, zero, zero, zero, m[(0, 0)], m[(0, 1)], m[(0, 2)], m[(1, 1)], m[(1, 2)], m[(2, 2)]]
        };
        let about = a * a.transpose();
        let across = inertia(Matrix3::identity() - about);
        match body.pivoting {
            // A mass at the origin, a first moment along the axis, and an inertia that is equal about all directions
            // perpendicular to it.
            Pivoting::Revolute => {
                transfer(unit(0), zero);
                transfer([zero, a.x, a.y, a.z, zero, zero, zero, zero, zero, zero], zero);
                transfer(across, zero);
            }
            Pivoting::Prismatic => (4..10).for_each(|k| transfer(unit(k), zero)),
            Pivoting::Helical | Pivoting::Cylindrical | Pivoting::Planar => transfer(across, zero),
            Pivoting::Spherical => transfer(unit(0), zero),
            Pivoting::Floating => {}
        }
        if let (Some(rotor), Pivoting::Revolute | Pivoting::Helical) = (rotor.map(|r| &all[r]), body.pivoting)
        {
            // Eq. 63: a rotor that turns with the joint, at the same rate about a parallel axis, has the same effect as
            // the link.
            let (z, c) = (rotor.placement.rotation * rotor.axis(), body.placement.rotation * a);
            if negligible(&(z * rotor.ratio - c * body.ratio)) {
                transfer(inertia(-about), one);
            }
        }
        Some(JointSpan { width, freedoms, start })
    }

    /// Applies algorithm 2, with the rotors and followers of appendix I.
    fn restricted(&mut self, cluster: &Cluster, joined: &Joined<'_, T>) -> usize {
        let mut buffer = std::mem::take(&mut self.buffer);
        let modes = joined.modes;
        self.start(cluster, joined, &mut buffer);
        // Transfer across the joint: the smallest spans that hold for every position (lemmas 1 and 2).
        close(&mut self.v, modes, &mut buffer, |mode, v, out| joined.bracket(mode, v, out));
        close(&mut self.k, modes, &mut buffer, |mode, k, out| joined.rate(mode, k, self.half, out));
        self.n.reset(joined.width_k);
        for i in 0..self.k.rank() {
            for mode in 0..modes {
                joined.rate(mode, self.k.row(i), self.half, &mut buffer);
                self.n.insert(&buffer);
            }
        }
        // The ground cannot receive parameters: its measured combinations count themselves, not only their change.
        if self.scope.wrench && cluster.parent.is_none() {
            for i in 0..self.k.rank() {
                self.n.insert(self.k.row(i));
            }
        }
        // Add the motion of the joint itself.
        if self.scope.own_motion() {
            for mode in 0..modes {
                joined.free_mode(mode, &mut buffer);
                self.v.insert(&buffer);
            }
        }
        for i in 0..self.v.rank() {
            for mode in 0..modes {
                joined.momentum(mode, self.v.row(i), &mut buffer);
                self.k.insert(&buffer);
                self.n.insert(&buffer);
            }
        }
        self.require(cluster, joined, &mut buffer);
        self.store(joined);
        for gap in [self.v.gap(), self.k.gap(), self.n.gap()] {
            self.out.gap = self.out.gap.worse(gap);
        }
        self.buffer = buffer;
        self.n.null_space_into(&mut self.out.transfers)
    }

    /// Transforms the spans of the parent to the frames of the joint's bodies.
    fn start(&mut self, cluster: &Cluster, joined: &Joined<'_, T>, buffer: &mut Vec<T>) {
        self.v.reset(joined.width_v);
        self.k.reset(joined.width_k);
        let unit = |i: usize, n: usize| (0..n).map(move |j| if i == j { T::one() } else { T::zero() });
        let Some(p) = cluster.parent else {
            let Scope { regime, torques, wrench } = self.scope;
            let fall = Motion::new(Vector3::zeros(), self.geometry.gravity);
            if regime != Regime::Kinetic && torques {
                joined.pull_motion(&fall, buffer);
                self.v.insert(buffer);
            }
            for k in (0..6).filter(|_| wrench) {
                let along = Motion::from_vector(&SVector::from_iterator(unit(k, 6)));
                if regime != Regime::Static {
                    joined.pull_motion(&along, buffer);
                    self.v.insert(buffer);
                }
                if regime != Regime::Kinetic {
                    joined.pull_gradient(&inertia_gradient(&along, &fall), self.half, buffer);
                    self.k.insert(buffer);
                }
            }
            return;
        };
        let span = self.out.bodies[p];
        let stored = self.stored[p].map(|s| &self.spans[s as usize]);
        for i in 0..span.velocity {
            let row = match stored.filter(|s| s.dim_v > 0) {
                Some(s) => SVector::from(s.v[i]),
                None => SVector::from_iterator(unit(i, 6)),
            };
            joined.pull_motion(&Motion::from_vector(&row), buffer);
            self.v.insert(buffer);
        }
        for i in 0..span.identifiable {
            let row = match stored.filter(|s| s.dim_k > 0) {
                Some(s) => Parameters::from(s.k[i]),
                None => Parameters::from_iterator(unit(i, 10)),
            };
            joined.pull_gradient(&row, self.half, buffer);
            self.k.insert(buffer);
        }
    }

    /// Records the constraints of a massless piece: it has no parameters, so the transfers of its children must also
    /// pass through its own joint without changing a measurement.
    fn require(&mut self, cluster: &Cluster, joined: &Joined<'_, T>, buffer: &mut Vec<T>) {
        let carrier = cluster.parent.filter(|&p| self.geometry.bodies[p].kind == BodyKind::Massless);
        let requirement_of = |p| self.requirements.iter().rev().find(|(b, _)| *b == p);
        if let Some((_, rows)) = carrier.and_then(requirement_of) {
            for row in rows.chunks_exact(10) {
                joined.pull_gradient(&Parameters::from_column_slice(row), self.half, buffer);
                self.n.insert(buffer);
            }
        }
        if cluster.massless {
            let rows = self.n.rows().flatten().copied().collect();
            self.requirements.push((joined.bodies[0], rows));
        }
    }

    fn store(&mut self, joined: &Joined<'_, T>) {
        let (mut at_v, mut at_k) = (0, 0);
        for &index in joined.bodies {
            let (dv, dk) = dimensions(&self.geometry.bodies[index]);
            let single = joined.bodies.len() == 1;
            let mut spans = Spans { v: [[T::zero(); 6]; 6], k: [[T::zero(); 10]; 10], dim_v: 0, dim_k: 0 };
            let dim_v = project(&self.v, at_v..at_v + dv, single, &mut self.block, |i, row| {
                spans.v[i][..dv].copy_from_slice(row);
            });
            let dim_k = project(&self.k, at_k..at_k + dk, single, &mut self.block, |i, row| {
                spans.k[i][..dk].copy_from_slice(row);
            });
            self.out.bodies[index] = BodySpan { velocity: dim_v, identifiable: dim_k };
            // Whole spaces need no basis.
            (spans.dim_v, spans.dim_k) = (dim_v % 6, dim_k % 10);
            if spans.dim_v + spans.dim_k > 0 && dv == 6 {
                self.stored[index] = Some(self.spans.len() as u32);
                self.spans.push(spans);
            }
            (at_v, at_k) = (at_v + dv, at_k + dk);
        }
    }
}

/// Extends a span until it is invariant under all modes: the controllable subspace of the switched system (section
/// 7.2).
fn close<T: Number>(
    span: &mut Echelon<T>,
    modes: usize,
    buffer: &mut Vec<T>,
    rate: impl Fn(usize, &[T], &mut Vec<T>),
) {
    let mut i = 0;
    while i < span.rank() && !span.is_full() {
        for mode in 0..modes {
            rate(mode, span.row(i), buffer);
            span.insert(buffer);
        }
        i += 1;
    }
}

/// Passes a basis of the projection of the span on some columns to `take`; returns its dimension.
fn project<T: Number>(
    span: &Echelon<T>,
    columns: std::ops::Range<usize>,
    all: bool,
    scratch: &mut Echelon<T>,
    mut take: impl FnMut(usize, &[T]),
) -> usize {
    let source = if all {
        span
    } else {
        scratch.reset(columns.len());
        for row in span.rows() {
            scratch.insert(&row[columns.clone()]);
        }
        scratch
    };
    source.rows().enumerate().for_each(|(i, row)| take(i, row));
    source.rank()
}

#[inline]
fn negligible<T: Number>(v: &Vector3<T>) -> bool {
    v.iter().all(|x| x.weight() <= T::TOLERANCE)
}
