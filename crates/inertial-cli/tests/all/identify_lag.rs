//! Tests of torques that lag behind the motion.

#![allow(clippy::unwrap_used)]

use crate::common::{Folder, run};

/// Delays the torques of a CSV text by the given number of rows.
fn delayed(text: &str, rows: usize) -> String {
    let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split(',').collect()).collect();
    let torque: Vec<bool> = lines[0].iter().map(|name| name.starts_with("tau.")).collect();
    let mut out = lines[0].join(",") + "\n";
    for i in rows + 1..lines.len() {
        let cells: Vec<&str> =
            (0..torque.len()).map(|c| lines[if torque[c] { i - rows } else { i }][c]).collect();
        out += &(cells.join(",") + "\n");
    }
    out
}

#[test]
fn a_torque_lag_is_estimated_corrected_and_reported() {
    let folder = Folder::new();
    let path = |name: &str| folder.path(name).to_str().unwrap().to_owned();
    let (motion, log) = (path("motion.json"), path("log.csv"));
    let quick = ["--duration", "20", "--starts", "1", "--iterations", "20", "--out", &motion];
    assert_eq!(run(&[&["design", "builtin:planar-2r"][..], &quick].concat()).status, 0);
    let simulate = ["simulate", "builtin:planar-2r", &motion, "--rate", "200", "--noise", "tau=0.05"];
    assert_eq!(run(&[&simulate[..], &["--out", &log]].concat()).status, 0);
    let text = std::fs::read_to_string(&log).unwrap();
    let clean = run(&["identify", "builtin:planar-2r", &log, "--json"]);
    assert!(clean.json()["lag"].is_null(), "{}", clean.json()["lag"]);
    let late = folder.file("late.csv", delayed(&text, 4));
    let found = run(&["identify", "builtin:planar-2r", &late, "--json"]);
    let (lag, error) = (&found.json()["lag"]["value"], &found.json()["lag"]["std_error"]);
    let (lag, error) = (lag.as_f64().unwrap(), error.as_f64().unwrap());
    // Lag of four samples at 200 Hz.
    assert!((lag - 0.02).abs() < 4.0 * error && error < 0.003, "{lag} ± {error}");
    assert!(
        found.stderr.contains("ms later than the motion; this is corrected (--lag 0.02"),
        "{}",
        found.stderr
    );
    let residual = |found: &crate::common::Run| found.json()["fit_relative_rms"].as_f64().unwrap();
    assert!(residual(&found) < 1.2 * residual(&clean));
    let left = run(&["identify", "builtin:planar-2r", &late, "--lag", "0", "--json"]);
    assert!(residual(&left) > 2.0 * residual(&clean) && left.json()["lag"].is_null());
    let beyond = run(&["identify", "builtin:planar-2r", &late, "--lag", "1e9"]);
    assert_eq!((beyond.status, beyond.stderr.lines().count()), (2, 1), "{}", beyond.stderr);
}
