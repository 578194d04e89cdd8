//! Identification of a fleet: common link parameters; individual friction, offsets and payloads.
//!
//! The individual terms of a robot act in the force of one coordinate each. They are therefore eliminated from the factor of that
//! coordinate only. With the columns of the factor in the order `[own | common | τ]`, an orthogonal transformation yields
//!
//! ```text
//! [R₁₁ R₁₂ z₁]      individual terms, given the common ones: R₁₁ x = z₁ − R₁₂ β
//! [ 0  R₂₂ z₂]      equations of the common unknowns β
//! ```
//!
//! The lower blocks of all robots are merged into one summary of the common unknowns, for any estimator. The cost of another robot
//! is one small factorization. Payloads are eliminated in the same way, see [`crate::estimation::fleet::payload`].

use std::ops::AddAssign as _;

use nalgebra::DVector;
use schemars::JsonSchema;
use serde::Serialize;

use crate::estimation::equations::Equations;
use crate::estimation::fleet::payload::{Carried, FleetPayload, Loaded, Noise};
use crate::estimation::identification::identify::{IdentifyOptions, identify, weighting};
use crate::estimation::identification::residuals::{Residual, validate};
use crate::estimation::identification::result::{Identification, JointEstimate, joints};
use crate::estimation::joint_model::terms::Term;
use crate::estimation::least_squares::fit::LeastSquares;
use crate::estimation::model_selection::joint_terms::choose;
use crate::estimation::reduction::summary::Summary;
use crate::estimation::warning::Warning;
use crate::linalg::Triangle;
use crate::{Error, Result};

/// Result of one robot of a fleet.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct Member {
    /// Friction and offsets (least squares given the common parameters); rotor inertias are common.
    pub joints: Vec<JointEstimate>,
    /// Residuals of the forces of the robot.
    pub residuals: Vec<Residual>,
    /// Relative residual of all coordinates together.
    #[schemars(with = "Option<f64>")]
    pub relative_rms: f64,
    /// Payload, if the robot carries one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload: Option<FleetPayload>,
}

/// Result of robots of one type that are identified together.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct Fleet {
    /// Schema of the JSON object.
    #[schemars(extend("const" = "inertial/fleet/1"))]
    pub schema: &'static str,
    /// Common result: bodies and rotor inertias. The residuals are those of the robots without payload.
    pub common: Identification,
    /// Results of the robots, in the order of the summaries.
    pub robots: Vec<Member>,
}

/// Eliminated individual terms of a robot in one coordinate.
struct OwnTerms {
    /// Factor with the individual terms first.
    triangle: Triangle,
    /// Indices of the individual and common unknowns among all unknowns, in the order of the factor.
    own: Vec<usize>,
    common: Vec<usize>,
}

