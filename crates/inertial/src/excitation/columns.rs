//! Columns of a design: the unknowns to excite and the measured forces that they act in.

use crate::Result;
use crate::dynamics::PackedLayout;
use crate::identifiability::Regrouping;
use crate::mechanism::Mechanism;
use crate::unknowns::{Channel, TermKind, base_channels, base_names};

/// Speed (rad/s or m/s) below which a joint is at rest up to rounding and the sign is meaningless.
const AT_REST: f64 = 1e-9;

/// Assumed Stribeck friction `F sign(v) exp(−(|v|/vₛ)^δ)`: excess of the static friction over the sliding friction.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stribeck {
    /// Force `F`.
    pub force: f64,
    /// Speed `vₛ`, above zero.
    pub speed: f64,
    /// Exponent `δ`.
    pub exponent: f64,
}

impl Stribeck {
    /// Returns `(|v|/vₛ)^δ`.
    fn power(&self, v: f64) -> f64 {
        (v.abs() / self.speed).powf(self.exponent)
    }
}

/// Term of a joint model that is linear in one unknown, or linearized in it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum JointColumn {
    /// Viscous friction, with the velocity as column.
    Viscous,
    /// Coulomb friction, with the sign of the velocity as column.
    Coulomb,
    /// Coulomb friction of forward motion, with a column that is 1 for positive velocities.
    CoulombPositive,
    /// Coulomb friction of backward motion, with a column that is −1 for negative velocities.
    CoulombNegative,
    /// Stribeck friction, with the force `F` as unknown.
    Stribeck(Stribeck),
    /// Stribeck speed `vₛ`, in which the force is nonlinear: the column is the derivative at the assumed value.
    StribeckVelocity(Stribeck),
    /// Constant offset.
    Offset,
    /// Inertia at the joint, with the acceleration as column.
    RotorInertia,
}

impl JointColumn {
    /// Returns the kind of the term.
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

    /// Returns the name used in results, the same as in identification.
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

    /// Returns the derivatives with respect to velocity and acceleration (zero for the sign, as almost everywhere).
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

/// Unknowns of a design, the measured forces that they act in, and the noise of these forces.
#[derive(Debug, Clone)]
pub struct Columns {
    /// Names of the unknowns: base parameters, then joint terms.
    pub names: Vec<String>,
    /// Number of base parameters among them.
    pub base: usize,
    /// Velocity coordinate and kind of each term.
    pub terms: Vec<(usize, JointColumn)>,
    /// Terms that act exactly like other unknowns and are removed.
    pub absorbed: Vec<String>,
    /// Values of the unknowns according to the model.
    pub values: Vec<f64>,
    pub(super) rows: Vec<Row>,
}

/// Unknowns that act in the force of one measured velocity coordinate.
#[derive(Debug, Clone)]
pub(super) struct Row {
    pub v: usize,
    /// Inverse of the noise.
    pub weight: f64,
    /// Unknowns that act in the force, and the columns of the joint terms.
    pub channel: Channel<JointColumn>,
}

impl Columns {
    /// Creates columns of base parameters with names and values only; their effect is computed elsewhere.
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

    /// Returns the number of unknowns.
    pub fn len(&self) -> usize {
        self.base + self.terms.len()
    }

    /// Returns the squared number of unknowns of each measured force, added: the size of the sums of products.
    pub(super) fn products(&self) -> usize {
        self.rows.iter().map(|row| row.channel.unknowns.len().pow(2)).sum()
    }

    /// Returns whether there are no unknowns.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the scale of each unknown for relative errors: its magnitude, but at least a hundredth of the largest of its kind
    /// (values close to zero have no meaningful relative error).
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

    /// Sets the values of the terms according to the model; `tree` maps a coordinate to its index in the mechanism.
    pub(super) fn evaluate(&mut self, mechanism: &Mechanism, tree: impl Fn(usize) -> usize) {
        self.values.truncate(self.base);
        self.values.extend(self.terms.iter().map(|&(v, term)| match term {
            JointColumn::Stribeck(s) => s.force,
            JointColumn::StribeckVelocity(s) => s.speed,
            other => other.kind().model_value(mechanism, tree(v)),
        }));
    }
}
