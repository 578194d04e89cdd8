//! Warnings about models: every command prints them with the name of the model, and `--strict` refuses such models.

#![allow(clippy::unwrap_used)]

use std::fmt::Write as _;

use crate::common::{Folder, refused, run};

/// URDF with a duplicate origin.
const TEXT: &str = "<robot name='r'>\n<link name='a'/>\n<link name='b'><inertial><origin xyz='0 0 0.1'/><mass value='2'/>\
    <inertia ixx='0.01' ixy='0' ixz='0' iyy='0.01' iyz='0' izz='0.01'/></inertial></link>\n<joint name='j' type='revolute'>\
    <origin rpy='0 0 0.5'/>\n<origin/><parent link='a'/><child link='b'/><axis xyz='0 1 0'/>\
    <limit lower='-2' upper='2' effort='50' velocity='3'/></joint></robot>";

const WARNING: &str =
    "line 5: <origin> of <joint name=\"j\">: there is more than one <origin>: the first is used";

/// Writes a model with a warning, a motion, and a log.
fn files(folder: &Folder) -> [String; 3] {
    let model = folder.file("arm.urdf", TEXT);
    let mut log = "t,q.j,dq.j,ddq.j,tau.j\n".to_owned();
    let mut motion = "t,q.j,dq.j,ddq.j\n".to_owned();
    for k in 0..400 {
        let t = f64::from(k) / 100.0;
        let row = format!("{t},{},{},{}", t.sin(), t.cos(), -t.sin());
        writeln!(log, "{row},{}", -0.03 * t.sin() - 1.962 * t.sin().sin()).unwrap();
        writeln!(motion, "{row}").unwrap();
    }
    [model, folder.file("motion.csv", motion), folder.file("log.csv", log)]
}

/// `simulate`, `bench` and `columns` lost them; `export` and `validate` left out the name of the model.
#[test]
fn every_command_prints_them() {
    let folder = Folder::new();
    let [model, motion, log] = files(&folder);
    let designed = ["design", &model, "--duration", "3", "--starts", "1", "--iterations", "1"];
    let calls: [&[&str]; 9] = [
        &["check", &model],
        &["analyze", &model],
        &["simulate", &model, &motion],
        &designed,
        &["identify", &model, &log],
        &["validate", &model, &log],
        &["export", &model, "--to", "mujoco"],
        &["bench", &model, "--kernel", "rnea", "--calls", "1"],
        &["columns", &log, &model],
    ];
    for call in calls {
        let found = run(call);
        let output = found.stdout + &found.stderr;
        assert_eq!(output.matches(WARNING).count(), 1, "{call:?}: {output}");
        // The results of analyze and identify name their model.
        let named = format!("arm.urdf: {WARNING}");
        assert!(matches!(call[0], "analyze" | "identify") || output.contains(&named), "{call:?}: {output}");
        let line = refused(&[call, &["--strict"]].concat());
        assert!(line.ends_with(&format!("arm.urdf: {WARNING}")), "{call:?}: {line}");
    }
}

#[test]
fn results_of_simulate_and_design_contain_them() {
    let folder = Folder::new();
    let [model, motion, _] = files(&folder);
    let design = ["design", &model, "--duration", "3", "--starts", "1", "--iterations", "1", "--json"];
    for call in [&["simulate", &model, &motion, "--json"][..], &design] {
        let found = run(call).json();
        assert!(found["warnings"][0].as_str().unwrap().ends_with(WARNING), "{}", found["warnings"]);
        assert_eq!(found["warning_codes"][0], "model");
    }
}

/// Alternative models were read without their warnings, also with `--strict`.
#[test]
fn other_models_have_warnings_too() {
    let folder = Folder::new();
    let [other, ..] = files(&folder);
    let clean = folder.file("clean.urdf", TEXT.replace("<origin/>", ""));
    let call =
        ["design", &clean, "--robust", &other, "--duration", "3", "--starts", "1", "--iterations", "1"];
    let found = run(&call);
    assert!(found.stderr.contains(&format!("arm.urdf: {WARNING}")), "{}{}", found.stdout, found.stderr);
    let line = refused(&[&call[..], &["--strict"]].concat());
    assert!(line.contains(WARNING), "{line}");
}
