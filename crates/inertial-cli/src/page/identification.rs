//! The pages of `identify` and `validate`.

use anyhow::Result;
use inertial::estimation::momentum_identification::MomentumIdentification;
use inertial::estimation::{Equations, Identification, Validation};
use inertial::identifiability::{AnalyzeOptions, Measured, analyze};
use inertial::mechanism::Mechanism;
use inertial::spatial::{Inertia, Parameters};

use super::{Page, Parameter, Robot, SingularValues};
use crate::curves::Curves;
use crate::model::Model;

/// The page of `identify` from forces.
pub fn of_identification(
    model: &Model,
    equations: &Equations<'_>,
    result: &Identification,
    curves: Curves,
) -> Result<Page> {
    let mechanism = equations.mechanism();
    let mut page = Page::new("Identification", mechanism.name());
    page.input(&model.label, model.text.as_bytes());
    let judged = match result.validation_relative_rms {
        Some(x) => format!("{} of data it was not fitted to", percent(x)),
        None => format!("{} of the data it was fitted to", percent(result.fit_relative_rms)),
    };
    page.lead = format!(
        "From {} samples: {} of the {} base parameters of this robot show in its motion. What the result does not \
         predict of the measured forces is {judged} (root mean square).",
        result.samples, result.excited, result.rank
    );
    page.tile(&result.samples, "samples");
    page.tile(&format!("{} of {}", result.excited, result.rank), "base parameters shown");
    page.tile(&percent(result.fit_relative_rms), "residual of the fit");
    if let Some(x) = result.validation_relative_rms {
        page.tile(&percent(x), "residual of the validation");
    }
    let possible = result.bodies.iter().filter(|b| b.consistent).count();
    page.tile(&format!("{possible} of {}", result.bodies.len()), "bodies can exist");
    page.fact("estimator", result.estimator);
    page.fact("random numbers", "none: the same inputs give the same page");
    page.warnings.extend(result.warnings.iter().map(|w| advised(w)));
    if possible < result.bodies.len() {
        page.warnings.push(
            "Some bodies cannot exist: their numbers predict these forces, but a simulator built on them can behave \
             impossibly. --estimator lmi finds bodies that can exist."
                .into(),
        );
    }
    page.singular_values = Some(SingularValues {
        values: result.singular_values.clone(),
        excited: result.excited,
        rank: result.rank,
    });
    page.set_curves(curves);
    let identified = mechanism.clone().with_parameters(&result.parameters)?;
    page.robot = Some(Robot::new(mechanism, Some(&identified))?.shaped(model, mechanism));
    let silent = mechanism.parameters().iter().all(|x| *x == 0.0);
    let prior = equations.model_values()?.into_iter().map(|x| (!silent).then_some(x));
    page.parameters = parameters(result.base_parameters.iter().map(|p| p.name.as_str()).zip(prior));
    page.identification = Some(serde_json::to_value(result)?);
    let measured = equations.has_base_wrench().then_some(Measured::Both);
    page.set_analysis(
        mechanism,
        &analyze(mechanism, &AnalyzeOptions { measured, ..AnalyzeOptions::default() })?,
    )?;
    Ok(page)
}

/// The page of `identify --payload`.
pub fn of_payload(
    model: &Model,
    mechanism: &Mechanism,
    link: &str,
    result: &Identification,
    curves: Curves,
) -> Result<Page> {
    let mut page = Page::new("Payload", mechanism.name());
    page.input(&model.label, model.text.as_bytes());
    page.lead = format!(
        "What {link} carries, from {} samples; {} of the measured forces stay unexplained (root mean square).",
        result.samples,
        percent(result.fit_relative_rms)
    );
    page.tile(&result.samples, "samples");
    if let [body] = &result.bodies[..] {
        page.tile(&format!("{} kg", inertial::consistency::significant(body.mass, 4)), "mass");
    }
    page.tile(&format!("{} of {}", result.excited, result.rank), "parameters shown");
    page.tile(&percent(result.fit_relative_rms), "residual of the fit");
    page.fact("estimator", result.estimator);
    page.warnings.extend(result.warnings.iter().map(|w| advised(w)));
    page.set_curves(curves);
    let payload = Inertia::from_parameters(&Parameters::from_column_slice(&result.parameters));
    page.robot =
        Some(Robot::new(mechanism, None)?.shaped(model, mechanism).carrying(mechanism, link, &payload)?);
    page.parameters = parameters(result.base_parameters.iter().map(|p| (p.name.as_str(), None)));
    page.identification = Some(serde_json::to_value(result)?);
    Ok(page)
}

