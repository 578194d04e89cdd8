//! `inertial bench`: how fast is each kernel on this machine, for this model?

use std::hint::black_box;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use inertial::dynamics::{self, ClosedMechanism, InverseDynamics, Samples};
use inertial::estimation::{
    self, Consistency, ConsistentFit, Equations, JointTerms, LeastSquares, Measurements, Prior, Solver,
    Weighting,
};
use inertial::excitation::{Columns, Criterion, Evaluator, States};
use inertial::identifiability::certificate::Question;
use inertial::identifiability::closed::Loops;
use inertial::identifiability::drng::{Graph, null_vectors};
use inertial::identifiability::{AnalyzeOptions, Experiment, Regime, Rpna, Topology, analyze};
use inertial::linalg::First;
use inertial::mechanism::{Base, DEFAULT_SNAP, ExactAssembly, ExactGeometry, Mechanism};
use inertial_app::Model;
use inertial_app::model::Summary;
use inertial_report::{simulation, text};
use serde::Serialize;

use crate::options::ModelArgs;
use crate::output::Answer;
use crate::shell::Shell;

const HELP: &str = "\
Times are per call, on one thread, over random states (always the same). The minimum is what the
machine can do; a median far above it means that the machine was busy. Kinematics, rnea and the
regressors are those of the spanning tree; with loops, the mass matrix and forward dynamics are
those of the independent coordinates. lmi and manifold are the solvers of the consistent
estimator, on the summary of a simulated log with friction and offsets.

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
    options: ModelArgs,
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

pub fn run(args: &Args, shell: &Shell) -> Result<Answer> {
    let model = Model::load(&args.model, &args.options.options(), shell.disk())?;
    let closed = ClosedMechanism::new(&model.mechanism).with_context(|| model.label.clone())?;
    let kernels = kernels(&closed, shell).with_context(|| model.label.clone())?;
    let result = Output { schema: "inertial/bench/1", model: Summary::new(&closed), kernels };
    if args.json {
        shell.print_json(&result)?;
    } else {
        let rows = result.kernels.iter();
        let rows =
            rows.map(|k| [k.name.to_owned(), format!("{:.3}", k.min_us), format!("{:.3}", k.median_us)]);
        let table = text::table(shell.style(), ["kernel", "minimum (µs)", "median (µs)"], 2, rows);
        shell.print(&format!("{}\n\n{table}", simulation::model(&result.model)))?;
    }
    Ok(Answer::Yes)
}

/// Position, velocity, acceleration.
struct State {
    q: Vec<f64>,
    v: Vec<f64>,
    a: Vec<f64>,
}

fn kernels(closed: &ClosedMechanism<'_>, shell: &Shell) -> Result<Vec<Timing>> {
    let m = closed.mechanism();
    let states = states(closed, 64);
    let inverse = InverseDynamics::new(m);
    let (mut scratch, mut workspace) = (inverse.scratch(), closed.workspace());
    let (n, dof, np) = (m.nv(), closed.dof(), m.parameter_count());
    let (mut row, mut square) = (vec![0.0; n], vec![0.0; dof * dof]);
    let (mut gravity, mut energy) = (vec![0.0; n * np], vec![0.0; np]);
    let mut timings = vec![
        measure("kinematics", &states, |s| {
            dynamics::body_accelerations(m, &mut workspace.tree, &s.q, &s.v, &s.a)?;
            black_box(workspace.tree.poses());
            Ok(())
        })?,
        measure("rnea", &states, |s| {
            Ok(inverse.rnea(&mut scratch, &s.q, &s.v, &s.a, black_box(&mut row))?)
        })?,
        measure("regressor", &states, |s| {
            black_box(inverse.torque_regressor(&mut scratch, &s.q, &s.v, &s.a)?);
            Ok(())
        })?,
        measure("gravity-regressor", &states, |s| {
            Ok(dynamics::gravity_regressor(m, &mut workspace.tree, &s.q, black_box(&mut gravity))?)
        })?,
        measure("energy-regressor", &states, |s| {
            let out = black_box(&mut energy);
            Ok(dynamics::kinetic_energy_regressor(m, &mut workspace.tree, &s.q, &s.v, out)?)
        })?,
        measure("mass-matrix", &states, |s| {
            Ok(closed.mass_matrix(&mut workspace, &s.q, black_box(&mut square))?)
        })?,
    ];
    timings.insert(3, batch(&inverse, &states)?);
    if m.loops().is_empty() {
        timings.insert(4, criterion(m, &inverse, &states)?);
    }
    if !m.loops().is_empty() {
        timings.push(measure("velocity-map", &states, |s| {
            black_box(closed.velocity_map(&mut workspace, &s.q)?);
            Ok(())
        })?);
    }
    let forward = measure("forward-dynamics", &states, |s| {
        // Any numbers serve as forces.
        let (v, tau, a) = (&s.v[..dof], &s.a[..dof], &mut row[..dof]);
        Ok(closed.forward_dynamics(&mut workspace, &s.q, v, tau, black_box(a))?)
    });
    match forward {
        Ok(timing) => timings.push(timing),
        // A model without masses has every kernel but this one.
        Err(error) => shell.say(&format!("forward-dynamics is left out: {error:#}")),
    }
    timings.extend(identifiability(closed, &states)?);
    if m.loops().is_empty() {
        match estimation(&inverse, m) {
            Ok(more) => timings.extend(more),
            // A model without joints or masses has nothing to estimate.
            Err(error) => shell.say(&format!("lmi and manifold are left out: {error:#}")),
        }
    }
    Ok(timings)
}

