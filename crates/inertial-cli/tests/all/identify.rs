//! Tests of `identify` and `validate` with simulated and real logs.

#![allow(clippy::unwrap_used)]

use std::f64::consts::TAU;
use std::fmt::Write as _;
use std::path::PathBuf;

use crate::common::data::shared;
use crate::common::{Folder, refused, run};
use inertial::dynamics::{ClosedMechanism, InverseDynamics, Workspace, base_wrench, frame_jacobian};
use inertial::mechanism::{BuildOptions, Mechanism, builtin};
use inertial::spatial::Inertia;
use nalgebra::{Matrix3, Vector3};

const MODEL: &str = "builtin:planar-2r";

/// Returns a log of the two-link arm with viscous friction on the first joint.
pub fn log(rows: usize) -> String {
    let mechanism = builtin::get("planar-2r").unwrap().build(&BuildOptions::default()).unwrap();
    log_of(&mechanism, rows, |v, tau| tau[0] += 0.7 * v[0])
}

/// Returns a log of another arm, with drive terms added to its torques.
fn log_of(mechanism: &Mechanism, rows: usize, drives: impl Fn(&[f64], &mut [f64])) -> String {
    let mut text = String::from("t,q1,q2,dq1,dq2,ddq1,ddq2,tau1,tau2\n");
    let dynamics = InverseDynamics::new(mechanism);
    let mut scratch = dynamics.scratch();
    for k in 0..rows {
        let t = k as f64 * 0.005;
        // Sines of different frequencies, with their exact derivatives.
        let (w1, w2, w3) = (0.7 * TAU, 1.1 * TAU, 0.4 * TAU);
        let q = [0.8 * (w1 * t).sin() + 0.3 * (w3 * t).cos(), 0.9 * (w2 * t).cos() + 0.4 * (w3 * t).sin()];
        let v = [
            0.8 * w1 * (w1 * t).cos() - 0.3 * w3 * (w3 * t).sin(),
            -0.9 * w2 * (w2 * t).sin() + 0.4 * w3 * (w3 * t).cos(),
        ];
        let a = [
            -0.8 * w1 * w1 * (w1 * t).sin() - 0.3 * w3 * w3 * (w3 * t).cos(),
            -0.9 * w2 * w2 * (w2 * t).cos() - 0.4 * w3 * w3 * (w3 * t).sin(),
        ];
        let mut tau = [0.0; 2];
        dynamics.rnea(&mut scratch, &q, &v, &a, &mut tau).unwrap();
        drives(&v, &mut tau);
        let row = [t, q[0], q[1], v[0], v[1], a[0], a[1], tau[0], tau[1]];
        let _ = writeln!(text, "{}", row.map(|x| format!("{x}")).join(","));
    }
    text
}

#[test]
fn identifies_validates_and_keeps_summaries() {
    let folder = Folder::new();
    let log = folder.file("log.csv", log(2000));
    let args = ["--friction", "viscous", "--json", "--cutoff", "off", "--slow", "0"];
    let summary = folder.path("log.summary");
    let mut call = vec!["identify", MODEL, &log, "--summary-out", summary.to_str().unwrap()];
    call.extend(args);
    let first = run(&call);
    assert_eq!(first.status, 0, "{}", first.stderr);
    let found = first.json();
    assert_eq!(found["schema"], "inertial/identification/1");
    assert_eq!(found["rank"], found["excited"]);
    assert!(found["bodies"].as_array().unwrap().iter().all(|b| b["consistent"] == true));
    let viscous = found["joints"][0]["viscous"].as_f64().unwrap();
    assert!((viscous - 0.7).abs() < 1e-3, "{viscous}");
    assert!(found["fit_relative_rms"].as_f64().unwrap() < 1e-3);
    // The summary replaces its log.
    let mut call = vec!["identify", MODEL, summary.to_str().unwrap()];
    call.extend(&args[..3]);
    let again = run(&call);
    assert_eq!(again.status, 0, "{}", again.stderr);
    let (again, found) = (again.json(), found["base_parameters"].as_array().unwrap().clone());
    for (x, y) in found.iter().zip(again["base_parameters"].as_array().unwrap()) {
        let (x, y) = (x["value"].as_f64().unwrap(), y["value"].as_f64().unwrap());
        // Rounding of the merge and, without noise, the duality gap of the solver are both far below this tolerance.
        assert!((x - y).abs() < 1e-8, "{x} {y}");
    }

    let judged = run(&["validate", MODEL, &log, "--json", "--cutoff", "off", "--slow", "0"]);
    assert_eq!((judged.status, judged.json()["schema"].as_str()), (0, Some("inertial/validation/1")));
    let told = run(&["validate", MODEL, &log, "--threshold", "1e-9", "--cutoff", "off", "--slow", "0"]);
    assert_eq!(told.status, 1, "{}", told.stderr);
}

