//! Equations of measured forces, with the unknowns of each force.

use std::sync::Arc;

use nalgebra::DVector;

use crate::dynamics::{ClosedMechanism, InverseDynamics, Samples};
use crate::estimation::joint_model::stribeck::StribeckCurve;
use crate::estimation::joint_model::terms::{self, Feature, GivenTerm, JointModel, Motor, Term};
use crate::identifiability::{AnalyzeOptions, Measured, Regrouping, analyze};
use crate::mechanism::{Base, JointType, Mechanism};
use crate::unknowns::{base_channels, full_channels};
use crate::{Error, Result};

/// Names of the components of a wrench: force, then moment.
pub const WRENCH_AXES: [&str; 6] = ["fx", "fy", "fz", "tx", "ty", "tz"];

/// Linear equations `τ = Y_b β + terms` of a mechanism: the base parameters first, then the joint terms.
///
/// If parts of the joint model are found from the data (couplings, Stribeck speeds), the terms are all candidate columns, each in
/// the force of one coordinate, and `identify` selects among them.
#[derive(Debug, Clone)]
pub struct Equations<'m> {
    mechanism: &'m Mechanism,
    pub(crate) dynamics: InverseDynamics,
    /// Base parameters and their expressions.
    pub regrouping: Regrouping,
    /// Velocity coordinate and term of each unknown after the base parameters.
    pub terms: Vec<(usize, Term)>,
    /// Terms removed because base parameters act exactly like them.
    pub absorbed: Vec<(usize, Term)>,
    /// Change of the other unknowns per unit of each removed term.
    pub(crate) effects: Vec<Effect>,
    /// Names of all unknowns.
    pub names: Vec<String>,
    /// Forces of the coordinates, followed by the six components of the wrench on a fixed base if it is measured.
    pub(crate) channels: Vec<Channel>,
    /// Closed mechanism, if there are loops.
    closed: Option<Arc<ClosedMechanism<'m>>>,
    wrench: bool,
    motors: Vec<Motor>,
    /// All terms of the joint model, estimated or not.
    all_terms: Vec<(usize, Term)>,
    model: JointModel,
    snap: f64,
    has_candidates: bool,
}

/// Change of base parameters and joint terms that acts like one unit of a removed term.
#[derive(Debug, Clone)]
pub(crate) struct Effect {
    pub base: DVector<f64>,
    /// Joint terms with their changes. On a vertical slide, the weight of a rotor's equivalent mass is that of an offset.
    pub terms: Vec<((usize, Term), f64)>,
}

impl Effect {
    /// Returns the change of all unknowns; `None` if one of the joint terms is not an unknown.
    fn on(&self, equations: &Equations<'_>) -> Option<DVector<f64>> {
        let mut out = self.base.clone().resize_vertically(equations.len(), 0.0);
        for (term, change) in &self.terms {
            out[equations.rank() + equations.terms.iter().position(|other| other == term)?] = *change;
        }
        Some(out)
    }
}

/// Unknowns of one measured force. Each joint term has a feature with a factor.
pub(crate) type Channel = crate::unknowns::Channel<(f64, Feature)>;

impl<'m> Equations<'m> {
    /// Creates the equations with all terms, including those that act like base parameters: for predicting forces, not for
    /// estimation.
    pub fn with_all_terms(mechanism: &'m Mechanism, model: impl Into<JointModel>, snap: f64) -> Result<Self> {
        Self::with_all_terms_measuring(mechanism, model, snap, Measured::JointTorques)
    }

