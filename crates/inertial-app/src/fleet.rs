//! Joint identification of several robots of one type.

use inertial::estimation::{Carried, Fleet, PayloadLink, Summary, identify_fleet};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::estimate::{Estimate, Subject};
use crate::identify::written;
use crate::unknowns::Unknowns;
use crate::{Context, Model, Result};

/// Options of the identification of a fleet.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Options {
    /// Unknowns; they must be those of the summaries.
    pub unknowns: Unknowns,
    /// Estimation options.
    pub estimate: Estimate,
    /// Link on which some robots carry an individual payload.
    pub payload: Option<String>,
    /// Whether the model with the common values is written.
    pub write: bool,
}

inertial::with_changes!(Options);

/// Common parameters of the robots, and the individual ones.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Outcome {
    /// Result of the estimation.
    #[serde(flatten)]
    pub result: Fleet,
    /// Text of the model with the common values, if requested.
    #[serde(skip)]
    pub model: Option<String>,
    /// Text of the [joint file](crate::model::joint_file) of that model, if the model format cannot represent all joint terms.
    #[serde(skip)]
    pub joint_file: Option<String>,
}

/// Identifies robots from one summary each; `carries` states which of them carry a payload.
pub fn run(
    model: &Model,
    robots: &[Summary],
    carries: &[bool],
    options: &Options,
    context: &Context<'_>,
) -> Result<Outcome> {
    let equations = options.unknowns.equations(model, context)?;
    let link = options.payload.as_deref().map(|link| PayloadLink::new(&equations, link)).transpose()?;
    let carried = link.as_ref().map(|link| Carried { link, carries });
    let subject = if options.payload.is_some() { Subject::Body } else { Subject::Robot };
    let wanted = options.estimate.options(model, subject, context)?;
    let result = identify_fleet(&equations, robots, carried, &wanted)?;
    let new = if options.write {
        Some(written(model, &result.common.parameters, Some(&result.common.joints), None, context)?)
    } else {
        None
    };
    let (model, joint_file) = new.map(|w| (w.text, w.joint_file)).unzip();
    Ok(Outcome { result, model, joint_file: joint_file.flatten() })
}
