//! Tests of `identify --payload`, `identify --follow` and `demo arm` as a program.

#![allow(clippy::unwrap_used)]

use std::f64::consts::TAU;
use std::fmt::Write as _;

use crate::common::{Folder, one_line, page, refused, run, run_with_input};
use inertial::dynamics::{InverseDynamics, Workspace, body_accelerations};
use inertial::mechanism::{BuildOptions, Mechanism, read};
use inertial::spatial::{Inertia, Motion, PARAMETER_NAMES, Parameters};
use nalgebra::{Matrix3, Vector3, vector};
use serde_json::Value;

/// Arm with three joints whose last link carries a sensor frame, and with friction in the model file.
pub(crate) const ARM: &str = r#"<robot name="wrist">
  <link name="base"/>
  <link name="one"><inertial><origin xyz="0 0 0.1"/><mass value="2"/><inertia ixx="0.02" ixy="0" ixz="0" iyy="0.02" iyz="0" izz="0.01"/></inertial></link>
  <link name="two"><inertial><origin xyz="0.1 0 0"/><mass value="1.5"/><inertia ixx="0.01" ixy="0" ixz="0" iyy="0.02" iyz="0" izz="0.02"/></inertial></link>
  <link name="three"><inertial><origin xyz="0 0 0.05"/><mass value="0.8"/><inertia ixx="0.004" ixy="0" ixz="0" iyy="0.004" iyz="0" izz="0.003"/></inertial></link>
  <link name="sensor"/>
  <joint name="a" type="revolute"><parent link="base"/><child link="one"/><axis xyz="0 0 1"/><limit lower="-3" upper="3" effort="50" velocity="5"/><dynamics damping="0.5" friction="0.3"/></joint>
  <joint name="b" type="revolute"><parent link="one"/><child link="two"/><origin xyz="0 0 0.3"/><axis xyz="0 1 0"/><limit lower="-3" upper="3" effort="50" velocity="5"/><dynamics damping="0.5" friction="0.3"/></joint>
  <joint name="c" type="revolute"><parent link="two"/><child link="three"/><origin xyz="0.3 0 0"/><axis xyz="1 0 0"/><limit lower="-3" upper="3" effort="50" velocity="5"/><dynamics damping="0.5" friction="0.3"/></joint>
  <joint name="mount" type="fixed"><parent link="three"/><child link="sensor"/><origin xyz="0 0 0.1" rpy="0.3 0.2 0.1"/></joint>
</robot>"#;

pub(crate) fn arm() -> Mechanism {
    read::model(ARM, &read::no_includes).unwrap().build(&BuildOptions::default()).unwrap()
}

/// Returns a tool in the frame of the sensor.
pub(crate) fn tool() -> Inertia<f64> {
    let about = Matrix3::from_diagonal(&vector![0.006, 0.007, 0.004]);
    Inertia::from_com(1.2, vector![0.02, -0.01, 0.08], about)
}

/// Returns a smooth motion with its derivatives.
fn motion(t: f64) -> [[f64; 3]; 3] {
    let mut out = [[0.0; 3]; 3];
    for j in 0..3 {
        for (k, amplitude) in [0.7, 0.4].into_iter().enumerate() {
            let w = TAU * (0.31 + 0.17 * j as f64 + 0.23 * k as f64);
            let phase = w * t + (j * 2 + k) as f64;
            out[0][j] += amplitude * phase.sin();
            out[1][j] += amplitude * w * phase.cos();
            out[2][j] -= amplitude * w * w * phase.sin();
        }
    }
    out
}

const HEADER: &str = "q.a,q.b,q.c,dq.a,dq.b,dq.c,ddq.a,ddq.b,ddq.c";

pub(crate) fn numbers(values: impl IntoIterator<Item = f64>) -> String {
    let numbers: Vec<String> = values.into_iter().map(|x| format!(",{x}")).collect();
    numbers.concat()
}

