//! Tests of `identify --payload` from static poses, with a sensor and with torques.

#![allow(clippy::unwrap_used)]

use std::fmt::Write as _;

use crate::common::{Folder, refused, run};
use crate::payload::{ARM, arm, numbers, sensor_log, tool};
use inertial::dynamics::{InverseDynamics, Workspace, body_accelerations};
use inertial::mechanism::{BuildOptions, Mechanism, builtin};
use inertial::spatial::Motion;
use nalgebra::Vector3;
use serde_json::Value;

/// Returns static poses with noisy readings of the sensor: `rows` of each, with or without times.
fn pose_log(rows: usize, timed: bool, seed: u64) -> String {
    let arm = arm();
    let mut workspace = Workspace::new(&arm);
    let link = arm.links().iter().find(|l| l.name == "sensor").unwrap();
    let body = link.body.unwrap();
    let mut source = inertial::linalg::SplitMix::new(seed);
    let mut uniform = || ((source.next_u64() >> 11) as f64 + 0.5) / (1u64 << 53) as f64;
    let mut text = String::from(if timed { "t," } else { "" });
    text += "q.a,q.b,q.c,ft.fx,ft.fy,ft.fz,ft.tx,ft.ty,ft.tz\n";
    for pose in 0..24 {
        let q: [f64; 3] = std::array::from_fn(|_| 5.0 * (uniform() - 0.5));
        body_accelerations(&arm, &mut workspace, &q, &[0.0; 3], &[0.0; 3]).unwrap();
        let gravity = workspace.poses()[body].rotation.tr_mul(&arm.gravity());
        let proper = link.pose.pull_motion(&Motion::new(Vector3::zeros(), -gravity));
        let wrench = tool().wrench(&Motion::zero(), &proper);
        for row in 0..rows {
            if timed {
                let t = 0.01 * (pose * (rows + 40) + row) as f64;
                write!(text, "{t},").unwrap();
            }
            let mut noise = |size: f64| size * 3.46 * (uniform() - 0.5);
            let q = q.map(|q| q + noise(1e-5));
            let forces = wrench.linear.iter().map(|x| x + 1.0 + noise(0.05)).collect::<Vec<_>>();
            let moments = wrench.angular.iter().map(|x| x - 0.2 + noise(0.005)).collect::<Vec<_>>();
            text += &numbers(q.into_iter().chain(forces).chain(moments))[1..];
            text.push('\n');
        }
    }
    text
}

#[test]
fn poses_at_rest_give_mass_and_centre() {
    const DRAWS: u64 = 6;
    let folder = Folder::new();
    let model = folder.file("arm.urdf", ARM);
    for (name, rows, timed) in [("table.csv", 1, false), ("repeated.csv", 30, false), ("held.csv", 100, true)]
    {
        let mut squares = [0.0; 2];
        for seed in 0..DRAWS {
            let log = folder.file(name, pose_log(rows, timed, seed));
            let found = run(&["identify", &model, &log, "--payload", "sensor", "--json"]);
            assert_eq!(found.status, 0, "{}", found.stderr);
            assert!(found.stderr.contains("24 poses at rest"), "{}", found.stderr);
            let body = found.json()["bodies"][0].clone();
            let pull = |value: &Value, error: &Value, truth: f64| {
                ((value.as_f64().unwrap() - truth) / error.as_f64().unwrap()).powi(2)
            };
            squares[0] += pull(&body["mass"], &body["mass_std_error"], tool().mass);
            squares[1] += pull(&body["com"][2], &body["com_std_error"][2], tool().com().unwrap().z);
        }
        // A chi-square with six degrees of freedom over six exceeds 3.7 once in a thousand.
        assert!(squares.iter().all(|sum| sum / (DRAWS as f64) < 3.7), "{name}: {squares:?}");
    }
    // A motion without times is not accepted as a table of poses.
    let moving: Vec<String> = sensor_log(1000, false, false)
        .lines()
        .map(|line| line.split_once(',').unwrap().1.to_owned())
        .collect();
    let log = folder.file("moving.csv", moving.join("\n"));
    let line = refused(&["identify", &model, &log, "--payload", "sensor"]);
    assert!(line.contains("there is no column t"), "{line}");
}

