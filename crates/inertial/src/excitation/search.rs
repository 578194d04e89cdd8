//! Optimization problem of a design: criterion and limits as functions of the variables of a plan.

use nalgebra::DMatrix;

use super::clearance::{CollisionModel, add_contact};
use super::columns::Columns;
use super::criteria::{Criterion, Value};
use super::information::Evaluator;
use super::limits::METRES;
use super::model_aggregation::ModelAggregation;
use super::motion_search::{LimitValue, MotionSearch, Watched, bound_name, restored};
use super::plan::{Plan, Table};
use super::states::States;
use crate::Result;
use crate::dynamics::{Four, InverseDynamics, RegressorGradient, Scratch, Workspace, forward_kinematics};
use crate::mechanism::Mechanism;
use crate::optimize::sqp::{ConstraintRows, Problem};

/// Constraint value below which a constraint cannot become active within one step; otherwise the next step includes it.
pub(super) const NEAR: f64 = -0.5;

/// Maximum number of entries of the gradients of all constraints of one step: 240 MB. Common designs have about a hundred thousand.
const MOST_ENTRIES: usize = 10_000_000;

/// Possible variant of a robot, with the unknowns to identify.
#[derive(Debug, Clone)]
pub(super) struct Model<'m> {
    pub mechanism: &'m Mechanism,
    pub dynamics: InverseDynamics,
    pub columns: Columns,
    pub scales: Vec<f64>,
    /// Prior information.
    pub prior: Option<DMatrix<f64>>,
    /// Largest force of each velocity coordinate.
    pub effort: Vec<f64>,
    pub damping: Vec<f64>,
    pub friction: Vec<f64>,
}

/// Limited quantity of a constraint.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Limit {
    /// Position (0), velocity (1) or acceleration (2) of a coordinate, limited above (1) or below (−1).
    Bound { j: usize, order: usize, sign: f64 },
    /// Force of a velocity coordinate in one of the models.
    Force { model: usize, v: usize, sign: f64 },
    /// Distance constraint.
    Collision(usize),
}

/// Constant data of a search.
#[derive(Debug)]
pub(super) struct Task<'m> {
    pub models: Vec<Model<'m>>,
    pub plan: Plan,
    pub collisions: CollisionModel,
    pub criterion: Criterion,
    pub robust: ModelAggregation,
    pub limits: Vec<Limit>,
}

impl<'m> Task<'m> {
    pub fn new(
        models: Vec<Model<'m>>,
        plan: Plan,
        collisions: CollisionModel,
        criterion: Criterion,
        robust: ModelAggregation,
    ) -> Self {
        let mut limits = Vec::new();
        for (j, c) in plan.coordinates.iter().enumerate() {
            let highest = [c.upper, c.velocity, c.acceleration];
            let lowest = [-c.lower, c.velocity, c.acceleration];
            for order in 0..3 {
                for (sign, limit) in [(1.0, highest[order]), (-1.0, lowest[order])] {
                    if limit.is_finite() {
                        limits.push(Limit::Bound { j, order, sign });
                    }
                }
            }
        }
        for (model, m) in models.iter().enumerate() {
            for v in (0..m.effort.len()).filter(|&v| m.effort[v].is_finite()) {
                limits.extend([1.0, -1.0].map(|sign| Limit::Force { model, v, sign }));
            }
        }
        limits.extend((0..collisions.len()).map(Limit::Collision));
        Self { models, plan, collisions, criterion, robust, limits }
    }

    /// Returns the description of a limit.
    pub fn name(&self, limit: Limit) -> String {
        match limit {
            Limit::Bound { j, order, sign } => bound_name(&self.plan.coordinates[j], order, sign),
            Limit::Force { v, .. } => {
                format!("the torque of {}", self.models[0].mechanism.velocity_names()[v])
            }
            Limit::Collision(index) => self.collisions.name(index),
        }
    }
}

/// Optimization problem at the samples of one rate, with the memory of one thread.
pub(super) struct Search<'t> {
    task: &'t Task<'t>,
    table: &'t Table,
    /// Margin of each limit for the motion between samples.
    tighten: f64,
    /// Number of measured samples that each sample represents.
    weight: f64,
    /// Searches together, which may be stopped within an evaluation.
    watched: Option<&'t Watched<'t>>,
    evaluators: Vec<Evaluator<'t>>,
    scratches: Vec<Scratch>,
    workspace: Workspace,
    /// Point that the following fields belong to.
    x: Vec<f64>,
    followed: Vec<[f64; 3]>,
    states: States,
    forces: Vec<Vec<f64>>,
    /// Values of each limit at all samples.
    values: Vec<Vec<f64>>,
    gradient: [Vec<f64>; 3],
    row: Vec<[f64; 3]>,
}