/// Estimates of bodies that can exist, with friction and offsets, from the summary of a simulated log with noise: what
/// `identify` does after reading.
fn estimation(inverse: &InverseDynamics, m: &Mechanism) -> Result<Vec<Timing>> {
    const SAMPLES: usize = 500;
    let closed = ClosedMechanism::new(m)?;
    let states = states(&closed, SAMPLES);
    let terms = JointTerms { viscous: true, coulomb: true, offset: true, rotor_inertia: false };
    let equations = Equations::new(m, terms, DEFAULT_SNAP)?;
    let stacked =
        |part: fn(&State) -> &[f64]| -> Vec<f64> { states.iter().flat_map(part).copied().collect() };
    let (q, v, a) = (stacked(|s| &s.q), stacked(|s| &s.v), stacked(|s| &s.a));
    let (mut tau, mut scratch) = (vec![0.0; v.len()], inverse.scratch());
    for (state, tau) in states.iter().zip(tau.chunks_mut(m.nv().max(1))) {
        inverse.rnea(&mut scratch, &state.q, &state.v, &state.a, tau)?;
        for (k, (tau, v)) in tau.iter_mut().zip(&state.v).enumerate() {
            // Friction, and noise of a few percent from digits that mean nothing.
            *tau += 0.1 * v + 0.2 * v.signum() + 0.1 * (1e6 * v + k as f64).sin() * (1.0 + tau.abs());
        }
    }
    let samples = Samples::new(inverse, SAMPLES, &q, &v, &a)?;
    let summary = estimation::Summary::new(&equations, &Measurements::new(samples, &tau))?;
    let squares = LeastSquares::new(&equations, &summary, Weighting::Weighted)?;
    let prior = Prior::new(m)?;
    let of = |name, solver| {
        let wanted = Consistency { solver, ..Consistency::new(&prior, 1.0) };
        measure(name, &states, |_| {
            black_box(ConsistentFit::new(&equations, &summary, &squares, &wanted)?);
            Ok(())
        })
    };
    Ok(vec![of("lmi", Solver::Barrier)?, of("manifold", Solver::Manifold)?])
}

/// Packed torque regressors of many samples, per sample.
fn batch(inverse: &InverseDynamics, states: &[State]) -> Result<Timing> {
    const SAMPLES: usize = 10_000;
    let stacked = |part: fn(&State) -> &[f64]| -> Vec<f64> {
        states.iter().cycle().take(SAMPLES).flat_map(part).copied().collect()
    };
    let (q, v, a) = (stacked(|s| &s.q), stacked(|s| &s.v), stacked(|s| &s.a));
    let samples = Samples::new(inverse, SAMPLES, &q, &v, &a)?;
    let mut scratch = inverse.scratch();
    let whole = measure("regressor-batch", states, |_| {
        Ok(inverse.packed_regressors(&mut scratch, &samples, |chunk| {
            black_box(chunk.groups().last());
        })?)
    })?;
    let per_sample = |us: f64| us / SAMPLES as f64;
    Ok(Timing { min_us: per_sample(whole.min_us), median_us: per_sample(whole.median_us), ..whole })
}

