//! Columns of a simulated log.

use inertial::dynamics::ClosedMechanism;
use inertial::estimation::WRENCH_AXES;
use inertial::identifiability::Measured;
use inertial::mechanism::Base;
use inertial::simulation::SensorReading;
use inertial_data::{BASE_A, BASE_Q, BASE_V, nearest_hint};

use super::Mode;
use crate::{Error, Result};

const MOMENTUM: [&str; 6] = ["px", "py", "pz", "lx", "ly", "lz"];

/// Location of the value of a column in a [`SensorReading`].
#[derive(Debug, Clone, Copy)]
enum Field {
    Time,
    Q(usize),
    V(usize),
    A(usize),
    Tau(usize),
    Wrench(usize),
    Sensor(usize),
    Momentum(usize),
    Wheel(usize),
}

/// Names and locations of the columns.
pub struct Table {
    names: Vec<String>,
    fields: Vec<Field>,
}

impl Table {
    /// Creates the columns of the sensors.
    pub fn new(
        closed: &ClosedMechanism<'_>,
        measured: Measured,
        mode: Mode,
        joints: &[String],
        force_sensor: bool,
    ) -> Result<Self> {
        let mechanism = closed.mechanism();
        let floating = mechanism.base() == Base::Floating;
        let (base_q, base_v) = if floating { (7, 6) } else { (0, 0) };
        let (q_names, v_names) = (mechanism.position_names(), mechanism.velocity_names());
        let mut table = Self { names: vec!["t".into()], fields: vec![Field::Time] };
        let mut add = |name: String, field| {
            table.names.push(name);
            table.fields.push(field);
        };
        for (k, name) in q_names.iter().enumerate() {
            let name = if k < base_q { format!("base.{}", BASE_Q[k]) } else { format!("q.{name}") };
            add(name, Field::Q(k));
        }
        for (k, name) in v_names.iter().enumerate() {
            let name = if k < base_v { format!("base.{}", BASE_V[k]) } else { format!("dq.{name}") };
            add(name, Field::V(k));
        }
        if mode == Mode::FreeFlight {
            for (k, wheel) in mechanism.wheels().iter().enumerate() {
                add(format!("dq.{}", wheel.name), Field::Wheel(k));
            }
            for (k, part) in MOMENTUM.iter().enumerate() {
                add(format!("momentum.{part}"), Field::Momentum(k));
            }
            return Ok(table);
        }
        for (k, name) in v_names.iter().enumerate() {
            let name = if k < base_v { format!("base.{}", BASE_A[k]) } else { format!("ddq.{name}") };
            add(name, Field::A(k));
        }
        if measured != Measured::BaseWrench {
            let wanted = torque_coordinates(closed, joints)?;
            for (k, name) in v_names.iter().enumerate().skip(base_v).filter(|(k, _)| wanted[*k]) {
                add(format!("tau.{name}"), Field::Tau(k));
            }
        }
        if measured != Measured::JointTorques {
            for (k, part) in WRENCH_AXES.iter().enumerate() {
                add(format!("wrench.{part}"), Field::Wrench(k));
            }
        }
        if force_sensor {
            for (k, part) in WRENCH_AXES.iter().enumerate() {
                add(format!("ft.{part}"), Field::Sensor(k));
            }
        }
        Ok(table)
    }

    /// Returns the names of the columns.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Writes the values of all columns.
    pub fn row(&self, t: f64, reading: &SensorReading, row: &mut Vec<f64>) {
        row.clear();
        row.extend(self.fields.iter().map(|field| match *field {
            Field::Time => t,
            Field::Q(k) => reading.q[k],
            Field::V(k) => reading.v[k],
            Field::A(k) => reading.a[k],
            Field::Tau(k) => reading.tau[k],
            Field::Wrench(k) => reading.wrench[k],
            Field::Sensor(k) => reading.sensor[k],
            Field::Momentum(k) => reading.momentum[k],
            Field::Wheel(k) => reading.wheels[k],
        }));
    }
}

/// Returns whether each velocity coordinate has a torque sensor: those of the named joints, or all independent ones.
fn torque_coordinates(closed: &ClosedMechanism<'_>, joints: &[String]) -> Result<Vec<bool>> {
    let mechanism = closed.mechanism();
    let mut wanted = vec![false; mechanism.nv()];
    if joints.is_empty() {
        closed.independent().iter().for_each(|&k| wanted[k] = true);
        return Ok(wanted);
    }
    let names: Vec<String> = mechanism.joints().iter().map(|j| j.name.clone()).collect();
    for name in joints {
        let Some(joint) = mechanism.joints().iter().find(|j| j.name == *name && j.follows.is_none()) else {
            let near = nearest_hint(name, &names);
            return Err(Error::option("joints", format!("the model has no joint {name}{near}")));
        };
        if let Some(k) = joint.v_range().find(|k| !closed.independent().contains(k)) {
            let (name, free) = (&mechanism.velocity_names()[k], closed.independent_names().join(", "));
            let reason =
                format!("{name} depends on other joints of a loop; the independent joints are {free}");
            return Err(Error::option("joints", reason));
        }
        wanted[joint.v_range()].fill(true);
    }
    Ok(wanted)
}