    pub(crate) fn with_all_terms_measuring(
        mechanism: &'m Mechanism,
        model: impl Into<JointModel>,
        snap: f64,
        measured: Measured,
    ) -> Result<Self> {
        let closed = match mechanism.loops() {
            [] => None,
            _ => Some(Arc::new(ClosedMechanism::new(mechanism)?)),
        };
        let wrench =
            mechanism.base() == Base::Fixed && matches!(measured, Measured::BaseWrench | Measured::Both);
        let mut model = model.into();
        check(mechanism, &model)?;
        if let Some(closed) = &closed {
            on_independent(&mut model, closed, &mechanism.velocity_names())?;
        }
        // Complete measurement defines the unknowns. Unknowns that a log does not measure are not excited.
        let mut options = AnalyzeOptions { snap, ..AnalyzeOptions::default() };
        options.measured = wrench.then_some(measured);
        let analysis = analyze(mechanism, &options)?;
        let base_names = analysis.base_parameters.into_iter().map(|b| b.name).collect();
        let mut terms = terms::terms(mechanism, &model);
        if let Some(closed) = &closed {
            terms = terms
                .into_iter()
                .filter_map(|(v, term)| match term {
                    Term::Given { .. } => Some((v, term)),
                    _ => closed.independent().iter().position(|&k| k == v).map(|row| (row, term)),
                })
                .collect();
        }
        let coordinates = closed.as_ref().map_or(mechanism.nv(), |c| c.dof());
        let mut out = Self {
            mechanism,
            dynamics: InverseDynamics::new(mechanism),
            regrouping: analysis.regrouping.listed()?,
            absorbed: Vec::new(),
            effects: Vec::new(),
            names: base_names,
            channels: Vec::new(),
            closed,
            wrench,
            motors: terms::motors(coordinates, &model.couplings),
            all_terms: terms.clone(),
            terms,
            model,
            snap,
            has_candidates: false,
        };
        out.number();
        Ok(out)
    }

