//! Identification of drive gains: torques are currents times gains that are known approximately.

use std::str::FromStr;

use inertial::consistency::{DEFAULT_TOLERANCE, check_inertia, significant};
use inertial::estimation::{Equations, Gains, KnownPayload, PayloadLink, Summary, identify};
use inertial::spatial::Inertia;
use nalgebra::{Matrix3, Vector3};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::estimate::Subject;
use crate::identify::{Data, Outcome};
use crate::recording::Recording;
use crate::summary_file::saved_summary;
use crate::{Context, Located, Model, Note, Result, ensure_option};

/// Valid range of the relative uncertainty of gains; its square must not vanish beside other weights.
const SPREADS: std::ops::RangeInclusive<f64> = 1e-6..=1e6;

/// Options of the identification of drive gains.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Options {
    /// Options of the identification; its logs are recorded without a payload.
    pub identify: crate::identify::Options,
    /// Relative uncertainty of the gains beforehand: 0.2 is 20 %.
    pub spread: f64,
    /// Logs of the robot with a known payload.
    #[serde(default)]
    pub loaded: Vec<String>,
    /// Payload of the loaded logs.
    #[serde(default)]
    pub known_payload: Option<Payload>,
}

inertial::with_changes!(Options);

impl Options {
    /// Creates options without a payload.
    pub fn new(identify: crate::identify::Options, spread: f64) -> Self {
        Self { identify, spread, loaded: Vec::new(), known_payload: None }
    }

    /// Checks the options.
    pub fn check(&self) -> Result<()> {
        let Self { identify, spread, loaded, known_payload } = self;
        identify.check()?;
        ensure_option!(SPREADS.contains(spread), "gains", "expected a number from 1e-6 to 1e6");
        ensure_option!(!identify.estimate.is_robust(), "gains", "the estimator irls is not supported");
        ensure_option!(
            identify.unknowns.friction != crate::choice::Friction::Stribeck,
            "gains",
            "the friction stribeck is not supported, because it is nonlinear in its unknowns"
        );
        ensure_option!(
            loaded.is_empty() == known_payload.is_none(),
            "known-payload",
            "loaded logs and the known payload must be given together"
        );
        Ok(())
    }
}

/// Payload with known parameters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct Payload {
    link: String,
    inertia: Inertia<f64>,
    /// Whether only the mass was given.
    is_free: bool,
    text: String,
}

impl TryFrom<String> for Payload {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Payload> for String {
    fn from(payload: Payload) -> Self {
        payload.text
    }
}

impl FromStr for Payload {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected = || {
            format!(
                "expected LINK=MASS or LINK=MASS,X,Y,Z, and if known IXX,IYY,IZZ or IXX,IYY,IZZ,IXY,IXZ,IYZ, like tool=2.5,0,0,0.1, not '{text}'"
            )
        };
        let (link, numbers) = text.split_once('=').ok_or_else(expected)?;
        let numbers: Vec<f64> =
            numbers.split(',').map(|x| x.trim().parse()).collect::<Result<_, _>>().map_err(|_| expected())?;
        if !matches!(numbers.len(), 1 | 4 | 7 | 10) || numbers.iter().any(|x| !x.is_finite()) {
            return Err(expected());
        }
        let number = |k: usize| numbers.get(k).copied().unwrap_or(0.0);
        let [xx, yy, zz, xy, xz, yz] = [4, 5, 6, 7, 8, 9].map(number);
        let tensor = Matrix3::new(xx, xy, xz, xy, yy, yz, xz, yz, zz);
        let com = Vector3::new(number(1), number(2), number(3));
        let inertia = Inertia::from_com(numbers[0], com, tensor);
        let central = Inertia::from_com(numbers[0], Vector3::zeros(), tensor);
        let exists = check_inertia(&central, DEFAULT_TOLERANCE).is_ok_and(|verdict| verdict.is_consistent());
        if numbers[0] <= 0.0 || !exists {
            return Err(format!(
                "'{text}' is not a possible body: expected a mass above zero, and principal moments of inertia none of which exceeds the sum of the others"
            ));
        }
        Ok(Self { link: link.to_owned(), inertia, is_free: numbers.len() == 1, text: text.to_owned() })
    }
}

/// Identifies the gains together with all other unknowns. The summary of the outcome is scaled with the identified gains.
pub fn run(model: &Model, options: &Options, context: &Context<'_>) -> Result<Outcome> {
    options.check()?;
    let own = &options.identify;
    if own.write {
        crate::identify::check_writable(model)?;
    }
    let mut joints = own.unknowns.given_joint_model(model, context)?;
    joints.search_couplings = false;
    let equations = own.unknowns.equations_with(model, joints)?;
    let wanted = own.estimate.options(model, Subject::Robot, context)?;
    let link = match &options.known_payload {
        Some(payload) => Some(PayloadLink::new(&equations, &payload.link).at("known payload")?),
        None => None,
    };
    let mut data = Data::read(own, &own.log, &equations, context)?;
    let summary = loaded(options, &equations, context)?;
    let known = options.known_payload.as_ref().zip(link.as_ref());
    let known = known.map(|(p, link)| KnownPayload {
        summary: &summary,
        link,
        payload: p.inertia,
        is_free: p.is_free,
    });
    let found = || {
        let gains = Gains::new(&equations, &data.fit, known, options.spread)?;
        data.fit = gains.apply(&equations, &data.fit, false)?;
        data.fit.merge(&gains.apply(&equations, &summary, true)?)?;
        if let Some(validation) = &mut data.validation {
            *validation = gains.apply(&equations, validation, false)?;
        }
        let mut result = identify(&equations, &data.fit, data.validation.as_ref(), &wanted)?;
        gains.note(&equations, &mut result);
        if let (Some((parameters, errors)), true) = (&gains.payload, known.is_some_and(|k| k.is_free)) {
            let centre = |k: usize| {
                let [x, error] = [parameters[k], errors[k]].map(|h| significant(h / parameters[0], 3));
                format!("{x} ± {error}")
            };
            let centre = [1, 2, 3].map(centre).join(", ");
            let text = format!("the centre of mass of the payload is estimated at {centre} m");
            context.note(&Note::Log { log: options.loaded.join(", "), text });
        }
        Ok::<_, inertial::Error>(result)
    };
    let result = { found }().at(own.logs.join(", "))?;
    // The torques of the logs are not scaled with the gains, so they cannot validate a written model.
    let own = crate::identify::Options { force: true, ..own.clone() };
    crate::identify::finish(model, &own, &equations, data, result, context)
}

/// Returns the summary of the logs with the known payload.
fn loaded(options: &Options, equations: &Equations<'_>, context: &Context<'_>) -> Result<Summary> {
    let mut summary = Summary::empty(equations);
    let _work = context.work_on(&options.loaded);
    for name in &options.loaded {
        if let Some(saved) = saved_summary(context, name)? {
            saved.check(equations).at(name)?;
            options.identify.log.check_summary(name, &saved)?;
            summary.merge(&saved)?;
            continue;
        }
        let own = &options.identify;
        let mut log = Recording::open(context, &own.log, equations, own.unknowns.measured, name)?;
        let all = 0..log.len();
        summary.merge(&log.summary(context, equations, all, None)?)?;
    }
    Ok(summary)
}
