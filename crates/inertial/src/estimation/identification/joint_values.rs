//! Equations of joints whose terms have known values.

use crate::estimation::equations::Equations;
use crate::estimation::identification::result::JointEstimate;
use crate::estimation::joint_model::stribeck::StribeckCurve;
use crate::estimation::joint_model::terms::{JointTerms, Motor, Term};
use crate::mechanism::{BodyKind, Mechanism};
use crate::{Error, Result};

impl JointEstimate {
    /// Returns the terms with their values, in the force of the drive of this joint.
    fn values(&self) -> impl Iterator<Item = (Term, f64)> {
        let all = [
            (Term::Viscous, self.viscous),
            (Term::Coulomb, self.coulomb),
            (Term::CoulombPositive, self.coulomb_positive),
            (Term::CoulombNegative, self.coulomb_negative),
            (Term::Stribeck, self.stribeck),
            (Term::Offset, self.offset),
            (Term::RotorInertia, self.rotor_inertia),
        ];
        all.into_iter().filter_map(|(term, value)| Some((term, value?)))
    }

    /// Removes the value of a term.
    pub(crate) fn omit(&mut self, term: Term) {
        let value = match term {
            Term::Viscous => &mut self.viscous,
            Term::Coulomb => &mut self.coulomb,
            Term::CoulombPositive => &mut self.coulomb_positive,
            Term::CoulombNegative => &mut self.coulomb_negative,
            Term::Stribeck => {
                (self.stribeck_velocity, self.stribeck_exponent) = (None, None);
                &mut self.stribeck
            }
            Term::Offset => &mut self.offset,
            Term::RotorInertia => &mut self.rotor_inertia,
            Term::Given { .. } => return,
        };
        *value = None;
    }

    /// Returns the speed and exponent of the Stribeck friction.
    fn stribeck_curve(&self) -> Result<Option<StribeckCurve>> {
        let positive = |x: Option<f64>, what: &str| {
            x.filter(|x| *x > 0.0 && x.is_finite()).ok_or_else(|| {
                Error::InvalidOption(format!("{}: {what} must be a positive number", self.name))
            })
        };
        if self.stribeck.is_none() {
            return Ok(None);
        }
        Ok(Some(StribeckCurve {
            speed: positive(self.stribeck_velocity, "stribeck_velocity")?,
            exponent: positive(self.stribeck_exponent, "stribeck_exponent")?,
        }))
    }
}

/// Terms of listed joints.
struct ListedJoints {
    motors: Vec<Motor>,
    /// Rows of the listed joints.
    rows: Vec<usize>,
    /// Terms with their values.
    terms: Vec<((usize, Term), f64)>,
}

/// Equations of joints of which some terms are known.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct KnownJoints<'m> {
    /// Equations with the known terms and the others.
    pub equations: Equations<'m>,
    /// Values of all unknowns; zero for terms that are not known.
    pub values: Vec<f64>,
    /// Whether each of [`Equations::terms`] is known.
    pub known: Vec<bool>,
}

impl<'m> Equations<'m> {
    /// Creates the equations of a mechanism whose joints have the given terms, with the values of all unknowns: for predicting
    /// forces.
    ///
    /// A listed joint has exactly these terms; the others have the friction and armature of the mechanism. Terms of formulas and
    /// drive gains are ignored.
    pub fn with_joint_values(
        mechanism: &'m Mechanism,
        joints: &[JointEstimate],
        snap: f64,
    ) -> Result<(Self, Vec<f64>)> {
        let usual = JointTerms { viscous: true, coulomb: true, ..JointTerms::default() };
        let all = Self::with_all_terms(mechanism, usual, snap)?;
        let ListedJoints { motors, rows, terms } = all.listed(joints)?;
        let others = all.terms.iter().filter(|(v, _)| !rows.contains(v));
        let others = others.map(|&(v, term)| ((v, term), all.value_of_model(v, term)));
        let (terms, values): (Vec<_>, Vec<f64>) = terms.into_iter().chain(others).unzip();
        let mut out = all.regrouping.regroup(&mechanism.parameters())?;
        out.extend(values);
        Ok((all.with_chosen(motors, terms), out))
    }

