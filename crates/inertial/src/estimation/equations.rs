//! Which unknowns act in which measured force.

use super::least_squares::information;
use super::stribeck::Bend;
use super::summary::{Measurements, Summary};
use super::terms::{self, Feature, GivenTerm, JointModel, Motor, Term};
use crate::dynamics::{InverseDynamics, Samples};
use crate::identifiability::{AnalyzeOptions, Regrouping, analyze};
use crate::linalg::{SplitMix, Triangle};
use crate::mechanism::{JointType, Mechanism};
use crate::{Error, Result};

/// The linear equations `τ = Y_b β + terms` of a mechanism: its base parameters first, then the joints' terms.
///
/// Where the joints' model leaves something to be found from the data (couplings, Stribeck speeds), the terms are all columns
/// from which it can be found, each of one coordinate's force, and [`super::identify`] chooses.
#[derive(Debug, Clone)]
pub struct Equations<'m> {
    mechanism: &'m Mechanism,
    pub(super) dynamics: InverseDynamics,
    /// Base parameters and what they stand for.
    pub regrouping: Regrouping,
    /// Velocity coordinate and term of each unknown after the base parameters.
    pub terms: Vec<(usize, Term)>,
    /// Terms left out because base parameters already act exactly like them.
    pub absorbed: Vec<(usize, Term)>,
    /// Names of all unknowns.
    pub names: Vec<String>,
    pub(super) channels: Vec<Channel>,
    motors: Vec<Motor>,
    model: JointModel,
    snap: f64,
    wide: bool,
}

/// The unknowns that act in the force of one velocity coordinate.
#[derive(Debug, Clone, Default)]
pub(super) struct Channel {
    pub unknowns: Vec<usize>,
    /// Packed regressor entry of each of the first unknowns.
    pub entries: Vec<usize>,
    /// What the unknowns after those multiply, with a factor.
    pub features: Vec<(f64, Feature)>,
}

impl<'m> Equations<'m> {
    /// For a mechanism without loops; `snap` as for [`analyze`].
    pub fn new(mechanism: &'m Mechanism, model: impl Into<JointModel>, snap: f64) -> Result<Self> {
        let mut out = Self::with_all_terms(mechanism, model, snap)?;
        if out.model.search_couplings || out.model.stribeck {
            out.widen();
        } else {
            out.absorb_terms()?;
        }
        Ok(out)
    }

    /// The same with all terms, also those that act like base parameters: to predict forces, not to estimate.
    pub fn with_all_terms(mechanism: &'m Mechanism, model: impl Into<JointModel>, snap: f64) -> Result<Self> {
        if !mechanism.loops().is_empty() {
            return Err(Error::Numeric(
                "the mechanism has loops: identification from logs is for open chains".into(),
            ));
        }
        let model = model.into();
        check(mechanism, &model)?;
        // Complete measurement decides what the unknowns are; what a log does not measure is not excited.
        let analysis = analyze(mechanism, &AnalyzeOptions { snap, ..AnalyzeOptions::default() })?;
        let base_names = analysis.base_parameters.into_iter().map(|b| b.name).collect();
        let mut out = Self {
            mechanism,
            dynamics: InverseDynamics::new(mechanism),
            regrouping: analysis.regrouping,
            terms: terms::terms(mechanism, &model),
            absorbed: Vec::new(),
            names: base_names,
            channels: Vec::new(),
            motors: terms::motors(mechanism.nv(), &model.couplings),
            model,
            snap,
            wide: false,
        };
        out.number();
        Ok(out)
    }

