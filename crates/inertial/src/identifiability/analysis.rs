//! Complete analysis of a mechanism: identifiable parameters, their combinations, and the certificate of the rank.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use super::base_parameters::{Regrouping, Status};
use super::certificate::{Certificate, JointTransfers, LostRelations, RankProblem, RankResult};
use super::conserved;
use super::drng::{Principle, Reason};
use super::experiment::Measured;
use super::literal::{RankAsWritten, check_coarse_relations, literal_rank};
use super::loops::LoopResult;
use super::options::{AnalyzeOptions, Method, checked_snap, experiment, order, recursion_applies};
use super::parts::{ClosedResult, Parts, rank_as_written};
use super::rpna::{Regime, Rpna};
use super::warning::Warning;
use crate::linalg::First;
use crate::mechanism::{AssumedRelation, Base, BodyKind, ExactGeometry, LoopJoint, Mechanism};
use crate::spatial::PARAMETER_NAMES;
use crate::warning::Warnings;
use crate::{Error, Result};

/// Schema of the JSON object of an analysis.
const SCHEMA: &str = "inertial/analysis/1";

/// Summary of the analysed mechanism.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct ModelSummary {
    /// Name of the mechanism.
    pub name: String,
    /// Number of moving links.
    pub bodies: usize,
    /// Degrees of freedom.
    pub dof: usize,
    /// Type of the base.
    #[schemars(extend("enum" = ["fixed", "floating"]))]
    pub base: &'static str,
    /// Gravity (m/s²).
    pub gravity: [f64; 3],
    /// Number of loops.
    pub loops: usize,
    /// Number of rotors with their own parameters.
    pub rotors: usize,
}

/// Identifiability of the parameters of one body.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct BodyReport {
    /// Name of the body.
    pub name: String,
    /// Name of the parent body.
    pub parent: String,
    /// Name of the joint that moves the body (for a rotor: the joint that it drives).
    pub joint: String,
    /// Type of the joint, or `rotor`.
    pub joint_type: &'static str,
    /// Dimension of the span of attainable velocities, gravity included (`V`).
    pub velocity_span: usize,
    /// Dimension of the parameter space that is identifiable alone or in combination (`K`).
    pub identifiable_span: usize,
    /// Number of parameter transfers across the joint that change no measurement (`T`). Transfers that involve rotors
    /// are counted at the link of the joint.
    pub transfer_freedoms: usize,
    /// Status of each parameter.
    #[serde(serialize_with = "as_map")]
    #[schemars(with = "BTreeMap<String, Status>")]
    pub parameters: Vec<(&'static str, Status)>,
    /// Parameters of this body that are base parameters.
    pub base_parameters: Vec<&'static str>,
}

/// Base parameter with its combination of parameters.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct BaseParameter {
    /// Name of the form `BODY.NAME`.
    pub name: String,
    /// Coefficients of the combination; the coefficient of the base parameter itself is one. Omitted if there are too
    /// many coefficients to list.
    #[serde(serialize_with = "as_map", skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "BTreeMap<String, f64>")]
    pub combination: Vec<(String, f64)>,
}

/// Combination of parameter changes that changes no measurement.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct NullCombination {
    /// Change of each parameter.
    #[serde(serialize_with = "as_map")]
    #[schemars(with = "BTreeMap<String, f64>")]
    pub combination: Vec<(String, f64)>,
    /// Reason why no measurement changes.
    pub reason: String,
}

impl NullCombination {
    fn named(names: &[String], vector: &[(usize, f64)], reason: String) -> Self {
        Self { combination: vector.iter().map(|&(k, x)| (names[k].clone(), x)).collect(), reason }
    }
}

