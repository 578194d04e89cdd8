//! Identification of parameters from a summary.

use std::collections::BTreeMap;
use std::time::Duration;

use nalgebra::{DMatrix, DVector};

use crate::estimation::consistent::bounds::Bounds;
use crate::estimation::consistent::intervals::{IntervalOptions, intervals};
use crate::estimation::consistent::joint_term_prior::grounded_rotor_widths;
use crate::estimation::consistent::posterior::{PosteriorOptions, posterior};
use crate::estimation::consistent::prior::Prior;
use crate::estimation::consistent::problem::{Consistency, ConsistentFit, PriorKind};
use crate::estimation::equations::Equations;
use crate::estimation::estimator::{Estimator, Solver};
use crate::estimation::identification::criticism::{Criticism, GAP, Verdict};
use crate::estimation::identification::excited::Unexcited;
use crate::estimation::identification::least_norm::least_norm;
use crate::estimation::identification::residuals::validate;
use crate::estimation::identification::result::{
    Errors, Identification, LeastNorm, ModelSize, ParameterEstimate, bodies, joints,
};
use crate::estimation::identification::unmeasured::out_of_reach;
use crate::estimation::least_squares::essential::essential;
use crate::estimation::least_squares::fit::{LeastSquares, Weighting, information};
use crate::estimation::least_squares::robust::{PASSES, robust};
use crate::estimation::model_selection::evidence::OmittedTerm;
use crate::estimation::model_selection::grounded_rotors::Misfit;
use crate::estimation::model_selection::joint_terms::choose;
use crate::estimation::reduction::measurements::Huber;
use crate::estimation::reduction::summary::Summary;
use crate::estimation::warning::{RotorSplit, Warning};
use crate::linalg::{Triangle, singular_values};
use crate::mechanism::{Body, BodyKind, Mechanism};
use crate::optimize::{Options, SolverStatus};
use crate::spatial::Inertia;
use crate::warning::Warnings;
use crate::{Error, Result};

/// Options of [`identify`].
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct IdentifyOptions {
    /// Estimator to use.
    pub estimator: Estimator,
    /// Solver of the consistent estimator.
    pub solver: Solver,
    /// Prior bodies of the consistent estimator. Default: the bodies of the model.
    pub prior: Option<Prior>,
    /// Weight of the prior, see [`crate::estimation::consistent`].
    pub prior_weight: f64,
    /// Distance between a body and its prior.
    pub prior_kind: PriorKind,
    /// Whether estimators without constraints return the parameters of least norm (the pseudo-inverse) instead of those of the
    /// model with adjusted base parameters.
    pub least_norm: bool,
    /// Bounds on bodies.
    pub bounds: Option<Bounds>,
    /// Whether to determine the essential unknowns; estimators without constraints then set the others to zero.
    pub essential: bool,
    /// Whether to return the covariance of the base parameters.
    pub covariance: bool,
    /// Options of guaranteed intervals, if they are computed.
    pub intervals: Option<IntervalOptions>,
    /// Options of the posterior of the consistent estimator, if it is sampled.
    pub posterior: Option<PosteriorOptions>,
    /// Time limit of the solver of the consistent estimator. When it is exceeded, the solver returns its best estimate so far,
    /// with its duality gap.
    pub time_limit: Option<Duration>,
}

crate::with_changes!(IdentifyOptions);

impl IdentifyOptions {
    /// Returns the prior. The default is the bodies of the model.
    pub fn prior(&self, mechanism: &Mechanism) -> Result<Prior> {
        self.prior.clone().map_or_else(|| Prior::new(mechanism), Ok)
    }

    /// Returns the options of the consistent estimator.
    pub fn consistency<'a>(&'a self, prior: &'a Prior) -> Consistency<'a> {
        Consistency {
            solver: self.solver,
            prior_kind: self.prior_kind,
            bounds: self.bounds.as_ref(),
            options: Options { time_limit: self.time_limit, ..Options::default() },
            ..Consistency::new(prior, self.prior_weight)
        }
    }
}

impl From<Estimator> for IdentifyOptions {
    /// Returns the default options with another estimator.
    fn from(estimator: Estimator) -> Self {
        Self { estimator, ..Self::default() }
    }
}

impl Default for IdentifyOptions {
    fn default() -> Self {
        Self {
            estimator: Estimator::default(),
            solver: Solver::default(),
            prior: None,
            prior_weight: 1.0,
            prior_kind: PriorKind::default(),
            least_norm: false,
            bounds: None,
            essential: false,
            covariance: false,
            intervals: None,
            posterior: None,
            time_limit: None,
        }
    }
}

