//! Which unknowns act in which measured force.

use serde::{Deserialize, Serialize};

use super::least_squares::information;
use super::summary::{Measurements, Summary};
use crate::dynamics::{InverseDynamics, Samples};
use crate::identifiability::{AnalyzeOptions, Regrouping, analyze};
use crate::linalg::{SplitMix, rank};
use crate::mechanism::{BodyKind, JointType, Mechanism};
use crate::{Error, Result};

/// A term of a joint's own model, linear in one unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Term {
    /// Viscous friction: `v`.
    Viscous,
    /// Coulomb friction: the sign of `v`.
    Coulomb,
    /// A constant force of sensor or drive.
    Offset,
    /// Inertia of what turns with the joint's drive, reflected to the joint: `a`.
    RotorInertia,
}

impl Term {
    /// Its name in results.
    pub fn name(self) -> &'static str {
        match self {
            Self::Viscous => "viscous",
            Self::Coulomb => "coulomb",
            Self::Offset => "offset",
            Self::RotorInertia => "rotor_inertia",
        }
    }

    /// Whether nature forbids negative values.
    pub fn is_nonnegative(self) -> bool {
        self != Self::Offset
    }

    /// What it multiplies, at a speed and an acceleration of the joint.
    pub(super) fn value(self, v: f64, a: f64) -> f64 {
        match self {
            Self::Viscous => v,
            Self::Coulomb if v == 0.0 => 0.0,
            Self::Coulomb => v.signum(),
            Self::Offset => 1.0,
            Self::RotorInertia => a,
        }
    }
}

/// Which terms the joints have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[allow(clippy::struct_excessive_bools)]
pub struct JointTerms {
    /// Viscous friction.
    pub viscous: bool,
    /// Coulomb friction.
    pub coulomb: bool,
    /// A constant offset of the measured torque.
    pub offset: bool,
    /// Reflected rotor inertia of joints whose rotor is no body of the model. Joints with an armature in the model have
    /// this term in any case.
    pub rotor_inertia: bool,
}

/// The linear equations `τ = Y_b β + terms` of a mechanism: its base parameters first, then the joints' terms.
#[derive(Debug, Clone)]
pub struct Equations<'m> {
    mechanism: &'m Mechanism,
    pub(super) dynamics: InverseDynamics,
    /// Base parameters and what they stand for.
    pub regrouping: Regrouping,
    /// Velocity coordinate and term of each unknown after the base parameters.
    pub terms: Vec<(usize, Term)>,
    /// Terms left out because base parameters already act exactly like them.
    pub absorbed: Vec<(usize, Term)>,
    /// Names of all unknowns.
    pub names: Vec<String>,
    pub(super) channels: Vec<Channel>,
}

/// The unknowns that act in the force of one velocity coordinate.
#[derive(Debug, Clone)]
pub(super) struct Channel {
    pub unknowns: Vec<usize>,
    /// Packed regressor entry of each of the first unknowns.
    pub entries: Vec<usize>,
    /// Terms of the unknowns after those.
    pub terms: Vec<Term>,
}

impl<'m> Equations<'m> {
    /// For a mechanism without loops; `snap` as for [`analyze`].
    pub fn new(mechanism: &'m Mechanism, wanted: JointTerms, snap: f64) -> Result<Self> {
        let mut out = Self::with_all_terms(mechanism, wanted, snap)?;
        out.absorb_terms()?;
        Ok(out)
    }

    /// The same with all terms, also those that act like base parameters: to predict forces, not to estimate.
    pub fn with_all_terms(mechanism: &'m Mechanism, wanted: JointTerms, snap: f64) -> Result<Self> {
        if !mechanism.loops().is_empty() {
            return Err(Error::Numeric(
                "the mechanism has loops: identification from logs is for open chains".into(),
            ));
        }
        // Complete measurement decides what the unknowns are; what a log does not measure is not excited.
        let analysis = analyze(mechanism, &AnalyzeOptions { snap, ..AnalyzeOptions::default() })?;
        let base_names = analysis.base_parameters.into_iter().map(|b| b.name).collect();
        let mut out = Self {
            mechanism,
            dynamics: InverseDynamics::new(mechanism),
            regrouping: analysis.regrouping,
            terms: terms(mechanism, wanted),
            absorbed: Vec::new(),
            names: base_names,
            channels: Vec::new(),
        };
        out.number();
        Ok(out)
    }

