//! Tests of `--lock`: joints that are locked at a position.

#![allow(clippy::unwrap_used)]

use std::fmt::Write as _;

use crate::common::{Folder, refused, run};

/// Returns an arm with two hinges and a gripper with two fingers; `gripper` describes the joint of the first finger.
fn arm(gripper: &str, follower: &str) -> String {
    let link = |name: &str, mass: f64| {
        format!(
            "<link name='{name}'><inertial><origin xyz='0.1 0.02 0.03'/><mass value='{mass}'/><inertia ixx='0.02' ixy='0.001' \
             ixz='0' iyy='0.03' iyz='0' izz='0.04'/></inertial></link>"
        )
    };
    let hinge = |name: &str, parent: &str, child: &str, rpy: &str| {
        format!(
            "<joint name='{name}' type='revolute'><origin xyz='0.3 0 0.1' rpy='{rpy}'/><parent link='{parent}'/><child \
             link='{child}'/><axis xyz='0 0 1'/><limit lower='-3' upper='3' velocity='9' effort='99'/></joint>"
        )
    };
    let finger = |name: &str, child: &str, text: &str| {
        format!("<joint name='{name}' {text}<parent link='fore'/><child link='{child}'/></joint>")
    };
    [
        "<robot name='arm'><link name='base'/>".to_owned(),
        [link("upper", 3.0), link("fore", 2.0), link("left", 0.2), link("right", 0.3)].concat(),
        hinge("shoulder", "base", "upper", "1.5708 0 0"),
        hinge("elbow", "upper", "fore", "0 0 0.3"),
        finger("finger", "left", gripper),
        finger("thumb", "right", follower),
        "</robot>".to_owned(),
    ]
    .concat()
}

fn log() -> String {
    let mut text = String::from("t,q.shoulder,q.elbow,tau.shoulder,tau.elbow\n");
    for i in 0..1500 {
        let t = f64::from(i) / 100.0;
        let (a, b) = ((3.0 * t).sin(), (4.0 * t).cos());
        let _ = writeln!(text, "{t},{a},{b},{},{}", 9.0 * a + 2.0, 3.0 * b - a);
    }
    text
}

/// A model with locked joints equals a model with fixed joints in its file.
#[test]
fn locked_joints_are_fixed_joints() {
    let folder = Folder::new();
    let moving = arm(
        "type='prismatic'><origin xyz='0.2 0.1 0' rpy='0 0 0.2'/><axis xyz='0 1 0'/><limit lower='0' upper='0.04' velocity='1' effort='9'/>",
        "type='revolute'><origin xyz='0.2 -0.1 0'/><axis xyz='0 0 1'/><mimic joint='finger' multiplier='-10' offset='0.1'/>",
    );
    // 0.03 along y of the finger frame; -10 · 0.03 + 0.1 about z.
    let (x, y) = (0.2 - 0.03 * 0.2_f64.sin(), 0.1 + 0.03 * 0.2_f64.cos());
    let fixed = arm(
        &format!("type='fixed'><origin xyz='{x} {y} 0' rpy='0 0 0.2'/>"),
        "type='fixed'><origin xyz='0.2 -0.1 0' rpy='0 0 -0.2'/>",
    );
    let (moving, fixed) = (folder.file("moving.urdf", moving), folder.file("fixed.urdf", fixed));
    let log = folder.file("log.csv", log());
    let lock = ["--lock", "finger=0.03"];
    let residual = |args: &[&str]| {
        let done = run(&[&["validate", "--json"], args].concat());
        assert_eq!(done.status, 0, "{}", done.stderr);
        done.json()["joints"]
            .as_array()
            .unwrap()
            .iter()
            .map(|j| j["rms"].as_f64().unwrap())
            .collect::<Vec<_>>()
    };
    let (held, written) = (residual(&[&moving, &log, lock[0], lock[1]]), residual(&[&fixed, &log]));
    for (a, b) in held.iter().zip(&written) {
        // The origins are rounded differently.
        assert!((a - b).abs() < 1e-9 * b, "{held:?} {written:?}");
    }
    let elsewhere = residual(&[&moving, &log, "--lock", "finger=0"]);
    assert!((elsewhere[0] - held[0]).abs() > 1e-6, "{elsewhere:?} {held:?}");
    let analyzed = |args: &[&str]| run(&[&["analyze", "--json"], args].concat()).json()["rank"].clone();
    assert_eq!(analyzed(&[&moving, lock[0], lock[1]]), analyzed(&[&fixed]));

    // Without the option the finger is locked at its position in the model, with a note.
    let without = run(&["validate", &moving, &log, "--json"]);
    assert_eq!(
        (without.status, without.json()),
        (0, run(&["validate", "--json", &moving, &log, "--lock", "finger=0"]).json())
    );
    assert!(
        without
            .stderr
            .contains("joints that the logs do not have are locked: finger=0 (--lock sets other positions)"),
        "{}",
        without.stderr
    );
    // Numbered columns have the same effect.
    let text = std::fs::read_to_string(&log).unwrap().replace(".shoulder", "1").replace(".elbow", "2");
    let numbered = folder.file("numbered.csv", text);
    assert_eq!(run(&["validate", &moving, &numbered, "--json"]).json(), without.json());
    // A name that is missing in the model may be a typing error, so no joint is locked.
    let slip =
        folder.file("slip.csv", std::fs::read_to_string(&log).unwrap().replace("tau.elbow", "tau.elbo"));
    let line = refused(&["validate", &moving, &slip]);
    assert!(line.contains("there is no column q.finger"), "{line}");
    for (value, expected) in [
        ("fingr=0", "--lock: the model has no joint fingr; the nearest is finger"),
        ("finger", "expected NAME=NUMBER"),
        ("finger=x", "expected NAME=NUMBER"),
    ] {
        let line = refused(&["validate", &moving, &log, "--lock", value]);
        assert!(line.contains(expected), "{line}");
    }
    let twice = refused(&["validate", &moving, &log, "--lock", "finger=0", "--lock", "finger=1"]);
    assert!(twice.contains("finger is given two positions"), "{twice}");
    let out = folder.path("out.urdf");
    let done = run(&[
        "identify",
        &moving,
        &log,
        lock[0],
        lock[1],
        "--force",
        "--out",
        out.to_str().unwrap(),
        "--json",
    ]);
    assert_eq!(done.status, 0, "{}", done.stderr);
    // The identified mass of the body is distributed over the fingers in proportion to their masses.
    let text = std::fs::read_to_string(&out).unwrap();
    let mass = |link: &str| -> f64 {
        let part = text.split(&format!("<link name='{link}'>")).nth(1).unwrap();
        part.split("<mass value='").nth(1).unwrap().split('\'').next().unwrap().parse().unwrap()
    };
    let whole = mass("fore") + mass("left") + mass("right");
    let found = done.json()["bodies"][1]["mass"].as_f64().unwrap();
    assert!((whole - found).abs() < 1e-9 * found, "{whole} {found}");
    assert!(
        (mass("left") / mass("fore") - 0.1).abs() < 1e-9
            && (mass("right") / mass("fore") - 0.15).abs() < 1e-9
    );
}

