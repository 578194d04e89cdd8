//! Identification from rates and momenta.

use schemars::JsonSchema;
use serde::Serialize;

use crate::dynamics::{Frame, Workspace, momentum};
use crate::estimation::estimator::Estimator;
use crate::estimation::identification::identify::IdentifyOptions;
use crate::estimation::identification::residuals::{Residual, Validation};
use crate::estimation::identification::result::{BodyEstimate, ModelSize, bodies};
use crate::estimation::momentum::equations::{MomentumEquations, MomentumFit, MomentumSamples, RateNoise};
use crate::estimation::warning::Warning;
use crate::mechanism::{BodyKind, Mechanism};
use crate::warning::Warnings;
use crate::{Error, Result};

/// Integration rule from rates to positions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RateRule {
    /// Trapezoid rule: the mean of the rates at both ends of a sample.
    #[default]
    Trapezoid,
    /// Euler rule: the rate at the start of a sample (paper 002, eqs 44–47), which lags by half a sample.
    Euler,
}

/// Integrates measured rates (`nv` per sample) at the times `t` to positions (`nq` per sample), starting at `start`.
pub fn integrate_rates(
    mechanism: &Mechanism,
    t: &[f64],
    v: &[f64],
    start: &[f64],
    rule: RateRule,
) -> Result<Vec<f64>> {
    let (nq, nv) = (mechanism.nq(), mechanism.nv());
    for (what, found, expected) in [("rates", v.len(), t.len() * nv), ("start", start.len(), nq)] {
        if found != expected {
            return Err(Error::Dimension { what, expected, found });
        }
    }
    let mut q = start.to_vec();
    let mut out = Vec::with_capacity(t.len() * nq);
    let mut step = vec![0.0; nv];
    for (i, &time) in t.iter().enumerate() {
        if i > 0 {
            let dt = time - t[i - 1];
            let (before, after) = (&v[(i - 1) * nv..i * nv], &v[i * nv..(i + 1) * nv]);
            for ((step, a), b) in step.iter_mut().zip(before).zip(after) {
                *step = dt * if rule == RateRule::Euler { *a } else { 0.5 * (a + b) };
            }
            mechanism.integrate(&mut q, &step);
        }
        out.extend_from_slice(&q);
    }
    Ok(out)
}

/// Estimated base parameter, with the value of the model.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct MomentumParameter {
    /// Name of the combination as `BODY.NAME`.
    pub name: String,
    /// Value.
    pub value: f64,
    /// Standard error: the Cramér–Rao bound for `eiv`, without the bias for `ols`.
    pub std_error: f64,
    /// Value of the given model.
    pub model: f64,
    /// Difference from the value of the model, in standard errors.
    pub difference_in_std_errors: f64,
}

/// Residual of one component of the momentum.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct MomentumResidual {
    /// Name of the component, such as `momentum.px`.
    pub joint: String,
    /// Root mean square of the difference between given and predicted momentum.
    pub rms: f64,
    /// Residual relative to the root mean square of the given momentum. If that is zero, the momenta of the bodies cancel, and the
    /// reference is the root mean square of the sum of their magnitudes.
    pub relative_rms: f64,
}

/// Result of [`identify_momentum`]; serializes to the object of `identify --measured momentum --json`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct MomentumIdentification {
    /// Schema of the JSON object.
    #[schemars(extend("const" = "inertial/identification/1"))]
    pub schema: &'static str,
    /// Mechanism.
    pub model: ModelSize,
    /// Measured quantity: momentum.
    #[schemars(extend("const" = "momentum"))]
    pub measured: &'static str,
    /// Estimator.
    pub estimator: &'static str,
    /// Number of samples.
    pub samples: usize,
    /// Number of base parameters.
    pub rank: usize,
    /// Number of excited directions of base parameters.
    pub excited: usize,
    /// Bodies with the estimated base parameters: consistent bodies close to the prior for a consistent estimator, otherwise
    /// bodies close to the model, which need not be consistent individually.
    pub bodies: Vec<BodyEstimate>,
    /// Joint models; always empty.
    pub joints: Vec<()>,
    /// Estimated base parameters.
    pub base_parameters: Vec<MomentumParameter>,
    /// Residuals of the data that were fitted.
    pub fit: Vec<MomentumResidual>,
    /// Residuals of the held-out data.
    pub validation: Vec<MomentumResidual>,
    /// Ratio of `Σ eᵀC⁻¹e` to the degrees of freedom: about one if the noise is as given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reduced_chi_squared: Option<f64>,
    /// Duality gap of the consistent estimator: cost minus proven lower bound of its last convex problem.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duality_gap: Option<f64>,
    /// Warnings.
    #[serde(flatten)]
    pub warnings: Warnings<Warning>,
    /// All inertial parameters, for computation.
    #[serde(skip)]
    pub parameters: Vec<f64>,
}

