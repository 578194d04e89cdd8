//! Joint terms, each linear in one unknown.

use serde::{Deserialize, Serialize};

use crate::estimation::joint_model::expression::Expression;
use crate::estimation::joint_model::stribeck::{EXPONENTS, StribeckCurve};
use crate::mechanism::{BodyKind, JointType, Mechanism};
use crate::unknowns::TermKind;

/// Term of a joint model, linear in one unknown. `v` and `a` are speed and acceleration of the drive of the joint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Term {
    /// Viscous friction: `v`.
    Viscous,
    /// Coulomb friction: the sign of `v`.
    Coulomb,
    /// Coulomb friction of forward motion: 1 where `v > 0`.
    CoulombPositive,
    /// Coulomb friction of backward motion: −1 where `v < 0`.
    CoulombNegative,
    /// Excess of the static friction over the sliding friction, or its negative if friction grows less than linearly with speed:
    /// `sign(v) exp(−(|v|/vₛ)^δ)`.
    Stribeck,
    /// Constant force of sensor or drive.
    Offset,
    /// Inertia of the rotating parts of the drive, reflected to the joint: `a`.
    RotorInertia,
    /// User-defined term.
    Given {
        /// Index in [`JointModel::given`].
        index: usize,
        /// Whether the value must be nonnegative.
        nonnegative: bool,
    },
}

impl Term {
    /// Returns the kind of the term.
    pub fn kind(self) -> TermKind {
        match self {
            Self::Viscous => TermKind::Viscous,
            Self::Coulomb => TermKind::Coulomb,
            Self::CoulombPositive => TermKind::CoulombPositive,
            Self::CoulombNegative => TermKind::CoulombNegative,
            Self::Stribeck => TermKind::Stribeck,
            Self::Offset => TermKind::Offset,
            Self::RotorInertia => TermKind::RotorInertia,
            Self::Given { .. } => TermKind::Given,
        }
    }

    /// Returns the name used in results.
    pub fn name(self) -> &'static str {
        self.kind().name()
    }

    /// Returns whether the value must be nonnegative.
    pub fn is_nonnegative(self) -> bool {
        match self {
            Self::Offset | Self::Stribeck => false,
            Self::Given { nonnegative, .. } => nonnegative,
            _ => true,
        }
    }

    /// Returns whether the term acts in the force of its own joint only, independent of the coupling of the drive.
    fn is_local(self) -> bool {
        matches!(self, Self::Offset | Self::Given { .. })
    }
}

/// Joint terms to estimate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[allow(clippy::struct_excessive_bools)]
#[non_exhaustive]
pub struct JointTerms {
    /// Viscous friction.
    pub viscous: bool,
    /// Coulomb friction.
    pub coulomb: bool,
    /// Constant offset of the measured torque.
    pub offset: bool,
    /// Reflected rotor inertia of joints whose rotor is not a body of the model. Joints with an armature in the model always have
    /// this term.
    pub rotor_inertia: bool,
}

crate::with_changes!(JointTerms);

impl JointTerms {
    /// Returns viscous and Coulomb friction.
    pub const fn friction() -> Self {
        Self { viscous: true, coulomb: true, offset: false, rotor_inertia: false }
    }
}

/// Kinds of terms that are selected from the data. The joint model contains all terms of such a kind, and the term of each joint
/// is kept or removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct AutoTerms {
    /// Viscous, Coulomb and Stribeck friction.
    pub friction: bool,
    /// Offsets.
    pub offset: bool,
    /// Rotor inertias; those given by the model are kept.
    pub rotor_inertia: bool,
}

crate::with_changes!(AutoTerms);

impl AutoTerms {
    /// Returns whether any kind of term is selected from the data.
    pub fn any(self) -> bool {
        self.friction || self.offset || self.rotor_inertia
    }

    /// Returns whether a kind of term is selected from the data.
    pub(crate) fn covers(self, term: Term) -> bool {
        match term {
            Term::Viscous
            | Term::Coulomb
            | Term::CoulombPositive
            | Term::CoulombNegative
            | Term::Stribeck => self.friction,
            Term::Offset => self.offset,
            Term::RotorInertia => self.rotor_inertia,
            Term::Given { .. } => false,
        }
    }
}

/// Drive that turns with a combination of joint speeds. Its friction and rotor inertia act, with the same coefficients, in the
/// force of each of these joints (virtual work).
#[derive(Debug, Clone, PartialEq)]
pub struct Coupling {
    /// Velocity coordinate that the drive is named after.
    pub motor: usize,
    /// Velocity coordinates and their coefficients, by coordinate.
    pub shaft: Vec<(usize, f64)>,
}

