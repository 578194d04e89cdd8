//! Exact row spaces of mechanisms with loops, against independently computed truth.

use std::path::PathBuf;

use inertial::identifiability::{AnalyzeOptions, Method, analyze};
use inertial::mechanism::{Mechanism, read};
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

#[test]
fn ranks_and_mobilities_are_the_true_ones() {
    let Some(truth) = golden("truth.json") else { return };
    let truth: Value = serde_json::from_str(&truth).unwrap();
    for case in truth["cases"].as_array().unwrap() {
        let name = case["mechanism"].as_str().unwrap();
        let g: Vec<f64> = case["gravity"].as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect();
        let robot =
            mechanism(&golden(&format!("{name}.json")).unwrap()).with_gravity(Vector3::from_row_slice(&g));
        let found = analyze(&robot, &AnalyzeOptions::default()).unwrap();
        let full = analyze(&robot, &AnalyzeOptions { method: Method::Drng, ..Default::default() }).unwrap();
        assert_eq!(full.rank, found.rank);
        assert_eq!(full.nullity, full.null_vectors.len());
        assert_eq!(found.rank as u64, case["rank"].as_u64().unwrap(), "{name} {g:?}");
        assert_eq!(found.model.dof as u64, case["dof"].as_u64().unwrap(), "{name}");
        assert!(found.certificate.exact);
    }
}
