//! Designs for robots that fly freely.

use anyhow::{Context, Result, anyhow, bail, ensure};
use inertial::excitation::{Design, FlightOptions, design_flight};
use inertial::identifiability::{AnalyzeOptions, Measured, analyze};
use inertial::mechanism::{Base, Mechanism};

use super::subject::room;
use super::watch::Watcher;
use super::{Args, TrajectoryChoice, criterion, limits, robust};
use crate::identify::FrictionChoice;
use crate::identify::momentum::rate_noise;
use crate::model::Model;
use crate::options::Setting;

/// Noise of all rates where none is given: the motion is the best for any that is in these proportions.
const NOISE: [&str; 3] = ["dq=1e-4", "base.v=1e-4", "base.w=1e-4"];

/// A motion of joints and wheels that the base's answer tells the parameters from.
pub fn design(args: &Args, mechanism: &Mechanism, watcher: &Watcher) -> Result<Design> {
    ensure!(
        mechanism.base() == Base::Floating,
        "--measured momentum needs a robot that flies (--base floating)"
    );
    let forces_only = [
        ("--friction", !matches!(args.friction, FrictionChoice::None)),
        ("--offset", args.offset),
        ("--joints", args.joints.is_some()),
        ("--prior-summary", !args.prior_summary.is_empty()),
        ("--start", args.start.is_some()),
        ("--ground", args.ground.is_some()),
        ("--base-motion", args.base_motion.is_some()),
        ("--harmonics", args.harmonics.is_some()),
    ];
    if let Some((name, _)) = forces_only.iter().find(|(_, given)| *given) {
        bail!("{name} is not for free flights (--measured momentum)");
    }
    ensure!(
        matches!(args.trajectory, None | Some(TrajectoryChoice::Velocity)),
        "--trajectory: free flights are designed with velocity"
    );
    let given = if args.noise.is_empty() { NOISE.map(String::from).to_vec() } else { args.noise.clone() };
    let settings = given
        .iter()
        .map(|s| s.parse::<Setting>().map_err(|e| anyhow!("--noise: {e}")))
        .collect::<Result<Vec<_>>>()?;
    let noise = rate_noise(&settings, mechanism)?.map(|n| n.rates).unwrap_or_default();
    let analysis = analyze(
        mechanism,
        &AnalyzeOptions { measured: Some(Measured::Momentum), ..AnalyzeOptions::default() },
    )?;
    let intervals = args.intervals.unwrap_or((args.duration.round() as usize).clamp(2, 500));
    let options = FlightOptions {
        duration: args.duration,
        interval: args.duration / intervals as f64,
        rate: args.rate,
        noise,
        criterion: criterion(args),
        others: others(args)?,
        robust: robust(args),
        limits: limits(args),
        room: room(args, mechanism)?,
        starts: args.starts,
        steps: args.iterations,
        seed: args.seed,
    };
    Ok(design_flight(mechanism, &analysis.regrouping.listed()?, &options, &|p| watcher.step(p))?)
}

/// What else the robot may be.
fn others(args: &Args) -> Result<Vec<Mechanism>> {
    let build = |path: &String| Model::load(path)?.build(&args.options.build_options());
    args.robust.iter().map(|path| build(path).with_context(|| format!("--robust {path}"))).collect()
}