/// Result of [`analyze`]; serializes to the object of `analyze --json`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct Analysis {
    /// Schema of the JSON object.
    #[schemars(extend("const" = SCHEMA))]
    pub schema: &'static str,
    /// Summary of the mechanism.
    pub model: ModelSummary,
    /// Measured quantities besides the motion.
    #[schemars(extend("enum" = ["joint-torques", "base-wrench", "both", "momentum"]))]
    pub measured: &'static str,
    /// Total momentum of the robot including its wheels; absent if momentum is not measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["zero", "angular", "any"]))]
    pub total_momentum: Option<&'static str>,
    /// Admissible motions.
    #[schemars(extend("enum" = ["any", "static", "kinetic"]))]
    pub motions: &'static str,
    /// Method used to find the rank.
    #[schemars(extend("enum" = ["rpna", "drng", "numeric", "exact"]))]
    pub method: &'static str,
    /// Number of parameters.
    pub parameters: usize,
    /// Number of base parameters.
    pub rank: usize,
    /// Rank if every number of the geometry is taken literally.
    pub rank_literal: usize,
    /// Dimension of the null space (unidentifiable parameter changes).
    pub nullity: usize,
    /// Report for each body.
    pub bodies: Vec<BodyReport>,
    /// Base parameters, in the order of the parameters.
    pub base_parameters: Vec<BaseParameter>,
    /// Null vectors with their reasons (mechanisms with loops).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub null_vectors: Vec<Reason>,
    /// Number of these null vectors for each principle.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub principles: BTreeMap<&'static str, usize>,
    /// The same as paper 004 counts: fixed points of bodies without a joint to the ground count as planar rotations.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub principles_in_paper: BTreeMap<&'static str, usize>,
    /// Parameter changes that change no measurement, with their reasons; they span the null space. Empty if there are none.
    pub null_space: Vec<NullCombination>,
    /// Relations between joints that hold only up to rounding and were assumed to be intended.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub assumed: Vec<AssumedRelation>,
    /// Certificate of the rank.
    pub certificate: Certificate,
    /// Warnings.
    #[serde(flatten)]
    pub warnings: Warnings<Warning>,
    /// Base parameters by column, for computation.
    #[serde(skip)]
    pub regrouping: Regrouping,
    /// Transfers across each joint that change no measurement (empty if the recursion was not used).
    #[serde(skip)]
    pub transfers: Vec<JointTransfers>,
}

impl fmt::Display for Analysis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let certain = if self.certificate.exact { "certain" } else { "not certified" };
        write!(
            f,
            "{}: {} of {} parameters are identifiable ({}, {certain})",
            self.model.name, self.rank, self.parameters, self.method
        )
    }
}

fn as_map<K: Serialize, V: Serialize, S: Serializer>(
    pairs: &[(K, V)],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(Some(pairs.len()))?;
    for (key, value) in pairs {
        map.serialize_entry(key, value)?;
    }
    map.end()
}

/// Determines which inertial parameters of a mechanism are identifiable, and in which combinations.
///
/// ```
/// use inertial::identifiability::{AnalyzeOptions, analyze};
/// use inertial::mechanism::{JointSpec, JointType, MechanismBuilder};
/// use inertial::spatial::{Inertia, Pose};
/// use nalgebra::{Vector3, vector};
///
/// let hinge = JointType::Revolute { axis: Vector3::y() };
/// let arm = MechanismBuilder::new("vertical 2R", "ground")
///     .link("upper", Inertia::zero())
///     .joint(JointSpec::new("shoulder", hinge, "ground", "upper"))
///     .link("lower", Inertia::zero())
///     .joint(JointSpec::new("elbow", hinge, "upper", "lower").at(Pose::from_translation(vector![0.5, 0.0, 0.0])))
///     .build(&Default::default())?;
/// let answer = analyze(&arm, &AnalyzeOptions::default())?;
/// assert_eq!((answer.rank, answer.certificate.exact), (6, true));
/// // The lower arm's mass counts as a first moment of the upper arm at the elbow.
/// assert_eq!(answer.base_parameters[0].combination, [("upper.hx".into(), 1.0), ("lower.m".into(), 0.5)]);
/// # Ok::<(), inertial::Error>(())
/// ```
pub fn analyze(mechanism: &Mechanism, options: &AnalyzeOptions) -> Result<Analysis> {
    let experiment = experiment(mechanism, options)?;
    let order = order(mechanism, &options.choose)?;
    let literal = options.snap == 0.0;
    let problem = RankProblem { mechanism, experiment: &experiment, order, seed: options.seed, literal };
    let geometry = ExactGeometry::new(mechanism, checked_snap(options.snap)?);
    if !mechanism.loops().is_empty() || options.method == Method::Drng {
        return analyze_closed(&problem, options, &geometry);
    }
    let recursion = recursion_applies(mechanism, &experiment, &geometry);
    let mut result = match (options.method, &recursion) {
        (Method::Auto | Method::Rpna, Ok((topology, scope))) => {
            problem.by_recursion(&geometry, topology, *scope)
        }
        (Method::Rpna, Err(why)) => {
            return Err(Error::Numeric(format!(
                "the recursion (RPNA) does not apply: {why}; use the exact method"
            )));
        }
        (Method::Auto, Err(why)) => {
            let mut result = problem.by_sampling(&geometry)?;
            let rank = result.regrouping.rank();
            match problem.lost_relations(&geometry, rank)? {
                None => {}
                Some(LostRelations::WithRank(found)) => {
                    result = problem.by_singular_values(&geometry)?;
                    result.warnings.push(Warning::LostRelations { written: rank, found: Some(found) });
                }
                Some(LostRelations::Unclear) => {
                    result
                        .certificate
                        .make_numeric("joint axes are nearly in special positions that were not restored");
                    result.warnings.push(Warning::LostRelations { written: rank, found: None });
                }
            }
            result.warnings.push(Warning::Sampled { reason: why.to_string() });
            result
        }
        (Method::Exact | Method::Drng, _) => problem.by_sampling(&geometry)?,
        (Method::Numeric, _) => problem.by_singular_values(&geometry)?,
    };
    result.warnings.extend(conserved::notes(&problem, &geometry, result.regrouping.rank()));
    let rank = |tolerance: &dyn Fn(usize) -> f64| {
        let geometry = ExactGeometry::with_tolerances(mechanism, tolerance);
        Some(match &recursion {
            Ok((topology, scope)) => {
                let found = Rpna::new(&geometry.to::<First>(), topology, *scope);
                mechanism.parameter_count() - found.nullity(topology)
            }
            Err(_) => problem.sampled_rank::<First>(&geometry),
        })
    };
    check_coarse_relations(&problem, options.snap, &rank, &mut result);
    Ok(report(&problem, options, &geometry, &rank, mechanism.nv(), result))
}

