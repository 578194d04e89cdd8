//! Readings of a force/torque sensor.

use super::SensorReading;
use super::prescribed::force_first;
use crate::dynamics::{Workspace, body_accelerations};
use crate::mechanism::{Mechanism, MechanismBuilder};
use crate::spatial::{Force, Inertia, Motion, Pose};
use crate::{Error, Result};
use nalgebra::Vector3;

/// Link that a sensor carries.
struct Carried {
    body: usize,
    pose: Pose<f64>,
    inertia: Inertia<f64>,
}

/// Force/torque sensor in the frame of a link: measures the wrench that it exerts on the link and on all bodies attached to it.
///
/// ```
/// use inertial::dynamics::ClosedMechanism;
/// use inertial::mechanism::builtin;
/// use inertial::simulation::{ForceSensor, SensorReading};
///
/// let builder = builtin::get("arm7")?;
/// let arm = builder.build(&Default::default())?;
/// let reading = SensorReading::new(&ClosedMechanism::new(&arm)?);
/// let mut sensor = ForceSensor::new(&builder, &arm, "link7")?;
/// // At rest it carries the weight.
/// let [fx, fy, fz, ..] = sensor.read(&reading)?;
/// let mass = arm.bodies()[6].inertia.mass;
/// assert!((fx.hypot(fy).hypot(fz) - mass * 9.81).abs() < 1e-9);
/// # Ok::<(), inertial::Error>(())
/// ```
pub struct ForceSensor<'m> {
    mechanism: &'m Mechanism,
    workspace: Workspace,
    body: usize,
    pose: Pose<f64>,
    carried: Vec<Carried>,
}

impl<'m> ForceSensor<'m> {
    /// Places a sensor at a link of the mechanism that was built from `builder`.
    pub fn new(builder: &MechanismBuilder, mechanism: &'m Mechanism, link: &str) -> Result<Self> {
        if !mechanism.loops().is_empty() {
            return Err(Error::NotApplicable(
                "a force/torque sensor can be simulated only in mechanisms without loops".into(),
            ));
        }
        let own = mechanism.links().iter().find(|l| l.name == link);
        let own = own.ok_or_else(|| Error::UnknownName(format!("there is no link {link} for the sensor")))?;
        let body = own.body.ok_or_else(|| {
            Error::NotApplicable(format!(
                "the link {link} of the sensor belongs to the ground: it needs a moving link"
            ))
        })?;
        let mut beyond = vec![link];
        let mut next = 0;
        while let Some(&parent) = beyond.get(next) {
            beyond.extend(builder.joints.iter().filter(|j| j.parent == parent).map(|j| j.child.as_str()));
            next += 1;
        }
        if let Some(rotor) = builder.rotors.iter().find(|r| beyond.contains(&r.carrier.as_str())) {
            return Err(Error::NotApplicable(format!(
                "the rotor of {} lies beyond the sensor, which is not simulated",
                rotor.joint
            )));
        }
        let carried = mechanism
            .links()
            .iter()
            .filter(|l| beyond.contains(&l.name.as_str()))
            .filter_map(|l| Some(Carried { body: l.body?, pose: l.pose, inertia: l.inertia? }));
        Ok(Self {
            mechanism,
            workspace: Workspace::new(mechanism),
            body,
            pose: own.pose,
            carried: carried.collect(),
        })
    }

    /// Returns force, then moment, at the origin and along the axes of the link frame.
    pub fn read(&mut self, reading: &SensorReading) -> Result<[f64; 6]> {
        let ws = &mut self.workspace;
        body_accelerations(self.mechanism, ws, &reading.q, &reading.v, &reading.a)?;
        let gravity = self.mechanism.gravity();
        let mut total = Force::new(Vector3::zeros(), Vector3::zeros());
        for link in &self.carried {
            let place = ws.poses()[link.body];
            // Proper acceleration: bodies in free fall exert no force.
            let falling = Motion::new(Vector3::zeros(), place.rotation.tr_mul(&gravity));
            let proper = ws.accelerations()[link.body] - falling;
            let [velocity, acceleration] =
                [ws.velocities()[link.body], proper].map(|motion| link.pose.pull_motion(&motion));
            let wrench = link.inertia.wrench(&velocity, &acceleration);
            total += (place * link.pose).push_force(&wrench);
        }
        let sensor = ws.poses()[self.body] * self.pose;
        Ok(force_first(&sensor.pull_force(&total)))
    }
}
