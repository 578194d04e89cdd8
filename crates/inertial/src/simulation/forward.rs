//! Forward simulation: motion from given forces.

use nalgebra::Vector3;

use super::prescribed::{force_first, refuse_parts};
use super::{Extrapolation, JointForces, SensorReading, Standstill};
use crate::Result;
use crate::dynamics::{ClosedMechanism, ClosedWorkspace, Frame};
use crate::mechanism::{Base, Mechanism};
use crate::spatial::{Force, Pose};

/// Error tolerance of each step in every coordinate; the error accumulated over a minute stays below 1e-9.
const TOLERANCE: f64 = 1e-13;

/// Mechanism that moves under the forces of its actuators, friction and gravity: open chains by the articulated-body algorithm,
/// loops on their independent coordinates.
///
/// Positions, velocities, the work of all forces except gravity and (with a floating base) the impulse of all external forces are
/// integrated together with almost full precision. After every sample, loops are closed again and quaternions are normalized.
/// [`Balance`] therefore measures the conservation of energy and momentum for any forces.
///
/// ```
/// use inertial::dynamics::ClosedMechanism;
/// use inertial::mechanism::builtin;
/// use inertial::simulation::{Forward, JointForces};
///
/// let pendulum = builtin::get("planar-2r")?.build(&Default::default())?;
/// let closed = ClosedMechanism::new(&pendulum)?;
/// let mut forward = Forward::new(&closed, JointForces::none(&pendulum), &[1.0, 0.5], &[0.0, 0.0])?;
/// forward.advance(0.0, 2.0, |_, _| {})?;
/// assert!(forward.balance()?.energy < 1e-10);
/// # Ok::<(), inertial::Error>(())
/// ```
pub struct Forward<'c, 'm> {
    plant: Plant<'c, 'm>,
    integrator: Extrapolation,
    /// State: positions of the tree, independent velocities, work, impulse.
    y: Vec<f64>,
    start: (f64, Force<f64>),
}

/// Errors of energy and momentum balance.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Balance {
    /// Change of kinetic and potential energy minus the work done (J).
    pub energy: f64,
    /// Magnitude of the energies in that difference (J).
    pub energy_scale: f64,
    /// Momentum balance of a floating base: change of momentum minus the impulse of external forces (N s, N m s).
    pub momentum: Option<f64>,
}

/// Simulation data without the state.
struct Plant<'c, 'm> {
    closed: &'c ClosedMechanism<'m>,
    workspace: ClosedWorkspace,
    forces: JointForces,
    v: Vec<f64>,
    a: Vec<f64>,
    acting: Vec<f64>,
    projected: Vec<f64>,
    accelerations: Vec<f64>,
}

impl<'c, 'm> Forward<'c, 'm> {
    /// Creates a simulation that starts at the independent positions and velocities in `q` and `v` of the tree.
    pub fn new(closed: &'c ClosedMechanism<'m>, forces: JointForces, q: &[f64], v: &[f64]) -> Result<Self> {
        refuse_parts(closed)?;
        let mechanism = closed.mechanism();
        let (nq, nv, n) = (mechanism.nq(), mechanism.nv(), closed.dof());
        for (what, found, expected) in [("position vector", q.len(), nq), ("velocity vector", v.len(), nv)] {
            if found != expected {
                return Err(crate::Error::Dimension { what, expected, found });
            }
        }
        let mut plant = Plant {
            closed,
            workspace: closed.workspace(),
            forces,
            v: vec![0.0; nv],
            a: vec![0.0; nv],
            acting: vec![0.0; nv],
            projected: vec![0.0; n],
            accelerations: vec![0.0; n],
        };
        let mut y = vec![0.0; nq + n + 1 + if mechanism.base() == Base::Floating { 6 } else { 0 }];
        let target: Vec<f64> = closed.independent_positions().iter().map(|&k| q[k]).collect();
        y[..nq].copy_from_slice(closed.assembled());
        closed.move_to(&mut plant.workspace, &mut y[..nq], &target)?;
        normalize(mechanism, &mut y[..nq]);
        for (i, &k) in closed.independent().iter().enumerate() {
            y[nq + i] = v[k];
        }
        let integrator = Extrapolation::new(y.len(), TOLERANCE);
        let mut forward = Self { plant, integrator, y, start: (0.0, Force::zero()) };
        let (energy, momentum, _) = forward.totals()?;
        forward.start = (energy, momentum);
        Ok(forward)
    }

    /// Advances the simulation from time `from` to `to` with the forces that `torque(t, tau)` writes for the coordinates of the
    /// tree (zero by default).
    pub fn advance(&mut self, from: f64, to: f64, mut torque: impl FnMut(f64, &mut [f64])) -> Result<()> {
        let Self { plant, integrator, y, .. } = self;
        integrator.advance(from, to, y, |t, y, rates| {
            plant.acting.fill(0.0);
            torque(t, &mut plant.acting);
            plant.rates(y, rates)
        })?;
        let nq = plant.closed.mechanism().nq();
        normalize(plant.closed.mechanism(), &mut y[..nq]);
        if !plant.closed.mechanism().loops().is_empty() {
            plant.closed.close(&mut plant.workspace, &mut y[..nq])?;
        }
        Ok(())
    }