#[test]
fn friction_that_jumps_is_found_without_bias() {
    let mechanism = builtin::get("planar-2r").unwrap().build(&BuildOptions::default()).unwrap();
    let drives = |v: &[f64], tau: &mut [f64]| {
        for (k, (viscous, coulomb)) in [(0.7, 1.5), (0.2, 0.9)].into_iter().enumerate() {
            tau[k] += viscous * v[k] + coulomb * v[k].signum();
        }
    };
    let folder = Folder::new();
    let log = folder.file("log.csv", log_of(&mechanism, 6000, drives));
    let call = ["identify", MODEL, &log, "--friction", "coulomb+viscous", "--estimator", "wls", "--json"];
    let found = run(&call);
    assert_eq!(found.status, 0, "{}", found.stderr);
    let found = found.json();
    for (k, (viscous, coulomb)) in [(0.7, 1.5), (0.2, 0.9)].into_iter().enumerate() {
        let joint = &found["joints"][k];
        let [v, c] = ["viscous", "coulomb"].map(|name| joint[name].as_f64().unwrap());
        // The friction column jumps between two samples, as the logged torque does. The remaining error is that of
        // the window that filters the columns, whose gain equals that of the force filter to 1e-3 (see the test of
        // the row filter). Coulomb friction has this relative error, and viscous friction compensates it at the speed
        // of the motion, some rad/s.
        assert!((c / coulomb - 1.0).abs() < 1e-3 && (v - viscous).abs() < 1e-3 * coulomb, "{joint}");
    }
    assert!(found["fit_relative_rms"].as_f64().unwrap() < 2e-3, "{}", found["fit_relative_rms"]);
}

