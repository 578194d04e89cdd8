//! Comparison of our dynamics and regressors with Pinocchio's, alternating in one process on the same robots.
//!
//! `run.py` builds the C++ library and runs this program. Each row prints Pinocchio's shortest time and two ratios of
//! our time to it: the ratio of the minima (cost of the code) and the median over rounds (includes the machine's load).

mod pinocchio;

use std::hint::black_box;
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use inertial::dynamics::{
    Arithmetic, InverseDynamics, Samples, Workspace, forward_dynamics, forward_kinematics, mass_matrix,
};
use inertial::mechanism::{Base, BuildOptions, JointSpec, JointType, Mechanism, MechanismBuilder, read};
use inertial::spatial::{Inertia, Pose};
use nalgebra::{Matrix3, Vector3};

use pinocchio::{Pinocchio, Robot};

const ROUNDS: usize = 200;

/// Size of the stacked matrices in bytes: twice the second-level cache of large processors.
const STACK_BYTES: usize = 4 << 20;

/// Random states of a robot.
struct States {
    count: usize,
    q: Vec<f64>,
    v: Vec<f64>,
    a: Vec<f64>,
}

/// Returns a uniform number in -1..1; the sequence is the same in every run.
fn uniform(state: &mut u64) -> f64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*state >> 11) as f64 / (1u64 << 52) as f64 - 1.0
}

impl States {
    fn new(mechanism: &Mechanism, count: usize) -> Self {
        let mut seed = 7;
        let mut draw = |n: usize, size: f64| (0..n).map(|_| size * uniform(&mut seed)).collect::<Vec<_>>();
        let (mut q, v, a) = (
            draw(count * mechanism.nq(), 3.0),
            draw(count * mechanism.nv(), 2.0),
            draw(count * mechanism.nv(), 4.0),
        );
        for q in q.chunks_exact_mut(mechanism.nq()) {
            for joint in mechanism.joints().iter().filter(|j| j.joint_type.nq() == 7) {
                let quaternion = &mut q[joint.q_range()][3..];
                let norm = quaternion.iter().map(|x| x * x).sum::<f64>().sqrt();
                for x in quaternion {
                    *x /= norm;
                }
            }
        }
        Self { count, q, v, a }
    }

    fn get(&self, k: usize, nq: usize, nv: usize) -> (&[f64], &[f64], &[f64]) {
        let range = k * nv..(k + 1) * nv;
        (&self.q[k * nq..(k + 1) * nq], &self.v[range.clone()], &self.a[range])
    }
}

/// Times the functions in turn and prints the ratios of the later ones to the first.
fn compare(what: &str, samples: usize, functions: &mut [&mut dyn FnMut()]) {
    let mut times = vec![Vec::with_capacity(ROUNDS); functions.len()];
    for round in 0..ROUNDS + 5 {
        for (function, times) in functions.iter_mut().zip(&mut times) {
            let start = Instant::now();
            function();
            let time = start.elapsed().as_secs_f64() / samples as f64 * 1e6;
            if round >= 5 {
                times.push(time);
            }
        }
    }
    let min = |t: &[f64]| t.iter().copied().fold(f64::INFINITY, f64::min);
    let theirs = min(&times[0]);
    print!("  {what:<28} {theirs:>9.3} µs");
    for ours in &times[1..] {
        let mut ratios: Vec<f64> = ours.iter().zip(&times[0]).map(|(a, b)| a / b).collect();
        ratios.sort_by(f64::total_cmp);
        print!("   {:>5.2} {:>5.2}", min(ours) / theirs, ratios[ratios.len() / 2]);
    }
    println!();
}