/// Analyses a mechanism with loops.
fn analyze_closed(
    problem: &RankProblem<'_>,
    options: &AnalyzeOptions,
    geometry: &ExactGeometry,
) -> Result<Analysis> {
    let held = |l: &LoopJoint| l.predecessor.body.is_none() || l.successor.body.is_none();
    if let (true, Some(joint)) = (options.ballistic, problem.mechanism.loops().iter().find(|l| held(l))) {
        return Err(Error::Numeric(format!(
            "loop {} ties the robot to the ground: it cannot fly freely",
            joint.name
        )));
    }
    if options.method == Method::Rpna {
        return Err(Error::Numeric(
            "the recursion (RPNA) is for open chains: use drng, exact or numeric".into(),
        ));
    }
    let numeric = options.method == Method::Numeric;
    let explained = matches!(options.method, Method::Auto | Method::Drng);
    // The numeric method analyses the mechanism as a whole, so that it can be compared with the other methods.
    let parts = if numeric { None } else { Parts::new(problem) };
    let closed = match &parts {
        Some(parts) => parts.analyze(options, explained)?,
        None => ClosedResult::new(problem, geometry, options.snap, numeric, explained)?,
    };
    let ClosedResult { loops, dof, other_ranks, assumed } = closed;
    let LoopResult { result, explanation, repaired, .. } = loops;
    let rank = |tolerance: &dyn Fn(usize) -> f64| match &parts {
        Some(parts) => parts.rank_as_written(tolerance),
        None => rank_as_written(problem, tolerance),
    };
    let mut analysis = report(problem, options, geometry, &rank, dof, result);
    analysis.assumed = assumed;
    let mut explanation = explanation;
    let unexplained = explanation.reasons.iter().any(|r| r.kind == Principle::Computation);
    if unexplained && analysis.regrouping.is_listed() && problem.limitation().is_some() {
        let everything = options.clone().with(|o| {
            (o.measured, o.torque_joints, o.ballistic) = (None, None, false);
        });
        let complete = analyze(problem.mechanism, &everything)?;
        explanation.reasons =
            problem.reasons(&analysis.regrouping, explanation.reasons, &complete.null_vectors);
    }
    if !explanation.reasons.is_empty() {
        let names = problem.mechanism.parameter_names();
        let reasons = explanation.reasons.iter();
        analysis.null_space =
            reasons.map(|r| NullCombination::named(&names, &r.vector, r.to_string())).collect();
    }
    for reason in &explanation.reasons {
        *analysis.principles.entry(reason.principle).or_insert(0) += 1;
        *analysis.principles_in_paper.entry(principle_in_paper(problem.mechanism, reason)).or_insert(0) += 1;
    }
    analysis.null_vectors = explanation.reasons;
    if let Some(moved) = repaired {
        let literal = rank(&|_| 0.0);
        analysis.rank_literal = literal.unwrap_or(0);
        analysis.warnings.push(Warning::Restored { moved, literal });
    }
    if !other_ranks.is_empty() {
        analysis.warnings.push(Warning::Branches { rank: analysis.rank, others: other_ranks });
    }
    Ok(analysis)
}

/// Returns the principle by which paper 004 explains a null vector. It applies fixed points to bodies with a joint to the ground
/// only, and includes those of other bodies in their planar rotations.
fn principle_in_paper(mechanism: &Mechanism, reason: &Reason) -> &'static str {
    let bodies = mechanism.bodies();
    // A massless body is part of a joint.
    let grounded = |mut body: usize| loop {
        match bodies[body].parent {
            None => break true,
            Some(parent) if bodies[parent].kind == BodyKind::Massless => body = parent,
            Some(_) => break false,
        }
    };
    let closes = |body: usize| {
        let ends = mechanism.loops().iter().map(|l| [l.predecessor.body, l.successor.body]);
        ends.into_iter().any(|[a, b]| (a, b) == (None, Some(body)) || (a, b) == (Some(body), None))
    };
    let standing = |name: &String| {
        let body = bodies.iter().position(|b| b.name == *name);
        body.is_some_and(|body| grounded(body) || closes(body))
    };
    match reason.kind {
        Principle::FixedPoints if !reason.bodies.iter().any(standing) => Principle::PlanarRotation.name(),
        _ => reason.principle,
    }
}

