//! Simulated free flights and prediction errors of models (paper 002, section VI).

use nalgebra::{Matrix6, Vector6};

use super::FreeFlyer;
use crate::dynamics::{InverseDynamics, MomentumSamples, Workspace, mass_matrix};
use crate::excitation::Trajectory;
use crate::mechanism::Mechanism;
use crate::{Error, Result};

/// Target of a coordinate of a trajectory.
#[derive(Debug, Clone, Copy)]
enum Target {
    Joint { q: usize, v: usize },
    Wheel(usize),
}

/// True values of a free flight with zero total momentum, sample after sample. The base stays neutral, because its pose does not
/// matter.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct FlightSamples {
    /// Times (s).
    pub t: Vec<f64>,
    /// Positions, `nq` per sample.
    pub q: Vec<f64>,
    /// Rates, `nv` per sample.
    pub v: Vec<f64>,
    /// Accelerations of the joints, `nv` per sample; zero for the base.
    pub a: Vec<f64>,
    /// Momentum of the robot without its wheels, six per sample.
    pub momentum: Vec<f64>,
}

impl FlightSamples {
    /// Simulates a trajectory of joints and wheels, sampled at a rate (Hz).
    pub fn new(mechanism: &Mechanism, trajectory: &Trajectory, rate: f64) -> Result<Self> {
        let targets =
            trajectory.joints().iter().map(|name| target(mechanism, name)).collect::<Result<Vec<_>>>()?;
        let (n, count) = (targets.len(), trajectory.samples(rate)?);
        let (mut x, mut dx, mut ddx) = (vec![0.0; n], vec![0.0; n], vec![0.0; n]);
        let (mut q, mut v) = (mechanism.assembly().to_vec(), vec![0.0; mechanism.nv()]);
        let (mut a, mut wheels) = (v.clone(), vec![0.0; mechanism.wheels().len()]);
        let mut flyer = FreeFlyer::new(mechanism)?;
        let mut out =
            Self { t: Vec::new(), q: Vec::new(), v: Vec::new(), a: Vec::new(), momentum: Vec::new() };
        for i in 0..count {
            let t = i as f64 / rate;
            trajectory.evaluate(t, &mut x, &mut dx, &mut ddx);
            for (k, target) in targets.iter().enumerate() {
                match *target {
                    Target::Joint { q: iq, v: iv } => (q[iq], v[iv], a[iv]) = (x[k], dx[k], ddx[k]),
                    Target::Wheel(w) => wheels[w] = dx[k],
                }
            }
            let momentum = flyer.respond(&q, &mut v, &wheels)?;
            out.t.push(t);
            out.q.extend_from_slice(&q);
            out.v.extend_from_slice(&v);
            out.a.extend_from_slice(&a);
            out.momentum.extend(momentum.linear.iter().chain(&momentum.angular));
        }
        Ok(out)
    }

    /// Returns the number of samples.
    pub fn len(&self) -> usize {
        self.t.len()
    }

    /// Returns whether there are no samples.
    pub fn is_empty(&self) -> bool {
        self.t.is_empty()
    }

    /// Returns the samples for an estimate, with the given positions and rates instead of the true ones.
    pub fn samples<'a>(&'a self, q: &'a [f64], v: &'a [f64]) -> MomentumSamples<'a> {
        MomentumSamples { q, v, momentum: &self.momentum }
    }

    /// Computes the forces of the joints during the flight, `nv` per sample. The base accelerates so that its external wrench is
    /// zero. Wheel rates are assumed constant.
    pub fn forces(&self, mechanism: &Mechanism) -> Result<Vec<f64>> {
        let (nq, nv) = (mechanism.nq(), mechanism.nv());
        let dynamics = InverseDynamics::new(mechanism);
        let (mut scratch, mut workspace) = (dynamics.scratch(), Workspace::new(mechanism));
        let (mut mass, mut tau, mut a) = (vec![0.0; nv * nv], vec![0.0; nv], vec![0.0; nv]);
        let mut out = Vec::with_capacity(self.v.len());
        for t in 0..self.len() {
            let (q, v) = (&self.q[t * nq..(t + 1) * nq], &self.v[t * nv..(t + 1) * nv]);
            a.copy_from_slice(&self.a[t * nv..(t + 1) * nv]);
            dynamics.rnea(&mut scratch, q, v, &a, &mut tau)?;
            mass_matrix(mechanism, &mut workspace, q, &mut mass)?;
            let base = Matrix6::from_fn(|i, j| mass[i * nv + j]).cholesky().ok_or_else(|| {
                Error::Singular("the mass or the inertia of the whole robot is not positive".into())
            })?;
            let answer = base.solve(&Vector6::from_column_slice(&tau[..6]));
            a[..6].iter_mut().zip(answer.iter()).for_each(|(a, x)| *a = -x);
            dynamics.rnea(&mut scratch, q, v, &a, &mut tau)?;
            out.extend_from_slice(&tau);
        }
        Ok(out)
    }
}

/// Root mean square prediction errors of a model on a flight (paper 002, eq. 42 and table 6).
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct PredictionErrors {
    /// Twist of the base: linear (m/s), then angular (rad/s).
    pub base: [f64; 6],
    /// Forces of the joints.
    pub forces: Vec<f64>,
}

/// Computes the errors of an estimated mechanism in predicting base motion and forces of a flight of the true one, given the
/// motion of the joints.
pub fn prediction_errors(
    truth: &Mechanism,
    estimated: &Mechanism,
    trajectory: &Trajectory,
    rate: f64,
) -> Result<PredictionErrors> {
    let real = FlightSamples::new(truth, trajectory, rate)?;
    let predicted = FlightSamples::new(estimated, trajectory, rate)?;
    let nv = truth.nv();
    let rms = |a: &[f64], b: &[f64], k: usize| {
        let squares = a.chunks_exact(nv).zip(b.chunks_exact(nv)).map(|(a, b)| (a[k] - b[k]).powi(2));
        (squares.sum::<f64>() / real.len() as f64).sqrt()
    };
    let forces = (real.forces(truth)?, predicted.forces(estimated)?);
    Ok(PredictionErrors {
        base: std::array::from_fn(|k| rms(&real.v, &predicted.v, k)),
        forces: (6..nv).map(|k| rms(&forces.0, &forces.1, k)).collect(),
    })
}

fn target(mechanism: &Mechanism, name: &str) -> Result<Target> {
    if let Some(w) = mechanism.wheels().iter().position(|w| w.name == name) {
        return Ok(Target::Wheel(w));
    }
    let simple =
        |j: &&crate::mechanism::Joint| j.name == name && j.follows.is_none() && j.joint_type.nv() == 1;
    let joint = mechanism.joints().iter().find(simple).ok_or_else(|| {
        Error::UnknownName(format!(
            "the trajectory moves \"{name}\", which is not a joint or wheel of the robot"
        ))
    })?;
    Ok(Target::Joint { q: joint.q, v: joint.v })
}