fn robot(name: &str, mechanism: &Mechanism, pinocchio: &Pinocchio) -> Result<(), String> {
    let mut theirs = pinocchio.robot(mechanism)?;
    let plain = InverseDynamics::new(mechanism).with_arithmetic(Arithmetic::Reproducible);
    let fused = InverseDynamics::new(mechanism);
    println!("{name}: {} bodies, {} velocities", mechanism.bodies().len(), mechanism.nv());
    println!("  {:<28} {:>12}   {:>11}   {:>11}", "", "Pinocchio", "default", "AVX2+FMA");
    println!("  {:<28} {:>12}   {:>5} {:>5}   {:>5} {:>5}", "", "min", "min", "med", "min", "med");
    check(mechanism, &fused, &mut theirs)?;
    check_tree(mechanism, &mut theirs)?;
    tree(mechanism, &mut theirs);
    single(mechanism, &plain, &fused, &mut theirs);
    batches(mechanism, &plain, &fused, &mut theirs)?;
    stacks(mechanism, &plain, &fused, &mut theirs)
}

/// Checks that both compute the same torques and regressors.
fn check(mechanism: &Mechanism, ours: &InverseDynamics, theirs: &mut Robot) -> Result<(), String> {
    let states = States::new(mechanism, 3);
    let (nv, width) = (mechanism.nv(), mechanism.parameter_count());
    let mut scratch = ours.scratch();
    let mut tau = vec![0.0; nv];
    let (mut error, mut size) = (0.0f64, 0.0f64);
    let mut note = |x: f64, y: f64| {
        error = error.max((x - y).abs());
        size = size.max(y.abs());
    };
    for k in 0..states.count {
        let (q, v, a) = states.get(k, mechanism.nq(), nv);
        ours.rnea(&mut scratch, q, v, a, &mut tau).map_err(|e| e.to_string())?;
        theirs.rnea(q, v, a).iter().zip(&tau).for_each(|(y, x)| note(*x, *y));
        let y = ours.torque_regressor(&mut scratch, q, v, a).map_err(|e| e.to_string())?;
        let other = theirs.regressor(q, v, a);
        for i in 0..nv {
            for j in 0..width {
                // Pinocchio orders the inertia by columns: xx xy yy xz yz zz.
                let order = [0, 1, 2, 3, 4, 5, 7, 6, 8, 9];
                note(y[i * width + j / 10 * 10 + order[j % 10]], other[j * nv + i]);
            }
        }
    }
    if error > 1e-11 * size.max(1.0) {
        return Err(format!("results differ by {error:e}"));
    }
    println!("  largest difference {error:.1e} of {size:.1e}");
    Ok(())
}

/// Checks that both compute the same kinematics, mass matrix and forward dynamics.
fn check_tree(mechanism: &Mechanism, theirs: &mut Robot) -> Result<(), String> {
    let states = States::new(mechanism, 3);
    let nv = mechanism.nv();
    let mut workspace = Workspace::new(mechanism);
    let (mut h, mut a) = (vec![0.0; nv * nv], vec![0.0; nv]);
    let mut largest = [0.0f64; 3];
    let mut note = |what: usize, x: f64, y: f64, size: f64| {
        largest[what] = largest[what].max((x - y).abs() / size.max(1.0));
    };
    for k in 0..states.count {
        let (q, v, tau) = states.get(k, mechanism.nq(), nv);
        forward_kinematics(mechanism, &mut workspace, q).map_err(|e| e.to_string())?;
        let last = workspace.poses()[mechanism.bodies().len() - 1].translation;
        theirs.kinematics(q).iter().zip(&last).for_each(|(y, x)| note(0, *x, *y, 1.0));
        mass_matrix(mechanism, &mut workspace, q, &mut h).map_err(|e| e.to_string())?;
        // Computed by Pinocchio's inverse dynamics, because its mass matrix requires joints in depth-first order.
        let still = vec![0.0; nv];
        let bias = theirs.rnea(q, &still, &still).to_vec();
        let size = h.iter().chain(&bias).fold(0.0f64, |m, x| m.max(x.abs()));
        for j in 0..nv {
            let mut unit = still.clone();
            unit[j] = 1.0;
            let column = theirs.rnea(q, &still, &unit);
            (0..nv).for_each(|i| note(1, h[i * nv + j], column[i] - bias[i], size));
        }
        forward_dynamics(mechanism, &mut workspace, q, v, tau, &mut a).map_err(|e| e.to_string())?;
        let other = theirs.aba(q, v, tau);
        let size = other.iter().fold(0.0f64, |m, x| m.max(x.abs()));
        other.iter().zip(&a).for_each(|(y, x)| note(2, *x, *y, size));
    }
    // The error of accelerations grows with the condition number of the mass matrix.
    if largest[0] > 1e-12 || largest[1] > 1e-12 || largest[2] > 1e-8 {
        return Err(format!(
            "kinematics, mass matrix or forward dynamics differ by {largest:?} of the largest"
        ));
    }
    Ok(())
}