/// Identifies a fleet with one summary per robot, all of the same equations; `carried` states which robots carry a payload.
///
/// The common parameters are estimated from all robots together, with unconstrained payloads. Each payload is then estimated given
/// the common parameters, as a consistent body unless the estimator is plain least squares.
///
/// ```
/// use inertial::dynamics::{InverseDynamics, Samples};
/// use inertial::estimation::{Equations, IdentifyOptions, JointTerms, Measurements, Summary, identify_fleet};
/// use inertial::mechanism::{DEFAULT_SNAP, builtin};
/// let robot = builtin::get("planar-2r")?.build(&Default::default())?;
/// let equations = Equations::new(&robot, JointTerms::default().with(|t| t.viscous = true), DEFAULT_SNAP)?;
/// let dynamics = InverseDynamics::new(&robot);
/// let mut robots = Vec::new();
/// for viscous in [0.1, 0.4] {
///     let (mut q, mut v, mut a) = (Vec::new(), Vec::new(), Vec::new());
///     for k in 0..200 {
///         let t = 0.05 * f64::from(k);
///         q.extend([t.sin(), (2.0 * t).cos()]);
///         v.extend([t.cos(), -2.0 * (2.0 * t).sin()]);
///         a.extend([-t.sin(), -4.0 * (2.0 * t).cos()]);
///     }
///     let samples = Samples::new(&dynamics, 200, &q, &v, &a)?;
///     let mut tau = vec![0.0; 400];
///     dynamics.rnea_batch(&mut dynamics.scratch(), &samples, &mut tau)?;
///     tau.iter_mut().zip(&v).for_each(|(tau, v)| *tau += viscous * v);
///     robots.push(Summary::new(&equations, &Measurements::new(samples, &tau))?);
/// }
/// let fleet = identify_fleet(&equations, &robots, None, &IdentifyOptions::default())?;
/// assert!((fleet.robots[0].joints[0].viscous.unwrap_or(0.0) - 0.1).abs() < 1e-4);
/// assert!((fleet.robots[1].joints[0].viscous.unwrap_or(0.0) - 0.4).abs() < 1e-4);
/// # Ok::<(), inertial::Error>(())
/// ```
pub fn identify_fleet(
    equations: &Equations<'_>,
    robots: &[Summary],
    carried: Option<Carried<'_>>,
    options: &IdentifyOptions,
) -> Result<Fleet> {
    if robots.is_empty() {
        return Err(Error::InvalidOption("the fleet is empty: give a summary of each robot".into()));
    }
    carried.map_or(Ok(()), |c| c.check(robots.len()))?;
    if equations.has_candidates() {
        let mut all = Summary::empty(equations);
        for robot in robots {
            all.merge(robot)?;
        }
        let chosen = choose(equations, &all)?;
        let narrow =
            robots.iter().map(|s| s.project(equations, &chosen.equations)).collect::<Result<Vec<_>>>()?;
        let mut out = identify_fleet(&chosen.equations, &narrow, carried, options)?;
        out.common = chosen.explain(out.common);
        return Ok(out);
    }
    // Base parameters and rotor inertias.
    let mut shared = equations.with_terms(|term| term == Term::RotorInertia);
    if carried.is_some() {
        shared = shared.with_joint_channel();
    }
    let mut reduced = Vec::new();
    for robot in robots {
        robot.check(equations)?;
        reduced.push(eliminate(equations, &shared, robot)?);
    }
    let loaded = loaded(equations, &shared, robots, &reduced, carried, options)?;
    let mut merged = Summary::empty(&shared);
    for ((_, own), loaded) in reduced.iter().zip(&loaded) {
        match loaded {
            Some(loaded) => merged.merge(&loaded.without_payload(&shared)?)?,
            None => merged.merge(own)?,
        }
    }
    let mut common = identify(&shared, &merged, None, options)?;
    let found = DVector::from_column_slice(&common.values);
    let squares = LeastSquares::new(&shared, &merged, weighting(options))?;
    let estimated = equations.mechanism().clone().with_parameters(&common.parameters)?;
    let mut members = Vec::new();
    for (k, ((robot, (own, _)), loaded)) in robots.iter().zip(&reduced).zip(&loaded).enumerate() {
        let mut shifted = found.clone();
        let mut payload = None;
        if let (Some(loaded), Some(Carried { link, .. })) = (loaded, carried) {
            let (parameters, found) = loaded.payload(link, &shifted, &squares.covariance, options)?;
            let added = &link.effect * DVector::from_column_slice(parameters.as_slice());
            shifted.rows_mut(0, added.len()).add_assign(&added);
            let rank = link.regrouping.rank();
            if found.excited < rank {
                common.warnings.push(Warning::PayloadNotExcited {
                    robot: Some(k + 1),
                    excited: found.excited,
                    of: rank,
                    open: Vec::new(),
                });
            }
            payload = Some(found);
        }
        let values = values(equations, &shared, shifted.as_slice(), own)?;
        let validation = validate(equations, robot, &values)?;
        members.push(Member {
            joints: joints(equations, &estimated, &values, None, &common.rotors),
            residuals: validation.joints,
            relative_rms: validation.relative_rms,
            payload,
        });
    }
    Ok(Fleet { schema: "inertial/fleet/1", common, robots: members })
}

/// Returns the equations of the robots with payloads, and `None` for the others.
fn loaded(
    equations: &Equations<'_>,
    shared: &Equations<'_>,
    robots: &[Summary],
    reduced: &[(Vec<OwnTerms>, Summary)],
    carried: Option<Carried<'_>>,
    options: &IdentifyOptions,
) -> Result<Vec<Option<Loaded>>> {
    let Some(Carried { link, carries }) = carried else {
        return Ok(robots.iter().map(|_| None).collect());
    };
    let noise = |(robot, carries): (&Summary, &bool)| {
        carries.then(|| Noise::new(equations, robot, options)).transpose()
    };
    let noises = robots.iter().zip(carries).map(noise).collect::<Result<Vec<_>>>()?;
    let unit = noises.iter().flatten().map(Noise::largest).fold(0.0, f64::max);
    let of = |((_, reduced), noise): (&(Vec<OwnTerms>, Summary), &Option<Noise>)| {
        noise.as_ref().map(|noise| Loaded::new(shared, link, reduced, noise, unit)).transpose()
    };
    reduced.iter().zip(&noises).map(of).collect()
}