#[test]
fn gains_of_drives_are_found_with_a_known_payload() {
    let mechanism = builtin::get("planar-2r").unwrap().build(&BuildOptions::default()).unwrap();
    let gains = [0.8, 1.25];
    let drives = |v: &[f64], tau: &mut [f64]| {
        for k in 0..2 {
            tau[k] = (tau[k] + 0.5 * v[k]) / gains[k];
        }
    };
    let tensor = Matrix3::new(0.02, 0.004, -0.003, 0.004, 0.025, 0.002, -0.003, 0.002, 0.03);
    let payload = Inertia::from_com(1.5, Vector3::new(0.3, 0.1, 0.0), tensor);
    let mut parameters = mechanism.parameters();
    let last = mechanism.parameter_blocks()[1].offset;
    parameters[last..last + 10].iter_mut().zip(payload.parameters().iter()).for_each(|(x, p)| *x += p);
    let loaded = mechanism.clone().with_parameters(&parameters).unwrap();
    let folder = Folder::new();
    let empty = folder.file("empty.csv", log_of(&mechanism, 3000, drives));
    let loaded = folder.file("loaded.csv", log_of(&loaded, 3000, drives));
    let link = &mechanism.bodies()[1].name;
    let known = format!("{link}=1.5,0.3,0.1,0,0.02,0.025,0.03,0.004,-0.003,0.002");
    let call = ["identify", MODEL, &empty, "--friction", "viscous", "--gains", "0.5"];
    let with = ["--loaded", &loaded, "--known-payload", &known, "--json", "--holdout", "0.2"];
    let found = run(&[&call[..], &with[..]].concat());
    assert_eq!(found.status, 0, "{}", found.stderr);
    let found = found.json();
    for (joint, gain) in found["joints"].as_array().unwrap().iter().zip(gains) {
        // The only remaining error is that of the filters.
        assert!((joint["gain"].as_f64().unwrap() / gain - 1.0).abs() < 1e-3, "{joint}");
        assert!((joint["viscous"].as_f64().unwrap() - 0.5).abs() < 2e-3, "{joint}");
    }
    assert!(found["validation_relative_rms"].as_f64().unwrap() < 1e-3);
    // The mass alone is sufficient.
    let weighed = ["--loaded", &loaded, "--known-payload", &format!("{link}=1.5"), "--json"];
    let found = run(&[&call[..], &weighed[..]].concat());
    assert!(
        found.stderr.contains("the centre of mass of the payload is estimated at 0.3 ±"),
        "{}",
        found.stderr
    );
    for (joint, gain) in found.json()["joints"].as_array().unwrap().iter().zip(gains) {
        assert!((joint["gain"].as_f64().unwrap() / gain - 1.0).abs() < 2e-3, "{joint}");
    }
    // Without the payload the prior determines the scale, which a note reports.
    let alone = run(&call);
    assert!(alone.status == 0 && alone.stdout.contains("known payload"), "{}{}", alone.stdout, alone.stderr);
    for wrong in [
        &["--gains", "0"][..],
        &["--gains", "0.5", "--loaded", &loaded],
        &["--gains", "0.5", "--known-payload", &known],
        &["--gains", "0.5", "--loaded", &loaded, "--known-payload", "nowhere=1,0,0,0"],
        &["--gains", "0.5", "--loaded", &loaded, "--known-payload", "link2=-1,0,0,0"],
        &["--gains", "0.5", "--loaded", &loaded, "--known-payload", "link2=1,0,0"],
        &["--gains", "0.5", "--loaded", &loaded, "--known-payload", "link2=1,0,0,0,1,0.1,0.1"],
        &["--gains", "0.5", "--loaded", &loaded, "--known-payload", "link2=1,0,0,0,0.1,0.1,0.1,0.2,0,0"],
        &["--gains", "0.5", "--estimator", "irls"],
        &["--gains", "0.5", "--friction", "stribeck"],
    ] {
        refused(&[&["identify", MODEL, &empty][..], wrong].concat());
    }
}

#[test]
fn bad_calls_have_one_line() {
    let folder = Folder::new();
    let log = folder.file("log.csv", log(50));
    refused(&["identify", MODEL, "missing.csv"]);
    refused(&["identify", MODEL, &log, "--prior-weight", "-1"]);
    refused(&["identify", MODEL, &log, "--holdout", "2"]);
    refused(&["identify", "builtin:four-bar", &log]);
    let other = folder.file("other.summary", "{}");
    refused(&["identify", MODEL, &other]);
    refused(&["validate", "builtin:arm7", &log]);
    // A model that cannot be written is reported before any work is done.
    let model = folder.file("model.xml", "<mujoco><include file=\"arm.xml\"/></mujoco>");
    folder.file("arm.xml", format!("<mujoco>{MJCF_BODY}</mujoco>"));
    let line = refused(&["identify", &model, "missing.csv", "--out", "x.xml"]);
    assert!(line.contains("writing MJCF that includes other files"), "{line}");
}

const MJCF_BODY: &str = "<worldbody><body name=\"a\"><joint name=\"j\" axis=\"0 1 0\"/>
    <inertial pos=\"0.1 0 0\" mass=\"1\" diaginertia=\"0.01 0.01 0.01\"/></body></worldbody>";

