//! Tests of `inertial design`: files, certificate, and rejected input.

#![allow(clippy::unwrap_used)]

use crate::common;
use crate::common::{Folder, refused, run};

/// Options of a short search.
const QUICK: [&str; 10] =
    ["--duration", "4", "--rate", "25", "--harmonics", "4", "--starts", "1", "--iterations", "4"];

fn design(model: &str, more: &[&str]) -> common::Run {
    run(&[&["design", model][..], &QUICK, more].concat())
}

#[test]
fn designs_come_with_a_certificate() {
    let result =
        design("builtin:planar-2r", &["--json", "--friction", "coulomb+viscous", "--noise", "tau=0.2"]);
    assert_eq!((result.status, result.stderr.as_str()), (0, ""));
    let json = result.json();
    assert_eq!(json["schema"], "inertial/design/1");
    assert_eq!(
        (&json["rank"], &json["structural_rank"]),
        (&json["excited"].as_u64().map(|e| e - 4).into(), &json["rank"])
    );
    assert_eq!(json["joint_terms"].as_array().unwrap().len(), 4);
    assert!(json["base_parameters"][0]["std_error"].as_f64().unwrap() > 0.0);
    assert!(json["limits"][0]["used"].as_f64().unwrap() <= 1.0);
    assert_eq!(json["trajectory"]["basis"]["type"], "fourier");
    // Half the noise gives half the errors with the same motion.
    let other =
        design("builtin:planar-2r", &["--json", "--friction", "coulomb+viscous", "--noise", "tau=0.1"])
            .json();
    let error = |j: &serde_json::Value| j["base_parameters"][0]["std_error"].as_f64().unwrap();
    assert!((error(&other) / error(&json) - 0.5).abs() < 1e-3);
    let text = design("builtin:planar-2r", &[]);
    assert!(
        text.stdout.contains("base parameters (measured: joint-torques)")
            && text.stdout.contains("limits used most"),
        "{}",
        text.stdout
    );
}

/// Identification estimates offsets, so designs include them where they matter.
#[test]
fn offsets_that_make_a_design_poor_are_included() {
    let included = |found: &serde_json::Value| {
        found["warnings"].to_string().contains("the design includes unknown offsets")
    };
    let error = |found: &serde_json::Value, of: &str| {
        let all = found["base_parameters"].as_array().unwrap();
        all.iter().find(|p| p["name"] == of).unwrap()["std_error"].as_f64().unwrap()
    };
    // The mass of the vertical slide acts mainly through its constant weight, which an offset imitates.
    let default = design("builtin:scara", &["--json"]).json();
    let with = design("builtin:scara", &["--offset", "--json"]).json();
    let without = design("builtin:scara", &["--offset=no", "--json"]).json();
    assert!(included(&default) && !included(&with) && !included(&without));
    assert_eq!(error(&default, "link3.m"), error(&with, "link3.m"));
    assert!(error(&with, "link3.m") > 10.0 * error(&without, "link3.m"));
    assert!(without["warnings"].to_string().contains("with unknown offsets of the torques"));
    assert!(!included(&design("builtin:arm7", &["--json"]).json()));
}

#[test]
fn motion_files_contain_the_designed_motion() {
    let folder = Folder::new();
    let path = |name: &str| folder.path(name).to_str().unwrap().to_owned();
    let (csv, yaml, json, toml) = (path("m.csv"), path("m.yaml"), path("m.json"), path("m.toml"));
    let out = ["--out", &csv, "--out", &yaml, "--out", &json, "--out", &toml];
    assert_eq!(design("builtin:planar-2r", &out).status, 0);
    let read = |p: &str| std::fs::read_to_string(p).unwrap();
    let first = read(&csv);
    assert!(first.starts_with("t,q.") && first.lines().count() == 102, "{}", first.lines().count());
    let trajectory = inertial::excitation::Trajectory::read(&read(&json)).unwrap();
    assert_eq!(trajectory, inertial::excitation::Trajectory::read(&read(&toml)).unwrap());
    assert_eq!(trajectory.to_csv(25.0).unwrap(), first);
    assert_eq!(trajectory.to_ros_yaml(25.0).unwrap(), read(&yaml));
    // The same seed gives identical files.
    assert_eq!(design("builtin:planar-2r", &["--out", &csv]).status, 0);
    assert_eq!(read(&csv), first);
}