/// Estimates the parameters of a mechanism from a summary of its logs.
pub fn identify(
    equations: &Equations<'_>,
    summary: &Summary,
    validation: Option<&Summary>,
    options: &IdentifyOptions,
) -> Result<Identification> {
    match options.estimator {
        Estimator::Irls => {
            return Err(Error::NotApplicable(
                "the estimator irls needs every sample, which a summary does not contain: give the logs \
                 themselves"
                    .into(),
            ));
        }
        Estimator::Bcls | Estimator::Eiv => {
            return Err(Error::NotApplicable(format!(
                "the estimator {} is for momentum: use ols, wls, irls or consistent",
                options.estimator.name()
            )));
        }
        _ => {}
    }
    if equations.has_candidates() {
        let (out, coupled) = identify_chosen(equations, summary, validation, options)?;
        if !coupled || out.verdict != Some(Verdict::DoNotUse) {
            return Ok(out);
        }
        let plain = equations.without_coupling_search();
        let (mut out, _) = identify_chosen(&plain, summary, validation, options)?;
        out.warnings.push(Warning::CouplingRejected);
        return Ok(out);
    }
    let squares = LeastSquares::new(equations, summary, weighting(options))?;
    estimate(equations, summary, validation, options, squares, &[])
}

/// Selects the joint model and estimates the parameters with it. Returns whether it couples drives that the model does not couple.
fn identify_chosen(
    candidates: &Equations<'_>,
    summary: &Summary,
    validation: Option<&Summary>,
    options: &IdentifyOptions,
) -> Result<(Identification, bool)> {
    let chosen = choose(candidates, summary)?;
    let project = |s: &Summary| s.project(candidates, &chosen.equations);
    let validation = validation.map(project).transpose()?;
    let summary = project(summary)?;
    let squares = LeastSquares::new(&chosen.equations, &summary, weighting(options))?;
    let again = |equations: &Equations<'_>, omitted_terms: &[OmittedTerm]| {
        estimate(equations, &summary, validation.as_ref(), options, squares.clone(), omitted_terms)
    };
    let mut out = again(&chosen.equations, &chosen.omitted_terms)?;
    if options.estimator == Estimator::Consistent
        && let Some(with_rotors) = chosen.with_grounded_rotors()
    {
        let misfit = Misfit::new(&chosen.equations, &summary, &squares)?;
        // A link that is heavier than several robots is implausible. If other joints have rotors, a rotor of this joint is a more
        // probable cause.
        let is_heavy = |found: &Identification| chosen.has_rotors() && found.warnings.has("implausible");
        if misfit.is_large(&out.values) || is_heavy(&out) {
            let omitted_terms: Vec<OmittedTerm> =
                chosen.omitted_terms.iter().filter(|term| !term.of_prior).cloned().collect();
            let other = again(&with_rotors, &omitted_terms)?;
            if misfit.falls(&out.values, &other.values) || (is_heavy(&out) && !is_heavy(&other)) {
                out = other;
            }
        }
    }
    let coupled = chosen.coupled;
    Ok((chosen.explain(out), coupled))
}

/// Returns the weighting of an estimator.
pub(crate) fn weighting(options: &IdentifyOptions) -> Weighting {
    if options.estimator == Estimator::Ols { Weighting::Ordinary } else { Weighting::Weighted }
}

/// Estimates the parameters with less weight on outliers ([`Estimator::Irls`]). `pass` computes a summary of the data for given
/// equations with Huber weights, see [`robust()`].
pub fn identify_robust(
    equations: &Equations<'_>,
    summary: &Summary,
    validation: Option<&Summary>,
    options: &IdentifyOptions,
    pass: impl FnMut(&Equations<'_>, Huber<'_>) -> Result<Summary>,
) -> Result<Identification> {
    if equations.has_candidates() {
        let chosen = choose(equations, summary)?;
        let project = |s: &Summary| s.project(equations, &chosen.equations);
        let validation = validation.map(project).transpose()?;
        let summary = project(summary)?;
        let out = estimate_robust(
            &chosen.equations,
            &summary,
            validation.as_ref(),
            options,
            &chosen.omitted_terms,
            pass,
        )?;
        return Ok(chosen.explain(out));
    }
    estimate_robust(equations, summary, validation, options, &[], pass)
}