/// Returns a log of the sensor: with the motion of the joints, or with the readings of an IMU in the frame of the sensor.
pub(crate) fn sensor_log(rows: usize, imu: bool, alpha: bool) -> String {
    let arm = arm();
    let mut workspace = Workspace::new(&arm);
    let link = arm.links().iter().find(|l| l.name == "sensor").unwrap();
    let body = link.body.unwrap();
    let mut text = String::from("t,ft.fx,ft.fy,ft.fz,ft.tx,ft.ty,ft.tz,");
    text += match (imu, alpha) {
        (false, _) => HEADER,
        (true, false) => "acc.x,acc.y,acc.z,gyro.x,gyro.y,gyro.z",
        (true, true) => "acc.x,acc.y,acc.z,gyro.x,gyro.y,gyro.z,alpha.x,alpha.y,alpha.z",
    };
    text.push('\n');
    for k in 0..rows {
        let t = k as f64 * 0.005;
        let [q, v, a] = motion(t);
        body_accelerations(&arm, &mut workspace, &q, &v, &a).unwrap();
        let gravity = workspace.poses()[body].rotation.tr_mul(&arm.gravity());
        let proper = workspace.accelerations()[body] - Motion::new(Vector3::zeros(), gravity);
        let (v6, a6) = (link.pose.pull_motion(&workspace.velocities()[body]), link.pose.pull_motion(&proper));
        let wrench = tool().wrench(&v6, &a6);
        let offset = [1.0, -2.0, 3.0, 0.1, 0.2, -0.3];
        let readings = wrench.linear.iter().chain(wrench.angular.iter()).zip(offset).map(|(x, o)| x + o);
        text += &t.to_string();
        text += &numbers(readings);
        if imu {
            let acc = a6.linear + v6.angular.cross(&v6.linear);
            text += &numbers(acc.iter().chain(v6.angular.iter()).copied());
            if alpha {
                text += &numbers(a6.angular.iter().copied());
            }
        } else {
            text += &numbers(q.into_iter().chain(v).chain(a));
        }
        text.push('\n');
    }
    text
}

/// Noise of an inertial measurement unit does not bias the mass of the payload: errors agree with the stated ones.
#[test]
fn noise_of_an_imu_does_not_bias_the_payload() {
    const DRAWS: u64 = 8;
    let folder = Folder::new();
    let model = folder.file("arm.urdf", ARM);
    let exact = sensor_log(6000, true, false);
    let mut squares = [0.0; 2];
    for seed in 0..DRAWS {
        let mut source = inertial::linalg::SplitMix::new(seed);
        let mut uniform = || ((source.next_u64() >> 11) as f64 + 0.5) / (1u64 << 53) as f64;
        let mut normal = || (-2.0 * uniform().ln()).sqrt() * (std::f64::consts::TAU * uniform()).cos();
        // Noise of forces, moments, accelerations (a fifth of gravity) and angular velocities.
        let sizes = [0.0, 0.3, 0.3, 0.3, 0.02, 0.02, 0.02, 2.0, 2.0, 2.0, 0.05, 0.05, 0.05];
        let mut lines = exact.lines();
        let mut text = lines.next().unwrap().to_owned() + "\n";
        for line in lines {
            let cells =
                line.split(',').zip(sizes).map(|(x, size)| x.parse::<f64>().unwrap() + size * normal());
            text += &(numbers(cells)[1..].to_owned() + "\n");
        }
        let log = folder.file("noisy.csv", text);
        let found = run(&["identify", &model, &log, "--payload", "sensor", "--json"]);
        assert_eq!(found.status, 0, "{}", found.stderr);
        let body = found.json()["bodies"][0].clone();
        let pull = |value: &Value, error: &Value, truth: f64| {
            ((value.as_f64().unwrap() - truth) / error.as_f64().unwrap()).powi(2)
        };
        squares[0] += pull(&body["mass"], &body["mass_std_error"], tool().mass);
        squares[1] += pull(&body["com"][2], &body["com_std_error"][2], tool().com().unwrap().z);
    }
    // A chi-square with eight degrees of freedom over eight exceeds 3.3 once in a thousand; without compensation it is some hundred.
    for sum in squares {
        assert!(sum / (DRAWS as f64) < 3.3, "{squares:?}");
    }
}

