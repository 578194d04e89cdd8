//! Pages of `identify` and `validate`.

use inertial::consistency::significant;
use inertial::estimation::Warning;
use inertial_app::choice::Choice as _;
use inertial_app::{Context, Model, Result, flight, identify, payload, validate};

use super::{Origin, Page, Parameter, Robot, SingularValues};
use crate::text::{self, percent};

/// Creates the page of an identification from forces; the outcome must have page data.
pub fn of_identification(
    model: &Model,
    outcome: &mut identify::Outcome,
    options: &identify::Options,
    origin: Origin,
    context: &Context<'_>,
) -> Result<Page> {
    let mechanism = &model.mechanism;
    let page_data = outcome.page_data.take();
    let result = &outcome.result;
    let mut page = Page::new("Identification", model, origin);
    let judged = match result.validation_relative_rms {
        Some(x) => format!("{} on held-out data", percent(x)),
        None => format!("{} on the data it was fitted to", percent(result.fit_relative_rms)),
    };
    page.lead = format!(
        "{} samples excite {} of the {} base parameters of this robot. The residual of the predicted forces is {judged} \
         (root mean square, relative to the measured forces).",
        result.samples, result.excited, result.rank
    );
    if let Some(verdict) = result.verdict {
        page.verdict_tile(verdict);
    }
    page.tile(&result.samples, "samples");
    page.tile(&format!("{} of {}", result.excited, result.rank), "base parameters excited");
    page.residual_tile(result.fit_relative_rms, "residual of the fit");
    if let Some(x) = result.validation_relative_rms {
        page.residual_tile(x, "held-out residual");
    }
    let possible = result.bodies.iter().filter(|b| b.consistent).count();
    page.tile(&format!("{possible} of {}", result.bodies.len()), "bodies physically consistent");
    page.fact("estimator", text::estimator(result.estimator));
    page.fact("random numbers", "none: the same inputs give the same page");
    page.severe.extend(result.reasons.iter().map(|r| super::sentence(&r.message)));
    page.warnings.extend(result.warnings.iter().map(advised));
    if possible < result.bodies.len() {
        page.warnings.push(
            "Some bodies are physically impossible: they fit the forces, but a simulator can become unstable with them. \
             Use '--estimator consistent'."
                .into(),
        );
    }
    page.singular_values = Some(SingularValues {
        values: result.singular_values.clone(),
        excited: result.excited,
        rank: result.rank,
    });
    let identified = mechanism.clone().with_parameters(&result.parameters)?;
    page.robot = Some(Robot::new(mechanism, Some(&identified))?.with_shapes(model, context));
    page.identification = Some(serde_json::to_value(result)?);
    if let Some(page_data) = page_data {
        let names = result.base_parameters.iter().map(|p| p.name.as_str());
        page.parameters = parameters(names.zip(page_data.prior));
        page.set_curves(page_data.curves);
        page.set_analysis(mechanism, &page_data.analysis)?;
        page.fact("friction", options.unknowns.friction.word());
        let weight = options.estimate.prior_weight.unwrap_or(1.0);
        page.fact("prior", format!("{}, weight {weight}", options.estimate.prior));
        page_data.logs.into_iter().for_each(|fact| page.fact("log", fact));
    }
    Ok(page)
}

/// Creates the page of a payload.
pub fn of_payload(
    model: &Model,
    outcome: &mut payload::Outcome,
    origin: Origin,
    context: &Context<'_>,
) -> Result<Page> {
    let curves = outcome.curves.take().unwrap_or_default();
    let (mechanism, result, link) = (&model.mechanism, &outcome.result, outcome.link.as_str());
    let mut page = Page::new("Payload", model, origin);
    page.lead = format!(
        "Payload of {link}, from {} samples. The residual of the predicted forces is {} (root mean square, relative to the measured forces).",
        result.samples,
        percent(result.fit_relative_rms)
    );
    page.tile(&result.samples, "samples");
    if let [body] = &result.bodies[..] {
        page.tile(&format!("{} kg", significant(body.mass, 4)), "mass");
    }
    page.tile(&format!("{} of {}", result.excited, result.rank), "parameters excited");
    page.residual_tile(result.fit_relative_rms, "residual of the fit");
    page.fact("estimator", text::estimator(result.estimator));
    page.warnings.extend(result.warnings.iter().map(advised));
    page.set_curves(curves);
    let robot = Robot::new(mechanism, None)?.with_shapes(model, context);
    page.robot = Some(robot.with_payload(mechanism, link, &outcome.inertia())?);
    page.parameters = parameters(result.base_parameters.iter().map(|p| (p.name.as_str(), None)));
    page.identification = Some(serde_json::to_value(&*outcome)?);
    Ok(page)
}

