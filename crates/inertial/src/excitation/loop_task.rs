//! Information and limits of a motion of a mechanism with loops: the plan moves the independent joints, and the loop closure
//! determines the motion of all others.

use nalgebra::DMatrix;

use super::clearance::CollisionModel;
use super::columns::Columns;
use super::criteria::Criterion;
use super::information::{add_chunk, gather, sums, total};
use super::limits::METRES;
use super::motion_search::bound_name;
use super::plan::{Coordinate, Plan};
use super::states::States;
use crate::dynamics::simd::row_products::multiply;
use crate::dynamics::{
    ClosedChunk, ClosedMechanism, ClosedWorkspace, Four, Samples, Workspace, forward_kinematics,
};
use crate::{Error, Result};

/// Limited quantity of a constraint.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum LoopLimit {
    /// Position (0), velocity (1) or acceleration (2) of a joint, limited above (1) or below (−1).
    Bound { joint: usize, order: usize, sign: f64 },
    /// Force of an independent coordinate.
    Force { row: usize, sign: f64 },
    /// Distance constraint.
    Collision(usize),
}

/// Joint with limits, and its coordinates in the tree.
#[derive(Debug, Clone)]
pub(super) struct LimitedJoint {
    pub limits: Coordinate,
    pub q: usize,
    pub v: usize,
}

/// Constant data of a search.
#[derive(Debug)]
pub(super) struct LoopTask<'m> {
    pub closed: &'m ClosedMechanism<'m>,
    pub columns: Columns,
    pub prior: Option<DMatrix<f64>>,
    pub plan: Plan,
    pub collisions: CollisionModel,
    pub criterion: Criterion,
    pub joints: Vec<LimitedJoint>,
    pub limits: Vec<LoopLimit>,
    /// Largest force of each independent coordinate.
    pub effort: Vec<f64>,
    /// Index of each coordinate of the plan among the independent positions and among the independent velocities.
    pub places: Vec<[usize; 2]>,
    pub scales: Vec<f64>,
    parameters: Vec<f64>,
    /// Damping, friction and armature of each coordinate of the tree.
    drives: Vec<[f64; 3]>,
}

impl<'m> LoopTask<'m> {
    pub fn new(
        closed: &'m ClosedMechanism<'m>,
        columns: Columns,
        plan: Plan,
        joints: Vec<LimitedJoint>,
        effort: Vec<f64>,
        collisions: CollisionModel,
        criterion: Criterion,
    ) -> Result<Self> {
        let mechanism = closed.mechanism();
        let mut limits = Vec::new();
        for (joint, own) in joints.iter().enumerate() {
            for order in 0..3 {
                let finite = |sign: &f64| own.limits.bound(order, *sign).0.is_finite();
                let signs = [1.0, -1.0].into_iter().filter(finite);
                limits.extend(signs.map(|sign| LoopLimit::Bound { joint, order, sign }));
            }
        }
        for row in (0..effort.len()).filter(|&row| effort[row].is_finite()) {
            limits.extend([1.0, -1.0].map(|sign| LoopLimit::Force { row, sign }));
        }
        limits.extend((0..collisions.len()).map(LoopLimit::Collision));
        let places = plan.coordinates.iter().map(|c| place(closed, &c.name)).collect::<Result<_>>()?;
        let mut drives: Vec<[f64; 3]> = mechanism.armature().iter().map(|a| [0.0, 0.0, *a]).collect();
        for joint in mechanism.joints().iter().filter(|j| j.follows.is_none()) {
            for v in joint.v_range() {
                (drives[v][0], drives[v][1]) = (joint.dynamics.damping, joint.dynamics.friction);
            }
        }
        let (scales, parameters) = (columns.scales(), mechanism.parameters());
        Ok(Self {
            closed,
            columns,
            prior: None,
            plan,
            collisions,
            criterion,
            joints,
            limits,
            effort,
            places,
            scales,
            parameters,
            drives,
        })
    }

    /// Returns the description of a limit.
    pub fn name(&self, limit: LoopLimit) -> String {
        match limit {
            LoopLimit::Bound { joint, order, sign } => bound_name(&self.joints[joint].limits, order, sign),
            LoopLimit::Force { row, .. } => format!("the torque of {}", self.closed.independent_names()[row]),
            LoopLimit::Collision(index) => self.collisions.name(index),
        }
    }

