//! Tests of `identify --follow` with a moving base, compared with the estimate from the whole log.

#![allow(clippy::unwrap_used)]

use crate::common::{Folder, Run, one_line, run, run_with_input};
use inertial::excitation::{BASE_COORDINATES, Basis, Trajectory};
use inertial::mechanism::{Base, BuildOptions, builtin};
use serde_json::Value;

const ROBOT: [&str; 5] = ["builtin:cheetah-leg", "--base", "floating", "--rotors", "none"];
const CHOICE: [&str; 5] = ["--friction", "none", "--offset=no", "--estimator", "wls"];

/// Returns a log of a torso that shakes and turns while its leg swings.
fn log(folder: &Folder) -> String {
    let options = BuildOptions::default().with(|o| o.base = Some(Base::Floating));
    let robot = builtin::get("cheetah-leg").unwrap().build(&options).unwrap();
    let joints = robot.velocity_names().into_iter().skip(6);
    let names: Vec<String> = BASE_COORDINATES.map(String::from).into_iter().chain(joints).collect();
    let rows: Vec<Vec<f64>> = (0..names.len())
        .map(|j| {
            let wave = |k: usize| 0.15 * ((3 * j + 7 * k * k) as f64).sin();
            std::iter::once(0.1).chain((1..=10).map(wave)).collect()
        })
        .collect();
    let motion = Trajectory::new(names, 10.0, Basis::Fourier { period: 10.0, harmonics: 5 }, &rows).unwrap();
    let (motion, log) = (folder.file("motion.json", motion.to_json()), folder.path("log.csv"));
    let call = [&["simulate"], &ROBOT[..1], &[&motion], &ROBOT[1..], &["--ignore-limits", "--rate", "200"]];
    let done = run(&[&call.concat()[..], &["--out", log.to_str().unwrap()]].concat());
    assert_eq!(done.status, 0, "{}", done.stderr);
    std::fs::read_to_string(log).unwrap()
}

fn followed(text: &str, more: &[&str]) -> Run {
    let call = [&["identify"], &ROBOT[..], &["--follow", "-", "--every", "100", "--json"], &CHOICE, more];
    run_with_input(&call.concat(), text.as_bytes())
}

/// Returns the values of the base parameters by name.
fn values(result: &Value) -> Vec<(String, f64, f64)> {
    let parameters = result["base_parameters"].as_array().unwrap().iter();
    let number = |p: &Value, key: &str| p[key].as_f64().unwrap();
    parameters.map(|p| (p["name"].to_string(), number(p, "value"), number(p, "std_error"))).collect()
}

/// Returns the text without some columns.
fn without(text: &str, unwanted: &str) -> String {
    let header = text.lines().next().unwrap();
    let kept: Vec<bool> = header.split(',').map(|name| !name.starts_with(unwanted)).collect();
    assert!(kept.contains(&false), "{header}");
    let line = |line: &str| {
        let cells = line.split(',').zip(&kept).filter(|(_, kept)| **kept).map(|(cell, _)| cell);
        cells.collect::<Vec<_>>().join(",") + "\n"
    };
    text.lines().map(line).collect()
}

#[test]
fn streams_of_a_floating_base_give_the_estimates_of_their_logs() {
    let folder = Folder::new();
    let text = log(&folder);
    let one = |text: &str, more: &[&str]| -> Value {
        let done = followed(text, more);
        assert_eq!(done.status, 0, "{}", done.stderr);
        serde_json::from_str(done.stdout.lines().last().unwrap()).unwrap()
    };
    let whole = |text: &str, more: &[&str]| {
        let file = folder.file("whole.csv", text);
        let call = [&["identify"], &ROBOT[..1], &[&file], &ROBOT[1..], &["--json"], &CHOICE, more];
        let done = run(&call.concat());
        assert!(done.status < 2, "{}", done.stderr);
        done.json()
    };
    for (text, more) in [
        (text.clone(), &[][..]),
        // Velocities and accelerations are derived from the pose.
        (without(&without(&without(&text, "base.v"), "base.w"), "base.a"), &[]),
        (text.clone(), &["--measured", "base-wrench"]),
        (without(&text, "tau"), &["--measured", "base-wrench"]),
    ] {
        let (stream, log) = (one(&text, more), whole(&text, more));
        assert_eq!((&stream["rank"], &stream["excited"]), (&log["rank"], &log["excited"]), "{more:?}");
        assert_eq!(stream["rank"], stream["excited"], "{more:?}");
        for ((name, x, _), (_, y, _)) in values(&stream).iter().zip(values(&log)) {
            // Both are smoothed differently, which changes the highest accelerations by some thousandths.
            assert!((x - y).abs() < 0.02 * y.abs().max(0.2), "{more:?} {name}: {x} {y}");
        }
    }
    // Without the base wrench its rows of the equations are missing, so fewer parameters are identifiable.
    let bare = without(&text, "wrench");
    let (stream, log) = (one(&bare, &[]), whole(&bare, &[]));
    assert_eq!((&stream["rank"], &stream["excited"]), (&log["rank"], &log["excited"]));
    assert!(stream["excited"].as_u64() < stream["rank"].as_u64());
    let reported = one(&text, &["--measured", "joint-torques"]);
    for ((name, x, _), (_, y, _)) in values(&reported).iter().zip(values(&stream)) {
        assert!((x - y).abs() < 1e-9 * y.abs().max(1.0), "{name}: {x} {y}");
    }
}

#[test]
fn streams_that_are_not_read_are_refused() {
    let folder = Folder::new();
    let text = log(&folder);
    let refuse = |args: &[&str], words: &str| {
        let line = one_line(&run_with_input(args, text.as_bytes()));
        assert!(line.contains(words), "{line}");
    };
    refuse(&["identify", "builtin:puma560", "--follow", "-", "--measured", "both"], "with a fixed base");
    refuse(&["identify", "builtin:four-bar", "--follow", "-"], "robots with loops");
    let call = [&["identify"], &ROBOT[..], &["--follow", "-", "--measured", "momentum"]].concat();
    refuse(&call, "streams are not supported");
    // The pose determines the direction of gravity.
    let line = one_line(&followed(&without(&text, "base.q"), &[]));
    assert!(line.contains("base.qx"), "{line}");
}

#[test]
fn a_moving_base_that_is_not_declared_is_refused() {
    let text = log(&Folder::new());
    let follow = |text: &str, more: &[&str]| {
        let call =
            [&["identify", ROBOT[0], "--rotors", "none", "--follow", "-", "--every", "100"], more, &CHOICE];
        run_with_input(&call.concat(), text.as_bytes())
    };
    // Without its pose the base moves by its velocities. A note lists the columns that are not used.
    for text in [text.clone(), without(&without(&text, "base.q"), "base.x")] {
        let done = follow(&text, &[]);
        assert_eq!((done.status, done.stdout.as_str()), (2, ""), "{}", done.stderr);
        let line = done.stderr.lines().last().unwrap();
        assert!(line.contains("--base") && line.contains("the base moves"), "{line}");
    }
    assert_eq!(follow(&text, &["--base", "fixed"]).status, 0);
    // A base at rest is fixed.
    let still: String = text
        .lines()
        .enumerate()
        .map(|(i, line)| {
            let base = text.lines().next().unwrap().split(',').map(|name| name.starts_with("base."));
            let cells = line.split(',').zip(base);
            let held = cells.map(|(cell, base)| match (i, base) {
                (0, _) | (_, false) => cell,
                _ => "0",
            });
            held.collect::<Vec<_>>().join(",") + "\n"
        })
        .collect();
    assert_eq!(follow(&still, &[]).status, 0);
}