impl<'t> Search<'t> {
    pub fn new(task: &'t Task<'t>, table: &'t Table, tighten: f64, weight: f64) -> Self {
        let first = &task.models[0];
        let nv = first.dynamics.nv();
        Self {
            task,
            table,
            tighten,
            weight,
            watched: None,
            evaluators: task.models.iter().map(|m| Evaluator::new(&m.dynamics, &m.columns)).collect(),
            scratches: task.models.iter().map(|m| m.dynamics.scratch()).collect(),
            workspace: Workspace::new(first.mechanism),
            x: Vec::new(),
            followed: Vec::new(),
            states: Plan::empty_states(&first.dynamics, table),
            forces: task.models.iter().map(|_| vec![0.0; table.count * nv]).collect(),
            values: vec![vec![0.0; table.count]; task.limits.len()],
            gradient: std::array::from_fn(|_| vec![0.0; table.count * nv]),
            row: vec![[0.0; 3]; task.plan.coordinates.len()],
        }
    }

    /// Ends evaluations when a stop is requested. An evaluation that was stopped has an infinite value.
    pub fn stop_with(&mut self, watched: &'t Watched<'t>) {
        self.watched = Some(watched);
    }

    /// Computes states, forces and values of all limits at `x`.
    fn move_to(&mut self, x: &[f64]) -> Result<()> {
        if self.x == x {
            return Ok(());
        }
        self.x.clear();
        let (task, n) = (self.task, self.task.plan.coordinates.len());
        let mechanism = task.models[0].mechanism;
        let (nq, nv) = (mechanism.nq(), mechanism.nv());
        task.plan.follow(self.table, x, &mut self.followed);
        task.plan.states(mechanism, &self.followed, &mut self.states);
        for ((m, scratch), forces) in task.models.iter().zip(&mut self.scratches).zip(&mut self.forces) {
            if m.effort.iter().any(|e| e.is_finite()) {
                m.dynamics.rnea_batch(scratch, &self.states.samples(&m.dynamics)?, forces)?;
                for (force, v) in
                    forces.chunks_exact_mut(nv.max(1)).zip(self.states.v.chunks_exact(nv.max(1)))
                {
                    for k in 0..nv {
                        force[k] += m.damping[k] * v[k]
                            + if v[k] == 0.0 { 0.0 } else { m.friction[k] * v[k].signum() };
                    }
                }
            }
        }
        let collisions_from = task.limits.len() - task.collisions.len();
        for (limit, values) in task.limits.iter().zip(&mut self.values).take(collisions_from) {
            match *limit {
                Limit::Bound { j, order, sign } => {
                    let (offset, scale) = task.plan.coordinates[j].bound(order, sign);
                    for (i, value) in values.iter_mut().enumerate() {
                        *value = (sign * self.followed[i * n + j][order] - offset) / scale + self.tighten;
                    }
                }
                Limit::Force { model, v, sign } => {
                    let effort = task.models[model].effort[v];
                    for (i, value) in values.iter_mut().enumerate() {
                        *value = sign * self.forces[model][i * nv + v] / effort - 1.0 + self.tighten;
                    }
                }
                Limit::Collision(_) => {}
            }
        }
        if task.collisions.len() > 0 {
            for i in 0..self.table.count {
                forward_kinematics(mechanism, &mut self.workspace, &self.states.q[i * nq..(i + 1) * nq])?;
                for (index, values) in self.values[collisions_from..].iter_mut().enumerate() {
                    values[i] =
                        task.collisions.value(index, self.workspace.poses()).0 / METRES + self.tighten;
                }
            }
        }
        self.x.extend_from_slice(x);
        Ok(())
    }

    /// Returns the criterion of each model with its derivative and its weight in the objective, and the objective.
    fn criteria(&mut self) -> Result<(f64, Vec<(Value, f64)>)> {
        let energy = (self.states.v.iter().map(|v| v * v).sum::<f64>(), self.states.v.len());
        let mut values = Vec::with_capacity(self.evaluators.len());
        let watched = self.watched;
        let is_stopped = || watched.is_some_and(Watched::is_stopped);
        for (model, evaluator) in self.task.models.iter().zip(&mut self.evaluators) {
            let mut information = self.weight * evaluator.information_unless(&self.states, &is_stopped)?;
            if let Some(prior) = &model.prior {
                information += prior;
            }
            values.push(self.task.criterion.evaluate(&information, &model.scales, energy)?);
        }
        let (objective, weights) =
            self.task.robust.combine(&values.iter().map(|v| v.value).collect::<Vec<_>>());
        Ok((objective, values.into_iter().zip(weights).collect()))
    }