/// Eliminates the individual terms of the robot. The remaining equations contain the common unknowns only.
fn eliminate(
    equations: &Equations<'_>,
    shared: &Equations<'_>,
    robot: &Summary,
) -> Result<(Vec<OwnTerms>, Summary)> {
    let place = |unknown: &usize| shared.names.iter().position(|n| *n == equations.names[*unknown]);
    let mut out = Summary::empty(shared);
    out.samples = robot.samples;
    let mut owned = Vec::new();
    for (c, (channel, factor)) in equations.channels.iter().zip(&robot.factors).enumerate() {
        let width = factor.triangle.width();
        let n = factor.unknowns();
        let (common, own): (Vec<usize>, Vec<usize>) =
            (0..n).partition(|&k| place(&channel.unknowns[k]).is_some());
        let twice = |k: &&usize| {
            let unknown = channel.unknowns[**k];
            equations.channels.iter().enumerate().any(|(d, o)| d != c && o.unknowns.contains(&unknown))
        };
        if let Some(&k) = own.iter().find(twice) {
            let name = &equations.names[channel.unknowns[k]];
            return Err(Error::Incompatible(format!(
                "{name} acts on several forces: the individual terms of a fleet's robots must act on one \
                 force each (no coupled drives)"
            )));
        }
        // The shared equations may list the unknowns of a channel in another order.
        let target = &shared.channels[c].unknowns;
        let at =
            |unknown: &usize| common.iter().copied().find(|&k| place(&channel.unknowns[k]) == Some(*unknown));
        let ordered: Option<Vec<usize>> = target.iter().map(at).collect();
        let ordered = ordered.filter(|o| o.len() == common.len()).ok_or_else(|| {
            Error::Unobservable(
                "the robots' individual terms cannot be separated from link parameters: remove them from the \
                 model"
                    .into(),
            )
        })?;
        let mut block = Vec::with_capacity(width * width);
        for &k in own.iter().chain(&ordered).chain(&[n, n + 1]) {
            block.extend((0..width).map(|row| if row <= k { factor.triangle.at(row, k) } else { 0.0 }));
        }
        let mut triangle = Triangle::new(width);
        triangle.add_rows(&mut block, width)?;
        let first = own.len();
        let mut lower = Vec::with_capacity(width * width);
        for column in first..width {
            lower
                .extend((first..width).map(|row| if row <= column { triangle.at(row, column) } else { 0.0 }));
        }
        let reduced = &mut out.factors[c];
        reduced.triangle.add_rows(&mut lower, width - first)?;
        // Each individual term uses one degree of freedom, as in a joint estimation of all unknowns.
        if factor.count > 0 {
            let count = factor.count as f64;
            let left = (count - first as f64 * count / factor.independent).max(0.0).round();
            reduced.count = left as usize;
            reduced.independent = factor.independent * left / count;
        }
        let numbers = |list: &[usize]| list.iter().map(|&k| channel.unknowns[k]).collect();
        owned.push(OwnTerms { triangle, own: numbers(&own), common: numbers(&ordered) });
    }
    Ok((owned, out))
}

/// Returns all unknowns of a robot: the common ones, and its individual ones by back substitution.
fn values(
    equations: &Equations<'_>,
    shared: &Equations<'_>,
    common: &[f64],
    owned: &[OwnTerms],
) -> Result<Vec<f64>> {
    let mut out = vec![0.0; equations.len()];
    for (name, &value) in shared.names.iter().zip(common) {
        match equations.names.iter().position(|n| n == name) {
            Some(k) => out[k] = value,
            None => return Err(Error::UnknownName(format!("{name} is not an unknown of the robots"))),
        }
    }
    for OwnTerms { triangle, own, common } in owned {
        let (k, n) = (own.len(), own.len() + common.len());
        for i in (0..k).rev() {
            let known = common.iter().enumerate().map(|(j, &u)| triangle.at(i, k + j) * out[u]).sum::<f64>();
            let later = (i + 1..k).map(|j| triangle.at(i, j) * out[own[j]]).sum::<f64>();
            let pivot = triangle.at(i, i);
            // A term that is not excited stays zero.
            out[own[i]] = if pivot.abs() > f64::EPSILON * triangle.at(0, 0).abs() {
                (triangle.at(i, n) - known - later) / pivot
            } else {
                0.0
            };
        }
    }
    Ok(out)
}