fn report(
    problem: &RankProblem<'_>,
    options: &AnalyzeOptions,
    geometry: &ExactGeometry,
    rank_of: &RankAsWritten<'_>,
    dof: usize,
    result: RankResult,
) -> Analysis {
    let mechanism = problem.mechanism;
    let regrouping = result.regrouping;
    let rank = regrouping.rank();
    let names = mechanism.parameter_names();
    let of_model = mechanism.warnings().iter().cloned().map(Warning::Model);
    let mut warnings: Warnings<Warning> = of_model.chain(result.warnings).collect();
    let rank_literal = literal_rank(problem, options, geometry, rank_of, rank, &mut warnings);
    let root = mechanism.links().iter().find(|l| l.body.is_none()).map_or("ground", |l| l.name.as_str());
    let body_name =
        |b: Option<usize>| b.map_or_else(|| root.to_owned(), |b| mechanism.bodies()[b].name.clone());
    let bodies = mechanism.parameter_blocks().iter().map(|block| {
        let body = &mechanism.bodies()[block.body];
        let own = &PARAMETER_NAMES[10 - block.len..];
        let columns = block.offset..block.offset + block.len;
        let (first, last) = (
            regrouping.base.partition_point(|&c| c < columns.start),
            regrouping.base.partition_point(|&c| c < columns.end),
        );
        // The massless piece of a universal joint is not reported as a parent.
        let mut parent = body.parent;
        while let Some(p) = parent.filter(|&p| mechanism.bodies()[p].kind == BodyKind::Massless) {
            parent = mechanism.bodies()[p].parent;
        }
        let joint = &mechanism.joints()[body.joint];
        let rotor = matches!(body.kind, BodyKind::Rotor | BodyKind::SymmetricRotor);
        BodyReport {
            name: body.name.clone(),
            parent: body_name(parent),
            joint: joint.name.clone(),
            joint_type: if rotor { "rotor" } else { joint.joint_type.name() },
            velocity_span: result.spans[block.body].velocity,
            identifiable_span: result.spans[block.body].identifiable,
            transfer_freedoms: result.freedoms[block.body],
            parameters: own.iter().copied().zip(regrouping.status[columns].iter().copied()).collect(),
            base_parameters: regrouping.base[first..last].iter().map(|c| own[c - block.offset]).collect(),
        }
    });
    let named = |vector: &[(usize, f64)]| vector.iter().map(|&(k, x)| (names[k].clone(), x)).collect();
    let base_parameters = regrouping.base.iter().enumerate().map(|(i, &c)| {
        let combination = regrouping.combinations.get(i).map(|v| named(v)).unwrap_or_default();
        BaseParameter { name: names[c].clone(), combination }
    });
    if !regrouping.is_listed() {
        warnings.push(Warning::NotListed { rank });
    }
    let vectors = if result.null_space.is_empty() && regrouping.is_listed() {
        problem.named_null_space(geometry, &regrouping)
    } else {
        result.null_space
    };
    let null_space =
        vectors.into_iter().map(|(reason, v)| NullCombination::named(&names, &v, reason)).collect();
    let rotors = mechanism.bodies().len() - mechanism.link_bodies();
    Analysis {
        schema: SCHEMA,
        model: ModelSummary {
            name: mechanism.name().to_owned(),
            bodies: mechanism.parameter_blocks().len() - rotors,
            dof,
            base: if mechanism.base() == Base::Floating { "floating" } else { "fixed" },
            gravity: mechanism.gravity().into(),
            loops: mechanism.loops().len(),
            rotors,
        },
        measured: problem.experiment.measured.name(),
        total_momentum: (problem.experiment.measured == Measured::Momentum)
            .then(|| problem.experiment.conservation.as_ref().map_or("any", |c| c.total.name())),
        motions: match options.regime {
            Regime::Full => "any",
            Regime::Static => "static",
            Regime::Kinetic => "kinetic",
        },
        method: result.method,
        parameters: mechanism.parameter_count(),
        rank,
        rank_literal,
        nullity: mechanism.parameter_count() - rank,
        bodies: bodies.collect(),
        base_parameters: base_parameters.collect(),
        null_vectors: Vec::new(),
        principles: BTreeMap::new(),
        principles_in_paper: BTreeMap::new(),
        null_space,
        assumed: geometry.assumed().to_vec(),
        certificate: result.certificate,
        warnings,
        regrouping,
        transfers: result.transfers,
    }
}
