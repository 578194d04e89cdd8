//! Closed configurations for given independent coordinates.

use super::closed_mechanism::{ClosedMechanism, ClosedWorkspace};
use super::maps::multiply;
use crate::dynamics::expect_len;
use crate::{Error, Result};

/// Largest step of the continuation for any joint (rad, or loop lengths).
const LARGEST_STEP: f64 = 0.3;

/// Maximum number of steps of one motion: a distance of three thousand radians.
const MOST_STEPS: usize = 10_000;

/// Step length of the continuation at which the end of the motion is reached.
const SMALLEST_STEP: f64 = 1e-5;

impl ClosedMechanism<'_> {
    /// Returns the residual of the loops at `q` (rad, or relative to the length of the loop).
    pub fn residual(&self, workspace: &mut ClosedWorkspace, q: &[f64]) -> Result<f64> {
        expect_len("position vector", q.len(), self.mechanism().nq())?;
        Ok(self.constraints.residual(q, &mut workspace.residual))
    }

    /// Closes the loops to the rounding error: moves the dependent coordinates of `q`, which must be close to the
    /// solution, and holds the independent ones. Returns the remaining residual.
    pub fn close(&self, workspace: &mut ClosedWorkspace, q: &mut [f64]) -> Result<f64> {
        expect_len("position vector", q.len(), self.mechanism().nq())?;
        self.correct(workspace, q).map(|(residual, _)| residual)
    }

    /// Runs Gauss–Newton on the dependent coordinates; returns the remaining residual and the largest displacement.
    fn correct(&self, workspace: &mut ClosedWorkspace, q: &mut [f64]) -> Result<(f64, f64)> {
        let ws = workspace;
        let mut size = self.constraints.residual(q, &mut ws.residual);
        let mut moved = 0.0;
        if self.dependent.is_empty() {
            return Ok((size, moved));
        }
        for _ in 0..30 {
            if size == 0.0 {
                break;
            }
            self.factorize(ws, q)?;
            for (b, c) in ws.right_side.as_mut_slice().iter_mut().zip(&ws.residual) {
                *b = -c;
            }
            ws.qr.least_squares_in_place(&mut ws.right_side)?;
            let largest = ws.right_side.rows(0, self.dependent.len()).amax();
            let shrink = (0.5 / largest).min(1.0);
            ws.step.fill(0.0);
            for (i, &k) in self.dependent.iter().enumerate() {
                ws.step[k] = shrink * self.constraints.scale[k] * ws.right_side[i];
            }
            ws.trial.copy_from_slice(q);
            self.mechanism().integrate(&mut ws.trial, &ws.step);
            let now = self.constraints.residual(&ws.trial, &mut ws.residual);
            // Within the gap, stop when the residual no longer decreases because of rounding (or contradicting
            // geometry).
            if now >= size && (size <= self.gap || largest > 0.5) {
                break;
            }
            moved += shrink * largest;
            q.copy_from_slice(&ws.trial);
            let stalled = now > 0.5 * size && size <= self.gap;
            size = now;
            if stalled || !size.is_finite() {
                break;
            }
        }
        if size <= self.gap {
            Ok((size, moved))
        } else {
            Err(self.open(q, "it does not close at these independent coordinates"))
        }
    }

    fn open(&self, q: &[f64], message: &str) -> Error {
        match self.constraints.widest(q) {
            Some((l, residual)) => {
                Error::Closure { name: l.joint.name.clone(), residual, message: message.into() }
            }
            None => Error::Infeasible(message.into()),
        }
    }

    /// Moves `q`, which closes the loops, until its [independent positions](Self::independent_positions) are `target`,
    /// in steps that stay on the branch. Returns the remaining residual.
    pub fn move_to(&self, workspace: &mut ClosedWorkspace, q: &mut [f64], target: &[f64]) -> Result<f64> {
        expect_len("position vector", q.len(), self.mechanism().nq())?;
        expect_len("independent position vector", target.len(), self.independent_positions.len())?;
        if !target.iter().all(|x| x.is_finite()) {
            return Err(Error::NotFinite("an independent position is not a finite number".into()));
        }
        if self.dependent.is_empty() {
            self.set_independent(q, target);
            return Ok(0.0);
        }
        // Moved out while the workspace is in use, and always put back.
        let mut path = std::mem::take(&mut workspace.path);
        let done = self.continue_to(workspace, &mut path, q, target);
        workspace.path = path;
        done
    }

    fn continue_to(
        &self,
        workspace: &mut ClosedWorkspace,
        [at, trial]: &mut [Vec<f64>; 2],
        q: &mut [f64],
        target: &[f64],
    ) -> Result<f64> {
        let mut limit = LARGEST_STEP;
        at.copy_from_slice(q);
        for _ in 0..MOST_STEPS {
            workspace.steps += 1;
            self.difference(workspace, at, target);
            self.velocity_map(workspace, at)?;
            multiply(&workspace.map, &workspace.difference, &mut workspace.step);
            let distance = workspace
                .step
                .iter()
                .zip(&self.constraints.scale)
                .map(|(v, s)| (v / s).abs())
                .fold(0.0, f64::max);
            let fraction = if distance > limit { limit / distance } else { 1.0 };
            workspace.step.iter_mut().for_each(|v| *v *= fraction);
            trial.copy_from_slice(at);
            self.mechanism().integrate(trial, &workspace.step);
            if fraction == 1.0 {
                self.set_independent(trial, target);
            }
            match self.correct(workspace, trial) {
                // A correction as large as the step itself may have changed the branch.
                Ok((residual, moved)) if moved <= 0.25 * fraction * distance + 1e-6 => {
                    at.copy_from_slice(trial);
                    if fraction == 1.0 {
                        q.copy_from_slice(at);
                        return Ok(residual);
                    }
                    limit = (2.0 * limit).min(LARGEST_STEP);
                }
                _ => {
                    limit = 0.5 * limit.min(distance);
                    if limit < SMALLEST_STEP {
                        return Err(self.end_of_motion(workspace, at, target));
                    }
                }
            }
        }
        Err(Error::Infeasible(format!(
            "the independent coordinates are too far away: the loops could not be closed within {MOST_STEPS} \
             steps"
        )))
    }

    /// Returns the error about a branch that ends before `target`, with the loop that does not close there.
    fn end_of_motion(&self, workspace: &mut ClosedWorkspace, q: &[f64], target: &[f64]) -> Error {
        let mut beyond = q.to_vec();
        self.set_independent(&mut beyond, target);
        // Best approximation at that point; convergence is not required.
        let _ = self.correct(workspace, &mut beyond);
        self.open(&beyond, "the mechanism cannot reach these independent coordinates")
    }

    fn set_independent(&self, q: &mut [f64], target: &[f64]) {
        for (&k, &x) in self.independent_positions.iter().zip(target) {
            q[k] = x;
        }
    }

    /// Writes the velocity of the independent coordinates that moves `q` to `target` in unit time.
    fn difference(&self, workspace: &mut ClosedWorkspace, q: &[f64], target: &[f64]) {
        let to = &mut workspace.trial;
        to.copy_from_slice(q);
        self.set_independent(to, target);
        let all = &mut workspace.step;
        for joint in self.mechanism().joints().iter().filter(|j| j.follows.is_none()) {
            let (q_range, v_range) = (joint.q_range(), joint.v_range());
            joint.joint_type.difference(&q[q_range.clone()], &to[q_range], &mut all[v_range]);
        }
        for (d, &k) in workspace.difference.iter_mut().zip(&self.independent) {
            *d = all[k];
        }
    }
}
