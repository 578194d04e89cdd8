//! Options of an analysis and the problem that they define: measured quantities, preferred columns, and applicability
//! of the recursion.

use super::conserved;
use super::experiment::{Experiment, Measured, TotalMomentum};
use super::rpna::{Regime, Scope};
use super::topology::Topology;
use crate::linalg::First;
use crate::mechanism::{Base, DEFAULT_SNAP, ExactGeometry, Mechanism};
use crate::{Error, Place, Result, nearest_hint};

/// Method used to find the rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Method {
    /// Recursion if it applies, otherwise exact sampling.
    #[default]
    Auto,
    /// Recursive parameter nullspace algorithm.
    Rpna,
    /// Singular values of a sampled regressor.
    Numeric,
    /// Exact sampling.
    Exact,
    /// Dynamics regressor nullspace generator, verified and completed by exact computation.
    Drng,
}

/// Options of [`super::analyze`].
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct AnalyzeOptions {
    /// Snapping tolerance (radians, and lengths relative to the size of the robot): geometry within this tolerance of a
    /// special position is treated as special. Zero takes every number literally.
    pub snap: f64,
    /// Method used to find the rank.
    pub method: Method,
    /// Measured quantities; by default joint torques, and with a floating base also its wrench.
    pub measured: Option<Measured>,
    /// Names of the joints that have a torque sensor; `None` if all have one.
    pub torque_joints: Option<Vec<String>>,
    /// Admissible motions.
    pub regime: Regime,
    /// Whether a floating robot flies freely, without external forces.
    pub ballistic: bool,
    /// Total momentum of a free-flying robot including its wheels, if momentum is measured.
    pub total_momentum: TotalMomentum,
    /// Names of parameters to prefer as base parameters, in order.
    pub choose: Vec<String>,
    /// Seed of random configurations.
    pub seed: u64,
}

crate::with_changes!(AnalyzeOptions);

impl Default for AnalyzeOptions {
    fn default() -> Self {
        Self {
            snap: DEFAULT_SNAP,
            method: Method::Auto,
            measured: None,
            torque_joints: None,
            regime: Regime::Full,
            ballistic: false,
            total_momentum: TotalMomentum::default(),
            choose: Vec::new(),
            seed: 1,
        }
    }
}

/// Returns the topology and the scope of the experiment if the recursion applies, otherwise the reason why it does not.
pub(super) fn recursion_applies(
    mechanism: &Mechanism,
    experiment: &Experiment,
    geometry: &ExactGeometry,
) -> Result<(Topology, Scope), &'static str> {
    let scope = scope(mechanism, experiment)
        .ok_or("not every generalized force is measured, or not every motion is possible")?;
    Ok((Topology::new(&geometry.to::<First>())?, scope))
}

/// Returns the scope of an experiment, if the recursion covers it.
///
/// With `Ic` the composite inertia carried by a joint and `s` its motion, the wrench on the base (or its momentum)
/// contains `Ic s` of every joint. The energies of the joints are `sᵀ Ic s`: a change that no momentum contains appears
/// in no energy. A coordinate that moves several bodies gives only sums of such momenta.
fn scope(mechanism: &Mechanism, experiment: &Experiment) -> Option<Scope> {
    let Experiment { regime, measured, ref torques, ballistic, ref conservation, .. } = *experiment;
    let mut moved = vec![0; mechanism.nv()];
    mechanism.bodies().iter().for_each(|b| moved[b.drive.v] += 1);
    let single = moved.iter().all(|&n| n <= 1);
    let all = torques.iter().all(|&t| t);
    let moving = regime != Regime::Static;
    let everything = Some(Scope::from(regime));
    // Joints on the ground could exchange parameters among each other, which the recursion does not cover.
    let mut roots = mechanism.bodies().iter().filter(|b| b.parent.is_none()).map(|b| b.drive.v);
    let first = roots.next();
    let one_root = roots.all(|v| Some(v) == first);
    if ballistic || conservation.is_some() {
        return None;
    }
    match (measured, mechanism.base()) {
        (Measured::JointTorques, Base::Fixed) | (Measured::Both, Base::Floating) if all => everything,
        (Measured::Momentum | Measured::BaseWrench | Measured::Both, Base::Floating) if moving && single => {
            everything
        }
        (Measured::BaseWrench, Base::Fixed) if one_root && single => {
            Some(Scope { regime, torques: false, wrench: true })
        }
        (Measured::Both, Base::Fixed) if all && one_root && single => {
            Some(Scope { regime, torques: true, wrench: true })
        }
        (Measured::Both, Base::Fixed) if moving && single && one_root => {
            Some(Scope { regime, torques: false, wrench: true })
        }
        _ => None,
    }
}

