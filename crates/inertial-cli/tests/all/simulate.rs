//! Tests of `inertial simulate`: simulated sensors, and identification of the parameters from them.

#![allow(clippy::unwrap_used)]

use std::fmt::Write as _;

use crate::common::{Folder, one_line, refused, run, run_with_input};
use inertial::identifiability::{AnalyzeOptions, analyze};
use inertial::mechanism::builtin;
use serde_json::Value;

/// Returns position, velocity and acceleration of a sum of five harmonics whose phases and amplitudes differ between joints.
fn swing(t: f64, joint: usize, size: f64) -> [f64; 3] {
    let mut out = [0.0; 3];
    for h in 1..=5u32 {
        let w = 0.2 * std::f64::consts::TAU * f64::from(h);
        let phase = (joint * joint + 1) as f64 * 1.7 + f64::from(h * h) * (0.9 + 0.37 * joint as f64);
        let a = size / f64::from(h);
        let (s, c) = (w * t + phase).sin_cos();
        out[0] += a * s;
        out[1] += a * w * c;
        out[2] -= a * w * w * s;
    }
    out
}

/// Returns a CSV with position, velocity and acceleration of each joint, `count` rows at 100 Hz.
fn motion(joints: &[&str], size: f64, count: usize) -> String {
    let mut text = "t".to_owned();
    for stem in ["q", "dq", "ddq"] {
        for j in joints {
            write!(text, ",{stem}.{j}").unwrap();
        }
    }
    for i in 0..count {
        let t = i as f64 / 100.0;
        write!(text, "\n{t}").unwrap();
        for k in 0..3 {
            for j in 0..joints.len() {
                write!(text, ",{:?}", swing(t, j, size)[k]).unwrap();
            }
        }
    }
    text + "\n"
}

/// Returns a column of a CSV by name.
fn column(csv: &str, name: &str) -> Vec<f64> {
    let mut lines = csv.lines();
    let k = lines.next().unwrap().split(',').position(|n| n == name).unwrap_or_else(|| panic!("no {name}"));
    lines.map(|l| l.split(',').nth(k).unwrap().parse().unwrap()).collect()
}

fn simulate(args: &[&str]) -> String {
    let run = run(&[&["simulate"], args].concat());
    assert_eq!(run.status, 0, "{}", run.stderr);
    run.stdout
}

/// Returns the largest difference of identified base parameters from those of the built-in model, relative to the largest of them.
fn distance(model: &str, result: &Value) -> f64 {
    let mechanism =
        builtin::get(model).unwrap().build(&inertial::mechanism::BuildOptions::default()).unwrap();
    let (names, values) = (mechanism.parameter_names(), mechanism.parameters());
    let analysis = serde_json::to_value(analyze(&mechanism, &AnalyzeOptions::default()).unwrap()).unwrap();
    let known = |p: &Value| -> f64 {
        let combination = p["combination"].as_object().unwrap();
        combination
            .iter()
            .map(|(n, c)| c.as_f64().unwrap() * values[names.iter().position(|m| m == n).unwrap()])
            .sum()
    };
    let expected: Vec<(&str, f64)> = analysis["base_parameters"]
        .as_array()
        .unwrap()
        .iter()
        .map(|p| (p["name"].as_str().unwrap(), known(p)))
        .collect();
    let found = result["base_parameters"].as_array().unwrap();
    assert_eq!(result["excited"], result["rank"], "{model}");
    let scale = expected.iter().map(|(_, x)| x.abs()).fold(0.0, f64::max);
    let mut worst = 0.0f64;
    for (name, expected) in expected {
        let value = found.iter().find(|p| p["name"] == name).unwrap_or_else(|| panic!("{name}"))["value"]
            .as_f64()
            .unwrap();
        worst = worst.max((value - expected).abs() / scale);
    }
    worst
}

#[test]
fn parameters_are_recovered_from_a_simulated_log() {
    let folder = Folder::new();
    let names = ["joint1", "joint2", "joint3", "joint4", "joint5", "joint6"];
    let motion = folder.file("motion.csv", motion(&names, 0.8, 500));
    let log = folder.path("log.csv");
    let log = log.to_str().unwrap();
    simulate(&["builtin:puma560", &motion, "--ignore-limits", "--out", log]);
    let found = run(&[
        "identify",
        "builtin:puma560",
        log,
        "--estimator",
        "ols",
        "--cutoff",
        "off",
        "--slow",
        "0",
        "--json",
    ]);
    assert_eq!(found.status, 0, "{}", found.stderr);
    // Rounding error of some 1e-16 in the data, times the condition number of the motion (some hundreds).
    let distance = distance("puma560", &found.json());
    assert!(distance < 1e-9, "{distance:.1e}");
}

