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

/// Bodies of the pseudo-inverse are labelled, and have a centre of mass only if their mass is identifiable alone.
#[test]
fn least_norm_bodies_are_no_physical_bodies() {
    let folder = Folder::new();
    let [motion, log] = ["motion.csv", "log.csv"].map(|name| folder.path(name).to_str().unwrap().to_owned());
    let model = "builtin:planar-2r";
    assert_eq!(run(&["design", model, "--out", &motion, "--time-limit", "1", "--duration", "5"]).status, 0);
    assert_eq!(run(&["simulate", model, &motion, "--out", &log]).status, 0);
    let call = ["identify", model, &log, "--estimator", "ols", "--prior", "none"];
    let text = run(&call).stdout;
    assert!(
        text.contains("Least-norm values (pseudo-inverse)") && text.contains("not physical bodies"),
        "{text}"
    );
    assert!(text.contains("least-norm mass (kg)  centre of mass (m)"), "{text}");
    // No mass of the planar arm is identifiable alone.
    assert_eq!(run(&[&call[..], &["--json"]].concat()).json()["least_norm"]["masses"], serde_json::json!([]));
    for link in ["link1", "link2"] {
        let line = text.lines().find(|l| l.trim_start().starts_with(&format!("{link} "))).unwrap();
        assert_eq!(line.split_whitespace().last(), Some("-"), "{line}");
    }
    let page = folder.path("page.html");
    assert_eq!(run(&[&call[..], &["--report", page.to_str().unwrap()]].concat()).status, 0);
    assert!(std::fs::read_to_string(page).unwrap().contains("Least-norm values of the bodies"));
    let plain = run(&call[..5]).stdout;
    assert!(!plain.contains("east-norm"), "{plain}");
}
