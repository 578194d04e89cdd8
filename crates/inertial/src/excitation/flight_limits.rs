//! Limits of a free flight: forces of joints and wheels, and clearance.
//!
//! For zero total momentum, an instant does not depend on the past: the twist of the base follows from the momentum, its
//! acceleration from the absence of external forces, and both yield the forces. All quantities are in the frame of the base,
//! including obstacles.

use nalgebra::Vector6;
use rayon::prelude::{IntoParallelIterator, ParallelIterator};

use super::clearance::{CollisionModel, add_contact};
use super::flight::{MovableCoordinate, PART};
use super::free_flight::MomentumState;
use super::limits::{METRES, Usage};
use super::trajectory::Trajectory;
use crate::Result;
use crate::dynamics::{InverseDynamics, Scratch, Workspace, body_accelerations, forward_kinematics};
use crate::mechanism::{JointDynamics, Mechanism};

/// Step of the finite differences of forces, which are smooth in positions (rad, m), rates and accelerations. The error is about
/// 1e-10.
const STEP: f64 = 1e-5;

/// Limited quantity.
#[derive(Debug, Clone, Copy)]
enum Limit {
    /// Force of a velocity coordinate, with its upper limit.
    Joint(usize, f64),
    /// Torque of the motor of a wheel.
    Wheel(usize, f64),
    /// Distance constraint.
    Collision(usize),
}

/// Limits of a free-flying robot.
#[derive(Debug)]
pub(super) struct FlightLimits {
    /// Mechanism without gravity, because the robot is in free fall.
    mechanism: Mechanism,
    dynamics: InverseDynamics,
    moved: Vec<MovableCoordinate>,
    collisions: CollisionModel,
    limits: Vec<Limit>,
    /// Friction of the joint of each velocity coordinate.
    joints: Vec<JointDynamics>,
}

impl FlightLimits {
    /// Creates the limits from the efforts of the robot description with a margin, and from the obstacles.
    pub fn new(
        mechanism: &Mechanism,
        moved: &[MovableCoordinate],
        collisions: &CollisionModel,
        margin: f64,
    ) -> Self {
        let mechanism = mechanism.clone().with_gravity(nalgebra::Vector3::zeros());
        let mut limits = Vec::new();
        let mut wheel = 0;
        for moved in moved {
            let effort = moved.limits.given_effort().map(|e| e * (1.0 - margin));
            if let Some((_, v)) = moved.joint {
                limits.extend(effort.map(|e| Limit::Joint(v, e)));
            } else {
                limits.extend(effort.map(|e| Limit::Wheel(wheel, e)));
                wheel += 1;
            }
        }
        limits.extend((0..collisions.len()).map(Limit::Collision));
        let joint = |v: usize| {
            let own = |j: &&crate::mechanism::Joint| j.follows.is_none() && j.v_range().contains(&v);
            mechanism.joints().iter().find(own).map(|j| j.dynamics).unwrap_or_default()
        };
        let joints = (0..mechanism.nv()).map(joint).collect();
        let dynamics = InverseDynamics::new(&mechanism);
        Self { dynamics, moved: moved.to_vec(), collisions: collisions.clone(), limits, joints, mechanism }
    }

    /// Returns the number of limits.
    pub fn len(&self) -> usize {
        self.limits.len()
    }

    pub fn is_empty(&self) -> bool {
        self.limits.is_empty()
    }

    /// Returns the description of a limit.
    pub fn name(&self, index: usize) -> String {
        match self.limits[index] {
            Limit::Joint(v, _) => format!("the torque of {}", self.mechanism.velocity_names()[v]),
            Limit::Wheel(k, _) => format!("the torque of {}", self.mechanism.wheels()[k].name),
            Limit::Collision(index) => self.collisions.name(index),
        }
    }

    /// Returns the largest used fraction of each limit, from the smallest margins of a trajectory.
    pub fn usage(&self, least: &[f64]) -> impl Iterator<Item = Usage> {
        least.iter().enumerate().map(|(i, left)| match self.limits[i] {
            Limit::Collision(_) => Usage::distance(self.name(i), left * METRES),
            _ => Usage::part(self.name(i), 1.0 - left),
        })
    }

