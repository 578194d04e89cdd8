//! `inertial identify --measured momentum`: a free-flying robot, from its rates and the momentum that its wheels gave it.

use std::fmt::Write as _;

use anyhow::{Context, Result, bail, ensure};
use clap::ValueEnum;
use inertial::consistency::significant;
use inertial::estimation::momentum::{MomentumEquations, MomentumSamples, RateNoise};
use inertial::estimation::momentum_identification::{
    MomentumEstimator, MomentumIdentification, MomentumResidual, RateRule, identify_momentum, integrate_rates,
};
use inertial::mechanism::{DEFAULT_SNAP, Mechanism};
use inertial_data::{Cutoff, Log, Need, Options, prepare};

use super::{Args, EstimatorChoice};
use crate::model::Model;
use crate::options::Setting;
use crate::output::{self, Answer};
use crate::page;

const MOMENTUM: [&str; 6] =
    ["momentum.px", "momentum.py", "momentum.pz", "momentum.lx", "momentum.ly", "momentum.lz"];

/// Where positions come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PositionChoice {
    /// The log's columns
    Log,
    /// The first row, and rates integrated by the trapezoid rule
    Trapezoid,
    /// The first row, and rates integrated by Euler's rule
    Euler,
}

pub fn run(args: &Args, model: &Model, mechanism: &Mechanism) -> Result<Answer> {
    ensure!(
        args.out.is_none(),
        "--out: a model is written from joint torques only; --json has the parameters"
    );
    ensure!(args.summary_out.is_none(), "--summary-out: momentum has no summary");
    let estimator = match args.estimator {
        None if args.noise.is_empty() => MomentumEstimator::Ols,
        Some(EstimatorChoice::Ols) => MomentumEstimator::Ols,
        Some(EstimatorChoice::Bcls) => MomentumEstimator::Bcls,
        None | Some(EstimatorChoice::Eiv) => MomentumEstimator::Eiv,
        Some(_) => bail!("--estimator: with --measured momentum expected ols, bcls or eiv"),
    };
    let noise = rate_noise(&args.noise, mechanism)?;
    let equations = MomentumEquations::new(mechanism, DEFAULT_SNAP).with_context(|| model.label.clone())?;
    let (mut fit, mut kept) = (Data::default(), Data::default());
    for path in &args.logs {
        let data = Data::read(mechanism, path, args)?;
        match args.holdout {
            Some(fraction) => {
                let cut = ((1.0 - fraction) * data.len() as f64).round() as usize;
                fit.append(&data, 0..cut, mechanism);
                kept.append(&data, cut..data.len(), mechanism);
            }
            None => fit.append(&data, 0..data.len(), mechanism),
        }
    }
    for path in &args.validate {
        let data = Data::read(mechanism, path, args)?;
        kept.append(&data, 0..data.len(), mechanism);
    }
    let validation = kept.samples();
    let validation = (kept.len() > 0).then_some(&validation);
    let result = identify_momentum(&equations, &fit.samples(), validation, noise.as_ref(), estimator)
        .with_context(|| args.logs.join(", "))?;
    let drawn = args.pictures.draw(&args.files(), || page::of_momentum(model, mechanism, &result))?;
    if args.json {
        output::print_json(&result)?;
    } else {
        output::print(&(text(&result) + &drawn))?;
    }
    Ok(Answer::Yes)
}

/// Samples of all logs, one after the other.
#[derive(Default)]
struct Data {
    q: Vec<f64>,
    v: Vec<f64>,
    momentum: Vec<f64>,
}

impl Data {
    fn read(mechanism: &Mechanism, path: &str, args: &Args) -> Result<Self> {
        let log = Log::collect(args.log.reader(path)?)?;
        let given: Vec<usize> = (0..6).filter(|&k| log.column(MOMENTUM[k]).is_some()).collect();
        if let Some(missing) = (3..6).find(|k| !given.contains(k)) {
            bail!(
                "{path}: there is no column {}: the momentum of the robot without its wheels",
                MOMENTUM[missing]
            );
        }
        let options = Options {
            // Noise that was filtered is no longer white; the estimate wants it as it was.
            cutoff: Cutoff::Off,
            decimate: 1,
            slow: 0.0,
            torques: Need::Optional,
            base_pose: Need::Optional,
            extra: given.iter().map(|&k| MOMENTUM[k].to_owned()).collect(),
            trust_units: args.log.trust_units(),
            ..Options::default()
        };
        let prepared = prepare(mechanism, &log, &options)?;
        for note in &prepared.notes {
            output::say(&format!("{path}: {note}"));
        }
        let (nq, nv) = (mechanism.nq(), mechanism.nv());
        let q = match args.positions {
            PositionChoice::Log => prepared.q,
            rule => {
                let rule = if rule == PositionChoice::Euler { RateRule::Euler } else { RateRule::Trapezoid };
                integrate_rates(mechanism, &prepared.t, &prepared.v, &prepared.q[..nq], rule)?
            }
        };
        let mut out = Self::default();
        for i in (0..prepared.t.len()).filter(|&i| prepared.sound[i]) {
            out.q.extend_from_slice(&q[i * nq..(i + 1) * nq]);
            out.v.extend_from_slice(&prepared.v[i * nv..(i + 1) * nv]);
            let mut row = [0.0; 6];
            for (&k, x) in given.iter().zip(&prepared.extra[i * given.len()..]) {
                row[k] = *x;
            }
            out.momentum.extend_from_slice(&row);
        }
        Ok(out)
    }

