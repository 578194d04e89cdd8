//! The unknowns that an experiment is to show, and the measured forces they act in.

use crate::Result;
use crate::dynamics::InverseDynamics;
use crate::identifiability::Regrouping;
use crate::mechanism::Mechanism;

/// Speeds (rad/s or m/s) below this are rounding of rest, whose sign means nothing.
const AT_REST: f64 = 1e-9;

/// Friction at rest above that of sliding, `F sign(v) exp(−(|v|/vₛ)^δ)`, as it is believed to be.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stribeck {
    /// The force `F`.
    pub force: f64,
    /// The speed `vₛ`, above zero.
    pub speed: f64,
    /// The exponent `δ`.
    pub exponent: f64,
}

impl Stribeck {
    /// `(|v|/vₛ)^δ`.
    fn power(&self, v: f64) -> f64 {
        (v.abs() / self.speed).powf(self.exponent)
    }
}

/// A term of a joint's own model that is linear in one unknown, or linearised in it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum JointColumn {
    /// Viscous friction: the velocity.
    Viscous,
    /// Coulomb friction: the sign of the velocity.
    Coulomb,
    /// Coulomb friction of forward motion: 1 where the velocity is above zero.
    CoulombPositive,
    /// Coulomb friction of backward motion: −1 where the velocity is below zero.
    CoulombNegative,
    /// Friction at rest above that of sliding: its force `F`.
    Stribeck(Stribeck),
    /// Its speed `vₛ`, in which the force is not linear: the derivative by it, about what is believed.
    StribeckVelocity(Stribeck),
    /// A constant.
    Offset,
    /// Inertia at the joint: the acceleration.
    RotorInertia,
}

impl JointColumn {
    /// Its name in results, as `identify` calls it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Viscous => "viscous",
            Self::Coulomb => "coulomb",
            Self::CoulombPositive => "coulomb_positive",
            Self::CoulombNegative => "coulomb_negative",
            Self::Stribeck(_) => "stribeck",
            Self::StribeckVelocity(_) => "stribeck_velocity",
            Self::Offset => "offset",
            Self::RotorInertia => "rotor_inertia",
        }
    }

    /// What the unknown multiplies at a velocity and an acceleration.
    pub fn value(self, v: f64, a: f64) -> f64 {
        let sign = if v.abs() < AT_REST { 0.0 } else { v.signum() };
        match self {
            Self::Viscous => v,
            Self::Coulomb => sign,
            Self::CoulombPositive => sign.max(0.0),
            Self::CoulombNegative => sign.min(0.0),
            Self::Stribeck(s) => sign * (-s.power(v)).exp(),
            Self::StribeckVelocity(s) => {
                let x = s.power(v);
                sign * s.force * s.exponent * x / s.speed * (-x).exp()
            }
            Self::Offset => 1.0,
            Self::RotorInertia => a,
        }
    }

    /// Derivatives with respect to velocity and acceleration (of the sign: zero, as almost everywhere).
    pub(super) fn slopes(self, v: f64) -> [f64; 2] {
        match self {
            Self::Viscous => [1.0, 0.0],
            Self::RotorInertia => [0.0, 1.0],
            Self::Stribeck(s) if v.abs() >= AT_REST => {
                let x = s.power(v);
                [-s.exponent * x / v.abs() * (-x).exp(), 0.0]
            }
            Self::StribeckVelocity(s) if v.abs() >= AT_REST => {
                let x = s.power(v);
                let slope = s.exponent * x / v.abs();
                [s.force * s.exponent / s.speed * slope * (1.0 - x) * (-x).exp(), 0.0]
            }
            _ => [0.0, 0.0],
        }
    }
}

/// Which unknowns act in which measured force, and how well that is measured.
#[derive(Debug, Clone)]
pub struct Columns {
    /// Names of the unknowns: base parameters, then terms of the joints.
    pub names: Vec<String>,
    /// How many of them are base parameters.
    pub base: usize,
    /// Velocity coordinate and kind of each term.
    pub terms: Vec<(usize, JointColumn)>,
    /// Terms that act exactly like other unknowns and are left out.
    pub absorbed: Vec<String>,
    /// The unknowns' values according to the model.
    pub values: Vec<f64>,
    pub(super) rows: Vec<Row>,
}

