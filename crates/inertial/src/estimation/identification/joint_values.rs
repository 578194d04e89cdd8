//! Equations of joints whose terms have known values.

use crate::estimation::equations::Equations;
use crate::estimation::identification::result::JointEstimate;
use crate::estimation::joint_model::stribeck::StribeckCurve;
use crate::estimation::joint_model::terms::{JointTerms, Term};
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
        let names = all.row_names();
        let row = |name: &str| {
            let found = names.iter().position(|n| n == name);
            found.ok_or_else(|| Error::UnknownName(format!("there is no joint {name}")))
        };
        let (mut motors, mut listed) = (all.motors().to_vec(), Vec::new());
        let (mut terms, mut values) = (Vec::new(), Vec::new());
        for joint in joints {
            let v = row(&joint.name)?;
            if listed.contains(&v) {
                return Err(Error::InvalidOption(format!("the joint {} is listed twice", joint.name)));
            }
            listed.push(v);
            if !joint.turns_with.is_empty() {
                let shaft: Result<Vec<_>> =
                    joint.turns_with.iter().map(|(name, &factor)| Ok((row(name)?, factor))).collect();
                motors[v].shaft = shaft?;
                motors[v].shaft.sort_by_key(|&(k, _)| k);
            }
            motors[v].stribeck = joint.stribeck_curve()?;
            let numbers = joint.values().map(|(_, x)| x).chain(joint.turns_with.values().copied());
            if !numbers.into_iter().all(f64::is_finite) {
                return Err(Error::InvalidOption(format!(
                    "the values of the joint {} are not finite",
                    joint.name
                )));
            }
            for (term, value) in joint.values() {
                terms.push((v, term));
                // Rotors that are bodies of the model have their own inertia.
                let of_bodies = if term == Term::RotorInertia { rotor_bodies(&all, v) } else { 0.0 };
                values.push(value - of_bodies);
            }
        }
        for &(v, term) in all.terms.iter().filter(|(v, _)| !listed.contains(v)) {
            terms.push((v, term));
            values.push(term.kind().model_value(mechanism, all.tree_coordinate(v)));
        }
        let mut out = all.regrouping.regroup(&mechanism.parameters())?;
        out.extend(values);
        Ok((all.with_chosen(motors, terms), out))
    }
}

/// Returns the inertia of the rotors that are bodies of the model, reflected to the joint that they drive.
fn rotor_bodies(equations: &Equations<'_>, row: usize) -> f64 {
    let v = equations.tree_coordinate(row);
    let bodies = equations.mechanism().bodies().iter();
    let own = bodies.filter(|b| b.kind == BodyKind::SymmetricRotor && b.drive.v == v);
    own.map(|b| b.drive.ratio.powi(2) * b.inertia.rotational[(2, 2)]).sum()
}
