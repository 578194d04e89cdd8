//! Result of an identification.

use std::collections::BTreeMap;

use nalgebra::DMatrix;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Result;
use crate::consistency::{DEFAULT_TOLERANCE, ManifoldCoordinates, check_inertia};
use crate::estimation::consistent::intervals::Interval;
use crate::estimation::consistent::posterior::Posterior;
use crate::estimation::diagnosis::deviation::Deviation;
use crate::estimation::equations::Equations;
use crate::estimation::identification::criticism::{Reason, ReasonCode, Verdict};
use crate::estimation::identification::residuals::Residual;
use crate::estimation::joint_model::terms::{Motor, Term};
use crate::estimation::least_squares::essential::Essential;
use crate::estimation::model_selection::evidence::TermChoice;
use crate::estimation::warning::Warning;
use crate::identifiability::{Regrouping, Status};
use crate::mechanism::{Body, BodyKind, Link, Mechanism, ParameterBlock};
use crate::spatial::Inertia;
use crate::warning::Warnings;

/// Name and size of the mechanism.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ModelSize {
    /// Name.
    pub name: String,
    /// Number of moving links.
    pub bodies: usize,
    /// Degrees of freedom.
    pub dof: usize,
}

/// Inertia tensor about the centre of mass, along the axes of the link.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct Tensor {
    /// Moment about x (kg m²).
    pub ixx: f64,
    /// Entry x, y of the tensor (kg m²): the negative product of inertia.
    pub ixy: f64,
    /// Entry x, z of the tensor (kg m²): the negative product of inertia.
    pub ixz: f64,
    /// Moment about y (kg m²).
    pub iyy: f64,
    /// Entry y, z of the tensor (kg m²): the negative product of inertia.
    pub iyz: f64,
    /// Moment about z (kg m²).
    pub izz: f64,
}

/// Estimated body.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct BodyEstimate {
    /// Name.
    pub name: String,
    /// Links with mass that make up the body, if there are other ones than the link of the same name: fixed and locked joints
    /// connect them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<String>,
    /// Mass (kg).
    pub mass: f64,
    /// Centre of mass in the frame of the body (m); the origin if the mass is zero.
    pub com: [f64; 3],
    /// Standard error of the mass, including the prior: as large as the prior permits if the motion excites the mass only together
    /// with other parameters. Absent if the estimator has no prior, or if the torques do not determine the mass of a payload.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mass_std_error: Option<f64>,
    /// Standard errors of the centre of mass; absent if the mass has none, or if the torques do not determine one of its
    /// coordinates.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub com_std_error: Option<[f64; 3]>,
    /// Inertia about the centre of mass.
    pub inertia: Tensor,
    /// Whether the values are physically consistent.
    pub consistent: bool,
    /// Smallest eigenvalue of the pseudo-inertia.
    pub pseudo_inertia_min_eigenvalue: f64,
    /// Mass, centre of mass, principal axes and second moments; absent without a mass.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub manifold: Option<ManifoldCoordinates>,
}

impl BodyEstimate {
    /// Creates the estimate of a body and checks its physical consistency.
    pub fn new(name: &str, inertia: &Inertia<f64>) -> Result<Self> {
        let verdict = check_inertia(inertia, DEFAULT_TOLERANCE)?;
        let t = inertia.about_com();
        Ok(Self {
            name: name.to_owned(),
            links: Vec::new(),
            mass: inertia.mass,
            com: inertia.com().map_or([0.0; 3], Into::into),
            mass_std_error: None,
            com_std_error: None,
            inertia: Tensor {
                ixx: t[(0, 0)],
                ixy: t[(0, 1)],
                ixz: t[(0, 2)],
                iyy: t[(1, 1)],
                iyz: t[(1, 2)],
                izz: t[(2, 2)],
            },
            consistent: verdict.is_consistent(),
            pseudo_inertia_min_eigenvalue: verdict.pseudo_inertia_min_eigenvalue,
            manifold: ManifoldCoordinates::new(inertia)?,
        })
    }

    /// Adds standard errors from the covariance of the ten parameters.
    pub(crate) fn with_errors(mut self, covariance: impl Fn(usize, usize) -> f64) -> Self {
        self.mass_std_error = Some(covariance(0, 0).max(0.0).sqrt());
        // Standard error of c = h/m, to first order.
        let com = |k: usize| {
            let c = self.com[k];
            let variance =
                covariance(k + 1, k + 1) - 2.0 * c * covariance(0, k + 1) + c * c * covariance(0, 0);
            variance.max(0.0).sqrt() / self.mass
        };
        self.com_std_error = (self.mass > 0.0).then(|| std::array::from_fn(com));
        self
    }
}

