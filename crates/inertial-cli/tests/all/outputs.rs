//! Tests of outputs: inputs are not replaced, and no temporary files are left behind.

#![allow(clippy::unwrap_used)]

use std::fs;

use crate::common::{Folder, inertial, refused, run, run_with_input, urdf};
use crate::identify::log;

const MODEL: &str = "builtin:planar-2r";

/// Runs a command whose output is one of its inputs; the input is unchanged.
fn keeps(folder: &Folder, input: &str, args: &[&str]) {
    let before = fs::read(input).unwrap();
    let found = run(args);
    assert_eq!((found.status, found.stdout.as_str()), (2, ""), "{}", found.stderr);
    assert!(found.stderr.contains("is also an input"), "{}", found.stderr);
    assert_eq!(fs::read(input).unwrap(), before, "{args:?}");
    assert!(folder.names().iter().all(|name| !name.starts_with(".inertial-")));
}

#[test]
fn a_report_does_not_replace_the_log_it_is_of() {
    let folder = Folder::new();
    let log = folder.file("l.csv", log(400));
    keeps(&folder, &log, &["identify", MODEL, &log, "--report", &log]);
    let summary = folder.path("l.summary").display().to_string();
    assert_eq!(run(&["identify", MODEL, &log, "--summary-out", &summary]).status, 0);
    keeps(&folder, &summary, &["identify", MODEL, &summary, "--summary-out", &summary]);
    // A log does not have the name of a summary.
    let before = fs::read(&log).unwrap();
    refused(&["identify", MODEL, &log, "--summary-out", &log]);
    assert_eq!(fs::read(&log).unwrap(), before);
    keeps(&folder, &log, &["validate", MODEL, &log, "--report", &log]);
    let other = folder.file("other.csv", crate::identify::log(400));
    keeps(
        &folder,
        &log,
        &["identify", MODEL, &other, "--cutoff", "off", "--validate", &log, "--report", &log],
    );
}

/// The model does not exist, which shows that outputs are checked before anything is read.
#[test]
fn an_output_that_cannot_be_written_is_refused_before_the_work_begins() {
    let folder = Folder::new();
    let lost = folder.path("none").join("x").display().to_string();
    let own = folder.path("").display().to_string();
    for (command, out) in [
        (&["identify", "absent.urdf", "absent.csv"][..], "--out"),
        (&["identify", "absent.urdf", "absent.csv"], "--report"),
        (&["identify", "absent.urdf", "absent.csv"], "--summary-out"),
        (&["check", "absent.urdf", "--fix"], "--out"),
        (&["analyze", "absent.urdf"], "--out"),
        (&["design", "absent.urdf"], "--out"),
        (&["simulate", "absent.urdf", "absent.csv"], "--out"),
        (&["validate", "absent.urdf", "absent.csv"], "--report"),
        (&["export", "absent.urdf", "--to", "c"], "--out"),
        (&["columns", "absent.csv"], "--out"),
    ] {
        // The format of a motion is given by its extension.
        let lost = if command[0] == "design" { format!("{lost}.csv") } else { lost.clone() };
        let line = refused(&[command, &[out, &lost]].concat());
        let reason = "cannot be written: there is no folder";
        assert!(line.starts_with(&format!("{lost}: {reason}")), "{command:?}: {line}");
        if command[0] == "design" {
            continue;
        }
        let line = refused(&[command, &[out, &own]].concat());
        assert_eq!(line, format!("{own}: is a folder: give the name of a file"), "{command:?}");
    }
    assert_eq!(folder.names(), [""; 0]);
}

#[test]
fn an_output_does_not_replace_a_model_or_a_side_file() {
    let folder = Folder::new();
    let log = folder.file("l.csv", log(400));
    let model = folder.file("m.urdf", urdf(&inertial("1", "1", "0.1", "0.1")));
    let columns = folder.file("columns.toml", "[columns]\n");
    let drives = folder.file("joints.toml", "");
    keeps(&folder, &model, &["check", &model, "--fix", "--out", &model]);
    keeps(&folder, &model, &["analyze", &model, "--report", &model]);
    keeps(&folder, &columns, &["identify", MODEL, &log, "--columns", &columns, "--report", &columns]);
    keeps(&folder, &drives, &["identify", MODEL, &log, "--joint-model", &drives, "--report", &drives]);
    keeps(&folder, &log, &["simulate", MODEL, &log, "--out", &log]);
    // Standard input from a pipe is not a file.
    let text = fs::read(&model).unwrap();
    assert_eq!(run_with_input(&["check", "-", "--fix", "--out", &model], &text).status, 1);
}

#[cfg(unix)]
#[test]
fn links_to_an_input_are_the_input() {
    let folder = Folder::new();
    let log = folder.file("l.csv", log(400));
    let [soft, hard] = ["soft.html", "hard.html"].map(|name| folder.path(name));
    std::os::unix::fs::symlink(&log, &soft).unwrap();
    fs::hard_link(&log, &hard).unwrap();
    for link in [soft, hard] {
        keeps(&folder, &log, &["identify", MODEL, &log, "--report", link.to_str().unwrap()]);
    }
}

#[test]
fn two_outputs_at_one_path_are_refused_before_the_work() {
    let folder = Folder::new();
    let log = folder.file("l.csv", log(400));
    let out = folder.path("out").display().to_string();
    let line = refused(&["identify", MODEL, &log, "--summary-out", &out, "--report", &out]);
    assert!(line.contains("two results would be written"), "{line}");
    let line = refused(&["identify", MODEL, &log, "--summary-out", &out]);
    assert!(line.contains("expected a name ending in .summary or .json"), "{line}");
    assert_eq!(folder.names(), ["l.csv"]);
}

#[cfg(unix)]
#[test]
fn an_existing_output_keeps_its_mode() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = Folder::new();
    let out = folder.file("page.html", "old");
    fs::set_permissions(&out, fs::Permissions::from_mode(0o666)).unwrap();
    assert_eq!(run(&["analyze", MODEL, "--report", &out]).status, 0);
    assert_eq!(fs::metadata(&out).unwrap().permissions().mode() & 0o777, 0o666);
    assert!(fs::read_to_string(&out).unwrap().starts_with("<!doctype html>"));
}

/// Signals at any time leave neither a partial output nor a temporary file.
#[cfg(target_os = "linux")]
#[test]
fn signals_leave_no_temporary_files() {
    use std::process::{Command, Stdio};
    use std::time::Duration;
    let folder = Folder::new();
    let motion = folder.file("m.csv", log(20_000));
    let out = folder.path("out.csv");
    for (k, signal) in ["-INT", "-TERM", "-HUP", "-KILL"].into_iter().cycle().take(24).enumerate() {
        let mut child = crate::common::command()
            .args(["simulate", MODEL, &motion, "--ignore-limits", "--out", out.to_str().unwrap()])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(4 * k as u64));
        assert!(Command::new("kill").args([signal, &child.id().to_string()]).status().is_ok());
        child.wait().unwrap();
        let names = folder.names();
        assert!(names == ["m.csv"] || names == ["m.csv", "out.csv"], "{signal} after {k}: {names:?}");
        let _ = fs::remove_file(&out);
    }
}

#[test]
fn files_of_killed_processes_are_removed_by_the_next_run() {
    let folder = Folder::new();
    folder.file(".inertial-abcdefABCDEF.part", "half a page");
    let out = folder.path("page.html");
    assert_eq!(run(&["analyze", MODEL, "--report", out.to_str().unwrap()]).status, 0);
    assert_eq!(folder.names(), ["page.html"]);
}
