//! Tests of streams of robots with a floating base: smoothed states against the underlying motion, and estimates against those of
//! a batch.

#![allow(clippy::unwrap_used)]

use inertial::dynamics::{InverseDynamics, Samples};
use inertial::estimation::{
    Equations, Estimator, IdentifyOptions, JointTerms, Measurements, Online, Summary, identify,
};
use inertial::excitation::base_state;
use inertial::mechanism::{Base, BuildOptions, DEFAULT_SNAP, Mechanism, RotorModel, builtin};
use inertial_data::{FixedLag, Log, Options, StreamSample};

const RATE: f64 = 200.0;

fn robot() -> Mechanism {
    let options = BuildOptions::default().with(|o| {
        o.base = Some(Base::Floating);
        o.rotors = Some(RotorModel::None);
    });
    builtin::get("cheetah-leg").unwrap().build(&options).unwrap()
}

/// Returns the positions, velocities and accelerations at a time: the torso shakes and rotates through half a turn, the leg swings.
fn state(robot: &Mechanism, t: f64) -> [Vec<f64>; 3] {
    let swing = |k: usize| {
        let (w, size) = (1.5 + 0.35 * k as f64, if k == 5 { 1.6 } else { 0.4 });
        let angle = w * t + 0.7 * k as f64;
        [size * angle.sin(), size * w * angle.cos(), -size * w * w * angle.sin()]
    };
    let of = |d: usize| std::array::from_fn(|k| swing(k)[d]);
    let (q, v, a) = base_state(&[of(0), of(1), of(2)]);
    let [mut q, mut v, mut a] = [q.to_vec(), v.to_vec(), a.to_vec()];
    for k in 6..robot.nv() {
        let [x, dx, ddx] = swing(k);
        q.push(x);
        v.push(dx);
        a.push(ddx);
    }
    [q, v, a]
}

/// Creates a log with the columns of these groups; `q` and `tau` are always included.
fn log(robot: &Mechanism, seconds: f64, groups: &[&str]) -> Log {
    let dynamics = InverseDynamics::new(robot);
    let mut scratch = dynamics.scratch();
    let names = robot.velocity_names();
    let base = |names: &[&str], with: &str| names.iter().map(|n| format!("{with}.{n}")).collect::<Vec<_>>();
    let joints = |with: &str| names[6..].iter().map(|n| format!("{with}.{n}")).collect::<Vec<_>>();
    let mut header = vec!["t".to_owned()];
    header.extend(base(&["x", "y", "z", "qx", "qy", "qz", "qw"], "base"));
    header.extend(joints("q"));
    let has = |group: &str| groups.contains(&group);
    if has("v") {
        header.extend(base(&["vx", "vy", "vz", "wx", "wy", "wz"], "base"));
        header.extend(joints("dq"));
    }
    if has("a") {
        header.extend(base(&["ax", "ay", "az", "alx", "aly", "alz"], "base"));
        header.extend(joints("ddq"));
    }
    if has("wrench") {
        header.extend(base(&["fx", "fy", "fz", "tx", "ty", "tz"], "wrench"));
    }
    header.extend(joints("tau"));
    let mut columns = vec![Vec::new(); header.len()];
    for i in 0..(seconds * RATE) as usize {
        let t = i as f64 / RATE;
        let [mut q, v, a] = state(robot, t);
        let mut tau = vec![0.0; robot.nv()];
        dynamics.rnea(&mut scratch, &q, &v, &a, &mut tau).unwrap();
        // Same pose: the sign of a quaternion may change from row to row.
        if i % 3 == 0 {
            q[3..7].iter_mut().for_each(|x| *x = -*x);
        }
        let mut row = vec![t];
        row.extend(q);
        row.extend(v.iter().filter(|_| has("v")));
        row.extend(a.iter().filter(|_| has("a")));
        row.extend(&tau[if has("wrench") { 0 } else { 6 }..]);
        columns.iter_mut().zip(row).for_each(|(column, x)| column.push(x));
    }
    Log::new("stream", header, columns).unwrap()
}

fn samples(robot: &Mechanism, log: &Log) -> Vec<StreamSample> {
    let mut filter = FixedLag::new(robot, log, 0.2, &Options::default()).unwrap();
    filter.push(log).unwrap()
}