#[test]
fn mjcf_is_written_with_the_identified_values() {
    let folder = Folder::new();
    let model = folder.file("model.xml", format!("<mujoco>\n{MJCF_BODY}\n</mujoco>\n"));
    let heavy = folder
        .file("heavy.xml", format!("<mujoco>{}</mujoco>", MJCF_BODY.replace("mass=\"1\"", "mass=\"3\"")));
    let mut motion = String::from("t,q.j,dq.j,ddq.j\n");
    for i in 0..1000 {
        let t = f64::from(i) / 100.0;
        let _ =
            writeln!(motion, "{t},{},{},{}", (2.0 * t).sin(), 2.0 * (2.0 * t).cos(), -4.0 * (2.0 * t).sin());
    }
    let (motion, log) = (folder.file("motion.csv", motion), folder.path("log.csv"));
    let (log, out) = (log.to_str().unwrap(), folder.path("out.xml"));
    assert_eq!(run(&["simulate", &heavy, &motion, "--out", log]).status, 0);
    let done =
        run(&["identify", &model, log, "--friction", "none", "--offset=no", "--out", out.to_str().unwrap()]);
    assert_eq!(done.status, 0, "{}", done.stderr);
    let text = std::fs::read_to_string(&out).unwrap();
    assert!(text.starts_with("<mujoco>\n<worldbody><body name=\"a\"><joint "), "{text}");
    let residual =
        |model: &str| run(&["validate", model, log, "--json"]).json()["relative_rms"].as_f64().unwrap();
    assert!(residual(out.to_str().unwrap()) < 1e-3 && residual(&model) > 0.1);
}

#[test]
fn torques_of_unnamed_joints_are_ignored() {
    let folder = Folder::new();
    // Last column of a broken sensor, then a missing column.
    let rows = |last: Option<&str>| {
        let (text, mut out) = (log(2000), String::new());
        for (k, line) in text.lines().enumerate() {
            let (rest, name) = line.rsplit_once(',').unwrap();
            let cell = last.map(|cell| if k == 0 { name } else { cell });
            let _ = writeln!(out, "{rest}{}", cell.map_or_else(String::new, |cell| format!(",{cell}")));
        }
        out
    };
    let options = ["--joints", "joint1", "--cutoff", "off", "--slow", "0", "--json"];
    let friction = ["--friction", "viscous"];
    let expected = folder.file("without.csv", rows(None));
    for broken in ["0", "1e300", "nan"] {
        let log = folder.file("log.csv", rows(Some(broken)));
        for command in [&["identify", MODEL][..], &["validate", MODEL]] {
            let more = if command[0] == "identify" { &friction[..] } else { &[] };
            let [found, expected] = [&log, &expected].map(|log| {
                let found = run(&[command, &[log.as_str()], &options, more].concat());
                assert_eq!(found.status, 0, "{broken}: {}", found.stderr);
                found.stdout
            });
            assert_eq!(found, expected, "{broken} {command:?}");
        }
    }
    // Parameters that no motion could determine without the other torques are distinguished from those that this motion does not excite.
    let whole = folder.file("whole.csv", log(2000));
    let found = run(&["identify", MODEL, &whole, "--joints", "joint2", "--cutoff", "off", "--json"]).json();
    let most = run(&["analyze", MODEL, "--joints", "joint2", "--json"]).json()["rank"].clone();
    let all = run(&["analyze", MODEL, "--json"]).json()["rank"].clone();
    let told = format!(
        "without the forces of joint1 no motion can excite more than {most} of the {all} base parameters"
    );
    assert!(found["warnings"].as_array().unwrap().contains(&told.into()), "{}", found["warnings"]);
}

