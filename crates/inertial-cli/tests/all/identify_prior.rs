//! Tests of priors of `identify`, and of least squares without a prior.

#![allow(clippy::unwrap_used)]

use crate::common::{Folder, run};

/// Least squares without a prior gives the minimum-norm parameters that explain the log.
#[test]
fn ols_without_prior_gives_the_least_norm() {
    let folder = Folder::new();
    let log = folder.file("log.csv", crate::identify::log(1000));
    let args = [
        "identify",
        "builtin:planar-2r",
        &log,
        "--friction",
        "viscous",
        "--estimator",
        "ols",
        "--json",
        "--cutoff",
        "off",
    ];
    let (model, none) = (run(&args).json(), run(&[&args[..], &["--prior", "none"]].concat()).json());
    let norm = |found: &serde_json::Value| -> f64 {
        let bodies = found["bodies"].as_array().unwrap().iter();
        bodies.map(|b| b["mass"].as_f64().unwrap().powi(2)).sum()
    };
    assert!(norm(&none) < norm(&model), "{} {}", norm(&none), norm(&model));
    assert!(none["fit_relative_rms"].as_f64().unwrap() < 1e-3);
    // The mass of the first link is not identifiable, so it is zero in the minimum-norm solution.
    assert!(none["bodies"][0]["mass"].as_f64().unwrap().abs() < 1e-9, "{none}");
    for (x, y) in
        model["base_parameters"].as_array().unwrap().iter().zip(none["base_parameters"].as_array().unwrap())
    {
        assert!((x["value"].as_f64().unwrap() - y["value"].as_f64().unwrap()).abs() < 1e-6, "{x} {y}");
    }
}
