//! Prescribed motion: positions of joints and base, rates of wheels, forces over time.

use super::{Curve, rates};
use crate::excitation::{Motion, Trajectory};
use crate::mechanism::Mechanism;
use crate::{Error, Result};

/// Prescribed part of the motion of a mechanism, from samples or from a [`Trajectory`].
///
/// Joints that are not prescribed rest in the assembled configuration; wheels do not turn.
#[derive(Debug, Clone)]
pub struct PrescribedMotion<'m, 't> {
    mechanism: &'m Mechanism,
    source: Source<'m, 't>,
}

#[derive(Debug, Clone)]
enum Source<'m, 't> {
    Sampled(Sampled),
    Designed { motion: Motion<'m, 't>, wheels: &'t Trajectory, targets: Vec<usize>, memory: [Vec<f64>; 3] },
}

#[derive(Debug, Clone)]
struct Sampled {
    times: Vec<f64>,
    rest: Vec<f64>,
    /// Curves of the coordinates, by joint.
    joints: Vec<(usize, Vec<Curve>)>,
    /// Angle or rate of each prescribed wheel.
    wheels: Vec<(usize, Turn)>,
    /// Forces by velocity coordinate, with linear interpolation between samples.
    forces: Vec<(usize, Vec<f64>)>,
    memory: [Vec<f64>; 2],
}

#[derive(Debug, Clone)]
enum Turn {
    Angle(Curve),
    Rate(Curve),
}

impl<'m, 't> PrescribedMotion<'m, 't> {
    /// Creates a motion at rest from the first to the last of `times` (s), which must be ascending.
    pub fn sampled(mechanism: &'m Mechanism, times: Vec<f64>) -> Self {
        let zeros = vec![0.0; mechanism.nq()];
        let sampled = Sampled {
            times,
            rest: mechanism.assembly().to_vec(),
            joints: Vec::new(),
            wheels: Vec::new(),
            forces: Vec::new(),
            memory: [zeros.clone(), zeros],
        };
        Self { mechanism, source: Source::Sampled(sampled) }
    }

    /// Creates a motion whose joints (and base) follow one trajectory and whose wheels follow another.
    pub fn designed(
        mechanism: &'m Mechanism,
        joints: &'t Trajectory,
        wheels: &'t Trajectory,
    ) -> Result<Self> {
        let target = |name: &String| {
            mechanism
                .wheels()
                .iter()
                .position(|w| w.name == *name)
                .ok_or_else(|| Error::UnknownName(format!("the model has no wheel \"{name}\"")))
        };
        let targets = wheels.joints().iter().map(target).collect::<Result<Vec<_>>>()?;
        let zeros = vec![0.0; targets.len()];
        let motion = Motion::new(mechanism, joints)?;
        let memory = [zeros.clone(), zeros.clone(), zeros];
        Ok(Self { mechanism, source: Source::Designed { motion, wheels, targets, memory } })
    }

    /// Prescribes a joint by one column per position coordinate, and optionally velocities and accelerations per velocity
    /// coordinate. Quaternions may change their sign from sample to sample.
    pub fn joint(
        &mut self,
        joint: usize,
        mut positions: Vec<Vec<f64>>,
        velocities: Option<&[Vec<f64>]>,
        accelerations: Option<&[Vec<f64>]>,
    ) -> Result<()> {
        let kind = self.mechanism.joints()[joint].joint_type;
        let sampled = self.samples()?;
        let (nq, nv, n) = (kind.nq(), kind.nv(), sampled.times.len());
        for (what, expected, columns) in [
            ("position columns", nq, Some(&positions[..])),
            ("velocity columns", nv, velocities),
            ("acceleration columns", nv, accelerations),
        ] {
            let Some(columns) = columns else { continue };
            if columns.len() != expected {
                return Err(Error::Dimension { what, expected, found: columns.len() });
            }
            if let Some(found) = columns.iter().map(Vec::len).find(|&len| len != n) {
                return Err(Error::Dimension { what: "column of samples", expected: n, found });
            }
        }
        make_continuous(&kind, &mut positions);
        let (first, second) = match velocities {
            None => (None, None),
            Some(v) => {
                // Without accelerations, only the first derivatives are used.
                let still = vec![vec![0.0; n]; nv];
                let a = accelerations.unwrap_or(&still);
                let mut out = [vec![vec![0.0; n]; nq], vec![vec![0.0; n]; nq]];
                let row = |columns: &[Vec<f64>], i: usize| columns.iter().map(|c| c[i]).collect::<Vec<_>>();
                let (mut dq, mut ddq) = (vec![0.0; nq], vec![0.0; nq]);
                for i in 0..n {
                    let (q, v, a) = (row(&positions, i), row(v, i), row(a, i));
                    rates::derivatives(&kind, &q, &v, &a, &mut dq, &mut ddq);
                    for k in 0..nq {
                        (out[0][k][i], out[1][k][i]) = (dq[k], ddq[k]);
                    }
                }
                let [first, second] = out;
                (Some(first), accelerations.map(|_| second))
            }
        };
        let column = |columns: &Option<Vec<Vec<f64>>>, k: usize| columns.as_ref().map(|c| c[k].clone());
        let curves = positions
            .into_iter()
            .enumerate()
            .map(|(k, values)| Curve::new(&sampled.times, values, column(&first, k), column(&second, k)));
        let curves = curves.collect::<Result<Vec<_>>>()?;
        sampled.joints.push((joint, curves));
        Ok(())
    }