    fn len(&self) -> usize {
        self.momentum.len() / 6
    }

    fn append(&mut self, other: &Self, range: std::ops::Range<usize>, mechanism: &Mechanism) {
        let part = |n: usize| range.start * n..range.end * n;
        self.q.extend_from_slice(&other.q[part(mechanism.nq())]);
        self.v.extend_from_slice(&other.v[part(mechanism.nv())]);
        self.momentum.extend_from_slice(&other.momentum[part(6)]);
    }

    fn samples(&self) -> MomentumSamples<'_> {
        MomentumSamples { q: &self.q, v: &self.v, momentum: &self.momentum }
    }
}

/// Standard deviations by column: `dq`, `dq.JOINT`, `base.v`, `base.w`, `momentum.p`, `momentum.l` or a single component; of
/// several that fit the longest counts.
pub fn rate_noise(settings: &[Setting], mechanism: &Mechanism) -> Result<Option<RateNoise>> {
    if settings.is_empty() {
        return Ok(None);
    }
    let base = ["base.vx", "base.vy", "base.vz", "base.wx", "base.wy", "base.wz"].map(String::from);
    let joints = mechanism.velocity_names().into_iter().skip(6).map(|name| format!("dq.{name}"));
    let names: Vec<String> = base.into_iter().chain(joints).chain(MOMENTUM.map(String::from)).collect();
    for Setting { column, value } in settings {
        ensure!(*value >= 0.0, "--noise: {column} is {value}, expected a standard deviation");
        ensure!(
            names.iter().any(|name| fits(column, name)),
            "--noise: there is no column {column}; expected dq, base.v, base.w, momentum or one of {}",
            names.join(" ")
        );
    }
    let of = |name: &String| {
        let fitting = settings.iter().filter(|s| fits(&s.column, name));
        fitting.max_by_key(|s| s.column.len()).map_or(0.0, |s| s.value)
    };
    let mut all: Vec<f64> = names.iter().map(of).collect();
    let last = all.split_off(mechanism.nv());
    Ok(Some(RateNoise { rates: all, momentum: std::array::from_fn(|k| last[k]) }))
}

/// A column's name, what stands before a dot in it, or a vector without its component.
fn fits(key: &str, name: &str) -> bool {
    name.strip_prefix(key).is_some_and(|rest| {
        rest.is_empty() || rest.starts_with('.') || (key.contains('.') && matches!(rest, "x" | "y" | "z"))
    })
}

fn text(result: &MomentumIdentification) -> String {
    let mut out = format!(
        "{}: {} samples, {} of {} base parameters shown by this motion ({}, momentum)\n\n",
        result.model.name, result.samples, result.excited, result.rank, result.estimator
    );
    let rows = result.base_parameters.iter().map(|p| {
        let relative = if p.model == 0.0 { "-".to_owned() } else { percent((p.value - p.model) / p.model) };
        [
            p.name.clone(),
            significant(p.value, 6),
            significant(p.std_error, 2),
            significant(p.model, 6),
            relative,
            significant(p.difference_in_std_errors, 2),
        ]
    });
    let header = ["base parameter", "value", "standard error", "model", "difference", "/standard error"];
    out += &output::table(header, 5, rows);
    for (title, residuals) in [("fit", &result.fit), ("validation", &result.validation)] {
        if !residuals.is_empty() {
            out += "\n";
            let row =
                |r: &MomentumResidual| [r.joint.clone(), significant(r.rms, 3), percent(r.relative_rms)];
            out += &output::table([title, "rms", "relative"], 2, residuals.iter().map(row));
        }
    }
    if let Some(chi) = result.reduced_chi_squared {
        let _ = writeln!(
            out,
            "\nχ² over its degrees of freedom: {} (one where the noise is as stated)",
            significant(chi, 3)
        );
    }
    for warning in &result.warnings {
        let _ = writeln!(out, "warning: {warning}");
    }
    out
}

fn percent(x: f64) -> String {
    format!("{} %", significant(100.0 * x, 3))
}
