//! Optimization problem of a design for a mechanism with loops.
//!
//! Criterion and limits of one sample depend only on position, velocity and acceleration of the independent joints at that sample.
//! Their derivatives are finite differences with respect to each of these values, at all samples at once. The plan converts them
//! to derivatives with respect to its variables.

use rayon::prelude::{IntoParallelIterator, ParallelIterator};

use super::criteria::Value;
use super::loop_task::{Evaluation, Goal, LoopLimit, LoopMemory, LoopTask};
use super::motion_search::{LimitValue, MotionSearch, restored};
use super::plan::{Plan, Table};
use super::search::{NEAR, is_near_crest};
use crate::Result;
use crate::optimize::sqp::{ConstraintRows, Problem};

/// Step of the finite differences, relative to the limit of the varied quantity: truncation and rounding errors are both about
/// 1e-6.
const STEP: f64 = 1e-6;

/// Derivatives with respect to one value of the motion: of the shares of all samples, and of the constraints.
type Slopes = (Vec<f64>, Vec<f64>);

/// Derivatives at one point.
struct Sensitivity {
    gradient: Vec<f64>,
    /// Constraints by key, with their derivatives with respect to position, velocity and acceleration of each coordinate.
    rows: Vec<(usize, Vec<[f64; 3]>)>,
}

/// Optimization problem at the samples of one rate.
pub(super) struct LoopSearch<'t> {
    task: &'t LoopTask<'t>,
    table: &'t Table,
    /// Margin of each limit for the motion between samples.
    tighten: f64,
    /// Number of measured samples per evaluated sample.
    weight: f64,
    memory: LoopMemory,
    x: Vec<f64>,
    followed: Vec<[f64; 3]>,
    pub here: Evaluation,
    sensitivity: Option<Sensitivity>,
    /// Constraints of the last linearization.
    keys: Vec<usize>,
}

impl<'t> LoopSearch<'t> {
    pub fn new(task: &'t LoopTask<'t>, table: &'t Table, tighten: f64, weight: f64) -> Self {
        let memory = LoopMemory::new(task.closed, &task.columns);
        let (x, followed, here) = (Vec::new(), Vec::new(), Evaluation::default());
        Self { task, table, tighten, weight, memory, x, followed, here, sensitivity: None, keys: Vec::new() }
    }

    /// Evaluates the motion at `x`.
    pub fn move_to(&mut self, x: &[f64]) -> Result<()> {
        if self.x == x {
            return Ok(());
        }
        self.x.clear();
        self.sensitivity = None;
        self.task.plan.follow(self.table, x, &mut self.followed);
        self.task.evaluate(&mut self.memory, &self.followed, None, &Goal::Information, &mut self.here)?;
        self.here.values.iter_mut().flatten().for_each(|value| *value += self.tighten);
        self.here.information *= self.weight;
        if let Some(prior) = &self.task.prior {
            self.here.information += prior;
        }
        self.x.extend_from_slice(x);
        Ok(())
    }

    fn criterion(&self) -> Result<Value> {
        let v = &self.here.states.v;
        let energy = (v.iter().map(|v| v * v).sum::<f64>(), v.len());
        self.task.criterion.evaluate(&self.here.information, &self.task.scales, energy)
    }

    /// Returns the constraints that may become active near this point: local maxima of their values and their neighbours.
    fn near(&self) -> Vec<usize> {
        let count = self.table.count;
        let mut out = Vec::new();
        for (f, values) in self.here.values.iter().enumerate() {
            let near = (0..count).filter(|&i| values[i] > NEAR && is_near_crest(values, i));
            out.extend(near.map(|i| f * count + i));
        }
        out
    }