    /// Prescribes a wheel by its rates (rad/s), or by its angles if there are no rates.
    pub fn wheel(&mut self, wheel: usize, angles: Option<Vec<f64>>, rates: Option<Vec<f64>>) -> Result<()> {
        let sampled = self.samples()?;
        let turn = match (angles, rates) {
            (Some(angles), rates) => Turn::Angle(Curve::new(&sampled.times, angles, rates, None)?),
            (None, Some(rates)) => Turn::Rate(Curve::new(&sampled.times, rates, None, None)?),
            (None, None) => return Ok(()),
        };
        sampled.wheels.push((wheel, turn));
        Ok(())
    }

    /// Prescribes the force on a velocity coordinate, with linear interpolation between the samples.
    pub fn force(&mut self, coordinate: usize, values: Vec<f64>) -> Result<()> {
        let sampled = self.samples()?;
        let (expected, found) = (sampled.times.len(), values.len());
        if expected != found {
            return Err(Error::Dimension { what: "column of samples", expected, found });
        }
        sampled.forces.push((coordinate, values));
        Ok(())
    }

    fn samples(&mut self) -> Result<&mut Sampled> {
        match &mut self.source {
            Source::Sampled(sampled) => Ok(sampled),
            Source::Designed { .. } => {
                Err(Error::Incompatible("a trajectory of given functions does not accept samples".into()))
            }
        }
    }

    /// Returns start and end time (s).
    pub fn span(&self) -> (f64, f64) {
        match &self.source {
            Source::Sampled(s) => (s.times[0], s.times[s.times.len() - 1]),
            Source::Designed { motion, wheels, .. } => {
                (0.0, motion.trajectory().duration().max(wheels.duration()))
            }
        }
    }

    /// Returns the times of the samples, if there are any.
    pub fn times(&self) -> Option<&[f64]> {
        match &self.source {
            Source::Sampled(s) => Some(&s.times),
            Source::Designed { .. } => None,
        }
    }

    /// Computes the state of the tree and the wheel rates at time `t`.
    pub fn state(
        &mut self,
        t: f64,
        q: &mut [f64],
        v: &mut [f64],
        a: &mut [f64],
        wheels: &mut [f64],
    ) -> Result<()> {
        wheels.fill(0.0);
        match &mut self.source {
            Source::Designed { motion, wheels: turning, targets, memory: [angle, rate, change] } => {
                motion.state(t, q, v, a)?;
                turning.evaluate(t, angle, rate, change);
                for (&k, rate) in targets.iter().zip(rate) {
                    wheels[k] = *rate;
                }
            }
            Source::Sampled(Sampled { times, rest, joints, wheels: turning, memory: [dq, ddq], .. }) => {
                q.copy_from_slice(rest);
                v.fill(0.0);
                a.fill(0.0);
                for (joint, curves) in joints {
                    let joint = &self.mechanism.joints()[*joint];
                    let (q_range, v_range) = (joint.q_range(), joint.v_range());
                    for (k, curve) in q_range.clone().zip(curves) {
                        [q[k], dq[k], ddq[k]] = curve.at(times, t);
                    }
                    let (q, v, a) = (&mut q[q_range.clone()], &mut v[v_range.clone()], &mut a[v_range]);
                    rates::motion(&joint.joint_type, q, &dq[q_range.clone()], &ddq[q_range], v, a);
                }
                for (k, turn) in turning {
                    wheels[*k] = match turn {
                        Turn::Angle(curve) => curve.at(times, t)[1],
                        Turn::Rate(curve) => curve.at(times, t)[0],
                    };
                }
            }
        }
        Ok(())
    }

    /// Computes the prescribed forces at time `t`, zero by default.
    pub fn forces(&self, t: f64, tau: &mut [f64]) {
        tau.fill(0.0);
        if let Source::Sampled(Sampled { times, forces, .. }) = &self.source {
            let last = times.len() - 1;
            let k = times.partition_point(|&s| s <= t).clamp(1, last.max(1)) - 1;
            let next = (k + 1).min(last);
            let part =
                if next > k { ((t - times[k]) / (times[next] - times[k])).clamp(0.0, 1.0) } else { 0.0 };
            for (coordinate, values) in forces {
                tau[*coordinate] = values[k] + part * (values[next] - values[k]);
            }
        }
    }
}

/// Normalizes quaternions and selects the sign closest to the previous sample.
fn make_continuous(kind: &crate::mechanism::JointType, positions: &mut [Vec<f64>]) {
    if kind.nq() == kind.nv() {
        return;
    }
    let first = kind.nq() - 4;
    let mut before = [0.0; 4];
    for i in 0..positions[first].len() {
        let mut now: [f64; 4] = std::array::from_fn(|k| positions[first + k][i]);
        let length = now.iter().map(|x| x * x).sum::<f64>().sqrt();
        let along: f64 = now.iter().zip(before).map(|(a, b)| a * b).sum();
        let scale = if along < 0.0 { -1.0 } else { 1.0 } / if length > 0.0 { length } else { 1.0 };
        now.iter_mut().for_each(|x| *x *= scale);
        for k in 0..4 {
            positions[first + k][i] = now[k];
        }
        before = now;
    }
}