#[test]
fn other_robots_and_set_ups() {
    let cycloids = design("builtin:scara", &["--trajectory", "cycloid", "--intervals", "8", "--json"]);
    let json = cycloids.json();
    assert_eq!(json["rank"], json["structural_rank"]);
    assert_eq!(json["trajectory"]["basis"]["profile"], "cycloid");
    let robust =
        design("builtin:planar-2r", &["--robust", "builtin:planar-2r", "--robust-by", "worst", "--json"]);
    assert_eq!(robust.status, 0, "{}", robust.stderr);
    let folder = Folder::new();
    let path = |name: &str| folder.path(name).to_str().unwrap().to_owned();
    let files = ["json", "csv", "yaml"].map(|end| path(&format!("hung.{end}")));
    let out = ["--out", &files[0], "--out", &files[1], "--out", &files[2]];
    let hung = design("builtin:quadruped", &[&["--base-motion", "0.1,0.3", "--json"][..], &out].concat());
    assert_eq!(hung.json()["rank"], hung.json()["structural_rank"]);
    // The base moves identically for coefficients and for samples of them.
    let rate = hung.json()["rate"].to_string();
    let logs = [&files[0], &files[1], &files[2]].map(|file| {
        let log = run(&["simulate", "builtin:quadruped", file, "--rate", &rate, "--ignore-limits"]);
        assert_eq!(log.status, 0, "{}", log.stderr);
        let rows = log
            .stdout
            .lines()
            .skip(1)
            .flat_map(|l| l.split(',').map(|x| x.parse().unwrap()).collect::<Vec<f64>>());
        rows.collect::<Vec<f64>>()
    });
    for (log, digits) in [(&logs[1], 1e-9), (&logs[2], 1e-6)] {
        assert_eq!(log.len(), logs[0].len());
        // Signs of quaternions are arbitrary; numbers in files are exact, times in ROS messages are whole nanoseconds.
        let apart =
            log.iter().zip(&logs[0]).map(|(a, b)| (a - b).abs().min((a + b).abs())).fold(0.0, f64::max);
        assert!(apart < digits * 1e3, "{apart}");
    }
    let asymmetric = design("builtin:planar-2r", &["--friction", "asymmetric", "--json"]);
    let terms = |json: &serde_json::Value| -> Vec<String> {
        let names = json["joint_terms"].as_array().unwrap().iter().map(|t| t["name"].as_str().unwrap());
        names.filter_map(|n| n.strip_prefix("joint1.")).map(str::to_owned).collect()
    };
    assert_eq!(terms(&asymmetric.json()), ["viscous", "coulomb_positive", "coulomb_negative"]);
    let bent = ["--friction", "stribeck", "--stribeck", "2,0.2,2", "--noise", "tau=0.01", "--json"];
    let json = design("builtin:planar-2r", &bent).json();
    assert_eq!(terms(&json), ["viscous", "coulomb", "stribeck", "stribeck_velocity"]);
    let speed =
        json["joint_terms"].as_array().unwrap().iter().find(|t| t["name"] == "joint1.stribeck_velocity");
    let speed = speed.unwrap();
    assert_eq!(speed["value"], 0.2);
    assert!(speed["relative"].as_f64().unwrap() < 0.1, "{speed}");
    let limited = design("builtin:arm7", &["--time-limit", "1e-3", "--json"]);
    assert_eq!(limited.json()["interrupted"], true);
}

