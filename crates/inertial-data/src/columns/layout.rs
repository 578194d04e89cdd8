//! Layout of a row: the quantity of each number.

use inertial::mechanism::{JointType, Mechanism};

use crate::columns::assignment::is_angle;
use crate::{Columns, Error, Place, Result};

/// Columns of a file that are read, and the quantity of each. Places are indices in a row without its time.
pub(crate) struct Layout {
    /// Name of the source.
    pub file: String,
    /// Name of the time column.
    pub time: String,
    /// Columns of the file: time, then the values.
    pub sources: Vec<usize>,
    /// Names of the values.
    pub names: Vec<String>,
    /// Positions; `None` for an unknown pose.
    pub q: Vec<Option<usize>>,
    pub dq: Vec<Option<usize>>,
    pub ddq: Vec<Option<usize>>,
    pub tau: Vec<Option<usize>>,
    pub extra: Vec<usize>,
    /// Values of unknown positions.
    pub neutral: Vec<f64>,
    pub joints: Vec<LayoutJoint>,
    /// Names of the positions.
    pub positions: Vec<String>,
    /// Whether each position is an angle.
    pub angles: Vec<bool>,
    /// Index of the first position of each quaternion.
    pub quaternions: Vec<usize>,
    /// Number of unknowns of the mechanism: fewer measurements do not determine them.
    pub parameters: usize,
}

/// Joint with its own coordinates.
pub(crate) struct LayoutJoint {
    pub joint_type: JointType,
    pub q: usize,
    pub v: usize,
    /// Maximum angle and speed of its limits; infinite if there are none.
    pub limit: f64,
    pub fastest: f64,
}

impl LayoutJoint {
    pub fn positions(&self) -> std::ops::Range<usize> {
        self.q..self.q + self.joint_type.nq()
    }

    pub fn velocities(&self) -> std::ops::Range<usize> {
        self.v..self.v + self.joint_type.nv()
    }
}

impl Layout {
    /// Creates the layout; without a mechanism, it contains only the additional columns.
    pub fn new(mechanism: Option<&Mechanism>, columns: &Columns, file: &str, names: &[String]) -> Self {
        let mut sources = vec![columns.t];
        let mut place = |&column: &usize| {
            if let Some(place) = sources[1..].iter().position(|&c| c == column) {
                place
            } else {
                sources.push(column);
                sources.len() - 2
            }
        };
        let mut places =
            |columns: &[Option<usize>]| columns.iter().map(|c| c.as_ref().map(&mut place)).collect();
        let (q, dq) = (places(&columns.q), places(&columns.dq));
        let (ddq, tau) = (places(&columns.ddq), places(&columns.tau));
        let extra = columns.extra.iter().map(&mut place).collect();
        let joint = |j: &inertial::mechanism::Joint| LayoutJoint {
            joint_type: j.joint_type,
            q: j.q,
            v: j.v,
            limit: j.limits.lower.abs().max(j.limits.upper.abs()),
            fastest: j.limits.given_velocity().unwrap_or(f64::INFINITY),
        };
        let joints: Vec<LayoutJoint> = mechanism
            .map_or(Vec::new(), |m| m.joints().iter().filter(|j| j.follows.is_none()).map(joint).collect());
        let quaternions = joints.iter().filter_map(|j| match j.joint_type {
            JointType::Spherical => Some(j.q),
            JointType::Floating => Some(j.q + 3),
            _ => None,
        });
        Self {
            file: file.to_owned(),
            time: names[columns.t].clone(),
            names: sources[1..].iter().map(|&c| names[c].clone()).collect(),
            sources,
            q,
            dq,
            ddq,
            tau,
            extra,
            neutral: mechanism.map_or(Vec::new(), Mechanism::neutral),
            quaternions: quaternions.collect(),
            joints,
            positions: mechanism.map_or(Vec::new(), Mechanism::position_names),
            angles: mechanism.map_or(Vec::new(), |m| (0..m.nq()).map(|k| is_angle(m, k)).collect()),
            parameters: mechanism.map_or(0, Mechanism::parameter_count),
        }
    }

    /// Returns the number of values per row, without time.
    pub fn width(&self) -> usize {
        self.names.len()
    }

    pub fn nq(&self) -> usize {
        self.q.len()
    }

    pub fn nv(&self) -> usize {
        self.dq.len()
    }

    /// Returns the bit that marks samples near an unknown value: one bit for all samples, or one for the samples of the force that alone
    /// depends on it. A double holds 53 bits; further forces have no bit of their own.
    pub fn mark_bit(&self, place: usize) -> u64 {
        let forces = self.tau.iter().flatten().take(52);
        let own = forces.enumerate().find(|(_, force)| **force == place && !self.extra.contains(&place));
        own.map_or(1, |(k, _)| 2 << k)
    }

    pub fn place(&self) -> Place {
        Place::file(&self.file)
    }

    /// Returns the values that identify a log independently of the other columns read: the positions, or all values if there are none.
    pub fn identity(&self) -> impl Iterator<Item = usize> + '_ {
        let all = if self.q.iter().all(Option::is_none) { 0..self.width() } else { 0..0 };
        self.q.iter().flatten().copied().chain(all)
    }

    /// Returns the location of a value's column.
    pub fn column(&self, place: usize) -> Place {
        self.place().column(&self.names[place])
    }

    /// Returns the location of the time in a row of the file.
    pub fn stamp(&self, line: usize) -> Place {
        self.place().row(line).column(&self.time)
    }

    /// Returns whether a value is used for any quantity.
    pub fn is_used(&self, place: usize) -> bool {
        let quantities = [&self.q, &self.dq, &self.ddq, &self.tau];
        quantities.into_iter().flatten().any(|own| *own == Some(place)) || self.extra.contains(&place)
    }

    /// Extracts the positions from a row of values.
    pub fn positions(&self, row: &[f64], q: &mut [f64]) {
        for (k, q) in q.iter_mut().enumerate() {
            *q = self.q[k].map_or(self.neutral[k], |place| row[place]);
        }
    }
}

/// Rejects a quaternion whose length is far from one, or not a number.
pub(crate) fn check_unit_quaternion(norm: f64, name: &str, place: impl FnOnce() -> Place) -> Result<()> {
    // Rounding to three digits stays well within this tolerance.
    if (norm - 1.0).abs() <= 0.05 {
        return Ok(());
    }
    Err(Error::content(place(), format!("the quaternion of {name} has length {norm:.3}: expected 1")))
}