#[test]
fn states_of_a_floating_base_are_those_of_its_motion() {
    let robot = robot();
    for (groups, bounds) in [
        // For a tone of 4.2 rad/s and a half window of 0.1 s: (ωh)⁴/130 = 2.4e-4 of accelerations of up to 12 rad/s². Rotations mix
        // tones of the torso to twice that frequency.
        (&[][..], [1e-4, 2e-3, 0.1]),
        (&["v"], [1e-4, 1e-4, 1e-2]),
        (&["v", "a"], [1e-4, 1e-4, 1e-3]),
    ] {
        let found = samples(&robot, &log(&robot, 6.0, groups));
        assert!(found.len() > 1100, "{}", found.len());
        let mut worst = [0.0_f64; 3];
        for s in &found {
            let [mut q, v, a] = state(&robot, s.t);
            let sign = (3..7).map(|k| q[k] * s.q[k]).sum::<f64>().signum();
            q[3..7].iter_mut().for_each(|x| *x *= sign);
            for (worst, (x, y)) in worst.iter_mut().zip([(&q, &s.q), (&v, &s.v), (&a, &s.a)]) {
                x.iter().zip(y).for_each(|(x, y)| *worst = worst.max((x - y).abs()));
            }
            let length: f64 = s.q[3..7].iter().map(|x| x * x).sum();
            assert!((length - 1.0).abs() < 1e-12);
            // Without a wrench its six rows are not used; the base never counts as slow.
            assert!(s.keep[..6].iter().all(|keep| !keep));
        }
        println!("{groups:?}: {worst:?}");
        assert!(worst.iter().zip(bounds).all(|(x, bound)| *x < bound), "{groups:?}: {worst:?} {bounds:?}");
    }
    let with = samples(&robot, &log(&robot, 2.0, &["v", "wrench"]));
    assert!(with.iter().all(|s| s.keep[..6].iter().all(|keep| *keep)));
}

/// Tests that processing samples one by one results in the estimate of the batch, with and without the wrench on the base.
#[test]
fn estimates_of_a_floating_base_are_those_of_a_batch() {
    let robot = robot();
    let equations = Equations::new(&robot, JointTerms::default(), DEFAULT_SNAP).unwrap();
    let dynamics = InverseDynamics::new(&robot);
    for groups in [&["v", "a", "wrench"][..], &["v", "a"]] {
        let found = samples(&robot, &log(&robot, 20.0, groups));
        let all = |of: fn(&StreamSample) -> &Vec<f64>| -> Vec<f64> {
            found.iter().flat_map(|s| of(s).iter().copied()).collect()
        };
        let [q, v, a, tau] = [all(|s| &s.q), all(|s| &s.v), all(|s| &s.a), all(|s| &s.tau)];
        let keep: Vec<bool> = found.iter().flat_map(|s| s.keep.iter().copied()).collect();
        let mut online = Online::new(&equations, 1.0).unwrap();
        let (nq, nv) = (robot.nq(), robot.nv());
        let part = |from: usize, to: usize| {
            let (q, v) = (&q[from * nq..to * nq], &v[from * nv..to * nv]);
            let samples = Samples::new(&dynamics, to - from, q, v, &a[from * nv..to * nv]).unwrap();
            let mut data = Measurements::new(samples, &tau[from * nv..to * nv]);
            data.keep = Some(&keep[from * nv..to * nv]);
            data.independent = found[0].independent;
            data
        };
        for from in (0..found.len()).step_by(16) {
            online.update(&part(from, found.len().min(from + 16))).unwrap();
        }
        let batch = Summary::new(&equations, &part(0, found.len())).unwrap();
        let options = IdentifyOptions::from(Estimator::Wls);
        let [one, other] =
            [&online.summary(), &batch].map(|s| identify(&equations, s, None, &options).unwrap());
        assert_eq!((one.rank, one.excited), (other.rank, other.excited));
        if groups.contains(&"wrench") {
            assert_eq!(one.rank, one.excited);
            let truth = equations.model_values().unwrap();
            for ((x, y), true_value) in one.base_parameters.iter().zip(&other.base_parameters).zip(&truth) {
                // Factors of a condition number of about 1e3, with another order of rounding.
                assert!((x.value - y.value).abs() < 1e-8 * y.value.abs().max(1.0), "{}", x.name);
                // Smoothing reduces the amplitude of the motion by about 1e-4.
                assert!(
                    (x.value - true_value).abs() < 0.01 * true_value.abs().max(0.1),
                    "{} {}",
                    x.name,
                    x.value
                );
            }
        } else {
            assert!(one.excited < one.rank);
        }
        assert!((one.fit_relative_rms - other.fit_relative_rms).abs() < 1e-9);
    }
}

#[test]
fn quaternions_must_be_unit() {
    let robot = robot();
    let sound = log(&robot, 1.0, &[]);
    let columns: Vec<Vec<f64>> = (0..sound.names().len())
        .map(|k| sound.column_at(k).iter().map(|x| if (4..8).contains(&k) { 1.2 * x } else { *x }).collect())
        .collect();
    let wrong = Log::new("stream", sound.names().to_vec(), columns).unwrap();
    let mut filter = FixedLag::new(&robot, &wrong, 0.2, &Options::default()).unwrap();
    let said = filter.push(&wrong).unwrap_err().to_string();
    assert!(said.contains("has length 1.200: expected 1"), "{said}");
}