/// Returns a log of joint torques with friction, an offset on the last joint and, if requested, a tool on the sensor link.
pub(crate) fn torque_log(rows: usize, with_tool: bool, start: f64) -> String {
    let arm = arm();
    let mut parameters = arm.parameters();
    if with_tool {
        let pose = arm.links().iter().find(|l| l.name == "sensor").unwrap().pose;
        let added = tool().transformed(&pose).parameters();
        parameters[20..].iter_mut().zip(added.iter()).for_each(|(x, y)| *x += y);
    }
    let arm = arm.with_parameters(&parameters).unwrap();
    let dynamics = InverseDynamics::new(&arm);
    let mut scratch = dynamics.scratch();
    let mut text = format!("t,{HEADER},tau.a,tau.b,tau.c\n");
    for k in 0..rows {
        let t = k as f64 * 0.005;
        let [q, v, a] = motion(start + t);
        let mut tau = [0.0; 3];
        dynamics.rnea(&mut scratch, &q, &v, &a, &mut tau).unwrap();
        for j in 0..3 {
            tau[j] += 0.5 * v[j] + 0.3 * v[j].signum();
        }
        tau[2] += 0.25;
        let _ = writeln!(text, "{t}{}", numbers(q.into_iter().chain(v).chain(a).chain(tau)));
    }
    text
}

/// Returns the log of a sensor that measures the opposite wrench.
fn reversed(log: &str) -> String {
    let mut lines = log.lines();
    let mut text = lines.next().unwrap().to_owned() + "\n";
    for line in lines {
        let cells = line.split(',').enumerate().map(|(k, cell)| {
            let x: f64 = cell.parse().unwrap();
            if (1..7).contains(&k) { (-x).to_string() } else { cell.to_owned() }
        });
        text += &(cells.collect::<Vec<_>>().join(",") + "\n");
    }
    text
}

/// Returns the log of a robot with a rotor at each joint.
pub(crate) fn geared(log: &str, rotor: f64) -> String {
    let mut lines = log.lines();
    let mut text = lines.next().unwrap().to_owned() + "\n";
    for line in lines {
        let cells: Vec<f64> = line.split(',').map(|cell| cell.parse().unwrap()).collect();
        let tau = (0..3).map(|j| cells[10 + j] + rotor * cells[7 + j]);
        let _ = writeln!(text, "{}{}", cells[0], numbers(cells[1..10].iter().copied().chain(tau)));
    }
    text
}

fn check(found: &serde_json::Value, tolerance: f64) {
    let body = &found["bodies"][0];
    assert_eq!((&body["name"], &body["consistent"]), (&"payload".into(), &true.into()));
    let near = |x: &serde_json::Value, y: f64| {
        let x = x.as_f64().unwrap();
        assert!((x - y).abs() < tolerance, "{x} {y}: {body}");
    };
    near(&body["mass"], 1.2);
    for (i, y) in [0.02, -0.01, 0.08].into_iter().enumerate() {
        near(&body["com"][i], y);
    }
    for (name, y) in [("ixx", 0.006), ("ixy", 0.0), ("iyy", 0.007), ("izz", 0.004)] {
        near(&body["inertia"][name], y);
    }
    assert_eq!((&found["rank"], &found["excited"]), (&10.into(), &10.into()));
    assert_eq!(found["schema"], "inertial/identification/1");
}

