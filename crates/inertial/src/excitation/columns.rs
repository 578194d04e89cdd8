//! Columns of a design: the unknowns to excite and the measured forces they act in.

use crate::Result;
use crate::dynamics::PackedLayout;
use crate::identifiability::Regrouping;
use crate::mechanism::Mechanism;
use crate::unknowns::{Channel, TermKind, base_channels, base_names};

/// Speeds (rad/s or m/s) below this are rounding of rest, whose sign means nothing.
const AT_REST: f64 = 1e-9;

/// Assumed Stribeck friction, `F sign(v) exp(−(|v|/vₛ)^δ)`: friction at rest above that of sliding.
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

/// A term of a joint's own model that is linear in one unknown, or linearized in it.
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
    /// Speed `vₛ`, in which the force is not linear: the derivative by it, at the assumed value.
    StribeckVelocity(Stribeck),
    /// A constant.
    Offset,
    /// Inertia at the joint: the acceleration.
    RotorInertia,
}

impl JointColumn {
    /// Kind of the term.
    pub fn kind(self) -> TermKind {
        match self {
            Self::Viscous => TermKind::Viscous,
            Self::Coulomb => TermKind::Coulomb,
            Self::CoulombPositive => TermKind::CoulombPositive,
            Self::CoulombNegative => TermKind::CoulombNegative,
            Self::Stribeck(_) => TermKind::Stribeck,
            Self::StribeckVelocity(_) => TermKind::StribeckVelocity,
            Self::Offset => TermKind::Offset,
            Self::RotorInertia => TermKind::RotorInertia,
        }
    }

    /// Name in results, the same as in identification.
    pub fn name(self) -> &'static str {
        self.kind().name()
    }

    /// Evaluates the column at a velocity and an acceleration.
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

/// Unknowns of a design, the measured forces they act in, and the noise of these.
#[derive(Debug, Clone)]
pub struct Columns {
    /// Names of the unknowns: base parameters, then terms of the joints.
    pub names: Vec<String>,
    /// Number of base parameters among them.
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
    /// Unknowns that act in it, and the columns of the joint terms.
    pub channel: Channel<JointColumn>,
}

impl Columns {
    /// Creates columns of base parameters with names and values alone; their effect is computed elsewhere.
    pub(super) fn named(mechanism: &Mechanism, regrouping: &Regrouping) -> Result<Self> {
        Ok(Self {
            names: base_names(mechanism, regrouping),
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

    /// Returns whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Scale of each unknown for relative errors: its size, but at least a hundredth of the largest of its kind
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

    /// Names the terms and finds the unknowns of each of the named coordinates.
    pub(super) fn number(
        &mut self,
        coordinates: &[String],
        layout: &PackedLayout,
        regrouping: &Regrouping,
        noise: &[f64],
    ) {
        self.names.truncate(self.base);
        self.names.extend(self.terms.iter().map(|(v, term)| format!("{}.{}", coordinates[*v], term.name())));
        let mut channels = base_channels(regrouping, layout, coordinates.len());
        for (i, &(v, term)) in self.terms.iter().enumerate() {
            channels[v].push(self.base + i, term);
        }
        let rows = channels.into_iter().enumerate().filter(|(v, _)| noise[*v].is_finite());
        self.rows = rows.map(|(v, channel)| Row { v, weight: noise[v].recip(), channel }).collect();
    }

    /// Sets the values of the terms according to the model; `tree` gives the mechanism's number of a coordinate.
    pub(super) fn evaluate(&mut self, mechanism: &Mechanism, tree: impl Fn(usize) -> usize) {
        self.values.truncate(self.base);
        self.values.extend(self.terms.iter().map(|&(v, term)| match term {
            JointColumn::Stribeck(s) => s.force,
            JointColumn::StribeckVelocity(s) => s.speed,
            other => other.kind().model_value(mechanism, tree(v)),
        }));
    }
}
