//! Tests of identification from an externally computed regressor.

#![allow(clippy::unwrap_used)]

use std::fmt::Write as _;

use crate::common::{Folder, refused, run};

/// Formats a table of numbers.
fn table(rows: &[Vec<f64>]) -> String {
    let mut out = String::new();
    for row in rows {
        let cells: Vec<String> = row.iter().map(ToString::to_string).collect();
        let _ = writeln!(out, "{}", cells.join(","));
    }
    out
}

/// Writes regressor and torques of a hinge about z with friction: the gravity moment along y, the inertia, and a viscous column.
fn files(folder: &Folder) -> (String, String) {
    let (mut y, mut tau) = (Vec::new(), Vec::new());
    for k in 0..400 {
        let t = 0.01 * f64::from(k);
        let (q, v, a) = ((3.0 * t).sin(), 3.0 * (3.0 * t).cos(), -9.0 * (3.0 * t).sin());
        let mut row = vec![0.0; 11];
        // Columns m, hx, hy, …: gravity is -9.81 along y, the hinge rotates about z.
        (row[1], row[2]) = (9.81 * q.cos(), -9.81 * q.sin());
        (row[9], row[10]) = (a, v);
        tau.push(vec![0.5 * row[1] + 0.3 * a + 0.2 * v]);
        y.push(row);
    }
    (folder.file("Y.csv", table(&y)), folder.file("tau.csv", table(&tau)))
}

#[test]
fn bodies_come_from_a_regressor() {
    let folder = Folder::new();
    let (y, tau) = files(&folder);
    let call = ["identify", "--regressor", &y, "--rhs", &tau, "--bodies", "1"];
    let found = run(&[&call[..], &["--json"]].concat()).json();
    assert_eq!(found["schema"], "inertial/regressor-identification/1");
    assert_eq!((&found["rank"], &found["rows"]), (&4.into(), &400.into()));
    let value = |k: usize| found["values"][k].as_f64().unwrap();
    for (k, expected) in [(1, 0.5), (2, 0.0), (9, 0.3), (10, 0.2)] {
        assert!((value(k) - expected).abs() < 1e-3, "{k}: {}", value(k));
    }
    assert!(found["bodies"][0]["consistent"].as_bool().unwrap());
    let text = run(&call);
    assert!(text.stdout.contains("body1") && text.stdout.contains("a ball of 1 kg"), "{}", text.stdout);
}

#[test]
fn wrong_regressors_are_refused_in_one_line() {
    let folder = Folder::new();
    let (y, tau) = files(&folder);
    let few = folder.file("few.csv", "1\n2\n3\n");
    let many = folder.file("many.csv", "1\n".repeat(500));
    let texts = folder.file("texts.csv", "a,b\nx,y\n");
    for (y, tau, more, expected) in [
        (&y, &tau, &["--bodies", "2"][..], "2 bodies need 20"),
        (&y, &tau, &[], "number of bodies"),
        (&y, &few, &["--bodies", "1"], "expected one number for each row"),
        (&y, &many, &["--bodies", "1"], "expected one number for each row"),
        (&texts, &tau, &["--bodies", "1"], "texts.csv"),
        (&y, &tau, &["--bodies", "1", "--rows-per-sample", "7"], "not a multiple of"),
        (&y, &tau, &["--bodies", "0"], "at least one"),
    ] {
        let call = [&["identify", "--regressor", y, "--rhs", tau][..], more].concat();
        let line = refused(&call);
        assert!(line.contains(expected), "{line}");
    }
    assert!(refused(&["identify", "builtin:arm7", "--regressor", &y, "--rhs", &tau]).contains("columns"));
}
