//! Unknowns of an identification: measured quantities and joint terms.

use inertial::estimation::{AutoTerms, Equations, JointModel, JointTerms};
use inertial::identifiability::Measured;
use inertial::mechanism::DEFAULT_SNAP;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::choice::{self, Coupling, Friction, Offset};
use crate::logs::TEXT_LIMIT;
use crate::{Context, Located, Model, Result, ensure_option};

/// Options that determine the unknowns.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Unknowns {
    /// Measured quantities besides the motion; joint torques by default, with a floating base also the base wrench.
    #[serde(with = "choice::optional")]
    #[schemars(with = "Option<choice::Words<Measured>>")]
    pub measured: Option<Measured>,
    /// Friction of the joints.
    #[serde(with = "choice")]
    #[schemars(with = "choice::Words<Friction>")]
    pub friction: Friction,
    /// Search for drives that are coupled to two neighbouring joints.
    #[serde(with = "choice")]
    #[schemars(with = "choice::Words<Coupling>")]
    pub coupling: Coupling,
    /// Name of the input with couplings, springs and other terms of the joints, in TOML.
    pub joint_model: Option<String>,
    /// Constant offsets of the joints' torques.
    #[serde(with = "choice::offset")]
    #[schemars(with = "choice::Words<Offset>")]
    pub offset: Offset,
}

inertial::with_changes!(Unknowns);

impl Unknowns {
    /// Returns the equations of the unknowns.
    pub fn equations<'m>(&self, model: &'m Model, context: &Context<'_>) -> Result<Equations<'m>> {
        self.equations_with(model, self.joint_model(model, context)?)
    }

    pub(crate) fn equations_with<'m>(&self, model: &'m Model, joints: JointModel) -> Result<Equations<'m>> {
        ensure_option!(
            self.measured != Some(Measured::Momentum),
            "measured",
            "estimation from momentum needs all samples of the logs; summaries, streams and fleets are not supported"
        );
        let measured = self.measured.unwrap_or(Measured::JointTorques);
        Equations::measuring(&model.mechanism, joints, DEFAULT_SNAP, measured).at(&model.label)
    }

    /// Returns the joint terms; those that the options do not fix are selected by the data.
    pub fn joint_model(&self, model: &Model, context: &Context<'_>) -> Result<JointModel> {
        let auto = AutoTerms::default().with(|t| {
            t.friction = self.friction == Friction::Auto;
            // Direction-dependent Coulomb friction already contains an offset.
            t.offset = self.offset == Offset::Auto && self.friction != Friction::Asymmetric;
            t.rotor_inertia = model.options.rotors.is_none();
        });
        self.with_auto(auto, model, context)
    }

    /// Returns the joint terms for jobs without automatic selection: viscous and Coulomb friction, and offsets,
    /// unless the options specify others.
    pub fn given_joint_model(&self, model: &Model, context: &Context<'_>) -> Result<JointModel> {
        let friction = self.given_friction();
        let open = self.offset == Offset::Auto && friction != Friction::Asymmetric;
        let offset = if open { Offset::Yes } else { self.offset };
        let all = Self { friction, offset, ..self.clone() };
        all.with_auto(AutoTerms::default(), model, context)
    }

    /// Returns the friction for jobs without automatic selection.
    pub(crate) fn given_friction(&self) -> Friction {
        if self.friction == Friction::Auto { Friction::Both } else { self.friction }
    }

    fn with_auto(&self, auto: AutoTerms, model: &Model, context: &Context<'_>) -> Result<JointModel> {
        let terms = JointTerms::default().with(|t| {
            t.viscous = auto.friction || self.friction.is_viscous();
            t.coulomb = auto.friction || self.friction.is_coulomb();
            t.offset = auto.offset || self.offset == Offset::Yes;
            t.rotor_inertia = auto.rotor_inertia || model.wants_rotors();
        });
        let mut out = match &self.joint_model {
            Some(name) => {
                let text = context.inputs.text(name, TEXT_LIMIT).at(name)?;
                JointModel::parse(&model.mechanism, terms, &text).at(name)?
            }
            None => JointModel::from(terms),
        };
        out.asymmetric = self.friction == Friction::Asymmetric;
        out.stribeck = auto.friction || self.friction == Friction::Stribeck;
        out.auto = auto;
        out.search_couplings = self.coupling == Coupling::Auto;
        Ok(out)
    }

    /// Returns the names of the inputs that are read.
    pub fn files(&self) -> impl Iterator<Item = String> + '_ {
        self.joint_model.iter().cloned()
    }
}