/// Compares kinematics, mass matrix and forward dynamics of one configuration.
fn tree(mechanism: &Mechanism, theirs: &mut Robot) {
    let (nq, nv) = (mechanism.nq(), mechanism.nv());
    let states = States::new(mechanism, 64);
    let workspace = |arithmetic| Workspace::new(mechanism).with_arithmetic(arithmetic);
    let kinematics = |arithmetic| {
        let (states, mut workspace) = (&states, workspace(arithmetic));
        move || {
            for k in 0..states.count {
                let _ = black_box(forward_kinematics(mechanism, &mut workspace, states.get(k, nq, nv).0));
            }
        }
    };
    let mut reference = || {
        for k in 0..states.count {
            black_box(theirs.kinematics(states.get(k, nq, nv).0));
        }
    };
    let (mut plain, mut fused) = (kinematics(Arithmetic::Reproducible), kinematics(Arithmetic::Fastest));
    compare("forward kinematics", states.count, &mut [&mut reference, &mut plain, &mut fused]);
    let matrix = |arithmetic| {
        let (states, mut workspace, mut h) = (&states, workspace(arithmetic), vec![0.0; nv * nv]);
        move || {
            for k in 0..states.count {
                let _ = black_box(mass_matrix(mechanism, &mut workspace, states.get(k, nq, nv).0, &mut h));
            }
        }
    };
    let mut reference = || {
        for k in 0..states.count {
            black_box(theirs.crba(states.get(k, nq, nv).0));
        }
    };
    let (mut plain, mut fused) = (matrix(Arithmetic::Reproducible), matrix(Arithmetic::Fastest));
    compare("mass matrix", states.count, &mut [&mut reference, &mut plain, &mut fused]);
    let forward = |arithmetic| {
        let (states, mut workspace, mut a) = (&states, workspace(arithmetic), vec![0.0; nv]);
        move || {
            for k in 0..states.count {
                let (q, v, tau) = states.get(k, nq, nv);
                let _ = black_box(forward_dynamics(mechanism, &mut workspace, q, v, tau, &mut a));
            }
        }
    };
    let mut reference = || {
        for k in 0..states.count {
            let (q, v, tau) = states.get(k, nq, nv);
            black_box(theirs.aba(q, v, tau));
        }
    };
    let (mut plain, mut fused) = (forward(Arithmetic::Reproducible), forward(Arithmetic::Fastest));
    compare("forward dynamics", states.count, &mut [&mut reference, &mut plain, &mut fused]);
}

fn single(mechanism: &Mechanism, plain: &InverseDynamics, fused: &InverseDynamics, theirs: &mut Robot) {
    let (nq, nv) = (mechanism.nq(), mechanism.nv());
    let states = States::new(mechanism, 64);
    let rnea = |ours: &InverseDynamics| {
        let (ours, states) = (ours.clone(), &states);
        let (mut scratch, mut tau) = (ours.scratch(), vec![0.0; nv]);
        move || {
            for k in 0..states.count {
                let (q, v, a) = states.get(k, nq, nv);
                let _ = black_box(ours.rnea(&mut scratch, q, v, a, &mut tau));
            }
        }
    };
    let mut reference = || {
        for k in 0..states.count {
            let (q, v, a) = states.get(k, nq, nv);
            black_box(theirs.rnea(q, v, a));
        }
    };
    compare("RNEA", states.count, &mut [&mut reference, &mut rnea(plain), &mut rnea(fused)]);
    let regressor = |ours: &InverseDynamics| {
        let (ours, states) = (ours.clone(), &states);
        let mut scratch = ours.scratch();
        move || {
            for k in 0..states.count {
                let (q, v, a) = states.get(k, nq, nv);
                let _ = black_box(ours.torque_regressor(&mut scratch, q, v, a));
            }
        }
    };
    let mut reference = || {
        for k in 0..states.count {
            let (q, v, a) = states.get(k, nq, nv);
            black_box(theirs.regressor(q, v, a));
        }
    };
    compare("regressor", states.count, &mut [&mut reference, &mut regressor(plain), &mut regressor(fused)]);
}

