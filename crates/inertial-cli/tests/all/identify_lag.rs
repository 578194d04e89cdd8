//! Tests of torques that lag behind the motion.

#![allow(clippy::unwrap_used)]

use crate::common::{Folder, run};
use crate::payload;

/// Delays the torques and the readings of a sensor in a CSV text by the given number of rows.
fn delayed(text: &str, rows: usize) -> String {
    let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split(',').collect()).collect();
    let is_force = |name: &&str| name.starts_with("tau.") || name.starts_with("ft.");
    let torque: Vec<bool> = lines[0].iter().map(is_force).collect();
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
        found.stderr.contains("ms later than the motion, which is corrected (--lag 0.02"),
        "{}",
        found.stderr
    );
    let residual = |found: &crate::common::Run| found.json()["fit_relative_rms"].as_f64().unwrap();
    assert!(residual(&found) < 1.2 * residual(&clean));
    let left = run(&["identify", "builtin:planar-2r", &late, "--lag", "0", "--json"]);
    assert!(residual(&left) > 2.0 * residual(&clean) && left.json()["lag"].is_null());
    // The written model keeps the lag, and validation uses it.
    let (model, joints) = (path("arm.json"), path("arm.joints.json"));
    let written = run(&["identify", "builtin:planar-2r", &late, "--out", &model, "--force"]);
    assert_eq!(written.status, 0, "{}", written.stderr);
    assert!(written.stderr.contains(&joints), "{}", written.stderr);
    let file: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(&joints).unwrap()).unwrap();
    assert_eq!((file["lag"]["value"].as_f64(), file["lag"]["std_error"].as_f64()), (Some(lag), Some(error)));
    let all = |run: &crate::common::Run| run.json()["relative_rms"].as_f64().unwrap();
    let kept = run(&["validate", &model, &late, "--json"]);
    assert!(
        kept.stderr.contains("ms later than the motion; ") && kept.stderr.contains("--lag 0"),
        "{}",
        kept.stderr
    );
    assert!(all(&kept) < 1.2 * residual(&found), "{} {}", all(&kept), residual(&found));
    assert!(all(&run(&["validate", &model, &late, "--lag", "0", "--json"])) > 2.0 * all(&kept));
    // Files of earlier versions have no lag.
    let mut old = file;
    old.as_object_mut().unwrap().remove("lag");
    std::fs::write(&joints, old.to_string()).unwrap();
    let without = run(&["validate", &model, &late, "--json"]);
    assert!(without.status == 0 && !without.stderr.contains("lag in"), "{}", without.stderr);
    let beyond = run(&["identify", "builtin:planar-2r", &late, "--lag", "1e9"]);
    assert_eq!((beyond.status, beyond.stderr.lines().count()), (2, 1), "{}", beyond.stderr);
}

/// The lag of a force/torque sensor was not estimated: 50 ms too late, its payload had half of the inertia, and the verdict was good.
#[test]
fn a_late_force_sensor_is_corrected_and_reported() {
    let folder = Folder::new();
    let model = folder.file("arm.urdf", payload::ARM);
    for imu in [false, true] {
        let text = payload::sensor_log(3000, imu, false);
        let late = folder.file("late.csv", delayed(&text, 10));
        let call = ["identify", &model, &late, "--payload", "sensor", "--json"];
        let found = run(&call);
        assert_eq!(found.status, 0, "{}", found.stderr);
        let json = found.json();
        let lag = &json["lag"];
        // Lag of ten samples at 200 Hz.
        assert!((lag["value"].as_f64().unwrap() - 0.05).abs() < 5e-4, "{lag}");
        assert!(found.stderr.contains("the readings of the sensor are recorded 50"), "{}", found.stderr);
        assert!(found.stderr.contains("which is corrected (--lag 0.05"), "{}", found.stderr);
        assert_eq!(json["verdict"], "good");
        let inertia = |json: &serde_json::Value| json["bodies"][0]["inertia"]["ixx"].as_f64().unwrap();
        let truth =
            run(&["identify", &model, &folder.file("log.csv", text), "--payload", "sensor", "--json"]);
        let truth = truth.json();
        assert!(truth["lag"].is_null() && truth["verdict"] == "good", "{}", truth["lag"]);
        assert!((inertia(&json) / inertia(&truth) - 1.0).abs() < 0.01);
        // A lag that is not corrected makes the result doubtful; a given one is applied.
        let left = run(&[&call[..], &["--lag", "0"]].concat()).json();
        assert!(left["lag"].is_null() && left["verdict"] == "doubtful", "{left}");
        assert_eq!(left["reasons"][0]["code"], "lag");
        assert!((inertia(&left) / inertia(&truth) - 1.0).abs() > 0.1);
        let given = run(&[&call[..], &["--lag", "0.05"]].concat()).json();
        assert!((inertia(&given) / inertia(&json) - 1.0).abs() < 0.01 && given["verdict"] == "good");
    }
}

