//! Generates the log that `inertial demo arm` identifies from: the built-in seven-axis arm with friction, rotor
//! inertias and noise, on a motion given by Fourier series within its limits.
//!
//! ```sh
//! cargo run -p inertial-cli --example arm_log -- crates/inertial-cli/data/arm.csv.gz
//! ```

use std::f64::consts::TAU;
use std::io::Write;

use anyhow::{Context, Result};
use inertial::dynamics::InverseDynamics;
use inertial::linalg::SplitMix;
use inertial::mechanism::{BuildOptions, builtin};

const RATE: f64 = 100.0;
const SECONDS: f64 = 20.0;
const HARMONICS: usize = 5;
const PERIOD: f64 = 10.0;
/// Fraction of the limits that the motion uses.
const REACH: f64 = 0.85;
/// Noise of a torque sensor, relative to the largest torque of its joint.
const TORQUE_NOISE: f64 = 2e-3;
/// Resolution of the encoders (rad).
const ENCODER: f64 = 1e-5;

fn main() -> Result<()> {
    let path = std::env::args().nth(1).context("expected the path of the log to write")?;
    let arm = builtin::get("arm7")?.build(&BuildOptions::default())?;
    let dynamics = InverseDynamics::new(&arm);
    let mut scratch = dynamics.scratch();
    let mut random = SplitMix::new(7);
    let mut uniform = move || ((random.next_u64() >> 11) as f64 + 0.5) / (1u64 << 53) as f64;
    let series: Vec<Vec<[f64; 2]>> =
        (0..arm.nv()).map(|_| (0..HARMONICS).map(|_| [uniform() - 0.5, uniform() - 0.5]).collect()).collect();
    // Displacement, speed and acceleration of a series, before scaling.
    let at = |series: &[[f64; 2]], t: f64| {
        let mut out = [0.0; 3];
        for (k, [a, b]) in series.iter().enumerate() {
            let w = TAU * (k + 1) as f64 / PERIOD;
            let (sin, cos) = (w * t).sin_cos();
            out[0] += (a * sin - b * cos) / w;
            out[1] += a * cos + b * sin;
            out[2] += w * (b * cos - a * sin);
        }
        out
    };
    let count = (RATE * SECONDS) as usize;
    let times: Vec<f64> = (0..count).map(|k| k as f64 / RATE).collect();
    let joints: Vec<_> = arm.joints().iter().filter(|j| j.follows.is_none()).collect();
    let scales: Vec<f64> = joints
        .iter()
        .zip(&series)
        .map(|(joint, series)| {
            let most = |i: usize| times.iter().map(|&t| at(series, t)[i].abs()).fold(0.0, f64::max);
            let room = 0.5 * (joint.limits.upper - joint.limits.lower);
            REACH * (room / most(0)).min(joint.limits.velocity / most(1))
        })
        .collect();
    let mut out = flate2::GzBuilder::new().write(Vec::new(), flate2::Compression::best());
    write!(out, "t")?;
    for quantity in ["q", "tau"] {
        joints.iter().try_for_each(|j| write!(out, ",{quantity}.{}", j.name))?;
    }
    writeln!(out)?;
    for &t in &times {
        let (mut q, mut v, mut a) = (vec![], vec![], vec![]);
        for ((joint, series), scale) in joints.iter().zip(&series).zip(&scales) {
            let [x, dx, ddx] = at(series, t).map(|x| scale * x);
            q.push(0.5 * (joint.limits.lower + joint.limits.upper) + x);
            v.push(dx);
            a.push(ddx);
        }
        let mut tau = vec![0.0; arm.nv()];
        dynamics.rnea(&mut scratch, &q, &v, &a, &mut tau)?;
        write!(out, "{t:.2}")?;
        q.iter().try_for_each(|q| write!(out, ",{:.5}", (q / ENCODER).round() * ENCODER))?;
        for (joint, (tau, v)) in joints.iter().zip(tau.iter().zip(&v)) {
            let friction = joint.dynamics.damping * v + joint.dynamics.friction * v.signum();
            let noise = (-2.0 * uniform().ln()).sqrt() * (TAU * uniform()).cos();
            write!(out, ",{:.3}", tau + friction + TORQUE_NOISE * joint.limits.effort * noise)?;
        }
        writeln!(out)?;
    }
    std::fs::write(&path, out.finish()?).with_context(|| path)
}