    /// Returns the smallest margin of a trajectory to each limit, relative to the limit (to [`METRES`] for distances), at a rate
    /// (Hz).
    pub fn least(&self, trajectory: &Trajectory, rate: f64) -> Result<Vec<f64>> {
        if self.is_empty() {
            return Ok(Vec::new());
        }
        let (count, n) = (trajectory.samples(rate)?, self.moved.len());
        let parts = (0..count.div_ceil(PART)).into_par_iter().map(|part| {
            let mut memory = Memory::new(self)?;
            let mut least = vec![f64::INFINITY; self.len()];
            let mut left = vec![0.0; self.len()];
            let (mut x, mut dx, mut ddx) = (vec![0.0; n], vec![0.0; n], vec![0.0; n]);
            let mut row = vec![[0.0; 3]; n];
            for i in part * PART..count.min((part + 1) * PART) {
                trajectory.evaluate(i as f64 / rate, &mut x, &mut dx, &mut ddx);
                for (j, row) in row.iter_mut().enumerate() {
                    *row = [x[j], dx[j], ddx[j]];
                }
                memory.left(&row, &mut left)?;
                least.iter_mut().zip(&left).for_each(|(l, x)| *l = l.min(*x));
            }
            Ok(least)
        });
        let parts = parts.collect::<Result<Vec<_>>>()?;
        Ok(parts.into_iter().fold(vec![f64::INFINITY; self.len()], |mut all, part| {
            all.iter_mut().zip(part).for_each(|(a, x)| *a = a.min(x));
            all
        }))
    }
}

/// Computes the forces of a free flight with zero total momentum along a trajectory of joints and wheels, sampled at a rate (Hz):
/// those of the velocity coordinates (zero for the base), then those of the wheel motors, sample after sample. Friction is that of
/// the robot description.
pub fn flight_forces(mechanism: &Mechanism, trajectory: &Trajectory, rate: f64) -> Result<Vec<f64>> {
    let all = super::flight::moved(mechanism);
    let names = trajectory.joints();
    let places: Vec<Option<usize>> =
        all.iter().map(|m| names.iter().position(|name| *name == m.name)).collect();
    let limits = FlightLimits::new(mechanism, &all, &CollisionModel::default(), 0.0);
    let mut memory = Memory::new(&limits)?;
    let n = names.len();
    let (mut x, mut dx, mut ddx) = (vec![0.0; n], vec![0.0; n], vec![0.0; n]);
    let mut row: Vec<[f64; 3]> =
        all.iter().map(|m| [m.joint.map_or(0.0, |(q, _)| mechanism.assembly()[q]), 0.0, 0.0]).collect();
    let mut out = Vec::new();
    for i in 0..trajectory.samples(rate)? {
        trajectory.evaluate(i as f64 / rate, &mut x, &mut dx, &mut ddx);
        for (row, place) in row.iter_mut().zip(&places) {
            if let Some(k) = *place {
                *row = [x[k], dx[k], ddx[k]];
            }
        }
        memory.forces(&row)?;
        let sliding = |v: usize| limits.joints[v].friction * sign(memory.v[v]);
        out.extend(memory.tau.iter().enumerate().map(|(v, tau)| tau + sliding(v)));
        out.extend_from_slice(&memory.motors);
    }
    Ok(out)
}

fn sign(v: f64) -> f64 {
    if v == 0.0 { 0.0 } else { v.signum() }
}

/// Memory of one thread.
pub(super) struct Memory<'l> {
    limits: &'l FlightLimits,
    instant: MomentumState<'l>,
    scratch: Scratch,
    workspace: Workspace,
    q: Vec<f64>,
    v: Vec<f64>,
    a: Vec<f64>,
    /// Rates and accelerations of the wheels.
    rates: Vec<f64>,
    accelerations: Vec<f64>,
    /// Forces without Coulomb friction, whose derivatives are zero.
    tau: Vec<f64>,
    motors: Vec<f64>,
}

impl<'l> Memory<'l> {
    pub fn new(limits: &'l FlightLimits) -> Result<Self> {
        let mechanism = &limits.mechanism;
        let (nv, wheels) = (mechanism.nv(), mechanism.wheels().len());
        // Joints that the motion does not name stay in the assembled configuration; the base is at the origin of its own frame.
        let mut q = mechanism.neutral();
        q[7..].copy_from_slice(&mechanism.assembly()[7..]);
        Ok(Self {
            limits,
            instant: MomentumState::new(mechanism, &[])?,
            scratch: limits.dynamics.scratch(),
            workspace: Workspace::new(mechanism),
            q,
            v: vec![0.0; nv],
            a: vec![0.0; nv],
            rates: vec![0.0; wheels],
            accelerations: vec![0.0; wheels],
            tau: vec![0.0; nv],
            motors: vec![0.0; wheels],
        })
    }

