//! Identification of a payload on a link from joint torques.
//!
//! A payload with the parameters `π` in the frame of its link changes the base parameters by `K π`, where `K` are the columns of
//! that link in the regrouping, transformed to the link frame. Summaries of the equations of the robot are therefore sufficient.
//! With one log and a known model, the equations are `R (x₀ + [K π; δ]) ≈ r`, where `δ` are the joint terms that are estimated
//! anew. With two logs of the same robot, without and with the payload, they are `R₁ x ≈ r₁` and `R₂ (x + [K π; 0]) ≈ r₂`. The
//! common unknowns (`x` or `δ`) are eliminated. Ten unknowns remain, of which those outside the null space of `K` are
//! identifiable.

use crate::estimation::consistent::body_fit::consistent_body;
use crate::estimation::equations::Equations;
use crate::estimation::estimator::Estimator;
use crate::estimation::identification::criticism::Criticism;
use crate::estimation::identification::identify::IdentifyOptions;
use crate::estimation::identification::residuals::validate;
use crate::estimation::identification::result::{BodyEstimate, Identification, ModelSize, joints};
use crate::estimation::payload::force_sensor::measured_prior;
use crate::estimation::payload::link::PayloadLink;
use crate::estimation::payload::problem::{Problem, combinations};
use crate::estimation::payload::unloaded::{TermKnowledge, Unloaded};
use crate::estimation::reduction::summary::Summary;
use crate::estimation::warning::Warning;
use crate::spatial::{Inertia, Parameters};
use crate::warning::Warnings;
use crate::{Error, Result};
use nalgebra::DMatrix;

/// Difference between the estimate and the known value of a joint term, in standard errors, from which the data contradict the value.
const CONTRADICTED: f64 = 5.0;

/// Weight of a negligible prior.
pub const TRACE_OF_PRIOR: f64 = 1e-6;

/// Identifies the payload on a link; `loaded` is the summary of the robot with the payload.
///
/// The result has the payload as its only body, in the frame of the link. `base_parameters` are the combinations of its ten
/// parameters that the torques of the robot determine. Without `options.prior` (which refers to the robot) the prior is
/// [`measured_prior`].
pub fn identify_payload(
    equations: &Equations<'_>,
    link: &PayloadLink,
    loaded: &Summary,
    unloaded: Unloaded<'_>,
    options: &IdentifyOptions,
) -> Result<Identification> {
    if options.intervals.is_some() || options.posterior.is_some() {
        return Err(Error::Incompatible(
            "guaranteed and credible intervals of a payload need a force/torque sensor, not torques of joints"
                .into(),
        ));
    }
    loaded.check(equations)?;
    let ordinary = options.estimator == Estimator::Ols;
    let mut warnings = Warnings::of_model(equations.mechanism().warnings());
    let free = free_terms(equations, link, loaded, unloaded, &mut warnings, ordinary)?;
    let mut problem = Problem::new(equations, link, loaded, unloaded, &free)?;
    let fit = problem.fit(ordinary)?;
    let uncertainty = problem.uncertainty(&fit);
    let rank = link.regrouping.rank();
    let open: Vec<String> = fit.undetermined().into_iter().map(Into::into).collect();
    if fit.excited < rank {
        warnings.push(Warning::PayloadNotExcited { robot: None, excited: fit.excited, of: rank, open });
    } else if !open.is_empty() {
        warnings.push(Warning::PayloadNotIdentifiable { open });
    }
    let values: [f64; 10] = std::array::from_fn(|i| fit.payload[i]);
    let (parameters, proven) = match options.estimator {
        Estimator::Ols | Estimator::Wls => (Parameters::from(values), None),
        _ => {
            let errors = std::array::from_fn(|i| uncertainty.payload[(i, i)].max(0.0).sqrt());
            let prior = measured_prior(&values, &errors);
            let [a, b] = problem.without_common()?;
            // Correlated residuals contain less information.
            let scale = uncertainty.growth.max(1.0).sqrt().recip();
            let found = consistent_body(a * scale, b.column(0) * scale, &prior, options, fit.excited == 10)?;
            warnings.extend(found.warning);
            (found.parameters, Some((found.gap, found.covariance)))
        }
    };
    let unknowns = problem.unknowns(&fit, &parameters);
    let residuals = validate(equations, loaded, &unknowns)?;
    let unconstrained = match proven {
        Some(_) => {
            let unconstrained = problem.unknowns(&fit, &Parameters::from(values));
            Some(validate(equations, loaded, &unconstrained)?)
        }
        None => None,
    };
    let mut criticism = Criticism::of_payload(&residuals, unconstrained.as_ref());
    if let Some(error) = problem.model_error(&fit, &uncertainty)? {
        criticism.check_model(error.relative, error.share);
    }
    let inertia = Inertia::from_parameters(&parameters);
    let mut body = BodyEstimate::new("payload", &inertia)?;
    if let Some((_, covariance)) = &proven {
        body = body.with_errors(|i, j| covariance[(i, j)]);
        // Undetermined quantities come from the prior, which contains no knowledge here.
        if fit.is_open(0) {
            body.mass_std_error = None;
        }
        if (0..4).any(|i| fit.is_open(i)) {
            body.com_std_error = None;
        }
    }
    let base_parameters = combinations(link, &parameters, &uncertainty.payload, &fit.open)?;
    let mechanism = equations.mechanism();
    let mut joint_estimates = joints(equations, mechanism, &unknowns, None, &[]);
    if let Unloaded::Model { .. } = unloaded {
        // Values that were not estimated are not part of the result.
        for (&(v, term), _) in equations.terms.iter().zip(&free).filter(|(_, free)| !**free) {
            joint_estimates[v].omit(term);
        }
    }
    Ok(Identification {
        unexcited: fit.unexcited,
        essential: None,
        covariance: Vec::new(),
        intervals: Vec::new(),
        posterior: None,
        names: Vec::new(),
        value_covariance: DMatrix::zeros(0, 0),
        schema: "inertial/identification/1",
        model: ModelSize { name: mechanism.name().to_owned(), bodies: 1, dof: mechanism.nv() },
        estimator: options.estimator.result_name(options.solver),
        samples: problem.samples,
        rank,
        excited: fit.excited,
        least_norm: None,
        bodies: vec![body],
        joints: joint_estimates,
        base_parameters,
        fit_relative_rms: residuals.relative_rms,
        fit_relative_rms_raw: residuals.relative_rms_raw,
        fit_left_out: residuals.left_out,
        fit: residuals.joints,
        validation: Vec::new(),
        validation_relative_rms: None,
        validation_relative_rms_raw: None,
        validation_left_out: None,
        duality_gap: proven.map(|(gap, _)| gap),
        warnings,
        parameters: parameters.as_slice().to_vec(),
        values: unknowns,
        singular_values: Vec::new(),
        motors: Vec::new(),
        joint_terms: Vec::new(),
        terms: Vec::new(),
        verdict: Some(criticism.verdict),
        reasons: criticism.reasons,
        deviations: Vec::new(),
        lag: None,
        rotors: Vec::new(),
    })
}