#[test]
fn a_tool_behind_a_sensor() {
    let folder = Folder::new();
    let model = folder.file("arm.urdf", ARM);
    let out = folder.path("with-tool.urdf");
    let joints = folder.file("joints.csv", sensor_log(2400, false, false));
    let args = ["--payload", "sensor", "--json"];
    let call = |log: &str, more: &[&str]| {
        let result = run(&[&["identify", &model, log], &args[..], more].concat());
        assert_eq!(result.status, 0, "{}", result.stderr);
        result.json()
    };
    // Without a filter the result is exact.
    let found = call(&joints, &["--cutoff", "off", "--out", out.to_str().unwrap()]);
    check(&found, 1e-5);
    // A body alone has no warning about the mass of the robot.
    assert_eq!(found["warnings"], serde_json::json!([]));
    assert_eq!(found["joints"][2]["name"], "ft.fz");
    assert!((found["joints"][2]["offset"].as_f64().unwrap() - 3.0).abs() < 1e-4);
    // The curves of the page are the residuals of the fit for both signs of the sensor.
    let path = folder.path("page.html");
    let reversed = folder.file("reversed.csv", reversed(&sensor_log(2400, false, false)));
    for log in [&joints, &reversed] {
        let found = call(log, &["--report", path.to_str().unwrap()]);
        check(&found, 2e-3);
        page::with_curves(&path, &found, &["fit"], 1e-9);
    }
    // The written model contains the tool on its sensor link.
    let written = std::fs::read_to_string(&out).unwrap();
    let read = read::model(&written, &read::no_includes).unwrap().build(&BuildOptions::default()).unwrap();
    let sensor = read.links().iter().find(|l| l.name == "sensor").unwrap().inertia.unwrap();
    assert!((sensor.parameters() - tool().parameters()).amax() < 1e-5);

    // With an IMU the joints are not needed, so a model with one link is sufficient.
    let link = folder.file("link.urdf", r#"<robot name="tool"><link name="sensor"/></robot>"#);
    for alpha in [true, false] {
        let log = folder.file("imu.csv", sensor_log(2400, true, alpha));
        let result = run(&[&["identify", &link, &log, "--cutoff", "off"], &args[..]].concat());
        assert_eq!(result.status, 0, "{}", result.stderr);
        // Accuracy of fourth-order differences at 200 Hz.
        check(&result.json(), if alpha { 1e-5 } else { 1e-4 });
    }
    // Held-out data for validation: the end of the log, and another log.
    let held = call(&joints, &["--cutoff", "off", "--holdout", "0.3"]);
    check(&held, 1e-5);
    let samples = |found: &serde_json::Value| found["samples"].as_f64().unwrap();
    assert!((samples(&held) / samples(&found) - 0.7).abs() < 1e-3);
    let other = folder.file("other.csv", sensor_log(800, true, true));
    for judged in [&held, &call(&joints, &["--cutoff", "off", "--validate", &other])] {
        assert_eq!(judged["validation"][5]["joint"], "ft.tz");
        assert!(judged["validation_relative_rms"].as_f64().unwrap() < 1e-5, "{judged}");
    }
    // Text output.
    let reported = run(&["identify", &model, &joints, "--payload", "sensor"]);
    assert!(reported.stdout.contains("payload") && reported.stdout.contains("ft.tz"), "{}", reported.stdout);
}

#[test]
fn a_tool_from_torques() {
    let folder = Folder::new();
    let model = folder.file("arm.urdf", ARM);
    let loaded = folder.file("loaded.csv", torque_log(2400, true, 0.0));
    let empty = folder.file("empty.csv", torque_log(2400, false, 3.0));
    let args = ["--payload", "sensor", "--offset", "--cutoff", "off", "--slow", "0", "--json"];
    let call = |more: &[&str]| {
        let result = run(&[&["identify", &model, &loaded], &args[..], more].concat());
        assert_eq!(result.status, 0, "{}", result.stderr);
        result.json()
    };
    // Three joints do not excite all parameters of the last link, but the excited combinations of the tool are recovered.
    let alone = call(&["--estimator", "wls"]);
    let both = call(&["--estimator", "wls", "--unloaded", &empty, "--friction", "coulomb+viscous"]);
    // The prior determines the others, so that the body is consistent.
    let path = folder.path("page.html");
    let body = call(&["--report", path.to_str().unwrap()]);
    assert_eq!(body["bodies"][0]["consistent"], true);
    // Mass and centre of mass are among them, so they have no standard errors.
    let tool = &body["bodies"][0];
    assert!(tool.get("mass_std_error").is_none() && tool.get("com_std_error").is_none(), "{tool}");
    let warnings = body["warnings"].to_string();
    assert!(
        warnings.contains("do not determine the mass, centre of mass and inertia of the payload"),
        "{warnings}"
    );
    page::with_curves(&path, &body, &["fit"], 1e-9);
    assert!(body["fit_relative_rms"].as_f64().unwrap() < 0.02, "{body}");
    // The unexcited directions are listed: adding them to the payload changes no torque.
    let hidden = body["not_shown"].as_array().unwrap();
    assert_eq!(hidden.len() as u64, 10 - body["excited"].as_u64().unwrap());
    let arm = arm();
    let [q, v, a] = motion(0.7);
    let pose = arm.links().iter().find(|l| l.name == "sensor").unwrap().pose;
    for direction in hidden {
        let mut ten = Parameters::zeros();
        for (name, x) in direction.as_object().unwrap() {
            let place = PARAMETER_NAMES.iter().position(|n| format!("payload.{n}") == *name).unwrap();
            ten[place] = x.as_f64().unwrap();
        }
        let added = Inertia::from_parameters(&ten).transformed(&pose).parameters();
        let mut parameters = arm.parameters();
        let mut torques = [[0.0; 3]; 2];
        for tau in &mut torques {
            let with = arm.clone().with_parameters(&parameters).unwrap();
            let dynamics = InverseDynamics::new(&with);
            dynamics.rnea(&mut dynamics.scratch(), &q, &v, &a, tau).unwrap();
            parameters[20..].iter_mut().zip(added.iter()).for_each(|(x, y)| *x += y);
        }
        for j in 0..3 {
            assert!((torques[0][j] - torques[1][j]).abs() < 1e-8 * ten.amax(), "{direction}");
        }
    }
    // Rotors that the model lacks are identified with the payload.
    let geared = folder.file("geared.csv", geared(&torque_log(2400, true, 0.0), 0.05));
    let result =
        run(&[&["identify", &model, &geared, "--rotors", "symmetric", "--estimator", "wls"], &args[..]]
            .concat());
    assert_eq!(result.status, 0, "{}", result.stderr);
    let with_rotors = result.json();
    let mass = |found: &serde_json::Value| {
        let all = found["base_parameters"].as_array().unwrap();
        all.iter().find(|p| p["name"] == "payload.m").unwrap()["value"].as_f64().unwrap()
    };
    assert!((mass(&with_rotors) - mass(&alone)).abs() < 1e-3, "{with_rotors}");
    assert!(
        (with_rotors["joints"][1]["rotor_inertia"].as_f64().unwrap() - 0.05).abs() < 1e-4,
        "{with_rotors}"
    );
    assert!(with_rotors["fit_relative_rms"].as_f64().unwrap() < 1e-4, "{with_rotors}");
    // Held-out data for validation.
    for more in [&["--holdout", "0.3"][..], &["--validate", &loaded]] {
        let judged = call(&[&["--estimator", "wls"], more].concat());
        assert_eq!(judged["validation"].as_array().unwrap().len(), 3);
        assert!(judged["validation_relative_rms"].as_f64().unwrap() < 1e-4, "{judged}");
    }
    for found in [&alone, &both] {
        assert_eq!(found["rank"], found["excited"]);
        assert!(found["fit_relative_rms"].as_f64().unwrap() < 1e-4, "{found}");
        let offset = found["joints"][2]["offset"].as_f64().unwrap();
        assert!((offset - 0.25).abs() < 1e-3, "{offset}");
        let names: Vec<_> = found["base_parameters"].as_array().unwrap().iter().map(|p| &p["name"]).collect();
        assert!(names.contains(&&"payload.m".into()), "{names:?}");
    }
    for (x, y) in
        alone["base_parameters"].as_array().unwrap().iter().zip(both["base_parameters"].as_array().unwrap())
    {
        let (x, y) = (x["value"].as_f64().unwrap(), y["value"].as_f64().unwrap());
        assert!((x - y).abs() < 1e-3, "{x} {y}");
    }
}

/// The joint file of an identified model has offsets that the model file cannot represent; a payload uses them.
#[test]
fn a_payload_uses_the_joint_file_of_the_model() {
    let folder = Folder::new();
    let model = folder.file("arm.urdf", ARM);
    let out = folder.path("identified.urdf").to_str().unwrap().to_owned();
    let empty = folder.file("empty.csv", geared(&torque_log(4000, false, 3.0), 0.05));
    let found = run(&["identify", &model, &empty, "--out", &out, "--force"]);
    assert_eq!(found.status, 0, "{}", found.stderr);
    let loaded = folder.file("loaded.csv", geared(&torque_log(4000, true, 0.0), 0.05));
    let call = || {
        let found = run(&["identify", &out, &loaded, "--payload", "sensor", "--json"]);
        assert_eq!(found.status, 0, "{}", found.stderr);
        found
    };
    let with = call();
    let file = folder.path("identified.joints.json");
    assert!(with.stderr.contains("identified.joints.json"), "{}", with.stderr);
    std::fs::remove_file(&file).unwrap();
    let without = call();
    assert!(!without.stderr.contains("identified.joints.json"), "{}", without.stderr);
    let residual = |found: &crate::common::Run| found.json()["fit_relative_rms"].as_f64().unwrap();
    assert!(residual(&without) > 1.5 * residual(&with), "{} {}", residual(&without), residual(&with));
    let mass = with.json()["bodies"][0]["mass"].as_f64().unwrap();
    // Three joints do not determine the mass alone; the prior does the rest.
    assert!((mass - 1.2).abs() < 0.06, "{mass}");
}

#[test]
fn bad_payload_calls_have_one_line() {
    let folder = Folder::new();
    let model = folder.file("arm.urdf", ARM);
    let log = folder.file("joints.csv", sensor_log(400, false, false));
    let call = |log: &str, more: &[&str]| refused(&[&["identify", &model, log], more].concat());
    let line = call(&log, &["--payload", "senzor"]);
    assert!(line.contains("no link senzor; the nearest is sensor"), "{line}");
    let line = call(&log, &["--payload", "base"]);
    assert!(line.contains("never moves"), "{line}");
    call(&log, &["--payload", "sensor", "--prior", &model]);
    call(&log, &["--unloaded", &log]);
    let line = call(&log, &["--payload", "sensor", "--estimator", "irls"]);
    assert!(line.contains("expected ols, wls or consistent for a payload"), "{line}");
    let neither = folder.file("neither.csv", "t,q.a,q.b,q.c\n0,0,0,0\n1,1,1,1\n");
    let line = call(&neither, &["--payload", "sensor"]);
    assert!(line.contains("neither ft.fx"), "{line}");
    let partly = folder.file("partly.csv", sensor_log(400, false, false).replace("ft.tz", "fttz"));
    let line = call(&partly, &["--payload", "sensor"]);
    assert!(line.contains("ft.tz"), "{line}");
    let few =
        folder.file("few.csv", sensor_log(400, false, false).lines().take(4).collect::<Vec<_>>().join("\n"));
    call(&few, &["--payload", "sensor"]);
    // The joints after the sensor must not move.
    let line = call(&log, &["--payload", "two"]);
    assert!(line.contains("joint c moves"), "{line}");
    // At rest in one pose, the offsets cannot be separated from the payload.
    let mut still =
        String::from("t,ft.fx,ft.fy,ft.fz,ft.tx,ft.ty,ft.tz,acc.x,acc.y,acc.z,gyro.x,gyro.y,gyro.z\n");
    (0..500).for_each(|k| {
        let _ = writeln!(still, "{},1,2,3,0.1,0.2,0.3,0,0,9.81,0,0,0", 0.01 * f64::from(k));
    });
    let still = folder.file("still.csv", still);
    let line = call(&still, &["--payload", "sensor"]);
    assert!(line.contains("never rotates"), "{line}");
}

#[test]
fn estimates_follow_a_stream() {
    let folder = Folder::new();
    let model = folder.file("arm.urdf", ARM);
    let rows = torque_log(1600, false, 0.0);
    let args = [
        "identify",
        &model,
        "--follow",
        "-",
        "--every",
        "2",
        "--friction",
        "coulomb+viscous",
        "--offset",
        "--json",
    ];
    let result = run_with_input(&args, rows.as_bytes());
    assert_eq!(result.status, 0, "{}", result.stderr);
    let lines: Vec<serde_json::Value> =
        result.stdout.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    // Eight seconds minus the window, and one estimate at the end.
    assert_eq!(lines.len(), 4, "{}", result.stdout);
    for line in &lines {
        assert!(line["bodies"].as_array().unwrap().iter().all(|b| b["consistent"] == true), "{line}");
    }
    let last = lines.last().unwrap();
    assert_eq!(last["rank"], last["excited"]);
    let viscous = last["joints"][1]["viscous"].as_f64().unwrap();
    // Smoothing rounds the corners of Coulomb friction, which leaves half a percent of the torques.
    assert!((viscous - 0.5).abs() < 0.02, "{viscous}");
    assert!(last["fit_relative_rms"].as_f64().unwrap() < 0.03, "{last}");
    assert!((last["t"].as_f64().unwrap() - 7.9).abs() < 0.05);

    // An error names its row; earlier estimates remain.
    let mut bad: Vec<&str> = rows.lines().collect();
    bad[900] = "oops";
    let result = run_with_input(&args, bad.join("\n").as_bytes());
    assert_eq!(result.status, 2);
    assert!(result.stderr.contains("standard input: row 901"), "{}", result.stderr);
    let mut back: Vec<&str> = rows.lines().collect();
    back.swap(500, 505);
    let result = run_with_input(&args, back.join("\n").as_bytes());
    assert!(result.stderr.contains("time runs backwards"), "{}", result.stderr);
    let short = rows.lines().take(5).collect::<Vec<_>>().join("\n");
    let line = one_line(&run_with_input(&args, short.as_bytes()));
    assert!(line.contains("ended before the first window"), "{line}");
    // Wrong units are detected as in whole logs.
    let scaled = |columns: std::ops::Range<usize>, factor: f64| {
        let row = |(i, line): (usize, &str)| {
            let cell = |(k, x): (usize, &str)| match x.parse::<f64>() {
                Ok(number) if i > 0 && columns.contains(&k) => format!("{}", factor * number),
                _ => x.to_owned(),
            };
            line.split(',').enumerate().map(cell).collect::<Vec<_>>().join(",")
        };
        rows.lines().enumerate().map(row).collect::<Vec<_>>().join("\n")
    };
    let degrees = 180.0 / std::f64::consts::PI;
    for (text, words) in [
        (scaled(0..1, 1e3), "are these milliseconds?"),
        (scaled(1..4, degrees), "are these degrees?"),
        (scaled(4..7, degrees), "is it degrees per second"),
    ] {
        let line = one_line(&run_with_input(&args, text.as_bytes()));
        assert!(line.contains(words) && line.starts_with("standard input: row "), "{line}");
        let trusted = run_with_input(&[&args[..], &["--trust-units"]].concat(), text.as_bytes());
        assert!(!trusted.stderr.contains(words), "{}", trusted.stderr);
    }
    one_line(&run_with_input(&["identify", "-", "--follow", "-"], b""));
    refused(&["identify", &model, "--follow", "-", "--forget", "-3"]);
    refused(&["identify", &model]);
}

#[test]
fn demo_arm_recovers_the_parameters_within_standard_errors() {
    let result = run(&["demo", "arm"]);
    assert_eq!((result.status, result.stderr.as_str()), (0, ""));
    println!("{}", result.stdout);
    let farthest =
        result.stdout.split("the largest deviation is ").nth(1).unwrap().split('.').next().unwrap();
    // The largest of some seventy errors exceeds 4.9 once in fifteen thousand.
    assert!(farthest.parse::<f64>().unwrap() < 4.9, "{farthest}");
    assert!(result.stdout.contains("7 of 7 bodies are physically consistent"));
}

#[test]
fn intervals_contain_the_payload_for_certain() {
    let folder = Folder::new();
    let model = folder.file("arm.urdf", ARM);
    // Readings are rounded to two decimals, so their error is at most 0.005.
    let exact = sensor_log(400, false, false);
    let mut lines = exact.lines();
    let mut text = lines.next().unwrap().to_owned() + "\n";
    for line in lines {
        let cells = line.split(',').enumerate().map(|(k, cell)| {
            let value: f64 = cell.parse().unwrap();
            if (1..7).contains(&k) { format!("{value:.2}") } else { cell.to_owned() }
        });
        text += &(cells.collect::<Vec<_>>().join(",") + "\n");
    }
    let log = folder.file("ft.csv", text);
    let call = ["identify", &model, &log, "--payload", "sensor", "--cutoff", "off", "--decimate", "1"];
    let asked = ["--bounds-on", "m,com", "--noise-bound", "0.005"];
    let result = run(&[&call[..], &asked, &["--json"]].concat());
    assert_eq!(result.status, 0, "{}", result.stderr);
    let found = result.json();
    let com = tool().com().unwrap();
    let truth =
        [("payload.m", tool().mass), ("payload.cx", com.x), ("payload.cy", com.y), ("payload.cz", com.z)];
    let intervals = found["intervals"].as_array().unwrap();
    assert_eq!(intervals.len(), 4);
    for (interval, (name, value)) in intervals.iter().zip(truth) {
        let (lower, upper) = (interval["lower"].as_f64().unwrap(), interval["upper"].as_f64().unwrap());
        assert_eq!(interval["name"], name);
        assert!(lower <= value && value <= upper && upper - lower < 0.1, "{interval} {value}");
    }
    let words = run(&[&call[..], &asked].concat()).stdout;
    assert!(words.contains("guaranteed interval") && words.contains("payload.cz"), "{words}");
    // Bounds by column, and rejected bounds.
    let columns = ["--bounds-on", "m", "--noise-bound", "ft.f=0.005,ft.t=0.005"];
    assert_eq!(run(&[&call[..], &columns, &["--json"]].concat()).json()["intervals"][0], intervals[0]);
    let narrow = refused(&[&call[..], &["--bounds-on", "m", "--noise-bound", "1e-5"]].concat());
    assert!(narrow.contains("times its bound"), "{narrow}");
    let unknown = refused(&[&call[..], &["--bounds-on", "m", "--noise-bound", "ft=0.1,elbow=1"]].concat());
    assert!(unknown.contains("elbow"), "{unknown}");
}