#[test]
fn parameters_of_a_moving_quadruped_are_recovered() {
    // Trajectory file with Fourier series of the base and of every joint.
    let robot =
        builtin::get("quadruped").unwrap().build(&inertial::mechanism::BuildOptions::default()).unwrap();
    let joints = robot.joints().iter().filter(|j| j.joint_type.nv() == 1).map(|j| j.name.clone());
    let names: Vec<String> =
        inertial::excitation::BASE_COORDINATES.map(String::from).into_iter().chain(joints).collect();
    let row = |j: usize| -> Vec<f64> {
        let part =
            |k: u32| 0.3 / f64::from(k / 2 + 1) * (f64::from(k * k) * 1.3 + (j * j) as f64 * 0.7).sin();
        std::iter::once(if j < 6 { 0.0 } else { -0.5 }).chain((0..10).map(part)).collect()
    };
    let trajectory = serde_json::json!({
        "schema": "inertial/trajectory/1", "joints": names, "duration": 10.0,
        "coefficients": (0..names.len()).map(row).collect::<Vec<_>>(),
        "basis": {"type": "fourier", "period": 10.0, "harmonics": 5},
    });
    let folder = Folder::new();
    let motion = folder.file("motion.json", trajectory.to_string());
    let log = folder.path("log.csv");
    let log = log.to_str().unwrap();
    simulate(&["builtin:quadruped", &motion, "--ignore-limits", "--rate", "50", "--out", log]);
    let found = run(&[
        "identify",
        "builtin:quadruped",
        log,
        "--estimator",
        "ols",
        "--cutoff",
        "off",
        "--slow",
        "0",
        "--json",
    ]);
    assert_eq!(found.status, 0, "{}", found.stderr);
    let distance = distance("quadruped", &found.json());
    assert!(distance < 1e-9, "{distance:.1e}");
}

#[test]
fn noise_is_reproducible_and_of_the_size_asked_for() {
    let folder = Folder::new();
    let motion = folder.file("motion.csv", motion(&["joint1", "joint2"], 0.5, 2000));
    let call = |extra: &[&str]| {
        simulate(&[&["builtin:planar-2r", motion.as_str(), "--ignore-limits"], extra].concat())
    };
    let clean = call(&[]);
    let noisy = call(&["--noise", "tau=0.1,q.joint2=1e-3", "--seed", "5"]);
    assert_eq!(noisy, call(&["--noise", "q.joint2=1e-3,tau=0.1", "--seed", "5"]));
    assert_ne!(noisy, call(&["--noise", "tau=0.1,q.joint2=1e-3", "--seed", "6"]));
    assert_eq!(column(&noisy, "q.joint1"), column(&clean, "q.joint1"));
    for (name, sd) in [("tau.joint1", 0.1), ("tau.joint2", 0.1), ("q.joint2", 1e-3)] {
        let (a, b) = (column(&noisy, name), column(&clean, name));
        let rms = (a.iter().zip(&b).map(|(a, b)| (a - b).powi(2)).sum::<f64>() / a.len() as f64).sqrt();
        // The standard error is 1.6 %.
        assert!((rms / sd - 1.0).abs() < 0.06, "{name}: {rms}");
    }
    let coarse = column(&call(&["--quantum", "q=0.01", "--bias", "tau.joint1=2"]), "q.joint1");
    assert!(coarse.iter().all(|q| (q / 0.01 - (q / 0.01).round()).abs() < 1e-9));
    let shifted = column(&call(&["--bias", "tau.joint1=2"]), "tau.joint1");
    assert!(shifted.iter().zip(column(&clean, "tau.joint1")).all(|(a, b)| (a - b - 2.0).abs() < 1e-12));
}