/// The lag of the torques changed the payload, although the lag of a force/torque sensor was corrected.
#[test]
fn late_torques_of_a_payload_are_corrected_and_reported() {
    let folder = Folder::new();
    let model = folder.file("arm.urdf", payload::ARM);
    let text = payload::torque_log(4000, true, 0.0);
    let call = |name: &str, text: &str, more: &[&str]| {
        let log = folder.file(name, text);
        let args = ["identify", &model, &log, "--payload", "sensor", "--offset", "--json"];
        let found = run(&[&args[..], more].concat());
        assert_eq!(found.status, 0, "{}", found.stderr);
        found
    };
    let on_time = call("log.csv", &text, &[]).json();
    assert!(on_time["lag"].is_null(), "{}", on_time["lag"]);
    let late = call("late.csv", &delayed(&text, 4), &[]);
    let json = late.json();
    let (lag, error) = (&json["lag"]["value"], &json["lag"]["std_error"]);
    let (lag, error) = (lag.as_f64().unwrap(), error.as_f64().unwrap());
    // Lag of four samples at 200 Hz.
    assert!((lag - 0.02).abs() < (4.0 * error).max(2e-4) && error < 0.003, "{lag} ± {error}");
    assert!(late.stderr.contains("which is corrected (--lag 0.0"), "{}", late.stderr);
    let mass = |json: &serde_json::Value| json["bodies"][0]["mass"].as_f64().unwrap();
    assert!((mass(&json) / mass(&on_time) - 1.0).abs() < 0.01, "{} {}", mass(&json), mass(&on_time));
    let residual = |json: &serde_json::Value| json["fit_relative_rms"].as_f64().unwrap();
    let left = call("late.csv", &delayed(&text, 4), &["--lag", "0"]).json();
    assert!(residual(&left) > 2.0 * residual(&json), "{} {}", residual(&left), residual(&json));
}

/// Trial lags of fractions of a sample averaged the noise of the torques: a lag seemed to remove a third of the residual.
#[test]
fn noise_of_slow_logs_is_no_lag() {
    let folder = Folder::new();
    let path = |name: &str| folder.path(name).to_str().unwrap().to_owned();
    let (motion, log) = (path("motion.json"), path("log.csv"));
    let slow = ["--duration", "20", "--velocity", "0.5", "--acceleration", "1", "--starts", "1"];
    let call = [&["design", "builtin:arm7"][..], &slow, &["--iterations", "3", "--out", &motion]].concat();
    assert_eq!(run(&call).status, 0);
    let noisy = ["simulate", "builtin:arm7", &motion, "--rate", "50", "--noise", "tau=1", "--seed", "1"];
    assert_eq!(run(&[&noisy[..], &["--out", &log]].concat()).status, 0);
    for cutoff in [&[][..], &["--cutoff", "off"]] {
        let found = run(&[&["identify", "builtin:arm7", &log, "--json"], cutoff].concat());
        assert_eq!(found.status, 0, "{}", found.stderr);
        let reasons = found.json()["reasons"].to_string();
        assert!(!reasons.contains("\"lag\""), "{cutoff:?}: {reasons}");
    }
}

/// A torque that one of two logs lacks does not count as zero in the unfiltered residual.
#[test]
fn torques_that_a_log_lacks_have_no_residual() {
    let folder = Folder::new();
    let path = |name: &str| folder.path(name).to_str().unwrap().to_owned();
    let (motion, log) = (path("motion.json"), path("log.csv"));
    let quick = ["--duration", "20", "--starts", "1", "--iterations", "20", "--out", &motion];
    assert_eq!(run(&[&["design", "builtin:planar-2r"][..], &quick].concat()).status, 0);
    let simulate = [
        "simulate",
        "builtin:planar-2r",
        &motion,
        "--rate",
        "200",
        "--noise",
        "tau=0.05",
        "--noise",
        "q=1e-4",
    ];
    assert_eq!(run(&[&simulate[..], &["--out", &log]].concat()).status, 0);
    let text = std::fs::read_to_string(&log).unwrap();
    let header = text.lines().next().unwrap();
    let torques: Vec<usize> =
        header.split(',').enumerate().filter(|(_, name)| name.starts_with("tau.")).map(|(k, _)| k).collect();
    let without = |line: &str| {
        let cells = line.split(',').enumerate().filter(|(k, _)| *k != torques[1]);
        cells.map(|(_, cell)| cell).collect::<Vec<_>>().join(",") + "\n"
    };
    let lacking = folder.file("lacking.csv", text.lines().map(without).collect::<String>());
    let raw = |logs: &[&str]| {
        let found = run(&[&["identify", "builtin:planar-2r", "--json"], logs].concat());
        assert_eq!(found.status, 0, "{}", found.stderr);
        let json = found.json();
        let of = |k: usize| json["fit"][k]["relative_rms_raw"].as_f64().unwrap();
        (
            json["fit_relative_rms_raw"].as_f64().unwrap(),
            [of(0), of(1)],
            json["fit"][1]["left_out"].as_f64().unwrap(),
        )
    };
    let (one, two) = (raw(&[&log]), raw(&[&log, &lacking]));
    // The same samples, up to the effect of the second log on the estimate.
    assert!(two.0 < 1.2 * one.0 && two.1[1] < 1.2 * one.1[1], "{one:?} {two:?}");
    assert!((two.2 - one.2).abs() < 1e-9, "{one:?} {two:?}");
}