    /// Computes the sensor readings, with the actuator forces `tau` (one per coordinate of the tree).
    pub fn read(&mut self, tau: &[f64], reading: &mut SensorReading) -> Result<()> {
        let Self { plant, y, .. } = self;
        let closed = plant.closed;
        let (nq, n) = (closed.mechanism().nq(), closed.dof());
        plant.acting.copy_from_slice(tau);
        plant.accelerate(&y[..nq], &y[nq..nq + n])?;
        reading.q.copy_from_slice(&y[..nq]);
        let ws = &mut plant.workspace;
        let (q, v) = (&y[..nq], &y[nq..nq + n]);
        closed.accelerations(ws, q, v, &plant.accelerations, &mut reading.v, &mut reading.a)?;
        reading.tau.copy_from_slice(tau);
        reading.wrench = if closed.mechanism().base() == Base::Floating {
            std::array::from_fn(|k| tau[k])
        } else {
            force_first(&closed.base_wrench(ws, q, v, &plant.accelerations)?)
        };
        Ok(())
    }

    /// Computes the balance of energy and momentum so far.
    pub fn balance(&mut self) -> Result<Balance> {
        let (energy, momentum, scale) = self.totals()?;
        let at = self.plant.closed.mechanism().nq() + self.plant.closed.dof();
        let impulse = self.y.get(at + 1..at + 7);
        let momentum = impulse.map(|i| {
            let impulse = Force::new(Vector3::new(i[3], i[4], i[5]), Vector3::new(i[0], i[1], i[2]));
            (momentum - self.start.1 - impulse).to_vector().amax()
        });
        let work = self.y[at];
        Ok(Balance {
            energy: (energy - self.start.0 - work).abs(),
            energy_scale: scale + work.abs(),
            momentum,
        })
    }

    /// Returns the energy, the momentum in the world, and the magnitude of the energies.
    fn totals(&mut self) -> Result<(f64, Force<f64>, f64)> {
        let Plant { closed, workspace, .. } = &mut self.plant;
        let (nq, n) = (closed.mechanism().nq(), closed.dof());
        let (q, v) = (&self.y[..nq], &self.y[nq..nq + n]);
        let kinetic = closed.kinetic_energy(workspace, q, v)?;
        let potential = closed.potential_energy(workspace, q)?;
        let momentum = closed.momentum(workspace, q, v, Frame::World)?;
        Ok((kinetic + potential, momentum, kinetic.abs() + potential.abs()))
    }
}

impl Plant<'_, '_> {
    /// Computes the accelerations of the independent coordinates for the forces in `acting`; leaves all forces, including
    /// friction, in `projected` and the velocities of the tree in `v`.
    fn accelerate(&mut self, q: &[f64], v: &[f64]) -> Result<()> {
        let Self { closed, workspace, forces, acting, projected, accelerations, .. } = self;
        closed.velocities(workspace, q, v, &mut self.v)?;
        if !forces.is_empty() {
            self.a.fill(0.0);
            forces.add(q, &self.v, Standstill::Smooth, &mut self.a);
            acting.iter_mut().zip(&self.a).for_each(|(f, taken)| *f -= taken);
        }
        if closed.dof() == acting.len() {
            projected.copy_from_slice(acting);
        } else {
            let map = closed.velocity_map(workspace, q)?;
            for (out, column) in projected.iter_mut().zip(map.column_iter()) {
                *out = column.iter().zip(&*acting).map(|(g, f)| g * f).sum();
            }
        }
        closed.forward_dynamics(workspace, q, v, projected, accelerations)
    }

    fn rates(&mut self, y: &[f64], rates: &mut [f64]) -> Result<()> {
        let mechanism = self.closed.mechanism();
        let (nq, n) = (mechanism.nq(), self.closed.dof());
        let (q, v) = (&y[..nq], &y[nq..nq + n]);
        self.accelerate(q, v)?;
        for joint in mechanism.joints().iter().filter(|j| j.follows.is_none()) {
            let (q_range, v_range) = (joint.q_range(), joint.v_range());
            joint.joint_type.position_rates(&q[q_range.clone()], &self.v[v_range], &mut rates[q_range]);
        }
        rates[nq..nq + n].copy_from_slice(&self.accelerations);
        rates[nq + n] = self.projected.iter().zip(v).map(|(f, v)| f * v).sum();
        if let Some(impulse) = rates.get_mut(nq + n + 1..)
            && !impulse.is_empty()
        {
            let poses = self.workspace.tree.poses();
            let f = &self.projected;
            let wrench = Force::new(Vector3::new(f[3], f[4], f[5]), Vector3::new(f[0], f[1], f[2]));
            let total = poses[0].push_force(&wrench) + weight(mechanism, poses);
            impulse.copy_from_slice(&force_first(&total));
        }
        Ok(())
    }
}

/// Returns the weight of all bodies as a wrench about the world origin.
fn weight(mechanism: &Mechanism, poses: &[Pose<f64>]) -> Force<f64> {
    let gravity = mechanism.gravity();
    let (mut mass, mut moment) = (0.0, Vector3::zeros());
    for (body, pose) in mechanism.bodies().iter().zip(poses) {
        mass += body.inertia.mass;
        moment += pose.translation * body.inertia.mass + pose.rotation * body.inertia.first_moment;
    }
    Force::new(moment.cross(&gravity), gravity * mass)
}

fn normalize(mechanism: &Mechanism, q: &mut [f64]) {
    for joint in mechanism.joints().iter().filter(|j| j.follows.is_none()) {
        joint.joint_type.normalize(&mut q[joint.q_range()]);
    }
}