    /// Returns the mechanism.
    pub fn mechanism(&self) -> &'m Mechanism {
        self.mechanism
    }

    /// Returns the mechanism on its independent coordinates, if it has loops.
    pub fn closed(&self) -> Option<&ClosedMechanism<'m>> {
        self.closed.as_deref()
    }

    /// Borrows `count` samples of the motion of the mechanism, sample after sample: `nq` positions each, and as many velocities
    /// and accelerations as there are [coordinates](Self::coordinates). Positions must close the loops, if there are any.
    pub fn samples<'a>(&self, count: usize, q: &'a [f64], v: &'a [f64], a: &'a [f64]) -> Result<Samples<'a>> {
        match self.closed() {
            Some(closed) => Samples::closed(closed, count, q, v, a),
            None => Samples::new(&self.dynamics, count, q, v, a),
        }
    }

    /// Returns the number of coordinates: those of the mechanism, or the independent ones if there are loops.
    pub fn coordinates(&self) -> usize {
        self.motors.len()
    }

    /// Returns whether the wrench on a fixed base is measured: six forces after those of the coordinates.
    pub fn has_base_wrench(&self) -> bool {
        self.wrench
    }

    /// Returns the name of a joint term, or of a column given by the user.
    pub(crate) fn short_name(&self, term: Term) -> &str {
        match term {
            Term::Given { index, .. } => &self.joint_model().given[index].name,
            _ => term.name(),
        }
    }

    /// Returns the names of the forces.
    pub fn row_names(&self) -> Vec<String> {
        self.rows_of(self.mechanism.velocity_names())
    }

    /// Returns the names of the forces of all rows; they differ from those of the rows for a floating joint (`root.fx`, not
    /// `root.vx`).
    pub fn force_names(&self) -> Vec<String> {
        self.rows_of(self.mechanism.force_names())
    }

    /// Returns the names of the rows from those of all coordinates of the mechanism.
    fn rows_of(&self, names: Vec<String>) -> Vec<String> {
        let mut out = match self.closed() {
            Some(closed) => closed.independent().iter().map(|&k| names[k].clone()).collect(),
            None => names,
        };
        if self.wrench {
            out.extend(WRENCH_AXES.map(|axis| format!("wrench.{axis}")));
        }
        out
    }

    /// Returns the index of a coordinate in the mechanism.
    pub(crate) fn tree_coordinate(&self, row: usize) -> usize {
        self.closed().map_or(row, |c| c.independent()[row])
    }

    /// Returns the joint model.
    pub fn joint_model(&self) -> &JointModel {
        &self.model
    }

    /// Returns the snapping tolerance.
    pub(crate) fn snap(&self) -> f64 {
        self.snap
    }

    /// Returns whether the terms are candidates from which a joint model is selected.
    pub(crate) fn has_candidates(&self) -> bool {
        self.has_candidates
    }

    pub(crate) fn motors(&self) -> &[Motor] {
        &self.motors
    }

    /// Returns speed and exponent of the Stribeck friction of the drive of a coordinate, if it has any.
    pub fn stribeck_curve(&self, coordinate: usize) -> Option<StribeckCurve> {
        self.motors[coordinate].stribeck
    }

    /// Returns the number of base parameters.
    pub fn rank(&self) -> usize {
        self.regrouping.rank()
    }

    /// Returns the number of unknowns.
    pub fn len(&self) -> usize {
        self.rank() + self.terms.len()
    }

    /// Returns whether there are no unknowns.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the rotor inertias that act like other unknowns: row, effect on the unknowns, and value of the model (zero if it has
    /// none).
    pub(crate) fn grounded_rotors(&self) -> impl Iterator<Item = (usize, DVector<f64>, f64)> {
        let all = self.absorbed.iter().zip(&self.effects);
        all.filter_map(|(&(row, _), effect)| Some((row, effect.on(self)?, self.rotor_of_model(row))))
    }

    fn rotor_of_model(&self, row: usize) -> f64 {
        self.mechanism.armature()[self.tree_coordinate(row)]
    }

    /// Removes the rotor inertias that act like other unknowns, unless the model gives them.
    pub(crate) fn drop_grounded_rotors(&mut self) {
        let given: Vec<bool> = self.absorbed.iter().map(|&(row, _)| self.rotor_of_model(row) > 0.0).collect();
        let mut kept = given.iter();
        self.absorbed.retain(|_| kept.next() == Some(&true));
        let mut kept = given.iter();
        self.effects.retain(|_| kept.next() == Some(&true));
    }

    /// Returns these equations with the rotor inertias that act like base parameters of other equations of the same robot.
    pub(crate) fn with_absorbed_of(&self, other: &Self) -> Self {
        Self { absorbed: other.absorbed.clone(), effects: other.effects.clone(), ..self.clone() }
    }

    /// Returns the values of the unknowns according to the model.
    pub fn model_values(&self) -> Result<Vec<f64>> {
        let mut out = self.regrouping.regroup(&self.mechanism.parameters())?;
        out.extend(
            self.terms
                .iter()
                .map(|&(row, term)| term.kind().model_value(self.mechanism, self.tree_coordinate(row))),
        );
        Ok(out)
    }

    /// Returns the equations of one joint model, whose columns must be among those of these equations: the given motors, and
    /// Stribeck terms of the motors that have a Stribeck curve.
    pub(crate) fn with_motors(&self, motors: Vec<Motor>) -> Self {
        let mut out = self.clone();
        out.terms.clone_from(&self.all_terms);
        out.terms.retain(|&(v, term)| term != Term::Stribeck || motors[v].stribeck.is_some());
        (out.motors, out.has_candidates) = (motors, false);
        out.number();
        out
    }

    /// Returns the equations with a subset of the joint terms.
    pub(crate) fn with_terms(&self, keep: impl Fn(Term) -> bool) -> Self {
        self.with_chosen(
            self.motors.clone(),
            self.terms.iter().copied().filter(|&(_, term)| keep(term)).collect(),
        )
    }

    /// Returns the equations with other joint terms, on the given motors. Terms that act like base parameters remain excluded.
    pub(crate) fn with_chosen(&self, motors: Vec<Motor>, terms: Vec<(usize, Term)>) -> Self {
        let mut out = self.clone();
        (out.motors, out.terms, out.has_candidates) = (motors, terms, false);
        out.number();
        out
    }

    /// Returns the coordinates whose drives have Stribeck columns in these equations, on the shafts of `motors`.
    pub(crate) fn stribeck_motors(&self, motors: &[Motor]) -> Vec<usize> {
        let held = |v: &usize| {
            let own = |(_, f): &(f64, Feature)| f.term == Term::Stribeck && f.shaft == motors[*v].shaft;
            self.channels[*v].features.iter().any(own)
        };
        (0..motors.len()).filter(held).collect()
    }

    /// Returns the name of a term of a coordinate.
    fn term_name(&self, v: usize, term: Term) -> String {
        format!("{}.{}", self.row_names()[v], self.short_name(term))
    }

    /// Names the terms and finds the unknowns of each coordinate.
    pub(crate) fn number(&mut self) {
        let rank = self.rank();
        self.names.truncate(rank);
        let names: Vec<String> = self.terms.iter().map(|&(v, term)| self.term_name(v, term)).collect();
        self.names.extend(names);
        self.channels = self.base_channels();
        for (i, &(v, term)) in self.terms.iter().enumerate() {
            for (row, factor) in terms::rows(term, v, &self.motors[v]) {
                self.channels[row].push(rank + i, (factor, Feature::new(term, &self.motors[v])));
            }
        }
    }

    /// Returns the base parameters that act in the force of each coordinate.
    fn base_channels(&self) -> Vec<Channel> {
        let layout = self.closed().map_or_else(|| self.dynamics.layout(), ClosedMechanism::layout);
        let mut out = base_channels(&self.regrouping, layout, self.coordinates());
        if self.wrench {
            out.extend(full_channels(&self.regrouping, 6));
        }
        out
    }

    /// Takes all candidate columns of the joint model as unknowns, each in the force of one coordinate.
    pub(crate) fn widen(&mut self) {
        let mut wanted: Vec<Vec<Feature>> = vec![Vec::new(); self.coordinates()];
        let mut want = |row: usize, feature: Feature| {
            if !wanted[row].contains(&feature) {
                wanted[row].push(feature);
            }
        };
        for &(v, term) in &self.terms {
            for (row, _) in terms::rows(term, v, &self.motors[v]) {
                if term == Term::Stribeck {
                    for stribeck in StribeckCurve::nodes(self.model.stribeck_exponents()) {
                        want(
                            row,
                            Feature { stribeck: Some(stribeck), ..Feature::new(term, &self.motors[v]) },
                        );
                    }
                } else {
                    want(row, Feature::new(term, &self.motors[v]));
                }
            }
        }
        for [a, b] in self.pairs() {
            for (row, other) in [(a, b), (b, a)] {
                for &(_, term) in self.terms.iter().filter(|(v, _)| *v == row) {
                    match term {
                        Term::Viscous | Term::RotorInertia => want(row, Feature::on(term, &[(other, 1.0)])),
                        Term::Coulomb | Term::CoulombPositive | Term::CoulombNegative => {
                            for sign in [1.0, -1.0] {
                                want(row, Feature::on(term, &[(a, sign), (b, 1.0)]));
                            }
                        }
                        _ => {}
                    }
                }
            }
        }
        let (rank, coordinates) = (self.rank(), self.row_names());
        self.names.truncate(rank);
        self.terms.clear();
        self.channels = self.base_channels();
        for (row, features) in wanted.into_iter().enumerate() {
            for feature in features {
                let unknown = rank + self.terms.len();
                self.terms.push((row, feature.term));
                self.names.push(described(&feature, &coordinates, row, &self.model.given));
                self.channels[row].push(unknown, (1.0, feature));
            }
        }
        self.has_candidates = true;
    }

    /// Returns the same equations without the search for couplings of drives.
    pub(crate) fn without_coupling_search(&self) -> Self {
        let mut out = self.clone();
        out.model.search_couplings = false;
        out
    }

    /// Returns pairs of neighbouring revolute joints whose drives may turn with both, by velocity coordinate.
    pub(crate) fn pairs(&self) -> Vec<[usize; 2]> {
        if !self.model.search_couplings || self.closed.is_some() {
            return Vec::new();
        }
        let hinges: Vec<_> = self
            .mechanism
            .joints()
            .iter()
            .filter(|j| j.follows.is_none() && matches!(j.joint_type, JointType::Revolute { .. }))
            .collect();
        let known = |v: usize| self.model.couplings.iter().any(|c| c.shaft.iter().any(|&(k, _)| k == v));
        let mut out = Vec::new();
        for near in hinges.iter().filter(|j| !known(j.v)) {
            for far in hinges.iter().filter(|j| !known(j.v)) {
                if self.mechanism.bodies()[far.body].parent == Some(near.body) {
                    out.push([near.v, far.v]);
                }
            }
        }
        out
    }
}