/// Computes the result of a robust least-squares fit.
fn estimate_robust(
    equations: &Equations<'_>,
    summary: &Summary,
    validation: Option<&Summary>,
    options: &IdentifyOptions,
    omitted_terms: &[OmittedTerm],
    mut pass: impl FnMut(&Equations<'_>, Huber<'_>) -> Result<Summary>,
) -> Result<Identification> {
    let (squares, settled) = robust(equations, summary, |huber| pass(equations, huber))?;
    let options = IdentifyOptions { estimator: Estimator::Irls, ..options.clone() };
    let mut out = estimate(equations, summary, validation, &options, squares, omitted_terms)?;
    if !settled {
        out.warnings.push(Warning::OutliersNotConverged { passes: PASSES });
    }
    Ok(out)
}

/// Adds the uncertainty due to omitted terms to a covariance.
///
/// An omitted term contains the change of the least-squares estimate. `response` converts it to the change of an estimate with a prior.
fn widen(covariance: &mut DMatrix<f64>, response: Option<&DMatrix<f64>>, omitted_terms: &[OmittedTerm]) {
    let unknowns = covariance.nrows();
    for term in omitted_terms.iter().filter(|term| term.change.len() == unknowns) {
        let mut change = &term.change * term.variance.sqrt();
        match response {
            Some(response) if term.of_prior => change -= response * change.clone(),
            Some(response) => change = response * change,
            // Without a prior the estimate follows the data, which contain the term.
            None if term.of_prior => continue,
            None => {}
        }
        covariance.ger(1.0, &change, &change, 1.0);
    }
}

