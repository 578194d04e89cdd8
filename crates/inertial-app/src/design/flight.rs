//! Design of motions for free-flying robots.

use inertial::excitation::pruning::PruningRule;
use inertial::excitation::{
    Combinations, CycloidOptions, Design, FlightOptions, design_cycloids, design_flight,
};
use inertial::identifiability::{AnalyzeOptions, Measured, analyze};
use inertial::mechanism::{Base, Mechanism};

use super::subject::collisions;
use super::{Options, Search};
use crate::choice::{Combinations as Choice, Friction, Goal, Offset, Shape};
use crate::flight::rate_noise;
use crate::setting::Setting;
use crate::{Error, Located, Model, Result, ensure, ensure_option};

/// Default noise of the rates; the optimal motion depends on the ratios only.
const NOISE: [(&str, f64); 3] = [("dq", 1e-4), ("base.v", 1e-4), ("base.w", 1e-4)];

/// Designs a motion of joints and wheels that determines the parameters from the response of the base.
pub fn design(own: &Options, model: &Model, search: &Search<'_>) -> Result<Design> {
    let mechanism = &model.mechanism;
    ensure_option!(
        mechanism.base() == Base::Floating,
        "measured",
        "momentum needs a free-flying robot: make its base floating"
    );
    let forces_only = [
        ("friction", own.friction != Friction::None),
        ("offset", own.offset == Offset::Yes),
        ("joints", own.joints.is_some()),
        ("prior-summary", !own.prior_summary.is_empty()),
        ("start", own.start.is_some()),
        ("ground", own.ground.is_some()),
        ("base-motion", own.base_motion.is_some()),
        ("harmonics", own.harmonics.is_some()),
    ];
    if let Some((name, _)) = forces_only.iter().find(|(_, given)| *given) {
        return Err(Error::option(name, "cannot be used for free flights (measured momentum)"));
    }
    ensure_option!(
        matches!(own.trajectory, None | Some(Shape::Velocity | Shape::Cycloid)),
        "trajectory",
        "expected velocity or cycloid for a free flight"
    );
    let seeded = own.trajectory == Some(Shape::Cycloid);
    let cycloids_only = [("seeds", own.seeds.is_some()), ("combinations", own.combinations != Choice::First)];
    if let Some((name, _)) = cycloids_only.iter().find(|(_, given)| *given && !seeded) {
        return Err(Error::option(name, "needs the trajectory cycloid"));
    }
    let has_joints = mechanism.nv() > 6;
    ensure!(
        has_joints || !mechanism.wheels().is_empty(),
        "the robot has no joint and no reaction wheel that a trajectory could move"
    );
    let usual = || {
        let known = NOISE.into_iter().filter(|(column, _)| has_joints || *column != "dq");
        known.map(|(column, value)| Setting { column: column.into(), value }).collect()
    };
    let settings = if own.noise.is_empty() { usual() } else { own.noise.clone() };
    let noise = rate_noise(&settings, mechanism)?.map(|n| n.rates).unwrap_or_default();
    let analysis =
        analyze(mechanism, &AnalyzeOptions::default().with(|o| o.measured = Some(Measured::Momentum)))?;
    let intervals = own.intervals.unwrap_or((own.duration.round() as usize).clamp(2, 500));
    if seeded {
        let options = cycloids(own, mechanism, noise, intervals)?;
        return Ok(design_cycloids(mechanism, &analysis.regrouping.listed()?, &options, &|step| {
            search.step(&step)
        })?);
    }
    let (others, collisions) = (others(own, model, search)?, collisions(own, mechanism)?);
    let options = FlightOptions::new(noise).with(|o| {
        o.duration = own.duration;
        o.interval = own.duration / intervals as f64;
        o.rate = own.rate;
        o.criterion = own.criterion(Measured::Momentum);
        o.others = others;
        o.robust = own.robust_by;
        o.limits = own.limits();
        o.collisions = collisions;
        o.starts = own.starts;
        o.steps = own.steps();
        o.seed = own.seed;
    });
    Ok(design_flight(mechanism, &analysis.regrouping.listed()?, &options, &|step| search.step(&step))?)
}

/// Returns the options of cycloids from seeds.
fn cycloids(
    own: &Options,
    mechanism: &Mechanism,
    noise: Vec<f64>,
    intervals: usize,
) -> Result<CycloidOptions> {
    let weight = match own.goal(Measured::Momentum) {
        Goal::Paper => own.weight,
        Goal::Condition => 0.0,
        _ => {
            let reason = "expected paper or condition for the cycloids of a free flight";
            return Err(Error::option("criterion", reason));
        }
    };
    ensure_option!(own.robust.is_empty(), "robust", "cannot be used for the cycloids of free flights");
    let seeds = match &own.seeds {
        None => None,
        Some(seeds) => {
            let joints = mechanism.joints().iter();
            let joints = joints.filter(|j| j.follows.is_none() && j.joint_type.nv() == 1).count();
            ensure_option!(
                seeds.len() == 2 * joints,
                "seeds",
                "has {} numbers, expected {}: a start and a range of each of {joints} joints",
                seeds.len(),
                2 * joints
            );
            let (start, range) = seeds.split_at(joints);
            ensure_option!(range.iter().all(|r| *r > 0.0), "seeds", "expected ranges above zero");
            Some([start.to_vec(), range.to_vec()])
        }
    };
    let collisions = collisions(own, mechanism)?;
    Ok(CycloidOptions::new(noise).with(|o| {
        o.interval = own.duration / intervals as f64;
        o.rate = own.rate;
        o.weight = weight;
        o.combinations = match own.combinations {
            Choice::First => Combinations::First(intervals),
            Choice::Best => Combinations::Best(intervals),
            Choice::Printed => Combinations::Pruned(PruningRule::Printed),
            Choice::Refreshed => Combinations::Pruned(PruningRule::Refreshed),
            Choice::Counted => Combinations::Pruned(PruningRule::Counted),
        };
        o.seeds = seeds;
        o.limits = own.limits();
        o.collisions = collisions;
        o.starts = own.starts;
        o.steps = own.steps();
        o.seed = own.seed;
    }))
}

/// Builds the alternative models of a robust design.
fn others(own: &Options, model: &Model, search: &Search<'_>) -> Result<Vec<Mechanism>> {
    let build = |name: &String| model.load_other(name, search.context).map(|m| m.mechanism).at(name);
    own.robust.iter().map(build).collect()
}
