//! Verdicts on the URDFs of real robots (`example-robot-data`), against numpy on the same files.

#![allow(clippy::unwrap_used)]

mod common;

use std::path::PathBuf;
use std::process::Command;

#[test]
fn verdicts_on_real_robots_agree_with_numpy() {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let python =
        std::env::var_os("INERTIAL_PYTHON").map_or_else(|| root.join(".venv/bin/python"), PathBuf::from);
    if !python.exists() {
        println!("skipped: there is no {} (scripts/python-env.sh makes it)", python.display());
        return;
    }
    let script = root.join("scripts/real_robots.py");
    let output = Command::new(python).arg(script).arg(env!("CARGO_BIN_EXE_inertial")).output().unwrap();
    let (found, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    println!("{found}");
    assert!(output.status.success(), "{found}{errors}");
    assert!(found.contains("; 0 verdicts differ"), "{found}");
}