/// Computes the result of a least-squares fit.
fn estimate(
    equations: &Equations<'_>,
    summary: &Summary,
    validation: Option<&Summary>,
    options: &IdentifyOptions,
    mut squares: LeastSquares,
    omitted_terms: &[OmittedTerm],
) -> Result<Identification> {
    let mechanism = equations.mechanism();
    let mut warnings = Warnings::of_model(mechanism.warnings());
    if let Some(closed) = equations.closed() {
        warnings.extend(closed.warnings().iter().cloned().map(Warning::Model));
        if !equations.terms.is_empty() && closed.dof() < mechanism.nv() {
            let independent = closed.independent_names();
            warnings.push(Warning::DependentJoints { independent });
        }
    }
    let essential = options.essential.then(|| essential(equations, summary, &squares)).transpose()?;
    let mut prior = options.prior(mechanism)?;
    let unexcited = Unexcited::new(equations, summary, &squares, &prior)?;
    let names = equations.row_names();
    let (given, other): (Vec<_>, Vec<_>) =
        equations.grounded_rotors().partition(|(_, _, given)| *given > 0.0);
    let separated =
        if options.estimator == Estimator::Consistent { RotorSplit::Prior } else { RotorSplit::Link };
    for (rotors, split) in [(given, RotorSplit::Model), (other, separated)] {
        let joints: Vec<_> = rotors.iter().map(|&(row, _, _)| names[row].clone()).collect();
        if !joints.is_empty() {
            warnings.push(Warning::RotorsNotSeparated { joints, split });
        }
    }
    if !squares.few_residuals.is_empty() {
        let joints = squares.few_residuals.iter().map(|&row| names[row].clone()).collect();
        warnings.push(Warning::ShortLog { joints });
    }
    warnings.extend(not_excited(equations, &unexcited));
    warnings.extend(out_of_reach(equations, summary)?);
    if let Some(essential) = essential.as_ref().filter(|_| options.estimator != Estimator::Consistent) {
        squares = essential.fit.clone();
    }
    let (mut credible, mut is_stopped, mut response) = (None, false, None);
    let (parameters, values, gap, mut covariance, rotors, spread) = if options.estimator
        == Estimator::Consistent
    {
        warnings.extend(prior.warning());
        let mut fit = ConsistentFit::new(equations, summary, &squares, &options.consistency(&prior))?;
        let covariance = &fit.parameter_covariance;
        let weight = options.prior_weight;
        if let Some(lighter) = prior.without_heavy_guesses(mechanism, &fit.parameters, covariance, weight) {
            prior = lighter;
            fit = ConsistentFit::new(equations, summary, &squares, &options.consistency(&prior))?;
        }
        warnings.extend(fit.warning());
        if let Some(posterior_options) = options.posterior {
            let wanted = options.consistency(&prior);
            let found = posterior(equations, summary, &squares, &wanted, &fit, posterior_options)?;
            warnings.extend(found.warning());
            credible = Some(found);
        }
        // A search that stalls at the rounding error of the cost may have no bound, but its result is the best.
        is_stopped = matches!(fit.status, SolverStatus::Stopped | SolverStatus::StepLimit);
        let gap = fit.cost - fit.lower_bound;
        response = Some(fit.response);
        (fit.parameters, fit.values, Some(gap), fit.covariance, fit.rotors, Some(fit.parameter_covariance))
    } else if options.least_norm {
        let (parameters, values) = least_norm(&equations.regrouping, &squares)?;
        (parameters, values, None, squares.covariance.clone(), Vec::new(), None)
    } else {
        let values = squares.values.as_slice().to_vec();
        // Rotor inertias given by the model are not part of the link inertias.
        let given = equations.grounded_rotors().filter(|(_, _, given)| *given > 0.0);
        let rotors: Vec<_> = given.map(|(row, _, given)| (row, given)).collect();
        let base = without_rotors(equations, &values, &rotors);
        let parameters = equations.regrouping.expand(&base[..equations.rank()], &mechanism.parameters())?;
        (parameters, values, None, squares.covariance.clone(), rotors, None)
    };
    let intervals = match &options.intervals {
        Some(interval_options) => {
            intervals(equations, summary, &squares, &options.consistency(&prior), interval_options)?
        }
        None => Vec::new(),
    };
    widen(&mut covariance, response.as_ref(), omitted_terms);
    let std_errors: Vec<f64> = covariance.diagonal().iter().map(|v| v.max(0.0).sqrt()).collect();
    let fit = validate(equations, summary, &values)?;
    let consistent = options.estimator == Estimator::Consistent;
    // A fit that is far from the best one is no evidence against consistent bodies.
    let large_gap = gap.filter(|gap| is_stopped && *gap > GAP);
    let mut criticism =
        Criticism::new(equations, summary, &squares, &fit, consistent && large_gap.is_none())?;
    let validation = validation.map(|v| validate(equations, v, &values)).transpose()?;
    if let Some(validation) = &validation {
        criticism.check_validation(fit.relative_rms, validation.relative_rms);
    }
    let estimated = mechanism.clone().with_parameters(&parameters)?;
    criticism.check_scale(equations, summary, &parameters)?;
    if let Some(gap) = large_gap {
        criticism.add_gap(gap);
    }
    if let Some(warning) = implausible(mechanism, &estimated)? {
        // Without constraints, single masses are arbitrary: the data determine combinations of them.
        if consistent {
            criticism.check_implausible(&warning);
        }
        warnings.push(warning);
    }
    let base_parameters = equations.names[..equations.rank()].iter().zip(&values).zip(&std_errors);
    let row = |i: usize| (0..equations.rank()).map(|j| covariance[(i, j)]).collect();
    let own_errors = if consistent && !rotors.is_empty() {
        with_rotor_errors(equations, &prior, std_errors.clone())?
    } else {
        std_errors.clone()
    };
    let errors = Errors { unknowns: &own_errors, parameters: spread.as_ref() };
    let rows = if options.covariance { equations.rank() } else { 0 };
    Ok(Identification {
        schema: "inertial/identification/1",
        model: ModelSize {
            name: mechanism.name().to_owned(),
            bodies: mechanism.bodies().iter().filter(|b| b.kind == BodyKind::Link).count(),
            dof: equations.coordinates(),
        },
        estimator: options.estimator.result_name(options.solver),
        samples: summary.samples,
        rank: equations.rank(),
        excited: equations.rank() - unexcited.of_base()?,
        least_norm: (options.least_norm && !consistent)
            .then(|| LeastNorm::new(mechanism, &equations.regrouping)),
        bodies: bodies(&estimated, spread.as_ref())?,
        joints: joints(
            equations,
            &estimated,
            &without_rotors(equations, &values, &rotors),
            Some(errors),
            &rotors,
        ),
        base_parameters: base_parameters
            .map(|((name, &value), &std_error)| ParameterEstimate::new(name.clone(), value, std_error))
            .collect(),
        fit_relative_rms: fit.relative_rms,
        fit_relative_rms_raw: fit.relative_rms_raw,
        fit_left_out: fit.left_out,
        fit: fit.joints,
        validation_relative_rms: validation.as_ref().map(|v| v.relative_rms),
        validation_relative_rms_raw: validation.as_ref().map(|v| v.relative_rms_raw),
        validation_left_out: validation.as_ref().map(|v| v.left_out),
        validation: validation.map_or_else(Vec::new, |v| v.joints),
        unexcited: named_directions(equations, &unexcited),
        essential,
        covariance: (0..rows).map(row).collect(),
        intervals,
        posterior: credible,
        duality_gap: gap,
        warnings,
        parameters,
        values,
        names: equations.names.clone(),
        value_covariance: covariance,
        singular_values: excitation(equations, summary, &squares.weights)?,
        motors: equations.motors().to_vec(),
        joint_terms: equations.terms.clone(),
        terms: Vec::new(),
        verdict: Some(criticism.verdict),
        reasons: criticism.reasons,
        deviations: Vec::new(),
        lag: None,
        rotors,
    })
}