/// Estimates the parameters of a free-flying robot from its momentum.
pub fn identify_momentum(
    equations: &MomentumEquations<'_>,
    samples: &MomentumSamples<'_>,
    validation: Option<&MomentumSamples<'_>>,
    noise: Option<&RateNoise>,
    options: &IdentifyOptions,
) -> Result<MomentumIdentification> {
    let (mechanism, estimator) = (equations.mechanism(), options.estimator);
    let stated = || {
        noise.ok_or_else(|| {
            Error::NotApplicable(format!("the estimator {} needs the noise of the rates", estimator.name()))
        })
    };
    let (mut duality_gap, mut consistent, mut notes) = (None, None, Vec::new());
    let fit = match estimator {
        Estimator::Ols => equations.least_squares(samples, noise)?,
        Estimator::Bcls => equations.bias_compensated(samples, stated()?)?,
        Estimator::Eiv => equations.errors_in_variables(samples, stated()?)?,
        Estimator::Consistent => {
            let prior = options.prior(mechanism)?;
            notes.extend(prior.warning());
            let found = equations.consistent(samples, noise, &options.consistency(&prior))?;
            duality_gap = Some(found.duality_gap);
            consistent = Some(found.parameters);
            found.fit
        }
        Estimator::Wls | Estimator::Irls => {
            return Err(Error::NotApplicable(format!(
                "the estimator {} is not for momentum: use ols, bcls, eiv or consistent",
                estimator.name()
            )));
        }
    };
    let parameters = match consistent {
        Some(parameters) => parameters,
        None => equations.regrouping.expand(fit.values.as_slice(), &mechanism.parameters())?,
    };
    let estimated = mechanism.clone().with_parameters(&parameters)?;
    let bodies = bodies(&estimated, None)?;
    let count = samples.momentum.len() / 6;
    let free = (6 * count).saturating_sub(fit.excited).max(1) as f64;
    let chi = fit.chi_squared.map(|c| c / free);
    let given = equations.regrouping.regroup(&mechanism.parameters())?;
    let errors = fit.std_errors();
    let base = equations.names.iter().zip(fit.values.iter()).zip(errors).zip(given);
    Ok(MomentumIdentification {
        schema: "inertial/identification/1",
        model: ModelSize {
            name: mechanism.name().to_owned(),
            bodies: mechanism.bodies().iter().filter(|b| b.kind == BodyKind::Link).count(),
            dof: mechanism.nv(),
        },
        measured: "momentum",
        estimator: estimator.result_name(options.solver),
        samples: count,
        rank: equations.len(),
        excited: fit.excited,
        joints: Vec::new(),
        base_parameters: base
            .map(|(((name, &value), std_error), model)| MomentumParameter {
                name: name.clone(),
                value,
                std_error,
                model,
                difference_in_std_errors: if std_error > 0.0 { (value - model) / std_error } else { 0.0 },
            })
            .collect(),
        fit: residuals(&estimated, samples)?,
        validation: validation.map_or_else(|| Ok(Vec::new()), |v| residuals(&estimated, v))?,
        reduced_chi_squared: chi,
        duality_gap,
        warnings: warnings(equations, &fit, noise, estimator, notes, chi, free, &bodies),
        bodies,
        parameters,
    })
}

#[allow(clippy::too_many_arguments)]
fn warnings(
    equations: &MomentumEquations<'_>,
    fit: &MomentumFit,
    noise: Option<&RateNoise>,
    estimator: Estimator,
    notes: Vec<Warning>,
    chi: Option<f64>,
    free: f64,
    bodies: &[BodyEstimate],
) -> Warnings<Warning> {
    let mut out = Warnings::of_model(equations.mechanism().warnings());
    let plain = estimator == Estimator::Ols;
    out.extend(notes);
    if estimator != Estimator::Consistent {
        let bodies: Vec<_> = bodies.iter().filter(|b| !b.consistent).map(|b| b.name.clone()).collect();
        if !bodies.is_empty() {
            out.push(Warning::Impossible { bodies });
        }
    }
    if fit.excited < equations.len() {
        // Threshold for the main entries of a direction of unit length.
        let part = |i: &usize| fit.unexcited.row(*i).norm() > 0.1;
        out.push(Warning::NotExcited {
            missing: equations.len() - fit.excited,
            of: equations.len(),
            kind: "base parameters",
            names: (0..equations.len()).filter(part).map(|i| equations.names[i].clone()).collect(),
        });
    }
    if !fit.status.is_converged() {
        out.push(Warning::LikelihoodNotConverged { steps: fit.steps });
    }
    if plain && noise.is_some() {
        out.push(Warning::Biased);
    }
    // Five standard deviations of χ²/free, with a margin for inexact positions.
    if let Some(chi) = chi.filter(|c| *c > 1.5 + 5.0 * (2.0 / free).sqrt() && !plain) {
        out.push(Warning::LargeResiduals { ratio: chi.sqrt() });
    }
    out
}