/// Returns torques at 40 static poses, with noise of 0.02 N m.
fn torques_at_rest(arm: &Mechanism, names: &str, seed: u64) -> String {
    let dynamics = InverseDynamics::new(arm);
    let mut scratch = dynamics.scratch();
    let mut source = inertial::linalg::SplitMix::new(seed);
    let mut uniform = || ((source.next_u64() >> 11) as f64 + 0.5) / (1u64 << 53) as f64;
    let n = arm.nv();
    let mut text = format!("{names}\n");
    for _ in 0..40 {
        let q: Vec<f64> = (0..n).map(|_| 5.0 * (uniform() - 0.5)).collect();
        let (rest, mut tau) = (vec![0.0; n], vec![0.0; n]);
        dynamics.rnea(&mut scratch, &q, &rest, &rest, &mut tau).unwrap();
        tau.iter_mut().for_each(|x| *x += 0.02 * 3.46 * (uniform() - 0.5));
        text += &(numbers(q.into_iter().chain(tau))[1..].to_owned() + "\n");
    }
    text
}

#[test]
fn poses_at_rest_give_a_payload_from_torques() {
    const DRAWS: u64 = 6;
    let folder = Folder::new();
    let arm = builtin::get("puma560").unwrap().build(&BuildOptions::default()).unwrap();
    let mut parameters = arm.parameters();
    let last = parameters.len() - 10;
    parameters[last..].iter_mut().zip(tool().parameters().iter()).for_each(|(x, y)| *x += y);
    let loaded = arm.with_parameters(&parameters).unwrap();
    let mut sum = 0.0;
    for seed in 0..DRAWS {
        let names = "q1,q2,q3,q4,q5,q6,tau1,tau2,tau3,tau4,tau5,tau6";
        let log = folder.file("poses.csv", torques_at_rest(&loaded, names, seed));
        let found = run(&["identify", "builtin:puma560", &log, "--payload", "link6", "--json"]);
        assert_eq!(found.status, 0, "{}", found.stderr);
        assert!(found.stderr.contains("40 poses at rest"), "{}", found.stderr);
        let found = found.json();
        assert!(
            found["warnings"][0].as_str().unwrap().contains("it does not determine the inertia"),
            "{found}"
        );
        let body = &found["bodies"][0];
        let [mass, error] = ["mass", "mass_std_error"].map(|key| body[key].as_f64().unwrap());
        assert!((mass / tool().mass - 1.0).abs() < 0.05, "{body}");
        sum += ((mass - tool().mass) / error).powi(2);
    }
    // A chi-square with six degrees of freedom over six exceeds 3.7 once in a thousand.
    assert!(sum / (DRAWS as f64) < 3.7, "{sum}");
}

#[test]
fn undetermined_quantities_have_no_standard_error() {
    let folder = Folder::new();
    let model = folder.file("arm.urdf", ARM);
    let arm = arm();
    let mut parameters = arm.parameters();
    let pose = arm.links().iter().find(|l| l.name == "sensor").unwrap().pose;
    let added = tool().transformed(&pose).parameters();
    parameters[20..].iter_mut().zip(added.iter()).for_each(|(x, y)| *x += y);
    let loaded = arm.with_parameters(&parameters).unwrap();
    let log = folder.file("poses.csv", torques_at_rest(&loaded, "q.a,q.b,q.c,tau.a,tau.b,tau.c", 1));
    let found = run(&["identify", &model, &log, "--payload", "sensor", "--json"]);
    assert_eq!(found.status, 0, "{}", found.stderr);
    let found = found.json();
    // The torques of this wrist depend on the mass only through its product with the distance from the second axis.
    assert_eq!(found["excited"], 3);
    let warning = found["warnings"][0].as_str().unwrap();
    assert!(warning.contains("it does not determine the mass, centre of mass and inertia"), "{warning}");
    let body = &found["bodies"][0];
    assert!(body.get("mass_std_error").is_none() && body.get("com_std_error").is_none(), "{body}");
    assert!(found["base_parameters"].as_array().unwrap().len() <= 3, "{found}");
}