#[test]
fn impossible_designs_are_refused_in_one_line() {
    let folder = Folder::new();
    let fixed = folder.file(
        "still.urdf",
        common::urdf(&common::inertial("1", "0.1", "0.1", "0.1"))
            .replace("lower=\"-1\" upper=\"1\"", "lower=\"0.2\" upper=\"0.2\""),
    );
    let hinge = folder.file("hinge.urdf", common::urdf(&common::inertial("1", "0.1", "0.1", "0.1")));
    let cases: [(&[&str], &str); 24] = [
        (&["design", &hinge, "--start", "5"], "the start of hinge is 5, outside of its limits"),
        (&["design", "builtin:quadruped"], "unknowns: combinations of torso."),
        (&["design", &hinge, "--duration", "1e-9"], "samples, expected 10 to 200000"),
        (&["design", &hinge, "--duration", "nan"], "--duration: NaN: expected a number above zero"),
        (&["design", &hinge, "--margin", "1"], "expected a fraction from 0 to below 1"),
        (&["design", &hinge, "--workspace", "5,5,5"], "expected 6 numbers"),
        (&["design", &hinge, "--workspace", "5,5,5,6,6,6"], "the limits allow no posture"),
        (
            &["design", "builtin:planar-2r", "--friction", "stribeck", "--stribeck", "1,2"],
            "expected 3 numbers",
        ),
        (&["design", "builtin:planar-2r", "--stribeck", "1,0.1,2"], "needs the friction stribeck"),
        (
            &["design", "builtin:planar-2r", "--friction", "asymmetric", "--offset"],
            "cannot be combined with asymmetric friction",
        ),
        (&["design", &fixed], "the limits allow no motion: hinge may go from 0.2 to 0.2"),
        (&["design", "builtin:planar-2r", "--duration", "0"], "--duration: 0: expected a number above zero"),
        (&["design", "builtin:planar-2r", "--duration", "1e7"], "expected at most an hour"),
        (&["design", "builtin:planar-2r", "--rate", "1e9"], "expected 10 to 200000"),
        (
            &["design", "builtin:planar-2r", "--start", "1"],
            "--start: has 1 positions, the model has 2 joints",
        ),
        (&["design", "builtin:quadruped"], "--base-motion lets it move"),
        (&["design", "builtin:planar-2r", "--noise", "tau=0"], "--noise"),
        (&["design", "builtin:planar-2r", "--noise", "tau.nose=1"], "there is no sensor tau.nose"),
        (
            &["design", "builtin:planar-2r", "--measured", "both"],
            "expected joint-torques or base-wrench for a fixed base",
        ),
        (&["design", "builtin:planar-2r", "--out", "motion.txt"], "expected a name ending in .csv"),
        (&["design", "builtin:planar-2r", "--ground", "100"], "the limits allow no posture"),
        (&["design", "builtin:planar-2r", "--self-collision"], "no collision shapes"),
        (&["design", "builtin:four-bar", "--start", "0,0"], "1 independent joints"),
        (&["design", "builtin:planar-2r", "--prior-summary", "absent.summary"], "absent.summary"),
    ];
    for (args, expected) in cases {
        let line = refused(args);
        assert!(line.contains(expected), "{args:?}: {line}");
    }
}