    /// Adds the terms of listed joints and determines which terms are known: all those of listed joints (terms that are not listed are
    /// zero), and for the others those that the mechanism gives.
    ///
    /// The mechanism gives friction if any of its joints has friction.
    pub fn with_known_joints(&self, joints: &[JointEstimate]) -> Result<KnownJoints<'m>> {
        let mechanism = self.mechanism();
        let ListedJoints { motors, rows, terms: listed } = self.listed(joints)?;
        let has = |v: usize, term: Term| listed.iter().any(|(own, _)| *own == (v, term));
        let has_friction =
            mechanism.joints().iter().any(|j| j.dynamics.damping != 0.0 || j.dynamics.friction != 0.0);
        let mut terms: Vec<((usize, Term), f64, bool)> =
            listed.iter().map(|&(own, x)| (own, x, true)).collect();
        for &(v, term) in &self.terms {
            // Coulomb friction of both directions contains the symmetric one and an offset.
            let is_contained = matches!(term, Term::Coulomb | Term::Offset) && has(v, Term::CoulombPositive);
            if has(v, term) || is_contained {
                continue;
            }
            let value = self.value_of_model(v, term);
            let is_given = match term {
                Term::Viscous | Term::Coulomb => has_friction,
                _ => value != 0.0,
            };
            let is_listed = rows.contains(&v) && !matches!(term, Term::Given { .. });
            terms.push(((v, term), if is_listed { 0.0 } else { value }, is_listed || is_given));
        }
        let mut values = self.regrouping.regroup(&mechanism.parameters())?;
        values.extend(terms.iter().map(|(_, value, _)| value));
        let known = terms.iter().map(|(.., known)| *known).collect();
        let equations = self.with_chosen(motors, terms.into_iter().map(|(own, ..)| own).collect());
        Ok(KnownJoints { equations, values, known })
    }

    fn value_of_model(&self, v: usize, term: Term) -> f64 {
        term.kind().model_value(self.mechanism(), self.tree_coordinate(v))
    }

    /// Returns the terms of listed joints, and all motors with the shafts and Stribeck curves of the list.
    fn listed(&self, joints: &[JointEstimate]) -> Result<ListedJoints> {
        let names = self.row_names();
        let row = |name: &str| {
            let found = names.iter().position(|n| n == name);
            found.ok_or_else(|| Error::UnknownName(format!("there is no joint {name}")))
        };
        let mut out = ListedJoints { motors: self.motors().to_vec(), rows: Vec::new(), terms: Vec::new() };
        for joint in joints {
            let v = row(&joint.name)?;
            if out.rows.contains(&v) {
                return Err(Error::InvalidOption(format!("the joint {} is listed twice", joint.name)));
            }
            out.rows.push(v);
            let motor = &mut out.motors[v];
            if !joint.turns_with.is_empty() {
                let shaft: Result<Vec<_>> =
                    joint.turns_with.iter().map(|(name, &factor)| Ok((row(name)?, factor))).collect();
                motor.shaft = shaft?;
                motor.shaft.sort_by_key(|&(k, _)| k);
            }
            motor.stribeck = joint.stribeck_curve()?;
            let numbers = joint.values().map(|(_, x)| x).chain(joint.turns_with.values().copied());
            if !numbers.into_iter().all(f64::is_finite) {
                return Err(Error::InvalidOption(format!(
                    "the values of the joint {} are not finite",
                    joint.name
                )));
            }
            for (term, value) in joint.values() {
                // Rotors that are bodies of the model have their own inertia.
                let of_bodies = if term == Term::RotorInertia { rotor_bodies(self, v) } else { 0.0 };
                out.terms.push(((v, term), value - of_bodies));
            }
        }
        Ok(out)
    }
}

/// Returns the inertia of the rotors that are bodies of the model, reflected to the joint that they drive.
fn rotor_bodies(equations: &Equations<'_>, row: usize) -> f64 {
    let v = equations.tree_coordinate(row);
    let bodies = equations.mechanism().bodies().iter();
    let own = bodies.filter(|b| b.kind == BodyKind::SymmetricRotor && b.drive.v == v);
    own.map(|b| b.drive.ratio.powi(2) * b.inertia.rotational[(2, 2)]).sum()
}