    /// Computes the derivatives at the point of the last move.
    fn differentiate(&mut self) -> Result<()> {
        if self.sensitivity.is_some() {
            return Ok(());
        }
        let (task, count, n) = (self.task, self.table.count, self.task.plan.coordinates.len());
        let value = self.criterion()?;
        let near = self.near();
        let mut keys = [&near[..], &self.keys].concat();
        keys.sort_unstable();
        keys.dedup();
        let blocks: Vec<Vec<f64>> = task
            .columns
            .rows
            .iter()
            .map(|row| {
                let factor = self.weight * row.weight.powi(2);
                let all = row
                    .channel
                    .unknowns
                    .iter()
                    .flat_map(|&i| row.channel.unknowns.iter().map(move |&j| (i, j)));
                all.map(|(i, j)| factor * value.slope[(i, j)]).collect()
            })
            .collect();
        let goal = Goal::Share(&blocks);
        let mut before = Evaluation::default();
        task.evaluate(&mut self.memory, &self.followed, Some(&self.here.states.q), &goal, &mut before)?;
        let (followed, near_q) = (&self.followed, &self.here.states.q);
        let parts: Vec<Slopes> = (0..3 * n)
            .into_par_iter()
            .map_init(
                || (LoopMemory::new(task.closed, &task.columns), Evaluation::default(), followed.clone()),
                |(memory, after, moved), part| {
                    let (j, order) = (part / 3, part % 3);
                    let step = STEP * task.unit(j, order);
                    moved.copy_from_slice(followed);
                    moved.iter_mut().skip(j).step_by(n).for_each(|x| x[order] += step);
                    task.evaluate(memory, moved, Some(near_q), &goal, after)?;
                    let share = after.share.iter().zip(&before.share).map(|(a, b)| (a - b) / step).collect();
                    let slope = |key: &usize| {
                        let (f, i) = (key / count, key % count);
                        (after.values[f][i] - before.values[f][i]) / step
                    };
                    Ok((share, keys.iter().map(slope).collect()))
                },
            )
            .collect::<Result<_>>()?;
        let by_part = |of: &dyn Fn(&Slopes) -> f64| -> Vec<[f64; 3]> {
            (0..n).map(|j| std::array::from_fn(|order| of(&parts[3 * j + order]))).collect()
        };
        let rows = keys.iter().enumerate().map(|(k, &key)| (key, by_part(&|part| part.1[k]))).collect();
        let mut gradient = vec![0.0; self.dimension()];
        let (plan, dof) = (&task.plan, task.closed.dof());
        for i in 0..count {
            let mut row = by_part(&|part| part.0[i]);
            for (slopes, [_, rate]) in row.iter_mut().zip(&task.places) {
                slopes[1] += 2.0 * value.energy_slope * self.here.states.v[i * dof + rate];
            }
            plan.pull_point(self.table, i, &row, &mut gradient);
        }
        self.keys = near;
        self.sensitivity = Some(Sensitivity { gradient, rows });
        Ok(())
    }

    /// Adds the gradient of a constraint times a factor; does nothing if it is not among those of the last linearizations.
    fn pull(&self, key: usize, factor: f64, gradient: &mut [f64]) {
        let Some(found) = self.sensitivity.as_ref() else { return };
        if let Ok(k) = found.rows.binary_search_by_key(&key, |(key, _)| *key) {
            let row: Vec<[f64; 3]> = found.rows[k].1.iter().map(|x| x.map(|x| x * factor)).collect();
            self.task.plan.pull_point(self.table, key % self.table.count, &row, gradient);
        }
    }
}

impl MotionSearch for LoopSearch<'_> {
    fn plan(&self) -> &Plan {
        &self.task.plan
    }

    fn limits(&mut self, x: &[f64]) -> Result<Vec<LimitValue>> {
        self.move_to(x)?;
        let one = |(&limit, values): (&LoopLimit, &Vec<f64>)| LimitValue {
            name: self.task.name(limit),
            value: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            is_distance: matches!(limit, LoopLimit::Collision(_)),
        };
        Ok(self.task.limits.iter().zip(&self.here.values).map(one).collect())
    }

    fn largest(&mut self, x: &[f64]) -> f64 {
        let values = |s: &Self| s.here.values.iter().flatten().copied().fold(f64::NEG_INFINITY, f64::max);
        self.move_to(x).map_or(f64::INFINITY, |()| values(self))
    }
}

impl Problem for LoopSearch<'_> {
    fn dimension(&self) -> usize {
        self.task.plan.dimension()
    }

    fn objective(&mut self, x: &[f64], gradient: Option<&mut [f64]>) -> f64 {
        // A failed evaluation has an infinite value; the search then takes a shorter step.
        let Ok(value) = self.move_to(x).and_then(|()| self.criterion()) else { return f64::INFINITY };
        if let Some(gradient) = gradient {
            gradient.fill(0.0);
            if value.value.is_finite() && self.differentiate().is_ok() {
                let found = self.sensitivity.iter().flat_map(|s| &s.gradient);
                gradient.iter_mut().zip(found).for_each(|(to, g)| *to = *g);
            }
        }
        value.value
    }

    fn violation(&mut self, x: &[f64]) -> f64 {
        self.largest(x)
    }

    fn restore(&mut self, x: &[f64]) -> Option<Vec<f64>> {
        restored(self, x)
    }

    fn constraints(&mut self, x: &[f64], _: f64, rows: &mut ConstraintRows) {
        if self.move_to(x).and_then(|()| self.differentiate()).is_err() {
            return;
        }
        let mut gradient = vec![0.0; self.dimension()];
        for key in self.near() {
            let (f, i) = (key / self.table.count, key % self.table.count);
            gradient.fill(0.0);
            self.pull(key, 1.0, &mut gradient);
            rows.push(key, self.here.values[f][i], gradient.iter().copied().enumerate());
        }
    }

    fn add_gradient(&mut self, x: &[f64], key: usize, factor: f64, gradient: &mut [f64]) {
        if self.move_to(x).and_then(|()| self.differentiate()).is_ok() {
            self.pull(key, factor, gradient);
        }
    }
}
