//! Unknowns of an identification: what is measured, and which terms the joints have.

use inertial::estimation::{Equations, JointModel, JointTerms};
use inertial::identifiability::Measured;
use inertial::mechanism::DEFAULT_SNAP;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::choice::{self, Coupling, Friction};
use crate::logs::TEXT_LIMIT;
use crate::{Context, Located, Model, Result, ensure_option};

/// Options that decide what the unknowns are.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Unknowns {
    /// What the sensors give besides the motion; by default joint torques, with a floating base both.
    #[serde(with = "choice::optional")]
    #[schemars(with = "Option<choice::Words<Measured>>")]
    pub measured: Option<Measured>,
    /// Friction of the joints.
    #[serde(with = "choice")]
    #[schemars(with = "choice::Words<Friction>")]
    pub friction: Friction,
    /// Search for drives that turn with two neighbouring joints.
    #[serde(with = "choice")]
    #[schemars(with = "choice::Words<Coupling>")]
    pub coupling: Coupling,
    /// Name of the input with couplings, springs and other terms of the joints, in TOML.
    pub joint_model: Option<String>,
    /// Whether a constant offset of each joint's torque is estimated.
    pub offset: bool,
}

impl Unknowns {
    /// Equations of the unknowns.
    pub fn equations<'m>(&self, model: &'m Model, context: &Context<'_>) -> Result<Equations<'m>> {
        self.equations_with(model, self.joint_model(model, context)?)
    }

    pub(crate) fn equations_with<'m>(&self, model: &'m Model, joints: JointModel) -> Result<Equations<'m>> {
        ensure_option!(
            self.measured != Some(Measured::Momentum),
            "measured",
            "estimates from momentum need every sample of the logs: there are no summaries, streams and fleets of it"
        );
        let measured = self.measured.unwrap_or(Measured::JointTorques);
        Equations::measuring(&model.mechanism, joints, DEFAULT_SNAP, measured).at(&model.label)
    }

    /// Terms of the joints.
    pub fn joint_model(&self, model: &Model, context: &Context<'_>) -> Result<JointModel> {
        let mut out = match &self.joint_model {
            Some(name) => {
                let text = context.inputs.text(name, TEXT_LIMIT).at(name)?;
                JointModel::parse(&model.mechanism, self.terms(model), &text).at(name)?
            }
            None => JointModel::from(self.terms(model)),
        };
        out.asymmetric = self.friction == Friction::Asymmetric;
        out.stribeck = self.friction == Friction::Stribeck;
        out.search_couplings = self.coupling == Coupling::Auto;
        Ok(out)
    }

    fn terms(&self, model: &Model) -> JointTerms {
        JointTerms {
            viscous: self.friction.is_viscous(),
            coulomb: self.friction.is_coulomb(),
            offset: self.offset,
            rotor_inertia: model.wants_rotors(),
        }
    }

    /// Names of inputs that are read.
    pub fn files(&self) -> impl Iterator<Item = String> + '_ {
        self.joint_model.iter().cloned()
    }
}
