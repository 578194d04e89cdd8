//! Simulated sensor readings along a motion, for the demos.

use anyhow::Result;
use inertial::dynamics::{ClosedMechanism, InverseDynamics, Samples};
use inertial::estimation::{Equations, Measurements, Summary, WRENCH_AXES};
use inertial::excitation::Trajectory;
use inertial::mechanism::{Base, Mechanism};
use inertial::simulation::{JointForces, Prescribed, PrescribedMotion, SensorReading, Sensors};

/// Positions, velocities, accelerations and forces, sample by sample.
pub struct Record {
    q: Vec<f64>,
    v: Vec<f64>,
    a: Vec<f64>,
    tau: Vec<f64>,
}

impl Record {
    /// Simulates the sensors along the motion; with a seed, noise of the given standard deviations by column is added to the forces.
    pub fn new(
        mechanism: &Mechanism,
        motion: &Trajectory,
        forces: JointForces,
        rate: f64,
        noise: &[(&str, f64)],
        seed: Option<u64>,
    ) -> Result<Self> {
        let closed = ClosedMechanism::new(mechanism)?;
        let still = Trajectory::new(Vec::new(), motion.duration(), motion.basis().clone(), &[])?;
        let mut prescribed = PrescribedMotion::designed(mechanism, motion, &still)?;
        let mut plant = Prescribed::new(&closed, forces)?;
        let floating = mechanism.base() == Base::Floating;
        let base = WRENCH_AXES.map(|part| format!("wrench.{part}"));
        let (base, skip) = if floating { (base.to_vec(), 6) } else { (Vec::new(), 0) };
        let joints = mechanism.velocity_names().into_iter().skip(skip).map(|name| format!("tau.{name}"));
        let names: Vec<String> = base.into_iter().chain(joints).collect();
        let noise: Vec<(String, f64)> = noise
            .iter()
            .map(|(column, sd)| ((*column).to_owned(), if seed.is_some() { *sd } else { 0.0 }))
            .collect();
        let mut sensors = Sensors::new(&names, &noise, &[], &[], seed.unwrap_or_default())?;
        let mut reading = SensorReading::new(&closed);
        let mut out = Self { q: Vec::new(), v: Vec::new(), a: Vec::new(), tau: Vec::new() };
        for k in 0..motion.samples(rate)? {
            let SensorReading { q, v, a, wheels, .. } = &mut reading;
            prescribed.state(k as f64 / rate, q, v, a, wheels)?;
            plant.complete(&mut reading)?;
            sensors.measure(&mut reading.tau);
            out.q.extend(&reading.q);
            out.v.extend(&reading.v);
            out.a.extend(&reading.a);
            out.tau.extend(&reading.tau);
        }
        Ok(out)
    }

    /// Returns the summary of the samples for the estimators.
    pub fn summary(&self, equations: &Equations<'_>) -> Result<Summary> {
        let dynamics = InverseDynamics::new(equations.mechanism());
        let samples = Samples::new(&dynamics, self.tau.len() / dynamics.nv(), &self.q, &self.v, &self.a)?;
        Ok(Summary::new(equations, &Measurements::new(samples, &self.tau))?)
    }
}
