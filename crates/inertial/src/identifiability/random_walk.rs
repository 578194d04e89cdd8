//! Random walk on the closed configurations of a mechanism, in floating point.

use nalgebra::DVector;

use crate::dynamics::{ClosedMechanism, ClosedWorkspace};
use crate::linalg::{Number, SplitMix};
use crate::{Error, Result};

/// Maximum displacement of a joint from one configuration to the next (rad, or relative to the size of the mechanism).
const LONGEST_STEP: f64 = 0.2;

/// Maximum change of the direction of motion in one step. With a larger change the step may have passed through a
/// singular configuration to another motion that intersects there.
const SHARPEST_TURN: f64 = 0.5;

/// Random walk on the closed configurations, in floating point.
pub(super) struct Walk<'a, 'm> {
    closed: &'a ClosedMechanism<'m>,
    workspace: ClosedWorkspace,
    source: SplitMix,
    pub q: Vec<f64>,
    rates: Vec<f64>,
    v: Vec<f64>,
    /// Unit of each coordinate: 1 rad, or the size of the mechanism.
    scale: Vec<f64>,
}

impl<'a, 'm> Walk<'a, 'm> {
    pub fn new(closed: &'a ClosedMechanism<'m>, size: f64, seed: u64) -> Self {
        let mut scale = vec![1.0; closed.mechanism().nv()];
        for body in closed.mechanism().bodies() {
            for (k, mode) in body.v_range().zip(&*body.joint_type.free_modes()) {
                if mode.angular.norm_squared() == 0.0 {
                    scale[k] = size;
                }
            }
        }
        let mut walk = Self {
            closed,
            workspace: closed.workspace(),
            source: SplitMix::new(seed),
            q: closed.assembled().to_vec(),
            rates: vec![0.0; closed.dof()],
            v: vec![0.0; closed.mechanism().nv()],
            scale,
        };
        walk.turn();
        walk
    }

    /// Performs one step, usually straight on; chooses another direction if the loops do not close.
    pub fn step(&mut self) -> Result<()> {
        if self.source.next_u64().is_multiple_of(4) {
            self.turn();
        }
        // Shorter and shorter steps lead away from a dead end; if none succeeds, the walk fails.
        for trial in 0..40 {
            let length = LONGEST_STEP / f64::from(1 + trial / 2);
            if self.try_step(length)? {
                return Ok(());
            }
            self.turn();
        }
        Err(Error::Numeric("no closed configuration was found near the assembled one".into()))
    }

    /// Tries a step in which no joint moves farther than `length`; returns whether it succeeded.
    fn try_step(&mut self, length: f64) -> Result<bool> {
        self.closed.velocities(&mut self.workspace, &self.q, &self.rates, &mut self.v)?;
        let fastest = self.v.iter().zip(&self.scale).fold(1.0f64, |m, (v, s)| m.max((v / s).abs()));
        let step: Vec<f64> = self.v.iter().map(|v| length * v / fastest).collect();
        let mut trial = self.q.clone();
        self.closed.mechanism().integrate(&mut trial, &step);
        let predicted = trial.clone();
        // A correction as large as the step itself may have changed the branch.
        let stays = |q: &[f64]| {
            let off = q.iter().zip(&predicted).map(|(x, p)| (x - p).abs());
            off.fold(0.0, f64::max) <= 0.5 * length * self.scale.iter().copied().fold(1.0, f64::max)
        };
        let mut onward = vec![0.0; self.v.len()];
        let closes = self.closed.close(&mut self.workspace, &mut trial).is_ok()
            && stays(&trial)
            && self.closed.velocities(&mut self.workspace, &trial, &self.rates, &mut onward).is_ok()
            && self.turned(&onward) <= SHARPEST_TURN;
        if closes {
            self.q = trial;
        }
        Ok(closes)
    }

    /// Returns the change of the direction of all joints, for the same direction of the independent ones.
    fn turned(&self, onward: &[f64]) -> f64 {
        let unit = |v: &[f64]| {
            let v = DVector::from_iterator(v.len(), v.iter().zip(&self.scale).map(|(v, s)| v / s));
            v.normalize()
        };
        (unit(&self.v) - unit(onward)).norm()
    }

    /// Chooses another random direction, in which joints of all kinds move by comparable parts of their scales.
    fn turn(&mut self) {
        for (rate, &v) in self.rates.iter_mut().zip(self.closed.independent()) {
            *rate = f64::random(&mut self.source) * self.scale[v];
        }
    }
}