/// Estimated model of a joint; terms that were not estimated are absent.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[non_exhaustive]
pub struct JointEstimate {
    /// Name.
    pub name: String,
    /// Viscous friction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub viscous: Option<f64>,
    /// Coulomb friction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub coulomb: Option<f64>,
    /// Coulomb friction of forward motion.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub coulomb_positive: Option<f64>,
    /// Coulomb friction of backward motion.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub coulomb_negative: Option<f64>,
    /// Excess of the static friction over the Coulomb friction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stribeck: Option<f64>,
    /// Speed at which the excess has decreased to 1/e.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stribeck_velocity: Option<f64>,
    /// Exponent of the Stribeck curve.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stribeck_exponent: Option<f64>,
    /// Constant offset of the measured torque.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offset: Option<f64>,
    /// Rotor inertia, reflected to the joint.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rotor_inertia: Option<f64>,
    /// Factor of the logged torque, if drive gains are estimated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gain: Option<f64>,
    /// Standard error of the gain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gain_std_error: Option<f64>,
    /// Joints that the drive turns with, if it is coupled to more than this joint.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub turns_with: BTreeMap<String, f64>,
    /// User-defined terms.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub terms: BTreeMap<String, f64>,
    /// Standard errors of these terms, by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub std_errors: BTreeMap<String, f64>,
}

/// Estimated base parameter.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct ParameterEstimate {
    /// Name of the combination as `BODY.NAME`.
    pub name: String,
    /// Value.
    pub value: f64,
    /// Standard error; with the part of the prior for consistent estimators, see `ConsistentFit::covariance`.
    pub std_error: f64,
    /// Standard error relative to the value; absent if the value is zero or almost zero.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub relative_std_error: Option<f64>,
}

impl ParameterEstimate {
    pub(crate) fn new(name: String, value: f64, std_error: f64) -> Self {
        let mut out = Self { name, value, std_error, relative_std_error: None };
        out.set_std_error(std_error);
        out
    }

    pub(crate) fn set_std_error(&mut self, std_error: f64) {
        self.std_error = std_error;
        // The ratio overflows for values close to the smallest double.
        self.relative_std_error =
            Some((std_error / self.value).abs()).filter(|relative| relative.is_finite());
    }
}

/// Lag of the torques behind the motion.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct TorqueLag {
    /// Lag (s).
    pub value: f64,
    /// Standard error.
    pub std_error: f64,
}

/// Least-norm solution (of the pseudo-inverse). Its bodies are one of many sets of parameters that fit the data equally well: they
/// are not physical bodies.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct LeastNorm {
    /// Bodies whose mass is identifiable alone.
    pub masses: Vec<String>,
}

impl LeastNorm {
    pub(crate) fn new(mechanism: &Mechanism, regrouping: &Regrouping) -> Self {
        let alone = |block: &&ParameterBlock| {
            block.len == 10 && regrouping.status[block.offset] == Status::Identifiable
        };
        let name = |block: &ParameterBlock| mechanism.bodies()[block.body].name.clone();
        Self { masses: mechanism.parameter_blocks().iter().filter(alone).map(name).collect() }
    }
}