    /// Computes the margin of each limit at given positions, rates and accelerations; negative values are violations.
    pub fn left(&mut self, row: &[[f64; 3]], out: &mut [f64]) -> Result<()> {
        let limits = self.limits;
        if limits.limits.iter().any(|l| !matches!(l, Limit::Collision(_))) {
            self.forces(row)?;
        } else {
            self.place(row);
            forward_kinematics(&limits.mechanism, &mut self.workspace, &self.q)?;
        }
        for (limit, left) in limits.limits.iter().zip(out) {
            *left = match *limit {
                Limit::Joint(v, effort) => 1.0 - self.exerted(v).abs() / effort,
                Limit::Wheel(k, effort) => 1.0 - self.motors[k].abs() / effort,
                Limit::Collision(index) => -limits.collisions.value(index, self.workspace.poses()).0 / METRES,
            };
        }
        Ok(())
    }

    /// Adds the gradient of `Σ weightᵢ leftᵢ` with respect to the positions, rates and accelerations of the coordinates.
    /// [`Self::left`] must have been called with the same `row`.
    pub fn pull(&mut self, row: &[[f64; 3]], weights: &[f64], out: &mut [[f64; 3]]) -> Result<()> {
        let limits = self.limits;
        let used = |i: &usize| weights[*i] != 0.0;
        let mut along = vec![0.0; limits.mechanism.nv()];
        let (mut joints, mut motors) = (vec![0.0; limits.mechanism.nv()], vec![0.0; self.motors.len()]);
        let mut forces = false;
        for i in (0..limits.len()).filter(used) {
            match limits.limits[i] {
                Limit::Collision(index) => {
                    let poses = self.workspace.poses();
                    for contact in limits.collisions.value(index, poses).1.iter().flatten() {
                        add_contact(&limits.mechanism, poses, contact, -weights[i] / METRES, &mut along);
                    }
                }
                Limit::Joint(v, effort) => {
                    joints[v] = -weights[i] * self.exerted(v).signum() / effort;
                    forces = true;
                }
                Limit::Wheel(k, effort) => {
                    motors[k] = -weights[i] * self.motors[k].signum() / effort;
                    forces = true;
                }
            }
        }
        for (moved, out) in limits.moved.iter().zip(&mut *out) {
            if let Some((_, v)) = moved.joint {
                out[0] += along[v];
            }
        }
        if !forces {
            return Ok(());
        }
        let mut near = row.to_vec();
        for (j, moved) in limits.moved.iter().enumerate() {
            // The position of a wheel has no effect.
            for d in usize::from(moved.joint.is_none())..3 {
                let mut at = |step: f64| -> Result<f64> {
                    near[j][d] = row[j][d] + step;
                    self.forces(&near)?;
                    near[j][d] = row[j][d];
                    let sum = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
                    Ok(sum(&joints, &self.tau) + sum(&motors, &self.motors))
                };
                out[j][d] += (at(STEP)? - at(-STEP)?) / (2.0 * STEP);
            }
        }
        Ok(())
    }

    /// Returns the force of a coordinate, including Coulomb friction.
    fn exerted(&self, v: usize) -> f64 {
        self.tau[v] + self.limits.joints[v].friction * sign(self.v[v])
    }

    fn place(&mut self, row: &[[f64; 3]]) {
        let mut wheel = 0;
        for (moved, x) in self.limits.moved.iter().zip(row) {
            if let Some((q, v)) = moved.joint {
                (self.q[q], self.v[v], self.a[v]) = (x[0], x[1], x[2]);
            } else {
                (self.rates[wheel], self.accelerations[wheel]) = (x[1], x[2]);
                wheel += 1;
            }
        }
    }

    /// Computes the forces of joints and wheels, including the reaction of the base.
    fn forces(&mut self, row: &[[f64; 3]]) -> Result<()> {
        self.place(row);
        self.instant.set(&self.q, &self.v, &self.rates)?;
        let twist = self.instant.base_twist();
        self.v[..3].copy_from_slice(twist.linear.as_slice());
        self.v[3..6].copy_from_slice(twist.angular.as_slice());
        self.a[..6].fill(0.0);
        self.exert()?;
        // Force needed to keep the base from accelerating. As there is no such force, the base accelerates accordingly.
        let t = &self.tau;
        let answer = self.instant.inverse_inertia() * Vector6::new(t[3], t[4], t[5], t[0], t[1], t[2]);
        for k in 0..3 {
            (self.a[k], self.a[3 + k]) = (-answer[3 + k], -answer[k]);
        }
        self.exert()?;
        for ((tau, joint), v) in self.tau.iter_mut().zip(&self.limits.joints).zip(&self.v) {
            *tau += joint.damping * v;
        }
        Ok(())
    }

