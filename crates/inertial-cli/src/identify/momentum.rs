//! `inertial identify --measured momentum`: a free-flying robot, from its rates and the momentum that its wheels gave it.

use std::fmt::Write as _;
use std::ops::Range;

use anyhow::{Context, Result, bail, ensure};
use clap::ValueEnum;
use inertial::consistency::significant;
use inertial::dynamics::{Frame, Workspace, momentum};
use inertial::estimation::momentum::{MomentumEquations, MomentumSamples, RateNoise};
use inertial::estimation::momentum_identification::{
    MomentumIdentification, MomentumResidual, RateRule, identify_momentum, integrate_rates,
};
use inertial::estimation::{Estimator, IdentifyOptions};
use inertial::mechanism::{DEFAULT_SNAP, Mechanism};
use inertial_data::{Cutoff, Log, Need, Options, prepare};

use super::told::bodies;
use super::written::written;
use super::{Args, EstimatorChoice};
use crate::curves::{Curves, Told, Track};
use crate::model::Model;
use crate::options::Setting;
use crate::output::{self, Answer, Files};
use crate::page;
use crate::progress::{self, Work};

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
    ensure!(args.summary_out.is_none(), "--summary-out: momentum has no summary");
    let options: IdentifyOptions = match args.estimator {
        None if args.noise.is_empty() => Estimator::Ols.into(),
        Some(EstimatorChoice::Ols) => Estimator::Ols.into(),
        Some(EstimatorChoice::Bcls) => Estimator::Bcls.into(),
        None | Some(EstimatorChoice::Eiv) => Estimator::Eiv.into(),
        Some(EstimatorChoice::Wls | EstimatorChoice::Irls) => bail!(
            "--estimator: with --measured momentum expected ols, bcls, eiv, lmi, manifold or log-cholesky"
        ),
        Some(_) => super::options(args, mechanism)?,
    };
    let noise = rate_noise(&args.noise, mechanism)?;
    ensure!(
        noise.is_some() || !matches!(options.estimator, Estimator::Bcls | Estimator::Eiv),
        "{} needs the noise of the rates, expected --noise",
        options.estimator.name()
    );
    let equations = MomentumEquations::new(mechanism, DEFAULT_SNAP).with_context(|| model.label.clone())?;
    let (mut fit, mut kept) = (Stack::default(), Stack::default());
    let mut logs = Vec::new();
    let held_out = args.holdout.unwrap_or(0.0);
    let all =
        args.logs.iter().map(|path| (path, held_out)).chain(args.validate.iter().map(|path| (path, 1.0)));
    let work = Work::on_files(args.logs.iter().chain(&args.validate));
    for (path, held_out) in all {
        progress::file(path);
        let log = Data::read(mechanism, path, args)?;
        let cut = log.cut(1.0 - held_out);
        fit.append(&log, 0..cut, mechanism);
        kept.append(&log, cut..log.len(), mechanism);
        if args.pictures.wanted() {
            logs.push((log, cut));
        }
        progress::at(1.0);
    }
    drop(work);
    let validation = kept.samples();
    let validation = (kept.len() > 0).then_some(&validation);
    let result = identify_momentum(&equations, &fit.samples(), validation, noise.as_ref(), &options)
        .with_context(|| args.logs.join(", "))?;
    let mut files = Files::default();
    if let Some(path) = &args.out {
        files.add(path, &written(args, model, mechanism, &result.parameters, None)?)?;
    }
    let drawn = args.pictures.draw(&args.files(), &mut files, || {
        let estimated = mechanism.clone().with_parameters(&result.parameters)?;
        let mut tracks = Vec::new();
        for (log, cut) in &logs {
            tracks.push(log.track(&estimated, 0..*cut, "fit", &result.fit)?);
            tracks.push(log.track(&estimated, *cut..log.len(), "validation", &result.validation)?);
        }
        page::of_momentum(model, mechanism, &result, Curves::of_tracks(tracks))
    })?;
    files.finish()?;
    if args.json {
        output::print_json(&result)?;
    } else {
        output::print(&(text(&result) + &drawn))?;
    }
    Ok(Answer::Yes)
}

