//! Passive joint forces: friction, damping and springs.

use crate::mechanism::{JointType, Mechanism};
use crate::{Error, Place, Result};

/// Speed (rad/s or m/s) at which Coulomb friction reaches three quarters of its force in forward simulation: `tanh(v/c)` replaces
/// the sign of the velocity, which cannot be integrated through zero.
const CREEP: f64 = 0.01;

/// Passive forces of the joints of a mechanism, by velocity coordinate.
#[derive(Debug, Clone)]
pub struct JointForces {
    viscous: Vec<f64>,
    coulomb: Vec<f64>,
    springs: Vec<Spring>,
}

/// Spring force `stiffness · (ratio q + offset)` at one coordinate.
#[derive(Debug, Clone, Copy)]
struct Spring {
    q: usize,
    v: usize,
    stiffness: f64,
    ratio: f64,
    offset: f64,
}

/// Coulomb friction model near standstill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standstill {
    /// Sign of the velocity (zero at zero).
    Sign,
    /// Smooth transition, so that the motion can be integrated.
    Smooth,
}

impl JointForces {
    /// Creates zero forces.
    pub fn none(mechanism: &Mechanism) -> Self {
        let zeros = vec![0.0; mechanism.nv()];
        Self { viscous: zeros.clone(), coulomb: zeros, springs: Vec::new() }
    }

    /// Creates the forces of the model; those of a following joint act on the coordinate of its leader.
    pub fn of(mechanism: &Mechanism) -> Result<Self> {
        let mut out = Self::none(mechanism);
        for (index, joint) in mechanism.joints().iter().enumerate() {
            let drive = mechanism.bodies()[joint.body].drive;
            let d = &joint.dynamics;
            let acts = [d.damping, d.friction, d.stiffness].iter().any(|x| *x != 0.0);
            if joint.follows.is_some() && acts && mechanism.joint_bodies(index).len() > 1 {
                let place = Place::element(format!("joint \"{}\"", joint.name));
                return Err(Error::unsupported(
                    place,
                    "friction, damping or a spring of a joint that follows several",
                ));
            }
            for v in joint.v_range() {
                out.viscous[v] += d.damping * drive.ratio * drive.ratio;
                out.coulomb[v] += d.friction * drive.ratio.abs();
            }
            if d.stiffness == 0.0 {
                continue;
            }
            let simple = matches!(
                joint.joint_type,
                JointType::Revolute { .. } | JointType::Prismatic { .. } | JointType::Helical { .. }
            );
            if !simple {
                let place = Place::element(format!("joint \"{}\"", joint.name));
                return Err(Error::unsupported(place, "the spring of a joint with several axes"));
            }
            out.springs.push(Spring {
                q: joint.q,
                v: joint.v,
                stiffness: d.stiffness * drive.ratio,
                ratio: drive.ratio,
                offset: drive.offset - d.rest,
            });
        }
        Ok(out)
    }

    /// Returns whether there are no forces.
    pub fn is_empty(&self) -> bool {
        self.springs.is_empty() && self.viscous.iter().chain(&self.coulomb).all(|x| *x == 0.0)
    }

    /// Adds the actuator forces that compensate the passive forces to `tau`, at `q` and `v` of the tree.
    pub fn add(&self, q: &[f64], v: &[f64], standstill: Standstill, tau: &mut [f64]) {
        let coefficients = self.viscous.iter().zip(&self.coulomb);
        for ((tau, v), (viscous, coulomb)) in tau.iter_mut().zip(v).zip(coefficients) {
            let sign = match standstill {
                Standstill::Smooth => (v / CREEP).tanh(),
                Standstill::Sign if *v == 0.0 => 0.0,
                Standstill::Sign => v.signum(),
            };
            *tau += viscous * v + coulomb * sign;
        }
        for s in &self.springs {
            tau[s.v] += s.stiffness * (s.ratio * q[s.q] + s.offset);
        }
    }
}