#[test]
fn logs_of_loops_need_only_the_independent_joints() {
    let mechanism = builtin::get("four-bar").unwrap().build(&BuildOptions::default()).unwrap();
    let closed = ClosedMechanism::new(&mechanism).unwrap();
    let (name, mut workspace) = (closed.independent_names()[0].clone(), closed.workspace());
    let start = closed.assembled()[closed.independent_positions()[0]];
    let mut text = format!("t,q.{name},dq.{name},ddq.{name},tau.{name}\n");
    let mut q = closed.assembled().to_vec();
    for k in 0..800 {
        let (t, w) = (f64::from(k) * 0.005, 0.8 * TAU);
        let (x, v, a) = (0.3 * (w * t).sin(), 0.3 * w * (w * t).cos(), -0.3 * w * w * (w * t).sin());
        closed.move_to(&mut workspace, &mut q, &[start + x]).unwrap();
        let mut tau = [0.0];
        closed.inverse_dynamics(&mut workspace, &q, &[v], &[a], &mut tau).unwrap();
        let _ = writeln!(text, "{t},{},{v},{a},{}", start + x, tau[0] + 0.4 * v);
    }
    let folder = Folder::new();
    let log = folder.file("log.csv", text);
    let options = ["--friction", "viscous", "--estimator", "wls", "--cutoff", "off", "--slow", "0", "--json"];
    let mut call = vec!["identify", "builtin:four-bar", &log];
    call.extend(options);
    let found = run(&call);
    assert_eq!(found.status, 0, "{}", found.stderr);
    let found = found.json();
    assert!(found["fit_relative_rms"].as_f64().unwrap() < 1e-6, "{}", found["fit_relative_rms"]);
    assert_eq!(found["model"]["dof"], 1);
    // Same model from a file, written to a file that is then validated.
    let text = std::fs::read_to_string(
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../inertial/src/mechanism/builtin/four-bar.toml"),
    );
    let (file, out) = (folder.file("four-bar.toml", text.unwrap()), folder.path("identified.toml"));
    let out = out.to_str().unwrap();
    let written = run(&["identify", &file, &log, "--friction", "viscous", "--out", out]);
    assert_eq!(written.status, 0, "{}", written.stderr);
    assert_eq!(run(&["check", out]).status, 0);
    let judged = run(&["validate", "builtin:four-bar", &log, "--json", "--cutoff", "off", "--slow", "0"]);
    assert_eq!(judged.status, 0, "{}", judged.stderr);
    // The remaining residual is the friction, which the model lacks.
    assert!(judged.json()["relative_rms"].as_f64().unwrap() < 0.5);
}

#[test]
fn a_force_plate_and_a_known_contact_are_enough() {
    let mechanism = builtin::get("planar-2r").unwrap().build(&BuildOptions::default()).unwrap();
    let link = mechanism.links().iter().find(|l| l.body == Some(1)).unwrap();
    let mut workspace = Workspace::new(&mechanism);
    let mut text = format!(
        "t,q1,q2,dq1,dq2,ddq1,ddq2,wrench.fx,wrench.fy,wrench.fz,wrench.tx,wrench.ty,wrench.tz,tau1,tau2,contact.{0}.fx,contact.{0}.fy,contact.{0}.fz\n",
        link.name
    );
    for line in log(800).lines().skip(1) {
        let row: Vec<f64> = line.split(',').map(|x| x.parse().unwrap()).collect();
        let (q, v, a, push) = (&row[1..3], &row[3..5], &row[5..7], 3.0 * (5.0 * row[0]).sin());
        let total = base_wrench(&mechanism, &mut workspace, q, v, a).unwrap();
        let mut jacobian = vec![0.0; 12];
        frame_jacobian(&mechanism, &mut workspace, q, 1, &link.pose, &mut jacobian).unwrap();
        // The wrench of the ground is the total wrench minus the push.
        let at = workspace.poses()[1] * link.pose;
        let force = at.rotation * nalgebra::vector![push, 0.0, 0.0];
        let (linear, angular) = (total.linear - force, total.angular - at.translation.cross(&force));
        let tau = [row[7] - 0.7 * v[0] - jacobian[6] * push, row[8] - jacobian[7] * push];
        let values =
            row[..7].iter().chain(linear.iter()).chain(angular.iter()).chain(&tau).chain([&push, &0.0, &0.0]);
        let _ = writeln!(text, "{}", values.map(|x| format!("{x}")).collect::<Vec<_>>().join(","));
    }
    let folder = Folder::new();
    // A missing component is not zero.
    let name = format!("contact.{}.fz", link.name);
    let refused = run(&["identify", MODEL, &folder.file("part.csv", text.replacen(&name, "other", 1))]);
    assert_eq!(refused.status, 2);
    let expected =
        format!("part.csv: there is no column {name}, but other columns of that wrench are present");
    assert!(refused.stderr.contains(&expected), "{}", refused.stderr);
    let log = folder.file("log.csv", text);
    for measured in ["base-wrench", "both", "joint-torques"] {
        let options =
            ["--measured", measured, "--estimator", "wls", "--cutoff", "off", "--slow", "0", "--json"];
        let mut call = vec!["identify", MODEL, &log];
        call.extend(options);
        let found = run(&call);
        assert_eq!(found.status, 0, "{}", found.stderr);
        let found = found.json();
        assert!(
            found["fit_relative_rms"].as_f64().unwrap() < 1e-9,
            "{measured}: {}",
            found["fit_relative_rms"]
        );
        assert_eq!(
            found["fit"].as_array().unwrap().len(),
            match measured {
                "base-wrench" => 6,
                "both" => 8,
                _ => 2,
            }
        );
    }
}