    /// Evaluates the motion of the coordinates of the plan; `near` are closed configurations of a similar motion.
    pub fn evaluate(
        &self,
        memory: &mut LoopMemory,
        followed: &[[f64; 3]],
        near: Option<&[f64]>,
        goal: &Goal<'_>,
        out: &mut Evaluation,
    ) -> Result<()> {
        let n = self.plan.coordinates.len();
        let (nq, dof) = (self.closed.mechanism().nq(), self.closed.dof());
        let width = self.closed.independent_positions().len();
        let count = followed.len() / n.max(1);
        let states = &mut out.states;
        *states =
            States { count, q: vec![0.0; count * nq], v: vec![0.0; count * dof], a: vec![0.0; count * dof] };
        let rest: Vec<f64> =
            self.closed.independent_positions().iter().map(|&q| self.closed.assembled()[q]).collect();
        let mut positions: Vec<f64> = rest.iter().copied().cycle().take(count * width).collect();
        for (i, row) in followed.chunks_exact(n.max(1)).enumerate() {
            for (&[position, rate], x) in self.places.iter().zip(row) {
                positions[i * width + position] = x[0];
                states.v[i * dof + rate] = x[1];
                states.a[i * dof + rate] = x[2];
            }
        }
        match near {
            None => {
                self.closed.follow(&mut memory.closed, self.closed.assembled(), &positions, &mut states.q)?;
            }
            Some(near) => {
                states.q.copy_from_slice(near);
                for (q, target) in states.q.chunks_exact_mut(nq).zip(positions.chunks_exact(width)) {
                    self.closed.move_to(&mut memory.closed, q, target)?;
                }
            }
        }
        out.values.resize(self.limits.len(), Vec::new());
        out.values.iter_mut().for_each(|values| values.resize(count, 0.0));
        out.share.clear();
        out.share.resize(count, 0.0);
        self.forces_and_information(memory, goal, out)?;
        if self.collisions.len() > 0 {
            let first = self.limits.len() - self.collisions.len();
            for i in 0..count {
                forward_kinematics(
                    self.closed.mechanism(),
                    &mut memory.tree,
                    &out.states.q[i * nq..(i + 1) * nq],
                )?;
                for (index, values) in out.values[first..].iter_mut().enumerate() {
                    values[i] = self.collisions.value(index, memory.tree.poses()).0 / METRES;
                }
            }
        }
        Ok(())
    }

    /// Computes, in one pass over the regressors, the information or its derivative share, the forces, and the motion of all
    /// joints.
    fn forces_and_information(
        &self,
        memory: &mut LoopMemory,
        goal: &Goal<'_>,
        out: &mut Evaluation,
    ) -> Result<()> {
        let Evaluation { states, values, share, information } = out;
        let LoopMemory { closed: workspace, sums, row, product, .. } = memory;
        let nq = self.closed.mechanism().nq();
        let samples = Samples::closed(self.closed, states.count, &states.q, &states.v, &states.a)?;
        sums.iter_mut().for_each(|s| s.fill(Four::default()));
        self.closed.packed_regressors(workspace, &samples, |chunk| {
            match goal {
                Goal::Information => add_chunk(&self.columns, &chunk.regressors, states, row, sums),
                Goal::Share(blocks) => {
                    for (own, block) in self.columns.rows.iter().zip(*blocks) {
                        gather(own, &chunk.regressors, states, row);
                        let n = own.channel.unknowns.len();
                        let product = &mut product[..n];
                        for (group, y) in row.chunks_exact(n.max(1)).enumerate() {
                            multiply(n, block, y, product);
                            let first = 4 * group;
                            for lane in 0..4.min(chunk.regressors.count - first) {
                                let dot: f64 =
                                    y.iter().zip(&*product).map(|(a, b)| a.0[lane] * b.0[lane]).sum();
                                share[chunk.regressors.first + first + lane] += dot;
                            }
                        }
                    }
                }
            }
            for (limit, values) in self.limits.iter().zip(&mut *values) {
                for s in 0..chunk.regressors.count {
                    let i = chunk.regressors.first + s;
                    values[i] = match *limit {
                        LoopLimit::Bound { joint, order, sign } => {
                            let own = &self.joints[joint];
                            let (bound, unit) = own.limits.bound(order, sign);
                            let x = [states.q[i * nq + own.q], chunk.v(s)[own.v], chunk.a(s)[own.v]][order];
                            (sign * x - bound) / unit
                        }
                        LoopLimit::Force { row, sign } => {
                            sign * self.force(&chunk, s, row) / self.effort[row] - 1.0
                        }
                        LoopLimit::Collision(_) => 0.0,
                    };
                }
            }
        })?;
        if matches!(goal, Goal::Information) {
            *information = total(&self.columns, sums);
        }
        Ok(())
    }