/// The D-criterion of a motion of many samples with its gradient, as a design needs it in every step.
fn criterion(m: &Mechanism, inverse: &InverseDynamics, states: &[State]) -> Result<Timing> {
    const SAMPLES: usize = 2000;
    let stacked = |part: fn(&State) -> &[f64]| -> Vec<f64> {
        states.iter().cycle().take(SAMPLES).flat_map(part).copied().collect()
    };
    let motion = States { count: SAMPLES, q: stacked(|s| &s.q), v: stacked(|s| &s.v), a: stacked(|s| &s.a) };
    let regrouping = analyze(m, &AnalyzeOptions::default())?.regrouping.listed()?;
    let columns = Columns::new(m, inverse, &regrouping, &[], &vec![1.0; m.nv()])?;
    let (mut evaluator, scales) = (Evaluator::new(inverse, &columns), columns.scales());
    let zeros = vec![0.0; SAMPLES * m.nv()];
    let mut gradient = [zeros.clone(), zeros.clone(), zeros];
    measure("criterion-2000", states, |_| {
        let information = evaluator.information(&motion)?;
        let value = Criterion::D.evaluate(&information, &scales, (1.0, 1))?;
        gradient.iter_mut().for_each(|g| g.fill(0.0));
        evaluator.add_gradient(&motion, &value.slope, &mut gradient)?;
        black_box(&gradient);
        Ok(())
    })
}

/// What can be known: the recursion (trees), null vectors with reasons, the exact rank, the whole answer.
fn identifiability(closed: &ClosedMechanism<'_>, states: &[State]) -> Result<Vec<Timing>> {
    let m = closed.mechanism();
    let geometry = ExactGeometry::new(m, DEFAULT_SNAP);
    let experiment = Experiment::complete(m.base() == Base::Floating, Regime::Full);
    let order = (0..m.parameter_count()).collect();
    let question = Question { mechanism: m, experiment: &experiment, order, seed: 1 };
    let mut timings = Vec::new();
    let tree = m.loops().is_empty();
    if let (true, Ok(topology)) = (tree, Topology::new(&geometry.to::<First>())) {
        let numbers = geometry.to::<f64>();
        timings.push(measure("rpna", states, |_| {
            black_box(Rpna::new(&numbers, &topology, Regime::Full));
            Ok(())
        })?);
    }
    let assembled = ExactAssembly::new(m, &geometry, closed.assembled(), DEFAULT_SNAP).to::<f64>();
    timings.push(measure("drng", states, |_| {
        black_box(null_vectors(&Graph::new(&assembled)));
        Ok(())
    })?);
    timings.push(measure("certificate", states, |_| {
        if tree {
            black_box(question.sampled_rank::<First>(&geometry));
        } else {
            let loops = Loops::new(&question, &geometry, DEFAULT_SNAP)?;
            black_box(question.rank_with_loops(&loops)?);
        }
        Ok(())
    })?);
    timings.push(measure("base-parameters", states, |_| {
        black_box(analyze(m, &AnalyzeOptions::default())?);
        Ok(())
    })?);
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

/// States at random, always the same: a tree within an eighth of a turn of its assembly, loops at theirs.
fn states(closed: &ClosedMechanism<'_>, count: usize) -> Vec<State> {
    let m = closed.mechanism();
    let mut seed = 1_u64;
    let mut random = || {
        // Knuth's linear congruential generator; the upper bits are good enough to spread states.
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 11) as f64 / (1_u64 << 53) as f64 * 2.0 - 1.0
    };
    (0..count)
        .map(|_| {
            let mut draw = |scale: f64| -> Vec<f64> { (0..m.nv()).map(|_| scale * random()).collect() };
            let mut q = closed.assembled().to_vec();
            if m.loops().is_empty() {
                m.integrate(&mut q, &draw(std::f64::consts::FRAC_PI_4));
            }
            State { q, v: draw(1.0), a: draw(1.0) }
        })
        .collect()
}
