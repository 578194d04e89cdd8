//! Kinds of joint terms: their names and their values in a model.

use crate::identifiability::Regrouping;
use crate::mechanism::Mechanism;

/// Kind of a joint term.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TermKind {
    /// Viscous friction.
    Viscous,
    /// Coulomb friction.
    Coulomb,
    /// Coulomb friction of forward motion.
    CoulombPositive,
    /// Coulomb friction of backward motion.
    CoulombNegative,
    /// Stribeck friction: excess of static friction over sliding friction.
    Stribeck,
    /// Stribeck speed.
    StribeckVelocity,
    /// Constant offset.
    Offset,
    /// Reflected rotor inertia.
    RotorInertia,
    /// User-defined term.
    Given,
}

impl TermKind {
    /// Returns the name in results.
    pub fn name(self) -> &'static str {
        match self {
            Self::Viscous => "viscous",
            Self::Coulomb => "coulomb",
            Self::CoulombPositive => "coulomb_positive",
            Self::CoulombNegative => "coulomb_negative",
            Self::Stribeck => "stribeck",
            Self::StribeckVelocity => "stribeck_velocity",
            Self::Offset => "offset",
            Self::RotorInertia => "rotor_inertia",
            Self::Given => "given",
        }
    }

    /// Returns the value in the model for a velocity coordinate of the mechanism; zero if the model has none.
    pub fn model_value(self, mechanism: &Mechanism, v: usize) -> f64 {
        let joint = mechanism.joints().iter().find(|j| j.follows.is_none() && j.v_range().contains(&v));
        let dynamics = joint.map(|j| j.dynamics).unwrap_or_default();
        match self {
            Self::Viscous => dynamics.damping,
            Self::Coulomb | Self::CoulombPositive | Self::CoulombNegative => dynamics.friction,
            Self::RotorInertia => mechanism.armature()[v],
            Self::Stribeck | Self::StribeckVelocity | Self::Offset | Self::Given => 0.0,
        }
    }
}

/// Returns the names of the base parameters: those of the parameters that represent them.
pub fn base_names(mechanism: &Mechanism, regrouping: &Regrouping) -> Vec<String> {
    let names = mechanism.parameter_names();
    regrouping.base.iter().map(|&column| names[column].clone()).collect()
}
