//! Estimation options: the estimator, its solver and its prior.

use std::time::Duration;

use inertial::estimation::{
    Bounds, Estimator as Library, IdentifyOptions, IntervalOptions, NoiseBounds, PosteriorOptions, Prior,
    PriorKind, Quantity, Solver as LibrarySolver, TRACE_OF_PRIOR,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::choice::{self, Choice as _, Estimator, Solver, words};
use crate::logs::TEXT_LIMIT;
use crate::setting::{Setting, settings_or_number};
use crate::{Context, Error, Located, Model, Result, ensure, ensure_option};

/// Weight of a negligible prior for a robot, which corresponds to bodies whose parameters are known to within 1000 %. For
/// unknowns that the data determine to within 100 % it changes the result by a hundredth of the standard error. With a smaller weight the unexcited
/// parameters would cost the data too many digits.
const LITTLE_PRIOR: f64 = 1e-2;

/// Options of the estimation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Estimate {
    /// Estimator; `consistent` by default, for momentum `eiv` if the noise is given, otherwise `ols`.
    #[serde(with = "choice::optional")]
    #[schemars(with = "Option<choice::Words<Estimator>>")]
    pub estimator: Option<Estimator>,
    /// Solver of the consistent estimator.
    #[serde(with = "choice")]
    #[schemars(with = "choice::Words<Solver>")]
    pub solver: Solver,
    /// Prior of the consistent estimator: `model`, `none`, or the name of a model. With `none`, ols, wls and irls give the parameters
    /// of least norm (the pseudo-inverse).
    pub prior: String,
    /// Weight of the prior; 1 if absent.
    pub prior_weight: Option<f64>,
    /// Measure of the distance to the prior.
    #[serde(with = "choice")]
    #[schemars(with = "choice::Words<PriorKind>")]
    pub prior_kind: PriorKind,
    /// Regions that contain the mass of bodies: `links`, or the name of an input in TOML.
    pub bounds: Option<String>,
    /// Whether unknowns below the noise level are reported; ols, wls and irls set them to zero.
    pub essential: bool,
    /// Whether the result has the covariance of the base parameters.
    pub covariance: bool,
    /// Quantities with guaranteed intervals: `m`, `com`, `h`, `I` (of each body) or `base` (base parameters).
    #[serde(with = "choice::list")]
    #[schemars(with = "Vec<choice::Words<Quantity>>")]
    pub bounds_on: Vec<Quantity>,
    /// Largest noise of a sample after filtering: for all forces (empty name), or by joint, sensor column or prefix of its name.
    #[serde(deserialize_with = "settings_or_number")]
    pub noise_bound: Vec<Setting>,
    /// Whether 95 % credible intervals of the posterior of consistent bodies are sampled.
    pub posterior: bool,
    /// Time limit (s) of the solver of the consistent estimator, after which its best estimate so far is returned.
    pub time_limit: Option<f64>,
}

inertial::with_changes!(Estimate);

impl Default for Estimate {
    fn default() -> Self {
        Self {
            estimator: None,
            solver: Solver::Barrier,
            prior: "model".into(),
            prior_weight: None,
            prior_kind: PriorKind::Entropic,
            bounds: None,
            essential: false,
            covariance: false,
            bounds_on: Vec::new(),
            noise_bound: Vec::new(),
            posterior: false,
            time_limit: None,
        }
    }
}

/// Checks that the weight of a prior is within the range that floating-point arithmetic can distinguish from no prior and from no data.
pub(crate) fn check_prior_weight(weight: f64) -> Result<()> {
    ensure_option!((1e-12..=1e12).contains(&weight), "prior-weight", "expected a number from 1e-12 to 1e12");
    Ok(())
}

/// Subject of the estimation: a whole robot, or one body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Subject {
    Robot,
    Body,
}

/// Names of solvers that are accepted as estimators, for compatibility with versions before the solver option.
pub const SOLVERS_AS_ESTIMATORS: [(&str, Solver); 3] =
    [("lmi", Solver::Barrier), ("manifold", Solver::Manifold), ("log-cholesky", Solver::LogCholesky)];

impl Estimate {
    /// Sets estimator and solver by name. The name of a solver is also accepted as an estimator, namely the
    /// consistent one with this solver.
    pub fn choose(&mut self, estimator: Option<&str>, solver: Option<Solver>) -> Result<()> {
        let named = estimator
            .and_then(|word| SOLVERS_AS_ESTIMATORS.iter().find(|(own, _)| *own == word))
            .map(|(_, solver)| *solver);
        if let (Some(named), Some(solver)) = (named, solver) {
            ensure_option!(
                named == solver,
                "solver",
                "{}: the estimator selects another solver; use the estimator consistent",
                solver.word()
            );
        }
        let estimator = match (estimator, named) {
            (Some(word), None) => Some(Estimator::from_word(word).ok_or_else(|| {
                Error::option("estimator", format!("'{word}': expected one of {}", words::<Estimator>()))
            })?),
            // A given solver implies the consistent estimator, also for momentum, which has another default.
            (None, None) => solver.map(|_| Estimator::Consistent),
            (_, Some(_)) => Some(Estimator::Consistent),
        };
        ensure_option!(
            solver.is_none() || estimator == Some(Estimator::Consistent),
            "solver",
            "only the estimator consistent has a solver"
        );
        (self.estimator, self.solver) = (estimator, named.or(solver).unwrap_or_default());
        Ok(())
    }