#[test]
fn outliers_need_the_logs_themselves() {
    let folder = Folder::new();
    let mut lines: Vec<String> = log(1000).lines().map(str::to_owned).collect();
    for line in lines.iter_mut().skip(1).step_by(40) {
        line.push('0');
        let (rest, last) = line.rsplit_once(',').unwrap();
        *line = format!("{rest},{}", last.parse::<f64>().unwrap() + 50.0);
    }
    let log = folder.file("log.csv", lines.join("\n"));
    let summary = folder.path("log.summary");
    let options = ["--friction", "viscous", "--cutoff", "off", "--slow", "0", "--json"];
    let mut call =
        vec!["identify", MODEL, &log, "--estimator", "irls", "--summary-out", summary.to_str().unwrap()];
    call.extend(options);
    let found = run(&call);
    assert_eq!(found.status, 0, "{}", found.stderr);
    let viscous = found.json()["joints"][0]["viscous"].as_f64().unwrap();
    assert!((viscous - 0.7).abs() < 1e-3, "{viscous}");
    refused(&["identify", MODEL, summary.to_str().unwrap(), "--friction", "viscous", "--estimator", "irls"]);
}

#[test]
fn a_joint_model_file_takes_part() {
    let folder = Folder::new();
    let log = folder.file("log.csv", log(400));
    let name = "joint1";
    let text = format!("[[term]]\njoint = \"{name}\"\nname = \"spring\"\nformula = \"sin(q1)\"\n");
    let joints = folder.file("joints.toml", &text);
    let found =
        run(&["identify", MODEL, &log, "--joint-model", &joints, "--json", "--cutoff", "off", "--slow", "0"]);
    assert_eq!(found.status, 0, "{}", found.stderr);
    assert!(found.json()["joints"][0]["terms"]["spring"].is_number());
    let wrong = folder.file("wrong.toml", text.replace("q1", "q1 +"));
    refused(&["identify", MODEL, &log, "--joint-model", &wrong]);
    refused(&["identify", MODEL, &log, "--joint-model", "missing.toml"]);
    refused(&["identify", MODEL, &log, "--friction", "asymmetric", "--offset"]);
}

fn data(robot: &str, file: &str) -> Option<String> {
    shared(&format!("data/{robot}/{file}")).map(|path| path.to_str().unwrap().to_owned())
}

/// Identifies a real robot with automatic joint terms. Every body must be consistent, the verdict good and the
/// validation residual at most `most`.
fn real(robot: &str, logs: &[&str], validate: Option<&str>, options: &[&str], most: f64) {
    let mut args = vec!["identify".to_owned()];
    for file in ["model.urdf"].iter().chain(logs) {
        let Some(path) = data(robot, file) else { return };
        args.push(path);
    }
    if let Some(file) = validate {
        let Some(path) = data(robot, file) else { return };
        args.extend(["--validate".into(), path]);
    }
    args.extend(["--json"].iter().chain(options).map(|s| (*s).to_owned()));
    for prior in ["model", "none"] {
        let run = run(&[&args[..], &["--prior".to_owned(), prior.to_owned()]].concat());
        assert_eq!(run.status, 0, "{}", run.stderr);
        let found = run.json();
        assert!(found["bodies"].as_array().unwrap().iter().all(|b| b["consistent"] == true));
        assert_eq!(found["verdict"], "good", "{robot}: {}", found["reasons"]);
        let residual = found["validation_relative_rms"].as_f64().unwrap();
        let gap = found["duality_gap"].as_f64().unwrap();
        println!("{robot}, prior {prior}: validation {residual}, gap {gap:.1e}");
        assert!(residual <= most, "{robot}: {residual}");
        // Costs are some hundreds, with a relative gap of 1e-9.
        assert!(gap.abs() < 1e-5, "{robot}: {gap}");
    }
}

