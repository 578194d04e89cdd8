//! Tests of `--arithmetic reproducible`: results agree with the default arithmetic, and do not depend on the variant
//! of the C library. `scripts/reproducible.sh` compares processors.

#![allow(clippy::unwrap_used)]

use std::process::Stdio;

use serde_json::Value;

use crate::common::{Folder, command, refused, run};
use crate::identify::log;

const MODEL: &str = "builtin:planar-2r";

/// Returns calls of every command that computes.
fn calls(log: &str) -> Vec<Vec<&str>> {
    let mut calls = vec![
        vec!["check", "builtin:arm7"],
        vec!["analyze", "builtin:arm7"],
        vec!["analyze", "builtin:four-bar"],
        vec!["validate", MODEL, log],
        vec!["design", MODEL, "--duration", "4", "--iterations", "2", "--starts", "1"],
    ];
    for estimator in ["ols", "wls", "irls", "consistent", "manifold", "log-cholesky"] {
        calls.push(vec!["identify", MODEL, log, "--estimator", estimator, "--friction", "none"]);
    }
    calls
}

/// Collects the numbers of a result with their locations.
fn numbers(value: &Value, place: &str, out: &mut Vec<(String, f64)>) {
    match value {
        Value::Number(x) => out.push((place.to_owned(), x.as_f64().unwrap())),
        Value::Array(items) => items.iter().for_each(|item| numbers(item, place, out)),
        Value::Object(fields) => {
            fields.iter().for_each(|(name, item)| numbers(item, &format!("{place}.{name}"), out));
        }
        _ => {}
    }
}

#[test]
fn both_kinds_of_arithmetic_find_the_same() {
    let folder = Folder::new();
    let log = folder.file("l.csv", log(400));
    for call in calls(&log).iter().filter(|call| call[0] != "design") {
        let result = |kind: &str| {
            let mut call = call.clone();
            call.extend(["--json", "--arithmetic", kind]);
            let found = run(&call);
            assert!(found.status < 2, "{}", found.stderr);
            let mut out = Vec::new();
            numbers(&found.json(), "", &mut out);
            out
        };
        let (fast, portable) = (result("fast"), result("reproducible"));
        assert_eq!(fast.len(), portable.len(), "{call:?}");
        for ((place, x), (other, y)) in fast.iter().zip(&portable) {
            // Tolerances are relative to the largest number at the same location. Errors of barely excited parameters
            // and rank margins amplify rounding errors. The fraction that a deviation explains is relative to one. A duality
            // gap of zero has the rounding error of the cost, which is a few hundred.
            let least = match place {
                _ if place.contains("explains") => 0.1,
                _ if place.contains("duality_gap") => 1e-6,
                _ => 1e-9,
            };
            let scale = fast.iter().filter(|(p, _)| p == place).map(|(_, x)| x.abs()).fold(least, f64::max);
            assert_eq!(place, other, "{call:?}");
            assert!((x - y).abs() <= 1e-5 * scale || place.contains("margin"), "{call:?} {place}: {x} {y}");
        }
    }
}

/// The C library selects its variants without AVX2 and FMA here; the program uses its own functions.
#[cfg(target_os = "linux")]
#[test]
fn variants_of_the_c_library_change_no_bit() {
    let folder = Folder::new();
    let log = folder.file("l.csv", log(400));
    for call in calls(&log) {
        let result = |hidden: &str| {
            let mut command = command();
            command.args(&call).args(["--json", "--arithmetic", "reproducible"]).stdin(Stdio::null());
            command.env("GLIBC_TUNABLES", hidden).output().unwrap()
        };
        let hidden = "-AVX2,-FMA,-FMA4,-AVX2_Usable,-FMA_Usable,-AVX_Fast_Unaligned_Load";
        let [first, second] = ["", &format!("glibc.cpu.hwcaps={hidden}")].map(result);
        assert!(first.status.code().unwrap() < 2, "{}", String::from_utf8_lossy(&first.stderr));
        assert_eq!(String::from_utf8(first.stdout), String::from_utf8(second.stdout), "{call:?}");
    }
}

#[test]
fn the_environment_chooses_the_arithmetic_too() {
    let wrong = command().args(["check", MODEL]).env("INERTIAL_ARITHMETIC", "exact").output().unwrap();
    assert_eq!(wrong.status.code(), Some(2));
    let line = String::from_utf8(wrong.stderr).unwrap();
    assert_eq!(line, "inertial: INERTIAL_ARITHMETIC: 'exact': expected one of fast, reproducible\n");
    let line = refused(&["check", MODEL, "--arithmetic", "exact"]);
    assert!(line.contains("possible values: fast, reproducible"), "{line}");
}
