//! Comparison with other programs on real robots: consistency of URDFs (`example-robot-data`) with numpy, and
//! estimation problems of logs of real robots with CVXPY and Clarabel.

#![allow(clippy::unwrap_used)]

use crate::common::conic::described;
use crate::common::data::shared;
use crate::common::{Folder, python, run};
use inertial::estimation::consistent::ConsistentProblem;
use inertial::estimation::{Consistency, Equations, JointTerms, LeastSquares, Prior, Summary, Weighting};
use inertial::mechanism::{BuildOptions, DEFAULT_SNAP, read};

#[test]
fn verdicts_on_real_robots_agree_with_numpy() {
    let Some(found) = python::run("real_robots.py", &[env!("CARGO_BIN_EXE_inertial")]) else { return };
    println!("{found}");
    assert!(found.contains("; 0 verdicts differ"), "{found}");
}

#[test]
fn cvxpy_and_clarabel_agree_on_logs_of_real_robots() {
    let Some(data) = shared("data") else { return };
    let folder = Folder::new();
    let terms = JointTerms::default().with(|t| {
        t.viscous = true;
        t.coulomb = true;
        t.offset = true;
        t.rotor_inertia = true;
    });
    let (mut problems, mut found) = (Vec::new(), Vec::new());
    for robot in ["panda", "ur10"] {
        let (model, log) = (data.join(robot).join("model.urdf"), data.join(robot).join("motion.csv.gz"));
        let saved = folder.path(&format!("{robot}.json"));
        let [model, log, to] = [&model, &log, &saved].map(|p| p.to_str().unwrap());
        let call = ["identify", model, log, "--summary-out", to, "--json", "--friction", "coulomb+viscous"];
        let result = run(&[&call[..], &["--offset", "--rotors", "symmetric", "--coupling", "none"]].concat());
        assert_eq!(result.status, 0, "{}", result.stderr);
        // Same problem from the summary, in the form of the library.
        let text = std::fs::read_to_string(model).unwrap();
        let mechanism = read::model(&text, &read::no_includes).unwrap();
        let mechanism = mechanism.build(&BuildOptions::default()).unwrap();
        let equations = Equations::new(&mechanism, terms, DEFAULT_SNAP).unwrap();
        let summary: Summary = serde_json::from_str(&std::fs::read_to_string(&saved).unwrap()).unwrap();
        let squares = LeastSquares::new(&equations, &summary, Weighting::Weighted).unwrap();
        let prior = Prior::new(&mechanism).unwrap();
        let wanted = Consistency::new(&prior, 1.0);
        let problem = ConsistentProblem::new(&equations, &summary, &squares, &wanted).unwrap();
        let solution = problem.solve(&wanted, |_, _| true).unwrap();
        // The program prints this optimum.
        let reported = result.json()["bodies"][2]["mass"].as_f64().unwrap();
        let offset = mechanism.parameter_blocks()[2].offset;
        assert!((solution.x[offset] / reported - 1.0).abs() < 1e-9, "{} {reported}", solution.x[offset]);
        problems.push(described(&problem));
        found.push((robot, solution));
    }
    let file = folder.file("problems.json", serde_json::to_string(&problems).unwrap());
    let Some(answer) = python::run("oracle_cvxpy.py", &[&file]) else { return };
    let costs: Vec<f64> = serde_json::from_str(&answer).unwrap();
    for ((robot, solution), cost) in found.iter().zip(costs) {
        println!("{robot}: {} and {cost}, gap {:.1e}", solution.cost, solution.gap());
        assert!(solution.status.is_converged());
        assert!((solution.cost - cost).abs() <= 1e-6 * cost.abs(), "{robot}: {} and {cost}", solution.cost);
    }
}

#[test]
fn models_of_packages_are_those_of_pinocchio_and_mujoco() {
    let Some(found) = python::run("corpus.py", &[env!("CARGO_BIN_EXE_inertial")]) else { return };
    println!("{found}");
    assert!(
        found.ends_with("\n0 models differ\n") && found.contains("| `example-robot-data` | URDF |"),
        "{found}"
    );
}

/// Ten arms with and without friction, offsets, rotor inertias and a lag, simulated with Pinocchio: exactly the
/// simulated terms are selected, and the written model predicts better than the original one.
#[test]
#[ignore = "long: sixty identifications"]
fn terms_that_were_simulated_are_chosen() {
    let Some(found) = python::run("oracle_terms.py", &[env!("CARGO_BIN_EXE_inertial")]) else { return };
    println!("{found}");
    assert!(found.contains("\n0 wrong; 0 of "), "{found}");
}