    /// Computes the forces for the current rates and accelerations.
    fn exert(&mut self) -> Result<()> {
        let mechanism = &self.limits.mechanism;
        let (q, v, a) = (&self.q, &self.v, &self.a);
        self.limits.dynamics.rnea(&mut self.scratch, q, v, a, &mut self.tau)?;
        body_accelerations(mechanism, &mut self.workspace, q, v, a)?;
        let poses = self.workspace.poses();
        for (k, wheel) in mechanism.wheels().iter().enumerate() {
            let turning = self.workspace.velocities()[wheel.body].angular;
            let spun = self.workspace.accelerations()[wheel.body].angular;
            self.motors[k] = wheel.inertia * (self.accelerations[k] + wheel.axis.dot(&spun));
            // The carrier supplies the change of the angular momentum of the wheel: d(h u)/dt = h' u + ω × h u.
            let couple = (wheel.axis * self.accelerations[k] + turning.cross(&wheel.axis) * self.rates[k])
                * wheel.inertia;
            let couple = poses[wheel.body].rotation * couple;
            let mut body = Some(wheel.body);
            while let Some(b) = body {
                let own = &mechanism.bodies()[b];
                for (m, mode) in own.joint_type.free_modes().iter().enumerate() {
                    let motion = poses[b].push_motion(mode) * own.drive.ratio;
                    self.tau[own.drive.v + m] += motion.angular.dot(&couple);
                }
                body = own.parent;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::{Number, SplitMix};
    use crate::mechanism::BuildOptions;

    /// Compares the gradient of the margins with finite differences of another step.
    #[test]
    fn the_gradient_of_the_margins_agrees_with_differences() {
        let mut builder = crate::mechanism::builtin::get("space-dual-arm").unwrap();
        builder.joints.iter_mut().for_each(|j| {
            j.limits.effort = 10.0;
            j.dynamics.damping = 2.0;
        });
        builder.wheels.iter_mut().for_each(|w| w.limits.effort = 50.0);
        // One wheel on an arm, whose couple acts on the joints.
        builder.wheels[1].carrier = "L5".into();
        let robot = builder.build(&BuildOptions::default()).unwrap();
        let capsules = CollisionModel::along_links(&robot, 0.1);
        let collisions = CollisionModel {
            pairs: CollisionModel::candidate_pairs(&robot, &capsules),
            capsules,
            workspace: Some([nalgebra::Vector3::repeat(-3.0), nalgebra::Vector3::repeat(3.0)]),
            ..CollisionModel::default()
        };
        let limits = FlightLimits::new(&robot, &super::super::flight::moved(&robot), &collisions, 0.1);
        assert_eq!(limits.len(), 6 + 3 + collisions.len());
        let mut memory = Memory::new(&limits).unwrap();
        let mut random = SplitMix::new(4);
        let mut next = || f64::random(&mut random);
        for _ in 0..5 {
            let row: Vec<[f64; 3]> = (0..9).map(|_| [next(), next(), next()]).collect();
            let weights: Vec<f64> = (0..limits.len()).map(|_| next()).collect();
            let mut left = vec![0.0; limits.len()];
            let (mut found, mut near) = (vec![[0.0; 3]; 9], row.clone());
            memory.left(&row, &mut left).unwrap();
            memory.pull(&row, &weights, &mut found).unwrap();
            for j in 0..9 {
                for d in 0..3 {
                    let mut at = |step: f64| {
                        near[j][d] = row[j][d] + step;
                        memory.left(&near, &mut left).unwrap();
                        near[j][d] = row[j][d];
                        left.iter().zip(&weights).map(|(l, w)| l * w).sum::<f64>()
                    };
                    let slope = (at(1e-4) - at(-1e-4)) / 2e-4;
                    // Rounding error of differences of numbers of order ten, and their third derivatives.
                    assert!((slope - found[j][d]).abs() < 1e-5, "{j} {d}: {slope} {}", found[j][d]);
                }
            }
        }
    }
}
