//! Speed of each kernel on this machine, for a given model.

use std::hint::black_box;
use std::time::{Duration, Instant};

use inertial::dynamics::{self, ClosedMechanism, InverseDynamics, Samples};
use inertial::estimation::{
    self, Consistency, ConsistentFit, Equations, JointTerms, LeastSquares, Measurements, Prior, Solver,
    Weighting,
};
use inertial::excitation::{Columns, Criterion, Evaluator, States};
use inertial::identifiability::certificate::RankProblem;
use inertial::identifiability::drng::numeric_null_vectors;
use inertial::identifiability::loops::Loops;
use inertial::identifiability::{AnalyzeOptions, Experiment, Regime, Rpna, Topology, analyze};
use inertial::linalg::First;
use inertial::mechanism::{Base, DEFAULT_SNAP, ExactAssembly, ExactGeometry, Mechanism};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::Summary;
use crate::{Context, Located, Model, Note, Result, bail, ensure_option};

/// Schema of the outcome.
const SCHEMA: &str = "inertial/bench/1";

/// Largest number of calls of a kernel that can be requested.
const MOST_CALLS: u64 = 1_000_000_000;

/// Options of a measurement.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Options {
    /// Name of the only kernel to measure.
    pub kernel: Option<String>,
    /// Number of calls of each kernel; by default as many as take about 0.2 s.
    pub calls: Option<u64>,
}

inertial::with_changes!(Options);

impl Options {
    /// Checks the options.
    pub fn check(&self) -> Result<()> {
        ensure_option!(
            self.calls.is_none_or(|calls| (1..=MOST_CALLS).contains(&calls)),
            "calls",
            "expected a number from 1 to {MOST_CALLS}"
        );
        Ok(())
    }
}

/// Times of the kernels.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Outcome {
    /// Schema of the object.
    #[schemars(extend("const" = SCHEMA))]
    pub schema: &'static str,
    /// Properties of the model.
    pub model: Summary,
    /// Times of each kernel, on one thread and over random states.
    pub kernels: Vec<Kernel>,
}

/// Time of a kernel.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Kernel {
    /// Name of the kernel.
    pub name: &'static str,
    /// Shortest time of a call (µs).
    #[schemars(range(min = 0))]
    pub min_us: f64,
    /// Median time of a call (µs).
    #[schemars(range(min = 0))]
    pub median_us: f64,
}

/// Measures the kernels of a model. Kernels that the model does not support are left out, with a note.
pub fn run(model: &Model, options: &Options, context: &Context<'_>) -> Result<Outcome> {
    options.check()?;
    let closed = ClosedMechanism::new(&model.mechanism).at(&model.label)?;
    model.notes_with_loops(&closed).iter().for_each(|note| context.note(note));
    let mut bench = Bench {
        only: options.kernel.as_deref(),
        calls: options.calls,
        known: Vec::new(),
        kernels: Vec::new(),
    };
    bench.run(&closed, context).at(&model.label)?;
    if let Some(name) = &options.kernel
        && bench.kernels.is_empty()
    {
        bail!("{name}: no kernel of this model; its kernels are {}", bench.known.join(", "));
    }
    Ok(Outcome { schema: SCHEMA, model: Summary::new(&closed), kernels: bench.kernels })
}

/// State of a sample: position, velocity, acceleration.
struct Sample {
    q: Vec<f64>,
    v: Vec<f64>,
    a: Vec<f64>,
}

/// Timings of kernels.
struct Bench<'a> {
    /// Name of the only kernel to measure.
    only: Option<&'a str>,
    /// Number of calls of each kernel.
    calls: Option<u64>,
    /// Names of all kernels of the model.
    known: Vec<&'static str>,
    kernels: Vec<Kernel>,
}

