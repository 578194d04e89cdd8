//! Identification from an externally computed regressor.

use inertial::estimation::{
    ColumnOrder, Prior, PriorKind, RegressorIdentification, RegressorOptions, RegressorRows, Warning,
};
use inertial::mechanism::{Mechanism, ParameterBlock};
use inertial::spatial::Inertia;
use inertial_data::Source;
use nalgebra::{Matrix3, Vector3};
use schemars::JsonSchema;
use serde::Serialize;

use crate::estimate::check_prior_weight;
use crate::{Context, Located, Model, Result, ensure, ensure_option};

const SCHEMA: &str = "inertial/regressor-identification/1";

/// Mass (kg) and radius (m) of the ball that serves as prior body if there is no model.
const BALL: [f64; 2] = [1.0, 0.1];

/// Options of an identification from a regressor.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Options {
    /// Array of the regressor: one row per equation, ten columns per body, then columns of other unknowns.
    pub regressor: String,
    /// Array of the right-hand sides: one number per row, or one row per sample.
    pub rhs: String,
    /// Bodies and prior.
    pub subject: Subject,
    /// Rows per sample, each with its own noise level; by default the number of columns of the right-hand sides.
    pub rows_per_sample: Option<usize>,
}

inertial::with_changes!(Options);

impl Options {
    /// Creates options with default prior.
    pub fn new(regressor: String, rhs: String) -> Self {
        Self { regressor, rhs, subject: Subject::default(), rows_per_sample: None }
    }
}

/// Choices about columns and prior.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Subject {
    /// Number of bodies; by default that of the model.
    pub bodies: Option<usize>,
    /// Order of the ten columns of a body.
    pub order: ColumnOrder,
    /// Measure of the distance to the prior.
    pub prior_kind: PriorKind,
    /// Weight of the prior.
    pub prior_weight: f64,
}

inertial::with_changes!(Subject);

impl Default for Subject {
    fn default() -> Self {
        let RegressorOptions { prior_kind, prior_weight, .. } = RegressorOptions::default();
        Self { bodies: None, order: ColumnOrder::default(), prior_kind, prior_weight }
    }
}

/// Bodies identified from a regressor.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Outcome {
    /// Schema of the object.
    #[schemars(extend("const" = SCHEMA))]
    schema: &'static str,
    /// Result of the estimation.
    #[serde(flatten)]
    pub result: RegressorIdentification,
}

/// Identifies bodies; a model provides their names and the prior.
pub fn run(model: Option<&Model>, options: &Options, context: &Context<'_>) -> Result<Outcome> {
    let source = Source::default().with(|s| {
        s.raw = true;
        s.as_stored = true;
    });
    let open = |name: &str| context.inputs.log(name, &source).at(name);
    let (mut regressor, mut rhs) = (open(&options.regressor)?, open(&options.rhs)?);
    let mut forces = Vec::new();
    while let Some(rows) = rhs.next_rows()? {
        context.check_interrupted()?;
        forces.extend(rows.values);
    }
    let each = options.rows_per_sample.unwrap_or(rhs.names().len());
    let (mechanism, columns) = (model.map(|model| &model.mechanism), regressor.names().len());
    let subject = &options.subject;
    let bodies = subject.count(mechanism)?;
    let mut out = RegressorRows::new(columns, bodies, each, subject.order).at(&options.regressor)?;
    let mut used = 0;
    while let Some(rows) = regressor.next_rows()? {
        context.check_interrupted()?;
        let count = rows.len();
        let Some(own) = forces.get(used..used + count) else {
            used = usize::MAX;
            break;
        };
        out.add(&rows.values, own).at(&options.regressor)?;
        used += count;
    }
    ensure!(
        used == forces.len(),
        "{}: has {} numbers, but {} has {} rows: expected one number for each row",
        options.rhs,
        forces.len(),
        options.regressor,
        if used == usize::MAX { "more".to_owned() } else { used.to_string() }
    );
    subject.identify(out, mechanism).at(&options.regressor)
}

impl Subject {
    /// Returns the number of bodies.
    pub fn count(&self, mechanism: Option<&Mechanism>) -> Result<usize> {
        let own = mechanism.map(|m| m.parameter_blocks().len());
        if let Some(m) = mechanism {
            let ten = m.parameter_blocks().iter().all(|block| block.len == 10);
            ensure_option!(
                ten,
                "rotors",
                "a regressor has ten columns for each body: expected none or general"
            );
        }
        match (self.bodies, own) {
            (Some(given), Some(own)) if given != own => {
                ensure_option!(false, "bodies", "the model has {own} bodies, not {given}");
                Ok(own)
            }
            (given, own) => {
                ensure_option!(
                    given.or(own).is_some(),
                    "bodies",
                    "expected the number of bodies, or a model"
                );
                Ok(given.or(own).unwrap_or_default())
            }
        }
    }

    /// Identifies bodies from rows; a mechanism provides their names and the prior.
    pub fn identify(&self, rows: RegressorRows, mechanism: Option<&Mechanism>) -> Result<Outcome> {
        check_prior_weight(self.prior_weight)?;
        let (names, prior, note) = if let Some(mechanism) = mechanism {
            let prior = Prior::new(mechanism)?;
            let of = |block: &ParameterBlock| {
                (mechanism.bodies()[block.body].name.clone(), prior.bodies[block.body])
            };
            let (names, bodies): (Vec<_>, Vec<_>) = mechanism.parameter_blocks().iter().map(of).unzip();
            (names, bodies, None)
        } else {
            let count = self.count(None)?;
            let [mass, radius] = BALL;
            let moment = Matrix3::from_diagonal_element(0.4 * mass * radius * radius);
            let ball = Inertia::from_com(mass, Vector3::zeros(), moment);
            let note = Warning::BallPrior { mass, radius };
            ((1..=count).map(|k| format!("body{k}")).collect(), vec![ball; count], Some(note))
        };
        let options = RegressorOptions::default().with(|o| {
            o.prior_kind = self.prior_kind;
            o.prior_weight = self.prior_weight;
        });
        let mut result = rows.identify(&names, &prior, &options)?;
        result.warnings.extend(note.filter(|_| result.rank < result.columns));
        Ok(Outcome { schema: SCHEMA, result })
    }
}
