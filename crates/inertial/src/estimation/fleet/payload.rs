//! Payloads of individual robots of a fleet.
//!
//! A payload `π` on a robot adds `K π` to the base parameters that it has in common with the others. After elimination of its
//! individual terms, the equations of the robot are `A β + B π ≈ b` with `B = A K`, with the rows of each coordinate divided by
//! its noise. Let `[Q₁ Q₂]` be an orthonormal basis, with `Q₁` spanning the range of `B`:
//!
//! ```text
//! Q₂ᵀ A β = Q₂ᵀ b                equations of the common unknowns, independent of the payload
//! B π = Q₁ Q₁ᵀ (b − A β)         equations of the payload, given the common unknowns
//! ```
//!
//! The first equations are added to the common summary. The second are solved afterwards, for a consistent body if the estimator
//! requires it. The noise of the two is independent, so `Cov π = B⁺B⁺ᵀ + G Cov(β) Gᵀ` with `G = B⁺A`.

use nalgebra::{DMatrix, DVector};
use schemars::JsonSchema;
use serde::Serialize;

use crate::estimation::consistent::body_fit::consistent_body;
use crate::estimation::consistent::problem::PriorKind;
use crate::estimation::equations::{Channel, Equations};
use crate::estimation::estimator::Estimator;
use crate::estimation::identification::identify::IdentifyOptions;
use crate::estimation::identification::result::{BodyEstimate, ParameterEstimate};
use crate::estimation::least_squares::fit::{LeastSquares, stacked};
use crate::estimation::payload::force_sensor::measured_prior;
use crate::estimation::payload::link::PayloadLink;
use crate::estimation::payload::problem::{Scaled, combinations};
use crate::estimation::reduction::factor::Factor;
use crate::estimation::reduction::summary::Summary;
use crate::spatial::{Inertia, Parameters};
use crate::{Error, Result};

/// Robots of a fleet that carry payloads, all on the same link.
#[derive(Debug, Clone, Copy)]
pub struct Carried<'a> {
    /// Link that carries the payloads.
    pub link: &'a PayloadLink,
    /// Whether each robot carries a payload. At least one must not carry one, otherwise links and payloads cannot be separated.
    pub carries: &'a [bool],
}

/// Payload of one robot.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct FleetPayload {
    /// Payload in the frame of the link that carries it.
    pub body: BodyEstimate,
    /// Combinations of the ten parameters that the forces of the robot determine.
    pub base_parameters: Vec<ParameterEstimate>,
    /// Number of excited directions of these combinations.
    pub excited: usize,
}

impl Carried<'_> {
    pub(crate) fn check(&self, robots: usize) -> Result<()> {
        if self.carries.len() != robots {
            let (expected, found) = (robots, self.carries.len());
            return Err(Error::Dimension { what: "choice of robots that carry a payload", expected, found });
        }
        if self.carries.iter().all(|&carries| carries) {
            return Err(Error::Unobservable(
                "every robot carries a payload: one without is needed to separate links from payloads".into(),
            ));
        }
        Ok(())
    }
}

/// Equations of a robot with a payload, after elimination of its individual terms.
pub(crate) struct Loaded {
    /// Columns of the common unknowns, columns of the payload, and forces; the variance of the noise is `spread`.
    a: DMatrix<f64>,
    effect: Scaled,
    b: DVector<f64>,
    spread: f64,
    samples: usize,
    count: usize,
    independent: f64,
}

/// Noise of the coordinates of a robot, estimated from its own log.
pub(crate) struct Noise {
    fit: LeastSquares,
    ordinary: bool,
}

impl Noise {
    /// Estimates the noise. A payload of the robot is part of its base parameters here.
    pub(crate) fn new(equations: &Equations<'_>, robot: &Summary, options: &IdentifyOptions) -> Result<Self> {
        let ordinary = options.estimator == Estimator::Ols;
        Ok(Self {
            fit: LeastSquares::new(
                equations,
                robot,
                crate::estimation::identification::identify::weighting(options),
            )?,
            ordinary,
        })
    }

    /// Returns the largest noise of all coordinates.
    pub(crate) fn largest(&self) -> f64 {
        self.fit.noise.iter().copied().fold(0.0, f64::max)
    }
}