    /// The mechanism.
    pub fn mechanism(&self) -> &'m Mechanism {
        self.mechanism
    }

    /// What is assumed of the joints.
    pub fn joint_model(&self) -> &JointModel {
        &self.model
    }

    /// Whether the terms are those from which a model of the joints is to be chosen.
    pub(super) fn is_wide(&self) -> bool {
        self.wide
    }

    pub(super) fn motors(&self) -> &[Motor] {
        &self.motors
    }

    /// Speed and shape of the Stribeck friction of a coordinate's drive, where it has one.
    pub fn bend(&self, coordinate: usize) -> Option<Bend> {
        self.motors[coordinate].bend
    }

    /// Number of base parameters.
    pub fn rank(&self) -> usize {
        self.regrouping.rank()
    }

    /// Number of unknowns.
    pub fn len(&self) -> usize {
        self.rank() + self.terms.len()
    }

    /// Whether there is nothing to know.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The unknowns' values according to the model itself.
    pub fn model_values(&self) -> Result<Vec<f64>> {
        let mut out = self.regrouping.regroup(&self.mechanism.parameters())?;
        let joint_of = |v: usize| {
            self.mechanism.joints().iter().find(|j| j.follows.is_none() && j.v_range().contains(&v))
        };
        out.extend(self.terms.iter().map(|&(v, term)| {
            let dynamics = joint_of(v).map(|j| j.dynamics).unwrap_or_default();
            match term {
                Term::Viscous => dynamics.damping,
                Term::Coulomb | Term::CoulombPositive | Term::CoulombNegative => dynamics.friction,
                Term::Offset | Term::Stribeck | Term::Given { .. } => 0.0,
                Term::RotorInertia => self.mechanism.armature()[v],
            }
        }));
        Ok(out)
    }

    /// The equations of one model of the joints, chosen among those that these hold columns of: the given motors, and Stribeck
    /// terms of those that have a bend.
    pub(super) fn with_motors(&self, motors: Vec<Motor>) -> Self {
        let mut out = self.clone();
        out.terms = terms::terms(self.mechanism, &self.model);
        out.terms.retain(|&(v, term)| term != Term::Stribeck || motors[v].bend.is_some());
        (out.motors, out.wide) = (motors, false);
        out.number();
        out
    }

    /// Coordinates whose drives have Stribeck columns here, on the shafts of `motors`.
    pub(super) fn stribeck_motors(&self, motors: &[Motor]) -> Vec<usize> {
        let held = |v: &usize| {
            let own = |(_, f): &(f64, Feature)| f.term == Term::Stribeck && f.shaft == motors[*v].shaft;
            self.channels[*v].features.iter().any(own)
        };
        (0..motors.len()).filter(held).collect()
    }

    /// Name of a term of a coordinate.
    fn term_name(&self, v: usize, term: Term) -> String {
        let name = match term {
            Term::Given { index, .. } => &self.model.given[index].name,
            _ => term.name(),
        };
        format!("{}.{name}", self.mechanism.velocity_names()[v])
    }

    /// Names the terms and finds the unknowns of each coordinate.
    pub(super) fn number(&mut self) {
        let rank = self.rank();
        self.names.truncate(rank);
        let names: Vec<String> = self.terms.iter().map(|&(v, term)| self.term_name(v, term)).collect();
        self.names.extend(names);
        self.channels = self.base_channels();
        for (i, &(v, term)) in self.terms.iter().enumerate() {
            for (row, factor) in terms::rows(term, v, &self.motors[v]) {
                self.channels[row].unknowns.push(rank + i);
                self.channels[row].features.push((factor, Feature::new(term, &self.motors[v])));
            }
        }
    }

    /// The base parameters that act in the force of each coordinate.
    fn base_channels(&self) -> Vec<Channel> {
        let mut number = vec![None; self.regrouping.parameters];
        self.regrouping.base.iter().enumerate().for_each(|(i, &column)| number[column] = Some(i));
        let layout = self.dynamics.layout();
        let mut out = vec![Channel::default(); self.mechanism.nv()];
        for (v, channel) in out.iter_mut().enumerate() {
            for block in layout.row(v) {
                for k in 0..block.len {
                    if let Some(unknown) = number[block.column + k] {
                        channel.unknowns.push(unknown);
                        channel.entries.push(block.start + k);
                    }
                }
            }
        }
        out
    }

    /// Takes as unknowns all columns from which the joints' model can be found, each in the force of one coordinate.
    fn widen(&mut self) {
        let mut wanted: Vec<Vec<Feature>> = vec![Vec::new(); self.mechanism.nv()];
        let mut want = |row: usize, feature: Feature| {
            if !wanted[row].contains(&feature) {
                wanted[row].push(feature);
            }
        };
        for &(v, term) in &self.terms {
            for (row, _) in terms::rows(term, v, &self.motors[v]) {
                if term == Term::Stribeck {
                    for bend in Bend::nodes() {
                        want(row, Feature { bend: Some(bend), ..Feature::new(term, &self.motors[v]) });
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
        let (rank, coordinates) = (self.rank(), self.mechanism.velocity_names());
        self.names.truncate(rank);
        self.terms.clear();
        self.channels = self.base_channels();
        for (row, features) in wanted.into_iter().enumerate() {
            for feature in features {
                self.channels[row].unknowns.push(rank + self.terms.len());
                self.terms.push((row, feature.term));
                self.names.push(described(&feature, &coordinates, row, &self.model.given));
                self.channels[row].features.push((1.0, feature));
            }
        }
        self.wide = true;
    }

    /// Neighbouring revolute joints whose drives may turn with both, by velocity coordinate.
    pub(super) fn pairs(&self) -> Vec<[usize; 2]> {
        if !self.model.search_couplings {
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

    /// Leaves out rotor inertias that act exactly like base parameters (as that of a joint on the ground, which is part
    /// of its link's inertia about the axis): random motion decides.
    ///
    /// Geometry counts as special within the snapping tolerance; a column that depends on others there differs from them by
    /// about that tolerance here, where every number is taken literally. Columns that do not depend differ by a hundredth
    /// and more.
    pub(super) fn absorb_terms(&mut self) -> Result<()> {
        let tolerance = (10.0 * self.snap).clamp(1e-9, 1e-3);
        let rotor = |&(_, term): &(usize, Term)| term == Term::RotorInertia;
        if !self.terms.iter().any(rotor) {
            return Ok(());
        }
        let random = self.random_motion()?;
        let all = information(self, &random, &vec![1.0; self.channels.len()])?.matrix();
        let mut columns: Vec<usize> =
            (0..self.len()).filter(|&i| i < self.rank() || !rotor(&self.terms[i - self.rank()])).collect();
        let mut keep = vec![true; self.terms.len()];
        for i in (0..self.terms.len()).filter(|&i| rotor(&self.terms[i])) {
            columns.push(self.rank() + i);
            let (size, last) = (all.column(self.rank() + i).norm(), columns.len() - 1);
            let mut triangle = Triangle::new(columns.len());
            triangle.absorb(all.select_columns(&columns).as_mut_slice(), all.nrows())?;
            if triangle.at(last, last) <= tolerance * size {
                columns.pop();
                keep[i] = false;
                self.absorbed.push(self.terms[i]);
            }
        }
        let mut kept = keep.into_iter();
        self.terms.retain(|_| kept.next() == Some(true));
        self.number();
        Ok(())
    }

    fn random_motion(&self) -> Result<Summary> {
        let (nq, nv) = (self.mechanism.nq(), self.mechanism.nv());
        // Each sample gives one equation for each coordinate; three times as many as unknowns are plenty.
        let count = 3 * self.len() + 20;
        let mut random = SplitMix::new(1);
        let mut next = || (random.next_u64() >> 11) as f64 / (1u64 << 52) as f64 - 1.0;
        let (mut q, mut v, mut a) = (Vec::with_capacity(count * nq), Vec::new(), Vec::new());
        for _ in 0..count {
            let mut position = self.mechanism.neutral();
            let step: Vec<f64> = (0..nv).map(|_| 3.0 * next()).collect();
            self.mechanism.integrate(&mut position, &step);
            q.extend(position);
            v.extend((0..nv).map(|_| 3.0 * next()));
            a.extend((0..nv).map(|_| 10.0 * next()));
        }
        let samples = Samples::new(&self.dynamics, count, &q, &v, &a)?;
        let tau = vec![0.0; count * nv];
        let columns: Vec<f64> = (0..count * self.model.columns.len()).map(|_| next()).collect();
        let mut data = Measurements::new(samples, &v, &a, &tau);
        data.columns = Some(&columns);
        Summary::new(self, &data)
    }
}

/// Refuses a joint model that is not one of this mechanism.
fn check(mechanism: &Mechanism, model: &JointModel) -> Result<()> {
    let nv = mechanism.nv();
    let names = mechanism.velocity_names();
    if model.asymmetric && model.terms.offset {
        return Err(Error::Numeric(
            "Coulomb friction of each direction apart already contains a constant offset: ask for one of both".into(),
        ));
    }
    for (i, coupling) in model.couplings.iter().enumerate() {
        if coupling.motor >= nv || coupling.shaft.iter().any(|&(v, _)| v >= nv) {
            return Err(Error::Numeric(
                "a coupling names a coordinate that the mechanism does not have".into(),
            ));
        }
        let name = &names[coupling.motor];
        if coupling.shaft.iter().any(|&(_, factor)| !(factor.is_finite() && factor != 0.0)) {
            return Err(Error::Numeric(format!(
                "the drive of {name} turns with a joint by a factor that is zero or not finite"
            )));
        }
        let mut seen: Vec<usize> = coupling.shaft.iter().map(|&(v, _)| v).collect();
        seen.sort_unstable();
        seen.dedup();
        if seen.is_empty() || seen.len() < coupling.shaft.len() {
            return Err(Error::Numeric(format!("the drive of {name} must turn with some joints, each once")));
        }
        if model.couplings[..i].iter().any(|c| c.motor == coupling.motor) {
            return Err(Error::Numeric(format!("the drive of {name} is given twice")));
        }
    }
    match model.given.iter().find(|g| g.coordinate >= nv) {
        Some(given) => {
            Err(Error::Numeric(format!("term {} acts in a coordinate that is not there", given.name)))
        }
        None => Ok(()),
    }
}

/// Says what a column is.
fn described(feature: &Feature, coordinates: &[String], row: usize, given: &[GivenTerm]) -> String {
    let mut out = match feature.term {
        Term::Given { index, .. } => format!("{}.{}", coordinates[row], given[index].name),
        term => format!("{}.{}", coordinates[row], term.name()),
    };
    if !(feature.shaft.is_empty() || feature.shaft == [(row, 1.0)]) {
        let parts: Vec<String> =
            feature.shaft.iter().map(|(v, x)| format!("{x}*{}", coordinates[*v])).collect();
        out += &format!(" of {}", parts.join("+"));
    }
    if let Some(bend) = feature.bend {
        out += &format!(" at {:.4} exponent {}", bend.speed, bend.exponent);
    }
    out
}