/// Creates the page of an identification from momentum.
pub fn of_momentum(
    model: &Model,
    outcome: &mut flight::Outcome,
    origin: Origin,
    context: &Context<'_>,
) -> Result<Page> {
    let page_data = outcome.page_data.take();
    let (mechanism, result) = (&model.mechanism, &outcome.result);
    let mut page = Page::new("Identification from momentum", model, origin);
    page.lead = format!(
        "{} samples of rates and momenta excite {} of the {} base parameters of this robot.",
        result.samples, result.excited, result.rank
    );
    page.tile(&result.samples, "samples");
    page.tile(&format!("{} of {}", result.excited, result.rank), "base parameters excited");
    if let Some(chi) = result.reduced_chi_squared {
        page.tile(&significant(chi, 3), "χ² per degree of freedom");
    }
    page.fact("estimator", text::estimator(result.estimator));
    page.warnings.extend(result.warnings.iter().map(advised));
    let identified = mechanism.clone().with_parameters(&result.parameters)?;
    page.robot = Some(Robot::new(mechanism, Some(&identified))?.with_shapes(model, context));
    page.parameters = parameters(result.base_parameters.iter().map(|p| (p.name.as_str(), Some(p.model))));
    page.identification = Some(serde_json::to_value(result)?);
    if let Some((curves, analysis)) = page_data {
        page.set_curves(curves);
        page.set_analysis(mechanism, &analysis)?;
    }
    Ok(page)
}

/// Creates the page of a validation.
pub fn of_validation(
    model: &Model,
    outcome: &mut validate::Outcome,
    origin: Origin,
    context: &Context<'_>,
) -> Result<Page> {
    let curves = outcome.curves.take().unwrap_or_default();
    let result = &outcome.result;
    let mut page = Page::new("Validation", model, origin);
    let verdict = match outcome.threshold {
        Some(most) if outcome.passed => format!(", within the threshold of {}", percent(most)),
        Some(_) if !outcome.result.unjudged.is_empty() => {
            format!(", {} not judged", outcome.result.unjudged.join(", "))
        }
        Some(most) => format!(", above the threshold of {}", percent(most)),
        None => String::new(),
    };
    let (of, all_parts) = match outcome.measured {
        Some(_) => ("momentum", "all components"),
        None => ("forces", "all joints"),
    };
    page.lead = format!(
        "The model predicts {} samples with a residual of {} (root mean square, relative to the measured {of}){verdict}.",
        result.samples,
        percent(result.relative_rms)
    );
    page.tile(&result.samples, "samples");
    page.residual_tile(result.relative_rms, &format!("residual, {all_parts}"));
    if let Some(worst) = result.joints.iter().max_by(|a, b| a.relative_rms.total_cmp(&b.relative_rms)) {
        page.residual_tile(worst.relative_rms, &format!("residual of {}, the largest", worst.joint));
    }
    page.warnings = model.mechanism.warnings().to_vec();
    page.set_curves(curves);
    page.robot = Some(Robot::new(&model.mechanism, None)?.with_shapes(model, context));
    page.validation = Some(serde_json::to_value(result)?);
    Ok(page)
}

/// Returns the parameters with their units, derived from the kind of the first parameter of each.
fn parameters<'n>(all: impl Iterator<Item = (&'n str, Option<f64>)>) -> Vec<Parameter> {
    let unit = |name: &str| match name.rsplit('.').next().unwrap_or_default() {
        "m" => "kg",
        h if h.starts_with('h') => "kg m",
        _ => "kg m²",
    };
    all.map(|(name, model)| Parameter { unit: unit(name), model }).collect()
}

/// Returns a warning as a sentence, followed by advice.
fn advised(warning: &Warning) -> String {
    let advice = match warning {
        Warning::NotExcited { .. } => {
            ". The prior determines these; 'inertial design' finds a motion that excites them."
        }
        Warning::Implausible { .. } => {
            ". Check units and signs of the log, or add --friction, --offset or --bounds."
        }
        Warning::GuessedPrior { .. } => {
            ". A model with estimates of its inertias makes a better prior (--prior FILE)."
        }
        _ => "",
    };
    super::sentence(&warning.to_string()) + advice
}