/// User-defined term in the force of one coordinate.
#[derive(Debug, Clone)]
pub struct GivenTerm {
    /// Name in results.
    pub name: String,
    /// Velocity coordinate in whose force the term acts.
    pub coordinate: usize,
    /// Expression that is multiplied by the unknown.
    pub expression: Expression,
    /// Whether the value must be nonnegative.
    pub nonnegative: bool,
}

/// Model of the joints.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct JointModel {
    /// Standard terms of all joints.
    pub terms: JointTerms,
    /// Whether Coulomb friction is estimated per direction; [`JointTerms::coulomb`] is then ignored.
    pub asymmetric: bool,
    /// Whether Stribeck friction is estimated, with speed and exponent found from the data.
    pub stribeck: bool,
    /// Known drives that turn with several joints.
    pub couplings: Vec<Coupling>,
    /// Whether to search for drives that turn with two neighbouring joints.
    pub search_couplings: bool,
    /// Kinds of the terms above that are selected from the data.
    pub auto: AutoTerms,
    /// User-defined terms.
    pub given: Vec<GivenTerm>,
    /// Names of the additional log columns that these terms use.
    pub columns: Vec<String>,
}

crate::with_changes!(JointModel);

impl JointModel {
    /// Returns the exponents of the Stribeck curves that are tried. If friction is selected from the data, the exponent of Tustin
    /// is sufficient to detect that a curve is needed. The columns of the other exponent would double the cost.
    pub(crate) fn stribeck_exponents(&self) -> &'static [f64] {
        if self.auto.friction { &EXPONENTS[..1] } else { &EXPONENTS }
    }
}

impl From<JointTerms> for JointModel {
    fn from(terms: JointTerms) -> Self {
        Self { terms, ..Self::default() }
    }
}

/// Drive of a joint.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Motor {
    /// Velocity coordinates that the drive turns with, in ascending order.
    pub shaft: Vec<(usize, f64)>,
    /// Stribeck curve.
    pub stribeck: Option<StribeckCurve>,
}

/// Regressor column of one unknown in the force of a coordinate.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Feature {
    pub term: Term,
    pub shaft: Vec<(usize, f64)>,
    pub stribeck: Option<StribeckCurve>,
}

impl Feature {
    /// Creates the feature of a term of a motor.
    pub fn new(term: Term, motor: &Motor) -> Self {
        let shaft = if term.is_local() { Vec::new() } else { motor.shaft.clone() };
        Self { term, shaft, stribeck: motor.stribeck.filter(|_| term == Term::Stribeck) }
    }

    /// Creates the feature of a term on a given shaft.
    pub fn on(term: Term, shaft: &[(usize, f64)]) -> Self {
        Self { term, shaft: shaft.to_vec(), stribeck: None }
    }
}

/// Returns the rows in which a term of the motor of coordinate `v` acts, with their factors.
pub(crate) fn rows(term: Term, v: usize, motor: &Motor) -> Vec<(usize, f64)> {
    if term.is_local() { vec![(v, 1.0)] } else { motor.shaft.clone() }
}

/// Returns the motors of a mechanism. Each one turns with its own joint, except for the couplings.
pub(crate) fn motors(nv: usize, couplings: &[Coupling]) -> Vec<Motor> {
    let mut out: Vec<Motor> = (0..nv).map(|v| Motor { shaft: vec![(v, 1.0)], stribeck: None }).collect();
    for coupling in couplings {
        let mut shaft = coupling.shaft.clone();
        shaft.sort_by_key(|&(v, _)| v);
        out[coupling.motor].shaft = shaft;
    }
    out
}

/// Returns the terms of all coordinates that slide along or rotate about one axis.
pub(crate) fn terms(mechanism: &Mechanism, model: &JointModel) -> Vec<(usize, Term)> {
    let mut out = Vec::new();
    let wanted = model.terms;
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
                (wanted.coulomb && !model.asymmetric, Term::Coulomb),
                (model.asymmetric, Term::CoulombPositive),
                (model.asymmetric, Term::CoulombNegative),
                (model.stribeck, Term::Stribeck),
                (wanted.offset, Term::Offset),
                (rotor, Term::RotorInertia),
            ];
            out.extend(choices.iter().filter(|(wanted, _)| *wanted).map(|&(_, term)| (v, term)));
        }
    }
    out.extend(
        model
            .given
            .iter()
            .enumerate()
            .map(|(index, given)| (given.coordinate, Term::Given { index, nonnegative: given.nonnegative })),
    );
    out
}