fn batches(
    mechanism: &Mechanism,
    plain: &InverseDynamics,
    fused: &InverseDynamics,
    theirs: &mut Robot,
) -> Result<(), String> {
    let (nq, nv) = (mechanism.nq(), mechanism.nv());
    let states = States::new(mechanism, 64);
    let samples =
        Samples::new(plain, states.count, &states.q, &states.v, &states.a).map_err(|e| e.to_string())?;
    let packed = |ours: &InverseDynamics| {
        let ours = ours.clone();
        let mut scratch = ours.scratch();
        move || {
            let _ = ours.packed_regressors(&mut scratch, &samples, |chunk| {
                black_box(chunk);
            });
        }
    };
    let mut reference = || {
        for k in 0..states.count {
            let (q, v, a) = states.get(k, nq, nv);
            black_box(theirs.regressor(q, v, a));
        }
    };
    compare("batch, packed", states.count, &mut [&mut reference, &mut packed(plain), &mut packed(fused)]);
    let mut tau = vec![0.0; states.count * nv];
    let mut reference = || {
        for k in 0..states.count {
            let (q, v, a) = states.get(k, nq, nv);
            black_box(theirs.rnea(q, v, a));
        }
    };
    let (mut scratch, mut other) = (fused.scratch(), tau.clone());
    let mut ours = || {
        let _ = plain.rnea_batch(&mut scratch, &samples, &mut tau);
    };
    let mut scratch = fused.scratch();
    let mut best = || {
        let _ = fused.rnea_batch(&mut scratch, &samples, &mut other);
    };
    compare("RNEA, batch", states.count, &mut [&mut reference, &mut ours, &mut best]);
    Ok(())
}

/// Compares dense regressors of a batch that does not fit into the cache of a core.
fn stacks(
    mechanism: &Mechanism,
    plain: &InverseDynamics,
    fused: &InverseDynamics,
    theirs: &mut Robot,
) -> Result<(), String> {
    let matrix = mechanism.nv() * mechanism.parameter_count();
    let states = States::new(mechanism, STACK_BYTES / (8 * matrix));
    let samples =
        Samples::new(plain, states.count, &states.q, &states.v, &states.a).map_err(|e| e.to_string())?;
    let size = states.count * matrix;
    let stacked = |ours: &InverseDynamics| {
        let ours = ours.clone();
        let (mut scratch, mut out) = (ours.scratch(), vec![0.0; size]);
        move || {
            let _ = ours.stacked_regressor_with(&mut scratch, &samples, &mut out);
            black_box(&mut out);
        }
    };
    let mut out = vec![0.0; size];
    let mut reference = || {
        theirs.stack(states.count, &states.q, &states.v, &states.a, &mut out);
        black_box(&mut out);
    };
    compare(
        "batch, dense (with copy)",
        states.count,
        &mut [&mut reference, &mut stacked(plain), &mut stacked(fused)],
    );
    Ok(())
}

/// Builds a serial chain or a binary tree of `n` revolute bodies.
fn grown(n: usize, tree: bool) -> Result<Mechanism, String> {
    let mut builder = MechanismBuilder::new("grown", "link0");
    let axes = [Vector3::z(), Vector3::y(), Vector3::x()];
    let about = Matrix3::from_diagonal(&Vector3::new(0.01, 0.02, 0.02));
    for k in 1..=n {
        let parent = if tree { k / 2 } else { k - 1 };
        let inertia = Inertia::from_com(1.0, Vector3::new(0.05, 0.0, 0.01), about);
        let joint = JointSpec::new(
            format!("joint{k}"),
            JointType::Revolute { axis: axes[k % 3] },
            format!("link{parent}"),
            format!("link{k}"),
        );
        let origin = Pose::from_xyz_rpy([0.1, 0.0, 0.02], [0.3, 0.0, 0.1]);
        builder = builder.link(format!("link{k}"), inertia).joint(joint.at(origin));
    }
    builder.build(&BuildOptions::default()).map_err(|e| e.to_string())
}