/// Selects the joint terms that are estimated together with the payload: unknown ones, and presumed ones that the data contradict.
fn free_terms(
    equations: &Equations<'_>,
    link: &PayloadLink,
    loaded: &Summary,
    unloaded: Unloaded<'_>,
    warnings: &mut Warnings<Warning>,
    ordinary: bool,
) -> Result<Vec<bool>> {
    let Unloaded::Model { values, terms } = unloaded else { return Ok(Vec::new()) };
    for (what, expected, found) in [
        ("knowledge of joint terms", equations.terms.len(), terms.len()),
        ("values of the unknowns", equations.len(), values.len()),
    ] {
        if found != expected {
            return Err(Error::Dimension { what, expected, found });
        }
    }
    let mut free: Vec<bool> = terms.iter().map(|term| *term == TermKnowledge::Unknown).collect();
    if !terms.contains(&TermKnowledge::Presumed) {
        return Ok(free);
    }
    let tested: Vec<bool> = terms.iter().map(|term| *term != TermKnowledge::Fixed).collect();
    let mut problem = match Problem::new(equations, link, loaded, unloaded, &tested) {
        Err(Error::TooFewForces { .. }) => return Ok(free),
        problem => problem?,
    };
    let fit = problem.fit(ordinary)?;
    let covariance = problem.uncertainty(&fit).common;
    let mut contradicted = Vec::new();
    for (k, i) in (0..tested.len()).filter(|&i| tested[i]).enumerate() {
        let variance = covariance[(k, k)];
        let is_far = variance > 0.0 && fit.common[k].powi(2) > CONTRADICTED.powi(2) * variance;
        if terms[i] == TermKnowledge::Presumed && is_far {
            free[i] = true;
            contradicted.push(equations.names[equations.rank() + i].clone());
        }
    }
    if !contradicted.is_empty() {
        warnings.push(Warning::TermsContradicted { terms: contradicted });
    }
    Ok(free)
}