/// Mechanism with loops: the motion of its independent joints is designed, simulated, and identified with the expected errors.
#[test]
fn loops_are_designed_for() {
    let folder = Folder::new();
    let path = |name: &str| folder.path(name).to_str().unwrap().to_owned();
    let (motion, log) = (path("motion.json"), path("log.csv"));
    let design = |steps: &str| {
        let call = ["design", "builtin:four-bar", "--friction", "none", "--noise", "tau=0.05", "--json"];
        run(&[&call[..], &["--starts", "1", "--iterations", steps, "--out", &motion]].concat()).json()
    };
    let value = |design: &serde_json::Value| design["criterion"]["value"].as_f64().unwrap();
    let (first, best) = (design("1"), design("40"));
    assert!(value(&best) < value(&first) - 0.1, "{} after {}", value(&best), value(&first));
    assert_eq!(best["rank"], best["structural_rank"]);
    let limits = best["limits"].as_array().unwrap();
    assert!(limits.iter().all(|limit| limit["used"].as_f64().unwrap() <= 1.0), "{limits:?}");
    // The passive joints also have limits.
    let of_others = |limit: &&serde_json::Value| limit["limit"].as_str().unwrap().contains("speed of");
    assert!(limits.iter().filter(of_others).count() > 1, "{limits:?}");
    let simulated = run(&[
        "simulate",
        "builtin:four-bar",
        &motion,
        "--rate",
        "100",
        "--noise",
        "tau=0.05",
        "--friction",
        "none",
        "--out",
        &log,
    ]);
    assert_eq!(simulated.status, 0, "{}", simulated.stderr);
    let call =
        ["identify", "builtin:four-bar", &log, "--estimator", "wls", "--friction", "none", "--offset=no"];
    let found =
        run(&[&call[..], &["--rotors", "none", "--cutoff", "off", "--slow", "0", "--json"]].concat()).json();
    let errors = |of: &serde_json::Value| -> Vec<f64> {
        let all = of["base_parameters"].as_array().unwrap().iter();
        all.map(|p| p["std_error"].as_f64().unwrap()).collect()
    };
    for (expected, found) in errors(&best).iter().zip(errors(&found)) {
        // The noise is estimated from 2001 samples, to 2 %; errors of correlated residuals from sixteen blocks, to 20 %.
        assert!((found / expected - 1.0).abs() < 0.5, "{found} for {expected}");
    }
}

/// Robot on a force plate: designed for its wrench, simulated, and identified with the expected errors.
#[test]
fn a_force_plate_is_designed_for() {
    let folder = Folder::new();
    let path = |name: &str| folder.path(name).to_str().unwrap().to_owned();
    let (motion, log) = (path("motion.json"), path("log.csv"));
    let noise = ["--noise", "wrench.f=0.5,wrench.t=0.2", "--measured", "base-wrench"];
    let out = ["--json", "--out", &motion];
    let designed = design("builtin:scara", &[&noise[..], &out].concat());
    assert_eq!(designed.status, 0, "{}", designed.stderr);
    let designed = designed.json();
    assert_eq!(
        (&designed["measured"], &designed["rank"]),
        (&"base-wrench".into(), &designed["structural_rank"])
    );
    let simulate = ["simulate", "builtin:scara", &motion, "--rate", "25", "--out", &log];
    let simulated = run(&[&simulate[..], &noise].concat());
    assert_eq!(simulated.status, 0, "{}", simulated.stderr);
    let identify = ["identify", "builtin:scara", &log, "--estimator", "wls", "--cutoff", "off", "--json"];
    let found = run(&[&identify[..], &noise[2..]].concat());
    assert_eq!(found.status, 0, "{}", found.stderr);
    let errors = |json: &serde_json::Value| -> Vec<(String, f64)> {
        let all = json["base_parameters"].as_array().unwrap();
        all.iter().map(|p| (p["name"].to_string(), p["std_error"].as_f64().unwrap())).collect()
    };
    for ((name, promised), (same, found)) in errors(&designed).iter().zip(errors(&found.json())) {
        // Half of each variance is the spread of 16 blocks of six samples each, known to 37 % and increased by the
        // weight of the omitted block.
        let ratio = found / promised;
        assert!(*name == same && ratio > 0.75 && ratio < 1.5, "{name} {same}: {promised} {found}");
    }
}

