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

/// Formats a matrix as a file of NumPy, in the order of C.
fn npy(rows: &[Vec<f64>]) -> Vec<u8> {
    let header = format!(
        "{{'descr': '<f8', 'fortran_order': False, 'shape': ({}, {}), }}",
        rows.len(),
        rows.first().map_or(0, Vec::len)
    );
    // The magic bytes, the version, the length and the header together are a multiple of 64 bytes.
    let length = (10 + header.len() + 1).next_multiple_of(64) - 10;
    let mut out = b"\x93NUMPY\x01\x00".to_vec();
    out.extend((length as u16).to_le_bytes());
    out.extend(format!("{header:<width$}\n", width = length - 1).bytes());
    rows.iter().flatten().for_each(|x| out.extend(x.to_le_bytes()));
    out
}

/// Arrays with more columns than rows were transposed: the regressor was refused, and the right-hand sides were mixed up.
#[test]
fn wide_arrays_keep_their_rows() {
    let folder = Folder::new();
    // Six bodies, fifteen samples of two equations.
    let number = |row: usize, column: usize| ((7 * row + 3 * column) as f64).sin() + 0.1 * column as f64;
    let y: Vec<Vec<f64>> = (0..30).map(|row| (0..60).map(|column| number(row, column)).collect()).collect();
    let tau: Vec<f64> = y.iter().map(|row| row.iter().step_by(10).sum()).collect();
    // One sample in each row: fewer rows than columns.
    let wide: Vec<Vec<f64>> = tau.chunks(10).map(<[f64]>::to_vec).collect();
    let column: Vec<Vec<f64>> = tau.iter().map(|x| vec![*x]).collect();
    let of = |name: &str, rows: &[Vec<f64>]| {
        let file = folder.path(name);
        std::fs::write(&file, npy(rows)).unwrap();
        let text = folder.file(&format!("{name}.csv"), table(rows));
        (file.display().to_string(), text)
    };
    let (y, y_text) = of("Y.npy", &y);
    let ((wide, wide_text), (column, column_text)) = (of("wide.npy", &wide), of("column.npy", &column));
    let (row, _) = of("row.npy", &[tau]);
    let found = |y: &str, tau: &str| {
        run(&["identify", "--regressor", y, "--rhs", tau, "--bodies", "6", "--json"]).json()
    };
    let expected = found(&y_text, &column_text);
    assert_eq!(expected["rows"], 30);
    assert_eq!(found(&y, &column), expected);
    // One row of numbers is a vector.
    assert_eq!(found(&y, &row), expected);
    assert_eq!(found(&y, &wide), found(&y_text, &wide_text));
}