/// Validates a model of a free-flying robot with measured momenta.
pub fn validate_momentum(mechanism: &Mechanism, samples: &MomentumSamples<'_>) -> Result<Validation> {
    let sums = MomentumSums::new(mechanism, samples)?;
    let joints: Vec<Residual> = sums
        .residuals()
        .into_iter()
        .map(|r| Residual {
            joint: r.joint,
            samples: sums.count,
            rms: r.rms,
            relative_rms: r.relative_rms,
            rms_raw: r.rms,
            relative_rms_raw: r.relative_rms,
            left_out: 0.0,
            durbin_watson: None,
            white: None,
            ljung_box: None,
            ljung_box_p: None,
        })
        .collect();
    let few = sums.count < Validation::ENOUGH;
    let all: f64 = (0..6).map(|k| sums.reference(k)).sum();
    let left: f64 = sums.error.iter().sum();
    let relative_rms = if left == 0.0 { 0.0 } else { (left / all).sqrt() };
    Ok(Validation {
        schema: "inertial/validation/1",
        samples: sums.count,
        unjudged: if few { joints.iter().map(|r| r.joint.clone()).collect() } else { Vec::new() },
        joints,
        relative_rms,
        relative_rms_raw: relative_rms,
        left_out: 0.0,
    })
}

fn residuals(mechanism: &Mechanism, samples: &MomentumSamples<'_>) -> Result<Vec<MomentumResidual>> {
    Ok(MomentumSums::new(mechanism, samples)?.residuals())
}

/// Sums of squares over samples, by component of the momentum.
struct MomentumSums {
    count: usize,
    error: [f64; 6],
    given: [f64; 6],
    /// Sums of the magnitudes of the momenta of all bodies: linear, and angular about their centres of mass.
    of_bodies: [f64; 2],
}

impl MomentumSums {
    fn new(mechanism: &Mechanism, samples: &MomentumSamples<'_>) -> Result<Self> {
        let (nq, nv) = (mechanism.nq(), mechanism.nv());
        let count = samples.momentum.len() / 6;
        let mut workspace = Workspace::new(mechanism);
        let mut out = Self { count, error: [0.0; 6], given: [0.0; 6], of_bodies: [0.0; 2] };
        for t in 0..count {
            let (q, v) = (&samples.q[t * nq..(t + 1) * nq], &samples.v[t * nv..(t + 1) * nv]);
            let found = momentum(mechanism, &mut workspace, q, v, Frame::Base)?;
            let given = &samples.momentum[6 * t..6 * t + 6];
            for (k, found) in found.linear.iter().chain(&found.angular).enumerate() {
                out.error[k] += (given[k] - found).powi(2);
                out.given[k] += given[k].powi(2);
            }
            let mut sizes = [0.0; 2];
            for (body, velocity) in mechanism.bodies().iter().zip(workspace.velocities()) {
                let own = body.inertia.apply(velocity);
                let com = body.inertia.com().unwrap_or_default();
                sizes[0] += own.linear.norm();
                sizes[1] += (own.angular - com.cross(&own.linear)).norm();
            }
            out.of_bodies.iter_mut().zip(sizes).for_each(|(sum, size)| *sum += size * size);
        }
        Ok(out)
    }

    /// Returns the sum of squares to which residuals of a component are relative.
    fn reference(&self, k: usize) -> f64 {
        if self.given[k] > 0.0 { self.given[k] } else { self.of_bodies[k / 3] }
    }

    fn residuals(&self) -> Vec<MomentumResidual> {
        let names = ["px", "py", "pz", "lx", "ly", "lz"].into_iter().enumerate();
        let residual = |(k, name): (usize, &str)| MomentumResidual {
            joint: format!("momentum.{name}"),
            rms: (self.error[k] / self.count.max(1) as f64).sqrt(),
            relative_rms: if self.error[k] == 0.0 { 0.0 } else { (self.error[k] / self.reference(k)).sqrt() },
        };
        names.map(residual).collect()
    }
}