    /// Returns the force of an independent coordinate in a sample of a chunk.
    fn force(&self, chunk: &ClosedChunk<'_>, s: usize, row: usize) -> f64 {
        let entries = chunk.regressors.groups().nth(s / 4).unwrap_or(&[]);
        let blocks = self.closed.layout().row(row).iter();
        let mut force: f64 = blocks
            .flat_map(|b| (0..b.len).map(move |k| (b.start + k, b.column + k)))
            .map(|(entry, column)| entries[entry].0[s % 4] * self.parameters[column])
            .sum();
        let nv = self.drives.len();
        let map = &chunk.map(s)[row * nv..(row + 1) * nv];
        for (((g, [damping, friction, armature]), v), a) in
            map.iter().zip(&self.drives).zip(chunk.v(s)).zip(chunk.a(s))
        {
            let sign = if *v == 0.0 { 0.0 } else { v.signum() };
            force += g * (damping * v + friction * sign + armature * a);
        }
        force
    }

    /// Returns the unit of the position, velocity or acceleration of a coordinate of the plan.
    pub fn unit(&self, coordinate: usize, order: usize) -> f64 {
        let c = &self.plan.coordinates[coordinate];
        let unit = [c.reach(), c.velocity, c.acceleration][order];
        if unit.is_finite() { unit } else { 1.0 }
    }
}

/// Returns the indices of a joint among the independent positions and velocities.
pub(super) fn place(closed: &ClosedMechanism<'_>, name: &str) -> Result<[usize; 2]> {
    let rate = closed.independent_names().iter().position(|n| n == name);
    let position = match super::motion::target(closed.mechanism(), name)? {
        super::motion::Target::Joint { q, .. } => closed.independent_positions().iter().position(|&k| k == q),
        super::motion::Target::Base(_) => None,
    };
    position.zip(rate).map(|(position, rate)| [position, rate]).ok_or_else(|| {
        Error::NotApplicable(format!(
            "{name} is not an independent joint: a design moves {}",
            closed.independent_names().join(", ")
        ))
    })
}

/// Quantity that an evaluation sums over the samples.
pub(super) enum Goal<'a> {
    /// Information matrix.
    Information,
    /// Sum of `yᵀ B y` over the measured rows `y` of each sample, with one matrix `B` per row.
    Share(&'a [Vec<f64>]),
}

/// Results for one motion.
#[derive(Debug, Clone, Default)]
pub(super) struct Evaluation {
    /// Positions of the tree; velocities and accelerations of the independent coordinates.
    pub states: States,
    /// Values of each limit at all samples.
    pub values: Vec<Vec<f64>>,
    pub share: Vec<f64>,
    pub information: DMatrix<f64>,
}

/// Memory of one thread.
pub(super) struct LoopMemory {
    closed: ClosedWorkspace,
    tree: Workspace,
    sums: Vec<Vec<Four>>,
    row: Vec<Four>,
    product: Vec<Four>,
}

impl LoopMemory {
    pub fn new(closed: &ClosedMechanism<'_>, columns: &Columns) -> Self {
        let widest = columns.rows.iter().map(|r| r.channel.unknowns.len()).max().unwrap_or(0);
        Self {
            closed: closed.workspace(),
            tree: Workspace::new(closed.mechanism()),
            sums: sums(columns),
            row: Vec::new(),
            product: vec![Four::default(); widest],
        }
    }

    /// Computes the information of one state of the coordinates at these indices.
    pub fn information(
        &mut self,
        closed: &ClosedMechanism<'_>,
        columns: &Columns,
        places: &[[usize; 2]],
        state: &[[f64; 3]],
    ) -> Result<DMatrix<f64>> {
        let mut q = closed.assembled().to_vec();
        let mut positions: Vec<f64> = closed.independent_positions().iter().map(|&k| q[k]).collect();
        let [mut v, mut a] = [vec![0.0; closed.dof()], vec![0.0; closed.dof()]];
        for (&[position, rate], x) in places.iter().zip(state) {
            (positions[position], v[rate], a[rate]) = (x[0], x[1], x[2]);
        }
        closed.move_to(&mut self.closed, &mut q, &positions)?;
        let states = States { count: 1, q, v, a };
        let samples = Samples::closed(closed, 1, &states.q, &states.v, &states.a)?;
        let Self { closed: workspace, sums, row, .. } = self;
        sums.iter_mut().for_each(|s| s.fill(Four::default()));
        closed.packed_regressors(workspace, &samples, |chunk| {
            add_chunk(columns, &chunk.regressors, &states, row, sums);
        })?;
        Ok(total(columns, sums))
    }
}