pub(super) fn checked_snap(snap: f64) -> Result<f64> {
    // With a tolerance of 0.1 rad every robot would be close to a special position.
    if (0.0..=0.1).contains(&snap) {
        Ok(snap)
    } else {
        Err(Error::Numeric(format!("the snapping tolerance is {snap}, expected a number from 0 to 0.1")))
    }
}

pub(super) fn experiment(mechanism: &Mechanism, options: &AnalyzeOptions) -> Result<Experiment> {
    let floating = mechanism.base() == Base::Floating;
    let mut out = Experiment::complete(floating, options.regime);
    out.measured = options.measured.unwrap_or(out.measured);
    out.ballistic = options.ballistic;
    if options.ballistic && !floating {
        return Err(Error::Numeric("only a robot with a floating base can fly freely".into()));
    }
    if out.measured == Measured::Momentum {
        if floating && !mechanism.loops().is_empty() && options.total_momentum != TotalMomentum::Any {
            let message = "a total momentum cannot be given for a mechanism with loops: use any";
            return Err(Error::Numeric(message.into()));
        }
        out.conservation = conserved::law(mechanism, options.total_momentum, options.snap);
    }
    // Only ratios of parameters are identifiable then, so the combinations depend on the masses.
    let depends_on_masses = out.conservation.is_some() || out.is_motion_only();
    out.model_masses = depends_on_masses && mechanism.loops().is_empty() && conserved::has_masses(mechanism);
    if options.ballistic && options.regime == Regime::Static {
        return Err(Error::Numeric("a robot in free flight cannot be static".into()));
    }
    if let Some(names) = &options.torque_joints {
        out.torques = vec![false; mechanism.nv()];
        for name in names {
            let joint = mechanism.joints().iter().find(|j| j.name == *name).ok_or_else(|| {
                let names: Vec<_> = mechanism.joints().iter().map(|j| j.name.as_str()).collect();
                Error::model(
                    Place::element(format!("joint \"{name}\"")),
                    format!("there is no moving joint of that name; there are {}", names.join(", ")),
                )
            })?;
            out.torques[joint.v_range()].fill(true);
        }
        // The coordinates of the base belong to the base wrench.
        if floating {
            out.torques[..6].fill(true);
        }
    }
    Ok(out)
}

/// Returns the columns, preferred ones first.
pub(super) fn order(mechanism: &Mechanism, choose: &[String]) -> Result<Vec<usize>> {
    let width = mechanism.parameter_count();
    if choose.is_empty() {
        return Ok((0..width).collect());
    }
    let names = mechanism.parameter_names();
    let mut order = Vec::with_capacity(width);
    for wanted in choose {
        let column = names.iter().position(|n| n == wanted).ok_or_else(|| {
            let near = nearest_hint(wanted, names.iter().map(String::as_str));
            let like = names.first().map_or("link1.m", String::as_str);
            let message = format!("there is no parameter of that name, expected BODY.NAME like {like}{near}");
            Error::model(Place::element(format!("parameter \"{wanted}\"")), message)
        })?;
        if !order.contains(&column) {
            order.push(column);
        }
    }
    let mut taken = vec![false; width];
    for &c in &order {
        taken[c] = true;
    }
    order.extend((0..width).filter(|&c| !taken[c]));
    Ok(order)
}