/// One log.
struct Data {
    path: String,
    start: f64,
    rate: f64,
    q: Vec<f64>,
    v: Vec<f64>,
    momentum: Vec<f64>,
    /// Which samples count.
    sound: Vec<bool>,
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
        let nq = mechanism.nq();
        let q = match args.positions {
            PositionChoice::Log => prepared.q,
            rule => {
                let rule = if rule == PositionChoice::Euler { RateRule::Euler } else { RateRule::Trapezoid };
                integrate_rates(mechanism, &prepared.t, &prepared.v, &prepared.q[..nq], rule)?
            }
        };
        let mut momentum = vec![0.0; 6 * prepared.t.len()];
        for (row, extra) in momentum.chunks_exact_mut(6).zip(prepared.extra.chunks_exact(given.len())) {
            given.iter().zip(extra).for_each(|(&k, x)| row[k] = *x);
        }
        Ok(Self {
            path: path.to_owned(),
            start: prepared.t.first().copied().unwrap_or(0.0),
            rate: prepared.rate_hz,
            q,
            v: prepared.v,
            momentum,
            sound: prepared.sound,
        })
    }

    fn len(&self) -> usize {
        self.sound.len()
    }

    /// The sample before which a part of those that count lies.
    fn cut(&self, part: f64) -> usize {
        let mut counting = (0..self.len()).filter(|&i| self.sound[i]);
        let before = (part * counting.clone().count() as f64).round() as usize;
        counting.nth(before).unwrap_or(self.len())
    }

    /// Given and predicted momenta of some samples.
    fn track(
        &self,
        estimated: &Mechanism,
        range: Range<usize>,
        part: &'static str,
        residuals: &[MomentumResidual],
    ) -> Result<Track> {
        let (nq, nv) = (estimated.nq(), estimated.nv());
        let mut workspace = Workspace::new(estimated);
        let mut predicted = Vec::with_capacity(6 * range.len());
        for i in range.clone() {
            let (q, v) = (&self.q[i * nq..(i + 1) * nq], &self.v[i * nv..(i + 1) * nv]);
            let found = momentum(estimated, &mut workspace, q, v, Frame::Base)?;
            predicted.extend(found.linear.iter().chain(&found.angular));
        }
        Ok(Track {
            log: self.path.clone(),
            part,
            quantity: "momentum",
            start: self.start + range.start as f64 / self.rate,
            rate: self.rate,
            told: residuals.iter().map(Told::from).collect(),
            units: [["N s"; 3], ["N m s"; 3]].concat(),
            measured: self.momentum[6 * range.start..6 * range.end].to_vec(),
            predicted,
            counts: self.sound[range.clone()].to_vec(),
            q: self.q[range.start * nq..range.end * nq].to_vec(),
        })
    }
}

/// Samples of all logs that count, one after the other.
#[derive(Default)]
struct Stack {
    q: Vec<f64>,
    v: Vec<f64>,
    momentum: Vec<f64>,
}

impl Stack {
    fn len(&self) -> usize {
        self.momentum.len() / 6
    }

    fn append(&mut self, log: &Data, range: Range<usize>, mechanism: &Mechanism) {
        let (nq, nv) = (mechanism.nq(), mechanism.nv());
        for i in range.filter(|&i| log.sound[i]) {
            self.q.extend_from_slice(&log.q[i * nq..(i + 1) * nq]);
            self.v.extend_from_slice(&log.v[i * nv..(i + 1) * nv]);
            self.momentum.extend_from_slice(&log.momentum[6 * i..6 * i + 6]);
        }
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
    out += &bodies(&result.bodies);
    out += "\n";
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
