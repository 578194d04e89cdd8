//! Test of the stated standard errors with repeated experiments on an arm, including noise, filter, automatic cut-off, friction and rotors.

#![allow(clippy::unwrap_used)]

use std::fmt::Write as _;

use crate::common::{Folder, run};
use nalgebra::{DMatrix, DVector};
use serde_json::Value;

const DRAWS: usize = 40;
const JOINTS: usize = 7;

/// Returns sixty seconds of sines within the limits of the arm, with their derivatives.
fn motion() -> String {
    let columns =
        |prefix: &str| (1..=JOINTS).map(|j| format!(",{prefix}.joint{j}")).collect::<Vec<_>>().concat();
    let mut text = format!("t{}{}{}\n", columns("q"), columns("dq"), columns("ddq"));
    // Joint 4 bends to one side only.
    let middle = [0.0, 0.2, 0.1, -1.4, 0.0, 1.4, 0.2];
    for k in 0..6000 {
        let t = 0.01 * f64::from(k);
        let mut rows = [[0.0; JOINTS]; 3];
        for j in 0..JOINTS {
            rows[0][j] = middle[j];
            for (n, size) in [0.5, 0.25, 0.12].into_iter().enumerate() {
                let w = std::f64::consts::TAU * (0.11 + 0.023 * j as f64) * [1.0, 1.9, 3.1][n];
                let (sin, cos) = (w * t + (3 * j + 2 * n) as f64).sin_cos();
                rows[0][j] += size * sin;
                rows[1][j] += size * w * cos;
                rows[2][j] -= size * w * w * sin;
            }
        }
        let _ = write!(text, "{t}");
        rows.iter().flatten().for_each(|x| write!(text, ",{x}").unwrap());
        text.push('\n');
    }
    text
}

struct Found {
    values: DVector<f64>,
    errors: DVector<f64>,
    covariance: DMatrix<f64>,
}

fn identified(log: &str, more: &[&str]) -> (Found, Vec<String>) {
    let call = ["identify", "builtin:arm7", log, "--friction", "coulomb+viscous", "--coupling", "none"];
    let found = run(&[&call[..], &["--covariance", "--json"], more].concat());
    assert_eq!(found.status, 0, "{}", found.stderr);
    let found = found.json();
    let all = found["base_parameters"].as_array().unwrap();
    let numbers = |key: &str| DVector::from_iterator(all.len(), all.iter().map(|p| p[key].as_f64().unwrap()));
    let rows = found["covariance"].as_array().unwrap();
    let entry = |i: usize, j: usize| rows[i][j].as_f64().unwrap();
    let covariance = DMatrix::from_fn(rows.len(), rows.len(), entry);
    let names = all.iter().map(|p: &Value| p["name"].as_str().unwrap().to_owned()).collect();
    (Found { values: numbers("value"), errors: numbers("std_error"), covariance }, names)
}

#[test]
#[ignore = "long: repeated experiments"]
fn errors_of_an_arm_are_as_stated_with_filter_friction_and_automatic_cutoff() {
    let folder = Folder::new();
    let motion = folder.file("motion.csv", motion());
    let log = folder.path("log.csv");
    let log = log.to_str().unwrap();
    let simulate = |more: &[&str]| {
        let done = run(&[&["simulate", "builtin:arm7", &motion, "--out", log][..], more].concat());
        assert_eq!(done.status, 0, "{}", done.stderr);
    };
    simulate(&[]);
    let (truth, names) = identified(log, &["--estimator", "wls", "--cutoff", "off", "--slow", "0"]);
    let n = truth.values.len();
    let mut chi = 0.0;
    let (mut mean, mut mean_of_possible) = (DVector::<f64>::zeros(n), DVector::<f64>::zeros(n));
    let mut square_of_possible = 0.0;
    for seed in 1..=DRAWS {
        simulate(&["--noise", "q=1e-5,tau=0.05", "--seed", &seed.to_string()]);
        let (found, _) = identified(log, &["--estimator", "wls"]);
        let error = &found.values - &truth.values;
        chi += error.dot(&found.covariance.clone().cholesky().unwrap().solve(&error));
        mean += error.component_div(&found.errors);
        // Physically consistent estimates with the truth as prior: their errors are smaller, and not larger than stated.
        let (possible, _) = identified(log, &[]);
        let scaled = (&possible.values - &truth.values).component_div(&possible.errors);
        square_of_possible += scaled.norm_squared();
        mean_of_possible += scaled;
    }
    let freedom = (DRAWS * n) as f64;
    // Chi-square, nearly normal: outside 5 deviations once in 1.7 million. The noise is estimated from some hundred
    // independent samples of each joint, which adds a fiftieth, half a deviation.
    let deviation = (chi - freedom) / f64::sqrt(2.0 * freedom);
    println!("wls: {chi:.0} of {freedom}, {deviation:.2} deviations");
    let worst = |mean: &DVector<f64>| {
        let i = mean.icamax();
        (mean[i] / (DRAWS as f64).sqrt(), names[i].clone())
    };
    println!("largest mean error in its own deviations: {:?}, {:?}", worst(&mean), worst(&mean_of_possible));
    println!("lmi: {:.2} of one", square_of_possible / freedom);
    assert!(deviation.abs() < 5.0, "{chi} of {freedom}");
    // Means of forty standard normals over their deviation, for 43 parameters: above 5 once in 40 thousand.
    for mean in [&mean, &mean_of_possible] {
        assert!(worst(mean).0.abs() < 5.0, "{:?}", worst(mean));
    }
    assert!(square_of_possible / freedom < 1.0 + 5.0 * (2.0 / freedom).sqrt(), "{square_of_possible}");
}