    fn objective_at(&mut self, x: &[f64], gradient: Option<&mut [f64]>) -> Result<f64> {
        self.move_to(x)?;
        let (objective, values) = self.criteria()?;
        let Some(gradient) = gradient else { return Ok(objective) };
        gradient.fill(0.0);
        if !objective.is_finite() {
            return Ok(objective);
        }
        self.gradient.iter_mut().for_each(|g| g.fill(0.0));
        let watched = self.watched;
        let is_stopped = || watched.is_some_and(Watched::is_stopped);
        for ((value, weight), evaluator) in values.iter().zip(&mut self.evaluators) {
            evaluator.add_gradient_unless(
                &self.states,
                &(&value.slope * (self.weight * weight)),
                &mut self.gradient,
                &is_stopped,
            )?;
            let pull = 2.0 * weight * value.energy_slope;
            self.gradient[1].iter_mut().zip(&self.states.v).for_each(|(g, v)| *g += pull * v);
        }
        let (plan, nv) = (&self.task.plan, self.task.models[0].dynamics.nv());
        let n = plan.coordinates.len();
        for i in 0..self.table.count {
            let [gq, gv, ga] = &self.gradient;
            let own = i * nv..(i + 1) * nv;
            let parts = [&gq[own.clone()], &gv[own.clone()], &ga[own]];
            plan.pull_sample(&self.followed[i * n..(i + 1) * n], parts, &mut self.row);
            plan.pull_point(self.table, i, &self.row, gradient);
        }
        Ok(objective)
    }

    /// Computes the information of each model at `x`, without priors.
    pub fn information(&mut self, x: &[f64]) -> Result<Vec<DMatrix<f64>>> {
        self.move_to(x)?;
        self.evaluators.iter_mut().map(|e| Ok(self.weight * e.information(&self.states)?)).collect()
    }

    /// Adds the gradient of a limit at sample `i` to `out`, times a factor.
    fn pull_limit(&mut self, limit: Limit, i: usize, factor: f64, out: &mut [f64]) -> Result<()> {
        let (task, n) = (self.task, self.task.plan.coordinates.len());
        self.row.fill([0.0; 3]);
        match limit {
            Limit::Bound { j, order, sign } => {
                self.row[j][order] = factor * sign / task.plan.coordinates[j].bound(order, sign).1;
            }
            Limit::Force { model, v, sign } => {
                let m = &task.models[model];
                let scale = factor * sign / m.effort[v];
                let parts = self.force_gradient(model, v, i)?;
                let scaled = parts.map(|p| p.into_iter().map(|x| x * scale).collect::<Vec<_>>());
                let row = &self.followed[i * n..(i + 1) * n];
                task.plan.pull_sample(row, [&scaled[0], &scaled[1], &scaled[2]], &mut self.row);
            }
            Limit::Collision(index) => {
                let mechanism = task.models[0].mechanism;
                let (nq, nv) = (mechanism.nq(), mechanism.nv());
                forward_kinematics(mechanism, &mut self.workspace, &self.states.q[i * nq..(i + 1) * nq])?;
                let poses = self.workspace.poses();
                let mut gq = vec![0.0; nv];
                for contact in task.collisions.value(index, poses).1.iter().flatten() {
                    add_contact(mechanism, poses, contact, factor / METRES, &mut gq);
                }
                let zeros = vec![0.0; nv];
                let row = &self.followed[i * n..(i + 1) * n];
                task.plan.pull_sample(row, [&gq, &zeros, &zeros], &mut self.row);
            }
        }
        task.plan.pull_point(self.table, i, &self.row, out);
        Ok(())
    }

    /// Returns the constraints that may become active within one step.
    fn near(&self) -> Vec<Near> {
        let (all, own) = (self.dimension(), self.task.plan.functions());
        let mut out = Vec::new();
        for (f, (limit, values)) in self.task.limits.iter().zip(&self.values).enumerate() {
            let entries = if matches!(limit, Limit::Bound { .. }) { own } else { all };
            let near = (0..values.len()).filter(|&i| values[i] > NEAR && is_near_crest(values, i));
            out.extend(near.map(|i| Near { f, i, value: values[i], entries }));
        }
        out
    }

