//! Identification of a payload carried by one link.

mod sensor;
mod torques;

use inertial::estimation::Identification;
use inertial::mechanism::write;
use inertial::spatial::{Inertia, Parameters};
use inertial_data::Log;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::curves::Curves;
use crate::estimate::Estimate;
use crate::identify::{check_holdout, check_writable};
use crate::logs::LogOptions;
use crate::summary_file::saved_summary;
use crate::unknowns::Unknowns;
use crate::{Context, Located, Model, Note, Result, ensure, ensure_option};

/// Name of the payload in results.
pub(crate) const PAYLOAD: &str = "payload";

/// Options of a payload's identification.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Options {
    /// Link that carries the payload.
    pub link: String,
    /// Logs with the payload: of a force/torque sensor on the link, or of joint torques.
    pub logs: Vec<String>,
    /// Logs of the robot without the payload; if empty, the model describes the unloaded robot.
    pub unloaded: Vec<String>,
    /// Logs with the payload to validate with.
    pub validate: Vec<String>,
    /// Fraction at the end of each log that is held out for validation.
    pub holdout: Option<f64>,
    /// Joint terms.
    pub unknowns: Unknowns,
    /// Estimation options.
    pub estimate: Estimate,
    /// Preparation of the logs.
    pub log: LogOptions,
    /// Whether the model with the payload added to the link is written.
    pub write: bool,
    /// Whether the outcome contains curves for plots.
    pub draw: bool,
}

inertial::with_changes!(Options);

impl Options {
    /// Checks the options.
    pub fn check(&self) -> Result<()> {
        ensure_option!(
            !self.estimate.is_robust(),
            "estimator",
            "expected ols, wls or consistent for a payload, not irls"
        );
        ensure_option!(
            matches!(self.estimate.prior.as_str(), "model" | "none"),
            "prior",
            "expected 'model' (a ball of water with the measured mass) or 'none' for a payload, not {}",
            self.estimate.prior
        );
        self.log.check()?;
        check_holdout(self.holdout, &self.validate)
    }

    /// Returns the names of all inputs except the model.
    pub fn files(&self) -> Vec<String> {
        let logs = self.logs.iter().chain(&self.validate).chain(&self.unloaded).cloned();
        logs.chain(self.log.files()).chain(self.unknowns.files()).chain(self.estimate.files()).collect()
    }
}

/// Parameters of a payload.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Outcome {
    /// Result of the estimation.
    #[serde(flatten)]
    pub result: Identification,
    /// Link that carries the payload, in whose frame the body is expressed.
    pub link: String,
    /// Text of the model with the payload added to the link, if requested.
    #[serde(skip)]
    pub model: Option<String>,
    /// Measured and predicted forces, if requested.
    #[serde(skip)]
    pub curves: Option<Curves>,
}

impl Outcome {
    /// Returns the inertia of the payload in the frame of the link.
    pub fn inertia(&self) -> Inertia<f64> {
        Inertia::from_parameters(&Parameters::from_column_slice(&self.result.parameters))
    }
}

/// Identifies a payload.
pub fn run(model: &Model, options: &Options, context: &Context<'_>) -> Result<Outcome> {
    options.check()?;
    let (mechanism, link) = (&model.mechanism, options.link.as_str());
    if options.write {
        check_writable(model)?;
    }
    let exists = mechanism.links().iter().any(|l| l.name == link);
    let names: Vec<&str> = mechanism.links().iter().map(|l| l.name.as_str()).collect();
    let near = inertial::nearest_hint(link, names.iter().copied());
    let known = if near.is_empty() { format!("; there are {}", names.join(", ")) } else { near };
    ensure!(exists, "{}: has no link {link}{known}", model.label);
    let sensed = match options.logs.first() {
        Some(name) if options.unloaded.is_empty() && saved_summary(context, name)?.is_none() => {
            has_sensor(model, options, context, name)?
        }
        _ => false,
    };
    let (result, curves) = if sensed {
        sensor::behind_sensor(model, options, context)?
    } else {
        torques::from_torques(model, options, context)?
    };
    let mut out =
        Outcome { result, link: link.to_owned(), model: None, curves: options.draw.then_some(curves) };
    if options.write {
        if model.wants_rotors() {
            context.note(&Note::NoRotorsInUrdf);
        }
        out.model = Some(loaded_model(model, &out)?);
    }
    Ok(out)
}

fn read(model: &Model, own: &Options, context: &Context<'_>, name: &str) -> Result<Log> {
    Ok(Log::collect(own.log.reader(context, Some(&model.mechanism), name)?)?)
}

/// Returns whether the log contains a force/torque sensor; fails if it has no forces at all.
fn has_sensor(model: &Model, own: &Options, context: &Context<'_>, name: &str) -> Result<bool> {
    let log = read(model, own, context, name)?;
    let has = |prefix: &str| log.names().iter().any(|n| n.starts_with(prefix));
    ensure!(has("ft.") || has("tau"), "{name}: has neither ft.fx … ft.tz nor torques of joints (tau.JOINT)");
    Ok(has("ft."))
}

/// Returns the text of the model with the payload added to the link.
fn loaded_model(model: &Model, found: &Outcome) -> Result<String> {
    let link = found.link.as_str();
    let own = model.mechanism.links().iter().find(|l| l.name == link).and_then(|l| l.inertia);
    let inertia = own.unwrap_or_else(Inertia::zero) + found.inertia();
    write::replace_inertias(&model.target().text, &[(link, inertia)]).at(&model.label)
}