/// Result of `identify`; serializes to the object of `identify --json`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct Identification {
    /// Schema of the JSON object.
    #[schemars(extend("const" = "inertial/identification/1"))]
    pub schema: &'static str,
    /// Mechanism.
    pub model: ModelSize,
    /// Estimator.
    pub estimator: &'static str,
    /// Number of samples.
    pub samples: usize,
    /// Number of base parameters.
    pub rank: usize,
    /// Number of excited directions of base parameters.
    pub excited: usize,
    /// Least-norm solution, if the bodies are those of one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub least_norm: Option<LeastNorm>,
    /// Estimated bodies.
    pub bodies: Vec<BodyEstimate>,
    /// Estimated joints.
    pub joints: Vec<JointEstimate>,
    /// Estimated base parameters.
    pub base_parameters: Vec<ParameterEstimate>,
    /// Residuals of the data that were fitted.
    pub fit: Vec<Residual>,
    /// Relative residual of all joints together.
    #[schemars(with = "Option<f64>")]
    pub fit_relative_rms: f64,
    /// Relative residual of the unfiltered forces, over all samples, including those that were not used.
    #[schemars(with = "Option<f64>")]
    pub fit_relative_rms_raw: f64,
    /// Share of the samples that were not used, for all joints together.
    pub fit_left_out: f64,
    /// Residuals of the held-out data.
    pub validation: Vec<Residual>,
    /// Relative residual of the held-out data, for all joints together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub validation_relative_rms: Option<f64>,
    /// Relative residual of the unfiltered held-out forces, over all samples.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub validation_relative_rms_raw: Option<f64>,
    /// Share of the held-out samples that were not used, for all joints together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub validation_left_out: Option<f64>,
    /// Combinations of unknowns that the motion did not excite. Adding any of them does not change a prediction.
    #[serde(rename = "not_shown", skip_serializing_if = "Vec::is_empty")]
    pub unexcited: Vec<BTreeMap<String, f64>>,
    /// Unknowns that are significant against the noise, if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub essential: Option<Essential>,
    /// Covariance of the base parameters, if requested; its diagonal holds the squares of their standard errors.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub covariance: Vec<Vec<f64>>,
    /// Intervals that contain the values of all consistent robots that fit the data within the given noise, if requested.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub intervals: Vec<Interval>,
    /// Posterior of consistent bodies, if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub posterior: Option<Posterior>,
    /// Duality gap of the consistent estimator: cost minus proven lower bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duality_gap: Option<f64>,
    /// Usability of the result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    /// Reasons for the verdict.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<Reason>,
    /// Errors of model and sensors, estimated together with the unknowns.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub deviations: Vec<Deviation>,
    /// Lag of the torques that was estimated and corrected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lag: Option<TorqueLag>,
    /// Joint terms that were tested with the data, selected or not.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub terms: Vec<TermChoice>,
    /// Warnings.
    #[serde(flatten)]
    pub warnings: Warnings<Warning>,
    /// All inertial parameters, for computation.
    #[serde(skip)]
    pub parameters: Vec<f64>,
    /// Unknowns of the equations, for computation.
    #[serde(skip)]
    pub values: Vec<f64>,
    /// Names of the unknowns: base parameters, then joint terms; empty for payloads.
    #[serde(skip)]
    pub names: Vec<String>,
    /// Covariance of the unknowns.
    #[serde(skip)]
    pub value_covariance: DMatrix<f64>,
    /// Excitation of the base parameters, independent of the joint terms: singular values for columns of unit length, in
    /// descending order.
    #[serde(skip)]
    pub singular_values: Vec<f64>,
    /// Drives of the selected joint model.
    #[serde(skip)]
    pub(crate) motors: Vec<Motor>,
    /// Joint terms, by row.
    #[serde(skip)]
    pub(crate) joint_terms: Vec<(usize, Term)>,
    /// Rotor inertias, by row, that act like the inertia of links.
    #[serde(skip)]
    pub(crate) rotors: Vec<(usize, f64)>,
}

impl Identification {
    /// Removes the reasons with a code and a verdict, which another reason explains.
    pub(crate) fn remove_reasons(&mut self, code: ReasonCode, verdict: Verdict) {
        self.reasons.retain(|r| (r.code, r.verdict) != (code, verdict));
        self.verdict =
            self.verdict.map(|_| self.reasons.iter().map(|r| r.verdict).fold(Verdict::Good, Verdict::max));
    }

    /// Adds a reason, before those of lower severity.
    pub(crate) fn add_reason(&mut self, code: ReasonCode, verdict: Verdict, text: &str) {
        self.verdict = Some(self.verdict.map_or(verdict, |own| own.max(verdict)));
        let place = self.reasons.iter().take_while(|r| r.verdict > verdict).count();
        self.reasons.insert(place, Reason::new(code, verdict, text));
    }
}

/// Returns all bodies with mass, with standard errors where the covariance of the parameters is known.
pub(crate) fn bodies(mechanism: &Mechanism, covariance: Option<&DMatrix<f64>>) -> Result<Vec<BodyEstimate>> {
    let with_mass = |kind: &BodyKind| matches!(kind, BodyKind::Link | BodyKind::Rotor);
    let one = |(index, body): (usize, &Body)| {
        let mut out = BodyEstimate::new(&body.name, &body.inertia)?;
        out.links = merged_links(mechanism, index);
        let block = mechanism.parameter_blocks().iter().find(|b| b.body == index && b.len == 10);
        Ok(match covariance.zip(block) {
            Some((covariance, block)) => {
                out.with_errors(|i, j| covariance[(block.offset + i, block.offset + j)])
            }
            None => out,
        })
    };
    mechanism.bodies().iter().enumerate().filter(|(_, b)| with_mass(&b.kind)).map(one).collect()
}