/// Information of earlier logs is included: no expected error is larger than theirs.
#[test]
fn earlier_logs_are_counted() {
    let folder = Folder::new();
    let path = |name: &str| folder.path(name).to_str().unwrap().to_owned();
    let (motion, log, summary) = (path("motion.json"), path("log.csv"), path("first.summary"));
    assert_eq!(design("builtin:planar-2r", &["--noise", "tau=0.2", "--out", &motion]).status, 0);
    let simulate = ["simulate", "builtin:planar-2r", &motion, "--rate", "200", "--noise", "tau=0.2"];
    let flight_motion = run(&[&simulate[..], &["--friction", "none", "--out", &log]].concat());
    assert_eq!(flight_motion.status, 0, "{}", flight_motion.stderr);
    // A design includes only the terms of its own options, which are none here.
    let terms = ["--friction", "none", "--offset=no", "--rotors", "none"];
    let identify = ["identify", "builtin:planar-2r", &log, "--estimator", "wls", "--cutoff", "off", "--json"];
    let identify = [&identify[..], &terms].concat();
    let before = run(&[&identify[..], &["--summary-out", &summary]].concat());
    assert_eq!(before.status, 0, "{}", before.stderr);
    let errors = |json: &serde_json::Value| -> Vec<f64> {
        let all = json["base_parameters"].as_array().unwrap();
        all.iter().map(|p| p["std_error"].as_f64().unwrap()).collect()
    };
    let before = errors(&before.json());
    let after = design("builtin:planar-2r", &["--noise", "tau=0.2", "--prior-summary", &summary, "--json"]);
    assert_eq!(after.status, 0, "{}", after.stderr);
    for (after, before) in errors(&after.json()).iter().zip(before) {
        // The noise estimated from the 800 samples of the log is accurate to a few percent.
        assert!(*after < 1.1 * before, "{after} {before}");
    }
}

/// Two links in a vertical plane, with a ball on the ground and one at the hand; the links of the balls share no joint.
const BALLS: &str = r#"<robot name="balls">
  <link name="base"><collision><origin xyz="0.45 0 0"/><geometry><sphere radius="0.19"/></geometry></collision></link>
  <link name="upper"><inertial><origin xyz="0.2 0 0"/><mass value="2"/><inertia ixx="0.01" ixy="0" ixz="0" iyy="0.03"
    iyz="0" izz="0.03"/></inertial></link>
  <link name="lower"><inertial><origin xyz="0.15 0 0"/><mass value="1"/><inertia ixx="0.005" ixy="0" ixz="0" iyy="0.01"
    iyz="0" izz="0.01"/></inertial>
    <collision><origin xyz="0.3 0 0"/><geometry><sphere radius="0.05"/></geometry></collision></link>
  <joint name="a" type="revolute"><parent link="base"/><child link="upper"/><axis xyz="0 1 0"/>
    <limit lower="-1.5" upper="1.5" effort="50" velocity="3"/></joint>
  <joint name="b" type="revolute"><parent link="upper"/><child link="lower"/><origin xyz="0.4 0 0"/><axis xyz="0 1 0"/>
    <limit lower="-2.8" upper="2.8" effort="50" velocity="3"/></joint>
</robot>"#;

#[test]
fn collisions_of_the_model_are_kept_apart() {
    let folder = Folder::new();
    let (model, out) = (folder.file("balls.urdf", BALLS), folder.path("m.csv").to_str().unwrap().to_owned());
    let nearest = |more: &[&str]| {
        let result = design(&model, &[&["--out", &out][..], more].concat());
        assert_eq!(result.status, 0, "{}", result.stderr);
        let text = std::fs::read_to_string(&out).unwrap();
        let rows = text.lines().skip(1).map(|line| {
            let row: Vec<f64> = line.split(',').map(|x| x.parse().unwrap()).collect();
            let (a, b) = (row[1], row[1] + row[2]);
            // Rotation about y maps x to (cos, −sin) in x and z.
            let hand = [0.4 * a.cos() + 0.3 * b.cos(), -0.4 * a.sin() - 0.3 * b.sin()];
            (hand[0] - 0.45).hypot(hand[1])
        });
        rows.fold(f64::INFINITY, f64::min)
    };
    // Without collision avoidance the hand passes through the ball.
    assert!(nearest(&[]) < 0.24);
    assert!(nearest(&["--self-collision"]) >= 0.24);
    assert!(nearest(&["--self-collision", "--clearance", "0.05"]) >= 0.29);
}

