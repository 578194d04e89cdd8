//! Layout of a row: which number is which quantity.

use inertial::mechanism::{JointType, Mechanism};

use crate::columns::assignment::is_angle;
use crate::{Columns, Place};

/// Columns of a file that are read, and the quantity of each. Places count within a row, time left out.
pub(crate) struct Layout {
    /// Name of the source.
    pub file: String,
    /// Name of the time's column.
    pub time: String,
    /// Columns of the file: time, then the values.
    pub sources: Vec<usize>,
    /// Names of the values.
    pub names: Vec<String>,
    /// Positions; none where a pose is not known.
    pub q: Vec<Option<usize>>,
    pub dq: Vec<Option<usize>>,
    pub ddq: Vec<Option<usize>>,
    pub tau: Vec<Option<usize>>,
    pub extra: Vec<usize>,
    /// Values of positions that are not known.
    pub neutral: Vec<f64>,
    pub joints: Vec<LayoutJoint>,
    /// Names of the positions.
    pub positions: Vec<String>,
    /// Positions that are angles.
    pub angles: Vec<bool>,
    /// First positions of quaternions.
    pub quaternions: Vec<usize>,
    /// Number of unknowns of the mechanism: fewer measurements do not determine them.
    pub parameters: usize,
}

/// A joint with coordinates of its own.
pub(crate) struct LayoutJoint {
    pub joint_type: JointType,
    pub q: usize,
    pub v: usize,
    /// Greatest angle and speed of its limits; infinite where there are none.
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
    /// Without a mechanism, only the further columns are there.
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

    /// Numbers per row, time left out.
    pub fn width(&self) -> usize {
        self.names.len()
    }

    pub fn nq(&self) -> usize {
        self.q.len()
    }

    pub fn nv(&self) -> usize {
        self.dq.len()
    }

    /// The bit by which samples near a value that is not known are marked: one for all samples, or one for those of the force
    /// that alone depends on it. A number holds 53 bits; forces beyond have none of their own.
    pub fn doubt(&self, place: usize) -> u64 {
        let forces = self.tau.iter().flatten().take(52);
        let own = forces.enumerate().find(|(_, force)| **force == place && !self.extra.contains(&place));
        own.map_or(1, |(k, _)| 2 << k)
    }

    pub fn place(&self) -> Place {
        Place::file(&self.file)
    }

    /// Values by which a log is recognized, whatever else is read of it: positions, else all.
    pub fn identity(&self) -> impl Iterator<Item = usize> + '_ {
        let all = if self.q.iter().all(Option::is_none) { 0..self.width() } else { 0..0 };
        self.q.iter().flatten().copied().chain(all)
    }

    /// The column of a value.
    pub fn column(&self, place: usize) -> Place {
        self.place().column(&self.names[place])
    }

    /// The time in a row of the file.
    pub fn stamp(&self, line: usize) -> Place {
        self.place().row(line).column(&self.time)
    }

    /// Positions of a row of values.
    pub fn positions(&self, row: &[f64], q: &mut [f64]) {
        for (k, q) in q.iter_mut().enumerate() {
            *q = self.q[k].map_or(self.neutral[k], |place| row[place]);
        }
    }
}