    /// Checks the options.
    pub fn check(&self) -> Result<()> {
        self.prior_weight.map_or(Ok(()), check_prior_weight)?;
        ensure_option!(
            self.bounds_on.is_empty() || !self.noise_bound.is_empty(),
            "noise-bound",
            "guaranteed intervals need a noise bound"
        );
        ensure_option!(
            self.noise_bound.is_empty() || !self.bounds_on.is_empty(),
            "bounds-on",
            "a noise bound needs the quantities whose intervals are computed"
        );
        ensure_option!(
            !self.posterior || matches!(self.estimator, None | Some(Estimator::Consistent)),
            "posterior",
            "credible intervals need the estimator consistent"
        );
        // `Duration` stores seconds in 64 bits.
        ensure_option!(
            self.time_limit.is_none_or(|t| (0.0..1e9).contains(&t)),
            "time-limit",
            "expected seconds, from zero to 1e9"
        );
        let weighted = self.prior_weight.is_some();
        ensure_option!(!weighted || self.prior != "none", "prior-weight", "there is no prior to weight");
        Ok(())
    }

    /// Returns whether the estimator weights each sample.
    pub(crate) fn is_robust(&self) -> bool {
        self.estimator == Some(Estimator::Irls)
    }

    /// Returns the options for the library.
    pub(crate) fn options(
        &self,
        model: &Model,
        subject: Subject,
        context: &Context<'_>,
    ) -> Result<IdentifyOptions> {
        self.check()?;
        let estimator = match self.estimator {
            Some(Estimator::Ols) => Library::Ols,
            Some(Estimator::Wls) => Library::Wls,
            Some(Estimator::Irls) => Library::Irls,
            Some(Estimator::Consistent) | None => Library::Consistent,
            Some(Estimator::Bcls | Estimator::Eiv) => {
                return Err(Error::option("estimator", "bcls and eiv need measured momentum"));
            }
        };
        let solver = match self.solver {
            Solver::Barrier => LibrarySolver::Barrier,
            Solver::Manifold => LibrarySolver::Manifold,
            Solver::LogCholesky => LibrarySolver::LogCholesky,
        };
        let bounds = match self.bounds.as_deref() {
            None => None,
            Some("links") => Some(Bounds::of_links(&model.mechanism)),
            Some(name) => {
                let text = context.inputs.text(name, TEXT_LIMIT).at(name)?;
                Some(Bounds::from_toml(&text).at(name)?)
            }
        };
        let (prior, weight) = match self.prior.as_str() {
            "model" => (None, 1.0),
            // The ten parameters of one body are either excited or not; a robot has many that only the prior determines.
            "none" => (None, if subject == Subject::Body { TRACE_OF_PRIOR } else { LITTLE_PRIOR }),
            name => {
                let other = model.load_other(name, context)?.mechanism;
                ensure!(
                    other.parameter_names() == model.mechanism.parameter_names(),
                    "{name}: has other bodies than the model, expected {}",
                    model.mechanism.bodies().iter().map(|b| b.name.as_str()).collect::<Vec<_>>().join(", ")
                );
                (Some(Prior::new(&other)?), 1.0)
            }
        };
        Ok(IdentifyOptions::default().with(|o| {
            o.estimator = estimator;
            o.solver = solver;
            o.prior = prior;
            o.prior_weight = self.prior_weight.unwrap_or(weight);
            o.prior_kind = self.prior_kind;
            o.least_norm = self.prior == "none" && subject == Subject::Robot;
            o.bounds = bounds;
            o.essential = self.essential;
            o.covariance = self.covariance;
            o.intervals = (!self.bounds_on.is_empty()).then(|| {
                IntervalOptions::default().with(|o| {
                    o.quantities.clone_from(&self.bounds_on);
                    o.noise =
                        NoiseBounds(self.noise_bound.iter().map(|s| (s.column.clone(), s.value)).collect());
                })
            });
            o.posterior = self.posterior.then(PosteriorOptions::default);
            o.time_limit = self.time_limit.map(Duration::from_secs_f64);
        }))
    }

    /// Returns the names of the inputs that are read.
    pub fn files(&self) -> impl Iterator<Item = String> + '_ {
        let prior = Some(&self.prior).filter(|p| !matches!(p.as_str(), "model" | "none"));
        let bounds = self.bounds.as_ref().filter(|b| *b != "links");
        prior.into_iter().chain(bounds).cloned()
    }
}