#[test]
fn forward_dynamics_undoes_inverse_dynamics() {
    let folder = Folder::new();
    let names = ["joint1", "joint2"];
    let motion = folder.file("motion.csv", motion(&names, 0.3, 2001));
    let forces = folder.path("forces.csv");
    // Torques at 1 kHz, interpolated linearly, give nearly the same motion for a second.
    simulate(&[
        "builtin:planar-2r",
        &motion,
        "--ignore-limits",
        "--rate",
        "1000",
        "--out",
        forces.to_str().unwrap(),
    ]);
    let given = std::fs::read_to_string(&forces).unwrap();
    let back = simulate(&["builtin:planar-2r", forces.to_str().unwrap(), "--forward", "--rate", "100"]);
    for name in ["q.joint1", "dq.joint2"] {
        let (given, back) = (column(&given, name), column(&back, name));
        for k in 0..100 {
            // The interpolation error of a force of some 10 Nm is h² f''/8, a millionth of it.
            assert!((given[10 * k] - back[k]).abs() < 1e-4, "{name} {k}: {} {}", given[10 * k], back[k]);
        }
    }
}

#[test]
fn a_minute_of_falling_keeps_energy() {
    let folder = Folder::new();
    let drop = folder.file("drop.csv", "t,q1,q2\n0,2,1\n60,2,1\n");
    let out = folder.path("log.csv");
    let args = [
        "simulate",
        "builtin:planar-2r",
        &drop,
        "--forward",
        "--rate",
        "50",
        "--json",
        "--out",
        out.to_str().unwrap(),
    ];
    let summary = run(&args);
    assert_eq!(summary.status, 0, "{}", summary.stderr);
    let summary = summary.json();
    assert_eq!(summary["schema"], "inertial/simulation/1");
    assert_eq!(
        (summary["mode"].as_str(), summary["samples"].as_u64()),
        (Some("forward-dynamics"), Some(3001))
    );
    assert!(summary["drift"]["energy"].as_f64().unwrap() < 1e-9, "{summary}");
    assert_eq!(std::fs::read_to_string(out).unwrap().lines().count(), 3002);
}

#[test]
fn loops_follow_their_independent_joint() {
    let folder = Folder::new();
    let motion = folder.file("motion.csv", motion(&["j1"], 0.2, 200));
    let log = simulate(&["builtin:four-bar", &motion]);
    assert_eq!(log.lines().next().unwrap(), "t,q.j1,q.j2,q.j3,dq.j1,dq.j2,dq.j3,ddq.j1,ddq.j2,ddq.j3,tau.j1");
    // Velocities of the dependent joints are the derivatives of their positions.
    let (q, dq) = (column(&log, "q.j3"), column(&log, "dq.j3"));
    for k in 1..199 {
        assert!(((q[k + 1] - q[k - 1]) * 50.0 - dq[k]).abs() < 2e-2, "{k}");
    }
    let summary = run(&["simulate", "builtin:four-bar", &motion, "--json"]).json();
    assert!(summary["drift"]["closure"].as_f64().unwrap() < 1e-11, "{summary}");
    let wrench = simulate(&["builtin:four-bar", &motion, "--measured", "both"]);
    assert!(
        wrench.starts_with("t,q.j1")
            && wrench
                .lines()
                .next()
                .unwrap()
                .ends_with("tau.j1,wrench.fx,wrench.fy,wrench.fz,wrench.tx,wrench.ty,wrench.tz")
    );
    assert!(
        refused(&["simulate", "builtin:four-bar", &motion, "--joints", "j2"])
            .contains("j2 depends on other joints of a loop")
    );
}

#[test]
fn a_robot_flies_and_its_wheels_turn_it() {
    let folder = Folder::new();
    let names: Vec<String> = (1..=6).map(|k| format!("joint{k}")).collect();
    let mut all: Vec<&str> = names.iter().map(String::as_str).collect();
    all.extend(["wheel1", "wheel2", "wheel3"]);
    let motion = folder.file("motion.csv", motion(&all, 0.6, 500));
    // Faster than the arms in the paper.
    let args = [
        "builtin:space-dual-arm",
        motion.as_str(),
        "--measured",
        "momentum",
        "--rate",
        "10",
        "--ignore-limits",
    ];
    let log = simulate(&args);
    let header = log.lines().next().unwrap();
    assert!(
        header.starts_with("t,base.x,base.y,base.z,base.qx")
            && header.ends_with(
                "dq.wheel3,momentum.px,momentum.py,momentum.pz,momentum.lx,momentum.ly,momentum.lz"
            ),
        "{header}"
    );
    // In the frame of the base the momenta of robot and wheels cancel.
    for (momentum, wheel) in [("momentum.lx", "dq.wheel1"), ("momentum.lz", "dq.wheel3")] {
        let pairs = column(&log, momentum).into_iter().zip(column(&log, wheel));
        assert!(pairs.into_iter().all(|(l, w)| (l + w).abs() < 1e-12));
    }
    let summary =
        run(&[&["simulate"], &args[..], &["--momentum", "10,-5,3,2,1,4", "--json"]].concat()).json();
    assert_eq!(summary["mode"], "free-flight");
    for key in ["momentum", "centre_of_mass"] {
        assert!(summary["drift"][key].as_f64().unwrap() < 1e-9, "{summary}");
    }
    let euler = simulate(&[&args[..], &["--pose", "euler"]].concat());
    let apart = column(&log, "base.qx")
        .iter()
        .zip(column(&euler, "base.qx"))
        .map(|(a, b)| (a - b).abs())
        .fold(0.0, f64::max);
    assert!(apart > 1e-6 && apart < 1e-2, "{apart}");
}