#[test]
fn real_robots_validate_as_well_as_plain_least_squares_does_elsewhere() {
    // A weighted least-squares script with Pinocchio gave 7.9, 3.5, 8.7 and 12.8 % on the same splits; for the TX40
    // it was given the coupling of the motor of joint 6 to joints 5 and 6, which is detected here. Observed here, in
    // the band of the automatic cut-off (tens of Hz, so figures of narrower bands are not comparable): at most 6.33,
    // 1.61, 4.98 and 4.86 %. A margin of a twentieth allows for rounding; a larger residual means that the estimate
    // has become worse.
    real("tx40", &["motion.csv.gz"], None, &["--holdout", "0.3"], 0.0665);
    real("panda", &["motion.csv.gz"], None, &["--holdout", "0.4"], 0.0169);
    real("ur10", &["motion.csv.gz"], None, &["--holdout", "0.4"], 0.0523);
    real("kr300", &["motion_A.csv.gz", "motion_B.csv.gz"], Some("motion_C.csv.gz"), &[], 0.0510);
}

/// Unusable logs and logs in other units: one line that names the location, exit status 2, no output file.
#[test]
fn unusable_logs_are_refused_without_output() {
    let folder = Folder::new();
    let good = log(400);
    let rows: Vec<Vec<f64>> =
        good.lines().skip(1).map(|l| l.split(',').map(|c| c.parse().unwrap()).collect()).collect();
    let header = good.lines().next().unwrap();
    let text = |header: &str, change: &dyn Fn(usize, &mut Vec<f64>)| {
        let mut out = format!("{header}\n");
        for (i, row) in rows.iter().enumerate() {
            let mut row = row.clone();
            change(i, &mut row);
            let _ = writeln!(out, "{}", row.iter().map(|x| format!("{x}")).collect::<Vec<_>>().join(","));
        }
        out
    };
    let constant = |k: usize| text(header, &move |_, row| row[k] = 1.0);
    let cases = [
        ("joints", good.replacen("tau2", "tua2", 1), "there is no column tau2 for joint2; the nearest is"),
        (
            "degrees",
            text(header, &|_, row| row[1..5].iter_mut().for_each(|x| *x *= 57.3)),
            "are these degrees?",
        ),
        ("milliseconds", text(header, &|_, row| row[0] *= 1e3), "are these milliseconds?"),
        ("rates", text(header, &|_, row| row[3] *= 57.3), "column dq1: is 57."),
        ("torque", constant(7), "column tau1: the torque is constant (1): was it measured?"),
        ("velocity", constant(3), "column dq1: the velocity is constant although the position changes"),
        ("still", text(header, &|_, row| row[1..7].fill(0.0)), "no joint moves"),
        (
            "few",
            good.lines().take(10).fold(String::new(), |a, l| a + l + "\n"),
            "fewer than the 20 parameters",
        ),
        ("saturated", text(header, &|_, row| row[7] = row[7].clamp(-5.0, 5.0)), "column tau1: "),
        ("cells", good.replacen("\n0.1,", "\n0.1,0,", 1), "row 22: 10 cells, but the header has 9"),
        (
            "infinite",
            text(header, &|i, row| {
                if i == 5 {
                    row[8] = f64::INFINITY;
                }
            }),
            "row 7: column tau2: `inf`",
        ),
        (
            "backwards",
            text(header, &|i, row| row[0] -= if i < 200 { 0.0 } else { 0.9 }),
            "row 202: column t: time runs backwards",
        ),
        ("parquet", "PAR1 and no more".to_owned(), "the Parquet file is truncated or damaged"),
    ];
    for (name, text, expected) in cases {
        let path = folder.file(name, &text);
        let out = folder.path("out.summary");
        let line = refused(&["identify", MODEL, &path, "--summary-out", out.to_str().unwrap(), "--json"]);
        assert!(line.starts_with(&path) && line.contains(expected), "{name}: {line}");
        assert!(!out.exists(), "{name}");
    }
    let mcap = folder.file("cut.mcap", b"\x89MCAP0\r\n\x01");
    assert!(refused(&["identify", MODEL, &mcap]).ends_with("the MCAP file is truncated"));
}