/// Results do not contain bodies of joints that were missing in the log; the error of export explains how to lock them.
#[test]
fn results_of_held_joints_are_exported_with_the_same_lock() {
    let folder = Folder::new();
    let model = folder.file(
        "arm.urdf",
        arm(
            "type='prismatic'><origin xyz='0.2 0.1 0'/><axis xyz='0 1 0'/><limit lower='0' upper='0.04' velocity='1' effort='9'/>",
            "type='fixed'><origin xyz='0.2 -0.1 0'/>",
        ),
    );
    let found = run(&["identify", &model, &folder.file("log.csv", log()), "--json"]);
    assert_eq!(found.status, 0, "{}", found.stderr);
    let result = folder.file("result.json", found.stdout);
    let export = ["export", &model, "--values", &result, "--to", "mujoco"];
    let message = refused(&export);
    assert!(
        message.contains("has no body left")
            && message.contains("without the joint finger; --lock locks such joints"),
        "{message}"
    );
    let held = run(&[&export[..], &["--lock", "finger=0"]].concat());
    assert_eq!(held.status, 0, "{}", held.stderr);
}

/// A position outside the limits gives a warning, also for followers; a follower is locked by its leader only.
#[test]
fn positions_outside_the_limits_and_followers() {
    let folder = Folder::new();
    let finger =
        "type='prismatic'><axis xyz='0 1 0'/><limit lower='0' upper='0.04' velocity='1' effort='9'/>";
    let thumb = "type='revolute'><axis xyz='0 0 1'/><limit lower='-0.3' upper='0.3' velocity='1' effort='9'/>\
                 <mimic joint='finger' multiplier='10'/>";
    let model = folder.file("arm.urdf", arm(finger, thumb));
    let log = folder.file("log.csv", log());
    let said = |value: &str| {
        let done = run(&["validate", &model, &log, "--lock", value]);
        assert_eq!(done.status, 0, "{}", done.stderr);
        done.stdout + &done.stderr
    };
    assert!(!said("finger=0.03").contains("outside"));
    let far = said("finger=0.05");
    assert!(far.contains("finger is locked at 0.05, outside its limits 0 … 0.04"), "{far}");
    let follows = said("finger=0.04");
    assert!(follows.contains("thumb is locked at 0.4, outside its limits -0.3 … 0.3"), "{follows}");
    for command in ["check", "analyze", "export"] {
        let to: &[&str] = if command == "export" { &["--to", "mujoco"] } else { &[] };
        let done = run(&[&[command, &model, "--lock", "finger=0.05"], to].concat());
        assert!((done.stdout + &done.stderr).contains("finger is locked at 0.05"), "{command}");
    }
    let strict = refused(&["validate", &model, &log, "--lock", "finger=0.05", "--strict"]);
    assert!(strict.contains("outside its limits"), "{strict}");
    for locks in [&["--lock", "thumb=0.1"][..], &["--lock", "finger=0.01", "--lock", "thumb=0.1"]] {
        let line = refused(&[&["validate", &model, &log], locks].concat());
        assert!(line.contains("--lock: thumb follows finger (mimic): lock finger instead"), "{line}");
    }
}