/// Returns the values of the unknowns without the effects of rotors that act like them.
fn without_rotors(equations: &Equations<'_>, values: &[f64], rotors: &[(usize, f64)]) -> Vec<f64> {
    let mut out = DVector::from_column_slice(values);
    for (row, effect, _) in equations.grounded_rotors() {
        if let Some((_, inertia)) = rotors.iter().find(|(other, _)| *other == row) {
            out.axpy(-inertia, &effect, 1.0);
        }
    }
    out.as_slice().to_vec()
}

/// Adds the uncertainty of rotors that act like other unknowns to the standard errors of these: the data do not separate them, only
/// the prior does.
fn with_rotor_errors(equations: &Equations<'_>, prior: &Prior, mut errors: Vec<f64>) -> Result<Vec<f64>> {
    for ((_, effect, _), width) in equations.grounded_rotors().zip(grounded_rotor_widths(equations, prior)?) {
        errors.iter_mut().zip(effect.iter()).for_each(|(error, x)| *error = error.hypot(x * width));
    }
    Ok(errors)
}

/// Computes the singular values of the data in the base parameters, with columns of unit length, after elimination of the joint
/// terms.
fn excitation(equations: &Equations<'_>, summary: &Summary, weights: &[f64]) -> Result<Vec<f64>> {
    let (rank, all) = (equations.rank(), equations.len());
    let columns: Vec<usize> = (rank..all).chain(0..rank).collect();
    let mut data = information(equations, summary, weights)?.matrix().select_columns(&columns);
    for mut column in data.column_iter_mut() {
        let size = column.norm();
        if size > 0.0 {
            column.unscale_mut(size);
        }
    }
    let mut triangle = Triangle::new(all);
    triangle.add_rows(data.as_mut_slice(), all)?;
    let own = triangle.matrix().view((all - rank, all - rank), (rank, rank)).into_owned();
    Ok(singular_values(&own)?)
}

/// Returns a warning about links that weigh more than three times the mass of the robot according to its model or to the distances
/// between its joints: such estimates are implausible. A model without masses and distances (a body behind a sensor) is not tested.
fn implausible(mechanism: &Mechanism, estimated: &Mechanism) -> Result<Option<Warning>> {
    let has_size = |b: &Body| b.inertia.mass > 0.0 || b.placement.translation.norm() > 0.0;
    if !mechanism.bodies().iter().any(has_size) {
        return Ok(None);
    }
    let links = |(i, _): &(usize, &Inertia<f64>)| mechanism.bodies()[*i].kind == BodyKind::Link;
    let prior = Prior::new(mechanism)?;
    let robot: f64 = prior.bodies.iter().enumerate().filter(links).map(|(_, b)| b.mass).sum();
    let links: Vec<(String, f64)> = estimated
        .bodies()
        .iter()
        .filter(|b| b.kind == BodyKind::Link && b.inertia.mass > 3.0 * robot)
        .map(|b| (b.name.clone(), b.inertia.mass))
        .collect();
    Ok((!links.is_empty()).then_some(Warning::Implausible { links, robot }))
}

/// Returns the directions that the motion did not excite, by name.
fn named_directions(equations: &Equations<'_>, unexcited: &Unexcited) -> Vec<BTreeMap<String, f64>> {
    let named = |(_, combination): (usize, Vec<(usize, f64)>)| {
        combination.into_iter().map(|(i, x)| (equations.names[i].clone(), x)).collect()
    };
    unexcited.combinations().into_iter().map(named).collect()
}

/// Returns a warning about the unknowns in unexcited directions.
fn not_excited(equations: &Equations<'_>, unexcited: &Unexcited) -> Option<Warning> {
    (unexcited.len() > 0).then(|| Warning::NotExcited {
        missing: unexcited.len(),
        of: equations.len(),
        kind: "unknowns",
        names: unexcited.unknowns().map(|i| equations.names[i].clone()).collect(),
    })
}
