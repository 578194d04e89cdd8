//! Identification of a payload carried by one link.

mod sensor;

use inertial::estimation::{
    Equations, Identification, PayloadLink, Summary, Term, Unloaded, identify_payload, validate,
};
use inertial::mechanism::{DEFAULT_SNAP, write};
use inertial::spatial::{Inertia, Parameters};
use inertial_data::Log;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::curves::{Curves, LogSegment};
use crate::estimate::{Estimate, Subject};
use crate::identify::{check_holdout, check_writable};
use crate::logs::LogOptions;
use crate::recording::Recording;
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
        from_torques(model, options, context)?
    };
    let mut out =
        Outcome { result, link: link.to_owned(), model: None, curves: options.draw.then_some(curves) };
    if options.write {
        if out.result.joints.iter().any(|j| j.rotor_inertia.is_some()) {
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

/// Use of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    /// Log with the payload, for the fit.
    Loaded,
    /// Log without the payload.
    Unloaded,
    /// Log with the payload, for validation.
    Validation,
}

/// Identifies the payload from the difference that it makes in the torques.
fn from_torques(model: &Model, own: &Options, context: &Context<'_>) -> Result<(Identification, Curves)> {
    let mechanism = &model.mechanism;
    // Friction of the model is taken as known unless its estimation is requested.
    let in_model = mechanism.joints().iter().any(|j| j.dynamics.damping != 0.0 || j.dynamics.friction != 0.0);
    let friction = if in_model { own.unknowns.friction } else { own.unknowns.given_friction() };
    let mut joint_model = own.unknowns.given_joint_model(model, context)?;
    ensure_option!(
        !joint_model.stribeck,
        "friction",
        "expected friction that is linear in its unknowns for a payload, not stribeck"
    );
    joint_model.search_couplings = false;
    let alone = own.unloaded.is_empty();
    // Without an unloaded log the model is the reference; its friction is used unless its estimation is requested.
    let equations = if alone {
        joint_model.terms.viscous = true;
        joint_model.terms.coulomb = !joint_model.asymmetric;
        Equations::with_all_terms(mechanism, joint_model, DEFAULT_SNAP)
    } else {
        Equations::new(mechanism, joint_model, DEFAULT_SNAP)
    };
    let equations = equations.at(&model.label)?;
    let carrier = PayloadLink::new(&equations, &own.link).at(&model.label)?;
    let mut loaded = Summary::empty(&equations);
    let (mut unloaded, mut kept) = (loaded.clone(), loaded.clone());
    let mut shown = Vec::new();
    let all =
        |paths: &[String], role: Role| paths.iter().map(|path| (path.clone(), role)).collect::<Vec<_>>();
    let logs = [
        all(&own.logs, Role::Loaded),
        all(&own.unloaded, Role::Unloaded),
        all(&own.validate, Role::Validation),
    ];
    let work = context.work_on(own.logs.iter().chain(&own.unloaded).chain(&own.validate));
    let options_of_logs = LogOptions { poses: true, ..own.log.clone() };
    for (path, role) in logs.into_iter().flatten() {
        if let Some(summary) = saved_summary(context, &path)? {
            ensure_option!(
                own.holdout.is_none() || role != Role::Loaded,
                "holdout",
                "{path} is a summary: holding out a part needs the log itself"
            );
            summary.check(&equations).at(&path)?;
            own.log.check_summary(&path, &summary)?;
            match role {
                Role::Loaded => &mut loaded,
                Role::Unloaded => &mut unloaded,
                Role::Validation => &mut kept,
            }
            .merge(&summary)?;
            continue;
        }
        let mut log = Recording::open(context, &options_of_logs, &equations, None, &path)?;
        let (first, last) = match (role, own.holdout) {
            (Role::Loaded, Some(fraction)) => log.hold_out(fraction)?,
            (Role::Validation, _) => (0..0, 0..log.len()),
            _ => (0..log.len(), 0..0),
        };
        let fitted = if role == Role::Unloaded { &mut unloaded } else { &mut loaded };
        fitted.merge(&log.summary(context, &equations, first.clone(), None)?)?;
        kept.merge(&log.summary(context, &equations, last.clone(), None)?)?;
        if role != Role::Unloaded && own.draw {
            shown.push((log, first, last));
        }
    }
    drop(work);
    let free: Vec<bool> = equations
        .terms
        .iter()
        .map(|(_, term)| match term {
            Term::Viscous => friction.is_viscous(),
            Term::Coulomb => friction.is_coulomb(),
            // Most models do not contain rotor inertias, although the joint torques do.
            Term::RotorInertia => model.wants_rotors(),
            _ => true,
        })
        .collect();
    let known = if alone { Unloaded::Model { free: &free } } else { Unloaded::Log(&unloaded) };
    let options = own.estimate.options(model, Subject::Body, context)?;
    let mut result =
        identify_payload(&equations, &carrier, &loaded, known, &options).at(own.logs.join(", "))?;
    if kept.samples > 0 {
        let judged = validate(&equations, &kept, &result.values).at("validation")?;
        result.validation_relative_rms = Some(judged.relative_rms);
        result.validation = judged.joints;
    }
    let pieces = shown.iter_mut().map(|(log, first, last)| {
        let parts = [(first, "fit", &result.fit), (last, "validation", &result.validation)];
        let parts = parts.into_iter().filter(|(range, ..)| range.start < range.end);
        (log, parts.map(|(range, part, residuals)| LogSegment::new(range.clone(), part, residuals)).collect())
    });
    let curves = Curves::collect(context, &equations, &result.values, pieces.collect())?;
    Ok((result, curves))
}

/// Returns the text of the model with the payload added to the link.
fn loaded_model(model: &Model, found: &Outcome) -> Result<String> {
    let link = found.link.as_str();
    let own = model.mechanism.links().iter().find(|l| l.name == link).and_then(|l| l.inertia);
    let inertia = own.unwrap_or_else(Inertia::zero) + found.inertia();
    write::replace_inertias(&model.target().text, &[(link, inertia)]).at(&model.label)
}