/// A log with negated torques is not predicted by the parameters of the original one.
#[test]
fn the_verdict_depends_on_validation_data() {
    let folder = Folder::new();
    let text = log(2000);
    let header = text.lines().next().unwrap();
    let is_torque: Vec<bool> = header.split(',').map(|name| name.starts_with("tau")).collect();
    assert!(is_torque.contains(&true), "{header}");
    let negated = text.lines().skip(1).map(|line| {
        let cells = line.split(',').zip(&is_torque);
        let cells = cells
            .map(|(x, negate)| if *negate { (-x.parse::<f64>().unwrap()).to_string() } else { x.into() });
        cells.collect::<Vec<String>>().join(",")
    });
    let negated = std::iter::once(header.to_owned()).chain(negated).collect::<Vec<_>>().join("\n");
    let (fit, other) = (folder.file("fit.csv", &text), folder.file("other.csv", negated));
    let verdict = |validation: &str| -> (serde_json::Value, usize) {
        let found = run(&["identify", MODEL, &fit, "--validate", validation, "--json"]).json();
        let codes = found["reasons"]
            .as_array()
            .map_or(0, |all| all.iter().filter(|r| r["code"] == "validation").count());
        (found["verdict"].clone(), codes)
    };
    assert_eq!(verdict(&fit), ("good".into(), 0));
    assert_eq!(verdict(&other), ("do not use".into(), 1));
}

/// Same log with other names and units, from standard input, and with other filters.
#[test]
fn maps_filters_and_pipes() {
    let folder = Folder::new();
    let text = log(2000);
    let plain = folder.file("log.csv", &text);
    let scaled: String = text
        .lines()
        .enumerate()
        .map(|(i, line)| {
            let mut cells: Vec<String> = line.split(',').map(str::to_owned).collect();
            if i == 0 {
                cells[0] = "stamp".into();
                cells[7] = "current".into();
            } else {
                cells[0] = format!("{}", 1e3 * cells[0].parse::<f64>().unwrap());
                cells[7] = format!("{}", cells[7].parse::<f64>().unwrap() / 0.25);
            }
            cells.join(",") + "\n"
        })
        .collect();
    let scaled = folder.file("scaled.csv", scaled);
    let map = folder.file(
        "map.toml",
        "units = { t = \"ms\" }\n[columns]\nt = \"stamp\"\ntau1 = { column = \"current\", unit = \"A\", scale = 0.25 }\n",
    );
    let viscous = |args: &[&str]| {
        let mut call = vec!["identify", MODEL];
        call.extend(args);
        call.extend(["--friction", "viscous", "--json"]);
        let done = run(&call);
        assert_eq!(done.status, 0, "{}", done.stderr);
        done.json()["joints"][0]["viscous"].as_f64().unwrap()
    };
    let reference = viscous(&[&plain]);
    // Products with 1e3 and 0.25 differ by rounding in the last place.
    assert!((viscous(&[&scaled, "--columns", &map]) - reference).abs() < 1e-9);
    for more in [
        &["--filter", "savitzky-golay"][..],
        &["--filter", "savitzky-golay", "--filter-window", "21", "--filter-order", "4"],
        &["--filter", "off"],
        &["--filter-order", "2", "--cutoff", "12"],
        &["--resample", "400", "--decimate", "3"],
    ] {
        let found = viscous(&[&[plain.as_str()], more].concat());
        assert!((found - 0.7).abs() < 5e-3, "{more:?}: {found}");
    }
    let unknown = refused(&["identify", MODEL, &plain, "--columns", &plain]);
    assert!(unknown.contains("log.csv: row 1: "), "{unknown}");
    assert!(refused(&["identify", MODEL, &plain, "--filter-window", "21"]).contains("--filter-window"));
    assert!(refused(&["identify", MODEL, &plain, "--topic", "/a"]).contains("it is not a ROS bag"));
}
