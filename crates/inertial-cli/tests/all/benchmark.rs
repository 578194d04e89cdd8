//! Benchmark of `docs/benchmark`: its checker accepts the answers of the program and rejects wrong ones.

#![allow(clippy::unwrap_used)]

use crate::common::{Folder, python};

const CHECKER: &str = "../docs/benchmark/check.py";

#[test]
fn answers_of_the_program_are_right() {
    let Some(said) = python::run(CHECKER, &["run", env!("CARGO_BIN_EXE_inertial"), "--limit", "40"]) else {
        return;
    };
    assert!(said.contains("40 right, 0 wrong, 236 not answered"), "{said}");
}

#[test]
fn mechanisms_are_exported_with_their_questions() {
    let folder = Folder::new();
    let target = folder.path("mechanisms");
    let Some(_) = python::run(CHECKER, &["export", target.to_str().unwrap()]) else { return };
    let index: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(target.join("index.json")).unwrap()).unwrap();
    let cases = index.as_object().unwrap();
    assert_eq!(cases.len(), 276);
    // Every mechanism is a valid model, and the number of counterexamples is that of the page.
    let files = cases.values().map(|c| target.join(c["file"].as_str().unwrap()));
    let unreadable = files.filter(|f| {
        let text = std::fs::read_to_string(f).unwrap();
        inertial::mechanism::read::file::read(&text).is_err()
    });
    assert_eq!(unreadable.count(), 0);
    let short = cases.values().filter(|c| {
        let nullity = c["parameters"].as_u64().unwrap() - c["rank"].as_u64().unwrap();
        c["nullity_by_principles"].as_u64().is_some_and(|n| n < nullity)
    });
    assert_eq!(short.count(), 27);
}