impl Bench<'_> {
    fn run(&mut self, closed: &ClosedMechanism<'_>, context: &Context<'_>) -> Result<()> {
        let m = closed.mechanism();
        let tree = m.loops().is_empty();
        let states = states(closed, 64);
        let inverse = InverseDynamics::new(m);
        let (mut scratch, mut workspace) = (inverse.scratch(), closed.workspace());
        let (n, dof, np) = (m.nv(), closed.dof(), m.parameter_count());
        let (mut row, mut square) = (vec![0.0; n], vec![0.0; dof * dof]);
        let (mut gravity, mut energy) = (vec![0.0; n * np], vec![0.0; np]);
        self.measure("kinematics", &states, |s| {
            dynamics::body_accelerations(m, &mut workspace.tree, &s.q, &s.v, &s.a)?;
            black_box(workspace.tree.poses());
            Ok(())
        })?;
        self.measure("rnea", &states, |s| {
            Ok(inverse.rnea(&mut scratch, &s.q, &s.v, &s.a, black_box(&mut row))?)
        })?;
        self.measure("regressor", &states, |s| {
            black_box(inverse.torque_regressor(&mut scratch, &s.q, &s.v, &s.a)?);
            Ok(())
        })?;
        self.batch(&inverse, &states)?;
        if tree {
            self.criterion(m, &inverse, &states)?;
        }
        self.measure("gravity-regressor", &states, |s| {
            Ok(dynamics::gravity_regressor(m, &mut workspace.tree, &s.q, black_box(&mut gravity))?)
        })?;
        self.measure("energy-regressor", &states, |s| {
            let out = black_box(&mut energy);
            Ok(dynamics::kinetic_energy_regressor(m, &mut workspace.tree, &s.q, &s.v, out)?)
        })?;
        self.measure("mass-matrix", &states, |s| {
            Ok(closed.mass_matrix(&mut workspace, &s.q, black_box(&mut square))?)
        })?;
        if !tree {
            self.measure("velocity-map", &states, |s| {
                black_box(closed.velocity_map(&mut workspace, &s.q)?);
                Ok(())
            })?;
        }
        let forward = self.measure("forward-dynamics", &states, |s| {
            // Arbitrary numbers serve as forces.
            let (v, tau, a) = (&s.v[..dof], &s.a[..dof], &mut row[..dof]);
            Ok(closed.forward_dynamics(&mut workspace, &s.q, v, tau, black_box(a))?)
        });
        // A model without masses supports all other kernels.
        if let Err(error) = forward {
            context.note(&Note::LeftOut { kernels: "forward-dynamics", reason: error.to_string() });
        }
        self.identifiability(closed, &states)?;
        // A model without joints or masses has no unknowns to estimate.
        if let Err(error) = if tree { self.estimation(&inverse, m) } else { Ok(()) } {
            context.note(&Note::LeftOut { kernels: "lmi, manifold", reason: error.to_string() });
        }
        Ok(())
    }

    /// Measures physically consistent estimates with friction and offsets from the summary of a simulated noisy log,
    /// which is the work of `identify` after reading.
    fn estimation(&mut self, inverse: &InverseDynamics, m: &Mechanism) -> Result<()> {
        const SAMPLES: usize = 500;
        if self.skips(&["lmi", "manifold"]) {
            return Ok(());
        }
        let closed = ClosedMechanism::new(m)?;
        let states = states(&closed, SAMPLES);
        let terms = JointTerms::friction().with(|t| t.offset = true);
        let equations = Equations::new(m, terms, DEFAULT_SNAP)?;
        let (q, v, a) = stacked(&states, SAMPLES);
        let (mut tau, mut scratch) = (vec![0.0; v.len()], inverse.scratch());
        for (state, tau) in states.iter().zip(tau.chunks_mut(m.nv().max(1))) {
            inverse.rnea(&mut scratch, &state.q, &state.v, &state.a, tau)?;
            for (k, (tau, v)) in tau.iter_mut().zip(&state.v).enumerate() {
                // Friction, and pseudo-random noise of a few percent.
                *tau += 0.1 * v + 0.2 * v.signum() + 0.1 * (1e6 * v + k as f64).sin() * (1.0 + tau.abs());
            }
        }
        let samples = Samples::new(inverse, SAMPLES, &q, &v, &a)?;
        let summary = estimation::Summary::new(&equations, &Measurements::new(samples, &tau))?;
        let squares = LeastSquares::new(&equations, &summary, Weighting::Weighted)?;
        let prior = Prior::new(m)?;
        for (name, solver) in [("lmi", Solver::Barrier), ("manifold", Solver::Manifold)] {
            let wanted = Consistency::new(&prior, 1.0).with(|c| c.solver = solver);
            self.measure(name, &states, |_| {
                black_box(ConsistentFit::new(&equations, &summary, &squares, &wanted)?);
                Ok(())
            })?;
        }
        Ok(())
    }

    /// Measures packed torque regressors of many samples, per sample.
    fn batch(&mut self, inverse: &InverseDynamics, states: &[Sample]) -> Result<()> {
        const SAMPLES: usize = 10_000;
        if self.skips(&["regressor-batch"]) {
            return Ok(());
        }
        let (q, v, a) = stacked(states, SAMPLES);
        let samples = Samples::new(inverse, SAMPLES, &q, &v, &a)?;
        let mut scratch = inverse.scratch();
        self.measure_parts("regressor-batch", SAMPLES, states, |_| {
            Ok(inverse.packed_regressors(&mut scratch, &samples, |chunk| {
                black_box(chunk.groups().last());
            })?)
        })
    }

    /// Measures the D-criterion and its gradient for a motion of many samples, as in every step of a design.
    fn criterion(&mut self, m: &Mechanism, inverse: &InverseDynamics, states: &[Sample]) -> Result<()> {
        const SAMPLES: usize = 2000;
        if self.skips(&["criterion-2000"]) {
            return Ok(());
        }
        let (q, v, a) = stacked(states, SAMPLES);
        let motion = States { count: SAMPLES, q, v, a };
        let regrouping = analyze(m, &AnalyzeOptions::default())?.regrouping.listed()?;
        let columns = Columns::new(m, inverse, &regrouping, &[], &vec![1.0; m.nv()])?;
        let (mut evaluator, scales) = (Evaluator::new(inverse, &columns), columns.scales());
        let zeros = vec![0.0; SAMPLES * m.nv()];
        let mut gradient = [zeros.clone(), zeros.clone(), zeros];
        self.measure("criterion-2000", states, |_| {
            let information = evaluator.information(&motion)?;
            let value = Criterion::D.evaluate(&information, &scales, (1.0, 1))?;
            gradient.iter_mut().for_each(|g| g.fill(0.0));
            evaluator.add_gradient(&motion, &value.slope, &mut gradient)?;
            black_box(&gradient);
            Ok(())
        })
    }

    /// Measures the identifiability analysis: the recursion (trees only), the null vectors with their reasons, the exact
    /// rank, and the whole analysis.
    fn identifiability(&mut self, closed: &ClosedMechanism<'_>, states: &[Sample]) -> Result<()> {
        let m = closed.mechanism();
        let tree = m.loops().is_empty();
        let names = ["rpna", "drng", "certificate", "base-parameters"];
        if self.skips(&names[usize::from(!tree)..]) {
            return Ok(());
        }
        let geometry = ExactGeometry::new(m, DEFAULT_SNAP);
        let experiment = Experiment::complete(m.base() == Base::Floating, Regime::Full);
        let order = (0..m.parameter_count()).collect();
        let problem = RankProblem { mechanism: m, experiment: &experiment, order, seed: 1, literal: false };
        if let (true, Ok(topology)) = (tree, Topology::new(&geometry.to::<First>())) {
            let numbers = geometry.to::<f64>();
            self.measure("rpna", states, |_| {
                black_box(Rpna::new(&numbers, &topology, Regime::Full));
                Ok(())
            })?;
        }
        let assembled = ExactAssembly::new(m, &geometry, closed.assembled(), DEFAULT_SNAP).to::<f64>();
        self.measure("drng", states, |_| {
            black_box(numeric_null_vectors(&assembled));
            Ok(())
        })?;
        self.measure("certificate", states, |_| {
            if tree {
                black_box(problem.sampled_rank::<First>(&geometry));
            } else {
                let loops = Loops::new(&problem, &geometry, DEFAULT_SNAP)?;
                black_box(problem.rank_with_loops(&loops)?);
            }
            Ok(())
        })?;
        self.measure("base-parameters", states, |_| {
            black_box(analyze(m, &AnalyzeOptions::default())?);
            Ok(())
        })
    }

    /// Returns whether none of the given kernels is measured, so that their preparation can be skipped; their names are
    /// recorded as known.
    fn skips(&mut self, names: &[&'static str]) -> bool {
        let skips = self.only.is_some_and(|only| !names.contains(&only));
        if skips {
            self.known.extend(names);
        }
        skips
    }

    /// Measures the time of a call.
    fn measure(
        &mut self,
        name: &'static str,
        states: &[Sample],
        kernel: impl FnMut(&Sample) -> Result<()>,
    ) -> Result<()> {
        self.measure_parts(name, 1, states, kernel)
    }

    /// Measures the time of each of the equal parts of a call, in batches that are long enough for the resolution of the clock.
    fn measure_parts(
        &mut self,
        name: &'static str,
        parts: usize,
        states: &[Sample],
        mut kernel: impl FnMut(&Sample) -> Result<()>,
    ) -> Result<()> {
        const BATCH: Duration = Duration::from_micros(100);
        const TOTAL: Duration = Duration::from_millis(200);
        self.known.push(name);
        if self.only.is_some_and(|only| only != name) {
            return Ok(());
        }
        let mut batch = |calls: u64, first: u64| -> Result<Duration> {
            let start = Instant::now();
            for state in states.iter().cycle().skip(first as usize % states.len()).take(calls as usize) {
                kernel(state)?;
            }
            Ok(start.elapsed())
        };
        let per_part = |time: Duration, calls: u64| time.as_secs_f64() * 1e6 / (calls as f64 * parts as f64);
        let mut times = Vec::new();
        if let Some(calls) = self.calls {
            times.push(per_part(batch(calls, 0)?, calls));
        } else {
            let mut calls = 1;
            while batch(calls, 0)? < BATCH {
                calls *= 2;
            }
            let start = Instant::now();
            while start.elapsed() < TOTAL || times.len() < 5 {
                let time = batch(calls, times.len() as u64 * calls)?;
                times.push(per_part(time, calls));
            }
        }
        times.sort_by(f64::total_cmp);
        self.kernels.push(Kernel { name, min_us: times[0], median_us: times[times.len() / 2] });
        Ok(())
    }
}

/// Stacks positions, velocities and accelerations of `count` samples; states are repeated if there are fewer.
fn stacked(states: &[Sample], count: usize) -> (Vec<f64>, Vec<f64>, Vec<f64>) {
    let all = |part: fn(&Sample) -> &[f64]| -> Vec<f64> {
        states.iter().cycle().take(count).flat_map(part).copied().collect()
    };
    (all(|s| &s.q), all(|s| &s.v), all(|s| &s.a))
}

/// Returns reproducible random states. Trees are within an eighth of a turn of the assembly configuration; mechanisms
/// with loops are in it.
fn states(closed: &ClosedMechanism<'_>, count: usize) -> Vec<Sample> {
    let m = closed.mechanism();
    let mut seed = 1_u64;
    let mut random = || {
        // Knuth's linear congruential generator; the upper bits are sufficiently random for this purpose.
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
            Sample { q, v: draw(1.0), a: draw(1.0) }
        })
        .collect()
}