impl Loaded {
    /// Creates the equations from the summary of the robot without its individual terms. `unit`, a noise common to all robots,
    /// scales the rows to the units of forces.
    pub(crate) fn new(
        shared: &Equations<'_>,
        link: &PayloadLink,
        reduced: &Summary,
        noise: &Noise,
        unit: f64,
    ) -> Result<Self> {
        let channels = || reduced.factors.iter().zip(&noise.fit.noise).filter(|(f, _)| f.count > 0);
        let count: usize = channels().map(|(f, _)| f.count).sum();
        let independent: f64 = channels().map(|(f, _)| f.independent).sum();
        let squares: f64 = channels().map(|(f, s)| s * s * f.count as f64).sum();
        // Ordinary least squares has equal weights for all forces.
        let (mut weights, spread, count) = if noise.ordinary {
            (vec![1.0; noise.fit.weights.len()], squares / independent.max(1.0), count)
        } else {
            let weights = noise.fit.weights.iter().map(|w| w * unit).collect();
            (weights, unit * unit, independent.round() as usize)
        };
        weights.resize(shared.channels.len(), 0.0);
        let all = stacked(shared, reduced, &weights, true)?.matrix();
        let n = shared.len();
        let (a, b) = (all.columns(0, n).into_owned(), all.column(n).into_owned());
        let effect = Scaled::new(&(a.columns(0, shared.rank()) * &link.effect))?;
        let count = count.saturating_sub(effect.excited);
        let independent = independent.min(count as f64);
        Ok(Self { a, effect, b, spread, samples: reduced.samples, count, independent })
    }

    /// Returns the summary of the common unknowns, in the last channel of the equations.
    pub(crate) fn without_payload(&self, shared: &Equations<'_>) -> Result<Summary> {
        let mut out = Summary::empty(shared);
        out.samples = self.samples;
        let range = self.effect.svd.u.columns(0, self.effect.excited);
        let a = &self.a - range * range.tr_mul(&self.a);
        let b = &self.b - range * range.tr_mul(&self.b);
        let (rows, n) = a.shape();
        let mut block = DMatrix::zeros(rows, n + 2);
        block.columns_mut(0, n).copy_from(&a);
        block.set_column(n, &b);
        block.set_column(n + 1, &b);
        if let Some(factor) = out.factors.last_mut() {
            let mut own = Factor::new(n + 2);
            own.triangle.add_rows(block.as_mut_slice(), rows)?;
            (own.count, own.independent) = (self.count, self.independent);
            *factor = own;
        }
        Ok(out)
    }

    /// Estimates the payload, given the common unknowns and their covariance.
    pub(crate) fn payload(
        &self,
        link: &PayloadLink,
        common: &DVector<f64>,
        covariance: &DMatrix<f64>,
        options: &IdentifyOptions,
    ) -> Result<(Parameters<f64>, FleetPayload)> {
        let effect = &self.effect;
        let rest = &self.b - &self.a * common;
        let found = effect.solve(&rest);
        let inverse = &effect.root * effect.root.transpose();
        let matrix = self.a.columns(0, link.effect.nrows()) * &link.effect;
        let lever = &inverse * matrix.tr_mul(&self.a);
        let covariance = &inverse * self.spread + &lever * covariance * lever.transpose();
        let values: [f64; 10] = std::array::from_fn(|i| found[i]);
        let parameters = match options.estimator {
            Estimator::Ols | Estimator::Wls => Parameters::from(values),
            _ => {
                let errors = std::array::from_fn(|i| covariance[(i, i)].max(0.0).sqrt());
                let prior = measured_prior(&values, &errors);
                let scale = self.spread.sqrt().recip();
                // Bounds and other distances refer to links.
                let plain =
                    IdentifyOptions { bounds: None, prior_kind: PriorKind::default(), ..options.clone() };
                consistent_body(matrix * scale, rest * scale, &prior, &plain, effect.excited == 10)?
                    .parameters
            }
        };
        let body = BodyEstimate::new("payload", &Inertia::from_parameters(&parameters))?;
        let base_parameters = combinations(link, &parameters, &covariance, &effect.open())?;
        Ok((parameters, FleetPayload { body, base_parameters, excited: effect.excited }))
    }
}

impl Equations<'_> {
    /// Adds a channel in which all unknowns act.
    pub(crate) fn with_joint_channel(mut self) -> Self {
        self.channels.push(Channel {
            unknowns: (0..self.len()).collect(),
            entries: Vec::new(),
            features: Vec::new(),
        });
        self
    }
}
