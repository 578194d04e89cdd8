//! Random states of a mechanism.

use super::motion::Target;
use super::plan::Coordinate;
use super::states::States;
use crate::dynamics::InverseDynamics;
use crate::linalg::{Number, SplitMix};
use crate::mechanism::Mechanism;

/// Draws random states, within the limits of the coordinates if these are given.
pub(super) fn random_states(
    mechanism: &Mechanism,
    count: usize,
    coordinates: Option<&[Coordinate]>,
    seed: u64,
) -> States {
    let dynamics = InverseDynamics::new(mechanism);
    let mut states = States::new(&dynamics, count);
    let mut random = SplitMix::new(seed);
    let mut next = || f64::random(&mut random);
    let (nq, nv) = (mechanism.nq(), mechanism.nv());
    match coordinates {
        None => {
            for i in 0..count {
                let mut q = mechanism.neutral();
                let step: Vec<f64> = (0..nv).map(|_| 3.0 * next()).collect();
                mechanism.integrate(&mut q, &step);
                states.q[i * nq..(i + 1) * nq].copy_from_slice(&q);
                states.v[i * nv..(i + 1) * nv].fill_with(|| 3.0 * next());
                states.a[i * nv..(i + 1) * nv].fill_with(|| 10.0 * next());
            }
        }
        Some(coordinates) => {
            let targets = coordinates.iter().filter_map(|c| super::motion::target(mechanism, &c.name).ok());
            let targets: Vec<Target> = targets.collect();
            let at_most = |x: f64, other: f64| if x.is_finite() { x } else { other };
            for i in 0..count {
                let mut base = [[0.0; 6]; 3];
                let q = &mut states.q[i * nq..(i + 1) * nq];
                q.copy_from_slice(mechanism.assembly());
                for (c, target) in coordinates.iter().zip(&targets) {
                    let x = [
                        (c.middle() + c.reach() * next()).clamp(c.lower, c.upper),
                        at_most(c.velocity, 3.0) * next(),
                        at_most(c.acceleration, 10.0) * next(),
                    ];
                    match *target {
                        Target::Joint { q: iq, v } => {
                            (q[iq], states.v[i * nv + v], states.a[i * nv + v]) = (x[0], x[1], x[2]);
                        }
                        Target::Base(k) => (0..3).for_each(|d| base[d][k] = x[d]),
                    }
                }
                if targets.iter().any(|t| matches!(t, Target::Base(_))) {
                    let (pose, twist, acceleration) = super::motion::base_state(&base);
                    q[..7].copy_from_slice(&pose);
                    states.v[i * nv..i * nv + 6].copy_from_slice(&twist);
                    states.a[i * nv..i * nv + 6].copy_from_slice(&acceleration);
                }
            }
        }
    }
    states
}