/// Measures the scaling of inverse dynamics (time per body) and of the regressor (time per joint and body moved by it).
fn growth() -> Result<(), String> {
    println!("growth (AVX2+FMA where the machine has it; best of several runs)");
    println!(
        "  {:<24} {:>12} {:>8} {:>17} {:>9}",
        "", "RNEA ns/body", "pairs", "regressor ns/pair", "packed"
    );
    let cases = [(10, false), (30, false), (100, false), (300, false), (1000, false), (1000, true)];
    for (n, tree) in cases {
        let mechanism = grown(n, tree)?;
        let dynamics = InverseDynamics::new(&mechanism);
        let mut scratch = dynamics.scratch();
        let states = States::new(&mechanism, 4);
        let (q, v, a) = states.get(0, mechanism.nq(), mechanism.nv());
        let mut tau = vec![0.0; mechanism.nv()];
        let repeats = 2000 / n + 1;
        let rnea = best(repeats, || {
            let _ = black_box(dynamics.rnea(&mut scratch, q, v, a, &mut tau));
        });
        let samples =
            Samples::new(&dynamics, 4, &states.q, &states.v, &states.a).map_err(|e| e.to_string())?;
        let packed = best(1, || {
            let _ = dynamics.packed_regressors(&mut scratch, &samples, |chunk| {
                black_box(chunk);
            });
        });
        let single = best(repeats.div_ceil(10), || {
            let _ = black_box(dynamics.torque_regressor(&mut scratch, q, v, a));
        });
        let pairs = dynamics.layout().blocks().len();
        let name = format!("{n} bodies, {}", if tree { "binary tree" } else { "chain" });
        let (rnea, single) = (rnea * 1e9 / n as f64, single * 1e9 / pairs as f64);
        let packed = packed * 1e9 / (4 * pairs) as f64;
        println!("  {name:<24} {rnea:>12.1} {pairs:>8} {single:>17.2} {packed:>9.2}");
    }
    Ok(())
}

/// Returns the shortest time of one call in seconds.
fn best(repeats: usize, mut call: impl FnMut()) -> f64 {
    let mut shortest = f64::INFINITY;
    for _ in 0..50 {
        let start = Instant::now();
        for _ in 0..repeats {
            call();
        }
        shortest = shortest.min(start.elapsed().as_secs_f64() / repeats as f64);
    }
    shortest
}

/// Runs the comparisons. Arguments are the shared library, then `NAME:fixed|floating:URDF` for each robot.
fn run() -> Result<(), String> {
    let mut arguments = std::env::args().skip(1);
    let library = arguments.next().ok_or("usage: LIBRARY NAME:fixed|floating:URDF…; run.py makes both")?;
    let pinocchio = Pinocchio::load(Path::new(&library))?;
    for argument in arguments {
        let mut parts = argument.splitn(3, ':');
        let (Some(name), Some(base), Some(path)) = (parts.next(), parts.next(), parts.next()) else {
            return Err(format!("\"{argument}\" is not NAME:fixed|floating:URDF"));
        };
        let text = std::fs::read_to_string(path).map_err(|e| format!("{path}: {e}"))?;
        let base = if base == "floating" { Base::Floating } else { Base::Fixed };
        let options = BuildOptions::default().with(|o| o.base = Some(base));
        let mechanism = read::model(&text, &read::no_includes)
            .and_then(|builder| builder.build(&options))
            .map_err(|e| format!("{path}: {e}"))?;
        robot(name, &mechanism, &pinocchio)?;
    }
    growth()
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::from(2)
        }
    }
}
