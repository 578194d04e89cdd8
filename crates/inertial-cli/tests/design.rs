//! `inertial design`: its files, its certificate, and what it refuses.

#![allow(clippy::unwrap_used)]

mod common;

use common::{Folder, refused, run};

/// A short search.
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
    // Half the noise, half the errors; the motion is the same.
    let other =
        design("builtin:planar-2r", &["--json", "--friction", "coulomb+viscous", "--noise", "tau=0.1"])
            .json();
    let error = |j: &serde_json::Value| j["base_parameters"][0]["std_error"].as_f64().unwrap();
    assert!((error(&other) / error(&json) - 0.5).abs() < 1e-3);
    let text = design("builtin:planar-2r", &[]);
    assert!(
        text.stdout.contains("base parameters shown") && text.stdout.contains("limits used most"),
        "{}",
        text.stdout
    );
}

#[test]
fn files_hold_the_motion() {
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
    // Same seed, same bytes.
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
    let hung = design("builtin:quadruped", &["--base-motion", "0.1,0.3", "--json"]);
    assert_eq!(hung.json()["rank"], hung.json()["structural_rank"]);
    let limited = design("builtin:arm7", &["--time-limit", "1e-3", "--json"]);
    assert_eq!(limited.json()["interrupted"], true);
}

#[test]
fn what_cannot_be_designed_is_told_in_one_line() {
    let folder = Folder::new();
    let fixed = folder.file(
        "still.urdf",
        common::urdf(&common::inertial("1", "0.1", "0.1", "0.1"))
            .replace("lower=\"-1\" upper=\"1\"", "lower=\"0.2\" upper=\"0.2\""),
    );
    let cases: [(&[&str], &str); 15] = [
        (&["design", "builtin:planar-2r", "--friction", "stribeck"], "designs know none, viscous"),
        (&["design", &fixed], "the limits allow no motion: hinge may go from 0.2 to 0.2"),
        (&["design", "builtin:planar-2r", "--duration", "0"], "--duration 0: expected a number above zero"),
        (&["design", "builtin:planar-2r", "--duration", "1e7"], "more than an hour of motion"),
        (&["design", "builtin:planar-2r", "--rate", "1e9"], "expected 10 to 200000"),
        (&["design", "builtin:planar-2r", "--start", "1"], "--start has 1 positions, the model has 2 joints"),
        (&["design", "builtin:quadruped"], "no motion within the limits shows"),
        (&["design", "builtin:planar-2r", "--noise", "tau=0"], "expected KEY=X with X above zero"),
        (&["design", "builtin:planar-2r", "--noise", "tau.nose=1"], "there is no sensor tau.nose"),
        (&["design", "builtin:planar-2r", "--measured", "base-wrench"], "designs are for joint torques"),
        (&["design", "builtin:planar-2r", "--out", "motion.txt"], "expected a name ending in .csv"),
        (&["design", "builtin:planar-2r", "--ground", "100"], "the limits allow no posture"),
        (&["design", "builtin:planar-2r", "--self-collision"], "no collision shapes"),
        (&["design", "builtin:four-bar"], "has loops"),
        (&["design", "builtin:planar-2r", "--prior-summary", "absent.summary"], "absent.summary"),
    ];
    for (args, expected) in cases {
        let line = refused(args);
        assert!(line.contains(expected), "{args:?}: {line}");
    }
}