#[test]
fn every_kind_of_trajectory_is_read() {
    let folder = Folder::new();
    let ros = folder.file(
        "points.yaml",
        "header: {}\njoint_names: [joint1, 'joint2']\npoints:\n- positions: [0.0, 0.5]\n  velocities: [0.0, 0.0]\n  \
         time_from_start:\n    sec: 0\n    nanosec: 0\n- positions:\n  - 1.0\n  - 0.25\n  velocities: [0.0, 0.0]\n  \
         time_from_start: \n    sec: 1\n    nanosec: 500000000\n",
    );
    let log = simulate(&["builtin:planar-2r", &ros, "--ignore-limits"]);
    assert_eq!((column(&log, "t"), column(&log, "q.joint1")), (vec![0.0, 1.5], vec![0.0, 1.0]));
    let points = "t,q.joint1,q.joint2\n0,0,0.5\n1.5,1,0.25\n2,1,0\n";
    let waypoints = run_with_input(
        &["simulate", "builtin:planar-2r", "-", "--waypoints", "--rate", "4", "--ignore-limits"],
        points.as_bytes(),
    );
    assert_eq!(waypoints.status, 0, "{}", waypoints.stderr);
    assert_eq!(column(&waypoints.stdout, "q.joint1")[6..], [1.0, 1.0, 1.0]);
    assert_eq!(column(&waypoints.stdout, "dq.joint1")[6], 0.0);
    let designed = folder.file(
        "designed.json",
        r#"{"schema": "inertial/trajectory/1", "joints": ["joint2"], "duration": 2.0, "coefficients": [[0.0, 1.0, 0.5]],
            "basis": {"type": "fourier", "period": 2.0, "harmonics": 1}}"#,
    );
    let log = simulate(&["builtin:planar-2r", &designed, "--rate", "10", "--ignore-limits"]);
    assert_eq!(column(&log, "t").len(), 21);
    assert!(column(&log, "q.joint1").iter().all(|q| *q == 0.0));
    assert!((column(&log, "q.joint2")[5] - 1.0).abs() < 1e-15);
}

