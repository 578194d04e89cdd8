//! Tests of `validate --threshold`: a model passes only if every joint was validated.

#![allow(clippy::unwrap_used)]

use std::fmt::Write as _;

use crate::common::{Folder, refused, run};
use crate::identify::log;

const MODEL: &str = "builtin:planar-2r";

/// Returns a log with cells changed by row and column.
fn changed(change: impl Fn(usize, usize, &str) -> String) -> String {
    let text = log(600);
    let mut lines = text.lines();
    let mut out = lines.next().unwrap().to_owned() + "\n";
    for (row, line) in lines.enumerate() {
        let cells: Vec<String> = line.split(',').enumerate().map(|(k, cell)| change(row, k, cell)).collect();
        let _ = writeln!(out, "{}", cells.join(","));
    }
    out
}

#[test]
fn a_joint_without_usable_samples_fails_validation() {
    let folder = Folder::new();
    let log = folder.file("l.csv", log(2000));
    let mut seen = [0; 2];
    // The number of used samples of a joint decreases with the fraction of samples that are fast enough.
    for slow in ["0.5", "0.9", "0.95", "0.97", "0.98", "0.985", "0.99", "0.995"] {
        let found = run(&["validate", MODEL, &log, "--threshold", "1e9", "--slow", slow, "--json"]);
        match found.status {
            0 => {
                let joints = found.json()["joints"].as_array().unwrap().clone();
                assert_eq!(joints.len(), 2);
                assert!(joints.iter().all(|joint| joint["samples"].as_u64().unwrap() >= 16));
                seen[0] += 1;
            }
            1 => {
                assert!(found.stderr.contains("too few to judge the model"), "{}", found.stderr);
                assert!(!found.json()["unjudged"].as_array().unwrap().is_empty());
                seen[1] += 1;
            }
            // Fewer samples than parameters of the model.
            _ => assert_eq!(found.status, 2, "{}", found.stderr),
        }
    }
    assert!(seen.iter().all(|&count| count > 0), "{seen:?}");
}

#[test]
fn tiny_torques_fail_validation() {
    let folder = Folder::new();
    let tiny = |row: usize, column: usize, cell: &str| match column {
        7 | 8 => format!("{}e-200", 1 + row % 7),
        _ => cell.to_owned(),
    };
    let log = folder.file("tiny.csv", changed(tiny));
    let found = run(&["validate", MODEL, &log, "--threshold", "0.1"]);
    assert_eq!(found.status, 2, "{}", found.stderr);
    assert!(found.stderr.contains("expected N m or N"), "{}", found.stderr);
    // Small torques are valid measurements, but predicted badly.
    let small = |row: usize, column: usize, cell: &str| match column {
        7 | 8 => format!("{}e-90", 1 + row % 7),
        _ => cell.to_owned(),
    };
    let log = folder.file("small.csv", changed(small));
    assert_eq!(run(&["validate", MODEL, &log, "--threshold", "0.1"]).status, 1);
}

/// Column of the torque of the second joint in [`log`].
const TORQUE: usize = 8;

/// A torque without values, or without a column, was a note while the threshold counted as met.
#[test]
fn a_joint_without_torques_fails_validation() {
    let folder = Folder::new();
    let header = log(600).lines().next().unwrap().to_owned();
    assert_eq!(header.split(',').nth(TORQUE), Some("tau2"), "{header}");
    let empty = |_: usize, column: usize, cell: &str| match column {
        TORQUE => String::new(),
        _ => cell.to_owned(),
    };
    // Logs that name their joints may lack a torque: a gripper often has no sensor.
    let named = "t,q.joint1,q.joint2,dq.joint1,dq.joint2,ddq.joint1,ddq.joint2,tau.joint1,tau.joint2";
    let cut = |line: &str| line.rsplit_once(',').unwrap().0.to_owned() + "\n";
    let logs = [
        folder.file("empty.csv", changed(empty)),
        folder.file("absent.csv", log(600).replacen(&header, named, 1).lines().map(cut).collect::<String>()),
    ];
    for log in &logs {
        let found = run(&["validate", MODEL, log, "--threshold", "1e9", "--json"]);
        assert_eq!(found.status, 1, "{}", found.stderr);
        let reason = "joint2: no measured torques, so the threshold is not met; if they have no sensor, name the \
                      joints to judge with --joints";
        assert!(found.stderr.contains(reason), "{}", found.stderr);
        assert_eq!(found.json()["unjudged"], serde_json::json!(["joint2"]));
        let named = run(&["validate", MODEL, log, "--threshold", "1e9", "--joints", "joint1"]);
        assert_eq!(named.status, 0, "{}", named.stderr);
        assert!(!run(&["validate", MODEL, log]).stderr.contains("threshold"));
    }
}

#[test]
fn a_threshold_is_a_number() {
    let folder = Folder::new();
    let log = folder.file("l.csv", log(400));
    for threshold in ["nan", "-1", "inf"] {
        let line = refused(&["validate", MODEL, &log, "--threshold", threshold]);
        assert!(line.contains("--threshold: expected a number not below zero"), "{line}");
    }
}
