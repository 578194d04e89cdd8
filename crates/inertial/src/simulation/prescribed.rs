//! Sensor readings for prescribed motion, by inverse dynamics.

use super::{JointForces, Standstill};
use crate::dynamics::{ClosedMechanism, ClosedWorkspace, PathLength};
use crate::mechanism::Base;
use crate::{Error, Result};

/// All quantities that sensors can measure at one time, in the coordinates of the tree.
#[derive(Debug, Clone, PartialEq)]
pub struct SensorReading {
    /// Positions.
    pub q: Vec<f64>,
    /// Velocities.
    pub v: Vec<f64>,
    /// Accelerations.
    pub a: Vec<f64>,
    /// Forces of the actuators; for a floating base the net external wrench (force, then moment). For mechanisms with loops, those
    /// on the independent coordinates, zero elsewhere.
    pub tau: Vec<f64>,
    /// Wrench between robot and world: force, then moment.
    pub wrench: [f64; 6],
    /// Wrench of a force/torque sensor: force, then moment.
    pub sensor: [f64; 6],
    /// Momentum of the robot without its wheels in the frame of the base: linear, then angular.
    pub momentum: [f64; 6],
    /// Rates of the wheels.
    pub wheels: Vec<f64>,
}

impl SensorReading {
    /// Creates a zero reading at the assembled configuration.
    pub fn new(closed: &ClosedMechanism<'_>) -> Self {
        let mechanism = closed.mechanism();
        let zeros = vec![0.0; mechanism.nv()];
        Self {
            q: closed.assembled().to_vec(),
            v: zeros.clone(),
            a: zeros.clone(),
            tau: zeros,
            wrench: [0.0; 6],
            sensor: [0.0; 6],
            momentum: [0.0; 6],
            wheels: vec![0.0; mechanism.wheels().len()],
        }
    }
}

/// Inverse-dynamics simulation of a given motion: dependent joints of loops, actuator forces, wrench on the base.
///
/// ```
/// use inertial::dynamics::ClosedMechanism;
/// use inertial::mechanism::builtin;
/// use inertial::simulation::{JointForces, Prescribed, SensorReading};
///
/// let linkage = builtin::get("four-bar")?.build(&Default::default())?;
/// let closed = ClosedMechanism::new(&linkage)?;
/// let mut sensors = Prescribed::new(&closed, JointForces::of(&linkage)?)?;
/// let mut reading = SensorReading::new(&closed);
/// let crank = closed.independent()[0];
/// reading.q[crank] += 0.2; // the others follow
/// reading.v[crank] = 1.0;
/// sensors.complete(&mut reading)?;
/// assert!(reading.v.iter().all(|v| *v != 0.0) && reading.tau[crank] != 0.0);
/// # Ok::<(), inertial::Error>(())
/// ```
pub struct Prescribed<'c, 'm> {
    closed: &'c ClosedMechanism<'m>,
    workspace: ClosedWorkspace,
    forces: JointForces,
    /// Closed configuration of the last sample, from which the next one is computed.
    q: Vec<f64>,
    path: PathLength,
    target: Vec<f64>,
    v: Vec<f64>,
    a: Vec<f64>,
    tau: Vec<f64>,
    extra: Vec<f64>,
}

impl<'c, 'm> Prescribed<'c, 'm> {
    /// Creates the simulation with passive joint forces.
    pub fn new(closed: &'c ClosedMechanism<'m>, forces: JointForces) -> Result<Self> {
        refuse_parts(closed)?;
        let zeros = vec![0.0; closed.dof()];
        Ok(Self {
            closed,
            workspace: closed.workspace(),
            forces,
            q: closed.assembled().to_vec(),
            path: PathLength::default(),
            target: vec![0.0; closed.independent_positions().len()],
            v: zeros.clone(),
            a: zeros.clone(),
            tau: zeros,
            extra: vec![0.0; closed.mechanism().nv()],
        })
    }

    /// Computes all other fields, `tau` and `wrench` from the independent positions, velocities and accelerations in `reading`.
    pub fn complete(&mut self, reading: &mut SensorReading) -> Result<()> {
        let (closed, ws) = (self.closed, &mut self.workspace);
        for (target, &k) in self.target.iter_mut().zip(closed.independent_positions()) {
            *target = reading.q[k];
        }
        closed.move_along(&mut self.path, ws, &mut self.q, &self.target)?;
        reading.q.copy_from_slice(&self.q);
        let Self { v, a, tau, extra, q, .. } = self;
        for (i, &k) in closed.independent().iter().enumerate() {
            (v[i], a[i]) = (reading.v[k], reading.a[k]);
        }
        closed.accelerations(ws, q, v, a, &mut reading.v, &mut reading.a)?;
        closed.inverse_dynamics(ws, q, v, a, tau)?;
        if !self.forces.is_empty() {
            extra.fill(0.0);
            self.forces.add(q, &reading.v, Standstill::Sign, extra);
            let map = closed.velocity_map(ws, q)?;
            for (tau, column) in tau.iter_mut().zip(map.column_iter()) {
                *tau += column.iter().zip(&*extra).map(|(g, f)| g * f).sum::<f64>();
            }
        }
        reading.tau.fill(0.0);
        for (tau, &k) in tau.iter().zip(closed.independent()) {
            reading.tau[k] = *tau;
        }
        reading.wrench = if closed.mechanism().base() == Base::Floating {
            std::array::from_fn(|k| reading.tau[k])
        } else {
            let wrench = closed.base_wrench(ws, q, v, a)?;
            force_first(&wrench)
        };
        Ok(())
    }
}

/// Returns the wrench in the order of log columns: force, then moment.
pub(super) fn force_first(f: &crate::spatial::Force<f64>) -> [f64; 6] {
    let (l, a) = (&f.linear, &f.angular);
    [l.x, l.y, l.z, a.x, a.y, a.z]
}

/// Rejects ball joints of which only a part is independent, because they cannot be prescribed by coordinate.
pub(super) fn refuse_parts(closed: &ClosedMechanism<'_>) -> Result<()> {
    let independent = |k: &usize| closed.independent().contains(k);
    for joint in closed.mechanism().joints().iter().filter(|j| j.follows.is_none()) {
        let some = joint.v_range().any(|k| independent(&k));
        let positions = joint.q_range().any(|k| closed.independent_positions().contains(&k));
        if some && !positions {
            return Err(Error::Incompatible(format!(
                "joint \"{}\" is independent only in part, so its motion cannot be given: mark other joints as independent",
                joint.name
            )));
        }
    }
    Ok(())
}