#[test]
fn bad_input_is_one_line() {
    let folder = Folder::new();
    let file = |name: &str, text: &str| folder.file(name, text);
    let two = "builtin:planar-2r";
    let good = file("good.csv", "t,q1,q2\n0,0,0\n1,0.1,0.1\n");
    let cases: Vec<(Vec<String>, &str)> = vec![
        (
            vec![two.into(), file("a.csv", "t,q.joint1,q.jiont2\n0,0,0\n")],
            "there is no column q.joint2; the nearest is q.jiont2",
        ),
        (
            vec![two.into(), file("b.csv", "t,q1,q2\n0,0,0\n0,1,1\n")],
            "row 3: column t: 0 s does not come after 0 s",
        ),
        (vec![two.into(), file("c.csv", "when,q1,q2\n0,0,0\n")], "there is no column t"),
        (vec![two.into(), file("d.csv", "t,q1,q2\n0,0,\n1,1,1\n")], "row 2: column q2: expected a number"),
        (
            vec![two.into(), good.clone(), "--rate".into(), "1e12".into()],
            "samples, more than the limit of 1e8",
        ),
        (vec![two.into(), good.clone(), "--rate".into(), "0".into()], "above zero"),
        (
            vec![two.into(), good.clone(), "--noise".into(), "tua=1".into()],
            "there is no column tua for the noise",
        ),
        (vec![two.into(), good.clone(), "--noise".into(), "tau".into()], "expected NAME=NUMBER"),
        (vec![two.into(), good.clone(), "--measured".into(), "momentum".into()], "needs a free-flying robot"),
        (vec![two.into(), folder.path("none.csv").to_str().unwrap().into()], "none.csv"),
        (vec!["builtin:four-bar".into(), file("e.csv", "t,q.j1\n0,4\n")], "j1 is at 4, above its limit 3.1"),
        (
            vec!["builtin:quadruped".into(), good.clone(), "--measured".into(), "momentum".into()],
            "has no reaction wheels",
        ),
        (
            vec![two.into(), file("f.csv", "t,q1,q2\n0,0,0\n1e300,0.1,0.1\n"), "--rate".into(), "10".into()],
            "samples, more than",
        ),
        (vec!["-".into(), "-".into()], "cannot both come from standard input"),
        (
            vec![two.into(), good.clone(), "--forward".into(), "--measured".into(), "momentum".into()],
            "--forward: cannot be combined with measured momentum",
        ),
    ];
    for (args, message) in cases {
        let args: Vec<String> = std::iter::once("simulate".to_owned()).chain(args).collect();
        let line = refused(&args);
        assert!(line.contains(message), "{line}");
    }
    // Wheels in one plane, and no wheels.
    let model = builtin::text("space-dual-arm")
        .unwrap()
        .replace("axis = [0, 0, 1]\ninertia", "axis = [1, 1, 0]\ninertia");
    let model = file("flat.toml", &model);
    let motion = file("still.csv", "t,q1,q2,q3,q4,q5,q6\n0,0,0,0,0,0,0\n1,0,0,0,0,0,0\n");
    let line = refused(&["simulate", &model, &motion, "--measured", "momentum"]);
    assert!(line.contains("wheel1, wheel2, wheel3") && line.contains("do not span space"), "{line}");
    // A simulation that fails midway leaves neither a file nor a partial table.
    let far = file("far.csv", "t,q.j1\n0,0\n1,1\n2,9\n");
    let out = folder.path("never.csv");
    let before = folder.names();
    assert!(
        refused(&["simulate", "builtin:four-bar", &far, "--out", out.to_str().unwrap()]).contains("t = 2 s")
    );
    assert_eq!(folder.names(), before);
    one_line(&run(&["simulate", "builtin:four-bar", &far]));
}

/// The moment of a sensor about the axis of the joint of its link equals the torque of that joint, and identification
/// recovers the link from the sensor.
#[test]
fn a_force_sensor_measures_the_links_beyond_it() {
    let joints: Vec<String> = (1..=6).map(|k| format!("joint{k}")).collect();
    let names: Vec<&str> = joints.iter().map(String::as_str).collect();
    let folder = Folder::new();
    let trajectory = folder.file("motion.csv", motion(&names, 0.4, 600));
    let call = ["builtin:puma560", &trajectory, "--friction", "none", "--ignore-limits", "--force-sensor"];
    for k in 1..=6 {
        let link = format!("link{k}");
        let log = simulate(&[&call[..], &[&link]].concat());
        let (moment, torque) = (column(&log, "ft.tz"), column(&log, &format!("tau.joint{k}")));
        let size = torque.iter().fold(0.0, |m: f64, x| m.max(x.abs()));
        // Sums in another order, and rounding of the digits in the log.
        assert!(moment.iter().zip(&torque).all(|(a, b)| (a - b).abs() < 1e-12 * size.max(1.0)), "{link}");
    }
    let log = folder.path("ft.csv").display().to_string();
    let noise = ["--noise", "ft.f=0.01,ft.t=0.001", "--out", &log];
    simulate(&[&call[..], &["link6"], &noise].concat());
    let found = run(&["identify", "builtin:puma560", &log, "--payload", "link6", "--json"]);
    assert_eq!(found.status, 0, "{}", found.stderr);
    let body = found.json()["bodies"][0].clone();
    let arm = builtin::get("puma560").unwrap().build(&inertial::mechanism::BuildOptions::default()).unwrap();
    let truth = arm.links().iter().find(|l| l.name == "link6").unwrap().inertia.unwrap();
    let error = body["mass_std_error"].as_f64().unwrap();
    assert!((body["mass"].as_f64().unwrap() - truth.mass).abs() < 4.0 * error && error < 0.01, "{body}");
    for (k, c) in truth.com().unwrap().iter().enumerate() {
        let error = body["com_std_error"][k].as_f64().unwrap();
        assert!((body["com"][k].as_f64().unwrap() - c).abs() < 4.0 * error && error < 0.01, "{body}");
    }
    let wrong = refused(&["simulate", "builtin:puma560", &trajectory, "--force-sensor", "hand"]);
    assert!(wrong.contains("no link hand"), "{wrong}");
}