    /// The mechanism.
    pub fn mechanism(&self) -> &'m Mechanism {
        self.mechanism
    }

    /// Number of base parameters.
    pub fn rank(&self) -> usize {
        self.regrouping.rank()
    }

    /// Number of unknowns.
    pub fn len(&self) -> usize {
        self.rank() + self.terms.len()
    }

    /// Whether there is nothing to know.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The unknowns' values according to the model itself.
    pub fn model_values(&self) -> Result<Vec<f64>> {
        let mut out = self.regrouping.regroup(&self.mechanism.parameters())?;
        let joint_of = |v: usize| {
            self.mechanism.joints().iter().find(|j| j.follows.is_none() && j.v_range().contains(&v))
        };
        out.extend(self.terms.iter().map(|&(v, term)| {
            let dynamics = joint_of(v).map(|j| j.dynamics).unwrap_or_default();
            match term {
                Term::Viscous => dynamics.damping,
                Term::Coulomb => dynamics.friction,
                Term::Offset => 0.0,
                Term::RotorInertia => self.mechanism.armature()[v],
            }
        }));
        Ok(out)
    }

    /// Names the terms and finds the unknowns of each coordinate.
    fn number(&mut self) {
        let rank = self.rank();
        let coordinates = self.mechanism.velocity_names();
        self.names.truncate(rank);
        self.names.extend(self.terms.iter().map(|(v, term)| format!("{}.{}", coordinates[*v], term.name())));
        let mut number = vec![None; self.regrouping.parameters];
        self.regrouping.base.iter().enumerate().for_each(|(i, &column)| number[column] = Some(i));
        let layout = self.dynamics.layout();
        self.channels = (0..self.mechanism.nv())
            .map(|v| {
                let mut channel = Channel { unknowns: Vec::new(), entries: Vec::new(), terms: Vec::new() };
                for block in layout.row(v) {
                    for k in 0..block.len {
                        if let Some(unknown) = number[block.column + k] {
                            channel.unknowns.push(unknown);
                            channel.entries.push(block.start + k);
                        }
                    }
                }
                for (i, &(_, term)) in self.terms.iter().enumerate().filter(|(_, (w, _))| *w == v) {
                    channel.unknowns.push(rank + i);
                    channel.terms.push(term);
                }
                channel
            })
            .collect();
    }

    /// Leaves out rotor inertias that act exactly like base parameters (as that of a joint on the ground, which is part
    /// of its link's inertia about the axis): random motion decides.
    fn absorb_terms(&mut self) -> Result<()> {
        let rotor = |&(_, term): &(usize, Term)| term == Term::RotorInertia;
        if !self.terms.iter().any(rotor) {
            return Ok(());
        }
        let random = self.random_motion()?;
        let all = information(self, &random, &vec![1.0; self.channels.len()])?.matrix();
        let mut columns: Vec<usize> =
            (0..self.len()).filter(|&i| i < self.rank() || !rotor(&self.terms[i - self.rank()])).collect();
        let mut keep = vec![true; self.terms.len()];
        // Singular values of unit columns at random states fall to about 1e-4; a dependent one to rounding.
        let rank_of = |columns: &[usize]| -> Result<usize> {
            let mut part = all.select_columns(columns);
            part.column_iter_mut().for_each(|mut c| {
                let norm = c.norm();
                if norm > 0.0 {
                    c /= norm;
                }
            });
            Ok(rank(&part, 1e-10)?.rank)
        };
        let mut found = rank_of(&columns)?;
        for i in (0..self.terms.len()).filter(|&i| rotor(&self.terms[i])) {
            columns.push(self.rank() + i);
            let with = rank_of(&columns)?;
            if with == found {
                columns.pop();
                keep[i] = false;
                self.absorbed.push(self.terms[i]);
            }
            found = with;
        }
        let mut kept = keep.into_iter();
        self.terms.retain(|_| kept.next() == Some(true));
        self.number();
        Ok(())
    }

    fn random_motion(&self) -> Result<Summary> {
        let (nq, nv) = (self.mechanism.nq(), self.mechanism.nv());
        // Each sample gives one equation for each coordinate; three times as many as unknowns are plenty.
        let count = 3 * self.len() + 20;
        let mut random = SplitMix::new(1);
        let mut next = || (random.next_u64() >> 11) as f64 / (1u64 << 52) as f64 - 1.0;
        let (mut q, mut v, mut a) = (Vec::with_capacity(count * nq), Vec::new(), Vec::new());
        for _ in 0..count {
            let mut position = self.mechanism.neutral();
            let step: Vec<f64> = (0..nv).map(|_| 3.0 * next()).collect();
            self.mechanism.integrate(&mut position, &step);
            q.extend(position);
            v.extend((0..nv).map(|_| 3.0 * next()));
            a.extend((0..nv).map(|_| 10.0 * next()));
        }
        let samples = Samples::new(&self.dynamics, count, &q, &v, &a)?;
        let tau = vec![0.0; count * nv];
        Summary::new(self, &Measurements::new(samples, &v, &a, &tau))
    }
}

/// The terms of all coordinates that slide along or turn about one axis.
fn terms(mechanism: &Mechanism, wanted: JointTerms) -> Vec<(usize, Term)> {
    let mut out = Vec::new();
    let has_rotor = |joint: usize| {
        mechanism
            .bodies()
            .iter()
            .any(|b| b.joint == joint && matches!(b.kind, BodyKind::Rotor | BodyKind::SymmetricRotor))
    };
    for (index, joint) in mechanism.joints().iter().enumerate().filter(|(_, j)| j.follows.is_none()) {
        if matches!(joint.joint_type, JointType::Floating | JointType::Spherical | JointType::Planar { .. }) {
            continue;
        }
        for v in joint.v_range() {
            let rotor = (wanted.rotor_inertia && !has_rotor(index)) || mechanism.armature()[v] > 0.0;
            let choices = [
                (wanted.viscous, Term::Viscous),
                (wanted.coulomb, Term::Coulomb),
                (wanted.offset, Term::Offset),
                (rotor, Term::RotorInertia),
            ];
            out.extend(choices.iter().filter(|(wanted, _)| *wanted).map(|&(_, term)| (v, term)));
        }
    }
    out
}
