//! `inertial bench`: how fast is each kernel on this machine, for this model?

use std::hint::black_box;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use inertial::dynamics::{self, Workspace};
use inertial::mechanism::Mechanism;
use serde::Serialize;

use crate::model::{Model, Summary};
use crate::options::ModelOptions;
use crate::output::{self, Answer};

const HELP: &str = "\
Times are per call, on one thread, over states drawn at random (always the same). The least time is what the machine
can do; a median far above it means that the machine was busy.

Examples:
  inertial bench robot.urdf --base floating
  inertial bench builtin:arm7 --json";

/// How fast is each kernel on this machine, for this model?
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// Model file, '-' for standard input, or builtin:NAME
    model: String,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    options: ModelOptions,
}

#[derive(Serialize)]
struct Output {
    schema: &'static str,
    model: Summary,
    kernels: Vec<Timing>,
}

#[derive(Serialize)]
struct Timing {
    name: &'static str,
    min_us: f64,
    median_us: f64,
}

pub fn run(args: &Args) -> Result<Answer> {
    let model = Model::load(&args.model)?;
    let mechanism = model.build(&args.options.build_options())?;
    let kernels = kernels(&mechanism).with_context(|| model.label.clone())?;
    let result = Output { schema: "inertial/bench/1", model: Summary::new(&mechanism), kernels };
    if args.json {
        output::print_json(&result)?;
    } else {
        let rows = result.kernels.iter();
        let rows =
            rows.map(|k| [k.name.to_owned(), format!("{:.3}", k.min_us), format!("{:.3}", k.median_us)]);
        let table = output::table(["kernel", "least (µs)", "median (µs)"], 2, rows);
        output::print(&format!("{}\n\n{table}", result.model))?;
    }
    Ok(Answer::Yes)
}

/// Position, velocity, acceleration.
struct State {
    q: Vec<f64>,
    v: Vec<f64>,
    a: Vec<f64>,
}

fn kernels(m: &Mechanism) -> Result<Vec<Timing>> {
    let states = states(m, 64);
    let workspace = &mut Workspace::new(m);
    let (n, np) = (m.nv(), m.parameter_count());
    let (mut row, mut square) = (vec![0.0; n], vec![0.0; n * n]);
    let mut regressor = vec![0.0; n * np];
    let mut energy = vec![0.0; np];
    let mut timings = vec![
        measure("kinematics", &states, |s| {
            dynamics::body_accelerations(m, workspace, &s.q, &s.v, &s.a)?;
            black_box(workspace.poses());
            Ok(())
        })?,
        measure("mass-matrix", &states, |s| {
            Ok(dynamics::mass_matrix(m, workspace, &s.q, black_box(&mut square))?)
        })?,
        measure("bias-forces", &states, |s| {
            Ok(dynamics::bias_forces(m, workspace, &s.q, &s.v, black_box(&mut row))?)
        })?,
        measure("gravity-regressor", &states, |s| {
            Ok(dynamics::gravity_regressor(m, workspace, &s.q, black_box(&mut regressor))?)
        })?,
        measure("energy-regressor", &states, |s| {
            Ok(dynamics::kinetic_energy_regressor(m, workspace, &s.q, &s.v, black_box(&mut energy))?)
        })?,
    ];
    let forward = measure("forward-dynamics", &states, |s| {
        // Any numbers serve as forces.
        Ok(dynamics::forward_dynamics(m, workspace, &s.q, &s.v, &s.a, black_box(&mut row))?)
    });
    match forward {
        Ok(timing) => timings.push(timing),
        // A model without masses has every kernel but this one.
        Err(error) => output::say(&format!("forward-dynamics is left out: {error:#}")),
    }
    Ok(timings)
}

/// Time per call: batches long enough for the clock, for about a fifth of a second.
fn measure(
    name: &'static str,
    states: &[State],
    mut kernel: impl FnMut(&State) -> Result<()>,
) -> Result<Timing> {
    const BATCH: Duration = Duration::from_micros(100);
    const TOTAL: Duration = Duration::from_millis(200);
    let mut batch = |calls: usize, first: usize| -> Result<Duration> {
        let start = Instant::now();
        for k in 0..calls {
            kernel(&states[(first + k) % states.len()])?;
        }
        Ok(start.elapsed())
    };
    let mut calls = 1;
    while batch(calls, 0)? < BATCH {
        calls *= 2;
    }
    let mut times = Vec::new();
    let start = Instant::now();
    while start.elapsed() < TOTAL || times.len() < 5 {
        let time = batch(calls, times.len() * calls)?;
        times.push(time.as_secs_f64() * 1e6 / calls as f64);
    }
    times.sort_by(f64::total_cmp);
    Ok(Timing { name, min_us: times[0], median_us: times[times.len() / 2] })
}

/// States at random within an eighth of a turn of the assembled configuration, always the same.
fn states(m: &Mechanism, count: usize) -> Vec<State> {
    let mut seed = 1_u64;
    let mut random = || {
        // Knuth's linear congruential generator; the upper bits are good enough to spread states.
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 11) as f64 / (1_u64 << 53) as f64 * 2.0 - 1.0
    };
    (0..count)
        .map(|_| {
            let mut draw = |scale: f64| -> Vec<f64> { (0..m.nv()).map(|_| scale * random()).collect() };
            let mut q = m.assembly().to_vec();
            m.integrate(&mut q, &draw(std::f64::consts::FRAC_PI_4));
            State { q, v: draw(1.0), a: draw(1.0) }
        })
        .collect()
}