/// The page of `identify --measured momentum`.
pub fn of_momentum(
    model: &Model,
    mechanism: &Mechanism,
    result: &MomentumIdentification,
    curves: Curves,
) -> Result<Page> {
    let mut page = Page::new("Identification from momentum", mechanism.name());
    page.input(&model.label, model.text.as_bytes());
    page.lead = format!(
        "From {} samples of rates and momenta: {} of the {} base parameters of this robot show in its motion.",
        result.samples, result.excited, result.rank
    );
    page.tile(&result.samples, "samples");
    page.tile(&format!("{} of {}", result.excited, result.rank), "base parameters shown");
    if let Some(chi) = result.reduced_chi_squared {
        page.tile(&inertial::consistency::significant(chi, 3), "χ² per degree of freedom");
    }
    page.fact("estimator", result.estimator);
    page.warnings.extend(result.warnings.iter().map(|w| advised(w)));
    page.set_curves(curves);
    let identified = mechanism.clone().with_parameters(&result.parameters)?;
    page.robot = Some(Robot::new(mechanism, Some(&identified))?.shaped(model, mechanism));
    page.parameters = parameters(result.base_parameters.iter().map(|p| (p.name.as_str(), Some(p.model))));
    page.identification = Some(serde_json::to_value(result)?);
    let options = AnalyzeOptions { measured: Some(Measured::Momentum), ..AnalyzeOptions::default() };
    page.set_analysis(mechanism, &analyze(mechanism, &options)?)?;
    Ok(page)
}

/// The page of `validate`.
pub fn of_validation(
    model: &Model,
    mechanism: &Mechanism,
    result: &Validation,
    curves: Curves,
    threshold: Option<f64>,
) -> Result<Page> {
    let mut page = Page::new("Validation", mechanism.name());
    page.input(&model.label, model.text.as_bytes());
    let verdict = match threshold {
        Some(most) if result.relative_rms <= most => format!("; {} were allowed: yes", percent(most)),
        Some(most) => format!("; {} were allowed: no", percent(most)),
        None => String::new(),
    };
    page.lead = format!(
        "Of the forces measured in {} samples, this model leaves {} unexplained (root mean square){verdict}.",
        result.samples,
        percent(result.relative_rms)
    );
    page.tile(&result.samples, "samples");
    page.tile(&percent(result.relative_rms), "residual, all joints");
    if let Some(worst) = result.joints.iter().max_by(|a, b| a.relative_rms.total_cmp(&b.relative_rms)) {
        page.tile(&percent(worst.relative_rms), &format!("residual of {}, the worst", worst.joint));
    }
    page.warnings = mechanism.warnings().to_vec();
    page.set_curves(curves);
    page.robot = Some(Robot::new(mechanism, None)?.shaped(model, mechanism));
    page.validation = Some(serde_json::to_value(result)?);
    Ok(page)
}

/// Each with its unit, by the kind of its first parameter.
fn parameters<'n>(all: impl Iterator<Item = (&'n str, Option<f64>)>) -> Vec<Parameter> {
    let unit = |name: &str| match name.rsplit('.').next().unwrap_or_default() {
        "m" => "kg",
        h if h.starts_with('h') => "kg m",
        _ => "kg m²",
    };
    all.map(|(name, model)| Parameter { unit: unit(name), model }).collect()
}

/// A warning as a sentence, with what to do about it.
fn advised(warning: &str) -> String {
    let advice = if warning.starts_with("this motion does not show") {
        ". The prior decides these; 'inertial design' finds a motion that shows them."
    } else if warning.starts_with("not plausible") {
        ". Check units and signs of the log, or add --friction, --offset or --bounds."
    } else if warning.contains("the prior takes them from the distances") {
        ". A model with estimates of its inertias makes a better prior (--prior FILE)."
    } else {
        ""
    };
    super::sentence(warning) + advice
}

fn percent(x: f64) -> String {
    format!("{:.2} %", 100.0 * x)
}