/// The unknowns that act in the force of one measured velocity coordinate.
#[derive(Debug, Clone)]
pub(super) struct Row {
    pub v: usize,
    /// One over the noise.
    pub weight: f64,
    pub unknowns: Vec<usize>,
    /// Packed regressor entry of each of the first unknowns.
    pub entries: Vec<usize>,
    /// Terms of those after.
    pub terms: Vec<JointColumn>,
}

impl Columns {
    /// Of base parameters whose effect is known elsewhere: names and values alone.
    pub(super) fn named(mechanism: &Mechanism, regrouping: &Regrouping) -> Result<Self> {
        let names = mechanism.parameter_names();
        Ok(Self {
            names: regrouping.base.iter().map(|&c| names[c].clone()).collect(),
            base: regrouping.rank(),
            terms: Vec::new(),
            absorbed: Vec::new(),
            values: regrouping.regroup(&mechanism.parameters())?,
            rows: Vec::new(),
        })
    }

    /// Number of unknowns.
    pub fn len(&self) -> usize {
        self.base + self.terms.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What a unit of relative error means for each unknown: its size, but at least a hundredth of the largest of its kind
    /// (what is near zero is not known to a part of itself).
    pub fn scales(&self) -> Vec<f64> {
        let kind = |name: &str| {
            let last = name.rsplit('.').next().unwrap_or(name);
            if last.starts_with('I') {
                'I'
            } else if last.starts_with('h') {
                'h'
            } else {
                last.chars().next().unwrap_or(' ')
            }
        };
        let kinds: Vec<char> = self.names.iter().map(|n| kind(n)).collect();
        let largest = |k: char| {
            let same = kinds.iter().zip(&self.values).filter(|(other, _)| **other == k);
            same.fold(0.0, |m: f64, (_, x)| m.max(x.abs()))
        };
        kinds
            .iter()
            .zip(&self.values)
            .map(|(k, x)| match x.abs().max(0.01 * largest(*k)) {
                0.0 => 1.0,
                size => size,
            })
            .collect()
    }

    pub(super) fn number(
        &mut self,
        mechanism: &Mechanism,
        dynamics: &InverseDynamics,
        regrouping: &Regrouping,
        noise: &[f64],
    ) {
        let coordinates = mechanism.velocity_names();
        self.names.truncate(self.base);
        self.names.extend(self.terms.iter().map(|(v, term)| format!("{}.{}", coordinates[*v], term.name())));
        let mut number = vec![None; regrouping.parameters];
        regrouping.base.iter().enumerate().for_each(|(i, &column)| number[column] = Some(i));
        let layout = dynamics.layout();
        self.rows = (0..mechanism.nv())
            .filter(|&v| noise[v].is_finite())
            .map(|v| {
                let entries =
                    layout.row(v).iter().flat_map(|b| (0..b.len).map(move |k| (b.column + k, b.start + k)));
                let (mut unknowns, entries): (Vec<_>, Vec<_>) =
                    entries.filter_map(|(c, e)| number[c].map(|u| (u, e))).unzip();
                let own = self.terms.iter().enumerate().filter(|(_, (w, _))| *w == v);
                let (more, terms): (Vec<_>, Vec<_>) =
                    own.map(|(i, &(_, term))| (self.base + i, term)).unzip();
                unknowns.extend(more);
                Row { v, weight: noise[v].recip(), unknowns, entries, terms }
            })
            .collect();
    }

    pub(super) fn evaluate(&mut self, mechanism: &Mechanism) {
        let dynamics = |v: usize| {
            let joint = mechanism.joints().iter().find(|j| j.follows.is_none() && j.v_range().contains(&v));
            joint.map(|j| j.dynamics).unwrap_or_default()
        };
        self.values.truncate(self.base);
        self.values.extend(self.terms.iter().map(|&(v, term)| match term {
            JointColumn::Viscous => dynamics(v).damping,
            JointColumn::Coulomb | JointColumn::CoulombPositive | JointColumn::CoulombNegative => {
                dynamics(v).friction
            }
            JointColumn::Stribeck(s) => s.force,
            JointColumn::StribeckVelocity(s) => s.speed,
            JointColumn::Offset => 0.0,
            JointColumn::RotorInertia => mechanism.armature()[v],
        }));
    }
}