/// Maps couplings and terms from the coordinates of the mechanism to the independent ones.
fn on_independent(model: &mut JointModel, closed: &ClosedMechanism<'_>, names: &[String]) -> Result<()> {
    let row = |v: usize| {
        closed.independent().iter().position(|&k| k == v).ok_or_else(|| {
            Error::NotApplicable(format!(
                "{} is a dependent joint of the loops: terms and couplings must belong to the independent \
                 joints {}",
                names[v],
                closed.independent_names().join(", ")
            ))
        })
    };
    for coupling in &mut model.couplings {
        coupling.motor = row(coupling.motor)?;
        for (v, _) in &mut coupling.shaft {
            *v = row(*v)?;
        }
    }
    for given in &mut model.given {
        given.coordinate = row(given.coordinate)?;
        if given.expression.uses_rates() {
            return Err(Error::NotApplicable(format!(
                "term {}: with loops, formulas can use positions and log columns only",
                given.name
            )));
        }
    }
    Ok(())
}

/// Checks that a joint model refers to this mechanism.
fn check(mechanism: &Mechanism, model: &JointModel) -> Result<()> {
    let nv = mechanism.nv();
    let names = mechanism.velocity_names();
    if model.asymmetric && model.terms.offset {
        return Err(Error::Incompatible(
            "asymmetric Coulomb friction already contains a constant offset: choose one of the two".into(),
        ));
    }
    for (i, coupling) in model.couplings.iter().enumerate() {
        if coupling.motor >= nv || coupling.shaft.iter().any(|&(v, _)| v >= nv) {
            return Err(Error::UnknownName(
                "a coupling names a coordinate that the mechanism does not have".into(),
            ));
        }
        let name = &names[coupling.motor];
        if coupling.shaft.iter().any(|&(_, factor)| !(factor.is_finite() && factor != 0.0)) {
            return Err(Error::InvalidOption(format!(
                "the drive of {name} turns with a joint by a factor that is zero or not finite"
            )));
        }
        let mut seen: Vec<usize> = coupling.shaft.iter().map(|&(v, _)| v).collect();
        seen.sort_unstable();
        seen.dedup();
        if seen.is_empty() || seen.len() < coupling.shaft.len() {
            return Err(Error::InvalidOption(format!(
                "the drive of {name} must turn with at least one joint, and with each only once"
            )));
        }
        if model.couplings[..i].iter().any(|c| c.motor == coupling.motor) {
            return Err(Error::InvalidOption(format!("the drive of {name} is given twice")));
        }
    }
    match model.given.iter().find(|g| g.coordinate >= nv) {
        Some(given) => {
            Err(Error::UnknownName(format!("term {} acts on a coordinate that does not exist", given.name)))
        }
        None => Ok(()),
    }
}

/// Returns the description of a column.
fn described(feature: &Feature, coordinates: &[String], row: usize, given: &[GivenTerm]) -> String {
    let name = match feature.term {
        Term::Given { index, .. } => &given[index].name,
        term => term.name(),
    };
    let mut out = vec![format!("{}.{name}", coordinates[row])];
    if !(feature.shaft.is_empty() || feature.shaft == [(row, 1.0)]) {
        let parts: Vec<String> =
            feature.shaft.iter().map(|(v, x)| format!("{x}*{}", coordinates[*v])).collect();
        out.push(format!("of {}", parts.join("+")));
    }
    if let Some(stribeck) = feature.stribeck {
        out.push(format!("at {:.4} exponent {}", stribeck.speed, stribeck.exponent));
    }
    out.join(" ")
}