/// Returns the links with mass that make up a body; empty if the link of the same name is the only one.
fn merged_links(mechanism: &Mechanism, body: usize) -> Vec<String> {
    let has_mass = |link: &&Link| link.inertia.is_some_and(|inertia| inertia != Inertia::zero());
    let own = mechanism.links().iter().filter(|link| link.body == Some(body)).filter(has_mass);
    let names: Vec<String> = own.map(|link| link.name.clone()).collect();
    if names.iter().any(|name| *name != mechanism.bodies()[body].name) { names } else { Vec::new() }
}

/// Uncertainty of a result.
#[derive(Clone, Copy)]
pub(crate) struct Errors<'a> {
    /// Standard errors of the unknowns.
    pub unknowns: &'a [f64],
    /// Covariance of all parameters, if each has a prior.
    pub parameters: Option<&'a DMatrix<f64>>,
}

/// Returns the estimates of the joints. `rotors` are inertias, by row, that act like those of links.
pub(crate) fn joints(
    equations: &Equations<'_>,
    estimated: &Mechanism,
    values: &[f64],
    std_errors: Option<Errors<'_>>,
    rotors: &[(usize, f64)],
) -> Vec<JointEstimate> {
    let names = equations.row_names();
    let mut out: Vec<JointEstimate> = names
        .into_iter()
        .take(equations.coordinates())
        .map(|name| JointEstimate { name, ..JointEstimate::default() })
        .collect();
    let first = equations.rank();
    for (k, (&(v, term), &value)) in equations.terms.iter().zip(&values[first..]).enumerate() {
        let joint = &mut out[v];
        let name = equations.short_name(term);
        if let Some(errors) = std_errors {
            joint.std_errors.insert(name.to_owned(), errors.unknowns[first + k]);
        }
        let place = match term {
            Term::Viscous => &mut joint.viscous,
            Term::Coulomb => &mut joint.coulomb,
            Term::CoulombPositive => &mut joint.coulomb_positive,
            Term::CoulombNegative => &mut joint.coulomb_negative,
            Term::Stribeck => {
                joint.stribeck_velocity = equations.stribeck_curve(v).map(|b| b.speed);
                joint.stribeck_exponent = equations.stribeck_curve(v).map(|b| b.exponent);
                &mut joint.stribeck
            }
            Term::Offset => &mut joint.offset,
            Term::RotorInertia => &mut joint.rotor_inertia,
            Term::Given { .. } => {
                joint.terms.insert(name.to_owned(), value);
                continue;
            }
        };
        *place = Some(value);
    }
    rotors.iter().for_each(|&(row, inertia)| out[row].rotor_inertia = Some(inertia));
    let names = equations.row_names();
    for (v, motor) in equations.motors().iter().enumerate().filter(|(v, m)| m.shaft != [(*v, 1.0)]) {
        out[v].turns_with = motor.shaft.iter().map(|&(k, factor)| (names[k].clone(), factor)).collect();
    }
    for block in estimated.parameter_blocks() {
        let rotor = &estimated.bodies()[block.body];
        if rotor.kind != BodyKind::SymmetricRotor {
            continue;
        }
        let (square, inertia) = (rotor.drive.ratio.powi(2), rotor.inertia.rotational[(2, 2)]);
        if let Some(row) = (0..out.len()).find(|&row| equations.tree_coordinate(row) == rotor.drive.v) {
            *out[row].rotor_inertia.get_or_insert(0.0) += square * inertia;
            if let Some(spread) = std_errors.and_then(|e| e.parameters) {
                let error = square * spread[(block.offset, block.offset)].max(0.0).sqrt();
                out[row].std_errors.insert(Term::RotorInertia.name().to_owned(), error);
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Regression test: infinite values became `null` in JSON where the schema requires a number.
    #[test]
    fn relative_errors_of_values_next_to_zero_are_absent() {
        let relative = |value| ParameterEstimate::new("a.m".into(), value, 0.5).relative_std_error;
        assert_eq!([relative(-2.0), relative(0.0), relative(1e-320)], [Some(0.25), None, None]);
    }
}
