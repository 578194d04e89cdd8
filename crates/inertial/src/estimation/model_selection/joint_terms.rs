//! Selection of the joint model among all whose columns a summary contains: couplings, terms of each joint, Stribeck curves.

use nalgebra::DVector;

use crate::Result;
use crate::estimation::consistent::joint_term_prior::grounded_rotor_widths;
use crate::estimation::consistent::prior::Prior;
use crate::estimation::equations::Equations;
use crate::estimation::identification::criticism::{ReasonCode, Verdict};
use crate::estimation::identification::result::Identification;
use crate::estimation::joint_model::terms::Term;
use crate::estimation::model_selection::evidence::{OmittedTerm, Selection, TermChoice, select};
use crate::estimation::model_selection::{coupling, stribeck};
use crate::estimation::reduction::summary::Summary;
use crate::estimation::warning::Warning;

/// Largest number of coordinates for which Stribeck friction is tried. The search uses the columns of all joints at once, and its
/// cost grows with the cube of their number.
const MOST_STRIBECK: usize = 12;

/// Evidence of negative friction that makes a result doubtful: five standard errors. Clean logs of four arms show at most 8.
const NEGATIVE_FRICTION: f64 = 25.0;

/// Relative residual of a joint from which less evidence is sufficient.
const UNEXPLAINED: f64 = 0.5;

/// Expected share of rotors among the joints that the data decide, up to which the rotors of the other joints are dropped. Without
/// information in the data, it is about one half.
const ROTORS: f64 = 1.0 / 3.0;

/// Equations of the selected joint model, with the decisions.
pub(crate) struct Chosen<'m> {
    pub equations: Equations<'m>,
    /// Whether drives that turn with two joints were found.
    pub coupled: bool,
    /// Notes on drive couplings.
    notes: Vec<Warning>,
    /// Decisions on terms.
    terms: Vec<TermChoice>,
    /// Uncertainty due to removed terms.
    pub omitted_terms: Vec<OmittedTerm>,
    /// Equations with the rotor inertias of joints on the ground, if these were dropped.
    with_rotors: Option<Equations<'m>>,
}

impl<'m> Chosen<'m> {
    /// Returns the equations with the rotor inertias of joints on the ground that were dropped, if any.
    pub fn with_grounded_rotors(&self) -> Option<Equations<'m>> {
        let own = self.with_rotors.as_ref()?;
        (own.absorbed.len() > self.equations.absorbed.len()).then(|| self.equations.with_absorbed_of(own))
    }

    /// Returns whether the rotor inertia of any joint was selected.
    pub fn has_rotors(&self) -> bool {
        self.equations.terms.iter().any(|(_, term)| *term == Term::RotorInertia)
    }

    /// Adds the decisions to a result of these equations.
    pub fn explain(self, mut result: Identification) -> Identification {
        let mut contradicted: Vec<String> = self
            .terms
            .iter()
            .filter(|c| c.contradicted && c.evidence >= c.needed)
            .map(|c| format!("{}.{}", c.joint, c.term))
            .collect();
        contradicted.sort();
        if !contradicted.is_empty() {
            result.warnings.push(Warning::NegativeTerms { terms: contradicted });
        }
        let is_friction = |c: &TermChoice| [Term::Coulomb, Term::Viscous].iter().any(|t| t.name() == c.term);
        let is_unexplained =
            |c: &TermChoice| result.fit.iter().any(|r| r.joint == c.joint && r.relative_rms > UNEXPLAINED);
        let is_doubtful =
            |c: &TermChoice| c.evidence >= NEGATIVE_FRICTION || c.evidence >= c.needed && is_unexplained(c);
        let mut joints: Vec<&str> = self
            .terms
            .iter()
            .filter(|c| c.contradicted && is_friction(c) && is_doubtful(c))
            .map(|c| c.joint.as_str())
            .collect();
        joints.dedup();
        if !joints.is_empty() {
            let message = format!(
                "the friction of {} would be negative, which is impossible; check the signs of the torque and of the motion of \
                 each, and the order of the columns",
                joints.join(", ")
            );
            result.add_reason(ReasonCode::Friction, Verdict::Doubtful, &message);
        }
        result.warnings.extend(self.notes);
        result.terms = self.terms;
        result
    }
}

/// Selects the joint model.
pub(crate) fn choose<'m>(candidates: &Equations<'m>, summary: &Summary) -> Result<Chosen<'m>> {
    let found = coupling::search(candidates, summary)?;
    let mut out = Chosen {
        coupled: found.motors != candidates.motors(),
        equations: candidates.with_motors(found.motors),
        notes: found.notes,
        terms: Vec::new(),
        omitted_terms: Vec::new(),
        with_rotors: None,
    };
    out.equations.absorb_terms()?;
    if candidates.joint_model().auto.any() {
        out.choose_terms(candidates, summary)?;
    }
    if candidates.joint_model().stribeck {
        out.choose_stribeck(candidates, summary)?;
    }
    Ok(out)
}

