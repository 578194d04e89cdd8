//! The Python with the programs that the tests compare against.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Status of a script whose packages are not installed.
const SKIPPED: i32 = 77;

/// Says that a test was skipped, past the capture of the test's output.
pub fn skip(reason: &str) {
    let _ = writeln!(std::io::stderr(), "skipped: {reason}");
}

/// `INERTIAL_PYTHON`, or what `scripts/python-env.sh` made.
fn interpreter() -> Option<PathBuf> {
    let local = root().join(".venv/bin/python");
    std::env::var_os("INERTIAL_PYTHON").map(PathBuf::from).or_else(|| local.exists().then_some(local))
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// What a script under `scripts/` prints; `None`, and a word to people, where Python or its packages are missing.
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
    assert!(output.status.success(), "{script} failed: {complaint}");
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}
