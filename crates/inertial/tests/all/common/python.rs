//! Python interpreter with the programs that the tests compare against.

use std::path::PathBuf;
use std::process::Command;

use super::data::{root, skip};

/// Exit status of a script whose packages are not installed.
const SKIPPED: i32 = 77;

/// Returns `INERTIAL_PYTHON`, or the interpreter created by `scripts/python-env.sh`.
fn interpreter() -> Option<PathBuf> {
    let local = root().join(".venv/bin/python");
    std::env::var_os("INERTIAL_PYTHON").map(PathBuf::from).or_else(|| local.exists().then_some(local))
}

/// Returns the output of a script under `scripts/`; `None` if Python or its packages are missing and tests may be skipped.
pub fn run(script: &str, arguments: &[&str]) -> Option<String> {
    let Some(python) = interpreter() else {
        skip(&format!("{script} needs Python: run scripts/python-env.sh, or set INERTIAL_PYTHON"));
        return None;
    };
    let output = match Command::new(&python).arg(root().join("scripts").join(script)).args(arguments).output()
    {
        Ok(output) => output,
        Err(error) => panic!("{} does not start: {error}", python.display()),
    };
    let complaint = String::from_utf8_lossy(&output.stderr);
    if output.status.code() == Some(SKIPPED) {
        skip(&format!("{script}: {}", complaint.trim()));
        return None;
    }
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{script} failed: {text}{complaint}");
    Some(text)
}