impl<'m> Chosen<'m> {
    /// Selects the terms that the data support among the open ones.
    fn choose_terms(&mut self, candidates: &Equations<'m>, summary: &Summary) -> Result<()> {
        let auto = candidates.joint_model().auto;
        let projected = summary.project(candidates, &self.equations)?;
        let in_model = |row: usize| candidates.mechanism().armature()[candidates.tree_coordinate(row)] > 0.0;
        let open =
            |row: usize, term: Term| auto.covers(term) && !(term == Term::RotorInertia && in_model(row));
        let found = select(&self.equations, &projected, open)?;
        let rotors = || found.choices.iter().filter(|c| c.term == Term::RotorInertia.name());
        let expected = rotors().map(|c| if c.chosen { 1.0 } else { c.probability }).sum::<f64>();
        // The data cannot determine the rotors of joints on the ground: they are dropped if the data of the other joints contradict
        // rotors.
        let others = rotors().count() as f64;
        if auto.rotor_inertia && expected <= ROTORS * others {
            let probability = if others > 0.0 { expected / others } else { 0.0 };
            let omitted = self.omitted_grounded_rotors(probability)?;
            self.omitted_terms.extend(omitted);
            self.with_rotors = Some(self.equations.clone());
            self.equations.drop_grounded_rotors();
        }
        self.keep(found);
        Ok(())
    }

    /// Returns the uncertainty due to rotors of joints on the ground that are dropped although they exist with some probability.
    fn omitted_grounded_rotors(&self, probability: f64) -> Result<Vec<OmittedTerm>> {
        let widths = grounded_rotor_widths(&self.equations, &Prior::new(self.equations.mechanism())?)?;
        let dropped = self.equations.grounded_rotors().zip(widths).filter(|((_, _, given), _)| *given == 0.0);
        let omitted = |((_, effect, _), width): ((usize, DVector<f64>, f64), f64)| OmittedTerm {
            change: effect,
            variance: probability * width.powi(2),
            of_prior: true,
        };
        Ok(dropped.map(omitted).collect())
    }

    /// Finds the Stribeck curves of all joints or, if friction is selected from the data, of those that need one.
    fn choose_stribeck(&mut self, candidates: &Equations<'m>, summary: &Summary) -> Result<()> {
        let auto = candidates.joint_model().auto.friction;
        let slides = |v: &usize| !auto || self.equations.terms.contains(&(*v, Term::Coulomb));
        let mut motors = self.equations.motors().to_vec();
        let own: Vec<usize> = candidates.stribeck_motors(&motors).into_iter().filter(slides).collect();
        if own.is_empty() || (auto && candidates.coordinates() > MOST_STRIBECK) {
            return Ok(());
        }
        for (v, stribeck) in stribeck::choose(candidates, summary, &self.equations, &own)? {
            motors[v].stribeck = Some(stribeck);
        }
        let mut terms = self.equations.terms.clone();
        terms.extend(own.iter().map(|&v| (v, Term::Stribeck)));
        self.equations = self.equations.with_chosen(motors, terms);
        if auto {
            let open = |row: usize, term: Term| {
                term == Term::Stribeck
                    || (own.contains(&row) && matches!(term, Term::Coulomb | Term::Viscous))
            };
            let found = select(&self.equations, &summary.project(candidates, &self.equations)?, open)?;
            self.keep(found);
        }
        Ok(())
    }

    /// Drops the terms that were not selected.
    fn keep(&mut self, found: Selection) {
        let mut keep = found.keep.into_iter();
        let before = self.equations.terms.clone();
        let terms: Vec<(usize, Term)> =
            before.iter().copied().filter(|_| keep.next() == Some(true)).collect();
        self.omitted_terms.extend(found.omitted_terms);
        let base = 0..self.equations.rank();
        let place = |term: &(usize, Term)| before.iter().position(|other| other == term);
        // New unknowns do not appear in terms omitted earlier.
        for omitted in &mut self.omitted_terms {
            let own = |k: usize| omitted.change.get(k).copied().unwrap_or(0.0);
            let of_terms = terms.iter().map(|term| place(term).map_or(0.0, |k| own(base.end + k)));
            let all: Vec<f64> = base.clone().map(own).chain(of_terms).collect();
            omitted.change = DVector::from_vec(all);
        }
        let mut motors = self.equations.motors().to_vec();
        for (v, motor) in motors.iter_mut().enumerate() {
            if !terms.contains(&(v, Term::Stribeck)) {
                motor.stribeck = None;
            }
        }
        self.equations = self.equations.with_chosen(motors, terms);
        let again = |old: &TermChoice| {
            found.choices.iter().any(|new| (&new.joint, new.term) == (&old.joint, old.term))
        };
        self.terms.retain(|old| !again(old));
        self.terms.extend(found.choices);
    }
}
