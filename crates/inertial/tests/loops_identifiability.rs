//! Exact row spaces of mechanisms with loops, against independently computed truth.

use std::path::PathBuf;

use inertial::identifiability::Regime;
use inertial::identifiability::lifting::{Lifted, Start, lift};
use inertial::linalg::First;
use inertial::mechanism::{DEFAULT_SNAP, ExactAssembly, ExactGeometry, Mechanism, read};
use nalgebra::Vector3;
use serde_json::Value;

fn golden(file: &str) -> Option<String> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/golden/loops").join(file);
    let text = std::fs::read_to_string(&path).ok();
    if text.is_none() {
        eprintln!("skipped: no {}", path.display());
    }
    text
}

fn mechanism(text: &str) -> Mechanism {
    read::model(text, &read::no_includes).unwrap().build(&Default::default()).unwrap()
}

/// The row space at the assembled configuration.
fn exactly(mechanism: &Mechanism, regime: Regime) -> Lifted<First> {
    let geometry = ExactGeometry::new(mechanism, DEFAULT_SNAP);
    let assembly = ExactAssembly::new(mechanism, &geometry, mechanism.assembly(), DEFAULT_SNAP);
    let assembled = assembly.to::<First>();
    let dependent: Vec<bool> = mechanism.independent_marks().iter().map(|m| *m != Some(true)).collect();
    let start = Start::new(&assembled, &dependent).unwrap();
    lift(&start, mechanism.parameter_blocks(), regime, 1).unwrap()
}

#[test]
fn ranks_and_mobilities_are_the_true_ones() {
    let Some(truth) = golden("truth.json") else { return };
    let truth: Value = serde_json::from_str(&truth).unwrap();
    for case in truth["cases"].as_array().unwrap() {
        let name = case["mechanism"].as_str().unwrap();
        let g: Vec<f64> = case["gravity"].as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect();
        let robot =
            mechanism(&golden(&format!("{name}.json")).unwrap()).with_gravity(Vector3::from_row_slice(&g));
        let found = exactly(&robot, Regime::Full);
        assert_eq!(found.rows.rank() as u64, case["rank"].as_u64().unwrap(), "{name} {g:?}");
        assert_eq!(found.mobility as u64, case["dof"].as_u64().unwrap(), "{name}");
    }
}