/// Ctrl-C ends the search and keeps the best motion: a complete file and a note, or no file if the search had not begun.
#[cfg(unix)]
#[test]
fn an_interrupted_design_is_whole_or_none() {
    let folder = Folder::new();
    let out = folder.path("m.csv");
    // Long enough for any machine; each attempt waits longer before the interruption.
    let long = ["design", "builtin:arm7", "--starts", "500", "--iterations", "100000", "--json", "--out"];
    for tenths in [2, 4, 8, 16, 32, 64, 128, 256, 512] {
        let child = common::command()
            .args(long)
            .arg(&out)
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        std::thread::sleep(std::time::Duration::from_millis(100 * tenths));
        let sent =
            std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
        assert!(sent.success());
        let result = child.wait_with_output().unwrap();
        if result.status.code() != Some(0) {
            assert!(!out.exists(), "half a design was left");
            continue;
        }
        let json: serde_json::Value = serde_json::from_slice(&result.stdout).unwrap();
        assert_eq!(json["interrupted"], true);
        assert!(json["warnings"].to_string().contains("stopped before it converged"), "{}", json["warnings"]);
        // 20 s at 100 Hz, both ends, and the header.
        assert_eq!(std::fs::read_to_string(&out).unwrap().lines().count(), 2002);
        return;
    }
    panic!("the search never began");
}

/// CAD exporters write zeros for all limits, and some models have friction above their effort limit; such limits are ignored.
#[test]
fn limits_that_no_motion_can_satisfy_are_ignored() {
    let folder = Folder::new();
    let hinge = common::urdf(&common::inertial("1", "0.1", "0.1", "0.1"));
    let unknown = hinge.replace(
        "lower=\"-1\" upper=\"1\" effort=\"1\" velocity=\"1\"",
        "lower=\"0\" upper=\"0\" effort=\"0\" velocity=\"0\"",
    );
    let sticky = hinge.replace("</joint>", "<dynamics friction=\"2\"/></joint>");
    for (name, text, reason) in [
        ("unknown.urdf", unknown, "all limits are zero: taken as not given"),
        (
            "sticky.urdf",
            sticky,
            "the friction of hinge in the model reaches the effort limit, which is therefore not enforced",
        ),
    ] {
        let (model, motion) = (folder.file(name, text), folder.path(&format!("{name}.csv")));
        let motion = motion.to_str().unwrap();
        let result = design(&model, &["--json", "--out", motion]);
        assert_eq!(result.status, 0, "{}", result.stderr);
        let simulated = run(&["simulate", &model, motion]);
        assert_eq!(simulated.status, 0, "{}", simulated.stderr);
        let json = result.json();
        let warnings = json["warnings"].as_array().unwrap();
        assert!(warnings.iter().any(|w| w.as_str().unwrap().contains(reason)), "{warnings:?}");
        assert_eq!(json["rank"], json["structural_rank"]);
    }
}

/// The value of a criterion has its meaning: the logarithm of the condition number that is printed beside it.
#[test]
fn the_value_of_a_criterion_matches_its_stated_meaning() {
    let call =
        ["design", "builtin:planar-2r", "--criterion", "condition", "--duration", "4", "--time-limit", "1"];
    let found = run(&[&call[..], &["--json"]].concat()).json();
    let (value, condition) =
        (found["criterion"]["value"].as_f64().unwrap(), found["condition"].as_f64().unwrap());
    // The search evaluates the motion at fewer samples than the certificate.
    assert!((value - condition.ln()).abs() < 0.05, "{value} {condition}");
    let meaning = "logarithm of the condition number of the regressor divided by the noise";
    assert_eq!(found["criterion"]["meaning"], meaning);
    let text = run(&call).stdout;
    assert!(
        text.contains(&format!(" ({meaning})\nRegressor divided by the noise: condition number ")),
        "{text}"
    );
}