    /// Computes the derivatives of one force at one sample with respect to `q`, `v` and `a`.
    fn force_gradient(&mut self, model: usize, v: usize, i: usize) -> Result<[Vec<f64>; 3]> {
        let m = &self.task.models[model];
        let (nq, nv) = (m.dynamics.nq(), m.dynamics.nv());
        let layout = m.dynamics.layout();
        let parameters = m.mechanism.parameters();
        let mut weights = vec![Four::default(); layout.len()];
        for block in layout.row(v) {
            for k in 0..block.len {
                weights[block.start + k] = Four([parameters[block.column + k]; 4]);
            }
        }
        let states = States {
            count: 1,
            q: self.states.q[i * nq..(i + 1) * nq].to_vec(),
            v: self.states.v[i * nv..(i + 1) * nv].to_vec(),
            a: self.states.a[i * nv..(i + 1) * nv].to_vec(),
        };
        let mut out = [vec![0.0; nv], vec![0.0; nv], vec![0.0; nv]];
        let [gq, gv, ga] = &mut out;
        let samples = states.samples(&m.dynamics)?;
        let back = &mut RegressorGradient::new(&m.dynamics);
        back.run(&m.dynamics, &mut self.scratches[model], &samples, &weights, [gq, gv, ga])?;
        gv[v] += m.damping[v];
        ga[v] += m.mechanism.armature()[v];
        Ok(out)
    }
}

/// Constraint that may become active within one step: limit `f` at sample `i`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Near {
    pub f: usize,
    pub i: usize,
    pub value: f64,
    /// Number of entries of its gradient.
    pub entries: usize,
}

/// Removes the constraints that are farthest from active until the gradients have at most `most` entries. The order is kept.
pub(super) fn most_binding(mut near: Vec<Near>, most: usize) -> Vec<Near> {
    if near.iter().map(|n| n.entries).sum::<usize>() <= most {
        return near;
    }
    near.sort_by(|a, b| b.value.total_cmp(&a.value));
    let mut total = 0;
    let kept = near.iter().take_while(|n| {
        total += n.entries;
        total <= most
    });
    let kept = kept.count();
    near.truncate(kept);
    near.sort_by_key(|n| (n.f, n.i));
    near
}

/// Returns whether a sample is a local maximum or next to one. All other values are lower. A maximum moves between samples, so a
/// step that considers the maximum alone exceeds the limit at the next sample.
pub(super) fn is_near_crest(values: &[f64], i: usize) -> bool {
    let crest = |i: usize| {
        (i == 0 || values[i - 1] <= values[i]) && (i + 1 == values.len() || values[i + 1] < values[i])
    };
    (i.saturating_sub(1)..=(i + 1).min(values.len() - 1)).any(crest)
}

impl MotionSearch for Search<'_> {
    fn plan(&self) -> &Plan {
        &self.task.plan
    }

    fn limits(&mut self, x: &[f64]) -> Result<Vec<LimitValue>> {
        self.move_to(x)?;
        let one = |(&limit, values): (&Limit, &Vec<f64>)| LimitValue {
            name: self.task.name(limit),
            value: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            is_distance: matches!(limit, Limit::Collision(_)),
        };
        Ok(self.task.limits.iter().zip(&self.values).map(one).collect())
    }

    fn largest(&mut self, x: &[f64]) -> f64 {
        let values = |s: &Self| s.values.iter().flatten().copied().fold(f64::NEG_INFINITY, f64::max);
        self.move_to(x).map_or(f64::INFINITY, |()| values(self))
    }
}

impl Problem for Search<'_> {
    fn dimension(&self) -> usize {
        self.task.plan.dimension()
    }

    fn objective(&mut self, x: &[f64], gradient: Option<&mut [f64]>) -> f64 {
        // A failed evaluation has an infinite value; the search then takes a shorter step.
        self.objective_at(x, gradient).unwrap_or(f64::INFINITY)
    }

    fn violation(&mut self, x: &[f64]) -> f64 {
        self.largest(x)
    }

    fn restore(&mut self, x: &[f64]) -> Option<Vec<f64>> {
        restored(self, x)
    }

    fn constraints(&mut self, x: &[f64], _: f64, rows: &mut ConstraintRows) {
        if self.move_to(x).is_err() {
            return;
        }
        let count = self.table.count;
        let mut gradient = vec![0.0; self.dimension()];
        for Near { f, i, value, .. } in most_binding(self.near(), MOST_ENTRIES) {
            gradient.fill(0.0);
            if self.is_stopped() {
                // The step from these rows is rejected.
                return;
            }
            if self.pull_limit(self.task.limits[f], i, 1.0, &mut gradient).is_ok() {
                rows.push(f * count + i, value, gradient.iter().copied().enumerate());
            }
        }
    }

    fn is_stopped(&self) -> bool {
        self.watched.is_some_and(Watched::is_stopped)
    }

    fn add_gradient(&mut self, x: &[f64], key: usize, factor: f64, gradient: &mut [f64]) {
        let (f, i) = (key / self.table.count, key % self.table.count);
        // Linear limits have the same gradient everywhere.
        let linear = matches!(self.task.limits[f], Limit::Bound { .. });
        // A failure only degrades the model of the curvature.
        let _ = if linear { Ok(()) } else { self.move_to(x) }
            .and_then(|()| self.pull_limit(self.task.limits[f], i, factor, gradient));
    }
}

#[cfg(test)]
mod tests;
